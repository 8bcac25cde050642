"""Loops over elements as kernels where their arrays are: what is parallel, what it gives, when it is done."""

import ast
import math

import numpy as np
import pytest
import randomloops

import mirabelle as mb
from mirabelle.arraytypes import kernels as launches
from mirabelle.arraytypes.programs import kernelloops
from mirabelle.arraytypes.programs.kernelloops import KernelLoop
from mirabelle.arraytypes.programs.loopplans import Repeat
from mirabelle.arraytypes.usercode.elementloops import Bounds
from mirabelle.arraytypes.usercode.loopkinds import kinds_of
from mirabelle.arraytypes.usercode.loopwork import Ranges
from mirabelle.arraytypes.usercode.parallelloops import nest_of
from mirabelle.arraytypes.usercode.partloops import apart
from mirabelle.arraytypes.usercode.subscripts import joined
from mirabelle.dispatch.errors import UserFunctionError

# The reference device tells of races; the simulated card computes as a card does.
PLACES = [mb.RefArray, mb.CuArray]


@pytest.fixture
def kernels(monkeypatch):
    """All loops that can be kernels are; the plans that ran."""
    ran, run = [], KernelLoop.run

    def noted(self, plan, *rest):
        ran.append(plan)
        return run(self, plan, *rest)

    monkeypatch.setattr(kernelloops, "CORE", 1.0)
    monkeypatch.setattr(KernelLoop, "run", noted)
    return ran


def agree(f, *args, make=mb.RefArray, turns=2):
    """The compiled function gives and writes what it does with NumPy, and brings nothing to the host."""
    compiled = mb.compile(f)
    for turn in range(turns):
        given = [x.copy() if isinstance(x, np.ndarray) else x for x in args]
        mine = [make(x.copy()) if isinstance(x, np.ndarray) else x for x in args]
        with mb.count() as counted:
            got = compiled(*mine)
        assert not turn or (counted.transfers, counted.scalar_reads) == (0, 0)
        wanted = f(*given)
        for a, b in zip([*listed(got), *mine], [*listed(wanted), *given], strict=True):
            if isinstance(b, (np.ndarray, np.generic, int, float)):
                a = mb.to_numpy(a) if isinstance(a, mb.AbstractArray) else a
                np.testing.assert_allclose(a, b, rtol=1e-12)
    return compiled


def listed(x):
    return x if isinstance(x, tuple) else () if x is None else (x,)


def shape_of(plan):
    """What a plan is: how many loops each of its grids has; a list for what is repeated."""
    return [[*shape_of(s)] if isinstance(s, Repeat) else len(s.loops) for s in plan.steps]


# Kinds of loops


def smoothed(A, B):
    for i in range(1, A.shape[0] - 1):
        for j in range(1, A.shape[1] - 1):
            B[i, j] = 0.25 * (A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])


def by_columns(A, B):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            for k in range(i + 1, A.shape[0]):
                B[i, j] += A[k, i % 3] * B[k, j]


def red_black(A, B):
    for colour in range(2):
        for i in range(1 + colour, A.shape[0] - 1, 2):
            A[i, 0] = 0.5 * (A[i - 1, 0] + A[i + 1, 0])


def eliminated(A, B):
    for k in range(A.shape[0]):
        A[k, k] += 4.0
        for i in range(k + 1, A.shape[0]):
            A[i, k] = A[i, k] / A[k, k]
        for i in range(k + 1, A.shape[0]):
            for j in range(k + 1, A.shape[0]):
                A[i, j] -= A[i, k] * A[k, j]


def backwards(A, B):
    for i in range(A.shape[0] - 1, -1, -1):
        for j in range(A.shape[1]):
            s = 0.0
            for k in range(j):
                s += A[i][k] * B[k][i]
            B[j][i] = math.sqrt(abs(s)) if s > 0.5 else -s


def carried(A, B):
    for i in range(1, A.shape[0]):
        A[i, 0] = A[i - 1, 0] * 0.5 + B[i, 0]


def from_the_end(A, B):
    for i in range(1, A.shape[0]):
        A[-i, -1] = B[i - 3, 0] + A[-i, 2]


def one_through_all(A, B):
    n = A.shape[0]
    for i in range(n):
        A[2 * i % n, 1] = B[i, 1]


def through(A, B):
    b = B[:, 0] * 1
    for i, v in enumerate(b):
        A[i, 0] = v * 2
    for v in b:
        A[0, 1] = max(A[0, 1], v)


KINDS = [
    (smoothed, [2]),
    (by_columns, [1]),
    (red_black, [[1]]),
    (eliminated, [[0, 1, 2]]),
    (backwards, [1]),
    (carried, [0]),
    (from_the_end, [1]),
    (one_through_all, [0]),
]


@pytest.mark.parametrize("make", PLACES)
@pytest.mark.parametrize("f, shape", KINDS, ids=lambda x: getattr(x, "__name__", ""))
def test_what_is_parallel_is_a_grid(kernels, f, shape, make):
    A, B = np.random.default_rng(1).random((2, 18, 18))
    agree(f, A, B, make=make)
    assert kernels and all(shape_of(p) == shape for p in kernels)


@pytest.mark.parametrize("make", PLACES)
def test_arrays_are_gone_through(kernels, make):
    A, B = np.random.default_rng(1).random((2, 18, 18))
    agree(through, A, B, make=make)
    assert [shape_of(p) for p in kernels] == [[1], [0], [1], [0]]


# Rows and columns


def multiplied(A, B):
    for i in range(B.shape[0]):
        for j in range(B.shape[1]):
            B[i, j] += np.dot(A[i + 1 :, i], B[i + 1 :, j])


def updated(A, C):
    for i in range(A.shape[0]):
        C[i, : i + 1] *= 0.5
        for k in range(A.shape[1]):
            C[i, : i + 1] += 1.5 * A[i, k] * A[: i + 1, k]


def orthogonal(A, R):
    for k in range(A.shape[1]):
        nrm = np.dot(A[:, k], A[:, k])
        R[k, k] = np.sqrt(nrm)
        A[:, k] = A[:, k] / R[k, k]
        for j in range(k + 1, A.shape[1]):
            R[k, j] = A[:, k] @ A[:, j]
            A[:, j] -= A[:, k] * R[k, j]


def by_rows(A, B):
    for k in range(A.shape[0]):
        A[k, :] /= A[k, k] + 4
        for i in range(k + 1, A.shape[0]):
            A[i, k:] -= A[i, k] * A[k, k:]


PARTS = [(multiplied, [1]), (updated, [1]), (orthogonal, [[0, 1, 1]]), (by_rows, [[0, 1]])]


@pytest.mark.parametrize("make", PLACES)
@pytest.mark.parametrize("f, shape", PARTS, ids=lambda x: getattr(x, "__name__", ""))
def test_parts_are_taken_apart(kernels, f, shape, make):
    A, B = np.random.default_rng(2).random((2, 17, 17))
    agree(f, A, B, make=make)
    assert kernels and all(shape_of(p) == shape for p in kernels)


@pytest.mark.parametrize(
    "text",
    [
        "A[i, 1:] = A[i, :-1] * 0.5",  # it writes what it reads
        "A[i, 1:-1] += A[i, 2:]",
        "A[i, 1:] = B[i, :]",  # of other sizes
        "A[i, :n] = B[i, :n]",  # n may be more than there are
        "A[i, ::2] = 1.0",
        "A[i] = B[i, :]",
        "A[i, :] = f(B[i, :])",
        "N[i, :] *= 0.5",  # NumPy refuses it
        "A[i, :] = t",  # t may be an array
        "x[i] = A[i, :] @ B",
        "x[i] = A[i, :] @ B[:3, i]",
        "A[i - 2, 1:4] = A[1:4, i] * 0.5",  # i - 2 may be a row from the end, which is read
        "A[-1, 1:4] = A[1:4, i] * 0.5",
    ],
)
def test_parts_that_are_not_taken_apart(text):
    loop = ast.parse(f"for i in range(4):\n  {text}").body[0]
    given = {"A": np.ones((4, 5)), "B": np.ones((4, 5)), "N": np.ones((4, 5), int), "x": np.ones(4), "n": 7}
    ranks = {"A": 2, "B": 2, "N": 2, "x": 1}
    before = ast.dump(loop)
    assert ast.dump(apart(loop, given, ranks, Bounds(loop, given).indices)) == before


def from_the_end(A, B):
    for i in range(1, 16, 2):
        for j in range(1, 6):
            A[i - 3, i:] = np.sin(A[i:, j] + B[i, i:])
    for i in range(1, 16):
        A[-1, i:] = A[i:, i] * 0.5 + B[i, i:]
        A[-i, i:] += A[i:, i] * 0.5 + B[-2, i:]
        A[:, i - 3] = A[i - 3, :] * 0.5 + B[-i, :]
        A[i - 4, 1:] = B[i - 5, :-1] * 0.5 + B[-i, 1:]


@pytest.mark.parametrize("make", PLACES)
def test_rows_from_the_end_may_be_those_that_are_read(kernels, make):
    A, B = np.random.default_rng(2).random((2, 17, 17))
    agree(from_the_end, A, B, make=make)


# Numbers


def gathered(x, s, m):
    low, high, product, i, least, most = 5.0, s, 1.0, 0, 5.0, s
    for i in range(len(x)):
        if x[i] > 0:
            s += 2 * x[i]
            m = m + 1
        s = s - 0.5
        low = min(low, x[i])
        high = max(high, abs(x[i]))
        if x[i] < least:
            least = x[i]
        if most < x[i]:
            most = x[i]
        product *= x[i] + 1.5
    return s, m, low, high, product, i, least, most


@pytest.mark.parametrize("make", PLACES)
@pytest.mark.parametrize("values", ["plain", "nan", "first is nan"])
def test_numbers_are_gathered(kernels, make, values):
    x, s = np.linspace(-1, 2, 40), 0.25
    if values == "nan":
        x[[3, 30]] = np.nan
    if values == "first is nan":
        s = np.nan
    agree(gathered, x, s, 0, make=make)
    assert kernels and all(shape_of(p) == [1] for p in kernels)


def test_a_count_is_an_integer_that_slices(kernels):
    def kept(x, out):
        n = 0
        for i in range(len(x)):
            if x[i] > 0:
                n += 1
        return out[:n], n

    x = np.sin(np.arange(50.0))
    got = mb.compile(kept)(mb.CuArray(x), mb.CuArray(np.arange(50.0)))
    assert got[0].shape == (int((x > 0).sum()),)
    assert mb.to_numpy(got[1]).dtype == np.int64
    assert kernels


def recurrence(x, s):
    for i in range(len(x)):
        s = 0.5 * s + x[i]
    return s


@pytest.mark.parametrize("start", [0, 0.5, np.float32(2), 1j])
def test_what_is_carried_is_left_behind_by_one_thread(kernels, start):
    agree(recurrence, np.arange(30.0), start)
    assert kernels and all(shape_of(p) == [0] for p in kernels)


@pytest.mark.parametrize("dtype", ["f4", "i4", "i8", "c16", "u1"])
def test_dtypes(kernels, dtype):
    def shifted(x, y):
        for i in range(1, len(x)):
            y[i] = x[i - 1]

    x = np.arange(20).astype(dtype)
    agree(shifted, x, np.zeros_like(x))
    assert kernels


# Indices that values say


def sparse_product(starts, columns, values, x, y):
    for i in range(len(y)):
        total = 0.0
        for k in range(starts[i], starts[i + 1]):
            total += values[k] * x[columns[k]]
        y[i] = total


@pytest.mark.parametrize("make", PLACES)
def test_indices_that_are_read_are_checked(kernels, make):
    starts, columns = np.arange(0, 42, 2), np.arange(40) * 7 % 20
    columns[5] = -1  # (which counts from the end)
    given = [starts, columns, np.arange(40.0), np.arange(20.0), np.zeros(20)]
    agree(sparse_product, *given, make=make)
    assert kernels and all(shape_of(p) == [1] for p in kernels)
    columns[5] = 20
    with pytest.raises(IndexError):
        mb.compile(sparse_product)(*[make(x) for x in given])


# Where it runs


def test_the_cheaper_way_is_taken_and_told():
    long = mb.compile(recurrence)
    x = mb.CuArray(np.ones(100_000))
    with mb.count() as counted:
        long(x, 0.0)
    (cut,) = long.explain(x, 0.0).cuts
    assert counted.transfers == 1
    assert "runs on the host" in cut.reason and "it would be one thread: about 4 ms there" in cut.reason
    short = mb.compile(carried)
    A, B = mb.CuArray(np.ones((20, 20))), mb.CuArray(np.ones((20, 20)))
    with mb.count() as counted:
        short(A, B)
    (cut,) = short.explain(A, B).cuts
    assert counted.transfers == 0 and "runs on cuda:0 as kernels of its own, between" in cut.reason


def test_views_of_one_memory_are_no_kernels(kernels):
    def shifted(x, y):
        for i in range(len(y)):
            y[i] = x[i]

    a, b = np.arange(30.0), mb.RefArray(np.arange(30.0))
    with mb.allow_scalar():
        mb.compile(shifted)(b[:-1], b[1:])
    shifted(a[:-1], a[1:])
    assert np.array_equal(mb.to_numpy(b), a) and not kernels


@pytest.mark.parametrize("of", [1, 3])
def test_a_kernel_that_does_not_compile_leaves_the_loop_to_the_host(kernels, monkeypatch, of):
    count, call = [0], launches.Launch.__call__

    def refusing(self, *args):
        count[0] += 1
        if count[0] == of:
            raise UserFunctionError("This cannot be compiled.")
        return call(self, *args)

    monkeypatch.setattr(launches.Launch, "__call__", refusing)
    A, B = np.random.default_rng(1).random((2, 18, 18))
    compiled, mine = mb.compile(eliminated), mb.RefArray(A)
    compiled(mine, mb.RefArray(B))
    eliminated(A, B)
    np.testing.assert_allclose(mb.to_numpy(mine), A, rtol=1e-12)
    assert kernels[0].why == "This cannot be compiled."


def test_pending_readers_keep_what_they_read(kernels):
    A, B = np.random.default_rng(1).random((2, 18, 18))
    mine, other = mb.RefArray(A), mb.RefArray(B)
    before = other + 1
    mb.compile(smoothed)(mine, other)
    assert np.array_equal(mb.to_numpy(before), B + 1)


# Random ones


@pytest.mark.parametrize("make, first, count", [(mb.RefArray, 300, 5), (mb.CuArray, 2000, 5)])
def test_random_loops_are_numpys(tmp_path, monkeypatch, make, first, count):
    monkeypatch.setattr(kernelloops, "CORE", 1.0)
    ran = []
    assert randomloops.failures(count, first, tmp_path, make, ran) == []
    assert len(ran) > count


# The analysis


def nest(text, ranks, left=()):
    found = nest_of(ast.parse(text).body[0], ranks, left)
    return [x.target.id for x in found.parallel], found.reductions, found.why


@pytest.mark.parametrize(
    "text, parallel",
    [
        ("for i in range(n): x[i] = x[i + m]", []),  # m may be anything
        ("for i in range(n): x[i] = x[i + n]", ["i"]),
        ("for i in range(n): x[2 * i] = x[2 * i + 1]", ["i"]),
        ("for i in range(n): x[2 * i] = x[2 * i + 4]", []),
        ("for i in range(0, n, 2): x[i] = x[i - 1] + x[i + 1]", ["i"]),
        ("for i in range(0, n, k): x[i] = x[i]", []),
        ("for i in range(n): x[i * m] = 1.0", []),  # m may be 0
        ("for i in range(k + 1, n): x[i] = x[k]", ["i"]),
        ("for i in range(k, n): x[i] = x[k]", []),
        ("for i in range(k - 1, -1, -1): x[i] = x[k]", ["i"]),
        ("for i in range(n): x[y[i]] = 1.0", []),
        ("for i in range(n): y[i] = x[y[i]]", ["i"]),
        ("for i in range(n):\n  i = i + 1\n  x[i] = 1.0", []),
        ("for i in range(n):\n  if x[i] > 1: break\n  x[i] = 1.0", []),
        ("for i in range(n):\n  t = x[i]\n  x[i] = t * t", ["i"]),
        ("for i in range(n):\n  x[i] = t\n  t = x[i]", []),
        ("for i in range(n):\n  for j in range(i): A[i, j] = A[i, j] + A[j, i]", []),
        ("for i in range(n):\n  for j in range(i + 1, n): A[i, j] = A[j, i]", []),
        ("for i in range(n):\n  for j in range(n): A[j, i] = B[i, j]", ["j", "i"]),
        ("for i in range(n):\n  for j in range(n): x[j] += A[i, j]", ["j"]),
        ("for i in range(n):\n  for j in range(n): x[i + j] = 1.0", []),
        ("for i in range(n):\n  A[i] = x", []),
        ("for i in range(n):\n  A[i, 0] = len(x) + A.shape[1]", ["i"]),
        ("for i in range(n):\n  A[i, 0] = sum(x)", []),
    ],
)
def test_what_turns_touch(text, parallel):
    assert nest(text, {"x": 1, "y": 1, "A": 2, "B": 2})[0] == parallel


@pytest.mark.parametrize(
    "text, reductions",
    [
        ("for i in range(n): s += x[i]", {"s": "sum"}),
        ("for i in range(n): s = x[i] + s", {"s": "sum"}),
        ("for i in range(n): s = x[i] - s", {}),
        ("for i in range(n): s = max(s, x[i])", {"s": "max"}),
        ("for i in range(n): s = max(x[i], s)", {}),  # (it is NaN where Python's is not)
        ("for i in range(n):\n  s += x[i]\n  s *= 2", {}),
        ("for i in range(n):\n  s += x[i]\n  y[i] = s", {}),
        ("for i in range(n):\n  s += s", {}),
        ("for i in range(n):\n  for j in range(n):\n    s *= A[i, j]", {"s": "prod"}),
    ],
)
def test_what_is_gathered(text, reductions):
    parallel, found, why = nest(text, {"x": 1, "y": 1, "A": 2}, ["s"])
    assert (found if parallel else {}) == reductions and bool(why) != bool(parallel)


def test_kinds_of_numbers():
    loop = ast.parse(
        "for i in range(n):\n  a = i // 2\n  b = a / 2\n  c = c + z[i]\n  d = f(a)\n  e, g = 1, x[i]\n  h += d"
    )
    found = kinds_of(loop, {"n": 5, "c": 0, "z": np.ones(3, "c16"), "x": np.ones(2), "h": 1})
    assert [found[v] for v in "abcdegh"] == ["i", "f", "c", "", "i", "f", ""]


def test_ranges_know_what_says_them():
    loop = ast.parse("for i in range(f(k), x[0], n): pass").body[0]
    assert Ranges.names(loop) > {"n"} and "<call>" in Ranges.names(loop)
    assert ast.unparse(joined(ast.parse("A[i][:] = A[i][None, j]"), {"A": 2})) == "A[i][:] = A[i][None, j]"
