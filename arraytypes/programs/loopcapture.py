"""Capturing a loop: what its body does in a trip, and what that leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes import recording
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import asarray
from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.duals.base import Dual
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.programs import graph, states
from mirabelle.arraytypes.programs.capture import side_effect
from mirabelle.arraytypes.programs.errors import TraceError, shown_line, user_line
from mirabelle.arraytypes.programs.graph import Input, Node, Slot, call_node, input_node, result_node
from mirabelle.arraytypes.programs.loops import Loop
from mirabelle.arraytypes.programs.states import NUMBERS, described
from mirabelle.arraytypes.programs.subgraphs import cut, in_order
from mirabelle.arraytypes.programs.traced import handle
from mirabelle.arraytypes.programs.watching import Watch, hold
from mirabelle.dispatch import verbs

_INDEX = np.dtype(np.int64)
# Arrays of these dtypes are what they are beside a number of Python's and beside an array of it.
_WIDEST = {"float64", "complex128", "int64", "bool"}
# So often a body is captured until all is known that it writes to.
ATTEMPTS = 12


class _Place:
    """An array that a state consists of, at its place in the state."""

    __slots__ = ("array", "dual", "given", "kept", "made", "node", "path")

    def __init__(self, path: str, array: Any, dual: bool) -> None:
        self.path = path
        # Is it a part of a dual number?
        self.dual = dual
        # What it is before the loop; what the body got for it, and returned in its place.
        self.array = array
        self.given: Any = None
        self.made: Any = None
        self.node: Any = None
        # Does the body return the array that it gets? Then that is one variable, in all trips.
        self.kept = False


class LoopCapture:
    """The capture of a loop."""

    def __init__(
        self,
        kind: str,
        body: Callable[..., Any],
        state: Any,
        condition: Callable[[Any], Any] | None = None,
        bounds: tuple[Any, Any] | None = None,
        of_python: bool = False,
    ) -> None:
        self.kind = kind
        # Are its numbers Python's, which have no dtype?
        self.of_python = of_python
        self.body = body
        self.condition = condition
        self.line = user_line(2)
        self.state = state
        found = [(p, x) for p, x in states.leaves_of(state) if not states.is_container(x)]
        self.paths = [p for p, _ in found]
        self.given = [x for _, x in found]
        self.family = states.family_of([*self.given, *(bounds or ())])
        self.leaves = [states.brought(x, self.family) for x in self.given]
        self.kept: set[tuple[int, int]] = set()
        # Arrays that are no part of the state and are written to; each has a value before the loop.
        self.hidden: list[Any] = []
        self.bounds = bounds
        self.trips: int | None = None
        if bounds is not None:
            numbers = [
                int(b) if not isinstance(b, AbstractArray) or not states.depends(b) else None for b in bounds
            ]
            lower, upper = [b if n is None else n for n, b in zip(numbers, bounds, strict=True)]
            self.bounds = lower, upper
            if numbers[0] is not None and numbers[1] is not None:
                self.trips = max(numbers[1] - numbers[0], 0)

    @property
    def where(self) -> str:
        return f"the loop in {shown_line(self.line)}"

    def loop(self) -> Any:
        if self.trips == 0:
            return self.state
        for _ in range(ATTEMPTS):
            if self.captured():
                return self.recorded()
        raise TraceError(
            f"The body of {self.where} writes to other arrays each time it is called. Make the arrays it "
            "writes to before the loop, or in the body."
        )

    # One call of the body

    def captured(self) -> bool:
        """Capture the body; False if it has to be captured again, knowing more."""
        watch = self.watch = Watch()
        self.inputs: list[Input] = []
        before = [(root, root.node) for root in self.hidden]
        self.hidden_inputs = []
        self.count = self._counter()
        leaves = self.placed()
        for root, node in before:
            self.hidden_inputs.append(self.new_input(node.shape, node.dtype, "carried"))
            hold(root, self.hidden_inputs[-1])
        self.passed = leaves
        nest = states.refilled(self.state, iter(leaves))
        try:
            with watch:
                if self.condition is not None:
                    self.test = self.tested(self.condition(nest))
                    if watch.found() or any(id(x) in watch.touched for x in self.variables()):
                        raise TraceError(
                            f"The condition of {self.where} writes to an array. A condition only looks: write "
                            "in the body."
                        )
                    result = self.body(nest)
                else:
                    result = self.body(handle(self.family, self.count), nest)
                again = not self.compared(leaves, result)
        finally:
            self.hidden_values = [root.node for root in self.hidden]
            for root, node in before:
                hold(root, node)
            known = {id(root) for root in self.hidden}
            new = [(root, node) for root, node in watch.found() if id(root) not in known]
            for root, node in new:
                hold(root, node)
        if new:
            self.hidden = [root for root in self.hidden if id(root) in watch.touched] + [
                root for root, _ in new
            ]
            again = True
        return not again

    def _counter(self) -> Node:
        """The number of the trip, or the index of the loop."""
        return self.new_input((), _INDEX, "index" if self.kind == "for" else "trip")

    def variables(self) -> list[Any]:
        """The arrays that the body is given, or that are known to be written to."""
        return [p.given for places in self.places for p in places] + self.hidden

    def reads_index(self, outputs: list[Node]) -> bool:
        """Does the body of a loop over indices look at these?"""
        index, first = self.inputs[0], self.watch.serial
        return self.kind == "for" and any(
            x is index for x in in_order(outputs, lambda x: x.operands if x.serial >= first else ())
        )

    def check_dtypes(self, outputs: list[Node]) -> None:
        """Refuse dtypes that numbers of Python's take on, and arrays of no dimensions do not."""
        first = self.watch.serial
        for node in in_order(outputs, lambda x: x.operands if x.serial >= first else ()):
            if node.dtype.name not in _WIDEST:
                raise TraceError(
                    f"Numbers of Python's that change in {self.where} meet arrays of {node.dtype.name}, whose "
                    "dtype they take on. In a loop of a program they are arrays of no dimensions."
                )

    def new_input(self, shape: tuple[int, ...], dtype: np.dtype, name: str) -> Input:
        made = input_node(len(self.inputs), shape, dtype, name)
        made.line = self.line
        self.inputs.append(made)
        return made

    def placed(self) -> list[Any]:
        """What the body gets for each leaf of the state."""
        self.places: list[list[_Place]] = []
        made = []
        for at, (path, leaf) in enumerate(zip(self.paths, self.leaves, strict=True)):
            places = []
            for j, x in enumerate(states.parts_of(leaf, self.family)):
                place = _Place(path, x, isinstance(leaf, Dual))
                place.kept = (at, j) in self.kept
                place.given = x
                if not place.kept:
                    place.given = handle(self.family, self.new_input(x.shape, x.dtype, f"state{path}"))
                places.append(place)
            self.places.append(places)
            made.append(
                states.with_parts(leaf, self.family, iter([p.given for p in places])) if places else leaf
            )
        return made

    # What the body returned

    def compared(self, given: list[Any], result: Any) -> bool:
        """Compare what the body returned with the state; False if the state has to be other arrays from the
        start."""
        other = states.difference(self.state, result)
        if other is not None:
            raise self.changed(*other, "Return a state like the one it gets.")
        made = [x for _, x in states.leaves_of(result) if not states.is_container(x)]
        self.returned = made
        same = True
        for at, after in enumerate(made):
            if not self.compared_leaf(at, given[at], after):
                same = False
        return same

    def compared_leaf(self, at: int, given: Any, after: Any) -> bool:
        path, leaf, family = self.paths[at], self.leaves[at], self.family
        if not isinstance(leaf, AbstractArray):
            return self.compared_number(at, leaf, after)
        if isinstance(after, NUMBERS) and leaf.ndim == 0 and np.can_cast(type(after), leaf.dtype, "same_kind"):
            after = asarray(np.asarray(after, leaf.dtype))
        if not isinstance(after, (AbstractArray, np.ndarray)):
            raise self.changed(path, described(leaf), described(after), "Return an array like it.")
        if after is not given or isinstance(after, Dual):
            after = states.brought(after, family)
        if after.shape != leaf.shape or after.dtype != leaf.dtype:
            cure = (
                f"Return `x.astype(mb.{leaf.dtype.name})`, or start with an array of {after.dtype.name}."
                if after.shape == leaf.shape
                else "Start with an array of the shape that the body returns, or write to a part of it."
            )
            raise self.changed(
                path,
                f"{leaf.dtype.name}{list(leaf.shape)}",
                f"{after.dtype.name}{list(after.shape)}",
                cure,
            )
        if isinstance(after, Dual) != isinstance(leaf, Dual):
            if isinstance(leaf, Dual):
                after = states.varying(states.dense(after), leaf, family)
            else:
                # The state gets derivatives in the first trip: it has them from the start, and they are zero.
                self.leaves[at] = states.varying(states.dense(leaf), after, family)
                return False
        elif not isinstance(leaf, DenseArray) and states.kind_of(after) != states.kind_of(leaf):
            if isinstance(leaf, Dual):
                if after.directions != leaf.directions or after._tag is not leaf._tag:
                    raise self.changed(path, f"a dual number of {leaf._tag}", f"one of {after._tag}", "")
                self.leaves[at] = leaf._with(
                    states.dense(leaf.value), ((None, states.dense(leaf._terms[0][1])),)
                )
            else:
                self.leaves[at] = states.dense(leaf)
            if states.kind_of(self.leaves[at]) != states.kind_of(leaf):
                return False
            after = (
                after._with(states.dense(after.value), ((None, states.dense(after._terms[0][1])),))
                if isinstance(after, Dual)
                else states.dense(after)
            )
        elif isinstance(leaf, DenseArray) and not isinstance(after, DenseArray):
            after = states.dense(after)
        fine = True
        for j, (place, part) in enumerate(zip(self.places[at], states.parts_of(after, family), strict=True)):
            place.made = part
            place.node = part.node
            if part is place.given and not place.kept and not isinstance(leaf, Dual):
                self.kept.add((at, j))
                fine = False
        return fine

    def compared_number(self, at: int, before: Any, after: Any) -> bool:
        """A number is a constant, or has to be an array from the start."""
        path = self.paths[at]
        if not isinstance(before, NUMBERS):
            if after is before or (type(after) is type(before) and after == before):
                return True
            raise self.changed(path, described(before), described(after), "Only arrays and numbers can change.")
        if not isinstance(after, AbstractArray):
            if not isinstance(after, NUMBERS):
                raise self.changed(path, described(before), described(after), "Return a number or an array.")
            if type(after) is type(before) and graph.number_key(after) == graph.number_key(before):
                return True
            dtype = np.result_type(np.asarray(before).dtype, np.asarray(after).dtype)
        else:
            dtype = after.dtype
            if after.ndim or not np.can_cast(type(before), dtype, "same_kind"):
                raise self.changed(
                    path, repr(before), described(after), "Start with an array like that: `mb.zeros_like(x)`."
                )
        self.leaves[at] = states.brought(asarray(np.asarray(before, dtype)), self.family)
        return False

    def changed(self, path: str, before: str, after: str, cure: str) -> TraceError:
        what = f"the element {path} of its state" if path else "its state"
        return TraceError(
            f"The body of {self.where} changes {what} from {before} to {after}, and in a compiled program a "
            f"state keeps its structure, shapes and dtypes. {cure}"
        )

    # The node

    def recorded(self) -> Any:
        """Record the loop, and return the state after it."""
        moving = [p for places in self.places for p in places if not p.kept]
        order = self.order()
        turns = self.turns(order) if order else None
        outputs = [p.node for p in moving] + self.hidden_values
        starts = [p.array.node for p in moving] + [root.node for root in self.hidden]
        inputs = self.inputs[1:]
        test: Node | None = None
        if self.condition is not None:
            test = self.checked(self.test)
        counted = (order and turns is None) or self.reads_index(outputs)
        if self.of_python and (counted or any(map(_became_array, self.given, self.leaves))):
            self.check_dtypes(outputs)
        first: Any = None
        if counted:
            number = handle(self.family, self.inputs[0])
            outputs.insert(0, (number + 1).node)
            inputs.insert(0, self.inputs[0])
            lower = self.bounds[0] if self.kind == "for" and self.bounds is not None else 0
            first = verbs.astype(states.brought(asarray(lower), self.family), _INDEX)
            starts.insert(0, first.node)
        tops = outputs if test is None else [*outputs, test]
        certain = self.trips is not None
        made_inputs, made, operands = cut(tops, inputs, self.watch.serial, lambda calls: certain or not calls)
        n = len(outputs)
        loop = Loop(made_inputs, made[:n], made[n] if test is not None else None, self.trips)
        arguments = [*starts, *operands]
        options: dict[str, Any] = {}
        if self.kind == "for" and self.trips is None and self.bounds is not None:
            for name, bound in zip(("lower", "upper"), self.bounds, strict=True):
                if not isinstance(bound, int):
                    arguments.append(states.brought(bound, self.family).node)
                    options[name] = Slot(len(arguments) - 1)
                else:
                    options[name] = bound
        slots = [Slot(i) for i in range(len(starts) + len(operands))]
        specs = tuple([(x.shape, x.dtype) for x in outputs])
        call = call_node(self.kind, f"{self.kind} loop", ((loop, slots), options), tuple(arguments), specs)
        call.line = self.line
        values = [result_node(call, k) for k in range(n)]
        for x in values:
            x.line = self.line
        trips = None
        if counted:
            trips = handle(self.family, values.pop(0))
            if first is not None and self.kind == "for":
                trips = trips - first
        for root, value in zip(self.hidden, values[len(moving) :], strict=True):
            for watcher in tuple(recording.watchers):
                watcher.note(root)
            hold(root, value)
        results = {id(p): handle(self.family, value) for p, value in zip(moving, values, strict=False)}
        if order:
            self.turned(order, turns, trips, results)
        return self.delivered(results)

    def tested(self, test: Any) -> Node:
        """What a condition returned, as a value."""
        if isinstance(test, Dual):
            test = test.value
        if not isinstance(test, AbstractArray):
            test = asarray(np.asarray(bool(test)))
        if test.size != 1:
            raise TraceError(
                f"The condition of {self.where} has the shape {test.shape}, and must be one truth value: "
                "`mb.all(...)` or `mb.any(...)`."
            )
        return states.dense(states.brought(test, self.family)).node  # type: ignore[no-any-return]

    def checked(self, test: Node) -> Node:
        """The condition, unless it always holds."""
        if not test.bound and bool(np.asarray(verbs.fetch(handle(self.family, test)))):
            raise TraceError(
                f"The condition of {self.where} is True whatever the state is: the loop would never end. Let "
                "it look at the state it is given."
            )
        return test

    def delivered(self, results: dict[int, Any]) -> Any:
        """The state, made of the results."""
        made = []
        for at, (leaf, places) in enumerate(zip(self.leaves, self.places, strict=True)):
            if not places:
                made.append(leaf)
                continue
            given = self.given[at]
            known = isinstance(given, AbstractArray) and leaf_family(type(given)) is self.family
            if all(p.kept for p in places):
                # It is the variable that it was.
                made.append(given if known else leaf)
                if (
                    isinstance(given, AbstractArray)
                    and not known
                    and any(x is p.array for x in self.hidden for p in places)
                ):
                    raise side_effect(given)
                continue
            x = states.with_parts(
                leaf, self.family, iter([p.array if p.kept else results[id(p)] for p in places])
            )
            if isinstance(leaf, Dual) and any(id(p.given) in self.watch.touched for p in places):
                if self.returned[at] is not self.passed[at] or not isinstance(given, Dual):
                    raise self.not_in_place(self.paths[at])
                verbs.assign(given, x)
                x = given
            made.append(x)
        return states.refilled(self.state, iter(made))

    # Arrays of the state that are written to, and returned at other places

    def order(self) -> dict[int, int]:
        """For each place (by its number among those that move) where the array comes from that is returned
        there, if bodies write to what they get and return it elsewhere. Empty where nothing is written."""
        moving = [p for places in self.places for p in places if not p.kept]
        touched = [i for i, p in enumerate(moving) if id(p.given) in self.watch.touched and not p.dual]
        if not touched:
            return {}
        number = {id(p.given): i for i, p in enumerate(moving)}
        source = {k: number[id(p.made)] for k, p in enumerate(moving) if id(p.made) in number}
        found: dict[int, int] = {}
        for i in touched:
            cycle = [i]
            while cycle[-1] in source and source[cycle[-1]] != i and len(cycle) <= len(moving):
                cycle.append(source[cycle[-1]])
            if source.get(cycle[-1]) != i or sum(j == i for j in source.values()) != 1:
                raise self.not_in_place(moving[i].path)
            found.update({k: source[k] for k in cycle})
        return found

    def not_in_place(self, path: str) -> TraceError:
        what = f"the element {path} of its state" if path else "its state"
        return TraceError(
            f"The body of {self.where} writes to {what}, and returns another array in its place: the array "
            "that the loop starts with would have been written to in the first trip, and not in the others. "
            "Return what was written to, or write to a copy: `x = mb.copy(x)`."
        )

    def turns(self, order: dict[int, int]) -> dict[int, int] | None:
        """For each place the array that is there after the last trip; None if that depends on values."""
        if self.trips is None:
            return None
        return {k: _after(order, k, self.trips) for k in order}

    def turned(self, order: dict[int, int], turns: Any, trips: Any, results: dict[int, Any]) -> None:
        """Let the arrays that the loop started with have the contents they have after it."""
        moving = [p for places in self.places for p in places if not p.kept]
        if turns is not None:
            for k, j in turns.items():
                self.put(moving[j], results[id(moving[k])])
            made = {id(moving[k]): moving[j].array for k, j in turns.items()}
            results.update(made)
            return
        values = {k: results[id(moving[k])] for k in order}
        for j in order:
            period = next(n for n in range(1, len(order) + 1) if _after(order, j, n) == j)
            where = {_after(order, j, -n % period): n for n in range(period)}
            # After n trips (and whole periods) the array j is at the place k from which n steps lead to j.
            value: Any = None
            for n in range(period):
                k = next(k for k in where if _after(order, k, n) == j)
                value = values[k] if value is None else verbs.where(trips % period == n, values[k], value)
            self.put(moving[j], value)

    def put(self, place: _Place, value: Any) -> None:
        for watcher in tuple(recording.watchers):
            watcher.note(place.array)
        hold(place.array, value.node)


def _became_array(before: Any, after: Any) -> bool:
    return isinstance(before, NUMBERS) and isinstance(after, AbstractArray)


def _after(order: dict[int, int], k: int, n: int) -> int:
    """Where the array at place `k` was `n` trips before."""
    for _ in range(n % _period(order, k)):
        k = order[k]
    return k


def _period(order: dict[int, int], k: int) -> int:
    n, at = 1, order[k]
    while at != k:
        n, at = n + 1, order[at]
    return n
