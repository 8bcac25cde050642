"""Arrays that store no elements: one value everywhere (Fill, Zeros, Ones), evenly spaced numbers (Range).

>>> import mirabelle as mb
>>> r = mb.Range(10) * 3 + 1                  # closed form: nothing of length 10 is in memory
>>> r
Range[HostArray[int64, 1]](start=1, step=3, size=10)
>>> print(r[2:5], mb.sum(r), 7 in r)
[ 7 10 13] 145 True
>>> f = mb.Fill((1000, 1000), 2.0)
>>> f * f + 1
Fill[HostArray[float64, 2]](5.0, shape=(1000, 1000))
>>> print(mb.sum(f))
2000000.0
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.dense import as_shape, wrap
from mirabelle.arraytypes.elementwise import argument_type, at_once, check_scalar, leaf_family
from mirabelle.arraytypes.functions.picking import searchsorted
from mirabelle.arraytypes.functions.searching import argmax, argmin
from mirabelle.arraytypes.functions.sorting import argsort, sort
from mirabelle.arraytypes.indexing import Advanced, is_advanced, parsed
from mirabelle.arraytypes.makers import maker_of
from mirabelle.arraytypes.parametric import checked_dtype, generic_class
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.arraytypes.structured.base import Implicit, counted
from mirabelle.arraytypes.wrappers import indexed_shape, no_room
from mirabelle.dispatch import promotion, verbs
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.styles import DENSE, NUMBER, Structure
from mirabelle.dispatch.tree import Broadcasted, broadcast_shapes

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import Device, DTypeLike, ShapeLike


def scalar_array(family: Any, value: Any) -> Any:
    """A number as a pending array of no dimensions at a place: it joins a kernel by value."""
    dtype = np.asarray(value).dtype
    sig = promotion.intern(TABLE["copy"], (dtype,), (dtype,))
    return at_once(wrap(family, Broadcasted(sig, (dtype.type(value),), ())))


class Fill(Implicit):
    """One value everywhere. `mb.Fill(shape, value)`: a number, or an array of no dimensions.

    Parameters
    ----------
    shape : int or tuple of int
        The shape.
    value : number
        The value.
    dtype : dtype or None
        The dtype of the result; None is that of the value.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([1.0, 2.0])
    >>> print(x + mb.Fill(2, 0.5), type(mb.Fill((3, 2), 7).T).__name__)
    [1.5 2.5] Fill[HostArray[int64, 2]]
    """

    __module__ = "mirabelle"
    __slots__ = ()
    fuses = True
    compressed = True
    # What a subtype always holds.
    constant: int | None = None

    def __new__(
        cls,
        shape: ShapeLike,
        value: Any = None,
        *,
        dtype: DTypeLike = None,
        device: Device | None = None,
    ) -> Self:
        if cls.parameters:
            device, dtype = leaf_family(cls), getattr(cls, "dtype", dtype)
        if value is None or cls.constant is not None:
            if cls.constant is None:
                raise TypeError("Fill takes a shape and a value: mb.Fill((3, 3), 1.0).")
            value = checked_dtype(np.float64 if dtype is None else dtype).type(cls.constant)
        if isinstance(value, AbstractArray):
            if value.ndim:
                raise ValueError(f"Fill holds one value; this one is an array of shape {value.shape}.")
            value = value if dtype is None else verbs.astype(value, dtype, copy=False)
            family = leaf_family(type(value))
        else:
            value = np.asarray(value, dtype)[()]
            if value.shape:
                raise ValueError(f"Fill holds one value; this one is an array of shape {value.shape}.")
            family = maker_of(device).family
        checked_dtype(value.dtype)
        return filled(family, as_shape(shape), value, cls)

    @property
    def value(self) -> Any:
        """The value: a NumPy scalar, or an array of no dimensions whose value is not looked at."""
        return self._parts[0] if self._parts else self._how

    @property
    def known(self) -> Any:
        """The value if it is a number; None where it is an array."""
        return None if self._parts else self._how

    @property
    def structure(self) -> Structure:
        return NUMBER if type(self).constant == 0 else DENSE

    @property
    def scalar(self) -> AbstractArray:
        """The value as an array of no dimensions."""
        return self._parts[0] if self._parts else scalar_array(self.family, self._how)

    def _dense(self) -> Any:
        return verbs.broadcast_to(self.scalar, self._shape)

    def _resized(self, shape: tuple[int, ...]) -> Any:
        return filled(self.family, shape, self.value, type(self))

    def _transposed(self) -> Any:
        return self._resized(self._shape[::-1])

    def _conjugated(self) -> Any:
        return filled(self.family, self._shape, verbs.conj(self.value) if self._parts else np.conj(self._how))

    def _typed(self, family: Any, dtype: np.dtype) -> Any:
        value = self.value
        if self._parts:
            value = verbs.adapt(family, verbs.astype(value, dtype, copy=False))
        else:
            value = _cast_number(value, dtype)
        return filled(family, self._shape, value, type(self))

    def _with_parts(self, parts: tuple[Any, ...]) -> Any:
        return filled(self.family, self._shape, parts[0] if parts else self._how, type(self))

    def _index(self, index: tuple[Any, ...]) -> Any:
        if any(isinstance(i, AbstractArray) for i in index):
            return NotImplemented
        shape = indexed_shape(self._shape, index)
        if not shape and not any(i is None or i is Ellipsis for i in index):
            element = verbs.positive(self.scalar) if self.dtype.kind != "b" else verbs.copy(self.scalar)
            element._node.element = True
            return element
        return self._resized(shape)

    def _diagonal(self, offset: int) -> Any:
        rows, columns = self._shape
        n = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
        return self._resized((max(0, n),))

    def _write(self, index: Any, value: Any) -> None:
        raise ValueError(
            f"This {generic_class(type(self)).__name__} stores one value for all its entries and is not "
            "written to. Make memory of it first: `x = mb.HostArray(x)`."
        )

    def _times(self, other: Any) -> Any:
        if _is_identity(other):
            return NotImplemented  # it gives back what it meets
        total = verbs.multiply(_added_up(other, -1 if other.ndim == 1 else -2, self.dtype), self.value)
        rows = self._shape[:-1]
        if other.ndim == 1:
            return _stretched(total, rows)
        return NotImplemented if len(rows) != 1 else _stretched_rows(total, rows[0])

    def _rtimes(self, other: Any) -> Any:
        total = verbs.multiply(_added_up(other, -1, self.dtype), self.value)
        if len(self._shape) == 1:
            return total
        if len(self._shape) != 2:
            return NotImplemented
        return verbs.broadcast_to(verbs.getitem(total, (..., None)), (*total.shape, self._shape[1]))

    def __reduce__(self) -> Any:
        return filled, (self.family, self._shape, self.value, generic_class(type(self)))

    def _facts(self) -> list[str]:
        value = [] if self._parts or type(self).constant is not None else [str(self._how)]
        return [*value, f"shape={self._shape}"]


class Zeros(Fill):
    """Zeros, which take no memory.

    Parameters
    ----------
    shape : int or tuple of int
        The shape.
    value : number
        Always zero.
    dtype : dtype or None
        The dtype of the result; None is float64.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.Zeros((2, 3)) * mb.HostArray([1.0, 2.0, 3.0])
    Zeros[HostArray[float64, 2]](shape=(2, 3))
    """

    __module__ = "mirabelle"
    __slots__ = ()
    constant = 0

    def _times(self, other: Any) -> Any:
        shape = self._shape[:-1] if other.ndim == 1 else (*other.shape[:-2], *self._shape[:-1], other.shape[-1])
        return filled(self.family, shape, np.result_type(self.dtype, other.dtype).type(0), Zeros)

    def _rtimes(self, other: Any) -> Any:
        shape = other.shape[:-1] if self.ndim == 1 else (*other.shape[:-1], self._shape[-1])
        return filled(self.family, shape, np.result_type(self.dtype, other.dtype).type(0), Zeros)


class Ones(Fill):
    """Ones, which take no memory.

    Parameters
    ----------
    shape : int or tuple of int
        The shape.
    value : number
        Always one.
    dtype : dtype or None
        The dtype of the result; None is float64.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.Ones((2, 2)) * 3
    Fill[HostArray[float64, 2]](3.0, shape=(2, 2))
    """

    __module__ = "mirabelle"
    __slots__ = ()
    constant = 1


def filled(family: Any, shape: tuple[int, ...], value: Any, cls: Any = None) -> Any:
    """A Fill of a NumPy scalar or an array of no dimensions; of `cls` if that still tells the truth."""
    if getattr(value, "carries_derivatives", False):  # a type says of its parts what its parameters say
        return verbs.broadcast_to(value, tuple(shape))
    cls = generic_class(cls) if cls is not None and holds(cls, value) else Fill
    x = cls._standing(family[value.dtype, len(shape)], tuple(shape))
    if isinstance(value, AbstractArray):
        x._parts = (value,)
    else:
        x._how = value
    return x


def holds(cls: Any, value: Any) -> bool:
    """Is the value what arrays of this type always hold?"""
    constant = getattr(cls, "constant", None)
    return constant is None or (not isinstance(value, AbstractArray) and bool(value == constant))


def _cast_number(value: Any, dtype: np.dtype) -> Any:
    if np.iscomplexobj(value) and dtype.kind not in "cb":
        value = value.real
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(dtype)[()]


def _is_identity(x: Any) -> bool:
    from mirabelle.arraytypes.structured.banded import Identity

    return isinstance(x, Identity)


def _added_up(x: Any, axis: int, beside: np.dtype) -> Any:
    """The sums in a product: unlike those of `sum`, they stay in the dtype of the factors."""
    dtype = np.result_type(x.dtype, beside)
    return verbs.any(x, axis=axis) if dtype.kind == "b" else verbs.sum(x, axis=axis, dtype=dtype)


def _stretched(total: Any, shape: tuple[int, ...]) -> Any:
    return filled(leaf_family(type(total)), shape, total)


def _stretched_rows(total: Any, n: int) -> Any:
    shown = verbs.getitem(total, (..., None, slice(None)))
    return verbs.broadcast_to(shown, (*total.shape[:-1], n, total.shape[-1]))


@verbs.dense.method
def _(x: Fill) -> Any:
    return verbs.copy(x._dense())


@verbs.reshape.method
def _(x: Fill, shape: Any) -> Any:
    return x._resized(reshaped(x, shape))


@verbs.broadcast_to.method
def _(x: Fill, shape: Any) -> Any:
    shape = as_shape(shape)
    if broadcast_shapes([x.shape, shape], "broadcast_to") != shape:
        raise ValueError(f"shape {x.shape} cannot be stretched to {shape}: a dimension can only grow from 1.")
    return x._resized(shape)


@verbs.permute_dims.method
def _(x: Fill, axes: Any) -> Any:
    return x._resized(np.broadcast_to(np.int8(0), x.shape).transpose(tuple(axes)).shape)


def reshaped(x: Any, shape: Any) -> tuple[int, ...]:
    """The shape `reshape` gives, -1 worked out, or NumPy's error."""
    given = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(int(n) for n in shape)
    if given.count(-1) > 1:
        raise ValueError(f"A shape may leave one dimension open (-1), not several: {given}.")
    known = math.prod(n for n in given if n != -1)
    if -1 in given and known and x.size % known == 0:
        given = tuple(x.size // known if n == -1 else n for n in given)
    if min(given, default=0) < 0 or math.prod(given) != x.size:
        raise no_room(x, given)
    return given


# Reductions of one value


@verbs.reduce_.method
def _(x: Fill, reduction: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    axes = normal_axes(axis, x.ndim)
    count = math.prod(x.shape[a] for a in axes)
    if count == 0 or reduction.ufunc is None:
        return verbs.reduce_(x._dense(), reduction, axis=axis, dtype=dtype, keepdims=keepdims)
    kept = tuple(1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes)
    value = x.value
    if dtype is not None:
        value = verbs.astype(value, dtype) if x._parts else _cast_number(value, checked_dtype(dtype))
    if reduction.name == "sum":
        value = _number(verbs.multiply(value, value.dtype.type(count)))
    elif reduction.name == "prod":
        value = _number(verbs.pow(value, count))
    found = filled(x.family, kept, value)
    return found if kept else found.scalar


def _number(x: Any) -> Any:
    """The result of an operation on numbers as one; an array (of an unknown value) stays one."""
    return verbs.fetch(x)[()]


# Evenly spaced numbers


class Range(Implicit):
    """Evenly spaced numbers, as `mb.arange` makes them, without the memory. Never written to.

    Sums, differences, products with finite numbers and slices of ranges are ranges. (Those of
    floating point ranges may differ from NumPy's elements in the last bit.) Sums, extrema, order, `any`, `all`,
    elements and `searchsorted` follow from its ends. In other elementwise operations and reductions its numbers
    are worked out where they are needed, inside the kernel. An array indexed by a range is cut as by a slice.

    Parameters
    ----------
    start : number
        The first value, or the end if it is alone.
    stop : number or None
        Where it ends, without this value.
    step : number, default 1
        The distance of neighbours.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the numbers.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.Range(2, 10, 2)
    Range[HostArray[int64, 1]](start=2, step=2, size=4)
    >>> print(mb.Range(0.0, 1.0, 0.25) / 2, mb.Range(5)[::-1])
    [0.    0.125 0.25  0.375] [4 3 2 1 0]
    >>> with mb.count() as c:
    ...     x = mb.materialize(mb.sqrt(mb.Range(10_000)))
    >>> c.launches, c.bytes_read
    (1, 0)
    """

    __module__ = "mirabelle"
    __slots__ = ()
    fuses = True
    compressed = spaced = True

    def __new__(
        cls,
        start: Any,
        stop: Any = None,
        step: Any = 1,
        *,
        dtype: DTypeLike = None,
        device: Device | None = None,
    ) -> Self:
        if cls.parameters:
            device, dtype = leaf_family(cls), getattr(cls, "dtype", dtype)
        if stop is None:
            start, stop = 0, start
        for x in (start, stop, step):
            if not isinstance(x, (int, float, np.integer, np.floating)) or isinstance(x, bool):
                raise TypeError(f"A Range is made of real numbers: mb.Range(start, stop, step), not {x!r}.")
        if step == 0 or not all(math.isfinite(x) for x in (start, stop, step)):
            raise ValueError(f"A Range has finite ends and a step other than 0, not ({start}, {stop}, {step}).")
        d = np.arange(start, start, step).dtype if dtype is None else checked_dtype(dtype)
        if d.kind not in "iuf":
            raise TypeError(f"A Range holds integers or real numbers, not {d.name}.")
        size = max(0, math.ceil((stop - start) / step))
        if all(isinstance(x, (int, np.integer)) for x in (start, stop, step)):
            size = max(0, -((start - stop) // step))
        return ranged(maker_of(device).family, d, start, step, size)

    @property
    def start(self) -> int | float:
        return self._how[0]

    @property
    def step(self) -> int | float:
        return self._how[1]

    def at(self, i: int) -> int | float:
        """The element at `i` as a Python number."""
        start, step = self._how
        if self.dtype.kind != "f":
            return start + i * step
        kind = self.dtype.type
        return (kind(start) + kind(i) * self._delta()).item()

    def _delta(self) -> Any:
        """The difference of neighbours as NumPy's arange rounds it."""
        kind = self.dtype.type
        return kind(kind(self._how[0] + self._how[1]) - kind(self._how[0]))

    def _dense(self, shape: tuple[int, ...] | None = None) -> Any:
        return self._entries(counted(self.family, self._shape[0], shape))

    def _entries(self, i: Any) -> Any:
        kind = self.dtype.type
        if isinstance(i, int):
            return scalar_array(self.family, np.asarray(self.at(i)).astype(self.dtype)[()])
        if self.dtype.kind != "f":
            start, step = (np.asarray(v).astype(self.dtype)[()] for v in self._how)
            i = verbs.astype(i, self.dtype)
        else:
            start, step = kind(self._how[0]), self._delta()
            i = verbs.astype(i, self.dtype)
        if step != 1:
            i = verbs.multiply(i, step)
        # (Of the 0th times a negative step the sign of zero is not NumPy's.)
        return i if start == 0 and step > 0 else verbs.add(i, start)

    def _typed(self, family: Any, dtype: np.dtype) -> Any:
        if dtype.kind in "iu" and self.dtype.kind == "f":
            return NotImplemented if dtype != self.dtype else self
        return (
            ranged(family, dtype, self.start, self.step, self._shape[0])
            if dtype.kind in "iuf"
            else NotImplemented
        )

    def _index(self, index: tuple[Any, ...]) -> Any:
        if all(i is None or i is Ellipsis or isinstance(i, slice) for i in index):
            return self._part(index)
        if len(index) != 1 or not is_advanced(index):
            return NotImplemented
        how = parsed(self, index)
        if not isinstance(how, Advanced):
            return verbs.getitem(self, how)
        return self._entries(*how.arrays) if len(how.arrays) == 1 else NotImplemented

    def _part(self, index: tuple[Any, ...]) -> Any:
        """What a slice names: a Range; where there are new dimensions, too, its elements."""
        dots, slices = index.count(...), [i for i in index if isinstance(i, slice)]
        if dots > 1 or len(slices) > 1:
            return NotImplemented
        if not slices:
            slices = [slice(None)]
            index = tuple([slices[0] if i is ... else i for i in index]) if dots else (*index, slices[0])
        chosen = range(self._shape[0])[slices[0]]
        start = self.at(chosen.start) if chosen else self._how[0]
        part = ranged(self.family, self.dtype, start, self._how[1] * chosen.step, len(chosen))
        shape = tuple([1 if i is None else len(chosen) for i in index if i is not ...])
        return part if len(shape) == 1 else part._dense(shape)

    def _times(self, other: Any) -> Any:
        if other.shape != self._shape:
            return NotImplemented
        product = verbs.multiply(self, other)
        return verbs.sum(product, dtype=product.dtype)

    _rtimes = _times

    def _write(self, index: Any, value: Any) -> None:
        raise ValueError(
            "A Range is worked out from its start and step and is not written to. Make memory of it "
            "first: `x = mb.HostArray(x)`."
        )

    def _ends(self) -> tuple[Any, Any]:
        first, last = self.at(0), self.at(self._shape[0] - 1)
        return (first, last) if first <= last else (last, first)

    def __contains__(self, x: Any) -> bool:
        try:
            x = x.item() if hasattr(x, "item") else x
            guess = round((x - self.start) / self.step) if self._shape[0] and self.step else 0
        except (TypeError, ValueError, OverflowError):
            return False
        return any(0 <= i < self._shape[0] and self.at(i) == x for i in (guess - 1, guess, guess + 1))

    def __reversed__(self) -> Any:
        return self[::-1]

    def _facts(self) -> list[str]:
        return [f"start={self._how[0]}", f"step={self._how[1]}", f"size={self._shape[0]}"]


def ranged(family: Any, dtype: np.dtype, start: Any, step: Any, size: int) -> Any:
    """A Range of Python numbers of the kind of the dtype."""
    plain: Any = float if dtype.kind == "f" else int
    return Range._standing(family[dtype, 1], (size,), (plain(start), plain(step)))


def range_of(op: Any, operands: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """The result of an elementwise operation as a Range, where it is one; else NotImplemented."""
    name, ranges = op.name, [x for x in operands if isinstance(x, Range)]
    numbers = [x for x in operands if not isinstance(x, Range)]
    first = ranges[0]
    if len(shape) != 1 or any(x.shape != shape for x in ranges) or name not in _CLOSED:
        return NotImplemented
    if not all(
        isinstance(x, _REAL) and not isinstance(x, (bool, np.bool_)) and math.isfinite(x) for x in numbers
    ):
        return NotImplemented
    if (len(ranges) == 2 and name not in ("add", "subtract")) or (
        name == "divide" and operands[0] is not first
    ):
        return NotImplemented
    sig = promotion.signature(op, tuple(argument_type(type(x)) for x in operands))
    for x, dtype in zip(operands, sig.ins, strict=True):
        if type(x) is int:
            check_scalar(x, dtype)
    starts = [x.start if isinstance(x, Range) else x for x in operands]
    steps = [x.step if isinstance(x, Range) else 0 for x in operands]
    starts, steps = (
        [v.item() if isinstance(v, np.generic) else v for v in values] for values in (starts, steps)
    )
    if name == "divide" and starts[1] == 0:
        return NotImplemented
    start, step = _CLOSED[name](starts, steps)
    if sig.out.kind not in "iuf":
        return NotImplemented
    return ranged(first.family, sig.out, start, step, shape[0])


_REAL = (int, float, np.integer, np.floating)
# From the starts and steps of the operands (a number has the step 0) to those of the result.
_CLOSED: dict[str, Any] = {
    "add": lambda a, s: (a[0] + a[1], s[0] + s[1]),
    "subtract": lambda a, s: (a[0] - a[1], s[0] - s[1]),
    "multiply": lambda a, s: (a[0] * a[1], s[0] * a[1] + a[0] * s[1]),
    "divide": lambda a, s: (a[0] / a[1], s[0] / a[1]),
    "negative": lambda a, s: (-a[0], -s[0]),
    "positive": lambda a, s: (a[0], s[0]),
}


@verbs.reduce_.method
def _(x: Range, reduction: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    normal_axes(axis, 1)
    n = x.shape[0]
    if n and axis != () and reduction.name in ("any", "all") and dtype in (None, np.bool_):
        zeros = 0 if 0 not in x else n if x.step == 0 else 1
        out = scalar_array(x.family, np.bool_(n > zeros if reduction.name == "any" else not zeros))
        return verbs.reshape(out, (1,)) if keepdims else out
    if n and axis != () and reduction.name in ("sum", "min", "max"):
        low, high = x._ends()
        value: Any = high if reduction.name == "max" else low
        if reduction.name == "sum":
            value = n * (low + high) // 2 if isinstance(low, int) else n * ((low + high) / 2)
        d = x.dtype if dtype is None else checked_dtype(dtype)
        if d.kind in "iuf" and (d.kind == "f" or x.dtype.kind != "f"):
            bits = np.iinfo(d).bits if d.kind in "iu" else 0
            number = np.asarray(_wrapped_integer(value, d, bits) if bits else value, d)[()]
            out = scalar_array(x.family, number)
            return verbs.reshape(out, (1,)) if keepdims else out
    return verbs.reduce_(x._dense(), reduction, axis=axis, dtype=dtype, keepdims=keepdims)


def _wrapped_integer(value: int, dtype: np.dtype, bits: int) -> int:
    """An integer as the arithmetic of its dtype leaves it."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.kind == "i" and value >> (bits - 1) else value


def _search(x1: Range, x2: Any, *, side: str = "left", sorter: Any = None) -> Any:
    if x1.step <= 0 or sorter is not None or side not in ("left", "right"):
        return searchsorted(x1._dense(), x2, side=side, sorter=sorter)
    # The quotient may be off by one where it is rounded: so count, of the three elements around
    # it, those that come before.
    n = x1.shape[0]
    x2 = as_array(x2, like=x1)
    before = verbs.less if side == "left" else verbs.less_equal
    guess = verbs.floor(verbs.divide(verbs.subtract(verbs.astype(x2, np.float64), x1.start), x1.step))
    found = verbs.astype(verbs.clip(verbs.subtract(guess, 1.0), 0.0, float(n)), np.int64)
    result = found
    for k in range(3):
        at = verbs.add(found, k)
        counts = verbs.logical_and(before(x1._entries(at), x2), verbs.less(at, n))
        result = verbs.add(result, verbs.astype(counts, np.int64))
    return verbs.where(verbs.isnan(guess), n, result)


for _what in (AbstractArray, object):
    searchsorted.method(_search, signature=(Range, _what))


# Where the extremes are, and the order: of numbers that differ, which small steps beside large numbers may not


def _differ(x: Range) -> bool:
    if x.dtype.kind != "f":
        return bool(x.step)
    low, high = x._ends()
    return bool(abs(x._delta()) > 2 * np.spacing(x.dtype.type(max(abs(low), abs(high)))))


def _extreme(f: Any, highest: bool) -> Any:
    def position(x: Range, axis: Any = None, *, keepdims: bool = False) -> Any:
        n = x.shape[0]
        if not n or not _differ(x):
            return f(x._dense(), axis=axis, keepdims=keepdims)
        normal_axes(axis, 1)
        out = scalar_array(x.family, np.int64(n - 1 if (x.step > 0) == highest else 0))
        return verbs.reshape(out, (1,)) if keepdims else out

    return position


argmax.method(_extreme(argmax, True), signature=(Range,))
argmin.method(_extreme(argmin, False), signature=(Range,))


@sort.method
def _(x: Range, axis: Any = -1, *, descending: bool = False, stable: bool = True) -> Any:
    normal_axes(axis, 1)
    return x[::-1] if (x.step < 0) != bool(descending) else x


@argsort.method
def _(x: Range, axis: Any = -1, *, descending: bool = False, stable: bool = True) -> Any:
    n = x.shape[0]
    if not _differ(x):
        return argsort(x._dense(), axis=axis, descending=descending, stable=stable)
    normal_axes(axis, 1)
    order = ranged(x.family, np.dtype(np.int64), 0, 1, n)
    return order[::-1] if (x.step < 0) != bool(descending) else order
