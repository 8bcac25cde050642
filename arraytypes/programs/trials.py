"""Which of two ways takes less time, found by calls that are made anyway: as a program, or as it stands.

A program of a few operations on small arrays may take longer than these do by themselves, and nothing in its
plan says so. So a piece of a function that is called again and again is tried as it stands now and then.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import Any

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.distributed.communicators import communicator
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.host import HostArray
from mirabelle.dispatch import verbs
from mirabelle.dispatch.settings import settings

# The first trial comes after so many calls, has so many of either way, and the next after so many times more.
# (Calls of a piece are of several sizes, those of a function of one.)
AFTER_PIECES, EACH_PIECES = 24, 9
AFTER, EACH = 8, 3
_AGAIN = 10
# As it stands it must take less than this part of a program's time.
_LESS = 0.8
_MORE = 3


class Trial:
    """The calls of one piece with arrays of about the same size, or of one program."""

    __slots__ = ("begins", "calls", "each", "plain", "seconds", "took")

    def __init__(self, after: int = AFTER_PIECES, each: int = EACH_PIECES) -> None:
        self.calls = 0
        self.begins = after
        self.each = each
        # Does it run as it stands? And the seconds of a call as a program and so, when last tried.
        self.plain = False
        self.seconds = (0.0, 0.0)
        self.took: tuple[list[float], list[float]] = ([], [])

    def next_is_plain(self) -> bool:
        """Count a call: does it run as it stands?"""
        self.calls += 1
        return self.plain if self.calls <= self.begins else self.calls > self.begins + self.each

    def untried(self) -> int:
        """As how many calls that follow run as programs, without more being asked? They count as made."""
        count = 0 if self.plain else max(self.begins - self.calls, 0)
        self.calls += count
        return count

    def note(self, seconds: float, plain: bool) -> None:
        """Note how long the call took that was counted last."""
        if self.calls <= self.begins:
            return
        self.took[plain].append(seconds)
        as_program, as_it_stands = self.took
        # (What takes several times as long is not done again.)
        far = plain and seconds > _MORE * max(as_program, default=math.inf)
        if far or self.calls >= self.begins + 2 * self.each:
            if as_program and as_it_stands:
                self.seconds = statistics.median(as_program), statistics.median(as_it_stands)
                self.plain = self.seconds[1] < _LESS * self.seconds[0]
            self.took = [], []
            self.begins = self.calls * _AGAIN * (10 if far else 1)

    def __str__(self) -> str:
        program, plain = (f"{s * 1e6:.0f} µs" for s in self.seconds)
        return f"a call takes {plain} so, and {program} as a program"


def size_class(values: Iterable[Any]) -> int:
    """Which arrays are of about the same size: one more for four times the elements.

    0 where nothing is to be tried: where a setting says so, without arrays, on cards (which compute while
    Python goes on), and over processes (all of which run the same programs).
    """
    if not settings.trials:
        return 0
    most = -1
    for x in values:
        if isinstance(x, AbstractArray):
            if leaf_family(type(x)) is not HostArray:
                return 0
            most = max(most, x.size)
    return 0 if most < 0 or communicator().size > 1 else 1 + most.bit_length() // 2


def computed(result: Any) -> Any:
    """A result, with all of its arrays computed."""
    for x in result if isinstance(result, tuple) else (result,):
        if isinstance(x, AbstractArray):
            verbs.materialize(x)
    return result
