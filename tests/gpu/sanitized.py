"""Every program of the catalogue on a real card, for compute-sanitizer to watch.

    compute-sanitizer --tool memcheck --error-exitcode 9 python tests/gpu/sanitized.py [chapter...]

Memory comes from the driver, one allocation for each array, because the sanitizer takes CuPy's pool
for one large array.
"""

from __future__ import annotations

import collections
import os
import sys
import time
import warnings
from pathlib import Path

os.environ["MIRABELLE_CUDA"] = "auto"
sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]


def main() -> int:
    import cupy
    import kernelcatalogue as catalogue

    import mirabelle as mb

    cupy.cuda.set_allocator(None)
    catalogue.CARD = mb.CuArray
    chapters = sys.argv[1:] or [
        c.__name__ for c in (*catalogue.RUN, *catalogue.IDLE) if c.__name__ != "operations"
    ]
    start, count = time.perf_counter(), 0
    refused: collections.Counter[str] = collections.Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for chapter in chapters:
            for name, program in getattr(catalogue, chapter)():
                count += 1
                try:
                    program()
                except Exception as e:
                    refused[f"{name}: {type(e).__name__}: {str(e)[:120]}"] += 1
            mb.synchronize()
            print(f"{chapter}: {count} programs, {time.perf_counter() - start:.0f} s", flush=True)
    for text in list(refused)[:20]:
        print("refused:", text)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
