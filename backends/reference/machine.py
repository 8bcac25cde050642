"""The machine that runs an index-space kernel on the reference device: threads, and their arrays.

Groups, and the threads of a group between two barriers, run in a shuffled order. Each access is
checked for bounds and for races: two threads at one element, one of them writing, with neither a
barrier nor an atomic operation between them.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.kernels import Kernel, KernelContext, diverged, out_of_range
from mirabelle.arraytypes.reference import RefView
from mirabelle.backends.codegen.kernelsource import KernelSource, LocalArray, dimension_error
from mirabelle.dispatch.errors import DeviceError

Index = tuple[int, ...]


def typed(x: Any) -> Any:
    """A number as compiled code has it: what meets it is promoted as there."""
    kind = {int: np.int64, float: np.float64, complex: np.complex128}.get(type(x))
    return x if kind is None else kind(x)


def shuffled(items: list[Any]) -> list[Any]:
    """Another order, the same each time."""
    n = len(items)
    step = next(s for s in (7919, 104729, 1) if math.gcd(s, n) == 1)
    return [items[i * step % n] for i in range(n)]


class Machine:
    """One launch: where it is, and who touched what."""

    def __init__(self, kernel: Kernel, shape: Index, group: Index) -> None:
        self.kernel = kernel
        self.source: KernelSource = kernel.source
        self.shape = shape
        self.group_shape = group
        self.groups = tuple(-(-n // g) for n, g in zip(shape, group, strict=True))
        self.memory: dict[tuple[int, int], _Touched] = {}
        self.thread: Any = None
        self.phase = 0
        self.atomic = False

    def lent(self, x: Any, name: str, written: bool) -> Any:
        if isinstance(x, tuple):
            parts = [self.lent(item, name, written) for item in x]
            return type(x)._make(parts) if hasattr(x, "_make") else tuple(parts)
        if isinstance(x, RefView):
            return _Global(self, name, x) if x.ndim or written else x._host()[()]
        return typed(x)

    def run_group(self, run: Callable[..., Any], where: Index, given: list[Any]) -> None:
        first = [w * g for w, g in zip(where, self.group_shape, strict=True)]
        locals_ = list(itertools.product(*map(range, self.group_shape)))
        shared = {a.name: _Local(self, a) for a in self.source.locals.values() if a.shared}
        waiting: dict[Index, tuple[_Thread, Any]] = {}
        self.phase = 0
        for local in shuffled(locals_):
            index = tuple(f + i for f, i in zip(first, local, strict=True))
            inside = all(i < n for i, n in zip(index, self.shape, strict=True))
            if not inside and not self.kernel.padded:
                continue
            thread = _Thread(self, index, local, where, inside, shared)
            self.thread = thread
            started = run(thread, *given)
            if started is not None:
                waiting[local] = thread, started
        order = list(waiting)
        while waiting:
            at: dict[int, Index] = {}
            for local in shuffled(order):
                thread, running = waiting[local]
                self.thread = thread
                # 0: past the last barrier.
                at.setdefault(next(running, 0), local)
            if len(at) > 1:
                raise diverged(self.kernel, min(line for line in at if line))
            if 0 in at:
                return
            self.phase += 1

    # Who touches what

    def here(self) -> str:
        return f"{self.source.name}(), line {self.line()}"

    def line(self) -> int:
        """The line of the kernel that is running."""
        source = self.source
        wanted = source.function.__code__.co_filename, source.name
        frame: Any = sys._getframe(1)
        while frame is not None and (frame.f_code.co_filename, frame.f_code.co_name) != wanted:
            frame = frame.f_back
        return 0 if frame is None else frame.f_lineno

    def touch(self, buffer: int, offset: int, name: str, index: Index, write: bool, value: Any = None) -> None:
        found = self.memory.get((buffer, offset))
        if found is None:
            found = self.memory[buffer, offset] = _Touched()
        me = _Access(self.thread, self.phase, self.atomic, value)
        other = found.conflict(me, write)
        if other is not None:
            k = self.source.context
            raise DeviceError(
                f"{self.here()}: a race at {name}{list(index)}: thread {other.thread.position} and thread "
                f"{me.thread.position} both come to it, one of them writes, and nothing says which is first. "
                f"Put `{k}.barrier()` between them if they are of one group, use `{k}.atomic_add` or the like, "
                "or write elsewhere."
            )
        found.add(me, write)


class _Access:
    """One access to an element."""

    __slots__ = ("atomic", "phase", "thread", "value")

    def __init__(self, thread: _Thread, phase: int, atomic: bool, value: Any) -> None:
        self.thread, self.phase, self.atomic, self.value = thread, phase, atomic, value

    def ordered(self, other: _Access) -> bool:
        """Is it clear which of two accesses comes first (or does it not matter)?"""
        if self.thread is other.thread or (self.atomic and other.atomic):
            return True
        return self.thread.where == other.thread.where and self.phase != other.phase


class _Touched:
    """The accesses to one element that a later one could race with."""

    __slots__ = ("reads", "write")

    def __init__(self) -> None:
        self.write: _Access | None = None
        self.reads: list[_Access] = []

    def conflict(self, me: _Access, write: bool) -> _Access | None:
        last = self.write
        if last is not None and not me.ordered(last):
            # Several may write the same: `found[0] = True`.
            same = write and not me.atomic and not last.atomic and _equal(last.value, me.value)
            if not same:
                return last
        if write:
            return next((r for r in self.reads if not me.ordered(r)), None)
        return None

    def add(self, me: _Access, write: bool) -> None:
        if write:
            self.write = me
        # Two readers are enough: a writer that is neither races with one of them.
        elif (
            len(self.reads) < 2
            or self.reads[-1].phase != me.phase
            or self.reads[-1].thread.where != me.thread.where
        ):
            self.reads = [*self.reads[-3:], me]


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b) or (a != a and b != b)


# What a kernel sees


class _Thread(KernelContext):
    """The context of one thread."""

    def __init__(
        self, machine: Machine, index: Index, local: Index, where: Index, valid: bool, shared: dict[str, Any]
    ) -> None:
        self.machine = machine
        self.place = index
        self.position = index[0] if len(index) == 1 else index
        self.where = where
        self.valid = valid
        self._local, self._shared = local, shared

    def index(self, d: int | None = None) -> Any:
        return self._pick(self.place, "index", d)

    def local(self, d: int | None = None) -> Any:
        return self._pick(self._local, "local", d)

    def group(self, d: int | None = None) -> Any:
        return self._pick(self.where, "group", d)

    def size(self, d: int | None = None) -> Any:
        return self._pick(self.machine.shape, "size", d)

    def group_size(self, d: int | None = None) -> Any:
        return self._pick(self.machine.group_shape, "group_size", d)

    def groups(self, d: int | None = None) -> Any:
        return self._pick(self.machine.groups, "groups", d)

    def _pick(self, values: Index, what: str, d: int | None) -> Any:
        if d is None:
            return tuple(map(np.int64, values))
        if not -len(values) <= d < len(values):
            raise dimension_error(self.machine.source, what, int(d), len(values))
        return np.int64(values[d])

    def _array(self, name: str) -> Any:
        """What `k.shared(...)` and `k.private(...)` became."""
        found = self._shared.get(name)
        return found if found is not None else _Local(self.machine, self.machine.source.locals[name])

    def atomic_add(self, a: Any, i: Any, value: Any) -> Any:
        return a.update(i, lambda old: old + value)

    def atomic_max(self, a: Any, i: Any, value: Any) -> Any:
        return a.update(i, lambda old: value if value > old or old != old else old)

    def atomic_min(self, a: Any, i: Any, value: Any) -> Any:
        return a.update(i, lambda old: value if value < old or old != old else old)

    def atomic_exchange(self, a: Any, i: Any, value: Any) -> Any:
        return a.update(i, lambda old: value)

    def atomic_cas(self, a: Any, i: Any, old: Any, new: Any) -> Any:
        return a.update(i, lambda found: new if found == old else found)


class _Elements:
    """An array as a kernel sees it: its shape, and its elements one by one."""

    def __init__(self, machine: Machine, name: str, shape: Index, dtype: np.dtype) -> None:
        self.machine = machine
        self.name = name
        self.sizes = shape
        self.shape = tuple(map(np.int64, shape))
        self.dtype = dtype
        self.ndim = len(shape)
        self.size = math.prod(shape)

    def __len__(self) -> int:
        return self.sizes[0]

    def checked(self, index: Any) -> Index:
        """An index as integers inside the array."""
        machine = self.machine
        parts = index if isinstance(index, tuple) else (index,)
        if len(parts) != self.ndim:
            raise IndexError(
                f"{machine.here()}: {self.name} has {self.ndim} dimension(s) and is indexed with {len(parts)}. "
                "A kernel names single elements, with an index for each dimension."
            )
        for axis, (i, n) in enumerate(zip(parts, self.sizes, strict=True)):
            if not isinstance(i, (int, np.integer)) or isinstance(i, (bool, np.bool_)):
                raise TypeError(
                    f"{machine.here()}: an index of {self.name} is a {type(i).__name__}. Make it an integer "
                    "with int()."
                )
            if not 0 <= i < n:
                where = machine.thread.place
                raise out_of_range(machine.kernel, self.name, axis, int(i), n, where, machine.line())
        return tuple(map(int, parts))

    def __getitem__(self, index: Any) -> Any:
        at = self.checked(index)
        self.touched(at, False)
        return self.load(at)

    def __setitem__(self, index: Any, value: Any) -> None:
        at = self.checked(index)
        value = self.cast(value)
        self.touched(at, True, value)
        self.store(at, value)

    def update(self, index: Any, f: Callable[[Any], Any]) -> Any:
        """An atomic operation: returns what was there."""
        if self.dtype.kind not in "iuf" or self.dtype.itemsize < 4:
            raise TypeError(
                f"{self.machine.source.name}(): atomic operations take 32 and 64 bit integers and reals, and "
                f"{self.name} holds {self.dtype.name}. Use an array of mb.int32 or mb.float32."
            )
        at = self.checked(index)
        self.machine.atomic = True
        try:
            self.touched(at, True)
        finally:
            self.machine.atomic = False
        old = self.load(at)
        self.store(at, self.cast(f(old)))
        return old

    def cast(self, value: Any) -> Any:
        if isinstance(value, _Elements) or np.ndim(value):
            raise TypeError(
                f"{self.machine.here()}: an element of {self.name} is one number, and an array is written to it"
                ". Index what is written: `x[i]`."
            )
        if np.iscomplexobj(value) and self.dtype.kind != "c":
            raise TypeError(
                f"{self.machine.here()}: a complex number does not fit {self.name}, which holds "
                f"{self.dtype.name}. Write its real part."
            )
        return np.asarray(value).astype(self.dtype)[()]

    def touched(self, index: Index, write: bool, value: Any = None) -> None:
        raise NotImplementedError

    def load(self, index: Index) -> Any:
        raise NotImplementedError

    def store(self, index: Index, value: Any) -> None:
        raise NotImplementedError


class _Global(_Elements):
    """An array of the device's memory."""

    def __init__(self, machine: Machine, name: str, view: RefView) -> None:
        super().__init__(machine, name, view.shape, view.dtype)
        self.view = view
        self.data = view._host()

    def touched(self, index: Index, write: bool, value: Any = None) -> None:
        view = self.view
        offset = view.offset + sum(i * s for i, s in zip(index, view.strides, strict=True))
        self.machine.touch(view.buffer.name, offset, self.name, index, write, value)

    def load(self, index: Index) -> Any:
        return self.data[index]

    def store(self, index: Index, value: Any) -> None:
        if not self.view.flags.writeable:
            raise DeviceError(f"{self.machine.source.name}() writes to {self.name}, which is read-only.")
        self.data[index] = value


class _Local(_Elements):
    """A shared or private array, whose elements are undefined until they are written."""

    def __init__(self, machine: Machine, array: LocalArray) -> None:
        super().__init__(machine, array.name, array.shape, array.dtype)
        self.shared = array.shared
        self.elements: dict[Index, Any] = {}
        self.number = -next(_numbers)

    def touched(self, index: Index, write: bool, value: Any = None) -> None:
        if self.shared:
            offset = int(np.ravel_multi_index(index, self.sizes))
            self.machine.touch(self.number, offset, self.name, index, write, value)

    def load(self, index: Index) -> Any:
        try:
            return self.elements[index]
        except KeyError:
            pass
        padding = (
            " A thread outside the index space may have been meant to write it: `@mb.kernel(padded=True)` lets "
            "those run too."
            if self.shared and not self.machine.kernel.padded
            else ""
        )
        raise DeviceError(
            f"{self.machine.here()}: {self.name}{list(index)} is read, and nobody has written it: local arrays "
            f"start undefined.{padding}"
        )

    def store(self, index: Index, value: Any) -> None:
        self.elements[index] = value


_numbers = itertools.count(1)
