"""The norm of a Kronecker product whose type is declared here, as a user declares one.

The type says its shape and its entries (listing 3). Everything else is inherited: printing, indexing,
arithmetic, products, reductions, pickling, moving, on every place and over every type of factors.
mirabelle has a `mb.Kronecker` with many rules more; nothing here uses it.

>>> import mirabelle as mb
>>> K = Kronecker(mb.HostArray([[1.0, 2.0]]), mb.HostArray([[1.0], [10.0]]))
>>> print(K, type(K).__name__)
[[ 1.  2.]
 [10. 20.]] Kronecker[HostArray[float64, 2], HostArray[float64, 2]]
>>> print(K @ mb.HostArray([1.0, 1.0]), K[1, 0], K[:, 1], mb.sum(K + 1))
[ 3. 30.] 10.0 [ 2. 20.] 37.0

Then one method (listing 4) makes the norm cheap: of factors of order n it reads 2 n² numbers, not n⁴.

>>> big = Kronecker(mb.ones((1000, 1000)), mb.ones((1000, 1000)))     # 8 TB if it were stored
>>> print(mb.norm(big))
1000000.0

An application may give a method for a block only, to this type or to anybody's. Here one that has
none of its own for the sum; a device's factors are the same program:

>>> def sum_by_factors(K, *, axis=None):
...     A, B = K.parts
...     return mb.sum(A) * mb.sum(B)
>>> K = Kronecker(mb.RefArray([[1.0, 2.0]]), mb.RefArray([[1.0], [10.0]]))
>>> with mb.override(mb.sum, (Kronecker,), sum_by_factors):
...     print(mb.sum(K), mb.which(mb.sum, K).scope)
33.0 override
"""

from __future__ import annotations

from typing import Any

import mirabelle as mb


class Kronecker(mb.types.Structured):
    """The Kronecker product of two matrices: all that it stores is these."""

    fuses = True  # an entry is computed in the kernel that reads it

    @classmethod
    def _shape_of(cls, A: Any, B: Any) -> tuple[int, ...]:
        return A.shape[0] * B.shape[0], A.shape[1] * B.shape[1]

    def _entries(self, i: Any, j: Any) -> Any:
        A, B = self.parts
        p, q = B.shape
        return A[i // p, j // q] * B[i % p, j % q]


def norm_by_factors(K: Kronecker, p: Any = 2) -> Any:
    """The norm of a Kronecker product is the product of the norms.

    >>> import mirabelle as mb
    >>> K = Kronecker(mb.HostArray([[3.0, 4.0]]), mb.HostArray([[1.0], [1.0]]))
    >>> print(norm_by_factors(K, 1), mb.norm(K, 1))
    14.0 14.0
    """
    A = mb.norm(K.parts[0], p)
    B = mb.norm(K.parts[1], p)
    return A * B


mb.norm.method(norm_by_factors)


def norm_by_entries(K: Any, p: Any = 2) -> Any:
    """The norm as any array has it: each entry is computed where it is read, and none is stored.

    It is what `norm_by_factors` is compared with, and what `mb.norm(K)` is without that method:

    >>> import mirabelle as mb
    >>> K = Kronecker(mb.HostArray([[3.0, 4.0]]), mb.HostArray([[2.0], [0.0]]))
    >>> with mb.override(mb.norm, (Kronecker,), norm_by_entries):
    ...     print(mb.norm(K))
    10.0
    """
    return mb.norm(mb.abs(K), p)
