"""Random numbers on the host: compiled samplers over threads, NumPy on blocks until they are there.

There are few samplers, so each is compiled at its first use, whatever the size: in the helper
process, and from then on it comes from the disk. Both ways give the same bits (see
`arraytypes.random.lanes`), so when the kernel arrives does not show in the numbers.
"""

from __future__ import annotations

import functools
import struct
from typing import Any

import numpy as np

from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.random import filling, onblocks
from mirabelle.arraytypes.random.samplers import ATTEMPTS, Draw, Sampler, kernel_text
from mirabelle.backends.codegen.rangeframe import PARAMETERS
from mirabelle.backends.codegen.source import BLOCK, Source, Writer
from mirabelle.backends.host import kernels, threads
from mirabelle.backends.host.interpreter import quietly
from mirabelle.backends.host.run import split
from mirabelle.dispatch import counters
from mirabelle.dispatch.addresses import address_of
from mirabelle.dispatch.promotion import code
from mirabelle.dispatch.settings import settings

# What the words of `arraytypes.random.lanes` mean on single numbers.
PREAMBLE = """\
import math
import numpy as np
from numba import njit

inlined = njit(
    nogil=True, error_model="numpy", boundscheck=False, forceinline=True,
    no_cpython_wrapper=True, no_cfunc_wrapper=True,
)
sqrt = math.sqrt
floor = np.floor


@inlined
def choose(condition, x, y):
    return x if condition else y


@inlined
def some(condition):
    return condition


every = some


@inlined
def bits(x):
    return np.float64(x).view(np.uint64)


@inlined
def number(x):
    return np.uint64(x).view(np.float64)


@inlined
def bits4(x):
    return np.float32(x).view(np.uint32)


@inlined
def number4(x):
    return np.uint32(x).view(np.float32)


"""


@filling.draw.method
def _(family: type[HostArray], dest: np.ndarray, draw: Draw, starts: np.ndarray) -> None:
    rows, length = dest.shape
    if counters.active:
        counters.add(
            launches=1,
            bytes_read=sum(p.nbytes for p in draw.parameters if isinstance(p, np.ndarray)),
            bytes_written=dest.nbytes,
        )
    if not dest.size:
        return
    each = tuple([isinstance(p, np.ndarray) for p in draw.parameters])
    kernel = kernels.get(source(draw.sampler, dest.dtype, each))
    if kernel is None:
        in_pieces(dest, draw, starts)
        return
    words = [address_of(dest), length, address_of(starts), *draw.stream]
    for p, d in zip(draw.parameters, draw.sampler.parameters, strict=True):
        words.append(address_of(p) if isinstance(p, np.ndarray) else as_word(p, d))
    block = np.array(words, np.int64)
    address = address_of(block)
    if dest.size < settings.thread_size or settings.num_threads < 2:
        kernel(address, 0, rows, 0, length, 0, 1, 0)
        return
    threads.run_all([functools.partial(kernel, address, *p, 0, 1, 0) for p in split(rows, length)])


def as_word(value: Any, dtype: np.dtype) -> int:
    """A number as a word of the argument block."""
    kind = {"f": "<d", "i": "<q", "u": "<Q"}[dtype.kind]
    (word,) = struct.unpack("<q", struct.pack(kind, value))
    return int(word)


def in_pieces(dest: np.ndarray, draw: Draw, starts: np.ndarray) -> None:
    """NumPy on blocks, over threads."""
    rows, length = dest.shape
    if dest.size < settings.thread_size or settings.num_threads < 2:
        quietly(onblocks.fill, dest, draw, starts)
        return
    step = max(onblocks.BLOCK, -(-length // (8 * settings.num_threads)) // onblocks.BLOCK * onblocks.BLOCK)
    threads.run_all(
        [
            functools.partial(
                quietly,
                onblocks.fill_piece,
                dest[row, first : first + step],
                draw,
                int(starts[row]) + first,
                row * length + first,
            )
            for row in range(rows)
            for first in range(0, length, step)
        ]
    )


@functools.cache
def source(sampler: Sampler, dtype: np.dtype, each: tuple[bool, ...]) -> Source:
    """The kernel of a sampler. `each`: is a parameter an array, with a value for each element?"""
    name = "_".join(["random", sampler.name, code(dtype), "".join("an"[not e] for e in each)]).rstrip("_")
    text, functions = kernel_text()
    w = Writer()
    for f in functions:
        w(f"{f} = inlined({f})")
    w("")
    w("")
    Frame(sampler, dtype, each, w).write(name)
    return Source(f"{PREAMBLE}\n{text}\n\n\n{w.text()}", name, [])


class Frame:
    """Writes a kernel: rows [lo, hi), and of each the elements [first, last)."""

    def __init__(self, sampler: Sampler, dtype: np.dtype, each: tuple[bool, ...], w: Writer) -> None:
        self.sampler = sampler
        # An integer as a truth value is compared, anything else is converted.
        value = "{} != u8(0)" if dtype.kind == "b" else code(dtype) + "({})"
        self.itemsize = dtype.itemsize
        self.store = f"store_{code(dtype)}(y, {{}}, {value})"
        self.each = each
        self.w = w
        again, block = sampler.again, sampler.block
        self.again = again.__name__ if again is not None else ""
        self.block = block.__name__ if block is not None else ""

    def arguments(self, index: str) -> str:
        """The parameters of the element at `index` of the row, as they follow in a call."""
        values = [
            f", load_{code(d)}(p{i}, {index})" if each else f", p{i}"
            for i, (d, each) in enumerate(zip(self.sampler.parameters, self.each, strict=True))
        ]
        return "".join(values)

    def write(self, name: str) -> None:
        w, sampler = self.w, self.sampler
        w(f"def {name}({PARAMETERS}):")
        w.depth += 1
        w("length = load_i8(args, 1)")
        w("starts = load_i8(args, 2)")
        w("stream = (load_u8(args, 3), load_u8(args, 4), load_u8(args, 5), load_u8(args, 6))")
        for i, (d, each) in enumerate(zip(sampler.parameters, self.each, strict=True)):
            w(f"{'q' if each else 'p'}{i} = load_{'i8' if each else code(d)}(args, {7 + i})")
        w("flags = scratch_8(0)")
        w("for row in range(lo, hi):")
        w.depth += 1
        w("start = load_i8(starts, row)")
        w(f"y = load_i8(args, 0) + row * length * {self.itemsize}")
        for i, (d, each) in enumerate(zip(sampler.parameters, self.each, strict=True)):
            if each:
                w(f"p{i} = q{i} + row * length * {d.itemsize}")
        w(f"for b in range(first, last, {BLOCK}):")
        w.depth += 1
        w(f"m = min(last - b, {BLOCK})")
        if self.block:
            self.blocks()
        else:
            self.proposals()
        w.depth -= 3

    def proposals(self) -> None:
        """A first proposal for every element, in a loop that compiles to vector code; then the rest."""
        w = self.w
        w("refused = 0")
        w("for j in range(m):")
        w(f"    accepted, x = {self.again}(u8(start + b + j), u8(0), stream{self.arguments('b + j')})")
        w("    " + self.store.format("b + j", "x"))
        w("    put_i8(flags, j, i8(accepted))")
        w("    refused += 1 - i8(accepted)")
        w("if refused > 0:")
        w("    for j in range(m):")
        w("        if get_i8(flags, j) == 0:")
        w.depth += 3
        self.retry("b + j", 1)
        w.depth -= 3

    def retry(self, index: str, attempt: int) -> None:
        w = self.w
        w(f"attempt = u8({attempt})")
        w(f"accepted, x = {self.again}(u8(start + {index}), attempt, stream{self.arguments(index)})")
        w(f"while not accepted and attempt < u8({ATTEMPTS - 1}):")
        w("    attempt += u8(1)")
        w(f"    accepted, x = {self.again}(u8(start + {index}), attempt, stream{self.arguments(index)})")
        w(self.store.format(index, "x"))

    def blocks(self) -> None:
        """Whole blocks of words in a loop that compiles to vector code; the ends one by one."""
        w, lanes = self.w, self.sampler.lanes
        values = [f"x{k}" for k in range(lanes)]
        accepted = [f"a{k}" for k in range(lanes)] if self.again else []
        call = f"{', '.join(accepted + values)} = {self.block}(u8({{}}), stream{self.arguments('0')})"
        w(f"low = (start + b + {lanes - 1}) // {lanes}")
        w(f"high = max((start + b + m) // {lanes}, low)")
        w(f"head = min(low * {lanes} - start, b + m)")
        w(f"tail = max(high * {lanes} - start, head)")
        if accepted:
            w("refused = 0")
        w("for i in range(low, high):")
        w.depth += 1
        w(call.format("i"))
        for k in range(lanes):
            w(self.store.format(f"i * {lanes} + {k} - start", values[k]))
        if accepted:
            w(f"refused += {' + '.join(f'(1 - i8({a}))' for a in accepted)}")
        w.depth -= 1
        if accepted:
            w("if refused > 0:")
            w("    for i in range(low, high):")
            w.depth += 2
            w(call.format("i"))
            for k in range(lanes):
                w(f"if not {accepted[k]}:")
                w.depth += 1
                self.retry(f"i * {lanes} + {k} - start", 1)
                w.depth -= 1
            w.depth -= 2
        for a, b in (("b", "head"), ("tail", "b + m")):
            w(f"for j in range({a}, {b}):")
            w.depth += 1
            w(call.format(f"(start + j) // {lanes}"))
            w(f"k = (start + j) % {lanes}")
            for kind in (accepted, values):
                if kind:
                    chain = kind[-1]
                    for k in reversed(range(lanes - 1)):
                        chain = f"choose(k == {k}, {kind[k]}, {chain})"
                    w(f"{'accepted' if kind is accepted else 'x'} = {chain}")
            w(self.store.format("j", "x"))
            if accepted:
                w("if not accepted:")
                w.depth += 1
                self.retry("j", 1)
                w.depth -= 1
            w.depth -= 1
