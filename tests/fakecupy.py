"""A CuPy without a card, to test the driver of NVIDIA's: memory is the host's, and calls are noted."""

import contextlib
import ctypes
import types

import numpy as np


class OutOfMemoryError(MemoryError):
    def __init__(self, size):
        super().__init__(size)
        self._size = size


class CUDARuntimeError(RuntimeError):
    pass


class Memory:
    def __init__(self, size, made):
        self.bytes = np.zeros(size + 16, np.uint8)
        self.ptr = int(self.bytes.__array_interface__["data"][0]) + 8
        self.size = size
        made[self.ptr] = size


class MemoryPointer:
    def __init__(self, mem, offset):
        self.mem = mem
        self.ptr = mem.ptr + offset


class UnownedMemory:
    def __init__(self, ptr, size, owner, device_id):
        self.ptr, self.size, self._owner, self.device_id = ptr, size, owner, device_id


class Array:
    """A cupy.ndarray."""

    def __init__(self, shape, dtype, memptr, strides):
        self.shape, self.dtype, self.data, self.strides = shape, np.dtype(dtype), memptr, strides
        self.size = int(np.prod(shape))

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, *, stream=None, max_version=None):
        shown = type("Shown", (), {})()
        shown.__array_interface__ = {
            "shape": self.shape, "strides": self.strides, "typestr": self.dtype.str,
            "data": (self.data.ptr, False), "version": 3,
        }  # fmt: skip
        shown.array = self
        return np.asarray(shown).__dlpack__(max_version=max_version)


class FakeCupy:
    """The module, as far as the driver knows it. `log` has what was asked of the card, in order."""

    __name__ = "cupy"
    ndarray = Array

    def __init__(self, room=1 << 20, cards=1):
        self.log = log = []
        self.made = {}
        self.room = room
        self.entered = []
        self.allocator = None
        self.fails = None
        self.limit = 0
        numbers = iter(range(101, 1000))
        outer = self

        class Stream:
            def __init__(self, null=False, non_blocking=False):
                self.ptr = 0 if null else next(numbers)

            def __enter__(self):
                outer.entered.append(self)
                return self

            def __exit__(self, *_):
                outer.entered.pop()

            def synchronize(self):
                log.append(("synchronize", self.ptr))

            def wait_event(self, event):
                log.append(("wait", self.ptr, event.stream))

            def begin_capture(self):
                log.append(("begin", self.ptr))

            def end_capture(self):
                log.append(("end", self.ptr))
                if outer.fails:
                    raise CUDARuntimeError(outer.fails)
                return types.SimpleNamespace(launch=lambda: log.append(("graph", outer.current().ptr)))

        class Event:
            def __init__(self, disable_timing=False):
                self.stream = None

            def record(self, stream):
                self.stream = stream.ptr

        class Device:
            def __init__(self, index):
                self.id = index

            def __enter__(self):
                return self

            def __exit__(self, *_):
                pass

            def synchronize(self):
                log.append("drain")

        self.null = Stream(null=True)
        runtime = types.SimpleNamespace(
            CUDARuntimeError=CUDARuntimeError,
            getDeviceCount=lambda: cards,
            getDeviceProperties=lambda i: {
                "name": b"A card", "multiProcessorCount": 132, "major": 9, "minor": 0
            },
            getDevice=lambda: 0,
            memGetInfo=lambda: (1 << 30, 1 << 34),
            memcpyAsync=self.copy,
            pointerGetAttributes=lambda p: types.SimpleNamespace(type=2 if self.owns(p) else 0, device=0),
        )  # fmt: skip
        pool = types.SimpleNamespace(
            used_bytes=lambda: 1000,
            total_bytes=lambda: 3000,
            get_limit=lambda: self.limit,
            set_limit=lambda size: setattr(self, "limit", size),
            free_all_blocks=lambda: log.append("free blocks"),
        )
        plans = types.SimpleNamespace(clear=lambda: log.append("free plans"))
        self.get_default_memory_pool = lambda: pool
        self.fft = types.SimpleNamespace(config=types.SimpleNamespace(get_plan_cache=lambda: plans))
        self.cuda = types.SimpleNamespace(
            memory=types.SimpleNamespace(
                OutOfMemoryError=OutOfMemoryError,
                get_allocator=lambda: self.allocator or self.allocate,
                alloc=lambda n: (self.allocator or self.allocate)(n),
            ),
            using_allocator=self.using_allocator, get_current_stream=self.current, runtime=runtime,
            Stream=Stream, Event=Event, Device=Device, MemoryPointer=MemoryPointer, UnownedMemory=UnownedMemory,
        )  # fmt: skip

    def allocate(self, nbytes):
        if nbytes > self.room:
            raise OutOfMemoryError(nbytes)
        self.log.append(("allocate", nbytes, self.current().ptr))
        return MemoryPointer(Memory(nbytes, self.made), 0)

    @contextlib.contextmanager
    def using_allocator(self, allocator):
        before, self.allocator = self.allocator, allocator
        try:
            yield
        finally:
            self.allocator = before

    def current(self):
        return self.entered[-1] if self.entered else self.null

    def copy(self, to, address, nbytes, kind, stream):
        self.log.append(("copy", kind, stream))
        ctypes.memmove(to, address, nbytes)

    def owns(self, address):
        return any(start <= address < start + max(size, 1) for start, size in self.made.items())

    def asarray(self, array):
        return array

    def empty(self, shape, dtype):
        return Array(shape, dtype, self.allocate(0), (8,) * len(shape))

    def said(self):
        """What was noted since the last time."""
        noted = list(self.log)
        self.log.clear()
        return noted
