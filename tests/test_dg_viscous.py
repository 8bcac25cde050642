"""Second derivatives: exact flows, orders of convergence, what walls do, energy, stable time steps."""

from typing import Any

import numpy as np
import pytest

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg.examples import (
    becker_shock,
    couette,
    diffusion,
    navier_stokes_manufactured,
    poiseuille,
    taylor_green,
    viscous_shock_tube,
)
from mirabelle.dg.time import stable_dt_factor

METHODS = {"BR1": dg.BR1(), "LDG": dg.LDG(), "SIPG": dg.SIPG()}
each_method = pytest.mark.parametrize("viscous", METHODS.values(), ids=METHODS)


def started(example: Any, t: float = 0.0, **parameters: Any) -> tuple[dg.Semidiscretization, Any, np.ndarray]:
    """The semidiscretization of an example, its state at a time, and the rates there."""
    semi, initial, _, _ = example.setup(**parameters)
    u = semi.state(initial, t)
    return semi, u, mb.to_numpy(mb.materialize(semi.rhs(u, semi.scalar(t))))


def matrix(semi: dg.Semidiscretization) -> tuple[np.ndarray, np.ndarray]:
    """A linear right-hand side, as A u + b."""
    shape = (1, semi.nodes, semi.K)
    rates = mb.compile(lambda u: semi.rhs(u))
    b = mb.to_numpy(rates(semi.put(np.zeros(shape)))).reshape(-1)
    columns = [mb.to_numpy(rates(semi.put(e.reshape(shape)))).reshape(-1) - b for e in np.eye(semi.unknowns)]
    return np.stack(columns, 1), b


def steady_error(order: int, cells: Any, cell: str, viscous: dg.Viscous, nodes: str | None = None) -> float:
    """Of a heat equation that a source keeps steady."""
    semi, exact, _, _ = diffusion.setup(order, cells, cell=cell, nodes=nodes, viscous=viscous)
    A, b = matrix(semi)
    source = mb.to_numpy(semi.state(exact)) * (0.25 * semi.dims * np.pi**2 * diffusion.KAPPA)
    found = np.linalg.solve(A, -(source.reshape(-1) + b)).reshape(source.shape)
    return semi.norms(semi.put(found), exact, 0.0)["u"][0]


@pytest.mark.parametrize(
    ("cell", "nodes", "order"),
    [("line", None, 2), ("line", None, 3), ("line", "gauss", 3), ("triangle", None, 1), ("triangle", None, 2)],
)
@each_method
def test_diffusion_converges(cell: str, nodes: str | None, order: int, viscous: dg.Viscous) -> None:
    coarse, fine = (4, 8) if cell == "line" else ((2, 2), (4, 4))
    errors = [steady_error(order, cells, cell, viscous, nodes) for cells in (coarse, fine)]
    central_loss = isinstance(viscous, dg.BR1) and order % 2  # of means on both sides, at odd orders
    assert np.log2(errors[0] / errors[1]) > order + (0 if central_loss else 1) - 0.3


def stretched(x: Any) -> Any:
    return 8 * x[0], *x[1:]


def sheared(x: Any) -> Any:
    return x[0] + 0.8 * x[1], *x[1:-1], 0.7 * x[-1] - 0.2 * x[0]


@pytest.mark.parametrize(
    ("cell", "cells", "order", "mapping"),
    [
        ("line", 4, 3, None),
        ("quadrilateral", (3, 3), 1, None),
        ("quadrilateral", (2, 2), 2, stretched),
        ("quadrilateral", (2, 2), 2, sheared),
        ("triangle", (2, 2), 2, stretched),
        ("triangle", (2, 2), 2, sheared),
        ("triangle", (2, 2), 3, None),
        ("tetrahedron", (1, 1, 1), 2, None),
        ("tetrahedron", (1, 1, 1), 1, sheared),
        ("hexahedron", (2, 1, 1), 1, None),
    ],
)
@each_method
def test_time_steps_are_stable_and_not_small(
    viscous: dg.Viscous, cell: str, cells: Any, order: int, mapping: Any
) -> None:
    mesh = dg.box(cells, cell=cell, mapping=mapping)
    sides = {n: dg.Neumann(0.0) if n.endswith("neg") else dg.Dirichlet(0.0) for n in mesh.boundary_names}
    solver = dg.Solver(order, surface_flux=dg.central, viscous=viscous)
    semi = dg.Semidiscretization(mesh, dg.Diffusion(mesh.dims), solver, sides)
    A, _ = matrix(semi)
    spectrum, u = np.linalg.eigvals(A), semi.state(lambda x, t: (0 * x[0],))
    assert spectrum.real.max() < 0  # the heat leaves
    for method in (dg.RK4(), dg.CarpenterKennedy54()):
        assert 0.4 < float(semi.max_dt(u, 0.9, method)) / stable_dt_factor(spectrum, method) < 1


@each_method
def test_time_steps_are_stable_with_over_integration(viscous: dg.Viscous) -> None:
    sides = {"x_neg": dg.Neumann(0.0), "x_pos": dg.Dirichlet(0.0)}
    solver = dg.Solver(2, surface_flux=dg.central, viscous=viscous, over_integration=5)
    semi = dg.Semidiscretization(dg.box(6), dg.Diffusion(1), solver, sides)
    limit = stable_dt_factor(np.linalg.eigvals(matrix(semi)[0]), dg.CarpenterKennedy54())
    assert float(semi.max_dt(semi.state(lambda x, t: (0 * x[0],)), 0.9)) < limit


@pytest.mark.parametrize("cell", ["line", "triangle", "quadrilateral", "tetrahedron", "hexahedron"])
def test_symmetric_penalties_are_symmetric_and_dissipate(cell: str) -> None:
    d = dg.element(cell, 1).dims
    semi, _, _, _ = diffusion.setup(1 if d == 3 else 2, (2,) * d if d < 3 else (1, 1, 2), cell=cell)
    A, _ = matrix(semi)
    M = (
        semi.element.mass[:, None, :, None]
        * (np.eye(semi.K) * semi.geometry.jacobian_at(semi.element.nodes[:1])[0])[None, :, None]
    )
    S = M.reshape(A.shape) @ A
    assert np.abs(S - S.T).max() < 1e-12 * np.abs(S).max()
    assert np.linalg.eigvalsh(S).max() < 0


@pytest.mark.parametrize("cell", ["line", "triangle", "quadrilateral"])
@each_method
def test_weak_and_strong_forms_agree(viscous: dg.Viscous, cell: str) -> None:
    d = dg.element(cell, 1).dims
    mesh, found = dg.box((3,) * d, cell=cell), []
    sides = {n: dg.Neumann(1.0) if n.endswith("neg") else dg.Dirichlet(0.5) for n in mesh.boundary_names}
    for form in (dg.WeakForm(), dg.StrongForm()):
        solver = dg.Solver(3, volume=form, viscous=viscous, surface_flux=dg.central)
        semi = dg.Semidiscretization(mesh, dg.Diffusion(d), solver, sides)
        u = semi.state(lambda x, t: (mb.sin(3 * x[0]) + mb.where(x[-1] > 0.5, 1.0, 0.0),))
        found.append(mb.to_numpy(mb.materialize(semi.rhs(u))))
    assert np.abs(found[0] - found[1]).max() < 1e-12 * np.abs(found[0]).max()


def test_penalties_leave_alone_what_does_not_diffuse() -> None:
    """Jumps of a gas' density alone, at the same temperature and velocity, are for the upwind flux."""
    gas, mesh = dg.CompressibleNavierStokes(2, viscosity=0.1), dg.box((4, 4), periodic=True)
    rates = []
    for viscous in (dg.BR1(), dg.SIPG(), dg.LDG(penalty=1.0)):
        semi = dg.Semidiscretization(mesh, gas, dg.Solver(2, viscous=viscous))
        u = semi.state(lambda x, t: gas.conservative((r := 1.0 + mb.where(x[0] < 0.5, 1.0, 0.0), 1.0, 0.0, r)))
        rates.append(mb.to_numpy(mb.materialize(semi.rhs(u))))
    np.testing.assert_allclose(rates[1:], rates[:1] * 2, atol=1e-11)


@pytest.mark.parametrize("insulated", [False, True])
@each_method
def test_couette_flow_is_exact(viscous: dg.Viscous, insulated: bool) -> None:
    _, _, rates = started(couette, cells=(1, 2), viscous=viscous, insulated=insulated)
    assert np.abs(rates).max() < 1e-11
    _, _, wrong = started(couette, cells=(1, 2), order=1, viscous=viscous, insulated=insulated)
    assert np.abs(wrong).max() > 1e-4


@each_method
def test_poiseuille_flow_is_exact(viscous: dg.Viscous) -> None:
    _, _, rates = started(poiseuille, order=4, cells=(1, 2), viscous=viscous)
    assert np.abs(rates).max() < 1e-9


def error_after(example: Any, end: float, **parameters: Any) -> float:
    """Of the density, after steps by the classical Runge-Kutta method."""
    semi, exact, _, _ = example.setup(**parameters)
    program = mb.compile(lambda u, t: semi.rhs(u, t))

    def rates(u: np.ndarray, t: float) -> np.ndarray:
        return mb.to_numpy(program(semi.put(u), semi.scalar(t)))

    u = mb.to_numpy(semi.state(exact))
    steps = int(np.ceil(end / float(semi.max_dt(semi.put(u), 0.9, dg.RK4()))))
    h = end / steps
    for t in np.arange(steps) * h:
        a = rates(u, t)
        b = rates(u + h / 2 * a, t + h / 2)
        c = rates(u + h / 2 * b, t + h / 2)
        u = u + h / 6 * (a + 2 * b + 2 * c + rates(u + h * c, t + h))
    return semi.norms(semi.put(u), exact, end)["rho"][0]


@pytest.mark.parametrize(
    ("example", "sizes", "parameters"),
    [
        (navier_stokes_manufactured, ((3, 3), (6, 6)), {"order": 2, "walls": True}),
        (navier_stokes_manufactured, ((3, 3), (6, 6)), {"order": 2, "cell": "triangle", "walls": True}),
        (becker_shock, (60, 120), {"order": 3}),
    ],
    ids=["walls-quadrilateral", "walls-triangle", "shock"],
)
def test_navier_stokes_converges(example: Any, sizes: tuple[Any, Any], parameters: dict[str, Any]) -> None:
    coarse, fine = (error_after(example, 0.002, cells=cells, **parameters) for cells in sizes)
    assert np.log2(coarse / fine) > parameters["order"] + 1 - 0.3


def test_a_made_source_is_what_differences_say() -> None:
    semi, u, rates = started(navier_stokes_manufactured, t=0.1, order=6, cells=(2, 2))
    exact = navier_stokes_manufactured.exact
    later, sooner = (mb.to_numpy(semi.state(exact, 0.1 + h)) for h in (1e-4, -1e-4))
    assert np.abs(rates - (later - sooner) / 2e-4).max() < 0.05
    source = semi.source(semi.fields(u), semi.x, semi.scalar(0.1), semi.equations)
    assert float(mb.max(mb.abs(source[3]))) > 1


def test_the_shock_of_becker_solves_its_relations() -> None:
    x = np.linspace(-0.5, 0.5, 201)
    rho, momentum, _ = (mb.to_numpy(mb.materialize(q)) for q in becker_shock.exact((mb.HostArray(x),), 0.0))
    v = momentum / rho - becker_shock.DRIFT
    slow, length = becker_shock.SLOW, becker_shock.LENGTH
    np.testing.assert_allclose(rho * v, 1.0, rtol=1e-13)
    assert v[0] == pytest.approx(1.0, abs=1e-4) and v[-1] == pytest.approx(slow, abs=1e-9)
    slope = (v - 1) * (v - slow) / (length * v)  # Becker's equation
    np.testing.assert_allclose(np.gradient(v, x)[1:-1], slope[1:-1], atol=0.02 * np.abs(slope).max())


def test_walls_let_no_mass_pass_and_insulated_ones_no_energy() -> None:
    semi, u, _ = started(viscous_shock_tube, order=2, cells=(4, 2))
    gas = semi.equations
    u = semi.state(
        lambda x, t: gas.conservative((1 + 0.2 * x[0], x[0] * x[1] - 0.2, x[0] - x[1] ** 2, 2 - x[1]))
    )
    rates = mb.to_numpy(semi.integrate(semi.rhs(u)))
    assert np.abs(rates[[0, 3]]).max() < 1e-13
    assert np.abs(rates[1:3]).min() > 1e-2  # they push the gas


def test_energy_of_the_taylor_green_vortex() -> None:
    semi, u, rates = started(taylor_green, cells=(4, 4, 4))
    loss, step = taylor_green.dissipation(semi, u), semi.put(1e-3 * rates)
    change = taylor_green.kinetic_energy(semi, u + step) - taylor_green.kinetic_energy(semi, u - step)
    assert taylor_green.kinetic_energy(semi, u) == pytest.approx(0.125, rel=1e-12)
    assert loss == pytest.approx(4.6875e-4, rel=1e-3)
    assert -change / 2e-3 == pytest.approx(loss, rel=1e-3)
    assert np.abs(mb.to_numpy(semi.integrate(semi.put(rates)))).max() < 1e-10


def test_places_and_programs_agree() -> None:
    parameters = {"order": 2, "cells": (2, 2), "cell": "triangle", "viscous": dg.SIPG(), "walls": True}
    semi, u, host = started(navier_stokes_manufactured, t=0.1, **parameters)
    program = mb.compile(lambda u, t: semi.rhs(u, t))
    _, _, reference = started(navier_stokes_manufactured, t=0.1, array=mb.RefArray, **parameters)
    for other in (mb.to_numpy(program(u, semi.scalar(0.1))), reference):
        assert np.abs(other - host).max() < 1e-12 * np.abs(host).max()
