"""Programs on divided meshes are those of one process, to rounding, and no more is sent than ghosts."""

import os
import pathlib
import runpy

import numpy as np
import pytest
from ranks.launch import missing, run
from threadranks import fails_on_ranks, on_ranks

import mirabelle as mb
from mirabelle import meshdata as md

PROGRAM = pathlib.Path(__file__).parent / "mpi_programs" / "dividedmeshes.py"
GIVEN = runpy.run_path(str(PROGRAM))
CHECKS = GIVEN["CHECKS"]


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("check", CHECKS)
def test_on_threads(check, ranks):
    on_ranks(ranks, CHECKS[check])


@pytest.mark.skipif("MIRABELLE_TEST_RANKS" in os.environ, reason="has ranks of its own")
@pytest.mark.skipif(missing() is not None, reason=f"needs MPI: {missing()}")
def test_on_processes():
    ended = run(3, str(PROGRAM))
    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.count(f"fine: {len(GIVEN['SOME'])} checks") == 3, ended.stdout


def test_on_the_reference_device():
    on_ranks(1, GIVEN["on_fake_cards"])


# Whatever the cells, the element and the owners


def square_sums(x, u, y):
    """Something of all that a cell reaches, that no order of the points changes."""
    size = u.shape[0]
    s = x[0, 0] + x[size % len(x), 1]
    for i in range(size):
        y[i] += s * u[i] + u[(i + 1) % size]


def squares(u, K):
    size = u.shape[0]
    for i in range(size):
        K[i, i] += 2 * u[i]
        K[i, (i + 1) % size] -= u[i]


MESHES = {
    "triangle": lambda: md.unit_square(3),
    "quadrilateral": lambda: md.unit_square(3, shape="quadrilateral"),
    "tetrahedron": lambda: md.unit_cube(1),
    "interval": lambda: md.interval(7),
}
SPACES = [
    ("interval", "DP", 1, None), ("triangle", "P", 2, None), ("triangle", "P", 1, 2),
    ("triangle", "RT", 1, None), ("tetrahedron", "P", 2, None), ("quadrilateral", "Q", 2, None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "family", "degree", "components"), SPACES)
def test_random_owners(name, family, degree, components):
    mesh = MESHES[name]()
    if mesh.dim == 1:
        mesh = md.Mesh(np.pad(mesh.coordinates, ((0, 0), (0, 1))), mesh.cells)
    rng = np.random.default_rng(len(name) + degree)
    owner = rng.integers(0, 3, mesh.points("cell").size)
    owner[owner == rng.integers(0, 3)] = 1  # (one process may have no cells)

    def applied(mesh, array):
        V = md.space(mesh, family, degree, components=components)
        V.signs
        size, x = V.dofs.arity, md.READ(mesh.coordinates_in(array), mesh.closure("cell", "vertex"))
        numbers = np.round(V.points @ rng_of_places[: V.dim], 3)
        u = V.function(np.repeat(numbers, components or 1), array)
        y, A = V.zeros(array), md.pattern(V.dofs).matrix(array=array)
        md.loop(mesh.points("cell"), square_sums, x, md.READ(u, V.dofs), md.INC(y, V.dofs))
        if not components:
            md.loop(mesh.points("cell"), squares, md.READ(u, V.dofs), md.INC(A.data, A.dofs))
            z = A @ u
        else:
            z = y * 2
        assert size == V.element.size
        return V, y, z

    rng_of_places = rng.random(3)
    V, y, z = applied(mesh, mb.HostArray)
    wanted = np.stack([mb.to_numpy(y.parent), mb.to_numpy(z if not components else z.parent)])

    def program(comm):
        part = md.part(mesh, owner, overlap=int(rng_of_places[0] * 3))
        W, y, z = applied(part.mesh, mb.DArray[mb.HostArray])
        found = np.stack([mb.to_numpy(W.local(v).parent) for v in (y, z)])
        return found[:, places_of(V, W, part)[0]], places_of(V, W, part)[1]

    for found, at in on_ranks(3, program):
        np.testing.assert_allclose(found, wanted[:, at], rtol=1e-12, atol=1e-12)


def places_of(V, W, part):
    """Where the same degrees of freedom stand in a part's array and in the whole one."""
    here, there = [np.zeros(0, int)], [np.zeros(0, int)]
    for kind in V.element.entity_dofs:
        mine, all_ = (S.positions(S.tree, {}, {})[kind] for S in (W, V))
        here.append(W.components_at(mine).ravel())
        there.append(V.components_at(all_[part.numbers(kind)]).ravel())
    return np.concatenate(here), np.concatenate(there)


def test_tables_by_hand():
    """Ghosts anywhere among a process' entries, and a forest that the table is given."""

    def program(comm):
        if comm.rank == 0:  # entries 0, 1, 2 of the whole are its own; here they are at 0, 2 and 3
            forest = md.StarForest(4, owners=[1], roots=[1], leaves=[1])
            cells, own = [[0, 2], [2, 3], [3, 1]], [0, 2, 3]
        else:
            forest = md.StarForest(2, owners=[], roots=[])
            cells, own = [[1, 0]], [0, 1]
        dofs = md.Dofs(md.Points("mesh", "cell", len(cells)), cells, forest.size, forest=forest)
        A = md.pattern(dofs).matrix(array=mb.DArray)
        md.loop(
            dofs.source, spring, md.READ(mb.arange(len(cells)) + 1.0 + 3 * comm.rank), md.INC(A.data, A.dofs)
        )
        x = mb.DArray.from_local(mb.arange(len(own)) + 10 * comm.rank + 1.0)
        y = mb.zeros_like(x)
        md.loop(dofs.source, add, md.READ(x, dofs), md.INC(y, dofs))
        return mb.to_numpy(A @ x), repr(A), mb.to_numpy(y)

    def spring(k, K):
        for i in range(2):
            K[i, i] += k
            K[i, 1 - i] -= k

    def add(x, y):
        for i in range(2):
            y[i] += x[0] + x[1]

    (y, text, s), (z, _, t) = on_ranks(2, program)
    whole, x = np.zeros((5, 5)), np.array([1.0, 2.0, 3.0, 11.0, 12.0])
    sums = np.zeros(5)
    for k, (i, j) in enumerate([(0, 1), (1, 2), (2, 4), (4, 3)]):
        whole[np.ix_([i, j], [i, j])] += (k + 1) * np.array([[1, -1], [-1, 1]])
        sums[[i, j]] += x[i] + x[j]
    assert np.array_equal(y, z) and text.startswith("DividedMatrix(5 x 5 over 2 processes, 3 rows")
    np.testing.assert_allclose(y, whole @ x)
    assert np.array_equal(s, t) and np.array_equal(s, sums)


def test_whole_arrays_are_joined_over_processes():
    mesh = md.unit_square(3)

    def total(x, e, low, high):
        e[0] += x[0, 0]
        low[0] = np.minimum(low[0], x[0, 1] + 1)
        high[0] = np.maximum(high[0], x[0, 1])

    def run_on(mesh, array):
        e, low, high = (mb.zeros(1, device=array) + k for k in (1.0, 0.0, 0.5))
        x, corners = mesh.coordinates_in(array), mesh.closure("cell", "vertex")
        md.loop(
            mesh.points("cell"), total, md.READ(x, corners), md.INC(e, whole=True),
            md.MIN_WRITE(low, whole=True), md.MAX_RW(high, whole=True),
        )  # fmt: skip
        return [float(mb.min(v)) for v in (e, low, high)]

    wanted = run_on(mesh, mb.HostArray)
    for found in on_ranks(3, lambda comm: run_on(md.part(mesh).mesh, mb.DArray[mb.HostArray])):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_parts_know_their_division_only_here():
    import pickle

    part = md.part(md.unit_square(2))
    points = part.mesh.points("cell")
    assert points.division is not None and points == md.Points("mesh", "cell", 8)
    kept = pickle.loads(pickle.dumps((part, points, part.mesh.closure("cell"))))
    assert kept[0].mesh == part.mesh and kept[1].division is None and kept[0].mesh.topology.division is None
    with pytest.raises(ValueError, match="made without the other processes"):
        kept[0].entries("cell")


def test_points_outside_are_known_on_all():
    mesh = md.unit_square(3)

    def program(comm):
        V = md.space(md.part(mesh).mesh, "P", 1)
        u = V.interpolate(lambda x: x @ [1.0, 2.0], mb.DArray)
        with pytest.raises(ValueError, match="lies in no cell"):
            V.evaluate(u, [[0.5, 0.5], [2.0, 0.5]], outside="raise")
        return mb.to_numpy(V.evaluate(u, [[0.25, 0.5], [2.0, 0.5], [1.0, 1.0]]))

    for found in on_ranks(3, program):
        np.testing.assert_allclose(found, [1.25, np.nan, 3.0])


def mistakes():
    mesh = md.unit_square(2)

    def one(y):
        y[0] += 1

    def two(x, y):
        y[0] += x[0]

    def divided_otherwise(comm):
        V = md.space(md.part(mesh).mesh, "P", 1)
        md.loop(V.mesh.points("cell"), one, md.INC(mb.zeros(9, device=mb.DArray[mb.HostArray]), V.dofs))

    def read_and_added(comm):
        V = md.space(md.part(mesh).mesh, "P", 1)
        u = V.zeros(mb.DArray)
        md.loop(V.mesh.points("cell"), two, md.READ(u, V.dofs), md.INC(u, V.dofs))

    def too_few_numbers(comm):
        md.space(md.part(mesh).mesh, "P", 1).function([1.0, 2.0], mb.DArray)

    def too_few_rows(comm):
        md.part(mesh).divided("cell", [1.0])

    def no_mesh(comm):
        md.part(None)

    def no_mesh_at_the_root(comm):
        md.part(mesh if comm.rank else None, root=0)

    def no_such_root(comm):
        md.part(mesh, root=2)

    def a_part_again(comm):
        md.part(md.part(mesh).mesh)

    def a_row_outside_on_one(comm):
        V = md.space(md.part(mesh).mesh, "P", 1)
        A = md.pattern(V.dofs).matrix(array=mb.DArray)
        md.dirichlet(A, None, [100 * comm.rank])

    def another_mesh_on_one(comm):
        V = md.space(md.unit_square(2 + comm.rank), "P", 1)
        md.loop(V.mesh.points("cell"), one, md.INC(V.zeros(mb.DArray), V.dofs))

    def breaks_its_promise(x, y):
        x[0] = y[0] = 1

    def written_by_half(comm):
        """What is pending stays so, and nothing is added."""
        V = md.space(md.unit_square(2), "P", 1)
        cells, u, y = V.mesh.points("cell"), V.zeros(mb.DArray), V.zeros(mb.DArray)
        md.loop(cells, one, md.INC(y, V.dofs))
        try:
            md.loop(cells, breaks_its_promise, md.READ(u, V.dofs), md.INC(y, V.dofs))
        finally:
            assert md.state_of(y) == md.State("sum", False)
            assert mb.sum(y).item() == 8 and mb.sum(u).item() == 0

    return [
        (divided_otherwise, "each on the process that owns it"),
        (read_and_added, "are one array, with INC and READ"),
        (too_few_numbers, "degrees of freedom, ghosts included"),
        (too_few_rows, "rows here"),
        (no_mesh, "Each process gives the whole mesh"),
        (no_mesh_at_the_root, "Each process gives the whole mesh"),
        (no_such_root, "2 is none of them"),
        (a_part_again, "the part of one process already"),
        (a_row_outside_on_one, "is none of the"),
        (another_mesh_on_one, "Processes disagree on what is divided"),
        (written_by_half, "promised to read"),
    ]


@pytest.mark.parametrize(("program", "text"), mistakes(), ids=lambda x: getattr(x, "__name__", ""))
def test_mistakes(program, text):
    assert any(text in str(e) for e in fails_on_ranks(2, program))


# Derivatives of loops over processes


def steep(x, u, y):
    for i in range(3):
        y[i] = u[(i + 1) % 3] ** 2 * x[i, 0] + u[i]


@pytest.mark.parametrize("intent", ["INC", "RW", "MIN_RW", "MAX_WRITE"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_derivatives_of_divided_loops(intent, ranks):
    mesh, positions = md.unit_square(3), np.random.default_rng(1).standard_normal((16, 2))

    def result(mesh, array, x, numbers):
        V, cells, corners = md.space(mesh, "P", 1), mesh.points("cell"), mesh.closure("cell", "vertex")
        values = np.sin(7.0 * numbers) + 0.3
        given = V.function(values, array) if array is not mb.HostArray else mb.HostArray(values)

        def f(u):
            y = mb.zeros_like(u) - u
            if intent == "RW":
                md.loop(mesh.points("vertex"), square, md.READ(u), md.RW(y))
            else:
                md.loop(cells, steep, md.READ(x, corners), md.READ(u, V.dofs), access(y, V.dofs))
            return mb.sum(y * y)

        access = getattr(md, intent)
        return given, f

    def square(u, y):
        y *= u

    numbers = np.arange(16.0)
    u, f = result(mesh, mb.HostArray, mb.HostArray(positions), numbers)
    expected, direction = float(f(u)), mb.HostArray(np.cos(numbers))
    value, change = (float(v) for v in mb.autodiff.jvp(f, (u,), (direction,)))
    h = 1e-6
    assert abs(change - float(f(u + h * direction) - f(u - h * direction)) / (2 * h)) < 1e-6 * abs(change)

    def program(comm):
        part = md.part(mesh, overlap=0)
        mine = part.numbers("vertex").astype(float)
        array = mb.DArray[mb.HostArray]
        x = array.inner(positions[part.numbers("vertex")])
        u, f = result(part.mesh, array, x, mine)
        along = md.space(part.mesh, "P", 1).function(np.cos(mine), array)
        return [float(mb.to_numpy(v)) for v in mb.autodiff.jvp(f, (u,), (along,))]

    for found in on_ranks(ranks, program):
        np.testing.assert_allclose(found, [value, change], rtol=1e-12)
    assert value == pytest.approx(expected, rel=1e-14)


def test_derivatives_of_divided_loops_need_arrays_that_hold_them():
    def program(comm):
        mesh = md.part(md.unit_square(2), overlap=0).mesh
        V, corners = md.space(mesh, "P", 1), mesh.closure("cell", "vertex")
        y, x = V.zeros(mb.DArray[mb.HostArray]), mesh.coordinates

        def f(u):
            md.loop(mesh.points("cell"), steep, md.READ(x, corners), md.READ(u, V.dofs), md.INC(y, V.dofs))
            return mb.sum(y)

        u = V.interpolate(1.0, mb.DArray[mb.HostArray])
        mb.autodiff.jvp(f, (u,), (u,))

    assert all("cannot hold dual numbers" in str(e) for e in fails_on_ranks(2, program))


def test_arrays_that_are_overwritten_stay_where_they_belong():
    def count(y):
        y += 1

    def program(comm):
        mesh = md.part(md.unit_square(3), overlap=0).mesh
        V, cells = md.space(mesh, "P", 1), mesh.points("cell")
        u, found = V.interpolate(1.0, mb.DArray[mb.HostArray]), []
        for y in (u + 1, mb.copy(u), mb.zeros_like(u), u * 0):
            y[...] = 0
            md.loop(cells, count, md.INC(y, V.dofs))
            found.append(mb.to_numpy(y).tolist())
        return found

    for found in on_ranks(3, program):
        assert found[0] == found[1] == found[2] == found[3]
        assert sum(found[0]) == 54


# Programs of one process, as they are


PROGRAMS = runpy.run_path(str(pathlib.Path(__file__).parent / "test_meshdata_programs.py"))
ARRAY = mb.DArray[mb.HostArray]


@pytest.fixture
def divided_squares(monkeypatch):
    """`md.unit_square` makes each process' part of one."""
    whole = md.unit_square
    monkeypatch.setattr(md, "unit_square", lambda *n, **k: md.part(whole(*n, **k), overlap=0).mesh)


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("matrix_free", [False, True])
def test_poisson_is_the_program_of_one_process(divided_squares, ranks, matrix_free):
    def program(comm):
        V, u = PROGRAMS["poisson"](4, 2, array=ARRAY, matrix_free=matrix_free)
        return float(mb.to_numpy(V.evaluate(u, [0.5, 0.5])))

    np.testing.assert_allclose(on_ranks(ranks, program), 0.073747680890538, rtol=1e-10)


@pytest.mark.parametrize("interleaved", [False, True])
def test_stokes_is_the_program_of_one_process(divided_squares, interleaved):
    def flow(x):
        return np.stack([x[..., 1] * (1 - x[..., 1]), 0 * x[..., 0]], axis=-1)

    def program(comm):
        W, A, b = PROGRAMS["stokes"](2, flow, interleaved, ARRAY)
        w, _ = mb.linalg.minres(A, b, rtol=1e-11)
        u, p = W.split(w)
        assert mb.to_numpy(W.join(u, p)).tolist() == mb.to_numpy(w).tolist()
        return mb.to_numpy(W.field("u").evaluate(u, PLACES)), mb.to_numpy(W.field("p").evaluate(p, PLACES))

    for u, p in on_ranks(3, program):
        np.testing.assert_allclose(u, flow(PLACES), atol=1e-8)
        np.testing.assert_allclose(p, -2 * PLACES[:, 0], atol=1e-7)


PLACES = np.random.default_rng(0).random((9, 2))


def test_an_elastic_square_is_the_program_of_one_process(divided_squares):
    B = np.array([[0.3, -0.1], [0.2, 0.5]])

    def program(comm):
        V, u = PROGRAMS["elastic"](3, lambda x: x @ B.T + 1, array=ARRAY)
        return mb.to_numpy(V.evaluate(u, PLACES))

    for found in on_ranks(2, program):
        np.testing.assert_allclose(found, PLACES @ B.T + 1, atol=1e-10)


def test_positions_in_a_part_index_arrays_of_all():
    def program(comm):
        mesh = md.part(md.unit_square(3), overlap=0).mesh
        V = md.space(mesh, "P", 1, components=2)
        rows, u = V.boundary_dofs(), V.interpolate(lambda x: x + 1, ARRAY)
        assert u[rows].shape == (24,) and (mb.to_numpy(u[rows]) % 1 == 0).any()
        u[rows] = 0.0
        there = mb.to_numpy(V.local(u).parent)
        assert not there[rows].any() and np.count_nonzero(there == 0) == len(rows)
        stacked = mb.stack([u, u])
        stacked[:, rows] = 5.0
        other = md.space(mesh, "P", 2).zeros(ARRAY)
        with pytest.raises(IndexError, match="another space"):
            other[rows] = 1.0
        d = mb.autodiff.jvp(lambda v: held(v, rows), (u,), (mb.ones_like(u),))[1]
        return mb.to_numpy(u).sum(), mb.to_numpy(stacked).tolist()[1].count(5.0), mb.to_numpy(d).sum()

    def held(v, rows):
        v = v * 2
        v[rows] = 0.0
        return v

    for total, count, change in on_ranks(3, program):
        assert count == 24 and change == 16.0
        assert total == pytest.approx(12.0)  # of the four inner points, 1 + 1/3 or 1 + 2/3 twice


def test_trees_of_a_part_are_refused_over_processes():
    mesh = md.part(md.unit_square(2)).mesh
    V = md.space(mesh, "P", 1)
    for make in (md.ones, md.zeros, lambda tree, array: md.full(tree, 1, array=array)):
        with pytest.raises(ValueError, match="ghosts included"):
            make(V.tree, array=ARRAY)
    with pytest.raises(ValueError, match="ghosts included"):
        md.wrap(V.tree, ARRAY(np.ones(9)))


def test_rows_of_a_part_in_an_array_of_all_are_refused():
    def program(comm):
        mesh = md.part(md.unit_square(3), overlap=0).mesh
        x, corners = ARRAY(mesh.coordinates), mesh.closure("cell", "vertex")
        f = md.space(mesh, "P", 1).zeros(ARRAY)
        md.loop(mesh.points("cell"), steep, md.READ(x, corners), md.READ(f, corners), md.INC(f, corners))

    errors = fails_on_ranks(2, program)
    assert any("ValueError" in type(e).__name__ for e in errors)


@pytest.mark.parametrize("shape", [(2,), (1, 2), (2, 3, 2), (0, 2)])
def test_values_at_points_of_any_shape(shape):
    points = np.random.default_rng(3).random(shape)

    def program(comm):
        V = md.space(md.part(md.unit_square(2), overlap=0).mesh, "P", 1, components=2)
        return mb.to_numpy(V.evaluate(V.interpolate(lambda x: 2 * x, ARRAY), points))

    for found in on_ranks(2, program):
        np.testing.assert_allclose(found, 2 * points, atol=1e-14)


LOOPS = pathlib.Path(__file__).parent / "mpi_programs" / "loopprograms.py"


@pytest.mark.skipif("MIRABELLE_TEST_RANKS" in os.environ, reason="has ranks of its own")
@pytest.mark.skipif(missing() is not None, reason=f"needs MPI: {missing()}")
@pytest.mark.parametrize("ranks", [2, 3])
def test_loops_over_processes_are_steps_of_programs(ranks):
    ended = run(ranks, str(LOOPS))
    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.count("fine") == ranks, ended.stdout


LAZY = pathlib.Path(__file__).parent / "mpi_programs" / "lazysums.py"


@pytest.mark.skipif("MIRABELLE_TEST_RANKS" in os.environ, reason="has ranks of its own")
@pytest.mark.skipif(missing() is not None, reason=f"needs MPI: {missing()}")
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_arrays_know_what_is_pending_and_what_holds(ranks):
    """INC, INC, INC, READ sends one reduction and one broadcast; nothing is sent twice."""
    ended = run(ranks, str(LAZY))
    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.count("fine") == ranks, ended.stdout


def test_states_are_of_arrays_over_processes():
    with pytest.raises(TypeError, match="has no ghosts"):
        md.state_of(mb.ones(3))


def test_loops_over_one_process_are_steps_of_programs():
    with mb.distributed.use_communicator(mb.arraytypes.distributed.communicators.Alone()):
        runpy.run_path(str(LOOPS))


def test_what_waits_on_one_process_is_shown_as_what_it_comes_to():
    mesh = md.part(md.unit_square(2)).mesh
    V = md.space(mesh, "P", 1)

    def ones(y):
        y += 1

    y = V.zeros(mb.DArray)
    for turn in range(1, 4):
        md.loop(mesh.points("cell"), ones, md.INC(y, V.dofs))
        expected = turn * np.array([1.0, 3, 2, 3, 6, 3, 2, 3, 1])
        assert str(y) == str(expected) and "term" not in repr(y)
