"""Arrays made of rules: grids, indices, sequences, windows, and a function's values.

As all creation functions they take `device=`, and make the type of their namespace without it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import _from_new, _from_numpy, asarray
from mirabelle.arraytypes.define import array_function, as_array
from mirabelle.arraytypes.dense import as_shape, as_size
from mirabelle.arraytypes.makers import creates
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.dispatch import verbs
from mirabelle.dispatch.misuse import explained

ndindex = np.ndindex


class Grid:
    """What `mgrid` and `ogrid` are: coordinates by slices, `mgrid[0:3, 0:1:5j]`."""

    def __init__(self, numpys: Any, maker: Any = None) -> None:
        self._numpys = numpys
        self._maker = maker
        self.__doc__ = "Coordinates of a grid, by slices; a complex step is a number of points.\n\n" + (
            _OPEN if numpys is np.ogrid else _DENSE
        )

    def __getitem__(self, key: Any) -> Any:
        made = self._numpys[key]
        if isinstance(made, (tuple, list)):
            return tuple(_from_numpy(x, self._maker) for x in made)
        return _from_numpy(np.asarray(made), self._maker)

    def made_by(self, maker: Any) -> Grid:
        """The same, for the namespace of another array type."""
        return Grid(self._numpys, maker)

    def __repr__(self) -> str:
        return f"mirabelle.{'ogrid' if self._numpys is np.ogrid else 'mgrid'}"


_DENSE = """    >>> import mirabelle as mb
    >>> print(mb.mgrid[0:2, 0:3])
    [[[0 0 0]
      [1 1 1]]
    <BLANKLINE>
     [[0 1 2]
      [0 1 2]]]
"""
_OPEN = """    >>> import mirabelle as mb
    >>> rows, columns = mb.ogrid[0:2, 0:3]
    >>> print(rows + columns)
    [[0 1 2]
     [1 2 3]]
"""
mgrid = Grid(np.mgrid)
ogrid = Grid(np.ogrid)


@creates
@explained
def indices(
    dimensions: Any, dtype: Any = int, sparse: bool = False, *, device: Any = None
) -> AbstractArray | tuple[AbstractArray, ...]:
    """The index of each place of a shape along each dimension; with `sparse`, a tuple of arrays that stretch.

    Parameters
    ----------
    dimensions : tuple of int
        The shape.
    dtype : dtype or None
        The dtype of the result.
    sparse : bool, default False
        Whether each array has one dimension that is not of size one.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    array or tuple of array
        Of shape `(len(dimensions), *dimensions)`; with `sparse`, a tuple of as many arrays, each of size 1
        along the others' dimensions.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.indices((2, 2))[0])
    [[0 0]
     [1 1]]
    """
    make: Any = np.indices
    made = make(as_shape(dimensions), dtype=checked_dtype(dtype), sparse=sparse)
    return tuple(_from_numpy(x, device) for x in made) if sparse else _from_new(made, device)


@creates
@explained
def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: Any = float, device: Any = None, **kwargs: Any
) -> AbstractArray:
    """What `function` gives for the arrays of indices of a shape, one for each dimension.

    Parameters
    ----------
    function : callable
        A function of arrays of indices, one for each dimension.
    shape : tuple of int
        The shape.
    dtype : dtype or None
        The dtype of the coordinates.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.
    **kwargs : keyword arguments
        What else the function is given.

    Returns
    -------
    array
        Whatever `function` returns: an array of the shape, if it computes element by element.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.fromfunction(lambda i, j: 10 * i + j, (2, 2), dtype=int))
    [[ 0  1]
     [10 11]]
    """
    return function(*indices(shape, dtype=dtype, device=device), **kwargs)


@creates
@explained
def fromiter(iter: Any, dtype: Any, count: int = -1, *, device: Any = None) -> AbstractArray:
    """An array of what an iterator gives.

    Parameters
    ----------
    iter : iterable
        The elements.
    dtype : dtype
        What they are.
    count : int, default -1
        How many; -1 is all.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    array
        Of one dimension, in new memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.fromiter((n * n for n in range(4)), dtype=int))
    [0 1 4 9]
    """
    return _from_numpy(np.fromiter(iter, checked_dtype(dtype), count), device)


@creates
@explained
def identity(n: int, dtype: Any = None, *, device: Any = None) -> AbstractArray:
    """The identity matrix.

    Parameters
    ----------
    n : int
        The number of rows.
    dtype : dtype or None
        The dtype of the result; None is float64.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    array
        Of shape (n, n), and of dtype float64 unless `dtype` is given, in new memory at the place that
        `device` says.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.identity(2))
    [[1. 0.]
     [0. 1.]]
    """
    from mirabelle.arraytypes.functions.creating import eye

    return eye(as_size(n, "identity", "n"), dtype=dtype, device=device)


@creates
@explained
def tri(N: int, M: Any = None, k: int = 0, dtype: Any = float, *, device: Any = None) -> AbstractArray:
    """Ones at and below the k-th diagonal, zeros above.

    Parameters
    ----------
    N : int
        The number of rows.
    M : int or None
        The number of columns; None is as many as rows.
    k : int, default 0
        Which diagonal: 0 is the main one, positive ones are above it.
    dtype : dtype or None
        The dtype of the result; None is float64.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    array
        Of shape (N, M), in new memory at the place that `device` says.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.tri(2, 3))
    [[1. 0. 0.]
     [1. 1. 0.]]
    """
    return _from_new(np.tri(N, M, k, checked_dtype(dtype)), device)


@creates
@explained
def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None,
    axis: int = 0, *, device: Any = None,
) -> AbstractArray:  # fmt: skip
    """Numbers evenly spaced in the exponent, from base**start to base**stop.

    Parameters
    ----------
    start : number
        The first exponent.
    stop : number
        The last exponent.
    num : int, default 50
        How many.
    endpoint : bool, default True
        Whether `stop` is reached.
    base : number, default 10.0
        What is raised to the exponents.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the numbers.
    axis : int, default 0
        Along which axis; negative ones count from the last.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    array
        Of one dimension, and of dtype float64 (complex128 for complex ends) unless `dtype` is given.
        Between arrays of numbers they run along a new `axis`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.logspace(0, 2, 3))
    [  1.  10. 100.]
    """
    if _differentiated(start, stop, base):
        made = verbs.pow(base, library.call("linspace", start, stop, num, endpoint, False, None, axis))
        return asarray(made, dtype=dtype, device=device)
    num = as_size(num, "logspace", "num")
    made = np.logspace(_host(start), _host(stop), num, endpoint, _host(base), dtype, axis)
    return _from_new(made, device)


@creates
@explained
def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0, *,
    device: Any = None,
) -> AbstractArray:  # fmt: skip
    """Numbers from `start` to `stop` with a constant ratio.

    Parameters
    ----------
    start : number
        The first value.
    stop : number
        The last value.
    num : int, default 50
        How many.
    endpoint : bool, default True
        Whether `stop` is the last value.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the numbers.
    axis : int, default 0
        Along which axis; negative ones count from the last.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    array
        Of one dimension, and of dtype float64 (complex128 for complex ends) unless `dtype` is given.
        Between arrays of numbers they run along a new `axis`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.geomspace(1, 8, 4))
    [1. 2. 4. 8.]
    """
    if _differentiated(start, stop):
        sign = verbs.sign(start)
        powers = [verbs.log(verbs.multiply(sign, x)) for x in (start, stop)]
        made = verbs.exp(library.call("linspace", *powers, num, endpoint, False, None, axis))
        dtype = np.result_type(made.dtype, np.float64) if dtype is None else dtype
        return asarray(verbs.multiply(sign, made), dtype=dtype, device=device)
    made = np.geomspace(_host(start), _host(stop), as_size(num, "geomspace", "num"), endpoint, dtype, axis)
    return _from_new(made, device)


def _differentiated(*numbers: Any) -> bool:
    return any(isinstance(x, AbstractArray) and x.carries_derivatives for x in numbers)


def _host(x: Any) -> Any:
    """The few numbers a sequence is made of."""
    return verbs.to_numpy(x) if isinstance(x, AbstractArray) else x


@array_function
def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    """The powers of the elements as columns, from the highest unless `increasing`.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    N : int or None
        The number of columns; None is as many as elements.
    increasing : bool, default False
        Whether powers rise.

    Returns
    -------
    array
        A matrix with a row for each element, of at least the dtype int64, float64 or complex128.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.vander(mb.HostArray([1, 2, 3]), 3))
    [[1 1 1]
     [4 2 1]
     [9 3 1]]
    """
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    n = x.shape[0] if N is None else operator.index(N)
    out = verbs.similar(x, dtype=np.result_type(x.dtype, np.int_), shape=(x.shape[0], n))
    power = None
    for k in range(n):
        column = verbs.getitem(out, (slice(None), k if increasing else n - 1 - k))
        power = 1 if power is None else x if k == 1 else verbs.multiply(power, x)
        verbs.assign(column, power)
        power = power if k == 0 else column
    return out


# Indices


@creates
@explained
def ix_(*args: Any, device: Any = None) -> tuple[AbstractArray, ...]:
    """Index vectors shaped so that together they pick a grid: x[mb.ix_(rows, columns)].

    Parameters
    ----------
    *args : vectors
        Indices or masks, one for each dimension.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    tuple of array
        One array for each vector, as long as that along its own dimension and of size 1 along the others; a
        mask becomes the indices where it holds.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([[1, 2, 3], [4, 5, 6]])
    >>> print(x[mb.ix_([0, 1], [0, 2])])
    [[1 3]
     [4 6]]
    """
    made = []
    for k, index in enumerate(args):
        if not isinstance(index, AbstractArray):
            index = np.asarray(index)
            index = index.astype(np.intp) if not index.size else index
            index = asarray(index, device=device)
        if index.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if index.dtype == np.bool_:
            from mirabelle.arraytypes.functions.picking import nonzero

            (index,) = nonzero(index)
        made.append(verbs.reshape(index, (1,) * k + index.shape + (1,) * (len(args) - k - 1)))
    return tuple(made)


def _tuple(arrays: Any, device: Any) -> tuple[Any, ...]:
    # (Of one dimension after the other NumPy may return one array.)
    take = _from_new if len({id(x) for x in arrays}) == len(arrays) else _from_numpy
    return tuple([take(x, device) for x in arrays])


@creates
@explained
def diag_indices(n: int, ndim: int = 2, *, device: Any = None) -> tuple[AbstractArray, ...]:
    """The indices of the main diagonal of an array of `ndim` dimensions of size `n`.

    Parameters
    ----------
    n : int
        The size of each dimension.
    ndim : int, default 2
        How many dimensions.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    tuple of array
        `ndim` arrays of dtype int64 and of length `n`: what an array can be indexed with.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.diag_indices(3)[0])
    [0 1 2]
    """
    return _tuple(np.diag_indices(n, ndim), device)


@explained
def diag_indices_from(arr: Any) -> tuple[AbstractArray, ...]:
    """The indices of the main diagonal of `arr`, at its place.

    Parameters
    ----------
    arr : matrix
        The matrix.

    Returns
    -------
    tuple of array
        An array of dtype int64 for each dimension of `arr`: what `arr` can be indexed with.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.diag_indices_from(mb.zeros((2, 2)))[1])
    [0 1]
    """
    x = as_array(arr)
    if x.ndim < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(x.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    return diag_indices(x.shape[0], x.ndim, device=x.place)  # type: ignore[no-any-return]


@creates
@explained
def tril_indices(
    n: int, k: int = 0, m: Any = None, *, device: Any = None
) -> tuple[AbstractArray, AbstractArray]:
    """The indices of the elements at and below the k-th diagonal of an n by m matrix.

    Parameters
    ----------
    n : int
        The number of rows.
    k : int, default 0
        Which diagonal: 0 is the main one, positive ones are above it.
    m : int or None
        The number of columns; None is as many as rows.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    tuple of array
        Rows and columns, both of dtype int64 and of one length: what a matrix can be indexed with.

    Examples
    --------
    >>> import mirabelle as mb
    >>> rows, columns = mb.tril_indices(2)
    >>> print(rows, columns)
    [0 1 1] [0 0 1]
    """
    return _tuple(np.tril_indices(n, k, m), device)  # type: ignore[return-value]


@creates
@explained
def triu_indices(
    n: int, k: int = 0, m: Any = None, *, device: Any = None
) -> tuple[AbstractArray, AbstractArray]:
    """The indices of the elements at and above the k-th diagonal of an n by m matrix.

    Parameters
    ----------
    n : int
        The number of rows.
    k : int, default 0
        Which diagonal: 0 is the main one, positive ones are above it.
    m : int or None
        The number of columns; None is as many as rows.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    tuple of array
        Rows and columns, both of dtype int64 and of one length: what a matrix can be indexed with.

    Examples
    --------
    >>> import mirabelle as mb
    >>> rows, columns = mb.triu_indices(2)
    >>> print(rows, columns)
    [0 0 1] [0 1 1]
    """
    return _tuple(np.triu_indices(n, k, m), device)  # type: ignore[return-value]


@explained
def tril_indices_from(arr: Any, k: int = 0) -> tuple[AbstractArray, AbstractArray]:
    """The indices of the elements at and below the k-th diagonal of the matrix `arr`.

    Parameters
    ----------
    arr : matrix
        The matrix.
    k : int, default 0
        Which diagonal: 0 is the main one, positive ones are above it.

    Returns
    -------
    tuple of array
        Rows and columns, both of dtype int64 and of one length, at the place of `arr`: what `arr` can be
        indexed with.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.tril_indices_from(mb.zeros((2, 2)))[0])
    [0 1 1]
    """
    x = _matrix(arr)
    return tril_indices(x.shape[0], k, x.shape[1], device=x.place)  # type: ignore[no-any-return]


@explained
def triu_indices_from(arr: Any, k: int = 0) -> tuple[AbstractArray, AbstractArray]:
    """The indices of the elements at and above the k-th diagonal of the matrix `arr`.

    Parameters
    ----------
    arr : matrix
        The matrix.
    k : int, default 0
        Which diagonal: 0 is the main one, positive ones are above it.

    Returns
    -------
    tuple of array
        Rows and columns, both of dtype int64 and of one length, at the place of `arr`: what `arr` can be
        indexed with.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.triu_indices_from(mb.zeros((2, 2)))[0])
    [0 0 1]
    """
    x = _matrix(arr)
    return triu_indices(x.shape[0], k, x.shape[1], device=x.place)  # type: ignore[no-any-return]


def _matrix(x: Any) -> Any:
    x = as_array(x)
    if x.ndim != 2:
        raise ValueError("input array must be 2-d")
    return x


# Windows


def _window(name: str, meaning: str) -> Any:
    numpys = getattr(np, name)

    def window(M: int, *, device: Any = None) -> Any:
        return _from_new(numpys(M), device)

    window.__name__ = window.__qualname__ = name
    window.__doc__ = f"""{meaning}, of M points.

    Parameters
    ----------
    M : int
        How many points.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    array
        Of shape (M,) and dtype float64: symmetric, and largest in the middle.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.{name}(5).shape
    (5,)
    """
    return creates(explained(window))


bartlett = _window("bartlett", "The Bartlett window: a triangle")
blackman = _window("blackman", "The Blackman window: a sum of three cosines")
hamming = _window("hamming", "The Hamming window: a raised cosine that does not reach zero")
hanning = _window("hanning", "The Hann window: a raised cosine")


@creates
@explained
def kaiser(M: int, beta: float, *, device: Any = None) -> AbstractArray:
    """The Kaiser window of M points: a Bessel function, as sharp as `beta` says.

    Parameters
    ----------
    M : int
        How many points.
    beta : float
        The larger, the narrower.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    array
        Of shape (M,) and dtype float64: symmetric, and largest in the middle.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.kaiser(5, 14).shape
    (5,)
    """
    return _from_new(np.kaiser(M, float(beta)), device)
