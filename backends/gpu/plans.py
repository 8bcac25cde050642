"""Compiled programs on a card: what lies between library calls is one graph of kernels.

A kernel waits for those whose results it reads, or whose memory it writes anew, and for no others: what is
independent runs at the same time. A graph has addresses. Those of arguments and results may be others at each
call: a few graphs are kept, one for each set of addresses, and the oldest of them is told new ones. (A graph of
a single kernel, too, takes less of the host than a launch.) Where a card has no such graphs, kernels are
launched one after the other.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.gpu import GPUArray, dense_layout, view_at
from mirabelle.arraytypes.programs.exchanging import FinishStep, ReduceStep, StartStep
from mirabelle.arraytypes.programs.fusing import LARGEST_TREE, MOST_OPERANDS
from mirabelle.arraytypes.programs.graph import c_strides
from mirabelle.arraytypes.programs.running import StepByStep, in_c_order, plan_runner
from mirabelle.arraytypes.programs.steps import (
    CopyStep,
    FoldStep,
    JoinedStep,
    KernelStep,
    LaunchStep,
    Plan,
    ProductStep,
    Ref,
    Step,
    Storage,
    counted,
)
from mirabelle.backends.codegen.element import scalar_values
from mirabelle.backends.codegen.program import program_for
from mirabelle.backends.gpu import loops, messages, products, reduce
from mirabelle.backends.gpu.joined import joined_plan, together
from mirabelle.backends.gpu.kernelgraphs import Launch, Room, Stretch, dependencies, place, reached
from mirabelle.backends.gpu.kernelplan import in_graph
from mirabelle.backends.gpu.lib_blas import PREFIX, lying, packed, planned, readable
from mirabelle.backends.gpu.lib_blas import inner as inner_product
from mirabelle.backends.gpu.library import on_card
from mirabelle.backends.gpu.recording import recording
from mirabelle.backends.gpu.run import make_plan
from mirabelle.dispatch import counters, promotion
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.schedule import SCALAR, Request

# So many graphs are kept of the same kernels, for other addresses; of many kernels, fewer.
GRAPHS, MANY, GRAPHS_OF_MANY = 4, 2000, 2
# From so many elements on, columns are summed while they are stored.
MANY_ELEMENTS = 1 << 20
# The memory that cuBLAS works in.
BLAS_BYTES = 32 << 20
# Results up to this size lie together in memory that is used again, for some calls at most.
SMALL, CALLS = 256 << 10, 4
# The number of the memory that temporaries share.
STATIC = -1
_BYTE = np.dtype(np.uint8)


class CardPlan(StepByStep):
    """A plan on a card."""

    def __init__(self, inner: Any, plan: Plan) -> None:
        super().__init__(inner, plan)
        self.driver = inner.driver()
        self.lock = threading.Lock()
        # The memory that temporaries share, once the program has been run.
        self.memory: Any = None
        self.stream: Any = None
        self.stream_key: Any = None
        self.inputs = sorted([s for s in plan.storages if s.kind == "input"], key=lambda s: s.index)
        self.outputs = [s for s in plan.storages if s.kind == "output"]
        self.made = [s for s in plan.storages if s.kind == "made"]
        self.data = [s for s in plan.storages if s.kind == "data"]
        # Memories by number: storages, and what single launches need besides.
        self.rooms: dict[int, Room] = {}
        self.spare = len(plan.storages)
        # Results of products that kernels of ours make lie among temporaries, if nobody gets them.
        self.kept: set[int] = {s.number for s in plan.outputs}
        self.blas_room = -1
        # Of loops, by what is carried: where values are in each trip, and graphs of many trips.
        self.turns: dict[Any, Any] = {}
        self.rounds: dict[Any, Together] = {}
        events = self._events()
        self._place(events)
        self.segments = self._segments(events)
        slots = [*self.inputs, *self.outputs, *self.made]
        self.slots = {s.number: i for i, s in enumerate(slots)}
        # Where each result is: among what is given and new, or what is always there.
        self.order = [self.slots.get(s.number, -1) for s in plan.outputs]

    # From steps to launches

    def _events(self) -> list[Any]:
        """The launches that the steps are, and the steps that Python does."""
        events: list[Any] = []
        before: Step | None = None
        native: list[Step] = []
        again = 0  # bytes that a reduction would read, had they not been computed by its own kernel
        for step in self.plan.steps:
            if step.does_nothing:
                continue
            found: list[Launch] | None = None
            if isinstance(step, FoldStep) and isinstance(before, KernelStep):
                together = joined(before, step)
                found = None if together is None else self._fold(step, together, before.dests)
                if found is not None:
                    events[-1:] = found
                    native.append(step)
                    mine = {r.storage for r in step.reads}
                    again += sum(d.nbytes for d in before.dests if d.storage in mine)
                    before = step
                    continue
            before = step
            if isinstance(step, KernelStep):
                found = [self._kernel(step.request, step.dests)]
            elif isinstance(step, JoinedStep):
                found = self._joined(step)
            elif isinstance(step, CopyStep):
                found = [self._copy(step.dest, step.source)]
            elif isinstance(step, FoldStep):
                found = self._fold(step)
            elif isinstance(step, ProductStep):
                found = self._product(step)
            elif isinstance(step, LaunchStep):
                found = self._launched(step)
            elif isinstance(step, (StartStep, FinishStep, ReduceStep)):
                found = messages.launched(self, step)
            if found is None:
                events.append(step)
            else:
                events += found
                native.append(step)
        self.counts = counted(native) | messages.counted(native)
        self.counts["bytes_read"] -= again
        return events

    def number(self, s: Storage) -> int:
        """The memory that a storage is in: what has taken another's place is in that one's."""
        while s.taken is not None:
            s = s.taken
        return s.number

    def shown_at(self, ref: Ref) -> Any:
        """A view that lies as a reference does, at an address that is nobody's."""
        address = (self.number(ref.storage) + 1 << 40) + ref.offset
        return view_at(self.inner.view_type, None, address, ref.shape, ref.dtype, ref.strides)

    def touched(self, ref: Ref) -> Stretch:
        if ref.table:  # (a gather reads any of it)
            return self.number(ref.storage), 0, ref.storage.nbytes
        low = high = ref.offset
        for n, step in zip(ref.shape, ref.strides, strict=True):
            if n == 0:
                return self.number(ref.storage), 0, 0
            low, high = low + min(0, (n - 1) * step), high + max(0, (n - 1) * step)
        return self.number(ref.storage), low, high + ref.dtype.itemsize

    def place_of(self, ref: Ref) -> tuple[int, int]:
        return self.number(ref.storage), ref.offset

    def launch(self, run: Any, writes: list[Ref], reads: list[Ref], numbers: Any) -> Launch:
        operands = [self.place_of(r) for r in (*writes, *reads)]
        return Launch(
            run, operands, numbers, [self.touched(r) for r in reads], [self.touched(r) for r in writes]
        )

    def _kernel(self, request: Request, dests: list[Ref]) -> Launch:
        program = program_for(request, tuple([d.dtype for d in dests]))
        reads: Any = request.leaves
        views = [self.shown_at(r) for r in (*dests, *reads)]
        how = (self.inner, *[v.layout for v in views])
        run = program.plans.get(how)
        if run is None:
            aligned = not any(v.ptr & 15 for v in views)
            run = make_plan(self.inner, program, views, len(dests), aligned)
            program.keep(how, run)
        return self.launch(run, dests, reads, scalar_values(program, request.scalars))

    def _joined(self, step: JoinedStep) -> list[Launch]:
        """One launch of several kernels; one of each where their grids do not go together."""
        programs = [program_for(m.request, tuple([d.dtype for d in m.dests])) for m in step.members]
        views = [[self.shown_at(r) for r in (*m.dests, *m.reads)] for m in step.members]
        fit, rest = together(programs, views)
        run = joined_plan(self.inner, [programs[i] for i in fit], [views[i] for i in fit]) if fit[1:] else None
        if run is None:
            return [self._kernel(m.request, m.dests) for m in step.members]
        members = [step.members[i] for i in fit]
        numbers = [x for i in fit for x in scalar_values(programs[i], step.members[i].request.scalars)]
        operands = [self.place_of(r) for m in members for r in (*m.dests, *m.reads)]
        reads = [self.touched(r) for m in members for r in m.reads]
        writes = [self.touched(r) for m in members for r in m.writes]
        others = [self._kernel(m.request, m.dests) for m in (step.members[i] for i in rest)]
        return [Launch(run, operands, numbers, reads, writes), *others]

    def _copy(self, dest: Ref, source: Ref) -> Launch:
        sig = promotion.intern(TABLE["copy"], (source.dtype,), (source.dtype,))
        leaf: Any = source
        return self._kernel(Request((((sig, -1),), (0,)), [leaf], [], dest.shape, []), [dest])

    def _fold(
        self, step: FoldStep, request: Request | None = None, stored: Sequence[Ref] = ()
    ) -> list[Launch] | None:
        """The launches of reductions; with a request, of one whose last results are values that are stored."""
        folds: list[Any] = step.nodes
        if any(f.reduction.scalar is None and f.reduction.neutral(f.dtype) is None for f in folds):
            return None
        request = request or step.request
        reads: Any = request.leaves
        program = program_for(request, tuple([f.dtype for f in folds] + [r.dtype for r in stored]))
        views = [self.shown_at(r) for r in (*step.dests, *stored, *reads)]
        kinds = [f.reduction for f in folds]
        names = tuple([r.name if r.scalar is None else id(r.scalar) for r in kinds])
        how = ("reduce", self.inner, request.shape, step.axes, names, *[v.layout for v in views])
        plan = program.plans.get(how)
        if plan is None:
            count = len(folds), len(stored)
            plan = reduce.planned(self.inner, program, request.shape, step.axes, folds, views, *count)
            program.keep(how, plan)
        numbers = [*scalar_values(program, request.scalars), *plan.neutrals]
        if plan.partial is None:
            return [self.launch(plan.first, [*step.dests, *stored], reads, numbers)]
        size = plan.partial[0] * plan.partial[1]
        partial = [self._besides(size * d.itemsize) for d in plan.dtypes]
        parts = [(m, 0) for m in partial]
        between = [(m, 0, self.rooms[m].nbytes) for m in partial]
        seen = [self.touched(r) for r in reads]
        written = [self.touched(r) for r in stored]
        results = [self.touched(r) for r in step.dests]
        first = [*parts, *map(self.place_of, (*stored, *reads))]
        second = [*map(self.place_of, step.dests), *parts]
        return [
            Launch(plan.first, first, numbers, seen, [*between, *written]),
            Launch(plan.second, second, plan.neutrals, between, results),
        ]

    def _launched(self, step: LaunchStep) -> list[Launch] | None:
        """The launch of a kernel of the user's; None where the host has something to do for it."""
        found = in_graph(step, [self.shown_at(r) for r in step.operands])
        if found is None:
            return None
        run, order, numbers = found
        operands = [self.place_of(step.operands[i]) for i in order]
        reads = [self.touched(r) for r in step.operands]
        writes = [self.touched(step.operands[i]) for i in step.dests]
        return [Launch(run, operands, numbers, reads, writes)]

    def _product(self, step: ProductStep) -> list[Launch] | None:
        a, b = [self.shown_at(r) for r in step.operands]
        dest = step.dest
        if self.driver.simulated and dest.node.size * a.shape[-1] > products.SIMULATED:
            return None
        call = self._blas(a, b, dest) if on_card(self.driver.library) else None
        found = None if call is not None else products.launched(a, b, dest.dtype)
        if call is None and (found is None or (on_card(self.driver.library) and dest.dtype.char in PREFIX)):
            return None
        whole = Ref(dest, 0, dest.shape, c_strides(dest.shape, dest.dtype), dest.dtype)
        self.made.remove(dest)
        if dest.number in self.kept:
            self.outputs.append(dest)
        else:  # it lies where the program's own memory is
            self.rooms[dest.number] = Room(dest.nbytes)
        if call is None:
            return [self.launch(found, [whole], list(step.operands), [])]
        if self.blas_room < 0:
            # (One for all: so products come one after the other.)
            self.blas_room = self._besides(BLAS_BYTES)
        operands = [*map(self.place_of, step.operands), (dest.number, 0), (self.blas_room, 0)]
        writes = [self.touched(whole), (self.blas_room, 0, BLAS_BYTES)]
        return [Launch(BlasLaunch(call), operands, [], [self.touched(r) for r in step.operands], writes)]

    def _blas(self, a: Any, b: Any, dest: Storage) -> Any:
        """The call of cuBLAS for a product whose operands it can read where they lie."""
        dtype = dest.dtype
        if a.dtype != dtype or b.dtype != dtype or dtype.char not in PREFIX or not (a.size and b.size):
            return None
        if not self.driver.has_graphs or library.registered(self.inner, "matmul") is not None:
            return None
        first, second = lying(a), lying(b)
        if not readable(first) or not readable(second):
            return None
        if a.ndim == 1 == b.ndim:
            return inner_product(first, second, dtype)
        return planned(first, second, packed(dest.shape, dtype.itemsize), dtype)

    def _besides(self, nbytes: int) -> int:
        """Memory for what a single launch needs besides: its number."""
        self.rooms[self.spare] = Room(nbytes)
        self.spare += 1
        return self.spare - 1

    # Where temporaries lie

    def _place(self, events: list[Any]) -> None:
        plan = self.plan
        for s in plan.storages:
            if s.kind == "temporary" and s.taken is None:
                self.rooms[s.number] = Room(s.nbytes)
        alone = [self.rooms[n] for n in plan.choices.alone if n in self.rooms] if events else []
        for own in alone:
            own.touched(0)
        touched: list[Any] = [(e.reads, e.writes) if isinstance(e, Launch) else None for e in events]
        for i, event in enumerate(events):
            if isinstance(event, Launch):
                numbers = [m for m, _, _ in (*event.reads, *event.writes)]
            else:
                numbers = [self.number(r.storage) for r in (*event.reads, *event.writes)]
            for m in numbers:
                room = self.rooms.get(m)
                if room is not None:
                    room.touched(i)
        for own in alone:
            own.touched(len(events) - 1)
        self.static_bytes = place(self.rooms.values(), reached(touched))
        plan.peak_bytes += self.static_bytes - plan.arena_bytes
        plan.arena_bytes = self.static_bytes
        for s in plan.storages:
            if s.kind == "temporary":
                s.offset = self.rooms[self.number(s)].offset

    def _at(self, stretch: Stretch) -> Stretch:
        """A stretch of a temporary as one of the memory they share."""
        memory, low, high = stretch
        room = self.rooms.get(memory)
        return stretch if room is None else (STATIC, low + room.offset, high + room.offset)

    def _segments(self, events: list[Any]) -> list[Any]:
        segments: list[Any] = []
        part: list[Launch] = []
        for event in [*events, None]:
            if isinstance(event, Launch):
                event.reads = [self._at(s) for s in event.reads]
                event.writes = [self._at(s) for s in event.writes]
                part.append(event)
                continue
            if part:
                segments.append(Together(self, part))
                part = []
            if event is not None:
                segments.append(event)
        return segments

    # Running

    def prepare(self) -> None:
        """The memory that temporaries share; the addresses of all that is always in the same place."""
        memory = self.inner._empty((self.static_bytes,), _BYTE)
        kind = self.inner.view_type
        fixed: dict[int, Any] = {s.number: in_c_order(self.inner, s.node.view) for s in self.data}  # type: ignore[attr-defined]
        for view in fixed.values():
            assert not view.ptr & 15 or not view.size
        addresses = {n: v.ptr for n, v in fixed.items()}
        for n, room in self.rooms.items():
            addresses[n] = memory.ptr + room.offset
        for segment in self.segments:
            if isinstance(segment, Together):
                segment.prepare(addresses, self.slots)
                continue
            for r in (*segment.reads, *segment.writes):
                s = r.storage
                at = addresses.get(self.number(s), -1)
                if at >= 0 and s.number not in fixed:
                    fixed[s.number] = view_at(kind, memory.owner, at, s.shape, s.dtype)
        for s in self.made:
            if 0 in s.shape:  # (what makes no elements is not run)
                fixed[s.number] = self.inner._empty(s.shape, s.dtype)
        self.fixed = fixed
        self.addresses = addresses
        self.results = Results(self.inner, self.outputs)
        self.counts["launches"] = sum(len(s.launches) for s in self.segments if isinstance(s, Together))
        self.only = None
        if len(self.segments) == 1 and isinstance(self.segments[0], Together) and not self.made:
            self.only = self.segments[0]
        count = len(self.inputs)
        self.in_order = self.order == list(range(count, count + len(self.outputs)))
        self.memory = memory

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        driver = self.driver
        if (driver.recorders and recording(driver) is not None) or not self.lock.acquire(blocking=False):
            # A part of a graph that is being recorded; or another thread uses the program's memory.
            return super().run(inputs)
        try:
            if not driver.is_current():
                with driver.using():
                    return self._run(inputs)
            return self._run(inputs)
        finally:
            self.lock.release()

    def _run(self, inputs: Sequence[Any]) -> list[Any]:
        self.ready()
        given = [v.ptr for v in inputs]
        for address in given:
            if address & 15:
                inputs = [self.aligned(v) for v in inputs]
                given = [v.ptr for v in inputs]
                break
        made = self.results.new()
        given += [v.ptr for v in made]
        self.count(1)
        only = self.only
        if only is not None:
            only.run(tuple(given))
            if self.in_order:
                return made
            there = (*inputs, *made)
            outputs = self.plan.outputs
            return [
                there[i] if i >= 0 else self.fixed[s.number] for i, s in zip(self.order, outputs, strict=True)
            ]
        views = dict(self.fixed)
        views.update({s.number: v for s, v in zip(self.inputs, inputs, strict=True)})
        views.update({s.number: v for s, v in zip(self.outputs, made, strict=True)})
        self._through(views, given)
        return [views[s.number] for s in self.plan.outputs]

    def ready(self) -> None:
        """Have memory, and go on in the order of the current stream."""
        key = self.driver.stream_key()
        if key != self.stream_key:
            self._moved(key)
        if self.memory is None:
            self.prepare()

    def repeated(
        self, state: list[Any], rest: list[Any], passed: dict[int, int], trips: int
    ) -> tuple[list[Any], int]:
        """Do trips of a loop of which this is one, as many as come in whole graphs (see loops.py)."""
        return loops.repeated(self, state, rest, passed, trips)

    def group(self, launches: list[Launch], slots: dict[int, int]) -> Together:
        """Launches in the memories of this program and in others, whose addresses are given for each run."""
        made = Together(self, launches)
        made.prepare(self.addresses, slots)
        return made

    def count(self, times: int) -> None:
        if counters.active:
            counters.add(**{name: n * times for name, n in self.counts.items()})

    def _through(self, views: dict[int, Any], given: list[int]) -> None:
        """Graphs, and what Python does between them."""
        given += [0] * len(self.made)
        for segment in self.segments:
            if isinstance(segment, Together):
                segment.run(tuple(given))
                continue
            self.step(segment, views)
            for ref in segment.writes:
                s = ref.storage
                if s.kind == "made":
                    view = views[s.number] = self.aligned(views[s.number])
                    given[self.slots[s.number]] = view.ptr
            self._let_go(segment, views)

    def _let_go(self, step: Step, views: dict[int, Any]) -> None:
        """Forget results of libraries that nobody reads any more."""
        for ref in step.reads:
            s = ref.storage
            if s.kind == "made" and s.last == step.number and s.number not in self.kept:
                views.pop(s.number, None)

    def aligned(self, view: Any) -> Any:
        """A view that begins where vectors may."""
        if not view.ptr & 15 or not view.size:
            return view
        made = self.inner._empty(view.shape, view.dtype)
        self.inner._copy_into(made, view)
        return made

    def _moved(self, key: Any) -> None:
        """From now on in the order of another stream: the one before may still use the program's memory."""
        stream = self.driver.current_stream()
        if self.stream is not None:
            self.driver.order(stream, self.stream)
        self.stream, self.stream_key = stream, key
        if self.memory is not None:
            self.results.forget()


class Together:
    """Launches that the card is told of at once."""

    def __init__(self, plan: CardPlan, launches: list[Launch]) -> None:
        self.driver = plan.driver
        self.launches = launches
        self.after = dependencies([(x.reads, x.writes) for x in launches])[0]
        # For each memory that may be elsewhere at each call: launches, which of their values, and where in it.
        self.moving: dict[int, list[tuple[int, int, int]]] = {}
        # What runs with the addresses that it was last told.
        self.graphs: dict[tuple[int, ...], Any] = {}
        self.most = GRAPHS if len(launches) < MANY else GRAPHS_OF_MANY
        # Is each launched by itself? With these arguments, of which some are given with each call.
        self.by_itself = False
        # What is to be done before, by the host: links between cards are told that they are used.
        links = {id(x.run.link): x.run for x in launches if hasattr(x.run, "beforehand")}
        self.beforehand = [run.beforehand for run in links.values()]
        self.each: list[tuple[Any, list[Any], list[tuple[int, int, int]]]] = []

    def prepare(self, addresses: dict[int, int], slots: dict[int, int]) -> None:
        each: list[list[tuple[int, int, int]]] = []
        for i, x in enumerate(self.launches):
            mine = []
            for j, (memory, offset) in enumerate(x.operands):
                at = addresses.get(memory)
                if at is None:
                    mine.append((j, slots[memory], offset))
                    self.moving.setdefault(slots[memory], []).append((i, j, offset))
                else:
                    x.values[j] = at + offset
            each.append(mine)
        # Of what is given for a call, what concerns these launches.
        self.slots = sorted(self.moving)
        self.all_slots = self.slots == list(range(len(slots)))
        self.each = [(x.run, x.values, mine) for x, mine in zip(self.launches, each, strict=True)]
        self.by_itself = not self.driver.has_graphs

    def run(self, given: tuple[int, ...]) -> None:
        for prepare in self.beforehand:
            prepare()
        if self.by_itself:
            for run, values, mine in self.each:
                for j, slot, offset in mine:
                    values[j] = given[slot] + offset
                run(*values)
            return
        key = given if self.all_slots else tuple([given[s] for s in self.slots])
        graph = self.graphs.get(key)
        if graph is None:
            graph = self._graph(given, key)
        graph.run()

    def _graph(self, given: tuple[int, ...], key: tuple[int, ...]) -> Any:
        """A graph for these addresses: a new one, or the one that was made first, told of them."""
        changed: dict[int, list[Any]] = {}
        for slot, places in self.moving.items():
            address = given[slot]
            for i, j, offset in places:
                values = self.launches[i].values
                values[j] = address + offset
                changed[i] = values
        if len(self.graphs) < self.most:
            graph = self.driver.kernel_graph([(x.run, x.values) for x in self.launches], self.after)
        else:
            old = next(iter(self.graphs))
            graph = self.graphs.pop(old)
            before = dict(zip(self.slots, old, strict=True))
            wanted: set[int] = set()
            for slot, places in self.moving.items():
                if before[slot] != given[slot]:
                    wanted.update([i for i, _, _ in places])
            for i in wanted:
                graph.tell(i, changed[i])
        self.graphs[key] = graph
        return graph


def joined(kernel: KernelStep, fold: FoldStep) -> Request | None:
    """The request of a reduction that also stores the value it reduces, for which there was a kernel before.

    None if it is not that value, element on element, that is reduced, or if that would take longer: sums of
    rows read them as vectors, which those that store do not.
    """
    shape = fold.request.shape
    if len(kernel.dests) != 1 or kernel.request.shape != shape:
        return None
    axes = {axis % len(shape) for axis in fold.axes}
    several = any(n > 1 and i not in axes for i, n in enumerate(shape))
    if several and (len(shape) - 1 in axes or math.prod(shape) < MANY_ELEMENTS):
        return None
    (dest,) = kernel.dests
    steps, (out,) = kernel.request.key
    later, tops = fold.request.key
    leaves: Any = fold.request.leaves
    if not dest.is_whole or not 0 <= out < SCALAR or steps[out][0].out != dest.dtype:
        return None
    if not any(r.key == dest.key for r in leaves):
        return None
    if any(r.storage is dest.storage and (r.key != dest.key or r.table) for r in leaves):
        return None
    known: Any = list(kernel.request.leaves)
    keys = {r.key: j for j, r in enumerate(known)}
    place: list[int] = []
    for r in leaves:
        if r.key == dest.key:
            place.append(out)
            continue
        if r.key not in keys:
            keys[r.key] = len(known)
            known.append(r)
        place.append(-1 - keys[r.key])
    shift, numbers = len(steps), len(kernel.request.scalars)

    def moved(ref: int) -> int:
        if ref < 0:
            return place[-1 - ref]
        return ref + (numbers if ref >= SCALAR else shift)

    both = (*steps, *[(step[0], *map(moved, step[1:])) for step in later])
    if len(known) > MOST_OPERANDS or len(both) > LARGEST_TREE:
        return None
    scalars = [*kernel.request.scalars, *fold.request.scalars]
    return Request((both, (*map(moved, tops), out)), known, scalars, fold.request.shape, [])


class BlasLaunch:
    """A product by cuBLAS as a launch: of the addresses of operands, the result, and memory to work in."""

    __slots__ = ("call",)
    word = "a product"

    def __init__(self, call: Any) -> None:
        self.call = call

    def __call__(self, *addresses: int) -> None:
        self.call(*addresses[:-1])


class Results:
    """Memory for the results of each call.

    Small ones of one call lie together, and where nobody holds those of an earlier call any more, there: so
    that graphs, which have addresses, are seldom told of new ones.
    """

    def __init__(self, inner: Any, outputs: list[Storage]) -> None:
        self.inner = inner
        self.allocate = inner.driver().allocate
        self.shapes = [(s.shape, s.dtype) for s in outputs]
        # How a view of each small result is, and where it lies among them.
        self.small: list[Any] = []
        self.nbytes = 0
        for shape, dtype in self.shapes:
            strides, size, contiguous, layout = dense_layout(inner.view_type, shape, dtype, "C")
            nbytes = size * dtype.itemsize
            if nbytes > SMALL:
                self.small.append(None)
                continue
            self.small.append((self.nbytes, shape, strides, dtype, size, contiguous, layout))
            self.nbytes += -(-nbytes // 256) * 256
        # What nobody holds any more; the last that came back goes out first.
        self.free: list[tuple[Any, int]] = []

    def forget(self) -> None:
        """What there is belongs to another stream."""
        self.free = []

    def new(self) -> list[Any]:
        if not self.nbytes:
            return [self.inner._empty(shape, dtype) for shape, dtype in self.shapes]
        try:
            memory, start = self.free.pop()
        except IndexError:
            memory, start = self.allocate(self.nbytes)
        owner, kind = Lent(memory, start, self.free), self.inner.view_type
        made = []
        for i, how in enumerate(self.small):
            if how is None:
                made.append(self.inner._empty(*self.shapes[i]))
                continue
            view = _new(kind)
            offset, view.shape, view.strides, view.dtype, view.size, view.contiguous, view._layout = how
            view.owner = owner
            view.ptr = start + offset
            view._proxy = view._parts = None
            made.append(view)
        return made


class Lent:
    """Memory of some results, which all of them hold: with the last of them it comes back."""

    __slots__ = ("back", "memory", "start")

    def __init__(self, memory: Any, start: int, back: list[tuple[Any, int]]) -> None:
        self.memory, self.start, self.back = memory, start, back

    def __del__(self) -> None:
        if len(self.back) < CALLS:
            self.back.append((self.memory, self.start))


_new = object.__new__


@plan_runner.method
def _(inner: type[GPUArray], plan: Plan) -> CardPlan:
    return CardPlan(inner, plan)
