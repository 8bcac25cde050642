"""Loops over mesh points with what surrounds them: operations on what a loop reads are done as it reads, and
operations on what it writes as it writes, where that takes less than a kernel of their own and memory between.

A loop is a call whose kernel knows how it reaches its arguments (`LoopKernel` in `meshdata/programs.py`). What
is done inside is a formula: operations that round in one way, each in its dtype, so that nothing changes but
the work. A loop that leaves contributions to the owners of entries (on cards) has what becomes of the sums
done by these.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mirabelle.arraytypes.programs.fusing import memory
from mirabelle.arraytypes.programs.graph import (
    Call,
    Map,
    Node,
    Part,
    Result,
    Slot,
    Update,
    call_node,
    empty_node,
    is_barrier,
    map_node,
    ordered,
    part_node,
    placed_as,
    result_node,
    users_of,
)
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.promotion import intern

# A formula has at most so many operations, counted as often as they are done.
MOST_OPERATIONS = 24
# In elements of memory that are read or written: what an operation takes, an element more that is read where
# a map leads, and a kernel's start.
OPERATION, FOLLOWED, LAUNCH = 0.1, 0.2, 2000
_VALUE, _ROW, _NUMBER = "value", "row", "number"
_FLOATS = frozenset("fd")


class _Unfit(Exception):
    """Something cannot be done inside a loop."""


class _Formula:
    """The steps of a formula, and the nodes and numbers it reads."""

    def __init__(
        self,
        forms: Any,
        shape: tuple[int, ...],
        value: Node | None = None,
        inside: Any = (),
        unfit: Iterable[int] = (),
    ) -> None:
        self.forms = forms
        self.shape = shape
        # The loop's own value, and what only leads from it to the result.
        self.value = value
        self.inside = inside
        self.steps: list[Any] = []
        self.leaves: list[tuple[str, Any, np.dtype]] = []
        self.known: dict[int, int] = {}
        self.weight: list[int] = []
        # What is not done here but read, and how deep the operations are.
        self.unfit = set(unfit)
        self.depth = 0

    def of(self, node: Any) -> _Formula:
        """Up to and with a node."""
        self.step(node)
        return self

    @property
    def key(self) -> tuple[Any, Any]:
        return tuple(self.steps), tuple([(kind, dtype) for kind, _, dtype in self.leaves])

    @property
    def operations(self) -> int:
        return self.weight[-1] - 1

    def step(self, node: Any) -> int:
        found = self.known.get(id(node))
        if found is not None:
            return found
        sig = node.sig
        if not done_inside(node, self.forms) or self.depth > MOST_OPERATIONS:
            raise _Unfit
        given, weight = [], 1
        self.depth += 1
        for a, wanted in zip(node.args, sig.ins, strict=True):
            ref = self.operand(a, wanted)
            given.append(ref)
            weight += self.weight[ref] if ref >= 0 else 0
        self.depth -= 1
        if weight > MOST_OPERATIONS + 1:
            raise _Unfit
        self.steps.append((sig.op.name, tuple(given), tuple(sig.ins), sig.out))
        self.weight.append(weight)
        self.known[id(node)] = len(self.steps) - 1
        return len(self.steps) - 1

    def operand(self, a: Any, wanted: np.dtype) -> int:
        if not isinstance(a, Node):
            if wanted.char not in _FLOATS:
                raise _Unfit
            return self.leaf(_NUMBER, float(a), wanted)
        if (wanted.kind == "b") != (a.dtype.kind == "b") or a.dtype.kind == "c" or a.dtype.char in "egG":
            raise _Unfit
        if a is self.value:
            return self.leaf(_VALUE, a, a.dtype)
        if type(a) is Map and a.shape == self.shape and id(a) not in self.unfit:
            if id(a) in self.inside:
                return self.step(a)
            before = len(self.steps), len(self.leaves), dict(self.known), self.depth
            try:
                return self.step(a)
            except _Unfit:
                del self.steps[before[0] :], self.weight[before[0] :], self.leaves[before[1] :]
                self.known, self.depth = before[2], before[3]
                self.unfit.add(id(a))
        one = stretched_number(a)
        if one is not None:
            return self.leaf(_NUMBER, one, wanted if not isinstance(one, Node) else a.dtype)
        if a.shape != self.shape:
            raise _Unfit
        return self.leaf(_ROW, a, a.dtype)

    def leaf(self, kind: str, x: Any, dtype: np.dtype) -> int:
        for i, (known, y, other) in enumerate(self.leaves):
            if known == kind and other == dtype and (x is y if isinstance(x, Node) else repr(x) == repr(y)):
                return -1 - i
        self.leaves.append((kind, x, dtype))
        return -len(self.leaves)


def done_inside(node: Any, forms: Any) -> bool:
    """Is a node an operation that loops do as they read and write?"""
    if type(node) is not Map or node.sig.op.nout != 1 or is_barrier(node):
        return False
    sig = node.sig
    if sig.op.scalar is not None or sig.op.name not in forms:
        return False
    floats = [d for d in sig.ins if d.kind != "b"] or [sig.out]
    if sig.op.name in ("copy", "cast"):
        return sig.out.char in _FLOATS
    # (The first of `where` is a bool; all others are of one dtype, so that nothing is rounded on the way.)
    return floats[0].char in _FLOATS and len(set(floats)) == 1 and (sig.out.kind == "b" or sig.out == floats[0])


def stretched_number(a: Node) -> Any:
    """The number that stands everywhere in a value, or the node of it; None if there are several."""
    if type(a) is Part and not a.table and not any(a.strides):
        source: Any = a.operands[0]
        if type(source) is Map and source.sig.op.name == "copy" and not source.shape and not source.operands:
            return float(source.args[0]) if source.sig.out.char in _FLOATS else None
        return part_node(source, a.offset, (), (), a.dtype)
    return a if not a.shape else None


def loops(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """Loops over mesh points with the operations before and after them.

    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> cells = md.Points("mesh", "cell", 2)
    >>> def copied(x, y):
    ...     y[0] = x
    >>> def f(x):
    ...     y = mb.zeros_like(x)
    ...     md.loop(cells, copied, md.READ(2 * x), md.WRITE(y))
    ...     return y + 1
    >>> [step.name for step in mb.compile(f).program(mb.ones(2)).plan.steps]
    ['copied (x: multiply; y: add)']
    """
    nodes = ordered(outputs)
    calls: list[Any] = [x for x in nodes if type(x) is Call and x.kind == "kernel"]
    calls = [x for x in calls if hasattr(x.template[0][0], "joined_with")]
    if not calls:
        return outputs
    return _Joining(nodes, calls, outputs).rewritten(outputs)


class _Joining:
    def __init__(self, nodes: list[Node], calls: list[Any], outputs: tuple[Node, ...]) -> None:
        self.nodes = nodes
        self.users = users_of(nodes)
        self.kept = {id(x) for x in outputs}
        self.is_loop = {id(x) for x in calls}
        self.place = {id(x): i for i, x in enumerate(nodes)}
        # For each loop the formulas of what it reads, and of what becomes of what it writes, by arguments; for
        # what becomes of a result that loop, the number of the result, and its formula if there is no other.
        self.before: dict[int, dict[int, _Formula]] = {id(x): {} for x in calls}
        self.ends: dict[int, dict[int, _Formula]] = {id(x): {} for x in calls}
        self.after: dict[int, tuple[Any, int, _Formula | None]] = {}
        # Results of loops that are finished there, so that nobody reads them as they were; those somebody does.
        self.sealed: set[int] = set()
        self.raw: set[int] = set()
        for call in calls:
            self.finishes(call)
        for call in calls:
            self.starts(call)
        self.reads(calls)

    # What is decided

    def reads(self, calls: list[Any]) -> None:
        """Which values that loops read are computed as they are read."""
        readers: dict[int, list[tuple[Any, int]]] = {}
        values: dict[int, Any] = {}
        for call in calls:
            kernel, arguments = call.template[0][0], call.template[0][3]
            for k, b in enumerate(kernel.bound):
                slot = arguments[kernel.first[k]]
                if not b.intent.writes and isinstance(slot, Slot):
                    v = call.operands[slot.number]
                    readers.setdefault(id(v), []).append((call, k))
                    values[id(v)] = v
        for key, found in readers.items():
            v = values[key]
            others = [u for u in self.users[key] if id(u) not in self.is_loop]
            if key in self.kept or key in self.after or len(self.users[key]) - len(others) != len(found):
                continue
            if type(v) is not Map or is_barrier(v) or any(type(u) is not Map for u in others):
                continue
            try:
                forms = found[0][0].template[0][0].forms
                formula = _Formula(forms, v.shape, unfit=self.after).of(v)
            except _Unfit:
                continue
            if not all(self.stays(formula, call) for call, _ in found) or not self.pays(v, formula, found):
                continue
            if self.accepted(formula):
                for call, k in found:
                    self.before[id(call)][k] = formula

    def pays(self, v: Node, formula: _Formula, readers: list[tuple[Any, int]]) -> bool:
        """Does computing a value wherever it is read take less than storing it?"""
        rows = sum([kind == _ROW for kind, *_ in formula.leaves])
        computed = 0.0
        for call, k in readers:
            kernel, shape = call.template[0][0], call.template[0][1]
            often = kernel.often(k, shape[0]) or v.size
            more = max(rows - 1, 0) * (FOLLOWED if kernel.bound[k].dofs is not None else 1)
            computed += often * (OPERATION * formula.operations + more)
        return computed <= v.size * (1 + rows) + LAUNCH

    def stays(self, formula: _Formula, call: Any) -> bool:
        """Is all that a formula reads still there when a loop runs, and not what the loop writes to?"""
        kernel, arguments = call.template[0][0], call.template[0][3]
        written = [
            memory(call.operands[arguments[kernel.first[k]].number])
            for k, b in enumerate(kernel.bound)
            if b.intent.writes and isinstance(arguments[kernel.first[k]], Slot)
        ]
        for _, x, _ in formula.leaves:
            if not isinstance(x, Node) or x is formula.value:
                continue
            source = memory(x)
            if any(source is w for w in written):
                return False
            for u in self.users.get(id(source), ()):
                over = type(u) is Update and u.operands[0] is source
                if (
                    over or (type(u) is Call and u.kind == "kernel" and u is not call)
                ) and u.serial < call.serial:
                    return False
        return True

    def starts(self, call: Any) -> None:
        """What the entries that a loop adds to begin with, where their owners add."""
        kernel, arguments = call.template[0][0], call.template[0][3]
        for k, b in enumerate(kernel.bound):
            slot = arguments[kernel.first[k]]
            if not b.intent.writes or not isinstance(slot, Slot) or not kernel.finishes(k):
                continue
            base = call.operands[slot.number]
            formula = self.beginning(kernel, base)
            if b.intent.combines is None or formula is None:
                continue
            if len(self.users[id(base)]) > 1 or id(base) in self.kept or id(base) in self.after:
                continue
            if self.stays(formula, call) and self.accepted(formula):
                self.before[id(call)][k] = formula

    def beginning(self, kernel: Any, base: Any) -> _Formula | None:
        """A value as a formula: of an elementwise one, or of one number everywhere."""
        formula = _Formula(kernel.forms, base.shape, unfit=self.after)
        try:
            if type(base) is Map:
                return formula.of(base)
            one = stretched_number(base)
            if one is None or not base.shape or base.dtype.char not in _FLOATS:
                return None
            given = formula.leaf(_NUMBER, one, base.dtype)
        except _Unfit:
            return None
        formula.steps.append(("copy", (given,), (base.dtype,), base.dtype))
        formula.weight.append(1)
        return formula

    def finishes(self, call: Any) -> None:
        """What becomes of a loop's results, where nobody else sees them."""
        kernel = call.template[0][0]
        written = [k for k, b in enumerate(kernel.bound) if b.intent.writes]
        for result in self.users.get(id(call), ()):
            self.finished(call, result, written[result.number], len(written) == 1)  # type: ignore[attr-defined]

    def finished(self, call: Any, result: Any, k: int, alone: bool) -> None:
        """What becomes of one of them. If it is not `alone`, all that it needs is there before the loop."""
        kernel, arguments = call.template[0][0], call.template[0][3]
        slot = arguments[kernel.first[k]]
        if id(result) in self.kept or not isinstance(slot, Slot) or not kernel.finishes(k):
            return
        if id(result) in self.raw:
            return
        inside: dict[int, Any] = {}
        waits: list[Node] = [result]
        found: list[tuple[Any, set[int]]] = []
        while len(inside) < MOST_OPERATIONS and not any(id(x) in self.kept for x in waits):
            after = [u for x in waits for u in self.users.get(id(x), ()) if id(u) not in inside]
            if not after:
                break
            m: Any = min(after, key=lambda x: x.serial)
            if not done_inside(m, kernel.forms) or m.shape != result.shape:
                break
            inside[id(m)] = m
            waits = [x for x in [*waits, m] if id(x) in self.kept or self.waited_for(x, inside)]
            if waits == [m]:  # (nobody else sees what leads there)
                found.append((m, set(inside)))
        for root, members in reversed(found):
            try:
                formula = _Formula(kernel.forms, result.shape, result, members).of(root)
            except _Unfit:
                continue
            if id(root) in self.after or not self.stays(formula, call):
                continue
            if (alone or self.comes_before(formula, call)) and self.accepted(formula):
                self.sealed.add(id(result))
                self.after[id(root)] = (call, result.number, formula if alone else None)
                if not alone:
                    self.ends[id(call)][k] = formula
                return

    def accepted(self, formula: _Formula) -> bool:
        """Does a formula read no result that is finished elsewhere? What it reads is finished by no other."""
        results = {id(x) for _, x, _ in formula.leaves if type(x) is Result and x is not formula.value}
        if not results.isdisjoint(self.sealed):
            return False
        self.raw |= results
        return True

    def comes_before(self, formula: _Formula, call: Any) -> bool:
        """Is all that a formula reads, but the loop's own value, there before the loop?"""
        for _, x, _ in formula.leaves:
            if isinstance(x, Node) and x is not formula.value:
                known = x if id(x) in self.place else memory(x)
                if known.operands and self.place.get(id(known), len(self.nodes)) >= self.place[id(call)]:
                    return False
        return True

    def waited_for(self, x: Node, inside: Any) -> bool:
        """Does something read a value that is not among others?"""
        return any(id(u) not in inside for u in self.users.get(id(x), ()))

    # What is made of it

    def rewritten(self, outputs: tuple[Node, ...]) -> tuple[Node, ...]:
        made: dict[int, Node] = {}

        def new(x: Any) -> Any:
            y = made.get(id(x))
            if y is None and type(x) is Part and id(x.operands[0]) in made:  # (a number that formulas read)
                y = x.rebuilt((made[id(x.operands[0])],))
            return x if y is None else y

        for x in self.nodes:
            y: Any = x
            if any(id(a) in made for a in x.operands):
                y = placed_as(x, x.rebuilt(tuple([new(a) for a in x.operands])))
            if id(x) in self.is_loop:
                y = placed_as(x, filled(y))
            if self.before.get(id(x)) or self.ends.get(id(x)):
                y = placed_as(x, self.joined(y, self.ends[id(x)], x, new))
            found = self.after.get(id(x))
            if found is not None:
                call, number, formula = found
                whole = new(call)
                if formula is not None:
                    # (Its operands are new ones already; those of the formulas are those of before.)
                    (k,) = [k for k, b in enumerate(call.template[0][0].bound) if b.intent.writes]
                    whole = filled(call.rebuilt(tuple([new(a) for a in call.operands])))
                    whole = self.joined(whole, {k: formula}, call, new)
                y = placed_as(x, result_node(whole, number))
            if y is not x:
                made[id(x)] = y
        return tuple([new(x) for x in outputs]) if made else outputs

    def joined(self, moved: Any, ends: dict[int, _Formula], call: Any, new: Any) -> Any:
        """A loop with what was found out about it, as it was before others were changed."""
        before = self.before[id(call)]
        return joined(moved, {k: (before.get(k), ends.get(k)) for k in sorted({*before, *ends})}, new)


def filled(call: Any) -> Any:
    """A loop that writes to memory of its own where it writes all, and to a value of the array's size where
    what it adds to is one number."""
    kernel, arguments = call.template[0][0], call.template[0][3]
    operands = list(call.operands)
    for k, b in enumerate(kernel.bound):
        slot = arguments[kernel.first[k]]
        if not b.intent.writes or not isinstance(slot, Slot):
            continue
        base = operands[slot.number]
        if not b.intent.combines and b.intent.writes and not b.intent.gathers and kernel.finishes(k):
            operands[slot.number] = empty_node(base.shape, base.dtype)
        elif type(base) is Part and isinstance(one := stretched_number(base), float):
            sig = intern(TABLE["copy"], (base.dtype,), (base.dtype,))
            operands[slot.number] = map_node(sig, (one,), base.shape)
    if all(x is y for x, y in zip(operands, call.operands, strict=True)):
        return call
    return call.rebuilt(tuple(operands))


def joined(call: Any, formulas: dict[int, tuple[Any, Any]], new: Any) -> Any:
    """A loop of what surrounds it."""
    (kernel, shape, group, arguments), options = call.template
    operands: list[Node] = []

    def slot(x: Any) -> Any:
        if not isinstance(x, Node):
            return x
        for i, y in enumerate(operands):
            if y is x and i not in taken:
                return Slot(i)
        operands.append(x)
        return Slot(len(operands) - 1)

    # (What is written has a slot of its own.)
    taken: set[int] = set()
    given: list[Any] = []
    parts: dict[int, Any] = {}
    outs: list[Any] = []
    for k, b in enumerate(kernel.bound):
        x = arguments[kernel.first[k]]
        x = call.operands[x.number] if isinstance(x, Slot) else x
        before, after = formulas.get(k, (None, None))
        leaves = [leaf for f in (before, after) if f is not None for leaf in f.leaves]
        sources = [new(leaf) if isinstance(leaf, Node) else leaf for kind, leaf, _ in leaves if kind != _VALUE]
        if before is None and after is None:
            made: list[Any] = [slot(x)]
        elif not b.intent.writes:
            made = [slot(s) for s in sources]
        else:
            own = empty_node(x.shape, x.dtype if after is None else after.steps[-1][3])
            if before is None and b.intent.combines is not None:
                # (What is there before is read from where it is, and written elsewhere.)
                sources = [x, *sources]
            operands.append(own)
            taken.add(len(operands) - 1)
            made = [Slot(len(operands) - 1), *[slot(s) for s in sources]]
        if before is not None or after is not None:
            parts[k] = (x.dtype, None if before is None else before.key, None if after is None else after.key)
        elif b.intent.writes:
            taken.add(made[0].number)
        if b.intent.writes:
            own = operands[made[0].number]
            outs.append((own.shape, own.dtype))
        given += made
    fused = kernel.joined_with(parts)
    said = []
    for k, (f, g) in formulas.items():
        words = [step[0] for h in (f, g) if h is not None for step in h.steps if step[0] != "copy"]
        if words:
            said.append(f"{kernel.bound[k].name}: {', '.join(dict.fromkeys(words))}")
    routine = f"{kernel.__name__} ({'; '.join(said)})" if said else call.routine
    return call_node("kernel", routine, ((fused, shape, group, given), options), tuple(operands), tuple(outs))
