"""Library routines of distributed arrays on the ranks of mpiexec: `routines.py`, or some checks by their names.

All results are compared with NumPy's. Nothing may be brought together on one rank: a warning says so, and
warnings are errors here.
"""

import itertools
import os
import sys
import traceback
import warnings

import numpy as np
from compare import assert_same
from scipy import linalg as scipy_linalg

import mirabelle as mb
from mirabelle.arraytypes.distributed import routines

# The type of local arrays (on cards: MIRABELLE_TEST_ARRAY=CuArray).
LOCAL = getattr(mb, os.environ.get("MIRABELLE_TEST_ARRAY", "HostArray"))
DHost = mb.DArray[LOCAL]
DRef = mb.DArray[mb.RefArray]
COMM = mb.distributed.communicator()
CHECKS = {}
random = np.random.default_rng(3)


def check(f):
    CHECKS[f.__name__] = f
    return f


def layouts(shape):
    """Ways to divide a shape: in blocks, with empty parts, dealt out, on meshes of ranks, not at all.

    (All of them on three ranks, on others those that mean something else there.)
    """
    n, size = shape[0], COMM.size
    yield None
    if size == 4 and len(shape) > 1:
        yield mb.distributed.Layout(mb.distributed.Block(0), mb.distributed.Block(1), mesh=(2, 2))
        yield mb.distributed.Layout(mb.distributed.Block(1), mb.distributed.Replicated(), mesh=(2, 2))
    elif size == 3:
        yield mb.distributed.BlockCyclic(0, 2)
        yield mb.distributed.Ragged(0, (0, 0, n))
        if n > 2:
            yield mb.distributed.Ragged(0, (n - 2, 0, 2))
        if len(shape) > 1:
            yield mb.distributed.Block(1)
            yield mb.distributed.Layout(mb.distributed.Replicated(), mb.distributed.Block(0), mesh=(1, 3))
        yield mb.distributed.Replicated()
    elif size == 2:
        yield mb.distributed.BlockCyclic(0, 3)


def divided(x, family=DHost):
    for layout in layouts(x.shape):
        yield family(x, layout=layout)


def few(x):
    """In blocks, and with all of it on the last rank."""
    for layout in (None, mb.distributed.Ragged(0, (0,) * (COMM.size - 1) + x.shape[:1])):
        yield DHost(x, layout=layout)


def shown(x, family=DHost):
    """Arrays and views of them, with NumPy's."""
    for a in divided(x, family):
        yield a, x
    first = family(x)
    yield first[::-1], x[::-1]
    if x.ndim > 1:
        yield first.mT, x.mT
        yield family(x, layout=mb.distributed.Block(1))[1:, ::2], x[1:, ::2]


def same(found, wanted, close=False):
    """Results equal NumPy's; `close` ones within rounding."""
    if isinstance(wanted, (tuple, list)):
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            same(a, b, close)
        return
    found = np.asarray(mb.to_numpy(found)) if hasattr(found, "layout") or hasattr(found, "place") else found
    wanted = np.asarray(wanted)
    if close:
        tolerance = 1e-10 if wanted.dtype.char in "dDl" else 1e-4
        assert np.shape(found) == wanted.shape, (np.shape(found), wanted.shape)
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
    else:
        assert_same(found, wanted)


def both(f, *operands, **options):
    """The function by mirabelle's and by NumPy's name of each operand."""
    (a, x) = operands[0]
    rest = operands[1:]
    close = options.pop("close", False)
    same(
        getattr(mb, f)(a, *[r[0] for r in rest], **options),
        getattr(np, f)(x, *[r[1] for r in rest], **options),
        close,
    )


# The checks


@check
def sorts():
    for shape in ((13, 9), (9, 2)):
        x = random.normal(size=shape)
        x[1, 1] = np.nan
        for values in (x, random.integers(0, 4, size=shape)):
            for (a, b), axis in itertools.product(shown(values), (0, 1, None)):
                same(mb.sort(a, axis=axis), np.sort(b, axis=axis))
                same(mb.argsort(a, axis=axis), np.argsort(b, axis=axis, kind="stable"))
    x = random.integers(0, 5, size=(6, 5))
    for a in divided(x):
        same(mb.sort(a, axis=0, descending=True), np.sort(x, axis=0)[::-1])
        same(mb.partition(a, 2, axis=0)[2], np.partition(x, 2, axis=0)[2])


@check
def sorts_of_a_line():
    for n in (1, 2, 17, 100):
        kinds = random.integers(0, 3, size=n)
        special = np.array([1 + 1j, 2, np.nan])[kinds]
        for x in (random.normal(size=n), kinds, special, kinds > 0, np.zeros(n), kinds.astype("i1")):
            for a, b in shown(x):
                same(mb.sort(a), np.sort(b))
                same(mb.argsort(a), np.argsort(b, kind="stable"))
    x = random.normal(size=40)
    a = mb.sort(DHost(x))
    assert a.layout == DHost(x).layout
    same(mb.sort(DHost(x), descending=True), np.sort(x)[::-1])
    same(mb.lexsort([DHost(x), DHost(x > 0)]), np.lexsort([x, x > 0]))
    same(mb.sort_complex(DHost(x)), np.sort_complex(x))


@check
def distinct():
    for x in (
        random.integers(0, 5, size=(12, 5)),
        random.integers(0, 50, size=60) / 7,
        np.array([np.nan, 1, np.nan]),
    ):
        options = {"return_index": True, "return_inverse": True, "return_counts": True}
        for a, b in shown(x):
            same(mb.unique(a, **options), np.unique(b, **options))
            same(mb.unique_values(a), np.unique(b, equal_nan=False))
            same(tuple(mb.unique_counts(a)), np.unique(b, equal_nan=False, return_counts=True))
    x, y = random.integers(0, 20, size=30), random.integers(10, 30, size=7)
    for a in divided(x):
        b = DHost(y)
        for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
            same(getattr(mb, name)(a, b), getattr(np, name)(x, y))
            same(getattr(mb, name)(b, a), getattr(np, name)(y, x))
        same(mb.intersect1d(a, b, return_indices=True), np.intersect1d(x, y, return_indices=True))
        same(mb.isin(a, b), np.isin(x, y))
        same(mb.isin(b, a, invert=True), np.isin(y, x, invert=True))


@check
def looked_up():
    table = np.sort(random.normal(size=25))
    for x in (random.normal(size=(13, 4)), random.normal(size=60)):
        for a, b in shown(x):
            t = DHost(table)
            same(mb.searchsorted(t, a, side="right"), np.searchsorted(table, b, side="right"))
            same(mb.digitize(a, t), np.digitize(b, table))
            same(mb.interp(a, t, t * 2), np.interp(b, table, table * 2))
            same(mb.around(a, 1), np.around(b, 1))
    for a in divided(table):
        same(mb.searchsorted(a, DHost([0.0, 0.5])), np.searchsorted(table, [0.0, 0.5]))
    places = random.integers(0, 6, size=(5, 3))
    for a in divided(places):
        same(mb.unravel_index(a, (2, 3)), np.unravel_index(places, (2, 3)))
        same(mb.ravel_multi_index((a, a), (6, 7)), np.ravel_multi_index((places, places), (6, 7)))


@check
def failures_are_shared():
    """What one rank alone finds wrong, all raise."""
    a = DHost(np.array([0] * 20 + [7]), layout=mb.distributed.Block(0))
    for work in (lambda: mb.unravel_index(a, (2, 3)), lambda: mb.bincount(a - 1)):
        try:
            work()
        except ValueError:
            continue
        raise AssertionError("it did not fail")
    for bad, work in (
        (np.zeros((8, 8)), lambda x: mb.linalg.solve(x, DHost(np.ones(8)))),
        (np.zeros((8, 8)), mb.linalg.inv),
        (np.diag([1.0] * 6 + [-1.0, 1.0]), mb.linalg.cholesky),
        (np.stack([np.eye(3)] * 5 + [np.zeros((3, 3))]), mb.linalg.inv),
    ):
        try:
            work(DHost(bad))
        except np.linalg.LinAlgError:
            continue
        raise AssertionError("it did not fail")


@check
def counted():
    x, w = random.normal(size=(13, 5)), random.normal(size=(13, 5))
    i = random.integers(0, 6, size=(13, 5))
    for (a, b), (k, j) in zip(shown(x), shown(i), strict=True):
        both("histogram", (a, b), close=True)
        both("histogram", (k, j), bins=[0, 1, 3, 6], density=True, close=True)
        both("argwhere", (k > 3, j > 3))
        both("flatnonzero", (k > 3, j > 3))
    for a, k in zip(divided(x), divided(i), strict=True):
        both("histogram", (a, x), bins=5, range=(-1, 1), weights=None, close=True)
        same(
            mb.histogram(a, bins=5, range=(-1, 1), weights=DHost(w)),
            np.histogram(x, bins=5, range=(-1, 1), weights=w),
            close=True,
        )
        both("histogram_bin_edges", (a, x), bins=4)
        found, wanted = mb.histogramdd(a[:, :2], bins=3), np.histogramdd(x[:, :2], bins=3)
        same(found[0], wanted[0], close=True)
        same(found[1], list(wanted[1]), close=True)
        same(mb.bincount(k[:, 0]), np.bincount(i[:, 0]))
    for a, k in zip(divided(x[:, 0]), divided(i[:, 0]), strict=True):
        same(mb.bincount(k, weights=DHost(w[:, 0]), minlength=9), np.bincount(i[:, 0], w[:, 0], 9), close=True)
        same(
            mb.histogram2d(a, DHost(w[:, 0]), bins=[3, 4]),
            np.histogram2d(x[:, 0], w[:, 0], bins=[3, 4]),
            close=True,
        )


@check
def quantiles():
    for shape in ((13, 9), (12, 2), (40,)):
        x = random.normal(size=shape)
        y = x.copy()
        y.flat[3] = np.nan
        axes = (None, 0, 1, (0, 1)) if len(shape) > 1 else (None,)
        for values, axis in itertools.product((x, y, random.integers(0, 9, size=shape)), axes):
            for a in divided(values) if values is y and axis == 0 else few(values):
                options = {"axis": axis, "keepdims": axis != 0}
                same(mb.median(a, **options), np.median(values, **options), close=True)
                same(mb.nanmedian(a, **options), np.nanmedian(values, **options), close=True)
                same(
                    mb.percentile(a, [10, 50.5], **options),
                    np.percentile(values, [10, 50.5], **options),
                    close=True,
                )
                same(mb.nanquantile(a, 0.3, **options), np.nanquantile(values, 0.3, **options), close=True)
    for method in ("lower", "higher", "midpoint", "hazen", "weibull", "median_unbiased"):
        same(mb.quantile(DHost(x), 0.3, method=method), np.quantile(x, 0.3, method=method), close=True)


@check
def transforms():
    for n in (1, 5, 60, 97):
        x = random.normal(size=n)
        z = x + 1j * random.normal(size=n)
        for length, norm in ((None, None), (n + 3, "ortho"), (max(n - 2, 1), "forward")):
            for name, values in (
                ("fft", z),
                ("ifft", z),
                ("fft", x),
                ("rfft", x),
                ("irfft", z),
                ("hfft", z),
                ("ihfft", x),
            ):
                if n == 1 and length is None and name in ("irfft", "hfft"):
                    continue
                for a in divided(values) if norm == "ortho" else few(values):
                    wanted = getattr(np.fft, name)(values, n=length, norm=norm)
                    same(getattr(mb.fft, name)(a, n=length, norm=norm), wanted, close=True)
        for a in divided(x):
            same(mb.fft.fftshift(a), np.fft.fftshift(x))
            same(mb.fft.ifftshift(a), np.fft.ifftshift(x))
    single = random.normal(size=64).astype("f4")
    found = mb.fft.fft(DHost(single))
    assert found.dtype == np.complex64
    same(found, np.fft.fft(single), close=True)


@check
def transforms_of_several_axes():
    for shape in ((9, 12), (12, 3), (4, 5, 6)):
        x = random.normal(size=shape)
        z = x + 1j * random.normal(size=shape)
        for values in (x, z):
            for a, b in shown(values):
                names = ("rfftn",) if values is x else ("fftn", "ifftn", "irfftn")
                for name in names:
                    same(getattr(mb.fft, name)(a), getattr(np.fft, name)(b), close=True)
        for a, axis in itertools.product(divided(z), range(len(shape))):
            same(mb.fft.fft(a, axis=axis), np.fft.fft(z, axis=axis), close=True)
            same(mb.fft.fftshift(a, axes=axis), np.fft.fftshift(z, axes=axis))


@check
def places():
    for shape in ((13, 9), (40,), (4, 5, 6)):
        x, i = random.normal(size=shape), random.integers(0, 6, size=shape)
        for a, b in shown(x):
            for shift, axis in ((3, None), (-2, 0), (5, -1)):
                same(mb.roll(a, shift, axis=axis), np.roll(b, shift, axis=axis))
            same(mb.tile(a, (2, 3)), np.tile(b, (2, 3)))
            for axis in (0, -1):
                counts = random.integers(0, 4, size=b.shape[axis])
                same(mb.repeat(a, DHost(counts), axis=axis), np.repeat(b, counts, axis=axis))
                same(mb.repeat(a, 3, axis=axis), np.repeat(b, 3, axis=axis))
            for mode in ("constant", "reflect"):
                same(mb.pad(a, 2, mode=mode), np.pad(b, 2, mode=mode))
        for a, k in zip(divided(x), divided(i), strict=True):
            for axis in range(len(shape)):
                same(mb.concatenate([a, k, a], axis=axis), np.concatenate([x, i, x], axis=axis))
                same(mb.stack([a, k], axis=axis), np.stack([x, i], axis=axis))
                same(mb.take_along_axis(a, mb.argsort(a, axis=axis), axis=axis), np.sort(x, axis=axis))
                same(mb.cumulative_sum(a, axis=axis), np.cumsum(x, axis=axis), close=True)
            if len(shape) > 1:
                for mode in ("linear_ramp", "mean", "maximum", "median"):
                    same(mb.pad(a, 2, mode=mode), np.pad(x, 2, mode=mode), close=True)
                for k in (-2, 0, 3):
                    same(mb.tril(a, k=k), np.tril(x, k))
                    same(mb.triu(a.mT, k=k), np.triu(x.mT, k))
    same(mb.eye(2, 5, k=1, device=DHost), np.eye(2, 5, k=1))
    same(mb.resize(DHost(x), (7, 30)), np.resize(x, (7, 30)))


@check
def products():
    x, y = random.normal(size=(13, 9)), random.normal(size=(13, 9))
    for a, b in zip(divided(x), divided(y), strict=True):
        same(mb.vecdot(a, b), np.vecdot(x, y), close=True)
        same(mb.kron(a, DHost(np.ones((2, 2)))), np.kron(x, np.ones((2, 2))), close=True)
        same(mb.einsum("ij,kj->ik", a, b), x @ y.T, close=True)
        same(mb.linalg.trace(a), np.trace(x), close=True)
        same(mb.linalg.norm(a), np.linalg.norm(x), close=True)
        same(mb.cross(a[:, :3], b[:, :3]), np.cross(x[:, :3], y[:, :3]), close=True)
    line = random.normal(size=40)
    for n, mode in itertools.product((1, 4, 5, 60), ("full", "same", "valid")):
        v = random.normal(size=n)
        for a in divided(line):
            same(mb.convolve(a, DHost(v), mode), np.convolve(line, v, mode), close=True)
            same(mb.correlate(a, DHost(v), mode), np.correlate(line, v, mode), close=True)


@check
def systems():
    for n, kind in itertools.product((1, 7, 150), ("d", "D")):
        x = random.normal(size=(n, n)).astype(kind)
        if kind == "D":
            x += 1j * random.normal(size=(n, n))
        s = x @ x.conj().T + n * np.eye(n)
        b, c = random.normal(size=n), random.normal(size=(n, 5))
        ways = list(layouts((n, n))) if n == 7 and kind == "d" else [None, mb.distributed.Block(1)]
        for layout in ways:
            a, p = DHost(x, layout=layout), DHost(s, layout=layout)
            same(mb.linalg.solve(a, DHost(b)), np.linalg.solve(x, b), close=True)
            same(mb.linalg.solve(p.mT, DHost(c)), np.linalg.solve(s.T, c), close=True)
            same(mb.linalg.inv(p), np.linalg.inv(s), close=True)
            same(tuple(mb.linalg.slogdet(a)), tuple(np.linalg.slogdet(x)), close=True)
            same(mb.linalg.det(a) / np.linalg.det(x), np.ones((), kind), close=True)
            same(mb.linalg.cholesky(p), np.linalg.cholesky(s), close=True)
            same(mb.linalg.cholesky(p, upper=True), np.linalg.cholesky(s, upper=True), close=True)
            same(mb.linalg.lu_factor(p), scipy_linalg.lu_factor(s), close=True)
            for lower, trans in itertools.product((True, False), (0, 1, 2)):
                wanted = scipy_linalg.solve_triangular(s, c, lower=lower, trans=trans)
                same(mb.linalg.solve_triangular(p, DHost(c), lower=lower, trans=trans), wanted, close=True)
            for trans in (0, 1, 2):
                wanted = scipy_linalg.lu_solve(scipy_linalg.lu_factor(s), b, trans)
                same(mb.linalg.lu_solve(mb.linalg.lu_factor(p), DHost(b), trans), wanted, close=True)
    made = mb.linalg.factorize(DHost(s))
    same(made.solve(DHost(b)), np.linalg.solve(s, b), close=True)


@check
def tall_matrices():
    for m, n in ((7, 7), (30, 5), (5, 8), (3, 2), (200, 20)):
        x, b = random.normal(size=(m, n)), random.normal(size=(m, 2))
        small = min(m, n)
        for layout in layouts((m, n)) if m < 200 else (None,):
            a = DHost(x, layout=layout)
            q, r = mb.linalg.qr(a)
            same(q @ r, x, close=True)
            same(mb.conj(q.mT) @ q, np.eye(small), close=True)
            same(mb.triu(r), mb.to_numpy(r))
            same(mb.abs(mb.linalg.qr(a, mode="r")), np.abs(np.linalg.qr(x, mode="r")), close=True)
            u, s, vh = mb.linalg.svd(a, full_matrices=False)
            same((u * s) @ vh, x, close=True)
            same(s, np.linalg.svd(x, compute_uv=False), close=True)
            same(mb.conj(u.mT) @ u, np.eye(small), close=True)
            same(mb.linalg.svdvals(a), np.linalg.svd(x, compute_uv=False), close=True)
            same(mb.linalg.pinv(a), np.linalg.pinv(x), close=True)
            same(mb.linalg.matrix_rank(a), np.linalg.matrix_rank(x))
            same(mb.linalg.cond(a), np.linalg.cond(x), close=True)
            if m >= n:
                found, wanted = mb.linalg.lstsq(a, DHost(b)), np.linalg.lstsq(x, b)
                same((found.x, found.residuals, found.s), (wanted[0], wanted[1], wanted[3]), close=True)


@check
def stacks():
    x = random.normal(size=(9, 4, 4))
    s, b = x @ x.mT + np.eye(4), random.normal(size=(9, 4, 2))
    for a in divided(s):
        for name in ("inv", "det", "slogdet", "eigvalsh", "cond", "matrix_rank", "cholesky"):
            found, wanted = getattr(mb.linalg, name)(a), getattr(np.linalg, name)(s)
            same(
                tuple(found) if name == "slogdet" else found,
                tuple(wanted) if name == "slogdet" else wanted,
                close=True,
            )
        same(mb.linalg.solve(a, DHost(b)), np.linalg.solve(s, b), close=True)


@check
def of_other_memory():
    """The parts may lie in memory that NumPy cannot read."""
    x = random.normal(size=(30, 4))
    for a in divided(x, DRef):
        same(mb.sort(a, axis=0), np.sort(x, axis=0))
        same(
            mb.unique(a, return_counts=True, return_inverse=True),
            np.unique(x, return_counts=True, return_inverse=True),
        )
        same(mb.fft.fftn(a), np.fft.fftn(x), close=True)
        same(mb.median(a, axis=0), np.median(x, axis=0), close=True)
        same(mb.histogram(a), np.histogram(x), close=True)
        same(mb.roll(a, 3, axis=0), np.roll(x, 3, axis=0))
        same(mb.tril(a), np.tril(x))
        q, r = mb.linalg.qr(a)
        same(q @ r, x, close=True)
    line, s = DRef(x[:, 0]), x @ x.T + np.eye(30)
    same(mb.argsort(line), np.argsort(x[:, 0]))
    same(mb.fft.fft(line), np.fft.fft(x[:, 0]), close=True)
    same(mb.convolve(line, DRef([1.0, 2.0])), np.convolve(x[:, 0], [1.0, 2.0]), close=True)
    same(mb.searchsorted(mb.sort(line), DRef([0.0])), np.searchsorted(np.sort(x[:, 0]), [0.0]))
    same(mb.linalg.solve(DRef(s), line), np.linalg.solve(s, x[:, 0]), close=True)
    same(mb.linalg.cholesky(DRef(s)), np.linalg.cholesky(s), close=True)
    assert type(mb.sort(line)).family is DRef


def main(names):
    warnings.simplefilter("error")
    mb.settings.gather_bytes = 0
    failed = 0
    for name in names or CHECKS:
        routines._warned.clear()
        try:
            CHECKS[name]()
        except Exception:
            failed += 1
            print(f"rank {COMM.rank}: {name}\n{traceback.format_exc()}", flush=True)
    COMM.barrier()
    if COMM.rank == 0 and not failed:
        print(f"{len(names or CHECKS)} checks passed on {COMM.size}", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main(sys.argv[1:])
