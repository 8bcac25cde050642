"""Streams and graphs of a card, through CuPy.

CuPy's pool gives memory out again in the order of the stream that asked for it first. A block in a
stream begins after what was queued before, and what follows waits for it (see arraytypes/streams.py): so what a
block lets go of is not used anew while the card still reads it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from mirabelle.backends.gpu.driver import Driver
from mirabelle.backends.gpu.recording import Recorder, recording, refuse_reading
from mirabelle.dispatch.errors import DeviceError


class CupyStreams(Driver):
    """What a driver knows of streams."""

    device: Any

    def new_stream(self) -> Any:
        if self.idle_streams:
            return self.idle_streams.pop()
        with self.device:
            # One that the default stream does not wait for, nor waits for.
            return self.library.cuda.Stream(non_blocking=True)

    def current_stream(self) -> Any:
        with self.device:
            return self.library.cuda.get_current_stream()

    def enter_stream(self, stream: Any) -> None:
        with self.device:
            stream.__enter__()

    def leave_stream(self) -> None:
        with self.device:
            self.library.cuda.get_current_stream().__exit__()

    def order(self, later: Any, earlier: Any) -> None:
        if later.ptr == earlier.ptr:
            return
        with self.device:
            done = self.library.cuda.Event(disable_timing=True)
            done.record(earlier)
            later.wait_event(done)

    def drain(self) -> None:
        if self.recorders and recording(self) is not None:
            raise refuse_reading("the card is waited for")
        self.device.synchronize()

    def recorder(self, family: Any) -> CupyRecorder:
        return CupyRecorder(self, family)


class CupyRecorder(Recorder):
    """Lets CUDA capture what goes to a stream of the recording's own.

    The mode is CuPy's default, the relaxed one: kernels may be loaded, and memory be asked for, meanwhile.
    """

    def begin(self) -> None:
        driver = self.driver
        cuda = driver.library.cuda
        # What is copied from the host meanwhile goes by another stream, at once.
        self.side, self.stream = driver.new_stream(), driver.new_stream()
        self.outer = driver.current_stream()
        driver.order(self.stream, self.outer)
        self._allocate = cuda.memory.get_allocator()
        with contextlib.ExitStack() as entered:
            entered.enter_context(cuda.using_allocator(self.allocate))
            driver.enter_stream(self.stream)
            entered.callback(driver.leave_stream)
            with driver.device:
                self.stream.begin_capture()
            self._entered = entered.pop_all()
        driver.recorders.append(self)

    def allocate(self, nbytes: int) -> Any:
        """Memory for this thread, CuPy's own routines included: the graph holds all of it."""
        with self.outer:  # in whose order it is used again, once the graph is gone
            pointer = self._allocate(nbytes)
        if nbytes:
            self.allocated(pointer.mem.ptr, pointer)
        return pointer

    def upload(self, address: int, data: Any) -> None:
        """Copy from the host now: a graph would copy again what the host's memory holds then."""
        driver = self.driver
        driver.order(self.side, self.outer)
        driver.copy_in(address, data, self.side)

    def end(self) -> Callable[[], None]:
        driver = self.driver
        driver.recorders.remove(self)
        self.forget()
        try:
            with driver.device:
                graph = self.stream.end_capture()
        except Exception as e:
            raise DeviceError(
                f"This block cannot be captured as a graph ({e}). The usual cause is a routine that waits for "
                "the card, to learn a size or whether it succeeded, or a library that has a stream of its own. "
                "Leave it out of the block. Arrays that were there before are what they were."
            ) from None
        finally:
            self._entered.close()
            driver.idle_streams.append(self.side)
        # (a stream whose capture failed is not used again)
        driver.idle_streams.append(self.stream)
        replay = Replay(driver, graph, (self.held, self.functions))
        driver.graphs.add(replay)
        return replay


class Replay:
    """A CUDA graph, ready to run on the current stream, with the memory and the code that it needs."""

    __slots__ = ("__weakref__", "driver", "graph", "held")

    def __init__(self, driver: Any, graph: Any, held: Any) -> None:
        self.driver = driver
        self.graph = graph
        self.held = held

    def __call__(self) -> None:
        driver = self.driver
        if driver._here() == driver.index:
            self.graph.launch()
            return
        with driver.device:
            self.graph.launch()
