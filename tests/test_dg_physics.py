"""Pointwise physics of mirabelle.dg: equations, numerical fluxes and boundary conditions."""

import pickle
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import mirabelle as mb
from mirabelle.dg import boundary, fluxes
from mirabelle.dg.equations import (
    Acoustics,
    Advection,
    AdvectionDiffusion,
    Burgers,
    CompressibleEuler,
    CompressibleNavierStokes,
    Diffusion,
    Equations,
    HeterogeneousAcoustics,
    Maxwell,
    Sutherland,
    Tracers,
    VariableAdvection,
)
from mirabelle.dg.equations.base import combined, dot

N = 7
ARRAYS = {"host": mb.HostArray, "reference": mb.RefArray}


def speed(x):
    return 1.0 + x[0] * x[0]


def density(x):
    return 2.0 + mb.sin(x[0])


def swirl(x):
    return tuple(q + 0.5 for q in reversed(x))


GASES = [CompressibleEuler(1), CompressibleEuler(2), CompressibleEuler(3, gamma=5 / 3)]
GASES += [
    CompressibleNavierStokes(2),
    Tracers(CompressibleEuler(2), count=2),
    Tracers(CompressibleNavierStokes(3)),
]
LINEAR = [Advection((1.5,)), Advection((1.5, -0.5, 0.2)), VariableAdvection(2, swirl), Acoustics(1, 2.0, 3.0)]
LINEAR += [
    Acoustics(3, 0.5, 2.0),
    HeterogeneousAcoustics(2, speed, density),
    Maxwell(2, 2.0, 3.0),
    Maxwell(3, 2.0, 0.5),
]
OTHERS = [Burgers(1), Burgers(3), Diffusion(2), AdvectionDiffusion((1.0, 2.0))]


def named(equations):
    """What tells equations apart, the same in every process: functions without their addresses."""
    return re.sub(r"<function (\w+) at \w+>", r"\1", str(equations))


ALL = [*GASES, *LINEAR, *OTHERS]
TWO_POINT = [fluxes.ranocha, fluxes.chandrashekar, fluxes.shima, fluxes.kennedy_gruber]
ENTROPIC = [fluxes.ranocha, fluxes.chandrashekar, fluxes.entropy_conservative]


def cases():
    for equations in ALL:
        chosen = [fluxes.central, fluxes.lax_friedrichs, fluxes.hll]
        if isinstance(equations, CompressibleEuler | Tracers):
            chosen += [fluxes.hllc, fluxes.roe, *TWO_POINT, fluxes.plus_dissipation(fluxes.ranocha)]
        elif equations in LINEAR or isinstance(equations, AdvectionDiffusion):
            chosen.append(fluxes.upwind)
        if not isinstance(equations, Diffusion):
            chosen.append(fluxes.entropy_conservative)
        for flux in chosen:
            yield pytest.param(equations, flux, id=f"{named(equations)}-{flux.__name__}".replace(" ", ""))


CASES = list(cases())


def fields(
    equations: Equations, seed: int, array: Any = mb.HostArray, near: float = 0.0, mach: float = 2.0
) -> tuple:
    """Conservative fields at N points, of seeds `near` each other; auxiliary fields are the same for all."""
    rng = np.random.default_rng(seed)
    state = rng.normal(size=(len(equations), N))
    if near:
        state = np.random.default_rng(99).normal(size=state.shape) + near * state
    given = equations.auxiliary(tuple(map(array, np.random.default_rng(5).uniform(size=(equations.dims, N)))))
    if "rho" in equations.names:
        state[0], state[equations.dims + 1] = np.exp(0.5 * state[0]), np.exp(0.5 * state[equations.dims + 1])
        state[1 : equations.dims + 1] *= mach
    return (*equations.conservative((*map(array, state), *given)), *given)


def normals(dims: int, seed: int = 3, array: Any = mb.HostArray) -> tuple:
    n = np.random.default_rng(seed).normal(size=(dims, N))
    return tuple(map(array, n / np.linalg.norm(n, axis=0)))


def numbers(fields: Any) -> np.ndarray:
    return np.array([np.broadcast_to(mb.to_numpy(q) if not isinstance(q, float) else q, N) for q in fields])


def close(a: Any, b: Any, tolerance: float = 1e-12) -> None:
    a, b = (x if isinstance(x, np.ndarray) else numbers(x) for x in (a, b))
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, np.abs(b).max()))


@pytest.mark.parametrize("equations", ALL, ids=named)
def test_flux_along_a_normal_is_that_along_the_axes(equations):
    u, n = fields(equations, 1), normals(equations.dims)
    assert len(equations) == len(equations.names) == len(equations.primitive_names)
    close(equations.normal_flux(u, n), Equations.normal_flux(equations, u, n))
    for axis in range(equations.dims):
        unit = tuple(float(axis == a) for a in range(equations.dims))
        close(equations.flux(u, axis), equations.normal_flux(u, unit))
    longer = tuple(2.5 * q for q in n)
    close(numbers(equations.normal_flux(u, longer)), 2.5 * numbers(equations.normal_flux(u, n)))


@pytest.mark.parametrize("equations", ALL, ids=named)
def test_wave_speed_bounds_the_flux_jacobian(equations):
    """Against the eigenvalues of the Jacobian by automatic differentiation."""
    if isinstance(equations, Diffusion):
        return
    u, n = fields(equations, 1), normals(equations.dims)
    m, bound = len(equations), mb.to_numpy(equations.max_speed(u, n))
    for i in range(3):
        given = tuple(q[i] for q in u[m:])
        normal = tuple(float(q[i]) for q in n)
        state = mb.stack([q[i] for q in u[:m]])
        jacobian = mb.autodiff.jacobian(
            lambda s: mb.stack(equations.normal_flux((*(s[j] for j in range(m)), *given), normal)), state
        )
        largest = np.abs(np.linalg.eigvals(mb.to_numpy(jacobian))).max()
        np.testing.assert_allclose(bound[i], largest, rtol=1e-6)


@pytest.mark.parametrize(("equations", "flux"), CASES)
def test_flux_is_consistent_and_conservative(equations, flux):
    u, v, n = fields(equations, 1), fields(equations, 2), normals(equations.dims)
    close(flux(u, u, n, equations), equations.normal_flux(u, n))
    there, back = flux(u, v, n, equations), flux(v, u, tuple(-q for q in n), equations)
    assert len(there) == len(equations)
    close(numbers(there), -numbers(back))


@pytest.mark.parametrize("flux", [fluxes.lax_friedrichs, fluxes.hll, fluxes.hllc, fluxes.roe, *TWO_POINT])
def test_fluxes_agree_between_arrays(flux):
    gas, results = CompressibleEuler(2), []
    for array in ARRAYS.values():
        u, v, n = fields(gas, 1, array), fields(gas, 2, array), normals(2, array=array)
        results.append(flux(u, v, n, gas))
        assert all(type(q).__name__.startswith(array.__name__) for q in map(mb.materialize, results[-1]))
    close(*results)


@pytest.mark.parametrize("flux", [fluxes.lax_friedrichs, fluxes.hll, fluxes.hllc, fluxes.roe, *TWO_POINT])
@pytest.mark.parametrize("gas", [CompressibleEuler(2), CompressibleEuler(3)], ids=named)
def test_fluxes_turn_with_the_axes(gas, flux):
    Q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(gas.dims, gas.dims)))

    def turned(u):
        a = numbers(u)
        return tuple(map(mb.HostArray, (a[0], *(Q @ a[1:-1]), a[-1])))

    u, v, n = fields(gas, 1), fields(gas, 2), normals(gas.dims)
    there = tuple(map(mb.HostArray, Q @ numbers(n)))
    close(flux(turned(u), turned(v), there, gas), turned(flux(u, v, n, gas)))


@pytest.mark.parametrize("flux", ENTROPIC, ids=lambda f: f.__name__)
@pytest.mark.parametrize("near", [0.0, 1e-1, 1e-3, 1e-9])
def test_fluxes_of_gases_conserve_the_entropy(flux, near):
    for gas in (CompressibleEuler(1), CompressibleEuler(3, gamma=5 / 3), Tracers(CompressibleEuler(2))):
        tadmor(flux, gas, fields(gas, 1, near=near), fields(gas, 2, near=near))


@pytest.mark.parametrize("equations", [*LINEAR, *OTHERS[:2]], ids=named)
def test_fluxes_of_other_equations_conserve_the_entropy(equations):
    tadmor(fluxes.entropy_conservative, equations, fields(equations, 1), fields(equations, 2))


def tadmor(flux, equations, u, v):
    """Tadmor's condition: the jump of the entropy variables times the flux is the jump of the potential."""
    for axis in range(equations.dims):
        normal = tuple(float(axis == a) for a in range(equations.dims))
        f = numbers(flux(u, v, normal, equations))
        jump = numbers(equations.entropy_variables(v)) - numbers(equations.entropy_variables(u))
        potential = numbers([equations.entropy_potential(q, axis) for q in (u, v)])
        scale = (np.abs(f) * np.abs(jump)).sum(axis=0) + np.abs(potential).sum(axis=0)
        assert np.all(np.abs((f * jump).sum(axis=0) - (potential[1] - potential[0])) <= 1e-12 * scale)


@pytest.mark.parametrize("equations", [q for q in ALL if not isinstance(q, Diffusion)], ids=named)
def test_entropy(equations):
    """Entropy variables are the entropy's gradient, the potential is `w . f - q`, and `grad q = w . grad f`."""
    u, m = fields(equations, 1), len(equations)
    given = u[m:]

    def with_given(f):
        return lambda s: mb.sum(f((*(s[i] for i in range(m)), *given)))

    state = mb.stack(u[:m])
    w = mb.autodiff.gradient(with_given(equations.entropy), state)
    close(mb.to_numpy(w), numbers(equations.entropy_variables(u)))
    variables = tuple(map(mb.HostArray, numbers(equations.entropy_variables(u))))

    def production(s):  # its gradient is w . grad f at s = u
        f = equations.flux(s, 0)
        return sum((a * b for a, b in zip(variables[1:], f[1:], strict=True)), variables[0] * f[0])

    def flux_of_entropy(s):
        f, w = equations.flux(s, 0), equations.entropy_variables(s)
        return sum((a * b for a, b in zip(w, f, strict=True)), -1.0 * equations.entropy_potential(s, 0))

    gradients = [mb.autodiff.gradient(with_given(f), state) for f in (flux_of_entropy, production)]
    close(*map(mb.to_numpy, gradients), tolerance=1e-10)


@pytest.mark.parametrize("equations", ALL, ids=named)
def test_primitive_fields_and_back(equations):
    u = fields(equations, 1)
    given = u[len(equations) :]
    close(equations.conservative((*equations.primitive(u), *given)), u[: len(equations)])


@pytest.mark.parametrize("gas", [CompressibleEuler(1), Tracers(CompressibleEuler(3), 2)], ids=named)
@pytest.mark.parametrize("flux", [fluxes.hll, fluxes.hllc, fluxes.roe], ids=lambda f: f.__name__)
def test_supersonic_flow_is_upwinded(gas, flux):
    n, d = normals(gas.dims), gas.dims
    u, v = (
        gas.conservative((w[0], *combined(1.0, w[1 : d + 1], 30.0, n), *w[d + 1 :]))
        for w in (gas.primitive(fields(gas, i, mach=1.0)) for i in (1, 2))
    )
    close(flux(u, v, n, gas), gas.normal_flux(u, n))
    close(flux(u, v, tuple(-q for q in n), gas), gas.normal_flux(v, tuple(-q for q in n)))


@pytest.mark.parametrize("flux", [fluxes.hllc, fluxes.roe], ids=lambda f: f.__name__)
def test_contacts_and_shear_stay_sharp(flux):
    gas, n = CompressibleEuler(2), normals(2)
    along, rho = (-n[1], n[0]), fields(gas, 1)[0]
    p = 0.0 * rho + 2.0
    u = gas.conservative((rho, *(3.0 * q for q in along), p))
    v = gas.conservative((4.0 * rho, *(-5.0 * q for q in along), p))
    close(flux(u, v, n, gas), (0.0 * p, *(2.0 * q for q in n), 0.0 * p))


def test_roe_has_no_shocks_of_rarefactions():
    """At a sonic point the flux dissipates entropy, as an expansion shock would not: Harten's fix."""
    gas, p, normal = CompressibleEuler(1), mb.HostArray([1.0, 1.2]), (1.0,)
    rho = p ** (1 / 1.4)  # of constant entropy
    c = mb.sqrt(1.4 * p / rho)
    invariant = 3.0 * mb.sum(c)  # u + 2 c / (gamma - 1), such that u = c between the states
    for shift in (0.0, -0.02, 0.02):
        w = (rho, invariant - 5.0 * c + shift, p)
        u, v = (tuple(q[i : i + 1] for q in gas.conservative(w)) for i in (1, 0))
        assert float((w[1] - c)[1]) < 0 < float((w[1] - c)[0])
        jump = combined(1.0, gas.entropy_variables(v), -1.0, gas.entropy_variables(u))
        potential = gas.entropy_potential(v, 0) - gas.entropy_potential(u, 0)
        assert float((dot(fluxes.roe(u, v, normal, gas), jump) - potential)[0]) < 0


def test_upwind_fluxes_are_those_of_the_jacobian():
    """The flux plus half of `|A|` times the jump, with `|A|` by its eigenvectors."""
    for equations in (
        Acoustics(2, 2.0, 3.0),
        Maxwell(2, 2.0, 3.0),
        Maxwell(3, 0.5, 2.0),
        Advection((1.0, -2.0)),
    ):
        m, n = len(equations), normals(equations.dims)
        u, v = fields(equations, 1), fields(equations, 2)
        f = numbers(fluxes.upwind(u, v, n, equations))
        for i in range(3):
            normal = tuple(float(q[i]) for q in n)
            columns = [equations.normal_flux(tuple(map(float, e)), normal) for e in np.eye(m)]
            A = np.array(columns, dtype=float).T
            scale = np.diag(
                numbers(equations.entropy_variables(tuple(map(mb.HostArray, np.ones((m, N))))))[:, 0] ** 0.5
            )
            values, vectors = np.linalg.eigh(scale @ A @ np.linalg.inv(scale))  # symmetric in these variables
            absolute = np.linalg.inv(scale) @ vectors @ np.diag(np.abs(values)) @ vectors.T @ scale
            a, b = numbers(u)[:m, i], numbers(v)[:m, i]
            np.testing.assert_allclose(f[:, i], A @ (a + b) / 2 + absolute @ (a - b) / 2, atol=1e-12)


def test_sound_at_a_jump_of_the_medium():
    """A wave of pressure 1 onto a jump of impedance: transmitted 2 Z2 / (Z1 + Z2) of the textbook."""
    medium = HeterogeneousAcoustics(1, lambda x: x[0], lambda x: x[0])
    one, two = (medium.auxiliary((mb.HostArray([c]),)) for c in (1.0, 2.0))  # impedances 1 and 4
    p, zero = mb.HostArray([1.0]), mb.HostArray([0.0])
    u = (*medium.conservative((p, p, *one)), *one)
    v = (*medium.conservative((zero, zero, *two)), *two)
    f = fluxes.upwind(u, v, (1.0,), medium)
    np.testing.assert_allclose([float(q[0]) for q in f], [2 / (1 + 4), 2 * 4 / (1 + 4)], rtol=1e-14)


def test_maxwell_is_two_curls():
    """A plane wave solves the equations: `u_t + sum_a F_a(u)_a = 0` with `u = w cos(k . x - omega t)`."""
    k, e = np.array([1.0, 2.0, -2.0]), np.array([2.0, 0.0, 1.0])
    medium = Maxwell(3, permittivity=2.0, permeability=0.5)
    h = np.cross(k / 3, e) * (2.0 / 0.5) ** 0.5
    w = tuple(mb.HostArray([q]) for q in (*e, *h))
    spread = medium.normal_flux(w, tuple(map(float, k)))
    close(numbers(spread), 3.0 * medium.speed * numbers(w))
    plane = Maxwell(2, 2.0, 0.5)
    flat = tuple(mb.HostArray([q]) for q in (0.0, 0.0, 3.0, 4.0, 5.0, 0.0))
    for axis in range(2):
        close(numbers(plane.flux(flat[2:5], axis)), numbers(medium.flux(flat, axis))[2:5])


def test_tracers_go_with_the_mass():
    """A fraction of one is carried as density is, by every flux."""
    gas = Tracers(CompressibleEuler(2))
    n = normals(2)
    u, v = ((*fields(gas.carrier, i), fields(gas.carrier, i)[0]) for i in (1, 2))
    for flux in (fluxes.lax_friedrichs, fluxes.hll, fluxes.hllc, fluxes.roe, *TWO_POINT):
        f = flux(u, v, n, gas)
        close([f[4]], [f[0]])
        close(f[:4], flux(u[:4], v[:4], n, gas.carrier))
    close([gas.pressure(u)], [gas.carrier.pressure(u[:4])])
    assert pickle.loads(pickle.dumps(gas)) == gas and hash(gas) == hash(Tracers(CompressibleEuler(2)))
    mixing = Tracers(CompressibleNavierStokes(1), mixing=0.1)
    w = fields(mixing, 1)
    gradients = [tuple(mb.HostArray(np.full(N, q)) for q in (0.0, 0.0, 2.0))]
    close([mixing.viscous_flux(w, gradients, 0)[3]], [0.2 * w[0]])
    assert mixing.second_order and not gas.second_order
    assert len(mixing.gradient_variables(w)) == 3


def test_gas_helpers():
    gas = CompressibleEuler(2)
    u = fields(gas, 1)
    rho, v1, v2, p = gas.primitive(u)
    close([gas.pressure(u), *gas.velocity(u)], [p, v1, v2])
    close([gas.mach(u) * gas.sound_speed(u)], [mb.sqrt(v1 * v1 + v2 * v2)])
    close([gas.indicator(u)], [rho * p])
    air = CompressibleNavierStokes(2, gas_constant=2.0)
    close([air.temperature(u)], [p / rho / 2])


def test_viscous_stress_and_heat():
    """Against the formulas with tensors, of random gradients."""
    d, rng = 3, np.random.default_rng(0)
    gas = CompressibleNavierStokes(d, prandtl=0.7, viscosity=Sutherland(0.1, 2.0, 0.5), gas_constant=1.5)
    u, g = fields(gas, 1), rng.normal(size=(d, d + 1, N))
    T = numbers([gas.temperature(u)])[0]
    mu = 0.1 * (T / 2.0) ** 1.5 * (2.0 + 0.5) / (T + 0.5)
    dv = g[:, :d].swapaxes(0, 1)  # dv[i, j] = d v_i / d x_j
    stress = mu * (dv + dv.swapaxes(0, 1) - 2 / 3 * np.eye(d)[:, :, None] * np.einsum("iin->n", dv))
    conductivity = mu * 1.5 * 1.4 / 0.4 / 0.7
    v = numbers(gas.velocity(u))
    gradients = [tuple(map(mb.HostArray, q)) for q in g]
    for a in range(d):
        energy = (stress[:, a] * v).sum(axis=0) + conductivity * g[a, d]
        close(gas.viscous_flux(u, gradients, a), np.array([0 * energy, *stress[:, a], energy]))
    close([gas.diffusivity(u)], [mb.HostArray(1.4 / 0.7 * mu) / u[0]])
    close([CompressibleNavierStokes(3, prandtl=2.0, viscosity=0.3).diffusivity(u)], [0.4 / u[0]])


@pytest.mark.parametrize("name", ARRAYS)
def test_walls_let_nothing_pass(name):
    array, x = ARRAYS[name], ()
    for equations in (
        CompressibleEuler(2),
        Tracers(CompressibleEuler(3)),
        Acoustics(2),
        HeterogeneousAcoustics(1, speed, density),
    ):
        u, n = fields(equations, 1, array, mach=0.3), normals(equations.dims, array=array)
        for flux in (fluxes.lax_friedrichs, fluxes.hll):
            f = numbers(boundary.SlipWall().flux(u, n, x, 0.0, equations, flux))
            push = f[1 : equations.dims + 1]
            close(np.delete(f, range(1, equations.dims + 1), axis=0), 0 * f[equations.dims :])
            along = (push * numbers(n)).sum(axis=0)
            close(push, along * numbers(n))
    metal, n = Maxwell(3), normals(3, array=array)
    u = fields(metal, 1, array)
    outside = metal.reflected(u, n)
    close(np.cross((numbers(u) + numbers(outside))[:3].T, numbers(n).T), np.zeros((N, 3)))
    close(metal.reflected(outside, n), u)


@pytest.mark.parametrize("name", ARRAYS)
def test_no_slip_walls(name):
    array, gas = ARRAYS[name], CompressibleNavierStokes(2)
    u, n = fields(gas, 1, array, mach=0.3), normals(2, array=array)
    w, f = gas.gradient_variables(u), fields(CompressibleEuler(2), 4, array)
    still = boundary.NoSlipWall()
    close([still.flux(u, n, (), 0.0, gas, fluxes.hllc)[i] for i in (0, 3)], np.zeros((2, N)))
    close(still.value(w, u, n, (), 0.0, gas), [0 * w[0], 0 * w[0], w[2]])
    close(still.viscous(f, u, n, (), 0.0, gas), [*f[:3], 0 * f[0]])
    sliding = boundary.NoSlipWall(velocity=lambda x, t: (-2 * t * n[1], 2 * t * n[0]), temperature=(3.0,))
    close(sliding.value(w, u, n, (), 0.5, gas), [-n[1], n[0], 0 * w[2] + 3.0])
    close(sliding.viscous(f, u, n, (), 0.5, gas), f)
    work = 2.0 * f[1] - 3.0 * f[2]
    close(boundary.NoSlipWall(velocity=(2.0, -3.0)).viscous(f, u, n, (), 0.0, gas), [*f[:3], work])
    outside = gas.gradient_variables(sliding.state(u, n, (), 0.5, gas))
    close([0.5 * (a + b) for a, b in zip(outside, w, strict=True)], [-n[1], n[0], 0 * w[2] + 3.0])
    close([sliding.flux(u, n, (), 0.5, gas, fluxes.hllc)[0]], np.zeros((1, N)))
    slip = boundary.SlipWall()
    stuck = numbers(slip.value(w, u, n, (), 0.0, gas))
    close((stuck[:2] * numbers(n)).sum(axis=0), np.zeros(N))
    close(stuck[2], numbers(w)[2])
    traction = numbers(slip.viscous(f, u, n, (), 0.0, gas))
    close(traction[1] * numbers(n)[1], traction[2] * numbers(n)[0])
    close(traction[3], np.zeros(N))


@pytest.mark.parametrize("name", ARRAYS)
def test_given_states_at_boundaries(name):
    array, gas = ARRAYS[name], CompressibleEuler(1)
    u, n, x = fields(gas, 1, array), normals(1, array=array), (array(np.arange(float(N))),)
    state = (1.0, 5.0, 20.0)
    far = boundary.FarField(state).state(u, n, x, 0.0, gas)
    close(far, [array(np.full(N, q)) for q in state])
    moving = boundary.Prescribed(lambda x, t: (1.0 + t * x[0], 5.0, 20.0))
    close(moving.state(u, n, x, 2.0, gas), [1.0 + 2.0 * x[0], *far[1:]])
    enters = boundary.SupersonicInflow(state).flux(u, n, x, 0.0, gas, fluxes.hll)
    close(enters, gas.normal_flux(far, n))
    close(boundary.SupersonicOutflow().flux(u, n, x, 0.0, gas, fluxes.hll), gas.normal_flux(u, n))
    out = boundary.SubsonicOutflow(2.0).state(u, n, x, 0.0, gas)
    close([gas.pressure(out), out[0], out[1]], [0 * u[0] + 2.0, u[0], u[1]])
    medium = HeterogeneousAcoustics(1, speed, density)
    v = fields(medium, 1, array)
    close(boundary.FarField((0.0, 0.0)).state(v, n, x, 0.0, medium), [0 * v[0], 0 * v[0], *v[2:]])
    heat = Diffusion(1, kappa=2.0)
    close(boundary.Dirichlet((3.0,)).value(u[:1], u[:1], n, x, 0.0, heat), [0 * u[0] + 3.0])
    close(boundary.Dirichlet(lambda x, t: x[0]).state(u[:1], n, x, 0.0, heat), x)
    flowing = boundary.Neumann(lambda x, t: (x[0] + t,))
    close(flowing.value(u[:1], u[:1], n, x, 0.0, heat), u[:1])
    close(flowing.viscous(u[:1], u[:1], n, x, 1.0, heat), [x[0] + 1.0])


def test_fluxes_join_one_kernel():
    gas = CompressibleEuler(3)
    u, v, n = fields(gas, 1), fields(gas, 2), normals(3)
    u, v = (tuple(map(mb.HostArray, numbers(q))) for q in (u, v))

    @mb.compile
    def total(u, v, n):
        f = fluxes.hllc(u, v, n, gas)
        return sum(f[1:], f[0])

    with mb.count() as c:
        f = total(u, v, n)
        f = total(u, v, n)
    assert c.launches == 2 and c.temporaries == 0
    close([f], numbers(fluxes.hllc(u, v, n, gas)).sum(axis=0)[None])


def test_single_precision_stays_single():
    for equations, flux in (
        (CompressibleNavierStokes(2), fluxes.ranocha),
        (Tracers(CompressibleEuler(1)), fluxes.hllc),
        (CompressibleEuler(1), fluxes.roe),
        (CompressibleEuler(3), fluxes.chandrashekar),
        (VariableAdvection(2, swirl), fluxes.lax_friedrichs),
        (Maxwell(2), fluxes.upwind),
        (Acoustics(2), fluxes.upwind),
        (Burgers(), fluxes.hll),
    ):
        u = tuple(mb.astype(q, mb.float32) for q in fields(equations, 1))
        v = tuple(mb.astype(q, mb.float32) for q in fields(equations, 2))
        n = tuple(mb.astype(q, mb.float32) for q in normals(equations.dims))
        assert {q.dtype for q in flux(u, v, n, equations)} == {np.dtype(np.float32)}
        assert equations.max_speed(u, n).dtype == mb.float32


@dataclass(frozen=True)
class Bare(Equations):
    """Equations without anything."""

    dims = 1
    names = ("q",)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: CompressibleEuler(4), r"dims = 4, .* in 1 to 3 .*CompressibleEuler\(dims=3\)"),
        (lambda: Maxwell(1), "2 to 3 dimensions"),
        (lambda: CompressibleEuler(2, gamma=1.0), "ratio is above 1"),
        (lambda: CompressibleNavierStokes(2, viscosity=-1.0), r"viscosity = -1.0 must be a positive number"),
        (lambda: CompressibleNavierStokes(2, prandtl=0.0), r"prandtl = 0.0 must be a positive number"),
        (lambda: Acoustics(2, speed="fast"), "speed = 'fast' must be a positive number"),
        (lambda: Diffusion(2, kappa=-1.0), "kappa = -1.0"),
        (lambda: Advection([1.0, 2.0]), r"not a tuple of numbers.*Advection\(\(1.0, 0.5\)\)"),
        (lambda: Tracers(Burgers(1)), r"Tracers\(CompressibleEuler\(2\), count=1\)"),
        (lambda: Tracers(CompressibleEuler(1), 0), "cannot put 0 tracers"),
        (lambda: fluxes.hllc((1.0,), (1.0,), (1.0,), Burgers()), "`hllc` is not written for Burgers.*dg.hll"),
        (lambda: fluxes.upwind((1.0,), (1.0,), (1.0,), Burgers()), "Burgers has no characteristic splitting"),
        (lambda: Bare().flux((1.0,), 0), r"Bare has no flux.*Define `flux\(self, u, axis\)`"),
        (lambda: Bare().entropy_potential((1.0,), 0), "Bare has no entropy potential"),
        (lambda: Bare().reflected((1.0,), (1.0,)), "Bare has no mirror image"),
        (lambda: boundary.NoSlipWall(None, (1.0,)).value((), (1.0,), (), (), 0.0, GASES[1]), "tuple of v1, v2"),
        (lambda: boundary.FarField((1.0,)).state((1.0,), (), (), 0.0, GASES[1]), "a tuple of rho, rho_v1,"),
    ],
)  # fmt: skip
def test_bad_input_is_explained(make, sentence):
    with pytest.raises((ValueError, TypeError, NotImplementedError), match=sentence):
        make()
