"""Data for tests: every dtype, ordinary values and the values where things go wrong."""

import numpy as np

INTEGERS = [np.dtype(f"{k}{n}") for k in "iu" for n in (1, 2, 4, 8)]
FLOATS = [np.dtype(f"f{n}") for n in (2, 4, 8)]
COMPLEX = [np.dtype("c8"), np.dtype("c16")]
DTYPES = [np.dtype(bool), *INTEGERS, *FLOATS, *COMPLEX]


def ids(dtypes):
    return [np.dtype(d).name for d in dtypes]


def ordinary(dtype, shape=(7, 11), seed=0):
    """Values of moderate size, some negative where the dtype allows."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -20, 21, shape).astype(dtype)
    x = rng.integers(-40, 41, shape) / 8 + rng.integers(0, 5, shape) / 64
    if dtype.kind == "c":
        x = x + 1j * rng.integers(-40, 41, shape) / 8
    return x.astype(dtype)


def edges(dtype):
    """The values at the edges of a dtype: extremes, signed zeros, NaN, infinities."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        wanted = [0, 1, 2, 3, 7, info.max // 2, info.max - 1, info.max, info.min, info.min + 1]
        if dtype.kind == "i":
            wanted += [-1, -2, -3, -7]
        return np.array(wanted, dtype)
    part = np.finfo(dtype)
    real = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -7.0, 90.0, float(part.eps)]
    real += [float(part.max), float(part.min), float(part.tiny), np.nan, np.inf, -np.inf]
    real += [float(part.smallest_subnormal), -float(part.smallest_subnormal)]
    if dtype.kind == "f":
        return np.array(real, dtype)
    ordinary_parts = real[:10]
    return np.array([complex(a, b) for a in ordinary_parts for b in ordinary_parts[::3]], dtype)


def pairs(dtype, other=None):
    """Two arrays in which every edge value meets every other."""
    a, b = edges(dtype), edges(dtype if other is None else other)
    return np.repeat(a, len(b)), np.tile(b, len(a))
