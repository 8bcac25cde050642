"""Two right-hand sides written with slices, as samples of what people compile: waves and gas in three
dimensions.

Each is one function of arrays in its own way of writing it: the first writes to arrays of its own, and the
second works with values alone.
"""

import numpy as np

import mirabelle as mb

SHIFTS = (8 / 12, -1 / 12)  # of the first derivative, of fourth order
N = 2  # cells beside the inner ones


def inner(u, axis, shift):
    """The inner cells of `u`, moved along an axis."""
    index = [slice(N, -N)] * 3
    index[axis] = slice(N + shift, u.shape[axis] - N + shift)
    return u[tuple(index)]


def derivative(u, axis, h):
    near, far = SHIFTS
    return (
        near * (inner(u, axis, 1) - inner(u, axis, -1)) + far * (inner(u, axis, 2) - inner(u, axis, -2))
    ) / h


def wave_rhs(p, vx, vy, vz, c, h):
    """Acoustic waves with a sponge: dp/dt and dv/dt of the inner cells, and 0 at the others."""
    speed = inner(c, 0, 0)
    squared = speed * speed
    velocity = (vx, vy, vz)
    divergence = derivative(vx, 0, h) + derivative(vy, 1, h) + derivative(vz, 2, h)
    out = [mb.zeros(p.shape) for _ in range(4)]
    damping = 0.01 * squared
    # Along each axis what one-sided differences of second order add, weighted by the speed.
    bend = 0.0
    for axis in range(3):
        for u in (p, *velocity):
            middle = inner(u, axis, 0)
            second = inner(u, axis, 1) - 2 * middle + inner(u, axis, -1)
            fourth = inner(u, axis, 2) - 4 * inner(u, axis, 1) + 6 * middle - 4 * inner(u, axis, -1)
            bend = bend + 0.1 * second - 0.05 * (fourth + inner(u, axis, -2)) * speed
    out[0][N:-N, N:-N, N:-N] = -squared * divergence - damping * inner(p, 0, 0) + bend
    for axis, v in enumerate(velocity):
        gradient = derivative(p, axis, h)
        drag = 0.01 * mb.abs(inner(v, 0, 0)) * inner(v, 0, 0)
        out[1 + axis][N:-N, N:-N, N:-N] = -gradient - drag + 0.001 * bend / (1 + mb.abs(bend))
    return tuple(out)


def wave_arguments(n=16, array=mb.HostArray, seed=0):
    rng = np.random.default_rng(seed)
    return (*[array(rng.normal(size=(n, n, n))) for _ in range(4)], array(1 + rng.random((n, n, n))), 0.1)


def pressure(rho, mx, my, mz, energy):
    kinetic = 0.5 * (mx * mx + my * my + mz * mz) / rho
    return 0.4 * (energy - kinetic)


def moved(state, axis, shift):
    return [inner(u, axis, shift) for u in state]


def limited(a, b):
    """The smaller of two slopes, 0 where they differ in sign."""
    return 0.5 * (mb.sign(a) + mb.sign(b)) * mb.minimum(mb.abs(a), mb.abs(b))


def flux(state, axis):
    """The flux of each conserved quantity along an axis, and the largest speed."""
    rho, mx, my, mz, energy = state
    p = pressure(*state)
    u = (mx, my, mz)[axis] / rho
    made = [rho * u, mx * u, my * u, mz * u, (energy + p) * u]
    made[1 + axis] = made[1 + axis] + p
    return made, mb.abs(u) + mb.sqrt(1.4 * mb.abs(p) / rho)


def face(state, axis, shift):
    """What flows through the face between a cell, moved by `shift`, and the next one."""
    before, here, there, after = (moved(state, axis, shift + k) for k in (-1, 0, 1, 2))
    left, right = [], []
    for a, b, c, d in zip(before, here, there, after, strict=True):
        left.append(b + 0.5 * limited(b - a, c - b))
        right.append(c - 0.5 * limited(c - b, d - c))
    (f, fast), (g, faster) = flux(left, axis), flux(right, axis)
    speed = mb.maximum(fast, faster)
    return [0.5 * (a + b) - 0.5 * speed * (r - l) for a, b, l, r in zip(f, g, left, right, strict=True)]


def euler_rhs(rho, mx, my, mz, energy, h):
    """The Euler equations by limited differences and Rusanov's flux: the change of the inner cells."""
    state = (rho, mx, my, mz, energy)
    change = [0.0] * 5
    for axis in range(3):
        after, before = face(state, axis, 0), face(state, axis, -1)
        change = [c - (a - b) / h for c, a, b in zip(change, after, before, strict=True)]
    return tuple(change)


def euler_arguments(n=16, array=mb.HostArray, seed=0):
    rng = np.random.default_rng(seed)
    momentum = [0.1 * rng.normal(size=(n, n, n)) for _ in range(3)]
    state = (1 + rng.random((n, n, n)), *momentum, 3 + rng.random((n, n, n)))
    return (*[array(x) for x in state], 0.1)
