"""Functions of whole matrices on a card."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.backends.gpu.lib_linalg import stacked_eye
from mirabelle.backends.gpu.lib_systems import solve
from mirabelle.backends.gpu.library import routine

# The numerator of Padé's approximant of degree 13, and the norm up to which it is exact in double precision.
_PADE = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
    670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
_WIDEST = 4.25


@routine("linalg.expm")
def _(xp: Any, a: Any) -> Any:
    """Halved until Padé's approximant holds, and squared as often; all matrices of a stack together.

    (After N. J. Higham, "The scaling and squaring method for the matrix exponential revisited", 2005.)
    """
    if not a.size:
        return a.copy()
    n = a.shape[-1]
    # The trace is taken out before and put back after.
    shift = a.trace(0, -2, -1)[..., None, None] / n
    shift = xp.where(xp.isfinite(shift), shift, 0).astype(a.dtype)
    one = stacked_eye(xp, a.shape[:-2], n, a.dtype)
    a = a - shift * one
    norm = xp.abs(a).sum(axis=-2).max(axis=-1)
    wide = xp.isfinite(norm) & (norm > _WIDEST)
    halvings = xp.ceil(xp.log2(xp.where(wide, norm, _WIDEST) / _WIDEST)).astype(np.int32)
    scale = (2.0 ** -halvings.astype(np.float64)).astype(norm.dtype)[..., None, None]
    x = xp.exp(shift * scale) * _pade(xp, a * scale, one)
    for k in range(int(halvings.max())):
        x = xp.where((halvings > k)[..., None, None], x @ x, x)
    return x


def _pade(xp: Any, a: Any, one: Any) -> Any:
    b = [float(c) for c in _PADE]
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a2 @ a4
    odd = a @ (a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * one)
    even = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * one
    return solve(xp, even - odd, even + odd)
