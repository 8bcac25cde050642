"""Loops over arrays on axis trees: worked examples on the unit square of two triangles, with exact numbers."""

import numpy as np
import pytest

import mirabelle as mb
from mirabelle import meshdata as md

KINDS = ["HostArray", "RefArray", "CuArray"]
MESH = md.unit_square(1)
CELLS = MESH.points("cell")
CLOSURE = MESH.closure("cell")
VERTICES = MESH.closure("cell", "vertex")


def mesh_axis():
    return md.Axis("mesh", {"cell": 2, "edge": 5, "vertex": 4})


def p3(*inner):
    return md.tree(
        mesh_axis(),
        {
            "cell": md.tree(md.Axis("dof", 1), *inner),
            "edge": md.tree(md.Axis("dof", 2), *inner),
            "vertex": md.tree(md.Axis("dof", 1), *inner),
        },
    )


def packed(tree, cell, n, kind="HostArray"):
    """What a kernel sees of an array that holds its own positions."""
    x = md.wrap(tree, getattr(mb, kind)(np.arange(float(tree.size))))
    table = md.dofs(CLOSURE, tree)
    out = getattr(mb, kind)(np.zeros((2, *table.local)))

    def copy(x, out):
        out[...] = x

    md.loop(CELLS, copy, md.READ(x, CLOSURE), md.WRITE(out))
    assert out.shape[1] == n
    return mb.to_numpy(out)[cell]


@pytest.mark.parametrize("kind", KINDS)
def test_x15_the_closure_of_a_cell_is_packed_in_the_maps_order(kind):
    assert packed(p3(), 0, 10, kind).tolist() == [0, 6, 7, 4, 5, 2, 3, 12, 13, 14]
    assert packed(p3(), 1, 10, kind).tolist() == [1, 10, 11, 6, 7, 8, 9, 13, 15, 14]


def test_x15_packing_does_not_depend_on_the_numbering_of_storage():
    plain = p3()
    numbered = md.tree(
        md.Axis("mesh", {"cell": 2, "edge": 5, "vertex": 4}, numbering=[1, 6, 4, 5, 8, 10, 9, 0, 3, 2, 7]),
        {"cell": md.Axis("dof", 1), "edge": md.Axis("dof", 2), "vertex": md.Axis("dof", 1)},
    )
    values = np.random.default_rng(0).random(16)
    a, b = mb.zeros(16), mb.zeros(16)
    for path in plain.leaves:
        b_at, a_at = numbered.offsets(path), plain.offsets(path)
        a[a_at], b[b_at] = values[a_at], values[a_at]
    seen = []
    for tree, flat in ((plain, a), (numbered, b)):
        out = mb.zeros((2, 10))
        md.loop(
            CELLS, lambda x, out: out.__setitem__(..., x), md.READ(md.wrap(tree, flat), CLOSURE), md.WRITE(out)
        )
        seen.append(out.tolist())
    assert seen[0] == seen[1]


def test_vectors_have_the_same_local_shape_whatever_lies_together():
    inner = md.Axis("dim", 2)
    interleaved, apart = p3(inner), md.tree(inner, p3())
    assert md.dofs(CLOSURE, interleaved).local == md.dofs(CLOSURE, apart).local == (10, 2)
    assert md.dofs(CLOSURE, interleaved).block == (2,)
    a, b = packed(interleaved, 1, 10), packed(apart, 1, 10)
    np.testing.assert_array_equal(a, 2 * packed(p3(), 1, 10)[:, None] + [0, 1])
    np.testing.assert_array_equal(b, packed(p3(), 1, 10)[:, None] + [0, 16])


@pytest.mark.parametrize("kind", KINDS)
def test_x5_a_mixed_space_gives_the_same_bits_interleaved_and_concatenated(kind):
    family = getattr(mb, kind)
    u, p = md.tree(md.Axis("dim", 2)), md.Axis("dof", 1)
    concatenated = md.tree(
        md.Axis("field", {"u": 1, "p": 1}),
        {
            "u": md.tree(md.Axis("mesh", {"edge": 5, "vertex": 4}), u),
            "p": md.tree(md.Axis("mesh", {"vertex": 4}), p),
        },
    )
    interleaved = md.tree(
        md.Axis("mesh", {"edge": 5, "vertex": 4}),
        {
            "edge": md.tree(md.Axis("field", {"u": 1}), u),
            "vertex": md.tree(md.Axis("field", {"u": 1, "p": 1}), {"u": u, "p": p}),
        },
    )
    assert concatenated.size == interleaved.size == 22
    reach = CLOSURE.restrict("edge", "vertex")
    values = {tree: md.dofs(reach, tree) for tree in (concatenated, interleaved)}
    assert all(table.local == (15,) for table in values.values())
    rng = np.random.default_rng(1)
    known = rng.random(22)
    results = []
    for tree in (concatenated, interleaved):
        x = np.zeros(22)
        order = []
        for path in concatenated.leaves:
            at = tree.offsets(path)
            x[at] = known[concatenated.offsets(path)]
            order.append(at)
        y = md.zeros(tree, array=family)
        md.loop(
            CELLS,
            kernel_of(tree, concatenated, values),
            md.READ(md.wrap(tree, family(x)), reach),
            md.INC(y, reach),
        )
        results.append(mb.to_numpy(y.parent)[np.concatenate(order)])
    assert results[0].tolist() == results[1].tolist()
    assert np.count_nonzero(results[0]) == 22


def kernel_of(tree, first, tables):
    """A kernel in terms of the first tree's local order."""
    wanted = [identity(first, t) for t in tables[first].table[0]]
    mine = [identity(tree, t) for t in tables[tree].table[0]]
    order = [mine.index(w) for w in wanted]

    def kernel(x, y):
        for i in range(15):
            y[order[i]] += x[order[i]] / 3 + x[order[(7 * i) % 15]]

    return kernel


def identity(tree, offset):
    path, indices = tree.locate(int(offset))
    return frozenset(
        (label, path[label] if isinstance(path[label], str) else "", indices[label]) for label in path
    )


@pytest.mark.parametrize("kind", KINDS)
def test_x17_maps_compose(kind):
    family = getattr(mb, kind)
    reach = VERTICES(MESH.support("edge"))
    pairs, _, inner = md.pairs(reach)
    w = family(np.zeros(4))
    md.loop(pairs, lambda w: w.__setitem__(0, w[0] + 1), md.INC(w, inner))
    assert mb.to_numpy(w).tolist() == [3, 6, 6, 3]
    assert len(pairs) == 18


@pytest.mark.parametrize("kind", KINDS)
def test_x16_ragged_supports_are_read_by_pairs(kind):
    family = getattr(mb, kind)
    pairs, outer, inner = md.pairs(MESH.support("edge"))

    def add(x, y):
        y[0] += x[0]

    y = family(np.zeros(5))
    md.loop(pairs, add, md.READ(family([10.0, 20.0]), inner), md.INC(y, outer))
    assert mb.to_numpy(y).tolist() == [10, 10, 30, 20, 20]


REFERENCE = np.array([[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0]])


def stiffness(x, A):
    J = np.array([[x[1, 0] - x[0, 0], x[2, 0] - x[0, 0]], [x[1, 1] - x[0, 1], x[2, 1] - x[0, 1]]])
    g = REFERENCE @ np.linalg.inv(J)
    A += 0.5 * abs(np.linalg.det(J)) * (g @ g.T).reshape(9)
