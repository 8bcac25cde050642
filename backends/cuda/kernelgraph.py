"""Graphs of kernels by the driver: each kernel is a node that waits for some others, and can be told of new
arguments once the graph is there.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

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


class KernelGraph:
    """Kernels that are launched by one call, each after those it waits for."""

    def __init__(self, driver: Any, launches: list[tuple[Any, list[Any]]], after: list[list[int]]) -> None:
        calls = _calls()
        assert calls is not None
        self._calls = calls
        self._stream = driver._stream
        self._launch = calls.launch
        self._graph = ctypes.c_void_p()
        self._exec = ctypes.c_void_p()
        # The code that the graph runs must stay loaded.
        self._kernels = [run.kernel for run, _ in launches]
        self._nodes: list[Any] = []
        calls.checked(calls.create(ctypes.byref(self._graph), 0), "the graph")
        handles: list[int] = []
        for (run, values), earlier in zip(launches, after, strict=True):
            node = _Node(run)
            node.pack(values)
            made = ctypes.c_void_p()
            before = (ctypes.c_void_p * len(earlier))(*[handles[i] for i in earlier])
            status = calls.add(ctypes.byref(made), self._graph, before, len(earlier), node.address)
            calls.checked(status, "a kernel")
            node.handle = made.value or 0
            handles.append(node.handle)
            self._nodes.append(node)
        calls.checked(calls.instantiate(ctypes.byref(self._exec), self._graph, 0), "to make the graph")
        self.run = _runner(calls, self._exec.value, driver._stream)

    def tell(self, number: int, values: list[Any]) -> None:
        """Give a launch other arguments."""
        node = self._nodes[number]
        node.pack(values)
        status = self._calls.tell(self._exec, node.handle, node.address)
        if status:
            self._calls.checked(status, "new addresses")

    def __del__(self) -> None:
        if self._exec.value:
            self._calls.destroy(self._exec)
        if self._graph.value:
            self._calls.destroy_nodes(self._graph)


def _runner(calls: _Calls, graph: Any, stream: Any) -> Any:
    launch = calls.launch

    def run() -> None:
        status = launch(graph, stream().ptr)
        if status:
            calls.checked(status, "to run the graph")

    return run


class _Node:
    """What a node is told: its kernel, and the memory in which its arguments stand."""

    __slots__ = ("_data", "_pack", "_parameters", "address", "handle", "said")

    def __init__(self, run: Any) -> None:
        grid, block, count, start, self._pack = run.how
        self._data = bytearray(start)
        at = ctypes.addressof(ctypes.c_char.from_buffer(self._data))
        self._parameters = (ctypes.c_void_p * count)(*[at + 8 * i for i in range(count)])
        self.said = _Kernel(
            run.kernel.ptr, (ctypes.c_uint * 3)(*grid), (ctypes.c_uint * 3)(*block), 0,
            ctypes.addressof(self._parameters), None, None, None,
        )  # fmt: skip
        self.address = ctypes.addressof(self.said)
        self.handle = 0

    def pack(self, values: list[Any]) -> None:
        self._pack(self._data, 0, *values)
