"""The kernels that DaCe distributes, in the proportions of its paper's Table 2, and as peers write them.

Products of matrices have 1/125 of the paper's operations (on one core, not on 18), those with vectors 1/64
but gemver's 1/16, doitgen 1/64; grids are as large as the paper's, for fewer steps. Nothing but NumPy is
imported here: peers may live elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Size = dict[str, int]


@dataclass(frozen=True)
class Case:
    """A kernel's size on one rank, and how a number of ranks scales it (Table 2's scaling factors)."""

    kernel: str
    base: Size
    tiny: Size
    # The dimensions that grow, and the root of the number of ranks by which they do.
    growing: tuple[str, ...]
    root: int = 1
    # A second size of a kernel has a name of its own.
    name: str = ""

    @property
    def label(self) -> str:
        return self.name or self.kernel

    def size(self, ranks: int = 1, tiny: bool = False) -> Size:
        """The size of so many ranks' work, in even numbers, so that it is divided evenly."""
        found = dict(self.tiny if tiny else self.base)
        if ranks > 1:
            for name in self.growing:
                found[name] = ranks * round(found[name] * ranks ** (1 / self.root) / ranks)
        return found


CASES = (
    Case("atax", {"m": 2500, "n": 3124}, {"m": 40, "n": 50}, ("m", "n"), 2),
    Case("bicg", {"m": 2500, "n": 3124}, {"m": 40, "n": 50}, ("m", "n"), 2),
    Case("gemver", {"n": 2500}, {"n": 40}, ("n",), 2),
    Case("gesummv", {"n": 2800}, {"n": 40}, ("n",), 2),
    Case("mvt", {"n": 2750}, {"n": 40}, ("n",), 2),
    Case("doitgen", {"r": 128, "q": 128, "p": 128}, {"r": 8, "q": 6, "p": 4}, ("r",)),
    Case("gemm", {"m": 1600, "n": 1840, "k": 1040}, {"m": 40, "n": 46, "k": 26}, ("m", "n", "k"), 3),
    Case(
        "k2mm",
        {"m": 1280, "n": 1440, "k": 880, "p": 960},
        {"m": 32, "n": 36, "k": 22, "p": 24},
        ("m", "n", "k", "p"),
        3,
    ),
    Case(
        "k3mm",
        {"m": 1280, "n": 1440, "k": 800, "p": 960, "q": 880},
        {"m": 32, "n": 36, "k": 20, "p": 24, "q": 22},
        ("m", "n", "k", "p", "q"),
        3,
    ),
    Case("jacobi_1d", {"steps": 100, "n": 24000}, {"steps": 3, "n": 60}, ("n",)),
    Case("jacobi_1d", {"steps": 20, "n": 1 << 20}, {"steps": 3, "n": 80}, ("n",), 1, "jacobi_1d, 2²⁰"),
    Case("jacobi_2d", {"steps": 20, "n": 1300}, {"steps": 3, "n": 20}, ("n",), 2),
)


# The programs without writing to arguments but where a grid is written to: for Dask and Heat.


def atax(xp: Any, A: Any, x: Any) -> Any:
    return (A.T @ (A @ x),)


def bicg(xp: Any, A: Any, p: Any, r: Any) -> Any:
    return r @ A, A @ p


def doitgen(xp: Any, A: Any, basis: Any) -> Any:
    return (A @ basis,)


def gemm(xp: Any, alpha: float, beta: float, C: Any, A: Any, B: Any) -> Any:
    return (alpha * (A @ B) + beta * C,)


def gemver(
    xp: Any,
    alpha: float,
    beta: float,
    A: Any,
    u1: Any,
    v1: Any,
    u2: Any,
    v2: Any,
    w: Any,
    x: Any,
    y: Any,
    z: Any,
) -> Any:
    A = A + xp.outer(u1, v1) + xp.outer(u2, v2)
    x = x + beta * (y @ A) + z
    return A, w + alpha * (A @ x), x


def gesummv(xp: Any, alpha: float, beta: float, A: Any, B: Any, x: Any) -> Any:
    return (alpha * (A @ x) + beta * (B @ x),)


def mvt(xp: Any, x1: Any, x2: Any, y1: Any, y2: Any, A: Any) -> Any:
    return x1 + A @ y1, x2 + y2 @ A


def k2mm(xp: Any, alpha: float, beta: float, A: Any, B: Any, C: Any, D: Any) -> Any:
    return (alpha * (A @ B @ C) + beta * D,)


def k3mm(xp: Any, A: Any, B: Any, C: Any, D: Any) -> Any:
    return ((A @ B) @ (C @ D),)


def jacobi_1d(xp: Any, steps: int, a: Any, b: Any) -> Any:
    for _ in range(steps):
        b[1:-1] = (a[:-2] + a[1:-1] + a[2:]) * 0.33333
        a[1:-1] = (b[:-2] + b[1:-1] + b[2:]) * 0.33333
    return a, b


def jacobi_2d(xp: Any, steps: int, a: Any, b: Any) -> Any:
    for _ in range(steps):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[:-2, 1:-1] + b[2:, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:])
    return a, b


PEERS: dict[str, Callable[..., Sequence[Any]]] = {
    f.__name__: f for f in (atax, bicg, doitgen, gemm, gemver, gesummv, mvt, k2mm, k3mm, jacobi_1d, jacobi_2d)
}
