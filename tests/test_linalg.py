"""mb.linalg beside NumPy's and SciPy's: values, dtypes, stacks, places, reuse, refusals."""

import inspect
import pickle

import numpy as np
import pytest
import scipy.linalg as sl
from compare import assert_closed, assert_same, outcome
from kinds import LEAVES, PLAIN, wrapped
from samples import ordinary

import mirabelle as mb
from mirabelle import linalg
from mirabelle.arraytypes import library

KINDS = [
    *LEAVES.values(),
    *(wrapped(LEAVES[leaf], layer) for leaf in ("host", "ref") for layer in ("transpose", "steps", "reversed")),
]
kinds = pytest.mark.parametrize("kind", KINDS, ids=repr)
plain = pytest.mark.parametrize("kind", PLAIN, ids=repr)
floating = pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def close(dtype):
    return (
        {"rtol": 2e-3, "atol": 2e-3}
        if np.dtype(dtype).itemsize // (1 + (np.dtype(dtype).kind == "c")) < 8
        else CLOSE
    )


def square(dtype="f8", shape=(4, 4), seed=0):
    """Well-conditioned matrices without symmetry."""
    return (ordinary(dtype, shape, seed) + 12 * np.eye(shape[-1])).astype(dtype)


def definite(dtype="f8", shape=(4, 4), seed=0):
    a = ordinary(dtype, shape, seed)
    return (a @ a.conj().swapaxes(-1, -2) + np.eye(shape[-1])).astype(dtype)


def hermitian(dtype="f8", shape=(4, 4), seed=0):
    a = ordinary(dtype, shape, seed)
    return (a + a.conj().swapaxes(-1, -2)).astype(dtype)


def T(x):
    return x.conj().swapaxes(-1, -2)


def n(x):
    return mb.to_numpy(x)


# What has one answer is compared with NumPy's

SINGLE_ANSWERS = {
    "inv": (square, linalg.inv, np.linalg.inv),
    "det": (square, linalg.det, np.linalg.det),
    "slogdet": (square, linalg.slogdet, np.linalg.slogdet),
    "cholesky": (definite, linalg.cholesky, np.linalg.cholesky),
    "cholesky upper": (
        definite,
        lambda x: linalg.cholesky(x, upper=True),
        lambda x: np.linalg.cholesky(x, upper=True),
    ),
    "eigvalsh": (hermitian, linalg.eigvalsh, np.linalg.eigvalsh),
    "svdvals": (square, linalg.svdvals, np.linalg.svdvals),
    "pinv": (square, linalg.pinv, lambda x: np.linalg.pinv(x, rtol=None)),
    "matrix_rank": (square, linalg.matrix_rank, lambda x: np.asarray(np.linalg.matrix_rank(x))),
    "cond": (square, linalg.cond, np.linalg.cond),
    "cond 1": (square, lambda x: linalg.cond(x, 1), lambda x: np.linalg.cond(x, 1)),
    "matrix_power": (square, lambda x: linalg.matrix_power(x, 3), lambda x: np.linalg.matrix_power(x, 3)),
    "matrix_power 5": (square, lambda x: linalg.matrix_power(x, 5), lambda x: np.linalg.matrix_power(x, 5)),
    "matrix_power -2": (square, lambda x: linalg.matrix_power(x, -2), lambda x: np.linalg.matrix_power(x, -2)),
    "matrix_power 0": (square, lambda x: linalg.matrix_power(x, 0), lambda x: np.linalg.matrix_power(x, 0)),
    "trace": (square, linalg.trace, np.linalg.trace),
    "diagonal": (square, lambda x: linalg.diagonal(x, offset=1), lambda x: np.linalg.diagonal(x, offset=1)),
    "expm": (lambda *a: square(*a) / np.float32(8), linalg.expm, sl.expm),
}


def same_parts(mine, expected, kind, dtype):
    mine, expected = (x if isinstance(x, tuple) else (x,) for x in (mine, expected))
    assert len(mine) == len(expected)
    for x, e in zip(mine, expected, strict=True):
        assert_same(x, e, **close(dtype))
        if kind is not None:
            assert x.place == kind.place


@pytest.mark.parametrize("shape", [(4, 4), (3, 4, 4), (2, 3, 2, 2), (1, 1)], ids=str)
@floating
@plain
@pytest.mark.parametrize("name", SINGLE_ANSWERS)
def test_single_answers(name, kind, dtype, shape):
    make, mine, numpys = SINGLE_ANSWERS[name]
    a = make(dtype, shape)
    same_parts(mine(kind.family(a)), numpys(a), kind, dtype)


@kinds
@pytest.mark.parametrize("name", ["inv", "det", "cholesky", "svdvals", "trace", "matrix_power"])
def test_every_kind_of_operand(name, kind):
    make, mine, numpys = SINGLE_ANSWERS[name]
    a = make()
    same_parts(mine(kind.make(a)), numpys(a), kind, "f8")


@plain
@pytest.mark.parametrize("dtype", ["i4", "u1", "?", "f2"])
def test_other_dtypes_are_worked_on_in_those_lapack_has(kind, dtype):
    a = square("f8").astype(np.int64).clip(0).astype(dtype) if dtype != "?" else np.eye(4, dtype=bool)
    x = kind.family(a)
    if dtype == "f2":
        assert_same(linalg.inv(x), np.linalg.inv(a.astype("f4")).astype("f2"), rtol=2e-3, atol=2e-3)
        assert linalg.solve(x, x).dtype == np.float16
        assert linalg.qr(x).Q.dtype == np.float16
    else:
        assert_same(linalg.inv(x), np.linalg.inv(a), **CLOSE)
        assert_same(linalg.matrix_rank(x), np.asarray(np.linalg.matrix_rank(a)))
    if dtype in ("i4", "u1"):
        assert_same(linalg.matrix_power(x, 2), np.linalg.matrix_power(a, 2))


# Decompositions are judged by what they promise


@pytest.mark.parametrize("shape", [(4, 4), (3, 4, 4), (5, 3), (3, 5), (2, 3, 5)], ids=str)
@floating
@plain
def test_qr_svd_lu_polar(kind, dtype, shape):
    a = ordinary(dtype, shape)
    x, tol = kind.family(a), close(dtype)
    for mode in ("reduced", "complete"):
        q, r = result = linalg.qr(x, mode=mode)
        assert result._fields == ("Q", "R")
        assert_same(q @ r, a, **tol)
        assert_same(
            T(n(q)) @ n(q),
            np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], *q.shape[-1:] * 2)).astype(dtype),
            **tol,
        )
        assert_same(n(r), np.triu(n(r)))
        assert q.shape == np.linalg.qr(a, mode=mode).Q.shape and q.place == kind.place
    assert_same(mb.abs(linalg.qr(x, mode="r")), np.abs(np.linalg.qr(a, mode="r")), **tol)
    for full in (True, False):
        u, s, vh = result = linalg.svd(x, full_matrices=full)
        assert result._fields == ("U", "S", "Vh")
        k = s.shape[-1]
        assert_same((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a, **tol)
        assert u.shape == np.linalg.svd(a, full_matrices=full).U.shape
    assert_same(linalg.svd(x, compute_uv=False), np.linalg.svd(a, compute_uv=False), **tol)
    P, L, U = linalg.lu(x)
    assert_same(n(P) @ n(L) @ n(U), a, **tol)
    L, U = linalg.lu(x, permute_l=True)
    assert_same(L @ U, a, **tol)
    if a.ndim == 2:
        p, L, U = linalg.lu(x, p_indices=True)
        assert_same(n(L)[n(p)] @ n(U), a, **tol)
    for side in ("right", "left"):
        u, p = linalg.polar(x, side=side)
        assert_same(u @ p if side == "right" else p @ u, a, **tol)
        assert_same(p, T(n(p)), **tol)


@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3)], ids=str)
@floating
@plain
def test_eigenvalues(kind, dtype, shape):
    a, tol = square(dtype, shape), close(dtype)
    x = kind.family(a)
    w, v = result = linalg.eig(x)
    assert result._fields == ("eigenvalues", "eigenvectors")
    assert w.dtype == v.dtype == np.result_type(dtype, "c8")
    assert_same(n(x) @ n(v), n(v) * n(w)[..., None, :], **tol)
    assert_same(np.sort(n(linalg.eigvals(x))), np.sort(n(w)), **tol)
    h = hermitian(dtype, shape)
    w, v = result = linalg.eigh(kind.family(h))
    assert result._fields == ("eigenvalues", "eigenvectors")
    assert w.dtype == np.abs(h).dtype
    assert_same(h @ n(v), n(v) * n(w)[..., None, :], **tol)
    assert_same(linalg.eigh(kind.family(np.triu(h)), UPLO="U").eigenvalues, n(w), **tol)


def test_real_eigenvalues_are_complex_too():
    # The dtype of a result must not depend on values.
    assert linalg.eigvals(mb.HostArray(np.eye(2))).dtype == np.complex128
    assert linalg.eig(mb.HostArray(np.eye(2, dtype="f4"))).eigenvectors.dtype == np.complex64


@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3)], ids=str)
@plain
def test_scipys_decompositions(kind, shape):
    a = square("f8", shape)
    x = kind.family(a)
    if library.has(kind.family, "linalg.schur"):  # (no library for cards has it)
        t, z = linalg.schur(x)
        assert_same(n(z) @ n(t) @ T(n(z)), a, **CLOSE)
        t, z = linalg.schur(x, output="complex")
        assert_same((n(z) @ n(t) @ T(n(z))), a.astype("c16"), **CLOSE)
        assert_same(n(t), np.triu(n(t)))
    h, q = linalg.hessenberg(x, calc_q=True)
    assert_same(n(q) @ n(h) @ T(n(q)), a, **CLOSE)
    assert_same(linalg.hessenberg(x), n(h), **CLOSE)
    s = hermitian("f8", shape)
    L, D, _ = linalg.ldl(kind.family(s))
    assert_same(n(L) @ n(D) @ T(n(L)), s, **CLOSE)
    d = definite("f8", shape)
    assert_same(linalg.expm(linalg.logm(kind.family(d))), d, rtol=1e-6, atol=1e-6)
    root = linalg.sqrtm(kind.family(d))
    assert_same(root @ root, d, rtol=1e-7, atol=1e-7)
    assert linalg.matrix_exp is linalg.expm


@plain
def test_null_space_and_orth(kind):
    a = np.outer([1.0, 2, 3], [1.0, -1, 2, 0])
    x = kind.family(a)
    for stack in (x, mb.broadcast_to(x, (2, 3, 4))):
        empty, full = linalg.null_space(stack), linalg.orth(stack)
        assert empty.shape[-2:] == (4, 3) and full.shape[-2:] == (3, 1)
        assert_same(stack @ empty, np.zeros((*stack.shape[:-2], 3, 3)), atol=1e-12)
        assert_closed(empty, kind)
    with pytest.raises(ValueError, match="ranks from 1 to 2"):
        linalg.orth(kind.family(np.stack([np.eye(2), np.ones((2, 2))])))


# Systems


@pytest.mark.parametrize(
    "shapes",
    [
        ((4, 4), (4,)),
        ((4, 4), (4, 2)),
        ((3, 4, 4), (4,)),
        ((3, 4, 4), (3, 4, 2)),
        ((4, 4), (3, 4, 2)),
        ((4, 4), (4, 0)),
    ],
    ids=str,
)
@floating
@plain
def test_solve(kind, dtype, shapes):
    a, b = square(dtype, shapes[0]), ordinary(dtype, shapes[1], seed=1)
    x, y = kind.family(a), kind.family(b)
    expected = np.linalg.solve(a, b)
    tol = close(dtype)
    result = linalg.solve(x, y)
    assert_same(result, expected, **tol)
    assert_closed(result, kind)
    assert_same(linalg.lu_solve(linalg.lu_factor(x), y), expected, **tol)
    d = kind.family(definite(dtype, shapes[0]))
    assert_same(linalg.cho_solve(linalg.cho_factor(d), y), np.linalg.solve(n(d), b), rtol=1e-2, atol=1e-2)
    assert_same(
        linalg.cho_solve(linalg.cho_factor(d, lower=True), y), n(linalg.solve(d, y)), rtol=1e-2, atol=1e-2
    )
    for lower in (True, False):
        half = np.tril(a) if lower else np.triu(a)
        assert_same(linalg.solve_triangular(x, y, lower=lower), np.linalg.solve(half, b), **tol)
        assert_same(linalg.solve_triangular(x, y, lower=lower, trans=2), np.linalg.solve(T(half), b), **tol)


@kinds
def test_solve_with_every_kind(kind):
    a, b = kind.sample(square()), kind.sample(ordinary("f8", (4, 2), seed=1))
    assert_closed(linalg.solve(kind.make(a), kind.make(b)), kind)
    assert_same(linalg.solve(kind.make(a), kind.make(b)), np.linalg.solve(a, b), **CLOSE)


@plain
def test_least_squares(kind):
    a, b = ordinary("f8", (6, 3)), ordinary("f8", (6, 2), seed=1)
    for right in (b, b[:, 0]):
        mine, numpys = linalg.lstsq(kind.family(a), kind.family(right)), np.linalg.lstsq(a, right)
        assert mine._fields == ("x", "residuals", "rank", "s")
        for x, e in zip(mine, numpys, strict=True):
            assert_same(x, np.asarray(e, mb.to_numpy(x).dtype), **CLOSE)
    stack = np.stack([a, 2 * a])
    x, residuals, rank, s = linalg.lstsq(kind.family(stack), kind.family(b))
    assert_same(x[1], np.linalg.lstsq(2 * a, b)[0], **CLOSE)
    assert residuals.shape == (2, 2) and s.shape == (2, 3)
    assert_same(rank, np.array([3, 3]))
    x, residuals, rank, s = linalg.lstsq(kind.family(stack), kind.family(b[:, 0]))
    assert x.shape == (2, 3) and residuals.shape == (2,)
    assert np.isnan(n(linalg.lstsq(kind.family(stack[..., :2, :]), kind.family(b[:2])).residuals)).all()


@plain
def test_tensors_chains_and_blocks(kind):
    a = ordinary("f8", (2, 3, 6)) + np.eye(6).reshape(2, 3, 6) * 9
    b = ordinary("f8", (2, 3), seed=1)
    assert_same(linalg.tensorsolve(kind.family(a), kind.family(b)), np.linalg.tensorsolve(a, b), **CLOSE)
    c = a.transpose(2, 0, 1)
    assert_same(
        linalg.tensorsolve(kind.family(c), kind.family(b), axes=(0,)),
        np.linalg.tensorsolve(c, b, axes=(0,)),
        **CLOSE,
    )
    assert_same(linalg.tensorinv(kind.family(a)), np.linalg.tensorinv(a), **CLOSE)
    assert_same(linalg.tensorinv(kind.family(c), ind=1), np.linalg.tensorinv(c, ind=1), **CLOSE)
    chain = [ordinary("f8", s, seed=i) for i, s in enumerate([(4,), (4, 20), (20, 3), (3, 9), (9,)])]
    for lo, hi in ((0, 5), (0, 3), (1, 5), (1, 4), (1, 3), (0, 2)):
        arrays = [kind.family(x) for x in chain[lo:hi]]
        assert_same(linalg.multi_dot(arrays), np.linalg.multi_dot(chain[lo:hi]), rtol=1e-12)
    blocks = [ordinary("i8", s) for s in ((2, 2), (1, 3), (0, 2), (3,))]
    assert_same(linalg.block_diag(*[kind.family(x) for x in blocks]), sl.block_diag(*blocks))
    p, q = ordinary("i8", (3, 2)), ordinary("i8", (4, 2), seed=1)
    assert_same(linalg.khatri_rao(kind.family(p), kind.family(q)), sl.khatri_rao(p, q))


def test_a_chain_is_multiplied_in_the_cheapest_order():
    tall, wide = mb.ones((200, 2)), mb.ones((2, 200))
    with mb.count() as c:
        linalg.multi_dot([tall, wide, tall])
    assert c.bytes_written < 8 * 200 * 200  # never the square one


# Products


@plain
@pytest.mark.parametrize("dtype", ["f8", "c16", "i4", "i1", "?", "f2"])
def test_inner_and_outer_products(kind, dtype):
    a, b = ordinary(dtype, (3, 4)), ordinary(dtype, (3, 4), seed=1)
    x, y = kind.family(a), kind.family(b)
    tol = (
        {}
        if np.dtype(dtype).kind in "biu"
        else {"rtol": 1e-2 if dtype == "f2" else 1e-13, "atol": 1e-2 if dtype == "f2" else 1e-13}
    )
    pairs = [
        (mb.vecdot(x, y), np.vecdot(a, b)),
        (mb.vecdot(x, y, axis=0), np.vecdot(a, b, axis=0)),
        (mb.vecdot(x[0], y), np.vecdot(a[0], b)),
        (mb.vdot(x, y), np.vdot(a, b)),
        (mb.inner(x, y), np.inner(a, b)),
        (mb.outer(x, y), np.outer(a, b)),
        (linalg.outer(x[0], y[1]), np.outer(a[0], b[1])),
        (mb.dot(x[0], y[0]), np.dot(a[0], b[0])),
        (mb.dot(x, y.T), np.dot(a, b.T)),
        (mb.kron(x, y), np.kron(a, b)),
        (mb.kron(x[0], y), np.kron(a[0], b)),
        (mb.tensordot(x, y.T, axes=1), np.tensordot(a, b.T, axes=1)),
        (mb.tensordot(x, y, axes=2), np.tensordot(a, b, axes=2)),
        (mb.tensordot(x, y, axes=0), np.tensordot(a, b, axes=0)),
        (mb.tensordot(x, y, axes=([0], [0])), np.tensordot(a, b, axes=([0], [0]))),
        (mb.tensordot(x, y, axes=((-1, 0), (-1, 0))), np.tensordot(a, b, axes=((-1, 0), (-1, 0)))),
        (mb.matrix_transpose(x), a.T),
    ]
    for mine, expected in pairs:
        assert_same(mine, np.asarray(expected), **tol)
        assert mine.place == kind.place


@plain
def test_products_of_several_dimensions(kind):
    a, b = ordinary("f8", (2, 3, 4)), ordinary("f8", (5, 4, 3), seed=1)
    x, y = kind.family(a), kind.family(b)
    assert_same(mb.dot(x, y), np.dot(a, b), rtol=1e-13, atol=1e-13)
    assert_same(mb.inner(x, y.mT), np.inner(a, b.swapaxes(1, 2)), rtol=1e-13, atol=1e-13)
    assert_same(mb.kron(x, y), np.kron(a, b))
    assert_same(
        mb.tensordot(x, y, axes=([1, 2], [2, 1])),
        np.tensordot(a, b, axes=([1, 2], [2, 1])),
        rtol=1e-13,
        atol=1e-13,
    )
    assert_same(mb.vecdot(x, x[0]), np.vecdot(a, a[0]), rtol=1e-13, atol=1e-13)
    u, v = ordinary("f8", (4, 3)), ordinary("f8", (2, 1, 3), seed=2)
    assert_same(mb.cross(kind.family(u), kind.family(v)), np.cross(u, v))
    assert_same(
        linalg.cross(kind.family(u.T), kind.family(u.T[::-1]), axis=0), np.linalg.cross(u.T, u.T[::-1], axis=0)
    )
    assert_same(mb.cross(kind.family(u[0]), kind.family(u[1])), np.cross(u[0], u[1]))
    assert_closed(mb.cross(kind.family(u), kind.family(v)), kind)
    s = ordinary("i2", (2, 3, 4))
    for k in (-2, 0, 1, 5):
        assert_same(linalg.trace(kind.family(s), offset=k), np.linalg.trace(s, offset=k))
        assert_same(linalg.diagonal(kind.family(s), offset=k), np.linalg.diagonal(s, offset=k))


@plain
def test_products_are_fused(kind, many):
    shape = (5, 6) if kind.on_device else (40, 50)
    x, y = kind.family(ordinary("f8", shape)), kind.family(ordinary("f8", shape, seed=1))
    for make in (
        lambda: mb.vecdot(x + 1, y),
        lambda: mb.vdot(x, y * 2),
        lambda: mb.sum(mb.outer(x[0], y[0]) + 1),
        lambda: linalg.trace(x + y),
        lambda: mb.tensordot(x * 2, y, axes=2),
    ):
        with mb.count() as c:
            mb.materialize(make())
        assert (c.launches, c.temporaries, c.library_calls) == (1, 0, 0)
    with mb.count() as c:
        mb.kron(x, y)
    assert (c.launches, c.temporaries) == (1, 0)


# Norms

ORDERS = [None, 0, 1, 2, 3, 0.5, -1, -2.5, np.inf, -np.inf]


@plain
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16", "i4", "?"])
@pytest.mark.parametrize("p", ORDERS, ids=str)
def test_vector_norms(kind, dtype, p):
    a = ordinary(dtype, (4, 5)) + np.ones((), dtype) * (np.dtype(dtype).kind != "b")
    x = kind.family(a)
    tol = {"rtol": 1e-2 if dtype == "f2" else 1e-5 if dtype in ("f4", "c8") else 1e-12}
    for axis in (0, 1, -1, None):
        if axis is None and p is not None:
            x_, a_ = x.reshape(-1), a.reshape(-1)
        else:
            x_, a_ = x, a
        with np.errstate(all="ignore"):
            expected = np.linalg.norm(a_.astype("f8") if dtype == "f2" else a_, p, axis=axis)
        mine = linalg.norm(x_, p, axis=axis)
        if dtype == "f2":
            expected = np.asarray(expected).astype("f2")
        assert_same(mine, np.asarray(expected, mine.dtype), **tol)
        assert mine.dtype == (np.float64 if dtype in ("i4", "?") else np.abs(a).dtype)
        if p is not None:
            assert_same(linalg.vector_norm(x_, axis=axis, ord=p), n(mine))
            assert linalg.vector_norm(x_, axis=axis, ord=p, keepdims=True).ndim == x_.ndim
    assert_same(linalg.vector_norm(x), n(linalg.norm(x)))
    assert_same(linalg.vector_norm(kind.family(a[None]), axis=(1, 2)), n(linalg.vector_norm(x))[None])


@plain
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "i4"])
@pytest.mark.parametrize("p", ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf], ids=str)
def test_matrix_norms(kind, dtype, p):
    a = ordinary(dtype, (3, 4, 5))
    x = kind.family(a)
    tol = {"rtol": 1e-5 if dtype == "f4" else 1e-12}
    assert_same(linalg.matrix_norm(x, ord=p), np.linalg.matrix_norm(a, ord=p), **tol)
    kept = linalg.matrix_norm(x, ord=p, keepdims=True)
    assert_same(kept, np.linalg.matrix_norm(a, ord=p, keepdims=True), **tol)
    for axes in ((0, 1), (1, 0), (2, 0)):
        assert_same(linalg.norm(x, p, axis=axes), np.linalg.norm(a, p, axis=axes), **tol)
        assert_same(
            linalg.norm(x, p, axis=axes, keepdims=True), np.linalg.norm(a, p, axis=axes, keepdims=True), **tol
        )


@plain
@pytest.mark.parametrize("scale", [1e300, 1e-300, 5e-324, 1e160, 1e-160])
@pytest.mark.parametrize("p", [2, 3, 1.5, -2])
def test_norms_neither_overflow_nor_vanish(kind, scale, p):
    a = np.array([[3.0, 4.0, 2.0], [1.0, 8.0, 2.0], [5.0, 1.0, 9.0]])
    exact = np.linalg.norm(a, p, axis=1)
    for dtype, factor in (("f8", scale), ("c16", scale * 1j)):
        # What the smallest subnormals round is not the norm's fault.
        x = kind.family((a * factor).astype(dtype))
        got = n(linalg.vector_norm(x, axis=1, ord=p))
        np.testing.assert_allclose(got / scale, exact, rtol=1e-12 if scale > 1e-310 else 0.6)
        assert np.isfinite(n(linalg.norm(x)))


@plain
def test_norms_of_single_precision_do_not_overflow(kind):
    x = kind.family(np.array([3e30, 4e30], "f4"))
    assert_same(linalg.vector_norm(x), np.asarray(5e30, "f4"), rtol=1e-6)
    assert_same(
        linalg.vector_norm(x * np.float32(1e-38) * np.float32(1e-30)), np.asarray(5e-38, "f4"), rtol=1e-6
    )


@plain
def test_norms_of_infinities_nans_zeros_and_nothing(kind):
    for values in ([1.0, np.inf], [np.nan, np.inf], [0.0, 0.0], [1e-320, np.nan]):
        for p in (1, 2, 3, np.inf):
            assert_same(linalg.vector_norm(kind.family(values), ord=p), np.asarray(np.linalg.norm(values, p)))
    mixed = np.array([[0.0, 0.0], [3e200, 4e200], [np.nan, 1.0], [np.inf, 1.0]])
    assert_same(
        linalg.vector_norm(kind.family(mixed), axis=1), np.array([0.0, 5e200, np.nan, np.inf]), rtol=1e-14
    )
    assert_same(linalg.vector_norm(kind.family(np.zeros((0, 3))), axis=0), np.zeros(3))
    assert_same(linalg.matrix_norm(kind.family(np.zeros((2, 0, 3)))), np.zeros(2))


def test_a_norm_is_one_fused_reduction():
    x = mb.HostArray(ordinary("f8", (300, 40)))
    with mb.count() as c:
        linalg.vector_norm(x - 1.0)
    # One pass; what is written are single numbers: the sum, its root, whether it left the range.
    assert c.bytes_written < 32 and c.bytes_read < 1.01 * x.nbytes
    y = mb.HostArray(ordinary("f4", (300, 40)))
    with mb.count() as c:
        mb.materialize(linalg.vector_norm(y, axis=1))
    assert c.bytes_written <= 300 * (8 + 4) and c.bytes_read < 1.1 * y.nbytes and c.scalar_reads == 0


# Factorisations


MATRICES = {
    "LU": square,
    "Cholesky": definite,
    "LDL": hermitian,
    "QR": square,
    "SVD": square,
    "Eigen": square,
    "Eigen of Hermitian": hermitian,
    "Triangular": lambda *a: np.triu(square(*a)),
}


def factored(name, x):
    if name == "Eigen of Hermitian":
        return linalg.Eigen(x, hermitian=True)
    return getattr(linalg, name)(x)


@plain
@pytest.mark.parametrize("dtype", ["f8", "c16", "f4"])
@pytest.mark.parametrize("shape", [(4, 4), (3, 4, 4)], ids=str)
@pytest.mark.parametrize("name", MATRICES)
def test_factorisations_solve_and_tell(name, shape, dtype, kind):
    a = MATRICES[name](dtype, shape)
    F = factored(name, kind.family(a))
    tol = {"rtol": 5e-3, "atol": 5e-3} if dtype == "f4" else {"rtol": 1e-8, "atol": 1e-8}
    out = np.result_type(dtype, "c8") if name == "Eigen" else np.dtype(dtype)
    for b in (
        ordinary(dtype, (4,), seed=1),
        ordinary(dtype, (4, 2), seed=1),
        ordinary(dtype, (3, 4, 2), seed=1),
    ):
        expected = np.linalg.solve(a, b).astype(out)
        assert_same(F.solve(kind.family(b)), expected, **tol)
        assert_same(linalg.solve(F, kind.family(b)), expected, **tol)
        assert F.solve(kind.family(b)).place == kind.place
    assert_same(F.inv(), np.linalg.inv(a).astype(out), **tol)
    assert_same(linalg.inv(F), np.linalg.inv(a).astype(out), **tol)
    np.testing.assert_allclose(n(F.det()), np.linalg.det(a), rtol=2e-3 if dtype == "f4" else 1e-8)
    sign, logabsdet = linalg.slogdet(F)
    expected = np.linalg.slogdet(a)
    np.testing.assert_allclose(n(sign), expected.sign, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(n(logabsdet), expected.logabsdet, rtol=1e-3)
    assert F.shape == shape and F.place == kind.place
    assert repr(F).startswith(type(F).__name__) and str(kind.place) in repr(F)
    again = pickle.loads(pickle.dumps(F))
    assert_same(again.det(), n(F.det()))
    moved = mb.adapt(mb.HostArray, F)
    assert moved.place == mb.HostArray.home
    # Another place may add in another order.
    assert_same(moved.solve(np.ones(4, dtype)), n(F.solve(kind.family(np.ones(4, dtype)))), **tol)


@plain
def test_the_factors_are_what_they_should_be(kind):
    a = square("f8", (2, 4, 4))
    x = kind.family(a)
    F = linalg.LU(x)
    assert_same(F.P @ F.L @ F.U, a, **CLOSE)
    assert_same(np.take_along_axis(a, n(F.p)[..., None], 1), n(F.L @ F.U), **CLOSE)
    d = definite("c16", (2, 4, 4))
    F = linalg.Cholesky(kind.family(d))
    assert_same(F.L @ F.U, d, **CLOSE)
    F = linalg.QR(x)
    assert_same(F.Q @ F.R, a, **CLOSE)
    F = linalg.SVD(x)
    assert_same((F.U * F.S[..., None, :]) @ F.Vh, a, **CLOSE)
    assert_same(F.rank(), np.array([4, 4]))
    assert_same(F.cond(), np.linalg.cond(a), **CLOSE)
    assert_same(F.pinv(), np.linalg.pinv(a), **CLOSE)
    F = linalg.Eigen(kind.family(d), hermitian=True)
    assert_same(F.apply(lambda w: w), d, **CLOSE)
    F = linalg.Eigen(x)
    assert_same(mb.real(F.apply(mb.square)), a @ a, rtol=1e-8, atol=1e-8)
    for F, sign in ((linalg.LU(x), 1), (linalg.Cholesky(kind.family(d)), 1)):
        assert_same(mb.real(F.logdet()), n(linalg.slogdet(F).logabsdet))
    assert np.isnan(n(linalg.LU(kind.family([[0.0, 1.0], [1.0, 0.0]])).logdet()))


@plain
def test_rectangular_systems_by_factorisations(kind):
    tall, b = ordinary("f8", (6, 3)), ordinary("f8", (6, 2), seed=1)
    wide, c = tall.T, ordinary("f8", (3, 2), seed=1)
    for make in (linalg.QR, linalg.SVD):
        assert_same(make(kind.family(tall)).solve(kind.family(b)), np.linalg.lstsq(tall, b)[0], **CLOSE)
        assert_same(make(kind.family(wide)).solve(kind.family(c)), np.linalg.lstsq(wide, c)[0], **CLOSE)
        with pytest.raises(linalg.LinAlgError, match="square"):
            make(kind.family(tall)).det()


@plain
def test_factorize_chooses(kind):
    choices = [
        (square(), linalg.LU),
        (definite(), linalg.Cholesky),
        (hermitian(), linalg.LDL),
        (definite("c16"), linalg.Cholesky),
        (hermitian() + 20 * np.diag([1, 1, 1, -1]), linalg.LDL),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), linalg.LDL),
        (np.tril(square()), linalg.Triangular),
        (np.triu(square()), linalg.Triangular),
        (np.diag([1.0, 2.0]), linalg.Triangular),
        (ordinary("f8", (5, 3)), linalg.QR),
        (np.zeros((0, 0)), linalg.LU),
        (square("i8") * 2, linalg.LU),
    ]
    for a, wanted in choices:
        F = linalg.factorize(kind.family(a))
        assert type(F) is wanted, a
        assert linalg.factorize(F) is F
        if a.shape[0] == a.shape[1]:
            b = np.arange(1.0, len(a) + 1)
            assert_same(F.solve(kind.family(b)), np.linalg.solve(a, b), **CLOSE)


def test_a_factorisation_is_made_once():
    x, b = mb.HostArray(definite("f8", (50, 50))), mb.HostArray(np.ones(50))
    F = linalg.factorize(x)
    with mb.count() as c:
        F.solve(b)
        F.solve(b * 2)
    assert c.library_calls == 4  # two triangular solves each


# Refusals


def refused(call, error, text):
    for family in (mb.HostArray, mb.RefArray):
        with pytest.raises(error, match=text):
            call(family)


BAD = linalg.LinAlgError
SINGULAR = [[1.0, 2.0], [2.0, 4.0]]


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda f: linalg.inv(f(SINGULAR)), BAD, "inv: the matrix is singular.*lstsq"),
        (lambda f: linalg.solve(f([SINGULAR, SINGULAR]), f([1.0, 2.0])), BAD, "of the stack is singular"),
        (lambda f: linalg.cholesky(f([[1.0, 2.0], [2.0, 1.0]])), BAD, "not positive definite.*ldl"),
        (lambda f: linalg.inv(f([[1.0, 2.0]])), BAD, "takes square matrices.*1 rows and 2 columns"),
        (lambda f: linalg.det(f([1.0, 2.0])), BAD, r"takes a matrix.*x\[:, None\]"),
        (lambda f: linalg.eig(f([[np.nan, 1.0], [1.0, 1.0]])), BAD, "NaN or infinity"),
        (lambda _: linalg.schur(mb.HostArray([[np.inf, 1.0], [1.0, 1.0]])), BAD, "NaN or infinity"),
        (lambda f: linalg.solve(f(np.eye(2)), f([1.0, 2.0, 3.0])), BAD, "has 2 rows and the right-hand"),
        (lambda f: linalg.solve(f(np.eye(2)), f(1.0)), BAD, "not one number"),
        (lambda f: linalg.solve(f(np.eye(2)), f(np.ones((3, 2)))), BAD, r"b\[\.\.\., None\]"),
        (lambda f: linalg.solve_triangular(f([[0.0, 0], [1, 1]]), f([1.0, 1.0]), lower=True), BAD, "singular"),
        (lambda f: linalg.lu_solve(linalg.lu_factor(f(SINGULAR)), f([1.0, 1.0])), BAD, "singular"),
        (lambda f: linalg.LU(f(SINGULAR)).solve(f([1.0, 1.0])), BAD, "LU.solve: the matrix is singular"),
        (lambda f: linalg.LDL(f(np.ones((2, 2)))).solve(f([1.0, 1.0])), BAD, "LDL.solve"),
        (lambda f: linalg.Eigen(f([[1.0, 0.0], [0.0, 0.0]])).solve(f([1.0, 1.0])), BAD, "Eigen.solve"),
        (lambda f: linalg.QR(f(np.diag([1.0, 0.0]))).solve(f([1.0, 1.0])), BAD, "QR.solve"),
        (lambda f: linalg.SVD(f(np.diag([1.0, 0.0]))).inv(), BAD, "SVD.inv"),
        (lambda f: linalg.LU(f([[1.0, 2.0]])).solve(f([1.0])), BAD, "needs a square"),
        (lambda f: linalg.LU(f(np.eye(2))).solve(f([1.0])), BAD, "LU.solve"),
        (lambda f: linalg.matrix_power(f(np.eye(2)), 0.5), TypeError, "logm"),
        (lambda f: linalg.qr(f(np.eye(2)), mode="full"), ValueError, "reduced"),
        (lambda f: linalg.eigh(f(np.eye(2)), UPLO="X"), ValueError, "UPLO"),
        (lambda f: linalg.norm(f(np.ones((2, 2, 2))), 1), ValueError, "say along which axes"),
        (lambda f: linalg.norm(f(np.ones((2, 2))), "x"), ValueError, "ord is"),
        (lambda f: linalg.norm(f(np.ones(2)), "fro"), ValueError, "norm of matrices"),
        (lambda f: linalg.vector_norm(f(np.ones(2)), ord="fro"), ValueError, "matrix_norm"),
        (lambda f: linalg.norm(f(np.ones((2, 2))), axis=(0, 0)), ValueError, "different"),
        (lambda f: linalg.norm(f(np.ones((2, 2))), axis=5), np.exceptions.AxisError, "out of bounds"),
        (lambda f: linalg.cross(f([1.0, 2.0]), f([1.0, 2.0])), ValueError, "three components"),
        (lambda f: linalg.outer(f(np.eye(2)), f([1.0])), ValueError, "mb.outer"),
        (lambda f: mb.vecdot(f([1.0, 2.0]), f([1.0])), ValueError, "equally long"),
        (lambda f: mb.tensordot(f(np.eye(2)), f(np.eye(3)), axes=1), ValueError, "equally long"),
        (lambda f: mb.tensordot(f(np.eye(2)), f(np.eye(2)), axes=3), ValueError, "axes=3"),
        (lambda f: mb.tensordot(f(np.eye(2)), f(np.eye(2)), axes="x"), TypeError, "two lists"),
        (lambda f: mb.tensordot(f(np.eye(2)), f(np.eye(2)), axes=([0, 0], [0, 1])), ValueError, "twice"),
        (lambda f: mb.matrix_transpose(f([1.0])), ValueError, "at least 2"),
        (lambda f: linalg.multi_dot([f(np.eye(2))]), ValueError, "at least two"),
        (lambda f: linalg.multi_dot([f(np.eye(2)), f(np.eye(3))]), ValueError, "do not fit"),
        (lambda f: linalg.tensorinv(f(np.eye(2)), ind=0), ValueError, "at least 1"),
        (lambda f: linalg.trace(f([1.0])), BAD, "takes a matrix"),
        (lambda f: linalg.null_space(f([1.0])), BAD, "takes a matrix"),
        (lambda f: linalg.block_diag(), ValueError, "at least one"),
    ],
)  # fmt: skip
def test_refusals_are_sentences(call, error, text):
    refused(call, error, text)
    assert issubclass(linalg.LinAlgError, np.linalg.LinAlgError)


def test_nans_pass_through_where_numpy_lets_them():
    a = np.array([[1.0, np.nan], [2.0, 1.0]])
    for name in ("inv", "det", "matrix_norm"):
        mine, error = outcome(getattr(linalg, name), mb.HostArray(a))
        numpys, expected = outcome(getattr(np.linalg, name), a)
        if expected is None:
            assert_same(mine, np.asarray(numpys))
        else:  # it depends on the BLAS
            assert issubclass(error, expected)


def test_operands_of_two_places_are_refused():
    with pytest.raises(mb.PlaceError):
        linalg.solve(mb.HostArray(np.eye(2)), mb.RefArray(np.eye(2)))
    with pytest.raises(mb.PlaceError):
        linalg.LU(mb.HostArray(np.eye(2))).solve(mb.RefArray([1.0, 1.0]))


def test_without_scipy_the_error_says_what_to_install(monkeypatch):
    import builtins

    real = builtins.__import__

    def no_scipy(name, *args, **kwargs):
        if name.partition(".")[0] == "scipy":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_scipy)
    for call in (linalg.lu, linalg.expm, linalg.LU):
        with pytest.raises(ImportError, match="pip install scipy"):
            call(mb.HostArray(np.eye(2)))
    linalg.solve(mb.HostArray(np.eye(2)), mb.HostArray([1.0, 2.0]))


def test_empty_matrices():
    none, stack = mb.HostArray(np.zeros((0, 0))), mb.HostArray(np.zeros((0, 3, 3)))
    assert_same(linalg.det(none), np.asarray(1.0))
    assert linalg.inv(stack).shape == (0, 3, 3)
    assert linalg.solve(none, mb.HostArray(np.zeros((0, 2)))).shape == (0, 2)
    assert linalg.lu(stack)[0].shape == linalg.schur(stack)[0].shape == (0, 3, 3)
    for name in ("expm", "logm", "sqrtm", "qr", "svd", "eigh", "cholesky", "pinv", "polar", "hessenberg"):
        for x in (none, stack):
            result = getattr(linalg, name)(x)
            assert all(part.size == 0 for part in (result if isinstance(result, tuple) else (result,)))
    assert_same(linalg.matrix_rank(none), np.asarray(0))
    with pytest.raises(linalg.LinAlgError, match=r"cond: the matrix has no elements.*x\.shape"):
        linalg.cond(none)
    assert linalg.LU(none).solve(mb.HostArray(np.zeros((0, 2)))).shape == (0, 2)
    assert linalg.LU(stack).solve(mb.HostArray(np.zeros((0, 3, 2)))).shape == (0, 3, 2)


# The array API standard's signatures (2025.12)

SIGNATURES = {
    "cholesky": "(x, /, *, upper=False)",
    "cross": "(x1, x2, /, *, axis=-1)",
    "det": "(x, /)",
    "diagonal": "(x, /, *, offset=0)",
    "eig": "(x, /)",
    "eigh": "(x, /)",
    "eigvals": "(x, /)",
    "eigvalsh": "(x, /)",
    "inv": "(x, /)",
    "matmul": "(x1, x2, /)",
    "matrix_norm": "(x, /, *, keepdims=False, ord='fro')",
    "matrix_power": "(x, n, /)",
    "matrix_rank": "(x, /, *, rtol=None)",
    "matrix_transpose": "(x, /)",
    "outer": "(x1, x2, /)",
    "pinv": "(x, /, *, rtol=None)",
    "qr": "(x, /, *, mode='reduced')",
    "slogdet": "(x, /)",
    "solve": "(x1, x2, /)",
    "svd": "(x, /, *, full_matrices=True)",
    "svdvals": "(x, /)",
    "tensordot": "(x1, x2, /, *, axes=2)",
    "trace": "(x, /, *, offset=0, dtype=None)",
    "vecdot": "(x1, x2, /, *, axis=-1)",
    "vector_norm": "(x, /, *, axis=None, keepdims=False, ord=2)",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_standards_signatures(name):
    namespace = {}
    exec(f"def wanted{SIGNATURES[name]}: ...", namespace)
    wanted = inspect.signature(namespace["wanted"]).parameters
    mine = inspect.signature(getattr(linalg, name)).parameters
    for p in wanted.values():
        got = mine[p.name]
        assert got.default == p.default
        assert got.kind == p.kind or (p.kind is p.POSITIONAL_ONLY and got.kind is p.POSITIONAL_OR_KEYWORD)
    extra = [p for name, p in mine.items() if name not in wanted]
    assert all(p.default is not p.empty for p in extra)
    assert name in linalg.__all__


def test_the_namespace_has_them():
    assert mb.linalg is linalg and "linalg" in mb.__all__
    assert mb.namespace(mb.RefArray).linalg.solve.core is linalg.solve.core
    assert all(hasattr(linalg, name) for name in linalg.__all__)
