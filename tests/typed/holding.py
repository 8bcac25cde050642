"""Classes that hold arrays, fields with annotations, callbacks, protocols, generics over array types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, Self, TypeVar, assert_type

import mirabelle as mb

A = TypeVar("A", bound=mb.AbstractArray)


@dataclass
class Particles:
    x: mb.HostArray[mb.float64]
    v: mb.HostArray[mb.float64]
    mass: mb.AbstractArray = field(default_factory=lambda: mb.ones(3))
    names: tuple[str, ...] = ()

    def push(self, dt: float) -> Self:
        self.x += dt * self.v
        assert_type(self.x, mb.HostArray[mb.float64])
        self.v *= 0.99
        return self

    @property
    def energy(self) -> float:
        return 0.5 * float(mb.sum(self.mass * self.v**2))

    def __iter__(self) -> Iterator[mb.AbstractArray]:
        yield self.x
        yield self.v


class Held(Generic[A]):
    def __init__(self, array: A) -> None:
        self.array = array
        self.history: list[mb.AbstractArray] = []

    def update(self, f: Callable[[A], A]) -> A:
        self.history.append(self.array.copy())
        self.array = f(self.array)
        return self.array


def doubled(x: mb.HostArray[Any]) -> mb.HostArray[Any]:
    x *= 2
    return x


held = Held(mb.HostArray([1.0, 2.0]))
assert_type(held, Held[mb.HostArray[Any]])
assert_type(held.update(doubled), mb.HostArray[Any])
assert_type(held.history[0], mb.AbstractArray)


class Model(Protocol):
    def __call__(self, x: mb.AbstractArray, /, *, rate: float = ...) -> mb.AbstractArray: ...


def linear(x: mb.AbstractArray, /, *, rate: float = 1.0) -> mb.AbstractArray:
    return rate * x


def applied(model: Model, x: mb.AbstractArray, callback: Callable[[int, mb.AbstractArray], bool]) -> int:
    for k in range(10):
        x = model(x, rate=0.5)
        if callback(k, x):
            return k
    return 10


assert_type(applied(linear, mb.ones(3), lambda k, u: bool(mb.max(u) < 0.1)), int)


# Reductions
def reductions(x: mb.AbstractArray) -> None:
    assert_type(mb.sum(x, axis=0, keepdims=True), mb.AbstractArray)
    assert_type(mb.mean(x, axis=(0, 1), keepdims=True), mb.AbstractArray)
    assert_type(x.max(axis=-1, keepdims=True), mb.AbstractArray)
    assert_type(mb.std(x, axis=0, correction=1), mb.AbstractArray)
    assert_type(mb.var(x, ddof=1), mb.AbstractArray)
    assert_type(mb.any(x > 0, axis=1), mb.AbstractArray)
    assert_type(mb.argmin(x, axis=0, keepdims=True), mb.AbstractArray)
    assert_type(mb.cumsum(x, axis=0), mb.AbstractArray)
    assert_type(mb.prod(x, where=x > 0, initial=1.0), mb.AbstractArray)
    assert_type(mb.sum(x, dtype=mb.float32), mb.AbstractArray)
    assert_type(mb.median(x, axis=0), mb.AbstractArray)
    assert_type(mb.percentile(x, [25, 75], axis=0), mb.AbstractArray)
    assert_type(mb.nanmean(x), mb.AbstractArray)
    assert_type(mb.linalg.norm(x, axis=1, keepdims=True), mb.AbstractArray)
    assert_type(mb.average(x, weights=x), mb.AbstractArray)
    assert_type(x.mean().item(), Any)
    assert_type(bool(mb.all(x == x)), bool)
    assert_type(mb.count_nonzero(x, axis=0), mb.AbstractArray)
    assert_type(mb.ptp(x), mb.AbstractArray)
    assert_type(mb.trapezoid(x, dx=0.1), mb.AbstractArray)
    assert_type(mb.diff(x, n=2, axis=0), mb.AbstractArray)
    assert_type(mb.maximum.reduce(x, axis=0), mb.AbstractArray)
    assert_type(mb.add.accumulate(x), mb.AbstractArray)
    assert_type(mb.unique_counts(x).counts, mb.AbstractArray)
