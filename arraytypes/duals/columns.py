"""Matrices for each direction, side by side: what makes few wide products and solves of many small ones.

Partials of a stack of matrices have the shape (directions, ..., rows, columns). A matrix times each of them is
that matrix times one that has the columns of all; each of them times a matrix is one that has the rows of all,
times it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mirabelle.arraytypes.duals.base import partials_of
from mirabelle.arraytypes.duals.routines import is_mine
from mirabelle.arraytypes.functions.manipulation import moveaxis
from mirabelle.arraytypes.structured.base import family_of, indices
from mirabelle.dispatch import verbs


def rows_of(x: Any, top: Any) -> Any:
    """The partials of an operand along the directions of `top`; None for a constant."""
    return partials_of(x) if is_mine(x, top) else None


def side_by_side(p: Any) -> Any:
    """(N, ..., m, k) → (..., m, N k)."""
    turned = moveaxis(p, 0, -2)
    return verbs.reshape(turned, (*turned.shape[:-2], turned.shape[-2] * turned.shape[-1]))


def apart(x: Any, n: int, k: int) -> Any:
    """(..., m, n k) → (n, ..., m, k): the matrices of each direction again."""
    return moveaxis(verbs.reshape(x, (*x.shape[:-1], n, k)), -2, 0)


def on_columns(f: Callable[[Any], Any], p: Any, vectors: bool = False) -> Any:
    """A function that is linear in the columns of a matrix, of the matrices (or vectors) of each direction."""
    if vectors:
        return moveaxis(f(verbs.permute_dims(p, (1, 0))), -1, 0)
    return apart(f(side_by_side(p)), p.shape[0], p.shape[-1])


def left(a: Any, p: Any) -> Any:
    """a @ p for each direction."""
    return on_columns(lambda columns: verbs.matmul(a, columns), p)


def right(p: Any, b: Any) -> Any:
    """p @ b for each direction."""
    turned = moveaxis(p, 0, -3)
    below = verbs.reshape(turned, (*turned.shape[:-3], turned.shape[-3] * turned.shape[-2], turned.shape[-1]))
    made = verbs.matmul(below, b)
    made = verbs.reshape(made, (*made.shape[:-2], *turned.shape[-3:-1], made.shape[-1]))
    return moveaxis(made, -3, 0)


def adjoint(x: Any) -> Any:
    """Matrices transposed, and conjugated if they are complex."""
    turned = verbs.permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))
    return verbs.conj(turned) if x.dtype.kind == "c" else turned


def symmetrised(p: Any) -> Any:
    """How a symmetric (Hermitian) matrix changes: the symmetric part of how it was said to."""
    return verbs.multiply(verbs.add(p, adjoint(p)), 0.5)


def places(x: Any) -> tuple[Any, Any]:
    """The row and the column of each entry of the matrices of a stack, as arrays that broadcast."""
    family = family_of(x)
    return verbs.reshape(indices(family, x.shape[-2]), (-1, 1)), indices(family, x.shape[-1])


def triangle(x: Any, lower: bool, offset: int = 0) -> Any:
    """What matrices hold on and below (above) a diagonal, and zeros: a tree, that fuses."""
    i, j = places(x)
    inside = (
        verbs.greater_equal(verbs.add(i, offset), j) if lower else verbs.less_equal(verbs.add(i, offset), j)
    )
    return verbs.where(inside, x, 0)


def diagonal(x: Any) -> Any:
    """The main diagonal of each matrix of a stack."""
    from mirabelle.arraytypes.parts import diagonal_view

    return diagonal_view(x, 0, -2, -1)


def identity(x: Any) -> Any:
    """The identity matrix of the size of the matrices of `x`, as truth values: a tree."""
    i, j = places(x)
    return verbs.equal(i, j)
