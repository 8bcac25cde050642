"""Compiled programs over processes send what a program written by hand would, and no more."""

import numpy as np

import mirabelle as mb

D = mb.DArray[mb.HostArray]
comm = mb.communicator()
rng = np.random.default_rng(0)


def jacobi_2d(A, B, steps):
    for _ in range(steps):
        B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
        A[1:-1, 1:-1] = 0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1])


def wave(u, before):
    laplacian = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
    after = u.copy()
    after[1:-1, 1:-1] = 2 * u[1:-1, 1:-1] - before[1:-1, 1:-1] + 0.1 * laplacian
    return after


a, b = rng.random((64, 50)), rng.random((64, 50))
neighbours = (comm.rank > 0) + (comm.rank < comm.size - 1)

compiled = mb.compile(jacobi_2d)
A, B = D(a), D(b)
compiled(A, B, 3)
with mb.count() as c:
    compiled(A, B, 3)
for _ in range(2):
    jacobi_2d(a, b, 3)
assert np.allclose(mb.to_numpy(A), a) and np.allclose(mb.to_numpy(B), b)
# By hand: a row to each neighbour before each sweep.
assert c.messages == 6 * neighbours, (c.messages, neighbours)

step = mb.compile(wave)
u, before = D(a), D(b)
step(u, before)
with mb.count() as c:
    after = step(u, before)
assert np.allclose(mb.to_numpy(after), wave(a, b))
assert c.messages == neighbours, (c.messages, neighbours)


def masked(x):
    x[x > 0.5] = x[x > 0.5] ** 2
    rows = x[:, 0] > 0.25
    x[rows] += 1
    return x[x > 1].mean(), x[x > 1].max(), x[rows].sum(axis=0), x[x < 0.5].std()


picked_from = rng.random((64, 50))
C, chosen = D(picked_from), mb.compile(masked)
for _ in range(2):
    found, wanted = chosen(C), masked(picked_from)
    assert all(np.allclose(mb.to_numpy(x), y) for x, y in zip(found, wanted, strict=True))
    assert np.allclose(mb.to_numpy(C), picked_from)
# (All ranks raise.)
try:
    mb.compile(lambda x: x[x > 1000].max())(C)
except ValueError as e:
    assert "zero-size" in str(e)
else:
    raise AssertionError("the largest of nothing")
print("fine")
