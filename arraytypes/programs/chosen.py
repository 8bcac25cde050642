"""What planning decided by itself, as a schedule: with it the same program is planned in the same way."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from mirabelle.arraytypes.cards import shown_bytes
from mirabelle.arraytypes.programs import graph
from mirabelle.arraytypes.programs.deciding import using
from mirabelle.arraytypes.programs.errors import file_text
from mirabelle.arraytypes.programs.graph import Node, Product, ordered
from mirabelle.arraytypes.programs.lateness import late
from mirabelle.arraytypes.programs.patterns import names_of, pattern_of
from mirabelle.arraytypes.programs.schedules import Decision, Schedule
from mirabelle.arraytypes.programs.steps import FoldStep, KernelStep, Step


def chosen_schedule(program: Any) -> Schedule:
    """All that is decided about a program: by its user, and by planning."""
    decided = program.decided
    with graph.undisturbed(), using(decided):
        decided.log = []
        try:
            plan, _ = program._planned()
            log = decided.log
        finally:
            decided.log = None
    where = _patterns(late(ordered(program.outputs)))
    found = [d for x, kept, readers, *cost in log for d in _shared(where, x, kept, readers, *cost)]
    # A value is read by the kernels of all its parts, and asked about for each.
    found += _fused(where, plan.steps)
    found += _products(program)
    found += _tiles(where, program)
    measured = {} if getattr(program, "_profile", None) is None else _measured(where, program)
    noted = [dataclasses.replace(d, note=_joined(d.note, measured.get(d.where[0], ""))) for d in found]
    return Schedule(tuple(decided.decisions)) + Schedule(tuple(dict.fromkeys(noted)))


def _patterns(nodes: list[Node]) -> dict[int, str]:
    """The pattern that is about a value and no other."""
    counts: dict[Any, int] = {}
    found: dict[int, str] = {}
    for x in nodes:
        place = None if x.line is None else (file_text(x.line[0]), x.line[1])
        for name in names_of(x)[:1]:
            turn = counts.get((place, name), 0)
            counts[place, name] = turn + 1
            if x.line is not None and name.isidentifier():
                found[id(x)] = pattern_of(x, turn)
    return found


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
