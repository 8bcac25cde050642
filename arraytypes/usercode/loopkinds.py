"""Of which kind the numbers are that a loop assigns: integers, real or complex ones."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

import numpy as np

# In the order in which one kind becomes another; "" is unknown.
_ORDER = "bifc"
_REAL = {
    "sqrt", "exp", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan", "arcsin", "arccos", "arctan",
    "arctan2", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "cbrt",
    "exp2", "hypot",
}  # fmt: skip
_SAME = {"abs", "absolute", "fabs", "minimum", "maximum", "fmin", "fmax", "conj", "conjugate", "sign", "square"}

# Functions that compute an element of each element.
ELEMENTWISE = {*_REAL, *_SAME}


def kinds_of(loop: ast.AST, values: Mapping[str, Any]) -> dict[str, str]:
    """The kind of each variable of a loop that holds numbers: "i", "f" or "c"; "" where it is not known.

    >>> import numpy as np
    >>> loop = ast.parse("for i in range(n): s += x[i] * 2; k = i // 2")
    >>> found = kinds_of(loop, {"n": 3, "s": 0, "x": np.ones(3)})
    >>> found["s"], found["k"], found["i"]
    ('f', 'i', 'i')
    """
    kinds = {n: _kind(x) for n, x in values.items()}
    assigned: list[tuple[str, ast.expr | None]] = []
    for n in ast.walk(loop):
        if isinstance(n, ast.Assign):
            for t in n.targets:
                if isinstance(t, ast.Name):
                    assigned.append((t.id, n.value))
                elif (
                    isinstance(t, ast.Tuple)
                    and isinstance(n.value, ast.Tuple)
                    and len(t.elts) == len(n.value.elts)
                ):
                    assigned += [
                        (a.id, b) for a, b in zip(t.elts, n.value.elts, strict=True) if isinstance(a, ast.Name)
                    ]
                else:
                    assigned += [
                        (x.id, None)
                        for x in ast.walk(t)
                        if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)
                    ]
        elif isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name):
            left = ast.Name(n.target.id, ast.Load())
            assigned.append((n.target.id, ast.BinOp(left, n.op, n.value)))
        elif isinstance(n, ast.For):
            counted = (
                isinstance(n.iter, ast.Call) and isinstance(n.iter.func, ast.Name) and n.iter.func.id == "range"
            )
            if isinstance(n.target, ast.Name):
                over = n.iter if isinstance(n.iter, ast.Name) else None
                assigned.append((n.target.id, ast.Constant(0) if counted else over))
            else:
                assigned += [(x.id, None) for x in ast.walk(n.target) if isinstance(x, ast.Name)]
    # (What is not known yet takes no part; what is never known is unknown.)
    for _ in range(len(assigned) + 2):
        before = dict(kinds)
        for name, e in assigned:
            found = "?" if e is None else _of(e, kinds)
            if found:
                kinds[name] = found if name not in kinds else _joined(kinds[name], found)
        if kinds == before:
            break
    for name, e in assigned:
        if e is None or not _of(e, kinds):
            kinds[name] = "?"
    return {n: "" if "?" in k else k for n, k in kinds.items()}


def kind_of(e: ast.expr, kinds: Mapping[str, str]) -> str:
    """The kind of an expression of such variables; "" or "?" where it is not known."""
    return _of(e, kinds)


def _kind(x: Any) -> str:
    if isinstance(x, (bool, np.bool_)):
        return "b"
    if isinstance(x, (int, float, complex)):
        return "i" if isinstance(x, int) else "f" if isinstance(x, float) else "c"
    kind = getattr(getattr(x, "dtype", None), "kind", "?")
    return {"u": "i"}.get(kind, kind) if kind in "biufc" else "?"


def _joined(*kinds: str) -> str:
    if not all(kinds):
        return ""
    return "?" if "?" in kinds else max(kinds, key=_ORDER.index)


def _of(e: ast.expr, kinds: Mapping[str, str]) -> str:
    """The kind of an expression: "" if it is not known yet, "?" if it cannot be."""
    if isinstance(e, ast.Constant):
        return _kind(e.value)
    if isinstance(e, ast.Name):
        return kinds.get(e.id, "")
    if isinstance(e, ast.Subscript):
        return "i" if isinstance(e.value, ast.Attribute) else _of(e.value, kinds)
    if isinstance(e, ast.Attribute):
        if e.attr in ("real", "imag"):
            inner = _of(e.value, kinds)
            return "f" if inner == "c" else inner
        return "i" if e.attr in ("size", "ndim") else "?"
    if isinstance(e, ast.UnaryOp):
        return "b" if isinstance(e.op, ast.Not) else _joined(_of(e.operand, kinds), "i")
    if isinstance(e, ast.BinOp):
        both = _joined(_of(e.left, kinds), _of(e.right, kinds))
        if isinstance(e.op, ast.Div):
            return _joined(both, "f")
        if isinstance(e.op, ast.Pow) and both in ("b", "i"):
            return "?"  # (of a negative exponent it is no integer)
        return "?" if isinstance(e.op, ast.MatMult) else _joined(both, "i")
    if isinstance(e, ast.Compare):
        return "b"
    if isinstance(e, ast.BoolOp):
        return _joined(*[_of(x, kinds) for x in e.values])
    if isinstance(e, ast.IfExp):
        return _joined(_of(e.body, kinds), _of(e.orelse, kinds))
    return _of_call(e, kinds) if isinstance(e, ast.Call) else "?"


def _of_call(e: ast.Call, kinds: Mapping[str, str]) -> str:
    name = (
        e.func.id if isinstance(e.func, ast.Name) else e.func.attr if isinstance(e.func, ast.Attribute) else ""
    )
    given = _joined(*[_of(a, kinds) for a in e.args]) if e.args else "?"
    if isinstance(e.func, ast.Name):
        if name in ("len", "int"):
            return "i"
        if name in ("float", "bool", "complex"):
            return name[0]
        if name in ("min", "max"):
            return given
        return "f" if name == "abs" and given == "c" else given if name == "abs" else "?"
    if name in _REAL:
        return _joined(given, "f")
    if name in _SAME:
        return "f" if given == "c" and name in ("abs", "absolute") else given
    if name in ("real", "imag"):
        return "f" if given == "c" else given
    return "?"
