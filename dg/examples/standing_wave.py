"""A standing wave of sound in a box with hard walls, in any dimension."""

import math

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg.examples import Arrays, Cells, Fields, Flux, Problem, Time, report, solving


def exact(x: Fields, t: Time) -> Fields:
    """p = prod cos(pi x_i) cos(w t) with w = pi sqrt(d), and the velocity of v_t = -grad p."""
    w, cosines = math.pi * math.sqrt(len(x)), [mb.cos(math.pi * c) for c in x]
    slopes = [mb.sin(math.pi * c) * math.prod(cosines[:a] + cosines[a + 1 :]) for a, c in enumerate(x)]
    return (math.prod(cosines) * mb.cos(w * t), *(math.pi / w * mb.sin(w * t) * s for s in slopes))


def setup(
    order: int = 3,
    cells: Cells = (8, 8),
    array: Arrays = mb.HostArray,
    cell: str | None = None,
    flux: Flux = dg.upwind,
    end: float = 1.0,
) -> Problem:
    """With `flux=dg.central` the energy is conserved, with upwind fluxes it falls as the errors do."""
    mesh = dg.box(cells, cell=cell)
    walls = dict.fromkeys(mesh.boundaries, dg.SlipWall())
    solver = dg.Solver(order, surface_flux=flux)
    semi = dg.Semidiscretization(mesh, dg.Acoustics(mesh.dims), solver, walls, array=array)
    return semi, exact, (0.0, end), {"cfl": 0.8}


run = solving(setup)

if __name__ == "__main__":
    report(run(callbacks=[dg.Alive(interval=100)]), "p", exact)
