"""A weak blast wave, of which a method without dissipation conserves the entropy (arXiv:2008.12044)."""

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg.equations.base import dot
from mirabelle.dg.examples import Arrays, Cells, Fields, Flux, Problem, Time, report, solving

GAS = dg.CompressibleEuler(2)


def initial(x: Fields, t: Time) -> Fields:
    """Inside of a circle the gas is denser, of higher pressure, and moves outwards."""
    r = mb.sqrt(dot(x, x))
    share = 0.1882 / mb.maximum(r, 1e-6)
    pairs = ((1.1691, 1.0), *((share * c, 0.0) for c in x), (1.245, 1.0))
    return GAS.conservative(tuple(mb.where(r < 0.5, a, b) for a, b in pairs))


def entropy_rate(semi: dg.Semidiscretization, u: mb.AbstractArray) -> float:
    """dS/dt, the integral of w . du/dt with the entropy variables w: zero but for rounding."""
    variables = semi.equations.entropy_variables(semi.fields(u))
    return float(semi.integrate(dot(variables, semi.fields(semi.rhs(u)))))


def setup(
    order: int = 3, cells: Cells = 32, array: Arrays = mb.HostArray, flux: Flux = dg.ranocha, end: float = 0.4
) -> Problem:
    """One entropy-conserving two-point flux, inside of cells and between them: any roughness stays."""
    mesh = dg.box(cells, lower=-2.0, upper=2.0, cell="quadrilateral", periodic=True)
    solver = dg.Solver(order, surface_flux=flux, volume=dg.FluxDifferencing(flux))
    return dg.Semidiscretization(mesh, GAS, solver, array=array), initial, (0.0, end), {"cfl": 0.8}


run = solving(setup)

if __name__ == "__main__":
    solution = run(callbacks=[dg.Analysis(interval=100)])
    print(f"rate of entropy: {entropy_rate(solution.semi, solution.u):.3g}")
    report(solution, "rho")
