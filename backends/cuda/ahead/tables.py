"""A plan of a card as tables of C (see card.h for what they mean)."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mirabelle.arraytypes.programs.errors import shown_line
from mirabelle.arraytypes.programs.graph import c_strides
from mirabelle.arraytypes.programs.loops import Loop
from mirabelle.arraytypes.programs.running import in_c_order, plan_runner
from mirabelle.arraytypes.programs.steps import CallStep, FoldStep, ProductStep, Ref, Step, Storage
from mirabelle.arraytypes.programs.subgraphs import Subgraph
from mirabelle.backends.codegen.element import KernelText
from mirabelle.backends.cuda.ahead.code import Architecture, image
from mirabelle.backends.cuda.ahead.driver import Kernel, Launched, family
from mirabelle.backends.cuda.kernelgraph import function_of
from mirabelle.backends.gpu.indexchecks import checks
from mirabelle.backends.gpu.kernelgraphs import Launch, dependencies
from mirabelle.backends.gpu.lib_blas import ON_CARD
from mirabelle.backends.gpu.loops import LONGEST, MEMORIES, Turns, rounds_for
from mirabelle.backends.gpu.plans import BLAS_BYTES, BlasLaunch, CardPlan, Together
from mirabelle.backends.host.ahead import linking
from mirabelle.backends.host.ahead.tables import CannotBuild, Tables, braced

# So many numbers go to the card with one launch (card.h), and where they may begin.
NUMBERS, APART = 8, 16
# Where images of kernels begin.
IMAGE = 64
# Of a loop whose number of trips is an argument so many rounds are one graph.
FEW = 16
# The slot of data (whose address is the one of all data), and the one of a plan's own memory.
DATA, ARENA = -1, 0


class Laid:
    """A plan of a card as tables see it: launches, the steps between them, and where everything lies.

    Slots: the plan's own memory, data, inputs in order, results, what is made besides.
    """

    def __init__(self, plan: CardPlan) -> None:
        self.card = plan
        self.plan = plan.plan
        self.data, self.inputs, self.outputs, self.made = plan.data, plan.inputs, plan.outputs, plan.made
        self.segments = plan.segments
        outside = [*self.data, *self.inputs, *self.outputs, *self.made]
        self.slots = {s.number: 1 + i for i, s in enumerate(outside)}
        # Where its own memory begins.
        self.arena = 0

    def place_at(self, memory: int, offset: int) -> tuple[int, int]:
        room = self.card.rooms.get(memory)
        return (self.slots[memory], offset) if room is None else (ARENA, room.offset + offset)

    def place(self, ref: Ref) -> tuple[int, int]:
        return self.place_at(*self.card.place_of(ref))

    def turning(self) -> Laid:
        """The same where launches are in the memories of a loop, which are slots after data."""
        made = Laid(self.card)
        made.slots = _Turning({s.number: 1 + i for i, s in enumerate(self.data)}, 1 + len(self.data) - MEMORIES)
        return made


class _Turning(dict[int, int]):
    def __init__(self, known: dict[int, int], shift: int) -> None:
        super().__init__(known)
        self.shift = shift

    def __missing__(self, memory: int) -> int:
        return memory + self.shift


class CardTables(Tables):
    """The tables of several programs on a card."""

    includes = (
        '#include "card.h"\n'
        'extern const unsigned char CODE[] __attribute__((visibility("hidden")));\n'
        "static const RtCode rt_code;\n"
    )
    # (What cuBLAS works in has to begin there, and other bits come from elsewhere.)
    alignment = 256

    def __init__(self, inner: Any, blas: bool, architectures: list[Architecture]) -> None:
        super().__init__(1, "", frozenset())
        self.architectures = architectures
        self.images = bytearray()
        # The type of the programs' arrays, and the one that plans are laid out for.
        self.inner, self.family = inner, family(blas)
        self.asked: dict[Kernel, int] = {}
        # How many lists of launches there are; does the program at hand look at values?
        self.count = 0
        self.looks = False
        # Copies that the step at hand needs, and whose plan it is.
        self.before: list[Launch] = []
        self.copied: dict[int, tuple[int, int]] = {}
        self.number_of(self.family.driver().load(_numbers(), {}))

    def number_of(self, kernel: Kernel) -> int:
        return self.asked.setdefault(kernel, len(self.asked))

    # What is a card's

    def finish(self) -> None:
        kernels = []
        for kernel in self.asked:
            rows, entries = [], set()
            for a in self.architectures:
                found, entry = image(kernel, a)
                self.images += bytes(-len(self.images) % IMAGE)
                major, minor = a.capability
                rows.append(braced(10 * major + minor, int(a.is_text), int(a.early), len(self.images)))
                self.images += found
                entries.add(entry)
            (entry,) = entries
            kernels.append(braced(f'"{entry}"', self.array("const RtImage", rows)))
        table = self.array("const RtKernel", kernels)
        fields = table, len(kernels), len(self.architectures), "CODE", "DATA", len(self.data), self.count
        self.lines.append(f"static const RtCode rt_code = {braced(*fields)};")

    def binaries(self) -> dict[str, bytes]:
        return {**super().binaries(), "CODE": bytes(self.images)}

    def sources(self) -> list[Path]:
        return [linking.HERE / "runtime.c", Path(__file__).with_name("card.c")]

    def ready(self, plan: Any) -> Any:
        if not isinstance(plan, CardPlan):
            raise CannotBuild(f"A program of {plan.inner.__name__} is not one of a card alone.")
        if plan.inner is not self.family:
            with as_they_were(plan.plan):
                plan = plan_runner(self.family, plan.plan)
        return Laid(plan)

    def within(self, graph: Subgraph, owned: dict[int, int] | None = None) -> Any:
        return self.ready(graph.runner(self.family, owned))

    def begin(self, plan: Any, arena: int) -> int:
        plan.arena = arena
        return int(plan.card.static_bytes)

    def contents(self, view: Any) -> np.ndarray:
        found = self.inner._download(in_c_order(self.inner, view))
        return np.ascontiguousarray(found)

    def segment(self, plan: Any, segment: Any, at: int) -> tuple[list[tuple[str, str]], int]:
        if isinstance(segment, Together):
            return [("rt_launches", self.launches(plan, segment.launches, segment.after))], at
        outer, self.before = self.before, []
        if isinstance(segment, CallStep) and segment.call.kind == "within":
            steps, end = self.checked(plan, segment, at)
        else:
            kind, what, end = self.step(plan, segment, at)
            steps = [(kind, what)]
        copies, self.before = self.before, outer
        if copies:
            steps.insert(0, ("rt_launches", self.launches(plan, copies, [[] for _ in copies])))
        return steps, end

    def ref(self, plan: Any, ref: Ref, at: int) -> tuple[str, int]:
        """As on the host; but what does not lie in C's order, or where vectors begin, is copied by a kernel
        before."""
        place, at = self.settled(plan, ref, at)
        slot, offset = plan.place_at(*place)
        shape, strides = self.integers(ref.shape), self.integers(c_strides(ref.shape, ref.dtype))
        return braced(slot, offset, ref.dtype.itemsize, len(ref.shape), shape, strides, -1), at

    def settled(self, plan: Any, ref: Ref, at: int) -> tuple[tuple[int, int], int]:
        """A memory, and where in it what is shown lies in C's order, perhaps as a copy."""
        card: CardPlan = plan.card
        if ref.is_contiguous and plan.place(ref)[1] % APART == 0:
            return card.place_of(ref), at
        room, end = self.room(plan, ref.nbytes, at)
        dest = Storage(room, "temporary", ref.storage.node)
        strides = c_strides(ref.shape, ref.dtype)
        self.before.append(card._copy(Ref(dest, 0, ref.shape, strides, ref.dtype), ref))
        return (room, 0), end

    def room(self, plan: Any, nbytes: int, at: int) -> tuple[int, int]:
        """A memory in the workspace, and where it ends."""
        card: CardPlan = plan.card
        room = card._besides(nbytes)
        card.rooms[room].offset = at - plan.arena
        return room, at + self.rounded(nbytes)

    def checked(self, plan: Any, step: CallStep, at: int) -> tuple[list[tuple[str, str]], int]:
        """Indices that are arguments: a kernel counts them from 0 on, and notes if one is out of range."""
        index, dest = step.operands[0], step.dests[0]
        if not index.size:
            return [], at
        self.looks = True
        place, at = self.settled(plan, index, at)
        flag, at = self.room(plan, 8, at)
        clear, run = checks(self.family.driver(), index.dtype, index.size, step.call.template[0][2])
        launches = [
            *self.before,
            Launch(clear, [(flag, 0)], [], [], []),
            Launch(run, [(dest.number, 0), place, (flag, 0)], [], [], []),
        ]
        after: list[list[int]] = [[] for _ in launches[:-1]]
        self.before = []
        told = self.structure("RtFlag", "flag", *plan.place_at(flag, 0))
        made = self.launches(plan, launches, [*after, [*range(len(after))]])
        return [("rt_launches", made), ("rt_flagged", told)], at

    def repeated(self, plan: Any, step: CallStep, at: int) -> tuple[str, int]:
        loop = step.call.template[0][0]
        self.looks |= loop.condition is not None or loop.trips is None
        return super().repeated(plan, step, at)

    def rounds(self, loop: Loop, body: Any, n_operands: int, at: int) -> tuple[str, str, int]:
        card: CardPlan = body.card
        only = len(card.segments) == 1 and isinstance(card.segments[0], Together) and not card.made
        if loop.condition is not None or not only:
            return "NULL", "NULL", at
        turns = Turns(card, len(loop.outputs), loop.passed)
        period, most = len(turns.trips), LONGEST // max(1, len(turns.trips) * len(card.segments[0].launches))
        wanted = FEW if loop.trips is None else loop.trips // max(period, 1)
        times = rounds_for(wanted, most) if loop.trips is not None else min(wanted, most)
        if not turns.works or times * period < 2:
            return "NULL", "NULL", at
        launches = turns.launches(card, times)
        after = dependencies([(x.reads, x.writes) for x in launches])[0]
        places = []
        for shape, dtype in turns.further:
            places.append(at)
            at += self.rounded(math.prod(shape) * dtype.itemsize)
        made = self.structure(
            "RtRounds", "rounds", self.launch_list(body.turning(), launches, after), times * period,
            n_operands, len(places), self.integers(places),
        )  # fmt: skip
        return "rt_rounds", f"&{made}", at

    def branched(self, plan: Any, step: CallStep, at: int) -> tuple[str, int]:
        self.looks = True
        return super().branched(plan, step, at)

    def refused(self, why: str) -> CannotBuild:
        where = "" if self.line is None else f" in {shown_line(self.line)}"
        return CannotBuild(
            f"The program cannot be built ahead of time: {why}{where}. Compute that outside of the compiled "
            "function, or write it with what has kernels (arithmetic, reductions, gathers, "
            "@mb.kernel), with products of matrices, mb.while_loop, mb.fori_loop and mb.cond."
        )

    def routine(self, plan: Any, step: Step, at: int) -> tuple[str, str, int]:
        if isinstance(step, ProductStep):
            a, b = step.operands
            why = f"a product of {a.dtype.name}{list(a.shape)} and {b.dtype.name}{list(b.shape)}"
            raise self.refused(f"{why} is a routine of CuPy's")
        if isinstance(step, FoldStep):
            raise self.refused(f"the reduction {step.name}() is a routine of CuPy's")
        raise self.refused(f"{step.name}() is a routine of CuPy's, or of Python's")

    # Launches

    def launches(self, plan: Any, launches: list[Launch], after: list[list[int]]) -> str:
        number = self.name("launches")
        self.lines.append(f"static const RtLaunches {number} = {self.launch_list(plan, launches, after)};")
        return number

    def launch_list(self, plan: Any, launches: list[Launch], after: list[list[int]]) -> str:
        followers = [0] * len(launches)
        for earlier in after:
            for i in earlier:
                followers[i] += 1
        kernels = [isinstance(x.run, Launched) for x in launches]
        cells, slots, most = [], set(), 0
        for i, (x, earlier) in enumerate(zip(launches, after, strict=True)):
            chained = len(earlier) == 1 and followers[earlier[0]] == 1 and kernels[i] and kernels[earlier[0]]
            cell, used, n = self.launched(plan, x, earlier, chained)
            cells.append(cell)
            slots |= used
            most = max(most, n)
        number, self.count = self.count, self.count + 1
        used_slots = sorted(slots - {DATA})
        table, known = self.array("const RtLaunch", cells), self.integers(used_slots)
        return braced(table, known, len(cells), len(used_slots), number, most)

    def launched(self, plan: Any, x: Launch, earlier: list[int], chained: bool) -> tuple[str, set[int], int]:
        """A launch, the slots that it knows, and how many words it has."""
        places = [plan.place_at(*operand) for operand in x.operands]
        run = x.run
        if isinstance(run, BlasLaunch):
            return self.called(run.call, places, earlier)
        if not isinstance(run, Launched):
            raise self.refused("messages to other processes are sent by Python")
        count = len(places)
        values = run.words([0] * count + list(x.values[count:]))
        patches = [(j, *place) for j, place in enumerate(places)]
        sent = self.family.driver().memory.sent
        for j, value in enumerate(values):
            if j >= count and value in sent:
                values[j] = 0
                patches.append((j, DATA, self.data_at(sent[value])))
        cell = braced(
            self.number_of(run.kernel), braced(*run.grid), braced(*run.block), self.integers(values),
            self.array("const RtPatch", [braced(*p) for p in patches]), len(values), len(patches),
            self.integers(earlier), len(earlier), int(chained), "NULL", 0, braced(0, 0, 0),
        )  # fmt: skip
        return cell, {slot for _, slot, _ in patches}, len(values)

    def called(self, call: Any, places: list[tuple[int, int]], earlier: list[int]) -> tuple[str, set[int], int]:
        """A call of cuBLAS. The last of its places is memory to work in."""
        *places, memory = places
        operands = dict(zip("abc", places, strict=True))
        words: list[Any] = []
        patches = []
        for j, x in enumerate(call.said):
            if isinstance(x, str):
                patches.append((j, *operands[x]))
                words.append(0)
            else:
                words.append(f"(int64_t)({self.constant(x)})" if isinstance(x, np.ndarray) else x)
        cell = braced(
            -1, braced(0, 0, 0), braced(0, 0, 0), self.integers(words),
            self.array("const RtPatch", [braced(*p) for p in patches]), len(words), len(patches),
            self.integers(earlier), len(earlier), 0, f'"{function_of(call.name)}"',
            int(call.name[1:] in ON_CARD), braced(BLAS_BYTES, *memory),
        )  # fmt: skip
        return cell, {slot for slot, _ in (*places, memory)}, len(words)


@contextlib.contextmanager
def as_they_were(plan: Any) -> Iterator[None]:
    """A plan is laid out anew, and what its first layout said of it stays."""
    before = plan.arena_bytes, plan.peak_bytes, [s.offset for s in plan.storages]
    try:
        yield
    finally:
        plan.arena_bytes, plan.peak_bytes, offsets = before
        for s, offset in zip(plan.storages, offsets, strict=True):
            s.offset = offset


@functools.cache
def _numbers() -> KernelText:
    """A kernel that puts numbers where other kernels read them."""
    names = [f"n{i}" for i in range(NUMBERS)]
    stores = "\n".join([f"    store_u8(out, {i * APART // 8}, {name})" for i, name in enumerate(names)])
    text = f"def numbers(out, {', '.join(names)}):\n{stores}\n"
    return KernelText(text, "numbers", ("i8", *["u8"] * NUMBERS))


__all__ = ["APART", "CardTables", "Laid"]
