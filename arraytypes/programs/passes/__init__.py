"""Passes: what rewrites a graph before it is planned.

A pass is a function from the values a program computes to the same values, computed otherwise. It has a name, by
which it can be left out: `mb.compile(f, passes=["parts", "algebra"])`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from mirabelle.arraytypes.programs.graph import Node, ordered
from mirabelle.arraytypes.programs.passes.parts import flattened_parts, parts

Pass = Callable[[tuple[Node, ...]], tuple[Node, ...]]

# Passes by name, in the order in which they are applied.
PASSES: dict[str, Pass] = {"parts": parts}
# Those that hold only where no value is infinite or NaN.
FINITE: dict[str, Pass] = {}


class Passes:
    """A sequence of passes, and what each did when it was last applied."""

    def __init__(self, passes: Sequence[tuple[str, Pass]]) -> None:
        self.passes = list(passes)
        # (name, nodes before, nodes after, seconds)
        self.record: list[tuple[str, int, int, float]] = []

    def applied(self, outputs: tuple[Node, ...]) -> tuple[Node, ...]:
        self.record = []
        before = len(ordered(outputs))
        for name, run in self.passes:
            began = time.perf_counter()
            outputs = run(outputs)
            after = len(ordered(outputs))
            self.record.append((name, before, after, time.perf_counter() - began))
            before = after
        return outputs


def chosen_passes(passes: Any = None, assume_finite: bool = False) -> Passes:
    """Passes by their names (or functions), or all of them."""
    if passes is None:
        return Passes([*PASSES.items(), *(FINITE.items() if assume_finite else ())])
    known = {**PASSES, **FINITE}
    found: list[tuple[str, Pass]] = []
    for p in passes:
        if callable(p):
            found.append((getattr(p, "__name__", "pass"), p))
        elif p in known:
            found.append((p, known[p]))
        else:
            raise ValueError(
                f"There is no pass named {p!r}. There are {', '.join(known)}, and functions of your own."
            )
    return Passes(found)


def simplified(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """All passes, for values that are asked for while nothing is compiled."""
    return flattened_parts(outputs)
