"""Steps that are always the same, on a card: recorded once, and replayed as one launch each."""

from __future__ import annotations

from collections.abc import Callable

import mirabelle as mb


def replayed(step: Callable[[], object], n: int) -> None:
    """Do `step` n times. It reads and writes arrays of a card that stay the same ones.

    The first time runs as it stands, so that what it needs is compiled. The second is recorded, which runs it, too.
    """
    if n > 0:
        step()
    if n > 1:
        with mb.capture() as graph:
            step()
        for _ in range(n - 2):
            graph.replay()
