"""Statements on cards that come back: known again where they are the same, and only there."""

import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mirabelle as mb
from mirabelle.backends.gpu import cupydriver, direct, shortcuts
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import Broadcasted

N = 12
TIMES = 12


@pytest.fixture(autouse=True)
def _nothing_known():
    shortcuts.known.clear()
    yield
    shortcuts.known.clear()


@pytest.fixture
def hits(monkeypatch):
    """How often a statement was known again."""
    count = [0]
    write = shortcuts.written

    def counted(*about):
        again = write(*about)

        def counting(dest, node):
            found = again(dest, node)
            count[0] += found
            return found

        return None if again is None else counting

    monkeypatch.setattr(shortcuts, "written", counted)
    return count


def card(*arrays):
    return [mb.CuArray(x) for x in arrays]


def data(seed=0, count=3, dtype=np.float64, n=N):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(n).astype(dtype) for _ in range(count)]


STATEMENTS = {
    "fused": lambda z, x, y: x * y + z,
    "of others": lambda z, x, y: (x - y) * x,
    "with numbers": lambda z, x, y: 2.5 * x - y * 0.5,
    "itself twice": lambda z, x, y: z * x + z,
    "one": lambda z, x, y: mb.sin(x),
    "itself": lambda z, x, y: -z,
    "three": lambda z, x, y: mb.where(x > y, z, y),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_that_comes_back_is_known(name, hits):
    f = STATEMENTS[name]
    z, x, y = data(1)
    Z, X, Y = card(z, x, y)
    for _ in range(TIMES):
        z[...] = f(z, x, y) if name != "three" else np.where(x > y, z, y)
        Z[...] = f(Z, X, Y)
    assert np.allclose(mb.to_numpy(Z), z, rtol=1e-13) and hits[0] >= 3


def test_in_place_operators_too(hits):
    z, x = data(2, 2)
    Z, X = card(z, x)
    for _ in range(TIMES):
        z += x
        Z += X
    assert np.allclose(mb.to_numpy(Z), z, rtol=1e-13) and hits[0] >= 3


def test_new_numbers_and_new_arrays_of_the_same_layout(hits):
    z, x, y = data(3)
    Z, X, Y = card(z, x, y)
    for k in range(TIMES):
        x = data(10 + k, 1)[0]
        (X,) = card(x)
        z[...] = x * float(k) + y
        Z[...] = X * float(k) + Y
        assert np.allclose(mb.to_numpy(Z), z, rtol=1e-13)
    assert hits[0] >= 3


def test_what_is_known_again_is_counted(hits):
    Z, X, Y = card(*data(4))
    for _ in range(TIMES):
        Z[...] = X * Y
    before = hits[0]
    with mb.count() as c:
        Z[...] = X * Y
    assert (hits[0], c.launches, c.temporaries) == (before + 1, 1, 0)
    assert (c.bytes_read, c.bytes_written) == (X.nbytes + Y.nbytes, Z.nbytes)


def test_an_override_is_asked(hits):
    Z, X, Y = card(*data(5))
    for _ in range(TIMES):
        Z[...] = X * Y
    before = hits[0]
    seen = []

    def copyto(dest, src):
        seen.append(1)
        return verbs.copyto.previous(dest, src)

    with mb.override(verbs.copyto, (mb.CuArray, Broadcasted), copyto):
        Z[...] = X * Y
    assert seen and hits[0] == before


def test_overrides_of_assign_are_asked(hits):
    Z, X, Y = card(*data(5))
    for _ in range(TIMES):
        Z[...] = X * Y
    before, seen = hits[0], []

    def assign(dest, value, casting="unsafe"):
        seen.append(1)
        return verbs.assign.previous(dest, value, casting=casting)

    cls = type(Z)
    with mb.override(verbs.assign, (cls, cls), assign):
        Z[...] = X * Y
    assert seen and hits[0] == before


OTHERS = {
    "shape": lambda x: mb.CuArray(np.zeros(N + 1)),
    "dtype": lambda x: mb.CuArray(np.zeros(N, np.float32)),
    "strides": lambda x: mb.CuArray(np.zeros(2 * N))[::2],
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_layouts_are_walked(name, hits):
    z, x, y = data(6)
    Z, X, Y = card(z, x, y)
    for _ in range(TIMES):
        Z[...] = X * Y
    before = hits[0]
    W = OTHERS[name](X)
    if name == "shape":
        with pytest.raises(ValueError, match="shape"):
            Z[...] = W * W
    else:
        Z[...] = W * Y
        assert not mb.to_numpy(Z).any()
    assert hits[0] == before
    Z[...] = X * Y
    assert np.allclose(mb.to_numpy(Z), x * y)


class Beside:
    """A program that says the same in NumPy and on a card, and keeps what it has been told to keep."""

    def __init__(self):
        self.host = dict(zip("xyz", data(7), strict=True))
        self.card = {k: mb.CuArray(v) for k, v in self.host.items()}
        self.kept = []

    def keep(self, make):
        """A tree that waits, with the value that it shall have."""
        self.kept.append((make(self.card), np.array(make(self.host))))

    def write(self, to, make):
        self.host[to][...] = make(self.host)
        self.card[to][...] = make(self.card)

    def check(self):
        for k, v in self.host.items():
            assert np.allclose(mb.to_numpy(self.card[k]), v, rtol=1e-12), k
        for tree, value in self.kept:
            assert np.allclose(mb.to_numpy(tree), value, rtol=1e-12)


MAKES = [
    lambda a: a["x"] * a["y"] + a["z"],
    lambda a: a["z"] * 0.5,
    lambda a: a["x"] * 0.25 + a["x"] * a["x"],
    lambda a: a["x"][::-1] * a["y"],
    lambda a: a["z"] * 0.5 + a["y"],
]
KEEPS = [lambda a: a["z"] + a["x"], lambda a: a["z"][2:7] * 2.0, lambda a: a["x"] * a["y"]]


@given(
    st.lists(
        st.tuples(st.sampled_from("xyz"), st.integers(0, len(MAKES) - 1), st.none() | st.integers(0, 2)),
        min_size=3,
        max_size=8,
    )
)
def test_what_waits_keeps_its_value(program):
    """Loops over statements, with trees that wait before some of them."""
    shortcuts.known.clear()
    b = Beside()
    for turn in range(TIMES):
        for k, (to, make, keep) in enumerate(program):
            if keep is not None and (turn + k) % 3 == 0:
                b.keep(KEEPS[keep])
            b.write(to, lambda a, f=MAKES[make]: f(a) * 0.5)
    b.check()


def test_two_names_of_one_array_part(hits):
    z, x, y = data(8)
    Z, X, Y = card(z, x, y)
    for _ in range(TIMES):
        Z[...] = X * Y
    W = mb.CuArray(np.zeros(N))
    W[...] = Z  # both names may be on one version
    Z[...] = X * Y
    Z[...] = X * 3.0
    assert np.allclose(mb.to_numpy(W), x * y) and np.allclose(mb.to_numpy(Z), x * 3)


def test_statements_that_take_turns_are_left_alone():
    direct._plans.clear()
    Z, X = card(np.zeros(N), np.ones(N))
    V, W = card(np.zeros(2 * N), np.ones(2 * N))
    for _ in range(400):
        Z[...] = X * 2.0
        V[...] = W * 2.0
    assert mb.to_numpy(Z).tolist() == [2.0] * N and mb.to_numpy(V).tolist() == [2.0] * 2 * N
    assert max(p.shortcut.turns for p in direct._plans.values() if hasattr(p, "shortcut")) == shortcuts._TURNS


@pytest.mark.parametrize("count", [0, 1, 4])
@pytest.mark.parametrize("several, here", [(False, 0), (True, 0), (True, 1)])
def test_launches_are_made_on_the_right_card(count, several, here):
    done = []

    class Device:
        def __enter__(self):
            done.append("in")

        def __exit__(self, *error):
            done.append("out")

    space = {
        "here": lambda: here, "index": 0, "device": Device(), "blocks": {}, "ident": lambda: 1,
        "parameters": lambda: ("block", 5, None), "pack": lambda *a: done.append(a), "recorders": [],
        "launch": lambda *a: done.append(a), "function": 9, "stream": lambda: types.SimpleNamespace(ptr=7),
        **dict(zip(("gx", "gy", "gz", "bx", "by", "bz"), range(1, 7), strict=True)),
    }  # fmt: skip
    types.FunctionType(cupydriver._code(count, several), space)(*range(count))
    launched = [("block", 0, *range(count)), (9, 1, 2, 3, 4, 5, 6, 0, 7, 5, 0)]
    assert done == (["in", *launched, "out"] if several and here else launched)
