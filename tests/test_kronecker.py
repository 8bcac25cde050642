"""Kronecker products and sums against the matrices they stand for.

A fallback to dense is a warning, and pytest makes it an error: what passes here has a rule.
"""

import copy
import functools
import pickle

import numpy as np
import pytest
from compare import assert_same

import mirabelle as mb
from mirabelle.arraytypes.structured import fallback

la, nla = mb.linalg, np.linalg
FAMILY = pytest.mark.parametrize("family", [mb.HostArray, mb.RefArray, mb.CuArray])
INF = np.inf


@pytest.fixture(autouse=True)
def tell_again():
    fallback.forget()


def random(shape, kind="real", seed=0):
    rng = np.random.default_rng([seed, *shape])
    x = rng.normal(size=shape)
    return x + 1j * rng.normal(size=shape) if kind == "complex" else x


# name → shapes of the factors
SQUARE = {"3x2": ((3, 3), (2, 2)), "2x2x3": ((2, 2), (2, 2), (3, 3)), "1x4": ((1, 1), (4, 4))}
SHAPES = {
    **SQUARE,
    "tall": ((3, 2), (4, 2)),
    "wide": ((2, 3), (1, 2)),
    "mixed": ((2, 3), (4, 2)),
    "three": ((2, 2), (3, 1), (2, 4)),
    "square_of_oblong": ((2, 3), (3, 2)),
}
KIND = pytest.mark.parametrize("kind", ["real", "complex"])
ANY = pytest.mark.parametrize("shapes", SHAPES)
OF_SQUARE = pytest.mark.parametrize("shapes", SQUARE)


def factors(shapes, kind, seed=0):
    return [random(s, kind, seed + i) for i, s in enumerate(SHAPES[shapes])]


def product(arrays):
    return functools.reduce(np.kron, arrays)


def make(shapes, kind, family, seed=0):
    arrays = factors(shapes, kind, seed)
    return mb.Kronecker(*map(family, arrays)), product(arrays)


def definite(shapes, kind, family):
    arrays = [f @ f.conj().T + np.eye(len(f)) for f in factors(shapes, kind)]
    return mb.kronecker(*map(family, arrays)), product(arrays)


def check(got, expected, family, rtol=1e-10):
    expected = np.asarray(expected)
    assert isinstance(got, mb.AbstractArray) and got.place == family.home
    assert_same(got, expected, rtol=rtol, atol=1e-11)


def check_dense(got, expected, family, rtol=1e-10):
    """As `check`, and the result is a plain array of the family."""
    check(got, expected, family, rtol)
    assert type(got) is family[got.dtype, got.ndim], type(got)


def type_of(x):
    return type(x).__name__.split("[")[0]


def kronecker_type(x):
    return type_of(x) == "Kronecker"


# Entries and products


@FAMILY
@KIND
@ANY
def test_a_product_is_what_numpy_makes_of_it(shapes, kind, family):
    K, n = make(shapes, kind, family)
    assert K.shape == n.shape and K.dtype == n.dtype and kronecker_type(K)
    check(mb.dense(K), n, family)
    check_dense(family(K), n, family)
    check(K.T, n.T, family)
    check(mb.adjoint(K), n.conj().T, family)
    check(mb.conj(K), n.conj(), family)
    assert kronecker_type(K.T) and kronecker_type(mb.adjoint(K)) and K.T.T.shape == K.shape
    check(copy.deepcopy(K), n, family)
    check(pickle.loads(pickle.dumps(K)), n, family)
    check(mb.adapt(mb.HostArray, K), n, mb.HostArray)
    assert K.stored_bytes == sum(p.nbytes for p in K.parts)
    for index in (0, -1, (slice(None), 1), slice(1, 3), (slice(None, None, 2), slice(0, 2)), ([0, 1], [1, 0])):
        check(K[index], n[index], family)
    with mb.allow_scalar():
        for i in range(n.shape[0]):
            assert complex(K[i, 1]) == pytest.approx(complex(n[i, 1]))
    with pytest.raises(IndexError):
        K[n.shape[0]]
    for k in (0, 1, -1):
        check(mb.band(K, k), np.diagonal(n, k), family)


@FAMILY
@KIND
@ANY
def test_products_with_vectors_matrices_and_stacks(shapes, kind, family):
    K, n = make(shapes, kind, family)
    for trailing in ((), (3,), (40,)):
        x = random((n.shape[1], *trailing), kind)
        check_dense(K @ family(x), n @ x, family)
        y = random((*trailing, n.shape[0]), kind)
        check_dense(family(y) @ K, y @ n, family)
    stack = random((2, n.shape[1], 3))
    check_dense(K @ family(stack), n @ stack, family)
    stack = random((2, 3, n.shape[0]))
    check_dense(family(stack) @ K, stack @ n, family)
    check(K @ family(random((3, n.shape[1]))).T, n @ random((3, n.shape[1])).T, family)
    check(K @ (family(random((n.shape[1],))) * 2 + 1), n @ (random((n.shape[1],)) * 2 + 1), family)
    with pytest.raises(ValueError, match="matmul: shapes"):
        K @ family(np.ones(99))


@FAMILY
@ANY
def test_products_of_products_multiply_factor_by_factor(shapes, family):
    K, n = make(shapes, "real", family)
    got = K.T @ K
    assert kronecker_type(got)
    check(got, n.T @ n, family)
    assert kronecker_type(K @ mb.Identity(n.shape[1], device=family))


@FAMILY
def test_products_with_other_structured_matrices(family):
    K, n = make("3x2", "real", family)
    a = random((6, 6))
    check(K @ mb.UpperTriangular(family(a)), n @ np.triu(a), family)
    check(mb.Symmetric(family(a)) @ K, (np.triu(a) + np.triu(a, 1).T) @ n, family)
    check(K @ mb.Fill((6, 2), 2.0, device=family), n @ np.full((6, 2), 2.0), family)
    assert type_of(K @ mb.Zeros((6, 6), device=family)) == "Zeros"
    with pytest.warns(mb.DenseFallbackWarning, match="matmul"):
        check(K @ mb.Diagonal(family(a[0])), n * a[0], family)
    two = 2 * mb.Identity(6, device=family)
    assert kronecker_type(K @ two) and kronecker_type(two @ K)
    check(two @ K, 2 * n, family)
    other, m = make("2x2x3", "real", family)
    with mb.settings.changed(dense_fallback="silent"):
        check(mb.kronecker(K, K.parts[1]) @ other, np.kron(n, mb.to_numpy(K.parts[1])) @ m, family)


STRUCTURED = {
    "identity": (lambda at: mb.Identity(3, device=at), np.eye(3)),
    "diagonal": (lambda at: mb.Diagonal(at(np.array([1.0, 2.0, 3.0]))), np.diag([1.0, 2.0, 3.0])),
    "tridiagonal": (
        lambda at: mb.Tridiagonal(at(np.ones(2)), at(np.full(3, 4.0)), at(np.full(2, 2.0))),
        np.diag(np.full(3, 4.0)) + np.diag(np.ones(2), -1) + np.diag(np.full(2, 2.0), 1),
    ),
    "upper": (lambda at: mb.UpperTriangular(at(random((3, 3)))), np.triu(random((3, 3)))),
    "symmetric": (
        lambda at: mb.Symmetric(at(random((3, 3)))),
        np.triu(random((3, 3))) + np.triu(random((3, 3)), 1).T,
    ),
    "transposed": (lambda at: at(random((3, 3))).T, random((3, 3)).T),
    "view": (lambda at: at(random((5, 6)))[1:4, ::2], random((5, 6))[1:4, ::2]),
    "pending": (lambda at: at(random((3, 3))) * 2, random((3, 3)) * 2),
    "adjoint": (lambda at: mb.adjoint(at(random((3, 3), "complex"))), random((3, 3), "complex").conj().T),
    "inverse": (lambda at: mb.inverse(at(random((3, 3)))), nla.inv(random((3, 3)))),
    "blocks": (
        lambda at: mb.BlockDiagonal(at(np.array([[2.0]])), at(random((2, 2)))),
        np.block([[np.full((1, 1), 2.0), np.zeros((1, 2))], [np.zeros((2, 1)), random((2, 2))]]),
    ),
    "sum": (
        lambda at: mb.kronecker_sum(at(np.full((1, 1), 2.0)), at(random((3, 3)))),
        random((3, 3)) + 2 * np.eye(3),
    ),
}


@FAMILY
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("which", STRUCTURED)
def test_factors_of_any_type(which, first, family):
    build, s = STRUCTURED[which]
    a = random((2, 2), seed=5)
    pair, arrays = [build(family), family(a)], [s, a]
    if not first:
        pair, arrays = pair[::-1], arrays[::-1]
    K, n = mb.kronecker(*pair), product(arrays)
    check(mb.dense(K), n, family)
    for x in (random((6,)), random((6, 3)), random((2, 6, 3))):
        check(K @ family(x), n @ x, family)
    for x in (random((6,)), random((3, 6)), random((2, 3, 6))):
        check(family(x) @ K, x @ n, family)
    check(la.solve(K, family(random((6, 3)))), nla.solve(n, random((6, 3))), family, rtol=1e-8)
    check(K.T, n.T, family)
    if which != "inverse":  # whose entries are not known one by one
        check(K[2], n[2], family)
        check(mb.trace(K), np.trace(n), family)
    check(mb.sum(K), n.sum(), family)
    check(mb.sum(K, axis=0), n.sum(axis=0), family)
    check(la.det(K), nla.det(n), family)
    check(mb.linalg.inv(K), nla.inv(n), family, rtol=1e-8)
    check(2 * K, 2 * n, family)
    assert kronecker_type(2 * K)


@FAMILY
@pytest.mark.parametrize("which", ["identity", "diagonal", "tridiagonal", "upper", "symmetric", "transposed"])
def test_decompositions_with_structured_factors(which, family):
    build, s = STRUCTURED[which]
    a = random((2, 2), seed=5)
    K, n = mb.kronecker(build(family), family(a)), np.kron(s, a)
    U, S, Vh = la.svd(K)
    np.testing.assert_allclose(mb.to_numpy(U) * mb.to_numpy(S) @ mb.to_numpy(Vh), n, atol=1e-10)
    Q, R = la.qr(K)
    np.testing.assert_allclose(mb.to_numpy(Q) @ mb.to_numpy(R), n, atol=1e-10)
    w, V = la.eig(K)
    np.testing.assert_allclose(n @ mb.to_numpy(V), mb.to_numpy(V) * mb.to_numpy(w), atol=1e-9)
    check(la.pinv(K), nla.pinv(n), family, rtol=1e-8)
    H, h = mb.kronecker_sum(build(family), family(a @ a.T)), sum_of([s, a @ a.T])
    w, V = la.eig(H)
    np.testing.assert_allclose(h @ mb.to_numpy(V), mb.to_numpy(V) * mb.to_numpy(w), atol=1e-9)
    x = random((6,))
    check(la.solve(H, family(x)), nla.solve(h, x), family, rtol=1e-8)
    assert la.expm(H).shape == (6, 6)


# Smart constructors


@FAMILY
def test_constructors_do_the_algebra(family):
    A, B = family(random((2, 2))), family(random((3, 3)))
    K = mb.kronecker(A, B)
    assert mb.kronecker(A) is A
    assert len(mb.kronecker(K, A).parts) == len(mb.Kronecker(A, K).parts) == 3
    assert K.parts[0] is A and K.rows == (2, 3)
    assert type_of(mb.kronecker(mb.Identity(2, device=family), mb.Identity(3, device=family))) == "Identity"
    assert type_of(mb.kronecker(A, mb.Zeros((2, 2), device=family))) == "Zeros"
    assert type(K) is mb.Kronecker[type(A), type(B)]
    assert issubclass(type(K), mb.Kronecker[family, family]) and issubclass(type(K), mb.types.Structured)
    assert kronecker_type(mb.kron(mb.Diagonal(family(random((2,)))), A))
    assert kronecker_type(mb.kron(K, A)) and kronecker_type(mb.kron(A, K)) and len(mb.kron(K, K).parts) == 4
    assert mb.Kronecker([[1, 2]], [[3.5]]).dtype == np.float64
    assert mb.kronecker_sum(A) is A and len(mb.kronecker_sum(mb.kronecker_sum(A, B), A).parts) == 3
    assert type_of(mb.kronecker_sum(mb.Identity(2, device=family), mb.Identity(2, device=family))) == "Diagonal"


def test_parts_are_shared():
    a = mb.ones((2, 2))
    K = mb.kronecker(a, a)
    a[0, 0] = 3.0
    assert float(K[0, 0]) == 9.0
    with pytest.raises(TypeError, match="its entries depend on each other"):
        K[0, 0] = 1.0


# Elementwise


KEEPING = {
    "negative": lambda k: -k,
    "doubled": lambda k: k * 2,
    "from_left": lambda k: 2.5 * k,
    "divided": lambda k: k / 4,
    "abs": lambda k: abs(k),
    "square": lambda k: k**2,
    "cube": lambda k: k**3,
    "inverse_square": lambda k: k**-2.0,
    "times": lambda k: k * k,
    "over": lambda k: k / (k + k),
    "sum": lambda k: k + k,
    "difference": lambda k: k - 3 * k,
    "positive": lambda k: +k,
    "nonzero": lambda k: k != 0,
}


@FAMILY
@KIND
@pytest.mark.parametrize("name", KEEPING)
@pytest.mark.parametrize("shapes", ["3x2", "mixed", "three"])
def test_elementwise_operations_that_keep_the_product(shapes, name, kind, family):
    K, n = make(shapes, kind, family)
    got = KEEPING[name](K)
    assert kronecker_type(got), type(got)
    check(got, KEEPING[name](n), family)


@FAMILY
def test_more_elementwise_operations(family):
    K, n = make("3x2", "real", family)
    check(mb.sign(K), np.sign(n), family)
    check(mb.reciprocal(K), 1 / n, family)
    assert kronecker_type(mb.reciprocal(K)) and kronecker_type(mb.sign(K))
    A, B, C = (family(random((2, 2), seed=s)) for s in range(3))
    left = mb.kronecker(A, B) + mb.kronecker(A, C)
    assert kronecker_type(left)
    check(left, np.kron(random((2, 2)), random((2, 2), seed=1) + random((2, 2), seed=2)), family)
    scaled = K * family(np.array(3.0))
    assert kronecker_type(scaled)
    check(scaled, n * 3, family)
    check(K.astype(np.float32), n.astype(np.float32), family, rtol=1e-5)
    check(K.astype(np.complex128), n.astype(np.complex128), family)
    ints = mb.kronecker(family(np.array([[1, 2]])), family(np.array([[3], [-4]])))
    m = np.kron([[1, 2]], [[3], [-4]])
    for f in (lambda a: a**2, lambda a: a * 3, lambda a: a / 3, lambda a: a**2.0, abs, lambda a: a * a):
        check(f(ints), f(m), family)


@FAMILY
def test_structure_is_given_up_where_it_must(family):
    K, n = make("3x2", "real", family)
    other = random(n.shape)
    with mb.settings.changed(dense_fallback="silent"), np.errstate(all="ignore"):
        for f, g in [
            (lambda a: a + 1, lambda a: a + 1), (mb.sin, np.sin), (mb.sqrt, np.sqrt),
            (lambda a: a**0.5, lambda a: a**0.5), (lambda a: a > 0, lambda a: a > 0),
            (lambda a: a * family(other), lambda a: a * other), (lambda a: 1 / a, lambda a: 1 / a),
            (lambda a: a // 2, lambda a: a // 2),
        ]:  # fmt: skip
            assert type_of(f(K)) == family.__name__
            check(f(K), g(n), family)
    with pytest.warns(mb.DenseFallbackWarning, match=r"mb.sin\(Kronecker\[.*288 B"):
        mb.sin(K)


# Reductions


@FAMILY
@KIND
@pytest.mark.parametrize(
    "name", ["sum", "prod", "mean", "var", "std", "any", "all", "count_nonzero", "max", "min"]
)
@pytest.mark.parametrize("shapes", ["3x2", "mixed", "three"])
def test_reductions_are_products_of_the_factors(shapes, name, kind, family):
    if name in ("max", "min"):
        kind = "real"  # the order of complex numbers is not that of factors
    K, n = make(shapes, kind, family)
    for axis in (None, 0, 1, -1, (0, 1)):
        got = getattr(mb, name)(K, axis=axis)
        check(got, getattr(np, name)(n, axis=axis), family)
        kept = getattr(mb, name)(K, axis=axis, keepdims=True)
        check(kept, getattr(np, name)(n, axis=axis, keepdims=True), family)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float32"])
def test_reductions_have_numpys_dtypes(dtype):
    a, b = np.array([[1, 0], [1, 1]], dtype), np.array([[1, 1, 0]], dtype)
    K, n = mb.kronecker(a, b), np.kron(a, b)
    for name in ("sum", "prod", "any", "all", "max", "min", "mean", "count_nonzero"):
        for axis in (None, 0, 1):
            assert_same(getattr(mb, name)(K, axis=axis), np.asarray(getattr(np, name)(n, axis=axis)), rtol=1e-6)
    assert_same(mb.sum(K, dtype=np.float64), np.asarray(n.sum(dtype=np.float64)))
    assert_same(mb.trace(K), np.asarray(np.trace(n)))
    x = np.ones(6, dtype)
    assert_same(K @ mb.HostArray(x), n @ x)


def test_extremes_of_factors_of_both_signs():
    a, b = np.array([[-3.0, 1.0]]), np.array([[-5.0], [2.0]])
    K, n = mb.kronecker(a, b, -a), np.kron(np.kron(a, b), -a)
    for axis in (None, 0, 1):
        assert_same(mb.max(K, axis=axis), np.asarray(n.max(axis=axis)))
        assert_same(mb.min(K, axis=axis), np.asarray(n.min(axis=axis)))


def test_variances_do_not_cancel():
    a = 1e8 + random((20, 20))
    K, n = mb.kronecker(a, a), np.kron(a, a)
    assert float(mb.var(K)) == pytest.approx(n.var(), rel=1e-6)
    assert float(mb.var(K, correction=1)) == pytest.approx(n.var(ddof=1), rel=1e-6)


# Norms


@FAMILY
@KIND
@pytest.mark.parametrize("shapes", ["3x2", "mixed", "three"])
def test_norms_of_all_entries(shapes, kind, family):
    K, n = make(shapes, kind, family)
    flat = n.reshape(-1)
    for p in (0, 1, 2, 3, 0.5, INF, -INF, -1):
        check(mb.norm(K, p), nla.norm(flat, p), family)
        check(la.vector_norm(K, ord=p), nla.norm(flat, p), family)
        for axis in (0, 1):
            check(la.vector_norm(K, ord=p, axis=axis), nla.norm(n, p, axis=axis), family)
            check(la.norm(K, p, axis=axis, keepdims=True), nla.norm(n, p, axis=axis, keepdims=True), family)
    check(la.vector_norm(K, keepdims=True), nla.norm(flat).reshape(1, 1), family)


@FAMILY
@KIND
@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, -1, 2, -2, INF, -INF])
@pytest.mark.parametrize("shapes", ["3x2", "mixed", "tall", "three"])
def test_norms_of_matrices(shapes, order, kind, family):
    K, n = make(shapes, kind, family)
    check(la.norm(K, order), nla.norm(n, order), family)
    check(la.norm(K, order, axis=(1, 0)), nla.norm(n, order, axis=(1, 0)), family)
    if order is not None:
        check(la.matrix_norm(K, ord=order, keepdims=True), nla.norm(n, order, keepdims=True), family)
        if n.shape[0] == n.shape[1] and K.all_square:
            check(la.cond(K, order), nla.cond(n, order), family, rtol=1e-8)


def test_norms_of_what_would_be_ten_thousand_gigabytes():
    a, b = random((1000, 1000)), random((1000, 1000), seed=1)
    A, B = mb.HostArray(a), mb.HostArray(b)
    K = mb.kronecker(A, B)
    assert K.shape == (10**6, 10**6)
    x = mb.ones(10**6)
    with mb.count() as c:
        for p in (1, 2, 3, INF):
            got = float(mb.norm(K, p))
            assert got == pytest.approx(nla.norm(a.ravel(), p) * nla.norm(b.ravel(), p), rel=1e-12)
        assert float(la.norm(K)) == pytest.approx(nla.norm(a) * nla.norm(b))
        assert float(la.norm(K, 1)) == pytest.approx(nla.norm(a, 1) * nla.norm(b, 1))
        assert float(la.norm(K, INF)) == pytest.approx(nla.norm(a, INF) * nla.norm(b, INF))
        assert float(mb.sum(K)) == pytest.approx(a.sum() * b.sum())
        assert float(mb.max(mb.abs(K))) == pytest.approx(np.abs(a).max() * np.abs(b).max())
    assert c.bytes_written < 50_000 and c.transfers == 0
    with mb.count() as c:
        y = mb.materialize(K @ x)
    assert c.bytes_written <= 4 * x.nbytes and c.transfers == 0
    assert_same(y[:3], (b.sum(axis=1) * a.sum(axis=1)[0])[:3], rtol=1e-9)


@FAMILY
def test_what_is_written_is_of_the_size_of_the_factors(family):
    n = 40
    A, B = family(random((n, n))), family(random((n, n), seed=1))
    K = mb.kronecker(A, B)
    for f in (
        mb.norm, mb.sum, mb.max, mb.var, mb.trace, la.norm, la.det, la.slogdet, la.inv, la.pinv, la.eig, la.qr,
        la.matrix_rank, la.cond, la.svdvals, la.svd, la.eigvals, lambda k: la.norm(k, 2),
        lambda k: la.norm(k, "nuc"), lambda k: k * 2, lambda k: k @ k,
    ):  # fmt: skip
        with mb.count() as c:
            f(K)
        assert c.bytes_written <= 60 * 8 * n * n < 8 * n**4, f


# Linear algebra


@FAMILY
@KIND
@OF_SQUARE
def test_linear_algebra_of_square_factors(shapes, kind, family):
    K, n = make(shapes, kind, family)
    size = len(n)
    for b in (random((size,), kind), random((size, 3), kind), random((2, size, 2), kind)):
        check_dense(la.solve(K, family(b)), nla.solve(n, b), family, rtol=1e-8)
    got = la.solve(K, K.T)
    assert kronecker_type(got)
    check(got, nla.solve(n, n.T), family, rtol=1e-8)
    check(la.solve(K, mb.Identity(size, device=family)), nla.inv(n), family, rtol=1e-8)
    check(la.det(K), nla.det(n), family)
    for mine, theirs in zip(la.slogdet(K), nla.slogdet(n), strict=True):
        check(mine, theirs, family)
    for f, g in [(la.inv, nla.inv), (la.pinv, nla.pinv)]:
        assert kronecker_type(f(K))
        check(f(K), g(n), family, rtol=1e-8)
    for power in (-2, 0, 1, 3):
        assert kronecker_type(la.matrix_power(K, power))
        check(la.matrix_power(K, power), nla.matrix_power(n, power), family, rtol=1e-8)
    values = mb.to_numpy(la.eigvals(K))
    for value in nla.eigvals(n):
        assert np.abs(values - value).min() < 1e-9
    w, V = la.eig(K)
    assert kronecker_type(V)
    np.testing.assert_allclose(n @ mb.to_numpy(V), mb.to_numpy(V) * mb.to_numpy(w), atol=1e-9)
    check(la.trace(K), np.trace(n), family)
    check(la.trace(K, offset=1), np.trace(n, 1), family)
    check(mb.trace(K, 1), np.trace(n, 1), family)


@FAMILY
@KIND
@OF_SQUARE
def test_triangular_factors_and_factorisations(shapes, kind, family):
    K, n = make(shapes, kind, family)
    P, L, U = map(mb.to_numpy, la.lu(K))
    np.testing.assert_allclose(P @ L @ U, n, atol=1e-11)
    np.testing.assert_array_equal(np.triu(L, 1), 0)
    np.testing.assert_array_equal(np.tril(U, -1), 0)
    assert len(la.lu(K, permute_l=True)) == 2
    F = la.factorize(K)
    for b in (random((len(n),), kind), random((len(n), 3)), random((2, len(n), 2))):
        check_dense(F.solve(family(b)), nla.solve(n, b), family, rtol=1e-8)
        check_dense(la.solve(F, family(b)), nla.solve(n, b), family, rtol=1e-8)
    assert kronecker_type(F.inv())
    check(F.inv(), nla.inv(n), family, rtol=1e-8)
    check(F.det(), nla.det(n), family)
    check(F.slogdet().logabsdet, nla.slogdet(n)[1], family)
    moved = mb.adapt(mb.HostArray, F)
    assert moved.place == mb.HostArray.home and "⊗" in repr(F)
    check(moved.solve(random((len(n),))), nla.solve(n, random((len(n),))), mb.HostArray, rtol=1e-8)
    with pytest.raises(la.LinAlgError, match="must be equal"):
        F.solve(family(np.ones(99)))


@FAMILY
@KIND
@ANY
def test_singular_values(shapes, kind, family):
    K, n = make(shapes, kind, family)
    check_dense(la.svdvals(K), nla.svd(n, compute_uv=False), family)
    check(la.svd(K, compute_uv=False), nla.svd(n, compute_uv=False), family)
    assert int(la.matrix_rank(K)) == nla.matrix_rank(n)
    assert int(la.matrix_rank(K, tol=1e9)) == 0 and int(la.matrix_rank(K, rtol=0.99)) == 1
    check(la.pinv(K), nla.pinv(n), family, rtol=1e-8)
    for full in (True, False):
        U, S, Vh = la.svd(K, full_matrices=full)
        u, s, vh = nla.svd(n, full_matrices=full)
        assert U.shape == u.shape and Vh.shape == vh.shape
        check(S, s, family)
        u, vh, k = mb.to_numpy(U), mb.to_numpy(Vh), min(n.shape)
        np.testing.assert_allclose((u[:, :k] * s) @ vh[:k], n, atol=1e-10)
        np.testing.assert_allclose(u.conj().T @ u, np.eye(u.shape[1]), atol=1e-10)
        np.testing.assert_allclose(vh @ vh.conj().T, np.eye(vh.shape[0]), atol=1e-10)
        x, y = random((vh.shape[1],), kind), random((u.shape[0], 2), kind)
        check(Vh @ family(x), vh @ x, family)
        check(mb.adjoint(U) @ family(y), u.conj().T @ y, family)
        check(family(y.T) @ U, y.T @ u, family)
        check(U[:, 0], u[:, 0], family)
    expected = nla.cond(n)
    if expected < 1e12:
        check(la.cond(K), expected, family)
    else:
        assert np.isinf(float(la.cond(K)))


@FAMILY
@KIND
@OF_SQUARE
def test_hermitian_factors(shapes, kind, family):
    H, h = definite(shapes, kind, family)
    for uplo in "LU":
        check_dense(la.eigvalsh(H, UPLO=uplo), nla.eigvalsh(h), family)
    w, V = la.eigh(H)
    assert type_of(V) == "Reordered"
    w, v = mb.to_numpy(w), mb.to_numpy(V)
    np.testing.assert_allclose(w, nla.eigvalsh(h))
    np.testing.assert_allclose(h @ v, v * w, atol=1e-9)
    x = random((len(h), 2), kind)
    check(V @ (family(w)[:, None] * (mb.adjoint(V) @ family(x))), h @ x, family, rtol=1e-9)
    for upper in (False, True):
        L = la.cholesky(H, upper=upper)
        assert kronecker_type(L) and type_of(L.parts[0]) == ("UpperTriangular" if upper else "LowerTriangular")
        expected = nla.cholesky(h).conj().T if upper else nla.cholesky(h)
        check(L, expected, family)
        check(la.solve(L, family(x)), nla.solve(expected, x), family, rtol=1e-9)
    U, P = la.polar(H)
    check(P, h, family)
    check(U, np.eye(len(h), dtype=h.dtype), family)


@FAMILY
@KIND
@pytest.mark.parametrize("shapes", [*SQUARE, "tall", "wide"])
def test_orthogonal_factors(shapes, kind, family):
    K, n = make(shapes, kind, family)
    Q, R = la.qr(K)
    assert kronecker_type(Q) and kronecker_type(R)
    assert Q.shape == nla.qr(n)[0].shape
    q, r = mb.to_numpy(Q), mb.to_numpy(R)
    np.testing.assert_allclose(q @ r, n, atol=1e-11)
    np.testing.assert_allclose(np.tril(r, -1), 0, atol=1e-12)
    np.testing.assert_allclose(q.conj().T @ q, np.eye(q.shape[1]), atol=1e-11)
    assert la.qr(K, mode="r").shape == R.shape


@FAMILY
@pytest.mark.parametrize("shapes", ["3x2", "tall", "wide", "mixed"])
def test_least_squares(shapes, family):
    K, n = make(shapes, "real", family)
    for b in (random((n.shape[0],)), random((n.shape[0], 2))):
        got, expected = la.lstsq(K, family(b)), nla.lstsq(n, b)
        check(got.x, expected[0], family, rtol=1e-8)
        check(got.residuals, expected[1], family, rtol=1e-8)
        assert int(got.rank) == expected[2]
        check(got.s, expected[3], family)


@FAMILY
def test_oblong_factors_make_singular_squares(family):
    K, n = make("square_of_oblong", "real", family)
    assert n.shape == (6, 6)
    assert float(la.det(K)) == 0.0 and float(la.slogdet(K).logabsdet) == -INF
    assert np.isinf(float(la.cond(K))) and np.isinf(float(la.cond(K, 1))) and float(la.norm(K, -2)) == 0.0
    for f in (la.inv, lambda k: la.solve(k, family(np.ones(6))), mb.inverse):
        with pytest.raises(la.LinAlgError, match="is singular"):
            f(K)


BAD = [
    (lambda: mb.Kronecker(), TypeError, "two or more matrices"),
    (lambda: mb.Kronecker(np.eye(2)), TypeError, "1 came"),
    (lambda: mb.kronecker(), ValueError, "at least one matrix"),
    (lambda: mb.kronecker(np.ones(3), np.eye(2)), ValueError, r"a factor has shape \(3,\).*x\[:, None\]"),
    (lambda: mb.KroneckerSum(np.eye(2)), TypeError, "two or more"),
    (lambda: mb.kronecker_sum(), ValueError, "at least one square matrix"),
    (lambda: mb.kronecker_sum(np.ones((2, 3))), ValueError, "square"),
    (lambda: mb.kronecker_sum(np.eye(2), np.ones((2, 3))), ValueError, "takes a square matrix"),
    (lambda: mb.kronecker(mb.HostArray(np.eye(2)), mb.RefArray(np.eye(2))), ValueError, "different places"),
    (lambda: mb.kronecker(np.eye(2), [["a"]]), TypeError, "Convert"),
    (lambda: la.det(mb.kronecker(np.ones((2, 3)), np.eye(2))), la.LinAlgError, "square matrices"),
    (lambda: la.inv(mb.kronecker(np.ones((2, 3)), np.eye(2))), la.LinAlgError, "square matrices"),
    (lambda: la.eigvals(mb.kronecker(np.ones((2, 3)), np.eye(2))), la.LinAlgError, "square matrices"),
    (lambda: la.cholesky(mb.kronecker(-np.eye(2), np.eye(2))), la.LinAlgError, "not positive definite"),
    (lambda: la.inv(mb.kronecker(np.ones((2, 2)), np.eye(2))), la.LinAlgError, "is singular"),
    (lambda: la.solve(mb.kronecker(np.zeros((2, 2)), np.eye(2)), np.ones(4)), la.LinAlgError, "is singular"),
    (lambda: la.solve(mb.kronecker(np.eye(2), np.eye(2)), np.ones(3)), la.LinAlgError, "they must be equal"),
    (lambda: mb.kronecker(np.eye(2), np.eye(2)) @ np.ones(3), ValueError, "do not fit"),
    (lambda: la.norm(mb.kronecker(np.eye(2), np.eye(2)), "no"), ValueError, "matrix_norm"),
    (lambda: la.norm(mb.kronecker(np.eye(2), np.eye(2)), axis=(0, 0)), ValueError, "different"),
    (lambda: mb.sum(mb.kronecker(np.eye(2), np.eye(2)), axis=2), ValueError, "axis 2"),
    (lambda: mb.ext.Reordered(np.eye(2), np.array([0, 5])), IndexError, "out of bounds"),
    (lambda: mb.ext.Reordered(np.eye(2), np.array([0.5])), ValueError, "integers"),
    (lambda: mb.ext.Reordered(np.eye(2), np.array([0]), axis=2), ValueError, "axis"),
]


@pytest.mark.parametrize("bad, error, message", BAD)
def test_bad_input(bad, error, message):
    with pytest.raises(error, match=message):
        bad()


def test_empty_factors():
    K = mb.kronecker(np.zeros((0, 2)), np.ones((3, 2)))
    assert K.shape == (0, 4)
    assert (K @ mb.ones(4)).shape == (0,) and (mb.ones((2, 0)) @ K).shape == (2, 4)
    assert float(mb.norm(K)) == 0.0 and mb.to_numpy(K).shape == (0, 4)
    with mb.settings.changed(dense_fallback="silent"):
        assert_same(mb.sum(K, axis=0), np.zeros(4))


# Sums


def sum_of(arrays):
    sizes = [len(a) for a in arrays]
    return functools.reduce(
        np.add,
        [product([a if m == k else np.eye(n) for m, n in enumerate(sizes)]) for k, a in enumerate(arrays)],
    )


SUMS = pytest.mark.parametrize("sizes", [(3, 2), (2, 2, 3), (1, 4)])
SYMMETRY = pytest.mark.parametrize("symmetric", [False, True])


def make_sum(sizes, kind, symmetric, family):
    arrays = [random((n, n), kind, i) for i, n in enumerate(sizes)]
    if symmetric:
        arrays = [a + a.conj().T for a in arrays]
    return mb.KroneckerSum(*map(family, arrays)), sum_of(arrays)


@FAMILY
@KIND
@SUMS
def test_sums_are_what_numpy_makes_of_them(sizes, kind, family):
    S, n = make_sum(sizes, kind, False, family)
    assert S.dtype == n.dtype
    check(mb.dense(S), n, family)
    check(S.T, n.T, family)
    check(mb.adjoint(S), n.conj().T, family)
    check(pickle.loads(pickle.dumps(S)), n, family)
    for index in (1, (slice(None), 0), slice(0, 2), ([0, 1], [1, 0])):
        check(S[index], n[index], family)
    for x in (random((len(n),)), random((len(n), 2), kind), random((2, len(n), 40))):
        check_dense(S @ family(x), n @ x, family)
    for x in (random((len(n),)), random((2, len(n)), kind), random((2, 3, len(n)))):
        check_dense(family(x) @ S, x @ n, family)
    for axis in (None, 0, 1):
        for keepdims in (False, True):
            for name in ("sum", "mean"):
                got = getattr(mb, name)(S, axis=axis, keepdims=keepdims)
                check(got, getattr(np, name)(n, axis=axis, keepdims=keepdims), family)
    for p in (1, 2, 3, INF):
        check(mb.norm(S, p), nla.norm(n.reshape(-1), p), family)
        check(la.vector_norm(S, ord=p), nla.norm(n.reshape(-1), p), family)
    for order in (None, "fro", 1, -1, INF, -INF):
        check(la.norm(S, order), nla.norm(n, order), family)
        check(la.norm(S, order, axis=(1, 0)), nla.norm(n, order, axis=(1, 0)), family)
    for k in (0, 1, -1):
        check(mb.trace(S, k), np.trace(n, k), family)
        check(la.trace(S, offset=k), np.trace(n, k), family)
    I, eye = mb.Identity(len(n), device=family), np.eye(len(n))
    for got, expected in [
        (S * 2, n * 2), (2 * S, n * 2), (S / 4, n / 4), (-S, -n), (S + S, n + n), (S - 2 * S, -n),
        (S + I, n + eye), (S - 3 * I, n - 3 * eye), (I + S, n + eye),
    ]:  # fmt: skip
        assert type_of(got) == "KroneckerSum"
        check(got, expected, family)


@FAMILY
@KIND
@SYMMETRY
@SUMS
def test_linear_algebra_of_sums(sizes, symmetric, kind, family):
    scipy_linalg = pytest.importorskip("scipy.linalg")
    S, n = make_sum(sizes, kind, symmetric, family)
    for b in (random((len(n),)), random((len(n), 2), kind), random((2, len(n), 3))):
        check_dense(la.solve(S, family(b)), nla.solve(n, b), family, rtol=1e-7)
    check(la.solve(S, mb.Identity(len(n), device=family)), nla.inv(n), family, rtol=1e-7)
    check(la.inv(S), nla.inv(n), family, rtol=1e-7)
    check(la.det(S), nla.det(n), family)
    for mine, theirs in zip(la.slogdet(S), nla.slogdet(n), strict=True):
        check(mine, theirs, family)
    values = mb.to_numpy(la.eigvals(S))
    for value in nla.eigvals(n):
        assert np.abs(values - value).min() < 1e-8
    w, V = la.eig(S)
    np.testing.assert_allclose(n @ mb.to_numpy(V), mb.to_numpy(V) * mb.to_numpy(w), atol=1e-8)
    E = la.expm(S)
    assert kronecker_type(E)
    check(E, scipy_linalg.expm(n), family, rtol=1e-9)
    if symmetric:
        check_dense(la.eigvalsh(S), nla.eigvalsh(n), family)
        check(la.svdvals(S), nla.svd(n, compute_uv=False), family)
        assert int(la.matrix_rank(S)) == nla.matrix_rank(n)
        for order in (2, -2, "nuc"):
            check(la.norm(S, order), nla.norm(n, order), family)
        for p in (None, 2, -2):
            check(la.cond(S, p), nla.cond(n, p), family, rtol=1e-7)
        w, V = la.eigh(S)
        np.testing.assert_allclose(n @ mb.to_numpy(V), mb.to_numpy(V) * mb.to_numpy(w), atol=1e-9)


@FAMILY
def test_products_with_identities_add_up_to_sums(family):
    a, b, c = random((2, 2)), random((3, 3)), random((2, 2), seed=1)
    A, B, C = family(a), family(b), family(c)
    I, J = mb.Identity(2, device=family), mb.Identity(3, device=family)
    got = mb.kronecker(A, J) + mb.kronecker(I, B)
    assert type_of(got) == "KroneckerSum"
    check(got, sum_of([a, b]), family)
    check(mb.kronecker(A, J) - mb.kronecker(I, B), sum_of([a, -b]), family)
    three = mb.kronecker(A, J, I) + mb.kronecker(I, B, I)
    assert type_of(three) == "KroneckerSum"
    check(three, sum_of([a, b, 0 * c]), family)
    x = random((12,))
    check((three + mb.kronecker_sum(0 * A, 0 * B, C)) @ family(x), sum_of([a, b, c]) @ x, family)


def test_a_laplacian_of_a_million_points():
    n = 1000
    D = mb.Tridiagonal(mb.Fill(n - 1, -1.0), mb.Fill(n, 2.0), mb.Fill(n - 1, -1.0))
    L = mb.kronecker_sum(D, D)
    assert L.shape == (n * n, n * n)
    u = mb.HostArray(random((n * n,)))
    got = mb.to_numpy(L @ u).reshape(n, n)
    padded = np.pad(mb.to_numpy(u).reshape(n, n), 1)
    expected = (
        4 * padded[1:-1, 1:-1] - padded[2:, 1:-1] - padded[:-2, 1:-1] - padded[1:-1, 2:] - padded[1:-1, :-2]
    )
    np.testing.assert_allclose(got, expected, atol=1e-12)


@FAMILY
@SYMMETRY
def test_singular_sums_say_so(symmetric, family):
    a = np.array([[1.0, 0.0 if symmetric else 1.0], [0.0, 2.0]])
    S = mb.kronecker_sum(family(a), family(-a.T))
    for f in (lambda s: la.solve(s, family(np.ones(4))), la.inv):
        with pytest.raises(la.LinAlgError, match="the matrix is singular"):
            f(S)
    with pytest.raises(la.LinAlgError, match="they must be equal"):
        la.solve(S, family(np.ones(5)))


def test_solving_sums_without_scipy(monkeypatch):
    from mirabelle.backends.host import kronecker

    monkeypatch.setattr(kronecker, "scipy_if_there", lambda: None)
    for sizes in ((3, 2), (2, 2, 3)):
        S, n = make_sum(sizes, "real", False, mb.HostArray)
        b = random((len(n), 2))
        check(la.solve(S, mb.HostArray(b)), nla.solve(n, b), mb.HostArray, rtol=1e-8)


def test_what_has_no_rule_for_a_sum_says_so():
    S, n = make_sum((3, 2), "real", False, mb.HostArray)
    for f in (mb.max, lambda s: la.norm(s, 2), la.svdvals, lambda s: s * s):
        with pytest.warns(mb.DenseFallbackWarning, match="KroneckerSum"):
            f(S)
    with mb.settings.changed(dense_fallback="silent"):
        assert_same(mb.max(S), np.asarray(n.max()), rtol=1e-13)


# What people see


def test_what_people_see():
    A = mb.HostArray([[1.0, 2.0], [3.0, 4.0]])
    assert (
        str(mb.kronecker(mb.Identity(2), A))
        == "[[1. 2.  .  .]\n [3. 4.  .  .]\n [ .  . 1. 2.]\n [ .  . 3. 4.]]"
    )
    big = mb.kronecker(mb.ones((100, 50)), mb.Identity(100))
    assert repr(big) == (
        "Kronecker[HostArray[float64, 2], Identity[Ones[HostArray[float64, 1]]]](shape=(10000, 5000), "
        "factors 100x50 ⊗ 100x100, parts: HostArray[float64, 2] of shape (100, 50), "
        "Identity[Ones[HostArray[float64, 1]]](shape=(100, 100), "
        "parts: Ones[HostArray[float64, 1]](shape=(100,))))"
    )
    assert "100x50" in big._repr_html_()
    assert "of orders 20 ⊕ 10" in mb.kronecker_sum(mb.ones((20, 20)), mb.ones((10, 10)))._repr_html_()


# Columns and rows in another order


@FAMILY
@KIND
@pytest.mark.parametrize("axis", [0, 1])
def test_columns_and_rows_in_another_order(axis, kind, family):
    a, order = random((4, 4), kind), np.array([2, 0, 3])
    R, n = mb.ext.Reordered(family(a), family(order), axis), np.take(a, order, axis)
    assert R.shape == n.shape and R.dtype == n.dtype and R.axis == axis
    check(mb.dense(R), n, family)
    check(pickle.loads(pickle.dumps(R)), n, family)
    check(mb.adapt(mb.HostArray, R), n, mb.HostArray)
    for got, expected in [
        (R.T, n.T), (mb.adjoint(R), n.conj().T), (R * 2, n * 2), (mb.sin(R), np.sin(n)), (mb.copy(R), n),
        (R.astype(np.complex64), n.astype(np.complex64)),
    ]:  # fmt: skip
        assert type_of(got) == "Reordered"
        check(got, expected, family, rtol=1e-6)
    for x in (random((n.shape[1],)), random((n.shape[1], 2), kind), random((2, n.shape[1], 3))):
        check(R @ family(x), n @ x, family)
    for x in (random((n.shape[0],)), random((2, n.shape[0]), kind), random((2, 3, n.shape[0]))):
        check(family(x) @ R, x @ n, family)
    for index in (0, (slice(None), 1), (slice(None, None, -1), slice(1, None))):
        check(R[index], n[index], family)


@pytest.mark.parametrize("array", [mb.HostArray, mb.RefArray])
@pytest.mark.filterwarnings("ignore::mirabelle.dispatch.errors.DenseFallbackWarning")
def test_hermitian_products_of_factors_that_are_not(array):
    skew = np.array([[0.0, 2.0, -1.0], [-2.0, 0.0, 3.0], [1.0, -3.0, 0.0]])
    dense = np.kron(skew, skew)
    K = mb.Kronecker(array(skew), array(skew))
    np.testing.assert_allclose(mb.to_numpy(mb.linalg.eigvalsh(K)), np.linalg.eigvalsh(dense), atol=1e-12)
    w, v = mb.linalg.eigh(K)
    v = mb.to_numpy(mb.dense(v))
    np.testing.assert_allclose(v * mb.to_numpy(w) @ v.T, dense, atol=1e-12)
    below = -np.array([[2.0, 1.0], [1.0, 3.0]])
    lower = mb.linalg.cholesky(mb.Kronecker(array(below), array(below)))
    np.testing.assert_allclose(
        mb.to_numpy(mb.dense(lower)), np.linalg.cholesky(np.kron(below, below)), rtol=1e-12
    )
