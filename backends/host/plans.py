"""Compiled programs on the host: the steps between library calls are task lists, which run natively.

Kernels are compiled by the helper process, as those of ordinary statements are. Until all are there a program
is run step by step.
"""

from __future__ import annotations

import functools
import operator
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mirabelle.arraytypes import pool
from mirabelle.arraytypes.dense import evaluated
from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.programs import calls
from mirabelle.arraytypes.programs.building import Library, builder
from mirabelle.arraytypes.programs.graph import c_strides
from mirabelle.arraytypes.programs.memory import lodgings
from mirabelle.arraytypes.programs.running import StepByStep, delivered, in_c_order, plan_runner, strided
from mirabelle.arraytypes.programs.steps import (
    CallStep,
    CopyStep,
    FoldStep,
    JoinedStep,
    KernelStep,
    OutsideStep,
    Plan,
    ProductStep,
    Ref,
    Step,
    counted,
)
from mirabelle.backends.codegen.program import Program, program_for
from mirabelle.backends.codegen.source import Layout
from mirabelle.backends.host import kernels, layout, run, slabs, threads
from mirabelle.backends.host.matmul import product
from mirabelle.backends.host.reduce import ReductionPlan
from mirabelle.backends.host.tasks import TaskList
from mirabelle.dispatch import counters
from mirabelle.dispatch.addresses import address_of
from mirabelle.dispatch.schedule import Request
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import Leaf

# The slot of the program's own memory; the others follow.
ARENA = 0
# Seconds step by step after which a program waits for kernels that compile, and for how much of that time:
# where no core is free, they hardly come while it runs.
PATIENCE, WAITING = 2.0, 1.0


# What Python does between task lists, on a plan and the views of its storages.
Call = Callable[["HostPlan", dict[int, Any]], None]


class HostPlan(StepByStep):
    """A plan over the host's memory."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(HostArray, plan)
        self.lock = threading.Lock()
        # Slots: the program's own memory, data, inputs in order, outputs, what libraries return.
        self.data = [s for s in plan.storages if s.kind == "data"]
        self.inputs = sorted([s for s in plan.storages if s.kind == "input"], key=lambda s: s.index)
        self.outputs = [s for s in plan.storages if s.kind == "output"]
        self.made = [s for s in plan.storages if s.kind == "made"]
        outside = [*self.data, *self.inputs, *self.outputs, *self.made]
        self.slots = {s.number: 1 + i for i, s in enumerate(outside)}
        self.memory: Any = None
        # Can it be run from handles to leaves?
        self.short = False
        # The segments as they are called: a task list, or a function, and where what it makes is told.
        self.calls: list[tuple[Any, Any, Any]] = []
        self.numbers: list[int] = []
        # Temporaries that lie in the memory of outputs: it is written to anyway.
        self.lodged = lodgings(plan)
        # What runs natively: task lists, and calls of Python between them. None until kernels are there.
        self.segments: list[TaskList | Step] | None = None
        # Statements that go slab by slab, with the steps that they are.
        self.chained: list[tuple[TaskList, slabs.Chain, list[Step]]] = []
        # Kernels that were not there when they were last asked for.
        self.missing: list[Callable[[], bool]] = []
        self.layouts: dict[Any, Any] = {}
        # Seconds of calls step by step, and of waiting for kernels.
        self.slowly = self.waited = 0.0
        # What a call does natively, as `mb.count` says it. (What Python does counts itself.)
        self.counts: dict[str, int] = {}
        for numbers, error in plan.choices.tiled:
            steps: list[Any] = [plan.steps[number] for number in numbers]
            if not any(slabs.has_rows(step, self.place) for step in steps):
                raise error
        if settings.compiler != "off":
            with kernels.only_known(False):
                self.build()

    # Making task lists

    def place(self, ref: Ref) -> tuple[int, int]:
        s = self.lodged.get(ref.storage.number, ref.storage)
        if s.kind == "temporary":
            return ARENA, s.offset + ref.offset
        return self.slots[s.number], ref.offset

    def build(self) -> None:
        """Lay out the task lists, if all kernels are there."""
        self.missing = []
        self.chained = []
        segments: list[TaskList | Step] = []
        tasks: TaskList | None = None
        native: list[Step] = []
        statements: dict[int, list[tuple[int, Step, Callable[[int], bool]]]] = {}
        for step in self.plan.steps:
            if step.does_nothing:
                continue
            added = self.prepared(step)
            if added is None:
                if any(r.storage.number in self.lodged for r in (*step.reads, *step.writes)):
                    self.lodged = {}  # (Python looks for temporaries in the program's own memory)
                    return self.build()
                tasks = None
                segments.append(step)
                continue
            native.append(step)
            if self.missing:
                continue  # (what remains is asked for, so that it compiles meanwhile)
            if tasks is None:
                tasks = self.task_list()
                segments.append(tasks)
            statements.setdefault(id(tasks), []).extend(_put(tasks, step, added))
        if not self.missing:
            for segment in segments:
                if isinstance(segment, TaskList):
                    mine = statements.get(id(segment), ())
                    steps = {number: step for number, step, _ in mine}
                    for chain in slabs.chains(mine, self.place, self.plan.choices.rows):
                        segment.chain(chain)
                        members = [steps[chain.first + k] for k in range(chain.length)]
                        self.chained.append((segment, chain, members))
                    for number, step, _ in mine:
                        if step.number in self.plan.choices.threads:
                            segment.limit(number, self.plan.choices.threads[step.number])
            self.segments = segments
            self.layouts = {}
            self.counts = counted(native)
            self.counts["launches"] = sum(not isinstance(step, CopyStep) for step in native)

    def task_list(self) -> TaskList:
        return TaskList(1 + len(self.slots))

    def slab_rows(self) -> dict[int, int]:
        """How many rows of their first axis go at once through statements, by the numbers of their steps."""
        found = {}
        for tasks, chain, members in self.chained:
            pieces = len(tasks.slabs(chain))
            for step in members if pieces else ():
                found[step.number] = max(1, step.request.shape[0] // pieces)  # type: ignore[attr-defined]
        return found

    def prepared(self, step: Step) -> Callable[[TaskList], None] | None:
        """What adds a step to a task list; None for what Python does."""
        if isinstance(step, CopyStep):
            dest, source = self.place(step.dest), self.place(step.source)
            return lambda tasks: _done(tasks.copy(dest, source, step.dest.nbytes))
        if isinstance(step, KernelStep):
            return self.launched(step.request, step.dests)
        if isinstance(step, FoldStep):
            return self.folded(step)
        if isinstance(step, JoinedStep):
            return _at_once([self.launched(m.request, m.dests) for m in step.members])
        return None

    def launched(self, request: Request, dests: list[Ref]) -> Callable[[TaskList], None] | None:
        program = program_for(request, tuple([d.dtype for d in dests]))
        if not run.has_kernel(program):
            return None
        refs: list[Any] = [*dests, *request.leaves]
        key = id(program), request.shape, *[(r.shape, r.strides, r.dtype.num) for r in refs]
        known = self.layouts.get(key)
        if known is None:
            proxies = [r.proxy() for r in refs]
            arrangement = layout.arrange(request.shape, proxies)
            count = len(dests)
            shared = count > 1 and any(r.storage is d.storage for d in dests for r in refs[count:])
            how = Layout(
                len(arrangement.sizes),
                arrangement.classes[:count],
                arrangement.classes[count:],
                arrangement.tiled,
                shared=shared,
            )
            known = self.layouts[key] = program, how, arrangement
        _, how, arrangement = known
        entry = self.kernel(program, how)
        places = [self.place(r) for r in refs]
        scalars = request.scalars
        return lambda tasks: _done(tasks.launch(program, entry, arrangement, places, scalars))

    def kernel(self, program: Program, how: Layout) -> Any:
        entry = run.kernel_for(program, how)
        if entry is None:
            self.missing.append(lambda: run.kernel_for(program, how) is not None)
        return entry

    def folded(self, step: FoldStep) -> Callable[[TaskList], None] | None:
        request = step.request
        folds: list[Any] = step.nodes
        neutrals = [f.reduction.neutral(f.dtype) for f in folds]
        if any(f.reduction.scalar is not None for f in folds) or any(n is None for n in neutrals):
            return None
        if 0 in request.shape:
            return self.neutral(step, neutrals)
        program = program_for(request, tuple([f.dtype for f in folds]))
        if not run.has_kernel(program):
            return None
        views = [r.proxy() for r in request.leaves]  # type: ignore[attr-defined]
        key = ("reduce", request.shape, step.axes, *[f.reduction.name for f in folds])
        key = (*key, *[(v.shape, v.strides) for v in views])
        plan = program.plans.get(key)
        if plan is None:
            plan = ReductionPlan(program, request.shape, step.axes, folds, [], views)
            program.keep(key, plan)
        if not plan.asked():
            self.missing.append(plan.asked)
        operands = [self.place(r) for r in step.reads]
        scalars = request.scalars
        if plan.back == tuple(range(len(plan.back))) and all(d.is_contiguous for d in step.dests):
            dests = [self.place(d) for d in step.dests]
            return lambda tasks: _done(tasks.reduce(plan, dests, operands, scalars))
        rows = self.row_strides(plan, step.dests)
        if rows is not None:
            dests = [self.place(d) for d in step.dests]
            return lambda tasks: _done(tasks.reduce(plan, dests, operands, scalars, rows=rows))
        # By way of memory in the order in which the reduction comes out.
        copies = [self.moved(plan, d) for d in step.dests]

        def add(tasks: TaskList) -> None:
            between = [tasks.scratch(d.nbytes) for d in step.dests]
            tasks.reduce(plan, between, operands, scalars)
            for place, copy in zip(between, copies, strict=True):
                copy(tasks, place)

        return add

    def neutral(self, step: FoldStep, neutrals: list[Any]) -> Callable[[TaskList], None] | None:
        """Reductions of nothing."""
        if not all(d.is_contiguous for d in step.dests):
            return None
        filled = [(self.place(d), n, d.dtype, d.size) for d, n in zip(step.dests, neutrals, strict=True)]

        def add(tasks: TaskList) -> None:
            for place, value, dtype, count in filled:
                tasks.fill(place, value, dtype, count)

        return add

    def row_strides(self, plan: ReductionPlan, dests: list[Ref]) -> list[int] | None:
        """The distances of rows of results that go straight where they belong; None where that cannot be
        said."""
        if not plan.arrangement.inner_kept or plan.parts != 1:
            return None
        if plan.back != tuple(range(len(plan.back))):
            return None
        found: list[int] = []
        for d in dests:
            sizes, merged = layout.merge(
                [n for n in d.shape if n != 1], [[s for n, s in zip(d.shape, d.strides, strict=True) if n != 1]]
            )
            if len(sizes) != 2 or merged[0][1] != d.dtype.itemsize or sizes != [plan.kept, plan.inner]:
                return None
            found.append(merged[0][0])
        return found

    def moved(self, plan: ReductionPlan, dest: Ref) -> Callable[[TaskList, tuple[int, int]], None]:
        """What copies a result from the order of memory it came out in to where it belongs."""
        source = np.empty(0, dest.dtype)
        made = np.lib.stride_tricks.as_strided(source, plan.in_memory, c_strides(plan.in_memory, dest.dtype))
        views = [_as_delivered(dest, plan.delivered), made.transpose(plan.back)]
        request = Request(((), (-1,)), [dest], [], plan.delivered, [])  # type: ignore[list-item]
        program = program_for(request, (dest.dtype,))
        arrangement = layout.arrange(plan.delivered, views)
        how = Layout(
            len(arrangement.sizes), arrangement.classes[:1], arrangement.classes[1:], arrangement.tiled
        )
        entry = self.kernel(program, how)
        place = self.place(dest)
        return lambda tasks, source: _done(tasks.launch(program, entry, arrangement, [place, source], []))

    def step(self, step: Step, views: dict[int, Any]) -> None:
        if isinstance(step, KernelStep) and not {r.storage for r in step.reads} & {
            d.storage for d in step.dests
        }:
            # All results at once, and without a tree, as kernels have it.
            request = step.request
            outs = [self.shown(d, views) for d in step.dests]
            if outs[0].size:
                shown = [self.shown(r, views) for r in request.leaves]  # type: ignore[arg-type]
                run.statement(
                    program_for(request, tuple([d.dtype for d in step.dests])), shown, request.scalars, outs
                )
            return
        super().step(step, views)

    # Running

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        if self.segments is None and not self.complete():
            began = time.perf_counter()
            with kernels.only_known():
                found = super().run(inputs)
            self.slowly += time.perf_counter() - began
            return found
        if not self.lock.acquire(blocking=False):
            # Another thread uses the program's memory.
            return super().run(inputs)
        try:
            if self.memory is None:
                self.prepare()
            if counters.active:
                counters.add(**self.counts)
            return self.at_once(inputs)
        finally:
            self.lock.release()

    @property
    def quick(self) -> Any:
        return self.shortly if self.short else None

    def shortly(self, arrays: Sequence[Any]) -> list[Leaf] | None:
        """The whole program, from handles to leaves."""
        if not self.lock.acquire(False):
            return None
        try:
            addresses = [*self.base]
            views = []
            for x in arrays:
                leaf = x._node
                if type(leaf) is not Leaf:
                    leaf = evaluated(x)
                address = getattr(leaf, "address", None)
                if address is None:
                    address = _address_of(leaf)
                    if address is None:
                        return None
                addresses.append(address)
                views.append(leaf.view)
            made = []
            for shape, dtype in self.new:
                leaf = Leaf(pool.empty(shape, dtype))
                address = leaf.address = address_of(leaf.view)
                addresses.append(address)
                views.append(leaf.view)
                made.append(leaf)
            if counters.active:
                counters.add(**self.counts)
            if self.only is not None and self.in_order:
                self.only.run(addresses)
                return made
            by_number = self.natively(addresses, views)
            return made if self.in_order else [Leaf(by_number[s.number]) for s in self.returned]
        finally:
            self.lock.release()

    def complete(self) -> bool:
        """Have all kernels come?"""
        if settings.compiler == "off":
            return False
        patience = WAITING * self.slowly - self.waited
        if self.slowly > PATIENCE and patience > 0:
            began = time.perf_counter()
            kernels.settle(patience, functions=False)
            self.waited += time.perf_counter() - began
        # (Of a loop's body, too, which is asked while the program around it runs step by step.)
        with kernels.only_known(False):
            here = [there() for there in self.missing]  # (all are asked for)
            if not all(here):
                return False
            self.build()
        return self.segments is not None

    def at_once(self, inputs: Sequence[Any]) -> list[Any]:
        """The whole program, from views to views."""
        outside = [*inputs, *[pool.empty(shape, dtype) for shape, dtype in self.new]]
        addresses = [*self.base, *[address_of(v) for v in outside]]
        if self.only is None:
            views = self.natively(addresses, outside)
        else:
            self.only.run(addresses)
            views = {**self.fixed, **dict(zip(self.numbers, outside, strict=True))}
        return [views[s.number] for s in self.plan.outputs]

    def natively(self, addresses: list[int], outside: list[Any]) -> dict[int, Any]:
        """Task lists, and what Python does between them, on inputs and new memory for results."""
        addresses += [0] * len(self.made)
        views: dict[int, Any] = {**self.fixed, **dict(zip(self.numbers, outside, strict=True))}
        given = tuple(addresses)
        with np.errstate(all="ignore"):
            for tasks, call, results in self.calls:
                if tasks is not None:
                    tasks.run(given)
                    continue
                threads.dismiss()  # (libraries have threads of their own)
                call(self, views)
                if results:
                    for number, slot in results:
                        addresses[slot] = address_of(views[number])
                    given = tuple(addresses)
        return views

    def between(self, step: Step) -> Call:
        """What Python does for a step, once the program's own memory is there.

        (It is told the plan, and does not hold it: memory of a plan in a cycle would wait for a collection.)
        """
        if isinstance(step, ProductStep) and step.dest.dtype.char in "dfDF":
            first, second = step.operands
            ranks = {len(first.shape), len(second.shape)}
            if first.dtype == second.dtype == step.dest.dtype and ranks <= {1, 2}:
                # (NumPy's own memory for a large result is new each time, and cleared by the system.)
                number, shape, dtype = step.dest.number, step.dest.shape, step.dest.dtype
                multiply: Any = np.matmul if ranks == {2} else product
                a, b = self.reader(first), self.reader(second)

                def call(plan: HostPlan, views: dict[int, Any]) -> None:
                    x, y = a(views), b(views)
                    made = views[number] = pool.empty(shape, dtype)
                    multiply(x, y, out=made)
                    if counters.active:
                        counters.launched(x.nbytes + y.nbytes, made.nbytes)

                return call
        if isinstance(step, OutsideStep) and not step.shown:
            return lambda plan, views: step.run(HostArray, [], [])
        if isinstance(step, OutsideStep):
            reads = [self.reader(r, same=True) for r in step.reads]
            writes = [self.reader(r, same=True) for r in step.writes]
            return lambda plan, views: step.run(
                HostArray, [show(views) for show in reads], [show(views) for show in writes]
            )
        if type(step) is not CallStep:
            return functools.partial(_stepped, step)
        found = calls.prepared(HostArray, step.call.kind, step.call.routine, step.call.template)
        if found is None:
            return functools.partial(_stepped, step)
        return functools.partial(_called, step, found, [self.reader(r) for r in step.operands])

    def reader(self, ref: Ref, same: bool = False) -> Callable[[dict[int, Any]], Any]:
        """What shows a part of memory, given that of all storages (`same`: by one object while that is one)."""
        number = ref.storage.number
        if number in self.fixed:
            view = self.shown(ref, self.fixed)
            return lambda views: view
        if ref.is_whole:
            return operator.itemgetter(number)
        if same:
            return _SameView(ref)
        how = ref.offset, ref.shape, ref.strides, ref.dtype
        return lambda views: strided(views[number], *how)

    def prepare(self) -> None:
        """The program's own memory, and views of what does not change from call to call."""
        plan = self.plan
        memory = HostArray._empty((plan.arena_bytes + 64,), np.dtype(np.uint8))
        start = address_of(memory)
        first = -start % 64
        self.arena = start + first
        self.new = [(s.shape, s.dtype) for s in self.outputs]
        segments = self.segments or []
        self.only: TaskList | None = None
        if len(segments) == 1 and isinstance(segments[0], TaskList) and not self.made:
            self.only = segments[0]
        new = {s for s in self.plan.outputs if s.kind in ("output", "made")}
        self.returned, rest = self.plan.outputs[: len(new)], self.plan.outputs[len(new) :]
        self.in_order = self.returned == self.outputs
        short = set(self.returned) == new and all(s.kind == "input" for s in rest)
        self.fixed: dict[int, Any] = {s.number: in_c_order(HostArray, s.node.view) for s in self.data}  # type: ignore[attr-defined]
        data = [address_of(self.fixed[s.number]) for s in self.data]
        self.base = (self.arena, *data)
        # Only what Python reads or writes of the program's own memory needs views.
        wanted = {
            r.storage.number
            for step in segments
            if not isinstance(step, TaskList)
            for r in (*step.reads, *step.writes)
        }
        for s in self.made:
            if 0 in s.shape:  # (what makes no elements is not run)
                self.fixed[s.number] = np.empty(s.shape, s.dtype)
        for s in plan.storages:
            if s.kind == "temporary" and s.number in wanted and s.offset >= 0:
                strides = c_strides(s.shape, s.dtype)
                self.fixed[s.number] = np.ndarray(s.shape, s.dtype, memory, first + s.offset, strides)
        self.numbers = [s.number for s in (*self.inputs, *self.outputs)]
        self.calls = [
            (step, None, ())
            if isinstance(step, TaskList)
            else (
                None,
                self.between(step),
                [
                    (n, self.slots[n])
                    for r in step.writes
                    if r.storage.kind == "made"
                    for n in (r.storage.number,)
                ],
            )
            for step in segments
        ]
        # (Last: whoever finds the memory takes the rest for granted.)
        self.memory, self.short = memory, short


class _SameView:
    """What shows a part of memory by the same object, as long as the memory is the same.

    (Messages between the same memory are prepared once, and know it by that. They keep it, and so does this.)
    """

    __slots__ = ("how", "number", "of", "view")

    def __init__(self, ref: Ref) -> None:
        self.number = ref.storage.number
        self.how = ref.offset, ref.shape, ref.strides, ref.dtype
        self.of = self.view = None

    def __call__(self, views: dict[int, Any]) -> Any:
        memory = views[self.number]
        if memory is not self.of:
            self.view = strided(memory, *self.how)
            self.of = memory
        return self.view


def _stepped(step: Step, plan: HostPlan, views: dict[int, Any]) -> None:
    plan.step(step, views)


def _called(
    step: CallStep, run: Callable[[list[Any]], Any], readers: list[Any], plan: HostPlan, views: dict[int, Any]
) -> None:
    given = [read(views) for read in readers]
    result = run(given)
    if type(result) is np.ndarray and len(step.dests) == 1 and 0 in step.dests:
        s = step.dests[0]
        same = result.shape == s.shape and result.dtype == s.dtype and result.flags.c_contiguous
        if any(result is x for x in given):
            result = result.copy()
        # (New memory, and nothing that shows what was given.)
        if same and (result.base is None or step.call.kind == "scatter"):
            views[s.number] = result
            return
    for number, view in delivered(HostArray, step, given, result).items():
        views[step.dests[number].number] = view


def _address_of(leaf: Leaf) -> int | None:
    """Where a leaf's memory begins, if it is one piece in C's order: kept with the leaf, which never moves."""
    if not leaf.view.flags.c_contiguous:
        return None
    address: int = address_of(leaf.view)
    leaf.address = address
    return address


def _as_delivered(dest: Ref, shape: tuple[int, ...]) -> np.ndarray:
    """A destination without its dimensions of one element."""
    strides = [s for n, s in zip(dest.shape, dest.strides, strict=True) if n != 1]
    kept = [n for n in dest.shape if n != 1]
    assert tuple(kept) == shape
    return np.lib.stride_tricks.as_strided(np.empty(0, dest.dtype), shape, strides)


def _put(
    tasks: TaskList, step: Step, add: Callable[[TaskList], None]
) -> list[tuple[int, Step, Callable[[int], bool]]]:
    """Add a step to a task list; what `slabs.chains` asks about it, if it is one statement there."""
    number = tasks.count
    add(tasks)
    return [(number, step, tasks.sliced(number))] if tasks.count == number + 1 else []


def _at_once(members: list[Callable[[TaskList], None] | None]) -> Callable[[TaskList], None] | None:
    """What adds statements that need nothing of each other; None if there is none of one of them."""
    added = [add for add in members if add is not None]
    if len(added) < len(members):
        return None

    def add_all(tasks: TaskList) -> None:
        first = tasks.count
        for add in added:
            add(tasks)
        tasks.together(range(first, tasks.count))

    return add_all


def _done(_: int) -> None:
    """Adding a statement returns its number, which nobody needs."""


@plan_runner.method
def _(inner: type[HostArray], plan: Plan) -> HostPlan:
    return HostPlan(plan)


@builder.method
def _(inner: type[HostArray], programs: list[Any], path: Path, options: dict[str, Any]) -> Library:
    # (What builds libraries is seldom wanted.)
    from mirabelle.backends.host.ahead.building import build

    return build(programs, path, options)
