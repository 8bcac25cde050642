"""`python -m benchmarks.distributed [FOLDER]`: draw the figure of the results in a folder."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks._measure import RESULTS
from benchmarks.distributed import _drawing

if __name__ == "__main__":
    for path in _drawing.draw(Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS):
        print(path)
