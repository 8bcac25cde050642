"""Programs of which one rank fails. Run under mpiexec: failing.py WAY."""

import os
import signal
import sys
import threading
import time

import numpy as np

import mirabelle as mb
from mirabelle.arraytypes.distributed.communicators import communicator
from mirabelle.dispatch.errors import CommunicationError, RemoteError

way = sys.argv[1]
if way == "early":
    from mpi4py import MPI

    if MPI.COMM_WORLD.rank == 1:
        raise ValueError("before there is a communicator")
comm = communicator()
rank, size = comm.rank, comm.size
comm.barrier()


WAITS = [
    comm.barrier,
    lambda: comm.allgather_object("a" * 1000),
    lambda: comm.allreduce(np.ones(3), "sum"),
    lambda: comm.allreduce(np.ones(1_000_000), "sum"),
    lambda: comm.exchange({(rank + 1) % size: np.ones(200_000)}, {(rank - 1) % size: np.empty(200_000)}),
    lambda: comm.bcast_object(None, 1),
    lambda: comm.broadcast(np.ones(100_000), 1),
    lambda: comm.part(range(size - 1, -1, -1)).barrier(),
]


def fail():
    raise FileNotFoundError("no such file")


def wait_for_all():
    """Wait for a rank that never comes, and print what is heard of it."""
    try:
        comm.allreduce(np.ones(1_000_000), "sum")
    except RemoteError as e:
        assert isinstance(e, CommunicationError) and e.rank == 1, repr(e)
        sys.stdout.write(
            f"rank {rank} heard: {'no such file' in e.remote_traceback} {'no such file' in str(e)}\n"
        )
        sys.stdout.flush()
        try:
            comm.barrier()
        except RemoteError as again:
            assert str(again) == str(e)
        raise


if way == "raises":
    fail() if rank == 1 else wait_for_all()
elif way == "exits":
    sys.exit(3) if rank == 1 else wait_for_all()
elif way == "killed":
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    wait_for_all()
elif way == "thread":
    if rank == 1:

        def work():
            comm.exchange({}, {0: np.empty(1)})
            fail()

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    else:
        if rank == 0:
            comm.exchange({1: np.ones(1)}, {})
        wait_for_all()
elif way == "busy":
    if rank == 1:
        fail()
    time.sleep(60)
elif way == "half-way":
    # Messages are under way when the program fails, and nobody will ever take them.
    kept = comm.start({r: np.ones(3_000_000) for r in range(size) if r != rank}, {})
    if rank == 1:
        fail()
    comm.exchange({}, {r: np.empty(3_000_000) for r in range(size) if r != rank})
    wait_for_all()
elif way == "together":
    for step in range(4 * len(WAITS)):
        loser = step % size
        try:
            with mb.distributed.together():
                if step % 4 == 1 and rank == loser:
                    fail()
                WAITS[step % len(WAITS)]()
                if step % 4 == 2 and rank == loser:
                    raise KeyError(step)
                WAITS[step // 4]()
                if step % 4 == 3 and rank != loser:
                    fail()
            assert step % 4 == 0
        except (FileNotFoundError, KeyError):
            assert step % 4 > 0 and (rank == loser) == (step % 4 < 3)
        except RemoteError as e:
            # Of several that fail, one may hear of another before it does.
            assert step % 4 == 3 or (step % 4 > 0 and rank != loser)
            assert (f"KeyError: {step}" if step % 4 == 2 else "no such file") in e.remote_traceback
        x = np.full(10, float(rank))
        assert comm.allreduce(x, "max") and x[0] == size - 1
        assert comm.allgather_object(rank) == list(range(size))
    if rank < 2:  # in a part
        try:
            with mb.distributed.together(comm.part([0, 1])) as part:
                fail() if rank else part.barrier()
        except (FileNotFoundError, RemoteError) as e:
            assert isinstance(e, RemoteError) == (rank == 0)
        assert part.allgather_object(rank) == [0, 1]
    assert comm.allgather_object(rank) == list(range(size))
    # One that fails at once in what comes next is heard by those who have not left this meeting yet.
    watch = comm.watch
    settle_words = watch._wait

    def late(*arguments):
        time.sleep(0.3)
        settle_words(*arguments)

    comm.barrier()
    if rank == 0:
        watch._wait = late
    with mb.distributed.together():
        pass
    watch._wait = settle_words
    try:
        with mb.distributed.together():
            fail() if rank == 1 else comm.allreduce(np.ones(1), "sum")
        raise AssertionError("nobody failed")
    except (FileNotFoundError, RemoteError) as e:
        assert isinstance(e, RemoteError) == (rank != 1)
    assert comm.allgather_object(rank) == list(range(size))
    print("fine")
