"""Is what mirabelle says what NumPy says?"""

import numpy as np

import mirabelle as mb


def contents(x):
    """Any array's contents as a NumPy array."""
    return mb.to_numpy(x) if isinstance(x, mb.AbstractArray) else np.asarray(x)


def assert_same(mine, expected, *, rtol=0.0, atol=0.0, any_zero=False):
    """Same dtype, shape and values: bit for bit, unless a tolerance is given.

    NaN equals NaN whatever its payload; `any_zero` lets 0.0 equal -0.0.
    """
    got, expected = contents(mine), np.asarray(expected)
    assert got.dtype == expected.dtype, f"dtype {got.dtype}, NumPy's {expected.dtype}"
    assert got.shape == expected.shape, f"shape {got.shape}, NumPy's {expected.shape}"
    if rtol or atol:
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol, equal_nan=True)
        return
    if got.dtype.kind == "c":
        parts = [(got.real, expected.real), (got.imag, expected.imag)]
    else:
        parts = [(got, expected)]
    for a, b in parts:
        np.testing.assert_array_equal(a, b)
        if a.dtype.kind == "f" and not any_zero:
            numbers = ~np.isnan(a)
            np.testing.assert_array_equal(np.signbit(a)[numbers], np.signbit(b)[numbers])


def assert_closed(result, kind):
    """The result's type and place are those of the kind's leaves."""
    assert type(result) is kind.family[result.dtype, result.ndim], type(result)
    assert result.place == kind.place


def outcome(f, *args):
    """(value, None) or (None, exception type): to compare refusals as well as values."""
    try:
        with np.errstate(all="ignore"):
            return f(*args), None
    except Exception as e:
        return None, type(e)
