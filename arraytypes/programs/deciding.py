"""What is decided about the program that is being compiled, and what it makes of the graph.

Decisions come from a schedule (`schedules.py`), from hints in the program's text (`hints.py`) and from methods
of `decide`. Some change the graph before any pass: what is `store`d gets a barrier, what is kept in less
`precision` is rounded, loops are `unroll`ed. All others are told to the planner (`wanted.py`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.programs.errors import shown_line
from mirabelle.arraytypes.programs.graph import (
    MATERIALIZE,
    MESSAGES,
    Call,
    Fold,
    Map,
    Node,
    Part,
    Product,
    Result,
    Slot,
    is_barrier,
    map_node,
    ordered,
    placed_as,
    users_of,
    walked,
)
from mirabelle.arraytypes.programs.patterns import Finder, matches, parsed, pattern_of, tops
from mirabelle.arraytypes.programs.schedules import NARROWER, Decision, Schedule, ScheduleError
from mirabelle.arraytypes.programs.subgraphs import Subgraph, copied, deciding, in_order
from mirabelle.dispatch import promotion
from mirabelle.dispatch.generic import generic

# An unrolled loop has so many values at most.
MOST_UNROLLED = 10_000
# Decisions by keywords of hints, and what their values are called in a schedule.
OPTIONS = {
    "precision": "dtype",
    "library": "by",
    "tile": "rows",
    "threads": "most",
    "tag": "name",
    "axes": "roles",
}


@generic
def decide(node: Node) -> dict[str, Any] | None:
    """What is decided about a node of a graph, by its class: a dictionary of decisions, or None.

    Methods are given the nodes of every program that is compiled from then on, as they are captured and after
    all passes. Keys are the names of decisions as `mb.hint` has them; they hold where they can be carried out.

    Parameters
    ----------
    node : node
        A node of the graph.

    Returns
    -------
    dict or None
        What the method for this class of nodes returns, say `{"recompute": True}`; None decides nothing.
        There is no method to begin with.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle.arraytypes.programs.graph import Map
    >>> def large(node: Map):
    ...     return {"recompute": True} if node.label == "exp" else None
    >>> def f(x):
    ...     y = mb.exp(x)
    ...     return mb.sum(y[1:]), mb.sum(y)
    >>> with mb.override(mb.compiling.decide, (Map,), large):
    ...     len(mb.compile(f).program(mb.zeros(9)).plan.steps)
    2
    """


class Deciding:
    """The decisions about a program, and which of them have found what they are about."""

    def __init__(self, schedule: Schedule, name: str) -> None:
        self.name = name
        self.asked = tuple(schedule)
        self.hinted: list[Decision] = []
        # (decision, pattern) pairs that have found something.
        self.matched: set[tuple[Decision, str]] = set()
        # Values of the graph as it was captured, for what is said when nothing is found.
        self.captured: list[Node] = []
        # What passes made of products: (name of the expansion, the node it was).
        self.expanded: list[tuple[str, Node]] = []
        # How many loops have been written out.
        self.loops = 0
        # What planning decides by itself, if that is asked for.
        self.log: list[Any] | None = None

    @property
    def decisions(self) -> tuple[Decision, ...]:
        return (*self.asked, *dict.fromkeys(self.hinted))

    @property
    def active(self) -> bool:
        """Is anything decided at all? (Names and roles alone change nothing.)"""
        return (
            any(d.name not in ("tag", "axes") for d in (*self.asked, *self.hinted))
            or bool(decide.core.methods)
            or bool(decide.core.active_overrides)
        )

    @property
    def tags(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for d in self.decisions:
            if d.name == "tag":
                found[d.option("name")] = (*found.get(d.option("name"), ()), *d.where)
        return found

    def of(self, nodes: Sequence[Node], names: Iterable[str]) -> Iterator[tuple[Decision, list[Node]]]:
        """Decisions of these names, with the values of a graph that they are about."""
        wanted = set(names)
        finder = Finder(nodes, self.tags)
        for d in self.decisions:
            if d.name not in wanted:
                continue
            for pattern in d.where:
                if finder.found(pattern):
                    self.matched.add((d, pattern))
            yield d, finder.found(*d.where)
        yield from self.by_dispatch(nodes, wanted)

    def found(self, nodes: Sequence[Node], d: Decision, pattern: str) -> list[Node]:
        """The values of a graph that a further pattern of a decision is about."""
        made = Finder(nodes, self.tags).found(pattern)
        if made:
            self.matched.add((d, pattern))
        return made

    def by_dispatch(self, nodes: Sequence[Node], wanted: set[str]) -> Iterator[tuple[Decision, list[Node]]]:
        """What methods of `decide` say."""
        core = decide.core
        if not core.methods and not core.active_overrides:
            return
        asked: dict[type, bool] = {}
        for node in nodes:
            kind = type(node)
            if kind not in asked:
                asked[kind] = core.overriding((kind,)) is not None or core.resolve((kind,)) is not None
            for d in decisions_of(pattern_of(node), decide(node) or {}) if asked[kind] else ():
                if d.name in wanted:
                    yield d, [node]

    def expansion(self, node: Node) -> tuple[Decision, str] | None:
        """Which way a product is to be computed, if that is decided."""
        for d in self.decisions:
            for pattern in d.where if d.name == "library" else ():
                said = parsed(pattern)
                which = self.tags.get(said.tag, ()) if said.tag is not None else (pattern,)
                if any(matches(node, parsed(p)) for p in which):
                    self.matched.add((d, pattern))
                    return d, d.option("by")
        for d, _ in self.by_dispatch((node,), {"library"}):
            return d, d.option("by")
        return None

    def refused(self, decision: Decision, why: str) -> ScheduleError:
        """The error for a decision that cannot be carried out."""
        return ScheduleError(f"{decision!r} cannot be carried out in {self.name}(): {why}")

    def check(self, nodes: Sequence[Node]) -> None:
        """Say which decision of a schedule is about nothing."""
        for d in self.asked:
            for pattern in (*d.where, *filter(None, (d.option("before"),))):
                if (d, pattern) in self.matched or d.name == "tag":
                    continue
                if d.name == "axes":
                    found = Finder(nodes, self.tags).found(pattern)
                    if found and all(x.ndim != len(d.option("roles")) for x in found):
                        many = len(d.option("roles"))
                        why = f"{_place(found[0])} has {found[0].ndim} axes, and these are {many} roles."
                        raise self.refused(d, why)
                    if found:
                        continue
                one = Decision(d.name, (pattern,), d.options) if pattern in d.where else d
                if d.name == "library" and Finder(self.captured, self.tags).found(pattern):
                    why = "there is no matrix product, and no sum of products, whose way could be chosen."
                    raise self.refused(
                        one, f"in {_place(Finder(self.captured, self.tags).found(pattern)[0])} {why}"
                    )
                if Finder(self.captured, self.tags).found(pattern):
                    said = shown_line(Finder(self.captured, self.tags).found(pattern)[0].line)
                    raise self.refused(
                        one,
                        f"what {said} computes is no value of the program after all passes: it is left out, "
                        "computed when the program is compiled, or part of another operation. "
                        "`store(...)` keeps it as it stands.",
                    )
                raise ScheduleError(
                    f"{one!r} matches nothing in {self.name}(): {_there(self.captured or nodes)}"
                )

    def computed_again(self, nodes: Sequence[Node], counted: bool) -> tuple[set[int], set[int]]:
        """The values that each reader is to compute again, and those that are computed once. Those that a
        pattern has `counted` are known after all passes."""
        again: set[int] = set()
        once: set[int] = set()
        if self.active:
            for d, found in self.of(nodes, ("recompute", "once")):
                if not counted and any(parsed(p).turn is not None for p in d.where):
                    continue
                (again if d.name == "recompute" else once).update([id(x) for x in found])
            if any(d.name == "precision" for d in self.decisions):
                again |= {id(x) for x in nodes if x.label == "cast" and is_barrier(x.operands[0])}
        return again, once

    def located(self) -> Schedule:
        """The decisions with the lines that texts and tags stand for: sources are not where a file is read."""
        finder = Finder(self.captured, self.tags)

        def places(patterns: Iterable[str]) -> tuple[str, ...]:
            found: dict[str, None] = {}
            for pattern in patterns:
                said = parsed(pattern)
                text = said.text is not None or said.tag is not None
                for p in [pattern_of(x) for x in finder.found(pattern)] if text else (pattern,):
                    found[p] = None
            return tuple(found)

        def options(d: Decision) -> tuple[tuple[str, Any], ...]:
            before = d.option("before")
            return d.options if before is None else (("before", next(iter(places((before,))), before)),)

        made = [Decision(d.name, places(d.where), options(d)) for d in self.decisions if d.name != "tag"]
        return Schedule(tuple(made))

    # The graph before passes

    def rewritten(self, outputs: tuple[Node, ...]) -> tuple[Node, ...]:
        """The graph with what is decided about it as values: barriers, roundings, unrolled loops."""
        if self.asked:
            self.captured += ordered(outputs)
        if not self.active:
            return outputs
        outputs = self._unrolled(outputs)
        nodes = ordered(outputs)
        users = users_of(nodes)
        wraps: dict[int, list[Callable[[Node], Node]]] = {}
        for d, found in self.of(nodes, ("store", "separate", "precision")):
            for x in tops(found, users):
                if d.name == "precision":
                    wraps.setdefault(id(x), []).append(self._rounding(d, x))
                elif x.bound and _may_wait(x) and not any(is_barrier(u) for u in users.get(id(x), ())):
                    wraps.setdefault(id(x), []).append(barrier)
        return _wrapped(outputs, wraps) if wraps else outputs

    def _rounding(self, d: Decision, x: Node) -> Callable[[Node], Node]:
        narrow = np.dtype(d.option("dtype"))
        if narrow.name not in NARROWER.get(x.dtype.name, ()) or not isinstance(
            x, (Map, Part, Fold, Product, Result)
        ):
            what = "is written into an array" if x.dtype != narrow and x.label == "update" else "is"
            raise self.refused(
                d,
                f"{_place(x)} {what} {x.dtype.name}, and {narrow.name} is no narrower dtype of that kind that "
                "a new value can be stored as.",
            )
        return lambda value: _cast(barrier(_cast(value, narrow)), value.dtype)

    def _unrolled(self, outputs: tuple[Node, ...]) -> tuple[Node, ...]:
        if not any(d.name == "unroll" for d in self.decisions):
            return outputs
        for _ in range(MOST_UNROLLED):
            nodes = ordered(outputs)
            for d, found in self.of(nodes, ("unroll",)):
                behind = [x.operands[0] if isinstance(x, Result) else x for x in found]
                loops = [x for x in behind if isinstance(x, Call) and x.kind in ("for", "while")]
                if loops:
                    outputs = self._without(d, loops[0], outputs)
                    break
                if found and not self.loops:
                    raise self.refused(d, f"{_place(found[0])} is no loop of the program.")
            else:
                return outputs
        return outputs

    def _without(self, d: Decision, call: Call, outputs: tuple[Node, ...]) -> tuple[Node, ...]:
        """The graph with one loop written out."""
        (loop, slots), _ = call.template
        where = _place(call)
        if loop.trips is None:
            raise self.refused(
                d, f"how many trips the loop in {where} has is only known when the program runs."
            )
        inside = in_order(loop.outputs, lambda x: x.operands)
        if loop.trips * len(inside) > MOST_UNROLLED:
            raise self.refused(
                d,
                f"{loop.trips} trips of the loop in {where} are {loop.trips * len(inside)} values, and at most "
                f"{MOST_UNROLLED} are written out.",
            )
        if any(isinstance(x, Call) and x.kind in MESSAGES for x in inside):
            raise self.refused(d, f"the loop in {where} sends messages, which stay in the order of its trips.")
        given = [call.operands[slot.number] if isinstance(slot, Slot) else slot for slot in slots]
        n = len(loop.outputs)
        state, rest = given[:n], given[n:]
        for _ in range(loop.trips):
            values = {id(x): y for x, y in zip(loop.inputs, [*state, *rest], strict=True)}
            state = list(copied(loop.outputs, values))
        for x in in_order(state, lambda x: x.operands if x.serial > call.serial else ()):
            x.serial = min(x.serial, call.serial)  # (they have the loop's place in the program)
        self.loops += 1
        results = [r for r in ordered(outputs) if isinstance(r, Result) and r.operands[0] is call]
        return _wrapped(outputs, {id(r): [_always(state[r.number])] for r in results})

    # Graphs within the graph

    def inside(self, nodes: Iterable[Node], inner: Any) -> None:
        """Plan what loops and branches do, so that decisions about these are carried out, or refused."""
        if self.active:
            for inside, owned in graphs_inside(nodes, inner):
                inside.runner(inner, owned)


def graphs_inside(nodes: Iterable[Node], inner: Any) -> Iterator[tuple[Subgraph, dict[int, int] | None]]:
    """The graphs within a graph, and which of their inputs their outputs are the new contents of."""
    from mirabelle.arraytypes.programs.loops import Branches, Loop

    for node in nodes:
        for x in walked(node.template) if isinstance(node, Call) else ():
            if isinstance(x, Loop):
                yield x.steps, x.owned if inner._runs_in_place else None
                if x.condition is not None:
                    yield x.tests, None
            elif isinstance(x, Branches):
                yield x.if_true, None
                yield x.if_false, None


def decisions_of(pattern: str, keywords: Any) -> Schedule:
    """Decisions about one value, as keywords say them."""
    made = Schedule()
    for name, value in dict(keywords).items():
        if value is None or value is False:
            continue
        if name not in (*_PLAIN, *OPTIONS):
            raise TypeError(
                f"There is no decision {name!r} about a value; there are {', '.join((*_PLAIN, *OPTIONS))}."
            )
        if name in _PLAIN and value is not True:
            raise TypeError(f"{name} is decided by {name}=True, not {value!r}.")
        options = {OPTIONS[name]: value} if name in OPTIONS else {}
        made = getattr(made, name)(pattern, **options)
    return made


_PLAIN = ("store", "once", "recompute", "separate", "own_memory", "in_place", "unroll")


@contextlib.contextmanager
def using(decisions: Deciding | None) -> Iterator[None]:
    """Within the block, this is decided about the program that is being compiled."""
    token = deciding.set(decisions)
    try:
        yield
    finally:
        deciding.reset(token)


def barrier(value: Node) -> Node:
    """The value as one that a kernel of its own stores."""
    return map_node(promotion.signature(MATERIALIZE, (value.dtype,)), (value,), value.shape)


def _cast(value: Node, dtype: np.dtype) -> Node:
    return map_node(promotion.cast(value.dtype, dtype), (value,), value.shape)


def _may_wait(x: Node) -> bool:
    """Is it a value that lies in no memory by itself?"""
    return (isinstance(x, Map) and x.sig.op.nout == 1 and not is_barrier(x)) or (
        isinstance(x, Part) and not x.table
    )


def _always(made: Node) -> Callable[[Node], Node]:
    return lambda _: made


def _wrapped(outputs: tuple[Node, ...], wraps: dict[int, list[Callable[[Node], Node]]]) -> tuple[Node, ...]:
    """The graph with some values replaced by what is made of them, for all that read them."""
    changed: dict[Node, Node] = {}
    for node in ordered(outputs):
        moved = node
        if changed and not changed.keys().isdisjoint(node.operands):
            moved = placed_as(node, node.rebuilt(tuple([changed.get(x, x) for x in node.operands])))
        for wrap in wraps.get(id(node), ()):
            moved = placed_as(node, wrap(moved))
        if moved is not node:
            changed[node] = moved
    return tuple([changed.get(x, x) for x in outputs])


def _place(x: Node) -> str:
    return shown_line(x.line) if x.line is not None else f"the argument {x.label}"


def _there(nodes: Iterable[Node]) -> str:
    """What there is to decide about."""
    lines = sorted({x.line[1] for x in nodes if x.line is not None})
    names = sorted({x.label for x in nodes if x.label not in ("part", "empty", "data")})
    said = f"its lines are {lines[0]} to {lines[-1]}" if lines else "it has no lines"
    return f"{said}, and its values {', '.join(names[:12]) or 'none'}{', ...' if len(names) > 12 else ''}."


__all__ = ["Deciding", "decide", "decisions_of", "using"]
