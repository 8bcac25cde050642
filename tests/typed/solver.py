"""A solver's states, rates and steps are arrays; equations of one's own have types, too."""

from dataclasses import dataclass
from typing import assert_type

import mirabelle as mb
from mirabelle import dg

Fields = tuple[mb.AbstractArray, ...]

gas = dg.CompressibleEuler(2)
stream = gas.conservative((1.4, 3.0, 0.0, 1.0))
semi = dg.Semidiscretization(dg.box((4, 4), periodic=True), gas, dg.Solver(3))
u = semi.state(lambda x, t: stream)
assert_type(semi.rhs(u), mb.AbstractArray)
assert_type(semi.max_dt(u, 0.5, dg.RK4()), mb.AbstractArray)
assert_type(dg.solve(semi, 0.1, lambda x, t: stream, cfl=0.5).u, mb.AbstractArray)
assert_type(semi.integrate(u), mb.AbstractArray)
assert_type(dg.RK4().step(lambda v, t: -v, u, 0.0, 0.1), mb.AbstractArray)
assert_type(gas.pressure(stream), mb.AbstractArray)
assert_type(semi.weights, mb.AbstractArray)


@dataclass(frozen=True)
class Traffic(dg.Equations):
    limit: float = 1.0
    dims = 1
    names = ("density",)

    def flux(self, u: Fields, axis: int) -> Fields:
        return (self.limit * u[0] * (1 - u[0]),)

    def max_speed(self, u: Fields, normal: Fields) -> mb.AbstractArray:
        return mb.abs(self.limit * (1 - 2 * u[0]) * normal[0])
