"""The paper's programs as users of other libraries write them.

NumPy's and CuPy's are one text. They have no derivatives: those of the loss are written by hand, and
belong to this model and this loss alone. JAX's are compiled as a whole, loops included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

LR = 0.1


# NumPy and CuPy (`xp`)


def domeigen(xp: Any, A: Any, p: int) -> tuple[Any, Any]:
    b = xp.random.random(A.shape[0])
    for _ in range(p):
        b = A @ b
        b = b / xp.linalg.norm(b)
    return b, (A @ b) @ b / (b @ b)


def norm_by_factors(xp: Any, A: Any, B: Any) -> Any:
    return xp.linalg.norm(A) * xp.linalg.norm(B)


def norm_when_dense(xp: Any, A: Any, B: Any) -> Any:
    return xp.linalg.norm(xp.kron(A, B))


def loss_dw(xp: Any, w: Any, b: Any, x: Any, y: Any) -> Any:
    return 2 / y.shape[1] * ((w @ x + b - y) @ x.T)


def loss_db(xp: Any, w: Any, b: Any, x: Any, y: Any) -> Any:
    return 2 / y.shape[1] * xp.sum(w @ x + b - y)


def descend(xp: Any, w: Any, b: Any, x: Any, y: Any, steps: int) -> tuple[Any, Any]:
    for _ in range(steps):
        w = w - LR * loss_dw(xp, w, b, x, y)
        b = b - LR * loss_db(xp, w, b, x, y)
    return w, b


# JAX


def jax_domeigen(jax: Any, p: int) -> Callable[[Any], Any]:
    def program(A: Any) -> Any:
        b = jax.random.uniform(jax.random.key(0), A.shape[:1], A.dtype)

        def iteration(_: Any, b: Any) -> Any:
            b = A @ b
            return b / jax.numpy.linalg.norm(b)

        b = jax.lax.fori_loop(0, p, iteration, b)
        return b, (A @ b) @ b / (b @ b)

    compiled: Callable[[Any], Any] = jax.jit(program)
    return compiled


def jax_norm(jax: Any, dense: bool) -> Callable[[Any, Any], Any]:
    program = norm_when_dense if dense else norm_by_factors
    compiled: Callable[[Any, Any], Any] = jax.jit(lambda A, B: program(jax.numpy, A, B))
    return compiled


def _jax_loss(jax: Any) -> Callable[..., Any]:
    def loss(w: Any, b: Any, x: Any, y: Any) -> Any:
        return jax.numpy.sum(jax.numpy.abs(jax.numpy.square(w @ x + b - y))) / y.shape[1]

    return loss


def jax_loss_dw(jax: Any, differentiate: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient by the weights; `differentiate` is jax.jacfwd or jax.grad."""
    compiled: Callable[..., Any] = jax.jit(differentiate(_jax_loss(jax), argnums=0))
    return compiled


def jax_descend(jax: Any, differentiate: Callable[..., Any], steps: int) -> Callable[..., Any]:
    loss = _jax_loss(jax)
    by_w, by_b = differentiate(loss, argnums=0), differentiate(loss, argnums=1)

    def program(w: Any, b: Any, x: Any, y: Any) -> Any:
        def step(_: Any, state: Any) -> Any:
            w, b = state
            w = w - LR * by_w(w, b, x, y)
            return w, b - LR * by_b(w, b, x, y)

        return jax.lax.fori_loop(0, steps, step, (w, b))

    compiled: Callable[..., Any] = jax.jit(program)
    return compiled
