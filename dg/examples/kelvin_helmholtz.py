"""Kelvin-Helmholtz instability of smooth layers of shear, without viscosity (arXiv:2102.06017)."""

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg.examples import Arrays, Cells, Fields, Problem, Time, report, solving

GAS = dg.CompressibleEuler(2)
BLENDED = dg.SubcellBlending(dg.ranocha, alpha_max=0.002, alpha_min=1e-4)


def initial(x: Fields, t: Time) -> Fields:
    """A denser layer |y| < 1/2 that moves to the right, the rest to the left, and a wave along both."""
    layer = mb.tanh(15 * x[1] + 7.5) - mb.tanh(15 * x[1] - 7.5)
    return GAS.conservative((0.5 + 0.75 * layer, 0.5 * (layer - 1), 0.1 * mb.sin(2 * mb.pi * x[0]), 1.0))


def setup(
    order: int = 3,
    cells: Cells = (32, 32),
    array: Arrays = mb.HostArray,
    volume: dg.VolumeForm = BLENDED,
    end: float = 3.0,
) -> Problem:
    """The eddies become finer than any mesh: flux differencing bears that, `volume=dg.WeakForm()` does not."""
    mesh = dg.box(cells, lower=-1.0, upper=1.0, cell="quadrilateral", periodic=True)
    solver = dg.Solver(order, surface_flux=dg.lax_friedrichs, volume=volume)
    return dg.Semidiscretization(mesh, GAS, solver, array=array), initial, (0.0, end), {"cfl": 0.8}


run = solving(setup)

if __name__ == "__main__":
    report(run(callbacks=[dg.Alive(interval=100)]), "rho")
