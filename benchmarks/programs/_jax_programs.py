"""The kernels for JAX: the same text where it changes no array, else as JAX's own loops and scans.

Unrolling Python's loops would give XLA thousands of statements to compile, so time loops are `fori_loop`,
recurrences `scan`. Numbers are constants, arrays are arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.npkernels._contenders import Contender, jax_contender
from benchmarks.npkernels._kernel import Kernel
from benchmarks.npkernels.flow import divergence_source, moved, wrapped
from benchmarks.npkernels.particles import differences
from benchmarks.npkernels.stencils import heated


def contender(kernel: Kernel, inputs: Sequence[Any]) -> Contender:
    """Who runs a kernel under `jax.jit`."""
    if kernel.jax and kernel.name not in PROGRAMS:
        return jax_contender(kernel, inputs)
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    program = PROGRAMS[kernel.name]
    fixed = [None if isinstance(x, np.ndarray) else x for x in inputs]

    @jax.jit
    def compiled(arrays: list[Any]) -> Any:
        left = iter(arrays)
        return tuple(program(*[next(left) if x is None else x for x in fixed]))

    arrays = [jnp.array(x) for x in inputs if isinstance(x, np.ndarray)]
    return Contender(lambda: arrays, lambda a: tuple(jax.block_until_ready(compiled(a))))


def repeated(count: int, step: Callable[..., Any], *state: Any) -> Any:
    """The state after so many steps."""
    from jax import lax

    return lax.fori_loop(0, count, lambda _, s: step(*s), state)


def jacobi_1d(steps: int, a: Any, b: Any) -> Any:
    def step(a: Any, b: Any) -> Any:
        b = b.at[1:-1].set((a[:-2] + a[1:-1] + a[2:]) * 0.33333)
        return a.at[1:-1].set((b[:-2] + b[1:-1] + b[2:]) * 0.33333), b

    return repeated(steps, step, a, b)


def jacobi_2d(steps: int, a: Any, b: Any) -> Any:
    def mean(x: Any) -> Any:
        return 0.2 * (x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])

    def step(a: Any, b: Any) -> Any:
        b = b.at[1:-1, 1:-1].set(mean(a))
        return a.at[1:-1, 1:-1].set(mean(b)), b

    return repeated(steps, step, a, b)


def heat_3d(steps: int, a: Any, b: Any) -> Any:
    def step(a: Any, b: Any) -> Any:
        b = b.at[1:-1, 1:-1, 1:-1].set(heated(a))
        return a.at[1:-1, 1:-1, 1:-1].set(heated(b)), b

    return repeated(steps, step, a, b)


def fdtd_2d(ex: Any, ey: Any, hz: Any, pulse: Any) -> Any:
    from jax import lax

    def step(state: Any, driven: Any) -> Any:
        ex, ey, hz = state
        ey = ey.at[0].set(driven).at[1:].add(-0.5 * (hz[1:] - hz[:-1]))
        ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
        curl = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
        return (ex, ey, hz.at[:-1, :-1].add(-0.7 * curl)), None

    return lax.scan(step, (ex, ey, hz), pulse)[0]


def vadv(tendency: Any, u: Any, w: Any, u_pos: Any, u_tendency: Any, per_step: float) -> Any:
    import jax.numpy as jnp
    from jax import lax

    # Levels first: scans go along the first axis.
    u, u_pos = jnp.moveaxis(u, 2, 0), jnp.moveaxis(u_pos, 2, 0)
    forced = per_step * u_pos + jnp.moveaxis(u_tendency + tendency, 2, 0)
    w = jnp.moveaxis(w, 2, 0)
    mean = 0.125 * (w[:, 1:] + w[:, :-1])

    upper = mean[1]
    scale = 1.0 / (per_step - upper)
    first = (upper * scale, (forced[0] + upper * (u[0] - u[1])) * scale)

    def down(state: Any, level: Any) -> Any:
        c, d = state
        below, here, above, lower, upper, forced = level
        change = -lower * (here - below) + upper * (here - above)
        scale = 1.0 / (per_step + lower - upper + c * lower)
        c, d = upper * scale, (forced + change + d * lower) * scale
        return (c, d), (c, d)

    levels = (u[:-2], u[1:-1], u[2:], mean[1:-1], mean[2:], forced[1:-1])
    (c, d), (cs, ds) = lax.scan(down, first, levels)

    lower = -mean[-1]
    known = forced[-1] + lower * (u[-1] - u[-2])
    last = (known - d * lower) / (per_step - lower - c * lower)

    def up(value: Any, level: Any) -> Any:
        c, d = level
        value = d - c * value
        return value, value

    cs, ds = jnp.concatenate([first[0][None], cs]), jnp.concatenate([first[1][None], ds])
    _, values = lax.scan(up, last, (cs, ds), reverse=True)
    values = jnp.concatenate([values, last[None]])
    return (jnp.moveaxis(per_step * (values - u_pos), 0, 2),)


def cavity_flow(n: int, steps: int, sweeps: int, dt: float, rho: float, nu: float) -> Any:
    import jax.numpy as jnp

    h = 2.0 / (n - 1)

    def step(u: Any, v: Any, p: Any) -> Any:
        b = divergence_source(u, v, rho, dt, h)

        def sweep(p: Any) -> Any:
            p = p.at[1:-1, 1:-1].set(
                0.25 * (p[1:-1, 2:] + p[1:-1, :-2] + p[2:, 1:-1] + p[:-2, 1:-1] - h * h * b)
            )
            p = p.at[:, -1].set(p[:, -2])
            p = p.at[0, :].set(p[1, :])
            return (p.at[:, 0].set(p[:, 1]).at[-1, :].set(0.0),)

        (p,) = repeated(sweeps, sweep, p)
        new_u = moved(u, u, v, dt / h, nu * dt / h**2) - dt / (2 * rho * h) * (p[1:-1, 2:] - p[1:-1, :-2])
        new_v = moved(v, u, v, dt / h, nu * dt / h**2) - dt / (2 * rho * h) * (p[2:, 1:-1] - p[:-2, 1:-1])
        u = u.at[1:-1, 1:-1].set(new_u).at[0].set(0.0).at[:, 0].set(0.0).at[:, -1].set(0.0).at[-1].set(1.0)
        v = v.at[1:-1, 1:-1].set(new_v).at[0].set(0.0).at[-1].set(0.0).at[:, 0].set(0.0).at[:, -1].set(0.0)
        return u, v, p

    zero = jnp.zeros((n, n))
    return repeated(steps, step, zero, zero, zero)


def channel_flow(n: int, sweeps: int, tolerance: float, dt: float, rho: float, nu: float, force: float) -> Any:
    import jax.numpy as jnp
    from jax import lax

    h = 2.0 / (n - 1)

    def step(state: Any) -> Any:
        u, v, p, _ = state
        wide_u, wide_v = wrapped(jnp, u), wrapped(jnp, v)
        b = divergence_source(wide_u, wide_v, rho, dt, h)

        def sweep(p: Any) -> Any:
            wide = wrapped(jnp, p)
            p = p.at[1:-1].set(
                0.25 * (wide[1:-1, 2:] + wide[1:-1, :-2] + wide[2:, 1:-1] + wide[:-2, 1:-1] - h * h * b)
            )
            p = p.at[-1].set(p[-2])
            return (p.at[0].set(p[1]),)

        (p,) = repeated(sweeps, sweep, p)
        wide = wrapped(jnp, p)
        slope_x = dt / (2 * rho * h) * (wide[1:-1, 2:] - wide[1:-1, :-2])
        slope_y = dt / (2 * rho * h) * (wide[2:, 1:-1] - wide[:-2, 1:-1])
        before = u.sum()
        u = u.at[1:-1].set(moved(wide_u, wide_u, wide_v, dt / h, nu * dt / h**2) - slope_x + force * dt)
        v = v.at[1:-1].set(moved(wide_v, wide_u, wide_v, dt / h, nu * dt / h**2) - slope_y)
        after = u.sum()
        return u, v, p, (after - before) / after

    zero = jnp.zeros((n, n))
    return lax.while_loop(lambda s: s[3] > tolerance, step, (zero, zero, zero, jnp.float64(1.0)))[:3]


def adi(steps: int, u: Any) -> Any:
    import jax.numpy as jnp
    from jax import lax

    n = u.shape[0]
    across, along = n**2 / steps, 2 * n**2 / steps

    def half_step(given: Any, implicit: float, explicit: float) -> Any:
        """Solve along the first axis what is explicit along the second; in both, the inner points."""
        known = explicit * (given[:, :-2] + given[:, 2:]) + (1.0 - 2.0 * explicit) * given[:, 1:-1]

        def down(state: Any, known: Any) -> Any:
            p, q = state
            pivot = 1.0 + 2.0 * implicit - implicit * p
            state = (implicit / pivot, (known + implicit * q) / pivot)
            return state, state

        one = jnp.ones(n - 2)
        _, (p, q) = lax.scan(down, (0.0 * one, one), known[1:-1])

        def up(value: Any, level: Any) -> Any:
            p, q = level
            value = p * value + q
            return value, value

        _, values = lax.scan(up, one, (p, q), reverse=True)
        return jnp.concatenate([one[None], values, one[None]])

    def step(u: Any) -> Any:
        # `v.T` of the text with NumPy: its rows are those along which it was solved, its rim is 0.
        v = jnp.pad(half_step(u, along / 2, across / 2), ((0, 0), (1, 1)))
        return (u.at[1:-1, :].set(half_step(v.T, across / 2, along / 2).T),)

    return repeated(steps, step, u)


def deriche(image: Any, alpha: float) -> Any:
    import jax.numpy as jnp
    from jax import lax

    e = np.exp(-alpha)
    k = (1.0 - e) ** 2 / (1.0 + 2.0 * alpha * e - e**2)
    now, before = k, k * e * (alpha - 1.0)
    after, later = k * e * (alpha + 1.0), -k * e**2
    once, twice = 2.0 * e, -(e**2)

    def recursion(start: Any, source: Any) -> Any:
        def step(state: Any, source: Any) -> Any:
            last, last_but_one = state
            value = source + once * last + twice * last_but_one
            return (value, last), value

        return lax.scan(step, start, source)[1]

    def smooth(x: Any) -> Any:
        d0 = now * x[0]
        d1 = now * x[1] + before * x[0] + once * d0
        down = jnp.concatenate([d0[None], d1[None], recursion((d1, d0), now * x[2:] + before * x[1:-1])])
        y = x[::-1]
        u0, u1 = jnp.zeros_like(y[0]), after * y[0]
        up = jnp.concatenate([u0[None], u1[None], recursion((u1, u0), after * y[1:-1] + later * y[:-2])])
        return down + up[::-1]

    return (smooth(smooth(image).T).T,)


def nbody(position: Any, velocity: Any, mass: Any, steps: int, dt: float, softening: float) -> Any:
    import jax.numpy as jnp
    from jax import lax

    def acceleration(position: Any) -> Any:
        dx, dy, dz = differences(position)
        inverse = (dx**2 + dy**2 + dz**2 + softening**2) ** -1.5
        return jnp.hstack(((dx * inverse) @ mass, (dy * inverse) @ mass, (dz * inverse) @ mass))

    def attraction(position: Any) -> Any:
        dx, dy, dz = differences(position)
        square = dx**2 + dy**2 + dz**2
        inverse = jnp.where(square > 0, 1.0 / jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)
        return -jnp.sum(jnp.triu(mass * mass.T * inverse, k=1))

    def step(state: Any, _: Any) -> Any:
        position, velocity, force = state
        velocity = velocity + force * dt / 2.0
        position = position + velocity * dt
        force = acceleration(position)
        velocity = velocity + force * dt / 2.0
        return (position, velocity, force), (0.5 * jnp.sum(mass * velocity**2), attraction(position))

    velocity = velocity - jnp.mean(mass * velocity, axis=0) / jnp.mean(mass)
    start = (position, velocity, acceleration(position))
    (position, velocity, _), (kinetic, potential) = lax.scan(step, start, None, length=steps)
    return kinetic, potential, position, velocity


def mandelbrot1(width: int, height: int, limit: int) -> Any:
    import jax.numpy as jnp
    from jax import lax

    c = jnp.linspace(-2.0, 0.5, width) + 1j * jnp.linspace(-1.25, 1.25, height)[:, None]

    def step(n: Any, state: Any) -> Any:
        z, escaped = state
        inside = jnp.abs(z) < 2.0
        return jnp.where(inside, z**2 + c, z), jnp.where(inside, n, escaped)

    z, escaped = lax.fori_loop(0, limit, step, (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int64)))
    return z, jnp.where(escaped == limit - 1, 0, escaped)


def convolution(x: Any, w: Any) -> Any:
    """As XLA's own operation: what one would write in JAX."""
    from jax import lax

    return lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def conv2d(x: Any, w: Any, bias: Any) -> Any:
    return (convolution(x, w) + bias,)


def pooled(x: Any) -> Any:
    batch, height, width, channels = x.shape
    x = x[:, : height // 2 * 2, : width // 2 * 2]
    return x.reshape(batch, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))


def lenet(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, *dense: Any) -> Any:
    import jax.numpy as jnp

    w3, b3, w4, b4, w5, b5 = dense
    x = pooled(jnp.maximum(convolution(x, w1) + b1, 0))
    x = pooled(jnp.maximum(convolution(x, w2) + b2, 0))
    x = x.reshape(x.shape[0], -1)
    x = jnp.maximum(x @ w3 + b3, 0)
    return (jnp.maximum(x @ w4 + b4, 0) @ w5 + b5,)


PROGRAMS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        jacobi_1d,
        jacobi_2d,
        heat_3d,
        fdtd_2d,
        vadv,
        cavity_flow,
        channel_flow,
        adi,
        deriche,
        nbody,
        mandelbrot1,
        conv2d,
        lenet,
    )
}
