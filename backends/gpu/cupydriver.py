"""Cards through CuPy: its memory pool and streams, and the driver's launch.

CuPy has one interface for the cards of both makers: where it is built for ROCm, `cuda.runtime` and
`cuda.driver` are HIP's.

A launch costs what the driver takes and little more: all parameters stand in one block of memory,
of which only addresses and scalars change from one launch to the next.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import struct
import textwrap
import threading
import types
import weakref
from typing import Any

import numpy as np

from mirabelle.arraytypes.gpu import view_at
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.backends.gpu.cupystreams import CupyStreams
from mirabelle.backends.gpu.driver import Driver, Launcher, stray_address
from mirabelle.backends.gpu.recording import recording, refuse_reading
from mirabelle.dispatch.errors import DeviceError

# How a parameter of each type is packed into 8 bytes.
_FORMATS = {"f8": "d", "f4": "f4x", "u8": "Q"}


def word_format(codes: tuple[str, ...]) -> str:
    """How parameters of these types are packed."""
    return "<" + "".join([_FORMATS.get(c, "q") for c in codes])


# A launch, written out for a number of values: collecting them and spreading them out again takes as long as
# all the rest that is not the driver's.
_RUN = """
found = blocks.get(ident()) or parameters()
pack(found[0], 0, {values})
if recorders:
    recorder = recording(driver)
    if recorder is not None:
        recorder.launched(kernel, ({values}))
launch(function, gx, gy, gz, bx, by, bz, 0, stream().ptr, found[1], 0)
"""


@functools.cache
def _code(count: int, several: bool) -> types.CodeType:
    """Of so many values; where there are several cards, on the one that the arrays are on."""
    values = "".join(f"v{i}, " for i in range(count))
    body = _RUN.format(values=values)
    text = textwrap.indent(body, " ")
    if several:
        text = f"\n if here() != index:\n  with device:{textwrap.indent(body, '   ')}   return{text}"
    space: dict[str, Any] = {}
    exec(f"def run({values}):{text}", space)
    code: types.CodeType = space["run"].__code__
    return code


class CupyDriver(CupyStreams):
    """One card that CuPy knows. Subclasses make kernels for it: `load`."""

    def _start(self, cupy: Any, index: int) -> None:
        """What CuPy says and gives."""
        self.library = cupy
        self.index = index
        self.device = cupy.cuda.Device(index)
        properties = cupy.cuda.runtime.getDeviceProperties(index)
        self.name = properties["name"].decode()
        self.multiprocessors = int(properties["multiProcessorCount"])
        self.capability = int(properties["major"]), int(properties["minor"])
        self._pool_alloc = cupy.cuda.memory.alloc
        self._runtime = cupy.cuda.runtime
        self._stream = cupy.cuda.get_current_stream
        self._here = cupy.cuda.runtime.getDevice
        # (streams are asked for once a launch)
        from cupy_backends.cuda.api import driver

        self._launch = driver.launchKernel
        self._peers = {index}
        self.several = cupy.cuda.runtime.getDeviceCount() > 1
        self.recorders = []
        self.idle_streams = []
        self.graphs: weakref.WeakSet[Any] = weakref.WeakSet()

    def allocate(self, nbytes: int) -> tuple[Any, int]:
        if self._here() != self.index:
            with self.device:
                return self.allocate(nbytes)
        try:
            memory = self._pool_alloc(nbytes)
        except self.library.cuda.memory.OutOfMemoryError:
            pass
        else:
            return memory, memory.ptr
        return self._allocate_again(nbytes)

    def _allocate_again(self, nbytes: int) -> tuple[Any, int]:
        """Once more, after what the pool holds unused and what only cycles hold is given back."""
        gc.collect()
        self.release()
        try:
            memory = self._pool_alloc(nbytes)
        except self.library.cuda.memory.OutOfMemoryError:
            from mirabelle.backends.gpu.memory import exhausted

            raise exhausted(self, nbytes) from None
        return memory, memory.ptr

    def figures(self) -> dict[str, int | None]:
        with self.device:
            pool = self.library.get_default_memory_pool()
            used, together, limit = pool.used_bytes(), pool.total_bytes(), pool.get_limit()
            free, total = self._runtime.memGetInfo()
        return {
            "used": int(used),
            "held": int(together) - int(used),
            "limit": int(limit) or None,
            "total": int(total),
            "free": int(free),
        }

    def limit_memory(self, nbytes: int | None) -> None:
        with self.device:
            # (to CuPy, 0 is no limit)
            self.library.get_default_memory_pool().set_limit(size=0 if nbytes is None else max(nbytes, 1))

    def release(self) -> None:
        with self.device:
            # Plans of Fourier transforms hold memory to work in; but a graph may have some.
            if not self.graphs and not self.recorders:
                self.library.fft.config.get_plan_cache().clear()
            self.library.get_default_memory_pool().free_all_blocks()

    def upload(self, address: int, data: np.ndarray) -> None:
        if self.recorders and (recorder := recording(self)) is not None:
            recorder.upload(address, data)
        else:
            self.copy_in(address, data, self.current_stream())

    def copy_in(self, address: int, data: np.ndarray, stream: Any) -> None:
        """Copy from the host in the order of a stream, and wait: the host may write its memory then."""
        with self.device:
            self._runtime.memcpyAsync(address, data.__array_interface__["data"][0], data.nbytes, 1, stream.ptr)
            stream.synchronize()

    def download(self, data: np.ndarray, address: int) -> None:
        if self.recorders and recording(self) is not None:
            raise refuse_reading("an array is fetched")
        with self.device:
            self._runtime.memcpyAsync(
                data.__array_interface__["data"][0], address, data.nbytes, 2, self._stream().ptr
            )
            self._stream().synchronize()

    def copy(self, to: int, address: int, nbytes: int) -> None:
        if self.recorders and (recorder := recording(self)) is not None:
            recorder.named((to, address))
        with self.device:
            self._runtime.memcpyAsync(to, address, nbytes, 3, self._stream().ptr)

    def copy_from(self, other: Driver, to: int, address: int, nbytes: int) -> None:
        if (self.recorders or other.recorders) and (recording(self) or recording(other)):
            raise refuse_reading("an array is copied to another card")
        self._meet(other.index)
        # What the other card is still computing must be there first.
        with other.device:  # type: ignore[attr-defined]
            done = self.library.cuda.Event(disable_timing=True)
            done.record(self._stream())
        with self.device:
            self._stream().wait_event(done)
            self._runtime.memcpyPeerAsync(to, self.index, address, other.index, nbytes, self._stream().ptr)
            arrived = self.library.cuda.Event(disable_timing=True)
            arrived.record(self._stream())
        with other.device:  # type: ignore[attr-defined]
            # The source may be given back, and used anew, once it has been read.
            self._stream().wait_event(arrived)

    def _meet(self, other: int) -> None:
        """Let both cards read each other's memory, where their wires allow; else copies go by the host."""
        if other in self._peers:
            return
        self._peers.add(other)
        for here, there in ((self.index, other), (other, self.index)):
            if self._runtime.deviceCanAccessPeer(here, there):
                with self.library.cuda.Device(here):
                    self._runtime._deviceEnsurePeerAccess(there)

    def array(self, view: Any) -> Any:
        if not view.size:
            with self.device:
                return self.library.empty(view.shape, view.dtype)
        owner, start = view.owner, view.ptr
        if self.recorders and (recorder := recording(self)) is not None:
            recorder.named((start,))
        cupy = self.library
        if type(owner) is cupy.cuda.MemoryPointer:
            first = owner.ptr
            pointer = owner if first == start else owner + (start - first)
        else:
            memory = cupy.cuda.UnownedMemory(start, view.nbytes, owner, self.index)
            pointer = cupy.cuda.MemoryPointer(memory, 0)
        return cupy.ndarray(view.shape, view.dtype, pointer, view.strides)

    def view(self, array: Any, kind: Any) -> Any:
        if not isinstance(array, self.library.ndarray):
            array = self.library.asarray(array)
        pointer = array.data
        return view_at(kind, pointer, pointer.ptr, array.shape, array.dtype, array.strides)

    def is_current(self) -> bool:
        return not self.several or bool(self._here() == self.index)

    def using(self) -> Any:
        return _Using(self)

    def attempt(self, run: Any, arrays: list[Any], options: dict[str, Any]) -> Any:
        try:
            return run(*arrays, **options)
        except self.library.cuda.memory.OutOfMemoryError:
            pass
        except (NotImplementedError, RuntimeError) as e:
            if "captur" not in str(e):
                raise
            raise DeviceError(
                f"This routine of CuPy's cannot be recorded in a block of mb.capture(): {str(e).rstrip('.')}. "
                "Call it before the block or after it."
            ) from None
        gc.collect()
        self.release()
        return run(*arrays, **options)

    def stream_number(self) -> int:
        with self.device:
            # The legacy default stream is 0 to CUDA, and 1 to others.
            return int(self._stream().ptr) or 1

    def stream_key(self) -> Any:
        return self._stream().ptr

    def lent(self, view: Any, holder: Any) -> Any:
        if not view.size:
            return self.array(view)
        cuda = self.library.cuda
        memory = cuda.UnownedMemory(view.ptr, view.nbytes, holder, self.index)
        return self.library.ndarray(view.shape, view.dtype, cuda.MemoryPointer(memory, 0), view.strides)

    def borrowed(self, array: Any, kind: Any) -> Any:
        cupy = self.library
        with self.device:
            if not isinstance(array, cupy.ndarray):
                array = cupy.from_dlpack(array) if hasattr(array, "__dlpack__") else cupy.asarray(array)
            checked_dtype(array.dtype)
            if array.size:
                there = self.card_at(array.data.ptr)
                if there != self.index:
                    raise DeviceError(
                        f"The array lies on card {there}, and is said to be on card {self.index}. Share it "
                        f"where it is, `mb.asarray(x, device=mb.{kind.family.on(0).__name__}.on({there}))`."
                    )
            return self.view(array, kind)

    def card_at(self, address: int) -> int:
        try:
            said = self._runtime.pointerGetAttributes(address)
        except self._runtime.CUDARuntimeError:
            raise stray_address(address) from None
        if said.type not in (2, 3):  # neither a card's memory nor managed memory
            raise stray_address(address)
        return int(said.device)

    def launcher(
        self,
        kernel: Any,
        codes: tuple[str, ...],
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        fixed: tuple[int, ...],
    ) -> Launcher:
        moving = len(codes) - len(fixed)
        pack = struct.Struct(word_format(codes[:moving])).pack_into
        start = struct.pack(word_format(codes), *[0] * moving, *fixed)
        blocks: dict[int, tuple[Any, int, Any]] = {}

        def parameters() -> tuple[Any, int, Any]:
            # A block of parameters for each thread: the driver copies it when it launches.
            data = bytearray(start)
            address = ctypes.addressof(ctypes.c_char.from_buffer(data))
            pointers = (ctypes.c_void_p * len(codes))(*[address + 8 * i for i in range(len(codes))])
            if len(blocks) > 64:  # of threads that have ended, mostly
                blocks.clear()
            found = blocks[threading.get_ident()] = data, ctypes.addressof(pointers), pointers
            return found

        run = types.FunctionType(
            _code(moving, self.several),
            {
                "here": self._here, "index": self.index, "device": self.device,
                "blocks": blocks, "ident": threading.get_ident, "parameters": parameters, "pack": pack,
                "recorders": self.recorders, "recording": recording, "driver": self, "kernel": kernel,
                "launch": self._launch, "function": kernel.ptr, "stream": self._stream,
                **dict(zip(("gx", "gy", "gz", "bx", "by", "bz"), (*grid, *block), strict=True)),
            },
        )  # fmt: skip
        run.kernel = kernel  # type: ignore[attr-defined] # its module lives as long as the plan
        # What a graph is told of it.
        run.how = grid, block, len(codes), start, pack  # type: ignore[attr-defined]
        return run

    def synchronize(self) -> None:
        if self.recorders and recording(self) is not None:
            raise refuse_reading("the stream is waited for")
        with self.device:
            self._stream().synchronize()


class _Using:
    """A block on a card, out of which CuPy's "out of memory" comes as ours."""

    __slots__ = ("driver", "entered")

    def __init__(self, driver: CupyDriver) -> None:
        self.driver = driver
        self.entered = False

    def __enter__(self) -> None:
        if not self.driver.is_current():
            self.driver.device.__enter__()
            self.entered = True

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self.entered:
            self.driver.device.__exit__()
        if error is None:
            return
        if isinstance(error, self.driver.library.cuda.memory.OutOfMemoryError):
            from mirabelle.backends.gpu.memory import exhausted

            raise exhausted(self.driver, int(getattr(error, "_size", 0))) from None
        if self.driver.recorders and "StreamCapture" in str(error):
            raise refuse_reading(f"a routine of CuPy waits for the card ({error})") from None
