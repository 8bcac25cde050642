"""Writing: a write never changes what was already said.

Pending trees captured versions, so a write may do one of four things, the cheapest that is
right: give the handle the tree itself (nothing was in memory yet), compute straight into its
memory (nobody reads it any more, or only the same element), compute into new memory and swap
(somebody still reads the old), or, for a part, do so around a copy of the rest.
"""

from __future__ import annotations

import collections
import math
import sys
import threading
import time
from typing import Any, cast

import numpy as np

from mirabelle.arraytypes import proxies, recording
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import as_array, is_elsewhere
from mirabelle.arraytypes.dense import (
    DenseArray,
    as_numpy,
    computed,
    family_of_version,
    force,
    force_temporary,
    in_columns,
    memory_order,
    settle,
    wrap,
)
from mirabelle.arraytypes.elementwise import (
    Scalar,
    at_once,
    cast_to,
    leaf_family,
    operand,
    raise_places,
    warn_if_discarding,
)
from mirabelle.arraytypes.indexing import common_shape, is_advanced, of_whole, write_at
from mirabelle.arraytypes.library import routine_of
from mirabelle.arraytypes.moving import claim
from mirabelle.arraytypes.numberedparts import follow
from mirabelle.arraytypes.parametric import generic_class
from mirabelle.arraytypes.wrappers import View, Wrapper, root_of, shown_leaf, view_of
from mirabelle.dispatch import native, policy, promotion, verbs
from mirabelle.dispatch.addresses import address_of
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.policy import scalar_access
from mirabelle.dispatch.schedule import pure, survivors
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced, adopted, evaluating, may_write


@verbs.setitem.method
def _(x: AbstractArray, index: Any, value: Any) -> None:
    if index is Ellipsis or (type(index) is slice and index == slice(None)):
        verbs.assign(x, value)
        return
    index = index if type(index) is tuple else (index,)
    if is_advanced(index):
        write_at(x, of_whole(x, index), value)
        return
    target = view_of(x, index)
    if not target._shape and x.ndim:
        scalar_access("Writing", x.place)
    verbs.assign(target, value)


@verbs.assign.method
def _(dest: AbstractArray, value: Any, casting: Any = "unsafe") -> Any:
    if value is dest:
        check_writable(dest, followed=True)
        return dest
    if (
        isinstance(value, View)
        and isinstance(dest, View)
        and value._parent is dest._parent
        and value._how == dest._how
    ):
        return dest  # x[i] += v ends in x[i] = x[i]
    behind = check_writable(dest, followed=True)
    source = source_version(dest, value)
    check_fits(source.shape, dest.shape)
    if not np.can_cast(source.dtype, dest.dtype, casting):
        raise TypeError(
            f"Cannot cast the result of dtype {source.dtype.name} into an array of dtype "
            f"{dest.dtype.name} in place. Write `x = x + y` for a new array, or convert: "
            f"`y.astype(mb.{dest.dtype.name})`."
        )
    warn_if_discarding(source.dtype, dest.dtype)
    write(dest, source)
    if behind is not None:
        follow(behind)
    return dest


@verbs.copyto.method
def _(dest: AbstractArray, src: AbstractArray) -> Any:
    check_cast(src, dest.dtype, "same_kind")
    return verbs.assign(dest, src)


@verbs.copyto.method
def _(dest: AbstractArray, src: Broadcasted | Reduced) -> Any:
    return write_safely(dest, src)


def write_safely(dest: Any, src: Broadcasted | Reduced) -> Any:
    """Write a tree to a destination it may read anywhere: what `copyto` does when a user calls it."""
    behind = check_writable(dest, followed=True)
    check_fits(src.shape, dest.shape)
    if src.value is None and family_of_version(src) is not leaf_family(type(dest)):
        raise_places("copyto", (dest, wrap(family_of_version(src), src)))
    write(dest, src)
    if behind is not None:
        follow(behind)
    return dest


@verbs.copyto.method
def _(dest: AbstractArray, src: Scalar | np.ndarray | list | tuple) -> Any:
    check_cast(src, dest.dtype, "same_kind")
    return verbs.assign(dest, src)


def check_writable(dest: Any, followed: bool = False) -> Any:
    """Refuse a write to what is read-only. The array whose memory is written, if others follow its writes; who
    writes without seeing to that (not `followed`) is refused then."""
    x = dest
    while isinstance(x, Wrapper):
        if not x.writable:
            raise ValueError(
                f"assignment destination is read-only: {type(x).__name__} shows one element in "
                "several places. Copy it first: `x = mb.copy(x)`."
            )
        x = x._parent
    behind = None
    if hasattr(x, "_copy_of"):
        check_no_copy(x)
        behind = x
        if not followed:
            check_apart(x)
    if hasattr(x, "_stored"):
        raise TypeError(
            f"A {generic_class(type(x)).__name__} stores less than it shows, and is not written to by index "
            "arrays. Make it dense: `x = mb.dense(x)`."
        )
    leaf = x._node
    if type(leaf) is Leaf and leaf.foreign and not leaf.view.flags.writeable:
        if leaf.recalled("protected"):
            raise ValueError(
                "assignment destination is read-only: `x.flags.writeable` is False. Copy it: `x = mb.copy(x)`."
            )
        raise ValueError(
            "assignment destination is read-only: it shares the memory of a read-only array of "
            f"{'NumPy' if isinstance(leaf.view, np.ndarray) else 'another library'}. Copy it first: "
            "`x = mb.copy(x)`."
        )
    return behind


def check_apart(x: Any) -> None:
    """Refuse to hand out the memory of an array that others follow: nobody sees what is written there."""
    known = x._copy_of
    if known.back is not None or any(part() is not None for part in known.parts):
        raise ValueError(
            "An array is handed to what writes to its memory, and a part of it was picked by a number that is "
            "computed on a card or in a program, `part = x[k]`, or it is such a part: the other would not "
            "follow. Copy it: `part = mb.copy(x[k])`."
        )


def check_no_copy(x: Any) -> None:
    """Refuse a write to what is a copy where NumPy has a view: it would be lost."""
    source = getattr(x, "_copy_of", None)
    if isinstance(source, str):
        raise ValueError(
            f"assignment destination is read-only: it is a copy of entries of a {source}, which would stay as "
            f"they are. Write to the {source} itself, `A[index] = value`, or copy first: `x = mb.copy(x)`."
        )


def source_version(dest: Any, value: Any) -> Any:
    """What is written, as a version: a leaf, a tree, or a tree over one scalar."""
    family = leaf_family(type(dest))
    if isinstance(value, (list, tuple)):
        # A list has no place: it goes where it is needed, as in `x + [1, 2]`. Its numbers are asked one by one
        # whether they fit, as NumPy does.
        if not _holds_arrays(value):
            data = as_numpy(value, None)
            data = data if data.dtype == dest.dtype or not data.size else as_numpy(value, dest.dtype)
            value = data if family.home.rank < 2 else data.tolist()
        value = as_array(value, dest) if family.home.rank >= 2 else as_numpy(value, None)
    elif is_elsewhere(value):  # (pandas', JAX's)
        value = as_array(value, dest)
    other = leaf_family(type(value)) if isinstance(value, AbstractArray) else None
    if other is not None and other.home.kind == "traced" and other is not family:
        from mirabelle.arraytypes.programs.capture import side_effect  # which stands on this module

        raise side_effect(dest)
    if isinstance(value, (AbstractArray, np.ndarray)) and value.ndim:
        crosses = (
            other is not family and not (other is None and family.home.rank < 2) and not family.joins(other)
        )
        if crosses and not policy.transfer_allowed():
            raise_places("assignment", (dest, value))
    version, argtype, _ = operand(family, TABLE["copy"], value)
    if isinstance(version, (Leaf, Broadcasted, Reduced)):
        return version
    if argtype is int and dest.dtype.kind in "iu":
        info = np.iinfo(dest.dtype)
        if not info.min <= version <= info.max:
            raise OverflowError(f"Python integer {version} out of bounds for {dest.dtype.name}")
    if (
        isinstance(version, (float, np.floating))
        and dest.dtype.kind in "iu"
        and not abs(float(version)) < 2.0**64
    ):
        error = ValueError if math.isnan(version) else OverflowError
        raise error(
            f"cannot convert float {'NaN' if math.isnan(version) else version} to integer: the array has dtype "
            f"{dest.dtype.name}. Make it one of floats first: `x = x.astype(mb.float64)`."
        )
    # A Python scalar takes the destination's kind where that holds it, as NumPy's rule.
    dtype = promotion.result_type(argtype)
    if np.can_cast(dtype, dest.dtype, "same_kind"):
        dtype = dest.dtype
    elif argtype is complex:
        raise TypeError(
            f"A complex number does not fit an array of dtype {dest.dtype.name}. Write its real "
            "part, or make the array complex: `x.astype(mb.complex128)`."
        )
    return Broadcasted(promotion.intern(TABLE["copy"], (dtype,), (dtype,)), (version,), ())


def _holds_arrays(nest: Any) -> bool:
    return any(
        isinstance(x, AbstractArray) or (isinstance(x, (list, tuple)) and _holds_arrays(x)) for x in nest
    )


def check_cast(source: Any, dest: np.dtype, casting: Any) -> None:
    """May a number or an array become `dest` by a casting rule? Else NumPy's TypeError."""
    if isinstance(source, bool) or (isinstance(source, int) and dest.kind != "b"):
        return  # (Python's integers take any dtype of numbers that holds them)
    dtype = source.dtype if hasattr(source, "dtype") else np.asarray(source).dtype
    if not np.can_cast(dtype, dest, casting):
        raise TypeError(
            f"Cannot cast array data from {dtype!r} to {dest!r} according to the rule {casting!r}. Convert it "
            f"first: `y.astype(mb.{dest.name})`."
        )


def check_fits(source: tuple[int, ...], dest: tuple[int, ...]) -> None:
    extra = len(source) - len(dest)
    head, tail = source[: max(extra, 0)], source[max(extra, 0) :]
    if all(n == 1 for n in head) and all(
        a in (1, b) for a, b in zip(reversed(tail), reversed(dest), strict=False)
    ):
        return
    raise ValueError(
        f"could not broadcast input array from shape {source} into shape {dest}. Dimensions are "
        "aligned at the end; the input's must be equal or 1."
    )


# How often a thread looks whether another still writes, before it asks whether that one is alive.
_LOOKS = 1 << 10


def write_alone(root: Any) -> Leaf | None:
    """Have this thread be the only one that writes to parts of an array, until `writer` of the leaf is 0 again.

    Threads may write to other parts of one array at a time, as with NumPy; but here one of them may have to
    move the array, and what the others write to the old memory then would be lost. None: it is so already, or
    the memory is another library's, and is never moved.
    """
    me, looks = threading.get_ident(), 0
    while True:
        leaf = verbs.leaf_of(root)
        other = leaf.writer
        if other == me or not adopted(leaf):
            return None
        if not leaf.writer:  # (nothing is called up to here: no other thread comes between)
            leaf.writer = me
            if root._node is leaf or type(root._node) is not Leaf:
                return leaf  # type: ignore[no-any-return]
            leaf.writer = 0
            continue
        looks += 1
        time.sleep(0 if looks < 32 else 1e-4)
        if not looks % _LOOKS and other == leaf.writer and other not in sys._current_frames():
            leaf.writer = 0  # (a thread that a fork has left behind)


def write(dest: Any, source: Any) -> None:
    """Overwrite `dest` with a version that fits it."""
    root: DenseArray = root_of(dest)
    leaf = None if dest is root else write_alone(root)
    try:
        _write(dest, root, source)
    finally:
        if leaf is not None:
            leaf.writer = 0


def _write(dest: Any, root: DenseArray, source: Any) -> None:
    if recording.watchers:
        noted(root)
    family = type(root).family
    source = squeezed(family, source, len(dest.shape))
    if type(source) is Reduced or fallible(source):
        # What may fail on the way is computed before anything is written.
        source = force(family, source)
    whole = dest is root
    node: Any = root._node
    if whole and type(node) is not Leaf and node.value is None and not (source.shape == () and _divided(root)):
        # Nothing of it is in memory: the handle takes the new tree.
        root._node = fitted(source, dest)
        at_once(root)
        return
    leaf = verbs.leaf_of(root)
    exact = type(source) is not Leaf and source.shape == dest.shape and source.dtype == dest.dtype
    if not adopted(leaf):
        write_foreign(family, dest, leaf, source)
        return
    if (
        whole
        and source is not leaf
        and shareable(source, dest)
        and source.view.strides == leaf.view.strides
        and not (recording.active and recording.current() is not None)
    ):
        root._node = source  # both handles on one version; the next write parts them
        return
    native.in_c.compute_readers(leaf)
    reads = readers(source, leaf)
    part = None if whole else shown_leaf(dest, leaf)
    target = part or leaf
    around = settings.check_collectives and getattr(root, "communicates", False)
    free, in_place = nobody_else(leaf, source, reads, part, around), harmless(target, exact, reads)
    if free and in_place:
        execute(family, target, as_tree(source))
        if whole:
            # A reduction of the old contents must not be found by one of the new.
            leaf.reducers = None
        if exact and source.value is None:
            _settle_written(family, cast(Broadcasted, source), target, bool(reads))
        return
    small = not whole and 2 * target.view.size <= leaf.view.size
    if not in_place and (small or (recording.active and recording.stays(leaf))):
        # It overlaps what it reads, and is small beside the rest: by way of a value of its own. (Over processes
        # in any case: what they send may not depend on what other threads of one of them hold or compute.)
        if free or getattr(root, "communicates", False):
            source, exact = force_temporary(family, as_tree(source)), False
        if free:
            execute(family, target, as_tree(source))
            return
    if recording.active and recording.stays(leaf):
        # A graph writes where it was told to: it is the readers that go to other memory.
        claim(root)
        write(dest, source)
        return
    # In the order of the old memory: wrappers around it go on showing the new.
    flags = leaf.view.flags
    order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
    fresh = Leaf(family._alike(leaf.view, order=order))
    if whole:
        execute(family, fresh, as_tree(source))
        if exact and source.value is None:
            settle(cast(Broadcasted, source), fresh)
    else:
        copy_around(family, fresh, leaf, shown_leaf(dest, leaf))
        target = shown_leaf(dest, fresh)
        execute(family, target, as_tree(source))
        if exact and source.value is None:
            _settle_written(family, cast(Broadcasted, source), target, False)
    root._node = fresh


def _settle_written(family: Any, source: Broadcasted, target: Leaf, rewritten: bool) -> None:
    """Whoever holds the tree is spared computing it, or must not compute it again of what was `rewritten`.

    (Where memory runs along rows and that of the value by itself would along columns, it gets its own.)
    """
    order = memory_order(source)
    if len(target.shape) < 2 or in_columns(target.view) == (order == "F"):
        settle(source, target)
    elif rewritten:
        own = Leaf(family._alike(target.view, order=order))
        family._copy_into(own.view, target.view)
        settle(source, own)


def _divided(root: Any) -> bool:
    """Is an array over processes? A number that is written to it is divided as it is, which its tree says."""
    return bool(root.shape) and getattr(root, "communicates", False)


def execute(family: Any, target: Leaf, tree: Broadcasted) -> None:
    """Have the backend write a tree into memory that it may be written to as it is."""
    if tree.shape != target.shape and tree.sig.op is not TABLE["copy"]:
        # Of the destination's shape, so that what is stored beside the result is not mistaken for it.
        tree = Broadcasted(promotion.intern(TABLE["copy"], (tree.dtype,), (tree.dtype,)), (tree,), target.shape)
    target.checked = True
    written(target)
    evaluating(verbs.copyto, wrap(family, target), tree)
    target.checked = False


def noted(root: Any) -> None:
    """Tell whoever watches that an array is about to be written."""
    for watcher in tuple(recording.watchers):
        watcher.note(root)


def written(leaf: Leaf) -> None:
    """Its memory is about to change: what was known of the contents no longer holds."""
    (leaf.root or leaf).writes += 1


def assigned_value(dest: Any, value: Any) -> Any:
    """A value to be written to a part of `dest`, as an array of its dtype."""
    family = leaf_family(type(dest))
    source = source_version(dest, value)
    warn_if_discarding(source.dtype, dest.dtype)
    return cast_to(wrap(family, source), dest.dtype)


# Of integers these give the same low bits, whatever was cut off before.
_MODULAR = ("add", "subtract", "multiply")


# Of truth values these are truth values, in whatever order.
_OF_TRUTHS = {
    "add", "maximum", "minimum", "fmax", "fmin", "logical_or", "logical_and", "logical_xor",
    "bitwise_or", "bitwise_and", "bitwise_xor",
}  # fmt: skip


def combined_value(dest: Any, value: Any, op: str) -> Any:
    """A value that `op` combines with elements of `dest`: in its own dtype, where the results have another.

    (They are cut to the dtype of `dest` one after the other, as NumPy's `ufunc.at` does.)
    """
    family = leaf_family(type(dest))
    source = wrap(family, source_version(dest, value))
    kinds = source.dtype.kind + dest.dtype.kind
    modular = op in _MODULAR and not kinds.strip("iu")
    if op == "multiply" and dest.dtype == np.bool_:  # (true where both are not zero, in whatever order)
        return assigned_value(dest, value)
    if modular or np.result_type(source.dtype, dest.dtype) == dest.dtype != np.bool_:
        return assigned_value(dest, value)
    if family.home.rank >= 2:
        if kinds == "bb" and op in _OF_TRUTHS:
            return assigned_value(dest, value)
        raise TypeError(
            f"{op}.at: values of dtype {source.dtype.name} do not fit an array of dtype {dest.dtype.name}, and "
            "each result would be cut to it, in an order that cards and processes do not keep. Convert one: "
            f"`values.astype(mb.{dest.dtype.name})`."
        )
    return source


def fitting(dest: Any, values: Any, casting: str = "unsafe") -> Any:
    """What a function writes to parts of an array, in its dtype: arrays by a casting rule, numbers that fit."""
    if isinstance(values, (AbstractArray, np.ndarray)):
        values = as_array(values, dest)
        check_cast(values, dest.dtype, casting)
        return cast_to(values, dest.dtype)
    return assigned_value(dest, values)


def scatter_into(dest: Any, how: Any, value: Any, op: str) -> None:
    """Write `value` where the arrays of an index say, or combine it with what is there."""
    target = view_of(dest, how.basic)
    value = combined_value(dest, value, op) if op else assigned_value(dest, value)
    used = how.used
    shape = common_shape(used)
    plain = [n for n, a in zip(target.shape, how.arrays, strict=True) if a is None]
    first = 0 if how.front or not used else next(d for d, a in enumerate(how.arrays) if a is not None)
    full = (*plain[:first], *shape, *plain[first:])
    while value.ndim > len(full) and value.shape[0] == 1:
        value = value[0, ...]
    try:
        check_fits(value.shape, full)
    except ValueError:
        raise ValueError(
            f"shape mismatch: value array of shape {value.shape} could not be broadcast to indexing "
            f"result of shape {full}"
        ) from None
    # The dimensions of the arrays come first, in the target and in the value.
    gathered = [d for d, a in enumerate(how.arrays) if a is not None]
    rest = [d for d, a in enumerate(how.arrays) if a is None]
    target = verbs.permute_dims(target, (*gathered, *rest))
    if first and value.ndim:
        value = verbs.broadcast_to(value, full)
        block = range(first, first + len(shape))
        value = verbs.permute_dims(value, (*block, *(d for d in range(len(full)) if d not in block)))
    scatter(target, value, [verbs.broadcast_to(a, shape) for a in used], op, how.distinct)


def scatter(target: Any, value: Any, indices: list[Any], op: str, distinct: bool = False) -> None:
    """The write itself: in place, or in a copy if somebody still reads the old contents."""
    root: DenseArray = root_of(target)
    alone = write_alone(root)
    try:
        _scatter(target, root, value, indices, op, distinct)
    finally:
        if alone is not None:
            alone.writer = 0
            moved = root._node
            if type(moved) is Leaf and moved.writer == threading.get_ident():
                moved.writer = 0


def _scatter(target: Any, root: DenseArray, value: Any, indices: list[Any], op: str, distinct: bool) -> None:
    if recording.watchers:
        noted(root)
    family = type(root).family
    number = None if op else written_number(value)
    arrays = indices if number is not None else [value, *indices]
    if number is None:
        computed(value)
    leaf = verbs.leaf_of(root)
    native.in_c.compute_readers(leaf)
    if any(readers(verbs.leaf_of(v), leaf) for v in arrays):
        arrays = [verbs.copy(v) for v in arrays]
    if not leaf.foreign and not nobody_else(leaf, None, []):
        if recording.active and recording.stays(leaf):
            leaf = claim(root)
        else:
            flags = leaf.view.flags
            order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
            fresh = Leaf(family._alike(leaf.view, order=order))
            family._copy_into(fresh.view, leaf.view)
            fresh.writer = leaf.writer
            root._node = leaf = fresh
    written(leaf)
    leaf.reducers = None
    views = [verbs.leaf_of(v).view for v in arrays]
    if number is not None:
        views.insert(0, number)
    options = {"distinct": True} if distinct else {}
    routine_of(family, "scatter")(verbs.lower(target, leaf), *views, op=op, **options)


def written_number(value: Any) -> Any:
    """The number that a value yet to be made is, in the dtype of the target; None for all others."""
    node = value._node if isinstance(value, DenseArray) else None
    if type(node) is Broadcasted and node.value is None and node.shape == () and node.sig.op is TABLE["copy"]:
        number = node.args[0] if node.args else None
        return number if type(number) in (int, float, bool) else None
    return None


def fallible(source: Any) -> bool:
    """Does a tree run a user's function, which may raise for some element?"""
    return type(source) is Broadcasted and not pure(source)


def shareable(source: Any, dest: Any) -> bool:
    """Can `dest` simply hold the same version?"""
    return (
        type(source) is Leaf
        and source.shape == dest.shape
        and source.dtype == dest.dtype
        and source.root is None
        and not source.foreign
    )


def as_tree(source: Any) -> Broadcasted:
    if type(source) is Broadcasted:
        if source.value is None:
            return source
        source = source.value
    sig = promotion.intern(TABLE["copy"], (source.dtype,), (source.dtype,))
    return Broadcasted(sig, (source,), source.shape)


def squeezed(family: Any, source: Any, ndim: int) -> Any:
    """Without leading dimensions of size 1 that the destination lacks."""
    extra = len(source.shape) - ndim
    if extra <= 0:
        return source
    leaf = force(family, source)
    return Leaf(leaf.view[(*(0,) * extra, ...)], leaf.foreign, root=leaf)


def fitted(source: Any, dest: Any) -> Any:
    """A version of exactly the destination's shape and dtype."""
    if source.dtype != dest.dtype:
        source = Broadcasted(promotion.cast(source.dtype, dest.dtype), (source,), dest.shape)
    elif source.shape != dest.shape or type(source) is Leaf:
        if shareable(source, dest):
            return source
        sig = promotion.intern(TABLE["copy"], (source.dtype,), (source.dtype,))
        source = Broadcasted(sig, (source,), dest.shape)
    return source


# Who reads the old contents?


def readers(source: Any, leaf: Leaf) -> list[Leaf]:
    """The leaves of a tree that show memory of `leaf`, each as often as a node holds it.

    Operands that have been evaluated are replaced by their values on the way: who else holds
    such an operand then holds its value.
    """
    found: list[Leaf] = []
    seen: set[int] = set()
    stack: list[Any] = [source]
    while stack:
        x = stack.pop()
        if type(x) is Leaf:
            if x is leaf or x.root is leaf:
                found.append(x)
        elif type(x) is not Broadcasted and type(x) is not Reduced:
            continue  # a number
        elif x.value is not None:
            stack.append(x.value)
        elif id(x) not in seen:
            seen.add(id(x))
            if isinstance(x, Reduced):
                x.operand = valued(x.operand)
                stack.append(x.operand)
            elif (args := x.args) is not None:  # (another thread may evaluate it)
                if any(valued(a) is not a for a in args):
                    args = x.args = tuple(map(valued, args))
                stack += args
    return found


def valued(x: Any) -> Any:
    """The value of an operand that has been evaluated; else the operand."""
    return x.value if type(x) in (Broadcasted, Reduced) and x.value is not None else x


def nobody_else(
    leaf: Leaf, source: Any = None, reads: Any = (), part: Leaf | None = None, around: bool = False
) -> bool:
    """Is the tree about to be written the only reader of what the write changes?

    That is all of `leaf`, or a part of it. Pending trees that read other parts go on to find
    what they read, but where these count (`around`), as processes compare what contents came
    from. Memory that belongs to another leaf is that one's to write.
    """
    if not may_write(leaf, 0 if type(source) is Leaf or not reads else sum(r is leaf for r in reads)):
        return False
    if not reads and not leaf.parts:
        return True
    changed = {
        id(p)
        for p in leaf.held_parts()
        if p is not part and (around or part is None or p.table or not apart(p.view, part.view))
    }
    if any(r is leaf for r in reads):
        changed.add(id(leaf))
    if not changed:
        return True
    known = collections.Counter(map(id, reads))
    if not changed <= known.keys() or type(source) is not Broadcasted or source.value is not None:
        return False
    if any(p.holders > known[id(p)] for p in leaf.held_parts() if id(p) in changed):
        return False
    return not survivors(source, changed)


def harmless(target: Leaf, exact: bool, reads: list[Leaf]) -> bool:
    """Does the tree read, of the memory it is written to, only the element it writes, or none at all?

    (A source that is not exactly what is stored stays pending, and would read what was written.)
    """
    here = None
    for r in reads:
        if r.table:
            if (r.root or r).recalled("unread"):
                continue
            return False
        if r is target:
            same = True
        elif apart(r.view, target.view):
            continue
        else:
            here = here or target.key()
            same = r.key() == here
        if not (same and exact):
            return False
    return True


def apart(a: Any, b: Any) -> bool:
    """Do two views show no common element? (False where that takes long to find out.)"""
    arrays = proxies.pair(a, b)
    try:
        return arrays is None or not np.shares_memory(*arrays, max_work=1000)  # type: ignore[arg-type] # pyright: ignore
    except np.exceptions.TooHardError:
        return False


def copy_around(family: Any, fresh: Leaf, leaf: Leaf, target: Leaf) -> None:
    """Copy what the target does not cover from the old memory to the new."""
    parts = complement(leaf.view, target.view)
    for part in [(...,)] if parts is None else parts:
        family._copy_into(fresh.view[part], leaf.view[part])


def complement(whole: Any, part: Any) -> list[tuple[Any, ...]] | None:
    """Slabs that cover all of `whole` but `part`; None if that is no block of it.

    Found from shapes and strides alone, so that a block may be shown through any wrappers.
    """
    steps = dict(zip(part.strides, part.shape, strict=True))
    if len(steps) < len(part.strides) or not part.size or part.dtype.itemsize != whole.dtype.itemsize:
        return None
    rest = _distance(whole, part)
    before: dict[int, slice] = {}
    slabs: list[tuple[Any, ...]] = []
    # From the dimension with the longest step to the shortest, as an address is taken apart.
    order = sorted(range(len(whole.shape)), key=lambda d: -whole.strides[d])
    for d in order:
        n, step = whole.shape[d], whole.strides[d]
        if step <= 0:
            return None
        start, rest = divmod(rest, step)
        stop = start + steps.pop(step, 1)
        if stop > n:
            return None
        for missing in (slice(0, start), slice(stop, n)):
            if missing.start < missing.stop:
                slabs.append(tuple({**before, d: missing}.get(i, slice(None)) for i in range(len(order))))
        before[d] = slice(start, stop)
    if rest or any(length != 1 for length in steps.values()):
        return None
    return slabs


def _distance(whole: Any, part: Any) -> int:
    """Bytes from the first element of one view to that of another of the same memory."""
    if isinstance(whole, np.ndarray):
        return address_of(part) - address_of(whole)
    return int(part.offset - whole.offset)


def write_foreign(family: Any, dest: Any, leaf: Leaf, source: Any) -> None:
    """Write into memory that is shared with others: always in place, through a copy if it overlaps."""
    target = leaf if dest is root_of(dest) else shown_leaf(dest, leaf)
    tree = as_tree(source)
    if overlaps(tree, target):
        tree = as_tree(force(family, fitted(tree, dest)))
    execute(family, target, tree)


def overlaps(tree: Broadcasted, target: Leaf) -> bool:
    """Does the tree read an element of `target` at another place than it writes it?"""
    mine = target.view
    stack: list[Any] = [tree]
    while stack:
        x = stack.pop()
        if type(x) is Broadcasted:
            stack += [x.value] if x.value is not None else (x.args or ())
        elif type(x) is Leaf and proxies.may_meet(x.view, mine):
            v = x.view
            if (v.shape, v.strides, v.dtype) != (mine.shape, mine.strides, mine.dtype) or _distance(v, mine):
                return True
    return False
