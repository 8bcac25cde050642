"""Power iteration: the dominant eigenvector and eigenvalue of a matrix, by products and norms alone.

The matrix may be any array that has a product with a vector: dense in any place, a wrapper, a
structured one. The vectors are dense arrays of its place, made by `mb.similar`.

>>> import mirabelle as mb
>>> A = mb.HostArray([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])
>>> λ = 3 + mb.sqrt(mb.HostArray(3.0))
>>> bool(mb.isclose(domeigen(A, 100)[1], λ)), bool(mb.isclose(domeigen_with_buffers(A, 100)[1], λ))
(True, True)
>>> T = mb.Tridiagonal(*[mb.HostArray(d) for d in ([1.0, 1.0], [4.0, 3.0, 2.0], [1.0, 1.0])])
>>> bool(mb.isclose(domeigen(T, 100)[1], λ))
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mirabelle as mb
from mirabelle.programs.recorded import recorded


def domeigen(A: Any, p: int, seed: Any = 0) -> tuple[Any, Any]:
    """The dominant eigenvector and eigenvalue of A after `p` iterations (listing 1).

    It starts at a random vector, the same for each type of array; `seed` is what
    `mb.random.default_rng` takes.

    >>> import mirabelle as mb
    >>> b, λ = domeigen(mb.RefArray([[2.0, 0.0], [0.0, 1.0]]), 60)
    >>> print(mb.around(mb.abs(b), 9), λ, b.place)
    [1. 0.] 2.0 ref:0
    """
    b_k = mb.similar(A, shape=A.shape[:1])
    mb.random.default_rng(seed).fill(b_k)

    # power iteration
    for _ in range(p):
        b_k1 = A @ b_k

        # normalize
        b_k = b_k1 / mb.norm(b_k1)

    # Rayleigh quotient
    λ = mb.dot(A @ b_k, b_k) / mb.dot(b_k, b_k)

    return b_k, λ


def domeigen_with_buffers(A: Any, p: int, seed: Any = 0) -> tuple[Any, Any]:
    """The same with two vectors made before the loop, which writes to them (listing 19).

    >>> import mirabelle as mb
    >>> b, λ = domeigen_with_buffers(mb.HostArray([[2.0, 0.0], [0.0, 1.0]]), 60)
    >>> print(mb.around(mb.abs(b), 9), λ)
    [1. 0.] 2.0
    """
    b_k = mb.similar(A, shape=A.shape[:1])
    mb.random.default_rng(seed).fill(b_k)
    b_k1 = mb.similar(b_k)

    # power iteration
    for _ in range(p):
        b_k1[...] = A @ b_k

        # normalize
        b_k[...] = b_k1 / mb.norm(b_k1)

    # Rayleigh quotient
    λ = mb.dot(A @ b_k, b_k) / mb.dot(b_k, b_k)

    return b_k, λ


def domeigen_recorded(A: Any, seed: Any = 0) -> Callable[[int], tuple[Any, Any]]:
    """The same for a matrix on a card, where an iteration is recorded, and replayed as one launch.

    The result is called with the number of iterations, as often as A changes.
    """
    b_k = mb.similar(A, shape=A.shape[:1])
    mb.random.default_rng(seed).fill(b_k)

    def iterate() -> None:
        b_k1 = A @ b_k
        b_k[...] = b_k1 / mb.norm(b_k1)

    replay = recorded(iterate)

    def run(p: int) -> tuple[Any, Any]:
        mb.random.default_rng(seed).fill(b_k)
        replay(p)
        return mb.copy(b_k), mb.dot(A @ b_k, b_k) / mb.dot(b_k, b_k)

    return run
