"""Kernels of unlike sizes that are one launch.

    flux(inner), flux(wall), flux(inflow)

are three kernels over three index spaces, of which those of boundaries are small: what launching each takes is
more than what it does. Kernels that need nothing of each other are one `JoinedStep` if they do the same, or if
what they make is put together into one array. Each reads its own operands and writes its own results where
these are: nothing is copied to be next to something else. A card runs one grid, in which the blocks of one
member follow those of another; threads of the host meet once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from mirabelle.arraytypes.programs.passes.geometry import apart
from mirabelle.arraytypes.programs.steps import (
    CopyStep,
    FoldStep,
    JoinedStep,
    KernelStep,
    Plan,
    ProductStep,
    Ref,
    Step,
)
from mirabelle.dispatch.ops import TABLE

# What moves more bytes than that together takes longer than launches do (2 µs, or 6 MB at 3 TB/s, each on a
# card), and on the host what is in the caches is worth more.
LAUNCH_BYTES = 1 << 20
# A kernel is put among those before it, past so many steps at most: what it makes is in memory for longer.
WINDOW = 24
# More members, or more operands, are more parameters than a card's kernel takes.
MOST_MEMBERS, MOST_OPERANDS = 16, 160


def joined(steps: Sequence[Step], apart_from: Iterable[int] = ()) -> list[Step]:
    """The steps with kernels that may be one launch together, numbered anew.

    `apart_from` are the ids of values whose kernels are to be launches of their own.

    >>> import mirabelle as mb
    >>> def f(a, b): return mb.sin(a) + 1, mb.sin(b) + 1
    >>> [type(step).__name__ for step in mb.compile(f).program(mb.zeros(9), mb.zeros(4)).plan.steps]
    ['JoinedStep']
    """
    alone = set(apart_from)
    found: list[list[Step]] = []  # steps in order, those of one launch together
    sizes: list[tuple[int, int]] = []  # their operands, and the bytes they move
    latest: dict[Any, int] = {}
    for step in steps:
        size = _size(step, alone)
        keys = [] if size is None else _keys(step)
        for at in sorted({latest[key] for key in keys if key in latest}, reverse=True):
            operands, nbytes = [a + b for a, b in zip(sizes[at], size or (), strict=True)]
            small = operands <= MOST_OPERANDS and nbytes <= LAUNCH_BYTES
            if small and len(found) - at <= WINDOW and _may_join(step, found, at):
                found[at].append(step)
                sizes[at] = operands, nbytes
                break
        else:
            at = len(found)
            found.append([step])
            sizes.append(size or (0, 0))
        latest.update(dict.fromkeys(keys, at))
    made: list[Step] = []
    for members in found:
        step = members[0]
        if len(members) > 1:
            for member in members:
                member.number = -1  # (it is none of the plan's)
            step = JoinedStep(members)  # type: ignore[arg-type]
        step.number = len(made)
        made.append(step)
    return made


def _size(step: Step, alone: set[int]) -> tuple[int, int] | None:
    """How many operands and bytes a kernel takes that may be one launch with others; None of other steps."""
    if (
        type(step) is not KernelStep
        or not step.request.key[0]
        or step.does_nothing
        or any(_is_users(sig.op) for sig, *_ in step.request.key[0])
        or not alone.isdisjoint(map(id, step.nodes))
    ):
        return None
    nbytes = sum(step.traffic)
    operands = len(step.dests) + len(step.reads) + len(step.request.scalars)
    return None if nbytes > LAUNCH_BYTES else (operands, nbytes)


def _keys(step: Any) -> list[Any]:
    """What kernels that may be one launch have in common: what they do, or where their results are."""
    form = step.request.key, *[r.dtype.num for r in (*step.dests, *step.reads)]
    return [form, *dict.fromkeys([r.storage.number for r in step.dests if not r.covers])]


def _is_users(op: Any) -> bool:
    """Is it a function of a user's? (It may raise, and those before it are to be done then.)"""
    return op.scalar is not None and TABLE.get(op.name) is not op


def _may_join(step: Any, found: list[list[Step]], at: int) -> bool:
    """Can a kernel be run with those at a place before it?"""
    members = found[at]
    if len(members) >= MOST_MEMBERS:
        return False
    if any(not _may_pass(step, m) for m in members):
        return False
    between = itertools.chain.from_iterable(itertools.islice(found, at + 1, None))
    return all(type(x) in _PASSED and _may_pass(step, x) for x in between)


# What a kernel may be run before. (Messages leave as early as the program says, and what a library does with
# its operands it says by results alone.)
_PASSED = (KernelStep, FoldStep, CopyStep, ProductStep)


def _may_pass(step: Step, other: Step) -> bool:
    """Do two steps need nothing of each other, and write nowhere where the other reads or writes?"""
    reads, writes = other.reads, other.writes
    return not (_meet(step.reads, writes) or _meet(step.writes, (*reads, *writes)))


def _meet(some: Sequence[Ref], others: Sequence[Ref]) -> bool:
    for a in some:
        for b in others:
            if a.storage is b.storage and (a.table or b.table or not apart(a, b)):
                return True
    return False


def singly(steps: Sequence[Step]) -> list[Step]:
    """The steps with the kernels of joint launches one by one."""
    return [x for step in steps for x in (step.members if isinstance(step, JoinedStep) else (step,))]


def taken_apart(plan: Plan) -> None:
    """Let each kernel of a plan be a step of its own again, for who divides kernels among processes."""
    if not any(isinstance(step, JoinedStep) for step in plan.steps):
        return
    steps = singly(plan.steps)
    for s in plan.storages:
        s.first, s.last = 1 << 60, -1
    for number, step in enumerate(steps):
        step.number = number
        for ref in (*step.reads, *step.writes):
            ref.storage.used(number)
    plan.steps = steps


__all__ = ["joined", "singly", "taken_apart"]
