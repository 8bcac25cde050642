"""The BLAS inside of NumPy: its product of a matrix and a vector, called from C without `np.matmul` between.

The symbol is private to NumPy's module. Where it is missing, or `mb.settings.internals` leaves `blas` out,
products go through `np.matmul`, which calls the same function: the bits are the same, small ones take longer.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib

from mirabelle.dispatch import internals, native

# (A name that ends so counts in 64 bits; of others one cannot tell.)
_NAMES = ("scipy_cblas_dgemv64_", "cblas_dgemv64_")


def gemv() -> int:
    """The address of the product of a matrix and a vector of doubles; 0 where there is none to call."""
    if internals.used("blas"):
        with contextlib.suppress(ImportError, AttributeError, OSError):
            numpys = ctypes.CDLL(importlib.import_module("numpy._core._multiarray_umath").__file__)
            for name in _NAMES:
                if hasattr(numpys, name):
                    return ctypes.cast(getattr(numpys, name), ctypes.c_void_p).value or 0
    return 0


@functools.cache
def tell() -> None:
    """Say where it is to what calls it."""
    native.tell(gemv=gemv())
