"""Parts picked by a number that nobody has read: `part = x[k]`, where `k` was computed on a card or is
computed in a compiled function.

NumPy reads the number, and the part is a view. Here reading it would wait for the card, or cannot be: the part
holds values that a kernel picks. So a write to one is followed by the other: the parts of an array that is
written are picked again, and what is written to a part is put back.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

# A list of parts is looked through for those that are gone when it has so many.
_MANY = 8


class Followers:
    """What follows the writes to an array. It stands in the place of what makes an array read-only
    (`DenseArray._copy_of`), so that quick ways of writing leave such an array to `assign` and `write_at`.
    """

    __slots__ = ("again", "back", "busy", "parts", "source")

    def __init__(self) -> None:
        # Whose part it is, if it is one, and how its values are picked there, and put back.
        self.source: Any = None
        self.again: Callable[[], Any] | None = None
        self.back: Callable[[Any], None] | None = None
        # Is it being put back?
        self.busy = False
        self.parts: list[weakref.ref[Any]] = []

    def meets(self, x: Any) -> bool:
        """Is an array a part of this one, or this one of it, or both of a third?"""
        if x is self.source or any(r() is x for r in self.parts):
            return True
        other = followers(x)
        return other is not None and self.source is not None and other.source is self.source

    def refresh(self) -> None:
        """Pick the parts again."""
        self.parts = [held for held in self.parts if held() is not None]
        for held in self.parts:
            part = held()
            if part is not None and not part._copy_of.busy:
                part._node = part._copy_of.again()._node
                part._copy_of.refresh()

    def follow(self, x: Any) -> None:
        """`x`, whose followers these are, has been written."""
        self.refresh()
        if self.back is not None and not self.busy:
            self.busy = True
            try:
                self.back(x)
            finally:
                self.busy = False
        if self.back is None and not self.parts:
            del x._copy_of  # (it is written as quickly as before)


def followers(x: Any) -> Followers | None:
    """What follows the writes to an array, if anything does."""
    found = getattr(x, "_copy_of", None)
    return found if type(found) is Followers else None


def follow(x: Any) -> None:
    """`x` has been written: what follows that does so. (What wrote it may have seen to that.)"""
    known = followers(x)
    if known is not None:
        known.follow(x)


def link(part: Any, source: Any, again: Callable[[], Any], back: Callable[[Any], None]) -> None:
    """From now on `part` and the array `source`, which it is a part of, follow each other."""
    own = Followers()
    own.source, own.again, own.back = source, again, back
    part._copy_of = own
    known = followers(source)
    if known is None:
        known = source._copy_of = Followers()
    if len(known.parts) >= _MANY:
        known.parts = [r for r in known.parts if r() is not None]
    known.parts.append(weakref.ref(part))
