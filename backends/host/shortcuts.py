"""Statements that come back: what knows one again and runs its kernel, in one straight line of Python.

`x[how] = tree` asks who else reads the old contents, makes a program of the tree and looks for its plan. For a
statement that comes back with arrays of the same layouts these questions are written out as a function, with
the sigs and layouts in it. If all are answered as they were, it runs the kernel; if one is not, nothing has
happened, and the statement goes the ordinary way.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import getrefcount
from typing import Any

import numpy as np

from mirabelle.arraytypes import recording
from mirabelle.arraytypes.assign import apart, fallible
from mirabelle.arraytypes.probes import Least
from mirabelle.backends.codegen.program import program_for
from mirabelle.backends.host import layout, run
from mirabelle.backends.host.run import LaunchPlan, scalar_words
from mirabelle.dispatch import counters, generic
from mirabelle.dispatch.addresses import address_of
from mirabelle.dispatch.schedule import schedule, worth_storing
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import Broadcasted, Leaf

Again = Callable[[Any, Any, Any], bool]

# What knows statements again: by the sig at the root and the size of the tree, those that were met last.
known: dict[Any, list[Again]] = {}
# How often statements were met that nothing knew, by the same.
_met: dict[Any, int] = {}
FUNCTIONS, STATEMENTS = 6, 1 << 12
# Of smaller arrays NumPy's own calls take no longer.
LEAST = 1 << 10
# Of one kind of statement, functions are written for so many.
_MOST = 64

# The references that nobody else adds to, while a function asks: to the value's handle, to its node, to a node
# by its parent, to the destination's leaf and its memory, to a leaf that a tree reads.
# (By the way in which the statement came; measured when the library is imported.)
_held: list[dict[str, int]] = [{}, {}]
# Does `copyto` do what it does by default? (Set where that is found out.)
usable: Callable[[], bool] = lambda: False


def write(x: Any, how: Any, value: Any, way: int = 0) -> bool:
    """Do `x[how] = value`, if it was met before: False where it was not, and nothing has happened.

    `way` is how it came here, on which it depends how many hold the value: as `x[how] = value` (0), or through
    a view, mostly as `x[how] += y` (1).
    """
    node = value._node
    if type(node) is not Broadcasted:
        return False
    key = node.sig, node.size, way
    del node
    functions = known.get(key)
    if functions is not None:
        for again in functions:
            if again(x, how, value):
                return True
    met = _met[key] = _met.get(key, 0) + 1
    # (Kernels come late, and some statements never come back alike: they are not looked at each time.)
    if not met % (8 if met <= 8 * _MOST else 64) and (
        met >= settings.compile_after or x._node.view.size > settings.small_size
    ):
        if len(_met) > STATEMENTS:
            _met.clear()
        made = _written(x, how, value, way, _held[way])
        if made is not None:
            if functions is None:
                functions = known[key] = []
            functions.insert(0, made)
            del functions[FUNCTIONS:]
    return False


def _written(
    x: Any, how: Any, value: Any, way: int, held: dict[str, int], stand_in: Any = None
) -> Again | None:
    """A function that knows a statement again which is about to go the ordinary way; None if there is none."""
    node, leaf = value._node, x._node
    if not usable() or type(leaf) is not Leaf or leaf.foreign or leaf.root is not None or fallible(node):
        return None
    target = leaf.view[how]
    if node.shape != target.shape or node.value is not None or node.dtype != target.dtype or not target.size:
        return None
    args = node.args
    if args is None:  # another thread has just evaluated it
        return None
    text = _Text(leaf, target, way, args[1] if way and len(args) == 2 else None)
    if not text.node("node", node):
        return None
    request = schedule(node, _refused, store=False)
    program = program_for(request, (target.dtype,))
    views = [r.view for r in request.leaves]
    plan: Any = program.plans.get(("launch", *[(v.shape, v.strides) for v in (target, *views)]))
    if stand_in is not None:
        plan = stand_in(program, 1 + len(views))
    elif plan is None and not program.user_functions:
        plan = _plan(program, target, views)
    if plan is None or program.user_functions:
        return None
    return text.function(plan, program, request, held)


def _plan(program: Any, target: np.ndarray, views: list[Any]) -> LaunchPlan | None:
    """The plan of a launch that was left to NumPy so far, once its kernel is there."""
    if not run.has_kernel(program):
        return None
    operands = [target, *views]
    arrangement = layout.arrange(target.shape, operands)
    entry = run.compiled(program, arrangement, views, [target])
    if entry is None:
        return None
    plan = LaunchPlan(program, entry, arrangement)
    program.keep(("launch", *[(v.shape, v.strides) for v in operands]), plan)
    return plan


def _refused(version: Any) -> Any:
    raise AssertionError("a part of a tree that is computed by itself")


class _Text:
    """The questions about a statement."""

    def __init__(self, leaf: Leaf, target: np.ndarray, way: int, added: Any) -> None:
        self.way = way
        self.leaf = leaf
        self.target = target
        # What is added in place: whoever added it holds it, perhaps for longer.
        self.added = added
        self.after: list[str] = []
        self.lines: list[str] = []
        self.space: dict[str, Any] = {}
        self.count = 0
        # The leaves by where they stand in the tree, those of the destination's memory apart; the numbers.
        self.leaves: dict[str, Leaf] = {}
        self.own: list[str] = []
        self.numbers: dict[str, Any] = {}
        self.seen: set[int] = set()

    def node(self, name: str, node: Any) -> bool:
        args: Any = node.args
        if id(node) in self.seen or node.sig.op.nout > 1:
            return False
        self.seen.add(id(node))
        names = [f"x{self.count + i}" for i in range(len(args))]
        self.count += len(args)
        self.lines += [
            f" args = {name}.args",
            " if args is None: return False",
            f" {', '.join(names)}, = args",
        ]
        return all(self.operand(of, a) for of, a in zip(names, args, strict=True))

    def operand(self, name: str, a: Any) -> bool:
        kind = type(a)
        if kind is float or kind is int or kind is np.float64 or kind is np.float32:
            self.space[f"k{name}"] = kind
            self.lines.append(f" if type({name}) is not k{name}: return False")
            self.numbers[name] = a
            return True
        if kind is Broadcasted:
            if a.value is not None or a.shape != self.target.shape:
                return False
            self.space[f"s{name}"] = a.sig
            self.lines += [
                f" if type({name}) is not Broadcasted or {name}.sig is not s{name}: return False",
                f" if {name}.shape != shape: return False",
            ]
            before = len(self.own)
            at = len(self.lines)
            if not self.node(name, a):
                return False
            if len(self.own) > before or a.evaluations or worth_storing(a):
                # Nobody else may hold it, who would find what is written here, or for whom it would be kept.
                self.lines.insert(at, f" if getrefcount({name}) > alone: return False")
                return a is not self.added
            # Who holds it goes on with the tree, and the next time it may be stored.
            self.lines.insert(at, f" if getrefcount({name}) > alone and {name}.evaluations: return False")
            self.after.append(f" if getrefcount({name}) > alone: {name}.evaluations = 1")
            return True
        return kind is Leaf and self.operand_leaf(name, a)

    def operand_leaf(self, name: str, a: Leaf) -> bool:
        if a.table or a.foreign or a is self.leaf:
            return False
        view = a.view
        # (A leaf that stands in several places is held by each: it is read once for each, all the same.)
        self.leaves[name] = a
        self.space[f"l{name}"] = view.strides
        self.space[f"d{name}"] = view.dtype
        self.lines += [
            f" if type({name}) is not Leaf or {name}.foreign or {name} is leaf: return False",
            f" v{name} = {name}.view",
            f" if v{name}.strides != l{name} or v{name}.dtype is not d{name}: return False",
        ]
        if view.shape == self.target.shape:
            self.lines.append(f" if v{name}.shape != shape: return False")
        else:
            self.space[f"n{name}"] = view.shape
            self.lines.append(f" if v{name}.shape != n{name}: return False")
        self.lines.append(f" a{name} = address_of(v{name})")
        if a.root is not self.leaf:
            self.lines.append(f" if {name}.root is leaf: return False")
            return True
        # It shows a part of what is written to: the same elements, or none of them, as it did then.
        same = (view.shape, view.strides, address_of(view)) == (
            self.target.shape,
            self.target.strides,
            address_of(self.target),
        )
        if any(self.leaves[n] is a for n in self.own) or not (same or apart(view, self.target)):
            return False
        self.own.append(name)
        self.space[f"o{name}"] = address_of(view) - address_of(self.target)
        self.lines += [
            f" if {name}.root is not leaf or a{name} - address != o{name}: return False",
            f" if getrefcount({name}) > alone: return False",
        ]
        return True

    def function(self, plan: Any, program: Any, request: Any, held: dict[str, int]) -> Again | None:
        own = len(self.own)
        only = [" if getrefcount(value) > handled or getrefcount(node) > rooted: return False"]
        if own or self.way:
            # Whoever holds the value would compute it of what is written: it gets what was computed.
            only = [" if getrefcount(node) > rooted: return False"]
            self.after += [
                " node.value = Leaf(target, root=leaf)",
                " node.args = None",
                " node.size = 0",
            ]
        self.space |= {
            "Broadcasted": Broadcasted, "Leaf": Leaf, "getrefcount": getrefcount, "counters": counters,
            "generic": generic, "recording": recording, "world": generic._world, "ndarray": np.ndarray,
            "shape": self.target.shape, "strides": self.target.strides, "words": plan.words,
            "launch": plan.launch, "address_of": address_of, "scalar_words": scalar_words, **held,
            # (Each part of the destination's memory holds its leaf, and shows its view.)
            "unshared": held["unshared"] + own, "viewed": held["viewed"] + own,
        }  # fmt: skip
        fill = [f" block = words.copy(); block[{plan.addresses[0]}] = address"]
        places: dict[Any, int] = {leaf.key(): i for i, leaf in enumerate(request.leaves)}
        met: dict[int, str] = {}
        for name, leaf in self.leaves.items():
            i = places[leaf.key()]
            if i in met:
                # What were the same elements must be so again.
                self.lines.append(f" if a{name} != a{met[i]}: return False")
                continue
            met[i] = name
            fill.append(f" block[{plan.addresses[1 + i]}] = a{name}")
        numbers = self.scalars(plan, program, request)
        if numbers is None or len(met) != len(request.leaves):
            return None
        text = [
            "def again(x, how, value):",
            " if counters.active or recording.active or recording.watchers: return False",
            " if generic._world != world: return False",
            " node = value._node",
            " leaf = x._node",
            " if node.shape != shape or leaf.foreign or leaf.root is not None: return False",
            " view = leaf.view",
            " target = view[how]",
            " if target.strides != strides or target.shape != shape: return False",
            " address = address_of(target)",
            *self.lines,
            " parts = leaf.living_parts() if leaf.parts else ()",
            f" if len(parts) != {own}: return False",
            " del parts",
            *only,
            " if getrefcount(leaf) > unshared or getrefcount(view) > viewed: return False",
            " if isinstance(view.base, ndarray): return False",
            *fill,
            *numbers,
            " launch(block)",
            *self.after,
            " leaf.writes += 1",
            " leaf.reducers = None",
            " return True",
        ]
        exec("\n".join(text), self.space)
        return self.space["again"]  # type: ignore[no-any-return]

    def scalars(self, plan: Any, program: Any, request: Any) -> list[str] | None:
        """The lines that put numbers into the argument block."""
        lines: list[str] = []
        of: dict[int, str] = {}
        for name, value in self.numbers.items():
            j = next(
                (
                    j
                    for j, s in enumerate(request.scalars)
                    if type(s) is type(value) and ((s == value and s != 0) or repr(s) == repr(value))
                ),
                None,
            )
            if j is None:
                return None
            if j in of:
                # Numbers that were equal are one argument.
                self.lines.append(f" if {name} != {of[j]} or {name} == 0: return False")
                if not value:
                    return None
            else:
                of[j] = name
        for k, (j, dtype) in enumerate(program.scalar_slots):
            if j not in of:
                return None
            at = plan.scalars + 2 * k
            self.space[f"t{k}"] = dtype
            lines.append(f" block[{at}:{at + 2}] = scalar_words({of[j]}, t{k})")
        return lines


class _Nothing:
    """A plan that does nothing, of any program."""

    def __init__(self, program: Any, operands: int) -> None:
        self.words = [0] * (operands + 2 * len(program.scalar_slots))
        self.addresses = list(range(operands))
        self.scalars = operands

    def launch(self, block: list[int]) -> None:
        pass


def calibrate(ways: list[tuple[Callable[[Any, Any], Any], Callable[[Any, Any], None]]], x: Any, y: Any) -> None:
    """Measure the reference counts: for each way, the value that is written to `x[1:]`, and the statement."""
    for way, (example, statement) in enumerate(ways):
        seen: dict[str, list[int]] = {name: [] for name in ("handled", "rooted", "alone", "unshared", "viewed")}
        limits: Any = {name: Least(counts) for name, counts in seen.items()}
        value = example(x, y)
        key = value._node.sig, value._node.size, way
        made = _written(x, (slice(1, None), Ellipsis), value, way, limits, _Nothing)
        assert made is not None
        del value
        known[key] = [made]
        for _ in range(3):
            statement(x, y)
        # (What is added to a part is read there: one more holds its leaf, and shows its memory.)
        found = {name: min(counts) for name, counts in seen.items() if counts}
        for name in ("unshared", "viewed"):
            found[name] -= way
        _held[way] = {**_held[0], **found}
        _held[way]["alone"] = _held[0]["alone"]
    known.clear()
