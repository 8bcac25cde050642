"""`python -m tests.exits`: processes that end in all ways, on a busy machine, with nothing compiled yet.

python -m tests.exits --runs 300
python -m tests.exits --first 17 --runs 1 --show   # one run again, by its number
python -m tests.exits --first 1300 --runs 700 --store   # and benchmarks/results/exits.json says what came of it

Every run is a process of its own with a cache of its own. What it does and how it ends is drawn by its number;
the moment of an interrupt is not. Each end that is not clean (a signal, a fatal error, a message of an
interpreter that is taken down, a process that hangs or leaves a helper behind) is counted and kept in the log.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]

BEGIN = """
import atexit, gc, os, signal, sys, threading, time
import numpy as np
import mirabelle as mb
rng = np.random.default_rng(0)
x = mb.HostArray(rng.random(200_000) + 1)
"""

WORK = {
    "compiled": """
f = mb.compile(lambda x: mb.sqrt(x) * 2 + mb.sin(x))
g = mb.compile(lambda x: mb.sum(mb.exp(-x) * mb.cos(x)))
h = mb.compile(lambda x: mb.sum((x[1:] - x[:-1]) ** 2) / mb.max(x))
k = mb.compile(lambda x: mb.mean(mb.tanh(mb.tanh(x * 0.5) + x / 3.0) * x))
for _ in range(4):
    found = float(mb.sum(f(x))), float(g(x)), float(h(x)), float(k(x))
""",
    "hot": """
f = mb.compile(lambda x: mb.sum(mb.sqrt(x) * 2 + x * x))
for _ in range(2000):
    f(x)
""",
    "eager": """
for f in (mb.sin, mb.cos, mb.exp, mb.log, mb.sqrt, mb.tanh):
    for _ in range(3):
        mb.materialize(f(x + 1) * 2 + x)
        float(mb.sum(f(x) * x))
""",
    "gradient": """
ws = [mb.HostArray(rng.normal(size=(3, 3)) / 4) for _ in range(10)]
v = mb.HostArray(rng.random((500, 3)))
def loss(ws):
    h = v
    for k, w in enumerate(ws):
        h = mb.tanh(h @ w * (1 + 0.1 * k)) + h * (0.5 + 0.01 * k)
    return mb.sum(h * h)
found = [float(mb.sum(g)) for g in mb.autodiff.gradient(loss, ws)]
""",
    "threads": """
def call(k):
    f = mb.compile(lambda x: mb.sum(mb.sin(x) * k + x))
    for _ in range(5):
        f(x), mb.materialize(x * 2 + k)
callers = [threading.Thread(target=call, args=(k,)) for k in range(3)]
for c in callers:
    c.start()
""",
    "daemons": """
def call():
    f = mb.compile(lambda x: mb.sum(mb.sqrt(x) * 2.5 + x))
    while True:
        f(x)
for _ in range(2):
    threading.Thread(target=call, daemon=True).start()
time.sleep(0.3)
""",
    "forks": """
f = mb.compile(lambda x: mb.sum(mb.sin(x) * 2 + x))
for _ in range(3):
    f(x)
for k in range(3):
    child = os.fork()
    if not child:
        f(x), mb.materialize(mb.cos(x) * k + 1)
        sys.exit(0)
    f(x)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the child"
""",
}

# How it ends, and the exit status that this has.
ENDS = {
    "falls off": ("", 0),
    "collects": ("x = None; gc.collect()", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "exception": ("raise ZeroDivisionError('meant')", 1),
    "os._exit": ("os._exit(4)", 4),
    "at exit": ("atexit.register(lambda: mb.materialize(mb.sin(x) * 3 + x))", 0),
    "in a cycle": (
        "class C: pass\nc = C(); c.c = c; c.x = x * 2; c.f = mb.compile(lambda x: x + 1); c.f(x)",
        0,
    ),
    "interrupt": ("", None),
}

# What a library of C or the interpreter says of a process that they end.
FATAL = ("Fatal Python", "corrupted", "Segmentation", "double free", "malloc(", "free(): ")
# What Python says that is interrupted while it starts, before a line of the program (it imports `site`).
STARTING = "Fatal Python error: init_"


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser("python -m tests.exits", description=__doc__.splitlines()[0])
    found.add_argument("--runs", type=int, default=300)
    found.add_argument("--first", type=int, default=0, help="the number of the first run")
    found.add_argument("--at-once", type=int, default=2, help="so many runs at the same time")
    found.add_argument(
        "--load", type=int, default=os.cpu_count() or 1, help="so many processes only keep it busy"
    )
    found.add_argument("--log", type=Path, default=Path("exits.log"))
    found.add_argument("--show", action="store_true", help="print the programs")
    found.add_argument("--store", action="store_true", help="write benchmarks/results/exits.json")
    return found


def program(number: int) -> tuple[str, str, str, dict[str, str]]:
    """What a run does, how it ends, its source, and its settings."""
    dice = random.Random(number)
    work, end = dice.choice(list(WORK)), dice.choice(list(ENDS))
    settings = {
        "NUM_THREADS": dice.choice(["1", "2", "2", "3"]),
        "COMPILER": dice.choice(["process", "process", "process", "thread", "inline"]),
    }
    source = BEGIN + ("gc.disable()\n" if dice.random() < 0.3 else "") + WORK[work]
    return work, end, source + ENDS[end][0], settings


def run(number: int, show: bool = False) -> dict[str, object] | None:
    """One run: None if it ended cleanly, or what happened."""
    work, end, source, settings = program(number)
    if show:
        print(source)
    with tempfile.TemporaryDirectory() as folder:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("MIRABELLE_")}
        environment |= {f"MIRABELLE_{k}": v for k, v in settings.items()}
        # (A library's own threads would only add to the load.)
        environment |= {"MIRABELLE_CACHE_DIR": folder, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-c", source],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        hung = False
        try:
            if end == "interrupt":
                time.sleep(random.random() * 4)
                process.send_signal(signal.SIGINT)
            error = process.communicate(timeout=180)[1]
        except subprocess.TimeoutExpired:
            hung = True
            process.send_signal(signal.SIGABRT)  # (faulthandler says where)
            error = process.communicate()[1]
        left = survivors(process.pid)
    status = process.returncode
    if clean(end, status, error) and not hung and not left:
        return None
    return {
        "run": number, "work": work, "end": end, **settings, "status": status, "hung": hung, "left": left,
        "error": error[-4000:],
    }  # fmt: skip


def clean(end: str, status: int, error: str) -> bool:
    """Are the exit status and what was said on the way those of a process that was to end so?"""
    expected = ENDS[end][1]
    if expected is None:
        # (An interrupt may come before Python looks at signals, or after the program.)
        if status not in (0, 1, 130, -signal.SIGINT):
            return False
        if "KeyboardInterrupt" in error:
            error = error.replace(STARTING, "")
    elif status != expected:
        return False
    return not any(w in error for w in FATAL)


def survivors(session: int) -> int:
    """How many processes of a session are left, some time after its leader ended; they are killed."""
    until = time.monotonic() + 30
    while (left := members(session)) and time.monotonic() < until:
        time.sleep(0.05)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return len(left)


def members(session: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            found.append(int(entry.name))
    return found


def store(given: argparse.Namespace, unclean: int, seconds: float) -> None:
    """Write what came of the runs, with the log of those that were not clean."""
    sys.path.insert(0, str(ROOT))
    from benchmarks._measure import store

    kept = [json.loads(line) for line in given.log.read_text().splitlines()]
    said = {"first": given.first, "runs": given.runs, "unclean": unclean, "seconds": seconds}
    store("exits", {**said, "at once": given.at_once, "load": given.load, "log": kept})


def main() -> int:
    from concurrent.futures import ThreadPoolExecutor

    given = parser().parse_args()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(given.load)]
    began, unclean = time.monotonic(), 0
    numbers = range(given.first, given.first + given.runs)
    try:
        with ThreadPoolExecutor(given.at_once) as pool, given.log.open("a") as log:
            for number, found in zip(numbers, pool.map(lambda n: run(n, given.show), numbers), strict=True):
                if found is not None:
                    unclean += 1
                    print(json.dumps(found), file=log, flush=True)
                    print(f"run {number}: {found['work']}, {found['end']}: {found['status']}", flush=True)
                if (number - given.first) % 100 == 99:
                    print(f"{number - given.first + 1} runs, {unclean} unclean", flush=True)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    seconds = round(time.monotonic() - began, 1)
    print(json.dumps({"runs": given.runs, "unclean": unclean, "seconds": seconds, "log": str(given.log)}))
    if given.store:
        store(given, unclean, seconds)
    return unclean > 0


if __name__ == "__main__":
    sys.exit(main())
