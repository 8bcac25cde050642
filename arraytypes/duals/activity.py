"""Which variables of a scalar function change with its operands: the only ones that need tangents."""

from __future__ import annotations

import ast
from typing import Any

from mirabelle.arraytypes.duals import callees
from mirabelle.arraytypes.duals.functionsource import body_of, tree_of
from mirabelle.arraytypes.usercode.effects import NO_VALUE

# The functions that return two numbers.
PAIRS = ("divmod", "frexp")


class Activity:
    """Of the statements of a function, with operands that vary: the names of all variables that may."""

    def __init__(self, body: list[ast.stmt], local: set[str], varied: set[str], look_up: Any) -> None:
        self.local = local
        self.look_up = look_up
        self.varied = set(varied)
        # How many numbers the tuples have that variables stand for.
        self.widths: dict[str, int] = {}
        nodes = [n for s in body for n in ast.walk(s)]
        known = -1
        while known != len(self.varied) + len(self.widths):
            known = len(self.varied) + len(self.widths)
            for node in nodes:
                self._visit(node)

    def _visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bound(target, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value is not None:
            self._bound(node.target, node.value)
        elif isinstance(node, ast.For):
            self._bound(node.target, node.iter)

    def _bound(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            if self.varies(value):
                self.varied.add(target.id)
            width = self.width(value)
            if width is not None:
                self.widths[target.id] = width
        elif isinstance(target, (ast.Tuple, ast.List)):
            apart = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
            for i, part in enumerate(target.elts):
                self._bound(part, value.elts[i] if apart else value)  # type: ignore[attr-defined]
        elif isinstance(target, (ast.Subscript, ast.Attribute, ast.Starred)):
            self._bound(target.value, value)

    def meaning(self, e: ast.expr) -> Any:
        """What a name from around the function means, or an attribute of it; NO_VALUE of anything else."""
        if isinstance(e, ast.Name):
            return NO_VALUE if e.id in self.local else self.look_up(e.id)
        if isinstance(e, ast.Attribute):
            base = self.meaning(e.value)
            return base if base is NO_VALUE else getattr(base, e.attr, NO_VALUE)
        return NO_VALUE

    def varies(self, e: ast.AST) -> bool:
        """May an expression have a derivative? (Comparisons and what rounds have none.)"""
        if isinstance(e, ast.Name):
            return e.id in self.varied
        if isinstance(e, ast.Compare):
            return any(isinstance(n, ast.NamedExpr) and self.varies(n.value) for n in ast.walk(e))
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, (ast.Not, ast.Invert)):
            return False
        if isinstance(e, ast.BinOp) and not isinstance(e.op, _DIFFERENTIABLE):
            return False
        if isinstance(e, ast.IfExp):
            return self.varies(e.body) or self.varies(e.orelse)
        if isinstance(e, ast.Subscript):
            return self.varies(e.value)
        if isinstance(e, ast.Call):
            f = self.meaning(e.func)
            if callees.is_constant(f) and callees.rule_of(f) is None:
                return False
        return any(map(self.varies, ast.iter_child_nodes(e)))

    def width(self, e: ast.expr) -> int | None:
        """How many numbers the tuple has that an expression gives; None if it gives a number."""
        if isinstance(e, ast.Tuple):
            return len(e.elts)
        if isinstance(e, ast.Name):
            return self.widths.get(e.id)
        if isinstance(e, ast.IfExp):
            return self.width(e.body) or self.width(e.orelse)
        if isinstance(e, ast.Call):
            f = self.meaning(e.func)
            if callees.other(f) in PAIRS:
                return 2
            helper = callees.python_function(f)
            return None if helper is None else _width_of_result(helper)
        return None


_DIFFERENTIABLE = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.Mod)


def _width_of_result(f: Any) -> int | None:
    tree = tree_of(f)
    for s in body_of(tree) if tree is not None else []:
        for node in ast.walk(s):
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
                return len(node.value.elts)
    return None
