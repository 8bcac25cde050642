"""A wind tunnel of Mach 3 with a step.

P. Woodward, P. Colella, J. Comput. Phys. 54, 1984, doi:10.1016/0021-9991(84)90142-6.
"""

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg.examples import Arrays, Cells, Fields, Problem, Time, report, solving

GAS = dg.CompressibleEuler(2)
STREAM = GAS.conservative((1.4, 3.0, 0.0, 1.0))


def initial(x: Fields, t: Time) -> Fields:
    """The stream everywhere."""
    return STREAM


def setup(order: int = 3, cells: Cells = (60, 20), array: Arrays = mb.HostArray, end: float = 4.0) -> Problem:
    """A tunnel [0, 3] x [0, 1] that lacks the step; cells fit it if 5 or a multiple of it are as long as 1."""
    mesh = dg.box(cells, upper=(3.0, 1.0), cell="quadrilateral", without=lambda x: (x[0] > 0.6) & (x[1] < 0.2))
    shocks, positive = dg.SubcellBlending(dg.ranocha), dg.PositivityLimiter(1e-4)
    solver = dg.Solver(order, surface_flux=dg.lax_friedrichs, volume=shocks, limiters=(positive,))
    sides = {"x_neg": dg.SupersonicInflow(STREAM), "x_pos": dg.SupersonicOutflow()}
    walls = dict.fromkeys(("y_neg", "y_pos", "step"), dg.SlipWall())
    semi = dg.Semidiscretization(mesh, GAS, solver, {**sides, **walls}, array=array)
    return semi, initial, (0.0, end), {"cfl": 0.5, "method": dg.SSPRK3()}


run = solving(setup)

if __name__ == "__main__":
    report(run(callbacks=[dg.Alive(interval=100)]), "rho", levels=30)
