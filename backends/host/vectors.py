"""Products and norms of what lies in the host's memory, without a detour.

The general methods do the same. For a few hundred elements, what they ask on the way costs more than BLAS.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import keep_value
from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.reductions import REDUCTIONS
from mirabelle.arraytypes.wrappers import PermutedDims, Reshaped, View, root_of
from mirabelle.backends.host import numpyblas
from mirabelle.backends.host.direct import memory_reader, plain
from mirabelle.backends.host.interpreter import quietly
from mirabelle.backends.host.matmul import PLAIN, product
from mirabelle.dispatch import counters, generic, native, promotion, verbs
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import Leaf, new_leaf

_new = object.__new__


def _array(cls: Any, data: Any, dtype: np.dtype) -> Any:
    """New memory as an array of a type."""
    leaf = new_leaf(Leaf)
    leaf.view = data if type(data) is np.ndarray else np.asarray(data, dtype)
    leaf.shape = leaf.view.shape
    leaf.dtype = dtype
    x = _new(cls)
    x._node = leaf
    return x


def _count(x: Any, *operands: np.ndarray) -> None:
    """One launch made this array of these."""
    counters.launched(sum([a.nbytes for a in operands]), x._node.view.nbytes)


def _stored(x: Any) -> Any:
    """The memory of an array that is evaluated, else None."""
    node = x._node
    if type(node) is not Leaf:
        if node.value is None:
            return None
        node = keep_value(x, node)
    return node.view


def _of_matrices(first: Any, second: Any) -> Any:
    """The type of a product that BLAS computes of vectors and matrices of these types."""
    if len(first.parameters) < 2 or len(second.parameters) < 2:
        return None
    dtype, n1 = first.parameters
    product_of: Any = library.matrix_product.core.resolve((first.family,))
    if first.family is not second.family or product_of.is_users:
        return None
    if second.parameters[0] != dtype or dtype.char not in "fdFD" or not {n1, second.parameters[1]} <= {1, 2}:
        return None
    return first.family[dtype, n1 + second.parameters[1] - 2]


# Of two vectors of one of these dtypes NumPy's own inner product is called from C.
_LINES = "fdFDbhilqBHILQ"


def _of_lines(first: Any, second: Any, function: Any, general: Any) -> Any:
    """What multiplies two vectors of one dtype, or parts that are such, as NumPy's function does; else None."""
    dtype: Any = getattr(first, "dtype", None)
    product_of: Any = library.matrix_product.core.resolve((HostArray,))
    if (
        {getattr(first, "ndim", 0), getattr(second, "ndim", 0)} != {1}
        or None in (memory_reader(first), memory_reader(second))
        or second.dtype != dtype
        or dtype.char not in _LINES
        or issubclass(first, PermutedDims)
        or issubclass(second, PermutedDims)
        or product_of.is_users
    ):
        return None
    family: Any = HostArray
    return _product(family, dtype, False, general, function)


def _of_parts(first: Any, second: Any) -> Any:
    """As `matmul` of arrays, where one is a part of memory, or is turned."""
    general = verbs.matmul.core.resolve((AbstractArray, AbstractArray)).implementation
    lines = _of_lines(first, second, np.matmul, general)
    if lines is not None:
        return lines
    dtype = getattr(first, "dtype", None)
    readers = memory_reader(first), memory_reader(second)
    if (
        dtype is None
        or None in readers
        or second.dtype != dtype
        or dtype.char not in "fdFD"
        or not {first.ndim, second.ndim} <= {1, 2}
    ):
        return general
    read, read_second = readers
    family: Any = HostArray
    out = family[dtype, first.ndim + second.ndim - 2]

    def matmul(x1: Any, x2: Any) -> Any:
        a: Any = None if _pending(x1) or _pending(x2) else read(x1)
        b: Any = None if a is None else read_second(x2)
        if a is None or b is None or a.shape[-1] != b.shape[0]:
            return general(x1, x2)
        made = _array(out, quietly(product, a, b), dtype)
        if counters.active:
            _count(made, a, b)
        return made

    if {first.ndim, second.ndim} == {1}:
        return matmul
    return _product(family, dtype, False, matmul)


def _product(family: Any, dtype: Any, matrices: bool, python: Any, function: Any = np.matmul) -> Any:
    """Products in C of what is in memory and BLAS can read; Python is asked for all else."""
    numpyblas.tell()
    results = tuple([family[dtype, n] for n in range(3)])
    return native.in_c.Product(function, results, dtype, PLAIN, matrices, function is np.dot, python)


def _beside_numpys(verb: Any, function: Any) -> None:
    """Products of an array of ours, or a part of one, and one of NumPy's of its dtype."""

    def product(first: Any, second: Any) -> Any:
        general = verb.core.resolve(
            tuple(np.ndarray if issubclass(t, np.ndarray) else AbstractArray for t in (first, second))
        ).implementation
        ours = second if first is np.ndarray else first
        dtype = getattr(ours, "dtype", None)
        if (
            np.ndarray not in (first, second)
            or memory_reader(ours) is None
            or not isinstance(dtype, np.dtype)
            or dtype.char not in "fdFD"
            or getattr(ours, "ndim", 0) not in (1, 2)
            or library.matrix_product.core.resolve((HostArray,)).is_users
        ):
            return general
        return _product(HostArray, dtype, False, general, function)

    kinds: Any = HostArray | View | PermutedDims | Reshaped
    verb.generated(product, signature=(kinds, np.ndarray))
    verb.generated(product, signature=(np.ndarray, kinds))


_beside_numpys(verbs.matmul, np.matmul)
_beside_numpys(verbs.dot, np.dot)


def _pending(x: Any) -> bool:
    node = root_of(x)._node
    return type(node) is not Leaf and node.value is None


verbs.matmul.generated(_of_parts, signature=(View | PermutedDims, HostArray | View | PermutedDims))
verbs.matmul.generated(_of_parts, signature=(HostArray, View | PermutedDims))


@verbs.matmul.generated(signature=(HostArray, HostArray))
def _(first: Any, second: Any) -> Any:
    general = verbs.matmul.core.resolve((AbstractArray, AbstractArray)).implementation
    lines = _of_lines(first, second, np.matmul, general)
    if lines is not None:
        return lines
    found = _of_matrices(first, second)
    if found is None or found.ndim == 0:
        return general
    # (A tree that meets a vector joins the kernel of the product: that is for the general method.)
    return _product(found.family, found.dtype, first.ndim == second.ndim == 2, general)


@verbs.dot.generated(signature=(HostArray | View, HostArray | View))
def _(first: Any, second: Any) -> Any:
    general = verbs.dot.core.resolve((AbstractArray, AbstractArray)).implementation
    return _of_lines(first, second, np.dot, general) or general


class _AsRegistered:
    """Are some functions still what they were when mirabelle was imported? Asked anew when methods change."""

    def __init__(self, *functions: Any) -> None:
        self.cores = [f.core for f in functions]
        self.methods: list[Any] = []
        self.world = -1
        self.answer = False

    def __call__(self) -> bool:
        if generic._world != self.world:
            found = [core.resolve((HostArray,) * core.arity) for core in self.cores]
            self.methods = self.methods or found
            self.answer = found == self.methods and not any(core.active_overrides for core in self.cores)
            self.world = generic._world
        return self.answer


# What a norm is made of: whoever overrides that, is asked.
_of_norms = _AsRegistered(verbs.square, verbs.sum, verbs.reduce_, verbs.sqrt)
_of_sums = _AsRegistered(verbs.reduce_)


@verbs.norm.generated(signature=(HostArray,))
def _(array: Any) -> Any:
    general = verbs.norm.core.resolve((AbstractArray,)).implementation
    if len(array.parameters) < 2 or array.dtype.char not in "fd":
        return general
    out, dtype = array.family[array.dtype, 0], array.dtype

    def norm(x: Any, p: Any = 2) -> Any:
        a = _stored(x) if type(p) is int and p == 2 else None
        if a is None or not a.flags.forc or not _of_norms():
            return general(x, p)
        line = a.ravel("K")
        made = _array(out, math.sqrt(quietly(np.dot, line, line)), dtype)
        if counters.active:
            _count(made, a)
        return made

    return norm


# Of which elements reductions are made in C, and of which sums, which are of a larger dtype.
_PLAIN, _ADDED_UP = "fdl", "?bhiBHI"


def _reduction(verb: Any, ufunc: np.ufunc) -> None:
    """The reduction of all elements, at once where they fit a cache: a node would cost more than it saves."""
    named = REDUCTIONS[verb.__name__]
    added = _ADDED_UP if named is REDUCTIONS["sum"] else ""

    def in_c(array: Any, ndim: int, general: Any) -> Any:
        """What makes nodes of small trees and of views in C, and asks Python for all else."""
        dtype = array.dtype
        if dtype.char in added:
            dtype = np.dtype(np.uint64 if dtype.kind == "u" else np.int64)
        elif dtype.char not in _PLAIN:
            return general
        results = tuple(array.family[dtype, n] for n in range(ndim + 1))
        cast = None if dtype == array.dtype else promotion.cast(array.dtype, dtype)
        return native.in_c.Reducer(named, results, dtype, _of_sums, general, cast)

    def generated(array: Any) -> Any:
        general = verb.core.resolve((AbstractArray,)).implementation
        return general if len(array.parameters) < 2 else in_c(array, array.ndim, general)

    def generated_of_views(view: Any) -> Any:
        general = verb.core.resolve((AbstractArray,)).implementation
        array = view.parent_type
        return in_c(array, view.ndim, general) if plain(array) and view.dtype == array.dtype else general

    verb.generated(generated, signature=(HostArray,))
    verb.generated(generated_of_views, signature=(View,))


for _verb, _ufunc in (
    (verbs.sum, np.add),
    (verbs.prod, np.multiply),
    (verbs.min, np.minimum),
    (verbs.max, np.maximum),
):
    _reduction(_verb, _ufunc)


def _question(verb: Any, answer: Callable[[np.ndarray], Any], dtype: np.dtype) -> None:
    """What is asked about all elements, answered at once where they are in memory and fit a cache."""

    def generated(array: Any) -> Any:
        general = verb.core.resolve((AbstractArray,)).implementation
        if len(array.parameters) < 2:
            return general
        out = array.family[dtype, 0]

        def asked(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
            a = _stored(x) if axis is None and not keepdims else None
            if a is None or a.size > 32 * settings.small_size or not _of_sums():
                return general(x, axis=axis, keepdims=keepdims)
            made = _array(out, answer(a), dtype)
            if counters.active:
                _count(made, a)
            return made

        return asked

    verb.generated(generated, signature=(HostArray,))


_question(verbs.all, lambda a: np.logical_and.reduce(a, None), np.dtype(bool))
_question(verbs.any, lambda a: np.logical_or.reduce(a, None), np.dtype(bool))
_question(verbs.count_nonzero, np.count_nonzero, np.dtype(np.int64))
