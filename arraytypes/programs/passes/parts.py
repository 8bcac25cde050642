"""Parts of parts are parts."""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.programs.graph import Node, Part, c_strides, part_node, rewritten


def flattened_parts(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """The graph with each part as directly a part of what is in memory as strides can say it."""
    return rewritten(outputs, flattened)


def flattened(node: Node) -> Node:
    while isinstance(node, Part):
        source = node.source
        made: Any = None
        if isinstance(source, Part):
            made = composed(node, source)
        # (A part of an updated value stays one, also where it shows nothing of what was written: a reader of the
        # value before would keep that one alive, and the write could not be in place.)
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
