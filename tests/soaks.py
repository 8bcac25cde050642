"""`python -m tests.soaks`: all soaks, in pieces side by side, and a file that says what came of them.

python -m tests.soaks --at-once 2                      # all of them: hours of two cores
python -m tests.soaks --only exits programs --store    # and benchmarks/results/soaks.json says what came of it
python -m tests.soaks --seconds 500 --at-once 14       # as many pieces as begin in that time, by turns
python -m tests.soaks --list                           # their commands

Every piece is a command of its own that anybody can repeat. What fails is printed with the end of what it said.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
# Longer than any piece takes on a busy machine.
LONGEST = 3600


@dataclass(frozen=True)
class Soak:
    """What is tried, how often, and the command for a piece of it: from `{first}` on, `{count}` of them."""

    name: str
    command: str
    pieces: int
    count: int

    def commands(self) -> Iterator[str]:
        for k in range(self.pieces):
            first = k * self.count
            yield self.command.format(
                first=first, count=self.count, last=first + self.count, k=k, pieces=self.pieces
            )


PROGRAMS = "tests.soak_programs --first {first} --programs {count}"
MEMORY = "tests.soak_memory --part {k}/{pieces}"
SOAKS = (
    Soak("exits", "tests.exits --first {first} --runs {count} --load 1 --log /dev/stdout", 80, 25),
    Soak("programs", PROGRAMS, 20, 1000),
    Soak("programs, hot on two threads", f"{PROGRAMS} --way hot --threads 2", 10, 200),
    Soak("programs, cold", f"{PROGRAMS} --way cold", 10, 200),
    Soak("programs, an empty cache", f"{PROGRAMS} --way hot --fresh-cache", 8, 25),
    Soak("programs, traced", f"{PROGRAMS} --traced", 10, 200),
    Soak("programs, each pass alone", f"{PROGRAMS} --passes each", 10, 200),
    Soak("programs, RefArray", f"{PROGRAMS} --kind ref", 10, 200),
    Soak("programs, owners checked", f"{PROGRAMS}", 10, 200),
    Soak("memory, host", MEMORY, 16, 0),
    Soak("memory, simulated cards", f"{MEMORY} --kinds cuda --repeats 300", 16, 0),
    Soak("memory, two processes", f"{MEMORY} --kinds dist --ranks 2 --repeats 300", 8, 0),
    Soak("programs over three ranks", "tests.soak --first {first} --programs {count} --ranks 3", 8, 200),
    Soak("divided arrays", "tests.randomdivided {count} --first {first}", 8, 500),
    Soak("compiled over ranks", "tests.compiledprograms --ranks 3 --first {first} --programs {count}", 6, 40),
    Soak("held apart", "mirabelle run -n 3 -m tests.heldapart {first} {last}", 6, 200),
    Soak("single elements", "tests.randomelements {count} --seed {first}", 8, 1000),
    Soak("NumPy programs", "tests.randompython {count} --seed {first}", 8, 250),
    Soak("shapes of programs", "tests.randomshapes {count} --seed {first}", 8, 125),
    Soak("loops over elements", "tests.randomloops {count} --seed {first}", 8, 50),
    Soak("what is outside", "tests.randomoutside {count} --first {first}", 4, 250),
    Soak("libraries", "tests.soak_ahead {count} --seed {first}", 8, 50),
    Soak("loops over meshes", "tests.soak_meshloops {count} {first}", 8, 125),
    Soak("axis trees", "tests.soak_trees {count} {first}", 3, 1000),
)  # fmt: skip
# What some of them have in their environment.
SETTINGS = {
    "programs, owners checked": {"MIRABELLE_CHECK_OWNERS": "1"},
    "loops over meshes": {"MIRABELLE_CUDA": "simulated"},
}


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser("python -m tests.soaks", description=__doc__.splitlines()[0])
    found.add_argument("--only", nargs="+", help="soaks whose names begin so")
    found.add_argument("--at-once", type=int, default=os.cpu_count() or 1, help="pieces at the same time")
    found.add_argument("--seconds", type=float, default=1e9, help="no piece begins after so long")
    found.add_argument("--skip", type=int, default=0, help="leave out so many pieces of each")
    found.add_argument("--list", action="store_true", help="print the commands")
    found.add_argument("--store", action="store_true", help="write benchmarks/results/soaks.json")
    found.add_argument("--out", type=Path, default=None, help="write this file instead")
    return found


def by_turns(soaks: list[Soak], skip: int) -> Iterator[tuple[Soak, str]]:
    """A piece of each, the next piece of each, and so on: what there is time for is of all of them."""
    for row in itertools.zip_longest(*(list(s.commands())[skip:] for s in soaks)):
        yield from ((s, c) for s, c in zip(soaks, row, strict=True) if c is not None)


def run(soak: Soak, command: str, until: float) -> dict[str, Any] | None:
    """A piece: what came of it, or None if it was too late to begin."""
    if time.monotonic() > until:
        return None
    began = time.monotonic()
    environment = os.environ | SETTINGS.get(soak.name, {})
    how: dict[str, Any] = {"cwd": ROOT, "env": environment, "capture_output": True, "text": True}
    try:
        words = [sys.executable, "-m", *shlex.split(command)]
        done = subprocess.run(words, timeout=LONGEST, check=False, **how)
        status, said = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        status, said = -1, "It did not end."
    found = {"soak": soak.name, "command": f"python -m {command}", "status": status}
    found["seconds"] = round(time.monotonic() - began, 1)
    last = said.strip().splitlines()[-1:] or [""]
    print(f"{status:4d} {found['seconds']:8.1f} s  {command}: {last[0][:120]}", flush=True)
    return found | ({"said": said[-6000:]} if status else {"said": last[0][:300]})


def rows(soaks: list[Soak], pieces: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each soak: how much of it was run, and what failed."""
    found = []
    for soak in soaks:
        ours = [p for p in pieces if p["soak"] == soak.name]
        parts = f"{len(ours)} of {soak.pieces} parts" if ours else ""
        found.append({
            "soak": soak.name,
            "command": f"python -m {soak.command}",
            "tried": len(ours) * soak.count if soak.count else parts,
            "failed": [p for p in ours if p["status"]],
            "seconds": round(sum(p["seconds"] for p in ours), 1),
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        })  # fmt: skip
    return found


def written(given: argparse.Namespace, facts: dict[str, Any]) -> None:
    """After each piece, so that whoever stops the command keeps what it found."""
    if given.out:
        given.out.write_text(json.dumps(facts, indent=1))
    elif given.store:
        sys.path.insert(0, str(ROOT))
        from benchmarks._measure import RESULTS, store

        # Other soaks stay as they were found: each row says when, and on what.
        path = RESULTS / "soaks.json"
        before = json.loads(path.read_text())["rows"] if path.exists() else []
        rows = {row["soak"]: row for row in [*before, *facts["rows"]] if row["tried"]}
        facts = facts | {"rows": [rows[s.name] for s in SOAKS if s.name in rows]}
        with contextlib.redirect_stderr(None):
            store("soaks", facts)


def main() -> int:
    given = parser().parse_args()
    soaks = [s for s in SOAKS if not given.only or s.name.startswith(tuple(given.only))]
    if given.list:
        print("\n".join(f"python -m {c}" for s in soaks for c in s.commands()))
        return 0
    began = time.monotonic()
    until, pieces, found = began + given.seconds, [], []
    with ThreadPoolExecutor(given.at_once) as pool:
        for done in as_completed([pool.submit(run, *job, until) for job in by_turns(soaks, given.skip)]):
            if (piece := done.result()) is not None:
                pieces.append(piece)
                found = rows(soaks, pieces)
                seconds = round(time.monotonic() - began, 1)
                written(given, {"at once": given.at_once, "seconds": seconds, "rows": found})
    for row in found:
        print(f"{row['soak']}: {row['tried']}, {len(row['failed'])} pieces failed, {row['seconds']} s")
    return int(any(row["failed"] for row in found))


if __name__ == "__main__":
    sys.exit(main())
