"""The longest steps of a program, held against what their place's memory and its matrix products reach.

A step that moves bytes and does operations can go no faster than its place's memory brings the bytes, nor than
its units do the operations: the lower of the two is its *ceiling*. What is above it reads from caches.

>>> import mirabelle as mb
>>> x = mb.ones(1000)
>>> r = mb.compile(lambda x: mb.exp(x) * 2).profile(x, times=2).roofline()
>>> [(p.label, p.intensity) for p in r.points]
[('exp, multiply', 0.125)]
"""

from __future__ import annotations

import html
import os
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.cards import card, shown_bytes
from mirabelle.arraytypes.programs.explaining import shown_count, shown_seconds
from mirabelle.dispatch import verbs

if TYPE_CHECKING:
    from mirabelle.arraytypes.programs.profiling import Profile, StepTime


class RooflinePoint:
    """A step, or several that do the same, beside its ceiling.

    `intensity` are operations a byte, `rate` operations a second; `reached` is the part of the ceiling, by
    operations, or by bytes where a step only moves.
    """

    __slots__ = ("bound", "bytes", "ceiling", "flops", "label", "name", "seconds", "share")

    def __init__(
        self, steps: list[StepTime], total: float, peak: float | None, bandwidth: float | None
    ) -> None:
        self.name, self.label = steps[0].name, steps[0].label
        if len(steps) > 1:
            self.label += f", {len(steps)} times"
        self.seconds = sum(s.seconds for s in steps)
        self.bytes = sum(s.bytes for s in steps)
        self.flops = sum(s.flops for s in steps)
        self.share = self.seconds / total if total else 0.0
        # The seconds that it needs at least by each of the two, and the one that binds.
        needs = {
            "memory": self.bytes / bandwidth if bandwidth else 0.0,
            "arithmetic": self.flops / peak if peak else 0.0,
        }
        self.bound = max(needs, key=lambda k: needs[k]) if peak and bandwidth else ""
        self.ceiling = max(needs.values())

    @property
    def intensity(self) -> float:
        """Operations a byte."""
        return self.flops / self.bytes if self.bytes else 0.0

    @property
    def rate(self) -> float:
        """Operations a second."""
        return self.flops / self.seconds if self.seconds else 0.0

    @property
    def reached(self) -> float | None:
        """The time that its ceiling asks for, over the time it took."""
        return self.ceiling / self.seconds if self.seconds and self.ceiling else None

    def __repr__(self) -> str:
        return f"<{self.name}: {self.label}, {self.intensity:.3g} flops/B, {shown_count(self.rate)}flop/s>"


class Roofline:
    """The steps of a profile that take longest, beside what their place reaches: a table, and a picture.

    `bandwidth` is what a copy of a large array reaches in bytes a second, `peak` what a product of large
    matrices of doubles reaches in operations a second; both are measured once; None on simulated devices.
    """

    def __init__(self, profile: Profile, most: int) -> None:
        self.name, self.place = profile.name, profile.place
        self.bandwidth = profile.bandwidth
        self.peak = peak_of(profile.inner) if profile.bandwidth else None
        groups = [steps for steps in _leaves(profile) if steps[0].bytes or steps[0].flops]
        points = [RooflinePoint(steps, profile.seconds, self.peak, self.bandwidth) for steps in groups]
        self.points = sorted(points, key=lambda p: -p.seconds)[:most]

    def sentence(self) -> str:
        """What the place reaches."""
        if not self.bandwidth or not self.peak:
            return "what this place reaches is not known"
        return (
            f"a copy of a large array reaches {shown_bytes(self.bandwidth)}/s here, "
            f"a product of matrices of doubles {shown_count(self.peak)}flop/s"
        )

    def rows(self) -> list[list[str]]:
        """The table's cells, by the columns of `HEAD`."""
        return [
            [
                f"{100 * p.share:.1f}%",
                shown_seconds(p.seconds),
                f"{p.intensity:.3g}",
                f"{shown_count(p.rate)}flop/s".strip(),
                f"{shown_bytes(p.bytes / p.seconds if p.seconds else 0.0)}/s",
                p.bound,
                "" if p.reached is None else f"{100 * p.reached:.0f} %",
                f"{p.name}: {p.label}",
            ]
            for p in self.points
        ]

    HEAD = ("share", "time", "flops/B", "operations", "bytes", "bound by", "of ceiling", "step")

    def __repr__(self) -> str:
        table = [list(self.HEAD), *self.rows()]
        wide = [max(len(row[i]) for row in table) for i in range(len(self.HEAD) - 1)]
        lines = ["  ".join([*(c.rjust(w) for c, w in zip(row, wide, strict=False)), row[-1]]) for row in table]
        return "\n".join([f"roofline of {self.name} on {self.place}: {self.sentence()}", "", *lines])

    def _repr_html_(self) -> str:
        from mirabelle.arraytypes.programs.picture import table

        rows = [[*map(html.escape, row)] for row in self.rows()]
        return card(f"roofline of {self.name}", {"place": self.place, "reached here": self.sentence()}, "",
                    table(list(self.HEAD), rows, {5, 7}))  # fmt: skip

    def picture(self, path: Any = "roofline.png") -> str:
        """Draw operations a second over operations a byte, both by powers of ten, to an image file; its path.

        >>> import mirabelle as mb
        >>> f, x = mb.compile(lambda x: x + 1), mb.zeros(3)
        >>> f.profile(x, times=1).roofline().picture("roofline.png")  # doctest: +SKIP
        'roofline.png'
        """
        from mirabelle.arraytypes.programs.reports import drawn  # which brings what knows matplotlib

        return drawn(self, os.fspath(path), len(self.points))  # type: ignore[no-any-return]


def _leaves(profile: Profile) -> list[list[StepTime]]:
    """The steps that have none within them, those of a repetition that do the same together."""
    from mirabelle.arraytypes.programs.explaining import Repeat

    found: list[list[StepTime]] = []

    def add(steps: list[StepTime]) -> None:
        if not steps[0].inside:
            found.append(steps)
            return
        for inside in steps[0].inside:
            for s in inside:
                add([s])

    for item in profile.items:
        if isinstance(item, Repeat):
            for i in range(item.first, item.first + item.length):
                add(profile.steps[i : item.first + item.length * item.count : item.length])
        else:
            add([profile.steps[item]])
    return found


# What products of matrices reach, by array types: measured once in a process.
_peaks: dict[Any, float] = {}
# Rows of the matrices: so many that a product's time is its operations'.
ROWS, ROWS_OF_CARDS = 1024, 4096


def peak_of(inner: Any) -> float | None:
    """Operations a second that a product of matrices of doubles does; None where there is no memory for
    them."""
    from mirabelle.arraytypes.dense import evaluated
    from mirabelle.arraytypes.host import HostArray
    from mirabelle.arraytypes.library import matrix_product
    from mirabelle.arraytypes.programs.reports import waiting

    found = _peaks.get(inner)
    if found is None:
        n, wait = (ROWS_OF_CARDS if inner.home.rank >= 2 else ROWS), waiting(inner)
        try:
            x = verbs.adapt(inner, HostArray(np.ones((n, n))))
            least = float("inf")
            for _ in range(4):
                began = time.perf_counter()
                evaluated(matrix_product(inner, x, x))
                wait()
                least = min(least, time.perf_counter() - began)
        except MemoryError:
            return None
        found = _peaks[inner] = 2.0 * n**3 / least
    return found
