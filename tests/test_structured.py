"""Structured arrays against dense NumPy: values, the type of the result, place, and what is not made dense.

A fallback to dense is a warning, and pytest makes it an error: a row of a table here that passes
has a rule.
"""

import copy
import itertools
import math
import pickle
import warnings

import numpy as np
import pytest
import scipy.linalg
from compare import assert_same, contents

import mirabelle as mb
from mirabelle.arraytypes.structured import fallback

N = 5


@pytest.fixture(autouse=True)
def tell_again():
    fallback.forget()


FAMILIES = [mb.HostArray, mb.RefArray, mb.CuArray]
RNG = np.random.default_rng(3)
V, U, W = RNG.uniform(0.5, 2, N), RNG.uniform(0.5, 2, N - 1), RNG.uniform(-2, -0.5, N - 1)
A, B = RNG.uniform(0.5, 2, (N, N)), RNG.uniform(0.5, 2, (N, N))
Z = A + 1j * B
SPARSE = np.where(RNG.uniform(size=(N, N)) < 0.3, A, 0) + np.diag(V * [0, 2, 2, 2, 2]) + np.eye(N)[::-1]


def triangle(a, upper, unit=False):
    t = np.triu(a) if upper else np.tril(a)
    return t - np.diag(np.diag(t)) + np.eye(len(a)) if unit else t


def hermitian(a):
    upper = np.triu(a, 1)
    return upper + upper.conj().T + np.diag(np.diag(a).real)


# The registry: name → (how to make one at a place, what it is in NumPy).
KINDS = {
    "diagonal": (lambda at: mb.Diagonal(at(V)), np.diag(V)),
    "upper_bidiagonal": (lambda at: mb.Bidiagonal(at(V), at(U)), np.diag(V) + np.diag(U, 1)),
    "lower_bidiagonal": (lambda at: mb.Bidiagonal(at(V), at(U), "L"), np.diag(V) + np.diag(U, -1)),
    "tridiagonal": (
        lambda at: mb.Tridiagonal(at(W), at(V), at(U)),
        np.diag(V) + np.diag(U, 1) + np.diag(W, -1),
    ),
    "upper": (lambda at: mb.UpperTriangular(at(A)), np.triu(A)),
    "lower": (lambda at: mb.LowerTriangular(at(A)), np.tril(A)),
    "unit_upper": (lambda at: mb.UnitUpperTriangular(at(A)), triangle(A, True, True)),
    "unit_lower": (lambda at: mb.UnitLowerTriangular(at(A)), triangle(A, False, True)),
    "symmetric": (lambda at: mb.Symmetric(at(A)), np.triu(A) + np.triu(A, 1).T),
    "symmetric_l": (lambda at: mb.Symmetric(at(A), "L"), np.tril(A) + np.tril(A, -1).T),
    "hermitian": (lambda at: mb.Hermitian(at(Z)), hermitian(Z)),
    "hermitian_l": (lambda at: mb.Hermitian(at(Z), "L"), hermitian(Z.conj().T)),
    "adjoint": (lambda at: mb.adjoint(at(Z)), Z.conj().T),
    "conj": (lambda at: mb.types.Conj(at(Z)), Z.conj()),
    "identity": (lambda at: mb.Identity(N, device=at), np.eye(N)),
    "fill": (lambda at: mb.Fill((N, N), 2.5, device=at), np.full((N, N), 2.5)),
    "fill_of_array": (lambda at: mb.Fill((N, N), at(np.array(2.5))), np.full((N, N), 2.5)),
    "zeros": (lambda at: mb.Zeros((N, N), device=at), np.zeros((N, N))),
    "ones": (lambda at: mb.Ones((N, N), device=at), np.ones((N, N))),
    "diagonal_of_view": (lambda at: mb.Diagonal(at(np.repeat(V, 2))[::2]), np.diag(V)),
    "upper_of_transpose": (lambda at: mb.UpperTriangular(at(A).T), np.triu(A.T)),
    "pending": (lambda at: mb.Diagonal(at(V) * 2), np.diag(V * 2)),
    "kronecker": (lambda at: mb.Kronecker(at(A[:1, :1]), at(B)), np.kron(A[:1, :1], B)),
    "kronecker_sum": (lambda at: mb.KroneckerSum(at(A[:1, :1]), at(B)), A[0, 0] * np.eye(N) + B),
    "blocks": (
        lambda at: mb.BlockDiagonal(at(A[:2, :2]), at(B[:3, :3])),
        np.block([[A[:2, :2], np.zeros((2, 3))], [np.zeros((3, 2)), B[:3, :3]]]),
    ),
    "low_rank": (lambda at: mb.LowRank(at(A), at(B)), A @ B),
    "concat": (lambda at: mb.Concat(at(A[:2]), at(B[2:])), np.concatenate([A[:2], B[2:]])),
    "toeplitz": (lambda at: mb.Toeplitz(at(V), at(A[0])), scipy.linalg.toeplitz(V, A[0])),
    "circulant": (lambda at: mb.Circulant(at(V)), scipy.linalg.circulant(V)),
    "csr": (lambda at: mb.CSR(at(SPARSE)), SPARSE),
}
KIND = pytest.mark.parametrize("kind", KINDS)
FAMILY = pytest.mark.parametrize("family", FAMILIES)
# Those whose dense form is made in memory when there is no rule.
STORED = [k for k in KINDS if "diagonal" in k or k in ("identity", "pending")]


def make(kind, family):
    build, expected = KINDS[kind]
    x = build(family)
    assert isinstance(x, mb.types.Structured)
    assert x.place == family.home and x.shape == expected.shape and x.dtype == expected.dtype
    return x, expected


def check(got, expected, family, rtol=1e-13):
    """Equal values in the same place, and a type that says so."""
    if isinstance(expected, np.generic):
        expected = np.asarray(expected)
    assert isinstance(got, mb.AbstractArray) and got.place == family.home
    assert_same(got, expected, rtol=rtol, atol=1e-14)


def type_of(x):
    return type(x).__name__.split("[")[0]


# What every kind can do


@FAMILY
@KIND
def test_what_every_structured_array_can_do(kind, family):
    x, n = make(kind, family)
    check(mb.dense(x), n, family)
    assert isinstance(mb.dense(x), mb.types.DenseArray)
    assert type(family(x)) is family[n.dtype, 2]
    check(family(x), n, family)
    assert_same(mb.to_numpy(x), n, rtol=1e-15)
    check(x.T, n.T, family)
    check(x.T.T, n, family)
    check(mb.adjoint(x), n.conj().T, family)
    check(mb.similar(x, dtype=mb.int32, shape=3) * 0, np.zeros(3, np.int32), family)
    assert type(mb.similar(x)) is family[n.dtype, 2]
    assert mb.copy(x).shape == x.shape and type_of(mb.copy(x)) == type_of(x)
    check(copy.deepcopy(x), n, family)
    again = pickle.loads(pickle.dumps(x))
    assert type(again) is type(x)
    check(again, n, family)
    assert mb.materialize(x) is x
    assert mb.size(x) == N * N if hasattr(mb, "size") else x.size == N * N
    assert x.stored_bytes <= 2 * x.nbytes
    y = mb.zeros((N, N), dtype=n.dtype, device=family)
    y[...] = x
    check(y, n, family)


@KIND
def test_adapting_moves_the_parts(kind):
    x, n = make(kind, mb.HostArray)
    y = mb.adapt(mb.RefArray, x)
    assert type_of(y) == type_of(x) and y.place == mb.RefArray.home
    check(y, n, mb.RefArray)
    z = mb.adapt(mb.HostArray, y)
    check(z, n, mb.HostArray)
    assert mb.adapt(mb.HostArray["c16"], x).dtype == np.complex128


@FAMILY
@KIND
def test_casting_keeps_the_type(kind, family):
    x, n = make(kind, family)
    wide = x.astype(np.complex128)
    check(wide, n.astype(np.complex128), family)
    if n.dtype.kind != "c":
        narrow = x.astype(np.float32)
        assert type_of(narrow) == type_of(x)
        check(narrow, n.astype(np.float32), family, rtol=1e-6)


@FAMILY
@KIND
def test_elements_rows_and_blocks(kind, family):
    x, n = make(kind, family)
    with mb.allow_scalar():
        for i, j in [(0, 0), (1, 2), (2, 1), (4, 4), (-1, 0), (0, -1), (3, 4)]:
            got = x[i, j]
            assert got.shape == () and got.place == family.home
            np.testing.assert_allclose(complex(got), complex(n[i, j]), rtol=1e-15)
    for index in [
        1, -1, (slice(None), 2), slice(1, 4), (slice(1, 4), slice(1, 4)), (slice(None), slice(2, None)),
        (slice(None, None, 2), slice(None, None, 2)), (..., 0), (None, 1), [0, 2], ([0, 1], [1, 1]),
        (slice(None, None, -1),), (slice(2, 2), slice(2, 2)),
    ]:  # fmt: skip
        check(x[index], n[index], family)
    for index in [7, (0, 9), (0, 0, 0), 1.5]:
        with pytest.raises(IndexError):
            x[index]


@FAMILY
@KIND
def test_reading_what_no_rule_is_for(kind, family):
    x, n = make(kind, family)
    with mb.settings.changed(dense_fallback="silent"):
        check(mb.exp(x), np.exp(n), family)
        check(x + 1, n + 1, family)
        check(x.reshape(-1), n.reshape(-1), family)
        check(mb.broadcast_to(x, (2, N, N)), np.broadcast_to(n, (2, N, N)), family)
        check(mb.var(x), np.var(n), family)
        check(
            x[None] * A if family is mb.HostArray else x * 1,
            n[None] * A if family is mb.HostArray else n,
            family,
        )
        check(mb.sum(x, axis=0), n.sum(axis=0), family)
        for a in (0, 1, None):
            if n.dtype.kind != "c":
                check(mb.max(x, axis=a), n.max(axis=a), family)
                check(mb.min(x, axis=a, keepdims=True), n.min(axis=a, keepdims=True), family)
                check(mb.all(x > 0, axis=a), (n > 0).all(axis=a), family)
            check(mb.sum(x, axis=a, keepdims=True), n.sum(axis=a, keepdims=True), family)
            check(mb.prod(x, axis=a), n.prod(axis=a), family)
            check(mb.mean(x, axis=a), n.mean(axis=a), family)
            check(mb.any(x, axis=a), n.any(axis=a), family)
        for p in (1, 2, 3, np.inf):
            check(mb.norm(x, p), np.sum(np.abs(n) ** p) ** (1 / p) if p != np.inf else np.abs(n).max(), family)


# Reductions with rules


@KIND
def test_an_index_that_selects_nothing_is_an_index_as_any_other(kind):
    x, expected = make(kind, mb.HostArray)
    nothing = np.array([], int)
    axes = (slice(None), slice(0, 0), nothing, mb.HostArray(nothing), [])
    with mb.settings.changed(dense_fallback="silent"):
        for index in itertools.product(axes, repeat=x.ndim):
            plain = tuple(mb.to_numpy(i) if isinstance(i, mb.HostArray) else i for i in index)
            assert_same(x[index], expected[plain])


@FAMILY
@pytest.mark.parametrize("kind", [*STORED, "zeros", "fill", "ones", "fill_of_array"])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "mean", "count_nonzero", "norm"])
def test_reductions_run_over_the_parts(kind, name, family):
    x, n = make(kind, family)
    reference = np.linalg.norm if name == "norm" else getattr(np, name)
    check(getattr(mb, name)(x), np.asarray(reference(n)), family)
    if name == "norm":
        return
    for axis in (0, 1, -1):
        check(getattr(mb, name)(x, axis=axis), np.asarray(reference(n, axis=axis)), family)
    check(getattr(mb, name)(x, axis=0, keepdims=True), np.asarray(reference(n, axis=0, keepdims=True)), family)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_reductions_of_small_ones_see_no_zeros_that_are_not_there(n):
    x = mb.Diagonal(np.full(n, 3.0))
    t = mb.Tridiagonal(np.full(n - 1, 2.0), np.full(n, 3.0), np.full(n - 1, 2.0))
    for y in (x, t):
        dense = mb.to_numpy(y)
        for axis in (None, 0):
            assert_same(mb.min(y, axis=axis), np.asarray(dense.min(axis=axis)))
            assert_same(mb.prod(y, axis=axis), np.asarray(dense.prod(axis=axis)))
            assert_same(mb.all(y, axis=axis), np.asarray(dense.all(axis=axis)))


# Elementwise operations that keep structure: function of x, y (a dense matrix), v (a vector) → type


BAND = {"diagonal": "Diagonal", "upper_bidiagonal": "Bidiagonal", "lower_bidiagonal": "Bidiagonal",
        "tridiagonal": "Tridiagonal", "upper": "UpperTriangular", "lower": "LowerTriangular",
        "identity": "Diagonal", "unit_upper": "UpperTriangular", "unit_lower": "LowerTriangular"}  # fmt: skip
KEEPING = {
    "sin": lambda x, y: mb.sin(x),
    "negative": lambda x, y: -x,
    "square": lambda x, y: x**2,
    "cube": lambda x, y: x**3,
    "sqrt": lambda x, y: mb.sqrt(mb.abs(x)),
    "scaled": lambda x, y: x * 2,
    "scaled_left": lambda x, y: 2.5 * x,
    "divided": lambda x, y: x / 4,
    "plus_zero": lambda x, y: x + 0,
    "sum": lambda x, y: x + x,
    "difference": lambda x, y: x * 3 - x,
    "times_dense": lambda x, y: x * y,
    "dense_times": lambda x, y: y * x,
    "times_row": lambda x, y: x * y[0],
    "times_column": lambda x, y: x * y[:, :1],
    "positive_part": lambda x, y: mb.maximum(x, 0),
    "compared": lambda x, y: x > 0,
    "clipped": lambda x, y: mb.clip(x, -1, 1),
    "where_dense": lambda x, y: mb.where(y > 1, x, 0),
    "astype": lambda x, y: x.astype(np.float32).astype(np.float64),
    "conj": lambda x, y: mb.conj(x),
    "by_fill": lambda x, y: x * mb.Fill((N, N), 3.0, device=type(y).home),
    "by_0d": lambda x, y: x * y[0, :1].reshape(()),
}


@FAMILY
@pytest.mark.parametrize("name", KEEPING)
@pytest.mark.parametrize("kind", BAND)
def test_structure_is_kept_where_the_function_allows_it(kind, name, family):
    x, n = make(kind, family)
    f = KEEPING[name]
    y = family(B)
    with np.errstate(all="ignore"):
        got = f(x, y)
    expected = KEEPING_NUMPY[name](n, B)
    assert type_of(got) in (BAND[kind], type_of(x)), type(got)
    check(got, expected, family)


KEEPING_NUMPY = {
    "sin": lambda x, y: np.sin(x), "negative": lambda x, y: -x, "square": lambda x, y: x**2,
    "cube": lambda x, y: x**3, "sqrt": lambda x, y: np.sqrt(np.abs(x)), "scaled": lambda x, y: x * 2,
    "scaled_left": lambda x, y: 2.5 * x, "divided": lambda x, y: x / 4, "plus_zero": lambda x, y: x,
    "sum": lambda x, y: x + x, "difference": lambda x, y: x * 3 - x, "times_dense": lambda x, y: x * y,
    "dense_times": lambda x, y: x * y, "times_row": lambda x, y: x * y[0],
    "times_column": lambda x, y: x * y[:, :1], "positive_part": lambda x, y: np.maximum(x, 0),
    "compared": lambda x, y: x > 0, "clipped": lambda x, y: np.clip(x, -1, 1),
    "where_dense": lambda x, y: np.where(y > 1, x, 0),
    "astype": lambda x, y: x.astype(np.float32).astype(np.float64), "conj": lambda x, y: np.conj(x),
    "by_fill": lambda x, y: x * 3.0, "by_0d": lambda x, y: x * y[0, 0],
}  # fmt: skip


@pytest.mark.parametrize(
    "left, right, added, multiplied",
    [
        ("diagonal", "diagonal", "Diagonal", "Diagonal"),
        ("diagonal", "tridiagonal", "Tridiagonal", "Diagonal"),
        ("diagonal", "upper", "UpperTriangular", "Diagonal"),
        ("identity", "tridiagonal", "Tridiagonal", "Diagonal"),
        ("upper_bidiagonal", "lower_bidiagonal", "Tridiagonal", "Diagonal"),
        ("upper_bidiagonal", "upper", "UpperTriangular", "Bidiagonal"),
        ("lower_bidiagonal", "lower", "LowerTriangular", "Bidiagonal"),
        ("upper", "upper", "UpperTriangular", "UpperTriangular"),
        ("upper", "unit_upper", "UpperTriangular", "UpperTriangular"),
        ("upper", "lower", None, "Diagonal"),
        ("tridiagonal", "upper", None, "Bidiagonal"),
        ("symmetric", "symmetric_l", "Symmetric", "Symmetric"),
        ("symmetric", "diagonal", "Symmetric", "Diagonal"),
        ("hermitian", "hermitian_l", "Hermitian", "Hermitian"),
        ("symmetric", "hermitian", None, None),
        ("zeros", "tridiagonal", "Tridiagonal", "Zeros"),
        ("zeros", "diagonal", "Diagonal", "Zeros"),
        ("fill", "ones", "Fill", "Fill"),
        ("fill", "diagonal", None, "Diagonal"),
        ("zeros", "zeros", "Zeros", "Zeros"),
    ],
)
@FAMILY
def test_structures_join(left, right, added, multiplied, family):
    (x, nx), (y, ny) = make(left, family), make(right, family)
    with mb.settings.changed(dense_fallback="silent"):
        for a, b, na, nb in ((x, y, nx, ny), (y, x, ny, nx)):
            check(a + b, na + nb, family)
            check(a - b, na - nb, family)
            check(a * b, na * nb, family)
            for got, expected in ((a + b, added), (a - b, added), (a * b, multiplied)):
                assert type_of(got) == (expected or family.__name__), type(got)


@pytest.mark.parametrize("kind", ["diagonal", "tridiagonal", "upper", "identity"])
def test_structure_is_given_up_where_it_must(kind):
    x, n = make(kind, mb.HostArray)
    with mb.settings.changed(dense_fallback="silent"), np.errstate(all="ignore"):
        for f, g in [
            (mb.cos, np.cos), (mb.exp, np.exp), (lambda a: a + 1, lambda a: a + 1), (lambda a: a == 0,) * 2,
            (lambda a: a**0, lambda a: a**0), (lambda a: a / 0, lambda a: a / 0),
            (lambda a: a * math.nan, lambda a: a * math.nan), (lambda a: 1 / a, lambda a: 1 / a),
            (mb.isfinite, np.isfinite), (mb.logical_not, np.logical_not), (lambda a: a / B, lambda a: a / B),
        ]:  # fmt: skip
            got = f(x)
            assert type_of(got) == "HostArray"
            assert_same(got, g(n), rtol=1e-14, any_zero=True)


@FAMILY
@pytest.mark.parametrize("kind", ["diagonal", "tridiagonal", "identity"])
def test_a_banded_matrix_is_added_to_the_diagonals_of_a_dense_one(kind, family, many):
    x, n = make(kind, family)
    y = family(B)
    check(x + y, n + B, family)
    check(y - x, B - n, family)
    check(x - y, n - B, family)
    with mb.count() as c:
        mb.materialize(y + x)
    assert c.launches == 1 + len(x.parts) and c.transfers == 0
    check(y, B, family)
    check(family(B.astype(np.float32)) + x, B.astype(np.float32) + n, family)


@FAMILY
@pytest.mark.parametrize("name", ["add", "multiply", "exp", "conj", "negative"])
def test_mirrored_stay_mirrored(name, family):
    for kind in ("symmetric", "symmetric_l", "hermitian", "hermitian_l"):
        x, n = make(kind, family)
        if name in ("add", "multiply"):
            got, expected = getattr(mb, name)(x, 3.0), getattr(np, name)(n, 3.0)
        else:
            got, expected = getattr(mb, name)(x), getattr(np, name)(n)
        assert type_of(got) == type_of(x)
        check(got, expected, family)
    with mb.settings.changed(dense_fallback="silent"):
        assert type_of(make("hermitian", family)[0] * 1j) == family.__name__


def test_a_broadcast_is_lazy_and_runs_over_the_parts_alone():
    d = mb.RefArray(np.arange(1000.0))
    D = mb.Diagonal(d)
    with mb.count() as c:
        E = mb.sin(D) * 2 + D * D
        assert c.launches == 0
        mb.materialize(E)
    assert c.launches == 1 and c.transfers == 0 and c.bytes_written == 8000
    assert type(E.parts[0]) is mb.RefArray[np.float64, 1]


def test_user_functions_are_asked_at_zero():
    D = mb.Diagonal(mb.HostArray(V))
    factor = 3.0
    kept = mb.broadcast(lambda a: a * factor if a > 1 else -a, D)
    assert type_of(kept) == "Diagonal"
    assert_same(kept, np.diag(np.where(V > 1, V * 3, -V)), rtol=1e-15, any_zero=True)
    with mb.settings.changed(dense_fallback="silent"):
        lost = mb.broadcast(lambda a: a + 1.0, D)
        assert_same(lost, np.diag(V) + 1)
        with np.errstate(all="ignore"):
            assert_same(mb.broadcast(lambda a: 1.0 / a, D), 1 / np.diag(V))


def test_several_results_are_dense():
    D = mb.Diagonal([7.5, -7.5])
    with mb.settings.changed(dense_fallback="silent"):
        for got, expected in zip(mb.divmod(D, 2.0), np.divmod(np.diag([7.5, -7.5]), 2.0), strict=True):
            assert_same(got, expected)


def test_writes_after_an_operation_change_nothing_that_was_said():
    v = mb.HostArray(V)
    D = mb.Diagonal(v)
    E = D * 2
    D[0, 0] = 100.0
    assert_same(E, np.diag(V * 2))
    assert float(v[0]) == 100.0 and float(D[0, 0]) == 100.0


def test_numpy_functions_stay_structured():
    D = mb.Diagonal(mb.HostArray(V))
    assert type_of(np.sin(D)) == "Diagonal"
    assert type_of(np.multiply(D, A)) == "Diagonal"
    assert_same(np.sum(D), np.asarray(V.sum()), rtol=1e-15)
    assert_same(np.asarray(D), np.diag(V))


# Products


SQUARE = [k for k in KINDS if k not in ("pending", "diagonal_of_view", "upper_of_transpose")]


@FAMILY
@pytest.mark.parametrize("kind", SQUARE)
def test_products_with_vectors_and_matrices(kind, family):
    x, n = make(kind, family)
    y, v = family(B), family(V)
    for got, expected in [
        (x @ v, n @ V), (v @ x, V @ n), (x @ y, n @ B), (y @ x, B @ n), (x @ y[:, :2], n @ B[:, :2]),
        (y.T @ x, B.T @ n), (x @ y.T, n @ B.T), (x.T @ y, n.T @ B), (x @ y[:, :0], n @ B[:, :0]),
    ]:  # fmt: skip
        check(got, expected, family)
    stack = np.stack([A, B])
    with mb.settings.changed(dense_fallback="silent"):
        check(x @ family(stack), n @ stack, family)
        check(family(stack) @ x, stack @ n, family)
    with pytest.raises(ValueError, match="matmul: shapes"):
        x @ family(V[:3])


BOTH = [k for k in SQUARE if k not in ("fill_of_array", "symmetric_l", "hermitian_l", "conj", "unit_lower")]


@pytest.mark.parametrize("left", BOTH)
@pytest.mark.parametrize("right", BOTH)
def test_products_of_structured_matrices(left, right):
    (x, nx), (y, ny) = make(left, mb.HostArray), make(right, mb.HostArray)
    with mb.settings.changed(dense_fallback="silent"):
        check(x @ y, nx @ ny, mb.HostArray)


@FAMILY
@pytest.mark.parametrize(
    "left, right, expected",
    [
        ("diagonal", "diagonal", "Diagonal"),
        ("diagonal", "tridiagonal", "Tridiagonal"),
        ("tridiagonal", "diagonal", "Tridiagonal"),
        ("upper_bidiagonal", "diagonal", "Bidiagonal"),
        ("upper", "diagonal", "UpperTriangular"),
        ("diagonal", "lower", "LowerTriangular"),
        ("upper", "upper", "UpperTriangular"),
        ("unit_lower", "unit_lower", "UnitLowerTriangular"),
        ("upper_bidiagonal", "lower_bidiagonal", "Tridiagonal"),
        ("identity", "upper", "UpperTriangular"),
        ("symmetric", "identity", "Symmetric"),
        ("zeros", "diagonal", "Zeros"),
        ("tridiagonal", "zeros", "Zeros"),
    ],
)
def test_products_that_keep_structure(left, right, expected, family):
    (x, nx), (y, ny) = make(left, family), make(right, family)
    got = x @ y
    assert type_of(got) == expected
    check(got, nx @ ny, family)


def test_the_identity_gives_back_what_it_meets():
    I, x = mb.Identity(N), mb.HostArray(V)
    for y in (I @ x, x @ I, mb.linalg.solve(I, x), mb.linalg.inv(I) @ x):
        np.testing.assert_array_equal(mb.to_numpy(y), V)
        y += 1
        np.testing.assert_array_equal(mb.to_numpy(x), V)
    assert I.T is I and I.stored_bytes == 0
    assert type_of(2 * I) == "Diagonal" and (2 * I).stored_bytes == 0
    assert type_of(I.astype(np.float32)) == "Identity"
    assert (mb.Identity(N) @ mb.HostArray([1] * N)).dtype == np.float64
    assert type_of(I[1:3, 1:3]) == "Identity"
    with pytest.raises(ValueError, match="stores one value"):
        I[0, 0] = 2.0


# Linear algebra with rules


MATRICES = [k for k in SQUARE if k not in ("fill", "fill_of_array", "zeros", "ones", "toeplitz", "concat")]


@FAMILY
@pytest.mark.parametrize("kind", MATRICES)
def test_linear_algebra(kind, family):
    x, n = make(kind, family)
    la, mla = np.linalg, mb.linalg
    for b in (V, B, B[:, :2]):
        check(mla.solve(x, family(b)), la.solve(n, b), family, rtol=1e-9)
    check(mla.solve(x, mb.Diagonal(family(V))), la.solve(n, np.diag(V)), family, rtol=1e-9)
    stack = np.stack([B, A])
    check(mla.solve(x, family(stack)), la.solve(n, stack), family, rtol=1e-9)
    check(mla.inv(x), la.inv(n), family, rtol=1e-9)
    check(mla.det(x), la.det(n), family, rtol=1e-10)
    for got, expected in zip(mla.slogdet(x), la.slogdet(n), strict=True):
        check(got, np.asarray(expected), family, rtol=1e-10)
    for k in (0, 1, -1):
        check(mb.band(x, k), np.diagonal(n, k), family)
        check(mla.diagonal(x, offset=k), np.diagonal(n, k), family)
        check(mb.diagonal(x, k), np.diagonal(n, k), family)
        check(mla.trace(x, offset=k), np.trace(n, k), family)
    check(mb.trace(x), np.trace(n), family)
    with mb.settings.changed(dense_fallback="silent"):
        got = mb.to_numpy(mla.eigvals(x))
        expected = la.eigvals(n)
        assert got.dtype == np.complex128
        for value in expected:
            assert np.abs(got - value).min() < 1e-4  # (defective ones are found to half the digits)
        for ord in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
            check(mla.matrix_norm(x, ord=ord), la.norm(n, ord), family, rtol=1e-9)
        check(mla.svdvals(x), la.svd(n, compute_uv=False), family, rtol=1e-9)
        check(mla.matrix_power(x, 3), la.matrix_power(n, 3), family, rtol=1e-9)
        check(mla.matrix_power(x, -2), la.matrix_power(n, -2), family, rtol=1e-8)
        check(mla.pinv(x), la.pinv(n), family, rtol=1e-8)
        assert int(mla.matrix_rank(x)) == N


@FAMILY
@pytest.mark.parametrize(
    "kind", ["diagonal", "tridiagonal", "symmetric", "symmetric_l", "hermitian", "hermitian_l"]
)
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigenvalues_of_symmetric_matrices(kind, uplo, family):
    x, n = make(kind, family)
    check(mb.linalg.eigvalsh(x, UPLO=uplo), np.linalg.eigvalsh(n, UPLO=uplo), family, rtol=1e-9)
    w, v = mb.linalg.eigh(x, UPLO=uplo)
    whole = (
        n if kind != "tridiagonal" else np.diag(V) + sum(np.diag(W if uplo == "L" else U, k) for k in (1, -1))
    )
    w, v = mb.to_numpy(w), mb.to_numpy(v)
    np.testing.assert_allclose(whole @ v, v * w, atol=1e-10)
    np.testing.assert_allclose(v.conj().T @ v, np.eye(N), atol=1e-10)


def test_results_keep_structure():
    D, U_ = mb.Diagonal(mb.HostArray(V)), mb.UpperTriangular(mb.HostArray(A))
    la = mb.linalg
    for got in (
        la.inv(D),
        la.pinv(D),
        la.expm(D),
        la.logm(D),
        la.sqrtm(D),
        la.cholesky(D),
        la.matrix_power(D, 2),
    ):
        assert type_of(got) == "Diagonal"
    assert_same(la.expm(D), np.diag(np.exp(V)), rtol=1e-15)
    assert_same(la.cholesky(D), np.diag(np.sqrt(V)), rtol=1e-15)
    assert_same(la.logm(-D).parts[0], np.log(-V + 0j), rtol=1e-14)
    assert type_of(la.inv(U_)) == type_of(la.inv(U_.T).T) == "UpperTriangular"
    assert type_of(la.inv(mb.Symmetric(mb.HostArray(A)))) == "Symmetric"
    I = mb.Identity(3)
    assert la.inv(I) is I and float(la.det(I)) == 1.0
    b = mb.HostArray(V[:3])
    np.testing.assert_array_equal(mb.to_numpy(la.solve(I, b)), mb.to_numpy(b))
    assert la.solve(mb.Diagonal([1, 2]), [3, 4]).dtype == np.float64
    assert la.inv(mb.Diagonal(np.ones(2, np.float32))).dtype == np.float32


def test_a_tridiagonal_system_needs_pivots():
    n = 50
    rng = np.random.default_rng(0)
    dl, du, b = rng.normal(size=n - 1), rng.normal(size=n - 1), rng.normal(size=(n, 2))
    d = np.zeros(n)
    T = mb.Tridiagonal(dl, d, du)
    dense = np.diag(dl, -1) + np.diag(du, 1)
    assert_same(mb.linalg.solve(T, b), np.linalg.solve(dense, b), rtol=1e-6)
    assert_same(mb.linalg.solve(T, b[:, 0]), np.linalg.solve(dense, b[:, 0]), rtol=1e-6)
    from mirabelle.backends.host.structured import _eliminated

    np.testing.assert_allclose(_eliminated(dl, d, du, b), np.linalg.solve(dense, b), rtol=1e-6)
    np.testing.assert_allclose(_eliminated(dl, d, du, b[:, 0]), np.linalg.solve(dense, b[:, 0]), rtol=1e-6)


def test_everything_works_without_scipy(monkeypatch):
    from mirabelle.backends.host import structured

    monkeypatch.setattr(structured, "scipy_if_there", lambda: None)
    for kind in ("tridiagonal", "upper", "unit_lower", "symmetric", "hermitian_l", "adjoint"):
        x, n = make(kind, mb.HostArray)
        check(x @ mb.HostArray(B), n @ B, mb.HostArray)
        check(mb.linalg.solve(x, mb.HostArray(V)), np.linalg.solve(n, V), mb.HostArray, rtol=1e-9)
        check(mb.linalg.det(x), np.linalg.det(n), mb.HostArray, rtol=1e-9)
        if kind in ("tridiagonal", "symmetric"):
            check(mb.linalg.eigvalsh(x), np.linalg.eigvalsh(n), mb.HostArray, rtol=1e-9)


@pytest.mark.parametrize(
    "make_singular",
    [
        lambda: mb.Diagonal([1.0, 0.0]),
        lambda: mb.Bidiagonal([1.0, 0.0], [1.0]),
        lambda: mb.Tridiagonal([1.0], [1.0, 1.0], [1.0]),
        lambda: mb.Tridiagonal([1.0, 0], [1.0, 1.0, 0], [1.0, 0]),
        lambda: mb.UpperTriangular([[1.0, 2.0], [0.0, 0.0]]),
        lambda: mb.Symmetric([[1.0, 1.0], [1.0, 1.0]]),
    ],
)
def test_singular_matrices_say_so(make_singular):
    x = make_singular()
    b = mb.ones(x.shape[0])
    with pytest.raises(mb.linalg.LinAlgError, match=r"is singular.*lstsq"):
        mb.linalg.solve(x, b)
    with pytest.raises(mb.linalg.LinAlgError, match="is singular"):
        mb.linalg.inv(x)
    with pytest.raises(mb.linalg.LinAlgError, match="they must be equal"):
        mb.linalg.solve(x, mb.ones(9))
    with pytest.raises(mb.linalg.LinAlgError, match="not positive definite"):
        mb.linalg.cholesky(mb.Diagonal([1.0, -1.0]))


# Fallback


def test_a_missing_rule_is_told_once_with_operation_type_and_bytes():
    D = mb.Diagonal(mb.HostArray(np.ones(100)))
    with pytest.warns(mb.DenseFallbackWarning) as caught:
        mb.cos(D)
        mb.cos(D)
        mb.cos(mb.Diagonal(mb.HostArray(np.ones(3))))
        D + 1
        mb.var(D)
        D.reshape(-1)
        mb.Diagonal(mb.RefArray(np.ones(10))) + 1
    texts = [str(w.message) for w in caught]
    assert len(texts) == 5
    assert texts[0].startswith(
        "mb.cos(Diagonal[HostArray[float64, 1]]): no rule, so it was made dense, 78.1 KiB"
    )
    assert "@mb.cos.method" in texts[0] and "mb.dense(x)" in texts[0]
    assert [t.split("(")[0] for t in texts[1:]] == ["mb.add", "mb.var", "mb.reshape", "mb.add"]
    assert all(w.filename == __file__ for w in caught)


def test_the_fallback_can_be_an_error_or_silent():
    D = mb.Diagonal(mb.HostArray(np.ones(3)))
    with mb.settings.changed(dense_fallback="error"):
        for _ in range(2):
            with pytest.raises(mb.DenseFallbackError, match=r"mb.cos\(Diagonal.*may not be made dense, 72 B"):
                mb.cos(D)
        assert_same(mb.sin(D), np.diag(np.sin(np.ones(3))))
    with mb.settings.changed(dense_fallback="silent"), warnings.catch_warnings():
        warnings.simplefilter("error")
        mb.cos(D)
    with pytest.raises(ValueError, match="dense_fallback cannot be 'loud'"):
        mb.settings.dense_fallback = "loud"


@KIND
def test_what_is_explicit_never_warns(kind):
    x, n = make(kind, mb.HostArray)
    mb.dense(x), mb.to_numpy(x), np.asarray(x), mb.HostArray(x), repr(x), str(x), x._repr_html_(), x.tolist()
    y = mb.zeros((N, N), dtype=n.dtype)
    y[...] = x
    y[1:] = x[1:]


def test_a_method_of_a_user_is_a_rule():
    D = mb.Diagonal(mb.HostArray(V))
    with mb.override(mb.cos, (mb.Diagonal,), lambda x: "mine"):
        assert mb.cos(D) == "mine"
    with mb.override(mb.matmul, (mb.Diagonal, mb.AbstractArray), lambda x, y: "mine"):
        assert D @ D == "mine" and D @ mb.HostArray(V) == "mine"


# Writing


@FAMILY
def test_stored_entries_can_be_written(family):
    with mb.allow_scalar():
        D, T = mb.Diagonal(family(V)), make("tridiagonal", family)[0]
        D[1, 1] = 9.0
        T[0, 1], T[1, 0] = 7.0, 8.0
        assert float(D[1, 1]) == 9.0 and float(T[0, 1]) == 7.0 and float(T[1, 0]) == 8.0
        T[0, 3] = 0
        U_, S, H = mb.UpperTriangular(family(A)), mb.Symmetric(family(A)), mb.Hermitian(family(Z))
        U_[0, 2], S[3, 1], H[3, 1] = 5.0, 6.0, 2 + 1j
        assert float(U_[0, 2]) == 5.0 and float(S[1, 3]) == float(S[3, 1]) == 6.0
        assert complex(H[3, 1]) == 2 + 1j and complex(H[1, 3]) == 2 - 1j
        z = family(Z)
        mb.adjoint(z)[0, 1] = 1 + 2j
        assert complex(z[1, 0]) == 1 - 2j
    D[...] = 0
    check(D, np.zeros((N, N)), family)
    T[...] = mb.Diagonal(family(V))
    check(T, np.diag(V), family)
    D += mb.Diagonal(family(V))
    check(D, np.diag(V), family)
    D *= 2
    check(D, np.diag(2 * V), family)
    mb.adjoint(z)[...] = family(Z)
    check(z, Z.conj().T, family)


def test_a_zero_of_the_structure_cannot_be_written():
    x = mb.Diagonal(mb.HostArray(V))
    cases = [
        (x, (0, 1), r"Entry \(0, 1\) of this Diagonal is zero by its structure.*x = mb.HostArray\(x\)"),
        (mb.UpperTriangular(A), (2, 0), r"Entry \(2, 0\) of this UpperTriangular is 0"),
        (mb.UnitLowerTriangular(A), (1, 1), r"Entry \(1, 1\) of this UnitLowerTriangular is 1"),
    ]
    for array, index, message in cases:
        before = mb.to_numpy(array)
        with pytest.raises(ValueError, match=message):
            array[index] = 5.0
        assert_same(array, before)
    with pytest.raises(ValueError, match="Only a matrix of its structure"):
        x[...] = A
    with pytest.raises(ValueError, match="Only a matrix of its structure"):
        x[...] = 1.0
    with pytest.raises(TypeError, match="entry by entry"):
        x[0] = 0.0
    with pytest.raises(IndexError):
        x[9, 9] = 0.0
    with pytest.raises(ValueError, match="Only a matrix of its structure"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x += 1
    for fixed in (mb.Fill((2, 2), 1.0), mb.Range(3)):
        with pytest.raises(ValueError, match="not written to"):
            fixed[0] = 1
        with pytest.raises(ValueError, match="not written to"):
            fixed[...] = 1


# Smart constructors


def test_constructors_do_the_algebra():
    x, z = mb.HostArray(A), mb.HostArray(Z)
    D, T, S = mb.Diagonal(V), make("tridiagonal", mb.HostArray)[0], mb.Symmetric(x)
    assert mb.adjoint(mb.adjoint(z)) is z and mb.adjoint(mb.adjoint(x)) is x
    assert type_of(mb.adjoint(x)) == "Transpose" and type_of(mb.adjoint(z)) == "Adjoint"
    assert mb.adjoint(z).T.parts[0] is z and type_of(mb.adjoint(z).T) == "Conj"
    assert mb.types.Conj(mb.types.Conj(z)) is z and mb.types.Conj(x) is x
    assert D.T is D and S.T is S and mb.Symmetric(S) is S and mb.Symmetric(D) is D
    assert type_of(mb.Hermitian(x)) == "Symmetric"
    assert mb.UpperTriangular(D) is D and type_of(mb.UpperTriangular(T)) == "Bidiagonal"
    U_ = mb.UpperTriangular(x)
    assert mb.UpperTriangular(U_) is U_ and type_of(mb.LowerTriangular(U_)) == "Diagonal"
    assert type_of(mb.UnitUpperTriangular(U_)) == "UnitUpperTriangular" and type_of(U_.T) == "LowerTriangular"
    assert U_.T.T.parts[0] is x
    assert type_of(mb.Bidiagonal(V, U).T) == "Bidiagonal" and mb.Bidiagonal(V, U).T.offsets == (0, -1)
    assert type_of(T.T) == "Tridiagonal"
    assert type_of(mb.Ones(3) * mb.Ones(3)) == "Ones" and type_of(mb.Ones(3) + 1) == "Fill"
    assert type_of(D[1:4, 1:4]) == "Diagonal" and type_of(U_[1:4, 1:4]) == "UpperTriangular"
    assert T[:, :] is T


def test_parts_are_shared_and_types_say_where_they_live():
    v = mb.HostArray(V)
    D = mb.Diagonal(v)
    assert D.parts[0] is v and mb.parent(D) is v
    v[0] = 50.0
    assert float(mb.sum(D)) == V[1:].sum() + 50.0
    assert type(D) is mb.Diagonal[mb.HostArray[np.float64, 1]]
    assert issubclass(type(D), mb.Diagonal[mb.HostArray]) and issubclass(type(D), mb.types.Structured)
    T = make("tridiagonal", mb.RefArray)[0]
    assert issubclass(type(T), mb.Tridiagonal[mb.RefArray, mb.RefArray, mb.RefArray])
    assert type(mb.Diagonal[mb.RefArray]([1.0])) is mb.Diagonal[mb.RefArray[np.float64, 1]]
    assert mb.Tridiagonal(np.ones(1), [1, 2], [1.5]).dtype == np.float64
    assert mb.Bidiagonal(np.ones(2, np.float32), [3], "L").parts[1].dtype == np.float64


BAD = [
    (lambda: mb.Diagonal(A), "takes its diagonals, which are vectors"),
    (lambda: mb.Diagonal(), "is made of its parts"),
    (lambda: mb.Bidiagonal(V, V), "above the main one of a 5 × 5 Bidiagonal has 4 elements; this one has 5"),
    (lambda: mb.Bidiagonal(V, U, "X"), "above .* or below"),
    (lambda: mb.Tridiagonal(U, V, V), "has 4 elements"),
    (lambda: mb.Diagonal(V, V), r"made of 1 diagonal\(s\), and 2 came"),
    (lambda: mb.UpperTriangular(A[:2]), "takes a square matrix; this one has shape"),
    (lambda: mb.Symmetric(A, "both"), "upper"),
    (lambda: mb.Symmetric(V), "takes a square matrix"),
    (lambda: mb.Diagonal(["a"]), "Convert"),
    (lambda: mb.Fill((2, 2)), "a shape and a value"),
    (lambda: mb.Fill(2, [1, 2]), "holds one value"),
    (lambda: mb.Fill(-1, 1.0), "negative dimensions"),
    (lambda: mb.Range(0, 5, 0), "step other than 0"),
    (lambda: mb.Range(1j), "real numbers"),
    (lambda: mb.Range(math.inf), "finite ends"),
    (lambda: mb.Range(3, dtype=np.complex64), "integers or real numbers"),
    (lambda: mb.adjoint(V), "takes a matrix"),
    (lambda: mb.Diagonal[mb.float64], "takes the types of its parts"),
    (lambda: mb.Diagonal(mb.HostArray(V)) + mb.HostArray(A[:, :3]), "could not be broadcast"),
    (lambda: mb.Diagonal(mb.HostArray(V)) * mb.RefArray(A), "different places"),
    (lambda: mb.Diagonal(mb.HostArray(V)) @ mb.RefArray(A), "different places"),
    (lambda: mb.Tridiagonal(mb.HostArray(U), mb.RefArray(V), mb.RefArray(U)), "different places"),
    (lambda: mb.Diagonal(mb.RefArray(V)) * A, "different places"),
    (lambda: mb.Fill((2, 3), 1.0).reshape(4), "cannot reshape array of size 6"),
    (lambda: mb.broadcast_to(mb.Fill(3, 1.0), (2,)), "broadcast|stretched"),
    (lambda: mb.adapt(mb.Diagonal, mb.HostArray(V)), "type that stores it"),
    (lambda: mb.types.Structured(), "parts"),
]


@pytest.mark.parametrize("bad, message", BAD)
def test_bad_input(bad, message):
    with pytest.raises((ValueError, TypeError), match=message):
        bad()


# Fill and Range


def test_fills_never_allocate():
    x = mb.Fill((10**6, 10**6), 2.0)
    with mb.count() as c:
        y = (x * x + 1).T[5:].reshape(-1)
        assert float(mb.sum(y)) == 5.0 * y.size and float(mb.max(y)) == 5.0
        assert float(mb.mean(x)) == 2.0 and float(mb.var(x)) == 0.0
        assert y[3].shape == () and float(y[3]) == 5.0
        assert type_of(mb.broadcast_to(mb.Ones(3), (5, 3))) == "Ones"
        assert mb.Identity(10**6).shape == (10**6, 10**6)
        assert float(mb.sum(mb.Identity(10**6))) == 10**6
    assert c.bytes_written < 1000
    assert repr(x) == "Fill[HostArray[float64, 2]](2.0, shape=(1000000, 1000000))"


@FAMILY
def test_fills_join_kernels(family):
    x = family(A)
    with mb.count() as c:
        y = mb.materialize(mb.Fill((N, N), 2.0, device=family) * x + mb.Ones(N, device=family))
    assert c.launches == 1 and c.transfers == 0
    check(y, A * 2 + 1, family)
    check(mb.Zeros((N, N), device=family) + x, A, family)
    assert type_of(mb.Zeros((2, N, N), device=family) * x) == "Zeros"
    s = mb.sum(x)  # a value nobody has looked at
    f = mb.Fill((2, 2), s) * 2
    assert type_of(f) == "Fill"
    check(f, np.full((2, 2), A.sum() * 2), family)
    check(mb.sum(f), np.asarray(A.sum() * 8), family)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "float32", "float64", "complex64", "bool"])
def test_fills_have_numpys_dtypes(dtype):
    x, n = mb.Fill((2, 3), 1, dtype=dtype), np.full((2, 3), 1, dtype)
    for f in (lambda a: a + 1, lambda a: a * 2.5, lambda a: a == 1, lambda a: a + a, lambda a: a * n):
        assert_same(f(x), f(n))
    for name in ("sum", "prod", "any", "all", "max"):
        assert_same(getattr(mb, name)(x, axis=0), getattr(np, name)(n, axis=0))
    assert_same(mb.Fill((2, 3), 1.9).astype(dtype), np.full((2, 3), 1.9).astype(dtype))


RANGES = [(5,), (2, 10, 3), (10, 0, -2), (0,), (3, 3), (0.0, 1.0, 0.1), (1.5, -2.0, -0.25), (1,)]


@FAMILY
@pytest.mark.parametrize("args", RANGES)
def test_ranges_are_what_arange_gives(args, family):
    x, n = mb.Range(*args, device=family), np.arange(*args)
    check(x, n, family, rtol=0)
    assert len(x) == len(n) and x.dtype == n.dtype
    for index in (slice(None), slice(1, None, 2), slice(None, None, -1), slice(-3, -1), slice(4, 1, -2)):
        assert type_of(x[index]) == "Range"
        check(x[index], n[index], family)
    for f in (lambda a: a + 2, lambda a: 3 - a, lambda a: a * 2.5, lambda a: a / 4, lambda a: -a,
              lambda a: a + a, lambda a: 2 * a - a, lambda a: +a, lambda a: a - 0.5):  # fmt: skip
        assert type_of(f(x)) == "Range"
        check(f(x), f(n), family)
    for f in (
        lambda a: a * a,
        lambda a: a**2,
        lambda a: 1.0 / (a + 100),
        lambda a: a > 1,
        lambda a: a[:, None] * a,
    ):
        check(f(x), f(n), family)
    if len(n):
        for name in ("sum", "min", "max", "mean", "prod"):
            check(getattr(mb, name)(x), np.asarray(getattr(np, name)(n)), family)
        check(mb.sum(x, axis=0, keepdims=True), n.sum(axis=0, keepdims=True), family)
        check(x[[0, -1]], n[[0, -1]], family)
        with mb.allow_scalar():
            assert float(x[0]) == n[0] and float(x[-1]) == n[-1]
        assert n[0] in x and n[-1] in x and 1e9 not in x and "a" not in x
    with pytest.raises(IndexError):
        x[100]
    if len(n) and n[-1] >= n[0]:
        values = np.concatenate([n, n + 0.05, n - 0.05, [-100.0, 100.0]])
        for side in ("left", "right"):
            check(mb.searchsorted(x, family(values), side=side), np.searchsorted(n, values, side), family)


def test_ranges_never_allocate():
    with mb.count() as c:
        r = (mb.Range(10**12) * 3 + 1)[::-7] / 2
        assert type_of(r) == "Range" and float(mb.sum(r[:1000])) > 0
        assert float(mb.max(r)) == float(r[0])
        assert int(mb.searchsorted(mb.Range(10**15), 10**14)) == 10**14
        assert 5 * 10**11 in mb.Range(10**12)
    assert c.bytes_written < 1000
    assert int(mb.sum(mb.Range(10**9))) == 10**9 * (10**9 - 1) // 2
    assert [int(i) for i in mb.Range(3)] == [0, 1, 2] and [int(i) for i in reversed(mb.Range(3))] == [2, 1, 0]
    with pytest.raises(OverflowError):
        mb.Range(3, dtype=np.int8) + 1000


# What people see


def test_what_people_see():
    assert repr(mb.Tridiagonal([1.0], [2.0, 3.0], [4.5])) == (
        "Tridiagonal[HostArray[float64, 1], HostArray[float64, 1], HostArray[float64, 1]](\n"
        "[[2. , 4.5],\n [1. , 3. ]])"
    )
    assert str(mb.Bidiagonal([1, 2, 3], [4, 5])) == "[[1 4 .]\n [. 2 5]\n [. . 3]]"
    assert str(mb.LowerTriangular([[1.5, 2.0], [-3.0, 4.0]])) == "[[ 1.5   . ]\n [-3.   4. ]]"
    assert repr(mb.Diagonal(mb.RefArray([1.0, 2.0]))) == (
        "Diagonal[RefArray[float64, 1]](\n[[1.,  .],\n [ ., 2.]], place=ref:0)"
    )
    assert repr(mb.Diagonal(np.zeros(0))) == "Diagonal[HostArray[float64, 1]]([], shape=(0, 0))"
    assert repr(mb.Range(0, 6, 2)) == "Range[HostArray[int64, 1]](start=0, step=2, size=3)"
    assert str(mb.Range(0, 6, 2)) == "[0 2 4]"
    assert str(mb.Identity(2)) == "[[1.  .]\n [ . 1.]]"
    assert repr(mb.Zeros((2, 2))) == "Zeros[HostArray[float64, 2]](shape=(2, 2))"
    big = mb.Diagonal(mb.Range(10**6))
    assert repr(big) == (
        "Diagonal[Range[HostArray[int64, 1]]](shape=(1000000, 1000000), "
        "parts: Range[HostArray[int64, 1]](start=0, step=1, size=1000000))"
    )
    upper = mb.UpperTriangular(mb.Fill((10**5, 10**5), 1.0))
    assert (
        "Fill[HostArray[float64, 2]](1.0, shape=(100000, 100000))" in repr(upper)
        and "type" in upper._repr_html_()
    )
    assert "0 B stored, 7.3 TiB if dense" in mb.Identity(10**6)._repr_html_()


# A type of one's own


class Cyclic(mb.types.Structured):
    """Entry (i, j) is element j - i of a vector, counted around."""

    linear = 0

    @classmethod
    def _shape_of(cls, v):
        return len(v), len(v)

    @property
    def layout(self):
        return Cyclic, self.shape

    def _entries(self, i, j):
        return self.parts[0][(j - i) % self.shape[0]]


@FAMILY
def test_a_type_of_a_dozen_lines(family):
    x, n = Cyclic(family(V)), np.stack([np.roll(V, i) for i in range(N)])
    check(mb.dense(x), n, family)
    assert type_of(mb.cos(x) + x * x) == "Cyclic"  # equal layouts: part by part
    check(mb.cos(x) + x * x, np.cos(n) + n * n, family)
    assert type_of(3 * x) == type_of(x / 2) == type_of(-x) == type_of(x.astype(np.float32)) == "Cyclic"
    check(x[1:3], n[1:3], family)
    with mb.allow_scalar():
        assert float(x[2, 1]) == n[2, 1]
    check(pickle.loads(pickle.dumps(x)), n, family)
    check(mb.adapt(mb.HostArray, x), n, mb.HostArray)
    with pytest.warns(mb.DenseFallbackWarning, match=r"mb.matmul\(Cyclic\[.*200 B"):
        check(x @ family(V), n @ V, family)
    with pytest.warns(mb.DenseFallbackWarning, match=r"mb.permute_dims"):
        check(x.T, n.T, family)
    with pytest.raises(TypeError, match="its entries depend on each other"):
        x[0, 0] = 1.0


class Nothing(mb.types.Structured):
    @classmethod
    def _shape_of(cls, v):
        return 2, 2


def test_a_type_without_its_rule_says_what_it_lacks():
    with pytest.raises(NotImplementedError, match="Nothing must implement _dense"):
        mb.dense(Nothing([1.0]))


MAKING_DENSE = {
    "concat": lambda x: mb.concat([x, x]),
    "stack": lambda x: mb.stack([x, x]),
    "hstack": lambda x: mb.hstack([x, x]),
    "pad": lambda x: mb.pad(x, 1),
    "block": lambda x: mb.block([[x]]),
    "append": lambda x: mb.append(x, x, axis=0),
    "insert": lambda x: mb.insert(x, 0, 1.0, axis=0),
    "delete": lambda x: mb.delete(x, 0, axis=0),
    "flip": mb.flip,
    "rot90": mb.rot90,
    "expand_dims": lambda x: mb.expand_dims(x, axis=0),
    "diff": mb.diff,
}


@pytest.mark.parametrize("n", [6, 100])
@pytest.mark.parametrize("what", MAKING_DENSE)
@pytest.mark.parametrize("family", [mb.HostArray, mb.RefArray])
def test_what_joins_and_turns_says_that_it_makes_dense(family, what, n):
    for x in (
        mb.Diagonal(family(np.arange(1.0, n + 1))),
        mb.kronecker(family(np.eye(n // 2)), family(np.eye(2))),
    ):
        with (
            mb.settings.changed(dense_fallback="error"),
            pytest.raises(mb.DenseFallbackError, match=r"mb\.dense"),
        ):
            MAKING_DENSE[what](x)
        with mb.settings.changed(dense_fallback="silent"):
            expected = MAKING_DENSE[what](mb.dense(x))
            np.testing.assert_array_equal(mb.to_numpy(MAKING_DENSE[what](x)), mb.to_numpy(expected))


def test_an_index_that_shows_all_shows_the_array_itself():
    x = mb.Diagonal([1.0, 2.0])
    for shown in (x[...], x[:], x[:, :], x[:, ...], mb.squeeze(x)):
        assert type(shown) is type(x)
    for wrong in ((Ellipsis, Ellipsis), (slice(None),) * 3):
        with pytest.raises(IndexError):
            x[wrong]


@pytest.mark.parametrize("family", [mb.HostArray, mb.RefArray])
def test_truth_of_ranges_takes_no_memory(family):
    for start, stop, step in ((0, 5, 1), (1, 5, 1), (0, 1, 1), (5, -5, -5), (0.5, 3.0, 0.5), (-1.0, 1.0, 0.25)):
        x, n = mb.Range(start, stop, step, device=family), np.arange(start, stop, step)
        for ours, theirs in ((x, n), (x - x, n - n), ((x - x) + 2, (n - n) + 2)):
            for ask in ("any", "all"):
                expected = getattr(np, ask)(theirs)
                assert bool(getattr(mb, ask)(ours)) == expected
                assert mb.to_numpy(getattr(mb, ask)(ours, axis=0, keepdims=True)).tolist() == [expected]
            assert (0 in ours) == (0 in theirs)
    with mb.count() as counted:
        assert not bool(mb.all(mb.Range(10**15, device=family)))
    assert counted.bytes_read < 100


def _filled(make):
    """What fill_diagonal leaves of a matrix, or the matrix and what it said."""
    x = make()
    before = contents(mb.dense(x)).copy()
    try:
        mb.fill_diagonal(x, 4.0)
    except (TypeError, ValueError) as e:
        return before, contents(mb.dense(x)), str(e)
    np.fill_diagonal(before, 4.0)
    return before, contents(mb.dense(x)), ""


@pytest.mark.parametrize(
    "make",
    [
        lambda: mb.CSR(mb.HostArray(np.eye(4) + 1)),
        lambda: mb.Kronecker(mb.ones((2, 2)), mb.HostArray([[1.0, 2.0], [3.0, 5.0]])),
        lambda: mb.KroneckerSum(mb.ones((2, 2)), mb.ones((2, 2))),
        lambda: mb.LowRank(mb.ones((4, 1)), mb.ones((1, 4))),
        lambda: mb.BlockDiagonal([mb.ones((2, 2)), mb.ones((2, 2))]),
        lambda: mb.Concat([mb.zeros((2, 4)), mb.ones((2, 4))]),
        lambda: mb.Diagonal(mb.ones(4)),
        lambda: mb.Tridiagonal(mb.ones(3), mb.ones(4), mb.ones(3)),
        lambda: mb.Symmetric(mb.ones((4, 4))),
        lambda: mb.UpperTriangular(mb.ones((4, 4))),
        lambda: mb.Toeplitz(mb.HostArray([1.0, 2.0, 3.0])),
    ],
)
def test_a_diagonal_is_filled_or_the_matrix_says_why_not(make):
    expected, got, said = _filled(make)
    assert_same(got, expected)
    assert not said or "written to" in said
