"""The text of a tangent function as it grows: its names, and the statements so far."""

from __future__ import annotations

import ast
import math
import os
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mirabelle.arraytypes.duals import formulas
from mirabelle.arraytypes.duals.base import DualError


class Text:
    """Statements for the tangent of `f`, beside names that are `used` by it."""

    def __init__(self, f: types.FunctionType, numbers: str) -> None:
        self.f = f
        self.name = "function" if f.__name__ == "<lambda>" else f.__name__
        self.numbers = numbers
        self.used: set[str] = set()
        self.scope: dict[str, Any] = {"__name__": f.__globals__.get("__name__", "__main__")}
        self.out: list[ast.stmt] = []
        self.dots: dict[str, str] = {}

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
            f"{name}() in {os.path.basename(code.co_filename)}, line {line}, cannot be differentiated: {why}. "
            f"Say what its derivative is with `{cure}`, or hold its operands constant: `mb.autodiff.value(x)`."
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

    def settled(self, value: ast.expr) -> ast.expr:
        single = np.float32 if self.numbers == "single" else None
        return formulas.Settled(self.constant, single).visit(value)  # type: ignore[no-any-return]

    # Statements

    def emit(self, name: str, value: ast.expr) -> None:
        value = self.settled(value)
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

    def copied(self, e: ast.expr) -> ast.expr:
        if isinstance(e, ast.Constant):
            return e
        name = self.fresh("t")
        self.emit(name, e)
        return ast.Name(name, ast.Load())
