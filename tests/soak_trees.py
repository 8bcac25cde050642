"""Random axis trees against a walk through them: `python -m tests.soak_trees 3000`."""

import sys
import time

import numpy as np

from tests.meshtrees import check, random_tree


def main(many: int, first: int = 0) -> None:
    """Check so many trees; at the first that is wrong its seed is said."""
    entries, begun = 0, time.process_time()
    for seed in range(first, first + many):
        try:
            tree, stored = random_tree(np.random.default_rng(seed), depth=1 + seed % 4)
            check(tree, stored)
        except Exception:
            print(f"seed {seed}")
            raise
        entries += len(stored)
    print(f"{many} trees, {entries} entries, {time.process_time() - begun:.1f} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:] or ["3000"]))
