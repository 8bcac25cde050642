"""Matrices over processes: products, Dirichlet rows and solutions are those of one, and no more is sent."""

import os
import pathlib
import runpy

import numpy as np
import pytest
from ranks.launch import missing, run
from threadranks import fails_on_ranks, on_ranks

import mirabelle as mb
from mirabelle import meshdata as md

PROGRAM = pathlib.Path(__file__).parent / "mpi_programs" / "dividedmatrices.py"
GIVEN = runpy.run_path(str(PROGRAM))
CHECKS = GIVEN["CHECKS"]


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("check", CHECKS)
def test_on_threads(check, ranks):
    on_ranks(ranks, CHECKS[check])


def test_on_the_reference_device():
    on_ranks(2, lambda comm: GIVEN["solved"](comm, family=mb.RefArray) and None)


@pytest.mark.skipif("MIRABELLE_TEST_RANKS" in os.environ, reason="has ranks of its own")
@pytest.mark.skipif(missing() is not None, reason=f"needs MPI: {missing()}")
def test_on_processes():
    ended = run(3, str(PROGRAM))
    assert ended.returncode == 0, ended.stdout
    assert ended.stdout.count(f"fine: {len(CHECKS)} checks") == 3, ended.stdout


def test_products_without_an_order_of_ghosts():
    """Ghosts anywhere among a process' entries."""

    def program(comm):
        if comm.rank == 0:  # entries 0, 1, 2 of the whole are its own; here they are at 0, 2 and 3
            forest = md.StarForest(4, owners=[1], roots=[1], leaves=[1])
            cells, own = [[0, 2], [2, 3], [3, 1]], [0, 2, 3]
        else:
            forest = md.StarForest(2, owners=[], roots=[])
            cells, own = [[1, 0]], [0, 1]
        local = md.pattern(md.Dofs(md.Points("mesh", "cell", len(cells)), cells, forest.size)).matrix()
        local.data[...] = np.arange(local.pattern.nnz) + 1.0
        A = md.DividedMatrix(local, forest)
        x = np.zeros(forest.size)
        x[own] = np.arange(len(own)) + 10 * comm.rank + 1.0
        dense = mb.to_numpy(mb.dense(local.csr))
        return mb.to_numpy(A @ A.vector(mb.HostArray(x))), dense, repr(A)

    (y, dense0, text), (z, dense1, _) = on_ranks(2, program)
    assert np.array_equal(y, z) and text.startswith("DividedMatrix(5 x 5 over 2 processes")
    whole = np.zeros((5, 5))
    places0, places1 = [0, 4, 1, 2], [3, 4]
    whole[np.ix_(places0, places0)] += dense0
    whole[np.ix_(places1, places1)] += dense1
    np.testing.assert_allclose(y, whole @ [1.0, 2.0, 3.0, 11.0, 12.0])


def test_entries_of_an_axis_tree():
    """P2 on the parts of a mesh: of a matrix of ones in each cell the rows count what its cells reach."""
    mesh = md.unit_square(4)

    def ones(K):
        K += 1

    def program(comm):
        part = mesh.part(md.partition(mesh, comm.size), comm.rank)
        tree = md.space(part.mesh, "P", 2).tree
        local = md.pattern(md.dofs(part.mesh.closure("cell"), tree)).matrix()
        md.loop(part.owned_points(), ones, md.INC(local.data, local.dofs))
        A = md.DividedMatrix(local, md.part_forest(part, tree))
        y = A @ A.vector(md.ones(tree))
        return A.shape, sorted(mb.to_numpy(y).tolist())

    for ranks in (1, 3):
        for shape, rows in on_ranks(ranks, program):
            assert shape == (81, 81) and sum(rows) == 32 * 36
            assert [rows.count(6.0 * n) for n in (1, 2, 3, 6)] == [18, 42, 12, 9], (
                "corners, edges, border, inner"
            )


def test_mistakes():
    def wrong_sizes(comm):
        local = md.pattern(md.interval(2).closure("cell", "vertex")).matrix()
        md.DividedMatrix(local, md.StarForest(3 + comm.rank, [], []))

    def a_vector_of_another(comm):
        local = md.pattern(md.interval(2).closure("cell", "vertex")).matrix()
        A = md.DividedMatrix(local, md.StarForest(3, [], []))
        A @ mb.DArray[mb.HostArray](np.ones(5))

    def a_row_outside_on_one(comm):
        local = md.pattern(md.interval(2).closure("cell", "vertex")).matrix()
        A = md.DividedMatrix(local, md.StarForest(3, [], []))
        md.dirichlet(A, A.vector(mb.ones(3)), [3 * comm.rank])

    for program, text in (
        (wrong_sizes, "a row and a column for each entry"),
        (a_vector_of_another, "A.vector"),
        (a_row_outside_on_one, "none of the 3 rows"),
    ):
        assert any(text in str(e) for e in fails_on_ranks(2, program))
