"""Compressible Navier-Stokes with a source that makes a given flow the solution (a manufactured solution).

P. J. Roache, J. Fluids Eng. 124, 2002, doi:10.1115/1.1436090. The source is what dual numbers say.
"""

import functools
import math
from collections.abc import Callable

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg.examples import Arrays, Cells, Fields, Problem, Time, report, solving

GAS = dg.CompressibleNavierStokes(2, prandtl=0.72, viscosity=0.02)
Pointwise = Callable[[Fields], Fields]  # of (x1, x2, t)


def exact(x: Fields, t: Time, drift: float = 1.0) -> Fields:
    """Waves of density, velocity and pressure; without drift the flow is at rest where y = 0 and y = 2."""
    rho = 2 + 0.1 * mb.sin(math.pi * (x[0] + x[1]) - t)
    v = drift + 0.1 * mb.cos(math.pi * x[0]) * mb.sin(math.pi * x[1]) * mb.cos(t)
    return GAS.conservative((rho, v, v, 2 + 0.1 * mb.cos(math.pi * (x[0] - x[1]))))


def derivative(f: Pointwise, along: int) -> Pointwise:
    """The derivative of a function of a point along one of its coordinates."""

    def slope(p: Fields) -> Fields:
        def line(c: Time) -> Fields:
            return f((*p[:along], c, *p[along + 1 :]))

        return mb.autodiff.jvp(line, (p[along],), (mb.ones_like(p[along]),))[1]

    return slope


def source(u: Fields, x: Fields, t: Time, equations: dg.Equations, solution: Callable[..., Fields]) -> Fields:
    """What a solution leaves over in equations, whichever they are: u_t + div F(u) - div F_v(u, grad u)."""

    def state(p: Fields) -> Fields:
        return solution(p[:-1], p[-1])

    def flux(p: Fields, axis: int) -> Fields:
        slopes = [derivative(lambda q: equations.gradient_variables(state(q)), a)(p) for a in range(len(x))]
        pairs = zip(equations.flux(state(p), axis), equations.viscous_flux(state(p), slopes, axis), strict=True)
        return tuple(f - v for f, v in pairs)

    terms = [derivative(state, len(x))((*x, t))]
    terms += [derivative(functools.partial(flux, axis=a), a)((*x, t)) for a in range(len(x))]
    return tuple(sum(of) for of in zip(*terms, strict=True))


def temperature(x: Fields, t: Time) -> mb.AbstractArray:
    """That of walls."""
    return GAS.temperature(exact(x, t, drift=0.0))


def setup(
    order: int = 3,
    cells: Cells = (8, 8),
    array: Arrays = mb.HostArray,
    cell: str | None = None,
    viscous: dg.Viscous | None = None,
    walls: bool = False,
    end: float = 0.5,
) -> Problem:
    """Periodic on [0, 2]^2, or with isothermal walls where y = 0 and y = 2: errors fall as h^(order + 1).

    (Those of density and energy as h^order where viscosity rules inside of cells, as with walls.)
    """
    mesh = dg.box(cells, upper=2.0, cell=cell, periodic=(True, not walls))
    solution = functools.partial(exact, drift=0.0 if walls else 1.0)
    sides = dict.fromkeys(mesh.boundary_names, dg.NoSlipWall(temperature=temperature))
    solver = dg.Solver(order, surface_flux=dg.hllc, viscous=viscous or dg.LDG())
    rates = functools.partial(source, solution=solution)
    semi = dg.Semidiscretization(mesh, GAS, solver, sides, rates, array=array)
    return semi, solution, (0.0, end), {"cfl": 0.8}


run = solving(setup)

if __name__ == "__main__":
    report(run(callbacks=[dg.Alive(interval=100)]), "rho", exact)
