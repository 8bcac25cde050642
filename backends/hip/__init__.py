"""The ROCm backend: ROCArray's driver, through CuPy's build for ROCm, or a simulated card.

Kernels, plans and routines are those of `backends.gpu`; numba-hip compiles the same sources. What is here
has not run on AMD hardware.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from mirabelle.arraytypes.gpu import ROCArray
from mirabelle.backends.gpu.cards import count_simulated, give_cards, simulated
from mirabelle.dispatch.settings import settings


def _driver(index: int) -> Any:
    if settings.hip == "simulated":
        return simulated("mb.ROCArray", index)
    from mirabelle.backends.hip.driver import HipDriver

    return HipDriver(index)


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


def _cards() -> int:
    return count_simulated() if settings.hip == "simulated" else _count_cards()


give_cards(ROCArray, _driver, _cards)
