"""The problems: equations on a box that is periodic in all directions, by name, order and number of cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

FIELDS = {"wave": 4, "euler": 5, "navier-stokes": 5, "vortex": 4}


@dataclass(frozen=True)
class Case:
    """`cells` are the squares or cubes along each axis; a cube holds six tetrahedra."""

    physics: str
    order: int
    cells: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{self.physics} p{self.order}, {self.count}"

    @property
    def count(self) -> int:
        """The number of cells of the mesh."""
        return math.prod(self.cells) * (6 if len(self.cells) == 3 else 1)

    @property
    def unknowns(self) -> int:
        nodes = (self.order + 1) ** 2 if len(self.cells) == 2 else math.comb(self.order + 3, 3)
        return FIELDS[self.physics] * nodes * self.count

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "name": self.name, "elements": self.count, "unknowns": self.unknowns}


def nearest_box(tetrahedra: float) -> tuple[int, int, int]:
    """The box of nearly equal sides whose number of tetrahedra is nearest.

    >>> nearest_box(48000), nearest_box(6859)
    ((20, 20, 20), (8, 12, 12))
    """
    side = round((tetrahedra / 6) ** (1 / 3))
    near = [n for n in range(side - 2, side + 3) if n > 1]
    boxes = [(a, b, c) for a in near for b in near if b >= a for c in near if c >= b]
    return min(boxes, key=lambda box: (abs(6 * math.prod(box) - tetrahedra), box[2] - box[0]))


def problem(case: Case, array: Any) -> tuple[Any, Any]:
    """The semidiscretisation of a case with arrays made by `array`, and a state."""
    from mirabelle import dg

    dims = len(case.cells)
    lower, upper = (-1.0, 1.0) if case.physics == "vortex" else (0.0, 1.0)
    cell = "tetrahedron" if dims == 3 else "quadrilateral"
    mesh = dg.box(case.cells, lower=lower, upper=upper, cell=cell, periodic=True)
    equations, initial, nodes = physics(case.physics)
    solver = dg.Solver(case.order, nodes=nodes, surface_flux=dg.lax_friedrichs)
    semi = dg.Semidiscretization(mesh, equations, solver, array=array)
    return semi, semi.state(initial)


def physics(name: str) -> tuple[Any, Any, str | None]:
    """Equations, a smooth state, and the nodes to use."""
    from mirabelle import dg

    if name == "wave":
        return dg.Acoustics(3), pulse, None
    if name == "euler":
        gas = dg.CompressibleEuler(3)
        return gas, lambda x, t: gas.conservative(density_wave(x)), None
    if name == "navier-stokes":
        from mirabelle.dg.equations.navierstokes import CompressibleNavierStokes

        gas = CompressibleNavierStokes(3, prandtl=0.72, viscosity=1e-3)
        return gas, lambda x, t: gas.conservative(density_wave(x)), None
    if name == "vortex":
        # MFEM's nodes are Gauss points.
        return dg.CompressibleEuler(2), lambda x, t: vortex(x), "gauss"
    raise ValueError(f"there is no problem {name!r}; there are {', '.join(FIELDS)}")


def pulse(x: Sequence[Any], t: Any) -> tuple[Any, ...]:
    """A sound wave of all three directions."""
    import mirabelle as mb

    a, b, c = [2 * math.pi * s for s in x]
    return mb.sin(a) * mb.cos(b) + mb.cos(c), 0.1 * mb.sin(b), 0.2 * mb.cos(c), 0.3 * mb.sin(a + b)


def density_wave(x: Sequence[Any]) -> tuple[Any, ...]:
    """A subsonic flow whose density, velocity and pressure all vary."""
    import mirabelle as mb

    a, b, c = [2 * math.pi * s for s in x]
    wave = mb.sin(a + b + c)
    return (
        1 + 0.2 * wave,
        0.5 + 0.1 * mb.sin(b),
        0.3 + 0.1 * mb.cos(c),
        0.2 + 0.1 * mb.sin(a),
        1 + 0.1 * mb.cos(a - c),
    )


def vortex(x: Sequence[Any]) -> tuple[Any, ...]:
    """The vortex of MFEM's ex18 (its problem 1), as `_mfem_programs.vortex` has it in NumPy."""
    import mirabelle as mb
    from benchmarks.dg._mfem_programs import GAMMA, MACH, RADIUS, STRENGTH

    p, q = x
    shape = mb.exp(-0.5 * (p * p + q * q) / RADIUS**2)
    u, v = 1.0 - STRENGTH * q / RADIUS * shape, STRENGTH * p / RADIUS * shape
    pressure, heat = 1.0 / (GAMMA * MACH**2), GAMMA / (GAMMA - 1.0)
    temperature = 1.0 - 0.5 * STRENGTH**2 * shape * shape / (heat * pressure)
    density = temperature ** (1.0 / (GAMMA - 1.0))
    energy = density * pressure * temperature / (GAMMA - 1.0) + 0.5 * density * (u * u + v * v)
    return density, density * u, density * v, energy
