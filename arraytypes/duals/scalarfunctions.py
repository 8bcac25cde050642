"""Derivatives of users' scalar functions that are broadcast.

Three ways are tried. Somebody gave the function a rule. Or it is straight: then it is evaluated with dual
numbers in place of its operands (`traced`). Or it has branches and loops: then its tangent is another scalar
function, written from its source (`tangents`), and broadcast.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.duals import callees
from mirabelle.arraytypes.duals.base import (
    Dual,
    DualError,
    Term,
    apply,
    collected,
    holds_duals,
    outermost,
    snapshot,
    value_in,
)
from mirabelle.arraytypes.duals.elementwise import extend
from mirabelle.arraytypes.duals.formulas import Symbol, operation
from mirabelle.arraytypes.duals.rules import forgetting
from mirabelle.arraytypes.duals.tangents import tangent_function
from mirabelle.arraytypes.duals.traced import straight
from mirabelle.arraytypes.elementwise import cast_to
from mirabelle.arraytypes.userbroadcast import broadcast, broadcast_over, evaluated
from mirabelle.arraytypes.usercode import userfunctions
from mirabelle.dispatch import ops
from mirabelle.dispatch.ops import Op
from mirabelle.dispatch.tree import broadcast_shapes

# What was worked out about a function is kept with its operation, which functions of one code share.
_known: dict[Any, Any] = {}
_UNKNOWN: Any = object()
forgetting.append(_known.clear)
ops.forgetting.append(_known.clear)


def of_duals(f: Callable[..., Any], op: Op, operands: tuple[Any, ...], given: int) -> Any:
    """`f` broadcast over operands of which one is a dual number; beyond the first `given`, it captured them."""
    if isinstance(f, functools.partial):
        return broadcast(f.func, *f.args, *operands[:given])
    operands = tuple([x._dense() if hasattr(x, "_stored") and holds_duals(type(x)) else x for x in operands])
    top = outermost(operands)
    tag = top._tag
    values = tuple([value_in(x, tag) for x in operands])
    varied = [i for i, x in enumerate(operands) if isinstance(x, Dual) and x._tag is tag]
    rule = callees.rule_of(f)
    if rule is not None:
        y = evaluated(f, op, values, given)
        return _joined(top, operands, values, y, _by_rule(f, rule, values, varied, given, y))
    found = _traced(f, op, operands, given)
    if found is not None:
        return found
    y = evaluated(f, op, values, given)
    return _joined(top, operands, values, y, {i: _slope(f, op, values, given, i, y) for i in varied})


def _joined(
    top: Any, operands: tuple[Any, ...], values: tuple[Any, ...], y: Any, slopes: dict[int, Any]
) -> Any:
    """The result, or each of several, with the terms that its derivatives by the operands give."""
    if isinstance(y, tuple):
        return tuple(
            [
                _joined(top, operands, values, part, {i: d and d[k] for i, d in slopes.items()})
                for k, part in enumerate(y)
            ]
        )
    if _dtype(y).kind not in "fc":
        return y
    terms: list[Term] = []
    for i, d in slopes.items():
        if isinstance(d, AbstractArray):
            # A literal of the text is double, and makes no double of a single.
            d = cast_to(d, np.result_type(_dtype(y), d.dtype) if d.dtype.kind == "c" else _dtype(y))
        extend(terms, operands[i], d, values)
    return collected(top, y, terms)


def _dtype(x: Any) -> np.dtype:
    return x.dtype if hasattr(x, "dtype") else np.dtype(type(x))


# By a rule


def _by_rule(
    f: Any, rule: Callable[..., Any], values: tuple[Any, ...], varied: list[int], given: int, y: Any
) -> dict[int, Any]:
    name = getattr(f, "__name__", "f")
    if max(varied) >= given:
        raise DualError(
            f"{name}() has a rule, and reads a dual number from around it, by which the rule gives no "
            f"derivative. Make that a parameter of {name} and of its rule."
        )
    found = rule(*[snapshot(v) for v in values[:given]])
    found = found if isinstance(found, tuple) else (found,)
    if len(found) != given or isinstance(y, tuple):
        what = (
            "a function of one result" if isinstance(y, tuple) else f"{given} derivatives, one by each operand"
        )
        raise DualError(
            f"The rule for {name}() gives {len(found)} derivative(s) for {given} operand(s) and "
            f"{len(y) if isinstance(y, tuple) else 1} result(s): @mb.autodiff.rule({name}) is for {what}."
        )
    return {i: found[i] for i in varied}


# With arrays in place of numbers


def _traced(f: Any, op: Op, operands: tuple[Any, ...], given: int) -> Any:
    """What `f` makes of the operands themselves; None where that is not the same."""
    key = (op, "straight")
    function = _known.get(key, _UNKNOWN)
    if function is _UNKNOWN:
        inner = callees.python_function(f)
        function = None
        if inner is not None and callees.takes(inner, given):
            function = straight(inner, lifted_names(inner, op, given))
        _remember(key, function)
    if function is None or not all(map(_is_double, operands)) or not any(map(_is_array, operands)):
        return None
    parameters = [p.name for p in function.parameters[:given]]
    numbers = [x.item() if isinstance(x, np.generic) else x for x in operands]
    result = function(dict(zip((*parameters, *function.lifted), numbers, strict=True)))
    shape = broadcast_shapes([x.shape for x in operands if isinstance(x, AbstractArray)], op.name)
    parts = result if isinstance(result, tuple) else (result,)
    if not all(isinstance(r, AbstractArray) and r.shape == shape and r.dtype.kind in "fc" for r in parts):
        return None  # a number for all elements, or a result that does not depend on all operands
    parts = tuple([apply("copy", r) if any(r is x for x in operands) else r for r in parts])
    return parts if isinstance(result, tuple) else parts[0]


def _is_double(x: Any) -> bool:
    """Do arrays of this dtype give what Numba's numbers give? (There a literal makes doubles of singles.)"""
    if isinstance(x, (AbstractArray, np.generic)):
        return x.dtype.char in "dD"
    return type(x) in (int, float, complex)


def _is_array(x: Any) -> bool:
    """Is it an array, and no dual number of Python's numbers?"""
    while isinstance(x, Dual):
        x = x.value
    return isinstance(x, AbstractArray)


def lifted_names(f: Any, op: Op, given: int) -> tuple[str, ...]:
    """The names of what the function reads from around it and gets as further operands."""
    if op.nin == given:
        return ()
    return tuple([n for n, v in userfunctions.captures(f).items() if userfunctions.liftable(v)])


# With a function of the tangent


def _slope(f: Any, op: Op, values: tuple[Any, ...], given: int, i: int, y: Any) -> Any:
    """The derivative by operand `i` of the result `y`, or of several results a tuple; None if there is none."""
    inner = callees.python_function(f)
    assert inner is not None
    results = {_dtype(part) for part in (y if isinstance(y, tuple) else (y,))}
    numbers = "real"
    if any(_dtype(v).kind == "c" for v in values):
        numbers = "complex"
    elif np.dtype(np.float64) not in results and np.dtype(np.float32) in results:
        numbers = "single"
    key = (op, i, numbers)
    slope = _known.get(key, _UNKNOWN)
    if slope is _UNKNOWN:
        names = lifted_names(inner, op, given)
        slope = tangent_function(inner, (i,), given=given, lifted=names, unit=True, numbers=numbers)
        _remember(key, slope)
    return None if slope is None else broadcast(slope, *values)


def _remember(key: Any, value: Any) -> None:
    if len(_known) > 4096:
        for old in list(_known)[:1024]:
            del _known[old]
    _known[key] = value


@broadcast_over.method
def _(x: Dual, f: Callable[..., Any], op: Op, operands: tuple[Any, ...], given: int) -> Any:
    return of_duals(f, op, operands, given)


@broadcast_over.method
def _(x: Symbol, f: Callable[..., Any], op: Op, operands: tuple[Any, ...], given: int) -> Any:
    return operation(op, operands)  # in a formula: a call of it
