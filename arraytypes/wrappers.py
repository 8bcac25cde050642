"""Wrappers: arrays that show the memory of a parent in another way.

Each gives one rule, `_show`: a strided view of the parent's memory → a strided view of what
the wrapper shows. Reading, fused kernels, writing through, printing and adapting follow.
Wrappers compose to any depth.

>>> import mirabelle as mb
>>> x = mb.HostArray([[1, 2, 3], [4, 5, 6]])
>>> y = x.T[::-1]
>>> type(y)
mirabelle.types.View[Transpose[HostArray[int64, 2]], 2]
>>> y[0] = 0
>>> print(x)
[[1 2 0]
 [4 5 0]]
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mirabelle.arraytypes import shapereads
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import DenseArray, as_shape, constructed, force, in_columns, no_shape, wrap
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.methods import TURNED
from mirabelle.arraytypes.parametric import generic_class
from mirabelle.arraytypes.proxies import is_of_numbers, of_numbers
from mirabelle.dispatch import native, verbs
from mirabelle.dispatch.generic import generic
from mirabelle.dispatch.schedule import operations, worth_storing
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.styles import Place
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced, broadcast_shapes

_new = object.__new__


@functools.partial(generic, arity=1)
def part_of_several(parent: Any, kind: Any, how: Any, shape: tuple[int, ...]) -> Any:
    """What a wrapper type shows of a type of several arrays: the same part of each."""


class Wrapper(AbstractArray):
    """An array that shows a parent. Parameters: the parent's type, then ndim where it differs.

    >>> import mirabelle as mb
    >>> isinstance(mb.zeros((2, 3)).T, mb.types.Wrapper)
    True
    """

    __module__ = "mirabelle.types"
    __slots__ = ("__weakref__", "_how", "_parent", "_shape")

    _parent: Any
    _how: Any
    _shape: tuple[int, ...]
    parent_type: Any = AbstractArray
    writable = True
    # Whether elementwise trees can be rewritten under the wrapper (each element shown is one
    # element of the parent, found by strides).
    affine = True
    _changes_ndim = False

    @classmethod
    def _normalise(cls, parameters: Any) -> tuple[Any, ...]:
        if not 1 <= len(parameters) <= 1 + cls._changes_ndim or not (
            isinstance(parameters[0], type) and issubclass(parameters[0], AbstractArray)
        ):
            raise TypeError(
                f"{cls.__name__} takes the type of its parent"
                f"{' and a number of dimensions' if cls._changes_ndim else ''}, for instance "
                f"{cls.__name__}[mb.HostArray]."
            )
        return parameters

    @classmethod
    def _widened(cls, parameters: Any) -> Iterator[tuple[Any, ...]]:
        if len(parameters) > 1:
            yield parameters[:1]
            return
        above = parameters[0].__mro__[1]
        if issubclass(above, AbstractArray) and parameters[0].parameters:
            yield (above,)

    @classmethod
    def _class_attributes(cls, parameters: Any) -> dict[str, Any]:
        attributes: dict[str, Any] = {"parent_type": parameters[0]}
        if hasattr(parameters[0], "dtype") and isinstance(parameters[0].dtype, np.dtype):
            attributes["dtype"] = parameters[0].dtype
        ndim = parameters[1] if len(parameters) > 1 else getattr(parameters[0], "ndim", None)
        if isinstance(ndim, int) and (len(parameters) > 1 or not cls._changes_ndim):
            attributes["ndim"] = ndim
        return attributes

    @classmethod
    def _of(cls, parent: Any, how: Any, shape: tuple[int, ...]) -> Any:
        if hasattr(parent, "_stored"):  # a structured array has no memory to show a part of
            parent = parent._stored()
        if hasattr(parent, "_of_several"):
            return part_of_several(parent, cls, how, shape)
        parameters = (type(parent), len(shape)) if cls._changes_ndim else type(parent)
        x = _new(cls[parameters])  # type: ignore[index]
        x._parent, x._how, x._shape = parent, how, shape
        return x

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        if shapereads.current is not None:
            return shapereads.current.shape(self._shape)  # type: ignore[no-any-return]
        return self._shape

    def _shared(self) -> Any:
        return self._parent._shared()

    def _show(self, view: Any) -> Any:
        """The rule: what `self` shows of a strided view of its parent."""
        raise NotImplementedError(f"{type(self).__name__} must implement _show.")

    def _with_parent(self, parent: Any) -> Any:
        """The same wrapper around another parent of the same shape."""
        return generic_class(type(self))._of(parent, self._how, self._shape)

    def __reduce__(self) -> Any:
        return _rewrap, (generic_class(type(self)), self._parent, self._how, self._shape)


def _rewrap(cls: Any, parent: Any, how: Any, shape: tuple[int, ...]) -> Any:
    return cls._of(parent, how, shape)


class PermutedDims(Wrapper):
    """The parent with its dimensions in another order.

    >>> import mirabelle as mb
    >>> type(mb.permute_dims(mb.zeros((2, 3, 4)), (2, 0, 1))).__name__
    'PermutedDims[HostArray[float64, 3]]'
    """

    __module__ = "mirabelle.types"
    __slots__ = ()

    def _show(self, view: Any) -> Any:
        return view.transpose(self._how)


class Transpose(PermutedDims):
    """The transpose of a matrix.

    >>> import mirabelle as mb
    >>> x = mb.zeros((2, 3))
    >>> isinstance(x.T, mb.types.Transpose), x.T.shape
    (True, (3, 2))
    """

    __module__ = "mirabelle.types"
    __slots__ = ()


class View(Wrapper):
    """A rectangular part of the parent: integers, slices of any step, new axes.

    >>> import mirabelle as mb
    >>> x = mb.HostArray([1.0, 2.0, 3.0])
    >>> type(x[1:]).__name__
    'View[HostArray[float64, 1], 1]'
    """

    __module__ = "mirabelle.types"
    __slots__ = ()
    _changes_ndim = True

    def _show(self, view: Any) -> Any:
        return view[self._how]


class ViewTypes(dict[int, Any]):
    """The types of views of an array type, by their dimensions."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __missing__(self, ndim: int) -> Any:
        view_type: Any = View
        self[ndim] = made = view_type[self.array, ndim]
        return made


class Reshaped(Wrapper):
    """The parent's elements in another shape, where strides can say it.

    >>> import mirabelle as mb
    >>> type(mb.reshape(mb.zeros((2, 3))[:, :2], (2, 2, 1))).__name__
    'Reshaped[View[HostArray[float64, 2], 2], 3]'
    """

    __module__ = "mirabelle.types"
    __slots__ = ()
    _changes_ndim = True
    affine = False

    def _show(self, view: Any) -> Any:
        return view.reshape(self._shape, copy=False)

    def _with_parent(self, parent: Any) -> Any:
        # Another parent may lie in memory in another order, of which no strides say this shape: then a copy.
        return verbs.reshape(parent, self._shape)


class BroadcastTo(Wrapper):
    """The parent stretched to a larger shape. Several elements share memory: not writable.

    >>> import mirabelle as mb
    >>> type(mb.broadcast_to(mb.HostArray([1.0]), (3,))).__name__
    'BroadcastTo[HostArray[float64, 1], 1]'
    """

    __module__ = "mirabelle.types"
    __slots__ = ()
    _changes_ndim = True
    writable = False

    def _show(self, view: Any) -> Any:
        if isinstance(view, np.ndarray):
            return np.broadcast_to(view, self._shape)
        return view.broadcast_to(self._shape)


_SHOWN_BY_RULE = frozenset((PermutedDims, Transpose, View, Reshaped, BroadcastTo))


def shown_by_rule(t: Any) -> bool:
    """Does `_show` say all of what an array of this type shows: are its wrappers all of this module?"""
    while issubclass(t, Wrapper):
        if generic_class(t) not in _SHOWN_BY_RULE:
            return False
        t = t.parent_type
    return True


# What is at the bottom


@verbs.parent.method
def _(x: Wrapper) -> Any:
    return x._parent


@verbs.place.method
def _(x: Wrapper) -> Place:
    return verbs.place(x._parent)


@verbs.lower.method
def _(x: Wrapper, leaf: Any) -> Any:
    return x._show(verbs.lower(x._parent, leaf))


def root_of(x: Any) -> Any:
    """The array at the bottom of all wrappers."""
    while isinstance(x, Wrapper):
        x = x._parent
    return x


def lie_alone(x: Any) -> bool:
    """Let what `x` shows lie as in NumPy, where an operation's result has memory of its own, without gaps.

    A value that was computed where it is written to (`v = -u; z[1:-1] = v`) lies there, with other strides,
    until somebody could tell. False: nothing was to be done.
    """
    root = root_of(x)
    leaf = verbs.leaf_of(root) if isinstance(root, DenseArray) else None
    if leaf is None or leaf.root is None or leaf.view.flags.c_contiguous:
        return False
    fresh = Leaf(root.family._alike(leaf.view, order="F" if in_columns(leaf.view) else "C"))
    if fresh.view.strides == leaf.view.strides:
        return False
    root.family._copy_into(fresh.view, leaf.view)
    root._node = fresh
    return True


def shown_leaf(x: Any, leaf: Leaf) -> Leaf:
    """The leaf of what wrapper `x` shows of the leaf of its innermost parent."""
    return Leaf(verbs.lower(x, leaf), leaf.foreign, root=leaf)


@verbs.leaf_of.method
def _(x: Wrapper) -> Leaf:
    return shown_leaf(x, verbs.leaf_of(root_of(x)))


@verbs.materialize.method
def _(x: Wrapper) -> Any:
    verbs.materialize(root_of(x))
    return x


@verbs.tree.method
def _(x: Wrapper) -> Any:
    return verbs.capture(x)


# What `capture` gives for a wrapper of this module: quicker for one around evaluated memory.
shown_part: Callable[[Any], Any] = native.in_c.shown_part
native.tell(
    dense=DenseArray,
    wrapper=Wrapper,
    view=View,
    permuted=PermutedDims,
    reshaped=Reshaped,
    capture=verbs.capture,
    view_parent=Wrapper.__dict__["_parent"],
    view_how=Wrapper.__dict__["_how"],
    view_shape=Wrapper.__dict__["_shape"],
)


@verbs.capture.method
def _(x: Wrapper) -> Any:
    root = root_of(x)
    version = verbs.capture(root)
    if type(version) is Broadcasted and _rewritable(x, version):
        version.evaluations += 1
        return _rewritten(x, version)
    return shown_leaf(x, verbs.leaf_of(root))


# Of a tree of more operations than this no part is computed by itself: what a loop makes of parts of the value
# before (`d = minimum(d, d[:, k:k + 1] + d[k:k + 1])`) would grow by a part at each turn.
PUSHED = 8


def _rewritable(x: Any, version: Broadcasted) -> bool:
    """Push the wrapper down to the leaves, instead of evaluating what it wraps?"""
    # On the host few elements are computed in less time than it takes to tell which are wanted. Of more,
    # several operations are computed once, if over half of what they give is wanted: other parts may be, too.
    if leaf_family(type(x))._brief_trees < 0:
        elements = math.prod(version.shape)
        if 1 < elements <= settings.brief_size or (version.size > 1 and 2 * x.size > elements):
            return False
    if worth_storing(version) or version.sig.op.nout > 1:
        return False
    if len(operations(version)) > PUSHED:
        return False
    while isinstance(x, Wrapper):
        if not x.affine:
            return False
        x = x._parent
    return True


def _rewritten(x: Any, version: Broadcasted) -> Any:
    """The tree of what `x` shows: the same operations on what it shows of the leaves."""
    return _rewrite(version, x, leaf_family(type(x)), version.shape, {})


def _rewrite(node: Any, x: Any, family: Any, full: tuple[int, ...], made: dict[int, Any]) -> Any:
    if type(node) is not Broadcasted and type(node) is not Leaf and type(node) is not Reduced:
        return node  # a scalar
    out = made.get(id(node))
    if out is not None:
        return out
    key = id(node)
    if type(node) is Reduced or (type(node) is Broadcasted and node.value is not None):
        node = force(family, node)
    if type(node) is Leaf:
        view = node.view
        if node.shape != full:
            view = BroadcastTo._of(wrap(family, node), None, full)._show(view)
        out = Leaf(through(x, view), node.foreign, root=node, table=node.table)
    else:
        args = tuple(_rewrite(a, x, family, full, made) for a in node.args or ())
        out = Broadcasted(node.sig, args, x.shape)
    made[key] = out
    return out


def through(x: Any, view: Any) -> Any:
    """What the chain of wrappers `x` shows of a view of its innermost parent."""
    return x._show(through(x._parent, view)) if isinstance(x, Wrapper) else view


@verbs.fetch.method
def _(x: Wrapper) -> np.ndarray:
    family = leaf_family(type(x))
    return family._download(verbs.leaf_of(x).view)


@verbs.numpy_view.method
def _(x: Wrapper, dtype: Any = None, copy: Any = None) -> np.ndarray:
    from mirabelle.arraytypes.host import HostArray, exported

    family = leaf_family(type(x))
    if family is not HostArray:
        if family.home.kind == "traced":  # whose values are computed where they are asked for
            return verbs.numpy_view(verbs.copy(x), dtype, copy)  # type: ignore[no-any-return]
        return verbs.numpy_view(root_of(x), dtype, copy)  # refuses, with the cure
    shared = x._shared() is not None  # (before a part of the memory is held)
    leaf = verbs.leaf_of(x)
    return exported(leaf.view, shared and leaf.foreign and x.writable, dtype, copy)


@verbs.similar.method
def _(x: Wrapper, dtype: Any = None, shape: Any = None) -> Any:
    return verbs.similar(
        root_of(x), dtype=x.dtype if dtype is None else dtype, shape=x.shape if shape is None else shape
    )


# Making them: smart constructors do the algebra


@verbs.permute_dims.method
def _(x: AbstractArray, axes: Any) -> Any:
    if axes is TURNED:
        turned = _transposes.get(type(x))
        if turned is not None:
            y: Any = _new(turned)
            y._parent, y._how, y._shape = x, axes, x.shape[::-1]
            return y
    given = tuple(axes)
    n = x.ndim
    order = _order(given, n, tuple(map(type, given)))
    if isinstance(x, PermutedDims):  # a permutation of a permutation is one
        return verbs.permute_dims(x._parent, tuple(x._how[a] for a in order))
    if isinstance(x, View) and isinstance(x._parent, PermutedDims) and order != tuple(range(n)):
        swapped = _past(x._parent, x._how)
        if swapped is not None:
            part = view_of(x._parent._parent, swapped[0])
            return verbs.permute_dims(part, tuple(swapped[1][a] for a in order))
    if order == tuple(range(n)):
        return x
    shape = x.shape
    cls = Transpose if n == 2 else PermutedDims
    made: Any = cls._of(x, order, tuple([shape[a] for a in order]))
    if axes is TURNED and _plainly_turned(type(x)) and generic_class(type(made)) is Transpose:
        _transposes[type(x)] = type(made)
    return made


# Matrices whose transposes are of these types and no others, whatever they hold.
_transposes: dict[type, type] = {}


def _plainly_turned(t: Any) -> bool:
    dense = t.parent_type if issubclass(t, View) else t
    return issubclass(dense, DenseArray) and not hasattr(dense, "_stored") and not hasattr(dense, "_of_several")


@functools.lru_cache(maxsize=1 << 10)
def _order(given: tuple[int, ...], n: int, kinds: Any) -> tuple[int, ...]:
    """Axes counted from the first, checked. (`kinds` tells 1 from 1.0.)"""
    order = tuple(a + n if a < 0 else a for a in given)
    if sorted(order) != list(range(n)):
        raise ValueError(
            f"axes {given} do not match an array of {n} dimension(s): name each of 0 to {n - 1} once."
        )
    return order


@verbs.broadcast_to.method
def _(x: AbstractArray, shape: Any) -> Any:
    shape = as_shape(shape)
    if broadcast_shapes([x.shape, shape], "broadcast_to") != shape:
        raise ValueError(f"shape {x.shape} cannot be stretched to {shape}: a dimension can only grow from 1.")
    return x if shape == x.shape else BroadcastTo._of(x, None, shape)


def no_room(x: AbstractArray, shape: tuple[int, ...]) -> Exception:
    """What to raise where a shape is not of as many elements as an array has."""
    return ValueError(
        f"cannot reshape array of size {x.size} into shape {shape}: both have as many elements. One size may "
        "be left open, `x.reshape(-1, n)`; `mb.resize(x, shape)` repeats or drops elements."
    )


def to_be_shown(x: Any) -> Any:
    """What a view is made of: of a number, whose memory nobody sees, a copy (the first write parts them)."""
    if isinstance(x, DenseArray) and not x.ndim and x._is_number():
        return constructed(wrap(x.family, x._node))
    return x


@verbs.reshape.method
def _(x: AbstractArray, shape: Any, copy: Any = None) -> Any:
    if copy:
        return verbs.reshape(verbs.copy(x), shape)
    try:
        shape = tuple(map(operator.index, (shape,) if isinstance(shape, (int, np.integer)) else shape))
    except TypeError as e:
        raise no_shape(shape, e) from None
    size, least = x.size, min(shape, default=0)
    if least < -1 or (least < 0 and shape.count(-1) > 1):
        raise ValueError(f"A shape may leave one dimension open (-1), not several: {shape}.")
    if least < 0:
        known = -math.prod(shape)
        if known == 0 or size % known:
            raise no_room(x, shape)
        shape = tuple([size // known if n == -1 else n for n in shape])
    if math.prod(shape) != size:
        raise no_room(x, shape)
    if shape == x.shape:
        return x
    if isinstance(x, Reshaped):
        return verbs.reshape(x._parent, shape)
    x = to_be_shown(x)
    try:
        made = Reshaped._of(x, None, shape)
        view = getattr(getattr(x, "_node", None), "view", None)
        if type(view) is not np.ndarray or not view.flags.c_contiguous:  # (what lies in rows is in any shape)
            made._show(verbs.leaf_of(x).view)
        return made
    except ValueError:  # strides cannot say it: a copy, as NumPy makes one
        if lie_alone(x):
            return verbs.reshape(x, shape)
        if copy is False:
            raise ValueError(
                f"An array of shape {x.shape} with these strides cannot be shown in shape {shape} without a "
                "copy. Leave copy=False away."
            ) from None
        family = leaf_family(type(x))
        if family._reshaped is not None:
            return family._reshaped(x, shape)
        return Reshaped._of(verbs.copy(x), None, shape)


# Parts


def indexed_shape(shape: tuple[int, ...], index: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape of x[index], or NumPy's IndexError: found on an array of no memory."""
    try:
        return np.ndarray(shape, np.int8, _NOTHING, 0, (0,) * len(shape))[index].shape
    except (OverflowError, IndexError):
        for i in index:
            if isinstance(i, (int, np.integer)) and not -(1 << 63) <= i < 1 << 63:
                raise IndexError(f"index {i} is out of bounds for every array") from None
        raise
    except TypeError as e:  # (a slice of real numbers)
        raise TypeError(f"{e}: the first half is `x[: n // 2]`, up to a real number `x[: int(r)]`.") from None


_NOTHING = bytes(1)


def view_of(x: Any, index: tuple[Any, ...]) -> Any:
    """The view x[index] shows, without the copy an element read is."""
    if not is_of_numbers(index):
        index = of_numbers(index)  # (as they are now: an array may change)
    # With an ellipsis NumPy gives a view even of one element.
    for i in index:
        if i is Ellipsis:
            break
    else:
        index = (*index, Ellipsis)
    shape = indexed_shape(x.shape, index)
    if isinstance(x, View):  # a part of a part is one
        once = _composed(x._parent.shape, x._how, index)
        if once is not None:
            x, index = x._parent, once
    if isinstance(x, PermutedDims) and isinstance(x._parent, View):
        swapped = _past(x, index)
        if swapped is not None:
            return verbs.permute_dims(view_of(x._parent, swapped[0]), swapped[1])
    return View._of(x, index, shape)


# Parts of parts, and of permuted ones: chains of them are written as one part, permuted. (Types would
# grow with every `x = x[1:]` or `x = x.T[::-1]` of a loop.)

_Places = list[tuple[int | None, range]]


def _places(dims: _Places, index: tuple[Any, ...], fixed: dict[int | None, int]) -> _Places:
    """What each dimension of a part shows: a dimension of the array and places along it, or a new one.

    `dims` says so of the array that `index` is for; `fixed` receives the dimensions of which one place
    is left.
    """
    found: _Places = []
    consumed = sum(i is not None and i is not Ellipsis for i in index)
    for i in index:
        if i is None:
            found.append((None, range(1)))
        elif i is Ellipsis:
            n = len(dims) - consumed
            found += dims[:n]
            dims = dims[n:]
        else:
            (d, places), dims = dims[0], dims[1:]
            consumed -= 1
            if isinstance(i, slice):
                found.append((d, places[i]))
            else:
                fixed[d] = places[i]
    return found


def _slice(places: range) -> slice:
    if not places:
        return slice(0, 0)
    return slice(places.start, places.stop if places.stop >= 0 else None, places.step)


def _sayable(dims: _Places) -> bool:
    """Can one index say it? (A new dimension has one element.)"""
    return all(d is not None or len(places) == 1 for d, places in dims)


def _composed(shape: tuple[int, ...], first: tuple[Any, ...], second: tuple[Any, ...]) -> Any:
    """The index that gives x[first][second] of an array at once; None if none does."""
    if first[-1] is Ellipsis is second[-1]:
        once = _composed_simply(shape, first, second)
        if once is not None:
            return once
    fixed: dict[int | None, int] = {}
    dims = _places([(d, range(n)) for d, n in enumerate(shape)], first, fixed)
    dims = _places(dims, second, fixed)
    if not _sayable(dims):
        return None
    made: list[Any] = []
    at = 0
    for d, places in dims:
        if d is None:
            made.append(None)
            continue
        made += [fixed[k] for k in range(at, d)]
        made.append(_slice(places))
        at = d + 1
    return (*made, *[fixed[k] for k in range(at, len(shape))], Ellipsis)


def _composed_simply(shape: tuple[int, ...], first: tuple[Any, ...], second: tuple[Any, ...]) -> Any:
    """The same of numbers and slices with an ellipsis behind them, as nearly all are; None for others."""
    made: list[Any] = []
    given, further = len(first) - 1, len(second) - 1
    k = 0
    for d, n in enumerate(shape):
        i = first[d] if d < given else _ALL
        kind = type(i)
        if kind is int:
            made.append(i)
            continue
        if kind is not slice:
            return None
        if k < further:
            j = second[k]
            kind = type(j)
            if kind is not slice and kind is not int:
                return None
            places = range(n)[i][j]
            i = places if kind is int else _slice(places)
            k += 1
        made.append(i)
    if k < further or given > len(shape):  # (a new dimension is among the rest)
        return None
    made.append(Ellipsis)
    return tuple(made)


_ALL = slice(None)


def _past(x: PermutedDims, index: tuple[Any, ...]) -> Any:
    """How x[index] is a part of the parent of `x`, permuted: that part's index, and the axes; or None."""
    fixed: dict[int | None, int] = {}
    dims = _places([(d, range(n)) for d, n in enumerate(x.shape)], index, fixed)
    if not _sayable(dims):
        return None
    new = sum(d is None for d, _ in dims)
    shown = dict(dims)
    made: list[Any] = [None] * new
    at: dict[int, int] = {}  # where a dimension of `x` is in the part of its parent
    for p in range(x.ndim):
        d = x._how.index(p)
        if d in fixed:
            made.append(fixed[d])
        else:
            at[d] = new + len(at)
            made.append(_slice(shown[d]))
    fresh = iter(range(new))
    return (*made, Ellipsis), tuple(next(fresh) if d is None else at[d] for d, _ in dims)
