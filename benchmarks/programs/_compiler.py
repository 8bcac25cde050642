"""`mb.compile`, or why it is not there, and what a program says of its own making."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

MISSING = "mb.compile is not there yet"


class NotThereError(RuntimeError):
    """There is nothing to compile programs with."""


def compiler() -> Callable[..., Any]:
    """`mb.compile`."""
    import mirabelle as mb

    found: Callable[..., Any] | None = getattr(mb, "compile", None)
    if found is None:
        raise NotThereError(MISSING)
    return found


def settle() -> None:
    """Wait until the compiler in the background has nothing left to do."""
    import time

    from mirabelle.backends.host import kernels

    time.sleep(0.02)  # a loader thread may just be handing a source to the compiler
    kernels.settle()


def phases(compiled: Any) -> Mapping[str, float]:
    """Seconds of each stage of the making of what `mb.compile` gave, over all its programs."""
    found: dict[str, float] = {}
    for program in getattr(compiled, "programs", {}).values():
        for stage, seconds in program.seconds.items():
            found[stage] = found.get(stage, 0.0) + seconds
    return found
