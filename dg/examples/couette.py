"""Compressible Couette flow: gas between a plate at rest and one that slides, in steady state.

F. M. White, Viscous Fluid Flow, 1974, section 3-2: for a constant viscosity the velocity is linear and the
temperature quadratic, of which polynomials of order 2 on quadrilaterals are exact.
"""

import functools

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg.examples import Arrays, Cells, Fields, Problem, Time, report, solving

GAS = dg.CompressibleNavierStokes(2, prandtl=0.72, viscosity=0.1)
SPEED, COLD, WARM = 0.5, 1.0, 1.2
FRICTION = 0.5 * GAS.prandtl * SPEED**2 * (GAS.gamma - 1) / GAS.gamma  # Pr U^2 / (2 c_p)


def exact(x: Fields, t: Time, insulated: bool = False) -> Fields:
    """v = (U y, 0), T = T0 + (T1 - T0) y + Pr U^2 / (2 c_p) y (1 - y), at a constant pressure."""
    y, rise = x[1], FRICTION if insulated else WARM - COLD
    temperature = COLD + rise * y + FRICTION * y * (1 - y)
    return GAS.conservative((1 / temperature, SPEED * y, 0 * y, 1 + 0 * y))


def setup(
    order: int = 2,
    cells: Cells = (2, 4),
    array: Arrays = mb.HostArray,
    cell: str | None = None,
    viscous: dg.Viscous | None = None,
    insulated: bool = False,
    end: float = 1.0,
) -> Problem:
    """The plate that slides has a temperature, or it is insulated: then friction alone heats the gas."""
    mesh = dg.box(cells, cell=cell, periodic=(True, False))
    upper = dg.NoSlipWall(None if insulated else WARM, velocity=(SPEED, 0.0))
    sides = {"y_neg": dg.NoSlipWall(temperature=COLD), "y_pos": upper}
    solver = dg.Solver(order, surface_flux=dg.hllc, viscous=viscous or dg.LDG())
    semi = dg.Semidiscretization(mesh, GAS, solver, sides, array=array)
    return semi, functools.partial(exact, insulated=insulated), (0.0, end), {"cfl": 0.8}


run = solving(setup)

if __name__ == "__main__":
    report(run(callbacks=[dg.SteadyState(1e-10, interval=10)]), "rho_v1", exact)
