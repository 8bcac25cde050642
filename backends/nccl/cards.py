"""Which card a rank has, where a launcher started several on a machine with several cards.

Each rank sees one card, as number 0: so `mb.CuArray` is the same type on all ranks, and means another card on
each. It is done by CUDA_VISIBLE_DEVICES, before CUDA starts: with ranks 0 to 3 of a machine and cards
"0,1,2,3", rank 2 gets card 2; with more ranks than cards they share. What the launcher chose is left alone
(`srun --gpus-per-task=1` shows each rank its own), and so is a CUDA that runs: import mirabelle before
something starts it. `MIRABELLE_RANK_CARDS=0` leaves all cards visible to all ranks.
"""

from __future__ import annotations

import ctypes
import glob
import os

from mirabelle.backends.mpi import environment
from mirabelle.dispatch.settings import settings

# The number of a rank among those of its machine: Open MPI, MPICH and Intel MPI, srun, MVAPICH, Cray.
LOCAL_RANK = (
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "PALS_LOCAL_RANKID",
    "SLURM_LOCALID",
)
# How many there are is also in srun's list of numbers by machine: "2(x3),1".
TASKS = ("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE")
VISIBLE = "CUDA_VISIBLE_DEVICES"


def choose() -> str | None:
    """Let this process see one card of several, if it shares the machine with other ranks; which one."""
    if not settings.rank_cards or settings.communicator == "alone" or not environment.is_started():
        return None
    rank = local_rank()
    if rank is None or not several_here(rank):
        return None
    cards = visible_cards()
    if len(cards) < 2 or cuda_has_started():
        return None
    chosen = cards[rank % len(cards)]
    os.environ[VISIBLE] = chosen
    return chosen


def local_rank() -> int | None:
    """The number of this process among the ranks of its machine, if the launcher says it."""
    return next((int(os.environ[n]) for n in LOCAL_RANK if os.environ.get(n, "").isdecimal()), None)


def several_here(rank: int) -> bool:
    """Did the launcher start several ranks on this machine?"""
    if rank > 0:
        return True
    here = environment.local_size()
    if here is not None:
        return here > 1
    said = next((os.environ[n] for n in TASKS if n in os.environ), "")
    node = os.environ.get("SLURM_NODEID", "0")
    counts: list[int] = []
    for part in said.split(",") if said else []:
        count, _, times = part.partition("(x")
        if not count.isdecimal():
            return False
        counts += [int(count)] * int(times.rstrip(")") or 1)
    at = int(node) if node.isdecimal() else 0
    return at < len(counts) and counts[at] > 1


def visible_cards() -> list[str]:
    """The names of the cards that this process may use."""
    said = os.environ.get(VISIBLE)
    if said is not None:
        return [name.strip() for name in said.split(",") if name.strip()]
    return [str(i) for i in range(count_cards())]


def count_cards() -> int:
    """How many NVIDIA cards there are, without starting CUDA."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
        count = ctypes.c_uint(0)
        if library.nvmlInit_v2() == 0:
            try:
                if library.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0:
                    return count.value
            finally:
                library.nvmlShutdown()
    except (OSError, AttributeError):
        pass
    return len(glob.glob("/dev/nvidia[0-9]*"))


def cuda_has_started() -> bool:
    """Has something in this process started CUDA? The cards it sees are settled then."""
    try:
        count = ctypes.c_int(0)
        return ctypes.CDLL("libcuda.so.1").cuDeviceGetCount(ctypes.byref(count)) == 0
    except (OSError, AttributeError):
        return False
