"""The Julia paper's figures 1 to 3 on the card: CuArray beside CuPy and JAX.

What is measured stands in `benchmarks/paper_julia`, and is the same on the host.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from benchmarks.gpu._card import Contender
from benchmarks.gpu._libraries import agree, jax_on, to_numpy
from benchmarks.gpu._record import Record, Recorder
from benchmarks.paper_julia import _report, figures
from benchmarks.paper_julia.figures import FIGURES, Case

SOFT_LIMIT_S, HARD_LIMIT_S = 240.0, 420.0
METHOD = (
    _report.METHOD + " Contenders take turns; medians of the time between two events around as many calls as "
    "take about 10 ms (JAX by the wall clock). Results stay on the card. `recorded`: a step was recorded "
    "before with mb.capture(), as JAX compiled its programs before, and is replayed."
)


def measure(record: Recorder) -> None:
    record.content["method"] = METHOD
    for figure in FIGURES:
        for n in figure.sizes(True, record.card.tiny):
            case = Case(figure, n, card=True, tiny=record.card.tiny)
            record.case(f"{figure.name} {n}", lambda c=case: measured(c, record), limit_s=60)  # type: ignore[misc]


def measured(case: Case, record: Recorder) -> dict[str, Any]:
    card = record.card
    data = [card.library.asarray(x) for x in case.data()]
    contenders: dict[str, Contender] = {}
    expected: list[Any] = []

    def add(made: figures.Contenders, wait: Callable[[Any], Any] | None = None) -> None:
        for name, call in made.items():

            def checked(name: str = name, call: Callable[[], Any] = call) -> Contender:
                for _ in range(2):  # the first calls compile
                    result = call()
                card.synchronize()
                values = to_numpy(result)
                if not expected:
                    expected.append(values)
                agree(name, values, expected[0], 1e-8)
                return Contender(call, wait)

            contender = record.attempt(name, checked)
            if contender is not None:
                contenders[name] = contender

    peer = "CuPy" if card else "NumPy"
    add(figures.by_hand(case, data, card.library, peer))
    add(record.attempt("mirabelle", lambda: figures.ours(case, data, card.ours)) or {})
    found = None if record.late else record.attempt("JAX", lambda: jax_on(card))
    if found is not None:
        jax, show = found
        shown = [show(x) for x in data]
        add(figures.by_jax(case, shown, jax, lambda result: result), jax.block_until_ready)
    times = card.take_turns(contenders, record.failed, rounds=7, limit_s=3.0)
    seconds = {name: t.seconds * case.scale for name, t in times.items()}
    return {
        **case.facts(),
        "seconds": seconds,
        "times": {name: t.as_json() for name, t in times.items()},
        "said": _report.said(seconds),
    }


def report(record: Record) -> None:
    peer = "CuPy" if record.content["machine"].get("gpu") else "NumPy"
    cases = [c for c in record.cases if "figure" in c]  # those that did not fail as a whole
    judged = _report.summary(cases, peer, best="seconds")
    met = [entry["met"] for entry in judged.values() if "met" in entry]
    record.content["summary"] = {**judged, "met": bool(met) and all(met)}
    for figure in FIGURES:
        _report.show_figure(figure, cases, judged)
    record.save()
    folder = record.path.parent
    _report.write_table(folder / "gpu_paper.csv", "card", cases)
    if not record.content.get("tiny"):
        with contextlib.suppress(ImportError):
            from benchmarks.paper_julia import _drawing

            _drawing.draw(folder)
