"""Formulas of derivatives as text: the table of `elementwise` is evaluated with symbols instead of arrays.

So there is one table, for whole arrays and for the functions of scalars that `tangents` writes.
"""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.elementwise import elementwise_rule
from mirabelle.dispatch.ops import TABLE, Op

_ARITHMETIC: dict[str, type[ast.operator]] = {
    "add": ast.Add, "subtract": ast.Sub, "multiply": ast.Mult, "divide": ast.Div, "pow": ast.Pow,
    "remainder": ast.Mod, "floor_divide": ast.FloorDiv,
}  # fmt: skip
_COMPARISONS: dict[str, type[ast.cmpop]] = {
    "equal": ast.Eq, "not_equal": ast.NotEq, "less": ast.Lt, "less_equal": ast.LtE, "greater": ast.Gt,
    "greater_equal": ast.GtE,
}  # fmt: skip
_LOGIC: dict[str, type[ast.boolop]] = {"logical_and": ast.And, "logical_or": ast.Or}


class Symbol(AbstractArray):
    """A number that is not known yet, as an expression of the text that will compute it.

    It is an array of no dimensions to whoever computes with it: rules and formulas are written with array
    functions. What is called in the expression stands there as a constant (see `tangents`, which names it).
    """

    __module__ = "mirabelle.arraytypes.duals.formulas"
    __slots__ = ("node",)

    node: ast.expr
    dtype = np.dtype(np.float64)
    ndim = 0
    shape = ()

    def __new__(cls, node: ast.expr) -> Any:
        made = object.__new__(cls)
        made.node = node
        return made

    def __repr__(self) -> str:
        return f"Symbol({ast.dump(self.node)})"


def operation(op: Op, operands: tuple[Any, ...]) -> Symbol:
    """An elementwise operation on symbols: the expression of it."""
    return Symbol(_expression(op, [node_of(x) for x in operands]))


@elementwise_rule.method
def _(kind: type[Symbol]) -> Any:
    return operation


def _expression(op: Op, x: list[ast.expr]) -> ast.expr:
    name = op.name
    if TABLE.get(name) is not op:  # a function of a user
        return call(op.scalar, *x)
    if name in _ARITHMETIC:
        return ast.BinOp(x[0], _ARITHMETIC[name](), x[1])
    if name in _COMPARISONS:
        return ast.Compare(x[0], [_COMPARISONS[name]()], [x[1]])
    if name in _LOGIC:
        return ast.BoolOp(_LOGIC[name](), x)
    if name == "logical_not":
        return ast.UnaryOp(ast.Not(), x[0])
    if name == "negative":
        return ast.UnaryOp(ast.USub(), x[0])
    if name == "where":
        return ast.IfExp(*x)
    if name == "fma":
        return ast.BinOp(ast.BinOp(x[0], ast.Mult(), x[1]), ast.Add(), x[2])
    if name in ("positive", "copy", "cast"):
        return x[0]
    if name in ("real", "imag"):
        return ast.Attribute(x[0], name, ast.Load())
    if name == "complex":
        return call(complex, *x)
    return call(op.ufunc if op.ufunc is not None else op.scalar, *x)


def call(f: Any, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Constant(f), list(arguments), [])


def node_of(x: Any) -> ast.expr:
    """The expression of a symbol or a number."""
    if isinstance(x, Symbol):
        return x.node
    if isinstance(x, np.generic):
        x = x.item()
    if isinstance(x, complex):
        return call(complex, node_of(x.real), node_of(x.imag))
    if isinstance(x, (int, float)) and not isinstance(x, bool) and math.copysign(1.0, x) < 0:
        return ast.UnaryOp(ast.USub(), node_of(-x))
    return number(x)


def number(x: Any) -> ast.Constant:
    """A number that the user did not write: it must not decide what the text computes in."""
    node = ast.Constant(x)
    node.of_formula = True  # type: ignore[attr-defined]
    return node


class Settled(ast.NodeTransformer):
    """A copy of an expression where functions have names, and formulas' numbers a type, `single`, if given."""

    def __init__(self, named: Callable[[Any], ast.expr], single: Any = None) -> None:
        self.named = named
        self.single = single

    def generic_visit(self, node: ast.AST) -> ast.AST:
        # (The user's own parts belong to a tree that is kept.)
        made = copy.copy(node)
        for name, old in ast.iter_fields(node):
            if isinstance(old, list):
                setattr(made, name, [self.visit(x) if isinstance(x, ast.AST) else x for x in old])
            elif isinstance(old, ast.AST):
                setattr(made, name, self.visit(old))
        return made

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Constant):
            return ast.Call(self.named(node.func.value), [self.visit(a) for a in node.args], [])
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        # (x ** 2 is x * x, and x ** 2.0 is not.)
        literal = isinstance(node.op, ast.Pow) and not isinstance(symbol_of(node.right), Symbol)
        right = node.right if literal else self.visit(node.right)
        return ast.copy_location(ast.BinOp(self.visit(node.left), node.op, right), node)

    def visit_Constant(self, node: ast.Constant) -> Any:
        value = node.value
        if self.single is None or not hasattr(node, "of_formula") or not isinstance(value, (int, float)):
            return node
        return ast.Call(self.named(self.single), [ast.Constant(float(value))], [])


def symbol_of(node: ast.expr) -> Any:
    """What stands for an expression in formulas: a number for itself, since formulas look at exponents."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = symbol_of(node.operand)
        return Symbol(node) if isinstance(inner, Symbol) else -inner
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, complex)):
        return node.value
    return Symbol(node)


def partials(name: str, operands: list[ast.expr], result: ast.expr) -> list[Any]:
    """The derivatives of an operation by its operands: symbols, numbers, or None for zero."""
    from mirabelle.arraytypes.duals.elementwise import DERIVATIVES

    values = [symbol_of(x) for x in operands]
    y = Symbol(result)
    return [d(*values, y) if callable(d) else d for d in DERIVATIVES[name]]


def times(factor: Any, tangent: ast.expr) -> ast.expr | None:
    """factor * tangent, as short as it can be said; None for zero."""
    if factor is None:
        return None
    if not isinstance(factor, Symbol):
        if factor == 1:
            return tangent
        if factor == -1:
            return ast.UnaryOp(ast.USub(), tangent)
        if factor == 0:
            return None
    node = node_of(factor)
    if isinstance(tangent, ast.Constant) and tangent.value == 1.0:
        return node
    return ast.BinOp(node, ast.Mult(), tangent)


def plus(a: ast.expr | None, b: ast.expr | None) -> ast.expr | None:
    """The sum of two tangents, either of which may be None."""
    if a is None or b is None:
        return a if b is None else b
    if isinstance(b, ast.UnaryOp) and isinstance(b.op, ast.USub):
        return ast.BinOp(a, ast.Sub(), b.operand)
    return ast.BinOp(a, ast.Add(), b)
