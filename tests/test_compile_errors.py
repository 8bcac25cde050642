"""`mb.compile` of functions that go on after errors, or that are given functions made anew at each call."""

import contextlib
import functools

import numpy as np
import pytest
from test_compile_pieces import agree

import mirabelle as mb

H = mb.HostArray
FEW = np.arange(6.0)
SINGULAR, REGULAR = np.ones((2, 2)), np.array([[2.0, 1.0], [0.0, 2.0]])


def solved(a, b):
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        return b * 0


def helped(a, b):
    return solved(a, b + 1) * 3


def suppressed(a, b):
    with contextlib.suppress(np.linalg.LinAlgError):
        b = np.linalg.solve(a, b)
    return b


def in_a_loop(a, b):
    found, failed = [], 0
    for k in range(3):
        try:
            found.append(np.linalg.cholesky(a - k).sum())
        except np.linalg.LinAlgError:
            failed += 1
            continue
        finally:
            b = b + 1
    return np.array(found), b, failed


def swallows(a, b):
    try:
        if a.sum() > 4.5:
            return a
    except Exception:
        pass
    return -a


def named(a, b):
    try:
        return a[0] / b["x"]
    except (TypeError, IndexError):
        return a[0] * 2


def within(a, b):
    def inverse(m):
        try:
            return np.linalg.inv(m)
        except np.linalg.LinAlgError:
            return np.zeros_like(m)

    return inverse(a) + inverse(a.T) + b


@pytest.mark.parametrize("a", [SINGULAR, REGULAR, 0 * REGULAR], ids=["singular", "regular", "zero"])
@pytest.mark.parametrize("f", [solved, helped, suppressed, in_a_loop, swallows, named, within])
def test_errors_that_a_function_goes_on_after_are_caught(f, a):
    agree(f, a, np.array([1.0, 2.0]))


def test_a_whole_program_says_what_goes_on_after_errors():
    with pytest.raises(mb.compiling.TraceError, match=r"try:.*goes on after an error"):
        mb.compile(solved, whole=True)(H(REGULAR), H([1.0, 2.0]))


def test_what_catches_errors_of_names_alone_is_one_program():
    def read(x):
        try:
            import no_such_module_at_all  # noqa: F401
        except ImportError:
            x = x + 1
        return x * 2

    f = mb.compile(read, whole=True)
    assert mb.to_numpy(f(H([1.0]))) == [4.0]


# Functions that are made at each call


def inner(x, c=2.0):
    def slope(y):
        return c * y + 1

    while x.sum() < 100:
        x = slope(x)
    return x


def test_a_function_that_is_made_anew_is_the_same_program():
    f = mb.compile(inner)
    for _ in range(8):
        got = f(H(np.ones(3)))
    np.testing.assert_allclose(mb.to_numpy(got), inner(np.ones(3)))
    assert max(len(p.compiled.programs) for p in f.pieces.pieces) == 1
    for c in (3.0, 4.0, 2.0):
        np.testing.assert_allclose(mb.to_numpy(f(H(np.ones(3)), c)), inner(np.ones(3), c))


def test_functions_are_known_by_what_they_find():
    def applied(f, x):
        return f(x)

    def made(k, array=None, default=1.0):
        def g(x, d=default):
            return x * k + d if array is None else x * array + d

        return g

    f = mb.compile(applied)
    x = np.arange(3.0)
    for _ in range(2):
        for g in (made(2), made(3), made(2, default=5.0), made(0, np.array([1.0, 2.0, 3.0])), made(True)):
            np.testing.assert_allclose(mb.to_numpy(f(g, H(x))), g(x))
        for array in (H([1.0, 1.0, 1.0]), H([2.0, 2.0, 2.0])):
            np.testing.assert_allclose(mb.to_numpy(f(made(0, array), H(x))), x * mb.to_numpy(array) + 1)
    assert len(f.programs) == 4 + 1 * 2 + 2 * 2
    for a, b in ((np.sin, np.cos), (functools.partial(np.add, 1), functools.partial(np.add, 2))):
        for g in (a, b, a):
            np.testing.assert_allclose(mb.to_numpy(f(g, H(x))), g(x))


def test_a_variable_that_a_function_finds_has_no_value_yet():
    def late(x):
        def g(y):
            return y + missing

        z = mb.compile(lambda h, y: y * 2)(g, x)
        missing = 1.0
        return z + g(x)

    np.testing.assert_allclose(mb.to_numpy(late(H(FEW))), FEW * 3 + 1)


# What is told of cuts


def told(x):
    rows = []
    y = x * 2
    z = y + 1
    low = min(z.sum(), 0.0)
    if z.max() > 3:
        rows.append(y - low)
    for k in np.flatnonzero(x > 1):
        z = z + k
    return z, rows


def test_a_cut_is_told_once_with_what_would_be_written_in_its_place():
    f = mb.compile(told)
    for _ in range(4):
        z, rows = f(H(FEW))
    np.testing.assert_allclose(mb.to_numpy(z), told(FEW)[0])
    np.testing.assert_allclose(mb.to_numpy(rows[0]), told(FEW)[1][0])
    text = repr(f.explain(H(FEW)))
    assert "`rows`, which is used after it, is a list" in text
    assert "mb.minimum(a, b)" in text and "mb.cond(condition, f, g, *x)" in text
    assert "flatnonzero() returns as many elements as the values say. A mask" in text
    assert "fori_loop" not in text and text.count("`if z.max() > 3:`") == 1
    # What makes the list is cut off, not what stands beside it.
    assert any(p.lines[0] == told.__code__.co_firstlineno + 2 and not p.reason for p in f.pieces.pieces)


def test_rows_and_columns_are_arrays_inside():
    def rows(x):
        return np.r_[0.0, x], np.c_[x, x]

    agree(rows, FEW)
    assert type(mb.compile(rows)(H(FEW))[0]) is type(H(FEW))


def test_a_line_through_points_is_part_of_a_program():
    f = mb.compile(lambda y: np.polyfit(np.arange(6), y, 1), whole=True)
    np.testing.assert_allclose(mb.to_numpy(f(H(FEW**2))), np.polyfit(np.arange(6), FEW**2, 1))
