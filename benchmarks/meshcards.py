"""Loops over meshes on a card, beside a kernel in CUDA C with atomics: microseconds a call, best of many."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import mirabelle as mb
from benchmarks._measure import store
from benchmarks._table import show
from benchmarks.meshdata import CUBES, SIDE, laplacian
from mirabelle import meshdata as md

TEXT = r"""
extern "C" __global__ void action(int cells, const double* X, const int* T, const int* D, const double* u,
                                  double* y)
{
    const double B[NQ][N][DIM] = TABLE;
    const double W[NQ] = WEIGHTS;
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= cells) return;
    double J[DIM][DIM], I[DIM][DIM], det;
    for (int d = 0; d < DIM; ++d)
        for (int k = 0; k < DIM; ++k)
            J[d][k] = X[DIM * T[(DIM + 1) * c + k + 1] + d] - X[DIM * T[(DIM + 1) * c] + d];
#if DIM == 2
    det = J[0][0] * J[1][1] - J[0][1] * J[1][0];
    I[0][0] = J[1][1] / det; I[0][1] = -J[0][1] / det; I[1][0] = -J[1][0] / det; I[1][1] = J[0][0] / det;
#else
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            I[i][j] = J[(j + 1) % 3][(i + 1) % 3] * J[(j + 2) % 3][(i + 2) % 3]
                    - J[(j + 1) % 3][(i + 2) % 3] * J[(j + 2) % 3][(i + 1) % 3];
    det = J[0][0] * I[0][0] + J[0][1] * I[1][0] + J[0][2] * I[2][0];
    for (int i = 0; i < 3; ++i) for (int j = 0; j < 3; ++j) I[i][j] /= det;
#endif
    double ul[N], yl[N];
    #pragma unroll
    for (int k = 0; k < N; ++k) { ul[k] = u[D[N * c + k]]; yl[k] = 0; }
    #pragma unroll
    for (int q = 0; q < NQ; ++q) {
        double g[DIM] = {}, p[DIM] = {}, h[DIM] = {};
        #pragma unroll
        for (int k = 0; k < N; ++k)
            for (int d = 0; d < DIM; ++d) g[d] += B[q][k][d] * ul[k];
        for (int e = 0; e < DIM; ++e) for (int d = 0; d < DIM; ++d) p[e] += I[d][e] * g[d];
        for (int d = 0; d < DIM; ++d) for (int e = 0; e < DIM; ++e) h[d] += W[q] * fabs(det) * I[d][e] * p[e];
        #pragma unroll
        for (int k = 0; k < N; ++k)
            for (int d = 0; d < DIM; ++d) yl[k] += B[q][k][d] * h[d];
    }
    #pragma unroll
    for (int k = 0; k < N; ++k) atomicAdd(&y[D[N * c + k]], yl[k]);
}
"""


def braced(table: Any) -> str:
    """A table as C writes it."""
    if np.ndim(table) == 0:
        return repr(float(table))
    return "{" + ", ".join(braced(row) for row in table) + "}"


def case(mesh: Any, degree: int) -> tuple[dict[str, Callable[[], Any]], int, int]:
    import cupy as cp

    V = md.space(mesh, "P", degree)
    corners, cells, kernel = mesh.closure("cell", "vertex"), mesh.points("cell"), laplacian(V)
    u0 = np.random.default_rng(0).standard_normal(V.tree.size)
    x, u = mb.CuArray(mesh.coordinates), md.wrap(V.tree, mb.CuArray(u0))
    ys = [V.zeros(array=mb.CuArray) for _ in range(2)]
    points, weights = md.quadrature(V.element.shape, max(2 * degree - 2, 1))
    text = TEXT.replace("TABLE", braced(V.element.tabulate(points, 1))).replace("WEIGHTS", braced(weights))
    names = {"NQ": len(weights), "N": V.dofs.arity, "DIM": V.dim}
    options = tuple(f"-D{name}={value}" for name, value in names.items())
    raw = cp.RawKernel(text, "action", options=options)
    X, T, D = (cp.asarray(a) for a in (mesh.coordinates, corners.target().table, V.dofs.table))
    uc, yc = cp.asarray(u0), cp.zeros(V.tree.size)

    def by_hand() -> Any:
        yc.fill(0)
        raw(((cells.size + 127) // 128,), (128,), (np.int32(cells.size), X, T, D, uc, yc))
        return yc

    def ours(atomics: bool) -> Callable[[], Any]:
        y = ys[atomics]

        def run() -> Any:
            y.parent[...] = 0
            md.loop(cells, kernel, md.READ(x, corners), md.READ(u, V.dofs), md.INC(y, V.dofs), atomics=atomics)
            return y.parent

        return run

    def replayed(atomics: bool) -> Callable[[], Any]:
        run = ours(atomics)
        run()
        with mb.capture() as step:
            run()

        def replay() -> Any:
            step.replay()
            return ys[atomics].parent

        return replay

    moved = 8 * (2 * V.tree.size + mesh.coordinates.size) + 4 * (T.size + D.size)
    return (
        {
            "by hand": by_hand,
            "in order": ours(False),
            "atomics": ours(True),
            "in order, captured": replayed(False),
            "atomics, captured": replayed(True),
        },
        cells.size,
        moved,
    )


def timed(call: Callable[[], Any], rounds: int) -> float:
    import cupy as cp

    best = float("inf")
    for _ in range(rounds):
        cp.cuda.Device().synchronize()
        t = time.perf_counter()
        for _ in range(20):
            call()
        cp.cuda.Device().synchronize()
        best = min(best, (time.perf_counter() - t) / 20)
    return best


def run_card(only: str, rounds: int) -> None:
    square, cube = md.unit_square(SIDE), md.unit_cube(CUBES)
    record, table = [], []
    for name, mesh, degree in (
        ("P1 action, triangles", square, 1),
        ("P2 action, triangles", square, 2),
        ("P3 action, triangles", square, 3),
        ("P1 action, tetrahedra", cube, 1),
        ("P2 action, tetrahedra", cube, 2),
    ):
        if only not in name:
            continue
        calls, n, moved = case(mesh, degree)
        wanted = calls["by hand"]().get()
        for how in list(calls)[1:]:
            error = np.abs(mb.to_numpy(calls[how]()) - wanted).max() / np.abs(wanted).max()
            assert error < 1e-12, (name, how, error)
        times = {how: timed(call, rounds) for how, call in calls.items()}
        record.append(
            {"case": name, "cells": n, "least_bytes": moved, **{f"{k} s": t for k, t in times.items()}}
        )
        row = [f"{t * 1e6:.0f}" for t in times.values()]
        ratios = [f"{times['by hand'] / times[how]:.2f}" for how in ("in order, captured", "atomics, captured")]
        table.append([name, f"{n:,}", *row, *ratios, f"{moved / times['in order, captured'] / 1e9:.0f}"])
        print("  ".join(table[-1]), flush=True)
    show(
        "Loops over meshes on a card: microseconds, best",
        [
            "loop",
            "cells",
            "CUDA C",
            "in order",
            "atomics",
            "in order, captured",
            "atomics, captured",
            "times C, in order",
            "times C, atomics",
            "GB/s (least bytes)",
        ],
        table,
    )
    if not only:
        import cupy as cp

        card = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
        store("gpu_meshdata", {"card": card, "cases": record})
