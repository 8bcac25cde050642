"""`python -m tests.gpu`: the test-suite on a real card; `--registers`: what its kernels take of one.

python -m tests.gpu                        # the whole suite on the kinds in a card's memory
python -m tests.gpu tests/test_suite.py -x # what else is given goes to pytest
python -m tests.gpu --registers            # compile kernels for four generations of cards; needs none
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def main() -> int:
    # (`gpu` by itself, because other packages leave a `tests` of theirs beside them)
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]
    from gpu.suite import RESULTS, run

    parser = argparse.ArgumentParser(
        "python -m tests.gpu", description=__doc__.splitlines()[0], allow_abbrev=False
    )
    parser.add_argument("--out", type=Path, help="the file of results (default: in benchmarks/results/)")
    parser.add_argument(
        "--seconds", type=float, default=1e9, help="stop after so long, and write what is known"
    )
    parser.add_argument("--simulated", action="store_true", help="on a simulated card, to try this command")
    parser.add_argument("--registers", action="store_true", help="compile kernels instead: needs no card")
    given, others = parser.parse_known_args()
    if given.registers:
        from gpu.registers import write

        return write(given.out or RESULTS / "gpu_registers.json")
    return run(given.out or RESULTS / "gpu_suite.json", given.seconds, given.simulated, others)


if __name__ == "__main__":
    sys.exit(main())
