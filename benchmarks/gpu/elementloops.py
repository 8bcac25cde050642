"""Loops over elements under `mb.compile` on a card: as kernels, and brought to the host; and the estimates."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks._table import show
from benchmarks.gpu._card import Contender
from benchmarks.gpu._libraries import agree, to_numpy
from benchmarks.gpu._record import Record, Recorder

SOFT_LIMIT_S, HARD_LIMIT_S = 60.0, 120.0
METHOD = (
    "Each loop as a function under mb.compile, arrays on the card: `kernels` and `host` are the two ways, each "
    "made to be taken; medians. `chosen` is the way that mb.compile takes by itself, from an estimate of both "
    "(arraytypes/programs/kernelloops.py), which `estimate` tells. Results are NumPy's."
)


def smoothed(A, B):  # type: ignore[no-untyped-def]
    for i in range(1, A.shape[0] - 1):
        for j in range(1, A.shape[1] - 1):
            B[i, j] = 0.25 * (A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])
    return B


def total(x):  # type: ignore[no-untyped-def]
    s = 0.0
    for i in range(len(x)):
        s += np.sqrt(x[i])
    return x[:2] + s


def columns(A, y):  # type: ignore[no-untyped-def]
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            y[j] += A[i, j]
    return y


def heat(u, v, turns):  # type: ignore[no-untyped-def]
    for _ in range(turns):
        for i in range(1, len(u) - 1):
            v[i] = u[i] + 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1])
        for i in range(1, len(u) - 1):
            u[i] = v[i]
    return u


def eliminated(A):  # type: ignore[no-untyped-def]
    for k in range(A.shape[0]):
        for i in range(k + 1, A.shape[0]):
            A[i, k] = A[i, k] / A[k, k]
        for i in range(k + 1, A.shape[0]):
            for j in range(k + 1, A.shape[0]):
                A[i, j] -= A[i, k] * A[k, j]
    return A


def recurrence(x, s):  # type: ignore[no-untyped-def]
    for i in range(1, len(x)):
        x[i] = 0.5 * x[i - 1] + x[i]
    return x


@dataclass(frozen=True)
class Case:
    """A loop at a size: how its arguments are made of it, and the size at which it is checked."""

    program: Callable[..., Any]
    arguments: Callable[[int], tuple[Any, ...]]
    sizes: tuple[int, ...]


def _numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).random(shape) + 0.5


CASES = (
    Case(smoothed, lambda n: (_numbers(n, n), np.zeros((n, n))), (100, 3000)),
    Case(total, lambda n: (_numbers(n),), (1000, 10_000_000)),
    Case(columns, lambda n: (_numbers(n, n), np.zeros(n)), (100, 2000)),
    Case(heat, lambda n: (_numbers(n), np.zeros(n), 100), (1000, 1_000_000)),
    Case(eliminated, lambda n: (_numbers(n, n) + n * np.eye(n),), (100, 1000)),
    Case(recurrence, lambda n: (_numbers(n), 0.0), (100, 1000, 100_000)),
)
TINY = 24


@contextlib.contextmanager
def _made_to(way: str) -> Iterator[None]:
    """Loops are taken to cost nothing elsewhere, so that they take this way."""
    from mirabelle.arraytypes.programs import kernelloops

    before = {n: getattr(kernelloops, n) for n in ("CORE", "BRING", "BYTE")}
    if way == "kernels":
        kernelloops.CORE = 1e3
    elif way == "host":
        kernelloops.CORE = kernelloops.BRING = kernelloops.BYTE = 0.0
    try:
        yield
    finally:
        vars(kernelloops).update(before)


def measure(recorder: Recorder) -> None:
    recorder.content |= {"method": METHOD}
    for case in CASES:
        for n in (TINY,) if recorder.card.tiny else case.sizes:
            name = f"{case.program.__name__} {n}"
            recorder.case(name, lambda case=case, n=n: _measured(case, n, recorder), 25.0)  # type: ignore[misc]


def _measured(case: Case, n: int, recorder: Recorder) -> dict[str, Any]:
    import mirabelle as mb

    given = case.arguments(n)
    contenders, chosen, told = {}, "", []
    for way in ("chosen", "kernels", "host"):
        with _made_to(way):
            program = mb.compile(_copy_of(case.program))
            arguments = [recorder.card.ours(x) if isinstance(x, np.ndarray) else x for x in given]
            found = program(*arguments)
            if n <= 100 or case.program is recurrence:
                agree(case.program.__name__, to_numpy(found), _expected(case, given), 1e-9)
            with mb.count() as counted:
                mb.materialize(program(*arguments))
        contenders[way] = Contender(_call(program, arguments))
        if way == "chosen":
            chosen = "host" if counted.transfers else "kernels"
            told = [re.search(r"about (.* here)", c.reason) for c in program.explain(*arguments).cuts]
    times = recorder.card.take_turns(contenders, recorder.failed)
    kernels, host = times["kernels"].seconds, times["host"].seconds
    return {
        "times": {k: t.as_json() for k, t in times.items()},
        "chosen": chosen,
        "right": (kernels <= host) == (chosen == "kernels") or 0.5 < kernels / host < 2,
        "estimate": "; ".join(t[1] for t in told if t),
        "said": f"kernels {kernels * 1e3:.3f} ms, host {host * 1e3:.3f} ms, chosen {chosen}",
    }


def _copy_of(f: Any) -> Any:
    """A function of its own: what was chosen for another is not known to it."""
    import types

    return types.FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)


def _call(program: Callable[..., Any], arguments: list[Any]) -> Callable[[], Any]:
    import mirabelle as mb

    return lambda: mb.materialize(program(*arguments))


def _expected(case: Case, given: tuple[Any, ...]) -> np.ndarray:
    copies = [x.copy() if isinstance(x, np.ndarray) else x for x in given]
    return np.asarray(case.program(*copies))


def report(record: Record) -> None:
    cases = [c for c in record.cases if "times" in c]
    record.content["summary"] = {
        "met": all(c["right"] for c in cases),
        "wrong": [c["name"] for c in cases if not c["right"]],
    }
    show(
        "Loops over elements on a card",
        ["loop", "kernels ms", "host ms", "chosen", "estimated"],
        [
            [
                c["name"],
                *[f"{c['times'][w]['seconds'] * 1e3:.3f}" for w in ("kernels", "host")],
                c["chosen"],
                c["estimate"],
            ]
            for c in cases
        ],
        ["host: what the loop works on is brought to the host and back."],
    )
