"""What a launch of an index-space kernel on a card needs, made once: its code, grid, sizes and strides."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from mirabelle.arraytypes.gpu import GPUView
from mirabelle.arraytypes.kernels import GROUPS, Kernel, diverged, out_of_range
from mirabelle.arraytypes.lending import WRITTEN
from mirabelle.arraytypes.programs.graph import Slot
from mirabelle.arraytypes.programs.steps import LaunchStep
from mirabelle.backends.codegen.gridkernel import (
    DEEPEST,
    THREADS,
    ArrayForm,
    Form,
    GridForm,
    IndexKernelText,
    NumberForm,
    TupleForm,
    kernel_source,
)
from mirabelle.dispatch.errors import DeviceError
from mirabelle.dispatch.promotion import code

# The most blocks of a grid, along its first dimension and along the others.
MOST_BLOCKS, MOST_ROWS = 2**31 - 1, 65535
# Sizes and strides from here on are counted in 64 bits.
WIDE = 2**31 - 2**20
# Bytes of memory that the threads of a group share, at most.
MOST_SHARED = 48 * 1024
# The numbers of a record of what failed: whether, site, axis, index, thread.
_RECORD = 7


class Plan:
    """A kernel for arguments of certain types and layouts, compiled; `function()` launches it."""

    def __init__(
        self, kernel: Kernel, shape: tuple[int, ...], group: tuple[int, ...], arguments: list[Any]
    ) -> None:
        self.kernel = kernel
        self.arguments = dict(zip(kernel.source.parameters, arguments, strict=True))
        _check_shared(kernel)
        views = list(_views(arguments))
        self.family = type(views[0]).family
        self.driver = self.family.driver()
        how, block, grid = _geometry(kernel, shape, group, views)
        how = replace(how, aligned=self.driver.aligns_arrays, checked=how.checked or self.driver.strict)
        forms = [
            _form(kernel.source.name, name, x, kernel.source.effects[name] == WRITTEN)
            for name, x in self.arguments.items()
        ]
        self.text, loaded = self._loaded(how, forms)
        self.convert = [f for form in forms for f in _converters(form)]
        self.failing = "_k_record" in self.text.text
        sizes = [n for x, form in zip(arguments, forms, strict=True) for n in _fixed(x, form)]
        # Arrays from around the kernel go to the card once a plan.
        self.tables = [self.family._upload(np.ascontiguousarray(t)) for t in self.text.tables]
        fixed = (*sizes, *[t.ptr for t in self.tables], *shape)
        self.run = self.driver.launcher(loaded, self.text.codes, grid, block, fixed)
        if self.driver.simulated:
            self.run = self._watching_barriers(self.run)
        self.arguments = {n: getattr(x, "shape", ()) for n, x in self.arguments.items()}

    def function(self) -> Any:
        """What launches the kernel, of addresses and numbers."""
        run = self._run_watched if self.failing else self.run
        converters = self.convert

        def converting(*values: Any) -> None:
            given: list[Any] = []
            for x, convert in zip(values, converters, strict=True):
                if convert is None:
                    given.append(x)
                else:
                    given += convert(x)
            run(*given)

        return converting if any(converters) else run

    def _loaded(self, how: GridForm, forms: list[Form]) -> tuple[IndexKernelText, Any]:
        """The compiled kernel: one for all layouts that have the same text."""
        compiled = self.kernel.compiled
        key = (self.family, how, tuple(forms))
        found = compiled.get(key)
        if found is None:
            text = kernel_source(self.kernel.source, forms, how)
            try:
                loaded = self.driver.load(text, text.values, contract=self.kernel.contracts)
            except Exception as e:
                self._refuse(text, e)
            found = compiled.setdefault(key, (text, loaded))
        return found  # type: ignore[no-any-return]

    def _refuse(self, text: IndexKernelText, e: Exception) -> NoReturn:
        """The compiler's error, about the lines that the user wrote."""
        from mirabelle.backends.host import scalarloops

        def user_line(found: re.Match[str]) -> str:
            at = min(int(found["line"]), len(text.lines)) - 1
            file, line = text.lines[at]
            return f'File "{file}", line {line}'

        said = f"{e}\n{_stumbled_at(e)}"
        said = re.sub(r'File "[^"]*<mirabelle kernel \w+>", line (?P<line>\d+)', user_line, said)
        shown = [x.proxy if isinstance(x, GPUView) else x for x in self.arguments.values()]
        if type(e).__module__.startswith("numba"):
            from numba.core.errors import TypingError

            better = scalarloops.explained(TypingError(said), self.kernel, shown)
            if better is not None:
                raise better from None
        raise e

    def _watching_barriers(self, run: Any) -> Any:
        from mirabelle.backends.gpu.simulated_kernels import Parted

        def watched(*values: Any) -> None:
            try:
                run(*values)
            except Parted as e:
                raise diverged(self.kernel, self.text.lines[e.line - 1][1]) from None

        return watched

    # Kernels that can fail are waited for

    def _run_watched(self, *values: Any) -> None:
        driver = self.driver
        record = np.zeros(_RECORD, np.int64)
        keep, address = driver.allocate(record.nbytes)
        driver.upload(address, record)
        self.run(*values, address)
        driver.download(record, address)
        del keep
        if record[0]:
            self._raise(record.tolist())

    def _raise(self, record: list[int]) -> NoReturn:
        _, site, axis, index, *thread = record
        what, line = self.text.sites[site]
        if isinstance(what, BaseException):
            raise type(what)(*what.args)
        local = self.kernel.source.locals.get(what)
        sizes = local.shape if local is not None else self.arguments[what]
        thread = thread[: self.text.ndim]
        raise out_of_range(self.kernel, what, axis, index, sizes[axis], thread, line)


def in_graph(step: LaunchStep, views: list[GPUView]) -> tuple[Any, list[int], list[Any]] | None:
    """For a kernel's launch in a program: what launches it given addresses and then numbers, whose addresses
    these are, and the numbers. None where there is more to do than that: errors to raise, numbers to convert.
    """
    (kernel, shape, group, arguments), _ = step.call.template
    if kernel.boundscheck or not all(v.size for v in views) or not math.prod(shape):
        return None
    if type(kernel).launcher_of is not Kernel.launcher_of:
        return None  # (a loop over a mesh, which stands for several launches)
    order: list[int] = []
    names: list[str] = []
    numbers: dict[str, Any] = {}
    for name, x in zip(kernel.source.parameters, arguments, strict=True):
        if isinstance(x, Slot):
            order.append(x.number)
            names.append(name)
        elif type(x) is int or type(x) is float:
            numbers[name] = x
        else:
            return None
    names += numbers
    key = "arrays first", tuple(names)
    first = kernel.compiled.get(key)
    if first is None:
        first = Kernel(kernel.python, kernel.padded)
        first.contracts = kernel.contracts
        first._source = replace(kernel.source, parameters=names)
        first = kernel.compiled.setdefault(key, first)
    plan = Plan(first, shape, group, [*[views[i] for i in order], *numbers.values()])
    if not plan.driver.has_graphs:
        return plan.function(), order, [*numbers.values()]
    if plan.failing or any(plan.convert):
        return None
    return plan.run, order, [*numbers.values()]


def _check_shared(kernel: Kernel) -> None:
    source = kernel.source
    need = sum(math.prod(a.shape) * a.dtype.itemsize for a in source.locals.values() if a.shared)
    if need > MOST_SHARED:
        raise DeviceError(
            f"{source.name}() asks for {need} bytes of {source.context}.shared, and a group has {MOST_SHARED} "
            "on a card. Make the tile smaller, or keep part of it in registers (scalars, or "
            f"{source.context}.private)."
        )


def _views(arguments: Any) -> Any:
    for x in arguments:
        if isinstance(x, GPUView):
            yield x
        elif isinstance(x, tuple):
            yield from _views(x)


# Arguments


def _form(kernel: str, name: str, x: Any, written: bool) -> Form:
    """What of an argument is part of the text."""
    if isinstance(x, GPUView):
        c = code(x.dtype)
        if not x.ndim and not written:
            return NumberForm(c, True)
        if x.contiguous:
            return ArrayForm(c, (True,) * x.ndim, True)
        return ArrayForm(c, tuple(s == x.itemsize for s in x.strides))
    if isinstance(x, tuple):
        items = tuple(_form(kernel, name, item, written) for item in x)
        return TupleForm(items, type(x) if hasattr(x, "_make") else None)
    if x is None:
        return None
    kinds = {bool: "b1", int: "i8", float: "f8", complex: "c16"}
    c = kinds.get(type(x)) or (code(x.dtype) if isinstance(x, (np.bool_, np.number)) else "")
    if not c or (c == "i8" and not -(2**63) <= x < 2**63):
        raise TypeError(
            f"{kernel}() takes arrays, numbers and tuples of these on a card, and {name} is "
            f"{'too large a number' if c else f'a {type(x).__name__}'}."
        )
    return NumberForm(c)


def _converters(form: Form) -> Any:
    """How the values of an argument become those of parameters; None: as they are."""
    if isinstance(form, TupleForm):
        for item in form.items:
            yield from _converters(item)
    elif isinstance(form, NumberForm) and not form.stored:
        if form.code[0] == "c":
            yield lambda x: (float(x.real), float(x.imag))
        else:
            yield None if form.code in ("i8", "f8") else lambda x: (x.item() if hasattr(x, "item") else x,)
    elif form is not None:
        yield None


def _fixed(x: Any, form: Form) -> Any:
    """The sizes and strides of an argument, as the text has them for parameters."""
    if isinstance(form, TupleForm):
        for item, inner in zip(x, form.items, strict=True):
            yield from _fixed(item, inner)
    elif isinstance(form, ArrayForm):
        for n, s, dense in zip(x.shape, x.strides, form.dense, strict=True):
            yield n
            if not dense:
                yield s


def _stumbled_at(e: Exception) -> str:
    """Where in the text the compiler was: what was being inferred says it, the error does not always."""
    place, trace = "", e.__traceback__
    while trace is not None:
        found = getattr(trace.tb_frame.f_locals.get("self"), "loc", None)
        if "<mirabelle kernel" in str(getattr(found, "filename", "")):
            place = f'File "{found.filename}", line {found.line}'  # type: ignore[union-attr]
        trace = trace.tb_next
    return place


# The grid


def _geometry(
    kernel: Kernel, shape: tuple[int, ...], group: tuple[int, ...], views: list[Any]
) -> tuple[GridForm, tuple[int, int, int], tuple[int, int, int]]:
    """How the index space lies in a grid: what of it is in the text, blocks' shape, and the grid's."""
    named = kernel.source.grouped or group != GROUPS[len(shape)]
    if not named:
        group = _rows(shape)
    counts = [-(-n // g) for n, g in zip(shape, group, strict=True)]
    wide = any(n * g >= WIDE for n, g in zip(counts, group, strict=True)) or any(
        max(map(abs, (*v.shape, *v.strides)), default=0) >= WIDE for v in views
    )
    linear = max(counts[:-1], default=0) > MOST_ROWS
    total = math.prod(counts)
    if (total if linear else counts[-1]) > MOST_BLOCKS:
        raise ValueError(
            f"{kernel.__name__}: an index space of {shape} in groups of {group} is {total} groups, and a card "
            f"takes {MOST_BLOCKS}. Launch over fewer, and loop in the kernel."
        )
    grid = (total, 1, 1) if linear else _turned(counts)
    block = (math.prod(group), 1, 1) if len(group) == 3 and group[0] > DEEPEST else _turned(group)
    how = GridForm(len(shape), group if named else (), linear, wide, kernel.padded, kernel.boundscheck)
    return how, block, grid


def _turned(sizes: Any) -> tuple[int, int, int]:
    """Sizes as a card has them, the fastest dimension first."""
    x, y, z = (*sizes[::-1], 1, 1, 1)[:3]
    return x, y, z


def _rows(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Blocks for a kernel to which they make no difference: along the last dimension."""
    group: list[int] = []
    room = THREADS
    for n in reversed(shape):
        g = 1
        while g < room and g < n:
            g *= 2
        group.append(min(g, DEEPEST) if len(group) == 2 else g)
        room //= g
    group[0] = max(group[0], 32) if len(group) == 1 else group[0]
    return tuple(reversed(group))
