"""Layers of neural networks, in single precision; images are (batch, height, width, channels)."""

import numpy as np

from benchmarks.npkernels._kernel import kernel


def normal(rng, *shape):
    return rng.standard_normal(shape, dtype=np.float32)


def weights(rng, *shape):
    """Numbers whose products keep the magnitude of what comes in."""
    return normal(rng, *shape) / np.float32(np.prod(shape[:-1]) ** 0.5)


def softmax_inputs(rng, batch, heads, length):
    return (normal(rng, batch, heads, length, length),)


@kernel(
    softmax_inputs,
    size={"batch": 32, "heads": 16, "length": 256},
    tiny={"batch": 2, "heads": 2, "length": 3},
    rtol=1e-5,
    jax=True,
)
def softmax(xp, x):
    raised = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return raised / xp.sum(raised, axis=-1, keepdims=True)


def mlp_inputs(rng, batch, inputs, hidden, outputs):
    return (
        normal(rng, batch, inputs),
        weights(rng, inputs, hidden),
        normal(rng, hidden),
        weights(rng, hidden, hidden),
        normal(rng, hidden),
        weights(rng, hidden, outputs),
        normal(rng, outputs),
    )


@kernel(
    mlp_inputs,
    size={"batch": 64, "inputs": 3, "hidden": 6000, "outputs": 1000},
    tiny={"batch": 3, "inputs": 3, "hidden": 5, "outputs": 4},
    rtol=1e-4,
    jax=True,
)
def mlp(xp, x, w1, b1, w2, b2, w3, b3):
    x = xp.maximum(x @ w1 + b1, 0)
    x = xp.maximum(x @ w2 + b2, 0)
    return softmax(xp, x @ w3 + b3)


def convolution(xp, x, w):
    """Every output pixel is the sum of the window under it, times the weights."""
    k = w.shape[0]
    height, width = x.shape[1] - k + 1, x.shape[2] - k + 1
    out = xp.empty((x.shape[0], height, width, w.shape[3]), dtype=x.dtype)
    for i in range(height):
        for j in range(width):
            window = x[:, i : i + k, j : j + k, :, None]
            out[:, i, j, :] = xp.sum(window * w, axis=(1, 2, 3))
    return out


def conv2d_inputs(rng, batch, side, k, inputs, outputs):
    return normal(rng, batch, side, side, inputs), weights(rng, k, k, inputs, outputs), normal(rng, outputs)


@kernel(
    conv2d_inputs,
    size={"batch": 8, "side": 64, "k": 3, "inputs": 3, "outputs": 16},
    tiny={"batch": 2, "side": 5, "k": 2, "inputs": 2, "outputs": 3},
    rtol=1e-4,
)
def conv2d(xp, x, w, bias):
    return convolution(xp, x, w) + bias


def pooled(xp, x):
    """The largest of each two by two pixels."""
    height, width = x.shape[1] // 2, x.shape[2] // 2
    out = xp.empty((x.shape[0], height, width, x.shape[3]), dtype=x.dtype)
    for i in range(height):
        for j in range(width):
            window = x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2, :]
            out[:, i, j, :] = xp.max(window, axis=(1, 2))
    return out


def lenet_inputs(rng, batch, side):
    flat = ((side - 4) // 2 - 4) // 2
    return (
        normal(rng, batch, side, side, 1),
        weights(rng, 5, 5, 1, 6),
        normal(rng, 6),
        weights(rng, 5, 5, 6, 16),
        normal(rng, 16),
        weights(rng, 16 * flat**2, 120),
        normal(rng, 120),
        weights(rng, 120, 84),
        normal(rng, 84),
        weights(rng, 84, 10),
        normal(rng, 10),
    )


@kernel(lenet_inputs, size={"batch": 16, "side": 44}, tiny={"batch": 1, "side": 16}, rtol=1e-4)
def lenet(xp, x, w1, b1, w2, b2, w3, b3, w4, b4, w5, b5):
    """Two convolutions, each with pooling, and three dense layers: digits."""
    x = pooled(xp, xp.maximum(convolution(xp, x, w1) + b1, 0))
    x = pooled(xp, xp.maximum(convolution(xp, x, w2) + b2, 0))
    x = x.reshape(x.shape[0], -1)
    x = xp.maximum(x @ w3 + b3, 0)
    x = xp.maximum(x @ w4 + b4, 0)
    return x @ w5 + b5


def normalised(xp, x):
    """Zero mean and unit variance over the batch."""
    return (x - xp.mean(x, axis=0)) / xp.sqrt(xp.std(x, axis=0) + 1e-5)


def resnet_inputs(rng, batch, side, inner, outer):
    return (
        normal(rng, batch, side, side, outer),
        weights(rng, 1, 1, outer, inner),
        weights(rng, 3, 3, inner, inner),
        weights(rng, 1, 1, inner, outer),
    )


@kernel(
    resnet_inputs,
    size={"batch": 8, "side": 28, "inner": 16, "outer": 64},
    tiny={"batch": 2, "side": 3, "inner": 2, "outer": 3},
    rtol=1e-3,
)
def resnet(xp, x, w1, w2, w3):
    """A bottleneck block: narrow, convolve, widen, and add what came in."""
    narrow = xp.maximum(normalised(xp, convolution(xp, x, w1)), 0)
    padded = xp.zeros((x.shape[0], x.shape[1] + 2, x.shape[2] + 2, w2.shape[2]), dtype=x.dtype)
    padded[:, 1:-1, 1:-1, :] = narrow
    seen = xp.maximum(normalised(xp, convolution(xp, padded, w2)), 0)
    return xp.maximum(normalised(xp, convolution(xp, seen, w3)) + x, 0)
