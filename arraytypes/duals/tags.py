"""Tags: which differentiation a dual number belongs to.

Derivatives nest: inside `derivative(f, x)`, f may call `derivative` again. Each call has a tag of its own, and
a later tag is an inner one, so numbers of one differentiation are constants for another, and never add up with
it.
"""

from __future__ import annotations

import itertools
import os
import sys

_count = itertools.count(1)


class Tag:
    """One differentiation: open while its function runs. Larger `order`: further inside."""

    __slots__ = ("budget", "call", "open", "order")

    def __init__(self, call: str | tuple[str, str, int], order: int | None = None) -> None:
        # What asked for it, and where: a name, or (name, file, line).
        self.call = call
        self.order = next(_count) if order is None else order
        self.open = True
        # How many bytes the partials of an array may take before fewer directions at a time are better.
        self.budget: int | None = None

    def __repr__(self) -> str:
        if isinstance(self.call, str):
            return self.call
        name, file, line = self.call
        return f"{name} in {os.path.basename(file)}:{line}"

    def __enter__(self) -> Tag:
        return self

    def __exit__(self, *problem: object) -> None:
        self.open = False


# Of dual numbers that a user makes by hand: outside of every differentiation, and never closed.
FREE = Tag("mb.types.Dual", 0)


# Whose frames are no lines of a user.
PACKAGES = ("mirabelle.arraytypes.", "mirabelle.dispatch.")


def tag_of_call(name: str) -> Tag:
    """A new tag, which says the line of the user that asked for the derivative."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(PACKAGES):
        frame = frame.f_back
    return Tag((name, frame.f_code.co_filename, frame.f_lineno))
