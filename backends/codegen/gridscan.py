"""Scans on a grid of threads: the running combination of the elements of each line.

A *line* is what lies along the axis. "Along" it, a block scans tiles of one line in shared memory,
each thread some neighbouring elements; "across", a thread walks along a line of its own, beside
threads of the neighbouring lines. Where lines are few they are cut into chunks, and a scan is three:
the total of each chunk, the scan of these totals, and the scan of each chunk from what was before it.

No neutral element is needed, and elements are combined in their order: any associative function
will do (across, in one chunk, any function).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mirabelle.backends.codegen.element import KernelText
from mirabelle.backends.codegen.gridframe import coordinates
from mirabelle.backends.codegen.source import Writer, zero_cast
from mirabelle.dispatch.promotion import code

# Elements that a thread scans at once, along. (Odd: the threads of a warp then read different banks of
# shared memory.)
ITEMS = 7
# Elements that a thread reads before it needs the first, across.
AHEAD = 4
# What a user's function is called in the source.
USER = "combine"


@dataclass(frozen=True)
class ScanLayout:
    """The shape of a scan: of how many dimensions its lines are, and what is read and written.

    `operation` is an operation's name, or None for the user's function. `totals`: only the total of each
    chunk is written. `begun`: chunks begin with what was before them. `working` is the dtype in which
    elements of `source` are combined, for a result of dtype `result`.
    """

    along: bool
    lines: int
    operation: str | None
    source: np.dtype
    working: np.dtype
    result: np.dtype
    totals: bool = False
    begun: bool = False
    threads: int = 256


def scan_source(how: ScanLayout) -> KernelText:
    """The source of a scan.

    Parameters: the addresses of the result, of the operand and of the chunks' totals; the number of
    lines, their length, how many chunks they have, and of what length; the steps of the result and of
    the operand along the axis; the lines' sizes, and their strides in the result and in the operand.
    """
    w = Writer()
    lines = range(how.lines)
    sizes = [f"m{d}" for d in lines]
    strides = [f"{v}_{d}" for v in "yx" for d in lines]
    parts = [
        "scan", "along" if how.along else "across", how.operation or "user", code(how.source),
        code(how.working), code(how.result), "totals" * how.totals, "begun" * how.begun, str(how.threads),
    ]  # fmt: skip
    name = "_".join(p for p in parts if p)
    names = ["y", "x", "t", "count", "n", "chunks", "chunk", "step_y", "step_x", *sizes, *strides]
    w(f"def {name}({', '.join(names)}):")
    w.depth += 1
    (_along if how.along else _across)(w, how)
    return KernelText(w.text(), name, ("i8",) * len(names))


def combination(how: ScanLayout, a: str, b: str) -> str:
    """The expression that combines two values of the working dtype."""
    c = code(how.working)
    if how.operation is None:
        return zero_cast_result(how, f"{USER}({a}, {b})")
    if how.working.kind in "iuf" and how.operation in ("add", "multiply"):
        form = f"{a} {'+' if how.operation == 'add' else '*'} {b}"
        return form if how.working.kind == "f" else f"{c}({form})"
    return f"{how.operation}_{c}({a}, {b})"


def zero_cast_result(how: ScanLayout, value: str) -> str:
    """What a user's function returns, as the working dtype."""
    return f"bool({value})" if how.working.kind == "b" else f"{code(how.working)}({value})"


def _zero(dtype: np.dtype) -> str:
    c = code(dtype)
    return {"b": "False", "c": f"{c}(complex(0.0, 0.0))"}.get(dtype.kind, f"{c}(0)")


def _loaded(how: ScanLayout, place: str) -> str:
    return zero_cast(f"load_{code(how.source)}({place}, 0)", how.source, how.working)


def _stored(how: ScanLayout, place: str, value: str) -> str:
    return f"store_{code(how.result)}({place}, 0, {zero_cast(value, how.working, how.result)})"


def _to_line(w: Writer, how: ScanLayout) -> None:
    """Addresses of the line's first elements."""
    if how.lines:
        coordinates(w, "line", [f"m{d}" for d in range(how.lines)], "i8")
        for v in "yx":
            w(f"{v} = i8({v} + {' + '.join(f'c{d} * {v}_{d}' for d in range(how.lines))})")


def _along(w: Writer, how: ScanLayout) -> None:
    c = code(how.working)
    threads, tile = how.threads, how.threads * ITEMS
    w("tx = i4(thread_x())")
    w("line = div_i8(i8(block_x()), chunks)")
    w("at = i8(i8(block_x()) - line * chunks)")
    _to_line(w, how)
    w(f"part = cuda.shared.array({tile}, {c})")
    w(f"sums = cuda.shared.array({2 * threads}, {c})")
    w(f"carry = {_zero(how.working)}")
    w("begun = at > i8(0)")
    if how.begun:
        w("if begun:")
        w(f"    carry = load_{c}(t, i8(line * chunks + at - i8(1)))")
    else:
        w("begun = False")
    w("base = i8(at * chunk)")
    w("end = i8(min(n, base + chunk))")
    w(f"mine = i4(tx * i4({ITEMS}))")
    w("while base < end:")
    w.depth += 1
    # Beyond the end the last element is read again: its like come to nothing that is written.
    w(f"most = i4(min(end - base, i8({tile})) - i8(1))")
    w("here = i8(x + base * step_x)")
    for k in range(ITEMS):  # (all are on their way before the first is waited for)
        w(f"v{k} = {_loaded(how, f'here + i8(min(i4(tx + i4({k * threads})), most)) * step_x')}")
    for k in range(ITEMS):
        w(f"part[u4(tx + i4({k * threads}))] = v{k}")
    w("barrier()")
    w("s = part[u4(mine)]")
    w("k = i4(1)")
    w(f"while k < i4({ITEMS}):")
    w(f"    s = {combination(how, 's', 'part[u4(mine + k)]')}")
    w("    part[u4(mine + k)] = s")
    w("    k = i4(k + i4(1))")
    # The threads' totals, scanned: each step adds what twice as many threads before have.
    w("sums[u4(tx)] = s")
    w("barrier()")
    w("old = i4(tx)")
    w(f"new = i4(tx + i4({threads}))")
    w("apart = i4(1)")
    w(f"while apart < i4({threads}):")
    w.depth += 1
    w("s = sums[u4(old)]")
    w("if tx >= apart:")
    w(f"    s = {combination(how, 'sums[u4(old - apart)]', 's')}")
    w("sums[u4(new)] = s")
    w("barrier()")
    w("old, new = new, old")
    w("apart = i4(apart << i4(1))")
    w.depth -= 1
    if not how.totals:
        w("if begun or tx > i4(0):")
        w.depth += 1
        w("before = carry")
        w("if tx > i4(0):")
        w("    before = sums[u4(old - i4(1))]")
        w("    if begun:")
        w(f"        before = {combination(how, 'carry', 'before')}")
        w("k = i4(0)")
        w(f"while k < i4({ITEMS}):")
        w(f"    part[u4(mine + k)] = {combination(how, 'before', 'part[u4(mine + k)]')}")
        w("    k = i4(k + i4(1))")
        w.depth -= 1
    w(f"s = sums[u4(old - tx + i4({threads - 1}))]")
    w("if begun:")
    w(f"    s = {combination(how, 'carry', 's')}")
    w("carry = s")
    w("begun = True")
    w("barrier()")
    if not how.totals:
        w("here = i8(y + base * step_y)")
        for k in range(ITEMS):
            w(f"i = i4(tx + i4({k * threads}))")
            w("if i <= most:")
            w(f"    {_stored(how, 'here + i8(i) * step_y', 'part[u4(i)]')}")
        w("barrier()")
    w(f"base = i8(base + i8({tile}))")
    w.depth -= 1
    if how.totals:
        w("if tx == i4(0):")
        w(f"    store_{c}(t, i8(line * chunks + at), carry)")


def _across(w: Writer, how: ScanLayout) -> None:
    c = code(how.working)
    w("line = i8(i8(block_x()) * i8(threads_x()) + i8(thread_x()))")
    w("at = i8(i8(block_y()) * i8(threads_y()) + i8(thread_y()))")
    w("base = i8(at * chunk)")
    w("end = i8(min(n, base + chunk))")
    w("if line < count and base < end:")
    w.depth += 1
    w("place = i8(at * count + line)")
    _to_line(w, how)
    w("y = i8(y + base * step_y)")
    w("x = i8(x + base * step_x)")
    w(f"s = {_loaded(how, 'x')}")
    if how.begun:
        w("if at > i8(0):")
        w(f"    s = {combination(how, f'load_{c}(t, i8(place - count))', 's')}")
    if not how.totals:
        w(_stored(how, "y", "s"))
    w("k = i8(base + i8(1))")
    for ahead in (AHEAD, 1):
        w(f"while k + i8({ahead - 1}) < end:")
        w.depth += 1
        for j in range(ahead):
            w(f"v{j} = {_loaded(how, f'x + i8({j + 1}) * step_x')}")
        for j in range(ahead):
            w(f"s = {combination(how, 's', f'v{j}')}")
            if not how.totals:
                w(_stored(how, f"y + i8({j + 1}) * step_y", "s"))
        w(f"x = i8(x + i8({ahead}) * step_x)")
        w(f"y = i8(y + i8({ahead}) * step_y)")
        w(f"k = i8(k + i8({ahead}))")
        w.depth -= 1
    if how.totals:
        w(f"store_{c}(t, place, s)")
