"""Statements in which memory is shared, run at import: do reference counts say who reads what is written?

Each gives what it shows at the end, and what that must be. They are run on few elements, as small arrays
are and as large ones are, and compile nothing. If one is wrong, all memory counts as shared
(`references.distrust`).

>>> from mirabelle.arraytypes import aliasing
>>> aliasing.holds()
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.dispatch import references, verbs
from mirabelle.dispatch.settings import settings


def _pending(x: Any) -> tuple[Any, list[float]]:
    y = x + 1.0
    x[...] = 0.0
    return y, [2.0, 3.0, 4.0, 5.0]


def _pending_part(x: Any) -> tuple[Any, list[float]]:
    y = x[1:] * 2.0
    x[2:] = 0.0
    return y, [4.0, 6.0, 8.0]


def _copied(x: Any) -> tuple[Any, list[float]]:
    y = verbs.copy(x)
    x += x * 2.0
    return y, [1.0, 2.0, 3.0, 4.0]


def _moved(x: Any) -> tuple[Any, list[float]]:
    x[1:] = x[:-1] * 1.0
    return x, [1.0, 1.0, 2.0, 3.0]


def _held(x: Any) -> tuple[Any, list[float]]:
    y = x * 2.0
    x[...] = (y + x) * y
    return y, [2.0, 4.0, 6.0, 8.0]


def _exported(x: Any) -> tuple[Any, list[float]]:
    y = x * 1.0
    z = verbs.materialize(y) * 3.0
    y += x
    return z, [3.0, 6.0, 9.0, 12.0]


STATEMENTS: tuple[Callable[[Any], tuple[Any, list[float]]], ...] = (
    _pending,
    _pending_part,
    _copied,
    _moved,
    _held,
    _exported,
)


def holds(make: Callable[[Any], Any] | None = None) -> bool:
    """Are they all right, on arrays that `make` makes (on the host, if it is not given)?"""
    from mirabelle.arraytypes.host import HostArray

    for statement in STATEMENTS:
        found, expected = statement((make or HostArray)(np.array([1.0, 2.0, 3.0, 4.0])))
        if verbs.to_numpy(found).tolist() != expected:
            return False
    return True


def reliable() -> bool:
    """Are they right, done as with small arrays and as with large ones?"""
    for small in (settings.small_size, 0):
        with settings.changed(
            small_size=small, immediate_size=0, brief_size=0, compile_size=1 << 30, compiler="off"
        ):
            if not all(holds() for _ in range(2)):
                return False
    return True


def check() -> None:
    """Run them, and count all memory as shared where one is wrong."""
    if not reliable():
        references.distrust()
