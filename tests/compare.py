"""Is what mirabelle says what NumPy says?"""

import numpy as np

import mirabelle as mb


def contents(x):
    """Any array's contents as a NumPy array."""
    return mb.to_numpy(x) if isinstance(x, mb.AbstractArray) else np.asarray(x)


def assert_same(mine, expected, *, rtol=0.0, atol=0.0, any_zero=False):
    """Same dtype, shape and values: bit for bit, unless a tolerance is given.

    NaN equals NaN whatever its payload; `any_zero` lets 0.0 equal -0.0. What a real card computed
    may differ in the last bits: see `assert_near`.
    """
    got, expected = contents(mine), np.asarray(expected)
    assert got.dtype == expected.dtype, f"dtype {got.dtype}, NumPy's {expected.dtype}"
    assert got.shape == expected.shape, f"shape {got.shape}, NumPy's {expected.shape}"
    real_card = on_real_card(mine) and got.dtype.kind in "fc"
    if rtol or atol:
        if real_card:
            count, unit = ulps(got.dtype)
            rtol, atol = max(rtol, count * unit), max(atol, CANCELLED * unit * largest(expected))
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol, equal_nan=True)
        return
    if real_card:
        assert_near(got, expected, any_zero)
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


# Real cards

# A card's exp, pow or lgamma is not the host's: its library promises 1 to 10 units in the last place,
# and each further operation passes that on. Sums run in an order of their own. So what was asked for
# bit for bit is compared with this many units of each element; and where parts of a value have
# cancelled, with a few of the largest element. A simulated card takes NumPy's functions, one after the
# other, and is compared exactly: there it is that a wrong rounding or a wrong order shows.
ULPS = {2: 4, 4: 16, 8: 16}
CANCELLED = 4


def on_real_card(x):
    """Is this an array in the memory of a card, and is that no simulated one?"""
    if mb.settings.cuda == "simulated" or not isinstance(x, mb.AbstractArray):
        return False
    return (x.place.inner or x.place).kind in ("cuda", "rocm")  # (of a distributed array: where its parts are)


def largest(expected):
    """The size of what was computed with, as far as the result tells."""
    numbers = np.abs(expected[np.isfinite(expected)])
    return float(numbers.max()) if numbers.size else 0.0


def ulps(dtype):
    """How many units in the last place an element may be off, and the unit of 1."""
    limits = np.finfo(dtype)
    return ULPS[limits.dtype.itemsize], float(limits.eps)


def slack(expected):
    """How far from each element a card's may be."""
    count, unit = ulps(expected.dtype)
    smallest = float(np.finfo(expected.dtype).smallest_subnormal)
    with np.errstate(all="ignore"):
        # (a complex number is as exact as its larger part)
        own = np.where(np.isfinite(expected), np.abs(expected), 0).astype(np.float64)
        return np.maximum(count * own, CANCELLED * largest(expected)) * unit + count * smallest


def assert_near(got, expected, any_zero=False):
    """The same but for the last bits: NaN and infinities at the same places, signs where there is one."""
    allowed = slack(expected)
    parts = (
        [(got.real, expected.real), (got.imag, expected.imag)] if got.dtype.kind == "c" else [(got, expected)]
    )
    for a, b in parts:
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
        # (the last bits of the largest number make infinity)
        count, unit = ulps(expected.dtype)
        top = float(np.finfo(b.dtype).max)
        over = np.isinf(a) & np.isfinite(b) & (np.abs(b) > top * (1 - count * unit)) & ((a > 0) == (b > 0))
        a = np.where(over, b, a)
        np.testing.assert_array_equal(np.where(np.isinf(a), a, 0), np.where(np.isinf(b), b, 0))
        finite = np.isfinite(b)
        x, y, room = (np.asarray(v)[finite] for v in (a, b, allowed))
        x, y = x.astype(np.float64), y.astype(np.float64)
        off = np.abs(x - y)
        worst = np.argmax(off - room) if off.size else 0
        assert not (off > room).any(), (
            f"{int((off > room).sum())} of {off.size} elements differ; one is {x[worst]!r}, "
            f"NumPy's {y[worst]!r}, {off[worst]:.2e} apart, {room[worst]:.2e} allowed"
        )
        # What cancelled to about nothing has no sign to compare; zeros do.
        told = (np.abs(y) > room) | ((x == 0) & (y == 0) & (not any_zero))
        np.testing.assert_array_equal(np.signbit(x)[told], np.signbit(y)[told])


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
