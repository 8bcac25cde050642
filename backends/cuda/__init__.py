"""The CUDA backend: CuArray's driver, through CuPy, or the simulated card."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from pathlib import Path
from typing import Any

from mirabelle.arraytypes.gpu import CuArray
from mirabelle.arraytypes.programs.building import Library, builder
from mirabelle.backends.gpu.cards import count_simulated, give_cards, simulated
from mirabelle.dispatch.settings import settings


def _driver(index: int) -> Any:
    if settings.cuda == "simulated":
        return simulated("mb.CuArray", index)
    from mirabelle.backends.cuda.driver import driver_of

    return driver_of(index)


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


def _cards() -> int:
    return count_simulated() if settings.cuda == "simulated" else _count_cards()


give_cards(CuArray, _driver, _cards)


@builder.method
def _(inner: type[CuArray], programs: list[Any], path: Path, options: dict[str, Any]) -> Library:
    # (What builds libraries is seldom wanted.)
    from mirabelle.backends.cuda.ahead.building import build

    return build(inner, programs, path, options)
