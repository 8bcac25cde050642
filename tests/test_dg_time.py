"""Time integration of dg: methods, the loop over steps, what is done between them."""

import csv
import signal
import sys
import threading
from types import SimpleNamespace

import children
import numpy as np
import pytest

import mirabelle as mb
from mirabelle import dg
from mirabelle.dg.time.callbacks import Callback, as_callback
from mirabelle.dg.time.methods import Embedded
from mirabelle.dg.time.timers import Timers

METHODS = [
    dg.CarpenterKennedy54(),
    dg.SSPRK3(),
    dg.RK4(),
    dg.BogackiShampine32(),
    dg.DormandPrince54(),
    dg.RDPK3SpFSAL35(),
]
every_method = pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
embedded = pytest.mark.parametrize("method", METHODS[3:], ids=lambda m: type(m).__name__)


class Ordinary:
    """u' = f(u, t) of fields on one node of each cell of [0, 1]: what `solve` asks of a problem."""

    def __init__(self, f, names=("u",), cells=1, array=mb.HostArray):
        self.rhs, self.array, self.put = f, array, array
        self.equations = SimpleNamespace(
            names=names, entropy=lambda u: sum(v * v / 2 for v in u), positive=lambda u: {}
        )
        self.x = (array((np.arange(cells) + 0.5).reshape(1, cells) / cells),)

    def scalar(self, value):
        return self.array(float(value))

    def state(self, f, t=0.0):
        return mb.stack([0 * self.x[0] + v for v in f(self.x, t)])

    def fields(self, u):
        return tuple(u[i] for i in range(u.shape[0]))

    def limit(self, u, t):
        return u

    def max_dt(self, u, cfl, method):
        return cfl / (self.x[0].size * mb.max(mb.abs(u)))

    def integrate(self, values):
        return mb.mean(values, axis=(-2, -1))

    def norms(self, u, exact, t):
        e = np.abs(mb.to_numpy(u - self.state(exact, t)))
        return {n: (np.sqrt(np.mean(v * v)), v.max()) for n, v in zip(self.equations.names, e, strict=True)}

    def sample(self, u, points):
        return mb.to_numpy(u)[:, 0, (np.asarray(points)[0] * self.x[0].size).astype(int)]


def upwind(array=mb.HostArray, cells=20, speed=1.0):
    """Periodic advection by the upwind finite volume method: one field on one node a cell."""

    def rhs(u, t):
        return (mb.concat([u[..., -1:], u[..., :-1]], axis=-1) - u) * (speed * cells)

    return Ordinary(rhs, cells=cells, array=array)


def bump(x, t):
    return (1.5 + mb.sin(2 * mb.pi * x[0]),)


def ones(x, t):
    return (1 + 0 * x[0],)


# Methods


def tableau(method):
    """The coefficients (A, b, c) of a method, from stepping a state that records what stages contribute."""
    units, stages, times = np.eye(32), [], []

    def rhs(u, t):
        stages.append(u)
        times.append(t)
        return units[len(stages)]

    u = method.step(rhs, units[0], 0.0, 1.0)
    s = len(stages)
    return np.array(stages)[:, 1 : s + 1], u[1 : s + 1], np.array(times)


def conditions(A, b, c):
    """What vanishes for a method of order 1, 2, 3, 4 and 5 (the last: all seventeen conditions in nine)."""
    Ac, Acc = A @ c, A @ c**2
    yield [b.sum() - 1]
    yield [b @ c - 1 / 2]
    yield [b @ c**2 - 1 / 3, b @ Ac - 1 / 6]
    yield [b @ c**3 - 1 / 4, b @ (c * Ac) - 1 / 8, b @ Acc - 1 / 12, b @ (A @ Ac) - 1 / 24]
    yield [
        b @ c**4 - 1 / 5,
        b @ (c**2 * Ac) - 1 / 10,
        b @ Ac**2 - 1 / 20,
        b @ (c * Acc) - 1 / 15,
        b @ (A @ c**3) - 1 / 20,
        b @ (c * (A @ Ac)) - 1 / 30,
        b @ (A @ (c * Ac)) - 1 / 40,
        b @ (A @ Acc) - 1 / 60,
        b @ (A @ (A @ Ac)) - 1 / 120,
    ]


def meets(order, A, b, c):
    met = [np.abs(each).max() < 1e-14 for each in conditions(A, b, c)]
    return met == [k < order for k in range(5)]


@every_method
def test_order_conditions(method):
    A, b, c = tableau(method)
    np.testing.assert_allclose(A.sum(axis=1), c, atol=1e-15)
    assert meets(method.order, A, b, c)
    assert method.stages == len(c) - isinstance(method, Embedded)


@embedded
def test_order_conditions_of_the_estimate(method):
    estimate = SimpleNamespace(step=lambda f, u, t, dt: u - method.attempt(f, u, f(u, t), t, dt)[2])
    _, e, _ = tableau(estimate)
    A, b, c = tableau(method)
    assert meets(method.embedded_order, A, b + e, c)


@every_method
def test_order_of_convergence(method):
    """A nonlinear problem that depends on time."""
    errors = []
    for n in (80, 160):
        u, dt = 0.5, 4.0 / n
        for i in range(n):
            u = method.step(lambda u, t: u * (1 - u) * np.cos(t), u, i * dt, dt)
        errors.append(abs(u - 1 / (1 + np.exp(-np.sin(4.0)))))
    assert abs(np.log2(errors[0] / errors[1]) - method.order) < 0.1


@every_method
def test_stability_is_the_exponential_to_its_order(method):
    z = 0.01 * np.exp(1j * np.arange(5))
    assert np.abs(method.stability(z) - np.exp(z)).max() < 0.01 ** (method.order + 1)


def modal_upwind_spectrum(p):
    """Eigenvalues (times h/a) of the upwind discontinuous Galerkin method of order p in 1-D, by Bloch waves."""
    n = np.arange(p + 1)
    norm = np.sqrt(2 * n + 1)  # Legendre polynomials of mass one on a cell of length one
    left, right = norm * (-1.0) ** n, norm
    stiffness = np.array([[2 * norm[i] * norm[j] * ((i > j) and (i + j) % 2) for j in n] for i in n])
    return np.concatenate(
        [
            np.linalg.eigvals(stiffness - np.outer(right, right) + np.exp(-1j * theta) * np.outer(left, right))
            for theta in np.linspace(0, 2 * np.pi, 200, endpoint=False)
        ]
    )


@pytest.mark.parametrize(
    "p, fastest, rk4, ssprk3",
    [(1, 6.0, 0.4642, 0.4096), (2, 11.84, 0.2352, 0.2098), (3, 19.16, 0.1454, 0.1301), (4, 27.84, 0.1, 0.0897)],
)
def test_stable_step_of_upwind_dg(p, fastest, rk4, ssprk3):
    spectrum = modal_upwind_spectrum(p)
    assert abs(np.abs(spectrum).max() - fastest) < 0.01
    assert abs(dg.stable_dt_factor(spectrum, dg.RK4()) - rk4) < 1e-3
    assert abs(dg.stable_dt_factor(spectrum, dg.SSPRK3()) - ssprk3) < 1e-3


def test_fluxes_that_smooth_what_rests_take_shorter_steps():
    """Lax and Friedrichs' flux takes away jumps of what does not move: at order 7 faster than waves run."""
    gas, mesh = dg.CompressibleEuler(2), dg.box((2, 2), periodic=True)
    steps = {}
    for flux in (dg.lax_friedrichs, dg.hllc):
        semi = dg.Semidiscretization(mesh, gas, dg.Solver(7, surface_flux=flux))
        u = semi.state(lambda x, t: (1.0 + 0 * x[0], 0 * x[0], 0 * x[0], 2.5 + 0 * x[0]))
        steps[flux] = float(semi.max_dt(u, 1.0))
    assert 0.6 < steps[dg.lax_friedrichs] / steps[dg.hllc] < 0.75
    # The operator itself, linearised where the gas rests.
    semi = dg.Semidiscretization(mesh, gas, dg.Solver(7, volume=dg.FluxDifferencing(dg.ranocha)))
    rest, rng = mb.to_numpy(u), np.random.default_rng(1)
    v, h = rng.standard_normal(rest.shape), 1e-6
    for _ in range(60):  # the fastest mode, by powers
        v /= np.abs(v).max()
        ahead, behind = (mb.to_numpy(semi.rhs(semi.put(rest + s * h * v), semi.scalar(0.0))) for s in (1, -1))
        v = (ahead - behind) / (2 * h)
    fastest = np.abs(v).max()
    real_axis = dg.stable_dt_factor([-1.0], dg.CarpenterKennedy54())
    assert 0.5 < steps[dg.lax_friedrichs] * fastest / real_axis < 1.01


def test_stability_of_nothing_and_of_growth():
    assert dg.stable_dt_factor([0.0], dg.RK4()) == np.inf
    assert dg.stable_dt_factor([1.0], dg.RK4()) < 1e-6


@every_method
def test_stages_are_limited_at_their_times(method):
    _, _, c = tableau(method)
    seen = []

    def limit(u, t):
        seen.append(t)
        return min(u, 1.0)

    assert method.step(lambda u, t: 10.0, 0.0, 2.0, 1.0, limit) <= 1.0
    assert len(seen) == method.stages
    np.testing.assert_allclose(seen, 2.0 + np.append(c[1:], 1.0)[: len(seen)], atol=1e-15)


# The loop


@pytest.mark.parametrize("array", [mb.HostArray, mb.RefArray, mb.CuArray])
@every_method
def test_compiled_is_plain(array, method):
    semi = upwind(array)
    how = {"tolerance": 1e-4} if isinstance(method, Embedded) else {"cfl": 1.0}
    compiled, plain = (dg.solve(semi, 0.1, bump, method=method, compiled=c, **how) for c in (True, False))
    assert compiled.steps == plain.steps > 2 and compiled.t == plain.t == 0.1
    assert isinstance(compiled.u, array)
    np.testing.assert_allclose(mb.to_numpy(compiled.u), mb.to_numpy(plain.u), rtol=0, atol=1e-14)


def test_a_step_is_one_program_and_reads_one_number():
    semi = upwind()
    dg.solve(semi, 1.0, bump, dt=0.01, max_steps=1)
    (step,) = semi.step_programs.values()
    assert len(step.programs) == 1
    dg.solve(semi, 1.0, bump, dt=0.01, max_steps=5)
    assert len(step.programs) == 1 == len(semi.step_programs)


def test_counts_and_summary():
    solution = dg.solve(upwind(), (0.0, 0.2), bump, dt=0.05)
    assert (solution.steps, solution.rhs_calls, solution.rejected) == (4, 20, 0)
    assert solution.performance_index > 0 and solution.seconds > 0
    assert "first step" in solution.summary() and "steps" in solution.timers.calls
    assert solution._repr_html_().startswith("<pre>Solution at t = 0.2 after 4 steps")
    assert set(solution.errors(bump)) == {"u"} and solution.errors(bump)["u"].linf > 0


def test_steps_by_cfl_are_read_when_asked():
    decay = Ordinary(lambda u, t: -u)
    steps = []
    dg.solve(decay, 2.0, ones, cfl=0.1, callbacks=[lambda s: steps.append(s.dt)])
    assert np.all(np.diff(steps) > 0)
    each = dg.solve(decay, 2.0, ones, cfl=0.1)
    seldom = dg.solve(decay, 2.0, ones, cfl=0.1, cfl_interval=5)
    assert seldom.steps > each.steps and seldom.t == each.t == 2.0
    assert abs(seldom.u.item() - np.exp(-2.0)) < 1e-5


@embedded
def test_errors_are_controlled(method):
    circle = Ordinary(lambda u, t: mb.stack([-u[1], u[0]]), names=("x", "y"))
    errors = []
    for tolerance in (1e-4, 1e-6):
        solution = dg.solve(circle, 5.0, lambda x, t: (1.0, 0.0), method=method, tolerance=tolerance)
        errors.append(solution.errors(lambda x, t: (np.cos(t), np.sin(t)))["x"].linf)
        assert errors[-1] < 100 * tolerance
        assert solution.rhs_calls == 1 + method.stages * (solution.steps + solution.rejected)
    assert errors[1] < errors[0] / 20


def test_steps_are_rejected_and_grow_again():
    kick = Ordinary(lambda u, t: 100 * mb.exp(-((t - 1) ** 2) * 100) * (1 + 0 * u))
    steps = []
    solution = dg.solve(kick, 2.0, ones, tolerance=1e-5, callbacks=[lambda s: steps.append(s.dt)])
    assert solution.rejected > 0 and min(steps) < 0.05 * steps[-1]
    assert abs(solution.u.item() - 1 - 10 * np.pi**0.5) < 1e-3


def test_landing_does_not_spoil_the_step():
    decay = Ordinary(lambda u, t: -u)
    alone = dg.solve(decay, 1.0, ones, tolerance=1e-6)
    times = []
    watched = dg.solve(decay, 1.0, ones, tolerance=1e-6, callbacks=[At(0.333, times)])
    assert np.allclose(times, [0, 0.333, 0.666, 0.999, 1.0], rtol=0, atol=1e-15)
    assert watched.steps <= alone.steps + 4


class At(Callback):
    """Notes the times at which it is called."""

    def __init__(self, dt, times):
        super().__init__(dt=dt)
        self.times = times

    def start(self, solution):
        self.step(solution)

    def step(self, solution):
        self.times.append(solution.t)

    def finish(self, solution):
        self.step(solution)


def test_steps_land_on_times():
    a, b = [], []
    solution = dg.solve(Ordinary(lambda u, t: -u), 0.9, ones, dt=0.04, callbacks=[At(0.1, a), At(0.3, b)])
    np.testing.assert_allclose(a, [*(0.1 * np.arange(10)), 0.9], rtol=0, atol=1e-15)
    assert b == [0.0, a[3], a[6], 0.9, 0.9]
    assert solution.t == 0.9 and solution.steps == 3 * 9
    assert dg.solve(Ordinary(lambda u, t: -u), 1.0, ones, dt=0.1).steps == 10


def test_going_on_is_not_having_stopped():
    for how in ({"cfl": 1.0}, {"tolerance": 1e-4}, {"cfl": 1.0, "cfl_interval": 3}, {"dt": 0.003}):
        semi = upwind()
        whole = dg.solve(semi, 0.1, bump, **how)
        half = dg.solve(semi, 0.1, bump, max_steps=3, **how)
        assert "max_steps" in half.stopped and half.steps == 3
        before = mb.to_numpy(half.u).copy()
        rest = dg.solve(semi, 0.1, half, **how)
        assert rest.steps == whole.steps and not rest.stopped
        np.testing.assert_array_equal(mb.to_numpy(rest.u), mb.to_numpy(whole.u))
        np.testing.assert_array_equal(mb.to_numpy(half.u), before)


def test_starts():
    semi = upwind()
    state = semi.state(bump)
    for start in (state, mb.to_numpy(state)):
        assert dg.solve(semi, 0.0, start, dt=0.1).steps == 0
    late = dg.solve(Ordinary(lambda u, t: 1 + 0 * u), (1.0, 1.5), lambda x, t: (t,), dt=0.1)
    assert abs(late.u.item() - 1.5) < 1e-14
    waves = Ordinary(lambda u, t: 0 * u)
    waves.max_dt = lambda u, cfl, method: mb.HostArray(np.inf)  # nothing moves: one step is enough
    assert dg.solve(waves, 1.0, ones, cfl=1.0).steps == 1


# What goes wrong


def test_blow_up():
    semi = Ordinary(lambda u, t: u * u, cells=4)
    shots = []
    with pytest.raises(dg.BlowUp) as raised:
        dg.solve(semi, 2.0, lambda x, t: (4 * x[0],), dt=0.05, callbacks=[lambda s: shots.append(s.t)])
    message, last = str(raised.value), raised.value.solution
    assert f"in step {last.steps + 1}, at t = {last.t:.6g}: u is" in message
    assert "at x = (0.875), node 0 of cell 3 (of 1 such values)" in message
    assert np.isfinite(mb.to_numpy(last.u)).all() and last.t == shots[-1]


@pytest.mark.parametrize("how", [{"cfl": 0.5}, {"tolerance": 1e-3}, {"dt": 0.05, "cfl_interval": 7}])
def test_blow_up_of_every_control(how):
    with pytest.raises(dg.BlowUp) as raised:
        dg.solve(Ordinary(lambda u, t: u * u), 2.0, ones, max_steps=3000, **how)
    assert np.isfinite(raised.value.solution.u.item())
    assert abs(raised.value.solution.t - 1) < 0.4


def test_a_right_hand_side_that_is_not_finite():
    semi = Ordinary(lambda u, t: mb.sqrt(u), names=("rho",))
    semi.max_dt = lambda u, cfl, method: cfl / mb.max(mb.sqrt(u))
    with pytest.raises(dg.BlowUp, match=r"rho is nan at x = \(0.5\)"), np.errstate(invalid="ignore"):
        dg.solve(semi, 1.0, lambda x, t: (-1.0,), tolerance=1e-3)


def test_a_blow_up_names_what_left_the_equations():
    """What is not positive is said, and not only what became of it; steps do not look for it."""
    semi = Ordinary(lambda u, t: -1 + 0 * u, names=("rho",))
    semi.equations.positive = lambda u: {"depth": u[0]}
    semi.max_dt = lambda u, cfl, method: cfl / mb.max(mb.sqrt(u))
    below = dg.Solution(semi, semi.state(lambda x, t: (-2.0,)))
    for initial, how, says in (
        (ones, {"cfl": 0.6}, r"step 2, .*: depth is -0.\d* at x = \(0.5\), node 0 of cell 0 \(of 1 "),
        (ones, {"cfl": 0.6, "cfl_interval": 3}, r"steps 1 to 3, .*: depth is -0.\d* at "),
        (below, {"cfl": 0.6}, r"step 1, at t = 0: depth is -2 at .*, already before that step\. "),
    ):
        with pytest.raises(dg.BlowUp, match=says) as raised, np.errstate(invalid="ignore"):
            dg.solve(semi, 2.0, initial, **how)
        assert raised.value.solution.steps == (how == {"cfl": 0.6} and initial is ones)


def test_errors_say_what_to_do():
    semi = upwind()
    for text, arguments, how in (
        ("Give one of them", (1.0, bump), {}),
        ("dt and cfl are given together", (1.0, bump), {"dt": 1, "cfl": 1}),
        ("cfl=-1 and cfl_interval=1 have to be positive numbers", (1.0, bump), {"cfl": -1}),
        ("RK4 does not estimate its error", (1.0, bump), {"tolerance": 1e-3, "method": dg.RK4()}),
        ("t0 <= t1", ((1.0, 0.0), bump), {"dt": 1}),
        (
            r"initial condition is not finite: u is nan at x = \(0.025\)",
            (1.0, lambda x, t: (np.nan,)),
            {"dt": 1},
        ),
        (r"has the shape \(1, 1, 3\)", (1.0, mb.zeros((1, 1, 3))), {"dt": 1}),
        ("the solution to go on from is at 0.5", ((0.0, 1.0), dg.Solution(semi, None, 0.5)), {"dt": 1}),
    ):
        with pytest.raises(ValueError, match=text):
            dg.solve(semi, *arguments, **how)
    with pytest.raises(TypeError, match="is no callback"):
        as_callback(3)
    with pytest.raises(ValueError, match="how often"):
        dg.Alive()


@pytest.fixture
def terminated():
    """The signals that a handler of the program's own got of SIGTERM."""
    got = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: got.append(number))
    yield got
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interruption_finishes_the_step(number, terminated):
    before = signal.getsignal(number)
    times = []

    def send(solution):
        if solution.steps == 3:
            signal.raise_signal(number)
            assert not terminated

    solution = dg.solve(Ordinary(lambda u, t: -u), 1.0, ones, dt=0.1, callbacks=[send, At(10.0, times)])
    assert solution.interrupted and solution.steps == 3 and number.name in solution.stopped
    assert times == [0.0, solution.t] and signal.getsignal(number) is before
    assert terminated == [signal.SIGTERM] * (number == signal.SIGTERM)
    assert not dg.solve(solution.semi, 1.0, solution, dt=0.1).interrupted


def test_sigterm_ends_the_program(tmp_path):
    """Not only the simulation: what it was to write is written, and the status is that of the signal."""
    process = children.start(f"""
        import atexit, os, signal
        from mirabelle import dg
        semi = dg.Semidiscretization(dg.box(4, periodic=True), dg.Advection((1.0,)), dg.Solver(1))
        wave = lambda x, t: (x[0],)

        def ended(solution):
            if solution.steps == 3:
                for _ in range(2):  # as `timeout` does
                    os.kill(os.getpid(), signal.SIGTERM)

        atexit.register(print, "left in order")
        for i in range(2):
            calls = [ended, dg.Checkpoint({str(tmp_path)!r} + f"/{{i}}.npz")]
            dg.solve(semi, 1.0, wave, dt=0.01, callbacks=calls, compiled=False)
            print("went on")
        """)
    out, errors = process.communicate(timeout=120)
    assert (process.returncode, out, errors) == (128 + signal.SIGTERM, "left in order\n", "")
    assert [file.name for file in tmp_path.iterdir()] == ["0.npz"]
    assert dg.load(tmp_path / "0.npz").steps == 3


def test_signals_pass_through_simulations(terminated):
    """One within another: both end, and what the program does with the signal comes last. An error is none."""

    def within(solution):
        inner = dg.solve(solution.semi, 1.0, ones, dt=0.1, callbacks=[signalled])
        assert inner.interrupted and inner.steps == 1 and not terminated

    def signalled(solution):
        signal.raise_signal(signal.SIGTERM)

    def failing(solution):
        signalled(solution)
        raise LookupError

    outer = dg.solve(Ordinary(lambda u, t: -u), 1.0, ones, dt=0.1, callbacks=[within])
    assert outer.interrupted and outer.steps == 1 and len(terminated) == 1
    with pytest.raises(LookupError):
        dg.solve(Ordinary(lambda u, t: -u), 1.0, ones, dt=0.1, callbacks=[failing])
    assert len(terminated) == 2
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    assert not dg.solve(Ordinary(lambda u, t: -u), 1.0, ones, dt=0.1, callbacks=[signalled]).interrupted


def test_a_second_ctrl_c_is_one():
    def twice(solution):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        dg.solve(Ordinary(lambda u, t: -u), 1.0, ones, dt=0.1, callbacks=[twice])


def test_in_another_thread():
    results = []
    thread = threading.Thread(
        target=lambda: results.append(dg.solve(Ordinary(lambda u, t: -u), 1.0, ones, dt=0.25))
    )
    thread.start()
    thread.join()
    assert results[0].steps == 4


# Callbacks


def test_callbacks_are_called_in_order():
    calls = []

    class Duck:
        interval = 2

        def __init__(self, name):
            self.name = name

        def step(self, solution):
            calls.append((self.name, solution.steps))

        def finish(self, solution):
            calls.append((self.name, "end"))

    def every(solution):
        calls.append(("f", solution.steps))

    solution = dg.solve(Ordinary(lambda u, t: -u), 0.3, ones, dt=0.1, callbacks=[Duck("a"), every, Duck("b")])
    assert calls == [("f", 1), ("a", 2), ("f", 2), ("b", 2), ("f", 3), ("a", "end"), ("b", "end")]
    assert {"Duck", "every"} <= set(solution.timers.calls)


def test_a_callback_may_set_the_state():
    def reset(solution):
        solution.u = 0 * solution.u + 1.0

    for how in ({"dt": 0.1}, {"tolerance": 1e-6}):
        solution = dg.solve(Ordinary(lambda u, t: -u), 1.0, ones, callbacks=[reset], **how)
        assert solution.u.item() == 1.0


def test_an_error_aborts_callbacks():
    told = []

    class Told(Callback):
        def abort(self, solution):
            told.append(solution.steps)

    def fail(solution):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        dg.solve(Ordinary(lambda u, t: -u), 1.0, ones, dt=0.1, callbacks=[Told(interval=1), fail])
    assert told == [1]


def test_analysis(tmp_path, capsys):
    path = tmp_path / "analysis.csv"
    semi = upwind()
    analysis = dg.Analysis(bump, interval=2, path=path)
    solution = dg.solve(semi, 0.05, bump, dt=0.01, callbacks=[analysis])
    assert [r["step"] for r in analysis.records] == [0, 2, 4, 5]
    last = analysis.records[-1]
    assert abs(last["integral_u"] - 1.5) < 1e-14 and abs(last["drift_u"]) < 1e-14
    assert (
        last["linf_u"] == solution.errors(bump)["u"].linf and last["entropy"] < analysis.records[0]["entropy"]
    )
    assert np.isnan(analysis.records[0]["index"]) and last["index"] > 0
    assert capsys.readouterr().out.count("integral       drift") == 4
    dg.solve(semi, 0.07, solution, dt=0.01, callbacks=[dg.Analysis(bump, interval=1, path=path, show=False)])
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(r["step"]) for r in rows] == [0, 2, 4, 5, 5, 6, 7] and float(rows[3]["t"]) == 0.05


def test_steady_state():
    steady = dg.SteadyState(1e-3, interval=5)
    solution = dg.solve(Ordinary(lambda u, t: -u), 50.0, ones, dt=0.1, callbacks=[steady])
    assert solution.steps == 70 and solution.stopped == "steady, the residual is 0.000912"
    assert not solution.interrupted and len(steady.residuals) == 14


def test_probe():
    probe = dg.Probe([[0.1, 0.9]], dt=0.5)
    dg.solve(Ordinary(lambda u, t: 1 + 0 * u, cells=2), 1.0, lambda x, t: (x[0],), dt=0.2, callbacks=[probe])
    assert probe.times == [0.0, 0.5, 1.0]
    np.testing.assert_allclose(probe.values[:, 0], [[0.25, 0.75], [0.75, 1.25], [1.25, 1.75]], atol=1e-14)


def test_alive_prints_lines(capsys):
    dg.solve(upwind(), 0.4, bump, dt=0.1, method=dg.RK4(), callbacks=[dg.Alive(interval=2)])
    lines = capsys.readouterr().out.splitlines()
    assert [line[:22] for line in lines] == ["step 2, t = 0.2, dt = ", "step 4, t = 0.4, dt = "]
    assert "100.0%" in lines[-1]


def test_alive_is_a_bar_in_a_terminal(monkeypatch, capsys):
    pytest.importorskip("rich")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    alive = dg.Alive(interval=1)
    bars = []
    dg.solve(upwind(), 0.4, bump, dt=0.1, callbacks=[alive, lambda s: bars.append(alive.bar)])
    assert bars[0].tasks[0].completed == pytest.approx(0.4) and alive.bar is None
    assert capsys.readouterr().out.splitlines()[-1].count("step 4, t = 0.4") == 1


def test_timers():
    timers = Timers()
    for _ in range(3):
        with timers("output"):
            pass
    assert repr(timers).splitlines()[1].split()[:2] == ["output", "3"]
