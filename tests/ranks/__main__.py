"""`python -m tests.ranks -n 3 [what pytest takes]`: the shared suite on distributed arrays over 3 processes.

python -m tests.ranks -n 3                              # everything that is parametrised by kinds of arrays
python -m tests.ranks -n 2 tests/test_suite.py --every 7 # every seventh test of one file
python -m tests.ranks -n 2 --cards                      # with parts on real cards, one for each rank
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path


def main() -> int:
    # (`ranks` by itself, because other packages leave a `tests` of theirs beside them)
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]
    from ranks.launch import command, environment
    from ranks.suite import arguments

    parser = argparse.ArgumentParser("python -m tests.ranks", description=__doc__.splitlines()[0])
    parser.add_argument("-n", "--ranks", type=int, default=3)
    parser.add_argument("--cards", action="store_true", help="parts on real cards, one for each rank")
    given, others = parser.parse_known_args()
    settings = {"test_ranks": str(given.ranks)}
    if given.cards:
        settings |= {"test_cards": "1", "cuda": "auto"}
    return subprocess.call(command(given.ranks, *arguments(*others)), env=environment(given.ranks, **settings))


if __name__ == "__main__":
    sys.exit(main())
