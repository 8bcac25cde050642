"""Statements on a card, the short way: from a tree to its launch by one look-up.

For a few thousand elements the time of a statement is Python's. So trees of few operations, held by
nobody else, are not scheduled each time: what they are made of gives the key of a plan, which was
made when the tree was first met. Values, and what is written where, are the same; while counters
are open the ordinary way is taken, which counts.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from mirabelle.arraytypes.dense import VIEWS, DenseArray
from mirabelle.arraytypes.gpu import CuArray, GPUArray
from mirabelle.arraytypes.wrappers import View
from mirabelle.backends.codegen.element import scalar_values
from mirabelle.backends.codegen.program import Program, program_for
from mirabelle.backends.gpu.run import make_plan
from mirabelle.dispatch import counters, generic, verbs
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.promotion import signature
from mirabelle.dispatch.schedule import SCALAR, Request, worth_storing
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced

# Trees of more operations are scheduled: their parts may be worth storing.
LARGEST = 24

_new = object.__new__
# The references to a node, in `_walk`, that only its parent holds; to a leaf, in `write`, of its handle.
_alone = 1 << 30
_unshared = -1
_world = -1
_usable = False
_default: Any = None


class NotDirect(Exception):
    """The tree has something only the ordinary way knows."""


class _Met:
    """What a walk meets: leaves in order, and scalars."""

    __slots__ = ("held", "key", "leaves", "pointers", "scalars", "valued")

    def __init__(self) -> None:
        self.key: list[Any] = []
        self.leaves: list[Leaf] = []
        self.pointers: list[int] = []
        self.scalars: list[Any] = []
        # Nodes that somebody else holds, and leaves that are values of nodes.
        self.held: list[Any] = []
        self.valued: list[Leaf] = []


def _walk(node: Any, shape: tuple[int, ...], met: _Met) -> None:
    key = met.key
    key.append(node.sig.id)
    for a in node.args:
        t = type(a)
        if t is Broadcasted:
            if a.value is None:
                if a.shape != shape:
                    raise NotDirect
                if sys.getrefcount(a) > _alone:
                    # Somebody else holds it: the rule of `schedule` says whether it is stored.
                    if worth_storing(a):
                        raise NotDirect
                    met.held.append(a)
                _walk(a, shape, met)
                continue
            a = a.value
            met.valued.append(a)
        elif t is not Leaf:
            if t is float or t is int:
                met.scalars.append(a)
                key.append(t)
                continue
            if t is not Reduced or a.value is None:
                raise NotDirect
            a = a.value
            met.valued.append(a)
        leaves = met.leaves
        if a in leaves:
            key.append(~leaves.index(a))
        else:
            view = a.view
            leaves.append(a)
            met.pointers.append(view.ptr)
            key.append(view._layout or view.layout)


class _Plan:
    """A tree's launch: what is left is to say where operands are, and the values of scalars."""

    __slots__ = ("plain", "program", "run")

    def __init__(self, program: Program, run: Any) -> None:
        self.program = program
        self.run = run
        # Scalars go as they are, where all are doubles and each is used once.
        slots = [(j, d.char) for j, d in program.scalar_slots]
        self.plain = slots == [(j, "d") for j in range(len(slots))]

    def __call__(self, pointers: list[int], scalars: list[Any]) -> None:
        if not scalars:
            self.run(*pointers)
        elif self.plain:
            self.run(*pointers, *scalars)
        else:
            self.run(*pointers, *scalar_values(self.program, scalars))


_plans: dict[Any, Any] = {}


def run(family: Any, node: Any, met: _Met, out: Any) -> bool:
    """Write a tree that was walked into `out`; False where the ordinary way must be taken."""
    key, pointers = met.key, met.pointers
    pointers.insert(0, out.ptr)
    odd = 0
    for p in pointers:
        odd |= p
    key.append(out._layout or out.layout)
    key.append(odd & 15 == 0)
    key.append(family)
    found = _plans.get(tuple(key))
    if found is None:
        found = _made(family, node, met, out, odd & 15 == 0)
        if len(_plans) > 1 << 16:
            _plans.clear()
        _plans[tuple(key)] = found
    if found is False:
        return False
    found(pointers, met.scalars)
    for held in met.held:
        held.evaluations += 1
    return True


def _made(family: Any, root: Any, met: _Met, out: Any, aligned: bool) -> Any:
    """The plan of a tree; False if it is none for the short way."""
    steps: list[tuple[int, ...]] = []
    scalars = iter(range(len(met.scalars)))

    def visit(node: Any) -> int:
        refs = [node.sig.id]
        if node.sig.op.nout != 1 or node.sig.op.name.startswith("pick"):
            raise NotDirect
        for a in node.args:
            if type(a) is Broadcasted and a.value is None:
                refs.append(visit(a))
            elif type(a) in (Leaf, Broadcasted, Reduced):
                refs.append(-1 - met.leaves.index(a if type(a) is Leaf else a.value))
            else:
                refs.append(SCALAR + next(scalars))
        step = tuple(refs)
        if step in steps:
            return steps.index(step)
        steps.append(step)
        return len(steps) - 1

    try:
        top = visit(root)
    except NotDirect:
        return False
    request = Request((tuple(steps), (top,)), met.leaves, met.scalars, out.shape, [])
    program = program_for(request, (out.dtype,))
    plan = make_plan(family, program, [out, *[leaf.view for leaf in met.leaves]], 1, aligned)
    return _Plan(program, plan)


def evaluate(node: Any) -> Leaf | None:
    """The value of a pending tree, or None where the ordinary way must be taken."""
    if type(node) is not Broadcasted or node.size > LARGEST or counters.active or not usable():
        return None
    met = _Met()
    shape = node.shape
    try:
        _walk(node, shape, met)
    except NotDirect:
        return None
    if not met.leaves or 0 in shape:
        return None
    family = type(met.leaves[0].view).family
    first = met.leaves[0].view
    if first.shape == shape:
        order = "C" if first.contiguous or not first.flags.f_contiguous else "F"
    else:
        return None
    out = family._empty(shape, node.sig.out, order)
    if not run(family, node, met, out):
        return None
    leaf = _new(Leaf)
    leaf.view = out
    leaf.shape = shape
    leaf.dtype = out.dtype
    node.value = leaf
    node.args = None
    node.size = 0
    return leaf


def usable() -> bool:
    """Does `copyto` do what it does by default?"""
    global _world, _usable
    if generic._world != _world:
        core = verbs.copyto.core
        families = [f for f in set(VIEWS.values()) if issubclass(f, GPUArray)]
        _usable = not core.active_overrides and all(
            core.resolve((f, Broadcasted)) is _default for f in families
        )
        _world = generic._world
    return _usable


def write(dest: Any, value: Any) -> bool:
    """Write a tree over all of an array, in place, if nobody else reads what was there."""
    leaf, node = dest._node, value._node
    if (
        type(node) is not Broadcasted
        or node.value is not None
        or type(leaf) is not Leaf
        or leaf.foreign
        or leaf.parts
        or leaf.root is not None
        or node.size > LARGEST
        or node.shape != leaf.shape
        or node.sig.out != leaf.dtype
        or counters.active
        or not usable()
    ):
        return False
    met = _Met()
    try:
        _walk(node, leaf.shape, met)
    except NotDirect:
        return False
    view = leaf.view
    if not met.leaves or not view.size or leaf in met.valued:
        return False  # (who holds the node of a value is for the ordinary way to find out)
    # Each read of the array itself is held by a node, and the first of them by what was met.
    reads = met.key.count(~met.leaves.index(leaf)) + 2 if leaf in met.leaves else 0
    if sys.getrefcount(leaf) - reads > _unshared or sys.getrefcount(view) > _viewed:
        return False
    for other in met.leaves:
        if other.root is leaf:
            return False
    if not run(type(dest).family, node, met, view):
        return False
    leaf.writes += 1
    leaf.reducers = None
    leaf.known = None
    node.value = leaf
    node.args = None
    node.size = 0
    return True


def write_part(dest: Any, how: Any, value: Any) -> bool:
    """Write a tree over a part of an array, in place, if nobody else reads what was there."""
    leaf, node = dest._node, value._node
    if (
        type(node) is not Broadcasted
        or node.value is not None
        or type(leaf) is not Leaf
        or leaf.foreign
        or leaf.root is not None
        or node.size > LARGEST
        or node.sig.out != leaf.dtype
        or counters.active
        or not usable()
        or (leaf.parts and leaf.living_parts())
    ):
        return False
    target = leaf.view[how]
    if node.shape != target.shape or not target.size:
        return False
    met = _Met()
    try:
        _walk(node, target.shape, met)
    except NotDirect:
        return False
    if (
        not met.leaves
        or leaf in met.leaves
        or sys.getrefcount(leaf) > _unshared
        or sys.getrefcount(leaf.view) >= _viewed
    ):
        return False
    for other in met.leaves:
        if other.root is leaf:
            return False
    if not run(type(dest).family, node, met, target):
        return False
    leaf.writes += 1
    leaf.reducers = None
    leaf.known = None
    node.evaluations += 1
    return True


_BASIC = frozenset((int, slice, type(None), type(Ellipsis)))


@verbs.getitem.generated(signature=(GPUArray, int | slice | tuple))
def _(array: Any, index: type) -> Any:
    general = verbs.getitem.core.resolve((DenseArray, object)).implementation
    if not array.parameters or len(array.parameters) < 2 or index is bool or not array.ndim:
        return general
    view_type: Any = View
    views: Any = {n: view_type[array, n] for n in range(1, array.ndim + 1)}

    def getitem(x: Any, index: Any) -> Any:
        node = x._node
        if type(node) is not Leaf:
            return general(x, index)
        if type(index) is tuple:
            for i in index:
                if type(i) not in _BASIC:
                    return general(x, index)
            how = index if Ellipsis in index else (*index, Ellipsis)
        else:
            how = (index, Ellipsis)
        shape = node.view[how].shape
        cls = views.get(len(shape))
        if cls is None:
            return general(x, index)  # one element, or more dimensions than the array has
        view = _new(cls)
        view._parent = x
        view._how = how
        view._shape = shape
        return view

    return getitem


@verbs.setitem.generated(signature=(GPUArray, int | slice | tuple, GPUArray))
def _(array: Any, index: type, _value: Any) -> Any:
    general = verbs.setitem.core.resolve((DenseArray, object, object)).implementation
    if not array.parameters or len(array.parameters) < 2 or index is bool or not array.ndim:
        return general

    def setitem(x: Any, index: Any, value: Any) -> None:
        if type(index) is tuple:
            for i in index:
                if type(i) not in _BASIC:
                    return general(x, index, value)
            how = index if Ellipsis in index else (*index, Ellipsis)
        else:
            how = (index, Ellipsis)
        if not write_part(x, how, value):
            general(x, index, value)
        return None

    return setitem


# The references to a view that only its leaf holds, in `write`.
_viewed = 1 << 30


@verbs.assign.generated(signature=(GPUArray, GPUArray))
def _(array: Any, values: Any) -> Any:
    general = verbs.assign.core.resolve((DenseArray, DenseArray)).implementation
    if array is not values:
        return general

    def assign(dest: Any, value: Any, casting: str = "unsafe") -> Any:
        if write(dest, value):
            return dest
        return general(dest, value, casting=casting)

    return assign


@verbs.setitem.generated(signature=(GPUArray, type(Ellipsis), GPUArray))
def _(array: Any, _index: type, values: Any) -> Any:
    if array is not values:
        return verbs.setitem.core.resolve((DenseArray, object, object)).implementation

    def setitem(x: Any, index: Any, value: Any) -> None:
        if not write(x, value):
            verbs.assign(x, value)

    return setitem


def install() -> None:
    """Once all methods are registered: measure reference counts, and be asked."""
    global _default, _alone, _unshared, _viewed
    _default = verbs.copyto.core.resolve((CuArray, Broadcasted))
    seen: list[int] = []
    measured: list[int] = []

    class Probe(int):
        def __lt__(self, count: object) -> bool:
            seen.append(count)  # type: ignore[arg-type]
            return False

    class Nowhere:
        shape = (2,)
        dtype = np.dtype(np.float64)
        size = 2
        ptr = 0
        layout = _layout = 1

    square, add = signature(TABLE["square"], (Nowhere.dtype,)), signature(TABLE["add"], (Nowhere.dtype,) * 2)

    class Handle:
        def __init__(self, node: Any) -> None:
            self._node = node

    def tree(leaf: Leaf) -> Any:
        return Handle(Broadcasted(add, (Broadcasted(square, (leaf,), (2,)), leaf), (2,)))

    other: Any = Leaf(Nowhere())
    _alone = Probe(0)
    for _ in range(3):
        _walk(tree(other)._node, (2,), _Met())
    _alone = min(seen)
    # The comparison that says "too many" ends the attempt, before anything is launched.
    for name in ("_unshared", "_viewed"):
        counts: list[int] = []
        _unshared = _viewed = 1 << 30
        globals()[name] = _Refusing(counts)
        for _ in range(3):
            write(Handle(Leaf(Nowhere())), tree(other))
        measured.append(min(counts))
    _unshared, _viewed = measured
    GPUArray._direct = staticmethod(evaluate)  # type: ignore[assignment]


class _Refusing(int):
    """A limit that notes what is compared with it, and that everything exceeds."""

    _seen: list[int]

    def __new__(cls, seen: list[int]) -> Any:
        made = super().__new__(cls, 0)
        made._seen = seen
        return made

    def __lt__(self, count: object) -> bool:  # `count > limit` asks the subclass first
        self._seen.append(count)  # type: ignore[arg-type]
        return True


