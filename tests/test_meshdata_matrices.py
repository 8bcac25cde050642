"""Sparse matrices of a pattern: found once from tables, filled, handed to SciPy, with Dirichlet rows."""

import doctest

import numpy as np
import pytest
import scipy.sparse as sp

import mirabelle as mb
from mirabelle import meshdata as md
from mirabelle.arraytypes.meshdata import patterns

FAMILIES = [mb.HostArray, mb.RefArray, mb.CuArray]
# The unit square of two triangles.
TRIANGLES = np.array([[0, 1, 2], [1, 3, 2]])
VERTICES = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


def dofs(table, size, block=()):
    return md.Dofs(md.Points("mesh", "cell", len(table)), table, size, block=block)


def stiffness(x):
    """Of the linear functions on a triangle."""
    g = np.linalg.inv(np.hstack([np.ones((3, 1)), x]))[1:]
    return g.T @ g * abs(np.linalg.det(np.hstack([np.ones((3, 1)), x]))) / 2


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_stiffness_of_two_triangles(family):
    """X18: rows of 3, 4, 4 and 3 entries; the one between the ends of the diagonal is zero, and stored."""
    pattern = md.pattern(dofs(TRIANGLES, 4))
    assert np.diff(pattern.indptr).tolist() == [3, 4, 4, 3]
    assert pattern.indices.dtype == pattern.indptr.dtype == pattern.slot.dtype == np.int32
    A = pattern.matrix(array=family)
    local = np.stack([stiffness(VERTICES[t]) for t in TRIANGLES])
    mb.add_at(A.data, family(pattern.slot), family(local))
    h = 0.5
    dense = np.array([[1, -h, -h, 0], [-h, 1, 0, -h], [-h, 0, 1, -h], [0, -h, -h, 1]])
    np.testing.assert_allclose(mb.to_numpy(mb.dense(A.csr)), dense, atol=1e-15)
    assert (A.csr.nnz, A.shape, A.dtype) == (14, (4, 4), np.float64)
    u = family([0.0, 1.0, 2.0, 3.0])
    assert type(A @ u) is type(u)
    np.testing.assert_allclose(mb.to_numpy(A @ u), [-1.5, -0.5, 0.5, 1.5])
    np.testing.assert_allclose(mb.to_numpy(u @ A), [-1.5, -0.5, 0.5, 1.5])
    A.zero()
    assert not mb.to_numpy(A @ u).any()


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_assembly_by_a_loop(family):
    """X18, of numbers and of vectors: a loop adds each cell's matrix, and the product is that of the sum."""

    def laplace(x, K):
        J = np.array([[x[1, 0] - x[0, 0], x[2, 0] - x[0, 0]], [x[1, 1] - x[0, 1], x[2, 1] - x[0, 1]]])
        g = np.array([[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0]]) @ np.linalg.inv(J)
        L = g @ g.T
        for i in range(3):
            for j in range(3):
                K[i, j] += 0.5 * abs(np.linalg.det(J)) * L[i, j]

    corners = dofs(TRIANGLES, 4)
    A = md.pattern(corners).matrix(array=family)
    for _ in range(2):
        A.zero()
        md.loop(corners.source, laplace, md.READ(family(VERTICES), corners), md.INC(A.data, A.dofs))
    np.testing.assert_allclose(mb.to_numpy(A @ family(np.arange(4.0))), [-1.5, -0.5, 0.5, 1.5])

    def counted(K):  # entry (i, a), (j, b) of a cell is 8 i + 4 a + 2 j + b
        for r in range(4):
            for c in range(4):
                K[r, c] += 4 * r + c

    lines = np.array([[0, 1], [1, 2]])
    vectors = dofs(lines, 3, (2,))
    B = md.pattern(vectors).matrix(array=family)
    md.loop(vectors.source, counted, md.INC(B.data, B.dofs))
    local = np.broadcast_to(np.arange(16.0).reshape(2, 2, 2, 2), (2, 2, 2, 2, 2))
    made, _ = dense_sum([(lines, lines)], (6, 6), (2, 2), [local])
    np.testing.assert_array_equal(mb.to_numpy(mb.dense(B.csr)), made)


def dense_sum(tables, shape, blocks, values):
    """What cells add up to, one number after the other."""
    made = np.zeros(shape)
    stored = np.zeros(shape, bool)
    (p, q) = blocks
    for (rows, columns), local in zip(tables, values, strict=True):
        for c in range(len(rows)):
            for i, r in enumerate(rows[c]):
                for j, s in enumerate(columns[c]):
                    if r >= 0 and s >= 0:
                        for a in range(p):
                            for b in range(q):
                                made[r * p + a, s * q + b] += local[c, i, a, j, b]
                                stored[r * p + a, s * q + b] = True
    return made, stored


def test_random_patterns(monkeypatch):
    """Sets of cells with nothing in places, repeated dofs, empty tables, rows nobody reaches, blocks."""
    rng = np.random.default_rng(5)
    for turn in range(60):
        monkeypatch.setattr(patterns, "_CHUNK", (1 << 20, 7)[turn % 2])
        n, m = rng.integers(1, 12, 2)
        p, q = rng.choice([1, 1, 2, 3], 2)
        tables, values = [], []
        for _ in range(rng.integers(1, 4)):
            cells, down, across = (
                rng.integers(0, 6),
                rng.integers(1, 5),
                rng.integers(1, 60 if turn % 7 == 0 else 5),
            )
            kinds = rng.choice(["i4", "i8", "i2"], 2)
            rows = rng.integers(-1 if turn % 2 else 0, n, (cells, down)).astype(kinds[0])
            columns = rng.integers(-1 if turn % 3 else 0, m, (cells, across)).astype(kinds[1])
            tables.append((rows, columns))
            values.append(rng.integers(-5, 6, (cells, down, p, across, q)).astype(float))
        of_rows = [dofs(r, n, (p,) if p > 1 else ()) for r, _ in tables]
        of_columns = [dofs(c, m, (q,) if q > 1 else ()) for _, c in tables]
        pattern = md.pattern(of_rows, of_columns)
        made, stored = dense_sum(tables, pattern.shape, (p, q), values)
        A = pattern.matrix()
        flat = np.zeros(pattern.nnz)
        for slot, (r, c), local in zip(pattern.slots, tables, values, strict=True):
            assert slot.shape == (len(r), r.shape[1] * p, c.shape[1])
            hit = slot >= 0
            blocks = local.reshape(len(r), r.shape[1] * p, c.shape[1], q)
            np.add.at(flat.reshape(-1, q), slot[hit], blocks[hit])
        A.data[...] = flat
        assert np.array_equal(mb.to_numpy(mb.dense(A.csr)), made)
        known = sp.csr_array((np.ones(pattern.nnz), pattern.indices, pattern.indptr), shape=pattern.shape)
        known.check_format()
        assert known.has_canonical_format and np.array_equal(known.toarray() > 0, stored)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("access", ["INC", "MIN_RW"])
def test_entries_that_a_kernel_leaves_alone(family, access):
    """Nothing is added to them, whatever was in the memory where contributions wait to be joined."""

    def some(y):
        if access == "INC":
            y[0] += 0
            y[1] += 1
        else:
            y[1] = min(y[1], -1)

    n = 9000 if family is mb.HostArray else 7
    table = np.stack([np.arange(n), np.arange(n) + 1, (np.arange(n) * 7) % (n + 1)], 1)
    reached = dofs(table, n + 1)
    for whole in (False, True):
        start = np.arange(3.0 if whole else n + 1.0)
        true = start.copy()
        at = np.array([1]) if whole else table[:, 1]
        if access == "INC":
            np.add.at(true, np.ones(n, int) if whole else at, 1)
        else:
            true[at] = np.minimum(true[at], -1)
        y = family(start)
        np.full(4 * n, 7.5)  # (memory that is used again)
        options = {"whole": True} if whole else {"through": reached}
        md.loop(reached.source, some, getattr(md, access)(y, **options))
        np.testing.assert_array_equal(mb.to_numpy(y), true)


@pytest.mark.parametrize("family", [*FAMILIES, mb.DArray[mb.HostArray]], ids=lambda f: f.__name__)
def test_solvers_on_axis_trees(family):
    """Solutions are over the tree of the right-hand side, whatever the product makes."""
    tree = md.tree(md.Axis("dof", {"inner": 4, "outer": 5}))
    rng = np.random.default_rng(8)
    a, b = rng.standard_normal((9, 9)), rng.standard_normal(9)
    a = a @ a.T + 9 * np.eye(9)
    matrix = family(a)
    for solver in (mb.linalg.cg, mb.linalg.minres, mb.linalg.gmres):
        for A in (matrix, lambda v: matrix @ v):
            x, info = solver(A, md.wrap(tree, family(b)), rtol=1e-12)
            assert info.converged and x.tree == tree
            np.testing.assert_allclose(mb.to_numpy(x.parent), np.linalg.solve(a, b), atol=1e-12)


def test_shared_memory():
    """CSR and SciPy's matrix are views; a write to the data shows in the first, and in what SciPy gets next."""
    pattern = md.pattern(dofs(TRIANGLES, 4))
    A = pattern.matrix()
    A.data[...] = np.arange(14.0)
    theirs = A.to_scipy()
    assert np.shares_memory(theirs.data, np.asarray(A.data))
    assert np.shares_memory(theirs.indices, pattern.indices) and np.shares_memory(theirs.indptr, pattern.indptr)
    assert np.array_equal(theirs.toarray(), mb.to_numpy(mb.dense(A.csr)))
    before, csr = theirs.toarray(), A.csr
    A.data[0] = 50.0
    assert csr[0, 0] == 50 and A.to_scipy()[0, 0] == 50 and np.array_equal(theirs.toarray(), before)
    csr.data[1] = 60.0
    assert float(A.data[1]) == 60
    with pytest.raises(mb.PlaceError, match=r"A\.csr\.to_scipy"):
        pattern.matrix(array=mb.RefArray).to_scipy()
    with pytest.raises(mb.PlaceError, match=r"mb\.CuArray"):
        A.to_cupy()


def test_shared_on_cards():
    """CuPy's matrix is of the same memory, and holds it. (Of a simulated card it is SciPy's, of a copy.)"""
    A = md.pattern(dofs(TRIANGLES, 4)).matrix(array=mb.CuArray)
    A.data[...] = mb.CuArray(np.arange(14.0))
    theirs, dense = A.to_cupy(), mb.to_numpy(mb.dense(A.csr))
    on_card = hasattr(theirs.data, "__cuda_array_interface__")
    assert not on_card or theirs.data.data.ptr == A.data.__cuda_array_interface__["data"][0]
    del A
    full = theirs.toarray()
    np.testing.assert_array_equal(full.get() if hasattr(full, "get") else full, dense)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("symmetric", [True, False])
def test_dirichlet(family, symmetric):
    rng = np.random.default_rng(2)
    for rows, values in (
        ([], 0.0),
        ([0], 3.0),
        ([3, 1], [1.0, -2.0]),
        (np.array([True, False, True, False]), 0.5),
        (range(4), 1.0),
    ):
        A = md.pattern(dofs(TRIANGLES, 4)).matrix(array=family)
        local = np.stack([stiffness(VERTICES[t]) + np.eye(3) for t in TRIANGLES])
        mb.add_at(A.data, family(A.pattern.slot), family(local))
        dense, rhs = mb.to_numpy(mb.dense(A.csr)), rng.standard_normal(4)
        at = np.flatnonzero(rows) if isinstance(rows, np.ndarray) else np.array(rows, int)
        g = np.zeros(4)
        g[at] = values
        true, known = dense.copy(), rhs.copy()
        if symmetric:
            known -= dense @ g
            true[:, at] = 0
        true[at], known[at] = np.eye(4)[at], g[at]
        b = family(rhs)
        over = md.wrap(md.tree(md.Axis("dof", 4)), b) if len(at) == 1 else b
        md.dirichlet(
            A, over, family(rows) if isinstance(rows, np.ndarray) else list(rows), values, symmetric=symmetric
        )
        np.testing.assert_allclose(mb.to_numpy(mb.dense(A.csr)), true, atol=1e-15)
        np.testing.assert_allclose(mb.to_numpy(b), known, atol=1e-14)
        if symmetric:
            x, info = mb.linalg.cg(A, b, rtol=1e-12)
            assert info.converged
            np.testing.assert_allclose(mb.to_numpy(x), np.linalg.solve(true, known), atol=1e-10)
            np.testing.assert_allclose(mb.to_numpy(x)[at], g[at], atol=1e-10)


def test_mistakes():
    d = dofs(TRIANGLES, 4)
    A = md.pattern(d).matrix()
    b = mb.HostArray(np.ones(4))
    for error, text, call in (
        (TypeError, "md.dofs", lambda: md.pattern(TRIANGLES)),
        (TypeError, "as many points", lambda: md.pattern(md.unit_square(1).closure("cell"))),
        (TypeError, "as many points", lambda: md.pattern(md.unit_square(1).support("edge"))),
        (ValueError, "in pairs", lambda: md.pattern([d, d], [d])),
        (ValueError, "in pairs", lambda: md.pattern([])),
        (ValueError, "same points", lambda: md.pattern(d, dofs(TRIANGLES[:1], 4))),
        (ValueError, "4 blocks of .* and 5 blocks", lambda: md.pattern([d, dofs(TRIANGLES, 5)])),
        (IndexError, "leads outside", lambda: patterns.found([(TRIANGLES, TRIANGLES)], 3, 4)),
        (ValueError, "2 sets of cells", lambda: md.pattern([d, d]).slot),
        (ValueError, "14 entries", lambda: md.Matrix(A.pattern, mb.HostArray(np.zeros(3)))),
        (IndexError, "none of the 4 rows", lambda: md.dirichlet(A, b, [4])),
        (TypeError, "indices or a mask", lambda: md.dirichlet(A, b, [0.5])),
        (ValueError, "one truth value", lambda: md.dirichlet(A, b, np.array([True]))),
        (ValueError, "given twice", lambda: md.dirichlet(A, b, [1, 1])),
        (ValueError, "one for each", lambda: md.dirichlet(A, b, [1, 2], [1.0, 2.0, 3.0])),
        (ValueError, "b shape", lambda: md.dirichlet(A, b[:2], [1])),
        (ValueError, "square", lambda: md.dirichlet(md.pattern(d, dofs(TRIANGLES, 9)).matrix(), b, [1])),
        (
            ValueError,
            "on the diagonal",
            lambda: md.dirichlet(md.pattern(dofs(TRIANGLES, 5)).matrix(), None, [4]),
        ),
    ):
        with pytest.raises(error, match=text):
            call()
    assert not mb.to_numpy(A.data).any() and (mb.to_numpy(b) == 1).all(), "nothing is written"


def test_positions_of_a_loop():
    for block in ((), (3,)):
        d = dofs(TRIANGLES, 4, block)
        A = md.pattern([d, d], [d, d]).matrix()
        for found, slot in zip(A.dofs, A.pattern.slots, strict=True):
            assert found.block == block and found.size * max(1, *block, 1) == A.pattern.nnz
            assert np.array_equal(found.table.ravel(), slot.ravel())


@pytest.mark.parametrize("name", ["Matrix", "Pattern", "dirichlet", "pattern"])
def test_examples(name):
    for test in doctest.DocTestFinder().find(getattr(md, name), name, globs={}):
        assert not doctest.DocTestRunner().run(test).failed


@pytest.mark.parametrize("family", FAMILIES[:2], ids=lambda f: f.__name__)
@pytest.mark.parametrize("way_of", ["tree", "plain"])
def test_derivatives_go_through_solvers_of_arrays_over_trees(family, way_of):
    """Those of the right-hand side, of the matrix and of both, whatever the product returns."""
    tree = md.tree(md.Axis("a", 3))
    dense = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 5.0]])

    def solution(p):
        matrix, scale = family(dense), mb.stack([p[1], p[2], p[1]])

        def product(v):
            w = matrix @ v.parent
            w = w + scale * v.parent
            return md.wrap(tree, w) if way_of == "tree" else w

        b = md.wrap(tree, family([1.0, 2.0, 3.0])) * p[0]
        x, info = mb.linalg.cg(product, b, rtol=1e-13, M=lambda v: v / 4)
        assert info.converged and type(x).__name__.startswith("TreeArray")
        return x.parent

    p = np.array([1.5, 2.0, 0.5])
    found = mb.to_numpy(mb.autodiff.jacobian(solution, family(p)))
    inverse = np.linalg.inv(dense + np.diag(p[[1, 2, 1]]))
    x = inverse @ [1.5, 3.0, 4.5]
    wanted = np.stack([x / 1.5, -inverse @ (x * [1, 0, 1]), -inverse @ (x * [0, 1, 0])], axis=1)
    np.testing.assert_allclose(found, wanted, rtol=1e-10)
