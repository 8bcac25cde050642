"""Small trees on the host, evaluated node by node through NumPy's calls.

For a few hundred elements the time of a statement is Python's, and linearising a tree into a
program takes longer than computing it. Values, dtypes and what is kept are the same; while
counters are open the ordinary way is taken, which counts.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


from mirabelle.arraytypes.host import HostArray
from mirabelle.backends.host.interpreter import quietly
from mirabelle.dispatch import generic, verbs
from mirabelle.dispatch.tree import Broadcasted, Leaf

_world = -1
_ours: Any = None
_usable = False
_alone = 1 << 30


class NotDirect(Exception):
    """The tree has something only the ordinary way knows."""


def evaluate(node: Broadcasted) -> Leaf | None:
    """The value of a small tree, or None where the ordinary way must be taken."""
    global _world, _usable
    if generic._world != _world:
        # Whoever overrides or replaces copyto is asked, small or not.
        core = verbs.copyto.core
        _usable = not core.active_overrides and core.resolve((HostArray, Broadcasted)) is _ours
        _world = generic._world
    if not _usable:
        return None
    try:
        value = quietly(_value, node)
    except NotDirect:
        return None
    if value.__class__ is not np.ndarray:
        value = np.asarray(value)
    if value.shape != node.shape:  # every operand was a scalar, or smaller
        return None
    leaf = Leaf(value)
    node.value = leaf
    node.args = None
    node.size = 0
    return leaf


def _value(node: Broadcasted) -> Any:
    operands = []
    args = node.args
    if args is None:
        return node.value.view  # type: ignore[union-attr]
    for a in args:
        kind = type(a)
        if kind is Leaf:
            operands.append(a.view)
        elif kind is Broadcasted:
            known = a.value
            if known is not None:
                operands.append(known.view)
                continue
            value = _value(a)
            operands.append(value)
            # Somebody else holds the node: its value is here, so it is kept.
            if sys.getrefcount(a) > _alone and a.sig.op.nout == 1:
                if value.__class__ is not np.ndarray:
                    value = np.asarray(value)
                if value.shape == a.shape:
                    a.value = Leaf(value)
                    a.args = None
                    a.size = 0
        elif kind.__module__.startswith("mirabelle"):
            raise NotDirect
        else:
            operands.append(a)
    ufunc = node.sig.op.ufunc
    if ufunc is None or node.sig.op.nout != 1:
        raise NotDirect
    return ufunc(*operands)


def _calibrate() -> None:
    """Measure the reference count, in `_value`, of a node only its parent holds."""
    global _alone
    seen: list[int] = []

    class Probe(int):
        def __lt__(self, count: object) -> bool:  # `count > _alone` asks the subclass first
            seen.append(count)  # type: ignore[arg-type]
            return False

    _alone = Probe(0)
    x = HostArray(np.zeros(2))
    for _ in range(3):
        y = verbs.add(verbs.square(x), x)
        evaluate(y._node)
    _alone = min(seen)


def install() -> None:
    """Once all methods are registered."""
    global _ours
    _ours = verbs.copyto.core.resolve((HostArray, Broadcasted))
    _calibrate()
    HostArray._direct = staticmethod(evaluate)  # type: ignore[assignment]


