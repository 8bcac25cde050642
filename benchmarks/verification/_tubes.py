"""Shock tubes, waves of density through shocks and without them: simulations along one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.verification._findings import Quantity, near, positive, profile, rate, simulated
from benchmarks.verification._riemann import Riemann

Cells = int | tuple[int, ...]


@dataclass(frozen=True)
class Tube:
    """A Riemann problem in a box, and how near the states in its middle should be (relative to them).

    Shocks should be as near, or in the cell where they belong.
    """

    problem: Riemann
    start: float
    end: float
    length: float = 1.0
    accuracy: float = 0.01
    floor: float = 1e-8  # below all pressures


# Lax 1954, doi:10.1002/cpa.3160070112; Toro's third and second tests; LeBlanc's tube, in which pressures differ
# by a factor of 1e9, as ryujin has it.
TUBES = {
    "sod": Tube(Riemann((1.0, 0.0, 1.0), (0.125, 0.0, 0.1)), 0.5, 0.2, accuracy=0.005),
    "lax": Tube(Riemann((0.445, 0.698, 3.528), (0.5, 0.0, 0.571)), 0.5, 0.13),
    "toro3": Tube(Riemann((1.0, 0.0, 1000.0), (1.0, 0.0, 0.01)), 0.5, 0.012, accuracy=0.02),
    "leblanc": Tube(
        Riemann((1.0, 0.0, 0.2 / 3), (1e-3, 0.0, 2e-10 / 3), 5 / 3), 3.0, 6.0, 9.0, accuracy=0.05, floor=1e-13
    ),
    "123": Tube(Riemann((1.0, -2.0, 0.4), (1.0, 2.0, 0.4)), 0.5, 0.15, floor=1e-10),
}


def solved(tube: Tube, order: int, cells: int, **options: Any) -> Any:
    """The solution in a tube, by finite volumes in cells with shocks."""
    import mirabelle as mb
    from mirabelle import dg

    problem = tube.problem
    gas = dg.CompressibleEuler(1, problem.gamma)

    def initial(x: Any, t: Any) -> Any:
        pairs = zip(problem.left, problem.right, strict=True)
        return gas.conservative(tuple(mb.where(x[0] < tube.start, a, b) for a, b in pairs))

    shocks = dg.SubcellBlending(dg.ranocha, surface_flux=dg.hllc)
    limiters = (dg.PositivityLimiter(tube.floor),)
    solver = dg.Solver(order, surface_flux=dg.hllc, volume=shocks, limiters=limiters)
    mesh = dg.box(cells, upper=tube.length)
    states = {"x_neg": problem.left, "x_pos": problem.right}
    ends = {name: dg.FarField(gas.conservative(state)) for name, state in states.items()}
    semi = dg.Semidiscretization(mesh, gas, solver, ends)
    return simulated((semi, initial, (0.0, tube.end), {"cfl": 0.5, "method": dg.SSPRK3()}), **options)


def distance(solution: Any, exact: Any) -> np.ndarray:
    """The integral of each field's distance from an exact one of (x, t), relative to that of the exact one."""
    import mirabelle as mb

    semi = solution.semi
    wanted = semi.state(exact, solution.t)
    error, scale = (semi.integrate(mb.abs(q)) for q in (solution.u - wanted, wanted))
    return np.asarray(mb.to_numpy(mb.materialize(error / scale)))


def riemann(tube: str, order: int, cells: Sequence[int]) -> Iterator[Quantity]:
    """The states in the middle, where waves are, and how errors fall."""
    import mirabelle as mb
    from mirabelle import dg

    case = TUBES[tube]
    problem, start, end = case.problem, case.start, case.end

    def exact(x: Any, t: Any) -> Any:
        at = (mb.HostArray(q) for q in problem.at((mb.to_numpy(mb.materialize(x[0])) - start) / end))
        return dg.CompressibleEuler(1, problem.gamma).conservative(tuple(at))

    errors = []
    for n in cells:
        solution = solved(case, order, n)
        found = distance(solution, exact)
        # ryujin adds up the relative errors of all fields; the gas in the other tubes is partly at rest.
        errors.append(float(found.sum() if tube == "leblanc" else found[0]))
        yield Quantity(f"relative error in L1 on {n} cells", errors[-1])
    yield from positive(solution)

    def between(low: float, high: float, points: int = 4001) -> tuple[np.ndarray, np.ndarray]:
        """Positions between two speeds, and the primitive fields there."""
        at, fields = profile(solution, (start + low * end,), (start + high * end,), points)
        return at[0], fields

    contact = problem.velocity
    for side, name in enumerate(("left", "right")):
        tail = problem.tail(side)
        inner, outer = [contact + share * (tail - contact) for share in (0.25, 0.75)]
        density, velocity, pressure = between(inner, outer)[1].mean(1)
        # Near a vacuum errors are compared with what the gas has outside.
        scale = max(problem.pressure, problem.left[2] if tube == "123" else 0.0)
        yield near(f"{name} of the contact, p", pressure, problem.pressure, absolute=case.accuracy * scale)
        scale = max(abs(contact), abs(problem.left[1]))
        # (In the near vacuum, a few cells wide, schemes are of first order: p and positivity are asked for.)
        if tube == "123":
            yield Quantity(f"{name} of the contact, v", velocity)
        else:
            yield near(f"{name} of the contact, v", velocity, contact, absolute=case.accuracy * scale)
        if tube == "sod":
            yield near(f"{name} of the contact, density", density, problem.density(side), 2 * case.accuracy)

    width = case.length / cells[-1]
    for side, state in enumerate((problem.left, problem.right)):
        front, tail = problem.front(side), problem.tail(side)
        if front == tail:
            x, fields = between(front - 0.25 * abs(front - contact), front + 0.25 * abs(front - contact))
            middle = 0.5 * (problem.density(side) + state[0])
            place = x[np.argmin(np.abs(fields[0] - middle))]
            slack = max(width, case.accuracy * abs(front) * end)
            yield near("shock", place, start + front * end, absolute=slack)
        elif tube == "sod":
            # The velocity is linear in the fan: where it would be that of the gas on either side.
            low, high = sorted(tail + share * (front - tail) for share in (0.25, 0.75))
            x, fields = between(low, high)
            slope, at_start = np.polyfit(x, fields[1], 1)
            for name, speed, velocity in (("head", front, state[1]), ("tail", tail, contact)):
                place = (velocity - at_start) / slope
                yield near(f"{name} of the rarefaction", place, start + speed * end, absolute=width / 2)
    if tube == "sod":
        x, fields = between(contact - 0.2, contact + 0.2)
        middle = 0.5 * (problem.density(0) + problem.density(1))
        place = x[np.argmin(np.abs(fields[0] - middle))]
        yield near("contact", place, start + contact * end, absolute=width)
    if len(cells) > 1:
        yield rate("the error", errors, cells, 0.8)


def shu_osher(order: int, cells: int, reference: int) -> Iterator[Quantity]:
    """Waves of density behind a shock, beside those of a run on a fine mesh."""
    from mirabelle.dg.examples import shu_osher as example

    amplitudes = []
    for n in (reference, cells):
        solution = simulated(example.setup(order=order, cells=n))
        density = profile(solution, (0.6,), (2.2,))[1][0]
        amplitudes.append(float(np.std(density)))
        yield Quantity(f"standard deviation of the density behind the shock on {n} cells", amplitudes[-1])
    yield from positive(solution)
    yield Quantity("share of the amplitude that is kept", amplitudes[1] / amplitudes[0], 0.9, 1.1)


def bump(gas: Any, x: Any, t: Any) -> Any:
    """A density that rises to 2 and falls again between x = 0.1 and 0.3, carried along."""
    import mirabelle as mb

    s = mb.clip((x[0] - t - 0.1) / 0.2, 0.0, 1.0)
    rise = 4 * s * (1 - s)
    return gas.conservative((1 + rise * rise * rise, 1.0 + 0 * s, 1.0 + 0 * s))


def smooth(order: int, cells: Sequence[int]) -> Iterator[Quantity]:
    """A smooth bump of density that the gas carries: ryujin's smooth wave. Limiters must leave it alone."""
    import functools

    from mirabelle import dg

    gas, end = dg.CompressibleEuler(1), 0.6
    exact = functools.partial(bump, gas)

    def error(n: int, volume: dg.VolumeForm, limiters: tuple[Any, ...]) -> tuple[float, float]:
        solver = dg.Solver(order, surface_flux=dg.hllc, volume=volume, limiters=limiters)
        semi = dg.Semidiscretization(dg.box(n, periodic=True), gas, solver)
        solution = simulated((semi, exact, (0.0, end), {"cfl": 0.3, "method": dg.SSPRK3()}))
        return float(distance(solution, exact).sum()), float(profile(solution, (0.7,), (0.9,))[1][0].max())

    errors = []
    for n in cells:
        plain, _ = error(n, dg.FluxDifferencing(dg.ranocha), ())
        limited, top = error(n, dg.SubcellBlending(dg.ranocha, surface_flux=dg.hllc), (dg.PositivityLimiter(),))
        errors.append(limited)
        yield Quantity(f"relative error in L1 on {n} cells", limited)
        yield Quantity(f"beside that without limiters on {n} cells", limited / plain, most=1.1)
    yield near("largest density", top, 2.0, 1e-3)
    yield rate("the error", errors, cells, 3.0)
    # ryujin has 1.06e-5 with 801 unknowns a field.
    yield Quantity("error on the finest mesh", errors[-1], most=1.06e-5)


def turned(order: int, cells: int) -> Iterator[Quantity]:
    """Sod's tube along each axis, and on a mesh that is turned by 45 degrees: one and the same numbers."""
    import mirabelle as mb
    from mirabelle import dg
    from mirabelle.dg.examples import sod

    h = 0.5**0.5

    def lines(problem: Any, counts: tuple[int, ...], axis: int, direction: Sequence[float]) -> np.ndarray:
        """Density, momentum along the tube and energy, by node and cell along it, and all else."""
        # Steps of one length: in more dimensions the limit on steps counts the other directions, too.
        solution = simulated(problem, cfl=None, dt=0.1 / (cells * (2 * order + 1)))
        u, d, n = mb.to_numpy(solution.u), len(counts), order + 1
        fields = np.stack([u[0], np.tensordot(direction, u[1:-1], 1), u[-1]])
        by_axis = np.moveaxis(fields.reshape(3, *[n] * d, *counts), (1 + axis, 1 + d + axis), (1, 2))
        return by_axis.reshape(3, n, cells, -1)

    def along(axis: int, counts: tuple[int, ...]) -> np.ndarray:
        problem = sod.setup(order=order, cells=counts, axis=axis)
        return lines(problem, counts, axis, np.eye(len(counts))[axis])

    def diagonal(counts: tuple[int, int]) -> np.ndarray:
        def exact(x: Any, t: Any) -> Any:
            rho, momentum, across, energy = sod.exact((h * (x[0] + x[1]), h * (x[1] - x[0])), t)
            return rho, h * (momentum - across), h * (momentum + across), energy

        mesh = dg.box(counts, periodic=(False, True), mapping=lambda x: (h * (x[0] - x[1]), h * (x[0] + x[1])))
        straight, _, span, options = sod.setup(order=order, cells=counts)
        ends = dict.fromkeys(mesh.boundaries, dg.FarField(exact))
        semi = dg.Semidiscretization(mesh, straight.equations, straight.solver, ends)
        return lines((semi, exact, span, options), counts, 0, (h, h))

    line = along(0, (cells,))
    for axis, counts in ((0, (cells, 3)), (1, (3, cells)), (0, (cells, 1, 1)), (2, (1, 1, cells))):
        difference = np.abs(along(axis, counts) - line).max()
        yield Quantity(f"distance from the line, along {'xyz'[axis]} of {counts}", difference, most=1e-12)
    difference = np.abs(diagonal((cells, 3)) - line).max()
    yield Quantity("distance from the line at 45 degrees", difference, most=1e-11)
