"""autoray: `autoray.do("array", values, like=x)` and its like make arrays where `x` is.

autoray finds all other functions in the module that the arrays' class names.

>>> import mirabelle as mb, autoray
>>> x = mb.RefArray([1.0, 2.0])
>>> autoray.do("zeros", 2, like=x).place, autoray.do("array", [1, 2], like=x).place
(ref:0, ref:0)
>>> autoray.do("random.normal", size=3, like="mirabelle").shape
(3,)
"""

from __future__ import annotations

import functools
from typing import Any

import autoray

from mirabelle.dispatch import verbs

register_function: Any = autoray.register_function

# Made in the dtype of `like` too, as autoray does for every library, or by what is given.
for _name in ("empty", "eye", "full", "identity", "ones", "zeros"):
    register_function("mirabelle", _name, inject_dtype=True, inject_device=True)
for _name in ("array", "asarray", "random.default_rng"):
    register_function("mirabelle", _name, inject_dtype=False, inject_device=True)


@register_function("mirabelle", "to_device")
def to_device(x: Any, device: Any) -> Any:
    return x.to_device(device)


@register_function("mirabelle", "to_numpy")
def to_numpy(x: Any) -> Any:
    # Who says so in words wants the transfer, which `np.asarray` would refuse.
    return verbs.to_numpy(x)


@register_function("mirabelle", "complex")
def complex_(real: Any, imag: Any) -> Any:
    return real + 1j * imag


@functools.cache
def _shared(device: Any) -> Any:
    """The generator behind functions that name none: NumPy has such a state, mirabelle does not."""
    import mirabelle

    return mirabelle.random.default_rng(device=device)


def _drawn(method: str, a: Any, b: Any, size: Any, dtype: Any, device: Any) -> Any:
    x = getattr(_shared(device), method)(a, b, size)
    return x if dtype is None else x.astype(dtype)


@register_function("mirabelle", "random.normal")
def normal(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, *, dtype: Any = None, device: Any = None) -> Any:
    return _drawn("normal", loc, scale, size, dtype, device)


@register_function("mirabelle", "random.uniform")
def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None, *, dtype: Any = None, device: Any = None) -> Any:
    return _drawn("uniform", low, high, size, dtype, device)
