"""Symmetric, Hermitian and triangular matrices: of large ones the half that does not count is not read."""

import numpy as np
import pytest
from compare import assert_same

import mirabelle as mb
from mirabelle.arraytypes.structured import half_rules

N = 8
RNG = np.random.default_rng(11)
REAL = RNG.normal(size=(N, N))
COMPLEX = REAL + 1j * RNG.normal(size=(N, N))


@pytest.fixture(autouse=True)
def large(monkeypatch):
    monkeypatch.setattr(half_rules, "LARGE", 2)


def mirrored(a, uplo, hermitian):
    half = np.triu(a, 1) if uplo == "U" else np.tril(a, -1)
    whole = half + (half.conj().T if hermitian else half.T)
    return whole + np.diag(np.diag(a).real if hermitian else np.diag(a))


def matrices(family, dtype):
    """(one of ours, what it is in NumPy): the other half holds what must not be seen."""
    a = (COMPLEX if np.dtype(dtype).kind == "c" else REAL * (9 if np.dtype(dtype).kind == "i" else 1)).astype(
        dtype
    )
    for uplo in "UL":
        hidden = np.tril(np.ones((N, N), bool), -1) if uplo == "U" else np.triu(np.ones((N, N), bool), 1)
        dirty = a.copy()
        dirty[hidden] = np.nan if a.dtype.kind in "fc" else 99
        for make, hermitian in ((mb.Symmetric, False), (mb.Hermitian, True)):
            yield make(family(dirty), uplo), mirrored(a, uplo, hermitian and a.dtype.kind == "c")
        triangle = np.triu(a) if uplo == "U" else np.tril(a)
        yield (mb.UpperTriangular if uplo == "U" else mb.LowerTriangular)(family(dirty)), triangle
        unit = triangle - np.diag(np.diag(triangle)) + np.eye(N, dtype=a.dtype)
        yield (mb.UnitUpperTriangular if uplo == "U" else mb.UnitLowerTriangular)(family(dirty)), unit


@pytest.mark.parametrize("family", [mb.HostArray, mb.RefArray, mb.CuArray])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int32"])
def test_reductions_and_norms(dtype, family):
    tolerance = 1e-4 if dtype == "float32" else 1e-12
    for x, n in matrices(family, dtype):
        for axis in (None, 0, 1, (0, 1), ()):
            for keepdims in (False, True):
                for name in ("sum", "max", "min", "any", "prod"):
                    if n.dtype.kind == "c" and name in ("max", "min"):
                        continue
                    found = getattr(mb, name)(x, axis=axis, keepdims=keepdims)
                    expected = np.asarray(getattr(np, name)(n, axis=axis, keepdims=keepdims))
                    scale = float(np.max(np.abs(expected)))
                    assert_same(found, expected, rtol=tolerance, atol=tolerance * max(scale, 1.0))
                    assert mb.place(found) == family.home
        for ord in (None, "fro", 1, np.inf):
            if n.dtype.kind == "i":
                continue
            expected = np.asarray(np.linalg.norm(n, ord=ord))
            assert_same(mb.linalg.norm(x, ord=ord), expected, rtol=tolerance)
        assert np.isclose(float(mb.norm(x)), np.linalg.norm(n), rtol=tolerance)
        kept = mb.linalg.norm(x, keepdims=True)
        assert kept.shape == (1, 1)


def test_norms_of_what_squares_would_throw_out_of_range():
    for scale in (1e200, 1e-200):
        x = mb.Symmetric(mb.HostArray(REAL * scale))
        assert np.isclose(float(mb.linalg.norm(x)) / scale, np.linalg.norm(mirrored(REAL, "U", False)))


@pytest.mark.parametrize("dtype", ["float64", "complex128", "float32"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("definite", [True, False])
def test_solving_and_determinants(definite, order, dtype):
    """Positive definite ones by Cholesky's factors; others too, also if their diagonals are positive."""
    a = (COMPLEX if dtype == "complex128" else REAL).astype(dtype)
    shift = 4 * N if definite else 0.0
    tolerance = 2e-3 if dtype == "float32" else 1e-9
    for uplo in "UL":
        for make, hermitian in ((mb.Symmetric, False), (mb.Hermitian, True)):
            for diagonal in (1.0, -1.0):
                b = np.array(a + np.diag(shift + diagonal * np.abs(np.diag(a)) - np.diag(a)), order=order)
                whole = mirrored(b, uplo, hermitian and dtype == "complex128")
                b[np.tril(np.ones((N, N), bool), -1) if uplo == "U" else np.triu(np.ones((N, N), bool), 1)] = (
                    np.nan
                )
                x = make(mb.HostArray(b), uplo)
                for right in (a[0], a[:, :3]):
                    found = mb.linalg.solve(x, mb.HostArray(right))
                    assert np.allclose(
                        mb.to_numpy(found), np.linalg.solve(whole, right), rtol=tolerance, atol=tolerance
                    )
                sign, size = mb.linalg.slogdet(x)
                expected = np.linalg.slogdet(whole)
                assert sign.dtype == expected.sign.dtype and size.dtype == expected.logabsdet.dtype
                assert np.allclose(complex(sign), expected.sign, atol=1e-4)
                assert np.isclose(float(size), expected.logabsdet, rtol=1e-4)
    for right in (a[0], a[:, :3]):
        for x, n in matrices(mb.HostArray, dtype):
            r = mb.HostArray(right)
            assert np.allclose(mb.to_numpy(x @ r), n @ right, rtol=tolerance, atol=tolerance)
            assert np.allclose(mb.to_numpy(r.T @ x), right.T @ n, rtol=tolerance, atol=tolerance)


def test_what_is_singular_says_so():
    for a in (np.zeros((3, 3)), np.ones((3, 3))):
        with pytest.raises(mb.linalg.LinAlgError, match="singular"):
            mb.linalg.solve(mb.Symmetric(mb.HostArray(a)), mb.HostArray([1.0, 2.0, 3.0]))
        sign, size = mb.linalg.slogdet(mb.Symmetric(mb.HostArray(a)))
        assert float(sign) == 0 and float(size) == -np.inf
