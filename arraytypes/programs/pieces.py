"""Functions that cannot be one program: cut where Python needs a value, each piece between two cuts a program.

    def solve(A, b, x):
        r = b - A @ x                      # piece 1
        while float(mb.sum(r * r)) > 1e-9: # cut: Python asks for a value at each turn
            p = ...                        # piece 2
        return x

The function runs as Python does it, statement by statement; runs of statements that can be captured are calls
of compiled functions. A statement that cannot be captured, for whatever reason, runs as it is, with arrays that
hold values. So results are right in any case, and what could be better is told by `explain`.
"""

from __future__ import annotations

import ast
import copy
import threading
import types
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.makers import default_array
from mirabelle.arraytypes.programs.errors import TraceError, shown_line
from mirabelle.arraytypes.programs.rewritten import Rewriting, TooLong, returning
from mirabelle.arraytypes.programs.traced import Traced
from mirabelle.arraytypes.usercode.effects import NO_VALUE
from mirabelle.arraytypes.usercode.rewriting import OURS, Source, names_loaded, place
from mirabelle.arraytypes.wrappers import root_of

# A piece that is called with more different numbers in one place has those parts taken out that read them.
MOST_NUMBERS = 4
# Functions of Python's that do something each time they are called.
_DOING = {"print", "input", "open", "next", "setattr", "delattr", "id", "__import__"}
# Modules whose functions do or know something of the world.
_STATEFUL = {
    "time",
    "random",
    "os",
    "sys",
    "datetime",
    "io",
    "socket",
    "subprocess",
    "secrets",
    "uuid",
    "logging",
}


@dataclass(frozen=True)
class Cut:
    """A statement that runs as Python does it, and why."""

    line: tuple[str, int]
    reason: str

    def __str__(self) -> str:
        return f"{shown_line(self.line)}: {self.reason}"


class Piece:
    """Some statements of a function as a compiled function."""

    def __init__(
        self, owner: InPieces, parameters: list[str], plain: Any, compiled: Any, lines: tuple[int, int]
    ) -> None:
        self.owner = owner
        self.parameters = parameters
        self.plain = plain
        self.compiled = compiled
        self.lines = lines
        # Does it run as it is, and why?
        self.reason = ""
        self.calls = 0
        # The numbers it was called with, by the parameter.
        self.numbers: dict[str, set[Any]] = {}

    def __call__(self, *values: Any) -> Any:
        self.calls += 1
        if self.reason or self._changing(values):
            return self.plain(*values)
        try:
            program, found = self.compiled._program(values, {})
        except Exception as e:
            self.owner.cut_at(self, e)
            return self.plain(*values)
        if program.captured.result is not None and self._shares(program.captured):
            self.reason = "it returns an array that shows the memory of another"
            return self.plain(*values)
        return program.run(found.arrays, found.composed)

    def _changing(self, values: Sequence[Any]) -> bool:
        """Is it called with other numbers again and again? Then what reads them is no part of it any more."""
        found = False
        for name, x in zip(self.parameters, values, strict=True):
            if isinstance(x, (int, float, complex, np.generic)):
                known = self.numbers.setdefault(name, set())
                known.add((type(x), x))
                if len(known) > MOST_NUMBERS:
                    found = True
                    if not self.owner.cut_reading(self, name):
                        self.reason = f"`{name}` is another number in each call, and numbers are constants of a program"
        return found

    def _shares(self, captured: Any) -> bool:
        """Does a result show the memory of an argument, or of another result?"""
        if captured.shares is None:
            own = {id(root_of(x)): x for x in captured.placeholders}
            shares = False
            result = captured.result if type(captured.result) is tuple else (captured.result,)
            for x in result:
                if isinstance(x, AbstractArray) and isinstance(root_of(x), Traced):
                    root = root_of(x)
                    known = own.setdefault(id(root), x)
                    shares |= known is not x
                elif isinstance(x, (list, dict)):
                    shares = True
            captured.shares = shares
        return bool(captured.shares)


class InPieces:
    """A function in pieces. `cuts` are the statements that run as they are, by their numbers."""

    def __init__(self, source: Source, compiled: Callable[[Any], Any]) -> None:
        self.source = source
        self.compiled = compiled
        self.cuts: dict[Any, Cut] = {}
        self.pieces: list[Piece] = []
        self._lock = threading.RLock()
        self._function: Any = None
        self.file = source.function.__code__.co_filename
        for s in source.body:
            for n in ast.walk(s):
                if isinstance(n, ast.stmt):
                    reason = _always_cut(n, source)
                    if reason:
                        self.cuts[place(n)] = Cut((self.file, n.lineno), reason)

    def __call__(self, family: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        with self._lock:
            if self._function is None:
                self._function = self._written()
            function = self._function
        with default_array(family):
            return function(*args, **kwargs)

    # Cuts

    def cut(self, error: BaseException) -> bool:
        """Cut the statement in which capturing failed: was it one that is not cut yet?"""
        place = self._statement_of(error)
        if place is None:
            return False
        key, line = place
        with self._lock:
            if key in self.cuts:
                return False
            self.cuts[key] = Cut((self.file, line), _reason(error))
            self._function = None
        return True

    def cut_at(self, piece: Piece, error: Exception) -> None:
        """The same for an error in a piece; one that cannot be placed leaves the piece as it is."""
        if not self.cut(error):
            piece.reason = _reason(error)

    def cut_reading(self, piece: Piece, name: str) -> bool:
        """Cut the statements of a piece that read a variable; False if that would leave nothing."""
        first, last = piece.lines
        found: list[ast.stmt] = []
        others = False
        for s in self.source.body:
            for n in ast.walk(s):
                if isinstance(n, ast.stmt) and first <= n.lineno and (n.end_lineno or n.lineno) <= last:
                    heads = [x for x in ast.iter_child_nodes(n) if not isinstance(x, ast.stmt)]
                    own = isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name) and n.target.id == name
                    if own or name in names_loaded(heads):
                        found.append(n)
                    else:
                        others = others or _computes([n])
        if not others or not found:
            return False
        with self._lock:
            for n in found:
                reason = f"`{name}` is another number in each call, and numbers are constants of a program"
                self.cuts.setdefault(place(n), Cut((self.file, n.lineno), reason))
            self._function = None
        return True

    def _statement_of(self, error: BaseException) -> tuple[Any, int] | None:
        """The innermost statement of the function from which an error came."""
        first = self.source.body[0].lineno
        last = max(s.end_lineno or s.lineno for s in self.source.body)
        found = None
        step = error.__traceback__
        while step is not None:
            code = step.tb_frame.f_code
            if code.co_filename == self.file and first <= (step.tb_lineno or 0) <= last:
                found = step.tb_lineno
            step = step.tb_next
        if found is None:
            return None
        best: Any = None
        if isinstance(error, TooLong):
            # (The outermost loop: one turn of it may be a program.)
            for s in self.source.body:
                for n in ast.walk(s):
                    if isinstance(n, (ast.For, ast.While)) and n.lineno <= found <= (n.end_lineno or n.lineno):
                        if place(n) not in self.cuts and (best is None or _length(n) > _length(best)):
                            best = n
            if best is not None:
                return place(best), best.lineno
        for s in self.source.body:
            for n in ast.walk(s):
                if isinstance(n, ast.stmt) and n.lineno <= found <= (n.end_lineno or n.lineno):
                    if best is None or _length(n) <= _length(best):
                        best = n
        return None if best is None else (place(best), best.lineno)

    # The function

    def _written(self) -> types.FunctionType:
        self.pieces = []
        writing = Rewriting(self.source)
        body = self._block(writing, copy.deepcopy(self.source.body))
        return self.source.remade(body, writing.extras)

    def _block(self, writing: Rewriting, body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        run: list[ast.stmt] = []
        for s in body:
            if self._is_whole(s):
                run.append(s)
                continue
            made += self._piece(writing, run)
            run = []
            made += self._cut_statement(writing, s)
        return made + self._piece(writing, run)

    def _is_whole(self, s: ast.stmt) -> bool:
        """May a statement be part of a piece?"""
        if isinstance(s, ast.Return):
            return False
        for n in ast.walk(s):
            if isinstance(n, ast.stmt) and place(n) in self.cuts:
                return False
            if isinstance(n, (ast.Return, ast.Yield, ast.YieldFrom)):
                return False
        return not _leaves_loop(s)

    def _cut_statement(self, writing: Rewriting, s: ast.stmt) -> list[ast.stmt]:
        if isinstance(s, (ast.If, ast.For, ast.While)):
            loop = writing.element_loop(s) if isinstance(s, (ast.For, ast.While)) else None
            if loop is not None:
                return loop
            for field in ("test", "iter", "target"):
                if hasattr(s, field):
                    setattr(s, field, writing.expression(getattr(s, field)))
            s.body = self._block(writing, s.body)
            s.orelse = self._block(writing, s.orelse)
            return [s]
        if isinstance(s, ast.Return) and s.value is not None and place(s) not in self.cuts and _computes([s]):
            # `return value` as `result = value; return result`, of which the first may be a piece.
            made = self._returned(writing, s)
            if made is not None:
                return made
        return writing.statement(s)

    def _returned(self, writing: Rewriting, s: ast.Return) -> list[ast.stmt] | None:
        name = f"{OURS}result"
        assert s.value is not None
        assign = ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], s.value), s)
        made = self._piece(writing, [ast.fix_missing_locations(assign)], [name])
        last = ast.copy_location(ast.Return(ast.Name(name, ast.Load())), s)
        return [*made, ast.fix_missing_locations(last)]

    def _piece(self, writing: Rewriting, run: list[ast.stmt], results: Sequence[str] = ()) -> list[ast.stmt]:
        if not run:
            return []
        name = f"{self.source.name}_{run[0].lineno}"
        found = writing.taken_out(run, name, results) if _computes(run) else None
        if found is None:
            return writing.statements(run)
        name, parameters, left = found
        key, n = f"piece{run[0].lineno}", len(self.pieces)
        original = copy.deepcopy(run)
        body = [*writing.statements(run), *returning(left, run[-1])]
        plain = self.source.outlined(name, parameters, body, writing.extras)
        lines = run[0].lineno, run[-1].end_lineno or run[-1].lineno
        piece = Piece(self, parameters, plain, self.compiled(plain), lines)
        self.pieces.append(piece)
        return [writing.call(writing.extra(f"{key}_{n}", piece), parameters, left, original[0])]

    def explain(self) -> str:
        """The pieces and the cuts, as text."""
        lines = [f"{self.source.name}() is {len(self.pieces)} pieces, with {len(self.cuts)} cuts."]
        parts: list[tuple[int, str]] = [(c.line[1], f"  cut    {c}") for c in self.cuts.values()]
        for p in self.pieces:
            how = f"runs as it is: {p.reason}" if p.reason else f"{len(p.compiled.programs)} program(s)"
            parts.append((p.lines[0], f"  piece  lines {p.lines[0]} to {p.lines[1]}: {how}, {p.calls} calls"))
        return "\n".join([*lines, *[text for _, text in sorted(parts)]])


def _reason(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text if isinstance(error, TraceError) else f"{type(error).__name__}: {text}"


def _length(s: ast.stmt) -> tuple[int, int]:
    return (s.end_lineno or s.lineno) - s.lineno, (s.end_col_offset or 0) - s.col_offset


def _always_cut(s: ast.stmt, source: Source) -> str:
    """Why a statement is never part of a program; empty if it may be."""
    if isinstance(s, (ast.Try, ast.With, ast.AsyncWith, ast.Match)):
        return f"a `{type(s).__name__.lower()}` runs as it is"
    if isinstance(s, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Delete)):
        return "it defines, imports or deletes"
    heads = [n for n in ast.iter_child_nodes(s) if isinstance(n, ast.expr)]
    for head in heads:
        for n in ast.walk(head):
            if isinstance(n, ast.Call):
                name = _does_something(n.func, source)
                if name:
                    return f"{name}() does something, or gives another value, at each call"
    return ""


def does_something(function: Any) -> bool:
    """Does a function call what does something, or gives another value, at each call?"""
    found = _doing.get(function) if isinstance(function, types.FunctionType) else False
    if found is None:
        source = Source.of(function)
        calls = (
            [] if source is None else [n for s in source.body for n in ast.walk(s) if isinstance(n, ast.Call)]
        )
        found = _doing[function] = any(source is not None and _does_something(n.func, source) for n in calls)
    return found


_doing: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()


def _does_something(f: ast.expr, source: Source) -> str:
    """The name of a function that is called, if calls of it are not all the same."""
    root = f
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name):
        return ""
    value = source.meaning(root.id)
    if value is NO_VALUE:
        return ""
    if isinstance(f, ast.Name):
        module = getattr(value, "__module__", None) or ""
        if module in ("builtins", "io", "_io") and f.id in _DOING:
            return f.id
        return f.id if module.partition(".")[0] in _STATEFUL else ""
    name = getattr(value, "__name__", "") if isinstance(value, types.ModuleType) else ""
    said = ast.unparse(f)
    if name.partition(".")[0] in _STATEFUL or name == "numpy.random":
        return said
    return said if name == "numpy" and said.partition(".")[2].startswith("random.") else ""


def _leaves_loop(s: ast.stmt) -> bool:
    """Does a statement break out of a loop that it stands in?"""
    if isinstance(s, (ast.Break, ast.Continue)):
        return True
    if isinstance(s, (ast.For, ast.While)):
        return any(_leaves_loop(x) for x in s.orelse)
    if isinstance(s, (ast.FunctionDef, ast.ClassDef)):
        return False
    return any(_leaves_loop(x) for x in ast.iter_child_nodes(s) if isinstance(x, ast.stmt))


def _computes(run: Sequence[ast.stmt]) -> bool:
    """Is there anything in some statements that could be of arrays?"""
    return any(
        isinstance(n, (ast.Call, ast.BinOp, ast.Subscript, ast.AugAssign)) for s in run for n in ast.walk(s)
    )


def family_of(values: Any) -> Any:
    """The type of the arrays among some arguments; None if there is none."""
    for x in values.values() if isinstance(values, dict) else values:
        if isinstance(x, AbstractArray):
            return leaf_family(type(x))
        if isinstance(x, (list, tuple, dict)):
            found = family_of(x)
            if found is not None:
                return found
    return None
