"""The BLAS inside of NumPy: its product of a matrix and a vector, called from C without `np.matmul` between.

The symbol is private to NumPy's module. Where it is missing, or `mb.settings.internals` leaves `blas` out,
products go through `np.matmul`, which calls the same function: the bits are the same, small ones take longer.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
from pathlib import Path

import numpy as np

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


# For libraries that are built ahead of time


class Blas:
    """A BLAS to link with: its library, what its functions of C are called, whether it counts in 64 bits."""

    def __init__(self, library: str, before: str, after: str, wide: bool) -> None:
        self.library = library
        self.before = before
        self.after = after
        self.wide = wide

    def flags(self) -> list[str]:
        """What the sources that call it are compiled with (`linking.WITH_BLAS`)."""
        after = f"##{self.after}" if self.after else ""
        return [
            f"-DRT_BLAS(name)={self.before}cblas_##name{after}",
            f"-DRT_LAPACK(name)={f'{self.before}##' if self.before else ''}name##_{after}",
            f"-DRT_INT={'int64_t' if self.wide else 'int32_t'}",
        ]


def to_link(wanted: str) -> Blas | None:
    """The BLAS that is asked for: "numpy" is the one that NumPy brings, "none" none; else a library's name
    (`openblas` for `-lopenblas`) or path, with the usual names of CBLAS."""
    if wanted == "none":
        return None
    if wanted != "numpy":
        return Blas(wanted, "", "", False)
    folder = Path(np.__file__).parent.parent / "numpy.libs"
    for path in sorted(folder.glob("*openblas*.so*")):
        if "64_" in path.name:
            return Blas(str(path), "scipy_", "64_", True)
    raise RuntimeError(
        "NumPy brings no BLAS of its own here. Say which to link with: `blas='openblas'`, a path, or "
        "`blas='none'` for plain loops."
    )
