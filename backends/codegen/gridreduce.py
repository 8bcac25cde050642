"""Reductions on a grid of threads: the tree is evaluated inside, and combined in shared memory.

The threads of a block stand in rows and columns. For a reduction of the innermost dimension those
of a row combine one output ("across"), else those of a column ("down"); either way neighbouring
threads read neighbouring elements. Where outputs are few, the grid's second dimension splits what
is reduced, and each part writes a partial result, which the same kernel combines.

Parameters: the addresses of results, stored values and leaves, scalars, neutral elements, then
sizes and strides in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mirabelle.backends.codegen.element import (
    KernelText,
    element_source,
    scalar_codes,
    scalar_parameters,
    write_scalars,
)
from mirabelle.backends.codegen.gridframe import coordinates
from mirabelle.backends.codegen.program import Program
from mirabelle.backends.codegen.source import Writer, function_name, tables
from mirabelle.dispatch.ops import Op
from mirabelle.dispatch.promotion import code

_COMBINE = {
    "sum": {"f": "{0} + {1}", "i": "{c}({0} + {1})", "u": "{c}({0} + {1})", "c": "{0} + {1}"},
    "prod": {"f": "{0} * {1}", "i": "{c}({0} * {1})", "u": "{c}({0} * {1})"},
    "min": dict.fromkeys("fiub", "minimum_{c}({0}, {1})"),
    "max": dict.fromkeys("fiub", "maximum_{c}({0}, {1})"),
    "any": {"b": "{0} | {1}"},
    "all": {"b": "{0} & {1}"},
}
_UFUNC = {"sum": "add", "prod": "multiply", "min": "minimum", "max": "maximum"}


@dataclass(frozen=True)
class ReduceLayout:
    """The shape of a reduction: how many kept and reduced dimensions there are after merging.

    `operations` name how each result combines; `lanes` is how many neighbours along the innermost
    dimension a thread reads as one vector, if it is reduced (`across`) and `vectors` allow it.
    """

    across: bool
    kept: int
    reduced: int
    operations: tuple[Any, ...]
    lanes: int = 1
    vectors: str = ""
    wide: bool = False
    threads: int = 256
    unroll: int = 4


def combined(name: str, dtype: np.dtype, a: str, b: str) -> str:
    """The expression that combines two values of a reduction by its name."""
    c = code(dtype)
    form = _COMBINE[name].get(dtype.kind)
    if form is None or dtype.char == "e":
        return f"{_UFUNC[name]}_{c}({a}, {b})"
    return form.format(a, b, c=c)


def reduce_source(program: Program, how: ReduceLayout, user: dict[int, Op]) -> KernelText:
    """The source of a reduction. `user` has the users' functions that combine, by result."""
    w = Writer()
    functions = element_source(w, program)
    n_red = len(how.operations)
    n_out = len(program.outs)
    known = {-1 - r for r in tables(program)}
    reds = [f"y{j}" for j in range(n_red)]
    stored = [f"z{j}" for j in range(n_red, n_out)]
    leaves = [f"x{j}" for j in range(len(program.leaf_dtypes))]
    codes = dict(
        zip([*reds, *stored, *leaves], map(code, [*program.out_dtypes, *program.leaf_dtypes]), strict=True)
    )
    dtypes = program.out_dtypes[:n_red]
    kept, reduced = range(how.kept), range(how.reduced)
    ix = "i8" if how.wide else "i4"

    neutral_names, neutral_codes = [], []
    for j, d in enumerate(dtypes):
        names = [f"e{j}r", f"e{j}i"] if d.kind == "c" else [f"e{j}w"]
        neutral_names += names
        neutral_codes += [neutral_code(d)] * len(names)
    sizes = ["outputs", "length", "chunk", *[f"m{d}" for d in kept], *[f"n{d}" for d in reduced]]
    strides = [f"t_{y}_{d}" for y in [*reds, *stored, *leaves] for d in kept]
    strides += [f"u_{y}" for y in reds] + [f"r_{x}_{d}" for x in [*stored, *leaves] for d in reduced]
    name = f"reduce_{program.name}"
    addresses = [*reds, *stored, *leaves]
    parameters = [*addresses, *scalar_parameters(program), *neutral_names, *sizes, *strides]
    parameter_codes = (
        ["i8"] * len(addresses) + scalar_codes(program) + neutral_codes + ["i8"] * (len(sizes) + len(strides))
    )

    def combine(j: int, a: str, b: str) -> str:
        op = user.get(j)
        if op is not None:
            return f"{code(dtypes[j])}({function_name(op)}({a}, {b}))"
        return combined(how.operations[j], dtypes[j], a, b)

    w(f"def {name}({', '.join(parameters)}):")
    w.depth += 1
    write_scalars(w, program)
    for j, d in enumerate(dtypes):
        c = code(d)
        w(f"acc{j} = {c}(complex(e{j}r, e{j}i))" if d.kind == "c" else
          f"acc{j} = e{j}w != i8(0)" if d.kind == "b" else f"acc{j} = {c}(e{j}w)")  # fmt: skip
    for j in range(n_red):
        w(f"part{j} = cuda.shared.array({how.threads}, {code(dtypes[j])})")
    w("tx = i4(thread_x())")
    w("ty = i4(thread_y())")
    w("wide = i4(threads_x())")
    if how.across:
        w("lane = tx")
        w("teams = i4(threads_y())")
        w("mine = ty")
        w("width = wide")
    else:
        w("lane = ty")
        w("teams = wide")
        w("mine = tx")
        w("width = i4(threads_y())")
    w(f"o = {ix}({ix}(block_x()) * {ix}(teams) + {ix}(mine))")
    w("split = i8(block_y())")
    w(f"first = {ix}(split * chunk)")
    w(f"last = {ix}(min(length, (split + i8(1)) * chunk))")
    w(f"if o < {ix}(outputs):")
    w.depth += 1
    if how.kept:
        coordinates(w, "o", [f"m{d}" for d in kept], ix)
        for x in [*stored, *leaves]:
            w(f"{x} = {x} + {' + '.join(f'i8(c{d}) * t_{x}_{d}' for d in kept)}")

    def body(k: str, u: str, lanes: int) -> list[str]:
        """Load what is at index `k` of the reduced dimensions; returns the elements' expressions."""
        if how.reduced > 1:
            for line in _coordinates(k, how.reduced, ix, u):
                w(line)
        place = {}
        for x in [*stored, *leaves]:
            terms = (
                f"i8({k}) * r_{x}_0"
                if how.reduced == 1
                else " + ".join(f"i8(d{u}_{d}) * r_{x}_{d}" for d in reduced)
            )
            place[x] = f"{x} + {terms}" if how.reduced else x
        values: list[dict[str, str]] = [{} for _ in range(lanes)]
        for i, x in enumerate(leaves):
            if i in known:
                for lane, v in enumerate(values):
                    v[x] = f"{place[x]} + i8({lane}) * r_{x}_0" if lane else place[x]
            elif lanes > 1 and how.vectors[i] == "c":
                w(f"q{u}_{x} = load{lanes}_{codes[x]}({place[x]}, 0)")
                for lane, v in enumerate(values):
                    v[x] = f"q{u}_{x}[{lane}]"
            else:
                for lane, v in enumerate(values):
                    w(f"a{u}_{lane}_{x} = load_{codes[x]}({place[x]} + i8({lane}) * r_{x}_0, 0)" if lane else
                      f"a{u}_{lane}_{x} = load_{codes[x]}({place[x]}, 0)")  # fmt: skip
                    v[x] = f"a{u}_{lane}_{x}"
        calls = []
        for lane, v in enumerate(values):
            given = [v[x] for x in leaves] + [f"s{s}" for s in program.scalar_slots.values()]
            w(f"v{u}_{lane} = element({', '.join(given)})")
            calls.append(f"v{u}_{lane}")
            for j, z in enumerate(stored, n_red):
                at = f"{place[z]} + i8({lane}) * r_{z}_0" if lane else place[z]
                w(f"store_{codes[z]}({at}, 0, v{u}_{lane}[{j}])")
        return calls

    def accumulate(calls: list[str]) -> None:
        for call in calls:
            for j in range(n_red):
                w(f"acc{j} = {combine(j, f'acc{j}', call if n_out == 1 else f'{call}[{j}]')}")

    lanes = how.lanes
    w(f"k = {ix}(first + {ix}(lane) * {ix}({lanes}))")
    w(f"step = {ix}({ix}(width) * {ix}({lanes}))")
    if how.unroll > 1:
        # Several loads on their way before the first is needed.
        w(f"ahead = {ix}(step * {ix}({how.unroll - 1}) + {ix}({lanes - 1}))")
        w("while k + ahead < last:")
        w.depth += 1
        waiting = []
        for u in range(how.unroll):
            w(f"k{u} = {ix}(k + step * {ix}({u}))")
            waiting += body(f"k{u}", str(u), lanes)
        accumulate(waiting)
        w(f"k = {ix}(k + step * {ix}({how.unroll}))")
        w.depth -= 1
    if lanes > 1:
        w(f"while k + {ix}({lanes - 1}) < last:")
        w.depth += 1
        accumulate(body("k", "p", lanes))
        w(f"k = {ix}(k + step)")
        w.depth -= 1
    w("while k < last:")
    w.depth += 1
    if lanes > 1:  # what is left is less than a vector, and one thread's
        accumulate(body("k", "r", 1))
        w(f"k = {ix}(k + {ix}(1))")
    else:
        accumulate(body("k", "r", 1))
        w(f"k = {ix}(k + step)")
    w.depth -= 2
    w("here = i4(ty * wide + tx)")
    for j in range(n_red):
        w(f"part{j}[here] = acc{j}")
    w("barrier()")
    w("half = i4(width >> i4(1))")
    w(f"apart = i4({'1' if how.across else 'wide'})")
    w("while half > i4(0):")
    w.depth += 1
    w("if lane < half:")
    w.depth += 1
    w("there = i4(here + half * apart)")
    for j in range(n_red):
        w(f"part{j}[here] = {combine(j, f'part{j}[here]', f'part{j}[there]')}")
    w.depth -= 1
    w("barrier()")
    w("half = i4(half >> i4(1))")
    w.depth -= 1
    w(f"if lane == i4(0) and o < {ix}(outputs):")
    w.depth += 1
    if how.kept:
        coordinates(w, "o", [f"m{d}" for d in kept], ix)
    for j, y in enumerate(reds):
        terms = "".join(f" + i8(c{d}) * t_{y}_{d}" for d in kept)
        w(f"store_{codes[y]}({y}{terms} + split * u_{y}, 0, part{j}[here])")
    w.depth -= 1
    return KernelText(w.text(), name, tuple(parameter_codes), [*functions, *user.values()])


def neutral_code(dtype: np.dtype) -> str:
    """The parameter type of a neutral element (each part of it, if it is complex)."""
    if dtype.kind == "c":
        return f"f{dtype.itemsize // 2}"
    if dtype.kind == "f":
        return "f4" if dtype.itemsize == 2 else code(dtype)
    return "u8" if dtype.kind == "u" else "i8"


def _coordinates(k: str, count: int, ix: str, u: str) -> list[str]:
    lines = [f"rest{u} = {k}"]
    for d in reversed(range(1, count)):
        lines.append(f"d{u}_{d} = rem_{ix}(rest{u}, {ix}(n{d}))")
        lines.append(f"rest{u} = div_{ix}(rest{u}, {ix}(n{d}))")
    return [*lines, f"d{u}_0 = rest{u}"]
