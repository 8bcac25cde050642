"""What once went wrong, found by random programs and by reading: it stays right."""

import numpy as np
import pytest
from compare import assert_same
from kinds import PLAIN, wrapped
from samples import ordinary

import mirabelle as mb

plain = pytest.mark.parametrize("kind", PLAIN, ids=repr)
shown = pytest.mark.parametrize(
    "kind",
    [*PLAIN, *(wrapped(k, layer) for k in PLAIN for layer in ("transpose", "steps", "picked"))],
    ids=repr,
)
size = pytest.mark.parametrize("n", [8, 600], ids=["small", "large"])


@pytest.fixture
def ordinary_way():
    """As for arrays too large for the shorter way of small ones."""
    with mb.settings.changed(small_size=0):
        yield


# A write in place, and values that somebody still holds


@shown
@size
def test_a_value_written_to_an_array_is_kept_when_the_array_changes(kind, n, ordinary_way):
    values = ordinary("f8", n)
    x = kind.make(values)
    y = x * 3
    x[...] = y  # they share memory now
    x -= y
    assert_same(y, values * 3)
    assert_same(x, np.zeros(n), any_zero=True)
    z = x + 1
    x[...] = z
    z[::-1] = x * 2 + np.float64(1)
    assert_same(x, np.ones(n))


@shown
@size
def test_a_tree_under_a_reduction_is_kept_when_what_it_reads_changes(kind, n, ordinary_way):
    values = ordinary("f8", n)
    for write in ("x -= largest", "x[...] = x - largest", "x[1:3] = x[1:3] - largest"):
        x = kind.make(values)
        t = x * 2
        largest = mb.max(t)
        expected = {"x": values.copy(), "largest": np.max(values * 2)}
        exec(write, {"x": x, "largest": largest})
        exec(write, expected)
        assert_same(t, values * 2)
        assert_same(x, expected["x"])


@plain
def test_a_value_read_through_two_names_is_kept(kind, ordinary_way):
    values = ordinary("i4", 4)
    y = mb.minimum(-kind.make(values), kind.make(values))
    z = y.copy()
    mb.materialize(y * z)
    mb.materialize(y)
    w = mb.maximum(z, 1) * y
    y *= 0
    n = np.minimum(-values, values)
    assert_same(w, np.maximum(n, 1) * n)
    assert_same(y, n * 0)


@plain
def test_a_row_is_written_to_all_rows_while_a_name_holds_a_part_of_its_tree(kind, ordinary_way):
    values = ordinary("f4", (4, 4))
    x = kind.make(values)
    for k in range(1, 4):
        row = x[..., k - 1] * 2 + x[..., k]
        x[..., k] = row - x[..., k]
    n = values.copy()
    for k in range(1, 4):
        expected = n[..., k - 1] * 2 + n[..., k]
        n[..., k] = expected - n[..., k]
    x[:] = mb.maximum(row, 3) * 2
    n[:] = np.maximum(expected, 3) * 2
    assert_same(x, n)
    assert_same(row, expected)


# Gathers


@plain
def test_a_part_of_a_pending_gather_is_a_gather(kind, way):
    values = ordinary("f8", (4, 4))
    x = mb.materialize(kind.make(values))
    picked = x[kind.family(np.array([2, 0, 2]))]
    assert_same(picked[1] + x[1] * picked[0], values[0] + values[1] * values[2])
    row = picked[1]
    x[0] = 0.0
    assert_same(row, values[0])


@plain
def test_a_mask_without_dimensions_beside_what_it_masks(kind):
    values = ordinary("f8", 4, 3)
    x = mb.materialize(kind.make(values))
    for chosen in (True, False):
        picked = x[kind.family(np.array(chosen))]
        assert_same(mb.maximum(picked + 0, x), np.maximum(values[np.array(chosen)] + 0, values))


@plain
def test_a_gather_of_no_elements_in_a_larger_tree(kind):
    x = kind.make(ordinary("?", 4))
    n = ordinary("?", 4)
    nothing = x[kind.family(np.array(False))]
    assert_same((nothing < x) + 0, (n[np.array(False)] < n) + 0)


# Trees without arrays, and results without dimensions


def test_trees_of_numbers_alone(ordinary_way):
    x = mb.HostArray(ordinary("f8", (1, 1)))
    x[:] = 0
    x += mb.sin(mb.sin(x) + 1)
    assert_same(x, np.sin(np.sin(np.zeros((1, 1))) + 1))
    y = mb.HostArray(ordinary("f8", (2, 3)))
    y[:] = 1
    assert_same(mb.max(mb.minimum(mb.maximum(y, 3), 0.5), axis=0), np.full(3, 0.5))
    v = mb.materialize(mb.HostArray([1.0, 2.0, 3.0]))
    z = v * 0.5
    w = v - z * 0.5
    v[1] = w[0]
    assert_same(v, [1.0, 0.75, 3.0])


@plain
@pytest.mark.parametrize("n", [4, 5000])
def test_an_array_filled_with_a_number_has_its_dtype(kind, n):
    if kind.on_device:
        n = 4
    for dtype, number, other in [("i8", 100, "i1"), ("f8", 0.1, "f4"), ("f4", 0.1, "f4"), ("u1", 200, "u1")]:
        x = kind.make(np.zeros(n, dtype)) * 1  # pending: the handle takes a tree of a number
        x[...] = number
        mine, numpys = np.full(n, number, dtype), np.full(n, 99 if dtype != "f8" else 0.3, other)
        assert_same(x + kind.make(numpys), mine + numpys)
        assert_same(x * x, mine * mine)
        if dtype[0] == "f":
            assert_same(mb.sin(x), np.sin(mine))


# Operands that are lists and numbers


@plain
def test_lists_and_numbers_are_operands(kind):
    x, numbers, more = kind.make(np.array([1.0, 2.0])), [1, 2], [1, 2, 3]
    for mine, numpys in [
        (x + numbers, [2.0, 4.0]),
        (numbers * x, [1.0, 4.0]),
        (x == [1, 5], [True, False]),
        (mb.maximum(x, (0, 9)), [1.0, 9.0]),
        (mb.where([True, False], x, [5, 6]), [1.0, 6.0]),
        (x @ [1, 2], 5.0),
        (mb.dot(x, 2), [2.0, 4.0]),
        (mb.sum([x, x], axis=0), [2.0, 4.0]),
    ]:
        assert type(mine).family is kind.family
        assert_same(mine, numpys)
    assert_same(mb.sum([1, 2]), 3)
    assert_same(mb.max(np.float32(2)), np.float32(2))
    assert_same(mb.sqrt([4.0]), [2.0])
    assert_same(mb.broadcast_to(1.0, (2,)), [1.0, 1.0])
    with pytest.raises(ValueError, match="broadcast"):
        x + more
    with pytest.raises(ValueError, match="at least one dimension"):
        x @ 2
    with pytest.raises(ValueError, match="either both or neither"):
        mb.where(x > 0, x)


def test_a_list_of_arrays_is_where_they_are():
    arrays = [mb.HostArray([1.0]), mb.HostArray([2.0])]
    assert_same(mb.HostArray([1.0]) + arrays, [[2.0], [3.0]])
    with pytest.raises(mb.PlaceError, match="adapt"):
        mb.RefArray([1.0]) + arrays


# Numbers that are no integers


@plain
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1e300, np.float64(np.nan), np.float32(np.inf)])
def test_what_is_no_integer_is_not_written_to_integers(kind, number):
    n = np.array([1, 2])
    x = kind.make(n)
    for index in (0, ..., [0, 1], kind.family(n) > 1):
        with pytest.raises((ValueError, OverflowError), match="cannot convert float"), mb.allow_scalar():
            x[index] = number
    assert_same(x, n)


@plain
def test_shapes_are_integers(kind):
    x = kind.make(np.arange(4.0))
    for shape in ((2.0, 2), "22", 4.0):
        with pytest.raises(TypeError):
            mb.reshape(x, shape)


@plain
def test_what_is_no_number_is_not_written(kind):
    x = kind.make(np.arange(4.0))
    with pytest.raises(TypeError, match="An assignment takes arrays and numbers"):
        x[...] = "a"


# Wrappers in loops


@plain
def test_parts_of_parts_do_not_nest_without_end(kind):
    n = np.arange(1200.0).reshape(30, 40)
    x, m = kind.make(n.copy()), n.copy()
    y, p = x, m
    for k in range(12):
        y, p = y[1:, ::-1].T[:, None, 1:][:, 0], p[1:, ::-1].T[:, None, 1:][:, 0]
        if k % 3 == 0:
            y, p = mb.rot90(y), np.rot90(p)
        assert y.shape == p.shape
    assert_same(y, p)
    depth, z = 0, y
    while mb.parent(z) is not z:
        depth, z = depth + 1, mb.parent(z)
    assert depth <= 2
    y[1:, ::2] = -y[1:, ::2]
    p[1:, ::2] = -p[1:, ::2]
    assert_same(x, m)


def test_a_new_dimension_without_elements_stays_a_part_of_a_part():
    x = mb.HostArray(np.arange(6.0).reshape(2, 3))
    assert_same(x[:, None][:, 1:], np.arange(6.0).reshape(2, 3)[:, None][:, 1:])
    assert_same(x[None].T[..., 1:][::-1], np.arange(6.0).reshape(2, 3)[None].T[..., 1:][::-1])


@pytest.mark.parametrize("array", [mb.HostArray, mb.RefArray])
def test_a_long_chain_of_reductions_nobody_reads(array):
    x, s, expected = array([0.5, 0.4]), array([1.0, 1.0])[0], 1.0
    for _ in range(300):
        s = mb.sum(x * s) * 1.1
        expected = expected * 0.9 * 1.1
    np.testing.assert_allclose(float(s), expected, rtol=1e-10)


def test_ddof_is_numpys_name_of_correction():
    n = np.arange(6.0).reshape(2, 3)
    assert float(mb.var(mb.HostArray(n), ddof=1)) == np.var(n, ddof=1)
    assert float(mb.std(mb.HostArray(n), ddof=1)) == np.std(n, ddof=1)
    K = mb.Kronecker([[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(float(mb.var(K, ddof=1)), np.var(mb.to_numpy(mb.dense(K)), ddof=1))


def test_a_grid_of_indices_is_read_where_it_is_used():
    """Not gathered at once, thrown away because it is large, and gathered again."""
    n = np.arange(16.0).reshape(4, 4)
    x, places = mb.HostArray(n), np.arange(4096) % 4
    i, j = mb.HostArray(places[:, None]), mb.HostArray(places[None, :])
    y = x[i, j]
    assert not y.evaluated
    assert float(mb.sum(y)) == np.sum(n[places[:, None], places[None, :]])
    assert x[mb.HostArray(places)].evaluated  # few elements are NumPy's to pick, as ever


@pytest.mark.parametrize(
    ("shape", "index"),
    [
        ((4, 4), ([0, 3, 1], Ellipsis)),
        ((4, 4), (Ellipsis, [0, 3])),
        ((4, 4), (slice(1, 3), [2, 0])),
        ((4, 4), (None, [1, 1])),
        ((4, 4), (2, [1, 3])),
        ((2, 2, 4), ([[True, False], [False, True]], [0, 2])),
        ((2, 2, 4), ([True, False], [False, True], [3])),
        ((2, 2, 4), (slice(None), [True, True], slice(1, 3))),
    ],
    ids=repr,
)
def test_a_small_read_is_numpys_whatever_stands_beside_its_arrays(shape, index):
    n = np.arange(16.0).reshape(shape)
    index = tuple(np.array(i) if isinstance(i, list) else i for i in index)
    ours = tuple(mb.HostArray(i) if isinstance(i, np.ndarray) else i for i in index)
    assert_same(mb.HostArray(n)[ours], n[index])
