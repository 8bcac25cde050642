"""NumPy as users' scalar functions know it, for compilers of graphics cards.

Numba's compilers for cards know `math.*`, and of NumPy little. A user's function that calls
`np.floor(x)` finds this module in the place of NumPy: types and constants are NumPy's, functions
are those of `operations`.
"""

from __future__ import annotations

import functools
import math
import types
from typing import Any

import numpy as np

from mirabelle.dispatch.ops import TABLE

_MATH = {
    "sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "expm1", "log", "log10", "log1p", "log2", "sqrt",
    "fabs", "isnan", "isinf", "isfinite", "copysign", "hypot", "fmod", "degrees", "radians",
}  # fmt: skip
_RENAMED = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh",
    "arccosh": "acosh", "arctanh": "atanh",
}  # fmt: skip
_BUILTIN = {"abs": abs, "absolute": abs, "power": pow}
_BY_NUMPY = {op.ufunc.__name__: name for name, op in TABLE.items() if op.ufunc is not None}


class _NumPy(types.ModuleType):
    """NumPy's names, each as what compiles."""

    def __getattr__(self, name: str) -> Any:
        if name in _MATH:
            return getattr(math, name)
        if name in _RENAMED:
            return getattr(math, _RENAMED[name])
        if name in _BUILTIN:
            return _BUILTIN[name]
        value = getattr(np, name)
        if isinstance(value, np.ufunc) and name in _BY_NUMPY:
            from mirabelle.backends.gpu import operations
            from mirabelle.backends.gpu.compiler import device_function

            # Of doubles, whatever comes: a scalar function's result is cast to what it is stored as.
            return device_function(operations.scalar_function(_BY_NUMPY[name], "f8"))
        return value


@functools.cache
def device_numpy() -> Any:
    """The module that stands for NumPy."""
    return _NumPy("numpy")
