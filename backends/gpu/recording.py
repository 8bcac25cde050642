"""What a graph is made of while it is recorded, and the memory that it needs for as long as it lives.

A graph has addresses. So the memory that a block allocates is held by the graph, and is not used twice
within; of what was there before, the graph holds what the block's launches name.
"""

from __future__ import annotations

import bisect
import threading
from collections.abc import Iterable
from typing import Any

from mirabelle.arraytypes.gpu import piece_of
from mirabelle.dispatch.errors import DeviceError


class Recorder:
    """A block that is recorded. Drivers say how: `begin`, `end`."""

    def __init__(self, driver: Any, family: Any) -> None:
        self.driver = driver
        self.family = family
        self.thread = threading.get_ident()
        self.kernels = 0
        # The code that the graph runs must stay loaded.
        self.functions: list[Any] = []
        # Where a piece of memory starts → what keeps it: all that the graph touches.
        self.held: dict[int, Any] = {}
        self._made: set[int] = set()
        # The memory there was before: starts, in order, and for each its end and what keeps it.
        self._starts: list[int] = []
        self._known: dict[int, tuple[int, Any]] = {}
        self._seen: set[int] = set()

    def begin(self) -> None:
        """From here on this thread's work on the card is recorded, and not done."""
        raise NotImplementedError

    def end(self) -> Any:
        """What was recorded: a function that does it."""
        raise NotImplementedError

    def know(self, views: Iterable[Any]) -> None:
        """Tell of memory that the block may use."""
        for view in views:
            start, stop = piece_of(view)
            known = self._known.get(start)
            if known is None or known[0] < stop:
                self._known[start] = stop, view.owner
        self._starts = sorted(self._known)

    def allocated(self, start: int, owner: Any) -> None:
        """Note new memory."""
        self.held[start] = owner
        self._made.add(start)

    def launched(self, kernel: Any, values: tuple[Any, ...]) -> None:
        """Note a launch, and its arguments: whatever may be an address."""
        self.kernels += 1
        self.functions.append(kernel)
        self.named(values)

    def named(self, values: Iterable[Any]) -> None:
        """Note addresses."""
        for value in values:
            if type(value) is int and value not in self._seen:
                self._seen.add(value)
                i = bisect.bisect_right(self._starts, value) - 1
                if i >= 0:
                    start = self._starts[i]
                    stop, owner = self._known[start]
                    if value < stop:
                        self.held[start] = owner

    def forget(self) -> None:
        """Let go of the memory that the block did not use."""
        self._known.clear()
        self._starts.clear()

    def concerns(self, view: Any) -> bool:
        """Is a view one of this card?"""
        return isinstance(view, self.family.view_type)

    def made_here(self, view: Any) -> bool:
        """Was a view's memory allocated in the block?"""
        return piece_of(view)[0] in self._made

    def touches(self, view: Any) -> bool:
        """Does the graph read or write a view's memory?"""
        return piece_of(view)[0] in self.held


def recording(driver: Any) -> Any:
    """The recording of this thread on a card; None if there is none."""
    if driver.recorders:
        me = threading.get_ident()
        for recorder in driver.recorders:
            if recorder.thread == me:
                return recorder
    return None


def refuse_reading(what: str) -> DeviceError:
    """The error for what needs values while they are only recorded."""
    return DeviceError(
        f"Inside mb.capture() nothing is computed yet, and {what}. Read values before or after the block. "
        "What must be known of an array (the bounds of an index, say) is kept with it: run the statement once "
        "before."
    )
