"""Named timers: where a simulation's time went.

>>> timers = Timers()
>>> with timers("steps"):
...     pass
>>> timers.calls["steps"], timers.seconds["steps"] < 1
(1, True)
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class Timers:
    """Seconds and calls by name; `timers("steps")` is a context that adds to one, printed they are a table."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.calls: defaultdict[str, int] = defaultdict(int)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - began
            self.calls[name] += 1

    def __repr__(self) -> str:
        whole = sum(self.seconds.values()) or 1.0
        rows = [f"{n:20} {self.calls[n]:8} {s:12.6f} {s / whole:6.1%}" for n, s in self.seconds.items()]
        return "\n".join([f"{'section':20} {'calls':>8} {'seconds':>12}  share", *rows])
