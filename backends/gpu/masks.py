"""Where a mask holds, and writing there, on a card: the blocks of threads count, and then write.

One number decides the shape of the result, and is read: how many places there are. Two launches
and one reading are all, whatever the size.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.gpu import GPUArray, GPUView
from mirabelle.backends.codegen.element import KernelText
from mirabelle.backends.codegen.source import Writer
from mirabelle.backends.gpu.library import by_arrays
from mirabelle.dispatch import counters
from mirabelle.dispatch.promotion import code

# Threads of a block; of small masks, and what counts as small.
THREADS, FEW, SMALL = 256, 32, 1 << 9
# Neighbours that one thread looks at.
ITEMS = 8
# The most blocks of a mask: each adds up what those before it counted.
BLOCKS = 1024
# The most blocks that write.
WRITERS = 1 << 12
_PLACE = np.dtype(np.int64)


@library.routine(GPUArray, "nonzero")
def nonzero(x: GPUView) -> tuple[Any, ...]:
    """Vectors of booleans are looked at here; all else by the library."""
    family = type(x).family
    driver = family.driver()
    if (
        x.dtype.kind != "b"
        or len(x.shape) != 1
        or not x.contiguous
        or not x.size
        or (driver.simulated and x.size > SMALL)
    ):
        return by_arrays(family, "nonzero")(x)  # type: ignore[no-any-return]
    n = x.size
    threads = FEW if n <= SMALL else THREADS
    tile = threads * ITEMS
    tiles = -(-n // tile)
    share = -(-tiles // BLOCKS) * tile
    blocks = -(-n // share)
    count, write = _launchers(driver, threads, blocks)
    counts = family._empty((blocks,), np.dtype(np.int32))
    count(counts.ptr, x.ptr, n, share)
    known = np.empty(blocks, np.int32)
    driver.download(known, counts.ptr)
    total = int(known.sum())
    places = family._empty((total,), _PLACE)
    if total:
        write(places.ptr, counts.ptr, x.ptr, n, share)
    if counters.active:
        counters.add(launches=1 + (total > 0))
    return (places,)


@library.routine(GPUArray, "scatter")
def scatter(into: GPUView, value: Any, *indices: GPUView, op: str = "", distinct: bool = False) -> None:
    """Places of which none is written twice, or to all of which one value goes, need no order."""
    if not (
        op == ""
        and len(indices) == 1
        and len(into.shape) == 1
        and _goes(value, into.dtype, indices[0], distinct)
        and indices[0].contiguous
        and indices[0].dtype == _PLACE
        and into.strides[0] % into.itemsize == 0
    ):
        by_arrays(type(into).family, "scatter")(into, value, *indices, op=op, distinct=distinct)
        return
    (places,) = indices
    n = places.size
    if not n or not into.size:
        return
    blocks = 1
    while blocks < WRITERS and blocks * THREADS < n:
        blocks *= 2
    number = not isinstance(value, GPUView)
    run = _scatterer(type(into).family.driver(), into.dtype, number, FEW if n <= FEW else THREADS, blocks)
    each = 0 if number else int(value.size > 1)
    run(into.ptr, places.ptr, value if number else value.ptr, n, into.strides[0] // into.itemsize, each)
    if counters.active:
        counters.add(launches=1)


def _goes(value: Any, dtype: np.dtype, places: GPUView, distinct: bool) -> bool:
    """Is it one value for all places, or one for each, that can be written as it is?"""
    if isinstance(value, GPUView):
        alike = value.size == 1 or (distinct and value.shape == places.shape)
        return alike and value.dtype == dtype and value.contiguous
    return dtype.char in "fd" or (dtype.kind in "iu" and type(value) is int and dtype != np.uint64)


@functools.lru_cache(maxsize=256)
def _launchers(driver: Any, threads: int, blocks: int) -> tuple[Any, Any]:
    made = [
        driver.launcher(driver.load(text, {}), text.codes, (blocks, 1, 1), (threads, 1, 1), fixed)
        for text, fixed in ((count_source(threads), ()), (places_source(threads), (ITEMS, threads)))
    ]
    return made[0], made[1]


@functools.lru_cache(maxsize=256)
def _scatterer(driver: Any, dtype: np.dtype, number: bool, threads: int, blocks: int) -> Any:
    text = scatter_source(dtype, number, threads)
    return driver.launcher(
        driver.load(text, {}), text.codes, (blocks, 1, 1), (threads, 1, 1), (blocks * threads,)
    )


def _total(w: Writer, threads: int) -> None:
    """Add up the threads' `mine` in `sums`: the total stands first."""
    w("sums[u4(tx)] = mine")
    w("barrier()")
    w(f"step = i4({threads // 2})")
    w("while step > i4(0):")
    w("    if tx < step:")
    w("        sums[u4(tx)] = i8(sums[u4(tx)] + sums[u4(tx + step)])")
    w("    barrier()")
    w("    step = i4(step >> i4(1))")


def count_source(threads: int) -> KernelText:
    """How many elements of a mask each block has: of `share` elements, of `n` in all."""
    w = Writer()
    name = f"mask_counts_{threads}"
    w(f"def {name}(counts, x, n, share):")
    w.depth += 1
    w("tx = i4(thread_x())")
    w(f"sums = cuda.shared.array({threads}, i8)")
    w("at = i8(i8(block_x()) * share)")
    w("end = i8(min(n, at + share))")
    w("at = i8(at + tx)")
    w("mine = i8(0)")
    w("while at < end:")
    w("    if load_b1(x, at):")
    w("        mine = i8(mine + i8(1))")
    w(f"    at = i8(at + i8({threads}))")
    _total(w, threads)
    w("if tx == i4(0):")
    w("    store_i4(counts, i8(block_x()), i4(sums[u4(0)]))")
    return KernelText(w.text(), name, ("i8",) * 4)


def places_source(threads: int) -> KernelText:
    """The places where a mask holds, each block's behind those of the blocks before it."""
    w = Writer()
    name = f"mask_places_{threads}"
    # (Loops to a parameter are not unrolled, which would take long.)
    w(f"def {name}(y, counts, x, n, share, items, threads):")
    w.depth += 1
    w("tx = i4(thread_x())")
    w(f"sums = cuda.shared.array({threads}, i8)")
    w("here = i8(block_x())")
    w("mine = i8(0)")
    w("k = i8(tx)")
    w("while k < here:")
    w("    mine = i8(mine + i8(load_i4(counts, k)))")
    w(f"    k = i8(k + i8({threads}))")
    _total(w, threads)
    w("before = i8(sums[u4(0)])")
    w("at = i8(here * share)")
    w("end = i8(min(n, at + share))")
    w("while at < end:")
    w.depth += 1
    w("first = i8(at + tx * items)")
    w("mine = i8(0)")
    w("k = i4(0)")
    w("while k < items and first + k < end:")
    w("    if load_b1(x, i8(first + k)):")
    w("        mine = i8(mine + i8(1))")
    w("    k = i4(k + i4(1))")
    w("barrier()")
    w("sums[u4(tx)] = mine")
    w("barrier()")
    w("step = i4(1)")
    w("while step < threads:")
    w("    other = i8(0)")
    w("    if tx >= step:")
    w("        other = i8(sums[u4(tx - step)])")
    w("    barrier()")
    w("    sums[u4(tx)] = i8(sums[u4(tx)] + other)")
    w("    barrier()")
    w("    step = i4(step + step)")
    w("to = i8(before + sums[u4(tx)] - mine)")
    w("k = i4(0)")
    w("while k < items and first + k < end:")
    w("    if load_b1(x, i8(first + k)):")
    w("        store_i8(y, to, i8(first + k))")
    w("        to = i8(to + i8(1))")
    w("    k = i4(k + i4(1))")
    w(f"before = i8(before + sums[u4({threads - 1})])")
    w(f"at = i8(at + i8({threads * ITEMS}))")
    return KernelText(w.text(), name, ("i8",) * 7)


def scatter_source(dtype: np.dtype, number: bool, threads: int) -> KernelText:
    """Values to places: one for all of them where `each` is 0, or a number that comes with the launch."""
    w = Writer()
    c = code(dtype)
    name = f"scatter_{'number_' * number}{c}_{threads}"
    value = f"{c}(v)" if number else f"load_{c}(v, i8(i * each))"
    w(f"def {name}(y, places, v, n, step, each, all):")
    w.depth += 1
    w(f"i = i8(i8(block_x()) * i8({threads}) + i8(thread_x()))")
    w("while i < n:")
    w(f"    store_{c}(y, i8(load_i8(places, i) * step), {value})")
    w("    i = i8(i + all)")
    kind = "i8" if not number or dtype.kind in "iu" else "f8"
    return KernelText(w.text(), name, ("i8", "i8", kind, "i8", "i8", "i8", "i8"))
