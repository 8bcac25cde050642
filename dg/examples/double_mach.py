"""Double Mach reflection: a shock of Mach 10 meets a wall at 60 degrees.

P. Woodward, P. Colella, J. Comput. Phys. 54, 1984, doi:10.1016/0021-9991(84)90142-6.
"""

import math

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg.examples import Arrays, Cells, Fields, Problem, Time, report, solving

GAS = dg.CompressibleEuler(2)
BEFORE = GAS.conservative((1.4, 0.0, 0.0, 1.0))
BEHIND = GAS.conservative((8.0, 8.25 * math.cos(math.pi / 6), -8.25 * math.sin(math.pi / 6), 116.5))


def initial(x: Fields, t: Time) -> Fields:
    """The shock at any time, without what the wall reflects, which never gets to the upper boundary."""
    behind = x[0] < 1 / 6 + (x[1] + 20 * t) / math.sqrt(3)
    return tuple(mb.where(behind, a, b) for a, b in zip(BEHIND, BEFORE, strict=True))


class Ramp(dg.SlipWall):
    """A wall from x = 1/6 on, and before it what is behind the shock."""

    def state(self, u: Fields, normal: Fields, x: Fields, t: Time, equations: dg.Equations) -> Fields:
        image = super().state(u, normal, x, t, equations)
        return tuple(mb.where(x[0] < 1 / 6, a, b) for a, b in zip(BEHIND, image, strict=True))


def setup(order: int = 3, cells: Cells = (96, 24), array: Arrays = mb.HostArray, end: float = 0.2) -> Problem:
    """The box [0, 4] x [0, 1], turned such that the wall is its lower side."""
    shocks, positive = dg.SubcellBlending(dg.ranocha), dg.PositivityLimiter()
    solver = dg.Solver(order, surface_flux=dg.lax_friedrichs, volume=shocks, limiters=(positive,))
    sides = {"x_neg": dg.SupersonicInflow(initial), "x_pos": dg.SupersonicOutflow()}
    sides |= {"y_neg": Ramp(), "y_pos": dg.FarField(initial)}
    mesh = dg.box(cells, upper=(4.0, 1.0), cell="quadrilateral")
    semi = dg.Semidiscretization(mesh, GAS, solver, sides, array=array)
    return semi, initial, (0.0, end), {"cfl": 0.5, "method": dg.SSPRK3()}


run = solving(setup)

if __name__ == "__main__":
    report(run(callbacks=[dg.Alive(interval=100)]), "rho", levels=30)
