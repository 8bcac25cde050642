"""Elementwise operations on dual numbers: the derivative of each, and one rule that uses them.

A derivative is a formula of the operands and the result, written with verbs: a tree, that joins the kernel of
what reads it. `None` stands for zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.duals.base import (
    Dual,
    DualError,
    Seed,
    Term,
    applied,
    apply,
    collected,
    combined,
    outermost,
    product,
    snapshot,
)
from mirabelle.arraytypes.duals.special import digamma
from mirabelle.arraytypes.elementwise import elementwise_rule, leaf_family, specialised_rule
from mirabelle.arraytypes.host import HostArray
from mirabelle.dispatch import verbs
from mirabelle.dispatch.ops import Op


def where(condition: Any, x: Any, y: Any) -> Any:
    return apply("where", condition, x, y)


def _times_log(x: Any, y: Any) -> Any:
    """y log x, which is 0 where x is."""
    zero = apply("equal", x, 0)
    return where(zero, 0.0, y * apply("log", where(zero, 1.0, x)))


def _power(x: Any, n: Any, y: Any) -> Any:
    if type(n) in (int, float):
        return None if n == 0 else n if n == 1 else 2 * x if n == 2 else n * x ** (n - 1)
    # (0 ** -1 is infinite, and has the factor 0.)
    return where(apply("equal", n, 0), 0.0, n * apply("pow", x, where(apply("equal", n, 0), 1.0, n - 1)))


def _number(value: float, like: Any) -> Any:
    """A number of the dtype of `like`: a choice between Python's numbers would be one of double precision."""
    dtype = getattr(like, "dtype", None)
    return value if dtype is None else dtype.type(value)


def _larger(x: Any, other: Any, y: Any) -> Any:
    """How much of a maximum follows x: nothing, all, or, of equals, a half."""
    one, half, zero = (_number(v, y) for v in (1.0, 0.5, 0.0))
    return where(apply("greater", x, other), one, where(apply("equal", x, other), half, zero))


def _smaller(x: Any, other: Any, y: Any) -> Any:
    return _larger(other, x, y)


def _chosen(x: Any, other: Any, y: Any) -> Any:
    """The same of fmax and fmin, which choose what is no NaN."""
    one, half, zero = (_number(v, y) for v in (1.0, 0.5, 0.0))
    return where(apply("equal", x, y), where(apply("equal", x, other), half, one), zero)


def _same_sign(x: Any, other: Any, y: Any) -> Any:
    same = apply("equal", apply("signbit", x), apply("signbit", other))
    return where(same, _number(1.0, y), _number(-1.0, y))


_LN2, _LN10, _SQRTPI = math.log(2), math.log(10), math.sqrt(math.pi)

# name: the derivatives by each operand, functions of (operands..., result); 1 may stand for a function.
DERIVATIVES: dict[str, tuple[Any, ...]] = {
    "positive": (1,),
    "copy": (1,),
    "cast": (1,),
    "negative": (-1,),
    "abs": (lambda x, y: apply("sign", x),),
    "sqrt": (lambda x, y: 0.5 / y,),
    "cbrt": (lambda x, y: 1 / (3 * y * y),),
    "square": (lambda x, y: 2 * x,),
    "reciprocal": (lambda x, y: -(y * y),),
    "exp": (lambda x, y: y,),
    "exp2": (lambda x, y: _LN2 * y,),
    "expm1": (lambda x, y: y + 1,),
    "log": (lambda x, y: 1 / x,),
    "log2": (lambda x, y: (1 / _LN2) / x,),
    "log10": (lambda x, y: (1 / _LN10) / x,),
    "log1p": (lambda x, y: 1 / (1 + x),),
    "sin": (lambda x, y: apply("cos", x),),
    "cos": (lambda x, y: -apply("sin", x),),
    "tan": (lambda x, y: 1 + y * y,),
    "asin": (lambda x, y: 1 / apply("sqrt", 1 - x * x),),
    "acos": (lambda x, y: -1 / apply("sqrt", 1 - x * x),),
    "atan": (lambda x, y: 1 / (1 + x * x),),
    "sinh": (lambda x, y: apply("cosh", x),),
    "cosh": (lambda x, y: apply("sinh", x),),
    "tanh": (lambda x, y: 1 - y * y,),
    "asinh": (lambda x, y: 1 / apply("hypot", x, 1.0),),
    "acosh": (lambda x, y: 1 / (apply("sqrt", x - 1) * apply("sqrt", x + 1)),),
    "atanh": (lambda x, y: 1 / ((1 - x) * (1 + x)),),
    "sinpi": (lambda x, y: math.pi * apply("cospi", x),),
    "cospi": (lambda x, y: -math.pi * apply("sinpi", x),),
    "erf": (lambda x, y: (2 / _SQRTPI) * apply("exp", -(x * x)),),
    "erfc": (lambda x, y: (-2 / _SQRTPI) * apply("exp", -(x * x)),),
    "gamma": (lambda x, y: y * digamma(x),),
    "lgamma": (lambda x, y: digamma(x),),
    "deg2rad": (math.pi / 180,),
    "rad2deg": (180 / math.pi,),
    "add": (1, 1),
    "subtract": (1, -1),
    "multiply": (lambda a, b, y: b, lambda a, b, y: a),
    "divide": (lambda a, b, y: 1 / b, lambda a, b, y: -y / b),
    "pow": (_power, lambda a, b, y: _times_log(a, y)),
    "remainder": (1, lambda a, b, y: -apply("floor_divide", a, b)),
    "fmod": (1, lambda a, b, y: -apply("trunc", a / b)),
    "maximum": (_larger, lambda a, b, y: _larger(b, a, y)),
    "minimum": (_smaller, lambda a, b, y: _smaller(b, a, y)),
    "fmax": (_chosen, lambda a, b, y: _chosen(b, a, y)),
    "fmin": (_chosen, lambda a, b, y: _chosen(b, a, y)),
    "atan2": (lambda a, b, y: b / (a * a + b * b), lambda a, b, y: -a / (a * a + b * b)),
    "hypot": (lambda a, b, y: a / y, lambda a, b, y: b / y),
    "copysign": (_same_sign, None),
    "nextafter": (1, None),
    "logaddexp": (lambda a, b, y: apply("exp", a - y), lambda a, b, y: apply("exp", b - y)),
    "logaddexp2": (lambda a, b, y: apply("exp2", a - y), lambda a, b, y: apply("exp2", b - y)),
    "ldexp": (lambda a, b, y: apply("ldexp", _number(1.0, y), b), None),
    "fma": (lambda a, b, c, y: b, lambda a, b, c, y: a, 1),
    "complex": (1, 1j),
}
# Their results change in steps, or are no real numbers: they are constants.
CONSTANT = {
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or",
    "logical_xor", "logical_not", "isnan", "isinf", "isfinite", "signbit", "floor", "ceil", "trunc", "round",
    "sign", "floor_divide", "heaviside", "spacing",
}  # fmt: skip
# What becomes of the partials of a complex operand: (operand, result, partials) → partials.
_COMPLEX: dict[str, Callable[..., Any]] = {
    "conj": lambda x, y, p: verbs.conj(p),
    "real": lambda x, y, p: verbs.real(p),
    "imag": lambda x, y, p: verbs.imag(p),
    "abs": lambda x, y, p: verbs.real(verbs.multiply(verbs.conj(x), p)) / y,
}


def elementwise(op: Op, operands: tuple[Any, ...]) -> Any:
    """The result of an operation with a dual operand: the one rule."""
    # (A NumPy array becomes a factor of partials, and those are arrays of ours, or numbers.)
    operands = tuple([as_array(x) if isinstance(x, np.ndarray) else x for x in operands])
    top = outermost(operands)
    assert top is not None
    if not issubclass(leaf_family(type(top)), HostArray):
        operands = tuple([_by_value(x) for x in operands])
    tag = top._tag
    values = tuple([x._value if isinstance(x, Dual) and x._tag is tag else x for x in operands])
    name = op.name
    if op.nout > 1:
        return _of_several(op, operands)
    y = applied(op, values)
    if name in CONSTANT:
        return y
    if name == "where":
        return _where(top, operands, values, y)
    if name in _COMPLEX:
        if isinstance(values[0], complex) or getattr(values[0], "dtype", np.dtype(float)).kind == "c":
            p = _COMPLEX[name](values[0], y, combined(top, top._now()))
            return top._with(y, ((None, p),))
        if name == "imag":
            return y
    derivatives = (1,) if name in ("conj", "real") else DERIVATIVES.get(name)
    if derivatives is None:
        raise _no_derivative(op)
    if name == "cast" and getattr(y, "dtype", np.dtype(float)).kind not in "fc":
        return y
    terms: list[Term] = []
    for x, d in zip(operands, derivatives, strict=True):
        if isinstance(x, Dual) and x._tag is tag and d is not None:
            extend(terms, x, d if not callable(d) else d(*values, y), (*values, y))
    return collected(top, y, terms)


def _by_value(x: Any) -> Any:
    """One number of the host joins a kernel anywhere, by value; as a factor of partials it has to be one, too:
    it is stretched over elements there."""
    return verbs.numpy_view(x)[()] if isinstance(x, HostArray) and not x.ndim else x


def extend(terms: list[Term], x: Any, factor: Any, handles: tuple[Any, ...]) -> None:
    """Add `factor` times the terms of an operand; `handles` are arrays that users may write to."""
    if factor is None:
        return
    one = type(factor) is int and factor == 1
    if any(factor is v for v in handles):
        factor = snapshot(factor)
    for c, base in x._now():
        terms.append((c if one else factor if c is None else factor * c, base))


def _where(top: Any, operands: tuple[Any, ...], values: tuple[Any, ...], y: Any) -> Any:
    """Selecting: of an operand that is not selected, also infinite derivatives do not come through."""
    condition = values[0]
    terms: list[Term] = []
    ndim = len(y.shape) if isinstance(y, AbstractArray) else 0
    for i, x in enumerate(operands[1:]):
        if isinstance(x, Dual) and x._tag is top._tag:
            for c, base in x._now():
                if isinstance(base, Seed):
                    kept = 1.0 if c is None else c
                    terms.append((where(condition, kept, 0.0) if i == 0 else where(condition, 0.0, kept), base))
                else:
                    p = product((c, base), ndim, x._value)
                    terms.append((None, where(condition, p, 0.0) if i == 0 else where(condition, 0.0, p)))
    return collected(top, y, terms)


def _of_several(op: Op, operands: tuple[Any, ...]) -> Any:
    """divmod, modf, frexp."""
    x = operands[0]
    if op.name == "divmod":
        return verbs.floor_divide(*operands), verbs.remainder(*operands)
    if op.name == "modf":
        whole = verbs.trunc(x)
        return verbs.subtract(x, whole), whole
    if op.name == "frexp":
        top = outermost(operands)
        assert top is not None
        exponent = verbs.frexp(top._value)[1]
        return verbs.ldexp(x, verbs.negative(exponent)), exponent
    raise _no_derivative(op)


def _no_derivative(op: Op) -> DualError:
    return DualError(
        f"mb.{op.name} has no derivative: it is one of integers, or nobody gave it one. Give it one with "
        f"`@mb.autodiff.rule(mb.{op.name})`, or hold its operand constant: `mb.autodiff.value(x)`."
    )


# What remains to be done in a call of known types: for small arrays that is what costs.


def specialised(kind: Any, op: Op, types: tuple[type, ...]) -> Callable[..., Any] | None:
    """The rule for arguments of these types, if it is a short one; it asks the general rule where it is not."""
    name, verb = op.name, verbs.ELEMENTWISE.get(op.name)
    if verb is None or op.nout > 1 or name == "where" or len(types) > 2:
        return None
    duals = [issubclass(t, Dual) for t in types]
    first: Any = types[duals.index(True)]
    if (
        not hasattr(first, "dtype")
        or first.dtype.kind != "f"
        or not issubclass(first.parameters[0], DenseArray)
    ):
        return None
    if any(d and t is not first for d, t in zip(duals, types, strict=True) if d):
        return None
    family = leaf_family(first)
    if not all(
        d or issubclass(t, (int, float)) or (issubclass(t, DenseArray) and t.family is family)
        for d, t in zip(duals, types, strict=True)
    ):
        return None
    constant = name in CONSTANT
    derivatives = DERIVATIVES.get(name) if name not in ("conj", "real") else (1,)
    if derivatives is None and not constant:
        return None
    if len(types) == 1:
        return _of_one(op, verb, None if constant else derivatives)
    return _of_two(op, verb, None if constant else derivatives, duals)


def _of_one(op: Op, verb: Any, derivatives: Any) -> Callable[..., Any]:
    d: Any = None if derivatives is None else derivatives[0]

    def rule(x: Any) -> Any:
        if x._source is not None or x._owns or not x._tag.open:
            return elementwise(op, (x,))
        v = x._value
        y = verb(v)
        if d is None:
            return y
        factor = d(v, y) if type(d) is _FUNCTION else d
        return Dual._of(y, _scaled(x._terms, factor, v, v, y), x._n, x._tag)

    return rule


def _of_two(op: Op, verb: Any, derivatives: Any, duals: list[bool]) -> Callable[..., Any]:
    d1: Any
    d2: Any
    d1, d2 = derivatives or (None, None)
    constant = derivatives is None
    both = all(duals)
    left = duals[0]

    def rule(x1: Any, x2: Any) -> Any:
        x = x1 if left else x2
        if x._source is not None or x._owns or not x._tag.open:
            return elementwise(op, (x1, x2))
        if both:
            if x2._tag is not x._tag or x2._n != x._n or x2._source is not None or x2._owns:
                return elementwise(op, (x1, x2))
            a, b = x1._value, x2._value
        elif left:
            a, b = x1._value, x2
        else:
            a, b = x1, x2._value
        y = verb(a, b)
        if constant:
            return y
        if not both:
            d = d1 if left else d2
            if d is None:
                return y
            factor = d(a, b, y) if type(d) is _FUNCTION else d
            if factor is None:
                return y
            return Dual._of(y, _scaled(x._terms, factor, a, b, y), x._n, x._tag)
        terms: list[Term] = []
        for operand, d in ((x1, d1), (x2, d2)):
            factor = d(a, b, y) if type(d) is _FUNCTION else d
            if factor is not None:
                terms += _scaled(operand._terms, factor, a, b, y)
        return collected(x, y, terms)

    return rule


_FUNCTION: Any = type(_power)


def _scaled(terms: tuple[Term, ...], factor: Any, a: Any, b: Any, y: Any) -> tuple[Term, ...]:
    """A factor times terms."""
    if type(factor) is int and factor == 1:
        return terms
    if factor is a or factor is b or factor is y:
        factor = snapshot(factor)
    if len(terms) == 1:
        c, base = terms[0]
        return ((factor if c is None else factor * c, base),)
    return tuple([(factor if c is None else factor * c, base) for c, base in terms])


@elementwise_rule.method
def _(kind: type[Dual]) -> Any:
    return elementwise


specialised_rule.method(specialised, signature=(Dual,))
