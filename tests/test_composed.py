"""Functions that NumPy has for the host, and that are composed of others everywhere else: NumPy's results."""

import itertools

import numpy as np
import pytest

import mirabelle as mb
from tests.compare import assert_same
from tests.threadranks import on_ranks

PLACES = {
    "host": mb.HostArray, "ref": mb.RefArray, "cuda": mb.CuArray, "dist": mb.DArray[mb.HostArray],
}  # fmt: skip
RNG = np.random.default_rng(11)
SHAPES = (7, 3), (21,), (2, 3, 4), (0, 4), (5, 0), ()


def check(f, g, there):
    """Are results, or the kind of error, NumPy's?"""
    try:
        expected, error = g(lambda x: x), None
    except Exception as e:
        expected, error = None, type(e)
    if error is not None:
        with pytest.raises(error):
            f(there)
        return
    found = f(there)
    assert isinstance(found, tuple) == isinstance(expected, tuple)
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for a, b in pairs:
        assert_same(a, np.asarray(b))


def both(call, there):
    check(lambda to: call(mb, to), lambda to: call(np, to), there)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i8", "f2", "f4", "f8", "c8", "c16"])
def test_places_and_complex_order(place, dtype):
    for shape in SHAPES:
        x = np.asarray(RNG.integers(-2, 3, shape), dtype)
        for name in ("flatnonzero", "argwhere", "sort_complex"):
            if name == "sort_complex" and not shape:
                continue  # (NumPy refuses to sort a number, we do not)
            both(lambda xp, to, name=name, x=x: getattr(xp, name)(to(x)), PLACES[place])
    x = np.asarray(RNG.integers(-2, 3, (6, 5)), dtype)
    both(lambda xp, to: xp.argwhere(to(x).T[1:]), PLACES[place])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", ["i1", "u2", "i8", "u8", "?", "f8"])
def test_indices_as_one(place, dtype):
    there = PLACES[place]
    for shape, order in itertools.product(((4,), (3, 5), (2, 3, 4), (3, 0)), "CFK"):
        size = int(np.prod(shape))
        for low, high in ((0, max(size, 1)), (-1, size), (0, size + 2)):
            i = np.asarray(RNG.integers(low, high + 1, (2, 3)) if high > low else np.zeros((2, 3)), dtype)
            both(lambda xp, to, i=i, s=shape, o=order: xp.unravel_index(to(i), s, order=o), there)
        for mode in ("raise", "wrap", "clip", ("wrap", "raise", "clip")[: len(shape)], "else"):
            many = [np.asarray(RNG.integers(-1 * (mode != "raise"), max(n, 1) + 1, 6), dtype) for n in shape]
            both(
                lambda xp, to, m=many, s=shape, o=order, w=mode: xp.ravel_multi_index(
                    tuple(map(to, m)), s, mode=w, order=o
                ),
                there,
            )
    both(lambda xp, to: xp.unravel_index(to(np.zeros(0, dtype)), (2, 3)), there)
    both(lambda xp, to: xp.ravel_multi_index((to(np.zeros(2, dtype)),), (2, 3)), there)
    if dtype == "i8":
        rows = np.array([[0, 1, 2], [1, 1, 0]])
        both(lambda xp, to: xp.ravel_multi_index(to(rows), (3, 2)), there)
        both(lambda xp, to: xp.ravel_multi_index((to(rows[0]), 1), (3, 2)), there)
        both(lambda xp, to: xp.ravel_multi_index((to(rows[0][:, None]), to(rows[1])), (3, 2)), there)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "dtypes", [("i4", "i8"), ("f8", "i4"), ("?", "?"), ("u1", "f4"), ("c16", "f8"), ("f2", "f2")]
)
def test_sets(dtypes, place):
    there = PLACES[place]
    for shapes in ((8, 5), (0, 3), (4, 0), (0, 0), (1, 1), ((3, 2), (2, 2))):
        a, b = (np.asarray(RNG.integers(-3, 4, n), t) for n, t in zip(shapes, dtypes, strict=True))
        if dtypes[0] == "f8":
            a = np.where(a == 2, np.nan, a)
        for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
            both(lambda xp, to, n=name, a=a, b=b: getattr(xp, n)(to(a), to(b)), there)
            if name != "union1d":
                u, v = np.unique(a), np.unique(b)
                both(lambda xp, to, n=name, a=u, b=v: getattr(xp, n)(to(a), to(b), assume_unique=True), there)
        both(lambda xp, to, a=a, b=b: xp.intersect1d(to(a), to(b), return_indices=True), there)
        both(lambda xp, to, a=u, b=v: xp.intersect1d(to(a), to(b), True, return_indices=True), there)


def test_on_several_processes():
    given = RNG.integers(0, 3, (9, 4))

    def program(comm):
        x = mb.DArray[mb.HostArray](given, comm=comm)
        found = mb.argwhere(x), mb.flatnonzero(x), mb.sort_complex(x), *mb.unravel_index(x, (2, 3))
        return [mb.to_numpy(f) for f in (*found, mb.ravel_multi_index((x, x), (3, 5)))]

    x = given
    expected = np.argwhere(x), np.flatnonzero(x), np.sort_complex(x), *np.unravel_index(x, (2, 3))
    for found in on_ranks(3, program):
        for f, e in zip(found, (*expected, np.ravel_multi_index((x, x), (3, 5))), strict=True):
            np.testing.assert_array_equal(f, e)


@pytest.mark.parametrize("place", ["host", "ref", "cuda"])
def test_in_programs(place):
    i = PLACES[place](np.array([[5, 0, 3], [1, 2, 4]]))
    for f in (
        lambda i: mb.unravel_index(i, (2, 3)),
        lambda i: (mb.ravel_multi_index((i, i), (6, 6)), mb.sort_complex(i)),
    ):
        for a, b in zip(mb.compile(f)(i), f(i), strict=True):
            assert_same(a, mb.to_numpy(b))
    with pytest.raises((IndexError, ValueError)):
        mb.materialize(mb.compile(lambda i: mb.unravel_index(i, (2, 2))[0])(i))


@pytest.mark.parametrize("place", ["host", "ref", "cuda"])
def test_elements_are_taken_by_an_order_without_looking(place):
    """Where the entries of an order lie is known, until somebody writes to it."""
    given = RNG.normal(size=(5, 300))
    x = PLACES[place](given)
    order = mb.argsort(x, axis=1, stable=True)
    with mb.count() as c:
        found = mb.materialize(mb.take_along_axis(x, order, axis=1))
    assert c.library_calls == 0 and c.scalar_reads == 0
    assert_same(found, np.sort(given, axis=1))
    order[:1, :1] = 300
    with pytest.raises(IndexError):
        mb.materialize(mb.take_along_axis(x, order, axis=1))
    order = mb.argsort(x[0])
    order[...] = order - 150  # from the end
    assert_same(x[0][order], given[0][np.argsort(given[0]) - 150])
