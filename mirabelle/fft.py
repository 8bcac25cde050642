"""Fourier transforms: the array API standard's `fft`, and what NumPy and SciPy have beyond it.

>>> import mirabelle as mb
>>> x = mb.HostArray([1.0, 2.0, 3.0, 4.0])
>>> print(mb.real(mb.fft.ifft(mb.fft.fft(x))))
[1. 2. 3. 4.]
"""

from mirabelle.dispatch import loading as _loading
from mirabelle.dispatch.loading import public_names as _public_names

with _loading.lock:  # (before the locks of the modules)
    from mirabelle.arraytypes.functions.cosines import dct, dst, idct, idst
    from mirabelle.arraytypes.functions.fourier import (
        fft,
        fft2,
        fftfreq,
        fftn,
        fftshift,
        hfft,
        ifft,
        ifft2,
        ifftn,
        ifftshift,
        ihfft,
        irfft,
        irfft2,
        irfftn,
        rfft,
        rfft2,
        rfftfreq,
        rfftn,
    )

_loading.arrays_come(__name__)
__all__ = _public_names(__name__)  # pyright: ignore[reportUnsupportedDunderAll]
