"""HostArray's reductions: the tree is evaluated in blocks that never leave the cache.

Each block of 1024 elements gives one partial result through NumPy's own loop (pairwise for
sums), and the partials are combined pairwise; where the innermost dimension is kept, rows are
added in groups whose sums go up a level. Both ways of running (NumPy on blocks, a compiled
kernel) use the same order, and so does any number of threads: results are reproducible.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes import recording
from mirabelle.arraytypes.assign import fallible, write_safely
from mirabelle.arraytypes.dense import force, settle
from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.reductions import reduction_made
from mirabelle.backends.codegen.program import Program, program_for
from mirabelle.backends.codegen.reduceframe import GROUP
from mirabelle.backends.codegen.source import BLOCK, Layout
from mirabelle.backends.host import layout, run
from mirabelle.backends.host.interpreter import interpreted, interpreted_blocks, quietly
from mirabelle.dispatch import counters, native, verbs
from mirabelle.dispatch.addresses import address_of
from mirabelle.dispatch.schedule import EvaluatedError, schedule_reduction
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import Leaf, Reduced


def waiting(node: Reduced) -> list[Reduced]:
    """The reductions of the same tree along the same axes that somebody still waits for."""
    operand = node.operand
    if operand is None:  # another thread has just evaluated it
        return [node]
    found = [node]
    for ref in operand.reducers or ():
        other = ref()
        if (
            other is not None
            and other is not node
            and other.value is None
            and other.axes == node.axes
            and other.reduction.scalar is None
            and other.reduction.neutral(other.dtype) is not None
        ):
            found.append(other)
    return found


@reduction_made.method
def _(family: type[HostArray], node: Reduced) -> None:
    native.in_c.let_wait(node)


def waited(node: Reduced) -> None:
    """Compute a reduction that has waited for long; what may fail is left to who reads it."""
    operand = node.operand
    if operand is None or recording.active:
        return
    if node.reduction.scalar is None and not fallible(operand):
        with contextlib.suppress(Exception):
            force(HostArray, node)


native.tell(waited=waited)


@verbs.copyto.method
def _(dest: HostArray, src: Reduced) -> Any:
    if not dest._node.checked:  # type: ignore[union-attr]
        return write_safely(dest, src)
    target = dest._node.view  # type: ignore[union-attr]
    reduction = src.reduction
    try:
        if reduction.scalar is not None or reduction.neutral(src.dtype) is None:
            reduce_stored(target, src)
            return dest
        together = waiting(src)
        outs = [target] + [HostArray._empty(r.shape, r.dtype) for r in together[1:]]
        fused(src, together, outs)
    except EvaluatedError:
        np.copyto(target, src.value.view)
        return dest
    for r, out in zip(together[1:], outs[1:], strict=True):
        settle(r, Leaf(out))
    return dest


def reduce_stored(target: np.ndarray, node: Reduced) -> None:
    """A reduction no fused kernel knows: the operand is evaluated first."""
    operand: Any = node.operand
    if operand is None:
        raise EvaluatedError
    leaf = run.force_host(operand)
    if counters.active:
        counters.add(launches=1, bytes_read=leaf.view.nbytes, bytes_written=target.nbytes)
    kept = [d for d in range(len(leaf.shape)) if d not in node.axes]
    reduction = node.reduction
    if reduction.scalar is None:
        result = quietly(lambda: reduction.ufunc.reduce(leaf.view, axis=node.axes))
        np.copyto(target, np.asarray(result).reshape(target.shape))
        return
    from mirabelle.backends.host.folds import fold

    rows = leaf.view.transpose([*kept, *node.axes]).reshape(math.prod(leaf.shape[d] for d in kept), -1)
    result = fold(reduction.scalar, rows.astype(node.dtype, copy=False), node.dtype.type(reduction.init))
    np.copyto(target, result.reshape(target.shape))


def fused(src: Reduced, together: list[Reduced], outs: list[np.ndarray]) -> None:
    """Several reductions of one tree in one pass."""
    request = schedule_reduction(src.operand, together, run.force_host)
    stored = request.stored
    plain = [HostArray._empty(s.shape, s.dtype) for s in stored]
    program = program_for(request, tuple(r.dtype for r in together) + tuple(p.dtype for p in plain))
    views = [leaf.view for leaf in request.leaves]
    if counters.active:
        counters.add(
            launches=1,
            bytes_read=program.bytes_read(views),
            bytes_written=sum(o.nbytes for o in (*outs, *plain)),
        )
    shape = request.shape
    if 0 in shape:
        for out, r in zip(outs, together, strict=True):
            out[...] = r.reduction.neutral(r.dtype)
    else:
        axes = src.axes
        names = tuple([r.reduction.name for r in together])
        key = ("reduce", shape, axes, names, *[(v.shape, v.strides) for v in views])
        plan = program.plans.get(key)
        if plan is None:
            plan = ReductionPlan(program, shape, axes, together, plain, views)
            program.keep(key, plan)
        straight = plan.straight(views, outs)
        results = plan.run(request.scalars, plain, views, straight)
        if not straight:
            for out, result in zip(outs, results, strict=True):
                plan.deliver(result, out)
    for node, p in zip(stored, plain, strict=True):
        settle(node, Leaf(p))


class ReductionPlan:
    """All of fused reductions that does not depend on addresses and the values of scalars."""

    def __init__(
        self,
        program: Program,
        shape: tuple[int, ...],
        axes: tuple[int, ...],
        together: list[Reduced],
        plain: list[np.ndarray],
        views: list[Any],
    ) -> None:
        self.program = program
        self.n = math.prod(shape)
        self.dtypes = [r.dtype for r in together]
        self.neutrals = [r.reduction.neutral(r.dtype) for r in together]
        self.ufuncs = [r.reduction.ufunc for r in together]
        self.arrangement = a = layout.arrange_reduction(shape, axes, [*plain, *views])
        self.inner = a.sizes[-1]
        self.kept = math.prod(a.kept)
        self.reduced = math.prod(a.reduced)
        # How many partials a result has is a matter of shape alone, so that results are.
        columns = self.kept * self.inner
        self.parts = 1
        if a.inner_kept and columns < 1 << 14:
            self.parts = max(1, min(16, self.reduced // 4096))
        self.blocks = -(-self.inner // BLOCK)
        self.classes = a.classes
        self.n_plain = len(plain)
        self.entry: Any = None
        self.in_pieces: Any = None
        self.words: list[int] = []
        # Partial results have the kept dimensions in the order of memory.
        kept = [d for d in range(len(shape)) if d not in axes]
        order = [d for d in a.order if d in kept]
        self.in_memory = tuple(shape[d] for d in order)
        self.back = tuple(order.index(d) for d in kept if d in order)
        self.delivered = tuple(shape[d] for d in kept if shape[d] != 1)

    def deliver(self, result: np.ndarray, out: np.ndarray) -> None:
        """A result, its dimensions in the order of memory, to where it belongs."""
        np.copyto(out.reshape(self.delivered), result.reshape(self.in_memory).transpose(self.back))

    def straight(self, views: list[Any], outs: list[np.ndarray]) -> list[np.ndarray]:
        """`outs` as the partial results, where there is one for each result and it may lie there at once."""
        if not self.arrangement.inner_kept or self.parts > 1 or self.back != tuple(range(len(self.back))):
            return []
        if any(o.dtype != d or not o.flags.c_contiguous for o, d in zip(outs, self.dtypes, strict=True)):
            return []
        if any(np.may_share_memory(o, v) for o in outs for v in views):
            return []
        return [o.reshape(1, self.kept, self.inner) for o in outs]

    def run(
        self,
        scalars: list[Any],
        plain: list[np.ndarray],
        views: list[Any],
        straight: Sequence[np.ndarray] = (),
    ) -> Sequence[np.ndarray]:
        """The results, with the kept dimensions in the order of memory."""
        compiled = self.ready()
        if not self.arrangement.inner_kept:
            per_row = self.reduced * self.blocks
            partials = [
                np.full((self.kept, per_row), neutral, dtype)
                for neutral, dtype in zip(self.neutrals, self.dtypes, strict=True)
            ]
            if compiled:
                self.kernel_rows(partials, scalars, plain, views)
            else:
                _InBlocks(self, scalars, plain, views).rows(partials)
            return partials if per_row == 1 else self.together(partials, 1)
        shape = (self.parts, self.kept, self.inner)
        partials = list(straight) or [np.empty(shape, dtype) for dtype in self.dtypes]
        if compiled:
            self.kernel_columns(partials, scalars, plain, views)
        else:
            _InBlocks(self, scalars, plain, views).columns(partials)
        return partials if self.parts == 1 else self.together(partials, 0)

    def together(self, partials: list[np.ndarray], axis: int) -> list[np.ndarray]:
        return [
            self.combined(u, v, p, axis) for u, p, v in zip(self.ufuncs, partials, self.neutrals, strict=True)
        ]

    @staticmethod
    def combined(ufunc: Any, neutral: Any, partials: np.ndarray, axis: int = 1) -> np.ndarray:
        return quietly(lambda: ufunc.reduce(partials, axis=axis, initial=neutral))  # type: ignore[no-any-return]

    @staticmethod
    def exact(node: Reduced) -> bool:
        """Is the result of the kernel NumPy's to the last bit, whatever the order?"""
        return node.dtype.kind in "biu" or node.reduction.name in ("min", "max", "any", "all")

    # Compiled

    def ready(self, wait: bool = False) -> bool:
        """Is there a kernel (or can there be one, where the caller waits for it)?"""
        if not (run.has_kernel(self.program) if wait else run.wants_kernel(self.program, self.n)):
            return False
        return self.entry is not None or self._found(wait)

    def _found(self, wait: bool) -> bool:
        if self.entry is None:
            a, n = self.arrangement, self.n_plain
            how = Layout(
                len(a.sizes),
                "c" * len(self.dtypes) + self.classes[:n],
                self.classes[n:],
                reduce=tuple(u.__name__ for u in self.ufuncs),
                reduce_rank=len(a.reduced),
                inner_kept=a.inner_kept,
            )
            entry = run.kernel_for(self.program, how, wait)
            if entry is not None:
                self.prepare(entry)
        return self.entry is not None

    def asked(self) -> bool:
        """Is there a kernel? If not, it is asked for, whatever the size."""
        return self.entry is not None or self._found(wait=False)

    def prepare(self, entry: Any) -> None:
        """The kernel's argument block, all but addresses and scalars."""
        a = self.arrangement
        rank = len(a.sizes)
        words = list(a.sizes[:-1])
        addresses = []  # (others may be at it: what is kept is whole)
        for dtype in self.dtypes:
            size = dtype.itemsize
            if a.inner_kept:
                steps = [self.kept * self.inner * size, self.inner * size][: 2 if rank > 1 else 1]
            else:
                steps = [self.blocks * size]
            addresses.append(len(words))
            words += [0, *steps, *[0] * (rank - len(steps))]
        for s in a.strides:
            addresses.append(len(words))
            words += [0, *s]
        self.addresses = addresses
        self.scalars = len(words)
        words += [0] * (2 * len(self.program.scalar_slots))
        if a.inner_kept:
            for neutral, dtype in zip(self.neutrals, self.dtypes, strict=True):
                words += run.scalar_words(neutral, dtype)
        self.words = words + entry.loops
        self.kernel = run.watched(entry.kernel, self.program) if self.program.user_functions else entry.kernel
        self.entry = entry

    def argument_words(self, operands: list[Any], scalars: list[Any]) -> list[int]:
        """The kernel's argument block."""
        words = self.words.copy()
        for at, v in zip(self.addresses, operands, strict=True):
            words[at] = address_of(v)
        if scalars:
            given = run.scalar_block(self.program, scalars)
            words[self.scalars : self.scalars + len(given)] = given
        return words

    def kernel_rows(self, partials: list[Any], scalars: list[Any], plain: list[Any], views: list[Any]) -> None:
        rows, inner = self.kept * self.reduced, self.inner
        self.kernel_over([*partials, *plain, *views], scalars, lambda: run.split(rows, inner))

    def kernel_columns(
        self, partials: list[Any], scalars: list[Any], plain: list[Any], views: list[Any]
    ) -> None:
        n, kept, inner, edges = self.n, self.kept, self.inner, self.edges()

        def cut() -> list[tuple[int, ...]]:
            pieces = [(0, kept, 0, inner)] if n < settings.thread_size else run.split(kept, inner)
            return [
                (*piece, lo, hi, part)
                for part, (lo, hi) in enumerate(itertools.pairwise(edges))
                for piece in pieces
            ]

        self.kernel_over([*partials, *plain, *views], scalars, cut)

    def kernel_over(self, operands: list[Any], scalars: list[Any], cut: Callable[[], Any]) -> None:
        """The kernel over all pieces, on several threads if there is enough to do."""
        words = self.argument_words(operands, scalars)
        if self.n >= settings.thread_size and settings.num_threads > 1:
            if self.in_pieces is None:
                self.in_pieces = run.InPieces(self.kernel, self.n * min(self.program.cost + 1, 16), cut)
            self.in_pieces.run(words)
            return
        block = (ctypes.c_int64 * len(words))(*words)
        address, rest = ctypes.addressof(block), (0, 1, 0)
        pieces = [(0, self.kept * self.reduced, 0, self.inner)] if not self.arrangement.inner_kept else cut()
        for piece in pieces:
            self.kernel(address, *piece, *rest[len(piece) - 4 :])

    def edges(self) -> list[int]:
        """Where the reduced dimensions are cut into parts."""
        return [self.reduced * i // self.parts for i in range(self.parts + 1)]


class _InBlocks:
    """The same order of operations, by NumPy on blocks."""

    def __init__(self, plan: ReductionPlan, scalars: list[Any], plain: list[Any], views: list[Any]) -> None:
        self.plan = plan
        self.scalars = scalars
        # Plain outputs and leaves as arrays over (kept..., reduced..., inner).
        a = plan.arrangement
        arrays = [
            np.lib.stride_tricks.as_strided(v, a.sizes, s)
            for v, s in zip([*plain, *views], a.strides, strict=True)
        ]
        if not arrays:  # a tree of numbers alone: what is never read says its shape
            arrays.append(np.broadcast_to(np.int8(0), a.sizes))
        self.plain, self.leaves = arrays[: len(plain)], arrays[len(plain) :]
        # Leaves that are reduced where they lie, all at once. (Of others NumPy might add in another order.)
        program = plan.program
        own = [] if program.steps or plain else [self.leaves[-1 - r] for r in program.outs]
        self.own = (
            own if [x.dtype for x in own] == plan.dtypes and all(x.flags.c_contiguous for x in own) else []
        )

    def values(self, plain: list[np.ndarray], leaves: list[np.ndarray]) -> list[np.ndarray]:
        """The reduced values over a part of the operands, in new memory."""
        shape = plain[0].shape if plain else np.broadcast_shapes(*[x.shape for x in leaves]) if leaves else ()
        outs = [np.empty(shape, d) for d in self.plan.dtypes]
        make = interpreted if self.plan.program.user_functions else interpreted_blocks
        make(self.plan.program)(leaves, self.scalars, [*outs, *plain])
        return outs

    def rows(self, partials: list[np.ndarray]) -> None:
        plan, plain, leaves = self.plan, self.plain, self.leaves
        lead, inner = plan.arrangement.sizes[:-1], plan.inner
        flat = [p.reshape(plan.kept * plan.reduced, plan.blocks) for p in partials]

        def rows(index: int, where: tuple[Any, ...], count: int) -> None:
            if self.own:
                self.combine([x[where] for x in self.own], [f[index : index + count] for f in flat])
                return
            if inner > 1 << 16:
                for start in range(0, inner, 1 << 15):
                    cut = (*where, slice(start, start + (1 << 15)))
                    self.combine(
                        self.values([p[cut] for p in plain], [x[cut] for x in leaves]),
                        [f[index : index + count, start // BLOCK :] for f in flat],
                    )
                return
            self.combine(
                self.values([p[where] for p in plain], [x[where] for x in leaves]),
                [f[index : index + count] for f in flat],
            )

        def everything() -> None:
            index = 0
            for where, count in _pieces(tuple(lead), inner, plan.n if self.own else 1 << 14):
                rows(index, where, count)
                index += count

        quietly(everything)

    def combine(self, values: list[np.ndarray], partials: list[np.ndarray]) -> None:
        """Partial results of blocks of 1024 along the last dimension."""
        for value, partial, ufunc, neutral in zip(
            values, partials, self.plan.ufuncs, self.plan.neutrals, strict=True
        ):
            n = value.shape[-1]
            value = value.reshape(-1, n)
            whole = n // BLOCK
            if whole:
                cut = value[:, : whole * BLOCK].reshape(len(value), whole, BLOCK)
                partial[:, :whole] = ufunc.reduce(cut, axis=2, initial=neutral)
            if n % BLOCK:
                partial[:, whole] = ufunc.reduce(value[:, whole * BLOCK :], axis=1, initial=neutral)

    def columns(self, partials: list[np.ndarray]) -> None:
        plan = self.plan
        kept = tuple(plan.arrangement.kept)

        def everything() -> None:
            outer = 0
            for where, count in _pieces(kept, plan.reduced * plan.inner, 1 << 15):
                for part, (lo, hi) in enumerate(itertools.pairwise(plan.edges())):
                    for p, s in zip(partials, self.column_sums(where, count, lo, hi), strict=True):
                        p[part, outer : outer + count] = s
                outer += count

        quietly(everything)

    def column_sums(self, kept: tuple[Any, ...], count: int, lo: int, hi: int) -> list[np.ndarray]:
        """What the rows from `lo` to `hi` of the reduced dimensions come to, at `count` places."""
        plan = self.plan
        *outer, last = plan.arrangement.reduced
        sums = [
            _Columns(u, neutral, (count, plan.inner), dtype)
            for u, neutral, dtype in zip(plan.ufuncs, plan.neutrals, plan.dtypes, strict=True)
        ]
        whole = (*kept, *[slice(None)] * (len(plan.arrangement.kept) - len(kept)))
        step = plan.reduced if self.own else max(1, (1 << 15) // (plan.inner * count))
        for i, where in enumerate(itertools.product(*map(range, outer))):
            first, end = max(lo - i * last, 0), min(hi - i * last, last)
            for start in range(first, end, step):
                cut: Any = (*whole, *where, slice(start, min(start + step, end)))
                values = [x[cut] for x in self.own]
                values = values or self.values([p[cut] for p in self.plain], [x[cut] for x in self.leaves])
                for s, rows in zip(sums, values, strict=True):
                    s.add(rows.reshape(count, -1, plan.inner))
        return [s.total() for s in sums]


def _pieces(sizes: tuple[int, ...], inner: int, most: int) -> Iterator[tuple[tuple[Any, ...], int]]:
    """Cut an index space, each place of which stands for `inner` elements, into pieces of about `most` elements
    in C's order: an index of the first dimensions, and how many places it shows.

    >>> list(_pieces((1, 4), 4, 12))
    [((0, slice(0, 3, None)), 3), ((0, slice(3, 4, None)), 1)]
    >>> list(_pieces((2, 3), 1, 8))
    [((slice(0, 2, None),), 6)]
    """
    if not sizes:
        yield (), 1
        return
    at = len(sizes) - 1
    while at and inner * sizes[at] <= most:
        inner *= sizes[at]
        at -= 1
    step, places = max(1, most // max(inner, 1)), math.prod(sizes[at + 1 :])
    for where in itertools.product(*map(range, sizes[:at])):
        for start in range(0, sizes[at], step):
            end = min(start + step, sizes[at])
            yield (*where, slice(start, end)), (end - start) * places


class _Columns:
    """The sums of rows, in groups of groups, as the compiled kernel adds them.

    `shape` is how many such sums there are beside each other, and how many elements a row has.
    """

    def __init__(self, ufunc: Any, neutral: Any, shape: tuple[int, int], dtype: np.dtype) -> None:
        self.ufunc = ufunc
        self.neutral = neutral
        self.levels = [np.full(shape, neutral, dtype) for _ in range(3)]
        self.counts = [0, 0, 0]
        self.rows = 0

    def add(self, rows: np.ndarray, level: int = 0) -> None:
        """Add rows, which are the second dimension."""
        self.rows += rows.shape[1] * (not level)
        while rows.shape[1]:
            count, n = self.counts[level], rows.shape[1]
            whole = n // GROUP
            if level == 2 or count or not whole:
                room = n if level == 2 else min(GROUP - count, n)
                group = np.concatenate([self.levels[level][:, None], rows[:, :room]], axis=1)
                self.levels[level] = self.ufunc.reduce(group, axis=1)
                rows = rows[:, room:]
                self.counts[level] = count + room
                if level < 2 and self.counts[level] == GROUP:
                    self.up(level)
            else:
                groups = rows[:, : whole * GROUP].reshape(len(rows), whole, GROUP, -1)
                rows = rows[:, whole * GROUP :]
                self.add(self.ufunc.reduce(groups, axis=2, initial=self.neutral), level + 1)

    def up(self, level: int) -> None:
        self.add(self.levels[level][:, None], level + 1)
        self.levels[level] = np.full_like(self.levels[level], self.neutral)
        self.counts[level] = 0

    def total(self) -> np.ndarray:
        low, middle, high = self.levels
        if self.rows < GROUP:  # (up to a group of rows no sum goes up)
            return low
        result: np.ndarray = self.ufunc(high, self.ufunc(middle, low))
        return result
