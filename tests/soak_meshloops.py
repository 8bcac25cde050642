"""Random loops over mesh points in any number: `python -m tests.soak_meshloops 2000`."""

import sys

import numpy as np

import mirabelle as mb
from mirabelle.backends.host import meshloops
from tests import test_meshdata_loops as loops


def main(count: int, first: int = 0) -> int:
    failed = 0
    for seed in range(first, first + count):
        for kind in loops.KINDS:
            for least in (1, 10**9):
                meshloops.LEAST_POINTS = least
                mb.settings.num_threads = 2
                rng = np.random.default_rng(seed)
                points, kernel, accesses = loops.random_loop(rng, kind)
                wholes = any(a.whole and a.intent.writes for a in accesses)
                try:
                    loops.same(points, kernel, *accesses, kind=kind, exact=not wholes)
                except Exception as e:
                    failed += 1
                    print(
                        f"seed {seed}, {kind}, ranges of {least}: {type(e).__name__}: {str(e)[:600]}",
                        flush=True,
                    )
    print(f"{count} random loops on {len(loops.KINDS)} kinds: {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
