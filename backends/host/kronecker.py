"""Systems of Kronecker sums for the host: in Schur's form of each factor, by back substitution."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.host import HostArray
from mirabelle.backends.host.structured import scipy_if_there


@library.routine(HostArray, "kronecker_sum_solve")
def kronecker_sum_solve(parts: list[np.ndarray], b: np.ndarray) -> np.ndarray:
    """The x with (A ⊕ B ⊕ ...) x = b, where `b` has an axis for each matrix between two others."""
    linalg = scipy_if_there()
    if linalg is None or b.dtype.char not in "fdFD":
        return _whole(parts, b)
    # Two real factors stay real; with more, the eigenvalues of the first shift the others.
    real = len(parts) == 2 and b.dtype.kind != "c"
    forms = [
        linalg.schur(p.T if k == len(parts) - 1 else p, output="real" if real else "complex")
        for k, p in enumerate(parts)
    ]
    triangles, turns = [t for t, _ in forms], [q for _, q in forms]
    x = b
    for k, q in enumerate(turns):
        x = _along(q.T if k == len(parts) - 1 else q.conj().T, x, k + 1)
    (trsyl,) = linalg.get_lapack_funcs(("trsyl",), (triangles[0], x))
    solution = np.empty(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[-1]):
            solution[i, ..., j] = _substituted(trsyl, triangles, x[i, ..., j])
    for k, q in enumerate(turns):
        solution = _along(q.conj() if k == len(parts) - 1 else q, solution, k + 1)
    return solution if b.dtype.kind == "c" else np.ascontiguousarray(solution.real)


def _along(m: np.ndarray, x: np.ndarray, axis: int) -> np.ndarray:
    """A matrix times all lines of `x` along an axis."""
    return np.moveaxis(np.tensordot(m, x, (1, axis)), 0, axis)


def _substituted(trsyl: Any, triangles: list[np.ndarray], c: np.ndarray) -> np.ndarray:
    """Solve with upper triangular factors, of which the last acts from the right."""
    first = triangles[0]
    if len(triangles) == 2:
        x, scale, info = trsyl(first, triangles[1], c)
        if info:  # a sum of eigenvalues that is zero to working precision
            raise np.linalg.LinAlgError("Singular matrix")
        return x / scale if scale != 1 else x  # type: ignore[no-any-return]
    solution = np.empty_like(c)
    one = np.eye(len(triangles[1]), dtype=first.dtype)
    for i in range(len(first) - 1, -1, -1):
        rest = c[i] - np.tensordot(first[i, i + 1 :], solution[i + 1 :], (0, 0))
        shifted = [triangles[1] + first[i, i] * one, *triangles[2:]]
        solution[i] = _substituted(trsyl, shifted, rest)
    return solution


def _whole(parts: list[np.ndarray], b: np.ndarray) -> np.ndarray:
    """The same without SciPy: the sum as one matrix."""

    def widened(k: int) -> np.ndarray:
        return functools.reduce(
            np.kron, [p if m == k else np.eye(len(p), dtype=p.dtype) for m, p in enumerate(parts)]
        )

    matrix = functools.reduce(np.add, [widened(k) for k in range(len(parts))])
    x = np.linalg.solve(matrix, b.reshape(b.shape[0], len(matrix), b.shape[-1]))
    return x.reshape(b.shape)
