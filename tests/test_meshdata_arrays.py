"""Arrays over axis trees on every kind of flat array; blocks, and parts by labels."""

import pickle

import numpy as np
import pytest

import mirabelle as mb
from mirabelle import meshdata as md
from tests.kinds import LEAVES
from tests.meshtrees import random_tree

MESH = md.Axis("mesh", {"cell": 2, "edge": 5, "vert": 4})
P3 = md.tree(MESH, {"edge": md.Axis("dof", 2)})
VECTOR = md.tree(P3, md.Axis("dim", 2))
NUMBERED = md.tree(
    md.Axis("mesh", {"cell": 2, "edge": 5, "vert": 4}, numbering=[1, 6, 4, 5, 8, 10, 9, 0, 3, 2, 7]),
    {"edge": md.Axis("dof", 2)},
)
KINDS = [
    LEAVES[name] for name in ("host", "ref", "cuda", "host_pending", "cuda_pending", "host_shared", "dist")
]


@pytest.fixture(params=KINDS, ids=repr)
def kind(request):
    return request.param


def over(tree, kind, seed=0, dtype=np.float64):
    values = np.random.default_rng(seed).integers(1, 50, tree.size).astype(dtype)
    return md.wrap(tree, kind.make(values)), values


def test_elementwise_operations_stay_over_the_tree(kind):
    x, a = over(P3, kind)
    y, b = over(P3, kind, 1)
    for made, expected in [
        (x + y * 2, a + b * 2),
        (mb.sin(x) / y, np.sin(a) / b),
        (mb.where(x > y, x, 0), np.where(a > b, a, 0)),
        (-x, -a),
        (x == y, a == b),
        (2**x, 2**a),
        (x * np.float64(3), a * 3),
        (mb.maximum(x, y), np.maximum(a, b)),
    ]:
        assert isinstance(made, md.TreeArray) and made.tree is P3 and made.family is kind.family
        np.testing.assert_allclose(mb.to_numpy(made), expected, rtol=1e-15)
    assert isinstance(x.astype(np.float32), md.TreeArray) and x.astype("f4").dtype == np.float32
    assert isinstance(mb.zeros_like(x), md.TreeArray) and isinstance(mb.copy(x), md.TreeArray)
    quotient, rest = mb.divmod(x, y)
    assert isinstance(quotient, md.TreeArray) and isinstance(rest, md.TreeArray)
    np.testing.assert_array_equal(mb.to_numpy(quotient * y + rest), a)


def test_operations_wait_and_fuse():
    x, y = md.full(P3, 2.0), md.full(P3, 3.0)
    with mb.settings.changed(immediate_size=0), mb.count() as counted:
        z = mb.sin(x) * y + x
        assert counted.launches == 0
        mb.materialize(z)
    assert counted.launches == 1
    with mb.settings.changed(immediate_size=0), mb.count() as counted:
        total = mb.sum(x * y).item()
    assert counted.launches == 1 and total == 6.0 * P3.size


def test_reductions_and_products_are_those_of_the_vector(kind):
    x, a = over(P3, kind)
    y, b = over(P3, kind, 1)
    assert mb.sum(x).item() == a.sum() and mb.max(x).item() == a.max()
    assert (x @ y).item() == a @ b and mb.linalg.norm(x).item() == pytest.approx(np.linalg.norm(a))
    assert mb.argmax(x).item() == a.argmax()
    matrix = kind.make(np.arange(float(P3.size**2)).reshape(P3.size, P3.size))
    np.testing.assert_allclose(mb.to_numpy(matrix @ x), np.arange(float(P3.size**2)).reshape(16, 16) @ a)


def test_a_plain_vector_gives_a_plain_vector(kind):
    x, a = over(P3, kind)
    plain = kind.make(a)
    for made in (x + plain, plain + x):
        assert not isinstance(made, md.TreeArray) and made.shape == (16,)
        np.testing.assert_array_equal(mb.to_numpy(made), a + a)
    if kind.takes_numpy:
        assert not isinstance(x + a, md.TreeArray)


def test_writes_go_to_the_flat_array(kind):
    x, a = over(P3, kind)
    y, b = over(P3, kind, 1)
    x[...] = y * 2
    np.testing.assert_array_equal(mb.to_numpy(x.parent), b * 2)
    held = x
    x += y
    x *= 2
    assert x is held
    np.testing.assert_array_equal(mb.to_numpy(held.parent), b * 6)
    x[...] = kind.make(a)
    x[2:4] = 0
    a[2:4] = 0
    np.testing.assert_array_equal(mb.to_numpy(x), a)
    x[:] = 1
    assert mb.sum(x).item() == 16
    z = y + 0
    x[...] = y
    x += x
    np.testing.assert_array_equal(mb.to_numpy(x), b * 2)
    np.testing.assert_array_equal(mb.to_numpy(z), b)


def test_memory_is_shared_with_what_it_was_made_of():
    n = np.arange(16.0)
    x = md.wrap(P3, mb.asarray(n))
    x += 1
    assert n[0] == 1 and np.shares_memory(np.asarray(md.wrap(P3, mb.asarray(n)).block({"mesh": "edge"})), n)
    flat = mb.zeros(16)
    x = md.wrap(P3, flat)
    x.block({"mesh": "vert"})[...] = 5
    assert mb.sum(flat).item() == 20


def test_pickled_copied_and_adapted(kind):
    x, a = over(NUMBERED, kind)
    again = pickle.loads(pickle.dumps(x))
    assert type(again) is type(x) and again.tree == NUMBERED
    np.testing.assert_array_equal(mb.to_numpy(again), a)
    if not kind.distributed:
        moved = mb.adapt(mb.RefArray, x)
        assert moved.family is mb.RefArray and moved.tree is NUMBERED
        np.testing.assert_array_equal(mb.to_numpy(moved), a)
        moved = mb.adapt(mb.HostArray[np.float32], x)
        assert isinstance(moved, md.TreeArray) and moved.dtype == np.float32


@pytest.mark.parametrize("array", [mb.HostArray, mb.RefArray, mb.CuArray, mb.DArray[mb.HostArray]])
def test_creation(array):
    for made, value in [(md.zeros, 0), (md.ones, 1), (lambda t, **more: md.full(t, 7, **more), 7)]:
        x = made(P3, array=array)
        assert x.family is array and x.tree is P3 and mb.to_numpy(x).tolist() == [value] * 16
        assert made(P3, dtype=np.int16, array=array).dtype == np.int16
    assert md.zeros(P3).dtype == np.float64 and md.zeros(P3).family is mb.HostArray
    assert md.zeros(md.tree()).shape == (1,) and md.zeros(md.tree(md.Axis("a", 0))).shape == (0,)


def test_derivatives(kind):
    if kind.family is mb.RefArray or kind.distributed:
        pytest.skip("the same rules, elsewhere")
    x, a = over(P3, kind)
    value, slope = mb.autodiff.jvp(lambda u: mb.sin(u) * u, (x,), (md.wrap(P3, kind.make(np.ones(16))),))
    assert isinstance(value, md.TreeArray) and isinstance(slope, md.TreeArray)
    np.testing.assert_allclose(mb.to_numpy(slope), np.cos(a) * a + np.sin(a))
    gradient = mb.autodiff.gradient(lambda u: mb.sum(u * u), x)
    np.testing.assert_allclose(mb.to_numpy(gradient), 2 * a)
    _, slope = mb.autodiff.jvp(
        lambda u: u.block({"mesh": "vert"}) * 2, (x,), (md.wrap(P3, kind.make(np.ones(16))),)
    )
    np.testing.assert_array_equal(mb.to_numpy(slope), [2.0] * 4)


def test_compiled_programs():
    @mb.compile
    def step(u, v):
        return u * 2 + mb.sin(v)

    x, y = md.full(P3, 2.0), md.full(P3, 3.0)
    for _ in range(3):
        made = step(x, y)
        np.testing.assert_allclose(mb.to_numpy(made), 4 + np.sin(3.0))


# Blocks


def _reference(x, path, tree):
    return mb.to_numpy(x)[tree.offsets(path)].reshape(tree.shape(path))


X5 = md.tree(
    md.Axis("mesh", {"edge": 5, "vert": 4}),
    {
        "edge": (md.Axis("field", {"u": 1}), md.Axis("dim", 2)),
        "vert": (md.Axis("field", {"u": 1, "p": 1}), {"u": md.Axis("dim", 2)}),
    },
)
SOA = md.tree(md.Axis("dim", 2), P3)
BACKWARDS = md.tree(md.Axis("a", 4, numbering=[3, 2, 1, 0]), md.Axis("b", {"x": 2, "y": 3}), md.Axis("c", 2))
GHOSTS = md.tree(md.Axis("v", regions={"owned": 3, "ghost": 2}), md.Axis("dim", 2))
EMPTY = md.tree(md.Axis("a", {"x": 0, "y": 2}), md.Axis("b", 3))


@pytest.mark.parametrize("tree", [P3, VECTOR, X5, SOA, BACKWARDS, GHOSTS, EMPTY], ids=list("pvxsbge"))
def test_blocks_are_views_where_the_layout_is_affine(kind, tree):
    x, _ = over(tree, kind)
    for leaf in tree.leaves:
        block = x.block(leaf)
        expected = _reference(x, leaf, tree)
        assert block.shape == expected.shape
        np.testing.assert_array_equal(mb.to_numpy(block), expected)
        if kind.writable and not kind.distributed:
            block[...] = block + 100.0
            np.testing.assert_array_equal(_reference(x, leaf, tree), expected + 100)


def test_blocks_of_tables_are_gathered(kind):
    x, a = over(NUMBERED, kind)
    for leaf in NUMBERED.leaves:
        np.testing.assert_array_equal(mb.to_numpy(x.block(leaf)), _reference(x, leaf, NUMBERED))
    edges = {"mesh": "edge"}
    x[edges] = 0
    a[NUMBERED.offsets(edges)] = 0
    np.testing.assert_array_equal(mb.to_numpy(x), a)


def test_blocks_of_parts():
    x, _ = over(VECTOR, LEAVES["host"])
    edge = _reference(x, {"mesh": "edge"}, VECTOR)
    found = x.block({"mesh": ("edge", slice(1, None, 2)), "dim": 1})
    np.testing.assert_array_equal(mb.to_numpy(found), edge[1::2, :, 1])
    found[...] = -1
    assert (_reference(x, {"mesh": "edge"}, VECTOR)[1::2, :, 1] == -1).all()
    np.testing.assert_array_equal(
        mb.to_numpy(x.block({"mesh": ("edge", [4, 0, 3])})), _reference(x, {"mesh": "edge"}, VECTOR)[[4, 0, 3]]
    )


# Parts by labels


def test_x13_slices_of_slices():
    tree = md.tree(md.Axis("a", 10), md.Axis("b", 3))
    x = md.wrap(tree, mb.arange(30))
    first = tree.select({"a": slice(None, None, 2), "b": slice(1, None)})
    assert mb.to_numpy(x[first]).tolist() == [1, 2, 7, 8, 13, 14, 19, 20, 25, 26]
    assert {k: str(e) for k, e in first.expressions().items()} == {"a": "2*a", "b": "b + 1"}
    second = first.select({"a": slice(1, None)})
    assert mb.to_numpy(x[second]).tolist() == [7, 8, 13, 14, 19, 20, 25, 26]
    assert str(second.expressions()["a"]) == "2*a + 2"
    third = second.select({"a": slice(None, None, 2), "b": 1})
    assert mb.to_numpy(x[third]).tolist() == [8, 20]
    assert {k: str(e) for k, e in third.expressions().items()} == {"a": "4*a + 2", "b": "2"}
    assert third.span == slice(8, 21, 12)
    # The same, of arrays.
    y = x[{"a": slice(None, None, 2), "b": slice(1, None)}][{"a": slice(1, None)}][
        {"a": slice(None, None, 2), "b": 1}
    ]
    assert mb.to_numpy(y).tolist() == [8, 20]


def test_x14_subsets_of_subsets():
    tree = md.tree(md.Axis("p", 5), md.Axis("dim", 3))
    x = md.wrap(tree, mb.arange(15))
    points = md.Points("p", None, 5)
    part = tree.select({"p": points.subset([1, 3, 4])}).select({"p": [2, 0]})
    assert mb.to_numpy(x[part]).tolist() == [12, 13, 14, 3, 4, 5]
    assert part.expressions()["p"] is not None and "[[" not in repr(part)
    many = md.tree(md.Axis("p", 100)).select({"p": np.arange(100)[::-1] ** 2 % 97})
    again = many.select({"p": [3, 50, 7, 7]}).select({"p": [2, 0, 1, 3]})
    expected = (np.arange(100)[::-1] ** 2 % 97)[[3, 50, 7, 7]][[2, 0, 1, 3]]
    assert again.positions.tolist() == expected.tolist()
    assert str(again.expressions()["p"]) == f"{expected.tolist()}[p]"
    sliced = many.select({"p": slice(1, 60, 7)}).select({"p": [1, 0, 5]})
    assert str(sliced.expressions()["p"]).count("[") == 2


def _part(values, axis, item):
    return (
        np.take(values, range(values.shape[axis])[item], axis)
        if not isinstance(item, list)
        else values.take(item, axis)
    )


@pytest.mark.parametrize("seed", range(60))
def test_random_parts_of_rectangles(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 6, 3))
    axes = [
        md.Axis("abc"[d], n, numbering=rng.permutation(n) if rng.random() < 0.3 else None)
        for d, n in enumerate(shape)
    ]
    tree = md.tree(*axes)
    x = md.wrap(tree, mb.arange(float(tree.size)))
    expected, labels, part = tree.offsets().reshape(shape), list("abc"), None
    for _ in range(3):
        index, done = {}, 0
        for d, label in enumerate(list(labels)):
            n = expected.shape[d - done]
            choice = rng.integers(5)
            if choice == 0 and n:
                index[label] = i = int(rng.integers(-n, n))
                expected = expected.take(i, d - done)
                labels.remove(label)
                done += 1
            elif choice == 1 and n:
                index[label] = i = rng.integers(-n, n, rng.integers(0, 5)).tolist()
                expected = expected.take(np.array(i, int), d - done)
            elif choice == 2:
                start, stop = rng.integers(-6, 7, 2).tolist()
                index[label] = s = slice(start, stop, int(rng.choice([-2, -1, 1, 2, 3])))
                expected = np.moveaxis(np.moveaxis(expected, d - done, 0)[s], 0, d - done)
            elif choice == 3 and n:
                mask = rng.random(n) < 0.6
                index[label] = mask
                expected = np.compress(mask, expected, d - done)
        part = tree.select(index) if part is None else part.select(index)
        x = x[index] if isinstance(x, md.TreeArray) else x
        assert part.positions.tolist() == expected.ravel().tolist()
        np.testing.assert_array_equal(mb.to_numpy(x).reshape(-1), expected.ravel())
        if not labels:
            break


@pytest.mark.parametrize("seed", range(40))
def test_random_parts_of_random_trees(seed):
    rng = np.random.default_rng(seed)
    tree, entries = random_tree(rng, 3)
    labels = list(dict.fromkeys(label for leaf in tree.leaves for label in leaf))
    label = labels[rng.integers(len(labels))]
    start, step = int(rng.integers(0, 3)), int(rng.choice([1, 2, -1]))
    item = slice(start, None, step) if step > 0 else slice(None, None, -1)
    part = tree.select({label: item})
    expected = {}
    for offset, (path, indices) in enumerate(entries):
        expected.setdefault(path, []).append((tuple(indices.items()), offset))
    for leaf in part.axes.leaves:
        path = tuple(leaf.items())
        domain = part.axes.domain(leaf)
        at = {tuple(i for _, i in key): offset for key, offset in expected.get(path, [])}
        columns = [part_index(part, leaf, name, domain) for name in leaf]
        found = [at.get(i) for i in zip(*columns, strict=True)]
        assert found == part.positions[part.axes.offsets(leaf)].tolist()
    kept = [o for o, (path, i) in enumerate(entries) if label not in i or _kept(tree, path, i, label, item)]
    assert sorted(part.positions.tolist()) == kept


def part_index(part, leaf, name, domain):
    from mirabelle.arraytypes.meshdata.expressions import evaluate

    values = evaluate(part.expressions(leaf)[name], domain.indices)
    return np.broadcast_to(values, (domain.size,)).tolist()


def _kept(tree, path, indices, label, item):
    from mirabelle.arraytypes.meshdata.expressions import evaluate

    n = int(evaluate(tree.extent(dict(path), label), indices))
    return indices[label] in range(n)[item]


def test_components_and_regions():
    x, a = over(VECTOR, LEAVES["host"])
    edges = x[{"mesh": "edge"}]
    assert edges.tree == md.tree(md.Axis("mesh", {"edge": 5}), md.Axis("dof", 2), md.Axis("dim", 2))
    assert VECTOR.select({"mesh": "edge"}).span == slice(4, 24, 1)
    edges[...] = 0  # a contiguous part is a view
    assert mb.sum(x).item() == a.sum() - a[4:24].sum()
    assert x[{"mesh": MESH.points("vert").subset([1])}].shape == (2,)
    assert x[{"mesh": ("cell", 1), "dim": 0}].shape == ()
    ghosts = md.tree(md.Axis("f", {"u": 1, "p": 1}), md.Axis("v", regions={"owned": 3, "ghost": 2}))
    y = md.wrap(ghosts, mb.arange(10))
    assert mb.to_numpy(y[{"v": md.Region("ghost")}]).tolist() == [6, 7, 8, 9]
    assert mb.to_numpy(y[{"f": "p", "v": md.Region("owned")}]).tolist() == [3, 4, 5]
    assert mb.to_numpy(y[ghosts.region("owned")]).tolist() == list(range(6))
    assert ghosts.select({"v": md.Region("owned")}).select({"v": [2]}).positions.tolist() == [2, 5]
    y[{"v": md.Region("ghost")}] = 0
    assert mb.sum(y).item() == 15


def test_parts_on_every_place(kind):
    x, a = over(NUMBERED, kind)
    part = NUMBERED.select({"mesh": ("edge", [3, 0, 0]), "dof": 1})
    np.testing.assert_array_equal(mb.to_numpy(x[part] * 2), a[part.positions] * 2)
    assert isinstance(x[part], md.TreeArray) and x[part].family is kind.family
    part = NUMBERED.select({"mesh": "vert"})
    x[part] = x[part] + 1
    a[part.positions] += 1
    np.testing.assert_array_equal(mb.to_numpy(x), a)
    x[part] = 3.0
    a[part.positions] = 3
    np.testing.assert_array_equal(mb.to_numpy(x), a)


def test_arrangements_between_equal_leaves(kind):
    one, dim = md.Axis("one", 1), md.Axis("dim", 2)
    u = md.tree(md.Axis("mesh", {"edge": 5, "vert": 4}), one, dim)
    concatenated = md.tree(
        md.Axis("field", {"u": 1, "p": 1}), {"u": u, "p": (md.Axis("mesh", {"vert": 4}), one)}
    )
    x, a = over(X5, kind)
    y = x.arranged(concatenated)
    assert y.tree is concatenated
    v = {"mesh": "vert", "field": "u"}
    np.testing.assert_array_equal(mb.to_numpy(y.block(v)).reshape(4, 2), mb.to_numpy(x.block(v)).reshape(4, 2))
    back = y.arranged(X5)
    np.testing.assert_array_equal(mb.to_numpy(back), a)
    assert isinstance(x + back, md.TreeArray)
    z, _ = over(P3, kind)
    np.testing.assert_array_equal(mb.to_numpy(z.arranged(NUMBERED).arranged(P3)), mb.to_numpy(z))


def _bad(error, words, make):
    with pytest.raises(error, match=words) as caught:
        make()
    assert str(caught.value).rstrip("'\"").endswith(".") and len(str(caught.value)) > 40


def test_what_is_refused_is_said_in_a_sentence():
    x = md.ones(P3)
    _bad(ValueError, "different trees", lambda: x + md.ones(NUMBERED))
    _bad(ValueError, "another tree", lambda: x.__setitem__(..., md.ones(NUMBERED)))
    _bad(ValueError, "16 entries", lambda: md.wrap(P3, mb.ones(15)))
    _bad(ValueError, "16 entries", lambda: md.wrap(P3, mb.ones((16, 1))))
    _bad(TypeError, "takes a tree", lambda: md.wrap(mb.ones(16), P3))
    _bad(KeyError, "no axis 'dim'", lambda: x[{"dim": 0}])
    _bad(KeyError, "say of which", lambda: x[{"mesh": 0}])
    _bad(KeyError, "no component 'face'", lambda: x[{"mesh": "face"}])
    _bad(IndexError, "index 5 is out of range", lambda: x[{"mesh": ("edge", 5)}])
    _bad(IndexError, "index 7 is out of range", lambda: x[{"mesh": ("edge", [0, 7])}])
    _bad(TypeError, "indexed by an integer", lambda: x[{"mesh": ("edge", [0.5])}])
    _bad(TypeError, "indexed by an integer", lambda: x[{"mesh": ("edge", np.array([True]))}])
    _bad(KeyError, "no region 'ghost'", lambda: x[{"mesh": ("edge", md.Region("ghost"))}])
    _bad(KeyError, "say which", lambda: x.block())
    _bad(ValueError, "another tree", lambda: x[NUMBERED.select({"mesh": "edge"})])
    _bad(ValueError, "another tree", lambda: x.__setitem__({"mesh": "edge"}, md.ones(P3)))
    _bad(ValueError, "the same leaves|as many", lambda: x.arranged(VECTOR))
    ragged = md.zeros(md.tree(md.Axis("A", 2), md.Axis("B", [1, 2])))
    _bad(ValueError, "no rectangle", lambda: ragged.block())
    _bad(TypeError, "varies in extent", lambda: ragged[{"B": [0]}])
    _bad(IndexError, "out of range", lambda: ragged[{"B": 1}])
    assert mb.to_numpy(ragged[{"A": 1}]).shape == (2,) and ragged[{"B": 0}].tree == md.tree(md.Axis("A", 2))


def test_cards_show_the_storage_and_the_first_values():
    shown = md.wrap(P3, mb.arange(16.0))._repr_html_()
    assert shown.count("<polygon") == 16 and "edge / dof" in shown and "[2. 3. 4. 5. 6. 7. ...]" in shown
    assert md.wrap(P3, mb.DArray[mb.HostArray](np.arange(16.0)))._repr_html_()
    large = md.ones(md.tree(md.Axis("a", 30_000))) + 1
    assert "pending" in large._repr_html_()
