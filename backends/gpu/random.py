"""Random numbers on a graphics card: the samplers' text as a kernel, the host's bits.

A thread makes the values of one block of words, and goes on proposing where one is refused. What
samplers are written in (`arraytypes.random.lanes`) is exactly rounded on every card, because
nothing is contracted to fused multiply-adds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.gpu import GPUArray, GPUView
from mirabelle.arraytypes.random import filling, onblocks
from mirabelle.arraytypes.random.samplers import ATTEMPTS, Draw, Sampler
from mirabelle.backends.codegen.element import KernelText
from mirabelle.backends.codegen.source import Writer
from mirabelle.backends.gpu.samplertext import DEVICE, needed
from mirabelle.backends.host.interpreter import quietly
from mirabelle.dispatch import counters
from mirabelle.dispatch.promotion import code

# Threads of a block.
THREADS = 256

# How a thread finds its row: there is one; rows begin at equal distances in the whole; or the places
# where they begin are listed on the card.
ONE, SERIES, LISTED = "one", "series", "listed"


@filling.draw.method
def _(family: type[GPUArray], dest: Any, draw: Draw, starts: np.ndarray) -> None:
    if counters.active:
        counters.add(
            launches=1,
            bytes_read=sum(p.nbytes for p in draw.parameters if isinstance(p, GPUView)),
            bytes_written=dest.nbytes,
        )
    if not dest.size:
        return
    driver = family.driver()
    if driver.simulated:  # the same bits, which Python would make one by one
        here = tuple([driver.array(p) if isinstance(p, GPUView) else p for p in draw.parameters])
        quietly(onblocks.fill, driver.array(dest), Draw(draw.sampler, draw.stream, here), starts)
        return
    fill_by_kernel(driver, dest, draw, starts)


def fill_by_kernel(driver: Any, dest: Any, draw: Draw, starts: np.ndarray) -> None:
    """One launch."""
    rows, length = dest.shape
    sampler = draw.sampler
    lanes = sampler.lanes
    each = tuple([isinstance(p, GPUView) for p in draw.parameters])
    values = [p.ptr if isinstance(p, GPUView) else p for p in draw.parameters]
    first = int(starts[0])
    if rows == 1:
        whole = first % lanes == 0 and dest.ptr % min(16, lanes * dest.itemsize) == 0
        run = _launcher(driver, sampler, dest.dtype, each, ONE, lanes > 1 and whole, 1, length)
        run(dest.ptr, *draw.stream, *values, first // lanes, first % lanes)
        return
    steps = np.diff(starts)
    if (steps == steps[0]).all():
        run = _launcher(driver, sampler, dest.dtype, each, SERIES, False, rows, length)
        run(dest.ptr, *draw.stream, *values, first, int(steps[0]))
        return
    # The list is kept until the launch is queued; memory that is given back is used again behind it.
    _owner, listed = driver.allocate(starts.nbytes)
    driver.upload(listed, starts)
    run = _launcher(driver, sampler, dest.dtype, each, LISTED, False, rows, length)
    run(dest.ptr, *draw.stream, *values, listed, 0)


@functools.lru_cache(maxsize=256)
def _launcher(
    driver: Any,
    sampler: Sampler,
    dtype: np.dtype,
    each: tuple[bool, ...],
    rowwise: str,
    vectors: bool,
    rows: int,
    length: int,
) -> Callable[..., None]:
    """The launch for a result of this shape, as a function of addresses, stream and parameters."""
    text = source(sampler, dtype, each, rowwise, vectors)
    # A row of words' blocks begins and ends anywhere in one.
    across = (length + 2 * (sampler.lanes - 1)) // sampler.lanes
    grid = (math.ceil(rows * across / THREADS), 1, 1)
    kernel = driver.load(text, {})
    return driver.launcher(kernel, text.codes, grid, (THREADS, 1, 1), (rows, length, across))  # type: ignore[no-any-return]


@functools.cache
def source(
    sampler: Sampler, dtype: np.dtype, each: tuple[bool, ...], rowwise: str, vectors: bool
) -> KernelText:
    """The kernel of a sampler. `each`: is a parameter an array, with a value for each element?"""
    stem = ["random", sampler.name, code(dtype), "".join("an"[not e] for e in each), rowwise, "v" * vectors]
    name = "_".join(part for part in stem if part)
    frame = _Frame(sampler, dtype, each, Writer())
    frame.write(name, rowwise, vectors)
    text = needed(*[f.__name__ for f in (sampler.block, sampler.again) if f is not None])
    return KernelText(f"{text}\n\n{frame.w.text()}", name, frame.codes)


class _Frame:
    """Writes a kernel.

    Parameters: the address of the result, the words of the stream, the sampler's parameters, where
    rows begin (as `rowwise` says), rows, their length, and how many blocks of words a row takes.
    """

    def __init__(self, sampler: Sampler, dtype: np.dtype, each: tuple[bool, ...], w: Writer) -> None:
        self.sampler = sampler
        self.code = code(dtype)
        self.itemsize = dtype.itemsize
        # An integer as a truth value is compared, anything else is converted.
        self.value = "{} != u8(0)" if dtype.kind == "b" else f"{self.code}({{}})"
        self.parameters = list(zip(sampler.parameters, each, strict=True))
        given = ["i8" if e else code(d) for d, e in self.parameters]
        self.codes = ("i8", "u8", "u8", "u8", "u8", *given, "i8", "i8", "i8", "i8", "i8")
        self.w = w

    def write(self, name: str, rowwise: str, vectors: bool) -> None:
        w, sampler = self.w, self.sampler
        if sampler.again is not None:
            self.retried()
        given = "".join(f"q{i}, " for i in range(len(self.parameters)))
        w(f"def {name}(y, k0, k1, c2, c3, {given}begin, more, rows, length, across):")
        w.depth += 1
        w("stream = (u8(k0), u8(k1), u8(c2), u8(c3))")
        for i, (d, each) in enumerate(self.parameters):
            w(f"p{i} = q{i}" if each else f"p{i} = {code(d)}(q{i})")
        w(f"t = i8(i8(block_x()) * i8({THREADS}) + i8(thread_x()))")
        lanes = sampler.lanes
        if rowwise == ONE:
            # `begin` is the first block of words, `more` how many of its elements are left out.
            w("place = i8(begin + t)")
            w(f"j = i8(t * i8({lanes}) - more)")
            w("if j < length:")
        else:
            w("row = div_i8(t, across)")
            w("if row < rows:")
            w.depth += 1
            w("start = load_i8(begin, row)" if rowwise == LISTED else "start = i8(begin + row * more)")
            w(f"place = i8(div_i8(start, i8({lanes})) + t - row * across)")
            w(f"j = i8(place * i8({lanes}) - start)")
            w(f"y = i8(y + row * length * i8({self.itemsize}))")
            for i, (d, each) in enumerate(self.parameters):
                if each:
                    w(f"p{i} = i8(p{i} + row * length * i8({d.itemsize}))")
            w("if j < length:")
        w.depth += 1
        if sampler.block is None:
            w(f"x = retried(u8(place), u8(0), stream{self.arguments('j')})")
            w(f"store_{self.code}(y, j, {self.value.format('x')})")
        else:
            self.block(vectors)
        w.depth = 0

    def arguments(self, index: str) -> str:
        """The parameters of the element at `index` of the row, as they follow in a call."""
        return "".join(
            f", load_{code(d)}(p{i}, {index})" if each else f", p{i}"
            for i, (d, each) in enumerate(self.parameters)
        )

    def retried(self) -> None:
        """The function that proposes for one element, from an attempt on."""
        w = self.w
        assert self.sampler.again is not None
        given = "".join(f", p{i}" for i in range(len(self.parameters)))
        call = f"accepted, x = {self.sampler.again.__name__}(index, attempt, stream{given})"
        w(DEVICE)
        w(f"def retried(index, attempt, stream{given}):")
        w.depth += 1
        w(call)
        w(f"while not accepted and attempt < u8({ATTEMPTS - 1}):")
        w("    attempt = u8(attempt + u8(1))")
        w(f"    {call}")
        w("return x")
        w.depth -= 1
        w("")
        w("")

    def block(self, vectors: bool) -> None:
        """The values of one block of words, some of which may lie outside of the row."""
        w, sampler, lanes = self.w, self.sampler, self.sampler.lanes
        assert sampler.block is not None
        values = [f"x{k}" for k in range(lanes)]
        accepted = [f"a{k}" for k in range(lanes)] if sampler.again is not None else []
        call = f"{sampler.block.__name__}(u8(place), stream{self.arguments('j')})"
        w(f"{', '.join(accepted + values)} = {call}")
        if accepted:
            w(f"if not ({' & '.join(accepted)}):")
            w.depth += 1
            for k in range(lanes):
                w(f"if not {accepted[k]}:")
                index = f"u8(place * i8({lanes}) + i8({k}))"
                w(f"    x{k} = retried({index}, u8(1), stream{self.arguments('j')})")
            w.depth -= 1
        if vectors:
            w(f"if j + i8({lanes}) <= length:")
            together = ", ".join(self.value.format(x) for x in values)
            w(f"    store{lanes}_{self.code}(y, j, ({together}))")
            w("else:")
            w.depth += 1
        for k, x in enumerate(values):
            # (Only a row's first block begins before the row.)
            inside = f"j + i8({k}) < length" if vectors else f"j + i8({k}) >= i8(0) and j + i8({k}) < length"
            w(f"if {inside}:")
            w(f"    store_{self.code}(y, i8(j + i8({k})), {self.value.format(x)})")
        if vectors:
            w.depth -= 1
