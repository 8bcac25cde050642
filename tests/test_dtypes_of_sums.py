"""Reductions in a dtype that the caller names: NumPy's values, in memory of that dtype, small and large."""

import numpy as np
import pytest

import mirabelle as mb

SHORT = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8"]
FUNCTIONS = ["sum", "prod", "nansum", "cumsum"]


def check(made, wanted):
    value = mb.to_numpy(made)
    assert made.dtype == value.dtype == wanted.dtype and value.shape == np.shape(wanted)
    assert np.array_equal(value, wanted)


@pytest.mark.parametrize("array", [mb.HostArray, mb.RefArray])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_reductions_have_the_dtype_that_was_asked_for(name, array):
    shapes = [(7, 3), (300, 2), (150, 160)] if array is mb.HostArray else [(7, 3)]
    kinds = SHORT if array is mb.HostArray else ["?", "i1", "u4"]
    for shape in shapes:
        for dtype in kinds:
            x = (np.arange(np.prod(shape)).reshape(shape) % 120).astype(dtype)
            for wanted in kinds:
                for axis in (0, 1, None) if name == "cumsum" else (0, 1, None, ()):
                    for waits in (False, True)[: 1 + (array is mb.HostArray)]:
                        y = array(x)
                        y = (
                            mb.positive(y.astype(dtype))
                            if waits and dtype != "?"
                            else y | False
                            if waits
                            else y
                        )
                        made = getattr(mb, name)(y, axis=axis, dtype=wanted)
                        check(made, getattr(np, name)(x, axis=axis, dtype=wanted))


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "?"])
def test_einsum_sums_in_the_dtype_of_its_result(dtype):
    x = (np.arange(600).reshape(300, 2) % 120).astype(dtype)
    for text in ("ij->j", "ij->i", "ij->", "ij->ji"):
        check(mb.einsum(text, mb.HostArray(x)), np.einsum(text, x))
    a, b = np.ones((3, 1, 2), dtype) * np.asarray(100, dtype), np.array([[1 + 1j], [2 + 2j]])
    for text in ("ijk,kj->", "ijk,kj->k"):  # (i is summed before the product)
        check(mb.einsum(text, mb.HostArray(a), mb.HostArray(b)), np.einsum(text, a, b))


def test_bounds_that_a_dtype_does_not_reach_clip_nothing():
    x = np.array([0, 3, 200], "u1")
    for low, high in ((0, 300), (-5, 100), (-5, 300), (-1, 0.5), (2, 2**70)):
        check(mb.clip(mb.HostArray(x), low, high), np.clip(x, low, high))
    with pytest.raises(OverflowError):
        mb.clip(mb.HostArray(x), 300, 400)
    check(mb.diff(mb.asarray(3.0), n=0), np.diff(np.asarray(3.0), n=0))
