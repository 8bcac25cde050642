"""How this process was started: what the launchers of MPI leave in the environment, and mpi4py itself.

`import mirabelle` reads the environment only. mpi4py, whose import starts MPI, comes with the first use.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import pathlib
import sys
from typing import Any

from mirabelle.dispatch.errors import CommunicationError

# What mpiexec and srun tell a process: Open MPI, PMIx (srun, PRRTE), PMI (MPICH, Intel, Cray, srun), MVAPICH.
RANK = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PMI_ID", "MV2_COMM_WORLD_RANK")
SIZE = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
LOCAL_SIZE = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE")

INSTALL = "pip install mpi4py mpich"


def is_started() -> bool:
    """Was this process started by a launcher of MPI, or has the program started MPI itself?"""
    if any(name in os.environ for name in RANK):
        return True
    library = sys.modules.get("mpi4py.MPI")
    return library is not None and library.Is_initialized() and not library.Is_finalized()


def size() -> int | None:
    """How many processes the launcher started, if it says so."""
    return _number(SIZE) if any(name in os.environ for name in RANK) else None


def local_size() -> int | None:
    """How many of them run on this machine, if it says so."""
    return _number(LOCAL_SIZE)


def _number(names: tuple[str, ...]) -> int | None:
    for name in names:
        text = os.environ.get(name, "")
        if text.isdecimal():
            return int(text)
    return None


@functools.cache
def library() -> Any:
    """mpi4py's module of MPI; its import starts MPI."""
    if importlib.util.find_spec("mpi4py") is None:
        started = size()
        said = f"This is one of {started} processes that talk by MPI" if started else "MPI was asked for"
        raise CommunicationError(f"{said}, and mpi4py is not installed. Install it: `{INSTALL}`.")
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as e:
        raise CommunicationError(
            f"mpi4py finds no MPI library to load ({e}). Install one beside it: `{INSTALL}`, or load the "
            "module of your cluster's MPI."
        ) from e
    expected = size()
    if expected is not None and expected > 1 and MPI.COMM_WORLD.size == 1:
        raise CommunicationError(
            f"The launcher started {expected} processes, but {MPI.get_vendor()[0]}, which mpi4py loaded, sees "
            "one only: mpiexec belongs to another MPI. Start with the one of this environment, "
            f"{pathlib.Path(sys.executable).parent / 'mpiexec'}, or use `python -m mirabelle run -n "
            f"{expected} script.py`, which looks there first."
        )
    return MPI
