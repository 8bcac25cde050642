"""Sparse matrices of dual numbers: the entries are dual numbers, the pattern is as it is.

What moves entries is asked where it moves their numbers. Products come to products of plain sparse matrices: `S
@ x` adds up, row by row, entries times the elements of x that they meet.
"""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes import library
from mirabelle.arraytypes.dense import computed
from mirabelle.arraytypes.duals.base import DualError, partials_of, value_in
from mirabelle.arraytypes.duals.columns import on_columns
from mirabelle.arraytypes.duals.routines import is_mine, on_values, rule_of, with_value
from mirabelle.arraytypes.duals.solving import _in_last, by_residual
from mirabelle.arraytypes.functions import solving
from mirabelle.arraytypes.functions.factorizations import factorize
from mirabelle.arraytypes.functions.lapack import identity_like
from mirabelle.arraytypes.functions.manipulation import repeat
from mirabelle.arraytypes.structured.base import family_of, indices
from mirabelle.arraytypes.structured.fallback import made_dense
from mirabelle.arraytypes.structured.sparse import CSR
from mirabelle.dispatch import verbs


def _numbers(columns: Any, first: int = 0) -> Any:
    """The numbers of the stored entries, from `first` on."""
    return verbs.add(indices(family_of(columns), columns.shape[0]), first)


def _picked(data: Any, at: Any) -> Any:
    """The entries of these numbers, which count from 1, and zeros for 0."""
    found = data[verbs.maximum(verbs.subtract(at, 1), 0)]
    return verbs.where(verbs.greater(at, 0), found, data.dtype.type(0))


# Moved entries


@rule_of("csr_dense", "csr_lookup", "csr_diagonal", "csr_entry", "csr_row")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    data, columns, *rest = operands
    at = library.call(routine, _numbers(columns, 1), columns, *rest, **options)
    if not data.shape[0]:
        return verbs.astype(at, data.dtype)
    return _picked(data, computed(at))


@rule_of("csr_transposed", "csr_block")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    data, columns, *rest = operands
    at, columns, indptr = library.call(routine, _numbers(columns), columns, *rest, **options)
    return data[at], columns, indptr


@rule_of("csr_position")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    return on_values(routine, top, operands, options)


@rule_of("csr_from_dense")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    raise DualError(
        "Which entries of a matrix of dual numbers are stored cannot depend on which are zero now: their "
        "derivatives need not be. Say which: mb.CSR((data, indices, indptr), shape=shape) with dual data."
    )


@rule_of("csr_checked")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    data, columns, indptr = operands
    shape, made = on_values(routine, top, operands, options)
    if made is None:
        return shape, None
    rows = library.call("csr_rows", indptr)
    return library.call("csr_from_triples", data, rows, columns, shape=shape)


@rule_of("csr_from_triples")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    data, i, j = operands
    shape, (_, columns, indptr) = library.call(routine, verbs.copy(_numbers(i, 1)), i, j, **options)
    if not data.shape[0]:
        return shape, (data, columns, indptr)
    # Equal places are added up: by a matrix that has a one for each entry, in the row of its place.
    at = library.call("csr_lookup", _numbers(columns, 1), columns, indptr, i, j, columns=shape[1])
    one = _ones(data, data.shape[0])
    count = columns.shape[0]
    _, adding = library.call(routine, one, verbs.subtract(at, 1), _numbers(i), shape=(count, data.shape[0]))
    added = library.call("csr_product", *adding, data, shape=(count, data.shape[0]), left=True)
    return shape, (added, columns, indptr)


def _ones(like: Any, n: int) -> Any:
    from mirabelle.arraytypes.creation import ones

    return ones(n, dtype=like.dtype, device=like.place)


# Products


@rule_of("csr_product")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    data, columns, indptr, x = operands
    value = on_values(routine, top, operands, options)
    shape, from_left = options["shape"], options["left"]
    parts: list[Any] = []
    if is_mine(x, top):
        plain = value_in(data, top._tag)

        def product(c: Any) -> Any:
            if from_left or c.ndim == 1:
                return library.call(routine, plain, columns, indptr, c, **options)
            return library.call(routine, plain, columns, indptr, c.mT, **options).mT

        p = partials_of(x)
        turned = not from_left and x.ndim > 1
        made = on_columns(product, p.mT if turned else p, x.ndim == 1) if not _is_row(x, from_left) else None
        if made is None:  # x @ S for a vector: the vectors of all directions are the rows of a matrix
            made = library.call(routine, plain, columns, indptr, p, **options)
        parts.append(made.mT if turned else made)
    if is_mine(data, top):
        parts.append(_of_entries(top, data, columns, indptr, value_in(x, top._tag), shape, from_left))
    total = parts[0] if len(parts) == 1 else verbs.add(*parts)
    return top._with(value, ((None, total),))


def _is_row(x: Any, from_left: bool) -> bool:
    return x.ndim == 1 and not from_left


def _of_entries(top: Any, data: Any, columns: Any, indptr: Any, x: Any, shape: Any, from_left: bool) -> Any:
    """The product for the partials of the entries, times the elements of x they meet: added up by ones."""
    n = columns.shape[0]
    one = _ones(data, n)
    kind = indptr.dtype
    p = partials_of(data)
    if from_left:
        adding = (one, verbs.astype(_numbers(columns), kind), indptr)
        size = (shape[0], n)
        if x.ndim == 1:
            met = verbs.multiply(p, x[columns])
        else:
            met = verbs.multiply(verbs.reshape(p, (p.shape[0], *(1,) * (x.ndim - 2), n, 1)), x[..., columns, :])
        return on_columns(
            lambda c: library.call("csr_product", *adding, c, shape=size, left=True), met, x.ndim == 1
        )
    rows = library.call("csr_rows", indptr)
    ends = verbs.astype(indices(family_of(columns), n + 1), kind)
    size = (n, shape[1])
    met = x[..., rows]
    spread = verbs.multiply(verbs.reshape(p, (p.shape[0], *(1,) * (x.ndim - 1), n)), met)
    flat = verbs.reshape(spread, (-1, n))
    made = library.call("csr_product", one, columns, ends, flat, shape=size, left=False)
    return verbs.reshape(made, (*spread.shape[:-1], shape[1]))


@rule_of("csr_times_csr")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    a, columns1, indptr1, b, columns2, indptr2 = operands
    (m, _), (_, n) = options["shapes"]
    # Each entry of the first meets all of a row of the second.
    counts = verbs.subtract(indptr2[1:], indptr2[:-1])[columns1]
    first = repeat(_numbers(columns1), counts)
    ends = _running(counts)
    beside = verbs.subtract(indices(family_of(columns1), first.shape[0]), verbs.subtract(ends, counts)[first])
    second = verbs.add(indptr2[columns1][first], beside)
    rows = library.call("csr_rows", indptr1)
    products = verbs.multiply(a[first], b[second])
    return library.call("csr_from_triples", products, rows[first], columns2[second], shape=(m, n))[1]


def _running(x: Any) -> Any:
    from mirabelle.arraytypes.functions.neighbours import cumulative_sum

    return cumulative_sum(x)


@rule_of("csr_sum")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    data, columns, indptr, dense = operands
    whole = library.call("csr_dense", data, columns, indptr, shape=dense.shape)
    first, second = options["signs"]
    made = (
        verbs.subtract(dense, whole)
        if first < 0
        else verbs.add(verbs.negative(dense) if second < 0 else dense, whole)
    )
    return verbs.astype(made, options["dtype"], copy=False)


@rule_of("csr_lines")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    data, columns, indptr = operands
    shape, axis, dtype = options["shape"], options["axis"], options.get("dtype")
    data = data if dtype is None else verbs.astype(data, dtype, copy=False)
    if options["name"] == "sum":
        one = _ones(data, shape[axis])
        return library.call("csr_product", data, columns, indptr, one, shape=shape, left=axis == 1)
    return getattr(verbs, options["name"])(made_dense(CSR._of((data, columns, indptr), shape)), axis=axis)


# Solves


@rule_of("csr_solve")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    data, columns, indptr, b = operands
    n = b.shape[0]
    F = factorize(CSR._of((value_in(data, top._tag), columns, indptr), (n, n)))
    matrix = CSR._of((data, columns, indptr), (n, n))
    return by_residual(top, F.solve, lambda x: verbs.matmul(matrix, x), b, is_mine(data, top))


@rule_of("csr_factored_solve")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    return _in_last(routine, top, operands, options)


@rule_of("csr_slogdet", "csr_det")
def _(routine: str, top: Any, operands: Any, options: Any) -> Any:
    data, columns, indptr = operands
    n = indptr.shape[0] - 1
    if data.dtype.kind == "c" or n == 0:
        dense = made_dense(CSR._of((data, columns, indptr), (n, n)))
        return solving.det(dense) if routine == "csr_det" else tuple(solving.slogdet(dense))
    value = on_values(routine, top, operands, options)
    plain = CSR._of((data._value, columns, indptr), (n, n))
    inverse = factorize(plain).solve(identity_like(data._value, n))
    slopes = inverse[columns, library.call("csr_rows", indptr)]
    if routine == "csr_det":
        return with_value(verbs.sum(verbs.multiply(verbs.multiply(slopes, value), data)), value)
    return value[0], with_value(verbs.sum(verbs.multiply(slopes, data)), value[1])
