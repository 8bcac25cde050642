"""The ROCm backend: ROCArray's driver, through CuPy's build for ROCm, or a simulated card.

Kernels, plans and routines are those of `backends.gpu`; numba-hip compiles the same sources. What is here
has not run on AMD hardware.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import Any

from mirabelle.arraytypes.gpu import ROCArray
from mirabelle.dispatch.settings import settings


@functools.cache
def _driver(index: int, simulated: bool) -> Any:
    if simulated:
        from mirabelle.backends.hip.simulator import SimulatedHipDriver

        return SimulatedHipDriver(index)
    from mirabelle.backends.hip.driver import HipDriver

    return HipDriver(index)


_making = threading.Lock()


def _driver_of(cls: Any) -> Any:
    family = cls.family
    made = family.__dict__.get("_made_driver")
    if made is None:
        with _making:  # (threads that begin at once have one driver, and one memory)
            made = family.__dict__.get("_made_driver")
            if made is None:
                made = family._made_driver = _driver(family.home.index, settings.hip == "simulated")
    return made


@functools.cache
def _count_cards() -> int:
    """The cards that ROCm shows, without starting CuPy."""
    import importlib.metadata  # (it brings a mail parser)

    try:
        importlib.metadata.version("numba-hip")
        hip = ctypes.CDLL("libamdhip64.so")
    except (importlib.metadata.PackageNotFoundError, OSError):
        return 0
    count = ctypes.c_int(0)
    return count.value if hip.hipGetDeviceCount(ctypes.byref(count)) == 0 else 0


def _cards(cls: Any) -> int:
    if settings.hip == "simulated":
        from mirabelle.backends.gpu.simulator import CARDS

        return CARDS
    return _count_cards()


ROCArray.driver = classmethod(_driver_of)  # type: ignore[method-assign, assignment]
ROCArray.cards = classmethod(_cards)  # type: ignore[method-assign, assignment]
