"""Indices that are arguments of a compiled program: one kernel counts them from 0 on, and says if one is out of
range."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.gpu import GPUArray
from mirabelle.backends.codegen.element import KernelText
from mirabelle.dispatch import counters
from mirabelle.dispatch.promotion import code

THREADS = 256
# On a simulated card, whose threads Python runs one by one, NumPy looks at more of them.
SIMULATED = 1 << 10
_INT64 = np.dtype(np.int64)


@library.routine(GPUArray, "within")
def _(index: Any, axis: int, n: int) -> Any:
    """The indices as they are counted from 0 on; None where others say what is wrong, or look themselves."""
    family = type(index).family
    driver = family.driver()
    large = driver.simulated and index.size > SIMULATED
    if large or driver.recorders or not index.size or not index.flags.c_contiguous:
        return None
    made, flag = family._empty(index.shape, _INT64), family._empty((1,), _INT64)
    clear, run = checks(driver, index.dtype, index.size, n)
    clear(flag.ptr)
    run(made.ptr, index.ptr, flag.ptr)
    if counters.active:
        counters.add(launches=2, bytes_read=index.nbytes, bytes_written=made.nbytes)
    return None if family._download(flag)[0] else made


@functools.lru_cache(maxsize=256)
def checks(driver: Any, dtype: np.dtype, size: int, n: int) -> tuple[Any, Any]:
    """The launches: of the address of a flag, which they clear; of those of results, indices, and the flag."""
    c = code(dtype)
    first, then = _clear(), _within(c)
    grid = -(-size // THREADS), 1, 1
    return (
        driver.launcher(driver.load(first, {}), first.codes, (1, 1, 1), (1, 1, 1), ()),
        driver.launcher(driver.load(then, {}), then.codes, grid, (THREADS, 1, 1), (size, n)),
    )


@functools.cache
def _clear() -> KernelText:
    return KernelText("def clear(flag):\n    store_i8(flag, 0, i8(0))\n", "clear", ("i8",))


@functools.cache
def _within(c: str) -> KernelText:
    negative = "" if c[0] == "u" else "    if w < i8(0):\n        w = i8(w + n)\n"
    text = f"""def within(out, x, flag, size, n):
    i = i8(i8(block_x()) * i8(threads_x()) + i8(thread_x()))
    if i >= size:
        return
    w = i8(load_{c}(x, i))
{negative}    if w < i8(0):
        store_i8(flag, 0, i8(1))
        w = i8(0)
    if w >= n:
        store_i8(flag, 0, i8(1))
        w = i8(0)
    store_i8(out, i, w)
"""
    return KernelText(text, "within", ("i8",) * 5)


__all__ = ["checks"]
