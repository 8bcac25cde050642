"""The CUDA backend: CuArray's driver, through CuPy, or the simulated card."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import threading
from typing import Any

from mirabelle.arraytypes.gpu import CuArray
from mirabelle.dispatch.settings import settings


@functools.cache
def _driver(index: int, simulated: bool) -> Any:
    if simulated:
        from mirabelle.backends.gpu.simulator import SimulatedDriver

        return SimulatedDriver(index)
    from mirabelle.backends.cuda.driver import driver_of

    return driver_of(index)


_making = threading.Lock()


def _driver_of(cls: Any) -> Any:
    family = cls.family
    made = family.__dict__.get("_made_driver")
    if made is None:
        with _making:  # (threads that begin at once have one driver, and one memory)
            made = family.__dict__.get("_made_driver")
            if made is None:
                made = family._made_driver = _driver(family.home.index, settings.cuda == "simulated")
    return made


@functools.cache
def _count_cards() -> int:
    """The cards the driver shows, without starting CuPy, which takes a second."""
    if any(importlib.util.find_spec(name) is None for name in ("cupy", "numba_cuda")):
        return 0
    for library in ("libcuda.so.1", "nvcuda.dll"):
        try:
            cuda = ctypes.CDLL(library)
        except OSError:
            continue
        count = ctypes.c_int(0)
        if cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0:
            return count.value
    return 0


def _cards(cls: Any) -> int:
    if settings.cuda == "simulated":
        from mirabelle.backends.gpu.simulator import CARDS

        return CARDS
    return _count_cards()


CuArray.driver = classmethod(_driver_of)  # type: ignore[method-assign, assignment]
CuArray.cards = classmethod(_cards)  # type: ignore[method-assign, assignment]
