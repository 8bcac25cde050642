"""Rates with which errors fall under refinement: advection on every cell type, orders 1 to 5.

All examples at full size are another program: `python -m benchmarks verification`.
"""

import math
from typing import Any

import pytest

import mirabelle as mb
from mirabelle import dg

VELOCITY = (1.0, 0.7, -0.5)
# From few cells along each axis to more, and for how long.
REFINED = {
    "line": (4, 8, 0.3),
    "quadrilateral": (3, 6, 0.3),
    "triangle": (3, 6, 0.2),
    "hexahedron": (2, 4, 0.3),
    "tetrahedron": (2, 4, 0.1),
}
CASES = [(cell, order, None) for cell in REFINED for order in range(1, 6)]
CASES += [("quadrilateral", 2, "gauss"), ("quadrilateral", 3, "gauss")]


def wave(x: Any, t: Any) -> Any:
    phase = sum((c - a * t for c, a in zip(x, VELOCITY, strict=False)), 0.0)
    return (mb.sin(2.0 * phase + 0.3),)


def error(cell: str, order: int, nodes: str | None, cells: int, end: float) -> float:
    """In L2 after a short time, in a box that the wave enters and leaves."""
    mesh = dg.box(cells, cell=cell)
    sides = dict.fromkeys(mesh.boundaries, dg.FarField(wave))
    solver = dg.Solver(order, nodes=nodes, surface_flux=dg.upwind)
    semi = dg.Semidiscretization(mesh, dg.Advection(VELOCITY[: mesh.dims]), solver, sides)
    steps = math.ceil(4 * end * cells * (order + 1) ** 1.5)
    return dg.solve(semi, end, wave, dt=end / steps).errors(wave)["u"].l2


@pytest.mark.parametrize(("cell", "order", "nodes"), CASES)
def test_errors_fall_as_they_should(cell: str, order: int, nodes: str | None) -> None:
    *refined, end = REFINED[cell]
    coarse, fine = (error(cell, order, nodes, cells, end) for cells in refined)
    assert math.log2(coarse / fine) == pytest.approx(order + 1, abs=0.3)
