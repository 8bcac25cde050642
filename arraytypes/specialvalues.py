"""Where NumPy's loops miss the array API standard's special values, and what is done about it.

Such a function is NumPy's, mended where an operand is infinite or NaN: a few more nodes of the same
kernel. All its other values are NumPy's to the last bit.

>>> import mirabelle as mb
>>> print(mb.floor_divide(mb.HostArray([mb.inf, 1.0]), mb.HostArray([2.0, -mb.inf])))
[inf -0.]
>>> print(mb.round(mb.HostArray([1, 2])).dtype)
int64
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.elementwise import (
    Operand,
    argument_type,
    build_node,
    elementwise_method,
    elementwise_rule,
    power_method,
)
from mirabelle.dispatch import verbs
from mirabelle.dispatch.ops import TABLE


def from_parts(real: Any, imag: Any) -> Any:
    """The complex numbers of these parts; infinities, NaN and the signs of zeros stay what they are.

    >>> import mirabelle as mb
    >>> print(from_parts(mb.HostArray([mb.inf]), -0.0))
    [inf-0.j]
    """
    return build_node(TABLE["complex"], (real, imag))


def _kind(t: type) -> str:
    """The letter of the dtype of an operand of type `t`; "?" where its value decides."""
    if issubclass(t, AbstractArray):
        return str(t.dtype.kind) if hasattr(t, "dtype") else "?"
    dtype = argument_type(t)
    return "?" if dtype is None else np.dtype(dtype).kind


def _mended(name: str, kinds: str, mend: Callable[..., Any], plain: Any = None, unless: Any = ()) -> None:
    """Give an elementwise function a method that mends results of these kinds of dtypes.

    `mend(result, *operands)` builds on NumPy's result, which the generated method `plain` makes. It is
    left alone where the last operand is one of the types `unless`.
    """
    verb, plain = verbs.ELEMENTWISE[name], plain or elementwise_method(TABLE[name])

    def generated(*types: type) -> Any:
        build = plain(*types)
        if (
            build is NotImplemented
            or any(elementwise_rule(t) is not None for t in types)
            or not {"?", *kinds} & set(map(_kind, types))
            or issubclass(types[-1], unless)
        ):
            return build

        def function(*operands: Any) -> Any:
            result = build(*operands)
            return mend(result, *operands) if result.dtype.kind in kinds else result

        return function

    verb.generated(generated, signature=(Operand,) * TABLE[name].nin)


def _floor_divide(quotient: Any, x1: Any, x2: Any) -> Any:
    """Python pairs // with %, and has no answer at infinity; the standard's is floor(x1 / x2)."""
    infinite = [verbs.isinf(x) for x in (x1, x2) if not _finite_number(x)]
    if not infinite:
        return quotient
    at_infinity = infinite[0] if len(infinite) == 1 else verbs.logical_or(*infinite)
    return verbs.where(at_infinity, verbs.divide(x1, x2), quotient)


def _finite_number(x: Any) -> bool:
    return isinstance(x, (int, float)) and math.isfinite(x)


def _expm1(y: Any, z: Any) -> Any:
    """NumPy multiplies infinities by zeros: exact where z is real, and where its real part is infinite."""
    a, b = verbs.real(z), verbs.imag(z)
    on_axis = from_parts(verbs.add(verbs.expm1(a), 0.0), b)
    to_the_left = from_parts(-1.0, verbs.copysign(0.0, verbs.sin(b)))
    lost = verbs.logical_and(verbs.equal(a, math.inf), verbs.logical_not(verbs.isfinite(b)))
    y = verbs.where(lost, _number(y, complex(math.inf, math.nan)), y)
    y = verbs.where(verbs.equal(a, -math.inf), to_the_left, y)
    return verbs.where(verbs.equal(b, 0.0), on_axis, y)


def _pow(power: Any, x1: Any, x2: Any) -> Any:
    """Where one exponent of 0.5 is for several elements, NumPy takes square roots.

    (For a literal 0.5 they are what is meant: it is left alone.)
    """
    if isinstance(x2, DenseArray) and x2.ndim and x2.shape == power.shape:
        return power  # each element has its own
    root = verbs.where(verbs.equal(x1, -math.inf), math.inf, verbs.add(power, 0.0))
    return verbs.where(verbs.equal(x2, 0.5), root, power)


def _number(like: Any, value: complex) -> Any:
    """A complex number of the precision of `like`."""
    return like.dtype.type(value)


def _tanh(y: Any, z: Any) -> Any:
    """At infinity the imaginary part has the sign of z's, not that of sin(2 imag(z))."""
    a, b = verbs.real(z), verbs.imag(z)
    far = verbs.logical_and(verbs.isinf(a), verbs.isfinite(b))
    return verbs.where(far, from_parts(verbs.sign(a), verbs.copysign(0.0, b)), y)


def _tan(y: Any, z: Any) -> Any:
    """tan(z) = -i tanh(iz)."""
    a, b = verbs.real(z), verbs.imag(z)
    far = verbs.logical_and(verbs.isinf(b), verbs.isfinite(a))
    return verbs.where(far, from_parts(verbs.copysign(0.0, a), verbs.sign(b)), y)


def _sign(y: Any, z: Any) -> Any:
    """One part that is NaN makes the sign NaN, also beside an infinite one."""
    return verbs.where(verbs.isnan(z), _number(y, complex(math.nan, math.nan)), y)


_mended("floor_divide", "f", _floor_divide)
_mended("pow", "f", _pow, power_method, unless=(int, float, np.number))
_mended("expm1", "c", _expm1)
_mended("tanh", "c", _tanh)
_mended("tan", "c", _tan)
_mended("sign", "c", _sign)


_rint = elementwise_method(TABLE["round"])


@verbs.round.generated(signature=(Operand,))
def _(t: type) -> Any:
    """Integers are round already; NumPy's rint would make floats of them."""
    if issubclass(t, AbstractArray) and hasattr(t, "dtype"):
        return verbs.positive if t.dtype.kind in "iu" else _rint(t)
    if issubclass(t, (AbstractArray, np.ndarray)):
        rint = _rint(t)
        return lambda x: verbs.positive(x) if x.dtype.kind in "iu" else rint(x)
    return _rint(t)
