"""Transforms, filters and checks of signals."""

import numpy as np

from benchmarks.npkernels._kernel import kernel
from mirabelle import jit


def fft_inputs(rng, radix, stages):
    n = radix**stages
    return radix, stages, rng.random(n) + 1j * rng.random(n)


@kernel(fft_inputs, size={"radix": 4, "stages": 10}, tiny={"radix": 2, "stages": 3}, jax=True)
def stockham_fft(xp, radix, stages, x):
    """The Fourier transform; each stage sorts its output, so no bits are reversed at the end."""
    digits = xp.arange(radix)
    small = xp.exp(-2j * xp.pi / radix * xp.outer(digits, digits))
    rest, done = x.shape[0], 1
    for _ in range(stages):
        turns = xp.outer(xp.arange(rest // radix), digits)
        twiddles = xp.exp(-2j * xp.pi / rest * turns)
        x = small @ x.reshape(radix, -1)
        x = x.reshape(radix, rest // radix, done).transpose(1, 0, 2) * twiddles[:, :, None]
        x = x.reshape(-1)
        rest, done = rest // radix, done * radix
    return x


def deriche_inputs(rng, width, height):
    return rng.random((width, height)), 0.25


@kernel(
    deriche_inputs,
    size={"width": 1500, "height": 1000},
    tiny={"width": 5, "height": 6},
    statements=lambda width, height: 2 * (width + height) + 2,
)
def deriche(xp, image, alpha):
    """A recursive smoothing filter, along one axis and then along the other."""
    return smooth(xp, smooth(xp, image, alpha).T, alpha).T


def smooth(xp, x, alpha):
    """The sum of two recursions along the first axis, one forwards and one backwards."""
    e = np.exp(-alpha)
    k = (1.0 - e) ** 2 / (1.0 + 2.0 * alpha * e - e**2)
    now, before = k, k * e * (alpha - 1.0)
    after, later = k * e * (alpha + 1.0), -k * e**2
    once, twice = 2.0 * e, -(e**2)

    down = xp.empty_like(x)
    down[0] = now * x[0]
    down[1] = now * x[1] + before * x[0] + once * down[0]
    for i in range(2, x.shape[0]):
        down[i] = now * x[i] + before * x[i - 1] + once * down[i - 1] + twice * down[i - 2]

    up = xp.empty_like(x)
    up[-1] = 0.0
    up[-2] = after * x[-1]
    for i in range(x.shape[0] - 3, -1, -1):
        up[i] = after * x[i + 1] + later * x[i + 2] + once * up[i + 1] + twice * up[i + 2]

    return down + up


def crc16_inputs(rng, n):
    return rng.integers(0, 256, n, dtype=np.uint8), 0x8408


@kernel(crc16_inputs, size={"n": 50_000}, tiny={"n": 9})
@jit
def crc16(message, polynomial):
    """The cyclic redundancy check of X.25."""
    crc = 0xFFFF
    for byte in message:
        bits = int(byte)
        for _ in range(8):
            if (crc ^ bits) & 1:
                crc = (crc >> 1) ^ polynomial
            else:
                crc >>= 1
            bits >>= 1
    crc = ~crc & 0xFFFF
    return (crc << 8 | crc >> 8) & 0xFFFF
