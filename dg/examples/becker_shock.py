"""A viscous shock that travels: an exact solution of the Navier-Stokes equations for Pr = 3/4.

R. Becker, Z. Phys. 8, 1922, doi:10.1007/BF01329605. There the total enthalpy is constant through the shock, and
the position an elementary function of the velocity.
"""

from typing import Any

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg.examples import Arrays, Cells, Fields, Problem, Time, report, solving

MACH, DRIFT, VISCOSITY, GAMMA = 3.0, 0.2, 0.02, 1.4
# Seen from the shock, gas of density 1 and velocity 1 arrives and is left with this velocity.
SLOW = (GAMMA - 1 + 2 / MACH**2) / (GAMMA + 1)
LENGTH, SHARE = 8 * GAMMA / (GAMMA + 1) * VISCOSITY / 3, SLOW / (1 - SLOW)


def gas(velocity: Any, dims: int) -> Fields:
    """The state of a velocity, which is seen from the shock."""
    enthalpy = 0.5 + 1 / (MACH**2 * (GAMMA - 1))
    pressure = (GAMMA - 1) / GAMMA * (enthalpy - 0.5 * velocity * velocity) / velocity
    w = (1 / velocity, velocity + DRIFT, *(0 * velocity for _ in range(1, dims)), pressure)
    return dg.CompressibleEuler(dims, GAMMA).conservative(w)


def exact(x: Fields, t: Time) -> Fields:
    """v = SLOW + (1 - SLOW) s, where (1 + b) log(1 - s) - b log s = (x - DRIFT t) / LENGTH and b = SHARE.

    With s = 1 / (1 + exp -q) that is log(1 + exp q) + b q = -(x - DRIFT t) / LENGTH. The left side is convex,
    and Newton's method goes down to the root from where one of its two asymptotes has the value.
    """
    distance = (x[0] - DRIFT * t) / LENGTH
    q = -distance / mb.where(distance < 0, 1 + SHARE, SHARE)
    for _ in range(6):
        fall = mb.exp(-mb.abs(q))
        s = mb.where(q > 0, 1.0, fall) / (1 + fall)
        q = mb.materialize(q - (mb.maximum(q, 0.0) + mb.log1p(fall) + SHARE * q + distance) / (s + SHARE))
    return gas(SLOW + (1 - SLOW) / (1 + mb.exp(-q)), len(x))


def setup(
    order: int = 3,
    cells: Cells = 60,
    array: Arrays = mb.HostArray,
    cell: str | None = None,
    viscous: dg.Viscous | None = None,
    end: float = 0.5,
) -> Problem:
    """Along the first axis of a box, which is so long that the gas at its ends is uniform."""
    d = len(cells) if isinstance(cells, tuple) else 1
    mesh = dg.box(
        cells, lower=(-1.0, *[0.0] * (d - 1)), upper=0.5, cell=cell, periodic=[a > 0 for a in range(d)]
    )
    equations = dg.CompressibleNavierStokes(d, GAMMA, prandtl=0.75, viscosity=VISCOSITY)
    ends = {"x_neg": dg.FarField(gas(1.0, d)), "x_pos": dg.FarField(gas(SLOW, d))}
    solver = dg.Solver(order, surface_flux=dg.hllc, viscous=viscous or dg.LDG())
    return dg.Semidiscretization(mesh, equations, solver, ends, array=array), exact, (0.0, end), {"cfl": 0.8}


run = solving(setup)

if __name__ == "__main__":
    report(run(callbacks=[dg.Alive(interval=100)]), "rho", exact)
