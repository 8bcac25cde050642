"""Compressible Poiseuille flow: a constant force drives gas between two cold walls, in steady state.

F. M. White, Viscous Fluid Flow, 1974, section 3-3: for a constant viscosity the velocity is a parabola, and the
temperature that friction makes is of degree 4, of which such polynomials on quadrilaterals are exact.
"""

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg.examples import Arrays, Cells, Fields, Problem, Time, report, solving

GAS = dg.CompressibleNavierStokes(2, prandtl=0.72, viscosity=0.1)
FORCE, COLD = 0.4, 1.0
CONDUCTIVITY = GAS.gamma / (GAS.gamma - 1) * 0.1 / GAS.prandtl


def exact(x: Fields, t: Time) -> Fields:
    """v = (f y (1 - y) / (2 mu), 0), T = T0 + f^2 / (192 mu k) (1 - (1 - 2 y)^4), at a constant pressure."""
    y, mu = x[1], GAS.viscosity.value
    temperature = COLD + FORCE**2 / (192 * mu * CONDUCTIVITY) * (1 - (1 - 2 * y) ** 4)
    return GAS.conservative((1 / temperature, 0.5 * FORCE / mu * y * (1 - y), 0 * y, 1 + 0 * y))


def source(u: Fields, x: Fields, t: Time, equations: dg.CompressibleNavierStokes) -> Fields:
    """A force per volume along the walls, and its work."""
    return 0 * u[0], FORCE + 0 * u[0], 0 * u[0], FORCE * equations.velocity(u)[0]


def setup(
    order: int = 3,
    cells: Cells = (2, 4),
    array: Arrays = mb.HostArray,
    cell: str | None = None,
    viscous: dg.Viscous | None = None,
    end: float = 1.0,
) -> Problem:
    """Lower orders than 4 have errors that fall as h^(order + 1)."""
    mesh = dg.box(cells, cell=cell, periodic=(True, False))
    walls = dict.fromkeys(mesh.boundary_names, dg.NoSlipWall(temperature=COLD))
    solver = dg.Solver(order, surface_flux=dg.hllc, viscous=viscous or dg.LDG())
    semi = dg.Semidiscretization(mesh, GAS, solver, walls, source, array=array)
    return semi, exact, (0.0, end), {"cfl": 0.8}


run = solving(setup)

if __name__ == "__main__":
    report(run(callbacks=[dg.Alive(interval=100)]), "rho_v1", exact)
