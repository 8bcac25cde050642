"""Free-threaded builds of Python: what is known of them, said once, when the package is imported."""

from __future__ import annotations

import sys
import warnings

KNOWN = (
    "mirabelle is not made for free-threaded builds of Python, and was not tried on one: its part in C counts "
    "who keeps an array's memory, and relies on the interpreter's lock for it. Python turns the lock on when "
    "mirabelle is imported; with PYTHON_GIL=0 it stays off, and two threads with the same array may read wrong "
    "values. Use an ordinary build (python3.13, not python3.13t): kernels run on all cores there, too."
)


def warn_of_free_threads(flags: str | None = None) -> None:
    """Warn where the interpreter was built without its lock: `flags` are those of its binary interface.

    >>> warn_of_free_threads("")
    """
    if "t" in (getattr(sys, "abiflags", "") if flags is None else flags):
        warnings.warn(KNOWN, RuntimeWarning, stacklevel=2)
