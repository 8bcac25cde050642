"""The factorisation of a Kronecker product: one of each factor, made once, used for many solves.

>>> import mirabelle as mb
>>> K = mb.kronecker(mb.HostArray([[4.0, 2.0], [2.0, 5.0]]), mb.HostArray([[1.0, 2.0], [3.0, 4.0]]))
>>> F = mb.linalg.factorize(K)
>>> F
Cholesky of 2 x 2 ⊗ LU of 2 x 2, float64, at host
>>> float(mb.max(mb.abs(K @ F.solve(mb.ones(4)) - 1))) < 1e-12
True
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.functions.factorizations import Factorization, factorize
from mirabelle.arraytypes.functions.lapack import LinAlgError, check_square, inexact, singular
from mirabelle.arraytypes.functions.solving import SlogdetResult, check_system
from mirabelle.arraytypes.structured.base import Structured
from mirabelle.arraytypes.structured.kronecker import Kronecker, kronecker
from mirabelle.arraytypes.structured.kronecker_reductions import product
from mirabelle.arraytypes.structured.kronecker_rules import solved
from mirabelle.dispatch import verbs


class KroneckerFactors(Factorization):
    """The factorisations of the factors of a Kronecker product, in `factors`.

    >>> import mirabelle as mb
    >>> A = mb.HostArray([[2.0, 1.0], [1.0, 2.0]])
    >>> print(f"{float(mb.linalg.factorize(mb.kronecker(A, A)).det()):.6g}")
    81
    """

    factors: tuple[Any, ...]

    def __init__(self, A: Kronecker) -> None:
        check_square(type(self).__name__, A)
        if not A.all_square:
            raise LinAlgError(singular(type(self).__name__))
        (A,) = inexact(type(self).__name__, A)
        self.shape, self.dtype = A.shape, A.dtype
        parts = [verbs.dense(p) if isinstance(p, Structured) else p for p in A.parts]
        self.factors = tuple(factorize(p) for p in parts)

    def _mapped(self, f: Callable[[Any], Any]) -> Any:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made.factors = tuple(factor._mapped(f) for factor in self.factors)
        return made

    @property
    def place(self) -> Any:
        return self.factors[0].place

    def __repr__(self) -> str:
        each = " ⊗ ".join(repr(f).split(",")[0] for f in self.factors)
        return f"{each}, {self.dtype.name}, at {self.place}"

    def solve(self, b: Any) -> Any:
        """The x with A x = b, for one vector, or columns of them."""
        like = getattr(self.factors[0], self.factors[0]._parts[0])
        b = as_array(b, like=like)
        check_system("KroneckerFactors.solve", self, b)
        b, _ = inexact("KroneckerFactors.solve", b, like)
        sizes = [f.shape[0] for f in self.factors]
        axis = max(0, b.ndim - 2)
        x = verbs.reshape(b, (*b.shape[:axis], *sizes, *b.shape[axis + 1 :]))
        for k, f in enumerate(self.factors):
            x = solved(f, x, axis + k)
        return verbs.copy(verbs.reshape(x, b.shape))

    def inv(self) -> Any:
        """The inverse, a Kronecker product too."""
        return kronecker(*[f.inv() for f in self.factors])

    def slogdet(self) -> SlogdetResult:
        """Sign and logarithm of the absolute value of the determinant."""
        n = self.shape[0]
        found = [(f.slogdet(), n // f.shape[0]) for f in self.factors]
        sign = product([verbs.pow(d.sign, times) for d, times in found])
        logs = [verbs.multiply(d.logabsdet, times) for d, times in found]
        return SlogdetResult(sign, functools.reduce(verbs.add, logs))


@factorize.method
def _(A: Kronecker) -> Any:
    return KroneckerFactors(A)
