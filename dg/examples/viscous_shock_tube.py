"""A shock reflected at the end of a tube runs into the boundary layer that it made itself.

V. Daru, C. Tenaud, Comput. Fluids 38, 2009, doi:10.1016/j.compfluid.2008.06.008.
"""

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg.examples import Arrays, Cells, Fields, Problem, Time, report, solving


def initial(x: Fields, t: Time) -> Fields:
    """Two gases of one temperature at rest."""
    rho = mb.where(x[0] < 0.5, 120.0, 1.2)
    return dg.CompressibleEuler(2).conservative((rho, 0 * rho, 0 * rho, rho / 1.4))


def setup(
    order: int = 3,
    cells: Cells = (32, 16),
    array: Arrays = mb.HostArray,
    reynolds: float = 200.0,
    end: float = 1.0,
) -> Problem:
    """The lower half of the tube: insulated walls, and the plane of symmetry above."""
    mesh = dg.box(cells, upper=(1.0, 0.5), cell="quadrilateral")
    gas = dg.CompressibleNavierStokes(2, prandtl=0.73, viscosity=1 / reynolds)
    shocks, positive = dg.SubcellBlending(dg.ranocha), dg.PositivityLimiter()
    solver = dg.Solver(order, surface_flux=dg.lax_friedrichs, volume=shocks, limiters=(positive,))
    sides = dict.fromkeys(("x_neg", "x_pos", "y_neg"), dg.NoSlipWall()) | {"y_pos": dg.Symmetry()}
    semi = dg.Semidiscretization(mesh, gas, solver, sides, array=array)
    return semi, initial, (0.0, end), {"cfl": 0.5, "method": dg.SSPRK3()}


run = solving(setup)

if __name__ == "__main__":
    report(run(callbacks=[dg.Alive(interval=100)]), "rho", levels=30)
