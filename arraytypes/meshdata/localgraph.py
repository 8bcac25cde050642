"""What a local kernel computes, as a graph of scalar operations, and the derivative of such a graph.

A node is an integer: its place in the list. Equal operations on equal nodes are one node, constants
are folded, and what is multiplied by the constant zero is zero: tables of basis functions are full of
those.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

# How an operation is written in a kernel. Functions go by NumPy's names.
OPERATORS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor_divide": "//",
    "remainder": "%",
    "power": "**",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "left_shift": "<<",
    "right_shift": ">>",
}
FUNCTIONS = frozenset(
    re.findall(
        r"\w+",
        "sqrt exp expm1 log log1p log2 log10 sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh "
        "arccosh arctanh arctan2 hypot floor ceil trunc absolute sign minimum maximum fmin fmax copysign "
        "isnan isinf isfinite conjugate real imag logical_not logical_and logical_or",
    )
)
_FOLDED: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "power": operator.pow,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}
_COMMUTATIVE = frozenset(("add", "multiply"))
Number = bool | int | float | complex


class Graph:
    """Operations on the entries that a kernel reads.

    >>> g = Graph()
    >>> x = g.input(0, 0)
    >>> g.apply("multiply", x, g.constant(0.0)) == g.constant(0.0)
    True
    >>> y = g.apply("sqrt", g.apply("multiply", x, x))
    >>> g.nodes[y]
    ('sqrt', (2,))
    """

    def __init__(self) -> None:
        self.nodes: list[tuple[Any, ...]] = []
        self._found: dict[Any, int] = {}

    def _node(self, *what: Any) -> int:
        # (0.0 and -0.0, 1 and 1.0 and True are equal, and not the same constant.)
        key = what if what[0] != "constant" else (type(what[1]), repr(what[1]))
        if what[0] in _COMMUTATIVE and what[1][0] > what[1][1]:  # (with the same bits)
            key = what[0], what[1][::-1]
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = len(self.nodes)
            self.nodes.append(what)
        return found

    def input(self, argument: int, entry: int) -> int:
        """An entry of what the kernel is given, by the numbers of the argument and of the entry."""
        return self._node("input", argument, entry)

    def constant(self, value: Number) -> int:
        if isinstance(value, np.generic):
            value = value.item()
        return self._node("constant", value)

    def value_of(self, node: int) -> Number | None:
        """The number that a constant is; None for all else."""
        what = self.nodes[node]
        return what[1] if what[0] == "constant" else None

    def apply(self, op: str, *args: int) -> int:
        """The node of an operation."""
        values = [self.value_of(a) for a in args]
        if None not in values and op in _FOLDED:
            try:
                return self.constant(_FOLDED[op](*values))
            except ArithmeticError:
                pass
        if op == "divide" and None not in values and values[1]:
            return self.constant(operator.truediv(*values))  # type: ignore[arg-type]
        simple = self._simplified(op, args, values)
        return self._node(op, args) if simple is None else simple

    def _simplified(self, op: str, args: Sequence[int], values: Sequence[Number | None]) -> int | None:
        if op == "add":
            if _is(values[0], 0):
                return args[1]
            if _is(values[1], 0):
                return args[0]
            for i in (0, 1):  # a + (-b) is a - b
                if self.nodes[args[i]][0] == "negative":
                    return self.apply("subtract", args[1 - i], self.nodes[args[i]][1][0])
        elif op == "subtract":
            if _is(values[1], 0):
                return args[0]
            if _is(values[0], 0):
                return self.apply("negative", args[1])
            if self.nodes[args[1]][0] == "negative":
                return self.apply("add", args[0], self.nodes[args[1]][1][0])
        elif op == "multiply":
            for i in (0, 1):
                if _is(values[i], 0):
                    return args[i]
                if _is(values[i], 1):
                    return args[1 - i]
                if _is(values[i], -1):
                    return self.apply("negative", args[1 - i])
                if self.nodes[args[i]][0] == "negative":
                    return self.apply(
                        "negative", self.apply("multiply", *_replaced(args, i, self._inside(args[i])))
                    )
        elif op == "divide":
            if _is(values[1], 1) and isinstance(values[1], float):
                return args[0]
            if _is(values[0], 0):
                return self.constant(0.0)
        elif op == "negative":
            if values[0] is not None:
                return self.constant(-values[0])
            if self.nodes[args[0]][0] == "negative":
                return self._inside(args[0])
        elif op == "power":
            if _is(values[1], 2):
                return self.apply("multiply", args[0], args[0])
            if _is(values[1], 1):
                return args[0]
        elif op == "where":
            if values[0] is not None:
                return args[1] if values[0] else args[2]
            if args[1] == args[2]:
                return args[1]
        return None

    def _inside(self, node: int) -> int:
        inside: int = self.nodes[node][1][0]
        return inside

    # What is asked of a graph

    def operands(self, node: int) -> tuple[int, ...]:
        what = self.nodes[node]
        return () if what[0] in ("input", "constant") else what[1]

    def reached(self, outputs: Iterable[int]) -> list[int]:
        """The nodes that these outputs need, operands first."""
        needed: set[int] = set()
        waiting = list(outputs)
        while waiting:
            node = waiting.pop()
            if node not in needed:
                needed.add(node)
                waiting += self.operands(node)
        return sorted(needed)  # operands are made before what uses them

    def early(self, outputs: Iterable[int]) -> list[int]:
        """The same, but what is added to a sum is added as soon as it is known: little waits for its use."""
        reached = self.reached(outputs)
        users: dict[int, list[int]] = {n: [] for n in reached}
        for n in reached:
            for a in dict.fromkeys(self.operands(n)):
                users[a].append(n)
        placed: dict[int, None] = {}
        for n in reached:
            waiting = [n]
            while waiting:
                m = waiting.pop()
                if m in placed or any(a not in placed for a in self.operands(m)):
                    continue
                placed[m] = None
                if self.nodes[m][0] not in ("input", "constant") and not self._is_scaled_input(m):
                    added = [u for u in users[m] if self.nodes[u][0] in _SUMS or self.is_scaled(u)]
                    waiting += reversed(added)
        return list(placed)

    def is_scaled(self, node: int) -> bool:
        """Is it a product with a constant?"""
        what = self.nodes[node]
        return what[0] == "multiply" and any(self.nodes[a][0] == "constant" for a in what[1])

    def _is_scaled_input(self, node: int) -> bool:
        return self.is_scaled(node) and any(self.nodes[a][0] == "input" for a in self.operands(node))

    def operations(self, outputs: Iterable[int]) -> int:
        """How many operations these outputs take."""
        return sum(self.nodes[n][0] not in ("input", "constant") for n in self.reached(outputs))

    # Derivatives

    def tangents(self, outputs: Sequence[int], seeds: dict[int, int]) -> list[int]:
        """The derivatives of outputs along a direction: `seeds` has the direction's entry of each input."""
        zero = self.constant(0.0)
        d: dict[int, int] = {}
        for node in self.reached(outputs):
            what = self.nodes[node]
            if what[0] in ("input", "constant"):
                d[node] = seeds.get(node, zero)
            elif all(d[a] == zero for a in what[1]):
                d[node] = zero
            else:
                d[node] = self._tangent(node, what[0], what[1], d)
        return [d[o] for o in outputs]

    def _tangent(self, node: int, op: str, args: tuple[int, ...], d: dict[int, int]) -> int:
        f, c = self.apply, self.constant
        if op in ("add", "subtract"):
            return f(op, d[args[0]], d[args[1]])
        if op == "where":
            return f("where", args[0], d[args[1]], d[args[2]])
        if op == "negative":
            return f("negative", d[args[0]])
        if op in ("minimum", "maximum", "fmin", "fmax"):
            less = f("less_equal", *(args if op.endswith("min") or op == "minimum" else args[::-1]))
            return f("where", less, d[args[0]], d[args[1]])
        if op in ("conjugate", "real", "imag"):
            return f(op, d[args[0]])
        if op in _FLAT:
            return c(0.0)
        partials = _PARTIALS.get(op)
        if partials is None:
            raise NotImplementedError(
                f"The local kernel uses {op}, and there is no rule for its derivative. Write it with others, "
                f"or add `mirabelle.arraytypes.meshdata.localgraph._PARTIALS[{op!r}]`."
            )
        total = c(0.0)
        for a, partial in zip(args, partials, strict=True):
            if d[a] != c(0.0):
                total = f("add", total, f("multiply", partial(f, c, node, *args), d[a]))
        return total


def _is(value: Number | None, wanted: int) -> bool:
    return value is not None and not isinstance(value, bool) and value == wanted


def _replaced(args: Sequence[int], i: int, by: int) -> tuple[int, ...]:
    return tuple(by if j == i else a for j, a in enumerate(args))


_SUMS = ("add", "subtract")
# Operations whose derivative is zero where it exists.
_FLAT = frozenset(
    re.findall(
        r"\w+",
        "floor ceil trunc sign isnan isinf isfinite floor_divide less less_equal greater greater_equal "
        "equal not_equal logical_not logical_and logical_or bitwise_and bitwise_or bitwise_xor left_shift "
        "right_shift",
    )
)
# Derivatives by each operand: functions of (apply, constant, the result, the operands).
_PARTIALS: dict[str, tuple[Callable[..., int], ...]] = {
    "multiply": (lambda f, c, y, a, b: b, lambda f, c, y, a, b: a),
    "divide": (
        lambda f, c, y, a, b: f("divide", c(1.0), b),
        lambda f, c, y, a, b: f("negative", f("divide", y, b)),
    ),
    "power": (
        lambda f, c, y, a, b: f("multiply", b, f("power", a, f("subtract", b, c(1)))),
        lambda f, c, y, a, b: f("multiply", y, f("log", a)),
    ),
    "remainder": (
        lambda f, c, y, a, b: c(1.0),
        lambda f, c, y, a, b: f("negative", f("floor_divide", a, b)),
    ),
    "sqrt": (lambda f, c, y, a: f("divide", c(0.5), y),),
    "exp": (lambda f, c, y, a: y,),
    "expm1": (lambda f, c, y, a: f("add", y, c(1.0)),),
    "log": (lambda f, c, y, a: f("divide", c(1.0), a),),
    "log1p": (lambda f, c, y, a: f("divide", c(1.0), f("add", a, c(1.0))),),
    "log2": (lambda f, c, y, a: f("divide", c(1 / math.log(2)), a),),
    "log10": (lambda f, c, y, a: f("divide", c(1 / math.log(10)), a),),
    "sin": (lambda f, c, y, a: f("cos", a),),
    "cos": (lambda f, c, y, a: f("negative", f("sin", a)),),
    "tan": (lambda f, c, y, a: f("add", c(1.0), f("multiply", y, y)),),
    "arcsin": (lambda f, c, y, a: f("divide", c(1.0), f("sqrt", f("subtract", c(1.0), f("multiply", a, a)))),),
    "arccos": (lambda f, c, y, a: f("divide", c(-1.0), f("sqrt", f("subtract", c(1.0), f("multiply", a, a)))),),
    "arctan": (lambda f, c, y, a: f("divide", c(1.0), f("add", c(1.0), f("multiply", a, a))),),
    "sinh": (lambda f, c, y, a: f("cosh", a),),
    "cosh": (lambda f, c, y, a: f("sinh", a),),
    "tanh": (lambda f, c, y, a: f("subtract", c(1.0), f("multiply", y, y)),),
    "arctan2": (
        lambda f, c, y, a, b: f("divide", b, f("add", f("multiply", a, a), f("multiply", b, b))),
        lambda f, c, y, a, b: f("divide", f("negative", a), f("add", f("multiply", a, a), f("multiply", b, b))),
    ),
    "hypot": (lambda f, c, y, a, b: f("divide", a, y), lambda f, c, y, a, b: f("divide", b, y)),
    "absolute": (lambda f, c, y, a: f("sign", a),),
    "copysign": (
        lambda f, c, y, a, b: f("multiply", f("sign", a), f("copysign", c(1.0), b)),
        lambda f, c, y, a, b: c(0.0),
    ),
}
