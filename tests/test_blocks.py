"""Block diagonal, concatenated, low-rank and inverse matrices against the dense ones they stand for."""

import copy
import pickle

import numpy as np
import pytest
from compare import assert_same

import mirabelle as mb
from mirabelle.arraytypes.structured import fallback

la, nla = mb.linalg, np.linalg
FAMILY = pytest.mark.parametrize("family", [mb.HostArray, mb.RefArray, mb.CuArray])
KIND = pytest.mark.parametrize("kind", ["real", "complex"])
INF = np.inf


@pytest.fixture(autouse=True)
def tell_again():
    fallback.forget()


def random(shape, kind="real", seed=0):
    rng = np.random.default_rng([seed, *shape])
    x = rng.normal(size=shape)
    return x + 1j * rng.normal(size=shape) if kind == "complex" else x


def check(got, expected, family, rtol=1e-9):
    expected = np.asarray(expected)
    assert isinstance(got, mb.AbstractArray) and got.place == family.home
    assert_same(got, expected, rtol=rtol, atol=1e-11)


def check_dense(got, expected, family, rtol=1e-9):
    check(got, expected, family, rtol)
    assert type(got) is family[got.dtype, got.ndim], type(got)


def type_of(x):
    return type(x).__name__.split("[")[0]


def same_values(got, expected):
    got = mb.to_numpy(got)
    assert len(got) == len(expected)
    for value in expected:
        assert np.abs(got - value).min() < 1e-8


# Block diagonal: name → shapes of the parts


BLOCKS = {
    "two": ((3, 3), (2, 2)),
    "with_stack": ((2, 2, 2), (1, 1), (3, 2, 2)),
    "stack": ((4, 2, 2),),
    "mixed": ((2, 3), (3, 2)),
    "tall": ((3, 1), (2, 4, 2)),
    "wide": ((1, 2), (2, 3)),
}
ANY = pytest.mark.parametrize("shapes", BLOCKS)
OF_SQUARE = pytest.mark.parametrize("shapes", ["two", "with_stack", "stack"])


def block_matrix(arrays):
    blocks = [b for a in arrays for b in (a if a.ndim == 3 else [a])]
    n = np.zeros((sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks)), blocks[0].dtype)
    i = j = 0
    for b in blocks:
        n[i : i + b.shape[0], j : j + b.shape[1]] = b
        i, j = i + b.shape[0], j + b.shape[1]
    return n


def make_blocks(shapes, kind, family):
    arrays = [random(s, kind, i) for i, s in enumerate(BLOCKS[shapes])]
    return mb.BlockDiagonal(*map(family, arrays)), block_matrix(arrays)


@FAMILY
@KIND
@ANY
def test_block_diagonal_matrices(shapes, kind, family):
    B, n = make_blocks(shapes, kind, family)
    assert B.shape == n.shape and B.dtype == n.dtype
    check(mb.dense(B), n, family)
    check(B.T, n.T, family)
    check(mb.adjoint(B), n.conj().T, family)
    assert type_of(B.T) == type_of(mb.adjoint(B)) == "BlockDiagonal"
    check(copy.deepcopy(B), n, family)
    check(pickle.loads(pickle.dumps(B)), n, family)
    check(mb.adapt(mb.HostArray, B), n, mb.HostArray)
    for index in (1, (slice(None), 1), (slice(None, None, 2), slice(1, None)), ([0, 1], [1, 0])):
        check(B[index], n[index], family)
    with mb.allow_scalar():
        for i, j in np.ndindex(n.shape):
            assert complex(B[i, j]) == n[i, j]
    for k in (0, 1, -1):
        check(mb.band(B, k), np.diagonal(n, k), family)
        check(mb.trace(B, k), np.trace(n, k), family)


@FAMILY
@KIND
@ANY
def test_products_of_block_diagonal_matrices(shapes, kind, family):
    B, n = make_blocks(shapes, kind, family)
    rows, columns = n.shape
    for x in (random((columns,)), random((columns, 3), kind), random((2, columns, 3))):
        check_dense(B @ family(x), n @ x, family)
    for x in (random((rows,)), random((3, rows), kind), random((2, 3, rows))):
        check_dense(family(x) @ B, x @ n, family)
    d, e = random((columns,)), random((rows,))
    for got, expected in [
        (B @ B.T, n @ n.T),
        (B @ mb.Diagonal(family(d)), n * d),
        (mb.Diagonal(family(e)) @ B, e[:, None] * n),
        (B @ mb.Identity(columns, device=family), n),
    ]:
        assert type_of(got) == "BlockDiagonal"
        check(got, expected, family)


@FAMILY
@ANY
def test_elementwise_operations_on_blocks(shapes, family):
    B, n = make_blocks(shapes, "real", family)
    other = random(n.shape)
    for got, expected in [
        (B * 2, n * 2), (2.5 * B, 2.5 * n), (B / 4, n / 4), (-B, -n), (B + B, n + n), (B - 3 * B, -2 * n),
        (B * B, n * n), (mb.sin(B), np.sin(n)), (abs(B), abs(n)), (B * family(other), n * other),
        (B * family(other[0]), n * other[0]), (mb.maximum(B, 0), np.maximum(n, 0)), (B**2, n**2),
        (B > 0, n > 0),
    ]:  # fmt: skip
        assert type_of(got) == "BlockDiagonal", type(got)
        check(got, expected, family)
    with mb.settings.changed(dense_fallback="silent"):
        for got, expected in [(B + 1, n + 1), (mb.cos(B), np.cos(n)), (B + family(other), n + other)]:
            assert type_of(got) == family.__name__
            check(got, expected, family)
    check(B.astype(np.float32), n.astype(np.float32), family)


@FAMILY
@KIND
@ANY
def test_reductions_and_norms_of_blocks(shapes, kind, family):
    B, n = make_blocks(shapes, kind, family)
    for name in ("sum", "prod", "mean", "any", "all", "count_nonzero", *(("max", "min") * (kind == "real"))):
        for axis in (None, 0, 1):
            for keepdims in (False, True):
                got = getattr(mb, name)(B, axis=axis, keepdims=keepdims)
                check(got, getattr(np, name)(n, axis=axis, keepdims=keepdims), family)
    for p in (1, 2, 3.5, INF):
        check(mb.norm(B, p), nla.norm(n.reshape(-1), p), family)
        for axis in (None, 0, 1):
            expected = nla.norm(n.reshape(-1), p) if axis is None else nla.norm(n, p, axis=axis)
            check(la.vector_norm(B, ord=p, axis=axis), expected, family)
    for order in (None, "fro", "nuc", 1, -1, 2, -2, INF, -INF):
        check(la.norm(B, order), nla.norm(n, order), family)
        check(la.norm(B, order, axis=(1, 0)), nla.norm(n, order, axis=(1, 0)), family)


@FAMILY
@KIND
@OF_SQUARE
def test_linear_algebra_of_square_blocks(shapes, kind, family):
    B, n = make_blocks(shapes, kind, family)
    size = len(n)
    for b in (random((size,), kind), random((size, 3), kind), random((2, size, 2))):
        check_dense(la.solve(B, family(b)), nla.solve(n, b), family, rtol=1e-8)
    assert type_of(la.solve(B, B.T)) == "BlockDiagonal"
    check(la.solve(B, B.T), nla.solve(n, n.T), family, rtol=1e-8)
    check(la.det(B), nla.det(n), family)
    for mine, theirs in zip(la.slogdet(B), nla.slogdet(n), strict=True):
        check(mine, theirs, family)
    same_values(la.eigvals(B), nla.eigvals(n))
    w, V = la.eig(B)
    np.testing.assert_allclose(n @ mb.to_numpy(V), mb.to_numpy(V) * mb.to_numpy(w), atol=1e-9)
    for got, expected in [
        (la.inv(B), nla.inv(n)), (la.pinv(B), nla.pinv(n)), (la.matrix_power(B, 3), nla.matrix_power(n, 3)),
        (la.matrix_power(B, -2), nla.matrix_power(n, -2)), (la.matrix_power(B, 0), nla.matrix_power(n, 0)),
    ]:  # fmt: skip
        assert type_of(got) == "BlockDiagonal"
        check(got, expected, family, rtol=1e-8)
    for p in (None, 1, -1, 2, -2, INF, "fro", "nuc"):
        check(la.cond(B, p), nla.cond(n, p), family, rtol=1e-8)
    H = B @ mb.adjoint(B)
    h = mb.to_numpy(H)
    check_dense(la.eigvalsh(H), nla.eigvalsh(h), family, rtol=1e-7)
    w, V = la.eigh(H)
    np.testing.assert_allclose(h @ mb.to_numpy(V), mb.to_numpy(V) * mb.to_numpy(w), atol=1e-9)
    check(la.cholesky(H), nla.cholesky(h), family)
    check(la.cholesky(H, upper=True), nla.cholesky(h).conj().T, family)
    scipy_linalg = pytest.importorskip("scipy.linalg")
    check(la.expm(B), scipy_linalg.expm(n), family)
    check(la.sqrtm(H), scipy_linalg.sqrtm(h), family, rtol=1e-7)


@FAMILY
@KIND
@ANY
def test_singular_values_of_blocks(shapes, kind, family):
    B, n = make_blocks(shapes, kind, family)
    check_dense(la.svdvals(B), nla.svd(n, compute_uv=False), family)
    assert int(la.matrix_rank(B)) == nla.matrix_rank(n)
    check(la.pinv(B), nla.pinv(n), family, rtol=1e-8)
    b = random((n.shape[0], 2))
    got, expected = la.lstsq(B, family(b)), nla.lstsq(n, b)
    check(got.x, expected[0], family, rtol=1e-8)
    check(got.residuals, expected[1], family, rtol=1e-8)
    if shapes != "mixed":
        Q, R = la.qr(B)
        q, r = mb.to_numpy(Q), mb.to_numpy(R)
        assert q.shape == nla.qr(n)[0].shape
        np.testing.assert_allclose(q @ r, n, atol=1e-11)
        np.testing.assert_allclose(np.tril(r, -1), 0, atol=1e-12)


def test_the_pseudo_inverse_measures_by_the_largest_block():
    B = mb.BlockDiagonal(np.diag([1.0, 1e-20]), np.array([[1e6]]), np.diag([1e-13, 1.0]))
    assert_same(la.pinv(B), nla.pinv(mb.to_numpy(B)), rtol=1e-9)
    assert int(la.matrix_rank(B)) == nla.matrix_rank(mb.to_numpy(B)) == 3


@FAMILY
def test_blocks_of_any_type(family):
    a = random((3, 3))
    B = mb.block_diagonal(
        mb.Identity(2, device=family), mb.UpperTriangular(family(a)), family(a).T, family(a) * 2
    )
    n = block_matrix([np.eye(2), np.triu(a), a.T, a * 2])
    check(B, n, family)
    x = random((11, 2))
    check(B @ family(x), n @ x, family)
    check(family(x.T) @ B, x.T @ n, family)
    check(la.solve(B, family(x)), nla.solve(n, x), family)
    check(la.det(B), nla.det(n), family)
    check(mb.sum(B, axis=0), n.sum(axis=0), family)
    check(B[4], n[4], family)


@FAMILY
def test_blocks_are_written_to(family):
    B, n = make_blocks("with_stack", "real", family)
    with mb.allow_scalar():
        B[0, 1], B[2, 3], B[4, 4] = 7.0, 8.0, 9.0
        n[0, 1], n[2, 3], n[4, 4] = 7.0, 8.0, 9.0
        B[0, 4] = 0.0
        check(B, n, family)
        with pytest.raises(ValueError, match="zero by its structure"):
            B[0, 4] = 1.0
    with pytest.raises(TypeError, match="entry by entry"):
        B[0] = 1.0
    B += B
    check(B, 2 * n, family)
    B[...] = 0
    check(B, 0 * n, family)


def test_constructors_of_blocks():
    a = mb.HostArray([[1.0]])
    assert mb.block_diagonal(a) is a
    assert len(mb.block_diagonal(mb.block_diagonal(a, a), a).parts) == 3
    assert mb.block_diagonal(mb.ones((5, 2, 2))).blocks == ((5, 2, 2),)
    assert mb.BlockDiagonal([[1]], [[2.5]]).dtype == np.float64
    B = mb.BlockDiagonal(mb.ones((10_000, 3, 3)))
    with mb.count() as c:
        assert (B @ mb.ones(30_000)).shape == (30_000,)
        assert float(mb.sum(B)) == 90_000 and float(la.norm(B)) == 300.0
    assert c.bytes_written < 10**6
    assert "10000 of 3x3" in repr(B)


# Concatenated


def make_concat(shape, axis, family, kind="real", cuts=(2, 0, 3)):
    arrays = []
    for i, n in enumerate(cuts):
        part = list(shape)
        part[axis] = n
        arrays.append(random(tuple(part), kind, i))
    return mb.Concat(*map(family, arrays), axis=axis), np.concatenate(arrays, axis)


CONCATS = pytest.mark.parametrize(
    "shape, axis", [((5,), 0), ((5, 3), 0), ((3, 5), 1), ((2, 5, 3), 1), ((2, 3, 5), -1)]
)
INDICES = [
    0, -1, 2, slice(None), slice(1, 4), slice(None, None, 2), slice(None, None, -1), slice(4, 0, -2),
    slice(3, 3), slice(2, None), slice(0, 2), (..., 1), (..., slice(1, None)), (..., slice(None, None, -2)),
    (None, 0), [0, 1],
]  # fmt: skip


@FAMILY
@KIND
@CONCATS
def test_concatenated_arrays(shape, axis, kind, family):
    x, n = make_concat(shape, axis, family, kind)
    assert x.shape == n.shape and x.dtype == n.dtype and x.ndim == n.ndim and type(x).ndim == n.ndim
    check(mb.dense(x), n, family)
    check_dense(family(x), n, family)
    check(x.T, n.T, family)
    check(mb.permute_dims(x, tuple(range(n.ndim))[::-1]), n.T, family)
    check(mb.conj(x), n.conj(), family)
    check(copy.deepcopy(x), n, family)
    check(pickle.loads(pickle.dumps(x)), n, family)
    check(mb.adapt(mb.HostArray, x), n, mb.HostArray)
    for index in INDICES:
        try:
            expected = n[index]
        except IndexError:
            continue
        with mb.allow_scalar():
            check(x[index], expected, family)
    for bad in (9, (0,) * 5):
        with pytest.raises(IndexError):
            x[bad]


@FAMILY
@CONCATS
def test_operations_on_concatenated_arrays_go_part_by_part(shape, axis, family):
    x, n = make_concat(shape, axis, family)
    other = random(n.shape, seed=9)
    y = family(other)
    for got, expected in [
        (x * 2 + 1, n * 2 + 1), (mb.exp(x), np.exp(n)), (x + y, n + other), (y / x, other / n), (x > 0, n > 0),
        (x * x - x, n * n - n), (mb.where(x > 0, x, y), np.where(n > 0, n, other)), (x + y[0], n + other[0]),
        (x.astype(np.float32), n.astype(np.float32)),
    ]:  # fmt: skip
        assert type_of(got) == "Concat"
        check(got, expected, family)


@FAMILY
@KIND
@CONCATS
def test_reductions_of_concatenated_arrays(shape, axis, kind, family):
    x, n = make_concat(shape, axis, family, kind, cuts=(2, 3))
    names = ["sum", "prod", "mean", "any", "all", "count_nonzero"] + ["max", "min"] * (kind == "real")
    for name in names:
        for along in (None, *range(n.ndim)):
            for keepdims in (False, True):
                got = getattr(mb, name)(x, axis=along, keepdims=keepdims)
                check(got, getattr(np, name)(n, axis=along, keepdims=keepdims), family)
    for p in (1, 2, 3, INF):
        check(mb.norm(x, p), nla.norm(n.reshape(-1), p), family)
        check(la.vector_norm(x, ord=p), nla.norm(n.reshape(-1), p), family)
    check(la.norm(x), nla.norm(n), family)


@FAMILY
@KIND
@pytest.mark.parametrize("shape, axis", [((5,), 0), ((5, 3), 0), ((3, 5), 1)])
def test_products_of_concatenated_arrays(shape, axis, kind, family):
    x, n = make_concat(shape, axis, family, kind)
    for v in (random((n.shape[-1],)), random((n.shape[-1], 2), kind), random((2, n.shape[-1], 3))):
        check(x @ family(v), n @ v, family)
    for v in (random((n.shape[0],)), random((2, n.shape[0]), kind), random((2, 3, n.shape[0]))):
        check(family(v) @ x, v @ n, family)


@FAMILY
def test_concatenated_arrays_are_written_through(family):
    a, b = random((2, 3)), random((3, 3), seed=1)
    x, y = family(a), family(b)
    c, n = mb.Concat(x, y), np.concatenate([a, b])
    c[1:4, 1:] = 7.0
    n[1:4, 1:] = 7.0
    c[::2] *= 2
    n[::2] *= 2
    c[3] = family(np.arange(3.0))
    n[3] = np.arange(3.0)
    c[::-1] += family(random((5, 3), seed=4))
    n[::-1] += random((5, 3), seed=4)
    check(c, n, family)
    check(x, n[:2], family)
    check(y, n[2:], family)
    c[...] = c[::-1]
    n = n[::-1].copy()
    check(c, n, family)
    c[1:] = c[:-1]
    n[1:] = n[:-1].copy()
    check(c, n, family)
    c[...] = family(b[:1])
    check(c, np.broadcast_to(b[:1], (5, 3)), family)
    with mb.allow_scalar():
        c[4, 2] = 1.5
    check(y[2, 2:], np.array([1.5]), family)
    with pytest.raises(ValueError, match="broadcast"):
        mb.Concat(mb.zeros(2), mb.zeros(2))[...] = [1.0, 2.0]
    with pytest.raises(TypeError, match="by integers and slices"):
        c[[0, 1]] = 0.0
    with pytest.raises(ValueError, match="broadcast"):
        c[...] = family(random((4, 3)))


def test_constructors_of_concatenated_arrays():
    a, b = mb.zeros((2, 3)), mb.ones((1, 3))
    c = mb.Concat(mb.zeros(2), mb.zeros(1))
    c[...] = [1.0, 2.0, 3.0]
    assert c.tolist() == [1.0, 2.0, 3.0]
    assert mb.Concat(a) is a
    x = mb.Concat([mb.Concat(a, b), b])
    assert len(x.parts) == 3 and x.parts[0] is a and x.axis == 0
    assert len(mb.Concat(mb.Concat(a, a, axis=1), mb.Concat(a, a, axis=1)).parts) == 2
    assert type_of(x[:2]) == "HostArray" or x[:2].shape == (2, 3)
    assert mb.Concat([1, 2], [0.5]).dtype == np.float64
    with mb.count() as c:
        big = mb.Concat(mb.zeros(10**6), mb.Ones(10**6))
        assert float(mb.sum(big * 2)) == 2e6
    assert c.bytes_written < 9 * 10**6
    assert "3 parts along axis 0" in repr(mb.Concat(*[mb.zeros(1000)] * 3))


# Low rank


def make_low(kind, family, shape=(7, 5), rank=2):
    u, v = random((shape[0], rank), kind), random((rank, shape[1]), kind)
    return mb.LowRank(family(u), family(v)), u @ v


SHAPE = pytest.mark.parametrize("shape", [(7, 5), (4, 6), (5, 5)])


@FAMILY
@KIND
@SHAPE
def test_low_rank_matrices(shape, kind, family):
    A, n = make_low(kind, family, shape)
    assert A.shape == n.shape and A.dtype == n.dtype and A.rank == 2
    check(mb.dense(A), n, family)
    check(A.T, n.T, family)
    check(mb.adjoint(A), n.conj().T, family)
    assert type_of(A.T) == type_of(A[1:, ::2]) == type_of(A[:3]) == "LowRank"
    check(pickle.loads(pickle.dumps(A)), n, family)
    for index in (1, (slice(None), 0), (slice(1, 3), slice(None, None, 2)), ([0, 1], [1, 0]), (None, 1)):
        check(A[index], n[index], family)
    with mb.allow_scalar():
        assert complex(A[2, 3]) == pytest.approx(n[2, 3])
    for x in (random((shape[1],)), random((shape[1], 3), kind), random((2, shape[1], 3))):
        check_dense(A @ family(x), n @ x, family)
    for x in (random((shape[0],)), random((3, shape[0]), kind), random((2, 3, shape[0]))):
        check_dense(family(x) @ A, x @ n, family)
    d = random((shape[1],))
    for got, expected in [
        (A @ A.T, n @ n.T), (A * 2, n * 2), (A / 4, n / 4), (-A, -n), (A + A, n + n), (A - 3 * A, -2 * n),
        (A @ mb.Diagonal(family(d)), n * d),
    ]:  # fmt: skip
        assert type_of(got) == "LowRank"
        check(got, expected, family)
    other = random(n.shape)
    with mb.count() as c:
        check(A + family(other), n + other, family)
        check(family(other) - A, other - n, family)
        check(A - family(other), n - other, family)
    assert c.transfers == 0 or family is not mb.HostArray
    for k in (0, 1, -1):
        check(mb.band(A, k), np.diagonal(n, k), family)
        check(mb.trace(A, k), np.trace(n, k), family)
        check(la.trace(A, offset=k), np.trace(n, k), family)


@FAMILY
@KIND
@SHAPE
def test_linear_algebra_of_low_rank(shape, kind, family):
    A, n = make_low(kind, family, shape)
    for axis in (None, 0, 1):
        for keepdims in (False, True):
            check(mb.sum(A, axis=axis, keepdims=keepdims), n.sum(axis=axis, keepdims=keepdims), family)
            check(mb.mean(A, axis=axis, keepdims=keepdims), n.mean(axis=axis, keepdims=keepdims), family)
    check(la.svdvals(A), nla.svd(n, compute_uv=False), family)
    assert int(la.matrix_rank(A)) == 2
    for order in (None, "fro", "nuc", 2):
        check(la.norm(A, order), nla.norm(n, order), family)
    assert float(la.norm(A, -2)) == 0.0
    check(mb.norm(A), nla.norm(n), family)
    assert type_of(la.pinv(A)) == "LowRank"
    check(la.pinv(A), nla.pinv(n), family)
    b = random((shape[0], 2))
    check(la.lstsq(A, family(b)).x, nla.lstsq(n, b)[0], family)
    if shape[0] == shape[1]:
        assert complex(la.det(A)) == 0.0 and float(la.slogdet(A).logabsdet) == -INF
        same_values(la.eigvals(A), nla.eigvals(n))
        for f in (la.inv, lambda a: la.solve(a, family(b)), mb.inverse):
            with pytest.raises(la.LinAlgError, match="is singular"):
                f(A)


@FAMILY
def test_low_rank_of_full_rank_and_middle(family):
    u, d, v = random((3, 3)), random((3,)), random((3, 3), seed=1)
    A, n = mb.LowRank(family(u), family(v), d=family(d)), u @ np.diag(d) @ v
    check(A, n, family)
    check(la.det(A), nla.det(n), family)
    check(la.inv(A), nla.inv(n), family)
    check(la.solve(A, family(d)), nla.solve(n, d), family)
    check(la.slogdet(A).logabsdet, nla.slogdet(n)[1], family)
    same_values(la.eigvals(A), nla.eigvals(n))
    with mb.settings.changed(dense_fallback="silent"):
        assert type_of(A + A) == family.__name__  # no saving any more
        check(mb.exp(A), np.exp(n), family)
        check(A * A, n * n, family)
        check(mb.max(A), n.max(), family)
        check(la.norm(A, 1), nla.norm(n, 1), family)


def test_low_rank_never_allocates_the_whole():
    n = 10**5
    A = mb.LowRank(mb.HostArray(random((n, 2))), mb.HostArray(random((2, n))))
    with mb.count() as c:
        assert (A @ mb.ones(n)).shape == (n,)
        assert int(la.matrix_rank(A + A @ A)) <= 4
        mb.materialize(la.norm(A))
        mb.materialize(mb.sum(A, axis=0))
    assert c.bytes_written < 100 * 8 * n


# Inverses


MATRICES = {
    "general": lambda at, kind: at(random((4, 4), kind)),
    "definite": lambda at, kind: at(random((4, 4), kind) @ random((4, 4), kind).conj().T + np.eye(4)),
    "indefinite": lambda at, kind: at(random((4, 4), kind) + random((4, 4), kind).conj().T),
    "upper": lambda at, kind: at(np.triu(random((4, 4), kind))),
    "lower": lambda at, kind: at(np.tril(random((4, 4), kind))),
    "transposed": lambda at, kind: at(random((4, 4), kind)).T,
    "triangular_type": lambda at, kind: mb.LowerTriangular(at(random((4, 4), kind))),
    "tridiagonal": lambda at, kind: mb.Tridiagonal(*[at(random((n,), kind)) for n in (3, 4, 3)]),
    "symmetric": lambda at, kind: mb.Symmetric(at(random((4, 4), kind))),
    "hermitian": lambda at, kind: mb.Hermitian(at(random((4, 4), kind))),
    "kronecker_sum": lambda at, kind: mb.kronecker_sum(at(random((2, 2), kind)), at(random((2, 2), kind, 1))),
    "integers": lambda at, kind: at(np.array([[2, 1, 0, 0], [1, 3, 1, 0], [0, 1, 4, 1], [0, 0, 1, 5]])),
}
MATRIX = pytest.mark.parametrize("which", MATRICES)


@FAMILY
@KIND
@MATRIX
def test_inverses_solve(which, kind, family):
    A = MATRICES[which](family, kind)
    n = nla.inv(mb.to_numpy(A))
    X = mb.inverse(A)
    assert type_of(X) == "Inverse" and X.dtype == n.dtype and X.shape == n.shape
    shown = [
        (X, n), (X.T, n.T), (mb.conj(X), n.conj()), (mb.adjoint(X), n.conj().T), (X * 2, n * 2),
        (-X / 4, -n / 4), (mb.adjoint(X.T), n.conj()), (3 * X.T.T, 3 * n),
    ]  # fmt: skip
    for got, expected in shown:
        assert type_of(got) == "Inverse"
        check(mb.dense(got), expected, family)
        for b in (random((4,)), random((4, 2), kind), random((2, 4, 3))):
            if b.ndim < 3 or type_of(A) == family.__name__:
                check(got @ family(b), expected @ b, family)
        for b in (random((4,)), random((2, 4), kind)):
            check(family(b) @ got, b @ expected, family)
        check(got[:, 1], expected[:, 1], family)
        check(got[2], expected[2], family)
        check(got.matrix, nla.inv(expected), family)
        check(la.det(got), nla.det(expected), family)
        check(la.slogdet(got).logabsdet, nla.slogdet(expected)[1], family)
        check(mb.sum(got, axis=0), expected.sum(axis=0), family)
    check(mb.sum(X), n.sum(), family)
    check(mb.sum(X, axis=1, keepdims=True), n.sum(axis=1, keepdims=True), family)
    check(mb.inverse(X), nla.inv(n), family)
    check(la.inv(X), nla.inv(n), family)
    check(la.solve(X, family(random((4,)))), nla.inv(n) @ random((4,)), family)
    check(la.matrix_power(X, 2), n @ n, family)
    with mb.settings.changed(dense_fallback="silent"):
        same_values(la.eigvals(X), nla.eigvals(n))
    check(pickle.loads(pickle.dumps(X)), n, family)
    check(mb.adapt(mb.HostArray, X), n, mb.HostArray)
    check(copy.deepcopy(X) @ family(random((4,))), n @ random((4,)), family)


@FAMILY
def test_norms_of_inverses(family):
    a = random((4, 4))
    X, n = mb.inverse(family(a)), nla.inv(a)
    check(la.svdvals(X), nla.svd(n, compute_uv=False), family)
    for order in (2, -2, "nuc"):
        check(la.norm(X, order), nla.norm(n, order), family)
    for p in (None, 1, 2, INF):
        check(la.cond(X, p), nla.cond(n, p), family)
    check(X @ mb.UpperTriangular(family(a)), n @ np.triu(a), family)
    assert type_of(X @ mb.Identity(4, device=family)) == "Inverse"
    check(X.astype(np.complex128), n.astype(complex), family)
    check(X.astype(np.float32), n.astype(np.float32), family, rtol=1e-4)
    with pytest.warns(mb.DenseFallbackWarning, match="Inverse"):
        check(X + 1, n + 1, family)
    with pytest.warns(mb.DenseFallbackWarning, match="Inverse"):
        check(la.norm(X), nla.norm(n), family)


def test_the_factors_are_made_once():
    A = mb.HostArray(random((50, 50)))
    X = mb.inverse(A)
    assert "LU of 50 x 50" in repr(X.factors)
    F = X.factors
    with mb.count() as c:
        mb.materialize(X @ mb.ones(50))
        mb.materialize(mb.ones(50) @ X)
    assert X.factors is F and X.T.factors is F and (2 * X).factors is F
    assert c.library_calls == 2
    assert mb.inverse(mb.Tridiagonal([1.0], [2.0, 3.0], [1.0])).factors is None
    b = mb.HostArray(random((50,)))
    before = mb.to_numpy(X @ b)
    A[...] = 0.0  # the inverse is that of what A was
    assert_same(X @ b, before)
    assert_same(X.matrix, random((50, 50)))


def test_inverses_of_products_and_blocks_are_of_their_type():
    A, B = mb.HostArray(random((3, 3))), mb.HostArray(random((2, 2)))
    K, D = mb.kronecker(A, B), mb.block_diagonal(A, B, mb.HostArray(random((2, 2, 2))))
    for x in (K, D):
        X = mb.inverse(x)
        assert type_of(X) == type_of(x) and type_of(X.parts[0]) == "Inverse"
        v = random((x.shape[0],))
        check_dense(X @ mb.HostArray(v), nla.inv(mb.to_numpy(x)) @ v, mb.HostArray)
        check(X.T @ mb.HostArray(v), nla.inv(mb.to_numpy(x)).T @ v, mb.HostArray)
        check(mb.inverse(X), mb.to_numpy(x), mb.HostArray)
    assert type_of(mb.inverse(mb.Diagonal([1.0, 2.0]))) == "Diagonal"
    I = mb.Identity(3)
    assert mb.inverse(I) is I


BAD = [
    (lambda: mb.BlockDiagonal(), TypeError, "made of its blocks"),
    (lambda: mb.block_diagonal(), ValueError, "at least one matrix"),
    (lambda: mb.BlockDiagonal(np.ones(3)), ValueError, r"has shape \(3,\)"),
    (lambda: mb.BlockDiagonal(mb.HostArray(np.eye(2)), mb.RefArray(np.eye(2))), ValueError, "different places"),
    (lambda: la.det(mb.BlockDiagonal(np.ones((2, 3)), np.eye(2))), la.LinAlgError, "square matrices"),
    (lambda: la.inv(mb.BlockDiagonal(np.ones((2, 3)), np.ones((3, 2)))), la.LinAlgError, "is singular"),
    (lambda: la.inv(mb.BlockDiagonal(np.ones((2, 2)), np.eye(2))), la.LinAlgError, "is singular"),
    (lambda: la.solve(mb.BlockDiagonal(np.zeros((3, 2, 2))), np.ones(6)), la.LinAlgError, "is singular"),
    (lambda: la.solve(mb.BlockDiagonal(np.eye(2), np.eye(2)), np.ones(3)), la.LinAlgError, "must be equal"),
    (lambda: la.cholesky(mb.BlockDiagonal(np.eye(2), -np.eye(2))), la.LinAlgError, "not positive definite"),
    (lambda: mb.BlockDiagonal(np.eye(2), np.eye(2)) @ np.ones(3), ValueError, "do not fit"),
    (lambda: mb.BlockDiagonal(np.eye(2), np.eye(2))[4], IndexError, "out of bounds"),
    (lambda: mb.BlockDiagonal(np.eye(2), np.eye(2))[0, 4], IndexError, "out of bounds"),
    (lambda: mb.Concat(), TypeError, "made of its parts"),
    (lambda: mb.Concat(np.ones((2, 3)), np.ones((2, 2))), ValueError, "other dimensions must be equal"),
    (lambda: mb.Concat(np.ones(3), np.ones((2, 2))), ValueError, "one after the other"),
    (lambda: mb.Concat(np.ones(3), np.ones(2), axis=1), ValueError, "axis 1 is out of bounds"),
    (lambda: mb.Concat(mb.HostArray(3.0)), ValueError, "at least one dimension"),
    (lambda: mb.Concat(mb.HostArray(np.ones(2)), mb.RefArray(np.ones(2))), ValueError, "different places"),
    (lambda: mb.LowRank(np.ones((3, 2)), np.ones((3, 2))), ValueError, "m x r and V of r x n"),
    (lambda: mb.LowRank(np.ones(3), np.ones(3)), ValueError, r"LowRank\(u\[:, None\]"),
    (lambda: mb.LowRank(np.ones((3, 2)), np.ones((2, 3)), d=np.ones(3)), ValueError, "`d` has 2 elements"),
    (lambda: la.det(mb.LowRank(np.ones((3, 1)), np.ones((1, 2)))), la.LinAlgError, "square matrices"),
    (lambda: mb.inverse(np.ones((2, 3))), la.LinAlgError, "square matrices"),
    (lambda: mb.inverse(np.ones((2, 2))), la.LinAlgError, "is singular"),
    (lambda: mb.inverse(np.zeros((2, 2))), la.LinAlgError, "is singular"),
    (lambda: mb.inverse(np.ones((3, 2, 2))), la.LinAlgError, r"one matrix of it is A\[i\]"),
    (lambda: mb.inverse(np.ones(3)), la.LinAlgError, "takes a matrix"),
    (lambda: mb.inverse(np.eye(2)) @ np.ones(3), ValueError, "do not fit"),
]


@pytest.mark.parametrize("bad, error, message", BAD)
def test_bad_input(bad, error, message):
    with pytest.raises(error, match=message):
        bad()
