"""Shock capturing and limiters of mirabelle.dg: what they keep, where they act, and a shock tube."""

import pickle

import numpy as np
import pytest

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg.boundary import NoSlipWall
from mirabelle.dg.equations.navierstokes import CompressibleNavierStokes
from mirabelle.dg.equations.tracers import Tracers

GAS1, GAS2, GAS3 = (dg.CompressibleEuler(d) for d in (1, 2, 3))


class Everywhere(dg.SubcellBlending):
    """Finite volumes alone."""

    def blending(self, semi, u):
        return semi.put(np.ones((1, semi.K)))


def wavy(x):
    """A map of the unit box that bends all lines, and keeps its boundary's points opposite of each other."""
    bump = 0.04 * np.prod([np.sin(2 * np.pi * c) for c in x], axis=0)
    return tuple(c + bump for c in x)


def periodic(equations, cells, volume=None, cell=None, order=3, mapping=None, array=mb.HostArray, **options):
    d = equations.dims
    given = {"mapping": mapping, "order": 3} if mapping else {}
    mesh = dg.box((cells,) * d, lower=(0.0,) * d, upper=(1.0,) * d, cell=cell, periodic=True, **given)
    solver = dg.Solver(order, volume=volume or dg.WeakForm(), **options)
    return dg.Semidiscretization(mesh, equations, solver, array=array)


def rough(semi, seed=0):
    """Positive densities and pressures without any order."""
    gas, rng = semi.equations, np.random.default_rng(seed)
    w = [rng.uniform(0.5, 2.0, (semi.nodes, semi.K)) for _ in gas.names]
    return mb.materialize(mb.stack(gas.conservative(tuple(semi.put(v) for v in w))))


def integrals(semi, u):
    return mb.to_numpy(mb.materialize(semi.integrate(u)))


def difference(a, b):
    return np.abs(mb.to_numpy(mb.materialize(a)) - mb.to_numpy(mb.materialize(b))).max()


def smooth1(x, t):
    return GAS1.conservative((1.0 + 0.2 * mb.sin(2 * mb.pi * x[0]), 0.5, 1.0))


def jump(x, t):
    return (mb.where(mb.abs(x[0] - 0.47) < 0.22, 1.0, 0.1),)


# Flux differencing


@pytest.mark.parametrize("gas", [GAS2, GAS3], ids=["quadrilaterals", "hexahedra"])
def test_flux_differences_are_sums_over_all_nodes_of_lines(gas):
    semi = periodic(gas, 2, dg.FluxDifferencing(dg.ranocha), mapping=wavy)
    u, d, n = rough(semi), gas.dims, 4
    D = -2 * semi.element.line.differentiation[0]
    D[0, 0] -= 1 / semi.element.line.weights[0]
    D[-1, -1] += 1 / semi.element.line.weights[-1]
    wanted, places = 0.0, np.arange(n**d).reshape((n,) * d)
    for r, direction in enumerate(semi.operators.metric):
        fields = [np.broadcast_to(mb.to_numpy(v), (n**d, semi.K)) for v in (*semi.fields(u), *direction)]
        lines = np.stack([v[np.moveaxis(places, r, -1).reshape(-1, n)] for v in fields])  # (.., lines, n, K)
        left, right = np.broadcast_arrays(lines[:, :, :, None], lines[:, :, None])
        normal = [mb.HostArray(c) for c in 0.5 * (left[-d:] + right[-d:])]
        sides = [tuple(map(mb.HostArray, of[:-d])) for of in (left, right)]
        flux = np.stack([mb.to_numpy(f) for f in dg.ranocha(*sides, tuple(normal), gas)])
        rates = np.empty((len(flux), n**d, semi.K))
        rates[:, np.moveaxis(places, r, -1).reshape(-1, n)] = np.einsum("ij,mlijk->mlik", D, flux)
        wanted = wanted + rates
    got = dg.volume_term(semi.solver.volume, semi, u, None)
    np.testing.assert_allclose(mb.to_numpy(got), wanted, atol=1e-12 * np.abs(wanted).max())


def test_flux_differences_take_one_flux_a_pair():
    semi = periodic(GAS2, 4, dg.FluxDifferencing(dg.ranocha))
    steps = (
        mb.compile(lambda u: dg.volume_term(semi.solver.volume, semi, u, None)).program(rough(semi)).plan.steps
    )
    kinds = [type(step).__name__ for step in steps]
    assert kinds.count("ProductStep") == 2 and kinds.count("KernelStep") <= 2 * 3 + 1 and len(kinds) <= 9


# Blending


def test_finite_volumes_are_those_of_the_gauss_lobatto_subcells():
    semi = periodic(dg.Burgers(), 5, Everywhere(dg.central))
    values = np.random.default_rng(1).normal(size=(1, 4, 5))
    u, h = values[0].T.reshape(-1), np.tile(np.array([1, 5, 5, 1]) / 6 * 0.1, 5)
    right = np.roll(u, -1)
    speed = np.maximum(np.abs(u), np.abs(right))
    flux = 0.25 * (u * u + right * right) - 0.5 * speed * (right - u)
    wanted = -(flux - np.roll(flux, 1)) / h
    got = mb.to_numpy(mb.materialize(semi.rhs(semi.put(values))))
    np.testing.assert_allclose(got[0].T.reshape(-1), wanted, atol=1e-12 * np.abs(wanted).max())


@pytest.mark.parametrize("gas", [GAS2, GAS3], ids=["quadrilaterals", "hexahedra"])
def test_finite_volumes_on_curved_cells(gas):
    semi = periodic(gas, 2, Everywhere(dg.ranocha), mapping=wavy)
    assert not semi.geometry.affine
    state = gas.conservative((1.0, *(0.3, -0.2, 0.5)[: gas.dims], 1.0))
    u = semi.state(lambda x, t: state)
    assert np.abs(mb.to_numpy(mb.materialize(semi.rhs(u)))).max() < 1e-11
    u = rough(semi)
    rates = mb.materialize(semi.rhs(u))
    assert np.abs(integrals(semi, rates)).max() < 1e-12
    v = gas.entropy_variables(semi.fields(u))
    assert float(semi.integrate(sum(a * rates[i] for i, a in enumerate(v)))) < 0


def test_blending_acts_at_shocks_only():
    form = dg.SubcellBlending(dg.ranocha, dg.hllc, indicator=lambda u: u[0], smooth=False)
    semi = periodic(GAS1, 8, form, surface_flux=dg.hllc)
    assert mb.to_numpy(form.blending(semi, semi.state(smooth1))).max() == 0
    plain = periodic(GAS1, 8, dg.FluxDifferencing(dg.ranocha), surface_flux=dg.hllc)
    u = semi.state(smooth1)
    assert difference(semi.rhs(u), plain.rhs(u)) < 1e-13
    u = semi.state(lambda x, t: GAS1.conservative((*jump(x, t), 0.0, 1.0)))
    alpha = mb.to_numpy(form.blending(semi, u))[0]
    assert alpha[[2, 5]].tolist() == [0, 0.5] or alpha[[2, 5]].tolist() == [0.5, 0.5]
    assert alpha[[0, 3, 4, 7]].max() == 0
    rates = mb.materialize(semi.rhs(u))
    assert np.abs(integrals(semi, rates)).max() < 1e-12
    wide = dg.SubcellBlending(dg.ranocha, indicator=lambda u: u[0])
    assert (mb.to_numpy(wide.blending(semi, u))[0] >= alpha).all()
    assert mb.to_numpy(wide.blending(semi, u))[0, 4] == 0.25


def test_blending_is_entropy_stable_with_diffusion_and_compiles():
    gas = CompressibleNavierStokes(2, viscosity=0.01)
    form, flux = dg.SubcellBlending(dg.ranocha), dg.plus_dissipation(dg.ranocha)
    semi = periodic(gas, 3, form, order=2, surface_flux=flux)
    u = rough(semi)
    rates = mb.materialize(semi.rhs(u))
    assert np.abs(integrals(semi, rates)).max() < 1e-12
    v = gas.entropy_variables(semi.fields(u))
    assert float(semi.integrate(sum(a * rates[i] for i, a in enumerate(v)))) < 0
    assert difference(mb.compile(semi.rhs)(u, semi.scalar(0.0)), rates) < 1e-11


def test_blending_needs_lines_of_nodes():
    with pytest.raises(ValueError, match="Gauss-Lobatto"):
        periodic(dg.Burgers(2), 2, dg.SubcellBlending(dg.central), cell="triangle")


# Artificial viscosity


def test_viscosity_acts_at_steps_only():
    semi = periodic(dg.Burgers(), 10, artificial_viscosity=dg.ArtificialViscosity(), order=4)
    smooth = semi.state(lambda x, t: (mb.sin(2 * mb.pi * x[0]) + 2.0,))
    assert mb.to_numpy(semi.artificial_diffusivity(smooth)).max() == 0
    step = semi.state(jump)
    epsilon = mb.to_numpy(semi.artificial_diffusivity(step))[0]
    assert epsilon[[2, 6]].min() > 0.01
    assert epsilon[[0, 1, 3, 4, 5, 7, 8, 9]].max() == 0
    plain = periodic(dg.Burgers(), 10, order=4)
    assert difference(semi.rhs(smooth), plain.rhs(smooth)) < 1e-12
    assert float(semi.max_dt(step)) < 0.5 * float(plain.max_dt(step))
    assert float(semi.max_dt(smooth)) == pytest.approx(float(plain.max_dt(smooth)), rel=1e-14)


@pytest.mark.parametrize(
    ("viscous", "volume"),
    [
        (dg.BR1(), dg.WeakForm()),
        (dg.BR1(), dg.StrongForm()),
        (dg.LDG(), dg.WeakForm()),
        (dg.SIPG(), dg.WeakForm()),
    ],
    ids=["BR1", "BR1-strong", "LDG", "SIPG"],
)
def test_viscosity_dissipates_and_conserves_between_walls(viscous, volume):
    mesh = dg.box((4, 3), lower=(0.0, 0.0), upper=(1.0, 1.0), cell="triangle")
    walls = dict.fromkeys(mesh.boundaries, dg.SlipWall())
    sensor = dg.ArtificialViscosity(indicator=lambda u: u[0])
    semis = [
        dg.Semidiscretization(
            mesh, GAS2, dg.Solver(2, volume=volume, viscous=viscous, artificial_viscosity=a), walls
        )
        for a in (sensor, None)
    ]
    u = semis[0].state(lambda x, t: GAS2.conservative((*jump(x, t), 0.0, 0.0, 1.0)))
    added = mb.materialize(semis[0].rhs(u) - semis[1].rhs(u))
    assert np.abs(integrals(semis[0], added)).max() < 1e-12
    assert float(semis[0].integrate(added[0] * u[0])) < -0.01
    still = semis[0].state(lambda x, t: GAS2.conservative((1.0, 0.0, 0.0, 1.0)))
    assert np.abs(mb.to_numpy(mb.materialize(semis[0].rhs(still)))).max() < 1e-12


def test_viscosity_beside_that_of_the_equations():
    gas = CompressibleNavierStokes(2, viscosity=0.01)
    mesh = dg.box((2, 2), lower=(0.0, 0.0), upper=(1.0, 1.0))
    walls = dict.fromkeys(mesh.boundaries, NoSlipWall(temperature=(1.0,)))
    none, some, plain = [
        dg.Semidiscretization(mesh, gas, dg.Solver(2, artificial_viscosity=a), walls)
        for a in (dg.ArtificialViscosity(0.0), dg.ArtificialViscosity(1.0), None)
    ]
    u = rough(plain)
    assert difference(none.rhs(u), plain.rhs(u)) < 1e-11
    assert difference(some.rhs(u), plain.rhs(u)) > 1.0
    assert abs(integrals(some, mb.materialize(some.rhs(u)))[0]) < 1e-12


def test_regularised_equations_are_equations_of_their_kind():
    a, b = (dg.ArtificialViscosity(s).regularised(GAS2) for s in (1.0, 2.0))
    assert isinstance(a, dg.CompressibleEuler) and a != b and a != GAS2
    copy = pickle.loads(pickle.dumps(a))
    assert copy == a and hash(copy) == hash(a) and type(copy) is type(a)
    tracers = dg.ArtificialViscosity().regularised(Tracers(GAS1, 1))
    assert tracers.names == ("rho", "rho_v1", "rho_e", "rho_Y1") and tracers.gamma == 1.4
    semi = periodic(Tracers(GAS1, 1), 4, surface_flux=dg.hllc, artificial_viscosity=dg.ArtificialViscosity())
    u = semi.state(lambda x, t: (1 + jump(x, t)[0], 0.0, 2.5, 0.5))
    assert np.abs(integrals(semi, mb.materialize(semi.rhs(u)))).max() < 1e-12
    given = dg.VariableAdvection(1, lambda x: (2.0 + x[0],))
    semi = periodic(given, 4, artificial_viscosity=dg.ArtificialViscosity())
    assert np.isfinite(mb.to_numpy(mb.materialize(semi.rhs(semi.state(jump))))).all()


# Limiters


@pytest.mark.parametrize(
    ("cell", "options"),
    [
        ("quadrilateral", {"mapping": wavy}),
        ("quadrilateral", {"nodes": "gauss"}),
        ("triangle", {}),
        ("triangle", {"mapping": wavy, "over_integration": 6}),
    ],
    ids=["curved", "gauss", "triangles", "over-integrated"],
)
def test_positivity(cell, options):
    limiter = dg.PositivityLimiter(1e-3)
    semi = periodic(GAS2, 3, cell=cell, order=2, limiters=(limiter,), **options)
    rng = np.random.default_rng(3)
    w = [rng.normal(mean, 0.5, (semi.nodes, semi.K)) for mean in (1.0, 0.0, 0.0, 2.5)]
    u = mb.materialize(mb.stack([semi.put(v) for v in w]))
    assert mb.to_numpy(semi.means(u))[0].min() > 0.01
    limited = mb.materialize(mb.compile(semi.limit)(u, semi.scalar(0.0)))
    assert difference(limited, semi.limit(u)) < 1e-13
    assert difference(semi.means(limited), semi.means(u)) < 1e-14
    for at in (None, semi.operators.to_faces, semi.operators.to_points):
        values = limited if at is None else mb.materialize(at @ limited)
        fields = tuple(values[i] for i in range(4))
        assert float(mb.min(fields[0])) > 0.999e-3
        assert float(mb.min(GAS2.pressure(fields))) > 0.999e-3
    well = semi.state(lambda x, t: GAS2.conservative((1.5 + mb.sin(x[0]), 0.2, 0.0, 1.0)))
    assert difference(semi.limit(well), well) == 0


def test_positivity_keeps_the_order_and_names_what_it_lacks():
    def wave(x, t):
        return (1.0 - mb.cos(2 * mb.pi * x[0]),)  # touches zero

    errors = []
    for cells in (8, 16):
        semi = periodic(dg.Burgers(), cells, order=3, nodes="gauss")
        u = semi.state(wave)
        limited = dg.PositivityLimiter(1e-12, (lambda v: v[0],))(semi, u, 0.0)
        errors.append(semi.norms(limited, wave, 0.0)["u"][0])
    assert errors[0] / errors[1] > 2**3.5
    with pytest.raises(ValueError, match="neither a field nor a method called 'rho'"):
        dg.PositivityLimiter()(semi, u, 0.0)


@pytest.mark.parametrize(("cell", "mapping"), [("triangle", None), ("quadrilateral", wavy)])
def test_filter(cell, mapping):
    semi = periodic(dg.Burgers(2), 2, cell=cell, mapping=mapping, order=4)
    u = semi.put(np.random.default_rng(0).normal(size=(1, semi.nodes, semi.K)))
    filtered = mb.materialize(dg.ModalFilter(power=4)(semi, u, 0.0))
    assert difference(semi.means(filtered), semi.means(u)) < 1e-13
    assert float(semi.integrate(filtered * filtered)[0]) < 0.9 * float(semi.integrate(u * u)[0])
    ones = semi.state(lambda x, t: (1.0,))
    assert difference(dg.ModalFilter()(semi, ones, 0.0), ones) < 1e-13


# All of it


def test_both_types_of_arrays_agree():
    form, limiters = dg.SubcellBlending(dg.ranocha), (dg.PositivityLimiter(), dg.ModalFilter())
    found = []
    for array in (mb.HostArray, mb.RefArray):
        semi = periodic(GAS1, 3, form, order=2, limiters=limiters, array=array)
        u = semi.state(lambda x, t: GAS1.conservative((*jump(x, t), 0.2, 1.0)))
        viscous = periodic(GAS1, 3, order=2, artificial_viscosity=dg.ArtificialViscosity(), array=array)
        results = (semi.rhs(u), semi.limit(u), viscous.rhs(u), viscous.max_dt(u))
        found.append([mb.to_numpy(mb.materialize(r)) for r in results])
        assert isinstance(mb.materialize(results[0]), array)
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def sod(x, t):
    left = x[0] < 0.5
    return GAS1.conservative((mb.where(left, 1.0, 0.125), 0.0, mb.where(left, 1.0, 0.1)))


CAPTURING = {
    "blending": (20, 3, {"volume": dg.SubcellBlending(dg.ranocha, dg.hllc)}),
    "viscosity": (25, 2, {"artificial_viscosity": dg.ArtificialViscosity()}),
}


@pytest.mark.parametrize("how", CAPTURING)
def test_shock_tube(how):
    """The exact values between the waves of Sod's tube (G. A. Sod, doi:10.1016/0021-9991(78)90023-2)."""
    cells, order, options = CAPTURING[how]
    solver = dg.Solver(order, surface_flux=dg.hllc, limiters=(dg.PositivityLimiter(),), **options)
    mesh = dg.box(cells, lower=0.0, upper=1.0)
    ends = dict.fromkeys(mesh.boundaries, dg.Prescribed(sod))
    semi = dg.Semidiscretization(mesh, GAS1, solver, ends)
    # Without a compiler, as tests run, a program is slower than what it was made of.
    solution = dg.solve(semi, (0.0, 0.2), sod, method=dg.SSPRK3(), cfl=0.6, compiled=False)
    rho, v, p = (mb.to_numpy(mb.materialize(q)) for q in GAS1.primitive(semi.fields(solution.u)))
    x = mb.to_numpy(semi.x[0])
    between = (x > 0.55) & (x < 0.78)
    assert np.abs(v[between] - 0.9274526).max() < 0.03
    assert np.abs(p[between] - 0.3031302).max() < 0.01
    assert np.abs(rho[(x > 0.55) & (x < 0.6)] - 0.4263194).max() < 0.02
    assert np.abs(rho[(x > 0.74) & (x < 0.78)] - 0.2655737).max() < 0.01
    assert np.abs(rho[x > 0.93] - 0.125).max() < 1e-3
    assert rho.min() > 0.12 and rho.max() < 1.01
    kept = integrals(semi, solution.u) - integrals(semi, semi.state(sod))
    np.testing.assert_allclose(kept, [0.0, 0.18, 0.0], atol=1e-6)
