"""Factors of matrices of dual numbers: how each changes, for all directions in a few wide products.

Where a factor does not change smoothly the results are JAX's. Equal eigenvalues (singular values) have
derivatives; their vectors, which any rotation of them could replace, have not: infinities and NaN say so. A
symmetric matrix (`cholesky`, `eigh`, `eigvalsh`) changes by the symmetric part of what its entries change by,
so that gradients are symmetric, whichever triangle the library reads. Eigenvectors keep LAPACK's scale: of
length 1, their largest component real.

Norms are composed, of singular values or of elementwise functions: at zero the 2-norm has the derivative NaN.
"""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes import library
from mirabelle.arraytypes.duals.base import DualError, partials_of
from mirabelle.arraytypes.duals.columns import (
    adjoint,
    diagonal,
    identity,
    left,
    on_columns,
    right,
    symmetrised,
    triangle,
)
from mirabelle.arraytypes.duals.routines import on_values, rule_of
from mirabelle.arraytypes.duals.solving import rows_in_order
from mirabelle.arraytypes.functions import solving
from mirabelle.arraytypes.functions.lapack import LinAlgError
from mirabelle.arraytypes.functions.manipulation import concat
from mirabelle.dispatch import verbs


def _of(a: Any, value: Any, partials: Any) -> Any:
    return a._with(value, ((None, partials),))


# Triangular factors


@rule_of("linalg.cholesky")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    (a,), upper = operands, bool(options.get("upper"))
    value = on_values(routine, top, operands, options)
    L = adjoint(value) if upper else value

    def solve(columns: Any) -> Any:
        return solving.solve_triangular(L, columns, lower=True)

    # L⁻¹ dA L⁻ᴴ, of which the lower half, with half the diagonal, is L⁻¹ dL.
    half = on_columns(solve, symmetrised(partials_of(a)))
    middle = adjoint(on_columns(solve, adjoint(half)))
    inside = verbs.where(identity(middle), verbs.multiply(middle, 0.5), triangle(middle, True))
    change = left(L, inside)
    return _of(a, value, adjoint(change) if upper else change)


@rule_of("linalg.lu")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    (a,) = operands
    found = on_values(routine, top, operands, options)
    P, L, U = library.call(routine, a._value) if options.get("permute_l") else found
    if a.shape[-1] != a.shape[-2]:
        raise DualError(
            f"mb.linalg.lu of dual numbers has a rule for square matrices, and these have shape {a.shape}. "
            "For others there is mb.linalg.qr(A)."
        )
    dA = partials_of(a)
    if options.get("p_indices"):
        from mirabelle.arraytypes.functions.sorting import argsort

        if a.ndim > 2:
            raise DualError(
                "mb.linalg.lu(A, p_indices=True) of dual numbers has a rule for one matrix, and this is a "
                "stack. Take the matrices of permutations: mb.linalg.lu(A)."
            )
        dA = dA[:, argsort(P)]
    else:
        dA = left(adjoint(P), dA)
    dL, dU = _factors_change(L, U, dA)
    L, U = _of(a, L, dL), _of(a, U, dU)
    if options.get("permute_l"):
        return _of(a, found[0], left(P, dL)), U
    return P, L, U


def _factors_change(L: Any, U: Any, dA: Any) -> tuple[Any, Any]:
    """How L and U change, where dA is in the order of their rows."""
    inner = on_columns(lambda c: solving.solve_triangular(L, c, lower=True, unit_diagonal=True), dA)
    inner = _over(inner, U)
    return left(L, triangle(inner, True, -1)), right(triangle(inner, False), U)


def _over(p: Any, R: Any) -> Any:
    """p R⁻¹ for each direction, for an upper triangular R."""
    trans = 2 if R.dtype.kind == "c" else 1
    return adjoint(on_columns(lambda c: solving.solve_triangular(R, c, trans=trans), adjoint(p)))


@rule_of("linalg.lu_factor")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    (a,) = operands
    factors, pivots = on_values(routine, top, operands, options)
    order = rows_in_order(pivots, factors)
    L = verbs.where(identity(factors), 1, triangle(factors, True, -1))
    dL, dU = _factors_change(L, triangle(factors, False), partials_of(a)[:, order])
    return _of(a, factors, verbs.add(dL, dU)), pivots


# Orthogonal factors


@rule_of("linalg.qr")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    (a,), mode = operands, options.get("mode", "reduced")
    m, n = a.shape[-2:]
    if mode == "complete" and m > n:
        raise DualError(
            f"mb.linalg.qr(A, mode='complete') of dual numbers has no rule for matrices of more rows than "
            f"columns ({m} and {n}): the columns of Q beyond those of A are any. Take mode='reduced'."
        )
    if mode == "r":
        return library.call(routine, a, mode="reduced")[1]
    Q, R = on_values(routine, top, operands, options)
    dA = partials_of(a)
    k = min(m, n)
    dQ, dR = _qr_change(Q, R[..., :k], dA[..., :k])
    if n > m:
        beyond = verbs.subtract(dA[..., k:], right(dQ, R[..., k:]))
        dR = concat([dR, left(adjoint(Q), beyond)], axis=-1)
    return _of(a, Q, dQ), _of(a, R, dR)


def _qr_change(Q: Any, R: Any, dA: Any) -> tuple[Any, Any]:
    try:
        outer = _over(dA, R)
    except LinAlgError:
        raise LinAlgError(
            "qr: the columns of the matrix depend on each other, so that its factors have no derivative. "
            "mb.linalg.pinv and lstsq do not need that they are independent."
        ) from None
    inner = left(adjoint(Q), outer)
    below = triangle(inner, True, -1)
    turning = verbs.subtract(below, adjoint(below))  # Qᴴ dQ is antihermitian, dR R⁻¹ upper triangular
    if inner.dtype.kind == "c":
        imaginary = verbs.multiply(verbs.imag(inner), 1j)
        turning = verbs.add(turning, verbs.where(identity(inner), imaginary, 0))
    rest = verbs.subtract(turning, inner)
    return verbs.add(left(Q, rest), outer), right(verbs.negative(rest), R)


# Eigenvalues


def _distances(w: Any) -> Any:
    """1 / (w[j] - w[i]), and 0 on the diagonal."""
    apart = verbs.subtract(w[..., None, :], w[..., :, None])
    one = verbs.equal(*_square_places(w))
    return verbs.where(one, 0, verbs.reciprocal(verbs.where(one, 1, apart)))


def _square_places(w: Any) -> tuple[Any, Any]:
    from mirabelle.arraytypes.structured.base import family_of, indices

    at = indices(family_of(w), w.shape[-1])
    return verbs.reshape(at, (-1, 1)), at


def _real_part(x: Any) -> Any:
    return verbs.real(x) if x.dtype.kind == "c" else x


@rule_of("linalg.eigh")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    (a,) = operands
    w, V = on_values(routine, top, operands, options)
    inner = right(left(adjoint(V), symmetrised(partials_of(a))), V)
    dV = left(V, verbs.multiply(_distances(w), inner))
    return _of(a, w, _real_part(diagonal(inner))), _of(a, V, dV)


@rule_of("linalg.eigvalsh")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    (a,) = operands
    w = on_values(routine, top, operands, options)
    _, V = library.call("linalg.eigh", a._value, **options)
    turned = right(symmetrised(partials_of(a)), V)
    slopes = verbs.sum(verbs.multiply(turned, verbs.conj(V) if V.dtype.kind == "c" else V), axis=-2)
    return _of(a, w, _real_part(slopes))


@rule_of("linalg.eig")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    (a,) = operands
    w, V = on_values(routine, top, operands, options)
    inner = _in_vectors(V, partials_of(a))
    dV = left(V, verbs.multiply(_distances(w), inner))
    # Of length 1, and the largest component real.
    along = verbs.sum(verbs.multiply(verbs.conj(V), dV), axis=-2, keepdims=True)
    dV = verbs.subtract(dV, verbs.multiply(V, verbs.real(along) if along.dtype.kind == "c" else along))
    if V.dtype.kind == "c":
        size = verbs.abs(V)
        largest = verbs.equal(size, verbs.max(size, axis=-2, keepdims=True))
        turn = verbs.where(largest, verbs.imag(verbs.divide(dV, verbs.where(largest, V, 1))), 0.0)
        turn = verbs.divide(verbs.sum(turn, axis=-2, keepdims=True), verbs.sum(largest, axis=-2, keepdims=True))
        dV = verbs.subtract(dV, verbs.multiply(V, verbs.multiply(turn, 1j)))
    return _of(a, w, diagonal(inner)), _of(a, V, dV)


@rule_of("linalg.eigvals")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    (a,) = operands
    # (The values come from the call that gives the vectors too: in another order they would not match.)
    w, V = library.call("linalg.eig", a._value)
    return _of(a, w, diagonal(_in_vectors(V, partials_of(a))))


def _in_vectors(V: Any, dA: Any) -> Any:
    """V⁻¹ dA V for each direction."""
    return on_columns(lambda c: solving.solve(V, c), right(dA, V))


# Singular values


@rule_of("linalg.svd")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    (a,) = operands
    dA = symmetrised(partials_of(a)) if options.get("hermitian") else partials_of(a)
    found = on_values(routine, top, operands, options)
    if not options.get("compute_uv", True):
        hermitian = bool(options.get("hermitian", False))
        U, _, Vh = library.call(
            "linalg.svd", a._value, full_matrices=False, compute_uv=True, hermitian=hermitian
        )
        turned = right(dA, adjoint(Vh))
        slopes = verbs.sum(verbs.multiply(turned, verbs.conj(U) if U.dtype.kind == "c" else U), axis=-2)
        return _of(a, found, _real_part(slopes))
    m, n = a.shape[-2:]
    if options.get("full_matrices", True) and m != n:
        raise DualError(
            f"mb.linalg.svd of dual numbers has no rule for the vectors beyond the singular values, which are "
            f"any, and matrices of {m} x {n} have some. Leave them away: mb.linalg.svd(A, full_matrices=False)."
        )
    U, S, Vh = found
    V = adjoint(Vh)
    inner = right(left(adjoint(U), dA), V)
    column, row = S[..., :, None], S[..., None, :]
    one = verbs.equal(*_square_places(S))
    squares = verbs.multiply(verbs.add(row, column), verbs.subtract(row, column))
    F = verbs.where(one, 0, verbs.reciprocal(verbs.where(one, 1, squares)))
    scaled, other = verbs.multiply(row, inner), verbs.multiply(column, inner)
    at_U = verbs.multiply(F, verbs.add(scaled, adjoint(scaled)))
    at_V = verbs.multiply(F, verbs.add(other, adjoint(other)))
    if inner.dtype.kind == "c":  # the phase that both turn by together is given to U
        turn = verbs.divide(verbs.multiply(verbs.imag(inner), 1j), verbs.where(verbs.equal(row, 0), 1, row))
        at_U = verbs.add(at_U, verbs.where(one, turn, 0))
    dU, dV = left(U, at_U), left(V, at_V)
    if m > n:
        dU = verbs.add(dU, verbs.divide(_beside(U, right(dA, V)), row))
    if n > m:
        dV = verbs.add(dV, verbs.divide(_beside(V, right(adjoint(dA), U)), row))
    return _of(a, U, dU), _of(a, S, _real_part(diagonal(inner))), _of(a, Vh, adjoint(dV))


def _beside(U: Any, p: Any) -> Any:
    """What of `p` the columns of U do not span."""
    return verbs.subtract(p, left(U, left(adjoint(U), p)))
