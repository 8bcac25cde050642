"""`python3 -m tests.gpuprograms --seconds 200 --out DIR`: compiled programs on a card, checked and measured.

Each program is checked against NumPy, and is timed compiled, with the same kernels launched one by one, as it
is, with CuPy, and with JAX's jit where that can be imported, in one run, one beside the other. Results go to
DIR/gpu_programs.json and DIR/gpu_programs.txt.
`--simulated` tries the script on a simulated card, with small arrays and no times that mean anything.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]

# The programs: functions of arrays of any library that writes as NumPy does; JAX's are as it wants them.


def jacobi_2d(A, B, steps=25):
    for _ in range(steps):
        B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
        A[1:-1, 1:-1] = 0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1])


def jacobi_1d(u, v, steps=25):
    for _ in range(steps):
        v[1:-1] = 0.25 * (u[:-2] + 2 * u[1:-1] + u[2:])
        u[1:-1] = 0.25 * (v[:-2] + 2 * v[1:-1] + v[2:])


def jacobi_2d_jax(A, B, steps=25):
    for _ in range(steps):
        new = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
        B = B.at[1:-1, 1:-1].set(new)
        new = 0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1])
        A = A.at[1:-1, 1:-1].set(new)
    return A, B


def _heat(A):
    return (
        0.125 * (A[2:, 1:-1, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[:-2, 1:-1, 1:-1])
        + 0.125 * (A[1:-1, 2:, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, :-2, 1:-1])
        + 0.125 * (A[1:-1, 1:-1, 2:] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, 1:-1, :-2])
        + A[1:-1, 1:-1, 1:-1]
    )


def heat_3d(A, B, steps=10):
    for _ in range(steps):
        B[1:-1, 1:-1, 1:-1] = _heat(A)
        A[1:-1, 1:-1, 1:-1] = _heat(B)


def heat_3d_jax(A, B, steps=10):
    for _ in range(steps):
        B = B.at[1:-1, 1:-1, 1:-1].set(_heat(A))
        A = A.at[1:-1, 1:-1, 1:-1].set(_heat(B))
    return A, B


def fdtd_2d(ex, ey, hz, steps=10):
    for t in range(steps):
        ey[0, :] = 0.1 * t
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


def fdtd_2d_jax(ex, ey, hz, steps=10):
    for t in range(steps):
        ey = ey.at[0, :].set(0.1 * t)
        ey = ey.at[1:, :].add(-0.5 * (hz[1:, :] - hz[:-1, :]))
        ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
        hz = hz.at[:-1, :-1].add(-0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]))
    return ex, ey, hz


def _hdiff(xp, u, coeff):
    lap = 4.0 * u[1:-1, 1:-1, :] - (u[2:, 1:-1, :] + u[:-2, 1:-1, :] + u[1:-1, 2:, :] + u[1:-1, :-2, :])
    fx = lap[1:, 1:-1, :] - lap[:-1, 1:-1, :]
    fx = xp.where(fx * (u[2:-1, 2:-2, :] - u[1:-2, 2:-2, :]) > 0, 0, fx)
    fy = lap[1:-1, 1:, :] - lap[1:-1, :-1, :]
    fy = xp.where(fy * (u[2:-2, 2:-1, :] - u[2:-2, 1:-2, :]) > 0, 0, fy)
    return u[2:-2, 2:-2, :] - coeff * (fx[1:, :, :] - fx[:-1, :, :] + fy[:, 1:, :] - fy[:, :-1, :])


def _softmax(xp, x):
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def _mlp(xp, x, w1, b1, w2, b2, w3, b3):
    x = xp.maximum(x @ w1 + b1, 0)
    x = xp.maximum(x @ w2 + b2, 0)
    return _softmax(xp, x @ w3 + b3)


def _d(u, axis):
    """A derivative along an axis by 4th-order differences (of the inner part)."""

    def at(k):
        index = [slice(2, -2)] * 3
        index[axis] = slice(2 + k, u.shape[axis] - 2 + k)
        return u[tuple(index)]

    return (8.0 * (at(1) - at(-1)) - (at(2) - at(-2))) * (1 / 12)


def _wave(xp, p, vx, vy, vz, c):
    """The right-hand side of the wave equation as a system of first order, in three dimensions."""
    inner = slice(2, -2)
    divergence = _d(vx, 0) + _d(vy, 1) + _d(vz, 2)
    speed = c[inner, inner, inner]
    return -speed * speed * divergence, -_d(p, 0), -_d(p, 1), -_d(p, 2)


def _branches(xp, a, b, c, d):
    """Four chains that have nothing to do with each other, each of eight smoothings."""
    out = []
    for u in (a, b, c, d):
        for _ in range(8):
            inner = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) * 0.25
            u = xp.sqrt(inner * inner + 0.5)
        out.append(u)
    return tuple(out)


def _tiny(xp, x):
    return 2 * x + 1


class Case:
    """A program, what it is called with, and how JAX has it."""

    def __init__(
        self, name: str, f: Any, shapes: Callable[[int], list[tuple[int, ...]]], sizes: Any, jax: Any = None
    ):
        self.name, self.shapes, self.sizes = name, shapes, sizes
        # Without one for JAX, the function takes the module first, and returns its results.
        self.writes = jax is not None
        self.f, self.jax = f, jax

    def of(self, xp: Any) -> Any:
        f = self.f
        return f if self.writes else (lambda *args: f(xp, *args))


def cases() -> list[Case]:
    return [
        Case("jacobi_2d", jacobi_2d, lambda n: [(n, n)] * 2, (128, 1024, 4096), jacobi_2d_jax),
        Case("heat_3d", heat_3d, lambda n: [(n, n, n)] * 2, (24, 96, 320), heat_3d_jax),
        Case("fdtd_2d", fdtd_2d, lambda n: [(n, n)] * 3, (128, 1024, 4096), fdtd_2d_jax),
        Case("hdiff", _hdiff, lambda n: [(n + 4, n + 4, 64), (n, n, 64)], (32, 128, 512)),
        Case("softmax", _softmax, lambda n: [(n, 512)], (64, 4096, 131072)),
        Case(
            "mlp",
            _mlp,
            lambda n: [(n, 512), (512, 512), (512,), (512, 256), (256,), (256, 64), (64,)],
            (32, 1024, 32768),
        ),
        Case("wave_rhs", _wave, lambda n: [(n, n, n)] * 5, (24, 96, 256)),
        Case("branches", _branches, lambda n: [(n, n)] * 4, (64, 256, 2048)),
    ]


class Report:
    """What came of it: lines as they come, and all of it as JSON at the end."""

    def __init__(self, out: Path, seconds: float) -> None:
        self.out, self.end = out, time.perf_counter() + seconds
        self.found: dict[str, Any] = {"rows": [], "failures": []}
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        print(text, flush=True)
        self.lines.append(text)

    def left(self) -> float:
        return self.end - time.perf_counter()

    def part(self, name: str, f: Callable[[], None]) -> None:
        if self.left() < 0:
            self.say(f"{name}: no time was left")
            self.found["failures"].append(f"{name}: no time was left")
            return
        try:
            f()
        except Exception as e:
            self.say(f"{name}: FAILED: {type(e).__name__}: {e}")
            print(traceback.format_exc()[-2500:], flush=True)
            self.found["failures"].append(f"{name}: {type(e).__name__}: {e}")

    def write(self) -> None:
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / "gpu_programs.json").write_text(json.dumps(self.found, indent=1) + "\n")
        (self.out / "gpu_programs.txt").write_text("\n".join(self.lines) + "\n")


class Bench:
    def __init__(self, simulated: bool, report: Report) -> None:
        sys.path.insert(0, str(ROOT))
        import mirabelle as mb
        from benchmarks.gpu._card import Card

        self.mb, self.simulated, self.report = mb, simulated, report
        self.card = Card(tiny=simulated)
        self.rng = np.random.default_rng(7)
        self.jax: Any = None
        if not simulated:
            os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
            try:
                import jax

                jax.config.update("jax_enable_x64", True)
                jax.numpy.zeros(1).block_until_ready()
                self.jax = jax
            except Exception as e:
                report.say(f"JAX cannot be used: {e}")
        report.found["facts"] = self.card.facts()

    def data(self, case: Case, n: int) -> list[np.ndarray]:
        return [self.rng.random(s) for s in case.shapes(n)]

    def numpy(self, x: Any) -> np.ndarray:
        if isinstance(x, self.mb.AbstractArray):
            return self.mb.to_numpy(x)
        return x.get() if hasattr(x, "get") else np.asarray(x)

    # Is it right?

    def results(self, case: Case, f: Any, arrays: list[Any]) -> list[Any]:
        """What a call returns, or else what it leaves in its arguments."""
        made = f(*arrays)
        if case.writes:
            return arrays
        return list(made) if isinstance(made, (tuple, list)) else [made]

    def check(self) -> None:
        """Each program again and again, with other arrays: all results right, also those of earlier calls."""
        mb = self.mb
        for case in cases():
            size = {"softmax": 5, "mlp": 8}.get(case.name, 20 if case.name == "branches" else 12)
            f = mb.compile(case.of(mb))
            if case.name == "mlp" and self.simulated:
                size = 1
            kept = []
            for _ in range(7):
                data = self.data(case, size)
                if self.simulated and case.name in ("mlp", "softmax", "hdiff"):
                    data = [x[..., :4].copy() if x.ndim > 1 and case.name != "mlp" else x for x in data]
                got = self.results(case, f, [mb.CuArray(x) for x in data])
                kept.append((got, self.results(case, case.of(np), data)))
            for got, wanted in kept:
                for a, b in zip(got, wanted, strict=True):
                    np.testing.assert_allclose(self.numpy(a), b, rtol=1e-11, atol=1e-12)
            self.report.say(f"right: {case.name}")

    def check_streams(self) -> None:
        """In streams, in a graph that is recorded, and in several threads at once."""
        mb = self.mb
        case = next(c for c in cases() if c.name == "branches")
        plain, f = case.of(np), mb.compile(case.of(mb))

        def once(n: int) -> None:
            data = self.data(case, n)
            got = f(*map(mb.CuArray, data))
            for a, b in zip(got, plain(*data), strict=True):
                np.testing.assert_allclose(self.numpy(a), b, rtol=1e-11)

        n = 19 if self.simulated else 200
        once(n)
        for _ in range(3):
            with mb.stream(mb.CuArray):
                once(n)
            once(n)
        data = self.data(case, n)
        x = [mb.CuArray(a) for a in data]
        results = [mb.zeros((n - 16, n - 16), device=mb.CuArray) for _ in x]
        with mb.capture() as graph:
            for r, made in zip(results, f(*x), strict=True):
                r[...] = made
        for k in range(2):
            for r, b in zip(results, plain(*data), strict=True):
                np.testing.assert_allclose(self.numpy(r), b, rtol=1e-11)
            data = self.data(case, n)
            for a, b in zip(x, data, strict=True):
                a[...] = mb.CuArray(b)
            if not k:
                graph.replay()
        errors: list[BaseException] = []

        def work() -> None:
            try:
                for _ in range(2 if self.simulated else 20):
                    with mb.stream(mb.CuArray):
                        once(n)
            except BaseException as e:
                errors.append(e)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if errors:
            raise errors[0]
        self.report.say("right: in streams, in a graph, in threads")

    def check_products(self) -> None:
        """Products of all forms, in one graph."""
        mb = self.mb

        def f(a: Any, b: Any, v: Any, s: Any) -> Any:
            ab = a @ b
            return ab + 1, (a @ v) * 2, v @ b, v @ v, b.T @ a.T, s @ b, (s * 2) @ b[::-1], ab @ ab

        for dtype in ("f8", "f4", "c16", "c8", "i8", "i4"):
            g = mb.compile(f)
            for _ in range(6):
                n = 6 if self.simulated else 96
                data = [self.rng.random(k) * 8 for k in ((n, n), (n, n), (n,), (3, 5, n))]
                if dtype[0] == "c":
                    data = [x * (1 + 0.5j) for x in data]
                data = [x.astype(dtype) for x in data]
                got = g(*map(mb.CuArray, data))
                tolerance = 1e-4 if dtype in ("f4", "c8") else 1e-11
                for a, b in zip(got, f(*data), strict=True):
                    np.testing.assert_allclose(
                        self.numpy(a), b, rtol=tolerance, atol=tolerance * np.abs(b).max()
                    )
        self.report.say("right: products")

    # How fast is it?

    def wall(self, f: Callable[[], Any], calls: int, rounds: int = 9) -> float:
        """Microseconds a call, as the clock on the wall says: the median of several rounds."""
        for _ in range(3):
            f()
        self.card.synchronize()
        times = []
        gc.collect()
        gc.disable()
        try:
            for _ in range(2 if self.simulated else rounds):
                self.card.synchronize()
                begin = time.perf_counter()
                for _ in range(calls):
                    f()
                self.card.synchronize()
                times.append((time.perf_counter() - begin) / calls * 1e6)
        finally:
            gc.enable()
        return statistics.median(times)

    def replays(self) -> None:
        """Fifty small kernels, each of which needs the one before."""
        mb, say = self.mb, self.report.say
        n, calls = (8, 1) if self.simulated else (32, 200)
        data = [self.rng.random((n, n)) for _ in range(2)]
        x = [mb.CuArray(a) for a in data]
        f = mb.compile(jacobi_2d)
        program = f.program(*x)
        kernels = sum(len(getattr(s, "launches", ())) for s in program.runner.segments)
        t = self.wall(lambda: f(*x), calls)
        eager = self.wall(lambda: jacobi_2d(*x), calls if self.simulated else 20)
        rows = {"kernels": kernels, "compiled_us_a_kernel": t / kernels, "eager_us_a_kernel": eager / kernels}
        y = [mb.CuArray(a) for a in data]
        jacobi_2d(*y)
        self.card.synchronize()
        with mb.capture() as g:
            jacobi_2d(*y)
        rows["captured_us_a_kernel"] = self.wall(g.replay, calls) / kernels
        if self.card:
            z = [self.card.cupy.asarray(a) for a in data]
            rows["cupy_us_a_kernel"] = self.wall(lambda: jacobi_2d(*z), 5) / kernels
        if self.jax:
            z = [self.jax.numpy.asarray(a) for a in data]
            j = self.jax.jit(jacobi_2d_jax)
            j(*z)[0].block_until_ready()
            rows["jax_us_a_kernel"] = self.jax_wall(lambda: j(*z), 50) / kernels
        w = [mb.CuArray(self.rng.random(64 if self.simulated else 1024)) for _ in range(2)]
        lines = mb.compile(jacobi_1d)
        rows["compiled_1d_us_a_kernel"] = self.wall(lambda: lines(*w), calls) / 50
        rows["compiled_us_a_kernel_again"] = self.wall(lambda: f(*x), calls) / kernels
        self.report.found["fifty"] = rows
        say("fifty small kernels: " + ", ".join(f"{k} {v:.2f}" for k, v in rows.items()))

    def jax_wall(self, f: Callable[[], Any], calls: int) -> float:
        last: list[Any] = [None]

        def run() -> None:
            last[0] = f()

        for _ in range(3):
            run()
        self.jax.block_until_ready(last[0])
        times = []
        for _ in range(7):
            begin = time.perf_counter()
            for _ in range(calls):
                run()
            self.jax.block_until_ready(last[0])
            times.append((time.perf_counter() - begin) / calls * 1e6)
        return statistics.median(times)

    def loops(self) -> None:
        """A loop of a thousand trips: captured as such, beside JAX's; and each trip called by itself."""
        mb = self.mb
        n, trips = (6, 8) if self.simulated else (256, 1000)

        def step(xp: Any, s: Any) -> Any:
            p, u = s
            inner = u[1:-1, 1:-1]
            lap = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * inner
            return u, xp.pad(2 * inner - p[1:-1, 1:-1] + 0.1 * lap, 1)

        def ours(k: Any, s: Any) -> Any:
            p, u = s
            new = mb.zeros_like(u)
            inner = u[1:-1, 1:-1]
            lap = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * inner
            new[1:-1, 1:-1] = 2 * inner - p[1:-1, 1:-1] + 0.1 * lap
            return u, new

        data = [self.rng.random((n, n)) for _ in range(2)]
        wave = mb.compile(lambda p, u: mb.fori_loop(0, trips, ours, (p, u)))
        one = mb.compile(lambda p, u: ours(0, (p, u))[1])
        x = [mb.CuArray(a) for a in data]
        expected = tuple(data)
        for _ in range(trips):
            expected = step(np, expected)

        def by_hand() -> Any:
            p, u = x
            for _ in range(trips):
                p, u = u, one(p, u)
            return p, u

        for got in (wave(*x), by_hand()):
            for a, b in zip(got, expected, strict=True):
                np.testing.assert_allclose(self.numpy(a), b, rtol=1e-9, atol=1e-9 * np.abs(b).max())
        rows = {
            "one program": self.wall(lambda: wave(*x), 1 if self.simulated else 5, 5) / trips,
            "a program a trip": self.wall(by_hand, 1 if self.simulated else 2, 5) / trips,
        }
        if self.jax:
            lax, jnp = self.jax.lax, self.jax.numpy
            j = self.jax.jit(lambda p, u: lax.fori_loop(0, trips, lambda k, s: step(jnp, s), (p, u)))
            z = [jnp.asarray(a) for a in data]
            rows["jax"] = self.jax_wall(lambda: j(*z), 5) / trips
        self.report.found["loop_us_a_trip"] = rows
        self.report.say(
            f"a loop of {trips} trips, µs a trip: " + ", ".join(f"{k} {v:.2f}" for k, v in rows.items())
        )

    def calls(self) -> None:
        """What a call costs the host: of one tiny kernel, and of a few; with results that are kept."""
        mb, rows = self.mb, {}
        many = 5 if self.simulated else 1000
        x = mb.CuArray(self.rng.random(16 if self.simulated else 1024))
        f = mb.compile(lambda x: 2 * x + 1)
        rows["compiled"] = self.wall(lambda: f(x), many)
        rows["eager"] = self.wall(lambda: mb.materialize(2 * x + 1), many)
        g = mb.compile(lambda x: _branches(mb, x, x + 1, x + 2, x + 3))
        n = 18 if self.simulated else 64
        u = mb.CuArray(self.rng.random((n, n)))
        rows["compiled, 32 kernels"] = self.wall(lambda: g(u), max(many // 10, 1))
        kept: list[Any] = []
        rows["compiled, 32 kernels, results kept"] = self.wall(lambda: kept.append(g(u)), max(many // 20, 1))
        kept.clear()
        if self.card:
            c = self.card.cupy.asarray(mb.to_numpy(x))
            rows["cupy"] = self.wall(lambda: 2 * c + 1, many)
        if self.jax:
            c = self.jax.numpy.asarray(mb.to_numpy(x))
            j = self.jax.jit(lambda x: 2 * x + 1)
            rows["jax"] = self.jax_wall(lambda: j(c), many)
        self.report.found["calls_us"] = rows
        self.report.say("µs a call: " + ", ".join(f"{k} {v:.2f}" for k, v in rows.items()))

    def concurrency(self) -> None:
        """Four chains of long kernels on few threads: as the graph has them, and one after the other."""
        mb = self.mb
        n = 8 if self.simulated else 2000

        def chain(u: Any) -> Any:
            for _ in range(3):
                for _ in range(8):
                    u = mb.sin(u) * mb.exp(-u * u)
                u = u[::-1] + 0.125  # (another order of elements: another kernel)
            return u

        def four(a: Any, b: Any, c: Any, d: Any) -> Any:
            return chain(a), chain(b), chain(c), chain(d)

        x = [mb.CuArray(self.rng.random(n + k)) for k in range(4)]
        beside, after, alone = mb.compile(four), mb.compile(four), mb.compile(chain)
        program = after.program(*x)
        (group,) = program.runner.segments
        group.after = [[i - 1] if i else [] for i in range(len(group.launches))]
        for a, b in zip(beside(*x), after(*x), strict=True):
            assert np.array_equal(mb.to_numpy(a), mb.to_numpy(b))
        calls = 1 if self.simulated else 50
        rows = {
            "kernels": len(group.launches),
            "one branch alone": self.wall(lambda: alone(x[0]), calls),
            "four, independent": self.wall(lambda: beside(*x), calls),
            "four, in order": self.wall(lambda: after(*x), calls),
            "four, eager": self.wall(lambda: _there(mb, four(*x)), calls),
        }
        if self.card:
            for name, f in (("independent", beside), ("in order", after)):
                rows[f"four, {name}, by events"] = self.events(lambda f=f: f(*x), calls)
        self.report.found["concurrency_us"] = rows
        self.report.say("concurrency, µs: " + ", ".join(f"{k} {v:.1f}" for k, v in rows.items()))

    def events(self, f: Callable[[], Any], calls: int) -> float:
        cuda = self.card.cupy.cuda
        times = []
        for _ in range(7):
            first, last = cuda.Event(), cuda.Event()
            first.record()
            for _ in range(calls):
                f()
            last.record()
            last.synchronize()
            times.append(cuda.get_elapsed_time(first, last) * 1e3 / calls)
        return statistics.median(times)

    def table(self) -> None:
        for level in range(1 if self.simulated else 3):
            for case in cases():
                n = 18 if self.simulated else case.sizes[level]
                if self.simulated and case.name in ("mlp", "softmax", "hdiff"):
                    continue
                self.report.part(f"{case.name} {n}", lambda c=case, n=n, k=level: self.row(c, n, k))

    def row(self, case: Case, n: int, level: int) -> None:
        from benchmarks.gpu._card import Contender

        mb, card = self.mb, self.card
        data = self.data(case, n)
        ways: dict[str, Contender] = {}
        peaks: dict[str, float] = {}
        failed: dict[str, str] = {}
        inputs = sum(x.nbytes for x in data)
        x = [mb.CuArray(a) for a in data]
        f = mb.compile(case.of(mb))
        begin = time.perf_counter()
        program = f.program(*x)
        wanted = None
        if card:
            # (The memory of its temporaries it keeps.)
            peaks["compiled"] = self.peak(lambda: f(*x), case) + program.runner.static_bytes / 1e6
            peaks["eager"] = self.peak(lambda: self.results(case, case.of(mb), x), case)
            theirs = [card.cupy.asarray(a) for a in data]
            peaks["cupy"] = self.peak(lambda: self.results(case, case.of(card.cupy), theirs), case)
        cold = sum(program.seconds.values())
        # Right? The largest by CuPy, for NumPy takes long.
        if level < 2:
            wanted = self.results(case, case.of(np), [a.copy() for a in data])
        else:
            wanted = self.results(case, case.of(card.cupy), [card.cupy.asarray(a) for a in data])
        got = self.results(case, f, [mb.CuArray(a) for a in data])
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(self.numpy(a), self.numpy(b), rtol=1e-9, atol=1e-10)
        del got, wanted
        card.release()
        ways["compiled"] = Contender(lambda: f(*x))
        launched = mb.compile(case.of(mb))
        own = [mb.CuArray(a) for a in data]
        launched(*own)
        for group in launched.program(*own).runner.segments:
            if hasattr(group, "each"):
                group.by_itself = True
        ways["launched"] = Contender(lambda: launched(*own))
        y = [mb.CuArray(a) for a in data]
        eager = case.of(mb)
        ways["eager"] = Contender(lambda: _there(mb, eager(*y)))
        if card:
            z, plain = [card.cupy.asarray(a) for a in data], case.of(card.cupy)
            ways["cupy"] = Contender(lambda: plain(*z))
        if self.jax:
            g = self.jax.jit(case.jax or (lambda *a: case.f(self.jax.numpy, *a)))
            w = [self.jax.numpy.asarray(a) for a in data]
            try:
                compiled = g.lower(*w).compile()
                said = compiled.memory_analysis()
                peaks["jax"] = (said.temp_size_in_bytes + said.output_size_in_bytes) / 1e6
                ways["jax"] = Contender(lambda: compiled(*w), self.jax.block_until_ready)
            except Exception as e:
                failed["jax"] = str(e)[:200]
        found = card.take_turns(
            ways, lambda name, e: failed.update({name: f"{type(e).__name__}: {e}"[:200]}), rounds=7, limit_s=2.5
        )
        row = {
            "program": case.name,
            "n": n,
            "inputs_mb": inputs / 1e6,
            "steps": len(program.plan.steps),
            "kernels": sum(len(getattr(s, "launches", ())) for s in program.runner.segments),
            "us": {k: t.seconds * 1e6 for k, t in found.items()},
            "wall_us": {k: statistics.median(t.wall) * 1e6 for k, t in found.items()},
            "peak_mb": peaks,
            "planned_mb": program.plan.peak_bytes / 1e6,
            "seconds_to_compile": cold,
            "failed": failed,
        }
        del begin
        self.report.found["rows"].append(row)
        us = row["us"]
        text = ", ".join(f"{k} {v:.1f}" for k, v in us.items())
        ratios = ", ".join(f"{k}/compiled {v / us['compiled']:.2f}" for k, v in us.items() if k != "compiled")
        memory = ", ".join(f"{k} {v:.1f}" for k, v in peaks.items())
        what = f"{case.name} {n} ({row['kernels']} kernels)"
        self.report.say(
            f"{what}: µs {text} | {ratios} | peak MB besides inputs: {memory}"
            + (f" | failed: {failed}" if failed else "")
        )

    def peak(self, f: Callable[[], Any], case: Case) -> float:
        """Megabytes that CuPy's pool grew by, of which the results are some."""
        card = self.card
        f()
        card.release()
        pool = card.cupy.get_default_memory_pool()
        before = pool.used_bytes()
        made = f()
        card.synchronize()
        grown = pool.total_bytes() - before
        del made
        return max(grown, 0) / 1e6


def _there(mb: Any, made: Any) -> Any:
    """Results of ours, evaluated."""
    for x in made if isinstance(made, tuple) else (made,):
        if x is not None:
            mb.materialize(x)
    return made


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.gpuprograms", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument(
        "--only",
        default="",
        help="parts by name: check, products, streams, calls, fifty, loops, concurrency, table",
    )
    given = parser.parse_args()
    os.environ["MIRABELLE_CUDA"] = "simulated" if given.simulated else "auto"
    report = Report(given.out, given.seconds)
    bench = Bench(given.simulated, report)
    report.say(f"on {report.found['facts'].get('gpu') or 'a simulated card'}")
    parts = {
        "check": bench.check,
        "products": bench.check_products,
        "streams": bench.check_streams,
        "calls": bench.calls,
        "fifty": bench.replays,
        "loops": bench.loops,
        "concurrency": bench.concurrency,
        "table": bench.table,
    }
    for name, part in parts.items():
        if not given.only or name in given.only:
            report.part(name, part)
            report.write()
    report.say(f"{len(report.found['failures'])} failures")
    report.write()
    return bool(report.found["failures"])


if __name__ == "__main__":
    sys.exit(main())
