"""Reductions along the first axis: rows are read several at a time, and nobody can tell from the bits."""

import itertools

import numpy as np
import pytest

import mirabelle as mb

ROWS = (1, 2, 3, 4, 5, 7, 63, 64, 65, 66, 67, 68, 127, 128, 131, 260)
COLUMNS = (1, 5, 1023, 1025, 4095, 4096, 4097, 8200)
# Every number of rows with some of the columns, and the other way round.
SHAPES = [
    (r, COLUMNS[(i + k) % len(COLUMNS)]) for i, r in enumerate(ROWS) for k in ((0, 3) if r < 130 else (i % 4,))
]
STATEMENTS = {
    "sum": lambda xp, x, y: xp.sum(x, axis=0),
    "max": lambda xp, x, y: xp.max(x, axis=0),
    "of a tree": lambda xp, x, y: xp.sum(x * y + 1, axis=0),
    "of a row": lambda xp, x, y: xp.sum(x * y[:1], axis=0),
    "of a column": lambda xp, x, y: xp.max(x + y[:, :1], axis=0),
    "of every second column": lambda xp, x, y: xp.min(x[:, ::2] - y[:, ::2], axis=0),
    "any": lambda xp, x, y: xp.any(x > y, axis=0),
    "sine": lambda xp, x, y: xp.sum(xp.sin(x), axis=0),
}
# Kernels take half a second to compile: not every statement is tried with every dtype.
CASES = [(name, "f8") for name in STATEMENTS] + [
    ("sum", "f4"), ("sum", "i2"), ("sum", "c16"), ("sum", "?"), ("max", "u1"), ("of a tree", "f4"),
    ("of a tree", "c16"),
]  # fmt: skip


def values(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(-9, 9, shape) if np.dtype(dtype).kind in "iu" else rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    if np.dtype(dtype).kind == "f" and x.size > 40:
        x.ravel()[[3, 7, 11, 19, 23]] = np.nan, np.inf, -np.inf, -0.0, 0.0
    return x.astype(dtype)


def reduced(statement, x, y, **settings):
    """The result of a statement on fresh arrays, some times over, until kernels run it."""
    with mb.settings.changed(small_size=0, immediate_size=0, compile_after=1, compile_size=1, **settings):
        found = [mb.to_numpy(statement(mb, mb.HostArray(x), mb.HostArray(y))) for _ in range(2)]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)
    return found[-1]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_columns_are_what_blocks_of_numpy_are(name, dtype):
    statement = STATEMENTS[name]
    # (A kernel serves all shapes.)
    for k, shape in enumerate(SHAPES[:: 2 if (name, dtype) == ("sum", "f8") else 6]):
        x, y = values(shape, dtype, k), values(shape, dtype, k + 1)
        with np.errstate(all="ignore"):
            wanted = reduced(statement, x, y, compiler="off")
            hot = reduced(statement, x, y, compiler="inline")
            np.testing.assert_array_equal(hot, wanted, strict=True)
            np.testing.assert_array_equal(np.signbit(hot.real), np.signbit(wanted.real))
            np.testing.assert_allclose(hot, statement(np, x, y), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("rows", [10, 70])
def test_results_that_lie_where_operands_do_wait(rows):
    n = np.random.default_rng(0).normal(size=(rows, 5000))
    for statement in (
        lambda xp, x: x.__setitem__(0, xp.sum(x, axis=0)),
        lambda xp, x: x.__setitem__(slice(2, 3), xp.max(x[1:], axis=0)),
        lambda xp, x: x.__setitem__((slice(None), 0), xp.sum(x[:, :rows] * 2, axis=0)),
        lambda xp, x: x.__setitem__(slice(None), xp.sum(x, axis=0)),
        lambda xp, x: xp.sum(x, axis=0, out=x[3]),
    ):
        for _ in range(2):
            x, wanted = mb.HostArray(n), n.copy()
            statement(mb, x), statement(np, wanted)
            np.testing.assert_allclose(mb.to_numpy(x), wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_kept_dimensions_in_any_order_of_memory(order, threads):
    n = np.random.default_rng(1).normal(size=(12, 40, 300)).transpose(order)
    with mb.settings.changed(num_threads=threads, thread_size=1 << 12):
        x = mb.HostArray(n)
        for axis in (0, 1, 2, (0, 1), (1, 2), (0, 2)):
            for _ in range(3):
                out = mb.zeros(n.sum(axis=axis).shape)
                out[...] = mb.sum(x, axis=axis)
                np.testing.assert_allclose(mb.to_numpy(out), n.sum(axis=axis), rtol=1e-9, atol=1e-9)
                np.testing.assert_allclose(mb.to_numpy(mb.max(x * 2, axis=axis)), (n * 2).max(axis=axis))
