"""Programs as newcomers write them, whole: bodies, a filter of images, prices, a net, a flow, a mesh."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import mirabelle as mb
from mirabelle import dg
from mirabelle import meshdata as md
from mirabelle.arraytypes.kernels import Kernel


# n-body
def accelerations(x: mb.AbstractArray, m: mb.AbstractArray) -> mb.AbstractArray:
    apart = x[:, None, :] - x[:, :, None]
    assert_type(apart, mb.AbstractArray)
    r2 = apart[0] ** 2 + apart[1] ** 2 + apart[2] ** 2 + 1e-4
    assert_type(r2, mb.AbstractArray)
    return (apart * (m / (r2 * mb.sqrt(r2)))).sum(axis=2)


@mb.compile
def step(x: mb.AbstractArray, v: mb.AbstractArray, m: mb.AbstractArray, dt: float = 1e-3) -> None:
    v += dt * accelerations(x, m)
    x += dt * v


def simulate(n: int, steps: int) -> float:
    rng = mb.random.default_rng(0)
    x = rng.normal(size=(3, n))
    assert_type(rng, mb.random.Generator)
    assert_type(x, mb.AbstractArray)
    v, m = mb.zeros((3, n)), mb.full(n, 1 / n)
    for _ in range(steps):
        step(x, v, m)
    energy = 0.5 * float(mb.sum(m * v * v))
    assert_type(mb.sum(m * v * v), mb.AbstractArray)
    with mb.count() as c:
        mb.materialize(accelerations(x, m))
    assert_type(c.launches, int)
    return energy


# image filter
def gaussian(shape: tuple[int, int], width: float) -> mb.AbstractArray:
    fy = mb.fft.fftfreq(shape[0])[:, None]
    fx = mb.fft.rfftfreq(shape[1])[None, :]
    assert_type(fy, mb.AbstractArray)
    return mb.exp(-2 * (np.pi * width) ** 2 * (fx**2 + fy**2))


def blurred(image: mb.AbstractArray | npt.NDArray[np.float64], width: float) -> npt.NDArray[np.float64]:
    a = mb.asarray(image)
    assert_type(a, mb.AbstractArray)
    h, w = a.shape
    spectrum = mb.fft.rfft2(a) * gaussian((h, w), width)
    assert_type(spectrum, mb.AbstractArray)
    back = mb.fft.irfft2(spectrum, s=(h, w))
    low, high = mb.percentile(back, 1), mb.percentile(back, 99)
    assert_type(low, mb.AbstractArray)
    clipped = mb.clip((back - low) / (high - low), 0.0, 1.0)
    out = mb.to_numpy(clipped)
    assert_type(out, npt.NDArray[Any])
    return out


def edges(image: mb.AbstractArray, limit: float) -> tuple[mb.AbstractArray, int]:
    dx, dy = mb.gradient(image)
    assert_type(dx, mb.AbstractArray | Any)
    strength = mb.hypot(dx, dy)
    mask = strength > limit
    assert_type(mask, mb.AbstractArray)
    places = mb.argwhere(mask)
    assert_type(places, mb.AbstractArray)
    image[mask] = 1.0
    labels, counts = mb.unique(mb.where(mask, 1, 0), return_counts=True)
    assert_type(labels, mb.AbstractArray)
    assert_type(counts, mb.AbstractArray)
    return mask, int(mb.count_nonzero(mask))


def saved(path: Path, image: mb.AbstractArray) -> None:
    mb.save(path, image)
    back = mb.load(path)
    assert_type(back, mb.AbstractArray | Any)


# pricing
def price(
    z: mb.AbstractArray, strike: float = 100.0, rate: float = 0.05, volatility: float = 0.2
) -> mb.AbstractArray:
    dt = 1 / z.shape[0]
    steps = (rate - volatility**2 / 2) * dt + volatility * dt**0.5 * z
    paths = 100.0 * mb.exp(mb.cumsum(steps, axis=0))
    assert_type(paths, mb.AbstractArray)
    gain = mb.maximum(paths.mean(axis=0) - strike, 0)
    assert_type(gain, mb.AbstractArray)
    return mb.exp(-rate) * gain.mean()


def greeks(n: int, array: type[mb.AbstractArray] = mb.HostArray) -> dict[str, float]:
    z = mb.random.default_rng(1, device=array).normal(size=(12, n))
    assert_type(z, mb.AbstractArray)
    delta = mb.autodiff.derivative(lambda s: price(z, strike=s), 100.0)
    assert_type(delta, mb.AbstractArray)
    value = price(z)
    error = mb.std(value) / math.sqrt(n)
    assert_type(error, mb.AbstractArray)
    quantiles = mb.quantile(mb.sort(z[0]), [0.05, 0.95])
    assert_type(quantiles, mb.AbstractArray)
    return {"price": float(value), "delta": float(delta), "error": float(error)}


# a net
def loss(weights: mb.AbstractArray, x: mb.AbstractArray, y: mb.AbstractArray) -> mb.AbstractArray:
    return mb.mean((mb.tanh(x @ weights) - y) ** 2)


def trained(x: mb.AbstractArray, y: mb.AbstractArray, steps: int) -> mb.AbstractArray:
    w = mb.zeros(x.shape[1])
    assert_type(w, mb.AbstractArray)

    def of_weights(w: mb.AbstractArray) -> mb.AbstractArray:
        return loss(w, x, y)

    for _ in range(steps):
        value, slope = mb.autodiff.value_and_gradient(of_weights, w)
        assert_type(value, mb.AbstractArray)
        assert_type(slope, mb.AbstractArray)
        w -= 0.1 * slope
    return w


# kernels and loops
@mb.kernel
def saxpy(k: mb.types.KernelContext, y: mb.AbstractArray, a: float, x: mb.AbstractArray) -> None:
    i = k.index(0)
    y[i] = a * x[i] + y[i]


@mb.jit
def running(x: mb.AbstractArray) -> None:
    for i in range(1, len(x)):
        x[i] += 0.5 * x[i - 1]


def launched(n: int) -> mb.AbstractArray:
    y, x = mb.ones(n), mb.arange(n, dtype=mb.float64)
    assert_type(x, mb.AbstractArray)
    saxpy[n](y, 2.0, x)
    running(y)
    assert_type(saxpy, Kernel)
    return y


# flows and meshes
def flow() -> float:
    semi = dg.Semidiscretization(dg.box(8, periodic=True), dg.Advection((1.0,)), dg.Solver(3))
    assert_type(semi, dg.Semidiscretization)
    solution = dg.solve(semi, (0.0, 0.1), lambda x, t: (mb.sin(x[0]),), cfl=0.5)
    assert_type(solution, dg.Solution)
    assert_type(solution.u, mb.AbstractArray)
    return float(semi.integrate(solution.u)[0])


def poisson(n: int) -> mb.AbstractArray:
    mesh = md.unit_square(n)
    V = md.space(mesh, "P", 1)
    assert_type(V, md.Space)
    u = V.interpolate(lambda p: p[..., 0])
    assert_type(u, md.TreeArray)
    A = md.pattern(V.dofs).matrix()
    assert_type(A, md.Matrix)
    f = V.zeros()
    x, _ = mb.linalg.cg(A, f, rtol=1e-8)
    assert_type(x, mb.AbstractArray)
    return x


def several(functions: Sequence[Callable[[mb.AbstractArray], mb.AbstractArray]]) -> mb.AbstractArray:
    parts = [f(mb.ones(3)) for f in functions]
    assert_type(mb.stack(parts), mb.AbstractArray)
    q, r = mb.linalg.qr(mb.eye(3))
    assert_type(q, mb.AbstractArray)
    values, _ = mb.linalg.eigh(mb.eye(3))
    assert_type(values, mb.AbstractArray)
    assert_type(mb.linalg.norm(q), mb.AbstractArray)
    assert_type(mb.histogram(q)[0], mb.AbstractArray)
    assert_type(mb.meshgrid(q[0], q[0])[0], mb.AbstractArray)
    assert_type(mb.einsum("ij,jk->ik", q, r), mb.AbstractArray)
    assert_type(mb.argmax(q), mb.AbstractArray)
    assert_type(mb.concat([q[0], r[0]]), mb.AbstractArray)
    return mb.stack(parts)
