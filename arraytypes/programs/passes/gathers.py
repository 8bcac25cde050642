"""Gathers: `a[i][j]` is `a[i[j]]`, and `(a * 2)[j]` is `a[j] * 2`, where that reads and writes less."""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.programs.graph import (
    Map,
    Node,
    Part,
    map_node,
    ordered,
    part_node,
    placed_as,
    users_of,
)
from mirabelle.arraytypes.programs.passes.geometry import is_contiguous
from mirabelle.dispatch.promotion import intern

# Operations of at most so many additions are done after a gather rather than before.
CHEAP = 8


def gathers(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Gathers of gathers, and of operations, as gathers of what those read.

    >>> import mirabelle as mb
    >>> i, j = mb.HostArray([3, 2, 1]), mb.HostArray([0, 2])
    >>> program = mb.compile(lambda a, i, j: (a + 1)[i][j], passes=["parts"]).program(mb.ones(5), i, j)
    >>> [step.name for step in program.plan.steps if step.name != "within"]
    ['gather_gather_add']
    """
    nodes = ordered(outputs)
    if not any(_is_gather(x) for x in nodes):
        return outputs
    users = users_of(nodes)
    is_output = {id(x) for x in outputs}
    # Values that nobody reads but one reader.
    alone = {id(x): x for x in nodes if len(users.get(id(x), ())) == 1 and id(x) not in is_output}
    made: dict[int, Node] = {}
    for x in nodes:
        operands = tuple([made[id(a)] for a in x.operands])
        new = x
        if any(a is not b for a, b in zip(operands, x.operands, strict=True)):
            new = placed_as(x, x.rebuilt(operands))
        if id(x) in alone:
            alone[id(new)] = new
        if _is_gather(new):
            new = placed_as(x, _moved(new, alone))
            if id(x) in alone:
                alone[id(new)] = new
        made[id(x)] = new
    return tuple([made[id(x)] for x in outputs])


def _is_gather(x: Any) -> bool:
    return (
        type(x) is Map and x.sig.op.name == "gather" and type(x.args[0]) is Part and isinstance(x.args[1], Node)
    )


def _moved(gather: Any, alone: dict[int, Node]) -> Node:
    """A gather of what is computed for it alone, as a computation of gathered operands."""
    table = gather.args[0]
    source: Any = table.operands[0]
    if (
        type(source) is not Map
        or id(table) not in alone
        or id(source) not in alone
        or any(table.strides)
        or table.dtype != source.dtype
        or not gather.size
        or not source.sig.op.pure
        or source.sig.op.nout != 1
    ):
        return gather
    if _is_gather(source):
        if gather.size > 2 * source.size or any(source.args[0].strides) or source.args[1].shape != source.shape:
            return gather
        places = _gathered(gather, table, source, source.args[1], alone)
        if places is None:
            return gather
        inner = source.args[0]
        zeros = (0,) * len(gather.shape)
        beginning = part_node(inner.operands[0], inner.offset, gather.shape, zeros, inner.dtype, True)
        return _at(map_node(source.sig, (beginning, places), gather.shape), source)
    if source.sig.cost > CHEAP or gather.size > source.size or source.sig.op.name.startswith("pick"):
        return gather
    args: list[Any] = []
    read = 0
    for a in source.args:
        if isinstance(a, Node):
            if type(a) is Part and a.table:
                return gather
            if a.size == 1:
                args.append(part_node(a, 0, (), (), a.dtype))
                continue
            read += 1
            if read > 1:
                return gather
            a = _gathered(gather, table, source, a, alone)
            if a is None:
                return gather
            if id(gather) in alone:
                alone[id(a)] = a
        args.append(a)
    return _at(map_node(source.sig, tuple(args), gather.shape), source)


def _gathered(gather: Any, table: Any, source: Any, a: Any, alone: dict[int, Node]) -> Node | None:
    """What a gather from a value picks of an operand of it."""
    if a.shape != source.shape or (type(a) is Part and not is_contiguous(a)):
        return None
    size = a.dtype.itemsize
    offset = table.offset // source.dtype.itemsize * size
    sig = intern(gather.sig.op, (a.dtype, gather.sig.ins[1]), (a.dtype,))
    zeros = (0,) * len(gather.shape)
    memory, more = (a.operands[0], a.offset) if type(a) is Part else (a, 0)
    beginning = part_node(memory, offset + more, gather.shape, zeros, a.dtype, True)
    # (It is for this gather alone, as what it replaces was.)
    if id(a) in alone:
        alone[id(beginning)] = beginning
    made = _at(map_node(sig, (beginning, gather.args[1]), gather.shape), gather)
    if id(gather) in alone:
        alone[id(made)] = made
    return _moved(made, alone)


def _at(made: Any, like: Node) -> Any:
    if made.line is None:
        made.line = like.line
    return made
