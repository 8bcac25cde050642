"""Reductions: nodes that combine the elements of a tree along axes.

A reduction takes the tree into its kernel, so no temporary is written; reductions of one tree
along the same axes that are pending together are computed in one pass.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import DenseArray, force, wrap
from mirabelle.arraytypes.elementwise import cast_to, leaf_family
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.dispatch import policy, promotion, verbs
from mirabelle.dispatch._native import waiting_reductions
from mirabelle.dispatch.generic import by_type
from mirabelle.dispatch.misuse import explained, shown
from mirabelle.dispatch.ops import TABLE, foreign_name
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced, adopted


class Reduction:
    """How elements combine: NumPy's ufunc, or a user's function of two scalars with a start."""

    __slots__ = ("_neutral", "init", "name", "scalar", "ufunc")

    def __init__(
        self, name: str, ufunc: Any = None, scalar: Callable[..., Any] | None = None, init: Any = None
    ) -> None:
        self.name = name
        self.ufunc = ufunc
        self.scalar = scalar
        self.init = init
        self._neutral: dict[np.dtype, Any] = {}

    def neutral(self, dtype: np.dtype) -> Any:
        """What changes nothing when combined; None where there is no such value."""
        if dtype not in self._neutral:
            self._neutral[dtype] = self._found_neutral(dtype)
        return self._neutral[dtype]

    def _found_neutral(self, dtype: np.dtype) -> Any:
        if self.name == "sum":
            return dtype.type(0)
        if self.name == "prod":
            return dtype.type(1)
        if self.name in ("any", "all"):
            return np.bool_(self.name == "all")
        if self.name in ("min", "max"):
            low = self.name == "max"
            if dtype.kind == "f":
                return dtype.type(-math.inf if low else math.inf)
            if dtype.kind in "iu":
                info = np.iinfo(dtype)
                return dtype.type(info.min if low else info.max)
            if dtype.kind == "b":
                return np.bool_(not low)
        return None

    def __repr__(self) -> str:
        return self.name


REDUCTIONS = {
    "sum": Reduction("sum", np.add),
    "prod": Reduction("prod", np.multiply),
    "min": Reduction("min", np.minimum),
    "max": Reduction("max", np.maximum),
    "any": Reduction("any", np.logical_or),
    "all": Reduction("all", np.logical_and),
}
# What NumPy or a user calls the operation of a reduction.
_BY_OPERATION = {
    "add": "sum", "multiply": "prod", "minimum": "min", "maximum": "max", "logical_or": "any",
    "logical_and": "all",
}  # fmt: skip


def normal_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes as a sorted tuple of non-negative integers."""
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = []
    for a in given:
        try:
            a = a.__index__()
        except (AttributeError, TypeError):
            text = f"An axis is an integer, a tuple of integers or None, not {shown(axis)}."
            if isinstance(a, (AbstractArray, np.ndarray, float)):  # (as Python's own `max(a, b)`)
                text += " Of two arrays there are `mb.maximum(x, y)`, `mb.minimum(x, y)` and `x + y`."
            raise TypeError(text) from None
        if ndim == 0 and a in (0, -1) and given is not axis:
            continue  # NumPy takes a scalar for an array of one dimension here
        if not -ndim <= a < ndim:
            raise np.exceptions.AxisError(a, ndim)
        axes.append(a % ndim)
    if len(set(axes)) != len(axes):
        raise ValueError("duplicate value in 'axis'")
    return tuple(sorted(axes))


# What axes mostly are, by type.
_PLAIN = {type(None), int, (int,), (int, int), (int, int, int)}


@functools.lru_cache(maxsize=1 << 10)
def _shapes(shape: tuple[int, ...], axis: Any, keepdims: bool, kinds: Any) -> tuple[Any, Any, bool]:
    """The axes of a reduction, the shape of its result, and whether it is of no elements."""
    axes = normal_axes(axis, len(shape))
    if keepdims:
        kept = [1 if i in axes else n for i, n in enumerate(shape)]
    else:
        kept = [n for i, n in enumerate(shape) if i not in axes]
    return axes, tuple(kept), any(shape[a] == 0 for a in axes)


@by_type
def reduction_made(family: Any, node: Reduced) -> None:
    """Told of each reduction that is written and waits."""


@reduction_made.method
def _(family: type[DenseArray], node: Reduced) -> None: ...


# As truth values a sum says whether any is true, and a product whether all are.
_OF_TRUTHS = {"sum": "any", "prod": "all"}


@verbs.reduce_.method
def _(x: AbstractArray, reduction: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    if x.carries_derivatives and hasattr(x, "_stored"):  # the parts of a structured array hold dual numbers
        return verbs.reduce_(x._stored(), reduction, axis=axis, dtype=dtype, keepdims=keepdims)
    shape = x.shape
    axes, kept, empty = _plain_shapes(shape, axis, keepdims) or _shapes.__wrapped__(shape, axis, keepdims, None)
    if empty and reduction.name in ("min", "max"):
        name = {"min": "minimum", "max": "maximum"}[reduction.name]
        raise ValueError(
            f"zero-size array to reduction operation {name} which has no identity: an axis of "
            f"shape {shape} is empty, and {reduction.name} of nothing is not defined."
        )
    if dtype is not None and dtype is not x.dtype:
        x = cast_to(x, checked_dtype(dtype))
    if x.dtype.kind == "b" and reduction.name in _OF_TRUTHS:
        reduction = REDUCTIONS[_OF_TRUTHS[reduction.name]]
    family = leaf_family(type(x))
    version = verbs.capture(x)
    if type(version) is Reduced:  # a reduction of a reduction: the inner one becomes a leaf in time
        sig = promotion.signature(TABLE["copy"], (x.dtype,))
        version = Broadcasted(sig, (version,), version.shape)
    depth = 0
    if type(version) is Broadcasted:
        depth = chained(family, version)
    node = Reduced(reduction, version, axes, keepdims, kept, x.dtype)
    if depth:
        node.depth = depth
    reduction_made(family, node)
    h = wrap(family, node)
    if policy.is_eager() or (type(version) is Leaf and not adopted(version)):
        verbs.leaf_of(h)
    return h


def _plain_shapes(shape: tuple[int, ...], axis: Any, keepdims: bool) -> Any:
    """As `_shapes`, kept, for axes as they mostly are; else None."""
    # (The types tell 1 from 1.0, which is no axis.)
    kinds: Any = tuple(map(type, axis)) if type(axis) is tuple else type(axis)
    return _shapes(shape, axis, keepdims, kinds) if kinds in _PLAIN else None


# A reduction may wait for so many others, each of which waits for the next.
_LONGEST_CHAIN = 16


def chained(family: Any, tree: Broadcasted) -> int:
    """How long a chain of pending reductions a tree ends; a long one is evaluated before it grows.

    (A loop of `s = mb.sum(x * s)` whose values nobody reads would end in a RecursionError.)
    """
    waiting = waiting_reductions(tree)
    if not waiting:
        return 0
    depth = 1 + max((r.depth for r in waiting), default=-1)
    if depth > _LONGEST_CHAIN:
        for r in waiting:
            force(family, r)
        return 0
    return depth


def _summed(dtype: np.dtype) -> np.dtype:
    """Sums and products of small integers are computed in the widest, as NumPy does."""
    if dtype.kind in "bi" and dtype.itemsize < 8:
        return np.dtype(np.int64)
    if dtype.kind == "u" and dtype.itemsize < 8:
        return np.dtype(np.uint64)
    return dtype


@verbs.sum.method
def _(x: AbstractArray, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    d = _summed(x.dtype) if dtype is None else dtype
    return verbs.reduce_(x, REDUCTIONS["sum"], axis=axis, dtype=d, keepdims=keepdims)


@verbs.prod.method
def _(x: AbstractArray, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    d = _summed(x.dtype) if dtype is None else dtype
    return verbs.reduce_(x, REDUCTIONS["prod"], axis=axis, dtype=d, keepdims=keepdims)


@verbs.min.method
def _(x: AbstractArray, *, axis: Any = None, keepdims: bool = False) -> Any:
    return verbs.reduce_(x, REDUCTIONS["min"], axis=axis, keepdims=keepdims)


@verbs.max.method
def _(x: AbstractArray, *, axis: Any = None, keepdims: bool = False) -> Any:
    return verbs.reduce_(x, REDUCTIONS["max"], axis=axis, keepdims=keepdims)


@verbs.any.method
def _(x: AbstractArray, *, axis: Any = None, keepdims: bool = False) -> Any:
    return verbs.reduce_(x, REDUCTIONS["any"], axis=axis, dtype=np.bool_, keepdims=keepdims)


@verbs.all.method
def _(x: AbstractArray, *, axis: Any = None, keepdims: bool = False) -> Any:
    return verbs.reduce_(x, REDUCTIONS["all"], axis=axis, dtype=np.bool_, keepdims=keepdims)


@verbs.count_nonzero.method
def _(x: AbstractArray, *, axis: Any = None, keepdims: bool = False) -> Any:
    if x.dtype != np.bool_:
        x = cast_to(verbs.not_equal(x, 0), np.dtype(bool))
    return verbs.sum(x, axis=axis, keepdims=keepdims)


def _count(x: AbstractArray, axis: Any) -> int:
    n = 1
    for a in normal_axes(axis, x.ndim):
        n *= x.shape[a]
    return n


def _inexact(x: Any) -> Any:
    return cast_to(x, np.dtype(np.float64)) if x.dtype.kind in "biu" else x


# Of these the mean of all elements is their sum over their number, and nothing else is to be looked at.
_PLAIN_MEANS = (np.dtype(np.float64), np.dtype(np.float32))


@verbs.mean.method
def _(x: AbstractArray, *, axis: Any = None, keepdims: bool = False) -> Any:
    original = x.dtype
    if axis is None and not keepdims and original in _PLAIN_MEANS:
        return verbs.divide(verbs.sum(x), float(x.size))
    x = _inexact(x)
    if original == np.float16:  # half precision sums overflow at 65 504
        x = cast_to(x, np.dtype(np.float32))
    mean = verbs.divide(verbs.sum(x, axis=axis, keepdims=keepdims), float(_count(x, axis)))
    return cast_to(mean, original) if original == np.float16 else mean


def correction_of(correction: float, ddof: Any) -> float:
    """What is taken from the number of elements: `correction`, or `ddof`, as NumPy calls it."""
    if ddof is None:
        return correction
    if correction:
        raise ValueError("ddof and correction can't be provided simultaneously: they are one number.")
    return float(ddof)


@verbs.var.method
def _(
    x: AbstractArray, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False, ddof: Any = None
) -> Any:
    correction = correction_of(correction, ddof)
    x = _inexact(x)
    original = x.dtype
    if original == np.float16:
        x = cast_to(x, np.dtype(np.float32))
    centred = verbs.subtract(x, verbs.mean(x, axis=axis, keepdims=True))
    if x.dtype.kind == "c":
        squares = verbs.add(verbs.square(verbs.real(centred)), verbs.square(verbs.imag(centred)))
    else:
        squares = verbs.square(centred)
    n = _count(x, axis) - correction
    total = verbs.sum(squares, axis=axis, keepdims=keepdims)
    # Without degrees of freedom the standard has NaN (and NumPy infinity, for elements that differ).
    out = verbs.divide(total, float(n) if n > 0 else math.nan)
    return cast_to(out, original) if original == np.float16 else out


@verbs.std.method
def _(
    x: AbstractArray, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False, ddof: Any = None
) -> Any:
    correction = correction_of(correction, ddof)
    return verbs.sqrt(verbs.var(x, axis=axis, correction=correction, keepdims=keepdims))


@verbs.norm.method
def _(x: AbstractArray, p: Any = 2) -> Any:
    if p == math.inf:
        return verbs.max(verbs.abs(x))
    if p == -math.inf:
        return verbs.min(verbs.abs(x))
    x = _inexact(x)
    if p == 0:
        return cast_to(
            verbs.count_nonzero(x), np.dtype(f"f{x.dtype.itemsize // (2 if x.dtype.kind == 'c' else 1)}")
        )
    if p == 1:
        return verbs.sum(verbs.abs(x))
    if p == 2:
        if x.dtype.kind == "c":
            x = verbs.abs(x)
        return verbs.sqrt(verbs.sum(verbs.square(x)))
    return verbs.pow(verbs.sum(verbs.pow(verbs.abs(x), float(p))), 1.0 / float(p))


def reduction_of(op: Any, init: Any = None) -> Reduction:
    """The reduction an operation stands for: a name, a verb, a NumPy ufunc or a user's function."""
    if isinstance(op, Reduction):
        return op
    name = op if isinstance(op, str) else getattr(op, "__name__", None)
    known = REDUCTIONS.get(str(name)) or REDUCTIONS.get(_BY_OPERATION.get(str(name), ""))
    if known is not None and (isinstance(op, (str, np.ufunc)) or hasattr(op, "core")):
        return known
    if isinstance(op, str) or not callable(op):
        raise ValueError(
            f"{op!r} is not an operation to reduce with. Give one of {', '.join(REDUCTIONS)}, a "
            "function such as mb.add, or a function of two scalars with `init=`."
        )
    if init is None:
        raise ValueError(
            f"Reducing with {getattr(op, '__name__', op)!r} needs its neutral element, because what an "
            "empty part gives is not known. Give it: `init=0`."
        )
    return Reduction(foreign_name(getattr(op, "__name__", "function")), None, op, init)


@verbs.mapreduce_.method
def _(
    x: AbstractArray,
    f: Any = None,
    op: Any = None,
    init: Any = None,
    axis: Any = None,
    keepdims: bool = False,
) -> Any:
    from mirabelle.arraytypes.userbroadcast import broadcast

    mapped = x if f is None else f(x) if hasattr(f, "core") else broadcast(f, x)
    if isinstance(mapped, tuple):
        raise ValueError("mapreduce takes a function of one result; this one returns a tuple.")
    reduction = reduction_of(op, init)
    if reduction.scalar is None:
        wide = _summed(mapped.dtype) if reduction.name in ("sum", "prod") else None
        wide = np.dtype(bool) if reduction.name in ("any", "all") else wide
        out = verbs.reduce_(mapped, reduction, axis=axis, dtype=wide, keepdims=keepdims)
        if init is not None:
            combine = {"sum": "add", "prod": "multiply", "min": "minimum", "max": "maximum",
                       "any": "logical_or", "all": "logical_and"}[reduction.name]  # fmt: skip
            out = verbs.ELEMENTWISE[combine](out, init)
        return out
    dtype = np.result_type(mapped.dtype, np.asarray(init).dtype if not isinstance(init, (int, float)) else init)
    return verbs.reduce_(mapped, reduction, axis=axis, dtype=dtype, keepdims=keepdims)


@explained
def mapreduce(
    f: Any, op: Any, x: Any, *, init: Any = None, axis: Any = None, keepdims: bool = False
) -> AbstractArray:
    """Apply `f` to every element and combine the results with `op`, in one kernel.

    `f` and `op` may be mirabelle's functions or scalar Python functions. An `op` of your own must
    be associative, and needs its neutral element as `init`.

    Parameters
    ----------
    f : callable
        A scalar function of one argument.
    op : str or callable
        "add", "multiply", "maximum", "minimum" or a scalar function of two arguments.
    x : array
        An array.
    init : number or None
        What it starts with; needed where there may be no elements.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.

    Returns
    -------
    array
        Of the axes that are left, of no dimensions if none is; of the dtype that `f` returns, but int64 or
        uint64 where truth values or integers are added or multiplied.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([1.0, -2.0, 3.0])
    >>> print(mb.mapreduce(mb.abs, mb.add, x))
    6.0
    >>> print(mb.mapreduce(lambda v: v * v, lambda a, b: a + b, x, init=0.0))
    14.0
    """
    return verbs.mapreduce_(x, f, op, init, axis, keepdims)


@explained
def reduce(op: Any, x: Any, *, init: Any = None, axis: Any = None, keepdims: bool = False) -> AbstractArray:
    """Combine the elements of `x` with `op`.

    Parameters
    ----------
    op : str or callable
        "add", "multiply", "maximum", "minimum" or a scalar function of two arguments.
    x : array
        An array.
    init : number or None
        What it starts with; needed where there may be no elements.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.

    Returns
    -------
    array
        Of the axes that are left, of no dimensions if none is; "add" and "multiply" take truth values and
        integers as int64 or uint64, all else keeps the dtype of `x`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.reduce(mb.maximum, mb.HostArray([1, 5, 2])))
    5
    """
    return verbs.mapreduce_(x, None, op, init, axis, keepdims)
