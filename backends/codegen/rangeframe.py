"""The range frame: a program over a range of rows and of the innermost dimension, for the host.

Every kernel has the signature `kernel(args, lo, hi, first, last, rlo, rhi, part)`, where `args`
is the address of a block of 64-bit words: the sizes of the outer dimensions, then for each
result and each leaf its address and a stride in bytes for each dimension, then scalars (two
words each), then the code and data addresses of NumPy loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from mirabelle.backends.codegen.program import Program
from mirabelle.backends.codegen.source import (
    BLOCK,
    CONTIGUOUS,
    REVERSED,
    STRETCHED,
    STRIDED,
    Body,
    Layout,
    Source,
    Writer,
    inline,
    tables,
    zero_cast,
)
from mirabelle.dispatch.promotion import Sig, code
from mirabelle.dispatch.schedule import SCALAR

PARAMETERS = "args, lo, hi, first, last, rlo, rhi, part"
# Tiles of the two innermost dimensions: short enough innermost that a power-of-two distance
# between rows does not throw lines out of the first-level cache before they are used up.
TILE_ROWS, TILE_COLUMNS = 64, 16


@dataclass(frozen=True)
class BlockLayout:
    """Where things stand in the argument block of a range kernel, in words."""

    sizes: int
    operands: int
    stride: int
    scalars: int
    loops: int
    total: int


def block_layout(program: Program, rank: int, n_out: int, n_loops: int) -> BlockLayout:
    sizes = 0
    operands = max(rank - 1, 0)
    stride = 1 + rank
    scalars = operands + stride * (n_out + len(program.leaf_dtypes))
    loops = scalars + 2 * len(program.scalar_slots)
    return BlockLayout(sizes, operands, stride, scalars, loops, loops + 2 * n_loops)


class Stages:
    """Which steps run inline and which through NumPy's loops, and in what order."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.stage: list[int] = []
        self.loop: list[bool] = []
        for sig, refs in program.steps:
            if sig.op.name.startswith("pick"):
                source = refs[0]
                self.loop.append(False)
                self.stage.append(self.available(source))
                continue
            self.loop.append(inline(sig) is None)
            self.stage.append(max([self.available(r) for r in refs], default=0))
        self.count = (
            max(
                [s + (1 if is_loop else 0) for s, is_loop in zip(self.stage, self.loop, strict=True)],
                default=0,
            )
            + 1
        )
        self.sink()

    def sink(self) -> None:
        """Compute inline values in the stage that reads them, where that takes no more scratch than computing
        them at once and keeping them."""
        program, stage = self.program, self.stage
        # The stage that reads each value last, and those of its inline readers; 0 is not among the latter if
        # somebody else reads it.
        last = [self.available(k) for k in range(len(stage))]
        readers: list[list[int] | None] = [[] for _ in stage]
        for k, (sig, refs) in enumerate(program.steps):
            for r in refs:
                if 0 <= r < SCALAR:
                    last[r] = max(last[r], stage[k])
                    if self.loop[k] or sig.op.name.startswith("pick"):
                        readers[r] = None
        for r in program.outs:
            if 0 <= r < SCALAR:
                readers[r] = None
        for k in reversed(range(len(stage))):
            sig, refs = program.steps[k]
            operands = {r for r in refs if 0 <= r < SCALAR}
            wanted = readers[k]
            if wanted and not self.loop[k] and len(sig.outs) == 1 and not sig.op.name.startswith("pick"):
                until = min(wanted)
                longer = sum([program.dtype_of(r).itemsize for r in operands if last[r] < until])
                if until == max(wanted) and stage[k] < until and longer <= sig.out.itemsize:
                    stage[k] = until
            for r in operands:
                last[r] = max(last[r], stage[k])
                found = readers[r]
                if found is not None:
                    found.append(stage[k])

    def available(self, ref: int) -> int:
        """The first stage whose inline statements can read the value."""
        if ref < 0 or ref >= SCALAR:
            return 0
        return self.stage[ref] + (1 if self.loop[ref] else 0)


class RangeFrame:
    """Writes one kernel."""

    def __init__(self, program: Program, layout: Layout) -> None:
        self.program = program
        self.layout = layout
        self.body = Body(program)
        self.w = Writer()
        self.stages = Stages(program)
        self.loops: list[Sig] = []
        # (reference, dtype) → the name of the scratch block that holds the value.
        self.scratch: dict[tuple[int, np.dtype], str] = {}
        self.results_in_memory: dict[int, str] = {}
        self.tables = tables(program)
        # (Results that lie where operands do wait in scratch, see `store_shared`.)
        self.blocked = any(self.stages.loop) or bool(layout.reduce) or layout.shared
        # The outputs that are reduced (they come first), and the names of the others.
        n = len(layout.reduce)
        outs = list(zip(program.outs, program.out_dtypes, strict=True))
        self.combined = outs[:n]
        # The expressions that combine them, of those that are combined by inline statements.
        self.inlined: list[str | None] = [None] * n
        self.leaf_names = [f"x{j}" for j in range(len(program.leaf_dtypes))]
        self.written = [f"y{j}" for j in range(n, len(outs))]

    # Names and addresses

    def leaf_class(self, leaf: int) -> str:
        return self.layout.leaves[leaf]

    def prologue(self) -> None:
        w, program, rank = self.w, self.program, self.layout.rank
        n_out = len(program.outs)
        at = block_layout(program, rank, n_out, 0)
        for d in range(rank - 1):
            w(f"n{d} = load_i8(args, {at.sizes + d})")
        for label, first in (("y", 0), ("x", n_out)):
            count = n_out if label == "y" else len(program.leaf_dtypes)
            for j in range(count):
                base = at.operands + (first + j) * at.stride
                w(f"{label}{j} = load_i8(args, {base})")
                for d in range(rank):
                    w(f"{label}{j}_{d} = load_i8(args, {base + 1 + d})")
        dtypes = {"y": program.out_dtypes, "x": program.leaf_dtypes}
        for label, classes in (("y", self.layout.outs), ("x", self.layout.leaves)):
            for j, kind in enumerate(classes):
                if kind == STRIDED:
                    w(f"e{label}{j} = {label}{j}_{rank - 1} // {dtypes[label][j].itemsize}")
        for (_, dtype), slot in program.scalar_slots.items():
            w(f"s{slot} = load_{code(dtype)}(args + {8 * (at.scalars + 2 * slot)}, 0)")
        self.scalars_at = at.scalars
        self.loops_at = at.loops

    def pointers(self, row: str, dims: list[int], labels: list[str], prefix: str) -> None:
        """Names for where each operand is at a row of the dimensions `dims`."""
        w = self.w
        if len(dims) > 1:
            w(f"rest = {row}")
            for d in reversed(dims):
                if d == dims[0]:
                    w(f"c{d} = rest")
                else:
                    w(f"c{d} = rest % n{d}")
                    w(f"rest = rest // n{d}")
        elif dims:
            w(f"c{dims[0]} = {row}")
        for label in labels:
            terms = "".join(f" + c{d} * {label}_{d}" for d in dims)
            base = label if prefix == "p" else f"q{label}"
            w(f"{prefix}{label} = {base}{terms}")

    def load_leaf(self, leaf: int, index: str) -> str:
        """A load of the element at an index; for memory that gathers read, with the offset open. Where it lies,
        if nothing else is asked of it.
        """
        c = code(self.program.leaf_dtypes[leaf])
        kind = self.leaf_class(leaf)
        inner = self.layout.rank - 1
        if leaf in self.program.places:  # (of single bytes)
            step = {CONTIGUOUS: "", REVERSED: " * -1", STRETCHED: " * 0"}.get(kind, f" * x{leaf}_{inner}")
            return f"(px{leaf} + ({index}){step})"
        further = " + {}" if -1 - leaf in self.tables else ""
        if kind == CONTIGUOUS:
            return f"load_{c}(px{leaf}, {index}{further})"
        if kind == REVERSED:
            return f"load_{c}(px{leaf}, -({index}){further})"
        if kind == STRETCHED:
            return f"load_{c}(px{leaf}, {{}})" if further else f"h{leaf}"
        if kind == STRIDED:
            # By an index of elements: by bytes, LLVM gathers, which is slower than single loads.
            return f"load_{c}(px{leaf}, ({index}) * ex{leaf}{further})"
        return f"load_{c}(px{leaf} + ({index}) * x{leaf}_{inner}, {'{}' if further else 0})"

    def hoisted_loads(self) -> None:
        for leaf, dtype in enumerate(self.program.leaf_dtypes):
            if self.leaf_class(leaf) == STRETCHED and -1 - leaf not in self.tables:
                self.w(f"h{leaf} = load_{code(dtype)}(px{leaf}, 0)")

    # The statements of one row

    def row(self, first: str, last: str) -> None:
        """All stages over [first, last) of the innermost dimension."""
        w = self.w
        if not self.blocked:
            w(f"for j in range({first}, {last}):")
            w.depth += 1
            self.stage(0, "j")
            w.depth -= 1
            return
        w(f"for b in range({first}, {last}, {BLOCK}):")
        w.depth += 1
        w(f"m = {last} - b")
        w(f"if m > {BLOCK}:")
        w(f"    m = {BLOCK}")
        for s in range(self.stages.count):
            self.inline_stage(s)
            self.loop_stage(s)
        if self.layout.shared:
            self.store_shared()
        self.after_block()
        w.depth -= 1

    def after_block(self) -> None:
        """What follows the stages of a block."""

    def plan_scratch(self) -> None:
        """Which values must lie in memory between stages, and which loops write results directly."""
        program, stages = self.program, self.stages
        n = 0

        def block(ref: int, dtype: np.dtype) -> None:
            nonlocal n
            if (ref, dtype) not in self.scratch:
                self.scratch[ref, dtype] = f"t{n}"
                n += 1

        for k, (sig, refs) in enumerate(program.steps):
            picked = sig.op.name.startswith("pick")
            if stages.loop[k]:
                for ref, wanted in zip(refs, sig.ins, strict=True):
                    if ref >= SCALAR or (ref < 0 and program.dtype_of(ref) == wanted):
                        continue
                    block(ref, wanted)
                for i, out in enumerate(sig.outs):
                    if len(sig.outs) == 1:
                        block(k, out)
                    else:
                        block(-(1 << 20) - k * 8 - i, out)
            elif picked and stages.loop[refs[0]]:
                # The loop of the operation already wrote it.
                self.scratch[k, sig.out] = self.scratch[
                    -(1 << 20) - refs[0] * 8 - int(sig.op.name[4:]), sig.out
                ]
            else:
                for ref in refs:
                    if 0 <= ref < SCALAR and not stages.loop[ref] and stages.stage[ref] < stages.stage[k]:
                        block(ref, program.dtype_of(ref))
        for (ref, dtype), form in zip(self.combined, self.inlined, strict=True):
            # Reduced values lie in memory, where NumPy's loop takes them.
            if form is not None:
                continue
            if ref >= 0 or program.dtype_of(ref) != dtype or self.leaf_class(-1 - ref) != CONTIGUOUS:
                block(ref, dtype)
        if self.layout.shared:
            for ref in program.outs[len(self.combined) :]:
                block(ref, program.dtype_of(ref))
        elif not self.combined:
            for j, (ref, dtype) in enumerate(zip(program.outs, program.out_dtypes, strict=True)):
                if (
                    ref >= 0
                    and stages.loop[ref]
                    and program.dtype_of(ref) == dtype
                    and self.layout.outs[j] == CONTIGUOUS
                    and stages.available(ref) == stages.count - 1
                    and ref not in self.results_in_memory
                ):
                    # The last loop writes the result itself.
                    self.scratch[ref, dtype] = f"(py{j} + b * {dtype.itemsize})"
                    self.results_in_memory[ref] = f"y{j}"
        self.share_scratch()

    def share_scratch(self) -> None:
        """Give blocks whose values are not wanted at the same time one memory.

        (The blocks of a long program would fill the second-level cache, and the stack.)
        """
        found: dict[str, list[int]] = {}
        for (_, dtype), name in self.scratch.items():
            if name.startswith("t"):
                found[name] = [1 << 30, -1, 16 if dtype.itemsize > 8 else 8]
        for at, name, written in self.uses_of_scratch():
            life = found.get(name)
            if life is not None:
                life[0] = min(life[0], at) if written else life[0]
                life[1] = max(life[1], at)
        shared: dict[str, str] = {}
        last: dict[str, tuple[int, int]] = {}  # until when a block is in use, and its width
        for name, (begin, end, width) in sorted(found.items(), key=lambda x: x[1]):
            block = next((b for b, (until, w) in last.items() if until < begin and w == width), None)
            if block is None:
                block = f"t{len(last)}"
                self.w(f"{block} = scratch_{width}(0)")
            last[block] = end, width
            shared[name] = block
        self.scratch = {key: shared.get(name, name) for key, name in self.scratch.items()}

    def uses_of_scratch(self) -> Iterator[tuple[int, str, bool]]:
        """When a block is written (True) or read: at 2s by the inline statements of stage s, at 2s + 1 by its
        loops."""
        program, stages, scratch = self.program, self.stages, self.scratch
        for (ref, dtype), name in scratch.items():
            if ref < -(1 << 19):
                yield 2 * stages.stage[(-(1 << 20) - ref) // 8] + 1, name, True
            elif self.written_by_loop(ref, dtype):
                yield 2 * stages.stage[ref] + 1, name, True
            else:
                yield 2 * stages.available(ref), name, True
                if (ref, program.dtype_of(ref)) in scratch:  # (which it is converted from)
                    yield 2 * stages.available(ref), scratch[ref, program.dtype_of(ref)], False
        for k, (sig, refs) in enumerate(program.steps):
            at = 2 * stages.stage[k] + int(stages.loop[k])
            dtypes = sig.ins if stages.loop[k] else [program.dtype_of(r) for r in refs if r < SCALAR]
            read = refs if stages.loop[k] else [r for r in refs if r < SCALAR]
            for ref, dtype in zip(read, dtypes, strict=True):
                if (ref, dtype) in scratch:
                    yield at, scratch[ref, dtype], False
        for ref in program.outs:
            if (ref, program.dtype_of(ref)) in scratch:
                yield 2 * self.stored_in(ref), scratch[ref, program.dtype_of(ref)], False
        for key in self.combined:
            if key in scratch:
                yield 2 * stages.count, scratch[key], False

    def inline_stage(self, s: int) -> None:
        w = self.w
        w("for j in range(m):")
        w.depth += 1
        before = len(w.lines)
        self.stage(s, "b + j")
        if len(w.lines) == before:
            w.lines.pop()
        w.depth -= 1

    def stage(self, s: int, index: str) -> None:
        """The inline statements of stage `s` for one element."""
        w, program, stages = self.w, self.program, self.stages
        value: dict[int, str] = {}

        def get(ref: int) -> str:
            name = value.get(ref)
            if name is not None:
                return name
            if ref in self.tables:
                name = self.load_leaf(-1 - ref, index)
            elif ref < 0:
                name = f"a{-1 - ref}"
                if self.leaf_class(-1 - ref) == STRETCHED:
                    name = f"h{-1 - ref}"
                else:
                    w(f"{name} = {self.load_leaf(-1 - ref, index)}")
            else:
                dtype = program.dtype_of(ref)
                name = f"v{ref}"
                w(f"{name} = get_{code(dtype)}({self.scratch[ref, dtype]}, j)")
            value[ref] = name
            return name

        for k, (sig, refs) in enumerate(program.steps):
            if stages.loop[k] or stages.stage[k] != s:
                continue
            if sig.op.name.startswith("pick") and stages.loop[refs[0]]:
                continue
            for ref in refs:
                if ref < SCALAR:
                    get(ref)
            w(f"v{k} = {self.body.expression(k, value)}")
            value[k] = f"v{k}"
        for (ref, dtype), name in self.scratch.items():
            if not name.startswith("t") or self.written_by_loop(ref, dtype):
                continue
            if stages.available(ref) == s:
                source = program.dtype_of(ref)
                w(f"put_{code(dtype)}({name}, j, {zero_cast(get(ref), source, dtype)})")
        results = [
            (i, dtype, zero_cast(get(ref), program.dtype_of(ref), dtype))
            for i, (ref, dtype) in enumerate(zip(program.outs, program.out_dtypes, strict=True))
            if i >= len(self.combined)
            and self.stored_in(ref) == s
            and self.results_in_memory.get(ref) != f"y{i}"
        ]
        for i, dtype, text in results:
            self.store(i, code(dtype), index, text)
        self.last_of_stage(s, get)

    def store(self, i: int, c: str, index: str, value: str) -> None:
        """Write result `i` at an index."""
        w = self.w
        if self.layout.outs[i] == CONTIGUOUS:
            w(f"store_{c}(py{i}, {index}, {value})")
        elif self.layout.outs[i] == REVERSED:
            w(f"store_{c}(py{i}, -({index}), {value})")
        elif self.layout.outs[i] == STRIDED:
            w(f"store_{c}(py{i}, ({index}) * ey{i}, {value})")
        else:
            w(f"store_{c}(py{i} + ({index}) * y{i}_{self.layout.rank - 1}, 0, {value})")

    def store_shared(self) -> None:
        """Write the results of a block that may lie where operands do: after all that reads those.

        (In the loop that reads them a write would have to wait for what other results read, and no
        compiler finds out that it is of the same element: the loop would not be vectorised.)
        """
        w, program = self.w, self.program
        for i in range(len(self.combined), len(program.outs)):
            ref, dtype = program.outs[i], program.out_dtypes[i]
            source = program.dtype_of(ref)
            value = f"get_{code(source)}({self.scratch[ref, source]}, j)"
            w("for j in range(m):")
            w.depth += 1
            self.store(i, f"{code(dtype)}_shared", "b + j", zero_cast(value, source, dtype))
            w.depth -= 1

    def last_of_stage(self, s: int, get: Callable[[int], str]) -> None:
        """Further statements at the end of a stage, which `get` the names of values."""

    def stored_in(self, ref: int) -> int:
        """The stage that writes a result: none, but what follows them, if others read what it overwrites."""
        return self.stages.count if self.layout.shared else self.stages.available(ref)

    def written_by_loop(self, ref: int, dtype: np.dtype) -> bool:
        """Is this scratch block a NumPy loop's own output?"""
        if ref < -(1 << 19):
            return True
        if not 0 <= ref < SCALAR or dtype != self.program.dtype_of(ref):
            return False
        sig, refs = self.program.steps[ref]
        picked = sig.op.name.startswith("pick") and self.stages.loop[refs[0]]
        return self.stages.loop[ref] or picked

    def loop_stage(self, s: int) -> None:
        """The NumPy loops of stage `s`, over the block."""
        w, program, stages = self.w, self.program, self.stages
        inner = self.layout.rank - 1
        for k, (sig, refs) in enumerate(program.steps):
            if not stages.loop[k] or stages.stage[k] != s:
                continue
            slot = self.loop_slot(sig)
            addresses, steps = [], []
            for ref, wanted in zip(refs, sig.ins, strict=True):
                if ref >= SCALAR:
                    position = self.scalars_at + 2 * program.scalar_slots[ref - SCALAR, wanted]
                    addresses.append(f"args + {8 * position}")
                    steps.append("0")
                elif (ref, wanted) in self.scratch:
                    addresses.append(self.scratch[ref, wanted])
                    steps.append(str(wanted.itemsize))
                else:
                    leaf = -1 - ref
                    kind = self.leaf_class(leaf)
                    step = {
                        CONTIGUOUS: str(wanted.itemsize),
                        REVERSED: str(-wanted.itemsize),
                        STRETCHED: "0",
                    }.get(kind, f"x{leaf}_{inner}")
                    addresses.append(f"px{leaf}" if step == "0" else f"px{leaf} + b * {step}")
                    steps.append(step)
            for i, out in enumerate(sig.outs):
                key = k if len(sig.outs) == 1 else -(1 << 20) - k * 8 - i
                addresses.append(self.scratch[key, out])
                steps.append(str(out.itemsize))
            n = len(addresses)
            w(f"numpy_{sig.op.name} = load_i8(args, {slot})")
            w(
                f"loop_{n}(numpy_{sig.op.name}, load_i8(args, {slot + 1}), m, "
                f"{', '.join(addresses)}, {', '.join(steps)})"
            )

    def loop_slot(self, sig: Sig) -> int:
        if sig not in self.loops:
            self.loops.append(sig)
        return self.loops_at + 2 * self.loops.index(sig)

    def stepping(self, outer: list[int], labels: list[str], body: Callable[[], None]) -> None:
        """Rows `lo` to `hi`: from one to the next by a step, as long as it is along the same dimension.

        (A division for each row takes as long as a short row; and where each row begins is a product for each
        operand, which are too many for the registers. What then lies on the stack is read again for each row,
        and may have to wait for results to arrive in memory.)
        """
        w = self.w
        depth = w.depth
        if len(outer) > 1:  # (where the first row begins takes divisions)
            w("if lo < hi:")
            w.depth += 1
        self.pointers("lo", outer, labels, "p")
        w("for row in range(lo, hi):")
        w.depth += 1
        body()
        if len(outer) == 1:
            for label in labels:
                w(f"p{label} += {label}_{outer[0]}")
        elif outer:
            last = outer[-1]
            w(f"c{last} += 1")
            w(f"if c{last} < n{last}:")
            w.depth += 1
            for label in labels:
                w(f"p{label} += {label}_{last}")
            w.depth -= 1
            w("else:")
            w.depth += 1
            self.pointers("row + 1", outer, labels, "p")
        w.depth = depth

    # Whole kernels

    def source(self) -> Source:
        w, layout = self.w, self.layout
        name = f"kernel_{self.program.name}"
        w(f"def {name}({PARAMETERS}):")
        w.depth += 1
        self.prologue()
        self.plan_scratch()
        labels = self.written + self.leaf_names
        outer = list(range(layout.rank - 1))
        if layout.tiled:
            w(f"for tile in range(lo, hi, {TILE_ROWS}):")
            w.depth += 1
            w(f"end = tile + {TILE_ROWS}")
            w("if end > hi:")
            w("    end = hi")
            w(f"for left in range(first, last, {TILE_COLUMNS}):")
            w.depth += 1
            w(f"right = left + {TILE_COLUMNS}")
            w("if right > last:")
            w("    right = last")
            w("for row in range(tile, end):")
            w.depth += 1
            self.pointers("row", outer, labels, "p")
            self.hoisted_loads()
            self.row("left", "right")
        else:

            def one() -> None:
                self.hoisted_loads()
                self.row("first", "last")

            self.stepping(outer, labels, one)
        return Source(w.text(), name, self.loops, self.body.functions)
