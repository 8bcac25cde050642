"""Where a function that is captured for any size reads the shapes of its arrays."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from mirabelle.arraytypes import shapereads
from mirabelle.arraytypes.programs.errors import is_ours

# Through these of our own functions a shape is only passed on to whoever asks.
_PASSED_ON = frozenset(("shape", "size", "nbytes", "__len__", "__iter__", "__call__", "ndim"))


class Reads:
    """Where a function reads shapes: `line` is the first line that does."""

    __slots__ = ("line",)

    def __init__(self) -> None:
        self.line: Any = None

    def note(self) -> None:
        """A shape is read: by the function that is captured, or by one of ours for its own purposes?"""
        if self.line is not None:
            return
        frame: Any = sys._getframe(2)
        while frame is not None:
            code = frame.f_code
            if not is_ours(code.co_filename):
                self.line = code.co_filename, frame.f_lineno
                return
            if code.co_name not in _PASSED_ON:
                return
            frame = frame.f_back


@contextlib.contextmanager
def reading(wanted: bool = True) -> Iterator[Reads]:
    """Within the block, it is written down where the function that is captured reads shapes."""
    made = Reads()
    before, shapereads.current = shapereads.current, made if wanted else None
    try:
        yield made
    finally:
        shapereads.current = before


__all__ = ["Reads", "reading"]
