"""Plans taken apart into numbers and what plans for other sizes have in common, and put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mirabelle.arraytypes.parametric import generic_class
from mirabelle.arraytypes.programs import graph
from mirabelle.arraytypes.programs.extents import Extent, Reads, plain
from mirabelle.arraytypes.programs.graph import Call, Data, Empty, Fold, Input, Node, Part, Slot, Update
from mirabelle.arraytypes.programs.joining import joined
from mirabelle.arraytypes.programs.memory import place_temporaries
from mirabelle.arraytypes.programs.passes.geometry import are_apart
from mirabelle.arraytypes.programs.signature import mapped
from mirabelle.arraytypes.programs.steps import (
    CallStep,
    CopyStep,
    FoldStep,
    JoinedStep,
    KernelStep,
    Plan,
    ProductStep,
    Ref,
    Step,
    Storage,
)
from mirabelle.arraytypes.wrappers import Wrapper
from mirabelle.dispatch.schedule import Request

# Calls that are told nothing but arrays, numbers and names.
_PLAIN_CALLS = frozenset(("routine", "accumulate", "within", "scatter"))


class CannotCopy(Exception):
    """A plan with a step that is made for its sizes."""

    def __init__(self, why: str, line: Any) -> None:
        super().__init__(why)
        self.why = why
        self.line = line


class Parts:
    """What a plan consists of: `same` is what plans of one program for other sizes have in common, with the
    `lines` it comes from; `numbers` and `scalars` are what may differ."""

    def __init__(self, plan: Plan, result: Any, asked: list[Any], captured: list[Node], reads: Reads) -> None:
        self.asked = asked
        self.reads = reads
        # Numbers of all that was captured, whether it is part of the plan or not.
        self.captured: list[int] = []
        self.same: list[Any] = []
        self.lines: list[Any] = []
        self.numbers: list[int] = []
        self.scalars: list[Any] = []
        self.scalar_lines: list[Any] = []
        copy = _Copy(self._number, self._scalar, self._same)
        self._copy = copy
        copy.plan(plan)
        copy.line = None
        copy.result(result)
        for word, kind, lies in asked:
            self._same((word, kind))
            if kind == "between":
                copy.lies(lies)
        for event in reads.events:
            copy.line = event.line
            self._same(event.key)
        for node in captured:
            copy.line = node.line
            self._same((type(node), node.dtype, len(node.shape)))
            self.captured += node.shape
            if isinstance(node, (Part, Update)):
                self.captured += (node.offset, *node.strides)
            if isinstance(node, Update):
                self._same(len(node.part_shape))
                self.captured += node.part_shape

    def _number(self, n: int) -> int:
        self.numbers.append(n)
        return n

    def _scalar(self, a: Any) -> Any:
        self.scalars.append(a)
        self.scalar_lines.append(self._copy.line)
        return a

    def _same(self, x: Any) -> None:
        self.same.append(x)
        self.lines.append(self._copy.line)


def put_together(
    plan: Plan, result: Any, asked: list[Any], numbers: Iterator[int], scalars: Iterator[Any]
) -> tuple[Plan, Any] | None:
    """A plan like another, and a result, with other numbers; None if parts meet that the other plan takes to be
    apart."""
    copy = _Copy(lambda n: next(numbers), lambda a: next(scalars), lambda x: None)
    made, returned = copy.plan(plan), copy.result(result)
    for _, kind, lies in asked:
        if kind == "between" and not are_apart(*copy.lies(lies)):
            return None
    made.steps = joined(made.steps)
    place_temporaries(made)
    return made, returned


class _Datum:
    """A constant array: equal to others with the same contents."""

    def __init__(self, node: Data) -> None:
        self.node = node

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Datum):
            return False
        a, b = self.node, other.node
        if a.view is b.view:
            return True
        if a.family is not b.family or a.shape != b.shape or a.dtype != b.dtype:
            return False
        return _contents(a) == _contents(b)

    __hash__ = object.__hash__


def _contents(node: Data) -> bytes:
    return np.ascontiguousarray(node.family._download(node.view)).tobytes()


class _Copy:
    """A walk through a plan that makes another, and shows all it meets."""

    def __init__(
        self, number: Callable[[int], int], scalar: Callable[[Any], Any], same: Callable[[Any], None]
    ) -> None:
        self.number, self.scalar, self.same = number, scalar, same
        self.line: Any = None
        self.storages: dict[int, Storage] = {}

    def plan(self, plan: Plan) -> Plan:
        inputs = []
        for x in plan.inputs:
            self.same((x.number, x.name, x.dtype))
            inputs.append(_input(x, self.shape(x.shape)))
        for s in plan.storages:
            self.line = s.node.line
            self.same((s.number, s.kind, s.index, s.dtype, s.shape == ()))
            node: Node = s.node
            if type(node) is Data:
                self.same(_Datum(node))
            else:
                node = _bare(self.shape(node.shape), node.dtype)
            made = self.storages[s.number] = Storage(s.number, s.kind, node)
            made.index = s.index
        steps = [self.step(step) for step in plan.steps]
        self.same([s.number for s in plan.outputs])
        return Plan(
            inputs, steps, list(self.storages.values()), [self.storages[s.number] for s in plan.outputs]
        )

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        self.same(len(shape))
        return tuple([self.number(n) for n in shape])

    def ref(self, ref: Ref) -> Ref:
        self.same((ref.storage.number, ref.dtype, ref.table))
        offset, shape = self.number(ref.offset), self.shape(ref.shape)
        strides = tuple([self.number(n) for n in ref.strides])
        return Ref(self.storages[ref.storage.number], offset, shape, strides, ref.dtype, ref.table)

    def lies(self, lies: Any) -> Any:
        """How two parts lie in one memory."""
        made = []
        for offset, shape, strides, item in lies:
            self.same((len(shape), item))
            made.append(
                (
                    self.number(offset),
                    tuple([self.number(n) for n in shape]),
                    tuple([self.number(n) for n in strides]),
                    item,
                )
            )
        return made

    def result(self, result: Any) -> Any:
        """What a function returns: views in it have a shape of their own."""
        return mapped(result, self.shown)

    def shown(self, x: Any) -> Any:
        if not isinstance(x, Wrapper):
            return x
        self.same(generic_class(type(x)))
        parent, how = self.shown(x._parent), self.nest(x._how)
        return generic_class(type(x))._of(parent, how, self.shape(x._shape))

    def request(self, request: Request) -> Request:
        self.same(request.key)
        scalars = [self.value(a) for a in request.scalars]
        self.same((len(scalars), len(request.leaves)))
        leaves: Any = [self.ref(r) for r in request.leaves]  # type: ignore[arg-type]
        return Request(request.key, leaves, scalars, self.shape(tuple(request.shape)), [])

    def value(self, a: Any) -> Any:
        """A number that a kernel or a routine is given."""
        self.same(type(a))
        if isinstance(a, (bool, np.bool_)):
            self.same(a)
            return a
        return self.scalar(a)

    def step(self, step: Step) -> Step:
        made = self._step(step)
        made.number = step.number
        return made

    def _step(self, step: Any) -> Step:
        self.line = next((n.line for n in step.nodes if n.line is not None), None)
        kind = type(step)
        self.same((kind, step.number))
        if kind is KernelStep:
            request = self.request(step.request)
            self.same(len(step.dests))
            return KernelStep(step.nodes, request, [self.ref(d) for d in step.dests])
        if kind is JoinedStep:
            self.same(len(step.members))
            return JoinedStep([self.step(member) for member in step.members])  # type: ignore[misc]
        if kind is FoldStep:
            request = self.request(step.request)
            self.same((step.axes, len(step.dests)))
            return FoldStep(
                [self.fold(f) for f in step.nodes], request, step.axes, [self.ref(d) for d in step.dests]
            )
        if kind is CopyStep:
            return CopyStep(step.nodes, self.ref(step.dest), self.ref(step.source))
        if kind is ProductStep:
            (node,) = step.nodes
            self.same(step.dest.number)
            made = _like(node, self.shape(node.shape))
            return ProductStep(made, [self.ref(r) for r in step.operands], self.storages[step.dest.number])
        if kind is CallStep and step.call.kind in _PLAIN_CALLS:
            call = self.call(step.call)
            self.same({k: s.number for k, s in step.dests.items()})
            dests = {k: self.storages[s.number] for k, s in step.dests.items()}
            return CallStep(call, [self.ref(r) for r in step.operands], dests)
        raise CannotCopy(f"{step.name}() is planned for each size by itself", self.line)

    def fold(self, node: Fold) -> Fold:
        self.same((node.reduction, node.axes, node.keepdims, node.dtype))
        return _like(node, self.shape(node.shape))  # type: ignore[return-value]

    def call(self, node: Call) -> Call:
        self.same((node.kind, node.routine, len(node.outputs), [dtype for _, dtype in node.outputs]))
        made: Any = _like(node, node.shape)
        made.template = self.nest(node.template)
        made.outputs = tuple([(self.shape(shape), dtype) for shape, dtype in node.outputs])
        return made  # type: ignore[no-any-return]

    def nest(self, x: Any) -> Any:
        """Arguments of a routine."""
        kind = type(x)
        if kind is Extent:
            x = plain(x)
            kind = type(x)
        if kind is list or kind is tuple:
            self.same((kind, len(x)))
            return kind([self.nest(item) for item in x])
        if kind is slice:
            return slice(self.nest(x.start), self.nest(x.stop), self.nest(x.step))
        if kind is dict:
            self.same(list(x))
            return {k: self.nest(item) for k, item in x.items()}
        if kind in (int, float, complex) or isinstance(x, np.number):
            return self.value(x)
        if isinstance(x, (str, bool, np.bool_, type(None), type(Ellipsis), np.dtype, Slot, type)) or callable(
            x
        ):
            self.same(x)
            return x
        # (Ufuncs, reductions and the like are there once.)
        self.same((kind, id(x)))
        return x


def _bare(shape: tuple[int, ...], dtype: np.dtype) -> Empty:
    """A node that gives memory its shape and dtype, and is in no graph."""
    node: Empty = graph._new(Empty)
    node.shape, node.dtype = shape, dtype
    node.operands, node.line, node.serial, node.bound = (), None, 0, False
    return node


_SLOTS: dict[type, list[str]] = {}


def _like(node: Node, shape: tuple[int, ...]) -> Node:
    """A node of another shape. It is in no graph, and its operands are those of the other one."""
    kind = type(node)
    names = _SLOTS.get(kind)
    if names is None:
        slots = [s for k in kind.__mro__ for s in getattr(k, "__slots__", ())]
        names = _SLOTS[kind] = [s for s in slots if s != "__weakref__"]
    made: Any = graph._new(kind)
    for name in names:
        setattr(made, name, getattr(node, name))
    made.shape = shape
    return made  # type: ignore[no-any-return]


def _input(x: Input, shape: tuple[int, ...]) -> Input:
    return _like(x, shape)  # type: ignore[return-value]


__all__ = ["CannotCopy", "Parts", "put_together"]
