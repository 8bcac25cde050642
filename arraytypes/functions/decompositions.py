"""Decompositions of matrices: triangular, orthogonal, by eigenvalues, by singular values.

Each takes stacks of matrices in the last two dimensions, and runs in the LAPACK of the array's place.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import array_function
from mirabelle.arraytypes.functions.lapack import adjoint, call, check_matrices, check_square
from mirabelle.dispatch import verbs
from mirabelle.dispatch.signatures import keyword_only


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: AbstractArray
    eigenvectors: AbstractArray


class EighResult(NamedTuple):
    """Real eigenvalues in ascending order, and orthonormal eigenvectors as columns."""

    eigenvalues: AbstractArray
    eigenvectors: AbstractArray


class QRResult(NamedTuple):
    """A matrix of orthonormal columns, and an upper triangular one."""

    Q: AbstractArray
    R: AbstractArray


class SVDResult(NamedTuple):
    """Left singular vectors as columns, singular values in descending order, right ones as rows."""

    U: AbstractArray
    S: AbstractArray
    Vh: AbstractArray


@array_function
def cholesky(x: Any, /, *, upper: bool = False) -> Any:
    """The triangular L with x = L Lᴴ (or U with x = Uᴴ U) of a positive definite matrix.

    Parameters
    ----------
    x : array (..., n, n)
        A positive definite matrix, or a stack of them.
    upper : bool, default False
        Whether U is returned, and not L.

    Returns
    -------
    array
        Of the shape and dtype of `x`, float64 of integers, in new memory. The other triangle is zero.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.cholesky(mb.HostArray([[4.0, 2.0], [2.0, 5.0]])))
    [[2. 0.]
     [1. 2.]]
    """
    check_square("cholesky", x)
    return call("cholesky", "linalg.cholesky", x, upper=bool(upper))


@keyword_only("mode")
@array_function
def qr(x: Any, /, mode: str = "reduced") -> QRResult | AbstractArray:
    """x = Q R with orthonormal columns in Q and an upper triangular R.

    `mode` is "reduced", "complete" (a square Q), or "r" (R alone).

    Parameters
    ----------
    x : array (..., m, n)
        A matrix, or a stack of them.
    mode : str, default 'reduced'
        "reduced", "complete" (a square Q) or "r" (R alone).

    Returns
    -------
    array or tuple of array
        `(Q, R)`, by these names: of shapes (..., m, k) and (..., k, n) with k = min(m, n), (..., m, m) and
        (..., m, n) if complete. R alone, an array, for "r".

    Examples
    --------
    >>> import mirabelle as mb
    >>> Q, R = mb.linalg.qr(mb.HostArray([[3.0, 0.0], [4.0, 5.0]]))
    >>> Q.shape, R.shape
    ((2, 2), (2, 2))
    """
    check_matrices("qr", x)
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f'qr: mode is "reduced", "complete" or "r", not {mode!r}.')
    result = call("qr", "linalg.qr", x, mode=mode)
    return result if mode == "r" else QRResult(*result)


def _complex(dtype: Any) -> np.dtype:
    return np.result_type(dtype, np.complex64)


@array_function
def eig(x: Any, /) -> EigResult:
    """Eigenvalues and eigenvectors of square matrices, always complex.

    Parameters
    ----------
    x : array (..., n, n)
        A square matrix, or a stack of them.

    Returns
    -------
    tuple of array
        `(eigenvalues, eigenvectors)`, by these names: of shape (..., n), and (..., n, n), the vectors in
        columns. complex64 of half and single precision, else complex128.

    Examples
    --------
    >>> import mirabelle as mb
    >>> w, v = mb.linalg.eig(mb.HostArray([[0.0, -1.0], [1.0, 0.0]]))
    >>> print(w)
    [0.+1.j 0.-1.j]
    """
    check_square("eig", x)
    values, vectors = call("eig", "linalg.eig", x)
    # LAPACK's answer is real where all eigenvalues are; a dtype must not depend on values.
    dtype = _complex(values.dtype)
    return EigResult(verbs.astype(values, dtype, copy=False), verbs.astype(vectors, dtype, copy=False))


@array_function
def eigvals(x: Any, /) -> Any:
    """The eigenvalues of square matrices, always complex.

    Parameters
    ----------
    x : array (..., n, n)
        A square matrix, or a stack of them.

    Returns
    -------
    array
        Of shape (..., n), in no order. complex64 of half and single precision, else complex128.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.eigvals(mb.HostArray([[2.0, 0.0], [0.0, 3.0]])))
    [2.+0.j 3.+0.j]
    """
    check_square("eigvals", x)
    values = call("eigvals", "linalg.eigvals", x)
    return verbs.astype(values, _complex(values.dtype), copy=False)


@keyword_only("UPLO")
@array_function
def eigh(x: Any, /, UPLO: str = "L") -> EighResult:
    """Eigenvalues and eigenvectors of symmetric (Hermitian) matrices, of which one triangle is read.

    Parameters
    ----------
    x : array (..., n, n)
        A square matrix, or a stack of them.
    UPLO : str, default 'L'
        Which triangle is read: "L" or "U".

    Returns
    -------
    tuple of array
        `(eigenvalues, eigenvectors)`, by these names: real, ascending, of shape (..., n), and of shape
        (..., n, n), the vectors in columns. float64 of integers.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.eigh(mb.HostArray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues)
    [1. 2.]
    """
    check_square("eigh", x)
    return EighResult(*call("eigh", "linalg.eigh", x, UPLO=_triangle("eigh", UPLO)))


@keyword_only("UPLO")
@array_function
def eigvalsh(x: Any, /, UPLO: str = "L") -> Any:
    """The eigenvalues of symmetric (Hermitian) matrices, in ascending order.

    Parameters
    ----------
    x : array (..., n, n)
        A square matrix, or a stack of them.
    UPLO : str, default 'L'
        Which triangle is read: "L" or "U".

    Returns
    -------
    array
        Real, of shape (..., n) and of the precision of `x`, float64 of integers.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.eigvalsh(mb.HostArray([[2.0, 0.0], [0.0, 1.0]])))
    [1. 2.]
    """
    check_square("eigvalsh", x)
    return call("eigvalsh", "linalg.eigvalsh", x, UPLO=_triangle("eigvalsh", UPLO))


def _triangle(name: str, given: str) -> str:
    if str(given).upper() not in ("L", "U"):
        raise ValueError(f'{name}: UPLO is "L" or "U", the triangle that is read; not {given!r}.')
    return str(given).upper()


@keyword_only("full_matrices", "compute_uv", "hermitian")
@array_function
def svd(
    x: Any, /, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> SVDResult | AbstractArray:
    """x = U diag(S) Vh, with orthonormal columns in U and rows in Vh, and S not negative, descending.

    Parameters
    ----------
    x : array (..., m, n)
        A matrix, or a stack of them.
    full_matrices : bool, default True
        Whether U and Vh are square.
    compute_uv : bool, default True
        Whether U and Vh are computed at all.
    hermitian : bool, default False
        Whether the matrix is symmetric (Hermitian), which takes less work.

    Returns
    -------
    array or tuple of array
        `(U, S, Vh)`, by these names: of shapes (..., m, m), (..., k), (..., n, n) with k = min(m, n); (...,
        m, k), (..., k), (..., k, n) unless full. S alone without `compute_uv`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.svd(mb.HostArray([[3.0, 0.0], [0.0, 4.0]])).S)
    [4. 3.]
    """
    check_matrices("svd", x)
    if hermitian:
        check_square("svd", x)
    options = {
        "full_matrices": bool(full_matrices),
        "compute_uv": bool(compute_uv),
        "hermitian": bool(hermitian),
    }
    result = call("svd", "linalg.svd", x, **options)
    return SVDResult(*result) if compute_uv else result


@array_function
def svdvals(x: Any, /) -> Any:
    """The singular values, in descending order.

    Parameters
    ----------
    x : array (..., m, n)
        A matrix, or a stack of them.

    Returns
    -------
    array
        Real, of shape (..., min(m, n)) and of the precision of `x`, float64 of integers.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.svdvals(mb.HostArray([[3.0, 0.0], [0.0, 4.0]])))
    [4. 3.]
    """
    check_matrices("svdvals", x)
    return call("svdvals", "linalg.svd", x, compute_uv=False)


@array_function
def lu(a: Any, /, *, permute_l: bool = False, p_indices: bool = False) -> tuple[AbstractArray, ...]:
    """a = P L U with a permutation P, a unit lower and an upper triangular matrix.

    `permute_l` gives (P L, U); `p_indices` gives the rows as indices: a = L[p] @ U.

    Parameters
    ----------
    a : array (m, n)
        A matrix.
    permute_l : bool, default False
        Whether P L is returned as one.
    p_indices : bool, default False
        Whether P is returned as indices.

    Returns
    -------
    tuple of array
        `(P, L, U)`, of shapes (m, m), (m, k), (k, n) with k = min(m, n). `(P L, U)` with `permute_l`; with
        `p_indices` the first is a vector of int32.

    Examples
    --------
    >>> import mirabelle as mb
    >>> P, L, U = mb.linalg.lu(mb.HostArray([[0.0, 2.0], [1.0, 3.0]]))
    >>> print(U)
    [[1. 3.]
     [0. 2.]]
    """
    check_matrices("lu", a)
    return call("lu", "linalg.lu", a, permute_l=bool(permute_l), p_indices=bool(p_indices))


@array_function
def ldl(
    a: Any, /, *, lower: bool = True, hermitian: bool = True
) -> tuple[AbstractArray, AbstractArray, AbstractArray]:
    """a = L D Lᴴ of a symmetric (Hermitian) matrix, definite or not: L, D and the permutation.

    `L[perm]` is triangular, D has blocks of one or two rows.

    Parameters
    ----------
    a : array (n, n)
        A symmetric (Hermitian) matrix.
    lower : bool, default True
        Which triangle is read.
    hermitian : bool, default True
        Whether it is Hermitian, and not symmetric, where it is complex.

    Returns
    -------
    tuple of array
        `(L, D, perm)`: two matrices of the shape and dtype of `a` (float64 of integers), and a vector of
        int64. With `lower=False` L is upper triangular up to `perm`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> L, D, perm = mb.linalg.ldl(mb.HostArray([[2.0, 1.0], [1.0, 3.0]]))
    >>> print(L @ D @ L.T)
    [[2. 1.]
     [1. 3.]]
    """
    check_square("ldl", a)
    return call("ldl", "linalg.ldl", a, lower=bool(lower), hermitian=bool(hermitian))


@array_function
def schur(a: Any, /, *, output: str = "real") -> tuple[AbstractArray, AbstractArray]:
    """a = Z T Zᴴ with a unitary Z and an upper triangular T: (T, Z).

    Of a real matrix T has blocks of two rows for pairs of complex eigenvalues; `output="complex"`
    gives a triangular, complex T.

    Parameters
    ----------
    a : array (n, n)
        A square matrix.
    output : str, default 'real'
        "real" or "complex".

    Returns
    -------
    tuple of array
        `(T, Z)`, each of the shape of `a` and of its dtype, float64 of integers; complex with
        `output="complex"`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> T, Z = mb.linalg.schur(mb.HostArray([[1.0, 2.0], [0.0, 3.0]]))
    >>> print(T)
    [[1. 2.]
     [0. 3.]]
    """
    check_square("schur", a)
    if output not in ("real", "complex"):
        raise ValueError(f'schur: output is "real" or "complex", not {output!r}.')
    return call("schur", "linalg.schur", a, output=output)


@array_function
def hessenberg(a: Any, /, *, calc_q: bool = False) -> AbstractArray | tuple[AbstractArray, AbstractArray]:
    """a = Q H Qᴴ with a unitary Q and an H that is zero below its first subdiagonal.

    H alone, or (H, Q) with `calc_q=True`.

    Parameters
    ----------
    a : array (n, n)
        A square matrix.
    calc_q : bool, default False
        Whether Q is returned, too.

    Returns
    -------
    array or tuple of array
        H, or `(H, Q)`; each of the shape and dtype of `a`, float64 of integers, in new memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.hessenberg(mb.HostArray([[1.0, 2.0], [3.0, 4.0]])))
    [[1. 2.]
     [3. 4.]]
    """
    check_square("hessenberg", a)
    return call("hessenberg", "linalg.hessenberg", a, calc_q=bool(calc_q))


@array_function
def polar(a: Any, /, *, side: str = "right") -> tuple[AbstractArray, AbstractArray]:
    """a = U P (or, for the left side, a = P U) with orthonormal U and positive semi-definite P: (U, P).

    Parameters
    ----------
    a : array (m, n)
        A matrix.
    side : str, default 'right'
        "right" is U P, "left" is P U.

    Returns
    -------
    tuple of array
        `(U, P)`: U of the shape of `a`, P of shape (n, n), of the left side (m, m). Of the dtype of `a`,
        float64 of integers.

    Examples
    --------
    >>> import mirabelle as mb
    >>> U, P = mb.linalg.polar(mb.HostArray([[0.0, -2.0], [3.0, 0.0]]))
    >>> print(P)
    [[3. 0.]
     [0. 2.]]
    """
    check_matrices("polar", a)
    if side not in ("right", "left"):
        raise ValueError(f'polar: side is "right" or "left", not {side!r}.')
    u, s, vh = svd(a, full_matrices=False)
    s = s[..., None, :]
    factor = (adjoint(vh) * s) @ vh if side == "right" else (u * s) @ adjoint(u)
    return u @ vh, factor


@array_function
def null_space(A: Any, /, *, rcond: Any = None) -> Any:
    """Orthonormal columns that span what the matrix maps to zero.

    Singular values below `rcond` times the largest count as zero.

    Parameters
    ----------
    A : matrix
        An array of two dimensions, or a structured array.
    rcond : float or None
        Smaller singular values, relative to the largest, count as zero.

    Returns
    -------
    array
        Of shape (n, k), where n - k is the rank, so (n, 0) where only zero is mapped to zero. Of the dtype
        of `A`, float64 of integers.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.linalg.null_space(mb.HostArray([[1.0, 1.0]])).shape
    (2, 1)
    """
    check_matrices("null_space", A)
    _, s, vh = svd(A)
    return verbs.copy(adjoint(vh[..., rank("null_space", A, s, rcond) :, :]))


@array_function
def orth(A: Any, /, *, rcond: Any = None) -> Any:
    """Orthonormal columns that span the range of the matrix.

    Parameters
    ----------
    A : matrix
        An array of two dimensions, or a structured array.
    rcond : float or None
        Smaller singular values, relative to the largest, count as zero.

    Returns
    -------
    array
        Of shape (m, k), where k is the rank, so (m, 0) of a matrix of zeros. Of the dtype of `A`, float64
        of integers.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.linalg.orth(mb.HostArray([[1.0, 1.0], [1.0, 1.0]])).shape
    (2, 1)
    """
    check_matrices("orth", A)
    u, s, _ = svd(A, full_matrices=False)
    return verbs.copy(u[..., : rank("orth", A, s, rcond)])


def rank(name: str, A: Any, s: Any, rcond: Any) -> int:
    """The number of singular values that count, which all matrices of a stack must share."""
    if not s.size:
        return 0
    if rcond is None:
        rcond = float(np.finfo(s.dtype).eps) * max(A.shape[-2:])
    ranks = verbs.count_nonzero(s > verbs.max(s, axis=-1, keepdims=True) * rcond, axis=-1)
    low, high = int(verbs.min(ranks)), int(verbs.max(ranks))
    if low != high:
        raise ValueError(
            f"{name}: the matrices of the stack have ranks from {low} to {high}, so that the results have "
            "different shapes. Take them one at a time."
        )
    return low
