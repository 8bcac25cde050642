"""Solving with sparse matrices on a card.

No library for cards has a sparse LU with exchanges that stays there. Matrices that fit are solved as
dense ones; larger ones by cuSOLVER's sparse QR, one right-hand side after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.backends.gpu.lib_factors import lu_factor, lu_solve
from mirabelle.backends.gpu.lib_linalg import refusing
from mirabelle.backends.gpu.lib_sparse import dense, routine
from mirabelle.backends.gpu.lib_sparseproducts import matrix
from mirabelle.backends.gpu.lib_systems import det, slogdet
from mirabelle.backends.gpu.library import scipy_module

# A dense matrix of up to so many bytes is made of a sparse one to be factored.
LARGEST = 1 << 30


def _fits(n: int, data: Any) -> bool:
    return n * n * data.itemsize <= LARGEST


class Factors:
    """What solves with a sparse matrix more than once: its dense LU factors, or the matrix itself."""

    def __init__(self, xp: Any, data: Any, indices: Any, indptr: Any) -> None:
        self.n = n = indptr.size - 1
        self.parts = (data.copy(), indices.copy(), indptr.copy())
        self.lu: Any = None
        if _fits(n, data):
            self.lu = lu_factor(xp, dense(xp, *self.parts, shape=(n, n)))
            if bool((self.lu[0].diagonal() == 0).any()):
                raise np.linalg.LinAlgError("Singular matrix")

    def solve(self, xp: Any, b: Any) -> Any:
        """The solution for a vector, or for columns."""
        if self.lu is not None:
            return lu_solve(xp, *self.lu, b)
        with refusing(xp, "Singular matrix"):
            found = scipy_module(xp, "sparse.linalg").spsolve(matrix(xp, *self.parts, (self.n, self.n)), b)
        if not bool(xp.isfinite(found).all()) and bool(xp.isfinite(b).all()):
            raise np.linalg.LinAlgError("Singular matrix")
        return found.reshape(b.shape)


@routine("factors")
def _(xp: Any, data: Any, indices: Any, indptr: Any) -> Any:
    """An object of this library; None for an empty matrix."""
    return Factors(xp, data, indices, indptr) if indptr.size > 1 else None


@routine("factored_solve")
def factored_solve(xp: Any, factors: Any, b: Any) -> Any:
    if not b.size:
        return b.copy()
    if b.ndim <= 2:
        return factors.solve(xp, b)
    columns = xp.moveaxis(b, -2, 0)
    x = factors.solve(xp, columns.reshape(columns.shape[0], -1))
    return xp.moveaxis(x.reshape(columns.shape), 0, -2)


@routine("solve")
def _(xp: Any, data: Any, indices: Any, indptr: Any, b: Any) -> Any:
    factors = Factors(xp, data, indices, indptr) if b.size else None
    return factored_solve(xp, factors, b)


def _small_enough(xp: Any, data: Any, indices: Any, indptr: Any) -> Any:
    n = indptr.size - 1
    if not _fits(n, data):
        raise NotImplementedError(
            f"The determinant of a sparse matrix of {n} rows needs its LU factors, which stay sparse on the "
            "host alone: `mb.linalg.slogdet(mb.adapt(mb.HostArray, S))`."
        )
    return dense(xp, data, indices, indptr, shape=(n, n))


@routine("det")
def _(xp: Any, data: Any, indices: Any, indptr: Any) -> Any:
    return det(xp, _small_enough(xp, data, indices, indptr))


@routine("slogdet")
def _(xp: Any, data: Any, indices: Any, indptr: Any) -> Any:
    return slogdet(xp, _small_enough(xp, data, indices, indptr))
