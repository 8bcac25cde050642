"""Flows as users write them: a semidiscretization, a simulation, equations and terms of one's own."""

from typing import Any, assert_type

import mirabelle as mb
from mirabelle import dg

Fields = tuple[Any, ...]


def wave(x: Fields, t: Any) -> Fields:
    return (mb.sin(mb.pi * (x[0] - t)),)


class Decay(dg.Equations):
    """u_t + u_x = -u."""

    names = ("u",)
    dims = 1

    def flux(self, u: Fields, axis: int) -> Fields:
        return (u[0],)


@dg.volume_term.method
def _(form: dg.WeakForm, semi: dg.Semidiscretization, u: mb.RefArray, gradients: Any) -> mb.AbstractArray:
    return 0.0 * u


def main() -> None:
    semi = dg.Semidiscretization(
        dg.box(8, upper=2.0, periodic=True), dg.Advection((1.0,)), dg.Solver(3, surface_flux=dg.upwind)
    )
    assert_type(semi, dg.Semidiscretization)
    found = dg.Analysis(wave, interval=10, show=False)
    solution = dg.solve(semi, (0.0, 0.1), wave, cfl=0.5, callbacks=[found, lambda s: s.t], method=dg.RK4())
    assert_type(solution, dg.Solution)
    assert_type(solution.u, mb.AbstractArray)
    assert_type(solution.errors(wave)["u"].l2, float)
    assert_type(semi.rhs(semi.state(wave)), mb.AbstractArray)
    assert_type(dg.load(dg.save(solution, "a.h5"), semi), dg.Solution)
    print(Decay().names, found.records)
