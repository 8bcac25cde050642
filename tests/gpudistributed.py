"""DArray[CuArray] on real cards: correctness against NumPy, then times. Started with one rank for each card:

    python -m mirabelle run -n 2 -m tests.gpudistributed --seconds 200 --out DIR

(or `mpiexec -n 2 python -m tests.gpudistributed ...`). Run it with one rank first, into the same folder: the
table of two ranks then has the speed-up. With MIRABELLE_CUDA=simulated and --tiny it runs through anywhere;
NCCL is then one of tests/fakenccl.py.
"""

import argparse
import contextlib
import csv
import faulthandler
import json
import os
import pathlib
import statistics
import sys
import time
import traceback
import warnings

import numpy as np

import mirabelle as mb
from mirabelle.programs import (
    Kronecker,
    domeigen,
    domeigen_with_buffers,
    linear_regression,
    mean_squared_error,
    proximal_gradient_descent,
)
from mirabelle.programs.kronecker_norm import norm_by_entries
from mirabelle.programs.power_iteration import domeigen_recorded

LOCAL = mb.CuArray
D = mb.DArray[LOCAL]


class Run:
    """What was found so far, on rank 0's disk after each step, and how much time is left."""

    def __init__(self, given):
        self.began = time.perf_counter()
        self.given = given
        self.comm = mb.distributed.communicator()
        self.first = self.comm.rank == 0
        self.path = pathlib.Path(given.out) / f"gpu_distributed_{self.comm.size}.json"
        if self.first:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self.content = {"ranks": self.comm.size, "checks": {}, "cases": []}

    def left(self):
        """Seconds left: the same number on all ranks."""
        spent = time.perf_counter() - self.began
        return self.given.seconds - self.comm.bcast_object(spent)

    def say(self, *words):
        if self.first:
            print(f"[{time.perf_counter() - self.began:6.1f}]", *words, flush=True)

    def save(self):
        if self.first:
            self.path.write_text(json.dumps(self.content, indent=1, default=str) + "\n")

    def attempt(self, name, work):
        """Do something all ranks do; a failure is noted, and the rest goes on."""
        began = time.perf_counter()
        try:
            with mb.distributed.together():
                found = work()
        except Exception as e:
            said = f"{type(e).__name__}: {e}"[-1500:]
            self.say("FAILED", name, said[:400])
            if os.environ.get("MIRABELLE_TRACE"):
                traceback.print_exc()
            return None, said
        return found, time.perf_counter() - began


# Correctness


def layouts(size):
    ragged = (12 - sum(range(1, size)), *range(1, size))
    yield "default", None
    yield "columns", mb.distributed.Block(1)
    if size > 1:
        yield "ragged", mb.distributed.Ragged(0, ragged)
    yield "cyclic", mb.distributed.BlockCyclic(0, 2)
    yield "replicated", mb.distributed.Replicated()
    yield "mesh", mb.distributed.Layout(mb.distributed.Block(0), mb.distributed.Block(1), mesh=(size, 1))
    if size == 4:
        yield "square", mb.distributed.Layout(mb.distributed.Block(0), mb.distributed.Block(1), mesh=(2, 2))


def array_checks(layout, name):
    """(what, ours, NumPy's): functions of nothing, each."""
    rng = np.random.default_rng(7)
    a, b = rng.normal(size=(12, 7)), rng.normal(size=(12, 7))
    v, w = rng.normal(size=7), rng.normal(size=12)
    A, B, V, W = D(a, layout=layout), D(b), D(v), D(w)

    yield "values", lambda: A, a
    yield "elementwise", lambda: mb.sin(A) * 2 + B, np.sin(a) * 2 + b
    yield "broadcast row", lambda: A + V, a + v
    yield "broadcast column", lambda: A + W[:, None], a + w[:, None]
    yield "where", lambda: mb.where(A > 0, A, B), np.where(a > 0, a, b)
    yield "interior", lambda: A[1:-1, 1:-1] * 1, a[1:-1, 1:-1]
    yield "stencil", lambda: A[:-2] + A[2:], a[:-2] + a[2:]
    yield (
        "stencil 2-d",
        lambda: A[:-2, 1:-1] + A[2:, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:],
        (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]),
    )
    yield "reversed", lambda: A[::-1], a[::-1]
    yield "steps", lambda: A[::2, ::3] * 1, a[::2, ::3]
    yield "transpose", lambda: A.T + 1, a.T + 1
    yield "a row", lambda: A[3] + A[4], a[3] + a[4]
    yield "a column", lambda: A[:, 2] * 2, a[:, 2] * 2
    for axis in (None, 0, 1):
        yield f"sum {axis}", lambda axis=axis: mb.sum(A, axis=axis), a.sum(axis=axis)
        yield (
            f"max {axis}",
            lambda axis=axis: mb.max(A, axis=axis, keepdims=True),
            a.max(axis=axis, keepdims=True),
        )
        yield f"std {axis}", lambda axis=axis: mb.std(A, axis=axis), a.std(axis=axis)
    yield "argmax", lambda: mb.argmax(A, axis=0), a.argmax(axis=0)
    yield "argmin", lambda: mb.argmin(A), a.argmin()
    yield "any", lambda: mb.any(A > 2, axis=1), (a > 2).any(axis=1)
    yield "all", lambda: mb.all(A > -9), (a > -9).all()
    yield "norm", lambda: mb.norm(W), np.linalg.norm(w)
    yield "cumsum 0", lambda: mb.cumsum(A, axis=0), a.cumsum(axis=0)
    yield "cumsum 1", lambda: mb.cumsum(A, axis=1), a.cumsum(axis=1)
    yield "A @ v", lambda: A @ V, a @ v
    yield "w @ A", lambda: W @ A, w @ a
    yield "w @ w", lambda: W @ W, w @ w
    yield "A.T @ w", lambda: A.T @ W, a.T @ w
    yield "A @ B.T", lambda: A @ B.T, a @ b.T
    yield "A.T @ B", lambda: A.T @ B, a.T @ b
    yield "mask", lambda: A[A > 0], a[a > 0]
    yield "rows by number", lambda: A[[3, 1, 1]], a[[3, 1, 1]]
    yield "elements by number", lambda: A[[3, 1], [2, 5]], a[[3, 1], [2, 5]]
    yield "columns by number", lambda: A[:, [1, 0]], a[:, [1, 0]]
    yield "reshape", lambda: mb.reshape(A, (7, 12)), a.reshape(7, 12)
    yield "ravel", lambda: mb.reshape(A, -1), a.reshape(-1)
    yield "concat", lambda: mb.concat([A, B]), np.concatenate([a, b])
    yield "sort", lambda: mb.sort(A, axis=0), np.sort(a, axis=0)
    yield "sort rows", lambda: mb.sort(A, axis=1), np.sort(a, axis=1)
    yield "roll", lambda: mb.roll(A, 3, axis=0), np.roll(a, 3, axis=0)
    yield "roll both", lambda: mb.roll(A, (2, -1), axis=(0, 1)), np.roll(a, (2, -1), axis=(0, 1))
    yield "diff", lambda: mb.diff(A, axis=0), np.diff(a, axis=0)
    yield "unique", lambda: mb.unique_values(mb.astype(A * 2, int)), np.unique((a * 2).astype(int))
    yield "diagonal", lambda: mb.linalg.diagonal(A), np.diagonal(a)
    for other in (mb.distributed.Block(1), mb.distributed.Replicated(), mb.distributed.BlockCyclic(0, 3)):
        yield f"redistribute to {other}", lambda other=other: mb.distributed.redistribute(A, other) * 2, a * 2
    yield "outer", lambda: W[:, None] * V, np.outer(w, v)
    yield "tensordot", lambda: mb.tensordot(A, B, axes=([0], [0])), np.tensordot(a, b, axes=([0], [0]))
    yield "einsum", lambda: mb.einsum("ij,ik->jk", A, B), np.einsum("ij,ik->jk", a, b)
    yield (
        "solve",
        lambda: mb.linalg.solve(D(a[:7] + np.eye(7) * 9), V),
        np.linalg.solve(a[:7] + np.eye(7) * 9, v),
    )
    z = a + 1j * b
    yield "real", lambda: D(z, layout=layout).real * 1, z.real
    yield "imag", lambda: mb.imag(D(z, layout=layout)[1:]), z[1:].imag
    yield "complex sum", lambda: mb.sum(D(z, layout=layout), axis=0), z.sum(axis=0)

    def written():
        C = mb.copy(A)
        C[1:3] = 5.0
        C[4] = V
        C[:, 1] = W
        C[[0, 2]] = V
        C[C > 1] = 0
        C[1:-1] = C[:-2] + C[2:]
        C += 1
        C.T[1] *= 3
        C[2:3, 3:4] = 9
        return C

    c = a.copy()
    c[1:3] = 5.0
    c[4] = v
    c[:, 1] = w
    c[[0, 2]] = v
    c[c > 1] = 0
    c[1:-1] = c[:-2] + c[2:]
    c += 1
    c.T[1] *= 3
    c[2:3, 3:4] = 9
    yield "writing", written, c


def dtype_checks():
    for dtype in (
        np.float32,
        np.float16,
        np.int8,
        np.int16,
        np.int32,
        np.int64,
        np.uint8,
        np.uint64,
        np.complex64,
        np.complex128,
        np.bool_,
    ):
        x = (np.arange(35).reshape(5, 7) % 5 - (1 if np.dtype(dtype).kind in "ifc" else 0)).astype(dtype)
        name = np.dtype(dtype).name
        yield f"{name} roll", lambda x=x: mb.roll(D(x), 1, axis=0), np.roll(x, 1, axis=0)
        yield f"{name} sum", lambda x=x: mb.sum(D(x), axis=0), x.sum(axis=0)
        yield f"{name} sum of all", lambda x=x: mb.sum(D(x)), x.sum()
        yield f"{name} any", lambda x=x: mb.any(D(x), axis=0), x.any(axis=0)
        if np.dtype(dtype).kind != "c":
            yield f"{name} max", lambda x=x: mb.max(D(x), axis=0), x.max(axis=0)
            yield f"{name} min", lambda x=x: mb.min(D(x)), x.min()
    n = np.array([1.0, np.nan, 3.0, -1.0, 2.0, 0.0])
    yield "max with nan", lambda: mb.max(D(n)), n.max()
    yield "min with nan", lambda: mb.min(D(n), axis=0), n.min()
    yield "empty", lambda: D(np.zeros((0, 3))) + 1, np.zeros((0, 3))
    yield "one row", lambda: D(np.ones((1, 3))) * 2, np.ones((1, 3)) * 2


def other_checks(tiny):
    yield "arange", lambda: mb.arange(20, device=D), np.arange(20)
    yield "linspace", lambda: mb.linspace(0, 1, 11, device=D), np.linspace(0, 1, 11)
    yield "ones", lambda: mb.ones((3, 4), device=D), np.ones((3, 4))
    for size in ((9, 5), (1000,)):
        same = mb.to_numpy(mb.random.default_rng(3, device=LOCAL).normal(size=size))
        yield f"random {size}", lambda size=size: mb.random.default_rng(3, device=D).normal(size=size), same
    x = np.arange(12.0)
    yield "np.sin", lambda: np.sin(D(x)), np.sin(x)
    n = 300 if tiny else 3000
    grid = np.random.default_rng(1).random((n, n))
    yield "jacobi", lambda: jacobi(D(grid), D(grid), 3)[0], jacobi(grid.copy(), grid.copy(), 3)[0]
    m = 96 if tiny else 1500
    a, b = (np.random.default_rng(i).random((m, m)) for i in (2, 3))
    yield "matmul of blocks", lambda: D(a) @ D(b), a @ b
    yield (
        "matmul of columns",
        lambda: D(a, layout=mb.distributed.Block(1)) @ D(b, layout=mb.distributed.Block(0)),
        a @ b,
    )
    yield (
        "matmul by columns",
        lambda: D(a, layout=mb.distributed.Block(1)) @ D(b, layout=mb.distributed.Block(1)),
        a @ b,
    )
    yield "matvec", lambda: D(a) @ D(b[0]), a @ b[0]
    yield "large roll", lambda: mb.roll(D(a), m // 3, axis=0), np.roll(a, m // 3, axis=0)
    yield "large redistribute", lambda: mb.distributed.redistribute(D(a), mb.distributed.Block(1)) + 0, a
    yield "large transpose", lambda: D(a).T + D(b), a.T + b
    yield "large sum", lambda: mb.sum(D(a)), a.sum()
    yield "large sum of columns", lambda: mb.sum(D(a), axis=0), a.sum(axis=0)
    yield "large cumsum", lambda: mb.cumsum(D(a), axis=0), a.cumsum(axis=0)
    yield "large sort", lambda: mb.sort(D(a[0])), np.sort(a[0])
    k, h = a[:6, :6], b[:4, :4]
    yield "Kronecker norm", lambda: norm_by_entries(Kronecker(D(k), D(h))), np.linalg.norm(np.kron(k, h))
    yield "Kronecker factors", lambda: mb.norm(Kronecker(D(k), D(h))), np.linalg.norm(np.kron(k, h))
    yield "power iteration", lambda: domeigen(D(k), 40)[1], np.max(np.abs(np.linalg.eigvals(k)))
    yield (
        "power iteration in place",
        lambda: domeigen_with_buffers(D(k), 40)[1],
        np.max(np.abs(np.linalg.eigvals(k))),
    )
    x, y, w = a[:3, :40], a[:1, :40] + 1, np.zeros((1, 3))
    host = proximal_gradient_descent(
        linear_regression, mean_squared_error, mb.HostArray(w), 0.0, mb.HostArray(x), mb.HostArray(y)
    )
    for layout in (None, mb.distributed.Block(1)):
        yield (
            f"proximal gradient {layout}",
            lambda layout=layout: proximal_gradient_descent(
                linear_regression, mean_squared_error, D(w), 0.0, D(x, layout=layout), D(y, layout=layout)
            )[0],
            mb.to_numpy(host[0]),
        )


def halo_checks(tiny):
    """Stencils of several operands, often enough that their messages and launches are known beforehand."""
    sys.path[:0] = [str(pathlib.Path(__file__).parent)]
    from haloprograms import program, ran

    for seed in range(4 if tiny else 60):
        arrays, statements = program(seed)
        start = np.zeros(arrays[0].shape)
        yield (
            f"stencils {seed}",
            # (some are of float32, whose rounding is compared)
            lambda a=arrays, s=statements, x=start: mb.astype(ran(mb, [D(v) for v in a], D(x), s, 7), "f4"),
            ran(np, arrays, start.copy(), statements, 7).astype("f4"),
        )


def compare(ours, expected):
    """Nothing, or how the values differ."""
    got, expected = np.asarray(mb.to_numpy(ours)), np.asarray(expected)
    if got.shape != expected.shape:
        return f"shape {got.shape}, not {expected.shape}"
    narrow = {"f": 1e-4, "e": 1e-2, "F": 1e-4}
    tolerance = narrow.get(expected.dtype.char, 1e-9)
    if not np.allclose(got, expected, rtol=tolerance, atol=tolerance, equal_nan=True):
        bad = ~np.isclose(got, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
        return f"{int(bad.sum())} of {bad.size} differ: {got[bad][:4]} and not {expected[bad][:4]}"
    return ""


def check(run, until):
    """Everything against NumPy, until so many seconds are left."""
    results = run.content["checks"]
    groups = [("dtypes", dtype_checks()), ("others", other_checks(run.given.tiny))]
    groups.append(("halos met before", halo_checks(run.given.tiny)))
    groups += [(name, array_checks(layout, name)) for name, layout in layouts(run.comm.size)]
    for name, made in (groups[3], *groups[:3], *groups[4:]):
        passed, failed = 0, {}
        if run.left() < until:
            results[name] = "left out: no time"
            continue
        for what, ours, expected in made:
            difference, trouble = run.attempt(
                f"{name}: {what}", lambda ours=ours, expected=expected: compare(ours(), expected)
            )
            said = (
                trouble if difference is None else next(filter(None, run.comm.allgather_object(difference)), "")
            )
            if said:
                failed[what] = said
                run.say(f"WRONG {name}: {what}: {said[:300]}")
            else:
                passed += 1
            if (passed + len(failed)) % 10 == 0 and run.left() < until:
                failed["(time)"] = "the rest was left out"
                break
        results[name] = {"passed": passed, "failed": failed}
        run.say(f"{name}: {passed} passed, {len(failed)} failed")
        run.save()


# Times


def seconds_of(run, work, calls=None, samples=5, limit=8.0):
    """Seconds of a call on the slowest rank: the median of several samples, each of several calls.

    (What comes back is known again from the third time on.)
    """
    for _ in range(4):
        work()
    mb.synchronize()

    def sample(n):
        run.comm.barrier()
        began = time.perf_counter()
        for _ in range(n):
            work()
        mb.synchronize()
        return max(run.comm.allgather_object(time.perf_counter() - began)) / n

    once = sample(1)
    if calls is None:
        calls = 1 if run.given.tiny else max(1, min(1000, int(0.1 / max(once, 1e-6))))
    if once * calls * samples > limit:
        samples = max(2, int(limit / (once * calls)))
    if run.given.tiny:
        samples = 2
    return statistics.median([sample(calls) for _ in range(samples)])


def jacobi(a, b, sweeps):
    for _ in range(sweeps):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])
    return a, b


def filled(shape, dtype=np.float64):
    """Random numbers, drawn where they lie."""
    x = mb.random.default_rng(5, device=D).random(shape, dtype=dtype)
    return mb.materialize(x)


def power_iteration(n, steps, program=domeigen):
    def prepare(run):
        A = filled((n, n))
        return lambda: float(program(A, steps)[1]), steps, 8 * n * n

    return prepare


def recorded_power_iteration(n, steps):
    def prepare(run):
        replay = domeigen_recorded(filled((n, n)))
        return lambda: float(replay(steps)[1]), steps, 8 * n * n

    return prepare


def kronecker_norm(n):
    def prepare(run):
        K = Kronecker(filled((n, n)), filled((n, n)))
        return lambda: float(norm_by_entries(K)), 1, 0

    return prepare


def proximal_gradient(features, count):
    def prepare(run):
        with mb.distributed.use_layout(mb.distributed.Block(1)):
            x, y = filled((features, count)), filled((1, count))
        w = D(np.zeros((1, features)))

        def work():
            mb.materialize(
                proximal_gradient_descent(linear_regression, mean_squared_error, w, 0.0, x, y, lr=1e-3)[0]
            )

        return work, 1, 8 * features * count

    return prepare


def jacobi_sweeps(n):
    def prepare(run):
        a, b = filled((n, n)), filled((n, n))
        return lambda: jacobi(a, b, 1), 2, 2 * 8 * n * n

    return prepare


def compiled_sweeps(n, sweeps):
    """The same as one program of several sweeps."""

    def prepare(run):
        a, b = filled((n, n)), filled((n, n))
        program = mb.compile(jacobi)
        return lambda: program(a, b, sweeps), 2 * sweeps, 2 * 8 * n * n

    return prepare


def product(n, dtype):
    def prepare(run):
        a, b = filled((n, n), dtype), filled((n, n), dtype)
        return lambda: mb.materialize(a @ b), 1, 0

    return prepare


def statement(n):
    """A statement on so many elements on each rank: what it costs beside the local type."""

    def prepare(run):
        x, y = filled((n * run.comm.size,)), filled((n * run.comm.size,))

        def work():
            y[...] = x * 2.0 + y

        return work, 1, 24 * n

    return prepare


def local_statement(n):
    def prepare(run):
        x = LOCAL(np.ones(n))
        y = LOCAL(np.ones(n))

        def work():
            y[...] = x * 2.0 + y

        return work, 1, 24 * n

    return prepare


def reduction(n, read):
    def prepare(run):
        x = filled((n * run.comm.size,))
        if read:
            return lambda: float(mb.sum(x * 2.0)), 1, 8 * n
        return lambda: mb.materialize(mb.sum(x * 2.0)), 1, 8 * n

    return prepare


def local_reduction(n):
    def prepare(run):
        x = LOCAL(np.ones(n))
        return lambda: float(mb.sum(x * 2.0)), 1, 8 * n

    return prepare


def halo(n):
    def prepare(run):
        x = filled((n, n))
        return lambda: x.halo((1, 0)), 1, 8 * n * n

    return prepare


def exchange(nbytes):
    """What the engine itself takes for a message each way between neighbours."""

    def prepare(run):
        filled((run.comm.size,))
        size, rank = run.comm.size, run.comm.rank
        engine = run.comm.carrier(LOCAL)
        if engine is None or size == 1:
            return None
        a, b = (LOCAL._empty((nbytes,), np.dtype(np.uint8)) for _ in range(2))
        after, before = (rank + 1) % size, (rank - 1) % size
        return lambda: engine.exchange({after: a}, {before: b}), 1, nbytes

    return prepare


def allreduce(count):
    def prepare(run):
        filled((run.comm.size,))
        engine = run.comm.carrier(LOCAL)
        if engine is None or run.comm.size == 1:
            return None
        a = LOCAL._upload(np.zeros(count))
        return lambda: engine.allreduce(a, "sum"), 1, 8 * count

    return prepare


def redistribution(n):
    def prepare(run):
        x = filled((n, n))
        return lambda: mb.materialize(mb.distributed.redistribute(x, mb.distributed.Block(1))), 1, 8 * n * n

    return prepare


def cases(tiny):
    """(name, how it is prepared)"""
    grow = (lambda n, small: small) if tiny else (lambda n, small: n)
    yield "statement, 1000 elements", statement(1000)
    yield "statement, 1000 elements, CuArray", local_statement(1000)
    yield "statement, 10^7 elements", statement(grow(10**7, 2000))
    yield "statement, 10^7 elements, CuArray", local_statement(grow(10**7, 2000))
    yield "sum of 1000, read", reduction(1000, True)
    yield "sum of 1000, not read", reduction(1000, False)
    yield "sum of 1000, read, CuArray", local_reduction(1000)
    for n in (32768, 65536):
        yield f"power iteration {n}", power_iteration(grow(n, 40), grow(50, 3))
    yield (
        "power iteration 32768, in place",
        power_iteration(grow(32768, 40), grow(50, 3), domeigen_with_buffers),
    )
    for n in (256, 384):
        yield f"Kronecker norm {n}", kronecker_norm(grow(n, 4))
    yield "proximal gradient 8 x 10^8", proximal_gradient(8, grow(10**8, 200))
    yield "proximal gradient 64 x 10^7", proximal_gradient(grow(64, 3), grow(10**7, 200))
    for n in (8192, 16384, 32768):
        yield f"jacobi 2-d {n}", jacobi_sweeps(grow(n, 64))
    for n in (2048, 8192, 16384):
        yield f"jacobi 2-d {n}, compiled", compiled_sweeps(grow(n, 64), 10)
    for dtype in (np.float32, np.float64):
        yield f"matmul 16384 {np.dtype(dtype).name}", product(grow(16384, 64), dtype)
    for nbytes in (8, 1 << 16, 1 << 20, 1 << 26):
        yield f"exchange of {nbytes} bytes", exchange(grow(nbytes, min(nbytes, 4096)))
    for count in (1, 1 << 17, 1 << 25):
        yield f"allreduce of {count}", allreduce(grow(count, min(count, 100)))
    yield "halo of 16384 x 16384", halo(grow(16384, 64))
    yield "redistribute 16384 x 16384", redistribution(grow(16384, 64))
    if not tiny:
        yield "power iteration 32768, recorded", recorded_power_iteration(32768, 50)


def staged_cases(tiny):
    grow = (lambda n, small: small) if tiny else (lambda n, small: n)
    yield "halo of 16384 x 16384, by the host", halo(grow(16384, 64))
    yield "jacobi 2-d 8192, by the host", jacobi_sweeps(grow(8192, 64))
    yield "sum of 1000, read, by the host", reduction(1000, True)


def measure(run, found):
    for name, prepare in found:
        if run.given.named not in name:
            continue
        if run.left() < 5:
            run.content["cases"].append({"name": name, "failed": "no time"})
            continue
        times = []

        def timed(prepare=prepare, times=times):
            made = prepare(run)
            if made is None:
                return False
            work, per, nbytes = made
            with mb.count() as counters:
                work()
            times.extend((seconds_of(run, work) / per, nbytes, counters))
            return True

        done, trouble = run.attempt(name, timed)
        if done is None:
            run.content["cases"].append({"name": name, "failed": trouble})
        elif done:
            seconds, nbytes, counters = times
            entry = {"name": name, "seconds": seconds, "bytes": nbytes}
            for what in ("launches", "messages", "bytes_sent", "collectives", "temporaries", "transfers"):
                if getattr(counters, what, 0):
                    entry[what] = getattr(counters, what)
            run.content["cases"].append(entry)
            run.say(f"{name:<42} {seconds * 1e6:14.2f} us")
        run.save()


def facts(run):
    """What there is: the card of each rank, NCCL, what MPI says of cards."""
    found = {"mirabelle": mb.__version__, "visible": os.environ.get("CUDA_VISIBLE_DEVICES")}
    driver = LOCAL.driver()
    found["card"] = driver.name
    found["simulated"] = driver.simulated
    if not driver.simulated:
        found["bus"] = driver.device.pci_bus_id
    mb.materialize(D(np.zeros(run.comm.size)) + 1)
    engine = run.comm.carrier(LOCAL)
    found["engine"] = "the host" if engine is None else engine.engine
    if engine is not None and engine.engine == "nccl":
        from mirabelle.backends.nccl import binding

        found["nccl"] = binding.version()
    if run.comm.engine == "mpi":
        from mpi4py import MPI

        from mirabelle.backends.mpi import devices

        found["mpi"] = MPI.Get_library_version()[:60]
        found["MPI reads cards"] = devices.reads_cards()
    return found


def write_table(run):
    """Times beside those of one rank, if they are in the same folder."""
    if not run.first:
        return
    alone = {}
    for path in run.path.parent.glob("gpu_distributed_1.json") if run.comm.size > 1 else ():
        for entry in json.loads(path.read_text())["cases"]:
            alone[entry["name"]] = entry.get("seconds")
    with open(run.path.with_suffix(".csv"), "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["case", "ranks", "microseconds", "one rank", "speed-up"])
        for entry in run.content["cases"]:
            seconds, one = entry.get("seconds"), alone.get(entry["name"])
            if seconds is None:
                table.writerow([entry["name"], run.comm.size, "", "", entry.get("failed", "")[:80]])
                continue
            row = [entry["name"], run.comm.size, f"{seconds * 1e6:.2f}"]
            row += [f"{one * 1e6:.2f}", f"{one / seconds:.2f}"] if one else ["", ""]
            table.writerow(row)
            if one:
                run.say(f"{entry['name']:<42} {one / seconds:6.2f} times as fast as one rank")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=200.0, help="so long in all, about")
    parser.add_argument("--out", default="results", help="the folder for what is found")
    parser.add_argument("--tiny", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--only", choices=("checks", "times"), help="one part only")
    parser.add_argument("--named", default="", help="times of cases alone that have this in their name")
    given = parser.parse_args()
    faulthandler.enable()
    # Nothing that waits for ever costs more than this.
    faulthandler.dump_traceback_later(given.seconds + 60, exit=True)
    run = Run(given)
    with contextlib.ExitStack() as stack:
        if os.environ.get("MIRABELLE_CUDA") == "simulated" and run.comm.size > 1:
            from tests import fakenccl

            stack.enter_context(fakenccl.installed(fakenccl.Processes()))
        warnings.simplefilter("default")
        if given.tiny:
            mb.settings.overlap_size = 100
        found, trouble = run.attempt("facts", lambda: facts(run))
        run.content["facts"] = run.comm.allgather_object(found or trouble)
        for rank, said in enumerate(run.content["facts"]):
            run.say(f"rank {rank}: {said}")
        run.save()
        if given.only != "times":
            check(run, until=0.0 if given.only else given.seconds * 0.55)
        if given.only != "checks":
            measure(run, cases(given.tiny))
            if run.comm.size > 1:
                mb.settings.nccl = False
                run.comm.drop_carriers()
                measure(run, staged_cases(given.tiny))
            write_table(run)
        run.save()
        tried = [c for c in run.content["checks"].values() if isinstance(c, dict)]
        run.say(
            f"checks: {sum(c['passed'] for c in tried)} passed, {sum(len(c['failed']) for c in tried)} failed; "
            f"cases: {sum('seconds' in c for c in run.content['cases'])} measured, "
            f"{sum('failed' in c for c in run.content['cases'])} failed"
        )
    faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main()
