"""Layers on meshes: what loops compute of columns is what tables say, bit for bit, and no table is made."""

import numpy as np
import pytest
from threadranks import on_ranks

import mirabelle as mb
from mirabelle import meshdata as md
from mirabelle.backends.host import meshloops
from tests.meshtrees import check_columns, random_columns

BASES = {
    "triangle": lambda: md.unit_square(3),
    "quadrilateral": lambda: md.unit_square(3, shape="quadrilateral"),
    "interval": lambda: md.interval(5),
}


@pytest.fixture(params=["HostArray", "HostArray in ranges", "RefArray", "CuArray"])
def kind(request, monkeypatch):
    """A kind of arrays. The host's loops run as one range, and as many whatever is left for the end."""
    monkeypatch.setattr(meshloops, "LEAST_POINTS", 1 if request.param.endswith("ranges") else 10**9)
    monkeypatch.setattr(meshloops, "MOST_LEFT", 1.0)
    monkeypatch.setattr(mb.settings, "num_threads", 2)
    return request.param.split()[0]


def trees(base, layers):
    """Axes in several orders, some of which share entries between layers, and some between columns."""
    level, layer, two = md.Axis("level", layers + 1), md.Axis("layer", layers), md.Axis("dof", 2)
    yield md.tree(base.axis_of("vertex"), level)
    yield md.tree(base.axis_of("vertex"), level, two)
    yield md.tree(level, base.axis_of("vertex"), md.Axis("dim", 3))
    yield md.tree(base.axis_of("cell"), layer, two)
    yield md.tree(level)
    yield md.tree(
        base.axis_of("cell", "vertex"),
        {"cell": md.tree(layer, two), "vertex": md.tree(level)},
    )


def mixes(x, y):
    flat, other = y.reshape(y.size), x.reshape(x.size)
    for i in range(y.size):
        flat[i] += other[i % x.size] + 0.1 * other[(i + 1) % x.size]


# Which trees are read, and which are added to: all in turn.
PAIRS = {"triangle": [(0, 1), (5, 0)], "quadrilateral": [(4, 0)], "interval": [(1, 5), (3, 4), (2, 3)]}


@pytest.mark.parametrize("name", BASES)
def test_loops_are_those_with_tables(name, kind):
    if kind in ("RefArray", "CuArray") and name != "interval":
        pytest.skip("one is enough")
    base, layers, rng = BASES[name](), 4, np.random.default_rng(len(name))
    columns, family = md.columns(base, layers), getattr(mb, kind)
    made = list(trees(base, layers))
    for read, added in PAIRS[name]:
        of, into = columns.dofs(made[read]), columns.dofs(made[added])
        x, y = rng.random(of.size), rng.random(into.size)

        def kernel(x, y):
            mixes(x, y)

        flat = family(y)
        md.loop(columns.points(), kernel, md.READ(family(x), of), md.INC(flat, into))
        if kind == "HostArray":
            assert of._whole is None and into._whole is None
        for p in range(len(columns.points())):  # point by point, in Python
            local = np.zeros(into.local)
            kernel(x[of.table[p]].reshape(of.local), local)
            for k, entry in enumerate(into.table[p]):
                y[entry] += local.ravel()[k]
        np.testing.assert_array_equal(mb.to_numpy(flat), y)


@pytest.mark.parametrize("seed", range(6))
def test_random_columns_reach_what_a_walk_finds(seed):
    columns, trees = random_columns(np.random.default_rng(seed))
    for tree in trees:
        check_columns(columns, tree)


@pytest.mark.parametrize("access", [md.MAX_WRITE, md.WRITE, md.RW])
def test_other_accesses(access, kind):
    base = md.unit_square(3)
    columns, family = md.columns(base, 3), getattr(mb, kind)
    tree = md.tree(base.axis_of("vertex"), md.Axis("level", 4))
    into = columns.dofs(tree)
    if access is md.RW:
        into = columns.dofs(md.tree(base.axis_of("cell"), md.Axis("layer", 3)))
        assert into.injective and not columns.dofs(tree).injective

    def kernel(height, y):
        for i in range(y.size):
            if access is md.MAX_WRITE:
                y[i] = np.maximum(y[i], height[1] * i)
            elif access is md.RW:
                y[i] = y[i] * 2 + height[0]
            else:
                y[i] = height[0] + i

    heights, y = np.random.default_rng(1).random(4), np.random.default_rng(2).random(into.size)
    results = []
    for levels, rows in ((columns.levels(), into), _plain(columns.levels(), into)):
        flat = family(y)
        md.loop(columns.points(), kernel, md.READ(family(heights), levels), access(flat, rows))
        results.append(mb.to_numpy(flat))
    assert np.array_equal(*results)


def _plain(*of):
    return [md.Dofs(d.source, d.table, d.size, local=d.local) for d in of]


@pytest.mark.parametrize("name", BASES)
def test_they_are_the_meshes_that_are_extruded(name):
    """The same cells of the same corners, which are numbered otherwise: by columns, and by layers."""
    base, heights = BASES[name](), np.array([0.0, 0.3, 0.5, 1.0])
    columns, mesh = md.columns(base, 3), md.extruded(base, heights)
    if base.dim == 1:
        base = md.Mesh(base.coordinates, base.cells)
    tree = md.tree(base.axis_of("vertex"), md.Axis("level", 4))
    table = columns.dofs(tree).table.reshape(base.points("cell").size, 3, -1)
    vertex, level = np.divmod(table, 4)
    found = (level * base.points("vertex").size + vertex).transpose(1, 0, 2).reshape(len(mesh.midpoints()), -1)
    wanted = mesh.closure("cell", "vertex").target().table
    assert np.array_equal(np.sort(found, axis=1), np.sort(wanted, axis=1))


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("kind", ["HostArray", "RefArray"])
def test_columns_over_processes(ranks, kind):
    """With the constructor of arrays swapped, as other loops."""

    def program(array):
        columns = md.columns(md.unit_square(3), 3)
        tree = md.tree(columns.base.axis_of("vertex"), md.Axis("level", 4))
        u, y = md.wrap(tree, array(np.sin(np.arange(64.0)))), md.zeros(tree, array=array)
        own = array(np.zeros(len(columns.points())))

        def kernel(x, z, u, y, own):
            for i in range(6):
                y[i] += x[i % 3, 0] * z[i // 3] + u[5 - i]
            own[0] = u[0] - u[5]

        md.loop(
            columns.points(), kernel, md.READ(array(columns.base.coordinates), columns.rows("vertex")),
            md.READ(array(np.linspace(0, 1, 4)), columns.levels()), md.READ(u, columns.dofs(tree)),
            md.INC(y, columns.dofs(tree)), md.WRITE(own),
        )  # fmt: skip
        return mb.to_numpy(y.parent), mb.to_numpy(own)

    wanted = program(mb.HostArray)
    for found in on_ranks(ranks, lambda comm: program(mb.DArray[getattr(mb, kind)])):
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)


def volume(x, z, v):
    v[0] = 0.5 * abs(np.linalg.det(np.stack([x[1] - x[0], x[2] - x[0]]))) * (z[1] - z[0])


def heat(x, z, u, y):
    """The action of a diffusion operator on prisms: by the midpoint in the height."""
    J = np.stack([x[1] - x[0], x[2] - x[0]], axis=1)
    size, height = 0.5 * abs(np.linalg.det(J)), z[1] - z[0]
    g = np.array([[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0]]) @ np.linalg.inv(J)
    mean = 0.5 * (u[:3] + u[3:])
    flux = size * height * 0.5 * (g @ (g.T @ mean))
    across = size / (3 * height) * (u[3:] - u[:3])
    y[:3] += flux - across
    y[3:] += flux + across


def test_a_program(kind):
    """Volumes, and an operator that is the one on the mesh with tables."""
    base, heights, family = md.unit_square(4), np.array([0.0, 0.5, 0.75, 1.0]), getattr(mb, kind)
    columns = md.columns(base, 3)
    points, x, z = columns.points(), md.READ(family(base.coordinates), columns.rows("vertex")), None
    z = md.READ(family(heights), columns.levels())
    v = family(np.zeros((len(points), 1)))
    md.loop(points, volume, x, z, md.WRITE(v))
    assert abs(float(mb.sum(v)) - 1) < 1e-14
    tree = md.tree(base.axis_of("vertex"), md.Axis("level", 4))
    corners = columns.dofs(tree)
    mesh = md.extruded(base, heights)
    u = np.sin(3 * mesh.coordinates).sum(axis=1)
    y = md.zeros(tree, array=family)
    md.loop(
        points,
        heat,
        x,
        z,
        md.READ(md.wrap(tree, family(u.reshape(4, -1).T.ravel())), corners),
        md.INC(y, corners),
    )

    def there(x, u, y):
        flat, heights = x[:3, :2], np.stack([x[0, 2], x[3, 2]])
        heat(flat, heights, u, y)

    wanted, corners = mb.zeros(len(u)), mesh.closure("cell", "vertex")
    md.loop(
        mesh.points("cell"), there, md.READ(mesh.coordinates, corners), md.READ(mb.HostArray(u), corners),
        md.INC(wanted, corners),
    )  # fmt: skip
    found = mb.to_numpy(y.parent).reshape(-1, 4).T.ravel()
    np.testing.assert_allclose(found, mb.to_numpy(wanted), rtol=0, atol=1e-13)


def test_matrices_and_subsets_and_derivatives():
    base = md.unit_square(2)
    columns = md.columns(base, 2)
    corners = columns.dofs(md.tree(base.axis_of("vertex"), md.Axis("level", 3)))

    def ones(K):
        K += 1

    A = md.pattern(corners).matrix()
    md.loop(columns.points(), ones, md.INC(A.data, A.dofs))
    assert (A @ mb.ones(27)).tolist() == (6.0 * np.bincount(corners.table.ravel())).tolist()
    some, y = columns.points().subset([1, 5, 6]), mb.zeros(27)
    md.loop(some, lambda y: _added(y), md.INC(y, corners))
    assert y.tolist() == np.bincount(corners.table[[1, 5, 6]].ravel(), minlength=27).tolist()

    def squares(u, y):
        for i in range(6):
            y[i] += u[i] * u[5 - i]

    def energy(u):
        y = mb.zeros_like(u)
        md.loop(columns.points(), squares, md.READ(u, corners), md.INC(y, corners))
        return y

    u, v = (mb.HostArray(np.random.default_rng(k).random(27)) for k in (0, 1))
    _, change = mb.autodiff.jvp(energy, (u,), (v,))
    near = (mb.to_numpy(energy(u + 1e-6 * v)) - mb.to_numpy(energy(u - 1e-6 * v))) / 2e-6
    np.testing.assert_allclose(mb.to_numpy(change), near, atol=1e-8)
    assert np.array_equal(mb.to_numpy(mb.compile(energy)(u)), mb.to_numpy(energy(u)))


def _added(y):
    y += 1


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda c: md.columns(c.base, 0), "one or more layers"),
        (lambda c: c.dofs(md.tree(c.base.axis_of("vertex"), md.Axis("level", 3))), "along 'level': it has 4"),
        (lambda c: c.dofs(md.tree(md.unit_square(3).axis_of("vertex"), md.Axis("level", 3))), "another mesh"),
    ],
)
def test_bad_input(make, text):
    with pytest.raises(ValueError, match=text):
        make(md.columns(md.unit_square(2), 2 if "another" in text else 3 if "level" in text else 1))
