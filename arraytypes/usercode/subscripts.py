"""Loops as kernels take them: by numbers, an index for each dimension that counts from the beginning, and
comparisons where Python's `min` and `max` are (of NaN, a card's are others)."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from typing import Any

from mirabelle.arraytypes.usercode.rewriting import OURS


def joined(loop: ast.stmt, ranks: Mapping[str, int]) -> ast.stmt:
    """`A[i][j]` as `A[i, j]`, where A has that many dimensions; `for v in x` by the numbers of its elements.

    (What is written so is what loops are looked at for; `wrapped` is for kernels alone.)

    >>> print(ast.unparse(joined(ast.parse("A[i][j] = B[i][0] + c[i][j]").body[0], {"A": 2, "B": 3})))
    A[i, j] = B[i][0] + c[i][j]
    >>> print(ast.unparse(joined(ast.parse("for i, v in enumerate(x): y[i] = v").body[0], {"x": 1, "y": 1})))
    for i in range(len(x)):
        v = x[i]
        y[i] = v
    """
    return _Joined(ranks).visit(loop)  # type: ignore[no-any-return]


class _Joined(ast.NodeTransformer):
    def __init__(self, ranks: Mapping[str, int]) -> None:
        self.ranks = ranks

    def visit_For(self, node: ast.For) -> ast.AST:
        over, target, number = node.iter, node.target, f"{OURS}at{node.lineno}_{node.col_offset}"
        if (
            isinstance(over, ast.Call)
            and isinstance(over.func, ast.Name)
            and over.func.id == "enumerate"
            and len(over.args) == 1
            and not over.keywords
            and isinstance(target, ast.Tuple)
            and len(target.elts) == 2
            and isinstance(target.elts[0], ast.Name)
        ):
            over, target, number = over.args[0], target.elts[1], target.elts[0].id
        if isinstance(over, ast.Name) and self.ranks.get(over.id) == 1 and isinstance(target, ast.Name):
            size = ast.Call(ast.Name("len", ast.Load()), [ast.Name(over.id, ast.Load())], [])
            element = ast.Subscript(ast.Name(over.id, ast.Load()), ast.Name(number, ast.Load()), ast.Load())
            node.target = ast.Name(number, ast.Store())
            node.iter = ast.Call(ast.Name("range", ast.Load()), [size], [])
            node.body.insert(0, ast.Assign([target], element))
            for x in (node.target, node.iter, node.body[0]):
                ast.copy_location(x, node.body[1])
            ast.fix_missing_locations(node)
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        items: list[ast.expr] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Subscript):
            items = [*(inner.slice.elts if isinstance(inner.slice, ast.Tuple) else [inner.slice]), *items]
            inner = inner.value
        plain = not any(
            isinstance(i, (ast.Slice, ast.Starred, ast.Constant)) and not _is_integer(i) for i in items
        )
        if (
            isinstance(inner, ast.Name)
            and self.ranks.get(inner.id) == len(items)
            and plain
            and inner is not node.value
        ):
            made = ast.Subscript(inner, ast.Tuple(items, ast.Load()), node.ctx)
            node = ast.fix_missing_locations(ast.copy_location(made, node))
        return self.generic_visit(node)


def _is_integer(i: ast.expr) -> bool:
    return isinstance(i, ast.Constant) and type(i.value) is int


def wrapped(
    loop: ast.stmt, ranks: Mapping[str, int], intervals: Mapping[int, tuple[float, float]]
) -> tuple[ast.stmt, tuple[str, ...]]:
    """A loop whose indices count from the beginning, and what was done to each of them.

    `intervals` says where indices lie, by the ids of their expressions.

    >>> loop = ast.parse("x[i] = x[-1]").body[0]
    >>> last = loop.value.slice
    >>> print(ast.unparse(wrapped(loop, {"x": 1}, {id(last): (-1.0, -1.0)})[0]))
    x[i] = x[-1 + x.shape[0]]
    """
    made = _Wrapped(ranks, intervals)
    return made.visit(loop), tuple(made.done)


class _Wrapped(ast.NodeTransformer):
    def __init__(self, ranks: Mapping[str, int], intervals: Mapping[int, tuple[float, float]]) -> None:
        self.ranks = ranks
        self.intervals = intervals
        self.done: list[str] = []

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        name = node.value
        items = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        lies = [self.intervals.get(id(i), (0.0, 0.0)) for i in items]
        self.generic_visit(node)
        if not isinstance(name, ast.Name) or self.ranks.get(name.id) != len(items):
            return node
        items = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        for d, (i, (low, high)) in enumerate(zip(items, lies, strict=True)):
            if isinstance(i, ast.Slice) or low >= 0:
                self.done.append("+")
                continue
            size = ast.Attribute(ast.Name(name.id, ast.Load()), "shape", ast.Load())
            end: Any = ast.BinOp(i, ast.Add(), ast.Subscript(size, ast.Constant(d), ast.Load()))
            if high >= 0:
                below = ast.Compare(copy.deepcopy(i), [ast.Lt()], [ast.Constant(0)])
                end = ast.IfExp(below, end, copy.deepcopy(i))
            self.done.append("-" if high < 0 else "?")
            items[d] = ast.fix_missing_locations(ast.copy_location(end, i))
        node.slice = ast.Tuple(items, ast.Load()) if len(items) > 1 else items[0]
        ast.fix_missing_locations(ast.copy_location(node.slice, items[0]))
        return node


def compared(loop: ast.AST) -> ast.AST:
    """`max(a, b)` as Python means it: `b if b > a else a`.

    >>> print(ast.unparse(compared(ast.parse("s = min(s, x[i], 2)"))))
    s = 2 if 2 < (x[i] if x[i] < s else s) else x[i] if x[i] < s else s
    """
    return _Compared().visit(loop)  # type: ignore[no-any-return]


class _Compared(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in ("min", "max") or not 2 <= len(node.args) <= 4 or node.keywords:
            return node
        first: ast.expr = node.args[0]
        for second in node.args[1:]:
            operator: ast.cmpop = ast.Gt() if name == "max" else ast.Lt()
            test = ast.Compare(copy.deepcopy(second), [operator], [copy.deepcopy(first)])
            first = ast.IfExp(test, second, copy.deepcopy(first))
        return ast.fix_missing_locations(ast.copy_location(first, node))
