"""Loops over mesh points, against one that runs the kernel as plain Python at each point."""

import gc
import threading
import weakref

import numpy as np
import pytest

import mirabelle as mb
from mirabelle import meshdata as md
from mirabelle.arraytypes.meshdata.access import Intent
from mirabelle.backends.host import meshloops
from mirabelle.dispatch.errors import UserFunctionError
from tests.meshtrees import random_columns

KINDS = ["HostArray", "RefArray", "CuArray"]


@pytest.fixture(params=["HostArray", "HostArray in ranges", "RefArray", "CuArray"])
def kind(request, monkeypatch):
    """A kind of arrays. The host's loops run as one range, and as many whatever is left for the end."""
    ranges = request.param.endswith("ranges")
    monkeypatch.setattr(meshloops, "LEAST_POINTS", 1 if ranges else 10**9)
    monkeypatch.setattr(meshloops, "MOST_LEFT", 1.0)
    monkeypatch.setattr(mb.settings, "num_threads", 3)
    return request.param.split()[0]


def by_hand(points, kernel, *accesses):
    """What a loop means: the kernel at one point after the other, on NumPy's arrays."""
    at = points.indices if isinstance(points, md.Subset) else range(points.size)
    arrays = [mb.to_numpy(a.array).copy() if hasattr(a.array, "shape") else a.array for a in accesses]
    for a, x in zip(accesses, arrays, strict=True):
        if a.intent.fresh:
            x[...] = a.intent.neutral(x.dtype)
    for p in at:
        given = []
        for a, x in zip(accesses, arrays, strict=True):
            if a.whole:
                rows = ...
            else:
                rows = p if a.through is None else a.through.table[p]
            shape = np.shape(x if a.whole else x[rows])
            if a.intent.gathers:
                local = np.array(x if a.whole else x[rows])
                if not a.whole and a.through is not None:
                    local[a.through.table[p] < 0] = 0
                local = local[()] if not shape and a.intent is Intent.READ else local.reshape(shape or (1,))
            else:
                local = np.full(
                    shape or (1,), 0 if a.intent is Intent.WRITE else a.intent.neutral(x.dtype), x.dtype
                )
            given.append(local)
        kernel(*given)
        for a, x, local in zip(accesses, arrays, given, strict=True):
            if not a.intent.writes:
                continue
            rows = range(1) if a.whole or a.through is None else a.through.table[p]
            for k, row in enumerate(rows):
                if row < 0:
                    continue
                value = local[k] if a.through is not None else local.reshape(np.shape(x if a.whole else x[p]))
                row = ... if a.whole else (p if a.through is None else row)
                combine = getattr(np, a.intent.combines) if a.intent.combines else lambda _, new: new
                x[row] = combine(x[row], value)
    return arrays


def same(points, kernel, *accesses, kind="HostArray", exact=True, **options):
    """Run a loop on arrays of a kind, and compare all arrays with what it means."""
    family = getattr(mb, kind)
    wanted = by_hand(points, kernel, *accesses)
    moved = [
        type(a)(a.intent, family(a.array) if hasattr(a.array, "shape") else a.array, a.through, a.whole)
        for a in accesses
    ]
    md.loop(points, kernel, *moved, **options)
    for a, want in zip(moved, wanted, strict=True):
        if hasattr(a.array, "shape"):
            got = mb.to_numpy(a.array)
            assert got.dtype == want.dtype
            if exact:
                np.testing.assert_array_equal(got, want)
            else:
                np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13)


# The example mesh: the unit square of two triangles

CELLS = md.Points("mesh", "cell", 2)
CORNERS = md.Dofs(CELLS, [[0, 1, 2], [1, 3, 2]], size=4)
SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
REFERENCE = np.array([[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0]])


def jacobian(x):
    return np.array([[x[1, 0] - x[0, 0], x[2, 0] - x[0, 0]], [x[1, 1] - x[0, 1], x[2, 1] - x[0, 1]]])


def laplace(x, u, y):
    J = jacobian(x)
    g = REFERENCE @ np.linalg.inv(J)
    y += 0.5 * abs(np.linalg.det(J)) * (g @ (g.T @ u))


def test_contributions_to_a_vertex_are_added(kind):
    y = getattr(mb, kind)(np.zeros(4))

    def one(y):
        for i in range(3):
            y[i] += 1

    md.loop(CELLS, one, md.INC(y, CORNERS))
    assert mb.to_numpy(y).tolist() == [1, 2, 2, 1]


def test_the_stiffness_of_the_square(kind):
    family = getattr(mb, kind)
    y = family(np.zeros(4))
    md.loop(
        CELLS,
        laplace,
        md.READ(family(SQUARE), CORNERS),
        md.READ(family(np.arange(4.0)), CORNERS),
        md.INC(y, CORNERS),
    )
    assert mb.to_numpy(y).tolist() == [-1.5, -0.5, 0.5, 1.5]


def test_products_and_sums_have_the_same_bits_everywhere(kind, monkeypatch):
    """On a card they are not contracted to fused multiply-adds, unless sums may go in any order."""
    rng, family = np.random.default_rng(5), getattr(mb, kind)
    points, told = md.Points("set", "p", 50), []
    table = md.Dofs(points, rng.integers(0, 20, (50, 3)), 20)
    if kind != "HostArray":
        driver = type(family.driver())
        load = driver.load

        def loading(self, source, functions, contract=False):
            if "mixed" in source.name:
                told.append(contract)
            return load(self, source, functions, contract=contract)

        monkeypatch.setattr(driver, "load", loading)

    def mixed(x, y):
        for i in range(3):
            y[i] += x[i] * x[(i + 1) % 3] + 0.1 * x[i]

    same(points, mixed, md.READ(rng.random(20), table), md.INC(rng.random(20), table), kind=kind)
    assert told == ([] if kind == "HostArray" else [False, False])
    y = mb.zeros(20, device=family)
    md.loop(points, mixed, md.READ(family(rng.random(20)), table), md.INC(y, table), atomics=True)
    assert told[2:] == ([] if kind == "HostArray" else [True])


def test_a_composed_map_adds_duplicates_twice():
    f, g = np.array([[1, 2], [0, 2], [0, 1]]), np.array([[0, 3], [3, 1], [2, 2]])
    points = md.Points("set", None, 3)
    reach = md.Dofs(points, g[f].reshape(3, 4), size=4)

    def total(x, out):
        out[0] = x[0] + x[1] + x[2] + x[3]

    def spread(p, w):
        for i in range(4):
            w[i] += p + 1

    out, w = mb.zeros(3), mb.zeros(4, dtype="i8")
    md.loop(points, total, md.READ(mb.HostArray([1.0, 10.0, 100.0, 1000.0]), reach), md.WRITE(out))
    md.loop(points, spread, md.READ(mb.arange(3)), md.INC(w, reach))
    assert out.tolist() == [1210, 1201, 2011]
    assert w.tolist() == [5, 4, 6, 9]


# Random loops

DTYPES = ["f8", "f4", "i4", "i8", "c16"]


def random_access(rng, n, intent, dtype, whole=False):
    block = tuple(int(b) for b in rng.integers(1, 4, rng.integers(0, 3)))
    how = "whole" if whole else rng.choice(["direct", "table", "partial", "injective"])
    if intent is Intent.RW and how in ("table", "partial"):
        how = "injective"
    size = int(rng.integers(1, 30))
    through = None
    points = md.Points("set", "p", n)
    if how == "injective":
        arity = int(rng.integers(1, 4))
        size = n * arity + int(rng.integers(0, 3))
        through = md.Dofs(points, rng.permutation(size)[: n * arity].reshape(n, arity), size)
    elif how in ("table", "partial"):
        table = rng.integers(-1 if how == "partial" else 0, size, (n, int(rng.integers(1, 5))))
        through = md.Dofs(points, table, size)
    elif how == "direct":
        size = n
    shape = block if how == "whole" else (size, *block)
    x = np.asarray(rng.integers(0, 20, shape)).astype(dtype)
    if dtype[0] in "fc":
        x = np.asarray(x / 4).astype(dtype)
        if dtype == "c16":
            x = np.asarray(x * (1 + 0.5j))
    return md.READ(x).__class__(intent, x, through, how == "whole")


def mixing(rng, accesses):
    """A kernel that puts combinations of what it reads into all that it writes."""
    weights = [int(w) for w in rng.integers(1, 4, 64)]
    branch = bool(rng.integers(0, 2)) and all(np.asarray(a.array).dtype.kind != "c" for a in accesses)

    def kernel(*given):
        total = 0
        for i, (a, x) in enumerate(zip(accesses, given, strict=True)):
            if a.intent.gathers:
                for j, e in enumerate(np.ravel(x)):
                    total = total + e * weights[(i + j) % 64]
        if branch and total > 30:
            total = 30
        for i, (a, y) in enumerate(zip(accesses, given, strict=True)):
            if a.intent.writes:
                for j, at in enumerate(np.ndindex(y.shape)):
                    y[at] = total * weights[(i * 7 + j) % 64] + j

    names = [f"x{i}" for i in range(len(accesses))]
    scope = {"kernel": kernel}
    exec(f"def named({', '.join(names)}):\n    kernel({', '.join(names)})", scope)
    return scope["named"]


def random_loop(rng, kind):
    dtype = str(rng.choice(DTYPES))
    n = int(rng.integers(0, 40))
    intents = [Intent.INC, Intent.WRITE, Intent.RW]
    if dtype != "c16":
        intents += [Intent.MIN_RW, Intent.MAX_RW, Intent.MIN_WRITE, Intent.MAX_WRITE]
    accesses = [
        random_access(rng, n, Intent.READ, dtype, bool(rng.integers(0, 4) == 0))
        for _ in range(rng.integers(1, 3))
    ]
    for _ in range(rng.integers(1, 3)):
        intent = intents[rng.integers(len(intents))]
        whole = bool(intent.combines) and bool(rng.integers(0, 5) == 0) and n > 0
        accesses.append(random_access(rng, n, intent, dtype, whole))
    return md.Points("set", "p", n), mixing(rng, accesses), accesses


def random_column_loop(rng):
    """A loop over points in columns: of arrays over random trees, of rows of points below, of levels."""
    columns, trees = random_columns(rng)
    points, dtype = columns.points(), str(rng.choice(DTYPES[:-1]))
    reach = [columns.dofs(tree) for tree in trees] + [columns.rows("vertex"), columns.levels()]

    def access(intent):
        if rng.random() < 0.2:
            a = random_access(rng, len(points), intent, dtype, bool(intent.combines) and rng.random() < 0.5)
            rows = None if a.through is None else md.Dofs(points, a.through.table, a.through.size)
            return type(a)(intent, a.array, rows, a.whole)
        ways = [d for d in reach if d.arity and (intent is not Intent.RW or d.injective)]
        through = ways[rng.integers(len(ways))] if ways else None
        size = len(points) if through is None else through.size
        return md.READ(0.0).__class__(intent, rng.integers(0, 20, size).astype(dtype), through, False)

    writes = [Intent.INC, Intent.INC, Intent.WRITE, Intent.RW, Intent.MIN_RW, Intent.MAX_WRITE]
    accesses = [access(Intent.READ) for _ in range(rng.integers(1, 3))]
    accesses += [access(writes[rng.integers(len(writes))]) for _ in range(rng.integers(1, 3))]
    return points, mixing(rng, accesses), accesses


@pytest.mark.parametrize("seed", range(4))
def test_random_loops(kind, seed):
    rng = np.random.default_rng(seed)
    points, kernel, accesses = random_loop(rng, kind) if seed % 2 else random_column_loop(rng)
    wholes = any(a.whole and a.intent.writes for a in accesses)
    same(points, kernel, *accesses, kind=kind, exact=not wholes)


# In programs, with derivatives


def smoothed(u, x, kind):
    y = mb.zeros_like(u * x[:, 0])
    md.loop(CELLS, laplace, md.READ(x, CORNERS), md.READ(u, CORNERS), md.INC(y, CORNERS))
    return u - 0.1 * mb.sin(y)


def test_a_loop_in_a_program_is_a_step(kind):
    family = getattr(mb, kind)
    x, u = family(SQUARE), family(np.array([1.0, -2.0, 3.0, 5.0]))
    step = mb.compile(lambda u: smoothed(u, x, kind))
    for _ in range(3):
        assert mb.to_numpy(step(u)).tolist() == mb.to_numpy(smoothed(u, x, kind)).tolist()


@pytest.mark.parametrize(
    "start",
    [
        lambda x: mb.full_like(x, 3.0), lambda x: mb.copy(mb.broadcast_to(x[0], (4, 4))),
        lambda x: mb.copy(x.T), lambda x: mb.copy(x[::-1]), lambda x: x + 1,
    ],
)  # fmt: skip
def test_what_a_loop_of_a_program_adds_to(kind, start):
    """(Memory of the program: copies of views are what they show, natively, too.)"""

    def f(x):
        y = start(x)
        md.loop(CELLS, rows, md.READ(x, CORNERS), md.INC(y, CORNERS))
        return y - x

    def rows(x, y):
        for i in range(3):
            for j in range(4):
                y[i, j] += x[(i + 1) % 3, j]

    step, x = mb.compile(f, whole=True), getattr(mb, kind)(np.arange(16.0).reshape(4, 4))
    with mb.settings.changed(compiler="inline"):
        for _ in range(2):
            assert mb.to_numpy(step(x)).tolist() == mb.to_numpy(f(x)).tolist()


@pytest.mark.parametrize("compiled", [False, True])
def test_derivatives_go_through_loops(kind, compiled):
    family = getattr(mb, kind)
    x, u = family(SQUARE), family(np.array([1.0, -2.0, 3.0, 5.0]))

    def total(u, x):
        return mb.sum(smoothed(u, x, kind) ** 2)

    def gradients(u, x):
        return mb.autodiff.gradient(lambda u: total(u, x), u), mb.autodiff.gradient(lambda x: total(u, x), x)

    found = [mb.to_numpy(g) for g in (mb.compile(gradients) if compiled else gradients)(u, x)]
    for which, g in enumerate(found):
        for at in np.ndindex(g.shape):
            change = np.zeros(g.shape)
            change[at] = 1e-6
            up, down = (
                float(
                    mb.to_numpy(
                        total(*[a + s * family(change) if i == which else a for i, a in enumerate((u, x))])
                    )
                )
                for s in (1, -1)
            )
            assert abs(g[at] - (up - down) / 2e-6) < 1e-6


def test_derivatives_of_what_is_written_and_rewritten():
    points = md.Points("set", "p", 3)
    table = md.Dofs(points, [[2], [0], [1]], size=3)

    def kernel(a, b, c):
        c[0] = a * b[0] + np.where(a > 2, a**2, np.sqrt(a))
        b[0] = b[0] * np.exp(-a)

    def f(a):
        b, c = mb.zeros_like(a) + a, mb.zeros_like(a)
        md.loop(points, kernel, md.READ(a), md.RW(b, table), md.WRITE(c))
        return mb.concat([b, c])

    a = mb.HostArray([1.0, 2.5, 4.0])
    J = mb.to_numpy(mb.autodiff.jacobian(f, a))
    for j in range(3):
        e = np.eye(3)[j] * 1e-6
        np.testing.assert_allclose(J[:, j], mb.to_numpy(f(a + e) - f(a - e)) / 2e-6, atol=1e-7)


# What is refused


def one(y):
    for i in range(3):
        y[i] += 1


def refused(error, text, points, kernel, *accesses):
    with pytest.raises(error, match=text):
        md.loop(points, kernel, *accesses)


def test_bad_loops_say_what_is_wrong():
    x, y = mb.ones(4), mb.zeros(4)

    def copy(x, y):
        y[...] = x

    def breaks_promise(x, y):
        x[0] = 1
        y[0] = 2

    def forgets(x, y):
        y[0] = x[0]

    def peeks(x, y):
        y[0] = y[1] + x[0]

    def endless(x, y):
        while x[0] > 0:
            x = x - 1

    refused(ValueError, "one array", CELLS, copy, md.READ(x, CORNERS), md.INC(x, CORNERS))
    refused(ValueError, "one array", CELLS, copy, md.READ(x[::-1], CORNERS), md.INC(x, CORNERS))
    refused(ValueError, "RW", CELLS, copy, md.READ(x, CORNERS), md.RW(y, CORNERS))
    refused(
        UserFunctionError, "promised to read", CELLS, breaks_promise, md.READ(x, CORNERS), md.INC(y, CORNERS)
    )
    refused(
        UserFunctionError, r"does not write y\[1\]", CELLS, forgets, md.READ(x, CORNERS), md.WRITE(y, CORNERS)
    )
    refused(UserFunctionError, "before it has written", CELLS, peeks, md.READ(x, CORNERS), md.WRITE(y, CORNERS))
    refused(UserFunctionError, "np.where", CELLS, endless, md.READ(x, CORNERS), md.INC(y, CORNERS))
    refused(
        UserFunctionError, "constants", CELLS, lambda x, y: y[x[0]], md.READ(x, CORNERS), md.INC(y, CORNERS)
    )
    refused(UserFunctionError, "returns", CELLS, lambda x, y: 1, md.READ(x, CORNERS), md.INC(y, CORNERS))
    refused(TypeError, "one access for each", CELLS, copy, md.READ(x, CORNERS))
    refused(TypeError, "what happens to it", CELLS, copy, x, md.INC(y, CORNERS))
    refused(ValueError, "loop runs over 2 points", CELLS, copy, md.READ(x), md.INC(y, CORNERS))
    refused(ValueError, "writes nothing|leads", CELLS, copy, md.READ(mb.ones(5), CORNERS), md.INC(y, CORNERS))
    refused(TypeError, "writes nothing", CELLS, lambda x: None, md.READ(x, CORNERS))
    refused(
        ValueError, "leads from", md.Points("mesh", "edge", 2), copy, md.READ(x, CORNERS), md.INC(y, CORNERS)
    )
    assert y.tolist() == [0, 0, 0, 0]
    with pytest.raises(IndexError, match="leads outside: row 1 has 4"):
        md.Dofs(CELLS, [[0, 1, 2], [1, 4, 2]], size=4)
    with pytest.raises(ValueError, match="a row of integers"):
        md.Dofs(CELLS, [[0.5], [1.0]], size=4)


def test_an_array_of_another_place_is_refused():
    refused(
        mb.PlaceError, "Move it once", CELLS, laplace,
        md.READ(mb.RefArray(SQUARE), CORNERS), md.READ(mb.ones(4), CORNERS), md.INC(mb.zeros(4), CORNERS),
    )  # fmt: skip


def test_what_was_said_before_keeps_its_values():
    y = mb.zeros(4)
    before = y + 1
    md.loop(CELLS, one, md.INC(y, CORNERS))
    assert before.tolist() == [1, 1, 1, 1] and y.tolist() == [1, 2, 2, 1]


def test_a_subset_of_points():
    y = mb.zeros(4)
    for _ in range(2):
        md.loop(CELLS.subset([1]), one, md.INC(y, CORNERS))
    d = mb.zeros(2)
    md.loop(CELLS.subset([False, True]), lambda d: d.__setitem__(0, 3.0), md.WRITE(d))
    assert y.tolist() == [0, 2, 2, 2] and d.tolist() == [0, 3]


def test_one_launch_on_the_host():
    y = mb.zeros(4)
    with mb.count() as counted:
        md.loop(CELLS, one, md.INC(y, CORNERS))
    assert counted.launches == 1 and not counted.scalar_reads


@pytest.mark.parametrize("joined", [np.stack, np.concatenate, np.vstack, np.hstack])
def test_arrays_are_joined_in_a_kernel(joined):
    """Local ones with each other, and with constants."""
    constants = np.array([[3.0, 4.0], [5.0, 6.0]])

    def kernel(x, y):
        made = joined([x[:2], constants, x[1:]])
        for i, at in enumerate(np.ndindex(made.shape)):
            y[0] += (i + 1) * made[at]
        y[0] += joined((x[0], x[1])).sum()

    y = mb.zeros(4)
    md.loop(CELLS, kernel, md.READ(mb.HostArray(SQUARE), CORNERS), md.INC(y, CORNERS))
    wanted = [np.zeros(1), np.zeros(1)]
    for w, corners in zip(wanted, CORNERS.table, strict=True):
        kernel(SQUARE[corners], w)
    assert y.tolist() == [wanted[0][0], wanted[1][0], 0, 0]


def test_subsets_that_come_once_do_not_pile_up():
    y = mb.zeros(4)
    for _ in range(100):
        md.loop(CELLS.subset([1]), one, md.INC(y, CORNERS))
    assert len(CORNERS._facts) <= 32 and y.tolist() == [0, 100, 100, 100]


def test_a_kernel_is_let_go_with_its_function():
    def made():
        def one(y):
            y[0] += 1

        md.loop(CELLS, one, md.INC(mb.zeros(4), md.Dofs(CELLS, [[0], [1]], size=4)))
        return weakref.ref(one)

    gone = made()
    gc.collect()
    assert gone() is None


def test_one_kernel_for_many_loops(kind):
    """What is kept of a loop is used for those like it, and for no other."""

    def kernel(x, y):
        for i in range(2):
            y[i] += 2 * x[i] + x[1 - i]

    family, rng = getattr(mb, kind), np.random.default_rng(3)
    seen = 0
    for turn in range(40):
        n, size = int(rng.integers(1, 6)), int(rng.integers(2, 6))
        cells = md.Points("mesh", "cell", n)
        points = cells.subset(rng.permutation(n)[: rng.integers(1, n + 1)]) if rng.integers(2) else cells
        maps = [md.Dofs(cells, rng.integers(0, size, (n, 2)), size) for _ in "ab"]
        dtype = [np.float64, np.float32][rng.integers(2)]
        for _ in range(2 if turn % 3 else 1):  # (and again with other arrays)
            x, y = rng.integers(0, 9, size).astype(dtype), rng.integers(0, 9, size).astype(np.float64)
            a, b = (family(v) for v in (x, y))
            wanted = y.copy()
            for p in points.indices if isinstance(points, md.Subset) else range(n):
                rows, goals = (m.table[p] for m in maps)
                read = np.where(rows < 0, 0, x[rows]).astype(float)
                for i in range(2):
                    if goals[i] >= 0:
                        wanted[goals[i]] += 2 * read[i] + read[1 - i]
            md.loop(points, kernel, md.READ(a, maps[0]), md.INC(b, maps[1]))
            assert np.array_equal(mb.to_numpy(b), wanted), turn
            seen += 1
        del cells, points, maps  # (so that others take their addresses)
    assert seen > 50
    x = family(np.ones(3))
    maps = md.Dofs(md.Points("mesh", "cell", 1), [[0, 1]], 3)
    for _ in range(2):  # what is refused is refused again
        y = family(np.zeros(3))
        md.loop(maps.source, kernel, md.READ(x, maps), md.INC(y, maps))
        with pytest.raises(ValueError, match="are one array"):
            md.loop(maps.source, kernel, md.READ(y, maps), md.INC(y, maps))


# Derivatives of least and largest contributions

EXTREMES = {"MIN_RW": md.MIN_RW, "MAX_RW": md.MAX_RW, "MIN_WRITE": md.MIN_WRITE, "MAX_WRITE": md.MAX_WRITE}


def heights(x, u, y):
    for i in range(3):
        y[i] = u[(i + 1) % 3] * x[i, 0] + 0.5 * (0.25 * u[i] + 0.125 * u[i]) ** 2 - x[i, 1]


@pytest.mark.parametrize("intent", EXTREMES)
@pytest.mark.parametrize("whole", [False, True])
def test_derivatives_of_the_least_and_the_largest(kind, intent, whole):
    family = getattr(mb, kind)
    mesh = md.unit_square(3)
    cells, corners = mesh.points("cell"), mesh.closure("cell", "vertex")
    rng = np.random.default_rng(5)
    x = family(rng.standard_normal((16, 2)))
    u, start = family(rng.standard_normal(16)), family(rng.standard_normal(3 if whole else 16) * 0.3)

    def f(u):
        y = mb.zeros_like(u[: start.shape[0]]) + start * u[0]
        through = {"whole": True} if whole else {"through": corners}
        md.loop(cells, heights, md.READ(x, corners), md.READ(u, corners), EXTREMES[intent](y, **through))
        return mb.exp(y)

    values, J = mb.to_numpy(f(u)), mb.to_numpy(mb.autodiff.jacobian(f, u))
    for j in range(16):
        e = family(np.eye(16)[j] * 1e-6)
        change = mb.to_numpy(f(u + e) - f(u - e)) / 2e-6
        np.testing.assert_allclose(J[..., j], change, atol=1e-6 * max(1, abs(change).max()))
    along, direction = mb.autodiff.jvp(f, (u,), (mb.ones_like(u),)), J.sum(axis=-1)
    np.testing.assert_allclose(mb.to_numpy(along[0]), values, rtol=1e-15)
    np.testing.assert_allclose(mb.to_numpy(along[1]), direction, rtol=1e-12, atol=1e-12)


def test_of_equals_each_counts_as_much():
    points = md.Points("set", "p", 4)
    to = md.Dofs(points, [[0], [0], [1], [-1]], size=3)

    def kernel(a, y):
        y[0] = a

    def f(a):
        y = mb.zeros_like(a[:3]) + 7.0 * a[0]
        md.loop(points, kernel, md.READ(a), md.MIN_RW(y, to))
        return y

    a = mb.HostArray([2.0, 2.0, 14.0, -1.0])  # y: 14, 14, 14
    J = mb.to_numpy(mb.autodiff.jacobian(f, a))
    np.testing.assert_allclose(J, [[0.5, 0.5, 0, 0], [3.5, 0, 0.5, 0], [7, 0, 0, 0]])


def test_second_derivatives_of_the_largest():
    points = md.Points("set", "p", 3)

    def kernel(a, y):
        y[0] = a**3

    def f(a):
        y = mb.zeros_like(a[:1])
        md.loop(points, kernel, md.READ(a), md.MAX_WRITE(y, whole=True))
        return y[0]

    H = mb.to_numpy(mb.autodiff.hessian(f, mb.HostArray([1.0, 2.0, 0.5])))
    np.testing.assert_allclose(H, np.diag([0.0, 12.0, 0.0]))


@pytest.mark.parametrize("access", [md.INC, md.WRITE])
def test_second_derivatives_of_sums(access):
    points = md.Points("set", "p", 3)
    table = md.Dofs(points, [[0, 1], [1, 2], [2, 3]], size=4)

    def kernel(a, y):
        y[0] = a[0] ** 3 * a[1] if access is md.WRITE else y[0] + a[0] ** 3 * a[1]

    def f(a):
        y = mb.zeros_like(a)
        md.loop(points, kernel, md.READ(a, table), access(y[1:]))
        return mb.sum(y * y)

    def plain(a):
        return mb.sum((a[:3] ** 3 * a[1:]) ** 2)

    a = mb.HostArray([1.0, 2.0, 0.5, -1.0])
    H = mb.to_numpy(mb.autodiff.hessian(f, a))
    np.testing.assert_allclose(H, mb.to_numpy(mb.autodiff.hessian(plain, a)), rtol=1e-12, atol=1e-12)


def test_threads_that_run_one_kernel_on_points_of_their_own():
    """What is known of kernels and tables is shared: threads that change places often add to it and drop it."""
    from threadranks import changing_often  # (this module is imported by a soak, too)

    mesh = md.unit_square(6, 5)
    cells, corners = mesh.points("cell"), mesh.closure("cell", "vertex")
    V = md.space(mesh, "P", 2)
    x, u = mb.HostArray(mesh.coordinates), V.interpolate(lambda p: p[..., 0], mb.HostArray)

    def weighed(x, u, y):
        for i in range(6):
            y[i] += u[i] * x[0, 0] + x[1, 1]

    def ran(points):
        y = V.zeros(mb.HostArray)
        md.loop(points, weighed, md.READ(x, corners), md.READ(u, V.dofs), md.INC(y, V.dofs))
        return mb.to_numpy(y)

    wanted, wrong = ran(cells), []

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(40):
                some = np.sort(rng.permutation(cells.size)[: rng.integers(1, 20)])
                assert np.array_equal(ran(cells), wanted)
                assert np.array_equal(ran(cells.subset(some)), ran(cells.subset(some)))
        except BaseException as e:
            wrong.append(e)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    with changing_often():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    assert not wrong and not any(t.is_alive() for t in threads), wrong
