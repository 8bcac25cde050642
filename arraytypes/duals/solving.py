"""Solving with matrices of dual numbers: one factorisation of the values, one wide solve for all directions.

From A x = b follows A dx = db - dA x. The right-hand side is what `b - A @ x` with x held constant has for
partials, so whatever a matrix is stored as, its product with a vector says how its solutions change.
Determinants change by the entries of the inverse, d log det A = tr(A⁻¹ dA): for a gradient these are all that
is computed. (Of a singular matrix the minors stand for the inverse times the determinant.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mirabelle.arraytypes import library
from mirabelle.arraytypes.duals.base import Dual, outermost, partials_of, value_in
from mirabelle.arraytypes.duals.columns import (
    adjoint,
    identity,
    left,
    on_columns,
    right,
    symmetrised,
    triangle,
)
from mirabelle.arraytypes.duals.reducing import summed
from mirabelle.arraytypes.duals.routines import RULES, is_mine, on_values, rule_of, with_value
from mirabelle.arraytypes.functions import decompositions, norms, solving
from mirabelle.arraytypes.functions.factorizations import LU, Factorization, factorize
from mirabelle.arraytypes.functions.lapack import LinAlgError
from mirabelle.arraytypes.functions.solving import SlogdetResult
from mirabelle.arraytypes.structured.base import duals_in
from mirabelle.dispatch import verbs

Solver = Callable[[Any], Any]


def by_residual(top: Any, solve: Solver, product: Solver, b: Any, changes: bool) -> Any:
    """The x with A x = b: `solve` solves with the values of A, `product` is A @ x of dual numbers.

    `changes` says whether A has derivatives of this differentiation.
    """
    x = solve(value_in(b, top._tag))
    rest = verbs.subtract(b, product(x)) if changes else b
    return top._with(x, ((None, on_columns(solve, partials_of(rest), b.ndim == 1)),))


def by_products(a: Any, b: Any) -> Any:
    """Solve with a structured matrix of dual parts as its type does with plain ones."""
    top = outermost((*duals_in(a), b))
    values = value_in(a, top._tag)
    changes = any(is_mine(x, top) for x in duals_in(a))
    return by_residual(top, lambda c: solving.solve(values, c), lambda x: verbs.matmul(a, x), b, changes)


class Linearized(Factorization):
    """A matrix of dual numbers, by the factors of its values: what `factorize` makes of one.

    >>> import mirabelle as mb
    >>> A, dA = mb.HostArray([[2.0, 0.0], [1.0, 4.0]]), mb.HostArray([[[1.0, 0.0], [0.0, 0.0]]])
    >>> F = mb.linalg.factorize(mb.types.Dual(A, dA))
    >>> F.factors, F.solve(mb.HostArray([2.0, 9.0])).partials.tolist()
    (Triangular of 2 x 2, float64, at host, [[-0.5, 0.125]])
    """

    _parts = ("matrix",)
    matrix: Any

    def __init__(self, A: Any, factors: Factorization | None = None) -> None:
        super().__init__(A)
        self.factors: Any = factorize(self.matrix._value) if factors is None else factors

    def _factor(self, A: Any) -> tuple[Any, ...]:
        return (A,)

    def _mapped(self, f: Callable[[Any], Any]) -> Any:
        made = super()._mapped(f)
        made.factors = self.factors._mapped(f)
        return made

    def _solve(self, b: Any) -> Any:
        A = self.matrix
        top = outermost((A, b))
        if top._tag is not A._tag:  # an inner differentiation, by the right-hand side alone
            return by_residual(top, self.solve, self.solve, b, False)
        return by_residual(top, self.factors.solve, lambda x: verbs.matmul(A, x), b, True)

    def inv(self) -> Any:
        return _inverse(self.matrix, self.factors.inv())

    def slogdet(self) -> SlogdetResult:
        return _slogdet(self.matrix, self.factors.slogdet(), self.factors.inv())

    def det(self) -> Any:
        value = self.factors.det()
        return traced(self.matrix, value, verbs.multiply(self.factors.inv(), value[..., None, None]))


@factorize.method
def _(A: Dual) -> Any:
    if A.shape[-1] != A.shape[-2]:
        from mirabelle.arraytypes.functions.factorizations import QR

        return QR(A)
    return Linearized(A)


def factors_of(a: Any) -> Any:
    """What solves with a matrix again and again as `mb.linalg.solve` does once."""
    if isinstance(a, Dual):
        return Linearized(a, factors_of(a._value))
    try:
        return LU(a)
    except ImportError:  # without SciPy each solve factors anew
        return _Unfactored(a)


class _Unfactored(Factorization):
    _parts = ("matrix",)
    matrix: Any

    def _factor(self, A: Any) -> tuple[Any, ...]:
        return (A,)

    def _solve(self, b: Any) -> Any:
        return library.call("linalg.solve", self.matrix, b)


# Systems


@rule_of("linalg.solve")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    a, b = operands
    if b.ndim == 1:
        return solving.solve(a, b[:, None])[..., 0]
    F = factors_of(value_in(a, top._tag))
    return by_residual(top, F.solve, lambda x: verbs.matmul(a, x), b, is_mine(a, top))


@rule_of("linalg.solve_triangular")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    a, b = operands
    if b.ndim == 1 and a.ndim > 2:
        return library.call(routine, a, b[:, None], **options)[..., 0]
    lower, trans = options["lower"], options.get("trans", 0)
    unit = options.get("unit_diagonal", False)

    def solve(columns: Any) -> Any:
        return library.call(routine, value_in(a, top._tag), columns, **options)

    def product(x: Any) -> Any:
        read = read_triangle(a, lower, unit)
        read = adjoint(read) if trans == 2 else read.mT if trans else read
        return verbs.matmul(read, x)

    return by_residual(top, solve, product, b, is_mine(a, top))


def read_triangle(a: Any, lower: bool, unit: bool) -> Any:
    """The triangle of a matrix that is read, with ones on its diagonal or what the matrix has there."""
    if unit:
        return verbs.where(identity(a), 1, triangle(a, lower, -1 if lower else 1))
    return triangle(a, lower)


@rule_of("linalg.lu_solve")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    factors, pivots, b = operands
    if not is_mine(factors, top):
        return _in_last(routine, top, operands, options)
    # (The factors of dual numbers are dual numbers: the two triangular systems are solved one by one.)
    order = rows_in_order(pivots, factors)
    if not options.get("trans", 0):
        y = solving.solve_triangular(factors, b[order], lower=True, unit_diagonal=True)
        return solving.solve_triangular(factors, y)
    from mirabelle.arraytypes.functions.sorting import argsort

    trans = options["trans"]
    y = solving.solve_triangular(factors, b, trans=trans)
    y = solving.solve_triangular(factors, y, lower=True, trans=trans, unit_diagonal=True)
    return y[argsort(order)]


def rows_in_order(pivots: Any, factors: Any) -> Any:
    """The order of rows that pivots say, of one square matrix."""
    from mirabelle.arraytypes.duals.base import DualError

    if factors.ndim > 2 or factors.shape[0] != factors.shape[1]:
        raise DualError(
            f"The LU factors of dual numbers have a rule for one square matrix, and these have shape "
            f"{factors.shape}. mb.linalg.solve, det and inv take stacks, and mb.linalg.qr(A) other shapes."
        )
    return library.call("linalg.permutation", pivots, rows=factors.shape[0])[0]


def _in_last(routine: str, top: Any, operands: Any, options: Any) -> Any:
    """A solve that is linear in its last operand, by factors without derivatives."""
    *factors, b = operands
    from mirabelle.arraytypes.duals.base import no_rule

    if any(is_mine(x, top) for x in factors):
        raise no_rule(top)

    def solve(columns: Any) -> Any:
        return library.call(routine, *factors, columns, **options)

    return by_residual(top, solve, solve, b, False)


rule_of("linalg.ldl_solve")(_in_last)


# Inverses


@rule_of("linalg.inv")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    return _inverse(operands[0], on_values(routine, top, operands, options))


def _inverse(a: Any, value: Any) -> Any:
    """dA⁻¹ = -A⁻¹ dA A⁻¹."""
    return a._with(value, ((None, verbs.negative(left(value, right(partials_of(a), value)))),))


@rule_of("linalg.pinv")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    (a,) = operands
    P = on_values(routine, top, operands, options)
    A, dA = a._value, partials_of(a)
    if options.get("hermitian"):
        dA = symmetrised(dA)
    first = verbs.negative(left(P, right(dA, P)))
    # What the range and the null space add, where they are not everything: the rank stays as it is.
    turned = adjoint(dA)
    second = left(verbs.matmul(P, adjoint(P)), verbs.subtract(turned, right(right(turned, A), P)))
    third = right(verbs.subtract(turned, left(P, left(A, turned))), verbs.matmul(adjoint(P), P))
    return a._with(P, ((None, verbs.add(first, verbs.add(second, third))),))


@rule_of("linalg.lstsq")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    a, b = operands
    if b.ndim == 1:
        x, residuals, rank, s = library.call(routine, a, b[:, None], **options)
        return x[..., 0], residuals, rank, s
    x, residuals, rank, s = on_values(routine, top, operands, options)
    A = value_in(a, top._tag)
    P = solving.pinv(A, rtol=options.get("rcond"))
    rest = verbs.subtract(value_in(b, top._tag), verbs.matmul(A, x))
    change = partials_of(verbs.subtract(b, verbs.matmul(a, x)))
    dx = left(P, change)
    if is_mine(a, top):
        turned = adjoint(partials_of(a))
        dx = verbs.add(dx, left(verbs.matmul(P, adjoint(P)), right(turned, rest)))
        low = right(turned, verbs.matmul(adjoint(P), x))
        dx = verbs.add(dx, verbs.subtract(low, left(P, left(A, low))))
        s = with_value(decompositions.svdvals(a), s)
    out = top._with(x, ((None, dx),))
    if residuals.size:
        apart = verbs.subtract(b, verbs.matmul(a, out))
        squares = verbs.square(apart) if apart.dtype.kind != "c" else verbs.square(verbs.abs(apart))
        residuals = with_value(verbs.sum(squares, axis=-2), residuals)
    return out, residuals, rank, s


# How many singular values count is a number that changes in steps
RULES["linalg.matrix_rank"] = on_values


# Determinants


def traced(a: Any, value: Any, factor: Any) -> Any:
    """`value`, which changes by tr(factor dA): for unit directions that is `factor` itself."""
    weight = verbs.permute_dims(factor, (*range(factor.ndim - 2), factor.ndim - 1, factor.ndim - 2))
    terms = tuple((weight if c is None else verbs.multiply(weight, c), base) for c, base in a._now())
    return summed(a, value, terms, (a.ndim - 2, a.ndim - 1), False)


@rule_of("linalg.slogdet")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    (a,) = operands
    sign, logarithm = on_values(routine, top, operands, options)
    return tuple(_slogdet(a, SlogdetResult(sign, logarithm), solving.inv(a._value)))


def _slogdet(a: Any, value: Any, inverse: Any) -> SlogdetResult:
    whole = traced(a, verbs.astype(value.logabsdet, a.dtype, copy=False), inverse)
    if a.dtype.kind != "c":
        return SlogdetResult(value.sign, whole)
    change = partials_of(whole)
    turning = verbs.multiply(verbs.multiply(verbs.imag(change), 1j), value.sign)
    return SlogdetResult(
        a._with(value.sign, ((None, turning),)), a._with(value.logabsdet, ((None, verbs.real(change)),))
    )


@rule_of("linalg.det")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    (a,) = operands
    value = on_values(routine, top, operands, options)
    try:
        factor = verbs.multiply(solving.inv(a._value), value[..., None, None])
    except LinAlgError:
        factor = adjugate(a._value)
    return traced(a, value, factor)


def adjugate(x: Any) -> Any:
    """The matrix of minors, by which the determinant of a singular matrix changes too."""
    u, s, vh = decompositions.svd(x)
    others = verbs.prod(verbs.where(identity(x), 1, s[..., None, :]), axis=-1)
    turn = verbs.multiply(solving.det(u), solving.det(vh))
    return verbs.multiply(
        verbs.matmul(verbs.multiply(adjoint(vh), others[..., None, :]), adjoint(u)), turn[..., None, None]
    )


@rule_of("linalg.cond")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    (a,), p = operands, options.get("p")
    value = on_values(routine, top, operands, options)
    if p in (None, 2, -2):
        s = decompositions.svdvals(a)
        high, low = s[..., 0], s[..., -1]
        return with_value(verbs.divide(low, high) if p == -2 else verbs.divide(high, low), value)
    inverse = solving.inv(a)
    return with_value(verbs.multiply(norms.matrix_norm(a, ord=p), norms.matrix_norm(inverse, ord=p)), value)


# Structured matrices, by the routines their types solve with


@rule_of("triangular_solve")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    a = operands[0]
    return _with_values(
        routine, top, operands, options,
        lambda x: verbs.matmul(read_triangle(a, not options["upper"], options["unit"]), x),
    )  # fmt: skip


@rule_of("tridiagonal_solve")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    from mirabelle.arraytypes.structured.banded import from_bands

    low, main, high, _ = operands
    matrix = from_bands({-1: low, 0: main, 1: high})
    return _with_values(routine, top, operands, options, lambda x: verbs.matmul(matrix, x))


@rule_of("mirrored_solve")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    return _with_values(
        routine, top, operands, options,
        lambda x: library.call("mirrored_product", operands[0], x, **options, left=True),
    )  # fmt: skip


@rule_of("toeplitz_solve")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    diagonals, b = operands
    shape = (b.shape[0],) * 2
    return _with_values(
        routine, top, operands, options,
        lambda x: library.call("toeplitz_product", diagonals, x, shape=shape, left=True),
    )  # fmt: skip


def _with_values(routine: str, top: Any, operands: Any, options: Any, product: Solver) -> Any:
    """A solve whose last operand is the right-hand side: the routine solves with the values of the others."""
    *parts, b = operands
    values = [value_in(p, top._tag) for p in parts]

    def solve(columns: Any) -> Any:
        return library.call(routine, *values, columns, **options)

    return by_residual(top, solve, product, b, any(is_mine(p, top) for p in parts))


@rule_of("csr_solve")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    from mirabelle.arraytypes.structured.sparse import CSR

    data, columns, indptr, b = operands
    n = b.shape[0]
    matrix = CSR._of((data, columns, indptr), (n, n))
    if is_mine(data, top) and isinstance(data._value, Dual):
        return solving.solve(verbs.dense(matrix), b)
    F = factorize(CSR._of((value_in(data, top._tag), columns, indptr), (n, n)))
    return by_residual(top, F.solve, lambda x: verbs.matmul(matrix, x), b, is_mine(data, top))


@rule_of("kronecker_sum_solve")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    from mirabelle.arraytypes.structured.kronecker_sum import KroneckerSum

    parts, b = operands
    values = [value_in(p, top._tag) for p in parts]
    x = library.call(routine, values, value_in(b, top._tag), **options)
    sizes = b.shape[1:-1]
    rest = b
    if any(is_mine(p, top) for p in parts):
        flat = verbs.reshape(x, (b.shape[0], -1, b.shape[-1]))
        rest = verbs.subtract(b, verbs.reshape(verbs.matmul(KroneckerSum(*parts), flat), b.shape))
    p = verbs.reshape(partials_of(rest), (-1, *sizes, b.shape[-1]))
    made = library.call(routine, values, p, **options)
    return top._with(x, ((None, verbs.reshape(made, (top._n, *b.shape))),))
