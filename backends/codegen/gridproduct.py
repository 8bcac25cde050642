"""Matrix products on a grid of threads, for element types that no library multiplies.

A block makes one tile of the result: tiles of both operands are brought to shared memory, a few
columns of the first and rows of the second at a time, and each thread adds up several elements.
Operands are read where they lie, whatever their strides.

Parameters: the addresses of the result and of the operands; rows and columns of the result, what is
summed over; the tiles of a matrix, how much of the sum is one part's, how many tiles lie side by
side; the result's strides (rows, columns, parts) and the operands'; the stack's sizes, and its
strides in the result and in both operands.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mirabelle.backends.codegen.element import KernelText
from mirabelle.backends.codegen.gridframe import coordinates
from mirabelle.backends.codegen.source import Writer, zero_cast
from mirabelle.dispatch.promotion import code

# A block has SIDE * SIDE threads, and takes SIDE steps of the sum at a time.
SIDE = 16
_SHIFT = 4


@dataclass(frozen=True)
class ProductLayout:
    """The shape of a product.

    Each thread makes `down` by `over` elements (1, 2 or 4 each). `by_rows`: does the first operand step
    less from row to row than along the sum; `by_columns` likewise for the second's columns. What is read
    as `first` and `second` is multiplied and added in `working`, and written as `result`.
    """

    down: int
    over: int
    stack: int
    by_rows: bool
    by_columns: bool
    first: np.dtype
    second: np.dtype
    working: np.dtype
    result: np.dtype
    logical: bool = False


def product_source(how: ProductLayout) -> KernelText:
    """The source of a product."""
    w = Writer()
    stack = range(how.stack)
    c = code(how.working)
    kinds = [code(d) for d in (how.first, how.second, how.working, how.result)]
    name = "_".join(
        ["product", *kinds, f"{how.down}{how.over}{how.stack}", "nr"[how.by_rows] + "nc"[how.by_columns]]
        + ["logical"] * how.logical
    )
    names = [
        "y", "a", "b", "rows", "columns", "length", "tiles", "chunk", "across", "y_m", "y_n", "y_s", "a_m",
        "a_k", "b_k", "b_n", *[f"m{d}" for d in stack], *[f"{x}_{d}" for x in "yab" for d in stack],
    ]  # fmt: skip
    zero = f"{c}(complex(0.0, 0.0))" if how.working.kind == "c" else f"{c}(0)"
    wide, high = SIDE * how.over, SIDE * how.down
    w(f"def {name}({', '.join(names)}):")
    w.depth += 1
    w("tx = i4(thread_x())")
    w("ty = i4(thread_y())")
    w(f"here = i4(ty * i4({SIDE}) + tx)")
    # (One element more a line: threads that write down a column meet different banks.)
    w(f"left = cuda.shared.array({SIDE * (high + 1)}, {c})")
    w(f"right = cuda.shared.array({SIDE * (wide + 1)}, {c})")
    w("z = div_i8(i8(block_x()), tiles)")
    w("tile = i8(i8(block_x()) - z * tiles)")
    w("down = div_i8(tile, across)")
    w(f"row = i8(down * i8({high}))")
    w(f"column = i8((tile - down * across) * i8({wide}))")
    w("split = i8(block_y())")
    w("begin = i8(split * chunk)")
    w("end = i8(min(length, begin + chunk))")
    if how.stack:
        coordinates(w, "z", [f"m{d}" for d in stack], "i8")
    for x in "yab":
        terms = "".join(f" + c{d} * {x}_{d}" for d in stack)
        w(f"{x}z = i8({x}{terms}{' + split * y_s' if x == 'y' else ''})")
    for i in range(how.down):
        for j in range(how.over):
            w(f"s{i}{j} = {zero}")
    loads = [
        _Loads("a", "left", how.first, high, how.by_rows, "row", "rows", "a_m"),
        _Loads("b", "right", how.second, wide, how.by_columns, "column", "columns", "b_n"),
    ]
    for load in loads:
        load.begin(w)
    w("k = begin")
    w("while k < end:")
    w.depth += 1
    w(f"ahead = i4(min(end - k, i8({SIDE})))")
    for load in loads:
        load.step(w, how, zero)
    w("barrier()")
    w("step = i4(0)")
    w(f"while step < i4({SIDE}):")
    w.depth += 1
    for x, array, at, side, n in (("p", "left", "ty", high, how.down), ("q", "right", "tx", wide, how.over)):
        w(f"{x} = i4(step * i4({side + 1}) + {at})")
        for i in range(n):
            w(f"{x}{i} = {array}[u4({x} + i4({i * SIDE}))]")
    for i in range(how.down):
        for j in range(how.over):
            if how.logical:
                form = f"s{i}{j} | (p{i} & q{j})"
            elif how.working.kind == "c":
                form = f"s{i}{j} + multiply_{c}(p{i}, q{j})"
            else:
                form = f"s{i}{j} + p{i} * q{j}"
            w(f"s{i}{j} = {c}({form})" if how.working.kind == "i" else f"s{i}{j} = {form}")
    w("step = i4(step + i4(1))")
    w.depth -= 1
    w("barrier()")
    w(f"k = i8(k + i8({SIDE}))")
    w.depth -= 1
    for i in range(how.down):
        w(f"m = i8(row + i8(ty + i4({i * SIDE})))")
        w("if m < rows:")
        w.depth += 1
        for j in range(how.over):
            value = zero_cast(f"s{i}{j}", how.working, how.result)
            w(f"n = i8(column + i8(tx + i4({j * SIDE})))")
            w("if n < columns:")
            w(f"    store_{code(how.result)}(yz + m * y_m + n * y_n, 0, {value})")
        w.depth -= 1
    return KernelText(w.text(), name, ("i8",) * len(names))


@dataclass
class _Loads:
    """How a tile of an operand comes to shared memory: neighbouring threads read what lies near.

    `outer`: near are not the steps of the sum. A thread reads as many elements as `side` has times SIDE,
    each through an address of its own, which moves on with the steps.
    """

    x: str
    array: str
    dtype: np.dtype
    side: int
    outer: bool
    place: str
    most: str
    step_over: str

    def begin(self, w: Writer) -> None:
        x, side = self.x, self.side
        shift = _SHIFT + (side // SIDE).bit_length() - 1
        mask, places = (side - 1, ("o", "t")) if self.outer else (SIDE - 1, ("t", "o"))
        w(f"{x}{places[0]} = i4(here & i4({mask}))")
        w(f"{x}{places[1]} = i4(here >> i4({shift if self.outer else _SHIFT}))")
        w(f"{x}_step = i8({x}_k * i8({SIDE}))")
        for p in range(side // SIDE):
            over, ahead = self._apart(p)
            # Beyond the edges the last element is read again, for what is not written.
            place = f"min({self.place} + i8({x}o + i4({over})), {self.most} - i8(1))"
            w(f"{x}{p} = i8({x}z + {place} * {self.step_over} + (begin + i8({x}t + i4({ahead}))) * {x}_k)")

    def step(self, w: Writer, how: ProductLayout, zero: str) -> None:
        x, side = self.x, self.side
        for p in range(side // SIDE):
            w(f"e{x}{p} = {zero}")
            w(f"if {x}t + i4({self._apart(p)[1]}) < ahead:")
            w(f"    e{x}{p} = {_as_working(f'load_{code(self.dtype)}({x}{p}, 0)', self.dtype, how)}")
        for p in range(side // SIDE):
            over, ahead = self._apart(p)
            w(f"{self.array}[u4({x}t * i4({side + 1}) + {x}o + i4({ahead * (side + 1) + over}))] = e{x}{p}")
            w(f"{x}{p} = i8({x}{p} + {x}_step)")

    def _apart(self, p: int) -> tuple[int, int]:
        """How far the p-th element a thread reads is from its first: outwards, and along the sum."""
        return (0, p * SIDE * SIDE // self.side) if self.outer else (p * SIDE, 0)


def _as_working(value: str, dtype: np.dtype, how: ProductLayout) -> str:
    if dtype == how.working:
        return value
    if dtype.kind == "b":  # truth values are 0 and 1
        return f"{code(how.working)}({value})"
    return zero_cast(value, dtype, how.working)
