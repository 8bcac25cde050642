"""Derivatives of scalar functions with branches and loops: a function of the tangent, written from the source.

Each statement that changes a variable gets, in front of it, one that changes the variable's tangent; what
decides which way to go stays as it is. The new function is one of scalars again: it is compiled for every place
as any other, and has a derivative itself.

    def half(v):                def half_by_v(v):
        y = v                       v_dot = 1.0
        while y > 1.0:              y_dot = v_dot
            y = y / 2.0             y = v
        return y                    while y > 1.0:
                                        t = y / 2.0
                                        t_dot = 1 / 2.0 * y_dot
                                        y_dot = t_dot
                                        y = t
                                    return y_dot
"""

from __future__ import annotations

import ast
import builtins
import types
from typing import Any

from mirabelle.arraytypes.duals import callees, formulas
from mirabelle.arraytypes.duals.activity import Activity
from mirabelle.arraytypes.duals.functionsource import body_of, made, tree_of
from mirabelle.arraytypes.duals.rules import forgetting
from mirabelle.arraytypes.duals.tangentexpressions import Expressions, Tangent, item, zero
from mirabelle.arraytypes.usercode.effects import NO_VALUE, scope_of
from mirabelle.dispatch import ops


def tangent_function(
    f: types.FunctionType,
    varied: tuple[int, ...],
    *,
    given: int | None = None,
    lifted: tuple[str, ...] = (),
    unit: bool = False,
    numbers: str = "real",
) -> Any:
    """The function of the tangent of `f`; None if none of its results changes with what varies.

    It takes what `f` takes (of its parameters the first `given`, and the names from around it that are
    `lifted`), and the tangents of the parameters that are `varied`, by their place; with `unit`, these are 1.
    `numbers` are "real", "complex" (these have a modulus), or "single", which formulas make no doubles of.
    """
    return _Writer(f, given, lifted, numbers, ()).function(varied, unit)


# The tangents of functions that others call: by the function, what varies, and the numbers.
_helpers: dict[tuple[types.FunctionType, tuple[int, ...], str], Any] = {}
forgetting.append(_helpers.clear)
ops.forgetting.append(_helpers.clear)


class _Writer(Expressions):
    def __init__(
        self,
        f: types.FunctionType,
        given: int | None,
        lifted: tuple[str, ...],
        numbers: str,
        inside: tuple[Any, ...],
    ) -> None:
        super().__init__(f, numbers)
        self.inside = (*inside, f)
        tree = tree_of(f)
        if tree is None:
            raise self.fail(
                None, "its source is not known, as of what is typed at a prompt or made by other programs"
            )
        parameters = callees.parameters_of(f)
        if parameters is None:
            raise self.fail(tree, "it has *args, **kwargs or parameters by keyword alone")
        self.body = body_of(tree)
        given = len(parameters) if given is None else given
        self.parameters = [*[p.name for p in parameters[:given]], *lifted]
        self.defaults = {p.name: p.default for p in parameters[given:]}
        self.look_up = scope_of(f)
        names = [n for s in self.body for n in ast.walk(s) if isinstance(n, ast.Name)]
        self.local = {n.id for n in names if not isinstance(n.ctx, ast.Load)} | {p.name for p in parameters}
        self.local |= set(lifted)
        self.used |= self.local | {n.id for n in names}
        constants = [n.value for s in self.body for n in ast.walk(s) if isinstance(n, ast.Constant)]
        if any(isinstance(c, complex) for c in constants):
            self.numbers = "complex"

    def function(self, varied: tuple[int, ...], unit: bool) -> Any:
        names = [self.parameters[i] for i in varied]
        self.activity = Activity(self.body, self.local, set(names), self.look_up)
        returned = [
            n.value for s in self.body for n in ast.walk(s) if isinstance(n, ast.Return) and n.value is not None
        ]
        self.result_width = next((w for w in map(self.activity.width, returned) if w is not None), None)
        self.free_names()
        for name, value in self.defaults.items():
            self.emit(name, self.constant(value))
        for name in sorted(self.activity.varied & set(self.local)):
            if name in names and unit:
                self.emit(self.dot(name), formulas.number(1.0))
            elif name not in names and (name in self.parameters or name in self.defaults):
                self.emit(self.dot(name), formulas.number(0.0))
        self.block(self.body)
        # (Only now, as what is not understood is an error also where it seems to change nothing.)
        if not any(map(self.activity.varies, returned)):
            return None
        tangents = [] if unit else [self.dot(n) for n in names]
        arguments = ast.arguments(
            [], [ast.arg(n) for n in (*self.parameters, *tangents)], None, [], [], None, []
        )
        name = f"{self.name}_by_{names[0]}" if unit else f"{self.name}_dot"
        definition = ast.FunctionDef(self.fresh(name), arguments, self.out, [])
        return made(definition, f"derivative of {self.name}()", self.scope)

    def free_names(self) -> None:
        """Give the text the names from around the function."""
        from mirabelle.arraytypes.abstract import AbstractArray

        for node in (n for s in self.body for n in ast.walk(s)):
            if isinstance(node, ast.Name) and node.id not in self.local and node.id not in self.scope:
                value = self.look_up(node.id)
                if isinstance(value, AbstractArray):
                    raise self.fail(
                        node, f"it reads {node.id} from around it, and is called by another function"
                    )
                if value is not NO_VALUE and value is not getattr(builtins, node.id, NO_VALUE):
                    self.scope[node.id] = value

    # Statements

    def blocked(self, statements: list[ast.stmt], first: tuple[str, ...] = ()) -> list[ast.stmt]:
        with self.apart() as block:
            for name in first:
                self.emit(name, formulas.number(0.0))
            self.block(statements)
        return block

    def block(self, statements: list[ast.stmt]) -> None:
        for s in statements:
            self.statement(s)

    def statement(self, s: ast.stmt) -> None:
        if isinstance(s, ast.Assign):
            self.assign(s.targets, s.value)
        elif isinstance(s, ast.AnnAssign):
            if s.value is not None:
                self.assign([s.target], s.value)
        elif isinstance(s, ast.AugAssign):
            if not isinstance(s.target, ast.Name):
                raise self.fail(s, "it writes to an element of something")
            old = ast.copy_location(ast.Name(s.target.id, ast.Load()), s)
            self.assign([s.target], ast.copy_location(ast.BinOp(old, s.op, s.value), s))
        elif isinstance(s, ast.Return):
            tangent = None if s.value is None else self.pair(s.value)[1]
            self.out.append(ast.Return(self.settled(tangent or zero(self.result_width))))
        elif isinstance(s, ast.If):
            self.out.append(
                ast.If(self.test(s.test), self.blocked(s.body) or [ast.Pass()], self.blocked(s.orelse))
            )
        elif isinstance(s, ast.While):
            test = self.test(s.test)
            self.out.append(ast.While(test, self.blocked(s.body) or [ast.Pass()], self.blocked(s.orelse)))
        elif isinstance(s, ast.For):
            if self.activity.varies(s.iter):
                raise self.fail(s, "it loops over numbers that vary; over a range it may")
            first = tuple(self.dot(n) for n in _stored(s.target) if n in self.activity.varied)
            body, orelse = self.blocked(s.body, first), self.blocked(s.orelse)
            self.out.append(ast.For(s.target, s.iter, body, orelse, lineno=0))
        elif isinstance(s, ast.Expr) and self.activity.varies(s.value):
            raise self.fail(s, f"what `{ast.unparse(s)}` does with numbers that vary is not known")
        elif isinstance(s, (ast.Pass, ast.Break, ast.Continue, ast.Assert, ast.Raise, ast.Expr)):
            self.out.append(s)
        else:
            raise self.fail(s, f"it has a statement of kind {type(s).__name__.lower()}")

    def assign(self, targets: list[ast.expr], value: ast.expr) -> None:
        target = targets[0]
        if (
            len(targets) == 1
            and isinstance(target, ast.Tuple)
            and isinstance(value, ast.Tuple)
            and len(target.elts) == len(value.elts)
        ):
            pairs = [self.pair(part) for part in value.elts]
            # (`a, b = b, a`: all are read before the first is written.)
            kept = [(self.copied(p), t if t is None else self.copied(t)) for p, t in pairs]
            for part, (p, t) in zip(target.elts, kept, strict=True):
                self.store(part, p, t, None)
            return
        p, t = self.pair(value)
        if len(targets) > 1 or not isinstance(target, ast.Name):
            p = self.bound("t", p)
        for target in targets:
            self.store(target, p, t, self.activity.width(value))

    def store(self, target: ast.expr, value: ast.expr, tangent: Tangent, width: int | None) -> None:
        if isinstance(target, ast.Name):
            if target.id in self.activity.varied:
                self.emit(self.dot(target.id), zero(width) if tangent is None else tangent)
            self.emit(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for i, part in enumerate(target.elts):
                self.store(part, item(value, i), None if tangent is None else item(tangent, i), None)
        else:
            raise self.fail(target, "it writes to an element of something")

    # Functions that are called

    def tangent_of(self, e: ast.Call, inner: types.FunctionType, varied: tuple[int, ...]) -> Any:
        if inner in self.inside:
            raise self.fail(e, f"{inner.__name__}() calls itself")
        key = (inner, varied, self.numbers)
        if key not in _helpers:
            if len(_helpers) > 256:
                _helpers.clear()
            writer = _Writer(inner, None, (), self.numbers, self.inside)
            _helpers[key] = writer.function(varied, unit=False)
        return _helpers[key]


def _stored(target: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
