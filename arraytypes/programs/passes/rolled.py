"""Unrolled loops whose turns do not depend on each other, as one operation over one more dimension.

    for i in range(n):
        for j in range(m):
            out[:, i, j] = mb.sum(x[:, i : i + 3, j : j + 3] * w, axis=(1, 2))

is captured as n * m writes. Each writes the same tree to the same kind of part, and what it reads and writes
moves by the same distance from turn to turn: so it is one write of one tree over all turns.
"""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.programs.graph import (
    Fold,
    Map,
    Node,
    Part,
    Update,
    fold_node,
    map_node,
    number_key,
    ordered,
    part_node,
    placed_as,
    update_node,
    users_of,
)

# From so many turns on, and trees of no more operations: values that are used again and again are written
# down as often, so that what is larger is not even looked at.
FEWEST, LARGEST = 4, 200


def rolled(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """The graph with writes that follow one another, and are alike, as one."""
    nodes = ordered(outputs)
    if sum(isinstance(x, Update) for x in nodes) < FEWEST:
        return outputs
    users = users_of(nodes)
    kept = {id(x) for x in outputs}
    chains = _chains(nodes, users, kept)
    # The last write of a run → the write that replaces all of it.
    instead: dict[int, Node] = {}
    for chain in chains:
        for run in _runs(chain):
            made = _as_one(run)
            if made is not None:
                instead[id(run[-1].update)] = placed_as(run[-1].update, made)
    if not instead:
        return outputs
    return _replaced(outputs, instead)


def _replaced(outputs: tuple[Node, ...], instead: dict[int, Node]) -> tuple[Node, ...]:
    """The graph with some nodes replaced by others, which read nodes of the old graph."""
    made: dict[int, Node] = {}
    stack = list(reversed(outputs))
    while stack:
        x = stack[-1]
        if id(x) in made:
            stack.pop()
            continue
        source = instead.get(id(x), x)
        missing = [a for a in source.operands if id(a) not in made]
        if missing:
            stack += missing
            continue
        operands = tuple([made[id(a)] for a in source.operands])
        same = all(a is b for a, b in zip(operands, source.operands, strict=True))
        made[id(x)] = source if same else placed_as(source, source.rebuilt(operands))
        stack.pop()
    return tuple([made[id(x)] for x in outputs])


class _Turn:
    """One write: what it is but for places (`form`), and the places (`offsets`, that written to first)."""

    __slots__ = ("form", "offsets", "update")

    def __init__(self, update: Update) -> None:
        self.update = update
        self.offsets = [update.offset]
        form: list[Any] = [update.part_shape, update.strides, update.part_dtype]
        _describe(update.value, form, self.offsets)
        self.form = tuple(form)


def _describe(x: Node, form: list[Any], offsets: list[int]) -> None:
    """Write down a tree, its leaves by what they are parts of, and their places apart."""
    if len(form) > LARGEST:
        return
    if isinstance(x, Map) and x.sig.op.nout == 1:
        form.append(("map", x.sig.id, x.shape, len(x.args)))
        for a in x.args:
            if isinstance(a, Node):
                _describe(a, form, offsets)
            else:
                form.append(number_key(a))
    elif isinstance(x, Fold):
        form.append(("fold", id(x.reduction), x.axes, x.keepdims, x.shape, x.dtype))
        _describe(x.operands[0], form, offsets)
    elif isinstance(x, Part) and not x.table:
        form.append(("part", id(x.source), x.shape, x.strides, x.dtype))
        offsets.append(x.offset)
    else:
        form.append(("node", id(x)))


def _chains(nodes: list[Node], users: dict[int, list[Node]], kept: set[int]) -> list[list[Update]]:
    """Writes that follow one another with nobody reading the values between."""
    chains: list[list[Update]] = []
    seen: set[int] = set()
    for x in nodes:
        if not isinstance(x, Update) or id(x) in seen:
            continue
        chain = [x]
        seen.add(id(x))
        last: Node = x
        while id(last) not in kept:
            readers = users.get(id(last), ())
            if len(readers) != 1 or not isinstance(readers[0], Update) or readers[0].base is not last:
                break
            last = readers[0]
            seen.add(id(last))
            chain.append(last)
        if len(chain) >= FEWEST:
            chains.append(chain)
    return chains


def _runs(chain: list[Update]) -> list[list[_Turn]]:
    """Stretches of a chain whose turns have one form and are not too large."""
    runs: list[list[_Turn]] = []
    current: list[_Turn] = []
    for update in chain:
        turn = _Turn(update)
        if len(turn.form) > LARGEST:
            current = []
            continue
        if current and turn.form == current[-1].form:
            current.append(turn)
        else:
            current = [turn]
            runs.append(current)
    return [run for run in runs if len(run) >= FEWEST]


def _as_one(run: list[_Turn]) -> Update | None:
    """One write for all turns; None where their places are not evenly spaced, or overlap."""
    loops = _loops([t.offsets for t in run])
    if loops is None:
        return None
    counts = tuple([n for n, _ in loops])
    first = run[0].update
    distances = [[step[i] for _, step in loops] for i in range(len(run[0].offsets))]
    shape = (*counts, *first.part_shape)
    strides = (*distances[0], *first.strides)
    if not _distinct(shape, strides, first.part_dtype.itemsize):
        return None
    rest = iter(distances[1:])
    value, moves = _widened(first.value, counts, rest)
    if moves:
        pad = len(shape) - len(value.shape)
        if pad:
            value = _with_ones(value, len(counts), pad)
    return update_node(first.base, first.offset, shape, strides, first.part_dtype, value)  # type: ignore[return-value]


def _loops(offsets: list[list[int]]) -> list[tuple[int, list[int]]] | None:
    """Nested loops (turns, how places move), the outermost first, that go through places in this order."""
    if len(offsets) == 1:
        return []
    step = [b - a for a, b in zip(offsets[0], offsets[1], strict=True)]
    n = 1
    while n < len(offsets) and all(
        b - a == s for a, b, s in zip(offsets[n - 1], offsets[n], step, strict=True)
    ):
        n += 1
    if len(offsets) % n:
        return None
    for i in range(0, len(offsets), n):
        for k in range(1, n):
            if any(b - a != s for a, b, s in zip(offsets[i + k - 1], offsets[i + k], step, strict=True)):
                return None
    if n == len(offsets):
        return [(n, step)]
    outer = _loops(offsets[::n])
    return None if outer is None or len(outer) > 2 else [*outer, (n, step)]


def _distinct(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Is no place written to twice? (Each stride is longer than all that the shorter ones reach.)"""
    reach = itemsize
    for s, n in sorted(zip(map(abs, strides), shape, strict=True)):
        if n == 1:
            continue
        if s < reach:
            return False
        reach += s * (n - 1)
    return True


def _widened(x: Node, counts: tuple[int, ...], distances: Any) -> tuple[Node, bool]:
    """A tree over all turns, and whether it differs from turn to turn."""
    lead = len(counts)
    if isinstance(x, Map) and x.sig.op.nout == 1:
        made = [_widened(a, counts, distances) if isinstance(a, Node) else (a, False) for a in x.args]
        if not any(moves for _, moves in made):
            return x, False
        args: list[Any] = []
        for a, (wide, moves) in zip(x.args, made, strict=True):
            if moves and len(a.shape) < len(x.shape):
                wide = _with_ones(wide, lead, len(x.shape) - len(a.shape))
            args.append(wide)
        return map_node(x.sig, tuple(args), (*counts, *x.shape)), True
    if isinstance(x, Fold):
        operand, moves = _widened(x.operands[0], counts, distances)
        if not moves:
            return x, False
        axes = tuple([a + lead for a in x.axes])
        return fold_node(x.reduction, operand, axes, x.keepdims, (*counts, *x.shape), x.dtype), True
    if isinstance(x, Part) and not x.table:
        steps = next(distances)
        if not any(steps):
            return x, False
        strides = (*steps, *x.strides)
        return part_node(x.source, x.offset, (*counts, *x.shape), strides, x.dtype), True
    return x, False


def _with_ones(x: Node, at: int, n: int) -> Node:
    """A value with `n` dimensions of one element put in before dimension `at`."""
    from mirabelle.arraytypes.programs.graph import c_strides

    shape = (*x.shape[:at], *[1] * n, *x.shape[at:])
    if isinstance(x, Part):
        strides = (*x.strides[:at], *[0] * n, *x.strides[at:])
        return part_node(x.source, x.offset, shape, strides, x.dtype)
    if isinstance(x, Map):
        args = []
        for a in x.args:
            if isinstance(a, Node):
                behind = len(x.shape) - at
                if len(a.shape) > behind:
                    a = _with_ones(a, len(a.shape) - behind, n)
            args.append(a)
        return map_node(x.sig, tuple(args), shape)
    return part_node(x, 0, shape, c_strides(shape, x.dtype), x.dtype)
