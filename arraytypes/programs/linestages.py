"""What each of the user's lines does in one fused kernel, and what it takes there.

A kernel that several lines share is thought of as growing by one line after the other: what a *stage* reads,
computes and stores beyond the stage before it is the line's. Bytes and operations follow from that; times are
measured, where somebody asks for them, by running a kernel of each stage beside the others on what the step
really reads.

>>> import mirabelle as mb
>>> def f(x, y):
...     w = mb.exp(x)
...     return w + y
>>> (step,) = mb.compiling.trace(f, mb.zeros(8), mb.zeros(8)).plan.steps
>>> [(work.read, work.written, work.flops) for work in works_of(step).values()]
[(64, 0, 8), (64, 64, 8)]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.programs.graph import Fold, Map, Node, Update, input_node, is_barrier
from mirabelle.arraytypes.programs.running import StepByStep
from mirabelle.arraytypes.programs.steps import (
    FoldStep,
    JoinedStep,
    KernelStep,
    Plan,
    Ref,
    Step,
    Storage,
    whole,
)
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.promotion import cast, intern, signature
from mirabelle.dispatch.schedule import SCALAR, Request

# A file and a number, or None where nobody knows.
Line = Any
# Of a kernel with more lines than this, those beyond it are one stage.
MOST_STAGES = 12


class Work:
    """What a line does in a step: bytes it reads and writes, operations, and what these cost in additions."""

    __slots__ = ("cost", "flops", "read", "written")

    def __init__(self, read: float = 0, written: float = 0, flops: float = 0, cost: float = 0) -> None:
        self.read = read
        self.written = written
        self.flops = flops
        self.cost = cost

    @property
    def moved(self) -> float:
        """Bytes read and written."""
        return self.read + self.written

    def __repr__(self) -> str:
        return f"<work: {self.read} B read, {self.written} B written, {self.flops} flops>"


def lines_of_operations(step: Any) -> list[Line]:
    """The user's line of each operation of a kernel, in the order of its request."""
    operations, tops = step.request.key
    lines: list[Line] = [None] * len(operations)
    known = [False] * len(operations)
    stack = list(zip(map(_value, step.nodes), tops, strict=False))[::-1]
    while stack:
        node, ref = stack.pop()
        while isinstance(node, Map) and is_barrier(node):
            node = node.args[0]
        if not (0 <= ref < len(operations)) or known[ref] or not isinstance(node, Map):
            continue
        known[ref], lines[ref] = True, node.line
        refs = operations[ref][1:]
        stack += [(a, r) for a, r in zip(node.args, refs, strict=False) if isinstance(a, Node)][::-1]
    return lines


def _value(node: Node) -> Node:
    """What a kernel computes for a node: of a write its value, of a reduction its operand."""
    if isinstance(node, Update):
        node = node.value
    return node.operands[0] if isinstance(node, Fold) else node


class Stages:
    """The lines of a kernel in the order in which it grows by them, and the stage of each operation."""

    def __init__(self, step: Any) -> None:
        self.step = step
        operations, tops = step.request.key
        of_operations = lines_of_operations(step)
        # The lines of what is stored: they write, and what is read only to be stored is theirs.
        self.storing = [x.line for x in step.nodes] or [None] * len(tops)
        order = {line: k for k, line in enumerate(dict.fromkeys([*of_operations, *self.storing]))}
        self.lines: list[list[Line]] = [[] for _ in range(min(len(order), MOST_STAGES))]
        for line, k in order.items():
            self.lines[min(k, MOST_STAGES - 1)].append(line)
        # An operation waits for its operands, whatever line they are of.
        self.ranks: list[int] = []
        for line, operation in zip(of_operations, operations, strict=True):
            before = [self.ranks[r] for r in operation[1:] if 0 <= r < SCALAR]
            self.ranks.append(max([min(order[line], MOST_STAGES - 1), *before]))
        self.tops = [self.ranks[t] if 0 <= t < SCALAR else self.stage_of(line) for t, line in self._outs()]

    def _outs(self) -> list[tuple[int, Line]]:
        tops = self.step.request.key[1]
        return list(zip(tops, self.storing, strict=False))

    def stage_of(self, line: Line) -> int:
        """The stage that a line is in."""
        return next(k for k, lines in enumerate(self.lines) if line in lines)

    def works(self) -> list[Work]:
        """What each stage does beyond the one before it."""
        step, request = self.step, self.step.request
        size = math.prod(request.shape)
        found = [Work() for _ in self.lines]
        first: dict[int, int] = {}
        for rank, operation in zip(self.ranks, request.key[0], strict=True):
            found[rank].flops += size
            found[rank].cost += size * max(operation[0].cost, 1)
            for r in operation[1:]:
                if r < 0:
                    first[-1 - r] = min(first.get(-1 - r, rank), rank)
        for (top, _), rank in zip(self._outs(), self.tops, strict=True):
            if top < 0:
                first.setdefault(-1 - top, rank)
        total = 0
        for k, work in enumerate(found):
            read = _read(step, [ref for j, ref in enumerate(request.leaves) if first.get(j, 0) <= k])
            work.read, total = read - total, read
        for dest, line in zip(step.dests, self.storing, strict=False):
            found[self.stage_of(line)].written += dest.nbytes
        for node in step.nodes if isinstance(step, FoldStep) else ():
            found[self.stage_of(node.line)].flops += size
            found[self.stage_of(node.line)].cost += size
        return found

    # Kernels of the stages

    def steps(self) -> list[Step]:
        """Kernels of what is known up to each stage; before those of elements one that only stores."""
        steps: list[Step] = []
        if isinstance(self.step, KernelStep):
            steps.append(self._made([], []))
        for k in range(len(self.lines) - 1):
            steps.append(self._upto(k))
        return [*steps, self._made(*self._whole())]

    def _whole(self) -> tuple[list[Any], list[int]]:
        operations, tops = self.step.request.key
        return list(operations), list(tops)

    def _upto(self, k: int) -> Step:
        operations, tops = self._whole()
        numbers: dict[int, int] = {}
        kept: list[Any] = []
        for i, operation in enumerate(operations):
            if self.ranks[i] <= k:
                numbers[i] = len(kept)
                kept.append((operation[0], *[numbers[r] if 0 <= r < SCALAR else r for r in operation[1:]]))
        later = {r for i, op in enumerate(operations) if self.ranks[i] > k for r in op[1:] if r in numbers}
        outs = [
            numbers.get(t, t if t < 0 and at <= k else SCALAR) for t, at in zip(tops, self.tops, strict=True)
        ]
        return self._made(kept, outs, [numbers[i] for i in sorted(later - set(tops))])

    def _made(self, operations: list[Any], outs: list[int], waiting: Sequence[int] = ()) -> Step:
        """A kernel of these operations; values that wait for later lines are added up in a result's place."""
        step, request = self.step, self.step.request
        scalars = [*request.scalars, 1.0]
        one = SCALAR + len(request.scalars)
        outs = outs or [SCALAR] * len(request.key[1])
        dtypes = self._dtypes()
        waits = list(waiting)
        for n, ref in enumerate(outs):
            if ref != SCALAR:
                continue
            dtype = dtypes[n]
            outs[n] = self._sum(operations, waits, dtype) if waits else -1
            waits = []
            if outs[n] == -1:
                weak = intern(TABLE["copy"], (dtype,), (dtype,))
                operations.append((weak, one))
                outs[n] = len(operations) - 1
        if waits:  # all results are there: the last of them has them added to it
            outs[-1] = self._sum(operations, [outs[-1], *waits] if outs[-1] >= 0 else waits, dtypes[-1])
        read = {r for op in operations for r in op[1:]} | set(outs)
        used = sorted(-1 - r for r in read if r < 0)
        numbers = sorted(r - SCALAR for r in read if r >= SCALAR)
        place = {-1 - j: -1 - n for n, j in enumerate(used)}
        place |= {SCALAR + j: SCALAR + n for n, j in enumerate(numbers)}
        key = (
            tuple([(op[0], *[place.get(r, r) for r in op[1:]]) for op in operations]),
            tuple([place.get(r, r) for r in outs]),
        )
        leaves = [request.leaves[j] for j in used]
        made = Request(key, leaves, [scalars[j] for j in numbers], request.shape, [])
        if isinstance(step, FoldStep):
            return FoldStep(step.nodes, made, step.axes, list(step.dests))
        return KernelStep([], made, list(step.dests))

    def _dtypes(self) -> list[np.dtype]:
        operations, tops = self.step.request.key
        leaves = self.step.request.leaves
        return [operations[t][0].out if 0 <= t < SCALAR else leaves[-1 - t].dtype for t in tops]

    def _sum(self, operations: list[Any], refs: Sequence[int], dtype: np.dtype) -> int:
        """Add up some values, as numbers of a dtype; returns where the sum is."""
        total = -1
        for ref in refs:
            source = operations[ref][0].out
            if source.kind == "c" and dtype.kind != "c":
                real = signature(TABLE["real"], (source,))
                operations.append((real, ref))
                source, ref = real.out, len(operations) - 1
            if source != dtype:
                operations.append((cast(source, dtype), ref))
                ref = len(operations) - 1
            if total >= 0:
                operations.append((signature(TABLE["add"], (dtype, dtype)), total, ref))
                ref = len(operations) - 1
            total = ref
        return total


def _read(step: Any, leaves: list[Ref]) -> int:
    """Bytes that a step would read with these operands alone."""
    request = Request(step.request.key, leaves, [], step.request.shape, [])  # type: ignore[arg-type]
    if isinstance(step, FoldStep):
        return FoldStep([], request, step.axes, step.dests).traffic[0]
    return KernelStep([], request, step.dests).traffic[0]


def works_of(step: Step) -> dict[Line, Work]:
    """What each line does in a step that is a kernel; what stages of several lines do is divided evenly."""
    found: dict[Line, Work] = {}
    if isinstance(step, JoinedStep):
        for member in step.members:
            for line, work in works_of(member).items():
                before = found.get(line, Work())
                found[line] = Work(
                    before.read + work.read,
                    before.written + work.written,
                    before.flops + work.flops,
                    before.cost + work.cost,
                )
        return found
    if not isinstance(step, (KernelStep, FoldStep)):
        return found
    stages = Stages(step)
    for lines, work in zip(stages.lines, stages.works(), strict=True):
        for line in lines:
            n = len(lines)
            found[line] = (
                Work(work.read / n, work.written / n, work.flops / n, work.cost / n) if n > 1 else work
            )
    return found


# Measuring


class Dissecting(StepByStep):
    """Runs a plan step by step and, at the steps of `wanted`, measures the stages of their kernels first.

    `shares` holds for each of these steps the part of its time that each line takes.
    """

    def __init__(self, inner: Any, plan: Plan, wanted: Sequence[int], times: int) -> None:
        super().__init__(inner, plan)
        self.wanted = set(wanted)
        self.times = times
        self.shares: dict[int, dict[Line, float]] = {}

    def step(self, step: Step, views: dict[int, Any]) -> None:
        wanted = step.number in self.wanted and not isinstance(step, JoinedStep)  # (it is estimated)
        if wanted and step.number not in self.shares:
            self.shares[step.number] = self.measured(step, views)
        super().step(step, views)

    def measured(self, step: Any, views: dict[int, Any]) -> dict[Line, float]:
        """The part of a kernel's time that each of its lines takes."""
        stages = Stages(step)
        kernels = stages.steps()
        # What it reads is there already; what it would write goes to memory beside it.
        given: dict[int, Storage] = {}
        inputs: list[Any] = []
        for ref in step.reads:
            s = ref.storage
            if s.number not in given:
                given[s.number] = _input(len(inputs), s.node)
                inputs.append(self.view(s, views))
        dests = []
        for ref in step.dests:
            node = input_node(len(inputs), ref.shape, ref.dtype, "result")
            dests.append(whole(_input(len(inputs), node)))
            inputs.append(self.inner._empty(ref.shape, ref.dtype))
        for number, kernel in enumerate(kernels):
            any_kernel: Any = kernel
            any_kernel.number = number
            any_kernel.dests = dests
            any_kernel.request.leaves = [_moved(r, given) for r in any_kernel.request.leaves]
        storages = [*given.values(), *[d.storage for d in dests]]
        for s in storages:
            s.used(0)
            s.used(len(kernels))
        plan = Plan([s.node for s in storages], kernels, storages, [])
        seconds = self.timed(plan, inputs)
        if not isinstance(step, KernelStep):
            seconds = [0.0, *seconds]
        return _shares(stages, seconds)

    def timed(self, plan: Plan, inputs: list[Any]) -> list[float]:
        """The seconds of each step of a plan, the least of all rounds."""
        from mirabelle.arraytypes.programs.reports import settle, timed_runner

        runner = timed_runner(plan, self.inner)
        for _ in range(3):
            runner.run(inputs)
            settle(plan, self.inner)
        least = [math.inf] * len(plan.steps)
        for _ in range(self.times):
            runner.run(inputs)
            for number, began, ended in runner.times:
                least[number] = min(least[number], ended - began)
        return [0.0 if x == math.inf else x for x in least]


def _input(index: int, node: Node) -> Storage:
    s = Storage(index, "input", node)
    s.index = index
    return s


def _moved(ref: Any, given: dict[int, Storage]) -> Any:
    return Ref(given[ref.storage.number], ref.offset, ref.shape, ref.strides, ref.dtype, ref.table)


def _shares(stages: Stages, seconds: Sequence[float]) -> dict[Line, float]:
    """Parts of the last stage's time: what each adds to the one before it; storing belongs to who stores."""
    whole_time = seconds[-1] or 1.0
    taken: dict[Line, float] = {}

    def add(lines: Sequence[Line], part: float) -> None:
        for line in lines:
            taken[line] = taken.get(line, 0.0) + max(part, 0.0) / len(lines)

    add(stages.storing, seconds[0] / whole_time)
    # A stage that seems quicker than one before it is as quick as that one: a clock's noise is nobody's time.
    before = seconds[0]
    for lines, after in zip(stages.lines, seconds[1:], strict=True):
        add(lines, (after - before) / whole_time)
        before = max(before, after)
    total = sum(taken.values()) or 1.0
    return {line: part / total for line, part in taken.items()}
