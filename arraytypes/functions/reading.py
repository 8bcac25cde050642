"""Arrays of text and bytes, by NumPy's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import _from_numpy, asarray
from mirabelle.arraytypes.makers import creates
from mirabelle.dispatch import verbs
from mirabelle.dispatch.misuse import explained


@creates
@explained
def frombuffer(
    buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0, *, device: Any = None
) -> AbstractArray:
    """The bytes of a buffer as an array; on the host they are shared.

    Parameters
    ----------
    buffer : bytes-like
        The bytes.
    dtype : dtype
        What the bytes are.
    count : int, default -1
        How many elements; -1 is all.
    offset : int, default 0
        How many bytes are left out at the start.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    array
        Of one dimension. It can be written to if the buffer can; at other places than the host it is a
        copy.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.frombuffer(b"\\x01\\x02", dtype=mb.uint8))
    [1 2]
    """
    return asarray(np.frombuffer(buffer, dtype, count, offset), device=device)


@creates
@explained
def fromfile(
    file: Any, dtype: Any = float, count: int = -1, sep: str = "", offset: int = 0, *, device: Any = None
) -> AbstractArray:
    """The bytes (or the numbers between `sep`) of a file.

    Parameters
    ----------
    file : str, path or open file
        The file.
    dtype : dtype
        What the bytes or numbers are.
    count : int, default -1
        How many elements; -1 is all.
    sep : str
        What is between numbers; "" is a file of bytes.
    offset : int, default 0
        How many bytes are left out at the start.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    array
        Of one dimension, in new memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(f"{folder}/numbers.bin", "wb") as f:
    ...         n = f.write(bytes([1, 2, 3]))
    ...     print(mb.fromfile(f"{folder}/numbers.bin", mb.uint8))
    [1 2 3]
    """
    return _from_numpy(np.fromfile(file, dtype, count, sep, offset), device)


@creates
@explained
def fromstring(
    string: str, dtype: Any = float, count: int = -1, *, sep: str, device: Any = None
) -> AbstractArray:
    """The numbers that a text holds between `sep`.

    Parameters
    ----------
    string : str
        The text.
    dtype : dtype
        What the numbers are.
    count : int, default -1
        How many; -1 is all.
    sep : str
        What is between them.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    array
        Of one dimension, in new memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.fromstring("1 2", dtype=int, sep=" "))
    [1 2]
    """
    return _from_numpy(np.fromstring(string, dtype, count, sep=sep), device)


@creates
@explained
def loadtxt(fname: Any, *args: Any, device: Any = None, **kwargs: Any) -> AbstractArray:
    """The numbers of a text file, with np.loadtxt's options.

    Parameters
    ----------
    fname : str, path, open file or list of str
        The text.
    *args : positional arguments
        NumPy's.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.
    **kwargs : keyword arguments
        NumPy's.

    Returns
    -------
    array
        A row for each line, in new memory; fewer dimensions, where there is one line or one column. Of
        float64 unless `dtype` is given.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.loadtxt(["1 2", "3 4"]))
    [[1. 2.]
     [3. 4.]]
    """
    return _read(np.loadtxt(fname, *args, **kwargs), device)


@creates
@explained
def genfromtxt(fname: Any, *args: Any, device: Any = None, **kwargs: Any) -> AbstractArray:
    """The numbers of a text file with gaps, with np.genfromtxt's options.

    Parameters
    ----------
    fname : str, path, open file or list of str
        The text.
    *args : positional arguments
        NumPy's.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.
    **kwargs : keyword arguments
        NumPy's.

    Returns
    -------
    array
        A row for each line, in new memory; fewer dimensions, where there is one line or one column. Of
        float64 unless `dtype` is given.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.genfromtxt(["1,2", "3,"], delimiter=","))
    [[ 1.  2.]
     [ 3. nan]]
    """
    return _read(np.genfromtxt(fname, *args, **kwargs), device)


def _read(made: Any, device: Any) -> Any:
    return (
        tuple(_from_numpy(x, device) for x in made)
        if isinstance(made, (tuple, list))
        else _from_numpy(made, device)
    )


def savetxt(fname: Any, X: Any, *args: Any, **kwargs: Any) -> None:
    """Write an array as text, with np.savetxt's options.

    Parameters
    ----------
    fname : str, path or open file
        The file.
    X : array
        One or two dimensions.
    *args : positional arguments
        NumPy's.
    **kwargs : keyword arguments
        NumPy's.

    Examples
    --------
    >>> import io, mirabelle as mb
    >>> file = io.StringIO()
    >>> mb.savetxt(file, mb.HostArray([[1.0, 2.0]]), fmt="%g")
    >>> file.getvalue()
    '1 2\\n'
    """
    np.savetxt(fname, verbs.to_numpy(X), *args, **kwargs)
