"""A simulated card: kernels' source run by Python over the host's memory.

For trying programs and testing kernels where there is no card: with MIRABELLE_CUDA=simulated,
`mb.CuArray` stands on this driver. Threads run one after the other, blocks in a shuffled order; at
a barrier a thread waits for the others of its block. Each load and store is checked: inside one
living allocation, and aligned as vectors must be.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import gc
import itertools
import math
import re
import threading
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.gpu import view_at
from mirabelle.backends.codegen.element import KernelText
from mirabelle.backends.codegen.gridkernel import IndexKernelText
from mirabelle.backends.gpu.driver import Driver, Launcher, stray_address
from mirabelle.backends.gpu.memory import exhausted
from mirabelle.backends.gpu.recording import recording, refuse_reading
from mirabelle.backends.gpu.simulated_library import SimulatedLibrary
from mirabelle.backends.gpu.simulated_streams import SimulatedGraph, SimulatedRecorder, SimulatedStream, Time
from mirabelle.backends.host.compiler import remember
from mirabelle.backends.host.interpreter import numpy_callable
from mirabelle.dispatch import syntax
from mirabelle.dispatch.errors import DeviceError
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.promotion import Sig

_CODES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
_MEMORY = re.compile(r"(load|store)(\d*)_([biufc]\d+)$")
_ATOMIC = re.compile(r"atomic_(add|max|min|exchange|cas)_([iuf][48])$")
_ALIGNMENT = 256
# The simulated machine: so many cards, each with so many bytes.
CARDS = 2
TOTAL = 1 << 34


class Block:
    """A piece of simulated memory."""

    __slots__ = ("__weakref__", "data", "nbytes", "ptr", "raw")

    def __init__(self, nbytes: int) -> None:
        self.raw = np.full(nbytes + _ALIGNMENT + 16, 0xA5, np.uint8)
        base: int = self.raw.__array_interface__["data"][0]
        shift = -base % _ALIGNMENT
        self.ptr = base + shift
        self.nbytes = nbytes
        self.data = self.raw[shift : shift + nbytes]


class Memory:
    """The living blocks, by address."""

    def __init__(self) -> None:
        self.blocks: dict[int, Any] = {}
        # Their addresses in order, as of a change: others may come and go at any time, in any thread.
        self._order: tuple[int, list[int]] = 0, []
        self._changed = 0
        self._changes = itertools.count(1)

    def used(self) -> int:
        """The bytes of the living blocks."""
        blocks = [ref() for ref in list(self.blocks.values())]
        return sum(block.nbytes for block in blocks if block is not None)

    def add(self, block: Any) -> None:
        self.blocks[block.ptr] = weakref.ref(block, functools.partial(self._gone, block.ptr))
        self._changed = next(self._changes)

    def _gone(self, start: int, ref: Any) -> None:
        if self.blocks.get(start) is ref:
            del self.blocks[start]
            self._changed = next(self._changes)

    def block(self, address: int) -> Any:
        """The living block an address lies in or behind."""
        known, starts = self._order
        while known != self._changed:
            known, starts = self._order = self._changed, sorted(self.blocks)
        i = bisect.bisect_right(starts, address) - 1
        ref = self.blocks.get(starts[i]) if i >= 0 else None
        return ref() if ref is not None else None

    def owns(self, address: int) -> bool:
        """Does an address lie in a living block?"""
        block = self.block(address)
        return block is not None and address < block.ptr + max(block.nbytes, 1)

    def at(self, address: int, nbytes: int, what: str) -> np.ndarray:
        """The bytes at an address."""
        block = self.block(address)
        if block is None or address + nbytes > block.ptr + block.nbytes:
            raise DeviceError(
                f"illegal memory access: {what} of {nbytes} bytes at {address:#x} is outside of every array of "
                "the card."
            )
        offset = address - block.ptr
        return block.data[offset : offset + nbytes]  # type: ignore[no-any-return]


class _Lent:
    """What NumPy is told of memory handed to somebody else: where it is, and what must live for it."""

    __slots__ = ("__array_interface__", "holder")

    def __init__(self, interface: dict[str, Any], holder: Any) -> None:
        self.__array_interface__ = interface
        self.holder = holder


_started: dict[str, dict[int, Any]] = {}


class SimulatedDriver(Driver):
    """A card that is none."""

    simulated = True
    name = "simulated"
    multiprocessors = 4
    capability = (9, 0)

    def __init__(self, index: int = 0, family: str = "mb.CuArray", strict: bool = False) -> None:
        self.strict = strict
        # What arrays on it are called; and the cards of this kind that have been started, by number.
        self.family = family
        self.cards = _started.setdefault(family, {})
        if not 0 <= index < CARDS:
            raise DeviceError(
                f"Card {index} was asked for, and the simulated machine has {CARDS}, numbered from 0. Use "
                f"`{self.family}.on(0)`."
            )
        self.cards[index] = self
        self.index = index
        self.memory = Memory()
        self.limit: int | None = None
        self.library = SimulatedLibrary()
        self.time = Time()
        self.default = SimulatedStream(0)
        self.streams: list[Any] = []
        self._stream_numbers = itertools.count(16)
        # One kernel after the other, whatever thread of the program launched it.
        self.turn = threading.RLock()
        self.recorders = []
        self.idle_streams = []

    def allocate(self, nbytes: int) -> tuple[Any, int]:
        if self.limit is not None or nbytes > TOTAL // 8:
            self._make_room(nbytes)
        block = Block(nbytes)
        self.memory.add(block)
        if self.recorders:
            recorder = recording(self)
            if recorder is not None:
                recorder.allocated(block.ptr, block)
        return block, block.ptr

    def _make_room(self, nbytes: int) -> None:
        """Let go of what only cycles hold, if there is no room otherwise."""
        most = TOTAL if self.limit is None else self.limit
        if self.memory.used() + nbytes > most:
            gc.collect()
            if self.memory.used() + nbytes > most:
                raise exhausted(self, nbytes)

    def figures(self) -> dict[str, int | None]:
        used = self.memory.used()
        return {"used": used, "held": 0, "limit": self.limit, "total": TOTAL, "free": max(0, TOTAL - used)}

    def limit_memory(self, nbytes: int | None) -> None:
        self.limit = nbytes

    def upload(self, address: int, data: np.ndarray) -> None:
        self.current_stream().drain()
        raw = data.ravel(order="K").view(np.uint8)
        self.memory.at(address, raw.size, "a copy")[...] = raw

    def download(self, data: np.ndarray, address: int) -> None:
        self._wait_for_values("an array is fetched")
        raw = data.ravel(order="K")
        assert np.shares_memory(raw, data)
        raw.view(np.uint8)[...] = self.memory.at(address, data.nbytes, "a copy")

    def copy(self, to: int, address: int, nbytes: int) -> None:
        def run() -> None:
            self.memory.at(to, nbytes, "a copy")[...] = self.memory.at(address, nbytes, "a copy").copy()

        if self.time.entered or self.recorders:
            self._later(run, (to, address))
        else:
            run()

    def copy_from(self, other: Any, to: int, address: int, nbytes: int) -> None:
        for driver in (self, other):
            driver._wait_for_values("an array is copied to another card")
        self.memory.at(to, nbytes, "a copy")[...] = other.memory.at(address, nbytes, "a copy").copy()

    def _wait_for_values(self, what: str) -> None:
        if self.recorders and recording(self) is not None:
            raise refuse_reading(what)
        self.current_stream().drain()

    def submit(self, run: Callable[[], None], blocks: Any) -> None:
        """Do something in the order of the current stream."""
        if self.time.entered:
            self.time.entered[-1].tasks.append((run, blocks))
        else:
            run()

    def _later(self, run: Callable[[], None], values: Any) -> None:
        """As `submit`, or recorded; `values` has the addresses of what must live until then."""
        blocks = [self.memory.block(v) for v in values if type(v) is int]
        recorder = recording(self)
        if recorder is None:
            self.submit(run, blocks)
        else:
            recorder.named(values)
            recorder.tasks.append((run, blocks))

    def new_stream(self) -> SimulatedStream:
        if self.idle_streams:
            return self.idle_streams.pop()  # type: ignore[no-any-return]
        made = SimulatedStream(next(self._stream_numbers))
        self.streams.append(made)
        return made

    def current_stream(self) -> SimulatedStream:
        return self.time.entered[-1] if self.time.entered else self.default

    def enter_stream(self, stream: SimulatedStream) -> None:
        self.time.entered.append(stream)

    def leave_stream(self) -> None:
        self.time.entered.pop()

    def order(self, later: SimulatedStream, earlier: SimulatedStream) -> None:
        if earlier is self.default:
            return
        upto = earlier.given
        if later is self.default:
            earlier.drain(upto)
        else:
            later.tasks.append((functools.partial(earlier.drain, upto), None))

    def drain(self) -> None:
        if self.recorders and recording(self) is not None:
            raise refuse_reading("the card is waited for")
        for stream in self.streams:
            stream.drain()

    def recorder(self, family: Any) -> SimulatedRecorder:
        return SimulatedRecorder(self, family)

    def array(self, view: Any) -> Any:
        self._wait_for_values("the simulated card cannot record routines of a library")
        if not view.size:
            return np.empty(view.shape, view.dtype)
        low = sum(min(0, (n - 1) * s) for n, s in zip(view.shape, view.strides, strict=True))
        high = sum(max(0, (n - 1) * s) for n, s in zip(view.shape, view.strides, strict=True))
        raw = self.memory.at(view.ptr + low, high - low + view.itemsize, "a view")
        return np.ndarray(view.shape, view.dtype, raw.data, -low, view.strides)

    def view(self, array: Any, kind: Any) -> Any:
        # What NumPy made lies elsewhere: it is brought to the card. (CuPy's results are there.)
        data = np.asarray(array)
        made = kind.family._empty(data.shape, data.dtype, "C")
        if data.size:
            self.upload(made.ptr, np.ascontiguousarray(data))
        return made

    def lent(self, view: Any, holder: Any) -> Any:
        if not view.size:
            return np.empty(view.shape, view.dtype)
        interface = {"version": 3, "shape": view.shape, "strides": view.strides, "typestr": view.dtype.str}
        return np.asarray(_Lent({**interface, "data": (view.ptr, not view.flags.writeable)}, holder))

    def borrowed(self, array: Any, kind: Any) -> Any:
        said = getattr(array, "__cuda_array_interface__", None)
        if said is None:
            raise DeviceError(
                f"A {type(array).__name__} on a real card cannot be shared with a simulated one. Copy it to "
                "the host first, or unset MIRABELLE_CUDA."
            )
        dtype, shape, strides = np.dtype(said["typestr"]), tuple(said["shape"]), said.get("strides")
        view = view_at(kind, array, said["data"][0], shape, dtype, strides)
        if view.size and self.card_at(view.ptr) != self.index:
            raise DeviceError(f"The array lies on card {self.card_at(view.ptr)}, and not on card {self.index}.")
        return view

    def card_at(self, address: int) -> int:
        for index, driver in self.cards.items():
            if driver.memory.owns(address):
                return index
        raise stray_address(address)

    def load(self, source: KernelText, functions: dict[str, Any], contract: bool = False) -> Any:
        if isinstance(source, IndexKernelText):
            from mirabelle.backends.gpu.simulated_kernels import SimulatedIndexKernel

            return SimulatedIndexKernel(self, source, functions)
        return _Kernel(self, source, functions)

    def launcher(
        self,
        kernel: Any,
        codes: tuple[str, ...],
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        fixed: tuple[int, ...],
    ) -> Launcher:
        if max(grid[1:]) > 65535 or math.prod(block) > 1024:
            raise DeviceError(f"a card refuses a grid of {grid} blocks of {block} threads.")
        convert = [np.dtype(c).type for c in codes]

        def launch(*values: Any) -> None:
            given = [*values, *fixed]
            if len(given) != len(codes):
                raise DeviceError(f"{kernel.name} takes {len(codes)} arguments, and got {len(given)}.")
            # What is fixed stays a number of Python, which does not overflow; what is given does, as on a card.
            # (Addresses are given as i8, too: nobody adds so much to one.)
            n = len(values)
            arguments = [
                int(v) if c == "u8" or (c == "i8" and i >= n) else t(v)
                for i, (c, t, v) in enumerate(zip(codes, convert, given, strict=True))
            ]
            if self.time.entered or self.recorders:
                if self.recorders and (recorder := recording(self)) is not None:
                    recorder.launched(kernel, values)
                addresses = [int(v) for c, v in zip(codes, given, strict=True) if c in ("i8", "u8")]
                self._later(lambda: kernel.run(arguments, grid, block), addresses)
            else:
                kernel.run(arguments, grid, block)

        return launch

    has_graphs = True

    def kernel_graph(self, launches: list[tuple[Launcher, list[Any]]], after: list[list[int]]) -> Any:
        return SimulatedGraph(launches, after)

    def synchronize(self) -> None:
        self._wait_for_values("the stream is waited for")


# Kernels


class _Kernel:
    """A kernel's source, made to run in Python: `barrier()` becomes a place to wait."""

    def __init__(self, driver: SimulatedDriver, source: KernelText, functions: dict[str, Any]) -> None:
        self.name = source.name
        self.machine = _Machine(driver.memory)
        self.turn = driver.turn
        text = re.sub(r"^(\s*)barrier\(\)$", r"\1yield", source.text, flags=re.MULTILINE)
        self.waits = text != source.text
        scope = _Names(self.machine)
        for label, f in functions.items():
            op = TABLE.get(label.removeprefix("fn_"))
            scope[label] = f if op is None or op.scalar is not f else functools.partial(_known, op)
        self.function = scope.run(text)[source.name]

    def run(self, arguments: list[Any], grid: tuple[int, ...], block: tuple[int, ...]) -> None:
        with self.turn:
            self._run(arguments, grid, block)

    def _run(self, arguments: list[Any], grid: tuple[int, ...], block: tuple[int, ...]) -> None:
        machine = self.machine
        machine.sizes = (*block, *grid)
        function = self.function
        threads = shuffled(block)
        with np.errstate(all="ignore"):
            for machine.block in shuffled(grid):
                machine.shared_arrays = []
                if self.waits:
                    self._run_together(threads, arguments)
                    continue
                for machine.thread in threads:
                    function(*arguments)

    def _run_together(self, threads: Sequence[Any], arguments: list[Any]) -> None:
        machine = self.machine
        running = [(at, self.function(*arguments), [0]) for at in threads]
        while running:
            going = []
            for waiting in running:
                machine.thread, generator, machine.count = waiting
                if next(generator, running) is not running:
                    going.append(waiting)
            if going and len(going) < len(running):
                ended = len(running) - len(going)
                if not machine.lenient:
                    raise DeviceError(
                        f"{self.name}: {ended} threads of a block ended while others wait at a barrier."
                    )
            running = going


@functools.lru_cache(maxsize=256)
def shuffled(sizes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """All places within sizes, the first of which is the fastest; in another order, the same each time."""
    places = [place[::-1] for place in itertools.product(*map(range, reversed(sizes)))]
    step = next(s for s in (7919, 104729, 1) if math.gcd(s, len(places)) == 1)
    return tuple([places[i * step % len(places)] for i in range(len(places))])


def _known(op: Any, *args: Any) -> Any:
    """A function of ours such as erf, which does not raise in a kernel."""
    return numpy_callable(Sig(op, (np.dtype(np.float64),) * op.nin, (np.dtype(np.float64),)))[0](*args)[()]


class _Machine:
    """Where a launch is: which block, which thread, its shared arrays."""

    lenient = False

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.sizes: tuple[int, ...] = ()
        self.block: tuple[int, ...] = ()
        self.thread: tuple[int, ...] = ()
        self.shared_arrays: list[Any] = []
        self.count = [0]

    def shared(self, shape: Any, dtype: Any) -> Any:
        """The block's array: the n-th that each thread asks for is the same."""
        n = self.count[0]
        self.count[0] += 1
        if n == len(self.shared_arrays):
            self.shared_arrays.append(np.zeros(shape, _INTEGER if dtype is _integer else dtype))
        return self.shared_arrays[n]

    def load(self, dtype: np.dtype, lanes: int, address: int, index: int) -> Any:
        size = dtype.itemsize * lanes
        at = int(address) + int(index) * dtype.itemsize
        if at % min(size if lanes > 1 else _scalar_alignment(dtype), 16):
            raise DeviceError(f"misaligned address {at:#x} for {lanes} of {dtype.name}.")
        found = self.memory.at(at, size, "a load").view(dtype)
        return found[0] if lanes == 1 else tuple(found.copy())

    def store(self, dtype: np.dtype, lanes: int, address: int, index: int, value: Any) -> None:
        size = dtype.itemsize * lanes
        at = int(address) + int(index) * dtype.itemsize
        if at % min(size if lanes > 1 else _scalar_alignment(dtype), 16):
            raise DeviceError(f"misaligned address {at:#x} for {lanes} of {dtype.name}.")
        for x in value if lanes > 1 else (value,):
            if getattr(x, "dtype", None) not in (dtype, None) or not (
                isinstance(x, (np.generic, bool, int, float, complex)) and np.ndim(x) == 0
            ):
                raise DeviceError(f"a {type(x).__name__} is stored as {dtype.name}.")
        if type(value) is int and dtype.kind in "iu":  # (integers of Python, as a card keeps them)
            half = 1 << 8 * dtype.itemsize - 1 if dtype.kind == "i" else 0
            value = (value + half) % (1 << 8 * dtype.itemsize) - half
        self.memory.at(at, size, "a store").view(dtype)[...] = value

    def update(self, dtype: np.dtype, name: str, address: int, index: int, *values: Any) -> Any:
        """An atomic operation; returns what was there."""
        old = self.load(dtype, 1, address, index)
        self.store(dtype, 1, address, index, dtype.type(UPDATES[name](old, *map(dtype.type, values))))
        return old


# What an atomic operation puts in the place of what is there (a NaN loses).
UPDATES: dict[str, Any] = {
    "add": lambda old, value: old + value,
    "max": lambda old, value: value if value > old or old != old else old,
    "min": lambda old, value: value if value < old or old != old else old,
    "exchange": lambda old, value: value,
    "cas": lambda old, expected, value: value if old == expected else old,
}


def _scalar_alignment(dtype: np.dtype) -> int:
    return dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize


_INTEGER = np.dtype(np.int64)


def _seen_as(taken: Any, made: str, x: Any) -> Any:
    """The bits of a number as another one."""
    return taken(x).view(made)


def _integer(x: Any) -> Any:
    """int64, but addresses and indices stay Python's integers."""
    return int(x) if type(x) in (int, bool) else _INTEGER.type(x)


class _Names(dict[str, Any]):
    """What names in generated source mean here."""

    def __init__(self, machine: _Machine) -> None:
        super().__init__({c: np.dtype(c).type for c in _CODES})
        self["i8"] = _integer
        self.machine = machine
        places = ["thread_x", "thread_y", "thread_z"], ["block_x", "block_y", "block_z"]
        for d, name in enumerate(places[0]):
            self[name] = lambda d=d: machine.thread[d]
        for d, name in enumerate(places[1]):
            self[name] = lambda d=d: machine.block[d]
        for d, name in enumerate(["threads_x", "threads_y", "threads_z", "blocks_x", "blocks_y", "blocks_z"]):
            self[name] = lambda d=d: machine.sizes[d]
        shared = types.SimpleNamespace(array=machine.shared)
        self["cuda"] = types.SimpleNamespace(shared=shared, jit=lambda **_: lambda f: f)
        for c in ("i4", "i8"):
            self[f"div_{c}"] = lambda x, y: int(x) // int(y)
            self[f"rem_{c}"] = lambda x, y: int(x) % int(y)
        # The words of random numbers' samplers (see `names`).
        self.update(sqrt=np.sqrt, floor=np.floor)
        for word, taken, made in (("bits", "f8", "u8"), ("number", "u8", "f8")):
            self[word] = functools.partial(_seen_as, np.dtype(taken).type, made)
        for word, taken, made in (("bits4", "f4", "u4"), ("number4", "u4", "f4")):
            self[word] = functools.partial(_seen_as, np.dtype(taken).type, made)

    def run(self, text: str, tree: Any = None) -> dict[str, Any]:
        """The globals that a text leaves. (A plain dictionary, which Python looks things up in quickly.)"""
        found: dict[str, Any] = {}
        stack = [syntax.compiled(text if tree is None else tree, remember(text))]
        whole = stack[0]
        while stack:
            code = stack.pop()
            stack += [c for c in code.co_consts if isinstance(c, types.CodeType)]
            for name in code.co_names:
                with contextlib.suppress(KeyError):  # (of Python's own, and of attributes)
                    found[name] = self[name]
        exec(whole, found)
        return found

    def __missing__(self, name: str) -> Any:
        found = _MEMORY.match(name)
        if found is not None:
            what, lanes, c = found.groups()
            run = getattr(self.machine, what)
            made: Any = functools.partial(run, np.dtype(c), int(lanes or 1))
        elif atomic := _ATOMIC.match(name):
            made = functools.partial(self.machine.update, np.dtype(atomic[2]), atomic[1])
        else:
            stem, _, c = name.rpartition("_")
            if c not in _CODES:
                raise KeyError(name)
            from mirabelle.backends.gpu import operations

            made = operations.simulated_function(stem, c)
        self[name] = made
        return made
