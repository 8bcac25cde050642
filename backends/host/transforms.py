"""Fourier transforms of the host: NumPy's, and SciPy's for large arrays, where it is installed.

SciPy's come from the same algorithms (pocketfft), use threads, and compute the transform of a
real array from half of it. So the last bits of a large transform depend on whether SciPy is there.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.host import HostArray
from mirabelle.dispatch.settings import settings

# From this many elements on, the import of SciPy and the hand-over are worth it.
LARGE = 1 << 15


@functools.cache
def _scipy_fft() -> Any:
    try:
        import scipy.fft
    except ImportError:
        return None
    return scipy.fft


def _transform(name: str) -> None:
    plain = getattr(np.fft, name, None)

    def run(x: np.ndarray, **options: Any) -> Any:
        found = _scipy_fft() if plain is None or x.size >= LARGE else None
        if found is not None:
            if x.dtype.kind == "b":
                x = x.astype(np.float64)
            return getattr(found, name)(x, workers=settings.num_threads, **options)
        if plain is None:
            raise ImportError(f"mb.fft.{name} is SciPy's, and SciPy is not installed: `pip install scipy`.")
        return plain(x, **options)

    run.__name__ = name
    library.routine(HostArray, f"fft.{name}")(run)


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "ifftn", "rfftn", "irfftn"):
    _transform(_name)
for _name in ("dct", "idct", "dst", "idst"):
    _transform(_name)
