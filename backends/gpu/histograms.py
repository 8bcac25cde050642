"""Histograms of equal bins on a card: one pass over the data, without a sort and without a search.

The bin of an element is worked out by NumPy's own rule: a guess from the distance to the first edge,
put right by comparing with the edges beside it. A block of one warp keeps the bins in shared memory.
What its threads add at once is brought together first: the first thread of a bin adds what all have
for it, in their order. So no atomic operation is needed, sums of weights are the same on every run,
and elements that all fall into one bin take no longer than others. The blocks' bins are added up last.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.gpu import GPUArray
from mirabelle.backends.codegen.element import KernelText
from mirabelle.backends.codegen.source import Writer
from mirabelle.backends.gpu.library import by_arrays
from mirabelle.dispatch import counters, verbs
from mirabelle.dispatch.promotion import code
from mirabelle.dispatch.tree import Leaf

# Threads of a block: one warp of most cards.
THREADS = 32
# The bins that shared memory holds without a limit on how many blocks are at work that matters.
MOST_BINS = 4096
# The most blocks, and the fewest elements of one.
BLOCKS, SHARE = 2048, 16 * THREADS
# On a simulated card, whose threads Python runs one by one, larger histograms are NumPy's.
SIMULATED = 1 << 10


@library.routine(GPUArray, "histogram")
def histogram(
    x: Any, *, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Any, Any]:
    """Equal bins over a range are counted here; all else is worked out by the library's routines."""
    count = _equal_bins(x, bins, range, density, weights)
    if count is None:
        return by_arrays(type(x).family, "histogram")(
            x, bins=bins, range=range, density=density, weights=weights
        )
    family = type(x).family
    edges = np.histogram_bin_edges(np.zeros(1, x.dtype), bins=count, range=range)
    placed = family._upload(edges)
    return _counted(_flat(x), placed, edges, None if weights is None else _flat(weights)), placed


def _equal_bins(x: Any, bins: Any, span: Any, density: Any, weights: Any) -> int | None:
    """How many bins there are, if they are equal and all is simple; else None."""
    if span is None or density or isinstance(bins, str) or np.ndim(bins) != 0 or x.size == 0:
        return None
    try:
        count = operator.index(bins)
    except TypeError:
        return None
    if not 0 < count <= MOST_BINS or x.size >= 1 << 31 or not _summed(x.dtype, floats="fd"):
        return None
    if weights is not None and (
        getattr(weights, "family", None) is not type(x).family
        or weights.shape != x.shape
        or not _summed(weights.dtype, floats="fd")
    ):
        return None
    driver = type(x).family.driver()
    return None if driver.simulated and x.size > SIMULATED else count


def _summed(dtype: np.dtype, floats: str) -> bool:
    return dtype.char in floats or (dtype.kind in "iu" and dtype != np.uint64)


def _flat(view: Any) -> Any:
    """The elements in a row, in C's order."""
    if not view.contiguous:
        family = type(view).family
        packed = family._empty(view.shape, view.dtype)
        family._copy_into(packed, view)
        view = packed
    return view.reshape((view.size,))


def _counted(x: Any, placed: Any, edges: np.ndarray, weights: Any) -> Any:
    """What falls into each bin: how many, or the sum of their weights."""
    family = type(x).family
    count, n = edges.size - 1, x.size
    if weights is None:
        result: Any = np.dtype(np.int64)
        held: Any = np.dtype(np.int32)
    else:
        result = weights.dtype
        held = np.dtype(np.float64 if result.kind == "f" else np.int64)
    share = max(SHARE, count, -(-n // BLOCKS))
    blocks = -(-n // share)
    parts = family._empty((blocks, count), held)
    first, last = edges[0], edges[-1]
    limits: tuple[Any, Any] = (float(first), float(last))
    if x.dtype.kind != "f":
        limits = (_whole(np.ceil(first)), _whole(np.floor(last)))
    run = _launcher(family.driver(), x.dtype, edges.dtype, None if weights is None else result, count, blocks)
    if counters.active:
        counters.add(launches=1)
    with np.errstate(over="ignore"):
        extent = float(last - first)
    run(
        parts.ptr, x.ptr, placed.ptr, 0 if weights is None else weights.ptr, n, share, count, *limits,
        float(first), extent,
    )  # fmt: skip
    summed = verbs.sum(
        wrap(family, Leaf(parts)), axis=0, dtype=np.dtype(np.int64) if held.kind == "i" else held
    )
    if result != summed.dtype:
        summed = verbs.astype(summed, result)
    return verbs.leaf_of(summed).view


def _whole(value: Any) -> int:
    return int(min(max(float(value), -(2.0**63)), 2.0**63 - 1024))


@functools.lru_cache(maxsize=256)
def _launcher(
    driver: Any, dtype: np.dtype, edge: np.dtype, weight: np.dtype | None, count: int, blocks: int
) -> Any:
    table = THREADS
    while table < count:
        table *= 2
    text = histogram_source(dtype, edge, weight, table)
    return driver.launcher(driver.load(text, {}), text.codes, (blocks, 1, 1), (THREADS, 1, 1), ())


def histogram_source(dtype: np.dtype, edge: np.dtype, weight: np.dtype | None, table: int) -> KernelText:
    """The source of a histogram over bins of which a block holds up to `table`.

    Parameters: the addresses of the blocks' bins, of the data, the edges and the weights; how many
    elements there are, how many a block takes, and how many bins; the least and the greatest element
    that counts; the first edge, and how far the last one is from it.
    """
    x, e = code(dtype), code(edge)
    held = "i4" if weight is None else "f8" if weight.kind == "f" else "i8"
    limit = e if dtype.kind == "f" else "i8"
    cast = str if dtype.kind == "f" else "i8({})".format
    name = f"histogram_{x}_{e}_{code(weight) if weight is not None else 'counts'}_{table}"
    names = ["y", "x", "edges", "w", "n", "share", "bins", "least", "most", "first", "extent"]
    weighted = weight is not None
    w = Writer()
    w(f"def {name}({', '.join(names)}):")
    w.depth += 1
    w("tx = i4(thread_x())")
    w(f"found = cuda.shared.array({table}, {held})")
    w(f"places = cuda.shared.array({THREADS}, i4)")
    if weighted:
        w(f"parts = cuda.shared.array({THREADS}, {held})")
    w("k = i4(tx)")
    w("while k < bins:")
    w(f"    found[u4(k)] = {held}(0)")
    w(f"    k = i4(k + i4({THREADS}))")
    w("at = i8(i8(block_x()) * share)")
    w("end = i8(min(n, at + share))")
    w("final = i8(n - i8(1))")
    w("ahead = i8(min(i8(at + tx), final))")
    w(f"v = {cast(f'load_{x}(x, ahead)')}")
    if weight is not None:
        w(f"u = {held}(load_{code(weight)}(w, ahead))")
    w("while at < end:")
    w.depth += 1
    w("place = i4(-1)")
    w("if i8(at + tx) < end and v >= least and v <= most:")
    w.depth += 1
    w(f"t = {e}(v)")
    w(f"place = i4(divide_{e}({e}(t - first), extent) * {e}(bins))")
    w("place = i4(max(i4(0), min(place, i4(bins - i8(1)))))")
    w(f"if t < load_{e}(edges, i8(place)):")
    w("    place = i4(max(i4(0), i4(place - i4(1))))")
    w(f"if t >= load_{e}(edges, i8(place + i4(1))) and place < bins - i8(1):")
    w("    place = i4(place + i4(1))")
    w.depth -= 1
    w("places[u4(tx)] = place")
    if weighted:
        w("parts[u4(tx)] = u")
    # The next elements are on their way while these are added.
    w(f"at = i8(at + i8({THREADS}))")
    w("ahead = i8(min(i8(at + tx), final))")
    w(f"v = {cast(f'load_{x}(x, ahead)')}")
    if weight is not None:
        w(f"u = {held}(load_{code(weight)}(w, ahead))")
    w("barrier()")
    w("if place >= i4(0):")
    w.depth += 1
    w(f"sum = {held}(0)")
    w("leads = True")
    w("k = i4(0)")
    w(f"while k < i4({THREADS}):")
    w.depth += 1
    w("if places[u4(k)] == place:")
    w("    leads = leads and k >= tx")
    w(f"    sum = {held}(sum + {'parts[u4(k)]' if weighted else 'i4(1)'})")
    w("k = i4(k + i4(1))")
    w.depth -= 1
    w("if leads:")
    w(f"    found[u4(place)] = {held}(found[u4(place)] + sum)")
    w.depth -= 2
    w("    barrier()")
    w("k = i4(tx)")
    w("while k < bins:")
    w(f"    store_{held}(y, i8(i8(block_x()) * bins + k), found[u4(k)])")
    w(f"    k = i4(k + i4({THREADS}))")
    return KernelText(w.text(), name, ("i8",) * 7 + (limit, limit, e, e))
