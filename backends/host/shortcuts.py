"""Trees that come back: what knows one again and runs its kernel.

`x[how] = tree` asks who else reads the old contents, makes a program of the tree and looks for its plan; a tree
that is evaluated for itself does the like, and so does a reduction. For one that comes back all this is written
down as a *statement*: what stands in the tree, who is held by others, and how the operands step through the
innermost dimension once dimensions are merged. dispatch/csrc/statements.c compares trees with it, fills in
sizes and distances, and runs the kernel where everything is as it was. Sizes are no part of it: a loop over
parts that shrink is one statement. If anything is not as it was,
nothing has happened, and the tree goes the ordinary way.
"""

from __future__ import annotations

import collections
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes import pool
from mirabelle.arraytypes.assign import apart, fallible
from mirabelle.arraytypes.dense import memory_order
from mirabelle.backends.codegen.program import program_for
from mirabelle.backends.host import layout, run
from mirabelle.backends.host.reduce import ReductionPlan, waiting
from mirabelle.backends.host.run import LaunchPlan
from mirabelle.backends.host.unchanged import usable
from mirabelle.dispatch import native
from mirabelle.dispatch.addresses import address_of
from mirabelle.dispatch.native import in_c
from mirabelle.dispatch.ops import forgetting
from mirabelle.dispatch.schedule import schedule
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced

# Statements by the sig at the root, the size of the tree, and whether it was written to a part of an array (0)
# or evaluated for itself (1); reductions by their tree (a leaf: its dtype), written (2) or evaluated (3); trees
# written to memory whose writer had looked after all else (4): those that were met last.
known: dict[Any, list[Any]] = {}
# How often trees were met that nothing knew, by the same.
_met: dict[Any, int] = {}
EACH, KINDS = 6, 1 << 12
# Of one kind, statements are written down for so many, one of so many.
_MOST, _EACH = 64, 8
forgetting.append(_met.clear)
forgetting.append(known.clear)
# What a statement can say: dimensions, things in the tree, words of the argument block.
_DIMENSIONS, _ITEMS, WORDS = 16, 64, 380
# The kinds of items in dispatch/csrc/statements.c.
_NODE, _REPEATED, _LEAF, _OWN, _SCALAR = range(5)

native.tell(empty=pool.empty, known=known)


def write(x: Any, how: Any, value: Any, times: int = 1) -> bool:
    """Do `x[how] = value`, if it was met before: False where it was not, and nothing has happened.

    It stands for so many of its kind, where others were computed without asking here.
    """
    if _settled(value._node) or hasattr(x, "_copy_of"):
        return False
    if in_c.again(known, x, how, value):
        return True
    node = value._node
    if not _settled(node):
        note(node, 0, lambda: _written(x, how, node), times)
    return False


def evaluated(node: Broadcasted | Reduced, usual: bool = False, times: int = 1) -> Leaf | None:
    """The value of a tree or reduction that was met before: None where it was not, and nothing has happened.

    `usual`: only where NumPy would give it the same order in memory. It stands for so many of its kind.
    """
    if _settled(node):
        return None
    found = in_c.evaluated_again(known, node, usual)
    if found is None:
        note(node, 1, lambda: _evaluated(node), times)
    return found  # type: ignore[no-any-return]


def stored(node: Broadcasted, target: Any) -> bool:
    """Write a tree that was met before to memory whose writer looked after aliasing: False where it was not."""
    if node.args is None:
        return False
    if in_c.stored_again(known, node, target):
        return True
    meant_for(node, target)
    return False


def meant_for(node: Broadcasted, target: Any) -> None:
    """Note a tree that was to be written to memory, and that nothing knew."""
    note(node, 4, lambda: _Stored(node, None, target).made())


def _settled(node: Any) -> bool:
    if type(node) is Broadcasted:
        return node.args is None
    return type(node) is not Reduced or node.value is not None


def note(node: Broadcasted | Reduced, way: int, make: Callable[[], Any], times: int = 1) -> None:
    """Count what nothing knew, and write it down now and then."""
    tree: Any = node
    if type(node) is Reduced:
        tree, way = node.operand, way + 2
        if tree is None:
            return
    key: Any = (tree.dtype, 0, way) if type(tree) is Leaf else (tree.sig, tree.size, way)
    before = _met.get(key, 0)
    met = _met[key] = before + times + in_c.unasked()
    # (Kernels come late, and some trees never come back alike: they are not looked at each time.)
    each = _EACH if met <= _EACH * _MOST else 64 if met < 1 << 14 else 1024
    if before // each == met // each or (
        met < settings.compile_after and math.prod(tree.shape) <= settings.small_size
    ):
        return
    if len(_met) > KINDS:
        _met.clear()
        known.clear()
    try:
        made = make()
    except (Unfit, LookupError, StopIteration):  # (or another thread has just evaluated a part of it)
        return
    # (Another list: who goes through the one that was there, in C, goes on with it.)
    known[key] = [made, *known.get(key, ())][:EACH]


# The types of numbers that a statement is told anew each time.
_NUMBERS = frozenset((float, int, complex, np.float64, np.float32))


class Unfit(Exception):
    """The tree has something that no statement says."""


def _written(x: Any, how: Any, node: Broadcasted | Reduced) -> Any:
    """The statement of a tree that is about to be written to a part of an array."""
    leaf = x._node
    if not usable() or type(leaf) is not Leaf or leaf.foreign or leaf.root is not None:
        raise Unfit
    target = leaf.view[how]
    if node.shape != target.shape or node.dtype != target.dtype:
        raise Unfit
    made: Any = _Reduction if type(node) is Reduced else Statement
    return made(node, leaf, target).made()


def _evaluated(node: Broadcasted | Reduced) -> Any:
    """The statement of a tree, or a reduction, that is about to be evaluated for itself."""
    if not usable():
        raise Unfit
    if type(node) is Reduced:
        return _Reduction(node, None, np.empty(node.shape, node.dtype)).made()
    return Statement(node, None, np.empty(node.shape, node.dtype, memory_order(node))).made()  # type: ignore[call-overload]


class Item:
    """What is asked of one operand in a tree."""

    def __init__(self, kind: int, what: Any, leaf: Leaf | None = None) -> None:
        self.kind = kind
        self.what = what
        self.uses, self.held, self.evaluated, self.stored = 0, False, False, -1
        self.leaf = leaf
        # Of what is divided: what is held of it here.
        self.local: Any = None
        self.rewritten = False
        self.word = self.same = -1
        self.copied = False
        self.dtype: Any = None

    def said(self) -> tuple[Any, ...]:
        view: Any = self.local if self.leaf is None or self.local is not None else self.leaf.view
        shape, strides = (view.shape, view.strides) if view is not None else ((), ())
        how = self.dtype.char if self.kind == _SCALAR and self.dtype.char in "df" else "?"
        size = view.itemsize if self.copied and view is not None else 0
        return (
            self.kind, self.what, self.uses, self.held, self.evaluated, self.stored, shape, strides,
            self.rewritten, self.word, self.same, how, self.dtype, size,
        )  # fmt: skip


class Statement:
    """What stands in a tree, and what is done then."""

    # May it have further results?
    stores = True

    def __init__(self, node: Any, leaf: Leaf | None, target: np.ndarray) -> None:
        if not target.ndim > 0 or node.value is not None:
            raise Unfit
        self._looked_at(node, node, leaf, target)

    def _looked_at(self, node: Any, tree: Any, leaf: Leaf | None, target: np.ndarray) -> None:
        if not target.ndim <= _DIMENSIONS >= len(tree.shape) or not target.size or fallible(tree):
            raise Unfit
        self.node, self.leaf, self.target = node, leaf, target
        self.tree, self.shape = tree, tree.shape
        self.items: list[Item] = []
        self.numbers: dict[int, Any] = {}
        self.places: dict[int, int] = {}
        # The parts of what is written to, and how many show what is written.
        self.own: list[Leaf] = []
        self.rewritten = 0
        found = in_c.inspected(tree)
        if len(found) > _ITEMS:
            raise Unfit
        self.uses = collections.Counter(id(x) for x, _, _ in found if type(x) is Broadcasted)
        holders = iter([count for _, count, _ in found])
        if type(tree) is Leaf:
            self._operands((tree,), holders)
        else:
            self._operands(self._args(tree), holders)

    @staticmethod
    def _args(node: Any) -> Any:
        if node.args is None or node.sig.op.nout > 1:
            raise Unfit
        return node.args

    def _operands(self, args: Any, holders: Iterator[int]) -> None:
        for a in args:
            count = next(holders)
            kind = type(a)
            if kind in _NUMBERS:
                self.numbers[len(self.items)] = a
                self.items.append(Item(_SCALAR, kind))
            elif kind is Leaf:
                self._leaf(a, own=a.root is self.leaf and self.leaf is not None)
            elif kind is not Broadcasted:
                raise Unfit
            elif a.value is not None:
                if self.leaf is not None and a.value.root is self.leaf:
                    raise Unfit
                self._leaf(a.value, own=False)
            elif id(a) in self.places:
                item = Item(_REPEATED, None)
                item.same = self.places[id(a)]
                self.items.append(item)
            else:
                self._node(a, count, holders)

    def _node(self, a: Any, count: int, holders: Iterator[int]) -> None:
        if a.shape != self.shape:
            raise Unfit
        item = Item(_NODE, a.sig)
        item.uses = self.uses[id(a)]
        item.held = count > item.uses
        item.evaluated = a.evaluations > 0
        self.places[id(a)] = len(self.items)
        self.items.append(item)
        before = self.rewritten
        self._operands(self._args(a), holders)
        if item.held and self.rewritten > before:
            raise Unfit  # whoever holds it would find what is written here

    def _leaf(self, a: Leaf, own: bool) -> None:
        if a.table or (own and a.foreign) or a is self.leaf or not isinstance(a.view, np.ndarray):
            raise Unfit
        item = Item(_OWN if own else _LEAF, a.view.dtype, a)
        self.items.append(item)
        if not own:
            return
        # It shows a part of what is written to: the same elements, or none of them, as it did then.
        view, target = a.view, self.target
        same = (view.shape, view.strides) == (target.shape, target.strides) and address_of(view) == address_of(
            target
        )
        if any(o is a for o in self.own) or not (same or apart(view, target)):
            raise Unfit
        self.own.append(a)
        item.rewritten = same
        self.rewritten += same

    def made(self) -> Any:
        """The statement in C."""
        request = schedule(self.node, refused, evaluates=False)
        target = self.target
        order = "F" if target.ndim > 1 and abs(target.strides[0]) < abs(target.strides[-1]) else "C"
        if request.stored and not self.stores:
            raise Unfit
        outs = [target, *[np.empty(n.shape, n.dtype, order) for n in request.stored]]  # type: ignore[call-overload]
        views = [r.view for r in request.leaves]
        program = program_for(request, tuple([o.dtype for o in outs]))
        if program.user_functions or program.places or not run.has_kernel(program):
            raise Unfit
        arrangement, rows = layout.arrange_rows(target.shape, [*outs, *views], len(outs))
        entry = run.compiled(program, arrangement, views, outs)
        if entry is None:
            raise Unfit
        plan = LaunchPlan(program, entry, arrangement, rows)
        if len(self.items) > _ITEMS or len(plan.words) > WORDS:
            raise Unfit
        results = []
        for i, node in enumerate(request.stored):
            results.append(self.places[id(node)])
            item = self.items[results[-1]]
            if not item.held:
                raise Unfit
            item.stored, item.word, item.dtype = i, plan.addresses[1 + i], node.dtype
        leaves = self._place_leaves(request, plan, len(outs), rows)
        self._place_numbers(request, plan, program)
        layouts = (
            len(arrangement.sizes), arrangement.classes, arrangement.tiled, run.meet(views, outs),
            [-1, *results, *leaves],
        )  # fmt: skip
        return in_c.Statement(
            plan.kernel.address, settings.thread_size * plan.least, list(plan.words), plan.addresses[0],
            target.dtype, [item.said() for item in self.items], plan.launch, plan.kernel, layouts,
        )  # fmt: skip

    def _place_leaves(self, request: Any, plan: Any, outs: int, copied: Sequence[int] = ()) -> list[int]:
        """Give leaves their words of the argument block; the items of what the kernel reads, in its order."""
        places: dict[Any, int] = {leaf.key(): i for i, leaf in enumerate(request.leaves)}
        first: dict[int, int] = {}
        for number, item in enumerate(self.items):
            if item.leaf is None:
                continue
            i = places[item.leaf.key()]
            if i in first:
                item.same = first[i]  # what were the same elements must be so again
            else:
                first[i] = number
                item.word = plan.addresses[outs + i]
                item.copied = outs + i in copied
        if len(first) < len(request.leaves):
            raise Unfit
        return [first[i] for i in range(len(first))]

    def _place_numbers(self, request: Any, plan: Any, program: Any) -> None:
        for number, word in self.number_words(request, plan, program).items():
            self.items[number].word = word

    def number_words(self, request: Any, plan: Any, program: Any) -> dict[int, int]:
        """The words of the argument block that numbers become: by their items."""
        words = {j: (plan.scalars + 2 * k, dtype) for k, (j, dtype) in enumerate(program.scalar_slots)}
        if len(words) < len(program.scalar_slots):  # one number in several dtypes
            raise Unfit
        first: dict[int, int] = {}
        found: dict[int, int] = {}
        for number, value in self.numbers.items():
            item = self.items[number]
            j = next(
                j
                for j, s in enumerate(request.scalars)
                if type(s) is type(value) and ((s == value and s != 0) or repr(s) == repr(value))
            )
            # (Complex numbers that are equal may differ in the sign of a zero.)
            if j not in words or (j in first and (not value or type(value) is complex)):
                raise Unfit
            at, item.dtype = words[j]
            if j in first:
                item.same = first[j]  # numbers that were equal are one argument
            else:
                first[j] = number
                found[number] = at
        if len(first) < len(words):
            raise Unfit
        return found


class _Stored(Statement):
    """What is written to memory that the tree may read, too: it has no further results."""

    stores = False


class _Reduction(Statement):
    """What stands in the tree of a reduction, and what is done then."""

    def __init__(self, node: Reduced, leaf: Leaf | None, target: np.ndarray) -> None:
        tree = node.operand
        if tree is None or node.reduction.scalar is not None or waiting(node) != [node]:
            raise Unfit
        if node.reduction.neutral(node.dtype) is None or not 0 < math.prod(tree.shape) < _for_one_thread():
            raise Unfit
        self._looked_at(node, tree, leaf, target)

    def made(self) -> Any:
        """The statement in C."""
        node, target = self.node, self.target
        request = schedule(self.tree, refused, evaluates=False)
        program = program_for(request, (node.dtype,))
        if request.stored or program.user_functions or not run.has_kernel(program):
            raise Unfit
        views = [r.view for r in request.leaves]
        plan = ReductionPlan(program, self.shape, node.axes, [node], [], views)
        if program.places or not plan.asked() or len(plan.words) > WORDS:
            raise Unfit
        leaves = self._place_leaves(request, plan, 1)
        self._place_numbers(request, plan, program)
        neutral = np.asarray(node.reduction.neutral(node.dtype), node.dtype)
        arrangement = plan.arrangement
        layouts = (len(arrangement.sizes), plan.classes, arrangement.inner_kept, plan.exact(node), leaves)
        combine = functools.partial(_combined, node.reduction.ufunc, node.reduction.neutral(node.dtype))
        return in_c.Statement(
            plan.kernel.address, _for_one_thread(), list(plan.words), plan.addresses[0], target.dtype,
            [item.said() for item in self.items], None, plan.kernel, layouts,
            node.reduction, node.axes, len(self.shape), len(arrangement.reduced), neutral.tobytes(), combine,
        )  # fmt: skip


def _for_one_thread() -> int:
    """Reductions of fewer elements are for one thread."""
    return settings.thread_size if settings.num_threads > 1 else 1 << 62


_told: tuple[int, int] | None = None


def _forget_threads(s: Any) -> None:
    """For other threads statements are written down anew."""
    global _told
    if _told != (s.num_threads, s.thread_size):
        _told = s.num_threads, s.thread_size
        known.clear()


settings.watch(_forget_threads)


def _combined(ufunc: Any, neutral: Any, partials: np.ndarray) -> np.ndarray:
    """What partial results of each row come to, in their dtype. (NumPy adds small integers as large ones.)"""
    return ReductionPlan.combined(ufunc, neutral, partials).astype(partials.dtype, copy=False)


def refused(version: Any) -> Any:
    raise Unfit
