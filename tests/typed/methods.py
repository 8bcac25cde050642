"""Methods, operators and functions of users: what they give stays known, the dtype of dense arrays too."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np

import mirabelle as mb
from mirabelle.arraytypes.functions.decompositions import QRResult, SVDResult


class Fit:
    """A model that keeps its arrays, with a compiled method and derivatives."""

    def __init__(self, w: mb.HostArray[mb.float64]) -> None:
        self.w = w

    @mb.compile
    def moved(self, by: mb.AbstractArray, rate: float = 0.1) -> mb.AbstractArray:
        return self.w - rate * by

    @mb.compile(whole=True)
    def halved(self) -> mb.AbstractArray:
        return self.w / 2

    def loss(self, w: mb.HostArray[mb.float64]) -> mb.AbstractArray:
        return mb.sum(w * w)

    def step(self, rate: float) -> None:
        slope = mb.autodiff.gradient(self.loss, self.w)
        assert_type(slope, mb.HostArray[mb.float64])
        self.w = self.w - rate * slope
        self.w = -self.w / 2 + 1


def compiled_methods(m: Fit, x: mb.AbstractArray) -> None:
    assert_type(m.moved(x), mb.AbstractArray)
    assert_type(m.moved(x, rate=0.2), mb.AbstractArray)
    assert_type(m.halved(), mb.AbstractArray)
    assert_type(Fit.moved(m, x), mb.AbstractArray)
    _ = Fit.moved.explain(m, x)
    m.moved(1, 2, 3)  # pyright: ignore[reportCallIssue]
    m.moved(x, rate="fast")  # pyright: ignore[reportArgumentType]


def polynomial(x: mb.HostArray[mb.float64]) -> mb.HostArray[mb.float64]:
    return 1 - x * 2 / (x + x) ** 2 // 3 % 4 + 2**x - (-x) @ x


def dtypes(
    x: mb.HostArray[mb.float32], y: mb.HostArray[mb.float64], z: mb.CuArray[mb.complex128],
    i: mb.HostArray[mb.int64], b: mb.AbstractArray, something: Any, n: np.float64,
) -> None:  # fmt: skip
    assert_type(x * 0.5, mb.HostArray[mb.float32])
    assert_type(2 / x, mb.HostArray[mb.float32])
    assert_type(x * n, mb.AbstractArray)  # (of float64)
    assert_type(y * n, mb.HostArray[mb.float64])
    assert_type(x * y, mb.AbstractArray)
    assert_type(y * b, mb.AbstractArray)
    assert_type(b * y, mb.AbstractArray)
    _ = y * something
    assert_type(y * np.ones(3), mb.AbstractArray)
    assert_type(y * [1.0], mb.AbstractArray)
    assert_type(y * 1j, mb.AbstractArray)
    assert_type(z * 2 - z, mb.CuArray[mb.complex128])
    assert_type(abs(z), mb.AbstractArray)
    assert_type(i * 2, mb.HostArray[mb.int64])
    assert_type(i * 2.0, mb.AbstractArray)
    assert_type(i / 2, mb.AbstractArray)
    assert_type(i + i, mb.HostArray[mb.int64])
    assert_type(mb.zeros(3, device=mb.HostArray) + y, mb.HostArray[Any])
    assert_type(y > 1, mb.AbstractArray)
    half: mb.HostArray[mb.float32] = y * 2  # pyright: ignore[reportAssignmentType]
    _ = half


@mb.generic
def area(x: mb.AbstractArray) -> float:
    """How large something is."""
    raise NotImplementedError


@area.method
def _(x: mb.HostArray[mb.float64]) -> float:
    return float(mb.sum(x))


def clamped(v: float) -> tuple[float, float]:
    return min(v, 0.0), max(v, 0.0)


def functions(x: mb.AbstractArray, D: mb.Diagonal, K: mb.Kronecker) -> None:
    assert_type(area(x), float)
    area(x, x)  # pyright: ignore[reportCallIssue]
    _ = area.core
    assert_type(mb.map(lambda v: v * 2, x), mb.AbstractArray)
    assert_type(mb.broadcast(lambda v, w: v * 2 + w, x, 1.0), mb.AbstractArray)
    low, high = mb.broadcast(lambda v: (v - 1, v + 1), x)
    assert_type(low + high, mb.AbstractArray)
    assert_type(mb.broadcast(clamped, x), tuple[mb.AbstractArray, ...])
    assert_type(mb.broadcast(abs, x), mb.AbstractArray)
    assert_type(mb.linalg.svd(x), SVDResult)
    assert_type(mb.linalg.svd(x, False).S, mb.AbstractArray)
    assert_type(mb.linalg.svd(x, compute_uv=False), mb.AbstractArray)
    assert_type(mb.linalg.qr(x), QRResult)
    assert_type(mb.linalg.qr(x, mode="r"), mb.AbstractArray)
    assert_type(mb.linalg.eigh(x, "U").eigenvalues, mb.AbstractArray)
    assert_type(mb.autodiff.derivative(lambda t: t * t, 1.0), float)
    assert_type(mb.autodiff.derivative(lambda t: t * x, 1.0), mb.AbstractArray)
    assert_type(D.parts, tuple[mb.AbstractArray, ...])
    assert_type(K.parts[0], mb.AbstractArray)
    assert_type(mb.indices((2, 2)), mb.AbstractArray)
    assert_type(mb.indices((2, 2), sparse=True), tuple[mb.AbstractArray, ...])
    assert_type(mb.gradient(x, axis=0), mb.AbstractArray)
    assert_type(mb.gradient(x, axis=(0, 1)), tuple[mb.AbstractArray, ...])
    assert_type(mb.load("x.npz", "u"), mb.AbstractArray)
    assert_type(mb.load("x.npy", mmap=True), mb.AbstractArray)
    assert_type(mb.adapt(mb.CuArray, mb.HostArray([1.0])), mb.CuArray[Any])
    assert_type(mb.adapt(mb.CuArray, np.ones(3)), mb.CuArray[Any])
    assert_type(mb.adapt(mb.CuArray, x), mb.AbstractArray)
    assert_type(mb.adapt(mb.CuArray, [x, 1]), list[Any])


@mb.jit
def total(x: mb.AbstractArray) -> float:
    found = 0.0
    for i in range(len(x)):
        found += float(x[i])  # (a number there; to a checker x[i] may be a row)
    return found
