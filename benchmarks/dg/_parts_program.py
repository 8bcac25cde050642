"""What a process holds of a mesh that was divided beforehand: FOLDER ANSWER, run by `mirabelle run`."""

from __future__ import annotations

import json
import sys
import time
import tracemalloc
from pathlib import Path

import mirabelle as mb
from mirabelle import dg

folder, answer = sys.argv[1:]
comm = mb.distributed.communicator()
comm.barrier()
tracemalloc.start()
began = time.perf_counter()
mesh = dg.read_parts(folder)
seconds = time.perf_counter() - began
held, peak = tracemalloc.get_traced_memory()
each = comm.allgather_object(
    {"cells": len(mesh.part.mesh), "held_bytes": held, "peak_bytes": peak, "seconds": seconds}
)
if comm.rank == 0:
    Path(answer).write_text(json.dumps(each))
