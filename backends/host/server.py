"""The helper process that compiles kernels: texts in, object code out, one at a time.

It ends with its parent: when its input closes.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys


def _mask_tails(text: str) -> None:
    """Have LLVM mask the ends of loops where the processor can: rows of stencils are often short.

    Not of loops over complex numbers: what is masked there is each part by itself, scattered. Nor of
    reductions, which mostly wait for memory: a masked loop takes one vector at a time, others four. (An option
    of the whole process, which compiles nothing but our kernels, one after the other.)
    """
    import llvmlite.binding as llvm

    if llvm.get_host_cpu_features().get("avx512vl"):
        unmasked = "_c8(" in text or "_c16(" in text or text.startswith("def reduce_")
        how = "scalar-epilogue" if unmasked else "predicate-else-scalar-epilogue"
        llvm.set_option("mirabelle", f"-prefer-predicate-over-epilogue={how}")


def main() -> None:
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Whatever Numba prints must not mix with the answers.
    os.dup2(2, 1)
    from mirabelle.backends.host.compiler import compile_source

    while True:
        head = requests.read(8)
        if len(head) < 8:
            return
        (size,) = struct.unpack("<Q", head)
        number, text, name, functions = pickle.loads(requests.read(size))
        code: bytes | None
        try:
            _mask_tails(text)
            code, symbol = compile_source(text, name, functions)
        except Exception:
            code, symbol = None, ""
        answer = pickle.dumps((number, code, symbol))
        try:
            answers.write(struct.pack("<Q", len(answer)) + answer)
            answers.flush()
        except OSError:
            return


if __name__ == "__main__":
    main()
