"""Triangular factors on a card: LU with row exchanges, triangular solves, permutations."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np

from mirabelle.backends.gpu.lib_linalg import adjoint, diagonal, stacked_eye
from mirabelle.backends.gpu.lib_systems import columns, stacked
from mirabelle.backends.gpu.library import absent, on_card, routine, scipy_module

absent("linalg.schur", "The Schur form of a general matrix is in no library for cards.")


@routine("linalg.lu_factor")
def lu_factor(xp: Any, a: Any) -> tuple[Any, Any]:
    """Factors in one matrix, and the rows that were exchanged, counted from 0."""
    k = min(a.shape[-2:])
    if not a.size:
        return a.copy(), xp.zeros((*a.shape[:-2], k), np.int32)
    if a.ndim == 2:
        return _lu_of_one(xp, a)
    if on_card(xp) and a.shape[-1] == a.shape[-2]:
        return _lu_of_stack(a)
    flat = a.reshape(-1, *a.shape[-2:])
    found = [_lu_of_one(xp, flat[i]) for i in range(flat.shape[0])]
    factors, pivots = (xp.stack(list(parts)) for parts in zip(*found, strict=True))
    return factors.reshape(a.shape), pivots.reshape(*a.shape[:-2], k)


def _lu_of_one(xp: Any, a: Any) -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a zero on the diagonal is for whoever solves to judge
        factors, pivots = scipy_module(xp, "linalg").lu_factor(a, check_finite=False)
    return factors, pivots.astype(np.int32, copy=False)


def _lu_of_stack(a: Any) -> tuple[Any, Any]:
    """All matrices of a stack at once: cuBLAS's `getrfBatched`, on the transposes."""
    decomposition = importlib.import_module("cupy.linalg._decomposition")
    factors, pivots, _ = decomposition._lu_factor(a.swapaxes(-1, -2), a.dtype)
    return factors.swapaxes(-1, -2), pivots - 1


_EXCHANGES = """
    for (long long j = 0; j < count; ++j) {
        long long other = i * rows + swaps[i * count + j], here = i * rows + j, kept = order[here];
        order[here] = order[other];
        order[other] = kept;
    }
"""


@routine("linalg.permutation")
def permutation(xp: Any, pivots: Any, *, rows: int) -> tuple[Any, Any]:
    """The order of rows that a list of exchanges comes to, and its sign."""
    stack, count = pivots.shape[:-1], pivots.shape[-1]
    order = xp.empty((*stack, rows), np.int64)
    order[...] = xp.arange(rows, dtype=np.int64)
    if order.size and count:
        if not on_card(xp):
            flat, swaps = order.reshape(-1, rows), pivots.reshape(-1, count)
            each = xp.arange(flat.shape[0])
            for j in range(count):
                other = swaps[:, j]
                flat[each, j], flat[each, other] = flat[each, other], flat[each, j].copy()
        else:
            kernel = xp.ElementwiseKernel(
                "raw I swaps, int64 count, int64 rows", "raw int64 order", _EXCHANGES, "mirabelle_exchanges"
            )
            kernel(xp.ascontiguousarray(pivots), count, rows, order, size=order.size // rows)
    exchanged = (pivots != xp.arange(count)).sum(axis=-1)
    return order, 1.0 - 2.0 * (exchanged % 2)


@routine("linalg.lu")
def _(xp: Any, a: Any, *, permute_l: bool = False, p_indices: bool = False) -> Any:
    m, n = a.shape[-2:]
    k = min(m, n)
    factors, pivots = lu_factor(xp, a)
    order, _ = permutation(xp, pivots, rows=m)
    lower = xp.tril(factors[..., :k], -1)
    at = xp.arange(k)
    lower[..., at, at] = 1
    upper = xp.triu(factors[..., :k, :])
    back = xp.argsort(order, axis=-1)  # row i of A is row back[i] of L U
    if permute_l:
        return xp.take_along_axis(lower, back[..., None], axis=-2), upper
    if p_indices:
        return back, lower, upper
    real = np.float32 if a.dtype.char in "fF" else np.float64
    return (back[..., None] == xp.arange(m)).astype(real), lower, upper


def solve_with_triangle(
    xp: Any, a: Any, b: Any, *, lower: bool, trans: int = 0, unit_diagonal: bool = False
) -> Any:
    """The x of a x = b for triangles and columns, stacks of one shape too; zeros divide."""
    if not a.size or not b.size:
        return xp.zeros(b.shape, b.dtype)
    if trans:  # turned here: of stacks, cuBLAS takes them as they lie
        a = adjoint(a) if trans == 2 else a.swapaxes(-1, -2)
        lower = not lower
    dtype = np.result_type(a.dtype, b.dtype)
    a, b = stacked(xp, a.astype(dtype, copy=False), b.astype(dtype, copy=False))
    solve = scipy_module(xp, "linalg").solve_triangular
    options = {"lower": lower, "unit_diagonal": unit_diagonal, "check_finite": False}
    if a.ndim == 2 or on_card(xp):
        return solve(xp.ascontiguousarray(a), xp.ascontiguousarray(b), **options)
    out = xp.empty(b.shape, dtype)
    for at in np.ndindex(a.shape[:-2]):
        out[at] = solve(a[at], b[at], **options)
    return out


@routine("linalg.solve_triangular")
def _(xp: Any, a: Any, b: Any, *, lower: bool = False, trans: int = 0, unit_diagonal: bool = False) -> Any:
    if not unit_diagonal:
        refuse_zeros(a)
    b, vector = columns(b)
    if a.size and b.size:
        x = solve_with_triangle(xp, a, b, lower=lower, trans=trans, unit_diagonal=unit_diagonal)
    else:
        x = xp.zeros((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]), b.dtype)
    return x[..., 0].copy() if vector else x


def refuse_zeros(a: Any) -> None:
    """A triangle with a zero on its diagonal is singular."""
    if bool((diagonal(a) == 0).any()):
        raise np.linalg.LinAlgError("Singular matrix")


@routine("linalg.lu_solve")
def lu_solve(xp: Any, factors: Any, pivots: Any, b: Any, *, trans: int = 0) -> Any:
    refuse_zeros(factors)
    b, vector = columns(b)
    if not b.size:
        x = b.copy()
        return x[..., 0] if vector else x
    order, _ = permutation(xp, pivots, rows=factors.shape[-1])
    shape = np.broadcast_shapes(factors.shape[:-2], b.shape[:-2])
    order = xp.broadcast_to(order[..., None], (*shape, *order.shape[-1:], 1))
    b = xp.broadcast_to(b, (*shape, *b.shape[-2:]))
    if not trans:
        y = xp.take_along_axis(b, order, axis=-2)
        y = solve_with_triangle(xp, factors, y, lower=True, unit_diagonal=True)
        x = solve_with_triangle(xp, factors, y, lower=False)
    else:
        y = solve_with_triangle(xp, factors, b, lower=False, trans=trans)
        y = solve_with_triangle(xp, factors, y, lower=True, trans=trans, unit_diagonal=True)
        x = xp.take_along_axis(y, xp.argsort(order, axis=-2), axis=-2)
    return x[..., 0].copy() if vector else x


@routine("linalg.hessenberg")
def _(xp: Any, a: Any, *, calc_q: bool = False) -> Any:
    """By Householder's reflections, one for each column, of all matrices of a stack together."""
    h = a.copy()
    n = a.shape[-1]
    q = stacked_eye(xp, a.shape[:-2], n, a.dtype)
    for k in range(n - 2):
        column = h[..., k + 1 :, k]
        length = xp.sqrt((column * column.conj()).real.sum(axis=-1))
        head = column[..., 0]
        size = xp.abs(head)
        phase = xp.where(size > 0, head / xp.where(size > 0, size, 1), 1)
        v = column.copy()
        v[..., 0] += phase * length
        # Nothing is to be done where all below the subdiagonal is zero already.
        done = xp.abs(column[..., 1:]).sum(axis=-1) == 0
        norm = xp.sqrt((v * v.conj()).real.sum(axis=-1))
        v = xp.where(done[..., None], 0, v / xp.where(norm > 0, norm, 1)[..., None]).astype(a.dtype)
        row, line = v.conj()[..., None, :], v[..., :, None]
        h[..., k + 1 :, :] -= 2 * line @ (row @ h[..., k + 1 :, :])
        h[..., :, k + 1 :] -= 2 * (h[..., :, k + 1 :] @ line) @ row
        q[..., :, k + 1 :] -= 2 * (q[..., :, k + 1 :] @ line) @ row
    h = xp.triu(h, -1)
    return (h, q) if calc_q else h
