"""What a plan consists of: storages, views of them, and steps that fill them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from mirabelle.arraytypes.programs.graph import Node, c_strides
from mirabelle.arraytypes.proxies import proxy_of
from mirabelle.dispatch.schedule import Request


class Storage:
    """Memory for values, in C's order.

    Its `kind` says whose it is: "input" and "output" are given with each call, "data" was there before the
    program, "temporary" lies in the program's own memory, "made" is what a library returns.
    """

    __slots__ = ("first", "index", "kind", "last", "nbytes", "node", "number", "offset", "taken")

    def __init__(self, number: int, kind: str, node: Node) -> None:
        self.number = number
        self.kind = kind
        # The first value it holds, which gives it its shape and dtype.
        self.node = node
        self.nbytes = node.nbytes
        # Which input, datum or output it is.
        self.index = -1
        # The steps between which it is needed, and where it lies among temporaries.
        self.first = 1 << 60
        self.last = -1
        self.offset = -1
        # The storage whose place it has taken over, at the step where that one is read last.
        self.taken: Storage | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.node.shape

    @property
    def dtype(self) -> np.dtype:
        return self.node.dtype

    def used(self, step: int) -> None:
        self.first = min(self.first, step)
        self.last = max(self.last, step)

    def __repr__(self) -> str:
        return f"{self.kind}{self.number}"


class Ref:
    """A strided view of a storage."""

    __slots__ = ("dtype", "offset", "shape", "storage", "strides", "table")

    def __init__(
        self,
        storage: Storage,
        offset: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: np.dtype,
        table: bool = False,
    ) -> None:
        self.storage = storage
        self.offset = offset
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.table = table

    @property
    def key(self) -> Any:
        return self.storage.number, self.offset, self.shape, self.strides, self.dtype.num, self.table

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def is_whole(self) -> bool:
        """Does it show all of its storage, as it is?"""
        return (
            not self.table
            and self.offset == 0
            and self.shape == self.storage.shape
            and self.dtype == self.storage.dtype
            and self.is_contiguous
        )

    @property
    def covers(self) -> bool:
        """Does it show all of its storage in C's order, perhaps in another shape?"""
        return (
            not self.table
            and self.offset == 0
            and self.size == math.prod(self.storage.shape)
            and self.dtype == self.storage.dtype
            and self.is_contiguous
        )

    @property
    def is_contiguous(self) -> bool:
        wanted = c_strides(self.shape, self.dtype)
        return all(n == 1 or a == b for n, a, b in zip(self.shape, self.strides, wanted, strict=True))

    def proxy(self) -> np.ndarray:
        """An array of this layout."""
        return proxy_of(self.shape, self.dtype, self.strides, self.offset)

    def __repr__(self) -> str:
        return f"{self.storage!r}{list(self.shape)}"


def whole(storage: Storage) -> Ref:
    return Ref(storage, 0, storage.shape, c_strides(storage.shape, storage.dtype), storage.dtype)


class Step:
    """Something a plan does. `nodes` are the values it computes."""

    __slots__ = ("nodes", "number")

    number: int
    nodes: list[Node]

    @property
    def reads(self) -> list[Ref]:
        return []

    @property
    def writes(self) -> list[Ref]:
        return []

    @property
    def shape(self) -> tuple[int, ...]:
        """The index space that it goes over."""
        written = self.writes
        return written[0].shape if written else ()

    @property
    def traffic(self) -> tuple[int, int]:
        """Bytes read and written. What several operands show of one memory is read once."""
        known: dict[int, int] = {}
        storages: dict[int, Storage] = {}
        for ref in {r.key: r for r in self.reads}.values():
            number = ref.storage.number
            storages[number] = ref.storage
            known[number] = known.get(number, 0) + self._touched(ref)
        read = sum(min(n, storages[number].nbytes) for number, n in known.items())
        return read, sum(w.nbytes for w in self.writes)

    def _touched(self, ref: Ref) -> int:
        if ref.table:  # as many elements as there are indices
            return min(ref.nbytes, math.prod(self.shape) * ref.dtype.itemsize)
        # (Along a stride of 0 the same elements come again.)
        return math.prod(n for n, s in zip(ref.shape, ref.strides, strict=True) if s) * ref.dtype.itemsize

    @property
    def flops(self) -> int:
        return 0

    @property
    def name(self) -> str:
        return type(self).__name__

    @property
    def does_nothing(self) -> bool:
        """Has it no elements to write?"""
        return not any(w.size for w in self.writes)


class KernelStep(Step):
    """Elementwise trees over one index space, each written to a destination."""

    __slots__ = ("dests", "request")

    def __init__(self, nodes: list[Node], request: Request, dests: list[Ref]) -> None:
        self.nodes = nodes
        self.request = request
        self.dests = dests

    @property
    def reads(self) -> list[Ref]:
        return self.request.leaves  # type: ignore[return-value]

    @property
    def writes(self) -> list[Ref]:
        return self.dests

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.request.shape)

    @property
    def flops(self) -> int:
        return len(self.request.key[0]) * math.prod(self.request.shape)

    @property
    def name(self) -> str:
        return "_".join(step[0].op.name for step in self.request.key[0])[:48] or "copy"


class JoinedStep(Step):
    """Kernels over index spaces of unlike sizes, none of which needs anything of another: one launch."""

    __slots__ = ("members",)

    def __init__(self, members: list[KernelStep]) -> None:
        self.members = members
        self.nodes = [x for m in members for x in m.nodes]

    @property
    def reads(self) -> list[Ref]:
        return [r for m in self.members for r in m.reads]

    @property
    def writes(self) -> list[Ref]:
        return [r for m in self.members for r in m.writes]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.members[0].shape

    @property
    def traffic(self) -> tuple[int, int]:
        read, written = zip(*[m.traffic for m in self.members], strict=True)
        return sum(read), sum(written)

    @property
    def flops(self) -> int:
        return sum([m.flops for m in self.members])

    @property
    def name(self) -> str:
        return " & ".join(dict.fromkeys([m.name for m in self.members]))[:48]


class FoldStep(Step):
    """Reductions along the same axes of one tree."""

    __slots__ = ("axes", "dests", "request")

    def __init__(self, nodes: list[Node], request: Request, axes: tuple[int, ...], dests: list[Ref]) -> None:
        self.nodes = nodes
        self.request = request
        self.axes = axes
        self.dests = dests

    @property
    def reads(self) -> list[Ref]:
        return self.request.leaves  # type: ignore[return-value]

    @property
    def writes(self) -> list[Ref]:
        return self.dests

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.request.shape)

    @property
    def flops(self) -> int:
        return (len(self.request.key[0]) + len(self.nodes)) * math.prod(self.request.shape)

    @property
    def name(self) -> str:
        return "_".join([n.label for n in self.nodes])


class CopyStep(Step):
    """One storage's contents to another."""

    __slots__ = ("dest", "source")

    def __init__(self, nodes: list[Node], dest: Ref, source: Ref) -> None:
        self.nodes = nodes
        self.dest = dest
        self.source = source

    @property
    def reads(self) -> list[Ref]:
        return [self.source]

    @property
    def writes(self) -> list[Ref]:
        return [self.dest]

    @property
    def name(self) -> str:
        return "copy"


class ProductStep(Step):
    """A matrix product by the place's library."""

    __slots__ = ("dest", "operands")

    def __init__(self, node: Node, operands: list[Ref], dest: Storage) -> None:
        self.nodes = [node]
        self.operands = operands
        self.dest = dest

    @property
    def reads(self) -> list[Ref]:
        return self.operands

    @property
    def writes(self) -> list[Ref]:
        return [whole(self.dest)]

    @property
    def flops(self) -> int:
        inner = self.operands[0].shape[-1] if self.operands[0].shape else 1
        return 2 * inner * self.nodes[0].size

    @property
    def name(self) -> str:
        return "matmul"


class CallStep(Step):
    """A routine of the place's library."""

    __slots__ = ("call", "dests", "operands")

    def __init__(self, call: Any, operands: list[Ref], dests: dict[int, Storage]) -> None:
        self.nodes = [call]
        self.call = call
        self.operands = operands
        # Results that somebody reads, by their number.
        self.dests = dests

    @property
    def reads(self) -> list[Ref]:
        return self.operands

    @property
    def writes(self) -> list[Ref]:
        return [whole(s) for s in self.dests.values()]

    @property
    def name(self) -> str:
        return str(self.call.routine)


class LaunchStep(CallStep):
    """A kernel of the user's (`@mb.kernel`), which writes to memory where it is.

    `run` gets the local type and views of the operands; `dests` are those that are written to, by their places.
    """

    __slots__ = ("launch",)

    def __init__(self, call: Any, operands: list[Ref], dests: dict[int, Storage], launch: Any) -> None:
        super().__init__(call, operands, dests)
        self.launch = launch

    def run(self, inner: Any, views: list[Any]) -> None:
        self.launch(inner, self.call.template, views)


class OutsideStep(Step):
    """Something that is done between kernels by Python: `run` gets the local type, and views of what is read
    and written (none, if it is not `shown` them)."""

    __slots__ = ("_reads", "_writes", "word")

    shown = True

    def __init__(self, word: str, reads: list[Ref], writes: list[Ref]) -> None:
        self.nodes = []
        self.word = word
        self._reads = reads
        self._writes = writes

    @property
    def reads(self) -> list[Ref]:
        return self._reads

    @property
    def writes(self) -> list[Ref]:
        return self._writes

    @property
    def name(self) -> str:
        return self.word

    @property
    def does_nothing(self) -> bool:
        return False

    def run(self, inner: Any, reads: list[Any], writes: list[Any]) -> None:
        raise NotImplementedError(f"{type(self).__name__} must implement run.")


class Choices:
    """What a user has chosen about how a plan is run (see `schedules.py`): of steps, by their numbers, the rows
    of a slab and the most threads; the numbers of storages that share their memory with none.

    `tiled` are the steps of each decision about rows, with the error for it if none has any.
    """

    __slots__ = ("alone", "rows", "threads", "tiled")

    def __init__(self) -> None:
        self.rows: dict[int, int] = {}
        self.tiled: list[tuple[list[int], Exception]] = []
        self.threads: dict[int, int] = {}
        self.alone: set[int] = set()


class Plan:
    """Steps in order, with the memory they need.

    `outputs` says for each result where it is: a storage, whose view is the result.
    """

    __slots__ = (
        "arena_bytes", "choices", "inputs", "outputs", "peak_bytes", "steps", "storages", "unplanned_bytes",
    )  # fmt: skip

    def __init__(
        self, inputs: list[Any], steps: list[Step], storages: list[Storage], outputs: list[Storage]
    ) -> None:
        self.inputs = inputs
        self.steps = steps
        self.storages = storages
        self.outputs = outputs
        self.choices = Choices()
        # The memory of temporaries, and what they would take if each had memory of its own.
        self.arena_bytes = 0
        self.unplanned_bytes = 0
        self.peak_bytes = 0


def counted(steps: Iterable[Step]) -> dict[str, int]:
    """What running some steps moves, as counters of `mb.count`: known when a plan is made.

    >>> import mirabelle as mb
    >>> program = mb.compiling.trace(lambda x: mb.sum(x * 2 + 1), mb.zeros(4))
    >>> counted(program.plan.steps)
    {'bytes_read': 32, 'bytes_written': 8}
    """
    read, written = 0, 0
    for step in steps:
        r, w = step.traffic
        read, written = read + r, written + w
    return {"bytes_read": read, "bytes_written": written}
