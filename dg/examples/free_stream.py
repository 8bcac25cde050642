"""A uniform flow stays uniform on a warped mesh of any cells (Kopriva, doi:10.1007/s10915-005-9070-8)."""

import numpy as np

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg.examples import Arrays, Cells, Fields, Problem, Time, report, solving


def exact(x: Fields, t: Time) -> Fields:
    """A flow of Mach 0.5 that is along no axis."""
    velocity = [sign * 0.5 / len(x) ** 0.5 for sign in (1, -1, 1)]
    return dg.CompressibleEuler(len(x)).conservative((1.0, *velocity[: len(x)], 1 / 1.4))


def warped(x: Fields) -> Fields:
    """All coordinates moved by one wave, equally on opposite sides of the box."""
    wave = 0.06 * sum(np.sin(np.pi * (c + 0.3 * a)) for a, c in enumerate(x))
    return tuple(c + wave for c in x)


def setup(
    order: int = 3,
    cells: Cells = (6, 6, 6),
    array: Arrays = mb.HostArray,
    cell: str | None = None,
    volume: dg.VolumeForm | None = None,
    end: float = 1.0,
) -> Problem:
    """Cells are curved by polynomials of the solution's order; metric terms are curls."""
    mesh = dg.box(cells, lower=-1.0, upper=1.0, cell=cell, periodic=True, mapping=warped, order=order)
    solver = dg.Solver(order, surface_flux=dg.hllc, volume=volume or dg.WeakForm())
    semi = dg.Semidiscretization(mesh, dg.CompressibleEuler(mesh.dims), solver, array=array)
    return semi, exact, (0.0, end), {"cfl": 0.8}


run = solving(setup)

if __name__ == "__main__":
    report(run(callbacks=[dg.Alive(interval=100)]), "p", exact, mesh=True)
