"""Random loops over mesh points in any number: `python -m tests.soak_meshloops 2000`.

python -m tests.soak_meshloops 2000 500        # from number 500 on
python -m tests.soak_meshloops 2000 0 3        # on one process, and divided over 3 (threads) in all layouts
"""

import sys

import numpy as np

import mirabelle as mb
from mirabelle.backends.host import meshloops
from tests import test_meshdata_loops as loops


def divided(count: int, first: int, ranks: int) -> int:
    """Loops, statements one after the other, and programs on random meshes and spaces, with the constructor of
    arrays swapped."""
    from pathlib import Path

    sys.path[:0] = [str(Path(__file__).parent)]
    import test_meshdata_shared as shared

    failed = 0
    for seed in range(first, first + count):
        for kind in ("HostArray", "RefArray"):
            try:
                shared.one_of_all(seed, kind, ranks)
                for parted in (False, True):
                    shared.one_after_the_other(seed, kind, ranks, parted)
                if kind == "HostArray":
                    shared.of_a_space(seed, [ranks])
            except Exception as e:
                failed += 1
                print(f"seed {seed}, {kind}: {type(e).__name__}: {str(e)[:600]}", flush=True)
    print(f"{count} random loops and programs over {ranks} processes: {failed} failed")
    return bool(failed)


def main(count: int, first: int = 0, ranks: int = 0) -> int:
    if ranks:
        return divided(count, first, ranks)
    failed = 0
    for seed in range(first, first + count):
        for kind in loops.KINDS:
            for least in (1, 10**9):
                meshloops.LEAST_POINTS, meshloops.MOST_LEFT = least, seed % 2
                mb.settings.num_threads = 2 + seed % 4
                rng = np.random.default_rng(seed)
                in_columns = seed % 3 == 0
                made = loops.random_column_loop(rng) if in_columns else loops.random_loop(rng, kind)
                points, kernel, accesses = made
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
