"""Programs as users write them: compiled functions, loops, random numbers, derivatives, new functions."""

from typing import Any, assert_type

import mirabelle as mb


@mb.compile
def step(u: mb.AbstractArray, dt: float) -> mb.AbstractArray:
    """One step of diffusion."""
    return u + dt * (mb.roll(u, 1) - 2 * u + mb.roll(u, -1))


@mb.compile(static=["n"])
def powers(A: mb.AbstractArray, n: int) -> tuple[mb.AbstractArray, mb.AbstractArray]:
    v = mb.ones(A.shape[:1], device=A.device)
    for _ in range(n):
        v = A @ v
        v = v / mb.norm(v)
    return v, v @ (A @ v)


@mb.jit(parallel=True)
def total(x: mb.AbstractArray) -> float:
    found = 0.0
    for i in range(len(x)):
        found += float(x[i])
    return found


def main() -> None:
    u = mb.zeros(100)
    u[50] = 1.0
    for _ in range(10):
        u = step(u, 0.1)
    assert_type(u, mb.AbstractArray)
    assert_type(powers(mb.eye(3), 5), tuple[mb.AbstractArray, mb.AbstractArray])
    assert_type(total(u), float)
    _ = step.explain(u, 0.1)
    print(float(mb.sum(u)), f"{mb.max(u):.3f}")

    rng = mb.random.default_rng(1)
    x, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    assert_type(x, mb.AbstractArray)
    w = mb.zeros(3)

    def loss(w: mb.AbstractArray) -> mb.AbstractArray:
        return mb.mean((x @ w - y) ** 2)

    for _ in range(3):
        w = w - 0.1 * mb.autodiff.gradient(loss, w)
    assert_type(w, mb.AbstractArray)

    assert_type(mb.fori_loop(0, 3, lambda i, v: v * 2, w), mb.AbstractArray)
    assert_type(mb.cond(w[0] > 0, lambda v: v, lambda v: -v, w), mb.AbstractArray)
    with mb.count() as found, mb.allow_scalar():
        assert_type(float(w[0]), float)
    print(found, mb.explain(mb.sum(x)).facts["method"])


@mb.generic
def smoothed(x: Any) -> Any:
    """A generic function of the user's own."""


@smoothed.method
def _(x: mb.HostArray) -> mb.AbstractArray:
    return (x + mb.roll(x, 1)) / 2


@mb.sum.method
def _(x: mb.Diagonal, /, *, axis: Any = None) -> Any:
    return mb.sum(x.parts[0]) if axis is None else mb.sum(mb.dense(x), axis=axis)


if __name__ == "__main__":
    main()
