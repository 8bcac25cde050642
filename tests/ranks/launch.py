"""Starting Python on several ranks with the MPI that is installed beside it, one such group at a time."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from mirabelle.dispatch.errors import CommunicationError
from mirabelle.launch import find_launcher, surroundings

ROOT = Path(__file__).parents[2]
# What pytest, or a process that is a rank itself, leaves to those it starts, and these must not find.
NOT_THEIRS = ("PYTEST", "MIRABELLE", "PMI", "PMIX", "OMPI_COMM", "HYDRA")


def missing() -> str | None:
    """Why no ranks can be started here; None if they can."""
    if importlib.util.find_spec("mpi4py") is None:
        return "mpi4py is not installed"
    try:
        find_launcher()
    except CommunicationError as e:
        return str(e)
    return None


def command(ranks: int, *arguments: str) -> list[str]:
    """Python with these arguments on so many ranks."""
    return find_launcher().line(ranks, [sys.executable, *arguments])


def environment(ranks: int, **settings: str) -> dict[str, str]:
    """What the ranks find in their environment: one thread each, and these settings."""
    found = {
        k: v
        for k, v in surroundings(find_launcher(), ranks, 1).items()
        if not k.startswith(NOT_THEIRS) or k == "MIRABELLE_TESTS_CACHE"
    }
    found |= {f"MIRABELLE_{k.upper()}": v for k, v in settings.items()}
    ours = [str(ROOT), str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
    found["PYTHONPATH"] = os.pathsep.join(ours)
    return found


def run(ranks: int, *arguments: str, timeout: float = 300, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run Python on so many ranks, to its end; what all of them said is text."""
    with alone():
        return subprocess.run(
            command(ranks, *arguments),
            cwd=ROOT,
            env=environment(ranks, **settings),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Within the block, no other of the processes that run these tests starts ranks.

    (Three ranks wait for each other: two groups of them on the same cores take more than twice as long.)
    """
    folder = os.environ.get("MIRABELLE_TESTS_CACHE", tempfile.gettempdir())
    lock = Path(folder) / "ranks.lock"
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
            break
        except FileExistsError:
            time.sleep(0.1)
    try:
        yield
    finally:
        lock.unlink()
