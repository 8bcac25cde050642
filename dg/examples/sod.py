"""Sod's shock tube: a rarefaction, a contact and a shock (1978, doi:10.1016/0021-9991(78)90023-2)."""

import functools

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg.examples import Arrays, Cells, Fields, Problem, Time, report, solving

SPEED, SHOCK = 0.9274526200489499, 1.7521557320301779  # of the contact and of the shock
START = 0.5 + 1e-9  # nodes may lie at 0.5, where rounding would decide about their state


def exact(x: Fields, t: Time, axis: int = 0) -> Fields:
    """The solution of the Riemann problem, along an axis."""
    along, sound = x[axis] - START, 1.4**0.5
    behind, shocked = along < SPEED * t, along < SHOCK * t
    velocity = mb.clip((sound + along / mb.maximum(t, 1e-14)) / 1.2, 0.0, SPEED)
    cold = 1 - 0.2 / sound * velocity
    rho = mb.where(behind, cold**5, mb.where(shocked, 0.125 * SHOCK / (SHOCK - SPEED), 0.125))
    v = (mb.where(shocked, velocity, 0.0) * float(a == axis) for a in range(len(x)))
    return dg.CompressibleEuler(len(x)).conservative((rho, *v, mb.where(shocked, cold**7, 0.1)))


def setup(
    order: int = 3, cells: Cells = 100, array: Arrays = mb.HostArray, axis: int = 0, end: float = 0.2
) -> Problem:
    """A tube along one `axis` of a box that is periodic along the others."""
    d = 1 if isinstance(cells, int) else len(cells)
    mesh, solution = dg.box(cells, periodic=[a != axis for a in range(d)]), functools.partial(exact, axis=axis)
    shocks = dg.SubcellBlending(dg.ranocha, surface_flux=dg.hllc)
    solver = dg.Solver(order, surface_flux=dg.hllc, volume=shocks)
    ends = dict.fromkeys(mesh.boundaries, dg.FarField(solution))
    semi = dg.Semidiscretization(mesh, dg.CompressibleEuler(d), solver, ends, array=array)
    return semi, solution, (0.0, end), {"cfl": 0.5, "method": dg.SSPRK3()}


run = solving(setup)

if __name__ == "__main__":
    report(run(callbacks=[dg.Alive(interval=100)]), "rho", exact)
