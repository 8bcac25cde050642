"""Which kernels, at what sizes, and in what form each is compiled."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.npkernels import KERNELS
from benchmarks.npkernels._kernel import Kernel
from benchmarks.npkernels.flow import divergence_source, moved, wrapped

# About what the peers' suites call small: Python's loops are unrolled in a compiled program, and what counts
# is the cost of many statements on arrays that fit in the caches.
SIZES: dict[str, Mapping[str, int]] = {
    "jacobi_1d": {"steps": 800, "n": 3200},
    "jacobi_2d": {"steps": 50, "n": 150},
    "heat_3d": {"steps": 25, "n": 25},
    "fdtd_2d": {"steps": 20, "nx": 200, "ny": 220},
    "vadv": {"ni": 60, "nj": 60, "nk": 40},
    "hdiff": {"ni": 64, "nj": 64, "nk": 60},
    "cavity_flow": {"n": 61, "steps": 25, "sweeps": 5},
    "channel_flow": {"n": 61, "sweeps": 5, "tolerance": 0.01},
    "adi": {"steps": 5, "n": 100},
    "deriche": {"width": 400, "height": 200},
    "stockham_fft": {"radix": 2, "stages": 15},
    "nbody": {"bodies": 25, "steps": 50},
    "mandelbrot1": {"width": 125, "height": 125, "limit": 60},
    "conv2d": {"batch": 8, "side": 32, "k": 3, "inputs": 3, "outputs": 16},
    "lenet": {"batch": 4, "side": 28},
    "softmax": {"batch": 16, "heads": 16, "length": 128},
    "mlp": {"batch": 8, "inputs": 3, "hidden": 2000, "outputs": 1000},
}
NAMES = tuple(SIZES)


def kernel(name: str) -> Kernel:
    """The kernel of npkernels that is meant."""
    return KERNELS[name]


@dataclass(frozen=True)
class Form:
    """How a kernel is written for `mb.compile`.

    `start(inputs)` gives the arrays that are arguments; `calling(compile, xp, inputs)` a function of them,
    which compiles as it pleases and returns the kernel's results.
    """

    start: Callable[[Sequence[Any]], list[np.ndarray]]
    calling: Callable[[Callable[..., Any], Any, Sequence[Any]], Callable[[Sequence[Any]], tuple[Any, ...]]]
    why: str = ""


def arrays_of(inputs: Sequence[Any]) -> list[np.ndarray]:
    return [x for x in inputs if isinstance(x, np.ndarray)]


def as_it_is(k: Kernel) -> Form:
    """The kernel's own text. Its arrays are arguments; numbers are constants, as they are for JAX."""

    def calling(compile: Any, xp: Any, inputs: Sequence[Any]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
        fixed = [None if isinstance(x, np.ndarray) else x for x in inputs]
        plain = in_namespace(k.plain, xp) if k.jitted else k.plain

        def program(*arrays: Any) -> Any:
            left = iter(arrays)
            arguments = [next(left) if x is None else x for x in fixed]
            return plain(xp, *arguments) if k.takes_namespace else plain(*arguments)

        program.__name__ = k.name
        compiled = compile(program)

        def call(arrays: Sequence[Any]) -> tuple[Any, ...]:
            left = iter(arrays)
            arguments = [next(left) if x is None else x for x in fixed]
            return k.run(lambda *_: compiled(*arrays), xp, arguments)

        return call

    return Form(arrays_of, calling)


def in_namespace(plain: Callable[..., Any], xp: Any) -> Callable[..., Any]:
    """A program that knows NumPy as the global `np`, and the functions that it calls, with `xp` as `np`."""
    scope = dict(plain.__globals__)
    for name, value in scope.items():
        if isinstance(value, types.FunctionType) and value.__globals__ is plain.__globals__:
            scope[name] = types.FunctionType(value.__code__, scope, name)
    scope["np"] = xp
    made = plain.__code__
    return types.FunctionType(made, scope, made.co_name)


class Handing:
    """A namespace whose `zeros` hands out given arrays.

    A program that begins with zeros has no inputs, and all that it computes could be folded into constants.
    """

    def __init__(self, xp: Any, arrays: Sequence[Any]) -> None:
        self._xp = xp
        self._left = iter(arrays)

    def zeros(self, *_: Any, **__: Any) -> Any:
        return next(self._left)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._xp, name)


def handing(k: Kernel, start: Callable[[Sequence[Any]], list[np.ndarray]]) -> Form:
    """The kernel's own text, with the arrays it makes of zeros as arguments."""

    def calling(compile: Any, xp: Any, inputs: Sequence[Any]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
        def program(*arrays: Any) -> Any:
            return k.plain(Handing(xp, arrays), *inputs)

        program.__name__ = k.name
        compiled = compile(program)
        return lambda arrays: tuple(compiled(*arrays))

    return Form(start, calling, "what it makes of zeros is given, so that it cannot be folded")


def squares(count: int) -> Callable[[Sequence[Any]], list[np.ndarray]]:
    """So many squares of zeros, of the size that is the first input."""
    return lambda inputs: [np.zeros((inputs[0], inputs[0])) for _ in range(count)]


def channel_step(
    xp: Any, u: Any, v: Any, p: Any, n: int, sweeps: int, dt: float, rho: float, nu: float, force: float
) -> Any:
    """One step of channel flow, in place; how much it changed the flow."""
    h = 2.0 / (n - 1)
    before = u.sum()
    wide_u, wide_v = wrapped(xp, u), wrapped(xp, v)
    b = divergence_source(wide_u, wide_v, rho, dt, h)
    for _ in range(sweeps):
        wide = wrapped(xp, p)
        p[1:-1] = 0.25 * (wide[1:-1, 2:] + wide[1:-1, :-2] + wide[2:, 1:-1] + wide[:-2, 1:-1] - h * h * b)
        p[-1] = p[-2]
        p[0] = p[1]
    wide = wrapped(xp, p)
    u[1:-1] = (
        moved(wide_u, wide_u, wide_v, dt / h, nu * dt / h**2)
        - dt / (2 * rho * h) * (wide[1:-1, 2:] - wide[1:-1, :-2])
        + force * dt
    )
    v[1:-1] = moved(wide_v, wide_u, wide_v, dt / h, nu * dt / h**2) - dt / (2 * rho * h) * (
        wide[2:, 1:-1] - wide[:-2, 1:-1]
    )
    after = u.sum()
    return (after - before) / after


def stepping_channel() -> Form:
    def calling(compile: Any, xp: Any, inputs: Sequence[Any]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
        n, sweeps, tolerance, dt, rho, nu, force = inputs

        def step(u: Any, v: Any, p: Any) -> Any:
            return channel_step(xp, u, v, p, n, sweeps, dt, rho, nu, force)

        compiled = compile(step)

        def call(arrays: Sequence[Any]) -> tuple[Any, ...]:
            change = 1.0
            while change > tolerance:
                change = float(compiled(*arrays))
            return tuple(arrays)

        return call

    return Form(squares(3), calling, "one step is compiled, and Python asks whether the flow still changes")


def plane(inputs: Sequence[Any]) -> list[np.ndarray]:
    """Where iterations begin: z and how many steps each point took."""
    width, height, _ = inputs
    return [np.zeros((height, width), np.complex128), np.zeros((height, width), np.int64)]


def forms(name: str) -> list[Form]:
    """Forms of a kernel, that which is wanted first: the first that compiles counts."""
    k = kernel(name)
    if name == "cavity_flow":
        return [handing(k, squares(4))]
    if name == "channel_flow":
        return [handing(k, squares(3)), stepping_channel()]
    if name in ("mandelbrot1", "mandelbrot2"):
        return [handing(k, plane)]
    return [as_it_is(k)]
