"""What the figures measure: sizes, data, and each contender's call.

A contender is a function without arguments that computes everything and returns the result, made
by one of the functions below for a size. Hosts and cards differ in `Library`s alone: how an array is
made, how its work is waited for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.paper_julia import peers

Contenders = dict[str, Callable[[], Any]]

PARAMETERS, STEPS = 100, 25
ITERATIONS = 1000  # of the power method: fewer are run where a matrix is large, and the time is scaled


@dataclass(frozen=True)
class Figure:
    """One of the paper's figures; `last` are exponents of two: the largest N on a host and on a card."""

    name: str
    title: str
    subtitle: str
    first: int
    last: tuple[int, int]
    # Array operations of NumPy's program that one measured call runs.
    operations: int

    def sizes(self, card: bool, tiny: bool) -> list[int]:
        return [2**e for e in range(self.first, (self.first + 1 if tiny else self.last[card]) + 1)]


POWER = Figure("power", "Power iteration", "1000 iterations, N × N matrix", 4, (12, 14), 3 * ITERATIONS)
KRONECKER = Figure("kronecker", "Norm of a Kronecker product", "two N × N matrices", 2, (12, 14), 3)
DESCENT = Figure(
    "descent",
    "Proximal gradient descent",
    f"{STEPS} iterations, {PARAMETERS} parameters, N outputs",
    5,
    (16, 20),
    14 * STEPS,
)
# The loss's gradient alone: no figure of the paper's, and stored beside them.
GRADIENT = Figure("gradient", "Gradient of the loss", f"{PARAMETERS} parameters, N outputs", 5, (16, 20), 5)
FIGURES = (POWER, KRONECKER, DESCENT, GRADIENT)
# A dense Kronecker product has N⁴ elements.
DENSE_LAST = (7, 7)


@dataclass(frozen=True)
class Case:
    """A figure at one size."""

    figure: Figure
    n: int
    card: bool = False
    tiny: bool = False

    @property
    def dense(self) -> bool:
        """Whether the Kronecker product is computed in full, too."""
        return self.figure is KRONECKER and self.n <= 2 ** DENSE_LAST[self.card]

    @property
    def iterations(self) -> int:
        """How many iterations of the power method a call runs: about as long for each large matrix."""
        return 20 if self.tiny else max(20, min(ITERATIONS, int(2e9 / (8 * self.n * self.n))))

    @property
    def scale(self) -> float:
        """What the time of a call is multiplied by."""
        return ITERATIONS / self.iterations if self.figure is POWER else 1.0

    def data(self) -> tuple[Any, ...]:
        """NumPy's arrays that the programs take."""
        if self.figure is POWER:
            return (matrix(self.n),)
        if self.figure is KRONECKER:
            return matrix(self.n), matrix(self.n, seed=1)
        return regression(self.n)

    def facts(self) -> dict[str, Any]:
        """What is stored of it."""
        return {
            "figure": self.figure.name,
            "n": self.n,
            "operations": self.figure.operations,
            "iterations": self.iterations if self.scale != 1 else None,
        }


def matrix(n: int, seed: int = 0) -> Any:
    """Positive entries: the dominant eigenvalue is far from the others."""
    return np.random.default_rng(seed).random((n, n))


def regression(n: int) -> tuple[Any, ...]:
    """Weights, inputs and outputs, normally distributed."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(PARAMETERS, n))
    y = rng.normal(size=(1, PARAMETERS)) @ x + rng.normal()
    return np.zeros((1, PARAMETERS)), x, y


# Ours: `array` is a constructor, the rest is the program


def ours(case: Case, data: Sequence[Any], array: Callable[[Any], Any]) -> Contenders:
    """The programs of `mirabelle.programs` on one type of array."""
    import mirabelle as mb
    from mirabelle.programs import kronecker_norm, power_iteration
    from mirabelle.programs import proximal_gradient as descent
    from mirabelle.programs.recorded import recorded

    made = [mb.materialize(array(x)) for x in data]
    if case.figure is POWER:
        (A,) = made
        p = case.iterations
        calls: Contenders = {
            "mirabelle": lambda: mb.materialize(power_iteration.domeigen(A, p)[1]),
            "mirabelle, buffers": lambda: mb.materialize(power_iteration.domeigen_with_buffers(A, p)[1]),
        }
        if case.card:
            iterate = functools.cache(lambda: power_iteration.domeigen_recorded(A))
            calls["mirabelle, recorded"] = lambda: mb.materialize(iterate()(p)[1])
        return calls
    if case.figure is KRONECKER:
        A, B = made
        K = kronecker_norm.Kronecker(A, B)
        calls = {"mirabelle": lambda: mb.materialize(mb.norm(K))}
        if case.dense:
            calls["mirabelle, dense"] = lambda: mb.materialize(mb.norm(mb.materialize(mb.kron(A, B))))
            calls["mirabelle, entries"] = lambda: mb.materialize(kronecker_norm.norm_by_entries(K))
        return calls
    w, x, y = made
    model, loss = descent.linear_regression, descent.mean_squared_error
    if case.figure is GRADIENT:
        calls = {"mirabelle": lambda: mb.materialize(descent.loss_dw(model, loss, w, 0.0, x, y))}
        if case.card:
            by_w, begin = mb.copy(w), mb.zeros_like(w[0, 0])
            gradient = lambda: by_w.__setitem__(..., descent.loss_dw(model, loss, w, begin, x, y))
            again = functools.cache(lambda: recorded(gradient))

            def replayed_gradient() -> Any:
                again()(1)
                return by_w

            calls["mirabelle, recorded"] = replayed_gradient
        # As JAX's are: the whole function, of arrays alone.
        compiled, bias = mb.compile(functools.partial(descent.loss_dw, model, loss)), mb.zeros_like(w[0, 0])
        calls["mirabelle, compiled"] = lambda: mb.materialize(compiled(w, bias, x, y))
        return calls

    def descend(optimize: Callable[..., Any], v: Any, b: Any) -> Any:
        v, b = descent.descend(model, loss, v, b, x, y, STEPS, optimize=optimize)
        mb.materialize(b)
        return mb.materialize(v)

    def in_place() -> Any:
        return descend(descent.proximal_gradient_descent_in_place, mb.copy(w), mb.zeros_like(w[0, 0]))

    calls = {
        "mirabelle": lambda: descend(descent.proximal_gradient_descent, w, 0.0),
        "mirabelle, in place": in_place,
    }
    if case.card:
        begin = mb.zeros_like(w[0, 0])
        run = functools.cache(lambda: descent.descend_recorded(model, loss, mb.copy(w), mb.copy(begin), x, y))
        calls["mirabelle, recorded"] = lambda: mb.materialize(run()(w, begin, STEPS)[0])
    bias = mb.zeros_like(w[0, 0])
    steps = mb.compile(lambda v, b, x, y: descent.descend(model, loss, v, b, x, y, STEPS))
    calls["mirabelle, compiled"] = lambda: mb.materialize(steps(w, bias, x, y)[0])
    return calls


# NumPy's and CuPy's, which are one text


def by_hand(case: Case, data: Sequence[Any], xp: Any, name: str) -> Contenders:
    """The programs on arrays of NumPy or CuPy; derivatives are written by hand."""
    if case.figure is POWER:
        (A,) = data
        p = case.iterations
        return {name: lambda: peers.domeigen(xp, A, p)[1]}
    if case.figure is KRONECKER:
        A, B = data
        calls: Contenders = {name: lambda: peers.norm_by_factors(xp, A, B)}
        if case.dense:
            calls[f"{name}, dense"] = lambda: peers.norm_when_dense(xp, A, B)
        return calls
    w, x, y = data
    if case.figure is GRADIENT:
        return {f"{name}, by hand": lambda: peers.loss_dw(xp, w, 0.0, x, y)}
    return {f"{name}, by hand": lambda: peers.descend(xp, w, 0.0, x, y, STEPS)[0]}


def by_jax(case: Case, data: Sequence[Any], jax: Any, wait: Callable[[Any], Any]) -> Contenders:
    """The programs compiled by JAX, loops included; `wait` is called with what a call has started."""
    if case.figure is POWER:
        (A,) = data
        domeigen = peers.jax_domeigen(jax, case.iterations)
        return {"JAX": lambda: wait(domeigen(A))[1]}
    if case.figure is KRONECKER:
        A, B = data
        norm = peers.jax_norm(jax, dense=False)
        calls: Contenders = {"JAX": lambda: wait(norm(A, B))}
        if case.dense:
            norm_dense = peers.jax_norm(jax, dense=True)
            calls["JAX, dense"] = lambda: wait(norm_dense(A, B))
        return calls
    w, x, y = data
    b = jax.numpy.zeros(())
    calls = {}
    for mode, differentiate in (("jacfwd", jax.jacfwd), ("grad", jax.grad)):
        if case.figure is GRADIENT:
            f = peers.jax_loss_dw(jax, differentiate)
            calls[f"JAX {mode}"] = lambda f=f: wait(f(w, b, x, y))  # type: ignore[misc]
        else:
            f = peers.jax_descend(jax, differentiate, STEPS)
            calls[f"JAX {mode}"] = lambda f=f: wait(f(w, b, x, y))[0]  # type: ignore[misc]
    return calls
