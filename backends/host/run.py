"""Launches on the host: a program over arrays of any layout, by its kernel or by NumPy on blocks."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.dense import force_temporary
from mirabelle.arraytypes.host import HostArray
from mirabelle.backends.codegen.program import Program
from mirabelle.backends.codegen.reduceframe import range_source
from mirabelle.backends.codegen.source import Layout, Source, compilable, function_name
from mirabelle.backends.host import kernels, layout, threads
from mirabelle.backends.host.interpreter import interpreted, quietly, run_blocks
from mirabelle.backends.host.loops import loop_address
from mirabelle.dispatch import counters, native
from mirabelle.dispatch.addresses import address_of
from mirabelle.dispatch.errors import UserFunctionError
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import Leaf


def force_host(version: Any) -> Leaf:
    return force_temporary(HostArray, version)


def statement(program: Program, views: list[Any], scalars: list[Any], outs: list[Any]) -> None:
    """Run a program over arrays, in the way that suits its size."""
    if counters.active:
        counters.add(
            launches=1,
            bytes_read=program.bytes_read(views),
            bytes_written=sum(o.nbytes for o in outs),
        )
    n = outs[0].size
    if n <= settings.small_size and not _needs_compiler(program):
        program.uses += 1
        quietly(interpreted(program), views, scalars, outs)
    elif n:
        launch(program, views, scalars, outs)


def _needs_compiler(program: Program) -> bool:
    needs = program.plans.get("needs compiler")
    if needs is None:
        needs = program.plans["needs compiler"] = bool(program.user_functions)
    return needs  # type: ignore[no-any-return]


def launch(program: Program, views: list[Any], scalars: list[Any], outs: list[Any]) -> None:
    """Run a program over arrays of any layout: compiled if its kernel is there, else in blocks."""
    shape = outs[0].shape
    if wants_kernel(program, outs[0].size):
        operands = [*outs, *views]
        arrangement, rows = layout.arrange_rows(shape, operands, len(outs))
        entry = compiled(program, arrangement, views, outs)
        if entry is not None:
            LaunchPlan(program, entry, arrangement, rows).run(scalars, operands)
            return
    stretched = [v if v.shape == shape else np.broadcast_to(v, shape) for v in views]
    in_pieces(program, stretched, scalars, outs)


def in_pieces(program: Program, views: list[Any], scalars: list[Any], outs: list[Any]) -> None:
    """The interpreter over threads: each takes a slab of the first dimension."""
    n = outs[0].size
    rows = outs[0].shape[0] if outs[0].ndim else 1
    # More pieces than threads: the helper that compiles may be using a core.
    count = min(rows, settings.num_threads * 8, max(settings.num_threads, n >> 16))
    if n < settings.thread_size or settings.num_threads < 2:
        count = 1
    if count < 2:
        quietly(run_blocks, program, views, scalars, outs)
        return
    edges = [rows * i // count for i in range(count + 1)]

    def piece(i: int) -> Callable[[], None]:
        s = slice(edges[i], edges[i + 1])
        return lambda: quietly(run_blocks, program, [v[s] for v in views], scalars, [o[s] for o in outs])

    threads.run_all([piece(i) for i in range(count)])


def wants_kernel(program: Program, n: int) -> bool:
    """Is it time to compile this program (or has it been compiled)?"""
    if _needs_compiler(program):
        return True
    program.uses += 1
    if n < settings.compile_size and program.uses < settings.compile_after:
        return False
    return has_kernel(program)


def has_kernel(program: Program) -> bool:
    """Can this program be compiled at all?"""
    if _needs_compiler(program):
        return True
    can = program.plans.get("compilable")
    if can is None:
        can = program.plans["compilable"] = compilable(program) and all(
            loop_address(sig) is not None for sig in _looped(program)
        )
    return can  # type: ignore[no-any-return]


def _looped(program: Program) -> list[Any]:
    from mirabelle.backends.codegen.source import inline

    return [sig for sig, _ in program.steps if inline(sig) is None and not sig.op.name.startswith("pick")]


def compiled(program: Program, arrangement: Any, views: list[Any], outs: list[Any], wait: bool = False) -> Any:
    """The kernel for this arrangement, with the source it was made of; None if not there yet."""
    n_out = len(outs)
    classes = arrangement.classes
    shared = meet(views, outs)
    how = Layout(len(arrangement.sizes), classes[:n_out], classes[n_out:], arrangement.tiled, shared=shared)
    return kernel_for(program, how, wait)


def meet(views: list[Any], outs: list[Any]) -> bool:
    """Of several results, does the first lie where operands may do?"""
    return len(outs) > 1 and any(np.may_share_memory(outs[0], v) for v in views)


def kernel_for(program: Program, how: Layout, wait: bool = False) -> Any:
    entry = program.plans.get(how)
    if entry is None:
        entry = program.plans[how] = _Entry(range_source(program, how))
    if entry.kernel is None:
        if program.user_functions:
            functions: dict[str, Any] = {function_name(op): op.scalar for op in program.user_functions}
            entry.kernel = kernels.get(entry.source, wait=True, functions=functions)
            return entry
        entry.kernel = kernels.get(entry.source, wait)
        if entry.kernel is None:
            return None
    return entry


class _Entry:
    """A kernel of a program for one layout, and what its argument block ends in."""

    __slots__ = ("kernel", "loops", "pieces", "source")

    def __init__(self, source: Source) -> None:
        self.source = source
        self.kernel: Any = None
        # The last range that several threads shared, and its pieces.
        self.pieces: tuple[tuple[int, int], InPieces] | None = None
        self.loops: list[int] = []
        for sig in source.loops:
            found = loop_address(sig)
            assert found is not None, sig
            self.loops += [*found]


_pack_double = struct.Struct("<d").pack
_as_word = struct.Struct("<q").unpack


def scalar_words(value: Any, dtype: np.dtype) -> tuple[int, int]:
    """A scalar as two words of an argument block."""
    if dtype.char == "d" and type(value) is not complex:
        return _as_word(_pack_double(float(value)))[0], 0
    data = np.asarray(value).astype(dtype).tobytes().ljust(16, b"\0")
    low, high = struct.unpack("<qq", data)
    return low, high


native.tell(scalar_words=scalar_words)


def scalar_block(program: Program, scalars: list[Any]) -> list[int]:
    words: list[int] = []
    for j, dtype in program.scalar_slots:
        words += scalar_words(scalars[j], dtype)
    return words


# Programs of so many additions an element wait for memory.
_CHEAP = 3


class LaunchPlan:
    """All of a launch that does not depend on addresses and the values of scalars."""

    __slots__ = (
        "addresses",
        "copied",
        "entry",
        "inner",
        "kernel",
        "least",
        "program",
        "rows",
        "scalars",
        "tiled",
        "words",
    )

    def __init__(self, program: Program, entry: Any, arrangement: Any, copied: Sequence[int] = ()) -> None:
        self.entry = entry
        # The operands that are copied, each time, for the kernel to find them side by side.
        self.copied = copied
        sizes, strides = arrangement.sizes, arrangement.strides
        words = list(sizes[:-1])
        self.addresses = []
        for s in strides:
            self.addresses.append(len(words))
            words += [0, *s]
        self.scalars = len(words)
        words += [0] * (2 * len(program.scalar_slots))
        words += entry.loops
        self.words = words
        self.program = program
        self.rows, self.inner = math.prod(sizes[:-1]), sizes[-1]
        # Threads are worth their while for so many times `thread_size`: of what is cheap for as many bytes as
        # there would be of complex numbers.
        widest = max([d.itemsize for d in program.out_dtypes])
        self.least = max(1, min(4, 16 // widest)) if program.cost <= _CHEAP else 1
        self.tiled = arrangement.tiled
        self.kernel = watched(entry.kernel, program) if program.user_functions else entry.kernel

    def run(self, scalars: list[Any], operands: list[Any]) -> None:
        words = self.words.copy()
        if self.copied:
            operands = [v.copy() if i in self.copied else v for i, v in enumerate(operands)]
        for at, v in zip(self.addresses, operands, strict=True):
            words[at] = address_of(v)
        if scalars:
            block = scalar_block(self.program, scalars)
            words[self.scalars : self.scalars + len(block)] = block
        self.launch(words, self.rows, self.inner)

    def launch(self, words: list[int], rows: int, inner: int) -> None:
        """Run it on an argument block, over so many rows of so many elements."""
        if rows * inner < settings.thread_size * self.least or settings.num_threads < 2:
            block = struct.pack(f"{len(words)}q", *words)
            self.kernel(address_of(block), 0, rows, 0, inner, 0, 1, 0)
            return
        last = self.entry.pieces
        if last is None or last[0] != (rows, inner):
            work, granule = rows * inner * min(self.program.cost, 16), 64 if self.tiled else 1
            pieces = InPieces(self.kernel, work, lambda: split(rows, inner, granule))
            last = self.entry.pieces = (rows, inner), pieces
        last[1].run(words)


# Waking up a thread takes as long as work of so many times the size from which threads share it: for less they
# are woken up where statements follow one another within so many seconds, as they stand by for the next then.
_WAKING, _SOON = 8, 1e-4
_last = 0.0


class InPieces:
    """A kernel over the pieces of its range that `cut` says, on several threads: from Python until what runs
    them natively is there."""

    __slots__ = ("cut", "kernel", "pieces", "work")

    def __init__(self, kernel: Any, work: int, cut: Callable[[], Sequence[tuple[int, ...]]]) -> None:
        self.kernel = kernel
        self.work = work
        self.cut = cut
        self.pieces: Any = None

    def run(self, words: list[int]) -> None:
        """Run it on an argument block."""
        global _last
        kernel = self.kernel
        if self.pieces is None and hasattr(kernel, "address"):
            from mirabelle.backends.host.tasks import Pieces

            self.pieces = Pieces(kernel, len(words), self.cut)
        alone = (
            self.work < _WAKING * settings.thread_size
            and time.perf_counter() - _last > _SOON
            and not threads.standing()
        )
        if self.pieces is not None and not alone:
            self.pieces.run(words)
        else:
            arguments = (ctypes.c_int64 * len(words))(*words)
            address = ctypes.addressof(arguments)
            rest = (0, 1, 0)
            calls: list[Callable[[], object]] = [
                functools.partial(kernel, address, *p, *rest[len(p) - 4 :]) for p in self.cut()
            ]
            if alone:
                for call in calls:
                    call()
            else:
                threads.run_all(calls)
        _last = time.perf_counter()


def watched(kernel: Any, program: Program) -> Any:
    """A kernel that calls users' functions, which may raise."""

    def checked(*args: int) -> None:
        if kernel(*args):
            raise raised(program)

    return checked


def raised(program: Program) -> UserFunctionError:
    """What is raised where a user's function did."""
    names = ", ".join(op.name for op in program.user_functions)
    return UserFunctionError(
        f"{names}() raised an exception for some element; nothing was written. Call it on single "
        "values to see which, or return NaN instead of raising."
    )


def split(rows: int, inner: int, granule: int = 1, each: int = 8) -> list[tuple[int, int, int, int]]:
    """Pieces of a range of rows and of the innermost dimension, alike and up to `each` a thread."""
    n = rows * inner
    want = settings.num_threads * max(1, min(each, round(n / (settings.num_threads << 16))))
    if rows >= want * granule:
        edges = [rows * i // want // granule * granule for i in range(want)] + [rows]
        return [(a, b, 0, inner) for a, b in itertools.pairwise(edges) if b > a]
    across = -(-want // max(rows // granule, 1))
    step = math.ceil(math.ceil(inner / across) / 1024) * 1024
    return [
        (r, min(r + granule, rows), c, min(c + step, inner))
        for r in range(0, rows, granule)
        for c in range(0, inner, step)
    ]
