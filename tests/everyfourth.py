"""`python -m tests.everyfourth --seconds N`: what CI runs at every fourth commit, in the time that is left.

`make release-check` takes longer than CI has, so its parts take turns, by the number of commits: the wheel with
some of its tests and with the others, the site, and each Python. `.ci/run` keeps a sixth of its time for one. A
part that fails makes the exit status 1. What says nothing about the commit is told and is no failure: a history
that is not there, a package index that does not answer, a machine on which a part does not end in time.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.installed import NOT_TRIED, PART, PYTHONS, ROOT, THIRD

EVERY = 4
# A part is not begun where less time is left, and is ended where it takes longer than a part may.
LEAST_S, MOST_S = 120.0, 480.0


@dataclass(frozen=True)
class Part:
    """A command, and one before it that only fetches what the command needs."""

    command: Sequence[str]
    before: Sequence[str] = ()


INSTALLED = (sys.executable, "-m", "tests.installed")
SUITE, *OTHERS = THIRD.removeprefix(PART).split()
PARTS = {
    "wheel": Part((*INSTALLED, "wheel", "--part")),
    "the wheel's other tests": Part((*INSTALLED, "wheel", "--tests", *OTHERS)),
    "the wheel's suite": Part((*INSTALLED, "wheel", "--tests", SUITE)),
    "site": Part((".venv-site/bin/python", "-m", "docs.site", "--quick"), ("make", ".venv-site/.made")),
    **{f"Python {name}": Part((*INSTALLED, "versions", "--part", "--only", name)) for name in PYTHONS},
}


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m tests.everyfourth", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=MOST_S, help="the time that is left")
    parser.add_argument("--part", choices=PARTS, help="this one, whatever the number of commits")
    asked = parser.parse_args(words)
    name = asked.part or turn(*commits(ROOT))
    if name is None:
        return 0
    if asked.seconds < LEAST_S:
        print(f"{name}: not run, {asked.seconds:.0f} s are left and it may take more.", flush=True)
        return 0
    return tried(name, PARTS[name], min(asked.seconds, MOST_S))


def commits(root: Path) -> tuple[int, str]:
    """How many commits there are, or 0 and why they are not known."""
    told = []
    for words in ("rev-parse --is-shallow-repository", "rev-list --count HEAD"):
        try:
            ran = subprocess.run(
                ["git", *words.split()], cwd=root, capture_output=True, text=True, timeout=30, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return 0, "this is no checkout of git's"
        told.append(ran.stdout.strip())
    return (0, "this clone is shallow") if told[0] != "false" else (int(told[1]), "")


def turn(count: int, unknown: str = "") -> str | None:
    """The part whose turn it is after so many commits, and says so."""
    if unknown:
        print(f"Not run: commits cannot be counted, {unknown}.", flush=True)
        return None
    if count % EVERY:
        print(f"Commit {count}: not one of every fourth.", flush=True)
        return None
    name = list(PARTS)[count // EVERY % len(PARTS)]
    print(f"Commit {count}, one of every fourth: the turn of {name}.", flush=True)
    return name


def tried(name: str, part: Part, seconds: float) -> int:
    """1 if the part failed, else 0; says what came of it."""
    began = time.monotonic()
    status: int | None = 0
    for command in filter(None, (part.before, part.command)):
        status = run(command, seconds - (time.monotonic() - began))
        if status and command == part.before:
            status = NOT_TRIED
        if status != 0:
            break
    said = {
        0: "passed",
        NOT_TRIED: "not tried, what it needs could not be installed: no failure",
        None: "did not end in time, which is no failure; `make release-check` has no limit",
    }
    print(f"{name}: {said.get(status, 'failed')} ({time.monotonic() - began:.0f} s)", flush=True)
    return int(status not in said)


def run(command: Sequence[str], seconds: float) -> int | None:
    """The exit status of a command in the checkout; None if it, and all that it began, had to be ended."""
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    try:
        return process.wait(max(seconds, 0.0))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None


if __name__ == "__main__":
    sys.exit(main())
