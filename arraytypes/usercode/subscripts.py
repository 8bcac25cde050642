"""Loops as kernels take them: by numbers, an index for each dimension that counts from the beginning, and
comparisons where Python's `min` and `max` are (of NaN, a card's are others)."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence
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

    def visit_If(self, node: ast.If) -> ast.AST:
        """`if v > best: best = v` as `best = max(best, v)`, which is that."""
        self.generic_visit(node)
        test, then = node.test, node.body[0]
        if len(node.body) > 1 or node.orelse or not isinstance(then, ast.Assign) or len(then.targets) > 1:
            return node
        if not isinstance(test, ast.Compare) or len(test.ops) > 1 or not isinstance(then.targets[0], ast.Name):
            return node
        left, right = test.left, test.comparators[0]
        operator: Any = type(test.ops[0])
        if isinstance(left, ast.Name) and left.id == then.targets[0].id:
            left, right, operator = right, left, {ast.Lt: ast.Gt, ast.Gt: ast.Lt}.get(operator)
        best = isinstance(right, ast.Name) and right.id == then.targets[0].id
        if not best or operator not in (ast.Gt, ast.Lt) or ast.dump(left) != ast.dump(then.value):
            return node
        name = ast.Name("max" if operator is ast.Gt else "min", ast.Load())
        then.value = ast.Call(name, [right, left], [])
        return ast.fix_missing_locations(ast.copy_location(then, node))

    def visit_For(self, node: ast.For) -> ast.AST:
        over, target, number = node.iter, node.target, f"{OURS}at{node.lineno}_{node.col_offset}"
        counted = isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.func.id == "enumerate"
        if counted and isinstance(over, ast.Call) and len(over.args) == 1 and not over.keywords:
            names = target.elts if isinstance(target, ast.Tuple) else []
            if len(names) == 2 and isinstance(names[0], ast.Name):
                over, target, number = over.args[0], names[1], names[0].id
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


def signs_of(
    loop: ast.stmt, ranks: Mapping[str, int], intervals: Mapping[int, tuple[float, float]]
) -> tuple[str, ...]:
    """Whether each index of a loop, in order, counts from the beginning (+), from the end (-), or either (?).

    `intervals` says where indices lie, by the ids of their expressions.
    """
    found = []
    for _, items in _indexed(loop, ranks):
        for i in items:
            low, high = intervals.get(id(i), (0.0, 0.0))
            found.append("+" if low >= 0 or isinstance(i, ast.Slice) else "-" if high < 0 else "?")
    return tuple(found)


def wrapped(loop: ast.stmt, ranks: Mapping[str, int], signs: Sequence[str]) -> ast.stmt:
    """A loop whose indices all count from the beginning: it is changed.

    >>> print(ast.unparse(wrapped(ast.parse("x[i] = x[-1]").body[0], {"x": 1}, "+-")))
    x[i] = x[-1 + x.shape[0]]
    """
    left = iter(signs)
    # (Those within others last: they are copied with these.)
    for node, items in reversed([(n, [(i, next(left)) for i in items]) for n, items in _indexed(loop, ranks)]):
        made = [_from_the_beginning(node, d, i, sign) for d, (i, sign) in enumerate(items)]
        node.slice = ast.Tuple(made, ast.Load()) if len(made) > 1 else made[0]
        ast.fix_missing_locations(ast.copy_location(node.slice, items[0][0]))
    return loop


def _indexed(loop: ast.stmt, ranks: Mapping[str, int]) -> Iterator[tuple[ast.Subscript, list[ast.expr]]]:
    """The subscripts with an index for each dimension of an array, those around others first."""
    for n in ast.walk(loop):
        if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name):
            items = list(n.slice.elts) if isinstance(n.slice, ast.Tuple) else [n.slice]
            if ranks.get(n.value.id) == len(items):
                yield n, items


def _from_the_beginning(node: ast.Subscript, d: int, i: ast.expr, sign: str) -> ast.expr:
    if sign == "+":
        return i
    assert isinstance(node.value, ast.Name)
    size = ast.Attribute(ast.Name(node.value.id, ast.Load()), "shape", ast.Load())
    end: ast.expr = ast.BinOp(i, ast.Add(), ast.Subscript(size, ast.Constant(d), ast.Load()))
    if sign == "?":
        below = ast.Compare(copy.deepcopy(i), [ast.Lt()], [ast.Constant(0)])
        end = ast.IfExp(below, end, copy.deepcopy(i))
    return ast.fix_missing_locations(ast.copy_location(end, i))


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
