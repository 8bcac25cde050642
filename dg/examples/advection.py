"""A sine wave that a constant velocity carries through a periodic box, in any dimension, on any cells."""

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg.examples import Arrays, Cells, Fields, Problem, Time, report, solving

VELOCITY = (0.2, -0.7, 0.5)


def exact(x: Fields, t: Time) -> Fields:
    """u(x, t) = 1 + sin(pi sum(x - a t)) / 2."""
    phase = sum((c - a * t for c, a in zip(x, VELOCITY, strict=False)), 0.0)
    return (1 + 0.5 * mb.sin(mb.pi * phase),)


def setup(
    order: int = 3,
    cells: Cells = (16, 16),
    array: Arrays = mb.HostArray,
    cell: str | None = None,
    nodes: str | None = None,
    end: float = 1.0,
) -> Problem:
    """The first test of a method: errors fall as h^(order + 1)."""
    mesh = dg.box(cells, lower=-1.0, upper=1.0, cell=cell, periodic=True)
    solver = dg.Solver(order, nodes=nodes, surface_flux=dg.upwind)
    semi = dg.Semidiscretization(mesh, dg.Advection(VELOCITY[: mesh.dims]), solver, array=array)
    return semi, exact, (0.0, end), {"cfl": 0.8}


run = solving(setup)

if __name__ == "__main__":
    report(run(callbacks=[dg.Alive(interval=100)]), "u", exact)
