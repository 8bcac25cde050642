"""Derivatives through linear algebra, compared with central finite differences."""

import math

import numpy as np
import pytest
from compare import contents
from kinds import LEAVES, PLAIN

import mirabelle as mb

L = mb.linalg
RNG = np.random.default_rng(5)
STEP = 1e-6


def square(*stack, n=4):
    return RNG.normal(size=(*stack, n, n)) + 4 * np.eye(n)


def definite(*stack, n=4):
    a = square(*stack, n=n)
    return a @ np.swapaxes(a, -1, -2) / n + np.eye(n)


def symmetric(a):
    return (a + mb.conj(a.mT)) / 2


def flat(result):
    if isinstance(result, (tuple, list)):
        return [y for r in result for y in flat(r)]
    return [result]


def differentiated(f, arrays, kind=PLAIN[0], tol=1e-6):
    """`f` along a random direction, by dual numbers and by differences; values are those of plain numbers."""
    rng = np.random.default_rng(1)
    along = [rng.normal(size=a.shape) * (1 + 1j if a.dtype.kind == "c" else 1) for a in arrays]

    def at(step):
        moved = [kind.make(a + step * d) for a, d in zip(arrays, along, strict=True)]
        return [contents(y) for y in flat(f(*moved))]

    value, tangent = mb.autodiff.jvp(f, tuple(map(kind.make, arrays)), tuple(map(kind.make, along)))
    for v, t, plain, up, down in zip(flat(value), flat(tangent), at(0), at(STEP), at(-STEP), strict=True):
        if isinstance(t, mb.AbstractArray):
            assert t.place == kind.place
            assert type(mb.dense(t)) is kind.family[t.dtype, t.ndim]
        np.testing.assert_allclose(contents(v), plain, rtol=1e-9, atol=1e-11)
        assert contents(t).shape == plain.shape
        np.testing.assert_allclose(contents(t), (up - down) / (2 * STEP), rtol=100 * tol, atol=10 * tol)


A, B, b, S = square(), RNG.normal(size=(4, 3)), RNG.normal(size=4), definite()
AS, BS, SS = square(3), RNG.normal(size=(3, 4, 2)), definite(3)
TALL, WIDE = RNG.normal(size=(6, 4)), RNG.normal(size=(3, 5))
C = A + 1j * RNG.normal(size=(4, 4))
H = C @ C.conj().T + np.eye(4)
SINGULAR = A.copy()
SINGULAR[0] = SINGULAR[1]

# name: (function, operands)
CASES = {
    "solve": (L.solve, A, b),
    "solve_columns": (L.solve, A, B),
    "solve_stacks": (L.solve, AS, BS),
    "solve_stack_vector": (L.solve, AS, b),
    "solve_one_for_stack": (L.solve, A, BS),
    "solve_complex": (L.solve, C, B),
    "inv": (L.inv, A),
    "inv_stack": (L.inv, AS),
    "det": (L.det, A),
    "det_stack": (L.det, AS),
    "det_singular": (L.det, SINGULAR),
    "det_complex": (L.det, C),
    "slogdet": (L.slogdet, A),
    "slogdet_stack": (L.slogdet, AS),
    "slogdet_complex": (L.slogdet, C),
    "cholesky": (lambda a: L.cholesky(symmetric(a)), S),
    "cholesky_stack": (lambda a: L.cholesky(symmetric(a)), SS),
    "cholesky_upper": (lambda a: L.cholesky(symmetric(a), upper=True), S),
    "cholesky_complex": (lambda a: L.cholesky(symmetric(a)), H),
    "qr": (L.qr, TALL),
    "qr_square": (L.qr, A),
    "qr_wide": (L.qr, WIDE),
    "qr_stack": (L.qr, BS),
    "qr_complex": (L.qr, C),
    "qr_r": (lambda a: L.qr(a, mode="r"), TALL),
    "qr_complete": (lambda a: L.qr(a, mode="complete"), WIDE),
    "eigh": (lambda a: L.eigh(symmetric(a)), S),
    "eigh_stack": (lambda a: L.eigh(symmetric(a)), SS),
    "eigvalsh": (lambda a: L.eigvalsh(symmetric(a)), S),
    "eigvalsh_complex": (lambda a: L.eigvalsh(symmetric(a)), H),
    "eig": (L.eig, A),
    "eig_stack": (L.eig, AS),
    "eig_complex": (L.eig, C),
    "eigvals": (L.eigvals, A),
    "svd": (L.svd, A),
    "svd_tall": (lambda a: L.svd(a, full_matrices=False), TALL),
    "svd_wide": (lambda a: L.svd(a, full_matrices=False), WIDE),
    "svd_complex": (lambda a: (L.svd(a).S, L.svd(a).U @ L.svd(a).Vh), C),
    "svdvals": (L.svdvals, TALL),
    "svdvals_stack": (L.svdvals, BS),
    "lstsq": (lambda a, c: [r for i, r in enumerate(L.lstsq(a, c)) if i != 2], TALL, RNG.normal(size=6)),
    "lstsq_columns": (lambda a, c: L.lstsq(a, c).x, TALL, RNG.normal(size=(6, 2))),
    "lstsq_wide": (lambda a, c: L.lstsq(a, c).x, WIDE, b[:3]),
    "pinv": (L.pinv, TALL),
    "pinv_wide": (L.pinv, WIDE),
    "pinv_stack": (L.pinv, BS),
    "pinv_complex": (L.pinv, C),
    "expm": (L.expm, A / 3),
    "expm_stack": (L.expm, AS / 3),
    "sqrtm": (L.sqrtm, S),
    "sqrtm_general": (L.sqrtm, A @ A),
    "sqrtm_stack": (L.sqrtm, SS),
    "logm": (L.logm, S),
    "trace": (L.trace, A),
    "trace_offset": (lambda a: L.trace(a, offset=1), AS),
    "multi_dot": (lambda x, y, z: L.multi_dot([x, y, z]), A, B, np.ascontiguousarray(B.T)),
    "gemm": (lambda x, y: L.gemm(x, y, alpha=2.0), A, B),
    "gemm_out": (lambda x, y, z: L.gemm(x, y, alpha=2.0, beta=3.0, out=mb.copy(z)), A, B, B),
    "lu": (L.lu, A),
    "lu_stack": (L.lu, AS),
    "lu_permuted": (lambda a: L.lu(a, permute_l=True), A),
    "lu_indices": (lambda a: L.lu(a, p_indices=True)[1:], A),
    "polar": (L.polar, A),
    "lu_solve": (lambda a, c: (L.lu_solve(L.lu_factor(a), c), L.lu_solve(L.lu_factor(a), c, trans=1)), A, B),
    "cho_solve": (lambda a, c: L.cho_solve(L.cho_factor(symmetric(a)), c), S, B),
    "tensorsolve": (L.tensorsolve, A.reshape(2, 2, 4), B[:2, :2]),
    "factorize": (lambda a, c: L.factorize(a).solve(c), A, B),
    "factorize_definite": (lambda a, c: L.factorize(a).solve(c), S, b),
    "factorize_triangular": (lambda a, c: L.solve(L.factorize(a), c), np.tril(A), b),
    "factorize_rectangular": (lambda a, c: L.factorize(a).solve(c), TALL, RNG.normal(size=6)),
    "factorized": (lambda a: (L.factorize(a).det(), *L.factorize(a).slogdet(), L.factorize(a).inv()), A),
    "norm": (lambda a: (L.norm(a), mb.norm(a), L.norm(a, axis=1)), TALL),
    **{f"matrix_power{n}": (lambda a, n=n: L.matrix_power(a, n), A) for n in (-2, 0, 1, 3, 6)},
    **{f"cond_{p}": (lambda a, p=p: L.cond(a, p), A) for p in (None, -2, 1, -math.inf, "fro", "nuc")},
    **{
        f"matrix_norm_{o}": (lambda a, o=o: L.matrix_norm(a, ord=o, keepdims=True), BS)
        for o in ("fro", "nuc", 2, -2, 1, -1, math.inf, -math.inf)
    },
    **{
        f"vector_norm_{o}": (lambda a, o=o: (L.vector_norm(a, ord=o), L.vector_norm(a, ord=o, axis=1)), TALL)
        for o in (2, 1, 3, 0.5, math.inf, -math.inf, -1, 0)
    },
    **{
        f"{K.__name__}_object": (lambda a, c, K=K: (K(a).solve(c), K(a).slogdet()[1]), S, b)
        for K in (L.LU, L.QR, L.SVD)
    },
    **{
        f"{K.__name__}_object": (
            lambda a, c, K=K: (K(symmetric(a)).solve(c), K(symmetric(a)).slogdet()[1]), S, b
        )
        for K in (L.Cholesky, L.Eigen)
    },
    **{
        f"solve_triangular_{trans}{lower}{unit}": (
            lambda a, c, o=(trans, lower, unit): L.solve_triangular(
                a, c, trans=o[0], lower=o[1], unit_diagonal=o[2]
            ),
            A,
            B,
        )
        for trans in (0, 1)
        for lower in (True, False)
        for unit in (True, False)
    },
    "solve_triangular_stack": (lambda a, c: L.solve_triangular(a, c, lower=True), AS, b),
    "solve_triangular_complex": (lambda a, c: L.solve_triangular(a, c, lower=True, trans=2), C, b),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_along_a_direction(name):
    f, *arrays = CASES[name]
    differentiated(f, arrays)


ON_CARDS = (
    "solve_columns", "solve_stacks", "inv", "det", "slogdet_stack", "cholesky", "qr", "eigh", "svd_tall",
    "lstsq", "pinv", "expm", "sqrtm", "lu", "factorize", "factorize_definite", "trace", "norm", "gemm",
    "Cholesky_object", "solve_triangular_0TrueFalse", "matrix_norm_nuc", "vector_norm_3",
)  # fmt: skip


@pytest.mark.parametrize("kind", PLAIN[1:], ids=repr)
@pytest.mark.parametrize("name", ON_CARDS)
def test_on_devices(name, kind):
    f, *arrays = CASES[name]
    differentiated(f, arrays, kind)


@pytest.mark.parametrize(
    "kind", [LEAVES["host_pending"], LEAVES["host_shared"], LEAVES["host_fortran"]], ids=repr
)
@pytest.mark.parametrize("name", ["solve_columns", "cholesky", "slogdet", "eigh"])
def test_however_it_is_stored(name, kind):
    f, *arrays = CASES[name]
    differentiated(f, arrays, kind)


@pytest.mark.parametrize("which", ["A", "b"])
def test_one_operand_is_a_constant(which):
    if which == "A":
        differentiated(lambda a: L.solve(a, mb.HostArray(B)), [A])
    else:
        differentiated(lambda c: L.solve(mb.HostArray(A), c), [B])


@pytest.mark.parametrize("matrix", [A, S, np.tril(A), TALL], ids=["lu", "cholesky", "triangular", "qr"])
def test_factors_made_before_are_used(matrix):
    F = L.factorize(mb.HostArray(matrix))
    right = RNG.normal(size=(matrix.shape[0], 2))
    differentiated(F.solve, [right])
    differentiated(lambda c: L.solve(F, c), [right[:, 0]])
    differentiated(L.LDL(mb.HostArray(S)).solve, [B])


# Gradients and second derivatives


def in_differences(f, x, step=1e-5):
    """The gradient of a function of NumPy arrays."""
    out = np.zeros(x.shape)
    for at in np.ndindex(x.shape):
        e = np.zeros(x.shape)
        e[at] = step
        out[at] = (float(f(mb.HostArray(x + e))) - float(f(mb.HostArray(x - e)))) / (2 * step)
    return out


@pytest.mark.parametrize("kind", PLAIN, ids=repr)
def test_gradient_of_log_determinant(kind):
    slope = mb.autodiff.gradient(lambda a: L.slogdet(a).logabsdet, kind.make(A))
    assert type(slope) is kind.family[np.float64, 2]
    np.testing.assert_allclose(contents(slope), np.linalg.inv(A).T, rtol=1e-10)
    half = mb.autodiff.gradient(lambda a: mb.sum(mb.log(L.diagonal(L.cholesky(a)))), kind.make(S))
    np.testing.assert_allclose(contents(half), np.linalg.inv(S) / 2, rtol=1e-9, atol=1e-12)


def test_gradient_of_determinant_where_it_is_zero():
    slope = contents(mb.autodiff.gradient(L.det, mb.HostArray(SINGULAR)))
    np.testing.assert_allclose(slope, in_differences(L.det, SINGULAR), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", PLAIN, ids=repr)
def test_gradient_of_quadratic_form(kind):
    y = kind.make(b)
    slope = mb.autodiff.gradient(lambda a: y @ L.solve(a, y), kind.make(A))
    expected = -np.outer(np.linalg.solve(A.T, b), np.linalg.solve(A, b))
    np.testing.assert_allclose(contents(slope), expected, rtol=1e-9, atol=1e-12)
    slope = mb.autodiff.gradient(lambda v: v @ L.solve(kind.make(S), v), y)
    np.testing.assert_allclose(contents(slope), 2 * np.linalg.solve(S, b), rtol=1e-10)


POINTS = RNG.normal(size=(6, 2))
TARGETS = RNG.normal(size=6)


def likelihood(theta, kind=PLAIN[0], identity=True):
    """What a Gaussian process with four parameters says of targets."""
    x = kind.make(POINTS) / mb.exp(theta[:2])
    apart = mb.sum((x[:, None] - x[None]) ** 2, axis=-1)
    noise = mb.exp(theta[3]) * mb.Identity(6, device=kind.family)
    factor = L.cholesky(mb.exp(theta[2]) * mb.exp(-0.5 * apart) + noise)
    y = kind.make(TARGETS)
    return 0.5 * (y @ L.cho_solve((factor, True), y)) + mb.sum(mb.log(L.diagonal(factor)))


THETA = np.array([0.1, 0.2, 0.3, -1.0])


@pytest.mark.parametrize("kind", PLAIN, ids=repr)
def test_marginal_likelihood_of_a_gaussian_process(kind):
    slope = mb.autodiff.gradient(lambda t: likelihood(t, kind), kind.make(THETA))
    assert type(slope) is kind.family[np.float64, 1]
    np.testing.assert_allclose(contents(slope), in_differences(likelihood, THETA), rtol=1e-6, atol=1e-8)


SECOND = {
    "slogdet": (lambda a: L.slogdet(a).logabsdet, square(n=3)),
    "det": (L.det, square(n=3)),
    "solve": (lambda a: mb.sum(L.solve(a, a[0]) ** 2), square(n=3)),
    "inv": (lambda a: mb.sum(L.inv(a) ** 2), square(n=3)),
    "cholesky": (lambda a: mb.sum(L.cholesky(symmetric(a)) ** 3), definite(n=3)),
    "eigvalsh": (lambda a: mb.sum(L.eigvalsh(symmetric(a)) ** 3), definite(n=3)),
    "eigh": (lambda a: mb.sum(L.eigh(symmetric(a)).eigenvectors ** 4), definite(n=3)),
    "eigvals": (lambda a: mb.sum(mb.real(L.eigvals(a) ** 3)), square(n=3)),
    "svdvals": (lambda a: mb.sum(L.svdvals(a) ** 3), square(n=3)),
    "qr": (lambda a: mb.sum(L.qr(a).R ** 3), square(n=3)),
    "lu": (lambda a: mb.sum(L.lu(a)[2] ** 2), square(n=3)),
    "lstsq": (lambda a: mb.sum(L.lstsq(a, mb.HostArray(TARGETS)).x ** 2), TALL[:, :2]),
    "pinv": (lambda a: mb.sum(L.pinv(a) ** 2), TALL[:, :2]),
    "expm": (lambda a: mb.sum(L.expm(a) ** 2), square(n=2) / 4),
    "sqrtm": (lambda a: mb.sum(L.sqrtm(a) ** 3), definite(n=2)),
    "logm": (lambda a: mb.sum(L.logm(a) ** 2), definite(n=2)),
    "solve_triangular": (lambda a: mb.sum(L.solve_triangular(a, a[0], lower=True) ** 2), square(n=3)),
    "factorize": (lambda a: a[0] @ L.factorize(a).solve(a[1]) + L.factorize(a).logdet(), square(n=3)),
    "LU": (lambda a: a[0] @ L.LU(a).solve(a[1]), square(n=3)),
    "norm": (lambda a: L.norm(a, "nuc") + L.norm(a), square(n=3)),
    "gaussian_process": (likelihood, THETA),
}


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives(name):
    f, x = SECOND[name]
    found = contents(mb.autodiff.hessian(f, mb.HostArray(x))).reshape(x.size, x.size)
    np.testing.assert_allclose(found, found.T, rtol=1e-7, atol=1e-8)
    along = np.random.default_rng(2).normal(size=x.shape)

    def slope(step):
        return contents(mb.autodiff.gradient(f, mb.HostArray(x + step * along)))

    expected = (slope(1e-5) - slope(-1e-5)) / 2e-5
    np.testing.assert_allclose(found @ along.ravel(), expected.ravel(), rtol=1e-5, atol=1e-6)


def test_a_solve_inside_of_one_differentiated():
    """The inner derivative is by the right-hand side, the outer one by the matrix."""

    def inner(a):
        return mb.sum(mb.autodiff.gradient(lambda v: v @ L.factorize(a).solve(v), mb.HostArray(b)) ** 2)

    slope = contents(mb.autodiff.gradient(inner, mb.HostArray(A)))
    np.testing.assert_allclose(slope, in_differences(inner, A), rtol=1e-6, atol=1e-7)


# Degenerate ones, as JAX has them


def test_equal_eigenvalues_have_derivatives_and_their_vectors_have_not():
    w, dw = mb.autodiff.jvp(L.eigvalsh, (mb.HostArray(np.eye(3)),), (mb.HostArray(np.diag([1.0, 2.0, 3.0])),))
    np.testing.assert_allclose(contents(w), 1)
    np.testing.assert_allclose(contents(dw), [1, 2, 3])
    turned = np.eye(3) + 1.0
    _, (dw, dV) = mb.autodiff.jvp(L.eigh, (mb.HostArray(np.eye(3)),), (mb.HostArray(turned),))
    assert np.isfinite(contents(dw)).all() and not np.isfinite(contents(dV)).all()


def test_norm_at_zero():
    assert np.isnan(contents(mb.autodiff.gradient(L.norm, mb.HostArray([0.0, 0.0])))).all()
    # (each element of an absolute value has the derivative 0 there)
    np.testing.assert_array_equal(
        contents(mb.autodiff.gradient(lambda x: L.vector_norm(x, ord=1), mb.HostArray([0.0, 2.0]))), [0, 1]
    )


def test_a_symmetric_matrix_has_a_symmetric_gradient():
    for f in (lambda a: mb.sum(L.cholesky(a)), lambda a: mb.sum(L.eigvalsh(a) ** 2)):
        slope = contents(mb.autodiff.gradient(f, mb.HostArray(S)))
        np.testing.assert_allclose(slope, slope.T, rtol=1e-12)


def test_norms_that_would_overflow():
    x = mb.HostArray([3e200, 4e200])
    np.testing.assert_allclose(contents(mb.autodiff.gradient(L.norm, x)), [0.6, 0.8])


# What it costs


def calls(f, x, n):
    """Library calls of a derivative along n directions."""
    along = np.random.default_rng(0).normal(size=(n, *x.shape))
    with mb.count() as c:
        for y in flat(f(mb.types.Dual(mb.HostArray(x), mb.HostArray(along)))):
            if isinstance(y, mb.types.Dual):
                mb.materialize(y.partials)
    return c.library_calls, c.launches


COSTS = {
    "solve": (lambda a: L.solve(a, mb.HostArray(B)), A),
    "solve_right": (lambda c: L.solve(mb.HostArray(A), c), B),
    "inv": (L.inv, A),
    "slogdet": (L.slogdet, A),
    "cholesky": (L.cholesky, S),
    "qr": (L.qr, TALL),
    "eigh": (L.eigh, S),
    "svd": (lambda a: L.svd(a, full_matrices=False), TALL),
    "lstsq": (lambda a: L.lstsq(a, mb.HostArray(TARGETS)), TALL),
    "expm": (L.expm, A),
    "sqrtm": (L.sqrtm, S),
    "factorize": (lambda a: L.factorize(a).solve(mb.HostArray(b)), S),
}


@pytest.mark.parametrize("name", COSTS)
def test_calls_do_not_depend_on_how_many_directions_there_are(name):
    f, x = COSTS[name]
    assert calls(f, x, 2) == calls(f, x, 9)


def test_a_solve_factors_once(monkeypatch):
    from mirabelle.arraytypes import library

    run, seen = library.call, []
    monkeypatch.setattr(library, "call", lambda name, *a, **k: (seen.append(name), run(name, *a, **k))[1])
    along = mb.HostArray(RNG.normal(size=(5, 4, 4)))
    mb.materialize(L.solve(mb.types.Dual(mb.HostArray(A), along), mb.HostArray(b)).partials)
    assert seen.count("linalg.lu_factor") == 1 and seen.count("linalg.lu_solve") == 2
    seen.clear()
    F = L.factorize(mb.HostArray(S))
    seen.clear()
    mb.materialize(F.solve(mb.types.Dual(mb.HostArray(b), mb.HostArray(RNG.normal(size=(7, 4))))).partials)
    assert seen == ["linalg.solve_triangular"] * len(seen)


def test_a_gradient_of_a_large_log_determinant_makes_no_large_partials():
    n = 120  # all partials of the matrix would be 1.6 GB
    slope = mb.autodiff.gradient(lambda a: L.slogdet(a).logabsdet, mb.HostArray(square(n=n)))
    assert slope.shape == (n, n)


# Refusals


REFUSED = {
    "svd": (lambda a: L.svd(a), TALL, "full_matrices=False"),
    "qr": (lambda a: L.qr(a, mode="complete"), TALL, "mode='reduced'"),
    "lu": (lambda a: L.lu(a), TALL, "mb.linalg.qr"),
    "schur": (lambda a: L.schur(a), A, "mb.autodiff.rule"),
    "ldl": (lambda a: L.LDL(symmetric(a)), S, "mb.autodiff.rule"),
    "lu_factor": (lambda a: L.lu_factor(a), AS, "mb.linalg.solve"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_derivative_says_so(name):
    f, x, cure = REFUSED[name]
    with pytest.raises(mb.autodiff.DualError, match="(?s)" + cure.replace("(", r"\(")):
        mb.autodiff.jvp(f, (mb.HostArray(x),), (mb.HostArray(x),))


def test_errors_of_matrices_stay_what_they_are():
    def of(f, x):
        return mb.autodiff.jvp(f, (mb.HostArray(x),), (mb.HostArray(x),))

    with pytest.raises(L.LinAlgError, match="singular"):
        of(lambda a: L.solve(a, mb.HostArray(b)), np.zeros((4, 4)))
    with pytest.raises(L.LinAlgError, match="positive definite"):
        of(L.cholesky, -np.eye(3))
    with pytest.raises(L.LinAlgError, match="square"):
        of(L.inv, TALL)


def test_a_rule_of_a_user_comes_first():
    def mine(a):
        return L.det(a)

    rule = mb.autodiff.differentiable(mine)

    @mb.autodiff.rule(rule)
    def _(primals, tangents):
        return rule(*primals), mb.sum(tangents[0]) * 0 + 7.0

    slope = mb.autodiff.gradient(rule, mb.HostArray(np.eye(2)))
    np.testing.assert_array_equal(contents(slope), np.full((2, 2), 7.0))


def test_shown():
    F = L.factorize(mb.types.Dual(mb.HostArray(A), mb.HostArray(A[None])))
    assert repr(F) == "Linearized of 4 x 4, float64, at host"
    assert repr(F.factors).startswith("LU of")


def test_beside_jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    along = np.random.default_rng(3).normal(size=(4, 4))
    pairs = [
        (lambda a: L.slogdet(a).logabsdet, lambda a: jnp.linalg.slogdet(a)[1], A),
        (L.cholesky, jnp.linalg.cholesky, S),
        (lambda a: L.eigh(a).eigenvalues, lambda a: jnp.linalg.eigh(a)[0], S),
        (L.pinv, jnp.linalg.pinv, A),
        (lambda a: L.qr(a).R, lambda a: jnp.linalg.qr(a)[1], A),
        (L.expm, jax.scipy.linalg.expm, A / 4),
    ]
    for ours, theirs, x in pairs:
        _, t = mb.autodiff.jvp(ours, (mb.HostArray(x),), (mb.HostArray(along),))
        _, expected = jax.jvp(theirs, (jnp.asarray(x),), (jnp.asarray(along),))
        np.testing.assert_allclose(contents(t), np.asarray(expected), rtol=1e-8, atol=1e-9)
