"""A rank whose messages went through is at the end of its block by now: who awaited others says so at once."""

import re
import sys
import time

import numpy as np

import mirabelle as mb
from mirabelle.backends.mpi import watch
from mirabelle.dispatch.errors import CommunicationError, RemoteError

comm = mb.distributed.communicator()
D = mb.DArray[mb.HostArray]


def other_part():
    x, y = D(np.arange(8.0)), D(np.arange(8.0))
    if comm.rank == 0:
        x[1:] = y[:-1]
    else:
        x[1:] = y[1:]
    return mb.to_numpy(x)


def short_message():
    into = np.full(4, -99.0)
    comm.exchange({1 - comm.rank: np.ones(2 + 2 * comm.rank)}, {1 - comm.rank: into})


def alone():
    if comm.rank == 1:
        comm.barrier()


watch.GONE_ON = 0.5
for program in (other_part, short_message, alone):
    began, said = time.perf_counter(), "no error"
    try:
        with mb.distributed.together():
            program()
    except RemoteError:
        said = "heard of it"
    except CommunicationError as e:
        both = len(re.findall(r"goneon\.py:\d+", str(e))) == 2
        both = both and "the last before the end of a block at" in str(e)
        sizes = "32 bytes expected" in str(e) and "it sent 16 bytes;" in str(e)
        said = "named both" if both and sizes == (program is short_message) else str(e)
    seconds = time.perf_counter() - began
    sys.stdout.write(f"{program.__name__} {comm.rank}: {said if seconds < 2 else seconds}\n")
    sys.stdout.flush()
    with mb.distributed.together():
        assert float(mb.sum(D(np.ones(5)))) == 5.0
