"""How a loop over elements becomes kernels: grids over what is parallel, one thread for what is not.

A `Launch` is a kernel of `@mb.kernel`, made of the statements as they stand: a loop whose turns are threads
turns once in each of them. A `Repeat` is a loop whose turns depend on each other, around launches.
"""

from __future__ import annotations

import ast
import copy
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mirabelle.arraytypes.kernels import Kernel
from mirabelle.arraytypes.usercode.loopkinds import kinds_of
from mirabelle.arraytypes.usercode.loopwork import Ranges
from mirabelle.arraytypes.usercode.parallelloops import accesses_of, is_counted, nest_of, one_turn
from mirabelle.arraytypes.usercode.rewriting import OURS, Liveness, names_loaded, names_stored
from mirabelle.arraytypes.usercode.subscripts import compared

DTYPES: dict[str, Any] = {"b": np.bool_, "i": np.int64, "f": np.float64, "c": np.complex128}
_START = {"sum": 0, "prod": 1}
_CONTEXT = f"{OURS}k"

Outlined = Callable[[str, Sequence[str], list[ast.stmt]], types.FunctionType]


class Unfit(Exception):
    """Why a loop is not run as kernels."""


@dataclass
class Launch:
    """A kernel over the turns of `loops` (one thread, if there are none). `gathered` are the numbers that its
    threads leave behind, with how they are joined ("" where there is one thread) and their kind."""

    kernel: Kernel
    parameters: list[str]
    body: list[ast.stmt]
    loops: list[ast.For]
    gathered: list[tuple[str, str, str]] = field(default_factory=list)
    last: list[str] = field(default_factory=list)


@dataclass
class Repeat:
    """Launches that are repeated for each turn of a loop."""

    loop: ast.For
    steps: list[Launch | Repeat]


Step = Launch | Repeat


class Plan:
    """How a loop is run for arguments of certain types; `why` if not as kernels."""

    def __init__(self, steps: list[Step], why: str) -> None:
        self.steps = steps
        self.why = why
        self.ran = False


class Planner:
    """Makes the steps of one loop."""

    def __init__(
        self,
        given: Mapping[str, Any],
        ranks: dict[str, int],
        results: list[str],
        outlined: Outlined,
        checked: bool,
    ) -> None:
        self.given = given
        self.ranks = ranks
        self.results = set(results)
        self.outlined = outlined
        self.checked = checked
        self.count = 0
        # Numbers that the host knows: they say how often loops turn.
        self.known = {n for n, x in given.items() if isinstance(x, (int, np.integer))}

    def top(self, loop: ast.stmt) -> list[Step]:
        why = ""
        if is_counted(loop):
            assert isinstance(loop, ast.For)
            found, why = self.parallel(loop, self.results)
            if found is not None:
                return [found]
            steps = self.sequence(loop)
            if steps is not None:
                return [steps]
        return [self.thread([loop], sorted(self.results), why)]

    def parallel(self, loop: ast.For, left: set[str]) -> tuple[Launch | None, str]:
        """A loop as a grid, if turns of it are independent; why not."""
        nest = nest_of(loop, self.ranks, left)
        loops = [x for x in nest.parallel if Ranges.names(x) <= self.known]
        if not loops:
            return None, nest.why or "how often it turns is not known on the host"
        counted = {x.target.id for x in loops if isinstance(x.target, ast.Name)}
        if left & names_stored([loop]) - counted - set(nest.reductions):
            return None, "what it counts by is read after it"
        kinds = kinds_of(loop, self.given)
        gathered = [(n, how, kinds.get(n, "")) for n, how in nest.reductions.items()]
        if not all(kind for _, _, kind in gathered):
            return None, "what it gathers is of an unknown kind"
        whole = copy.deepcopy(loop)
        at: Any = whole
        for x in nest.loops:
            if x in loops:
                index = ast.Call(_context("index"), [ast.Constant(loops.index(x))], [])
                one_turn(at, index)
            at = at.body[0]
        body: list[ast.stmt] = []
        for n, how, kind in gathered:
            if how in _START:
                start = type(DTYPES[kind](0).item())(_START[how])
                body.append(ast.Assign([ast.Name(n, ast.Store())], ast.Constant(start)))
        body.append(whole)
        places = [ast.Call(_context("index"), [ast.Constant(d)], []) for d in range(len(loops))]
        body += [_stored(n, places) for n, _, _ in gathered]
        made = self.launch(body, [loop], loops, gathered)
        made.last = sorted(counted & left)
        return made, ""

    def thread(self, body: list[ast.stmt], left: list[str], why: str = "") -> Launch:
        """Statements as a kernel of one thread."""
        for s in body:
            accesses = accesses_of(s, self.ranks)
            if isinstance(accesses, str):
                raise Unfit(accesses)
        kinds = kinds_of(ast.Module(body, []), self.given)
        gathered = [(n, "", kinds.get(n, "")) for n in left]
        unknown = [n for n, _, kind in gathered if not kind]
        if unknown:
            why = why or "its turns depend on each other"
            raise Unfit(f"{why}, and `{unknown[0]}`, which it leaves behind, is of an unknown kind")
        stores = [_stored(n, [ast.Constant(0)]) for n in left]
        return self.launch([*copy.deepcopy(body), *stores], body, [], gathered)

    def sequence(self, loop: ast.For) -> Repeat | None:
        """A loop of launches, if some of what stands in it is parallel."""
        if not Ranges.names(loop) <= self.known or _leaves(loop):
            return None
        assert isinstance(loop.target, ast.Name)
        name = loop.target.id
        if name in names_stored(loop.body) or self.results & names_stored([loop]):
            return None
        outer = self.known
        self.known = outer | {name}
        try:
            segments: list[Step | list[ast.stmt]] = []
            stored = names_stored(loop.body) - set(self.ranks)
            for s in loop.body:
                found: Step | None = None
                if is_counted(s) and not Liveness([s]).block([s], set()) & stored:
                    assert isinstance(s, ast.For)
                    found = self.parallel(s, set())[0] or self.sequence(s)
                if found is not None:
                    segments.append(found)
                elif segments and isinstance(segments[-1], list):
                    segments[-1].append(s)
                else:
                    segments.append([s])
            if all(isinstance(x, list) for x in segments) or self.crossing(loop, segments):
                return None
            return Repeat(loop, [self.thread(x, []) if isinstance(x, list) else x for x in segments])
        finally:
            self.known = outer

    def crossing(self, loop: ast.For, segments: list[Any]) -> bool:
        """Does a step need a number that another one makes?"""
        stored = names_stored(loop.body) - set(self.ranks)
        bodies: list[list[ast.stmt]] = [
            x if isinstance(x, list) else [x.loop] if isinstance(x, Repeat) else x.body for x in segments
        ]
        return any(Liveness(body).block(body, set()) & stored for body in bodies)

    def launch(
        self, body: list[ast.stmt], of: list[ast.stmt], loops: list[ast.For], gathered: list[Any]
    ) -> Launch:
        known = {*self.given, *self.known}
        parameters = sorted(names_loaded(body) & known)
        names = [_CONTEXT, *parameters, *[f"{OURS}{n}" for n, _, _ in gathered]]
        self.count += 1
        line = of[0].lineno
        for s in body:
            compared(s)
        for s in body:
            for n in ast.walk(s):
                if isinstance(n, (ast.expr, ast.stmt)) and not hasattr(n, "lineno"):
                    ast.copy_location(n, of[0])
            ast.fix_missing_locations(s)
        function = self.outlined(f"loop{line}_{self.count}", names, body)
        kernel = Kernel(function, boundscheck=self.checked)
        assert kernel.source  # (which is where it is refused)
        return Launch(kernel, parameters, of, loops, gathered)


def _context(method: str) -> ast.expr:
    return ast.Attribute(ast.Name(_CONTEXT, ast.Load()), method, ast.Load())


def _stored(name: str, places: list[Any]) -> ast.stmt:
    """`out[here] = name`."""
    at = ast.Tuple(places, ast.Load()) if len(places) > 1 else places[0]
    target = ast.Subscript(ast.Name(f"{OURS}{name}", ast.Load()), at, ast.Store())
    return ast.Assign([target], ast.Name(name, ast.Load()))


def _leaves(loop: ast.For) -> bool:
    """Is a loop, or a turn of it, left before its end?"""
    todo: list[ast.AST] = list(loop.body)
    while todo:
        n = todo.pop()
        if isinstance(n, (ast.Break, ast.Continue)):
            return True
        if not isinstance(n, (ast.For, ast.While)):
            todo += ast.iter_child_nodes(n)
    return False
