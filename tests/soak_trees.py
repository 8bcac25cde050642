"""Random axis trees, and arrays over them, against a walk in plain Python: `python -m tests.soak_trees 3000`.

python -m tests.soak_trees 3000                         # layouts, and arrays on the host
python -m tests.soak_trees 3000 0 HostArray RefArray CuArray    # (without a card: MIRABELLE_CUDA=simulated)
"""

import sys
import time

import numpy as np

import mirabelle as mb
from tests.meshtrees import check, check_array, random_tree


def main(many: int, first: int = 0, *kinds: str) -> None:
    """Check so many trees; at the first that is wrong its seed is said."""
    entries, begun = 0, time.process_time()
    for seed in range(first, first + many):
        try:
            rng = np.random.default_rng(seed)
            tree, stored = random_tree(rng, depth=1 + seed % 4)
            check(tree, stored)
            for kind in kinds or ("HostArray",):
                check_array(np.random.default_rng(seed), tree, stored, getattr(mb, kind))
        except Exception:
            print(f"seed {seed}")
            raise
        entries += len(stored)
    seconds = time.process_time() - begun
    print(f"{many} trees, {entries} entries, on {', '.join(kinds or ('HostArray',))}: {seconds:.1f} s")


if __name__ == "__main__":
    many, *rest = sys.argv[1:] or ["3000"]
    main(int(many), *([int(rest[0]), *rest[1:]] if rest else []))
