"""Ranks that do different things, with MIRABELLE_CHECK_COLLECTIVES: each prints what it is told."""

import sys
import time

import numpy as np

import mirabelle as mb
from mirabelle.arraytypes.distributed.communicators import communicator
from mirabelle.dispatch.errors import CommunicationError

comm = communicator()
rank = comm.rank
x = np.ones(4)


def other_operation():
    if rank == 0:
        comm.barrier()
    else:
        comm.allreduce(x, "sum")


def other_size():
    comm.allreduce(x[: 4 - (rank == 0)], "sum")


def other_messages():
    if rank < 2:
        comm.exchange({1 - rank: x[: 2 + rank]}, {1 - rank: np.empty(3)})
    else:
        comm.barrier()


def missing():
    if rank == 1:
        time.sleep(1.5)
    comm.allreduce(x, "max")


def right():
    comm.allreduce(x, "max")


for program in (other_operation, other_size, other_messages, missing, right):
    start = time.perf_counter()
    try:
        with mb.distributed.together():
            program()
        said = "fine"
    except CommunicationError as e:
        said = f"{type(e).__name__}: {e}".replace("\n", " ")
    seconds = time.perf_counter() - start
    sys.stdout.write(f"{program.__name__} {rank} {seconds:.1f} {said}\n")
    sys.stdout.flush()
