"""Derivatives of and through structured arrays: dual numbers in their parts, and they in dual numbers."""

import re
import warnings

import numpy as np
import pytest
from compare import contents
from kinds import PLAIN
from test_autodiff_linalg import differentiated, flat

import mirabelle as mb
from mirabelle.arraytypes.structured.fallback import forget
from mirabelle.dispatch.errors import DenseFallbackWarning

L = mb.linalg
RNG = np.random.default_rng(11)
V, W, U = RNG.normal(size=5) + 6, RNG.normal(size=4), RNG.normal(size=4)
FIRST = np.array([20.0, 0, 0, 0, 0])
ORDER = mb.HostArray([1, 0, 2, 4, 3])
P = RNG.normal(size=(5, 5)) + 5 * np.eye(5)
TALL = RNG.normal(size=(5, 2))
PATTERN = (np.array([0, 0, 1, 1, 2, 3, 3, 4, 4]), np.array([0, 3, 1, 4, 2, 0, 3, 1, 4]))


class Outer(mb.types.Structured):
    """u vᵀ of two vectors, as a user writes it: the rule, and two that are quick."""

    linear = 0

    @classmethod
    def _shape_of(cls, u, v):
        return len(u), len(v)

    def _entries(self, i, j):
        return self.parts[0][i] * self.parts[1][j]

    def _transposed(self):
        return Outer(self.parts[1], self.parts[0])

    def _times(self, other):
        return self.parts[0] * (self.parts[1] @ other) if other.ndim == 1 else NotImplemented


def sparse(data):
    indices, indptr = mb.CSR((np.ones(9), PATTERN), shape=(5, 5)).parts[1:]
    family = type(mb.autodiff.value(data)).family
    return mb.CSR((data, mb.adapt(family, indices), mb.adapt(family, indptr)), shape=(5, 5))


DATA = np.array([6.0, 1.0, 5.0, 2.0, 7.0, 1.0, 8.0, -1.0, 5.0])

# name: (how it is made, its parts)
TYPES = {
    "Diagonal": (mb.Diagonal, V),
    "Bidiagonal": (mb.Bidiagonal, V, W),
    "Tridiagonal": (mb.Tridiagonal, W, V, U),
    "UpperTriangular": (mb.UpperTriangular, P),
    "UnitLowerTriangular": (mb.UnitLowerTriangular, P),
    "Symmetric": (mb.Symmetric, P),
    "SymmetricL": (lambda a: mb.Symmetric(a, "L"), P),
    "Toeplitz": (mb.Toeplitz, V + FIRST, np.r_[V[0] + 20, U]),
    "Circulant": (mb.Circulant, V + FIRST),
    "Kronecker": (mb.kronecker, P[:2, :2], P[:3, :3]),
    "KroneckerDiagonal": (lambda a, b: mb.kronecker(mb.Diagonal(a), b), V[:2], P[:2, :2]),
    "KroneckerSum": (mb.KroneckerSum, P[:2, :2], P[:2, 1:3] + P[:2, :2]),
    "BlockDiagonal": (mb.BlockDiagonal, P[:2, :2], P[:3, :3]),
    "BlockDiagonalStack": (mb.BlockDiagonal, np.stack([P[:2, :2], P[1:3, 1:3]])),
    "LowRank": (mb.LowRank, TALL, np.ascontiguousarray(TALL.T)),
    "Concat": (mb.Concat, P[:2], P[2:]),
    "CSR": (sparse, DATA),
    "Reordered": (lambda a: mb.ext.Reordered(a, mb.adapt(type(mb.autodiff.value(a)).family, ORDER)), P),
    "Outer": (Outer, V, V[::-1].copy()),
}  # fmt: skip
SINGULAR = ("LowRank", "Outer")


def entries(s):
    return mb.dense(s)


def right(s, n=None):
    """A right-hand side where `s` is."""
    shape = (s.shape[1],) if n is None else (s.shape[1], n)
    return mb.adapt(s.family, mb.HostArray(np.cos(np.arange(1.0, 1 + np.prod(shape))).reshape(shape)))


def given(s, *shape):
    """A dual number that depends on the parts of `s`."""
    size = int(np.prod(shape))
    return mb.sum(s.parts[0]) * mb.adapt(s.family, mb.HostArray(np.linspace(0.5, 1.5, size).reshape(shape)))


OPERATIONS = {
    "dense": entries,
    "sums": lambda s: (mb.sum(s), mb.sum(s, axis=0), mb.sum(s, axis=1)),
    "means": lambda s: (mb.mean(s), mb.var(s)),
    "max": mb.max,
    "times_vector": lambda s: s @ right(s),
    "times_matrix": lambda s: s @ right(s, 3),
    "times_dual_vector": lambda s: s @ given(s, s.shape[1]),
    "times_dual_matrix": lambda s: s @ given(s, s.shape[1], 3),
    "times_stack": lambda s: s @ given(s, 2, s.shape[1], 2),
    "vector_times": lambda s: given(s, s.shape[0]) @ s,
    "matrix_times": lambda s: given(s, 3, s.shape[0]) @ s,
    "transposed": lambda s: (entries(s.T), mb.sum(s.T, axis=0)),
    "norms": lambda s: (mb.norm(s), L.norm(s), L.matrix_norm(s, ord=1)),
    "scaled": lambda s: entries(s * 2.5),
    "scaled_by_dual": lambda s: entries(mb.sum(s.parts[0]) * s),
    "plus_dense": lambda s: s + given(s, *s.shape),
    "minus_dense": lambda s: given(s, *s.shape) - s,
    "times_dense": lambda s: entries(s * given(s, *s.shape)),
    "plus_itself": lambda s: entries(s + s),
    "sin": lambda s: entries(mb.sin(s)),
    "cos": lambda s: entries(mb.cos(s)),
    "where": lambda s: entries(mb.where(mb.dense(s) > 0, s, 0.0)),
    "element": lambda s: (s[0, 1], s[1, 1], s[-1, -2]),
    "parts_of_it": lambda s: (entries(s[0]), entries(s[1:3, 1:3]), entries(s[:, 1])),
    "diagonals": lambda s: (mb.band(s), mb.band(s, 1), L.trace(s)),
    "reshaped": lambda s: mb.reshape(s, (-1,)),
    "joined": lambda s: (mb.concat([s, s]), mb.stack([s, s])),
    "product": lambda s: entries(s @ s.T),
    "copied": lambda s: entries(mb.copy(s)),
}
SOLVING = {
    "solve": lambda s: (L.solve(s, right(s)), L.solve(s, right(s, 2))),
    "solve_dual": lambda s: (L.solve(s, given(s, s.shape[1])), L.solve(s, given(s, s.shape[1], 2))),
    "det": L.det,
    "slogdet": L.slogdet,
    "inv": lambda s: entries(L.inv(s)),
    "factorize": lambda s: L.factorize(s).solve(given(s, s.shape[1])),
    "inverse": lambda s: (mb.inverse(s) @ right(s), mb.inverse(s).T @ right(s)),
    "svdvals": L.svdvals,
    "matrix_power": lambda s: entries(L.matrix_power(s, 3)),
    "expm": lambda s: entries(L.expm(s / 10.0)),
}


@pytest.mark.filterwarnings("ignore::mirabelle.dispatch.errors.DenseFallbackWarning")
@pytest.mark.parametrize("name", TYPES)
def test_operations(name):
    make, *parts = TYPES[name]
    for f in OPERATIONS.values():
        differentiated(lambda *p, f=f: f(make(*p)), parts)


@pytest.mark.filterwarnings("ignore::mirabelle.dispatch.errors.DenseFallbackWarning")
@pytest.mark.parametrize("name", [n for n in TYPES if n not in SINGULAR])
def test_solving(name):
    make, *parts = TYPES[name]
    for f in SOLVING.values():
        differentiated(lambda *p, f=f: f(make(*p)), parts)


@pytest.mark.filterwarnings("ignore::mirabelle.dispatch.errors.DenseFallbackWarning")
@pytest.mark.parametrize(
    "name, kind",
    [(name, PLAIN[1]) for name in TYPES]
    + [(name, PLAIN[2]) for name in ("Diagonal", "Tridiagonal", "Symmetric", "Toeplitz", "Kronecker", "CSR")],
    ids=str,
)
def test_on_devices(name, kind):
    make, *parts = TYPES[name]
    for what in ("dense", "sums", "times_dual_matrix", "scaled_by_dual", "plus_dense", "element"):
        differentiated(lambda *p, f=OPERATIONS[what]: f(make(*p)), parts, kind)
    if name not in SINGULAR:

        def solved(*p):
            s = make(*p)
            return L.solve(s, given(s, s.shape[1])), L.slogdet(s)[1]

        differentiated(solved, parts, kind)


@pytest.mark.parametrize("name", [n for n in TYPES if n not in SINGULAR])
def test_a_plain_matrix_and_a_dual_right_side(name):
    make, *parts = TYPES[name]
    s = make(*map(mb.HostArray, parts))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DenseFallbackWarning)
        for f in (lambda x: L.solve(s, x), lambda x: s @ x, lambda x: x.T @ s, L.factorize(s).solve):
            differentiated(f, [RNG.normal(size=(s.shape[1], 2))])
        differentiated(lambda x: (L.solve(s, x), s @ x, x @ s), [RNG.normal(size=s.shape[1])])


def test_kronecker_sums_that_are_solved_in_eigenvectors():
    """Of symmetric matrices, whose eigenvalues may be equal, and which need not stay symmetric."""
    parts = 3 * np.eye(2) + 1, 2 * np.eye(3)
    differentiated(lambda a, c, x: L.solve(mb.KroneckerSum(a, c), x), [*parts, RNG.normal(size=6)])
    differentiated(lambda a, c: L.inv(mb.KroneckerSum(a, c)), parts)
    differentiated(lambda a, c: L.slogdet(mb.KroneckerSum(a, c)), parts)


# What is made dense is told, no more and no less than without derivatives


def told(f):
    forget()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f()
    return {re.split(r"[(\[]", str(w.message))[0] for w in caught if w.category is DenseFallbackWarning}


@pytest.mark.parametrize("name", TYPES)
def test_fallbacks_are_those_of_plain_numbers(name):
    make, *parts = TYPES[name]
    arrays = tuple(map(mb.HostArray, parts))
    for what, f in (OPERATIONS | (SOLVING if name not in SINGULAR else {})).items():
        if name == "Bidiagonal" and what == "svdvals":
            continue  # the singular values of a bidiagonal matrix have derivatives in its dense form alone
        expected = told(lambda f=f: f(make(*arrays)))
        found = told(lambda f=f: mb.autodiff.jvp(lambda *p: f(make(*p)), arrays, arrays))
        assert found == expected, what


def test_a_fallback_may_be_an_error():
    with mb.settings.changed(dense_fallback="error"), pytest.raises(mb.DenseFallbackError, match=r"mb\.cos"):
        mb.autodiff.gradient(lambda v: mb.sum(mb.cos(mb.Diagonal(v))), mb.HostArray(V))


# Types


def test_results_keep_their_structure():
    D = mb.Diagonal(mb.types.Dual(mb.HostArray(V), mb.HostArray(np.ones((2, 5)))))
    assert type(D).__name__ == "Diagonal[Dual[HostArray[float64, 1]]]"
    assert isinstance(D * 2 + D @ D, mb.Diagonal)
    assert isinstance(D * mb.ones((5, 5)), mb.Diagonal)
    assert isinstance(L.inv(D), mb.Diagonal) and isinstance(mb.sqrt(D), mb.Diagonal)
    t = mb.types.Dual(mb.HostArray(2.0), mb.HostArray([1.0, 0.0]))
    scaled = t * mb.Diagonal(mb.HostArray(V))  # a plain matrix, and a dual number
    assert type(scaled) is type(D)
    assert isinstance(mb.Identity(5) * t, mb.Diagonal)
    assert isinstance(mb.ones((5, 5)) * t + t * mb.Identity(5), mb.types.Dual)
    assert isinstance(mb.Symmetric(mb.HostArray(P)) * t, mb.Symmetric)


def test_derivatives_keep_structure_too():
    def f(t):
        return mb.Diagonal(mb.HostArray(V)) * t, mb.Tridiagonal(
            mb.HostArray(W), t * mb.HostArray(V), mb.HostArray(U)
        )

    first, second = mb.autodiff.derivative(f, 3.0)
    assert type(first) is mb.Diagonal[mb.HostArray[np.float64, 1]] and isinstance(second, mb.Tridiagonal)
    np.testing.assert_allclose(contents(first), np.diag(V))
    np.testing.assert_allclose(contents(second), np.diag(V))


def test_shown():
    D = mb.Diagonal(mb.types.Dual(mb.HostArray([1.0, 2.0]), mb.HostArray([[1.0, 1.0]])))
    assert repr(D) == "Diagonal[Dual[HostArray[float64, 1]]](\n[[1.,  .],\n [ ., 2.]]; 1 partials)"
    assert str(D) == "[[1.  .]\n [ . 2.]]; 1 partials"
    big = mb.Diagonal(mb.types.Dual(mb.HostArray(np.ones(2000)), mb.HostArray(np.ones((1, 2000)))))
    assert "parts: Dual[" in repr(big)


def test_value_takes_the_derivatives_away():
    D = mb.Diagonal(mb.types.Dual(mb.HostArray(V), mb.HostArray(np.ones((2, 5)))))
    assert type(mb.autodiff.value(D)) is mb.Diagonal[mb.HostArray[np.float64, 1]]
    slope = mb.autodiff.gradient(lambda v: mb.sum(mb.autodiff.value(mb.Diagonal(v)) @ v), mb.HostArray(V))
    np.testing.assert_allclose(contents(slope), V)
    with pytest.raises(mb.autodiff.DualError):
        np.asarray(D)


# Gradients by structured arrays


@pytest.mark.parametrize("kind", PLAIN[:2], ids=repr)
@pytest.mark.parametrize("name", TYPES)
def test_gradient_by_a_structured_array_is_one_of_its_parts(name, kind):
    make, *parts = TYPES[name]
    s = make(*map(kind.make, parts))
    weight = kind.make(np.random.default_rng(1).normal(size=s.shape))
    slope = mb.autodiff.gradient(lambda x: mb.sum(weight * mb.dense(x) ** 2), s)
    assert type(slope) is type(s) and slope.shape == s.shape
    for k, part in enumerate(s.parts):
        if part.dtype.kind != "f" or isinstance(part, mb.types.Structured):
            assert part.dtype.kind == "f" or slope.parts[k] is part
            continue

        def f(p, k=k):
            return mb.sum(weight * mb.dense(s._with_parts((*s.parts[:k], p, *s.parts[k + 1 :]))) ** 2)

        np.testing.assert_allclose(
            contents(slope.parts[k]), contents(mb.autodiff.gradient(f, part)), rtol=1e-12, atol=1e-12
        )


def test_gradient_by_a_matrix_that_stores_nothing():
    slope = mb.autodiff.gradient(
        lambda x: mb.sum(x @ mb.ones(3)), mb.kronecker(mb.HostArray([[2.0]]), mb.Identity(3))
    )
    assert isinstance(slope, mb.Kronecker) or slope.shape == (3, 3)
    slope = mb.autodiff.gradient(lambda x: mb.sum(mb.dense(x) ** 2), mb.Identity(3))
    np.testing.assert_array_equal(contents(slope), 2 * np.eye(3))


def test_directions_of_structured_arrays():
    D, dD = mb.Diagonal(mb.HostArray(V)), mb.Diagonal(mb.HostArray(V[::-1].copy()))
    value, tangent = mb.autodiff.jvp(lambda x: x @ x, (D,), (dD,))
    assert isinstance(value, mb.Diagonal) and isinstance(tangent, mb.Diagonal)
    np.testing.assert_allclose(contents(tangent), np.diag(2 * V * V[::-1]))
    _, tangent = mb.autodiff.jvp(lambda x: x @ x, (D,), (mb.HostArray(P),))  # along what is not diagonal
    np.testing.assert_allclose(contents(tangent), np.diag(V) @ P + P @ np.diag(V))


@pytest.mark.parametrize(
    "name", ["Diagonal", "Tridiagonal", "UpperTriangular", "Symmetric", "Kronecker", "CSR"]
)
def test_second_derivatives(name):
    make, *parts = TYPES[name]
    x = mb.HostArray(parts[0])
    rest = tuple(map(mb.HostArray, parts[1:]))

    def f(p):
        s = make(p, *rest)
        y = right(mb.autodiff.value(s))
        return y @ L.solve(s, s @ (s @ y)) + L.slogdet(s).logabsdet

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DenseFallbackWarning)
        found = contents(mb.autodiff.hessian(f, x)).reshape(x.size, x.size)
        along = np.random.default_rng(3).normal(size=x.shape)
        up, down = (contents(mb.autodiff.gradient(f, x + mb.HostArray(h * along))) for h in (1e-5, -1e-5))
    np.testing.assert_allclose(found @ along.ravel(), ((up - down) / 2e-5).ravel(), rtol=1e-5, atol=1e-6)


# Structured arrays inside of dual numbers


def outside(n=2):
    return mb.types.Dual(
        mb.Diagonal(mb.HostArray(V)), mb.HostArray(np.random.default_rng(4).normal(size=(n, 5, 5)))
    )


@pytest.mark.filterwarnings("ignore::mirabelle.dispatch.errors.DenseFallbackWarning")
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x @ mb.HostArray(V),
        lambda x: mb.HostArray(P) @ x,
        lambda x: mb.Diagonal(mb.HostArray(V)) @ x,
        lambda x: x * mb.Diagonal(mb.HostArray(V)),
        lambda x: x * 2 + mb.ones((5, 5)),
        mb.sin,
        mb.sum,
        L.trace,
        L.det,
        L.inv,
        lambda x: L.solve(x, mb.HostArray(V)),
        lambda x: x.T,
        lambda x: x[1],
        mb.norm,
        mb.copy,
    ],
)  # fmt: skip
def test_a_structured_value_with_dense_partials(f):
    x = outside()
    assert type(x).__name__ == "Dual[Diagonal[HostArray[float64, 1]]]"
    found, expected = (mb.dense(f(y)) for y in (x, mb.types.Dual(mb.dense(x.value), x.partials)))
    np.testing.assert_allclose(contents(found.value), contents(expected.value), rtol=1e-12)
    np.testing.assert_allclose(contents(found.partials), contents(expected.partials), rtol=1e-12, atol=1e-12)


# What it costs


def calls(f, n):
    with mb.count() as c:
        for y in flat(f(n)):
            mb.materialize(mb.dense(y).partials)
    return c.library_calls, c.launches


def along(x, n):
    return mb.types.Dual(mb.HostArray(x), mb.HostArray(np.random.default_rng(0).normal(size=(n, *x.shape))))


@pytest.mark.filterwarnings("ignore::mirabelle.dispatch.errors.DenseFallbackWarning")
@pytest.mark.parametrize("name", [n for n in TYPES if n not in ("Outer", "LowRank")])
def test_calls_do_not_depend_on_how_many_directions_there_are(name):
    make, *parts = TYPES[name]

    def run(n):
        s = make(*[along(p, n) for p in parts])
        x = mb.HostArray(np.ones(s.shape[1]))
        return L.solve(s, x), s @ x, s

    calls(run, 2)  # (bounds of indices are found once)
    assert calls(run, 3) == calls(run, 8)


def test_a_product_with_a_diagonal_matrix_makes_nothing_dense():
    n = 100_000  # of a dense matrix 80 GB
    D = mb.Diagonal(mb.types.Dual(mb.ones(n), mb.ones((2, n))))
    y = L.solve(D, D @ mb.ones(n)) + mb.band(D)
    np.testing.assert_allclose(contents(mb.sum(y).partials), [n, n])


# Errors


def test_sparse_entries_are_not_chosen_by_their_values():
    with pytest.raises(mb.autodiff.DualError, match="stored"):
        mb.autodiff.gradient(lambda a: mb.sum(mb.CSR(a)), mb.HostArray(P))


def test_dual_parts_are_not_written_into_plain_ones():
    D = mb.Diagonal(mb.HostArray(V))
    with pytest.raises(mb.autodiff.DualError, match="cannot hold"):
        mb.autodiff.gradient(lambda v: mb.ext.assign(D, mb.Diagonal(v)) and mb.sum(D), mb.HostArray(V))


def test_triples_that_repeat_are_added_up():
    differentiated(
        lambda d: mb.dense(mb.CSR((d, ([0, 1, 0, 0], [0, 1, 0, 2])), shape=(3, 3))), [np.arange(1.0, 5.0)]
    )


def test_sparse_times_sparse():
    differentiated(lambda a, c: mb.dense(sparse(a) @ sparse(c).T), [DATA, DATA[::-1].copy()])
    differentiated(lambda a, c: mb.dense(sparse(a) + sparse(c) * sparse(a)), [DATA, DATA[::-1].copy()])
