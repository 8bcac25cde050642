"""Libraries built ahead of time beside the compiled programs they are made of: time, bits, what they need.

Both get the same arrays and two threads. A library is called by a loop in C, as its users would: what ctypes
takes is not in it.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._measure import store

_LOOP = """#include <stdint.h>
typedef int (*call)(const void *, int, const void *, int, void *, int64_t, int);
int many(call f, const void *a, int n, const void *r, int m, void *w, int64_t bytes, int threads, int64_t times)
{
    for (int64_t i = 0; i < times; i++) {
        int code = f(a, n, r, m, w, bytes, threads);
        if (code)
            return code;
    }
    return 0;
}
"""


def jacobi_2d(A, B):
    for _ in range(10):
        B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
        A[1:-1, 1:-1] = 0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1])


def gemm(alpha, beta, C, A, B):
    C[:] = alpha * A @ B + beta * C


def conjugate_gradient(A, b):
    import mirabelle as mb

    def step(s):
        x, r, p, rs, k = s
        q = A @ p
        a = rs / (p @ q)
        x, r = x + a * p, r - a * q
        new = r @ r
        return x, r, r + new / rs * p, new, k + 1

    start = (mb.zeros_like(b), b * 1.0, b * 1.0, b @ b, mb.asarray(0))
    return mb.while_loop(lambda s: (s[3] > 1e-16) & (s[4] < 500), step, start)[0]


def limited_step(u, dt):
    """A step of Burgers' equation that is smoothed where it has become steep."""
    import mirabelle as mb

    flux = 0.5 * u * u
    v = u * 1.0
    v[1:] = u[1:] - dt * (flux[1:] - flux[:-1])
    steep = mb.max(mb.abs(v[1:] - v[:-1])) > 0.5

    def smoothed(v):
        w = v * 1.0
        w[1:-1] = 0.25 * v[:-2] + 0.5 * v[1:-1] + 0.25 * v[2:]
        return w

    return mb.cond(steep, smoothed, lambda v: v * 1.0, v)


def cases() -> list[tuple[str, Callable[..., Any], list[np.ndarray]]]:
    """Programs with their arguments."""
    import mirabelle as mb
    from mirabelle import dg

    r = np.random.default_rng(1)
    square = r.random((300, 300))
    mesh = dg.box((40, 40), lower=0.0, upper=1.0, periodic=True)
    semi = dg.Semidiscretization(mesh, dg.CompressibleEuler(2), dg.Solver(order=4))

    def start(x, t):
        rho = 1 + 0.2 * mb.sin(2 * np.pi * x[0])
        return rho, 0.1 * rho, 0.2 * rho, 2.5 + 0.025 * rho

    def right_hand_side(u):
        return semi.rhs(u, 0.0)

    return [
        ("jacobi_2d", jacobi_2d, [r.random((400, 400)) for _ in range(2)]),
        ("gemm", gemm, [np.array(1.5), np.array(1.2), *[r.random((300, 300)) for _ in range(3)]]),
        ("conjugate gradient", conjugate_gradient, [square @ square.T + 300 * np.eye(300), r.random(300)]),
        ("branch", limited_step, [np.sin(np.arange(20000.0) / 500), np.array(0.5)]),
        ("dg right-hand side", right_hand_side, [mb.to_numpy(semi.state(start))]),
    ]


class Array(ctypes.Structure):
    """mirabelle_array of the headers."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
    )  # fmt: skip


def described(arrays: Any, keep: list[Any], strided: bool = False) -> Any:
    """Arrays as libraries take them, with their strides if asked for; `keep` holds what they point to."""
    made = (Array * max(len(arrays), 1))()
    for x, to in zip(arrays, made, strict=False):
        shape, strides = [(ctypes.c_int64 * max(x.ndim, 1))(*n) for n in (x.shape, x.strides)]
        keep += [shape, strides]
        to.data, to.rank, to.shape = x.ctypes.data, x.ndim, shape
        to.dtype = ord({"q": "l", "Q": "L"}.get(x.dtype.char, x.dtype.char))
        if strided:
            to.strides = strides
    return made


def run(tiny: bool = False, out: str = "") -> None:
    """Measure all; `tiny` to try the command."""
    import mirabelle as mb

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "loop.c").write_text(_LOOP)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", "loop.so", "loop.c"], cwd=work, check=True)
        many = ctypes.CDLL(work / "loop.so").many
        print(
            f"{'program':20} {'plan us':>9} {'library us':>11} {'ratio':>6} {'bits':>6} {'kB':>6} "
            f"{'build s':>8}"
        )
        for name, f, arguments in cases():
            rows.append(measured(name, f, arguments, work, many, 0.02 if tiny else 0.5))
            row = rows[-1]
            print(
                f"{name:20} {row['plan_us']:9.1f} {row['library_us']:11.1f} "
                f"{row['plan_us'] / row['library_us']:6.2f} "
                f"{'same' if row['same'] else 'OTHER':>6} {row['kB']:6.0f} {row['build_s']:8.2f}",
                flush=True,
            )
    print("Ratio: speed of the library over the plan's, from Python. Goal: at least 0.95, the same bits.")
    if not tiny:
        store("ahead", {"threads": mb.settings.num_threads, "programs": rows}, *([Path(out)] if out else []))


def measured(
    name: str, f: Callable[..., Any], arguments: list[np.ndarray], work: Path, many: Any, seconds: float
) -> dict[str, Any]:
    import mirabelle as mb

    program = mb.compile(f, whole=True).program(*map(mb.HostArray, arguments))
    began = time.perf_counter()
    path = work / f"lib{name.replace(' ', '_').replace('-', '_')}.so"
    library = mb.compiling.build(program, path=path, name="f")
    build = time.perf_counter() - began
    ours = [mb.HostArray(x) for x in arguments]
    given = [np.array(x) for x in arguments]
    results = [np.zeros(x.shape, x.dtype) for x in program.outputs[: len(program.captured.returned)]]
    keep: list[Any] = []
    workspace = np.empty(library.workspace[0], np.uint8)
    loaded = ctypes.CDLL(path).f_call
    passed = (described(given, keep), len(given), described(results, keep), len(results))
    where = (ctypes.c_void_p(workspace.ctypes.data), ctypes.c_int64(workspace.nbytes), 0)

    def native(times: int) -> float:
        began = time.perf_counter()
        code = many(loaded, *passed, *where, ctypes.c_int64(times))
        assert code == 0, code
        return (time.perf_counter() - began) / times

    def plan(times: int) -> float:
        began = time.perf_counter()
        for _ in range(times):
            made = program.run(ours)
        mb.materialize(made) if isinstance(made, mb.AbstractArray) else None
        return (time.perf_counter() - began) / times

    native(1)
    found = program.run(ours)
    flat = [found] if isinstance(found, mb.AbstractArray) else list(found or ())
    same = all(
        mb.to_numpy(a).tobytes() == b.tobytes() for a, b in zip([*flat, *ours], [*results, *given], strict=True)
    )
    once = max(native(3), 1e-7)
    times = max(1, int(seconds / 8 / once))
    pairs = [(plan(times), native(times)) for _ in range(8)]
    return {
        "name": name,
        "plan_us": 1e6 * min(p for p, _ in pairs),
        "library_us": 1e6 * min(n for _, n in pairs),
        "same": same,
        "kB": path.stat().st_size / 1000,
        "build_s": build,
        "workspace_bytes": library.workspace[0],
    }
