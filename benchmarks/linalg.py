"""Linear algebra beside NumPy: products by layout and dtype, stacks, solves, einsum, transforms.

Everybody calls the same BLAS on two threads. What differs is what is copied before, which
products reach BLAS at all, and what is fused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import mirabelle as mb
from benchmarks._measure import check, geometric_mean, store, take_turns, warm_up
from benchmarks._table import show

SLOWEST = 0.9  # times NumPy, which no case should be below


@dataclass(frozen=True)
class Case:
    """One computation, written for NumPy and for us; `further` are other contenders."""

    group: str
    name: str
    inputs: Callable[[np.random.Generator, int], tuple[np.ndarray, ...]]
    size: int
    numpy: Callable[..., Any]
    ours: Callable[..., Any]
    further: dict[str, Callable[..., Any]]
    rtol: float = 1e-8


CASES: list[Case] = []


def add(
    group: str,
    name: str,
    size: int,
    inputs: Callable[[np.random.Generator, int], tuple[np.ndarray, ...]],
    numpy: Callable[..., Any],
    ours: Callable[..., Any] | None = None,
    rtol: float = 1e-8,
    **further: Callable[..., Any],
) -> None:
    CASES.append(Case(group, name, inputs, size, numpy, ours or numpy, further, rtol))


def squares(dtype: str, count: int = 2) -> Callable[[np.random.Generator, int], tuple[np.ndarray, ...]]:
    """Square matrices of a dtype."""

    def make(rng: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
        return tuple(numbers(rng, dtype, (n, n)) for _ in range(count))

    return make


def numbers(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    if np.dtype(dtype).kind == "b":
        return rng.random(shape) < 0.02
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 100, shape).astype(dtype)
    x = rng.random(shape) - 0.5
    return (x + 1j * rng.random(shape)).astype(dtype) if np.dtype(dtype).kind == "c" else x.astype(dtype)


# Matrix products

LAYOUTS: dict[str, Callable[[Any, Any], Any]] = {
    "A @ B": lambda a, b: a @ b,
    "A.T @ B": lambda a, b: a.T @ b,
    "A @ B.T": lambda a, b: a @ b.T,
    "A.T @ B.T": lambda a, b: a.T @ b.T,
    "A[h:, h:] @ B[h:, :h]": lambda a, b: a[len(a) // 2 :, len(a) // 2 :] @ b[len(a) // 2 :, : len(a) // 2],
    "A[::-1] @ B": lambda a, b: a[::-1] @ b,
    "A[:, ::2] @ B[::2]": lambda a, b: a[:, ::2] @ b[::2],
    "A[::2, ::2] @ B[::2, ::2]": lambda a, b: a[::2, ::2] @ b[::2, ::2],
}
for _dtype, _n in (("f8", 1000), ("f4", 1000), ("c16", 600)):
    for _text, _product in LAYOUTS.items():
        add(f"matmul {_dtype}", _text, _n, squares(_dtype), _product, rtol=1e-4)
for _dtype, _n in (("i8", 400), ("i4", 400), ("u1", 400), ("?", 400)):
    for _text in ("A @ B", "A.T @ B", "A @ B.T", "A[:, ::2] @ B[::2]"):
        add(f"matmul {_dtype}", _text, _n, squares(_dtype), LAYOUTS[_text])

VECTORS: dict[str, Callable[[Any, Any], Any]] = {
    "A @ x": lambda a, x: a @ x,
    "A.T @ x": lambda a, x: a.T @ x,
    "x @ A": lambda a, x: x @ a,
    "A[::-1] @ x": lambda a, x: a[::-1] @ x,
    "A[:, ::-1] @ x": lambda a, x: a[:, ::-1] @ x,
    "(2*A + 1) @ x": lambda a, x: (2 * a + 1) @ x,
    "x @ A @ x": lambda a, x: x @ a @ x,
}
for _text, _product in VECTORS.items():
    add(
        "matrix, vector f8", _text, 3000,
        lambda rng, n: (numbers(rng, "f8", (n, n)), numbers(rng, "f8", (n,))), _product,
    )  # fmt: skip


def numpys_update(a: Any, b: Any, c: Any) -> Any:
    c *= 0.5
    c += 2.0 * (a @ b)
    return c


def our_update(a: Any, b: Any, c: Any) -> Any:
    return mb.linalg.gemm(a, b, alpha=2.0, beta=0.5, out=c)


add("update f8", "C = 2 A B + C / 2", 700, squares("f8", 3), numpys_update, our_update)


# Stacks


def stacks(rows: int, dtype: str = "f8") -> Callable[[np.random.Generator, int], tuple[np.ndarray, ...]]:
    return lambda rng, n: tuple(numbers(rng, dtype, (n, rows, rows)) for _ in range(2))


for _rows, _n in ((2, 200_000), (3, 100_000), (4, 100_000), (8, 20_000), (32, 2_000)):
    add("stacks f8", f"({_rows} x {_rows}) @ ({_rows} x {_rows})", _n, stacks(_rows), lambda a, b: a @ b)
add("stacks f8", "(16 x 16) @ one matrix", 20_000, stacks(16), lambda a, b: a @ b[0])
add("stacks f8", "one matrix @ (16 x 16)", 20_000, stacks(16), lambda a, b: a[0] @ b)
add("stacks f8", "(16 x 16) @ one vector", 20_000, stacks(16), lambda a, b: a @ b[0, 0])
add("stacks f4", "(3 x 3) @ (3 x 3)", 100_000, stacks(3, "f4"), lambda a, b: a @ b, rtol=1e-4)


# Solving


def systems(rng: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
    a = numbers(rng, "f8", (n, n)) + n * np.eye(n)
    return a, numbers(rng, "f8", (n,)), numbers(rng, "f8", (n, 10))


def definite(rng: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
    a = numbers(rng, "f8", (n, n))
    return a @ a.T + n * np.eye(n), numbers(rng, "f8", (n,))


def ten_solves(solve: Callable[[Any], Any], b: Any) -> Any:
    for _ in range(10):
        b = solve(b)
    return b


add("solving f8", "solve(A, b)", 800, systems, lambda a, b, c: np.linalg.solve(a, b),
    lambda a, b, c: mb.linalg.solve(a, b))  # fmt: skip
add("solving f8", "solve(A, B), 10 columns", 800, systems, lambda a, b, c: np.linalg.solve(a, c),
    lambda a, b, c: mb.linalg.solve(a, c))  # fmt: skip
add("solving f8", "ten solves, one after the other", 500, systems,
    lambda a, b, c: ten_solves(lambda x: np.linalg.solve(a, x), b),
    lambda a, b, c: ten_solves(mb.linalg.LU(a).solve, b))  # fmt: skip
add("solving f8", "solve of a definite A", 800, definite, np.linalg.solve,
    lambda a, b: mb.linalg.factorize(a).solve(b))  # fmt: skip
add("solving f8", "solve of a triangular A", 1000, systems, lambda a, b, c: np.linalg.solve(np.triu(a), b),
    lambda a, b, c: mb.linalg.solve_triangular(a, b))  # fmt: skip
add("solving f8", "10 000 systems of 4", 10_000,
    lambda rng, n: (rng.random((n, 4, 4)) + 4 * np.eye(4), rng.random((n, 4, 1))),
    np.linalg.solve, mb.linalg.solve)  # fmt: skip
for _name, _n in (
    ("inv", 500),
    ("cholesky", 800),
    ("qr", 400),
    ("svdvals", 300),
    ("eigvalsh", 400),
    ("det", 800),
):
    add("solving f8", _name, _n, lambda rng, n: definite(rng, n)[:1], getattr(np.linalg, _name),
        getattr(mb.linalg, _name))  # fmt: skip
add("solving f8", "norm(A - B)", 2000, squares("f8"), lambda a, b: np.linalg.norm(a - b),
    lambda a, b: mb.linalg.norm(a - b))  # fmt: skip


# einsum


def einsum(name: str, text: str, size: int, shapes: Callable[[int], list[tuple[int, ...]]]) -> None:
    def contracted(*arrays: Any) -> Any:
        import opt_einsum

        return opt_einsum.contract(text, *arrays)

    add(
        "einsum f8", name, size, lambda rng, n: tuple(numbers(rng, "f8", s) for s in shapes(n)),
        lambda *x: np.einsum(text, *x, optimize=True), lambda *x: mb.einsum(text, *x), opt_einsum=contracted,
    )  # fmt: skip


einsum("ij,jk->ik", "ij,jk->ik", 600, lambda n: [(n, n), (n, n)])
einsum("ij,ij->i", "ij,ij->i", 1500, lambda n: [(n, n), (n, n)])
einsum("ij,ij,ij->", "ij,ij,ij->", 1000, lambda n: [(n, n)] * 3)
einsum("bij,bjk->bik", "bij,bjk->bik", 64, lambda n: [(n, 64, 64), (n, 64, 64)])
einsum("ijk,jil->kl", "ijk,jil->kl", 80, lambda n: [(n, n, n), (n, n, n)])
einsum("ij,j,jk->ik", "ij,j,jk->ik", 500, lambda n: [(n, n), (n,), (n, n)])
einsum(
    "pi,qj,ijkl,rk,sl->pqrs", "pi,qj,ijkl,rk,sl->pqrs", 24, lambda n: [(n, n), (n, n), (n,) * 4, (n, n), (n, n)]
)
einsum("bhqd,bhkd->bhqk", "bhqd,bhkd->bhqk", 8, lambda n: [(n, 8, 128, 64), (n, 8, 128, 64)])
einsum("ii", "ii", 2000, lambda n: [(n, n)])


# Fourier transforms

add("fft", "rfft, 2**20", 1 << 20, lambda rng, n: (rng.random(n),), np.fft.rfft, mb.fft.rfft)
add("fft", "fft2, 1024 x 1024", 1024, lambda rng, n: (rng.random((n, n)),), np.fft.fft2, mb.fft.fft2)
add(
    "fft",
    "fft of 1000 rows of 256",
    1000,
    lambda rng, n: (numbers(rng, "c16", (n, 256)),),
    np.fft.fft,
    mb.fft.fft,
)


def evaluated(result: Any) -> Any:
    return tuple(map(mb.materialize, result)) if isinstance(result, tuple) else mb.materialize(result)


def measured(case: Case, rounds: int, scale: float) -> dict[str, Any]:
    """All contenders of a case, timed."""
    rng = np.random.default_rng(0)
    arrays = case.inputs(rng, max(8, int(case.size * scale)))
    hosts = [mb.HostArray(a) for a in arrays]

    def ours() -> Any:
        return evaluated(case.ours(*hosts))

    contenders: dict[str, Callable[[], Any]] = {"numpy": lambda: case.numpy(*arrays), "mirabelle": ours}
    contenders |= {name: (lambda f=f: f(*arrays)) for name, f in case.further.items()}
    # What updates an operand is checked on copies of it.
    expected = case.numpy(*[a.copy() for a in arrays])
    found = evaluated(case.ours(*[mb.copy(h) for h in hosts]))
    found = tuple(map(mb.to_numpy, found)) if isinstance(found, tuple) else mb.to_numpy(found)
    check(f"{case.group}: {case.name}", found, expected, case.rtol)
    warm_up(ours)
    # (Peers share their arrays: each is timed after a call of its own, so that all find theirs as warm.)
    t = take_turns(contenders, rounds or 15, 6.0, in_a_row=3)
    best = min(v.best for k, v in t.items() if k != "mirabelle")
    return {
        "group": case.group,
        "case": case.name,
        "size": max(8, int(case.size * scale)),
        **{name: timing.as_json() for name, timing in t.items()},
        "times_numpy": t["numpy"].best / t["mirabelle"].best,
        "times_best_peer": best / t["mirabelle"].best,
    }


def run(only: str = "", rounds: int = 0, scale: float = 1.0) -> None:
    """Measure and store; `scale` shrinks the sizes, to try the benchmark itself."""
    record, rows = [], []
    for case in CASES:
        if only and only not in f"{case.group} {case.name}":
            continue
        found = measured(case, rounds, scale)
        record.append(found)
        times = [found.get(name) for name in ("numpy", "opt_einsum", "mirabelle")]
        rows.append(
            [f"{case.group}: {case.name}", f"{found['size']:,}"]
            + [f"{t['best_s'] * 1e3:.3f} ({t['median_s'] * 1e3:.3f})" if t else "" for t in times]
            + [f"{found['times_numpy']:.2f}"]
        )
    slow = [f"{r['group']}: {r['case']} ({r['times_numpy']:.2f})" for r in record if r["times_numpy"] < SLOWEST]
    groups = sorted({r["group"] for r in record})
    means = {g: geometric_mean([r["times_numpy"] for r in record if r["group"] == g]) for g in groups}
    notes = ["Geometric means, times NumPy: " + ", ".join(f"{g} {m:.2f}" for g, m in means.items()) + "."]
    notes.append(
        f"Target: none slower than {SLOWEST} of NumPy: {'met' if not slow else 'MISSED by ' + ', '.join(slow)}."
    )
    show(
        "Linear algebra: ms, best (median)",
        ["case", "size", "NumPy", "opt_einsum", "mirabelle", "times NumPy"],
        rows,
        notes,
    )
    if not only and scale == 1.0:
        store("linalg", {"met": not slow, "means": means, "cases": record})
