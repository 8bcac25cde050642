"""The programs of docs/newcomers as one writes them for JAX: functions of values, compiled by `jax.jit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.newcomers import BODIES, CELLS, PATHS, PIXELS, POINTS

jax.config.update("jax_enable_x64", True)


def stepping(step: Callable[..., Any], state: tuple[Any, ...]) -> Callable[[], Any]:
    """A step from the state that the last one left; the first array of it."""
    compiled, kept = jax.jit(step), [state]

    def run() -> Any:
        kept[0] = jax.block_until_ready(compiled(*kept[0]))
        return kept[0][0]

    return run


def nbody(page: dict[str, Any]) -> Callable[[], Any]:
    def step(x: Any, v: Any, m: Any, dt: float = 1e-3) -> Any:
        apart = x[:, None, :] - x[:, :, None]
        r2 = apart[0] ** 2 + apart[1] ** 2 + apart[2] ** 2 + 1e-4
        v = v + dt * (apart * (m / (r2 * jnp.sqrt(r2)))).sum(axis=2)
        return x + dt * v, v, m

    return stepping(step, page["bodies"](BODIES, jnp.array))


def image_filter(page: dict[str, Any]) -> Callable[[], Any]:
    @jax.jit
    def sharpen(image: Any, width: float = 3.0, amount: float = 0.8) -> Any:
        ky = jnp.fft.fftfreq(image.shape[0])[:, None]
        kx = jnp.fft.rfftfreq(image.shape[1])
        factor = jnp.exp(-2 * (np.pi * width) ** 2 * (ky**2 + kx**2))
        blurred = jnp.fft.irfft2(jnp.fft.rfft2(image) * factor)
        return jnp.clip(image + amount * (image - blurred), 0, 1)

    image = page["picture"](PIXELS, jnp.array)
    return lambda: jax.block_until_ready(sharpen(image))


def pricing(page: dict[str, Any]) -> Callable[[], Any]:
    @jax.jit
    def price(key: Any) -> Any:
        z = jax.random.normal(key, (12, PATHS), dtype=jnp.float64)
        dt, rate, volatility = 1 / 12, 0.05, 0.2
        steps = (rate - volatility**2 / 2) * dt + volatility * jnp.sqrt(dt) * z
        paths = 100.0 * jnp.exp(jnp.cumsum(steps, axis=0))
        return jnp.exp(-rate) * jnp.maximum(paths.mean(axis=0) - 100.0, 0).mean()

    key = jax.random.key(1)
    return lambda: float(price(key))


def small_net(page: dict[str, Any]) -> Callable[[], Any]:
    def loss(p: Any, X: Any, y: Any) -> Any:
        w1, b1, w2, b2 = page["parts"](p)
        return jnp.mean(jnp.log1p(jnp.exp((1 - 2 * y) * (w2 @ jnp.tanh(w1 @ X + b1) + b2))))

    def train(p: Any, X: Any, y: Any) -> Any:
        return p - 0.5 * jax.grad(loss)(p, X, y), X, y

    return stepping(train, page["data"](POINTS, jnp.array))


def shallow_water(page: dict[str, Any]) -> Callable[[], Any]:
    def step(h: Any, u: Any, v: Any, dt: float = 0.2, g: float = 1.0) -> Any:
        u = u.at[1:-1, :].add(-dt * g * (h[1:, :] - h[:-1, :]))
        v = v.at[:, 1:-1].add(-dt * g * (h[:, 1:] - h[:, :-1]))
        return h - dt * (u[1:, :] - u[:-1, :] + v[:, 1:] - v[:, :-1]), u, v

    return stepping(step, page["pond"](CELLS, jnp.array))
