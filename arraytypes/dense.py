"""Dense arrays: handles on versions of data that lives in one place.

A backend's array type is a subclass that says where its memory is and how to allocate, fill
and read it; everything else follows. The memory is known through *views*: objects with
`shape`, `strides`, `dtype`, basic indexing and `transpose`, as NumPy's arrays have.
"""

from __future__ import annotations

import contextvars
import dataclasses
import itertools
import math
import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.parametric import ArrayMeta, D, OfDtype, checked_dtype, generic_class
from mirabelle.dispatch import _native, counters, native, policy, verbs
from mirabelle.dispatch.generic import by_type
from mirabelle.dispatch.misuse import no_array
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.styles import Place
from mirabelle.dispatch.tree import (
    Broadcasted,
    Leaf,
    Reduced,
    Version,
    adopted,
    destination,
    evaluating,
    is_element,
)

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import ArrayLike, DTypeLike
    from mirabelle.arraytypes.kepttypes import KeptTypes
else:
    KeptTypes = AbstractArray

_new = object.__new__


class DenseArray(OfDtype[D], KeptTypes, _native.Handle):
    """An array whose elements all lie in the memory of one place.

    Constructing one copies: afterwards nobody else can write to its memory.

    >>> import mirabelle as mb
    >>> isinstance(mb.RefArray([1.0]), mb.types.DenseArray)
    True
    >>> isinstance(mb.Diagonal([1.0]), mb.types.DenseArray)
    False
    """

    __module__ = "mirabelle.types"
    __slots__ = ("__weakref__", "_constructed", "_copy_of")

    _node: Version
    # Set, of an array without axes, where a constructor made it (`constructed`).
    _constructed: bool
    # Set where it is a copy of what NumPy would show as a view, which nobody may write to: the name of the
    # type of that array (`read_only_copy`). Or what follows each write to it (see numberedparts.py).
    _copy_of: Any
    # The type without parameters, and where its data is: set by each subclass.
    family: type[DenseArray]
    home: Place

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not cls.parameters and "home" in cls.__dict__:
            cls.family = cls

    def __new__(cls, data: ArrayLike, dtype: DTypeLike = None) -> Self:
        family = generic_class(cls)
        if not hasattr(family, "home"):
            raise TypeError(
                f"{cls.__name__} is abstract: no memory belongs to it. Make a mb.HostArray(data), or "
                "another type that stores its elements."
            )
        wanted = cls.parameters[0] if cls.parameters else None
        if dtype is not None:
            wanted = checked_dtype(dtype)
        if not isinstance(data, (AbstractArray, np.ndarray, list, tuple)):
            data = _taken(data)
        if isinstance(data, AbstractArray):
            x = verbs.dense(verbs.adapt(family, data))
            if wanted is not None and wanted != x.dtype:
                x = computed(verbs.astype(x, wanted))
            elif x is data or verbs.parent(x) is not x:  # it still shares memory, or wraps
                x = verbs.copy(x)
        else:
            x = wrap(family, Leaf(family._upload(as_numpy(data, wanted))))
        if len(cls.parameters) > 1 and x.ndim != cls.parameters[1]:
            raise ValueError(
                f"{cls.__name__} holds arrays of {cls.parameters[1]} dimension(s); the data has "
                f"{x.ndim}: shape {x.shape}. Reshape it, or write {family.__name__}(data)."
            )
        return x if x.ndim else constructed(x)

    # Parameters: dtype, then ndim.

    @classmethod
    def _normalise(cls, parameters: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(parameters) not in (1, 2):
            raise TypeError(f"{cls.__name__} takes a dtype and a number of dimensions.")
        if len(parameters) == 2 and (not isinstance(parameters[1], (int, np.integer)) or parameters[1] < 0):
            raise TypeError(
                f"{cls.__name__}[dtype, ndim] takes the number of dimensions, not {parameters[1]!r} "
                "(a type never carries sizes)."
            )
        return (checked_dtype(parameters[0]), *map(int, parameters[1:]))

    @classmethod
    def _widened(cls, parameters: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        if len(parameters) == 2:
            yield parameters[:1]

    @classmethod
    def _class_attributes(cls, parameters: tuple[Any, ...]) -> dict[str, Any]:
        return dict(zip(("dtype", "ndim"), parameters, strict=False))

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self._node.shape

    if not TYPE_CHECKING:  # (in C, at NumPy's cost)
        __len__ = _native.Handle.__len__
        size = _native.Handle.size

    def _is_number(self) -> bool:
        return not hasattr(self, "_constructed")

    def _shared(self) -> Any:
        node = self._node
        return node if node.foreign and not adopted(node) else None

    @property
    def evaluated(self) -> bool:
        """Is the value in memory already, or still a tree?"""
        return isinstance(self._node, Leaf) or self._node.value is not None

    def __reduce__(self) -> Any:
        return _rebuild, (generic_class(type(self)), verbs.fetch(self))

    # What a backend gives

    # Of up to how many elements are trees computed before they reach over more than two names? (Where looking
    # at a tree costs more than what it saves.) 0: of none; -1: as the settings say.
    _brief_trees = 0

    @classmethod
    def _upload(cls, data: np.ndarray) -> Any:
        """A view of new memory at this place with these contents."""
        raise NotImplementedError(f"{cls.__name__} must implement _upload.")

    @classmethod
    def _range(cls, numbers: range, dtype: np.dtype) -> Any:
        """A view of new memory with evenly spaced integers, where that is quicker than to send them."""
        return None

    @classmethod
    def _empty(cls, shape: tuple[int, ...], dtype: np.dtype, order: str = "C") -> Any:
        """A view of new memory at this place."""
        raise NotImplementedError(f"{cls.__name__} must implement _empty.")

    @classmethod
    def _places(cls, n: int) -> tuple[Any, int] | None:
        """A view of `n` bytes that nothing reads, so that they need be no memory, and the address that kernels
        have of the first; None where kernels do not ask where elements lie."""
        return None

    @classmethod
    def _alike(cls, view: Any, dtype: np.dtype | None = None, order: str = "C") -> Any:
        """A view of new memory of the shape of another, and divided as it is where memory is divided."""
        return cls._empty(view.shape, view.dtype if dtype is None else dtype, order)

    @classmethod
    def _download(cls, view: Any) -> np.ndarray:
        """The contents of a view as a NumPy array."""
        raise NotImplementedError(f"{cls.__name__} must implement _download.")

    @classmethod
    def _fetched(cls, source: Any, view: Any) -> Any:
        """A view of new memory at this place with the contents of a view of `source`'s, another family."""
        return cls._upload(source._download(view))

    @classmethod
    def _copy_into(cls, dest: Any, source: Any) -> None:
        """Copy between two views of this place, of equal shape and dtype."""
        raise NotImplementedError(f"{cls.__name__} must implement _copy_into.")

    @classmethod
    def _taken(cls, x: Any) -> Any:
        """An array of another family as one of this, where that needs no copy; else None."""
        return None

    @classmethod
    def _wrap_numpy(cls, x: np.ndarray) -> Leaf:
        """A NumPy operand as a leaf of this place."""
        return Leaf(cls._upload(x))

    @classmethod
    def _wrap_result(cls, x: np.ndarray) -> Leaf:
        """New memory of the host's, which nobody else can write to, as a leaf of this place."""
        leaf = cls._wrap_numpy(x)
        return Leaf(leaf.view) if leaf.foreign else leaf

    @classmethod
    def _of_result(cls, x: np.ndarray) -> Any:
        """New memory of the host's, which nobody else can write to, as an array of this family."""
        leaf = cls._wrap_result(x)
        if counters.active:
            counters.add(bytes_written=leaf.view.nbytes)
        return wrap(cls, leaf)

    # May a compiled program write to the memory of its arguments, where nobody else reads it?
    _runs_in_place = False

    @classmethod
    def _within(cls, index: Any, axis: int, n: int) -> Any:
        """An index array whose bounds are checked later; None where they are checked now."""
        return None

    # A copy in another shape, where a contiguous copy in C's order cannot be shown in every shape.
    _reshaped: Any = None

    @classmethod
    def _standing(cls, view: Any) -> Any:
        """What shows all of memory in another shape, as memory that an array may have for its own."""
        return view

    @classmethod
    def joins(cls, other: type[AbstractArray]) -> bool:
        """May an array of another family (None: NumPy's) come to this one's place unasked?"""
        return False


def _taken(data: Any) -> Any:
    """`data`; if it is another library's array on a card, as one of ours over the same memory."""
    from mirabelle.arraytypes import gpu_interop  # which stands on this module

    return gpu_interop.shared(data) if gpu_interop.on_card(data) else data


def _rebuild(family: type[DenseArray], data: np.ndarray) -> Any:
    return wrap(family, Leaf(family._upload(data)))


def wrap(family: type[DenseArray], version: Version) -> Any:
    """A handle on a version."""
    x = _new(_handle_class(family, version.dtype, len(version.shape)))
    x._node = version
    return x


def constructed(x: Any) -> Any:
    """The same array; without axes it is marked as one that augmented assignment writes to."""
    if not x.ndim and isinstance(x, DenseArray):
        x._constructed = True
    return x


def constructed_as(x: Any, source: Any) -> Any:
    """A copy of `source`, which is a number or an array as that is."""
    return x if x.ndim or x is source or source._is_number() else constructed(x)


_handle_classes: dict[tuple[Any, ...], Any] = {}


def _handle_class(family: Any, dtype: np.dtype, ndim: int) -> Any:
    key = (family, dtype, ndim)
    cls = _handle_classes.get(key)
    if cls is None:
        cls = _handle_classes[key] = family[dtype, ndim]
    return cls


def as_numpy(data: Any, dtype: np.dtype | None) -> np.ndarray:
    """User data as a NumPy array of a dtype we hold, or an error that names the trouble."""
    try:
        # With the dtype, so that numbers it cannot hold are refused, as NumPy does.
        x = np.asarray(data) if isinstance(data, np.ndarray) else np.asarray(data, dtype)
    except OverflowError as e:
        if dtype is None or dtype.kind not in "iu":
            raise
        raise OverflowError(
            f"A number does not fit {dtype.name}: {str(e).rstrip('. ')}. Give a dtype that holds it, such as "
            "`dtype=mb.float64`."
        ) from None
    except TypeError as e:
        if dtype is None or "argument must be" not in str(e):
            raise
        raise TypeError(
            f"{type(data).__name__} is not something an array of {dtype.name} can be made of. Give numbers, or "
            "nested lists of numbers."
        ) from e
    except ValueError as e:
        if "inhomogeneous" not in str(e):
            raise
        raise ValueError(
            f"This data does not form an array: {str(e).rstrip('. ')}. All rows must have the same length."
        ) from None
    if x.dtype.kind not in "biufc":
        large = _large_integer(x) if x.dtype.kind == "O" and dtype is None else None
        if large is not None:
            # (Of a very long one only how many bits it has.)
            shown = str(large) if abs(large) < 10**40 else f"of {large.bit_length()} bits"
            raise TypeError(
                f"The integer {shown} does not fit any integer dtype: they hold -2**63 to "
                "2**64 - 1. Make it a floating number, `float(n)`, or give the dtype, `dtype=mb.float64`."
            )
        if x.dtype.kind == "O" and dtype is None and not isinstance(data, (list, tuple, np.ndarray)):
            cure = (
                no_array(type(data)) or "Give numbers, nested lists of numbers, or what np.asarray understands."
            )
            raise TypeError(f"{type(data).__name__} is not something an array can be made of. {cure}")
        if dtype is None or x.dtype.kind not in "OSU":
            checked_dtype(x.dtype)
    return x.astype(dtype if dtype is not None else checked_dtype(x.dtype), copy=False)


def _large_integer(x: np.ndarray) -> int | None:
    """The first integer among objects that no dtype holds, where all are numbers."""
    found = None
    for value in x.flat:
        if not isinstance(value, (int, float, complex, np.number, np.bool_)):
            return None
        if found is None and type(value) is int and not -(2**63) <= value < 2**64:
            found = value
    return found


# Evaluation

# Trees up to this size may go the quicker way of their backend, if their results are small.
DIRECT_TREE = native.DIRECT_TREE


def force(family: type[DenseArray], version: Any) -> Leaf:
    """The value of a version, computed if it is not yet."""
    if type(version) is Leaf:
        return version
    return version.value or evaluating(_compute[family], family, version)  # type: ignore[no-any-return]


@by_type
def compute(family: Any, version: Any) -> Any:
    """The value of a tree or a reduction that has none yet, as a leaf that the version holds from now on."""


_compute = compute.core.table  # (without the call of a function for each value)


@compute.method
def compute_by_copyto(family: type[DenseArray], version: Any) -> Leaf:
    """The value as `copyto` writes it to new memory."""
    dest = destination(family._empty(version.shape, version.dtype, memory_order(version)))
    verbs.copyto(wrap(family, dest), version)
    dest.checked = False
    return settle(version, dest)


def force_temporary(family: type[DenseArray], version: Any) -> Leaf:
    """As `force`, for a value nobody asked for by name (a hoisted subtree)."""
    if counters.active and type(version) is not Leaf and version.value is None:
        counters.add(temporaries=1)
    return force(family, version)


def settle(version: Broadcasted | Reduced, value: Leaf) -> Leaf:
    """Give a node its value and let go of what it was computed from."""
    version.value = value
    if type(version) is Broadcasted:
        if not version.shape and is_element(version):
            value.element = True
        version.args = None
        version.size = 0
    else:
        version.operand = None  # type: ignore[union-attr]
    return value


def memory_order(version: Any) -> str:
    """The memory order of a result: that of the first operand of its shape."""
    ndim = len(version.shape)
    if ndim < 2:
        return "C"
    x = version
    for _ in range(64):
        if type(x) is Broadcasted and x.value is None and x.args:
            arrays = [a for a in x.args if isinstance(a, (Leaf, Broadcasted)) and a.shape == x.shape]
            if not arrays:
                return "C"
            x = arrays[0]
        else:
            break
    leaf = x if type(x) is Leaf else getattr(x, "value", None)
    if leaf is None or leaf.shape != version.shape:
        return "C"
    return "F" if in_columns(leaf.view) else "C"


def in_columns(view: Any) -> bool:
    """Does each index of a view run faster than the one behind it? (Not where rows run as well.)"""
    strides = [s for s, n in zip(view.strides, view.shape, strict=True) if n > 1]
    return len(strides) > 1 and strides[0] > 0 and all(a < b for a, b in itertools.pairwise(strides))


# Moving and filling pay for several threads from so many times the elements that computing does.
MOVED = native.MOVED


def is_small(shape: tuple[int, ...], operations: int) -> bool:
    """Is a tree computed sooner than a kernel for it is set up?"""
    n = shape[0] if len(shape) == 1 else math.prod(shape)
    small = settings.small_size
    return n <= small or n * operations <= 32 * small


def evaluated(x: DenseArray) -> Leaf:
    """The leaf of an array, computed if it is not yet."""
    node = x._node
    if type(node) is Leaf:
        return node
    if node.value is None:
        leaf = force(x.family, node)
        if x._node is node:
            x._node = leaf
        return leaf
    return keep_value(x, node)


def keep_value(x: Any, node: Any) -> Leaf:
    """The value of the version that an array had, and has from now on unless a thread has written to it."""
    leaf: Leaf = node.value
    if x._node is node:  # (nothing is called in between)
        x._node = leaf
    return leaf


verbs.leaf_of.method(evaluated)
native.tell(
    evaluated=evaluated,
    constructed=DenseArray.__dict__["_constructed"],
    copy_of=DenseArray.__dict__["_copy_of"],
)


@verbs.materialize.method
def _(x: DenseArray) -> Any:
    if type(x._node) is not Leaf:
        evaluated(x)
    return x


@verbs.materialize.method
def _(x: Broadcasted | Reduced) -> Any:
    family = family_of_version(x)
    return wrap(family, force(family, x))


def computed(x: Any) -> Any:
    """`x`, evaluated if it is not yet: for library functions, which read a value several times.

    (`mb.materialize` is its user's: in a program it is a barrier between kernels, and this is none.)
    """
    if not policy.is_eager():
        return verbs.materialize(x)
    if isinstance(x, DenseArray):
        evaluated(x)
    return x


def family_of_version(version: Any) -> Any:
    """The array type whose memory a tree reads."""
    stack = [version]
    while stack:
        x = stack.pop()
        if isinstance(x, Leaf):
            return VIEWS[type(x.view)]
        if isinstance(x, (Broadcasted, Reduced)):
            stack += [x.value] if x.value is not None else getattr(x, "args", None) or [x.operand]  # type: ignore[union-attr]
    return VIEWS[np.ndarray]


# What an array type's views are → the type: filled as types are defined.
VIEWS: dict[type, Any] = {}


@verbs.tree.method
def _(x: DenseArray) -> Any:
    node = x._node
    return node if type(node) is Leaf or node.value is None else node.value


@verbs.capture.method
def _(x: DenseArray) -> Any:
    node = x._node
    if type(node) is not Leaf and node.value is not None:
        node = keep_value(x, node)
    return node


@verbs.lower.method
def _(x: DenseArray, leaf: Any) -> Any:
    return leaf.view


@verbs.place.method
def _(x: DenseArray) -> Place:
    return type(x).home


@verbs.parent.method
def _(x: DenseArray) -> Any:
    return x


@verbs.similar.method
def _(x: DenseArray, dtype: Any = None, shape: Any = None) -> Any:
    family = type(x).family
    d = x.dtype if dtype is None else checked_dtype(dtype)
    return constructed(wrap(family, Leaf(family._empty(as_shape(x.shape if shape is None else shape), d))))


@verbs.fetch.method
def _(x: DenseArray) -> np.ndarray:
    return type(x).family._download(verbs.leaf_of(x).view)


@verbs.adapt.method
def _(to: ArrayMeta, x: AbstractArray) -> Any:
    family = _storing(to)
    moved = _adapt(family, x)
    if to.parameters and to.parameters[0] != moved.dtype:
        moved = verbs.astype(moved, to.parameters[0])
    if exchange.get() is not None:
        return constructed(moved)  # (an argument of a program, which goes by its type)
    return constructed_as(moved, x)


@verbs.adapt.method
def _(to: ArrayMeta, x: np.ndarray) -> Any:
    _storing(to)
    return to(x)  # type: ignore[call-arg]


@verbs.adapt.method
def _(to: ArrayMeta, x: tuple | list | dict) -> Any:
    if isinstance(x, dict):
        return {k: verbs.adapt(to, v) for k, v in x.items()}
    moved = [verbs.adapt(to, v) for v in x]
    return type(x)(*moved) if hasattr(x, "_fields") else type(x)(moved)


@verbs.adapt.method
def _(to: object, x: object) -> Any:
    raise TypeError("What data becomes stands first, and is an array type: `mb.adapt(mb.CuArray, x)`.")


@verbs.adapt.method
def _(to: ArrayMeta, x: object) -> Any:
    # What holds no arrays stays as it is; a dataclass is adapted field by field.
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return dataclasses.replace(
            x, **{f.name: verbs.adapt(to, getattr(x, f.name)) for f in dataclasses.fields(x) if f.init}
        )
    return x


def _storing(to: ArrayMeta) -> Any:
    family = generic_class(to)
    if not issubclass(family, DenseArray):
        raise TypeError(
            f"adapt moves data to a type that stores it, such as mb.HostArray; {to!r} wraps another "
            "array. Adapt the parent, then wrap it."
        )
    return family


def _adapt(family: Any, x: Any) -> Any:
    inner = verbs.parent(x)
    if inner is not x:
        return x._with_parent(_adapt(family, inner))
    exchanged = exchange.get()
    if exchanged is not None:
        other = exchanged(family, x)
        if other is not None:
            return other
    if type(x).family is family:
        return x
    taken = family._taken(x)
    if taken is not None:
        return taken
    view = verbs.leaf_of(x).view
    before = counters.transfers()
    made = family._fetched(type(x).family, view)
    if counters.active and counters.transfers() == before:  # (by way of the host it is counted there)
        counters.add(transfers=1)
    return wrap(family, Leaf(made))


# While a function is captured, what stands for an array: called with a family and an array that is to be one
# of it. (Arrays of several parts, and wrappers, are taken apart and put together by `adapt`.)
exchange: contextvars.ContextVar[Any] = contextvars.ContextVar("mirabelle_exchange", default=None)


def as_shape(shape: Any) -> tuple[int, ...]:
    """A shape given as an int or a sequence, checked."""
    if type(shape) is tuple:
        for n in shape:
            if type(n) is not int or n < 0:
                break
        else:
            return shape
    if type(shape) is int and shape >= 0:
        return (shape,)
    if isinstance(shape, (int, np.integer)):
        shape = (shape,)
    try:
        if isinstance(shape, (dict, set, frozenset, bytes)):
            raise TypeError("no order, or no numbers")
        out = tuple(int(n.__index__()) for n in shape)
    except (TypeError, AttributeError) as e:
        raise no_shape(shape, e) from None
    if any(n < 0 for n in out):
        raise ValueError(f"negative dimensions are not allowed: {out}")
    return out


def no_shape(shape: Any, error: Exception) -> Exception:
    """What to raise for a shape that is none, after an error; one that says more stays what it is."""
    if _is_trace_error(error):
        return error
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    wrong = next((n for n in sizes if not hasattr(n, "__index__")), shape)
    return TypeError(f"A shape is an integer or a tuple of integers, not {shape!r}. {_as_integer(wrong)}")


def as_size(n: Any, function: str, argument: str) -> int:
    """An integer that a function was given for one of its arguments, checked."""
    try:
        return operator.index(n)
    except TypeError as e:
        if _is_trace_error(e):
            raise
        raise TypeError(f"{function}: {argument} is an integer, not {n!r}. {_as_integer(n)}") from None


def _as_integer(n: Any) -> str:
    """How to make an integer of what was given for one."""
    if isinstance(n, (float, np.floating)):
        if not math.isfinite(n):
            return "Find where it comes from: `mb.isfinite(x)` says which elements are numbers."
        return f"Convert it: `int({float(n)!r})`, or `round({float(n)!r})`."
    return "Convert it with `int()`."


def _is_trace_error(error: Exception) -> bool:
    from mirabelle.arraytypes.programs.errors import TraceError

    return isinstance(error, TraceError)
