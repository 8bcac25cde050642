"""What a simulation has come to: the state, the time, how many steps it took, and what one does with it.

A `Solution` is alive while `solve` runs, and is what callbacks are given. Afterwards it may be solved further.

>>> from mirabelle import dg
>>> semi = dg.Semidiscretization(dg.box(4, periodic=True), dg.Advection((1.0,)), dg.Solver(2))
>>> solution = dg.solve(semi, 0.1, lambda x, t: (1 + 0 * x[0],), dt=0.05)
>>> solution
Solution at t = 0.1 after 2 steps
>>> solution.errors(lambda x, t: (1 + 0 * x[0],))["u"].linf < 1e-12
True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, NamedTuple

import numpy as np

import mirabelle as mb
from mirabelle.dg.equations import Equations
from mirabelle.dg.spelled import Array, Axes, File, Semidiscretization
from mirabelle.dg.time.methods import RungeKutta
from mirabelle.dg.time.timers import Timers


class Errors(NamedTuple):
    """The error of a field: in L2, over the square root of the volume, and the largest at a node."""

    l2: float
    linf: float


@dataclass(eq=False)
class Solution:
    """A state `u` at the time `t` of a semidiscretization, after some `steps`.

    The step that comes next, were it not shortened to land on some time, is `dt`; `control` says what worked it
    out, and `history` are the last errors of steps, relative to the tolerance. `told` is what a signal said to
    this process of a divided problem, of which the others have not heard yet.

    >>> from mirabelle import dg
    >>> from mirabelle.dg.examples import advection
    >>> solution = advection.run(order=2, cells=4, cell="line", end=0.1)
    >>> isinstance(solution, dg.Solution), solution.t, solution.u.shape
    (True, 0.1, (1, 3, 4))
    """

    semi: Semidiscretization
    u: mb.AbstractArray
    t: float = 0.0
    steps: int = 0
    method: RungeKutta | None = None
    rhs_calls: int = 0
    rejected: int = 0
    interrupted: bool = False
    stopped: str = ""
    dt: float = 0.0
    control: str = ""
    history: tuple[float, float] = (1.0, 1.0)
    span: tuple[float, float] = (0.0, 0.0)
    told: str = ""
    timers: Timers = field(default_factory=Timers)

    @property
    def seconds(self) -> float:
        """All the seconds that its timers have counted."""
        return sum(self.timers.seconds.values(), start=0.0)

    @property
    def performance_index(self) -> float:
        """Seconds of steps, times threads, over nodes and right-hand sides."""
        name = "steps" if "steps" in self.timers.calls else "first step"
        if name not in self.timers.calls or self.method is None:
            return float("nan")
        work = self.u[0].size * self.method.stages * self.timers.calls[name]
        processes = self.semi.processes.size if hasattr(self.semi, "processes") else 1
        return float(self.timers.seconds[name] * mb.settings.num_threads * processes / work)

    @property
    def speaks(self) -> bool:
        """Whether this process is the one that prints, and writes what one writes for all."""
        return bool(getattr(self.semi, "speaks", True))

    def gather(self) -> None:
        """Wait for the other processes of a divided problem."""
        if hasattr(self.semi, "processes"):
            self.semi.processes.barrier()

    def request_stop(self, reason: str) -> None:
        """Ask, from a callback, that this step be the last one."""
        self.stopped = self.stopped or reason

    def errors(self, exact: Callable[[tuple[Any, ...], Any], Any]) -> dict[str, Errors]:
        """The errors of every field against a function exact(x, t), which returns the conservative fields."""
        return {name: Errors(*pair) for name, pair in self.semi.norms(self.u, exact, self.t).items()}

    def plot(self, name: str | None = None, **options: Any) -> Axes:
        """Draw a field: a line, colours, or a slice (`mirabelle.dg.output.plotting.plot`)."""
        from mirabelle.dg.output import plotting

        return plotting.plot(self, name, **options)

    def save(self, path: File) -> File:
        """Write a snapshot that a later run can start from (`mirabelle.dg.output.snapshots.save`)."""
        from mirabelle.dg.output import snapshots

        return snapshots.save(self, path)

    def report(self) -> str:
        """How cells are divided over processes, what is sent, and how long processes waited for it."""
        if not hasattr(self.semi, "report"):
            return f"{self.semi!r}, on one process"
        return str(self.semi.report())

    def summary(self) -> str:
        """A few lines to print at the end: what was computed, and where the time went."""
        counts = f"{self.rhs_calls} right-hand sides, {self.rejected} rejected steps"
        index = f"{self.performance_index:.3g} s x threads / node / right-hand side"
        return f"{self!r}\n{counts}, {index}\n{self.timers!r}"

    def __repr__(self) -> str:
        end = f", stopped: {self.stopped}" if self.stopped else ""
        return f"Solution at t = {self.t:.6g} after {self.steps} steps{end}"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


class BlowUp(ArithmeticError):
    """The solution is no longer finite, or no step is short enough; `solution` is the last good one.

    >>> from mirabelle import dg
    >>> issubclass(dg.BlowUp, Exception)
    True
    """

    def __init__(self, message: str, solution: Solution) -> None:
        super().__init__(message)
        self.solution = solution


def where_not_finite(semi: Any, u: Array) -> str:
    """Where a state is not finite first: the field, its value and the coordinates; empty if it is nowhere."""
    if hasattr(semi, "anywhere"):
        return str(semi.anywhere(where_not_finite, u))
    fields = mb.to_numpy(mb.materialize(u))
    return first_place(semi, dict(zip(semi.equations.names, fields, strict=True)), np.isfinite)


def where_not_positive(semi: Any, u: Array) -> str:
    """Where a quantity that the equations say is positive is not, of a state; empty if it is everywhere."""
    if hasattr(semi, "anywhere"):
        return str(semi.anywhere(where_not_positive, u))
    return first_place(semi, semi.equations.positive(semi.fields(u)), lambda values: values > 0)


def where_negative_speed(semi: Any, u: Array) -> str:
    """Where `max_speed` or `diffusivity` of equations that have them is negative; empty if they are nowhere."""
    if hasattr(semi, "anywhere"):
        return str(semi.anywhere(where_negative_speed, u))
    e, fields = semi.equations, semi.fields(u)
    if not isinstance(e, Equations):
        return ""
    found = {}
    if type(e).max_speed is not Equations.max_speed:
        axes = [tuple([float(a == b) for b in range(semi.dims)]) for a in range(semi.dims)]
        found = {
            f"{type(e).__name__}.max_speed along axis {axes.index(a)}": e.max_speed(fields, a) for a in axes
        }
    if e.second_order and type(e).diffusivity is not Equations.diffusivity:
        found[f"{type(e).__name__}.diffusivity"] = e.diffusivity(fields)
    return first_place(semi, found, lambda values: ~(values < 0))


def first_place(semi: Any, quantities: Mapping[str, Any], good: Callable[[np.ndarray], np.ndarray]) -> str:
    """Where values at the nodes (Np, K) of quantities are not good first, in words."""
    shape = semi.x[0].shape
    values = {k: np.broadcast_to(mb.to_numpy(mb.asarray(v)), shape) for k, v in quantities.items()}
    bad = {name: np.argwhere(~good(each)) for name, each in values.items()}
    for name, places in bad.items():
        if len(places):
            node, cell = (int(i) for i in places[0])
            at = ", ".join(f"{round(float(mb.to_numpy(x)[node, cell]), 12) + 0.0:.6g}" for x in semi.x)
            count = sum(map(len, bad.values()))
            value = values[name][node, cell]
            return f"{name} is {value:.6g} at x = ({at}), node {node} of cell {cell} (of {count} such values)"
    return ""
