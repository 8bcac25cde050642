"""Graphs of kernels by the driver: each kernel is a node that waits for some others, and can be told of new
arguments once the graph is there.

From Hopper on, a kernel that follows another is set up while that one still runs: all kernels begin with an
instruction that then waits (see modules.py).
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from mirabelle.backends.cuda.modules import EARLY_FROM
from mirabelle.backends.gpu.lib_blas import ON_CARD
from mirabelle.backends.gpu.plans import BLAS_BYTES
from mirabelle.dispatch.errors import DeviceError


class _Kernel(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS: what a node launches."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("parameters", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
        # (those of the second version)
        ("kernel", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    )


class _Calls:
    """The driver's functions."""

    def __init__(self, library: Any) -> None:
        pointer, handle = ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)
        self.create = self._function(library, "cuGraphCreate", handle, ctypes.c_uint)
        self.add = self._function(
            library, "cuGraphAddKernelNode", handle, pointer, pointer, ctypes.c_size_t, pointer
        )
        self.instantiate = self._function(
            library, "cuGraphInstantiateWithFlags", handle, pointer, ctypes.c_ulonglong
        )
        self.launch = self._function(library, "cuGraphLaunch", pointer, pointer)
        self.tell = self._function(library, "cuGraphExecKernelNodeSetParams", pointer, pointer, pointer)
        self.begin = self._function(library, "cuStreamBeginCapture", pointer, ctypes.c_int)
        self.end = self._function(library, "cuStreamEndCapture", pointer, handle)
        self.add_graph = self._function(
            library, "cuGraphAddChildGraphNode", handle, pointer, pointer, ctypes.c_size_t, pointer
        )
        self.tell_graph = self._function(
            library, "cuGraphExecChildGraphNodeSetParams", pointer, pointer, pointer
        )
        # (of newer drivers)
        self.order: Any = None
        if hasattr(library, "cuGraphAddDependencies_v2"):
            self.order = self._function(
                library, "cuGraphAddDependencies", pointer, handle, handle, pointer, ctypes.c_size_t
            )
        self.destroy = self._function(library, "cuGraphExecDestroy", pointer)
        self.destroy_nodes = self._function(library, "cuGraphDestroy", pointer)
        self._name = self._function(library, "cuGetErrorName", ctypes.c_int, ctypes.POINTER(ctypes.c_char_p))

    @staticmethod
    def _function(library: Any, name: str, *types: Any) -> Any:
        # (The second version's argument is longer, and begins as the first one's.)
        found = getattr(library, f"{name}_v2", None) or getattr(library, name)
        found.argtypes = types
        found.restype = ctypes.c_int
        return found

    def checked(self, status: int, what: str) -> None:
        if status:
            said = ctypes.c_char_p()
            self._name(status, ctypes.byref(said))
            name = (said.value or b"").decode() or f"error {status}"
            raise DeviceError(
                f"The card's driver refuses {what} of a compiled program: {name}. Call the function as it is, "
                "without mb.compile, to see whether one of its statements fails by itself."
            )


@functools.cache
def _calls() -> _Calls | None:
    for name in ("libcuda.so.1", "nvcuda.dll"):
        try:
            return _Calls(ctypes.CDLL(name))
        except (OSError, AttributeError):
            continue
    return None


def known() -> bool:
    """Does the driver have such graphs?"""
    return _calls() is not None


# An edge from a kernel to one that may be set up while it runs: what it does then waits by itself.
_EARLY = (ctypes.c_ubyte * 8)(1, 0, 1)


class KernelGraph:
    """Kernels, and calls of cuBLAS, that are launched by one call, each after those it waits for."""

    def __init__(self, driver: Any, launches: list[tuple[Any, list[Any]]], after: list[list[int]]) -> None:
        calls = _calls()
        assert calls is not None
        self._calls = calls
        self._graph = ctypes.c_void_p()
        self._exec = ctypes.c_void_p()
        # The code that the graph runs must stay loaded.
        self._runs = [run for run, _ in launches]
        self._nodes: list[Any] = []
        calls.checked(calls.create(ctypes.byref(self._graph), 0), "the graph")
        followers = [0] * len(launches)
        for earlier in after:
            for i in earlier:
                followers[i] += 1
        early = calls.order is not None and driver.capability >= EARLY_FROM
        for (run, values), earlier in zip(launches, after, strict=True):
            node: Any = _Call(calls, driver, run) if hasattr(run, "call") else _Node(calls, run)
            node.pack(values)
            # A kernel that follows one other alone is set up while that one still runs.
            chained = (
                early
                and len(earlier) == 1
                and followers[earlier[0]] == 1
                and node.is_kernel
                and self._nodes[earlier[0]].is_kernel
            )
            before = [] if chained else [self._nodes[i].handle for i in earlier]
            node.add(self._graph, (ctypes.c_void_p * len(before))(*before), len(before))
            self._nodes.append(node)
            if chained and calls.order is not None:
                first = ctypes.c_void_p(self._nodes[earlier[0]].handle)
                second = ctypes.c_void_p(node.handle)
                status = calls.order(self._graph, ctypes.byref(first), ctypes.byref(second), _EARLY, 1)
                calls.checked(status, "an order of kernels")
        # (Messages go before kernels that have begun earlier: others wait for them.)
        flags = _PRIORITIES if any(hasattr(run, "link") for run, _ in launches) else 0
        calls.checked(calls.instantiate(ctypes.byref(self._exec), self._graph, flags), "to make the graph")
        self.run = _runner(calls, self._exec.value, driver._stream)
        for holder in {id(run.link): run.link for run, _ in launches if hasattr(run, "link")}.values():
            holder.graphs.add(self)

    def tell(self, number: int, values: list[Any]) -> None:
        """Give a launch other arguments."""
        node = self._nodes[number]
        node.pack(values)
        status = node.tell(self._exec)
        if status:
            self._calls.checked(status, "new addresses")

    def close(self) -> None:
        """Give up the graph: it is not run again. (NCCL waits for graphs that have calls of it.)"""
        graph, self._graph = self._graph, ctypes.c_void_p()
        made, self._exec = self._exec, ctypes.c_void_p()
        if made.value:
            self._calls.destroy(made)
        if graph.value:
            self._calls.destroy_nodes(graph)

    def __del__(self) -> None:
        self.close()


def _runner(calls: _Calls, graph: Any, stream: Any) -> Any:
    launch = calls.launch

    def run() -> None:
        status = launch(graph, stream().ptr)
        if status:
            calls.checked(status, "to run the graph")

    return run


class _Node:
    """What a node is told: its kernel, and the memory in which its arguments stand."""

    __slots__ = ("_calls", "_data", "_pack", "_parameters", "_said", "address", "handle")

    is_kernel = True

    def __init__(self, calls: _Calls, run: Any) -> None:
        grid, block, count, start, self._pack = run.how
        self._calls = calls
        self._data = bytearray(start)
        at = ctypes.addressof(ctypes.c_char.from_buffer(self._data))
        self._parameters = (ctypes.c_void_p * count)(*[at + 8 * i for i in range(count)])
        self._said = _Kernel(
            run.kernel.ptr, (ctypes.c_uint * 3)(*grid), (ctypes.c_uint * 3)(*block), 0,
            ctypes.addressof(self._parameters), None, None, None,
        )  # fmt: skip
        self.address = ctypes.addressof(self._said)
        self.handle = 0

    def pack(self, values: list[Any]) -> None:
        self._pack(self._data, 0, *values)

    def add(self, graph: Any, before: Any, count: int) -> None:
        made = ctypes.c_void_p()
        status = self._calls.add(ctypes.byref(made), graph, before, count, self.address)
        self._calls.checked(status, "a kernel")
        self.handle = made.value or 0

    def tell(self, graph: Any) -> int:
        return int(self._calls.tell(graph, self.handle, self.address))


class _Call:
    """A call of a library, cuBLAS or NCCL: a graph in the graph, captured for each set of addresses."""

    __slots__ = ("_calls", "_driver", "_run", "_stream", "_values", "handle")

    is_kernel = False

    def __init__(self, calls: _Calls, driver: Any, run: Any) -> None:
        self._calls = calls
        self._driver = driver
        self._run = run
        # (What is captured has the stream's priority.)
        self._stream = run.link.stream if hasattr(run, "link") else capturing_stream(driver)
        self._values: list[int] = []
        self.handle = 0

    def pack(self, values: list[Any]) -> None:
        self._values = list(values)

    def _captured(self) -> Any:
        calls, stream = self._calls, self._stream.ptr
        what = self._run.word
        calls.checked(calls.begin(stream, _RELAXED), f"to be recorded: {what}")
        try:
            if hasattr(self._run, "give"):
                self._run.give(stream, self._values)
            else:
                *addresses, memory = self._values
                blas_of(self._driver)(self._run.call, stream, addresses, memory)
        finally:
            made = ctypes.c_void_p()
            status = calls.end(stream, ctypes.byref(made))
        calls.checked(status, what)
        return made

    def add(self, graph: Any, before: Any, count: int) -> None:
        child, made = self._captured(), ctypes.c_void_p()
        status = self._calls.add_graph(ctypes.byref(made), graph, before, count, child)
        self._calls.destroy_nodes(child)
        self._calls.checked(status, self._run.word)
        self.handle = made.value or 0

    def tell(self, graph: Any) -> int:
        child = self._captured()
        status = int(self._calls.tell_graph(graph, self.handle, child))
        self._calls.destroy_nodes(child)
        return status


# The nodes of a graph have the priorities of the streams that they were captured from.
_PRIORITIES = 8
# The mode of a capture in which code may be loaded meanwhile.
_RELAXED = 2


@functools.cache
def capturing_stream(driver: Any) -> Any:
    return driver.new_stream()


@functools.cache
def blas_of(driver: Any) -> Any:
    return _Blas(driver)


class _Blas:
    """cuBLAS as it is, for CuPy's way to it cannot be captured."""

    def __init__(self, driver: Any) -> None:
        self._library: Any = ctypes.CDLL(_path_of("libcublas.so"))
        handle = ctypes.c_void_p()
        with driver.device:
            self._checked(self._library.cublasCreate_v2(ctypes.byref(handle)))
        self._handle = handle.value or 0
        self._functions: dict[str, Any] = {}

    @staticmethod
    def _checked(status: int) -> None:
        if status:
            raise DeviceError(f"cuBLAS refuses a product of a compiled program: its error {status}.")

    def __call__(self, call: Any, stream: int, addresses: list[int], memory: int) -> None:
        """A call in a stream, with memory to work in."""
        word = ctypes.c_longlong
        handle = ctypes.c_void_p(self._handle)
        library = self._library
        self._checked(library.cublasSetStream_v2(handle, ctypes.c_void_p(stream)))
        self._checked(
            library.cublasSetWorkspace_v2(handle, ctypes.c_void_p(memory), ctypes.c_size_t(BLAS_BYTES))
        )
        name = call.name
        found = self._functions.get(name)
        if found is None:
            found = self._functions[name] = getattr(library, function_of(name))
        on_card = name[1:] in ON_CARD
        if on_card:
            self._checked(library.cublasSetPointerMode_v2(handle, 1))
        try:
            # (Whole numbers of 32 bits stand in words of 64 like addresses.)
            self._checked(found(*[word(x) for x in call.told(self._handle, addresses)]))
        finally:
            if on_card:
                library.cublasSetPointerMode_v2(handle, 0)


def function_of(name: str) -> str:
    """What cuBLAS calls a function."""
    stem = name[0].upper() + name[1:]
    return f"cublas{stem}" if name.endswith("Batched") else f"cublas{stem}_v2"


def _path_of(name: str) -> str:
    """Where a library that is loaded already lies."""
    with open("/proc/self/maps") as lines:
        for line in lines:
            path = line.rpartition(" ")[2].strip()
            if path.rpartition("/")[2].startswith(name):
                return path
    return name
