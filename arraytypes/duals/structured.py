"""Routines that structured arrays call with their parts: how products and solves change with dual parts.

Products are linear in either factor. That of a Toeplitz matrix and a vector is also one of a Toeplitz matrix,
which is made of the vector, and the entries of the first: so the entries of all directions are multiplied at
once.
"""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes import library
from mirabelle.arraytypes.duals.base import partials_of, value_in
from mirabelle.arraytypes.duals.columns import left, on_columns, right
from mirabelle.arraytypes.duals.factoring import _distances
from mirabelle.arraytypes.duals.routines import is_mine, on_values, rule_of, with_value
from mirabelle.arraytypes.functions import decompositions, solving
from mirabelle.arraytypes.functions.lapack import identity_like
from mirabelle.arraytypes.functions.manipulation import concat, flip, stack
from mirabelle.arraytypes.parts import diagonal_view
from mirabelle.arraytypes.structured.banded import from_bands
from mirabelle.arraytypes.structured.base import family_of, zeros
from mirabelle.arraytypes.structured.fallback import made_dense
from mirabelle.dispatch import verbs

# Matrices of a few diagonals


def _tridiagonal(low: Any, main: Any, high: Any) -> Any:
    return from_bands({-1: low, 0: main, 1: high})


@rule_of("tridiagonal_slogdet")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    sign, logarithm = on_values(routine, top, operands, options)
    low, main, high = operands
    values = [value_in(p, top._tag) for p in operands]
    inverse = library.call("tridiagonal_solve", *values, identity_like(values[1], main.shape[0]))
    # d log det A = tr(A⁻¹ dA): each entry counts by that of the inverse on the other side.
    total = verbs.sum(verbs.multiply(diagonal_view(inverse), main))
    for part, k in ((low, 1), (high, -1)):
        if part.size:
            total = verbs.add(total, verbs.sum(verbs.multiply(diagonal_view(inverse, k), part)))
    if total.dtype.kind == "c":
        return tuple(solving.slogdet(made_dense(_tridiagonal(*operands))))
    return sign, with_value(total, logarithm)


@rule_of("tridiagonal_eigh")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    main, beside = operands
    values = [value_in(p, top._tag) for p in operands]
    found = on_values(routine, top, operands, options)
    w, V = found if options["vectors"] else (found, library.call(routine, *values, vectors=True)[1])
    squares = verbs.square(V)
    slopes = verbs.matmul(main, squares)
    if beside.size:
        pairs = verbs.multiply(verbs.multiply(V[1:], V[:-1]), 2)
        slopes = verbs.add(slopes, verbs.matmul(beside, pairs))
    w = with_value(slopes, w)
    if not options["vectors"]:
        return w
    change = partials_of(_tridiagonal(beside, main, beside)._dense())
    inner = right(left(V.T, change), V)
    return w, top._with(V, ((None, left(V, verbs.multiply(_distances(value_in(w, top._tag)), inner))),))


@rule_of("tridiagonal_cholesky")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    main, beside = operands
    values = on_values(routine, top, operands, options)
    L = decompositions.cholesky(made_dense(_tridiagonal(beside, main, beside)))
    found = diagonal_view(L), diagonal_view(L, -1)
    return tuple(with_value(f, v) for f, v in zip(found, values, strict=True))


@rule_of("bidiagonal_svdvals")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    main, beside = operands
    s = decompositions.svdvals(made_dense(from_bands({0: main, 1: beside})))
    return with_value(s, on_values(routine, top, operands, options))


# Equal entries along diagonals


@rule_of("toeplitz_product")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    diagonals, x = operands
    value = on_values(routine, top, operands, options)
    rows, columns = options["shape"]
    if not value.size:
        return value
    if not options["left"]:  # as the product of the transposes
        diagonals, rows, columns = diagonals[::-1], columns, rows
        x = x if x.ndim == 1 else x.mT

    def product(d: Any, y: Any, shape: tuple[int, int]) -> Any:
        return library.call(routine, d, y, shape=shape, left=True)

    def of_entries(v: Any, p: Any) -> Any:
        """T @ v for entries of T that are the columns of `p`."""
        beside = zeros(family_of(v), (rows - 1,), v.dtype)
        return product(concat([beside, v, beside]), p, (rows, rows + columns - 1))

    made = _bilinear(top, diagonals, x, lambda d, y: product(d, y, (rows, columns)), of_entries)
    return top._with(value, ((None, made if options["left"] or x.ndim == 1 else made.mT),))


@rule_of("circulant_product")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    column, x = operands
    value = on_values(routine, top, operands, options)
    if not value.size:
        return value
    if not options["left"]:
        column = concat([column[:1], flip(column[1:])])
        x = x if x.ndim == 1 else x.mT

    def product(c: Any, y: Any) -> Any:
        return library.call(routine, c, y, left=True)

    made = _bilinear(top, column, x, product, product)
    return top._with(value, ((None, made if options["left"] or x.ndim == 1 else made.mT),))


def _bilinear(top: Any, entries: Any, x: Any, product: Any, of_entries: Any) -> Any:
    """The partials of a product: `product(entries, columns)`, and `of_entries(vector, entries as columns)`."""
    made: Any = None
    if is_mine(x, top):
        made = on_columns(lambda c: product(value_in(entries, top._tag), c), partials_of(x), x.ndim == 1)
    if is_mine(entries, top):
        v, p = value_in(x, top._tag), verbs.permute_dims(partials_of(entries), (1, 0))
        of_each = _of_vectors(v, lambda u: verbs.permute_dims(of_entries(u, p), (1, 0)))
        made = of_each if made is None else verbs.add(made, of_each)
    return made


def _of_vectors(x: Any, f: Any) -> Any:
    """A function of a vector that gives (directions, rows), for each column of `x`."""
    if x.ndim == 1:
        return f(x)
    if x.ndim == 2:
        return stack([f(x[:, k]) for k in range(x.shape[1])], axis=-1)
    return stack([_of_vectors(x[i], f) for i in range(x.shape[0])], axis=1)
