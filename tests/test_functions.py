"""What NumPy's users lean on beyond the array API, on every type, called as mb.f(x) and as np.f(x)."""

# ruff: noqa: E501 - tables, a line a case

import copy
import io
import itertools
import math
import warnings

import numpy as np
import pytest
from compare import assert_same, contents
from kinds import DISTRIBUTED, PLAIN, SINGLE

import mirabelle as mb

NAMES = {
    "host",
    "ref",
    "cuda",
    "host_pending",
    "ref_pending",
    "host_shared",
    "transpose-host",
    "steps-ref",
    "reversed-host",
}
KINDS = [k for k in SINGLE if k.name in NAMES] + DISTRIBUTED
kinds = pytest.mark.parametrize("kind", KINDS, ids=repr)
leaves = pytest.mark.parametrize("kind", PLAIN, ids=repr)

_rng = np.random.default_rng(0)
V = np.array([0, 1.0, 2.5, -3.5, 7, 0.25])
SPECIAL = np.array([0, -0.0, 1.5, -2.5, np.nan, np.inf, -np.inf, 0.15])
M = _rng.integers(-20, 20, (3, 4)) / 4
T = _rng.integers(-20, 20, (2, 3, 4)) / 4
Z = M + 1j * M[::-1]
GAPS = np.where(_rng.random((3, 4)) < 0.4, np.nan, M)
GAPS[:, 1] = np.nan
I = np.array([3, 0, 1, 1, 6, 2])
F4, I1, B = M.astype("f4"), I.astype("i1"), I > 1
X4 = np.array([0, 1.0, 3, 4.5])
W = np.array([1.0, 2, 0.5, 1, 3, 2])
S = slice


def case(*args, **kwargs):
    return args, kwargs


# Function → argument sets. Results are the same to the last bit.
EXACT = {
    "flipud": [case(T), case(V)], "fliplr": [case(T), case(V)],
    "rot90": [case(T), case(T, 2), case(T, 3, (1, 2)), case(M, 4), case(M, -1), case(M, 1, (0, 0))],
    "transpose": [case(T), case(T, (1, 0, 2)), case(T, (0, 0, 1))],
    "swapaxes": [case(T, 0, -1), case(T, 0, 3)], "rollaxis": [case(T, 2), case(T, 0, 3), case(T, 1, 9)],
    "ravel": [case(T), case(T, "F"), case(M, "Q")],
    "atleast_1d": [case(V), case(np.array(2.0), M)], "atleast_2d": [case(V), case(T)],
    "atleast_3d": [case(V), case(M), case(T), case(np.array(1.0))],
    "diagonal": [case(T), case(T, -1, 2, 1), case(M, 9), case(M, 1), case(V)],
    "trace": [case(M), case(T, 1), case(M, dtype="f4")],
    "diag": [case(V), case(V, -2), case(M, 1), case(T)], "diagflat": [case(M), case(V, 1)],
    "trim_zeros": [case(np.array([0, 0, 1.0, 0, 2, 0])), case(V, "f"), case(V * 0), case(V, "x")],
    "concatenate": [case([M, M + 1]), case([M, I[:4]], axis=None), case([M, F4], 1), case([M, M], 5),
                    case([M, M[:, :2]]), case([M, V]), case([M, M], dtype="f4"), case([])],
    "hstack": [case([V, I]), case([M, M])], "vstack": [case([V, I]), case((M, M))],
    "dstack": [case([M, M]), case([V, V])], "column_stack": [case([V, I]), case([V, np.stack([V, V], 1)])],
    "block": [case([[M, M], [M, M]]), case([V, I]), case([[[T]], [[T]]]), case([[M], M])],
    "append": [case(V, [1, 2]), case(M, M, 0), case(M, M)],
    "resize": [case(V, (3, 4)), case(V, 7), case(M, (2, 0)), case(V, 2), case(V, -1)],
    "delete": [case(V, 2), case(V, [0, -1]), case(M, 1, 0), case(M, S(None, None, 2), 1), case(V, V > 1),
               case(V, []), case(V, 9), case(V, 1.5)],
    "insert": [case(V, 2, 9), case(V, [1, 3], [7, 8]), case(M, 1, 5.0, 0), case(M, 1, X4, 0),
               case(M, [1, 2], X4[:3, None], 1), case(M, 1, X4[:3], 1), case(V, [2, 2], [8, 9]),
               case(V, S(1, 3), 5), case(I, 1, 2.7), case(V, [], []), case(V, 99, 1)],
    "array_split": [case(V, 4), case(M, [1, 2], 1), case(V, 0)], "split": [case(M, 2, 1), case(V, [2, 3]), case(V, 4)],
    "hsplit": [case(M, 2), case(V, [2])], "vsplit": [case(M, 3), case(V, 2)], "dsplit": [case(T, 2), case(M, 2)],
    "pad": [case(a, w, mode) for a in (M, I) for w in (2, (1, 5)) for mode in
            ("constant", "edge", "wrap", "reflect", "symmetric", "linear_ramp", "maximum", "median", "minimum")]
           + [case(M, ((1, 2), (0, 3)), "edge"), case(M, 2, constant_values=(3, 5)), case(M, {-1: 1}),
              case(M, 2, "reflect", reflect_type="odd"), case(M, -1), case(M, 1, "none"), case(M, 1.5),
              case(M[:0], 1, "edge"), case(M, 1, stat_length=2)],
    "select": [case([V < 2, V > 2], [V, V * 10]), case([B, V > 2], [V, 1], -1), case([V < 2], [I], 2.5),
               case([V < 2], [V, V]), case([V], [V]), case([], []), case([M < 2], [X4], 3)],
    "piecewise": [case(V, [V < 2, V >= 2], [lambda x: -x, lambda x: x * 2]), case(V, [V < 2], [1, lambda x: x * 2]),
                  case(V, V < 2, [1.0, lambda x: x - x[0]]), case(V, [V < 9], [lambda x, k: x * k], 3),
                  case(V, [V < 1], [1, 2, 3])],
    "choose": [case(I % 3, [V, V + 10, V + 20]), case(I, [V, V]), case(I - 2, [V, V], mode="wrap"),
               case(I - 2, [V, 3], mode="clip"), case(I, [V], mode="x")],
    "extract": [case(V > 1, V), case(M % 2 == 0, M)],
    "compress": [case([False, True], M, axis=0), case([True, False, True, True], M, 1), case(V > 1, V)],
    "around": [case(SPECIAL), case(SPECIAL, 1), case(V, -1), case(I * 5, -1), case(Z, 1), case(F4, 3), case(I, 2)],
    "fix": [case(SPECIAL)], "fabs": [case(SPECIAL), case(I), case(I1), case(Z)],
    "nan_to_num": [case(SPECIAL), case(SPECIAL, nan=1, posinf=2.0, neginf=-3), case(I), case(SPECIAL.astype("f4")),
                   case(np.stack([SPECIAL, SPECIAL[::-1]], -1).view("c16")[:, 0])],
    "isposinf": [case(SPECIAL), case(I), case(Z)], "isneginf": [case(SPECIAL), case(Z)],
    "iscomplex": [case(Z), case(V)], "isreal": [case(Z), case(V)],
    "iscomplexobj": [case(Z), case(V)], "isrealobj": [case(Z), case(V)],
    "real_if_close": [case(Z), case(M + 1e-16j), case(V)],
    "isclose": [case(V, V + 1e-9), case(SPECIAL, SPECIAL, equal_nan=True), case(SPECIAL, SPECIAL), case(I, I + 1, rtol=1),
                case(V, 1), case(Z, Z), case(M, M[0]), case(M, V)],
    "allclose": [case(M, M), case(SPECIAL, SPECIAL), case(SPECIAL, SPECIAL, equal_nan=True), case(M, M + 1)],
    "array_equal": [case(M, M), case(M, V), case(SPECIAL, SPECIAL, equal_nan=True), case(SPECIAL, SPECIAL)],
    "array_equiv": [case(M, M), case(M[:1] * 0, M * 0), case(M, V)],
    "i0": [case(V), case(Z)],
    "unwrap": [case(M), case(M, axis=0), case(I, period=4), case(M, 2.0)],
    "float_power": [case(I, 2), case(I + 1, -1.0)],
    "histogram": [case(V), case(V, bins=[-1, 0, 1.0]), case(V, bins=X4, density=True), case(I, 5, (0, 3), weights=W),
                  case(V, bins="auto"), case(V, bins=0)],
    "histogram_bin_edges": [case(V)], "histogram2d": [case(V, W), case(V, W, bins=[3, X4]), case(V, V[:3])],
    "histogramdd": [case(M, 3), case([V, W], [2, 3])],
    "bincount": [case(I), case(I, W), case(I, minlength=20), case(I - 3), case(V)],
    "digitize": [case(V, [-1, 0, 1]), case(M, X4, right=True), case(V, [0, 1, 0]), case(Z, X4)],
    "quantile": [case(V, 0.3), case(V, [0.3, 0.5]), case(M, X4[:2], 1), case(M, 0.3, 0, method="nearest", keepdims=True),
                 case(I, 0.5, weights=W, method="inverted_cdf"), case(V, 2.0)],
    "percentile": [case(M, 30, (0, 1)), case(M, 130)], "median": [case(M), case(M, 0), case(GAPS, 0), case(I, keepdims=True)],
    "nanmedian": [case(GAPS[:, 2:], 0)], "nanquantile": [case(GAPS[:, 2:], 0.2, 0)],
    "nanpercentile": [case(GAPS[:, 2:], [20, 50], 1)],
    "partition": [case(V, 3), case(M, 1, 0), case(V, 99)], "argpartition": [case(M, 2, 1)],
    "lexsort": [case([I, W]), case((I, I[::-1])), case(M), case([])], "sort_complex": [case(I)],
    "argwhere": [case(M > 0)], "flatnonzero": [case(M > 0)],
    "unique": [case(I), case(I, return_index=True, return_inverse=True, return_counts=True), case(np.stack([I, I]), axis=0),
               case(GAPS)],
    "union1d": [case(I, V)], "intersect1d": [case(I, [1, 2]), case(I, I + 3, return_indices=True)],
    "setdiff1d": [case(I, [1, 2])], "setxor1d": [case(I, I + 3)],
    "ravel_multi_index": [case((I, I), (7, 7)), case((I, I), (7, 2)), case((I, I), (7, 2), mode="clip")],
    "unravel_index": [case(I, (7, 7)), case(I, (2, 2))],
    "packbits": [case(B), case(I1.astype("u1"), bitorder="little"), case(V)],
    "unpackbits": [case(I.astype("u1")), case(I.astype("u1"), 0, count=5), case(V)],
    "gradient": [case(V), case(M), case(M, 2, 0.5), case(M, X4, axis=1), case(M, X4, axis=1, edge_order=2), case(I),
                 case(T, axis=(0, 2), edge_order=1), case(V, edge_order=2), case(V[:1]), case(M, 1, 2, 3), case(F4),
                 case(M, X4, axis=0), case(V, edge_order=3), case(Z)],
    "ediff1d": [case(V), case(I, to_end=5), case(M, to_begin=[1.0, 2], to_end=9), case(I, to_end=5.5)],
    "interp": [case(V, X4, X4**2), case(V, X4, X4 + 1j), case(M, X4, X4, left=-9, right=9), case(V, X4, X4, period=2),
               case(V, X4, V)],
    "convolve": [case(V, X4), case(I, I, "same"), case(V, V[:0])], "correlate": [case(V, X4), case(V, X4, "full")],
    "polyval": [case([3, 0, 1], V), case(I[:3], M), case(V, X4)], "polyfit": [case(W, W**2, 2)],
    "poly": [case(V[:3])], "roots": [case(V[1:5])], "polyadd": [case(I, [1.0, 2])], "polysub": [case(V, I[:2])],
    "polymul": [case(V, I)], "polydiv": [case(V, I[:2])], "polyder": [case(V, 2)], "polyint": [case(V), case(V, 2, [1, 2.0])],
    "vander": [case(V), case(I, 3), case(I, 3, True), case(M)],
    "ix_": [case(I, B), case(M)], "diag_indices_from": [case(M[:, :3]), case(M)],
    "tril_indices_from": [case(M), case(V)], "triu_indices_from": [case(M, 1)],
    "cumsum": [case(V), case(M, 1), case(I1, dtype="f4"), case(B), case(M, 5)], "cumprod": [case(M, 0), case(I1)],
    "nancumsum": [case(GAPS), case(GAPS, 1), case(I)], "nancumprod": [case(GAPS, 0)],
    "nanmin": [case(GAPS[:, 2:]), case(GAPS[:, 2:], 1), case(I), case(GAPS, initial=-9.0), case(V[:0])],
    "nanmax": [case(GAPS[:, 2:], 0), case(GAPS, 1, where=GAPS > 0, initial=0.0)],
    "nanargmin": [case(GAPS, 1), case(GAPS, 0), case(I)], "nanargmax": [case(GAPS), case(GAPS, 1)],
    "ptp": [case(M), case(M, 1), case(I, keepdims=True)],
    "apply_along_axis": [case(lambda row: row * 2, 1, M), case(lambda row: row[:2], 0, T), case(lambda row: row[0], 1, T),
                         case(lambda row: np.stack([row, row]), 1, T), case(lambda row: row, 3, M)],
    "apply_over_axes": [case(np.max, T, [0, 2])],
    "ascontiguousarray": [case(M.T), case(M, "f4")], "asfortranarray": [case(M)], "require": [case(M, "f4", ["F"])],
    "min_scalar_type": [case(M)], "common_type": [case(F4, I), case(F4)], "shape": [case(M)], "ndim": [case(M)],
    "size": [case(M), case(M, 1)], "matvec": [case(M, X4)], "vecmat": [case(X4[:3], M)],
}  # fmt: skip

# The same but for the order in which numbers are added (or NumPy's vector code, which depends on strides).
CLOSE = {
    "sinc": [case(V), case(I)], "angle": [case(Z), case(Z, True), case(M)],
    "trapezoid": [case(V), case(M, axis=0), case(M, X4), case(M, M), case(I, dx=2), case(V, V)],
    "average": [case(M), case(M, 1), case(M, 1, X4), case(M, weights=M**2 + 1, returned=True), case(I, weights=W),
                case(M, 0, returned=True), case(M, 1, keepdims=True), case(M, weights=X4), case(M, 1, X4 * 0)],
    "cov": [case(M), case(V), case(V, W), case(M, rowvar=False), case(M, fweights=[1, 2, 1, 2]), case(M, aweights=X4 + 1),
            case(M, M * 2, bias=True), case(Z), case(T), case(M, ddof=1.5), case(M, fweights=[1.5, 1, 1, 1]), case(I)],
    "corrcoef": [case(M), case(Z), case(V, W), case(M, rowvar=False)],
    "nansum": [case(GAPS), case(GAPS, 1), case(GAPS, 0, where=GAPS > 0, initial=2.0), case(I1), case(GAPS, dtype="f4")],
    "nanprod": [case(GAPS, 1)],
    "nanmean": [case(GAPS[:, 2:]), case(GAPS[:, 2:], 0), case(I), case(GAPS[:, 2:], 0, keepdims=True)],
    "nanvar": [case(GAPS[:, 2:]), case(GAPS[:, 2:].astype("f4"), ddof=1), case(I, ddof=1)],
    "nanstd": [case(GAPS[:, 2:], ddof=1), case(GAPS[:, 2:], correction=1)],
}  # fmt: skip

# Those that write into their first argument.
WRITING = {
    "fill_diagonal": [case(M, 9.0), case(np.zeros((7, 3)), [1.0, 2], True), case(np.zeros((3, 3, 3)), [5.0, 6, 7]),
                      case(V, 1), case(T, 1)],
    "place": [case(V, V > 1, [5.0, 6]), case(M, M > 1, [5.0]), case(V, V > 1, []), case(V, M > 1, [1.0])],
    "putmask": [case(V, V > 1, [5.0, 6]), case(M, M > 1, M * 2), case(V, V > 1, 9)],
    "put": [case(V, [0, -1], [3.0, 4]), case(M, [0, 5, -1], [3.0, 4]), case(M, [0, 99], 1.0), case(M, [0, 99], 1.0, "clip"),
            case(M, [0, 99, -3], 1.0, "wrap")],
    "copyto": [case(M, 3.0), case(M, X4, where=M > 0), case(I, 1.5), case(I, 1.5, "unsafe")],
}  # fmt: skip


# NumPy asks us only for `like=` here, or only if the keys are in a tuple.
NOT_ASKED = {"ascontiguousarray", "asfortranarray", "require", "lexsort"}


def made(kind, x):
    """The arrays of an argument as this kind's."""
    if isinstance(x, np.ndarray):
        return kind.make(x)
    if isinstance(x, (list, tuple)) and any(isinstance(i, (np.ndarray, list)) for i in x):
        return type(x)(made(kind, i) for i in x)
    return x


def outcome(f, args, kwargs):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return f(*args, **kwargs), None
        except Exception as e:
            return None, e


def check(kind, got, expected, where, **tolerance):
    if isinstance(expected, (list, tuple)):
        assert len(got) == len(expected), where
        for g, e in zip(got, expected, strict=True):
            check(kind, g, e, where, **tolerance)
    elif isinstance(expected, (np.ndarray, np.generic)) and not (
        isinstance(got, bool) or isinstance(expected, np.bool_)
    ):
        assert isinstance(got, mb.AbstractArray), where
        assert got.place == kind.place, where
        assert_same(got, expected, **tolerance)
    else:
        assert got == expected and not isinstance(got, mb.AbstractArray), where


def same_refusal(mine, numpys):
    return mine is not None and (isinstance(mine, type(numpys)) or isinstance(numpys, type(mine)))


def compare(kind, name, cases, **tolerance):
    for args, kwargs in cases:
        expected, refused = outcome(getattr(np, name), copy.deepcopy(args), copy.deepcopy(kwargs))
        for space in (mb, np):
            mine = [made(kind, a) for a in args]
            options = {k: made(kind, v) for k, v in kwargs.items()}
            if space is np and (
                name in NOT_ASKED
                or not any(isinstance(a, mb.AbstractArray) for a in flat((mine, list(options.values()))))
            ):
                continue
            with mb.allow_scalar():
                got, error = outcome(getattr(space, name), mine, options)
            where = f"{space.__name__}.{name}{args}{kwargs}"
            if refused is not None:
                assert same_refusal(error, refused), f"{where}: {error!r}, NumPy's {refused!r}"
                continue
            assert error is None, f"{where} raised {error!r}"
            check(kind, got, expected, where, **tolerance)


def flat(nest):
    for x in nest:
        if isinstance(x, (list, tuple)):
            yield from flat(x)
        else:
            yield x


@kinds
@pytest.mark.parametrize("name", EXACT)
def test_functions(kind, name):
    tolerance = {"rtol": 1e-15} if name in ("polyfit", "roots") else {"any_zero": True}
    if kind.on_device and name in ("polyfit", "roots", "pad"):  # which are composed of other steps there
        tolerance = {"rtol": 1e-12, "atol": 1e-13}
    compare(kind, name, EXACT[name], **tolerance)


@kinds
@pytest.mark.parametrize("name", CLOSE)
def test_functions_that_add_up(kind, name):
    compare(kind, name, CLOSE[name], rtol=2e-6 if name == "nanvar" else 1e-12, atol=1e-13)


@pytest.mark.parametrize("kind", [k for k in KINDS if k.writable], ids=repr)
@pytest.mark.parametrize("name", WRITING)
def test_functions_that_write(kind, name):
    for args, kwargs in WRITING[name]:
        expected = [np.array(args[0]), *args[1:]]
        _, refused = outcome(getattr(np, name), expected, kwargs)
        for f in (getattr(np, name), getattr(mb, name, None)):
            if f is None or (name in ("copyto", "place") and f is getattr(mb, name)):
                continue  # those verbs are Julia's
            mine = [made(kind, a) for a in args]
            options = {k: made(kind, v) for k, v in kwargs.items()}
            pending = mine[0] + 1 if kind.lazy else None
            with mb.allow_scalar():
                _, error = outcome(f, mine, options)
            if refused is not None:
                assert same_refusal(error, refused), f"{name}{args}: {error!r}, NumPy's {refused!r}"
                assert_same(mine[0], args[0])
                continue
            assert error is None, f"{name}{args}: {error!r}"
            assert_same(mine[0], expected[0], any_zero=True)
            if pending is not None:  # what was said before stays
                assert_same(pending, args[0] + 1)


# Making arrays


MAKING = {
    "indices": [case((2, 3)), case((2, 3), sparse=True), case((4,), "f4")], "identity": [case(3), case(2, "f4")],
    "fromfunction": [case(lambda i, j: i + j, (2, 3)), case(lambda i: i * 2, (4,), dtype=int)],
    "tri": [case(3, 4, 1), case(3, dtype=bool)], "logspace": [case(0, 2, 5), case(0, [1, 2], 5, base=2), case(0, 1, -1)],
    "geomspace": [case(1, 256, 9), case(0, 1)], "diag_indices": [case(3, 3)], "tril_indices": [case(3, 1, 4)],
    "triu_indices": [case(3, -1)], "bartlett": [case(7)], "blackman": [case(7)], "hamming": [case(7), case(0)],
    "hanning": [case(1)], "kaiser": [case(7, 8.0)], "array": [case([1, 2], ndmin=3), case([[1, 2], [3]])],
    "fromstring": [case("1 2", sep=" ")], "loadtxt": [case(["1 2", "3 4"])],
    "genfromtxt": [case(["1,2", "3,"], delimiter=",")], "frombuffer": [case(b"\1\2", "u1")],
}  # fmt: skip


@leaves
@pytest.mark.parametrize("name", MAKING)
def test_functions_that_make_arrays(kind, name):
    for args, kwargs in MAKING[name]:
        expected, refused = outcome(getattr(np, name), args, kwargs)
        for f in (getattr(mb, name), getattr(mb.namespace(kind.family), name)):
            options = kwargs if f is not getattr(mb, name) else {**kwargs, "device": kind.family}
            got, error = outcome(f, args, options)
            if refused is not None:
                assert same_refusal(error, refused), f"{name}{args}: {error!r}"
            else:
                assert error is None, repr(error)
                check(kind, got, expected, name)


@leaves
def test_grids_iterators_and_what_is_like_another_array(kind):
    xp = mb.namespace(kind.family)
    for key in (np.s_[0:3, 0:2], np.s_[0:1:5j], np.s_[0:3:0.5], np.s_[-1:1:3j, 0:2]):
        check(kind, xp.mgrid[key], np.mgrid[key], key)
        check(kind, xp.ogrid[key], np.ogrid[key], key)
    assert repr(mb.mgrid) == "mirabelle.mgrid" and list(mb.ndindex(2)) == [(0,), (1,)]
    check(kind, xp.fromiter(iter(range(3)), dtype="f4"), np.arange(3, dtype="f4"), "fromiter")
    x = kind.make(M)
    for f in (
        lambda like: np.zeros((2, 3), like=like), lambda like: np.array([1, 2], like=like), lambda like: np.eye(2, 3, 1, like=like),
        lambda like: np.full(2, 7, like=like), lambda like: np.arange(3, like=like), lambda like: np.identity(2, like=like),
        lambda like: np.zeros_like(like, shape=(2,), dtype="i4"), np.ones_like, lambda like: np.full_like(like, 3),
        lambda like: np.empty_like(like, dtype="i4") * 0, lambda like: np.linspace(like[0], 1.0, 3),
    ):  # fmt: skip
        check(kind, f(x), f(M), "like")


def test_files_of_text(tmp_path):
    file = io.StringIO()
    np.savetxt(file, mb.RefArray([[1.0, 2.0]]), fmt="%g")
    assert file.getvalue() == "1 2\n"
    np.arange(3.0).tofile(tmp_path / "x")
    assert_same(mb.fromfile(tmp_path / "x"), np.arange(3.0))
    mb.HostArray([1.0]).tofile(tmp_path / "y")
    assert_same(mb.fromfile(tmp_path / "y"), np.array([1.0]))


# Reductions with NumPy's options, as functions and as methods


REDUCTIONS = [
    ("sum", {"axis": 0, "initial": 2.0, "where": M > 0}), ("sum", {"dtype": "f4"}), ("prod", {"axis": 1, "where": M > 0}),
    ("min", {"axis": 0, "where": M > 0, "initial": 9.0}), ("max", {"initial": 99.0}), ("max", {"where": M > 0}),
    ("mean", {"axis": 1, "where": M > -9}), ("mean", {"dtype": "f4", "axis": 0}), ("std", {"axis": 0, "ddof": 1}),
    ("var", {"where": M > 0, "ddof": 1}), ("var", {"axis": 1, "correction": 1, "keepdims": True}),
    ("std", {"axis": 1, "mean": M.mean(1, keepdims=True)}), ("any", {"axis": 0, "where": M > 0}),
    ("all", {"where": M > 0, "keepdims": True}), ("argmax", {"axis": 0}), ("argmin", {"keepdims": True}),
    ("sum", {"axis": 7}), ("sum", {"where": M}), ("std", {"ddof": 1, "correction": 1}),
    ("sum", {"axis": (0, 1), "keepdims": True, "initial": 1.0}),
]  # fmt: skip


@kinds
@pytest.mark.parametrize("name, options", REDUCTIONS, ids=[f"{n}-{'-'.join(o)}" for n, o in REDUCTIONS])
def test_reductions_take_numpys_options(kind, name, options):
    mine = {k: made(kind, v) for k, v in options.items()}
    expected, refused = outcome(getattr(np, name), (M,), options)
    for call in (lambda x, **k: getattr(np, name)(x, **k), lambda x, **k: getattr(x, name)(**k)):
        got, error = outcome(call, (kind.make(M),), mine)
        if refused is not None:
            assert same_refusal(error, refused), f"{error!r}, NumPy's {refused!r}"
            continue
        assert error is None, repr(error)
        check(kind, got, expected, name, rtol=1e-6 if "dtype" in options else 1e-12)
        if "where" in options or name.startswith("arg"):
            continue
        for out in (kind.family(np.zeros_like(expected)), np.zeros_like(expected)):
            if isinstance(out, np.ndarray) and kind.on_device:
                continue
            assert call(kind.make(M), out=out, **mine) is out
            assert_same(out, expected, rtol=1e-6)
    if refused is None and not name.startswith("arg"):
        with pytest.raises(ValueError, match="shape"):
            getattr(np, name)(kind.make(M), out=kind.family(np.zeros((9, 9))), **mine)


def test_empty_and_half_precision_reductions():
    empty = mb.HostArray(np.zeros((0, 3)))
    assert_same(np.max(empty, axis=0, initial=-1.0), np.full(3, -1.0))
    assert_same(np.sum(empty, axis=0), np.zeros(3))
    with pytest.raises(ValueError, match="identity"):
        np.max(empty, axis=0)
    half = np.full(3000, 60.0, "f2")
    for f in (np.nanmean, np.nanvar, lambda x: np.mean(x, where=x > 0)):
        # NumPy's own sums of half precision overflow here.
        assert_same(f(mb.HostArray(half)), f(half.astype("f4")).astype("f2"))


def test_a_slice_of_nothing_but_nan_is_nan_without_a_warning():
    x = mb.HostArray([[np.nan, 1.0], [np.nan, 2.0]])
    for f, second in (
        (mb.nanmin, 1.0),
        (mb.nanmax, 2.0),
        (mb.nanmean, 1.5),
        (mb.nanvar, 0.25),
        (mb.nanstd, 0.5),
    ):
        assert_same(f(x, axis=0), np.array([np.nan, second]))
    with pytest.raises(ValueError, match="All-NaN"):
        mb.nanargmin(x, axis=0)


# One kernel


@pytest.mark.parametrize(
    "name, launches",
    [
        ("nansum", 1), ("sinc", 1), ("nan_to_num", 1), ("angle", 1), ("around", 1), ("isclose", 1), ("allclose", 1),
        ("array_equal", 1), ("select", 1), ("choose", 1), ("polyval", 1), ("nanprod", 1), ("trapezoid", 1), ("diagonal", 1),
        ("flipud", 1), ("transpose", 1), ("fabs", 1), ("isposinf", 1), ("fix", 1), ("iscomplex", 1), ("outer", 1), ("vdot", 1),
        ("average", 2), ("ptp", 2), ("nanmean", 3),
    ],
)  # fmt: skip
def test_compositions_are_kernels_without_temporaries(name, launches, many):
    x, y, z = mb.HostArray(M), mb.HostArray(M + 1), mb.HostArray(M + 1j)
    calls = {
        "isclose": lambda: mb.isclose(x, y), "allclose": lambda: mb.allclose(x, y), "array_equal": lambda: mb.array_equal(x, y),
        "select": lambda: mb.select([x < 0, x > 1], [x, y], 2.0), "choose": lambda: mb.choose(x > 0, [x, y], mode="clip"),
        "polyval": lambda: mb.polyval([1.0, 2.0, 3.0], x), "around": lambda: mb.around(x, 1), "outer": lambda: mb.outer(x[0], y[1]),
        "vdot": lambda: mb.vdot(x, y), "average": lambda: mb.average(x, axis=1), "isposinf": lambda: mb.isposinf(x),
        "iscomplex": lambda: mb.iscomplex(z),
    }  # fmt: skip
    with mb.count() as c:
        got = calls.get(name, lambda: getattr(mb, name)(x))()
        if isinstance(got, mb.AbstractArray):
            mb.materialize(got + 0 if isinstance(got, mb.types.Wrapper) else got)
    assert c.launches == launches and c.library_calls == 0, c
    assert c.scalar_reads == (name in ("allclose", "array_equal")), c


def test_functions_fuse_with_what_surrounds_them(many):
    x = mb.HostArray(M)
    with mb.count() as c:
        mb.materialize(mb.nan_to_num(mb.sinc(x * 2) + 1) * mb.select([x > 0], [x], 1.0))
    assert (c.launches, c.temporaries) == (1, 0)
    with mb.count() as c:
        mb.pad(x * 2, 1)
    assert c.temporaries == 0 and c.library_calls == 0
    with mb.count() as c:
        mb.gradient(x, axis=0)
    assert (c.launches, c.temporaries) == (3, 0)


@pytest.mark.parametrize("before", ["nothing", "the trees"])
def test_what_is_joined_is_computed_straight_into_the_result(many, before):
    """Also where trees like these were evaluated before, and none was written to a part: now and then Python looks at
    what a list holds, and writes the statement down (`compute` in dispatch/csrc/assigning.c)."""
    x, y = mb.HostArray(M), mb.HostArray(M + 2)
    if before == "the trees":
        for _ in range(20):
            mb.materialize(x * 2 + y), mb.materialize((x + 1) * y)
    found = []
    for _ in range(200):
        with mb.count() as c:
            mb.concatenate([x * 2 + y, (x + 1) * y])
        found.append((c.launches, c.temporaries))
    assert found[-1] == (2, 0), found


# Views


@pytest.mark.parametrize("kind", [k for k in KINDS if k.writable], ids=repr)
def test_real_and_imaginary_parts_are_views(kind):
    z, x = Z.copy(), kind.make(Z)
    for change in (
        lambda a: a.real.__setitem__(0, 3), lambda a: setattr(a, "imag", [1, 2, 3, 4]), lambda a: setattr(a, "real", a.real * 2),
        lambda a: setattr(a[1:], "imag", 7.0), lambda a: a.T.real.__setitem__(..., -1), lambda a: a.imag[::2].__iadd__(1),
    ):  # fmt: skip
        before = contents(x).copy()
        pending = x + 1
        change(z), change(x)
        assert_same(x, z)
        if kind.lazy:
            assert_same(pending, before + 1)
    (
        assert_same(x.real, z.real),
        assert_same(x.imag[1:], z.imag[1:]),
        assert_same((x * 2).real.T, (z * 2).real.T),
    )
    assert (
        isinstance(x.real, mb.types.RealPart)
        and isinstance(x.imag, mb.types.ImagPart)
        and x.real.dtype == np.float64
    )
    y = kind.make(M)
    assert y.real is y and not np.any(contents(y.imag))
    y.real = 2.0
    assert_same(y, np.full_like(M, 2.0))
    with pytest.raises(TypeError, match="imaginary"):
        y.imag = 1.0


@pytest.mark.parametrize("dtypes", [("f8", "f8"), ("f8", "i4"), ("c8", "f8"), ("?", "u1")], ids=str)
def test_arrays_of_any_size_are_joined(dtypes):
    rng = np.random.default_rng(0)
    for n in (3, 5000, 300_000):  # (computed at once, moved by NumPy, and by threads)
        a, b = (rng.integers(0, 2, (n, 2)).astype(d) for d in dtypes)
        x, y = mb.HostArray(a), mb.HostArray(b)
        for f in (
            lambda xp, a, b: xp.concatenate([a, b]), lambda xp, a, b: xp.concatenate([a[::2], b], 0),
            lambda xp, a, b: xp.concatenate([a, b], -1), lambda xp, a, b: xp.concatenate([a, b], None),
            lambda xp, a, b: xp.stack([a, b]), lambda xp, a, b: xp.stack([a.T, b.T], -1),
            lambda xp, a, b: xp.concatenate([a * 2, b]), lambda xp, a, b: xp.hstack([a, b[:, :1]]),
            lambda xp, a, b: xp.concatenate([xp.sum(a, axis=1), b[:, 0]]), lambda xp, a, b: xp.vstack([a[:, 0], b[:, 1]]),
        ):  # fmt: skip
            assert_same(f(mb, x, y), f(np, a, b))
        for wrong in (
            lambda: mb.concatenate([x, y[0]]),
            lambda: mb.concatenate([x, y], 2),
            lambda: mb.stack([x, y[1:]]),
        ):
            with pytest.raises(ValueError):
                wrong()
        joined = mb.concatenate([x, y])
        before = mb.to_numpy(joined)
        x[...] = 0
        assert_same(joined, before)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_extremes_that_pass_over_nan_of_memory_and_of_trees(dtype):
    a = np.array([[1, np.nan, -np.inf], [np.nan] * 3, [np.inf, 2, -0.0]], dtype)
    x = mb.HostArray(a)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for f in ("nanmax", "nanmin"):
            for kwargs in ({}, {"axis": 0}, {"axis": 1}, {"axis": (0, 1)}, {"axis": -1, "keepdims": True}):
                wanted = getattr(np, f)(a, **kwargs)
                assert_same(getattr(mb, f)(x, **kwargs), wanted)
                assert_same(getattr(mb, f)(x.T.T, **kwargs), wanted)
                assert_same(getattr(mb, f)(x * 2, **kwargs), getattr(np, f)(a * 2, **kwargs))
    with pytest.raises(ValueError):
        mb.nanmax(x[:0])
    with pytest.raises(ValueError):
        mb.nanmin(x, axis=2)


def test_parts_of_pending_arrays_fuse(many):
    z = mb.HostArray(Z)
    with mb.count() as c:
        mb.materialize(mb.sum((z * 2).real + (z + 1).imag))
    assert (c.launches, c.temporaries) == (1, 0)


@pytest.mark.parametrize("kind", [k for k in KINDS if k.writable], ids=repr)
def test_diagonals_other_dtypes_and_windows_are_views(kind):
    x, n = kind.make(M), M.copy()
    mb.diagonal(x, 1)[...] = mb.diagonal(x, 1) * 2
    n[np.arange(3), np.arange(1, 4)] *= 2
    assert_same(x, n)
    with mb.count() as c:
        mb.materialize(mb.diagonal(kind.make(M[:3, :3] + 1) * 2) + 1)
    assert c.bytes_written <= 9 * 8 * 4
    assert_same(x.view("i8"), n.view("i8"))
    x.view("i8")[1] = 0
    n[1] = 0
    assert_same(x, n)
    y = kind.family(M)
    if not kind.distributed:  # (elements of another size have no places of their own in parts)
        assert_same(y.view("u1"), M.view("u1")), assert_same(y.view("c16"), M.view("c16"))
    assert type(y.view("i8")) is mb.types.Reinterpreted[kind.family["f8", 2], np.dtype("i8")]
    with pytest.raises(ValueError, match="contiguous"):
        y.T.view("u1")
    for window in ((2, 1), ((2, 2),), ((2, 2), (1, 0))):
        shown = np.lib.stride_tricks.sliding_window_view(kind.make(M), *window)
        assert_same(shown, np.lib.stride_tricks.sliding_window_view(M, *window))
        assert_same(shown + 1, np.lib.stride_tricks.sliding_window_view(M, *window) + 1)
    with pytest.raises(ValueError, match="read-only"):
        shown[...] = 1
    with pytest.raises(ValueError, match="larger"):
        mb.sliding_window_view(y, (9, 9))


# Methods


METHODS = [
    lambda a: a.argsort(), lambda a: a.cumsum(1), lambda a: a.cumprod(), lambda a: a.nonzero()[1], lambda a: a.repeat(2, 0),
    lambda a: a.round(1), lambda a: a[None].squeeze(0), lambda a: a.swapaxes(0, 1), lambda a: a.take([0, 2]),
    lambda a: a.trace(), lambda a: a.diagonal(1), lambda a: a[0].searchsorted(3.0), lambda a: a.flat[2:5],
    lambda a: a.flat[[0, -1]], lambda a: a.flat.copy(), lambda a: a.compress([True, False, True], 0), lambda a: a.reshape(4, 3, order="F"),
    lambda a: a.ravel("F"), lambda a: a.flatten("F"), lambda a: a.astype("f4", "K", "same_kind"), lambda a: a.clip(1, 2),
    lambda a: a.astype("f4", copy=False), lambda a: a.argpartition(1, 0), lambda a: a.copy("F"), lambda a: a.ravel(),
    lambda a: np.reshape(a, (4, 3), "F"), lambda a: np.reshape(a, -1, copy=True), lambda a: np.copy(a, "F"),
    lambda a: a.astype("i4", casting="safe"), lambda a: a.round("x"), lambda a: a.sort(order="a"), lambda a: a.take([99]),
    lambda a: a.swapaxes(0, 9), lambda a: a.view("f4"), lambda a: a.take([0, 99], mode="clip"),
]  # fmt: skip


@kinds
def test_methods(kind):
    for f in METHODS:
        if not kind.lazy and f is METHODS[-2]:
            continue
        if kind.distributed and "view" in f.__code__.co_names:
            continue  # (elements of another size have no places of their own in parts)
        expected, refused = outcome(f, (M.copy(order="C"),), {})
        x = kind.make(M)
        got, error = outcome(f, (x if f is not METHODS[-2] else mb.copy(x),), {})
        if refused is not None:
            assert same_refusal(error, refused), f"{error!r}, NumPy's {refused!r}"
        else:
            assert error is None, repr(error)
            check(kind, got, expected, f)
    x = kind.family(M)
    assert (
        x.nbytes == M.nbytes and x.itemsize == 8 and x.strides == M.strides and x.base is None and x.T.base is x
    )
    assert x.tobytes() == M.tobytes() and x.copy("F").flags.f_contiguous and x.ptp().shape == ()
    assert_same(x.dot(x.T), M @ M.T, rtol=1e-13)


@pytest.mark.parametrize("kind", [k for k in KINDS if k.writable], ids=repr)
def test_methods_that_write(kind):
    for change in (
        lambda a: a.sort(), lambda a: a.sort(0), lambda a: a.partition(2), lambda a: a.put([0, 1], 9.0),
        lambda a: setattr(a, "flat", [1.0, 2, 3]), lambda a: a.flat.__setitem__(S(2, 7), 0), lambda a: a.T.flat.__setitem__(1, 5.0),
        lambda a: a.T.flat.__setitem__([0, 2], [7.0, 8]), lambda a: a.fill(2), lambda a: a.sort(kind="stable", axis=1),
    ):  # fmt: skip
        x, n = kind.make(M), M.copy()
        pending = x + 1
        change(n)
        with mb.allow_scalar():
            change(x)
        assert_same(x, n)
        assert_same(pending, M + 1)


def test_flat_iterates():
    x = mb.HostArray(M)
    values = x.flat
    assert [float(v) for v in values] == M.ravel().tolist() and len(values) == 12 and values.index == 12
    assert x.flat.coords == (0, 0) and x.flat.base is x and "flat" in repr(x.flat)
    np.testing.assert_array_equal(np.asarray(x.flat), M.ravel())
    with pytest.raises(mb.ScalarAccessError):
        next(iter(mb.RefArray(M).flat)).item()
    assert round(x[0, 1] * 0 + 2.5) == 2 and round(x[0, 0] * 0 + 2.25, 1) == 2.2


# NumPy's protocols


@kinds
def test_ufuncs_with_outputs_masks_and_dtypes(kind):
    n = M + 6
    x = kind.make(n)
    outs = tuple(kind.family(np.zeros_like(n)) for _ in range(2))
    got = np.divmod(x, 0.3, out=outs)
    assert got[0] is outs[0] and got[1] is outs[1]
    check(kind, got, np.divmod(n, 0.3), "divmod")
    got = np.modf(x, out=(None, outs[1]))
    assert got[1] is outs[1]
    check(kind, got, np.modf(n), "modf")
    check(kind, np.frexp(x), np.frexp(n), "frexp")
    for f in (
        lambda a: np.add([1, 2, 3, 4], a), lambda a: np.less(a, 7), lambda a: np.add(a, 1, dtype="f4"), np.fabs,
        lambda a: np.logaddexp.reduce(a), lambda a: np.hypot.accumulate(a), lambda a: np.add.reduceat(a, [0, 2], axis=1),
        lambda a: np.multiply.outer(a[0], a[1]), lambda a: np.maximum.reduce(a, axis=None), lambda a: np.add.accumulate(a, axis=1),
        lambda a: np.minimum.reduce(a, initial=3.0, where=a > 4), lambda a: np.bitwise_or.reduce(a > 4), np.degrees,
        lambda a: np.logical_and.reduce(a > 0, axis=1), lambda a: np.multiply.reduce(a, dtype="c16"),
        lambda a: np.add(a, a, where=a > 4, out=a * 0),
    ):  # fmt: skip
        expected, _ = outcome(f, (n,), {})
        check(kind, f(x), expected, "ufunc", any_zero=True)
    if not kind.on_device:  # whose library has none
        check(
            kind,
            np.subtract.reduce(x, axis=1, keepdims=True),
            np.subtract.reduce(n, axis=1, keepdims=True),
            "-",
        )
    check(kind, np.add.reduce(x, axis=(0, 1), keepdims=True), n.sum(keepdims=True), "sum", rtol=1e-13)
    if kind.writable:
        for change in (
            lambda a: np.add.at(a, [0, 0], 1.0), lambda a: np.maximum.at(a, ([0, 1], [1, 1]), 9.0),
            lambda a: np.multiply.at(a, (S(None), 1), 2.0),
        ):  # fmt: skip
            x, m = kind.make(n), n.copy()
            change(m), change(x)
            assert_same(x, m)


@kinds
def test_scipys_ufuncs(kind, many):
    special = pytest.importorskip("scipy.special")
    x = kind.make(M)
    check(kind, special.erf(x), special.erf(M), "erf", rtol=1e-14)
    check(kind, special.gammaln(abs(x) + 1), special.gammaln(abs(M) + 1), "gammaln", rtol=1e-13, atol=1e-14)
    if kind.on_device:
        with pytest.raises(TypeError, match=r"mb\.adapt"):
            special.expit(x)
        return
    check(kind, special.expit(x * 2) + 1, special.expit(M * 2) + 1, "expit")
    check(kind, special.sici(x), special.sici(M), "sici")
    if kind.lazy:
        with mb.count() as c:
            mb.materialize(special.expit(mb.HostArray(M) * 2) + 1)
        assert (c.launches, c.temporaries) == (1, 0)


def test_other_packages_ufuncs():
    numba = pytest.importorskip("numba")
    add_one = numba.vectorize(["f8(f8)"])(lambda a: a + 1)
    assert_same(add_one(mb.HostArray(M)), M + 1)
    assert_same(np.frompyfunc(lambda a: a, 1, 1)(mb.HostArray(M)), M)


@leaves
def test_numpy_functions_adapt_their_arguments(kind):
    x = kind.make(M)
    for f in (
        lambda a: np.sort(a, axis=0, kind="stable"), lambda a: np.argsort(a, stable=True), lambda a: np.stack([a, a], -1),
        lambda a: np.stack([a, a], dtype="f4", casting="same_kind"), lambda a: np.clip(a, min=1), lambda a: np.round(a, 1),
        lambda a: np.where(a > 1), lambda a: np.where(a > 1, a, [1.0, 2, 3, 4]), lambda a: np.diff(a, axis=0, prepend=a[:1]),
        lambda a: np.tile(a, (2, 1)), lambda a: np.repeat(a, 2, axis=0), lambda a: np.moveaxis(a, 0, 1), lambda a: np.roll(a, 1, axis=1),
        lambda a: np.expand_dims(a, 0), lambda a: np.flip(a, 1), lambda a: np.isin(a, a[0], assume_unique=False),
        lambda a: np.meshgrid(a[0], a[1], copy=False), lambda a: np.broadcast_to(a, (2, 3, 4), subok=True),
        lambda a: np.searchsorted(np.sort(a[0]), a[1], side="right"), lambda a: np.unique(a, return_counts=True), np.real, np.imag,
        lambda a: np.dot(a, a.T), lambda a: np.tensordot(a, a, axes=([0], [0])), lambda a: np.outer(a[0], a[1]),
        lambda a: np.linalg.norm(a), lambda a: np.fft.fft(a), lambda a: np.einsum("ij->j", a), lambda a: np.cross(a[:, :3], a[:, 1:]),
        lambda a: np.cumulative_sum(a, axis=0), lambda a: np.count_nonzero(a > 0, axis=1), lambda a: np.tril(a, -1),
        lambda a: np.argmax(a, 1, keepdims=True), lambda a: np.nonzero(a > 1), lambda a: np.squeeze(a[None], axis=0),
    ):  # fmt: skip
        expected, _ = outcome(f, (M,), {})
        check(kind, f(x), expected, f, rtol=1e-12, atol=1e-14)
    assert np.array2string(x, precision=1) == np.array2string(M, precision=1) and np.array_str(
        x
    ) == np.array_str(M)
    assert np.result_type(x, "f4") == "f8" and np.can_cast(x, "f4", "same_kind") and np.shape(x) == (3, 4)
    assert (
        np.shares_memory(x, x[1:])
        and not np.shares_memory(x[::2], x[1::2])
        and not np.may_share_memory(x, x + 1)
    )
    for bad, error in (
        (lambda: np.busday_count(x, x), TypeError), (lambda: np.sin(x, order="K", signature="d->d"), TypeError),
        (lambda: np.sort(x, order="a"), ValueError), (lambda: np.sort(x, kind="x"), ValueError), (lambda: np.sum(x, axis=7), IndexError),
        (lambda: np.sum(x, axis=0, out=kind.family(np.zeros(7))), ValueError), (lambda: np.partition(x, 1, order="a"), TypeError),
        (lambda: np.add(x, 1, where=x > 0), TypeError), (lambda: np.where(x, 1), ValueError),
    ):  # fmt: skip
        with pytest.raises(error):
            bad()


def test_somebody_elses_array_is_asked():
    class Other:
        def __array_function__(self, func, types, args, kwargs):
            return "other's"

    assert np.concatenate([mb.HostArray(M), Other()]) == "other's"


def test_aliases_are_the_same_objects():
    for name, ours in (
        ("absolute", "abs"), ("arcsin", "asin"), ("arctan2", "atan2"), ("power", "pow"), ("true_divide", "divide"),
        ("mod", "remainder"), ("invert", "bitwise_invert"), ("conjugate", "conj"), ("amax", "max"), ("degrees", "rad2deg"),
        ("left_shift", "bitwise_left_shift"), ("asanyarray", "asarray"),
    ):  # fmt: skip
        assert getattr(mb, name) is getattr(mb, ours)


@leaves
def test_vectorize(kind):
    f = lambda a, b=2.0: a + b if a > b else a
    x = kind.make(V)
    expected = np.vectorize(f)(V)
    assert_same(mb.vectorize(f)(x), expected)
    assert_same(mb.vectorize(f)(x, b=1.0), np.vectorize(f)(V, b=1.0))
    assert_same(mb.vectorize(f, otypes="f")(x, 0.0), np.vectorize(f, otypes="f")(V, 0.0))
    assert_same(mb.vectorize(f, excluded={1})(x, 0.0), np.vectorize(f)(V, 0.0))
    assert_same(mb.vectorize(otypes=[float])(f)(x), expected)
    with pytest.raises(NotImplementedError, match="apply_along_axis"):
        mb.vectorize(f, signature="(n)->()")


def test_more_elements_than_the_library_is_asked_for():
    """Large arrays take the kernels where small ones take the library."""
    n = _rng.random((90, 70))
    for kind in KINDS[:3]:
        with mb.settings.changed(small_size=0):
            for f in (
                lambda a: np.pad(a, ((1, 2), (3, 40)), "wrap"), lambda a: np.pad(a, 75, "reflect"), lambda a: np.concatenate([a, a * 2], 1),
                lambda a: np.pad(a, 3, constant_values=2.0), lambda a: np.delete(a, [1, 5, 6], 0), lambda a: np.insert(a, [3, 3], 7.0, 1),
            ):  # fmt: skip
                check(kind, f(kind.make(n)), f(n), f)


@pytest.mark.parametrize("name", ["histogram", "histogram_bin_edges", "histogram2d", "digitize"])
def test_bins_are_of_real_numbers(name):
    # NumPy compares complex numbers by both parts, and drops the imaginary one where it counts.
    z = mb.HostArray([1 + 1j, 2.0, 3.0])
    more = {"histogram2d": (z,), "digitize": ([0.0, 2.0],)}.get(name, ())
    with pytest.raises(
        TypeError, match=r"takes real numbers, and these are complex. Take mb.real\(x\) or mb.abs\(x\)"
    ):
        getattr(mb, name)(z, *more)


@pytest.mark.parametrize("family", [mb.HostArray, mb.RefArray, mb.CuArray])
def test_elements_as_they_lie_in_memory(family):
    """(`ravel("K")` of all orders of axes, turned and with steps; compiled, too.)"""
    for shape in ((2, 3, 2), (3, 4), (2, 1, 3), (4, 0, 2)):
        n = np.arange(float(math.prod(shape))).reshape(shape)
        x = family(n)
        for axes in itertools.permutations(range(len(shape))):
            for part in (lambda v: v, lambda v: v[::-1], lambda v: v[..., ::2]):

                def view(v, axes=axes, part=part):
                    return part(v.transpose(axes))

                for order in "CFAK":
                    expected = view(n).ravel(order)
                    assert_same(view(x).ravel(order), expected)
                    assert_same(view(x).flatten(order), expected)
                assert_same(mb.compile(lambda v, view=view: view(v).ravel("K"))(x), expected)
    b = np.broadcast_to(np.arange(3.0), (2, 3))
    assert_same(mb.broadcast_to(family(np.arange(3.0)), (2, 3)).T.ravel("K"), b.T.ravel("K"))


@pytest.mark.parametrize("place", [mb.HostArray, mb.RefArray, mb.DArray[mb.HostArray]])
def test_weights_of_bincount_may_be_a_list(place):
    assert mb.to_numpy(mb.bincount(place([0, 1, 1]), [1.0, 2, 3])).tolist() == [1, 5]
