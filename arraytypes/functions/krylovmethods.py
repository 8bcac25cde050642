"""The turns of Krylov's methods: each improves x in place until it is told to stop, or says why it cannot.

`A` and `M` are functions here (`M` may be None), `r` is b - A x. `stop(estimate)` is asked after each turn,
with what the method believes the norm of b - A x to be. x changes only by what was found to be finite.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.functions.manipulation import stack
from mirabelle.arraytypes.functions.products import vdot
from mirabelle.dispatch import verbs
from mirabelle.dispatch.settings import settings

Operator = Callable[[Any], Any]
Stop = Callable[[float], bool]

NOT_FINITE = (
    "A product is not finite: A or M holds NaN, infinity or numbers near the largest, or A is singular."
)


def _together() -> AbstractContextManager[None]:
    """Inner products over processes travel in one message. (Who has not imported these has no such arrays.)"""
    combining = sys.modules.get("mirabelle.arraytypes.distributed.combining")
    return nullcontext() if combining is None else combining.batch()  # type: ignore[no-any-return]


def inner(x: Any, y: Any) -> Any:
    """The inner product of two arrays of one shape, the first conjugated: an array of no dimensions."""
    if x.ndim != 1 or x.size > settings.brief_size:  # (whose kernel reads a pending operand by the way)
        return vdot(x, y)
    return verbs.dot(verbs.conj(x) if x.dtype.kind == "c" else x, y)


def form(x: Any, y: Any) -> Any:
    """The inner product where it is known to be real."""
    found = inner(x, y)
    return verbs.real(found) if x.dtype.kind == "c" else found


def free(x: Any) -> Any:
    """A number as Python's, where reading it costs nothing: a card is not waited for."""
    return x if x.place.rank == 2 else x.item()


def numbers(*found: Any) -> list[Any]:
    """Numbers as Python's: those of a card are read together."""
    waiting = [x for x in found if isinstance(x, AbstractArray)]
    if len(waiting) > 1 and waiting[0].place.rank == 2:
        read = iter(verbs.to_numpy(stack(waiting)).tolist())
    else:
        read = iter([x.item() for x in waiting])
    return [next(read) if isinstance(x, AbstractArray) else x for x in found]


def eps(x: Any) -> float:
    """The distance of 1 to the next number of the dtype of an array."""
    return float(np.finfo(x.dtype).eps)


def conjugate_gradients(A: Operator, M: Operator | None, x: Any, r: Any, stop: Stop) -> str:
    """For positive definite A and M: two reductions a turn."""
    z = r if M is None else M(r)
    p = verbs.copy(z)
    (rz,) = numbers(form(r, z))
    most = numbers(form(r, r))[0] / eps(r)  # (of the squares: by its condition number, that of A is no more)
    while True:
        q = A(p)
        pq = free(form(p, q))
        alpha = rz / pq if isinstance(pq, AbstractArray) or pq else math.nan
        r -= alpha * q
        z = r if M is None else M(r)
        with _together():
            squares, new = form(r, r), None if M is None else form(r, z)
        pq, squares, new = numbers(pq, squares, new)
        new = squares if new is None else new
        if not (math.isfinite(squares) and math.isfinite(new)):
            return NOT_FINITE
        if squares > most:
            return "The residual grows: A is singular, or nearly. mb.linalg.minres finds an x of least squares."
        if pq <= 0 or new < 0:
            return (
                f"{'A' if pq <= 0 else 'M'} is not positive definite. For a symmetric A that is not there is "
                "mb.linalg.minres(A, b), for any mb.linalg.gmres(A, b)."
            )
        x += (rz / pq) * p
        p[...] = z + p * (new / rz)
        rz = new
        if stop(math.sqrt(squares)):
            return ""


def minimal_residuals(A: Operator, M: Operator | None, x: Any, r: Any, stop: Stop) -> str:
    """For symmetric A, by Lanczos's three-term recurrence and rotations: Paige and Saunders, 1975."""
    y = r if M is None else M(r)
    (squares,) = numbers(form(r, y))
    if not squares > 0:
        return NOT_FINITE if not math.isfinite(squares) else "M is not positive definite."
    beta = rest = math.sqrt(squares)
    before, old, scale = verbs.multiply(r, 0), 1.0, 0.0
    diagonal = above = sine = 0.0
    cosine = -1.0
    w = earlier = before
    true = r
    while True:
        v = y * (1 / beta)
        y = A(v) - before * (beta / old)
        alpha = free(form(v, y))
        y = y - r * alpha * (1 / beta)
        before, r = r, y
        y = r if M is None else M(r)
        alpha, squares = numbers(alpha, form(r, y))
        if not (math.isfinite(alpha) and math.isfinite(squares)):
            return NOT_FINITE
        if squares < 0:
            return "M is not positive definite."
        old, beta = beta, math.sqrt(squares)
        scale = max(scale, math.hypot(alpha, old, beta))
        # The rotation before is applied to the new column of the tridiagonal matrix, then one that ends it.
        further = above
        delta, bar = cosine * diagonal + sine * alpha, sine * diagonal - cosine * alpha
        above, diagonal = sine * beta, -cosine * beta
        if math.hypot(bar, diagonal) <= 10 * eps(w) * scale:
            return "A is singular and does not reach b: this x is one of least squares."
        gamma = math.hypot(bar, beta)
        cosine, sine = bar / gamma, beta / gamma
        step, rest = cosine * rest, sine * rest
        earlier, w = w, (v - earlier * further - w * delta) * (1 / gamma)
        x += w * step
        estimate = rest
        if M is not None:
            true = true * (sine * sine) + r * (-rest * cosine / beta if beta else 0.0)
            estimate = math.sqrt(numbers(form(true, true))[0])
        if stop(estimate):
            return ""


def generalized_residuals(A: Operator, M: Operator | None, x: Any, r: Any, stop: Stop, restart: int) -> str:
    """For any A: least squares over a basis of Krylov's space (Arnoldi's, kept triangular by rotations)."""
    size = math.sqrt(numbers(form(r, r))[0])
    basis, rest = [r * (1 / size)], [size]
    columns: list[list[Any]] = []
    rotations: list[tuple[float, Any]] = []
    said, ended = "", False
    while not ended and len(columns) < restart:
        w, column, height = orthogonalized(A(basis[-1] if M is None else M(basis[-1])), basis)
        if not math.isfinite(height):
            said = NOT_FINITE
            break
        for k, (c, s) in enumerate(rotations):
            column[k : k + 2] = c * column[k] + s * column[k + 1], c * column[k + 1] - s.conjugate() * column[k]
        last = abs(column[-1])
        both = math.hypot(last, height)
        c, s = (last / both, column[-1] / last * (height / both)) if last else (0.0, 1.0)
        column[-1] = c * column[-1] + s * height
        rest[-1:] = c * rest[-1], -s.conjugate() * rest[-1]
        rotations.append((c, s))
        columns.append(column)
        ended = stop(abs(rest[-1])) or height == 0
        basis.append(w if ended else w * (1 / height))
    if columns:
        triangle = np.array([[*column, *[0] * (len(columns) - k - 1)] for k, column in enumerate(columns)]).T
        y = np.linalg.lstsq(triangle, np.array(rest[:-1]), rcond=None)[0].tolist()
        found = combined(basis[0] * y[0], basis[1 : len(y)], y[1:])
        x += found if M is None else M(found)
    return said


def orthogonalized(w: Any, basis: list[Any]) -> tuple[Any, list[Any], float]:
    """`w` less its parts along an orthonormal basis, these parts, and the norm of what is left.

    All inner products of a pass are one message; where much is taken away, a second pass makes up for rounding.
    """
    parts = np.zeros(len(basis))
    first = 0.0
    for _ in range(2):
        with _together():
            found = [inner(v, w) for v in basis] + [form(w, w)]
        *taken, squares = numbers(*found)
        w = combined(w, basis, [-c for c in taken])
        parts = parts + np.array(taken)
        first = first or squares
        left = squares - sum(abs(c) * abs(c) for c in taken)
        if not left < squares / 2:
            break
    else:  # it lies in their span, but for rounding
        left = 0.0
    if left <= (eps(w) * len(parts)) ** 2 * first:
        left = 0.0
    return w, parts.tolist(), math.sqrt(left)


def combined(w: Any, vectors: list[Any], factors: list[Any]) -> Any:
    """w + the sum of factor * vector: a few vectors at a time, so that kernels are few."""
    for k in range(0, len(vectors), 4):
        for v, c in zip(vectors[k : k + 4], factors[k : k + 4], strict=True):
            w = w + v * c
        w = verbs.materialize(w)
    return w
