"""Dual numbers through the whole namespace: every public function differentiates, is constant, or refuses.

`differentiable.py` has the calls. They are compared with central differences on every place, also of first derivatives.
"""

import inspect
import itertools
import math

import numpy as np
import pytest
from compare import contents
from differentiable import CALLS, OTHERS, A, P, S, T, V, W
from kinds import PLAIN

import mirabelle as mb
from mirabelle.arraytypes.duals.base import DualError

STEP = 1e-6
KINDS = pytest.mark.parametrize("kind", PLAIN, ids=repr)
ALL = CALLS | OTHERS
NAMED = [(name, i) for name, found in ALL.items() for i in range(len(found))]
EVERY = pytest.mark.parametrize(("name", "i"), NAMED, ids=[f"{name}-{i}" for name, i in NAMED])


def flat(nest):
    """The arrays in a nest of results."""
    return [x for part in nest for x in flat(part)] if isinstance(nest, (tuple, list)) else [nest]


def numbers(nest):
    return [contents(x) for x in flat(nest)]


def directions(xs):
    return [np.random.default_rng(k).standard_normal(x.shape) for k, x in enumerate(xs)]


def slopes(f, xs, ds, h=STEP):
    """Central differences of a function of NumPy arrays that returns a list of them."""
    ahead, behind = (f(*[x + sign * h * d for x, d in zip(xs, ds, strict=True)]) for sign in (1, -1))
    return [(a - b) / (2 * h) if a.dtype.kind in "fc" else None for a, b in zip(ahead, behind, strict=True)]


def on_host(f):
    return lambda *xs: numbers(f(*map(mb.HostArray, xs)))


def along(f, xs, ds):
    """Value and derivative, of arrays of any place."""
    return mb.autodiff.jvp(f, tuple(xs), tuple(ds))


_expected = {}


def expected(name, i):
    """Values and differences, which are the same for all places."""
    if (name, i) not in _expected:
        f, *xs = ALL[name][i]
        _expected[name, i] = on_host(f)(*xs), slopes(on_host(f), xs, directions(xs))
    return _expected[name, i]


@KINDS
@EVERY
def test_value_and_derivative(name, i, kind):
    f, *xs = ALL[name][i]
    made = [[kind.make(x) for x in arrays] for arrays in (xs, directions(xs))]
    found, tangents = map(flat, along(f, *made))
    values, differences = expected(name, i)
    for x, dx, value, difference in zip(found, tangents, values, differences, strict=True):
        np.testing.assert_allclose(contents(x), value, rtol=1e-13, atol=1e-14)
        if isinstance(x, mb.AbstractArray) and name != "adapt":
            assert x.place == dx.place == kind.place
        if difference is not None:
            np.testing.assert_allclose(contents(dx), difference, rtol=2e-6, atol=2e-8)


@EVERY
def test_jacobian_from_unit_directions(name, i):
    # What starts from unit directions goes other ways than what starts from arrays.
    f, *xs = ALL[name][i]
    ds = directions(xs)
    found = flat(mb.autodiff.jacobian(lambda x: list(flat(f(*x))), tuple(map(mb.HostArray, xs))))
    tangents = flat(along(f, map(mb.HostArray, xs), map(mb.HostArray, ds))[1])
    for k, tangent in enumerate(tangents):
        parts = found[k * len(xs) : (k + 1) * len(xs)]
        total = sum(np.tensordot(contents(j), d, d.ndim) for j, d in zip(parts, ds, strict=True))
        np.testing.assert_allclose(total, contents(tangent), rtol=1e-9, atol=1e-12)


@EVERY
def test_second_derivative(name, i):
    f, *xs = ALL[name][i]
    ds = directions(xs)

    def slope(*xs):
        return flat(along(f, xs, map(mb.HostArray, ds))[1])

    second = flat(along(slope, map(mb.HostArray, xs), map(mb.HostArray, ds))[1])
    for d2, difference in zip(second, slopes(on_host(slope), xs, ds), strict=True):
        if difference is not None:
            np.testing.assert_allclose(contents(d2), difference, rtol=2e-6, atol=1e-6)
