"""Scans on a graphics card: running sums, products, extremes, and a user's function of two scalars.

How lines are cut into chunks depends on their number and length alone, so results are the same on
every run, and on every card. (Long sums and products are CuPy's, where it has them: as fast as memory
is, but of floating-point numbers their last bits may differ from run to run.)
"""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.usercode.userfunctions import refuse_captured_arrays
from mirabelle.backends.codegen.gridscan import ITEMS, USER, ScanLayout, scan_source
from mirabelle.backends.host.layout import merge
from mirabelle.backends.host.library import scan_ufunc
from mirabelle.dispatch import counters
from mirabelle.dispatch.errors import UserFunctionError
from mirabelle.dispatch.ops import TABLE

# Threads of a block.
THREADS = 256
# Lines shorter than this are one thread's.
SHORT = 32
# Neighbouring lines from this many on are read side by side.
SIDE_BY_SIDE = 8
# So many blocks, or threads walking along lines, keep a large card busy.
BLOCKS, WALKERS = 1 << 11, 1 << 17
# A block scans this many tiles rather than that three kernels are launched.
FEW_TILES = 4
# The most blocks a grid has along its second dimension.
MOST_ROWS = 65535
# On a simulated card, whose threads Python runs one by one, larger scans are NumPy's.
SIMULATED = 1 << 12

# Ufuncs that may be combined in any grouping.
_ASSOCIATIVE = {
    "add", "multiply", "maximum", "minimum", "fmax", "fmin", "logical_and", "logical_or", "logical_xor",
    "bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm", "logaddexp", "logaddexp2", "hypot",
}  # fmt: skip
_BY_LIBRARY = {"add": "cumsum", "multiply": "cumprod"}


def scan(view: Any, op: Any, axis: int) -> Any:
    """The running combination of a view's elements along an axis, as a new view.

    `op` is a ufunc or its name (None: "add"), with the dtypes of NumPy's `accumulate`, or a function of
    two scalars, which the result has the dtype of the operand for.
    """
    ufunc = scan_ufunc(op)
    result = view.dtype if ufunc is None else accumulated(ufunc, view.dtype)
    family = type(view).family
    driver = family.driver()
    length = view.shape[axis]
    if ufunc is not None and driver.simulated and view.size > SIMULATED:
        return _by_library(view, result, functools.partial(ufunc.accumulate, axis=axis))
    if (
        ufunc is not None
        and ufunc.__name__ in _BY_LIBRARY
        and result == view.dtype
        and view.contiguous
        and view.size == length > FEW_TILES * THREADS * ITEMS
        and result.char != "e"
    ):
        run = getattr(driver.library, _BY_LIBRARY[ufunc.__name__])
        return _by_library(view.reshape((length,)), result, run).reshape(view.shape)
    out = family._empty(view.shape, result)
    if counters.active:
        counters.add(bytes_read=view.nbytes, bytes_written=out.nbytes)
    if view.size:
        scan_by_kernels(view, out, axis, ufunc if ufunc is not None else op)
    return out


def _by_library(view: Any, result: np.dtype, run: Callable[..., Any]) -> Any:
    family = type(view).family
    driver = family.driver()
    if counters.active:
        counters.add(library_calls=1, bytes_read=view.nbytes, bytes_written=view.size * result.itemsize)
    with driver.using(), np.errstate(all="ignore"):
        return driver.view(run(driver.array(view)), family.view_type)


@functools.cache
def accumulated(ufunc: np.ufunc, dtype: np.dtype) -> np.dtype:
    """The dtype of NumPy's `ufunc.accumulate`; a TypeError where it has none."""
    result: np.dtype = ufunc.accumulate(np.ones(1, dtype)).dtype
    operation_of(ufunc)
    return result


@functools.cache
def operation_of(ufunc: np.ufunc) -> str:
    """What our functions of an operation are called."""
    for op in TABLE.values():
        if op.ufunc is ufunc and op.nin == 2 and op.nout == 1:
            return op.name
    raise ValueError(
        f"np.{ufunc.__name__} cannot be accumulated on a card. Give 'add', 'multiply', 'maximum', 'minimum' "
        "or a function of two scalars."
    )


def scan_by_kernels(view: Any, out: Any, axis: int, op: Any) -> None:
    """Scan into a new view of the result's dtype. `op` is a ufunc or a user's function."""
    # Sums of half precision are taken in single precision.
    working = np.dtype("f4") if out.dtype.char == "e" else out.dtype
    if isinstance(op, np.ufunc):
        name, functions = operation_of(op), {}
        grouped = op.__name__ in _ASSOCIATIVE
    else:
        function = checked_function(op)
        name, functions = None, {USER: function}
        grouped = associative(function, working)
    _scan(view, out, axis, name, tuple(functions.items()), grouped, working)


def _scan(
    view: Any, out: Any, axis: int, name: str | None, functions: Any, grouped: bool, working: np.dtype
) -> None:
    family = type(view).family
    driver = family.driver()
    lies = (view.shape, view.strides, view.dtype)
    plan = _planned(driver, *lies, out.strides, out.dtype, axis, name, functions, grouped, working)
    totals = partial = None
    if plan.chunks > 1:
        shape = (plan.lines, plan.chunks) if plan.along else (plan.chunks, plan.lines)
        totals = family._empty(shape, working)
        plan.first(out.ptr, view.ptr, totals.ptr)
        partial = family._empty(shape, working)
        _scan(totals, partial, 1 if plan.along else 0, name, functions, grouped, working)
    if counters.active:
        counters.add(launches=1 if totals is None else 2)
    plan.last(out.ptr, view.ptr, partial.ptr if partial is not None else 0)


class _Plan:
    """All of a scan that does not depend on addresses."""

    along: bool
    lines: int
    chunks: int
    # Writes the totals of chunks, and what scans each chunk from what was before it.
    first: Callable[..., None]
    last: Callable[..., None]


@functools.lru_cache(maxsize=512)
def _planned(
    driver: Any,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: np.dtype,
    steps: tuple[int, ...],
    out_dtype: np.dtype,
    axis: int,
    name: str | None,
    functions: Any,
    grouped: bool,
    working: np.dtype,
) -> _Plan:
    length = shape[axis]
    # Lines in the order in which the operand lies in memory.
    kept = sorted((d for d in range(len(shape)) if d != axis and shape[d] > 1), key=lambda d: -abs(strides[d]))
    lines = math.prod(shape[d] for d in kept)
    near = abs(strides[kept[-1]]) if kept and strides[kept[-1]] else None
    sizes: list[int] = []
    far: list[list[int]] = [[], []]
    if kept:
        sizes, far = merge([shape[d] for d in kept], [[s[d] for d in kept] for s in (steps, strides)])
    plan = _Plan()
    plan.lines = lines
    side_by_side = near is not None and near < abs(strides[axis]) and sizes[-1] >= SIDE_BY_SIDE
    plan.along = grouped and length > SHORT and not side_by_side
    if plan.along:
        threads = SHORT
        while threads < THREADS and threads * ITEMS < length:
            threads *= 2
        tile = threads * ITEMS
        tiles = -(-length // tile)
        wanted = min(tiles, -(-BLOCKS // lines)) if tiles > FEW_TILES and lines < BLOCKS // 4 else 1
        chunk = -(-tiles // wanted) * tile
        block = (threads, 1, 1)
    else:
        threads = THREADS
        wanted = max(1, min(length // SHORT, WALKERS // lines)) if grouped else 1
        chunk = -(-length // wanted)
        wide = 1
        while wide < threads and wide < lines:
            wide *= 2
        block = (wide, threads // wide if wanted > 1 else 1, 1)
        rows = MOST_ROWS * block[1]
        chunk = max(chunk, -(-length // rows))
    plan.chunks = chunks = -(-length // chunk)
    if plan.along:
        grid = (lines * chunks, 1, 1)
    else:
        grid = (-(-lines // block[0]), -(-chunks // block[1]), 1)
    fixed = (lines, length, chunks, chunk, steps[axis], strides[axis], *sizes, *far[0], *far[1])

    def launcher(totals: bool, begun: bool) -> Callable[..., None]:
        how = ScanLayout(
            plan.along, len(sizes), name, dtype, working, out_dtype, totals, begun, threads if plan.along else 0
        )
        text = scan_source(how)
        kernel = driver.load(text, dict(functions))
        return driver.launcher(kernel, text.codes, grid, block, fixed)  # type: ignore[no-any-return]

    if chunks > 1:
        plan.first = launcher(True, False)
    plan.last = launcher(False, chunks > 1)
    return plan


# Functions of users


def checked_function(op: Any) -> Any:
    """A function of two scalars that can be compiled."""
    function = getattr(op, "py_func", op)
    if not isinstance(function, types.FunctionType):
        raise UserFunctionError(
            f"{op!r} is a {type(op).__name__}, not a Python function, and cannot be compiled into a kernel. "
            "Wrap it in a lambda of two scalars."
        )
    refuse_captured_arrays(function)
    return function


@functools.lru_cache(maxsize=256)
def associative(f: Callable[..., Any], dtype: np.dtype) -> bool:
    """Does f(f(a, b), c) equal f(a, f(b, c)), up to rounding, wherever it is tried?

    What does not is combined in order, by one thread for each line.
    """
    cast = dtype.type
    if dtype.kind == "b":
        values = [cast(False), cast(True)] * 2
    elif dtype.kind in "iu":
        values = [cast(v) for v in ((-7, -2, 0, 1, 3, 10) if dtype.kind == "i" else (0, 1, 2, 3, 7, 10))]
    else:
        real = [-3.7, -0.4, 0.0, 0.3, 1.0, 1.9, 12.5]
        values = [cast(v) for v in real] if dtype.kind == "f" else [cast(complex(v, 0.8 - v * v)) for v in real]
    tolerance = 0.0 if dtype.kind in "biu" else math.sqrt(np.finfo(dtype).eps)
    with np.errstate(all="ignore"):
        for a in values:
            for b in values:
                for c in values:
                    try:
                        left = cast(f(cast(f(a, b)), c))
                        right = cast(f(a, cast(f(b, c))))
                    except Exception:  # says nothing; compiling it will
                        return False
                    if left == right or (left != left and right != right):
                        continue
                    scale = max(abs(x) for x in (a, b, c, left, right))
                    if not abs(left - right) <= tolerance * scale if tolerance else True:
                        return False
    return True
