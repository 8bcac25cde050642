"""The boundary layer of a plate, beside what H. Blasius found in 1908."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.verification._findings import Quantity, near, simulated

# Of f''' + f f'' / 2 = 0, f(0) = f'(0) = 0, f'(oo) = 1, a function of eta = y (Re / x)^(1/2):
FRICTION, DISPLACEMENT = 0.664115, 1.7207877  # 2 f''(0), and what eta - f tends to
EDGE = 8.0  # an eta, above which 1 - f' is less than 1e-5
PLACES = np.linspace(0.4, 0.9, 6)  # along the plate, neither near its front nor near the outflow


def blasius(
    order: int, cells: tuple[int, int, int], method: str, end: float, reynolds: float = 1e4, mach: float = 0.2
) -> Iterator[Quantity]:
    """Friction and displacement along a plate of length one, in a stream of density and speed one.

    There are so many `cells` before the plate, along it and above, smallest at its front. All begins as a
    uniform stream. At Re = 1e5 the cells are a third as high, and there are twice as many steps.
    What Blasius left out stays below a percent: friction warms an insulated wall by 0.2 Pr^(1/2) M^2, which is
    0.7 percent, and the front of the plate is felt as 1 / Re_x.
    """
    import mirabelle as mb
    from mirabelle import dg

    gas = dg.CompressibleNavierStokes(2, viscosity=1 / reynolds)
    pressure, height = 1 / (gas.gamma * mach**2), 30 * reynolds**-0.5
    before, along, above = cells
    stretch, steep = np.expm1(3.0), 3.0 / np.array([along, above])

    def graded(x: Any) -> Any:
        front = np.sign(x[0]) * np.expm1(steep[0] * np.abs(x[0])) / stretch
        return front, height * np.expm1(steep[1] * x[1]) / stretch

    def uniform(x: Any, t: Any) -> Any:
        return gas.conservative((1 + 0 * x[0], 1 + 0 * x[0], 0 * x[0], pressure + 0 * x[0]))

    def displaced(x: Any, t: Any) -> Any:
        """The flow without friction about a body as thick as the layer's displacement, a parabola: v1 - i v2 =
        1 - i d / (2 (x + i y)^(1/2)) (M. Van Dyke, Perturbation Methods in Fluid Mechanics, 1964, section 7).

        A uniform stream outside would push back what the layer pushes out, with a pressure of 1 / M times that.
        """
        r = mb.sqrt(x[0] * x[0] + x[1] * x[1])
        push = 0.5 * DISPLACEMENT * reynolds**-0.5 / r
        v = 1 - push * mb.sqrt(0.5 * (r - x[0])), push * mb.sqrt(0.5 * (r + x[0]))
        p = pressure + 0.5 * (1 - v[0] * v[0] - v[1] * v[1])
        return gas.conservative(((p / pressure) ** (1 / gas.gamma), *v, p))

    mesh = dg.box((before + along, above), lower=(-before, 0.0), upper=(along, above), mapping=graded)
    sides = {
        "x_neg": dg.FarField(displaced),
        "y_neg": dg.Symmetry(),
        "plate": dg.NoSlipWall(),
        "x_pos": dg.SubsonicOutflow(pressure),
        "y_pos": dg.FarField(displaced),
    }
    mesh = mesh.named(plate=lambda x: (x[1] < 1e-9) & (x[0] > 0))
    solver = dg.Solver(order, surface_flux=dg.hllc, viscous=getattr(dg, method)())
    problem = dg.Semidiscretization(mesh, gas, solver, sides), uniform, (0.0, end), {"cfl": 0.8}

    # A polynomial of y in the cells at the wall, by as many points as it has coefficients.
    first, _ = np.polynomial.legendre.leggauss(order + 1)
    y = 0.5 * (1 + first) * height * np.expm1(steep[1]) / stretch
    wall = dg.Probe([np.repeat(PLACES, len(y)), np.tile(y, len(PLACES))], dt=0.5)
    solution = simulated(problem, [wall], cfl_interval=10)

    root = np.sqrt(reynolds * PLACES)
    shears = [sheared(y, values.reshape(4, len(PLACES), -1)) for values in wall.values[-2:]]
    before_end, friction = (2 / reynolds * root * shear for shear in shears)
    change = float(np.abs(before_end / friction - 1).max())
    yield Quantity("change of the friction in half a passage", change, most=1e-3)
    for at, value in zip(PLACES, friction, strict=True):
        yield near(f"Cf Re_x^(1/2) at x = {at:.1f}", value, FRICTION, relative=0.02)
    eta = EDGE * (np.arange(801) / 800)
    for at, scale in zip(PLACES, root, strict=True):
        points = np.array([np.full_like(eta, at), eta * at / scale])
        mass = solution.semi.sample(solution.u, points)[1]
        value = np.trapezoid(1 - mass / mass[-1], eta)
        yield near(f"displacement Re_x^(1/2) / x at x = {at:.1f}", value, DISPLACEMENT, relative=0.03)


def sheared(y: np.ndarray, fields: np.ndarray) -> np.ndarray:
    """The slope at y = 0 of the first velocity, of conservative fields (4, places, points) in a cell there.

    >>> y = np.array([0.0, 0.5, 1.0])
    >>> rho = 2.0 + y
    >>> sheared(y, np.array([[rho], [rho * 0.0 + 3.0 * y], [rho], [rho]])).round(12).tolist()
    [1.5]
    """
    size = y.max()
    of = [np.polynomial.polynomial.polyfit(y / size, field.T, len(y) - 1)[:2] for field in fields[:2]]
    (rho, rho_slope), (mass, mass_slope) = of
    return (mass_slope - mass / rho * rho_slope) / (rho * size)
