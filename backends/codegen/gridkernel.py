"""Index-space kernels as source for a grid of threads: the user's statements, one thread each.

    def kernel(addresses, sizes and strides, numbers, sizes of the index space): ...

The last dimension of the index space lies along the first of the grid, so that neighbouring indices
are neighbouring threads. Groups are blocks; where the kernel asks for nothing of its group, it is
told the size of blocks at launch, else this is part of the text.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mirabelle.arraytypes.usercode.kernelsource import KernelSource
from mirabelle.backends.codegen.element import KernelText
from mirabelle.backends.codegen.freenames import FreeNames, apart
from mirabelle.backends.codegen.gridnames import GridNames
from mirabelle.backends.codegen.variables import names
from mirabelle.dispatch import syntax
from mirabelle.dispatch.promotion import code

# The largest size of a block in its third dimension.
DEEPEST = 64
# Threads of a block, at most, where the kernel asks for nothing of its group.
THREADS = 256


@dataclass(frozen=True)
class ArrayForm:
    """What of an array is in the text: its dtype, and along which dimensions neighbours lie together.

    `whole`: all its elements lie together, in C order.
    """

    code: str
    dense: tuple[bool, ...]
    whole: bool = False


@dataclass(frozen=True)
class NumberForm:
    """A number, passed as a parameter, or (`stored`) at an address."""

    code: str
    stored: bool = False


@dataclass(frozen=True)
class TupleForm:
    """A tuple of arguments; `kind` is its class, if it is a named one."""

    items: tuple[Any, ...]
    kind: Any = None


Form = ArrayForm | NumberForm | TupleForm | None


@dataclass(frozen=True)
class GridForm:
    """What a kernel's text depends on: the rank of the index space, and how groups lie in the grid.

    `group` is empty where the text does not name it. `linear`: blocks are counted along one
    dimension of the grid, since there are too many for the others. `wide` asks for 64 bits. `aligned`:
    arrays of the kernel's own begin where vectors do.
    """

    ndim: int
    group: tuple[int, ...]
    linear: bool
    wide: bool
    padded: bool
    checked: bool
    aligned: bool = True


@dataclass
class IndexKernelText(KernelText):
    """A kernel of a user's.

    `lines` are the file and line of each line of the text; `sites` what can fail: an access to an
    element (array, line), or an error that the kernel raises; `values` what functions and classes
    the text names; `tables` NumPy's arrays from around the kernel, whose addresses come before sizes.
    """

    inferred: ClassVar[bool] = True
    lines: list[tuple[str, int]] = field(default_factory=list)
    sites: list[tuple[Any, int]] = field(default_factory=list)
    ndim: int = 1
    values: dict[str, Any] = field(default_factory=dict)
    tables: list[np.ndarray] = field(default_factory=list)
    # What the kernel calls its context; and do threads outside the index space run?
    context: str = "k"
    padded: bool = False


def kernel_source(source: KernelSource, forms: Sequence[Form], how: GridForm) -> IndexKernelText:
    """The text of a kernel for arguments of these forms."""
    return _GridKernel(source, forms, how).text()


class _GridKernel:
    def __init__(self, source: KernelSource, forms: Sequence[Form], how: GridForm) -> None:
        self.source = source
        self.how = how
        self.dims = range(how.ndim)
        self.forms = dict(zip(source.parameters, forms, strict=True))
        arrays = {n for n, f in self.forms.items() if isinstance(f, ArrayForm)} | set(source.locals)
        self.names = GridNames(source, how.ndim, arrays, how.checked)
        self.first = source.function.__code__.co_firstlineno
        self.parameters: list[str] = []
        self.codes: list[str] = []
        self.later: list[tuple[str, str]] = []
        self.narrow = "i8" if how.wide else "i4"

    def text(self) -> IndexKernelText:
        source = self.source
        free = FreeNames(source.function)
        body = self.names.rewritten()
        own = {*source.parameters, *source.locals, source.context}
        body = free.settled(body, source.function, own)
        used = set().union(*map(names, body)) if body else set()
        begun = [*self.arguments(free), *self.tables(free)]
        if "_k_record" in used:
            self.parameter("_k_record", "i8")
        for parameter, c in self.later:
            self.parameter(parameter, c)
        start = [*self.grid(used), *begun, *self.local_arrays()]
        name = f"kernel_{source.name}"
        arguments = ast.arguments([], [ast.arg(p) for p in self.parameters], None, [], [], None, [])
        definition = ast.FunctionDef(name, arguments, [*self.parsed(start), *body], [])
        tree = ast.Module([*free.helpers, definition], [])
        text = ast.unparse(ast.fix_missing_locations(tree)).replace("_k_barrier()", "barrier()") + "\n"
        lines = self.lines_of(text, tree)
        sites = [(what, line) for what, line, _ in self.names.sites]
        threads = math.prod(self.how.group) if self.how.group else THREADS
        return IndexKernelText(
            text,
            name,
            tuple(self.codes),
            threads=threads,
            lines=lines,
            sites=sites,
            ndim=self.how.ndim,
            values=free.values,
            tables=[value for value, _ in free.tables.values()],
            context=source.context,
            padded=self.how.padded,
        )

    def parsed(self, lines: list[str]) -> list[ast.stmt]:
        tree = syntax.parse("\n".join(lines))
        for node in ast.walk(tree):
            if isinstance(node, ast.stmt):
                node.lineno = self.first
        return tree.body

    def lines_of(self, text: str, tree: ast.Module) -> list[tuple[str, int]]:
        """For each line of the text, the file and line of the user's that it is of."""
        mine = self.source.function.__code__.co_filename
        lines = [(mine, self.first)] * (text.count("\n") + 1)
        here = self.first
        for old, new in zip(_statements(tree.body), _statements(syntax.parse(text).body), strict=False):
            here = getattr(old, "lineno", here)
            for k in range(new.lineno, (new.end_lineno or new.lineno) + 1):
                lines[k - 1] = getattr(old, "filename", mine), here
        return lines

    # The beginning: parameters, and where this thread is

    def parameter(self, name: str, c: str) -> str:
        self.parameters.append(name)
        self.codes.append(c)
        return name

    def arguments(self, free: FreeNames) -> list[str]:
        """The lines that make the user's parameters of the kernel's: addresses and numbers come first."""
        return [f"{apart(name)} = {self.made(form, f'_p_{name}', free)}" for name, form in self.forms.items()]

    def made(self, form: Form, name: str, free: FreeNames) -> str:
        """The expression of an argument. Its sizes and strides, which stay the same, are parameters later."""
        if form is None:
            return "None"
        if isinstance(form, TupleForm):
            items = [self.made(f, f"{name}_{i}", free) for i, f in enumerate(form.items)]
            if form.kind is not None:
                kind = f"{name}_class"
                free.values[kind] = form.kind
                return f"{kind}({', '.join(items)})"
            return f"({''.join(f'{x}, ' for x in items)})"
        c = form.code
        if isinstance(form, NumberForm):
            if form.stored:
                loaded = f"load_{c}({self.parameter(f'{name}_at', 'i8')}, 0)"
                return f"f4({loaded})" if c == "f2" else loaded
            return self.number(c, name)
        sizes, steps = [], []
        for d, dense in enumerate(form.dense):
            self.later.append((f"{name}_n{d}", self.narrow))
            sizes.append(f"i8({name}_n{d}), ")
            if not dense and not form.whole:
                self.later.append((f"{name}_s{d}", self.narrow))
            steps.append(f"{np.dtype(c).itemsize}, " if dense else f"i8({name}_s{d}), ")
        address = self.parameter(f"{name}_at", "i8")
        if form.whole:
            return f"_k_whole_{c}_{len(sizes)}({address}, ({''.join(sizes)}))"
        return f"_k_array_{c}_{len(sizes)}({address}, ({''.join(sizes)}), ({''.join(steps)}))"

    def tables(self, free: FreeNames) -> list[str]:
        """Arrays from around the kernel: constants, that lie in the card's memory."""
        lines = []
        for value, name in free.tables.values():
            self.later.append((f"{name}_at", "i8"))
            sizes = "".join(f"{n}, " for n in value.shape)
            lines.append(f"{name} = _k_whole_{code(value.dtype)}_{value.ndim}({name}_at, ({sizes}))")
        return lines

    def number(self, c: str, name: str) -> str:
        if c[0] == "c":
            half = f"f{int(c[1:]) // 2}"
            parts = [self.parameter(f"{name}_{part}", half) for part in ("real", "imag")]
            return f"{c}(complex({parts[0]}, {parts[1]}))"
        c = "f4" if c == "f2" else c
        passed = c if c in ("f8", "f4", "u8") else "i8"
        given = self.parameter(name, passed)
        return f"{given} != i8(0)" if c == "b1" else f"{c}({given})"

    def grid(self, used: set[str]) -> list[str]:
        """Where this thread is, and its end if that is outside."""
        how, n = self.how, self.how.ndim
        lines = []
        wanted = {name for name in used if name.startswith("_k_")}
        if not how.padded or "_k_valid" in wanted:
            wanted |= {f"_k_index{d}" for d in self.dims}
        sizes = [self.parameter(f"_k_n{d}", self.narrow) for d in self.dims]
        axes = "xyz"[:n][::-1]
        group = [str(g) for g in how.group] or [f"threads_{a}()" for a in axes]
        flat = bool(how.group) and n == 3 and how.group[0] > DEEPEST
        if not how.padded or "_k_valid" in wanted or how.linear:
            wanted |= {f"_k_size{d}" for d in self.dims}
        if any(f"_k_groups{d}" in wanted for d in self.dims):
            wanted |= {f"_k_size{d}" for d in self.dims}
        lines += [f"_k_size{d} = i8({sizes[d]})" for d in self.dims if f"_k_size{d}" in wanted]
        if how.linear or any(f"_k_groups{d}" in wanted for d in self.dims):
            for d in self.dims:
                lines.append(f"_k_groups{d} = i8(div_i8(_k_size{d} + i8({group[d]}) - i8(1), i8({group[d]})))")
        if flat:
            lines += _apart("_k_local", "thread_x()", group)
        else:
            for d in self.dims:
                if f"_k_local{d}" in wanted or (how.linear and f"_k_index{d}" in wanted):
                    lines.append(f"_k_local{d} = i8(thread_{axes[d]}())")
        if how.linear:
            lines += _apart("_k_group", "block_x()", [f"_k_groups{d}" for d in self.dims])
        for d, a in enumerate(axes):
            if f"_k_group{d}" in wanted and not how.linear:
                lines.append(f"_k_group{d} = i8(block_{a}())")
            if f"_k_group_size{d}" in wanted:
                lines.append(f"_k_group_size{d} = i8({group[d]})")
            if f"_k_index{d}" not in wanted:
                continue
            if how.linear:
                lines.append(f"_k_index{d} = _k_group{d} * i8({group[d]}) + _k_local{d}")
                continue
            ix = self.narrow
            local = f"_k_local{d}" if flat else f"thread_{a}()"
            lines.append(f"_k_index{d} = i8({ix}({ix}(block_{a}()) * {ix}({group[d]}) + {ix}({local})))")
        if how.padded:
            if "_k_valid" in wanted:
                lines.append(f"_k_valid = {self.test('<', ' & ')}")
            return lines
        lines += [f"if outside({self.test('>=', ' | ')}):", "    return"]
        if "_k_valid" in wanted:
            lines.append("_k_valid = True")
        return lines

    def test(self, compare: str, join: str) -> str:
        return join.join(f"(_k_index{d} {compare} _k_size{d})" for d in self.dims)

    def local_arrays(self) -> list[str]:
        lines = []
        for a in self.source.locals.values():
            space = "shared" if a.shared else "local"
            # Aligned, so that neighbours may be read as vectors.
            alignment = ", 16" if self.how.aligned else ""
            lines.append(f"{apart(a.name)} = cuda.{space}.array({a.shape}, {code(a.dtype)}{alignment})")
        return lines


def _apart(name: str, number: str, sizes: list[str]) -> list[str]:
    """The coordinates of a number, the last dimension fastest."""
    lines, rest = [], f"i8({number})"
    for d in reversed(range(len(sizes))):
        if d == 0:
            lines.append(f"{name}0 = i8({rest})")
            continue
        lines.append(f"{name}{d} = i8(rem_i8({rest}, i8({sizes[d]})))")
        lines.append(f"{name}_rest{d} = i8(div_i8({rest}, i8({sizes[d]})))")
        rest = f"{name}_rest{d}"
    return lines


def _statements(block: list[ast.stmt]) -> Iterator[ast.stmt]:
    for s in block:
        yield s
        for inner in ("body", "orelse"):
            yield from _statements(getattr(s, inner, []))
