"""Loops over meshes on a card, beside a kernel in CUDA C with atomics: microseconds a call, best of many."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import mirabelle as mb
from benchmarks._measure import store
from benchmarks._table import show
from benchmarks.meshdata import (
    CUBES,
    SIDE,
    elasticity,
    flux,
    laplacian,
    linear_matrix,
    slopes,
    stiffness,
    volumes,
)
from mirabelle import meshdata as md

GEOMETRY = r"""
#define GEOMETRY \
    const double B[NQ][N][DIM] = TABLE; \
    const double W[NQ] = WEIGHTS; \
    int c = blockIdx.x * blockDim.x + threadIdx.x; \
    if (c >= cells) return; \
    double J[DIM][DIM], I[DIM][DIM], det; \
    for (int d = 0; d < DIM; ++d) \
        for (int k = 0; k < DIM; ++k) \
            J[d][k] = X[DIM * T[(DIM + 1) * c + k + 1] + d] - X[DIM * T[(DIM + 1) * c] + d]; \
    INVERSE
#if DIM == 2
#define INVERSE \
    det = J[0][0] * J[1][1] - J[0][1] * J[1][0]; \
    I[0][0] = J[1][1] / det; I[0][1] = -J[0][1] / det; I[1][0] = -J[1][0] / det; I[1][1] = J[0][0] / det;
#else
#define INVERSE \
    for (int i = 0; i < 3; ++i) \
        for (int j = 0; j < 3; ++j) \
            I[i][j] = J[(j + 1) % 3][(i + 1) % 3] * J[(j + 2) % 3][(i + 2) % 3] \
                    - J[(j + 1) % 3][(i + 2) % 3] * J[(j + 2) % 3][(i + 1) % 3]; \
    det = J[0][0] * I[0][0] + J[0][1] * I[1][0] + J[0][2] * I[2][0]; \
    for (int i = 0; i < 3; ++i) for (int j = 0; j < 3; ++j) I[i][j] /= det;
#endif
"""

TEXT = (
    GEOMETRY
    + r"""
extern "C" __global__ void action(int cells, const double* X, const int* T, const int* D, const double* u,
                                  double* y)
{
    GEOMETRY
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

#if DIM == 2
extern "C" __global__ void elasticity(int cells, const double* X, const int* T, const int* D, const double* u,
                                      double* y)
{
    GEOMETRY
    double ul[N][2], yl[N][2];
    #pragma unroll
    for (int k = 0; k < N; ++k)
        for (int i = 0; i < 2; ++i) { ul[k][i] = u[2 * D[N * c + k] + i]; yl[k][i] = 0; }
    #pragma unroll
    for (int q = 0; q < NQ; ++q) {
        double r[2][2] = {}, g[2][2] = {}, s[2][2], h[2][2] = {};
        #pragma unroll
        for (int k = 0; k < N; ++k)
            for (int i = 0; i < 2; ++i) for (int d = 0; d < 2; ++d) r[i][d] += ul[k][i] * B[q][k][d];
        for (int i = 0; i < 2; ++i) for (int e = 0; e < 2; ++e) for (int d = 0; d < 2; ++d)
            g[i][e] += r[i][d] * I[d][e];
        double f = W[q] * fabs(det), trace = g[0][0] + g[1][1];
        for (int i = 0; i < 2; ++i) for (int e = 0; e < 2; ++e)
            s[i][e] = f * (g[i][e] + g[e][i] + (i == e ? trace : 0));
        for (int d = 0; d < 2; ++d) for (int i = 0; i < 2; ++i) for (int e = 0; e < 2; ++e)
            h[d][i] += I[d][e] * s[e][i];
        #pragma unroll
        for (int k = 0; k < N; ++k)
            for (int i = 0; i < 2; ++i) for (int d = 0; d < 2; ++d) yl[k][i] += B[q][k][d] * h[d][i];
    }
    #pragma unroll
    for (int k = 0; k < N; ++k)
        for (int i = 0; i < 2; ++i) atomicAdd(&y[2 * D[N * c + k] + i], yl[k][i]);
}

extern "C" __global__ void matrix(int cells, const double* X, const int* T, const int* S, double* data)
{
    GEOMETRY
    double K[N][N] = {};
    #pragma unroll
    for (int q = 0; q < NQ; ++q) {
        double G[N][2], f = W[q] * fabs(det);
        #pragma unroll
        for (int k = 0; k < N; ++k)
            for (int e = 0; e < 2; ++e) G[k][e] = B[q][k][0] * I[0][e] + B[q][k][1] * I[1][e];
        #pragma unroll
        for (int i = 0; i < N; ++i)
            for (int j = 0; j <= i; ++j) K[i][j] += f * (G[i][0] * G[j][0] + G[i][1] * G[j][1]);
    }
    #pragma unroll
    for (int i = 0; i < N; ++i)
        for (int j = 0; j < N; ++j) atomicAdd(&data[S[(c * N + i) * N + j]], j <= i ? K[i][j] : K[j][i]);
}
#endif
"""
)

VOLUMES = r"""
extern "C" __global__ void slopes(int cells, const double* own, const int* near, const double* xs,
                                  const double* us, double* ss)
{
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= cells) return;
    int t = near[4 * c];
    double x0 = xs[2 * t], y0 = xs[2 * t + 1], u0 = us[t], low = u0, high = u0, gx = 0, gy = 0, size = 0;
    #pragma unroll
    for (int k = 1; k < 4; ++k) {
        t = near[4 * c + k];
        double dx = xs[2 * t] - x0, dy = xs[2 * t + 1] - y0, du = us[t] - u0;
        gx += dx * du; gy += dy * du; size += 0.5 * (dx * dx + dy * dy);
        low = fmin(low, us[t]); high = fmax(high, us[t]);
    }
    double bound = fmin(high - u0, u0 - low), steep = (fabs(gx) + fabs(gy)) / size * own[c];
    double factor = (steep > bound ? bound / fmax(steep, 1e-30) : 1.0) / size;
    ss[2 * c] = gx * factor; ss[2 * c + 1] = gy * factor;
}

extern "C" __global__ void flux(int edges, const double* normal, const double* middle, const int* sides,
                                const double* xs, const double* us, const double* ss, double* r)
{
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= edges) return;
    int a = sides[2 * e], b = sides[2 * e + 1];
    double speed = normal[2 * e] + 0.5 * normal[2 * e + 1];
    int t = speed > 0 ? a : b;
    double dx = middle[2 * e] - xs[2 * t], dy = middle[2 * e + 1] - xs[2 * t + 1];
    double f = speed * (us[t] + ss[2 * t] * dx + ss[2 * t + 1] * dy);
    atomicAdd(&r[a], -f);
    atomicAdd(&r[b], f);
}
"""


def braced(table: Any) -> str:
    """A table as C writes it."""
    if np.ndim(table) == 0:
        return repr(float(table))
    return "{" + ", ".join(braced(row) for row in table) + "}"


# What runs each way, how many cells there are, and the bytes that are read and written at least.
Case = tuple[dict[str, Callable[[], Any]], int, int]


def replayed(run: Callable[[], Any]) -> Callable[[], Any]:
    """What a function does, recorded as a graph."""
    run()
    with mb.capture() as step:
        result = run()

    def replay() -> Any:
        step.replay()
        return result

    return replay


def replayed_by_cupy(run: Callable[[], Any]) -> Callable[[], Any]:
    """The same of CuPy's."""
    import cupy as cp

    run()
    stream = cp.cuda.Stream(non_blocking=True)
    cp.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        result = run()
        graph = stream.end_capture()

    def replay() -> Any:
        graph.launch(stream)
        return result

    return replay


def ways(by_hand: Callable[[], Any], ours: Callable[[bool], Callable[[], Any]]) -> dict[str, Any]:
    return {
        "by hand": by_hand,
        "in order": ours(False),
        "atomics": ours(True),
        "by hand, captured": replayed_by_cupy(by_hand),
        "in order, captured": replayed(ours(False)),
        "atomics, captured": replayed(ours(True)),
    }


def compiled(V: Any, name: str) -> Callable[..., None]:
    """A kernel by hand for the elements of a space: of the number of cells and arrays."""
    import cupy as cp

    points, weights = md.quadrature(V.element.shape, max(2 * V.element.degree - 2, 1))
    text = TEXT.replace("TABLE", braced(V.element.tabulate(points, 1))).replace("WEIGHTS", braced(weights))
    names = {"NQ": len(weights), "N": V.dofs.arity, "DIM": V.dim}
    raw = cp.RawKernel(text, name, options=tuple(f"-D{name}={value}" for name, value in names.items()))
    return lambda n, *arrays: raw(((n + 127) // 128,), (128,), (np.int32(n), *arrays))


def action_case(mesh: Any, degree: int, elastic: bool = False) -> Case:
    import cupy as cp

    V = md.space(mesh, "P", degree, components=2 if elastic else None)
    corners, cells = mesh.closure("cell", "vertex"), mesh.points("cell")
    kernel = elasticity(V) if elastic else laplacian(V)
    u0 = np.random.default_rng(0).standard_normal(V.tree.size)
    x, u = mb.CuArray(mesh.coordinates), md.wrap(V.tree, mb.CuArray(u0))
    raw = compiled(V, "elasticity" if elastic else "action")
    X, T, D = (cp.asarray(a) for a in (mesh.coordinates, corners.target().table, V.dofs.table))
    uc, yc = cp.asarray(u0), cp.zeros(V.tree.size)

    def by_hand() -> Any:
        yc.fill(0)
        raw(cells.size, X, T, D, uc, yc)
        return yc

    def ours(atomics: bool) -> Callable[[], Any]:
        y = V.zeros(array=mb.CuArray)

        def run() -> Any:
            y.parent[...] = 0
            md.loop(cells, kernel, md.READ(x, corners), md.READ(u, V.dofs), md.INC(y, V.dofs), atomics=atomics)
            return y.parent

        return run

    moved = 8 * (2 * V.tree.size + mesh.coordinates.size) + 4 * (T.size + D.size)
    return ways(by_hand, ours), cells.size, moved


def assembly_case(mesh: Any, degree: int) -> Case:
    import cupy as cp

    V = md.space(mesh, "P", degree)
    corners, cells = mesh.closure("cell", "vertex"), mesh.points("cell")
    kernel = linear_matrix if degree == 1 else stiffness(V)
    pattern, x, raw = md.pattern(V.dofs), mb.CuArray(mesh.coordinates), compiled(V, "matrix")
    slots = pattern.matrix().dofs.table
    X, T, S = (cp.asarray(a) for a in (mesh.coordinates, corners.target().table, slots))
    data = cp.zeros(pattern.matrix().data.shape[0])

    def by_hand() -> Any:
        data.fill(0)
        raw(cells.size, X, T, S, data)
        return data

    def ours(atomics: bool) -> Callable[[], Any]:
        A = pattern.matrix(array=mb.CuArray)

        def run() -> Any:
            A.data[...] = 0
            md.loop(cells, kernel, md.READ(x, corners), md.INC(A.data, A.dofs), atomics=atomics)
            return A.data

        return run

    moved = 8 * (data.size + mesh.coordinates.size) + 4 * (T.size + S.size)
    return ways(by_hand, ours), cells.size, moved


def volume_case(mesh: Any) -> Case:
    import cupy as cp

    given = volumes(mesh)
    own, near, xs, us, normal, middle, sides = (cp.asarray(a) for a in given)
    cells, edges = mesh.points("cell"), mesh.points("edge")
    slopes_by_hand, flux_by_hand = (cp.RawKernel(VOLUMES, name) for name in ("slopes", "flux"))
    ss, r = cp.zeros((cells.size, 2)), cp.zeros(cells.size)

    def by_hand() -> Any:
        r.fill(0)
        n, m = cells.size, edges.size
        slopes_by_hand(((n + 127) // 128,), (128,), (np.int32(n), own, near, xs, us, ss))
        flux_by_hand(((m + 127) // 128,), (128,), (np.int32(m), normal, middle, sides, xs, us, ss, r))
        return r

    around, beside = md.Dofs(cells, given[1], cells.size), md.Dofs(edges, given[6], cells.size)
    a_own, a_xs, a_us, a_normal, a_middle = (mb.CuArray(given[i]) for i in (0, 2, 3, 4, 5))

    def ours(atomics: bool) -> Callable[[], Any]:
        a_ss, a_r = mb.CuArray(np.zeros((cells.size, 2))), mb.CuArray(np.zeros(cells.size))

        def run() -> Any:
            a_r[...] = 0
            md.loop(cells, slopes, md.READ(a_own), md.READ(a_xs, around), md.READ(a_us, around), md.WRITE(a_ss))
            md.loop(
                edges, flux, md.READ(a_normal), md.READ(a_middle), md.READ(a_xs, beside), md.READ(a_us, beside),
                md.READ(a_ss, beside), md.INC(a_r, beside), atomics=atomics,
            )  # fmt: skip
            return a_r

        return run

    # (The slopes are written, and read by the second loop.)
    moved = 8 * (6 * cells.size + 2 * ss.size + normal.size + middle.size) + 4 * (near.size + sides.size)
    return ways(by_hand, ours), cells.size, moved


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
    import cupy as cp

    square, cube = md.unit_square(SIDE), md.unit_cube(CUBES)
    cases: dict[str, Callable[[], Case]] = {
        "P1 action, triangles": lambda: action_case(square, 1),
        "P2 action, triangles": lambda: action_case(square, 2),
        "P3 action, triangles": lambda: action_case(square, 3),
        "P2 elasticity, triangles": lambda: action_case(square, 2, elastic=True),
        "P1 assembly, triangles": lambda: assembly_case(square, 1),
        "P2 assembly, triangles": lambda: assembly_case(square, 2),
        "finite volumes, triangles": lambda: volume_case(square),
        "P1 action, tetrahedra": lambda: action_case(cube, 1),
        "P2 action, tetrahedra": lambda: action_case(cube, 2),
    }
    record, table = [], []
    for name, make in cases.items():
        if only not in name:
            continue
        calls, n, moved = make()
        wanted = calls["by hand"]().get()
        for how in list(calls)[1:]:
            got = calls[how]()
            cp.cuda.Device().synchronize()
            found = got.get() if isinstance(got, cp.ndarray) else mb.to_numpy(got)
            error = np.abs(found - wanted).max() / np.abs(wanted).max()
            assert error < 1e-11, (name, how, error)
        times = {how: timed(call, rounds) for how, call in calls.items()}
        record.append(
            {"case": name, "cells": n, "least_bytes": moved, **{f"{k} s": t for k, t in times.items()}}
        )
        row = [f"{t * 1e6:.1f}" for t in times.values()]
        hand = times["by hand, captured"]
        ratios = [f"{hand / times[how]:.2f}" for how in ("in order, captured", "atomics, captured")]
        table.append([name, f"{n:,}", *row, *ratios, f"{moved / times['atomics, captured'] / 1e9:.0f}"])
        print("  ".join(table[-1]), flush=True)
    show(
        "Loops over meshes on a card: microseconds, best",
        [
            "loop",
            "cells",
            "CUDA C",
            "in order",
            "atomics",
            "CUDA C, captured",
            "in order, captured",
            "atomics, captured",
            "times C, in order",
            "times C, atomics",
            "GB/s (least bytes), atomics",
        ],
        table,
    )
    if not only:
        card = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
        store("gpu_meshdata", {"card": card, "cases": record})
