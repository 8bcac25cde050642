"""The public functions of arrays, each with calls to differentiate: for `test_autodiff_functions.py`.

A call is a function of arrays and the arrays to call it with. Values lie apart from each other and from
where a function has a corner, so that finite differences mean something.
"""

import functools

import numpy as np

import mirabelle as mb


def values(*shape, seed=0, low=-2.0, high=2.0):
    """Numbers that are all different, in no order."""
    n = int(np.prod(shape))
    order = np.random.default_rng(seed + 17 * n).permutation(n)
    return (low + (high - low) * (order + 0.37) / max(n, 1)).reshape(shape)


V, W = values(5), values(5, seed=1, low=0.5, high=2.5)
A, P = values(3, 4), values(3, 4, seed=2, low=0.4, high=2.9)
S = values(4, 4, seed=3)
B = values(2, 3, 4, seed=4)
T = values(3)
N = np.array([0.3, np.nan, -1.2, 2.0, 0.9])
Z = np.array([0.0, 0.0, 1.5, -2.0, 0.0])
ONE = np.array([1.25])
I5 = [3, 1, 4, 0, 2]
# Numbers where all elementary functions are smooth: inside (0, 1).
U = values(5, seed=5, low=0.1, high=0.9)

# Calls by the name of the function: (f, arrays...).
CALLS: dict[str, list] = {}


def calls(name, *found):
    CALLS.setdefault(name, []).extend(found)


def at(array, index):
    return lambda *xs: array(*xs)[index]


def written(f, like=mb.zeros_like):
    """A call that writes into an array made like its first one, and what was written."""

    def made(x, *rest):
        out = like(x)
        f(out, x, *rest)
        return out

    return made


def part(f, *keep):
    """Some of the results of a function that returns several."""
    return lambda *xs: tuple(f(*xs)[i] for i in keep)


def with_out(f):
    """A call whose result goes to `out=`, an array like the first one."""

    def made(x, *rest):
        out = mb.zeros_like(x)
        assert f(x, *rest, out) is out
        return out

    return made


# Elementwise

UNARY = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "conj", "copy", "cos", "cosh",
    "cospi", "deg2rad", "erf", "erfc", "exp", "exp2", "expm1", "gamma", "imag", "lgamma", "log",
    "log10", "log1p", "log2", "negative", "positive", "rad2deg", "real", "reciprocal", "sin", "sinh",
    "sinpi", "sqrt", "square", "tan", "tanh", "absolute", "arccos", "arccosh", "arcsin", "arcsinh",
    "arctan", "arctanh", "conjugate", "degrees", "fabs", "i0", "nan_to_num", "radians", "real_if_close",
    "sinc", "angle",
)  # fmt: skip
for name in UNARY:
    calls(name, (getattr(mb, name), U + 1 if name.endswith("cosh") and "a" in name else U))
BINARY = (
    "add", "atan2", "divide", "fmax", "fmin", "fmod", "hypot", "logaddexp", "logaddexp2", "maximum",
    "minimum", "multiply", "pow", "remainder", "subtract", "arctan2", "mod", "power", "true_divide",
    "float_power", "copysign", "nextafter",
)  # fmt: skip
for name in BINARY:
    calls(name, (getattr(mb, name), W, U), (getattr(mb, name), P, values(4, low=0.3, high=1.1)))
calls("clip", (lambda x: mb.clip(x, -0.9, 1.1), V), (mb.clip, V, V - 1, np.full(5, 0.55)))
calls("fma", (mb.fma, V, W, U))
calls("where", (lambda x, y: mb.where(x > 0, x * y, mb.sin(y)), V, W), (lambda x: mb.where(x > 0, x, 0), V))
calls("divmod", (mb.divmod, V, W))
calls("modf", (mb.modf, W))
calls("frexp", (mb.frexp, W))
calls("ldexp", (lambda x: mb.ldexp(x, 3), V))
calls("around", (lambda x: mb.around(x, 1) * x, V))
calls("round", (lambda x: mb.round(x) * x, V))
calls("fix", (lambda x: mb.fix(x) * x, V))
for name in ["rint", "ceil", "floor", "trunc", "sign", "heaviside", "floor_divide"]:
    f = getattr(mb, name)
    two = name in ("heaviside", "floor_divide")
    calls(
        name,
        (functools.partial(lambda f, x, y: f(x, y) * x, f), V, W)
        if two
        else (functools.partial(lambda f, x: f(x) * x, f), V),
    )
calls("broadcast", (lambda x: mb.broadcast(lambda t: t * t, x), V))
calls("map", (lambda x: mb.map(lambda t: t * t, x), V))
calls("vectorize", (lambda x: mb.vectorize(lambda t: t * t)(x), V))
calls("cond", (lambda x: mb.cond(mb.sum(x) > 0, mb.sin, mb.cos, x), V))
calls("fori_loop", (lambda x: mb.fori_loop(0, 3, lambda i, s: s * mb.sin(x) + i, x), V))
calls("while_loop", (lambda x: mb.while_loop(lambda s: mb.sum(s * s) > 1, lambda s: s * 0.5, x), V))
calls("outline", (lambda x: mb.ext.outline(lambda t: t * t)(x), V))

# Moved

calls("reshape", (lambda x: mb.reshape(x, (4, 3)), A), (lambda x: np.reshape(x, (2, -1), order="F"), A))
calls("ravel", (mb.ravel, A), (lambda x: mb.ravel(x, "F"), A), (lambda x: mb.ravel(x, "K"), A))
calls("transpose", (mb.transpose, A), (lambda x: mb.transpose(x, (2, 0, 1)), B))
calls("permute_dims", (lambda x: mb.permute_dims(x, (2, 0, 1)), B))
calls("matrix_transpose", (mb.matrix_transpose, B))
calls("moveaxis", (lambda x: mb.moveaxis(x, 0, -1), B))
calls("rollaxis", (lambda x: mb.rollaxis(x, 2), B))
calls("swapaxes", (lambda x: mb.swapaxes(x, 0, 2), B))
calls("squeeze", (lambda x: mb.squeeze(x[None, :, None]), V))
calls("expand_dims", (lambda x: mb.expand_dims(x, (0, 2)), V))
calls("atleast_1d", (mb.atleast_1d, V))
calls("atleast_2d", (mb.atleast_2d, V))
calls("atleast_3d", (mb.atleast_3d, A))
calls("broadcast_to", (lambda x: mb.broadcast_to(x, (2, 5)), V))
calls("broadcast_arrays", (mb.broadcast_arrays, A, T[:, None]))
calls("meshgrid", (mb.meshgrid, V, T), (lambda x, y: mb.meshgrid(x, y, sparse=True, indexing="ij"), V, T))
calls("flip", (mb.flip, A), (lambda x: mb.flip(x, axis=1), A))
calls("fliplr", (mb.fliplr, A))
calls("flipud", (mb.flipud, A))
calls("rot90", (mb.rot90, A), (lambda x: mb.rot90(x, 3, axes=(1, 2)), B))
calls("roll", (lambda x: mb.roll(x, 2), A), (lambda x: mb.roll(x, (1, -2), axis=(0, 1)), A))
calls(
    "tile",
    (lambda x: mb.tile(x, (2, 3)), V),
    (lambda x: mb.tile(x, 2), A),
    (lambda x: mb.tile(x, (2, 1, 2)), A),
)
calls(
    "repeat",
    (lambda x: mb.repeat(x, 2), A),
    (lambda x: mb.repeat(x, 2, axis=1), A),
    (lambda x: mb.repeat(x, [1, 0, 3], axis=0), A),
)
MODES = [
    "constant",
    "edge",
    "linear_ramp",
    "maximum",
    "mean",
    "median",
    "minimum",
    "reflect",
    "symmetric",
    "wrap",
]
for mode in MODES:
    calls("pad", (functools.partial(mb.pad, pad_width=((1, 2), (2, 1)), mode=mode), A))
calls(
    "pad",
    (lambda x: mb.pad(x, 3, mode="reflect", reflect_type="odd"), V),
    (lambda x: mb.pad(x, 2, constant_values=7.0), V),
)
calls("diag", (mb.diag, S), (lambda x: mb.diag(x, 1), V))
calls("diagflat", (lambda x: mb.diagflat(x, -1), V))
calls("diagonal", (lambda x: mb.diagonal(x, 1), A), (lambda x: mb.diagonal(x, 0, 1, 2), B))
calls("tril", (mb.tril, A), (lambda x: mb.tril(x, k=-1), B))
calls("triu", (mb.triu, A))
calls("trace", (mb.trace, S), (lambda x: mb.trace(x, 1, 1, 2), B))
calls("trim_zeros", (mb.trim_zeros, np.array([1.0, 0.0, 2.0])))
calls("vander", (mb.vander, V), (lambda x: mb.vander(x, 3, increasing=True), T))
calls("sliding_window_view", (lambda x: mb.sliding_window_view(x, 3), V))

# Joined and taken apart

for name in ["concat", "concatenate", "vstack", "hstack", "dstack"]:
    calls(name, (functools.partial(lambda f, x, y: f([x, y * y]), getattr(mb, name)), V, W))
    calls(name, (functools.partial(lambda f, x, y: f([y, x, y]), getattr(mb, name)), A, P))
calls(
    "concat", (lambda x, y: mb.concat([x, y], axis=1), A, P), (lambda x, y: mb.concat([x, y], axis=None), A, V)
)
calls("stack", (lambda x, y: mb.stack([x, y * x], axis=1), V, W))
calls("column_stack", (lambda x, y: mb.column_stack([x, y, x]), V, W))
calls("r_", (lambda x, y: mb.r_[x, 0.5, y * x], V, W))
calls("c_", (lambda x, y: mb.c_[x, y * x], V, W))
calls("block", (lambda x, y: mb.block([[x, y], [y, x]]), A, P))
calls("append", (mb.append, A, V), (lambda x, y: mb.append(x, y, axis=0), A, P))
calls(
    "insert",
    (lambda x, y: mb.insert(x, 1, y, axis=1), A, T),
    (lambda x, y: mb.insert(x, [0, 2], y[:2]), V, W),
    (lambda x: mb.insert(x, 2, 0.0), V),
)
calls("delete", (lambda x: mb.delete(x, 1, axis=1), A), (lambda x: mb.delete(x, [0, 2]), V))
calls("resize", (lambda x: mb.resize(x, (2, 4)), V))
for name, x in {"split": np.arange(6.0), "array_split": V, "hsplit": S, "vsplit": S, "dsplit": B}.items():
    calls(name, (functools.partial(lambda f, x: f(x, 2), getattr(mb, name)), x))
calls("unstack", (lambda x: mb.unstack(x, axis=1), A))

# Picked, chosen and written

calls(
    "take",
    (lambda x: mb.take(x, mb.argsort(x)[:3]), V),
    (lambda x: mb.take(x, [1, 0, 1], axis=1), A),
    (lambda x: mb.take(x, [5, -7], mode="wrap"), V),
)
calls("take_along_axis", (lambda x: mb.take_along_axis(x, mb.argsort(x, axis=0), axis=0), A))
calls("compress", (lambda x: mb.compress([True, False, True], x, axis=0), A))
calls("extract", (lambda x: mb.extract(x > 0, x), V))
calls("choose", (lambda x, y: mb.choose(mb.asarray([0, 1, 1, 0, 1], device=x.device), [x, y]), V, W))
calls("select", (lambda x, y: mb.select([x > 1, x < 0], [x * y, y], x), V, W))
calls("piecewise", (lambda x: mb.piecewise(x, [x < 0], [lambda v: v * v, lambda v: mb.sin(v)]), V))
calls("put", (written(lambda out, x, y: mb.put(out, [0, 3], y)), V, W))
calls("putmask", (written(lambda out, x, y: mb.putmask(out, x > 0, y)), V, W))
calls(
    "put_along_axis",
    (written(lambda out, x, y: mb.put_along_axis(out, mb.argsort(x, axis=1)[:, :1], y[:, None], axis=1)), A, T),
)
calls(
    "add_at", (written(lambda out, x, y: mb.add_at(out, mb.asarray([0, 3, 0], device=x.device), y[:3])), V, W)
)
calls("fill_diagonal", (written(lambda out, x, y: mb.fill_diagonal(out, y), mb.copy), S, V))
calls("copyto", (written(lambda out, x: mb.copyto(out, x * x)), V))
calls("assign", (written(lambda out, x: mb.ext.assign(out, x * x)), V))

# In order

calls(
    "sort",
    (mb.sort, V),
    (lambda x: mb.sort(x, axis=0), A),
    (lambda x: mb.sort(x, descending=True), A),
    (lambda x: mb.sort(x, axis=None), A),
)
calls("partition", (lambda x: mb.partition(x, 2), V), (lambda x: mb.partition(x, 1, axis=0), A))
calls("unique", (mb.unique, V), (lambda x: mb.unique(x, return_inverse=True, return_counts=True), A))
calls("unique_all", (mb.unique_all, V))
calls("unique_counts", (mb.unique_counts, V))
calls("unique_inverse", (mb.unique_inverse, A))
calls("unique_values", (mb.unique_values, A))
calls("union1d", (mb.union1d, V, W))
calls("intersect1d", (lambda x: mb.intersect1d(x, x[1:]), V))
calls("setdiff1d", (lambda x: mb.setdiff1d(x, x[1:3]), V))
calls("setxor1d", (lambda x, y: mb.setxor1d(x, mb.concat([x[:2], y])), V, W))

# Reductions

for name in ["sum", "prod", "mean", "var", "std", "max", "min", "amax", "amin", "ptp", "median", "average"]:
    f = getattr(mb, name)
    calls(name, (f, A))
    calls(name, (functools.partial(lambda f, x: f(x, axis=1), f), A))
calls("norm", (mb.norm, A), (lambda x: mb.norm(x, 1), V))
for name in ["sum", "prod", "max", "min", "ptp", "median"]:
    calls(name, (functools.partial(lambda f, x: f(x, axis=0, keepdims=True), getattr(mb, name)), B))
PASSING_OVER_NAN = (
    "nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "nanmedian", "nancumsum",
    "nancumprod",
)  # fmt: skip
for name in PASSING_OVER_NAN:
    calls(name, (getattr(mb, name), N))
    calls(name, (functools.partial(lambda f, x: f(x, axis=0), getattr(mb, name)), A))
for name in ["quantile", "nanquantile"]:
    f = getattr(mb, name)
    calls(name, (functools.partial(lambda f, x: f(x, 0.3), f), V))
    calls(name, (functools.partial(lambda f, x: f(x, [0.1, 0.55], axis=1), f), A))
for name in ["percentile", "nanpercentile"]:
    f = getattr(mb, name)
    calls(name, (functools.partial(lambda f, x: f(x, [30, 55], axis=0, keepdims=True), f), A))
calls("quantile", (lambda x: mb.quantile(x, 0.4, method="weibull"), V))
calls("nanquantile", (lambda x: mb.nanquantile(x, 0.4), N))
calls(
    "average",
    (lambda x, y: mb.average(x, weights=y), V, W),
    (lambda x, y: mb.average(x, axis=0, weights=y), A, P),
)
calls("cov", (mb.cov, A), (mb.cov, V, W), (lambda x: mb.cov(x, rowvar=False, bias=True), A))
calls("corrcoef", (mb.corrcoef, A), (mb.corrcoef, V, W))
calls("reduce", (lambda x: mb.reduce(mb.add, x), V), (lambda x: mb.reduce(mb.multiply, x), V))
calls("mapreduce", (lambda x: mb.mapreduce(mb.sin, mb.add, x), V))
calls("apply_along_axis", (lambda x: mb.apply_along_axis(lambda r: r[0] * r[1:], 1, x), A))
calls("apply_over_axes", (lambda x: mb.apply_over_axes(mb.sum, x, [0, 2]), B))
calls("accumulate", (lambda x: mb.accumulate(x, mb.add), V))
calls(
    "cumulative_sum",
    (lambda x: mb.cumulative_sum(x, axis=1), A),
    (lambda x: mb.cumulative_sum(x, include_initial=True), V),
)
calls(
    "cumulative_prod",
    (lambda x: mb.cumulative_prod(x, axis=0), A),
    (mb.cumulative_prod, Z),
    (lambda x: mb.cumulative_prod(x, include_initial=True), V),
)
calls("cumsum", (mb.cumsum, A), (lambda x: mb.cumsum(x, axis=1), A))
calls("cumprod", (mb.cumprod, V), (lambda x: mb.cumprod(x, axis=0), A))
calls("prod", (mb.prod, Z))

# Products

calls("matmul", (mb.matmul, A, S), (mb.matmul, B, S), (mb.matmul, S, S[0]))
calls("dot", (mb.dot, V, W), (mb.dot, A, S), (mb.dot, B, S))
calls("inner", (mb.inner, A, P), (mb.inner, V, W))
calls("outer", (mb.outer, V, T))
calls("kron", (mb.kron, A, T), (mb.kron, S, A))
calls(
    "tensordot",
    (lambda x, y: mb.tensordot(x, y, axes=([1, 2], [0, 1])), B, A),
    (lambda x, y: mb.tensordot(x, y, 1), A, S),
)
calls(
    "einsum",
    (lambda x, y: mb.einsum("ij,jk->ik", x, y), A, S),
    (lambda x: mb.einsum("ii", x), S),
    (lambda x, y: mb.einsum("bij,ij->bj", x, y), B, A),
    (lambda x, y: mb.einsum("i,j,i->ij", x, y, x), V, T),
)
calls("vdot", (mb.vdot, A, P))
calls("vecdot", (mb.vecdot, A, P), (mb.vecdot, B, A[0]))
calls("cross", (mb.cross, T, T * T), (mb.cross, values(4, 3), T))
calls("matvec", (mb.matvec, B, S[0]))
calls("vecmat", (mb.vecmat, T, A))

# Calculus

calls(
    "diff",
    (mb.diff, A),
    (lambda x: mb.diff(x, n=2, axis=0), A),
    (lambda x, y: mb.diff(x, prepend=y[:1], append=0.0), V, W),
)
calls("ediff1d", (mb.ediff1d, A), (lambda x, y: mb.ediff1d(x, to_begin=y), V, T))
calls(
    "gradient",
    (mb.gradient, A),
    (lambda x: mb.gradient(x, 0.5, edge_order=2), V),
    (lambda x, y: mb.gradient(x, mb.cumulative_sum(y)), V, W),
    (lambda x, y: mb.gradient(x, y[0]), V, W),
)
calls("trapezoid", (mb.trapezoid, A), (lambda x, y: mb.trapezoid(x, mb.cumulative_sum(y)), V, W))
for mode in ["full", "same", "valid"]:
    calls("convolve", (functools.partial(mb.convolve, mode=mode), V, T))
    calls("correlate", (functools.partial(mb.correlate, mode=mode), V, T))
calls("correlate", (mb.correlate, T, V))
calls(
    "interp",
    (lambda x, y: mb.interp(x, mb.cumulative_sum(mb.abs(y)), mb.sin(y)), V, W),
    (lambda x: mb.interp(x, [-1.0, 0.05, 1.0], [3.0, 1.0, 2.0], left=-5.0), V),
    (lambda x: mb.interp(x, [0.0, 0.55, 1.0], [3.0, 1.0, 2.0], period=1.5), V),
)
calls("unwrap", (lambda x: mb.unwrap(x * 4), V))

# Polynomials

calls("polyval", (mb.polyval, T, V))
calls("polyadd", (mb.polyadd, V, T))
calls("polysub", (mb.polysub, T, V))
calls("polymul", (mb.polymul, V, T))
calls("polydiv", (mb.polydiv, V, W[:3]))
calls("polyder", (mb.polyder, V), (lambda x: mb.polyder(x, 2), V))
calls("polyint", (mb.polyint, V), (lambda x: mb.polyint(x, 2), V), (lambda x, k: mb.polyint(x, 2, k), V, W[:2]))
calls(
    "polyfit",
    (lambda x, y: mb.polyfit(mb.cumulative_sum(x), y, 2), W, V),
    (lambda x, y: mb.polyfit(mb.cumulative_sum(x), y, 1, cov=True)[1], W, V),
    (lambda x, y: mb.polyfit(mb.cumulative_sum(x), mb.stack([y, x], axis=1), 1, full=True)[1], W, V),
    (lambda x, w: mb.polyfit(mb.cumulative_sum(x), x, 1, w=w), W, W[::-1]),
)
calls("roots", (lambda x: mb.roots(x), np.array([1.0, -6.5, 11.0, -5.0])))
calls("poly", (mb.poly, T))

# Counted, with weights that have derivatives

calls("bincount", (lambda x: mb.bincount(mb.asarray([0, 2, 2, 1, 0], device=x.device), weights=x), V))
calls("histogram", (lambda x: mb.histogram(mb.asarray(W, device=x.device), bins=3, weights=x), V))
calls(
    "histogram2d",
    (
        lambda x: mb.histogram2d(
            mb.asarray(W, device=x.device), mb.asarray(U, device=x.device), bins=2, weights=x
        ),
        V,
    ),
)
calls(
    "histogramdd",
    (
        lambda x: part(
            lambda w: mb.histogramdd(
                [mb.asarray(W, device=x.device), mb.asarray(U, device=x.device)], bins=2, weights=w
            ),
            0,
        )(x),
        V,
    ),
)

calls(
    "histogram",
    (lambda x: mb.histogram(x, bins=3), W),
    (lambda x: mb.histogram(x, bins=3, density=True), V),
    (lambda x, y: mb.histogram(x, bins=[-2.5, 0.1, 2.5], weights=y, density=True), V, W),
)
calls("histogram2d", (lambda x, y: mb.histogram2d(x, y, bins=(3, 3), density=True), V, W))
calls("histogram_bin_edges", (lambda x: mb.histogram_bin_edges(x, bins=4), V))

# Transforms

Q = values(6, seed=8)
for name in ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]:
    f = getattr(mb.fft, name)
    calls(f"fft.{name}", (f, Q), (functools.partial(lambda f, x: f(x, axis=0, norm="ortho"), f), A))
    if name not in ("irfft", "hfft"):
        calls(f"fft.{name}", (functools.partial(lambda f, x: f(x, n=4, axis=1), f), B))
for name in ["fft", "ifft", "irfft", "hfft"]:
    f = getattr(mb.fft, name)
    calls(f"fft.{name}", (functools.partial(lambda f, x, y: f(x + 1j * y), f), Q, values(6, seed=9)))
for name in ["fftn", "ifftn", "rfftn", "irfftn"]:
    calls(
        f"fft.{name}", (getattr(mb.fft, name), A), (functools.partial(getattr(mb.fft, name), axes=(0, -1)), B)
    )
for name in ["fft2", "ifft2", "rfft2", "irfft2"]:
    calls(f"fft.{name}", (getattr(mb.fft, name), B))
for name in ["fftshift", "ifftshift"]:
    calls(f"fft.{name}", (getattr(mb.fft, name), A), (functools.partial(getattr(mb.fft, name), axes=1), B))
for name in ["dct", "idct", "dst", "idst"]:
    calls(f"fft.{name}", (getattr(mb.fft, name), Q), (functools.partial(getattr(mb.fft, name), axis=0), A))

# Made like others

calls("zeros_like", (lambda x: mb.zeros_like(x) + x, V))
calls("ones_like", (lambda x: mb.ones_like(x) * x, V))
calls("full_like", (lambda x: mb.full_like(x, 3.0) * x, V), (lambda x, y: mb.full_like(x, mb.sum(y)), V, W))
calls("empty_like", (written(lambda out, x: mb.copyto(out, x * x), mb.empty_like), V))
calls("similar", (written(lambda out, x: mb.copyto(out, x * x), mb.similar), V))
calls(
    "asarray",
    (mb.asarray, V),
    (lambda x: mb.asarray([x[0] ** 2, x[1], 3.0]), V),
    (lambda x: mb.asarray([[x[0], 1], [x[1], x[2]]]), V),
)
calls("asanyarray", (mb.asanyarray, V))
calls("asarray_chkfinite", (lambda x: mb.asarray_chkfinite(x * x), V))
calls("ndenumerate", (lambda x: mb.stack([v * sum(i) for i, v in mb.ndenumerate(x)]), A))
calls(
    "array",
    (mb.array, V),
    (lambda x: mb.array([x[0] ** 2, x[1], 3.0], dtype=mb.float64), V),
    (lambda x: mb.array([x, x * x]), V),
)
calls("full", (lambda x: mb.full((2, 3), x[0] * x[1], device=x.device), V))
calls("ascontiguousarray", (lambda x: mb.ascontiguousarray(x.T), A))
calls("asfortranarray", (mb.asfortranarray, A))
calls("require", (lambda x: mb.require(x.T, requirements="C"), A))
calls("astype", (lambda x: mb.astype(x, mb.float64), V))
calls("adapt", (lambda x: mb.adapt(mb.HostArray, x) * 2, V))
calls("dense", (mb.dense, V))
calls("materialize", (lambda x: mb.materialize(x * x), V))
calls("hint", (lambda x: mb.hint(x * x, store=True), V))
calls("linspace", (lambda x: mb.linspace(x[0], x[1], 4), V))

# Structured ones

calls(
    "block_diagonal",
    (lambda x, y: mb.dense(mb.block_diagonal(x, y)) @ mb.ones(5, device=x.device), A, T[:, None]),
)
calls("adjoint", (lambda x: mb.adjoint(x) @ x, A))
calls("kronecker", (lambda x, y: mb.dense(mb.kronecker(x, y)), S, A))
calls("kronecker_sum", (lambda x: mb.kronecker_sum(x, x) @ mb.ones(16, device=x.device), S))
calls("inverse", (lambda x: mb.inverse(x + 3 * mb.eye(4, device=x.device)) @ x, S))
calls("sort_complex", (mb.sort_complex, V))
calls("geomspace", (lambda x: mb.geomspace(x[0], x[1], 5), W))
calls("logspace", (lambda x: mb.logspace(x[0], x[1], 4, base=2.0), V))

# Not by a function of the namespace: what is asked for by operators, methods, indices and NumPy's functions

OTHERS: dict[str, list] = {}


def others(name, f, *xs):
    OTHERS.setdefault(name, []).append((f, *xs))


def changed(f):
    """A call that changes a copy of its first array."""

    def made(x, *rest):
        out = mb.copy(x)
        f(out, *rest)
        return out

    return made


def changing(name):
    def decorate(f):
        others(name, changed(f), V, W)

    return decorate


for name, f in {
    "+": lambda x, y: 2 + x + y + 1,
    "-": lambda x, y: 1 - x - y - 2,
    "*": lambda x, y: 2 * x * y,
    "/": lambda x, y: 1 / y + x / y / 3,
    "**": lambda x, y: y**x + 2**x + y**0.5 + x**3,
    "%": lambda x, y: x % y,
    "//": lambda x, y: (x // y) * x,
    "@": lambda x, y: x @ y,
    "neg": lambda x, y: -x + +y,
    "abs()": lambda x, y: abs(x) * y,
    "divmod()": divmod,
    "scalar on the left": lambda x, y: np.float64(2) * x + np.float64(1) / y,
}.items():
    others(name, f, V, W)


@changing("+=")
def _(x, y):
    x += y
    x += 1


@changing("-=")
def _(x, y):
    x -= y * x


@changing("*=")
def _(x, y):
    x *= y
    x *= x


@changing("/=")
def _(x, y):
    x /= y


@changing("**=")
def _(x, y):
    x **= 3


@changing("%=")
def _(x, y):
    x %= y


@changing("//=")
def _(x, y):
    x //= y
    x += y


@changing("part +=")
def _(x, y):
    with mb.allow_scalar():
        x[1:3] += y[:2]
        x[0] *= y[1]


@changing("part of a part")
def _(x, y):
    with mb.allow_scalar():
        x[1:][::2][1] = y[0] * x[0]


@changing("list =")
def _(x, y):
    x[[0, 2]] = y[:2]
    x[[1]] = 5.0


@changing("mask =")
def _(x, y):
    x[x > 0] = (y * y)[: int(mb.count_nonzero(x > 0))]
    x[y > 2] = 1.0


@changing("mask +=")
def _(x, y):
    x[x > 0] += y[0]


@changing("... =")
def _(x, y):
    x[...] = y * x


@changing("sort()")
def _(x, y):
    x *= y
    x.sort()


@changing("partition()")
def _(x, y):
    x.partition(2)


@changing("fill()")
def _(x, y):
    x.fill(y[0])


@changing("put()")
def _(x, y):
    x.put([0, 1], y)


@changing("reshaped part")
def _(x, y):
    x[:4].reshape(2, 2)[0] = y[1:3]


@changing("loop")
def _(x, y):
    with mb.allow_scalar():
        for k in range(1, 5):
            x[k] = x[k - 1] * y[k] + x[k]


@changing("views of what is written as a whole")
def _(x, y):
    before = x[1:]
    backwards = before[::-1]
    x[...] = x[::-1] * y
    after = x[:2]
    before *= after[0:1]
    x *= y
    backwards[:2] = after * y[:2]
    y[1:] += before
    x += y


@changing("filled in turns")
def _(x, y):
    x[...] = 1.0
    x[1:3] = y[:2]
    x[...] = x * y
    x.fill(2.0)
    x += y
    x[0:1] = y[1:2] * x[2:3]


@changing("swap")
def _(x, y):
    with mb.allow_scalar():
        x[0], x[1] = x[1] * 1, x[0] * 1


@changing("assigned later")
def _(x, y):
    before = x * 2
    x[:] = y
    x += before


others("columns", changed(lambda x, y: x.T.__setitem__(0, y)), A, T)
others("lists apart", lambda x: x[[0, 1], :, [1, 2]], B)
others(
    "written, lists apart",
    changed(lambda x, y: x.__setitem__(([0, 1], slice(None), [1, 2]), y[:, :3])),
    B,
    A[:2],
)
others("diagonal =", changed(lambda x, y: mb.diagonal(x).__setitem__(slice(None), y * y)), S, values(4))
others("x.T", lambda x: (x.T @ x, x.mT), A)
others("x[i]", lambda x: (x[0], x[-1] * x[1], x[1:3], x[::-1], x[None], x[...], x[[2, 0, 2]], x[x > 0]), V)
others("x[i, j]", lambda x: (x[1, 2], x[:, 1], x[1:, ::2], x[..., 0], x[[0, 2], [1, 1]], x[x < 0], x[1][2]), A)
others("for", lambda x: sum(v * v for v in x) + mb.prod(mb.stack(list(x))), V)
others("unpacked", lambda x: (lambda a, b, c: a * b + c)(*x), T)
others("sum of rows", lambda x: sum(x), A)
others("flat", lambda x: mb.stack(list(x.flat)), A)
METHODS = ["sum", "prod", "mean", "std", "var", "min", "max", "ptp", "cumsum", "cumprod"]
for name in [*METHODS, "trace", "ravel", "flatten", "copy", "conj", "conjugate"]:
    others(f"{name}()", lambda x, name=name: getattr(x, name)(), A)
for name in METHODS:
    others(f"{name}()", lambda x, name=name: getattr(x, name)(axis=1), A)
others(
    "methods", lambda x: (x.reshape(4, 3), x.reshape((2, -1), order="F"), x.transpose(), x.transpose(1, 0)), A
)
others("methods", lambda x: (x.swapaxes(0, 2), x.squeeze(), x.diagonal(1, 0, 1), x.repeat(2, axis=0)), B)
others(
    "methods",
    lambda x, y: (x.dot(y), x.clip(-1, 1), x.round(1) * x, x.take([1, 0]), x.compress([0, 1, 1])),
    V,
    W,
)
others("methods", lambda x: (x.astype(float), x.astype("c16"), x.real, x.imag, x.flatten("F"), x.copy("F")), A)
others("methods", lambda x: (x.to_device(x.device), x.sum(where=x > 0, initial=2.0), x.mean(where=x > 0)), V)
others("float32", lambda x: mb.sum(mb.astype(x, mb.float32) * 2).astype(mb.float64) * 0 + mb.sum(x), V)

# Complex numbers between real ones

others("exp(1j x)", lambda x: mb.exp(1j * x), V)
others("|z|", lambda x, y: (mb.abs(x + 1j * y), mb.angle(x + 1j * y), mb.real(mb.exp(x + 1j * y))), V, W)
others("conj z z", lambda x, y: mb.real(mb.conj(x + 1j * y) * (x + 1j * y) ** 2), V, W)
others("z @ z", lambda x, y: (x + 1j * y) @ mb.conj(x - 2j * y), V, W)
others("z.real =", changed(lambda x, y: x.__iadd__(mb.abs(mb.fft.fft(y)))), V, W)
others("parts", lambda x, y: ((x + 1j * y).real, (x + 1j * y).imag, mb.sqrt(x + 1j * y)), V, W)
others("power spectrum", lambda x: mb.abs(mb.fft.rfft(x * x)) ** 2, V)
others("convolution theorem", lambda x, y: mb.real(mb.fft.ifft(mb.fft.fft(x) * mb.fft.fft(y))), V, W)


@changing("complex parts written")
def _(x, y):
    z = x + 1j * y
    z.real = y
    z.imag[1:] = x[1:] ** 2
    x[:] = mb.abs(z)


# NumPy's functions

for f in (np.sin, np.exp, np.tanh, np.square, np.absolute, np.negative, np.rad2deg):
    others(f"np.{f.__name__}", f, V)
for f in (np.add, np.multiply, np.divide, np.maximum, np.hypot, np.arctan2, np.logaddexp):
    others(f"np.{f.__name__}", f, V, W)
for f in (
    np.sum,
    np.prod,
    np.mean,
    np.std,
    np.var,
    np.max,
    np.min,
    np.ptp,
    np.median,
    np.cumsum,
    np.diff,
    np.sort,
):
    others(f"np.{f.__name__}", f, A)
for f in (
    np.transpose,
    np.ravel,
    np.flip,
    np.tril,
    np.fft.fft,
    np.linalg.norm,
    np.atleast_3d,
    np.copy,
    np.nansum,
):
    others(f"np.{f.__name__}", f, A)
for f in (
    np.dot,
    np.matmul,
    np.vdot,
    np.inner,
    np.outer,
    np.convolve,
    np.polyval,
    np.append,
    np.kron,
    np.vecdot,
):
    others(f"np.{f.__name__}", f, V, W)
for f in (np.concatenate, np.stack, np.vstack, np.hstack, np.column_stack, np.block):
    others(f"np.{f.__name__}", lambda x, y, f=f: f([x, y]), V, W)
others("np.where", lambda x, y: np.where(x > 0, x, y), V, W)
others("np.clip", lambda x, y: np.clip(x, -y, y), V, W)
others("np.interp", lambda x, y: np.interp(x, [-2.0, 0.1, 2.0], y[:3]), V, W)
others("np.einsum", lambda x, y: np.einsum("ij,kj->ik", x, y), A, P)
others("np.tensordot", lambda x, y: np.tensordot(x, y, 1), A, S)
others("np.add.reduce", lambda x: (np.add.reduce(x), np.multiply.reduce(x, axis=1), np.maximum.reduce(x)), A)
others("np.add.accumulate", lambda x: (np.add.accumulate(x), np.multiply.accumulate(x)), A)
others("np.add.outer", lambda x, y: (np.add.outer(x, y), np.multiply.outer(x, y)), V, T)
others("np.add.at", written(lambda out, x, y: np.add.at(out, [0, 3, 0], y[:3])), V, W)
others("np.subtract.at", written(lambda out, x, y: np.subtract.at(out, [0, 3, 0], y[:3])), V, W)
others("np.sum(where=)", lambda x: np.sum(x * x, where=x > 0, initial=3.0), V)
others("np.copyto", written(lambda out, x, y: np.copyto(out, x * y, where=x > 0)), V, W)
others("np.place", changed(lambda x, y: np.place(x, x > 0, y)), V, W)
others("np.zeros_like", written(lambda out, x: np.copyto(out, x * x), np.zeros_like), V)
others("np.ones_like", lambda x: np.ones_like(x) * x, V)
others("np.full_like", lambda x, y: np.full_like(x, y[0]), V, W)

# Into `out=`

others("out= of a ufunc", with_out(lambda x, y, out: np.multiply(x, y, out=out)), V, W)
others("out= where=", with_out(lambda x, y, out: np.multiply(x, y, out=out, where=x > 0)), V, W)
others("out= of cumsum", with_out(lambda x, out: np.cumsum(x, out=out)), V)
others("out= of take", with_out(lambda x, out: x.take([1, 0, 2, 4, 4], out=out)), V)
others("out= of clip", with_out(lambda x, out: np.clip(x, -1, 1, out=out)), V)
others("out= of matmul", with_out(lambda x, y, out: np.matmul(x, y, out=out)), S, S + 1)
others("out= of concatenate", with_out(lambda x, out: np.concatenate([x[2:], x[:2] * x[:2]], out=out)), V)
others("out= of einsum", with_out(lambda x, y, out: mb.einsum("i,i->i", x, y, out=out)), V, W)
others("out= of sum", lambda x: np.sum(x, axis=1, out=mb.zeros_like(x[:, 0])), A)
