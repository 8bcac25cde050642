"""Solving with matrices: systems, inverses, determinants, least squares, ranks."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import array_function, as_array
from mirabelle.arraytypes.functions.contraction import standing_alone
from mirabelle.arraytypes.functions.lapack import (
    LinAlgError,
    call,
    check_matrices,
    check_square,
    inexact,
    refusing,
)
from mirabelle.arraytypes.functions.products import as_arrays
from mirabelle.dispatch import verbs
from mirabelle.dispatch.misuse import explained
from mirabelle.dispatch.signatures import keyword_only


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its absolute value."""

    sign: AbstractArray
    logabsdet: AbstractArray


class LstsqResult(NamedTuple):
    """A solution of least squares, the squared residuals, the rank, and the singular values."""

    x: AbstractArray
    residuals: AbstractArray
    rank: AbstractArray
    s: AbstractArray


def check_system(name: str, a: Any, b: Any) -> None:
    """The right-hand sides must be as long as the matrices: vectors only where `b` has one dimension."""
    if not b.ndim:
        raise LinAlgError(f"{name}: the right-hand side is a vector or columns of them, not one number.")
    rows = b.shape[-2 if b.ndim > 1 else -1]
    if rows != a.shape[-2]:
        hint = (
            " Make stacked vectors columns with b[..., None]."
            if b.ndim > 1 and b.shape[-1] == a.shape[-2]
            else ""
        )
        raise LinAlgError(
            f"{name}: the matrix has {a.shape[-2]} rows and the right-hand side {rows}; they must be equal "
            f"(shapes {a.shape} and {b.shape}).{hint}"
        )


@array_function(arity=2)
def solve(x1: Any, x2: Any, /) -> Any:
    """The x with x1 @ x = x2, for square matrices and right-hand sides, or stacks of both.

    `x1` may be a factorisation made before, and any type of matrix that knows how to solve.

    Parameters
    ----------
    x1 : array (..., n, n)
        The matrix, or a stack of them; structured ones are solved as what they are.
    x2 : array (..., n) or (..., n, k)
        The right-hand sides.

    Returns
    -------
    array
        Of the shape of `x2`, repeated for each matrix of a stack, and of the dtype that both promote to,
        float64 of integers.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.solve(mb.HostArray([[2.0, 0.0], [0.0, 4.0]]), mb.HostArray([2.0, 2.0])))
    [1.  0.5]
    """
    x1, x2 = as_arrays(x1, x2)
    check_square("solve", x1)
    check_system("solve", x1, x2)
    return call("solve", "linalg.solve", x1, x2)


@array_function
def inv(x: Any, /) -> Any:
    """The inverses of square matrices. (To solve a system, `solve` is faster and more exact.)

    Parameters
    ----------
    x : array (..., n, n)
        A square matrix, or a stack of them.

    Returns
    -------
    array
        Of the shape and dtype of `x`, float64 of integers, in new memory; of a `mb.Diagonal` it is one.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.inv(mb.HostArray([[2.0, 0.0], [0.0, 4.0]])))
    [[0.5  0.  ]
     [0.   0.25]]
    """
    check_square("inv", x)
    return call("inv", "linalg.inv", x)


@keyword_only("rcond", "hermitian")
@array_function
def pinv(x: Any, /, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """The pseudo-inverses: singular values below `rtol` (NumPy's `rcond`) times the largest count as zero.

    Parameters
    ----------
    x : array (..., m, n)
        A matrix, or a stack of them.
    rcond : float or None
        NumPy's name for `rtol`.
    hermitian : bool, default False
        Whether the matrix is symmetric (Hermitian), which takes less work.
    rtol : float or None
        Smaller singular values, relative to the largest, count as zero.

    Returns
    -------
    array
        Of shape (..., n, m), of the dtype of `x`, float64 of integers, in new memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.pinv(mb.HostArray([[2.0, 0.0], [0.0, 0.0]])))
    [[0.5 0. ]
     [0.  0. ]]
    """
    check_matrices("pinv", x)
    if rcond is not None:
        if rtol is not None:
            raise ValueError("`rtol` and `rcond` can't be both set: they are one number.")
        rtol = rcond
    return call("pinv", "linalg.pinv", x, rtol=_option(x, rtol), hermitian=bool(hermitian))


def _option(x: Any, value: Any) -> Any:
    """A tolerance: a number, or one for each matrix of a stack."""
    return value if value is None or isinstance(value, (int, float, np.generic)) else as_array(value, like=x)


@array_function
def det(x: Any, /) -> Any:
    """The determinants of square matrices.

    Parameters
    ----------
    x : array (..., n, n)
        A square matrix, or a stack of them.

    Returns
    -------
    array
        One number for each matrix, so an array without axes of one matrix. Of the dtype of `x`, float64 of
        integers.

    Examples
    --------
    >>> import mirabelle as mb
    >>> round(float(mb.linalg.det(mb.HostArray([[2.0, 0.0], [0.0, 4.0]]))), 10)
    8.0
    """
    check_square("det", x)
    return call("det", "linalg.det", x)


@array_function
def slogdet(x: Any, /) -> SlogdetResult:
    """Sign and logarithm of determinants, which may be too large or small for a number.

    Parameters
    ----------
    x : array (..., n, n)
        A square matrix, or a stack of them.

    Returns
    -------
    tuple of array
        `(sign, logabsdet)`, by these names, one number for each matrix: the sign of the dtype of `x`
        (float64 of integers), the logarithm real.

    Examples
    --------
    >>> import mirabelle as mb
    >>> sign, logabsdet = mb.linalg.slogdet(mb.HostArray([[0.0, 1.0], [1.0, 0.0]]))
    >>> print(sign, logabsdet)
    -1.0 0.0
    """
    check_square("slogdet", x)
    return SlogdetResult(*call("slogdet", "linalg.slogdet", x))


@array_function(arity=2)
def lstsq(a: Any, b: Any, /, rcond: Any = None) -> LstsqResult:
    """The x for which ‖a x - b‖ is least, and of several the shortest.

    `residuals` are the squared distances; they are empty where the rank is below the number of
    columns or there are no more rows than columns (NaN, in a stack).

    Parameters
    ----------
    a : array (m, n)
        The matrix.
    b : array (m,) or (m, k)
        The right-hand sides.
    rcond : float or None
        Smaller singular values, relative to the largest, count as zero.

    Returns
    -------
    tuple of array
        `(x, residuals, rank, s)`, by these names: x of shape (n,) or (n, k), residuals of (1,) or (k,), the
        rank without axes, and the singular values of `a`, descending.

    Examples
    --------
    >>> import mirabelle as mb
    >>> A = mb.HostArray([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> x, residuals, rank, s = mb.linalg.lstsq(A, mb.HostArray([1.0, 3.0, 5.0]))
    >>> print(mb.max(mb.abs(x - mb.HostArray([1.0, 2.0]))) < 1e-12)
    True
    """
    a, b = as_arrays(a, b)
    check_matrices("lstsq", a)
    check_system("lstsq", a, b)
    return LstsqResult(*call("lstsq", "linalg.lstsq", a, b, rcond=rcond))


@array_function
def matrix_rank(x: Any, /, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """The number of singular values above `rtol` times the largest (or above `tol`).

    Of a vector or a number it is 1, and 0 if nothing in it differs from 0.

    Parameters
    ----------
    x : array (..., m, n)
        A matrix, or a stack of them.
    tol : float or None
        Smaller singular values count as zero.
    hermitian : bool, default False
        Whether the matrix is symmetric (Hermitian), which takes less work.
    rtol : float or None
        As `tol`, relative to the largest one.

    Returns
    -------
    array
        One number for each matrix, so an array without axes of one matrix. Of int64.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.matrix_rank(mb.HostArray([[1.0, 1.0], [1.0, 1.0]])))
    1
    """
    if x.ndim < 2:  # (a vector is one row, as NumPy takes it)
        return verbs.astype(verbs.any(verbs.not_equal(x, 0)), np.int64)
    (x,) = inexact("matrix_rank", x)
    options: dict[str, Any] = {"hermitian": bool(hermitian)}
    if tol is not None:
        options["tol"] = _option(x, tol)
    else:
        options["rtol"] = _option(x, rtol)
    return refusing("matrix_rank", "linalg.matrix_rank", x, **options)


@array_function
def cond(x: Any, /, p: Any = None) -> Any:
    """The condition numbers: how much solving with a matrix magnifies relative errors.

    `p` is the norm: 2 (the default), -2, 1, -1, inf, -inf, "fro" or "nuc".

    Parameters
    ----------
    x : array (..., m, n)
        A matrix, or a stack of them.
    p : number or str
        By which norm, as in `np.linalg.cond`; None is the 2-norm.

    Returns
    -------
    array
        One number for each matrix, so an array without axes of one matrix. Real, of the precision of `x`,
        float64 of integers.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.cond(mb.HostArray([[4.0, 0.0], [0.0, 2.0]])))
    2.0
    """
    check_matrices("cond", x)
    if p not in (None, 2, -2):
        check_square("cond", x)
    return call("cond", "linalg.cond", x, p=p)


@array_function(arity=2)
def solve_triangular(
    a: Any, b: Any, /, *, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False
) -> Any:
    """The x with a x = b for a triangular matrix, of which the other triangle is not read.

    `trans` is 0, 1 (transposed) or 2 (conjugated too).

    Parameters
    ----------
    a : array (n, n)
        The triangular matrix.
    b : array (n,) or (n, k)
        The right-hand sides.
    trans : int or str, default 0
        0 solves with a, 1 with its transpose, 2 with its adjoint.
    lower : bool, default False
        Which triangle is read.
    unit_diagonal : bool, default False
        Whether the diagonal counts as ones.

    Returns
    -------
    array
        Of the shape of `b` and of the dtype that both promote to, float64 of integers.

    Examples
    --------
    >>> import mirabelle as mb
    >>> a = mb.HostArray([[2.0, 0.0], [1.0, 4.0]])
    >>> print(mb.linalg.solve_triangular(a, mb.HostArray([2.0, 9.0]), lower=True))
    [1. 2.]
    """
    a, b = as_arrays(a, b)
    check_square("solve_triangular", a)
    check_system("solve_triangular", a, b)
    how = {"N": 0, "T": 1, "C": 2}.get(trans, trans)
    if how not in (0, 1, 2):
        raise ValueError(f"solve_triangular: trans is 0, 1 or 2, not {trans!r}.")
    options = {"lower": bool(lower), "trans": how, "unit_diagonal": bool(unit_diagonal)}
    return call("solve_triangular", "linalg.solve_triangular", a, b, **options)


# Factors as SciPy has them


@array_function
def lu_factor(a: Any, /) -> tuple[AbstractArray, AbstractArray]:
    """The factors of a = P L U in one matrix, and the rows that were swapped: for `lu_solve`.

    Parameters
    ----------
    a : array (n, n)
        A square matrix.

    Returns
    -------
    tuple of array
        `(factors, pivots)`: U and, below its diagonal, L without its ones, of the shape of `a` and floating
        point; row i was swapped with row `pivots[i]` (int32).

    Examples
    --------
    >>> import mirabelle as mb
    >>> factors, pivots = mb.linalg.lu_factor(mb.HostArray([[0.0, 2.0], [1.0, 3.0]]))
    >>> print(pivots)
    [1 1]
    """
    check_matrices("lu_factor", a)
    return call("lu_factor", "linalg.lu_factor", a)


@explained
def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0) -> AbstractArray:
    """The x with a x = b, given `lu_factor(a)`; `trans` is 0, 1 (transposed) or 2 (conjugated too).

    Parameters
    ----------
    lu_and_piv : pair
        What `lu_factor` returned.
    b : array (n,) or (n, k)
        The right-hand sides.
    trans : int, default 0
        0 solves with a, 1 with its transpose, 2 with its adjoint.

    Returns
    -------
    array
        Of the shape of `b` and of the dtype that it and the factors promote to, float64 of integers.

    Examples
    --------
    >>> import mirabelle as mb
    >>> factors = mb.linalg.lu_factor(mb.HostArray([[0.0, 2.0], [1.0, 3.0]]))
    >>> print(mb.linalg.lu_solve(factors, mb.HostArray([2.0, 4.0])))
    [1. 1.]
    """
    factors, pivots = lu_and_piv
    if trans not in (0, 1, 2):
        raise ValueError(f"lu_solve: trans is 0, 1 or 2, not {trans!r}.")
    factors = as_array(factors)
    b = as_array(b, like=factors)
    check_square("lu_solve", factors)
    check_system("lu_solve", factors, b)
    factors, b = inexact("lu_solve", factors, b)
    return refusing("lu_solve", "linalg.lu_solve", factors, as_array(pivots, like=factors), b, trans=trans)


@array_function
def cho_factor(a: Any, /, lower: bool = False) -> tuple[AbstractArray, bool]:
    """The triangular factor of a positive definite matrix, and which triangle it is: for `cho_solve`.

    Parameters
    ----------
    a : array (..., n, n)
        A positive definite matrix.
    lower : bool, default False
        Which triangle is read and returned.

    Returns
    -------
    tuple
        The triangular factor, of the shape and dtype of `a` (float64 of integers) and zero in the other
        triangle, and the bool `lower`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> factor, lower = mb.linalg.cho_factor(mb.HostArray([[4.0, 2.0], [2.0, 5.0]]))
    >>> print(factor, lower)
    [[2. 1.]
     [0. 2.]] False
    """
    check_square("cho_factor", a)
    return call("cho_factor", "linalg.cholesky", a, upper=not lower), bool(lower)


@explained
def cho_solve(c_and_lower: Any, b: Any) -> AbstractArray:
    """The x with a x = b, given `cho_factor(a)`.

    Parameters
    ----------
    c_and_lower : pair
        What `cho_factor` returned.
    b : array (n,) or (n, k)
        The right-hand sides.

    Returns
    -------
    array
        Of the shape of `b` and of the dtype that it and the factor promote to, float64 of integers.

    Examples
    --------
    >>> import mirabelle as mb
    >>> factor = mb.linalg.cho_factor(mb.HostArray([[4.0, 2.0], [2.0, 5.0]]))
    >>> print(mb.linalg.cho_solve(factor, mb.HostArray([6.0, 7.0])))
    [1. 1.]
    """
    factor, lower = c_and_lower
    factor = as_array(factor)
    b = as_array(b, like=factor)
    check_square("cho_solve", factor)
    check_system("cho_solve", factor, b)
    if b.ndim == 1:  # as a column, so that for a stack of factors the first half is no matrix
        return standing_alone(cho_solve((factor, lower), b[:, None])[..., 0])
    first, second = (0, 2) if lower else (2, 0)
    return solve_triangular(
        factor, solve_triangular(factor, b, lower=lower, trans=first), lower=lower, trans=second
    )


# Tensors as matrices


@array_function(arity=2)
def tensorsolve(a: Any, b: Any, /, axes: Any = None) -> Any:
    """The x with tensordot(a, x, x.ndim) = b.

    Parameters
    ----------
    a : array
        The tensor.
    b : array
        The right-hand side.
    axes : sequence of int or None
        Axes of `a` that are moved behind the others before.

    Returns
    -------
    array
        Of the shape `a.shape[b.ndim:]` (after `axes` are moved), and of the dtype that both promote to,
        float64 of integers.

    Examples
    --------
    >>> import mirabelle as mb
    >>> a = mb.reshape(mb.HostArray([[2.0, 0.0], [0.0, 4.0]]), (2, 2, 1))
    >>> print(mb.linalg.tensorsolve(a, mb.HostArray([2.0, 4.0])))
    [[1.]
     [1.]]
    """
    a, b = as_arrays(a, b)
    if axes is not None:
        moved = [axis % a.ndim for axis in axes]
        a = verbs.permute_dims(a, (*(d for d in range(a.ndim) if d not in moved), *moved))
    shape = a.shape[b.ndim :]
    n = math.prod(shape)
    if a.size != n * n or b.size != n:
        raise LinAlgError(
            f"tensorsolve: with b of shape {b.shape}, the dimensions {shape} of `a` that are solved for come "
            f"to {n} unknowns, but there are {b.size} equations. They must be equally many."
        )
    return standing_alone(verbs.reshape(solve(verbs.reshape(a, (n, n)), verbs.reshape(b, (n,))), shape))


@array_function
def tensorinv(a: Any, /, ind: int = 2) -> Any:
    """The inverse of a tensor whose first `ind` dimensions are mapped to by the others.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    ind : int, default 2
        How many of the first dimensions.

    Returns
    -------
    array
        Of the shape `a.shape[ind:] + a.shape[:ind]` and of the dtype of `a`, float64 of integers.

    Examples
    --------
    >>> import mirabelle as mb
    >>> a = mb.reshape(mb.HostArray([[2.0, 0.0], [0.0, 4.0]]), (2, 2, 1))
    >>> mb.linalg.tensorinv(a, ind=1).shape
    (2, 1, 2)
    """
    if ind <= 0:
        raise ValueError("tensorinv: ind is the number of dimensions mapped to, at least 1.")
    old, new = a.shape[:ind], a.shape[ind:]
    if math.prod(old) != math.prod(new):
        raise LinAlgError(
            f"tensorinv: the first {ind} dimensions have {math.prod(old)} elements and the others "
            f"{math.prod(new)}; they must be equally many."
        )
    inverse = inv(verbs.reshape(a, (math.prod(old), math.prod(new))))
    return standing_alone(verbs.reshape(inverse, (*new, *old)))
