"""Starting ranks, and measuring on them.

`on_ranks` starts mpiexec, whose processes call one function of this package (`python -m
benchmarks.distributed._ranks`); what it returns on rank 0 comes back as JSON.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import inspect
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks._measure import Timing

# What the libraries read when they are imported.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "MIRABELLE_NUM_THREADS")
# Open MPI asks to be told that it may run as root, and more processes than there are cores.
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def missing() -> str:
    """What has to be installed before ranks can be started, or nothing."""
    if importlib.util.find_spec("mpi4py") is None or _mpiexec(sys.executable) is None:
        return "The ranks of this benchmark talk by MPI: pip install mpi4py mpich"
    return ""


def _mpiexec(python: str) -> str | None:
    """The mpiexec of a Python's environment, or else that of the system."""
    beside = Path(python).parent / "mpiexec"
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def on_ranks(
    ranks: int, function: str, python: str = "", threads: int = 1, timeout_s: float = 300.0, **options: Any
) -> Any:
    """What `function` ("module:name" in this package) gives on rank 0 of so many, called with `options`.

    Without ranks (0) it is one process that is no rank. Of a generator it is what came last, also if it
    did not come to its end.
    """
    python = python or sys.executable
    with tempfile.TemporaryDirectory(prefix="mirabelle-benchmarks-") as folder:
        answer = Path(folder) / "answer.json"
        command = [python, "-m", __name__, function, str(answer), json.dumps(options)]
        if ranks:
            command = [str(_mpiexec(python)), "-n", str(ranks), *command]
        environment = os.environ | OPEN_MPI | {name: str(threads) for name in THREADS}
        root = str(Path(__file__).parents[2])
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            said, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            said = f"It was ended after {timeout_s:g} s."
        finally:
            process.terminate()  # (a launcher takes its ranks along)
            process.wait()
        if answer.exists():
            if process.returncode:
                print(f"{function} did not come to its end: {said[-500:]}", file=sys.stderr)
            return json.loads(answer.read_text())
        raise RuntimeError(f"{function} failed on {ranks} rank(s):\n{said[-4000:]}")


# On a rank


def own_core(rank: int, ranks: int) -> None:
    """A core for each rank: processes that move about disturb each other."""
    if hasattr(os, "sched_setaffinity") and ranks > 1:
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) >= ranks:
            os.sched_setaffinity(0, {cores[rank]})


def take_turns(
    comm: Any, statements: Mapping[str, tuple[str, dict[str, Any]]], rounds: int, round_s: float
) -> dict[str, Timing]:
    """Short statements, all ranks together; seconds a call, of the slowest rank in each round.

    All ranks run each as often, because statements may send messages.
    """
    timers = {n: timeit.Timer(s, globals=scope) for n, (s, scope) in statements.items()}
    numbers: dict[str, int] = {}
    for name, timer in timers.items():
        number = 1
        while True:
            comm.barrier()
            took = comm.bcast_object(timer.timeit(number))
            if took >= round_s / 4 or number > 1 << 20:
                break
            number *= 2
        numbers[name] = max(1, int(number * round_s / took))
    times: dict[str, list[float]] = {name: [] for name in timers}
    names = list(timers)
    for r in range(rounds):
        shift = r % len(names)
        for name in names[shift:] + names[:shift]:
            comm.barrier()
            times[name].append(timers[name].timeit(numbers[name]) / numbers[name])
    return {name: Timing.of(_slowest(comm, t)) for name, t in times.items()}


def time_calls(
    prepare: Callable[[], Any],
    call: Callable[[Any], Any],
    budget_s: float,
    barrier: Callable[[], object] = lambda: None,
    agree: Callable[[Any], Any] = lambda x: x,
    gather: Callable[[Any], list[Any]] = lambda x: [x],
) -> dict[str, float]:
    """Seconds of one call, after a warm one, what it needs being prepared outside the clock.

    With several processes: `agree` gives rank 0's object, `gather` those of all.
    """
    call(prepare())
    arguments = prepare()
    barrier()
    start = time.perf_counter()
    result = call(arguments)
    once = agree(time.perf_counter() - start)
    del result
    times = []
    gc.collect()
    gc.disable()
    try:
        # (What takes long is little disturbed.)
        for _ in range(max(3 if once < 1.0 else 1, min(25, int(budget_s / once)))):
            arguments = prepare()
            barrier()
            start = time.perf_counter()
            result = call(arguments)
            times.append(time.perf_counter() - start)
            del result
    finally:
        gc.enable()
    return Timing.of([max(t) for t in zip(*gather(times), strict=True)]).as_json()


def _slowest(comm: Any, times: list[float]) -> list[float]:
    return [max(t) for t in zip(*comm.allgather_object(times), strict=True)]


def settled() -> None:
    """Wait for what compiles in the background."""
    from mirabelle.backends.host import kernels

    time.sleep(0.02)
    kernels.settle()


def main(function: str, answer: str, options: str) -> None:
    module, _, name = function.partition(":")
    given = getattr(importlib.import_module(f"benchmarks.distributed.{module}"), name)(**json.loads(options))
    for found in given if inspect.isgenerator(given) else [given]:
        if found is not None:
            fresh = Path(answer + ".new")
            fresh.write_text(json.dumps(found, default=float))
            fresh.replace(answer)


if __name__ == "__main__":
    main(*sys.argv[1:4])
