"""What planning decided by itself, as a schedule: with it the same program is planned in the same way."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

from mirabelle.arraytypes.cards import shown_bytes
from mirabelle.arraytypes.programs import graph
from mirabelle.arraytypes.programs.deciding import graphs_inside, using
from mirabelle.arraytypes.programs.errors import file_text
from mirabelle.arraytypes.programs.graph import Node, Product, ordered
from mirabelle.arraytypes.programs.lateness import late
from mirabelle.arraytypes.programs.patterns import names_of, pattern_of
from mirabelle.arraytypes.programs.schedules import Decision, Schedule
from mirabelle.arraytypes.programs.steps import FoldStep, KernelStep, Plan, Step


class _Planned(NamedTuple):
    """A graph as it is planned: its nodes, the plan, and what was decided about values that are read again."""

    nodes: list[Node]
    plan: Plan
    log: list[Any]


def chosen_schedule(program: Any) -> Schedule:
    """All that is decided about a program: by its user, and by planning."""
    decided = program.decided
    with graph.undisturbed(), using(decided):
        graphs = list(_graphs(program))
    where = _patterns([g.nodes for g in graphs])
    found: list[Decision] = []
    for g in graphs:
        found += [d for x, kept, readers, *cost in g.log for d in _shared(where, x, kept, readers, *cost)]
        found += _fused(where, g.plan.steps)
    found += _products(program)
    found += _tiles(where, program)
    measured = {} if getattr(program, "_profile", None) is None else _measured(where, program)
    noted = [dataclasses.replace(d, note=_joined(d.note, measured.get(d.where[0], ""))) for d in found]
    return Schedule(tuple(decided.decisions)) + Schedule(tuple(dict.fromkeys(noted)))


def _graphs(program: Any) -> Iterator[_Planned]:
    """The graph of a program, and those of loops and branches within, planned once more."""
    decided, inner = program.decided, program.inner
    decided.log = []
    try:
        plan, _ = program._planned()
        pending = [_Planned(late(ordered(program.outputs)), plan, decided.log)]
        while pending:
            g = pending.pop()
            yield g
            for inside, owned in graphs_inside(g.nodes, inner):
                inside.decided = decided  # (None, if it is planned when it first runs)
                decided.log = []
                outputs, plan = inside.planned(owned)
                pending.append(_Planned(late(ordered(outputs)), plan, decided.log))
    finally:
        decided.log = None


def _patterns(graphs: list[list[Node]]) -> dict[int, str]:
    """The pattern that is about a value and no other: none, where several graphs have such values."""
    found: dict[int, str] = {}
    graph_of: dict[Any, int] = {}
    for number, nodes in enumerate(graphs):
        counts: dict[Any, int] = {}
        for x in nodes:
            name = names_of(x)[0]
            key = (None, name) if x.line is None else _key(x)
            turn = counts.get(key, 0)
            counts[key] = turn + 1
            if x.line is not None and name.isidentifier() and graph_of.setdefault(key, number) == number:
                found[id(x)] = pattern_of(x, turn)
            else:
                graph_of[key] = -1
    ours = {id(x): x for nodes in graphs for x in nodes}
    return {key: p for key, p in found.items() if graph_of[_key(ours[key])] >= 0}


def _key(x: Node) -> Any:
    return (file_text(x.line[0]), x.line[1]), names_of(x)[0]


def _shared(
    where: dict[int, str], x: Node, kept: bool, readers: int, cost: float, leaves: float
) -> Iterator[Decision]:
    """A value that several kernels need, or larger ones: is it stored?"""
    pattern = where.get(id(x))
    if pattern is None:
        return
    size = x.nbytes
    again = shown_bytes(round((readers - 1) * (cost + leaves) * size))
    once = shown_bytes((readers + 1) * size)
    note = f"{readers} read it: computing it again is worth moving {again}, storing it {once}"
    if readers < 2:
        note = "it is costly, and smaller than what reads it"
    yield Decision("once" if kept else "recompute", (pattern,), (), note)


def _fused(where: dict[int, str], steps: list[Step]) -> Iterator[Decision]:
    """What one kernel computes, of values in memory."""
    for step in steps:
        names = [where.get(id(x)) for x in step.nodes]
        if isinstance(step, (KernelStep, FoldStep)) and len(names) > 1 and None not in names:
            read, written = step.traffic
            alone = f"{len(names)} results from {shown_bytes(read)} read, {shown_bytes(written)} written"
            yield Decision("fuse", tuple(map(str, names)), (), alone)


def _products(program: Any) -> Iterator[Decision]:
    """How products are computed; where a line has several, and not all in one way, nothing is said."""
    chosen: dict[str, set[str]] = {}
    flops: dict[str, int] = {}
    asked = {pattern for d in program.decided.decisions if d.name == "library" for pattern in d.where}
    done = [("library", x) for x in program.graph if isinstance(x, Product)]
    for by, x in [*program.decided.expanded, *done]:
        if x.line is None:
            continue
        pattern = pattern_of(x)
        chosen.setdefault(pattern, set()).add(by)
        inner = x.operands[0].shape[-1] if isinstance(x, Product) and x.operands[0].shape else 1
        flops[pattern] = flops.get(pattern, 0) + 2 * inner * x.size
    for pattern, ways in chosen.items():
        if len(ways) == 1 and not asked:
            yield Decision("library", (pattern,), (("by", min(ways)),), f"{flops[pattern]} flops")


def _tiles(where: dict[int, str], program: Any) -> Iterator[Decision]:
    """The rows of slabs, where the host has made some."""
    from mirabelle.arraytypes.programs.reports import slab_rows

    for number, rows in slab_rows(program.runner).items():
        step = program.plan.steps[number]
        pattern = next((where[id(x)] for x in step.nodes if id(x) in where), None)
        if pattern is not None:
            yield Decision("tile", (pattern,), (("rows", rows),), f"of {step.request.shape[0]}")


def _measured(where: dict[int, str], program: Any) -> dict[str, str]:
    """What the last profile says of the steps that compute values."""
    from mirabelle.arraytypes.programs.explaining import shown_seconds

    found: dict[str, str] = {}
    for step, timed in zip(program.plan.steps, program._profile.steps, strict=True):
        for x in step.nodes:
            if timed.runs and id(x) in where:
                said = f"measured {shown_seconds(timed.seconds / timed.runs)}"
                found[where[id(x)]] = found[pattern_of(x)] = said
    return found


def _joined(*notes: str) -> str:
    return ", ".join(filter(None, notes))
