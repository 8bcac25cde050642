"""Formulas over whole arrays, and the Mandelbrot set in two ways."""

from benchmarks.npkernels._kernel import kernel


def compute_inputs(rng, n):
    return rng.integers(0, 1000, (n, n)), rng.integers(0, 1000, (n, n)), 4, 3, 9


@kernel(compute_inputs, size={"n": 4000}, tiny={"n": 5}, jax=True)
def compute(xp, x, y, a, b, c):
    return xp.clip(x, 2, 10) * a + y * b + c


def arc_distance_inputs(rng, n):
    return tuple(rng.random(n) for _ in range(4))


@kernel(arc_distance_inputs, size={"n": 2_000_000}, tiny={"n": 7}, jax=True)
def arc_distance(xp, theta_1, phi_1, theta_2, phi_2):
    """The angle between points on a sphere, by haversines."""
    haversine = (
        xp.sin((theta_2 - theta_1) / 2) ** 2
        + xp.cos(theta_1) * xp.cos(theta_2) * xp.sin((phi_2 - phi_1) / 2) ** 2
    )
    return 2 * xp.arctan2(xp.sqrt(haversine), xp.sqrt(1 - haversine))


def plane_inputs(rng, width, height, limit):
    return width, height, limit


@kernel(
    plane_inputs,
    size={"width": 500, "height": 500, "limit": 100},
    tiny={"width": 6, "height": 5, "limit": 4},
)
def mandelbrot1(xp, width, height, limit):
    """Iterate the whole plane; only points that have not escaped move on."""
    c = xp.linspace(-2.0, 0.5, width) + 1j * xp.linspace(-1.25, 1.25, height)[:, None]
    z = xp.zeros(c.shape, dtype=c.dtype)
    escaped = xp.zeros(c.shape, dtype=xp.int64)
    for n in range(limit):
        inside = xp.abs(z) < 2.0
        escaped[inside] = n
        z[inside] = z[inside] ** 2 + c[inside]
    escaped[escaped == limit - 1] = 0
    return z, escaped


@kernel(
    plane_inputs,
    size={"width": 800, "height": 800, "limit": 100},
    tiny={"width": 6, "height": 5, "limit": 4},
)
def mandelbrot2(xp, width, height, limit):
    """Iterate the points that have not escaped, fewer each time."""
    plane = xp.linspace(-2.0, 0.5, width) + 1j * xp.linspace(-1.25, 1.25, height)[:, None]
    c = plane.reshape(-1)
    z = xp.zeros(c.shape, dtype=c.dtype)
    where = xp.arange(c.size)
    ends = xp.zeros(c.shape, dtype=c.dtype)
    escaped = xp.zeros(c.shape, dtype=xp.int64)
    for n in range(limit):
        if not len(z):
            break
        z = z * z + c
        out = xp.abs(z) > 2.0
        escaped[where[out]] = n + 1
        ends[where[out]] = z[out]
        inside = ~out
        z, c, where = z[inside], c[inside], where[inside]
    return ends.reshape(plane.shape), escaped.reshape(plane.shape)
