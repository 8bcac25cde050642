"""Leaves' values at their roots: combined there, in an order that is the same every time.

A root that has several leaves is combined with one after the other, in the order of ranks and of leaves on
each. All roots take their first, then all that have a second take that: gathers and scatters of whole arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.assign import check_writable, scatter
from mirabelle.arraytypes.dense import DenseArray, wrap
from mirabelle.arraytypes.distributed.communicators import UFUNCS
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.meshdata.exchange import Route, host_view
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import Leaf

NAMES = (*UFUNCS, "replace")


# Ufuncs that give what the target holds, of a source and a target.
_checked: set[tuple[Any, np.dtype, np.dtype]] = set()


class Operation:
    """How a leaf's value joins what its root is."""

    __slots__ = ("function", "name")

    def __init__(self, name: str, function: Callable[[Any, Any], Any] | None) -> None:
        self.name = name
        # None: the leaf's value replaces it.
        self.function = function

    def check(self, source: np.dtype, target: np.dtype) -> None:
        """Does it give something that the target holds? (Known before anything is sent.)"""
        if self.function is None or (self.function, source, target) in _checked:
            return
        found = np.asarray(self.function(np.empty(0, target), np.empty(0, source)))
        if found.shape != (0,) or not np.can_cast(found.dtype, target, "same_kind"):
            raise TypeError(
                f"{self.name} of arrays of {target} and {source} gives one of {found.dtype} and shape "
                f"{found.shape} for shape (0,), which is not written to an array of {target}."
            )
        if isinstance(self.function, np.ufunc):
            _checked.add((self.function, source, target))


def operation(op: Any) -> Operation:
    """The operation that a name, a ufunc, or a function of two arrays stands for."""
    if isinstance(op, str):
        if op not in NAMES:
            raise ValueError(
                f"{op!r} is no reduction. There are {', '.join(NAMES)}; or give a ufunc, or a function of "
                f"two arrays."
            )
        return Operation(op, UFUNCS.get(op))
    if isinstance(op, np.ufunc) and (op.nin, op.nout) != (2, 1):
        raise TypeError(f"{op.__name__} is no function of two arrays: it takes {op.nin} and gives {op.nout}.")
    if not callable(op):
        raise TypeError(
            f"A reduction is a name like 'sum', a ufunc like np.maximum, or a function of two arrays; not "
            f"{op!r}."
        )
    return Operation(str(getattr(op, "__name__", type(op).__name__)), op)


class Combination:
    """At which roots values arrive, and in which order each of these takes its own."""

    __slots__ = ("_in_order", "_route", "levels", "roots")

    def __init__(self, route: Route) -> None:
        index = route.index
        self._route = route
        order = np.argsort(index, kind="stable")
        self._in_order = bool(np.all(order == np.arange(len(order))))
        self.roots, starts, counts = np.unique(index[order], return_index=True, return_counts=True)
        group = np.repeat(np.arange(len(self.roots)), counts)
        turn = np.arange(len(index)) - starts[group]
        # For each turn: which of the values are taken, and by which of the roots.
        self.levels: list[tuple[np.ndarray, np.ndarray]] = [
            (order[turn == t], group[turn == t]) for t in range(int(counts.max(initial=0)))
        ]

    def combine(self, op: Operation, target: Any, value: Any) -> None:
        """Combine values with what stands at the roots, and write it there."""
        if isinstance(target, np.ndarray) or leaf_family(type(target)).home.rank < 2:
            now = host_view(target)[self.roots]
            for turn, (taken, by) in enumerate(self.levels):
                some = value if len(taken) == len(value) and self._in_order else value[taken]
                if not turn and isinstance(op.function, np.ufunc):  # (all have a first)
                    op.function(now, some, out=now, casting="unsafe")
                else:
                    now[by] = some if op.function is None else np.asarray(op.function(now[by], some))
        else:
            family = leaf_family(type(target))
            now = verbs.copy(target[self._on(family, "roots", self.roots)])
            for t, (taken, by) in enumerate(self.levels):
                places = self._on(family, f"by {t}", by)
                some = value[self._on(family, f"taken {t}", taken)]
                now[places] = some if op.function is None else op.function(now[places], some)
        put(self._route, target, "roots", self.roots, now)

    def _on(self, family: Any, what: str, index: np.ndarray) -> Any:
        return self._route.on(family, what, index)


def put(route: Route, target: Any, what: str, index: np.ndarray, value: Any) -> None:
    """Write values at some entries of an array."""
    if not len(index):
        return
    if isinstance(target, np.ndarray):
        target[route.on(None, what, index)] = value
        return
    if isinstance(value, np.ndarray):  # (memory that is used again: what is written of it is copied)
        value = wrap(leaf_family(type(target)), Leaf(value, foreign=True))
    place = route.on(leaf_family(type(target)), what, index)
    plain = isinstance(target, DenseArray) and isinstance(value, DenseArray) and value.dtype == target.dtype
    if type(place) is slice or not plain:
        target[place] = value
    else:  # (nothing of an index that was checked, and names no entry twice, is to be found out again)
        check_writable(target)
        scatter(target, value, [place], "", distinct=True)


def picked(route: Route, x: Any, like: Any, what: str, index: np.ndarray) -> Any:
    """Some of the values that came, as an array of the type of another one."""
    if isinstance(x, np.ndarray):
        found = x[index]
        return found if isinstance(like, np.ndarray) else wrap(leaf_family(type(like)), Leaf(found))
    return x[route.on(leaf_family(type(x)), what, index)]
