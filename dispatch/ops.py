"""The operations of broadcast trees: what NumPy calls them, what they cost, how they type.

An operation is one of three kinds. Those with a NumPy ufunc take their dtypes and values from
it. Those with a scalar function (`erf`, a user's function) are compiled from it. The few
others (`where`, casts) are spelled out by the backends.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

_ids = itertools.count()
# Called when operations of users' functions were forgotten: who keeps things by operation drops what is theirs.
forgetting: list[Callable[[], None]] = []


class Op:
    """One elementwise operation.

    `cost` is about how many additions one evaluation takes; from it follows what is stored,
    hoisted or recomputed. Only a `pure` operation may be hoisted.
    """

    __slots__ = ("cost", "forgotten", "id", "name", "nin", "nout", "pure", "scalar", "ufunc")

    def __init__(
        self,
        name: str,
        nin: int,
        *,
        nout: int = 1,
        ufunc: np.ufunc | None = None,
        scalar: Callable[..., Any] | None = None,
        cost: int = 1,
        pure: bool = True,
    ) -> None:
        self.name = name
        self.nin = nin
        self.nout = nout
        self.ufunc = ufunc
        self.scalar = scalar
        self.cost = cost
        self.pure = pure
        self.id = next(_ids)
        # Was it one of a user's function, and is nothing kept for it any more?
        self.forgotten = False

    def returned(self, dtypes: tuple[np.dtype, ...]) -> tuple[np.dtype, ...]:
        """The dtypes of results where nothing but the function itself says them."""
        raise TypeError(f"{self.name} does not say the dtypes of its results.")

    def of_numbers(self, *values: Any) -> Any:
        """The result for numbers, in NumPy's or Python's types; a tuple where there are several."""
        with np.errstate(all="ignore"):
            if self.ufunc is not None:
                return self.ufunc(*values)
            if self.name == "where":
                return values[1] if values[0] else values[2]
            if self.name == "fma":
                return values[0] * values[1] + values[2]
            if self.name in ("copy", "cast", "materialize"):
                return values[0]
            if self.name in ("real", "imag"):
                return getattr(values[0], self.name)
            if self.scalar is None:
                raise TypeError(f"{self.name} has no result for numbers.")
            return self.scalar(*values)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        if TABLE.get(self.name) is self:
            return (_named, (self.name,))
        raise TypeError(f"The operation {self.name} is local to this process and does not pickle.")


def _named(name: str) -> Op:
    return TABLE[name]


TABLE: dict[str, Op] = {}

# name: (NumPy's name, cost)
_UNARY = {
    "negative": ("negative", 1), "positive": ("positive", 1), "abs": ("absolute", 1),
    "sign": ("sign", 2), "sqrt": ("sqrt", 5), "cbrt": ("cbrt", 40), "square": ("square", 1),
    "reciprocal": ("reciprocal", 4), "exp": ("exp", 20), "exp2": ("exp2", 20),
    "expm1": ("expm1", 24), "log": ("log", 20), "log2": ("log2", 20), "log10": ("log10", 20),
    "log1p": ("log1p", 24), "sin": ("sin", 24), "cos": ("cos", 24), "tan": ("tan", 32),
    "asin": ("arcsin", 28), "acos": ("arccos", 28), "atan": ("arctan", 28),
    "sinh": ("sinh", 28), "cosh": ("cosh", 28), "tanh": ("tanh", 28), "asinh": ("arcsinh", 32),
    "acosh": ("arccosh", 32), "atanh": ("arctanh", 32), "floor": ("floor", 1),
    "ceil": ("ceil", 1), "trunc": ("trunc", 1), "round": ("rint", 1), "isnan": ("isnan", 1),
    "isinf": ("isinf", 1), "isfinite": ("isfinite", 1), "signbit": ("signbit", 1),
    "conj": ("conjugate", 1), "logical_not": ("logical_not", 1),
    "bitwise_invert": ("invert", 1), "deg2rad": ("deg2rad", 1), "rad2deg": ("rad2deg", 1),
    "spacing": ("spacing", 4), "bitwise_count": ("bitwise_count", 2),
}  # fmt: skip
_BINARY = {
    "add": ("add", 1), "subtract": ("subtract", 1), "multiply": ("multiply", 1),
    "divide": ("divide", 4), "floor_divide": ("floor_divide", 8), "remainder": ("remainder", 8),
    "fmod": ("fmod", 20), "pow": ("power", 48), "maximum": ("maximum", 1),
    "minimum": ("minimum", 1), "fmax": ("fmax", 1), "fmin": ("fmin", 1),
    "atan2": ("arctan2", 36), "hypot": ("hypot", 20), "copysign": ("copysign", 1),
    "nextafter": ("nextafter", 4), "logaddexp": ("logaddexp", 48),
    "logaddexp2": ("logaddexp2", 48), "heaviside": ("heaviside", 2), "gcd": ("gcd", 40),
    "lcm": ("lcm", 48), "ldexp": ("ldexp", 6), "equal": ("equal", 1),
    "not_equal": ("not_equal", 1), "less": ("less", 1), "less_equal": ("less_equal", 1),
    "greater": ("greater", 1), "greater_equal": ("greater_equal", 1),
    "logical_and": ("logical_and", 1), "logical_or": ("logical_or", 1),
    "logical_xor": ("logical_xor", 1), "bitwise_and": ("bitwise_and", 1),
    "bitwise_or": ("bitwise_or", 1), "bitwise_xor": ("bitwise_xor", 1),
    "bitwise_left_shift": ("left_shift", 1), "bitwise_right_shift": ("right_shift", 1),
}  # fmt: skip
_SEVERAL = {"divmod": ("divmod", 2, 2, 10), "modf": ("modf", 1, 2, 4), "frexp": ("frexp", 1, 2, 4)}


def sinpi(x: float) -> float:
    """sin(πx), exact at multiples of one half."""
    r = math.fabs(x) % 2.0
    if r <= 0.25:
        v = math.sin(math.pi * r)
    elif r <= 0.75:
        v = math.cos(math.pi * (0.5 - r))
    elif r <= 1.25:
        v = math.sin(math.pi * (1.0 - r))
    elif r <= 1.75:
        v = -math.cos(math.pi * (1.5 - r))
    else:
        v = math.sin(math.pi * (r - 2.0))
    return v if x >= 0 else -v


def cospi(x: float) -> float:
    """cos(πx), exact at multiples of one half."""
    r = math.fabs(x) % 2.0
    if r <= 0.25:
        return math.cos(math.pi * r)
    if r <= 0.75:
        return math.sin(math.pi * (0.5 - r))
    if r <= 1.25:
        return -math.cos(math.pi * (1.0 - r))
    if r <= 1.75:
        return math.sin(math.pi * (r - 1.5))
    return math.cos(math.pi * (2.0 - r))


def _make() -> None:
    for name, (numpy_name, cost) in _UNARY.items():
        TABLE[name] = Op(name, 1, ufunc=getattr(np, numpy_name), cost=cost)
    for name, (numpy_name, cost) in _BINARY.items():
        TABLE[name] = Op(name, 2, ufunc=getattr(np, numpy_name), cost=cost)
    for name, (numpy_name, nin, nout, cost) in _SEVERAL.items():
        TABLE[name] = Op(name, nin, nout=nout, ufunc=getattr(np, numpy_name), cost=cost)
    for name, scalar in {
        "erf": math.erf, "erfc": math.erfc, "gamma": math.gamma, "lgamma": math.lgamma,
        "sinpi": sinpi, "cospi": cospi,
    }.items():  # fmt: skip
        TABLE[name] = Op(name, 1, scalar=scalar, cost=60)
    TABLE["fma"] = Op("fma", 3, cost=2)
    TABLE["where"] = Op("where", 3, cost=1)
    TABLE["cast"] = Op("cast", 1, cost=1)
    TABLE["copy"] = Op("copy", 1, cost=0)
    # In programs: a value that its author wants in memory. (Not pure: nothing moves through it.)
    TABLE["materialize"] = Op("materialize", 1, cost=0, pure=False)
    TABLE["real"] = Op("real", 1, cost=0)
    TABLE["imag"] = Op("imag", 1, cost=0)
    # (real part, imaginary part)
    TABLE["complex"] = Op("complex", 2, cost=1)
    # (memory, how many elements further on): found by the index arrays of x[index].
    TABLE["gather"] = Op("gather", 2, cost=8)
    # (memory, its address): how many bytes further on an element lies. The memory is never read.
    TABLE["place"] = Op("place", 2, cost=1)
    for i in range(8):
        # The i-th result of an operation with several.
        TABLE[f"pick{i}"] = Op(f"pick{i}", 1, cost=0)


_make()

# The names of reductions, which have a table of their own.
_REDUCED = {"sum", "prod", "min", "max", "any", "all"}


def foreign_name(name: str) -> str:
    """The name of an operation that is somebody else's function: none that says what one of ours does.

    >>> foreign_name("smooth"), foreign_name("copy")
    ('smooth', 'user_copy')
    """
    ours = name in TABLE or name in _REDUCED or name.startswith("pick")
    return f"user_{name}" if ours else name
