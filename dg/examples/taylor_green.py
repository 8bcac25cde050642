"""The Taylor-Green vortex, which decays into turbulence: of a viscous gas, or of an inviscid one.

Z. J. Wang and others, Int. J. Numer. Methods Fluids 72, 2013, doi:10.1002/fld.3767, problem C3.5.
"""

import math
from typing import Any

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg.equations.base import dot
from mirabelle.dg.examples import Arrays, Cells, Fields, Problem, Time, report, solving

MACH = 0.1


def initial(x: Fields, t: Time) -> Fields:
    """Vortices of Mach number 0.1 and density 1."""
    (a, b, c), (sin, cos) = x, (mb.sin, mb.cos)
    swell = (cos(2 * a) + cos(2 * b)) * (cos(2 * c) + 2) / 16
    velocity = sin(a) * cos(b) * cos(c), -cos(a) * sin(b) * cos(c), 0 * c
    return dg.CompressibleEuler(3).conservative((1 + 0 * a, *velocity, 1 / (1.4 * MACH**2) + swell))


def mean(semi: dg.Semidiscretization, values: Any) -> float:
    """A field's mean over the box."""
    return float(semi.integrate(values)) / semi.volume


def kinetic_energy(semi: dg.Semidiscretization, u: mb.AbstractArray) -> float:
    """Per volume; 1/8 at first."""
    momentum = semi.fields(u)[1:4]
    return mean(semi, 0.5 * dot(momentum, momentum) / u[0])


def dissipation(semi: dg.Semidiscretization, u: mb.AbstractArray) -> float:
    """That of a viscous gas, by its enstrophy: 2 nu times the mean of rho |curl v|^2 / 2."""
    gas: Any = semi.equations
    slopes = dg.gradient(semi.solver.viscous, semi, u, 0.0)[0]
    n = len(gas.gradient_variables(semi.fields(u)))
    curl = [slopes[a * n + b] - slopes[b * n + a] for a, b in ((0, 1), (1, 2), (2, 0))]
    return mean(semi, gas.viscosity(1.0) * dot(curl, curl))


def setup(
    order: int = 3,
    cells: Cells = (8, 8, 8),
    array: Arrays = mb.HostArray,
    cell: str = "hexahedron",
    reynolds: float = 1600.0,
    end: float = 20.0,
) -> Problem:
    """Flux differences keep the flow stable that is too fine for the mesh, also for `reynolds=math.inf`."""
    mesh = dg.box(cells, lower=-math.pi, upper=math.pi, cell=cell, periodic=True)
    gas = dg.CompressibleEuler(3)
    if reynolds < math.inf:
        gas = dg.CompressibleNavierStokes(3, prandtl=0.71, viscosity=1 / reynolds)
    form = dg.FluxDifferencing(dg.ranocha) if cell == "hexahedron" else dg.WeakForm()
    semi = dg.Semidiscretization(mesh, gas, dg.Solver(order, surface_flux=dg.hllc, volume=form), array=array)
    return semi, initial, (0.0, end), {"cfl": 0.8}


def show(solution: dg.Solution) -> None:
    """Print the energy, and what of it is turned into heat."""
    energy = kinetic_energy(solution.semi, solution.u)
    print(f"{solution}: energy {energy:.8f}, dissipation {dissipation(solution.semi, solution.u):.4e}")


run = solving(setup)

if __name__ == "__main__":
    report(run(end=1.0, callbacks=[show]), "rho_v1")
