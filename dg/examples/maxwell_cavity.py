"""A mode of light in a box of perfectly conducting walls, in the plane (TM) and in space."""

import math

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg.equations import Maxwell
from mirabelle.dg.examples import Arrays, Cells, Fields, Problem, Time, report, solving

AMPLITUDES = (1.0, 1.0, -2.0)  # of E in space: their sum is div E


def exact(x: Fields, t: Time) -> Fields:
    """E_i = A_i cos(pi x_i) prod_(j != i) sin(pi x_j) cos(w t), and the H of H_t = -curl E; w = pi sqrt(d)."""
    w = math.pi * math.sqrt(len(x))
    c, s = [mb.cos(math.pi * q) for q in x], [mb.sin(math.pi * q) for q in x]
    electric, magnetic = mb.cos(w * t), -math.pi / w * mb.sin(w * t)
    if len(x) == 2:  # E3 alone, which knows no x_3
        return s[0] * s[1] * electric, s[0] * c[1] * magnetic, -c[0] * s[1] * magnetic
    turns, a = ((0, 1, 2), (1, 2, 0), (2, 0, 1)), AMPLITUDES
    E = [a[i] * c[i] * s[j] * s[k] * electric for i, j, k in turns]
    return (*E, *((a[k] - a[j]) * s[i] * c[j] * c[k] * magnetic for i, j, k in turns))


def setup(
    order: int = 3, cells: Cells = 8, array: Arrays = mb.HostArray, cell: str = "triangle", end: float = 1.0
) -> Problem:
    """The box [0, 1]^d; the mirror image in a conductor is what cancels the tangential part of E."""
    mesh = dg.box(cells, cell=cell)
    walls = dict.fromkeys(mesh.boundaries, dg.SlipWall())
    solver = dg.Solver(order, surface_flux=dg.upwind)
    semi = dg.Semidiscretization(mesh, Maxwell(mesh.dims), solver, walls, array=array)
    return semi, exact, (0.0, end), {"cfl": 0.8}


run = solving(setup)

if __name__ == "__main__":
    report(run(callbacks=[dg.Alive(interval=100)]), "E3", exact)
