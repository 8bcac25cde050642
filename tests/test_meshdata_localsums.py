"""Sums of products with constants in local kernels: collected, and computed by loops over tables."""

from __future__ import annotations

import numpy as np
import pytest

import mirabelle as mb
from mirabelle import meshdata as md
from mirabelle.arraytypes.meshdata import lanetables, localsums
from mirabelle.arraytypes.meshdata.access import Intent
from mirabelle.arraytypes.meshdata.localgraph import Graph
from mirabelle.arraytypes.meshdata.localkernels import LocalProgram, local_kernel

RNG = np.random.default_rng(29)


def evaluated(graph, node, values):
    """What a node is, by NumPy."""
    what = graph.nodes[node]
    if what[0] == "constant":
        return what[1]
    if what[0] == "input":
        return values[what[2]]
    return getattr(np, what[0])(*(evaluated(graph, a, values) for a in what[1]))


def random_program(rng):
    """Sums and products of a few inputs, mostly with constants."""
    graph = Graph()
    nodes = [graph.input(0, j) for j in range(4)]
    for _ in range(25):
        a, b = (int(rng.choice(nodes)) for _ in range(2))
        c = graph.constant(float(rng.choice([-1.0, 0.5, 2.0, rng.standard_normal()])))
        op = rng.choice(["multiply", "multiply", "add", "subtract", "negative", "product"])
        args = {"multiply": (a, c), "product": (a, b), "negative": (a,)}.get(op, (a, b))
        nodes.append(graph.apply("multiply" if op == "product" else op, *args))
    outputs = [int(n) for n in rng.choice(nodes[4:], 6)]
    given = [(Intent.READ, (4,), np.dtype(float)), (Intent.INC, (6,), np.dtype(float))]
    return LocalProgram(given, graph, [None, outputs])


@pytest.mark.parametrize("seed", range(40))
def test_collected_programs_compute_the_same_with_no_more_operations(seed):
    program = random_program(np.random.default_rng(seed))
    made = localsums.collected(program)
    assert made.operations <= program.operations
    values = RNG.standard_normal(4)
    for a, b in zip(program.outputs[1], made.outputs[1], strict=True):
        before, after = evaluated(program.graph, a, values), evaluated(made.graph, b, values)
        np.testing.assert_allclose(after, before, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", range(40))
def test_weighted_sums_are_the_node_to_the_bit(seed):
    program = localsums.collected(random_program(np.random.default_rng(seed)))
    values = RNG.standard_normal(4)
    for n in program.graph.reached(program.written):
        found = localsums.weighted_sum(program.graph, n)
        if found is not None:
            total = None
            for node, weight in zip(*found, strict=True):
                term = weight * evaluated(program.graph, node, values)
                total = term if total is None else total + term
            assert total == evaluated(program.graph, n, values)


@pytest.mark.parametrize("scales", [(1.0, 1.0), (3.0, 7.0)])
def test_sums_that_undo_rounding_are_left_as_they_are_written(scales):
    def two_sum(x, y):
        a, b = scales[0] * x[0], scales[1] * x[1]
        s = a + b
        z = s - a
        y[0] += s
        y[1] += (a - (s - z)) + (b - z)

    x = RNG.standard_normal((500, 2)) * [1.0, 1e-9]
    y = mb.zeros((500, 2))
    md.loop(md.Points("mesh", "cell", 500), two_sum, md.READ(mb.HostArray(x)), md.INC(y))
    a, b = scales[0] * x[:, 0], scales[1] * x[:, 1]
    s = a + b
    z = s - a
    expected = (a - (s - z)) + (b - z)
    assert np.any(expected)
    np.testing.assert_array_equal(np.asarray(y)[:, 1], expected)


def element(rows, columns, degree=2, zeros=0.0):
    """A kernel like that of an element's matrix: products with tables from both sides."""
    B = RNG.standard_normal((degree, rows, columns))
    B[RNG.random(B.shape) < zeros] = 0.0

    def matrix(x, A):
        M = np.array([[x[i] * x[j] for j in range(columns)] for i in range(columns)])
        for q in range(degree):
            A += (B[q] @ (0.5 * M) @ B[q].T).reshape(A.shape)

    def by_numpy(x):
        M = x[:, :, None] * x[:, None, :]
        return np.einsum("qia,nab,qjb->nij", 0.5 * B, M, B)

    return matrix, by_numpy


@pytest.mark.parametrize("array", [mb.HostArray, mb.RefArray, mb.CuArray], ids=lambda a: a.__name__)
@pytest.mark.parametrize(("rows", "zeros", "partial", "dtype"), [
    (10, 0.0, False, "f8"), (11, 0.3, True, "f8"), (12, 0.2, False, "f4"),
])  # fmt: skip
def test_matrices_of_elements_by_tables(array, rows, zeros, partial, dtype):
    n = 37
    cells = md.Points("mesh", "cell", n)
    matrix, by_numpy = element(rows, 2, zeros=zeros)
    x = RNG.standard_normal((n, 2))
    at = RNG.integers(-1 if partial else 0, 50, (n, rows * rows))
    A = array(np.zeros(50, dtype))
    md.loop(cells, matrix, md.READ(array(x)), md.INC(A, md.Dofs(cells, at, 50)))
    expected = np.zeros(51)
    np.add.at(expected, at, by_numpy(x).reshape(n, -1))
    tolerance = 1e-12 if dtype == "f8" else 1e-4
    np.testing.assert_allclose(mb.to_numpy(A), expected[:50], rtol=tolerance, atol=tolerance)


def test_which_results_are_tables():
    matrix, _ = element(10, 2)
    given = [(Intent.READ, (2,), np.dtype(float)), (Intent.INC, (100,), np.dtype(float))]
    program = localsums.collected(local_kernel(matrix).program(given))
    (table,) = lanetables.lane_tables(program)
    assert table.entries == tuple(range(100))
    assert len(table.columns) == 3  # the metric is symmetric
    complex_given = [(Intent.READ, (2,), np.dtype(complex)), (Intent.INC, (100,), np.dtype(complex))]
    assert not lanetables.lane_tables(localsums.collected(local_kernel(matrix).program(complex_given)))


def test_tables_on_several_threads_have_the_same_bits():
    n = 20_000
    cells = md.Points("mesh", "cell", n)
    matrix, _ = element(9, 2)
    x = mb.HostArray(RNG.standard_normal((n, 2)))
    rows = md.Dofs(cells, (np.arange(n)[:, None] + RNG.integers(0, 40, (n, 81))), n + 40)
    found = []
    for threads in (1, 2, 3):
        A = mb.zeros(n + 40)
        with mb.settings.changed(num_threads=threads):
            md.loop(cells, matrix, md.READ(x), md.INC(A, rows))
        found.append(np.asarray(A))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_equal_tables_are_one():
    mesh = md.unit_square(3)
    V, corners = md.space(mesh, "P", 1), mesh.closure("cell", "vertex")
    cells = mesh.points("cell")
    again = md.Dofs(cells, np.array(V.dofs.table), V.dofs.size)
    assert again.table is V.dofs.table
    assert md.Dofs(cells, V.dofs.table[::-1], V.dofs.size).table is not V.dofs.table

    def mean(x, u, y):
        y += x[:, 0] * u

    u, y = V.interpolate(1.0), V.zeros()
    md.loop(cells, mean, md.READ(mesh.coordinates, corners), md.READ(u, V.dofs), md.INC(y, V.dofs))
    expected = np.bincount(V.dofs.table.ravel(), mesh.coordinates[corners.target().table, 0].ravel())
    np.testing.assert_allclose(np.asarray(y.parent), expected, rtol=1e-14)


def test_signatures_of_operators_are_remembered_and_pickled():
    import operator

    from numba.core import serialize
    from numba.core.registry import cpu_target

    def scaled(x, y):
        y += 2.0 * x

    y = mb.zeros(3)
    md.loop(md.Points("mesh", "cell", 3), scaled, md.READ(mb.ones(3)), md.INC(y))
    from mirabelle.backends.host import signatures

    cpu_target.target_context.refresh()
    signatures.remember()
    known = cpu_target.typing_context.resolve_value_type(operator.add)
    assert isinstance(known.get_call_type, signatures.Remembered)
    import pickle

    try:
        text = serialize.dumps(known)
    except TypeError:  # (other tests of this process have given `+` what cannot be pickled)
        pytest.skip("an overload of operator.add cannot be pickled")
    again = pickle.loads(text)
    from numba import float64, int64

    for args in ((float64, float64), (int64, float64), (float64, float64)):
        found = again.get_call_type(cpu_target.typing_context, args, {})
        assert found.return_type == float64
        assert known.get_impl_key(known.get_call_type(cpu_target.typing_context, args, {})) is not None
