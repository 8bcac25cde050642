"""The addresses of NumPy's inner loops, which compiled kernels call on blocks.

Every ufunc carries a table of loops by dtypes (`PyUFuncObject`, part of NumPy's C interface).
Calling them makes compiled results equal to NumPy's to the last bit, and uses NumPy's vector
code for transcendental functions, which Numba has none of.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from mirabelle.dispatch.native import in_c
from mirabelle.dispatch.promotion import Sig


@cache
def loop_address(sig: Sig) -> tuple[int, int] | None:
    """The code and data addresses of the loop for a signature; None if there is none."""
    ufunc = sig.op.ufunc
    if ufunc is None:
        return None
    wanted = [(d.kind, d.itemsize) for d in (*sig.ins, *sig.outs)]
    for types, (code, data) in zip(ufunc.types, in_c.loops_of(ufunc), strict=False):
        if code and [(d.kind, d.itemsize) for d in map(np.dtype, types.replace("->", ""))] == wanted:
            return code, data
    return None
