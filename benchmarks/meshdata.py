"""Loops over meshes beside loops written by hand: finite element actions, assembly, finite volumes.

    python -m benchmarks meshdata              # beside Numba (one thread: CPU seconds; two: time)
    python -m benchmarks meshdata --array CuArray   # beside CUDA C with atomics, on a card

The loops by hand are what a good user of Numba (or CuPy's RawKernel) writes for these meshes: tables as
constants, loops over constant ranges (none where elements are linear), additions where they fall. Both work on
one mesh and one table, by the same formulas.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import mirabelle as mb
from benchmarks import meshskfem
from benchmarks._measure import store
from benchmarks._table import show
from mirabelle import meshdata as md
from mirabelle.backends.host import threads

SIDE, CUBES = 500, 32  # 500 000 triangles, 196 608 tetrahedra


# Local kernels


def laplacian(V: Any) -> Callable[..., None]:
    """The action of the Laplacian, geometry computed in each cell."""
    shape, dim = V.element.shape, V.dim
    points, weights = md.quadrature(shape, max(2 * V.element.degree - 2, 1))
    gradients = V.element.tabulate(points, 1)
    corners = np.concatenate([-np.ones((1, dim)), np.eye(dim)])

    def action(x, u, y):
        J = x.T @ corners
        inverse, scale = np.linalg.inv(J), abs(np.linalg.det(J))
        for q in range(len(weights)):
            g = gradients[q].T @ u
            y += gradients[q] @ ((weights[q] * scale) * (inverse @ (inverse.T @ g)))

    return action


def turned(x):
    """The gradients of linear elements on a triangle times twice its area, and what a product of two takes."""
    b, d = x[1] - x[0], x[2] - x[0]
    g = np.array([[b[1] - d[1], d[0] - b[0]], [d[1], -d[0]], [-b[1], b[0]]])
    return g, 0.5 / abs(b[0] * d[1] - d[0] * b[1])


def linear_action(x, u, y):
    g, s = turned(x)
    y += s * (g @ (g.T @ u))


def linear_matrix(x, A):
    g, s = turned(x)
    A += (s * (g @ g.T)).reshape(A.shape)


def stiffness(V: Any) -> Callable[..., None]:
    """The matrix of the Laplacian."""
    points, weights = md.quadrature(V.element.shape, max(2 * V.element.degree - 2, 1))
    gradients = V.element.tabulate(points, 1)
    corners = np.concatenate([-np.ones((1, V.dim)), np.eye(V.dim)])

    def matrix(x, A):
        J = x.T @ corners
        inverse, scale = np.linalg.inv(J), abs(np.linalg.det(J))
        metric = inverse @ inverse.T * scale
        for q in range(len(weights)):
            A += (gradients[q] @ (weights[q] * metric) @ gradients[q].T).reshape(A.shape)

    return matrix


def elasticity(V: Any) -> Callable[..., None]:
    """The action of linear elasticity (Lame's numbers 1 and 1)."""
    points, weights = md.quadrature(V.element.shape, max(2 * V.element.degree - 2, 1))
    gradients = V.element.tabulate(points, 1)
    corners = np.concatenate([-np.ones((1, V.dim)), np.eye(V.dim)])
    one = np.eye(V.dim)

    def action(x, u, y):
        J = x.T @ corners
        inverse, scale = np.linalg.inv(J), abs(np.linalg.det(J))
        for q in range(len(weights)):
            G = (u.T @ gradients[q]) @ inverse
            stress = G + G.T + (G[0, 0] + G[1, 1]) * one
            y += gradients[q] @ (inverse @ ((weights[q] * scale) * stress))

    return action


# By hand


def by_hand(V: Any) -> Callable[..., None]:
    """The Laplacian's action in Numba."""
    import numba

    dim, n = V.dim, V.dofs.arity
    points, weights = md.quadrature(V.element.shape, max(2 * V.element.degree - 2, 1))
    B = np.ascontiguousarray(V.element.tabulate(points, 1))
    w, nq = weights.copy(), len(weights)

    if dim == 2:

        @numba.njit(error_model="numpy", nogil=True)
        def action(X, T, D, u, y):
            ul, yl = np.empty(n), np.empty(n)
            for c in range(T.shape[0]):
                a, b, d = T[c, 0], T[c, 1], T[c, 2]
                j00, j01 = X[b, 0] - X[a, 0], X[d, 0] - X[a, 0]
                j10, j11 = X[b, 1] - X[a, 1], X[d, 1] - X[a, 1]
                det = j00 * j11 - j01 * j10
                s, scale = 1 / det, abs(det)
                i00, i01, i10, i11 = j11 * s, -j01 * s, -j10 * s, j00 * s
                m00, m01 = i00 * i00 + i01 * i01, i00 * i10 + i01 * i11
                m11 = i10 * i10 + i11 * i11
                for k in range(n):
                    ul[k] = u[D[c, k]]
                    yl[k] = 0.0
                for q in range(nq):
                    g0 = g1 = 0.0
                    for k in range(n):
                        g0 += B[q, k, 0] * ul[k]
                        g1 += B[q, k, 1] * ul[k]
                    f = w[q] * scale
                    h0, h1 = f * (m00 * g0 + m01 * g1), f * (m01 * g0 + m11 * g1)
                    for k in range(n):
                        yl[k] += B[q, k, 0] * h0 + B[q, k, 1] * h1
                for k in range(n):
                    y[D[c, k]] += yl[k]

        return action  # type: ignore[no-any-return]

    @numba.njit(error_model="numpy", nogil=True)
    def action3(X, T, D, u, y):
        ul, yl = np.empty(n), np.empty(n)
        for c in range(T.shape[0]):
            o = T[c, 0]
            a0, a1, a2 = X[T[c, 1], 0] - X[o, 0], X[T[c, 1], 1] - X[o, 1], X[T[c, 1], 2] - X[o, 2]
            b0, b1, b2 = X[T[c, 2], 0] - X[o, 0], X[T[c, 2], 1] - X[o, 1], X[T[c, 2], 2] - X[o, 2]
            d0, d1, d2 = X[T[c, 3], 0] - X[o, 0], X[T[c, 3], 1] - X[o, 1], X[T[c, 3], 2] - X[o, 2]
            p0, p1, p2 = b1 * d2 - b2 * d1, b2 * d0 - b0 * d2, b0 * d1 - b1 * d0
            r0, r1, r2 = d1 * a2 - d2 * a1, d2 * a0 - d0 * a2, d0 * a1 - d1 * a0
            t0, t1, t2 = a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0
            det = a0 * p0 + a1 * p1 + a2 * p2
            s = abs(det) / (det * det)
            m00, m01, m02 = (
                p0 * p0 + p1 * p1 + p2 * p2,
                p0 * r0 + p1 * r1 + p2 * r2,
                p0 * t0 + p1 * t1 + p2 * t2,
            )
            m11, m12, m22 = (
                r0 * r0 + r1 * r1 + r2 * r2,
                r0 * t0 + r1 * t1 + r2 * t2,
                t0 * t0 + t1 * t1 + t2 * t2,
            )
            for k in range(n):
                ul[k] = u[D[c, k]]
                yl[k] = 0.0
            for q in range(nq):
                g0 = g1 = g2 = 0.0
                for k in range(n):
                    g0 += B[q, k, 0] * ul[k]
                    g1 += B[q, k, 1] * ul[k]
                    g2 += B[q, k, 2] * ul[k]
                f = w[q] * s
                h0 = f * (m00 * g0 + m01 * g1 + m02 * g2)
                h1 = f * (m01 * g0 + m11 * g1 + m12 * g2)
                h2 = f * (m02 * g0 + m12 * g1 + m22 * g2)
                for k in range(n):
                    yl[k] += B[q, k, 0] * h0 + B[q, k, 1] * h1 + B[q, k, 2] * h2
            for k in range(n):
                y[D[c, k]] += yl[k]

    return action3  # type: ignore[no-any-return]


def p1_by_hand(dim: int) -> Callable[..., None]:
    """The Laplacian's action of linear elements in Numba: gradients are constant, so nobody writes loops."""
    import numba

    if dim == 2:

        @numba.njit(error_model="numpy", nogil=True)
        def action(X, T, D, u, y):
            for c in range(T.shape[0]):
                a, b, d = T[c, 0], T[c, 1], T[c, 2]
                j00, j01 = X[b, 0] - X[a, 0], X[d, 0] - X[a, 0]
                j10, j11 = X[b, 1] - X[a, 1], X[d, 1] - X[a, 1]
                s = 0.5 / abs(j00 * j11 - j01 * j10)
                bx, by, dx, dy = j11, -j01, -j10, j00
                ax, ay = -bx - dx, -by - dy
                i, j, k = D[c, 0], D[c, 1], D[c, 2]
                gx, gy = ax * u[i] + bx * u[j] + dx * u[k], ay * u[i] + by * u[j] + dy * u[k]
                y[i] += s * (ax * gx + ay * gy)
                y[j] += s * (bx * gx + by * gy)
                y[k] += s * (dx * gx + dy * gy)

        return action  # type: ignore[no-any-return]

    @numba.njit(error_model="numpy", nogil=True)
    def action3(X, T, D, u, y):
        for c in range(T.shape[0]):
            o = T[c, 0]
            a0, a1, a2 = X[T[c, 1], 0] - X[o, 0], X[T[c, 1], 1] - X[o, 1], X[T[c, 1], 2] - X[o, 2]
            b0, b1, b2 = X[T[c, 2], 0] - X[o, 0], X[T[c, 2], 1] - X[o, 1], X[T[c, 2], 2] - X[o, 2]
            d0, d1, d2 = X[T[c, 3], 0] - X[o, 0], X[T[c, 3], 1] - X[o, 1], X[T[c, 3], 2] - X[o, 2]
            p0, p1, p2 = b1 * d2 - b2 * d1, b2 * d0 - b0 * d2, b0 * d1 - b1 * d0
            r0, r1, r2 = d1 * a2 - d2 * a1, d2 * a0 - d0 * a2, d0 * a1 - d1 * a0
            t0, t1, t2 = a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0
            s = 1 / (6 * abs(a0 * p0 + a1 * p1 + a2 * p2))
            o0, o1, o2 = -p0 - r0 - t0, -p1 - r1 - t1, -p2 - r2 - t2
            h, i, j, k = D[c, 0], D[c, 1], D[c, 2], D[c, 3]
            g0 = s * (o0 * u[h] + p0 * u[i] + r0 * u[j] + t0 * u[k])
            g1 = s * (o1 * u[h] + p1 * u[i] + r1 * u[j] + t1 * u[k])
            g2 = s * (o2 * u[h] + p2 * u[i] + r2 * u[j] + t2 * u[k])
            y[h] += o0 * g0 + o1 * g1 + o2 * g2
            y[i] += p0 * g0 + p1 * g1 + p2 * g2
            y[j] += r0 * g0 + r1 * g1 + r2 * g2
            y[k] += t0 * g0 + t1 * g1 + t2 * g2

    return action3  # type: ignore[no-any-return]


def p1_matrix_by_hand() -> Callable[..., None]:
    """The Laplacian's matrix of linear triangles in Numba."""
    import numba

    @numba.njit(error_model="numpy", nogil=True)
    def matrix(X, T, slots, data):
        for c in range(T.shape[0]):
            a, b, d = T[c, 0], T[c, 1], T[c, 2]
            j00, j01 = X[b, 0] - X[a, 0], X[d, 0] - X[a, 0]
            j10, j11 = X[b, 1] - X[a, 1], X[d, 1] - X[a, 1]
            s = 0.5 / abs(j00 * j11 - j01 * j10)
            bx, by, dx, dy = j11, -j01, -j10, j00
            ax, ay = -bx - dx, -by - dy
            ab, ad, bd = s * (ax * bx + ay * by), s * (ax * dx + ay * dy), s * (bx * dx + by * dy)
            data[slots[c, 0]] += s * (ax * ax + ay * ay)
            data[slots[c, 1]] += ab
            data[slots[c, 2]] += ad
            data[slots[c, 3]] += ab
            data[slots[c, 4]] += s * (bx * bx + by * by)
            data[slots[c, 5]] += bd
            data[slots[c, 6]] += ad
            data[slots[c, 7]] += bd
            data[slots[c, 8]] += s * (dx * dx + dy * dy)

    return matrix  # type: ignore[no-any-return]


def matrix_by_hand(V: Any) -> Callable[..., None]:
    """The Laplacian's matrix in Numba, into known places."""
    import numba

    n = V.dofs.arity
    points, weights = md.quadrature(V.element.shape, max(2 * V.element.degree - 2, 1))
    B = np.ascontiguousarray(V.element.tabulate(points, 1))
    w, nq = weights.copy(), len(weights)

    @numba.njit(error_model="numpy", nogil=True)
    def matrix(X, T, slots, data):
        for c in range(T.shape[0]):
            a, b, d = T[c, 0], T[c, 1], T[c, 2]
            j00, j01 = X[b, 0] - X[a, 0], X[d, 0] - X[a, 0]
            j10, j11 = X[b, 1] - X[a, 1], X[d, 1] - X[a, 1]
            det = j00 * j11 - j01 * j10
            s = abs(det) / (det * det)
            m00, m01, m11 = (
                (j11 * j11 + j01 * j01) * s,
                -(j11 * j10 + j01 * j00) * s,
                (j10 * j10 + j00 * j00) * s,
            )
            for i in range(n):
                for j in range(n):
                    t = 0.0
                    for q in range(nq):
                        t += w[q] * (
                            B[q, i, 0] * (m00 * B[q, j, 0] + m01 * B[q, j, 1])
                            + B[q, i, 1] * (m01 * B[q, j, 0] + m11 * B[q, j, 1])
                        )
                    data[slots[c, i * n + j]] += t

    return matrix  # type: ignore[no-any-return]


def elasticity_by_hand(V: Any) -> Callable[..., None]:
    """Linear elasticity's action in Numba."""
    import numba

    n = V.dofs.arity
    points, weights = md.quadrature(V.element.shape, max(2 * V.element.degree - 2, 1))
    B = np.ascontiguousarray(V.element.tabulate(points, 1))
    w, nq = weights.copy(), len(weights)

    @numba.njit(error_model="numpy", nogil=True)
    def action(X, T, D, u, y):
        ul, yl = np.empty((n, 2)), np.empty((n, 2))
        for c in range(T.shape[0]):
            a, b, d = T[c, 0], T[c, 1], T[c, 2]
            j00, j01 = X[b, 0] - X[a, 0], X[d, 0] - X[a, 0]
            j10, j11 = X[b, 1] - X[a, 1], X[d, 1] - X[a, 1]
            det = j00 * j11 - j01 * j10
            s, scale = 1 / det, abs(det)
            i00, i01, i10, i11 = j11 * s, -j01 * s, -j10 * s, j00 * s
            for k in range(n):
                t = D[c, k]
                ul[k, 0], ul[k, 1] = u[2 * t], u[2 * t + 1]
                yl[k, 0], yl[k, 1] = 0.0, 0.0
            for q in range(nq):
                r00 = r01 = r10 = r11 = 0.0
                for k in range(n):
                    r00 += ul[k, 0] * B[q, k, 0]
                    r01 += ul[k, 0] * B[q, k, 1]
                    r10 += ul[k, 1] * B[q, k, 0]
                    r11 += ul[k, 1] * B[q, k, 1]
                g00, g01 = r00 * i00 + r01 * i10, r00 * i01 + r01 * i11
                g10, g11 = r10 * i00 + r11 * i10, r10 * i01 + r11 * i11
                f, trace = w[q] * scale, g00 + g11
                s00, s01, s11 = f * (2 * g00 + trace), f * (g01 + g10), f * (2 * g11 + trace)
                h00, h01 = i00 * s00 + i01 * s01, i00 * s01 + i01 * s11
                h10, h11 = i10 * s00 + i11 * s01, i10 * s01 + i11 * s11
                for k in range(n):
                    yl[k, 0] += B[q, k, 0] * h00 + B[q, k, 1] * h10
                    yl[k, 1] += B[q, k, 0] * h01 + B[q, k, 1] * h11
            for k in range(n):
                t = D[c, k]
                y[2 * t] += yl[k, 0]
                y[2 * t + 1] += yl[k, 1]

    return action  # type: ignore[no-any-return]


# A finite volume step, with limited slopes, of advection


def slopes(own, xs, us, s):
    """At a cell: a gradient of what its neighbours have, limited."""
    gx, gy, size = 0.0, 0.0, 0.0
    low, high = us[0], us[0]
    for k in range(1, 4):
        dx, dy, du = xs[k, 0] - xs[0, 0], xs[k, 1] - xs[0, 1], us[k] - us[0]
        gx, gy, size = gx + dx * du, gy + dy * du, size + 0.5 * (dx * dx + dy * dy)
        low, high = np.minimum(low, us[k]), np.maximum(high, us[k])
    bound = np.minimum(high - us[0], us[0] - low)
    steep = (abs(gx) + abs(gy)) / size * own
    factor = np.where(steep > bound, bound / np.maximum(steep, 1e-30), 1.0) / size
    s[0], s[1] = gx * factor, gy * factor


def flux(normal, middle, xs, us, ss, r):
    """At an edge: the upwind value of both sides, carried along (1, 1/2)."""
    left = us[0] + ss[0, 0] * (middle[0] - xs[0, 0]) + ss[0, 1] * (middle[1] - xs[0, 1])
    right = us[1] + ss[1, 0] * (middle[0] - xs[1, 0]) + ss[1, 1] * (middle[1] - xs[1, 1])
    speed = normal[0] + 0.5 * normal[1]
    f = speed * np.where(speed > 0, left, right)
    r[0] += -f
    r[1] += f


def volume_by_hand() -> Callable[..., None]:
    import numba

    @numba.njit(error_model="numpy", nogil=True)
    def step(own, near, sides, normal, middle, xs, us, ss, r):
        for c in range(len(own)):
            gx = gy = size = 0.0
            low = high = us[near[c, 0]]
            x0, y0, u0 = xs[near[c, 0], 0], xs[near[c, 0], 1], us[near[c, 0]]
            for k in range(1, 4):
                t = near[c, k]
                dx, dy, du = xs[t, 0] - x0, xs[t, 1] - y0, us[t] - u0
                gx, gy, size = gx + dx * du, gy + dy * du, size + 0.5 * (dx * dx + dy * dy)
                low, high = min(low, us[t]), max(high, us[t])
            bound = min(high - u0, u0 - low)
            steep = (abs(gx) + abs(gy)) / size * own[c]
            factor = (bound / max(steep, 1e-30) if steep > bound else 1.0) / size
            ss[c, 0], ss[c, 1] = gx * factor, gy * factor
        for e in range(len(normal)):
            a, b = sides[e, 0], sides[e, 1]
            speed = normal[e, 0] + 0.5 * normal[e, 1]
            t = a if speed > 0 else b
            dx, dy = middle[e, 0] - xs[t, 0], middle[e, 1] - xs[t, 1]
            f = speed * (us[t] + ss[t, 0] * dx + ss[t, 1] * dy)
            r[a] -= f
            r[b] += f

    return step  # type: ignore[no-any-return]


# Cases: what ours does, what the other does, and how to compare


# What ours does, what the other does, how many cells, what scikit-fem does, if it can, and what the other does
# of one half of the points on a thread of its own, into memory of its own.
Case = tuple[Callable[[], Any], Callable[[], Any], int, Callable[[], Any] | None, Sequence[Callable[[], Any]]]


def halves(hand: Callable[..., None], shared: Sequence[Any], tables: Sequence[Any], ends: Sequence[Any],
           size: int) -> list[Callable[[], Any]]:  # fmt: skip
    """A loop by hand over each half of the rows of tables: what no code on two threads is faster than.

    Nothing is shared between the two, so nobody has to see to it that sums are right.
    """
    made = []
    for k in range(2):
        parts = [t[len(t) * k // 2 : len(t) * (k + 1) // 2] for t in tables]
        out = np.zeros(size)
        own = out[size * k // 2 : size * (k + 1) // 2]

        def half(parts: Any = parts, out: Any = out, own: Any = own) -> None:
            own[...] = 0
            hand(*shared, *parts, *ends, out)

        made.append(half)
    return made


def applied(mesh: Any, V: Any, kernel: Callable[..., None], hand: Callable[..., None]) -> Case:
    """An operator applied to a function of a space."""
    corners, cells = mesh.closure("cell", "vertex"), mesh.points("cell")
    u0 = np.random.default_rng(0).standard_normal(V.tree.size)
    x, u, y = mb.HostArray(mesh.coordinates), md.wrap(V.tree, mb.HostArray(u0)), V.zeros()
    T, out = corners.target().table, np.zeros(V.tree.size)

    def ours() -> Any:
        y.parent[...] = 0
        md.loop(cells, kernel, md.READ(x, corners), md.READ(u, V.dofs), md.INC(y, V.dofs))
        return y.parent

    def others() -> Any:
        out[...] = 0
        hand(mesh.coordinates, T, V.dofs.table, u0, out)
        return out

    return ours, others, cells.size, None, halves(hand, [mesh.coordinates], [T, V.dofs.table], [u0], len(out))


def action_case(mesh: Any, degree: int) -> Case:
    V = md.space(mesh, "P", degree)
    kernel = linear_action if degree == 1 and V.dim == 2 else laplacian(V)
    return applied(mesh, V, kernel, p1_by_hand(V.dim) if degree == 1 else by_hand(V))


def elasticity_case(mesh: Any) -> Case:
    V = md.space(mesh, "P", 2, components=2)
    return applied(mesh, V, elasticity(V), elasticity_by_hand(V))


def assembly_case(mesh: Any, degree: int) -> Case:
    V = md.space(mesh, "P", degree)
    corners = mesh.closure("cell", "vertex")
    matrix = md.pattern(V.dofs).matrix()
    x, cells = mb.HostArray(mesh.coordinates), mesh.points("cell")
    kernel = linear_matrix if degree == 1 else stiffness(V)
    hand, T = p1_matrix_by_hand() if degree == 1 else matrix_by_hand(V), corners.target().table
    slots, data = matrix.dofs.table, np.zeros(matrix.data.shape[0])

    def ours() -> Any:
        matrix.data[...] = 0
        md.loop(cells, kernel, md.READ(x, corners), md.INC(matrix.data, matrix.dofs))
        return matrix.data

    def others() -> Any:
        data[...] = 0
        hand(mesh.coordinates, T, slots, data)
        return data

    two = halves(hand, [mesh.coordinates], [T, slots], [], len(data))
    return ours, others, cells.size, meshskfem.assembly(mesh, degree), two


def volumes(mesh: Any) -> tuple[np.ndarray, ...]:
    """Of cells their size, who is near, their centres and values; of edges normals, middles and sides."""
    cells = mesh.points("cell")
    corners = mesh.coordinates[mesh.closure("cell", "vertex").target().table]
    centres = corners.mean(axis=1)
    own = np.full(cells.size, 0.5 / SIDE)
    ends = mesh.coordinates[mesh.closure("edge", "vertex").target().table]
    normal = np.stack([ends[:, 1, 1] - ends[:, 0, 1], ends[:, 0, 0] - ends[:, 1, 0]], axis=1)
    middle = ends.mean(axis=1)
    support = mesh.support("edge").padded().target().table
    sides = np.where(support < 0, support[:, :1], support)
    flip = ((centres[sides[:, 1]] - centres[sides[:, 0]]) * normal).sum(axis=1) < 0
    sides[flip] = sides[flip][:, ::-1]
    of_cell = mesh.closure("cell", "edge").target().table
    across = sides[of_cell]
    me = np.arange(cells.size)[:, None]
    near = np.concatenate([me, np.where(across[..., 0] == me, across[..., 1], across[..., 0])], axis=1)
    u0 = np.exp(-20 * ((centres - 0.3) ** 2).sum(axis=1))
    near, sides = near.astype(np.int32), sides.astype(np.int32)
    return own, near, centres, u0, normal, middle, sides


def volume_case(mesh: Any) -> Case:
    own, near, centres, u0, normal, middle, sides = volumes(mesh)
    cells, edges = mesh.points("cell"), mesh.points("edge")
    A = mb.HostArray
    a_own, a_normal, a_middle, a_xs, a_us = A(own), A(normal), A(middle), A(centres), A(u0)
    a_ss, a_r = mb.zeros((cells.size, 2)), mb.zeros(cells.size)
    around, beside = md.Dofs(cells, near, cells.size), md.Dofs(edges, sides, cells.size)
    ss, r, hand = np.zeros((cells.size, 2)), np.zeros(cells.size), volume_by_hand()
    near, sides = around.table, beside.table

    def ours() -> Any:
        a_r[...] = 0
        md.loop(cells, slopes, md.READ(a_own), md.READ(a_xs, around), md.READ(a_us, around), md.WRITE(a_ss))
        md.loop(
            edges, flux, md.READ(a_normal), md.READ(a_middle), md.READ(a_xs, beside), md.READ(a_us, beside),
            md.READ(a_ss, beside), md.INC(a_r, beside),
        )  # fmt: skip
        return a_r

    def others() -> Any:
        r[...] = 0
        hand(own, near, sides, normal, middle, centres, u0, ss, r)
        return r

    def half(k: int) -> Callable[[], Any]:
        at = [slice(len(t) * k // 2, len(t) * (k + 1) // 2) for t in (own, normal)]
        mine, s = np.zeros(cells.size), np.zeros((cells.size, 2))

        def run() -> None:
            mine[at[0]] = 0
            c, e = at
            hand(own[c], near[c], sides[e], normal[e], middle[e], centres, u0, s, mine)

        return run

    return ours, others, cells.size, None, [half(0), half(1)]


def cases() -> dict[str, Callable[[], Any]]:
    square = md.unit_square(SIDE)
    cube = md.unit_cube(CUBES)
    return {
        "P1 action, triangles": lambda: action_case(square, 1),
        "P2 action, triangles": lambda: action_case(square, 2),
        "P3 action, triangles": lambda: action_case(square, 3),
        "P2 elasticity, triangles": lambda: elasticity_case(square),
        "P1 assembly, triangles": lambda: assembly_case(square, 1),
        "P2 assembly, triangles": lambda: assembly_case(square, 2),
        "finite volumes, triangles": lambda: volume_case(square),
        "P1 action, tetrahedra": lambda: action_case(cube, 1),
        "P2 action, tetrahedra": lambda: action_case(cube, 2),
    }


def measured(
    ours: Callable[[], Any], others: Callable[[], Any], two: Sequence[Callable[[], Any]], rounds: int
) -> tuple[float, float, float, float]:
    """CPU seconds of both on one thread; the time of ours, and of the other's halves, on two."""
    best = [float("inf")] * 4
    for _ in range(rounds):
        with mb.settings.changed(num_threads=1):
            for k, call in enumerate((ours, others)):
                t = time.process_time()
                call()
                best[k] = min(best[k], time.process_time() - t)
        with mb.settings.changed(num_threads=2):
            for k, call in enumerate((ours, functools.partial(threads.run_all, list(two)))):
                t = time.perf_counter()
                call()
                best[2 + k] = min(best[2 + k], time.perf_counter() - t)
    return best[0], best[1], best[2], best[3]


def run(only: str = "", rounds: int = 0, array: str = "") -> None:
    if array == "CuArray":
        from benchmarks.meshcards import run_card

        run_card(only, rounds or 20)
        return
    record, table = [], []
    for name, make in cases().items():
        if only not in name:
            continue
        ours, others, n, skfem, two_by_hand = make()
        t = time.perf_counter()
        first = mb.to_numpy(ours())
        first_s = time.perf_counter() - t
        second = others()
        error = float(np.abs(first - second).max() / np.abs(second).max())
        assert error < 1e-12, (name, error)
        one, hand, two, bound = measured(ours, others, two_by_hand, rounds or 12)
        beside = None
        if skfem is not None:
            meshskfem.same(first, skfem())
            beside = meshskfem.seconds(skfem, 3)
        record.append(
            {
                "case": name, "cells": n, "first_s": first_s, "hand_cpu_s": hand, "mirabelle_cpu_s": one,
                "mirabelle_2_threads_s": two, "hand_halves_s": bound, "times_hand": hand / one,
                "times_hand_2_threads": hand / two, "halves_times_hand": hand / bound, "skfem_cpu_s": beside,
            }
        )  # fmt: skip
        row = [name, f"{n:,}", f"{hand * 1e3:.2f}", f"{one * 1e3:.2f}", f"{two * 1e3:.2f}", f"{hand / one:.2f}"]
        skfem_ms = "-" if beside is None else f"{beside * 1e3:.1f}"
        table.append([*row, f"{hand / two:.2f}", f"{hand / bound:.2f}", f"{first_s:.1f}", skfem_ms])
        print("  ".join(table[-1]), flush=True)
    show(
        "Loops over meshes beside loops by hand in Numba: milliseconds, best",
        [
            "loop",
            "cells",
            "by hand",
            "one thread",
            "two",
            "times hand",
            "two threads",
            "halves by hand",
            "first call, s",
            "scikit-fem",
        ],
        table,
        [meshskfem.note()],
    )
    if not only:
        store("meshdata", {"threads": [1, 2], "cases": record})
