"""Index expressions: where an entry lies, as a closed formula of the indices along the axes above it.

There are five kinds of node: a constant, the index along an axis, sums, products, and tables of integers that
are looked up at an expression. The functions `plus` and `times` keep sums sorted by what is multiplied,
`lookup` makes one table of a table of a table, so that what is composed stays in the cheapest class.

>>> from mirabelle.arraytypes.meshdata.expressions import Index, lookup, plus, times
>>> e = plus(times(2, Index("a")), 1)
>>> e, substitute(e, {"a": plus(times(3, Index("b")), 4)})
(2*a + 1, 6*b + 9)
>>> inner = lookup([1, 3, 4], lookup([2, 0], Index("i")))
>>> inner, evaluate(inner, {"i": np.array([1, 0])})
([4, 1][i], array([1, 4]))
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any, Union

import numpy as np

Expression = Union["Const", "Index", "Sum", "Product", "Table"]


class Const:
    """The same everywhere."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = int(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Const) and other.value == self.value

    def __hash__(self) -> int:
        return hash(("const", self.value))

    def __repr__(self) -> str:
        return str(self.value)


class Index:
    """The index along the axis of a label."""

    __slots__ = ("label",)

    def __init__(self, label: Any) -> None:
        self.label = label

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Index) and other.label == self.label

    def __hash__(self) -> int:
        return hash(("index", self.label))

    def __repr__(self) -> str:
        return str(self.label)


class Product:
    """Factors, of which the first alone may be a constant."""

    __slots__ = ("factors",)

    def __init__(self, factors: tuple[Expression, ...]) -> None:
        self.factors = factors

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Product) and other.factors == self.factors

    def __hash__(self) -> int:
        return hash(("product", self.factors))

    def __repr__(self) -> str:
        return "*".join(f"({f})" if isinstance(f, Sum) else str(f) for f in self.factors)


class Sum:
    """Terms, of which the last alone may be a constant."""

    __slots__ = ("terms",)

    def __init__(self, terms: tuple[Expression, ...]) -> None:
        self.terms = terms

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sum) and other.terms == self.terms

    def __hash__(self) -> int:
        return hash(("sum", self.terms))

    def __repr__(self) -> str:
        return " + ".join(map(str, self.terms)).replace("+ -", "- ")


class Table:
    """Integers, looked up at an expression."""

    __slots__ = ("at", "values")

    def __init__(self, values: np.ndarray, at: Expression) -> None:
        self.values, self.at = values, at

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Table)
            and other.at == self.at
            and (other.values is self.values or np.array_equal(other.values, self.values))
        )

    def __hash__(self) -> int:
        return hash(("table", self.values.size, self.at))

    def __repr__(self) -> str:
        return f"{shown(self.values)}[{self.at}]"


def shown(values: np.ndarray) -> str:
    """A table in a formula: its first entries and its last."""
    if values.size <= 12:
        return str(values.tolist())
    return f"[{', '.join(map(str, values[:3].tolist()))}, ..., {values[-1]}]"


def narrow(values: Any) -> np.ndarray:
    """Integers as the type tables have: 32 bits where they fit. Nobody writes to it."""
    given = np.asarray(values)
    small = not given.size or (int(given.max()) < 2**31 and int(given.min()) >= -(2**31))
    out = np.ascontiguousarray(given, np.int32 if small else np.int64)
    if out is values and out.flags.writeable:
        out = out.copy()
    out.setflags(write=False)
    return out


# Making them


def plus(*given: Expression | int) -> Expression:
    """The sum, with equal terms taken together."""
    constant = 0
    found: dict[Expression, int] = {}
    for e in given:
        for factor, rest in _parts(e):
            if rest is None:
                constant += factor
            else:
                found[rest] = found.get(rest, 0) + factor
    terms = [_scaled(k, rest) for rest, k in found.items() if k]
    if constant or not terms:
        terms.append(Const(constant))
    return terms[0] if len(terms) == 1 else Sum(tuple(terms))


def times(*given: Expression | int) -> Expression:
    """The product; a constant goes into the terms of a sum."""
    constant, factors = 1, []
    for e in given:
        if isinstance(e, int):
            constant *= e
        elif isinstance(e, Const):
            constant *= e.value
        else:
            for f in e.factors if isinstance(e, Product) else (e,):
                if isinstance(f, Const):
                    constant *= f.value
                else:
                    factors.append(f)
    if not constant or not factors:
        return Const(constant)
    if len(factors) == 1 and isinstance(factors[0], Sum):
        return plus(*[times(constant, t) for t in factors[0].terms])
    return _scaled(constant, factors[0] if len(factors) == 1 else Product(tuple(factors)))


def lookup(values: Any, at: Expression) -> Expression:
    """A table at an expression: a constant at a constant, and one table where the expression is made of one."""
    values = narrow(values)
    if not values.size:
        return Const(0)
    if isinstance(at, Const):
        return Const(int(values.take(at.value, mode="clip")))
    if values[0] == values[-1] and (values == values[0]).all():
        return Const(int(values[0]))
    inner = {rest for _, rest in _parts(at) if rest is not None}
    if len(inner) == 1:
        (table,) = inner
        if isinstance(table, Table):
            places = evaluate(substitute_atom(at, table), {_ATOM: table.values.astype(np.int64)})
            # (Where nothing is within an entry, its place may be behind the last: nobody looks there.)
            return lookup(values.take(places, mode="clip"), table.at)
    return Table(values, at)


_ATOM = ("the values of a table",)


def substitute_atom(e: Expression, atom: Expression) -> Expression:
    """`e` with an index in place of one of its terms."""
    return plus(*[k if rest is None else times(k, Index(_ATOM)) for k, rest in _parts(e)])


def _parts(e: Expression | int) -> list[tuple[int, Expression | None]]:
    """The terms of a sum as factors and what they multiply; None stands for 1."""
    if isinstance(e, (int, np.integer)):
        return [(int(e), None)]
    if isinstance(e, Const):
        return [(e.value, None)]
    if isinstance(e, Sum):
        return [part for t in e.terms for part in _parts(t)]
    return [primitive(e)]


def primitive(e: Expression) -> tuple[int, Expression]:
    """The constant factor of a product, and the rest of it."""
    if isinstance(e, Product) and isinstance(e.factors[0], Const):
        rest = e.factors[1:]
        return e.factors[0].value, rest[0] if len(rest) == 1 else Product(rest)
    return 1, e


def _scaled(k: int, rest: Expression) -> Expression:
    if k == 1:
        return rest
    return Product((Const(k), *(rest.factors if isinstance(rest, Product) else (rest,))))


# Asking them


def labels_in(e: Expression) -> frozenset[Any]:
    """The axes whose indices an expression reads."""
    if isinstance(e, Const):
        return frozenset()
    if isinstance(e, Index):
        return frozenset((e.label,))
    if isinstance(e, Table):
        return labels_in(e.at)
    return frozenset().union(*map(labels_in, e.terms if isinstance(e, Sum) else e.factors))


def tables_in(e: Expression) -> list[Table]:
    """The tables an expression reads, outer ones first."""
    if isinstance(e, Table):
        return [e, *tables_in(e.at)]
    inner = e.terms if isinstance(e, Sum) else e.factors if isinstance(e, Product) else ()
    return [t for part in inner for t in tables_in(part)]


def step_along(e: Expression, label: Any) -> int | None:
    """By how much the expression grows with the index along an axis, if that is constant."""
    step = 0
    for factor, rest in _parts(e):
        if isinstance(rest, Index) and rest.label == label:
            step += factor
        elif rest is not None and label in labels_in(rest):
            return None
    return step


def substitute(e: Expression, by: Mapping[Any, Expression]) -> Expression:
    """The expression with others in place of indices."""
    if isinstance(e, Const):
        return e
    if isinstance(e, Index):
        return by.get(e.label, e)
    if isinstance(e, Table):
        at = substitute(e.at, by)
        return e if at is e.at else lookup(e.values, at)
    if isinstance(e, Sum):
        return plus(*[substitute(t, by) for t in e.terms])
    return times(*[substitute(f, by) for f in e.factors])


def evaluate(e: Expression, indices: Mapping[Any, Any], dtype: Any = np.int64) -> Any:
    """Its value at indices, numbers or arrays that broadcast; entries of tables are of a type of integers."""
    if isinstance(e, Const):
        return e.value
    if isinstance(e, Index):
        return indices[e.label]
    if isinstance(e, Table):
        return e.values[evaluate(e.at, indices, dtype)].astype(dtype, copy=False)
    if isinstance(e, Sum):
        # Small ones first: what broadcasts is added up before it is large.
        terms = sorted((evaluate(t, indices, dtype) for t in e.terms), key=np.size)
        return reduce(lambda a, b: a + b, terms)
    return reduce(lambda a, b: a * b, [evaluate(f, indices, dtype) for f in e.factors])
