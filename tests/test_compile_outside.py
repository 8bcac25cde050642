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


class Decorated(Stepper):
    """What is compiled is given the object as an argument."""

    def __init__(self):
        super().__init__()
        self.inner = types.SimpleNamespace(w=np.ones(3), ours=H(np.ones(3)), levels=[1.0, 2.0])

    def _formula(self, x):
        return self.scaled(x) * self.inner.levels[1] + self.inner.w + (self.inner.ours if USE_OURS else 0)

    formula = mb.compile(_formula)


USE_OURS = True
GIVEN = {
    "a number": lambda o: setattr(o, "dt", o.dt + 1),
    "an array of ours": lambda o: o.inner.ours.__setitem__(0, 5.0),
    "another array": lambda o: setattr(o.inner, "ours", o.inner.ours + 1),
    "an array of NumPy's": lambda o: o.inner.w.__setitem__(1, 7.0),
    "a list": lambda o: o.inner.levels.__setitem__(1, o.inner.levels[1] + 1),
    "a part": lambda o: setattr(o, "inner", types.SimpleNamespace(**vars(o.inner) | {"levels": [3.0, 4.0]})),
    "nothing": lambda o: None,
}


@pytest.mark.parametrize("way", [{}, {"whole": True}, {"sizes": "any"}], ids=["each", "whole", "any"])
@pytest.mark.parametrize("seed", range(4))
def test_objects_that_are_given_are_looked_at(way, seed, monkeypatch):
    """They are changed at random, and a method that is decorated is called with them in turns."""
    monkeypatch.setattr(Decorated, "formula", mb.compile(Decorated._formula, **way))
    rng = np.random.default_rng(seed)
    objects, x = [Decorated(), Decorated()], H(np.arange(3.0))
    for _ in range(12):
        o = objects[rng.integers(2)]
        list(GIVEN.values())[rng.integers(len(GIVEN))](o)
        for o in objects:
            assert o.formula(x).tolist() == mb.to_numpy(o._formula(x)).tolist()


def test_functions_that_are_given_are_looked_at(monkeypatch):
    compiled = mb.compile(lambda x, given: given["f"](x) * given["o"].k)
    given = {"f": lambda x: x + FACTOR, "o": types.SimpleNamespace(k=2.0)}
    assert compiled(H([1.0]), given).tolist() == [6.0]
    given["o"].k = 3.0
    assert compiled(H([1.0]), given).tolist() == [9.0]
    monkeypatch.setitem(globals(), "FACTOR", 4.0)
    assert compiled(H([1.0]), given).tolist() == [15.0]
    apply = mb.compile(lambda x, f: f(x))
    assert apply(H([1.0]), lambda x: x + FACTOR).tolist() == [5.0]
    for factor in (5.0, 6.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        assert apply(H([1.0]), lambda x: x + FACTOR).tolist() == [1.0 + factor]


def test_objects_that_are_static_are_looked_at():
    held, other = types.SimpleNamespace(k=2.0), types.SimpleNamespace(k=1.0)
    compiled = mb.compile(lambda x, n, held, other: x * held.k * other.k + n, static=("held", "n"))
    for k, j, said in ((2.0, 1.0, 3.0), (3.0, 1.0, 4.0), (3.0, 2.0, 7.0), (5.0, 2.0, 11.0)):
        held.k, other.k = k, j
        assert compiled(H([1.0]), 1.0, held, other).tolist() == [said]


def test_objects_that_stay_are_captured_once():
    objects, x, compiled = [Decorated(), Decorated()], H(np.arange(3.0)), mb.compile(Decorated._formula)
    with mb.count() as c:
        for _ in range(5):
            for o in objects:
                compiled(o, x)
    assert c.captures == 2


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


def test_a_function_without_a_source_says_that_a_file_is_the_cure():
    """(Piped into Python, typed at a prompt: the same function of a file is cut, and runs.)"""
    space = {"mb": mb}
    exec("def signed(x):\n    return x if mb.sum(x) > 0 else -x", space)
    with pytest.raises(mb.compiling.TraceError, match=r"put it in a file, `python script\.py`"):
        mb.compile(space["signed"])(H([1.0]))
    with pytest.raises(mb.compiling.TraceError) as e:
        mb.compile(space["signed"], whole=True)(H([1.0]))
    assert "in a file" not in str(e.value)
