"""A card that is none: it writes down kernels, launches and data, for who builds a library of them."""

from __future__ import annotations

import functools
import struct
import types
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mirabelle.arraytypes.gpu import CuArray, add_family
from mirabelle.backends.codegen.element import KernelText
from mirabelle.backends.gpu.cupydriver import word_format
from mirabelle.backends.gpu.driver import Driver
from mirabelle.dispatch.styles import device

# Addresses of what is sent to this card: nobody else's, and no number that a kernel is told.
_FIRST = 0x5A5A << 44
_ALIGNMENT = 256


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel that was asked for."""

    source: KernelText
    functions: dict[str, Any]
    contract: bool


@dataclass(frozen=True, eq=False)
class Launched:
    """A launch of a kernel, of values that come before `fixed` ones."""

    kernel: Kernel
    codes: tuple[str, ...]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    fixed: tuple[int, ...]

    def words(self, values: list[Any]) -> list[int]:
        """What the kernel is told, as integers of 64 bits."""
        packed = struct.pack(word_format(self.codes), *values, *self.fixed)
        return list(struct.unpack(f"<{len(self.codes)}q", packed))


@dataclass
class _Memory:
    """Arrays that were sent to the card, by address."""

    sent: dict[int, np.ndarray] = field(default_factory=dict)
    end: int = _FIRST


class AheadDriver(Driver):
    """Nothing is run on it: plans are made for it, of cards with graphs and cuBLAS."""

    name = "ahead of time"
    index = 0
    # (What plans ask of a library is whether it is on a card.)
    library = types.SimpleNamespace(__name__="cupy")
    has_graphs = True

    def __init__(self, blas: bool) -> None:
        if not blas:
            self.library = types.SimpleNamespace(__name__="none")
        self.kernels: dict[Any, Kernel] = {}
        self.memory = _Memory()
        self.recorders = []
        self.idle_streams = []

    def allocate(self, nbytes: int) -> tuple[Any, int]:
        start = self.memory.end
        self.memory.end += -(-max(nbytes, 1) // _ALIGNMENT) * _ALIGNMENT
        return None, start

    def upload(self, address: int, data: np.ndarray) -> None:
        self.memory.sent[address] = data.copy()

    def load(self, source: KernelText, functions: dict[str, Any], contract: bool = False) -> Kernel:
        key = source.text, source.codes, source.threads, contract, tuple(functions.values())
        return self.kernels.setdefault(key, Kernel(source, functions, contract))

    def launcher(
        self,
        kernel: Any,
        codes: tuple[str, ...],
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        fixed: tuple[int, ...],
    ) -> Any:
        return Launched(kernel, codes, grid, block, fixed)


@functools.cache
def family(blas: bool) -> Any:
    """The type of arrays on that card, with cuBLAS or without."""
    first: Any = CuArray
    name = f"{first.__name__} ahead of time"
    made = type(first)(
        name,
        (first,),
        {
            "__module__": "mirabelle",
            "__slots__": (),
            "__qualname__": name,
            "home": device(first.home.kind, 0),
        },
    )
    driver = AheadDriver(blas)
    made.driver = classmethod(lambda cls: driver)
    return add_family(made, {})


__all__ = ["AheadDriver", "Kernel", "Launched", "family"]
