"""Small trees on the host, evaluated node by node through NumPy's calls.

For a few hundred elements the time of a statement is Python's, and linearising a tree into a
program takes longer than computing it. Values, dtypes and what is kept are the same; while
counters are open the ordinary way is taken, which counts.
"""

from __future__ import annotations

import math
import sys
import weakref
from typing import Any

import numpy as np

from mirabelle.arraytypes import recording
from mirabelle.arraytypes.assign import apart
from mirabelle.arraytypes.dense import DIRECT_TREE, DenseArray, force, is_small, settle
from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.wrappers import View, shown_part
from mirabelle.backends.host.interpreter import quietly
from mirabelle.backends.host.reduce import waiting
from mirabelle.dispatch import counters, generic, verbs
from mirabelle.dispatch.schedule import operations, worth_storing
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced

_world = -1
_ours: Any = None
_reducing: Any = None
_usable = False
# The references to a node that only its parent holds, or only its reductions hold.
_alone = 1 << 30
_reduced_alone = 1 << 30


_new = object.__new__


class NotDirect(Exception):
    """The tree has something only the ordinary way knows."""


def evaluate(node: Any) -> Leaf | None:
    """The value of a small node, or None where the ordinary way must be taken."""
    if type(node) is Reduced:
        return evaluate_reduction(node)
    if counters.active or node.size > DIRECT_TREE or not is_small(node.shape, node.size) or not usable():
        return None
    try:
        return _kept(node, quietly(_value, node))
    except NotDirect:
        return None


def evaluate_reduction(node: Reduced) -> Leaf | None:
    """The value of a reduction of few elements, or None.

    It is NumPy's own, to the last bit, whatever is counted.
    """
    operand: Any = node.operand
    if (
        operand.size > DIRECT_TREE
        or not 0 < math.prod(operand.shape) <= 4 * settings.small_size
        or node.reduction.scalar is not None
        or node.reduction.neutral(node.dtype) is None
        or not usable()
    ):
        return None
    together = waiting(node)
    counted = _Counted(operand) if counters.active else None
    if type(operand) is Leaf:
        value = operand.view
    elif operand.value is not None:
        value = operand.value.view
    else:
        try:
            value = quietly(_value, operand)
        except NotDirect:
            return None
        if sys.getrefcount(operand) - len(together) > _reduced_alone:
            if worth_storing(operand):
                _kept(operand, value)
            else:
                operand.evaluations += 1
    axes = node.axes
    for r in together:
        leaf = _new(Leaf)
        leaf.view = np.asarray(quietly(_reduced, r, value, axes), r.dtype).reshape(r.shape)
        leaf.shape = r.shape
        leaf.dtype = r.dtype
        settle(r, leaf)
    if counted is not None:
        counted.done(together)
    return node.value


class _Counted:
    """What a reduction of a tree reads and writes."""

    def __init__(self, operand: Any) -> None:
        leaves: dict[Any, Leaf] = {}
        nodes: list[Broadcasted] = []
        if type(operand) is Broadcasted and operand.value is None:
            nodes = list(operations(operand))
        for x in [a for n in nodes for a in n.args or ()] or [operand]:
            leaf = x if type(x) is Leaf else getattr(x, "value", None)
            if leaf is not None:
                leaves[leaf.key()] = leaf
        self.nodes = [weakref.ref(n) for n in nodes]  # it is counted who holds them
        self.read = sum(leaf.view.nbytes for leaf in leaves.values())

    def done(self, together: list[Reduced]) -> None:
        values = [n.value for n in [*together, *[ref() for ref in self.nodes]] if n is not None]
        written = sum(leaf.view.nbytes for leaf in values if leaf is not None)
        counters.add(launches=1, bytes_read=self.read, bytes_written=written)


def _reduced(r: Reduced, value: np.ndarray, axes: tuple[int, ...]) -> Any:
    return r.reduction.ufunc.reduce(value, axis=axes)


def _kept(node: Broadcasted, value: Any) -> Leaf:
    """Give a node its value."""
    if value.__class__ is not np.ndarray:
        value = np.asarray(value)
    leaf = _new(Leaf)
    leaf.view = value
    leaf.shape = node.shape
    leaf.dtype = node.sig.out
    node.value = leaf
    node.args = None
    node.size = 0
    return leaf


def _operand(a: Any) -> Any:
    """An operand that is no leaf, as NumPy takes it."""
    if type(a) is Broadcasted:
        leaf = a.value
        if leaf is not None:
            return leaf.view
        value = _value(a)
        if sys.getrefcount(a) > _alone:
            # Somebody else holds the node: the rule of `schedule` says whether it is kept.
            if worth_storing(a):
                return _kept(a, value).view
            a.evaluations += 1
        return value
    if type(a) is Reduced:
        leaf = a.value if a.value is not None else evaluate_reduction(a)
        if leaf is None:
            raise NotDirect
        return leaf.view
    return a


def _value(node: Broadcasted) -> Any:
    ufunc, args = node.sig.direct, node.args
    if ufunc is None:
        raise NotDirect
    if args is None:  # another thread has just evaluated it
        return node.value.view  # type: ignore[union-attr]
    if len(args) == 2:
        a, b = args
        return ufunc(a.view if type(a) is Leaf else _operand(a), b.view if type(b) is Leaf else _operand(b))
    return ufunc(*[a.view if type(a) is Leaf else _operand(a) for a in args])


def _calibrate() -> None:
    """Measure the reference count, in `_value`, of a node only its parent holds."""
    global _alone, _reduced_alone
    seen: list[int] = []

    class Probe(int):
        def __lt__(self, count: object) -> bool:  # `count > _alone` asks the subclass first
            seen.append(count)  # type: ignore[arg-type]
            return False

    _alone = Probe(0)
    x = HostArray(np.zeros(2))
    for _ in range(3):
        y = verbs.add(verbs.square(x), x)
        evaluate(y._node)
    _alone = min(seen)
    _reduced_alone = Probe(0)
    seen.clear()
    for _ in range(3):
        y = verbs.sum(verbs.square(x))
        evaluate(y._node)
    _reduced_alone = min(seen)


def install() -> None:
    """Once all methods are registered."""
    global _ours, _reducing
    _ours = verbs.copyto.core.resolve((HostArray, Broadcasted))
    _reducing = verbs.copyto.core.resolve((HostArray, Reduced))
    _calibrate()
    _calibrate_writes()
    HostArray._direct = staticmethod(evaluate)  # type: ignore[assignment]


# Statements on small arrays: the general methods do the same, but ask more.

_BASIC = frozenset((int, slice, type(None), type(Ellipsis)))
# The references to a leaf, in `write_small`, that only its handle holds.
_unshared = 1


def usable() -> bool:
    """Does `copyto` do what it does by default? (Who overrides it, or watches writes, is asked, small too.)"""
    global _world, _usable
    if generic._world != _world:
        core = verbs.copyto.core
        _usable = (
            not core.active_overrides
            and core.resolve((HostArray, Broadcasted)) is _ours
            and core.resolve((HostArray, Reduced)) is _reducing
        )
        _world = generic._world
    return _usable and not recording.watchers


@verbs.getitem.generated(signature=(HostArray, int | slice | tuple))
def _(array: Any, index: type) -> Any:
    general = verbs.getitem.core.resolve((DenseArray, object)).implementation
    if not array.parameters or len(array.parameters) < 2 or index is bool or not array.ndim:
        return general
    view_type: Any = View
    views: Any = {n: view_type[array, n] for n in range(1, array.ndim + 1)}
    element_type = array.family[array.dtype, 0]

    def getitem(x: Any, index: Any) -> Any:
        node = x._node
        if type(node) is not Leaf:
            return general(x, index)
        if type(index) is tuple:
            for i in index:
                if type(i) not in _BASIC:
                    return general(x, index)
            shown = node.view[index]
        else:
            shown = node.view[index]
            index = (index,)
        if type(shown) is np.ndarray:
            shape = shown.shape
            cls = views.get(len(shape))
            if cls is None:
                return general(x, index)
            view = _new(cls)
            view._parent = x
            view._how = index if Ellipsis in index else (*index, Ellipsis)
            view._shape = shape
            return view
        leaf = _new(Leaf)
        leaf.view = np.asarray(shown)
        leaf.shape = ()
        leaf.dtype = node.dtype
        leaf.element = True
        element = _new(element_type)
        element._node = leaf
        return element

    return getitem


def small_value(value: Any, dtype: np.dtype) -> Any:
    """A value to be written, as NumPy takes it: a small tree is computed; None for the general way."""
    t = type(value)
    if t is float or t is int:
        kind = dtype.kind
        return value if kind in "fc" or (t is int and kind in "iu") else None
    if issubclass(t, np.generic):
        return value if value.dtype == dtype else None
    if issubclass(t, HostArray):
        node = value._node
        if type(node) is not Leaf:
            if node.value is not None:
                value._node = node = node.value
            elif type(node) is Reduced:  # evaluated before anything is written, in any case
                node = force(HostArray, node)
            elif node.dtype == dtype:
                node = evaluate(node)
                if node is None:
                    return None
                value._node = node
            else:
                return None
        return node.view if node.dtype == dtype else None
    if issubclass(t, View) and isinstance(value._parent, HostArray):
        part = shown_part(value)
        return part.view if type(part) is Leaf and part.dtype == dtype else None
    return None


def _unaffected(parts: list[Leaf], target: np.ndarray) -> bool:
    """Do pending trees that read these parts of some memory go on to find what they read?"""
    return not any(p.table or not apart(p.view, target) for p in parts)


def write_small(node: Any, how: Any, value: Any) -> bool:
    """Write a small value into a part of evaluated memory, if nobody else reads it; else do nothing."""
    if counters.active or node.foreign or not usable():
        return False
    view = node.view
    shape = view[how].shape
    if not is_small(shape, 8):
        return False
    new = small_value(value, view.dtype)
    if new is None:
        return False
    if type(new) is np.ndarray and new.shape != shape and new.shape != ():
        return False
    # The value let go of what it was computed from: whoever still refers to the memory reads it.
    others = 0
    if node.parts:
        parts = node.living_parts()
        others = len(parts)
        if others and not _unaffected(parts, view[how]):
            return False
        del parts
    if (
        sys.getrefcount(node) - others > _unshared
        or sys.getrefcount(view) > 3 + others + (getattr(new, "base", None) is view)
        or isinstance(view.base, np.ndarray)
    ):
        return False
    view[how] = new
    node.writes += 1
    node.reducers = None
    return True


@verbs.setitem.generated(signature=(HostArray, int | slice | tuple, object))
def _(array: Any, index: type, _value: Any) -> Any:
    general = verbs.setitem.core.resolve((DenseArray, object, object)).implementation
    if not array.parameters or len(array.parameters) < 2 or index is bool or not array.ndim:
        return general

    def setitem(x: Any, index: Any, value: Any) -> None:
        node = x._node
        if type(node) is not Leaf:
            if node.value is None:
                return general(x, index, value)
            x._node = node = node.value
        if type(index) is tuple:
            for i in index:
                if type(i) not in _BASIC:
                    del node
                    return general(x, index, value)
            how = index if Ellipsis in index else (*index, Ellipsis)
        else:
            how = (index, Ellipsis)
        if isinstance(value, View) and value._parent is x and value._how == how:
            return None  # x[i] += v ends in x[i] = x[i]
        if not write_small(node, how, value):
            del node
            general(x, index, value)
        return None

    return setitem


@verbs.assign.generated(signature=(HostArray, HostArray))
def _(array: Any, values: Any) -> Any:
    general = verbs.assign.core.resolve((DenseArray, DenseArray)).implementation
    if array is not values:
        return general

    def assign(dest: Any, value: Any, casting: str = "unsafe") -> Any:
        node, new = dest._node, value._node
        if (
            type(new) is Leaf
            and type(node) is Leaf
            and new.shape == node.shape
            and new.root is None
            and not new.foreign
            and not node.foreign
            and new.view.strides == node.view.strides
            and not counters.active
            and usable()
        ):
            dest._node = new  # both handles on one version; the next write parts them
            return dest
        if (
            type(node) is not Leaf
            or type(new) is not Broadcasted
            or new.shape != node.shape
            or node.foreign
            or counters.active
            or not usable()
            or small_value(value, node.dtype) is None
        ):
            del node, new  # the general way counts who refers to the old contents
            return general(dest, value, casting=casting)
        leaf = value._node
        if leaf.view.strides != node.view.strides:
            del node, leaf
            return general(dest, value, casting=casting)
        dest._node = leaf  # the handle takes the new contents; whoever reads the old ones keeps them
        return dest

    return assign


@verbs.assign.generated(signature=(View, HostArray))
def _(array: Any, _values: Any) -> Any:
    general = verbs.assign.core.resolve((DenseArray, DenseArray)).implementation
    if not issubclass(array.parent_type, HostArray):
        return general

    def assign(dest: Any, value: Any, casting: str = "unsafe") -> Any:
        node = dest._parent._node
        if type(node) is Leaf and value.dtype == node.dtype and write_small(node, dest._how, value):
            return dest
        del node
        return general(dest, value, casting=casting)

    return assign


def _calibrate_writes() -> None:
    """Measure, in `write_small`, the reference count of a leaf that only its handle holds."""
    global _unshared
    seen: list[int] = []

    class Probe(int):
        def __lt__(self, count: object) -> bool:
            seen.append(count)  # type: ignore[arg-type]
            return False

    _unshared = Probe(0)
    x, y = HostArray(np.zeros(4)), HostArray(np.zeros(4))
    for _ in range(3):
        x[1:] = y[1:] * 2.0
        view = x[1:]
        verbs.assign(view, y[1:] * 2.0)
    _unshared = min(seen)
