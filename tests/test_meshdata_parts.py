"""Partitions, and the parts of processes: X20 and X21, meshes of all shapes against sets, bad input."""

import pickle

import numpy as np
import pytest
from test_meshdata_topology import MESHES, M, mixed_square
from threadranks import fails_on_ranks, on_ranks

from mirabelle import meshdata as md
from mirabelle.arraytypes.meshdata import shapes
from mirabelle.arraytypes.meshdata.partition import one_array

LINE, OWNER = md.interval(6), [0, 0, 0, 1, 1, 1]


def lists(pair):
    return [a.tolist() for a in pair]


def test_x20_without_overlap():
    one, two = (LINE.part(OWNER, rank, overlap=0) for rank in (0, 1))
    assert one.numbers("vertex").tolist() == [0, 1, 2, 3] and one.owned("vertex") == 4
    assert lists(one.ghosts("vertex")) == [[], []]
    assert two.numbers("vertex").tolist() == [4, 5, 6, 3] and two.owned("vertex") == 3
    assert lists(two.ghosts("vertex")) == [[0], [3]]
    assert two.numbers("cell").tolist() == [3, 4, 5]
    assert two.mesh.cells["interval"].tolist() == [[3, 0], [0, 1], [1, 2]]


def test_x21_with_one_layer():
    one, two = (LINE.part(OWNER, rank) for rank in (0, 1))
    assert one.numbers("vertex").tolist() == [0, 1, 2, 3, 4] and two.numbers("vertex").tolist() == [
        4,
        5,
        6,
        3,
        2,
    ]
    assert lists(one.ghosts("vertex")) == [[1], [0]]
    assert lists(two.ghosts("vertex")) == [[0, 0], [3, 2]]
    assert lists(one.ghosts("cell")) == [[1], [0]] and lists(two.ghosts("cell")) == [[0], [2]]
    assert one.owned_points().indices.tolist() == [0, 1, 2]


def cell_sets(mesh):
    return [s for c in mesh.components(mesh.dim) for s in point_sets(mesh, c)]


def point_sets(mesh, component):
    return [frozenset(row) for row in mesh.closure(component, "vertex").target().table.tolist()]


@pytest.mark.parametrize("overlap", [0, 1, 2])
@pytest.mark.parametrize("name", MESHES)
def test_parts_against_sets(name, overlap):
    mesh, ranks = MESHES[name](), 3
    cells = cell_sets(mesh)
    owner = np.random.default_rng(7).integers(0, ranks, len(cells))
    given = owner
    if len(mesh.components(mesh.dim)) > 1:
        ends = np.cumsum([mesh.points(c).size for c in mesh.components(mesh.dim)])[:-1]
        given = dict(zip(mesh.components(mesh.dim), np.split(owner, ends), strict=True))
    assert np.array_equal(one_array(mesh, given, "owners"), owner)
    parts = [mesh.part(given, rank, overlap) for rank in range(ranks)]
    for rank, part in enumerate(parts):
        here = {i for i in range(len(cells)) if owner[i] == rank}
        for _ in range(overlap):
            vertices = {v for i in here for v in cells[i]}
            here |= {i for i, c in enumerate(cells) if c & vertices}
        assert "owned" not in vars(part.mesh) and pickle.loads(pickle.dumps(part)).mesh == part.mesh
        for c, shape in mesh.shapes.items():
            known = (
                point_sets(mesh, c) if c != "vertex" else [frozenset([v]) for v in range(mesh.points(c).size)]
            )
            numbers, owned = part.numbers(c), part.owned(c)
            if shape != "vertex" and shapes.SHAPES[shape].dim == mesh.dim:
                owns = [owner[cells.index(s)] for s in known]
            else:
                owns = [min(owner[i] for i, t in enumerate(cells) if s <= t) for s in known]
            expected = {i for i, s in enumerate(known) if any(s <= cells[k] for k in here)}
            assert set(numbers.tolist()) == expected and len(numbers) == len(expected)
            assert [owns[i] == rank for i in numbers] == [True] * owned + [False] * (len(numbers) - owned)
            assert numbers[:owned].tolist() == sorted(numbers[:owned].tolist())
            for at, (r, i) in zip(numbers[owned:], zip(*part.ghosts(c), strict=True), strict=True):
                assert r == owns[at] and parts[r].numbers(c)[i] == at and i < parts[r].owned(c)
            assert part.mesh.points(c).size == len(numbers)
            # Who touches whom, orientations and the boundary are those of the whole mesh.
            for target in mesh.closure(c).targets:
                of, whole = part.mesh.closure(c, target.name), mesh.closure(c, target.name)
                got = part.numbers(target.name)[of.target().table]
                assert np.array_equal(got, whole.target().table[numbers])
                if target.name != "vertex" and target.name != c:
                    turned = mesh.orientations(c, target.name)[numbers]
                    assert np.array_equal(part.mesh.orientations(c, target.name), turned)
            if shape == "vertex" or shapes.SHAPES[shape].dim < mesh.dim:
                whole = np.isin(numbers, mesh.exterior(c).indices)
                assert part.mesh.exterior(c).indices.tolist() == np.flatnonzero(whole).tolist()
    for c in mesh.shapes:
        assert sum(p.owned(c) for p in parts) == mesh.points(c).size


def test_a_process_without_cells_and_markers():
    inflow = M.points("edge").subset([1, 4])
    mesh = md.Mesh(M.coordinates, M.cells, markers={"in": inflow})
    none = mesh.part([0, 1], rank=2)
    assert none.owned("cell") == 0 and len(none.numbers("vertex")) == 0
    one = mesh.part([1, 0], rank=1, overlap=0)
    assert one.numbers("edge").tolist() == [0, 1, 2]
    assert one.mesh.markers["in"].indices.tolist() == [1]
    moved = mesh.renumbered(cells=[1, 0]).markers["in"]
    assert len(moved) == 2
    assert mesh.with_coordinates(2 * mesh.coordinates).markers["in"] is inflow


@pytest.mark.parametrize("method", ["metis", "hilbert"])
@pytest.mark.parametrize("name", MESHES)
def test_partitions(name, method):
    if method == "metis":
        pytest.importorskip("pymetis")
    mesh = MESHES[name]()
    for n in (1, 2, 3):
        found = md.partition(mesh, n, method=method)
        owner = one_array(mesh, found, "owners")
        assert owner.dtype == np.int32 and set(owner.tolist()) <= set(range(n))
        if len(owner) > 12:
            assert np.ptp(np.bincount(owner, minlength=n)) <= max(2, len(owner) // 8)
    weights = np.ones(len(owner))
    weights[0] = len(owner)
    if len(mesh.components(mesh.dim)) == 1 and len(owner) > 12:
        heavy = np.bincount(md.partition(mesh, 2, weights=weights, method=method), weights)
        assert heavy.min() > 0.3 * heavy.sum()


def test_a_partition_along_the_curve_is_compact():
    mesh = md.unit_square(32)
    owner = md.partition(mesh, 4, method="hilbert")
    shared = [mesh.part(owner, r, overlap=0).numbers("vertex").size for r in range(4)]
    assert sum(shared) < 1.15 * mesh.points("vertex").size


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: md.partition(M, 0), ValueError, "one or more parts"),
        (lambda: md.partition(M, 2, method="best"), ValueError, '"metis" and "hilbert"'),
        (lambda: md.partition(M, 2, weights=[1.0]), ValueError, "one number for each"),
        (lambda: md.partition(M, 2, weights=[1.0, -1.0]), ValueError, "not negative"),
        (lambda: md.partition(mixed_square(), 2, weights={"triangle": [1, 1]}), ValueError, "are given for"),
        (lambda: M.part([0, -1], 0), ValueError, "numbered from 0"),
        (lambda: M.part([0, 0.5], 0), ValueError, "ranks of processes"),
        (lambda: M.part([0], 0), ValueError, "one number for each"),
        (lambda: M.part([0, 1], -1), ValueError, "rank of a process"),
        (lambda: M.part([0, 1], 0, overlap=-1), ValueError, "layers of overlap"),
        (lambda: M.part([0, 1], 0).mesh.part([0, 1], 0), ValueError, "one process already"),
        (lambda: M.part([0, 1], 0).mesh.renumbered("rcm"), ValueError, "keeps its numbers"),
        (lambda: M.part([0, 1], 0).numbers("face"), KeyError, "no component"),
        (lambda: md.hilbert_order([1.0, 2.0]), ValueError, "a table"),
    ],
)
def test_bad_input(make, error, text):
    with pytest.raises(error, match=text):
        make()


def cells_of(mesh, owner, rank, names):
    """The cells of a rank, by names of vertices, and the rows of coordinates that they need."""
    ends = np.cumsum([len(t) for t in mesh.cells.values()])[:-1]
    mine = {s: t[o == rank] for (s, t), o in zip(mesh.cells.items(), np.split(owner, ends), strict=True)}
    rows = np.unique(np.concatenate([t.ravel() for t in mine.values()])).astype(int)[::-1]
    return mesh.coordinates[rows], {s: names[t] for s, t in mine.items()}, names[rows]


@pytest.mark.parametrize("name", MESHES)
def test_parts_of_cells_against_the_whole(name):
    """Entities, orientations and the boundary are those of the mesh that no process has."""
    mesh, ranks = MESHES[name](), 3
    if mesh.coordinates.shape[1] < mesh.dim:
        pytest.skip("no coordinates")
    owner = np.random.default_rng(8).integers(0, ranks - (len(name) % 2), len(cell_sets(mesh)))
    names = 3 * np.arange(len(mesh.coordinates)) + 10  # (of the same order, so that orientations are the same)

    def keys(mesh, component, names):
        if component == "vertex":
            return names[:, None]
        return np.sort(names[mesh.closure(component, "vertex").target().table], axis=1)

    def program(comm):
        part = md.part_of_cells(*cells_of(mesh, owner, comm.rank, names), comm=comm)
        own, whole = part.numbers("vertex"), {}
        for c in mesh.shapes:
            mine, there = keys(part.mesh, c, own), keys(mesh, c, names)
            at = {tuple(k): i for i, k in enumerate(there.tolist())}
            whole[c] = np.array([at[tuple(k)] for k in mine.tolist()], int)
            assert (
                part.mesh.exterior(c).indices.tolist()
                == np.flatnonzero(np.isin(whole[c], mesh.exterior(c).indices)).tolist()
                if c not in mesh.components(mesh.dim)
                else True
            )
        for c in mesh.components(mesh.dim):
            for target in mesh.closure(c).targets:
                t = target.name
                got = whole[t][part.mesh.closure(c, t).target().table]
                assert np.array_equal(got, mesh.closure(c, t).target().table[whole[c]])
                if t not in ("vertex", c):
                    assert np.array_equal(part.mesh.orientations(c, t), mesh.orientations(c, t)[whole[c]])
        return {c: (whole[c], part.owned(c), part.ghosts(c), part.numbers(c)) for c in mesh.shapes}

    found = on_ranks(ranks, program)
    for c in mesh.shapes:
        owned = np.concatenate([f[c][0][: f[c][1]] for f in found])
        assert sorted(owned.tolist()) == list(range(mesh.points(c).size))
        for whole, n, (r, i), numbers in (f[c] for f in found):
            assert [found[a][c][0][b] for a, b in zip(r, i, strict=True)] == whole[n:].tolist()
            assert [found[a][c][3][b] for a, b in zip(r, i, strict=True)] == numbers[n:].tolist()


def test_bad_parts_of_cells():
    x, cells = [[0.0, 0], [1, 0], [0, 1]], [[0, 1, 2]]

    def twice(comm):
        md.part_of_cells(x, cells, [0, 1, 2])

    def other_shapes(comm):
        md.part_of_cells(x, {"triangle": cells} if comm.rank else {"interval": [[0, 1]]}, [0, 1, 2])

    def a_name_twice(comm):
        md.part_of_cells(x, cells, [0, 1, 1])

    def no_such_vertex(comm):
        md.part_of_cells(x, [[0, 1, 5]], [0, 1, 2])

    for program, text in (
        (twice, "A cell is given twice"),
        (other_shapes, "tables of the same shapes"),
        (a_name_twice, "each once"),
        (no_such_vertex, "none of those given"),
    ):
        assert any(text in str(e) for e in fails_on_ranks(2, program))
