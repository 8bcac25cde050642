"""Random programs as libraries: `python -m tests.soak_ahead 400 --seed 0`.

Each program of tests/randomprograms.py that can be built is called on one thread and on two, and compared
with the program. What differs is printed with its number; so are how many were built, refused and left out.
"""

from __future__ import annotations

import argparse
import collections
import sys
import warnings
from pathlib import Path


def main() -> int:
    sys.path.insert(0, str(Path(__file__).parent))
    from ahead import tried

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int, nargs="?", default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    came: collections.Counter[str] = collections.Counter()
    wrong = 0
    for number in range(given.seed, given.seed + given.count):
        what, differences = tried(number)
        came[what] += 1
        if differences:
            wrong += 1
            print(f"program {number}: {differences}", flush=True)
    print(f"{given.count} programs, {wrong} differ; {dict(came)}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
