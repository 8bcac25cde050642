"""Reductions on a graphics card: one launch, or two where few outputs are made of many elements.

How a reduction is cut into parts depends on its shape alone: results are the same on every run, and
on every card.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.assign import write_safely
from mirabelle.arraytypes.dense import settle, wrap
from mirabelle.arraytypes.gpu import GPUArray, dense_strides
from mirabelle.arraytypes.usercode.userfunctions import operation
from mirabelle.backends.codegen.element import scalar_values
from mirabelle.backends.codegen.gridreduce import ReduceLayout, reduce_source
from mirabelle.backends.codegen.program import Program, program_for
from mirabelle.backends.gpu.compiler import compiled_names
from mirabelle.backends.gpu.run import WIDE, forcer
from mirabelle.backends.host.layout import merge, stretched_strides
from mirabelle.backends.host.reduce import waiting
from mirabelle.dispatch import counters, verbs
from mirabelle.dispatch.schedule import Request, schedule_reduction
from mirabelle.dispatch.tree import Leaf, Reduced

THREADS = 256
# So many blocks keep a large card busy; more parts than that only make more partial results.
BLOCKS = 1024
# Bytes that a thread asks for at a time.
IN_FLIGHT = 64
# Programs of so many operations compute one element at a time.
LARGE = 32
# A part has at least so many elements for each of its threads.
LEAST_WORK = 16


@verbs.copyto.method
def _(dest: GPUArray, src: Reduced) -> Any:
    if not dest._node.checked:  # type: ignore[union-attr]
        return write_safely(dest, src)
    family = type(dest).family
    target = dest._node.view  # type: ignore[union-attr]
    reduction = src.reduction
    if reduction.scalar is None and reduction.neutral(src.dtype) is None:
        return _by_library(family, target, src, dest)
    together = waiting(src) if reduction.scalar is None else [src]
    request = schedule_reduction(src.operand, together, forcer(family))
    outs = [target] + [family._empty(r.shape, r.dtype) for r in together[1:]]
    stored = [family._empty(n.shape, n.dtype) for n in request.stored]
    program = program_for(request, tuple(r.dtype for r in together) + tuple(n.dtype for n in request.stored))
    views = [leaf.view for leaf in request.leaves]
    if counters.active:
        counters.add(
            launches=1,
            bytes_read=program.bytes_read(views),
            bytes_written=sum(o.nbytes for o in (*outs, *stored)),
        )
    if target.size:
        reduce(family, program, request, src.axes, views, together, outs, stored)
    elif stored and stored[0].size:
        raise AssertionError("a tree without outputs has no elements")
    for r, out in zip(together[1:], outs[1:], strict=True):
        settle(r, Leaf(out))
    for node, out in zip(request.stored, stored, strict=True):
        settle(node, Leaf(out))
    return dest


def _by_library(family: Any, target: Any, src: Reduced, dest: Any) -> Any:
    """Where no neutral element exists (the least of complex numbers), the card's library."""
    operand: Any = forcer(family)(src.operand) if type(src.operand) is not Leaf else src.operand
    out = library.call(src.reduction.ufunc.__name__ + ".reduce", wrap(family, operand), axis=src.axes)
    family._copy_into(target, verbs.leaf_of(out).view.reshape(target.shape))
    return dest


class _Plan:
    """All of a reduction that does not depend on addresses and scalars."""

    __slots__ = ("dtypes", "first", "neutrals", "partial", "second")

    def __init__(self, first: Any, neutrals: list[Any], partial: Any, second: Any, dtypes: list[Any]) -> None:
        self.first = first
        self.neutrals = neutrals
        self.partial = partial
        self.second = second
        self.dtypes = dtypes

    def __call__(self, addresses: list[int], scalars: list[Any], family: Any) -> None:
        """`addresses` are those of results, of stored values, and of leaves."""
        if self.partial is None:
            self.first(*addresses, *scalars, *self.neutrals)
            return
        n = len(self.dtypes)
        partials = [family._empty(self.partial, d) for d in self.dtypes]
        places = [p.ptr for p in partials]
        self.first(*places, *addresses[n:], *scalars, *self.neutrals)
        self.second(*addresses[:n], *places, *self.neutrals)


def reduce(
    family: Any,
    program: Program,
    request: Request,
    axes: tuple[int, ...],
    views: list[Any],
    together: list[Reduced],
    outs: list[Any],
    stored: list[Any],
) -> None:
    """Evaluate the tree of a request and combine it along axes."""
    operands = [*outs, *stored, *views]
    names = tuple(
        [r.reduction.name if r.reduction.scalar is None else id(r.reduction.scalar) for r in together]
    )
    how = ("reduce", family, request.shape, axes, names, *[v.layout for v in operands])
    plan = program.plans.get(how)
    if plan is None:
        plan = planned(family, program, request.shape, axes, together, operands, len(outs), len(stored))
        program.keep(how, plan)
    plan([v.ptr for v in operands], scalar_values(program, request.scalars), family)


def planned(
    family: Any,
    program: Program,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    together: list[Reduced],
    operands: list[Any],
    n_red: int,
    n_stored: int,
) -> _Plan:
    """The launches of a reduction: `operands` are results, stored values and leaves."""
    aligned = not any(v.ptr & 15 for v in operands)
    strides = [_spread(o, shape, axes) for o in operands[:n_red]]
    strides += [stretched_strides(v, shape) for v in operands[n_red:]]
    leaders = strides[n_red:]
    # The order in which most operands run through memory.
    leader = max(leaders, key=lambda s: sum(1 for x in s if x)) if leaders else [0] * len(shape)
    live = sorted((d for d in range(len(shape)) if shape[d] != 1), key=lambda d: -abs(leader[d]))
    kept = [d for d in live if d not in axes]
    reduced = [d for d in live if d in axes]
    across = not live or live[-1] in axes
    if kept and reduced and math.prod(shape[d] for d in reduced) == 1:
        across = False
    kept_sizes, kept_strides = _grouped(kept, shape, strides)
    red_sizes, red_strides = _grouped(reduced, shape, strides)
    user = {}
    for j, r in enumerate(together):
        if r.reduction.scalar is not None:
            user[j], captured = operation(r.reduction.scalar, 2)
            assert not captured, "a reduction's function captures nothing that changes"
    names = tuple(r.reduction.name for r in together)
    neutrals: list[Any] = []
    for r in together:
        neutral = r.reduction.init if r.reduction.scalar is not None else r.reduction.neutral(r.dtype)
        value = np.asarray(neutral).astype(r.dtype)[()]
        if r.dtype.kind == "c":
            neutrals += [float(value.real), float(value.imag)]
        else:
            neutrals.append(float(value) if r.dtype.kind == "f" else int(value))
    itemsizes = [v.itemsize for v in operands]
    first, splits = _launcher(
        family, program, across, kept_sizes, kept_strides, red_sizes, red_strides, itemsizes, n_red, n_stored,
        names, user, aligned, True,
    )  # fmt: skip
    if splits == 1:
        return _Plan(first, neutrals, None, None, [])
    # The second pass combines the parts, which lie one after the other.
    dtypes = tuple([o.dtype for o in operands[:n_red]])
    again = Request(((), tuple(-1 - j for j in range(n_red))), [_Typed(d) for d in dtypes], [], (), [])  # type: ignore[misc]
    copy = program_for(again, dtypes)
    outputs = math.prod(kept_sizes)
    parts = [list(dense_strides((splits, *kept_sizes), d.itemsize, "C")[0]) for d in dtypes]
    second, _ = _launcher(
        family, copy, outputs == 1, kept_sizes, [*kept_strides[:n_red], *[p[1:] for p in parts]], [splits],
        [[0]] * n_red + [p[:1] for p in parts], [*itemsizes[:n_red]] * 2, n_red, 0, names, user, True, False,
    )  # fmt: skip
    return _Plan(first, neutrals, (splits, outputs), second, list(dtypes))


class _Typed:
    """A leaf of which only the dtype is known."""

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype


def _spread(out: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> list[int]:
    """The strides of a result over the shape it was reduced from: 0 along what was."""
    if len(out.shape) == len(shape):  # dimensions of size 1 were kept
        return [0 if d in axes else s for d, s in enumerate(out.strides)]
    given = iter(out.strides)
    return [0 if d in axes else next(given) for d in range(len(shape))]


def _grouped(
    dims: list[int], shape: tuple[int, ...], strides: list[list[int]]
) -> tuple[list[int], list[list[int]]]:
    if not dims:
        return [], [[] for _ in strides]
    return merge([shape[d] for d in dims], [[s[d] for d in dims] for s in strides])


def _launcher(
    family: Any,
    program: Program,
    across: bool,
    kept_sizes: list[int],
    kept_strides: list[list[int]],
    red_sizes: list[int],
    red_strides: list[list[int]],
    itemsizes: list[int],
    n_red: int,
    n_stored: int,
    names: tuple[Any, ...],
    user: dict[int, Any],
    aligned: bool,
    split: bool,
) -> tuple[Any, int]:
    """The launch of one pass, and into how many parts it cuts what is reduced."""
    outputs, length = math.prod(kept_sizes), math.prod(red_sizes)
    first = n_red + n_stored
    # (Of some leaves no element is read, but found out where it lies: an integer.)
    read = [8 if j in program.places else size for j, size in enumerate(itemsizes[first:])]
    lanes, vectors = 1, ""
    if across and aligned and len(red_sizes) == 1 and not n_stored:
        lanes, vectors = _lanes(length, kept_strides[first:], red_strides[first:], read)
    wide, high = _block(across, outputs, kept_sizes, length, lanes)
    teams, members = (high, wide) if across else (wide, high)
    columns = -(-outputs // teams)
    splits = 1
    if split:
        most = max(1, length // (members * lanes * LEAST_WORK))
        splits = max(1, min(most, -(-BLOCKS // columns), 65535))
    chunk = -(-length // splits) if length else 1
    chunk = -(-chunk // (lanes * 4)) * (lanes * 4) if splits > 1 else max(chunk, 1)
    splits = max(1, -(-length // chunk))
    unroll = max(1, min(8, IN_FLIGHT // (lanes * max(read, default=8)))) if across else 4
    if len(program.steps) >= LARGE:
        unroll = 1  # (it has loads enough on their way, and needs the registers)
    layout = ReduceLayout(
        across, len(kept_sizes), len(red_sizes), names, lanes, vectors,
        max(outputs + teams, length + 8 * members * lanes) >= WIDE, wide * high, unroll,
    )  # fmt: skip
    driver = family.driver()
    key = (family, layout)
    entry = None if user else program.plans.get(key)
    if entry is None:
        source = reduce_source(program, layout, user)
        entry = source, driver.load(source, compiled_names(source.functions))
        if not user:
            program.plans[key] = entry
    source, kernel = entry
    step = [0] * n_red
    if splits > 1:
        step = [outputs * itemsizes[j] for j in range(n_red)]
        dense = dense_strides(tuple(kept_sizes), 1, "C")[0]
        kept_strides = [[x * itemsizes[j] for x in dense] for j in range(n_red)] + kept_strides[n_red:]
    fixed = (
        outputs, length, chunk, *kept_sizes, *red_sizes, *[x for s in kept_strides for x in s], *step,
        *[x for s in red_strides[n_red:] for x in s],
    )  # fmt: skip
    return driver.launcher(kernel, source.codes, (columns, splits, 1), (wide, high, 1), fixed), splits


def _lanes(
    length: int, kept: list[list[int]], reduced: list[list[int]], itemsizes: list[int]
) -> tuple[int, str]:
    """How many neighbours are read as one vector, and which leaves lie so."""
    steps = [r[0] if r else 0 for r in reduced]
    vectors = "".join("c" if s == i else "s" for s, i in zip(steps, itemsizes, strict=True))
    moving = [i for i, v in zip(itemsizes, vectors, strict=True) if v == "c"]
    if not moving:
        return 1, vectors
    lanes = max(1, min(16 // min(moving), 4 if max(moving) > 2 else 8))
    while lanes > 1 and (
        length < lanes * 8
        or any(
            v == "c" and any(x % min(16, lanes * i) for x in k)
            for k, i, v in zip(kept, itemsizes, vectors, strict=True)
        )
    ):
        lanes //= 2
    return lanes, vectors


def _block(across: bool, outputs: int, kept_sizes: list[int], length: int, lanes: int) -> tuple[int, int]:
    """The width and height of a block: powers of 2."""
    if across:
        wide = 1
        while wide < THREADS and wide * lanes * 4 < length:
            wide *= 2
        return wide, THREADS // wide
    inner = kept_sizes[-1] if kept_sizes else 1
    wide = 1
    while wide < 32 and wide < inner:
        wide *= 2
    high = 1
    while high * wide < THREADS and high * 4 < length:
        high *= 2
    while wide * high < THREADS and wide < outputs:
        wide *= 2
    return wide, high
