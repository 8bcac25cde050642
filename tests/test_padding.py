"""Padding is composed of array functions, for every place: NumPy's elements in all modes."""

import numpy as np
import pytest

import mirabelle as mb
from tests.threadranks import on_ranks

MODES = [
    ("empty", {}),
    ("constant", {"constant_values": 3}),
    ("edge", {}),
    ("wrap", {}),
    ("reflect", {}),
    ("symmetric", {}),
    ("reflect", {"reflect_type": "odd"}),
    ("symmetric", {"reflect_type": "odd"}),
    ("linear_ramp", {}),
    ("linear_ramp", {"end_values": (3, -1)}),
    ("maximum", {}),
    ("maximum", {"stat_length": 0}),
    ("minimum", {"stat_length": 2}),
    ("mean", {}),
    ("mean", {"stat_length": (1, 2)}),
    ("median", {}),
    ("median", {"stat_length": 3}),
]
# Those that have elements, and numbers to make them of.
SURE = [m for m in MODES if m[0] != "empty" and m[1] != {"stat_length": 0}]
FAMILIES = [mb.HostArray, mb.RefArray, mb.DArray[mb.HostArray]]


def padded(pad, x, width, mode, options):
    try:
        return np.asarray(mb.to_numpy(pad(x, width, mode, **options)))
    except (ValueError, TypeError) as e:
        return type(e)


@pytest.mark.filterwarnings("ignore")  # (of casts, as NumPy has them)
@pytest.mark.parametrize("mode, options", MODES, ids=str)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_borders_are_numpys(family, mode, options):
    rng = np.random.default_rng(0)
    for dtype in ("f8", "f4", "i2", "c16", "?"):
        for shape in ((5,), (1,), (3, 4), (0, 2)):
            x = (rng.standard_normal(shape) * 10).astype(dtype)
            for width in (2, (3, 9)):
                expected = padded(np.pad, x, width, mode, options)
                found = padded(mb.pad, family(x), width, mode, options)
                if isinstance(expected, type):
                    assert found is expected
                elif mode == "empty":
                    assert found.shape == expected.shape and found.dtype == expected.dtype
                else:
                    assert found.dtype == expected.dtype
                    single = dtype == "f4"
                    np.testing.assert_allclose(
                        found, expected, rtol=1e-5 if single else 1e-12, atol=1e-6 if single else 0
                    )


@pytest.mark.parametrize("family", [mb.HostArray, mb.RefArray], ids=lambda f: f.__name__)
@pytest.mark.parametrize("mode, options", [m for m in SURE if m[0] in ("linear_ramp", "mean") or m[1]], ids=str)
def test_borders_in_compiled_programs(family, mode, options):
    x = np.random.default_rng(1).standard_normal(6)
    f = mb.compile(lambda x: mb.pad(x * 2, (2, 7), mode, **options) + 1)
    np.testing.assert_allclose(
        mb.to_numpy(f(family(x))), np.pad(x * 2, (2, 7), mode, **options) + 1, rtol=1e-12
    )


def test_borders_over_processes():
    x, y = np.random.default_rng(2).standard_normal((7, 5)), np.arange(11.0)

    def program(comm):
        family = mb.DArray[mb.HostArray]
        return [
            [mb.to_numpy(mb.pad(family(a), ((2, 9), (1, 3))[: a.ndim], mode, **options)) for a in (x, y)]
            for mode, options in SURE
        ]

    for found in on_ranks(3, program):
        for (mode, options), arrays in zip(
            [m for m in MODES[1:] if m[1] != {"stat_length": 0}], found, strict=True
        ):
            for a, made in zip((x, y), arrays, strict=True):
                expected = np.pad(a, ((2, 9), (1, 3))[: a.ndim], mode, **options)
                np.testing.assert_allclose(made, expected, rtol=1e-12)
