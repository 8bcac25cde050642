"""Explicit Runge-Kutta methods, each one function of arrays: a whole step compiles to one program.

A method needs nothing but sums and products, so that it steps numbers as well, and tells its own stability
polynomial. An embedded one estimates its error, too.

>>> u, k, error = DormandPrince54().attempt(lambda u, t: -u, 1.0, -1.0, 0.0, 0.1)
>>> round(u, 6), k == -u, abs(error) < 1e-7
(0.904837, True, True)
>>> round(RK4().stability(-1.0), 12)
0.375
>>> for method in CarpenterKennedy54, SSPRK3, RK4, BogackiShampine32, DormandPrince54, RDPK3SpFSAL35:
...     print(method.__name__, method.order, method.stages)
CarpenterKennedy54 4 5
SSPRK3 3 3
RK4 4 4
BogackiShampine32 3 3
DormandPrince54 5 6
RDPK3SpFSAL35 3 5
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mirabelle.dg.spelled import Array, Time

# A function of the state and the time.
Rhs = Callable[[Any, Any], Array]
# What comes of a step, the right-hand side there, and an estimate of the error.
Attempt = tuple[Array, Array, Array]


def unlimited(u: Array, t: Time) -> Array:
    """Leave a stage as it is."""
    return u


@dataclass(frozen=True)
class RungeKutta:
    """An explicit method of some `order`, which calls the right-hand side `stages` times a step."""

    order: ClassVar[int]
    stages: ClassVar[int]

    def step(self, rhs: Rhs, u: Array, t: Time, dt: Time, limit: Rhs = unlimited) -> Array:
        """The state at t + dt; `limit(u, t)` is applied to every stage."""
        raise NotImplementedError(f"{type(self).__name__} has to define `step(self, rhs, u, t, dt, limit)`.")

    def stability(self, z: Any) -> Any:
        """The stability polynomial: what a step of length one makes of 1, for u' = z u."""
        return self.step(lambda u, t: z * u, 1.0 + 0 * z, 0.0, 1.0)


class CarpenterKennedy54(RungeKutta):
    """Order four in five stages, with one array beside the state; one kernel updates both.

    Carpenter, Kennedy: Fourth-order 2N-storage Runge-Kutta schemes, NASA TM-109112 (1994).

    >>> from mirabelle import dg
    >>> method = dg.CarpenterKennedy54()
    >>> method.order, method.stages, round(dg.stable_dt_factor([-1.0], method), 2)
    (4, 5, 4.66)
    """

    order, stages = 4, 5
    rows = (
        (0.0, 1432997174477 / 9575080441755),
        (-567301805773 / 1357537059087, 5161836677717 / 13612068292357),
        (-2404267990393 / 2016746695238, 1720146321549 / 2090206949498),
        (-3550918686646 / 2091501179385, 3134564353537 / 4481467310338),
        (-1275806237668 / 842570457699, 2277821191437 / 14882151754819),
    )

    def step(self, rhs: Rhs, u: Array, t: Time, dt: Time, limit: Rhs = unlimited) -> Array:
        k, slope, c, now = None, 0.0, 0.0, t
        for a, b in self.rows:
            f = rhs(u, now)
            k = f if k is None else a * k + f
            slope = a * slope + 1.0  # the times of stages are what the method makes of t' = 1
            c = c + b * slope
            now = t + c * dt
            u = limit(u + (b * dt) * k, now)
        return u


class SSPRK3(RungeKutta):
    """Order three in three stages, each an average of Euler steps: what bounds those, bounds this.

    Shu, Osher: Efficient implementation of essentially non-oscillatory shock-capturing schemes, J. Comput.
    Phys. 77 (1988), https://doi.org/10.1016/0021-9991(88)90177-5.

    >>> from mirabelle import dg
    >>> method = dg.SSPRK3()
    >>> method.order, method.stages, round(dg.stable_dt_factor([-1.0], method), 2)
    (3, 3, 2.51)
    """

    order, stages = 3, 3

    def step(self, rhs: Rhs, u: Array, t: Time, dt: Time, limit: Rhs = unlimited) -> Array:
        v = limit(u + dt * rhs(u, t), t + dt)
        v = limit(0.75 * u + 0.25 * (v + dt * rhs(v, t + dt)), t + 0.5 * dt)
        return limit((1 / 3) * u + (2 / 3) * (v + dt * rhs(v, t + 0.5 * dt)), t + dt)


def combination(weights: Sequence[float], k: Sequence[Array]) -> Array:
    """The sum of those k whose weight is not zero."""
    terms = [w * each for w, each in zip(weights, k, strict=True) if w]
    return sum(terms[1:], start=terms[0])


class RK4(RungeKutta):
    """The classical method of order four (Kutta 1901).

    >>> from mirabelle import dg
    >>> method = dg.RK4()
    >>> method.order, method.stages, round(dg.stable_dt_factor([-1.0], method), 2)
    (4, 4, 2.79)
    """

    order, stages = 4, 4

    def step(self, rhs: Rhs, u: Array, t: Time, dt: Time, limit: Rhs = unlimited) -> Array:
        k = [rhs(u, t)]
        for c in (0.5, 0.5, 1.0):
            now = t + c * dt
            k.append(rhs(limit(u + (c * dt) * k[-1], now), now))
        return limit(u + dt * combination((1 / 6, 1 / 3, 1 / 3, 1 / 6), k), t + dt)


class Embedded(RungeKutta):
    """A method that estimates its own error by a second one, of `embedded_order`, from the same stages.

    Its last stage is the first one of the next step: `attempt` takes k = f(u, t), and hands the next one on.
    `control` are the exponents of the step size controller.
    """

    embedded_order: ClassVar[int]
    control: ClassVar[tuple[float, float, float]] = (0.6, -0.2, 0.0)

    def attempt(self, rhs: Rhs, u: Array, k: Array, t: Time, dt: Time, limit: Rhs = unlimited) -> Attempt:
        """The next state, the right-hand side there, and an estimate of the error."""
        name = type(self).__name__
        raise NotImplementedError(f"{name} has to define `attempt(self, rhs, u, k, t, dt, limit)`.")

    def step(self, rhs: Rhs, u: Array, t: Time, dt: Time, limit: Rhs = unlimited) -> Array:
        return self.attempt(rhs, u, rhs(u, t), t, dt, limit)[0]


class Pair(Embedded):
    """An embedded pair given by its tableau: rows `a` (the last are the weights), and the `error` weights."""

    a: ClassVar[Sequence[Sequence[float]]]
    error: ClassVar[Sequence[float]]

    def attempt(self, rhs: Rhs, u: Array, k: Array, t: Time, dt: Time, limit: Rhs = unlimited) -> Attempt:
        ks, stage = [k], u
        for row in self.a:
            now = t + sum(row) * dt
            stage = limit(u + dt * combination(row, ks), now)
            ks.append(rhs(stage, now))
        return stage, ks[-1], dt * combination(self.error, ks)


class BogackiShampine32(Pair):
    """Order three with an error of order two, for coarse tolerances.

    Bogacki, Shampine: A 3(2) pair of Runge-Kutta formulas, Appl. Math. Lett. 2 (1989),
    https://doi.org/10.1016/0893-9659(89)90079-7.

    >>> from mirabelle import dg
    >>> method = dg.BogackiShampine32()
    >>> method.order, method.embedded_order, method.stages
    (3, 2, 3)
    """

    order, embedded_order, stages = 3, 2, 3
    a = ((1 / 2,), (0.0, 3 / 4), (2 / 9, 1 / 3, 4 / 9))
    error = (-5 / 72, 1 / 12, 1 / 9, -1 / 8)


class DormandPrince54(Pair):
    """Order five with an error of order four, for fine tolerances.

    Dormand, Prince: A family of embedded Runge-Kutta formulae, J. Comput. Appl. Math. 6 (1980),
    https://doi.org/10.1016/0771-050X(80)90013-3.

    >>> from mirabelle import dg
    >>> method = dg.DormandPrince54()
    >>> method.order, method.embedded_order, method.stages
    (5, 4, 6)
    """

    order, embedded_order, stages = 5, 4, 6
    a = (
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    )
    error = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


class RDPK3SpFSAL35(Embedded):
    """Order three in five stages of few arrays, made for discontinuous Galerkin methods under error control.

    Ranocha, Dalcin, Parsani, Ketcheson: Optimized Runge-Kutta methods with automatic step size control for
    compressible computational fluid dynamics, Commun. Appl. Math. Comput. 4 (2022),
    https://doi.org/10.1007/s42967-021-00159-w.

    >>> from mirabelle import dg
    >>> method = dg.RDPK3SpFSAL35()
    >>> method.order, method.embedded_order, method.stages
    (3, 2, 5)
    """

    order, embedded_order, stages = 3, 2, 5
    control = (0.70, -0.23, 0.0)
    # The weights of the stage, the sum of stages, the first state and the slope; and of the stage in the sum.
    rows = (
        (0.0, 1.0, 0.0, 0.2300298624518076224, 0.0),
        (0.2587771979725733308, 0.5528354909301389892, 0.0, 0.3021434166948288809, 0.3407655879334525365),
        (-0.1324380360140723383, 0.6731871608203061825, 0.0, 0.8025606185416310938, 0.3414382655003386207),
        (
            0.05056033948190826046,
            0.2803103963297672408,
            0.2752563273304676381,
            0.4362158943603440931,
            0.7229275366787987420,
        ),
        (0.5670532000739313813, 0.5521525447020610386, -0.8950526174674033822, 0.1129272530455059130, 0.0),
    )
    c = (0.0, 0.2300298624518076224, 0.4050046072094990912, 0.8947822893693433545, 0.7235136928826589010, 1.0)
    error = (
        0.1147935971023541172 - 0.09484166705035703392,
        0.08933442853113315593 - 0.1726371339430353767,
        0.4355871025008616992 - 0.3998243189084371024,
        0.2473576188201451147 - 0.1718016807580178451,
        0.1129272530455059130 - 0.05881914422155740301,
        -0.1020760551185952389,
    )

    def attempt(self, rhs: Rhs, u: Array, k: Array, t: Time, dt: Time, limit: Rhs = unlimited) -> Attempt:
        stage, total, error = u, u, self.error[0] * k
        for (*weights, d), c, e in zip(self.rows, self.c[1:], self.error[1:], strict=True):
            total = total + d * stage if d else total
            now = t + c * dt
            stage = limit(combination(weights, (stage, total, u, dt * k)), now)
            k = rhs(stage, now)
            error = error + e * k
        return stage, k, dt * error


def stable_dt_factor(eigenvalues: Sequence[complex] | np.ndarray, method: RungeKutta) -> float:
    """The largest dt for which no eigenvalue of the right-hand side is amplified, |R(dt lambda)| <= 1.

    Parameters
    ----------
    eigenvalues : array
        Those of the right-hand side, complex numbers.
    method : RungeKutta
        How steps are made.

    Returns
    -------
    float
        A length of time; infinite where all eigenvalues are zero.

    Examples
    --------
    >>> from mirabelle import dg
    >>> round(dg.stable_dt_factor([-1.0, -4.0], dg.RK4()) * 4, 4)     # the negative real axis, to -2.7853
    2.7853
    >>> round(dg.stable_dt_factor([2j, -2j], dg.SSPRK3()) * 2, 4)     # the imaginary axis
    1.7321
    """
    values = np.asarray(eigenvalues, dtype=complex).ravel()
    fastest = float(np.abs(values).max(initial=0.0))
    if fastest == 0:
        return float("inf")

    def stable(dt: float) -> bool:
        return bool(np.all(np.abs(method.stability(dt * values)) <= 1 + 1e-9))

    # The stable set need not be an interval: walk to its first end, which explicit methods have, then bisect.
    low, pace = 0.0, 0.05 / fastest
    while stable(low + pace):
        low += pace
    for _ in range(40):
        pace /= 2
        low += pace if stable(low + pace) else 0.0
    return low
