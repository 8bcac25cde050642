"""Reductions and scans beside CuPy's, which are CUB's, JAX's and torch's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks._measure import geometric_mean
from benchmarks._table import show
from benchmarks.gpu._card import Card, Contender
from benchmarks.gpu._libraries import agree, jax_on, to_numpy, torch_on
from benchmarks.gpu._record import Record, Recorder

SOFT_LIMIT_S, HARD_LIMIT_S = 60.0, 130.0
TARGET = 0.95
PEERS = ("cupy", "jax", "torch")
METHOD = (
    "The result stays on the card. Contenders take turns; medians of the time between two events around "
    "as many calls as take about 10 ms (JAX by the wall clock). bytes: what is read once and, for scans, "
    "written. fraction: a copy's time of as many bytes over the contender's. Every result is "
    "compared with NumPy's, reduced in float64."
)

Arrays = tuple[Any, ...]


@dataclass(frozen=True)
class Reduction:
    """One reduction of arrays of a shape and dtype; `reference` gets NumPy's arrays."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    # Functions of a namespace and the arrays; torch's and the reference differ in names and types.
    compute: Callable[..., Any]
    reference: Callable[..., Any]
    torch: Callable[..., Any]
    arrays: int = 1
    rtol: float = 1e-9
    scan: bool = False
    # The array, made from random numbers.
    make: Callable[[Any], Any] | None = None


def along(name: str, axis: int | None) -> dict[str, Callable[..., Any]]:
    return {
        "compute": lambda xp, x: getattr(xp, name)(x, axis=axis),
        "reference": lambda x: getattr(np, name)(x, axis=axis, **_in_double(name, x)),
        "torch": (lambda t, x: getattr(t, name)(x))
        if axis is None
        else (lambda t, x: getattr(t, {"max": "amax"}.get(name, name))(x, dim=axis)),
    }


def _in_double(name: str, x: np.ndarray) -> dict[str, Any]:
    return {"dtype": np.float64} if name in ("sum", "mean", "var") and x.dtype.kind == "f" else {}


def _variance(t: Any, x: Any) -> Any:
    return t.var(x, correction=0)


def _scan(xp: Any, x: Any) -> Any:
    return xp.cumsum(x, axis=0)


def _distance(xp: Any, a: Any, b: Any) -> Any:
    return xp.sum(xp.abs(a - b))


LONG, WIDE, TALL, FLAT = (1 << 27,), (1 << 13, 1 << 14), (1 << 20, 16), (16, 1 << 20)

CASES: tuple[Reduction, ...] = (
    *[
        Reduction(f"{name} {short}", LONG, dtype, **along(name, None), rtol=1e-5 if dtype == "f4" else 1e-9)
        for name in ("sum", "max")
        for short, dtype in (("f32", "f4"), ("f64", "f8"))
    ],
    *[
        Reduction(f"sum {short}, axis {axis} of {' × '.join(map(str, shape))}", shape, dtype,
                  **along("sum", axis), rtol=1e-5 if dtype == "f4" else 1e-9)
        for shape in (WIDE, TALL, FLAT)
        for axis in (0, 1)
        for short, dtype in (("f32", "f4"), ("f64", "f8"))
        if dtype == "f8" or shape is WIDE
    ],
    Reduction("max f32, axis 1 of 8192 × 16384", WIDE, "f4", **along("max", 1), rtol=0.0),
    Reduction("sum(abs(a - b)) f64", (1 << 26,), "f8", _distance,
              lambda a, b: np.sum(np.abs(a - b)), _distance, arrays=2),
    Reduction("sum(abs(a - b)) f32", (1 << 26,), "f4", _distance,
              lambda a, b: np.sum(np.abs(a - b), dtype=np.float64), _distance, arrays=2, rtol=1e-5),
    Reduction("mean f32", LONG, "f4", **along("mean", None), rtol=1e-5),
    Reduction("var f32", LONG, "f4", lambda xp, x: xp.var(x), lambda x: np.var(x, dtype=np.float64),
              _variance, rtol=1e-4),
    Reduction("var f64", (1 << 26,), "f8", lambda xp, x: xp.var(x), np.var, _variance),
    # In float64 no two elements are equal, so that nobody may choose another one.
    Reduction("argmax f64", (1 << 26,), "f8", lambda xp, x: xp.argmax(x), np.argmax, lambda t, x: t.argmax(x),
              rtol=0.0),
    # Neither ends early: no element decides.
    Reduction("any bool", LONG, "f4", lambda xp, x: xp.any(x), np.any, lambda t, x: t.any(x),
              make=lambda x: x > 2),
    Reduction("all bool", LONG, "f4", lambda xp, x: xp.all(x), np.all, lambda t, x: t.all(x),
              make=lambda x: x < 2),
    Reduction("cumsum f64", (1 << 26,), "f8", _scan, lambda x: np.cumsum(x), lambda t, x: t.cumsum(x, 0),
              scan=True),
    Reduction("cumsum f32", (1 << 26,), "f4", _scan, lambda x: np.cumsum(x, dtype=np.float64),
              lambda t, x: t.cumsum(x, 0), scan=True, rtol=1e-4),
    Reduction("cumsum i32", (1 << 26,), "f4", _scan, lambda x: np.cumsum(x), lambda t, x: t.cumsum(x, 0),
              scan=True, rtol=0.0, make=lambda x: (x * 16).astype(np.int32)),
)  # fmt: skip


def measure(record: Recorder) -> None:
    record.content["method"] = METHOD
    for case in CASES:
        record.case(case.name, lambda c=case: measured(c, record), limit_s=45)  # type: ignore[misc]


def measured(case: Reduction, record: Recorder) -> dict[str, Any]:
    card = record.card
    shape = tuple(min(n, 32) for n in case.shape) if card.tiny else case.shape
    arrays: Arrays = tuple(card.random(shape, case.dtype) for _ in range(case.arrays))
    if case.make is not None:
        arrays = tuple(case.make(a) for a in arrays)
    expected = np.asarray(case.reference(*[to_numpy(a) for a in arrays]))
    nbytes = sum(a.nbytes for a in arrays)
    contenders: dict[str, Contender] = {}
    for name, maker in (("mirabelle", _ours), ("cupy", _cupys), ("jax", _jaxs), ("torch", _torchs)):
        if record.late and name in ("jax", "torch"):
            continue

        def made(name: str = name, maker: Callable[..., Contender] = maker) -> Contender:
            contender = maker(case, card, arrays)
            result = contender.call()
            if contender.wait is not None:
                contender.wait(result)
            card.synchronize()
            agree(name, to_numpy(result), expected, case.rtol)
            return contender

        contender = record.attempt(name, made)
        if contender is not None:
            contenders[name] = contender
            if case.scan and name == "mirabelle":
                # What it has to write; a scan of int32 gives int64.
                nbytes += contender.call().nbytes
    # A copy of as many bytes, read and written.
    copy = record.attempt("copy", lambda: card.copy_of(nbytes))
    if copy is not None:
        contenders["copy"] = copy
    times = card.take_turns(contenders, record.failed, rounds=9, limit_s=3.0)
    found: dict[str, Any] = {
        "shape": list(shape),
        "dtype": str(arrays[0].dtype),
        "bytes": nbytes,
        "times": {n: t.as_json() for n, t in times.items()},
        "gigabytes_per_second": {n: nbytes / t.seconds / 1e9 for n, t in times.items()},
    }
    if "copy" in times:
        found["fraction"] = {n: times["copy"].seconds / t.seconds for n, t in times.items() if n != "copy"}
    if "mirabelle" in times:
        # Our throughput over theirs.
        found["over"] = {p: times[p].seconds / times["mirabelle"].seconds for p in PEERS if p in times}
    found["said"] = ", ".join(f"{n} {v:.3f}" for n, v in found.get("fraction", {}).items())
    return found


def _ours(case: Reduction, card: Card, arrays: Arrays) -> Contender:
    import mirabelle as mb

    mine = [card.ours(a) for a in arrays]
    compute = case.compute
    return Contender(lambda: mb.materialize(compute(mb, *mine)))


def _cupys(case: Reduction, card: Card, arrays: Arrays) -> Contender:
    cupy = card.need()
    compute = case.compute
    return Contender(lambda: compute(cupy, *arrays))


def _jaxs(case: Reduction, card: Card, arrays: Arrays) -> Contender:
    jax, show_ = jax_on(card)
    import jax.numpy as jnp

    compiled = jax.jit(lambda *xs: case.compute(jnp, *xs))
    shown = [show_(a) for a in arrays]
    return Contender(lambda: compiled(*shown), jax.block_until_ready)


def _torchs(case: Reduction, card: Card, arrays: Arrays) -> Contender:
    torch, show_ = torch_on(card)
    shown = [show_(a) for a in arrays]
    compute = case.torch
    return Contender(lambda: compute(torch, *shown))


def report(record: Record) -> None:
    cases = [c for c in record.cases if "mirabelle" in c.get("times", {})]
    over = {c["name"]: c["over"]["cupy"] for c in cases if "cupy" in c["over"]}
    behind = [f"{n} ({v:.2f})" for n, v in over.items() if v < TARGET]
    means = {
        p: geometric_mean([c["over"][p] for c in cases if p in c["over"]])
        for p in PEERS
        if any(p in c["over"] for c in cases)
    }
    record.content["summary"] = {
        "geometric_mean_over": means,
        "below_target": behind,
        "without_mirabelle": [c["name"] for c in record.cases if c not in cases],
        "met": bool(over) and not behind,
    }
    show(
        "Reductions: fractions of a copy's bandwidth, by the bytes read (and written, in scans)",
        ["case", "mirabelle GB/s", "mirabelle", *PEERS, "× CuPy"],
        [
            [c["name"], f"{c['gigabytes_per_second']['mirabelle']:.0f}"]
            + [f"{c['fraction'][n]:.3f}" if n in c.get("fraction", {}) else "-" for n in ("mirabelle", *PEERS)]
            + [f"{c['over']['cupy']:.2f}" if "cupy" in c["over"] else "-"]
            for c in cases
        ],
        [
            "Geometric mean of the throughput over a peer's: "
            + ", ".join(f"{p} {m:.2f}" for p, m in means.items())
            + f". Below {TARGET} of CuPy's: {', '.join(behind) or 'none'}.",
            f"Without a figure: {', '.join(record.content['summary']['without_mirabelle']) or 'none'}.",
        ],
    )
