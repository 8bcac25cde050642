"""Functions as `mb.compile` reads them: NumPy's names mean arrays where the arguments are, loops over elements
are calls of compiled loops, and the functions they call are read the same way.

>>> import numpy as np
>>> from mirabelle.arraytypes.programs.rewritten import rewritten
>>> def plain(x):
...     return x + 1
>>> rewritten(plain) is plain
True
"""

from __future__ import annotations

import ast
import copy
import sysconfig
import types
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

from mirabelle.arraytypes.programs.capture import capturing, values_made
from mirabelle.arraytypes.programs.elementcalls import ElementLoop
from mirabelle.arraytypes.programs.errors import TraceError, is_ours, shown_line
from mirabelle.arraytypes.programs.kernelloops import KernelLoop
from mirabelle.arraytypes.programs.loopcapture import LoopCapture
from mirabelle.arraytypes.programs.numpyinside import has_inside, inside
from mirabelle.arraytypes.usercode.effects import NO_VALUE
from mirabelle.arraytypes.usercode.elementloops import is_element_loop
from mirabelle.arraytypes.usercode.rewriting import (
    OURS,
    Liveness,
    Source,
    names_loaded,
    names_shared,
    names_stored,
    place,
    surely_bound,
)

# A function that unrolls into more values than these is no longer captured as one program. (Planning takes some
# 50 µs a value, and where turns work on parts that move, what was unrolled may become one kernel.)
MOST_NODES = 30_000
_LIBRARIES = tuple({sysconfig.get_paths()[k] for k in ("stdlib", "platstdlib", "purelib", "platlib")})
# What is known of a function is kept with it: who lets go of the function lets go of what was made of it.
_WRITTEN, _COMPILED = f"{OURS}written", f"{OURS}compiled"
_being_made: set[int] = set()


def rewritten(f: Any) -> Any:
    """A function as it is compiled: itself, if nothing in it has another meaning there."""
    if isinstance(f, types.MethodType):
        made = rewritten(f.__func__)
        return f if made is f.__func__ else types.MethodType(made, f.__self__)
    if not isinstance(f, types.FunctionType) or not is_users(f):
        return f
    made = _noted(f, _WRITTEN)
    if made is None:
        if id(f) in _being_made:
            return f  # (it calls itself: the call is looked up when it is made)
        _being_made.add(id(f))
        try:
            source = Source.of(f)
            writing = Rewriting(source) if source is not None else None
            made = f
            if writing is not None:
                body = writing.statements(copy.deepcopy(writing.source.body))
                if writing.changed:
                    made = writing.source.remade(body, writing.extras)
        finally:
            _being_made.discard(id(f))
        _note(f, _WRITTEN, made)
    return made


class _Note:
    """What was made of a function.

    (`functools.wraps` takes it along to other functions, of which it says nothing; no pickle holds it.)
    """

    __slots__ = ("made", "of")

    def __init__(self, f: Any = None, made: Any = None) -> None:
        self.of = f if f is None else weakref.ref(f)
        self.made = made

    def __reduce__(self) -> Any:
        return _Note, ()


def _noted(f: types.FunctionType, what: str) -> Any:
    found = f.__dict__.get(what)
    return found.made if found is not None and found.of is not None and found.of() is f else None


def _note(f: types.FunctionType, what: str, made: Any) -> None:
    f.__dict__[what] = _Note(f, made)


def is_users(f: types.FunctionType) -> bool:
    """Is a function of the program, and not of a library?"""
    file = f.__code__.co_filename
    return not is_ours(file) and not file.startswith(_LIBRARIES)


def called(f: Any) -> Any:
    """What is called where a function of the program is: that function, as it is compiled."""
    return rewritten(f) if type(f) is types.FunctionType else f


class Guarded:
    """Put before a statement that goes on after errors: a program raises its errors when it runs, not there."""

    __slots__ = ("line",)

    def __init__(self, line: tuple[str, int]) -> None:
        self.line = line

    def __call__(self) -> None:
        if capturing():
            raise TraceError(
                f"What stands in {shown_line(self.line)} goes on after an error, and a program raises its "
                "errors when it runs: this statement runs as it is."
            )


# Errors that are raised while a function is captured, if at all, and not by a program that runs.
_WHILE_CAPTURED = {
    "ImportError",
    "ModuleNotFoundError",
    "KeyError",
    "AttributeError",
    "NameError",
    "StopIteration",
}


def _guards(s: ast.stmt) -> bool:
    """Does a statement go on after errors that a program may raise?"""
    if isinstance(s, ast.With):
        calls = [x.context_expr.func for x in s.items if isinstance(x.context_expr, ast.Call)]
        return any(ast.unparse(f).rpartition(".")[2] == "suppress" for f in calls)
    handlers: list[ast.ExceptHandler] = getattr(s, "handlers", [])
    for handler in handlers:
        caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        if not all(isinstance(e, ast.Name) and e.id in _WHILE_CAPTURED for e in caught):
            return True
    return False


class TooLong(TraceError):
    """A function that unrolls into more values than a program should have."""


class Turns:
    """Put at the head of a loop's body: it stops the capture of a function that unrolls without end."""

    __slots__ = ("line",)

    def __init__(self, line: tuple[str, int]) -> None:
        self.line = line

    def __call__(self) -> None:
        if values_made() > MOST_NODES:
            raise TooLong(
                f"The loop in {shown_line(self.line)} unrolls into more than {MOST_NODES} values. "
                "mb.fori_loop(lower, upper, body, state) is one value, whatever the number of turns."
            )


# A loop that would be unrolled into more values than these is a loop of the program, of so many turns at once.
# (One that looks at the number of its turn is better unrolled, as far as that goes.)
MOST_UNROLLED, MOST_UNROLLED_INDEXED, AT_ONCE, MOST_AT_ONCE = 2000, 10_000, 400, 32


class Repeated:
    """A loop that does the same in each turn: unrolled in a program while that is short, else a loop there."""

    __slots__ = ("indexed", "line", "turn")

    def __init__(self, line: tuple[str, int], indexed: bool) -> None:
        self.line = line
        self.turn = Turns(line)
        # Does the body look at the number of the turn? (Unrolled that is a constant, and parts stay where
        # they are.)
        self.indexed = indexed

    def __call__(self, turns: range, body: Any, state: Any) -> Any:
        if not len(turns) or not capturing():
            for i in turns:
                state = body(i, state)
            return state
        before = values_made()
        state = body(turns[0], state)
        made = max(values_made() - before, 1)
        left = turns[1:]
        if made * len(left) > (MOST_UNROLLED_INDEXED if self.indexed else MOST_UNROLLED) and len(left) >= 4:
            several = max(1, min(AT_ONCE // made, MOST_AT_ONCE, len(left) // 2))
            together = _Several(body, left, several)
            try:
                state = LoopCapture(
                    "for", together, state, bounds=(0, len(left) // several), of_python=True
                ).loop()
            except (TraceError, TypeError):
                pass  # (it is unrolled, as far as that goes)
            else:
                left = left[len(left) // several * several :]
        for i in left:
            self.turn()
            state = body(i, state)
        return state


class _Several:
    """So many turns of a loop as one of another."""

    __slots__ = ("body", "count", "turns")

    def __init__(self, body: Any, turns: range, count: int) -> None:
        self.body, self.turns, self.count = body, turns, count

    def __call__(self, k: Any, state: Any) -> Any:
        first, step = self.turns.start, self.turns.step
        for j in range(self.count):
            state = self.body(k * (self.count * step) + (first + j * step), state)
        return state


def _is_range(e: ast.expr) -> bool:
    return isinstance(e, ast.Call) and isinstance(e.func, ast.Name) and e.func.id == "range"


def _goes_elsewhere(s: ast.stmt) -> bool:
    return isinstance(
        s, (ast.Return, ast.Break, ast.Continue, ast.FunctionDef, ast.ClassDef, ast.Try, ast.With)
    )


class Rewriting:
    """One function's statements, rewritten. `extras` are the things they name, `changed` says if any did."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.extras: dict[str, Any] = {}
        self.changed = False
        self.shared = names_shared(source.body)
        self.live = Liveness(source.body)
        self.bound = surely_bound(source.body, source.parameters)
        # By its place in the source (statements are copied before they are changed).
        self._bound_at = {place(s): names for s, names in self._each(source.body)}

    def _each(self, body: Iterable[ast.stmt]) -> Iterable[tuple[ast.stmt, set[str]]]:
        for s in body:
            for n in ast.walk(s):
                if isinstance(n, ast.stmt) and id(n) in self.bound:
                    yield n, self.bound[id(n)]

    def bound_before(self, s: ast.stmt) -> set[str]:
        """The variables that surely have a value before a statement."""
        return self._bound_at.get(place(s), set())

    def extra(self, name: str, value: Any) -> str:
        """The name of a thing that the function is to find."""
        name = OURS + name
        while name in self.extras and self.extras[name] is not value:
            name += "_"
        self.extras[name] = value
        return name

    # Statements

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [x for s in body for x in self.statement(s)]

    def statement(self, s: ast.stmt) -> list[ast.stmt]:
        if isinstance(s, (ast.For, ast.While)):
            loop = self.element_loop(s)
            if loop is None and isinstance(s, ast.For):
                loop = self.counted_loop(s)
            if loop is not None:
                self.changed = True
                return loop
        for field, value in ast.iter_fields(s):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(s, field, self.statements(value))
            elif isinstance(value, list):
                setattr(s, field, [self.inner(x) if isinstance(x, ast.AST) else x for x in value])
            elif isinstance(value, ast.AST):
                setattr(s, field, self.inner(value))
        if isinstance(s, (ast.For, ast.While)):
            line = self.source.function.__code__.co_filename, s.lineno
            turn = self.extra(f"turn{s.lineno}", Turns(line))
            call = ast.Expr(ast.Call(ast.Name(turn, ast.Load()), [], []))
            self.changed = True
            s.body.insert(0, _at(call, s.body[0]))
        if _guards(s):
            guard = Guarded((self.source.function.__code__.co_filename, s.lineno))
            call = ast.Expr(ast.Call(ast.Name(self.extra(f"guarded{s.lineno}", guard), ast.Load()), [], []))
            self.changed = True
            return [_at(call, s), s]
        return [s]

    def inner(self, x: Any) -> Any:
        """What stands in a statement: an expression, or handlers and cases with statements of their own."""
        if isinstance(x, ast.expr):
            return self.expression(x)
        if isinstance(x, (ast.ExceptHandler, ast.match_case)):
            x.body = self.statements(x.body)
        return _Names(self).visit(x) if not isinstance(x, (ast.ExceptHandler, ast.match_case)) else x

    def expression(self, e: ast.expr) -> ast.expr:
        return _Names(self).visit(e)  # type: ignore[no-any-return]

    # Loops that repeat the same

    def counted_loop(self, loop: ast.For) -> list[ast.stmt] | None:
        """What stands for a loop that does the same in each turn: `names = repeated(range(n), body, names)`.

        None if it does not, or leaves anything behind that it may not have assigned.
        """
        target, turns = loop.target, loop.iter
        if not isinstance(target, ast.Name) or loop.orelse or not _is_range(turns):
            return None
        if self.source.meaning("range") is not range:
            return None
        if any(isinstance(n, ast.stmt) and _goes_elsewhere(n) for s in loop.body for n in ast.walk(s)):
            return None
        stored = names_stored(loop.body)
        if target.id in stored | self.live.of(loop) or stored & self.shared:
            return None
        indexed = target.id in names_loaded(loop.body)
        if indexed and _may_fail_for(target.id, loop.body):
            return None
        carried = sorted(stored & (self.live.of(loop) | self.live.of(loop.body[-1])))
        if not set(carried) <= self.bound_before(loop):
            return None
        line = self.source.function.__code__.co_filename, loop.lineno
        name, state = f"{OURS}body{loop.lineno}", f"{OURS}state"
        values: ast.expr = ast.Tuple([ast.Name(c, ast.Load()) for c in carried], ast.Load())
        names: ast.expr = ast.Tuple([ast.Name(c, ast.Store()) for c in carried], ast.Store())
        body: list[ast.stmt] = [_at(ast.Assign([names], ast.Name(state, ast.Load())), loop)] if carried else []
        last = _at(ast.Return(copy.deepcopy(values)), loop)
        body += [*self.statements(loop.body), last]
        args = ast.arguments(
            posonlyargs=[],
            args=[ast.arg(target.id), ast.arg(state)],
            kwonlyargs=[],
            kw_defaults=[],
            defaults=[],
        )
        repeated = self.extra(f"repeated{loop.lineno}", Repeated(line, indexed))
        given: list[ast.expr] = [self.expression(turns), ast.Name(name, ast.Load()), values]
        call = ast.Call(ast.Name(repeated, ast.Load()), given, [])
        made = ast.Assign([copy.deepcopy(names)], call) if carried else ast.Expr(call)
        return [_at(ast.FunctionDef(name, args, body, [], None), loop), _at(made, loop)]

    # Loops over elements

    def element_loop(self, loop: ast.For | ast.While) -> list[ast.stmt] | None:
        """The call that stands for a loop over elements; None if it is none that can be taken out."""
        if not is_element_loop(loop, self.source.meaning):
            return None
        found = self.taken_out([loop], f"loop{loop.lineno}")
        if found is None:
            return None
        name, parameters, results = found
        body = [copy.deepcopy(loop)]
        ends = [*body, *returning(results, loop)]
        python_body = [*[self._plain(copy.deepcopy(loop))], *returning(results, loop)]
        python = self.source.outlined(name, parameters, python_body, self.extras)

        # In a program, it is a loop of that where it is too long to unroll.
        counted = self.counted_loop(copy.deepcopy(loop)) if isinstance(loop, ast.For) else None
        captured = python
        if counted is not None:
            ended = [*counted, *returning(results, loop)]
            captured = self.source.outlined(name, parameters, ended, self.extras)

        def compiled() -> types.FunctionType:
            names = _Helpers(self.source)
            return self.source.outlined(name, parameters, [names.visit(s) for s in ends], names.extras)

        def numpys(turn: Any) -> types.FunctionType:
            own = copy.deepcopy(loop)
            _ask_at_turns(own, f"{OURS}turn")
            ended = [own, *returning(results, loop)]
            return self.source.outlined(name, parameters, ended, {f"{OURS}turn": turn})

        def outlined(name: str, parameters: Sequence[str], body: list[ast.stmt]) -> types.FunctionType:
            return self.source.outlined(name, parameters, body, {})

        kernels = KernelLoop(loop, parameters, results, outlined)
        key = self.extra(name, ElementLoop(loop, parameters, python, captured, compiled, numpys, kernels))
        return [self.call(key, parameters, results, loop)]

    def _plain(self, loop: ast.stmt) -> ast.stmt:
        """The loop as it runs where it is not compiled."""
        for field, value in ast.iter_fields(loop):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(loop, field, [self._plain(x) for x in value])
            elif isinstance(value, ast.expr):
                setattr(loop, field, self.expression(value))
            elif isinstance(value, list):
                setattr(loop, field, [self.expression(x) if isinstance(x, ast.expr) else x for x in value])
        if isinstance(loop, (ast.For, ast.While)):
            line = self.source.function.__code__.co_filename, loop.lineno
            turn = self.extra(f"turn{loop.lineno}", Turns(line))
            loop.body.insert(0, _at(ast.Expr(ast.Call(ast.Name(turn, ast.Load()), [], [])), loop.body[0]))
        return loop

    def taken_out(
        self, body: list[ast.stmt], name: str, results: Iterable[str] = ()
    ) -> tuple[str, list[str], list[str]] | None:
        """What statements read and leave behind (`results` among it), as parameters and results of a function.

        None if they cannot be one.
        """
        stored = names_stored(body)
        if stored & self.shared or any(
            isinstance(n, (ast.Return, ast.Yield, ast.YieldFrom)) for s in body for n in ast.walk(s)
        ):
            return None
        left = {*results} | (stored & self.live.of(body[-1]))
        read = Liveness(body, self.live.always).block(body, left) & self.source.local
        parameters = sorted(read & (names_loaded(body) | left))
        if not set(parameters) <= self.bound_before(body[0]):
            return None
        return name, parameters, sorted(left)

    def call(self, key: str, parameters: list[str], results: list[str], at: ast.stmt) -> ast.stmt:
        """`results = key(parameters)`."""
        call = ast.Call(ast.Name(key, ast.Load()), [ast.Name(p, ast.Load()) for p in parameters], [])
        if not results:
            return _at(ast.Expr(call), at)
        target: ast.expr = ast.Name(results[0], ast.Store())
        if len(results) > 1:
            target = ast.Tuple([ast.Name(r, ast.Store()) for r in results], ast.Store())
        return _at(ast.Assign([target], call), at)


def returning(results: list[str], at: ast.stmt) -> list[ast.stmt]:
    """The statement that returns what statements leave behind."""
    if not results:
        return []
    value: ast.expr = ast.Name(results[0], ast.Load())
    if len(results) > 1:
        value = ast.Tuple([ast.Name(r, ast.Load()) for r in results], ast.Load())
    made = ast.Return(value)
    line = getattr(at, "end_lineno", at.lineno)
    return [_at(made, ast.Pass(lineno=line, col_offset=0, end_lineno=line, end_col_offset=0))]


def _may_fail_for(name: str, body: list[ast.stmt]) -> bool:
    """Is anything divided by, raised to or shifted by numbers made of a variable, where Python's integers have
    errors and no end, and arrays have neither?"""
    tainted = {name}
    while True:
        found = {
            x
            for s in body
            for n in ast.walk(s)
            if isinstance(n, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr))
            and n.value is not None
            and tainted & names_loaded([n.value])
            for x in names_stored([n])
        }
        if found <= tainted:
            break
        tainted |= found
    failing = (ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift)
    for s in body:
        for n in ast.walk(s):
            if isinstance(n, ast.BinOp) and isinstance(n.op, failing):
                divisor = [n.right] if isinstance(n.op, (ast.Div, ast.FloorDiv, ast.Mod)) else [n.left, n.right]
                if tainted & names_loaded(divisor):
                    return True
            elif isinstance(n, ast.AugAssign) and isinstance(n.op, failing) and tainted & names_loaded([n]):
                return True
    return False


def _ask_at_turns(loop: ast.stmt, name: str) -> None:
    """Put a call of `name` at the head of a loop, and of those in it but for the innermost."""
    loops = [n for n in ast.walk(loop) if isinstance(n, (ast.For, ast.While))]
    around = [n for n in loops if any(x in loops and x is not n for x in ast.walk(n))]
    for n in around or loops[:1]:
        call = ast.Expr(ast.Call(ast.Name(name, ast.Load()), [], []))
        n.body.insert(0, _at(call, n.body[0]))


def _at(made: Any, where: Any) -> Any:
    """A node, in the line of another."""
    ast.copy_location(made, where)
    return ast.fix_missing_locations(made)


class _Names(ast.NodeTransformer):
    """Names in expressions: NumPy's stand for others inside, and functions that are called are read, too."""

    def __init__(self, writing: Rewriting) -> None:
        self.writing = writing

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if not isinstance(node.ctx, ast.Load):
            return node
        value = self.writing.source.meaning(node.id)
        if value is NO_VALUE or not _may_be_seen(node.id, self.writing) or not has_inside(value):
            return node
        self.writing.changed = True
        name = self.writing.extra(node.id, inside(value))
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        f = node.func
        if isinstance(f, ast.Name) and _may_be_seen(f.id, self.writing):
            value = self.writing.source.meaning(f.id)
            anew = type(value) is types.FunctionType and is_users(value) and rewritten(value) is not value
            if anew or id(value) in _being_made:
                self.writing.changed = self.writing.changed or anew
                name = self.writing.extra("called", called)
                node.func = _at(ast.Call(ast.Name(name, ast.Load()), [f], []), f)
        return node


def _may_be_seen(name: str, writing: Rewriting) -> bool:
    """Is a name not bound by a function within this one?"""
    return name not in writing.source.local and name not in _inner_names(writing)


def _inner_names(writing: Rewriting) -> set[str]:
    found: set[str] | None = writing.__dict__.get("inner_names")
    if found is None:
        found = set()
        for s in writing.source.body:
            for n in ast.walk(s):
                if isinstance(n, (ast.FunctionDef, ast.Lambda, ast.AsyncFunctionDef)):
                    a = n.args
                    every = [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg]
                    found |= {p.arg for p in every if p is not None}
                    if not isinstance(n, ast.Lambda):
                        found |= names_stored(n.body)
                elif isinstance(n, ast.comprehension):
                    found |= {x.id for x in ast.walk(n.target) if isinstance(x, ast.Name)}
        writing.__dict__["inner_names"] = found
    return found


class _Helpers(ast.NodeTransformer):
    """Plain functions that a compiled loop calls are compiled along."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.extras: dict[str, Any] = {}

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        f = node.func
        if isinstance(f, ast.Name):
            value = self.source.meaning(f.id)
            if type(value) is types.FunctionType and is_users(value):
                name = f"{OURS}{f.id}"
                self.extras[name] = _jitted_helper(value)
                node.func = ast.copy_location(ast.Name(name, ast.Load()), f)
        return node


def _jitted_helper(f: Any) -> Any:
    """A plain function, and those it calls, as compiled loops call it."""
    from mirabelle.arraytypes.jit import jit  # (with which Numba is imported)

    made = _noted(f, _COMPILED)
    if made is None:
        source = Source.of(f)
        plain = f
        if source is not None and not any(isinstance(n, ast.Lambda) for n in ast.walk(source.tree)):
            names = _Helpers(source)
            body = [names.visit(s) for s in copy.deepcopy(source.body)]
            if names.extras:
                plain = source.remade(body, names.extras)
        made = jit(plain)
        _note(f, _COMPILED, made)
    return made
