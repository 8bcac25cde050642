"""The exact solution of the Riemann problem of an ideal gas, in NumPy.

E. F. Toro, Riemann Solvers and Numerical Methods for Fluid Dynamics, chapter 4, doi:10.1007/b79761.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

State = tuple[float, float, float]  # density, velocity, pressure


@dataclass(frozen=True)
class Riemann:
    """Two states that meet at x = 0 when t = 0.

    >>> sod = Riemann((1.0, 0.0, 1.0), (0.125, 0.0, 0.1))
    >>> round(sod.pressure, 7), round(sod.velocity, 7), round(sod.front(1), 7)
    (0.3031302, 0.9274526, 1.7521557)
    >>> [round(float(q), 7) for q in sod.at(1.0)]
    [0.2655737, 0.9274526, 0.3031302]
    """

    left: State
    right: State
    gamma: float = 1.4

    def sound(self, state: State) -> float:
        """The speed of sound of a state."""
        return (self.gamma * state[2] / state[0]) ** 0.5

    def _push(self, p: float, state: State) -> float:
        """By how much the velocity changes through the wave between a state and the pressure in the middle."""
        g, (rho, _, before) = self.gamma, state
        if p > before:
            return (p - before) * (2 / (rho * ((g + 1) * p + (g - 1) * before))) ** 0.5
        return 2 * self.sound(state) / (g - 1) * ((p / before) ** ((g - 1) / (2 * g)) - 1)

    @cached_property
    def pressure(self) -> float:
        """In the middle: where the sum of both pushes and the difference of velocities vanish, which rises."""
        low, high = 1e-300, 1e4 * max(self.left[2], self.right[2])
        for _ in range(2000):
            p = (low * high) ** 0.5
            push = self._push(p, self.left) + self._push(p, self.right) + self.right[1] - self.left[1]
            low, high = (p, high) if push < 0 else (low, p)
            if high <= low * (1 + 1e-15):
                break
        return high

    @property
    def velocity(self) -> float:
        """In the middle, which is that of the contact."""
        pushes = self._push(self.pressure, self.right) - self._push(self.pressure, self.left)
        return 0.5 * (self.left[1] + self.right[1] + pushes)

    def density(self, side: int) -> float:
        """Between the contact and the wave on a side (0 or 1)."""
        g, (rho, _, before) = self.gamma, (self.left, self.right)[side]
        q = self.pressure / before
        k = (g - 1) / (g + 1)
        return float(rho * ((q + k) / (k * q + 1) if q > 1 else q ** (1 / g)))

    def front(self, side: int) -> float:
        """The speed of the shock, or of the head of the rarefaction."""
        g, sign, state = self.gamma, 2 * side - 1, (self.left, self.right)[side]
        q = self.pressure / state[2]
        faster = ((g + 1) / (2 * g) * q + (g - 1) / (2 * g)) ** 0.5 if q > 1 else 1.0
        return state[1] + sign * faster * self.sound(state)

    def tail(self, side: int) -> float:
        """The speed of the end of the rarefaction towards the contact; of a shock, its own."""
        state = (self.left, self.right)[side]
        if self.pressure > state[2]:
            return self.front(side)
        return self.velocity + (2 * side - 1) * self.sound((self.density(side), 0.0, self.pressure))

    def at(self, speed: Any) -> np.ndarray:
        """Density, velocity and pressure where x / t is `speed`."""
        shape, g = np.shape(speed), self.gamma
        speed = np.ravel(speed).astype(float)
        out = np.empty((3, speed.size))
        for side, state in enumerate((self.left, self.right)):
            sign, (rho, v, p), c = 2 * side - 1, state, self.sound(state)
            here = (speed >= self.velocity) == bool(side)
            outside = sign * speed > sign * self.front(side)
            middle = sign * speed <= sign * self.tail(side)
            # In a fan v - sign c is x / t, and v + 2 sign c / (g - 1) what it is outside.
            sonic = np.maximum((2 * c + (g - 1) * sign * (speed - v)) / (g + 1), 0.0)
            fan = [rho * (sonic / c) ** (2 / (g - 1)), speed - sign * sonic]
            fan.append(p * (sonic / c) ** (2 * g / (g - 1)))
            inner = [self.density(side), self.velocity, self.pressure]
            for i, (a, b, f) in enumerate(zip(state, inner, fan, strict=True)):
                out[i][here] = np.where(outside, a, np.where(middle, b, f))[here]
        return out.reshape(3, *shape)
