"""`x[mask]` in compiled programs means what it means to NumPy, though nobody knows how many a mask picks."""

import functools
import pathlib
import sys
import warnings

import numpy as np
import pytest
from compare import assert_same
from hypothesis import given, settings
from hypothesis import strategies as st
from ways import running

import mirabelle as mb

sys.path.append(str(pathlib.Path(__file__).parents[1]))  # `benchmarks` is not installed

from benchmarks.npkernels import KERNELS
from benchmarks.npkernels._report import same

# One program, or an error that says why not.
whole = functools.partial(mb.compile, whole=True)

FAMILIES = [mb.HostArray, mb.RefArray, mb.CuArray]
H = mb.HostArray
TraceError = mb.compiling.TraceError


@pytest.fixture(params=FAMILIES, ids=lambda f: f.__name__)
def family(request):
    return request.param


def numbers(dtype, *shape, seed=0):
    """Numbers of either sign, with zeros among them."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-4, 5, shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.integers(-4, 5, shape)
    return np.abs(x).astype(dtype) if np.dtype(dtype).kind == "u" else x.astype(dtype)


def parts(result):
    return [p for x in result for p in parts(x)] if isinstance(result, (tuple, list)) else [result]


def agree(f, *args, family=H, others=(), rtol=0.0):
    """The function compiled does what NumPy does, with these arguments and with others of their shapes."""
    compiled = mb.compile(f)
    for arrays in (args, *others, args):
        theirs = [np.array(x) for x in arrays]
        mine = [family(x) for x in arrays]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            expected = f(*theirs)
        got = compiled(*mine)
        for a, b in zip(parts([got, mine]), parts([expected, theirs]), strict=True):
            if a is not None:
                assert_same(a, b, rtol=rtol, atol=rtol)
    assert len(compiled.programs) == 1
    return compiled


X = numbers("f8", 5, 4)
# A mask that is mixed, holds everywhere, holds nowhere; of a matrix, and of its rows.
MATRIX = [X > 0, np.ones((5, 4), bool), np.zeros((5, 4), bool)]
ROWS = [X[:, 0] > 0, np.ones(5, bool), np.zeros(5, bool)]


# Reading and writing back


def doubled(x, mask):
    x[mask] = x[mask] * 2 + 1


def in_place(x, mask):
    x[mask] += 3
    x[mask] *= x[mask]
    x[mask] -= 1


def named(x, mask):
    y = x[mask]
    z = y
    y += 1
    x[mask] = z + y
    y[...] = 2
    x[~mask] = x[~mask] + 5


@pytest.mark.parametrize("f", [doubled, in_place, named])
@pytest.mark.parametrize("dtype", ["i1", "u2", "i8", "f2", "f4", "f8", "c8", "c16"])
def test_what_is_picked_is_written_back(f, dtype, family):
    x = numbers(dtype, 5, 4)
    agree(f, x, MATRIX[0], family=family, others=[(x + x, m) for m in MATRIX[1:]])


@pytest.mark.parametrize("f", [doubled, in_place, named])
@pytest.mark.parametrize("mask", [*MATRIX, *ROWS], ids=lambda m: f"{m.shape}{m.sum()}")
def test_masks_of_all_axes_and_of_the_first(f, mask, family):
    agree(f, numbers("f8", 5, 4), mask, family=family)


def test_truth_values():
    def f(x, mask):
        x[mask] = ~x[mask]
        x[mask] &= x[mask] | True
        return x[mask].any(), x[mask].all(), x[mask].sum()

    agree(f, X > 1, X < 2, others=[(X > 1, m) for m in MATRIX])


def test_masks_of_the_same_values_are_the_same():
    def f(x):
        x[x > 0] = 1 / x[x > 0]
        x[abs(x) < 1] = x[np.abs(x) < 1] + x[abs(x) < 1] ** 2
        return x

    agree(f, X, others=[(-X,)])


def test_a_mask_that_was_written_to_is_another():
    def f(x, mask):
        y = x[mask]
        mask[0] = True
        x[mask] = y + 1

    with pytest.raises(TraceError, match="two masks pick"):
        whole(f)(H(X), H(X > 0))


def test_what_was_picked_does_not_change():
    def f(x):
        mask = x > 0
        y = x[mask]
        x += 10
        z = x[mask]
        x[mask] = y
        y *= 2
        return y.sum(), z.sum(), x.sum()

    agree(f, X)


def test_values_beside_what_is_picked():
    row, column, number = numbers("f8", 4, seed=1), numbers("f8", 3, 1, 1, seed=2), np.asarray(2.5)

    def f(x, rows, row, column, number):
        x[rows] = row
        x[rows] = np.float32(2) * x[rows] + row * number - 1
        x[x[:, 0] > 1] = 7
        x[rows] += row[None]
        return (x[rows] * column).sum(axis=(0, 1)), x[rows].sum(axis=0, keepdims=True)

    agree(f, X, ROWS[0], row, column, number, others=[(X, m, row, column, number) for m in ROWS])


def test_arrays_found_outside():
    table, mask, row = H(X), H(ROWS[0]), H(X[0])

    def f(x):
        return (table[x > 0] * x[x > 0]).sum(), x[mask] + row

    got = mb.compile(f)(H(X))
    assert_same(got[0], (X[X > 0] ** 2).sum())
    assert_same(got[1], X[ROWS[0]] + X[0])


def test_views():
    def f(x):
        t, part = x.T, x[1:, ::2]
        t[t > 0] = t[t > 0] - 1
        part[part < 0] **= 2
        x[2:][x[2:] == 0] -= 4
        return x[::-1][x[::-1] > 1].sum()

    agree(f, X)


def test_axes_beside_the_mask():
    deep = numbers("f8", 3, 5, 4, 2)

    def f(x, mask, rows):
        x[:, mask] += 1
        x[0, rows] *= 2
        x[:, rows, 1] -= x[:, rows, 0]
        x[..., rows, 0:2, :1] = 3 - x[..., rows, 0:2, :1]
        x[1:, rows, ..., None] += x[1:, rows, ..., None] * x[1:, rows].sum(axis=-1)[..., None, None]
        return (
            x[:, mask].sum(axis=1), x[:, mask].mean(axis=-2, keepdims=True), x[:, rows].max(axis=(0, 1, 3)),
            x[:, rows].sum(axis=2).sum(), x[:, mask].sum(axis=(0, -1), keepdims=True).sum(),
            x[2, mask].sum(axis=-1, keepdims=True).sum(axis=0),
        )  # fmt: skip

    agree(f, deep, MATRIX[0], ROWS[0], others=[(deep, MATRIX[1], ROWS[1])], rtol=1e-14)


def test_the_other_axes_are_indexed():
    def f(x, rows):
        picked = x[rows]
        last = picked[:, -1]
        picked[:, 0] = 5
        picked[:, 1:3] += last[:, None]
        picked[..., 3] = picked[..., 0]  # which `last` shows
        x[rows] = picked
        return last.sum(), picked[:, None, ::2].sum(axis=0)

    agree(f, X, ROWS[0], others=[(X, m) for m in ROWS])


def test_a_mask_of_what_is_picked():
    def f(x, rows):
        y = x[rows]
        y[y > 0] = y[y > 0] * 2
        y[y[:, 0] < 1] = -1
        y[y < -2] = 0
        x[rows] = y
        return y[y > 1].sum(), y[y[:, 1] > 0].sum(axis=0)

    agree(f, X, ROWS[0], others=[(X, m) for m in ROWS])


def test_an_empty_mask_picks_nothing(family):
    def f(x, mask):
        x[mask] = 5
        x[mask] += 1
        return x[mask], x[mask].sum()

    agree(f, np.zeros((0, 4)), np.zeros((0, 4), bool), family=family)
    agree(f, np.zeros((0, 4)), np.zeros(0, bool), family=family)


def test_what_is_written_is_cast():
    def f(x, mask, y):
        x[mask] = y[mask] / 3
        y[mask] = x[mask]

    agree(f, numbers("i4", 5, 4), MATRIX[0], numbers("f4", 5, 4, seed=3))
    with pytest.raises(TypeError, match="Cannot cast"):
        mb.compile(lambda x: x.__setitem__(x > 0, x[x > 0].__iadd__(0.5)))(H([1, 2]))
    with pytest.warns(np.exceptions.ComplexWarning):
        mb.compile(lambda x, z: x.__setitem__(x > 0, z[x > 0]))(H([1.0, -1.0]), H([1j, 2]))


# Elementwise functions


def test_functions_of_what_is_picked(family):
    def f(x, y, mask):
        a, b = x[mask], y[mask]
        x[mask] = np.where(a > b, np.maximum(a, 0), np.clip(b, -1, 1)) + np.hypot(a, 2 * b) - (-a) % 3
        quotient, rest = divmod(a, b + 0.5)
        y[mask] = abs(quotient) + rest.round(1) + np.sign(a) * (1 - b) ** 2 + 2.0**a

    agree(f, X, numbers("f8", 5, 4, seed=1), MATRIX[0], family=family, rtol=1e-14)


def test_complex_parts():
    def f(z):
        inside = abs(z) < 4
        z[inside] = z[inside] ** 2 + z[inside].conj()
        return z[inside].real.sum(), z[inside].imag.max(), z[inside].astype(np.complex64).copy().sum()

    agree(f, numbers("c16", 5, 4))


@pytest.mark.parametrize("way", ["cold", "hot"])
def test_what_the_mask_leaves_out_fails_nowhere(way):
    def f(x, n):
        good = n > 0
        x[good] = x[good] // n[good] + x[good] % n[good]
        x[good] = x[good] ** n[good] + 2 ** n[good]
        y = np.sqrt(1.0 * n[good]) / n[good]
        return y.sum(), x[good].astype(np.float32).sum(), (1 / np.log(n[good] + 1.0)).sum()

    with running(way):
        agree(f, numbers("i8", 40), numbers("i8", 40, seed=1), rtol=1e-14)


# Reductions


def reductions(x, mask):
    y = x[mask]
    return (
        y.sum(), np.sum(y), y.prod(), np.mean(y), y.mean(), y.std(), np.var(y), y.any(), y.all(),
        np.count_nonzero(y), y.sum(keepdims=True), y.mean(axis=0), np.any(y, axis=0, keepdims=True),
        y.mean(dtype=np.complex128), np.add.reduce(y),
    )  # fmt: skip


def extremes(x, mask):
    y = x[mask]
    return y.min(), y.max(), np.max(y, axis=0), np.min(y, keepdims=True), np.amax(y)


@pytest.mark.parametrize("dtype", ["?", "i1", "u4", "i8", "f2", "f4", "f8", "c8", "c16"])
def test_reductions_of_what_is_picked(dtype, family):
    x = numbers(dtype, 5, 4)
    tolerance = {"f2": 2e-3, "f4": 1e-5, "c8": 1e-5}.get(dtype, 1e-14)
    agree(reductions, x, MATRIX[0], family=family, others=[(x, m) for m in MATRIX], rtol=tolerance)
    agree(reductions, x, ROWS[0], family=family, others=[(x, m) for m in ROWS], rtol=tolerance)
    for mask in (*MATRIX[:2], *ROWS[:2]):
        agree(extremes, x, mask, family=family)


def test_reductions_of_numbers_that_are_not_finite():
    x = np.array([1.0, np.nan, np.inf, -np.inf, 2.0])
    masks = [np.array(m, bool) for m in ([1, 0, 0, 0, 1], [1, 1, 0, 0, 0], [0, 0, 1, 0, 1], [0, 0, 0, 1, 0])]
    f = mb.compile(lambda x, m: (reductions(x, m)[:8], extremes(x, m)))
    for mask in masks:
        with np.errstate(all="ignore"):
            expected = parts((reductions(x, mask)[:8], extremes(x, mask)))
        for a, b in zip(parts(f(H(x), H(mask))), expected, strict=True):
            assert_same(a, b, rtol=1e-14)


def test_reductions_by_other_names():
    def f(x):
        y = x[x > 0]
        return mb.mapreduce(mb.abs, mb.add, y), mb.norm(y), mb.ptp(y), mb.average(y), mb.reduce(mb.maximum, y)

    got = mb.compile(f)(H(X))
    y = X[X > 0]
    for a, b in zip(got, (y.sum(), np.linalg.norm(y), np.ptp(y), y.mean(), y.max()), strict=True):
        assert_same(a, b, rtol=1e-14)
    found = mb.compile(lambda x: mb.reduce(lambda a, b: a + b, x[x > 0], init=0.0))(H(X))
    assert_same(found, y.sum(), rtol=1e-14)


def test_norms_and_products(family):
    points = numbers("f8", 6, 3)

    def f(x, y, points, matrix, v):
        inside = x > 0
        rows = points[:, 0] > 0
        chosen = points[rows]
        lengths = np.linalg.norm(chosen, axis=1)
        points[rows] = chosen @ matrix / (1 + lengths[:, None])
        return (
            x[inside] @ y[inside], np.dot(x[inside], x[inside]), np.linalg.norm(x[inside]),
            np.linalg.norm(y[x[:, 0] > 0]), np.linalg.norm(x[inside], 1), np.linalg.norm(x[inside], np.inf),
            points.T[:, rows] @ points[rows], v[rows] @ points[rows], (matrix @ points.T[:, rows]).sum(axis=1),
            (points[rows] @ v[:3]).max(), np.linalg.norm(points[rows], axis=0),
            (v[:3] @ points.T[:, rows]).sum(),
        )  # fmt: skip

    matrix, v = numbers("f8", 3, 3, seed=7), np.array([np.inf, 1.0, 2.0, 3.0, 4.0, 5.0])
    v = np.where(points[:, 0] > 0, 2.0, v)
    v[:3] = 1
    agree(f, X, numbers("f8", 5, 4, seed=4), points, matrix, v, family=family, rtol=1e-13)


def test_the_largest_of_nothing_is_an_error_when_the_program_runs(family):
    largest = mb.compile(lambda x: (x[x > 0].max(), x[x < 9].min()))
    assert float(largest(family([1.0, -2.0, 3.0]))[0]) == 3
    with pytest.raises(ValueError, match=r"zero-size array to reduction operation maximum.*initial=0"):
        largest(family([-1.0, -2.0, -3.0]))
    assert float(largest(family([1.0, -2.0, 5.0]))[0]) == 5

    def changing(x):
        x += 1
        return x[x > 9].min()

    x = family([1.0, 2.0])
    with pytest.raises(ValueError, match="operation minimum"):
        mb.compile(changing)(x)
    assert_same(x, np.array([1.0, 2.0]))  # nothing is lost on a failed call


def test_what_the_largest_of_nothing_is_can_be_said(family):
    def f(x, mask):
        y = x[mask]
        return (
            y.max(initial=0),
            np.min(y, axis=0, initial=2.5),
            np.sum(y, initial=3),
            np.max(x[mask], initial=-9),
        )

    agree(f, X, MATRIX[0], family=family, others=[(X, m) for m in MATRIX])
    agree(f, X, ROWS[0], family=family, others=[(X, m) for m in ROWS])


def test_programs_with_checks_are_saved(tmp_path):
    f = mb.compile(lambda x: (x[x > 0].max(), x[x > 0].mean()))
    f.program(H(X)).save(tmp_path / "program")
    loaded = mb.load_program(tmp_path / "program")
    assert [float(v) for v in loaded(H(X))] == [X.max(), X[X > 0].mean()]
    with pytest.raises(ValueError, match="maximum"):
        loaded(H(-abs(X)))


# Loops and branches


def test_in_loops_and_branches(family):
    def f(x, limit):
        def body(i, state):
            x, n = state
            small = x < limit
            n[small] += 1
            x[small] = x[small] * 2 + i
            return x, n

        state = mb.fori_loop(0, 6, body, (x, mb.zeros_like(x)))

        def halved(x):
            x[x > 1] /= 2
            return x

        low = mb.while_loop(lambda x: x.max() > 3, halved, state[0])
        outside = low > mb.mean(low)

        def moved(i, s):
            low[outside] -= s / 8  # a mask from outside of the body
            return s + low[low < 1].sum()

        total = mb.fori_loop(0, 3, moved, mb.sum(low) * 0)
        picked = mb.cond(total > 0, lambda x: x[x > 0].mean(), lambda x: x[x < 0].sum(), low)
        return *state, low, total, picked

    x, limit = abs(X) + 0.5, np.asarray(20.0)
    compiled = mb.compile(f)
    for _ in range(2):
        expected, got = f(family(x), family(limit)), compiled(family(x), family(limit))
        for a, b in zip(got, expected, strict=True):
            assert_same(a, mb.to_numpy(b), rtol=1e-13)


def test_masks_that_the_loop_makes():
    def f(x):
        n = x.shape[0]

        def body(i, x):
            behind = mb.arange(n) > i
            x[behind] -= x[i] * x[behind]
            return x

        return mb.fori_loop(0, n, body, x)

    expected = np.array(X[:, 0])
    for i in range(5):
        expected[i + 1 :] -= expected[i] * expected[i + 1 :]
    assert_same(mb.compile(f)(H(X[:, 0])), expected)


# Functions that go by masks


def test_functions_that_go_by_masks(family):
    def f(x, mask):
        np.putmask(x, x > 2, x - 1)
        np.copyto(x, 0.5, where=x == 0)
        held = np.compress(mask, x, axis=0)
        parts = np.piecewise(x, [x > 1, x < -1], [lambda v: v * 2, abs, -1.0])
        return np.extract(x > 0, x).mean(), held.sum(axis=0), parts

    agree(f, X, ROWS[0], family=family, others=[(X, m) for m in ROWS])


def test_in_outlined_functions():
    @mb.ext.outline
    def halved(x):
        x[x > 0] /= 2
        return x[x > 1].sum()

    def f(x):
        return halved(x) + halved(x)

    x = np.array(X)
    expected = sum(y[y > 1].sum() for y in (np.where(x > 0, x / 2, x), np.where(x > 0, x / 4, x)))
    assert_same(mb.compile(f)(H(X)), expected)


# Derivatives


def written(z):
    z = z * 1
    z[z > 0] = z[z > 0] ** -1.5 * mb.sqrt(z[z > 0])
    z[z < 0] += mb.exp(z[z < 0])
    return (z * z).sum()


def of_rows(z):
    rows = z[:, 0] > 0
    y = z[rows]
    y[y > 2] = y[y > 2] * 3
    y[:, 1] *= y[:, 0]
    z = mb.copy(z)
    z[rows] = y
    return z.sum() + (z[rows].sum(axis=0) ** 2).sum()


DIFFERENTIATED = {
    "written": written,
    "of_rows": of_rows,
    "mean": lambda z: z[z > 0].mean() ** 2,
    "std": lambda z: mb.std(z[z > 0]) + z[z < 2].var(),
    "extremes": lambda z: z[z < 3].max() * z[z > -3].min(),
    "prod": lambda z: z[z > 1].prod(),
    "constants beside": lambda z: (
        mb.HostArray(X)[z > 0] * z[z > 0] + mb.where(z[z > 0] > 2, 1, z[z > 0])
    ).sum(),
}


@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_derivatives_of_what_is_picked(name):
    f = DIFFERENTIATED[name]
    x = X + 0.25 * np.arange(20).reshape(5, 4)
    wanted = mb.autodiff.gradient(f, H(x))
    assert_same(mb.compile(lambda x: mb.autodiff.gradient(f, x))(H(x)), mb.to_numpy(wanted), rtol=1e-13)
    assert_same(mb.autodiff.gradient(mb.compile(f), H(x)), mb.to_numpy(wanted), rtol=1e-13)
    along = H(X[::-1].copy())
    twice = mb.compile(lambda x: mb.autodiff.jvp(lambda x: mb.autodiff.gradient(f, x), (x,), (along,)))(H(x))
    for a, b in zip(
        twice, mb.autodiff.jvp(lambda x: mb.autodiff.gradient(f, x), (H(x),), (along,)), strict=True
    ):
        assert_same(a, mb.to_numpy(b), rtol=1e-12, atol=1e-12)


# Programs


@pytest.mark.parametrize("name", ["nbody", "mandelbrot1", "azimint_naive"])
def test_numpy_programs_compile_as_they_are(name, family):
    k = KERNELS[name]
    inputs = k.inputs(k.tiny)
    expected = k.run(k.plain, np, [np.array(x) if isinstance(x, np.ndarray) else x for x in inputs])
    arrays = [family(x) for x in inputs if isinstance(x, np.ndarray)]
    left = iter(arrays)
    arguments = [next(left) if isinstance(x, np.ndarray) else x for x in inputs]

    def program(*arrays):
        left = iter(arrays)
        return k.plain(mb.namespace(family), *[next(left) if isinstance(x, np.ndarray) else x for x in inputs])

    compiled = mb.compile(program)
    got = k.run(lambda *_: compiled(*arrays), mb.namespace(family), arguments)
    same(k, "compiled", [mb.to_numpy(x) for x in got], expected)


def test_one_kernel_computes_and_writes():
    def f(x):
        x[x > 0] = mb.sqrt(x[x > 0])

    assert len(mb.compile(f).program(H(X)).plan.steps) == 1

    def ring(values, radius):
        return values[(radius > 0.25) & (radius < 0.75)].mean()

    # (The sum, and how many it is of, in one pass; then a division.)
    assert len(mb.compile(ring).program(H(X), H(abs(X))).plan.steps) <= 2


STATEMENTS = (
    "x[{m}] = y[{m}] * 2 - x[{m}]",
    "y[{m}] += abs(x[{m}])",
    "x[{m}] *= y[{m}].sum()",
    "p = x[{m}]; p[p > 1] = p[p > 1] - 3; y[{m}] = p",
    "x = x + y[{m}].mean(axis=0) if y[{m}].ndim > 1 else x - y[{m}].sum()",
    "y[{m}] = 1",
    "m = x > y",
    "r = x[:, 0] > 0",
)


@given(st.lists(st.tuples(st.sampled_from(STATEMENTS), st.sampled_from(["x > 0", "y <= 1", "m", "r", "~r"]))))
@settings(max_examples=40, deadline=None)
def test_any_statements(lines):
    text = "\n    ".join(s.format(m=m) for s, m in lines)
    space = {}
    exec(f"def f(x, y):\n    m = x == y\n    r = y[:, 1] > 0\n    {text}\n    return x, y, m, r", space)
    x, y = X, numbers("f8", 5, 4, seed=5)
    with np.errstate(all="ignore"):
        expected = space["f"](np.array(x), np.array(y))
    for a, b in zip(mb.compile(space["f"])(H(x), H(y)), expected, strict=True):
        assert_same(a, b, rtol=1e-11)


# What is refused


REFUSED = {
    "y.shape": "The shape",
    "y.size": "The shape",
    "len(y)": "The shape",
    "list(y)": "The shape",
    "float(y)": "The shape",
    "if y: pass": "The shape",
    "y[0]": "indexed",
    "y[::2]": "indexed",
    "y[[0, 1]]": "indexed",
    "y[x > 0]": "indexed",
    "y[0] = 1": "written to",
    "y.real = 0": "written to",
    "y + x[x > 1]": "two masks",
    "y + x": "An array of shape",
    "x[x > 1] = y": "two masks",
    "x[x > 0] = x": "An array of shape",
    "x[...] = y": "written to all",
    "np.sort(y)": "known size",
    "np.median(y)": "known size",
    "np.asarray(y)": "known size",
    "y.reshape(-1)": "The shape",
    "np.concatenate([y, y])": "The shape",
    "np.cumsum(y)": "picks",
    "y @ x": "matrix product",
    "np.linalg.norm(y, -np.inf)": "A norm",
    "y.argmax()": "picks",
    "mb.broadcast(lambda v: v + 1, y)": "function of your own",
    "mb.fori_loop(0, 2, lambda i, s: s, y)": "carried from trip to trip",
    "mb.adapt(mb.HostArray, y)": "moved",
    "pickle.dumps(y)": "pickled",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_what_needs_the_elements_in_a_row_is_refused(statement):
    import pickle

    names = {"mb": mb, "np": np, "pickle": pickle}

    def f(x):
        exec(f"y = x[x > 0]\n{statement}", {**names, "x": x})
        return x

    with pytest.raises(TraceError, match=REFUSED[statement]) as e:
        mb.compile(f)(H(X[0]))
    text = str(e.value)
    assert "<string>:" in text and "mb.count_nonzero(mask)" in text and "mb.where(mask, x, 0)" in text


def test_it_is_not_returned():
    def f(x):
        return x, [x[x > 0]]

    with pytest.raises(TraceError, match=r"is returned.*`return x, \[x\[x > 0\]\]`.*mb\.where\(mask, x, 0\)"):
        whole(f)(H(X))
    kept = []

    def g(x):
        kept.append(x[x > 0])
        return x

    with pytest.raises(TraceError, match="leaves arrays behind"):
        whole(g)(H(X))


def test_masks_must_fit():
    with pytest.raises(IndexError, match="did not match"):
        mb.compile(lambda x: x[x[0] > 0].sum())(H(X))
    with pytest.raises(IndexError, match="too many"):
        mb.compile(lambda x: x[x > 0, 0].sum())(H(X))


def test_it_says_what_it_is():
    shown = []

    def f(x):
        y = x[x > 0]
        shown.append(f"{y} {y!r}")
        return y.sum()

    mb.compile(f, whole=True)(H(X))
    assert "traced float64, picked by a mask in test_compile_masks.py" in shown[0]


def test_masks_that_are_known_pick_as_ever():
    mask = X[0] > 0

    def f(x):
        return x[mask] * 2, x[H(mask)].shape

    got = mb.compile(f)(H(X[0]))
    assert_same(got[0], X[0][mask] * 2)
    assert got[1] == (mask.sum(),)
