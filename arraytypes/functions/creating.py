"""The standard's creation functions of more than one value: eye, meshgrid, tril and triu."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import _from_new, arange, zeros
from mirabelle.arraytypes.define import array_function, as_array
from mirabelle.arraytypes.dense import VIEWS, as_size, wrap
from mirabelle.arraytypes.elementwise import copied, leaf_family
from mirabelle.arraytypes.functions.outputs import library_is_quicker
from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.makers import creates, maker_of
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.arraytypes.parts import diagonal_view
from mirabelle.arraytypes.wrappers import Wrapper
from mirabelle.dispatch import verbs
from mirabelle.dispatch.misuse import explained
from mirabelle.dispatch.signatures import keyword_only
from mirabelle.dispatch.tree import Leaf, broadcast_shapes


@keyword_only("k", "dtype", "order")
@creates
@explained
def eye(
    n_rows: int, n_cols: Any = None, /, k: int = 0, dtype: Any = None, order: str = "C", *, device: Any = None
) -> AbstractArray:
    """Ones on the k-th diagonal of a matrix of zeros.

    Parameters
    ----------
    n_rows : int
        The number of rows.
    n_cols : int or None
        The number of columns; None is as many as rows.
    k : int, default 0
        Which diagonal: 0 is the main one, positive ones are above it.
    dtype : dtype or None
        The dtype of the result; None is float64.
    order : str, default 'C'
        The order in memory, as NumPy names it; "K" and "C" are rows first.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    array
        Of shape (n_rows, n_cols), and of dtype float64 unless `dtype` is given, in new memory at the place
        that `device` says.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.eye(2, 3, k=1))
    [[0. 1. 0.]
     [0. 0. 1.]]
    """
    n = as_size(n_rows, "eye", "n_rows")
    m = n if n_cols is None else as_size(n_cols, "eye", "n_cols")
    maker = maker_of(device)
    k = as_size(k, "eye", "k")
    if order == "C" and VIEWS.get(np.ndarray) is maker.family and library_is_quicker(maker.family, n * m, None):
        numpys: Any = np.eye
        return _from_new(numpys(n, m, k, checked_dtype(dtype or np.float64)), maker)
    out = zeros((n, m), dtype=dtype, order=order, device=maker.family)
    if min(n - max(-k, 0), m - max(k, 0)) > 0:
        verbs.assign(diagonal_view(out, k), 1)
    return maker(out)


def _part(x: Any, k: Any, name: str, keep: Any) -> Any:
    if x.ndim < 2:
        raise ValueError(
            f"{name} takes matrices, and this array has {x.ndim} dimension(s): mb.{name}(x[None, :])."
        )
    n, m = x.shape[-2:]
    k = min(max(operator.index(k), -n), m)
    if n * m <= _FEW and isinstance(x, (HostArray, Wrapper)) and leaf_family(type(x)) is HostArray:
        mask = wrap(HostArray, _host_mask(n, m, k, name))
    else:
        rows = arange(n, device=x.place)
        columns = arange(m, device=x.place)
        mask = keep(columns, verbs.add(verbs.getitem(rows, (slice(None), None)), k))
    return verbs.where(mask, x, x.dtype.type(0))


# Masks of so many elements are kept: making one takes longer than what it is for.
_FEW = 1 << 14


@functools.lru_cache(maxsize=16)
def _host_mask(n: int, m: int, k: int, name: str) -> Leaf:
    """Where a triangle of a small matrix is."""
    return Leaf(np.tri(n, m, k, bool) if name == "tril" else ~np.tri(n, m, k - 1, bool))


@keyword_only("k")
@array_function
def tril(x: Any, /, k: int = 0) -> Any:
    """Matrices with zeros above the k-th diagonal; lazy.

    Parameters
    ----------
    x : array (..., m, n)
        A matrix, or a stack of them.
    k : int, default 0
        Which diagonal: 0 is the main one, positive ones are above it.

    Returns
    -------
    array
        Of the shape, dtype and place of `x`, in new memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.tril(mb.HostArray([[1, 2], [3, 4]])))
    [[1 0]
     [3 4]]
    """
    return _part(x, k, "tril", verbs.less_equal)


@keyword_only("k")
@array_function
def triu(x: Any, /, k: int = 0) -> Any:
    """Matrices with zeros below the k-th diagonal; lazy.

    Parameters
    ----------
    x : array (..., m, n)
        A matrix, or a stack of them.
    k : int, default 0
        Which diagonal: 0 is the main one, positive ones are above it.

    Returns
    -------
    array
        Of the shape, dtype and place of `x`, in new memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.triu(mb.HostArray([[1, 2], [3, 4]])))
    [[1 2]
     [0 4]]
    """
    return _part(x, k, "triu", verbs.greater_equal)


@explained
def meshgrid(
    *arrays: Any, indexing: str = "xy", sparse: bool = False, copy: bool = True
) -> tuple[AbstractArray, ...]:
    """Coordinates of a grid: for each vector an array in which it runs along its own dimension.

    `indexing="xy"` lets the first vector run along the second dimension, as in plots; "ij" along the
    first. With `sparse`, an array has size 1 along the others' dimensions. They are lazy: what is
    computed of them needs no memory for the grid. With `copy=False` they are read-only views.

    Parameters
    ----------
    *arrays : vectors
        The coordinates along each dimension.
    indexing : str, default 'xy'
        "xy" has the first run along columns, "ij" along rows.
    sparse : bool, default False
        Whether the results keep sizes of one.
    copy : bool, default True
        Whether results have memory of their own.

    Returns
    -------
    tuple of array
        One for each vector and of its dtype, each with as many dimensions as there are vectors.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x, y = mb.meshgrid(mb.HostArray([1, 2, 3]), mb.HostArray([10, 20]))
    >>> print(x + y)
    [[11 12 13]
     [21 22 23]]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f'indexing is "xy" or "ij", not {indexing!r}.')
    like = next((x for x in arrays if isinstance(x, AbstractArray)), None)
    vectors = [as_array(x, like) for x in arrays]
    for v in vectors:
        if v.ndim > 1:
            raise ValueError(
                f"meshgrid takes vectors, and one has shape {v.shape}. Flatten it: mb.reshape(x, (-1,))."
            )
    n = len(vectors)
    along = list(range(n))
    if indexing == "xy" and n > 1:
        along[:2] = [1, 0]
    shown = [
        verbs.reshape(v, tuple(v.size if d == along[i] else 1 for d in range(n))) for i, v in enumerate(vectors)
    ]
    if not sparse:
        shape = broadcast_shapes([s.shape for s in shown] or [()], "meshgrid")
        shown = [verbs.broadcast_to(s, shape) for s in shown]
    return tuple(map(copied, shown)) if copy else tuple(shown)
