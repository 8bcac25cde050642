"""Simulations of which numbers are known: what was found beside what is expected."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

Parameters = Mapping[str, Any]
PATIENCE = 30.0  # seconds without a word


@dataclass(frozen=True)
class Quantity:
    """A number, and between which others it has to lie; without them it is only told.

    >>> print(near("p*", 0.303, 0.3031302, 0.005))
    p*: 0.303, from 0.301615 to 0.304646: met
    """

    name: str
    value: float
    least: float = -math.inf
    most: float = math.inf

    @property
    def met(self) -> bool:
        """Whether it lies there; what is not a number lies nowhere."""
        return self.least <= self.value <= self.most

    def __str__(self) -> str:
        bounds = [f"from {self.least:.6g}"] * (self.least > -math.inf)
        bounds += [f"to {self.most:.6g}"] * (self.most < math.inf)
        if not bounds:
            return f"{self.name}: {self.value:.6g}"
        return f"{self.name}: {self.value:.6g}, {' '.join(bounds)}: {'met' if self.met else 'NOT MET'}"


def near(name: str, value: float, expected: float, relative: float = 0.0, absolute: float = 0.0) -> Quantity:
    """A number that is expected to be another one, up to a relative and an absolute error."""
    slack = relative * abs(expected) + absolute
    return Quantity(name, float(value), expected - slack, expected + slack)


@dataclass(frozen=True)
class Findings:
    """What one simulation, or a few of one kind, came to."""

    cell: str
    order: int
    quantities: Sequence[Quantity] = ()
    seconds: float = 0.0
    failed: str = ""

    @property
    def met(self) -> bool:
        """Whether all numbers are where they should be."""
        return not self.failed and all(q.met for q in self.quantities)

    def as_json(self) -> dict[str, Any]:
        numbers = {
            q.name: {
                "value": q.value,
                **({"least": q.least} if q.least > -math.inf else {}),
                **({"most": q.most} if q.most < math.inf else {}),
                "met": q.met,
            }
            for q in self.quantities
        }
        return {
            "cell": self.cell,
            "order": self.order,
            "met": self.met,
            "rate_minus_expected": None,
            "seconds": [round(self.seconds, 3)],
            "quantities": numbers,
            **({"failed": self.failed} if self.failed else {}),
        }

    def __str__(self) -> str:
        verdict = "met" if self.met else f"NOT MET {self.failed}".rstrip()
        title = f"{self.cell}, order {self.order}: {verdict}, {self.seconds:.0f} s"
        return "\n".join([title, *[f"  {q}" for q in self.quantities], ""])


@dataclass(frozen=True)
class Simulations:
    """Calls of `measure(cell=..., order=..., ...)`, which yields quantities; each is one table.

    `quick` are smaller ones to try it out. `minutes` is about what all take on one core, where that was
    measured; those that take long (`by_name`) are run when asked for.
    """

    measure: Callable[..., Iterator[Quantity]]
    runs: Sequence[Parameters]
    quick: Sequence[Parameters]
    minutes: float = 0.0
    by_name: bool = False
    order: int = 3

    def tables(self) -> Iterator[Findings]:
        for run in self.runs:
            yield found(self.measure, {"order": self.order, **run})

    def small(self) -> Simulations:
        return replace(self, runs=self.quick)

    def on(self, array: Any) -> Simulations:
        """The same with arrays of this type, where `measure` takes an `array`."""
        if "array" not in inspect.signature(self.measure).parameters:
            raise SystemExit(f"{self.measure.__name__} runs on HostArray only; leave out --array.")
        return replace(self, runs=[{**run, "array": array} for run in self.runs])


def found(measure: Callable[..., Iterator[Quantity]], parameters: Parameters) -> Findings:
    """Quantities up to where the simulation failed, if it did.

    >>> def measure(order, cells):
    ...     yield Quantity("cells", cells, 4)
    ...     raise ValueError("too coarse")
    >>> print(replace(found(measure, {"order": 2, "cells": 3}), seconds=0.0))
    cells=3, order 2: NOT MET ValueError: too coarse, 0 s
      cells: 3, from 4: NOT MET
    <BLANKLINE>
    """
    quantities: list[Quantity] = []
    start, failed = time.perf_counter(), ""
    try:
        quantities += measure(**parameters)
    except Exception as error:
        failed = f"{type(error).__name__}: {error}".splitlines()[0][:300]
    title = ", ".join(f"{k}={shown(v)}" for k, v in parameters.items() if k != "order")
    return Findings(title, parameters["order"], quantities, time.perf_counter() - start, failed)


def shown(value: Any) -> str:
    return str(getattr(value, "__name__", value))


def on(array: Any) -> dict[str, Any]:
    """What `setup` of an example is told of the arrays' type: nothing, if it is its own."""
    return {} if array is None else {"array": array}


def simulated(problem: Any, callbacks: Sequence[Any] = (), **options: Any) -> Any:
    """The solution of what `setup` of an example returns, with a line of progress now and then."""
    from mirabelle import dg

    class Progress(dg.Alive):
        said = time.perf_counter()

        def step(self, solution: Any) -> None:
            if time.perf_counter() - self.said > PATIENCE:
                self.said = time.perf_counter()
                print(f"  {self.line(solution)}", flush=True)

        def start(self, solution: Any) -> None:
            pass

        def finish(self, solution: Any) -> None:
            pass

    semi, initial, tspan, given = problem
    callbacks = [Progress(interval=1), *callbacks]
    return dg.solve(semi, tspan, initial, callbacks=callbacks, **{**given, **options})


def profile(solution: Any, start: Sequence[float], end: Sequence[float], points: int = 2001) -> Any:
    """Positions on a line from one point to another, and the primitive fields there, in NumPy."""
    import numpy as np

    import mirabelle as mb

    share = np.linspace(0.0, 1.0, points)
    at = np.array([a + (b - a) * share for a, b in zip(start, end, strict=True)])
    fields = tuple(mb.HostArray(f) for f in solution.semi.sample(solution.u, at))
    made = [mb.to_numpy(mb.materialize(f)) for f in solution.semi.equations.primitive(fields)]
    return at, np.array(made)


def least(solution: Any) -> tuple[float, float]:
    """The smallest density and pressure at nodes."""
    import mirabelle as mb

    semi, u = solution.semi, solution.u
    return float(mb.min(u[0])), float(mb.min(semi.equations.pressure(semi.fields(u))))


def positive(solution: Any) -> Iterator[Quantity]:
    """That density and pressure are above zero at all nodes."""
    for name, value in zip(("density", "pressure"), least(solution), strict=True):
        yield Quantity(f"least {name}", value, 1e-99)


def rate(name: str, errors: Sequence[float], cells: Sequence[int], expected: float) -> Quantity:
    """The power of the cells' size with which errors fall between the two finest meshes."""
    power = math.log(errors[-2] / errors[-1]) / math.log(cells[-1] / cells[-2])
    return Quantity(f"rate of {name}", power, expected)
