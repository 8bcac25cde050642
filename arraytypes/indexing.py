"""Indexing with masks, integer arrays and lists.

Reading is a *gather*: an elementwise operation on the indices, whose other operand is memory,
so that it fuses with what surrounds it. What the other dimensions of `x` are is said by strides,
as for any operand; the index arrays together say how many elements further on to read.
Writing is a *scatter*, a routine of the place's library on the evaluated value.

An index written as a list or a NumPy array is sent to the place, a counted transfer.

Bounds are checked where the index is written: the least and the largest entry of an index array
are found once, and kept with the version of its contents. So kernels need no test, on any place.

>>> import mirabelle as mb
>>> x = mb.HostArray([10.0, 20.0, 30.0])
>>> print(x[[2, 0, 2]] + 1)
[31. 11. 31.]
>>> x[x > 15] = 0.0
>>> print(x)
[10.  0.  0.]
>>> x[[5]]
Traceback (most recent call last):
    ...
IndexError: index 5 is out of bounds for axis 0 with size 3
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np

from mirabelle.arraytypes import library, recording
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import DenseArray, as_numpy, constructed, wrap
from mirabelle.arraytypes.elementwise import at_once, cast_to, copied, leaf_family, raise_places
from mirabelle.arraytypes.numberedparts import follow, followers, link
from mirabelle.arraytypes.wrappers import root_of, to_be_shown, view_of
from mirabelle.dispatch import policy, promotion, verbs
from mirabelle.dispatch.generic import by_type, generic
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.promotion import Sig
from mirabelle.dispatch.tree import Broadcasted, Leaf, broadcast_shapes

_INT64 = np.dtype(np.int64)
Basic = (int, np.integer, slice, type(None), type(Ellipsis))
_COMMON = frozenset((int, slice, type(None), type(Ellipsis)))


class Advanced:
    """An index with arrays in it, made ready for an array of one shape.

    `basic` is the basic index that comes first: full slices where arrays index, integers where
    there are integers. `arrays` holds, for each dimension of what remains, an index array or None.
    `front` tells whether the dimensions of the arrays come first in the result; else they stand
    where the arrays do. `distinct` says that no place is named twice, as far as that is known.
    """

    __slots__ = ("arrays", "basic", "distinct", "front")

    def __init__(self, basic: tuple[Any, ...], arrays: list[Any], front: bool, distinct: bool = False) -> None:
        self.basic = basic
        self.arrays = arrays
        self.front = front
        self.distinct = distinct

    @property
    def used(self) -> list[Any]:
        return [a for a in self.arrays if a is not None]


def is_advanced(index: tuple[Any, ...]) -> bool:
    """Does an index hold a mask, an array or a list?"""
    for i in index:
        if type(i) not in _COMMON and (not isinstance(i, Basic) or isinstance(i, (bool, np.bool_))):
            return True
    return False


def of_whole(x: Any, index: tuple[Any, ...]) -> tuple[Any, ...]:
    """An index in which positions in a process' part of a mesh are those in an array over processes."""
    if not getattr(leaf_family(type(x)), "communicates", False):
        return index
    return tuple(i.index_of(x) if hasattr(i, "index_of") else i for i in index)


def parsed(x: Any, index: tuple[Any, ...]) -> Advanced | tuple[Any, ...]:
    """An index sorted out: an `Advanced`, or a basic index where its arrays were single integers."""
    family = leaf_family(type(x))
    entries = [_entry(family, x, i) for i in index]
    if not any(isinstance(e, AbstractArray) for e in entries):
        return tuple(entries)
    consumed = sum(_consumes(e) for e in entries)
    if consumed > x.ndim:
        raise IndexError(
            f"too many indices for array: array is {x.ndim}-dimensional, but {consumed} were indexed"
        )
    if sum(e is Ellipsis for e in entries) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    front = _apart(entries)
    if not any(e is Ellipsis for e in entries):
        entries.append(Ellipsis)
    at = next(k for k, e in enumerate(entries) if e is Ellipsis)
    entries[at : at + 1] = [slice(None)] * (x.ndim - consumed)

    basic: list[Any] = []
    arrays: list[Any] = []
    advanced_at: list[int] = []
    bounded: list[tuple[int, int]] = []
    axis = 0
    for k, e in enumerate(entries):
        if isinstance(e, AbstractArray) and e.dtype.kind == "b":
            advanced_at.append(k)
            if not e.ndim:  # x[True]: a new dimension of one or no element
                basic.append(None)
                arrays.append(uploaded(family, np.zeros(int(bool(verbs.fetch(e))), np.int64)))
                continue
            check_mask(e, x.shape[axis : axis + e.ndim], axis)
            positions = positions_of(e)
            basic += [slice(None)] * e.ndim
            arrays += positions
            axis += e.ndim
        elif isinstance(e, AbstractArray):
            advanced_at.append(k)
            basic.append(slice(None))
            bounded.append((len(arrays), axis))
            arrays.append(e)
            axis += 1
        elif e is None:
            basic.append(None)
            arrays.append(None)
        elif isinstance(e, slice):
            basic.append(e)
            arrays.append(None)
            axis += 1
        else:
            advanced_at.append(k)  # beside arrays an integer counts as one
            basic.append(e)
            axis += 1
    if all(a is None or a.size for a in arrays):  # (else they name nothing together, wherever they point)
        for at, d in bounded:
            arrays[at] = within(arrays[at], d, x.shape[d])
    return Advanced(tuple(basic), arrays, front, len(advanced_at) == 1 and _names_once(entries[advanced_at[0]]))


def _apart(entries: list[Any]) -> bool:
    """Does anything stand between the arrays and integers of an index, be it a `...` for no dimension?"""
    at = [k for k, e in enumerate(entries) if not (e is None or e is Ellipsis or isinstance(e, slice))]
    return any(b - a != 1 for a, b in itertools.pairwise(at))


def _consumes(e: Any) -> int:
    if e is None or e is Ellipsis:
        return 0
    return e.ndim if isinstance(e, AbstractArray) and e.dtype.kind == "b" else 1


def _entry(family: Any, x: Any, i: Any) -> Any:
    """One entry of an index: a basic one, or an array of this place."""
    if isinstance(i, (bool, np.bool_)):
        return uploaded(family, np.asarray(i))
    if isinstance(i, Basic):
        return i
    if isinstance(i, float):
        raise IndexError(
            f"only integers, slices (`:`), ellipsis (`...`), None, masks and arrays of integers are valid "
            f"indices, not {i!r}. Convert it with int()."
        )
    if isinstance(i, AbstractArray):
        if i.dtype.kind not in "iub":
            raise IndexError(_not_integers(i.dtype))
        if i.ndim == 0 and i.dtype.kind in "iu" and i.place.rank < 2:
            return _position(i)
        if leaf_family(type(i)) is not family:
            if not policy.transfer_allowed() and not family.joins(leaf_family(type(i))):
                raise_places("indexing", (x, i))
            return verbs.adapt(family, i)
        return verbs.dense(i) if getattr(type(i), "spaced", False) else i
    if isinstance(i, (list, tuple)):
        from mirabelle.arraytypes.creation import asarray, holds_arrays_to_join  # (which stand on this module)

        if holds_arrays_to_join(i):
            return _entry(family, x, asarray(i))
    try:
        data = i if isinstance(i, np.ndarray) else as_numpy(i, None)
    except TypeError:
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None, masks and arrays of integers are valid "
            f"indices, not {type(i).__name__}."
        ) from None
    if data.dtype.kind == "f" and not data.size and not isinstance(i, np.ndarray):
        data = data.astype(np.int64)  # an empty list
    if data.dtype.kind not in "iub":
        raise IndexError(_not_integers(data.dtype))
    if data.ndim == 0 and data.dtype.kind in "iu":
        return _position(data)
    if isinstance(i, np.ndarray) and family.home.rank < 2:
        return wrap(family, family._wrap_numpy(data))
    return uploaded(family, data)


def _position(i: Any) -> int:
    n = int(i)
    if n >= 1 << 63:
        raise IndexError(f"index {n} is out of bounds for every array")
    return n


def _not_integers(dtype: np.dtype) -> str:
    return (
        f"arrays used as indices must be of integer (or boolean) type, and this one is {dtype.name}. "
        "Convert it: `index.astype(mb.int64)`."
    )


def uploaded(family: Any, data: np.ndarray) -> Any:
    """Indices written as a list, on the place they index (or what else says which elements: see
    `define.as_selection`); what they say is known without asking it."""
    leaf = Leaf(family._upload(data))
    if data.size and data.dtype.kind in "iu":
        leaf.remember("bounds", (int(data.min()), int(data.max())))
    return wrap(family, leaf)


def check_mask(mask: Any, shape: tuple[int, ...], axis: int) -> None:
    """Does a mask fit the axes from `axis` on, which are of that shape? Else an IndexError."""
    for d, (n, m) in enumerate(zip(shape, mask.shape, strict=True)):
        if m not in (n, 0):  # (an empty mask fits, and picks nothing)
            raise IndexError(
                "boolean index did not match indexed array along "
                f"axis {axis + d}; size of axis is {n} but size of corresponding boolean axis is {m}"
            )


def positions_of(mask: Any, flat: bool = False) -> tuple[Any, ...]:
    """Where a mask holds: an array of indices for each dimension, kept with its contents.

    `flat`: one array, of places among all elements in C's order.

    `x[x > 0] = f(x[x > 0])` asks the same of the same contents twice: the last answer is kept with those.
    """
    family = leaf_family(type(mask))
    # (A graph goes on asking, when it is replayed.)
    recorded = recording.active and recording.current() is not None
    key, operand = (None, None) if recorded else _question(mask)
    asked = valued_leaf(operand)
    if asked is not None:
        answer = asked.recalled("answer")
        if answer is not None and answer[0] == (key, flat):
            return tuple([wrap(family, verbs.leaf_of(p)) for p in answer[1]])
    leaf = verbs.leaf_of(mask)
    what = "places" if flat else "positions"
    known = leaf.recalled(what)
    if known is None:
        looked: Any = wrap(family, leaf)
        looked = _in_a_row(looked) if flat else looked
        # (Arrays are kept, and not their versions: who holds an array reads it.)
        known = tuple(library.call("nonzero", looked))
        for p, n in zip([verbs.leaf_of(p) for p in known], looked.shape, strict=True):
            p.remember("bounds", (0, n - 1))
            if len(known) == 1:
                p.remember("entries", (0, n - 1, True))
        leaf.remember(what, known)
    asked = valued_leaf(operand)
    if asked is not None:
        asked.remember("answer", ((key, flat), known))
    return tuple([wrap(family, verbs.leaf_of(p)) for p in known])


# The positions of larger masks are not kept with what the mask was made from: they would fill memory.
_SMALL_MASK = 1 << 20


def _question(mask: Any) -> tuple[Any, Any]:
    """What a pending mask asks of one array, such as x > 0, and that array; two times None for others."""
    node = mask._node if isinstance(mask, DenseArray) else None
    if type(node) is not Broadcasted or node.value is not None or mask.size > _SMALL_MASK:
        return None, None
    key: list[Any] = [node.sig.id]
    operand = None
    for i, a in enumerate(node.args or ()):
        if type(a) in (int, float, bool):
            key.append((type(a), a))
        elif operand is None and type(a) in (Leaf, Broadcasted) and a.shape == node.shape:
            if type(a) is Broadcasted and a.value is None and a.holders < 2:
                return None, None  # (its value is not kept: it must not look as if somebody held it)
            operand = a
            key.append(i)
        else:
            return None, None
    return tuple(key), operand


def valued_leaf(version: Any) -> Leaf | None:
    """The leaf that a version is, or has as its value."""
    found = version.value if type(version) is Broadcasted else version
    return found if type(found) is Leaf else None


def _names_once(index: Any) -> bool:
    """Is no place named twice, as far as that is known?"""
    if index.dtype.kind == "b":
        return True
    known = _entries(index)
    return known is not None and known[2] and known[0] >= 0


def _entries(index: Any) -> tuple[int, int, bool] | None:
    """Between which numbers the entries of an index array lie, and whether they differ, if that is known.

    What is picked from an array lies where its elements do, and differs where it is picked once.
    """
    node = index._node if isinstance(index, DenseArray) else None
    if type(node) is Broadcasted and node.value is not None:
        node = node.value
    if type(node) is Leaf:
        return node.recalled("entries")  # type: ignore[no-any-return]
    if type(node) is not Broadcasted or node.sig.op is not TABLE["gather"]:
        return None
    if node.args is None:
        return None
    base, offset = node.args
    root = base.root
    known = root.recalled("entries") if root is not None else None
    if root is None or known is None:
        return None
    low, high, distinct = known
    if distinct:
        places = valued_leaf(offset)
        picked = places.recalled("entries") if places is not None else None
        once = picked is not None and picked[2]
        distinct = once and len(root.shape) == 1 and root.root is None
    return low, high, distinct


def _evaluated(index: Any) -> Leaf:
    """The leaf of an array, which goes on to know what was known of its entries."""
    known = _entries(index) if index.dtype.kind in "iu" else None
    leaf = verbs.leaf_of(index)
    if known is not None and leaf.recalled("entries") is None:
        leaf.remember("entries", known)
    return leaf


def within(index: Any, axis: int, n: int) -> Any:
    """An index array whose entries lie in 0 to n - 1, or an IndexError."""
    if not index.size:
        return index
    known = _evaluated(index).recalled("entries")
    if known is not None and known[0] >= 0 and known[1] < n:
        return index
    later = leaf_family(type(index))._within(index, axis, n)
    if later is not None:
        return later
    low, high = bounds(index)
    if low < -n or high >= n:
        raise IndexError(f"index {low if low < -n else high} is out of bounds for axis {axis} with size {n}")
    if low < 0:
        return verbs.where(verbs.less(index, 0), verbs.add(cast_to(index, _INT64), n), index)
    return index


def lying_within(index: Any, n: int, distinct: bool = False) -> Any:
    """An index array whose entries are known to lie in 0 to n - 1: who takes elements by it need not look."""
    if n and isinstance(index, DenseArray) and index.place.kind != "traced":
        verbs.leaf_of(index).remember("entries", (0, n - 1, distinct))
    return index


def bounds(index: Any) -> tuple[int, int]:
    """The least and the largest entry: found once for each version of an array."""
    leaf = verbs.leaf_of(index)
    known = leaf.recalled("bounds")
    if known is None:
        known = library.call("bounds", index)
        leaf.remember("bounds", known)
        if leaf.recalled("entries") is None:
            leaf.remember("entries", (*known, False))
    return known  # type: ignore[no-any-return]


# Reading


@verbs.getitem.method
def _(x: AbstractArray, index: Any) -> Any:
    index = index if type(index) is tuple else (index,)
    if is_advanced(index):
        return read(x, of_whole(x, index))
    made = view_of(to_be_shown(x), index)
    if not made._shape and not any(i is None or i is Ellipsis for i in index):
        element = copied(made)  # its value now, as NumPy's scalars
        element._node.element = True
        return element
    return made


def common_shape(arrays: list[Any]) -> tuple[int, ...]:
    """The shape that the arrays of an index have together, or NumPy's IndexError."""
    try:
        return broadcast_shapes([a.shape for a in arrays] or [()], "indexing")
    except ValueError:
        shown = " ".join(str(a.shape).replace(" ", "") for a in arrays)
        raise IndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {shown}. They name "
            "single elements together, and so have one shape. To name whole rows and columns, write "
            "`x[mb.ix_(rows, columns)]`."
        ) from None


def gathered(x: Any, how: Advanced) -> Any:
    """x[index] as a pending node."""
    shown = verbs.getitem(x, how.basic) if any(b != slice(None) for b in how.basic) else x
    used = how.used
    shape = common_shape(used)
    plain = [n for n, a in zip(shown.shape, how.arrays, strict=True) if a is None]
    first = 0 if how.front else next(d for d, a in enumerate(how.arrays) if a is not None)
    result = (*plain[:first], *shape, *plain[first:])
    family = leaf_family(type(x))
    if not math.prod(result):
        return wrap(family, Leaf(family._empty(result, x.dtype)))
    leaf = _evaluated(shown)
    view, itemsize = leaf.view, leaf.dtype.itemsize
    if any(s % itemsize for s in view.strides):
        leaf = verbs.leaf_of(verbs.copy(shown))
        view = leaf.view
    if len(used) == len(view.shape) == 1 and len(shape) == 1 and view.strides[0] == itemsize:
        base = view[:1]  # (a vector by a vector: nothing is to be worked out)
        stretched = np.broadcast_to(base, result) if isinstance(base, np.ndarray) else base.broadcast_to(result)
        table = Leaf(stretched, leaf.foreign, root=leaf, table=True)
        return gather_node(family, table, cast_to(used[0], _INT64), result)
    where: list[Any] = []
    offset: Any = None
    for a, n, s in zip(how.arrays, view.shape, view.strides, strict=True):
        if a is None:
            where.append(slice(None))
            continue
        step = s // itemsize
        where.append(0 if step >= 0 else n - 1)
        a = a if step == 1 else cast_to(a, _INT64)
        if step < 0:
            a, step = verbs.subtract(n - 1, a), -step
        # (Where all elements are one, a program looks at nothing of 0 times the index, and at no bounds.)
        part = a if step == 1 else verbs.multiply(a, step) if step else verbs.minimum(a, 0)
        offset = part if offset is None else verbs.add(offset, part)
    base = view[(*where, ...)]
    base = base[(*[slice(None)] * first, *[None] * len(shape), ...)]
    stretched = np.broadcast_to(base, result) if isinstance(base, np.ndarray) else base.broadcast_to(result)
    behind = len(plain) - first
    offset = cast_to(offset, _INT64)
    if behind:
        offset = verbs.getitem(offset, (..., *[None] * behind))
    return gather_node(family, Leaf(stretched, leaf.foreign, root=leaf, table=True), offset, result)


def gather_node(family: Any, base: Leaf, offset: Any, shape: tuple[int, ...]) -> Any:
    """The pending array of what stands `offset` elements further on than `base`."""
    node = Broadcasted(gather_signature(base.dtype), (base, verbs.capture(offset)), shape)
    return at_once(wrap(family, node))


def gather_signature(dtype: np.dtype) -> Sig:
    return promotion.intern(TABLE["gather"], (dtype, _INT64), (dtype,))


@by_type
def take_small(family: Any, x: Any, index: tuple[Any, ...]) -> Any:
    """x[index] in new memory, where a place's own indexing is quicker than a node; else None."""


@take_small.method
def _(family: type[DenseArray], x: Any, index: tuple[Any, ...]) -> None:
    return None


@by_type
def put_small(family: Any, x: Any, index: tuple[Any, ...], value: Any) -> Any:
    """x[index] = value in place, if that is quick, and nobody else reads the old contents: was it done?"""


@put_small.method
def _(family: type[DenseArray], x: Any, index: tuple[Any, ...], value: Any) -> bool:
    return False


@by_type
def picked_by(family: Any, x: Any, index: tuple[Any, ...]) -> Any:
    """x[index] where nobody knows yet what a mask in the index holds (see `programs.picked`); else None."""


@picked_by.method
def _(family: type[DenseArray], x: Any, index: tuple[Any, ...]) -> None:
    return None


@by_type
def put_picked(family: Any, x: Any, index: tuple[Any, ...], value: Any) -> Any:
    """x[index] = value where nobody knows yet what a mask in the index holds: was it so?"""


@put_picked.method
def _(family: type[DenseArray], x: Any, index: tuple[Any, ...], value: Any) -> bool:
    return False


def read(x: Any, index: tuple[Any, ...]) -> Any:
    """x[index] for an index with arrays."""
    quick = take_small(leaf_family(type(x)), x, index)
    if quick is not None:
        return quick
    steps = in_steps(x, index)
    if steps is not None:
        return verbs.copy(verbs.getitem(x, steps))
    picked = picked_by(leaf_family(type(x)), x, index)
    if picked is not None:
        return picked
    if _is_flat(x, index):
        _evaluated(x)  # (a mask made from the same array reads it then, and is not asked for twice)
        return gathered(_in_a_row(x), _flat_places(index[0]))
    recorded = traced_among(x, index)
    if recorded is not None:
        return read(verbs.adapt(recorded, x), index)
    how = parsed(x, index)
    if isinstance(how, Advanced):
        made = gathered(x, how)
        if _of_numbers(index) and (made.ndim or any(i is Ellipsis for i in index)):
            _follow(made, x, index)
        return made
    shown = verbs.getitem(x, how)
    # An array without axes picks as every index array does: what it picks is a copy.
    if not any(map(_is_index_array, index)) or not (shown.ndim or any(i is Ellipsis for i in index)):
        return shown
    return constructed(verbs.copy(shown))


def _is_index_array(i: Any) -> bool:
    """Is an entry of an index an array, and no number (nor what an operation made, as NumPy makes scalars)?"""
    return isinstance(i, np.ndarray) or (isinstance(i, AbstractArray) and not i._is_number())


def _of_numbers(index: tuple[Any, ...]) -> bool:
    """Does an index have no arrays but numbers that operations made? Then what it picks is a view."""
    arrays = [i for i in index if not isinstance(i, Basic) or isinstance(i, (bool, np.bool_))]
    return all(
        isinstance(i, AbstractArray) and not i.ndim and i.dtype.kind != "b" and not _is_index_array(i)
        for i in arrays
    )


def _follow(part: Any, x: Any, index: tuple[Any, ...]) -> None:
    """x[index] is a view in NumPy."""
    source = root_of(x)
    if not isinstance(source, DenseArray) or (hasattr(source, "_copy_of") and followers(source) is None):
        return
    fixed = tuple(
        [wrap(leaf_family(type(i)), verbs.capture(i)) if isinstance(i, AbstractArray) else i for i in index]
    )
    link(
        constructed(part),
        source,
        lambda: _picked(x, fixed),
        lambda value: write_at(x, fixed, value),
    )


def _picked(x: Any, index: tuple[Any, ...]) -> Any:
    how = parsed(x, index)
    assert isinstance(how, Advanced)  # (what a number was that nobody knows, it is)
    return gathered(x, how)


def in_steps(x: Any, index: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """An index whose one array is evenly spaced numbers (a Range) as the slice that names the same; or None."""
    at = [k for k, i in enumerate(index) if getattr(type(i), "spaced", False)]
    others = [i for i in index if not (i is None or i is Ellipsis or isinstance(i, slice))]
    if not at or len(others) > 1 or sum(_consumes(i) for i in index) > x.ndim:
        return None
    (k,) = at
    r, after_dots = index[k], any(i is ... for i in index[:k])
    axis = x.ndim - sum(map(_consumes, index[k:])) if after_dots else sum(map(_consumes, index[:k]))
    n = x.shape[axis]
    if r.dtype.kind not in "iu" or not r.size or not r.step:
        return None
    first, last = r.at(0), r.at(r.size - 1)
    if min(first, last) < 0:
        first, last = first + n, last + n
    if not (0 <= first < n and 0 <= last < n):
        return None
    end = last + (1 if r.step > 0 else -1)
    return (*index[:k], slice(first, end if end >= 0 else None, r.step), *index[k + 1 :])


def traced_among(x: Any, index: tuple[Any, ...]) -> Any:
    """The type of an index that is recorded for a program, where the array is a constant of it; else None."""
    for i in index:
        if isinstance(i, AbstractArray) and i.place.kind == "traced" and x.place.kind != "traced":
            family = leaf_family(type(i))
            return family if family.joins(leaf_family(type(x))) else None
    return None


def _is_flat(x: Any, index: tuple[Any, ...]) -> bool:
    """Is it a mask over all elements, which lie one after another? One array of places says it all then."""
    if len(index) != 1 or not isinstance(x, DenseArray) or not _is_mask_of(x, index[0]):
        return False
    if not isinstance(index[0], DenseArray) or leaf_family(type(index[0])) is not leaf_family(type(x)):
        return False
    if x.place.rank > 2:  # (elements of several processes lie in no one row)
        return x.ndim == 1
    leaf = valued_leaf(x._node) if x.ndim > 1 else None
    return leaf is None or bool(leaf.view.flags.c_contiguous)


def _in_a_row(x: Any) -> Any:
    return x if x.ndim == 1 else verbs.reshape(x, (x.size,))


def _flat_places(mask: Any) -> Advanced:
    return Advanced((slice(None),), list(positions_of(mask, flat=True)), False, True)


# Writing


@functools.partial(generic, arity=1)
def write_to_parts(x: Any, index: tuple[Any, ...], value: Any, op: str) -> None:
    """`write_at` for an array that carries derivatives."""


def write_at(x: Any, index: tuple[Any, ...], value: Any, op: str = "") -> None:
    """x[index] = value; or, with an `op`, x[index] = op(x[index], value) for each entry in turn."""
    from mirabelle.arraytypes.assign import check_writable

    if x.carries_derivatives and not hasattr(x, "_stored"):  # an array of several, which writes to each
        write_to_parts(x, index, value, op)
        return
    if getattr(value, "carries_derivatives", False):
        verbs.assign(x, value)  # which says why it cannot be
        return
    behind = check_writable(x, followed=True)
    _write_at(x, index, value, op)
    if behind is not None:
        follow(behind)


def _write_at(x: Any, index: tuple[Any, ...], value: Any, op: str) -> None:
    from mirabelle.arraytypes.assign import assigned_value, scatter_into

    family = leaf_family(type(x))
    if traced_among(x, index) is not None:
        from mirabelle.arraytypes.programs.capture import side_effect  # which stands on this module

        raise side_effect(x)
    quick = not (op or recording.watchers)
    if quick and put_small(family, x, index, value):
        return
    steps = None if op else in_steps(x, index)
    if steps is not None:
        verbs.setitem(x, steps, value)
        return
    if not op and len(index) == 1 and _is_mask_of(x, index[0]) and _is_single(value):
        mask = _entry(leaf_family(type(x)), x, index[0])
        chosen = None
        if type(value) in (int, float):  # (checked as any value is; a number is part of the tree as it is)
            converted = assigned_value(x, value)
            chosen = verbs.where(mask, value, x)
            value = converted
        if chosen is None or chosen.dtype != x.dtype:
            chosen = verbs.where(mask, assigned_value(x, value), x)
        verbs.assign(x, chosen)
        return
    if not op and put_picked(family, x, index, value):
        return
    if _is_flat(x, index) and valued_leaf(x._node) is not None:
        scatter_into(_in_a_row(x), _flat_places(index[0]), value, op)
        return
    how = parsed(x, index)
    if not isinstance(how, Advanced):
        if op:
            how = Advanced(how, [None] * view_of(x, how).ndim, False)
        else:
            verbs.setitem(x, how, value)
            return
    scatter_into(x, how, value, op)


def _is_mask_of(x: Any, i: Any) -> bool:
    return getattr(i, "dtype", None) == np.bool_ and getattr(i, "shape", None) == x.shape and x.ndim > 0


def _is_single(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex, np.generic)) or getattr(value, "ndim", None) == 0
