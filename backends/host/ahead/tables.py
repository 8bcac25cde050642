"""A plan of the host as tables of C (see runtime.h for what they mean)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.programs.errors import shown_line
from mirabelle.arraytypes.programs.graph import Slot, c_strides
from mirabelle.arraytypes.programs.loops import Branches, Loop
from mirabelle.arraytypes.programs.running import in_c_order
from mirabelle.arraytypes.programs.steps import CallStep, KernelStep, ProductStep, Ref, Step, Storage
from mirabelle.arraytypes.programs.subgraphs import Subgraph
from mirabelle.backends.host import kernels, runner
from mirabelle.backends.host.ahead import jitted, linking, routines
from mirabelle.backends.host.ahead.objects import NotPortable, kernel_object
from mirabelle.backends.host.plans import HostPlan
from mirabelle.backends.host.tasks import TaskList, staged
from mirabelle.dispatch.promotion import Sig
from mirabelle.dispatch.settings import settings

# Axes that products and scatters count along (runtime.c, routines.c).
_MOST_AXES = 32
# The words of a list, of a call, of a ticket (pool.h).
_LIST_BYTES, _CALL_BYTES, _TICKET_BYTES = 8 * runner.BLOCK_WORDS, 8 * runner.CALL_WORDS, 8 * runner.TICKET_WORDS


class CannotBuild(TypeError):
    """A program with something in it that needs Python."""


class Tables:
    """The tables of several programs, the kernels they call and the data they hold.

    `threads` is for how many threads lists are laid out, beside one; `loops` are NumPy's loops that loops.c
    has.
    """

    # What the tables need beside the headers of the host.
    includes = ""
    # Memories begin at multiples of so many bytes, and so does the workspace: a cache line.
    alignment = 64

    def __init__(self, threads: int, cpu: str, loops: frozenset[str]) -> None:
        self.threads = threads
        self.cpu = cpu
        self.offered = loops
        self.lines: list[str] = []
        # The object code of kernels by name; their names by source.
        self.objects: dict[str, bytes] = {}
        self.kernels: dict[Any, str] = {}
        self.loops: set[str] = set()
        # Is BLAS or LAPACK called?
        self.blas = False
        # The sources in C that are needed beside what runs plans.
        self.parts: set[str] = set()
        # Constant arrays, in one file: where each begins.
        self.data = bytearray()
        self.known_data: dict[bytes, int] = {}
        self.number = 0
        # Of the program that is being written: its lists, the memory for them, the line of the step at hand.
        self.lists: list[str] = []
        self.own = 0
        # Bytes that the program has besides, at the beginning of the memory of lists.
        self.beside = 0
        self.line: Any = None

    def rounded(self, n: int) -> int:
        return -(-n // self.alignment) * self.alignment

    # C

    def name(self, stem: str) -> str:
        self.number += 1
        return f"{stem}_{self.number}"

    def array(self, kind: str, values: Iterable[Any], stem: str = "t") -> str:
        """An array of C; NULL if there is nothing in it."""
        cells = [value if isinstance(value, str) else marked(value) for value in values]
        if not cells:
            return "NULL"
        name = self.name(stem)
        self.lines.append(f"static {kind} {name}[] = {{{', '.join(cells)}}};")
        return name

    def integers(self, values: Iterable[Any]) -> str:
        return self.array("const int64_t", values)

    def structure(self, kind: str, stem: str, *fields: Any) -> str:
        name = self.name(stem)
        self.lines.append(f"static const {kind} {name} = {braced(*fields)};")
        return name

    def constant(self, view: np.ndarray) -> str:
        """Where data lie."""
        return f"DATA + {self.data_at(view)}"

    def data_at(self, view: np.ndarray) -> int:
        content = view.tobytes()
        at = self.known_data.get(content)
        if at is None:
            self.data += bytes(-len(self.data) % self.alignment)
            at = self.known_data[content] = len(self.data)
            self.data += content
        return at

    # Programs

    def program(
        self, plan: HostPlan, copies: Callable[[HostPlan], tuple[list[int], list[tuple[int, int]]]]
    ) -> tuple[str, int]:
        """A program, and the bytes it works in; `copies` says which given memory each new result lies in (-1:
        none), and which results are copied to what is given afterwards."""
        self.lists, self.own = [], self.beside
        plan = self.ready(plan)
        top, end = self.plan(plan, 0)
        given, pairs = copies(plan)
        new_at = []
        for place, s in zip(given, news(plan), strict=True):
            new_at.append(end if place < 0 else -1)
            end += self.rounded(s.nbytes) if place < 0 else 0
        name = self.structure(
            "RtProgram", "program", f"&{top}",
            self.array("const RtTasks *const", [f"&{x}" for x in self.lists]),
            len(self.lists), end + self.own, end, self.integers(given), self.integers(new_at),
            self.array("const RtCopy", [braced(*pair) for pair in pairs]), len(pairs),
        )  # fmt: skip
        return name, end + self.own

    def plan(self, plan: HostPlan, at: int) -> tuple[str, int]:
        """A plan whose memory begins there; and where it ends."""
        arena = at
        at += self.rounded(self.begin(plan, arena))
        new = {s.number: i for i, s in enumerate(news(plan))}
        made_at = []
        for s in plan.made:
            made_at.append(-1 - new[s.number] if s.number in new else at)
            at += 0 if s.number in new else self.rounded(s.nbytes)
        steps, end = [], at
        for segment in plan.segments or ():
            found, top = self.segment(plan, segment, at)
            end = max(end, top)
            steps += [braced(kind, f"&{what}") for kind, what in found]
        views: list[Any] = [s.node.view for s in plan.data]  # type: ignore[attr-defined]
        data = [self.constant(self.contents(view)) for view in views]
        results = [plan.slots[s.number] for s in plan.plan.outputs]
        name = self.structure(
            "RtPlan", "plan", 1 + len(plan.slots), len(data), len(plan.inputs), len(plan.outputs), len(new),
            len(made_at), len(steps), len(results), self.array("const void *const", data),
            self.integers(made_at), self.array("const RtStep", steps), self.integers(results), arena,
        )  # fmt: skip
        return name, end

    # What is the host's own

    def finish(self) -> None:
        """Write what all programs have in common: the tables of all are there."""

    def binaries(self) -> dict[str, bytes]:
        """What the library holds beside its code, by what C calls it."""
        return {"DATA": bytes(self.data)}

    def sources(self) -> list[Path]:
        """The files of C that run it."""
        return linking.host_sources(self.parts)

    def ready(self, plan: Any) -> Any:
        """A plan as it is written down."""
        return ready(plan)

    def within(self, graph: Subgraph, owned: dict[int, int] | None = None) -> Any:
        """The plan of a graph within a graph."""
        return self.ready(graph.runner(HostArray, owned if HostArray._runs_in_place else None))

    def begin(self, plan: Any, arena: int) -> int:
        """A plan is written whose own memory begins there: how many bytes that has."""
        return int(plan.plan.arena_bytes)

    def contents(self, view: Any) -> np.ndarray:
        """Data of a plan."""
        return np.asarray(in_c_order(HostArray, view))

    def segment(self, plan: Any, segment: Any, at: int) -> tuple[list[tuple[str, str]], int]:
        """Steps, each what runs it and its table; and where the memory they use from `at` on ends."""
        if isinstance(segment, TaskList):
            return [("rt_tasks", self.tasks(segment))], at
        kind, what, end = self.step(plan, segment, at)
        return [(kind, what)], end

    # Task lists

    def code_of(self, tasks: TaskList) -> tuple[dict[int, str], list[Any]]:
        """What C calls the code of a list by its address, and the words of the list."""
        codes = {runner.COPY: "pool_copy", runner.FOLD: "pool_fold"}
        codes |= {address: f"pool_fill_{size}" for size, address in runner.FILL.items()}
        for address, (source, program) in tasks.sources.items():
            codes[address] = self.kernel(source, program)
        words: list[Any] = list(tasks.words) or [0]
        for at, sig in tasks.loops.items():
            words[at], words[at + 1] = f"(int64_t)&{self.loop(sig)}", 0
        return codes, words

    def tasks(self, tasks: TaskList) -> str:
        codes, words = self.code_of(tasks)
        layouts = []
        calls = tickets = 0
        for threads in (1, self.threads):
            with settings.changed(num_threads=threads):
                stages, cuts, found = staged(tasks.levels(), 0)
            layouts.append(
                braced(
                    self.integers(stages), self.integers(cuts),
                    self.array("const Call", [braced(codes[c[0]], *c[1:]) for c in found]),
                    len(stages) - 1, len(cuts) - 1, len(found),
                )
            )  # fmt: skip
            calls, tickets = max(calls, len(found)), max(tickets, len(cuts) - 1)
        places = []
        for n in (
            _LIST_BYTES,
            8 * len(words),
            calls * _CALL_BYTES,
            tickets * _TICKET_BYTES,
            tasks.scratch_bytes,
        ):
            places.append(self.own)
            self.own += self.rounded(n)
        patches = [braced(*patch) for patch in tasks.patches]
        name = self.structure(
            "RtTasks", "tasks", self.integers(words), self.array("const RtPatch", patches), len(words),
            len(patches), *layouts, *places,
        )  # fmt: skip
        self.lists.append(name)
        return name

    def kernel(self, source: Any, program: Any) -> str:
        # (Users' functions live in a program: equal texts may call others.)
        key = source.text, id(program) if program.user_functions else None
        name = self.kernels.get(key)
        if name is None:
            name = self.kernels[key] = f"kernel_{len(self.objects)}"
            try:
                self.objects[name] = kernel_object(source, program, name, self.cpu)
            except NotPortable as e:
                names = ", ".join(op.name for op in program.user_functions) or source.name
                why = f"the function {names}() needs {e}, which is part of Python's run time"
                raise self.refused(why) from None
        return name

    def loop(self, sig: Sig) -> str:
        """NumPy's loop for an operation."""
        ufunc: Any = sig.op.ufunc
        name = f"{ufunc.__name__}_{''.join(map(_letter, (*sig.ins, *sig.outs)))}"
        if name not in self.offered:
            kinds = ", ".join([d.name for d in sig.ins])
            raise self.refused(f"{ufunc.__name__}() of {kinds} is NumPy's own code")
        self.loops.add(name)
        self.parts.add("loops.c")
        return f"LOOP_{name}"

    # Steps between them

    def step(self, plan: HostPlan, step: Step, at: int) -> tuple[str, str, int]:
        """What a step is, its table, and where the memory it uses from `at` on ends."""
        self.line = next((n.line for n in step.nodes if n.line is not None), None)
        if isinstance(step, CallStep):
            kind = step.call.kind
            if kind in ("while", "for"):
                return "rt_loop", *self.repeated(plan, step, at)
            if kind == "cond":
                return "rt_branch", *self.branched(plan, step, at)
        return self.routine(plan, step, at)

    def routine(self, plan: Any, step: Step, at: int) -> tuple[str, str, int]:
        """The same for what is no loop and no branch."""
        if isinstance(step, ProductStep):
            return "rt_product", self.product(plan, step), at
        if isinstance(step, CallStep):
            if step.call.kind == "jit":
                return "rt_function", *self.function(plan, step, at)
            found = routines.routine(self, plan, step, at)
            if found is not None:
                return found
            if step.call.routine.startswith("fft."):
                raise self.refused(
                    f"{step.name}() is code within NumPy, and there is no library of C with it to link"
                )
        if isinstance(step, KernelStep) and any("pow" in name for name in step.name.split("_")):
            why = (
                "a power of integers with a sign may fail, and kernels do not "
                "(`x.astype(mb.uint64) ** n.astype(mb.uint64)` has the same bits)"
            )
            raise self.refused(why)
        raise self.refused(f"{step.name}() is a routine of Python's libraries")

    def refused(self, why: str) -> CannotBuild:
        where = "" if self.line is None else f" in {shown_line(self.line)}"
        return CannotBuild(
            f"The program cannot be built ahead of time: {why}{where}. Compute that outside of the compiled "
            "function, or write it with operations that have kernels or a routine in LAPACK: arithmetic, "
            "reductions, products, mb.linalg.qr, mb.while_loop, mb.cond, functions of mb.jit."
        )

    def ref(self, plan: HostPlan, ref: Ref, at: int) -> tuple[str, int]:
        """A view of a slot, and where memory for its contents in C's order ends, if it needs some."""
        if len(ref.shape) > _MOST_AXES:
            raise self.refused(f"an array has {len(ref.shape)} axes, and there it may have {_MOST_AXES}")
        slot, offset = plan.place(ref)
        packed: Any = -1
        if not ref.is_contiguous:
            packed, at = self.packed(at, ref.nbytes)
        shape, strides = self.integers(ref.shape), self.integers(ref.strides)
        return braced(slot, offset, ref.dtype.itemsize, len(ref.shape), shape, strides, packed), at

    def packed(self, at: int, nbytes: int) -> tuple[Any, int]:
        """Where a copy begins, and where memory ends after it."""
        return at, at + self.rounded(nbytes)

    def product(self, plan: HostPlan, step: ProductStep) -> str:
        a, b = step.operands
        dtype = step.dest.dtype
        if a.dtype != dtype or b.dtype != dtype or dtype.char in "egG":
            raise self.refused(f"a product of {a.dtype.name} and {b.dtype.name} takes NumPy")
        # Vectors are matrices of one row, or of one column.
        sizes, strides = _of_stack(a, b)
        m, n, p, stack = sizes
        self.blas |= dtype.char in "fdFD"
        kind: Any = f"'{dtype.char}'" if dtype.char in "fdFD?" else dtype.itemsize
        first, _ = self.ref(plan, a, 0)
        second, _ = self.ref(plan, b, 0)
        return self.structure(
            "RtProduct", "product", first, second, plan.slots[step.dest.number], kind, m, n, p, len(stack),
            self.integers(stack), *map(self.integers, strides),
        )  # fmt: skip

    def refs(self, plan: HostPlan, refs: Sequence[Ref], at: int) -> tuple[str, int]:
        made = []
        for ref in refs:
            text, at = self.ref(plan, ref, at)
            made.append(text)
        return self.array("const RtRef", made), at

    def dests(self, plan: HostPlan, step: CallStep) -> tuple[str, int]:
        found = [braced(number, plan.slots[s.number], s.nbytes) for number, s in step.dests.items()]
        return self.array("const RtDest", found), len(found)

    def repeated(self, plan: HostPlan, step: CallStep, at: int) -> tuple[str, int]:
        (loop, slots), options = step.call.template
        assert isinstance(loop, Loop)
        operands, at = self.refs(plan, [step.operands[s.number] for s in slots], at)
        n = len(loop.outputs)
        state_at, nbytes = [], []
        for s in slots[:n]:
            state_at.append(at)
            nbytes.append(step.operands[s.number].nbytes)
            at += self.rounded(nbytes[-1])
        bounds = []
        for word in ("lower", "upper"):
            bound = options.get(word, 0)
            if isinstance(bound, Slot):
                text, at = self.ref(plan, step.operands[bound.number], at)
            else:
                text = braced(-1, bound, 8, 0, "NULL", "NULL", -1)
            bounds.append(text)
        body_plan = self.within(loop.steps, loop.owned)
        # (A value may be passed on for so many trips before it is read.)
        ring = 2 + len(loop.passed)
        new_at, new_nbytes = [], []
        for storage in news(body_plan):
            new_at.append(at)
            new_nbytes.append(self.rounded(storage.nbytes))
            at += ring * new_nbytes[-1]
        test, test_at = "NULL", at
        if loop.condition is not None:
            at += self.alignment
            name, end = self.plan(self.within(loop.tests), at)
            test = f"&{name}"
        else:
            end = at
        body, last = self.plan(body_plan, at)
        many, rounds, beyond = self.rounds(loop, body_plan, len(slots), max(end, last))
        passed = [loop.passed.get(k, -1) for k in range(n)]
        bounded = int(loop.condition is None and loop.trips is None)
        made = self.structure(
            "RtLoop", "loop", test, f"&{body}", operands, self.integers(state_at), self.integers(nbytes),
            self.integers(passed), self.integers(new_at), self.integers(new_nbytes), n, len(slots), ring,
            loop.trips or 0, bounded, *bounds, test_at, *self.dests(plan, step), many, rounds,
        )  # fmt: skip
        return made, max(end, last, beyond)

    def rounds(self, loop: Loop, body: Any, n_operands: int, at: int) -> tuple[str, str, int]:
        """What does several trips of a loop at once, its table, and where the memory ends that it needs."""
        return "NULL", "NULL", at

    def branched(self, plan: HostPlan, step: CallStep, at: int) -> tuple[str, int]:
        (branches, predicate, slots), _ = step.call.template
        assert isinstance(branches, Branches)
        chosen, at = self.ref(plan, step.operands[predicate.number], at)
        operands, at = self.refs(plan, [step.operands[s.number] for s in slots], at)
        plans, places, end = [], [], at
        for graph in (branches.if_true, branches.if_false):
            inner = self.within(graph)
            new_at, top = [], at
            for storage in news(inner):
                new_at.append(top)
                top += self.rounded(storage.nbytes)
            name, last = self.plan(inner, top)
            plans.append(f"&{name}")
            places.append(self.integers(new_at))
            end = max(end, last)
        made = self.structure(
            "RtBranch", "branch", braced(*plans), chosen, operands, len(slots), braced(*places),
            *self.dests(plan, step),
        )  # fmt: skip
        return made, end

    def function(self, plan: HostPlan, step: CallStep, at: int) -> tuple[str, int]:
        (how, operands), _ = step.call.template
        arrays = [k for k, x in enumerate(operands) if isinstance(x, Slot) and how.same[k] == k]
        refs = [step.operands[operands[k].number] for k in arrays]
        try:
            source = jitted.wrapper(how, operands, dict(zip(arrays, refs, strict=True)), step.call)
            name = f"kernel_{len(self.objects)}"
            self.objects[name] = jitted.function_object(source, how.function, name, self.cpu)
        except NotPortable as e:
            why = f"{how.function.__name__}() needs {e}, which is part of Python's run time"
            raise self.refused(why) from None
        text, at = self.refs(plan, refs, at)
        to_slot, to_at = [], []
        written = [how.written.index(k) if k in how.written else None for k in arrays]
        returned = range(len(how.written), len(step.call.outputs))
        sizes = [r.nbytes for r in refs] + [step.call.outputs[i][1].itemsize for i in returned]
        for result, nbytes in zip([*written, *returned], sizes, strict=True):
            dest = None if result is None else step.dests.get(result)
            to_slot.append(-1 if dest is None else plan.slots[dest.number])
            own = result is not None and dest is None
            to_at.append(at if own else -1)
            at += self.rounded(nbytes) if own else 0
        made = self.structure(
            "RtFunction", "function", name, text, self.integers(to_slot), self.integers(to_at), len(refs),
            len(returned),
        )  # fmt: skip
        return made, at


def ready(plan: Any, kind: type[HostPlan] = HostPlan) -> HostPlan:
    """A plan with all its kernels: that one, or another where nothing is to be compiled."""
    if not isinstance(plan, HostPlan):
        raise CannotBuild(
            f"A program of {plan.inner.__name__} cannot be built ahead of time: only the host's can. "
            "Compile the function for the host's arrays: `f.program(mb.adapt(mb.HostArray, x))`."
        )
    if settings.compiler == "off" and plan.segments is None:
        with settings.changed(compiler="inline"):
            plan = kind(plan.plan)
    while plan.segments is None:
        kernels.settle()
        plan.complete()
    return plan


def news(plan: HostPlan) -> list[Storage]:
    """The results that are made anew: those that have memory of their own, then those that libraries make."""
    results = set(plan.plan.outputs)
    return [*plan.outputs, *[s for s in plan.made if s in results]]


def _of_stack(a: Ref, b: Ref) -> tuple[Any, list[list[int]]]:
    """The sizes of a product of stacks of matrices and the strides of operands and result, in bytes."""
    size = a.dtype.itemsize
    of_b = list(b.strides)
    rows = (a.shape[-2], a.strides[-2]) if len(a.shape) > 1 else (1, 0)
    columns = (b.shape[-1], of_b[-1]) if len(of_b) > 1 else (1, 0)
    steps, down = list(a.shape)[-1], of_b[-2] if len(of_b) > 1 else of_b[-1]
    stack: tuple[int, ...] = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])

    def along(ref: Ref) -> list[int]:
        own = [0 if n == 1 else s for n, s in zip(ref.shape[:-2], ref.strides[:-2], strict=True)]
        return [0] * (len(stack) - len(own)) + own

    m, p = rows[0], columns[0]
    of_stack = c_strides((*stack, m * p), a.dtype)[:-1]
    return (m, steps, p, stack), [
        [*along(a), rows[1], a.strides[-1]],
        [*along(b), down, columns[1]],
        [*of_stack, p * size, size],
    ]


# A number in a table. (Until all tables are written: of others it may be a polynomial of sizes.)
MARKED = re.compile("\x01(-?[0-9]+)\x02")


def braced(*fields: Any) -> str:
    return "{" + ", ".join([f if isinstance(f, str) else marked(f) for f in fields]) + "}"


def marked(value: Any) -> str:
    return f"\x01{int(value)}\x02"


def unmarked(text: str) -> str:
    """Tables as C has them."""

    def number(found: re.Match[str]) -> str:
        value = int(found[1])
        return f"({value + 1} - 1)" if value == -(1 << 63) else str(value)

    return MARKED.sub(number, text)


def _letter(dtype: np.dtype) -> str:
    """The name of a dtype in loops.c: its width counts, not its letter."""
    if dtype.kind == "b":
        return "bool"
    if dtype.kind in "iu":
        letter = "bhil"[int(math.log2(dtype.itemsize))]
        return letter.upper() if dtype.kind == "u" else letter
    return str(dtype.char)


__all__ = ["MARKED", "CannotBuild", "Tables", "braced", "marked", "news", "ready", "unmarked"]
