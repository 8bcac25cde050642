"""Linear systems by Krylov's methods, `cg`, `minres` and `gmres`: composed of verbs, so every array has them.

The matrix is only ever multiplied by vectors. Vectors are combined elementwise and by inner products, whose
values stay where the vectors are: `cg` reads one number a turn. What a method believes of its residual is
checked against b - A x at the end; where it was too hopeful, it goes on from there.
"""

from __future__ import annotations

import functools
import math
import operator
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.elementwise import cast_to
from mirabelle.arraytypes.functions.krylovmethods import (
    Operator,
    conjugate_gradients,
    generalized_residuals,
    minimal_residuals,
)
from mirabelle.arraytypes.functions.lapack import LinAlgError, working_dtype
from mirabelle.arraytypes.functions.norms import vector_norm
from mirabelle.arraytypes.structured.base import Structured
from mirabelle.dispatch import verbs
from mirabelle.dispatch.errors import ConvergenceWarning
from mirabelle.dispatch.generic import generic


@dataclass(frozen=True)
class SolverInfo:
    """How an iterative solver ended: `residual` is the norm of b - A x, computed from the x returned.

    `iterations` counts turns, of one product with A each; `reason` says why it ended early.

    Parameters
    ----------
    converged : bool
        Whether the residual is as small as was asked for.
    iterations : int
        How many steps it took.
    residual : float
        The norm of b - A x.
    target : float
        How small it was to be.
    reason : str
        Why it ended.

    Examples
    --------
    >>> import mirabelle as mb
    >>> A, b = mb.HostArray([[4.0, 1.0], [1.0, 3.0]]), mb.HostArray([1.0, 2.0])
    >>> x, info = mb.linalg.cg(A, b)
    >>> info.converged, info.iterations, info.residual <= info.target
    (True, 2, True)
    """

    converged: bool
    iterations: int
    residual: float
    target: float
    reason: str = ""

    def __bool__(self) -> bool:
        raise TypeError("This is no number as SciPy's `info` is: ask `info.converged`.")


def _solver(body: Callable[..., Any]) -> Any:
    """A generic function of a matrix or function and an array: what else comes as b is made one."""
    made = generic(body, 2, wider=True)
    made.core.register(body, (object, AbstractArray))

    @functools.wraps(body)
    def convert(A: Any, b: Any, *args: Any, **options: Any) -> Any:
        return body(A, as_array(b, like=A if isinstance(A, AbstractArray) else None), *args, **options)

    made.core.register(convert, (object, object))
    return made


@_solver
def cg(
    A: Any,
    b: Any,
    /,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[int, float], Any] | None = None,
) -> tuple[AbstractArray, SolverInfo]:
    """The x with A x = b for a symmetric (Hermitian) positive definite A, by conjugate gradients.

    `A` is anything that `@` takes, or a function that returns A x. `b` is a vector, or an array of any shape
    that `A` takes. It ends when the norm of b - A x is at most max(rtol ‖b‖, atol), or
    with a `ConvergenceWarning` after `maxiter` turns (10 for each unknown). `M` approximates the inverse of A,
    as a matrix or a function. `callback(turn, residual)` is called after each turn.

    Parameters
    ----------
    A : matrix or callable
        A matrix of any kind, or what gives A x of x.
    b : array
        The right-hand side.
    x0 : array or None
        Where it starts; None is zero.
    rtol : float, default 1e-05
        Stop when the residual is so small, relative to b.
    atol : float, default 0.0
        Stop when the residual is so small.
    maxiter : int or None
        The most steps.
    M : matrix, callable or None
        A preconditioner: roughly the inverse of A.
    callback : callable or None
        Called after each step with its number and the norm of the residual.

    Returns
    -------
    tuple
        `(x, info)`: x in new memory, of the shape of `b`, and a `mb.linalg.SolverInfo`, of which
        `converged` says whether x is as exact as was asked for.

    Examples
    --------
    >>> import mirabelle as mb
    >>> A = mb.Tridiagonal([-1.0, -1.0], [2.0, 2.0, 2.0], [-1.0, -1.0])
    >>> x, info = mb.linalg.cg(A, mb.HostArray([1.0, 0.0, 1.0]), rtol=1e-10)
    >>> print(mb.round(x, 8), info.converged)
    [1. 1. 1.] True
    """
    return _solved("cg", conjugate_gradients, A, b, x0, rtol, atol, maxiter, M, callback)


@_solver
def minres(
    A: Any,
    b: Any,
    /,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[int, float], Any] | None = None,
) -> tuple[AbstractArray, SolverInfo]:
    """The x with A x = b for a symmetric (Hermitian) A, definite or not, by minimal residuals.

    Arguments are those of `mb.linalg.cg`; `M` must be positive definite. Of a singular A that cannot reach `b`
    the x returned is one of least squares, and has not converged.

    Parameters
    ----------
    A : matrix or callable
        A matrix of any kind, or what gives A x of x.
    b : array
        The right-hand side.
    x0 : array or None
        Where it starts; None is zero.
    rtol : float, default 1e-05
        Stop when the residual is so small, relative to b.
    atol : float, default 0.0
        Stop when the residual is so small.
    maxiter : int or None
        The most steps.
    M : matrix, callable or None
        A preconditioner: roughly the inverse of A.
    callback : callable or None
        Called after each step with its number and the norm of the residual.

    Returns
    -------
    tuple
        `(x, info)`: x in new memory, of the shape of `b`, and a `mb.linalg.SolverInfo`, of which
        `converged` says whether x is as exact as was asked for.

    Examples
    --------
    >>> import mirabelle as mb
    >>> A = mb.HostArray([[0.0, 1.0], [1.0, 0.0]])
    >>> x, info = mb.linalg.minres(A, mb.HostArray([1.0, 2.0]))
    >>> print(x, info.converged)
    [2. 1.] True
    """
    return _solved("minres", minimal_residuals, A, b, x0, rtol, atol, maxiter, M, callback)


@_solver
def gmres(
    A: Any,
    b: Any,
    /,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[int, float], Any] | None = None,
) -> tuple[AbstractArray, SolverInfo]:
    """The x with A x = b for any square A, by generalised minimal residuals.

    Arguments are those of `mb.linalg.cg`. After `restart` turns, each of which keeps a vector, it starts again
    from what it has. `M` is applied from the right: residuals are those of the system as it was given.

    Parameters
    ----------
    A : matrix or callable
        A matrix of any kind, or what gives A x of x.
    b : array
        The right-hand side.
    x0 : array or None
        Where it starts; None is zero.
    rtol : float, default 1e-05
        Stop when the residual is so small, relative to b.
    atol : float, default 0.0
        Stop when the residual is so small.
    restart : int, default 20
        After how many steps it begins anew, which bounds its memory.
    maxiter : int or None
        The most steps.
    M : matrix, callable or None
        A preconditioner: roughly the inverse of A.
    callback : callable or None
        Called after each step with its number and the norm of the residual.

    Returns
    -------
    tuple
        `(x, info)`: x in new memory, of the shape of `b`, and a `mb.linalg.SolverInfo`, of which
        `converged` says whether x is as exact as was asked for.

    Examples
    --------
    >>> import mirabelle as mb
    >>> A = mb.HostArray([[2.0, 1.0], [0.0, 4.0]])
    >>> x, info = mb.linalg.gmres(A, mb.HostArray([3.0, 4.0]))
    >>> print(mb.round(x, 8), info.converged)
    [1. 1.] True
    """
    if isinstance(restart, bool) or not isinstance(restart, (int, np.integer)) or restart < 1:
        raise ValueError(f"gmres: restart={restart!r} is the number of turns between restarts, at least 1.")
    method = functools.partial(generalized_residuals, restart=int(restart))
    return _solved("gmres", method, A, b, x0, rtol, atol, maxiter, M, callback)


# What the methods share

_STAGNATED = {
    "cg": "or A is not symmetric positive definite: minres is for symmetric, gmres for other matrices.",
    "minres": "or A is not symmetric: mb.linalg.gmres(A, b) is for such.",
    "gmres": "A is singular, or more turns must come between restarts: restart=50.",
}


def _solved(
    name: str,
    method: Callable[..., str],
    A: Any,
    b: Any,
    x0: Any,
    rtol: float,
    atol: float,
    maxiter: int | None,
    M: Any,
    callback: Any,
) -> tuple[Any, SolverInfo]:
    """The solution, by a method that improves x until it is told to stop or says why it cannot go on."""
    limit = _checked(name, b, rtol, atol, maxiter)
    A, M = (as_array(x, like=b) if isinstance(x, (np.ndarray, list)) else x for x in (A, M))
    typed = [x for x in (b, A, x0) if isinstance(getattr(x, "dtype", None), np.dtype)]
    if isinstance(b, Structured) and type(verbs.similar(b)) is not type(b):  # (not to be written to)
        b = verbs.dense(b)
    b = cast_to(b, working_dtype(name, *typed))
    product, precondition = _operator(name, "A", A, b), None if M is None else _operator(name, "M", M, b)
    x = verbs.multiply(b, 0) if x0 is None else cast_to(as_array(x0, like=b), b.dtype)
    if x.shape != b.shape:
        raise ValueError(f"{name}: x0 has shape {x.shape} and b {b.shape}; they must be equal.")
    x = verbs.copy(x)
    r = b if x0 is None and isinstance(A, AbstractArray) else b - product(x)
    if any(y.carries_derivatives for y in (A, r) if isinstance(y, AbstractArray)):
        solve = functools.partial(_solved, name, method, rtol=rtol, atol=atol, maxiter=limit, callback=callback)
        return _differentiated(solve, product, precondition, b, x)
    size, residual = _norm(b), _norm(r)
    scale = 2.0 ** math.frexp(size)[1] if 0 < size < math.inf else 1.0
    if abs(math.log(scale)) > -math.log(float(np.finfo(b.dtype).tiny)) / 4:
        # Squares would leave the range of numbers. (A power of two rounds nothing.)
        x, info = _solved(name, method, A, b / scale, x / scale, rtol, atol / scale, limit, M, callback)
        return x * scale, replace(info, residual=info.residual * scale, target=info.target * scale)
    target, count, reason = max(rtol * size, atol), 0, ""

    def stop(estimate: float) -> bool:
        nonlocal count
        count += 1
        if callback is not None:
            callback(count, estimate)
        return estimate <= target or count >= limit

    if size == 0:
        x, residual = verbs.multiply(b, 0), 0.0
    elif not math.isfinite(residual):
        x, reason = x + math.nan, "b - A x0 is not finite: A, b or x0 holds NaN or infinity."
    while not (residual <= target or reason):
        if count >= limit:
            reason = f"The limit of {limit} turns was reached: give a larger maxiter, or a preconditioner M."
            break
        before = residual
        reason = method(product, precondition, x, verbs.copy(r), stop)
        r = b - product(x)
        residual = _norm(r)
        if not reason and count < limit and not residual < before:
            reason = f"It no longer decreases: it is as small as rounding allows, {_STAGNATED[name]}"
    converged = residual <= target
    info = SolverInfo(converged, count, residual, target, "" if converged else reason)
    if not converged:
        _warn(name, b, info)
    return x, info


def _checked(name: str, b: Any, rtol: float, atol: float, maxiter: int | None) -> int:
    """The most turns there may be; refuses options that mean nothing."""
    if not b.ndim:
        raise LinAlgError(f"{name}: the right-hand side is a vector, not one number.")
    for option, value in (("rtol", rtol), ("atol", atol)):
        if not isinstance(value, (int, float, np.number)) or not 0 <= value < math.inf:
            raise ValueError(
                f"{name}: {option}={value!r} is how small the residual is to be: a number from 0 on."
            )
    if maxiter is None:
        return 10 * int(b.size)
    if isinstance(maxiter, bool) or not isinstance(maxiter, (int, np.integer)) or maxiter < 0:
        raise ValueError(f"{name}: maxiter={maxiter!r} is a number of turns, an integer from 0 on.")
    return int(maxiter)


def _operator(name: str, letter: str, A: Any, b: Any) -> Operator:
    """The product with a matrix, or a function's result, as an array like `b`."""
    shape = getattr(A, "shape", None)
    if isinstance(shape, tuple) and shape != (b.shape[0], b.shape[0]):
        raise LinAlgError(
            f"{name}: {letter} has shape {shape}, and for b of shape {b.shape} it is a square matrix of "
            f"{b.shape[0]} rows. For least squares there is mb.linalg.lstsq."
        )
    product = A
    if hasattr(type(A), "__matmul__"):
        product = functools.partial(operator.matmul, A)
    elif not callable(A):
        raise TypeError(f"{name}: {letter} is a matrix or a function that multiplies by one, not {A!r}.")
    like_a_tree = isinstance(b, Structured)

    def apply(v: Any) -> Any:
        w = product(v)
        if not isinstance(w, AbstractArray):
            w = as_array(w, like=v)
        if w.shape != v.shape or (w.dtype != v.dtype and np.result_type(w.dtype, v.dtype) != v.dtype):
            raise LinAlgError(
                f"{name}: of {v.dtype} of shape {v.shape} {letter} makes {w.dtype} of shape {w.shape}. "
                f"It must keep the shape; give b in the dtype it needs: b.astype({w.dtype.name!r})."
            )
        if like_a_tree and not isinstance(w, Structured):
            if _stores_itself(b):
                return b._with_parts((w,))
            made = verbs.similar(b, dtype=w.dtype)
            verbs.assign(made, w)
            return made
        return w

    return apply


def _stores_itself(x: Any) -> bool:
    """Is its one part the same vector? (So it is of an array over an axis tree.)"""
    return isinstance(x, Structured) and len(x._parts) == 1 and x._parts[0].shape == x.shape


def _norm(r: Any) -> float:
    return float(vector_norm(r))


def _warn(name: str, b: Any, info: SolverInfo) -> None:
    from mirabelle.arraytypes.structured.fallback import operation  # which stands on all functions

    warnings.warn(
        f"{name} did not converge: the residual is {info.residual:.3g} after {info.iterations} turns, and was "
        f"to be {info.target:.3g}. {info.reason}",
        ConvergenceWarning,
        stacklevel=operation(b)[1],
    )


def _differentiated(
    solve: Any, product: Operator, M: Operator | None, b: Any, x0: Any
) -> tuple[Any, SolverInfo]:
    """The solution of dual numbers: from A x = b follows A dx = db - dA x, solved for each direction."""
    from mirabelle.arraytypes.duals.base import outermost, partials_of, value_in

    if _stores_itself(b):  # derivatives are in its part

        def of_parts(f: Operator) -> Operator:
            return lambda v: f(b._with_parts((v,)))._parts[0]

        part = None if M is None else of_parts(M)
        x, info = _differentiated(solve, of_parts(product), part, b._parts[0], x0._parts[0])
        return b._with_parts((x,)), info
    top = outermost((b, b - product(x0)))

    def of_values(f: Operator) -> Operator:
        return lambda v: value_in(f(v), top._tag)

    A = of_values(product)
    options = {"M": None if M is None else of_values(M)}
    x, info = solve(A, value_in(b, top._tag), value_in(x0, top._tag), **options)
    rows = partials_of(b - product(x))
    made = verbs.similar(x, shape=rows.shape)
    for k in range(rows.shape[0]):
        made[k] = solve(A, rows[k], None, **options)[0]
    return top._with(x, ((None, made),)), info
