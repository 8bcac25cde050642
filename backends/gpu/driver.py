"""What a card offers: memory, copies, kernels, launches, and its library of array functions.

`Driver` says what a backend needs. `cupydriver.py` is one over CuPy; `simulator.py`
another, over the host's memory, that executes kernels' source in Python.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.backends.codegen.element import KernelText
from mirabelle.dispatch.errors import DeviceError

# A launch's dynamic arguments (addresses, then scalars) → nothing.
Launcher = Callable[..., None]


def stray_address(address: int) -> DeviceError:
    """The error for an address that is said to be a card's, and is not."""
    return DeviceError(
        f"The address {address:#x} is no memory of a card that lives: it is the host's, or was given back. "
        "Hand over the array while its library holds it; what the host has is copied with `mb.CuArray(x)`."
    )


class Driver:
    """One card. A family's driver is made when the first array of the family is."""

    # The array module of the card's library: CuPy, or what stands for it.
    library: Any
    name: str
    index: int
    multiprocessors: int = 1
    capability: tuple[int, int] = (0, 0)
    simulated = False
    # Does it look at every access of a user's kernel: for bounds, races, and elements that nobody wrote?
    strict = False
    # Threads of a warp.
    width = 32
    # Does its compiler let a block's and a thread's own arrays be aligned?
    aligns_arrays = True

    def allocate(self, nbytes: int) -> tuple[Any, int]:
        """New memory: what keeps it alive, and its address (aligned to 256 bytes)."""
        raise NotImplementedError

    def figures(self) -> dict[str, int | None]:
        """Bytes of the card's memory: `used` by arrays, `held` for reuse, the `limit`, `total` and `free`."""
        raise NotImplementedError

    def limit_memory(self, nbytes: int | None) -> None:
        """Have at most so many bytes used and held; None for no limit."""
        raise NotImplementedError

    def release(self) -> None:
        """Give what is held for reuse back to the system."""

    def upload(self, address: int, data: np.ndarray) -> None:
        """Copy a dense NumPy array to the card."""
        raise NotImplementedError

    def download(self, data: np.ndarray, address: int) -> None:
        """Copy memory of the card to a dense NumPy array; waits for what is being computed."""
        raise NotImplementedError

    def copy(self, to: int, address: int, nbytes: int) -> None:
        """Copy within the card."""
        raise NotImplementedError

    def copy_from(self, other: Driver, to: int, address: int, nbytes: int) -> None:
        """Copy from another card of the same kind."""
        raise NotImplementedError

    def array(self, view: Any) -> Any:
        """A view as an array of the library, over the same memory."""
        raise NotImplementedError

    def view(self, array: Any, kind: Any) -> Any:
        """An array of the library as a view of type `kind`, over the same memory."""
        raise NotImplementedError

    def is_current(self) -> bool:
        """Is it the card that this thread's calls of the library go to?"""
        return True

    def using(self) -> Any:
        """A block in which the library works on this card, and its errors are ours."""
        return contextlib.nullcontext()

    def attempt(self, run: Callable[..., Any], arrays: list[Any], options: dict[str, Any]) -> Any:
        """Run a routine of the library; once more, if memory that is held for reuse was missing."""
        return run(*arrays, **options)

    # The recordings that are open (see backends/gpu/recording.py), and streams that nobody uses.
    recorders: list[Any]
    idle_streams: list[Any]

    def new_stream(self) -> Any:
        """A stream of the card: an order of work. It has `ptr` and `synchronize()`."""
        raise NotImplementedError

    def current_stream(self) -> Any:
        """The stream that this thread's work goes to."""
        raise NotImplementedError

    def stream_key(self) -> Any:
        """What tells the current stream from others, quickly."""
        return self.current_stream().ptr

    def enter_stream(self, stream: Any) -> None:
        """Let this thread's work go to another stream, until `leave_stream`."""
        raise NotImplementedError

    def leave_stream(self) -> None:
        """Let it go to the stream before."""
        raise NotImplementedError

    def order(self, later: Any, earlier: Any) -> None:
        """What one stream is given from now on waits for what the other has been given so far."""
        raise NotImplementedError

    def drain(self) -> None:
        """Wait until all the card was given is done."""
        raise NotImplementedError

    def recorder(self, family: Any) -> Any:
        """A recording of this thread's work, for a graph."""
        raise NotImplementedError

    def stream_number(self) -> int:
        """The current stream, as the CUDA array interface and DLPack name it."""
        return 1

    def lent(self, view: Any, holder: Any) -> Any:
        """A view as an array of the library for somebody else: as long as it lives, it holds `holder`."""
        raise NotImplementedError

    def borrowed(self, array: Any, kind: Any) -> Any:
        """An array of any library on this card as a view of type `kind`, over the same memory."""
        raise NotImplementedError

    def card_at(self, address: int) -> int:
        """The number of the card whose memory an address lies in."""
        raise NotImplementedError

    def load(self, source: KernelText, functions: dict[str, Any], contract: bool = False) -> Any:
        """Compile and load a kernel. `functions` are the users' functions that its source calls."""
        raise NotImplementedError

    def launcher(
        self,
        kernel: Any,
        codes: tuple[str, ...],
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        fixed: tuple[int, ...],
    ) -> Launcher:
        """A function of a launch's dynamic arguments, on the current stream.

        `codes` are the types of all parameters; the last of them are `fixed`.
        """
        raise NotImplementedError

    # Are there graphs of kernels, `kernel_graph`?
    has_graphs = False

    def kernel_graph(self, launches: list[tuple[Launcher, list[Any]]], after: list[list[int]]) -> Any:
        """Launches that are done by one call, each after those with the numbers given for it.

        It has `run()`, on the current stream, and `tell(number, values)`, after which a launch has other
        arguments.
        """
        raise NotImplementedError

    def synchronize(self) -> None:
        """Wait until everything queued on the current stream is done."""
        raise NotImplementedError
