"""Fused expressions of 2^26 elements: what fraction of a plain copy's bandwidth each library reaches."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._measure import geometric_mean
from benchmarks._table import show
from benchmarks.gpu._card import Card, Contender
from benchmarks.gpu._expressions import EXPRESSIONS, Expression
from benchmarks.gpu._libraries import agree, jax_on, to_numpy, torch_on
from benchmarks.gpu._record import Record, Recorder, say

SOFT_LIMIT_S, HARD_LIMIT_S = 130.0, 230.0
ELEMENTS, TINY_ELEMENTS = 1 << 26, 1 << 8
PEERS = ("cupy", "fuse", "ElementwiseKernel", "jax", "torch.compile", "numba")
TARGET_MEAN, TARGET_PEER, TARGET_TRANSPOSED = 1.0, 1.03, 0.8
METHOD = (
    "Every contender writes (or makes) the whole result; the contenders take turns, and the median counts. "
    "Times are between two events on the stream around as many calls as take about 10 ms; JAX's, which has "
    "streams of its own, are by the wall clock. bytes: each array read once, and written once. copy is a "
    "device-to-device copy of the same number of bytes, in the same rounds; fraction = its time / the "
    "contender's. Arrays exceed the cache. Every contender's result is compared with NumPy's in three places, "
    "mirabelle's with the ElementwiseKernel's everywhere."
)


class Inputs:
    """The arrays of one expression on the card, the result's shape and dtype, and NumPy's values."""

    def __init__(self, expression: Expression, card: Card) -> None:
        self.expression = expression
        self.card = card
        n = int((TINY_ELEMENTS if card.tiny else ELEMENTS) * expression.share)
        self.arrays = expression.make(card.random, n)
        self.operands = expression.views(card.library, *self.arrays)
        self.shape = np.broadcast_shapes(*[x.shape for x in self.operands])
        self.where = _places(self.shape)
        self.expected = [self._reference(index) for index in self.where]
        self.dtype = self.expected[0].dtype
        self.nbytes = sum(x.nbytes for x in self.arrays) + math.prod(self.shape) * self.dtype.itemsize

    def _reference(self, index: Any) -> np.ndarray:
        """NumPy's values in one place, from the parts of the operands that are there."""
        stretched = [self.card.library.broadcast_to(x, self.shape) for x in self.operands]
        return np.asarray(self.expression.formula(np, *[to_numpy(x[index]) for x in stretched]))

    def check(self, who: str, result: Any) -> None:
        assert tuple(result.shape) == self.shape, f"{who}: shape {tuple(result.shape)}, not {self.shape}"
        for index, expected in zip(self.where, self.expected, strict=True):
            part = to_numpy(result[index])
            assert part.dtype == expected.dtype, f"{who}: {part.dtype}, not {expected.dtype}"
            agree(who, part, expected, self.expression.rtol)


def _places(shape: tuple[int, ...]) -> list[tuple[slice, ...]]:
    """About a thousand elements at the start, in the middle and at the end."""
    width = max(4, round(1000 ** (1 / len(shape))))
    starts = (lambda n: 0, lambda n: max(0, n // 2 - 3), lambda n: max(0, n - width))
    return [tuple(slice(start(n), min(n, start(n) + width)) for n in shape) for start in starts]


# Contenders: functions that make one


def mirabelle(x: Inputs) -> Contender:
    import mirabelle as mb

    formula, views = x.expression.formula, x.expression.views
    arrays = [x.card.ours(a) for a in x.arrays]
    z = arrays[0] if x.expression.in_place else x.card.ours(x.card.poison(x.shape, x.dtype))

    def call() -> Any:
        z[...] = formula(mb, *views(mb, *arrays))
        return z

    return Contender(call)


def eager(x: Inputs) -> Contender:
    cupy = x.card.need()
    formula = x.expression.formula
    if not x.expression.in_place:
        return Contender(lambda: formula(cupy, *x.operands))
    u, *others = [x.arrays[0].copy(), *x.arrays[1:]]

    def update() -> Any:
        u[...] = formula(cupy, u, *others)
        return u

    return Contender(update)


def fuse(x: Inputs) -> Contender:
    cupy = x.card.need()
    formula, operands = x.expression.formula, x.operands

    def fused(*xs: Any) -> Any:
        return formula(cupy, *xs)

    compiled = cupy.fuse(kernel_name="fused_" + _identifier(x.expression.name))(fused)
    return Contender(lambda: compiled(*operands))


def elementwise_kernel(x: Inputs) -> Contender:
    cupy = x.card.need()
    names = "abcde"[: len(x.operands)]
    kernel = cupy.ElementwiseKernel(
        ", ".join(f"{o.dtype} {n}" for n, o in zip(names, x.operands, strict=True)),
        f"{x.dtype} z",
        f"z = {x.expression.cuda}",
        "by_hand_" + _identifier(x.expression.name),
    )
    operands = x.operands
    if x.expression.in_place:
        operands = (x.arrays[0].copy(), *x.arrays[1:])
        z = operands[0]
    else:
        z = x.card.poison(x.shape, x.dtype)

    def call() -> Any:
        kernel(*operands, z)
        return z

    return Contender(call)


def jax(x: Inputs) -> Contender:
    jax, show_ = jax_on(x.card)
    import jax.numpy as jnp

    formula, views = x.expression.formula, x.expression.views
    arrays = [show_(a) for a in x.arrays]

    def compute(*xs: Any) -> Any:
        return formula(jnp, *views(jnp, *xs))

    if not x.expression.in_place:
        compiled = jax.jit(compute)
        return Contender(lambda: compiled(*arrays), jax.block_until_ready)
    donated = jax.jit(compute, donate_argnums=0)
    # What came from CuPy cannot be donated.
    arrays[0] = jax.block_until_ready(jnp.array(arrays[0], copy=True))

    def update() -> Any:
        arrays[0] = donated(*arrays)
        return arrays[0]

    return Contender(update, jax.block_until_ready)


def torch_compile(x: Inputs) -> Contender:
    torch, show_ = torch_on(x.card)
    torch.compiler.reset()
    formula, views = x.expression.formula, x.expression.views
    arrays = [show_(a) for a in x.arrays]

    def compute(*xs: Any) -> Any:
        return formula(torch, *views(torch, *xs))

    compiled = torch.compile(compute, fullgraph=True, dynamic=False)
    return Contender(lambda: compiled(*arrays))


def numba(x: Inputs) -> Contender:
    x.card.need()
    from numba import cuda

    from benchmarks.gpu import by_hand

    kernel, threads = by_hand.kernel(x.expression.numba, x.dtype)
    z = x.card.poison(x.shape, x.dtype)
    # CuPy's and Numba's default streams are the same: no wait when an array is shown.
    shown = [cuda.as_cuda_array(a, sync=False) for a in (*x.arrays, z)]
    blocks = tuple(-(-n // t) for n, t in zip(reversed(x.shape), threads, strict=True))
    launch = kernel[blocks, threads]

    def call() -> Any:
        launch(*shown)
        return z

    return Contender(call)


def _identifier(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)


MAKERS: dict[str, Callable[[Inputs], Contender]] = {
    "mirabelle": mirabelle,
    "cupy": eager,
    "fuse": fuse,
    "ElementwiseKernel": elementwise_kernel,
    "jax": jax,
    "torch.compile": torch_compile,
    "numba": numba,
}


def measure(record: Recorder) -> None:
    record.content["method"] = METHOD
    for expression in EXPRESSIONS:
        record.case(expression.name, lambda e=expression: measured(e, record), limit_s=90)  # type: ignore[misc]


def measured(expression: Expression, record: Recorder) -> dict[str, Any]:
    """Check and time all who can compute one expression."""
    card = record.card
    x = Inputs(expression, card)
    contenders: dict[str, Contender] = {}
    whole: dict[str, Any] = {}
    for name, maker in MAKERS.items():
        if name == "torch.compile" and (not expression.torch or record.late):
            continue
        if name == "numba" and not expression.numba:
            continue

        def made(name: str = name, maker: Callable[[Inputs], Contender] = maker) -> Contender:
            contender = maker(x)
            result = contender.call()
            if contender.wait is not None:
                contender.wait(result)
            card.synchronize()
            x.check(name, result)
            if name in ("mirabelle", "ElementwiseKernel"):
                whole[name] = result
            return contender

        contender = record.attempt(name, made, limit_s=40)
        if contender is not None:
            contenders[name] = contender
    everywhere = None
    if card and len(whole) == 2:
        everywhere = record.attempt("mirabelle everywhere", lambda: _same_everywhere(card, expression, **whole))
    whole.clear()
    counters = record.attempt("counters", lambda: counted(contenders["mirabelle"]), 20)
    copy = record.attempt("copy", lambda: card.copy_of(x.nbytes))
    if copy is not None:
        contenders["copy"] = copy
    times = card.take_turns(contenders, record.failed)
    found: dict[str, Any] = {
        "text": expression.text,
        "shape": list(x.shape),
        "dtypes": [str(a.dtype) for a in x.arrays],
        "bytes": x.nbytes,
        "transposed": expression.transposed,
        "times": {n: t.as_json() for n, t in times.items()},
        "gigabytes_per_second": {n: x.nbytes / t.seconds / 1e9 for n, t in times.items()},
        "equal_everywhere": everywhere,
        "counters": counters,
    }
    if "copy" in times:
        found["fraction"] = {n: times["copy"].seconds / t.seconds for n, t in times.items() if n != "copy"}
    rivals = {n: t.seconds for n, t in times.items() if n in PEERS}
    if rivals and "mirabelle" in times:
        found["best_peer"] = best = min(rivals, key=lambda n: rivals[n])
        found["over_best_peer"] = times["mirabelle"].seconds / rivals[best]
    found["said"] = ", ".join(f"{n} {v:.3f}" for n, v in found.get("fraction", {}).items())
    return found


def _same_everywhere(card: Card, expression: Expression, mirabelle: Any, ElementwiseKernel: Any) -> bool:
    """Whether every element is that of the kernel written by hand."""
    import mirabelle as mb

    cupy = card.need()
    # A copy is shown to CuPy: memory that others see is written to with more care.
    ours, theirs = card.theirs(mb.materialize(mb.copy(mirabelle))), ElementwiseKernel
    if ours.dtype.kind in "fc":
        scale = float(abs(theirs).max())
        worst = float(abs(ours - theirs).max())  # NaN where something was not written
        assert worst <= 10 * expression.rtol * scale, f"mirabelle differs by {worst:g} of {scale:g} somewhere"
    else:
        assert bool(cupy.array_equal(ours, theirs)), "mirabelle differs somewhere"
    return True


def counted(contender: Contender) -> dict[str, int]:
    """mirabelle's counters for one statement."""
    import mirabelle as mb

    with mb.count() as counters:
        contender.call()
    return {f.name: getattr(counters, f.name) for f in dataclasses.fields(counters)}


def report(record: Record) -> None:
    cases = [c for c in record.cases if "fraction" in c]
    ours = {c["name"]: c["fraction"]["mirabelle"] for c in cases if "mirabelle" in c["fraction"]}
    straight = [ours[c["name"]] for c in cases if c["name"] in ours and not c["transposed"]]
    across = [ours[c["name"]] for c in cases if c["name"] in ours and c["transposed"]]
    behind = [
        f"{c['name']} ({c['over_best_peer']:.3f} × {c['best_peer']})"
        for c in cases
        if c.get("over_best_peer", 0) > TARGET_PEER
    ]
    peers = {
        p: geometric_mean([c["fraction"][p] for c in cases if p in c["fraction"] and not c["transposed"]])
        for p in PEERS
        if any(p in c["fraction"] for c in cases)
    }
    copies = [c["gigabytes_per_second"]["copy"] for c in cases]
    summary = {
        "expressions": len(straight),
        "geometric_mean_fraction": geometric_mean(straight),
        "geometric_mean_fraction_peers": peers,
        "transposed_fractions": across,
        "worst_transposed_fraction": min(across, default=math.nan),
        "behind_best_peer": behind,
        "copy_gigabytes_per_second": max(copies, default=math.nan),
        "without_mirabelle": [c["name"] for c in record.cases if c["name"] not in ours],
        "met": {
            "geometric_mean": geometric_mean(straight) >= TARGET_MEAN,
            "best_peer": bool(straight) and not behind,
            "transposed": min(across, default=0.0) >= TARGET_TRANSPOSED,
        },
    }
    record.content["summary"] = summary
    rows = [
        [c["name"], f"{c['gigabytes_per_second']['copy']:.0f}"]
        + [f"{c['fraction'][n]:.3f}" if n in c["fraction"] else "-" for n in ("mirabelle", *PEERS)]
        + [f"{c['over_best_peer']:.3f}" if "over_best_peer" in c else "-", c.get("best_peer", "")]
        for c in cases
    ]
    show(
        "Bandwidth: fractions of a copy's; last: mirabelle's time / the best peer's",
        ["expression", "copy GB/s", "mirabelle", *PEERS, "/ best", "best peer"],
        rows,
        [
            f"Geometric mean of {len(straight)}: mirabelle {geometric_mean(straight):.3f} "
            f"(target {TARGET_MEAN}); "
            + ", ".join(f"{p} {m:.3f}" for p, m in peers.items())
            + f"; worst transposed {min(across, default=math.nan):.3f} (target {TARGET_TRANSPOSED}).",
            f"Behind the best peer by more than 3 %: {', '.join(behind) or 'none'}.",
            f"Without a figure: {', '.join(summary['without_mirabelle']) or 'none'}.",
        ],
    )
    if not cases:
        say("No card: only whether the results are right was seen.")
