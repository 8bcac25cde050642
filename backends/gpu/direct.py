"""Statements on a card, the short way: from a tree to its launch by one look-up.

For a few thousand elements the time of a statement is Python's. So trees of few operations, held by
nobody else, are not scheduled each time: what they are made of gives the key of a plan, which was
made when the tree was first met. Values, and what is written where, are the same; while counters
are open the ordinary way is taken, which counts.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from mirabelle.arraytypes.assign import apart as are_apart
from mirabelle.arraytypes.dense import VIEWS, DenseArray, compute, compute_by_copyto, settle
from mirabelle.arraytypes.gpu import GPUArray
from mirabelle.arraytypes.proxies import is_of_numbers
from mirabelle.arraytypes.wrappers import View, shown_part
from mirabelle.backends.codegen.element import scalar_values
from mirabelle.backends.codegen.program import Program, program_for
from mirabelle.backends.gpu import shortcuts
from mirabelle.backends.gpu.reduce import planned
from mirabelle.backends.gpu.run import make_plan
from mirabelle.backends.host.reduce import waiting
from mirabelle.dispatch import counters, generic, verbs
from mirabelle.dispatch.ops import TABLE, forgetting
from mirabelle.dispatch.promotion import intern
from mirabelle.dispatch.schedule import SCALAR, Request, dag_cost, hoisted, worth_storing
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced, evaluating, may_write, new_leaf

# Trees of more operations are scheduled: their parts may be worth storing.
LARGEST = 24

_new = object.__new__
_world = -1
_usable = False


# What takes part by value.
_NUMBERS = frozenset((float, int, bool, complex)) | {
    t for t in np.sctypeDict.values() if issubclass(t, (np.bool_, np.number))
}


# What is one number, `norm(x)` say, is computed again for each element of a tree that reads it, and not by a
# launch of its own, up to this cost.
LAUNCH = 60


class NotDirect(Exception):
    """The tree has something only the ordinary way knows."""


def _element(node: Any) -> Leaf | None:
    """The leaf of a pending x[i], which shows one element; None for all else."""
    if node.shape or node.sig.op.name != "copy" or not node.args or type(node.args[0]) is not Leaf:
        return None
    leaf: Leaf = node.args[0]
    return None if leaf.shape else leaf


def _walk(
    node: Any, shape: tuple[int, ...], key: list[Any], leaves: list[Leaf], scalars: list[Any], apart: list[Any]
) -> None:
    """Write down what a tree is made of: the key of its plan, its leaves in order, and its scalars.

    `apart` gets the nodes that somebody else holds, and leaves that are values of nodes.
    """
    a: Any
    key.append(node.sig.id)
    for a in node.args:
        t = type(a)
        if t is Broadcasted:
            if a.value is None:
                one = _element(a) if shape else None
                if one is not None:
                    # Beside arrays, it is read where it lies.
                    a = one
                    if a not in leaves:
                        leaves.append(a)
                        key.append(a.view.layout)
                    else:
                        key.append(~leaves.index(a))
                    continue
                if a.shape != shape and (
                    hoisted(a, shape) if a.shape else a.evaluations or dag_cost(a) > LAUNCH
                ):
                    raise NotDirect
                if a.holders > 1:
                    # Somebody else holds it: the rule of `schedule` says whether it is stored.
                    if worth_storing(a):
                        raise NotDirect
                    apart.append(a)
                _walk(a, shape, key, leaves, scalars, apart)
                continue
            a = a.value
            apart.append(a)
        elif t is not Leaf:
            if t in _NUMBERS:
                scalars.append(a)
                key.append(t)
                continue
            if t is not Reduced or (a.value is None and not _computed(a)):
                raise NotDirect
            a = a.value
            apart.append(a)
        if a in leaves:
            key.append(~leaves.index(a))
        else:
            leaves.append(a)
            view = a.view
            key.append(view._layout or view.layout)


# The key of a tree, its leaves, its scalars, and what is apart: see `_walk`.
_Walked = tuple[list[Any], list[Leaf], list[Any], list[Any]]


def _walked(node: Any, shape: tuple[int, ...]) -> _Walked | None:
    """What a tree is made of; None where it has something only the ordinary way knows."""
    found: _Walked = [], [], [], []
    try:
        _walk(node, shape, *found)
    except NotDirect:
        return None
    return found


def _computed(node: Reduced) -> bool:
    """Compute a reduction that a tree reads, before it."""
    if _reduced(node) is None:
        return False
    if counters.active:
        counters.add(temporaries=1)
    return True


class _Plan:
    """A tree's launch: what is left is to say where operands are, and the values of scalars."""

    __slots__ = ("plain", "program", "read", "run", "shortcut", "written")

    def __init__(self, program: Program, run: Any, out: Any, views: list[Any]) -> None:
        self.program = program
        # What a launch moves, in bytes.
        self.read, self.written = program.bytes_read(views), out.nbytes
        self.run = run
        self.shortcut = shortcuts.Shortcut()
        # Scalars go as they are, where all are doubles and each is used once.
        slots = [(j, d.char) for j, d in program.scalar_slots]
        self.plain = slots == [(j, "d") for j in range(len(slots))]

    def values(self, scalars: list[Any]) -> list[Any]:
        return scalars if self.plain else scalar_values(self.program, scalars)

    def compute(self, out: Any, leaves: list[Leaf], scalars: list[Any], apart: list[Any]) -> None:
        """Compute a tree of these leaves and numbers; others hold nodes `apart`."""
        self.run(out.ptr, *[leaf.view.ptr for leaf in leaves], *self.values(scalars))
        if counters.active:
            counters.launched(self.read, self.written)
        if apart:
            _again(apart)


_plans: dict[Any, Any] = {}
_known = shortcuts.known
forgetting.append(_plans.clear)
forgetting.append(_known.clear)


def _plan(root: Any, key: list[Any], leaves: list[Leaf], scalars: list[Any], out: Any) -> Any:
    """The plan of a tree that was walked; False where the ordinary way must be taken."""
    key.append(out._layout or out.layout)
    found = _plans.get(tuple(key))
    if found is None:
        found = _elementwise(root, leaves, scalars, out)
        _keep(key, found)
    return found


def _keep(key: list[Any], plan: Any) -> None:
    if len(_plans) > 1 << 16:
        _plans.clear()
    _plans[tuple(key)] = plan


def _elementwise(root: Any, leaves: list[Leaf], scalars: list[Any], out: Any) -> Any:
    program = _program(root, leaves, scalars, out.shape, (out.dtype,), 1)
    if program is None:
        return False
    operands = [out, *[leaf.view for leaf in leaves]]
    aligned = not any(v.ptr & 15 for v in operands)
    return _Plan(program, make_plan(out.family, program, operands, 1, aligned), out, operands[1:])


def _program(
    root: Any, leaves: list[Leaf], scalars: list[Any], shape: Any, dtypes: tuple[Any, ...], results: int
) -> Program | None:
    """The program of a tree whose leaves and scalars are numbered as they were met."""
    steps: list[tuple[int, ...]] = []
    try:
        top = -1 if type(root) is Leaf else _step(root, leaves, steps, iter(range(len(scalars))))
    except NotDirect:
        return None
    request = Request((tuple(steps), (top,) * results), leaves, scalars, shape, [])
    return program_for(request, dtypes)


# (No closure: one that calls itself is a cycle, and would go on holding the leaves.)
def _step(node: Any, leaves: list[Any], steps: list[tuple[int, ...]], numbers: Iterator[int]) -> int:
    """The number of the step that computes a node, written down after those it needs."""
    if node.sig.op.nout != 1 or node.sig.op.name.startswith("pick"):
        raise NotDirect
    refs: list[Any] = [node.sig]
    a: Any
    for a in node.args:
        if type(a) is Broadcasted and a.value is None:
            one = _element(a) if node.shape else None
            if one is not None:
                refs.append(-1 - leaves.index(one))
                continue
            refs.append(_step(a, leaves, steps, numbers))
        elif type(a) in (Leaf, Broadcasted, Reduced):
            refs.append(-1 - leaves.index(a if type(a) is Leaf else a.value))
        else:
            refs.append(SCALAR + next(numbers))
    step = tuple(refs)
    if step in steps:
        return steps.index(step)
    steps.append(step)
    return len(steps) - 1


@compute.method
def _(family: type[GPUArray], version: Any) -> Leaf:
    return evaluate(version) or compute_by_copyto(family, version)


def evaluate(node: Any) -> Leaf | None:
    """The value of a pending tree, or None where the ordinary way must be taken."""
    if (generic._world != _world and not usable()) or not _usable:
        return None
    if type(node) is not Broadcasted:
        return _reduced(node) if type(node) is Reduced else None
    if node.size > LARGEST:
        return None
    shape = node.shape
    walked = _walked(node, shape)
    if walked is None or 0 in shape:
        return None
    key, leaves, scalars, apart = walked
    full = next((i for i, leaf in enumerate(leaves) if leaf.shape == shape), None)
    if full is None:
        return None
    out = None
    if not apart and not leaves[full].view.family.driver().recorders:
        # (A graph that wrote over what it reads would compute something else each time it is replayed.)
        out = _dying(leaves, key, shape, node.sig.out)
    if out is None:
        first = leaves[full].view
        order = "C" if first.contiguous or not first.flags.f_contiguous else "F"
        out = first.family._empty(shape, node.sig.out, order)
    plan = _plan(node, key, leaves, scalars, out)
    if plan is False:
        return None
    plan.compute(out, leaves, scalars, apart)
    return _settled(node, out)


def _dying(leaves: list[Leaf], key: list[Any], shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """The memory of an operand that goes with the tree: the result is written over it."""
    for i, leaf in enumerate(leaves):
        # (No array has it: it is held by each node that reads it.)
        if (
            leaf.shape == shape
            and leaf.dtype == dtype
            and leaf.view.contiguous
            and not (leaf.foreign or leaf.table or leaf.parts)
            and may_write(leaf, key.count(~i))
        ):
            return leaf.view
    return None


def _settled(node: Any, out: Any) -> Leaf:
    leaf = new_leaf(Leaf)
    leaf.view = out
    leaf.shape = out.shape
    leaf.dtype = out.dtype
    return settle(node, leaf)


def _again(apart: list[Any]) -> None:
    for node in apart:
        if type(node) is Broadcasted:
            node.evaluations += 1


def _reduced(node: Any, target: Any = None, owner: Any = None) -> Any:
    """The value of a pending reduction, or None.

    With a `target`, part of the memory of the leaf `owner`, the value goes there, and the answer is
    whether it did.
    """
    operand, reduction = node.operand, node.reduction
    if reduction.scalar is not None or operand.size > LARGEST:
        return None
    if operand.reducers and len(operand.reducers) > 1 and len(waiting(node)) > 1:
        return None
    shape = operand.shape
    walked: _Walked | None
    if type(operand) is Leaf or operand.value is not None:
        root: Any = operand if type(operand) is Leaf else operand.value
        walked = [root.view.layout], [root], [], []
    else:
        root = operand
        if type(root) is not Broadcasted or (root.holders > 1 and worth_storing(root)):
            return None
        walked = _walked(root, shape)
        if walked is not None and root.holders > 1:
            walked[3].append(root)
    if walked is None:
        return None
    key, leaves, scalars, apart = walked
    if not leaves or 0 in shape or reduction.neutral(node.dtype) is None:
        return None
    family = leaves[0].view.family
    if target is None:
        out = family._empty(node.shape, node.dtype)
    else:
        out = target
        for x in leaves:
            if x is owner or x.root is owner:
                return None
    key += (out._layout or out.layout, reduction.name, node.axes, shape)
    plan: Any = _plans.get(tuple(key))
    if plan is None:
        program = _program(root, leaves, scalars, shape, (node.dtype,), 1)
        if program is None:
            plan = False
        else:
            operands = [out, *[leaf.view for leaf in leaves]]
            run = planned(family, program, shape, node.axes, [node], operands, 1, 0)
            plan = _Plan(program, run, out, operands[1:])
        _keep(key, plan)
    if plan is False:
        return None
    plan.run([out.ptr, *[leaf.view.ptr for leaf in leaves]], plan.values(scalars), family)
    if counters.active:
        counters.launched(plan.read, plan.written)
    if apart:
        _again(apart)
    return _settled(node, out) if target is None else True


def usable() -> bool:
    """Does `copyto` do what it does by default, and nobody override `assign`?"""
    global _world, _usable
    if generic._world != _world:
        core = verbs.copyto.core
        families = [f for f in set(VIEWS.values()) if issubclass(f, GPUArray)]
        overridden = core.active_overrides or verbs.assign.core.active_overrides
        _usable = not overridden and not any(
            core.resolve((f, t)).is_users for f in families for t in (Broadcasted, Reduced)
        )
        _world = generic._world
    return _usable


def write(dest: Any, value: Any) -> bool:
    """Write a tree over all of an array, in place, if nobody else reads what was there."""
    node = value._node
    if hasattr(dest, "_copy_of"):
        return False
    if type(node) is Broadcasted:
        again = _known.get((node.sig, node.size))
        if again is not None and again(dest, node):
            return True
    return evaluating(_write, dest, node)  # type: ignore[no-any-return]


def _write(dest: Any, node: Any) -> bool:
    leaf = dest._node
    if (
        type(node) is not Broadcasted
        or type(leaf) is not Leaf
        or node.value is not None
        or leaf.foreign
        or leaf.root is not None
        or (generic._world != _world and not usable())
        or not _usable
        or node.size > LARGEST
    ):
        return False
    shape = leaf.shape
    out = node.sig.out
    if node.shape != shape or (out is not leaf.dtype and out != leaf.dtype):
        return False
    walked = _walked(node, shape)
    if walked is None:
        return False
    key, leaves, scalars, apart = walked
    reads = key.count(~leaves.index(leaf)) + 1 if leaf in leaves else 0
    if not leaves or not leaf.view.size:
        return False
    # (What was added in `x += y` is still held by Python, and may read x.)
    read_on = bool(reads and apart) and _reached(apart, leaf)
    if read_on or (leaf.parts and leaf.held_parts()) or not may_write(leaf, reads):
        return _swapped(dest, leaf, node)
    plan = _plan(node, key, leaves, scalars, leaf.view)
    if plan is False:
        return False
    if not apart and plan.plain:
        plan.shortcut.used(node, leaf, plan, _world)
    plan.compute(leaf.view, leaves, scalars, apart)
    _note_write(leaf)
    node.value = leaf
    node.args = None
    node.size = 0
    return True


def _note_write(leaf: Leaf) -> None:
    """The memory of a leaf was written: what was found out about it holds no longer."""
    leaf.writes += 1
    leaf.reducers = leaf.known = None


def _swapped(dest: Any, leaf: Leaf, node: Any) -> bool:
    """Write a tree to other memory, which the array has from then on: somebody still reads its own."""
    if type(dest).family.driver().recorders:
        return False  # what a graph replays stays where it is
    made = evaluate(node)
    if made is None or made.view.strides != leaf.view.strides:
        return False
    dest._node = made
    return True


def write_part(dest: Any, how: Any, value: Any) -> bool:
    """Write a value over a part of an array, in place, if nobody else reads what was there."""
    return evaluating(_write_part, dest, how, value)  # type: ignore[no-any-return]


def _write_part(dest: Any, how: Any, value: Any) -> bool:
    leaf = dest._node
    if (
        type(leaf) is not Leaf
        or leaf.foreign
        or leaf.root is not None
        or hasattr(dest, "_copy_of")
        or (generic._world != _world and not usable())
        or not _usable
    ):
        return False
    target = leaf.view[how]
    shape = target.shape
    if issubclass(type(value), GPUArray):
        waits = value._node
        if (
            type(waits) is Reduced
            and waits.value is None
            and waits.shape == shape
            and waits.dtype == leaf.dtype
            and not leaf.parts
            and may_write(leaf)
            and target.size
            and type(value).family is type(dest).family
            and _reduced(waits, target, leaf)
        ):
            _note_write(leaf)
            return True
    node = _source(value, type(dest).family, leaf.dtype, shape)
    if node is None or node.size > LARGEST or not target.size:
        return False
    walked = _walked(node, shape)
    if walked is None:
        return False
    key, leaves, scalars, apart = walked
    parts = leaf.held_parts() if leaf.parts else []
    if leaf in leaves or not may_write(leaf):
        return False
    if not _undisturbed(parts, leaves, target):
        return False
    reads = any(x.root is leaf for x in leaves) if parts else False
    if reads and apart and _reached(apart, leaf, target):
        return False  # somebody holds a part of the tree, and would read what was written
    plan = _plan(node, key, leaves, scalars, target)
    if plan is False:
        return False
    plan.compute(target, leaves, scalars, apart)
    _note_write(leaf)
    if reads:
        # Who holds the value finds it where it was written, and not what it was made of.
        settle(node, Leaf(target, root=leaf))
    else:
        node.evaluations += 1
    return True


def _reached(held: list[Any], leaf: Leaf, target: Any = None) -> bool:
    """Does one of these nodes read some of a leaf's memory (of `target`, a view of it), or lie there?"""
    stack = list(held)
    while stack:
        x = stack.pop()
        if type(x) is Leaf:
            if x is leaf or (x.root is leaf and (target is None or not are_apart(x.view, target))):
                return True
        elif type(x) is Broadcasted:
            stack += [x.value] if x.value is not None else x.args or ()
        elif type(x) is Reduced and x.value is not None:
            stack.append(x.value)
    return False


def _undisturbed(parts: list[Leaf], leaves: list[Leaf], target: Any) -> bool:
    """Do those who read parts of an array go on to find what they read, when another part is written?

    The tree that is written, and no other, may read what it writes, element on element.
    """
    for part in parts:
        view = part.view
        if part.table or not (
            are_apart(view, target)
            or (part in leaves and part.holders < 2 and view.ptr == target.ptr and view.layout == target.layout)
        ):
            return False
    return True


def _source(value: Any, family: Any, dtype: np.dtype, shape: tuple[int, ...]) -> Any:
    """What is written, as a tree of the target's shape and dtype; None for what is not as simple."""
    t = type(value)
    if t is float or t is int:
        if dtype.kind == "f":
            if t is int and not -(1 << 53) <= value <= 1 << 53:
                return None
        elif t is float or dtype.kind not in "iu" or not _LIMITS[dtype][0] <= value <= _LIMITS[dtype][1]:
            return None
        return Broadcasted(_copy(dtype), (value,), shape, 1)
    if issubclass(t, GPUArray):
        if t.family is not family:
            return None
        node: Any = value._node
        if type(node) is Broadcasted and node.value is None:
            one = _element(node)
            if one is not None:
                return _source_leaf(one, dtype, shape)
            return node if node.shape == shape and node.sig.out == dtype else None
        node = verbs.leaf_of(value) if type(node) is not Leaf else node
    elif issubclass(t, View) and isinstance(value._parent, GPUArray) and type(value._parent).family is family:
        node = shown_part(value)
        if type(node) is not Leaf:
            return None
    else:
        return None
    return _source_leaf(node, dtype, shape)


def _source_leaf(leaf: Leaf, dtype: np.dtype, shape: tuple[int, ...]) -> Any:
    if (leaf.shape != shape and leaf.shape) or leaf.dtype != dtype or leaf.foreign:
        return None
    return Broadcasted(_copy(dtype), (leaf,), shape, 1)


_LIMITS = {
    np.dtype(c): (int(np.iinfo(c).min), int(np.iinfo(c).max))
    for c in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
}


@functools.cache
def _copy(dtype: np.dtype) -> Any:
    return intern(TABLE["copy"], (dtype,), (dtype,))


_BASIC = frozenset((int, slice, type(None), type(Ellipsis)))


@verbs.getitem.generated(signature=(GPUArray, int | slice | tuple))
def _(array: Any, index: type) -> Any:
    general = verbs.getitem.core.resolve((DenseArray, object)).implementation
    if not array.parameters or len(array.parameters) < 2 or index is bool or not array.ndim:
        return general
    view_type: Any = View
    views: dict[int, Any] = {}

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
        if not is_of_numbers(how):
            return general(x, index)
        shape = node.view[how].shape
        cls = views.get(len(shape))
        if cls is None:
            if not shape:
                return general(x, index)  # one element
            cls = views[len(shape)] = view_type[array, len(shape)]
        view = _new(cls)
        view._parent = x
        view._how = how
        view._shape = shape
        return view

    return getitem


@verbs.setitem.generated(signature=(GPUArray, int | slice | tuple, object))
def _(array: Any, index: type, _value: Any) -> Any:
    general = verbs.setitem.core.resolve((DenseArray, object, object)).implementation
    if not array.parameters or len(array.parameters) < 2 or index is bool or not array.ndim:
        return general

    rank = array.parameters[1]

    def setitem(x: Any, index: Any, value: Any) -> None:
        parts = index if type(index) is tuple else (index,)
        kinds = [type(i) for i in parts]
        if kinds.count(int) == rank or not _BASIC.issuperset(kinds):
            return general(x, index, value)  # (writing a single element may be refused)
        how = parts if Ellipsis in parts else (*parts, Ellipsis)
        if isinstance(value, View) and value._parent is x and value._how == how:
            return None  # x[i] += v ends in x[i] = x[i]
        if not write_part(x, how, value):
            general(x, index, value)
        return None

    return setitem


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


@verbs.assign.generated(signature=(View, GPUArray))
def _(array: Any, _values: Any) -> Any:
    general = verbs.assign.core.resolve((DenseArray, DenseArray)).implementation
    if not issubclass(array.parent_type, GPUArray):
        return general

    def assign(dest: Any, value: Any, casting: str = "unsafe") -> Any:
        if write_part(dest._parent, dest._how, value):
            return dest
        return general(dest, value, casting=casting)

    return assign


@verbs.setitem.generated(signature=(GPUArray, type(Ellipsis), object))
def _(array: Any, _index: type, values: Any) -> Any:
    if array is values:

        def setitem(x: Any, index: Any, value: Any) -> None:
            node = value._node
            if type(node) is Broadcasted and not hasattr(x, "_copy_of"):  # (as `write` begins)
                again = _known.get((node.sig, node.size))
                if again is not None and again(x, node):
                    return
            if not write(x, value):
                verbs.assign(x, value)

    else:

        def setitem(x: Any, index: Any, value: Any) -> None:
            if not write_part(x, (Ellipsis,), value):
                verbs.assign(x, value)

    return setitem
