"""Reductions, norms and products of what a mask picks, in a program: those of all there is, with what changes
nothing in the place of what the mask leaves out.

>>> import mirabelle as mb
>>> f = mb.compile(lambda x: (x[x > 0].sum(), x[x > 0].max(), x[x > 0] @ x[x > 0]))
>>> print(*f(mb.HostArray([3.0, -1.0, 4.0])))
7.0 4.0 25.0
"""

from __future__ import annotations

import math
from typing import Any

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.duals.base import Dual
from mirabelle.arraytypes.elementwise import cast_to, leaf_family
from mirabelle.arraytypes.functions import reducing
from mirabelle.arraytypes.functions.norms import norm
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.arraytypes.programs.picked import Picked, same_node, unknown
from mirabelle.arraytypes.reductions import correction_of, normal_axes
from mirabelle.dispatch import verbs


def _axes(x: Picked, axis: Any) -> tuple[bool, tuple[int, ...]]:
    """Is the picked axis among those that are reduced? And the axes of what is dense."""
    axes = normal_axes(axis, x.ndim)
    more = x._mask.ndim
    found = [a if a < x._at else a + more - 1 for a in axes if a != x._at]
    picked = x._at in axes
    return picked, tuple(sorted(found + [x._at + k for k in range(more)] * picked))


@reducing.of_all.method
def _(x: Picked, axis: Any, keepdims: bool, where: Any) -> tuple[Any, Any, Any]:
    picked, axes = _axes(x, axis)
    if not picked or (keepdims and x._mask.ndim > 1):
        raise unknown(x, "A reduction with initial= is asked of what a mask picks")
    return x._dense, axes, x._held


def _rest(x: Picked, made: Any, axes: tuple[int, ...], keepdims: Any) -> Any:
    """What was reduced along other axes."""
    return Picked._of(made, x._mask, x._at if keepdims else x._at - sum(a < x._at for a in axes))


def _joined(x: Picked, made: Any, keepdims: Any) -> Any:
    """What was reduced, where the axes of the mask are kept: as one."""
    if not keepdims or x._mask.ndim == 1:
        return made
    shape = made.shape
    return verbs.reshape(made, (*shape[: x._at], 1, *shape[x._at + x._mask.ndim :]))


@verbs.reduce_.method
def _(x: Picked, reduction: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    picked, axes = _axes(x, axis)
    dense = x._dense if dtype is None else cast_to(x._dense, checked_dtype(dtype))
    if not picked:
        return _rest(x, _reduced(dense, reduction, axes, keepdims), axes, keepdims)
    neutral = reduction.init if reduction.scalar is not None else reduction.neutral(dense.dtype)
    if neutral is None:  # complex numbers are ordered by their real parts first
        neutral = dense.dtype.type(complex(*[-math.inf if reduction.name == "max" else math.inf] * 2))
    dense = verbs.where(x._held, dense, dense.dtype.type(neutral))
    made = _reduced(dense, reduction, axes, keepdims)
    if reduction.name in ("min", "max") and reduction.scalar is None:
        made = _of_some(x, made, reduction.name)
    return _joined(x, made, keepdims)


def _reduced(x: Any, reduction: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if x.carries_derivatives:  # whose reductions are rules of their own
        return getattr(verbs, reduction.name)(x, axis=axes, keepdims=keepdims)
    return verbs.reduce_(x, reduction, axis=axes, keepdims=keepdims)


def _of_some(x: Picked, made: Any, name: str) -> Any:
    """The least or largest element, checked to be that of some when the program runs."""
    if isinstance(made, Dual):
        return made._with(_of_some(x, made._value, name), made._now())
    held = verbs.any(x._mask)
    views = [verbs.leaf_of(v).view for v in (made, held)]
    family: Any = leaf_family(type(made))
    return family._recorded("some", "some", (*views, name), {})


@verbs.mean.method
def _(x: Picked, *, axis: Any = None, keepdims: bool = False) -> Any:
    picked, axes = _axes(x, axis)
    if not picked:
        return _rest(x, verbs.mean(x._dense, axis=axes, keepdims=keepdims), axes, keepdims)
    return _joined(x, reducing.mean(x._dense, axis=axes, keepdims=keepdims, where=x._held), keepdims)


@verbs.var.method
def _(x: Picked, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False, ddof: Any = None) -> Any:
    correction = correction_of(correction, ddof)
    picked, axes = _axes(x, axis)
    if not picked:
        made = verbs.var(x._dense, axis=axes, correction=correction, keepdims=keepdims)
        return _rest(x, made, axes, keepdims)
    made = reducing.var(x._dense, axis=axes, ddof=correction, keepdims=keepdims, where=x._held)
    return _joined(x, made, keepdims)


@norm.method
def _(x: Picked, /, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    # (Zeros change no norm of a vector but those that ask for the smallest entry.)
    if axis is None and (ord is None or (x.ndim == 1 and _is_norm(ord))):
        made = norm(verbs.reshape(_among_zeros(x), (-1,)), ord=ord)
        return verbs.reshape(made, (1,) * x.ndim) if keepdims else made
    picked, axes = _axes(x, axis)
    if len(axes) != 1 or not (ord is None or _is_norm(ord)):
        raise unknown(x, "A norm that is none of vectors is asked of what a mask picks")
    if picked:
        return norm(_among_zeros(x), ord=ord, axis=axes[0], keepdims=keepdims)
    return _rest(x, norm(x._dense, ord=ord, axis=axes[0], keepdims=keepdims), axes, keepdims)


def _is_norm(ord: Any) -> bool:
    return isinstance(ord, (int, float)) and ord >= 0


def _among_zeros(x: Picked) -> Any:
    return verbs.where(x._held, x._dense, x.dtype.type(0))


# Products


def _product(x1: Any, x2: Any) -> Any:
    """x1 @ x2: what is picked is summed over, or it is rows of the first or columns of the second."""
    over = [isinstance(x1, Picked) and not x1._behind, isinstance(x2, Picked) and x2._behind == (x2.ndim > 1)]
    picked = [x for x in (x1, x2) if isinstance(x, Picked)]
    vectors = x1.ndim == x2.ndim == 1
    if all(over) and same_node(x1, x2) and (vectors or x1._mask.ndim == 1):
        terms = [_among_zeros(x) for x in (x1, x2)]
        return verbs.matmul(*[verbs.reshape(t, (-1,)) if vectors else t for t in terms])
    if any(over) or len(picked) > 1 or picked[0]._mask.ndim > 1 or max(x1.ndim, x2.ndim) > 2:
        raise unknown(picked[0], "A matrix product is asked of what a mask picks")
    made = verbs.matmul(*[x._dense if isinstance(x, Picked) else x for x in (x1, x2)])
    return Picked._of(made, picked[0]._mask, 0 if isinstance(x1, Picked) else made.ndim - 1)


for _pair in (
    (Picked, Picked),
    (Picked, AbstractArray),
    (AbstractArray, Picked),
    (Picked, Dual),
    (Dual, Picked),
):
    verbs.matmul.method(_product, signature=_pair)


@verbs.dot.method
def _(x1: Picked, x2: Picked) -> Any:
    return verbs.matmul(x1, x2)
