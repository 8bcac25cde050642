"""Memory of cards in messages: whether this MPI reads it, and how it is handed over."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

from mirabelle.arraytypes.gpu import GPUView
from mirabelle.backends.mpi.environment import library
from mirabelle.dispatch.settings import settings


class DeviceBytes:
    """Bytes of a card's memory, as MPI is handed them."""

    __slots__ = ("__cuda_array_interface__", "owner")

    def __init__(self, view: GPUView, start: int, size: int) -> None:
        self.owner = view
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": (size,),
            "typestr": "|u1",
            "data": (view.ptr + start, False),
            "strides": None,
        }


def count_bytes(view: Any) -> int:
    """How large a view is."""
    return view.size * view.dtype.itemsize if isinstance(view, GPUView) else view.nbytes


def wait_for(view: GPUView) -> None:
    """Wait for the work queued on a view's card, of which MPI knows nothing."""
    type(view).family.driver().synchronize()


def takes(kind: type) -> bool:
    """Can views of this type be handed to MPI as they are?"""
    if not issubclass(kind, GPUView):
        return False
    if settings.device_messages == "auto":
        # What the simulated card computes lies on the host; hiding that is what it is for.
        return not kind.family.driver().simulated and reads_cards()
    return settings.device_messages == "on"


@functools.cache
def reads_cards() -> bool:
    """Does this MPI say that it reads the memory of cards? Asked once."""
    MPI = library()
    # The way of MPI 4.1; MPICH and Intel MPI have it.
    info = MPI.COMM_WORLD.Get_info()
    kinds = info.Get("mpi_memory_alloc_kinds") or ""
    info.Free()
    if {kind.partition(":")[0] for kind in kinds.split(",")} & {"cuda", "rocm", "level_zero"}:
        return True
    if os.environ.get("MPICH_GPU_SUPPORT_ENABLED") == "1":  # Cray's
        return True
    return MPI.get_vendor()[0] == "Open MPI" and _open_mpi_reads_cards()


def _open_mpi_reads_cards() -> bool:
    """Ask the Open MPI that is loaded; its file is found among the memory maps of this process."""
    try:
        with open("/proc/self/maps") as maps:
            paths = {line.split()[-1] for line in maps if "/libmpi.so" in line}
    except OSError:
        return False
    for path in paths:
        loaded = ctypes.CDLL(path)
        for name in ("MPIX_Query_cuda_support", "MPIX_Query_rocm_support"):
            query = getattr(loaded, name, None)
            if query is not None and query() == 1:
                return True
    return False
