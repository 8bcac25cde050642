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
import dataclasses
import functools
import html
import io
import random
import threading
import time
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.programs.elementcalls import LoopApart
from mirabelle.arraytypes.programs.errors import Because, TraceError, is_users, shown_line
from mirabelle.arraytypes.programs.numpyinside import family_inside, made_of
from mirabelle.arraytypes.programs.rewritten import Rewriting, TooLong, returning, rewritten
from mirabelle.arraytypes.programs.stillcompiling import StillCompiling, going_on_without
from mirabelle.arraytypes.programs.traced import Traced
from mirabelle.arraytypes.usercode.effects import NO_VALUE
from mirabelle.arraytypes.usercode.rewriting import OURS, Source, names_loaded, names_stored, place
from mirabelle.arraytypes.wrappers import root_of
from mirabelle.dispatch import policy

# A piece that is called with more different numbers in one place has those parts taken out that read them.
MOST_NUMBERS = 4
# Functions of Python's that do something each time they are called.
_DOING = {"print", "input", "open", "setattr", "delattr", "id", "__import__"}
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


@dataclasses.dataclass(frozen=True)
class Cut:
    """A statement that runs as Python does it, and why."""

    line: tuple[str, int]
    reason: str

    def __str__(self) -> str:
        return f"{shown_line(self.line)}: {self.reason}"


class Piece:
    """Some statements of a function as a compiled function."""

    def __init__(
        self,
        owner: InPieces,
        parameters: list[str],
        results: Sequence[str],
        statements: Sequence[ast.stmt],
        plain: Any,
        compiled: Any,
        lines: tuple[int, int],
    ) -> None:
        self.owner = owner
        self.parameters = parameters
        self.results = results
        self.statements = statements
        self.plain = plain
        self.compiled = compiled
        self.lines = lines
        # Does it run as it is, and why?
        self.reason = ""
        self.calls = 0
        self.seconds = 0.0
        # The numbers it was called with, by the types of all arguments and the parameter.
        self.numbers: dict[tuple[type, ...], dict[int, set[Any]]] = {}

    def __call__(self, *values: Any) -> Any:
        self.calls += 1
        began = time.perf_counter()
        try:
            return self._run(values)
        finally:
            self.seconds += time.perf_counter() - began

    def _run(self, values: Sequence[Any]) -> Any:
        if self.reason or not self._fits(values):
            return self.plain(*values)
        if family_inside() is not None and family_of(values) is None:
            # (A program of no arrays is the same wherever it is called, and what this makes is not.)
            return self.plain(*values)
        known, arrays = self.compiled.known(values)
        if known is not None and known.captured.shares is False:
            return known.run(arrays)
        try:
            with going_on_without():
                program, found = self.compiled._program(values, {})
        except StillCompiling:
            return self.plain(*values)
        except Exception as e:
            self.owner.cut_at(self, e)
            return self.plain(*values)
        if not self._delivers(program.captured):
            return self.plain(*values)
        return program.run(found.arrays, found.composed)

    def _fits(self, values: Sequence[Any]) -> bool:
        """Can a program be made for these? (Each call has the same kinds of things, mostly.)"""
        types = tuple(map(type, values))
        numbers = self.numbers.get(types)
        if numbers is None:
            strange = next((n for n, x in zip(self.parameters, values, strict=True) if not _is_value(x)), None)
            if strange is not None:
                self.reason = f"`{strange}` is no array, number or container of these"
                return False
            numbers = self.numbers[types] = {
                i: set() for i, x in enumerate(values) if isinstance(x, (int, float, complex, np.generic))
            }
        return not numbers or not self._changing(values, numbers)

    def _changing(self, values: Sequence[Any], numbers: dict[int, set[Any]]) -> bool:
        """Is it called with other numbers again and again? Then what reads them is no part of it any more."""
        found = False
        for i, known in numbers.items():
            if values[i] in known:
                continue
            known.add(values[i])
            if len(known) > MOST_NUMBERS:
                found = True
                name = self.parameters[i]
                if not self.owner.cut_reading(self, name):
                    self.reason = f"`{name}` is {_ANOTHER}"
        return found

    def _delivers(self, captured: Any) -> bool:
        """Is all that it leaves behind a value, and does none show the memory of another?"""
        if captured.shares is None:
            own = {id(root_of(x)): x for x in captured.placeholders}
            result = captured.result if len(self.results) > 1 else (captured.result,)
            captured.shares = False
            for name, x in zip(self.results, result, strict=False):
                if isinstance(x, AbstractArray) and isinstance(root_of(x), Traced):
                    wrong = "shows the memory of another array" * (own.setdefault(id(root_of(x)), x) is not x)
                else:
                    kept = _is_value(x) and not isinstance(x, (list, dict, np.ndarray))
                    wrong = "" if kept else f"is {shown_type(x)}"
                if wrong:
                    captured.shares = True
                    reason = f"`{name}`, which is used after it, {wrong}"
                    if not self.owner.cut_storing(self, name, reason):
                        self.reason = self.reason or reason
        return not captured.shares


def shown_type(x: Any) -> str:
    """What something is that no program returns: "a list", "an array of NumPy's"."""
    name = type(x).__name__
    return "an array of NumPy's" if isinstance(x, np.ndarray) else f"a{'n' * (name[0] in 'aeiouAEIOU')} {name}"


_ANOTHER = "another number in each call, and numbers are constants of a program"
_VALUES = (AbstractArray, int, float, complex, str, bytes, type(None), np.generic, slice, range, np.dtype, type)
_CODE = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, np.ufunc, functools.partial)


def _is_value(x: Any) -> bool:
    """Is it something that a program may be given, or leave behind?"""
    if isinstance(x, (tuple, list)):
        return all(map(_is_value, x))
    if isinstance(x, dict):
        return all(map(_is_value, x.values()))
    if isinstance(x, (*_VALUES, *_CODE)) or x is Ellipsis:
        return True
    return dataclasses.is_dataclass(x) or callable(getattr(x, "_called", None))


class InPieces:
    """A function in pieces. `cuts` are the statements that run as they are, by their numbers."""

    def __init__(self, source: Source, compiled: Callable[[Any], Any]) -> None:
        self.source = source
        self.compiled = compiled
        self.cuts: dict[Any, Cut] = {}
        # Loops over elements among them that are compiled by themselves.
        self.loops: set[Any] = set()
        self.pieces: list[Piece] = []
        self._lock = threading.RLock()
        self._function: Any = None
        self.seconds = 0.0
        # Why it is no pieces at all, if that is so.
        self.uncut = ""
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
        # (What a cut reads or writes of an array on a card is asked for by the program itself.)
        began = time.perf_counter()
        try:
            with made_of(family), policy.allow_scalar():
                return function(*args, **kwargs)
        finally:
            self.seconds += time.perf_counter() - began

    # Cuts

    def cut(self, error: BaseException, of_piece: bool = False) -> bool:
        """Cut the statement in which capturing failed: was it one that is not cut yet?"""
        found = self._statement_of(error)
        if found is None:
            if isinstance(error, TraceError) and not of_piece:
                self.uncut = str(error)
            return False
        key, line = found
        if isinstance(error, LoopApart):
            self.loops.add(key)
        with self._lock:
            if key in self.cuts:
                return False
            self.cuts[key] = Cut((self.file, line), _reason(error) + self._hint(key, error))
            self._function = None
        return True

    def _hint(self, key: Any, error: BaseException) -> str:
        """What a statement would look like that asks for no value."""
        if not isinstance(error.args[0] if error.args else None, Because):
            return ""
        every = (n for s in self.source.body for n in ast.walk(s) if isinstance(n, ast.stmt))
        statement = next((n for n in every if place(n) == key), None)
        for kind, hint in _HINTS.items():
            if isinstance(statement, kind):
                # (How often something of unknown length is gone through is for Python to know.)
                return "" if kind is ast.For and "as many elements" in str(error) else f" {hint}"
        names = {n.func.id for n in _calls(statement) if isinstance(n.func, ast.Name)}
        return "".join(f" {hint}" for name, hint in _HINTS_OF_CALLS.items() if name in names)

    def knows(self, error: BaseException) -> bool:
        """Does an error come from a statement of the function?"""
        return self._statement_of(error) is not None

    def cut_at(self, piece: Piece, error: Exception) -> None:
        """The same for an error in a piece; one that cannot be placed leaves the piece as it is."""
        if not self.cut(error, of_piece=True):
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
                    own = (
                        isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name) and n.target.id == name
                    )
                    if own or name in names_loaded(heads):
                        found.append(n)
                    else:
                        others = others or _computes([n])
        return others and self._cut_all(found, f"`{name}` is {_ANOTHER}")

    def cut_storing(self, piece: Piece, name: str, reason: str) -> bool:
        """Cut the statements of a piece that bind a variable; False if that would leave nothing."""
        found = [s for s in piece.statements if name in names_stored([s])]
        others = [s for s in piece.statements if s not in found]
        simple = not any(isinstance(s, (ast.For, ast.While, ast.If)) for s in found)
        return simple and _computes(others) and self._cut_all(found, reason)

    def _cut_all(self, statements: Sequence[ast.stmt], reason: str) -> bool:
        with self._lock:
            for n in statements:
                self.cuts.setdefault(place(n), Cut((self.file, n.lineno), reason))
            self._function = None
        return bool(statements)

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
        around = [
            n
            for s in self.source.body
            for n in ast.walk(s)
            if isinstance(n, ast.stmt) and n.lineno <= found <= (n.end_lineno or n.lineno)
        ]
        best: ast.stmt | None = min(around, key=_length, default=None)
        if isinstance(error, TooLong):
            # (The outermost loop: one turn of it may be a program.)
            loops = [n for n in around if isinstance(n, (ast.For, ast.While)) and place(n) not in self.cuts]
            best = max(loops, key=_length, default=best)
        return None if best is None else (place(best), best.lineno)

    # The function

    def _written(self) -> Any:
        self.pieces = []
        if self.uncut:
            return rewritten(self.source.function)
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
            if isinstance(s, (ast.For, ast.While)) and place(s) in self.loops:
                loop = writing.element_loop(s)
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
        parameters += self._found_outside(run)
        key, n = f"piece{run[0].lineno}", len(self.pieces)
        original = copy.deepcopy(run)
        body = [*writing.statements(run), *returning(left, run[-1])]
        plain = self.source.outlined(name, parameters, body, writing.extras)
        lines = run[0].lineno, run[-1].end_lineno or run[-1].lineno
        piece = Piece(self, parameters, left, original, plain, self.compiled(plain), lines)
        self.pieces.append(piece)
        return [writing.call(writing.extra(f"{key}_{n}", piece), parameters, left, original[0])]

    def _found_outside(self, run: list[ast.stmt]) -> list[str]:
        """The names of arrays and numbers that statements find outside of the function: they may be others next
        time, so a piece is given them, too."""
        found = []
        for name in sorted(names_loaded(run)):
            value = self.source.meaning(name)
            if value is NO_VALUE or isinstance(value, (types.ModuleType, type)) or callable(value):
                continue
            found.append(name)
        return found

    def explain(self) -> InPiecesExplained:
        """The pieces and the cuts, and where the time of the calls so far went."""
        return InPiecesExplained(self)


class InPiecesExplained:
    """What a function in pieces does: prints as text, and shows in notebooks as a table."""

    def __init__(self, function: InPieces) -> None:
        self.name = function.source.name
        self.uncut = function.uncut
        self.cuts = sorted(function.cuts.values(), key=lambda c: c.line[1])
        self.pieces = list(function.pieces)
        # Seconds of all calls, and of those in pieces.
        self.seconds = function.seconds
        self.of_pieces = sum(p.seconds for p in self.pieces)

    @property
    def title(self) -> str:
        if self.uncut:
            return f"{self.name}() runs as it is: {self.uncut}"
        pieces, cuts = len(self.pieces), len(self.cuts)
        text = f"{self.name}() is {pieces} piece{'s' * (pieces != 1)}, "
        text += f"cut at {cuts} statement{'s' * (cuts != 1)}"
        if not self.seconds:
            return f"{text}."
        share = 1 - min(self.of_pieces / self.seconds, 1)
        return f"{text}: {share:.0%} of its time is between pieces."

    def rows(self) -> list[tuple[int, str, str]]:
        """Lines, what is there, and what is known of it."""
        found = [(c.line[1], "cut", str(c)) for c in self.cuts]
        for p in self.pieces:
            share = f", {p.seconds / self.seconds:.0%} of the time" if self.seconds else ""
            what = f"runs as it is: {p.reason}" if p.reason else f"{len(p.compiled.programs)} program(s)"
            found.append(
                (p.lines[0], "piece", f"lines {p.lines[0]} to {p.lines[1]}: {what}, {p.calls} calls{share}")
            )
        return sorted(found)

    def __repr__(self) -> str:
        return "\n".join([self.title, *[f"  {kind:<6} {text}" for _, kind, text in self.rows()]])

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{kind}</td><td>{html.escape(text)}</td></tr>" for _, kind, text in self.rows())
        return f"<p>{html.escape(self.title)}</p><table>{rows}</table>"


# What is written in place of statements that ask for values, and of functions of Python's that do.
_HINTS: dict[type, str] = {
    ast.If: "In a program mb.where(condition, a, b) chooses elements, mb.cond(condition, f, g, *x) branches.",
    ast.While: "mb.while_loop(condition, body, state) is a loop in a program.",
    ast.For: "mb.fori_loop(lower, upper, body, state) is a loop in a program.",
}
_HINTS_OF_CALLS = {
    "min": "Python's min() asks for truth values; mb.minimum(a, b) stays in a program.",
    "max": "Python's max() asks for truth values; mb.maximum(a, b) stays in a program.",
    "float": "Without float() it stays an array of no dimensions, and in a program.",
    "int": "Without int() it stays an array of no dimensions, and in a program (an index may be one).",
}


def _calls(statement: ast.AST | None) -> list[ast.Call]:
    return [] if statement is None else [n for n in ast.walk(statement) if isinstance(n, ast.Call)]


def _reason(error: BaseException) -> str:
    said = error.args[0] if error.args else None
    if isinstance(said, Because):
        return said.at_cut
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
                if not name and isinstance(n.func, ast.Name) and n.func.id == "next":
                    name = "next"
                if name:
                    return f"{name}() does something, or gives another value, at each call"
    return ""


def does_something(function: Any) -> bool:
    """Does a function call what does something, or gives another value, at each call?"""
    found = _doing.get(function) if isinstance(function, types.FunctionType) else False
    if found is None:
        _doing[function] = False  # (should it call itself)
        source = Source.of(function)
        calls = (
            [] if source is None else [n for s in source.body for n in ast.walk(s) if isinstance(n, ast.Call)]
        )
        found = _doing[function] = any(
            source is not None and (_does_something(n.func, source) or _goes_on(n, source)) for n in calls
        )
    return found


_doing: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()


def _goes_on(call: ast.Call, source: Source) -> bool:
    """Is it `next(it)` of an iterator that is found outside?"""
    return (
        isinstance(call.func, ast.Name)
        and call.func.id == "next"
        and bool(call.args)
        and isinstance(call.args[0], ast.Name)
        and source.meaning(call.args[0].id) is not NO_VALUE
    )


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
        if isinstance(value, types.FunctionType) and is_users(value) and does_something(value):
            return f.id
        drawn = isinstance(getattr(value, "__self__", None), random.Random)
        return f.id if drawn or module.partition(".")[0] in _STATEFUL else ""
    name = getattr(value, "__name__", "") if isinstance(value, types.ModuleType) else ""
    said = ast.unparse(f)
    if name.partition(".")[0] in _STATEFUL or isinstance(value, io.IOBase):
        return said
    # (What has a seed gives the same numbers again.)
    drawn = name == "numpy.random" or (name == "numpy" and said.partition(".")[2].startswith("random."))
    return said if drawn and not said.endswith(".default_rng") else ""


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
