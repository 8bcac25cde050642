"""The routines of a card's library, run by a NumPy that is as strict as CuPy, and compared with NumPy's."""

import inspect
import operator
import pathlib
import re

import numpy as np
import pytest
import scipy.fft
from compare import assert_same
from cupy_like import Card, card, strict

import mirabelle as mb
from mirabelle.arraytypes import library as seam
from mirabelle.backends.gpu import library

XP = strict()
library._chapters()
RNG = np.random.default_rng(5)


def sent(x):
    if isinstance(x, (tuple, list)):
        return type(x)(sent(item) for item in x)
    return card(x) if isinstance(x, np.ndarray) else x


def run(name, *args, **options):
    given = [sent(a) for a in args]
    before = [np.array(a) for a in args if isinstance(a, np.ndarray)]
    with np.errstate(all="ignore"):
        found = library.ROUTINES[name](XP, *given, **{k: sent(v) for k, v in options.items()})
    for a, b in zip((a for a in args if isinstance(a, np.ndarray)), before, strict=True):
        np.testing.assert_array_equal(a, b)
    return found


def compare(found, expected, **tolerance):
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for f, e in zip(found, expected, strict=True):
            compare(f, e, **tolerance)
        return
    if isinstance(found, np.ndarray):
        assert type(found) is Card, "a result that is not on the card"
    assert_same(np.asarray(found), expected, **tolerance)


def outcome(f, *args, **options):
    try:
        with np.errstate(all="ignore"):
            return f(*args, **options), None
    except Exception as e:
        return None, type(e)


def check(name, numpy_function, *args, rtol=0.0, atol=0.0, **options):
    expected, refused = outcome(numpy_function, *args, **options)
    if refused is not None:
        with pytest.raises(refused):
            run(name, *args, **options)
        return
    compare(run(name, *args, **options), expected, rtol=rtol, atol=atol)


DTYPES = ["b1", "i1", "u1", "i4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]


def sample(shape, dtype, special=False):
    dtype = np.dtype(dtype)
    x = RNG.integers(0, 9, shape)
    if dtype.kind in "fc":
        x = x - 4.5
    if dtype.kind == "c":
        x = x + 1j * RNG.integers(-3, 3, shape)
    x = np.asarray(x).astype(dtype)
    if special and dtype.kind in "fc" and x.size > 3:
        x.reshape(-1)[1] = np.nan
        x.reshape(-1)[3] = np.inf
        x.reshape(-1)[-1] = np.nan
    return x


# Sorting and searching


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [-1, 0, None])
def test_sorts(dtype, axis):
    x = sample((5, 7), dtype, special=np.dtype(dtype).kind == "f")
    check("sort", np.sort, x, axis=axis, kind="stable")
    check("argsort", np.argsort, x, axis=axis, kind="stable")
    compare(run("partition", x, 2, axis=axis, kind="introselect"), np.sort(x, axis=axis))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (1,), (4, 1)])
def test_sorts_what_is_empty_or_single(shape):
    x = np.ones(shape)
    check("sort", np.sort, x, axis=-1)
    check("argsort", np.argsort, x, axis=-1)
    check("nonzero", np.nonzero, x)


def test_what_is_out_of_bounds_is_refused():
    with pytest.raises(ValueError, match="out of bounds"):
        run("partition", np.ones(3), 5)
    with pytest.raises(np.exceptions.AxisError):
        run("sort", np.ones(3), axis=2)


@pytest.mark.parametrize("axis", [-1, 0])
def test_sorts_by_keys(axis):
    keys = [RNG.integers(0, 3, (4, 6)) for _ in range(3)]
    check("lexsort", np.lexsort, keys, axis=axis)


@pytest.mark.parametrize("dtype", DTYPES)
def test_finds_what_is_not_zero(dtype):
    x = sample((4, 5), dtype)
    check("nonzero", np.nonzero, x)
    check("argmax", np.argmax, x, axis=1, keepdims=True)
    check("argmin", np.argmin, x, axis=None, keepdims=True)
    check("argmin", np.argmin, x, axis=0)


@pytest.mark.parametrize("side", ["left", "right"])
def test_searches_in_the_common_dtype(side):
    check("searchsorted", np.searchsorted, np.array([1.5, 2, 2, 9]), np.arange(12).reshape(3, 4), side=side)
    check("searchsorted", np.searchsorted, np.array([3, 5], np.uint64), np.array([-1, 4]), side=side)
    check("searchsorted", np.searchsorted, np.zeros(0), np.array([1.0]), side=side)
    compare(run("searchsorted", np.array([1.0, np.nan]), np.array([np.nan, 2])), np.array([1, 1]))
    compare(run("searchsorted", np.array([1.0, 2]), 1.5), np.searchsorted([1.0, 2], np.asarray(1.5)))


# Sets


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("equal_nan", [True, False])
def test_distinct_elements(dtype, equal_nan):
    x = sample((4, 6), dtype, special=True)
    options = {"return_index": True, "return_inverse": True, "return_counts": True, "equal_nan": equal_nan}
    check("unique", np.unique, x, equal_nan=equal_nan)
    if np.dtype(dtype).kind != "c":
        check("unique", np.unique, x, **options)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_distinct_rows(axis):
    x = RNG.integers(0, 2, (6, 2, 5))
    options = {"return_index": True, "return_inverse": True, "return_counts": True}
    check("unique", np.unique, x, axis=axis, **options)
    check("unique", np.unique, np.zeros((3, 0)), axis=0)
    check("unique", np.unique, np.zeros(0), **options)
    check("unique", np.unique, np.array(3.0), **options)


@pytest.mark.parametrize("dtypes", [("i4", "i8"), ("f8", "i4"), ("b1", "b1"), ("u1", "f4")])
@pytest.mark.parametrize("sizes", [(8, 5), (0, 3), (4, 0), (0, 0)])
def test_sets(dtypes, sizes):
    a, b = (sample(n, t) for n, t in zip(sizes, dtypes, strict=True))
    check("isin", np.isin, a, b)
    check("isin", np.isin, a.reshape(-1, 1), b, invert=True)


# Counting


def test_bincount():
    x = np.array([3, 0, 3, 7, 1])
    check("bincount", np.bincount, x)
    check("bincount", np.bincount, x, minlength=12)
    check("bincount", np.bincount, x.astype(np.uint8), weights=np.array([1.5, 2, 3, 4, 5]))
    check("bincount", np.bincount, np.zeros(0, np.int64), minlength=3)
    check("bincount", np.bincount, np.array([-1, 2]))
    check("bincount", np.bincount, x, weights=np.ones(3))
    check("bincount", np.bincount, np.array([1.0]))


@pytest.mark.parametrize("right", [False, True])
def test_digitize(right):
    x = np.array([0.2, 6.4, 3.0, 1.6, -1, 99, np.nan])
    check("digitize", np.digitize, x, np.array([0.0, 1, 2.5, 4, 10]), right=right)
    check("digitize", np.digitize, x, np.array([10.0, 4, 2.5, 1, 0]), right=right)
    check("digitize", np.digitize, x, np.array([1.0, 5, 2]), right=right)


HISTOGRAMS = [
    {},
    {"bins": 4},
    {"bins": 5, "range": (-3, 2.5)},
    {"bins": np.array([-5.0, -1, 0, 4])},
    {"bins": [-5, 0, 0, 3]},
    {"density": True},
    {"bins": 3, "density": True, "range": (-2, 2)},
    {"bins": np.array([3.0, 1])},
    {"bins": 0},
    {"range": (2, 1)},
    *({"bins": name} for name in ("auto", "sqrt", "sturges", "rice", "scott", "doane", "fd")),
]


@pytest.mark.parametrize("options", HISTOGRAMS, ids=str)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1"])
def test_histogram(options, dtype):
    x = sample((6, 7), dtype)
    check("histogram", np.histogram, x, **options, rtol=1e-6)
    if "density" not in options:
        check("histogram_bin_edges", np.histogram_bin_edges, x, **options, rtol=1e-6)


@pytest.mark.parametrize("weights", ["f8", "i4", "c16", "f4"])
def test_histogram_of_weights(weights):
    x, w = sample(40, "f8"), sample(40, weights)
    check("histogram", np.histogram, x, weights=w, bins=6)
    check("histogram", np.histogram, np.zeros(0), bins=3)
    check("histogram", np.histogram, np.array([1.0, np.nan]), bins=3, range=(0, 2))


@pytest.mark.parametrize(
    "options", [{}, {"bins": 3}, {"bins": [2, 4]}, {"range": [(-3, 3), (-1, 4)]}, {"density": True}], ids=str
)
def test_histograms_of_points(options):
    x, y = sample(50, "f8"), sample(50, "f8")
    check("histogram2d", np.histogram2d, x, y, **options)
    check("histogramdd", np.histogramdd, np.stack([x, y], 1), **options)
    check("histogram2d", np.histogram2d, x, y, weights=sample(50, "f8"), **options)
    check("histogram2d", np.histogram2d, x, y, bins=np.array([-4.0, 0, 1, 3]))


# Bits, joining


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("bitorder", ["big", "little"])
def test_bits(axis, bitorder):
    x = RNG.integers(0, 2, (5, 11)).astype(bool)
    check("packbits", np.packbits, x, axis=axis, bitorder=bitorder)
    packed = RNG.integers(0, 256, (3, 2)).astype(np.uint8)
    for count in (None, 5, -3, 40):
        check("unpackbits", np.unpackbits, packed, axis=axis, count=count, bitorder=bitorder)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_repeats(axis):
    x = sample((3, 4), "f8")
    counts = RNG.integers(0, 4, x.size if axis is None else x.shape[axis])
    check("repeat", np.repeat, x, counts, axis=axis)
    check("repeat", np.repeat, x, 2, axis=axis)
    check("repeat", np.repeat, x, np.array([3]), axis=axis)
    check("repeat", np.repeat, x, counts[:-1], axis=axis)
    check("repeat", np.repeat, x, counts - 5, axis=axis)


# Elements


def test_special_functions():
    x = np.linspace(-9, 9, 11)
    check("i0", np.i0, x, rtol=1e-14)
    check("i0", np.i0, np.arange(4), rtol=1e-14)
    for decimals in (0, 2, -1):
        z = RNG.normal(size=8) * 30 + 1j * RNG.normal(size=8)
        check("around", np.around, z, decimals)


def test_ranges_between_arrays():
    a, b = np.array([0.0, 5.0]), np.array([1, 9])
    for options in (
        (5,),
        (5, False),
        (5, True, True),
        (1,),
        (0,),
        (4, True, False, np.int32),
        (3, True, False, None, 1),
    ):
        check("linspace", np.linspace, a, b, *options)
    check("linspace", np.linspace, a, 3.0, 4)
    check("linspace", np.linspace, a, b, -1)


@pytest.mark.parametrize("values", ["f8", "c16"])
@pytest.mark.parametrize(
    "options", [{}, {"left": -5.0, "right": 7.0}, {"period": 4.0}, {"period": -3.0}], ids=str
)
def test_interpolates(values, options):
    x = np.array([-1, 0, 0.5, 1, 1.75, 2.9, 3, 17, np.nan, np.inf, -np.inf])
    points = np.array([0.0, 1, 1.5, 3])
    y = sample(4, values)
    if "period" in options:
        x = x[:-2]
    check("interp", np.interp, x, points, y, **options, rtol=1e-15)
    check("interp", np.interp, x, points[:1], y[:1], **options, rtol=1e-15)
    y[1] = np.inf
    check("interp", np.interp, x, points, y, **options, rtol=1e-15)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_extremes_of_complex_numbers():
    z = sample((4, 5), "c16", special=True)
    check("nanmax", np.nanmax, z, axis=0, keepdims=True)
    check("nanmin", np.nanmin, z)


# Convolution


@pytest.mark.parametrize("mode", ["full", "same", "valid", 2, "other"])
@pytest.mark.parametrize("dtypes", [("f8", "f8"), ("i4", "f4"), ("c8", "f8"), ("i8", "i2"), ("b1", "b1")])
@pytest.mark.parametrize("sizes", [(7, 3), (3, 7), (4, 4), (1, 5), (6, 2)])
def test_convolutions(mode, dtypes, sizes):
    a, v = (sample(n, t) for n, t in zip(sizes, dtypes, strict=True))
    if mode == 2:
        mode = "full"
    check("convolve", np.convolve, a, v, mode=mode, rtol=1e-6)
    check("correlate", np.correlate, a, v, mode=mode, rtol=1e-6)


def test_long_convolutions(monkeypatch):
    from mirabelle.backends.gpu import lib_convolution

    monkeypatch.setattr(lib_convolution, "_MANY", 1)
    monkeypatch.setattr(lib_convolution, "_LONG", 2)
    for kind in ("f8", "c16"):
        a, v = sample(31, kind), sample(8, kind)
        for mode in ("full", "same", "valid"):
            check("convolve", np.convolve, a, v, mode=mode, rtol=1e-12, atol=1e-12)
            check("correlate", np.correlate, v, a, mode=mode, rtol=1e-12, atol=1e-12)
    a[4] = np.inf
    check("convolve", np.convolve, a.real, v.real, mode="full")
    check("convolve", np.convolve, np.zeros(0), v.real, mode="full")


# Fourier transforms

TRANSFORMS = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "c8", "i4", "b1"])
def test_transforms(name, dtype):
    x = sample((4, 6), dtype)
    if x.dtype.kind == "c" and name in ("rfft", "ihfft"):
        return
    for options in ({}, {"n": 5}, {"n": 9, "axis": 0}, {"norm": "ortho"}, {"norm": "forward"}):
        check(f"fft.{name}", getattr(np.fft, name), x, **options, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_transforms_over_axes(name):
    x = sample((4, 3, 6), "f8" if name == "rfftn" else "c16")
    for options in ({}, {"axes": (0, 2)}, {"s": (5, 4), "axes": (1, 2)}, {"axes": (0, 1), "norm": "ortho"}):
        check(f"fft.{name}", getattr(np.fft, name), x, **options, rtol=1e-12, atol=1e-12)
    compare(run("fft.fftn", x, axes=()), x.astype(complex))
    check("fft.fftn", np.fft.fftn, x, axes=(0, 0), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["dct", "idct", "dst", "idst"])
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [6, 7])
def test_cosines_and_sines(name, kind, norm, n):
    x = sample((3, n), "f8")
    run_theirs = getattr(scipy.fft, name)
    for options in ({}, {"n": 4}, {"n": 9}, {"axis": 0}):
        check(f"fft.{name}", run_theirs, x, type=kind, norm=norm, **options, rtol=1e-11, atol=1e-11)
    check(f"fft.{name}", run_theirs, sample(5, "f4"), type=kind, norm=norm, rtol=1e-5, atol=1e-5)
    check(f"fft.{name}", run_theirs, sample(5, "c16"), type=kind, norm=norm, rtol=1e-11, atol=1e-11)


# Segments and scattering


@pytest.mark.parametrize(
    "name", ["add", "multiply", "maximum", "minimum", "logical_or", "bitwise_and", "hypot"]
)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u1", "b1"])
def test_reduces_segments(name, dtype):
    if (name == "hypot" and dtype not in ("f8", "f4")) or (name == "bitwise_and" and dtype[0] == "f"):
        return
    ufunc = getattr(np, name)
    x = sample((9, 4), dtype)
    for index in ([0, 3, 5], [4, 2, 2, 8], [0], [8, 0, 4]):
        check(f"{name}.reduceat", ufunc.reduceat, x, np.array(index), axis=0, rtol=1e-6)
    check(f"{name}.reduceat", ufunc.reduceat, x, np.array([1, 3]), axis=1, rtol=1e-6)
    check(f"{name}.reduceat", ufunc.reduceat, x, np.array([9]), axis=0)
    check(f"{name}.reduceat", ufunc.reduceat, x, np.array([-1]), axis=0)


@pytest.mark.parametrize(
    "op", ["", "add", "subtract", "multiply", "divide", "maximum", "minimum", "bitwise_or"]
)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "i2", "u4", "c16", "b1"])
@pytest.mark.parametrize("size", [3, 40])
def test_scatters(op, dtype, size):
    if op == "divide" and np.dtype(dtype).kind not in "fc":
        return
    into = sample((6, 5, 3), dtype)
    for indices in (
        (RNG.integers(0, 6, size),),
        (RNG.integers(0, 6, (size, 2)), RNG.integers(0, 5, (size, 2))),
    ):
        shape = (*indices[0].shape, *into.shape[len(indices) :])
        for value in (sample(shape, dtype), sample(into.shape[-1:], dtype)):
            expected = into.copy()
            write = (lambda: getattr(np, op).at(expected, indices, value)) if op else None
            _, refused = outcome(write) if op else (expected.__setitem__(indices, value), None)
            if refused is not None:
                continue
            found = card(into.copy())
            with np.errstate(all="ignore"):
                library.ROUTINES["scatter"](XP, found, card(value), *map(card, indices), op=op)
            assert_same(np.asarray(found), expected, rtol=1e-5 if into.dtype.kind in "fc" else 0)


def test_scatters_into_strided_memory():
    whole = np.zeros((8, 6), np.int32)
    part = card(whole)[::2, ::-2]
    library.ROUTINES["scatter"](XP, part, 1, card(np.array([0, 0, 3])), op="add")
    expected = np.zeros((8, 6), np.int32)
    np.add.at(expected[::2, ::-2], [0, 0, 3], 1)
    np.testing.assert_array_equal(np.asarray(part), expected[::2, ::-2])


def test_powers_at_repeated_places_are_refused():
    with pytest.raises(NotImplementedError, match="order"):
        library.ROUTINES["scatter"](XP, card(np.ones(3)), 2.0, card(np.array([0, 0])), op="power")


def test_bounds():
    assert run("bounds", np.array([[3, -2], [9, 4]])) == (-2, 9)
    assert run("bounds", np.array([2**63 + 5, 1], np.uint64)) == (1, 2**63 + 5)


# Which routines there are

PACKAGE = pathlib.Path(mb.__file__).parent.parent
# Names that are CuPy's own functions, and how the package calls them.
DIRECT = {
    "concatenate": ([[1]], {"axis": 0, "dtype": "f8", "casting": "same_kind"}),
    "stack": ([[1]], {"axis": 0}),
    "roll": ([1, 2, 0], {}),
    "pad": ([1, [(1, 1)]], {"mode": "edge"}),
    "tile": ([1, (2, 2)], {}),
    "tril": ([1], {"k": 0}),
    "triu": ([1], {"k": 0}),
    "arange": ([5], {"dtype": "i8"}),
    "fft.fftshift": ([1], {"axes": (0,)}),
    "fft.ifftshift": ([1], {"axes": (0,)}),
}


def asked_for():
    """The names of all routines that the package asks a place for."""
    calls = re.compile(
        r"""(?:library\.call|routine_of|refusing|(?<![\w.])call)\(\s*(?:[\w."]+,\s*)?"([a-z][\w.]+)\""""
    )
    names = set(seam.ROUTINES[mb.HostArray])
    for path in (PACKAGE / "arraytypes").rglob("*.py"):
        names.update(calls.findall(path.read_text()))
    # (Some are asked of the host alone.)
    return sorted(names - {"csr_scipy", "doubled", "block", "diag", "insert", "resize"})


@pytest.mark.parametrize("name", asked_for())
def test_every_routine_is_ours_or_known_to_be_cupys_or_absent(name):
    import cupy

    if name in library.ROUTINES or name in library.ABSENT or seam.registered(mb.CuArray, name):
        return
    args, options = DIRECT[name]
    inspect.signature(operator.attrgetter(name)(cupy)).bind(*args, **options)


def test_what_no_card_can_do_is_refused_with_the_cure():
    family = mb.CuArray
    for name in ("linalg.schur", "vecdot", "no.such.routine"):
        assert not seam.has(family, name)
        with pytest.raises(NotImplementedError, match=r"mb.adapt\(mb.HostArray, x\)"):
            seam.routine_of(family, name)
    assert seam.has(family, "sort")


@pytest.mark.parametrize("bounds", [(5,), (3, 50, 7), (50, 3, -7), (0,), (5, 1), (2, 10, 3)])
@pytest.mark.parametrize("dtype", [None, "f4", "f8", "i1", "u8", "f2"])
def test_a_card_counts_itself(bounds, dtype):
    expected = np.arange(*bounds, dtype=dtype)
    with mb.count() as counted:
        made = mb.arange(*bounds, dtype=dtype, device=mb.CuArray)
    assert_same(made, expected)
    assert counted.transfers == int(dtype == "f2" or not expected.size)


def test_ranges_at_the_ends_of_what_a_dtype_holds():
    for first, dtype in (
        (250, "u1"),
        (-128, "i1"),
        ((1 << 24) - 2, "f4"),
        ((1 << 53) - 2, "f8"),
        (-(1 << 63), "i8"),
    ):
        expected = np.arange(first, first + 6, dtype=dtype)
        assert_same(mb.arange(first, first + 6, dtype=dtype, device=mb.CuArray), expected)


def test_a_routine_that_is_given_later_is_the_one_that_runs():
    x = mb.CuArray([[1.0, 2.0], [3.0, 4.0]])
    before = mb.to_numpy(x @ x)
    family = mb.CuArray
    kept = seam.ROUTINES.pop(family, None)
    try:
        seam.routine(family, "matmul")(lambda a, b: a)
        assert_same(x @ x, mb.to_numpy(x))
    finally:
        del seam.ROUTINES[family]
        if kept is not None:
            seam.ROUTINES[family] = kept
        seam.additions += 1
    assert_same(x @ x, before)
