"""Functions of whole matrices on a card."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.backends.gpu.lib_linalg import adjoint, eig, eigh, stacked_eye
from mirabelle.backends.gpu.lib_systems import solve
from mirabelle.backends.gpu.library import routine

# The numerator of Padé's approximant of degree 13, and the norm up to which it is exact in double precision.
_PADE = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
    670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
_WIDEST = 4.25


@routine("linalg.expm")
def expm(xp: Any, a: Any) -> Any:
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


# By eigenvectors


@routine("linalg.sqrtm")
def _(xp: Any, a: Any) -> Any:
    """The root whose eigenvalues have no negative real parts."""
    found = _of_eigenvalues(xp, a, xp.sqrt)
    _check(xp, "sqrtm", found @ found, a)
    return found


@routine("linalg.logm")
def _(xp: Any, a: Any) -> Any:
    found = _of_eigenvalues(xp, a, xp.log)
    _check(xp, "logm", expm(xp, found), a)
    return found


def _of_eigenvalues(xp: Any, a: Any, f: Any) -> Any:
    """A function of the eigenvalues, on the eigenvectors; real where a real matrix allows it."""
    if not a.size:
        return a.copy()
    if bool((a == adjoint(a)).all()):
        values, vectors = eigh(xp, a)
        if bool((values < 0).any()):
            values = values.astype(np.result_type(values.dtype, np.complex64))
        return (vectors * f(values)[..., None, :]) @ adjoint(vectors)
    values, vectors = eig(xp, a)
    try:
        found = solve(xp, vectors.swapaxes(-1, -2), (vectors * f(values)[..., None, :]).swapaxes(-1, -2))
    except np.linalg.LinAlgError:
        raise _no_basis() from None
    found = found.swapaxes(-1, -2)
    real = a.dtype.kind != "c" and not bool(((values.imag == 0) & (values.real < 0)).any())
    return found.real.copy() if real else found


def _check(xp: Any, name: str, again: Any, a: Any) -> None:
    """Eigenvectors that are nearly parallel, or too few, would give a wrong answer."""
    if not a.size:
        return
    size = float(xp.abs(a).max())
    off = float(xp.abs(again - a).max())
    if not off <= size * float(np.finfo(a.dtype).eps) ** 0.6:
        raise _no_basis()


def _no_basis() -> NotImplementedError:
    return NotImplementedError(
        "This matrix has no good basis of eigenvectors; its functions take Schur's form, which no library for "
        "cards has. Compute it on the host: `mb.adapt(mb.HostArray, A)`."
    )
