"""Forty short programs as scientists write them with NumPy, for `python -m benchmarks plainprograms`.

`PROGRAMS` holds them by name with a function that makes their arguments. The first parameter is the namespace,
NumPy or mirabelle: so an import is swapped, and nothing else. None of them knows of the other library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Make = Callable[[np.random.Generator], tuple[np.ndarray, ...]]
PROGRAMS: dict[str, tuple[Callable[..., Any], Make]] = {}


def program(make: Make) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated program, with what makes its arguments."""

    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[f.__name__] = f, make
        return f

    return register


def arguments(name: str) -> tuple[np.ndarray, ...]:
    """What a program is run with: always the same."""
    return PROGRAMS[name][1](np.random.default_rng(0))


# On grids


@program(lambda rng: (rng.integers(0, 2, (300, 300)).astype("i1"),))
def life(xp, grid):
    """Conway's game of life on a torus."""
    for _ in range(20):
        around = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
        neighbours = sum(xp.roll(xp.roll(grid, i, 0), j, 1) for i, j in around)
        grid = ((neighbours == 3) | ((grid == 1) & (neighbours == 2))).astype(grid.dtype)
    return grid


@program(lambda rng: (rng.choice([-1, 1], (200, 200)), rng.random((10, 200, 200))))
def ising(xp, spins, chances):
    """The Ising model by Metropolis' algorithm, one colour of a checkerboard after the other."""
    n, m = spins.shape
    for t in range(chances.shape[0]):
        around = xp.roll(spins, 1, 0) + xp.roll(spins, -1, 0) + xp.roll(spins, 1, 1) + xp.roll(spins, -1, 1)
        flips = chances[t] < xp.exp(-0.4 * 2 * spins * around)
        colour = (xp.arange(n)[:, None] + xp.arange(m)[None, :]) % 2 == t % 2
        spins = xp.where(flips & colour, -spins, spins)
    return spins


@program(lambda rng: (rng.random((400, 400)), np.exp(-(np.linspace(-2, 2, 5) ** 2))))
def blur(xp, image, weights):
    """An image convolved with a Gaussian, whose edges are repeated outside."""
    r = len(weights) // 2
    padded = xp.pad(image, r, mode="edge")
    out = xp.zeros_like(image)
    for i in range(len(weights)):
        for j in range(len(weights)):
            out += weights[i] * weights[j] * padded[i : i + image.shape[0], j : j + image.shape[1]]
    return out


@program(lambda rng: (rng.random((600, 600)),))
def sobel(xp, a):
    """How many pixels are on edges, by Sobel's operator."""
    right, left = a[:-2, 2:] + 2 * a[1:-1, 2:] + a[2:, 2:], a[:-2, :-2] + 2 * a[1:-1, :-2] + a[2:, :-2]
    below, above = a[2:, :-2] + 2 * a[2:, 1:-1] + a[2:, 2:], a[:-2, :-2] + 2 * a[:-2, 1:-1] + a[:-2, 2:]
    slope = xp.hypot(right - left, below - above)
    return (slope > slope.mean() + slope.std()).sum()


@program(lambda rng: (rng.integers(0, 256, (500, 500)),))
def equalised(xp, image):
    """An image's grey values spread evenly."""
    below = xp.cumsum(xp.bincount(image.ravel(), minlength=256))
    below = (below - below.min()) * 255 // (below.max() - below.min())
    return below[image]


@program(lambda rng: (rng.random((300, 300)),))
def median_filter(xp, image):
    """The median of the 3 by 3 pixels around each."""
    n, m = image.shape
    windows = [image[i : n - 2 + i, j : m - 2 + j] for i in range(3) for j in range(3)]
    return xp.median(xp.stack(windows), axis=0)


@program(lambda rng: (rng.random((200, 200)), np.zeros((200, 200)), np.zeros((200, 200))))
def shallow_water(xp, h, u, v):
    """Linear waves in shallow water, in place."""
    dt, g = 0.01, 9.8
    for _ in range(40):
        h[1:-1, 1:-1] -= dt * ((u[1:-1, 2:] - u[1:-1, :-2]) + (v[2:, 1:-1] - v[:-2, 1:-1])) / 2
        u[1:-1, 1:-1] -= dt * g * (h[1:-1, 2:] - h[1:-1, :-2]) / 2
        v[1:-1, 1:-1] -= dt * g * (h[2:, 1:-1] - h[:-2, 1:-1]) / 2
    return h


@program(lambda rng: (np.exp(-100 * (np.linspace(0, 1, 4000) - 0.5) ** 2),))
def sponge(xp, u):
    """The wave equation in one dimension, damped towards both ends."""
    x = xp.linspace(0, 1, u.shape[0])
    damping = xp.where(x < 0.1, (0.1 - x) * 10, xp.where(x > 0.9, (x - 0.9) * 10, 0.0)) ** 2
    before = u.copy()
    for _ in range(300):
        after = xp.zeros_like(u)
        after[1:-1] = 2 * u[1:-1] - before[1:-1] + 0.9 * (u[2:] - 2 * u[1:-1] + u[:-2])
        before, u = u, after * (1 - 0.2 * damping)
    return u


@program(lambda rng: (rng.random((130, 130)), rng.random((130, 130))))
def red_black(xp, u, f):
    """Poisson's equation by Gauss and Seidel's method, red points, then black ones."""
    h2 = 1.0 / (u.shape[0] - 1) ** 2
    for _ in range(50):
        for i, j in ((1, 1), (2, 2), (1, 2), (2, 1)):
            around = u[i - 1 : -2 : 2, j:-1:2] + u[i + 1 :: 2, j:-1:2]
            around = around + u[i:-1:2, j - 1 : -2 : 2] + u[i:-1:2, j + 1 :: 2]
            u[i:-1:2, j:-1:2] = 0.25 * (around - h2 * f[i:-1:2, j:-1:2])
    return u


@program(lambda rng: (rng.random((256, 256)),))
def poisson(xp, f):
    """Poisson's equation on a torus by Fourier transforms."""
    k = xp.fft.fftfreq(f.shape[0], 1 / f.shape[0])
    k2 = k[:, None] ** 2 + k[None, :] ** 2
    k2[0, 0] = 1
    return xp.fft.ifft2(xp.fft.fft2(f) / -k2).real


@program(lambda rng: (np.sin(2 * np.pi * np.arange(1024) / 1024),))
def burgers(xp, u):
    """Burgers' equation by a spectral method, in time by Heun's."""
    k = 2j * xp.pi * xp.fft.fftfreq(u.shape[0], 1 / u.shape[0])
    dt, viscosity = 2e-4, 1e-3

    def slope(u_hat):
        u = xp.fft.ifft(u_hat).real
        return -0.5 * k * xp.fft.fft(u * u) + viscosity * k**2 * u_hat

    u_hat = xp.fft.fft(u)
    for _ in range(60):
        first = slope(u_hat)
        u_hat = u_hat + 0.5 * dt * (first + slope(u_hat + dt * first))
    return xp.fft.ifft(u_hat).real


# Of linear algebra


@program(lambda rng: (_positive(rng.random((300, 300))), rng.random(300)))
def conjugate_gradients(xp, a, b):
    """A system of equations by conjugate gradients, until the residual is small."""
    x = xp.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    rs = r @ r
    for _ in range(40):
        ap = a @ p
        alpha = rs / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        rs_new = r @ r
        if float(rs_new) ** 0.5 < 1e-10:
            break
        p = r + (rs_new / rs) * p
        rs = rs_new
    return x


def _positive(a: np.ndarray) -> np.ndarray:
    return a @ a.T + len(a) * np.eye(len(a))


@program(lambda rng: (rng.random((300, 300)), rng.random(300)))
def power_iteration(xp, a, x):
    """The largest eigenvalue."""
    for _ in range(50):
        x = a @ x
        x = x / xp.linalg.norm(x)
    return x @ (a @ x)


@program(lambda rng: ((rng.random((500, 500)) < 0.02).astype(float),))
def page_rank(xp, links):
    """Where somebody is most often who follows links by chance."""
    out = links.sum(axis=0)
    step = xp.where(out > 0, links / xp.where(out > 0, out, 1.0), 1.0 / links.shape[0])
    rank = xp.full(links.shape[0], 1.0 / links.shape[0])
    for _ in range(100):
        after = 0.85 * (step @ rank) + 0.15 / links.shape[0]
        if xp.abs(after - rank).sum() < 1e-12:
            break
        rank = after
    return rank


@program(lambda rng: (np.cumsum(rng.standard_normal((300, 2)), axis=0),))
def kalman(xp, seen):
    """A path and its speed, of noisy places (Kalman's filter)."""
    move = xp.eye(4)
    move[0, 2] = move[1, 3] = 1.0
    look = xp.eye(4)[:2]
    noise, error = 0.01 * xp.eye(4), 0.5 * xp.eye(2)
    state, spread = xp.zeros(4), xp.eye(4)
    path = []
    for t in range(seen.shape[0]):
        state = move @ state
        spread = move @ spread @ move.T + noise
        gain = spread @ look.T @ xp.linalg.inv(look @ spread @ look.T + error)
        state = state + gain @ (seen[t] - look @ state)
        spread = (xp.eye(4) - gain @ look) @ spread
        path.append(state)
    return xp.stack(path)


@program(lambda rng: (rng.random((20000, 30)),))
def principal_components(xp, x):
    """How far data spread along their three principal components."""
    x = x - x.mean(axis=0)
    _, vectors = xp.linalg.eigh(x.T @ x / len(x))
    return (x @ vectors[:, ::-1][:, :3]).std(axis=0)


@program(lambda rng: (rng.random(400),))
def triangles(xp, x):
    """The two halves of an outer product times a vector."""
    a = xp.outer(x, x)
    return xp.tril(a) @ x + xp.triu(a, 1) @ x


@program(lambda rng: (rng.random((200, 400)), rng.random(200)))
def soft_thresholds(xp, a, b):
    """A sparse solution of least squares, by proximal gradients."""
    x = xp.zeros(a.shape[1])
    step = 1 / float(xp.linalg.norm(a, 2) ** 2)
    for _ in range(50):
        z = x - step * (a.T @ (a @ x - b))
        x = xp.sign(z) * xp.maximum(xp.abs(z) - 0.1 * step, 0)
    return x


# Of data


@program(lambda rng: (rng.random((20000, 3)), rng.random((8, 3))))
def k_means(xp, points, centres):
    """Lloyd's algorithm."""
    for _ in range(10):
        nearest = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2).argmin(axis=1)
        centres = xp.stack([points[nearest == j].mean(axis=0) for j in range(centres.shape[0])])
    return centres


@program(lambda rng: (rng.random((5000, 40)), (rng.random(5000) > 0.5).astype(float)))
def logistic_regression(xp, x, y):
    """Fitted by gradient descent."""
    w = xp.zeros(x.shape[1])
    for _ in range(50):
        p = 1 / (1 + xp.exp(-(x @ w)))
        w = w - 0.1 * (x.T @ (p - y)) / len(y)
    return w


@program(lambda rng: (rng.random((500, 10)), rng.random((800, 10))))
def neighbours(xp, a, b):
    """How far the five nearest of other points are."""
    squares = (a**2).sum(1)[:, None] + (b**2).sum(1)[None, :] - 2 * a @ b.T
    return xp.sort(xp.sqrt(xp.maximum(squares, 0)), axis=1)[:, :5].mean()


@program(lambda rng: (rng.random((300, 6)), rng.integers(0, 3, 300), rng.random((200, 6))))
def votes(xp, known, labels, points):
    """The commonest label of the seven nearest of known points."""
    away = ((points[:, None, :] - known[None, :, :]) ** 2).sum(axis=-1)
    nearest = labels[xp.argsort(away, axis=1)[:, :7]]
    return (nearest[:, :, None] == xp.arange(3)).sum(axis=1).argmax(axis=1)


@program(lambda rng: (rng.random((2000, 8)), rng.integers(0, 2, 2000)))
def stump(xp, x, y):
    """The column and the threshold that part two classes best."""
    best = 2.0, 0, 0.0
    for column in range(x.shape[1]):
        for threshold in xp.percentile(x[:, column], xp.arange(5, 100, 5)):
            above = x[:, column] > threshold
            n, share = above.sum(), above.mean()
            ones = y[above].mean() if 0 < n < len(y) else 0.5
            rest = y[~above].mean() if 0 < n < len(y) else 0.5
            impurity = share * ones * (1 - ones) + (1 - share) * rest * (1 - rest)
            if impurity < best[0]:
                best = float(impurity), column, float(threshold)
    return xp.asarray(best)


@program(lambda rng: (rng.integers(0, 500, 100000), rng.random(100000)))
def group_means(xp, keys, values):
    """The mean of each group."""
    _, groups = xp.unique(keys, return_inverse=True)
    return xp.bincount(groups, weights=values) / xp.bincount(groups)


@program(lambda rng: (rng.random((5000, 20)),))
def percentiles(xp, x):
    """Of columns."""
    return xp.percentile(x, [5, 50, 95], axis=0)


@program(lambda rng: tuple(rng.random((8, 128, 32)) for _ in range(3)))
def attention(xp, q, k, v):
    """That of a transformer."""
    scores = q @ xp.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    scores = xp.exp(scores - scores.max(axis=-1, keepdims=True))
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores @ v


# Of series


@program(lambda rng: (rng.random(5000),))
def smoothed(xp, x):
    """An exponential moving average, element by element."""
    y = xp.empty_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = 0.1 * x[i] + 0.9 * y[i - 1]
    return y


@program(lambda rng: (rng.random(500000),))
def moving_average(xp, x):
    """Of fifty values, by running sums."""
    sums = xp.cumsum(x)
    return (sums[50:] - sums[:-50]) / 50


@program(lambda rng: (rng.random(256 * 800),))
def spectrum(xp, x):
    """The mean logarithm of the power in windows."""
    windows = x.reshape(-1, 256) * xp.hanning(256)
    return xp.log(xp.abs(xp.fft.rfft(windows, axis=1)) ** 2 + 1e-9).mean(axis=0)


@program(lambda rng: (rng.random(200000), np.sort(rng.random(1000)), rng.random(1000)))
def interpolated(xp, x, places, values):
    """The sum of a table's values in between."""
    return xp.interp(x, places, values).sum()


# Of dynamics


@program(lambda rng: (rng.random((3, 5000)),))
def lorenz(xp, state):
    """Lorenz' system for many starts, by Runge and Kutta's method."""

    def slope(state):
        x, y, z = state
        return xp.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

    h = 0.005
    for _ in range(100):
        k1 = slope(state)
        k2 = slope(state + h / 2 * k1)
        k3 = slope(state + h / 2 * k2)
        k4 = slope(state + h * k3)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return state


@program(lambda rng: (rng.random((200, 3)), rng.random((200, 3)), rng.random(200)))
def bodies(xp, place, speed, mass):
    """Bodies that attract each other."""
    for _ in range(10):
        between = place[None] - place[:, None]
        r2 = (between**2).sum(-1) + 1e-3
        speed = speed + 0.001 * (mass[None, :, None] * between / (r2**1.5)[..., None]).sum(1)
        place = place + 0.001 * speed
    return place


@program(lambda rng: (np.full(2000, 0.99), np.full(2000, 0.01), np.zeros(2000)))
def epidemic(xp, well, ill, immune):
    """An epidemic in many towns; how many are ill at most, day by day."""
    most = []
    for _ in range(200):
        new, over = 0.3 * well * ill, 0.1 * ill
        well, ill, immune = well - new * 0.1, ill + (new - over) * 0.1, immune + over * 0.1
        most.append(ill.max())
    return xp.stack(most)


@program(lambda rng: (rng.random((150, 150)),))
def paths(xp, away):
    """Shortest paths by Floyd and Warshall's algorithm, a matrix at a time."""
    for k in range(away.shape[0]):
        away = xp.minimum(away, away[:, k : k + 1] + away[k : k + 1, :])
    return away


@program(lambda rng: (rng.integers(1, 10000, 20000),))
def collatz(xp, x):
    """How long the longest of Collatz' series is."""
    n = xp.zeros(x.shape, dtype=int)
    for _ in range(60):
        on = x > 1
        x = xp.where(on, xp.where(x % 2 == 0, x // 2, 3 * x + 1), x)
        n += on
    return n.max()


# Of finance


@program(lambda rng: (rng.random(200000) + 50, rng.random(200000) + 50, rng.random(200000) + 0.1))
def option_prices(xp, s, k, t):
    """Black and Scholes' formula, with a formula for the normal distribution."""
    d1 = (xp.log(s / k) + (0.02 + 0.5 * 0.09) * t) / (0.3 * xp.sqrt(t))
    d2 = d1 - 0.3 * xp.sqrt(t)

    def normal(x):
        return 0.5 * (1 + xp.tanh(0.7978845608 * (x + 0.044715 * x**3)))

    return s * normal(d1) - k * xp.exp(-0.02 * t) * normal(d2)


@program(lambda rng: (rng.random(50000) + 50, rng.random(50000) + 50, rng.random(50000) + 0.1))
def greeks(xp, s, k, t):
    """What Black and Scholes' prices depend on, and how."""
    rate, sigma = 0.02, 0.3
    root = sigma * xp.sqrt(t)
    d1 = (xp.log(s / k) + (rate + sigma**2 / 2) * t) / root
    density = xp.exp(-0.5 * d1**2) / np.sqrt(2 * np.pi)
    delta = 0.5 * (1 + xp.tanh(0.7978845608 * (d1 + 0.044715 * d1**3)))
    gamma = density / (s * root)
    vega = s * density * xp.sqrt(t)
    theta = -s * density * sigma / (2 * xp.sqrt(t)) - rate * k * xp.exp(-rate * t) * delta
    return xp.stack([delta, gamma, vega, theta]).sum(axis=1)


@program(lambda rng: (rng.standard_normal((5000, 100)),))
def asian_option(xp, z):
    """The mean pay-off by Monte Carlo."""
    prices = 100 * xp.exp(xp.cumsum(0.2 * 0.1 * z, axis=1))
    return xp.maximum(prices.mean(axis=1) - 100, 0).mean()


# Of text and games


@program(lambda rng: (rng.integers(97, 123, 20000).astype(np.uint8),))
def letters(xp, text):
    """How often letters follow one another, of bytes."""
    first, second = text[:-1].astype(int) - 97, text[1:].astype(int) - 97
    counts = xp.bincount(first * 26 + second, minlength=26 * 26).reshape(26, 26)
    return counts / counts.sum(axis=1, keepdims=True)


@program(lambda rng: (rng.random((40, 40)) < 0.35,))
def percolation(xp, walls):
    """Where water comes that is let in above."""
    wet = xp.zeros_like(walls)
    wet[0] = ~walls[0]
    while True:
        around = wet.copy()
        around[1:] |= wet[:-1]
        around[:-1] |= wet[1:]
        around[:, 1:] |= wet[:, :-1]
        around[:, :-1] |= wet[:, 1:]
        around &= ~walls
        if (around == wet).all():
            return wet
        wet = around
