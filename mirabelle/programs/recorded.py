"""A step that is always the same, on a card: recorded once, and replayed as one launch."""

from __future__ import annotations

from collections.abc import Callable

import mirabelle as mb


def recorded(step: Callable[[], object]) -> Callable[[int], None]:
    """`step` as a function that does it so many times. It reads and writes arrays of a card that stay the same.

    Recording does it twice: once as it stands, so that what it needs is compiled, and once recorded.
    """
    step()
    with mb.capture() as graph:
        step()

    def replay(n: int) -> None:
        for _ in range(n):
            graph.replay()

    return replay
