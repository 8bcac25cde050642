"""How long a step is: fixed, from the speed of waves, or from an estimate of the error.

A control says which program a step runs, and what the numbers mean that are read of it, its *verdict*. How long
a step is that waves limit is known within it: the largest speed of all processes is on its way while the first
right-hand side is computed.

>>> from mirabelle.dg.time.methods import RK4
>>> control_of(RK4(), 0.1, None, None, 1)
FixedStep(size=0.1, interval=1)
>>> ErrorStep(1e-6).accepts(3.0), CflStep(0.5).accepts(0.0)
(False, False)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import mirabelle as mb
from mirabelle.dg.spelled import Array, Time
from mirabelle.dg.time.methods import Embedded, RungeKutta
from mirabelle.dg.time.solution import Solution

# What a step starts from and ends with: the state, and for embedded methods the right-hand side there.
Carry = tuple[Any, ...]


@dataclass(frozen=True)
class FixedStep:
    """Steps of one length. The others differ from it in what they override."""

    size: float
    interval: int = 1
    early = True  # is it the state before the step that the verdict is about?

    def begin(self, semi: Any, u: Array, t: Time) -> Carry:
        """What the first step starts from."""
        return (u,)

    def advance(
        self, semi: Any, method: Any, carry: Carry, t: Time, span: Any, judged: bool
    ) -> tuple[Carry, Any]:
        """One step, at most so long: what the next one starts from, and the verdict.

        That is the length that steps may have, and the one that this has: none where the state was not finite.
        """
        dt, verdict = span, None
        if judged:
            allowed = self.allowed(semi, method, carry[0])
            dt = mb.where(allowed >= span * (1 - 1e-9), span, allowed)  # (not to leave a hair)
            verdict = mb.materialize(mb.stack([allowed, dt]))
            dt = verdict[1]
        return (method.step(semi.rhs, carry[0], t, dt, semi.limit),), verdict

    def allowed(self, semi: Any, method: Any, u: Array) -> Any:
        """The longest step from a state, 0 where that is not finite."""
        return mb.where(all_finite(semi, u), self.size, 0.0)

    def first(self, semi: Any, method: Any, carry: Carry, span: float) -> float:
        """The length of the first step, where it is known before."""
        return math.inf

    def accepts(self, verdict: float) -> bool:
        """Whether the step counts."""
        return verdict > 0

    def after(self, verdict: float, dt: float, solution: Solution) -> float:
        """The length of the next step, after this verdict on one of length dt."""
        return verdict


class CflStep(FixedStep):
    """Steps of `size` times what waves and diffusion allow, worked out anew every `interval` steps."""

    def allowed(self, semi: Any, method: Any, u: Array) -> Any:
        return semi.max_dt(u, self.size, method)


class ErrorStep(FixedStep):
    """Steps whose estimated error is about `size` (relative to the state, or absolute where that is below one).

    Söderlind, Wang: Adaptive time-stepping and computational stability, J. Comput. Appl. Math. 185 (2006),
    https://doi.org/10.1016/j.cam.2005.03.008.
    """

    early = False

    def begin(self, semi: Any, u: Array, t: Time) -> Carry:
        return (u, mb.materialize(semi.rhs(u, t)))

    def advance(
        self, semi: Any, method: Any, carry: Carry, t: Time, span: Any, judged: bool
    ) -> tuple[Carry, Any]:
        u, k, error = method.attempt(semi.rhs, *carry, t, span, semi.limit)
        norm = self.norm(semi, error, mb.maximum(mb.abs(carry[0]), mb.abs(u)))
        return (u, k), mb.stack([mb.where(all_finite(semi, u), norm, mb.nan), span])

    def norm(self, semi: Any, values: Array, magnitude: Any) -> Any:
        """The root mean square of values in units of the tolerance."""
        return mb.sqrt(mean_square(semi, values / (self.size * (1 + magnitude))))

    def first(self, semi: Any, method: Any, carry: Carry, span: float) -> float:
        # A hundredth of the time in which the state changes, as Hairer, Nørsett and Wanner start.
        u, k = carry
        state, slope = (float(self.norm(semi, v, mb.abs(u))) for v in (u, k))
        return min(span, 0.01 * state / slope if min(state, slope) > 1e-5 else 1e-5 * span)

    def accepts(self, verdict: float) -> bool:
        return verdict <= 1.0

    def after(self, verdict: float, dt: float, solution: Solution) -> float:
        method = solution.method
        if not (math.isfinite(verdict) and isinstance(method, Embedded)):
            return 0.2 * dt
        errors = (max(verdict, 1e-10), *solution.history)
        order = min(method.order, method.embedded_order) + 1
        factor = math.prod(e ** (-beta / order) for e, beta in zip(errors, method.control, strict=True))
        after = dt * (1 + math.atan(0.9 * factor - 1))  # a smooth limit keeps the sequence of steps smooth
        if not self.accepts(verdict):
            return after
        if dt < solution.dt:  # shortened in order to land somewhere: that says little of the next one
            return max(after, solution.dt)
        solution.history = errors[:2]
        return after


def of_all(semi: Any, value: Any, op: str) -> Any:
    """A number of this process's part of a problem combined with those of the others, if there are any."""
    return semi.of_all(value, op) if getattr(semi, "comm", None) is not None else value


def all_finite(semi: Any, u: Array) -> Any:
    """Whether a state is finite everywhere, on all processes."""
    return of_all(semi, mb.all(mb.isfinite(u)), "all")


def mean_square(semi: Any, values: Array) -> Any:
    """The mean of the squares of all values (m, Np, K) of a problem."""
    if getattr(semi, "comm", None) is None:
        return mb.mean(values * values)
    return semi.of_all(mb.sum(values * values), "sum") / (values.shape[0] * values.shape[1] * semi.part.total)


def control_of(method: RungeKutta, dt: Any, cfl: Any, tolerance: Any, interval: int) -> FixedStep:
    """The control that was asked for, by one of dt, cfl and tolerance."""
    kinds = {"dt": (FixedStep, dt), "cfl": (CflStep, cfl), "tolerance": (ErrorStep, tolerance)}
    given = [name for name, (_, value) in kinds.items() if value is not None]
    if len(given) != 1:
        what = f"{' and '.join(given)} are given together" if given else "nothing says how long a step is"
        raise ValueError(f"solve: {what}. Give one of them: solve(..., cfl=0.8), dt=1e-3 or tolerance=1e-6.")
    kind, value = kinds[given[0]]
    if not (isinstance(value, Real) and 0 < float(value) < math.inf and interval >= 1):
        raise ValueError(
            f"solve: {given[0]}={value!r} and cfl_interval={interval!r} have to be positive numbers: "
            f"solve(..., {given[0]}={ {'dt': 1e-3, 'cfl': 0.8, 'tolerance': 1e-6}[given[0]] }, cfl_interval=1)."
        )
    if tolerance is not None and not isinstance(method, Embedded):
        raise ValueError(
            f"solve: {type(method).__name__} does not estimate its error, which tolerance= needs. "
            "Take an embedded method: solve(..., method=dg.RDPK3SpFSAL35(), tolerance=1e-6)."
        )
    return kind(float(value), 1 if tolerance is not None else int(interval))
