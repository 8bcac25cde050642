"""Axis trees: the worked examples with their numbers, random trees against a walk, and what is refused."""

import os
import pickle

import numpy as np
import pytest

import mirabelle as mb
from mirabelle import meshdata as md
from tests.meshtrees import check, check_array, random_tree

P3 = {"cell": 2, "edge": 5, "vert": 4}
NUMBERING = [1, 6, 4, 5, 8, 10, 9, 0, 3, 2, 7]


def mesh(**more):
    return md.Axis("mesh", P3, **more)


def p3(*inner, **more):
    return md.tree(
        mesh(**more), {"cell": md.Axis("dof", 1), "edge": md.Axis("dof", 2), "vert": md.Axis("dof", 1)}, *inner
    )


def values(tree, path=None):
    return tree.offsets(path).tolist()


def rule(tree, path, f):
    """Does a function of the indices say where each entry lies?"""
    indices = tree.domain(path).indices
    return values(tree, path) == np.broadcast_to(f(*indices.values()), tree.domain(path).size).tolist()


def test_x1_scalar_p3():
    tree = p3()
    assert tree.size == 16
    assert rule(tree, {"mesh": "cell"}, lambda c, k: c)
    assert rule(tree, {"mesh": "edge"}, lambda e, k: 2 + 2 * e + k)
    assert rule(tree, {"mesh": "vert"}, lambda v, k: 12 + v)
    assert str(tree.layout({"mesh": "edge"})) == "2*mesh + dof + 2"


def test_x2_vectors_and_tensors():
    dim = md.Axis("dim", 2)
    aos = p3(dim)
    assert aos.size == 32
    assert rule(aos, {"mesh": "cell"}, lambda c, k, d: 2 * c + d)
    assert rule(aos, {"mesh": "edge"}, lambda e, k, d: 4 + 4 * e + 2 * k + d)
    assert rule(aos, {"mesh": "vert"}, lambda v, k, d: 24 + 2 * v + d)
    soa = md.tree(dim, p3())
    for leaf in p3().leaves:
        for d in range(2):
            indices = p3().domain(leaf).indices
            assert soa.offset(leaf, indices | {"dim": d}).tolist() == [16 * d + o for o in values(p3(), leaf)]
    tensor = md.tree(md.Axis("v", 4), md.Axis("i", 2), md.Axis("j", 2))
    assert tensor.size == 16 and str(tensor.layout()) == "4*v + 2*i + j"


def test_x3_linear_and_several_components():
    assert str(md.tree(md.Axis("a", 4), md.Axis("b", 3), md.Axis("c", 2)).layout()) == "6*a + 2*b + c"
    tree = md.tree(md.Axis("a", {"x": 2, "y": 3}), {"x": md.Axis("b", 3), "y": md.Axis("c", 2)})
    assert tree.size == 12
    assert [str(tree.layout(leaf)) for leaf in tree.leaves] == ["3*a + b", "2*a + c + 6"]


def test_x4_x5_mixed_concatenated_and_interleaved():
    one, dim = md.Axis("one", 1), md.Axis("dim", 2)
    points = md.Axis("mesh", {"edge": 5, "vert": 4})
    velocity = md.tree(points, one, dim)
    tree = md.tree(
        md.Axis("field", {"u": 1, "p": 1}), {"u": velocity, "p": md.tree(md.Axis("mesh", {"vert": 4}), one)}
    )
    assert tree.size == 22
    assert rule(tree, {"field": "u", "mesh": "edge"}, lambda f, e, k, d: 2 * e + d)
    assert rule(tree, {"field": "u", "mesh": "vert"}, lambda f, v, k, d: 10 + 2 * v + d)
    assert rule(tree, {"field": "p", "mesh": "vert"}, lambda f, v, k: 18 + v)
    field = md.Axis("field", {"u": 1, "p": 1})
    mixed = md.tree(points, {"edge": (md.Axis("field", {"u": 1}), dim), "vert": (field, {"u": dim})})
    assert mixed.size == 22
    assert rule(mixed, {"mesh": "edge", "field": "u"}, lambda e, f, d: 2 * e + d)
    assert rule(mixed, {"mesh": "vert", "field": "u"}, lambda v, f, d: 10 + 3 * v + d)
    assert rule(mixed, {"mesh": "vert", "field": "p"}, lambda v, f: 12 + 3 * v)
    assert mixed.stride({"mesh": "vert", "field": "p"}, "mesh") == 3


def test_x6_ragged():
    tree = md.tree(md.Axis("A", 4), md.Axis("B", [2, 0, 3, 1]))
    assert tree.size == 6 and str(tree.layout()) == "[0, 2, 2, 5][A] + B"
    inner = md.tree(tree, md.Axis("C", 2))
    assert inner.size == 12 and str(inner.layout()) == "2*[0, 2, 2, 5][A] + 2*B + C"
    assert inner.stride(None, "B") == 2 and inner.stride(None, "A") is None
    assert [s.tolist() for s in inner.section()] == [[0, 4, 4, 10], [4, 0, 6, 2]]


def test_x7_ragged_under_a_constant_axis():
    tree = md.tree(md.Axis("A", 3), md.Axis("B", 2), md.Axis("C", md.Ragged(["A"], [1, 2, 1])))
    assert str(tree.layout()) == "2*[0, 1, 3][A] + B*[1, 2, 1][A] + C"
    order = [(0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1), (2, 0, 0), (2, 1, 0)]
    assert [tree.offset(None, dict(zip("ABC", i, strict=True))) for i in order] == list(range(8))
    assert tree.stride(None, "B") is None


def test_x8_nested_ragged():
    tree = md.tree(md.Axis("A", 2), md.Axis("B", [2, 1]), md.Axis("C", [[1, 2], [3]]))
    order = [(0, 0, 0), (0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 0, 1), (1, 0, 2)]
    assert [tree.offset(None, dict(zip("ABC", i, strict=True))) for i in order] == list(range(6))
    # (Two entries are always in a line: the table of the lessons, [0, 3], is 3 A.)
    assert str(tree.layout()) == "3*A + [0, 1, 0][2*A + B] + C".replace("2*A", "[0, 2][A]")


def test_x9_ragged_component_and_its_numbering():
    inner = {"x": md.Axis("b", [1, 3]), "y": md.Axis("c", 2)}
    tree = md.tree(md.Axis("a", {"x": 2, "y": 2}), inner)
    assert tree.size == 8 and values(tree, {"a": "x"}) == [0, 1, 2, 3]
    assert rule(tree, {"a": "y"}, lambda i, j: 4 + 2 * i + j)
    tree = md.tree(md.Axis("a", {"x": 2, "y": 2}, numbering=[2, 0, 3, 1]), inner)
    assert values(tree, {"a": "x"}) == [2, 5, 6, 7] and values(tree, {"a": "y"}) == [0, 1, 3, 4]


def test_x10_permuted_ragged():
    tree = md.tree(md.Axis("A", 4, numbering=[2, 0, 3, 1]), md.Axis("B", [2, 0, 3, 1]))
    assert str(tree.layout()) == "[3, 6, 0, 5][A] + B"
    assert values(tree) == [3, 4, 0, 1, 2, 5]


def test_x11_renumbered_p3():
    tree = p3(numbering=NUMBERING)
    assert values(tree, {"mesh": "cell"}) == [10, 0]
    assert tree.offset({"mesh": "edge"}, {"mesh": np.arange(5), "dof": 0}).tolist() == [13, 11, 3, 5, 1]
    assert values(tree, {"mesh": "vert"}) == [15, 7, 9, 8]
    assert str(tree.layout({"mesh": "edge"})) == "[13, 11, 3, 5, 1][mesh] + dof"
    assert tree.stride({"mesh": "edge"}, "dof") == 1
    offsets, sizes = tree.section("edge")
    assert offsets.tolist() == [13, 11, 3, 5, 1] and sizes.tolist() == [2] * 5


def test_a_numbering_in_order_needs_no_table():
    assert str(md.tree(md.Axis("A", 4, numbering=[0, 1, 2, 3]), md.Axis("B", 2)).layout()) == "2*A + B"
    assert str(md.tree(md.Axis("A", 4, numbering=[3, 2, 1, 0]), md.Axis("B", 2)).layout()) == "-2*A + B + 6"


def test_x19_regions():
    X = md.Axis("X", 3, regions={"x": 2, "y": 1})
    field = md.Axis("f", {"a": 1, "b": 1})
    tree = md.tree(field, {"a": X, "b": X})
    assert values(tree, {"f": "a"}) == [0, 1, 4] and values(tree, {"f": "b"}) == [2, 3, 5]
    tree = md.tree(field, {"a": (X, md.Axis("D", 2)), "b": X})
    assert tree.size == 9
    assert tree.offset({"f": "a"}, {"f": 0, "X": np.arange(3), "D": 0}).tolist() == [0, 2, 6]
    assert values(tree, {"f": "b"}) == [4, 5, 8]
    tree = md.tree(X, md.Axis("U", 3, regions={"u": 2, "v": 1}))
    assert tree.offsets().reshape(3, 3).tolist() == [[0, 1, 4], [2, 3, 5], [6, 7, 8]]
    assert tree.region("x") == slice(0, 6) and tree.region("x", "v") == slice(4, 6)
    vertices = md.Axis("mesh", {"vertex": 3}, regions={"vertex": {"owned": 2, "ghost": 1}})
    tree = md.tree(md.Axis("field", {"u": 1, "p": 1}), {"u": (vertices, md.Axis("dim", 2)), "p": vertices})
    u, p = ({"field": key} for key in "up")
    assert tree.offset(u, {"field": 0, "mesh": np.arange(3), "dim": 0}).tolist() == [0, 2, 6]
    assert values(tree, p) == [4, 5, 8]
    assert tree.region("owned") == slice(0, 6) and tree.region("ghost") == slice(6, 9)
    # Nested and ragged; the extent is the sum of the regions.
    regions = {"X": md.Ragged(["A"], [1, 2, 0]), "Y": md.Ragged(["A"], [2, 0, 1])}
    tree = md.tree(md.Axis("A", 3, regions={"owned": 2, "ghost": 1}), md.Axis("B", regions=regions))
    assert values(tree) == [0, 3, 4, 1, 2, 5]


def test_regions_of_one_leaf_need_no_table():
    tree = md.tree(md.Axis("v", regions={"owned": 5, "ghost": 2}), md.Axis("dim", 3))
    assert str(tree.layout()) == "3*v + dim" and tree.region("ghost") == slice(15, 21)
    assert [s.tolist() for s in tree.section()] == [[0, 3, 6, 9, 12, 15, 18], [3] * 7]


@pytest.mark.parametrize("part", range(3))
def test_random_trees_are_laid_out_as_a_walk_says(part):
    many = int(os.environ.get("MIRABELLE_TREES", "240")) // 3
    for seed in range(part * many, (part + 1) * many):
        check(*random_tree(np.random.default_rng(seed), depth=1 + seed % 4))


@pytest.mark.parametrize("array", ["HostArray", "RefArray", "CuArray"])
def test_arrays_over_random_trees_are_what_a_walk_says(array):
    """(All of them: `python -m tests.soak_trees 3000 0 HostArray RefArray CuArray`.)"""
    many = int(os.environ.get("MIRABELLE_TREES", "120"))
    for seed in range(many):
        rng = np.random.default_rng(seed)
        check_array(rng, *random_tree(rng, depth=1 + seed % 4), getattr(mb, array))


def test_trees_are_values():
    a, b = p3(numbering=NUMBERING), p3(numbering=np.array(NUMBERING))
    assert a == b and hash(a) == hash(b) and a != p3() and a != p3(md.Axis("dim", 2))
    again = pickle.loads(pickle.dumps(a))
    assert (
        again == a and hash(again) == hash(a) and again.layout({"mesh": "vert"}) == a.layout({"mesh": "vert"})
    )
    ragged = md.tree(md.Axis("A", 2), md.Axis("B", [2, 1]), md.Axis("C", [[1, 2], [3]]))
    assert pickle.loads(pickle.dumps(ragged)) == ragged
    assert len({a, b, p3(), p3()}) == 2
    tables = np.array([2, 0, 1])
    axis = md.Axis("a", 3, numbering=tables)
    tables[0] = 7  # what it was made of may change
    assert md.tree(axis).offsets().tolist() == [1, 2, 0]


def test_trees_are_built_from_nested_lists():
    a, b, c = md.Axis("a", {"x": 2, "y": 3}), md.Axis("b", 3), md.Axis("c", 2)
    tree = md.tree(a, {"x": b, "y": c})
    assert tree == md.tree(a, [b, c]) == md.tree([a, [b, c]])
    assert md.tree(a, [(b, c), None]) == md.tree(a, {"x": md.tree(b, c)})
    assert md.tree(a, {"x": b}, c) == md.tree(a, {"x": (b, c), "y": c})
    assert tree.sub("x") == md.tree(b) and tree.points("y") == md.Points("a", "y", 3)
    assert md.tree().size == 1 and md.tree().leaves == [{}] and md.tree().offset({}, {}) == 0
    ragged = md.tree(md.Axis("b", md.Ragged(["a"], [1, 2])), c)  # open: it stands under an axis "a"
    assert md.tree(md.Axis("a", 2), ragged).size == 6


def test_offset_is_vectorised():
    tree = p3()
    edges = np.array([[0, 1], [4, 2]])
    found = tree.offset({"mesh": "edge"}, {"mesh": edges[..., None], "dof": np.arange(2)})
    assert found.shape == (2, 2, 2) and found.dtype == np.int32
    assert found.tolist() == [[[2, 3], [4, 5]], [[10, 11], [6, 7]]]
    assert tree.offset({"mesh": "vert"}, {"mesh": 3, "dof": 0}) == 15
    assert tree.offset({"mesh": "cell"}, {"mesh": np.zeros(3, np.int8), "dof": 0}).tolist() == [0, 0, 0]
    assert tree.offset({"mesh": "cell"}, {"mesh": np.zeros(0, int), "dof": 0}).shape == (0,)
    many = md.tree(md.Axis("a", 3_000_000_000))
    assert many.offset(None, {"a": np.array([2_999_999_999])}).tolist() == [2_999_999_999]


def _bad(error, words, make):
    with pytest.raises(error, match=words) as caught:
        make()
    assert str(caught.value).rstrip("'\"").endswith(".") and len(str(caught.value)) > 40


def test_what_is_wrong_is_said_in_a_sentence():
    A, B = md.Axis("A", 3), md.Axis("B", 2)
    _bad(ValueError, "used twice", lambda: md.tree(A, B, md.Axis("A", 2)))
    _bad(ValueError, "given by 2 numbers", lambda: md.tree(A, md.Axis("R", [1, 2])))
    _bad(ValueError, "given by 3 numbers", lambda: md.tree(A, B, md.Axis("R", [[1, 2], [3]])))
    _bad(ValueError, "given by 6 numbers", lambda: md.tree(B, A, md.Axis("R", [[1, 2, 3, 4], [5, 6]])))
    _bad(ValueError, "nested equally deep", lambda: md.Axis("R", [[1, 2], 3]))
    _bad(ValueError, "no permutation", lambda: md.Axis("A", 3, numbering=[0, 1, 1]))
    _bad(ValueError, "no permutation", lambda: md.Axis("A", 3, numbering=[0, 1]))
    _bad(ValueError, "no permutation", lambda: md.Axis("A", 3, numbering=[0.0, 1.0, 2.0]))
    _bad(ValueError, "a numbering needs", lambda: md.Axis("A", [1, 2], numbering=[0, 1, 2]))
    _bad(ValueError, "not negative", lambda: md.Axis("A", -1))
    _bad(ValueError, "not negative", lambda: md.Axis("A", 2.5))
    _bad(ValueError, "not negative", lambda: md.Axis("A", [1, -2]))
    _bad(TypeError, "integers", lambda: md.Axis("A", [0.5, 1.5]))
    _bad(ValueError, "no component", lambda: md.Axis("A", {}))
    _bad(TypeError, "has an extent", lambda: md.Axis("A"))
    _bad(ValueError, "are to be divided", lambda: md.Axis("A", 3, regions={"owned": 1, "ghost": 1}))
    _bad(ValueError, "several components", lambda: md.Axis("A", {"x": 1, "y": 1}, regions={"owned": 1}))
    _bad(KeyError, "no component 'z'", lambda: md.Axis("A", {"x": 1}, regions={"z": {"owned": 1}}))
    _bad(KeyError, "no component 'z'", lambda: md.tree(md.Axis("A", {"x": 1, "y": 2}), {"z": B}))
    _bad(ValueError, "list one for each", lambda: md.tree(md.Axis("A", {"x": 1, "y": 2}), [B]))
    _bad(TypeError, "made of axes", lambda: md.tree(A, 3))
    mixed = md.tree(md.Axis("A", {"x": 1, "y": 2}), {"x": B})
    _bad(TypeError, "follows one axis", lambda: md.tree(mixed, {"y": A}))
    _bad(TypeError, "begins with an axis", lambda: md.tree({"x": A}))
    _bad(
        ValueError, "which is no axis above", lambda: md.tree(A, md.Axis("R", md.Ragged(["Q"], [1, 2, 3]))).size
    )
    ragged = md.Axis("R", md.Ragged(["A"], [1, 2, 3]))
    _bad(
        ValueError,
        "name all they vary over",
        lambda: md.tree(A, ragged, md.Axis("S", md.Ragged(["R"], [1, 2]))),
    )
    _bad(ValueError, "out of order", lambda: md.tree(A, B, md.Axis("S", md.Ragged(["B", "A"], [[1, 2]] * 3))))
    _bad(ValueError, "nested 2 deep", lambda: md.Ragged(["a", "b", "c"], [[1, 2]]))
    regions = {"own": md.Ragged(["A"], [1, 1, 1]), "ghost": md.Ragged(["A"], [0, 0, 0])}
    _bad(ValueError, "to be divided", lambda: md.tree(A, md.Axis("R", [1, 1, 2], regions=regions)))


def test_what_is_not_there_is_said_in_a_sentence():
    tree = p3()
    edge = {"mesh": "edge"}
    _bad(KeyError, "no component 'face'", lambda: tree.layout({"mesh": "face"}))
    _bad(KeyError, "say which", lambda: tree.layout())
    _bad(KeyError, "no axis 'dim'", lambda: tree.layout(edge | {"dim": None}))
    _bad(KeyError, "is missing", lambda: tree.offset(edge, {"mesh": 0}))
    _bad(KeyError, "no axis 'dim'", lambda: tree.offset(edge, {"mesh": 0, "dof": 0, "dim": 0}))
    _bad(IndexError, "index 5 is out of range", lambda: tree.offset(edge, {"mesh": [0, 5], "dof": 0}))
    _bad(IndexError, "index -1 is out of range", lambda: tree.offset(edge, {"mesh": [0, -1], "dof": 0}))
    _bad(TypeError, "are integers", lambda: tree.offset(edge, {"mesh": [0.5], "dof": 0}))
    ragged = md.tree(md.Axis("A", 4), md.Axis("B", [2, 0, 3, 1]))
    _bad(
        IndexError,
        "index 2 is out of range along 'B', which has 2",
        lambda: ragged.offset(None, {"A": 0, "B": 2}),
    )
    _bad(IndexError, "index 0 .* which has 0", lambda: ragged.offset(None, {"A": [0, 1], "B": [0, 0]}))
    _bad(IndexError, "nothing at 6", lambda: ragged.locate(6))
    _bad(KeyError, "no region 'ghost'", lambda: ragged.region("ghost"))
    _bad(KeyError, "say which|no component", lambda: tree.section())
    _bad(ValueError, "no rectangle", lambda: ragged.shape())
    inner = md.tree(md.Axis("a", 2), md.Axis("v", regions={"own": 2, "ghost": 1}))
    _bad(ValueError, "no section", lambda: inner.section())


def test_trees_are_printed_with_their_layouts():
    tree = md.tree(md.Axis("A", 4), md.Axis("B", md.Ragged(["A"], [2, 0, 3, 1])))
    assert repr(tree).split("\n") == [
        "AxisTree of 6 entries",
        "A [4]",
        "  B [2, 0, 3, 1 over A]  at [0, 2, 2, 5][A] + B",
    ]
    assert "numbered" in repr(p3(numbering=NUMBERING)) and repr(md.tree()).startswith("AxisTree of one")
    assert "stands under A" in repr(md.tree(md.Axis("B", md.Ragged(["A"], [1, 2]))))
    axis = md.Axis("v", {"x": 40, "<y>": 30}, regions={"x": {"owned": 30, "ghost": 10}})
    shown = md.tree(axis)._repr_html_()
    assert shown.count("<polygon") == 70 and "ghost" in shown and "&lt;y&gt;" in shown and "<y>" not in shown
    many = md.tree(md.Axis("v", 3000), md.Axis("f", {"u": 2, "p": 1}))._repr_html_()
    assert many.count("<polygon") < 1000 and "9000" in many
    assert md.tree(md.Axis("v", 0))._repr_html_() and md.tree()._repr_html_()


@pytest.mark.parametrize("seed", range(30))
def test_random_trees_are_shown(seed):
    tree, _ = random_tree(np.random.default_rng(seed), 1 + seed % 4)
    assert len(repr(tree).split("\n")) > len(tree.leaves) and tree._repr_html_().count("<svg") == (
        tree.size > 0
    )


def test_storage_beyond_32_bits():
    """Tables of 32 bits times constants may be larger."""
    tree = md.tree(md.Axis("A", 3), md.Axis("B", [400, 0, 800]), md.Axis("C", 3_000_000))
    assert tree.size == 3_600_000_000 and tree.index_dtype == np.int64
    assert tree.offset(None, {"A": 2, "B": 799, "C": 2_999_999}) == tree.size - 1
    indices = {"A": np.array([0, 2], np.int32), "B": np.array([399, 799]), "C": np.array([7, 2_999_999])}
    assert tree.offset(None, indices).tolist() == [399 * 3_000_000 + 7, tree.size - 1]


def test_axes_are_numbered_and_divided():
    axis = mesh().numbered(NUMBERING)
    assert axis == mesh(numbering=NUMBERING) and axis != mesh() and mesh().numbered(None) == mesh()
    divided = md.Axis("v", 3).divided({"owned": 2, "ghost": 1}).numbered([1, 0, 2])
    assert md.tree(divided).offsets().tolist() == [1, 0, 2] and divided.points().size == 3
    assert md.Axis("B", [1, 2]).divided({"a": [1, 1], "b": [0, 1]}).extents == md.Axis("B", [1, 2]).extents
    with pytest.raises(TypeError, match="looked up"):
        md.Axis(["a"], 3)


def test_trees_on_meshes():
    m = md.unit_square(1)
    tree = md.tree(m.axis, {"edge": md.Axis("dof", 2)})
    assert tree.size == 16 and values(tree, {"mesh": "vertex"}) == [12, 13, 14, 15]
    # X15: the closure of a cell leads to the same entries as in the lessons, whatever the numbering is.
    found = {p.component: t for p, t in m.closure("cell").targets.items()}
    edges = found["edge"].table[:, :, None]
    packed = tree.offset({"mesh": "edge"}, {"mesh": edges, "dof": np.arange(2)}).reshape(2, 6)
    assert packed.tolist() == [[6, 7, 4, 5, 2, 3], [10, 11, 6, 7, 8, 9]]
    x = md.wrap(tree, mb.arange(16.0))
    other = md.tree(m.axis.numbered(NUMBERING), {"edge": md.Axis("dof", 2)})
    again = other.offset({"mesh": "edge"}, {"mesh": edges, "dof": np.arange(2)}).reshape(2, 6)
    assert mb.to_numpy(x.arranged(other))[again].tolist() == packed.tolist()
