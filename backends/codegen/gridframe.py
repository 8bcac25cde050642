"""Elementwise kernels for a grid of threads: three frames around one `element` function.

*flat*: all operands step evenly, and a thread computes `lanes` neighbouring elements, which it
reads and writes as one vector where they lie together. *rows*: the innermost dimension along the
threads of a row, the others over the rest of the grid. *tiles*: operands whose fast dimension is
not the innermost pass through shared memory, a square tile at a time.

Parameters: the addresses of results and leaves, scalars, then sizes and strides in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from mirabelle.backends.codegen.element import (
    KernelText,
    element_source,
    scalar_codes,
    scalar_parameters,
    write_scalars,
)
from mirabelle.backends.codegen.program import Program
from mirabelle.backends.codegen.source import CONTIGUOUS, STRETCHED, Writer, tables
from mirabelle.dispatch.promotion import code

# How many rows of a tile the threads of a block take at a time.
TILE_ROWS = 4
# An operand whose fast dimension is the last but one.
TURNED = "t"


@dataclass(frozen=True)
class GridLayout:
    """How operands lie: which frame, the rank after merging, and how each steps innermost.

    `classes` has results first. A thread computes `lanes` elements. `wide` asks for indices of 64 bits.
    """

    frame: str
    rank: int
    classes: str
    lanes: int = 1
    wide: bool = False
    tile: int = 32
    # How far the elements of a thread are apart: 1, or the width of a block where no vectors can be read.
    gap: int = 1


class _Frame:
    """The parts all frames have."""

    def __init__(self, program: Program, how: GridLayout) -> None:
        self.program = program
        self.how = how
        self.w = Writer()
        self.functions = element_source(self.w, program)
        self.index = "i8" if how.wide else "i4"
        self.n_out = len(program.outs)
        self.tables = {-1 - r for r in tables(program)}
        dtypes = [*program.out_dtypes, *program.leaf_dtypes]
        self.labels = [f"y{j}" for j in range(self.n_out)] + [f"x{j}" for j in range(len(program.leaf_dtypes))]
        self.codes = dict(zip(self.labels, map(code, dtypes), strict=True))
        self.classes = dict(zip(self.labels, how.classes, strict=True))

    @property
    def outs(self) -> list[str]:
        return self.labels[: self.n_out]

    @property
    def leaves(self) -> list[str]:
        return self.labels[self.n_out :]

    def is_table(self, label: str) -> bool:
        return label[0] == "x" and int(label[1:]) in self.tables

    def begin(self, name: str, sizes: list[str]) -> None:
        """The first lines of the kernel: parameters, and scalars in their dtypes."""
        scalars = scalar_parameters(self.program)
        self.parameters = [*self.labels, *scalars, *sizes]
        self.parameter_codes = ["i8"] * len(self.labels) + scalar_codes(self.program) + ["i8"] * len(sizes)
        self.name = name
        self.w(f"def {name}({', '.join(self.parameters)}):")
        self.w.depth += 1
        write_scalars(self.w, self.program)

    def source(self) -> KernelText:
        self.write()
        return KernelText(self.w.text(), self.name, tuple(self.parameter_codes), self.functions)

    def write(self) -> None:
        raise NotImplementedError

    def loaded(self, label: str, address: str, index: str) -> str:
        """An element of an operand; of a table, its address."""
        if self.is_table(label):
            return f"{address} + i8({index}) * i8({self.itemsize(label)})" if index != "0" else address
        return f"load_{self.codes[label]}({address}, {index})"

    def itemsize(self, label: str) -> int:
        return int(self.codes[label][1:])

    def call(self, values: dict[str, str]) -> str:
        arguments = [values[label] for label in self.leaves]
        arguments += [f"s{slot}" for slot in self.program.scalar_slots.values()]
        return f"element({', '.join(arguments)})"

    def write_results(self, result: str, where: dict[str, tuple[str, str]]) -> None:
        for j, label in enumerate(self.outs):
            value = result if self.n_out == 1 else f"{result}[{j}]"
            address, index = where[label]
            self.w(f"store_{self.codes[label]}({address}, {index}, {value})")

    def one(self, at: str, addresses: dict[str, str], strides: dict[str, str], held: dict[str, str]) -> None:
        """Compute one element: `at` is its index along the innermost dimension."""
        w = self.w
        values = {}
        for label in self.leaves:
            if label in held:
                values[label] = held[label]
            elif self.classes[label] == CONTIGUOUS:
                w(f"a_{label} = {self.loaded(label, addresses[label], at)}")
                values[label] = f"a_{label}"
            else:
                w(f"a_{label} = {self.loaded(label, f'{addresses[label]} + i8({at}) * {strides[label]}', '0')}")
                values[label] = f"a_{label}"
        w(f"r = {self.call(values)}")
        where = {
            label: (addresses[label], at)
            if self.classes[label] == CONTIGUOUS
            else (f"{addresses[label]} + i8({at}) * {strides[label]}", "0")
            for label in self.outs
        }
        self.write_results("r", where)

    def several(
        self, at: str, addresses: dict[str, str], strides: dict[str, str], held: dict[str, str]
    ) -> None:
        """Compute `lanes` elements, the first at index `at`: all are read before any is written."""
        w, lanes = self.w, self.how.lanes
        if self.how.gap > 1:
            self.spread(at, addresses, strides, held)
            return
        values: list[dict[str, str]] = [{} for _ in range(lanes)]
        for label in self.leaves:
            if label in held:
                for v in values:
                    v[label] = held[label]
            elif self.classes[label] == CONTIGUOUS and not self.is_table(label):
                w(f"q_{label} = load{lanes}_{self.codes[label]}({addresses[label]}, {at})")
                for lane, v in enumerate(values):
                    v[label] = f"q_{label}[{lane}]"
            else:
                step = strides.get(label, f"i8({self.itemsize(label)})")
                w(f"g_{label} = {addresses[label]} + i8({at}) * {step}")
                for lane, v in enumerate(values):
                    v[label] = f"a{lane}_{label}"
                    w(f"a{lane}_{label} = {self.loaded(label, f'g_{label} + i8({lane}) * {step}', '0')}")
        for lane, v in enumerate(values):
            w(f"r{lane} = {self.call(v)}")
        for j, label in enumerate(self.outs):
            made = [f"r{lane}" if self.n_out == 1 else f"r{lane}[{j}]" for lane in range(lanes)]
            if self.classes[label] == CONTIGUOUS:
                w(f"store{lanes}_{self.codes[label]}({addresses[label]}, {at}, ({', '.join(made)}))")
            else:
                for lane, value in enumerate(made):
                    place = f"{addresses[label]} + (i8({at}) + i8({lane})) * {strides[label]}"
                    w(f"store_{self.codes[label]}({place}, 0, {value})")

    def spread(self, at: str, addresses: dict[str, str], strides: dict[str, str], held: dict[str, str]) -> None:
        """As `several`, for elements a block's width apart."""
        w, how, ix = self.w, self.how, self.index
        places = [at if not k else f"{ix}({at} + {ix}({k * how.gap}))" for k in range(how.lanes)]
        values: list[dict[str, str]] = [{} for _ in places]
        for label in self.leaves:
            for k, (place, v) in enumerate(zip(places, values, strict=True)):
                if label in held:
                    v[label] = held[label]
                    continue
                if self.classes[label] == CONTIGUOUS:
                    w(f"a{k}_{label} = {self.loaded(label, addresses[label], place)}")
                else:
                    where = f"{addresses[label]} + i8({place}) * {strides[label]}"
                    w(f"a{k}_{label} = {self.loaded(label, where, '0')}")
                v[label] = f"a{k}_{label}"
        for k, v in enumerate(values):
            w(f"r{k} = {self.call(v)}")
        for k, place in enumerate(places):
            spots = {
                label: (addresses[label], place)
                if self.classes[label] == CONTIGUOUS
                else (f"{addresses[label]} + i8({place}) * {strides[label]}", "0")
                for label in self.outs
            }
            self.write_results(f"r{k}", spots)

    def begin_index(self) -> None:
        """The index of the first element of a thread."""
        w, lanes, ix = self.w, self.how.lanes, self.index
        if self.how.gap > 1:
            w(f"i = {ix}({ix}(block_x()) * {ix}({lanes * self.how.gap}) + {ix}(thread_x()))")
        else:
            w(f"i = {ix}({ix}({ix}(block_x()) * {ix}(threads_x()) + {ix}(thread_x())) * {ix}({lanes}))")

    def whole_or_rest(
        self, end: str, addresses: dict[str, str], strides: dict[str, str], held: dict[str, str]
    ) -> None:
        """All elements of a thread at once, or those before the end one by one."""
        w, how, ix = self.w, self.how, self.index
        w(f"if {end} - i >= {ix}({(how.lanes - 1) * how.gap + 1}):")
        w.depth += 1
        self.several("i", addresses, strides, held)
        w.depth -= 1
        w("else:")
        w.depth += 1
        w("k = i")
        w(f"while k < {end}:")
        w.depth += 1
        self.one("k", addresses, strides, held)
        w(f"k = {ix}(k + {ix}({how.gap}))")
        w.depth -= 2

    def hold(self, label: str, address: str) -> str:
        """Read once what is the same for all elements of a row."""
        if self.is_table(label):
            return address
        self.w(f"h_{label} = load_{self.codes[label]}({address}, 0)")
        return f"h_{label}"


class Flat(_Frame):
    """One dimension; threads beyond the end do nothing."""

    def write(self) -> None:
        w, lanes, ix = self.w, self.how.lanes, self.index
        strided = [x for x in self.labels if self.classes[x] not in (CONTIGUOUS, STRETCHED)]
        self.begin(f"flat_{self.program.name}", ["n", *[f"t_{x}" for x in strided]])
        strides = {x: f"t_{x}" for x in strided}
        w(f"n = {ix}(n)")
        self.begin_index()
        w("if i >= n:")
        w("    return")
        addresses = {x: x for x in self.labels}
        held = {x: self.hold(x, x) for x in self.leaves if self.classes[x] == STRETCHED}
        if lanes == 1:
            self.one("i", addresses, strides, held)
            return
        self.whole_or_rest("n", addresses, strides, held)


class Rows(_Frame):
    """Two and more dimensions: threads along the innermost, rows over the rest of the grid.

    Where neighbours are read as vectors, the innermost size is a multiple of the lanes.
    """

    def write(self) -> None:
        w, how, ix = self.w, self.how, self.index
        outer = how.rank - 1
        self.stepped = [x for x in self.labels if self.classes[x] not in (CONTIGUOUS, STRETCHED)]
        sizes = [f"n{d}" for d in range(outer)] + ["n"]
        strides = [f"t_{x}_{d}" for x in self.labels for d in range(outer)] + [f"t_{x}" for x in self.stepped]
        self.begin(f"rows_{self.program.name}", [*sizes, *strides])
        self.begin_index()
        if how.gap > 1:
            w(f"n = {ix}(n)")
        w(f"if i >= {ix}(n):")
        w("    return")
        w(f"rows = {ix}({' * '.join(sizes[:-1])})")
        w(f"row = {ix}({ix}(block_y()) * {ix}(threads_y()) + {ix}(thread_y()))")
        w(f"step = {ix}({ix}(blocks_y()) * {ix}(threads_y()))")
        w("while row < rows:")
        w.depth += 1
        coordinates(w, "row", sizes[:-1], ix)
        for x in self.labels:
            terms = " + ".join(f"i8(c{d}) * t_{x}_{d}" for d in range(outer))
            w(f"{x}_ = {x} + {terms}")
        addresses = {x: f"{x}_" for x in self.labels}
        steps = {x: f"t_{x}" for x in self.stepped}
        held = {x: self.hold(x, f"{x}_") for x in self.leaves if self.classes[x] == STRETCHED}
        if how.gap > 1:
            self.whole_or_rest("n", addresses, steps, held)
        elif how.lanes > 1:
            self.several("i", addresses, steps, held)
        else:
            self.one("i", addresses, steps, held)
        w(f"row = {ix}(row + step)")
        w.depth -= 1


class Tiles(_Frame):
    """Two innermost dimensions in tiles, so that operands fast along either are read in lines."""

    def write(self) -> None:
        w, how, ix, tile = self.w, self.how, self.index, self.how.tile
        outer = how.rank - 2
        turned = [x for x in self.leaves if self.classes[x] == TURNED and not self.is_table(x)]
        stepped = [x for x in self.labels if self.classes[x] not in (CONTIGUOUS, STRETCHED)]
        sizes = [f"n{d}" for d in range(outer)] + ["m", "n"]
        strides = [f"t_{x}_{d}" for x in self.labels for d in range(outer + 1)]
        strides += [f"t_{x}" for x in stepped]
        self.begin(f"tiles_{self.program.name}", [*sizes, *strides])
        for x in turned:
            w(f"tile_{x} = cuda.shared.array({tile * (tile + 1)}, {self.codes[x]})")
        w("tx = i4(thread_x())")
        w("ty = i4(thread_y())")
        w(f"across = {ix}({ix}(block_x()) * {ix}({tile}))")
        w(f"high = {ix}(div_i8(m + i8({tile - 1}), i8({tile})))")
        w(f"tiles = {ix}({' * '.join(['i8(high)', *sizes[:outer]])})")
        w(f"block = {ix}(block_y())")
        w("while block < tiles:")
        w.depth += 1
        w(
            f"down = {ix}(rem_{ix}(block, high) * {ix}({tile}))"
            if outer
            else f"down = {ix}(block * {ix}({tile}))"
        )
        if outer:
            w(f"rest = div_{ix}(block, high)")
            coordinates(w, "rest", sizes[:outer], ix)
        for x in self.labels:
            terms = "".join(f" + i8(c{d}) * t_{x}_{d}" for d in range(outer))
            w(f"{x}_ = {x}{terms}")
        # Turned operands are read along their own fast dimension (thread x goes down, thread y across).
        # All that a thread reads is on its way before it waits for the others. A tile that is whole, as
        # nearly all are, needs no questions in between.
        steps = range(0, tile, TILE_ROWS)
        straight = [x for x in self.leaves if x not in turned and not self.is_table(x)]
        w(f"whole = (i8(down) + i8({tile}) <= m) & (i8(across) + i8({tile}) <= n)")
        w(f"a = {ix}(down + {ix}(tx))")
        w(f"i = {ix}(across + {ix}(tx))")
        for k in steps:
            w(f"b{k} = {ix}(across + {ix}(ty + i4({k})))")
            w(f"j{k} = {ix}(down + {ix}(ty + i4({k})))")

        def read(k: int, labels: list[str]) -> None:
            for x in labels:
                place = f"{x}_ + i8(a) * t_{x}_{outer} + i8(b{k}) * t_{x}"
                load = (
                    f"load_{self.codes[x]}({place}, 0)" if x in turned else self.at_row(x, f"i8(j{k})", outer)
                )
                w(f"a{k}_{x} = {load}")

        w("if whole:")
        w.depth += 1
        for k in steps:
            read(k, [*turned, *straight])
        if not turned and not straight:
            w("r = i4(0)")
        w.depth -= 1
        if turned or straight:
            w("else:")
            w.depth += 1
            for k in steps:
                for x in [*turned, *straight]:
                    w(f"a{k}_{x} = {_zero(self.codes[x])}")
                for labels, inside in (
                    (turned, f"a < {ix}(m) and b{k} < {ix}(n)"), (straight, f"j{k} < {ix}(m) and i < {ix}(n)")
                ):  # fmt: skip
                    if labels:
                        w(f"if {inside}:")
                        w.depth += 1
                        read(k, labels)
                        w.depth -= 1
            w.depth -= 1
        for k in steps:
            for x in turned:
                w(f"tile_{x}[i4(ty + i4({k})) * i4({tile + 1}) + tx] = a{k}_{x}")
        if turned:
            w("barrier()")

        def compute(k: int) -> None:
            values = {x: f"a{k}_{x}" for x in straight}
            values |= {x: f"tile_{x}[tx * i4({tile + 1}) + i4(ty + i4({k}))]" for x in turned}
            values |= {x: self.at_row(x, f"i8(j{k})", outer) for x in self.leaves if self.is_table(x)}
            w(f"r = {self.call(values)}")
            self.write_results("r", {x: self.row_place(x, f"i8(j{k})", outer) for x in self.outs})

        w("if whole:")
        w.depth += 1
        for k in steps:
            compute(k)
        w.depth -= 1
        w("else:")
        w.depth += 1
        for k in steps:
            w(f"if j{k} < {ix}(m) and i < {ix}(n):")
            w.depth += 1
            compute(k)
            w.depth -= 1
        w.depth -= 1
        if turned:
            w("barrier()")
        w(f"block = {ix}(block + {ix}(blocks_y()))")
        w.depth -= 1

    def row_place(self, label: str, row: str, outer: int) -> tuple[str, str]:
        """The address and index of an operand's element in a row, at the thread's place across."""
        address = f"{label}_ + {row} * t_{label}_{outer}"
        if self.classes[label] == CONTIGUOUS:
            return address, "i"
        if self.classes[label] == STRETCHED:
            return address, "0"
        return f"{address} + i8(i) * t_{label}", "0"

    def at_row(self, label: str, row: str, outer: int) -> str:
        return self.loaded(label, *self.row_place(label, row, outer))


def _zero(c: str) -> str:
    """Nothing, of a dtype."""
    if c[0] == "c":
        part = f"f{int(c[1:]) // 2}"
        return f"{c}(complex({part}(0), {part}(0)))"
    return "i4(0) != i4(0)" if c == "b1" else f"{c}(0)"


def coordinates(w: Writer, flat: str, sizes: list[str], index: str) -> None:
    """The lines that take a flat index apart into `c0`, `c1`, ..."""
    w(f"rest = {flat}")
    for d in reversed(range(1, len(sizes))):
        w(f"c{d} = rem_{index}(rest, {index}({sizes[d]}))")
        w(f"rest = div_{index}(rest, {index}({sizes[d]}))")
    w("c0 = rest")


_FRAMES = {"flat": Flat, "rows": Rows, "tiles": Tiles}


def grid_source(program: Program, how: GridLayout) -> KernelText:
    """The source of a program's kernel for operands that lie as `how` says."""
    return _FRAMES[how.frame](program, how).source()
