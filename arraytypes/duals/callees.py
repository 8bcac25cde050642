"""What the functions that scalar functions call are, for differentiation.

`math.sin`, `np.sin`, `mb.sin` are the operation "sin", whose derivative the table of `elementwise` has; `int`
and `math.floor` are constant; `max` selects; the rest are functions of users, or unknown.
"""

from __future__ import annotations

import builtins
import cmath
import functools
import inspect
import math
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.duals.elementwise import CONSTANT, DERIVATIVES
from mirabelle.dispatch import verbs
from mirabelle.dispatch.ops import TABLE

# What modules call operations that have another name here.
_MATH = {"fabs": "abs", "degrees": "rad2deg", "radians": "deg2rad"}
_OPERATOR = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "pow", "neg": "negative", "pos": "positive", "abs": "abs", "eq": "equal",
    "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}  # fmt: skip
# Functions with a derivative of their own kind.
_OTHERS: dict[Any, str] = {
    builtins.max: "max", builtins.min: "min", builtins.divmod: "divmod", np.divmod: "divmod",
    math.frexp: "frexp", np.frexp: "frexp",
}  # fmt: skip
_STEPS = (
    builtins.int, builtins.bool, builtins.round, builtins.len, builtins.range, math.floor, math.ceil,
    math.trunc,
    math.isnan, math.isinf, math.isfinite, math.isclose, math.gcd, math.lcm, math.factorial, math.comb,
    math.perm, math.isqrt, cmath.isnan, cmath.isinf, cmath.isfinite, cmath.isclose, np.isreal, np.iscomplex,
)  # fmt: skip
# They do to a tangent what they do to a value.
_LINEAR: tuple[Any, ...] = (np.real, np.imag, np.conj, np.float64, np.complex128, builtins.float)


@functools.cache
def _operations() -> dict[Any, str]:
    found: dict[Any, str] = {
        np.fabs: "abs",
        np.float_power: "pow",
        complex: "complex",
        builtins.abs: "abs",
        builtins.pow: "pow",
    }
    for module in (math, cmath):
        for name, f in vars(module).items():
            known = _MATH.get(name, name)
            if callable(f) and (known in DERIVATIVES or known in CONSTANT) and f not in _STEPS:
                found[f] = known
    for name, known in _OPERATOR.items():
        found[getattr(operator, name)] = known
    for name, op in TABLE.items():
        if op.ufunc is not None:
            found[op.ufunc] = name
        elif op.scalar is not None:
            found[op.scalar] = name
    for name, verb in verbs.ELEMENTWISE.items():
        found[verb] = name
    for f in (*_OTHERS, *_LINEAR):
        found.pop(f, None)
    return found


def operation_of(f: Any) -> str | None:
    """The name of the operation that a function is; None if it is none."""
    try:
        return _operations().get(f)
    except TypeError:
        return None


def other(f: Any) -> str | None:
    """The name of a function with a derivative of its own kind: "max", "divmod", ..."""
    try:
        return _OTHERS.get(f)
    except TypeError:
        return None


def is_constant(f: Any) -> bool:
    """Does a function change in steps, or give no number?"""
    return any(f is s for s in _STEPS) or operation_of(f) in CONSTANT or _is_integer_type(f)


def is_linear(f: Any) -> bool:
    """Is the tangent of what it gives what it gives for the tangent?"""
    return any(f is s for s in _LINEAR) or operation_of(f) == "conj" or _is_real_type(f)


def _is_integer_type(f: Any) -> bool:
    return isinstance(f, type) and issubclass(f, (np.integer, np.bool_))


def _is_real_type(f: Any) -> bool:
    return isinstance(f, type) and issubclass(f, np.inexact)


def python_function(f: Any) -> types.FunctionType | None:
    """The Python function that a user's function is, compiled or not; None if it is something else."""
    for attribute in ("python", "py_func"):
        f = getattr(f, attribute, f)
    if isinstance(f, types.FunctionType):
        return f
    return None


def rule_of(f: Any) -> Callable[..., Any] | None:
    """The derivative that somebody gave a scalar function."""
    from mirabelle.arraytypes.duals.rules import SCALAR_RULES

    for candidate in (f, python_function(f)):
        if candidate is None:
            continue
        try:
            found = SCALAR_RULES.get(candidate)
        except TypeError:  # nothing that can be in it
            continue
        if found is not None:
            return found
    return None


def parameters_of(f: types.FunctionType) -> list[inspect.Parameter] | None:
    """The parameters of a function, if each is one number; None if not."""
    found = list(inspect.signature(f).parameters.values())
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return found if all(p.kind in kinds for p in found) else None


def takes(f: types.FunctionType, n: int) -> bool:
    """May a function be called with `n` numbers?"""
    parameters = parameters_of(f)
    return (
        parameters is not None
        and n <= len(parameters)
        and all(p.default is not p.empty for p in parameters[n:])
    )
