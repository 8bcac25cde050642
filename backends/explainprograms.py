"""What backends say of compiled programs: how one runs, the source of its kernels, the time of each step."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from typing import Any

from mirabelle.arraytypes.cards import shown_bytes
from mirabelle.arraytypes.gpu import GPUArray, view_at
from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.programs.divided import DividedPlan
from mirabelle.arraytypes.programs.exchanging import CombineStep
from mirabelle.arraytypes.programs.reports import (
    kernel_source,
    manner,
    settle,
    slab_rows,
    timed_runner,
    waiting,
)
from mirabelle.arraytypes.programs.running import StepByStep
from mirabelle.arraytypes.programs.steps import FoldStep, Plan, Step
from mirabelle.backends.codegen.program import program_for
from mirabelle.backends.gpu.plans import CardPlan
from mirabelle.backends.host import kernels
from mirabelle.backends.host.described import described
from mirabelle.backends.host.plans import Call, HostPlan
from mirabelle.backends.host.tasks import TaskList


@manner.method
def _(runner: HostPlan) -> str:
    segments = runner.segments
    if segments is None:
        return "step by step until its kernels are compiled, then natively"
    lists = sum(isinstance(s, TaskList) for s in segments)
    calls = len(segments) - lists
    if not lists:
        return "by calls of routines"
    said = f"natively, in {lists} task list{'s' * (lists != 1)}"
    return said + (f" and {calls} call{'s' * (calls != 1)} beside" if calls else "")


@slab_rows.method
def _(runner: StepByStep) -> dict[int, int]:
    return {}


@slab_rows.method
def _(runner: HostPlan) -> dict[int, int]:
    return runner.slab_rows()


@manner.method
def _(runner: CardPlan) -> str:
    calls = sum(isinstance(s, Step) for s in runner.segments)
    launches = len(runner.segments) - calls
    if not launches:
        return "by calls of routines"
    said = f"{launches} graph{'s' * (launches != 1)} of kernels"
    return said + (f" and {calls} call{'s' * (calls != 1)} beside" if calls else "")


@manner.method
def _(runner: object) -> str:
    return "step by step"


@manner.method
def _(runner: DividedPlan) -> str:
    found = runner.latest()
    if found is None:
        return "by a plan of each process, made when it is known how the arrays are divided"
    steps = sum(len(d.plan.steps) for d in found)
    points = sum(len(d.messages) for d in found)
    sent = [n for d in found for sends, _ in d.messages for n in sends.values()]
    combined = sum(isinstance(s, CombineStep) for d in found for s in d.plan.steps)
    said = f"by a plan of each process: {steps} step{'s' * (steps != 1)} on this one"
    if points:
        messages = f"{len(sent)} message{'s' * (len(sent) != 1)} ({shown_bytes(sum(sent))})"
        said += f", which sends {messages} at {points} point{'s' * (points != 1)}"
    across = sum(d.computed for d in found)
    if across:
        said += (
            f", computes {across} box{'es' * (across != 1)} across its cuts as well, rather than wait for them"
        )
    if combined:
        said += f", {combined} combination{'s' * (combined != 1)} of terms"
    alone = sum(isinstance(s, Step) for s in runner.segments)
    return said + (f", {alone} call{'s' * (alone != 1)} beside" if alone else "")


@kernel_source.method
def _(a_step: Step, inner: Any) -> str:
    step: Any = a_step  # (of one of the kinds that have a kernel)
    request = step.request
    nodes = step.nodes
    folds = nodes if isinstance(step, FoldStep) else ()
    program = program_for(request, tuple([x.dtype for x in (folds or step.dests)]))
    inner = getattr(inner, "inner", inner)  # (of what is divided, the kernel over all of it)
    outs, views = ([_layout_of(inner, r) for r in refs] for refs in (step.dests, request.leaves))
    shared = len(outs) > 1 and any(r.storage is d.storage for d in step.dests for r in request.leaves)
    axes = step.axes if folds else ()
    said, text = described(inner, program, request.shape, folds, axes, outs, views, shared)
    return text or f"# {said}\n"


def _layout_of(inner: Any, ref: Any) -> Any:
    """A view that lies as a program's value does, and is nobody's memory."""
    if not issubclass(inner, GPUArray):
        return ref.proxy()
    return view_at(
        inner.view_type, None, (ref.storage.number + 1 << 40) + ref.offset, ref.shape, ref.dtype, ref.strides
    )


@settle.method
def _(plan: Plan, inner: Any) -> None:
    kernels.settle(60.0)
    waiting(inner)()


# When steps began and ended: (step's number, began, ended).
Times = list[tuple[int, float, float]]


@timed_runner.method
def _(plan: Plan, inner: Any) -> Any:
    if inner is HostArray:
        return _TimedHostPlan(plan)
    return _TimedSteps(inner, plan)


class _TimedSteps(StepByStep):
    """Step by step, waiting after each step until it is done."""

    def __init__(self, inner: Any, plan: Plan) -> None:
        super().__init__(inner, plan)
        self.times: Times = []
        self.wait = waiting(inner)

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        self.times = []
        self.wait()
        return super().run(inputs)

    def step(self, step: Step, views: dict[int, Any]) -> None:
        began = time.perf_counter()
        super().step(step, views)
        self.wait()
        self.times.append((step.number, began, time.perf_counter()))


class _TimedTasks(TaskList):
    """One step as a task list of its own."""

    owner: Any
    number: int

    def run(self, addresses: Sequence[int], times: int = 1, words: Sequence[int] | None = None) -> None:
        began = time.perf_counter()
        super().run(addresses, times, words)
        self.owner.times.append((self.number, began, time.perf_counter()))


class _TimedHostPlan(HostPlan):
    """Natively, but each step by itself."""

    def __init__(self, plan: Plan) -> None:
        self.times: Times = []
        super().__init__(plan)

    def build(self) -> None:
        self.missing = []
        segments: list[TaskList | Step] = []
        for step in self.plan.steps:
            if not any(w.size for w in step.writes):
                continue
            added = self.prepared(step)
            if added is None:
                segments.append(step)
            elif not self.missing:
                tasks = _TimedTasks(1 + len(self.slots))
                tasks.owner, tasks.number = self, step.number
                added(tasks)
                segments.append(tasks)
        if not self.missing:
            self.segments = segments
            self.layouts = {}

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        self.times = []
        return super().run(inputs)

    def step(self, step: Step, views: dict[int, Any]) -> None:
        began = time.perf_counter()
        super().step(step, views)
        self.times.append((step.number, began, time.perf_counter()))

    def between(self, step: Step) -> Call:
        call = super().between(step)
        if isinstance(call, functools.partial):  # (which calls the method above)
            return call

        def timed(plan: Any, views: dict[int, Any]) -> None:
            began = time.perf_counter()
            call(plan, views)
            plan.times.append((step.number, began, time.perf_counter()))

        return timed
