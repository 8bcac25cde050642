"""A shock of Mach 3 that runs into waves of density (Shu, Osher 1989, doi:10.1016/0021-9991(89)90222-2)."""

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg.examples import Arrays, Cells, Fields, Problem, Time, report, solving

GAS = dg.CompressibleEuler(1)


def initial(x: Fields, t: Time) -> Fields:
    """Behind the shock, which is at -4, the gas streams; before it it is at rest, its density wavy."""
    pairs = ((3.857143, 1 + 0.2 * mb.sin(5 * x[0])), (2.629369, 0.0), (10.333333, 1.0))
    return GAS.conservative(tuple(mb.where(x[0] < -4, a, b) for a, b in pairs))


def setup(order: int = 3, cells: Cells = 200, array: Arrays = mb.HostArray, end: float = 1.8) -> Problem:
    """Fine waves have to pass the shock: only its own cells are blended, and its jump of density finds them."""
    shocks = dg.SubcellBlending(dg.ranocha, surface_flux=dg.hllc, indicator=lambda u: u[0], smooth=False)
    solver = dg.Solver(order, surface_flux=dg.hllc, volume=shocks, limiters=(dg.PositivityLimiter(),))
    ends = {"x_neg": dg.SupersonicInflow(initial), "x_pos": dg.FarField(initial)}
    semi = dg.Semidiscretization(dg.box(cells, lower=-5.0, upper=5.0), GAS, solver, ends, array=array)
    return semi, initial, (0.0, end), {"cfl": 0.5, "method": dg.SSPRK3()}


run = solving(setup)

if __name__ == "__main__":
    report(run(callbacks=[dg.Alive(interval=100)]), "rho")
