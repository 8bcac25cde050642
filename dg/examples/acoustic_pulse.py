"""A pulse of pressure that spreads as a ring and leaves through open boundaries, in any dimension."""

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg.examples import Arrays, Cells, Fields, Problem, Time, report, solving


def initial(x: Fields, t: Time) -> Fields:
    """Air at rest, of higher pressure around the origin."""
    return (mb.exp(-50 * sum((c * c for c in x), 0.0)), *(0.0 for _ in x))


def setup(
    order: int = 4, cells: Cells = 24, array: Arrays = mb.HostArray, cell: str = "triangle", end: float = 1.0
) -> Problem:
    """Outside of the box the air is at rest: what leaves along the normal does not come back."""
    mesh = dg.box(cells, lower=-1.0, upper=1.0, cell=cell)
    outside = dict.fromkeys(mesh.boundaries, dg.FarField((0.0,) * (mesh.dims + 1)))
    solver = dg.Solver(order, surface_flux=dg.upwind)
    semi = dg.Semidiscretization(mesh, dg.Acoustics(mesh.dims), solver, outside, array=array)
    return semi, initial, (0.0, end), {"cfl": 0.8}


run = solving(setup)

if __name__ == "__main__":
    report(run(callbacks=[dg.Alive(interval=100)]), "p")
