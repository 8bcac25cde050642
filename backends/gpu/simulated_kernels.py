"""Users' index-space kernels on a simulated card: their text, executed by Python.

Numbers have the types that compiled code gives them, threads of a block run in a shuffled order, and
threads that part at a barrier are seen.
"""

from __future__ import annotations

import ast
import cmath
import functools
import itertools
import math
import operator
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mirabelle.backends.codegen.gridkernel import IndexKernelText
from mirabelle.backends.gpu.races import Access, Accesses
from mirabelle.backends.gpu.simulator import UPDATES, SimulatedDriver, _Machine, _Names, shuffled
from mirabelle.backends.host.interpreter import numpy_callable
from mirabelle.dispatch import syntax
from mirabelle.dispatch.errors import DeviceError
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.promotion import signature

_ARRAY = re.compile(r"_k_(?:array|whole)_([biufc]\d+)_\d+$")
_ACCESS = re.compile(r"_k_(get|put|(?:atomic|shared|own)_(?:add|max|min|exchange|cas))(_checked)?$")


class Parted(Exception):
    """Threads of a block that go different ways around the barrier on a line of the text."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


class _Ended(Exception):
    """A thread ends where an index is outside."""


class SimulatedIndexKernel:
    """A kernel's text, made to run in Python."""

    def __init__(self, driver: SimulatedDriver, source: IndexKernelText, values: dict[str, Any]) -> None:
        self.name = source.name
        self.source = source
        self.machine = _Machine(driver.memory)
        self.strict = driver.strict
        # What a strict card knows of where it is: the accesses so far, the barriers that were passed, the site
        # in the text, and which index of the space a thread stands for.
        self.accesses = Accesses()
        self.phase = 0
        self.site: int | None = None
        self.position: Any = None
        self.left = False
        text = re.sub(r"^(\s*)barrier\(\)$", r"\1yield", source.text, flags=re.MULTILINE)
        self.waits = text != source.text
        typing = _Typed()
        tree = ast.fix_missing_locations(typing.visit(syntax.parse(text)))
        scope = _Scope(self, {n: _of_numbers(v) for n, v in values.items()} | typing.constants)
        self.function = scope.run(text, tree)[source.name]

    def run(self, arguments: list[Any], grid: tuple[int, ...], block: tuple[int, ...]) -> None:
        machine = self.machine
        machine.sizes = (*block, *grid)
        self.accesses = Accesses()
        threads = shuffled(block)
        with np.errstate(all="ignore"):
            for machine.block in shuffled(grid):
                machine.shared_arrays = []
                self.phase = 0
                waiting = [w for at in threads if (w := self.started(at, arguments)) is not None]
                while waiting:
                    waiting = self.together(waiting)
                    self.phase += 1

    def started(self, at: tuple[int, ...], arguments: list[Any]) -> Any:
        """Run a thread that waits for nobody; what is to be run of one that does."""
        machine = self.machine
        machine.thread = at
        machine.count = count = [0]
        try:
            running = self.function(*arguments)
        except _Ended:
            return None
        return (at, running, count) if self.waits else None

    def together(self, waiting: list[Any]) -> list[Any]:
        """All threads of a block to the next barrier: those that wait there."""
        machine = self.machine
        going, places = [], set()
        for at, running, count in waiting:
            machine.thread, machine.count = at, count
            self.left = False
            try:
                next(running)
            except (StopIteration, _Ended) as e:
                if not self.left and not isinstance(e, _Ended):
                    places.add(0)
            else:
                places.add(running.gi_frame.f_lineno)
                going.append((at, running, count))
        if len(places) > 1:
            raise Parted(min(line for line in places if line))
        return going

    def leave(self, really: Any) -> bool:
        """Is this thread outside? Then nobody waits for it."""
        self.left = bool(really)
        return self.left

    # Strict cards look at every access

    def touch(self, element: Any, parts: tuple[int, ...], writes: bool, atomic: bool, value: Any) -> None:
        """Note an access to an element, and refuse one that races with an earlier one."""
        machine = self.machine
        thread = machine.block, machine.thread
        position = thread[1] if self.position is None else self.position
        other = self.accesses.race(element, Access(thread, position, self.phase, atomic, writes, value))
        if other is not None:
            k = self.source.context
            raise DeviceError(
                f"{self.here()}: a race at {self.accessed()}{list(parts)}: thread {_shown(other.position)} and "
                f"thread {_shown(position)} both come to it, one of them writes, and nothing says which is "
                f"first. Put `{k}.barrier()` between them if they are of one group, use `{k}.atomic_add` or "
                "the like, or write elsewhere."
            )

    def here(self) -> str:
        """The kernel and the line of it that is running, as far as that is known."""
        name = f"{self.name.removeprefix('kernel_')}()"
        return name if self.site is None else f"{name}, line {self.source.sites[self.site][1]}"

    def accessed(self) -> str:
        """The array that an access is to."""
        return "an array" if self.site is None else str(self.source.sites[self.site][0])


def _shown(position: Any) -> str:
    return str(position[0]) if len(position) == 1 else str(tuple(map(int, position)))


# Numbers as compiled code has them


class _Typed(ast.NodeTransformer):
    """Constants with the types that a compiler gives them."""

    def __init__(self) -> None:
        self.constants: dict[str, Any] = {}

    def visit_Constant(self, node: ast.Constant) -> Any:
        kind = _KINDS.get(type(node.value))
        if kind is None:
            return node
        name = f"_k_constant{len(self.constants)}"
        self.constants[name] = kind(node.value)
        return ast.copy_location(ast.Name(name, ast.Load()), node)


_KINDS: dict[type, Any] = {int: np.int64, float: np.float64, complex: np.complex128}


def _typed_range(*bounds: Any) -> Iterator[Any]:
    return map(np.int64, range(*bounds))


def _operation(name: str) -> Callable[..., Any]:
    """An operation on numbers, promoted as arrays are."""
    op = TABLE[name]

    def of(*given: Any) -> Any:
        sig = signature(op, tuple(np.asarray(x).dtype for x in given))
        run, _ = numpy_callable(sig)
        result = run(*[np.asarray(x).astype(t)[()] for x, t in zip(given, sig.ins, strict=True)])
        return result if op.nout > 1 else np.asarray(result)[()]

    return of


def _of_numbers(value: Any) -> Any:
    """A compiled function as the Python function it was made of."""
    for attribute in ("python", "py_func"):
        value = getattr(value, attribute, value)
    return value


class _Mathematics:
    """`math`, of typed numbers, which has no errors."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def __getattr__(self, name: str) -> Any:
        f = getattr(self.module, name)
        if not callable(f):
            return np.float64(f)

        def of(*args: Any) -> Any:
            result: Any
            try:
                result = f(*args)
            except ValueError:
                result = math.nan
            except (OverflowError, ZeroDivisionError):
                result = math.inf
            single = isinstance(result, float) and all(getattr(x, "dtype", None) == np.float32 for x in args)
            return np.float32(result) if single else _KINDS.get(type(result), lambda x: x)(result)

        return of


class _Scope(_Names):
    """What names in the text mean here."""

    def __init__(self, kernel: SimulatedIndexKernel, values: dict[str, Any]) -> None:
        super().__init__(kernel.machine)
        self.kernel = kernel
        self.update(values)
        self["i8"] = np.int64
        self["range"] = _typed_range
        self["int"] = lambda x: np.int64(int(x))
        self["float"] = lambda x: np.float64(float(x))
        self["outside"] = kernel.leave
        self["_k_fail"] = self.fail
        shared = types.SimpleNamespace(array=self.shared)
        local = types.SimpleNamespace(array=lambda shape, dtype, *_: _Own(kernel, shape, dtype, False))
        self["cuda"] = types.SimpleNamespace(shared=shared, local=local)
        self.update(math=_Mathematics(math), cmath=cmath, np=np, operator=operator)

    def __missing__(self, name: str) -> Any:
        array = _ARRAY.match(name)
        access = _ACCESS.match(name)
        if array is not None:
            self[name] = functools.partial(_Array, self.kernel, np.dtype(array[1]))
        elif name.startswith("_k_op_"):
            self[name] = _operation(name.removeprefix("_k_op_"))
        elif access is not None:
            self[name] = self.access(access[1], bool(access[2]))
        else:
            return super().__missing__(name)
        return self[name]

    def shared(self, shape: Any, dtype: Any, *_: Any) -> Any:
        """The block's array: the n-th that each thread asks for is the same."""
        machine = self.machine
        n = machine.count[0]
        machine.count[0] += 1
        if n == len(machine.shared_arrays):
            machine.shared_arrays.append(_Own(self.kernel, shape, dtype, True))
        return machine.shared_arrays[n]

    def access(self, what: str, checked: bool) -> Callable[..., Any]:
        """Reading, writing or changing an element; a checked one is told of a record, a site and the thread."""
        f: Any = {"get": _get, "put": _put}.get(what) or _UPDATES[what.partition("_")[2]]
        kernel = self.kernel
        if not checked:
            return f

        def looked_at(array: Any, index: Any, *rest: Any) -> Any:
            *values, address, site, thread = rest
            kernel.site, kernel.position = int(site), thread
            for axis, (i, n) in enumerate(zip(_parts(array, index), array.shape, strict=True)):
                if not 0 <= i < n:
                    self.record(address, (site, axis, i, *thread))
                    raise _Ended
            made = f(array, index, *values)
            kernel.site = None  # (functions that are given arrays have no sites)
            return made

        return looked_at

    def fail(self, address: Any, site: Any, thread: Any) -> None:
        self.record(address, (site, 0, 0, *thread))
        self.kernel.left = True

    def record(self, address: Any, values: tuple[Any, ...]) -> None:
        record = self.machine.memory.at(int(address), 8 * (1 + len(values)), "a record").view(np.int64)
        if not record[0]:
            record[...] = (1, *values)


# Arrays and their elements


class _Elements:
    """An array as a kernel sees it: its shape, and its elements one by one."""

    def __init__(self, kernel: SimulatedIndexKernel, dtype: Any, shape: Any) -> None:
        self.kernel = kernel
        self.dtype = np.dtype(dtype)
        self.shape = tuple(map(np.int64, shape))
        self.ndim = len(shape)
        self.size = np.int64(math.prod(map(int, shape)))

    def __len__(self) -> int:
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Any]:
        if self.ndim != 1:
            raise TypeError("a simulated card runs loops over arrays of one dimension. Loop over a range.")
        return (_get(self, i) for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        return _get(self, self._wrapped(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        _put(self, self._wrapped(index), value)

    def _wrapped(self, index: Any) -> Any:
        parts = _parts(self, index)
        return tuple(i + int(n) if i < 0 else i for i, n in zip(parts, self.shape, strict=True))

    def touched(self, parts: tuple[int, ...], writes: bool, atomic: bool = False, value: Any = None) -> None:
        """Note an access, on a strict card."""
        raise NotImplementedError

    def load(self, parts: tuple[int, ...]) -> Any:
        raise NotImplementedError

    def store(self, parts: tuple[int, ...], value: Any) -> None:
        raise NotImplementedError


class _Array(_Elements):
    """An array of the card's memory."""

    def __init__(
        self, kernel: SimulatedIndexKernel, dtype: np.dtype, address: Any, shape: Any, strides: Any = None
    ) -> None:
        super().__init__(kernel, dtype, shape)
        self.address = int(address)
        if strides is None:  # in C order
            strides = [dtype.itemsize * math.prod(map(int, shape[d + 1 :])) for d in range(self.ndim)]
        self.strides = tuple(map(np.int64, strides))

    def at(self, parts: tuple[int, ...]) -> int:
        return self.address + sum(i * int(s) for i, s in zip(parts, self.strides, strict=True))

    def touched(self, parts: tuple[int, ...], writes: bool, atomic: bool = False, value: Any = None) -> None:
        if self.kernel.strict:
            self.kernel.touch(self.at(parts), parts, writes, atomic, value)

    def load(self, parts: tuple[int, ...]) -> Any:
        return self.kernel.machine.load(self.dtype, 1, self.at(parts), 0)

    def store(self, parts: tuple[int, ...], value: Any) -> None:
        self.kernel.machine.store(self.dtype, 1, self.at(parts), 0, value)


_numbers = itertools.count()


class _Own(_Elements):
    """A block's or a thread's own array, whose elements are undefined until they are written."""

    def __init__(self, kernel: SimulatedIndexKernel, shape: Any, dtype: Any, shared: bool) -> None:
        super().__init__(kernel, dtype, shape)
        self.shared = shared
        self.number = next(_numbers)
        self.elements: dict[tuple[int, ...], Any] = {}

    def touched(self, parts: tuple[int, ...], writes: bool, atomic: bool = False, value: Any = None) -> None:
        if not all(0 <= i < n for i, n in zip(parts, self.shape, strict=True)):
            raise DeviceError(
                f"illegal memory access: {list(parts)} is outside of a local array of shape {self.shape}."
            )
        if self.shared and self.kernel.strict:
            self.kernel.touch((self.number, parts), parts, writes, atomic, value)

    def load(self, parts: tuple[int, ...]) -> Any:
        found = self.elements.get(parts)
        if found is None:
            padding = (
                " A thread outside the index space may have been meant to write it: `@mb.kernel(padded=True)` "
                "lets those run too."
                if self.shared and not self.kernel.source.padded
                else ""
            )
            raise DeviceError(
                f"{self.kernel.here()}: {self.kernel.accessed()}{list(parts)} is read, and nobody has written "
                f"it: local arrays start undefined.{padding}"
            )
        return found

    def store(self, parts: tuple[int, ...], value: Any) -> None:
        self.elements[parts] = value


def _parts(array: Any, index: Any) -> tuple[int, ...]:
    parts = index if isinstance(index, tuple) else (index,)
    kernel = array.kernel
    if len(parts) != array.ndim:
        raise IndexError(
            f"{kernel.here()}: {kernel.accessed()} has {array.ndim} dimension(s) and is indexed with "
            f"{len(parts)}. A kernel names single elements, with an index for each dimension."
        )
    for part in parts:
        if not isinstance(part, (int, np.integer)) or isinstance(part, bool):
            raise TypeError(
                f"{kernel.here()}: an index of {kernel.accessed()} is a {type(part).__name__}. Make it an "
                "integer with int()."
            )
    return tuple(map(int, parts))


def _get(array: Any, index: Any) -> Any:
    parts = _parts(array, index)
    array.touched(parts, False)
    found = array.load(parts)
    return np.float32(found) if array.dtype.char == "e" else found


def _put(array: Any, index: Any, value: Any) -> None:
    parts = _parts(array, index)
    value = _cast(array, value)
    array.touched(parts, True, value=value)
    array.store(parts, value)


def _cast(array: Any, value: Any) -> Any:
    """A number as an element of an array."""
    if np.ndim(value) or not isinstance(value, (bool, int, float, complex, np.generic)):
        raise TypeError(
            f"{array.kernel.here()}: an element of {array.kernel.accessed()} is one number of "
            f"{array.dtype.name}, and a {type(value).__name__} is written to it. Index what is written: `x[i]`."
        )
    if np.iscomplexobj(value) and array.dtype.kind != "c":
        raise TypeError(
            f"{array.kernel.here()}: a complex number does not fit {array.kernel.accessed()}, which holds "
            f"{array.dtype.name}. Write its real part."
        )
    return np.asarray(value).astype(array.dtype)[()]


def _update(f: Callable[..., Any]) -> Callable[..., Any]:
    def update(array: Any, index: Any, *values: Any) -> Any:
        if array.dtype.kind not in "iuf" or array.dtype.itemsize < 4:
            raise TypeError(
                "atomic operations take 32 and 64 bit integers and reals, and the array holds "
                f"{array.dtype.name}. Use an array of mb.int32 or mb.float32."
            )
        parts = _parts(array, index)
        array.touched(parts, True, atomic=True)
        old = array.load(parts)
        array.store(parts, _cast(array, f(old, *[np.asarray(v).astype(array.dtype)[()] for v in values])))
        return old

    return update


_UPDATES = {name: _update(f) for name, f in UPDATES.items()}
