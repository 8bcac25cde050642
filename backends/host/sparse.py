"""What sparse matrices ask of the host: NumPy checks their form, SciPy joins, multiplies and solves.

They are made of entries in any order, and parts of them taken, in C (`dispatch/csrc/sparse.c`), or by NumPy.

A matrix comes as `data, indices, indptr`: the entries of row i are data[indptr[i]:indptr[i + 1]], in
the columns that `indices` says, ascending and without repetition.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes import library, pool
from mirabelle.arraytypes.host import HostArray
from mirabelle.backends import csr
from mirabelle.backends.csr import index_dtype
from mirabelle.backends.host import threads
from mirabelle.dispatch.native import in_c
from mirabelle.dispatch.settings import settings


def scipy_sparse() -> Any:
    """scipy.sparse, or an error that says how to get it."""
    try:
        import scipy.sparse
    except ImportError:
        raise ImportError(
            "What joins, turns, multiplies and solves sparse matrices is SciPy's, and SciPy is not "
            "installed: `pip install scipy`."
        ) from None
    return scipy.sparse


def routine(name: str) -> Callable[[Any], Any]:
    return library.routine(HostArray, f"csr_{name}")


# Form


def _rows(indptr: np.ndarray) -> np.ndarray:
    """The row of each entry."""
    return np.repeat(np.arange(indptr.size - 1, dtype=indptr.dtype), np.diff(indptr))


def _indptr(rows: np.ndarray, n: int, kind: np.dtype) -> np.ndarray:
    out = np.zeros(n + 1, kind)
    np.cumsum(np.bincount(rows, minlength=n), out=out[1:])
    return out


def _from_triples(data: np.ndarray, i: np.ndarray, j: np.ndarray, shape: tuple[int, int]) -> Any:
    """The form of entries in any order, those of one place added up as they come."""
    kind = index_dtype(shape, data.size)
    if data.dtype.char in _SUMS:
        return _dealt(data, i, j, shape, kind)
    order = np.lexsort((j, i))
    data, i, j = data[order], i[order], j[order]
    if data.size:
        first = np.r_[True, (np.diff(i) != 0) | (np.diff(j) != 0)]
        if not first.all():  # entries given more than once are added up
            add = np.logical_or if data.dtype.kind == "b" else np.add
            data = add.reduceat(data, np.flatnonzero(first)).astype(data.dtype, copy=False)
            i, j = i[first], j[first]
    return data, j.astype(kind), _indptr(i, shape[0], kind)


_FIT_A_CACHE = 1 << 19
# How entries are added up by sparse.c: what kind of numbers, and how many bytes each part of one has.
_SUMS = {"?": (0, 1)} | {c: (1, np.dtype(c).itemsize) for c in "bhilqBHILQ"} | {"f": (2, 4), "d": (2, 8)}
_SUMS |= {"F": (2, 4), "D": (2, 8)}


def _dealt(data: np.ndarray, i: np.ndarray, j: np.ndarray, shape: tuple[int, int], kind: np.dtype) -> Any:
    """The same in C: to their rows first, then each row by columns, which threads share."""
    i, j = (x if x.dtype.char in "ilq" else x.astype(np.int64) for x in map(np.ascontiguousarray, (i, j)))
    values = pool.empty(data.shape, data.dtype)
    indices = pool.empty(data.shape, kind)
    indptr = np.empty(shape[0] + 1, kind)
    # (Of many entries, first a copy to groups of rows, each of which fits a cache.)
    scratch = data.size * (8 + data.itemsize) if data.nbytes > _FIT_A_CACHE else 0
    in_c.csr_dealt(
        i, j, np.ascontiguousarray(data), indptr, indices, values, pool.empty((scratch,), np.dtype(np.uint8))
    )
    parts = 1 if data.size < settings.thread_size else 4 * settings.num_threads
    edges = [shape[0] * k // parts for k in range(parts + 1)]
    repeated: list[int] = []

    def order(first: int, last: int) -> None:
        repeated.append(in_c.csr_ordered(indptr, indices, values, first, last))

    threads.run_all([functools.partial(order, *part) for part in itertools.pairwise(edges)])
    if any(repeated):
        left = in_c.csr_merged(indptr, indices, values, *_SUMS[data.dtype.char])
        values, indices = values[:left], indices[:left]
        if 4 * left < 3 * data.size:  # (else what they leave free is not worth a copy)
            values, indices = values.copy(), indices.copy()
    return values, indices, indptr


def _on_numpy(f: Callable[..., Any]) -> Callable[..., Any]:
    def _(*arrays: Any, **options: Any) -> Any:
        return f(np, *arrays, **options)

    return _


_PLACE = csr.Place(
    lambda xp, indptr: _rows(indptr),
    lambda xp, rows, n, kind: _indptr(rows, n, kind),
    lambda xp, data, i, j, shape: _from_triples(data, i, j, shape),
    lambda xp, a: np.nonzero(a),
)
for _name, _routine in csr.routines(_PLACE).items():
    routine(_name)(_on_numpy(_routine))


@routine("joined")
def _(*patterns: np.ndarray, columns: int, common: bool) -> Any:
    """The pattern of several: of all entries, or of the common ones; and where each finds its own.

    Returned are indices and indptr, and for each matrix the position of its entry, or the number of its
    entries where it has none.
    """
    indices, indptr = patterns[:2]
    found = [np.arange(indices.size)]
    for j, p in zip(patterns[2::2], patterns[3::2], strict=True):
        before = indices.size
        indices, indptr, first, second = _joined_two((indices, indptr), (j, p), columns, common)
        inside = first < before
        first = np.minimum(first, max(before - 1, 0))
        sizes = patterns[: 2 * len(found) : 2]
        found = [np.where(inside, f[first] if before else 0, x.size) for f, x in zip(found, sizes, strict=True)]
        found.append(second)
    return indices, indptr, *found


def _joined_two(a: tuple[Any, Any], b: tuple[Any, Any], columns: int, common: bool) -> tuple[Any, ...]:
    """The pattern of two, and the positions in both: as entries of a sum, in its lower and upper half."""
    (indices1, indptr1), (indices2, indptr2) = a, b
    shape = (indptr1.size - 1, columns)
    if max(indices1.size, indices2.size) >= (1 << 31) - 1:
        raise ValueError(
            "Sparse matrices of more than two thousand million entries are not joined. Take parts."
        )
    number1 = np.arange(1, indices1.size + 1, dtype=np.int64)
    number2 = np.arange(1, indices2.size + 1, dtype=np.int64) << 32
    both = _matrix(number1, indices1, indptr1, shape) + _matrix(number2, indices2, indptr2, shape)
    kind = index_dtype(shape, both.nnz)
    indices, indptr = both.indices.astype(kind, copy=False), both.indptr.astype(kind, copy=False)
    first, second = both.data & 0xFFFFFFFF, both.data >> 32
    if common:
        kept = (first > 0) & (second > 0)
        indptr = _indptr(_rows(indptr)[kept], shape[0], kind)
        indices, first, second = indices[kept], first[kept], second[kept]
    # (0 is "none": the position behind the last)
    return (
        indices, indptr, np.where(first, first - 1, indices1.size), np.where(second, second - 1, indices2.size),
    )  # fmt: skip


_DIRECT: dict[str, Any] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": lambda a, b: a.multiply(b),
}


@routine("combined")
def _(*parts: np.ndarray, name: str, shape: Any) -> Any:
    """The sum, the difference or the elementwise product of two sparse matrices."""
    a, indices1, indptr1, b, indices2, indptr2 = parts
    made = _DIRECT[name](_matrix(a, indices1, indptr1, shape), _matrix(b, indices2, indptr2, shape))
    return _triple(made, a.dtype)


def _numbered(indices: tuple[np.ndarray, ...], columns: int) -> tuple[list[np.ndarray], int]:
    """Columns as numbers that are small enough for row * columns + column to be one number."""
    if columns < 1 << 31:
        return [j.astype(np.int64) for j in indices], max(columns, 1)
    used, numbers = np.unique(np.concatenate(indices), return_inverse=True)
    return np.split(numbers, np.cumsum([j.size for j in indices])[:-1]), max(used.size, 1)


@routine("lookup")
def _(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, i: Any, j: Any, *, columns: int) -> Any:
    """The entries at coordinates."""
    i, j = np.broadcast_arrays(np.asarray(i, np.int64), np.asarray(j, np.int64))
    numbers, count = _numbered((indices, j.reshape(-1)), columns)
    keys = _rows(indptr).astype(np.int64) * count + numbers[0]
    wanted = i * count + numbers[1].reshape(j.shape)
    at = np.minimum(np.searchsorted(keys, wanted), max(keys.size - 1, 0))
    if not keys.size:
        return np.zeros(i.shape, data.dtype)
    return np.where(keys[at] == wanted, data[at], data.dtype.type(0))


@routine("block")
def _(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, rows: np.ndarray, along: tuple[int, int, int],
    *, columns: int,
) -> Any:  # fmt: skip
    """Some rows in the order given, and every step-th column from a first one on: (first, step, how many)."""
    first, step, width = along
    every = along == (0, 1, columns)
    if every and _in_a_row(rows):
        part = slice(int(indptr[rows[0]]), int(indptr[rows[-1] + 1]))
        kind = index_dtype((rows.size, width), part.stop - part.start)
        begins = indptr[rows[0] : rows[-1] + 2] - indptr[rows[0]]
        return data[part].copy(), indices[part].astype(kind), begins.astype(kind)
    if width and data.dtype.itemsize <= 16:
        return _taken(data, indices, indptr, rows, (0, 0, columns) if every else along)
    counts = np.diff(indptr)[rows]
    starts = indptr[:-1][rows]
    before = np.cumsum(counts) - counts
    at = np.repeat(starts - before, counts) + np.arange(int(counts.sum()))
    i = np.repeat(np.arange(rows.size), counts)
    values, j = data[at], indices[at].astype(np.int64)
    kind = index_dtype((rows.size, width), at.size)
    if not every:
        shifted = (j - first) * (1 if step > 0 else -1)
        keep = (shifted >= 0) & (shifted % abs(step) == 0) & (shifted // abs(step) < width)
        values, j, i = values[keep], shifted[keep] // abs(step), i[keep]
        if step < 0:
            return _from_triples(values, i, j, (rows.size, width))
    return values, j.astype(kind), _indptr(i, rows.size, kind)


def _in_a_row(rows: np.ndarray) -> bool:
    return bool(rows.size and rows[-1] - rows[0] == rows.size - 1 and (np.diff(rows) == 1).all())


def _taken(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, rows: np.ndarray, along: tuple[int, int, int]
) -> Any:
    """The same in C: entries are counted, and then taken."""
    rows = np.ascontiguousarray(rows if rows.dtype.char in "ilq" else rows.astype(np.int64))
    parts = *map(np.ascontiguousarray, (data, indices, indptr)), rows, *along
    begins = np.empty(rows.size + 1, np.int64)
    in_c.csr_taken(*parts, begins)
    kind = index_dtype((rows.size, along[2]), int(begins[-1]))
    taken, values = (pool.empty((int(begins[-1]),), d) for d in (kind, data.dtype))
    in_c.csr_taken(*parts, begins, taken, values)
    return values, taken, begins.astype(kind, copy=False)


_LINES: dict[str, Any] = {
    "sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum, "any": np.logical_or,
    "all": np.logical_and,
}  # fmt: skip


@routine("lines")
def _(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, *, name: str, axis: int, shape: Any, dtype: Any
) -> Any:
    """One result of a reduction for each row (axis 1) or column (axis 0)."""
    ufunc, length = _LINES[name], shape[axis]
    if axis == 0 and name == "sum" and data.dtype == np.float64 == (dtype or np.float64):
        return _matrix(data, indices, indptr, shape).T @ np.ones(shape[0])  # (as SciPy does)
    if axis == 0:
        data, _, indptr = _by_columns(data, indices, indptr, shape)
    counts = np.diff(indptr)
    kept = counts > 0
    zero = data.dtype.type(0)
    start = zero if name not in ("any", "all") else np.False_
    options = {} if dtype is None else {"dtype": dtype}
    out = np.full(counts.size, start, ufunc.reduce(data[:0], initial=start, **options).dtype)
    if name == "all" and not length:
        out[...] = True
    if data.size:
        found = ufunc.reduceat(data, indptr[:-1][kept], **options)
        out[kept] = found
    if name in ("prod", "min", "max", "all"):  # (to a sum and to "any", zeros add nothing)
        partly = kept & (counts < length)
        out[partly] = ufunc(out[partly], start)
    return out


# What SciPy does


def _matrix(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: Any) -> Any:
    made = scipy_sparse().csr_array((data, indices, indptr), shape=shape, copy=False)
    made.has_canonical_format = True
    return made


@routine("scipy")
def _(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, *, shape: Any) -> Any:
    return _matrix(data, indices, indptr, shape)


def _triple(x: Any, dtype: np.dtype) -> Any:
    x = x.tocsr()
    x.sum_duplicates()
    kind = index_dtype(x.shape, x.nnz)
    return x.data.astype(dtype, copy=False), x.indices.astype(kind), x.indptr.astype(kind)


def _wide(x: np.ndarray) -> np.ndarray:
    """SciPy's sparse matrices have no half precision."""
    return x.astype(np.float32) if x.dtype.char == "e" else x


@routine("product")
def _(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, b: np.ndarray, *, shape: Any, left: bool
) -> Any:
    """S @ b, or b @ S."""
    if left and b.ndim == 1 and _known(data, indices, indptr, b):
        return _times(data, indices, indptr, b)
    dtype = np.result_type(data, b)
    s, b = _matrix(_wide(data), indices, indptr, shape), _wide(b)
    if b.ndim <= 2:
        found = s @ b if left else b @ s
    elif left:  # all columns of a stack beside each other
        columns = np.moveaxis(b, -2, 0)
        found = np.moveaxis((s @ columns.reshape(shape[1], -1)).reshape(shape[0], *columns.shape[1:]), 0, -2)
    else:
        found = (b.reshape(-1, shape[0]) @ s).reshape(*b.shape[:-1], shape[1])
    return np.asarray(found).astype(dtype, copy=False)


def _known(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, b: np.ndarray) -> bool:
    """Is this a product of singles or doubles, without gaps in memory?"""
    return (
        data.dtype == b.dtype
        and data.dtype.char in "fd"
        and data.dtype.isnative
        and indices.dtype == indptr.dtype
        and indices.dtype.char in "ilq"
        and all(x.flags.c_contiguous for x in (data, indices, indptr, b))
    )


def _times(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A product with a vector, in C, with the bits of SciPy's: large ones on several threads."""
    rows = indptr.size - 1
    parts = min(settings.num_threads, data.size // settings.thread_size)
    if parts < 2:
        y = np.empty(rows, data.dtype)
        in_c.csr_times(data, indices, indptr, b, y, 0, rows)
        return y
    y = pool.empty((rows,), data.dtype)
    shares = np.arange(1, parts, dtype=indptr.dtype) * (data.size // parts)
    ends = [0, *np.searchsorted(indptr, shares).tolist(), rows]
    threads.run_all(
        [
            functools.partial(in_c.csr_times, data, indices, indptr, b, y, *piece)
            for piece in itertools.pairwise(ends)
        ]
    )
    return y


@routine("times_csr")
def _(*parts: np.ndarray, shapes: Any) -> Any:
    a, indices1, indptr1, b, indices2, indptr2 = parts
    product = _matrix(_wide(a), indices1, indptr1, shapes[0]) @ _matrix(_wide(b), indices2, indptr2, shapes[1])
    return _triple(product, np.result_type(a, b))


@routine("transposed")
def _(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, *, shape: Any) -> Any:
    return _by_columns(data, indices, indptr, shape)


def _by_columns(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: Any) -> Any:
    """The entries in the order of columns, their rows, and where each column begins."""
    half = data.dtype.char == "e"
    made = _matrix(data.view(np.int16) if half else data, indices, indptr, shape).tocsc()
    kind = index_dtype(shape, data.size)
    return made.data.view(data.dtype), made.indices.astype(kind), made.indptr.astype(kind)


def _factors(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, n: int) -> Any:
    """The LU factors (SuperLU), with rows and columns exchanged to stay sparse."""
    scipy_sparse()
    import scipy.sparse.linalg

    try:
        return scipy.sparse.linalg.splu(_matrix(data, indices, indptr, (n, n)).tocsc())
    except RuntimeError as e:
        raise np.linalg.LinAlgError("Singular matrix" if "singular" in str(e) else str(e)) from None


@routine("factors")
def _(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> Any:
    """SuperLU's object; None for an empty matrix."""
    return _factors(data, indices, indptr, indptr.size - 1) if indptr.size > 1 else None


@routine("factored_solve")
def _(factors: Any, b: np.ndarray) -> Any:
    if not b.size:
        return b.copy()
    if b.ndim <= 2:
        return factors.solve(np.ascontiguousarray(b))
    columns = np.moveaxis(b, -2, 0)
    x = factors.solve(np.ascontiguousarray(columns.reshape(columns.shape[0], -1)))
    return np.moveaxis(x.reshape(columns.shape), 0, -2)


@routine("solve")
def _(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, b: np.ndarray) -> Any:
    factors = _factors(data, indices, indptr, indptr.size - 1) if b.size else None
    return library.routine_of(HostArray, "csr_factored_solve")(factors, b)


@routine("det")
def _(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> Any:
    sign, d = _triangle(data, indices, indptr)
    return data.dtype.type(sign * np.prod(d))


@routine("slogdet")
def _(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> Any:
    sign, d = _triangle(data, indices, indptr)
    size = np.abs(d)
    logarithm = np.log(size).sum(dtype=size.dtype)
    return data.dtype.type(sign * np.prod(d / size) if size.all() else 0), size.dtype.type(logarithm)


def _triangle(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> tuple[int, np.ndarray]:
    """The sign of the exchanges of rows and columns, and the diagonal of the upper factor."""
    n = indptr.size - 1
    if not n:
        return 1, np.ones(0, data.dtype)
    try:
        factors = _factors(data, indices, indptr, n)
    except np.linalg.LinAlgError:
        return 1, np.zeros(1, data.dtype)
    return _parity(factors.perm_r) * _parity(factors.perm_c), factors.U.diagonal()


def _parity(order: np.ndarray) -> int:
    """The sign of a permutation: by its cycles, of which each of even length turns it."""
    seen, sign = np.zeros(order.size, bool), 1
    for i in range(order.size):
        length = 0
        while not seen[i]:
            seen[i] = True
            i, length = order[i], length + 1
        sign = -sign if length and length % 2 == 0 else sign
    return sign
