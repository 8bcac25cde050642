"""Loops over mesh points, against one that runs the kernel as plain Python at each point."""

import numpy as np
import pytest

import mirabelle as mb
from mirabelle import meshdata as md
from mirabelle.arraytypes.meshdata.access import Intent
from mirabelle.backends.host import meshloops

KINDS = ["HostArray", "RefArray", "CuArray"]


@pytest.fixture(params=["whole", "ranges"], autouse=True)
def ranges(request, monkeypatch):
    """The host's loops as one range and as many, whatever the number of points."""
    if request.param == "ranges":
        monkeypatch.setattr(meshloops, "LEAST_POINTS", 1)
        monkeypatch.setattr(mb.settings, "num_threads", 2)
    else:
        monkeypatch.setattr(meshloops, "LEAST_POINTS", 10**9)


def by_hand(points, kernel, *accesses):
    """What a loop means: the kernel at one point after the other, on NumPy's arrays."""
    at = points.indices if isinstance(points, md.Subset) else range(points.size)
    arrays = [mb.to_numpy(a.array).copy() if hasattr(a.array, "shape") else a.array for a in accesses]
    for a, x in zip(accesses, arrays, strict=True):
        if a.intent.fresh:
            x[...] = a.intent.neutral(x.dtype)
    old = [x.copy() if isinstance(x, np.ndarray) else x for x in arrays]
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
    del old
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


@pytest.mark.parametrize("kind", KINDS)
def test_contributions_to_a_vertex_are_added(kind):
    y = getattr(mb, kind)(np.zeros(4))

    def one(y):
        for i in range(3):
            y[i] += 1

    md.loop(CELLS, one, md.INC(y, CORNERS))
    assert mb.to_numpy(y).tolist() == [1, 2, 2, 1]


@pytest.mark.parametrize("kind", KINDS)
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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_random_loops(kind, seed):
    rng = np.random.default_rng(seed)
    points, kernel, accesses = random_loop(rng, kind)
    wholes = any(a.whole and a.intent.writes for a in accesses)
    same(points, kernel, *accesses, kind=kind, exact=not wholes)
