"""The addresses of NumPy's inner loops, which compiled kernels call on blocks.

Every ufunc carries a table of loops by dtypes (`PyUFuncObject`, part of NumPy's C interface).
Calling them makes compiled results equal to NumPy's to the last bit, and uses NumPy's vector
code for transcendental functions, which Numba has none of.
"""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np

from mirabelle.dispatch.promotion import Sig


class _UFunc(ctypes.Structure):
    """The head of `PyUFuncObject` as numpy/ufuncobject.h declares it."""

    _fields_ = [
        ("refcount", ctypes.c_ssize_t),
        ("type", ctypes.c_void_p),
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
        ("reserved", ctypes.c_int),
        ("name", ctypes.c_char_p),
        ("types", ctypes.POINTER(ctypes.c_ubyte)),
    ]


@cache
def usable() -> bool:
    """Does this NumPy lay its ufuncs out as expected? (If not, such programs are interpreted.)"""
    table = _UFunc.from_address(id(np.exp))
    return (
        object.__basicsize__ == 16
        and (table.nin, table.nout, table.nargs) == (1, 1, 2)
        and table.ntypes == len(np.exp.types)
        and table.name == b"exp"
    )


@cache
def loop_address(sig: Sig) -> tuple[int, int] | None:
    """The code and data addresses of the loop for a signature; None if there is none."""
    ufunc = sig.op.ufunc
    if ufunc is None or not usable():
        return None
    table = _UFunc.from_address(id(ufunc))
    wanted = [(d.kind, d.itemsize) for d in (*sig.ins, *sig.outs)]
    match = None
    for i, text in enumerate(ufunc.types):
        found = [np.dtype(ch) for ch in text.replace("->", "")]
        if [(d.kind, d.itemsize) for d in found] == wanted:
            match = i
            break
    if match is None or not table.functions[match]:
        return None
    return int(table.functions[match]), int(table.data[match] or 0)
