"""Products of what wrappers show: random chains of transposes and slices, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import mirabelle as mb


def shown(rng: np.random.Generator, x, n):
    """The same part of both, by up to four steps."""
    for _ in range(rng.integers(0, 5)):
        step = int(rng.integers(6))
        if step < 2:
            x, n = x.T, n.T
        elif step == 2 and n.ndim and n.shape[0] > 1:
            how = slice(None, None, int(rng.choice([-1, 1, 2])))
            x, n = x[how], n[how]
        elif step == 3 and n.ndim == 2 and n.shape[1] > 1:
            x, n = x[:, 1:], n[:, 1:]
        elif step == 4 and n.ndim == 2 and n.shape[0]:
            x, n = x[-1], n[-1]
        elif step == 5 and n.ndim == 2:
            x, n = mb.permute_dims(x, (1, 0)), n.transpose(1, 0)
    return x, n


def operand(rng: np.random.Generator, dtype):
    shape = tuple(int(k) for k in rng.integers(1, 7, size=2))
    values = np.round(rng.standard_normal(shape) * 4).astype(dtype)
    if dtype in "FD":
        values = values + 1j * np.round(rng.standard_normal(shape) * 4).astype(dtype)
    n = np.asfortranarray(values) if rng.integers(2) else values
    x = mb.HostArray(n)
    if rng.integers(3) == 0:
        x, n = x + x, n + n
    return shown(rng, x, n)


@pytest.mark.parametrize("seed", range(400))
def test_they_are_numpys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype = str(rng.choice(list("fdFDdddi")))
    (x, n), (y, m) = operand(rng, dtype), operand(rng, dtype)
    if n.ndim == 2 and m.ndim == 2 and n.shape[1] != m.shape[0]:
        k = min(n.shape[1], m.shape[0])
        x, n, y, m = x[:, :k], n[:, :k], y[:k], m[:k]
    try:
        wanted = n @ m
    except ValueError:
        with pytest.raises(ValueError, match=r"matmul|shape"):
            x @ y
        return
    found = x @ y
    # (Small whole numbers: sums in any order are exact.)
    np.testing.assert_array_equal(mb.to_numpy(found) if isinstance(found, mb.AbstractArray) else found, wanted)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(mb.to_numpy(x), n)
