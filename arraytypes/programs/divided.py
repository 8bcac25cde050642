"""Running a plan over processes: each its own plan, made when it is known how the arrays are divided.

Matrix products and routines know themselves how to work in parts; the steps between them are divided
(`dividing.py`) and run as a plan of the local type. Before they first run, the processes compare what they are
about to do: programs that differ would wait for each other for ever.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from typing import Any

from mirabelle.arraytypes.distributed import combining
from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.arraytypes.distributed.darray import DArray, layout_in_use
from mirabelle.arraytypes.distributed.views import DView
from mirabelle.arraytypes.programs.dividedvalues import Divided, Unfit
from mirabelle.arraytypes.programs.dividing import divided
from mirabelle.arraytypes.programs.errors import DifferentPrograms, shown_line
from mirabelle.arraytypes.programs.exchanging import StartStep
from mirabelle.arraytypes.programs.joining import taken_apart
from mirabelle.arraytypes.programs.running import StepByStep, plan_runner
from mirabelle.arraytypes.programs.steps import CopyStep, FoldStep, KernelStep, LaunchStep, Plan, Step
from mirabelle.dispatch.errors import CommunicationError
from mirabelle.dispatch.settings import settings

# As many ways of dividing its arrays are remembered of a program.
REMEMBERED = 64


class DividedPlan(StepByStep):
    """A plan over processes."""

    def __init__(self, inner: Any, plan: Plan) -> None:
        taken_apart(plan)
        super().__init__(inner, plan)
        self.segments: list[Segment | Step] = []
        kept = {s.number for s in plan.outputs}
        # (A storage's own `last` is that of what takes over its place, too.)
        last = {r.storage.number: step.number for step in plan.steps for r in step.reads}
        run: list[Step] = []
        for step in [*plan.steps, None]:
            if isinstance(step, (KernelStep, FoldStep, CopyStep, LaunchStep)):
                run.append(step)
                continue
            if run:
                self.segments.append(Segment(run, kept, last))
                run = []
            if step is not None:
                self.segments.append(step)
        # The communicators whose members have compared the program.
        self.compared: list[Communicator] = []

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        plan = self.plan
        views = self.given(inputs)
        comm = _communicator(views)
        if comm is not None and comm.size > 1 and not any(c is comm for c in self.compared):
            compare(plan.steps, comm)
            self.compared.append(comm)
        for segment in self.segments:
            if isinstance(segment, Segment):
                segment.run(self, views, comm)
            else:
                self.one(segment, views)
        return [self.view(s, views) for s in plan.outputs]

    def latest(self) -> list[Divided] | None:
        """What this process did when the program ran last; None before it has."""
        found = [s.latest for s in self.segments if isinstance(s, Segment)]
        return None if None in found else found  # type: ignore[return-value]


class Segment:
    """Steps between two calls of routines."""

    def __init__(self, steps: list[Step], kept: set[int], reads: dict[int, int]) -> None:
        self.steps = steps
        first, end = steps[0].number, steps[-1].number
        touched = {r.storage.number: r.storage for step in steps for r in (*step.reads, *step.writes)}
        # What is there before: given, or written to by an earlier step.
        self.before = [n for n, s in touched.items() if s.kind in ("input", "data") or s.first < first]
        # What somebody needs after it.
        wanted = {n for n in touched if n in kept or reads.get(n, -1) > end}
        self.wanted = [touched[n] for n in touched if n in wanted]
        self.gone = [n for n, s in touched.items() if s.kind in ("temporary", "made") and n not in wanted]
        # How it was divided before: by the partitions themselves, and by what they say.
        self.short: dict[Any, Any] = {}
        self.known: dict[Any, Any] = {}
        # What was done last.
        self.latest: Divided | None = None

    def run(self, owner: DividedPlan, views: dict[int, Any], comm: Communicator | None) -> None:
        there = [(n, views[n]) for n in self.before if n in views]
        local = None if comm is None else self.local(owner.inner, there, comm)
        if local is None:
            for step in self.steps:
                owner.one(step, views)
            return
        assert comm is not None
        how, runner = local
        self.latest = how
        try:
            made = runner.run([views[n].buffer.local for n in how.inputs])
        except Exception as error:
            _end(how.plan, error)
            raise
        for n in how.written:
            views[n].buffer.written()
        for n, view in zip(how.outputs, made, strict=True):
            views[n] = owner.inner._of_local(comm, how.partitions[n], view)
        for n in self.gone:
            views.pop(n, None)

    def local(self, family: Any, there: list[tuple[int, DView]], comm: Communicator) -> Any:
        """What this process does for arrays divided like these; None if that cannot be said beforehand."""
        key: list[Any] = [id(comm), layout_in_use(), settings.exchange_bytes]
        for _, view in there:
            buffer = view.buffer
            if buffer.partition.partial:
                combining.resolve(buffer)
                view._map = None
            if not view.whole or buffer.comm is not comm:
                return None
            key.append(buffer.partition)
        short = tuple(key)
        found = self.short.get(short)
        if found is None:
            # Equal partitions are one object, but for those that were forgotten: and it is together that
            # processes find out what to do.
            long = (*short[:3], *[(p.shape, p.mesh, p.splits) for p in short[3:]])
            found = self.known.get(long)
            if found is None:
                if len(self.known) >= REMEMBERED:
                    self.known.clear()
                found = self.known[long] = self.divided(family, dict(there), comm)
            if len(self.short) >= REMEMBERED:
                self.short.clear()
            # (The communicator is kept: another one may be where it was.)
            self.short[short] = found
        return found[0]

    def divided(self, family: Any, there: dict[int, DView], comm: Communicator) -> Any:
        given = {n: view.buffer.partition for n, view in there.items()}
        try:
            found = divided(family, comm, self.steps, given, self.wanted)
        except Unfit:
            return None, comm
        if comm.size > 1:
            matched(comm, found, self.steps)
        inner = family.inner
        return (found, plan_runner(inner, found.plan)), comm


def _end(plan: Plan, error: Exception) -> None:
    """What was under way when a plan failed is waited for: it goes to and comes from the plan's own memory."""
    for step in plan.steps:
        if not isinstance(step, StartStep) or not step.exchange.under_way:
            continue
        if not isinstance(error, CommunicationError):
            with contextlib.suppress(CommunicationError):
                step.exchange.end()


def _communicator(views: dict[int, Any]) -> Communicator | None:
    """The processes over which all of some arrays are divided."""
    found = None
    for view in views.values():
        comm = view.buffer.comm
        if found is not None and comm is not found:
            return None
        found = comm
    return found


def compare(steps: Sequence[Step], comm: Communicator) -> None:
    """Raise on all processes if they are not about to run the same program."""
    said = [_spelled(step) for step in steps]
    digest = hashlib.sha256("\n".join(said).encode()).hexdigest()
    if len(set(comm.allgather_object(digest))) == 1:
        return
    lines = [shown_line(step.nodes[0].line) if step.nodes else "" for step in steps]
    programs = comm.allgather_object(list(zip(said, lines, strict=True)))
    for rank, program in enumerate(programs):
        for k in range(max(len(program), len(programs[0]))):
            here, there = [p[k] if k < len(p) else ("nothing more", "its end") for p in (programs[0], program)]
            if here[0] != there[0]:
                raise DifferentPrograms(
                    f"Rank {rank} has compiled another program than rank 0, and they would wait for each "
                    f"other: step {k} is {there[0]} in {there[1]} on rank {rank}, and {here[0]} in {here[1]} "
                    "on rank 0. A program over processes is the same on all of them: let nothing that the "
                    "function does to arrays depend on the rank; what differs between ranks is data, "
                    "`mb.where(mask, a, b)`."
                )


def _spelled(step: Step) -> str:
    """A step in words that are the same in all processes."""
    refs = [(r.storage.number, r.offset, r.shape, r.strides, r.dtype.str) for r in (*step.reads, *step.writes)]
    places = hashlib.sha256(repr(refs).encode()).hexdigest()[:8]
    return f"{step.name}{list(step.shape)} ({places})"


def matched(comm: Communicator, found: Divided, steps: Sequence[Step]) -> None:
    """Compare on all processes what each sends with what the others expect of it."""
    said = comm.allgather_object(found.messages)
    for p, sent in enumerate(said):
        for q, expected in enumerate(said):
            same = len(sent) == len(expected) and all(
                s.get(q, 0) == r.get(p, 0) for (s, _), (_, r) in zip(sent, expected, strict=True)
            )
            if not same:
                raise AssertionError(
                    f"Ranks {p} and {q} have come to different plans for {shown_line(steps[0].nodes[0].line)}. "
                    "This is a mistake in mirabelle. Please report it with the program."
                )


@plan_runner.method
def _(inner: type[DArray], plan: Plan) -> DividedPlan:
    return DividedPlan(inner, plan)
