"""Toeplitz and circulant matrices against dense NumPy: products, solves, spectra, what stays of its type."""

import math
import warnings

import numpy as np
import pytest
import scipy.linalg
from compare import assert_closed, assert_same
from kinds import LEAVES

import mirabelle as mb
from mirabelle.arraytypes.structured import fallback
from mirabelle.backends.host import toeplitz as host_toeplitz

KINDS = [LEAVES["host"], LEAVES["ref"]]
KIND = pytest.mark.parametrize("kind", KINDS, ids=repr)
RNG = np.random.default_rng(11)
SHAPES = [(5, 5), (3, 6), (7, 2), (1, 4), (4, 1), (1, 1)]
la = mb.linalg


@pytest.fixture(autouse=True)
def tell_again():
    fallback.forget()


@pytest.fixture(params=["direct", "transforms"])
def path(request, monkeypatch):
    """Small products are direct, large ones Fourier transforms: both, at a size that tests like."""
    if request.param == "transforms":
        monkeypatch.setattr(host_toeplitz, "_SMALL_FOR_VECTORS", 0)
        monkeypatch.setattr(host_toeplitz, "_SMALL_FOR_MATRICES", 0)
    return request.param


def values(shape, dtype):
    x = RNG.integers(-5, 6, shape) if np.dtype(dtype).kind in "iu" else RNG.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * RNG.normal(size=shape)
    return np.abs(x).astype(dtype) if np.dtype(dtype).kind == "u" else x.astype(dtype)


def toeplitz(kind, rows=5, columns=5, dtype=np.float64):
    c, r = values(rows, dtype), values(columns, dtype)
    return mb.Toeplitz(kind.make(c), kind.make(r)), scipy.linalg.toeplitz(c, r)


def circulant(kind, n=5, dtype=np.float64):
    c = values(n, dtype) + np.dtype(dtype).type(3) * (np.arange(n) == 0).astype(dtype)
    return mb.Circulant(kind.make(c)), scipy.linalg.circulant(c)


def wide(x):
    return x.astype(np.result_type(x, np.float64))


def check(got, expected, kind, rtol=1e-12):
    if isinstance(got, mb.types.DenseArray):  # (and not a view or a structured array)
        assert_closed(got, kind)
    assert got.place == kind.place
    scale = float(np.max(np.abs(expected), initial=1))
    if np.asarray(expected).dtype in (np.float32, np.complex64):
        rtol = max(rtol, 2e-5)
    assert_same(got, expected, rtol=rtol, atol=rtol * scale)


def name(x):
    return type(x).__name__.split("[")[0]


@KIND
@pytest.mark.parametrize("shape", SHAPES)
def test_construction_indexing_and_transposes(kind, shape):
    x, n = toeplitz(kind, *shape)
    check(mb.dense(x), n, kind)
    check(x.T, n.T, kind)
    assert name(x.T) == name(x.T.T) == "Toeplitz"
    check(mb.adjoint(x), n.conj().T, kind)
    for index in [
        (slice(1, None), slice(None, -1)), (slice(None, None, 2), slice(1, None, 2)),
        (slice(None, None, -1), slice(None, None, -1)), (slice(-2, None), slice(0, 1)), slice(0, 2),
        (slice(None), slice(None)),
    ]:  # fmt: skip
        got = x[index]
        check(got, n[index], kind)
        assert name(got) == "Toeplitz" or 0 in got.shape, index
    for index in [
        0,
        (..., -1),
        (slice(None), 0),
        (slice(None, None, -1), slice(None)),
        [0, -1],
        (0, slice(1, None)),
    ]:
        check(x[index], n[index], kind)
    with mb.allow_scalar():
        assert float(x[-1, 0]) == n[-1, 0] and float(x[0, -1]) == n[0, -1]
    for k in range(-8, 8):
        check(mb.band(x, k), np.diagonal(n, k), kind)
    check(mb.trace(x), np.asarray(np.trace(n)), kind)
    assert float(mb.trace(x)) == pytest.approx(np.trace(n))


@KIND
@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_circulant_indexing_and_transposes(kind, n):
    x, dense = circulant(kind, n)
    check(mb.dense(x), dense, kind)
    check(x.T, dense.T, kind)
    assert name(x.T) == "Circulant"
    check(x[1:, :-1], dense[1:, :-1], kind)
    check(x[::-1], dense[::-1], kind)
    check(x[[0, -1], [-1, 0]], dense[[0, -1], [-1, 0]], kind)
    assert x[:, :] is x
    for k in range(-n, n + 1):
        check(mb.band(x, k), np.diagonal(dense, k), kind)
    with mb.allow_scalar():
        for i in range(-n, n):
            assert float(x[i, 0]) == dense[i, 0] and float(x[0, i]) == dense[0, i]
    with pytest.raises(IndexError, match="out of bounds"):
        x[n, 0]


def test_without_a_row_the_matrix_is_hermitian():
    c = values(4, np.complex128)
    assert_same(mb.Toeplitz(c), scipy.linalg.toeplitz(c))
    assert_same(mb.Toeplitz([1, 2, 3]), scipy.linalg.toeplitz([1, 2, 3]))
    assert mb.Toeplitz([1, 2], [9.5, 3]).dtype == np.float64


@KIND
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "c8", "i8", "i4", "u1"])
@pytest.mark.parametrize("shape", SHAPES)
def test_products(kind, shape, dtype, path):
    x, n = toeplitz(kind, *shape, dtype)
    for tail in [(), (3,), (0,)]:
        b = values((shape[1], *tail), dtype)
        check(x @ kind.make(b), n @ b, kind)
    b = values((2, shape[0]), dtype)
    check(kind.make(b[0]) @ x, b[0] @ n, kind)
    check(kind.make(b) @ x, b @ n, kind)
    check(x.T @ kind.make(b.T), n.T @ b.T, kind)
    b = values(shape[1], "f8")
    check(x @ kind.make(b), n @ b, kind, rtol=1e-6 if dtype in ("f4", "c8") else 1e-12)


@KIND
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i8"])
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_products_of_circulant_matrices(kind, n, dtype, path):
    (x, nx), (y, ny) = circulant(kind, n, dtype), circulant(kind, n, dtype)
    b = values((n, 3), dtype)
    check(x @ kind.make(b), nx @ b, kind)
    check(x @ kind.make(b[:, 0]), nx @ b[:, 0], kind)
    check(kind.make(b.T) @ x, b.T @ nx, kind)
    check(kind.make(b[:, 0]) @ x, b[:, 0] @ nx, kind)
    for got, expected in [(x @ y, nx @ ny), (x.T @ y, nx.T @ ny), (x + y, nx + ny), (x * 2 - y, nx * 2 - ny)]:
        assert name(got) == "Circulant"
        check(got, expected, kind)
    t, nt = toeplitz(kind, n, n, dtype)
    check(t @ x, nt @ nx, kind)
    check(x @ t, nx @ nt, kind)


@KIND
def test_stacks_and_other_structured_matrices(kind, path):
    x, n = toeplitz(kind)
    stack = values((2, 5, 3), "f8")
    check(x @ kind.make(stack), n @ stack, kind)
    check(kind.make(stack.swapaxes(1, 2)) @ x, stack.swapaxes(1, 2) @ n, kind)
    c, nc = circulant(kind)
    v, a = values(5, "f8"), values((5, 5), "f8")
    others = {
        "diagonal": (mb.Diagonal(kind.make(v)), np.diag(v)),
        "tridiagonal": (mb.Tridiagonal(*(kind.make(w) for w in (v[1:], v, v[1:]))),
                        np.diag(v[1:], -1) + np.diag(v) + np.diag(v[1:], 1)),
        "upper": (mb.UpperTriangular(kind.make(a)), np.triu(a)),
        "symmetric": (mb.Symmetric(kind.make(a)), np.triu(a) + np.triu(a, 1).T),
        "ones": (mb.Ones((5, 5), device=kind.family), np.ones((5, 5))),
        "identity": (mb.Identity(5, device=kind.family), np.eye(5)),
    }  # fmt: skip
    for y, ny in others.values():
        for z, nz in ((x, n), (c, nc)):
            check(z @ y, nz @ ny, kind)
            check(y @ z, ny @ nz, kind)
            check(z + y, nz + ny, kind)
            check(y - z, ny - nz, kind)
            check(z * y, nz * ny, kind)


def test_large_products_are_transforms_and_small_or_whole_numbers_exact():
    n = 1200
    c, r = RNG.normal(size=n), RNG.normal(size=n)
    x, v = mb.Toeplitz(c, r), RNG.normal(size=n)
    with mb.count() as counted:
        got = x @ mb.HostArray(v)
        mb.materialize(got)
    assert counted.bytes_written < 100 * n  # nothing of n² is made
    np.testing.assert_allclose(mb.to_numpy(got), scipy.linalg.toeplitz(c, r) @ v, rtol=1e-9, atol=1e-11)
    k = RNG.integers(-(10**8), 10**8, n)
    exact = scipy.linalg.toeplitz(k) @ k
    assert_same(mb.Toeplitz(k) @ mb.HostArray(k), exact)
    assert_same(mb.Circulant(k) @ mb.HostArray(k), scipy.linalg.circulant(k) @ k)


@pytest.mark.parametrize("bad", [math.inf, math.nan, 1e300])
def test_one_infinity_does_not_spread(bad, path):
    c = np.array([1.0, 2.0, bad, 4.0])
    v = np.array([1.0, 0.0, 0.0, 1e10])
    with np.errstate(all="ignore"):
        for x, n in (
            (mb.Toeplitz(c, c), scipy.linalg.toeplitz(c, c)),
            (mb.Circulant(c), scipy.linalg.circulant(c)),
        ):
            got = mb.to_numpy(x @ mb.HostArray(v))
            assert np.array_equal(np.isfinite(got), np.isfinite(n @ v))
            assert np.allclose(got, n @ v, rtol=1e-12, equal_nan=True)


# What stays of its type


@KIND
def test_elementwise_operations_run_over_the_diagonals(kind):
    (x, n), (y, ny) = toeplitz(kind, 4, 6), toeplitz(kind, 4, 6)
    with np.errstate(all="ignore"):
        for got, expected in [
            (mb.exp(x), np.exp(n)), (x + 1, n + 1), (x * y - 2, n * ny - 2),
            (mb.where(x > 0, x, y), np.where(n > 0, n, ny)),
            (x / 2, n / 2), (-x, -n), (x**2, n**2), (x.astype("f4"), n.astype("f4")), (mb.conj(x), n),
            (x + mb.Fill((4, 6), 3.0, device=kind.family), n + 3),
        ]:  # fmt: skip
            assert name(got) == "Toeplitz"
            check(got, expected, kind)
    b = values((4, 6), "f8")
    check(x + kind.make(b), n + b, kind)  # a dense result: fused, and no fallback
    check(x * kind.make(b[0]), n * b[0], kind)


@KIND
def test_sums_of_different_types(kind):
    (t, nt), (c, nc) = toeplitz(kind), circulant(kind)
    eye = mb.Identity(5, device=kind.family)
    for got, expected, kept in [
        (t + c, nt + nc, "Toeplitz"), (c + t, nc + nt, "Toeplitz"), (c * t, nc * nt, "Toeplitz"),
        (t + 2 * eye, nt + 2 * np.eye(5), "Toeplitz"), (eye - t, np.eye(5) - nt, "Toeplitz"),
        (c - 3 * eye, nc - 3 * np.eye(5), "Circulant"), (eye + c, np.eye(5) + nc, "Circulant"),
        (c / 2 + 1, nc / 2 + 1, "Circulant"), (mb.maximum(c, c.T), np.maximum(nc, nc.T), "Circulant"),
    ]:  # fmt: skip
        assert name(got) == kept
        check(got, expected, kind)


@KIND
@pytest.mark.parametrize(
    "make",
    [
        lambda k: toeplitz(k, 4, 6),
        lambda k: toeplitz(k, 6, 1),
        lambda k: toeplitz(k, 3, 3, "i4"),
        lambda k: circulant(k, 5),
        lambda k: circulant(k, 4, "i4"),
    ],
)
def test_reductions(kind, make):
    x, n = make(kind)
    for f in ("sum", "min", "max", "mean", "prod"):
        for axis in (None, 0, 1, (0, 1)):
            check(getattr(mb, f)(x, axis=axis), np.asarray(getattr(np, f)(n, axis=axis)), kind)
        check(getattr(mb, f)(x, keepdims=True), getattr(np, f)(n, keepdims=True), kind)
    check(mb.sum(x, dtype=np.float32), np.sum(n, dtype=np.float32), kind)
    check(mb.any(x > 0), np.asarray((n > 0).any()), kind)
    check(mb.all(x > -99), np.asarray((n > -99).all()), kind)
    for ord in (0, 1, 2, 3, math.inf, -math.inf):
        check(la.vector_norm(x, ord=ord), np.asarray(np.linalg.norm(n.astype("f8").ravel(), ord)), kind)


def test_totals_make_nothing_of_the_size_of_the_matrix():
    n = 3000
    x, c = mb.Toeplitz(RNG.normal(size=n)), mb.Circulant(RNG.normal(size=n))
    with mb.count() as counted:
        for y in (x, c):
            (
                float(mb.sum(y)),
                float(mb.max(y)),
                float(la.norm(y)),
                float(mb.trace(y)),
                float(la.vector_norm(y, ord=1)),
            )
        float(la.matrix_norm(c, ord=1)), float(la.matrix_norm(c, ord=2)), float(la.det(c / 3))
        mb.materialize(c @ c + 2 * c.T)
    assert counted.bytes_written < 400 * n


# Linear algebra


@KIND
@pytest.mark.parametrize("n", [1, 2, 5, 40])
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i8"])
def test_toeplitz_systems(kind, n, dtype):
    x, dense = toeplitz(kind, n, n, dtype)
    eye = mb.Identity(n, device=kind.family, dtype=x.dtype)
    x, dense = x + 30 * eye, dense + 30 * np.eye(n, dtype=dtype)
    b = values((n, 3), dtype)
    tolerance = 2e-4 if dtype == "f4" else 1e-10
    check(la.solve(x, kind.make(b)), np.linalg.solve(dense, b), kind, rtol=tolerance)
    check(la.solve(x, kind.make(b[:, 0])), np.linalg.solve(dense, b[:, 0]), kind, rtol=tolerance)
    check(la.inv(x), np.linalg.inv(dense), kind, rtol=tolerance)


def test_systems_that_the_recursion_does_not_solve():
    # The first leading block is zero, or nearly: the matrix as a whole is well conditioned.
    for first in (0.0, 1e-13):
        c = np.r_[first, RNG.normal(size=49)]
        r = np.r_[first, RNG.normal(size=49)]
        b = RNG.normal(size=50)
        x = mb.to_numpy(la.solve(mb.Toeplitz(c, r), mb.HostArray(b)))
        np.testing.assert_allclose(scipy.linalg.toeplitz(c, r) @ x, b, atol=1e-9)
    for n in (4, 50):
        with pytest.raises(la.LinAlgError, match=r"is singular.*lstsq"):
            la.solve(mb.Toeplitz(np.zeros(n)), mb.ones(n))


@KIND
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i8"])
@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_circulant_linear_algebra(kind, n, dtype):
    x, dense = circulant(kind, n, dtype)
    eye = mb.Identity(n, device=kind.family, dtype=x.dtype)
    x, dense = x + 40 * eye, dense + 40 * np.eye(n, dtype=dtype)
    rtol = 1e-4 if dtype == "f4" else 1e-10
    b = values((n, 2), dtype)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "logm result may be inaccurate")  # SciPy's, of what is expected
        check(la.solve(x, kind.make(b)), np.linalg.solve(dense, b), kind, rtol)
        check(la.solve(x, kind.make(b[:, 0])), np.linalg.solve(dense, b[:, 0]), kind, rtol)
        for got, expected in [
            (la.inv(x), np.linalg.inv(dense)), (la.pinv(x), np.linalg.pinv(dense)),
            (la.matrix_power(x, 3), np.linalg.matrix_power(dense, 3)),
            (la.matrix_power(x, 0), np.linalg.matrix_power(dense, 0)),
            (la.matrix_power(x, 1), dense),
            (la.matrix_power(x, -2), np.linalg.matrix_power(dense, -2)),
            (la.expm(x / 40), scipy.linalg.expm(dense / np.asarray(40, dense.dtype))),
            (la.logm(x), scipy.linalg.logm(wide(dense))), (la.sqrtm(x), scipy.linalg.sqrtm(wide(dense))),
            (la.solve(x, x @ x), dense.astype(np.result_type(dense, np.float32 if dtype == "f4" else "f8"))),
        ]:  # fmt: skip
            assert name(got) == "Circulant"
            expected = expected.astype(got.dtype) if dtype in ("f4", "i8") else expected
            check(got, expected, kind, rtol)
        check(la.det(x), np.asarray(np.linalg.det(dense)), kind, rtol)
        for got, expected in zip(la.slogdet(x), np.linalg.slogdet(dense), strict=True):
            check(got, np.asarray(expected), kind, rtol)
        check(la.svdvals(x), np.linalg.svd(dense, compute_uv=False), kind, rtol)
        for ord in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
            got, expected = la.matrix_norm(x, ord=ord), np.linalg.norm(dense, ord)
            check(got, np.asarray(expected).astype(got.dtype), kind, rtol)
            assert la.matrix_norm(x, ord=ord, keepdims=True).shape == (1, 1)
    w, v = (mb.to_numpy(part) for part in la.eig(x))
    np.testing.assert_allclose(dense @ v, v * w, atol=rtol * 100)
    np.testing.assert_allclose(v.conj().T @ v, np.eye(n), atol=rtol)
    np.testing.assert_allclose(mb.to_numpy(la.eigvals(x)), w)


@KIND
def test_eigenvalues_of_symmetric_circulant_matrices(kind):
    for c in ([4.0, 1.0, 0.5, 1.0], [4.0, 1 + 1j, 0.5, 1 - 1j], [4.0, 1.0, 3.0]):
        x, n = mb.Circulant(kind.make(np.array(c))), scipy.linalg.circulant(c)
        check(la.eigvalsh(x), np.linalg.eigvalsh(n), kind)
        check(la.eigvalsh(x, UPLO="U"), np.linalg.eigvalsh(n, "U"), kind)


def test_logarithms_of_matrices_with_negative_eigenvalues_are_complex():
    for c in ([-4.0, 1.0, 0.0, 1.0], [-4.0, 1.0, 0.0], [1.0, 3.0]):
        x, n = mb.Circulant(c), scipy.linalg.circulant(c)
        assert la.sqrtm(x).dtype == la.logm(x).dtype == np.complex128
        root = mb.to_numpy(la.sqrtm(x))
        np.testing.assert_allclose(root @ root, n, atol=1e-12)
        np.testing.assert_allclose(scipy.linalg.expm(mb.to_numpy(la.logm(x))), n, atol=1e-12)


@pytest.mark.parametrize("c", [[1.0, 1.0], [1.0, -1.0, 0.0], [0.0, 0.0], [1.0, 2.0, 1.0, 0.0]])
def test_singular_circulant_matrices_say_so(c):
    x = mb.Circulant(c)
    with pytest.raises(la.LinAlgError, match=r"is singular.*lstsq"):
        la.solve(x, mb.ones(len(c)))
    with pytest.raises(la.LinAlgError, match="is singular"):
        la.inv(x)
    assert abs(float(la.det(x))) < 1e-12
    n = scipy.linalg.circulant(c)
    np.testing.assert_allclose(mb.to_numpy(la.pinv(x)), np.linalg.pinv(n), atol=1e-12)


def test_what_has_no_rule_says_so_once():
    x = mb.Toeplitz([3.0, 1.0, 2.0])
    n = scipy.linalg.toeplitz([3.0, 1.0, 2.0])
    with pytest.warns(mb.DenseFallbackWarning, match=r"mb.linalg.det\(Toeplitz\[.*72 B") as caught:
        assert_same(la.det(x), np.asarray(np.linalg.det(n)), rtol=1e-14)
        la.det(x)
    assert len(caught) == 1
    with mb.settings.changed(dense_fallback="error"):
        with pytest.raises(mb.DenseFallbackError, match=r"mb.linalg.svd\(Toeplitz"):
            la.svd(x)
        mb.exp(x), x @ x, x + n, la.solve(x, n)


# Bad input


BAD = [
    (lambda: mb.Toeplitz([[1.0]]), "this column has shape"),
    (lambda: mb.Toeplitz([1.0], [[1.0]]), r"this row has shape \(1, 1\).*A\[0\]"),
    (lambda: mb.Circulant([[1.0]]), r"its first column.*A\[:, 0\]"),
    (lambda: mb.Circulant(), "column"),
    (lambda: mb.Toeplitz(mb.HostArray([1.0]), mb.RefArray([1.0])), "different places"),
    (lambda: mb.Toeplitz([1.0, 2.0]) @ mb.ones(3), "matmul: shapes"),
    (lambda: mb.Toeplitz([1.0, 2.0]) @ mb.RefArray([1.0, 2.0]), "different places"),
    (lambda: mb.Toeplitz([1.0, 2.0]) + mb.ones((3, 3)), "could not be broadcast"),
    (lambda: la.solve(mb.Toeplitz([1.0, 2.0], [1.0]), mb.ones(2)), "takes square matrices"),
    (lambda: la.solve(mb.Circulant([1.0, 2.0]), mb.ones(3)), "must be equal"),
    (lambda: la.eigvalsh(mb.Circulant([1.0, 2.0]), UPLO="X"), 'UPLO is "L" or "U"'),
    (lambda: la.matrix_norm(mb.Circulant([1.0, 2.0]), ord=7), "ord is"),
]  # fmt: skip


@pytest.mark.parametrize("bad, message", BAD)
def test_bad_input(bad, message):
    with pytest.raises((ValueError, TypeError), match=message):
        bad()


def test_entries_are_not_written_one_by_one():
    x = mb.Toeplitz([1.0, 2.0])
    with pytest.raises(TypeError, match="depend on each other"):
        x[0, 0] = 5.0
    x += mb.Toeplitz([1.0, 1.0])
    x *= 2
    assert_same(x, np.array([[4.0, 6.0], [6.0, 4.0]]))


def test_empty_ones():
    for x, shape in (
        (mb.Toeplitz([], []), (0, 0)),
        (mb.Toeplitz([1.0, 2.0], []), (2, 0)),
        (mb.Circulant([]), (0, 0)),
    ):
        assert x.shape == shape and mb.to_numpy(x).shape == shape
        assert (x @ mb.ones((shape[1], 2))).shape == (shape[0], 2)
        assert x.T.shape == shape[::-1] and float(mb.sum(x)) == 0.0
    assert la.inv(mb.Circulant([])).shape == (0, 0) and float(la.det(mb.Circulant([]))) == 1.0
    assert mb.Toeplitz[mb.RefArray]([1.0, 2.0]).place == mb.RefArray.home
