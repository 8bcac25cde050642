"""Scalar functions of straight lines, evaluated with arrays in place of numbers.

What `math.sin(x) * y + 1` does to an element, array functions do to all of them: then the rules for dual
numbers give the derivative, in trees that fuse, and nothing needs to be compiled. A function with a branch or a
loop is nothing for this, nor one that gives integers or booleans a part in arithmetic, where NumPy's arrays
differ from Python's numbers.
"""

from __future__ import annotations

import ast
import types
from typing import Any

import numpy as np

from mirabelle.arraytypes.duals import callees
from mirabelle.arraytypes.duals.base import NUMBERS, apply
from mirabelle.arraytypes.duals.elementwise import DERIVATIVES
from mirabelle.arraytypes.duals.functionsource import body_of, tree_of
from mirabelle.arraytypes.usercode.effects import NO_VALUE, scope_of

# A longer function is better compiled: trees of more nodes than `settings.tree_limit` are evaluated in parts.
MOST_OPERATIONS = 24
_OPERATORS = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.Pow: "pow",
    ast.FloorDiv: "floor_divide", ast.Mod: "remainder", ast.USub: "negative", ast.UAdd: "positive",
}  # fmt: skip
# Constant operations that give real numbers, if NumPy's function is meant (math.floor gives an integer).
_STEPS = {"floor", "ceil", "trunc", "round", "sign"}


def binary(operator: ast.operator) -> str | None:
    """The name of the operation of an operator, if it has one on real numbers."""
    return _OPERATORS.get(type(operator))


class Straight:
    """A function that can be evaluated with arrays, its helpers included."""

    def __init__(
        self,
        f: types.FunctionType,
        body: list[ast.stmt],
        known: dict[ast.expr, Any],
        lifted: tuple[str, ...],
    ) -> None:
        self.body = body
        self.lifted = lifted
        self.parameters = callees.parameters_of(f) or []
        # What is called, operations by name and other such functions, and the numbers from around the function.
        # (Not the function itself, which may hold large arrays.)
        self.known = known

    def __call__(self, given: dict[str, Any]) -> Any:
        """What it returns for the values of its names."""
        variables = {p.name: p.default for p in self.parameters}
        variables.update(given)
        for s in self.body:
            if isinstance(s, ast.Return):
                return self.value(s.value, variables)
            if isinstance(s, (ast.Assign, ast.AnnAssign)):
                value = self.value(s.value, variables)
                for target in s.targets if isinstance(s, ast.Assign) else [s.target]:
                    if isinstance(target, ast.Tuple):
                        variables.update(zip([t.id for t in target.elts], value, strict=True))  # type: ignore[attr-defined]
                    else:
                        variables[target.id] = value  # type: ignore[attr-defined]
            elif isinstance(s, ast.AugAssign):
                name: str = s.target.id  # type: ignore[union-attr]
                value = self.value(s.value, variables)
                variables[name] = arithmetic(_OPERATORS[type(s.op)], variables[name], value)
        return None

    def value(self, e: Any, variables: dict[str, Any]) -> Any:
        if isinstance(e, ast.Constant):
            return e.value
        if isinstance(e, ast.Name) and e.id in variables:
            return variables[e.id]
        if isinstance(e, ast.BinOp):
            return arithmetic(
                _OPERATORS[type(e.op)], self.value(e.left, variables), self.value(e.right, variables)
            )
        if isinstance(e, ast.UnaryOp):
            return arithmetic(_OPERATORS[type(e.op)], self.value(e.operand, variables))
        if isinstance(e, ast.Tuple):
            return tuple([self.value(part, variables) for part in e.elts])
        if isinstance(e, ast.Call):
            called = self.known[e]
            values = [self.value(a, variables) for a in e.args]
            if isinstance(called, str):
                return arithmetic(called, *values)
            return called(dict(zip([p.name for p in called.parameters], values, strict=False)))
        return self.known[e]


def arithmetic(name: str, *values: Any) -> Any:
    """An operation on arrays or numbers; of two integers, the power that Python's have."""
    if name == "pow" and type(values[0]) is int and type(values[1]) is int and values[1] < 0:
        values = (float(values[0]), values[1])
    return apply(name, *values)


def meaning(e: ast.expr, look_up: Any) -> Any:
    """What a name from around a function means, or an attribute of it."""
    if isinstance(e, ast.Name):
        return look_up(e.id)
    if isinstance(e, ast.Attribute):
        base = meaning(e.value, look_up)
        return base if base is NO_VALUE else getattr(base, e.attr, NO_VALUE)
    return NO_VALUE


def operation_name(f: Any, arguments: int) -> str | None:
    """The operation that a function of real numbers is, to be done with arrays."""
    from mirabelle.dispatch.ops import TABLE

    name = callees.operation_of(f)
    if name is None or TABLE[name].nin != arguments:
        return None
    return name if name in DERIVATIVES or (name in _STEPS and isinstance(f, np.ufunc)) else None


def straight(f: types.FunctionType, lifted: tuple[str, ...]) -> Straight | None:
    """The function as one that arrays go through, `lifted` names too; None if it is not that simple."""
    return _Check().function(f, lifted)


class _Check:
    def __init__(self) -> None:
        self.operations = 0
        self.helpers: dict[Any, Straight] = {}
        self.inside: list[Any] = []

    def function(self, f: types.FunctionType, lifted: tuple[str, ...]) -> Straight | None:
        tree = tree_of(f)
        parameters = callees.parameters_of(f)
        if tree is None or parameters is None or f in self.inside:
            return None
        body = body_of(tree)
        self.inside.append(f)
        found = _CheckBody(self, f, {p.name for p in parameters} | set(lifted))
        good = found.block(body)
        self.inside.pop()
        defaults = [p.default for p in parameters if p.default is not p.empty]
        if not good or not all(map(_is_number, defaults)):
            return None
        return Straight(f, body, found.known, lifted)

    def helper(self, f: Any, arguments: int) -> Straight | None:
        """A function that is called, if arrays may go through that."""
        inner = callees.python_function(f)
        if inner is None or not callees.takes(inner, arguments):
            return None
        made = self.helpers.get(inner)
        if made is None:
            made = self.function(inner, ())
            if made is None or isinstance(made.body[-1].value, ast.Tuple):  # type: ignore[attr-defined]
                return None
            self.helpers[inner] = made
        return made


class _CheckBody:
    def __init__(self, whole: _Check, f: types.FunctionType, local: set[str]) -> None:
        self.whole = whole
        self.look_up = scope_of(f)
        self.local = local
        self.known: dict[ast.expr, Any] = {}

    def block(self, body: list[ast.stmt]) -> bool:
        last = body[-1]
        if not all(map(self.statement, body[:-1])) or not isinstance(last, ast.Return) or last.value is None:
            return False
        return self.numbers(last.value) and self.whole.operations <= MOST_OPERATIONS

    def statement(self, s: ast.stmt) -> bool:
        if isinstance(s, ast.Assign):
            return self.assigned(s.targets, s.value)
        if isinstance(s, ast.AnnAssign):
            return s.value is not None and self.assigned([s.target], s.value)
        if isinstance(s, ast.AugAssign):
            self.whole.operations += 1
            mine = isinstance(s.target, ast.Name) and s.target.id in self.local
            return mine and type(s.op) in _OPERATORS and self.number(s.value)
        return isinstance(s, ast.Pass)

    def assigned(self, targets: list[ast.expr], value: ast.expr) -> bool:
        if not self.numbers(value):
            return False
        parts = len(value.elts) if isinstance(value, ast.Tuple) else 0
        for target in targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            if isinstance(target, ast.Tuple) != bool(parts) or (parts and len(names) != parts):
                return False
            if not all(isinstance(n, ast.Name) for n in names):
                return False
            self.local |= {n.id for n in names}  # type: ignore[attr-defined]
        return True

    def numbers(self, e: ast.expr) -> bool:
        """Is it a number, or a tuple of numbers?"""
        return all(map(self.number, e.elts)) if isinstance(e, ast.Tuple) else self.number(e)

    def number(self, e: ast.expr) -> bool:
        """Is it an expression of real numbers that arrays may stand for?"""
        if isinstance(e, ast.Constant):
            return _is_number(e.value)
        if isinstance(e, ast.Name) and e.id in self.local:
            return True
        if isinstance(e, (ast.BinOp, ast.UnaryOp)):
            self.whole.operations += 1
            parts = [e.left, e.right] if isinstance(e, ast.BinOp) else [e.operand]
            return type(e.op) in _OPERATORS and all(map(self.number, parts))
        if isinstance(e, ast.Call):
            return not e.keywords and all(map(self.number, e.args)) and self.callee(e)
        if isinstance(e, (ast.Name, ast.Attribute)):
            found = self.meaning(e)
            self.known[e] = found.item() if isinstance(found, np.generic) else found
            return _is_number(found)
        return False

    def meaning(self, e: ast.expr) -> Any:
        root = e
        while isinstance(root, ast.Attribute):
            root = root.value
        return None if isinstance(root, ast.Name) and root.id in self.local else meaning(e, self.look_up)

    def callee(self, e: ast.Call) -> bool:
        self.whole.operations += 1
        f = self.meaning(e.func)
        if callees.rule_of(f) is not None:
            return False
        called = operation_name(f, len(e.args)) or self.whole.helper(f, len(e.args))
        if called is not None:
            self.known[e] = called
        return called is not None


def _is_number(x: Any) -> bool:
    return isinstance(x, (*NUMBERS, np.generic)) and not isinstance(x, (bool, np.bool_))
