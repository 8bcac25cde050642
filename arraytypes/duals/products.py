"""Products of matrices of dual numbers: a few wide products of plain ones.

d(A B) = dA B + A dB. The directions stand in front, so dA B is one product of a tall matrix, and A dB one of a
wide one, however many directions there are. Unit directions need no product: `Seed @ B` shows rows of B.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.duals.base import (
    Dual,
    Seed,
    Term,
    collected,
    combined,
    directions_in_front,
    family_of,
    outermost,
    snapshot,
    value_in,
)
from mirabelle.arraytypes.duals.moving import _array, _full
from mirabelle.arraytypes.elementwise import Scalar
from mirabelle.arraytypes.structured.base import indices
from mirabelle.dispatch import verbs


def times(x1: Any, x2: Any) -> Any:
    """x1 @ x2, where one is a dual number at least."""
    top = outermost((x1, x2))
    a, b = value_in(x1, top._tag), value_in(x2, top._tag)
    value = verbs.matmul(a, b)
    terms: list[Term] = []
    shape = value.shape
    if isinstance(x1, Dual) and x1._tag is top._tag:
        _gather(terms, x1, lambda p: _tall(p, b, shape), lambda s, c: _seeded(s, c, x1, b, shape, _rows_of))
    if isinstance(x2, Dual) and x2._tag is top._tag:
        _gather(terms, x2, lambda p: _wide(a, p, shape), lambda s, c: _seeded(s, c, x2, a, shape, _columns_of))
    if len(terms) > 1:
        whole = None
        for c, base in terms:
            assert c is None
            base = directions_in_front(base, len(shape))
            whole = base if whole is None else verbs.add(whole, base)
        terms = [(None, whole)]
    return collected(top, value, terms)


def _gather(terms: list[Term], x: Any, multiply: Any, seeded: Any) -> None:
    """The terms of a product that is linear in `x`: of seeds, where that is known; of the others together."""
    rest: list[Term] = []
    for c, base in x._now():
        made = seeded(base, c) if isinstance(base, Seed) else None
        if made is None:
            rest.append((c, base))
        else:
            terms.append((None, made))
    if rest:
        p = _full(combined(x, tuple(rest)), (x._n, *x.shape))
        terms.append((None, multiply(p)))


def _tall(p: Any, b: Any, shape: tuple[int, ...]) -> Any:
    """p @ b for each direction: all their rows are one matrix."""
    if b.ndim > 2 and p.ndim == 2:  # a vector is a row of each stack
        rows = verbs.reshape(p, (p.shape[0], *(1,) * (b.ndim - 1), p.shape[1]))
        return verbs.reshape(verbs.matmul(rows, b), (p.shape[0], *shape))
    if b.ndim > 2 or p.ndim > 3:
        return verbs.matmul(_among_stacks(p, b.ndim, shape), b)
    rows = verbs.reshape(p, (math.prod(p.shape[:-1]), p.shape[-1]))
    return verbs.reshape(verbs.matmul(rows, b), (p.shape[0], *shape))


def _wide(a: Any, p: Any, shape: tuple[int, ...]) -> Any:
    """a @ p for each direction: all their columns are one matrix."""
    n = p.shape[0]
    if p.ndim == 2:  # vectors
        if a.ndim == 1:
            return verbs.matmul(p, a)
        if a.ndim == 2:
            return verbs.matmul(p, verbs.permute_dims(a, (1, 0)))
        made = verbs.matmul(a, verbs.permute_dims(p, (1, 0)))
        return verbs.permute_dims(made, (made.ndim - 1, *range(made.ndim - 1)))
    if a.ndim > 2 or p.ndim > 3:
        return verbs.matmul(a, _among_stacks(p, a.ndim, shape))
    k, columns = p.shape[1:]
    beside = verbs.reshape(verbs.permute_dims(p, (1, 0, 2)), (k, n * columns))
    made = verbs.matmul(a, beside)
    if a.ndim == 1:
        return verbs.reshape(made, (n, columns))
    return verbs.permute_dims(verbs.reshape(made, (a.shape[0], n, columns)), (1, 0, 2))


def _among_stacks(p: Any, ndim: int, shape: tuple[int, ...]) -> Any:
    """Partials whose axes of stacks are aligned with those of another operand, so that the directions come
    first."""
    stacks = max(ndim - 2, p.ndim - 3, len(shape) - 2)
    missing = stacks - (p.ndim - 3)
    return verbs.reshape(p, (p.shape[0], *(1,) * missing, *p.shape[1:])) if missing > 0 else p


def _seeded(s: Seed, c: Any, x: Any, other: Any, shape: tuple[int, ...], lines_of: Any) -> Any:
    """The product of unit directions of a vector or a matrix with a plain matrix: lines of that."""
    if s.shape != x.shape or other.ndim > 2:
        return None
    if sum(d != 1 for d in s.shape) > 1:
        return _with_lines(s, c, other, lines_of is _rows_of) if x.ndim == 2 else None
    lines = lines_of(s, other, x.ndim)
    if lines is None:
        return None
    lines = snapshot(s.part(lines))
    if c is not None:
        if isinstance(c, AbstractArray):
            c = verbs.reshape(_full(c, x.shape), (-1,))
            c = verbs.reshape(s.part(c), (s.count, *(1,) * (lines.ndim - 1)))
        lines = verbs.multiply(lines, c)
    rows = s.placed(lines)
    return rows if all(d == 1 for d in shape[: -lines.ndim + 1 or None]) else verbs.reshape(rows, (s.n, *shape))


def _with_lines(s: Seed, c: Any, other: Any, matrix_first: bool) -> Any:
    """The product of unit directions of a matrix with a matrix or a vector: each moves a line of that.

    Element (i, j) of `x @ other` puts row j of the other into row i; one of `other @ x` column i into column j.
    """
    rows, columns = s.shape
    lines = other if matrix_first or other.ndim == 1 else verbs.permute_dims(other, (1, 0))
    tail = lines.shape[1:]
    one = (1,) * len(tail)
    spread = lines if matrix_first else verbs.reshape(lines, (rows, 1, *tail))
    spread = _full(spread, (rows, columns, *tail))
    if isinstance(c, AbstractArray):
        c = verbs.reshape(_full(c, s.shape), (rows, columns, *one))
    if c is not None:
        spread = verbs.multiply(spread, c)
    spread = verbs.reshape(s.part(verbs.reshape(spread, (rows * columns, *tail))), (s.count, 1, *tail))
    family = family_of(other)
    number = verbs.add(indices(family, s.count), s.start)
    into = verbs.floor_divide(number, columns) if matrix_first else verbs.remainder(number, columns)
    n = rows if matrix_first else columns
    hit = verbs.equal(verbs.reshape(into, (s.count, 1, *one)), verbs.reshape(indices(family, n), (n, *one)))
    made = s.placed(verbs.where(hit, spread, 0))
    return made if matrix_first or not tail else verbs.permute_dims(made, (0, 2, 1))


def _rows_of(s: Seed, b: Any, ndim: int) -> Any:
    """(k,) @ b and (1, k) @ b."""
    return b if ndim == 1 or (ndim == 2 and s.shape[0] == 1) else None


def _columns_of(s: Seed, a: Any, ndim: int) -> Any:
    """a @ (k,) and a @ (k, 1)."""
    if not (ndim == 1 or (ndim == 2 and s.shape[1] == 1)):
        return None
    return a if a.ndim == 1 else verbs.permute_dims(a, (1, 0))


def _product(x1: Any, x2: Any) -> Any:
    if not isinstance(x1, AbstractArray):
        x1 = as_array(x1, _array(x2))
    elif not isinstance(x2, AbstractArray):
        x2 = as_array(x2, _array(x1))
    for rule, other in ((getattr(x1, "_times", None), x2), (getattr(x2, "_rtimes", None), x1)):
        if rule is not None:  # a structured operand: its rule is written with verbs
            found = rule(other)
            if found is not NotImplemented:
                return found
    return times(*[x._stored() if hasattr(x, "_stored") and x.carries_derivatives else x for x in (x1, x2)])


def _dot(x1: Any, x2: Any) -> Any:
    from mirabelle.arraytypes.functions.products import tensordot

    x1, x2 = (x if isinstance(x, AbstractArray) else as_array(x, _array(y)) for x, y in ((x1, x2), (x2, x1)))
    if not x1.ndim or not x2.ndim:
        return verbs.multiply(x1, x2)
    if (x1.ndim == 1 and x2.ndim == 1) or x2.ndim <= 2:
        return verbs.matmul(x1, x2)
    return tensordot(x1, x2, axes=([-1], [-2]))


_Data = np.ndarray | list | tuple | Scalar
for _signature in ((Dual, Dual), (Dual, AbstractArray), (AbstractArray, Dual), (Dual, _Data), (_Data, Dual)):
    verbs.matmul.method(_product, signature=_signature)
    verbs.dot.method(_dot, signature=_signature)
