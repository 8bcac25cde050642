"""The test-suite on a real card, and a file that says on which, when, with what, and what came of it."""

from __future__ import annotations

import datetime
import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
# Processes that share the card: each has a context of half a gigabyte.
MOST_PROCESSES = 12
# Failures that the file lists; their number it always has.
LISTED = 200
DISTRIBUTIONS = (
    "numpy", "numba", "llvmlite", "numba-cuda", "cupy-cuda13x", "cupy-cuda12x", "cuda-toolkit",
    "plum-dispatch", "pytest", "hypothesis",
)  # fmt: skip
# The compilers' and CuPy's own warnings are not ours to fail for.
WARNINGS = [
    "error",
    *(f"ignore:::{package}(\\..*)?" for package in ("cupy", "cupyx", "numba", "numba_cuda", "cuda")),
]

# In a process of its own: one that runs no tests should have no context on the card.
_ASK = """
import json, cupy
r = cupy.cuda.runtime
cards = []
for i in range(r.getDeviceCount()):
    p = r.getDeviceProperties(i)
    cards.append({"name": p["name"].decode(), "capability": f"{p['major']}.{p['minor']}",
                  "bytes": p["totalGlobalMem"], "multiprocessors": p["multiProcessorCount"]})
print(json.dumps({"cards": cards, "driver CUDA": r.driverGetVersion(), "CuPy's CUDA": r.runtimeGetVersion()}))
"""


def machine() -> dict:
    """The cards, the driver, and the versions of what the tests ran with."""
    done = subprocess.run([sys.executable, "-c", _ASK], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"No card can be used: {done.stderr.strip().splitlines()[-1]}")
    found = json.loads(done.stdout)
    try:
        asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        found["driver"] = said.strip().splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        found["driver"] = "unknown"
    return found | {"versions": versions(), "system": platform.platform()}


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in DISTRIBUTIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


class Recorder:
    """A plugin that counts outcomes, and keeps what failed with the line that says why."""

    def __init__(self, limit_s: float) -> None:
        self.outcomes: dict[str, str] = {}
        self.reasons: dict[str, str] = {}
        self.not_collected: dict[str, str] = {}
        self.end = time.monotonic() + limit_s
        self.stopped = False
        self.session = None

    def pytest_sessionstart(self, session):
        self.session = session

    def pytest_collectreport(self, report):
        if report.failed:
            self.not_collected[report.nodeid] = reason(report)

    def pytest_runtest_logreport(self, report):
        known = self.outcomes.get(report.nodeid)
        if report.failed:
            self.outcomes[report.nodeid] = "failed"
            # (the first reason is the cause: a worker that ended with its card comes second)
            self.reasons.setdefault(report.nodeid, reason(report))
        elif report.skipped:
            self.outcomes[report.nodeid] = "xfailed" if hasattr(report, "wasxfail") else "skipped"
        elif report.when == "call" and known != "failed":
            self.outcomes[report.nodeid] = "passed"
        if time.monotonic() > self.end and not self.stopped:
            self.stopped = True
            self.session.shouldstop = "the time given with --seconds is over"

    def count(self, outcome: str) -> int:
        return sum(o == outcome for o in self.outcomes.values())


def reason(report) -> str:
    """The line of a failure that says why."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    chosen = (
        lines[0] if crash is not None and lines else next((x for x in reversed(lines) if x[:2] == "E "), "")
    )
    return (chosen or (lines[-1] if lines else "")).removeprefix("E ").strip()[:300]


def run(out: Path, seconds: float, simulated: bool, arguments: list[str]) -> int:
    """Run the tests of the kinds on a card; returns pytest's exit status."""
    os.environ["MIRABELLE_CUDA"] = "simulated" if simulated else "auto"
    os.chdir(ROOT)
    facts = {"cards": "simulated", "versions": versions()} if simulated else machine()
    import pytest

    given = [
        *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)),
        *("-p", "gpu.plugin", "-p", "no:cacheprovider", "-p", "no:benchmark"),
        *("-q", "--tb=short", "--ignore=tests/clients", "--continue-on-collection-errors"),
        *("-o", "filterwarnings=" + "\n".join(WARNINGS)),
    ]
    if importlib.util.find_spec("xdist") and not any(a.startswith("-n") for a in arguments):
        processes = min(os.cpu_count() or 1, MOST_PROCESSES)
        given += ["-n", str(processes), "--max-worker-restart", "100"]
    if not any((ROOT / a.partition("::")[0]).exists() for a in arguments if a[:1] != "-"):
        given.append("tests")
    recorder = Recorder(seconds)
    start = time.perf_counter()
    status = int(pytest.main([*given, *arguments], plugins=[recorder]))
    failed = sorted(name for name, outcome in recorder.outcomes.items() if outcome == "failed")
    found = {
        "benchmark": "the test-suite on a card",
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": facts,
        "arguments": arguments,
        **{o: recorder.count(o) for o in ("passed", "failed", "skipped", "xfailed")},
        "not_collected": recorder.not_collected,
        "complete": not recorder.stopped,
        "seconds": round(time.perf_counter() - start, 1),
        "failures": {name: recorder.reasons[name] for name in failed[:LISTED]},
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{found['passed']} passed, {found['failed']} failed, {found['skipped']} skipped: {out}")
    return status
