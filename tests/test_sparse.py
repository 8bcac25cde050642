"""Sparse matrices against dense NumPy and SciPy: making, indexing, elementwise functions, products, solves."""

import math
import pickle
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse
from compare import assert_closed, assert_same
from kinds import LEAVES

import mirabelle as mb
from mirabelle.arraytypes.structured import fallback

KINDS = [LEAVES["host"], LEAVES["ref"], LEAVES["cuda"]]
KIND = pytest.mark.parametrize("kind", KINDS, ids=repr)
RNG = np.random.default_rng(5)
la = mb.linalg


@pytest.fixture(autouse=True)
def tell_again():
    fallback.forget()


def dense(rows=6, columns=6, dtype=np.float64, density=0.4):
    x = (
        RNG.integers(-4, 5, (rows, columns))
        if np.dtype(dtype).kind in "iu"
        else RNG.normal(size=(rows, columns))
    )
    if np.dtype(dtype).kind == "c":
        x = x + 1j * RNG.normal(size=(rows, columns))
    x = (np.abs(x) if np.dtype(dtype).kind == "u" else x).astype(dtype)
    return np.where(RNG.uniform(size=(rows, columns)) < density, x, x.dtype.type(0))


def csr(kind, *args, **options):
    n = dense(*args, **options)
    return mb.CSR(kind.make(n)), n


def name(x):
    return type(x).__name__.split("[")[0]


def check(got, expected, kind, rtol=1e-13, kept=None):
    if isinstance(got, mb.types.DenseArray):
        assert_closed(got, kind)
    assert got.place == kind.place
    assert kept is None or name(got) == kept, type(got)
    if isinstance(got, mb.CSR):
        check_form(got)
    scale = float(np.max(np.abs(expected), initial=1)) if np.asarray(expected).dtype != bool else 0
    rtol = max(rtol, 1e-5) if np.asarray(expected).dtype in (np.float32, np.complex64) else rtol
    assert_same(got, expected, rtol=rtol, atol=rtol * scale)


def check_form(x):
    """Columns ascend in each row, and SciPy agrees."""
    s = x.to_scipy()
    s.check_format(full_check=True)
    again = scipy.sparse.csr_array((s.data, s.indices, s.indptr), shape=s.shape)
    assert again.has_canonical_format
    assert x.indices.dtype == x.indptr.dtype == np.int32


# Making


@KIND
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "c16", "c8", "i8", "u1", "?"])
@pytest.mark.parametrize("shape", [(5, 7), (7, 5), (1, 1), (0, 3), (3, 0), (4, 4)])
def test_made_of_dense_and_back(kind, shape, dtype):
    x, n = csr(kind, *shape, dtype=dtype)
    check(x, n, kind)
    check(kind.family(x), n, kind)
    check(mb.dense(x), n, kind)
    assert x.nnz == np.count_nonzero(n) and x.dtype == n.dtype and x.place == kind.place
    check(x.T, n.T, kind, kept="CSR")
    check(mb.adjoint(x), n.conj().T, kind)
    check(pickle.loads(pickle.dumps(x)), n, kind, kept="CSR")
    check(mb.copy(x), n, kind, kept="CSR")


@KIND
def test_made_of_parts_and_triples(kind):
    s = scipy.sparse.random_array((8, 5), density=0.3, rng=1, format="csr")
    s.sort_indices()
    parts = [kind.make(p) for p in (s.data, s.indices, s.indptr)]
    x = mb.CSR(tuple(parts), shape=s.shape)
    check(x, s.toarray(), kind)
    assert x.data is parts[0] and x.indices is parts[1]  # they are shared
    x.data[...] = 1.0
    check(mb.sum(parts[0]), np.asarray(float(s.nnz)), kind)
    assert mb.CSR(([1.0], [1], [0, 0, 1])).shape == (2, 2)
    i, j, v = np.array([2, 0, 2, 2, 0]), np.array([1, 3, 1, 0, 0]), np.array([1.0, 2, 4, 8, 16])
    y = mb.CSR((kind.make(v), (kind.make(i), kind.make(j))), shape=(3, 5))
    check(y, scipy.sparse.coo_array((v, (i, j)), shape=(3, 5)).toarray(), kind)
    assert mb.CSR((v, (i, j))).shape == (3, 4)
    assert mb.CSR((v, (i, j)), dtype="f4").dtype == np.float32
    assert mb.CSR(([1, 2], ([0, 1], [0, 1])), device=kind.family).place == kind.place


ROWS_OF_ENTRIES = {
    "anywhere": lambda n, rows: RNG.integers(0, rows, n),
    "in few rows": lambda n, rows: np.where(RNG.uniform(size=n) < 0.9, rows - 1, RNG.integers(0, rows, n)),
    "backwards": lambda n, rows: np.sort(RNG.integers(0, rows, n))[::-1].copy(),
    "in order": lambda n, rows: np.sort(RNG.integers(0, rows, n)),
    "in turns": lambda n, rows: np.arange(n) % rows,
}


@pytest.mark.parametrize("dtype", ["?", "i1", "i4", "u8", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("where", ROWS_OF_ENTRIES)
def test_of_more_entries_than_a_cache_holds(where, dtype):
    """(They are dealt to groups of rows first.)"""
    for entries, rows, columns in ((700_000, 3, 400_000), (150_000, 90_001, 7), (300_000, 1 << 15, 300)):
        i, j = ROWS_OF_ENTRIES[where](entries, rows), RNG.integers(0, columns, entries)
        v = (RNG.integers(1, 5, entries) * (1j if dtype[0] == "c" else 1)).astype(dtype)
        x = mb.CSR((v, (i.astype("i4"), j) if where == "anywhere" else (i, j)), shape=(rows, columns))
        check_form(x)
        number, place = np.unique(i * columns + j, return_inverse=True)
        sums = np.zeros(number.size, v.dtype)
        (np.logical_or if dtype == "?" else np.add).at(sums, place, v)
        np.testing.assert_array_equal(x.indices, number % columns)
        counts = np.bincount(number // columns, minlength=rows)
        np.testing.assert_array_equal(np.diff(mb.to_numpy(x.indptr)), counts)
        np.testing.assert_array_equal(x.data, sums)
        with pytest.raises((IndexError, ValueError)):
            mb.CSR((v, (np.where(np.arange(entries) == 9, rows, i), j)), shape=(rows, columns))


def test_parts_that_are_not_in_order_are_put_in_order():
    x = mb.CSR((np.array([1.0, 2, 3, 4]), np.array([2, 0, 1, 1]), np.array([0, 2, 4])), shape=(2, 3))
    assert_same(x, np.array([[2.0, 0, 1], [0, 7, 0]]))
    check_form(x)


@KIND
def test_made_of_scipys_matrices_and_back(kind):
    s = scipy.sparse.random_array((6, 4), density=0.5, rng=2)
    for given in (s, s.tocsr(), s.tocsc(), s.tolil(), scipy.sparse.csr_matrix(s)):
        x = mb.CSR(given, device=kind.family)
        check(x, s.toarray(), kind)
        back = x.to_scipy()
        assert isinstance(back, scipy.sparse.csr_array) and (back != s.tocsr()).nnz == 0
    x.data[...] = 0.0
    assert s.nnz and s.toarray().any()


def test_made_of_other_structured_matrices():
    v, w = np.arange(1.0, 5), np.arange(5.0, 8)
    for y in (
        mb.Diagonal(v),
        mb.Tridiagonal(w, v, w),
        mb.Bidiagonal(v, w, "L"),
        mb.Identity(3),
        mb.Toeplitz(v),
    ):
        x = mb.CSR(y)
        assert name(x) == "CSR"
        assert_same(x, mb.to_numpy(y))
        check_form(x)
    assert mb.CSR(x) is x


BAD = [
    (lambda: mb.CSR([1.0, 2.0]), "made of a matrix; this array has shape"),
    (lambda: mb.CSR((1, 2, 3, 4)), "not of 4 things"),
    (lambda: mb.CSR(([1.0], [0], [0])), "`data` and `indices` are as long as"),
    (lambda: mb.CSR(([1.0], [0], [1, 1])), "starts with 0 and never falls"),
    (lambda: mb.CSR(([1.0, 2.0], [0, 0], [0, 2, 1, 2])), "starts with 0 and never falls"),
    (lambda: mb.CSR(([1.0], [3], [0, 1]), shape=(1, 2)), "`indices` holds 3, and there are only 0 to 1"),
    (lambda: mb.CSR(([1.0], [-1], [0, 1])), "holds -1"),
    (lambda: mb.CSR(([1.0], [0.5], [0, 1])), "`indices` holds integers, not float64"),
    (lambda: mb.CSR(([1.0], [0], [0, 1]), shape=(2, 2)), "one element more than there are rows"),
    (lambda: mb.CSR(([1.0], ([0], [9])), shape=(2, 2)), "`j` holds 9"),
    (lambda: mb.CSR(([1.0, 2.0], ([0], [1]))), "three vectors of one length"),
    (lambda: mb.CSR([[1.0]], shape=(2, 2)), r"has shape \(1, 1\), and shape=\(2, 2\)"),
    (lambda: mb.CSR([[1.0]], shape=(2,)), "of two dimensions"),
    (lambda: mb.CSR((mb.HostArray([1.0]), mb.RefArray([0]), mb.RefArray([0, 1]))), "different places"),
    (lambda: mb.CSR(np.eye(2)) @ mb.ones(3), "matmul: shapes"),
    (lambda: mb.CSR(np.eye(2)) @ mb.RefArray([1.0, 2.0]), "different places"),
    (lambda: mb.CSR(np.eye(2)) * mb.RefArray([1.0, 2.0]), "different places"),
    (lambda: mb.CSR(np.eye(2)) + mb.CSR(np.eye(3)), "could not be broadcast"),
    (lambda: la.solve(mb.CSR(np.eye(3)[:2]), mb.ones(2)), "takes square matrices"),
    (lambda: la.solve(mb.CSR(np.eye(3)), mb.ones(2)), "must be equal"),
    (lambda: la.det(mb.CSR(np.eye(3)[:2])), "takes square matrices"),
]


@pytest.mark.parametrize("bad, message", BAD)
def test_bad_input(bad, message):
    with pytest.raises((ValueError, TypeError), match=message):
        bad()


# Indexing


@KIND
@pytest.mark.parametrize("shape", [(6, 6), (4, 7), (1, 3)])
def test_indexing(kind, shape):
    x, n = csr(kind, *shape)
    m, k = shape
    with mb.allow_scalar():
        for i in range(-m, m):
            for j in range(-k, k):
                assert float(x[i, j]) == n[i, j]
    for index in [
        slice(None),
        slice(1, None),
        slice(None, None, -1),
        slice(None, None, 2),
        (slice(1, None), slice(1, None)),
        (slice(None), slice(None, None, -1)),
        (slice(None), slice(-1, 0, -2)),
        (slice(None, None, -2), slice(0, 2)),
        (..., slice(1, 2)),
        (slice(5, 2), slice(None)),
        [0, -1, 0],
        [],
        [i % 2 == 0 for i in range(m)],
        ([0, 0], slice(1, None)),
        (slice(None), [0, 1]),
        ...,
    ]:
        check(x[index], n[index], kind, kept="CSR")
    picked = kind.make(np.array([m - 1, 0]))
    check(x[picked], n[[m - 1, 0]], kind, kept="CSR")
    check(x[kind.make(np.arange(m) % 2 == 0)], n[np.arange(m) % 2 == 0], kind, kept="CSR")
    for index in [
        0,
        -1,
        (0, slice(1, None)),
        (slice(None), -1),
        ([0, -1], [1, 0]),
        (None, 0),
        (slice(None), None, 0),
        (0, ...),
        [[0, 0], [-1, 0]],
    ]:
        got = x[index]
        assert not isinstance(got, mb.types.Structured)
        check(got, n[index], kind)
    for bad in [m, -m - 1, (0, k), (0, 0, 0), [m], 1.5]:
        with pytest.raises(IndexError):
            x[bad]
    for offset in range(-m - 1, k + 2):
        if -m < offset < k:
            check(mb.band(x, offset), np.diagonal(n, offset), kind)
            check(mb.trace(x, offset), np.asarray(np.trace(n, offset)), kind)


def test_elements_are_gated_and_written():
    x = mb.CSR(mb.RefArray([[1.0, 0.0], [0.0, 2.0]]))
    for index in [(0, 0), (0, 1)]:
        with pytest.raises(mb.ScalarAccessError):
            float(x[index])
    with mb.allow_scalar():
        x[1, 1] = 7.0
        x[0, 1] = 0.0
        assert float(x[1, 1]) == 7.0
        with pytest.raises(ValueError, match=r"Entry \(0, 1\) of this CSR is not stored"):
            x[0, 1] = 3.0
    x *= 2
    check(x, np.diag([2.0, 14.0]), LEAVES["ref"], kept="CSR")
    x[...] = 0
    assert float(mb.sum(x)) == 0.0 and x.nnz == 2
    with pytest.raises(ValueError, match="Only a matrix of its pattern"):
        x[...] = 1.0
    with pytest.raises(ValueError, match="Only a matrix of its pattern"):
        x += mb.CSR(mb.RefArray([[0.0, 1.0], [0.0, 0.0]]))
    with pytest.raises(TypeError, match="entry by entry"):
        x[0] = 1.0
    with pytest.raises(TypeError, match="Cannot cast the result of dtype complex128"):
        x *= 1j


def test_what_was_said_stays():
    x = mb.CSR([[1.0, 0.0], [0.0, 2.0]])
    y, z = x * 2, mb.copy(x)
    x.data[...] = 9.0
    assert_same(y, np.diag([2.0, 4.0]))
    assert_same(z, np.diag([1.0, 2.0]))


# Elementwise


ONE = {
    "sin": (mb.sin, np.sin),
    "sqrt_abs": (lambda x: mb.sqrt(mb.abs(x)), lambda x: np.sqrt(np.abs(x))),
    "negative": (lambda x: -x,) * 2,
    "scaled": (lambda x: 2.5 * x / 4,) * 2,
    "square": (lambda x: x**2,) * 2,
    "compared": (lambda x: x > 0,) * 2,
    "not_equal": (lambda x: x != 0,) * 2,
    "clip": (lambda x: mb.clip(x, -1, 1), lambda x: np.clip(x, -1, 1)),
    "maximum": (lambda x: mb.maximum(x, 0), lambda x: np.maximum(x, 0)),
    "expm1": (mb.expm1, np.expm1),
    "plus_zero": (lambda x: x + 0,) * 2,
    "astype": (lambda x: x.astype(np.float32),) * 2,
}


@KIND
@pytest.mark.parametrize("what", ONE)
def test_functions_that_keep_zeros_run_over_the_entries(kind, what):
    x, n = csr(kind, 5, 7)
    f, g = ONE[what]
    with mb.count() as counted:
        got = f(x)
        mb.materialize(got)
    assert counted.launches == 1 and counted.library_calls == 0 and counted.transfers == 0
    assert got.indices is x.indices
    check(got, g(n), kind, kept="CSR")


TWO = {
    "add": (mb.add, np.add),
    "subtract": (mb.subtract, np.subtract),
    "multiply": (mb.multiply, np.multiply),
    "maximum": (mb.maximum, np.maximum),
    "less": (mb.less, np.less),
    "hypot": (mb.hypot, np.hypot),
    "mixed": (lambda x, y: mb.sin(x) * 2 - y * x,) * 1 + (lambda x, y: np.sin(x) * 2 - y * x,),
    "where": (lambda x, y: mb.where(x > 0, x, y), lambda x, y: np.where(x > 0, x, y)),
}


@KIND
@pytest.mark.parametrize("what", TWO)
@pytest.mark.parametrize("shape", [(6, 6), (3, 8), (5, 0), (1, 1)])
def test_two_matrices_of_different_patterns(kind, what, shape):
    (x, nx), (y, ny) = csr(kind, *shape), csr(kind, *shape, density=0.2)
    f, g = TWO[what]
    check(f(x, y), g(nx, ny), kind, kept="CSR")
    check(f(y, x), g(ny, nx), kind, kept="CSR")
    with mb.count() as counted:  # one pattern: no search
        mb.materialize(x + x * 2)
    assert counted.library_calls == 0 and counted.launches <= 1


@KIND
def test_three_matrices_of_different_patterns(kind):
    (x, nx), (y, ny), (z, nz) = (csr(kind, 7, 5, density=d) for d in (0.5, 0.2, 0.3))
    check(mb.where(x > 0, y, z), np.where(nx > 0, ny, nz), kind, kept="CSR")
    check(mb.maximum(x, mb.minimum(y, z)), np.maximum(nx, np.minimum(ny, nz)), kind, kept="CSR")
    check(mb.logical_and(x, y != z), np.logical_and(nx, ny != nz), kind, kept="CSR")
    with mb.settings.changed(dense_fallback="error"):
        check(mb.broadcast(lambda a, b, c: a * b + c, x, y, z), nx * ny + nz, kind, kept="CSR")
    empty = mb.CSR(kind.make(np.zeros((7, 5))))
    check(mb.maximum(empty, x), np.maximum(0, nx), kind, kept="CSR")
    check(mb.hypot(x, empty), np.abs(nx), kind, kept="CSR")


@KIND
def test_with_dense_and_other_structured_matrices(kind):
    x, n = csr(kind)
    b, v = RNG.normal(size=(6, 6)), RNG.normal(size=6)
    for got, expected in [
        (x * kind.make(b), n * b),
        (kind.make(b) * x, n * b),
        (x * kind.make(v), n * v),
        (x * kind.make(v)[:, None], n * v[:, None]),
        (x * kind.make(v[:1]), n * v[0]),
        (x * kind.make(b)[:1, :1], n * b[0, 0]),
        (x / 2 * kind.make(b).T, n / 2 * b.T),
        (x + mb.Diagonal(kind.make(v)), n + np.diag(v)),
        (mb.Identity(6, device=kind.family) * 2 - x, 2 * np.eye(6) - n),
        (
            x - mb.Tridiagonal(kind.make(v[1:]), kind.make(v), kind.make(v[1:])),
            n - np.diag(v) - np.diag(v[1:], 1) - np.diag(v[1:], -1),
        ),
        (x * mb.UpperTriangular(kind.make(b)), n * np.triu(b)),
        (x * mb.Fill((6, 6), 3.0, device=kind.family), n * 3),
        (x * mb.Toeplitz(kind.make(v)), n * scipy.linalg.toeplitz(v)),
    ]:
        check(got, expected, kind, kept="CSR")
    for got, expected in [
        (x + kind.make(b), n + b),
        (kind.make(b) + x, n + b),
        (x - kind.make(b), n - b),
        (kind.make(b) - x, b - n),
        (x + mb.UpperTriangular(kind.make(b)), n + np.triu(b)),
    ]:
        check(got, expected, kind, kept=kind.family.__name__)
    check(kind.make(b.astype("f4")) + x, b.astype("f4") + n, kind)


@pytest.mark.parametrize(
    "f", [mb.cos, lambda x: x + 1, lambda x: x == 0, lambda x: x / 0, lambda x: x * math.nan, lambda x: 1 / x]
)
def test_zeros_that_do_not_stay_zero_say_so(f):
    x, n = csr(LEAVES["host"])
    with np.errstate(all="ignore"):
        with pytest.warns(mb.DenseFallbackWarning, match=r"\(CSR\[HostArray\[float64, 1\].*288 B"):
            got = f(x)
            f(x)
        g = np.cos if f is mb.cos else f
        assert_same(got, g(n), rtol=1e-14, any_zero=True)
    with mb.settings.changed(dense_fallback="error"), pytest.raises(mb.DenseFallbackError, match="CSR"):
        f(x)


def test_functions_of_users_are_asked_at_zero():
    x, n = csr(LEAVES["host"])
    assert_same(
        mb.broadcast(lambda a: a * 3.0 if a > 0 else -a, x),
        np.where(n > 0, n * 3, -n),
        rtol=1e-15,
        any_zero=True,
    )


# Reductions


@KIND
@pytest.mark.parametrize("shape", [(6, 6), (3, 8), (4, 0), (1, 1)])
@pytest.mark.parametrize("dtype", ["f8", "i4", "u1", "c16", "?"])
def test_reductions(kind, shape, dtype):
    for density in (0.3, 1.0, 0.0):
        x, n = csr(kind, *shape, dtype=dtype, density=density)
        names = ["sum", "prod", "any", "all", "count_nonzero"]
        if dtype != "?":
            names += ["mean"]
            names += ["min", "max"] if dtype != "c16" and 0 not in shape else []
        for f in names:
            for axis in (None, 0, 1, -1, (0, 1)):
                if f == "mean" and 0 in shape:
                    continue
                check(getattr(mb, f)(x, axis=axis), np.asarray(getattr(np, f)(n, axis=axis)), kind)
            if f != "mean":
                check(getattr(mb, f)(x, axis=1, keepdims=True), getattr(np, f)(n, axis=1, keepdims=True), kind)
                check(getattr(mb, f)(x, keepdims=True), getattr(np, f)(n, keepdims=True), kind)
    if dtype != "c16":
        check(mb.sum(x, dtype="f4", axis=0), np.sum(n, dtype="f4", axis=0), kind)


@KIND
def test_norms(kind):
    x, n = csr(kind, 5, 7)
    for ord in (0, 1, 2, 3, math.inf, -math.inf):
        check(la.vector_norm(x, ord=ord), np.asarray(np.linalg.norm(n.ravel(), ord)), kind)
    for ord in ("fro", 1, -1, math.inf, -math.inf):
        check(la.matrix_norm(x, ord=ord), np.asarray(np.linalg.norm(n, ord)), kind)
    check(la.norm(x), np.asarray(np.linalg.norm(n)), kind)
    n[:, 2] = 0
    x = mb.CSR(kind.make(n))
    for size in (1.0, 1e-200, 1e200):
        check(la.vector_norm(x * size, axis=0), np.linalg.norm(n, axis=0) * size, kind)
        check(la.norm(x * size), np.asarray(np.linalg.norm(n) * size), kind)
    assert float(la.norm(x * 0)) == 0.0


# Products and solves


@KIND
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i8", "u1", "f2"])
def test_products(kind, dtype):
    x, n = csr(kind, 5, 7, dtype=dtype)
    b = dense(7, 3, dtype, 1.0)
    tolerance = 1e-2 if dtype == "f2" else 1e-12
    check(x @ kind.make(b), n @ b, kind, tolerance)
    check(x @ kind.make(b[:, 0]), n @ b[:, 0], kind, tolerance)
    check(x @ kind.make(b.T).T, n @ b, kind, tolerance)
    check(kind.make(b.T) @ x.T, b.T @ n.T, kind, tolerance)
    check(kind.make(b[:, 0]) @ x.T, b[:, 0] @ n.T, kind, tolerance)
    check(x @ kind.make(b[:, :0]), n @ b[:, :0], kind)
    stack = np.stack([b, b + b.dtype.type(1)])
    check(x @ kind.make(stack), n @ stack, kind, tolerance)
    check(
        kind.make(np.ascontiguousarray(stack.swapaxes(1, 2))) @ x.T, stack.swapaxes(1, 2) @ n.T, kind, tolerance
    )
    y, ny = csr(kind, 7, 4, dtype=dtype)
    check(x @ y, n @ ny, kind, tolerance, kept="CSR")
    check(x.T @ x, n.T @ n, kind, tolerance, kept="CSR")
    check(x @ kind.make(np.ones((7, 2))), n @ np.ones((7, 2)), kind, tolerance)


@KIND
def test_products_with_structured_matrices(kind):
    x, n = csr(kind)
    a, v = RNG.normal(size=(6, 6)), RNG.normal(size=6)
    for y, ny, kept in [
        (mb.Diagonal(kind.make(v)), np.diag(v), "CSR"),
        (mb.Identity(6, device=kind.family), np.eye(6), "CSR"),
        (
            mb.Tridiagonal(kind.make(v[1:]), kind.make(v), kind.make(v[1:])),
            np.diag(v) + np.diag(v[1:], 1) + np.diag(v[1:], -1),
            "CSR",
        ),
        (mb.UpperTriangular(kind.make(a)), np.triu(a), None),
        (mb.Symmetric(kind.make(a)), np.triu(a) + np.triu(a, 1).T, None),
        (mb.Ones((6, 6), device=kind.family), np.ones((6, 6)), None),
        (mb.Zeros((6, 6), device=kind.family), np.zeros((6, 6)), "Zeros"),
        (mb.Toeplitz(kind.make(v)), scipy.linalg.toeplitz(v), None),
        (mb.adjoint(kind.make(a + 1j)), (a + 1j).conj().T, None),
    ]:
        check(x @ y, n @ ny, kind, 1e-12, kept=kept)
        check(y @ x, ny @ n, kind, 1e-12, kept=kept)


@KIND
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "c8", "i8"])
def test_solving(kind, dtype):
    x, n = csr(kind, dtype=dtype)
    n = n + 9 * np.eye(6, dtype=dtype)
    x = x + 9 * mb.Identity(6, dtype=dtype, device=kind.family)
    check(x, n, kind, kept="CSR")
    b = dense(6, 3, dtype, 1.0)
    tolerance = 1e-4 if dtype in ("f4", "c8") else 1e-11
    for right in (b, b[:, 0], b[:, :0], np.stack([b, 2 * b])):
        check(la.solve(x, kind.make(right)), np.linalg.solve(n, right), kind, tolerance)
    check(la.solve(x, mb.CSR(kind.make(b))), np.linalg.solve(n, b), kind, tolerance)
    check(la.inv(x), np.linalg.inv(n), kind, tolerance)
    check(la.det(x), np.asarray(np.linalg.det(n)), kind, tolerance)
    for got, expected in zip(la.slogdet(x), np.linalg.slogdet(n), strict=True):
        check(got, np.asarray(expected), kind, tolerance)
    check(la.matrix_power(x, 3), np.linalg.matrix_power(n, 3), kind, tolerance, kept="CSR")
    check(la.matrix_power(x, 0), np.linalg.matrix_power(n, 0), kind, kept="CSR")
    check(la.matrix_power(x, -2), np.linalg.matrix_power(n, -2), kind, tolerance)


def test_determinants_of_permutations_have_their_sign():
    for order in ([1, 0, 2, 3], [1, 2, 0, 3], [3, 2, 1, 0], [1, 2, 3, 0]):
        n = np.eye(4)[order]
        assert float(la.det(mb.CSR(n))) == np.linalg.det(n)
        sign, logabsdet = la.slogdet(mb.CSR(n * 2.0))
        assert float(sign) == np.linalg.det(n) and float(logabsdet) == pytest.approx(4 * math.log(2))
    assert float(la.det(mb.CSR(np.zeros((0, 0))))) == 1.0


def test_singular_matrices_say_so():
    x = mb.CSR([[1.0, 1.0], [1.0, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(la.LinAlgError, match=r"is singular.*lstsq"):
            la.solve(x, mb.ones(2))
        with pytest.raises(la.LinAlgError, match="is singular"):
            la.inv(x)
        assert float(la.det(x)) == 0.0 and float(la.slogdet(x)[1]) == -math.inf


def test_a_large_matrix_is_never_made_dense():
    n = 20_000
    v = np.ones(n - 1)
    x = mb.CSR(mb.Tridiagonal(-v, np.full(n, 4.0), -v))
    b = RNG.normal(size=n)
    with mb.count() as counted:
        y = x @ mb.HostArray(b)
        z = la.solve(x, y)
        w = (mb.sin(x) + x.T @ x)[5:100]
        float(la.norm(x)), float(mb.max(x)), repr(x), mb.materialize(w)
    np.testing.assert_allclose(mb.to_numpy(z), b, atol=1e-10)
    assert counted.bytes_written < 1000 * n  # (8 n² it would be)


def test_a_huge_shape_is_no_trouble():
    x = mb.CSR(([1.0, 2.0], ([0, 2], [10**9, 3])), shape=(3, 2 * 10**9))
    assert float(mb.sum(x * x)) == 5.0 and x.indices.dtype == np.int32
    y = mb.CSR(([1.0], ([0], [3 * 10**9])), shape=(1, 4 * 10**9))
    z = mb.CSR(([5.0], ([0], [2 * 10**9])), shape=(1, 4 * 10**9))
    assert (y + z).nnz == 2 and float(mb.sum(y * z)) == 0.0 and y.indices.dtype == np.int64
    assert float((y + z)[0, 2 * 10**9]) == 5.0


# What people see


def test_what_people_see():
    x = mb.CSR(mb.RefArray([[0.0, 1.5], [-2.0, 0.0]]))
    assert repr(x) == (
        "CSR[RefArray[float64, 1], RefArray[int32, 1], RefArray[int32, 1]](\n"
        "[[  . ,  1.5],\n [-2. ,   . ]], place=ref:0)"
    )
    big = mb.CSR(mb.Identity(5000))
    assert repr(big).startswith("CSR[HostArray") and "shape=(5000, 5000), nnz=5000" in repr(big)
    assert "stored" in big._repr_html_() and "svg" in big._repr_html_()


def test_without_scipy_the_error_says_what_to_install(monkeypatch):
    x, n = csr(LEAVES["host"])
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    assert_same(mb.sin(x) * 2 + x, np.sin(n) * 2 + n, rtol=1e-14)
    assert_same(x[1:], n[1:])
    assert_same(mb.sum(x, axis=1), n.sum(axis=1), rtol=1e-14)
    calls = (
        lambda: x @ x,
        lambda: x @ mb.ones((6, 2)),
        lambda: la.solve(x, mb.ones(6)),
        lambda: x.T.data,
        x.to_scipy,
    )
    for f in calls:
        with pytest.raises(ImportError, match="pip install scipy"):
            f()


# Entries in any order, parts and transposes


@pytest.mark.parametrize("dtype", "?bhilBHILefdFD")
def test_entries_in_any_order_are_added_up_as_they_come(dtype):
    rng = np.random.default_rng(ord(dtype))
    for shape, n in [((0, 0), 0), ((3, 4), 0), ((1, 1), 5), ((7, 5), 60), ((2, 3000), 4000), ((3000, 2), 900)]:
        i, j = (rng.integers(0, max(m, 1), n) for m in shape)
        data = rng.integers(0, 2 if dtype == "?" else 9, n).astype(dtype)
        expected = np.zeros(shape, dtype)
        (np.logical_or if dtype == "?" else np.add).at(expected, (i, j), data)
        for kind in (np.int64, np.int32, np.uint8 if max(shape) < 256 else np.uint64):
            x = mb.CSR((data, (i.astype(kind), j.astype(kind))), shape=shape)
            assert_same(mb.HostArray(x), expected)
            assert x.indices.dtype == x.indptr.dtype == np.int32 and x.dtype == expected.dtype
            rows = np.repeat(np.arange(shape[0]), np.diff(mb.to_numpy(x.indptr)))
            places = rows * max(shape[1], 1) + mb.to_numpy(x.indices)
            assert (np.diff(places) > 0).all()
    with pytest.raises(ValueError, match="only 0 to 2"):
        mb.CSR((np.ones(1, dtype), ([3], [0])), shape=(3, 3))


@pytest.mark.parametrize("dtype", ["f8", "f4", "?", "i2", "c16"])
def test_rows_and_columns_are_taken(dtype):
    rng = np.random.default_rng(3)
    n = (rng.random((23, 17)) < 0.3) * rng.integers(1, 9, (23, 17)).astype(dtype)
    x = mb.CSR(mb.HostArray(n))
    rows = [slice(None), slice(4, 9), slice(None, None, -1), slice(20, 2, -3), slice(5, 5)]
    rows += [[3, 3, 0], n[:, 0] > 0]
    columns = [slice(None), slice(3, 11), slice(1, None, 4), slice(None, None, -1), slice(15, 2, -5)]
    columns += [slice(6, 6)]
    for r in rows:
        for c in columns:
            found = x[r, c]
            assert isinstance(found, mb.CSR)
            assert_same(mb.HostArray(found), n[r, c])
            places = np.diff(mb.to_numpy(found.indices)) if found.shape[0] == 1 else np.ones(1)
            assert (places > 0).all()
    taken = x[2:4]
    taken.data[...] = 0  # a copy
    assert_same(mb.HostArray(x), n)


def test_a_transpose_is_what_the_matrix_was_when_it_was_asked_for():
    rng = np.random.default_rng(4)
    for where in ("host", "ref"):
        kind = LEAVES[where]
        x, n = csr(kind)
        v, m = rng.normal(size=n.shape[0]), rng.normal(size=(n.shape[0], 3))
        w = rng.normal(size=n.shape[1])
        t = x.T
        assert t.shape == n.T.shape and type(t) is type(x)
        x.data[...] = x.data * 2
        assert_same(t @ kind.make(v), n.T @ v, rtol=1e-14)
        assert_same(t @ kind.make(m), n.T @ m, rtol=1e-14)
        assert_same(kind.make(w) @ t, w @ n.T, rtol=1e-14)
        assert t._whole() is not None, "products need no parts"
        assert_same(mb.HostArray(t), n.T)
        assert t._whole() is None
        assert_same(t @ kind.make(v), n.T @ v, rtol=1e-14)
        assert_same(mb.HostArray(x.T.T), 2 * n)
        y = x.T
        y.data[...] = 1.0
        assert_same(mb.HostArray(x), 2 * n)
        x = mb.CSR(kind.make(2 * n))
        assert_same(mb.HostArray(pickle.loads(pickle.dumps(x.T))), 2 * n.T)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        x.nothing


def test_a_transpose_of_memory_of_numpys_does_not_see_what_numpy_writes():
    data = np.array([1.0, 2.0])
    x = mb.CSR((mb.asarray(data), mb.HostArray([1, 0]), mb.HostArray([0, 1, 2])), shape=(2, 2))
    t = x.T
    data[...] = 5
    assert_same(t @ mb.ones(2), np.array([2.0, 1.0]))


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "i4"])
def test_products_with_vectors_have_scipys_bits(dtype):
    """In C, on one thread and on several; other dtypes and indices, vectors with gaps, empty rows."""
    rng = np.random.default_rng(4)
    for rows, columns, density in ((0, 3, 0.5), (5, 0, 0.5), (1, 1, 1.0), (300, 200, 0.02), (2000, 900, 0.2)):
        s = scipy.sparse.random_array((rows, columns), density=density, rng=rng, format="csr")
        s.data = np.round(s.data * 99) / (7 if dtype != "i4" else 1)
        s = s.astype(dtype)
        x = (rng.standard_normal(2 * columns) * 9).astype(dtype)
        wide = mb.CSR((s.data, s.indices.astype(np.int64), s.indptr.astype(np.int64)), shape=s.shape)
        with mb.settings.changed(thread_size=1000):
            for ours in (mb.CSR(s), wide):
                for v in (x[:columns], x[::2], x[::-2], x.real[:columns].astype("f8")):
                    got = mb.to_numpy(ours @ mb.asarray(v))
                    assert got.dtype == (s @ v).dtype and np.array_equal(got, s @ v)


def test_a_transpose_of_scipys_memory_is_a_value():
    s = scipy.sparse.random_array((40, 30), density=0.3, rng=3, format="csr")
    x = mb.CSR(s)
    v, turned = np.arange(40.0), x.T
    wanted = s.T @ v
    np.testing.assert_array_equal(mb.to_numpy(turned @ mb.HostArray(v)), wanted)
    later = x.T
    s.data[...] = 0
    np.testing.assert_array_equal(mb.to_numpy(later @ mb.HostArray(v)), wanted)
