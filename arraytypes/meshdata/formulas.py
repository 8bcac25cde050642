"""Elementwise values inside a loop: what a program computes of arrays, said once for every entry of a row.

A compiled program gives a loop what stood before and after it (`programs/passes/loops.py`): an argument is then
a formula of the arrays that it was computed from, and a result is what was made of it. Only operations
that round in one way are in formulas, each in the dtype that it has in the program: so the bits are those
of the loop and the operations one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

# Where a source of a formula stands: the loop's own value, an entry for each of the argument's, one number.
VALUE, ROW, NUMBER = "value", "row", "number"
# How operations are written in a kernel; those of the same name that kernels write otherwise are not here.
FORMS = {
    "add": "({0} + {1})",
    "subtract": "({0} - {1})",
    "multiply": "({0} * {1})",
    "divide": "({0} / {1})",
    "negative": "(-{0})",
    "positive": "{0}",
    "copy": "{0}",
    "cast": "{0}",
    "square": "({0} * {0})",
    "abs": "abs({0})",
    "sqrt": "np.sqrt({0})",
    "where": "({1} if {0} else {2})",
    "less": "({0} < {1})",
    "less_equal": "({0} <= {1})",
    "greater": "({0} > {1})",
    "greater_equal": "({0} >= {1})",
    "equal": "({0} == {1})",
    "not_equal": "({0} != {1})",
}

# An operation, its operands (steps from 0 on, sources as -1, -2, ...) and their dtype, and that of its result.
Step = tuple[str, tuple[int, ...], tuple[np.dtype, ...], np.dtype]


@dataclass(frozen=True)
class Formula:
    """Steps over sources; the last of them is the value. It knows no numbers and no sizes: keys have it."""

    steps: tuple[Step, ...]
    sources: tuple[tuple[str, np.dtype], ...]
    # The line of the program and the operations, for who reads of it.
    shown: str = field(default="", compare=False)

    @property
    def dtype(self) -> np.dtype:
        return self.steps[-1][3]

    def text(self, source: Callable[[int], str]) -> str:
        """The expression, given how each source is read."""
        texts: list[str] = []
        for op, operands, dtypes, out in self.steps:
            given = []
            for ref, dtype in zip(operands, dtypes, strict=True):
                if ref >= 0:
                    given.append(as_dtype(texts[ref], self.steps[ref][3], dtype))
                    continue
                kind, known = self.sources[-1 - ref]
                given.append(as_dtype(source(-1 - ref), None if kind == NUMBER else known, dtype))
            texts.append(as_dtype(FORMS[op].format(*given), dtypes[-1], out))
        return texts[-1]


def as_dtype(text: str, known: np.dtype | None, wanted: np.dtype) -> str:
    """An expression as one of a dtype. (Numbers are given as Python has them.)"""
    if known == wanted or wanted.kind == "b":
        return text
    return f"np.{wanted.name}({text})"


@dataclass(frozen=True)
class Fused:
    """What surrounds a loop and is done in it, for one argument: the dtype that the loop itself sees, what is
    read (of what is written: what was there before), and what becomes of what was written."""

    how: str
    dtype: np.dtype
    before: Formula | None = None
    after: Formula | None = None

    @property
    def formulas(self) -> list[tuple[str, Formula]]:
        """With the letters by which their sources are named."""
        return [(tag, f) for tag, f in (("b", self.before), ("a", self.after)) if f is not None]

    def names(self, name: str) -> list[str]:
        """The parameters of an argument's sources, in order."""
        return [
            f"{name}_{tag}{s}"
            for tag, f in self.formulas
            for s, (kind, _) in enumerate(f.sources)
            if kind != VALUE
        ]
