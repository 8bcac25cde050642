"""Messages by MPI, through mpi4py.

Everything is nonblocking underneath, so that waiting can look at what happens to other processes (see
waiting.py). Small groups talk directly, each member to each: that is one step, it takes any dtype, and
reductions combine in the order of ranks, which gives the same bits on all members and from any MPI. MPI's
own collective operations, which take a number of steps that grows with the logarithm, are for large groups.

Small collective operations use memory and persistent requests of their own again (slots.py). Messages from
and to users' memory do not: a persistent request saves 1 µs of an exchange's 3 to 6 µs (two ranks, MPICH),
and finding the one that fits, by the addresses of the memory, costs as much.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterator, Mapping, Sequence
from threading import get_ident
from typing import Any

import numpy as np

from mirabelle.arraytypes.distributed.communicators import (
    BARRIER,
    GATHERING,
    MESSAGES,
    OBJECTS,
    UFUNCS,
    Communicator,
    Exchange,
    Repeated,
    mark_of_reduction,
)
from mirabelle.arraytypes.distributed.marks import marked, named
from mirabelle.backends.mpi import devices
from mirabelle.backends.mpi.checking import compare
from mirabelle.backends.mpi.environment import library
from mirabelle.backends.mpi.slots import Kept, Slots
from mirabelle.backends.mpi.waiting import MPIExchange
from mirabelle.backends.mpi.watch import MARKS, Watch
from mirabelle.dispatch.errors import CommunicationError
from mirabelle.dispatch.settings import settings

# Bytes of one message at most: counts are C ints in many an MPI.
PIECE = 1 << 30
# Bytes of the slot in which an object goes at once, with its length, and how many are the object's.
SLOT = 512
_LENGTH = struct.Struct("=q")
ROOM = SLOT - _LENGTH.size
# Bytes up to which a reduction gathers all of everybody; beyond, each member combines a part for all.
SMALL = 1 << 13
# Members from which on MPI's own collective operations are used.
MANY = 16
# dtypes that MPI computes with.
_PLAIN = frozenset("?bBhHiIlLqQfdgFDG")
_LOGICAL = {"sum": "LOR", "prod": "LAND", "min": "LAND", "max": "LOR", "any": "LOR", "all": "LAND"}
_BYTES = np.dtype(np.uint8)

_NOTHING = Exchange()


class MPICommunicator(Communicator):
    """A group of processes that talk by MPI."""

    engine = "mpi"

    def __init__(self, mpi: Any, watch: Watch, members: tuple[int, ...]) -> None:
        MPI = library()
        self.mpi = mpi
        self.watch = watch
        # Our numbers in `watch` and in `mpi`, by rank.
        self.members = members
        self.rank = members.index(watch.rank)
        self.size = len(members)
        self._others = tuple(r for r in range(self.size) if r != self.rank)
        self._isend, self._irecv, self._byte = mpi.Isend, mpi.Irecv, MPI.BYTE
        self._groups: dict[tuple[int, ...], MPICommunicator] = {}
        self._known_slots: dict[tuple[int, np.dtype], Slots] = {}
        self._renewals = watch.renewals
        # How many collective operations were compared since tags last changed (see checking.py).
        self.compared = 0
        self.compared_since = watch.renewals

    # Messages

    def takes(self, kind: type) -> bool:
        return issubclass(kind, np.ndarray) or devices.takes(kind)

    def start(self, sends: Mapping[int, Any], receives: Mapping[int, Any], mark: int = MESSAGES) -> Exchange:
        if settings.check_collectives:
            compare(self, named(mark), sends, receives)
        return self._start(sends, receives, mark)

    def _start(self, sends: Mapping[int, Any], receives: Mapping[int, Any], mark: int) -> Exchange:
        watch = self.watch
        if watch.trouble is not None:
            raise watch.refusal()
        watch.threads.add(get_ident())
        watch.doing = mark
        members, tags, byte = self.members, watch.tags, self._byte
        requests: list[Any] = []
        came: list[tuple[int, Any, int, int]] = []
        nbytes = 0
        for call, side in ((self._irecv, receives), (self._isend, sends)):
            for r, view in side.items():
                to = members[r]
                size = view.nbytes if type(view) is np.ndarray else devices.count_bytes(view)
                if not size:
                    continue
                said = memoryview(bytearray(16)).cast("q")
                if side is receives:
                    came.append((to, said, mark, size))
                else:
                    said[0], said[1] = mark, size
                requests.append(call((said, byte), to, tags[to] + MARKS))
                if type(view) is np.ndarray and size <= PIECE:
                    nbytes += size
                    try:
                        requests.append(call((view, byte), to, tags[to]))
                        continue
                    except ValueError:  # NumPy does not show all dtypes as memory: datetime64, say
                        pass
                requests.extend(call((piece, byte), to, tags[to]) for piece in _pieces(view, size))
        if not requests:
            return _NOTHING
        exchange = MPIExchange(requests, watch, _Partners(members, sends, receives), nbytes)
        exchange.came = came
        return exchange

    def repeated(
        self, exchanges: Sequence[tuple[Mapping[int, Any], Mapping[int, Any]]], marks: Sequence[int] = ()
    ) -> Repeated:
        marks = marks or [MESSAGES] * len(exchanges)
        views = [view for e in exchanges for side in e for view in side.values()]
        if settings.check_collectives or not all(
            type(v) is np.ndarray and v.flags.c_contiguous and v.ndim and 0 < v.nbytes <= PIECE for v in views
        ):
            return Repeated(self, exchanges, marks)
        return Kept(self, exchanges, marks)

    def hurry(self) -> None:
        self.mpi.Iprobe()

    # Objects

    def allgather_object(self, x: Any, mark: int = OBJECTS) -> list[Any]:
        if settings.check_collectives:
            compare(self, named(mark))
        if self.size == 1:
            return [x]
        text = pickle.dumps(x)
        if self.size < MANY:
            slots = self._slots(SLOT, _BYTES)
            rows = slots.rows
            _fill(rows[self.rank], text)
            slots.swap(mark)
        else:
            rows = list(np.zeros((self.size, SLOT), np.uint8))
            _fill(rows[self.rank], text)
            self._allgather(rows[self.rank], rows, mark)
        # What did not fit into a slot.
        beyond = [_LENGTH.unpack_from(row.data)[0] - ROOM for row in rows]
        rests = {r: np.empty(beyond[r], np.uint8) for r in self._others if beyond[r] > 0}
        mine = np.frombuffer(text, np.uint8)[ROOM:]
        if rests or len(mine):
            self._start(dict.fromkeys(self._others, mine), rests, mark).wait()
        return [x if r == self.rank else _read(rows[r], rests.get(r)) for r in range(self.size)]

    def bcast_object(self, x: Any, root: int = 0) -> Any:
        if settings.check_collectives:
            compare(self, f"sharing of an object of rank {root}")
        if self.size == 1:
            return x
        slot = np.zeros(SLOT, np.uint8)
        rest = None
        if self.rank == root:
            text = pickle.dumps(x)
            _fill(slot, text)
            rest = np.frombuffer(text, np.uint8)[ROOM:]
        mark = marked("sharing of an object of rank", root)
        self._broadcast(slot, root, mark)
        beyond = _LENGTH.unpack_from(slot.data)[0] - ROOM
        if beyond > 0:
            if rest is None:
                rest = np.empty(beyond, np.uint8)
            self._broadcast(rest, root, mark)
        return x if self.rank == root else _read(slot, rest)

    def _slots(self, nbytes: int, dtype: np.dtype) -> Slots:
        """Slots for messages of all members to all."""
        if self._renewals != self.watch.renewals or len(self._known_slots) > 64:
            self._renewals = self.watch.renewals
            self._known_slots.clear()
        slots = self._known_slots.get((nbytes, dtype))
        if slots is None:
            slots = self._known_slots[nbytes, dtype] = Slots(self, nbytes, dtype)
        return slots

    # Collective operations

    def barrier(self) -> None:
        if settings.check_collectives:
            compare(self, "barrier")
        if self.size < MANY:
            if self.size > 1:
                self._slots(1, _BYTES).swap(BARRIER)
            return
        if self._run("Ibarrier", BARRIER):
            return
        # After k steps each has heard, by way of others, from the 2**k ranks before it.
        token, step = np.zeros(1, np.uint8), 1
        while step < self.size:
            after, before = (self.rank + step) % self.size, (self.rank - step) % self.size
            self._start({after: token}, {before: np.empty(1, np.uint8)}, BARRIER).wait()
            step *= 2

    def allgather(self, mine: Any, parts: Sequence[Any], mark: int = GATHERING) -> None:
        if settings.check_collectives:
            compare(self, named(mark))
        self._allgather(mine, parts, mark)

    def _allgather(self, mine: Any, parts: Sequence[Any], mark: int) -> None:
        sizes = [devices.count_bytes(p) for p in parts] if self.size >= MANY else []
        if sizes and sum(sizes) <= SLOT * self.size and type(mine) is np.ndarray:
            # Of small ones the number of steps counts, and copying does not.
            places = np.cumsum([0, *sizes])
            whole = np.empty(places[-1], np.uint8)
            sent = [_bytes_of(mine), self._byte]
            if self._run("Iallgatherv", mark, sent, [whole, sizes, places[:-1], self._byte]):
                for r in self._others:
                    _bytes_of(parts[r])[...] = whole[places[r] : places[r + 1]]
                return
        self._start(dict.fromkeys(self._others, mine), {r: parts[r] for r in self._others}, mark).wait()

    def broadcast(self, data: Any, root: int) -> None:
        mark = marked("broadcast of", devices.count_bytes(data), "bytes from rank", root)
        if settings.check_collectives:
            compare(self, named(mark))
        self._broadcast(data, root, mark)

    def _broadcast(self, data: Any, root: int, mark: int) -> None:
        small = type(data) is np.ndarray and 0 < data.nbytes <= PIECE
        if small and self._run("Ibcast", mark, [_bytes_of(data), self._byte], root):
            return
        # A tree: who has it gives it to the rank half as far away as the last time.
        place = (self.rank - root) % self.size
        step = 1
        while step < self.size and not place & step:
            step *= 2
        if place:
            self._start({}, {(self.rank - step) % self.size: data}, mark).wait()
        steps = [1 << k for k in range(step.bit_length() - 1) if place + (1 << k) < self.size]
        self._start({(self.rank + k) % self.size: data for k in reversed(steps)}, {}, mark).wait()

    def allreduce(self, data: Any, op: str, mark: int = 0) -> bool:
        if type(data) is not np.ndarray or not _combines(op, data.dtype):
            return False
        mark = mark or mark_of_reduction(op, data)
        if settings.check_collectives:
            compare(self, named(mark))
        if self.size == 1 or data.size == 0:
            return True
        if data.nbytes <= SMALL and self.size < MANY:
            slots = self._slots(data.nbytes, data.dtype)
            slots.rows[self.rank].reshape(data.shape)[...] = data
            slots.swap(mark)
            _combine(UFUNCS[op], [row.reshape(data.shape) for row in slots.rows], data)
            return True
        flat = data.reshape(-1) if data.flags.c_contiguous else data.T.reshape(-1)
        how = _mpi_operation(op, flat.dtype) if self.size >= MANY and flat.size < 1 << 31 else None
        if how is None or not self._run("Iallreduce", mark, library().IN_PLACE, flat, how):
            self._reduce_in_parts(flat, UFUNCS[op], mark)
        return True

    def _reduce_in_parts(self, flat: np.ndarray, ufunc: np.ufunc, mark: int) -> None:
        """Each member combines one part of all, and gives it to the others."""
        n, rank = flat.size, self.rank
        parts = [flat[n * r // self.size : n * (r + 1) // self.size] for r in range(self.size)]
        gathered = np.empty((self.size, parts[rank].size), flat.dtype)
        gathered[rank] = parts[rank]
        incoming = {r: gathered[r] for r in self._others}
        self._start({r: parts[r] for r in self._others}, incoming, mark).wait()
        _combine(ufunc, list(gathered), parts[rank])
        self._allgather(parts[rank], parts, mark)

    def _run(self, name: str, mark: int, *arguments: Any) -> bool:
        """Run one of MPI's collective operations, where they are used."""
        if self.size < MANY:
            return False
        watch = self.watch
        if watch.trouble is not None:
            raise watch.refusal()
        if self.members not in watch.collectives:
            watch.collectives[self.members] = self._made_collective()
        comm = watch.collectives[self.members]
        if comm is None:
            return False
        # MPI's own operations cannot tell whether all mean the same: that is asked before.
        watch.doing = mark
        both = np.array([mark, ~mark])
        request = comm.Iallreduce(library().IN_PLACE, both, library().MAX)
        MPIExchange([request], watch, self.members).wait()
        if both[0] != mark or both[1] != ~mark:
            other = int(both[0]) if both[0] != mark else ~int(both[1])
            raise watch.differing(next(m for m in self.members if m != watch.rank), other, sure=False)
        MPIExchange([getattr(comm, name)(*arguments)], watch, self.members).wait()
        return True

    def _made_collective(self) -> Any:
        """MPI's communicator for its collective operations; None where something was given up before."""
        # Making one waits without looking at failures: so first see that all are here, and unharmed.
        harmed = np.zeros((self.size, 1), np.uint8)
        harmed[self.rank] = any(self.watch.tags[m] for m in self.members)
        self._start(
            dict.fromkeys(self._others, harmed[self.rank]), {r: harmed[r] for r in self._others}, GATHERING
        ).wait()
        if harmed.any():
            return None
        whole = self.mpi.Get_group()
        group = whole.Incl(self.members)
        made = self.mpi.Create_group(group, self.members[0])
        group.Free()
        whole.Free()
        return made

    # Groups

    def part(self, ranks: Sequence[int]) -> Communicator:
        members = tuple(self.members[r] for r in ranks)
        if members == self.members:
            return self
        if self.rank not in ranks:
            raise CommunicationError(
                f"Rank {self.rank} is none of the ranks {list(ranks)}: only its members make a group. Write "
                f"`if comm.rank in ranks: part = comm.part(ranks)`."
            )
        made = self._groups.get(members)
        if made is None:
            made = self._groups[members] = MPICommunicator(self.mpi, self.watch, members)
        return made

    # Failures

    def failed(self, error: BaseException) -> None:
        self.watch.tell(error, self.members)

    def settle(self, x: Any) -> list[Any]:
        return self.watch.settle(x, self.members)

    def look(self) -> None:
        self.watch.look(self.members)


def _bytes_of(view: np.ndarray) -> np.ndarray:
    """The memory of a contiguous view, as bytes."""
    flat = view.reshape(-1) if view.flags.c_contiguous else view.T.reshape(-1)
    return flat.view(np.uint8)


def _pieces(view: Any, size: int) -> list[Any]:
    """A view as buffers that MPI can count."""
    if isinstance(view, np.ndarray):
        raw = _bytes_of(view)
        return [raw[at : at + PIECE] for at in range(0, size, PIECE)]
    devices.wait_for(view)
    return [devices.DeviceBytes(view, at, min(PIECE, size - at)) for at in range(0, size, PIECE)]


class _Partners:
    """The numbers of those who take part in an exchange: worked out when somebody asks."""

    __slots__ = ("members", "receives", "sends")

    def __init__(self, members: tuple[int, ...], sends: Mapping[int, Any], receives: Mapping[int, Any]) -> None:
        self.members = members
        self.sends = sends
        self.receives = receives

    def __iter__(self) -> Iterator[int]:
        return iter({self.members[r] for r in (*self.sends, *self.receives)})


def _fill(slot: np.ndarray, text: bytes) -> None:
    """Write the length of a text, and as much of it as there is room for."""
    memory = slot.data
    _LENGTH.pack_into(memory, 0, len(text))
    memory[_LENGTH.size : _LENGTH.size + min(len(text), ROOM)] = text[:ROOM]


def _read(slot: np.ndarray, rest: np.ndarray | None) -> Any:
    length = _LENGTH.unpack_from(slot.data)[0]
    start = slot.data[_LENGTH.size : _LENGTH.size + min(length, ROOM)]
    return pickle.loads(start if rest is None else b"".join((start, rest.data)))


def _combine(ufunc: np.ufunc, parts: list[np.ndarray], out: np.ndarray) -> None:
    """Combine parts in the order of ranks."""
    total = ufunc(parts[0], parts[1], out=out if len(parts) == 2 else parts[0], casting="unsafe")
    for part in parts[2:-1]:
        ufunc(total, part, out=total, casting="unsafe")
    if len(parts) > 2:
        ufunc(total, parts[-1], out=out, casting="unsafe")


_known: dict[tuple[str, np.dtype], Any] = {}


def _combines(op: str, dtype: np.dtype) -> bool:
    """Can elements of this dtype be combined by NumPy?"""
    key = ("?" + op, dtype)
    known = _known.get(key)
    if known is None:
        known = False
        if op in UFUNCS and dtype.kind in "biufcmM":
            try:
                UFUNCS[op].resolve_dtypes((dtype, dtype, None))
                known = True
            except TypeError:
                pass
        _known[key] = known
    return known


def _mpi_operation(op: str, dtype: np.dtype) -> Any:
    """MPI's operation for a reduction, if it means what NumPy's does.

    MPI's least and greatest of floating-point numbers overlook nan; and it has no half precision.
    """
    key = (op, dtype)
    if key not in _known:
        name = None
        if dtype.kind == "b":
            name = _LOGICAL[op]
        elif dtype.char in _PLAIN and dtype.isnative:
            known = ("sum", "prod", "min", "max") if dtype.kind in "iu" else ("sum", "prod")
            name = op.upper() if op in known else None
        _known[key] = None if name is None else getattr(library(), name)
    return _known[key]
