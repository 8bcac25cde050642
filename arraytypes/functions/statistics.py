"""Covariances and correlations."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mirabelle.arraytypes.define import array_function, as_array
from mirabelle.arraytypes.dense import computed
from mirabelle.arraytypes.elementwise import cast_to
from mirabelle.arraytypes.functions.joining import concatenate
from mirabelle.arraytypes.functions.reducing import average
from mirabelle.arraytypes.functions.turning import atleast_2d
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.arraytypes.parts import diagonal_view, imag_part, real_part
from mirabelle.dispatch import verbs


def _as_rows(m: Any, rowvar: bool, name: str) -> Any:
    """Variables as rows, observations as columns."""
    if m.ndim > 2:
        raise ValueError(
            f"{name} has more than 2 dimensions: its shape is {m.shape}, and a covariance is that of rows of "
            f"observations. Make them rows: `mb.reshape({name}, ({name}.shape[0], -1))`."
        )
    rows: Any = atleast_2d(m)
    # (One row of the second argument is one variable, whatever `rowvar` says.)
    standing = m.ndim != 1 if name == "m" else rows.shape[0] != 1
    return verbs.permute_dims(rows, (1, 0)) if standing and not rowvar else rows


def _weights(w: Any, n: int, name: str, like: Any) -> Any:
    w = cast_to(as_array(w, like), np.dtype(np.float64))
    if w.ndim > 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")
    if w.shape[0] != n:
        raise RuntimeError(f"incompatible numbers of samples and {name}")
    if bool(verbs.any(verbs.less(w, 0))):
        raise ValueError(f"{name} cannot be negative")
    return w


@array_function
def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None, fweights: Any = None,
    aweights: Any = None, *, dtype: Any = None,
) -> Any:  # fmt: skip
    """The covariance matrix of variables (the rows, unless `rowvar` is false) over observations.

    The centred data is computed once, and multiplied by its transpose.

    Parameters
    ----------
    m : array
        Variables and observations.
    y : array or None
        Further variables.
    rowvar : bool, default True
        Whether a row is a variable; else a column is.
    bias : bool, default False
        Whether is divided by the number of observations, and not by one less.
    ddof : int or None
        What is subtracted from the number of elements; NumPy's name for `correction`.
    fweights : array or None
        How often each observation counts.
    aweights : array or None
        How much each observation counts.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.

    Returns
    -------
    array
        Square, with a row for each variable, and float64 or complex128 unless `dtype` is given; of no
        dimensions for one variable.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.cov(mb.HostArray([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])))
    [[ 1. -1.]
     [-1.  1.]]
    """
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    y = None if y is None else as_array(y, m)
    kinds = [x.dtype for x in (m, y) if x is not None]
    kind = checked_dtype(dtype) if dtype is not None else np.result_type(*kinds, np.float64)
    rows = cast_to(_as_rows(m, rowvar, "m"), kind)
    if not rows.shape[0]:
        return verbs.similar(rows, shape=(0, 0))
    if y is not None:
        rows = concatenate([rows, cast_to(_as_rows(y, rowvar, "y"), kind)])
    ddof = (0 if bias else 1) if ddof is None else ddof
    n = rows.shape[1]
    w = frequencies = reliabilities = None
    if fweights is not None:
        w = frequencies = _weights(fweights, n, "fweights", rows)
        if not bool(verbs.all(verbs.equal(frequencies, verbs.round(frequencies)))):
            raise TypeError("fweights must be integer")
    if aweights is not None:
        reliabilities = _weights(aweights, n, "aweights", rows)
        w = reliabilities if w is None else verbs.multiply(w, reliabilities)
    if w is None:
        factor: Any = n - ddof
        centre = verbs.mean(rows, axis=1, keepdims=True)
    else:
        total = float(verbs.sum(w))
        factor = total
        if ddof and reliabilities is None:
            factor = total - ddof
        elif ddof:
            factor = total - ddof * float(verbs.sum(verbs.multiply(w, reliabilities))) / total
        centre = average(rows, axis=1, weights=w, keepdims=True)
    if factor <= 0:
        warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=4)
        factor = 0.0
    centred = computed(verbs.subtract(rows, centre))
    weighted = centred if w is None else verbs.multiply(centred, w)
    other = verbs.permute_dims(verbs.conj(weighted) if kind.kind == "c" else weighted, (1, 0))
    product = verbs.matmul(centred, other)
    product = verbs.multiply(product, kind.type(np.divide(1.0, factor) if factor else np.inf))
    return verbs.reshape(product, ()) if product.shape == (1, 1) else product


@array_function
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """The correlation coefficients of variables (the rows, unless `rowvar` is false).

    Parameters
    ----------
    x : array
        Variables and observations.
    y : array or None
        Further variables.
    rowvar : bool, default True
        Whether a row is a variable; else a column is.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.

    Returns
    -------
    array
        Square, with a row for each variable, and float64 or complex128 unless `dtype` is given; of no
        dimensions for one variable.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.corrcoef(mb.HostArray([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])))
    [[ 1. -1.]
     [-1.  1.]]
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim != 2:
        return verbs.divide(c, c)
    spread = verbs.sqrt(real_part(diagonal_view(c)))
    c = verbs.divide(verbs.divide(c, verbs.getitem(spread, (slice(None), None))), spread)
    if c.dtype.kind != "c":
        return verbs.clip(c, -1.0, 1.0)
    for part in (real_part(c), imag_part(c)):
        verbs.assign(part, verbs.clip(part, -1.0, 1.0))
    return c
