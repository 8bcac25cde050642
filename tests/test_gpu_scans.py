"""Scans on a card, by their kernels, against NumPy's `accumulate` and the host."""

import gpukernels
import numpy as np
import pytest

import mirabelle as mb
from mirabelle.backends.codegen.gridscan import ITEMS, ScanLayout, scan_source
from mirabelle.backends.gpu import scans
from mirabelle.dispatch.errors import UserFunctionError

RNG = np.random.default_rng(1)


def samples(shape, dtype):
    x = RNG.integers(-40, 40, shape)
    if np.dtype(dtype).kind == "c":
        return (x / 16 + 1j * RNG.integers(-8, 8, shape) / 16).astype(dtype)
    if np.dtype(dtype).kind == "f":
        return (x / 32).astype(dtype)
    return (x % 3 > 0) if dtype == "b1" else x.astype(dtype)


def by_kernels(x, op, axis, view=lambda v: v):
    """The scan of part of an array on the card."""
    shown = view(mb.CuArray._upload(x))
    ufunc = scans.scan_ufunc(op)
    dtype = shown.dtype if ufunc is None else scans.accumulated(ufunc, shown.dtype)
    out = mb.CuArray._empty(shown.shape, dtype)
    scans.scan_by_kernels(shown, out, axis, op if ufunc is None else ufunc)
    return mb.CuArray._download(out)


def assert_close(got, want, tolerance=None):
    assert got.dtype == want.dtype
    if got.dtype.kind in "fc":
        eps = float(np.finfo(got.dtype).eps)
        np.testing.assert_allclose(got, want, rtol=tolerance or 200 * eps, atol=200 * eps)
    else:
        np.testing.assert_array_equal(got, want)


@pytest.fixture
def few_blocks(monkeypatch):
    """Cut lines into chunks at sizes that a test can afford."""
    scans._planned.cache_clear()
    monkeypatch.setattr(scans, "FEW_TILES", 0)
    yield
    scans._planned.cache_clear()


@pytest.mark.parametrize("n", [1, 2, 31, 33, 224, 225, 1792, 1800, 4000])
@pytest.mark.parametrize("op", ["add", "maximum"])
def test_one_line(n, op, few_blocks):
    x = samples(n, "f8")
    assert_close(by_kernels(x, op, 0), getattr(np, op).accumulate(x), 1e-12)


@pytest.mark.parametrize(("shape", "axis"), [
    ((7, 50), 1), ((50, 7), 0), ((50, 9), 0), ((70, 20), 0), ((3, 40, 5), 1), ((4, 5, 3), 1), ((600, 3), 1),
    ((2, 1, 80), 2), ((1, 5), 0),
])  # fmt: skip
@pytest.mark.parametrize("how", [
    lambda v: v,
    lambda v: v[::-1],
    lambda v: v[..., ::2],
    lambda v: v.transpose(tuple(range(v.ndim))[::-1]),
], ids=["whole", "reversed", "strided", "transposed"])  # fmt: skip
def test_any_axis_of_any_view(shape, axis, how):
    x = samples(shape, "i4")
    want = how(x)
    if axis < want.ndim:
        np.testing.assert_array_equal(by_kernels(x, "add", axis, how), np.add.accumulate(want, axis=axis))


@pytest.mark.parametrize("dtype", ["b1", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize(
    "op", ["add", "multiply", "maximum", "minimum", "logical_and", "logical_or", "logical_xor"]
)
def test_dtypes_are_numpys(op, dtype):
    with np.errstate(all="ignore"):
        for x in (samples(60, dtype), samples((40, 9), dtype)):
            want = getattr(np, op).accumulate(x)
            got = by_kernels(x, op, 0)
            assert_close(got, want, 0.05 if dtype == "f2" else 1e-4 if dtype in ("f4", "c8") else None)


@pytest.mark.parametrize("op", ["bitwise_and", "bitwise_xor", "gcd", "fmax", "logaddexp", "hypot"])
def test_other_operations_in_groups(op):
    x = np.abs(samples(70, "f8" if op in ("fmax", "logaddexp", "hypot") else "i4")) + 1
    assert_close(by_kernels(x, op, 0), getattr(np, op).accumulate(x))


@pytest.mark.parametrize("op", ["subtract", "divide", "power", "floor_divide"])
def test_others_in_order(op):
    x = np.abs(samples(40, "f8")) + 0.5
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(by_kernels(x, op, 0), getattr(np, op).accumulate(x), rtol=1e-12)


def test_undefined_values_are_numpys():
    x = samples(100, "f8")
    x[[20, 60]] = np.nan, np.inf
    for op in ("add", "maximum", "fmin"):
        np.testing.assert_allclose(by_kernels(x, op, 0), getattr(np, op).accumulate(x), rtol=1e-12)


def test_chunks_are_scanned_from_what_was_before(few_blocks, monkeypatch):
    monkeypatch.setattr(scans, "WALKERS", 64)
    for x, axis in ((samples((2, 3000), "i8"), 1), (samples((200, 9), "i8"), 0)):
        with mb.count() as counts:
            got = by_kernels(x, "add", axis)
        assert counts.launches == 3
        np.testing.assert_array_equal(got, np.add.accumulate(x, axis=axis))


# Functions of users


def affine(a, b):
    return a * b + a + b


def decaying(a, b):
    return 0.5 * a + b


def test_function_of_a_user():
    x = samples(300, "f8") / 4
    for f, grouped in ((affine, True), (decaying, False)):
        assert scans.associative(f, x.dtype) is grouped
        want = [x[0]]
        for v in x[1:]:
            want.append(f(want[-1], v))
        np.testing.assert_allclose(by_kernels(x, f, 0), want, rtol=1e-9)
    rows = samples((40, 50), "i4")
    host = mb.to_numpy(mb.accumulate(mb.HostArray(rows), max_of, 1))
    np.testing.assert_array_equal(by_kernels(rows, max_of, 1), host)


def max_of(a, b):
    return a if a > b else b


@pytest.mark.parametrize(("f", "dtype", "expected"), [
    (lambda a, b: a + b, "f4", True), (lambda a, b: a + b, "i1", True), (lambda a, b: a - b, "i8", False),
    (lambda a, b: a and b, "b1", True), (lambda a, b: a > b, "b1", False), (lambda a, b: b, "f8", True),
    (lambda a, b: a * b, "c16", True), (lambda a, b: (a * a + b * b) ** 0.5, "f8", True),
    (lambda a, b: (a + b) / 2, "f8", False), (lambda a: a, "f8", False),
])  # fmt: skip
def test_associative(f, dtype, expected):
    assert scans.associative(f, np.dtype(dtype)) is expected


def test_what_is_no_function_is_refused():
    view = mb.CuArray._upload(np.arange(3.0))
    with pytest.raises(UserFunctionError, match="Wrap it in a lambda"):
        scans.scan(view, [1], 0)
    with pytest.raises(ValueError, match="'maximum'"):
        scans.scan(view, "no_such_operation", 0)
    with pytest.raises(TypeError):
        scans.scan(view, "bitwise_and", 0)


# The way in


def test_scan_makes_a_new_view():
    x = samples((5, 6), "f4")
    view = mb.CuArray._upload(x)
    for op, want in (
        (None, np.cumsum(x, 1)),
        (np.multiply, np.cumprod(x, 1)),
        ("maximum", np.maximum.accumulate(x, 1)),
    ):
        with mb.count() as counts:
            out = scans.scan(view, op, 1)
        assert (counts.launches, counts.library_calls) == (1, 0)
        assert isinstance(out, type(view))
        assert_close(mb.CuArray._download(out), want)
    assert scans.scan(mb.CuArray._upload(x[:0]), "add", 0).shape == (0, 6)


def test_long_sums_are_the_librarys():
    x = samples(9000, "f8")
    with mb.count() as counts:
        out = scans.scan(mb.CuArray._upload(x), "add", 0)
    assert counts.library_calls == 1
    np.testing.assert_allclose(mb.CuArray._download(out), np.cumsum(x), rtol=1e-12, atol=1e-12)


# The card's code


@pytest.mark.parametrize(("op", "dtypes"), [
    ("add", ("i1", "i8", "i8")), ("add", ("f4", "f4", "f4")), ("multiply", ("u2", "u8", "u8")),
    ("maximum", ("f8", "f8", "f8")), ("logical_and", ("f4", "b1", "b1")), ("multiply", ("c8", "c8", "c8")),
    ("add", ("f2", "f4", "f2")),
])  # fmt: skip
@pytest.mark.parametrize("along", [True, False])
def test_lowered_text_scans(op, dtypes, along):
    source, working, result = map(np.dtype, dtypes)
    lines, n, threads = 3, 80, 8
    x = samples((lines, n), source)
    y = np.zeros((lines, n), result)
    totals = np.zeros((lines, 2) if along else (2, lines), working)
    chunk = threads * ITEMS if along else 45

    def run(**how):
        kernel = scan_source(ScanLayout(along, 1, op, source, working, result, threads=threads, **how))
        grid, block = ((2 * lines, 1, 1), (threads, 1, 1)) if along else ((1, 2, 1), (4, 1, 1))
        gpukernels.OnHost(kernel)(
            grid, block, y.ctypes.data, x.ctypes.data, totals.ctypes.data, lines, n, 2, chunk, result.itemsize,
            source.itemsize, lines, n * result.itemsize, n * source.itemsize,
        )  # fmt: skip

    with np.errstate(all="ignore"):
        run(totals=True)
        # (The scan of two totals; the second is used by nobody.)
        run(begun=True)
        want = getattr(np, op).accumulate(x, axis=1)
    assert_close(y, want, 0.05 if source.char == "e" else 1e-4 if working.char in "fF" else None)


@pytest.mark.parametrize("how", [
    (True, 0, "add", "f8", "f8", "f8"), (True, 1, "maximum", "f4", "f4", "f4", False, True),
    (True, 0, "add", "b1", "i8", "i8", True), (False, 1, "add", "f2", "f4", "f2"),
], ids=["along", "begun", "totals", "across"])  # fmt: skip
def test_nothing_spills(how, tmp_path):
    source = scan_source(ScanLayout(*how[:3], *map(np.dtype, how[3:6]), *how[6:]))
    registers, spills = gpukernels.resources(gpukernels.ptx(source), tmp_path)
    assert registers <= 64
    assert spills == 0
