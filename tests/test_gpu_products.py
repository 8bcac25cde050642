"""Matrix products on a card of element types that BLAS does not know, against NumPy's `matmul`."""

import gpukernels
import numpy as np
import pytest

import mirabelle as mb
from mirabelle.backends.codegen.gridproduct import ProductLayout, product_source
from mirabelle.backends.gpu import products

RNG = np.random.default_rng(2)
DTYPES = ["b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2"]
SHAPES = [
    ((5, 7), (7, 6)), ((20, 33), (33, 18)), ((3, 4, 5), (5, 6)), ((2, 1, 4, 5), (3, 5, 6)), ((5,), (5, 6)),
    ((4, 5), (5,)), ((5,), (5,)), ((3, 5), (5, 1)), ((1, 5), (2, 5, 4)), ((3, 0), (0, 2)), ((0, 3), (3, 2)),
]  # fmt: skip


@pytest.fixture(autouse=True)
def by_kernels(monkeypatch):
    """Also what the simulated card would leave to NumPy."""
    monkeypatch.setattr(products, "SIMULATED", 1 << 40)


def samples(shape, dtype):
    """Values whose products overflow."""
    x = RNG.integers(-(2**40), 2**40, shape)
    if dtype == "b1":
        return x % 3 == 0
    return (x / 2.0**40).astype(dtype) if np.dtype(dtype).kind in "fc" else x.astype(dtype)


def multiplied(a, b, view=lambda v: v):
    made = products.product(view(mb.CuArray._upload(a)), view(mb.CuArray._upload(b)))
    return mb.CuArray._download(made)


def assert_product(got, a, b):
    dtype = np.result_type(a, b)
    working = np.float32 if dtype == np.float16 else dtype
    want = np.asarray(np.matmul(a.astype(working), b.astype(working))).astype(dtype)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    if dtype.kind in "fc":
        # (Sums in another order: near by what was added, much of which may cancel.)
        near = 8 * np.finfo(dtype).eps * (1 + np.matmul(abs(a.astype(working)), abs(b.astype(working))))
        assert (abs(got.astype(working) - want.astype(working)) <= near).all()
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_are_numpys(dtype):
    for one, other in SHAPES if dtype in ("b1", "i4") else SHAPES[2:6]:
        a, b = samples(one, dtype), samples(other, dtype)
        assert_product(multiplied(a, b), a, b)


@pytest.mark.parametrize(("one", "other"), [
    ("i1", "u1"), ("b1", "i4"), ("u4", "i8"), ("i8", "u8"), ("i2", "f4"), ("b1", "f2"), ("c8", "i4"),
])  # fmt: skip
def test_mixed_dtypes(one, other):
    a, b = samples((6, 5), one), samples((5, 4), other)
    assert_product(multiplied(a, b), a, b)
    assert_product(multiplied(b.T, a.T), b.T, a.T)


@pytest.mark.parametrize("how", [
    lambda v: v.transpose((1, 0)), lambda v: v[::-1, ::-1], lambda v: v[::2, ::2], lambda v: v[1:, 1:],
], ids=["transposed", "reversed", "strided", "cut"])  # fmt: skip
def test_operands_are_read_where_they_lie(how):
    a, b = samples((21, 21), "i4"), samples((21, 21), "i4")
    with mb.count() as counts:
        got = multiplied(a, b, how)
    assert counts.launches == 1
    assert_product(got, how(a), how(b))


@pytest.mark.parametrize("dtype", ["b1", "u1", "i8", "f2"])
def test_long_sums_are_cut_into_parts(dtype, monkeypatch):
    monkeypatch.setattr(products, "LEAST_STEPS", 32)
    a, b = samples((4, 70), dtype), samples((70, 5), dtype)
    with mb.count() as counts:
        got = multiplied(a, b)
    assert counts.launches == (3 if dtype == "f2" else 2)  # (one rounds)
    if dtype == "f2":
        want = a.astype("f4") @ b.astype("f4")
        np.testing.assert_allclose(got, want, rtol=2e-3, atol=1e-2)
    else:
        assert_product(got, a, b)


@pytest.mark.parametrize("shape", [(40, 20, 20), (70, 9, 12)])
def test_tiles_of_every_size(shape, monkeypatch):
    monkeypatch.setattr(products, "BLOCKS", 0)  # the largest
    products._planned.cache_clear()
    m, k, n = shape
    a, b = samples((m, k), "i4"), samples((k, n), "i4")
    assert_product(multiplied(a, b), a, b)
    products._planned.cache_clear()


def test_stretched_stacks():
    a, b = samples((3, 1, 4, 5), "i4"), samples((2, 5, 6), "i4")
    assert_product(multiplied(a, b), a, b)
    many = samples((9, 3, 3), "i2")
    assert_product(multiplied(many, many), many, many)


def test_single_rows_are_one_reduction():
    a, b = samples((30, 40), "i4"), samples(40, "i4")
    x, y = mb.CuArray._upload(a), mb.CuArray._upload(b)
    with mb.count() as counts:
        out = products.product(x, y)
    assert (counts.launches, counts.temporaries) == (1, 0)
    assert_product(mb.CuArray._download(out), a, b)


def test_shapes_that_do_not_fit():
    x, y = mb.CuArray._upload(np.ones((2, 3), int)), mb.CuArray._upload(np.ones((4, 2), int))
    with pytest.raises(ValueError, match="3 columns meet 4 rows"):
        products.product(x, y)
    with pytest.raises(ValueError, match="multiply by numbers"):
        products.product(x, y[0, 0])


@pytest.mark.parametrize("dtypes", [
    ("i1", "i1", "i4", "i1"), ("u4", "u4", "i4", "u4"), ("i8", "u4", "i8", "i8"), ("f2", "f2", "f4", "f2"),
    ("b1", "b1", "i4", "b1"), ("c8", "c8", "c8", "c8"),
])  # fmt: skip
def test_lowered_text_multiplies(dtypes):
    first, second, working, result = map(np.dtype, dtypes)
    a, b = samples((33, 18), dtypes[0]), samples((20, 18), dtypes[1]).T
    y = np.zeros((33, 20), result)
    how = ProductLayout(2, 1, 0, False, False, first, second, working, result, result.kind == "b")
    steps = (*y.strides, 0, *a.strides, *b.strides)
    kernel = gpukernels.OnHost(product_source(how))
    addresses = (y.ctypes.data, a.ctypes.data, b.ctypes.data)
    kernel((4, 1, 1), (16, 16, 1), *addresses, 33, 20, 18, 4, 32, 2, *steps)
    assert_product(y, a, b)


@pytest.mark.parametrize("how", [
    (4, 4, 0, False, True, "i4", "i4", "i4", "i4"), (4, 4, 1, True, False, "u1", "u1", "i4", "u1"),
    (4, 4, 0, False, True, "i8", "i8", "i8", "i8"), (2, 2, 2, False, True, "f2", "f2", "f4", "f2"),
    (4, 4, 0, False, True, "b1", "b1", "i4", "b1", True),
], ids=["i4", "u1", "i8", "f2", "b1"])  # fmt: skip
def test_nothing_spills(how, tmp_path):
    source = product_source(ProductLayout(*how[:5], *map(np.dtype, how[5:9]), *how[9:]))
    registers, spills = gpukernels.resources(gpukernels.ptx(source), tmp_path)
    assert registers <= 128
    assert spills == 0
