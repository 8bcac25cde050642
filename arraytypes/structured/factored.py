"""Structured matrices to solve with more than once: those that need no factors, and sparse ones.

>>> import mirabelle as mb
>>> F = mb.linalg.factorize(mb.Tridiagonal([1.0, 1.0], [4.0, 4.0, 4.0], [1.0, 1.0]))
>>> F, F.solve(mb.HostArray([5.0, 6.0, 5.0])).tolist()
(ByStructure of 3 x 3, float64, at host, [1.0, 1.0, 1.0])
>>> mb.linalg.factorize(mb.CSR([[0.0, 2.0], [4.0, 0.0]]))
SparseLU of 2 x 2, float64, at host
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.functions import solving
from mirabelle.arraytypes.functions.factorizations import Factorization, factorize
from mirabelle.arraytypes.functions.lapack import LinAlgError, check_square, singular
from mirabelle.arraytypes.functions.solving import SlogdetResult
from mirabelle.arraytypes.structured.banded import Banded
from mirabelle.arraytypes.structured.base import Structured
from mirabelle.arraytypes.structured.fallback import made_dense
from mirabelle.arraytypes.structured.sparse import CSR
from mirabelle.arraytypes.structured.toeplitz import Circulant
from mirabelle.arraytypes.structured.triangular import Triangular


class ByStructure(Factorization):
    """A matrix that solves as quickly as its factors would: diagonal, banded, triangular, circulant."""

    _parts = ("matrix",)
    matrix: Any

    def _factor(self, A: Any) -> tuple[Any, ...]:
        return (A,)

    def _solve(self, b: Any) -> Any:
        return solving.solve(self.matrix, b)

    def inv(self) -> Any:
        return solving.inv(self.matrix)

    def slogdet(self) -> SlogdetResult:
        return solving.slogdet(self.matrix)  # type: ignore[no-any-return]

    def det(self) -> Any:
        return solving.det(self.matrix)


class SparseLU(Factorization):
    """The LU factors of a sparse matrix, which stay sparse (SuperLU, on the host)."""

    _parts = ("matrix",)
    matrix: Any

    def _factor(self, A: Any) -> tuple[Any, ...]:
        views = library.nested(A.family, A.parts)
        try:
            # (No array: the library's own object.)
            self._factors = library.routine_of(A.family, "csr_factors")(*views)
        except np.linalg.LinAlgError:
            raise LinAlgError(singular("SparseLU")) from None
        return (A,)

    def _solve(self, b: Any) -> Any:
        return library.call("csr_factored_solve", self._factors, b)

    def slogdet(self) -> SlogdetResult:
        return solving.slogdet(self.matrix)  # type: ignore[no-any-return]

    def det(self) -> Any:
        return solving.det(self.matrix)

    def __reduce__(self) -> Any:
        return SparseLU, (self.matrix,)


@factorize.method
def _(A: Structured) -> Any:
    return factorize(made_dense(A))


@factorize.method
def _(A: Banded | Triangular | Circulant) -> Any:
    check_square("factorize", A)
    return ByStructure(A)


@factorize.method
def _(A: CSR) -> Any:
    check_square("factorize", A)
    return ByStructure(A) if A.carries_derivatives else SparseLU(A)
