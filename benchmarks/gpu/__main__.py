"""`python -m benchmarks.gpu PART FOLDER [tiny] [resume]`: measure one part in this process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from benchmarks.gpu import run_here

if __name__ == "__main__":
    part, folder, *words = sys.argv[1:]
    run_here(part, Path(folder), "tiny" in words, "resume" in words)
    # Threads and streams of the libraries do not hold the process up, nor can they fail at its end.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
