"""Task lists: statements that follow one another, run by one native call a thread.

A launch from Python costs microseconds: finding the plan, filling the argument block, waking
threads, coming back. A list has all argument blocks laid out beforehand; its native runner
(`runner.py`) goes through them, with the threads meeting between statements that depend on one
another. Memory is known by the numbers of slots, whose addresses are given when a list is run.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mirabelle.backends.codegen.program import Program
from mirabelle.backends.codegen.reduceframe import reduction_sig
from mirabelle.backends.codegen.source import BLOCK
from mirabelle.backends.host import run, runner
from mirabelle.backends.host.loops import loop_address
from mirabelle.backends.host.reduce import ReductionPlan
from mirabelle.dispatch.forks import ForkLock
from mirabelle.dispatch.settings import settings

if TYPE_CHECKING:
    from mirabelle.backends.codegen.source import Source
    from mirabelle.backends.host.slabs import Chain
    from mirabelle.dispatch.promotion import Sig

# Where an operand is: the number of a slot, and an offset in bytes.
Place = tuple[int, int]
# Pieces a thread takes of a large statement: a claim costs next to nothing here, but what one
# piece finds in the cache, another thread does not.
_EACH = 3
# The bytes that a slab of a chain touches (a part of the second-level cache), and the least work of a call.
_CACHED, _LEAST_WORK = 1 << 18, 512


class Call(NamedTuple):
    """One native call: the address of the code, where its argument block begins, and its range."""

    code: int
    block: int
    lo: int
    hi: int
    first: int = 0
    last: int = 0
    rlo: int = 0
    rhi: int = 1
    part: int = 0


# What is done in one go by one thread, and how much work it is: elements, times operations.
Ticket = tuple[list[Call], int]
# The tickets of a statement. Those of one phase may run at once; phases follow one another.
Phases = list[list[Ticket]]
# A ticket whose calls have the numbers of their statements.
Numbered = tuple[list[tuple[int, Call]], int]


def _cost(program: Program) -> int:
    """The work an element is, in additions. Here threads meet within a microsecond, so that it counts."""
    return min(program.cost, 16)


def _alone(work: int) -> bool:
    """Is this work for one thread?"""
    return work < settings.thread_size or settings.num_threads < 2


class _Launch:
    """An elementwise statement."""

    def __init__(self, code: int, block: int, plan: run.LaunchPlan, in_order: bool) -> None:
        self.cost = _cost(plan.program)
        self.code = code
        self.block = block
        self.rows, self.inner, self.tiled = plan.rows, plan.inner, plan.tiled
        self.in_order = in_order
        self.work = self.rows * self.inner * self.cost

    def sliced(self, of: int) -> bool:
        """Can each of so many leading rows be computed by itself?"""
        return self.in_order

    def slab(self, lo: int, hi: int, of: int) -> list[Call]:
        """The leading rows from `lo` to `hi`, of so many."""
        inner, each = self.inner, self.rows * self.inner // of
        (row, begin), (last, end) = divmod(lo * each, inner), divmod(hi * each, inner)
        pieces = [(row, last, 0, inner)]
        if row == last:
            pieces = [(row, row + 1, begin, end)]
        elif begin or end:
            pieces = [(row, row + 1, begin, inner), (row + 1, last, 0, inner), (last, last + 1, 0, end)]
        return [Call(self.code, self.block, *p) for p in pieces if p[0] < p[1] and p[2] < p[3]]

    def phases(self) -> Phases:
        n = self.rows * self.inner
        if not n:
            return [[]]
        if _alone(n * self.cost):
            return [[([Call(self.code, self.block, 0, self.rows, 0, self.inner)], n * self.cost)]]
        pieces = run.split(self.rows, self.inner, 64 if self.tiled else 1, _EACH)
        return [
            [
                ([Call(self.code, self.block, lo, hi, first, last)], (hi - lo) * (last - first) * self.cost)
                for lo, hi, first, last in pieces
            ]
        ]


class _Given:
    """A kernel over pieces that `cut` says, which is in no chain."""

    work = 0

    def __init__(self, code: int, block: int, cut: Callable[[], Sequence[Sequence[int]]]) -> None:
        self.code = code
        self.block = block
        self.cut = cut

    def sliced(self, of: int) -> bool:
        return False

    def slab(self, lo: int, hi: int, of: int) -> list[Call]:
        return []

    def phases(self) -> Phases:
        return [[([Call(self.code, self.block, *piece)], settings.thread_size) for piece in self.cut()]]


class _Span:
    """Filling or copying: `code` over a range of elements."""

    def __init__(self, code: int, block: int, count: int, itemsize: int) -> None:
        self.code = code
        self.block = block
        self.count = count
        self.itemsize = itemsize

    def phases(self) -> Phases:
        # Memory is what limits it: counted in words of eight bytes.
        n = self.count * self.itemsize // 8
        want = 1 if _alone(n) else settings.num_threads
        edges = [self.count * i // want // 64 * 64 for i in range(want)] + [self.count]
        return [
            [
                ([Call(self.code, self.block, lo, hi)], (hi - lo) * self.itemsize // 8 + 1)
                for lo, hi in itertools.pairwise(edges)
                if hi > lo
            ]
        ]


class _Reduction:
    """Fused reductions: partial results, then NumPy's loop over them, from the neutral element."""

    def __init__(self, tasks: TaskList, plan: ReductionPlan, results: list[Place]) -> None:
        self.plan = plan
        # One more for each combination with what was reduced before.
        self.cost = _cost(plan.program) + len(plan.dtypes)
        self.columns = plan.arrangement.inner_kept
        self.per_row = plan.reduced * plan.blocks
        self.direct = plan.parts == 1 if self.columns else self.per_row == 1
        self.direct &= not tasks.keeps_partials
        self.work = plan.n * self.cost
        self.results = results
        # Where partial results go: straight to the results if each has only one.
        self.partials: list[Place] = results
        if not self.direct:
            count = plan.parts * plan.kept * plan.inner if self.columns else plan.kept * self.per_row
            self.partials = [tasks.scratch(count * dtype.itemsize) for dtype in plan.dtypes]
        self.fill_partials: list[tuple[int, int]] = []
        self.fill_results: list[tuple[int, int]] = []
        self.folds: list[int] = []
        self.fold = runner.FOLD
        for ufunc, neutral, dtype, partial, result in zip(
            plan.ufuncs, plan.neutrals, plan.dtypes, self.partials, results, strict=True
        ):
            size = dtype.itemsize
            value = run.scalar_words(neutral, dtype)
            if not self.columns:
                self.fill_partials.append((runner.FILL[size], tasks.block([0, *value], {0: partial})))
            if self.direct:
                continue
            self.fill_results.append((runner.FILL[size], tasks.block([0, *value], {0: result})))
            sig = reduction_sig(ufunc.__name__, dtype)
            loop = loop_address(sig)
            assert loop is not None, ufunc
            if self.columns:
                columns = plan.kept * plan.inner
                rest = [0, columns * size, columns, size, size]
            else:
                rest = [size, self.per_row * size, self.per_row, 0, size]
            self.folds.append(tasks.block([*loop, 0, 0, *rest], {2: result, 3: partial}))
            tasks.loops[self.folds[-1]] = sig

    def begin(self, code: int, block: int) -> None:
        self.code = code
        self.block = block

    def phases(self) -> Phases:
        return self.column_phases() if self.columns else self.row_phases()

    def sliced(self, of: int) -> bool:
        """Can each of so many leading rows be computed by itself?"""
        plan = self.plan
        in_order = plan.back == tuple(range(len(plan.back)))
        return in_order and plan.kept % of == 0 and (self.direct or not self.columns)

    def slab(self, lo: int, hi: int, of: int) -> list[Call]:
        """The leading rows from `lo` to `hi`, of so many."""
        plan = self.plan
        lo, hi = lo * plan.kept // of, hi * plan.kept // of
        if self.columns:
            return [Call(self.code, self.block, lo, hi, 0, plan.inner, 0, plan.reduced)]
        return [*self.some_rows(lo * plan.reduced, hi * plan.reduced, 0, plan.inner), *self.combine(lo, hi)]

    def combine(self, lo: int, hi: int) -> list[Call]:
        """The partial results to results: of the kept rows from `lo` to `hi`, or of all columns."""
        if self.direct:
            return []
        plan = self.plan
        out: list[Call] = []
        for (fill, filled), fold in zip(self.fill_results, self.folds, strict=True):
            if self.columns:
                out.append(Call(fill, filled, 0, plan.kept * plan.inner))
                out.append(Call(self.fold, fold, 0, plan.parts))
            else:
                out.append(Call(fill, filled, lo, hi))
                out.append(Call(self.fold, fold, lo, hi))
        return out

    def some_rows(self, lo: int, hi: int, first: int, last: int) -> list[Call]:
        """The partial results of a range of rows; of one row, also of a range within it."""
        blocks = self.plan.blocks
        begin = lo * blocks + first // BLOCK
        end = (hi - 1) * blocks + -(-last // BLOCK)
        calls = [Call(fill, block, begin, end) for fill, block in self.fill_partials]
        return [*calls, Call(self.code, self.block, lo, hi, first, last)]

    def row_phases(self) -> Phases:
        plan = self.plan
        kept, reduced, inner = plan.kept, plan.reduced, plan.inner
        work = plan.n * self.cost
        if _alone(work):
            return [[([*self.some_rows(0, kept * reduced, 0, inner), *self.combine(0, kept)], work)]]
        want = settings.num_threads * _EACH
        if kept >= want:
            # Each piece has all of its rows, and need not wait for others to combine them.
            edges = [kept * i // want for i in range(want + 1)]
            return [
                [
                    (
                        [*self.some_rows(lo * reduced, hi * reduced, 0, inner), *self.combine(lo, hi)],
                        (hi - lo) * reduced * inner * self.cost,
                    )
                    for lo, hi in itertools.pairwise(edges)
                ]
            ]
        pieces = [
            (self.some_rows(*piece), (piece[1] - piece[0]) * (piece[3] - piece[2]) * self.cost)
            for piece in run.split(kept * reduced, inner, 1, _EACH)
        ]
        after = self.combine(0, kept)
        return [pieces, [(after, kept * self.per_row)]] if after else [pieces]

    def column_phases(self) -> Phases:
        plan = self.plan
        small = _alone(plan.n * self.cost)
        whole = (0, plan.kept, 0, plan.inner)
        # As ReductionPlan does; parts are pieces too.
        each = -(-_EACH // plan.parts)
        pieces = [whole] if small else run.split(plan.kept, plan.inner, 1, each)
        tickets: list[Ticket] = [
            (
                [Call(self.code, self.block, lo, hi, first, last, rlo, rhi, part)],
                (hi - lo) * (last - first) * (rhi - rlo) * self.cost,
            )
            for part, (rlo, rhi) in enumerate(itertools.pairwise(plan.edges()))
            for lo, hi, first, last in pieces
        ]
        after = self.combine(0, 0)
        if small:
            return [[([*[c for calls, _ in tickets for c in calls], *after], plan.n * self.cost)]]
        return [tickets, [(after, plan.parts * plan.kept * plan.inner)]] if after else [tickets]


class TaskList:
    """Statements that follow one another, run by native code.

    >>> import numpy as np
    >>> from mirabelle.backends.host.tasks import TaskList
    >>> tasks = TaskList(2)
    >>> tasks.copy((1, 0), (0, 8), 16)
    0
    >>> a, b = np.arange(4.0), np.zeros(2)
    >>> tasks.run([x.ctypes.data for x in (a, b)])
    >>> b
    array([1., 2.])
    """

    # Have partial results memory of their own, also where there is one for each result?
    keeps_partials = False

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.words: list[int] = []
        # (word, slot, offset); slot -1 is the list's own scratch memory.
        self.patches: list[tuple[int, int, int]] = []
        self.scratch_bytes = 0
        self._statements: list[_Launch | _Span | _Given | _Reduction] = []
        self._after: list[tuple[int, ...] | None] = []
        self._chains: dict[int, Chain] = {}
        self._most: dict[int, int] = {}
        # Statements that run at once with one before them: its number.
        self._beside: dict[int, int] = {}
        self._programs: dict[int, Program] = {}
        self._kernels: list[Any] = []
        # What a library that is built ahead of time is made of: the sources of kernels, with their programs, by
        # the addresses of their code; and where the argument blocks have addresses of NumPy's loops.
        self.sources: dict[int, tuple[Source, Program]] = {}
        self.loops: dict[int, Sig] = {}
        self._laid: _Laid | None = None
        self._lock = ForkLock()

    @property
    def count(self) -> int:
        """How many statements there are."""
        return len(self._statements)

    # Statements

    def launch(
        self,
        program: Program,
        entry: Any,
        arrangement: Any,
        operands: Sequence[Place],
        scalars: list[Any],
        after: Collection[int] | None = None,
    ) -> int:
        """An elementwise statement over `operands`, outputs first; returns its number.

        It waits for the statements `after` and for what those wait for, or for all before it. All
        else may run before it, after it or at once, also what follows it with an `after` of its
        own: so `after` names what writes what this one reads, and what reads or writes the memory
        this one writes.
        """
        plan = run.LaunchPlan(program, entry, arrangement)
        words = plan.words
        if scalars:
            given = run.scalar_block(program, scalars)
            words[plan.scalars : plan.scalars + len(given)] = given
        block = self.block(words, dict(zip(plan.addresses, operands, strict=True)))
        self._made_of(entry, program, block + len(words))
        statement = _Launch(entry.kernel.address, block, plan, arrangement.in_order)
        return self._add(statement, after, entry.kernel, program)

    def reduce(
        self,
        plan: ReductionPlan,
        results: Sequence[Place],
        operands: Sequence[Place],
        scalars: list[Any],
        after: Collection[int] | None = None,
        rows: Sequence[int] | None = None,
    ) -> int:
        """Fused reductions, whose results go where `results` says, in the order `plan.run` returns them.

        `rows` says how many bytes apart the rows of results are that no partial results are made for.
        """
        if not plan.ready(wait=True):
            raise ValueError(
                "There is no compiled kernel for this reduction. Ask plan.ready(wait=True) first, and run "
                "it with plan.run(...) if it says no."
            )
        statement = _Reduction(self, plan, list(results))
        words = plan.words.copy()
        for at, distance in zip(plan.addresses, rows or (), strict=False):
            words[at + 2] = distance
        if scalars:
            given = run.scalar_block(plan.program, scalars)
            words[plan.scalars : plan.scalars + len(given)] = given
        places = [*statement.partials, *operands]
        kernel = plan.entry.kernel
        block = self.block(words, dict(zip(plan.addresses, places, strict=True)))
        self._made_of(plan.entry, plan.program, block + len(words))
        statement.begin(kernel.address, block)
        return self._add(statement, after, kernel, plan.program)

    def copy(self, dest: Place, source: Place, nbytes: int, after: Collection[int] | None = None) -> int:
        """Copy bytes, between memory that does not overlap."""
        block = self.block([0, 0], {0: dest, 1: source})
        return self._add(_Span(runner.COPY, block, nbytes, 1), after)

    def fill(
        self, dest: Place, value: Any, dtype: Any, count: int, after: Collection[int] | None = None
    ) -> int:
        """Write one value to `count` elements that follow one another."""
        dtype = np.dtype(dtype)
        block = self.block([0, *run.scalar_words(value, dtype)], {0: dest})
        return self._add(_Span(runner.FILL[dtype.itemsize], block, count, dtype.itemsize), after)

    def _add(
        self,
        statement: _Launch | _Span | _Given | _Reduction,
        after: Collection[int] | None,
        kernel: Any = None,
        program: Program | None = None,
    ) -> int:
        number = len(self._statements)
        self._statements.append(statement)
        self._after.append(None if after is None else tuple(after))
        if kernel is not None:
            self._kernels.append(kernel)  # its code stays loaded
        if program is not None and program.user_functions:
            self._programs[number] = program
        self._laid = None
        return number

    def _made_of(self, entry: Any, program: Program, end: int) -> None:
        """Keep what a kernel is made of, whose argument block ends there with the loops that it calls."""
        self.sources[entry.kernel.address] = entry.source, program
        first = end - 2 * len(entry.source.loops)
        self.loops.update({first + 2 * i: sig for i, sig in enumerate(entry.source.loops)})

    def block(self, words: Sequence[int], places: dict[int, Place]) -> int:
        """Room for an argument block, of which the words `places` are addresses; returns where it begins."""
        at = len(self.words)
        self.words += words
        for word, (slot, offset) in places.items():
            if not -1 <= slot < self.slots:
                raise ValueError(f"There is no slot {slot}: the list has {self.slots}.")
            self.patches.append((at + word, slot, offset))
        return at

    def scratch(self, nbytes: int) -> Place:
        """Memory of the list's own."""
        at = self.scratch_bytes
        self.scratch_bytes += -(-nbytes // 64) * 64
        return -1, at

    # Running

    def sliced(self, number: int) -> Callable[[int], bool]:
        """What says whether each of so many leading rows of a statement can be computed by itself."""
        statement = self._statements[number]
        return (lambda rows: False) if isinstance(statement, _Span) else statement.sliced

    def chain(self, chain: Chain) -> None:
        """Let statements run slab by slab (see `slabs`)."""
        self._chains[chain.first] = chain
        self._laid = None

    def together(self, numbers: range) -> None:
        """Let elementwise statements that need nothing of each other run at once.

        >>> tasks = TaskList(2)
        >>> numbers = [tasks.copy((1, k), (0, k), 8) for k in (0, 8)]
        >>> tasks.together(range(2))
        >>> len(tasks.levels())
        1
        """
        self._beside.update(dict.fromkeys(numbers[1:], numbers[0]))
        self._laid = None

    def limit(self, number: int, threads: int) -> None:
        """Let so many threads at most work on a statement."""
        self._most[number] = threads
        self._laid = None

    def levels(self) -> list[list[Numbered]]:
        """The tickets in levels that must follow one another."""
        levels: list[list[Numbered]] = []
        ends: list[int] = []
        for number, (statement, after) in enumerate(zip(self._statements, self._after, strict=True)):
            if number < len(ends):
                continue  # (of a chain)
            chain = self._chains.get(number)
            slabs = self.slabs(chain) if chain is not None else []
            if chain is not None and slabs:
                most = [self._most[k] for k in range(number, number + chain.length) if k in self._most]
                levels.append(_shared_by(min(most), slabs) if most else slabs)
                ends += [len(levels)] * chain.length
                continue
            begin = len(levels) if after is None else max([ends[k] for k in after], default=0)
            if number in self._beside:
                begin = ends[self._beside[number]] - 1
            for d, phase in enumerate(statement.phases()):
                while len(levels) <= begin + d:
                    levels.append([])
                tickets = [([(number, call) for call in calls], n) for calls, n in phase]
                if number in self._most:
                    tickets = _shared_by(self._most[number], tickets)
                levels[begin + d] += tickets
                end = begin + d + 1
            ends.append(end)
        return levels

    def slabs(self, chain: Chain) -> list[Numbered]:
        """A chain as tickets, each a slab of rows through all its statements; none where that is no gain."""
        numbers = range(chain.first, chain.first + chain.length)
        members = [self._statements[k] for k in numbers]
        work = sum([m.work for m in members if not isinstance(m, _Span)])
        if chain.slab:
            edges = [*range(0, chain.rows, chain.slab), chain.rows]
            return self.cut(chain, members, work, edges) if len(edges) > 2 else []
        pieces = min(-(-chain.nbytes // _CACHED), work // (_LEAST_WORK * chain.length))
        if not _alone(work):
            each = work // (_LEAST_WORK * chain.length * settings.num_threads)
            pieces = max(pieces, settings.num_threads * max(1, min(_EACH, each)))
            if chain.rows < 2 * settings.num_threads:
                return []
        pieces = min(pieces, chain.rows)
        if pieces < 2:
            return []
        return self.cut(chain, members, work, [chain.rows * i // pieces for i in range(pieces + 1)])

    def cut(self, chain: Chain, members: Sequence[Any], work: int, edges: Sequence[int]) -> list[Numbered]:
        """The slabs of a chain between some rows."""
        numbers = range(chain.first, chain.first + chain.length)
        return [
            (
                [
                    (k, call)
                    for k, m in zip(numbers, members, strict=True)
                    if not isinstance(m, _Span)
                    for call in m.slab(lo, hi, chain.rows)
                ],
                work * (hi - lo) // chain.rows,
            )
            for lo, hi in itertools.pairwise(edges)
        ]

    def finish(self) -> None:
        """Lay everything out for the number of threads there are; run() does it if need be."""
        with self._lock:
            self._laid = _Laid(self)

    def run(self, addresses: Sequence[int], times: int = 1, words: Sequence[int] | None = None) -> None:
        """Run all statements, `times` times over, on the memory at `addresses[slot]`; `words` are the argument
        blocks, where they are not what they were."""
        with self._lock:
            laid = self._laid
            if laid is None or laid.threads != settings.num_threads or laid.size != settings.thread_size:
                laid = self._laid = _Laid(self)
            if words is not None:
                laid.words[:] = words
            failed = laid.run(tuple(addresses), times)
        if failed:
            raise run.raised(self._programs[failed - 1])


def _shared_by(threads: int, tickets: list[Numbered]) -> list[Numbered]:
    """Tickets joined to as many as there are to be threads."""
    if len(tickets) <= threads:
        return tickets
    edges = [len(tickets) * i // threads for i in range(threads + 1)]
    return [
        ([call for calls, _ in tickets[a:b] for call in calls], sum([n for _, n in tickets[a:b]]))
        for a, b in itertools.pairwise(edges)
    ]


class Pieces:
    """One kernel over the pieces of its range that `cut` says, on all threads.

    It is what `threads.run_all` is for functions of Python, without Python between the pieces.
    """

    def __init__(self, kernel: Any, words: int, cut: Callable[[], Sequence[Sequence[int]]]) -> None:
        self.tasks = TaskList(0)
        self.tasks.block([0] * words, {})
        self.tasks._add(_Given(kernel.address, 0, cut), None, kernel)

    def run(self, words: Sequence[int]) -> None:
        """Run it on an argument block."""
        self.tasks.run((), words=words)


class _Laid:
    """A list in native memory. Whoever works on it holds it, so that it stays as long as they do."""

    def __init__(self, tasks: TaskList) -> None:
        self.threads = settings.num_threads
        self.size = settings.thread_size
        self.slots = tasks.slots
        self.kernels = list(tasks._kernels)
        self.words = np.array(tasks.words or [0], np.int64)
        self.scratch = np.empty(tasks.scratch_bytes + 64, np.uint8)
        own = -(-self.scratch.ctypes.data // 64) * 64
        at = self.words.ctypes.data
        patches = []
        for word, slot, offset in tasks.patches:
            if slot < 0:
                self.words[word] = own + offset
            else:
                patches.append((at + 8 * word, slot, offset))
        self.patches = np.array(patches or [(0, 0, 0)], np.int64)
        stages, tickets, calls = staged(tasks.levels(), at)
        self.stages = np.array(stages, np.int64)
        self.tickets = np.full((len(tickets), runner.TICKET_WORDS), -1, np.int64)
        self.tickets[:-1, runner.FIRST] = tickets[:-1]
        self.tickets[:-1, runner.END] = tickets[1:]
        self.calls = np.array(calls or [(0,) * runner.CALL_WORDS], np.int64)
        most = max([b - a for a, b in itertools.pairwise(stages)], default=0)
        self.helpers = min(self.threads, most) - 1
        # The block begins a cache line.
        room = np.zeros(runner.BLOCK_WORDS + 8, np.int64)
        self.room = room
        begin = -room.ctypes.data % 64 // 8
        block = room[begin : begin + runner.BLOCK_WORDS]
        block[runner.STAGES] = self.stages.ctypes.data
        block[runner.TICKETS] = self.tickets.ctypes.data
        block[runner.CALLS] = self.calls.ctypes.data
        block[runner.TICKETS_EACH] = len(tickets) - 1
        block[runner.PATCHES] = self.patches.ctypes.data
        block[runner.N_PATCHES] = len(patches)
        block[runner.THREADS] = max(self.threads, 1)
        block[runner.HELPERS] = max(self.helpers, 0)
        self.address = block.ctypes.data
        self.addresses: tuple[int, ...] | None = None

    def run(self, addresses: tuple[int, ...], times: int) -> int:
        """Run the list; the number of the statement that failed, plus one, or 0."""
        given = None
        if addresses != self.addresses:
            if len(addresses) != self.slots:
                raise ValueError(f"The list has {self.slots} slots, and {len(addresses)} addresses are given.")
            self.addresses = None  # should a fork find us half-way
            given = addresses
        failed: int = runner.run(self.address, times, given)
        self.addresses = addresses
        return failed


def staged(levels: list[list[Numbered]], at: int) -> tuple[list[int], list[int], list[tuple[int, ...]]]:
    """The first tickets of the stages, the first calls of the tickets, the calls.

    Small levels that follow one another are one ticket, which the caller runs.
    """
    stages, tickets = [0], [0]
    calls: list[tuple[int, ...]] = []
    alone = False  # is the last stage one of small levels?
    for level in levels:
        work = sum(n for _, n in level)
        several = len(level) > 1 and not _alone(work)
        if not several:
            for ticket, _ in level:
                calls += [_native(call, at, number) for number, call in ticket]
            if not level:
                continue
            if alone:
                tickets[-1] = len(calls)
            else:
                tickets.append(len(calls))
                stages.append(len(tickets) - 1)
            alone = True
            continue
        # Tickets smaller than a share are joined: claiming one costs about as much as a small statement.
        share = min(settings.thread_size, work // (settings.num_threads * _EACH))
        held = 0
        for ticket, n in level:
            calls += [_native(call, at, number) for number, call in ticket]
            held += n
            if held >= share:
                tickets.append(len(calls))
                held = 0
        if tickets[-1] < len(calls):
            tickets.append(len(calls))
        # A stage of one ticket is the caller's, as it should be.
        stages.append(len(tickets) - 1)
        alone = False
    return stages, tickets, calls


def _native(call: Call, at: int, number: int) -> tuple[int, ...]:
    """A call as the runner reads it."""
    return (call.code, at + 8 * call.block, *call[2:], number)
