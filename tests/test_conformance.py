"""The array API standard, function by function, on arrays that Hypothesis draws.

As a conformance suite does it: every dtype, shapes with no dimensions and no elements, every option
given or left away; results read element by element through `float(x[i])`. What is expected is NumPy's
result, or Python's. (test_array_api.py has the cases worth naming, test_special_values.py the special
values, test_conformance_linalg.py the extensions.)
"""

import math
import operator
import warnings

import numpy as np
import pytest
from drawing import (
    COMPLEX,
    EVERY,
    FLOATS,
    INEXACT,
    INTEGERS,
    NUMERIC,
    REAL,
    array,
    axes,
    axis,
    broadcastable,
    conforms,
    elements,
    is_like,
    name_of,
    options,
    promotable,
    read,
    same,
    shapes,
    strategies,
)
from hypothesis import assume
from hypothesis import strategies as st

import mirabelle as mb

NUMPYS = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh", "bitwise_invert": "invert", "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift", "pow": "power",
}  # fmt: skip
BOOL = ["bool"]
LOGICAL = [*BOOL, *INTEGERS]

TRANSCENDENTAL = [
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "log", "log10", "log1p",
    "log2", "sin", "sinh", "sqrt", "tan", "tanh",
]  # fmt: skip
OF_NUMBERS = [
    "abs",
    "conj",
    "isfinite",
    "isinf",
    "isnan",
    "negative",
    "positive",
    "real",
    "round",
    "sign",
    "square",
]
UNARY = {
    **dict.fromkeys([*TRANSCENDENTAL, "reciprocal"], INEXACT),
    **dict.fromkeys(OF_NUMBERS, NUMERIC),
    **dict.fromkeys(["ceil", "floor", "trunc"], REAL),
    "bitwise_invert": LOGICAL,
    "imag": COMPLEX,
    "logical_not": BOOL,
    "signbit": FLOATS,
}
BINARY = {
    **dict.fromkeys(["add", "multiply", "pow", "subtract"], NUMERIC),
    **dict.fromkeys(["atan2", "copysign", "hypot", "logaddexp", "nextafter"], FLOATS),
    **dict.fromkeys(["bitwise_and", "bitwise_or", "bitwise_xor"], LOGICAL),
    **dict.fromkeys(["bitwise_left_shift", "bitwise_right_shift"], INTEGERS),
    **dict.fromkeys(["equal", "not_equal"], EVERY),
    **dict.fromkeys(["floor_divide", "maximum", "minimum", "remainder"], REAL),
    **dict.fromkeys(["greater", "greater_equal", "less", "less_equal"], REAL),
    **dict.fromkeys(["logical_and", "logical_or", "logical_xor"], BOOL),
    "divide": INEXACT,
}
OPERATORS = {
    "add": operator.add, "bitwise_and": operator.and_, "bitwise_left_shift": operator.lshift,
    "bitwise_or": operator.or_, "bitwise_right_shift": operator.rshift, "bitwise_xor": operator.xor,
    "divide": operator.truediv, "equal": operator.eq, "floor_divide": operator.floordiv,
    "greater": operator.gt, "greater_equal": operator.ge, "less": operator.lt, "less_equal": operator.le,
    "multiply": operator.mul, "not_equal": operator.ne, "pow": operator.pow, "remainder": operator.mod,
    "subtract": operator.sub,
}  # fmt: skip
IN_PLACE = {
    "add": operator.iadd, "bitwise_and": operator.iand, "bitwise_left_shift": operator.ilshift,
    "bitwise_or": operator.ior, "bitwise_right_shift": operator.irshift, "bitwise_xor": operator.ixor,
    "divide": operator.itruediv, "floor_divide": operator.ifloordiv, "multiply": operator.imul,
    "pow": operator.ipow, "remainder": operator.imod, "subtract": operator.isub,
}  # fmt: skip


def numpys(name):
    return getattr(np, NUMPYS.get(name, name))


def part_of(dtype):
    """The dtype of a complex one's parts."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


# Element by element


@conforms(*UNARY)
def test_unary(xp, name, draw):
    x = array(xp, draw, UNARY[name], finite=True)
    dtype = name_of(x.dtype)
    # Of complex numbers only this is exactly rounded, wherever it is computed.
    exact = (
        dtype not in COMPLEX
        or name.startswith("is")
        or name in ("conj", "imag", "negative", "positive", "real")
    )
    if not exact:
        x = array(xp, draw, dtype, shape=x.shape, low=-20, high=20)
    out = getattr(xp, name)(x)
    expected = numpys(name)(read(x))
    if name.startswith("is") or name in ("signbit", "logical_not"):
        assert out.dtype == xp.bool
    elif name in ("abs", "imag", "real"):
        assert out.dtype == getattr(xp, part_of(dtype))
    else:
        assert out.dtype == x.dtype
    same(out, expected.astype(name_of(out.dtype)), **({} if exact else {"rtol": 1e-3, "atol": 1e-3}))


def second_operand(name, dtypes):
    """What the second operand may be, so that the standard says what the result is."""
    if name.endswith("shift"):
        return {"low": 0, "high": min(np.iinfo(d).bits for d in dtypes) - 1}
    if name in ("floor_divide", "remainder") and dtypes[0] in INTEGERS:
        return {"low": 1}
    if name == "pow":
        return {"low": 0, "high": 100} if dtypes[0] in INTEGERS else {"low": -9, "high": 9}
    return {"finite": True} if dtypes[0] != "bool" else {}


def check_binary(name, out, x1, x2):
    expected = numpys(name)(read(x1), read(x2))
    if name == "pow" and expected.dtype.kind in "fc":
        same(out, expected, rtol=1e-3, atol=1e-3)
    elif expected.dtype.kind == "c" and name in ("divide", "multiply"):
        same(out, expected, rtol=1e-5)
    elif name in ("floor_divide", "maximum", "minimum"):
        same(out, expected, any_zero=True)
    else:
        same(out, expected)


@conforms(*BINARY)
def test_binary(xp, name, draw):
    first = draw(st.sampled_from(BINARY[name]))
    second = draw(st.sampled_from(promotable(first, BINARY[name])))
    s1, s2 = draw(broadcastable(2))
    x1 = array(xp, draw, first, s1, **({"finite": True} if first in INEXACT else {}))
    x2 = array(xp, draw, second, s2, **second_operand(name, [second, first]))
    if name == "pow" and first in COMPLEX:
        x1 = array(xp, draw, first, s1, low=-9, high=9)
    check_binary(name, getattr(xp, name)(x1, x2), x1, x2)
    if name in OPERATORS:
        check_binary(name, OPERATORS[name](x1, x2), x1, x2)


def scalar_for(x, name, draw):
    dtype = name_of(x.dtype)
    return draw(elements(dtype, **second_operand(name, [dtype])))


@conforms(*BINARY)
def test_scalar_operands(xp, name, draw):
    """A Python number is an array of one element of the other operand's dtype."""
    dtype = draw(st.sampled_from(BINARY[name]))
    x = array(xp, draw, dtype, **({} if dtype == "bool" else {"low": 1, "high": 6}))
    s = scalar_for(x, name, draw)
    same_pair = xp.asarray(s, dtype=x.dtype)
    f = getattr(xp, name)
    tolerance = {"rtol": 1e-6, "atol": 1e-6} if name == "pow" else {}
    same(f(x, s), read(f(x, same_pair)), **tolerance)
    if not name.endswith("shift") and name != "pow":
        same(f(s, x), read(f(same_pair, x)))
    if name in OPERATORS:
        same(OPERATORS[name](x, s), read(f(x, s)), **tolerance)
        assert OPERATORS[name](s, x).shape == x.shape
    if name_of(x.dtype) in INEXACT:
        assert f(x, 3).dtype == f(x, x).dtype


@conforms(*IN_PLACE)
def test_in_place(xp, name, draw):
    dtype = draw(st.sampled_from(BINARY[name]))
    narrower = [d for d in promotable(dtype, BINARY[name]) if np.promote_types(d, dtype).name == dtype]
    shape = draw(shapes())
    tail = tuple(draw(st.sampled_from([1, n])) for n in shape[draw(st.integers(0, len(shape))) :])
    x1 = array(xp, draw, dtype, shape)
    second = draw(st.sampled_from(narrower))
    x2 = array(xp, draw, second, tail, **second_operand(name, [second, dtype]))
    for other in (x2, scalar_for(x1, name, draw)):
        expected, before = read(OPERATORS[name](x1, other)), read(x1)
        target = xp.asarray(x1, copy=True)
        alias = target
        target = IN_PLACE[name](target, other)
        same(target, expected)
        same(x1, before)
        if shape:
            same(alias, expected)


@conforms("clip")
def test_clip(xp, name, draw):
    dtype = draw(st.sampled_from(REAL))
    x, low, high = (array(xp, draw, dtype, shape) for shape in draw(broadcastable(3)))
    number = draw(elements(dtype))
    bounds = draw(
        st.sampled_from([(), (low,), (None, high), (low, high), (number,), (None, number), (low, number)])
    )
    expected = read(x)
    for bound, limit in zip(bounds, (np.maximum, np.minimum), strict=False):
        if bound is not None:
            expected = limit(expected, read(bound) if bound is not number else np.asarray(number, dtype))
    same(xp.clip(x, *bounds), expected, any_zero=True)
    same(xp.clip(x, max=high, min=low), np.minimum(np.maximum(read(x), read(low)), read(high)), any_zero=True)


# The array object


@conforms("bool", "int", "float", "complex", "index")
def test_numbers_of_python(xp, name, draw):
    x = array(xp, draw, INTEGERS if name == "index" else ["bool", *REAL], ())
    value = mb.to_numpy(x)[()]
    if name == "int" and not np.isfinite(value):
        with pytest.raises((ValueError, OverflowError)):
            int(x)
        return
    python = {"bool": bool, "int": int, "float": float, "complex": complex, "index": int}[name]
    got = getattr(x, f"__{name}__")()
    assert type(got) is python
    np.testing.assert_equal(got, python(value))


@conforms()
def test_getitem(xp, draw):
    x = array(xp, draw, EVERY)
    key = draw(strategies(xp).indices(x.shape, allow_newaxis=True))
    same(x[key], read(x)[key])


@conforms()
def test_setitem(xp, draw):
    x = array(xp, draw, EVERY)
    key = draw(strategies(xp).indices(x.shape))
    dtype = name_of(x.dtype)
    narrower = [d for d in promotable(dtype) if np.promote_types(d, dtype).name == dtype]
    shape = draw(st.sampled_from([read(x)[key].shape, ()]))
    said = x ^ x if dtype == "bool" else -x
    for value in (array(xp, draw, narrower, shape), draw(elements(dtype))):
        expected = read(x)
        expected[key] = read(value) if isinstance(value, mb.AbstractArray) else value
        before = read(said)
        x[key] = value
        same(x, expected)
        same(said, before)  # what was said before the write


@conforms()
def test_masks(xp, draw):
    x = array(xp, draw, EVERY)
    prefix = x.shape[: draw(st.integers(0, x.ndim))]
    empty = tuple(draw(st.sampled_from([n, 0])) for n in x.shape)
    mask = array(xp, draw, "bool", draw(st.sampled_from([x.shape, prefix, empty]) | shapes()))
    where, expected = read(mask), read(x)
    fits = mask.ndim <= x.ndim and all(m in (n, 0) for n, m in zip(x.shape, mask.shape, strict=False))
    value = draw(elements(name_of(x.dtype)))
    if not fits:
        with pytest.raises(IndexError):
            x[mask]
        with pytest.raises(IndexError):
            x[mask] = value
        same(x, expected)
        return
    same(x[mask], expected[where])
    x[mask] = value
    expected[where] = value
    same(x, expected)
    x[mask] = x[mask]
    same(x, expected)


@conforms()
def test_integer_arrays(xp, draw):
    x = array(xp, draw, EVERY, shapes(min_dims=1, min_side=1))
    key = []
    together = draw(strategies(xp).mutually_broadcastable_shapes(x.ndim, max_dims=2, max_side=3)).input_shapes
    for n, shape in zip(x.shape, together, strict=True):
        numbers = st.integers(-n, n - 1)
        whole = ["int64", "int8", "int32"]
        key.append(draw(numbers) if draw(st.booleans()) else array(xp, draw, whole, shape, values=numbers))
    key = (*key[: draw(st.integers(1, x.ndim))], ...)
    where = tuple(read(k) if isinstance(k, mb.AbstractArray) else k for k in key)
    expected = read(x)
    same(x[key], expected[where])
    value = draw(elements(name_of(x.dtype)))
    x[key] = value
    expected[where] = value
    same(x, expected)
    for outside in (x.shape[0], -x.shape[0] - 1):
        for index in (outside, xp.asarray([outside]), xp.asarray([0.0]), (0,) * (x.ndim + 1)):
            with pytest.raises(IndexError):
                x[index]
    same(x, expected)


# Creation


@conforms("empty", "zeros", "ones", "full")
def test_filled(xp, name, draw):
    shape = draw(shapes() | st.integers(0, 9))
    kw = options(draw, dtype=st.sampled_from([getattr(xp, d) for d in EVERY]))
    value = draw(st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.complex_numbers())
    if name == "full":
        kw.pop("dtype", None)
        same(xp.full(shape, value, **kw), np.full(shape, value))
        dtype = draw(st.sampled_from(EVERY))
        value = draw(elements(dtype))
        same(xp.full(shape, value, dtype=getattr(xp, dtype)), np.full(shape, value, dtype))
        return
    out = getattr(xp, name)(shape, **kw)
    is_like(out, kw.get("dtype", "float64"), np.empty(shape).shape)
    if name != "empty":
        same(out, getattr(np, name)(shape, dtype=out.dtype))


@conforms("empty_like", "zeros_like", "ones_like", "full_like")
def test_filled_like(xp, name, draw):
    x = array(xp, draw, EVERY)
    kw = options(draw, dtype=st.sampled_from([getattr(xp, d) for d in EVERY]), device=st.just(x.device))
    dtype = name_of(kw.get("dtype", x.dtype))
    value = (draw(elements(dtype)),) if name == "full_like" else ()
    out = getattr(xp, name)(x, *value, **kw)
    assert out.device == x.device
    is_like(out, dtype, x.shape)
    if name != "empty_like":
        same(out, getattr(np, name)(read(x), *value, dtype=dtype))


@conforms()
def test_eye(xp, draw):
    columns = draw(st.none() | st.integers(0, 5))
    kw = options(draw, k=st.integers(-7, 7), dtype=st.sampled_from(EVERY))
    rows = draw(st.integers(0, 5))
    expected = np.eye(rows, columns, **kw)
    if "dtype" in kw:
        kw["dtype"] = getattr(xp, kw["dtype"])
    same(xp.eye(rows, columns, **kw), expected)


@conforms()
def test_linspace(xp, draw):
    dtype = draw(st.sampled_from(["float64", "complex128"]))
    start, stop = draw(elements(dtype, low=-1e9, high=1e9)), draw(elements(dtype, low=-1e9, high=1e9))
    num, kw = draw(st.integers(0, 12)), options(draw, endpoint=st.booleans())
    out = xp.linspace(start, stop, num, **kw)
    same(out, np.linspace(start, stop, num, **kw))
    if num:
        assert complex(out[0]) == start
    if num > 1 and kw.get("endpoint", True):
        assert complex(out[num - 1]) == stop


@conforms()
def test_arange(xp, draw):
    dtype = draw(st.sampled_from(REAL))
    lowest = 0 if dtype.startswith("u") else -40
    number = st.integers(lowest, 40) if dtype in INTEGERS else st.integers(-80, 80).map(lambda n: n / 4)
    start, kw = draw(number), options(draw, stop=number, step=number.filter(bool), dtype=st.just(dtype))
    first, last = (start, kw["stop"]) if "stop" in kw else (0, start)
    step = kw.get("step", 1)
    size = max(0, math.ceil((last - first) / step))
    whole = all(isinstance(n, int) for n in (start, last, step))
    if "dtype" in kw:
        kw["dtype"] = getattr(xp, dtype)
    else:
        dtype = "int64" if whole else "float64"
    out = xp.arange(start, **kw)
    same(out, np.array([first + i * step for i in range(size)]).astype(dtype))
    positional = (start, *([kw.pop("stop")] if "stop" in kw else []))
    same(xp.arange(*positional, **kw), read(out))


@conforms()
def test_asarray_of_numbers(xp, draw):
    x = array(xp, draw, EVERY, shapes(min_side=1))
    dtype = name_of(x.dtype)
    nest = read(x).tolist()
    same(xp.asarray(nest, dtype=x.dtype), read(x))
    if dtype in ("bool", "int64", "float64", "complex128"):
        same(xp.asarray(nest), read(x))
    same(xp.asarray([True, 2, 3.5]), np.array([1, 2, 3.5]))
    same(xp.asarray([[1, 2j]]), np.array([[1, 2j]]))


@conforms()
def test_asarray_of_arrays(xp, draw):
    x = array(xp, draw, EVERY)
    kw = options(
        draw, dtype=st.just(x.dtype), copy=st.sampled_from([True, False, None]), device=st.just(x.device)
    )
    out, expected = xp.asarray(x, **kw), read(x)
    same(out, expected)
    if x.size:
        index = tuple(draw(st.integers(0, n - 1)) for n in x.shape)
        x[index] = draw(elements(name_of(x.dtype)))
        if kw.get("copy") is not None:
            same(out, expected if kw["copy"] else read(x))


@conforms("tril", "triu")
def test_triangles(xp, name, draw):
    x = array(xp, draw, EVERY, shapes(min_dims=2))
    kw = options(draw, k=st.integers(-5, 5))
    same(getattr(xp, name)(x, **kw), getattr(np, name)(read(x), **kw))


@conforms()
def test_meshgrid(xp, draw):
    dtype = draw(st.sampled_from(EVERY))
    vectors = [array(xp, draw, dtype, (draw(st.integers(0, 3)),)) for _ in range(draw(st.integers(0, 3)))]
    kw = options(draw, indexing=st.sampled_from(["xy", "ij"]))
    for out, expected in zip(xp.meshgrid(*vectors, **kw), np.meshgrid(*map(read, vectors), **kw), strict=True):
        same(out, expected)


@conforms()
def test_dlpack(xp, draw):
    x = array(xp, draw, EVERY)
    kind_of_device, number = x.__dlpack_device__()
    assert isinstance(kind_of_device, int) and isinstance(number, int)
    kw = options(draw, copy=st.sampled_from([True, False, None]), device=st.just(x.device))
    out = xp.from_dlpack(x, **kw)
    assert out.device == x.device
    same(out, read(x))
    kw = options(draw, copy=st.sampled_from([True, None]), max_version=st.tuples(st.integers(0, 3), st.just(0)))
    assert type(x.__dlpack__(dl_device=(1, 0), **kw)).__name__ == "PyCapsule"


# Data types


@conforms()
def test_astype(xp, draw):
    dtype = draw(st.sampled_from(EVERY))
    to = draw(st.sampled_from(EVERY if dtype not in COMPLEX else ["bool", *COMPLEX]))
    within = {"low": 0, "high": 100} if to in INTEGERS and dtype != "bool" else {}
    x = array(xp, draw, dtype, **within)
    kw = options(draw, copy=st.booleans())
    out = xp.astype(x, getattr(xp, to), **kw)
    same(out, read(x).astype(to))
    if to == dtype:
        assert (out is x) is not kw.get("copy", True)


@conforms()
def test_broadcasting(xp, draw):
    together = draw(strategies(xp).mutually_broadcastable_shapes(draw(st.integers(1, 4)), min_side=0))
    arrays = [array(xp, draw, EVERY, shape) for shape in together.input_shapes]
    made = xp.broadcast_arrays(*arrays)
    for x, out in zip(arrays, made, strict=True):
        same(out, np.broadcast_to(read(x), together.result_shape))
    same(xp.broadcast_to(arrays[0], together.result_shape), read(made[0]))
    shape = xp.broadcast_shapes(*together.input_shapes)
    assert shape == together.result_shape and all(type(n) is int for n in shape)


# Manipulation


@conforms("concat", "stack")
def test_joining(xp, name, draw):
    dtype = draw(st.sampled_from(EVERY))
    shape = draw(shapes(min_dims=1))
    along = draw(axis(len(shape), none=name == "concat"))
    parts = []
    for d in [dtype, *draw(st.lists(st.sampled_from(promotable(dtype)), max_size=2))]:
        sizes = list(shape)
        if name == "concat" and along is not None:
            sizes[along] = draw(st.integers(0, 3))
        elif name == "concat":
            sizes = draw(shapes())
        parts.append(array(xp, draw, d, tuple(sizes)))
    assume(np.result_type(*[p.dtype for p in parts]).name in promotable(dtype))
    contents = [read(p) for p in parts]
    if along is None:
        contents = [c.reshape(-1) for c in contents]
    expected = (np.concatenate if name == "concat" else np.stack)(contents, axis=along or 0)
    same(getattr(xp, name)(draw(st.sampled_from([list, tuple]))(parts), axis=along), expected)


@conforms()
def test_expand_dims_and_squeeze(xp, draw):
    x = array(xp, draw, EVERY)
    n = read(x)
    several = draw(st.lists(st.integers(0, x.ndim + 1), min_size=2, max_size=2, unique=True))
    for new in (draw(st.integers(-x.ndim - 1, x.ndim)), tuple(several)):
        out = xp.expand_dims(x, axis=new)
        same(out, np.expand_dims(n, new))
        same(xp.squeeze(out, axis=new), n)
    for outside in (x.ndim + 1, -x.ndim - 2):
        with pytest.raises(IndexError):
            xp.expand_dims(x, axis=outside)
    for d, size in enumerate(x.shape):
        if size != 1:
            with pytest.raises(ValueError):
                xp.squeeze(x, axis=d)


@conforms()
def test_flip(xp, draw):
    x = array(xp, draw, EVERY)
    kw = options(draw, axis=axes(x.ndim))
    same(xp.flip(x, **kw), np.flip(read(x), **kw))


@conforms("permute_dims", "moveaxis", "matrix_transpose", "unstack")
def test_rearranging(xp, name, draw):
    x = array(xp, draw, EVERY, shapes(min_dims=2))
    n = read(x)
    order = [d - x.ndim if draw(st.booleans()) else d for d in draw(st.permutations(range(x.ndim)))]
    if name == "permute_dims":
        same(xp.permute_dims(x, axes=tuple(order)), n.transpose(order))
    elif name == "moveaxis":
        to = draw(st.permutations(range(x.ndim)))
        k = draw(st.integers(0, x.ndim))
        same(xp.moveaxis(x, tuple(order[:k]), tuple(to[:k])), np.moveaxis(n, order[:k], to[:k]))
        same(xp.moveaxis(x, order[0], to[0]), np.moveaxis(n, order[0], to[0]))
    elif name == "matrix_transpose":
        same(xp.matrix_transpose(x), n.swapaxes(-1, -2))
        same(x.mT, n.swapaxes(-1, -2))
    else:
        for out, expected in zip(xp.unstack(x, axis=order[0]), np.moveaxis(n, order[0], 0), strict=True):
            same(out, expected)


@conforms()
def test_repeat(xp, draw):
    x = array(xp, draw, EVERY)
    along = draw(axis(x.ndim))
    size = x.size if along is None else x.shape[along]
    each = array(xp, draw, ["int64", "uint8", "int32"], (size,), low=0, high=3)
    number = draw(st.integers(0, 3))
    same(xp.repeat(x, number, axis=along), np.repeat(read(x), number, axis=along))
    same(xp.repeat(x, xp.asarray([number]), axis=along), np.repeat(read(x), number, axis=along))
    same(xp.repeat(x, each, axis=along), np.repeat(read(x), read(each).astype(int), axis=along))


@conforms()
def test_reshape(xp, draw):
    x = array(xp, draw, EVERY)
    shape = draw(st.permutations((*x.shape, 1)))
    if x.size and draw(st.booleans()):
        shape[draw(st.integers(0, len(shape) - 1))] = -1
    kw = options(draw, copy=st.sampled_from([True, None]))
    expected = read(x).reshape(shape)
    out = xp.reshape(x, tuple(shape), **kw)
    same(out, expected)
    if x.size and kw.get("copy"):
        x[(0,) * x.ndim] = draw(elements(name_of(x.dtype)))
        same(out, expected)


@conforms()
def test_roll(xp, draw):
    x = array(xp, draw, EVERY)
    along, shift = draw(axis(x.ndim)), draw(st.integers(-(2**31), 2**31) | st.integers(-5, 5))
    same(xp.roll(x, shift, axis=along), np.roll(read(x), shift, axis=along))
    if x.ndim:
        several = draw(strategies(xp).valid_tuple_axes(x.ndim, min_size=1))
        shifts = tuple(draw(st.integers(-9, 9)) for _ in several)
        same(xp.roll(x, shifts, axis=several), np.roll(read(x), shifts, axis=several))


@conforms()
def test_tile(xp, draw):
    x = array(xp, draw, EVERY)
    times = tuple(draw(st.lists(st.integers(0, 3), max_size=4)))
    same(xp.tile(x, times), np.tile(read(x), times))


# Indexing, searching, sorting, sets


@conforms("take", "take_along_axis")
def test_taking(xp, name, draw):
    x = array(xp, draw, EVERY, shapes(min_dims=1, min_side=1))
    along = draw(axis(x.ndim, none=False))
    n = x.shape[along]
    if name == "take":
        indices = array(xp, draw, ["int64", "int32", "uint8"], (draw(st.integers(0, 4)),), low=0, high=n - 1)
        same(xp.take(x, indices, axis=along), np.take(read(x), read(indices).astype(int), axis=along))
        if x.ndim == 1:
            same(xp.take(x, indices), read(x)[read(indices).astype(int)])
        return
    shape = [draw(st.sampled_from([1, size])) for size in x.shape]
    shape[along] = draw(st.integers(0, 4))
    indices = array(xp, draw, "int64", tuple(shape), low=-n, high=n - 1)
    kw = {} if along == -1 else {"axis": along}
    same(xp.take_along_axis(x, indices, **kw), np.take_along_axis(read(x), read(indices), axis=along))


@conforms("argmax", "argmin")
def test_extremes(xp, name, draw):
    x = array(xp, draw, REAL, shapes(min_side=1), finite=True)
    kw = options(draw, axis=axis(x.ndim), keepdims=st.booleans())
    same(getattr(xp, name)(x, **kw), np.asarray(getattr(np, name)(read(x), **kw), np.int64))


@conforms()
def test_nonzero_and_count(xp, draw):
    x = array(xp, draw, EVERY)
    kw = options(draw, axis=axes(x.ndim), keepdims=st.booleans())
    same(xp.count_nonzero(x, **kw), np.sum(read(x) != 0, dtype=np.int64, **kw))
    if x.ndim:
        for out, expected in zip(xp.nonzero(x), np.nonzero(read(x)), strict=True):
            same(out, expected)


@conforms()
def test_where(xp, draw):
    dtype = draw(st.sampled_from(EVERY))
    s1, s2, s3 = draw(broadcastable(3))
    condition, x1 = array(xp, draw, "bool", s1), array(xp, draw, dtype, s2)
    x2, number = array(xp, draw, promotable(dtype), s3), draw(elements(dtype))
    held, one = read(condition), np.asarray(number, dtype)
    same(xp.where(condition, x1, x2), np.where(held, read(x1), read(x2)))
    same(xp.where(condition, x1, number), np.where(held, read(x1), one))
    same(xp.where(condition, number, x1), np.where(held, one, read(x1)))


@conforms()
def test_searchsorted(xp, draw):
    dtype = draw(st.sampled_from(REAL))
    values = draw(st.lists(elements(dtype, finite=True), max_size=8))
    ordered = np.sort(np.array(values, dtype))
    x2 = array(xp, draw, dtype, values=elements(dtype, finite=True) | st.sampled_from(values or [1]))
    kw = options(draw, side=st.sampled_from(["left", "right"]))
    given = xp.asarray(values, dtype=getattr(xp, dtype))
    number = draw(elements(dtype, finite=True))
    for y, n in ((x2, read(x2)), (number, np.asarray(number, dtype))):
        expected = np.asarray(np.searchsorted(ordered, n, **kw))
        same(xp.searchsorted(xp.sort(given), y, **kw), expected)
        same(xp.searchsorted(given, y, sorter=xp.argsort(given), **kw), expected)


@conforms()
def test_sort_and_argsort(xp, draw):
    few = draw(st.sampled_from([None, [0, 1, 2]]))
    values = None if few is None else st.sampled_from(few)
    x = array(xp, draw, REAL, shapes(min_dims=1, max_side=6), values=values)
    assume(not np.isnan(read(x)).any())
    kw = options(draw, axis=axis(x.ndim, none=False), descending=st.booleans(), stable=st.booleans())
    order = xp.argsort(x, **kw)
    is_like(order, np.int64, x.shape)
    along = kw.get("axis", -1)
    rows, positions = np.moveaxis(read(x), along, -1), np.moveaxis(read(order), along, -1)
    for index in np.ndindex(rows.shape[:-1]):
        row, found = rows[index].tolist(), positions[index].tolist()
        stable = sorted(range(len(row)), key=row.__getitem__, reverse=kw.get("descending", False))
        assert sorted(found) == sorted(stable)
        assert (
            found == stable if kw.get("stable", True) else [row[i] for i in found] == [row[i] for i in stable]
        )
    same(xp.sort(x, **kw), np.take_along_axis(read(x), read(order), axis=along), any_zero=True)


@conforms("unique_all", "unique_counts", "unique_inverse", "unique_values")
def test_sets(xp, name, draw):
    dtype = draw(st.sampled_from(EVERY))
    few = draw(st.lists(elements(dtype), min_size=1, max_size=4))
    x = array(xp, draw, dtype, values=st.sampled_from(few))
    found = getattr(xp, name)(x)
    fields = {
        "unique_all": ("values", "indices", "inverse_indices", "counts"),
        "unique_counts": ("values", "counts"),
        "unique_inverse": ("values", "inverse_indices"),
    }.get(name)
    assert getattr(found, "_fields", None) == fields
    flat = read(x).reshape(-1).tolist()
    distinct = [v for i, v in enumerate(flat) if v != v or v not in flat[:i]]
    values = found.values if fields else found
    is_like(values, dtype, (len(distinct),))
    got = read(values).tolist()
    assert sum(v != v for v in got) == sum(v != v for v in distinct)
    assert all(v in got for v in distinct if v == v)
    for i, v in enumerate(got):
        if "counts" in (fields or ()):
            assert int(found.counts[i]) == (flat.count(v) if v == v else 1)
        if "indices" in (fields or ()):
            at = flat[int(found.indices[i])]
            assert int(found.indices[i]) == flat.index(v) if v == v else at != at
    if "inverse_indices" in (fields or ()):
        assert found.inverse_indices.shape == x.shape
        for v, i in zip(flat, read(found.inverse_indices).reshape(-1).tolist(), strict=True):
            assert got[i] == v or (v != v and got[i] != got[i])


@conforms()
def test_isin(xp, draw):
    dtype = draw(st.sampled_from(EVERY))
    x1, x2 = array(xp, draw, dtype), array(xp, draw, promotable(dtype))
    number, kw = draw(elements(dtype)), options(draw, invert=st.booleans())
    one = np.asarray(number, dtype)
    same(xp.isin(x1, x2, **kw), np.isin(read(x1), read(x2), **kw))
    same(xp.isin(x1, number, **kw), np.isin(read(x1), one, **kw))
    same(xp.isin(number, x1, **kw), np.isin(one, read(x1), **kw))


# Statistics and utilities


@conforms("max", "min", "sum", "prod", "mean", "std", "var")
def test_statistics(xp, name, draw):
    among = {"max": REAL, "min": REAL, "mean": INEXACT, "std": FLOATS, "var": FLOATS}.get(name, NUMERIC)
    dtype = draw(st.sampled_from(among))
    bounds = {"low": -100, "high": 100} if dtype in INEXACT else {}
    x = array(xp, draw, dtype, shapes(min_side=1), **bounds)
    kw = options(draw, axis=axes(x.ndim), keepdims=st.booleans())
    if name in ("std", "var"):
        kw |= options(draw, correction=st.integers(0, 3) | st.floats(0, 3))
    if name in ("sum", "prod"):
        same_kind = [INTEGERS[:4], INTEGERS[4:], FLOATS, COMPLEX]
        (wider,) = [[d for d in ds if np.can_cast(dtype, d)] for ds in same_kind if dtype in ds]
        kw |= options(draw, dtype=st.sampled_from(wider))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no degrees of freedom
        expected = np.asarray(getattr(np, name)(read(x), **kw))
    if "dtype" in kw:
        kw["dtype"] = getattr(xp, kw["dtype"])
    exact = dtype in INTEGERS or name in ("max", "min")
    same(
        getattr(xp, name)(x, **kw), expected, **({"any_zero": True} if exact else {"rtol": 1e-2, "atol": 1e-2})
    )


@conforms("cumulative_sum", "cumulative_prod")
def test_running(xp, name, draw):
    x = array(xp, draw, NUMERIC, shapes(min_dims=1), low=-9, high=9)
    kw = options(draw, include_initial=st.booleans(), dtype=st.just(x.dtype))
    if x.ndim > 1 or draw(st.booleans()):
        kw["axis"] = draw(axis(x.ndim, none=False))
    exact = name_of(x.dtype) in INTEGERS
    expected = getattr(np, name)(read(x), **kw)
    same(getattr(xp, name)(x, **kw), expected, **({} if exact else {"rtol": 1e-3, "atol": 1e-3}))


@conforms("all", "any")
def test_truth(xp, name, draw):
    x = array(xp, draw, EVERY)
    kw = options(draw, axis=axes(x.ndim), keepdims=st.booleans())
    same(getattr(xp, name)(x, **kw), np.asarray(getattr(np, name)(read(x), **kw)))


@conforms()
def test_diff(xp, draw):
    x = array(xp, draw, NUMERIC, shapes(min_dims=1), finite=True)
    kw = options(draw, axis=axis(x.ndim, none=False), n=st.integers(0, 3))
    sizes = list(x.shape)
    sizes[kw.get("axis", -1)] = draw(st.integers(0, 2))
    ends = st.just(array(xp, draw, name_of(x.dtype), tuple(sizes), finite=True))
    around = options(draw, prepend=ends, append=ends)
    expected = np.diff(read(x), **kw, **{key: read(v) for key, v in around.items()})
    same(xp.diff(x, **kw, **around), expected)


def test_hypothesis_takes_the_namespaces():
    for xp in (mb, mb.namespace(mb.RefArray), mb.namespace(mb.types.Transpose[mb.HostArray])):
        found = strategies(xp)  # (a warning would be an error)
        assert found.api_version == xp.__array_api_version__ == "2025.12"
