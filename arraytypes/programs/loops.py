"""Loops and branches as they stand in a graph, and how they are run."""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.programs import calls
from mirabelle.arraytypes.programs.graph import Input, Node, Update
from mirabelle.arraytypes.programs.running import in_c_order
from mirabelle.arraytypes.programs.subgraphs import Subgraph, substituted


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
            done = 0
            if hasattr(step, "repeated"):
                # (Several trips at once.)
                state, done = step.repeated(state, rest, loop.passed, trips)
            for _ in range(trips - done):
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
