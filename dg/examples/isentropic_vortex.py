"""An isentropic vortex that drifts through a periodic square: Shu's, and the fast and the slow one of MFEM.

C.-W. Shu, Lecture Notes in Mathematics 1697, 1998, doi:10.1007/BFb0096355; MFEM's example 18.
"""

import functools
import math

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg.examples import Arrays, Cells, Fields, Flux, Problem, Time, report, solving

GAS = dg.CompressibleEuler(2)
# Half the square's width, velocity and pressure of the stream, strength and radius of the vortex, the period.
VARIANTS = {
    "shu": (10.0, (1.0, 1.0), 25.0, 5 / (2 * math.pi) * math.exp(0.5), 1.0, 20.0),
    "mfem-fast": (1.0, (1.0, 0.0), 1 / (1.4 * 0.5**2), 1 / 5, 0.2, 2.0),
    "mfem-slow": (1.0, (1.0, 0.0), 1 / (1.4 * 0.05**2), 1 / 50, 0.2, 2.0),
}


def exact(x: Fields, t: Time, variant: str = "shu") -> Fields:
    """The vortex where the stream has carried it: a disturbance of velocity and temperature."""
    half, v, p, strength, radius, _ = VARIANTS[variant]
    moved = [c - a * t for c, a in zip(x, v, strict=True)]
    a, b = ((c - 2 * half * mb.floor((c + half) / (2 * half))) / radius for c in moved)
    swirl = strength * mb.exp(-0.5 * (a * a + b * b))
    temperature = 1 - (0.5 * (1 - 1 / GAS.gamma) / p) * swirl * swirl
    rho = temperature ** (1 / (GAS.gamma - 1))
    return GAS.conservative((rho, v[0] - swirl * b, v[1] + swirl * a, p * rho * temperature))


def setup(
    order: int = 3,
    cells: Cells = (16, 16),
    array: Arrays = mb.HostArray,
    cell: str = "quadrilateral",
    variant: str = "shu",
    flux: Flux = dg.lax_friedrichs,
    end: float | None = None,
) -> Problem:
    """Once through the square, unless an `end` is given. Images of the vortex limit how small errors become."""
    if variant not in VARIANTS:
        raise ValueError(f"There is no vortex {variant!r}. Choose one of {', '.join(VARIANTS)}.")
    half, *_, period = VARIANTS[variant]
    mesh = dg.box(cells, lower=-half, upper=half, cell=cell, periodic=True)
    solver = dg.Solver(order, surface_flux=flux)
    semi = dg.Semidiscretization(mesh, GAS, solver, array=array)
    return semi, functools.partial(exact, variant=variant), (0.0, end or period), {"cfl": 0.8}


run = solving(setup)

if __name__ == "__main__":
    report(run(callbacks=[dg.Alive(interval=100)]), "rho", exact)
