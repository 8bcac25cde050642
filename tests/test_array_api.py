"""mirabelle as a namespace of the array API standard, version 2025.12: names, signatures, functions.

Each test runs over three namespaces: mirabelle itself (arrays on the host), that of the reference
device, and that of transposed views. Special values are in test_special_values.py.
"""

import array
import inspect
import math
import operator

import numpy as np
import pytest
from compare import assert_same
from drawing import check_signature, signature_lines
from samples import COMPLEX, DTYPES, FLOATS, INTEGERS, edges, ids, ordinary

import mirabelle as mb

NAMESPACES = {
    "host": mb,
    "ref": mb.namespace(mb.RefArray),
    "cuda": mb.namespace(mb.CuArray),
    "transposed": mb.namespace(mb.types.Transpose[mb.HostArray]),
}
# Half precision is ours, not the standard's.
STANDARD = [d for d in DTYPES if d != np.float16]
REAL = [d for d in STANDARD if d.kind in "iuf"]
NUMERIC = [d for d in STANDARD if d.kind != "b"]

every_dtype = pytest.mark.parametrize("dtype", STANDARD, ids=ids(STANDARD))


@pytest.fixture(params=NAMESPACES)
def xp(request):
    with mb.allow_scalar():
        yield NAMESPACES[request.param]


def home(xp):
    return xp.__array_namespace_info__().default_device()


def same(mine, expected, xp=None, **kwargs):
    """NumPy's values, where the namespace's arrays are."""
    assert_same(mine, expected, **kwargs)
    if xp is not None:
        assert mine.device == home(xp)


# Names and signatures, as the standard has them

_CASTS = "abs bool complex dlpack_device float index int invert neg pos"
_UNARY = """abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag
    isfinite isinf isnan log log1p log2 log10 logical_not negative positive real reciprocal round sign signbit
    sin sinh square sqrt tan tanh trunc"""
_BINARY = """add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign
    divide equal floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or
    logical_xor maximum minimum multiply nextafter not_equal pow remainder subtract"""
SIGNATURES = """
    arange(start, /, stop=None, step=1, *, dtype=None, device=None)
    asarray(obj, /, *, dtype=None, device=None, copy=None)
    empty(shape, *, dtype=None, device=None)
    empty_like(x, /, *, dtype=None, device=None)
    eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)
    from_dlpack(x, /, *, device=None, copy=None)
    full(shape, fill_value, *, dtype=None, device=None)
    full_like(x, /, fill_value, *, dtype=None, device=None)
    linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)
    meshgrid(*arrays, indexing="xy")
    ones(shape, *, dtype=None, device=None)
    ones_like(x, /, *, dtype=None, device=None)
    tril(x, /, *, k=0)
    triu(x, /, *, k=0)
    zeros(shape, *, dtype=None, device=None)
    zeros_like(x, /, *, dtype=None, device=None)
    astype(x, dtype, /, *, copy=True, device=None)
    broadcast_arrays(*arrays)
    broadcast_shapes(*shapes)
    broadcast_to(x, /, shape)
    can_cast(from_, to, /)
    finfo(type, /)
    iinfo(type, /)
    isdtype(dtype, kind)
    result_type(*arrays_and_dtypes)
    clip(x, /, min=None, max=None)
    take(x, indices, /, *, axis=None)
    take_along_axis(x, indices, /, *, axis=-1)
    matmul(x1, x2, /)
    matrix_transpose(x, /)
    tensordot(x1, x2, /, *, axes=2)
    vecdot(x1, x2, /, *, axis=-1)
    concat(arrays, /, *, axis=0)
    expand_dims(x, /, axis)
    flip(x, /, *, axis=None)
    moveaxis(x, source, destination, /)
    permute_dims(x, /, axes)
    repeat(x, repeats, /, *, axis=None)
    reshape(x, /, shape, *, copy=None)
    roll(x, /, shift, *, axis=None)
    squeeze(x, /, axis)
    stack(arrays, /, *, axis=0)
    tile(x, repetitions, /)
    unstack(x, /, *, axis=0)
    argmax(x, /, *, axis=None, keepdims=False)
    argmin(x, /, *, axis=None, keepdims=False)
    count_nonzero(x, /, *, axis=None, keepdims=False)
    nonzero(x, /)
    searchsorted(x1, x2, /, *, side="left", sorter=None)
    where(condition, x1, x2, /)
    isin(x1, x2, /, *, invert=False)
    unique_all(x, /)
    unique_counts(x, /)
    unique_inverse(x, /)
    unique_values(x, /)
    argsort(x, /, *, axis=-1, descending=False, stable=True)
    sort(x, /, *, axis=-1, descending=False, stable=True)
    cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)
    cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False)
    max(x, /, *, axis=None, keepdims=False)
    mean(x, /, *, axis=None, keepdims=False)
    min(x, /, *, axis=None, keepdims=False)
    prod(x, /, *, axis=None, dtype=None, keepdims=False)
    std(x, /, *, axis=None, correction=0.0, keepdims=False)
    sum(x, /, *, axis=None, dtype=None, keepdims=False)
    var(x, /, *, axis=None, correction=0.0, keepdims=False)
    all(x, /, *, axis=None, keepdims=False)
    any(x, /, *, axis=None, keepdims=False)
    diff(x, /, *, axis=-1, n=1, prepend=None, append=None)
    __array_namespace_info__()
"""
SIGNATURES += "".join(f"{name}(x, /)\n" for name in _UNARY.split())
SIGNATURES += "".join(f"{name}(x1, x2, /)\n" for name in _BINARY.split())
_OPERATORS = """add and eq floordiv ge gt le lshift lt matmul mod mul ne or pow rshift sub truediv xor"""
METHODS = """
    __array_namespace__(*, api_version=None)
    __dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)
    __getitem__(key, /)
    __setitem__(key, value, /)
    to_device(device, /, *, stream=None)
"""
METHODS += "".join(f"__{m}__()\n" for m in _CASTS.split())
for _name in _OPERATORS.split():
    METHODS += f"__{_name}__(other, /)\n"
    if _name not in ("eq", "ne", "le", "lt", "ge", "gt"):
        METHODS += f"__r{_name}__(other, /)\n__i{_name}__(other, /)\n"


@signature_lines(SIGNATURES)
def test_signature(line, xp):
    check_signature(getattr(xp, line.partition("(")[0]), line)


@signature_lines(METHODS)
def test_method_signature(line, xp):
    check_signature(getattr(xp.ones((2, 2)), line.partition("(")[0]), line)


INSPECTION = """
    capabilities()
    default_device()
    default_dtypes(*, device=None)
    devices()
    dtypes(*, device=None, kind=None)
"""


@signature_lines(INSPECTION)
def test_inspection_signature(line, xp):
    check_signature(getattr(xp.__array_namespace_info__(), line.partition("(")[0]), line)


def test_attributes_and_constants(xp):
    x = xp.ones((2, 3))
    assert (x.dtype, x.ndim, x.shape, x.size, x.device) == (np.float64, 2, (2, 3), 6, home(xp))
    same(x.T, np.ones((3, 2)), xp)
    same(x.mT, np.ones((3, 2)), xp)
    for name in ("e", "inf", "nan", "pi"):
        assert type(getattr(xp, name)) is float
    assert xp.newaxis is None and xp.__array_api_version__ == "2025.12"
    for dtype in STANDARD:
        assert getattr(xp, dtype.name) == dtype


def test_signatures_are_those_of_the_reference_implementation():
    strict = pytest.importorskip("array_api_strict")
    listed = {line.strip().partition("(")[0] for line in SIGNATURES.strip().splitlines()}
    theirs = {n for n in strict.__all__ if inspect.isfunction(getattr(strict, n)) and "strict_flags" not in n}
    assert theirs <= listed


def test_options_may_come_by_position_as_numpys_users_write():
    x = mb.HostArray([[3.0, 1.0], [2.0, 4.0]])
    n = np.array(x)
    for name in (
        "sum",
        "prod",
        "max",
        "min",
        "mean",
        "std",
        "var",
        "any",
        "all",
        "argmax",
        "argmin",
        "sort",
        "argsort",
    ):
        assert_same(getattr(mb, name)(x, 0), getattr(np, name)(n, 0), rtol=1e-15)
    assert_same(mb.flip(x, 0), np.flip(n, 0))
    assert_same(mb.roll(x, 1, 1), np.roll(n, 1, 1))
    assert_same(mb.repeat(x, 2, 0), np.repeat(n, 2, 0))
    assert_same(mb.stack([x, x], 1), np.stack([n, n], 1))
    assert_same(mb.concat([x, x], 1), np.concat([n, n], 1))
    assert_same(mb.zeros((2, 2), int), np.zeros((2, 2), int))
    assert_same(mb.full(2, 1.5, np.float32), np.full(2, 1.5, np.float32))
    assert_same(mb.eye(2, 3, 1, int), np.eye(2, 3, 1, int))
    assert_same(mb.linspace(0, 1, 4, False), np.linspace(0, 1, 4, False))
    assert_same(mb.asarray([1, 2], "f4"), np.asarray([1, 2], "f4"))


# The array object


@every_dtype
def test_operators_agree_with_functions(xp, dtype):
    x = xp.asarray(ordinary(dtype, (2, 3)))
    y = xp.asarray(ordinary(dtype, (2, 3), seed=1))
    named = {"add": "add", "subtract": "sub", "multiply": "mul"}
    if dtype.kind == "b":
        named = {"bitwise_and": "and_", "bitwise_or": "or_", "bitwise_xor": "xor"}
    elif dtype.kind in "iu":
        named |= {"bitwise_and": "and_", "bitwise_left_shift": "lshift"}
        y = xp.remainder(xp.abs(y), 5)
    for function, op in named.items():
        expected = mb.to_numpy(getattr(xp, function)(x, y))
        same(getattr(operator, op)(x, y), expected, xp)
        z = xp.asarray(x, copy=True)
        same(getattr(operator, f"i{op.strip('_')}")(z, y), expected, xp)
    for function in ("equal", "not_equal"):
        same(getattr(operator, function[:2] if function == "equal" else "ne")(x, y), getattr(np, function)(
            mb.to_numpy(x), mb.to_numpy(y)), xp)  # fmt: skip


@every_dtype
def test_python_scalars_do_not_change_the_dtype(xp, dtype):
    x = xp.asarray(ordinary(dtype, (3,)))
    scalars = {"b": [True], "i": [2], "u": [2], "f": [2, 2.5], "c": [2, 2.5, 1 - 2j]}[dtype.kind]
    for s in scalars:
        if dtype.kind == "b":
            assert (x & s).dtype == (s | x).dtype == dtype
            continue
        assert (x + s).dtype == (s - x).dtype == (x * s).dtype == dtype
        assert xp.where(xp.asarray([True, False, True]), x, s).dtype == dtype
        assert (x == s).dtype == (s != x).dtype == np.bool_


@every_dtype
def test_one_number_becomes_pythons(xp, dtype):
    x = xp.asarray(1, dtype=dtype)
    assert complex(x) == 1
    if dtype.kind == "c":
        for f in (int, float):
            with pytest.raises(TypeError):
                f(x)
    else:
        assert type(int(x)) is int and type(float(x)) is float and type(bool(x)) is bool
    if dtype.kind in "iu":
        assert operator.index(x) == 1 and [5, 6][x] == 6
    else:
        with pytest.raises(TypeError):
            operator.index(x)


def test_masks_of_no_elements_pick_nothing(xp):
    x = xp.ones((3, 2))
    for shape, picked in (((0,), (0, 2)), ((0, 2), (0,)), ((3, 0), (0,)), ((0, 0), (0,))):
        mask = xp.zeros(shape, dtype=xp.bool)
        assert x[mask].shape == picked
        x[mask] = 9.0
    assert xp.all(x == 1)
    for shape in ((2,), (0, 3), (2, 0), (3, 2, 1)):
        with pytest.raises(IndexError):
            x[xp.zeros(shape, dtype=xp.bool)]


def test_elements_of_a_device_are_copied_unless_somebody_asks_for_kernels():
    from mirabelle.dispatch.tree import Broadcasted

    x, seen = mb.RefArray([[1.0, 2.0], [3.0, 4.0]]), []

    def watched(dest: mb.RefArray, src: Broadcasted):
        seen.append(src.shape)
        return mb.copyto.previous(dest, src)

    with mb.allow_scalar():
        element = x[1, 0]
        x[1, 0] = 7.0
        assert float(element) == 3 and float(x[1, 0]) == 7 and float((x * 2).T[0, 1]) == 14
        with mb.count() as c:
            assert float(x[0, 0]) == 1
        assert c.launches == 1
        with mb.override(mb.copyto, (mb.RefArray, Broadcasted), watched):
            assert float(x[0, 1]) == 2
        assert seen == [()]


def test_several_numbers_are_no_number(xp):
    x = xp.ones(3, dtype=xp.int64)
    for f in (int, float, complex, operator.index):
        with pytest.raises(TypeError):
            f(x)
    with pytest.raises(ValueError, match=r"mb\.any"):
        bool(x)


def test_namespace_of_an_array(xp):
    x = xp.ones(2)
    own = x.__array_namespace__()
    assert own is x.__array_namespace__(api_version="2025.12") is (x + 1).__array_namespace__()
    assert own.zeros(2).device == x.device
    with pytest.raises(ValueError, match=r"2025\.12"):
        x.__array_namespace__(api_version="1999.12")


def test_to_device(xp):
    x = xp.asarray([1.0, 2.0])
    assert x.to_device(x.device) is x
    for device in xp.__array_namespace_info__().devices():
        moved = x.to_device(device)
        assert moved.device == device and mb.to_numpy(moved).tolist() == [1, 2]
    with pytest.raises(ValueError, match="stream"):
        x.to_device(x.device, stream=3)


# Creation


@every_dtype
def test_asarray_of_numbers_and_lists(xp, dtype):
    n = ordinary(dtype, (2, 3))
    same(xp.asarray(n.tolist(), dtype=dtype), n, xp)
    same(xp.asarray(n.tolist()), np.asarray(n.tolist()), xp)
    same(xp.asarray(n[0, 0].item(), dtype=dtype), n[0, 0], xp)
    same(xp.asarray(tuple(map(tuple, n.tolist()))), np.asarray(n.tolist()), xp)
    same(xp.asarray(n), n, xp)


def test_asarray_of_nested_arrays(xp):
    x = xp.asarray([[1, 2, 3], [4, 5, 6]])
    same(xp.asarray(xp.unstack(x)), mb.to_numpy(x), xp)
    same(xp.asarray([[x[0, 0], 7], [x[1, 1], x[1, 2]]]), np.array([[1, 7], [5, 6]]), xp)
    same(xp.asarray([x[0], x[1]], dtype=xp.float32), np.array([[1, 2, 3], [4, 5, 6]], "f4"), xp)
    same(xp.asarray(()), np.asarray(()), xp)


@every_dtype
def test_asarray_copies_if_told_to(xp, dtype):
    x = xp.asarray(ordinary(dtype, (3,)) * 0)
    copied, shared = xp.asarray(x, copy=True), xp.asarray(x, copy=False)
    kept = xp.asarray(x)
    x[1] = 1
    assert not xp.all(copied == x) and bool(xp.all(shared == x)) and bool(xp.all(kept == x))
    assert xp.asarray(x, dtype=xp.complex128).dtype == xp.complex128


def test_asarray_shares_what_shows_its_memory():
    a = array.array("d", [1.0, 2.0])
    for source in (a, memoryview(a), bytearray(b"abc"), np.array([1.0, 2.0])):
        x = mb.asarray(source, copy=False)
        x[0] = 7
        assert memoryview(source)[0] == 7
        y = mb.asarray(source, copy=True)
        y[0] = 9
        assert memoryview(source)[0] == 7

    class Foreign:
        def __array__(self, dtype=None, copy=None):
            return np.array([1, 2, 3])

    assert mb.asarray(Foreign()).tolist() == [1, 2, 3]


def test_asarray_refuses(xp):
    with pytest.raises(ValueError, match="same length"):
        xp.asarray([[1], [2, 3]])
    with pytest.raises(OverflowError):
        xp.asarray([300], dtype=xp.int8)
    with pytest.raises(TypeError):
        xp.asarray([object()])
    with pytest.raises(ValueError, match="copy"):
        xp.asarray([1.0], copy=False)
    with pytest.raises(ValueError, match="copy"):
        xp.asarray(xp.ones(2), dtype=xp.int8, copy=False)
    with pytest.raises(ValueError, match=r"could not convert|nothing that an array can be made of"):
        xp.asarray(["a"], dtype=xp.float64)


@every_dtype
def test_filled_arrays(xp, dtype):
    value = ordinary(dtype, (3,))[2].item()
    for shape in ((), (3,), (2, 0), (2, 3)):
        same(xp.zeros(shape, dtype=dtype), np.zeros(shape, dtype), xp)
        same(xp.ones(shape, dtype=dtype), np.ones(shape, dtype), xp)
        same(xp.full(shape, value, dtype=dtype), np.full(shape, value, dtype), xp)
        x = xp.ones(shape, dtype=dtype)
        same(xp.zeros_like(x), np.zeros(shape, dtype), xp)
        same(xp.ones_like(x, dtype=xp.int8), np.ones(shape, np.int8), xp)
        same(xp.full_like(x, value), np.full(shape, value, dtype), xp)
        assert xp.empty_like(x).shape == shape and xp.empty_like(x).dtype == dtype
        assert xp.zeros_like(x, device=mb.RefArray).device == mb.RefArray.home
        assert xp.empty(shape, dtype=dtype).dtype == dtype
    assert xp.full(2, value).dtype == np.full(2, value).dtype


def test_default_dtypes(xp):
    assert xp.zeros(2).dtype == xp.ones(2).dtype == xp.empty(2).dtype == xp.eye(2).dtype == xp.float64
    assert xp.asarray(1).dtype == xp.arange(3).dtype == xp.full(1, 2).dtype == xp.int64
    assert xp.asarray(1j).dtype == xp.linspace(0, 1j, 3).dtype == xp.complex128
    assert xp.asarray(True).dtype == xp.full(1, False).dtype == xp.bool


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((5,), {}), ((2, 9), {}), ((2, 9, 3), {}), ((9, 2, -3), {}), ((5,), {"step": 2}), ((5, 1), {}),
        ((-3,), {}), ((0.5, 3, 0.5), {}), ((3.0,), {}), ((5,), {"dtype": np.uint8}),
        ((5,), {"dtype": np.float32}),
        ((0, 1, 0.25), {"dtype": np.float32}),
    ],
)  # fmt: skip
def test_arange(xp, args, kwargs):
    start, stop = (0, args[0]) if len(args) == 1 else args[:2]
    step = args[2] if len(args) > 2 else kwargs.get("step", 1)
    same(xp.arange(*args, **kwargs), np.arange(start, stop, step, dtype=kwargs.get("dtype")), xp)


@pytest.mark.parametrize("num", [0, 1, 2, 7])
@pytest.mark.parametrize("endpoint", [True, False])
def test_linspace(xp, num, endpoint):
    for start, stop in ((0, 1), (5.0, -2.5), (1 + 1j, 3)):
        same(
            xp.linspace(start, stop, num, endpoint=endpoint),
            np.linspace(start, stop, num, endpoint=endpoint),
            xp,
        )
    for dtype in ("f4", "i4", "c8"):
        expected = np.linspace(0, 12, num, dtype=dtype, endpoint=endpoint)
        same(xp.linspace(0, 12, num, dtype=dtype, endpoint=endpoint), expected, xp)


@pytest.mark.parametrize("k", [0, 1, -1, 2, -3, 9, -9, 10**20])
def test_eye_tril_triu(xp, k):
    for n, m in ((3, 3), (2, 4), (4, 2), (0, 3), (3, 0)):
        expected = np.array([[j - i == k for j in range(m)] for i in range(n)]).reshape(n, m)
        same(xp.eye(n, m, k=k), expected.astype(float), xp)
        same(xp.eye(n, m, k=k, dtype=xp.int8), expected.astype(np.int8), xp)
        for dtype in ("?", "i4", "f8", "c8"):
            x = ordinary(dtype, (2, n, m))
            near = max(min(k, 50), -50)
            same(xp.tril(xp.asarray(x), k=k), np.tril(x, near), xp)
            same(xp.triu(xp.asarray(x), k=k), np.triu(x, near), xp)
    with pytest.raises(ValueError, match="matrices"):
        xp.tril(xp.ones(3))


def test_triangles_are_lazy_and_keep_what_is_not_a_number_out(xp, many):
    x = xp.asarray([[1.0, math.nan], [2.0, 3.0]])
    same(xp.tril(x), np.array([[1.0, 0.0], [2.0, 3.0]]), xp)
    with mb.count() as c:
        mb.materialize(xp.sum(xp.triu(x * 2) + 1, axis=1))
    assert (c.launches, c.temporaries) == (1, 0)


@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_meshgrid(xp, indexing):
    vectors = [ordinary(d, (n,)) for n, d in ((3, "i4"), (2, "f8"), (0, "c8"), (4, "?"))]
    for n in range(5):
        for sparse in (False, True):
            made = xp.meshgrid(*map(xp.asarray, vectors[:n]), indexing=indexing, sparse=sparse)
            assert isinstance(made, tuple)
            expected = np.meshgrid(*vectors[:n], indexing=indexing, sparse=sparse)
            for a, b in zip(made, expected, strict=True):
                same(a, b, xp)
    with pytest.raises(ValueError, match="indexing"):
        xp.meshgrid(xp.ones(2), indexing="ji")


@every_dtype
def test_from_dlpack(xp, dtype):
    x = xp.asarray(ordinary(dtype, (2, 3)))
    y = xp.from_dlpack(x)
    assert y.device == x.device and bool(xp.all(x == y))
    assert xp.from_dlpack(x, copy=False, device=x.device).device == x.device
    copied = xp.from_dlpack(x, copy=True)
    x[0, 0] = not x[0, 0] if dtype.kind == "b" else x[0, 0] + 1
    assert not xp.all(copied == x)
    for device in xp.__array_namespace_info__().devices():
        assert xp.from_dlpack(x, device=device).device == device


# Data types


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX, ids=ids(FLOATS + COMPLEX))
def test_finfo(xp, dtype):
    part = np.finfo(dtype)
    for arg in (dtype, dtype.type, dtype.name, xp.asarray(1, dtype=dtype)):
        info = xp.finfo(arg)
        assert info.bits == part.bits and type(info.bits) is int
        for name in ("eps", "max", "min", "smallest_normal"):
            assert type(getattr(info, name)) is float and getattr(info, name) == getattr(part, name)
        assert info.dtype == part.dtype and isinstance(info.dtype, np.dtype)
    with pytest.raises(ValueError, match="iinfo"):
        xp.finfo(xp.int8)


@pytest.mark.parametrize("dtype", INTEGERS, ids=ids(INTEGERS))
def test_iinfo(xp, dtype):
    for arg in (dtype, dtype.type, dtype.name, xp.asarray(1, dtype=dtype)):
        info = xp.iinfo(arg)
        assert (info.bits, info.max, info.min) == (dtype.itemsize * 8, np.iinfo(dtype).max, np.iinfo(dtype).min)
        assert all(type(v) is int for v in (info.bits, info.max, info.min)) and info.dtype == dtype
    with pytest.raises(ValueError, match="finfo"):
        xp.iinfo(xp.float32)


@every_dtype
def test_isdtype(dtype):
    kinds = {
        "bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
        "complex floating": "c", "numeric": "iufc",
    }  # fmt: skip
    for kind, letters in kinds.items():
        assert mb.isdtype(dtype, kind) is (dtype.kind in letters)
        assert mb.isdtype(dtype, (kind, "bool")) is (dtype.kind in letters + "b")
    for other in STANDARD:
        assert mb.isdtype(dtype, other) is mb.isdtype(dtype, (other,)) is (dtype == other)
    with pytest.raises(ValueError, match="numeric"):
        mb.isdtype(dtype, "floating")


@every_dtype
def test_can_cast_and_result_type(xp, dtype):
    x = xp.ones(2, dtype=dtype)
    for other in STANDARD:
        assert xp.can_cast(dtype, other) is xp.can_cast(x, other) is bool(np.can_cast(dtype, other))
        both = np.result_type(dtype, other)
        assert xp.result_type(dtype, other) == xp.result_type(other, x) == xp.result_type(x, other) == both
    for scalar in {"b": (True,), "i": (1,), "u": (1,), "f": (1, 1.0), "c": (1, 1.0, 1j)}[dtype.kind]:
        assert xp.result_type(dtype, scalar) == xp.result_type(scalar, x, dtype) == dtype
    with pytest.raises(ValueError, match="at least one"):
        xp.result_type()


@every_dtype
def test_astype(xp, dtype):
    n = ordinary(dtype, (2, 3))
    x = xp.asarray(n, copy=True)
    for other in STANDARD:
        if dtype.kind != "c" or other.kind in "cb":
            with np.errstate(all="ignore"):
                same(xp.astype(x, other), n.astype(other), xp)
    assert xp.astype(x, dtype, copy=False) is x
    copied = xp.astype(x, dtype)
    x[0, 0] = not n[0, 0] if dtype.kind == "b" else n[0, 0].item() + 1
    same(copied, n, xp)
    assert xp.astype(x, xp.bool, device=mb.RefArray).device == mb.RefArray.home


# Manipulation


def assert_elements(x, n):
    """Every element, read by itself, is what it should be."""
    for index in np.ndindex(n.shape):
        element = x[index]
        assert element.shape == () and element.dtype == n.dtype and bool(element == n[index])


@every_dtype
def test_views(xp, dtype):
    n = ordinary(dtype, (2, 1, 3))
    x = xp.asarray(n)
    made = {
        "flip": (xp.flip(x), np.flip(n)),
        "flip some": (xp.flip(x, axis=(0, -1)), np.flip(n, (0, 2))),
        "expand_dims": (xp.expand_dims(x, 1), np.expand_dims(n, 1)),
        "expand_dims last": (xp.expand_dims(x, -1), np.expand_dims(n, -1)),
        "expand_dims some": (xp.expand_dims(x, (0, -1)), np.expand_dims(n, (0, -1))),
        "squeeze": (xp.squeeze(x, 1), n[:, 0]),
        "moveaxis": (xp.moveaxis(x, 0, -1), np.moveaxis(n, 0, -1)),
        "moveaxis some": (xp.moveaxis(x, (0, 1), (2, 0)), np.moveaxis(n, (0, 1), (2, 0))),
        "permute_dims": (xp.permute_dims(x, (2, 0, 1)), n.transpose(2, 0, 1)),
        "broadcast_to": (xp.broadcast_to(x, (4, 2, 5, 3)), np.broadcast_to(n, (4, 2, 5, 3))),
        "reshape": (xp.reshape(x, (3, -1)), n.reshape(3, -1)),
        "unstack": (xp.unstack(x, axis=2)[1], n[..., 1]),
    }
    for a, b in made.values():
        same(a, b, xp)
    assert_elements(*made["flip"])


def test_views_show_and_are_written_through(xp):
    x = xp.zeros((2, 3))
    xp.flip(x)[0, 0] = 1
    xp.expand_dims(x, 0)[0, 0, 0] = 2
    xp.moveaxis(x, 0, 1)[1, 0] = 3
    xp.unstack(x)[1][...] = 4
    xp.unstack(xp.unstack(x)[0])[2][...] = 5  # (an element, which is a copy)
    assert x.tolist() == [[2, 3, 0], [4, 4, 4]]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda xp, x: xp.expand_dims(x, 4), IndexError),
        (lambda xp, x: xp.expand_dims(x, (0, 0)), ValueError),
        (lambda xp, x: xp.squeeze(x, 0), ValueError),
        (lambda xp, x: xp.squeeze(x, 5), IndexError),
        (lambda xp, x: xp.flip(x, axis=7), IndexError),
        (lambda xp, x: xp.moveaxis(x, 0, (0, 1)), ValueError),
        (lambda xp, x: xp.unstack(x[0, 0]), ValueError),
        (lambda xp, x: xp.stack([x, x[0]]), ValueError),
        (lambda xp, x: xp.concat([x, x[0]]), ValueError),
        (lambda xp, x: xp.concat([]), ValueError),
        (lambda xp, x: xp.roll(x, (1, 2), axis=(0, 1, 1)), ValueError),
        (lambda xp, x: xp.repeat(x, -1), ValueError),
        (lambda xp, x: xp.repeat(x, [1.5, 2.5], axis=0), TypeError),
        (lambda xp, x: xp.tile(x, (-1,)), ValueError),
        (lambda xp, x: xp.reshape(x, (4, 4)), ValueError),
        (lambda xp, x: xp.broadcast_to(x, (5, 3)), ValueError),
        (lambda xp, x: xp.broadcast_arrays(x, x[:, :2]), ValueError),
        (lambda xp, x: xp.argmax(xp.zeros((0,))), ValueError),
        (lambda xp, x: xp.cumulative_sum(x), ValueError),
        (lambda xp, x: xp.diff(x, n=-1), ValueError),
        (lambda xp, x: xp.sort(x, axis=2), IndexError),
        (lambda xp, x: xp.nonzero(x[0, 0]), ValueError),
    ],
)
def test_bad_arguments_are_refused(xp, call, error):
    x = xp.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with pytest.raises(error):
        call(xp, x)
    assert x.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_broadcasting_functions(xp):
    arrays = [ordinary(d, s) for d, s in (("f4", (4, 1)), ("i8", (3,)), ("?", ()))]
    made = xp.broadcast_arrays(*map(xp.asarray, arrays))
    assert isinstance(made, tuple)
    for a, b in zip(made, np.broadcast_arrays(*arrays), strict=True):
        same(a, b, xp)
    assert xp.broadcast_shapes((4, 1), (3,), ()) == (4, 3) and xp.broadcast_shapes() == ()
    with pytest.raises(ValueError):
        xp.broadcast_shapes((2,), (3,))


@pytest.mark.parametrize("size", [3, 700], ids=["small", "large"])
@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_concat_and_stack(xp, axis, size):
    size = 40 if xp is NAMESPACES["ref"] and size > 40 else size
    parts = [ordinary(d, (2, size), seed=i) for i, d in enumerate(("i2", "f4", "i8"))]
    xs = [xp.asarray(p) for p in parts]
    same(xp.concat(xs, axis=axis), np.concatenate(parts, axis=axis), xp)
    same(xp.concat([x * 2 for x in xs], axis=axis), np.concatenate([p * 2 for p in parts], axis=axis), xp)
    if axis is not None:
        same(xp.stack(xs, axis=axis), np.stack(parts, axis=axis), xp)
        same(xp.stack([x + 1 for x in xs], axis=axis - 1), np.stack([p + 1 for p in parts], axis=axis - 1), xp)


def test_pending_parts_are_computed_in_their_place(many):
    for xp in (mb, NAMESPACES["ref"]):
        x = xp.linspace(0, 1, 50)
        for join in (xp.concat, xp.stack):
            with mb.count() as c:
                out = join([xp.sin(x) * 2, x + 1])
            assert (c.launches, c.temporaries, c.transfers) == (2, 0, 0)
            assert type(out) is type(xp.empty(1)).family[np.float64, out.ndim]


def test_joining_dispatches_on_what_leads():
    from mirabelle.arraytypes.functions.manipulation import stack_

    x, y = mb.HostArray([1.0]), mb.HostArray([2.0])
    with mb.override(stack_, (mb.HostArray, list, object), lambda lead, arrays, axis: (len(arrays), axis)):
        assert mb.stack([x, y], axis=1) == (2, 1)


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (2, 0), (300, 41)])
def test_roll_repeat_tile(xp, shape):
    if math.prod(shape) > 100 and xp is not mb:
        shape = (4, 3, 2)
    n = ordinary("f8", shape)
    x = xp.asarray(n)
    for shift in (0, 1, -2, 13):
        same(xp.roll(x, shift), np.roll(n, shift), xp)
        if shape:
            same(xp.roll(x * 2, shift, axis=-1), np.roll(n * 2, shift, axis=-1), xp)
    if len(shape) > 1:
        same(xp.roll(x, (1, -1), axis=(0, 1)), np.roll(n, (1, -1), axis=(0, 1)), xp)
        same(xp.roll(x, 2, axis=(0, 1)), np.roll(n, 2, axis=(0, 1)), xp)
    for times in (0, 1, 3):
        same(xp.repeat(x, times), np.repeat(n, times), xp)
        if shape:
            same(xp.repeat(x + 1, times, axis=-1), np.repeat(n + 1, times, axis=-1), xp)
            each = np.arange(shape[-1]) % 3
            same(xp.repeat(x, xp.asarray(each), axis=-1), np.repeat(n, each, axis=-1), xp)
    for repetitions in (2, (2,), (2, 1, 3), (0, 2)):
        same(xp.tile(x, repetitions), np.tile(n, repetitions), xp)


def test_reshape_copies_or_not(xp):
    x = xp.asarray(np.arange(6))
    y = xp.reshape(x, (2, 3), copy=True)
    z = xp.reshape(x, (2, 3), copy=False)
    x[0] = 9
    assert y.tolist()[0][0] == 0 and z.tolist()[0][0] == 9
    x = xp.asarray(np.ones((4, 4)))[:, ::3]
    with pytest.raises(ValueError, match="copy"):
        xp.reshape(x, (8,), copy=False)
    same(xp.reshape(x, (8,)), np.ones(8), xp)


@pytest.mark.parametrize("copy", [True, False, None])
@pytest.mark.parametrize(
    ("shape", "to"), [((), (1,)), ((1,), ()), ((), ()), ((0,), (0, 5)), ((0, 3), (3, 0)), ((2, 3), (2, 3))]
)
def test_reshape_of_hardly_anything(xp, shape, to, copy):
    x = xp.zeros(shape)
    out = xp.reshape(x, to, copy=copy)
    assert out.shape == to and out.dtype == x.dtype
    if x.size:
        out[(0,) * out.ndim] = 7.0
        assert copy is None or bool(x[(0,) * x.ndim] == 7) is not copy


# Searching, sorting, sets


def tied(dtype, shape):
    """Values with ties, no NaN."""
    return ordinary(dtype, shape) // 2 if np.dtype(dtype).kind in "iu" else np.trunc(ordinary(dtype, shape))


@pytest.mark.parametrize("dtype", REAL, ids=ids(REAL))
@pytest.mark.parametrize("stable", [True, False])
@pytest.mark.parametrize("descending", [False, True])
def test_sort_and_argsort(xp, dtype, descending, stable):
    n = tied(dtype, (4, 9))
    x = xp.asarray(n)
    for axis in (-1, 0):
        order = xp.argsort(x, axis=axis, descending=descending, stable=stable)
        assert order.dtype == np.int64 and order.device == home(xp)
        expected = np.sort(n, axis=axis)
        expected = np.flip(expected, axis) if descending else expected
        same(xp.sort(x, axis=axis, descending=descending, stable=stable), expected, xp)
        same(xp.take_along_axis(x, order, axis=axis), expected, xp)
        if stable:
            for row, positions in zip(
                np.moveaxis(n, axis, -1), np.moveaxis(mb.to_numpy(order), axis, -1), strict=True
            ):
                values = row.tolist()
                assert positions.tolist() == sorted(range(len(row)), key=values.__getitem__, reverse=descending)


def test_sorted_zeros_may_change_places_and_orders_do_not(xp):
    zeros = np.array([0.0, -0.0, 0.0, -0.0, 1.0, -1.0])
    same(xp.sort(xp.asarray(zeros)), np.array([-1.0, 0.0, 0.0, 0.0, 0.0, 1.0]), xp, any_zero=True)
    same(xp.sort(xp.asarray(zeros), descending=True), np.array([1, 0.0, 0, 0, 0, -1]), xp, any_zero=True)
    same(xp.argsort(xp.asarray(zeros)), np.array([5, 0, 1, 2, 3, 4]), xp)
    same(xp.argsort(xp.asarray([math.nan, 1.0, math.nan])), np.array([1, 0, 2]), xp)


@pytest.mark.parametrize("dtype", REAL, ids=ids(REAL))
def test_argmax_and_argmin(xp, dtype):
    n = tied(dtype, (3, 4, 2))
    x = xp.asarray(n)
    for name in ("argmax", "argmin"):
        for axis in (None, 0, -1):
            for keepdims in (False, True):
                got = getattr(xp, name)(x, axis=axis, keepdims=keepdims)
                same(got, getattr(np, name)(n, axis=axis, keepdims=keepdims), xp)
    if dtype.kind == "f":
        assert int(xp.argmax(xp.asarray([1, math.nan, 3], dtype=dtype))) == 1


@every_dtype
def test_nonzero_and_where(xp, dtype):
    n = ordinary(dtype, (3, 4))
    x = xp.asarray(n)
    for a, b in zip(xp.nonzero(x), np.nonzero(n), strict=True):
        same(a, b, xp)
    for axis in (None, 0, (0, 1)):
        same(xp.count_nonzero(x, axis=axis), np.asarray(np.count_nonzero(n, axis=axis)), xp)
    condition = n != 0
    same(xp.where(xp.asarray(condition), x, xp.flip(x)), np.where(condition, n, np.flip(n)), xp)
    scalar = n[0, 0].item()
    same(xp.where(xp.asarray(condition), x, scalar), np.where(condition, n, n[0, 0]), xp)
    same(xp.where(xp.asarray(condition), scalar, x), np.where(condition, n[0, 0], n), xp)


@every_dtype
def test_unique(xp, dtype):
    n = np.trunc(ordinary(dtype, (3, 7)) / 2).astype(dtype) if dtype.kind in "f" else ordinary(dtype, (3, 7))
    x = xp.asarray(n)
    values, indices, inverse, counts = np.unique(n, return_index=True, return_inverse=True, return_counts=True)
    found = xp.unique_all(x)
    assert found._fields == ("values", "indices", "inverse_indices", "counts")
    for a, b in zip(found, (values, indices, inverse.reshape(n.shape), counts), strict=True):
        same(a, b, xp, any_zero=True)
    same(found.values[found.inverse_indices], n, xp, any_zero=True)
    same(xp.unique_values(x), values, xp, any_zero=True)
    same(xp.unique_counts(x).counts, counts, xp)
    same(xp.unique_inverse(x).inverse_indices, inverse.reshape(n.shape), xp)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_each_nan_is_a_value_of_its_own(xp, dtype):
    x = xp.asarray(np.array([math.nan, 1, math.nan, 1, -0.0, 0.0], dtype))
    values, counts = xp.unique_counts(x)
    assert mb.to_numpy(counts).tolist() == [2, 2, 1, 1] and mb.to_numpy(values).tolist()[:2] == [0, 1]
    assert mb.to_numpy(xp.isin(x, x)).tolist() == [False, True, False, True, True, True]


@every_dtype
def test_isin(xp, dtype):
    n, m = ordinary(dtype, (3, 4)), ordinary(dtype, (2, 2), seed=1)
    for invert in (False, True):
        same(xp.isin(xp.asarray(n), xp.asarray(m), invert=invert), np.isin(n, m, invert=invert), xp)
    scalar = n[1, 1].item()
    same(xp.isin(xp.asarray(n), scalar), np.isin(n, scalar), xp)
    same(xp.isin(scalar, xp.asarray(n)), np.isin(scalar, n), xp)


# Statistics and utilities


@pytest.mark.parametrize("dtype", NUMERIC, ids=ids(NUMERIC))
def test_sums_and_products(xp, dtype):
    n = ordinary(dtype, (3, 2, 4)) / (4 if dtype.kind in "fc" else 1)
    n = n.astype(dtype)
    x = xp.asarray(n)
    rtol = 0 if dtype.kind in "iu" else 1e-5
    for axis in (None, 0, (0, -1), ()):
        for keepdims in (False, True):
            kw = {"axis": axis, "keepdims": keepdims}
            same(xp.sum(x, **kw), np.sum(n, **kw), xp, rtol=rtol, atol=rtol)
            same(xp.prod(x, **kw), np.prod(n, **kw), xp, rtol=rtol, atol=rtol)
            same(xp.sum(x, dtype=dtype, **kw), np.sum(n, dtype=dtype, **kw), xp, rtol=rtol, atol=rtol)
            if dtype.kind != "c":
                same(xp.max(x, **kw), np.max(n, **kw), xp)
                same(xp.min(x, **kw), np.min(n, **kw), xp)
            if dtype.kind in "fc":
                same(xp.mean(x, **kw), np.mean(n, **kw), xp, rtol=1e-5, atol=1e-5)
            if dtype.kind == "f":
                for correction in (0, 1, 0.5):
                    for name in ("var", "std"):
                        got = getattr(xp, name)(x, correction=correction, **kw)
                        with np.errstate(all="ignore"):
                            if axis != ():
                                expected = getattr(np, name)(n, correction=correction, **kw)
                                same(got, expected, xp, rtol=1e-4, atol=1e-5)
    for axis in (0, -1):
        for initial in (False, True):
            kw = {"axis": axis, "include_initial": initial}
            for name in ("cumulative_sum", "cumulative_prod"):
                f, g = getattr(xp, name), getattr(np, name)
                same(f(x, **kw), g(n, **kw), xp, rtol=rtol, atol=rtol)
                same(f(x, dtype=dtype, **kw), g(n, dtype=dtype, **kw), xp, rtol=rtol, atol=rtol)


def test_cumulative_functions_of_one_dimension_need_no_axis(xp):
    x = xp.asarray([1, 2, 3])
    assert xp.cumulative_sum(x).tolist() == [1, 3, 6]
    assert xp.cumulative_prod(x, include_initial=True).tolist() == [1, 1, 2, 6]
    assert xp.cumulative_sum(xp.zeros((0,)), include_initial=True).tolist() == [0]


@pytest.mark.parametrize(
    ("name", "expected"), [("mean", math.nan), ("prod", 1), ("std", math.nan), ("sum", 0), ("var", math.nan)]
)
def test_nothing_and_nan(xp, name, expected):
    out = getattr(xp, name)(xp.asarray([], dtype=xp.float64))
    assert out.shape == () and (bool(xp.isnan(out)) if math.isnan(expected) else bool(out == expected))
    assert xp.isnan(getattr(xp, name)(xp.asarray([1.0, math.nan, 2.0])))
    assert xp.isnan(xp.max(xp.asarray([1.0, math.nan]))) and xp.isnan(xp.min(xp.asarray([math.nan, 1.0])))


@pytest.mark.parametrize("name", ["var", "std"])
def test_without_degrees_of_freedom_there_is_no_variance(xp, name):
    x = xp.asarray([[1.0, 2.0], [3.0, 5.0]])
    for correction in (2, 2.5, 7):
        out = getattr(xp, name)(x, axis=1, correction=correction)
        assert out.shape == (2,) and xp.all(xp.isnan(out))
    assert xp.isnan(getattr(xp, name)(xp.asarray(3.0), correction=1))


@every_dtype
def test_all_and_any(xp, dtype):
    n = ordinary(dtype, (3, 4))
    x = xp.asarray(n)
    for name in ("all", "any"):
        for axis in (None, 0, (0, 1)):
            for keepdims in (False, True):
                kw = {"axis": axis, "keepdims": keepdims}
                same(getattr(xp, name)(x, **kw), getattr(np, name)(n, **kw), xp)
    assert xp.all(xp.zeros((0,), dtype=dtype)) and not xp.any(xp.zeros((0,), dtype=dtype))


@every_dtype
def test_diff(xp, dtype):
    n = ordinary(dtype, (3, 5))
    x = xp.asarray(n)
    for axis in (0, -1):
        for times in (0, 1, 2):
            same(xp.diff(x, axis=axis, n=times), np.diff(n, axis=axis, n=times), xp)
            got = xp.diff(x, axis=axis, n=times, prepend=x, append=xp.flip(x))
            same(got, np.diff(n, axis=axis, n=times, prepend=n, append=np.flip(n)), xp)
    if dtype.kind != "b":
        same(xp.diff(x, prepend=xp.asarray(1, dtype=dtype)), np.diff(n, prepend=dtype.type(1)), xp)


def test_differences_are_one_kernel(many):
    x = mb.HostArray(np.linspace(0, 1, 50))
    with mb.count() as c:
        mb.materialize(mb.diff(x) + 1)
    assert c.launches == 1


@pytest.mark.parametrize("dtype", REAL, ids=ids(REAL))
def test_clip(xp, dtype):
    n = edges(dtype)
    n = n[np.isfinite(n)]
    low, high = np.array(1, dtype), np.array(7, dtype)
    x = xp.asarray(n)
    same(xp.clip(x, xp.asarray(low), xp.asarray(high)), np.clip(n, low, high), xp)
    same(xp.clip(x, 1, 7), np.clip(n, low, high), xp)
    same(xp.clip(x, min=1), np.clip(n, low, None), xp)
    same(xp.clip(x, max=7), np.clip(n, None, high), xp)
    same(xp.clip(x), n, xp)
    if dtype.kind == "f":
        nan = xp.asarray(math.nan, dtype=dtype)
        for clipped in (
            xp.clip(nan, 0, 1),
            xp.clip(xp.ones(1, dtype=dtype), nan),
            xp.clip(xp.ones(1, dtype=dtype), 0, nan),
        ):
            assert xp.isnan(clipped) and clipped.dtype == dtype


# Inspection


def test_namespace_info(xp):
    info = xp.__array_namespace_info__()
    assert info.capabilities() == {
        "boolean indexing": True,
        "data-dependent shapes": True,
        "max dimensions": 64,
    }
    assert info.default_device() == xp.zeros(1).device and info.default_device() in info.devices()
    assert isinstance(info.devices(), tuple)
    standard = {d.name: d for d in STANDARD}
    assert info.dtypes() == standard
    for device in info.devices():
        assert xp.zeros(1, device=device).device == device
        assert info.default_dtypes(device=device)["indexing"] == xp.argmax(xp.zeros(1)).dtype
        assert info.dtypes(device=device, kind="integral") == {
            k: d for k, d in standard.items() if d.kind in "iu"
        }
    assert info.dtypes(kind=("bool", "complex floating")).keys() == {"bool", "complex64", "complex128"}
    with pytest.raises(ValueError, match="numeric"):
        info.dtypes(kind="number")


def test_as_many_dimensions_as_promised(xp):
    most = xp.__array_namespace_info__().capabilities()["max dimensions"]
    assert xp.zeros((1,) * most).ndim == most
