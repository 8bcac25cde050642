"""dask: our arrays as chunks, beside dask's in operators; percentiles; means and deviations of chunks on a
device, which need the number of elements there too.

All else dask asks of the chunks themselves.

>>> import mirabelle as mb, dask.array as da
>>> x = da.from_array(mb.RefArray([1.0, 2.0, 3.0]), chunks=2, asarray=False)
>>> x.var().compute()
RefArray[float64, 0](0.66666667, place=ref:0)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from dask.array import dispatch, register_chunk_type

from mirabelle.arraytypes.abstract import AbstractArray

register_chunk_type(AbstractArray)


@dispatch.percentile_lookup.register(AbstractArray)
def percentile(a: Any, q: Any, method: str = "linear") -> Any:
    """The percentiles of a chunk, and how many elements it has: dask joins them in NumPy, on the host."""
    return dispatch.percentile_lookup.dispatch(np.ndarray)(np.asarray(a), q, method)


_LOOKUP: Any = dispatch.numel_lookup


@_LOOKUP.register(AbstractArray)
def numel(x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = "f8", **_: Any) -> Any:
    """How many elements a reduction of `x` takes together, as an array where `x` is."""
    import mirabelle

    axes = range(x.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    over = {a % x.ndim for a in axes}
    shape = tuple(1 if i in over else n for i, n in enumerate(x.shape) if keepdims or i not in over)
    return mirabelle.full(shape, math.prod(x.shape[a] for a in over), dtype=dtype, device=x.place)
