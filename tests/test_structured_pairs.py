"""Every pair of structured types under every kind of operation, for several dtypes and the smallest sizes.

A sweep and no list of rules: whatever way an operation takes, it must come to what NumPy says, in
value, dtype, shape and place.
"""

import operator

import numpy as np
import pytest
import scipy.linalg
from compare import assert_same

import mirabelle as mb

PLACED = [(mb.HostArray, d, 3) for d in ("f8", "c16", "i4", "?")] + [
    (mb.HostArray, "f8", 1),
    (mb.HostArray, "f8", 0),
    (mb.RefArray, "f8", 3),
]
SWEEP = pytest.mark.parametrize("family, dtype, n", PLACED, ids=lambda p: getattr(p, "__name__", str(p)))


def values(rng, shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind in "biu":
        return rng.integers(0, 2 if dtype.kind == "b" else 5, shape).astype(dtype)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype.kind == "c" else x).astype(dtype)


def banded(n, parts, dtype):
    out = np.zeros((n, n), dtype)
    for k, p in parts.items():
        if p.size:
            np.fill_diagonal(out[max(-k, 0) :, max(k, 0) :], p)
    return out


def unit(t):
    t = t.copy()
    np.fill_diagonal(t, 1)
    return t


def mirrored(a, conjugate):
    low = np.triu(a, 1).T.conj() if conjugate else np.triu(a, 1).T
    out = np.triu(a, 1) | low if a.dtype.kind == "b" else np.triu(a, 1) + low.astype(a.dtype)
    np.fill_diagonal(out, np.diag(a).real if conjugate else np.diag(a))
    return out


def everything(at, dtype, n):
    """name → (one of that type, what it is in NumPy)."""
    rng = np.random.default_rng(n)
    v, a = values(rng, n, dtype), values(rng, (n, n), dtype)
    u, w = (values(rng, max(n - 1, 0), dtype) for _ in range(2))
    three = np.dtype(dtype).type(3)
    sparse = np.where(rng.uniform(size=(n, n)) < 0.4, a, np.dtype(dtype).type(0))
    empty = np.zeros((0, 0), dtype)
    found = {
        "diagonal": (mb.Diagonal(at(v)), banded(n, {0: v}, dtype)),
        "upper": (mb.UpperTriangular(at(a)), np.triu(a)),
        "lower": (mb.LowerTriangular(at(a)), np.tril(a)),
        "unit_upper": (mb.UnitUpperTriangular(at(a)), unit(np.triu(a))),
        "unit_lower": (mb.UnitLowerTriangular(at(a)), unit(np.tril(a))),
        "symmetric": (mb.Symmetric(at(a)), mirrored(a, False)),
        "symmetric_l": (mb.Symmetric(at(a), "L"), mirrored(a.T, False)),
        "hermitian": (mb.Hermitian(at(a)), mirrored(a, np.dtype(dtype).kind == "c")),
        "adjoint": (mb.adjoint(at(a)), a.conj().T.astype(dtype)),
        "conj": (mb.types.Conj(at(a)), a.conj().astype(dtype)),
        "identity": (mb.Identity(n, dtype=dtype, device=at), np.eye(n, dtype=dtype)),
        "fill": (mb.Fill((n, n), three, device=at), np.full((n, n), three)),
        "zeros": (mb.Zeros((n, n), dtype=dtype, device=at), np.zeros((n, n), dtype)),
        "ones": (mb.Ones((n, n), dtype=dtype, device=at), np.ones((n, n), dtype)),
        "toeplitz": (mb.Toeplitz(at(v), at(a[0] if n else v)), scipy.linalg.toeplitz(v, a[0]) if n else empty),
        "circulant": (mb.Circulant(at(v)), scipy.linalg.circulant(v) if n else empty),
        "csr": (mb.CSR(at(sparse)), sparse),
        "dense": (at(a), a),
    }
    if n:
        found["upper_bidiagonal"] = mb.Bidiagonal(at(v), at(u)), banded(n, {0: v, 1: u}, dtype)
        found["lower_bidiagonal"] = mb.Bidiagonal(at(v), at(u), "L"), banded(n, {0: v, -1: u}, dtype)
        found["tridiagonal"] = mb.Tridiagonal(at(w), at(v), at(u)), banded(n, {-1: w, 0: v, 1: u}, dtype)
    return found


BINARY = {
    "add": (operator.add,) * 2,
    "subtract": (operator.sub,) * 2,
    "multiply": (operator.mul,) * 2,
    "divide": (operator.truediv,) * 2,
    "matmul": (operator.matmul,) * 2,
    "equal": (operator.eq,) * 2,
    "less": (operator.lt,) * 2,
    "maximum": (mb.maximum, np.maximum),
    "logical_and": (mb.logical_and, np.logical_and),
    "where": (lambda x, y: mb.where(x != 0, x, y), lambda x, y: np.where(x != 0, x, y)),
}
UNARY = {
    "negative": (operator.neg,) * 2,
    "abs": (abs,) * 2,
    "sin": (mb.sin, np.sin),
    "cos": (mb.cos, np.cos),
    "square": (lambda x: x**2,) * 2,
    "scaled": (lambda x: x * 3,) * 2,
    "shifted": (lambda x: x + 1,) * 2,
    "transposed": (lambda x: x.T,) * 2,
    "real": (mb.real, np.real),
    "imag": (mb.imag, np.imag),
    "to_complex": (lambda x: x.astype("c16"),) * 2,
    "to_bool": (lambda x: x.astype(bool),) * 2,
    "reshape": (lambda x: x.reshape(-1),) * 2,
    "tril": (mb.tril, np.tril),
    "flip": (mb.flip, np.flip),
    "new_axis": (lambda x: x[None],) * 2,
    "reversed": (lambda x: x[::-1, ::-1],) * 2,
    "rest": (lambda x: x[1:, 1:],) * 2,
    "columns": (lambda x: x[:, ::2],) * 2,
    "picked": (lambda x: x[[0, -1]] if len(x) else x[[]],) * 2,
    "column": (lambda x: x[:, 0] if len(x) else x,) * 2,
    "own_product": (lambda x: x @ x[0] if len(x) else x,) * 2,
    "row_product": (lambda x: x[0] @ x if len(x) else x,) * 2,
    "fft": (mb.fft.fft, np.fft.fft),
    "sorted": (mb.sort, np.sort),
    "stacked": (lambda x: mb.stack([x, x]), lambda x: np.stack([x, x])),
}
ORDERED = ("less", "maximum")


def compare(name, mine, theirs, x):
    """Does an operation give what NumPy's gives, or refuse what NumPy refuses?"""
    try:
        expected = np.asarray(theirs())
    except (TypeError, ValueError):
        with pytest.raises((TypeError, ValueError)):
            mb.to_numpy(mine())
        return
    got = mine()
    assert got.place == x.place, name
    size = (
        float(np.max(np.abs(expected[np.isfinite(expected)]), initial=1)) if expected.dtype.kind in "fc" else 1
    )
    half = expected.dtype == np.float16
    tolerance = 2e-2 if half else 1e-12 if expected.dtype.kind in "fc" else 0
    try:
        assert_same(got, expected, rtol=tolerance, atol=tolerance * size)
    except AssertionError as e:
        raise AssertionError(f"{name} of {type(x).__name__}: {e}") from None


@SWEEP
def test_every_pair(family, dtype, n):
    found = everything(family, dtype, n)
    with mb.settings.changed(dense_fallback="silent"), np.errstate(all="ignore"):
        for a, (x, nx) in found.items():
            for b, (y, ny) in found.items():
                if family is mb.RefArray and len(a) + len(b) > 16:
                    continue  # (a part of them: the rules are the same)
                for what, (f, g) in BINARY.items():
                    if np.dtype(dtype).kind != "c" or what not in ORDERED:
                        compare(
                            f"{what}({a}, {b})",
                            lambda f=f, x=x, y=y: f(x, y),
                            lambda g=g, nx=nx, ny=ny: g(nx, ny),
                            x,
                        )


@SWEEP
def test_every_function_of_one(family, dtype, n):
    with mb.settings.changed(dense_fallback="silent"), np.errstate(all="ignore"):
        for name, (x, nx) in everything(family, dtype, n).items():
            compare(name, lambda x=x: x, lambda nx=nx: nx, x)
            for what, (f, g) in UNARY.items():
                if what == "sorted" and dtype == "c16":
                    continue
                compare(f"{what}({name})", lambda f=f, x=x: f(x), lambda g=g, nx=nx: g(nx), x)
            assert (
                len(x) == n and repr(x) and str(x) and x._repr_html_() and x.tolist() == mb.to_numpy(x).tolist()
            )
