"""`copyto` on a graphics card: a tree becomes one launch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mirabelle.arraytypes.assign import write_safely
from mirabelle.arraytypes.dense import force_temporary, settle
from mirabelle.arraytypes.gpu import GPUArray, GPUView, copy_strided
from mirabelle.backends.codegen.element import scalar_values
from mirabelle.backends.codegen.gridframe import TILE_ROWS, TURNED, GridLayout, grid_source
from mirabelle.backends.codegen.program import Program, program_for
from mirabelle.backends.codegen.source import CONTIGUOUS, REVERSED, STRETCHED, STRIDED, UNEVEN
from mirabelle.backends.gpu.compiler import compiled_names
from mirabelle.backends.host import layout
from mirabelle.dispatch import counters, promotion, verbs
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.schedule import Request, schedule
from mirabelle.dispatch.tree import Broadcasted, Leaf

# Threads of a block in elementwise kernels.
THREADS = 256
# Of these, along the innermost dimension at most.
ACROSS = 64
# Where a thread computes elements a block's width apart: the threads of a block along one dimension, of words
# and of what is smaller, and of several dimensions along the innermost, whose neighbours above and below are
# then read by the same block.
APART, APART_SMALL, APART_ACROSS = 128, 256, 32
# From so many additions' worth an element on, a thread computes four neighbours of 8 bytes, and not two: what
# one of them waits for, the others fill.
EXPENSIVE = 20
# So many threads keep a large card busy.
BUSY = 1 << 17
# The most blocks a grid has along its second dimension.
MOST_ROWS = 65535
# Sizes from here on are counted in 64 bits.
WIDE = 2**31 - 2**20


@verbs.copyto.method
def _(dest: GPUArray, src: Broadcasted) -> Any:
    if not dest._node.checked:  # type: ignore[union-attr]
        return write_safely(dest, src)
    family = type(dest).family
    target = dest._node.view  # type: ignore[union-attr]
    request = schedule(src, forcer(family))
    outs = [target]
    if request.stored:
        # As the destination runs through memory, so that all are written in one order.
        order = "F" if target.ndim > 1 and abs(target.strides[0]) < abs(target.strides[-1]) else "C"
        for node in request.stored:
            outs.append(family._empty(node.shape, node.dtype, order))
    program = program_for(request, tuple([o.dtype for o in outs]))
    views = [leaf.view for leaf in request.leaves]
    if counters.active:
        counters.add(
            launches=1,
            bytes_read=program.bytes_read(views),
            bytes_written=sum(o.nbytes for o in outs),
        )
    if target.size:
        launch(family, program, views, request.scalars, outs)
    for node, out in zip(request.stored, outs[1:], strict=True):
        settle(node, Leaf(out))
    return dest


def forcer(family: Any) -> Any:
    return lambda version: force_temporary(family, version)


def launch(family: Any, program: Program, views: list[Any], scalars: list[Any], outs: list[Any]) -> None:
    """Run a program over arrays of any layout."""
    plan = launcher_of(family, program, views, outs)
    addresses = [v.ptr for v in (*outs, *views)]
    if scalars:
        plan(*addresses, *scalar_values(program, scalars))
    else:
        plan(*addresses)


def launcher_of(family: Any, program: Program, views: list[Any], outs: list[Any]) -> Any:
    """What launches a program over arrays of these layouts: a function of their addresses, then of numbers."""
    operands = [*outs, *views]
    how = (family, *[v.layout for v in operands])
    plan = program.plans.get(how)
    if plan is None:
        aligned = not any(v.ptr & 15 for v in operands)
        plan = make_plan(family, program, operands, len(outs), aligned)
        program.keep(how, plan)
    return plan


def make_plan(family: Any, program: Program, operands: list[Any], n_out: int, aligned: bool) -> Any:
    """All of a launch that does not depend on addresses and scalars, as a function of these."""
    how, sizes, strides = grid_layout(program, operands, n_out, aligned)
    driver = family.driver()
    key = (family, how)
    entry = program.plans.get(key)
    if entry is None:
        source = grid_source(program, how)
        kernel = driver.load(source, compiled_names(source.functions))
        entry = program.plans[key] = source, kernel
    source, kernel = entry
    fixed, grid, block = geometry(how, sizes, strides)
    return driver.launcher(kernel, source.codes, grid, block, fixed)


def grid_layout(
    program: Program, operands: Sequence[Any], n_out: int, aligned: bool
) -> tuple[GridLayout, list[int], list[list[int]]]:
    """How a program's kernel goes over operands, with the sizes and strides that it is told."""
    arrangement = layout.arrange(operands[0].shape, list(operands))
    sizes, strides = arrangement.sizes, arrangement.strides
    classes = _classes(arrangement, operands)
    frame = "flat" if len(sizes) == 1 else "tiles" if TURNED in classes else "rows"
    wide = math.prod(sizes) >= WIDE
    expensive = program.cost >= EXPENSIVE and not program.user_functions
    lanes = (
        1 if frame == "tiles" or not aligned else _lanes(sizes, strides, classes, operands, n_out, expensive)
    )
    gap = 1
    if lanes == 1 and frame != "tiles":
        # Several elements for what a thread has to find out first; not where that leaves cards idle.
        widest = max(v.itemsize for v in operands)
        gap = _across(frame, sizes[-1], widest)
        lanes = 4 if widest < 16 else 1
        while lanes > 1 and (lanes * gap > sizes[-1] or math.prod(sizes) < lanes * BUSY):
            lanes //= 2
        gap = gap if lanes > 1 else 1
    return GridLayout(frame, len(sizes), classes, lanes, wide, gap=gap), sizes, strides


def _classes(arrangement: Any, operands: Sequence[Any]) -> str:
    """How each operand steps along the innermost dimension, as the frames tell it."""
    classes = []
    for j, (c, strides, v) in enumerate(zip(arrangement.classes, arrangement.strides, operands, strict=True)):
        if c in (REVERSED, UNEVEN):
            c = STRIDED
        if (
            arrangement.tiled
            and j
            and c == STRIDED
            and 0 < abs(strides[-2]) < abs(strides[-1])
            and abs(strides[-2]) <= 2 * v.itemsize
        ):
            c = TURNED
        if j == 0 and c == STRETCHED and math.prod(arrangement.sizes) == 1:
            c = CONTIGUOUS
        classes.append(c)
    return "".join(classes)


def _lanes(
    sizes: list[int],
    strides: list[list[int]],
    classes: str,
    operands: Sequence[Any],
    n_out: int,
    expensive: bool,
) -> int:
    """How many neighbouring elements a thread computes: 16 bytes of the widest operand, at most 8; of what is
    expensive to compute, 4 if that is 2."""
    moving = [v.itemsize for v, c in zip(operands, classes, strict=True) if c == CONTIGUOUS]
    if not moving or any(c not in (CONTIGUOUS, STRETCHED) for c in classes[:n_out]):
        return 1
    lanes = min(8, max(1, 16 // max(moving)))
    if lanes == 2 and expensive:
        lanes = 4
    inner = sizes[-1]
    if len(sizes) > 1:
        # Rows begin where a vector may, and have no rest.
        for v, c, s in zip(operands, classes, strides, strict=True):
            if c == CONTIGUOUS:
                while lanes > 1 and (inner % lanes or any(x % min(16, lanes * v.itemsize) for x in s[:-1])):
                    lanes //= 2
    while lanes > 1 and inner < lanes:
        lanes //= 2
    return max(lanes, 1)


def _across(frame: str, inner: int, widest: int) -> int:
    """How many threads of a block stand along the innermost dimension, where each computes several elements."""
    if frame == "flat":
        return APART if widest >= 8 else APART_SMALL
    across = 1
    while across < APART_ACROSS and across < inner:
        across *= 2
    return across


def geometry(
    how: GridLayout, sizes: list[int], strides: list[list[int]], least: int = 1
) -> tuple[tuple[int, ...], tuple[int, int, int], tuple[int, int, int]]:
    """The sizes and strides a kernel gets, its grid and its blocks, in which `least` threads at least stand
    along the innermost of several dimensions."""
    frame, classes, lanes = how.frame, how.classes, how.lanes
    inner = sizes[-1]
    last = [s[-1] for s, c in zip(strides, classes, strict=True) if c not in (CONTIGUOUS, STRETCHED)]
    if frame == "flat":
        threads = THREADS if how.gap == 1 else how.gap
        return (inner, *last), (-(-inner // (threads * lanes)), 1, 1), (threads, 1, 1)
    outer = [x for s in strides for x in s[:-1]]
    fixed = (*sizes, *outer, *last)
    if frame == "tiles":
        rest = math.prod(sizes[:-2]) * -(-sizes[-2] // how.tile)
        return fixed, (-(-inner // how.tile), min(rest, MOST_ROWS), 1), (how.tile, TILE_ROWS, 1)
    across = max(how.gap, least)
    if how.gap == 1:
        while across < ACROSS and across * lanes < inner:
            across *= 2
    down = THREADS // across
    rows = math.prod(sizes[:-1])
    grid = (-(-inner // (across * lanes)), min(-(-rows // down), MOST_ROWS), 1)
    return fixed, grid, (across, down, 1)


@copy_strided.method
def _(dest: GPUView, source: GPUView) -> None:
    sig = promotion.intern(TABLE["copy"], (source.dtype,), (source.dtype,))
    request = Request((((sig, -1),), (0,)), [Leaf(source)], [], dest.shape, [])
    launch(type(dest).family, program_for(request, (dest.dtype,)), [source], [], [dest])
