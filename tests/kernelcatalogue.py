"""Kernels for cards: the texts that a representative run generates, and what assemblers say of them.

`kernels()` runs programs on a simulated card that mostly launches nothing, and keeps each kernel's text:
every dtype in every frame, lanes, gathers, scatters, users' functions, reductions of every plan,
scalars of each dtype, scans, random numbers, kernels of users. Each is compiled to PTX for a
generation of cards and assembled, which tells its registers and whether they spill.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import operator
import re
import subprocess
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from gpukernels import assembler

import mirabelle as mb
from mirabelle.backends.codegen.element import KernelText
from mirabelle.backends.gpu import operations as device_operations
from mirabelle.backends.gpu.simulator import SimulatedDriver

# One generation of cards each: Turing, Ampere, Hopper, Blackwell.
CAPABILITIES = ((7, 5), (8, 0), (9, 0), (10, 0))
DTYPES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")


@dataclass(frozen=True)
class Kernel:
    """A kernel's text, and where it came from."""

    program: str
    source: KernelText
    functions: tuple[tuple[str, Any], ...] = ()
    contract: bool = False

    @property
    def key(self) -> str:
        """A name that tells texts apart, the same on every machine."""
        said = f"{self.source.text}{self.source.codes}{self.source.threads}{self.contract}"
        return hashlib.sha256(said.encode()).hexdigest()[:12]


class Recording:
    """Keeps the kernels that a card is asked to load; the first program that needs one names it."""

    def __init__(self) -> None:
        self.kernels: dict[str, Kernel] = {}
        self.program = ""

    def keep(self, source: KernelText, functions: dict[str, Any], contract: bool) -> None:
        kernel = Kernel(self.program, source, tuple(functions.items()), contract)
        self.kernels.setdefault(kernel.key, kernel)


@contextlib.contextmanager
def recording():
    """Keep what simulated cards load."""
    kept = Recording()
    load = SimulatedDriver.load

    def noting(self, source, functions, contract=False):
        kept.keep(source, functions, contract)
        return load(self, source, functions, contract)

    SimulatedDriver.load = noting
    try:
        yield kept
    finally:
        SimulatedDriver.load = load


class Idle(SimulatedDriver):
    """A simulated card that keeps what it loads, and runs it or does not."""

    cards: dict[int, Any] = {}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()
        self.kept = Recording()
        self.runs = True

    def load(self, source, functions, contract=False):
        self.kept.keep(source, functions, contract)
        return super().load(source, functions, contract)

    def launcher(self, kernel, codes, grid, block, fixed):
        run = super().launcher(kernel, codes, grid, block, fixed)
        return lambda *values: run(*values) if self.runs else None


# Programs

# A card of its own: plans that are made here are nobody else's, and those of others are not found here.
CARD = mb.CuArray.on(63)
CARD._made_driver = Idle()


def array(dtype, *shape):
    return CARD(np.zeros(shape, dtype))


def whole(x):
    """Have it computed."""
    mb.materialize(x)


def elementwise():
    for d in DTYPES:
        x, y, m = array(d, 64), array(d, 64), array(d, 8, 64)
        number = d[0] in "iufc"
        yield f"flat {d}", lambda x=x, y=y: whole(x + y)
        yield f"stretched {d}", lambda x=x, m=m: whole(m * x[:1] + x)
        yield f"strided {d}", lambda x=x, y=y: whole(x[::2] * y[::-2])
        yield f"odd start {d}", lambda x=x, y=y: whole(x[1:] + y[:-1])
        yield f"rows {d}", lambda m=m: whole(m[:, 1:] * m[:, :-1])
        yield f"rows by vectors {d}", lambda d=d: whole(array(d, 8, 96)[:, :64] + array(d, 8, 64))
        yield f"three dimensions {d}", lambda d=d: whole(array(d, 4, 6, 8)[:, 1:5, 2:] * array(d, 4, 1, 6))
        yield f"tiles {d}", lambda d=d: whole(array(d, 64, 48).T + array(d, 48, 64))
        yield (
            f"tiles of three {d}",
            lambda d=d: whole(array(d, 3, 64, 48).transpose(0, 2, 1) * array(d, 3, 48, 64)),
        )
        yield f"choice {d}", lambda x=x, y=y: whole(mb.where(x == y, x, y))
        yield f"written {d}", lambda x=x, y=y: operator.setitem(x, slice(1, 9), y[3:11])
        if number:
            yield f"long {d}", lambda x=x, y=y: whole(x * y + x * x - (y * 3 - x) * (x + 1) + y)
        for other in DTYPES:
            if other != d:
                yield f"{d} as {other}", lambda x=x, other=other: whole(x.astype(other))


def operations():
    """Every operation at every dtype it has a function for."""
    for name, c, ins, _ in device_operations.names():
        f, xs = getattr(mb, name, None), [array(i, 64) for i in ins]
        if f is not None:
            yield f"{name} {c}", lambda f=f, xs=xs: every(f(*xs))


def every(result):
    for x in result if isinstance(result, tuple) else (result,):
        whole(x)


def scalars():
    for d in DTYPES:
        value = np.dtype(d).type(1)
        for e in ("f8", "i4", "c8"):
            yield f"scalar {d} with {e}", lambda value=value, e=e: whole(array(e, 64) * value + value)
    for value in (True, 2, 2.5, 1 + 2j):
        for d in ("i8", "u1", "f2", "f4"):
            yield f"{value} with {d}", lambda value=value, d=d: whole(array(d, 64) * value)


def gathers():
    """Indices are checked before a kernel runs: these programs are run."""
    for d in ("b1", "i2", "i8", "f4", "f8", "c16"):
        x, m = array(d, 40), array(d, 9, 12)
        picked, mask = CARD(np.array([3, 1, 2, 0])), CARD(np.arange(40) % 3 == 0)
        yield f"gather {d}", lambda x=x: whole(x[picked] * x[picked + 1])
        yield f"gather of rows {d}", lambda m=m: whole(m[picked] + m[[0]])
        yield f"gather of columns {d}", lambda m=m: whole(m[:, picked])
        yield f"gather of both {d}", lambda m=m: whole(m[picked, picked])
        yield f"mask {d}", lambda x=x: whole(x[mask])
        yield f"write where {d}", lambda x=x: operator.setitem(x, mask, 1)
        yield f"scatter {d}", lambda x=x: operator.setitem(x, picked[1:], x[:3])
        yield f"scatter of rows {d}", lambda m=m: operator.setitem(m, picked[1:], m[:3] * 2)
        yield f"take along {d}", lambda m=m: whole(mb.take_along_axis(m, CARD(np.zeros((9, 2), int)), axis=1))
        yield f"gather summed {d}", lambda x=x: whole(mb.sum(x[picked]))
        if d in ("i8", "f4", "f8"):
            yield f"add at {d}", lambda x=x: mb.add_at(x, picked, 1)


def users():
    """Functions of users, compiled by Numba."""
    x, y = array("f8", 64), array("f4", 64)
    limit = 1.5
    yield "user", lambda: whole(mb.broadcast(lambda t: t if t < limit else limit, x) * 2)
    yield "user at single precision", lambda: whole(mb.broadcast(lambda t, u: t * u + 1, y, y))
    yield "user of two results", lambda: every(mb.broadcast(lambda t: (t - 1, t + 1), x))
    yield "user with a loop", lambda: whole(mb.broadcast(newton, x))
    yield "user reduced", lambda: whole(mb.mapreduce(lambda t: t * t, mb.add, x))
    yield (
        "user combines",
        lambda: whole(mb.mapreduce(lambda t: t, lambda a, b: a if a > b else b, x, init=-1.0)),
    )


def newton(a):
    x = 1.0
    for _ in range(8):
        x = (x + a / x) / 2
    return x


def ranges():
    n = 5000
    x, m = array("f8", n), array("f8", 3, n)
    for d in ("i4", "i8", "f4", "f8"):
        r = mb.Range(n, dtype=np.dtype(d), device=CARD)
        yield f"a range {d}", lambda r=r: whole(mb.sqrt(r))
        yield f"beside memory {d}", lambda r=r: whole(x * r + x[:1])
        yield f"along rows {d}", lambda r=r: whole(m + r)
        yield f"turned {d}", lambda r=r: whole((m.T * r[:, None]).T)
        yield f"sum of a range {d}", lambda r=r: whole(mb.sum(r % 7))
        yield f"sums beside memory {d}", lambda r=r: whole(mb.sum(m * r, axis=1))
        yield f"sums of columns {d}", lambda r=r: whole(mb.sum(m * r, axis=0))


def reductions():
    for d in DTYPES:
        x, m, t = array(d, 700), array(d, 24, 40), array(d, 5, 24, 40)
        names = ["any", "all", "sum", "max"] if d[0] != "c" else ["sum", "prod"]
        if d in ("i4", "f4", "f8", "u8"):
            names += ["prod", "min", "argmax", "mean"]
        for name in names:
            f = getattr(mb, name)
            yield f"{name} of all {d}", lambda f=f, x=x: whole(f(x))
            yield f"{name} of rows {d}", lambda f=f, m=m: whole(f(m, axis=1))
            yield f"{name} of columns {d}", lambda f=f, m=m: whole(f(m, axis=0))
        yield f"sum of an outer and an inner {d}", lambda t=t: whole(mb.sum(t, axis=(0, 2)))
        yield f"sum of the middle {d}", lambda t=t: whole(mb.sum(t, axis=1))
        yield (
            f"sum of a tree {d}",
            lambda x=x: whole(mb.sum(mb.abs(x - x[:1] * 2) if x.dtype != bool else x & x)),
        )
        yield f"sum in parts {d}", lambda d=d: whole(mb.sum(array(d, 1 << 20)))
        yield f"sum of strided {d}", lambda x=x: whole(mb.sum(x[::3]))
        yield f"sum turned {d}", lambda m=m: whole(mb.sum(m.T * 2, axis=0))
    x = array("f8", 5000)
    yield "several at once", lambda: together(x)
    yield "stored beside", lambda: stored(x)
    yield "variance", lambda: whole(mb.var(x))


def together(x):
    d = mb.abs(x - 3)
    a, b, c = mb.sum(d), mb.max(d), mb.min(d)
    every((a, b, c))


def stored(x):
    y = mb.exp(x) * mb.sin(x)
    whole(mb.sum(y))
    whole(y + 1)


def functions():
    """What is neither a tree nor the library's: scans, random numbers, products of other types."""
    for d in ("i4", "i8", "f4", "f8", "c8"):
        yield f"scan {d}", lambda d=d: whole(mb.cumulative_sum(array(d, 5000)))
        yield f"scan of columns {d}", lambda d=d: whole(mb.cumulative_sum(array(d, 90, 70), axis=0))
        yield f"scan of rows {d}", lambda d=d: whole(mb.cumulative_prod(array(d, 90, 70), axis=1))
    for d in ("i4", "u1", "b1", "i8"):
        yield f"product {d}", lambda d=d: whole(array(d, 33, 40) @ array(d, 40, 35))
        yield f"product with a vector {d}", lambda d=d: whole(array(d, 33, 40) @ array(d, 40))
    rng = mb.random.default_rng(1, device=CARD)
    yield "random", lambda: whole(rng.random(100))
    yield "normal", lambda: whole(rng.normal(size=100))
    yield "integers", lambda: whole(rng.integers(0, 9, size=100))
    yield "exponential", lambda: whole(rng.exponential(size=100))


def kernels_of_users():
    x, y, m = array("f8", 64), array("f8", 64), array("f4", 33, 20)
    counts = array("i4", 8)
    yield "saxpy", lambda: saxpy[x.shape](y, 2.0, x)
    yield "stencil", lambda: stencil[m.shape](m, array("f4", 33, 20))
    yield "histogram", lambda: histogram[x.shape](counts, x)
    yield "block sums", lambda: block_sums[(64,), (32,)](y, x)


@mb.kernel
def saxpy(k, y, a, x):
    i = k.index(0)
    y[i] = a * x[i] + y[i]


@mb.kernel
def stencil(k, out, x):
    i, j = k.index(0), k.index(1)
    if 0 < i < x.shape[0] - 1 and 0 < j < x.shape[1] - 1:
        out[i, j] = x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1] - 4 * x[i, j]


@mb.kernel
def histogram(k, counts, x):
    i = k.index(0)
    k.atomic_add(counts, int(x[i]) % 8, 1)


@mb.kernel
def block_sums(k, out, x):
    part = k.shared(32, mb.float64)
    i, t = k.index(0), k.local(0)
    part[t] = x[i] if i < x.shape[0] else 0.0
    k.barrier()
    if t == 0:
        total = 0.0
        for n in range(32):
            total += part[n]
        out[k.group(0)] = total


# Programs whose results decide what is loaded next: they are run, on small arrays.
RUN = (gathers,)
IDLE = (elementwise, operations, scalars, users, ranges, reductions, functions, kernels_of_users)


@functools.cache
def kernels() -> tuple[list[Kernel], dict[str, str]]:
    """Every kernel the programs generate; and the programs that were refused, with the reason."""
    refused: dict[str, str] = {}
    driver = CARD.driver()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # (complex numbers made real, and divisions by zero)
        for chapters, driver.runs in ((RUN, True), (IDLE, False)):
            for name, program in itertools.chain(*(chapter() for chapter in chapters)):
                driver.kept.program = name
                try:
                    program()
                except Exception as e:
                    refused[name] = f"{type(e).__name__}: {str(e).splitlines()[0][:200] if str(e) else ''}"
    return list(driver.kept.kernels.values()), refused


# Compilers


def ptx_of(kernel: Kernel, capability: tuple[int, int]) -> str:
    """The PTX of a kernel for a generation of cards."""
    from mirabelle.backends.gpu import compiler

    return compiler.ptx_of(kernel.source, dict(kernel.functions), capability, kernel.contract)[0]


@dataclass(frozen=True)
class Resources:
    """What a thread takes: registers, and bytes of memory of its own, spilled registers among them."""

    registers: int
    spills: int
    stack: int
    shared: int


def assembled(ptx: str, directory: Any, capability: tuple[int, int]) -> Resources:
    """What NVIDIA's assembler says of PTX."""
    file = directory / "kernel.ptx"
    file.write_text(ptx)
    arch = "sm_{}{}".format(*capability)
    command = [assembler(), f"-arch={arch}", "-v", str(file), "-o", str(directory / "kernel.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    said = done.stderr

    def number(pattern):
        return sum(map(int, re.findall(pattern, said)))

    return Resources(
        number(r"Used (\d+) registers"),
        number(r"(\d+) bytes spill (?:stores|loads)"),
        number(r"(\d+) bytes stack frame"),
        number(r"(\d+) bytes smem"),
    )
