"""What one statement on 1024 elements costs the host, in microseconds."""

from __future__ import annotations

import gc
import statistics
import time
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._table import show
from benchmarks.gpu._card import Card
from benchmarks.gpu._libraries import agree, jax_on, to_numpy, torch_on
from benchmarks.gpu._record import Record, Recorder

SOFT_LIMIT_S, HARD_LIMIT_S = 30.0, 90.0
ELEMENTS = 1024
ROUNDS, ROUND_S = 15, 0.02
TARGET_US = 6.0
METHOD = (
    "Wall clock of a loop over many statements, without a wait in between and with one at the end. The "
    "contenders take turns; `best_us` is the quickest round, `median_us` that in the middle."
)

RAW = r"""
extern "C" __global__ void axpy(const double* x, const double* y, const double* c, double* z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = x[i] * y[i] + c[i];
}
"""

# A statement, what it refers to, and where its result is afterwards (a name or an expression).
Statement = tuple[str, dict[str, Any], str]


class Arrays:
    """x, y and c of 1024 doubles, and the values that statements must give."""

    def __init__(self, card: Card) -> None:
        self.card = card
        self.n = 64 if card.tiny else ELEMENTS
        self.x, self.y, self.c = (card.random((self.n,)) for _ in range(3))
        x, y, c = map(to_numpy, (self.x, self.y, self.c))
        self.product, self.sum = x * y + c, x + y

    def ours(self) -> dict[str, Any]:
        import mirabelle as mb

        card = self.card
        z = card.ours(card.poison((self.n,), np.float64))
        return {"x": card.ours(self.x), "y": card.ours(self.y), "c": card.ours(self.c), "z": z, "mb": mb}

    def theirs(self) -> dict[str, Any]:
        cupy = self.card.need()
        return {"x": self.x, "y": self.y, "c": self.c, "z": cupy.full_like(self.x, np.nan), "cupy": cupy}


def our_statement(a: Arrays) -> Statement:
    return "z[...] = x*y + c", a.ours(), "z"


def our_statement_with_number(a: Arrays) -> Statement:
    return "z[...] = x*y + c - 0.0", a.ours(), "z"


def our_result(a: Arrays) -> Statement:
    scope = a.ours()
    return "force(x*y + c)", scope | {"force": scope["mb"].materialize}, "force(x*y + c)"


def our_sum(a: Arrays) -> Statement:
    scope = a.ours()
    return "force(x + y)", scope | {"force": scope["mb"].materialize}, "force(x + y)"


def cupy_sum(a: Arrays) -> Statement:
    return "x + y", a.theirs(), "x + y"


def cupy_product(a: Arrays) -> Statement:
    return "x*y + c", a.theirs(), "x*y + c"


def cupy_sum_out(a: Arrays) -> Statement:
    scope = a.theirs()
    return "add(x, y, out=z)", scope | {"add": scope["cupy"].add}, "z"


def cupy_kernel(a: Arrays) -> Statement:
    scope = a.theirs()
    kernel = scope["cupy"].ElementwiseKernel(
        "float64 x, float64 y, float64 c", "float64 z", "z = x*y + c", "launched_by_hand"
    )
    return "kernel(x, y, c, z)", scope | {"kernel": kernel}, "z"


def cupy_raw(a: Arrays) -> Statement:
    scope = a.theirs()
    kernel = scope["cupy"].RawKernel(RAW, "axpy")
    threads = 256
    scope |= {
        "kernel": kernel,
        "grid": (-(-a.n // threads),),
        "block": (threads,),
        "arguments": (scope["x"], scope["y"], scope["c"], scope["z"], np.int32(a.n)),
    }
    return "kernel(grid, block, arguments)", scope, "z"


def cupy_fuse(a: Arrays) -> Statement:
    scope = a.theirs()

    def product(x: Any, y: Any, c: Any) -> Any:
        return x * y + c

    return "fused(x, y, c)", scope | {"fused": scope["cupy"].fuse(product)}, "fused(x, y, c)"


def jax_jit(a: Arrays) -> Statement:
    jax, show_ = jax_on(a.card)
    scope = {n: show_(v) for n, v in (("x", a.x), ("y", a.y), ("c", a.c))}
    compiled = jax.jit(lambda x, y, c: x * y + c)
    return "result = f(x, y, c)", scope | {"f": compiled, "wait": jax.block_until_ready}, "wait(f(x, y, c))"


def torch_sum(a: Arrays) -> Statement:
    _, show_ = torch_on(a.card)
    return "x + y", {"x": show_(a.x), "y": show_(a.y)}, "x + y"


def torch_product(a: Arrays) -> Statement:
    _, show_ = torch_on(a.card)
    return "x*y + c", {"x": show_(a.x), "y": show_(a.y), "c": show_(a.c)}, "x*y + c"


CASES: dict[str, tuple[Callable[[Arrays], Statement], str]] = {
    "mirabelle: z[...] = x*y + c": (our_statement, "product"),
    "mirabelle: z[...] = x*y + c - 0.0": (our_statement_with_number, "product"),
    "mirabelle: x*y + c": (our_result, "product"),
    "mirabelle: x + y": (our_sum, "sum"),
    "CuPy: x + y": (cupy_sum, "sum"),
    "CuPy: x*y + c": (cupy_product, "product"),
    "CuPy: add(x, y, out=z)": (cupy_sum_out, "sum"),
    "CuPy ElementwiseKernel": (cupy_kernel, "product"),
    "CuPy RawKernel": (cupy_raw, "product"),
    "cupy.fuse": (cupy_fuse, "product"),
    "JAX jit": (jax_jit, "product"),
    "torch: x + y": (torch_sum, "sum"),
    "torch: x*y + c": (torch_product, "product"),
}


class Loop:
    """A statement compiled into a loop, as `timeit` does."""

    def __init__(self, card: Card, statement: Statement, expected: np.ndarray) -> None:
        text, self.scope, result = statement
        self.card = card
        self.timer = timeit.Timer(text, globals=self.scope)
        for _ in range(3):
            exec(text, self.scope)
        card.synchronize()
        agree(text, to_numpy(eval(result, self.scope)), expected, 1e-12)
        self.number = 50
        if not card.tiny:
            while (took := self.once() * self.number) < ROUND_S / 4:
                self.number *= 2
            self.number = max(1, int(self.number * ROUND_S / took))

    def once(self) -> float:
        """Seconds a call in one loop, the wait at its end included."""
        self.card.synchronize()
        start = time.perf_counter()
        self.timer.timeit(self.number)
        if "wait" in self.scope:  # a library with streams and threads of its own
            eval("wait(f(x, y, c))", self.scope)
        self.card.synchronize()
        return (time.perf_counter() - start) / self.number


def measure(record: Recorder) -> None:
    record.content["method"] = METHOD
    record.case("statements", lambda: measured(record), limit_s=80)


def measured(record: Recorder) -> dict[str, Any]:
    card = record.card
    arrays = Arrays(card)
    loops: dict[str, Loop] = {}
    for name, (make, expected) in CASES.items():
        made = record.attempt(name, lambda m=make, e=expected: Loop(card, m(arrays), getattr(arrays, e)))
        if made is not None:
            loops[name] = made
    times: dict[str, list[float]] = {name: [] for name in loops}
    gc.collect()
    for r in range(2 if card.tiny else ROUNDS):
        names = [n for n in loops if n not in record.failures]
        shift = r % max(1, len(names))
        for name in names[shift:] + names[:shift]:
            took = record.attempt(name, loops[name].once)
            if took is not None:
                times[name].append(took)
    return {
        "elements": arrays.n,
        "microseconds": {
            n: {"best_us": min(t) * 1e6, "median_us": statistics.median(t) * 1e6, "calls": loops[n].number}
            for n, t in times.items()
            if t
        },
    }


def report(record: Record) -> None:
    found = next((c["microseconds"] for c in record.cases if "microseconds" in c), {})
    ours = found.get("mirabelle: z[...] = x*y + c")
    bar = found.get("CuPy: x + y")
    record.content["summary"] = {
        "statement_us": ours and ours["best_us"],
        "statement_median_us": ours and ours["median_us"],
        "cupy_sum_us": bar and bar["best_us"],
        "met": {
            "microseconds": bool(ours) and ours["best_us"] <= TARGET_US,
            "below_cupy": bool(ours and bar) and ours["best_us"] < bar["best_us"],
        },
    }
    show(
        f"Launching: µs a statement on {ELEMENTS} elements",
        ["statement", "best", "median", "/ CuPy x + y"],
        [
            [
                n,
                f"{t['best_us']:.2f}",
                f"{t['median_us']:.2f}",
                f"{t['best_us'] / bar['best_us']:.2f}" if bar else "-",
            ]
            for n, t in found.items()
        ],
        [f"Target: at most {TARGET_US:g} µs, and below CuPy's own x + y."],
    )
