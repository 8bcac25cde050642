"""Parts of parts are parts; parts of what was just written are what was written, or parts of what was there."""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.programs.graph import Map, Node, Part, Update, c_strides, part_node, rewritten
from mirabelle.arraytypes.programs.steps import Ref, Storage

# Parts of a value of at most so many cheap operations are computed from parts of its operands.
FEW_OPERATIONS = 3


def flattened_parts(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """The graph with each part as directly a part of what is in memory as strides can say it."""
    return rewritten(outputs, flattened)


def flattened(node: Node) -> Node:
    while isinstance(node, Part):
        source = node.source
        made: Any = None
        if isinstance(source, Part):
            made = composed(node, source)
        elif isinstance(source, Update):
            made = before_or_written(node, source)
        if made is None:
            return node
        node = made
    return node


def composed(part: Part, inner: Part) -> Node | None:
    """A part of a part as a part of the latter's source; None where strides cannot say it."""
    if part.dtype != inner.dtype or inner.table:
        return None
    if is_contiguous(inner):
        offset = inner.offset + part.offset
        return part_node(inner.source, offset, part.shape, part.strides, part.dtype, part.table)
    if part.table or part.size == 0:
        return None
    at, rest = [], part.offset
    virtual = c_strides(inner.shape, inner.dtype)
    for step in virtual:
        i, rest = divmod(rest, step)
        at.append(i)
    if rest:
        return None
    strides: list[int] = []
    ends = list(at)
    for n, s in zip(part.shape, part.strides, strict=True):
        if s == 0 or n == 1:
            strides.append(0)
            continue
        for d, step in enumerate(virtual):
            k, r = divmod(s, step)
            if r == 0 and k != 0 and inner.shape[d] > 1:
                break
        else:
            return None
        ends[d] += k * (n - 1)
        strides.append(k * inner.strides[d])
    if any(not 0 <= e < n for e, n in zip(ends, inner.shape, strict=True)):
        return None
    offset = inner.offset + sum(i * s for i, s in zip(at, inner.strides, strict=True))
    return part_node(inner.source, offset, part.shape, tuple(strides), part.dtype, part.table)


def is_contiguous(part: Any) -> bool:
    wanted = c_strides(part.shape, part.dtype)
    return all(n == 1 or a == b for n, a, b in zip(part.shape, part.strides, wanted, strict=True))


def before_or_written(part: Part, update: Update) -> Node | None:
    """A part of an updated value: what was written, or a part of the value before."""
    if part.table:
        return None
    if (part.offset, part.shape, part.strides, part.dtype) == (
        update.offset,
        update.part_shape,
        update.strides,
        update.part_dtype,
    ):
        # (What is written to a narrower place and read again is read there.)
        return update.value if update.value.shape == part.shape and isinstance(update.value, Map) else None
    memory = Storage(0, "temporary", update.base)
    read = Ref(memory, part.offset, part.shape, part.strides, part.dtype)
    write = Ref(memory, update.offset, update.part_shape, update.strides, update.part_dtype)
    from mirabelle.arraytypes.programs.planning import apart

    if apart(read, write):
        return part_node(update.base, part.offset, part.shape, part.strides, part.dtype)
    return None
