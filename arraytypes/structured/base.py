"""Structured arrays: they store one or several parts and know the other entries.

A type gives its parts, its shape and ONE rule: what its entries are, composed of verbs on the
parts. Everything else follows, dense, with a warning that says so once; each rule more makes one
operation cheap. How to add a type (all of it; users do this in notebooks):

>>> import mirabelle as mb
>>> class Outer(mb.types.Structured):
...     '''u vᵀ of two vectors.'''
...     linear = 0                                       # the entries are proportional to part 0
...     @classmethod
...     def _shape_of(cls, u, v):                        # the shape; raise ValueError if parts do not fit
...         return len(u), len(v)
...     def _entries(self, i, j):                        # the rule: entries at arrays of coordinates
...         return self.parts[0][i] * self.parts[1][j]   # (or `_dense(self)`: all of them)
...     def _transposed(self):                           # the others are optional
...         return Outer(self.parts[1], self.parts[0])
...     def _times(self, other):                         # self @ other; NotImplemented where no rule is
...         return self.parts[0] * (self.parts[1] @ other) if other.ndim == 1 else NotImplemented
>>> x = Outer([1.0, 2.0], mb.HostArray([3.0, 4.0]))
>>> type(x).__name__
'Outer[HostArray[float64, 1], HostArray[float64, 1]]'
>>> print(x @ mb.HostArray([1.0, 1.0]), x.T[0], (x * 10)[1, 1])
[ 7. 14.] [3. 6.] 80.0
>>> @mb.sum.method
... def _(x: Outer, *, axis=None): return mb.sum(x.parts[0]) * mb.sum(x.parts[1])
>>> print(mb.sum(x))
21.0

Rules for functions of one array are methods, as above. Those for elementwise functions follow from
`linear`, or from `layout` (equal layouts: the parts match entry by entry, see `broadcasting.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mirabelle.arraytypes import shapereads
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import asarray
from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.dense import DenseArray, wrap
from mirabelle.arraytypes.elementwise import default_family, join_families, leaf_family
from mirabelle.arraytypes.library import routine_of
from mirabelle.arraytypes.parametric import checked_dtype, generic_class
from mirabelle.arraytypes.parts import diagonal_view
from mirabelle.arraytypes.wrappers import root_of
from mirabelle.dispatch import promotion, verbs
from mirabelle.dispatch.errors import PlaceError
from mirabelle.dispatch.generic import generic
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.styles import DENSE, Structure
from mirabelle.dispatch.tree import Broadcasted, Leaf

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import ArrayLike

_new = object.__new__


@generic
def made_dense(x: Any) -> Any:
    """The dense form of `x`, for an operation that has no rule for it: structured/fallback.py says so."""


@generic
def held_in_memory(x: Any) -> Any:
    """The dense form of `x`, for a library that needs all entries in memory."""


def read_only_copy(x: Any, shown: Any) -> Any:
    """`shown`, which stands where NumPy has a view of `x`: if it is a copy, it refuses to be written to.

    Else a write would be lost without a word.
    """
    name = generic_class(type(x)).__name__
    if isinstance(shown, Structured):
        if shown is not x and not shown._shows(x):
            shown._copy_of = name
        return shown
    root = root_of(shown)
    if isinstance(root, DenseArray) and id(root) not in x._memory():
        root._copy_of = name
    return shown


class Structured(AbstractArray):
    """An array that stores parts, which are arrays of one place, and knows its other entries.

    Parameters: the types of the parts. See `arraytypes/structured/base.py` for how to add a type.

    >>> import mirabelle as mb
    >>> isinstance(mb.Diagonal([1.0, 2.0]), mb.types.Structured)
    True
    """

    __module__ = "mirabelle.types"
    __slots__ = ("__weakref__", "_copy_of", "_how", "_parts", "_shape")

    _parts: tuple[Any, ...]
    # Set where it is a copy that stands for a view (`read_only_copy`).
    _copy_of: str
    # What else a type needs to know about an instance: anything that pickles and compares.
    _how: Any
    _shape: tuple[int, ...]
    parent_type: Any = AbstractArray
    ndim = 2

    # Is the dense form a tree over the parts that fuses into what reads it, so that nothing is made?
    fuses = False
    # Of such a type: is the dense form much larger than the parts, so that a library that needs it in
    # memory (a sort, LAPACK) is to be told of like any other that has no rule?
    compressed = False
    # Is it numbers at even distances, whose dense form is worth a word although it is a vector?
    spaced = False
    # The index of a part that all entries are proportional to, if there is one.
    linear: int | None = None
    # Are there entries that are zero whatever the parts hold, beside those that `structure` tells?
    has_zeros = False
    # Is each entry one entry of a part, or zero, whatever the parts hold? Then a cast casts the parts.
    entrywise = False

    def __new__(cls, *parts: ArrayLike) -> Self:
        if not parts:
            raise TypeError(f"{cls.__name__} is made of its parts: {cls.__name__}(part, ...).")
        return cls._made(*cls._checked(parts))

    # What a type gives

    @classmethod
    def _shape_of(cls, *parts: Any) -> tuple[int, ...]:
        """The shape an array of these parts has, or a ValueError that says why they do not fit."""
        raise NotImplementedError(f"{cls.__name__} must implement _shape_of(cls, *parts).")

    def _dense(self) -> Any:
        """The rule: all entries as a dense array on the parts' place, from verbs on the parts."""
        return self._entries(*open_grid(self))

    def _entries(self, *coordinates: Any) -> Any:
        """The rule, entry by entry: integer arrays (or integers), one a dimension, which broadcast."""
        raise NotImplementedError(
            f"{generic_class(type(self)).__name__} must implement _dense(self) or _entries(self, i, j)."
        )

    def _transposed(self) -> Any:
        """The transpose of a matrix, as a structured one."""
        return NotImplemented

    def _conjugated(self) -> Any:
        """The complex conjugate: that of the parts, for entries that are sums of products of theirs."""
        return self._with_parts(tuple(verbs.conj(p) for p in self._parts))

    def _times(self, other: Any) -> Any:
        """self @ other, shapes checked; NotImplemented where there is no rule."""
        return NotImplemented

    def _rtimes(self, other: Any) -> Any:
        """other @ self, shapes checked; NotImplemented where there is no rule."""
        return NotImplemented

    def _stored(self) -> Any:
        """The dense form, for a view of an array without a rule, which says so (structured/fallback.py)."""
        return read_only_copy(self, made_dense(self))

    def _memory(self) -> set[int]:
        """Which arrays hold its entries: those at the bottom of its parts."""
        found = set()
        for part in self._parts:
            root = root_of(part)
            found |= root._memory() if isinstance(root, Structured) else {id(root)}
        return found

    def _shows(self, x: Any) -> bool:
        """Is all it stores memory of `x`?"""
        return self._memory() <= x._memory()

    def _in_memory(self) -> Any:
        """The dense form, for a library that needs all entries in memory."""
        return held_in_memory(self)

    def _index(self, index: tuple[Any, ...]) -> Any:
        """self[index] where that is structured, or another quick case; else NotImplemented."""
        return NotImplemented

    def _write(self, index: Any, value: Any) -> None:
        """self[index] = value, for what is stored (an index of None means all)."""
        raise TypeError(
            f"{type(self).__name__} is not written to: its entries depend on each other. Make a new "
            "array, `x = x * 2`, write to a part, `x.parts[0][...] = v`, or to a copy: `x = mb.HostArray(x)`."
        )

    def _diagonal(self, offset: int) -> Any:
        """The diagonal that is `offset` above the main one, as a vector."""
        if type(self)._entries is Structured._entries:
            return diagonal_view(self._stored(), offset)
        rows, columns = self._shape
        n = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
        at = indices(self.family, n)
        return self._entries(verbs.add(at, max(-offset, 0)), verbs.add(at, max(offset, 0)))

    def _shown_diagonal(self, offset: int) -> Any:
        """That, where NumPy has a view of it."""
        return read_only_copy(self, self._diagonal(offset))

    def _mapped(self, op: Any, operands: tuple[Any, ...]) -> Any:
        """An elementwise operation (`dispatch.ops.Op`) on `self` and others, where the type knows a way.

        All arrays among the operands have this shape, or stand for one value.
        """
        return NotImplemented

    def _restrict(self, x: Any) -> Any:
        """The parts an array `x` of this shape would have in this layout; NotImplemented if not known."""
        return NotImplemented

    def _pattern(self) -> np.ndarray | None:
        """Which entries are stored, where `structure` does not say it: for those who look at it."""
        return None

    def _facts(self) -> list[str]:
        """What a short text says beside the type and the parts."""
        return [f"shape={self._shape}"]

    @property
    def layout(self) -> Hashable:
        """What decides where each entry of the parts stands: equal for arrays whose parts match."""
        return None

    @property
    def structure(self) -> Structure:
        """Which entries may differ from zero."""
        return DENSE

    # Making one

    @classmethod
    def _checked(cls, parts: tuple[Any, ...]) -> tuple[Any, ...]:
        """The parts as arrays of one place, of the types the parameters name."""
        wanted = cls.parameters or (None,) * len(parts)
        if len(wanted) != len(parts):
            raise TypeError(f"{cls.__name__} has {len(wanted)} part(s), and {len(parts)} came.")
        parts = tuple(
            p if w is None or isinstance(p, w) else w(p) if issubclass(w, DenseArray) else p
            for p, w in zip(parts, wanted, strict=True)
        )
        join_families(generic_class(cls).__name__, parts)
        first = next((p for p in parts if isinstance(p, AbstractArray)), None)
        # Where no part is an array yet they go where `asarray` makes arrays, NumPy's too.
        out = tuple(asarray(p) if first is None else as_array(p, like=first) for p in parts)
        places = {verbs.place(p) for p in out}
        if len(places) > 1:
            raise PlaceError(
                f"The parts of one {generic_class(cls).__name__} live in one place; these are at "
                f"{', '.join(sorted(map(repr, places)))}. Move them: `mb.adapt(mb.HostArray, x)`."
            )
        return out

    @classmethod
    def _made(cls, *parts: Any) -> Any:
        return cls._of(parts, tuple(cls._shape_of(*parts)))

    @classmethod
    def _of(cls, parts: tuple[Any, ...], shape: tuple[int, ...], how: Any = None) -> Any:
        """An array of parts that are known to fit."""
        x = _new(generic_class(cls)[tuple(map(type, parts))])
        x._parts, x._shape, x._how = parts, shape, how
        return x

    def _with_parts(self, parts: tuple[Any, ...]) -> Any:
        """The same structure with other parts of the same shapes."""
        return generic_class(type(self))._of(parts, self._shape, self._how)

    def __reduce__(self) -> Any:
        return _remade, (generic_class(type(self)), self._parts, self._shape, self._how)

    # What follows

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        if shapereads.current is not None:
            return shapereads.current.shape(self._shape)  # type: ignore[no-any-return]
        return self._shape

    @property
    def parts(self) -> tuple[AbstractArray, ...]:
        """The arrays it stores."""
        return self._parts

    @property
    def family(self) -> type[DenseArray]:
        """The dense type at the bottom of the parts."""
        return leaf_family(type(self))

    @property
    def stored_bytes(self) -> int:
        """The bytes of the parts."""
        return sum(p.stored_bytes if isinstance(p, Structured) else p.nbytes for p in self._parts)

    def _cast(self, dtype: np.dtype) -> Any:
        """Another dtype: by the parts where that gives the same entries, else NotImplemented."""
        if self.entrywise or (dtype.kind in "fc" and _widens(self.dtype, dtype)):
            return self._with_parts(tuple(verbs.astype(p, dtype, copy=False) for p in self._parts))
        return NotImplemented

    # Parameters: the types of the parts. A wider type widens all of them by one step.

    @classmethod
    def _normalise(cls, parameters: tuple[Any, ...]) -> tuple[Any, ...]:
        if not all(isinstance(p, type) and issubclass(p, AbstractArray) for p in parameters):
            raise TypeError(
                f"{cls.__name__} takes the types of its parts, for instance {cls.__name__}[mb.HostArray]."
            )
        return parameters

    @classmethod
    def _widened(cls, parameters: Any) -> Iterator[tuple[Any, ...]]:
        wider = tuple(p.__mro__[1] if p.parameters else p for p in parameters)
        if wider != parameters and all(issubclass(p, AbstractArray) for p in wider):
            yield wider

    @classmethod
    def _class_attributes(cls, parameters: Any) -> dict[str, Any]:
        attributes: dict[str, Any] = {"parent_type": parameters[0]}
        dtypes = [getattr(p, "dtype", None) for p in parameters]
        if all(isinstance(d, np.dtype) for d in dtypes):
            attributes["dtype"] = np.result_type(*dtypes)
        if any(p.carries_derivatives for p in parameters):
            attributes["carries_derivatives"] = True
        return attributes


class Implicit(Structured):
    """A structured array of no stored parts. Its parameter is the dense type it stands for.

    >>> import mirabelle as mb
    >>> isinstance(mb.Zeros((1000, 1000)), mb.types.Implicit)
    True
    """

    __module__ = "mirabelle.ext"
    __slots__ = ()
    ndim: int

    @classmethod
    def _standing(cls, dense_type: Any, shape: tuple[int, ...], how: Any = None) -> Any:
        """An array that stands for a dense one of this type (HostArray[float64, 2], say)."""
        x = _new(generic_class(cls)[dense_type])
        x._parts, x._shape, x._how = (), shape, how
        return x

    def _with_parts(self, parts: tuple[Any, ...]) -> Any:
        return self

    def _typed(self, family: Any, dtype: np.dtype) -> Any:
        """The same for another place or dtype."""
        return self._standing(family[dtype, len(self._shape)], self._shape, self._how)

    def _cast(self, dtype: np.dtype) -> Any:
        return self._typed(self.family, dtype)

    def __reduce__(self) -> Any:
        cls = type(self)
        return _restood, (generic_class(cls), cls.parameters[0], self._shape, self._how)

    @classmethod
    def _class_attributes(cls, parameters: Any) -> dict[str, Any]:
        attributes = super()._class_attributes(parameters)
        if isinstance(getattr(parameters[0], "ndim", None), int):
            attributes["ndim"] = parameters[0].ndim
        return attributes


def _remade(cls: Any, parts: tuple[Any, ...], shape: tuple[int, ...], how: Any) -> Any:
    return cls._of(parts, shape, how)


def _restood(cls: Any, dense_type: Any, shape: tuple[int, ...], how: Any) -> Any:
    return cls._standing(dense_type, shape, how)


def _widens(source: np.dtype, target: np.dtype) -> bool:
    return source.kind != "c" or target.kind == "c"


# What rules are made of


def indices(family: Any, n: int) -> Any:
    """0 to n - 1 as an array of a place, made there."""
    view = routine_of(family, "arange")(n, dtype=np.int64)
    leaf = Leaf(view)
    if n:
        leaf.remember("bounds", (0, n - 1))
    return wrap(family, leaf)


# From so many on, numbers that are worked out where they are needed do better than memory that is read.
_MANY = 1 << 12


def counted(family: Any, n: int, shape: tuple[int, ...] | None = None) -> Any:
    """The same (in a shape), of which many take no memory: an element is known by where it lies."""
    places = family._places(n) if n >= _MANY else None
    if places is None:
        x = indices(family, n)
        return x if shape is None else verbs.reshape(x, shape)
    view, address = places
    if shape is not None:
        view = view.reshape(shape)
    sig = promotion.intern(TABLE["place"], (view.dtype, np.dtype(np.int64)), (np.dtype(np.int64),))
    memory = Leaf(view, table=True)
    memory.remember("unread", True)
    return wrap(family, Broadcasted(sig, (memory, address), view.shape))


def open_grid(x: Any) -> tuple[Any, ...]:
    """The coordinates of all entries of `x`, one array a dimension, which broadcast to its shape."""
    family, n = leaf_family(type(x)), len(x.shape)
    return tuple(
        verbs.reshape(indices(family, size), (1,) * d + (size,) + (1,) * (n - d - 1))
        for d, size in enumerate(x.shape)
    )


def zeros(family: Any, shape: Any, dtype: Any) -> Any:
    """A new dense array of zeros at a place."""
    return verbs.assign(wrap(family, Leaf(family._empty(shape, checked_dtype(dtype)))), 0)


def zeros_for(arrays: Any, shape: Any, dtype: Any) -> Any:
    """Zeros where the arrays are, that elements of all of them can be written into: dual numbers too."""
    duals = [x for p in arrays for x in duals_in(p)]
    if not duals:
        return zeros(family_of(*arrays), shape, dtype)
    like = functools.reduce(verbs.add, [verbs.similar(x, shape=(0,)) for x in duals])
    return verbs.assign(verbs.similar(like, dtype=checked_dtype(dtype), shape=shape), 0)


def duals_in(x: Any) -> list[Any]:
    """The arrays of dual numbers in an array: itself, or some of its parts."""
    if not getattr(x, "carries_derivatives", False):
        return []
    return [d for p in x._parts for d in duals_in(p)] if isinstance(x, Structured) else [x]


def family_of(*operands: Any) -> Any:
    """The dense type of the first array, or the default one."""
    return next((leaf_family(type(x)) for x in operands if isinstance(x, AbstractArray)), default_family())


def square(x: Any, what: str) -> int:
    """The order of a square matrix, or a ValueError."""
    if x.ndim != 2 or x.shape[0] != x.shape[1]:
        raise ValueError(f"{what} takes a square matrix; this one has shape {x.shape}.")
    return int(x.shape[0])
