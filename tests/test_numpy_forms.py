"""Forms of NumPy's namespace that programs lean on: mb.f(x, ...) with NumPy's arguments, ufunc methods, r_ and c_.

Each form is a function of a namespace and arrays, called with NumPy and with mirabelle on every kind of array.
"""

# ruff: noqa: E501 - tables, a line a case

import copy
import inspect

import numpy as np
import pytest
from compare import assert_same, contents
from kinds import LEAVES, PLAIN, SINGLE
from test_functions import made, outcome, same_refusal

import mirabelle as mb

NAMES = {"transpose-host", "steps-ref", "reversed-host", "cuda_pending-transpose"}
KINDS = [*LEAVES.values(), *(k for k in SINGLE if k.name in NAMES)]
kinds = pytest.mark.parametrize("kind", KINDS, ids=repr)

_rng = np.random.default_rng(3)
M = _rng.integers(-20, 20, (3, 4)) / 4
V = np.array([0, 1.0, 2.5, -3.5, 7, 0.25])
X4 = np.array([0, 1.0, 3, 4.5])
I = np.array([3, 0, 1, 1, 6, 2])
SPECIAL = np.array([0, -0.0, 1.25, -2.5, np.nan, np.inf, -np.inf, 0.15])
Z = M + 1j * M[::-1]
F4, I1, B = M.astype("f4"), I.astype("i1"), M > 1

# What is said of arrays: (form, arrays). Results are NumPy's to the last bit.
EXACT = {
    "round": [
        (lambda xp, x: xp.round(x, 1), SPECIAL), (lambda xp, x: xp.round(x, decimals=2), F4), (lambda xp, x: xp.round(x, -1), I),
        (lambda xp, x: xp.round(x), SPECIAL), (lambda xp, x: xp.round(x, decimals=0), Z), (lambda xp, x: xp.round(x, 1.5), V),
        (lambda xp, x: x.round(1), V), (lambda xp, x: xp.round(x, 1, xp.zeros_like(x)), V), (lambda xp, x: xp.round(x, "a"), V),
    ],
    "out": [
        (lambda xp, x: xp.add(x, 1, out=xp.zeros_like(x)), M), (lambda xp, x: xp.add(x, x[0], xp.zeros_like(x)), M),
        (lambda xp, x: xp.exp(x, out=xp.zeros_like(x, dtype="f8")), I), (lambda xp, x: xp.multiply(x, 2, out=xp.zeros_like(x), where=x > 1), M),
        (lambda xp, x: xp.divmod(x, 2, out=(xp.zeros_like(x), None)), M), (lambda xp, x: xp.add(x, 0.5, out=xp.zeros_like(x)), I),
        (lambda xp, x: xp.add(x, 1, out=xp.zeros_like(x[0])), M), (lambda xp, x: xp.add(x[0], 1, out=xp.zeros_like(x)), M),
        (lambda xp, x: xp.clip(x, 0, 2, out=xp.zeros_like(x)), M), (lambda xp, x: xp.cumulative_sum(x, axis=0, out=xp.zeros_like(x)), M),
        (lambda xp, x: xp.outer(x, x, out=xp.zeros_like(x, shape=(4, 4))), X4), (lambda xp, x: xp.take(x, [1, 0], 0, xp.zeros_like(x[:2])), M),
        (lambda xp, x: xp.argmax(x, 0, out=xp.zeros_like(x[0], dtype=int)), M), (lambda xp, x: xp.max(x, 0, xp.zeros_like(x[0])), M),
        (lambda xp, x: xp.all(x > 0, axis=0, out=xp.zeros_like(x[0], dtype=bool)), M), (lambda xp, x: xp.sin(x, x, x), M),
        (lambda xp, x: xp.stack([x, x], out=xp.zeros_like(x, shape=(2, 3, 4))), M), (lambda xp, x: xp.concat([x, x], 1, xp.zeros_like(x, shape=(3, 8))), M),
        (lambda xp, x: xp.max(x, axis=0, out=xp.zeros_like(x)), M), (lambda xp, x: xp.sum(x, axis=0, nonsense=1), M),
        (lambda xp, x: xp.add(x, 1, nonsense=1), M), (lambda xp, x: xp.add(x, 1, x, out=x), M), (lambda xp, x: xp.sort(x, 0, 1, 2, 3, 4), M),
    ],
    "dtype": [
        (lambda xp, x: xp.fmax(True, x, dtype="f2"), I1), (lambda xp, x: xp.multiply(x, False, dtype="f8"), M),
        (lambda xp, x: xp.add(x, 1, dtype="f4"), M), (lambda xp, x: xp.add(x, x, dtype="f8"), I1), (lambda xp, x: xp.sqrt(x, dtype="f4"), I),
        (lambda xp, x: xp.multiply(x, x, dtype="i8", casting="unsafe"), M), (lambda xp, x: xp.add(x, 1, dtype="i4"), M),
        (lambda xp, x: xp.stack([x, x], dtype="f4"), M), (lambda xp, x: xp.concat([x, x], dtype="f4"), M), (lambda xp, x: xp.concat([x, x], dtype="i4"), M),
        (lambda xp, x: xp.stack([x, x], dtype="i4"), M), (lambda xp, x: xp.stack([x, x], dtype="i4", casting="unsafe"), M),
        (lambda xp, x: xp.sum(x, 0, "i8"), I1), (lambda xp, x: xp.prod(x, None, "i8"), I1),
    ],
    "where": [
        (lambda xp, x: xp.where(x > 1), M), (lambda xp, x: xp.where(x), I), (lambda xp, x: xp.where(x > 1, 1), M),
        (lambda xp, x: xp.sum(x, where=x > 1), M), (lambda xp, x: xp.sum(x, axis=0, initial=2.0), M), (lambda xp, x: xp.prod(x, 1, where=x > 9), M),
        (lambda xp, x: xp.min(x, initial=0.0, where=x > 1), M), (lambda xp, x: xp.max(x, 0, initial=1.0), M), (lambda xp, x: xp.amax(x, where=x > 1), M),
        (lambda xp, x: xp.any(x > 2, where=x < 3, axis=1), M), (lambda xp, x: xp.all(x > 2, where=x > 2), M), (lambda xp, x: xp.min(x[:0], initial=1.0), V),
        (lambda xp, x: xp.sum(x, where=x), M), (lambda xp, x: xp.sum(x, 0, None, None, True), M),
        (lambda xp, x: xp.add(x, 1, out=xp.zeros_like(x), where=x[:1] > 1), M), (lambda xp, x: xp.less(x[None], 1, out=xp.zeros_like(x)), V),
        (lambda xp, x: xp.less(x[None], 1, out=xp.zeros_like(x), where=x > 1), V), (lambda xp, x: xp.matmul(x[:1], x.T[:, :1], out=xp.zeros_like(x[0, 0])), M),
    ],
    "order": [
        (lambda xp, x: xp.reshape(x, (4, 3), order="F"), M), (lambda xp, x: xp.reshape(x, (2, 6), "F"), M), (lambda xp, x: xp.reshape(x, -1, "C"), M),
        (lambda xp, x: xp.reshape(x, (4, 3), order="X"), M), (lambda xp, x: xp.reshape(x, (5, 3), order="F"), M), (lambda xp, x: xp.copy(x, order="F"), M),
        (lambda xp, x: xp.asarray(x, order="F"), M), (lambda xp, x: xp.asarray(x, order="X"), M), (lambda xp, x: xp.zeros_like(x, order="F"), M),
        (lambda xp, x: xp.full_like(x, 3, dtype=int, order="F", shape=(2, 3)), M), (lambda xp, x: xp.ones_like(x, shape=5), M), (lambda xp, x: xp.empty_like(x, shape=(0, 2)), M),
        (lambda xp, x: xp.zeros_like(x, shape=(-1,)), M),
    ],
    "sorting": [
        (lambda xp, x: xp.sort(x, kind="stable"), M), (lambda xp, x: xp.sort(x, 0, "quicksort"), M), (lambda xp, x: xp.sort(x, kind="x"), M),
        (lambda xp, x: xp.argsort(x, kind="mergesort"), I), (lambda xp, x: xp.argsort(x, axis=0, kind="stable", stable=False), I), (lambda xp, x: xp.sort(x, order="a"), M),
        (lambda xp, x: xp.isin(x, [1.0, 2.5], assume_unique=True), V), (lambda xp, x: xp.isin(x, x[:2], kind="sort", invert=True), V),
    ],
    "clip": [
        (lambda xp, x: xp.clip(x, a_min=0, a_max=2), M), (lambda xp, x: xp.clip(x, a_min=None, a_max=1.5), M), (lambda xp, x: xp.clip(x, a_max=[0, 1, 2, 3], a_min=-1.0), M),
    ],
    "reduce": [
        (lambda xp, x: xp.maximum.reduce(x), M), (lambda xp, x: xp.minimum.reduce(x, axis=None), M), (lambda xp, x: xp.minimum.reduce(x, initial=0.0, where=x > 1), M),
        (lambda xp, x: xp.logical_or.reduce(x > 1, axis=1, keepdims=True), M), (lambda xp, x: xp.logical_and.reduce(x), M), (lambda xp, x: xp.add.reduce(x, dtype="i8"), I1),
        (lambda xp, x: xp.maximum.reduce(x, axis=9), M), (lambda xp, x: xp.maximum.reduce(x, where=x > 1), M), (lambda xp, x: xp.add.reduce(x, out=xp.zeros_like(x[0], shape=())), I),
        (lambda xp, x: xp.bitwise_xor.reduce(x, axis=0, keepdims=True), I[:6].reshape(2, 3)), (lambda xp, x: xp.gcd.reduce(x, axis=(0, 1), keepdims=True), I[:6].reshape(2, 3)),
        (lambda xp, x: xp.gcd.reduce(x[:0], axis=0), I[:6].reshape(2, 3)), (lambda xp, x: xp.bitwise_or.reduce(x[:, :0], axis=0), I[:6].reshape(2, 3)), (lambda xp, x: xp.hypot.reduce(x[:0]), M),
        (lambda xp, x: xp.logical_or.reduce(x > 9, axis=1, initial=True), M), (lambda xp, x: xp.logical_and.reduce(x, 0, initial=0.0), M),
        (lambda xp, x: xp.logical_or.reduce(x, 1, initial=2.5, where=x > 9), M), (lambda xp, x: xp.logical_or.reduce(x, 1, initial=0, where=x > 1), M),
        (lambda xp, x: xp.logical_or.reduce(x[:, :0], axis=1, initial=1), M), (lambda xp, x: xp.logical_and.reduce(x, None, initial=1, out=xp.zeros_like(x[0, 0])), M),
        (lambda xp, x: xp.bitwise_or.reduce(x), I), (lambda xp, x: xp.less.reduce(x, 1, 2, 3, 4, 5, 6, 7), I),
    ],
    "accumulate": [
        (lambda xp, x: xp.maximum.accumulate(x), M), (lambda xp, x: xp.minimum.accumulate(x, axis=1), M), (lambda xp, x: xp.add.accumulate(x), I),
        (lambda xp, x: xp.cumsum(x, dtype="u1"), I), (lambda xp, x: xp.cumprod(x, dtype="i2"), I), (lambda xp, x: xp.cumsum(x, 1, "i4"), M), (lambda xp, x: xp.cumsum(x, dtype="f4"), I1),
        (lambda xp, x: xp.multiply.accumulate(x, 0, "i8"), I1), (lambda xp, x: xp.add.accumulate(x, out=xp.zeros_like(x)), I), (lambda xp, x: xp.add.accumulate(x, axis=5), I),
    ],
    "outer method": [
        (lambda xp, x: xp.subtract.outer(x[0], x[1]), M), (lambda xp, x: xp.less.outer(x, [1, 2]), V), (lambda xp, x: xp.multiply.outer(2, x), M),
        (lambda xp, x: xp.add.outer(x, x, dtype="f4"), V), (lambda xp, x: xp.power.outer(x, [0, 1, 2]), X4), (lambda xp, x: xp.add.outer(x), V),
    ],
    "reduceat": [(lambda xp, x: xp.add.reduceat(x, [0, 2, 1]), I), (lambda xp, x: xp.maximum.reduceat(x, [0, 2], axis=1), M), (lambda xp, x: xp.add.reduceat(x, [99]), I), (lambda xp, x: xp.add.reduceat(x, np.array([0, 3])), I)],
    "choose": [
        (lambda xp, x: xp.choose([0, 1, 1, 0], [x, x * 2]), X4), (lambda xp, x: xp.choose(np.array([1, 2, 0, 1]), x), M), (lambda xp, x: xp.choose(x, [1.5, 2]), (I % 2)[:4]),
        (lambda xp, x: xp.choose([0, 5, 1, 0], [x, x * 2]), X4), (lambda xp, x: xp.choose([0, 5, 1, 0], [x, x * 2], mode="wrap"), X4),
    ],
    "cut to a dtype": [
        (lambda xp, x: xp.mean(x, dtype="i2"), M * 8), (lambda xp, x: xp.mean(x, 0, "u1"), I1[:, None]), (lambda xp, x: xp.mean(x, 1, dtype="i4", where=x > 0), M * 9),
        (lambda xp, x: xp.mean(x, dtype=bool), M), (lambda xp, x: xp.nanquantile(x[:0], 0.5, axis=0), M.astype(int)), (lambda xp, x: xp.nanpercentile(x[:0], 50, axis=0, keepdims=True), M),
    ],
    "an axis twice": [
        (lambda xp, x: xp.fft.fftn(x, (3, 4), axes=(0, -1)), V), (lambda xp, x: xp.fft.rfftn(x, axes=(-1, 0)), V), (lambda xp, x: xp.fft.irfftn(x, (4, 5), axes=(0, 0)), V),
        (lambda xp, x: xp.fft.ifftn(x, (3, 2, 4), axes=(1, 0, 1)), M), (lambda xp, x: xp.unique(x, axis=0), np.array([1, np.nan, 0, np.nan, 1])),
    ],
    "no points": [
        (lambda xp, x: xp.fft.fft(x[:, :0], 3), M), (lambda xp, x: xp.fft.fftn(x[:0], (3, 2), axes=(0, 1)), M), (lambda xp, x: xp.fft.rfft2(x[:0], (2, 3)), M),
    ],
    "einsum": [
        (lambda xp, x: xp.einsum("i,i", x[:1], x), I), (lambda xp, x: xp.einsum("...i,...i", x, x[:1]), I), (lambda xp, x: xp.einsum("ij,j->i", x[:, :1], x[0]), M * 8),
        (lambda xp, x: xp.einsum("ij,ij", x[:1], x), M * 8), (lambda xp, x: xp.einsum("i,ij,j", x[:1, 0], x, x[0]), M * 8), (lambda xp, x: xp.einsum("ij,kj->ik", x[:, :1], x), M * 8),
    ],
    "r_": [
        (lambda xp, x: xp.r_[x, 0, x], V), (lambda xp, x: xp.r_[x, 1:4, [9, 7]], I), (lambda xp, x: xp.r_[0:1:5j, x], V), (lambda xp, x: xp.r_[x], M),
        (lambda xp, x: xp.r_["1", x, x], M), (lambda xp, x: xp.r_["0,2", x, x], V), (lambda xp, x: xp.r_["0,2,0", x, x * 2], V), (lambda xp, x: xp.r_["1,2,0", x, 0:6], V),
        (lambda xp, x: xp.r_["0,3,1", x], X4), (lambda xp, x: xp.r_["1,3,-1", x, x], M), (lambda xp, x: xp.r_[x, 2, True], F4[0]), (lambda xp, x: xp.r_[x, 2.5], I1),
        (lambda xp, x: xp.r_[x, np.float64(1)], F4[0]), (lambda xp, x: xp.r_[x > 1, True], V), (lambda xp, x: xp.r_[x, x[0]], M), (lambda xp, x: xp.r_[x, "0"], V),
        (lambda xp, x: xp.r_["x", x], V), (lambda xp, x: xp.r_[()], V), (lambda xp, x: xp.r_["-1", x, x], M), (lambda xp, x: xp.r_[x, 5:2], V),
    ],
    "c_": [
        (lambda xp, x: xp.c_[x, x * 2], V), (lambda xp, x: xp.c_[x, x[:, 0]], M), (lambda xp, x: xp.c_[0:6, x], V), (lambda xp, x: xp.c_[x], V), (lambda xp, x: xp.c_[x, x[:2]], V),
        (lambda xp, x: xp.c_[[[1, 2, 3]], 0, x[None, :2]], V), (lambda xp, x: xp.c_[x, x], M.reshape(3, 2, 2)),
    ],
    "slices": [(lambda xp, x: x[xp.s_[1:, ::2]], M), (lambda xp, x: x[xp.index_exp[0, 1:]], M)],
    "linspace": [
        (lambda xp, x: xp.linspace(x[0], x[1], 3, axis=1), M), (lambda xp, x: xp.linspace(x, 1.0, 4, False), V), (lambda xp, x: xp.linspace(x[:2], 1.0, 4, retstep=True), V),
    ],
    "small": [
        (lambda xp, x: xp.isscalar(x), V), (lambda xp, x: xp.isscalar(3.0), V), (lambda xp, x: xp.iterable(x), V), (lambda xp, x: xp.issubdtype(x.dtype, xp.floating), V),
        (lambda xp, x: xp.issubdtype(x.dtype, xp.integer), V), (lambda xp, x: xp.asarray_chkfinite(x), V), (lambda xp, x: xp.asarray_chkfinite(x), SPECIAL),
        (lambda xp, x: [i for i, _ in xp.ndenumerate(x)], M), (lambda xp, x: xp.stack([v for _, v in xp.ndenumerate(x)]), M),
        (lambda xp, x: xp.array2string(x, precision=1), M), (lambda xp, x: xp.array_repr(x), M), (lambda xp, x: xp.array_str(x), M), (lambda xp, x: x.astype(xp.half), V),
    ],
}  # fmt: skip

# The same but for the order in which numbers are added.
CLOSE = {
    "statistics": [
        (lambda xp, x: xp.mean(x, dtype="f4"), M), (lambda xp, x: xp.mean(x, 0, "f8"), I1), (lambda xp, x: xp.mean(x, axis=1, where=x > -9), M), (lambda xp, x: xp.mean(x, dtype="f8"), F4),
        (lambda xp, x: xp.std(x, 0, "f4"), M), (lambda xp, x: xp.var(x, dtype="f8", ddof=1), F4), (lambda xp, x: xp.std(x, where=x > 0, ddof=1), M),
        (lambda xp, x: xp.var(x, axis=1, mean=xp.mean(x, axis=1, keepdims=True)), M), (lambda xp, x: xp.var(x, ddof=1, correction=1), M), (lambda xp, x: xp.sum(x, dtype="c16"), M),
        (lambda xp, x: xp.mean(x, out=xp.zeros_like(x, shape=())), M),
    ],
    "products": [
        (lambda xp, x: xp.matmul(x, x.T, out=xp.zeros_like(x, shape=(3, 3))), M), (lambda xp, x: xp.dot(x, x.T, xp.zeros_like(x, shape=(3, 3))), M), (lambda xp, x: xp.matmul(x, x), M),
        (lambda xp, x: xp.add.reduce(x), M), (lambda xp, x: xp.multiply.reduce(x, axis=1), M), (lambda xp, x: xp.add.reduce(x, axis=(0, 1), keepdims=True), M),
        (lambda xp, x: xp.logaddexp.reduce(x), M), (lambda xp, x: xp.hypot.accumulate(x), M), (lambda xp, x: xp.fft.fft(x, out=xp.zeros_like(x, dtype="c16")), M),
        (lambda xp, x: xp.add.accumulate(x, axis=1), M),
    ],
}  # fmt: skip

# Forms that write into the array.
WRITING = [
    (lambda xp, x: xp.add.at(x, [0, 0, 2], 1.0), V), (lambda xp, x: xp.maximum.at(x, ([0, 1], [1, 1]), 9.0), M), (lambda xp, x: xp.subtract.at(x, [0, 0], [1, 2]), I),
    (lambda xp, x: xp.place(x, x > 1, [5.0, 6]), M), (lambda xp, x: xp.copyto(x, 7.0, where=x > 1), M), (lambda xp, x: xp.copyto(x, x + 0.5, casting="same_kind"), I),
    (lambda xp, x: xp.copyto(x, x + 0.5, casting="unsafe"), I), (lambda xp, x: xp.add(x, 1, out=x), M), (lambda xp, x: xp.sqrt(x, x, where=x > 0), M), (lambda xp, x: xp.round(x, 1, out=x), V),
    (lambda xp, x: xp.add.at(x, [99], 1.0), V), (lambda xp, x: xp.rint(x, out=x), V), (lambda xp, x: xp.negative(x, where=x > 1, out=x), M), (lambda xp, x: xp.copyto(x, x[0], where=[True, False, True, False]), M),
]  # fmt: skip


def compared(kind, form, n, **tolerance):
    """A form with NumPy's array and with one of this kind: what they give, and what they refuse."""
    expected, refused = outcome(form, (np, copy.deepcopy(n)), {})
    with mb.allow_scalar():
        got, error = outcome(form, (mb, made(kind, n)), {})
    where = inspect.getsource(form) if error is not None else ""
    if refused is not None:
        assert same_refusal(error, refused), f"{error!r}, NumPy's {refused!r}"
        return
    assert error is None, f"{error!r}\n{where}"
    same(kind, got, expected, tolerance)


def same(kind, got, expected, tolerance):
    if isinstance(expected, (tuple, list)):
        assert len(got) == len(expected)
        for g, e in zip(got, expected, strict=True):
            same(kind, g, e, tolerance)
    elif isinstance(expected, (np.ndarray, np.generic)) and isinstance(got, mb.AbstractArray):
        assert got.place == kind.place
        assert_same(got, expected, **tolerance)
    else:
        assert type(got) is type(expected) and got == expected


@kinds
@pytest.mark.parametrize("name", EXACT)
def test_forms(kind, name):
    for form, n in EXACT[name]:
        compared(kind, form, n, any_zero=name not in ("round", "out"))


@kinds
@pytest.mark.parametrize("name", CLOSE)
def test_forms_that_add_up(kind, name):
    for form, n in CLOSE[name]:
        compared(kind, form, n, rtol=2e-6, atol=1e-13)


@pytest.mark.parametrize("kind", [k for k in KINDS if k.writable], ids=repr)
def test_forms_that_write(kind):
    for form, n in WRITING:
        expected = n.copy()
        _, refused = outcome(form, (np, expected), {})
        x = kind.make(n)
        pending = x + 1 if kind.lazy else None
        with mb.allow_scalar():
            _, error = outcome(form, (mb, x), {})
        if refused is not None:
            assert same_refusal(error, refused), f"{error!r}, NumPy's {refused!r}"
        else:
            assert error is None, f"{error!r}\n{inspect.getsource(form)}"
        assert_same(x, n if refused is not None else expected)
        if pending is not None:  # what was said before stays
            assert_same(pending, n + 1)


AT = [
    ("add", [0, 0, 1], 2.5), ("divide", [0, 0, 2], 2.5), ("maximum", [1, 1], np.array([300, 2])), ("subtract", [0, 1, 0], np.array([300, 2, 1])),
    ("add", [2, 2], np.array([0.1, 0.7])), ("multiply", [1, 1], 100), ("logical_or", [0, 1], 7), ("bitwise_xor", [0, 0, 1], True),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["i1", "u4", "f4", "f8", "c8"])
@pytest.mark.parametrize("kind", PLAIN, ids=repr)
def test_each_result_of_at_is_cut_to_the_array_or_refused(kind, dtype):
    for op, index, values in AT:
        n, x = np.array([100, 7, 5], dtype), kind.make(np.array([100, 7, 5], dtype))
        _, refused = outcome(lambda a, op=op, i=index, v=values: getattr(np, op).at(a, i, v), (n,), {})
        v = kind.family(values) if isinstance(values, np.ndarray) else values
        if refused is not None:
            continue
        try:
            getattr(mb, op).at(x, index, v)
        except (TypeError, NotImplementedError) as e:
            assert kind.place.rank >= 2 and ("Convert one: " in str(e) or "cards do not keep" in str(e))
        else:
            assert_same(x, n, rtol=2e-7)


@pytest.mark.parametrize("kind", PLAIN, ids=repr)
@pytest.mark.parametrize(
    "op",
    [
        "add",
        "multiply",
        "maximum",
        "minimum",
        "fmax",
        "logical_or",
        "logical_and",
        "logical_xor",
        "bitwise_xor",
    ],
)
def test_truth_values_are_combined_with_truth_values_at_indices_anywhere(kind, op):
    rng = np.random.default_rng(5)
    for _ in range(4):
        n, index, values = rng.random(6) < 0.5, rng.integers(0, 6, 9), rng.random(9) < 0.5
        x = kind.make(n.copy())
        getattr(mb, op).at(x, index, kind.family(values))
        getattr(np, op).at(n, index, values)
        assert_same(x, n)


@pytest.mark.parametrize("dtype", ["f2", "f8", "c8"])
@pytest.mark.parametrize("kind", PLAIN, ids=repr)
def test_a_sum_that_begins_with_minus_zero_is_minus_zero_where_nothing_else_is_added(kind, dtype):
    for values in ([-0.0] * 3, [-0.0, 0.0, 1], []):
        n = np.array([values, values], dtype)
        if n.dtype.kind == "c":
            n.imag = -0.0
        x = kind.make(n)
        for initial in (-0.0, 0.0, *((complex(-0.0, -0.0), complex(0.0, -0.0)) if n.dtype.kind == "c" else ())):
            for options in (
                {},
                {"axis": 0},
                {"axis": 1, "keepdims": True},
                {"where": False},
                {"where": n == n},
            ):

                def form(xp, x, initial=initial, options=options):
                    return xp.sum(x, initial=initial, **options)

                expected = form(np, n)
                assert_same(form(mb, x), expected)
                assert_same(np.add.reduce(x, initial=initial, **{"axis": None, **options}), expected)
                if options in ({}, {"axis": 0}):
                    assert_same(mb.compile(lambda x, form=form: form(mb, x))(x), expected)
    x = mb.HostArray([-0.0, -0.0])
    assert mb.autodiff.gradient(lambda x: mb.sum(x * 2, initial=-0.0), x).tolist() == [2.0, 2.0]


def test_variances_are_not_cut_to_whole_numbers():
    for f in (mb.var, mb.std, np.var, mb.nanvar, mb.nanmean):
        with pytest.raises(
            TypeError, match=r"cut to whole numbers. Leave dtype= away, and convert the result: `mb"
        ):
            f(mb.HostArray(M), dtype="i4")


@pytest.mark.parametrize("kind", PLAIN, ids=repr)
@pytest.mark.parametrize("name", ["irfft", "hfft", "irfftn"])
def test_a_transform_of_nothing_is_of_zeros(kind, name):
    # (NumPy reads memory that nobody wrote.)
    x = kind.make(np.zeros((3, 0), "c8"))
    given = {"s": (4,), "axes": (1,)} if name == "irfftn" else {"n": 4}
    assert_same(getattr(mb.fft, name)(x, **given), np.zeros((3, 4), "f4"))


# Making arrays

MAKING = [
    lambda xp: xp.zeros((2, 3), order="F"), lambda xp: xp.ones((2, 3), int, "F"), lambda xp: xp.full((2, 3), 7, order="F"), lambda xp: xp.eye(3, 4, order="F"),
    lambda xp: xp.zeros((2, 3), order="X"), lambda xp: xp.asarray([[1, 2], [3, 4]], order="F"), lambda xp: xp.empty((2, 3), order="F").shape,
    lambda xp: xp.linspace(0, 1, 5, retstep=True), lambda xp: xp.linspace(0, 1, 5, False, True), lambda xp: xp.linspace([0, 1], [2, 3], 3, axis=1),
    lambda xp: xp.linspace(0, 1, 1, retstep=True)[0], lambda xp: xp.linspace(0, [1, 2], 3, dtype="f4"), lambda xp: xp.r_[1:4, 0, [5, 6]], lambda xp: xp.r_[0:1:3j],
    lambda xp: xp.r_[1, 2.5, True], lambda xp: xp.c_[0:3, 3:6], lambda xp: xp.c_[[1, 2], [3.5, 4]], lambda xp: xp.mask_indices(3, xp.triu, 1),
    lambda xp: xp.mask_indices(3, xp.tril), lambda xp: xp.asarray_chkfinite([1.0, np.inf]), lambda xp: xp.asarray_chkfinite([1, 2], "f4", "F"),
    lambda xp: xp.add.reduce(xp.r_[1, 2, 3]), lambda xp: xp.zeros(3, dtype=xp.intp), lambda xp: xp.ones(3, dtype=xp.double), lambda xp: xp.zeros(2, xp.dtype("c8")),
]  # fmt: skip


@pytest.mark.parametrize("kind", PLAIN, ids=repr)
def test_forms_that_make_arrays(kind):
    xp = mb.namespace(kind.family)
    for make in MAKING:
        expected, refused = outcome(make, (np,), {})
        got, error = outcome(make, (xp,), {})
        if refused is not None:
            assert same_refusal(error, refused), f"{error!r}, NumPy's {refused!r}"
            continue
        assert error is None, f"{error!r}\n{inspect.getsource(make)}"
        same(kind, got, expected, {})


@pytest.mark.parametrize("kind", [k for k in PLAIN if not k.distributed], ids=repr)
def test_orders_are_those_of_the_memory(kind):
    xp = mb.namespace(kind.family)
    x = kind.make(M)
    for y in (
        xp.zeros((2, 3), order="F"), xp.ones((2, 3), order="F"), xp.full((2, 3), 2.0, order="F"), xp.empty((2, 3), order="F"), xp.eye(2, 3, order="F"),
        xp.asarray([[1, 2], [3, 4]], order="F"), mb.asarray(x, order="F"), mb.copy(x, order="F"), mb.zeros_like(x, order="F"), mb.full_like(x, 2, order="F"),
    ):  # fmt: skip
        assert mb.isfortran(y) and not mb.isfortran(mb.asarray(y, order="C"))
    assert mb.asarray(x, order="C") is x
    with pytest.raises(ValueError, match="copy"):
        mb.asarray(x, order="F", copy=False)


# What is fused stays fused


@pytest.mark.usefixtures("trees")
def test_forms_are_single_kernels():
    x, out = mb.HostArray(np.linspace(0, 1, 4000)), mb.zeros(4000)
    for launches, form in (
        (1, lambda: mb.materialize(mb.round(x * 2, 1) + 1)),
        (1, lambda: mb.add(x * 2, x, out=out)),
        (1, lambda: mb.sqrt(x - 0.5, out=out, where=x > 0.5)),
        (1, lambda: mb.materialize(mb.sum(x * x, where=x > 0.5))),
        (1, lambda: mb.materialize(mb.sum(x * x, dtype=np.float32))),
        (1, lambda: mb.materialize(mb.maximum.reduce(x * x))),
        (1, lambda: mb.materialize(mb.multiply.outer(x[:60] * 2, x[:60]))),
        (1, lambda: mb.clip(x * 2, a_min=0.2, a_max=0.7, out=out)),
    ):
        with mb.count() as c:
            form()
        assert (c.launches, c.temporaries, c.library_calls) == (launches, 0, 0), inspect.getsource(form)


def test_a_compiled_function_takes_the_forms():
    @mb.compile
    def step(x, y):
        mb.add(x, 1, out=y, where=x > 0)
        return mb.r_[mb.round(y, 1)[0], mb.sum(x, axis=0, where=x > 0)], mb.maximum.reduce(x)

    x, y = mb.HostArray(M), mb.zeros((3, 4))
    joined, largest = step(x, y)
    expected = np.add(M, 1, out=np.zeros_like(M), where=M > 0)
    assert_same(y, expected)
    assert_same(joined, np.r_[np.round(expected, 1)[0], M.sum(axis=0, where=M > 0)], rtol=1e-14)
    assert_same(largest, M.max(axis=0))


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_compiled_function_returns_reshaped_arguments_of_any_order(order):
    n = np.array(M, order=order)
    forms = (
        lambda x: x.reshape(-1), lambda x: (x.reshape(2, 6)[1], x), lambda x: x.reshape(6, 2).T, lambda x: [x.ravel()[1:] * 2, x.reshape(2, 2, 3)],
        lambda x: x.T.reshape(-1), lambda x: x.reshape(12).reshape(4, 3),
    )  # fmt: skip
    for form in forms:
        for x in (mb.asarray(n.copy("K")), mb.HostArray(n), mb.HostArray(n) * 1):
            got, expected = mb.compile(form)(x), form(n)
            for g, e in zip(
                got if type(got) in (tuple, list) else [got],
                expected if type(got) in (tuple, list) else [expected],
                strict=True,
            ):
                assert_same(g, e)
                assert contents(g + 1).tolist() == (e + 1).tolist()


def test_an_override_still_answers_plain_calls():
    x = mb.HostArray(V)
    with mb.override(mb.sum, (mb.HostArray,), lambda a, axis=None: 7):
        assert mb.sum(x) == 7 == mb.sum(x, 0)
    with mb.override(mb.add, (mb.HostArray, object), lambda a, b: mb.add.previous(a, b) * 0):
        assert_same(mb.add(x, 1, out=mb.zeros(6)), V * 0, any_zero=True)


# What is not there, and says what is


@pytest.mark.parametrize(
    "name, cure",
    [
        ("ndarray", "mb.AbstractArray"), ("nditer", "mb.ndenumerate"), ("matrix", "mb.array"), ("frompyfunc", "mb.vectorize"), ("poly1d", "mb.polyval"),
        ("busday_count", "mb.to_numpy"), ("trapz", "mb.trapezoid"), ("dg", "import mirabelle.dg"),
    ],
)  # fmt: skip
def test_names_that_are_not_here_say_what_to_write(name, cure):
    from mirabelle.arraytypes.advice import missing

    assert cure in str(missing("mirabelle", name)) and name == missing("mirabelle", name).name
    for space in (mb, mb.namespace(mb.RefArray)):
        if name != "dg":  # (which somebody may have imported)
            assert not hasattr(space, name)
            with pytest.raises(AttributeError, match=name):
                getattr(space, name)
    with pytest.raises(AttributeError, match=r"has no 'no_such_name'\.$"):
        mb.no_such_name


def test_every_name_told_is_absent_and_every_cure_is_there():
    import re

    from mirabelle.arraytypes.advice import _INSTEAD

    for name, text in _INSTEAD.items():
        assert name not in mb.__all__
        for cure in re.findall(r"mb\.(\w+)", text):
            assert cure in mb.__all__, (name, cure)
        assert text.endswith("."), text


def test_numbers_by_another_name_say_how_large_they_are():
    for name, known in (
        ("short", "mb.int16"),
        ("ubyte", "mb.uint8"),
        ("object_", "not Python's"),
        ("void", "hold numbers"),
    ):
        with pytest.raises(AttributeError, match=known):
            getattr(mb, name)


@pytest.mark.parametrize(
    "name, cure", [("normal", r"rng\.normal\(\.\.\.\)"), ("randn", r"rng\.normal\(size=size\)"), ("seed", "default_rng"), ("nothing", "'nothing'\\.$")]
)  # fmt: skip
def test_random_numbers_have_no_global_generator(name, cure):
    for space in (mb.random, mb.namespace(mb.RefArray).random):
        with pytest.raises(AttributeError, match=cure):
            getattr(space, name)


def test_files_take_numpys_options(tmp_path):
    x = mb.HostArray(M)
    mb.save(tmp_path / "x.npy", x, allow_pickle=False)
    mb.savez(tmp_path / "y.npz", x, allow_pickle=False, b=x)
    mb.savez_compressed(tmp_path / "z.npz", x, allow_pickle=True)
    assert_same(mb.load(tmp_path / "x.npy", mmap_mode="r", allow_pickle=False), M)
    assert sorted(mb.load(tmp_path / "y.npz", allow_pickle=True)) == ["arr_0", "b"]
    assert list(mb.load(tmp_path / "z.npz")) == ["arr_0"]
    with pytest.raises(ValueError, match="mmap=True"):
        mb.load(tmp_path / "x.npy", mmap_mode="r+")


@pytest.mark.parametrize("kind", PLAIN, ids=repr)
def test_pinv_takes_rcond(kind):
    x = kind.make(M)
    for f in (mb.linalg.pinv, np.linalg.pinv):
        for got in (f(x, 0.3), f(x, rcond=0.3), f(x, rtol=0.3)):
            assert_same(got, np.linalg.pinv(M, 0.3), rtol=1e-12, atol=1e-13)
        with pytest.raises(ValueError, match="both"):
            f(x, rcond=0.3, rtol=0.2)


def test_bad_options_say_what_there_is():
    x = mb.HostArray(M)
    for call, text in (
        (lambda: mb.add(x, 1, where=x > 0), r"mb\.where\(mask, add"), (lambda: mb.add(x, 1, signature="dd->d"), "out=, where="), (lambda: mb.sin(x, x, x), r"mb\.sin\(x, out=result\)"),
        (lambda: mb.flip(x, nonsense=1), "takes x, axis; not nonsense="), (lambda: mb.diff(x, 1, 0, None, None, 5), "6 arguments by position"), (lambda: mb.norm(x, nonsense=1), "nonsense"),
        (lambda: mb.add.at([1, 2], [0], 1), r"mb\.asarray"), (lambda: mb.flip(x, out=3), "out="), (lambda: mb.unique(x, return_counts=True, out=mb.zeros(3)), "2 come out"),
        (lambda: mb.where(x, 1, out=x), "not out="),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=text):
            call()
    assert not hasattr(mb.sin, "reduce")
    with pytest.raises(ValueError, match=r"mb\.c_\[x\]"):
        mb.r_["c", x]
    with pytest.raises(TypeError, match="has an end"):
        mb.r_[1:, x]


def test_shared_objects_are_numpys():
    for name in ("dtype", "s_", "index_exp", "issubdtype", "printoptions", "floating", "intp"):
        assert getattr(mb, name) is getattr(np, name)
    with mb.printoptions(precision=2), mb.errstate(all="ignore"):
        assert str(mb.HostArray([1.23456])) == "[1.23]"
    assert (
        repr(mb.r_) == "mirabelle.r_"
        and repr(mb.namespace(mb.RefArray).c_) == "mirabelle.c_"
        and len(mb.r_) == 0
    )
    assert mb.namespace(mb.RefArray).r_[0:2].place == mb.RefArray([1.0]).place


def test_what_stands_further_back_may_stand_by_its_place_as_in_numpy():
    a = np.array([[1.0, 0.0], [0.0, 1e-4]])
    x, out = mb.HostArray(a), mb.zeros((2, 2))
    assert int(mb.linalg.matrix_rank(x, 1e-3)) == np.linalg.matrix_rank(a, 1e-3) == 1
    assert int(mb.linalg.matrix_rank(x, None, True)) == int(mb.linalg.matrix_rank(x, rtol=1e-5)) == 2
    assert mb.rint(x, out) is out and out.tolist() == [[1, 0], [0, 0]]
    assert mb.rint(x, None).tolist() == out.tolist() == mb.round(x, 0).tolist()
    assert mb.fft.fft(x, out=None).shape == (2, 2) and mb.outer(x[0], x[1], out=None).shape == (2, 2)
