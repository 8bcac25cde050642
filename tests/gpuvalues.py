"""Public functions on a card at values where things go wrong, beside NumPy's: `python -m tests.gpuvalues`.

Each line of the tables is run by NumPy, on arrays of the card, and as a compiled program of these, for every
dtype; the data hold NaN of both signs, infinities, zeros of both signs, extremes and repeated numbers. What
NumPy refuses must be refused, and what it does not refuse must not be. `test_gpu_values.py` runs a part of it.

python -m tests.gpuvalues                  # on a card
python -m tests.gpuvalues --simulated      # on a simulated one
python -m tests.gpuvalues --host           # the host's arrays, to see what is no matter of the card
python -m tests.gpuvalues --only sort      # lines with this text in them
"""

from __future__ import annotations

import argparse
import builtins
import collections
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

DTYPES = ("?", "i1", "u1", "i4", "u8", "i8", "f2", "f4", "f8", "c8", "c16")

# Of vectors `x`, `y` (60 elements), `s` (x, sorted), matrices `m`, `w` (6, 10), all of one dtype; `k`, integers
# from 0 to 5; `b`, truth values for x; `n`, `nb`, such as NumPy's arrays; `e`, an empty vector; `f`, `g`, as x
# and y but finite; `h`, `j`, with infinities but no NaN; `q`, `q0`, a regular and a singular matrix.
ORDERS = """
sort(x)
sort(m, axis=0)
sort(m, axis=1)
sort(m, axis=None)
sort(x[::-1])
sort(x[:1])
argsort(x, kind='stable')
argsort(m, axis=0, kind='stable')
argsort(m, axis=1, kind='stable')
take(x, argsort(x))
partition(x, 30)[30]
take(x, argpartition(x, 30))[30]
lexsort([x, y])
lexsort([y, m.reshape(-1)])
sort_complex(x)
unique(x)
unique(x, equal_nan=False)
unique(x, return_counts=True)
unique(x, return_inverse=True)
unique(x, return_index=True)
unique(m, axis=0)
unique(concatenate([m, m]), axis=0)
sort(unique_values(x))
sort(unique_counts(x)[0])
union1d(x, y)
intersect1d(x, y)
setdiff1d(x, y)
setxor1d(x, y)
isin(x, y)
isin(x, x)
isin(x, x, invert=True)
searchsorted(s, y)
searchsorted(s, y, side='right')
searchsorted(x, y, sorter=argsort(x, kind='stable'))
searchsorted(s, x[3])
median(x)
median(m, axis=0)
median(m, axis=1)
nanmedian(x)
nanmedian(m, axis=0)
percentile(f, 30)
percentile(x, 30)
percentile(m, [10, 50, 90], axis=1)
quantile(m, 0.25, axis=0, method='lower')
nanpercentile(x, 30)
nanquantile(m, 0.7, axis=0)
argmax(x)
argmin(x)
argmax(m, axis=0)
argmin(m, axis=1)
nanargmax(x)
nanargmin(x)
nanargmax(m, axis=1)
max(x)
min(x)
max(m, axis=0)
min(m, axis=1)
max(concatenate([x, x, x, x, x]))
nanmax(x)
nanmin(m, axis=1)
ptp(x)
maximum(x, y)
minimum(x, y)
fmax(x, y)
fmin(x, y)
clip(x, y[0], y[1])
clip(x, min=f)
flatnonzero(x)
nonzero(m)
argwhere(m)
count_nonzero(x)
count_nonzero(m, axis=0)
digitize(x, sort(f))
histogram(f, 5)
histogram(x, 5, range=(-2, 2))
histogram_bin_edges(f, 4)
histogram2d(f, g, 3)
interp(f, sort(g), f)
trim_zeros(x)
allclose(x, x)
isclose(x, y)
isclose(x, x, equal_nan=True)
array_equal(x, x)
array_equal(x, x, equal_nan=True)
"""

SUMS = """
sum(x)
sum(m, axis=0)
sum(m, axis=1)
sum(m[:, :1] * 0, axis=1)
sum(zeros_like(x) * -1)
sum(-zeros_like(m), axis=0)
sum(-zeros_like(m), axis=1)
sum(e)
sum(-zeros_like(m)[:, :1], axis=1)
prod(f[:4])
prod(-zeros_like(f))
prod(zeros_like(f)[:3] * -1)
prod(m, axis=0)
prod(e)
mean(f)
mean(-zeros_like(m), axis=0)
nansum(x)
nansum(m, axis=1)
nansum(-zeros_like(m), axis=1)
nanprod(m, axis=0)
nanmean(m, axis=1)
var(f)
std(m, axis=0)
nanstd(x)
cumsum(f)
cumsum(-zeros_like(f))
cumsum(m, axis=0)
cumsum(m, axis=1)
cumprod(m, axis=1)
cumprod(-zeros_like(f))
nancumsum(x)
cumulative_sum(-zeros_like(m), axis=0, include_initial=True)
any(x)
all(m, axis=0)
trace(m)
trace(-zeros_like(m))
dot(f, g)
dot(-zeros_like(f), ones_like(f))
vdot(f, g)
vdot(x, y)
vdot(x[:3], y[:3])
vdot(h, j)
vdot(h[:3], j[:3])
dot(h[:4], j[:4])
sum(h)
prod(h[:5])
sum(-zeros_like(repeat(f, 100)))
prod(-zeros_like(repeat(f, 3))[:101])
sum(-zeros_like(repeat(f, 100)).reshape(60, 100), axis=0)
sum(-zeros_like(repeat(f, 100)).reshape(100, 60), axis=1)
cumsum(-zeros_like(repeat(f, 100)))
inner(f, g)
outer(x, y)
m @ w.T
(-zeros_like(m)) @ ones_like(w).T
matmul(m, f[:10])
matmul(f[:6], m)
einsum('ij,ij->i', m, w)
einsum('ij->j', -zeros_like(m))
tensordot(m, w, axes=2)
vecdot(m, w)
kron(m[:2, :2], w[:2])
cross(m[:, :3], w[:, :3])
convolve(f, g[:3])
correlate(f, g[:3])
diff(x)
ediff1d(x)
gradient(f)
trapezoid(f)
average(f, weights=abs(real(g)) + 1)
cov(m)
corrcoef(m)
corrcoef(f, g)
corrcoef(f, f * 3)
corrcoef(f, -f)
corrcoef(ones_like(m))
corrcoef(f)
corrcoef(f.reshape(6, 10), rowvar=False)
cov(f, g)
bincount(k)
bincount(k, weights=real(f[:k.size]))
logaddexp(x, y)
hypot(x, y)
linalg.norm(f)
linalg.norm(x)
linalg.norm(m, axis=1)
linalg.norm(m, ord=1, axis=0)
linalg.norm(m, ord=numpy.inf, axis=0)
vander(f[:5], 3)
polyval(f[:3], g)
"""

ELEMENTS = """
x + y
x - y
x * y
x / y
x // y
x % y
-x
x * -1
x * 0
x * 1.5
x + 0.0
x - 0.0
0.0 - x
x ** 2
x ** y
abs(x)
sign(x)
sqrt(x)
cbrt(x)
exp(f)
expm1(x)
log(x)
log1p(x)
log2(x)
log10(x)
sin(f)
cos(f)
tan(f)
arcsin(f)
arctan(x)
arctan2(x, y)
sinh(x)
tanh(x)
arcsinh(x)
arccosh(x)
arctanh(x)
square(x)
reciprocal(x)
floor(x)
ceil(x)
trunc(x)
rint(x)
round(x, 1)
fix(x)
isnan(x)
isinf(x)
isfinite(x)
signbit(x)
copysign(x, y)
nextafter(x, y)
spacing(f)
fmod(x, y)
remainder(x, y)
divmod(x, y)
modf(x)
frexp(x)
ldexp(x, k[:x.size])
floor_divide(x, y)
float_power(x, 2)
conj(x)
real(x)
imag(x)
angle(x)
x == y
x != y
x < y
x <= y
x > y
logical_and(x, y)
logical_xor(x, y)
logical_not(x)
heaviside(x, f)
nan_to_num(x)
nan_to_num(x, nan=1.0, posinf=2.0, neginf=-2.0)
sinc(x)
i0(f)
unwrap(f)
exp2(x)
deg2rad(x)
real_if_close(x)
where(b, x, y)
where(b, x, 0)
where(x == x, x, -0.0)
isposinf(x)
gcd(x, y)
lcm(x, y)
x & y
x | y
x << 1
x >> 1
~x
bitwise_count(x)
"""

CASTS = "\n".join(
    f"{v}.astype('{d}')" for d in (*DTYPES, "u2", "i2", "u4") for v in ("x", "f", "f * 3", "m.T", "x[::2]")
)

PLACES = """
x[[3, 1, 1]]
x[k]
x[n]
x[b]
x[nb]
m[[True, False, True, False, True, False]]
m[:, [1, 0]]
m[[0, 1], [1, 0]]
x[e.astype('i8')]
x[[]]
m[[], [0]]
m[[0], []]
e[[]]
e[numpy.array([], 'i4')]
zeros((0, 3))[numpy.array([], 'i4'), [0]]
zeros((0, 3))[[], 0]
zeros((0, 3))[numpy.zeros(0, bool), [0]]
zeros((3, 0))[[0], []]
zeros((3, 0))[[5], []]
zeros((3, 0))[[], [5]]
zeros((0, 3))[[0], []]
zeros((0, 3))[numpy.zeros((0, 3), bool)]
zeros((0, 3))[:, [0, 2]]
zeros((0, 3))[[0]]
zeros((3, 0))[[2]]
zeros((3, 0))[[3]]
take(x, k)
take(x, n)
take(x, [])
take(m, n, axis=1)
take(m, 99, mode='clip')
take(m, [99, -3], mode='wrap')
take_along_axis(m, argsort(m, axis=1, kind='stable'), axis=1)
compress(nb, x)
compress(b, x)
compress([False, True], x)
compress(numpy.array([False, True]), x)
compress(numpy.array([False, True]), m, axis=1)
compress(numpy.array([0, 1, 2]), m, axis=0)
extract(nb, x)
extract(b, x)
extract(numpy.array([1, 0, 2]), x[:3])
choose(k % 2, [x[:k.size], y[:k.size]])
choose(n % 2, [x[:k.size], y[:k.size]])
select([nb], [x], 0)
select([b, nb], [x, y], 0)
where(nb, x, y)
where(nb, x, 0)
delete(x, 3)
delete(x, [1, 2])
delete(x, n)
delete(x, nb)
delete(x, b)
delete(m, n, axis=1)
insert(x, 3, y[:2])
insert(x, [1, 4], y[:2])
insert(x, n[:2], y[:2])
insert(m, 1, 7, axis=1)
isin(x, [1, 2])
searchsorted(s, [1, 2])
piecewise(f, [f == 0, nb], [1, 2, 3])
piecewise(f, [nb], [lambda v: -v, 3])
digitize(f, numpy.arange(5))
bincount(n)
bincount(n, weights=numpy.arange(n.size))
histogram(f, numpy.arange(5))
unravel_index(n, (6, 10))
ravel_multi_index((n, n), (6, 10))
ravel_multi_index((k, n), (6, 10))
polyval(numpy.ones(3), f)
repeat(x, 2)
repeat(x[:3], numpy.array([1, 0, 2]))
repeat(x[:k.size], k)
quantile(f, numpy.array([0.1, 0.5]))
percentile(f, numpy.array([10, 50]))
sum(x, where=nb)
max(f, where=nb, initial=0)
mean(f, where=nb)
any(x, where=nb)
add(x, y, where=nb, out=zeros_like(x + y))
gradient(f, numpy.arange(60.0))
packbits(nb)
pad(x, 2)
pad(m, ((1, 0), (2, 1)), constant_values=-0.0)
roll(x, 3)
flip(x)
tril(m)
triu(m, 1)
diag(x[:5])
tile(x, 2)
linspace(f[0], f[1], 4)
"""

# Numbers of NumPy beside a card's: refused.
MIXED = """
select([x == x, nb], [x, numpy.zeros(x.size)], 0)
where(b, x, numpy.zeros(x.size))
insert(x, n[:2], numpy.zeros(2))
isin(x, numpy.arange(5))
isin(numpy.arange(5), x)
searchsorted(s, numpy.arange(5))
searchsorted(numpy.arange(5), f)
choose(k % 2, [numpy.zeros(k.size), y[:k.size]])
interp(f, numpy.arange(5), numpy.arange(5))
bincount(k, weights=numpy.arange(k.size))
average(f, weights=numpy.arange(f.size))
histogram(f, 5, weights=numpy.ones(f.size))
append(x, numpy.zeros(2))
concatenate([x, numpy.zeros(2)])
union1d(x, numpy.arange(3))
intersect1d(x, numpy.arange(3))
setdiff1d(x, numpy.arange(3))
setxor1d(x, numpy.arange(3))
kron(m[:2], numpy.eye(2))
convolve(f, numpy.ones(2))
lexsort([x, numpy.arange(60)])
cross(m[:, :3], numpy.ones(3))
diff(x, prepend=numpy.zeros(1))
trapezoid(f, numpy.arange(60))
cov(m, fweights=numpy.arange(1, 11))
array_equal(x, numpy.zeros(60))
allclose(f, numpy.zeros(60))
einsum('i,i->', f, numpy.ones(60))
clip(x, numpy.zeros(60), numpy.ones(60))
"""

# Statements that write to `x` or `m`, which are compared afterwards.
WRITES = """
x[None, [1]] = -0.0
x[[1]] = -0.0
x[b] = -0.0
x[nb] = -0.0
x[b] = y[b]
x[nb] = y[nb]
x[k] = -0.0
x[n] = y[:n.size]
x[...] = -0.0
x[3] = -0.0
x[1:5] = -0.0
x[None, 2:3] = -0.0
m[:, [1, 2]] = -0.0
m[None, [1, 2]] = -0.0
m[[1], [2]] = -0.0
m[numpy.array([], 'i8'), [0]] = 5
m[[], 0] = 5
x *= -1
x += 0.0
x[x != x] = 0
x[x == 0] = -0.0
m[m == 0] = -0.0
place(x, nb, [1, 2])
place(x, b, y[:2])
putmask(x, nb, y)
putmask(x, b, -0.0)
put(x, [1, 2], -0.0)
put(x, n[:2], y[:2])
copyto(x, y, where=nb)
copyto(x, -0.0, where=b)
put_along_axis(m, numpy.zeros((6, 1), 'i8'), -0.0, axis=1)
put_along_axis(m, argmax(m, axis=1)[:, None], 0, axis=1)
fill_diagonal(m, -0.0)
add.at(x, n, y[:n.size])
add.at(x, k, y[:k.size])
maximum.at(x, n, y[:n.size])
multiply.at(x, numpy.array([1, 1, 2]), 2)
add(x, y, out=x)
add(x, y, where=nb, out=x)
negative(x, where=b, out=x)
"""

LINEAR = """
linalg.inv(q)
linalg.inv(q0)
linalg.inv(q0 + q0.T)
linalg.inv(zeros_like(q))
linalg.inv(ones_like(q))
linalg.inv(stack([q, q0]))
linalg.det(q)
linalg.det(q0)
linalg.slogdet(q0)
linalg.solve(q, f[:4])
linalg.solve(q, ones_like(real(q)[0]).astype('f4'))
linalg.solve(q, ones_like(real(q)).astype('f4'))
linalg.solve(q.astype('i8'), ones_like(real(q)[0]).astype('f4'))
linalg.solve(q.astype('i4'), ones_like(real(q)[0]).astype('f4'))
linalg.solve(q, ones_like(real(q)[0]).astype('i4'))
linalg.lstsq(q.astype('i4'), ones_like(real(q)[0]).astype('f4'))[0]
linalg.solve(q0, f[:4])
linalg.solve(zeros_like(q), ones_like(q))
linalg.cholesky(q @ conj(q).T)
linalg.cholesky(-(q @ conj(q).T))
linalg.eigvalsh(q + conj(q).T)
linalg.svdvals(q)
linalg.matrix_rank(q0)
linalg.pinv(q0)
linalg.lstsq(q, f[:4])[0]
linalg.matrix_power(q, 3)
linalg.matrix_power(q, -1)
linalg.matrix_power(q0, -1)
linalg.cond(q)
linalg.tensorinv(q.reshape(2, 2, 2, 2))
linalg.norm(q)
linalg.norm(q, 2)
abs(linalg.qr(q)[1])
fft.fft(f)
fft.ifft(f)
fft.rfft(real(f))
fft.fft(x)
fft.rfft(real(x))
real(fft.fft(x))
real(fft.fft(h))
real(fft.fft(m))
imag(fft.fft(x))
fft.fft2(m)
fft.fftn(f.reshape(3, 4, 5))
fft.irfft(f)
fft.hfft(f)
fft.fftshift(x)
real(fft.fft(-zeros_like(x)))
fft.fft(f, norm='ortho')
fft.fft(f, 7)
"""


# What is ours by decision, or no rule settles, on every place: the line, the dtypes (empty: all), and why.
KNOWN = {
    "x // y": ("f2 f4 f8", "the array API's values at infinity"),
    "floor_divide(x, y)": ("f2 f4 f8", "the array API's values at infinity"),
    "expm1(x)": ("c8 c16", "the array API's signs of zeros"),
    "tanh(x)": ("c8 c16", "the array API's signs of zeros"),
    "rint(x)": ("i1 u1 i4 u8 i8", "integers are round"),
    "round(x, 1)": ("?", "computed, where NumPy cannot cast"),
    "gradient(f)": ("?", "computed"),
    "gradient(f, numpy.arange(60.0))": ("?", "computed"),
    "unwrap(f)": ("?", "refused"),
    "cumprod(m, axis=1)": ("f2", "halves are accumulated in single precision"),
    "cumprod(-zeros_like(f))": ("c8 c16", "signs of complex zeros"),
    "prod(-zeros_like(repeat(f, 3))[:101])": ("c8 c16", "signs of complex zeros"),
    "prod(h[:5])": ("c8 c16", "which part is NaN is said by the order"),
    "nanmedian(m, axis=0)": ("c8 c16", "half of a complex infinity"),
    "x ** y": ("i1 i4 i8 c8 c16", "a card's kernel cannot raise; powers of complex infinities"),
    **dict.fromkeys(
        ("m @ w.T", "matmul(f[:6], m)", "nanprod(m, axis=0)", "prod(m, axis=0)"),
        ("f2 f4 f8 c8 c16", "sums and products that overflow in one order"),
    ),
    **dict.fromkeys(
        ("dot(h[:4], j[:4])", "vdot(h, j)", "vdot(h[:3], j[:3])", "vdot(x[:3], y[:3])", "x ** 2", "square(x)"),
        ("c8 c16", "which part of a complex number is NaN is said by the order"),
    ),
    "sign(x)": ("c8 c16", "the array API's sign of NaN"),
    **dict.fromkeys(
        ("unique(m, axis=0)", "unique(concatenate([m, m]), axis=0)"), ("f2", "NumPy's rows of halves with NaN")
    ),
    **dict.fromkeys(
        ("histogram(f, 5)", "histogram(f, numpy.arange(5))", "histogram(x, 5, range=(-2, 2))",
         "histogram2d(f, g, 3)", "histogram_bin_edges(f, 4)", "histogram(f, 5, weights=numpy.ones(f.size))"),
        ("c8 c16", "complex numbers have no bins"),
    ),
}  # fmt: skip
# The same, on real cards alone.
KNOWN_ON_CARDS = {
    **dict.fromkeys(
        ("fft.fft(x)", "fft.fft2(m)", "imag(fft.fft(x))", "real(fft.fft(m))", "real(fft.fft(h))"),
        ("", "which elements of a transform are NaN where there are NaN or infinities"),
    ),
    **dict.fromkeys(
        ("x * y", "outer(x, y)", "max(m, axis=0)", "exp2(x)", "maximum.at(x, n, y[:n.size])!"),
        ("c8 c16", "complex numbers at the limits of their range; which NaN stands for several"),
    ),
    **dict.fromkeys(
        (
            "linalg.cond(q)",
            "linalg.lstsq(q.astype('i4'), ones_like(real(q)[0]).astype('f4'))[0]",
            "linalg.inv(q0 + q0.T)",
            "linalg.pinv(q0)",
            "linalg.solve(q0, f[:4])",
        ),
        ("", "rounding decides what is singular"),
    ),
    "fft.fft(f, norm='ortho')": ("f2", "halves are transformed in single precision"),
    "fft.ifft(f)": ("f2", "halves are transformed in single precision"),
    "signbit(x)": ("f2", "a half NaN loses its sign where it becomes a float"),
}
# Where equal zeros change places, and where any NaN stands for all complex ones.
ANY_ZERO = (
    "sort", "partition", "take(x, arg", "unique", "union1d", "intersect1d", "setdiff1d", "setxor1d", "median",
    "percentile", "quantile", "max", "min", "fmax", "fmin", "clip", "nanm", "nanpercentile", "nanquantile",
)  # fmt: skip
ONE_NAN = ("unique", "union1d", "setdiff1d", "setxor1d", "intersect1d", "sort(unique")


def integers_of(x: np.ndarray, dtype: Any) -> np.ndarray:
    """What floats are as integers (docs/design.md): towards zero to int32 or int64, of these the low bits."""
    x, dtype = np.asarray(x.real, np.float64), np.dtype(dtype)
    least = -(2.0**31) if dtype.itemsize < 4 or dtype == np.int32 else -(2.0**63)
    above = (x >= 2.0**63) & (dtype == np.uint64)  # counted from 2**63
    x = np.trunc(np.where(above, x - 2.0**63, x))
    whole = np.where((x >= least) & (x < -least), x, least).astype(np.int64)
    return np.where(above, whole ^ np.int64(-(2**63)), whole).astype(dtype)


def data(dtype: str, seed: int, linear: bool = False) -> dict[str, np.ndarray]:
    """The arrays of the cases."""
    rng = np.random.default_rng(seed)
    d = np.dtype(dtype)

    def vector(n: int, special: bool) -> np.ndarray:
        if d.kind == "b":
            return rng.integers(0, 2, n).astype(bool)
        if d.kind in "iu":
            x = rng.integers(0 if d.kind == "u" else -7, 8, n).astype(d)
            if special:
                info = np.iinfo(d)
                x[rng.integers(0, n, 4)] = [info.max, info.min, info.max - 1, info.min]
            return x
        real = np.empty(0, d).real.dtype

        def part() -> np.ndarray:
            x = (rng.integers(-40, 41, n) / 8).astype(real)
            x[rng.random(n) < 0.15] = 0.0
            x[rng.random(n) < 0.15] = -0.0
            if special:
                for v in (np.nan, -np.nan, np.inf, -np.inf):
                    x[rng.random(n) < 0.06] = v
                x[rng.integers(0, n, 2)] = [np.finfo(real).max, np.finfo(real).smallest_subnormal]
            return x

        if d.kind == "f":
            return part()
        z = np.empty(n, d)
        z.real, z.imag = part(), part()
        return z

    x, y = vector(60, True), vector(60, True)
    m, w = (vector(60, True).reshape(6, 10) for _ in range(2))
    found = {
        "x": x, "y": y, "s": np.sort(x), "m": m, "w": w, "f": vector(60, False), "g": vector(60, False),
        "e": np.empty(0, d), "k": rng.permutation(6), "b": rng.random(60) < 0.5,
    }  # fmt: skip
    for name, x in (("h", vector(60, True)), ("j", vector(60, True))):
        found[name] = np.where(np.isnan(x), d.type(1), x)
    if linear:
        q = np.eye(4) * 3 + rng.integers(-1, 2, (4, 4))
        q0 = np.array([[1, 2, 3, 4], [2, 4, 6, 8], [1, 0, 1, 0], [3, 1, 2, 1]])
        if d.kind == "c":
            q, q0 = q + 1j * rng.integers(-1, 2, (4, 4)), q0 * (1 + 1j)
        found["q"], found["q0"] = (abs(v).astype(d) if d.kind in "bu" else v.astype(d) for v in (q, q0))
    return found


CAST_LINES, MIXED_LINES = CASTS.splitlines(), MIXED.strip().splitlines()


class Scope(dict):
    """Names in a case: its arrays, else the module's."""

    def __init__(self, xp: Any, arrays: dict[str, Any]) -> None:
        super().__init__(arrays, numpy=np)
        self.xp = xp

    def __missing__(self, name: str) -> Any:
        return getattr(self.xp, name)


MADE_BY_NUMPY = ("place", "copyto", "add", "maximum", "multiply")


class Attack:
    def __init__(self, family: Any, compiled: bool = True) -> None:
        import mirabelle as mb

        self.mb, self.family, self.compiled = mb, family, compiled
        self.found: dict[tuple[str, str, str], list[str]] = collections.defaultdict(list)
        self.runs = 0
        self.real_card = family is mb.CuArray and mb.settings.cuda != "simulated"
        self.refuses = family is not mb.HostArray

    def statement(self, xp: Any, text: str, arrays: dict[str, Any]) -> Any:
        """What a case gives; of a statement, the arrays it may have written to."""
        if text.endswith("!"):
            code = text[:-1]
            first = code.partition("(")[0].partition(".")[0]
            # (NumPy's own functions hand over to ours, where ours has another name or `at`)
            exec(code, {"__builtins__": builtins}, Scope(np if first in MADE_BY_NUMPY else xp, arrays))
            return arrays["x"], arrays["m"]
        return eval(text, {"__builtins__": builtins}, Scope(xp, arrays))

    def outcome(self, f: Any, *args: Any) -> tuple[Any, Any]:
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self.fetched(f(*args)), None
        except Exception as e:
            return None, e

    def fetched(self, result: Any) -> Any:
        if isinstance(result, (tuple, list)):
            return tuple(self.fetched(r) for r in result)
        return self.mb.to_numpy(result) if isinstance(result, self.mb.AbstractArray) else np.asarray(result)

    def case(self, text: str, dtype: str, seed: int) -> None:
        arrays = data(dtype, seed, linear=True)
        names = sorted(arrays)
        extra = {"n": np.array([1, 5, 0, 3]), "nb": arrays["b"][::-1].copy()}

        def of_numpy() -> Any:
            return self.statement(np, text, {k: v.copy() for k, v in arrays.items()} | extra)

        def eager() -> Any:
            given = {k: self.family(v) for k, v in arrays.items()}
            with self.mb.allow_scalar():
                return self.statement(self.mb, text, given | extra)

        def compiled() -> Any:
            used = [k for k in names if k in text or k in ("x", "m")]

            def program(*given: Any) -> Any:
                return self.statement(self.mb, text, dict(zip(used, given, strict=True)) | extra)

            run = self.mb.compile(program)
            given = [self.family(arrays[k]) for k in used]
            with self.mb.allow_scalar():
                result = run(*given)
            if text.endswith("!"):
                return tuple(given[used.index(k)] for k in ("x", "m"))
            return result

        known = {**KNOWN, **(KNOWN_ON_CARDS if self.real_card else {})}.get(text)
        if known is not None and dtype in (known[0].split() or DTYPES):
            return
        expected, refused = self.outcome(of_numpy)
        if text in CAST_LINES and np.dtype(dtype).kind in "fc":
            given, _, wanted = text.partition(".astype('")
            if np.dtype(wanted[:-2]).kind in "iu":
                expected = integers_of(self.statement(np, given, dict(arrays)), wanted[:-2])
        if text in MIXED_LINES and self.refuses:
            expected, refused = None, self.mb.PlaceError("numbers of NumPy's stay where they are")
        for way, f in (("eager", eager), ("compiled", compiled))[: 1 + self.compiled]:
            self.runs += 1
            got, error = self.outcome(f)
            said = self.difference(text, got, error, expected, refused, way)
            if said:
                self.found[text, way, said[0]].append(f"{dtype}: {said[1]}")

    def difference(self, text: str, got: Any, error: Any, expected: Any, refused: Any, way: str) -> Any:
        if refused is not None:
            if "unsupported in linalg" in str(refused):  # (of halves, which ours are computed in float32)
                return None
            if error is None:
                return (
                    "not refused",
                    f"NumPy: {type(refused).__name__}: {str(refused)[:60]}; here {str(got)[:60]}",
                )
            if isinstance(error, type(refused).__mro__[:-3]):
                return None
            return (
                None if way == "compiled" else ("refused otherwise", f"{error!r:.90}; NumPy's {refused!r:.70}")
            )
        if error is not None:
            if way == "compiled" and type(error).__name__ in ("TraceError", "NotImplementedError"):
                return None
            return "refused", f"{type(error).__name__}: {str(error)[:150]}"
        return self.unlike(got, expected, text.startswith(ANY_ZERO), text.startswith(ONE_NAN))

    def report(self) -> list[str]:
        return [
            f"{text} | {way} | {what} | {len(said)}: {'; '.join(said[:3])}"
            for (text, way, what), said in self.found.items()
        ]

    def unlike(self, got: Any, expected: Any, any_zero: bool, one_nan: bool) -> Any:
        from compare import assert_near, ulps

        if isinstance(expected, tuple):
            if not isinstance(got, tuple) or len(got) != len(expected):
                return "structure", f"{got!r:.60}"
            for g, e in zip(got, expected, strict=True):
                said = self.unlike(g, e, any_zero, one_nan)
                if said:
                    return said
            return None
        if isinstance(got, tuple):
            return "structure", f"{got!r:.60}"
        if got.dtype != expected.dtype:
            return "dtype", f"{got.dtype}, NumPy's {expected.dtype}"
        if got.shape != expected.shape:
            return "shape", f"{got.shape}, NumPy's {expected.shape}"
        try:
            if got.dtype.kind not in "fc":
                np.testing.assert_array_equal(got, expected)
            else:
                if one_nan:
                    got, expected = (np.where(np.isnan(v), v.dtype.type(np.nan), v) for v in (got, expected))
                assert_near(got, expected, any_zero)
        except AssertionError:
            pass
        else:
            return None
        if got.dtype.kind in "fc":
            a, b = got.reshape(-1), expected.reshape(-1)
            parts = (
                [("", a, b)] if a.dtype.kind == "f" else [(".real", a.real, b.real), (".imag", a.imag, b.imag)]
            )
            for part, u, v in parts:
                for what, ask in (("NaN", np.isnan), ("infinity", np.isinf)):
                    if (ask(u) != ask(v)).any():
                        at = int(np.argmax(ask(u) != ask(v)))
                        return what + part, f"[{at}] {a[at]}, NumPy's {b[at]}"
                zeros = (u == 0) & (v == 0) & (np.signbit(u) != np.signbit(v))
                if zeros.any():
                    at = int(np.argmax(zeros))
                    return "sign of zero" + part, f"[{at}] {a[at]}, NumPy's {b[at]}"
            count, unit = ulps(got.dtype)
            largest = np.abs(b[np.isfinite(b)]).max(initial=0)
            off = np.where(np.isfinite(b), np.abs(a - b), 0)
            at = int(np.argmax(off))
            del count
            return (
                "values",
                f"[{at}] {a[at]!r}, NumPy's {b[at]!r} ({off[at] / unit / max(largest, 1e-300):.1f} units)",
            )
        at = int(np.argmax(got.reshape(-1) != expected.reshape(-1)))
        return "values", f"[{at}] {got.reshape(-1)[at]}, NumPy's {expected.reshape(-1)[at]}"


def cases() -> list[str]:
    known: list[str] = []
    for table in (ORDERS, SUMS, ELEMENTS, PLACES, MIXED, LINEAR, CASTS):
        known += table.strip().splitlines()
    return known + [line + "!" for line in WRITES.strip().splitlines()]


def main() -> int:
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    parser = argparse.ArgumentParser("python -m tests.gpuvalues", description=__doc__.splitlines()[0])
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--host", action="store_true")
    parser.add_argument("--eager", action="store_true", help="not as compiled programs")
    parser.add_argument("--only", default="")
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--part", default="0/1", help="of several processes this one's share, as 2/8")
    given = parser.parse_args()
    os.environ["MIRABELLE_CUDA"] = "simulated" if given.simulated or given.host else "auto"
    import mirabelle as mb

    attack = Attack(mb.HostArray if given.host else mb.CuArray, not given.eager)
    end = time.monotonic() + given.seconds
    part, parts = map(int, given.part.split("/"))
    left = 0
    chosen = [text for text in cases() if given.only in text][part::parts]
    for text in chosen:
        if time.monotonic() > end:
            left += 1
            continue
        for dtype in given.dtypes.split(","):
            attack.case(text, dtype, given.seed)
    lines = attack.report()
    print("\n".join(lines))
    print(f"{attack.runs} runs, {len(lines)} differences, {left} lines of {len(chosen)} left out")
    if given.out:
        given.out.write_text("\n".join(lines) + "\n")

    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
