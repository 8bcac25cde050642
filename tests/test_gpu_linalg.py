"""Linear algebra of a card's library, by a NumPy as strict as CuPy, compared with the host's routines."""

import ctypes
import types

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from cupy_like import Card, card, strict

import mirabelle as mb
from mirabelle.arraytypes.gpu import handle
from mirabelle.arraytypes.library import routine_of
from mirabelle.backends.gpu import library
from mirabelle.dispatch import verbs

XP = strict()
library._chapters()
RNG = np.random.default_rng(7)


def sent(x):
    if isinstance(x, (tuple, list)):
        return type(x)(sent(item) for item in x)
    return card(x) if isinstance(x, np.ndarray) else x


def run(name, /, *args, **options):
    given = [sent(a) for a in args]
    before = [np.array(a) for a in args if isinstance(a, np.ndarray)]
    with np.errstate(all="ignore"):
        found = library.ROUTINES[name](XP, *given, **{k: sent(v) for k, v in options.items()})
    for a, b in zip((a for a in args if isinstance(a, np.ndarray)), before, strict=True):
        np.testing.assert_array_equal(a, b)
    return found


def host(name, /, *args, **options):
    return routine_of(mb.HostArray, name)(*args, **options)


def alike(found, expected, rtol=1e-9, dtypes=True):
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for f, e in zip(found, expected, strict=True):
            alike(f, e, rtol, dtypes)
        return
    if isinstance(found, np.ndarray):
        assert type(found) is Card
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert not dtypes or found.dtype == expected.dtype, (found.dtype, expected.dtype)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


def check(name, /, *args, rtol=1e-9, dtypes=True, **options):
    try:
        expected = host(name, *args, **options)
    except Exception as e:
        with pytest.raises(type(e)):
            run(name, *args, **options)
        return
    alike(run(name, *args, **options), expected, rtol, dtypes)


DTYPES = ["f8", "f4", "c16", "c8"]
TOLERANCE = {"f8": 1e-9, "c16": 1e-9, "f4": 2e-4, "c8": 2e-4, "i8": 1e-9, "f2": 1e-2}
STACKS = [(), (3,), (2, 2), (0,)]


def matrices(stack, m, n, dtype):
    x = RNG.normal(size=(*stack, m, n))
    if np.dtype(dtype).kind == "c":
        x = x + 1j * RNG.normal(size=x.shape)
    if np.dtype(dtype).kind in "iu":
        x = np.rint(3 * x)
    return x.astype(dtype)


def hermitian(stack, n, dtype, definite=False):
    x = matrices(stack, n, n, dtype)
    adjoint = x.conj().swapaxes(-1, -2)
    return x @ adjoint + np.eye(n, dtype=dtype) if definite else x + adjoint


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("n", [4, 1, 0])
def test_systems(dtype, stack, n):
    tol = TOLERANCE[dtype]
    a = matrices(stack, n, n, dtype) + 3 * np.eye(n, dtype=dtype)
    for b in (matrices((), n, 1, dtype)[:, 0], matrices(stack, n, 2, dtype), matrices((), n, 3, dtype)):
        check("linalg.solve", a, b, rtol=tol)
    check("linalg.inv", a, rtol=tol)
    check("linalg.det", a, rtol=tol)
    check("linalg.slogdet", a, rtol=tol)
    for p in (None, -2, 1, -1, np.inf, -np.inf, "fro", "nuc"):
        check("linalg.cond", a, p=p, rtol=10 * tol)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("stack", STACKS)
def test_decompositions(dtype, stack):
    tol = TOLERANCE[dtype]
    positive = hermitian(stack, 4, dtype, definite=True)
    check("linalg.cholesky", positive, upper=False, rtol=tol)
    check("linalg.cholesky", np.triu(positive), upper=True, rtol=tol)
    a = matrices(stack, 5, 3, dtype)
    for x in (a, a.swapaxes(-1, -2), a[..., :0]):
        for mode in ("reduced", "complete", "r"):
            check("linalg.qr", x, mode=mode, rtol=tol)
        for options in ({}, {"full_matrices": False}, {"compute_uv": False}):
            check("linalg.svd", x, **options, rtol=tol)
    h = hermitian(stack, 4, dtype)
    for triangle in "LU":
        check("linalg.eigh", h, UPLO=triangle, rtol=tol)
        check("linalg.eigvalsh", h, UPLO=triangle, rtol=tol)
    check("linalg.svd", h, compute_uv=False, hermitian=True, rtol=tol)
    u, s, vh = run("linalg.svd", h, hermitian=True)
    assert np.all(np.diff(np.asarray(s)) <= 0)
    np.testing.assert_allclose(np.asarray(u) * np.asarray(s)[..., None, :] @ np.asarray(vh), h, atol=tol * 10)
    general = matrices(stack, 4, 4, dtype)
    values, vectors = (np.asarray(x) for x in run("linalg.eig", general))
    assert values.dtype.kind == vectors.dtype.kind == "c"
    np.testing.assert_allclose(general @ vectors, vectors * values[..., None, :], atol=tol * 10)
    alike(np.asarray(run("linalg.eigvals", general)).view(Card), values, rtol=tol)


def test_failures_are_those_of_numpy():
    singular = np.array([[1.0, 2], [2, 4]])
    for name, args, text in (
        ("linalg.solve", (singular, np.ones(2)), "Singular"),
        ("linalg.inv", (singular,), "Singular"),
        ("linalg.cholesky", (-singular,), "positive definite"),
        ("linalg.eig", (singular * np.nan,), "infs or NaNs"),
        ("linalg.lu_solve", (singular * 0, np.zeros(2, np.int32), np.ones(2)), "Singular"),
        ("linalg.solve_triangular", (singular * 0, np.ones(2)), "Singular"),
    ):
        with pytest.raises(np.linalg.LinAlgError, match=text):
            run(name, *args)
    assert run("linalg.slogdet", np.zeros((2, 2)))[1] == -np.inf
    assert run("linalg.cond", singular * 0, p=1) == np.inf


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6, 3), (3, 6), (4, 4), (2, 5, 3), (0, 2)])
def test_least_squares(dtype, shape):
    tol = TOLERANCE[dtype]
    a = matrices(shape[:-2], *shape[-2:], dtype)
    m = shape[-2]
    for b in (matrices((), m, 1, dtype)[:, 0], matrices(shape[:-2], m, 2, dtype)):
        check("linalg.lstsq", a, b, rcond=None, rtol=tol)
    if a.size:
        deficient = a.copy()
        deficient[..., 1] = deficient[..., 0]
        check("linalg.lstsq", deficient, matrices(shape[:-2], m, 2, dtype), rcond=1e-4, rtol=tol)
        alike(run("linalg.matrix_rank", deficient), np.linalg.matrix_rank(deficient))
        alike(run("linalg.pinv", a), np.linalg.pinv(a), rtol=tol)
        alike(run("linalg.matrix_rank", a, tol=0.1), np.linalg.matrix_rank(a, tol=0.1))


def test_ranks_and_inverses_of_hermitian_matrices():
    h = hermitian((3,), 4, "f8")
    h[1] = 0
    alike(run("linalg.matrix_rank", h, hermitian=True), np.linalg.matrix_rank(h, hermitian=True))
    alike(run("linalg.pinv", h[0], hermitian=True), np.linalg.pinv(h[0], hermitian=True))
    tolerances = np.array([0.1, 0.2, 0.3])
    alike(run("linalg.pinv", h, rtol=tolerances), np.linalg.pinv(h, rtol=tolerances))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("stack", STACKS)
def test_triangular_factors(dtype, stack):
    tol = TOLERANCE[dtype]
    a = matrices(stack, 4, 4, dtype)
    check("linalg.lu_factor", a, rtol=tol)
    for x in (a, a[..., :2], a[..., :3, :]):
        for options in ({}, {"permute_l": True}, {"p_indices": True}):
            check("linalg.lu", x, **options, rtol=tol, dtypes=False)
    factors, pivots = host("linalg.lu_factor", a)
    check("linalg.permutation", pivots, rows=4)
    for b in (matrices(stack, 4, 2, dtype), matrices((), 4, 1, dtype)[:, 0]):
        for trans in (0, 1, 2):
            check("linalg.lu_solve", factors, pivots, b, trans=trans, rtol=tol * 10)
            for lower in (False, True):
                options = {"lower": lower, "trans": trans, "unit_diagonal": lower}
                check("linalg.solve_triangular", a, b, **options, rtol=tol * 100)


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_matrices(dtype):
    tol = TOLERANCE[dtype]
    for scale in (0.1, 1.0, 8.0):
        a = matrices((2,), 4, 4, dtype) * np.dtype(dtype).type(scale)
        check("linalg.expm", a, rtol=tol * 1000)
    check("linalg.expm", np.zeros((3, 3), dtype), rtol=tol)
    check("linalg.expm", np.zeros((0, 0), dtype), rtol=tol)
    a = matrices((3,), 5, 5, dtype)
    a[1] = np.triu(a[1])
    h, q = (np.asarray(x) for x in run("linalg.hessenberg", a, calc_q=True))
    np.testing.assert_allclose(q @ h @ q.conj().swapaxes(-1, -2), a, atol=tol * 10)
    np.testing.assert_allclose(q @ q.conj().swapaxes(-1, -2), np.broadcast_to(np.eye(5), a.shape), atol=tol)
    assert not np.tril(h, -2).any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_symmetric_factors(dtype, stack, n):
    tol = TOLERANCE[dtype] * 100
    for transposing in (True, False) if dtype[0] == "c" else (True,):
        a = hermitian(stack, n, dtype)
        a = a if transposing else a + a.swapaxes(-1, -2)
        a[..., 0, 0] = 0
        if n > 4:
            a[..., 3:, :] = 0
            a[..., :, 3:] = 0
            a[..., 4, 3] = a[..., 3, 4] = 1
        for lower in (True, False):
            half = np.tril(a) if lower else np.triu(a)
            found = run("linalg.ldl", half, lower=lower, hermitian=transposing)
            factor, d, order = (np.asarray(x) for x in found)
            turned = factor.swapaxes(-1, -2).conj() if transposing else factor.swapaxes(-1, -2)
            np.testing.assert_allclose(factor @ d @ turned, a, atol=tol)
            triangle = np.take_along_axis(factor, order[..., None], axis=-2)
            np.testing.assert_array_equal(triangle, np.tril(triangle) if lower else np.triu(triangle))
            if n < 5 and lower and transposing and n > 1:
                b = matrices((), n, 2, dtype)
                np.testing.assert_allclose(a @ np.asarray(run("linalg.ldl_solve", factor, d, order, b)),
                                           np.broadcast_to(b, (*a.shape[:-1], 2)), atol=tol)  # fmt: skip


def test_roots_and_logarithms():
    for dtype in DTYPES:
        tol = TOLERANCE[dtype]
        positive = hermitian((2,), 4, dtype, definite=True)
        check("linalg.sqrtm", positive, rtol=tol * 100)
        check("linalg.logm", positive, rtol=tol * 100, dtypes=False)
        general = matrices((), 4, 4, dtype) + 6 * np.eye(4, dtype=dtype)
        check("linalg.sqrtm", general, rtol=tol * 100)
        check("linalg.logm", general, rtol=tol * 100, dtypes=False)
    check("linalg.sqrtm", np.diag([-4.0, 9.0]), dtypes=False)
    check("linalg.logm", np.zeros((0, 0)))
    for name in ("sqrtm", "logm"):
        with pytest.raises(NotImplementedError, match="HostArray"):
            run(f"linalg.{name}", np.array([[1.0, 1], [0, 1]]))


# Products


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "c8", "i4", "u1", "b1"])
def test_products(dtype):
    if dtype == "b1":
        a, b = RNG.random((4, 5)) > 0.7, RNG.random((5, 3)) > 0.7
    else:
        a, b = matrices((), 4, 5, dtype), matrices((), 5, 3, dtype)
    for x, y in ((a, b), (b.T, a.T), (a[0], b), (a, b[:, 0]), (a[None, ::2], b[:, ::-1])):
        alike(run("matmul", x, y), np.matmul(x, y), rtol=1e-2 if dtype == "f2" else 1e-5)
    if dtype == "b1":
        return
    for alpha, beta in ((1, 0), (2, 0), (0.5, 1), (3, -1)):
        if dtype in ("i4", "u1") and alpha != 2:
            continue
        c = matrices((), 4, 3, dtype)
        expected, found = c.copy(), card(c.copy())
        if np.dtype(dtype).kind in "fc":
            host("gemm", a, b, expected, alpha=alpha, beta=beta)
        else:
            expected = (alpha * (a @ b) + beta * c).astype(dtype)
        library.ROUTINES["gemm"](XP, card(a), card(b), found, alpha=alpha, beta=beta)
        alike(found, expected, rtol=2e-2 if dtype == "f2" else 1e-5)


class CuBLAS:
    """What cuBLAS does with addresses, by NumPy."""

    CUBLAS_POINTER_MODE_HOST, CUBLAS_POINTER_MODE_DEVICE = 0, 1

    def __init__(self, dtype):
        self.dtype, self.calls, self.mode = np.dtype(dtype), [], 1

    def getPointerMode(self, context):
        return self.mode

    def setPointerMode(self, context, mode):
        self.mode = mode

    def at(self, address, shape, strides):
        reach = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1
        raw = (ctypes.c_char * (reach * self.dtype.itemsize)).from_address(address)
        return np.ndarray(shape, self.dtype, raw, strides=tuple(s * self.dtype.itemsize for s in strides))

    def matrix(self, turned, rows, columns, address, step):
        assert step >= (columns if turned else rows)
        return self.at(address, (rows, columns), (step, 1) if turned else (1, step))

    def dot(self, context, n, x, incx, y, incy, result):
        assert self.mode == self.CUBLAS_POINTER_MODE_DEVICE
        self.calls.append("dot")
        self.at(result, (1,), (1,))[0] = self.at(x, (n,), (incx,)) @ self.at(y, (n,), (incy,))

    dotu = dot

    def gemm(self, context, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):
        assert self.mode == self.CUBLAS_POINTER_MODE_HOST
        self.calls.append("gemm")
        left, right, out = (
            self.matrix(ta, m, k, a, lda),
            self.matrix(tb, k, n, b, ldb),
            self.matrix(0, m, n, c, ldc),
        )
        kept = out * self.at(beta, (1,), (1,))[0] if self.at(beta, (1,), (1,))[0] else 0
        out[...] = self.at(alpha, (1,), (1,))[0] * (left @ right) + kept

    def gemmStridedBatched(
        self, context, ta, tb, m, n, k, alpha, a, lda, sa, b, ldb, sb, beta, c, ldc, sc, count
    ):
        size = self.dtype.itemsize
        for i in range(count):
            where = a + i * sa * size, lda, b + i * sb * size, ldb, beta, c + i * sc * size, ldc
            self.gemm(context, ta, tb, m, n, k, alpha, *where)
        self.calls = [*self.calls[:-count], "stack"]

    def gemv(self, context, turned, m, n, alpha, a, lda, x, incx, beta, y, incy):
        self.calls.append("gemv")
        rows, columns = (n, m) if turned else (m, n)
        vector, out = self.at(x, (columns,), (incx,)), self.at(y, (rows,), (incy,))
        kept = out * self.at(beta, (1,), (1,))[0] if self.at(beta, (1,), (1,))[0] else 0
        out[...] = self.at(alpha, (1,), (1,))[0] * (self.matrix(turned, rows, columns, a, lda) @ vector) + kept

    def __getattr__(self, name):
        assert name[0] == {"f": "s", "d": "d", "F": "c", "D": "z"}[self.dtype.char]
        return getattr(self, name[1:])


class Addressed(np.ndarray):
    """An array that tells its address as CuPy's do."""

    @property
    def data(self):
        return types.SimpleNamespace(ptr=self.ctypes.data)


def fake_cublas(dtype, monkeypatch):
    """NumPy's model instead of cuBLAS."""
    from mirabelle.backends.gpu import lib_blas

    fake = CuBLAS(dtype)
    device = types.SimpleNamespace(get_cublas_handle=lambda: 7)
    cuda = types.SimpleNamespace(cublas=fake, device=device)
    monkeypatch.setattr(lib_blas, "_cuda", lambda: cuda)
    return fake


def cases():
    wide = lambda *shape: matrices(shape[:-2], *shape[-2:], "f8")
    a, b = wide(4, 5), wide(5, 3)
    yield "gemm", a, b
    yield "gemm", b.T, a.T
    yield "gemm", wide(9, 11)[1:5, 2:7], wide(8, 9).T[2:7, 1:4]
    yield "gemm", a[:, ::2], b[::2]
    yield "gemm", a[::-1], b[:, ::-1]
    yield "gemm", a[:1], b
    yield "gemm", a[:, :1], b[:1]
    yield "gemm", wide(1, 1), wide(1, 1)
    yield "gemm", a, wide(6, 5)[:, :1].T.repeat(5, 0)[:5]
    yield "gemm", wide(2, 4, 5), b
    yield "gemm", wide(3, 2, 4, 5), b
    yield "gemv", a, b[:, 0]
    yield "gemv", a.T, np.ones(4)
    yield "gemv", wide(9, 9)[2:6, 1:6], np.arange(10.0)[::2]
    yield "gemv", a, np.arange(5.0)[::-1]
    yield "gemv", a[:, ::-1], np.ones(5)
    yield "gemv", np.ones(5), b
    yield "stack", wide(2, 4, 5), wide(2, 5, 3)
    yield "stack", wide(2, 5, 4).swapaxes(-1, -2), wide(2, 3, 5).swapaxes(-1, -2)
    yield "stack", a, wide(6, 5, 3)
    yield "stack", wide(6, 5, 4).swapaxes(-1, -2), b
    yield "stack", wide(2, 3, 4, 5), wide(2, 3, 5, 2)
    yield "stack", wide(1, 4, 5), wide(6, 5, 3)
    yield "stack", wide(7, 4, 5)[::2], wide(4, 5, 3)
    yield None, wide(3, 1, 4, 5), wide(1, 2, 5, 3)
    yield None, wide(4, 4, 5)[::-1], wide(4, 5, 3)
    yield None, np.ones(3), np.ones(3)
    yield None, a[:0], b


@pytest.mark.parametrize("case", list(cases()), ids=lambda c: f"{c[0]}-{c[1].shape}-{c[2].shape}")
@pytest.mark.parametrize("dtype", ["f8", "c8"])
def test_cublas_reads_operands_where_they_lie(case, dtype, monkeypatch):
    from mirabelle.backends.gpu import lib_blas

    expects, a, b = case
    if dtype != "f8":  # (whose layout NumPy may choose)
        a, b = a.astype(dtype), b.astype(dtype)
    fake = fake_cublas(dtype, monkeypatch)
    xp = types.SimpleNamespace(
        __name__="cupy", ascontiguousarray=lambda x: np.ascontiguousarray(x).view(Addressed)
    )
    expected = a @ b
    for alpha, beta in ((1, 0), (2, 1), (0.5, -2)):
        for order in "CF":
            c = np.full(np.shape(expected), 3, dtype, order=order).view(Addressed)
            done = lib_blas.multiply(xp, a.view(Addressed), b.view(Addressed), c, alpha, beta)
            assert done == (expects is not None) or order == "F" or dtype != "f8"
            if not done:
                continue
            np.testing.assert_allclose(c, alpha * expected + beta * np.full(c.shape, 3), rtol=1e-5, atol=1e-5)
    if expects is not None and dtype == "f8":
        assert expects in fake.calls
    assert fake.mode == 1  # as it was


def laid_out(x):
    """The same values on a card: dense, transposed, from the end, and cut out of something larger."""
    inner = tuple(slice(1, None) for _ in x.shape)
    whole = np.zeros([n + 1 for n in x.shape], x.dtype)
    whole[inner] = x
    return [
        mb.CuArray(np.ascontiguousarray(x)),
        mb.permute_dims(mb.CuArray(np.ascontiguousarray(x.T)), tuple(reversed(range(x.ndim)))),
        mb.CuArray(np.ascontiguousarray(x[::-1]))[::-1],
        mb.CuArray(whole)[inner],
    ]


@pytest.mark.parametrize("case", list(cases()), ids=lambda c: f"{c[0]}-{c[1].shape}-{c[2].shape}")
@pytest.mark.parametrize("dtypes", [("f8", "f8"), ("c8", "c8"), ("f4", "f8"), ("i4", "f4"), ("c16", "f4")])
def test_products_of_views_by_cublas(case, dtypes, monkeypatch):
    """Calls are planned by how operands lie; what cuBLAS cannot read, or in that dtype, is copied first."""
    from mirabelle.backends.gpu import matmul

    a, b = (x.astype(d, order="K") for x, d in zip(case[1:], dtypes, strict=True))
    if not a.size or not b.size:
        return
    dtype = np.result_type(a, b)
    fake = fake_cublas(dtype, monkeypatch)
    for x, y in zip(laid_out(a), laid_out(b)[::-1], strict=True):
        views = [verbs.leaf_of(v).view for v in (x, y)]
        way = matmul.by_address(mb.CuArray.driver(), mb.CuArray, *views, dtype)
        if way is None:
            assert case[0] is None
            continue
        for _ in range(2):
            made = mb.to_numpy(handle(mb.CuArray, way(*views)))
            np.testing.assert_allclose(made, mb.to_numpy(x) @ mb.to_numpy(y), rtol=1e-4, atol=1e-4)
            assert made.dtype == dtype
    assert fake.mode == 1


# Structures


@pytest.mark.parametrize("dtypes", [("f8", "f8"), ("f4", "f4"), ("c16", "f8"), ("f8", "c16"), ("i8", "i8")])
@pytest.mark.parametrize("shape", [(5, 2), (5,)])
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("left", [True, False])
def test_structured_products(dtypes, shape, upper, left):
    tol = TOLERANCE[dtypes[1]]
    a, b = matrices((), 5, 5, dtypes[0]), matrices((), 5, 2, dtypes[1])
    b = b[:, 0] if len(shape) == 1 else b if left else np.ascontiguousarray(b.T)
    for unit in (False, True):
        check("triangular_product", a, b, upper=upper, unit=unit, left=left, rtol=tol)
        if left and dtypes != ("f8", "c16"):
            check("triangular_solve", a, b, upper=upper, unit=unit, rtol=tol * 100)
    for conjugated in (False, True):
        check("mirrored_product", a, b, upper=upper, hermitian=conjugated, left=left, rtol=tol)
    if left and dtypes[0] == dtypes[1]:
        check("mirrored_solve", a, b, upper=upper, hermitian=dtypes[0] == "c16", rtol=tol * 100)
    if b.ndim == 2 and left:
        for how in (("N", "N"), ("C", "N"), ("J", "N")):
            check("adjoint_product", a, b, how=how, rtol=tol)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 7, 64])
def test_tridiagonal(dtype, n):
    tol = TOLERANCE[dtype] * 10
    lower, main, upper = (matrices((), 1, k, dtype)[0] for k in (n - 1, n, n - 1))
    dominant = main + np.dtype(dtype).type(5)
    for b in (matrices((), n, 1, dtype)[:, 0], matrices((), n, 3, dtype)):
        check("tridiagonal_solve", lower, dominant, upper, b, rtol=tol)
    if n > 2:  # needs an exchange of rows
        zero = np.zeros_like(main)
        zero[-1] = 1
        b = matrices((), n, 2, dtype)
        check("tridiagonal_solve", lower, zero, upper, b, rtol=tol * 1000)
    check("tridiagonal_slogdet", lower, dominant, upper, rtol=tol, dtypes=False)
    if dtype in ("f8", "f4"):
        check("tridiagonal_eigh", main, lower, vectors=False, rtol=tol)
        check("tridiagonal_cholesky", np.abs(main) + 4, lower, rtol=tol)
        check("bidiagonal_svdvals", np.abs(main), np.abs(lower), rtol=tol)
        check("tridiagonal_cholesky", -np.abs(main) - 4, lower, rtol=tol)


def test_determinants_beyond_all_numbers():
    n = 4000
    sign, logarithm = run("tridiagonal_slogdet", np.ones(n - 1), np.full(n, -1e3), np.ones(n - 1))
    expected = host("tridiagonal_slogdet", np.ones(n - 1), np.full(n, -1e3), np.ones(n - 1))
    assert float(sign) == expected[0]
    np.testing.assert_allclose(float(logarithm), expected[1], rtol=1e-13)


@pytest.mark.parametrize("small", [1 << 20, 0])
@pytest.mark.parametrize("dtypes", [("f8", "f8"), ("f4", "f4"), ("c16", "f8"), ("i8", "i8")])
@pytest.mark.parametrize("left", [True, False])
def test_toeplitz(small, dtypes, left, monkeypatch):
    from mirabelle.backends.gpu import lib_toeplitz

    monkeypatch.setattr(lib_toeplitz, "_SMALL", small)
    tol = TOLERANCE[dtypes[1]]
    diagonals, column = matrices((), 1, 9, dtypes[0])[0], matrices((), 1, 6, dtypes[0])[0]
    for b in (matrices((), 1, 6, dtypes[1])[0], matrices((), 6, 3, dtypes[1]), matrices((2,), 6, 3, dtypes[1])):
        shape = (4, 6) if left else (6, 4)
        b = b if left or b.ndim == 1 else b.swapaxes(-1, -2)
        check("toeplitz_product", diagonals, b, shape=shape, left=left, rtol=tol)
        check("circulant_product", column, b, left=left, rtol=tol)
    if dtypes[0] == dtypes[1] != "i8":
        check("toeplitz_solve", diagonals, matrices((), 5, 2, dtypes[1]), rtol=tol * 100)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("count", [2, 3])
def test_kronecker_sums(dtype, count):
    parts = [matrices((), n, n, dtype) + 4 * np.eye(n) for n in (3, 2, 2)[:count]]
    b = matrices((2,), 1, int(np.prod([len(p) for p in parts])), dtype).reshape(2, *map(len, parts), 1)
    check("kronecker_sum_solve", parts, b, rtol=1e-8)
    jordan = [np.array([[1.0, 1], [0, 1]]).astype(dtype), *parts[1:]]
    b = matrices((1,), 1, int(np.prod([len(p) for p in jordan])), dtype).reshape(1, *map(len, jordan), 1)
    check("kronecker_sum_solve", jordan, b, rtol=1e-8)


# Sparse matrices


def sparse(m, n, dtype="f8", share=0.4):
    dense = matrices((), m, n, dtype) * (RNG.random((m, n)) < share)
    made = scipy.sparse.csr_array(dense.astype("f4" if dtype == "f2" else dtype))
    return (made.data.astype(dtype), made.indices.astype(np.int32), made.indptr.astype(np.int32)), dense.astype(
        dtype
    )


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i8", "b1"])
@pytest.mark.parametrize("share", [0.4, 0.0])
def test_sparse_form(dtype, share):
    kind = "f8" if dtype == "b1" else dtype
    parts, dense = sparse(5, 7, kind, share)
    parts = (parts[0].astype(dtype), *parts[1:])
    dense = dense.astype(dtype)
    check("csr_from_dense", dense)
    check("csr_dense", *parts, shape=(5, 7))
    check("csr_rows", parts[2])
    check("csr_transposed", *parts, shape=(5, 7))
    assert run("csr_checked", *parts, shape=(5, 7)) == ((5, 7), None)
    i, j = RNG.integers(0, 5, (3, 4)), RNG.integers(0, 7, (3, 4))
    check("csr_lookup", *parts, i, j, columns=7)
    for offset, length in ((0, 5), (2, 5), (-3, 2)):
        check("csr_diagonal", *parts, offset=offset, length=length)
    for row in range(5):
        check("csr_row", *parts, i=row, columns=7)
        for column in range(7):
            check("csr_position", *parts, i=row, j=column)
            check("csr_entry", *parts, i=row, j=column)
    for rows, along in (([4, 0, 0], (0, 1, 7)), ([2, 3], (1, 2, 3)), ([1], (6, -1, 7)), ([3, 1], (5, -2, 3))):
        check("csr_block", *parts, np.array(rows), along, columns=7)
    for name in ("sum", "prod", "min", "max", "any", "all"):
        if dtype in ("c16", "b1") and name in ("min", "max", "prod"):
            continue
        for axis in (0, 1):
            tol = TOLERANCE.get(dtype, 1e-9)
            check("csr_lines", *parts, name=name, axis=axis, shape=(5, 7), dtype=None, rtol=tol)


@pytest.mark.parametrize("shape", [(4, 6), None])
@pytest.mark.parametrize("dtype", ["f8", "i4", "b1"])
def test_sparse_of_triples(shape, dtype):
    data = RNG.integers(0, 5, 12).astype(dtype)
    i, j = RNG.integers(0, 4, 12), RNG.integers(0, 6, 12)
    check("csr_from_triples", data, i, j, shape=shape)
    check("csr_from_triples", data[:0], i[:0], j[:0], shape=shape)
    check("csr_from_triples", data, i + 90, j, shape=shape)
    check("csr_from_triples", data, i, j[:-1], shape=shape)
    unsorted = (data[:4], np.array([3, 1, 1, 0]), np.array([0, 2, 2, 4, 4]))
    check("csr_checked", *unsorted, shape=(4, 6) if shape else None)
    for bad in (
        ([0, 9, 2, 4, 4], [3, 1, 1, 0]),
        ([0, 2, 2, 4, 4], [3, -1, 1, 0]),
        ([0, 2, 2, 4, 3], [3, 1, 1, 0]),
    ):
        check("csr_checked", data[:4], np.array(bad[1]), np.array(bad[0]), shape=(4, 6))


@pytest.mark.parametrize("dtypes", [("f8", "f8"), ("f4", "f4"), ("c16", "f8"), ("i8", "i8"), ("f2", "f2")])
@pytest.mark.parametrize("left", [True, False])
def test_sparse_products(dtypes, left):
    tol = TOLERANCE[dtypes[1]] * (1 if dtypes[0] != "f2" else 10)
    parts, _ = sparse(5, 7, dtypes[0])
    n = 7 if left else 5
    for b in (
        matrices((), 1, n, dtypes[1])[0],
        matrices((), n, 3, dtypes[1]) if left else matrices((), 3, n, dtypes[1]),
        matrices((2,), n, 3, dtypes[1]) if left else matrices((2,), 3, n, dtypes[1]),
    ):
        check("csr_product", *parts, b, shape=(5, 7), left=left, rtol=tol)
    other, _ = sparse(7, 4, dtypes[1])
    found = run("csr_times_csr", *parts, *other, shapes=((5, 7), (7, 4)))
    expected = host("csr_times_csr", *parts, *other, shapes=((5, 7), (7, 4)))
    alike(
        run("csr_dense", *map(np.asarray, found), shape=(5, 4)), host("csr_dense", *expected, shape=(5, 4)), tol
    )
    dtype = np.result_type(*dtypes)
    zero = np.zeros((5, 7), dtypes[1])
    check("csr_sum", *parts, zero, dtype=dtype, signs=(-1, 1))
    check("csr_sum", *parts, zero + 1, dtype=dtype, signs=(1, -1))


@pytest.mark.parametrize("name", ["add", "subtract", "multiply"])
def test_sparse_sums(name):
    a, b = sparse(5, 7)[0], sparse(5, 7)[0]
    found = run("csr_combined", *a, *b, name=name, shape=(5, 7))
    expected = host("csr_combined", *a, *b, name=name, shape=(5, 7))
    alike(found, expected)
    for common in (False, True):
        patterns = [p for x in (a, b, sparse(5, 7)[0]) for p in x[1:]]
        check("csr_joined", *patterns, columns=7, common=common)


@pytest.mark.parametrize("limit", [1 << 30, 0])
def test_sparse_systems(limit, monkeypatch):
    from mirabelle.backends.gpu import lib_sparsesolve

    monkeypatch.setattr(lib_sparsesolve, "LARGEST", limit)
    parts, dense = sparse(6, 6)
    made = scipy.sparse.csr_array(dense + 4 * np.eye(6))
    parts = (made.data, made.indices.astype(np.int32), made.indptr.astype(np.int32))
    for b in (RNG.normal(size=6), RNG.normal(size=(6, 2)), RNG.normal(size=(3, 6, 2))):
        check("csr_solve", *parts, b)
        factors = run("csr_factors", *parts)
        expected = np.linalg.solve(dense + 4 * np.eye(6), b)
        alike(run("csr_factored_solve", factors, b), expected)
    if limit:
        check("csr_det", *parts)
        check("csr_slogdet", *parts)
        with pytest.raises(np.linalg.LinAlgError, match="Singular"):
            run("csr_factors", parts[0] * 0, *parts[1:])
    else:
        with pytest.raises(NotImplementedError, match="HostArray"):
            run("csr_det", *parts)
