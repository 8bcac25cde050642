"""Evenly spaced numbers in expressions: a Range, whose numbers a kernel works out, beside CuPy's arange."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks._table import show
from benchmarks.gpu._card import Card, Contender
from benchmarks.gpu._libraries import agree, to_numpy
from benchmarks.gpu._record import Record, Recorder

SOFT_LIMIT_S, HARD_LIMIT_S = 40.0, 90.0
LENGTH, TINY = 100_000_000, 10_000
PEERS = ("cupy", "by hand")
METHOD = (
    "Medians of the time between two events around as many calls as take about 10 ms. mirabelle: mb.Range in "
    "the expression. cupy: the same statement with cupy.arange, which is made in memory each time. by hand: "
    "CuPy's ElementwiseKernel, written with the index of the element. bytes_read: by mirabelle's kernel; v has "
    "8 bytes an element."
)


@dataclass(frozen=True)
class Case:
    """A statement on a vector v and evenly spaced numbers; CuPy's kernel of the same."""

    name: str
    # With functions of a namespace; and what a kernel written by hand computes from v and an index i.
    compute: Any
    by_hand: str = ""


CASES = (
    Case("v + r / 2", lambda xp, v, r: v + r * 0.5, "v + i * 0.5"),
    Case("where(r % 3 == 0, v, -v)", lambda xp, v, r: xp.where(r % 3 == 0, v, -v), "i % 3 == 0 ? v : -v"),
    Case("sum(sin(r / 1e8))", lambda xp, v, r: xp.sum(xp.sin(r * 1e-8))),
    Case("sum(v * r)", lambda xp, v, r: xp.sum(v * r)),
)


def measure(recorder: Recorder) -> None:
    recorder.content |= {"method": METHOD, "length": TINY if recorder.card.tiny else LENGTH}
    for case in CASES:
        recorder.case(case.name, lambda case=case: _measured(case, recorder), 20.0)  # type: ignore[misc]


def _measured(case: Case, recorder: Recorder) -> dict[str, Any]:
    import mirabelle as mb

    card, n = recorder.card, recorder.content["length"]
    v = card.random((n,))
    mine, r = card.ours(v), mb.Range(n, device=mb.CuArray)

    def ours() -> Any:
        return mb.materialize(case.compute(mb, mine, r))

    with mb.count() as c:
        found = to_numpy(ours())
    expected = case.compute(np, to_numpy(v), np.arange(n))
    agree(case.name, found, np.asarray(expected), 1e-9)
    contenders = {"mirabelle": Contender(ours)}
    if card:
        contenders["cupy"] = Contender(lambda: case.compute(card.cupy, v, card.cupy.arange(n)))
        if case.by_hand:
            contenders["by hand"] = _by_hand(case, card, v, np.asarray(expected))
    times = card.take_turns(contenders, recorder.failed)
    over = {p: times[p].seconds / times["mirabelle"].seconds for p in PEERS if p in times}
    return {
        "times": {k: t.as_json() for k, t in times.items()},
        "over": over,
        "bytes_read": c.bytes_read,
        "said": ", ".join(f"{times['mirabelle'].seconds * 1e3:.3f} ms" if k == "mirabelle" else
                          f"{over[k]:.2f} times as fast as {k}" for k in times),
    }  # fmt: skip


def _by_hand(case: Case, card: Card, v: Any, expected: np.ndarray) -> Contender:
    kernel = card.need().ElementwiseKernel("float64 v", "float64 y", f"y = {case.by_hand}", "by_hand")
    agree(f"{case.name}, by hand", to_numpy(kernel(v)), expected, 1e-9)
    return Contender(lambda: kernel(v))


def report(record: Record) -> None:
    cases = [c for c in record.cases if "mirabelle" in c.get("times", {})]
    show(
        f"Evenly spaced numbers in expressions of {record.content.get('length', 0):,} elements",
        ["case", "mirabelle ms", *(f"× {p}" for p in PEERS)],
        [
            [c["name"], f"{c['times']['mirabelle']['seconds'] * 1e3:.3f}"]
            + [f"{c['over'][p]:.2f}" if p in c["over"] else "-" for p in PEERS]
            for c in cases
        ],
        ["× n: so many times as fast. CuPy makes the numbers in memory; by hand, a kernel uses its index."],
    )
