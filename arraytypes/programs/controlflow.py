"""Loops and branches that depend on values, in compiled programs and outside of them.

Outside of a program, `while_loop`, `fori_loop` and `cond` are Python's `while`, `for` and `if`. Where a
function is compiled they are captured: what a trip does is a graph of its own, and the loop is one node.

>>> import mirabelle as mb
>>> @mb.compile
... def halved(x):
...     return mb.while_loop(lambda x: mb.max(x) > 1, lambda x: x / 2, x)
>>> print(halved(mb.HostArray([3.0, 10.0])))
[0.1875 0.625 ]

Arrays are variables here as everywhere: what a body writes to, be it part of the state or not, is carried from
trip to trip and has its last contents afterwards.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes import recording
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import asarray
from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.duals.base import Dual
from mirabelle.arraytypes.elementwise import default_family, leaf_family
from mirabelle.arraytypes.programs import calls, graph, states
from mirabelle.arraytypes.programs.capture import capturing, side_effect, traced_family
from mirabelle.arraytypes.programs.errors import TraceError, shown_line, user_line
from mirabelle.arraytypes.programs.graph import Input, Node, Slot, Update, call_node, input_node, result_node
from mirabelle.arraytypes.programs.running import in_c_order
from mirabelle.arraytypes.programs.states import NUMBERS, described
from mirabelle.arraytypes.programs.subgraphs import Subgraph, cut, in_order, substituted
from mirabelle.arraytypes.programs.traced import Traced, _names, family_for, handle, view_of_node
from mirabelle.dispatch import policy, verbs
from mirabelle.dispatch.tree import Leaf

_INDEX = np.dtype(np.int64)
# So often a body is captured until all is known that it writes to.
ATTEMPTS = 12


def while_loop(condition: Callable[[Any], Any], body: Callable[[Any], Any], state: Any) -> Any:
    """Repeat `state = body(state)` while `condition(state)` holds.

    The state is an array, a number, or a nest of tuples, lists, dictionaries and dataclasses of these. In a
    compiled program it keeps its shapes and dtypes from trip to trip.

    >>> import mirabelle as mb
    >>> def collatz(n):
    ...     step = lambda s: (mb.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1)
    ...     return mb.while_loop(lambda s: s[0] != 1, step, (n, 0))[1]
    >>> n = mb.asarray(27)
    >>> print(collatz(n), mb.compile(collatz)(n))
    111 111
    """
    if capturing():
        return _Capture("while", body, state, condition=condition).loop()
    while _holds(condition(state)):
        state = body(state)
    return state


def fori_loop(lower: Any, upper: Any, body: Callable[[Any, Any], Any], state: Any) -> Any:
    """Repeat `state = body(i, state)` for i from `lower` up to but not `upper`.

    The bounds are integers, or integer arrays of no dimensions; `i` is such an array, too. The state is as in
    `while_loop`.

    >>> import mirabelle as mb
    >>> def powers(x, n):
    ...     return mb.fori_loop(0, n, lambda i, s: s * x + i, mb.zeros_like(x))
    >>> x, n = mb.HostArray([1.0, 2.0]), mb.asarray(4)
    >>> print(powers(x, n), mb.compile(powers)(x, n))
    [ 6. 11.] [ 6. 11.]
    """
    bounds = _bound("lower", lower), _bound("upper", upper)
    if capturing():
        return _Capture("for", body, state, bounds=bounds).loop()
    with policy.allow_scalar():
        indices = range(int(bounds[0]), int(bounds[1]))
    arrays = [x for _, x in states.leaves_of(state) if isinstance(x, AbstractArray)]
    family = next((leaf_family(type(x)) for x in arrays), None)
    for i in indices:
        index: Any = np.int64(i)
        if family is not None and family.home.rank > 1:
            # (Elements of arrays on a device are not picked one by one, but where an array says.)
            index = verbs.adapt(family, asarray(index))
        state = body(index, state)
    return state


def cond(predicate: Any, if_true: Callable[..., Any], if_false: Callable[..., Any], *operands: Any) -> Any:
    """`if_true(*operands)` if the predicate holds, else `if_false(*operands)`.

    In a compiled program both are captured, one is run, and their results have the same shapes and dtypes.

    >>> import mirabelle as mb
    >>> f = mb.compile(lambda x: mb.cond(mb.sum(x) > 0, mb.sqrt, mb.negative, x))
    >>> print(f(mb.HostArray([1.0, 4.0])), f(mb.HostArray([1.0, -4.0])))
    [1. 2.] [-1.  4.]
    """
    if capturing() and isinstance(predicate, AbstractArray) and _depends(predicate):
        return _Branches(predicate, (if_true, if_false), operands).chosen()
    return if_true(*operands) if _holds(predicate) else if_false(*operands)


def _holds(truth: Any) -> bool:
    """A truth value that is asked for: on a device, too."""
    with policy.allow_scalar():
        return bool(truth)


def _bound(name: str, x: Any) -> Any:
    """A bound of a loop, checked."""
    if isinstance(x, (AbstractArray, np.ndarray)):
        if x.dtype.kind not in "iu" or x.ndim:
            raise TypeError(
                f"The {name} bound of a loop is an integer, not an array {x.dtype.name}{list(x.shape)}. "
                "Convert it: `n.astype(mb.int64)`."
            )
        return x
    try:
        return x.__index__()
    except AttributeError:
        raise TypeError(f"The {name} bound of a loop is an integer, not {x!r}. Convert it: `int(n)`.") from None


def _depends(x: Any) -> bool:
    """Does an array depend on what the program is called with?"""
    if isinstance(x, Dual):
        return _depends(x.value)
    root = leaf_family(type(x))
    return issubclass(root, Traced) and any(p.node.bound for p in states.parts_of(x, root))


def _family_of(leaves: list[Any]) -> Any:
    """The traced type of the arrays of a state."""
    families = [leaf_family(type(x)) for x in leaves if isinstance(x, AbstractArray)]
    for family in families:
        if issubclass(family, Traced):
            return family
    family = families[0] if families else traced_family.get() or default_family()
    return family if issubclass(family, Traced) else family_for(family)


# Watching what a function writes to


class Watch:
    """The arrays of the surrounding program that a function writes to while it is captured."""

    def __init__(self) -> None:
        # What is made from here on is the function's own.
        self.first = next(_names)
        self.serial = next(graph._serials)
        self.before: dict[int, tuple[weakref.ref[Any], Node]] = {}
        self.touched: set[int] = set()

    def note(self, root: Any) -> None:
        if not isinstance(root, Traced):
            return
        self.touched.add(id(root))
        known = self.before.get(id(root))
        if known is not None and known[0]() is root:
            return
        if verbs.leaf_of(root).view.buffer.name < self.first:
            self.before[id(root)] = weakref.ref(root), root.node

    def __enter__(self) -> Watch:
        recording.watchers.append(self)
        return self

    def __exit__(self, *problem: object) -> None:
        recording.watchers.remove(self)

    def found(self) -> list[tuple[Any, Node]]:
        """The arrays that were written, with their values before."""
        alive = [(ref(), node) for ref, node in self.before.values()]
        return [(root, node) for root, node in alive if root is not None]


def hold(root: Any, node: Node) -> None:
    """Let an array hold a value, in memory of its own."""
    root._node = Leaf(view_of_node(type(root).family, node))


# Loops


class Loop:
    """What a loop does.

    `inputs` are first the values that are carried from trip to trip, then what the loop reads beside them.
    `outputs` are the carried values after a trip; `condition`, a value of the inputs, says whether there is
    another one; or else there are `trips`, or as many as the bounds say that the call gets (None).
    """

    __slots__ = ("_steps", "_tests", "condition", "inputs", "outputs", "owned", "passed", "trips")

    def __init__(
        self, inputs: list[Input], outputs: tuple[Node, ...], condition: Node | None, trips: int | None
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.condition = condition
        self.trips = trips
        self._tests: Any = None
        self._steps: Any = None
        number = {id(x): i for i, x in enumerate(inputs[: len(outputs)])}
        # Carried values that are another one of the trip before, which takes no work: which one.
        self.passed = {k: number[id(x)] for k, x in enumerate(outputs) if id(x) in number}
        # Which of the values that are computed are carried ones that have been written to.
        self.owned: dict[int, int] = {}
        once = len(set(self.passed.values())) == len(self.passed)
        for at, x in enumerate([x for k, x in enumerate(outputs) if k not in self.passed]):
            while isinstance(x, Update):
                x = x.base
            j = number.get(id(x), -1)
            if j >= 0 and once and j not in self.passed.values() and j not in self.owned.values():
                self.owned[at] = j

    @property
    def tests(self) -> Subgraph:
        """The condition, before the first trip."""
        if self._tests is None:
            assert self.condition is not None
            self._tests = Subgraph(self.inputs, (self.condition,))
        return self._tests  # type: ignore[no-any-return]

    @property
    def steps(self) -> Subgraph:
        """What is computed in a trip, and the condition after it."""
        if self._steps is None:
            outputs = tuple([x for k, x in enumerate(self.outputs) if k not in self.passed])
            if self.condition is not None:
                after = {id(x): y for x, y in zip(self.inputs, self.outputs, strict=False)}
                outputs = (*outputs, *substituted((self.condition,), after))
            self._steps = Subgraph(self.inputs, outputs)
        return self._steps  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        how = "while" if self.condition is not None else f"{'?' if self.trips is None else self.trips} trips"
        return f"<loop: {how}, {len(self.outputs)} carried>"


def run_loop(inner: Any, loop: Loop, views: list[Any], lower: Any = 0, upper: Any = 0) -> list[Any]:
    """The carried values after all trips, given those before and what else is read."""
    n = len(loop.outputs)
    rest = [in_c_order(inner, v) for v in views[n:]]
    # (Copies: they may be written to, and what is returned is nobody else's.)
    state = [_copied(inner, v) for v in views[:n]]
    if loop.condition is None:
        trips = loop.trips
        if trips is None:
            trips = max(_integer(inner, upper) - _integer(inner, lower), 0)
        if trips:
            step = loop.steps.runner(inner, loop.owned if inner._runs_in_place else None)
            for _ in range(trips):
                state = _moved(loop, state, step.run([*state, *rest]))
    elif _truth(inner, loop.tests.runner(inner).run([*state, *rest])[0]):
        step = loop.steps.runner(inner, loop.owned if inner._runs_in_place else None)
        while True:
            *made, more = step.run([*state, *rest])
            state = _moved(loop, state, made)
            if not _truth(inner, more):
                break
    seen: set[int] = set()
    for k, v in enumerate(state):
        if id(v) in seen:
            state[k] = _copied(inner, v)
        seen.add(id(v))
    return state


def _moved(loop: Loop, state: list[Any], made: Any) -> list[Any]:
    """The state after a trip: what was computed, and what only changes its place."""
    passed = loop.passed
    if not passed:
        return list(made)
    rest = iter(made)
    return [state[passed[k]] if k in passed else next(rest) for k in range(len(state))]


def _copied(inner: Any, view: Any) -> Any:
    made = inner._empty(view.shape, view.dtype)
    inner._copy_into(made, view)
    return made


def _truth(inner: Any, view: Any) -> bool:
    return bool(inner._download(view))


def _integer(inner: Any, bound: Any) -> int:
    return bound if isinstance(bound, int) else int(inner._download(bound))


calls.KINDS["while"] = run_loop
calls.KINDS["for"] = run_loop


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


class _Capture:
    """The capture of a loop."""

    def __init__(
        self,
        kind: str,
        body: Callable[..., Any],
        state: Any,
        condition: Callable[[Any], Any] | None = None,
        bounds: tuple[Any, Any] | None = None,
    ) -> None:
        self.kind = kind
        self.body = body
        self.condition = condition
        self.line = user_line(2)
        self.state = state
        found = [(p, x) for p, x in states.leaves_of(state) if not states.is_container(x)]
        self.paths = [p for p, _ in found]
        self.given = [x for _, x in found]
        self.family = _family_of([*self.given, *(bounds or ())])
        self.leaves = [states.brought(x, self.family) for x in self.given]
        self.skeleton = [(p, x) for p, x in states.leaves_of(state) if states.is_container(x)]
        self.kept: set[tuple[int, int]] = set()
        # Arrays that are no part of the state and are written to; each has a value before the loop.
        self.hidden: list[Any] = []
        self.bounds = bounds
        self.trips: int | None = None
        if bounds is not None:
            numbers = [int(b) if not isinstance(b, AbstractArray) or not _depends(b) else None for b in bounds]
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
                after = _varying(states.dense(after), leaf, family)
            else:
                # The state gets derivatives in the first trip: it has them from the start, and they are zero.
                self.leaves[at] = _varying(states.dense(leaf), after, family)
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


def _varying(x: Any, like: Any, family: Any) -> Any:
    """A constant as a dual number whose derivatives are zero."""
    partials = states.brought(verbs.similar(x, shape=(like.directions, *x.shape)), family)
    verbs.assign(partials, 0)
    return like._with(x, ((None, partials),))


# Branches


class Branches:
    """Two graphs with the same operands and results, of which one is run."""

    __slots__ = ("if_false", "if_true")

    def __init__(self, if_true: Subgraph, if_false: Subgraph) -> None:
        self.if_true = if_true
        self.if_false = if_false


def run_branch(inner: Any, branches: Branches, predicate: Any, views: list[Any]) -> list[Any]:
    """What the branch gives that the predicate chooses."""
    graph = branches.if_true if _truth(inner, predicate) else branches.if_false
    made = graph.runner(inner).run([in_c_order(inner, v) for v in views])
    return list(made)


calls.KINDS["cond"] = run_branch


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


class _Branches:
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
            x = x if isinstance(x, Dual) else _varying(states.dense(x), y, self.family)
            y = y if isinstance(y, Dual) else _varying(states.dense(y), x, self.family)
        if states.kind_of(x) != states.kind_of(y):
            x, y = _plain(x), _plain(y)
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


def _plain(x: Any) -> Any:
    """An array as one in memory, or as dual numbers of such."""
    if isinstance(x, Dual):
        return x._with(states.dense(x.value), ((None, states.dense(x._terms[0][1])),))
    return states.dense(x)


__all__ = ["Branches", "Loop", "cond", "fori_loop", "while_loop"]
