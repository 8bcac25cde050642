"""NCCL for simulated cards: what is given to a stream is sent when the stream comes to it.

`install(transport)` has the NCCL backend use it. Ranks are threads of this process (`Threads`) or those of
MPI (`Processes`). What was called is in `calls`.
"""

import collections
import contextlib
import functools
import itertools
import queue
import threading

import numpy as np

import mirabelle as mb
from mirabelle.backends.gpu.simulated_streams import SimulatedStream
from mirabelle.backends.nccl import binding

_DTYPES = ("INT8", "UINT8", "INT32", "UINT32", "INT64", "UINT64", "FLOAT16", "FLOAT32", "FLOAT64")
_UFUNCS = {"SUM": np.add, "PROD": np.multiply, "MIN": np.minimum, "MAX": np.maximum}


class Threads:
    """Messages between threads: a queue for each pair of them in each communicator."""

    def __init__(self):
        self.queues = collections.defaultdict(queue.Queue)
        # Who waits for a message lets others' streams do their work meanwhile.
        self.changed = threading.Condition(SimulatedStream._lock)

    def send(self, key, rank, to, data):
        with self.changed:
            self.queues[key, rank, to].put(data)
            self.changed.notify_all()

    def receive(self, key, rank, of, data):
        with self.changed:  # (which makes a queue, too: two threads may ask for one that is not there yet)
            waiting = self.queues[key, of, rank]
            if not self.changed.wait_for(lambda: not waiting.empty(), timeout=30):
                raise queue.Empty
            data[...] = waiting.get_nowait()


class Processes:
    """Messages by MPI, of communicators of all ranks."""

    def __init__(self):
        from mpi4py import MPI

        self.comm = MPI.COMM_WORLD.Dup()
        self.byte = MPI.BYTE
        self.sent = []

    def send(self, key, rank, to, data):
        self.sent = [(r, d) for r, d in self.sent if not r.Test()]
        self.sent.append((self.comm.Isend((data, self.byte), to, key % 30000), data))

    def receive(self, key, rank, of, data):
        landed = np.empty_like(data)
        self.comm.Recv((landed, self.byte), of, key % 30000)
        data[...] = landed


class FakeNCCL:
    """What CuPy's module offers."""

    available = True

    def __init__(self, transport):
        self.transport = transport
        self.calls = []
        self.local = threading.local()
        self.keys = itertools.count(1)
        for i, name in enumerate(_DTYPES):
            setattr(self, f"NCCL_{name}", i)
        for i, name in enumerate(_UFUNCS):
            setattr(self, f"NCCL_{name}", i)

    def get_version(self):
        return 22703

    def get_unique_id(self):
        return next(self.keys)

    def groupStart(self):
        self.local.group = []
        self.calls.append(("groupStart",))

    def groupEnd(self):
        """The sends and receives of a group begin together, in one stream."""
        group, self.local.group = self.local.group, None
        self.calls.append(("groupEnd", len(group)))
        streams = {stream for _, _, stream in group}
        assert len(streams) <= 1, "a group in several streams"
        if group:
            sends = [run for kind, run, _ in group if kind == "send"]
            others = [run for kind, run, _ in group if kind != "send"]
            self.give(group[0][2], lambda: [run() for run in (*sends, *others)])

    def NcclCommunicator(self, size, key, rank):
        self.calls.append(("init", size, rank))
        return Handle(self, size, key, rank)

    def add(self, kind, run, stream):
        if getattr(self.local, "group", None) is not None:
            self.local.group.append((kind, run, stream))
        else:
            self.give(stream, run)

    def give(self, number, run):
        """Have a stream do something, when it comes to it."""
        driver = mb.CuArray.driver()
        stream = next((s for s in driver.streams if s.ptr == number), None)
        if stream is None:
            assert number == driver.default.ptr, number
            run()
        else:
            stream.tasks.append((run, None))


class Handle:
    def __init__(self, nccl, size, key, rank):
        self.nccl, self.size, self.key, self.rank = nccl, size, key, rank
        self.aborted = False

    def memory(self, address, nbytes):
        assert not self.aborted, "an aborted communicator was used"
        return mb.CuArray.driver().memory.at(address, nbytes, "a message")

    def _called(self, name, *facts):
        self.nccl.calls.append((name, self.rank, *facts))

    def _send(self, data, to):
        self.nccl.transport.send(self.key, self.rank, to, data.copy())

    def _receive(self, data, of):
        self.nccl.transport.receive(self.key, self.rank, of, data)

    def send(self, address, count, dtype, to, stream):
        assert dtype == self.nccl.NCCL_INT8
        assert to != self.rank
        self._called("send", to, count)
        self.nccl.add("send", lambda: self._send(self.memory(address, count), to), stream)

    def recv(self, address, count, dtype, of, stream):
        assert dtype == self.nccl.NCCL_INT8
        self._called("recv", of, count)
        self.nccl.add("recv", lambda: self._receive(self.memory(address, count), of), stream)

    def _gathered(self, mine):
        rows = np.empty((self.size, mine.size), np.uint8)
        rows[self.rank] = mine
        others = [r for r in range(self.size) if r != self.rank]
        for r in others:
            self._send(mine, r)
        for r in others:
            self._receive(rows[r], r)
        return rows

    def allGather(self, address, target, count, dtype, stream):
        assert dtype == self.nccl.NCCL_INT8
        self._called("allGather", count)

        def run():
            out = self.memory(target, count * self.size).reshape(self.size, count)
            out[...] = self._gathered(self.memory(address, count).copy())

        self.nccl.add("collective", run, stream)

    def bcast(self, address, count, dtype, root, stream):
        assert dtype == self.nccl.NCCL_INT8
        self._called("bcast", root, count)

        def run():
            data = self.memory(address, count)
            if self.rank != root:
                self._receive(data, root)
                return
            for r in range(self.size):
                if r != root:
                    self._send(data, r)

        self.nccl.add("collective", run, stream)

    def allReduce(self, address, target, count, dtype, op, stream):
        name, ufunc = list(_UFUNCS.items())[op]
        self._called("allReduce", name, _DTYPES[dtype], count)
        assert address == target
        kind = np.dtype(_DTYPES[dtype].lower())

        def run():
            data = self.memory(address, count * kind.itemsize)
            data[...] = functools.reduce(ufunc, self._gathered(data.copy()).view(kind)).view(np.uint8)

        self.nccl.add("collective", run, stream)

    def check_async_error(self):
        pass

    def abort(self):
        self.aborted = True


@contextlib.contextmanager
def installed(transport, card_name=None):
    """Within the block, the NCCL backend uses one over a transport; each rank has another card."""
    before = binding.library, binding.card_name, binding.simulated
    nccl = FakeNCCL(transport)
    binding.reduction.cache_clear()
    binding.library, binding.simulated = lambda: nccl, True
    binding.card_name = card_name or (lambda driver: str(mb.distributed.communicator().rank))
    try:
        yield nccl
    finally:
        binding.library, binding.card_name, binding.simulated = before
        binding.reduction.cache_clear()
