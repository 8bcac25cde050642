"""Every function of `mb.linalg` on every structured matrix: right, and at most one fallback, which says so.

The kinds are those of `test_structured.py`. RULES says which must not fall back.
"""

import contextlib
import math
import warnings

import numpy as np
import pytest
import scipy.linalg
from compare import assert_same
from test_structured import KINDS, A, B, N, U, V, W

import mirabelle as mb
from mirabelle.arraytypes.structured import fallback

la = mb.linalg
FAMILIES = [mb.HostArray, mb.RefArray, mb.CuArray]
FAMILY = pytest.mark.parametrize("family", FAMILIES)
# Equal in all that matters here to others that are there.
KIND_NAMES = [
    k for k in KINDS if k not in ("diagonal_of_view", "upper_of_transpose", "pending", "fill_of_array")
]
POSITIVE = ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf)


@pytest.fixture(autouse=True)
def tell_again():
    fallback.forget()


def rebuilt(parts, how):
    return how(*(mb.to_numpy(p) for p in parts))


# name → (ours, NumPy's); where factors are not unique, what they come to.
FUNCTIONS = {
    "solve": (lambda x, at: la.solve(x, at(B)), lambda n: np.linalg.solve(n, B)),
    "solve_vector": (lambda x, at: la.solve(x, at(V)), lambda n: np.linalg.solve(n, V)),
    "solve_for_it": (lambda x, at: la.solve(at(B), x), lambda n: np.linalg.solve(B, n)),
    "inv": (lambda x, at: la.inv(x), np.linalg.inv),
    "pinv": (lambda x, at: la.pinv(x), np.linalg.pinv),
    "det": (lambda x, at: la.det(x), np.linalg.det),
    "slogdet": (lambda x, at: la.slogdet(x)[1], lambda n: np.linalg.slogdet(n)[1]),
    "slogdet_sign": (lambda x, at: la.slogdet(x)[0], lambda n: np.linalg.slogdet(n)[0]),
    "lstsq": (lambda x, at: la.lstsq(x, at(B))[0], lambda n: np.linalg.lstsq(n, B, rcond=None)[0]),
    "matrix_rank": (lambda x, at: la.matrix_rank(x), np.linalg.matrix_rank),
    **{
        f"cond {p}": (lambda x, at, p=p: la.cond(x, p), lambda n, p=p: np.linalg.cond(n, p))
        for p in (None, 1, -1, "fro", math.inf)
    },
    "solve_triangular": (
        lambda x, at: la.solve_triangular(x, at(B)),
        lambda n: scipy.linalg.solve_triangular(n, B),
    ),
    "solve_lower": (
        lambda x, at: la.solve_triangular(x, at(B), lower=True, trans=1),
        lambda n: scipy.linalg.solve_triangular(n, B, lower=True, trans=1),
    ),
    "solve_unit": (
        lambda x, at: la.solve_triangular(x, at(B), unit_diagonal=True, trans=2),
        lambda n: scipy.linalg.solve_triangular(n, B, unit_diagonal=True, trans=2),
    ),
    "lu_factor": (lambda x, at: la.lu_factor(x)[0], lambda n: scipy.linalg.lu_factor(n)[0]),
    "cholesky": (lambda x, at: la.cholesky(x), np.linalg.cholesky),
    "cholesky_upper": (lambda x, at: la.cholesky(x, upper=True), lambda n: np.linalg.cholesky(n, upper=True)),
    "qr": (lambda x, at: rebuilt(la.qr(x), lambda q, r: q @ np.triu(r)), lambda n: n),
    "eig": (lambda x, at: rebuilt(la.eig(x), lambda w, v: v * w @ np.linalg.pinv(v)), None),
    "eigvals": (lambda x, at: la.eigvals(x), None),
    "eigvalsh": (lambda x, at: la.eigvalsh(x), np.linalg.eigvalsh),
    "eigvalsh_upper": (lambda x, at: la.eigvalsh(x, UPLO="U"), lambda n: np.linalg.eigvalsh(n, "U")),
    "eigh": (
        lambda x, at: rebuilt(la.eigh(x), lambda w, v: v * w @ v.conj().T),
        lambda n: (lambda w, v: v * w @ v.conj().T)(*np.linalg.eigh(n)),
    ),
    "svd": (lambda x, at: rebuilt(la.svd(x), lambda u, s, vh: u[:, :N] * s @ vh), lambda n: n),
    "svdvals": (lambda x, at: la.svdvals(x), lambda n: np.linalg.svd(n, compute_uv=False)),
    "lu": (lambda x, at: rebuilt(la.lu(x), lambda p, lower, upper: p @ lower @ upper), lambda n: n),
    "schur": (lambda x, at: rebuilt(la.schur(x), lambda t, z: z @ t @ z.conj().T), lambda n: n),
    "hessenberg": (
        lambda x, at: rebuilt(la.hessenberg(x, calc_q=True), lambda h, q: q @ np.triu(h, -1) @ q.conj().T),
        lambda n: n,
    ),
    "polar": (lambda x, at: la.polar(x)[1], lambda n: scipy.linalg.polar(n)[1]),
    "null_space": (lambda x, at: la.null_space(x).shape[1], lambda n: scipy.linalg.null_space(n).shape[1]),
    "orth": (lambda x, at: la.orth(x).shape[1], lambda n: scipy.linalg.orth(n).shape[1]),
    "expm": (lambda x, at: la.expm(x), scipy.linalg.expm),
    "block_diag": (lambda x, at: la.block_diag(x, x), lambda n: scipy.linalg.block_diag(n, n)),
    **{
        f"matrix_power {p}": (
            lambda x, at, p=p: la.matrix_power(x, p),
            lambda n, p=p: np.linalg.matrix_power(n, p),
        )
        for p in (0, 1, 2, 5, -2)
    },
    "multi_dot": (lambda x, at: la.multi_dot([x, at(B), x]), lambda n: n @ B @ n),
    "gemm": (lambda x, at: la.gemm(x, at(B), alpha=2.0), lambda n: 2 * n @ B),
    "gemm_right": (lambda x, at: la.gemm(at(B), x), lambda n: B @ n),
    "norm": (lambda x, at: la.norm(x), np.linalg.norm),
    **{
        f"vector_norm {p}": (
            lambda x, at, p=p: la.vector_norm(x, ord=p),
            lambda n, p=p: np.linalg.norm(n.ravel(), p),
        )
        for p in (0, 1, 2, 3, math.inf, -math.inf)
    },
    **{
        f"matrix_norm {p}": (lambda x, at, p=p: la.matrix_norm(x, ord=p), lambda n, p=p: np.linalg.norm(n, p))
        for p in POSITIVE
    },
    "vecdot": (lambda x, at: la.vecdot(x, at(V)), lambda n: n.conj() @ V),
    "tensordot": (lambda x, at: la.tensordot(x, at(B), axes=1), lambda n: n @ B),
    "matrix_transpose": (lambda x, at: la.matrix_transpose(x), lambda n: n.T),
    "diagonal": (lambda x, at: la.diagonal(x, offset=1), lambda n: np.diagonal(n, 1)),
    "trace": (lambda x, at: la.trace(x), np.trace),
    "tensorinv": (lambda x, at: la.tensorinv(x, ind=1), np.linalg.inv),
    "factorize": (lambda x, at: la.factorize(x).solve(at(B)), lambda n: np.linalg.solve(n, B)),
    "factorize_det": (lambda x, at: la.factorize(x).det(), np.linalg.det),
    "LU": (lambda x, at: la.LU(x).solve(at(V)), lambda n: np.linalg.solve(n, V)),
}
FUNCTION = pytest.mark.parametrize("what", FUNCTIONS)
ALL = """diagonal identity upper_bidiagonal lower_bidiagonal tridiagonal upper lower unit_upper unit_lower
    symmetric symmetric_l hermitian hermitian_l circulant"""
# What must not fall back to dense: functions and the kinds that have a rule for each of them.
# (Triangular and symmetric matrices are stored whole, so that LAPACK reads what there is.)
_RULES = [
    (
        """solve, solve_vector, solve_for_it, inv, det, slogdet, slogdet_sign, cond 1, cond -1, cond fro, norm,
        vector_norm 3, matrix_norm fro, matrix_norm 1, matrix_norm inf, multi_dot, gemm, gemm_right, diagonal,
        trace, factorize, factorize_det, matrix_power 2, matrix_power -2, tensordot, vecdot""",
        f"{ALL} csr",
    ),
    (
        "eigvals, svdvals, matrix_rank, cond None, matrix_norm 2, matrix_norm nuc, matrix_norm -2",
        f"{ALL} fill ones zeros".replace("tridiagonal ", ""),
    ),
    ("eigvalsh, eigh", "diagonal identity upper_bidiagonal tridiagonal symmetric"),
    ("cholesky, cholesky_upper", "diagonal identity tridiagonal lower_bidiagonal symmetric"),
    ("expm, svd, polar, null_space, orth, eig, qr, schur", "diagonal identity upper"),
    ("solve_triangular, solve_lower, solve_unit", "diagonal identity tridiagonal lower_bidiagonal upper"),
    ("hessenberg", "diagonal tridiagonal upper_bidiagonal upper"),
    ("pinv", "diagonal identity circulant upper symmetric fill zeros"),
    ("det, slogdet", "fill zeros ones"),
]
RULES = {(kind, name.strip()) for names, kinds in _RULES for name in names.split(",") for kind in kinds.split()}
assert {name for _, name in RULES} <= set(FUNCTIONS)


def value(x):
    return mb.to_numpy(x) if isinstance(x, mb.AbstractArray) else np.asarray(x)


def quietly(f, *args):
    """(value, None) or (None, the error)."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return f(*args), None
    except (np.linalg.LinAlgError, ValueError) as e:
        return None, e


def build(kind, family):
    make, expected = KINDS[kind]
    return make(family), expected


# The same rules run everywhere: on the second place one kind of each module is enough.
AT_REF = (
    "diagonal",
    "tridiagonal",
    "unit_lower",
    "hermitian",
    "adjoint",
    "toeplitz",
    "circulant",
    "csr",
    "fill",
)
PLACED = [(k, mb.HostArray) for k in KIND_NAMES] + [(k, mb.RefArray) for k in AT_REF]


@FUNCTION
@pytest.mark.parametrize("kind, family", PLACED)
def test_every_function_on_every_matrix(kind, what, family):
    x, n = build(kind, family)
    ours, theirs = FUNCTIONS[what]
    reference = np.linalg.eigvals(n).astype(complex) if what == "eigvals" else n.astype(complex)
    expected, refused = (reference, None) if theirs is None else quietly(theirs, n)
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            got = ours(x, family)
        except la.LinAlgError as e:
            # The condition number of a singular matrix is infinite, and NumPy refuses some that are not.
            assert refused is not None or np.linalg.matrix_rank(n) < N, str(e)
            return
        except NotImplementedError:  # what no library for cards has
            assert what == "schur" and family.home.rank > 1
            return
    told = [w for w in caught if issubclass(w.category, mb.DenseFallbackWarning)]
    assert len(told) <= 1, [str(w.message) for w in told]
    assert not told or (kind, what) not in RULES, str(told[0].message)
    if refused is not None:
        return
    if isinstance(got, mb.AbstractArray):
        assert got.place == family.home
    got, expected = value(got), np.asarray(expected)
    assert got.shape == expected.shape
    if what == "eigvals":
        assert all(np.abs(got - w).min() < 1e-4 for w in expected)
    elif what == "eig":
        defective = np.linalg.cond(np.linalg.eig(n)[1]) > 1e8
        assert defective or np.allclose(got, expected, atol=1e-7)
    elif what.startswith("cond") and expected > 1e12:
        assert got > 1e12
    else:
        np.testing.assert_allclose(got, expected, rtol=1e-7, atol=1e-8)


@FUNCTION
@pytest.mark.parametrize("kind", ["diagonal", "tridiagonal", "toeplitz", "csr", "fill"])
def test_a_fallback_can_be_an_error(kind, what):
    """What warns raises then, and what has a rule does not."""
    x, _ = build(kind, mb.HostArray)
    ours = FUNCTIONS[what][0]
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        with contextlib.suppress(la.LinAlgError):
            ours(x, mb.HostArray)
    told = [w for w in caught if issubclass(w.category, mb.DenseFallbackWarning)]
    refused = (
        pytest.raises(mb.DenseFallbackError, match=r"may not be made dense, 200 B")
        if told
        else contextlib.nullcontext()
    )
    with mb.settings.changed(dense_fallback="error"), refused, contextlib.suppress(la.LinAlgError):
        ours(x, mb.HostArray)


def test_the_warning_names_what_was_called():
    D, S = mb.Diagonal(V), mb.CSR(np.diag(V))
    for f, name in [
        (lambda: mb.concat([S, S]), "mb.concat(CSR"),
        (lambda: la.Triangular(D), "mb.linalg.Triangular(Diagonal"),
        (lambda: la.SVD(D + mb.Bidiagonal(V, U)), "mb.linalg.svd(Bidiagonal"),
        (lambda: mb.UpperTriangular(S) @ mb.HostArray(V), "mb.matmul(CSR"),
        (lambda: la.pinv(S), "mb.linalg.pinv(CSR"),
    ]:
        with pytest.warns(mb.DenseFallbackWarning) as caught:
            f()
        assert len(caught) == 1 and str(caught[0].message).startswith(name)
        assert caught[0].filename == __file__


# What stays structured


def test_the_identity_gives_back_what_it_meets():
    I, F, D, S = mb.Identity(N), mb.Fill((N, N), 2.0), mb.Diagonal(V), mb.CSR(np.diag(V))
    assert I @ F is F and F @ I is F
    for x in (D, S, mb.Toeplitz(V), mb.Circulant(V), mb.Symmetric(A), mb.Tridiagonal(U, V, U)):
        for y in (I @ x, x @ I):  # (a copy: both may be written)
            assert type(y) is type(x) and y is not x
            np.testing.assert_array_equal(mb.to_numpy(y), mb.to_numpy(x))


@FAMILY
def test_factors_are_structured(family):
    D, T = mb.Diagonal(family(V)), mb.Tridiagonal(family(U), family(V + 3), family(U))
    up, low = mb.Bidiagonal(family(V), family(U)), mb.Bidiagonal(family(V), family(U), "L")
    n = np.diag(V + 3) + np.diag(U, 1) + np.diag(U, -1)
    L = la.cholesky(T)
    assert type(L).__name__.startswith("Bidiagonal") and L.offsets == (0, -1)
    assert_same(L, np.linalg.cholesky(n), rtol=1e-14)
    R = la.cholesky(T, upper=True)
    assert R.offsets == (0, 1)
    assert_same(R, np.linalg.cholesky(n).T, rtol=1e-14)
    for x in (D, up, mb.UpperTriangular(family(A))):
        Q, R = la.qr(x)
        assert isinstance(Q, mb.Identity) and type(R) is type(x)
        T_, Z = la.schur(x)
        assert isinstance(Z, mb.Identity) and type(T_) is type(x)
        assert la.qr(x, mode="r").place == family.home
    assert isinstance(la.hessenberg(T), mb.Tridiagonal)
    assert la.schur(D, output="complex")[0].dtype == np.complex128
    for x in (D, T, up, low, mb.Circulant(family(V)), mb.LowerTriangular(family(A))):
        F = la.factorize(x)
        assert type(F).__name__ == "ByStructure" and F.place == family.home
        assert_same(F.inv(), np.linalg.inv(mb.to_numpy(x)), rtol=1e-9, atol=1e-12)


@FAMILY
def test_a_sparse_factorisation_is_made_once(family):
    n = np.where(np.random.default_rng(2).uniform(size=(8, 8)) < 0.3, 1.5, 0) + 5 * np.eye(8)
    F = la.factorize(mb.CSR(family(n)))
    assert repr(F).startswith("SparseLU of 8 x 8, float64")
    b = np.arange(24.0).reshape(8, 3)
    for right in (b, b[:, 0], np.stack([b, -b])):
        got = la.solve(F, family(right))
        assert got.place == family.home
        assert_same(got, np.linalg.solve(n, right), rtol=1e-10, atol=1e-12)
    assert_same(F.det(), np.asarray(np.linalg.det(n)), rtol=1e-12)
    assert_same(F.inv(), np.linalg.inv(n), rtol=1e-9, atol=1e-12)
    with pytest.raises(la.LinAlgError, match=r"is singular"):
        la.factorize(mb.CSR(family(np.zeros((2, 2)))))


@pytest.mark.parametrize("dtype", ["f4", "c16", "c8", "i8"])
def test_other_dtypes(dtype):
    v, u = (V * 4).astype(dtype), U.astype(dtype)
    if dtype[0] == "c":
        u = u * (1 + 0.5j)
    T = mb.Tridiagonal(u.conj(), v, u)
    n = mb.to_numpy(T)
    tolerance = 1e-5 if dtype in ("f4", "c8") else 1e-12
    assert_same(la.cholesky(T), np.linalg.cholesky(n), rtol=tolerance)
    assert_same(la.eigvalsh(T), np.linalg.eigvalsh(n), rtol=tolerance)
    bi = mb.Bidiagonal(v, u)
    assert_same(la.svdvals(bi), np.linalg.svd(mb.to_numpy(bi), compute_uv=False), rtol=tolerance * 10)
    assert_same(la.solve(T, np.ones(N, dtype)), np.linalg.solve(n, np.ones(N, dtype)), rtol=tolerance * 10)
    assert_same(la.cond(bi), np.asarray(np.linalg.cond(mb.to_numpy(bi))), rtol=tolerance * 100)


def test_gemm_adds_to_its_destination():
    D, out = mb.Diagonal(V), mb.HostArray(B)
    found = la.gemm(D, mb.HostArray(A), alpha=2.0, beta=-1.0, out=out)
    assert found is out
    assert_same(out, 2 * np.diag(V) @ A - B, rtol=1e-14)
    with pytest.raises(ValueError, match="no `out` was given"):
        la.gemm(D, mb.HostArray(A), beta=1.0)
    with pytest.raises(ValueError, match="matmul: shapes"):
        la.gemm(D, mb.ones((2, 2)))
    with pytest.raises(TypeError, match="alpha is a number"):
        la.gemm(D, mb.HostArray(A), alpha="a")


def test_large_ones_stay_small(many):
    """Nothing of n × n is made where a rule is."""
    n = 2000
    main, beside = np.full(n, 4.0), np.ones(n - 1)
    D, T, L = mb.Diagonal(main), mb.Tridiagonal(beside, main, beside), mb.Bidiagonal(main, beside, "L")
    F, I = mb.Fill((n, n), 2.0), mb.Identity(n)
    b = mb.HostArray(main)
    with mb.count() as counted:
        for x in (D, T, L, I):
            la.solve(x, b), float(la.det(x / 4)), la.slogdet(x), la.cholesky(x), float(la.norm(x))
            float(la.matrix_norm(x, ord=1)), la.factorize(x).solve(b), la.solve_triangular(x, b)
            float(la.vector_norm(x, ord=3)), float(la.trace(x))
        for x in (D, L, I, F):
            (
                float(la.matrix_norm(x, ord=2)),
                float(la.cond(x)),
                int(la.matrix_rank(x)),
                la.svdvals(x),
                la.eigvals(x),
            )
        for x in (D, I):
            la.inv(x), la.pinv(x), la.expm(x), la.sqrtm(x), la.matrix_power(x, 5), float(la.cond(x, 1))
        float(la.det(F)), la.pinv(F), la.matrix_power(F, 3), F @ F, F @ b
        la.eigvalsh(T)
    assert counted.bytes_written < 1000 * n


@pytest.mark.parametrize(
    "bad, message",
    [
        (
            lambda: la.cholesky(mb.Tridiagonal([2.0], [1.0, 1.0], [2.0])),
            "cholesky: the matrix is not positive definite",
        ),
        (lambda: la.cholesky(mb.Bidiagonal([1.0, -1.0], [0.0])), "not positive definite"),
        (lambda: la.cond(mb.Diagonal([1.0, 2.0]), "bad"), "p is 2, -2"),
        (lambda: la.solve_triangular(mb.Diagonal([1.0]), mb.ones(1), trans=7), "trans is 0, 1 or 2"),
        (lambda: la.solve_triangular(mb.Diagonal([1.0, 0.0]), mb.ones(2)), "is singular"),
        (lambda: la.qr(mb.Diagonal([1.0]), mode="x"), "mode is"),
        (lambda: la.schur(mb.Diagonal([1.0]), output="x"), "output is"),
        (lambda: la.eigvalsh(mb.Tridiagonal([1.0], [1.0, 1.0], [1.0]), UPLO="X"), "UPLO is"),
        (lambda: la.solve(mb.Fill((3, 3), 1.0), mb.ones(3)), "is singular"),
        (lambda: la.inv(mb.Zeros((3, 3))), "is singular"),
        (lambda: la.solve(mb.Fill((3, 3), 1.0), mb.ones(4)), "must be equal"),
        (lambda: la.det(mb.Fill((3, 4), 1.0)), "takes square matrices"),
        (lambda: la.solve(mb.HostArray(A), mb.Diagonal([1.0])), "must be equal"),
        (lambda: la.solve(mb.RefArray(A), mb.Diagonal(V)), "different places"),
        (lambda: la.matrix_power(mb.Diagonal([1.0]), 1.5), "integer"),
        (lambda: la.cond(mb.Diagonal(np.zeros(0))), "empty"),
    ],
)
def test_bad_input(bad, message):
    with pytest.raises((ValueError, TypeError), match=message), warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.DenseFallbackWarning)
        bad()


def test_condition_numbers_of_singular_matrices_are_infinite():
    upper, sparse = mb.UpperTriangular([[1.0, 1.0], [0.0, 0.0]]), mb.CSR([[1.0, 0.0], [0.0, 0.0]])
    for x in (mb.Diagonal([1.0, 0.0]), upper, sparse, mb.Zeros((2, 2)), mb.Fill((2, 2), 3.0)):
        assert float(la.cond(x, 1)) == math.inf
    for x in (mb.Diagonal(mb.RefArray([1.0, 0.0])), mb.Zeros((2, 2)), mb.Ones((2, 2))):
        assert float(la.cond(x)) == math.inf and float(la.cond(x, -2)) in (0.0, math.inf)


def test_everything_works_without_scipy(monkeypatch):
    from mirabelle.backends.host import structured

    monkeypatch.setattr(structured, "scipy_if_there", lambda: None)
    T, bi = mb.Tridiagonal(W / 9, V, W / 9), mb.Bidiagonal(V, U)
    assert_same(la.cholesky(T), np.linalg.cholesky(mb.to_numpy(T)), rtol=1e-13)
    assert_same(la.svdvals(bi), np.linalg.svd(mb.to_numpy(bi), compute_uv=False), rtol=1e-13)
