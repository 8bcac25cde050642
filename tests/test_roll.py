"""`mb.roll` against NumPy's: the host's routine, pieces by kernels, values that wait."""

from __future__ import annotations

import numpy as np
import pytest

import mirabelle as mb

DTYPES = ["?", "b", "B", "h", "i", "l", "q", "Q", "f", "d", "F", "D"]


def arrays(rng: np.random.Generator) -> np.ndarray:
    """An array of any dtype, of up to three dimensions, in any order of memory."""
    sizes = rng.choice([0, *[1, 2, 3, 5, 8, 40] * 4], size=rng.integers(0, 4))
    shape = tuple(int(n) for n in sizes)
    x = (rng.standard_normal(shape) * 50 + 0.5).astype(str(rng.choice(DTYPES)))
    kind = rng.integers(4)
    if kind == 0:
        return np.asfortranarray(x)
    if kind == 1 and x.ndim:
        return x[::-1]
    return np.ascontiguousarray(x.T).T if kind == 2 else x


@pytest.mark.parametrize("seed", range(300))
def test_it_is_numpys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        n = arrays(rng)
        x = mb.HostArray(n)
        axes = [None, *range(-n.ndim, n.ndim)]
        axis = axes[rng.integers(len(axes))]
        shift = int(rng.integers(-90, 90))
        if n.ndim > 1 and rng.integers(4) == 0:
            axis, shift = (0, -1), (shift, int(rng.integers(-3, 4)))
        if rng.integers(2) and n.dtype.kind != "b":
            n, x = n + n, x + x  # (a value that waits, where it is large)
        kept, wanted = n.copy(), np.roll(n, shift, axis)
        found = mb.roll(x, shift, axis=axis)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    assert mb.to_numpy(found).tobytes() == wanted.tobytes()
    if found.ndim and found.size:  # it is memory of its own
        found[...] = 0
        assert mb.to_numpy(x).tobytes() == kept.tobytes()


@pytest.mark.parametrize("axis", [2, -3])
def test_axes_that_are_not_there_are_refused(axis: int) -> None:
    with pytest.raises(np.exceptions.AxisError):
        mb.roll(mb.zeros((3, 4)), 1, axis=axis)


@pytest.mark.parametrize("n", [50, 700])
def test_a_value_that_waits_is_computed_once(n: int) -> None:
    x = mb.HostArray(np.arange(n * n, dtype=float).reshape(n, n))
    y = mb.sin(x) * 2 + x
    wanted = np.sin(mb.to_numpy(x)) * 2 + mb.to_numpy(x)
    around = [mb.roll(y, s, axis=a) for a in (0, 1) for s in (1, -1)]
    x[...] = 0
    for found, (a, s) in zip(around, [(0, 1), (0, -1), (1, 1), (1, -1)], strict=True):
        np.testing.assert_array_equal(mb.to_numpy(found), np.roll(wanted, s, a))
