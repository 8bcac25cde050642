"""What `python -m benchmarks functions` calls: an expression for each function, of arrays that it names.

x, y: normal numbers; p, u: of 0.5 to 2, of -0.9 to 0.9; z complex; o with NaN; s sorted; i, j, b: integers,
small ones, bytes; k: a permutation; m: a mask; w, v: a short vector, one as long as a side; A, B, S, I, T:
square matrices (S well conditioned, I of integers), a column; R: points in three dimensions.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass


def _names(text: str) -> list[str]:
    return text.split()


ARRAYS = frozenset("xypuzosijbkmwvABSITR")


@dataclass(frozen=True)
class Case:
    name: str
    text: str
    most: int = 10**7
    compared: bool = True

    @property
    def inputs(self) -> list[str]:
        return sorted({n.id for n in ast.walk(ast.parse(self.text)) if isinstance(n, ast.Name)} & ARRAYS)


_OF_X = _names(
    """
    abs arctan arcsinh cbrt ceil cos cosh deg2rad exp2 expm1 fabs fix floor isfinite isinf isnan
    isneginf isposinf negative positive rad2deg rint sign signbit sin sinc sinh spacing square tan tanh
    trunc modf frexp exp i0 all any argmax argmin max mean min prod ptp std sum var count_nonzero cumsum
    cumprod cumulative_sum sort argsort median diff ediff1d gradient flip nan_to_num iscomplex isreal
    copy ravel atleast_2d trim_zeros zeros_like ones_like nonzero flatnonzero argwhere real
    imag angle conj round unwrap nanmax nanmin nansum nanmean nanstd nanvar nanprod nanargmax nanargmin
    nancumsum nancumprod nanmedian cumulative_prod
    """
)
_OF_P = _names(
    """
    arccosh log log10 log1p log2 reciprocal sqrt
    """
)
_OF_U = _names(
    """
    arccos arcsin arctanh
    """
)
_OF_TWO = _names(
    """
    add subtract multiply divide maximum minimum fmax fmin copysign hypot arctan2 logaddexp logaddexp2
    nextafter equal greater greater_equal less less_equal not_equal logical_and logical_or logical_xor
    heaviside isclose allclose array_equal array_equiv dot inner vdot vecdot column_stack append
    concatenate stack hstack vstack dstack broadcast_arrays
    """
)
_OF_PARTS = ("concatenate", "stack", "hstack", "vstack", "dstack", "column_stack")
_OF_INTEGERS = _names(
    """
    bitwise_and bitwise_or bitwise_xor gcd lcm
    """
)
_OF_A = _names(
    """
    matrix_transpose transpose tril triu trace diagonal diag fliplr flipud rot90 cov corrcoef
    linalg.norm
    """
)
_ALONG = _names("sum mean max min std var argmax any cumsum sort argsort")
_OF_Z = _names("abs angle conj exp real sqrt sum")
_FOURIER = _names(
    """
    fft ifft rfft fftshift ifftshift hfft ihfft irfft
    """
)
_LINALG = _names(
    """
    cholesky det eigh eigvals eigvalsh eig inv pinv qr slogdet svd svdvals cond matrix_rank
    """
)

_GIVEN: dict[str, str | tuple[str, int]] = {
    "logical_not": "xp.logical_not(m)",
    "invert": "xp.invert(i)",
    "bitwise_count": "xp.bitwise_count(i)",
    "left_shift": "xp.left_shift(i, j)",
    "right_shift": "xp.right_shift(i, j)",
    "floor_divide": "xp.floor_divide(x, p)",
    "remainder": "xp.remainder(x, p)",
    "fmod": "xp.fmod(x, p)",
    "divmod": "xp.divmod(x, p)",
    "power": "xp.power(p, y)",
    "float_power": "xp.float_power(p, y)",
    "ldexp": "xp.ldexp(x, j)",
    "floor_divide, integers": "xp.floor_divide(i, j)",
    "remainder, integers": "xp.remainder(i, j)",
    "x * 2 + y": "x * 2 + y",
    "x[i]": "x[i % 1000]",
    "x[k]": "x[k]",
    "x[m]": "x[m]",
    "x[m] = number": "x[m] = 1.5",
    "x[k] = y": "x[k] = y",
    "x[::2]": "xp.copy(x[::2])",
    "x[::-1]": "xp.copy(x[::-1])",
    "softmax": "(lambda e: e / e.sum(-1, keepdims=True))(xp.exp(A - A.max(-1, keepdims=True)))",
    **{f"{f}, axis 0": f"xp.{f}(A, axis=0)" for f in _ALONG},
    **{f"{f}, axis 1": f"xp.{f}(A, axis=1)" for f in _ALONG},
    "median, axis 0": ("xp.median(A, axis=0)", 10**6),
    "count_nonzero, mask": "xp.count_nonzero(m)",
    "sum, mask": "xp.sum(m)",
    "sum, integers": "xp.sum(i)",
    "sort, integers": "xp.sort(i)",
    "argsort, integers": "xp.argsort(i)",
    "average": "xp.average(x, weights=p)",
    "quantile": "xp.quantile(x, [0.1, 0.5])",
    "percentile": "xp.percentile(x, 30)",
    "nanquantile": "xp.nanquantile(o, 0.3)",
    "argpartition": "xp.argpartition(x, 10)",
    "lexsort": ("xp.lexsort((i, j))", 10**6),
    "searchsorted": ("xp.searchsorted(s, x)", 10**6),
    "digitize": "xp.digitize(x, [-1.0, 0.0, 1.0])",
    "bincount": "xp.bincount(i)",
    "histogram": "xp.histogram(x, bins=50)",
    "histogram2d": ("xp.histogram2d(x, y, bins=20)", 10**6),
    "interp": ("xp.interp(x, s, y)", 10**6),
    "isin": ("xp.isin(i, j)", 10**6),
    "unique": "xp.unique(i)",
    "unique, floats": ("xp.unique(x)", 10**6),
    "unique_inverse": ("xp.unique_inverse(i)", 10**6),
    "union1d": ("xp.union1d(i, j)", 10**6),
    "intersect1d": ("xp.intersect1d(i, j)", 10**6),
    "setdiff1d": ("xp.setdiff1d(i, j)", 10**6),
    "setxor1d": ("xp.setxor1d(i, j)", 10**6),
    "where": "xp.where(m, x, y)",
    "clip": "xp.clip(x, -1, 1)",
    "select": "xp.select([m, x > 1], [x, y], 0.0)",
    "choose": "xp.choose(i % 2, (x, y))",
    "piecewise": ("xp.piecewise(x, [x < 0], [1.0, 2.0])", 10**6),
    "compress": "xp.compress(m, x)",
    "extract": "xp.extract(m, x)",
    "take": "xp.take(x, k)",
    "take_along_axis": "xp.take_along_axis(A, I, axis=1)",
    "put": "xp.put(x, k, y)",
    "putmask": "xp.putmask(x, m, 0.5)",
    "place": "xp.place(x, m, [0.5])",
    "put_along_axis": "xp.put_along_axis(A, I, 0.5, axis=1)",
    "copyto": "xp.copyto(x, y)",
    "fill_diagonal": "xp.fill_diagonal(A, 1.0)",
    "insert": "xp.insert(x, 5, 1.0)",
    "delete": "xp.delete(x, 5)",
    "repeat": ("xp.repeat(x, 3)", 10**6),
    "tile": ("xp.tile(x, 3)", 10**6),
    "resize": ("xp.resize(x, x.size * 2)", 10**6),
    "roll": "xp.roll(x, 7)",
    "roll, axis 1": "xp.roll(A, 7, axis=1)",
    "pad": "xp.pad(A, 1)",
    "pad, edge": "xp.pad(A, 2, mode='edge')",
    "reshape": "xp.reshape(A.T, (-1,))",
    "squeeze": "xp.squeeze(T)",
    "expand_dims": "xp.expand_dims(x, 0)",
    "swapaxes": "xp.copy(xp.swapaxes(A, 0, 1))",
    "moveaxis": "xp.copy(xp.moveaxis(A, 0, 1))",
    "broadcast_to": "xp.copy(xp.broadcast_to(v, (v.size, v.size)))",
    "block": "xp.block([[A, B], [B, A]])",
    "meshgrid": "xp.meshgrid(v, v)",
    "astype": "xp.astype(x, xp.float32)",
    "astype, integers": "xp.astype(i, xp.float64)",
    "packbits": "xp.packbits(m)",
    "unpackbits": ("xp.unpackbits(b)", 10**6),
    "arange": "xp.arange(x.size)",
    "linspace": "xp.linspace(0.0, 1.0, x.size)",
    "logspace": "xp.logspace(0.0, 1.0, x.size)",
    "geomspace": "xp.geomspace(1.0, 9.0, x.size)",
    "zeros": "xp.zeros(x.size)",
    "ones": "xp.ones(x.size)",
    "full": "xp.full(x.size, 1.5)",
    "full_like": "xp.full_like(x, 1.5)",
    "eye": "xp.eye(v.size)",
    "identity": "xp.identity(v.size)",
    "tri": "xp.tri(v.size)",
    "indices": "xp.indices(A.shape)",
    "fromfunction": "xp.fromfunction(lambda i, j: i + j, A.shape)",
    "vander": ("xp.vander(x, 3)", 10**6),
    "hanning": "xp.hanning(x.size)",
    "hamming": "xp.hamming(x.size)",
    "blackman": "xp.blackman(x.size)",
    "bartlett": "xp.bartlett(x.size)",
    "kaiser": ("xp.kaiser(x.size, 8.6)", 10**6),
    "diagflat": ("xp.diagflat(v)", 10**6),
    "tril_indices": ("xp.tril_indices(v.size)", 10**6),
    "unravel_index": "xp.unravel_index(k, (x.size, 1))",
    "ravel_multi_index": "xp.ravel_multi_index((i, j), (1000, 20))",
    "convolve": "xp.convolve(x, w)",
    "correlate": "xp.correlate(x, w)",
    "cross": "xp.cross(R, R[::-1])",
    "kron": ("xp.kron(v, v)", 10**6),
    "outer": "xp.outer(v, v)",
    "trapezoid": "xp.trapezoid(x)",
    "polyval": "xp.polyval(w, x)",
    "polyfit": ("xp.polyfit(s, x, 2)", 10**6),
    "polymul": ("xp.polymul(x, w)", 10**5),
    "roots": ("xp.roots(w)", 10**3),
    "matmul": ("xp.matmul(A, B)", 10**6),
    "matvec": "xp.matvec(A, v)",
    "vecmat": "xp.vecmat(v, A)",
    "tensordot": ("xp.tensordot(A, B, axes=1)", 10**6),
    "einsum": "xp.einsum('ij,ij->i', A, B)",
    "apply_along_axis": ("xp.apply_along_axis(lambda r: r.sum(), 1, A)", 10**5),
    "linalg.solve": ("xp.linalg.solve(S, v)", 10**6),
    "linalg.lstsq": ("xp.linalg.lstsq(S, v)[0]", 10**5),
    "linalg.matrix_power": ("xp.linalg.matrix_power(S, 3)", 10**5),
    "fft.fft2": "xp.fft.fft2(A)",
    "fft.rfft2": "xp.fft.rfft2(A)",
    "fft.fft, rows": "xp.fft.fft(A)",
}


def _cases() -> list[Case]:
    found = [Case(f, f"xp.{f}(x)") for f in _OF_X]
    found += [Case("partition", "xp.partition(x, x.size // 2)[x.size // 2]")]
    found += [Case("empty_like", "xp.empty_like(x)", compared=False)]
    found += [Case("array_split", "xp.array_split(x, 4)"), Case("unstack", "xp.unstack(A[:8])")]
    found += [Case(f, f"xp.{f}(p)") for f in _OF_P] + [Case(f, f"xp.{f}(u)") for f in _OF_U]
    found += [Case(f, f"xp.{f}((x, y))" if f in _OF_PARTS else f"xp.{f}(x, y)") for f in _OF_TWO]
    found += [Case(f, f"xp.{f}(i, j)") for f in _OF_INTEGERS] + [Case(f, f"xp.{f}(A)") for f in _OF_A]
    found += [Case(f"{f}, complex", f"xp.{f}(z)") for f in _OF_Z]
    found += [Case("multiply, complex", "xp.multiply(z, z)")]
    found += [Case(f"fft.{f}", f"xp.fft.{f}(x)") for f in _FOURIER]
    for f in _LINALG:
        text = "(S + S.T) / 2" if f in ("cholesky", "eigh", "eigvalsh") else "S"
        values = f not in ("eigh", "eig", "eigvals", "qr", "svd")  # (signs and orders are free)
        found.append(Case(f"linalg.{f}", f"xp.linalg.{f}({text})", 10**5, values))
    for name, given in _GIVEN.items():
        found.append(Case(name, given) if isinstance(given, str) else Case(name, *given))
    return found


CASES = _cases()

# Why a function is slower than NumPy's, where it is: what is known, and not to be had otherwise.
_VALUES = "a value, which fuses with what reads it; x.real and x.imag are the views that NumPy's returns"
_PAGES = "NumPy's zeros are pages that the system clears when they are first written; here they are written"
_STABLE = "orders are stable, as the array API has them; NumPy's stable ones take longer"
_ROWS = "mb.copy(x) has its rows side by side, which turns the array; NumPy's keeps columns: order='K'"
_DIAGONAL = "a view of the diagonal is written like any other, by the general way"
REASONS: dict[str, str] = {
    "real": _VALUES,
    "imag": _VALUES,
    "real, complex": _VALUES,
    "iscomplex": _PAGES,
    "zeros": _PAGES,
    "zeros_like": _PAGES,
    "fill_diagonal": _DIAGONAL,
    "diagflat": _PAGES,
    "apply_along_axis": "the function is called for each row, and works on an array of ours",
    "argsort, axis 0": _STABLE,
    "argsort, axis 1": _STABLE,
    "swapaxes": _ROWS,
    "moveaxis": _ROWS,
    "frexp": "the two results are one node of a tree, and each is asked for",
    "nanstd": "some ten operations on masks and values, and each has its start",
    "nanvar": "some ten operations on masks and values, and each has its start",
    "tile": "above 2**18 elements kernels write it, on two threads, which pays from a million on",
    "softmax": "three kernels, and each has its start",
}

# Other names for functions that are timed, by their own.
ALIASES = _names(
    """
    absolute acos acosh amax amin arange around array asanyarray asarray asin asinh atan atan2 atanh
    bitwise_invert bitwise_left_shift bitwise_not bitwise_right_shift concat conjugate degrees mod
    permute_dims pow radians true_divide ascontiguousarray asfortranarray asarray_chkfinite atleast_1d
    atleast_3d dsplit hsplit vsplit split rollaxis triu_indices unique_all unique_counts unique_values
    histogram_bin_edges histogramdd nanpercentile apply_over_axes sort_complex polyadd polysub polyder
    polyint polydiv poly real_if_close require
    """
)
# What computes nothing that could be timed: questions about dtypes and shapes, files, texts, iterators.
UNTIMED = _names(
    """
    __array_namespace_info__ array2string array_repr array_str broadcast broadcast_shapes can_cast
    common_type diag_indices diag_indices_from einsum_path empty finfo from_dlpack frombuffer fromfile
    fromiter fromstring generic genfromtxt get_printoptions iinfo iscomplexobj isdtype isfortran
    isrealobj isscalar issubdtype iterable ix_ load loadtxt mask_indices may_share_memory
    min_scalar_type ndenumerate ndim printoptions promote_types result_type save savetxt savez
    savez_compressed set_printoptions shape shares_memory size tril_indices_from triu_indices_from
    """
)
