"""Arrays one after another along an axis, not copied together.

>>> import mirabelle as mb
>>> x = mb.Concat(mb.ones((2, 3)), mb.zeros((1, 3)))
>>> print(x @ mb.HostArray([1.0, 2.0, 3.0]), mb.sum(x), (x + 1)[2])
[6. 6. 0.] 6.0 [1. 1. 1.]
>>> x[1:, :2]
Concat[View[HostArray[float64, 2], 2], View[HostArray[float64, 2], 2]](
[[1., 1.],
 [0., 0.]])
"""

from __future__ import annotations

import functools
from collections.abc import Hashable
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.elementwise import join_families
from mirabelle.arraytypes.functions import norms
from mirabelle.arraytypes.functions.joining import concatenate
from mirabelle.arraytypes.parametric import generic_class
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.arraytypes.structured.base import Structured
from mirabelle.arraytypes.structured.fallback import made_dense
from mirabelle.arraytypes.structured.kronecker import as_right_side
from mirabelle.arraytypes.wrappers import Wrapper
from mirabelle.dispatch import verbs


class Concat(Structured):
    """Arrays along an axis that they have; written to, it writes to them.

    (`mb.concat` makes the same in new memory.)

    Parameters
    ----------
    *arrays : arrays
        What is put one after another.
    axis : int, default 0
        Along which axis; negative ones count from the last.

    Examples
    --------
    >>> import mirabelle as mb
    >>> a, b = mb.zeros(2), mb.zeros(1)
    >>> x = mb.Concat(a, b)
    >>> x[1:] = 7.0
    >>> print(a, b, mb.Concat(a, mb.Concat(b, b)).shape)
    [0. 7.] [7.] (4,)
    """

    __module__ = "mirabelle"
    __slots__ = ()
    ndim: int
    entrywise = True

    def __new__(cls, *arrays: Any, axis: int = 0) -> AbstractArray:  # type: ignore[misc]
        if len(arrays) == 1 and isinstance(arrays[0], (list, tuple)):
            arrays = tuple(arrays[0])
        if not arrays:
            raise TypeError("Concat is made of its parts: mb.Concat(a, b, axis=0).")
        parts = cls._checked(arrays)
        ndim = parts[0].ndim
        if not ndim:
            raise ValueError("Concat takes arrays of at least one dimension; give a number one with x[None].")
        (axis,) = normal_axes(axis, ndim)
        for p in parts[1:]:
            if p.ndim != ndim or any(
                m != n for d, (m, n) in enumerate(zip(p.shape, parts[0].shape, strict=True)) if d != axis
            ):
                raise ValueError(
                    f"Concat: arrays of shapes {parts[0].shape} and {p.shape} do not stand one after the other "
                    f"along axis {axis}: their other dimensions must be equal."
                )
        flat = [q for p in parts for q in (p.parts if isinstance(p, Concat) and p.axis == axis else (p,))]
        dtype = np.result_type(*[p.dtype for p in flat])
        return joined_lazily([verbs.astype(p, dtype, copy=False) for p in flat], axis)

    @classmethod
    def _class_attributes(cls, parameters: Any) -> dict[str, Any]:
        attributes = super()._class_attributes(parameters)
        if isinstance(getattr(parameters[0], "ndim", None), int):
            attributes["ndim"] = parameters[0].ndim
        return attributes

    @property
    def axis(self) -> int:
        """The axis along which the parts follow each other."""
        return int(self._how)

    @property
    def layout(self) -> Hashable:
        return Concat, self.axis, tuple(p.shape for p in self._parts)

    def spans(self) -> list[tuple[Any, slice]]:
        """Each part, and where it stands along the axis."""
        found, start = [], 0
        for p in self._parts:
            stop = start + p.shape[self.axis]
            found.append((p, slice(start, stop)))
            start = stop
        return found

    def _at(self, along: Any, others: Any = slice(None)) -> tuple[Any, ...]:
        """An index with `along` at the axis and `others` at the other dimensions."""
        return tuple(along if d == self.axis else others for d in range(len(self._shape)))

    def _restrict(self, x: Any) -> Any:
        x = verbs.broadcast_to(x, self._shape)
        return tuple(x[self._at(span)] for _, span in self.spans())

    def _dense(self) -> Any:
        return concatenate([verbs.dense(p) for p in self._parts], self.axis)

    def _entries(self, *coordinates: Any) -> Any:
        found: Any = None
        for p, span in self.spans():
            if not p.shape[self.axis]:
                continue
            along = coordinates[self.axis]
            inside = verbs.clip(along - span.start, 0, p.shape[self.axis] - 1)
            entry = p[tuple(inside if d == self.axis else c for d, c in enumerate(coordinates))]
            found = (
                entry if found is None else verbs.where(verbs.greater_equal(along, span.start), entry, found)
            )
        return self.dtype.type(0) if found is None else found

    def _transposed(self) -> Any:
        return joined_lazily([p.T for p in self._parts], 1 - self.axis)

    # Indexing, by integers and slices

    def _index(self, index: tuple[Any, ...]) -> Any:
        full = _basic_index(index, len(self._shape))
        if full is None:
            return NotImplemented
        along = full[self.axis]

        def rest(i: Any) -> tuple[Any, ...]:
            return (*full[: self.axis], i, *full[self.axis + 1 :])

        if isinstance(along, int):
            part, place = self._part_at(along)
            return part[rest(place)]
        pieces = [p[rest(inside)] for p, inside in self._inside(along)]
        axis = self.axis - sum(isinstance(i, int) for i in full[: self.axis])
        if not pieces:
            return self._parts[0][rest(slice(0, 0))]
        return pieces[0] if len(pieces) == 1 else joined_lazily(pieces, axis)

    def _part_at(self, i: int) -> tuple[Any, int]:
        """The part that holds a place of the axis, and where in it."""
        n = self._shape[self.axis]
        if not -n <= i < n:
            raise IndexError(f"index {i} is out of bounds for axis {self.axis} with size {n}")
        part, span = next((p, s) for p, s in self.spans() if s.start <= i % n < s.stop)
        return part, i % n - span.start

    def _inside(self, along: slice) -> list[tuple[Any, slice]]:
        """The parts a slice of the axis meets, in its order, and the slice of each."""
        chosen = range(self._shape[self.axis])[along]
        forward = chosen if chosen.step > 0 else chosen[::-1]
        found = []
        for p, span in self.spans():
            # From the first of the chosen places that is in this part, to its end.
            low = forward.start + max(0, -(-(span.start - forward.start) // forward.step)) * forward.step
            high = min(forward.stop, span.stop)
            if len(forward) and low < high:
                inside = range(low - span.start, high - span.start, forward.step)
                if chosen.step > 0:
                    found.append((p, slice(inside.start, inside.stop, inside.step)))
                else:
                    stop = inside.start - forward.step
                    found.append((p, slice(inside[-1], stop if stop >= 0 else None, -forward.step)))
        return found if chosen.step > 0 else found[::-1]

    def _write(self, index: Any, value: Any) -> None:
        full = _basic_index((...,) if index is None else index, len(self._shape))
        if full is None:
            raise TypeError(
                "A Concat is written to by integers and slices, which meet its parts: x[1:3] = v. For masks "
                "and lists of indices, make a dense copy: `x = mb.HostArray(x)`."
            )
        if isinstance(value, (list, tuple, np.ndarray)):
            value = as_array(value, self._parts[0])
        if isinstance(value, (Wrapper, Structured)):
            # It may show the parts, of which some will be written before others are read.
            value = verbs.copy(value)
        along, axis = full[self.axis], self.axis

        def at(i: Any) -> tuple[Any, ...]:
            return (*full[:axis], i, *full[axis + 1 :])

        if isinstance(along, int):
            part, place = self._part_at(along)
            verbs.setitem(part, at(place), value)
            return
        # Where the axis is in the value, counted from behind, if it is there and not to be stretched.
        behind = sum(not isinstance(i, int) for i in full[axis:])
        shape = getattr(value, "shape", ())
        split = len(shape) >= behind and shape[-behind] != 1
        chosen = len(range(self._shape[axis])[along])
        if split and shape[-behind] != chosen:
            raise ValueError(
                f"could not broadcast input array from shape {shape}: {shape[-behind]} rows or columns come "
                f"along axis {axis} of a Concat, and {chosen} are written to."
            )
        start = 0
        for part, inside in self._inside(along):
            stop = start + len(range(part.shape[axis])[inside])
            piece = value[(..., slice(start, stop), *[slice(None)] * (behind - 1))] if split else value
            verbs.setitem(part, at(inside), piece)
            start = stop

    # Products

    def _times(self, other: Any) -> Any:
        join_families("matmul", (self, other))
        if len(self._shape) > 2:
            return NotImplemented
        other = as_right_side(other)
        if other is NotImplemented:
            return NotImplemented
        if self.axis == 0 and len(self._shape) == 2:
            return concatenate([verbs.matmul(p, other) for p in self._parts], max(0, other.ndim - 2))
        lines = max(0, other.ndim - 2)
        pieces = [verbs.matmul(p, other[(*[slice(None)] * lines, span)]) for p, span in self.spans()]
        return functools.reduce(verbs.add, pieces)

    def _rtimes(self, other: Any) -> Any:
        join_families("matmul", (self, other))
        if len(self._shape) > 2:
            return NotImplemented
        other = as_right_side(other)
        if other is NotImplemented:
            return NotImplemented
        if self.axis == 1:
            return concatenate([verbs.matmul(other, p) for p in self._parts], other.ndim - 1)
        pieces = [verbs.matmul(other[..., span], p) for p, span in self.spans()]
        return functools.reduce(verbs.add, pieces)

    def _facts(self) -> list[str]:
        return [f"shape={self._shape}", f"{len(self._parts)} parts along axis {self.axis}"]


def joined_lazily(parts: list[Any], axis: int) -> Any:
    """A Concat of parts that are known to fit; of one, itself."""
    if len(parts) == 1:
        return parts[0]
    shape = list(parts[0].shape)
    shape[axis] = sum(p.shape[axis] for p in parts)
    return generic_class(Concat)._of(tuple(parts), tuple(shape), axis)


def _basic_index(index: tuple[Any, ...], ndim: int) -> tuple[Any, ...] | None:
    """An index of integers, slices and one `...` with an entry for each dimension; None for others."""
    if not all(
        i is Ellipsis or (isinstance(i, (slice, int, np.integer)) and not isinstance(i, (bool, np.bool_)))
        for i in index
    ):
        return None
    if index.count(Ellipsis) > 1 or len(index) - index.count(Ellipsis) > ndim:
        return None
    at = index.index(Ellipsis) if Ellipsis in index else len(index)
    missing = ndim - (len(index) - index.count(Ellipsis))
    full = (*index[:at], *[slice(None)] * missing, *index[at + 1 :])
    return tuple(int(i) if isinstance(i, (int, np.integer)) else i for i in full)


@verbs.permute_dims.method
def _(x: Concat, axes: Any) -> Any:
    order = tuple(a % x.ndim for a in axes)
    if sorted(order) != list(range(x.ndim)):
        return verbs.permute_dims(made_dense(x), axes)
    if order == tuple(range(x.ndim)):
        return x
    return joined_lazily([verbs.permute_dims(p, order) for p in x.parts], order.index(x.axis))


# Reductions

_COMBINE = {
    "sum": verbs.add, "prod": verbs.multiply, "min": verbs.minimum, "max": verbs.maximum,
    "any": verbs.logical_or, "all": verbs.logical_and,
}  # fmt: skip


@verbs.reduce_.method
def _(x: Concat, reduction: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    axes = normal_axes(axis, x.ndim)
    if reduction.name not in _COMBINE or not axes or not all(p.size for p in x.parts):
        return verbs.reduce_(made_dense(x), reduction, axis=axis, dtype=dtype, keepdims=keepdims)
    found = [verbs.reduce_(p, reduction, axis=axes, dtype=dtype, keepdims=keepdims) for p in x.parts]
    if x.axis in axes:
        return functools.reduce(_COMBINE[reduction.name], found)
    return concatenate(found, x.axis if keepdims else x.axis - sum(a < x.axis for a in axes))


def _norm_of_norms(x: Concat, p: Any) -> Any:
    found = [norms.vector_norm(part, ord=p) for part in x.parts]
    return norms.vector_norm(concatenate([verbs.reshape(f, (1,)) for f in found]), ord=p)


@verbs.norm.method
def _(x: Concat, p: Any = 2) -> Any:
    return _norm_of_norms(x, p) if p > 0 and x.size else verbs.norm(made_dense(x), p)


@norms.vector_norm.method
def _(x: Concat, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    if len(normal_axes(axis, x.ndim)) != x.ndim or not ord > 0 or not x.size:
        return norms.vector_norm(made_dense(x), axis=axis, keepdims=keepdims, ord=ord)
    out = _norm_of_norms(x, ord)
    return verbs.reshape(out, (1,) * x.ndim) if keepdims else out


@norms.norm.method
def _(x: Concat, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if axis is None and ord in (None, "fro"):
        return norms.vector_norm(x, keepdims=keepdims)
    return norms.norm(made_dense(x), ord, axis, keepdims)
