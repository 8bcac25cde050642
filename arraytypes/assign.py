"""Writing: a write never changes what was already said.

Pending trees captured versions, so a write may do one of four things, the cheapest that is
right: give the handle the tree itself (nothing was in memory yet), compute straight into its
memory (nobody reads it any more, or only the same element), compute into new memory and swap
(somebody still reads the old), or, for a part, do so around a copy of the rest.
"""

from __future__ import annotations

import sys
from typing import Any, cast

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import (
    DenseArray,
    as_numpy,
    family_of_version,
    force,
    settle,
    wrap,
)
from mirabelle.arraytypes.elementwise import (
    Scalar,
    at_once,
    leaf_family,
    operand,
    raise_places,
    warn_if_discarding,
)
from mirabelle.arraytypes.wrappers import View, Wrapper, checked_index, root_of, shown_leaf, view_of
from mirabelle.dispatch import policy, promotion, verbs
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.policy import scalar_access
from mirabelle.dispatch.schedule import pure, survivors
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced


@verbs.setitem.method
def _(x: AbstractArray, index: Any, value: Any) -> None:
    if index is Ellipsis or (type(index) is slice and index == slice(None)):
        verbs.assign(x, value)
        return
    target = view_of(x, checked_index(x, index))
    if not target._shape and x.ndim:
        scalar_access("Writing", x.place)
    verbs.assign(target, value)


@verbs.assign.method
def _(dest: AbstractArray, value: Any, casting: Any = "unsafe") -> Any:
    if value is dest:
        return dest
    if (
        isinstance(value, View)
        and isinstance(dest, View)
        and value._parent is dest._parent
        and value._how == dest._how
    ):
        return dest  # x[i] += v ends in x[i] = x[i]
    check_writable(dest)
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
    return dest


@verbs.copyto.method
def _(dest: AbstractArray, src: AbstractArray) -> Any:
    return verbs.assign(dest, src)


@verbs.copyto.method
def _(dest: AbstractArray, src: Broadcasted | Reduced) -> Any:
    return write_safely(dest, src)


def write_safely(dest: Any, src: Broadcasted | Reduced) -> Any:
    """Write a tree to a destination it may read anywhere: what `copyto` does when a user calls it."""
    check_writable(dest)
    check_fits(src.shape, dest.shape)
    if src.value is None and family_of_version(src) is not leaf_family(type(dest)):
        raise_places("copyto", (dest, wrap(family_of_version(src), src)))
    write(dest, src)
    return dest


@verbs.copyto.method
def _(dest: AbstractArray, src: Scalar | np.ndarray | list | tuple) -> Any:
    return verbs.assign(dest, src)


def check_writable(dest: Any) -> None:
    x = dest
    while isinstance(x, Wrapper):
        if not x.writable:
            raise ValueError(
                f"assignment destination is read-only: {type(x).__name__} shows one element in "
                "several places. Copy it first: `x = mb.copy(x)`."
            )
        x = x._parent
    leaf = x._node
    if type(leaf) is Leaf and leaf.foreign and not leaf.view.flags.writeable:
        raise ValueError(
            "assignment destination is read-only: it shares the memory of a read-only NumPy array. "
            "Copy it first: `x = mb.copy(x)`."
        )


def source_version(dest: Any, value: Any) -> Any:
    """What is written, as a version: a leaf, a tree, or a tree over one scalar."""
    if isinstance(value, (list, tuple)):
        value = as_numpy(value, None)
    family = leaf_family(type(dest))
    if isinstance(value, (AbstractArray, np.ndarray)) and value.ndim:
        other = leaf_family(type(value)) if isinstance(value, AbstractArray) else None
        crosses = other is not family and not (other is None and family.home.rank < 2)
        if crosses and not policy.transfer_allowed():
            raise_places("assignment", (dest, value))
    version, argtype, _ = operand(family, TABLE["copy"], value)
    if isinstance(version, (Leaf, Broadcasted, Reduced)):
        return version
    if argtype is int and dest.dtype.kind in "iu":
        info = np.iinfo(dest.dtype)
        if not info.min <= version <= info.max:
            raise OverflowError(f"Python integer {version} out of bounds for {dest.dtype.name}")
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


def write(dest: Any, source: Any) -> None:
    """Overwrite `dest` with a version that fits it."""
    root: DenseArray = root_of(dest)
    family = type(root).family
    source = squeezed(family, source, len(dest.shape))
    if type(source) is Reduced or fallible(source):
        # What may fail on the way is computed before anything is written.
        source = force(family, source)
    whole = dest is root
    node: Any = root._node
    if whole and type(node) is not Leaf and node.value is None:
        # Nothing of it is in memory: the handle takes the new tree.
        root._node = fitted(source, dest)
        at_once(root)
        return
    leaf = verbs.leaf_of(root)
    node = None
    exact = type(source) is not Leaf and source.shape == dest.shape and source.dtype == dest.dtype
    if leaf.foreign:
        write_foreign(family, dest, leaf, source)
        return
    if whole and source is not leaf and shareable(source, dest) and source.view.strides == leaf.view.strides:
        root._node = source  # both handles on one version; the next write parts them
        return
    reads = readers(source, leaf)
    if nobody_else(leaf, source, reads) and same_places_only(source, leaf, dest, whole, reads):
        execute(family, leaf if whole else shown_leaf(dest, leaf), as_tree(source))
        if whole:
            # A reduction of the old contents must not be found by one of the new.
            leaf.reducers = None
            if exact and source.value is None:
                settle(cast(Broadcasted, source), leaf)
        return
    # In the order of the old memory: wrappers around it go on showing the new.
    flags = leaf.view.flags
    order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
    fresh = Leaf(family._empty(leaf.shape, leaf.dtype, order))
    if whole:
        execute(family, fresh, as_tree(source))
        if exact and source.value is None:
            settle(cast(Broadcasted, source), fresh)
    else:
        copy_around(family, fresh, leaf, shown_leaf(dest, leaf))
        execute(family, shown_leaf(dest, fresh), as_tree(source))
    root._node = fresh


def execute(family: Any, target: Leaf, tree: Broadcasted) -> None:
    """Have the backend write a tree into memory that it may be written to as it is."""
    target.checked = True
    verbs.copyto(wrap(family, target), tree)
    target.checked = False


def fallible(source: Any) -> bool:
    """Does a tree run a user's function, which may raise for some element?"""
    return type(source) is Broadcasted and not pure(source)


def shareable(source: Any, dest: Any) -> bool:
    """Can `dest` simply hold the same version?"""
    return (
        type(source) is Leaf
        and source.shape == dest.shape
        and source.dtype == dest.dtype
        and source.token is None
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
    return Leaf(leaf.view[(*(0,) * extra, ...)], leaf.foreign, token=(id(leaf), ("squeezed", extra), leaf))


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
    """The leaves of a tree that show memory of `leaf`, each as often as a node holds it."""
    found: list[Leaf] = []
    seen: set[int] = set()
    stack = [source]
    while stack:
        x = stack.pop()
        if type(x) is Leaf:
            if x is leaf or (x.token is not None and x.token[0] == id(leaf)):
                found.append(x)
        elif type(x) is Broadcasted:
            if x.value is not None:
                stack.append(x.value)
            elif id(x) not in seen:
                seen.add(id(x))
                stack += x.args or ()
        elif type(x) is Reduced:
            stack.append(x.value if x.value is not None else x.operand)
    return found


def nobody_else(leaf: Leaf, source: Any, reads: list[Leaf]) -> bool:
    """Is the tree about to be written the only reader of the old contents?"""
    parts = {id(r) for r in reads if r is not leaf}
    # Each read of the whole leaf is held by a node and by the list; of a part, by its token.
    if references(leaf) > _ALONE + len(parts) + 2 * sum(r is leaf for r in reads):
        return False
    # A NumPy array exported from this memory (np.asarray(x)) holds its view, and is a reader too.
    if sys.getrefcount(leaf.view) > 2 + len(parts) or isinstance(getattr(leaf.view, "base", None), np.ndarray):
        return False
    if not reads:
        return True
    return type(source) is Broadcasted and source.value is None and not survivors(source, leaf)


def references(leaf: Leaf) -> int:
    return sys.getrefcount(leaf)


def same_places_only(source: Any, leaf: Leaf, dest: Any, whole: bool, reads: list[Leaf]) -> bool:
    """Does the tree read, of the memory it is written to, only the element it writes?"""
    if not reads:
        return True
    if source.shape != dest.shape or source.dtype != dest.dtype:
        return False  # the source stays pending, and would read what was written
    if not whole:
        return False
    return all(r is leaf for r in reads)


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
    if len(steps) < len(part.strides) or not part.size:
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
        first: int = whole.__array_interface__["data"][0]
        return int(part.__array_interface__["data"][0]) - first
    return int(part.offset - whole.offset)


def write_foreign(family: Any, dest: Any, leaf: Leaf, source: Any) -> None:
    """Write into memory that is shared with NumPy: always in place, through a copy if it overlaps."""
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
        elif type(x) is Leaf and isinstance(x.view, np.ndarray) and np.may_share_memory(x.view, mine):
            v = x.view
            if (
                v.shape != mine.shape
                or v.strides != mine.strides
                or v.dtype != mine.dtype
                or v.__array_interface__["data"] != mine.__array_interface__["data"]
            ):
                return True
    return False


def _calibrate() -> int:
    """The references to a leaf that only its handle, `write` and `nobody_else` hold."""
    seen: list[int] = []
    global references

    def probe(leaf: Leaf) -> int:
        seen.append(sys.getrefcount(leaf))
        return 1 << 30

    original, references = references, probe
    try:
        from mirabelle.arraytypes.host import HostArray

        x = HostArray(np.zeros(2))
        for _ in range(3):  # the first calls of a process pass through the resolver
            verbs.assign(x, 1.0)
    finally:
        references = original
    return min(seen)


_ALONE = 0


def calibrate() -> None:
    """Measure, once the backends are there, what an unshared leaf's reference count is."""
    global _ALONE
    _ALONE = _calibrate()
