"""Shocks in the plane: reflected at a ramp, before a step, and running into a boundary layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.verification._findings import Quantity, near, on, positive, profile, simulated
from benchmarks.verification._riemann import Riemann

Cells = tuple[int, int]


def crossing(x: np.ndarray, values: np.ndarray, level: float) -> float:
    """Where values on a line first reach a level; NaN if they do not.

    >>> crossing(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 4.0]), 2.5)
    1.5
    """
    above = values >= level
    if not above.any() or above[0]:
        return float("nan")
    i = int(np.argmax(above))
    share = (level - values[i - 1]) / (values[i] - values[i - 1])
    return float(x[i - 1] + share * (x[i] - x[i - 1]))


def double_mach(order: int, cells: Cells) -> Iterator[Quantity]:
    """Where the incident shock is, near the upper boundary and below; and that nothing is negative."""
    from mirabelle.dg.examples import double_mach as example

    solution = simulated(example.setup(order=order, cells=cells))
    yield near("time that was reached", solution.t, 0.2, absolute=1e-12)
    yield from positive(solution)
    width, behind, before = 1 / cells[1], 8.0, 1.4
    for y in (1 - width, 0.75):
        at, fields = profile(solution, (2.5, y), (3.5, y))
        place = crossing(-at[0][::-1], fields[0][::-1], 0.5 * (behind + before))
        yield near(f"incident shock at y = {y:.4g}", -place, 1 / 6 + (y + 4) / 3**0.5, absolute=width)
    at, fields = profile(solution, (1.0, 1e-6), (3.9, 1e-6))
    foot = -crossing(-at[0][::-1], fields[0][::-1], 0.5 * (fields[0].max() + before))
    yield Quantity("foot of the Mach stem on the wall", foot)
    yield Quantity("largest density", float(np.nanmax(fields[0])))


def forward_step(order: int, cells: Cells, fine: bool) -> Iterator[Quantity]:
    """The bow shock, and the gas at rest in the corner, which exact relations and a run by others give.

    `fine`: whether the mesh is so fine that also what moves long with it is judged.
    """
    from mirabelle.dg.examples import forward_facing_step as example

    solution = simulated(example.setup(order=order, cells=cells))
    yield near("time that was reached", solution.t, 4.0, absolute=1e-12)
    yield from positive(solution)

    def front(y: float) -> float:
        at, fields = profile(solution, (1e-6, y), (2.9, y))
        return crossing(at[0], fields[-1], 4.0)

    yield near("distance of the shock from the step on the floor", 0.6 - front(1e-6), 0.29, absolute=0.01)
    yield Quantity("shock at y = 0.2", front(0.2))
    yield near("shock at y = 0.5", front(0.5), 0.43, absolute=0.005)
    yield Quantity("shock at y = 0.8", front(0.8))
    _, fields = profile(solution, (0.4, 1e-6), (0.6 - 1e-6, 1e-6))
    foot = near("foot of the Mach stem on the upper wall", front(1 - 1e-6), 0.6, absolute=0.03)
    for found in (foot, near("pressure in the corner", fields[-1][-1], 12.061, relative=0.01)):
        yield found if fine else Quantity(found.name, found.value)
    yield Quantity("density in the corner", float(fields[0][-1]))


def daru_tenaud(order: int, meshes: Sequence[Cells], reynolds: float, array: Any = None) -> Iterator[Quantity]:
    """The density on the wall on finer meshes, and how high the vortex gets that the shock leaves: papers have
    0.163 to 0.168 at a Reynolds number of 200, which takes 1000 by 500 nodes."""
    from mirabelle.dg.examples import viscous_shock_tube as example

    # Before the shock comes to the end. The layer at the wall, of about (mu t / rho)^(1/2) = 0.015, narrows the
    # tube by three percent, which an inviscid gas does not know.
    tube, early = Riemann((120.0, 0.0, 120 / 1.4), (1.2, 0.0, 1.2 / 1.4)), 0.18
    made = {"order": order, "reynolds": reynolds, **on(array)}
    solution = simulated(example.setup(**made, cells=meshes[-1], end=early))
    at, fields = profile(solution, (0.6, 0.499), (1 - 1e-6, 0.499))
    ends = [0.5 + early * (tube.velocity + share * (tube.front(1) - tube.velocity)) for share in (0.25, 0.75)]
    within = (ends[0] < at[0]) & (at[0] < ends[1])
    yield near("p before the reflection", fields[-1][within].mean(), tube.pressure, relative=0.05)
    yield near("v before the reflection", fields[1][within].mean(), tube.velocity, relative=0.05)
    half = 0.5 * (tube.pressure + tube.right[2])
    place = -crossing(-at[0][::-1], fields[-1][::-1], half)
    yield near("shock before the reflection", place, 0.5 + early * tube.front(1), absolute=1 / meshes[-1][0])

    walls = []
    for cells in meshes:
        solution = simulated(example.setup(**made, cells=cells))
        _, fields = profile(solution, (1e-6, 1e-6), (1 - 1e-6, 1e-6))
        walls.append(fields[0])
        name, height = f"height of the primary vortex on {cells}", vortex_height(solution)
        resolved = reynolds == 200.0 and cells[0] * (order + 1) >= 1000
        yield near(name, height, 0.1655, absolute=0.0075) if resolved else Quantity(name, height)
    yield near("time that was reached", solution.t, 1.0, absolute=1e-12)
    yield from positive(solution)
    spread = float(np.mean(np.abs(walls[-1])))
    changes = [float(np.mean(np.abs(b - a))) / spread for a, b in pairwise(walls)]
    for cells, change in zip(meshes[1:], changes, strict=True):
        yield Quantity(f"change of the density on the wall to {cells}, of its mean", change)
    if len(changes) > 1:
        yield Quantity("the last change beside the one before", changes[-1] / changes[-2], most=0.7)


def vortex_height(solution: Any) -> float:
    """How high the light gas of the primary vortex gets over its centre: to where it is as dense as above."""
    x, y = np.linspace(0.75, 0.85, 51), np.linspace(1e-6, 0.25, 251)
    points = np.stack([c.ravel() for c in np.meshgrid(x, y, indexing="ij")])
    density = solution.semi.sample(solution.u, points)[0].reshape(len(x), len(y))
    column, centre = np.unravel_index(density[:, 40:].argmin(), density[:, 40:].shape)
    over = density[column, 40 + centre :]
    return crossing(y[40 + centre :], over, 0.95 * over[-1])
