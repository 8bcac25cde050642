"""NCCL as CuPy offers it: what is loaded, and what its elements and operations are called."""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
import pathlib
import warnings
from typing import Any

import numpy as np

# Tests replace the library by one for simulated cards, and say so here.
simulated = False

# NCCL's name for the elements of each dtype, and how many of them one of ours is.
_ELEMENTS = {
    "?": ("NCCL_UINT8", 1),
    "b": ("NCCL_INT8", 1),
    "B": ("NCCL_UINT8", 1),
    "i": ("NCCL_INT32", 1),
    "I": ("NCCL_UINT32", 1),
    "e": ("NCCL_FLOAT16", 1),
    "f": ("NCCL_FLOAT32", 1),
    "d": ("NCCL_FLOAT64", 1),
    "F": ("NCCL_FLOAT32", 2),
    "D": ("NCCL_FLOAT64", 2),
    **dict.fromkeys("lq", ("NCCL_INT64", 1)),
    **dict.fromkeys("LQ", ("NCCL_UINT64", 1)),
}
_OPERATIONS = {"sum": "NCCL_SUM", "prod": "NCCL_PROD", "min": "NCCL_MIN", "max": "NCCL_MAX"}
# Of truth values, which are bytes of 0 and 1.
_LOGICAL = {
    **dict.fromkeys(("any", "max", "sum"), "NCCL_MAX"),
    **dict.fromkeys(("all", "min", "prod"), "NCCL_MIN"),
}


@functools.cache
def library() -> Any:
    """CuPy's module for NCCL."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CuPy warns where NCCL is not installed; we say it, if it matters
        from cupy.cuda import nccl

        if not nccl.available and _load():
            nccl = importlib.reload(nccl)
    return nccl


def _load() -> bool:
    """Load NCCL from its wheel, where CuPy does not look for it: another version of it, say."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for path in sorted(pathlib.Path(folder).glob("nccl/lib/libnccl.so.2")):
            try:
                ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
            except OSError:
                continue
            return True
    return False


def missing() -> str:
    """Why there is no NCCL on this process; nothing if there is."""
    try:
        if library().available:
            return ""
    except Exception as e:
        return f"CuPy does not load it ({e})"
    return "CuPy finds no NCCL: `pip install nvidia-nccl-cu13` (or -cu12, as CuPy)"


def version() -> str:
    """NCCL's version, as text."""
    found = int(library().get_version())
    return f"{found // 10000}.{found // 100 % 100}.{found % 100}" if found >= 10000 else str(found)


def new_key() -> Any:
    """What the members of a new communicator of NCCL know each other by."""
    return library().get_unique_id()


def card_name(driver: Any) -> str:
    """Which card of its machine a driver is for: the number on the bus, whatever a process calls it."""
    return str(driver.index if driver.simulated else driver.device.pci_bus_id)


@functools.cache
def reduction(op: str, dtype: np.dtype) -> tuple[int, int, int] | None:
    """NCCL's number of an operation and of elements, and how many make one of ours.

    None where NCCL has none that means what NumPy's does: its least and greatest of floating-point numbers
    overlook nan.
    """
    if dtype.char not in _ELEMENTS or not dtype.isnative:
        return None
    elements, each = _ELEMENTS[dtype.char]
    if dtype.kind == "b":
        name = _LOGICAL.get(op)
    elif (op in ("min", "max") and dtype.kind not in "iu") or (dtype.kind == "c" and op != "sum"):
        name = None
    else:
        name = _OPERATIONS.get(op)
    if name is None:
        return None
    nccl = library()
    return getattr(nccl, name), getattr(nccl, elements), each
