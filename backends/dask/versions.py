"""Do the workers run what the notebook runs? Programs are shipped as bytecode, and arrays by what they are."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from mirabelle.dispatch.errors import CommunicationError


def compare(client: Any, workers: Sequence[str]) -> None:
    """Raise where a worker has another Python, mirabelle or NumPy than we have."""
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    # By a way that needs nothing unpickled: another Python could not read our question.
    theirs = client.get_versions(check=False)["workers"]
    other = {
        w: ".".join(theirs[w]["host"]["python"].split(".")[:2]) for w in workers if theirs.get(w) is not None
    }
    _same("Python", python, other, "Start the workers with the Python of the notebook.")
    mine = installed()
    found = client.run(shipped(installed), workers=list(workers))
    _same(
        "mirabelle",
        mine["mirabelle"],
        {w: found[w]["mirabelle"] for w in workers},
        "Install the same there: client.register_plugin(distributed.PipInstall(['mirabelle==...'])).",
    )
    _same(
        "NumPy",
        mine["numpy"].split(".")[0],
        {w: (found[w]["numpy"] or "").split(".")[0] for w in workers},
        "Install the same there.",
    )


def installed() -> dict[str, Any]:
    """The versions here; None for what is not installed."""
    import importlib

    found: dict[str, Any] = {}
    for package in ("mirabelle", "numpy"):
        try:
            found[package] = importlib.import_module(package).__version__
        except ImportError:
            found[package] = None
    return found


def shipped(f: Any) -> Any:
    """A copy of a function that needs no mirabelle where it is unpickled."""
    import types

    copy = types.FunctionType(f.__code__, {"__builtins__": __builtins__}, f.__name__)
    copy.__module__ = "__main__"
    return copy


def _same(what: str, mine: str, theirs: Mapping[str, str | None], cure: str) -> None:
    different = {w: v for w, v in theirs.items() if v != mine}
    if different:
        listed = "; ".join(f"{w} has {v or 'none'}" for w, v in different.items())
        raise CommunicationError(f"The notebook runs {what} {mine}, and not all workers do: {listed}. {cure}")
