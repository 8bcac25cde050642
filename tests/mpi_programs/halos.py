"""Statements over processes that come back: known again or not, on all processes or some, they are NumPy's.

`halos.py SEED [NATIVE]`: where rank 1 knows nothing, if NATIVE is "mixed".
"""

import os
import sys

import numpy as np

import mirabelle as mb
from mirabelle.backends.host import halos, kernels, shortcuts

comm = mb.distributed.communicator()
# The type of local arrays (on cards: MIRABELLE_TEST_ARRAY=CuArray).
LOCAL = getattr(mb, os.environ.get("MIRABELLE_TEST_ARRAY", "HostArray"))
H = mb.DArray[LOCAL]
# (Powers of cards end in other bits.)
CLOSE = {"rtol": 0} if LOCAL is mb.HostArray else {"rtol": 1e-11, "atol": 1e-13}
# On four processes in both directions.
LAYOUT = (
    mb.distributed.Layout(mb.distributed.Block(0), mb.distributed.Block(1), mesh=(2, 2))
    if comm.size == 4
    else mb.distributed.Block(0)
)
rng = np.random.default_rng(int(sys.argv[1]))
mixed = sys.argv[2:] == ["mixed"]
mb.settings.compile_after, mb.settings.compiler, mb.settings.overlap_size = 2, "inline", 16

# Of arrays x, y, z of one shape, of numbers s and k, on a grid of so many rows and columns.
STATEMENTS = {
    "five points": "y[1:-1, 1:-1] = s * (x[1:-1, 1:-1] + x[:-2, 1:-1] + x[2:, 1:-1] - x[1:-1, 2:])",
    "nine points": "a = (x[:-2, :-2] + x[:-2, 1:-1] - x[:-2, 2:]) / 4; "
    "y[1:-1, 1:-1] = (x[:-2, :-2] - x[:-2, 2:] + x[2:, 2:] * x[2:, 1:-1]) / 4 + a * x[1:-1, :-2]",
    "two rows away": "y[2:-2] = 0.25 * x[4:] + 0.25 * x[:-4] - z[2:-2] * s",
    "one side": "y[1:] = x[:-1] * s + z[1:]",
    "both arrays": "y[1:-1] = x[2:] - z[:-2]; x[1:-1] = x[1:-1] + y[1:-1] * 0.5",
    "there and back": "y[1:-1] = (x[2:] + x[:-2]) * 0.5; x[1:-1] = (y[2:] + y[:-2]) * 0.5",
    "of itself": "x[1:-1] = 0.5 * x[1:-1] + 0.25 * (x[2:] + x[:-2])",
    "added": "y[1:-1, :] += s * (x[2:, :] - x[:-2, :])",
    "a value": "t = 0.5 * (x[2:] + x[:-2]); y[1:-1] = t - z[1:-1]; z[1:-1] = t * 0.5",
    "held": "t = x[2:] - x[:-2]; y[1:-1] = t * s; z[1:-1] = t + y[1:-1]; x = x + 0.25 * z",
    "written, then held": "t = x[2:] - x[:-2]; y[1:-1] = t; x[3, 2:] = 1.5; z[1:-1] = t * 2; "
    "y[1:-1] = x[1:-1]; z[2:] += t * 1",
    "a new array": "u = x[1:-1] * s + x[2:] - z[:-2]; y[1:-1] = u * 0.5",
    "columns": "y[:, 1:-1] = x[:, 2:] - x[:, :-2] + z[:, 1:-1]",
    "backwards": "y[1:] = z[1:] - x[:-1] * s; y[1:-1] = z[1:-1] + x[:-2][::-1]",
    "equal numbers": "y[1:-1] = 0.5 * (x[2:] + 0.5) + 0.5 * x[:-2]",
    "other numbers": "y[1:-1] = k * x[2:] + s * x[:-2] + 1",
    "of another dtype": "f[1:-1] = f[1:-1] * 0.5 + f[2:] * 0.25",
    "complex": "c[1:-1] = c[2:] * 0.5 + c[:-2] * 0.25; y[1:-1] = c.real[2:] + c.imag[:-2]",
    "readers of the old": "t = y * 2; y[1:-1] = x[2:] + x[:-2] * s; z = z * 0.5 + t * 0.125",
    "a view that stays": "v = y[2:5]; y[1:-1] = x[2:] - x[:-2] * s; z[2:5] = v * 0.5",
    "one row": "y[3] = x[4] + x[2] * s; y[k % 7 + 1, 1:] = x[k % 7, :-1]",
    "exponents": "y[1:-1] = mb.exp(-x[2:] ** 2) + mb.sqrt(mb.abs(x[:-2]))",
    "the whole": "y[...] = x * s + z; y[1:-1] = y[1:-1] * 0.5 + x[2:] - x[:-2]",
}


def D(x):
    return H(x, layout=LAYOUT)


def names(grid, divided):
    """The arrays of a statement: NumPy's, or divided over the processes."""
    return {n: divided(v) for n, v in grid.items()}


def grid_of(shape):
    g = {n: rng.standard_normal(shape) for n in "xyz"}
    return {**g, "f": g["x"].astype("f4"), "c": g["y"] + 1j * g["z"]}


found = 0
for name, statement in STATEMENTS.items():
    code = compile(statement, name, "exec")
    for shape in ((23, 11), (40, 9)):
        grid = grid_of(shape)
        ours = names(grid, D)
        theirs = names(grid, np.copy)
        before = halos.count_known()
        for k in range(70):
            numbers = {"s": 0.25 + 0.5 * (k % 3), "k": k, "mb": mb}
            if mixed and comm.rank == 1:
                shortcuts.known.clear()
            exec(code, {**numbers, "mb": mb}, ours)
            with np.errstate(all="ignore"):
                exec(code, {**numbers, "mb": np}, theirs)
            if k % 23 == 0 or k > 66:
                for n, v in theirs.items():
                    if isinstance(v, np.ndarray) and v.shape == shape:
                        np.testing.assert_allclose(
                            mb.to_numpy(ours[n]), v, **CLOSE, err_msg=f"{name}: {n}, turn {k}"
                        )
            for n, v in theirs.items():  # (numbers that grow say nothing)
                if isinstance(v, np.ndarray) and v.shape == shape and np.abs(v).max() > 1e6:
                    theirs[n] = v * 2.0**-20
                    ours[n] = D(theirs[n])
            if k == 20:
                kernels.settle()
        found += halos.count_known() - before

# What were two arrays when a statement was met are one: it is sent once, also by those that knew two.


def both(y, x, z):
    y[1:-1] = x[2:] + z[2:]


grid = grid_of((24, 9))
ours, theirs = names(grid, D), names(grid, np.copy)
for k in range(70):
    for named in (ours, theirs):
        both(named["y"], named["x"], named["z"])
if comm.rank == 1:
    shortcuts.known.clear()
for named in (ours, theirs):
    both(named["y"], named["x"], named["x"])
    both(named["z"], named["x"], named["y"])
for n, v in theirs.items():
    np.testing.assert_array_equal(mb.to_numpy(ours[n]), v, err_msg=n)

# Known again or not, the same is counted.


def stencil(y, x, z):
    y[1:-1] = 0.5 * (x[2:] + x[:-2])


def counted():
    with mb.count() as c:
        stencil(ours["y"], ours["x"], ours["z"])
    return c


for _ in range(70):
    stencil(ours["y"], ours["x"], ours["z"])
before = halos.count_known()
again = counted()
shortcuts.known.clear()
ordinary = counted()
assert mixed or before > halos.count_known() or LOCAL is not mb.HostArray  # (cards: their own)
assert again == ordinary, (again, ordinary)
assert again.messages == (comm.rank > 0) + (comm.rank < comm.size - 1) or comm.size == 4, again
assert again.bytes_sent == again.messages * 9 * 8 or comm.size == 4, again
assert again.launches >= 1 and again.bytes_written > 0, again

if not (mixed and comm.rank == 1):
    assert found >= 20 or LOCAL is not mb.HostArray, found
print(f"fine: {len(STATEMENTS)} statements, {found} known again")
