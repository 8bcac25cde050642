"""Capturing two branches, of which one is run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes import recording
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import asarray
from mirabelle.arraytypes.duals.base import Dual
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.programs import graph, states
from mirabelle.arraytypes.programs.errors import TraceError, shown_line, user_line
from mirabelle.arraytypes.programs.graph import Node, Slot, call_node, input_node, result_node
from mirabelle.arraytypes.programs.loops import Branches
from mirabelle.arraytypes.programs.states import NUMBERS, described
from mirabelle.arraytypes.programs.subgraphs import Subgraph, cut, substituted
from mirabelle.arraytypes.programs.traced import handle
from mirabelle.arraytypes.programs.watching import Watch, hold


class _Branch:
    """What a function did: what it returned, and what it wrote to."""

    def __init__(self, f: Callable[..., Any], operands: tuple[Any, ...], family: Any) -> None:
        with Watch() as watch:
            try:
                self.result = f(*operands)
                self.leaves = [x for _, x in states.leaves_of(self.result) if not states.is_container(x)]
                self.values = [_now(x, family) for x in self.leaves]
            finally:
                # (Each branch starts from what was there before.)
                self.written = [(root, node, root.node) for root, node in watch.found()]
                for root, before, _ in self.written:
                    hold(root, before)
        self.serial = watch.serial


class BranchCapture:
    """The capture of two branches."""

    def __init__(self, predicate: Any, functions: tuple[Any, Any], operands: tuple[Any, ...]) -> None:
        self.line = user_line(2)
        self.predicate = predicate.value if isinstance(predicate, Dual) else predicate
        if self.predicate.size != 1:
            raise TraceError(
                f"The condition of {self.where} has the shape {predicate.shape}, and must be one truth value: "
                "`mb.all(...)` or `mb.any(...)`. Elements are chosen one by one with mb.where."
            )
        self.family = leaf_family(type(self.predicate))
        self.branches = [_Branch(f, operands, self.family) for f in functions]

    @property
    def where(self) -> str:
        return f"mb.cond in {shown_line(self.line)}"

    def chosen(self) -> Any:
        yes, no = self.branches
        other = states.difference(yes.result, no.result)
        if other is not None:
            raise self.apart(*other)
        paths = [p for p, x in states.leaves_of(yes.result) if not states.is_container(x)]
        outputs: list[list[Node]] = [[], []]
        made: list[Any] = []
        for at, (path, a, b) in enumerate(zip(paths, yes.leaves, no.leaves, strict=True)):
            # What is the same variable, or number, for both is that afterwards.
            same = a is b or (isinstance(a, NUMBERS) and type(a) is type(b) and _equal(a, b))
            made.append(a if same else self.joined(path, yes.values[at], no.values[at], outputs))
        roots = {id(root): (root, before) for branch in self.branches for root, before, _ in branch.written}
        for key, (_, before) in roots.items():
            for branch, values in zip(self.branches, outputs, strict=True):
                values.append(next((after for r, _, after in branch.written if id(r) == key), before))
        predicate = states.dense(states.brought(self.predicate, self.family)).node
        graphs, operands = self.graphs(outputs)
        specs = tuple([(x.shape, x.dtype) for x in outputs[0]])
        slots = [Slot(1 + i) for i in range(len(operands))]
        template: Any = ((Branches(*graphs), Slot(0), slots), {})
        call = call_node("cond", "cond", template, (predicate, *operands), specs)
        call.line = self.line
        results = [handle(self.family, result_node(call, k)) for k in range(len(specs))]
        for root, value in zip([r for r, _ in roots.values()], results[len(specs) - len(roots) :], strict=True):
            for watcher in tuple(recording.watchers):
                watcher.note(root)
            hold(root, value.node)
        parts = iter(results)
        made = [states.with_parts(x.like, self.family, parts) if isinstance(x, _Joined) else x for x in made]
        return states.refilled(yes.result, iter(made))

    def joined(self, path: str, a: Any, b: Any, outputs: list[list[Node]]) -> Any:
        """What is returned for two leaves: an array that the branches compute."""
        values = [a, b]
        if (
            not any(isinstance(x, (AbstractArray, np.ndarray, *NUMBERS)) for x in values)
            or a is None
            or b is None
        ):
            if type(a) is type(b) and a == b and not isinstance(a, AbstractArray):
                return a
            raise self.apart(path, described(a), described(b))
        if any(isinstance(x, NUMBERS) for x in values):
            array = next((x for x in values if not isinstance(x, NUMBERS)), None)
            dtype = np.result_type(a, b) if array is None else array.dtype
            for k, x in enumerate(values):
                if isinstance(x, NUMBERS):
                    if not np.can_cast(type(x), dtype, "same_kind"):
                        raise self.apart(path, described(a), described(b))
                    values[k] = asarray(np.asarray(x, dtype))
        x, y = [states.brought(v, self.family) for v in values]
        if x.shape != y.shape or x.dtype != y.dtype:
            raise self.apart(path, *[f"{v.dtype.name}{list(v.shape)}" for v in (x, y)])
        if isinstance(x, Dual) != isinstance(y, Dual):
            x = x if isinstance(x, Dual) else states.varying(states.dense(x), y, self.family)
            y = y if isinstance(y, Dual) else states.varying(states.dense(y), x, self.family)
        if states.kind_of(x) != states.kind_of(y):
            x, y = states.plain(x), states.plain(y)
            if states.kind_of(x) != states.kind_of(y):
                raise self.apart(path, described(x), described(y))
        for leaf, found in zip((x, y), outputs, strict=True):
            found += [p.node for p in states.parts_of(leaf, self.family)]
        return _Joined(x)

    def graphs(self, outputs: list[list[Node]]) -> tuple[list[Subgraph], list[Node]]:
        """The branches as graphs with common inputs, and what these are."""
        cuts = [
            cut(values, [], branch.serial, lambda calls: False)
            for branch, values in zip(self.branches, outputs, strict=True)
        ]
        operands = list({id(x): x for _, _, found in cuts for x in found}.values())
        number = {id(x): i for i, x in enumerate(operands)}
        inputs = [input_node(i, x.shape, x.dtype, f"operand{i}") for i, x in enumerate(operands)]
        made = []
        for own, values, found in cuts:
            places: dict[int, Node] = {id(x): inputs[number[id(y)]] for x, y in zip(own, found, strict=True)}
            made.append(Subgraph(inputs, substituted(values, places)))
        return made, operands

    def apart(self, path: str, a: str, b: str) -> TraceError:
        what = f"results whose element {path} is" if path else "results:"
        return TraceError(
            f"The two branches of {self.where} have different {what} {a} of the one, {b} of the other. In a "
            "compiled program they are alike: convert one, `.astype(mb.float64)`, or stretch it, "
            "`mb.broadcast_to(x, shape)`."
        )


def _equal(a: Any, b: Any) -> bool:
    return graph.number_key(a) == graph.number_key(b)  # type: ignore[no-any-return]


def _now(x: Any, family: Any) -> Any:
    """What a leaf holds now, whatever is written to it later."""
    if not isinstance(x, (AbstractArray, np.ndarray)):
        return x
    x = states.brought(x, family)
    return states.with_parts(x, family, iter([handle(family, p.node) for p in states.parts_of(x, family)]))


class _Joined:
    """A leaf of the results that the branches compute, like this one."""

    __slots__ = ("like",)

    def __init__(self, like: Any) -> None:
        self.like = like
