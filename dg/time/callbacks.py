"""What is done between steps: progress, errors and integrals, probes, a test for steady state.

A callback is an object with an `interval` (in steps) or a `dt` (in time), and the methods start, step and
finish, each of which is given the solution; or any function of a solution, called after each step.

>>> from mirabelle import dg
>>> semi = dg.Semidiscretization(dg.box(4, periodic=True), dg.Advection((1.0,)), dg.Solver(3))
>>> analysis = Analysis(dt=0.05, show=False)
>>> _ = dg.solve(semi, 0.1, lambda x, t: (x[0] * (1 - x[0]),), cfl=0.9, callbacks=[analysis])
>>> [round(record["t"], 12) for record in analysis.records], abs(analysis.records[-1]["drift_u"]) < 1e-14
([0.0, 0.05, 0.1], True)
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from typing import Any, cast

import numpy as np

import mirabelle as mb
from mirabelle.dg.spelled import ArrayLike, File
from mirabelle.dg.time.solution import Solution


class Callback:
    """Called every `interval` steps or at the multiples of `dt`, on which steps land; it does nothing."""

    def __init__(self, interval: int | None = None, dt: float | None = None) -> None:
        self.interval, self.dt, self.name = interval, dt, type(self).__name__
        if (interval is None) == (dt is None) or (interval or dt or 0) <= 0:
            raise ValueError(
                f"{self.name}: say how often, in steps or in time, and not both: "
                f"{self.name}(..., interval=10) or {self.name}(..., dt=0.1)."
            )

    def start(self, solution: Solution) -> None:
        """Before the first step."""

    def step(self, solution: Solution) -> None:
        """After a step."""

    def finish(self, solution: Solution) -> None:
        """After the last step, also when it was the last one because somebody asked to stop."""

    def abort(self, solution: Solution) -> None:
        """In place of `finish` when an error ends the simulation: leave nothing open, overwrite nothing."""


def as_callback(given: Any) -> Callback:
    """A callback as it is; an object that has a `step`, or a function, made one.

    >>> as_callback(print).name, as_callback(print).interval
    ('print', 1)
    """
    if isinstance(given, Callback):
        return given
    if isinstance(given, type) or (not hasattr(given, "step") and not callable(given)):
        raise TypeError(
            f"solve: {given!r} is no callback: it has no method `step` and cannot be called, or it "
            "is a class. Give a function of the solution, or an object such as dg.Alive(interval=100)."
        )
    dt = getattr(given, "dt", None)
    made = Callback(getattr(given, "interval", None if dt else 1), dt)
    made.name = getattr(given, "__name__", type(given).__name__)
    made.step = given  # type: ignore[method-assign]
    for name in ("start", "step", "finish", "abort"):
        setattr(made, name, getattr(given, name, getattr(made, name)))
    return made


class Alive(Callback):
    """Shows that the simulation goes on: a progress bar in a terminal with `rich`, else a line now and then.

    Parameters
    ----------
    interval : int or None
        Every so many steps.
    dt : float or None
        Every so often in the time of the simulation.

    Examples
    --------
    >>> from mirabelle import dg
    >>> dg.Alive(interval=100).interval
    100
    """

    bar: Any = None
    printed = -1

    def line(self, solution: Solution) -> str:
        """One line about the solution now.

        >>> Alive(interval=1).line(Solution(None, None, t=0.25, steps=100, dt=0.01, span=(0.0, 1.0)))
        'step 100, t = 0.25, dt = 0.01, 25.0%, index nan'
        """
        begin, end = solution.span
        done = f"{(solution.t - begin) / ((end - begin) or 1.0):.1%}, index {solution.performance_index:.3g}"
        return f"step {solution.steps}, t = {solution.t:.6g}, dt = {solution.dt:.3g}, {done}"

    def start(self, solution: Solution) -> None:
        if sys.stdout.isatty() and solution.speaks:
            try:
                from rich.progress import Progress
            except ImportError:
                return
            self.bar = Progress(transient=True)
            self.bar.start()
            self.task = self.bar.add_task("", total=solution.span[1] - solution.span[0])

    def step(self, solution: Solution) -> None:
        if not solution.speaks:
            return
        if self.bar is None:
            print(self.line(solution), flush=True)
            self.printed = solution.steps
        else:
            done = solution.t - solution.span[0]
            self.bar.update(self.task, completed=done, description=self.line(solution))

    def finish(self, solution: Solution) -> None:
        self.abort(solution)
        if self.printed != solution.steps:
            self.step(solution)

    def abort(self, solution: Solution) -> None:
        if self.bar is not None:
            self.bar.stop()
            self.bar = None


class Analysis(Callback):
    """Errors against an exact solution, conserved integrals and their drift, entropy, performance index.

    Each time is a dictionary in `records`, printed unless `show` is false, and a row of the CSV file at `path`,
    to which rows are added if it is there already.

    Parameters
    ----------
    exact : callable or None
        The exact solution, a function of `(x, t)`.
    interval : int or None
        Every so many steps.
    dt : float or None
        Every so often in the time of the simulation.
    path : str, path or None
        A CSV file that rows are added to.
    show : bool, default True
        Print them, too.

    Examples
    --------
    >>> from mirabelle import dg
    >>> from mirabelle.dg.examples import advection
    >>> analysis = dg.Analysis(advection.exact, interval=10, show=False)
    >>> solution = advection.run([analysis], order=2, cells=4, cell="line", end=0.1)
    >>> sorted(analysis.records[-1])[:3]
    ['drift_u', 'dt', 'entropy']
    """

    def __init__(
        self,
        exact: Callable[[tuple[Any, ...], Any], Any] | None = None,
        interval: int | None = None,
        dt: float | None = None,
        path: File | None = None,
        show: bool = True,
    ) -> None:
        super().__init__(interval, dt)
        self.exact, self.path, self.show = exact, path, show
        self.records: list[dict[str, float]] = []
        self.initial: dict[str, float] = {}

    def start(self, solution: Solution) -> None:
        self.records, self.initial = [], {}
        self.step(solution)

    def step(self, solution: Solution) -> None:
        semi, equations = solution.semi, solution.semi.equations
        integrals = dict(zip(equations.names, mb.to_numpy(semi.integrate(solution.u)).tolist(), strict=True))
        self.initial = self.initial or integrals
        record: dict[str, float] = {
            "step": solution.steps,
            "t": solution.t,
            "dt": solution.dt,
            "index": solution.performance_index,
            "entropy": float(semi.integrate(cast(Any, equations.entropy(semi.fields(solution.u))))),
        }
        errors = solution.errors(self.exact) if self.exact else {}
        for name, integral in integrals.items():
            record |= {f"integral_{name}": integral, f"drift_{name}": integral - self.initial[name]}
            record |= {f"{kind}_{name}": e for kind, e in errors[name]._asdict().items()} if errors else {}
        self.records.append(record)
        if self.show and solution.speaks:
            print(self.table(record), flush=True)
        if self.path is not None and solution.speaks:
            with open(self.path, "a", newline="") as file:
                writer = csv.DictWriter(file, list(record))
                if not file.tell():
                    writer.writeheader()
                writer.writerow(record)

    def finish(self, solution: Solution) -> None:
        if self.records[-1]["step"] != solution.steps:
            self.step(solution)

    def table(self, record: dict[str, float]) -> str:
        """A record as lines to print.

        >>> print(Analysis(interval=1).table(dict(step=3, t=0.5, entropy=2.0, integral_u=1.0, drift_u=0.0)))
        step 3  t 0.5  entropy 2
             integral       drift
        u           1           0
        """
        kinds = [k for k in ("integral", "drift", "l2", "linf") if any(c.startswith(f"{k}_") for c in record)]
        names = [c.removeprefix("integral_") for c in record if c.startswith("integral_")]
        width = max(map(len, names))
        scalars = [c for c in record if c.partition("_")[0] not in kinds]
        lines = ["  ".join(f"{c} {record[c]:.8g}" for c in scalars)]
        lines += [" " * width + "".join(f" {kind:>11}" for kind in kinds)]
        lines += [f"{n:{width}}" + "".join(f" {record[f'{k}_{n}']:11.5g}" for k in kinds) for n in names]
        return "\n".join(lines)


class SteadyState(Callback):
    """Stops the simulation when no node changes by more than `residual` in a unit of time.

    Parameters
    ----------
    residual : float
        The largest rate of change of a steady state.
    interval : int or None
        Look every so many steps.
    dt : float or None
        Look every so often in the time of the simulation.

    Examples
    --------
    >>> from mirabelle import dg
    >>> dg.SteadyState(1e-8, interval=10).residual
    1e-08
    """

    def __init__(self, residual: float, interval: int | None = None, dt: float | None = None) -> None:
        super().__init__(interval, dt)
        self.residual = residual
        self.residuals: list[float] = []

    def step(self, solution: Solution) -> None:
        semi = solution.semi
        self.residuals.append(float(mb.max(mb.abs(semi.rhs(solution.u, semi.scalar(solution.t))))))
        if self.residuals[-1] < self.residual:
            solution.request_stop(f"steady, the residual is {self.residuals[-1]:.3g}")


class Probe(Callback):
    """Time series of all fields at points (d, n): `times`, and `values` of shape (times, fields, n).

    Parameters
    ----------
    points : array (d, n)
        Where the fields are noted.
    interval : int or None
        Every so many steps.
    dt : float or None
        Every so often in the time of the simulation.

    Examples
    --------
    >>> from mirabelle import dg
    >>> from mirabelle.dg.examples import advection
    >>> probe = dg.Probe([[0.25, 0.5]], interval=1)
    >>> solution = advection.run([probe], order=2, cells=4, cell="line", end=0.1)
    >>> probe.values.shape[1:], len(probe.times) == len(probe.values)
    ((1, 2), True)
    """

    def __init__(self, points: ArrayLike, interval: int | None = None, dt: float | None = None) -> None:
        super().__init__(interval, dt)
        self.points = np.asarray(points, dtype=float)
        self.times: list[float] = []
        self.samples: list[np.ndarray] = []

    @property
    def values(self) -> np.ndarray:
        """What was sampled so far."""
        return np.array(self.samples)

    def start(self, solution: Solution) -> None:
        self.step(solution)
        outside = np.flatnonzero(np.isnan(self.samples[-1]).any(0))
        if outside.size:
            raise ValueError(
                f"Probe: {self.points[:, outside[0]].tolist()} lies outside of the mesh, as {outside.size} of "
                f"{self.points.shape[1]} points do. Points are (d, n), one row a coordinate."
            )

    def step(self, solution: Solution) -> None:
        self.times.append(solution.t)
        self.samples.append(np.asarray(solution.semi.sample(solution.u, self.points)))
