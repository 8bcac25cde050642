"""What SciPy's LAPACK does for the host, one matrix of a stack after the other.

NumPy's own routines take stacks; these are the ones NumPy lacks. SciPy is imported when one of
them is first called.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.host import HostArray


def scipy_linalg() -> Any:
    """scipy.linalg, or an error that says how to get it."""
    try:
        import scipy.linalg
    except ImportError:
        raise ImportError(
            "This function runs in SciPy's LAPACK, and SciPy is not installed: `pip install scipy`."
        ) from None
    return scipy.linalg


def stacked(run: Callable[..., Any], *operands: np.ndarray) -> Any:
    """`run` for each matrix of stacks that broadcast; its results, stacked as well."""
    if all(x.ndim == 2 for x in operands):
        return run(*operands)
    shape = np.broadcast_shapes(*[x.shape[:-2] for x in operands])
    operands = tuple(np.broadcast_to(x, (*shape, *x.shape[-2:])) for x in operands)
    if 0 in shape:
        # What a stack of none looks like, one matrix tells.
        one = run(*[_sample(x) for x in operands])
        return tuple(_none_of(r, shape) for r in one) if isinstance(one, tuple) else _none_of(one, shape)
    results = [run(*[x[at] for x in operands]) for at in np.ndindex(shape)]
    if not isinstance(results[0], tuple):
        return _joined(results, shape)
    return tuple(_joined(list(parts), shape) for parts in zip(*results, strict=True))


def _none_of(result: Any, shape: tuple[int, ...]) -> np.ndarray:
    return np.empty((*shape, *np.shape(result)), np.asarray(result).dtype)


def _sample(x: np.ndarray) -> np.ndarray:
    return np.eye(*x.shape[-2:], dtype=x.dtype)


def _joined(results: list[Any], shape: tuple[int, ...]) -> np.ndarray:
    made = np.stack([np.asarray(r) for r in results])
    return made.reshape(*shape, *made.shape[1:])


def routine(name: str) -> Callable[[Any], Any]:
    return library.routine(HostArray, f"linalg.{name}")


def columns(b: np.ndarray) -> tuple[np.ndarray, bool]:
    """Right-hand sides as columns, and whether they came as one vector."""
    return (b[:, None], True) if b.ndim == 1 else (b, False)


@routine("lu_factor")
def _(a: np.ndarray) -> Any:
    linalg = scipy_linalg()
    if not a.size:
        stack, n = a.shape[:-2], min(a.shape[-2:])
        return a.copy(), np.zeros((*stack, n), np.int32)

    def one(x: np.ndarray) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a zero on the diagonal is for whoever solves to judge
            return tuple(linalg.lu_factor(x, check_finite=False))

    return stacked(one, a)


def triangular(a: np.ndarray, b: np.ndarray, lower: bool, trans: int = 0, unit: bool = False) -> np.ndarray:
    """Solve with a triangular matrix by BLAS. (LAPACK's own trtrs starts threads for the smallest.)"""
    plain = trans < 2 or a.dtype.kind != "c"
    if plain and a.flags.c_contiguous and not a.flags.f_contiguous:  # its transpose is in BLAS's order
        a, lower, trans = a.T, not lower, 0 if trans else 1
    (trsm,) = scipy_linalg().get_blas_funcs(("trsm",), (a, b))
    return trsm(1.0, a, b, lower=lower, trans_a=trans, diag=unit)  # type: ignore[no-any-return]


@routine("lu_solve")
def _(factors: np.ndarray, pivots: np.ndarray, b: np.ndarray, *, trans: int = 0) -> Any:
    linalg = scipy_linalg()
    if not np.all(np.diagonal(factors, 0, -2, -1)):
        raise np.linalg.LinAlgError("Singular matrix")
    b, vector = columns(b)

    def one(lu: np.ndarray, swaps: np.ndarray, right: np.ndarray) -> Any:
        (swap_rows,) = linalg.get_lapack_funcs(("laswp",), (right,))
        if not trans:
            y = triangular(lu, swap_rows(right, swaps[0]), lower=True, unit=True)
            return triangular(lu, y, lower=False)
        y = triangular(lu, triangular(lu, right, lower=False, trans=trans), lower=True, trans=trans, unit=True)
        return swap_rows(y, swaps[0], inc=-1)

    x = stacked(one, factors, pivots[..., None, :], b) if b.size else b.copy()
    return x[..., 0] if vector else x


@routine("permutation")
def _(pivots: np.ndarray, rows: int) -> Any:
    """The order of rows that a list of swaps comes to, and its sign."""
    order = np.empty((*pivots.shape[:-1], rows), np.int64)
    for at in np.ndindex(pivots.shape[:-1]):
        p = np.arange(rows)
        for i, j in enumerate(pivots[at]):
            p[i], p[j] = p[j], p[i]
        order[at] = p
    swaps = np.count_nonzero(pivots != np.arange(pivots.shape[-1]), axis=-1)
    return order, np.where(swaps % 2, -1.0, 1.0)


@routine("solve_triangular")
def _(a: np.ndarray, b: np.ndarray, *, lower: bool = False, trans: int = 0, unit_diagonal: bool = False) -> Any:
    if not unit_diagonal and not np.all(np.diagonal(a, 0, -2, -1)):
        raise np.linalg.LinAlgError("Singular matrix")
    b, vector = columns(b)

    def one(x: np.ndarray, right: np.ndarray) -> Any:
        return triangular(x, right, lower, trans, unit_diagonal)

    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:])
    x = stacked(one, a, b) if a.size and b.size else np.zeros(shape, b.dtype)
    return x[..., 0] if vector else x


@routine("lu")
def _(a: np.ndarray, *, permute_l: bool = False, p_indices: bool = False) -> Any:
    linalg = scipy_linalg()
    return stacked(
        lambda x: tuple(linalg.lu(x, permute_l=permute_l, p_indices=p_indices, check_finite=False)), a
    )


@routine("ldl")
def _(a: np.ndarray, *, lower: bool = True, hermitian: bool = True) -> Any:
    linalg = scipy_linalg()
    return stacked(lambda x: tuple(linalg.ldl(x, lower=lower, hermitian=hermitian)), a)


@routine("ldl_solve")
def _(factor: np.ndarray, d: np.ndarray, order: np.ndarray, b: np.ndarray) -> Any:
    """x with L D Lᴴ x = b: two triangular solves around one with blocks of at most two rows."""
    linalg = scipy_linalg()
    b, vector = columns(b)

    def one(x: np.ndarray, blocks: np.ndarray, p: np.ndarray, right: np.ndarray) -> Any:
        p = p[0]
        triangle = np.asfortranarray(x[p])
        band = np.zeros((3, len(p)), blocks.dtype)
        band[0, 1:], band[1], band[2, :-1] = np.diag(blocks, 1), np.diag(blocks), np.diag(blocks, -1)
        y = triangular(triangle, right[p], lower=True, unit=True)
        y = linalg.solve_banded((1, 1), band, y, check_finite=False)
        out = np.empty_like(y)
        out[p] = triangular(triangle, y, lower=True, trans=2, unit=True)
        return out

    x = stacked(one, factor, d, order[..., None, :], b) if b.size else b.copy()
    return x[..., 0] if vector else x


@routine("schur")
def _(a: np.ndarray, *, output: str = "real") -> Any:
    linalg = scipy_linalg()
    return stacked(lambda x: tuple(linalg.schur(x, output=output)[:2]), a)


@routine("hessenberg")
def _(a: np.ndarray, *, calc_q: bool = False) -> Any:
    linalg = scipy_linalg()
    return stacked(lambda x: linalg.hessenberg(x, calc_q=calc_q), a)


@routine("expm")
def _(a: np.ndarray) -> Any:
    linalg = scipy_linalg()
    return stacked(linalg.expm, a)


@routine("logm")
def _(a: np.ndarray) -> Any:
    linalg = scipy_linalg()
    if not a.size:
        return a.copy()

    def one(x: np.ndarray) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return linalg.logm(x)

    return stacked(one, a)


@routine("sqrtm")
def _(a: np.ndarray) -> Any:
    linalg = scipy_linalg()

    def one(x: np.ndarray) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a singular matrix the root may not exist: NaN says so
            return linalg.sqrtm(x)

    return stacked(one, a)


@routine("lstsq")
def _(a: np.ndarray, b: np.ndarray, *, rcond: Any = None) -> Any:
    if a.ndim == 2 and b.ndim <= 2:
        found, residuals, rank, s = np.linalg.lstsq(a, b, rcond=rcond)
        return found, residuals, np.int64(rank), s
    b, vector = columns(b)
    many = b.shape[-1]

    def one(x: np.ndarray, right: np.ndarray) -> Any:
        found, residuals, rank, s = np.linalg.lstsq(x, right, rcond=rcond)
        if not len(residuals):
            residuals = np.full(many, np.nan, s.dtype)
        return found, residuals, np.int64(rank), s

    found, residuals, rank, s = stacked(one, a, b)
    return (found[..., 0], residuals[..., 0], rank, s) if vector else (found, residuals, rank, s)
