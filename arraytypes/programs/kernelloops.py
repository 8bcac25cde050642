"""Loops over elements as kernels where their arrays are: independent turns are threads of a grid.

A loop whose turns depend on each other, around loops that are parallel, is a loop of launches; any other is a
kernel of one thread, where that takes less time than to bring the arrays to the host and back. `KernelLoop`
estimates the ways, and runs the chosen one.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import asarray, empty
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.programs.loopplans import DTYPES, Outlined, Plan, Planner, Repeat, Step, Unfit
from mirabelle.arraytypes.usercode.elementloops import Bounds
from mirabelle.arraytypes.usercode.loopwork import Ranges, work
from mirabelle.arraytypes.usercode.partloops import apart, has_parts
from mirabelle.arraytypes.usercode.subscripts import joined, signs_of, wrapped
from mirabelle.dispatch import verbs
from mirabelle.dispatch.errors import UserFunctionError

# What a way costs, in seconds: an access to an element by a core and by a thread of a card (which takes some
# twenty times as long), a launch, an array that is brought, and each of its bytes. So many threads run at once.
# (Rounded from what `python -m benchmarks gpu elementloops` measures on an H200.)
CORE, THREAD, LAUNCH, BRING, BYTE, AT_ONCE = 1e-9, 20e-9, 18e-6, 65e-6, 4e-10, 20_000

# So many forms of a loop are remembered.
_MOST = 256


class KernelLoop:
    """A loop of a function, as kernels."""

    def __init__(self, loop: ast.stmt, parameters: list[str], results: list[str], outlined: Outlined) -> None:
        self.loop = loop
        self.parameters = parameters
        self.results = results
        self.outlined = outlined
        self._plans: dict[Any, Plan] = {}
        self._found: dict[Any, ast.stmt] = {}
        self._has_parts = has_parts(loop)

    def chosen(self, values: Sequence[Any]) -> tuple[Plan | None, str]:
        """The plan by which a loop runs where its arrays are, or None: and why, in words."""
        given = dict(zip(self.parameters, values, strict=True))
        ranks = {n: x.ndim for n, x in given.items() if isinstance(x, (AbstractArray, np.ndarray)) and x.ndim}
        loop, bounds = self._of_elements(given, ranks)
        signs, checked = signs_of(loop, ranks, bounds.indices), not bounds.inside
        key = tuple([_kind(x) for x in values]), signs, checked, ast.unparse(loop) if self._has_parts else ""
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._planned(
                wrapped(copy.deepcopy(loop), ranks, signs), given, ranks, checked
            )
        if plan.why:
            return None, plan.why
        ranges = Ranges(given)
        try:
            there, core = _seconds(plan.steps, ranges), CORE * work([loop], ranges)
        except (TypeError, ValueError, ArithmeticError) as e:  # (which it will raise itself)
            return None, str(e)
        written = names_written(self.loop)
        here = core + sum(
            (BRING + BYTE * x.size * x.dtype.itemsize) * (2 if n in written else 1)
            for n, x in given.items()
            if n in ranks
        )
        said = f"about {_shown(there)} there and {_shown(here)} here, transfers included"
        return (plan, said) if there <= here else (None, f"{_told(plan)}: {said}")

    def _of_elements(self, given: Mapping[str, Any], ranks: dict[str, int]) -> tuple[ast.stmt, Bounds]:
        """The loop over single elements that it is, and where its indices lie."""
        key: Any = tuple(sorted(ranks.items()))
        if self._has_parts:
            # (How many elements parts have is known of these sizes, and where bounds lie of these numbers.)
            key = tuple(
                [
                    (n, getattr(x, "shape", x))
                    for n, x in given.items()
                    if n in ranks or isinstance(x, (int, np.integer))
                ]
            )
        found = self._found.get(key)
        if found is None:
            found = joined(copy.deepcopy(self.loop), ranks)
            if self._has_parts:
                found = apart(found, given, ranks, Bounds(found, given).indices)
            if len(self._found) < _MOST:
                self._found[key] = found
        return found, Bounds(found, given)

    # Plans

    def _planned(self, loop: Any, given: Mapping[str, Any], ranks: dict[str, int], checked: bool) -> Plan:
        try:
            return Plan(Planner(given, ranks, self.results, self.outlined, checked).top(loop), "")
        except (Unfit, UserFunctionError) as e:
            return Plan([], str(e))

    # Running

    def run(self, plan: Plan, values: Sequence[Any], family: Any) -> Any:
        """Run a loop: what it writes to is written where it is, what it leaves behind is returned."""
        scope = dict(zip(self.parameters, [_there(x, family) for x in values], strict=True))
        kept = None
        if not plan.ran and len(plan.steps) + isinstance(plan.steps[0], Repeat) > 1:
            # (A kernel that cannot be compiled may come after one that has run.)
            kept = {n: verbs.copy(scope[n]) for n in names_written(self.loop) if n in scope}
        try:
            _run(plan.steps, scope, family)
        except Exception:
            for n, x in (kept or {}).items():
                verbs.assign(scope[n], x)
            raise
        plan.ran = True
        found = [scope[r] for r in self.results]
        return None if not found else found[0] if len(found) == 1 else tuple(found)


def _run(steps: list[Step], scope: dict[str, Any], family: Any) -> None:
    ranges = Ranges(scope)
    for step in steps:
        if isinstance(step, Repeat):
            assert isinstance(step.loop.target, ast.Name)
            for at in ranges.of(step.loop):
                scope[step.loop.target.id] = at
                _run(step.steps, scope, family)
            continue
        turns = [ranges.of(loop) for loop in step.loops]
        shape = tuple([len(t) for t in turns]) or (1,)
        if not all(shape):
            continue
        outs = [empty(shape, dtype=DTYPES[kind], device=family) for _, _, kind in step.gathered]
        step.kernel[shape](*[scope[p] for p in step.parameters], *outs)
        for (name, how, _), out in zip(step.gathered, outs, strict=True):
            scope[name] = _joined(how, scope[name], out)
        for loop, t in zip(step.loops, turns, strict=True):
            assert isinstance(loop.target, ast.Name)
            if loop.target.id in step.last:
                scope[loop.target.id] = t[-1]


def _joined(how: str, before: Any, each: Any) -> Any:
    """A number that threads leave behind, each its own."""
    if not how:
        return each[0]
    found = getattr(each, how)()
    if how == "sum":
        return before + found
    return before * found if how == "prod" else found


def names_written(loop: ast.stmt) -> set[str]:
    """The variables whose elements a loop writes to."""
    found = set()
    for n in ast.walk(loop):
        if isinstance(n, ast.Subscript) and not isinstance(n.ctx, ast.Load):
            inner: ast.expr = n.value
            while isinstance(inner, ast.Subscript):
                inner = inner.value
            if isinstance(inner, ast.Name):
                found.add(inner.id)
    return found


def _kind(x: Any) -> Any:
    return (type(x), x.dtype, x.ndim) if isinstance(x, (AbstractArray, np.ndarray)) else type(x)


def _there(x: Any, family: Any) -> Any:
    """An argument where a loop runs; an array of no dimensions on the host is the number it holds."""
    if isinstance(x, np.ndarray):
        return verbs.adapt(family, asarray(x)) if x.ndim else x[()]
    if isinstance(x, AbstractArray) and leaf_family(type(x)) is not family:
        return verbs.adapt(family, x) if x.ndim else verbs.to_numpy(x)[()]
    return x


# Costs


def _seconds(steps: list[Step], ranges: Ranges) -> float:
    """About how long steps take on a card."""
    total = 0.0
    for step in steps:
        if isinstance(step, Repeat):
            turns = ranges.of(step.loop)
            if turns:
                total += len(turns) * _seconds(step.steps, ranges.at(step.loop, turns[len(turns) // 2]))
            continue
        threads = 1
        for loop in step.loops:
            threads *= max(len(ranges.of(loop)), 1)
        total += LAUNCH + THREAD * work(step.body, ranges) / min(threads, AT_ONCE)
    return total


def _told(plan: Plan) -> str:
    step = plan.steps[0]
    if isinstance(step, Repeat):
        return "It would be a loop of launches"
    return (
        "It would be a grid of threads"
        if step.loops
        else "Its turns depend on each other, it would be one thread"
    )


def _shown(seconds: float) -> str:
    """A time in words.

    >>> _shown(0.00123), _shown(2.5)
    ('1.2 ms', '2500 ms')
    """
    return f"{seconds * 1e3:.2g} ms" if seconds < 1 else f"{seconds * 1e3:.0f} ms"
