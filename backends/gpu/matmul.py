"""Matrix products of a card: which way each goes is found once for operands that lie alike.

BLAS by address, our own kernel (for dtypes that BLAS does not know, and in graphs), or the library. For
small matrices a product costs what the host does for it: so what is left to do each time is to allocate
the result and to call BLAS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.gpu import GPUArray, copy_strided
from mirabelle.arraytypes.library import stored_view
from mirabelle.backends.gpu.lib_blas import PREFIX, Call, inner, lying, packed, planned, readable
from mirabelle.backends.gpu.library import on_card, uncounted
from mirabelle.backends.gpu.products import product
from mirabelle.backends.gpu.recording import recording
from mirabelle.backends.host.matmul import result_shape
from mirabelle.dispatch import counters, verbs
from mirabelle.dispatch.tree import Leaf

# By driver, and how both operands lie: a function of their views.
_ways: dict[Any, Callable[[Any, Any], Any]] = {}


@library.matrix_product.method
def _(family: type[GPUArray], x1: Any, x2: Any) -> Any:
    a, b = stored_view(x1), stored_view(x2)
    if a is None or b is None:  # a structured array
        a, b = verbs.leaf_of(x1).view, verbs.leaf_of(x2).view
    driver = family.driver()
    if driver.recorders and recording(driver) is not None:
        way: Any = product  # CuPy lets nobody call BLAS while a graph is recorded
    else:
        key = driver, a._layout or a.layout, b._layout or b.layout, library.additions
        way = _ways.get(key)
        if way is None:
            if len(_ways) > 1 << 14:
                _ways.clear()
            way = _ways[key] = _way(driver, family, a, b)
    made = way(a, b)
    if counters.active and way is not product:  # (which counts itself)
        counters.add(launches=1, bytes_read=a.nbytes + b.nbytes, bytes_written=made.nbytes)
    return wrap(family, Leaf(made))


def _way(driver: Any, family: Any, a: Any, b: Any) -> Callable[[Any, Any], Any]:
    dtype = np.result_type(a.dtype, b.dtype)
    if library.registered(family, "matmul") is None:
        # BLAS knows no integers (CuPy's kernel for narrow ones is quicker than ours, for wide ones slower).
        if dtype.kind == "b" or (dtype.kind in "iu" and dtype.itemsize == 8):
            return product
        if on_card(driver.library) and dtype.char in PREFIX and a.size and b.size:
            found = by_address(driver, family, a, b, dtype)
            if found is not None:
                return found
    return uncounted(family, "matmul")


def by_address(driver: Any, family: Any, a: Any, b: Any, dtype: np.dtype) -> Product | None:
    """The product by one call of BLAS, of operands that are copied first where it cannot read them."""
    how = [lying(x) for x in (a, b)]
    needed = [x.dtype != dtype or not readable(lies) for x, lies in zip((a, b), how, strict=True)]
    shape = result_shape(a, b)
    # (a stack whose matrices lie unevenly is read as a copy, too)
    for copied in (needed, [True, True]):
        first, second = (
            packed(lies.shape, dtype.itemsize) if c else lies for lies, c in zip(how, copied, strict=True)
        )
        if a.ndim == 1 == b.ndim:
            call = inner(first, second, dtype)
        else:
            call = planned(first, second, packed(shape, dtype.itemsize), dtype)
        if call is not None:
            return Product(driver, family, call, shape, dtype, copied)
    return None


class Product:
    """All of a product by BLAS that does not depend on addresses."""

    __slots__ = ("_call", "_copied", "_copies", "_driver", "_dtype", "_empty", "_family", "_shape")

    def __init__(
        self, driver: Any, family: Any, call: Call, shape: tuple[int, ...], dtype: np.dtype, copied: list[bool]
    ) -> None:
        self._driver = driver
        self._family = family
        self._empty = family._empty
        self._call = call
        self._shape = shape
        self._dtype = dtype
        self._copied = copied
        self._copies = any(copied)

    def __call__(self, a: Any, b: Any) -> Any:
        driver = self._driver
        if not driver.is_current():
            with driver.using():
                return self(a, b)
        if self._copies:
            a, b = (self._readable(x) if c else x for x, c in zip((a, b), self._copied, strict=True))
        made = self._empty(self._shape, self._dtype)
        self._call(a.ptr, b.ptr, made.ptr)
        return made

    def _readable(self, view: Any) -> Any:
        """A dense copy in the product's dtype."""
        family = self._family
        made = family._empty(view.shape, self._dtype)
        copy_strided(made, view)
        return made
