"""Heat that leaves a box through some of its sides while the others are insulated, in any dimension."""

import math

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg.examples import Arrays, Cells, Fields, Problem, Time, report, solving

KAPPA = 0.1


def exact(x: Fields, t: Time) -> Fields:
    """The slowest mode: prod cos(pi x_i / 2), which decays at the rate d pi^2 kappa / 4."""
    decay = mb.exp(-0.25 * len(x) * math.pi**2 * KAPPA * t)
    return (decay * math.prod(mb.cos(0.5 * math.pi * c) for c in x),)


def setup(
    order: int = 3,
    cells: Cells = (8, 8),
    array: Arrays = mb.HostArray,
    cell: str | None = None,
    nodes: str | None = None,
    viscous: dg.Viscous | None = None,
    end: float = 1.0,
) -> Problem:
    """Errors fall as h^(order + 1) with `dg.LDG()` and `dg.SIPG()`, with `dg.BR1()` for even orders."""
    mesh = dg.box(cells, cell=cell)
    sides = {n: dg.Neumann(0.0) if n.endswith("neg") else dg.Dirichlet(0.0) for n in mesh.boundary_names}
    solver = dg.Solver(order, nodes=nodes, surface_flux=dg.central, viscous=viscous or dg.SIPG())
    semi = dg.Semidiscretization(mesh, dg.Diffusion(mesh.dims, KAPPA), solver, sides, array=array)
    return semi, exact, (0.0, end), {"cfl": 0.9}


run = solving(setup)

if __name__ == "__main__":
    report(run(callbacks=[dg.Alive(interval=100)]), "u", exact)
