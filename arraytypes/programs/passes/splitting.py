"""What reads joined pieces, as `mb.roll` and `mb.concatenate` make them, computed piece by piece.

    y = mb.roll(x, 1) - x

is the difference of neighbours, and that of the ends: the shifted copy of x is never in memory.
"""

from __future__ import annotations

import itertools
from typing import Any

from mirabelle.arraytypes.programs.graph import (
    Call,
    Empty,
    Map,
    Node,
    Part,
    Update,
    c_strides,
    empty_node,
    map_node,
    part_node,
    placed_as,
    update_node,
)
from mirabelle.arraytypes.programs.passes.geometry import Region, bounds, composed, decomposed, place_written

# A kernel is split into so many at most. One takes as long as moving so many bytes.
MOST_BOXES, KERNEL = 27, 1 << 13

# Places along one dimension: the first, and how many.
Range = tuple[int, int]


class Join:
    """A value put together of slabs along one axis: the slabs are updates, which begin at `starts`."""

    __slots__ = ("axis", "slabs", "starts", "top")

    def __init__(self, top: Any, axis: int, slabs: list[Any], starts: list[int]) -> None:
        self.top = top
        self.axis = axis
        self.slabs = slabs
        self.starts = starts


class _Late:
    """Which values need what comes from other processes."""

    def __init__(self, nodes: list[Node]) -> None:
        self.any = any(type(x) is Call and x.kind == "receive" for x in nodes)
        self.known: dict[int, bool] = {}
        self.hold: list[Node] = []

    def of(self, value: Node) -> bool:
        if not self.any:
            return False
        stack = [value]
        while stack:
            x = stack[-1]
            missing = [a for a in x.operands if id(a) not in self.known]
            if id(x) in self.known or not missing:
                stack.pop()
                comes = type(x) is Call and x.kind == "receive"
                self.known[id(x)] = comes or any(self.known[id(a)] for a in x.operands)
                self.hold.append(x)
            else:
                stack += missing
        return self.known[id(value)]


def split(program: Any) -> tuple[Node, ...]:
    """The graph with kernels that read joined slabs split at their limits.

    `program` knows the outputs, the nodes, the users of each, and, once its `readers` are found, which value's
    kernel computes each value (see `parts.py`).
    """
    outputs, nodes, users = program.outputs, program.nodes, program.users
    found_joins = []
    for x in nodes:
        if type(x) is Update and type(x.base) is Empty:
            join = _join(x, users, program.is_output)
            if join is not None:
                found_joins.append(join)
    if not found_joins:
        return outputs  # type: ignore[no-any-return]
    program.readers()
    kernel = program.kernel
    known = {id(x): x for x in nodes}
    joins: dict[int, Join] = {}
    for join in found_joins:
        if all(type(known[kernel[id(u)]]) is Map for u in users.get(id(join.top), ())):
            joins[id(join.top)] = join
    if not joins:
        return outputs  # type: ignore[no-any-return]
    # The kernels that read each, all of which have to be split.
    read_by: dict[int, set[int]] = {key: {kernel[id(u)] for u in users.get(key, ())} for key in joins}
    roots = {k for found in read_by.values() for k in found}
    boxes: dict[int, list[tuple[Range, ...]]] = {}
    for k in roots:
        found = _boxes(known[k], joins, kernel)
        if found is not None:
            boxes[k] = found
    # (A kernel that also reads a join which stays may as well be left alone.)
    while True:
        kept = {key for key, found in read_by.items() if found <= boxes.keys()}
        going = [k for k in boxes if not any(k in read_by[key] for key in kept)]
        going += [k for k in boxes if any(k in found and key not in kept for key, found in read_by.items())]
        if not going:
            break
        for k in going:
            boxes.pop(k, None)
    steps = sum([len(b) - 1 for b in boxes.values()]) - sum([len(joins[key].slabs) for key in kept])
    if not boxes or steps * KERNEL > sum([2 * joins[key].top.nbytes for key in kept]):
        return outputs  # type: ignore[no-any-return]
    chosen = {key: joins[key] for key in kept}
    made: dict[int, Node] = {}
    late = _Late(nodes)
    for x in nodes:
        operands = tuple([made[id(a)] for a in x.operands])
        new: Node = x
        if any(a is not b for a, b in zip(operands, x.operands, strict=True)):
            new = placed_as(x, x.rebuilt(operands))
        if id(x) in boxes:
            joined = empty_node(x.shape, x.dtype)
            strides = c_strides(x.shape, x.dtype)
            pieces = []
            for box in boxes[id(x)]:
                value = placed_as(x, _within(x, box, chosen, kernel, kernel[id(x)], made, {}))
                pieces.append((late.of(value), box, value))
            # (What messages are waited for comes last.)
            for _, box, value in sorted(pieces, key=lambda piece: piece[0]):
                shape = tuple([n for _, n in box])
                offset = sum([i * s for (i, _), s in zip(box, strides, strict=True)])
                joined = placed_as(x, update_node(joined, offset, shape, strides, x.dtype, value))
            new = joined
        made[id(x)] = new
    return tuple([made[id(x)] for x in outputs])


def _join(update: Any, users: dict[int, list[Node]], is_output: set[int]) -> Join | None:
    """The slabs that lie in memory, of which a value consists that elementwise operations read."""
    slabs = [update]
    while True:
        following = [u for u in users.get(id(update), ()) if type(u) is Update and u.operands[0] is update]
        if not following:
            break
        if len(users[id(update)]) > 1:
            return None
        update = following[0]
        slabs.append(update)
    if id(update) in is_output or len(slabs) < 2:
        return None
    if not all(type(u) is Map or (type(u) is Part and not u.table) for u in users.get(id(update), ())):
        return None
    shape, dtype = update.shape, update.dtype
    if any(u.part_dtype != dtype or type(u.value) is Map for u in slabs):
        return None
    limits = [bounds(Region(u), shape, dtype) for u in slabs]
    for axis, n in enumerate(shape):
        lines = sorted([(*b[axis], i) for i, b in enumerate(limits) if b is not None])
        if (
            len(lines) == len(slabs)
            and lines[0][0] == 0
            and lines[-1][1] == n - 1
            and all(a[1] + 1 == b[0] for a, b in itertools.pairwise(lines))
            and sum([u.part_size for u in slabs]) == update.size
        ):
            return Join(update, axis, [slabs[i] for _, _, i in lines], [a for a, _, _ in lines])
    return None


def _boxes(root: Any, joins: dict[int, Join], kernel: dict[int, int]) -> list[tuple[Range, ...]] | None:
    """The index ranges of a kernel in each of which it reads but one slab of each join."""
    ndim = len(root.shape)
    breaks: list[set[int]] = [{0} for _ in root.shape]
    stack, seen = [root], {id(root)}
    while stack:
        x = stack.pop()
        for a in x.operands:
            if id(a) in seen:
                continue
            seen.add(id(a))
            if type(a) is Map and kernel[id(a)] == id(root):
                stack.append(a)
                continue
            join = joins.get(id(a.operands[0] if type(a) is Part else a))
            if join is None:
                continue
            top = join.top
            offset, strides = (a.offset, a.strides) if type(a) is Part else (0, c_strides(a.shape, a.dtype))
            dims = list(zip(top.shape, c_strides(top.shape, top.dtype), strict=True))
            found = decomposed(offset, a.shape, strides, dims)
            if found is None or a.dtype != top.dtype:
                return None
            start, moves, _ = found
            if sum([any(d == join.axis for d, _ in move) for move in moves]) > 1:
                return None  # (along a diagonal: in no range of indices does it read one slab)
            for e, move in enumerate(moves):
                for d, k in move:
                    if d != join.axis:
                        continue
                    if abs(k) != 1:
                        return None
                    at = e + ndim - len(a.shape)
                    places = [b - start[d] if k > 0 else start[d] - b + 1 for b in join.starts[1:]]
                    breaks[at].update([p for p in places if 0 < p < root.shape[at]])
    count = 1
    for b in breaks:
        count *= len(b)
    if count > MOST_BOXES or count < 2:
        return None
    lines = []
    for b, n in zip(breaks, root.shape, strict=True):
        places = [*sorted(b), n]
        lines.append([(i, j - i) for i, j in itertools.pairwise(places)])
    return list(itertools.product(*lines))


def _within(
    x: Any,
    box: tuple[Range, ...],
    joins: dict[int, Join],
    kernel: dict[int, int],
    root: int,
    made: dict[int, Node],
    seen: dict[int, Node],
) -> Node:
    """An operation within a range of its indices."""
    found = seen.get(id(x))
    if found is not None:
        return found
    args: list[Any] = []
    for a in x.args:
        if isinstance(a, Node):
            # (Operands are aligned at their last dimensions, and stretch where they have but one element.)
            own = tuple(
                [r if n > 1 else (0, 1) for r, n in zip(box[len(box) - len(a.shape) :], a.shape, strict=True)]
            )
            if type(a) is Map and kernel[id(a)] == root:
                a = _within(a, own, joins, kernel, root, made, seen)
            else:
                a = _read(a, own, joins, made)
        args.append(a)
    result = map_node(x.sig, tuple(args), tuple([n for _, n in box]))
    result.line = result.line or x.line
    seen[id(x)] = result
    return result


def _read(a: Any, box: tuple[Range, ...], joins: dict[int, Join], made: dict[int, Node]) -> Node:
    """What a value in memory, or a part of one, holds within a range of indices."""
    from mirabelle.arraytypes.programs.traced import stretched

    source, offset, strides, table = a, 0, c_strides(a.shape, a.dtype), False
    if type(a) is Part:
        source, offset, strides, table = a.operands[0], a.offset, a.strides, a.table
    offset += sum([i * s for (i, _), s in zip(box, strides, strict=True)])
    shape = tuple([n for _, n in box])
    join = joins.get(id(source))
    asked: Any = part_node(source, offset, shape, strides, a.dtype, table)
    if join is None:
        return part_node(made[id(source)], offset, shape, strides, a.dtype, table)
    if asked is source:
        asked = Region(join.top)
    for slab in join.slabs:
        place = place_written(asked, slab)
        if place is not None:
            value = stretched(made[id(slab.value)], slab.part_shape)
            inner: Any = part_node(value, *place, a.dtype)
            if type(inner) is Part and type(inner.operands[0]) is Part:
                inner = composed(inner, inner.operands[0]) or inner
            return inner  # type: ignore[no-any-return]
    raise AssertionError("a part of a join that lies in none of its slabs")
