"""The tangents of expressions: of operations by the table of derivatives, of calls by what is called."""

from __future__ import annotations

import ast
import inspect
import math
import types
from collections.abc import Callable
from typing import Any

from mirabelle.arraytypes.duals import callees, formulas
from mirabelle.arraytypes.duals.activity import Activity
from mirabelle.arraytypes.duals.elementwise import DERIVATIVES
from mirabelle.arraytypes.duals.tangenttext import Text
from mirabelle.arraytypes.duals.traced import binary

Tangent = ast.expr | None
Pair = tuple[ast.expr, Tangent]


class Expressions(Text):
    """Writes what expressions and their tangents need, and says what they are."""

    activity: Activity

    def tangent_of(self, e: ast.Call, inner: types.FunctionType, varied: tuple[int, ...]) -> Any:
        """The tangent function of a function that is called."""
        raise NotImplementedError(f"{type(self).__name__} must implement tangent_of.")

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
            zeros = [zero(self.activity.width(part)) for part in e.elts]
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

    def test(self, e: ast.expr) -> ast.expr:
        if any(isinstance(n, ast.NamedExpr) and self.activity.varies(n.value) for n in ast.walk(e)):
            raise self.fail(e, "it assigns within an expression, with :=")
        return e

    def choice(self, e: ast.IfExp) -> Pair:
        value, tangent = self.fresh("t"), self.fresh("t_dot")
        width = self.activity.width(e)
        blocks = []
        for part in (e.body, e.orelse):
            with self.apart() as block:
                p, t = self.pair(part)
                self.emit(tangent, zero(width) if t is None else t)
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
        if name == "abs" and self.numbers == "complex" and tangents[0] is not None:
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

        name, other = callees.operation_of(f), callees.other(f)
        inner = callees.python_function(f)
        operands = e.args
        if inner is not None and name is None:
            operands = self.arguments(e, inner)
        elif e.keywords:
            raise self.fail(e, f"the call of {shown} has arguments by keyword")
        rule = callees.rule_of(f)
        if rule is not None:
            x, tangents = self.atoms(operands)
            return self.bound("t", text(x)), self.along(self.ruled(e, rule, x), tangents)
        if inner is not None and name is None:
            return self.helped(e, inner, operands)
        if (callees.is_linear(f) and len(e.args) == 1) or (name == "complex" and len(e.args) == 1):
            p, t = self.pair(e.args[0])
            return text([p]), None if t is None else text([t])
        if other in ("max", "min") and len(e.args) > 1:
            return self.extreme(e, f"{other}imum")
        if other is not None and other not in ("max", "min"):
            return self.several(other, e.args, text)
        if name is not None and len(DERIVATIVES.get(name, ())) == len(e.args):
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

    def arguments(self, e: ast.Call, inner: types.FunctionType) -> list[ast.expr]:
        """What the parameters of a function are in a call of it, one after the other."""
        signature = inspect.signature(inner)
        try:
            given = signature.bind(*e.args, **{k.arg or "**": k.value for k in e.keywords}).arguments
        except TypeError as problem:
            raise self.fail(e, f"{ast.unparse(e.func)}(): {problem}") from None
        if callees.parameters_of(inner) is None:
            raise self.fail(e, f"{inner.__name__}() has *args, **kwargs or parameters by keyword alone")
        return [given[n] if n in given else self.constant(p.default) for n, p in signature.parameters.items()]

    def helped(self, e: ast.Call, inner: types.FunctionType, operands: list[ast.expr]) -> Pair:
        """A function of the user's that is called: its tangent has a function too."""
        x, tangents = self.atoms(operands)
        varied = tuple(i for i, t in enumerate(tangents) if t is not None)
        slope = self.tangent_of(e, inner, varied)
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
        zero: ast.expr = formulas.number(0.0)
        if name == "divmod":
            t = self.along(formulas.partials("remainder", x, item(y, 1)), tangents)
            return y, ast.Tuple([zero, t or zero], ast.Load())
        power = formulas.call(math.ldexp, formulas.number(1.0), ast.UnaryOp(ast.USub(), item(y, 1)))
        t = self.bound("t_dot", ast.BinOp(tangents[0] or zero, ast.Mult(), power))
        return y, ast.Tuple([t, zero], ast.Load())


def zero(width: int | None) -> ast.expr:
    return formulas.number(0.0) if width is None else ast.Tuple([formulas.number(0.0)] * width, ast.Load())


def item(value: ast.expr, i: int) -> ast.expr:
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
