"""Constants: what depends on no argument is computed once, when a program is compiled."""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.programs.graph import (
    Call,
    Data,
    Empty,
    Map,
    Node,
    Part,
    Update,
    data_node,
    map_node,
    ordered,
    placed_as,
    rewritten,
)
from mirabelle.arraytypes.programs.passes.algebra import constant
from mirabelle.arraytypes.programs.passes.numbers import everywhere

# A constant may be so large (in bytes), or a little larger than what it is made from; and all of them so large.
SMALL, MUCH = 1 << 20, 1 << 26
LITTLE_LARGER = 2


def constants(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """The graph with the values that depend on no argument in place of how they are computed.

    >>> import mirabelle as mb
    >>> scale, x = mb.HostArray([1.0, 4.0]), mb.ones(2)
    >>> mb.compile(lambda x: x * mb.sqrt(scale), passes=["constants"]).program(x).plan.steps[0].name
    'multiply'
    """
    outputs = rewritten(outputs, with_numbers)
    found = _evaluated(outputs)
    return outputs if found is None else rewritten(found, with_numbers)


def with_numbers(node: Any) -> Node:
    """A node whose operands that are one number everywhere are numbers."""
    kind = type(node)
    if kind is Map:
        for a in node.operands:
            if everywhere(a) is not None:
                break
        else:
            return node  # type: ignore[no-any-return]
        args = []
        for a, dtype in zip(node.args, node.sig.ins, strict=True):
            n = everywhere(a) if isinstance(a, Node) else None
            # (As the operation sees it: its dtype is that of the operand, not that of a Python number.)
            args.append(a if n is None else _as(_as(n, a.dtype), dtype))
        if all(a is b for a, b in zip(args, node.args, strict=True)):
            return node  # type: ignore[no-any-return]
        return map_node(node.sig, tuple(args), node.shape)
    if kind is Update and type(node.value) is Part:
        n = everywhere(node.value)
        if n is not None:
            return node.rebuilt((node.base, constant(n, node.value.dtype, ())))  # type: ignore[no-any-return]
    return node  # type: ignore[no-any-return]


def _as(value: Any, dtype: Any) -> Any:
    import numpy as np

    with np.errstate(all="ignore"):
        return np.asarray(value).astype(dtype)[()]


def _evaluated(outputs: tuple[Node, ...]) -> tuple[Node, ...] | None:
    """The graph with data for what can be computed now; None if there is nothing of the kind."""
    nodes = ordered(outputs)
    wanted = _wanted(nodes, outputs)
    if not wanted:
        return None
    from mirabelle.arraytypes.elementwise import default_family
    from mirabelle.arraytypes.programs.running import evaluate

    family = next((x.family for x in nodes if type(x) is Data), None)  # type: ignore[attr-defined]
    inner = default_family() if family is None else family
    asked = tuple([map_node(x.sig, x.args, ()) if _of_numbers(x) else x for x in wanted])  # type: ignore[attr-defined]
    made: dict[int, Node] = {}
    for x, view in zip(wanted, evaluate(inner, asked), strict=True):
        if _of_numbers(x):
            made[id(x)] = placed_as(x, constant(inner._download(view)[()], x.dtype, x.shape))
        elif x.size == 1 and type(x) is Map:
            made[id(x)] = placed_as(x, constant(inner._download(view).reshape(())[()], x.dtype, x.shape))
        else:
            made[id(x)] = placed_as(x, data_node(inner, view))
    return rewritten(outputs, lambda x: made.get(id(x), x))


def _of_numbers(x: Node) -> bool:
    return type(x) is Map and not x.operands


def _wanted(nodes: list[Node], outputs: tuple[Node, ...]) -> list[Node]:
    """The values to compute now: those that readers which have to wait read."""
    # The largest data that a value which depends on no argument is made from, in bytes.
    made_from: dict[int, int] = {}
    read: dict[int, Node] = {}
    # (Calls that could be evaluated were, as they were recorded: the others may do more than compute.)
    called: set[int] = set()
    for x in nodes:
        if type(x) is Call or (called and any(id(a) in called for a in x.operands)):
            called.add(id(x))
        if x.bound:
            for operand in x.operands:
                a = _narrow(operand) if type(operand) is Map else operand
                if type(a) is Part and a.table:
                    # (A gather reads all there is: the table is but where it begins, shaped as the index.)
                    a = a.source
                if not a.bound:
                    read[id(a)] = a
        elif type(x) is Data:
            made_from[id(x)] = x.nbytes
        else:
            made_from[id(x)] = max([made_from[id(a)] for a in x.operands], default=-1)
    read.update({id(x): x for x in outputs if not x.bound})
    found, total = [], 0
    for x in read.values():
        if type(x) in (Data, Empty) or id(x) in called or x.size == 0 or _is_there(x) or not _pure(x):
            continue
        largest = made_from[id(x)]
        if largest < 0 and not (_of_numbers(x) and x.sig.op.name != "copy"):  # type: ignore[attr-defined]
            continue  # it is quicker filled than read
        if x.nbytes <= max(SMALL, LITTLE_LARGER * largest) and total + x.nbytes <= MUCH:
            found.append(x)
            total += x.nbytes
    return found


def _narrow(x: Any) -> Node:
    """What a value is converted from, if it takes less memory: that is read, and converted on the way."""
    while type(x) is Map and x.sig.op.name == "cast" and len(x.operands) == 1 and x.size > 1:
        (a,) = x.operands
        if a.dtype.itemsize >= x.dtype.itemsize or a.shape != x.shape:
            break
        x = a
    return x  # type: ignore[no-any-return]


def _is_there(x: Node) -> bool:
    """Is it a view of what is in memory?"""
    while type(x) is Part:
        x = x.operands[0]
    return type(x) in (Data, Empty)


def _pure(x: Node) -> bool:
    return type(x) is not Map or (x.sig.op.pure and x.sig.op.nout == 1)
