"""Few elements of matrices that lie by columns: results lie as NumPy's, and so are writes."""

import numpy as np
import pytest

import mirabelle as mb

SHAPES = [(1, 1), (1, 5), (5, 1), (2, 3), (7, 7), (3, 40)]
STATEMENTS = {
    "times": lambda xp, m: m.T * 0.5,
    "plus itself": lambda xp, m: m.T + m.T,
    "of a part": lambda xp, m: -m.T[1:],
    "compared": lambda xp, m: m.T > 1,
    "with a row": lambda xp, m: m.T - m[:, 0],
    "with a column": lambda xp, m: m.T * m[0][:, None],
    "with what lies by rows": lambda xp, m: m.T + (m.T * 1 + 0),
    "with a part of rows": lambda xp, m: m.T + xp.zeros((m.shape[1] + 2, m.shape[0] + 3), m.dtype)[1:-1, 2:-1],
    "a part of rows with it": lambda xp, m: (
        xp.zeros((m.shape[1] + 2, m.shape[0] + 3), m.dtype)[1:-1, 2:-1] - m.T[::-1]
    ),
    "square root": lambda xp, m: xp.sqrt(xp.abs(m.T)),
}


def steps(x):
    """The strides of axes that are longer than one."""
    return [s for s, n in zip(x.strides, x.shape, strict=True) if n > 1]


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "c16", "u1"])
@pytest.mark.parametrize("shape", SHAPES)
def test_results_lie_as_numpys(shape, dtype):
    a = (np.arange(np.prod(shape)).reshape(shape) % 7).astype(dtype)
    for name, statement in STATEMENTS.items():
        if dtype == "c16" and name == "compared":
            continue
        for m in (a, np.asfortranarray(a), np.repeat(a, 2, 1)[:, ::2], a[::-1]):
            with np.errstate(all="ignore"):
                expected, found = statement(np, m), statement(mb, mb.asarray(m))
            assert found.dtype == expected.dtype, name
            np.testing.assert_array_equal(mb.to_numpy(found), expected)
            assert steps(found) == steps(expected), name


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "c16"])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_wrappers_show_is_written_as_numpy_writes_it(shape, dtype):
    a = (np.arange(np.prod(shape)).reshape(shape) % 7).astype(dtype)
    rows, columns = shape

    def written(xp, make):
        m, z = make(a.copy()), make(np.zeros((columns + 2, rows + 2), dtype))
        z[1:-1, 1:-1] = m.T
        z[: columns - 1 or None, :rows] = m.T[: columns - 1 or None]
        z[0, : rows * columns // max(columns, 1)] = xp.reshape(m, -1)[:rows]
        z[1:-1, 1] = m.T[:, 0]
        n = min(z.shape)
        z[:n, :n] = z[:n, :n].T  # (of itself)
        z[1:n, 1:n] = z[: n - 1, : n - 1].T
        m[...] = z[1:-1, 1:-1].T
        return z, m

    expected, found = written(np, lambda x: x), written(mb, mb.HostArray)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mb.to_numpy(x), y)


def test_an_axis_order_is_no_index():
    # (The order of axes is a tuple, as an index is: `z[1, 0] = z.T` is no write of what is there.)
    m = mb.HostArray(np.zeros((1, 1, 1, 1)) + 3)
    z = mb.HostArray(np.arange(4.0).reshape(2, 2))
    z[1, 0] = m.T[0, 0, 0, 0]
    assert mb.to_numpy(z).tolist() == [[0, 1], [3, 3]]
    with pytest.raises(ValueError, match="shape"):
        z[1, 0] = z.T
