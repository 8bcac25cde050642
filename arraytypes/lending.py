"""Lending the memory of arrays to compiled functions that read and write single elements.

A function that loops over elements gets the memory itself, not a copy. Where it may write, the
array gets memory of its own first if somebody still reads the old contents, so that a write
never changes what was already said (docs/design.md, section 5, rule 2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes import recording
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.assign import check_writable, nobody_else, noted, write_alone, written
from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.moving import claim
from mirabelle.arraytypes.wrappers import Wrapper, root_of
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import Leaf

# What a function does to a parameter: it only reads it, perhaps writes to it, writes to it.
READ, MAYBE, WRITTEN = 0, 1, 2
# A parameter's name, and what is done to it.
Use = tuple[str, int]


def own(x: Any) -> None:
    """Give `x` memory that nobody else reads, so that it may be written in place.

    Copies only if a pending expression, another array or a NumPy export still needs the old
    contents. NumPy's own memory stays where it is: it is written in place, always.
    """
    check_writable(x)
    root = root_of(x)
    if recording.watchers:
        noted(root)
    leaf = verbs.leaf_of(root)
    if leaf.foreign:
        return
    if nobody_else(leaf, None, []):
        written(leaf)
        # A reduction of the old contents must not be found by one of the new.
        leaf.reducers = None
        return
    if recording.active and recording.stays(leaf):
        claim(root)
        return
    alone = write_alone(root)
    try:
        leaf = verbs.leaf_of(root)
        flags = leaf.view.flags
        order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
        fresh = Leaf(root.family._alike(leaf.view, order=order))
        root.family._copy_into(fresh.view, leaf.view)
        root._node = fresh
    finally:
        if alone is not None:
            alone.writer = 0


def family_in_memory(t: type) -> Any:
    """The dense type whose memory arrays of type `t` show by strides; None where they do not."""
    while issubclass(t, Wrapper):
        t = t.parent_type
    return t.family if issubclass(t, DenseArray) and hasattr(t, "home") else None


def lender(
    caller: str, types: Sequence[type], uses: Sequence[Use], family: Any, refuse: Callable[[str, Any], Any]
) -> Callable[[Sequence[Any]], list[Any]]:
    """What turns arguments of these types into memory of `family`'s place, and numbers.

    `refuse(name, x)` raises the error for an array of another place. 0-d arrays become numbers
    unless they are written to: on the host here, on a device by whoever launches.
    """
    takes: list[tuple[int, Callable[[Any], Any]]] = []
    pending: list[tuple[int, Callable[[Any], Any]]] = []
    owned: list[tuple[int, Callable[[Any], None]]] = []
    for i, (t, (name, how)) in enumerate(zip(types, uses, strict=True)):
        take = _taker(caller, t, name, how, family, refuse)
        if take is not None:
            takes.append((i, take))
        if issubclass(t, AbstractArray) and family_in_memory(t) is family:
            pending.append((i, _settle_dense if issubclass(t, DenseArray) else _settle))
            if how and (t.ndim or how == WRITTEN):
                owned.append((i, own if how == WRITTEN else _own_if_writable))
    if not owned:
        pending = []  # it is evaluated as it is taken

    def lend(args: Sequence[Any]) -> list[Any]:
        # All is evaluated before memory is looked at: a pending operand of an argument would
        # count as a reader. All is owned before memory is lent: an array may come twice.
        for i, evaluate in pending:
            evaluate(args[i])
        for i, owner in owned:
            owner(args[i])
        views = [*args]
        for i, take in takes:
            views[i] = take(args[i])
        return views

    return lend


def _taker(
    caller: str, t: type, name: str, how: int, family: Any, refuse: Callable[[str, Any], Any]
) -> Callable[[Any], Any] | None:
    """How an argument of type `t` becomes what compiled code takes; None: as it is."""
    if issubclass(t, np.ndarray):
        if family is not HostArray:
            return lambda x: refuse(name, x) if x.ndim or how else x[()]
        return _writable_numpy(caller, name) if how == WRITTEN else _numpy
    if not issubclass(t, AbstractArray):
        return None
    mine = family_in_memory(t)
    if mine is None:
        return lambda x: _refuse_structured(caller, name, x)
    number = t.ndim == 0 and how < WRITTEN
    if mine is not family:
        return _number if number and mine is HostArray else lambda x: refuse(name, x)
    if number and family is HostArray:
        return _number
    return _dense_memory if issubclass(t, DenseArray) else _memory


def _settle(x: Any) -> None:
    """Evaluate what is pending at the bottom of `x`; it lets go of its operands."""
    verbs.leaf_of(root_of(x))


def _settle_dense(x: Any) -> None:
    if type(x._node) is not Leaf:
        verbs.leaf_of(x)


def _memory(x: Any) -> Any:
    return verbs.leaf_of(x).view


def _dense_memory(x: Any) -> Any:
    node = x._node
    return node.view if type(node) is Leaf else verbs.leaf_of(x).view


def _number(x: Any) -> Any:
    return verbs.leaf_of(x).view[()]


def _numpy(x: np.ndarray) -> Any:
    return x if x.ndim else x[()]


def _own_if_writable(x: Any) -> None:
    try:
        own(x)
    except ValueError:
        pass  # read-only: lent as such, and the compiler refuses a write


def _writable_numpy(caller: str, name: str) -> Callable[[np.ndarray], np.ndarray]:
    def take(x: np.ndarray) -> np.ndarray:
        if not x.flags.writeable:
            raise ValueError(
                f"{caller}() writes to {name}, and this NumPy array is read-only. Copy it first: "
                f"`{name} = {name}.copy()`."
            )
        return x

    return take


def _refuse_structured(caller: str, name: str, x: Any) -> Any:
    raise TypeError(
        f"{caller}() works on elements in memory, and {name} is a {type(x).__name__}, which computes "
        f"its elements or stores only some. Give it a dense copy: `{name} = mb.HostArray({name})`."
    )


# Tuples of arrays


def flattened(caller: str, args: Sequence[Any], uses: Sequence[Use]) -> tuple[list[Any], list[Use]]:
    """Arguments with tuples taken apart: each thing in one is lent like an argument."""
    flat: list[Any] = []
    flat_uses: list[Use] = []

    def add(x: Any, use: Use) -> None:
        if isinstance(x, tuple):
            for item in x:
                add(item, use)
        elif isinstance(x, (list, dict, set)):
            raise TypeError(
                f"{caller}() was given a {type(x).__name__} for {use[0]}, which compiled code does not "
                f"take. Give a tuple, `tuple({use[0]})`, or an array, `mb.HostArray({use[0]})`."
            )
        else:
            flat.append(x)
            flat_uses.append(use)

    for x, use in zip(args, uses, strict=True):
        add(x, use)
    return flat, flat_uses


def rebuilt(like: Sequence[Any], flat: Sequence[Any]) -> list[Any]:
    """What `flattened` took apart, put together again with other values."""
    values = iter(flat)

    def make(x: Any) -> Any:
        if not isinstance(x, tuple):
            return next(values)
        parts = [make(item) for item in x]
        return type(x)._make(parts) if hasattr(x, "_make") else tuple(parts)

    return [make(x) for x in like]
