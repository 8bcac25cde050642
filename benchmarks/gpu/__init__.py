"""What `CuArray` costs and gains on an NVIDIA GPU, beside CuPy, JAX, torch and Numba-CUDA.

`python -m benchmarks gpu [part ...] [--out DIR] [--tiny]` runs the parts, each in a process of its own:
an illegal access in one contender, or a kernel that never returns, ends that process alone, and the
next one goes on without the contender. Results are stored at each step.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PARTS = {
    "bandwidth": "fused expressions of 2^26 elements as fractions of a copy's bandwidth",
    "launch": "microseconds a statement on 1024 elements",
    "graphs": "fifty small kernels, launched and as one CUDA graph",
    "cold": "an expression nobody has compiled yet, in a first and in a second process",
    "reductions": "reductions and scans beside CuPy's, JAX's and torch's",
    "ranges": "evenly spaced numbers in expressions beside CuPy's arange",
    "elementloops": "loops over elements as kernels, and brought to the host",
    "npkernels": "the NumPy programs of npkernels beside CuPy",
    "paper": "the Julia paper's figures 1 to 3 beside CuPy and JAX",
}
RESULTS = Path(__file__).parent.parent / "results"
PROCESSES = 6  # at most, for one part
ENVIRONMENT = {
    "PYTHONUNBUFFERED": "1",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "JAX_ENABLE_X64": "1",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    # Inductor compiles in the process itself: starting its workers takes longer than they save here.
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
}


def run(parts: list[str], out: str = "", tiny: bool = False) -> int:
    """Run parts (all by default), each in its own processes; 1 if one of them did not come to its end."""
    from benchmarks.gpu._record import Record, message, say

    folder = Path(out or RESULTS).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    lines = []
    for part in parts or PARTS:
        say(f"== {part}: {PARTS[part]}")
        start = time.perf_counter()
        path = Record(part, folder).path
        earlier = path.read_text() if path.exists() else None
        path.unlink(missing_ok=True)
        try:
            ended = _run_apart(part, folder, tiny)
        except Exception as error:  # the part cannot even be imported
            say(message(error))
            ended = False
        took = time.perf_counter() - start
        if not path.exists():  # it could not even begin: results of an earlier day stay
            if earlier is not None:
                path.write_text(earlier)
            lines.append(f"{part}: NOT FINISHED")
            continue
        record = Record.stored(part, folder)
        try:
            importlib.import_module(f"benchmarks.gpu.{part}").report(record)
            record.save()
        except Exception as error:
            say(f"The table of {part} failed; the cases are stored. {message(error)}")
        failures = sum(len(c["failures"]) + ("failed" in c) for c in record.cases)
        met = record.content.get("summary", {}).get("met")
        lines.append(
            f"{part}: {took:.0f} s, {len(record.cases)} cases, {failures} failures, met: {met}"
            + ("" if ended else ", NOT FINISHED")
        )
    say("\n".join(lines))
    say(f"All: {time.perf_counter() - started:.0f} s. Results: {os.path.relpath(folder)}/gpu_*.json")
    return int(any("NOT FINISHED" in line for line in lines))


def _run_apart(part: str, folder: Path, tiny: bool) -> bool:
    """One part, in as many processes as it takes within its time; whether it came to its end."""
    from benchmarks.gpu._record import AGAIN, say

    end = time.monotonic() + importlib.import_module(f"benchmarks.gpu.{part}").HARD_LIMIT_S
    command = [sys.executable, "-m", "benchmarks.gpu", part, str(folder)] + ["tiny"] * tiny
    for attempt in range(PROCESSES):
        left = end - time.monotonic()
        if left < 1:
            break
        status = _status(command + ["resume"] * (attempt > 0), left)
        if status is None:
            say(f"{part}: out of time; what it found is stored.")
            return False
        if status == 0:
            return True
        if status > 0 and status != AGAIN:  # it could not even begin, or a mistake of the benchmark
            return False
    return False


def _status(command: list[str], limit_s: float) -> int | None:
    """The exit status of a process; None if it was ended, with all that it started, at the limit."""
    with subprocess.Popen(command, env=os.environ | ENVIRONMENT, process_group=0) as child:
        try:
            return child.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)


def run_here(part: str, folder: Path, tiny: bool, resume: bool) -> None:
    """Measure one part in this process."""
    from benchmarks.gpu._card import Card
    from benchmarks.gpu._record import Recorder

    module = importlib.import_module(f"benchmarks.gpu.{part}")
    recorder = Recorder(part, folder, Card(tiny), resume, module.SOFT_LIMIT_S)
    module.measure(recorder)
    recorder.content |= {"finished": True, "running": None}
    recorder.save()
