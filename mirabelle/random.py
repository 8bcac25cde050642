"""Random numbers: `mb.random.default_rng(seed)` is a generator with the methods of NumPy's.

The same seed gives the same numbers on any type of array, with any number of threads, however the
array is divided. There is no global generator: make one, and hand it on.

>>> import mirabelle as mb
>>> rng = mb.random.default_rng(42)
>>> x = rng.normal(10.0, 2.0, size=1000)
>>> bool(abs(mb.mean(x) - 10) < 0.3)
True
"""

import typing as _typing

from mirabelle.dispatch import loading as _loading

with _loading.lock:  # (before the locks of the modules)
    from mirabelle.arraytypes.advice import missing_random as _missing
    from mirabelle.arraytypes.random import Generator, Philox, default_rng

__all__ = ["Generator", "Philox", "default_rng"]

if not _typing.TYPE_CHECKING:

    def __getattr__(name):
        raise _missing(name)
