"""Compressible Euler with a source that makes a given wave the solution (a manufactured solution)."""

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg.examples import Arrays, Cells, Fields, Problem, Time, report, solving


def exact(x: Fields, t: Time) -> Fields:
    """rho = 2 + sin(pi (x + y - t)) / 10, v = (1, 1), E = rho^2."""
    rho = 2 + 0.1 * mb.sin(mb.pi * (x[0] + x[1] - t))
    return rho, rho, rho, rho * rho


def source(u: Fields, x: Fields, t: Time, equations: dg.CompressibleEuler) -> Fields:
    """What `exact` leaves over in the equations: the wave is slower than the gas."""
    rho, slope = exact(x, t)[0], 0.1 * mb.pi * mb.cos(mb.pi * (x[0] + x[1] - t))
    push = slope * ((2 * rho - 1) * (equations.gamma - 1))
    return slope, slope + push, slope + push, 2 * (rho * slope + push)


def setup(
    order: int = 3,
    cells: Cells = 8,
    array: Arrays = mb.HostArray,
    cell: str = "quadrilateral",
    end: float = 1.0,
) -> Problem:
    """Periodic on [0, 2]^2: errors fall as h^(order + 1)."""
    mesh = dg.box(cells, upper=2.0, cell=cell, periodic=True)
    solver = dg.Solver(order, surface_flux=dg.hllc)
    semi = dg.Semidiscretization(mesh, dg.CompressibleEuler(2), solver, source=source, array=array)
    return semi, exact, (0.0, end), {"cfl": 0.8}


run = solving(setup)

if __name__ == "__main__":
    report(run(callbacks=[dg.Alive(interval=100)]), "rho", exact)
