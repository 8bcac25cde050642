"""Dual numbers through the whole namespace: every public function differentiates, is constant, or refuses.

`differentiable.py` has the calls. They are compared with central differences on every place, also of first
derivatives.
"""

import functools
import itertools
import math

import numpy as np
import pytest
from compare import contents
from differentiable import CALLS, OTHERS, A, P, S, T, V, W
from kinds import PLAIN

import mirabelle as mb
from mirabelle.arraytypes.duals.base import DualError
from mirabelle.arraytypes.elementwise import leaf_family

STEP = 1e-6
KINDS = pytest.mark.parametrize("kind", PLAIN, ids=repr)
assert not CALLS.keys() & OTHERS.keys()
ALL = CALLS | OTHERS
NAMED = pytest.mark.parametrize("name", ALL)


def flat(nest):
    """The arrays in a nest of results."""
    return [x for part in nest for x in flat(part)] if isinstance(nest, (tuple, list)) else [nest]


def numbers(nest):
    return [contents(x) for x in flat(nest)]


def directions(xs):
    return [np.random.default_rng(k).standard_normal(x.shape) for k, x in enumerate(xs)]


def slopes(f, xs, ds, h=STEP):
    """Central differences of a function of NumPy arrays that returns a list of them."""
    ahead, behind = (f(*[x + sign * h * d for x, d in zip(xs, ds, strict=True)]) for sign in (1, -1))
    return [(a - b) / (2 * h) if a.dtype.kind in "fc" else None for a, b in zip(ahead, behind, strict=True)]


def on_host(f):
    return lambda *xs: numbers(f(*map(mb.HostArray, xs)))


def along(f, xs, ds):
    """Value and derivative, of arrays of any place."""
    return mb.autodiff.jvp(f, tuple(xs), tuple(ds))


@functools.cache
def expected(name, i):
    """Values and differences, which are the same for all places."""
    f, *xs = ALL[name][i]
    return on_host(f)(*xs), slopes(on_host(f), xs, directions(xs))


def check_slopes(found, name, i, rtol=2e-6, atol=2e-8):
    for dx, difference in zip(found, expected(name, i)[1], strict=True):
        if difference is not None:
            np.testing.assert_allclose(dx, difference, rtol=rtol, atol=atol)


@KINDS
@NAMED
def test_value_and_derivative(name, kind):
    for i, (f, *xs) in enumerate(ALL[name]):
        made = [[kind.make(x) for x in arrays] for arrays in (xs, directions(xs))]
        found, tangents = map(flat, along(f, *made))
        for x, dx, value in zip(found, tangents, expected(name, i)[0], strict=True):
            np.testing.assert_allclose(contents(x), value, rtol=1e-13, atol=1e-14)
            if isinstance(x, mb.AbstractArray) and name != "adapt":
                assert leaf_family(type(x)) is leaf_family(type(dx)) is kind.family
        check_slopes(numbers(tangents), name, i)


@NAMED
def test_jacobian_from_unit_directions(name):
    # What starts from unit directions goes other ways than what starts from arrays.
    for f, *xs in ALL[name]:
        ds = directions(xs)
        found = flat(mb.autodiff.jacobian(lambda x, f=f: list(flat(f(*x))), tuple(map(mb.HostArray, xs))))
        tangents = flat(along(f, map(mb.HostArray, xs), map(mb.HostArray, ds))[1])
        for k, tangent in enumerate(tangents):
            parts = found[k * len(xs) : (k + 1) * len(xs)]
            total = sum(np.tensordot(contents(j), d, d.ndim) for j, d in zip(parts, ds, strict=True))
            np.testing.assert_allclose(total, contents(tangent), rtol=1e-9, atol=1e-12)


@NAMED
def test_second_derivative(name):
    f, *xs = ALL[name][0]
    ds = directions(xs)

    def slope(*xs):
        return flat(along(f, xs, map(mb.HostArray, ds))[1])

    second = flat(along(slope, map(mb.HostArray, xs), map(mb.HostArray, ds))[1])
    for d2, difference in zip(second, slopes(on_host(slope), xs, ds), strict=True):
        if difference is not None:
            np.testing.assert_allclose(contents(d2), difference, rtol=2e-6, atol=1e-6)


TWO = [name for name, found in ALL.items() if any(len(call) == 3 for call in found)]


@pytest.mark.parametrize("name", TWO)
def test_mixed_derivative(name):
    # By one operand inside, and by the other outside: constants of one are dual numbers of the other.
    f, x, y = next(call for call in ALL[name] if len(call) == 3)
    dx, dy = directions([x, y])
    for inner, outer, di, do, call in (
        (x, y, dx, dy, f),
        (y, x, dy, dx, lambda b, a: f(a, b)),
    ):

        def slope(o, call=call, inner=inner, di=di):
            return flat(along(lambda i: call(i, o), [mb.HostArray(inner)], [mb.HostArray(di)])[1])

        try:
            found = flat(along(slope, [mb.HostArray(outer)], [mb.HostArray(do)])[1])
        except DualError as e:  # arrays made like one operand take no numbers of the other's differentiation
            assert "cannot hold dual numbers" in str(e)
            continue
        for d2, difference in zip(found, slopes(on_host(slope), [outer], [do]), strict=True):
            if difference is not None:
                np.testing.assert_allclose(contents(d2), difference, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", CALLS)
def test_as_large_arrays(name):
    # (Small ones go to the host's library, large ones through kernels that write parts.)
    for i, (f, *xs) in enumerate(CALLS[name]):
        made = [[mb.HostArray(x) for x in arrays] for arrays in (xs, directions(xs))]
        with mb.settings.changed(small_size=0):
            check_slopes(numbers(along(f, *made)[1]), name, i)


@pytest.mark.parametrize("name", CALLS)
def test_dtypes(name):
    for f, *xs in CALLS[name]:
        xs = [mb.HostArray(x.astype(np.float32)) for x in xs]
        plain = flat(f(*xs))
        found, tangents = map(flat, along(f, xs, [mb.ones_like(x) for x in xs]))
        for x, value, dx in zip(plain, found, tangents, strict=True):
            if isinstance(x, mb.AbstractArray):
                assert x.dtype == value.dtype
                assert dx.dtype == x.dtype or x.dtype.kind not in "fc"


# Constants: results that change in steps, or tell what an array is. They are plain arrays, or no arrays at all

CONSTANTS = {
    "all": lambda v, w, a: mb.all(v),
    "any": lambda v, w, a: mb.any(a, axis=0),
    "allclose": lambda v, w, a: mb.allclose(v, w),
    "argmax": lambda v, w, a: mb.argmax(a, axis=1),
    "argmin": lambda v, w, a: mb.argmin(v),
    "argpartition": lambda v, w, a: mb.argpartition(v, 2),
    "argsort": lambda v, w, a: mb.argsort(a, axis=0, descending=True),
    "argwhere": lambda v, w, a: mb.argwhere(v > 0),
    "array_equal": lambda v, w, a: mb.array_equal(v, v),
    "array_equiv": lambda v, w, a: mb.array_equiv(v, w),
    "broadcast_shapes": lambda v, w, a: mb.broadcast_shapes(v.shape, w.shape),
    "can_cast": lambda v, w, a: np.can_cast(v, np.float32),
    "common_type": lambda v, w, a: mb.common_type(v, a),
    "count_nonzero": lambda v, w, a: mb.count_nonzero(a, axis=1),
    "diag_indices_from": lambda v, w, a: mb.diag_indices_from(a[:, :3]),
    "digitize": lambda v, w, a: mb.digitize(v, mb.sort(w)),
    "einsum_path": lambda v, w, a: mb.einsum_path("i,i", v, w)[0],
    "equal": lambda v, w, a: v == w,
    "finfo": lambda v, w, a: mb.finfo(v).bits,
    "flatnonzero": lambda v, w, a: mb.flatnonzero(v),
    "greater": lambda v, w, a: v > w,
    "greater_equal": lambda v, w, a: v >= 0,
    "isclose": lambda v, w, a: mb.isclose(v, w),
    "iscomplex": lambda v, w, a: mb.iscomplex(v),
    "iscomplexobj": lambda v, w, a: mb.iscomplexobj(v),
    "isdtype": lambda v, w, a: mb.isdtype(v.dtype, "real floating"),
    "isfinite": lambda v, w, a: mb.isfinite(v),
    "isfortran": lambda v, w, a: mb.isfortran(a),
    "isin": lambda v, w, a: mb.isin(v, v[:2]),
    "isinf": lambda v, w, a: mb.isinf(v),
    "isnan": lambda v, w, a: mb.isnan(v),
    "isneginf": lambda v, w, a: mb.isneginf(v),
    "isposinf": lambda v, w, a: mb.isposinf(v),
    "isreal": lambda v, w, a: mb.isreal(v),
    "isrealobj": lambda v, w, a: mb.isrealobj(v),
    "isscalar": lambda v, w, a: mb.isscalar(v),
    "issubdtype": lambda v, w, a: mb.issubdtype(v.dtype, mb.floating),
    "iterable": lambda v, w, a: mb.iterable(v),
    "less": lambda v, w, a: v < w,
    "less_equal": lambda v, w, a: v <= w,
    "lexsort": lambda v, w, a: mb.lexsort([v, w]),
    "logical_and": lambda v, w, a: mb.logical_and(v, w > 1),
    "logical_not": lambda v, w, a: mb.logical_not(v),
    "logical_or": lambda v, w, a: mb.logical_or(v, w),
    "logical_xor": lambda v, w, a: mb.logical_xor(v, w),
    "may_share_memory": lambda v, w, a: mb.may_share_memory(v, w),
    "min_scalar_type": lambda v, w, a: mb.min_scalar_type(v),
    "nanargmax": lambda v, w, a: mb.nanargmax(v),
    "nanargmin": lambda v, w, a: mb.nanargmin(a, axis=1),
    "ndim": lambda v, w, a: mb.ndim(a),
    "nonzero": lambda v, w, a: mb.nonzero(v),
    "not_equal": lambda v, w, a: v != w,
    "place": lambda v, w, a: repr(mb.place(v)),
    "result_type": lambda v, w, a: mb.result_type(v, np.float32),
    "searchsorted": lambda v, w, a: mb.searchsorted(mb.sort(v), w),
    "shape": lambda v, w, a: mb.shape(a),
    "shares_memory": lambda v, w, a: mb.shares_memory(v, w),
    "signbit": lambda v, w, a: mb.signbit(v),
    "size": lambda v, w, a: mb.size(a, 1),
    "spacing": lambda v, w, a: mb.spacing(v),
    "tril_indices_from": lambda v, w, a: mb.tril_indices_from(a),
    "triu_indices_from": lambda v, w, a: mb.triu_indices_from(a, 1),
}


@KINDS
@pytest.mark.parametrize("name", CONSTANTS)
def test_constant(name, kind):
    plain = [kind.make(x) for x in (V, W, A)]
    duals = [mb.types.Dual(x, mb.ones_like(x)[None]) for x in plain]
    expected, found = CONSTANTS[name](*plain), CONSTANTS[name](*duals)
    for x, y in zip(flat(expected), flat(found), strict=True):
        assert type(x) is type(y)
        assert not isinstance(y, mb.types.Dual)
        if isinstance(x, mb.AbstractArray):
            np.testing.assert_array_equal(contents(x), contents(y))
        else:
            assert x == y


# Refusals: what would lose a derivative, and says so

REFUSED = {
    "arange": lambda v: mb.arange(v[0]),
    "array2string": mb.array2string,
    "array_repr": mb.array_repr,
    "array_str": mb.array_str,
    "broadcasted": lambda v: mb.ext.broadcasted(mb.sin, v),
    "frombuffer": lambda v: mb.frombuffer(v),
    "kaiser": lambda v: mb.kaiser(5, v[0]),
    "lower": lambda v: mb.ext.lower(v, None),
    "packbits": lambda v: mb.packbits(v),
    "ravel_multi_index": lambda v: mb.ravel_multi_index((v, v), (3, 3)),
    "save": lambda v: mb.save("never.npy", v),
    "savetxt": lambda v: mb.savetxt("never.txt", v),
    "savez": lambda v: mb.savez("never.npz", v),
    "savez_compressed": lambda v: mb.savez_compressed("never.npz", v),
    "to_numpy": mb.to_numpy,
    "tree": mb.ext.tree,
    "unpackbits": mb.unpackbits,
    "unravel_index": lambda v: mb.unravel_index(v, (3, 3)),
}
REFUSED_OTHERS = {
    "float": lambda v: float(v[0]),
    "int": lambda v: int(v[0]),
    "complex": lambda v: complex(v[0]),
    "item": lambda v: v[0].item(),
    "item(i)": lambda v: v.item(2),
    "tolist": lambda v: v.tolist(),
    "math.sin": lambda v: math.sin(v[0]),
    "round": lambda v: round(v[0]),
    "math.floor": lambda v: math.floor(v[0]),
    "format": lambda v: f"{v[0]:.3f}",
    "np.asarray": np.asarray,
    "np.array": np.array,
    "memoryview": memoryview,
    "out= a plain array": lambda v: np.sin(v, out=mb.zeros(5, device=v.device)),
    "out= NumPy's": lambda v: np.sin(v, out=np.zeros(5)),
    "a plain array's elements": lambda v: mb.zeros(5, device=v.device).__setitem__(slice(0, 5), v),
    "a plain array, masked": lambda v: mb.zeros(5, device=v.device).__setitem__(v > 0, v[v > 0]),
    "add_at a plain array": lambda v: mb.add_at(
        mb.zeros(5, device=v.device), mb.asarray([0], device=v.device), v[:1]
    ),
    "an index": lambda v: v[v],
    "weighted quantile": lambda v: mb.quantile(v, 0.5, method="inverted_cdf", weights=mb.ones_like(v)),
    "np.multiply.at": lambda v: np.multiply.at(v, [0], 2.0),
    "padded by a function": lambda v: mb.pad(v, 1, mode=lambda row, width, axis, options: None),
    "reduced by a function": lambda v: mb.reduce(lambda a, b: a + b, v, init=0.0),
    "bytes": lambda v: v.view(mb.int64) + 1,
    "gamma()": lambda v: mb.random.default_rng(0).gamma(mb.adapt(mb.HostArray, mb.abs(v))),
}


@KINDS
@pytest.mark.parametrize("name", [*REFUSED, *REFUSED_OTHERS])
def test_refusal(name, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = kind.make(V)
    x = mb.types.Dual(x, mb.ones_like(x)[None])
    with mb.allow_scalar(), pytest.raises((DualError, BufferError)) as e:
        (REFUSED | REFUSED_OTHERS)[name](x)
    text = str(e.value)
    assert "derivative" in text or "dual number" in text
    assert text.endswith((".", "`.", "`"))
    assert not list(tmp_path.iterdir())


# Completeness: a new public function belongs to one of these sets

INTEGERS_ONLY = {
    "bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "gcd", "invert", "lcm", "left_shift", "right_shift",
}  # fmt: skip
NOT_OF_ARRAYS = {
    "errstate",
    "False_", "True_", "get_printoptions", "index_exp", "mask_indices", "printoptions", "s_",
    "set_printoptions",
    "__array_api_version__", "__array_namespace_info__", "__version__", "allow_scalar", "allow_transfer",
    "autodiff", "band", "bartlett", "compiling", "distributed", "ext", "meshdata", "types",
    "batch", "blackman", "capture", "communicator", "compile", "connect",
    "count", "default_array", "devices", "diag_indices", "doctor", "e", "eager", "empty", "euler_gamma",
    "exchange", "explain",
    "eye", "fft", "fft.fftfreq", "fft.rfftfreq", "free_memory", "from_dlpack", "fromfile", "fromfunction",
    "fromiter", "fromstring", "generic", "genfromtxt", "hamming", "hanning", "identity", "iinfo", "indices",
    "inf", "ix_", "jit", "kernel", "layout_of", "lib", "linalg", "load", "load_program",
    "loadtxt", "memory", "methods",
    "mgrid", "mpi_communicator", "namespace", "nan", "newaxis", "ogrid", "ones", "override", "parent", "pi",
    "promote_types", "random", "redistribute", "set_memory_limit", "settings", "show", "stream",
    "synchronize", "together", "tri", "tril_indices", "triu_indices", "use_communicator", "use_layout",
    "which", "world", "zeros",
}  # fmt: skip


def test_every_public_name_is_in_one_set():
    names = [n for n in mb.__all__ if not isinstance(getattr(mb, n), type) or n == "vectorize"]
    names += [f"fft.{n}" for n in mb.fft.__all__]
    names += [n for n in mb._MOVED["distributed"].split() + mb._MOVED["ext"].split() if n[0].islower()]
    sets = [set(CALLS), set(CONSTANTS), set(REFUSED), INTEGERS_ONLY, NOT_OF_ARRAYS]
    unknown = set(names) ^ set().union(*sets)
    assert not unknown, (
        "A public function says in tests/differentiable.py how it differentiates, or in "
        f"test_autodiff_functions.py that it does not: {sorted(unknown)}."
    )
    assert sum(map(len, sets)) == len(names), "A name is in two sets."


@pytest.mark.parametrize("name", sorted(INTEGERS_ONLY))
def test_integers_only(name):
    x = mb.types.Dual(mb.HostArray(V), mb.ones((1, 5)))
    f = getattr(mb, name)
    with pytest.raises(TypeError, match=r"not defined for .*float64"):
        f(*[x] * f.core.arity)


# Programs of others, that know the array API and nothing else


def cross_entropy(logits, labels):
    xp = logits.__array_namespace__()
    shifted = logits - xp.max(logits, axis=-1, keepdims=True)
    normal = xp.log(xp.sum(xp.exp(shifted), axis=-1, keepdims=True))
    picked = xp.take_along_axis(shifted - normal, xp.expand_dims(labels, axis=-1), axis=-1)
    return -xp.mean(picked)


def log_likelihood(x, mean, factor):
    """Of independent draws from a normal distribution with the covariance factor @ factor.T."""
    xp = x.__array_namespace__()
    lower = xp.tril(factor)
    whitened = xp.linalg.solve(lower, xp.matrix_transpose(x - mean))
    spread = xp.sum(xp.log(xp.abs(xp.linalg.diagonal(lower))))
    n, k = x.shape
    return -0.5 * xp.sum(whitened * whitened) - n * (spread + 0.5 * k * xp.log(xp.asarray(2 * xp.pi)))


def pendulum(state):
    xp = state.__array_namespace__()
    angle, speed = xp.unstack(state)
    return xp.stack([speed, -xp.sin(angle) - 0.1 * speed])


def runge_kutta(rate, state, step):
    k1 = rate(state)
    k2 = rate(state + 0.5 * step * k1)
    k3 = rate(state + 0.5 * step * k2)
    k4 = rate(state + step * k3)
    return state + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def integrated(state):
    for _ in range(4):
        state = runge_kutta(pendulum, state, 0.1)
    return state


LABELS = np.array([2, 0, 3])
FACTOR = np.array([[1.3, 0.0, 0.0], [0.2, 0.9, 0.0], [-0.4, 0.1, 1.1]])


@KINDS
def test_cross_entropy_of_others(kind):
    labels = kind.make(LABELS)
    slope = mb.autodiff.gradient(lambda x: cross_entropy(x, labels), kind.make(A))
    share = np.exp(A) / np.exp(A).sum(axis=1, keepdims=True)
    share[np.arange(3), LABELS] -= 1
    np.testing.assert_allclose(contents(slope), share / 3, rtol=1e-12)
    assert type(slope) is kind.family[np.float64, 2]


@KINDS
def test_cross_entropy_hessian_of_others(kind):
    labels = kind.make(LABELS)
    curvature = contents(mb.autodiff.hessian(lambda x: cross_entropy(x, labels), kind.make(A)))
    share = np.exp(A) / np.exp(A).sum(axis=1, keepdims=True)
    expected = np.zeros((3, 4, 3, 4))
    for k in range(3):
        expected[k, :, k] = (np.diag(share[k]) - np.outer(share[k], share[k])) / 3
    np.testing.assert_allclose(curvature, expected, rtol=1e-10, atol=1e-14)


@KINDS
def test_log_likelihood_of_others(kind):
    draws = kind.make(P.T.copy())
    by_mean, by_factor = mb.autodiff.gradient(
        lambda p: log_likelihood(draws, *p), (kind.make(T), kind.make(FACTOR))
    )
    precision = np.linalg.inv(FACTOR @ FACTOR.T)
    apart = P.T - T
    np.testing.assert_allclose(contents(by_mean), apart.sum(axis=0) @ precision, rtol=1e-10)
    inverse = np.linalg.inv(FACTOR)
    slope = precision @ apart.T @ apart @ inverse.T - 4 * np.diag(np.diag(inverse))
    np.testing.assert_allclose(contents(by_factor), np.tril(slope), rtol=1e-9, atol=1e-12)
    assert type(by_factor) is kind.family[np.float64, 2]


@KINDS
def test_ode_of_others(kind):
    start = np.array([0.7, -0.2])
    sensitivity = mb.autodiff.jacobian(integrated, kind.make(start))
    columns = [slopes(on_host(integrated), [start], [unit], 1e-5)[0] for unit in np.eye(2)]
    np.testing.assert_allclose(contents(sensitivity), np.stack(columns, axis=-1), rtol=1e-8)
    assert sensitivity.place == kind.place


@KINDS
def test_array_api_compat(kind):
    compat = pytest.importorskip("array_api_compat")
    x = mb.types.Dual(kind.make(A), kind.make(A[None]))
    xp = compat.array_namespace(x)
    assert xp is kind.make(A).__array_namespace__()
    assert compat.is_array_api_obj(x)
    assert compat.device(x) == kind.place
    assert compat.size(x) == 12
    y = xp.sum(xp.exp(compat.to_device(x, kind.place)))
    np.testing.assert_allclose(contents(y.partials), [np.sum(np.exp(A) * A)], rtol=1e-12)


EXTRA = {
    "at.set": lambda xpx, x: xpx.at(x, (0, slice(None))).set(x[1] * x[1]),
    "at.add": lambda xpx, x: xpx.at(x)[1:, 2].add(x[:2, 0]),
    "atleast_nd": lambda xpx, x: xpx.atleast_nd(x, ndim=4),
    "cov": lambda xpx, x: xpx.cov(x),
    "kron": lambda xpx, x: xpx.kron(x, x),
    "nan_to_num": lambda xpx, x: xpx.nan_to_num(x),
    "partition": lambda xpx, x: xpx.partition(x, 1, axis=0),
    "setdiff1d": lambda xpx, x: xpx.setdiff1d(x, x[:1]),
    "sinc": lambda xpx, x: xpx.sinc(x),
    "union1d": lambda xpx, x: xpx.union1d(x, x[:1] * 2),
}


@KINDS
@pytest.mark.parametrize("name", EXTRA)
def test_array_api_extra(name, kind):
    xpx = pytest.importorskip("array_api_extra")
    d = directions([A])[0]
    _, tangent = along(lambda x: EXTRA[name](xpx, x), [kind.make(A)], [kind.make(d)])
    (difference,) = slopes(on_host(lambda x: EXTRA[name](xpx, x)), [A], [d])
    np.testing.assert_allclose(contents(tangent), difference, rtol=2e-6, atol=2e-8)
    assert tangent.place == kind.place


# What is easily got wrong


@KINDS
def test_lists_of_dual_numbers(kind):
    def f(x):
        made = mb.asarray([x[0] ** 2, x[1], 1.0])
        assert isinstance(made, mb.types.Dual)
        assert made.place == kind.place
        return made

    expected = [[2 * V[0], 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0]]
    np.testing.assert_allclose(contents(mb.autodiff.jacobian(f, kind.make(V))), expected)
    x = kind.make(V)
    found = mb.autodiff.jacobian(lambda x: mb.array([[x[0], 2], [x[1] * x[0], x[2]]], dtype=mb.float32), x)
    assert found.shape == (2, 2, 5)
    assert found.dtype == np.float32


def test_lists_of_single_numbers():
    np.testing.assert_allclose(
        contents(mb.autodiff.derivative(lambda t: mb.asarray([t, t * t, 3]), 2.0)), [1, 4, 0]
    )
    np.testing.assert_allclose(
        contents(mb.autodiff.derivative(lambda t: mb.stack([t, mb.sin(t)]), 0.0)), [1, 1]
    )
    np.testing.assert_allclose(contents(mb.autodiff.derivative(lambda t: mb.full(3, t * t), 2.0)), [4, 4, 4])
    slope = mb.autodiff.derivative(lambda t: mb.linspace(0.0, t, 3), 2.0)
    np.testing.assert_allclose(contents(slope), [0, 0.5, 1])


@KINDS
def test_ones_like_takes_writes(kind):
    def f(x):
        out = mb.ones_like(x)
        for k in range(1, 5):
            out[k : k + 1] = out[k - 1 : k] * x[k : k + 1]
        return out[4]

    slope = mb.autodiff.gradient(f, kind.make(W))
    np.testing.assert_allclose(contents(slope), [0, *(np.prod(W[1:]) / W[1:])], rtol=1e-12)


@KINDS
def test_order_of_equal_and_missing_numbers(kind):
    x = kind.make(np.array([2.0, np.nan, 2.0, 1.0]))
    x = mb.types.Dual(x, kind.make(np.array([[1.0, 2.0, 3.0, 4.0]])))
    y = mb.sort(x)
    np.testing.assert_array_equal(contents(y.value), [1, 2, 2, np.nan])
    np.testing.assert_array_equal(contents(y.partials), [[4, 1, 3, 2]])
    np.testing.assert_array_equal(contents(mb.nanmedian(x).partials), [1])
    np.testing.assert_array_equal(contents(mb.unique(x).partials), [[4, 1, 2]])
    np.testing.assert_array_equal(
        contents(mb.fmax(x, kind.make(np.array([np.nan, 0, 5, 1]))).partials), [[1, 0, 0, 2]]
    )


@KINDS
def test_what_an_array_is(kind):
    x = mb.types.Dual(kind.make(A), kind.make(A[None]))
    assert len(x) == 3
    assert x.size == 12
    assert x.nbytes == 96
    assert float(A[0, 0]) in x
    assert 77.0 not in x
    assert x.flags.c_contiguous
    assert not x.T.flags.c_contiguous
    assert x.__array_namespace__() is kind.make(A).__array_namespace__()
    assert x.device == kind.place
    assert len(list(x)) == 3
    assert bool(mb.sum(x * 0) == 0)
    with pytest.raises(TypeError, match="unsized"):
        len(x[0, 0])
    with pytest.raises(ValueError, match="ambiguous"):
        bool(x)


@KINDS
def test_memory_order(kind):
    x = mb.types.Dual(kind.make(A), kind.make(A[None]))
    assert mb.ascontiguousarray(x) is x
    turned = mb.asfortranarray(x)
    # (places of a distributed array are numbered in C's order)
    assert turned.flags.f_contiguous or kind.distributed
    turned[:1, :1] = 5.0
    np.testing.assert_array_equal(contents(x.value), A)
    np.testing.assert_array_equal(contents(turned.partials)[0, 0, :2], [0, A[0, 1]])
    assert mb.require(x.T, requirements="C").flags.c_contiguous
    assert np.copy(x, order="F").flags.f_contiguous


def test_views_write_through():
    x = mb.types.Dual(mb.HostArray(S), mb.HostArray(S[None]))
    mb.diagonal(x)[:] = mb.diagonal(x) ** 2
    expected = S.copy()
    np.fill_diagonal(expected, 2 * np.diag(S) ** 2)
    np.testing.assert_allclose(contents(x.partials)[0], expected)
    z = x + 1j * x
    z.imag = 0.0
    np.testing.assert_allclose(contents(z.partials)[0], expected + 0j)
    with pytest.raises(ValueError, match="read-only"):
        mb.sliding_window_view(x[0], 2)[0] = 1.0


def test_one_call_of_the_library_for_all_directions():
    x = mb.HostArray(np.linspace(0.0, 1.0, 64) ** 2)
    for f in (mb.fft.fft, mb.sort, lambda x: mb.convolve(x, x[:5]), mb.median, mb.cumulative_sum):
        with mb.count() as few:
            mb.autodiff.jvp(f, (x,), (x,))
        with mb.count() as many:
            mb.autodiff.jacobian(f, x)
        assert many.library_calls <= few.library_calls + 4


def test_nothing_unasked():
    # Rules read no element: they run where scalar access is refused, and count no reads.
    x = mb.RefArray(A)
    for name, found in itertools.islice(CALLS.items(), 0, None, 7):
        f, *xs = found[0]
        with mb.count() as c:
            plain = f(*map(mb.RefArray, xs))
        with mb.count() as d:
            along(f, map(mb.RefArray, xs), map(mb.RefArray, xs))
        assert d.scalar_reads <= max(c.scalar_reads, 1), name
        del plain
    del x


def test_views_follow_their_array():
    def f(t):
        x = t * mb.ones(2)
        before = x[0:1]
        x[...] = 5 * t
        return before + 0 * t, before

    first, second = mb.autodiff.derivative(f, 2.0)
    np.testing.assert_array_equal(contents(first), [5])
    np.testing.assert_array_equal(contents(second), [5])


def test_written_as_a_whole_without_memory_for_partials():
    # What an array is made for takes over how its new contents change; nothing of N × N is formed.
    x = mb.HostArray(np.linspace(1.0, 2.0, 300))

    def f(x):
        out = mb.zeros_like(x)
        out[...] = x * x
        out *= x
        out += 1.0
        return mb.sum(out)

    with mb.count() as c:
        slope = mb.autodiff.gradient(f, x)
        np.testing.assert_allclose(contents(slope), 3 * np.linspace(1.0, 2.0, 300) ** 2, rtol=1e-13)
    assert c.bytes_written < 50 * x.nbytes


@pytest.mark.parametrize(
    "f",
    [
        lambda t: (
            mb.angle(mb.exp(1j * t)) + mb.abs(t + 2j) + mb.real((t + 1j) ** 2) + mb.imag(mb.conj(t + 1j) * t)
        ),
        lambda t: mb.interp(t, [0.0, 1.0, 2.0], [1.0, 3.0, 0.0]) * mb.polyval(mb.HostArray([1.0, 2.0]), t),
        lambda t: mb.sinc(t) + mb.i0(t) + mb.clip(t, 0.0, 5.0) + mb.float_power(2, t) + mb.around(t, 1) * t,
        lambda t: mb.sum(mb.tile(t, 3)) * mb.repeat(t, 2)[0] * mb.reshape(t, (1, 1))[0, 0] + mb.cumsum(t)[0],
        lambda t: (
            mb.sum(mb.linspace(t, 2 * t, 5)) + mb.sum(mb.zeros_like(t) + t) * mb.ones_like(t) * mb.prod(t)
        ),
        lambda t: (
            mb.einsum(",i->", t, mb.HostArray([1.0, 2.0]))
            + np.float64(2) * t
            + np.sin(t) ** 2
            + divmod(t, 1)[1]
        ),
    ],
    ids=["complex", "interp", "elementary", "repeated", "made", "mixed"],
)
def test_of_one_number(f):
    slope = mb.autodiff.derivative(f, 1.3)
    ahead, behind = (float(f(1.3 + h)) for h in (STEP, -STEP))
    np.testing.assert_allclose(float(slope), (ahead - behind) / (2 * STEP), rtol=1e-6)


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, x: rng.normal(x, 2 * x),
        lambda rng, x: rng.uniform(-x, x * x),
        lambda rng, x: rng.exponential(x),
        lambda rng, x: rng.lognormal(x, 0.5),
        lambda rng, x: rng.permutation(x),
        lambda rng, x: rng.choice(x, 3),
        lambda rng, x: rng.multivariate_normal(x, np.eye(5)),
    ],
    ids=["normal", "uniform", "exponential", "lognormal", "permutation", "choice", "multivariate_normal"],
)
def test_draws_follow_their_parameters(draw):
    def f(x):
        return draw(mb.random.default_rng(7), x)

    (d,) = directions([W])
    _, tangent = along(f, [mb.HostArray(W)], [mb.HostArray(d)])
    np.testing.assert_allclose(contents(tangent), slopes(on_host(f), [W], [d])[0], rtol=1e-6, atol=1e-8)


def test_a_refusal_names_what_was_called():
    x = mb.types.Dual(mb.HostArray(W), mb.ones((1, 5)))
    for name, call in (
        ("mb.packbits", lambda: mb.packbits(x)),
        ("gamma", lambda: mb.random.default_rng(0).gamma(x)),
        ("ravel_multi_index", lambda: mb.ravel_multi_index((x, x), (3, 3))),
    ):
        with pytest.raises(DualError, match=f"^(mb.)?{name}"):
            call()
