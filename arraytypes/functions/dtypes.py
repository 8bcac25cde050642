"""The standard's data type functions: what dtypes hold, and what becomes of them together."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.dispatch.misuse import explained


@dataclasses.dataclass(frozen=True)
class FloatInfo:
    """What a floating-point dtype holds, in Python's numbers. (The last ones are NumPy's additions.)"""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype
    tiny: float
    epsneg: float
    smallest_subnormal: float
    resolution: float
    precision: int


@dataclasses.dataclass(frozen=True)
class IntegerInfo:
    """What an integer dtype holds."""

    bits: int
    max: int
    min: int
    dtype: np.dtype


def _dtype_of(x: Any) -> np.dtype:
    return x.dtype if isinstance(x, (AbstractArray, np.ndarray, np.generic)) else checked_dtype(x)


@explained
def finfo(type: Any, /) -> FloatInfo:
    """The limits of a floating-point dtype, or of an array's (for complex numbers: of their parts).

    Parameters
    ----------
    type : dtype or array
        What is asked about.

    Returns
    -------
    FloatInfo
        With `bits`, `eps`, `max`, `min`, `smallest_normal` and `dtype`, as the array API standard names
        them, and NumPy's `tiny`, `resolution` and others.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.finfo(mb.float32).bits, mb.finfo(mb.complex64).dtype
    (32, dtype('float32'))
    """
    dtype = _dtype_of(type)
    if dtype.kind not in "fc":
        raise ValueError(
            f"finfo is about floating-point numbers, not {dtype.name}. Ask mb.iinfo about integers."
        )
    info = np.finfo(dtype)
    return FloatInfo(
        bits=int(info.bits),
        eps=float(info.eps),
        max=float(info.max),
        min=float(info.min),
        smallest_normal=float(info.smallest_normal),
        dtype=np.dtype(info.dtype),
        tiny=float(info.tiny),
        epsneg=float(info.epsneg),
        smallest_subnormal=float(info.smallest_subnormal),
        resolution=float(info.resolution),
        precision=int(info.precision),
    )


@explained
def iinfo(type: Any, /) -> IntegerInfo:
    """The limits of an integer dtype, or of an array's.

    Parameters
    ----------
    type : dtype or array
        What is asked about.

    Returns
    -------
    IntegerInfo
        With `bits`, `max`, `min` and `dtype`, as the array API standard names them.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.iinfo(mb.int8).max
    127
    """
    dtype = _dtype_of(type)
    if dtype.kind not in "iu":
        raise ValueError(
            f"iinfo is about integers, not {dtype.name}. Ask mb.finfo about floating-point numbers."
        )
    info = np.iinfo(dtype)
    return IntegerInfo(bits=int(info.bits), max=int(info.max), min=int(info.min), dtype=dtype)


# What the standard calls kinds of dtypes, as NumPy's letters.
KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


@explained
def isdtype(dtype: Any, kind: Any) -> bool:
    """Is it that dtype, of that kind ("integral", "real floating", ...), or one of a tuple of these?

    Parameters
    ----------
    dtype : dtype
        What is asked about.
    kind : dtype, str or tuple
        A dtype, a kind of the array API standard, or several.

    Returns
    -------
    bool
        A bool of Python's, no array.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.isdtype(mb.float32, ("real floating", "complex floating"))
    True
    """
    d = checked_dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(d, k) for k in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is no kind of dtypes. Kinds are {', '.join(map(repr, KINDS))}.")
        return d.kind in KINDS[kind]
    return bool(d == checked_dtype(kind))


@explained
def can_cast(from_: Any, to: Any, /, casting: str = "safe") -> bool:
    """Can a dtype, or an array's, become another without loss (or by another of NumPy's rules)?

    Parameters
    ----------
    from_ : dtype or array
        What it is.
    to : dtype
        What it is to be.
    casting : str, default 'safe'
        Which conversions are allowed, as in `np.can_cast`.

    Returns
    -------
    bool
        A bool of Python's, no array.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.can_cast(mb.int32, mb.int64), mb.can_cast(mb.HostArray([1.5]), mb.int64)
    (True, False)
    """
    return bool(np.can_cast(_dtype_of(from_), checked_dtype(to), casting=casting))  # type: ignore[arg-type]
