"""Functions made anew from the source of others: the same lines, names and variables outside, another body.

>>> from mirabelle.arraytypes.usercode.rewriting import Source
>>> def line(x):
...     return 2 * x + 1
>>> source = Source.of(line) # typed at a prompt there may be no source: doctest: +SKIP
>>> source.remade(source.body, {})(3) # doctest: +SKIP
7
"""

from __future__ import annotations

import ast
import copy
import inspect
import types
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mirabelle.arraytypes.usercode.effects import NO_VALUE, function_tree, scope_of
from mirabelle.dispatch import syntax

# Begins the names of what is put into functions: no program has such names.
OURS = "__mirabelle_"
_RESHAPED = f"{OURS}reshaped"
# What looks at the frame it is called from.
_OF_FRAMES = {"locals", "globals", "vars", "exec", "eval", "super", "__class__", "breakpoint"}
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def _reshaped(x: Any, shape: Any) -> Any:
    """What a variable is after `x.shape = shape`."""
    if isinstance(x, np.ndarray):
        x.shape = shape
        return x
    return x.reshape(shape)


class _Shapes(ast.NodeTransformer):
    """`x.shape = y.shape = shape` as statements that bind x and y."""

    def visit_Assign(self, node: ast.Assign) -> Any:
        shaped = [t for t in node.targets if isinstance(t, ast.Attribute) and t.attr == "shape"]
        names = [t.value for t in shaped if isinstance(t.value, ast.Name)]
        if not shaped or len(names) < len(node.targets):
            return node
        made = []
        for name in names:
            call = ast.Call(ast.Name(_RESHAPED, ast.Load()), [ast.Name(name.id, ast.Load()), node.value], [])
            made.append(ast.Assign([ast.Name(name.id, ast.Store())], call))
        for at, statement in enumerate(made):
            # (Each stands at a place of its own: statements are known by that.)
            ast.copy_location(statement, shaped[at])
            ast.fix_missing_locations(statement)
        return made


class Source:
    """A Python function and its syntax tree."""

    def __init__(self, function: types.FunctionType, tree: ast.FunctionDef | ast.Lambda) -> None:
        self.function = function
        self.name = function.__name__
        self.tree = tree
        self.look_up = scope_of(function)
        # Its variables: parameters, and whatever it binds.
        a = tree.args
        parameters = [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg]
        self.parameters = {p.arg for p in parameters if p is not None}
        # Its statements (of a lambda, that it returns its value).
        self.body: list[ast.stmt]
        if isinstance(tree, ast.Lambda):
            self.body = [ast.copy_location(ast.Return(tree.body), tree.body)]
        else:
            self.body = tree.body
        self.local = self.parameters | names_stored(self.body)

    @classmethod
    def of(cls, function: Any) -> Source | None:
        """The source of a function; None where there is none, or where it could not be made anew."""
        if not inspect.isfunction(function) or inspect.iscoroutinefunction(function):
            return None
        tree = function_tree(function)
        if tree is None or inspect.isgeneratorfunction(function):
            return None
        arguments = tree.args
        written = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        known = [p.arg for p in written] + [p.arg for p in (arguments.vararg, arguments.kwarg) if p is not None]
        code = function.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        if sorted(code.co_varnames[:count]) != sorted(known[: len(written)]):
            return None  # (another function of the name, or one that was changed)
        for n in ast.walk(tree):
            if isinstance(n, (ast.Global, ast.Nonlocal)):
                return None
            if isinstance(n, ast.Name) and n.id in _OF_FRAMES:
                return None
        tree = _Shapes().visit(tree)
        return cls(function, tree)

    def meaning(self, name: str) -> Any:
        """What a name means that is no variable of the function; NO_VALUE if it has none, or is one."""
        return NO_VALUE if name in self.local else self.look_up(name)

    def remade(self, body: list[ast.stmt], extras: Mapping[str, Any]) -> types.FunctionType:
        """The function with another body, in which the names of `extras` mean these values."""
        old = self.function
        if isinstance(self.tree, ast.Lambda):
            args, name = self.tree.args, "lambda_"
        else:
            args, name = self.tree.args, self.tree.name
        made = self._compiled(name, args, body, extras)
        made.__defaults__, made.__kwdefaults__ = old.__defaults__, old.__kwdefaults__
        made.__name__, made.__qualname__ = old.__name__, old.__qualname__
        made.__module__, made.__doc__ = old.__module__, old.__doc__
        return made

    def outlined(
        self, name: str, parameters: Iterable[str], body: list[ast.stmt], extras: Mapping[str, Any]
    ) -> types.FunctionType:
        """A function made of statements of this one: what they read of its variables are parameters."""
        args = ast.arguments(
            posonlyargs=[], args=[ast.arg(p) for p in parameters], kwonlyargs=[], kw_defaults=[], defaults=[]
        )
        made = self._compiled(name, args, body, extras)
        made.__module__ = self.function.__module__
        made.__qualname__ = f"{self.function.__qualname__}.{name}"
        return made

    def _compiled(
        self, name: str, args: ast.arguments, body: list[ast.stmt], extras: Mapping[str, Any]
    ) -> types.FunctionType:
        old = self.function
        args = copy.deepcopy(args)
        for p in [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]:
            if p is not None:
                p.annotation = None
        args.defaults = [ast.Constant(None) for _ in args.defaults]
        args.kw_defaults = [None if d is None else ast.Constant(None) for d in args.kw_defaults]
        cells = dict(zip(old.__code__.co_freevars, old.__closure__ or (), strict=True))
        cells |= {key: types.CellType(value) for key, value in extras.items()}
        cells[_RESHAPED] = types.CellType(_reshaped)
        inner = ast.FunctionDef(
            name=name, args=args, body=body or [ast.Pass()], decorator_list=[], returns=None
        )
        around = ast.arguments(
            posonlyargs=[], args=[ast.arg(c) for c in cells], kwonlyargs=[], kw_defaults=[], defaults=[]
        )
        outer = ast.FunctionDef(name=f"{OURS}outer", args=around, body=[inner], decorator_list=[], returns=None)
        module = ast.Module(body=[outer], type_ignores=[])
        line = body[0].lineno if body and hasattr(body[0], "lineno") else old.__code__.co_firstlineno
        ast.copy_location(outer, ast.Pass(lineno=line, col_offset=0, end_lineno=line, end_col_offset=0))
        ast.copy_location(inner, outer)
        ast.fix_missing_locations(module)
        code = syntax.compiled(module, old.__code__.co_filename, dont_inherit=True)
        for wanted in (f"{OURS}outer", name):
            code = next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == wanted)
        closure = tuple([cells[n] for n in code.co_freevars])
        made = types.FunctionType(code, old.__globals__, name, None, closure)
        made.__mirabelle_tree__ = inner  # type: ignore[attr-defined] # (its lines in the file are those of `old`)
        return made


def names_loaded(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that statements read, also in functions within them."""
    return {
        n.id for x in nodes for n in ast.walk(x) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    } | {
        # (x += 1 reads x, too.)
        n.target.id
        for x in nodes
        for n in ast.walk(x)
        if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)
    }


def names_stored(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that statements bind in their own scope."""
    found: set[str] = set()
    todo: list[ast.AST] = list(nodes)
    while todo:
        x = todo.pop()
        if isinstance(x, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(x.name)
            continue
        if isinstance(x, ast.Lambda):
            continue
        if isinstance(x, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            # Their variables are their own; `:=` within them is not.
            found |= {n.target.id for n in ast.walk(x) if isinstance(n, ast.NamedExpr)}  # type: ignore[attr-defined]
            continue
        if isinstance(x, ast.Name) and not isinstance(x.ctx, ast.Load):
            found.add(x.id)
        if isinstance(x, (ast.Import, ast.ImportFrom)):
            found |= {(a.asname or a.name).partition(".")[0] for a in x.names}
        if isinstance(x, ast.ExceptHandler) and x.name:
            found.add(x.name)
        todo += ast.iter_child_nodes(x)
    return found


def names_shared(body: list[ast.stmt]) -> set[str]:
    """The names that functions written within a body read or bind, which see them when they are called."""
    scopes = [n for s in body for n in ast.walk(s) if isinstance(n, _SCOPES)]
    return {n.id for scope in scopes for n in ast.walk(scope) if isinstance(n, ast.Name)}


def surely_bound(body: Iterable[ast.stmt], before: set[str]) -> dict[int, set[str]]:
    """For each statement, by its id, the names that surely have a value before it."""
    found: dict[int, set[str]] = {}
    _bound(list(body), set(before), found)
    return found


def _bound(body: list[ast.stmt], known: set[str], found: dict[int, set[str]]) -> set[str]:
    for s in body:
        found[id(s)] = set(known)
        if isinstance(s, ast.If):
            yes = _bound(s.body, known | names_stored([s.test]), found)
            no = _bound(s.orelse, known | names_stored([s.test]), found)
            known = (yes if not _leaves(s.body) else no) & (no if not _leaves(s.orelse) else yes)
        elif isinstance(s, (ast.For, ast.AsyncFor)):
            _bound(s.body, known | names_stored([s.target]), found)
            _bound(s.orelse, known, found)
        elif isinstance(s, ast.While):
            _bound(s.body, known | names_stored([s.test]), found)
            _bound(s.orelse, known, found)
        elif isinstance(s, (ast.With, ast.AsyncWith)):
            known = _bound(s.body, known | names_stored(s.items), found)
        elif isinstance(s, ast.Try):
            _bound(s.body, known, found)
            for h in s.handlers:
                _bound(h.body, known, found)
            _bound(s.orelse, known, found)
            known = _bound(s.finalbody, known, found)
        elif isinstance(s, ast.Match):
            pass
        elif isinstance(s, ast.Delete):
            known = known - names_stored([s])
        else:
            known = known | names_stored([s])
    return known


def _leaves(body: list[ast.stmt]) -> bool:
    """Does what follows never come after these statements?"""
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Raise, ast.Continue, ast.Break))


class Liveness:
    """For each statement of a body, by where it stands, the variables that are read after it."""

    def __init__(self, body: list[ast.stmt], always: Iterable[str] = ()) -> None:
        # Names that functions written within see, and what is read where exceptions go: at any time.
        self.always = {*always, *names_shared(body)}
        for s in body:
            for n in ast.walk(s):
                if isinstance(n, (ast.Try, ast.With, ast.AsyncWith, ast.Match)):
                    self.always |= names_loaded([n])
        self.after: dict[Any, set[str]] = {}
        self._loops: list[tuple[set[str], set[str]]] = []
        self.block(body, set())

    def of(self, s: ast.stmt) -> set[str]:
        return self.after.get(place(s), set()) | self.always

    def block(self, body: list[ast.stmt], after: set[str]) -> set[str]:
        """What is live before statements, if that is live after them."""
        for s in reversed(body):
            known = self.after.setdefault(place(s), set())
            known |= after
            after = self.statement(s, after)
        return after

    def statement(self, s: ast.stmt, after: set[str]) -> set[str]:
        if isinstance(s, ast.If):
            return self.block(s.body, after) | self.block(s.orelse, after) | names_loaded([s.test])
        if isinstance(s, (ast.For, ast.AsyncFor, ast.While)):
            return self.loop(s, after)
        if isinstance(s, (ast.Return, ast.Raise)):
            return names_loaded([s])
        if isinstance(s, ast.Break):
            return set(self._loops[-1][1]) if self._loops else after
        if isinstance(s, ast.Continue):
            return set(self._loops[-1][0]) if self._loops else after
        if isinstance(s, (ast.With, ast.AsyncWith)):
            return self.block(s.body, after) | names_loaded(s.items)
        if isinstance(s, ast.Try):
            for h in s.handlers:
                self.block(h.body, after)
            for body in (s.body, s.orelse, s.finalbody):
                self.block(body, after)
            return after | names_loaded([s])
        if isinstance(s, ast.Assign) and not any(isinstance(t, ast.Subscript) for t in s.targets):
            return (after - names_stored(s.targets)) | names_loaded([s])
        if isinstance(s, (ast.FunctionDef, ast.ClassDef, ast.Match)):
            return after | names_loaded([s])
        if isinstance(s, ast.Delete):  # (what is deleted is there before)
            return after | names_loaded([s]) | names_stored([s])
        return (after - names_stored([s])) | names_loaded([s])

    def loop(self, s: ast.For | ast.AsyncFor | ast.While, after: set[str]) -> set[str]:
        end = self.block(s.orelse, after)
        head = set(end) | after
        read = names_loaded([s.test]) if isinstance(s, ast.While) else names_loaded([s.iter])
        counted = set() if isinstance(s, ast.While) else names_stored([s.target])
        while True:
            before = set(head)
            if isinstance(s, ast.While):
                head |= read
            self._loops.append((set(head), set(after)))
            head |= self.block(s.body, head) - counted
            self._loops.pop()
            if head == before:
                return head | read


def place(s: ast.stmt) -> Any:
    """Where a statement stands: the same of one and of its copies."""
    return s.lineno, s.col_offset, s.end_lineno, s.end_col_offset
