"""Compiled functions and what is outside of them: globals, closures, objects; and errors that they catch."""

import functools
import types

import numpy as np
import pytest
import randomoutside

import mirabelle as mb
from mirabelle.arraytypes.programs.outsidevalues import OutsideValues

H = mb.HostArray
FACTOR = 2.0
TABLE = np.ones(3)
OURS = H([1.0, 2.0, 3.0])
SETTINGS = types.SimpleNamespace(k=1.0, steps={"dt": 0.1}, levels=[1.0, 2.0], pair=(1, 2.0))


def helper(x):
    return x * SETTINGS.k + SETTINGS.steps["dt"] * SETTINGS.levels[1] - SETTINGS.pair[1]


def uses_all(x):
    ours = mb.to_numpy(OURS) if isinstance(x, np.ndarray) else OURS[::-1][::-1]
    return helper(x) * FACTOR + TABLE + ours + sum(t for t in [SETTINGS.k] if t > FACTOR)


CHANGES = {
    "a global": lambda now: now.setitem(globals(), "FACTOR", FACTOR + 1),
    "an array": lambda now: now.setitem(globals(), "TABLE", TABLE * 2),
    "an array written to": lambda now: TABLE.__iadd__(1),
    "an array of ours": lambda now: OURS.__iadd__(1),
    "a part of it": lambda now: OURS[1:].__imul__(2),
    "an attribute": lambda now: now.setattr(SETTINGS, "k", SETTINGS.k + 1),
    "a dictionary": lambda now: now.setitem(SETTINGS.steps, "dt", SETTINGS.steps["dt"] + 1),
    "a list": lambda now: SETTINGS.levels.__setitem__(1, SETTINGS.levels[1] + 1),
    "a tuple": lambda now: now.setattr(SETTINGS, "pair", (1, SETTINGS.pair[1] + 1)),
    "a helper": lambda now: now.setitem(globals(), "helper", lambda x, old=helper: old(x) + 1),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_changes_outside_is_seen(what, monkeypatch):
    compiled, x = mb.compile(uses_all), np.arange(3.0)
    monkeypatch.setattr(SETTINGS, "levels", [1.0, 2.0])
    monkeypatch.setitem(globals(), "TABLE", np.ones(3))
    for _ in range(5):  # captured anew, and at last cut
        for _ in range(2):
            assert np.allclose(compiled(H(x)).tolist(), uses_all(x))
        CHANGES[what](monkeypatch)


def test_what_stays_is_captured_once():
    compiled, x = mb.compile(uses_all), H(np.arange(3.0))
    with mb.count() as c:
        for _ in range(5):
            compiled(x)
    assert c.captures == 1


def test_whole_programs_are_captured_anew(monkeypatch):
    compiled, x = mb.compile(uses_all, whole=True), np.arange(3.0)
    with mb.count() as c:
        for _ in range(5):
            assert np.allclose(compiled(H(x)).tolist(), uses_all(x))
            CHANGES["a global"](monkeypatch)
    assert c.captures == 5


def test_one_that_is_captured_anew_again_and_again_warns(monkeypatch):
    compiled, x = mb.compile(lambda x: x * FACTOR, whole=True), H(np.arange(3.0))
    with pytest.warns(RuntimeWarning, match=r"Pass them in: `f\(x, mb.asarray\(dt\)\)`"):
        for _ in range(40):
            compiled(x)
            CHANGES["a global"](monkeypatch)


def counting():
    k = 0

    def f(x):
        nonlocal k
        k += 1
        return x * k

    return f


def counts_in_an_object():
    held = types.SimpleNamespace(n=0)

    def f(x):
        held.n += 1
        return x * held.n

    return f


class Stepper:
    def __init__(self):
        self.dt = 1.0

    def step(self, x):
        return self.scaled(x) + 1

    def scaled(self, x):
        return x * self.dt


def method_of_an_object():
    s = Stepper()
    return functools.partial(_stepped, s)


def _stepped(s, x):
    s.dt += 0.5
    return s.step(x)


@pytest.mark.parametrize("make", [counting, counts_in_an_object, method_of_an_object])
def test_functions_that_change_what_is_outside(make):
    plain, compiled = make(), mb.compile(make())
    for _ in range(4):
        assert np.allclose(mb.to_numpy(compiled(H([1.0, 2.0]))), plain(np.array([1.0, 2.0])))


def test_a_bound_method_sees_its_object():
    s = Stepper()
    compiled = mb.compile(s.step)
    for dt in (1.0, 2.0, 2.0, 3.0, 4.0, 5.0):
        s.dt = dt
        assert compiled(H([1.0])).tolist() == [dt + 1]


def test_one_program_of_what_binds_anew_is_refused():
    with pytest.raises(
        mb.compiling.TraceError, match=r"f\(\) binds `k` anew, which is a variable outside of it"
    ):
        mb.compile(counting(), whole=True)(H([1.0]))


def test_what_is_looked_at():
    values = OutsideValues(uses_all)
    names = {key for _, key, _ in values.entries}
    assert names == {"FACTOR", "TABLE", "OURS", "SETTINGS", "helper", "k", "dt", "steps", "levels", "pair"}
    assert {id(x) for x, _ in values.lists} >= {id(SETTINGS.levels), id(SETTINGS.pair)}
    assert values.are_the_same() and not OutsideValues(lambda x: x + np.pi)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_functions_see_what_changes(tmp_path, first):
    """(`python tests/randomoutside.py 2000` runs more.)"""
    assert randomoutside.failures(20, first, tmp_path) == []


# Errors that are caught


def solved(a, b):
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(a, b, rcond=None)[0]


def made_definite(a):
    n = 0
    while True:
        try:
            return np.linalg.cholesky(a), n
        except np.linalg.LinAlgError:
            a, n = a + np.eye(len(a)), n + 1


def picked(x, i):
    try:
        return x[i] * 2
    except IndexError:
        return x * 0


def inverted(a):
    return np.linalg.inv(a)


def by_a_helper(a):
    try:
        b = inverted(a)
    except Exception:
        b = a
    finally:
        c = 1
    return b + c


def other_errors(a):
    try:
        k = {}["a"]
    except KeyError:
        k = 2.0
    return np.linalg.inv(a) * k


E, Z = np.eye(3), np.zeros((3, 3))


@pytest.mark.parametrize(
    ("f", "calls"),
    [
        (solved, [(E, np.ones(3)), (Z, np.ones(3)), (2 * E, np.ones(3))]),
        (made_definite, [(E,), (-2.5 * E,), (E,)]),
        (picked, [(np.arange(3.0), np.array([0, 1])), (np.arange(3.0), np.array([0, 7]))]),
        (by_a_helper, [(E,), (Z,), (E,)]),
        (other_errors, [(E,), (2 * E,)]),
    ],
)
def test_errors_are_caught_where_the_function_catches_them(f, calls):
    compiled = mb.compile(f)
    for _ in range(2):
        for args in calls:
            wanted, got = f(*args), compiled(*map(H, args))
            wanted, got = (wanted, got) if isinstance(wanted, tuple) else ((wanted,), (got,))
            for a, b in zip(got, wanted, strict=True):
                assert np.allclose(mb.to_numpy(a) if isinstance(a, mb.AbstractArray) else a, b)


def test_what_nobody_catches_stays_in_the_program():
    compiled = mb.compile(other_errors, whole=True)
    assert np.allclose(compiled(H(E)).tolist(), 2 * E)
    with pytest.raises(np.linalg.LinAlgError):
        compiled(H(Z))
