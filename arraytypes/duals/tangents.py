"""Derivatives of scalar functions with branches and loops: a function of the tangent, written from the source.

Each statement that changes a variable gets, in front of it, one that changes the variable's tangent; what decides
which way to go stays as it is. The new function is one of scalars again: it is compiled for every place as any
other, and has a derivative itself.

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
import functools
import inspect
import math
import os
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mirabelle.arraytypes.duals import callees, formulas
from mirabelle.arraytypes.duals.activity import Activity
from mirabelle.arraytypes.duals.base import DualError
from mirabelle.arraytypes.duals.elementwise import DERIVATIVES
from mirabelle.arraytypes.duals.functionsource import body_of, made, tree_of
from mirabelle.arraytypes.duals.rules import forgetting
from mirabelle.arraytypes.duals.traced import binary

Tangent = ast.expr | None
Pair = tuple[ast.expr, Tangent]


def tangent_function(
    f: types.FunctionType,
    varied: tuple[int, ...],
    *,
    given: int | None = None,
    lifted: tuple[str, ...] = (),
    unit: bool = False,
    complex_numbers: bool = False,
) -> Any:
    """The function of the tangent of `f`; None if none of its results changes with what varies.

    It takes what `f` takes (of its parameters the first `given`, and the names from around it that are `lifted`),
    and the tangents of the parameters with the numbers `varied`; with `unit`, these are 1.
    """
    return _Writer(f, given, lifted, complex_numbers).function(varied, unit)


@functools.lru_cache(maxsize=256)
def _of_helper(f: types.FunctionType, varied: tuple[int, ...], complex_numbers: bool) -> Any:
    return tangent_function(f, varied, complex_numbers=complex_numbers)


forgetting.append(_of_helper.cache_clear)


class _Writer:
    def __init__(
        self, f: types.FunctionType, given: int | None, lifted: tuple[str, ...], complex_numbers: bool
    ) -> None:
        from mirabelle.backends.codegen.effects import scope_of

        self.f = f
        self.name = "function" if f.__name__ == "<lambda>" else f.__name__
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
        self.used = self.local | {n.id for n in names}
        self.scope: dict[str, Any] = {"__name__": f.__globals__.get("__name__", "__main__")}
        self.complex_numbers = complex_numbers or any(
            isinstance(n, ast.Constant) and isinstance(n.value, complex) for s in self.body for n in ast.walk(s)
        )
        self.out: list[ast.stmt] = []
        self.dots: dict[str, str] = {}

    def function(self, varied: tuple[int, ...], unit: bool) -> Any:
        names = [self.parameters[i] for i in varied]
        self.activity = Activity(self.body, self.local, set(names), self.look_up)
        returned = [
            n.value for s in self.body for n in ast.walk(s) if isinstance(n, ast.Return) and n.value is not None
        ]
        if not any(map(self.activity.varies, returned)):
            return None
        self.result_width = next((w for w in map(self.activity.width, returned) if w is not None), None)
        self.free_names()
        for name, value in self.defaults.items():
            self.emit(name, self.constant(value))
        for name in sorted(self.activity.varied & set(self.local)):
            if name in names and unit:
                self.emit(self.dot(name), ast.Constant(1.0))
            elif name not in names and (name in self.parameters or name in self.defaults):
                self.emit(self.dot(name), ast.Constant(0.0))
        self.block(self.body)
        tangents = [] if unit else [self.dot(n) for n in names]
        arguments = ast.arguments(
            [], [ast.arg(n) for n in (*self.parameters, *tangents)], None, [], [], None, []
        )
        name = f"{self.name}_by_{names[0]}" if unit else f"{self.name}_dot"
        definition = ast.FunctionDef(self.fresh(name), arguments, self.out, [])
        return made(definition, f"derivative of {self.name}()", self.scope)

    def fail(self, node: ast.AST | None, why: str) -> DualError:
        code = self.f.__code__
        line = getattr(node, "lineno", code.co_firstlineno)
        name = self.f.__name__
        cure = (
            "@mb.autodiff.rule(f)` for `f = lambda ...: ..."
            if name == "<lambda>"
            else f"@mb.autodiff.rule({name})"
        )
        return DualError(
            f"{name}() in {os.path.basename(code.co_filename)}, line {line}, cannot be differentiated: {why}. Say what its "
            f"derivative is with `{cure}`, or hold its operands constant: `mb.autodiff.value(x)`."
        )

    # Names

    def fresh(self, base: str) -> str:
        name, n = base, 1
        while name in self.used or name in self.scope:
            n += 1
            name = f"{base}{n}"
        self.used.add(name)
        return name

    def dot(self, name: str) -> str:
        """What the tangent of a variable is called."""
        if name not in self.dots:
            self.dots[name] = self.fresh(f"{name}_dot")
        return self.dots[name]

    def constant(self, value: Any) -> ast.expr:
        """What stands for a value in the text: a number, or a name."""
        if isinstance(value, (int, float, complex)) and value == value:
            return formulas.node_of(value)
        for module in (np, math):
            name = getattr(value, "__name__", "")
            if callable(value) and getattr(module, name, None) is value:
                return ast.Attribute(self.constant(module), name, ast.Load())
        for name, known in self.scope.items():
            if known is value:
                return ast.Name(name, ast.Load())
        base = getattr(value, "__name__", "constant")
        name = self.fresh({"numpy": "np", "<lambda>": "function"}.get(base, base))
        self.scope[name] = value
        return ast.Name(name, ast.Load())

    def free_names(self) -> None:
        """Give the text the names from around the function."""
        from mirabelle.arraytypes.abstract import AbstractArray
        from mirabelle.backends.codegen.effects import NO_VALUE

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

    def emit(self, name: str, value: ast.expr) -> None:
        value = _Named(self.constant).visit(value)
        self.out.append(ast.Assign([ast.Name(name, ast.Store())], value, lineno=0))

    def bound(self, base: str, value: ast.expr) -> ast.expr:
        """A new variable for a value, if that is not one already."""
        if isinstance(value, (ast.Name, ast.Constant)):
            return value
        name = self.fresh(base)
        self.emit(name, value)
        return ast.Name(name, ast.Load())

    @contextmanager
    def apart(self) -> Iterator[list[ast.stmt]]:
        """A block of statements of its own."""
        outer, self.out = self.out, []
        try:
            yield self.out
        finally:
            self.out = outer

    def blocked(self, statements: list[ast.stmt], first: tuple[str, ...] = ()) -> list[ast.stmt]:
        with self.apart() as block:
            for name in first:
                self.emit(name, ast.Constant(0.0))
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
            zero = _zero(self.result_width)
            self.out.append(ast.Return(zero if tangent is None else tangent))
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
        elif isinstance(s, (ast.Pass, ast.Break, ast.Continue, ast.Assert, ast.Raise, ast.Expr)):
            self.out.append(s)
        else:
            raise self.fail(s, f"it has a statement of kind {type(s).__name__.lower()}")

    def test(self, e: ast.expr) -> ast.expr:
        if any(isinstance(n, ast.NamedExpr) and self.activity.varies(n.value) for n in ast.walk(e)):
            raise self.fail(e, "it assigns within an expression, with :=")
        return e

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

    def copied(self, e: ast.expr) -> ast.expr:
        if isinstance(e, ast.Constant):
            return e
        name = self.fresh("t")
        self.emit(name, e)
        return ast.Name(name, ast.Load())

    def store(self, target: ast.expr, value: ast.expr, tangent: Tangent, width: int | None) -> None:
        if isinstance(target, ast.Name):
            if target.id in self.activity.varied:
                self.emit(self.dot(target.id), _zero(width) if tangent is None else tangent)
            self.emit(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for i, part in enumerate(target.elts):
                self.store(part, _item(value, i), None if tangent is None else _item(tangent, i), None)
        else:
            raise self.fail(target, "it writes to an element of something")

    # Expressions

    def pair(self, e: ast.expr) -> Pair:
        """An expression's value and tangent: what they need is computed in statements before."""
        if not self.activity.varies(e):
            return e, None
        if isinstance(e, ast.Name):
            return e, ast.Name(self.dot(e.id), ast.Load())
        if isinstance(e, ast.BinOp):
            name = binary(e.op)
            assert name is not None
            return self.operation(name, [e.left, e.right], lambda x: ast.BinOp(x[0], e.op, x[1]))
        if isinstance(e, ast.UnaryOp):
            p, t = self.pair(e.operand)
            return ast.UnaryOp(e.op, p), None if t is None else ast.UnaryOp(e.op, t)
        if isinstance(e, ast.IfExp):
            return self.choice(e)
        if isinstance(e, ast.Tuple):
            pairs = [self.pair(part) for part in e.elts]
            zeros = [_zero(self.activity.width(part)) for part in e.elts]
            tangents = [z if t is None else t for z, (_, t) in zip(zeros, pairs, strict=True)]
            return ast.Tuple([p for p, _ in pairs], ast.Load()), ast.Tuple(tangents, ast.Load())
        if isinstance(e, ast.Subscript):
            p, t = self.pair(e.value)
            taken = [x and ast.Subscript(x, e.slice, ast.Load()) for x in (p, t)]
            return taken[0], taken[1]  # type: ignore[return-value]
        if isinstance(e, ast.Attribute) and e.attr in ("real", "imag"):
            p, t = self.pair(e.value)
            taken = [x and ast.Attribute(x, e.attr, ast.Load()) for x in (p, t)]
            return taken[0], taken[1]  # type: ignore[return-value]
        if isinstance(e, ast.Call):
            return self.called(e)
        raise self.fail(e, f"`{ast.unparse(e)}` has no derivative that is known")

    def choice(self, e: ast.IfExp) -> Pair:
        value, tangent = self.fresh("t"), self.fresh("t_dot")
        width = self.activity.width(e)
        blocks = []
        for part in (e.body, e.orelse):
            with self.apart() as block:
                p, t = self.pair(part)
                self.emit(tangent, _zero(width) if t is None else t)
                self.emit(value, p)
            blocks.append(block)
        self.out.append(ast.If(self.test(e.test), *blocks))
        return ast.Name(value, ast.Load()), ast.Name(tangent, ast.Load())

    def atoms(self, operands: list[ast.expr]) -> tuple[list[ast.expr], list[Tangent]]:
        """Operands that may be written down several times, and their tangents."""
        pairs = [self.pair(x) for x in operands]
        return [self.bound("t", p) if not _is_number(p) else p for p, _ in pairs], [t for _, t in pairs]

    def operation(
        self, name: str, operands: list[ast.expr], text: Callable[[list[ast.expr]], ast.expr]
    ) -> Pair:
        """An operation that the table of derivatives knows."""
        x, tangents = self.atoms(operands)
        y = self.bound("t", text(x))
        if name == "abs" and self.complex_numbers and tangents[0] is not None:
            return y, self.bound("t_dot", _slope_of_modulus(x[0], y, tangents[0]))
        return y, self.along(formulas.partials(name, x, y), tangents)

    def along(self, factors: Any, tangents: list[Tangent]) -> Tangent:
        """The sum of factors times tangents, as a variable."""
        total: Tangent = None
        for factor, t in zip(factors, tangents, strict=True):
            if t is not None:
                total = formulas.plus(total, formulas.times(factor, t))
        return None if total is None else self.bound("t_dot", total)

    # Calls

    def called(self, e: ast.Call) -> Pair:
        f = self.activity.meaning(e.func)
        shown = ast.unparse(e.func)
        if (
            isinstance(e.func, ast.Attribute)
            and e.func.attr == "conjugate"
            and self.activity.varies(e.func.value)
        ):
            p, t = self.pair(e.func.value)
            return _method(p, "conjugate"), None if t is None else _method(t, "conjugate")
        if any(isinstance(a, ast.Starred) for a in e.args):
            raise self.fail(e, f"the call of {shown} has a starred argument")

        def text(x: list[ast.expr]) -> ast.expr:
            return ast.Call(e.func, x, [])

        rule = callees.rule_of(f)
        if rule is not None and not e.keywords:
            x, tangents = self.atoms(e.args)
            return self.bound("t", text(x)), self.along(self.ruled(e, rule, x), tangents)
        name, other = callees.operation_of(f), callees.other(f)
        inner = callees.python_function(f)
        if inner is not None and name is None:
            return self.helped(e, inner)
        if e.keywords:
            raise self.fail(e, f"the call of {shown} has arguments by keyword")
        if callees.is_linear(f) and len(e.args) == 1 or (name == "complex" and len(e.args) == 1):
            p, t = self.pair(e.args[0])
            return text([p]), None if t is None else text([t])
        if other in ("max", "min") and len(e.args) > 1:
            return self.extreme(e, f"{other}imum")
        if other is not None and other not in ("max", "min"):
            return self.several(other, e.args, text)
        if name is not None:
            if len(DERIVATIVES.get(name, ())) == len(e.args):
                return self.operation(name, e.args, text)
        raise self.fail(e, f"the derivative of {shown}(...), called with {len(e.args)} arguments, is not known")

    def ruled(self, e: ast.Call, rule: Callable[..., Any], x: list[ast.expr]) -> tuple[Any, ...]:
        """What the rule of a function says, for symbols."""
        try:
            found = rule(*map(formulas.symbol_of, x))
        except Exception as problem:
            raise self.fail(
                e,
                f"the rule for {ast.unparse(e.func)} does not work element by element ({problem})",
            ) from problem
        found = found if isinstance(found, tuple) else (found,)
        if len(found) != len(x):
            raise self.fail(
                e, f"the rule for {ast.unparse(e.func)} gives {len(found)} derivatives, for {len(x)} operands"
            )
        return found

    def helped(self, e: ast.Call, inner: types.FunctionType) -> Pair:
        """A function of the user's that is called: its tangent has a function too."""
        if inner is self.f:
            raise self.fail(e, "it calls itself")
        signature = inspect.signature(inner)
        try:
            arguments = signature.bind(*e.args, **{k.arg: k.value for k in e.keywords if k.arg}).arguments
        except TypeError as problem:
            raise self.fail(e, f"{ast.unparse(e.func)}(): {problem}") from None
        operands = [
            arguments[n] if n in arguments else self.constant(p.default)
            for n, p in signature.parameters.items()
        ]
        x, tangents = self.atoms(operands)
        varied = tuple(i for i, t in enumerate(tangents) if t is not None)
        slope = _of_helper(inner, varied, self.complex_numbers)
        value = self.bound("t", ast.Call(e.func, x, []))
        if slope is None:
            return value, None
        along = [t for t in tangents if t is not None]
        return value, self.bound("t_dot", ast.Call(self.constant(slope), [*x, *along], []))

    def extreme(self, e: ast.Call, name: str) -> Pair:
        """max or min, of two at a time."""
        x, tangents = self.atoms(e.args)
        y, t = x[0], tangents[0]
        for other, along in zip(x[1:], tangents[1:], strict=True):
            larger = self.bound("t", ast.Call(e.func, [y, other], []))
            t = self.along(formulas.partials(name, [y, other], larger), [t, along])
            y = larger
        return y, t

    def several(self, name: str, operands: list[ast.expr], text: Callable[[list[ast.expr]], ast.expr]) -> Pair:
        """divmod and frexp, which return two numbers."""
        x, tangents = self.atoms(operands)
        y = self.bound("t", text(x))
        zero: ast.expr = ast.Constant(0.0)
        if name == "divmod":
            t = self.along(formulas.partials("remainder", x, _item(y, 1)), tangents)
            return y, ast.Tuple([zero, t or zero], ast.Load())
        power = formulas.call(math.ldexp, ast.Constant(1.0), ast.UnaryOp(ast.USub(), _item(y, 1)))
        t = self.bound("t_dot", ast.BinOp(tangents[0] or zero, ast.Mult(), power))
        return y, ast.Tuple([t, zero], ast.Load())


class _Named(ast.NodeTransformer):
    """Gives functions that stand in an expression a name."""

    def __init__(self, named: Callable[[Any], ast.expr]) -> None:
        self.named = named

    def visit_Call(self, node: ast.Call) -> Any:
        f = node.func
        if isinstance(f, ast.Constant):
            return ast.Call(self.named(f.value), [self.visit(a) for a in node.args], [])
        return self.generic_visit(node)


def _zero(width: int | None) -> ast.expr:
    return ast.Constant(0.0) if width is None else ast.Tuple([ast.Constant(0.0)] * width, ast.Load())


def _item(value: ast.expr, i: int) -> ast.expr:
    if isinstance(value, ast.Tuple):
        return value.elts[i]
    return ast.Subscript(value, ast.Constant(i), ast.Load())


def _method(value: ast.expr, name: str) -> ast.expr:
    return ast.Call(ast.Attribute(value, name, ast.Load()), [], [])


def _slope_of_modulus(z: ast.expr, modulus: ast.expr, tangent: ast.expr) -> ast.expr:
    product = ast.BinOp(_method(z, "conjugate"), ast.Mult(), tangent)
    return ast.BinOp(ast.Attribute(product, "real", ast.Load()), ast.Div(), modulus)


def _is_number(e: ast.expr) -> bool:
    return not isinstance(formulas.symbol_of(e), formulas.Symbol)


def _stored(target: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
