"""The range frame of reductions: blocks are combined by NumPy's own loops as they are made.

With the innermost dimension reduced, each block of each row gives one partial result. With it
kept, rows are accumulated in groups whose sums go up a level, so that rounding errors grow with
the logarithm of the number of rows. Outputs beyond the reductions are written as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import numpy as np

from mirabelle.backends.codegen.program import Program
from mirabelle.backends.codegen.rangeframe import PARAMETERS, RangeFrame
from mirabelle.backends.codegen.source import BLOCK, WIDE, Layout, Source, inline, zero_cast
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.promotion import Sig, code, signature
from mirabelle.dispatch.schedule import SCALAR

# Rows added one after the other before their sum goes up a level.
GROUP = 64
# Rows that are read at the same time, where that pays: a group is a multiple of them.
TOGETHER = 4
# What differs from row to row: where operands are, and what does not change along it.
_OF_ROW = re.compile(r"\b(px\d+|h\d+)\b")
# Up to so many elements NumPy adds up eight by eight; of more, the sums of halves.
PAIRWISE = 128
# What is counted, and what counts.
TRUTH, COUNT = np.dtype(np.bool_), np.dtype(np.int64)


class ReductionFrame(RangeFrame):
    """Writes one kernel that reduces the first outputs of a program."""

    def __init__(self, program: Program, layout: Layout) -> None:
        super().__init__(program, layout)
        if layout.inner_kept:
            # Rows are combined element by element, which needs no loop of NumPy's where it has a form.
            sigs = [reduction_sig(u, dtype) for u, (_, dtype) in zip(layout.reduce, self.combined, strict=True)]
            self.inlined = [inline(sig) if sig.op.scalar is None else None for sig in sigs]
        else:
            self.combined = [self.counted(u, *of) for u, of in zip(layout.reduce, self.combined, strict=True)]

    def counted(self, ufunc: str, ref: int, dtype: np.dtype) -> tuple[int, np.dtype]:
        """What is combined: of a sum of truth values these, not the numbers that they become, which take eight
        times the memory.
        """
        if ufunc == "add" and dtype == COUNT and 0 <= ref < SCALAR:
            sig, refs = self.program.steps[ref]
            if sig.op.name == "cast" and sig.ins[0] == TRUTH and refs[0] < SCALAR:
                return refs[0], TRUTH
        return ref, dtype

    def source(self) -> Source:
        w, layout = self.w, self.layout
        name = f"reduce_{self.program.name}"
        w(f"def {name}({PARAMETERS}):")
        w.depth += 1
        self.prologue()
        self.plan_scratch()
        if layout.inner_kept:
            self.columns()
        else:
            self.rows()
        return Source(w.text(), name, self.loops, self.body.functions)

    def rows(self) -> None:
        """The innermost dimension is reduced: one partial for each block of each row."""
        w = self.w
        partials = [f"y{j}" for j in range(len(self.combined))]
        for y in partials:
            w(f"p{y} = {y} + lo * {y}_0")

        def one() -> None:
            self.hoisted_loads()
            self.row("first", "last")
            for y in partials:
                w(f"p{y} += {y}_0")

        self.stepping(list(range(self.layout.rank - 1)), self.written + self.leaf_names, one)

    def after_block(self) -> None:
        for j, (address, step) in enumerate(self.value_addresses()):
            ufunc, dtype = self.layout.reduce[j], self.program.out_dtypes[j]
            target = f"py{j} + (b // {BLOCK}) * {dtype.itemsize}"
            if dtype != self.combined[j][1]:
                self.w(f"store_i8({target}, 0, load_i8({target}, 0) + count_b1({address}, m))")
                continue
            if dtype.char not in "fd" or ufunc not in ("add", "maximum", "minimum"):
                self.combine(j, target, "0", address, step)
                continue
            # A call takes as long as a short row. (Of long rows NumPy adds up halves.)
            c, w = code(dtype), self.w
            shortly = f"store_{c}({target}, 0, fold_{ufunc}_{c}(load_{c}({target}, 0), {address}, m))"
            if ufunc != "add":
                w(shortly)
                continue
            w(f"if m <= {PAIRWISE}:")
            w(f"    {shortly}")
            w("else:")
            w.depth += 1
            self.combine(j, target, "0", address, step)
            w.depth -= 1

    def columns(self) -> None:
        """The innermost dimension is kept: rows are added up, for a block of columns at a time."""
        w, rank = self.w, self.layout.rank
        first_reduced = rank - 1 - self.layout.reduce_rank
        operands = self.written + self.leaf_names
        at = self.scalars_at + 2 * len(self.program.scalar_slots)
        together = self.rows_together()
        block, wide = (WIDE, "_wide") if together else (BLOCK, "")
        for j, (_, dtype) in enumerate(self.combined):
            for level in range(3):
                w(f"acc{j}_{level} = scratch_{16 if dtype.itemsize > 8 else 8}{wide}(0)")
            w(f"neutral{j} = load_{code(dtype)}(args + {8 * (at + 2 * j)}, 0)")
        self.loops_at += 2 * len(self.combined)
        w("for outer in range(lo, hi):")
        w.depth += 1
        self.pointers("outer", list(range(first_reduced)), operands, "p")
        for label in operands:
            w(f"q{label} = p{label}")
        w(f"for b in range(first, last, {block}):")
        w.depth += 1
        w("m = last - b")
        w(f"if m > {block}:")
        w(f"    m = {block}")
        # Up to a group of rows no sum goes up.
        w(f"few = rhi - rlo < {GROUP}")
        self.clear([0])
        w("if not few:")
        w.depth += 1
        self.clear([1, 2])
        w.depth -= 1
        w("count1 = 0")
        w("count2 = 0")
        dims = list(range(first_reduced, rank - 1))
        start = "rlo"
        if together:
            start = "single"
            w(f"single = rhi - (rhi - rlo) % {TOGETHER}")
            w(f"for r in range(rlo, single, {TOGETHER}):")
            w.depth += 1
            self.several_rows(dims, operands)
            self.rows_done(TOGETHER)
            w.depth -= 1
        w(f"for r in range({start}, rhi):")
        w.depth += 1
        self.pointers("r", dims, operands, "p_")
        for label in operands:
            w(f"p{label} = p_{label}")
        self.hoisted_loads()
        for s in range(self.stages.count):
            self.inline_stage(s)
            self.loop_stage(s)
        for j, (address, step) in enumerate(self.value_addresses()):
            size = str(self.combined[j][1].itemsize)
            if self.inlined[j] is None:
                self.combine(j, f"acc{j}_0", size, address, step)
        if not together:  # (else too few are left to fill a group)
            self.rows_done(1)
        w.depth -= 1
        w("if few:")
        w.depth += 1
        self.store_level(0)
        w.depth -= 1
        w("else:")
        w.depth += 1
        self.up(0)
        self.up(1)
        self.store_level(2)
        w.depth -= 1

    def rows_together(self) -> bool:
        """Does an element take so little that reading several rows at the same time pays?

        Each row is a stream from memory, and one alone comes at half the speed of several.
        """
        return (
            self.stages.count == 1
            and not any(self.stages.loop)
            and None not in self.inlined
            and len(self.combined) <= 2
            and not self.written
            and not self.tables
            and len(self.leaf_names) <= 4
            and self.program.cost <= 8
        )

    def several_rows(self, dims: list[int], operands: list[str]) -> None:
        """Combine some rows that follow one another, in their order, an element of each after the other."""
        w = self.w
        bodies = []
        for k in range(TOGETHER):
            self.pointers(f"(r + {k})", dims, operands, "p_")
            for label in operands:
                w(f"p{label} = p_{label}")
            begin = len(w.lines)
            self.hoisted_loads()
            w("for j in range(m):")
            w.depth += 1
            body = len(w.lines)
            self.stage(0, "b + j")
            w.depth -= 1
            lines, w.lines[begin:] = w.lines[begin:], []
            lines = [_OF_ROW.sub(rf"\1_{k}", line) for line in lines]
            for label in operands:
                w(f"p{label}_{k} = p{label}")
            w.lines += lines[: body - begin - 1]
            bodies += lines[body - begin :]
        w("for j in range(m):")
        w.lines += bodies

    def rows_done(self, n: int) -> None:
        """Count rows; where a group is full its sums go up."""
        w = self.w
        w(f"count1 += {n}")
        w(f"if count1 == {GROUP}:")
        w.depth += 1
        self.up(0)
        self.clear([0])
        w("count1 = 0")
        w("count2 += 1")
        w(f"if count2 == {GROUP}:")
        w.depth += 1
        self.up(1)
        self.clear([1])
        w("count2 = 0")
        w.depth -= 2

    def store_level(self, level: int) -> None:
        """Write the sums of a level where partial results go."""
        w = self.w
        w("for j in range(m):")
        for j, (_, dtype) in enumerate(self.combined):
            c = code(dtype)
            w(
                f"    store_{c}(y{j} + part * y{j}_0 + outer * y{j}_1 + b * {dtype.itemsize}, j, "
                f"get_{c}(acc{j}_{level}, j))"
            )

    def last_of_stage(self, s: int, get: Callable[[int], str]) -> None:
        for j, (ref, dtype) in enumerate(self.combined):
            form = self.inlined[j]
            if form is not None and self.stages.available(ref) == s:
                c = code(dtype)
                value = zero_cast(get(ref), self.program.dtype_of(ref), dtype)
                self.w(f"put_{c}(acc{j}_0, j, {form.format(f'get_{c}(acc{j}_0, j)', value)})")

    def value_addresses(self) -> list[tuple[str, str]]:
        """Where the reduced values of a block lie, and their step."""
        found = []
        for ref, dtype in self.combined:
            address = self.scratch.get((ref, dtype)) or f"px{-1 - ref} + b * {dtype.itemsize}"
            found.append((address, str(dtype.itemsize)))
        return found

    def combine(self, j: int, target: str, target_step: str, address: str, step: str) -> None:
        """`target` combined with the values of a block, by the reduction's own loop."""
        slot = self.loop_slot(reduction_sig(self.layout.reduce[j], self.combined[j][1]))
        self.w(
            f"loop_3(load_i8(args, {slot}), load_i8(args, {slot + 1}), m, "
            f"{target}, {address}, {target}, {target_step}, {step}, {target_step})"
        )

    def up(self, level: int) -> None:
        """Add the sums of a level to those of the next."""
        for j, (_, dtype) in enumerate(self.combined):
            size = str(dtype.itemsize)
            self.combine(j, f"acc{j}_{level + 1}", size, f"acc{j}_{level}", size)

    def clear(self, levels: Iterable[int]) -> None:
        self.w("for j in range(m):")
        for j, (_, dtype) in enumerate(self.combined):
            for level in levels:
                self.w(f"    put_{code(dtype)}(acc{j}_{level}, j, neutral{j})")


def reduction_sig(ufunc: str, dtype: np.dtype) -> Sig:
    """The signature of a reduction's own loop."""
    return signature(TABLE[ufunc], (dtype, dtype))


def range_source(program: Program, layout: Layout) -> Source:
    """The source of a program's range kernel for operands that lie as `layout` says."""
    frame = ReductionFrame if layout.reduce else RangeFrame
    return frame(program, layout).source()
