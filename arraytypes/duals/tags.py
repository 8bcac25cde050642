"""Tags: which differentiation a dual number belongs to.

Derivatives nest: inside `derivative(f, x)`, f may call `derivative` again. Each call has a tag of its own, and a later
tag is an inner one, so numbers of one differentiation are constants for another, and never add up with it.
"""

from __future__ import annotations

import itertools
import os
import sys

_count = itertools.count(1)


class Tag:
    """One differentiation: open while its function runs. Larger `order`: further inside."""

    __slots__ = ("call", "open", "order")

    def __init__(self, call: str, order: int | None = None) -> None:
        self.call = call
        self.order = next(_count) if order is None else order
        self.open = True

    def __repr__(self) -> str:
        return self.call

    def __enter__(self) -> Tag:
        return self

    def __exit__(self, *problem: object) -> None:
        self.open = False


# Of dual numbers that a user makes by hand: outside of every differentiation, and never closed.
FREE = Tag("mb.Dual", 0)


def tag_of_call(name: str) -> Tag:
    """A new tag, which says the line of the user that asked for the derivative."""
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith("mirabelle."):
        frame = frame.f_back
    return Tag(f"{name} in {os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}")
