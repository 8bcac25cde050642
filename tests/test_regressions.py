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


# What NumPy answers or refuses, and how it is said here


@pytest.mark.parametrize("array", [mb.HostArray, mb.RefArray])
@pytest.mark.parametrize("name", ["nanargmax", "nanargmin"])
def test_nan_is_passed_over_among_complex_numbers(array, name):
    ours, numpys = getattr(mb, name), getattr(np, name)
    n = np.array([[1 + 1j, complex("nan"), 3], [complex(2, np.nan), 1 - 5j, 1 + 5j]])
    for axis in (None, 0, 1):
        assert_same(ours(array(n), axis=axis), np.asarray(numpys(n, axis=axis)))
    m = np.array([[1, np.nan], [3 + 1j, 2]])
    assert_same(ours(array(m)), np.asarray(numpys(m)))
    for nothing in (np.full(3, np.nan), np.full(3, complex("nan"))):
        with pytest.raises(ValueError, match=rf"All-NaN slice.*mb\.{name[3:]}\(mb\.where\(.*, x\)\)`\.$"):
            ours(array(nothing))
    with pytest.raises(ValueError, match=r"axis=1\)"):
        ours(array(m * np.nan), axis=1)


@shown
@size
def test_index_arrays_that_do_not_broadcast_are_an_index_error(kind, n):
    values = ordinary("f8", (n, n))
    x = kind.make(values)
    for i, j in (
        (np.array([0, 1]), np.array([0, 1, 2])),
        (np.zeros(n, int), np.arange(n - 1)),
        (np.arange(n) < 2, np.arange(n) < 3),
    ):
        index = kind.family(i), kind.family(j)
        with pytest.raises(IndexError, match=r"could not be broadcast together.*mb\.ix_\(rows, columns\)"):
            mb.materialize(x[index])
        with pytest.raises(IndexError, match="could not be broadcast together"):
            x[index] = 1.0
        if not kind.on_device:
            with pytest.raises(IndexError, match="could not be broadcast together"):
                x[i, j]
            with pytest.raises(IndexError, match="could not be broadcast together"):
                x[i, j] = np.ones(3)
    assert_same(x, values)


@plain
def test_the_rank_of_a_vector_is_one_or_zero(kind):
    for values in ([0.0, 2.0], [0.0, 0.0], [np.nan], [], 3.0, 0.0, [0, 1], [0j, 1j], [False]):
        n = np.array(values)
        assert_same(mb.linalg.matrix_rank(kind.make(n)), np.asarray(np.linalg.matrix_rank(n)))


@pytest.mark.parametrize(
    ("f", "error", "said"),
    [
        (lambda: mb.linspace(0, 1, mb.nan), TypeError, "linspace: num is an integer, not nan.*mb.isfinite"),
        (lambda: mb.linspace(mb.zeros(2), 1, 2.5), TypeError, r"linspace: num .*int\(2.5\)"),
        (lambda: mb.logspace(0, 1, 2.5), TypeError, r"logspace: num .*int\(2.5\)"),
        (lambda: mb.geomspace(1, 2, mb.nan), TypeError, "geomspace: num .*mb.isfinite"),
        (lambda: mb.eye(2.5), TypeError, r"eye: n_rows is an integer, not 2.5.*int\(2.5\)"),
        (lambda: mb.eye(2, np.float32(2.5)), TypeError, r"eye: n_cols .*round\(2.5\)"),
        (lambda: mb.eye(2, k=mb.inf), TypeError, "eye: k is an integer, not inf"),
        (lambda: mb.identity("3"), TypeError, "identity: n is an integer, not '3'"),
        (lambda: mb.ones(6).reshape(mb.nan), TypeError, "A shape is an integer.*not nan.*mb.isfinite"),
        (lambda: mb.ones(6).reshape(2.0, 3), TypeError, r"A shape is.*not \(2.0, 3\).*int\(2.0\)"),
        (lambda: mb.reshape(mb.ones(6), (2.5, 2)), TypeError, r"A shape is.*int\(2.5\)"),
        (lambda: mb.zeros(2.5), TypeError, r"A shape is.*not 2.5.*int\(2.5\)"),
        (lambda: mb.full((2, mb.nan), 1), TypeError, r"A shape is.*not \(2, nan\).*mb.isfinite"),
        (lambda: mb.arange(mb.nan), ValueError, "arange: stop is a finite number, not nan"),
        (lambda: mb.arange(0.0, 5.0, mb.nan), ValueError, "arange: step is a finite number"),
        (lambda: mb.arange(-mb.inf, 1), ValueError, "arange: start is a finite number"),
        (lambda: mb.arange(1e30), ValueError, r"arange: from 0 to 1e\+30 .*mb.linspace"),
    ],
)
def test_sizes_that_are_not_whole_are_refused_by_name(f, error, said):
    with pytest.raises(error, match=said) as caught:
        f()
    assert type(caught.value) is error


@pytest.mark.parametrize("array", [mb.HostArray, mb.RefArray])
def test_an_integer_that_no_dtype_holds(array):
    large = 2**70
    for f in (
        lambda: mb.asarray(large, device=array),
        lambda: mb.asarray([1, -large], device=array),
        lambda: mb.asarray([[large, 1.5]], device=array),
        lambda: mb.full(3, large, device=array),
        lambda: array([large]),
        lambda: array([10**5000]),
    ):
        with pytest.raises(TypeError, match=r"does not fit any integer dtype.*float\(.*dtype=mb.float64"):
            f()
    for f in (lambda: array([large], dtype=mb.int64), lambda: mb.asarray(300, dtype=mb.uint8, device=array)):
        with pytest.raises(OverflowError, match=r"A number does not fit u?int.*dtype=mb.float64"):
            f()
    assert_same(mb.full(2, large, dtype=mb.float64, device=array), np.full(2, 2.0**70))
    assert_same(mb.asarray([2**63], device=array), np.array([2**63], np.uint64))
    with pytest.raises(TypeError, match="Convert the objects to numbers"):
        array([large, "a", None])


@pytest.mark.parametrize("kept", [None, 0], ids=["pool", "no pool"])
def test_what_the_host_has_no_room_for_is_named_as_it_was_asked_for(kept):
    n = 10**7
    row = mb.broadcast_to(mb.zeros(1), (n, n))
    with mb.settings.changed(**({} if kept is None else {"pool_bytes": kept})):
        for f, shape, dtype, takes in (
            (lambda: mb.zeros((n, n)), f"({n}, {n})", "float64", "728 TiB"),
            (lambda: mb.empty((n, n), dtype=mb.float32), f"({n}, {n})", "float32", "364 TiB"),
            (lambda: mb.materialize(row + 1), f"({n}, {n})", "float64", "728 TiB"),
            (lambda: mb.dense(mb.Identity(10**8)), "(100000000, 100000000)", "float64", "71.1 PiB"),
            (lambda: mb.linspace(0, 1, n * n), f"({n * n},)", "float64", "728 TiB"),
            (lambda: mb.arange(n * n), f"({n * n},)", "int64", "728 TiB"),
        ):
            with pytest.raises(MemoryError) as caught:
                f()
            said = str(caught.value)
            assert isinstance(caught.value, mb.OutOfMemoryError)
            assert f"an array of shape {shape} and dtype {dtype}, which takes {takes}." in said
            assert "fewer elements" in said and "device=mb.DArray" in said
            assert ("dtype=mb.float32" in said) == (dtype == "float64")
        with pytest.raises(MemoryError, match=r"which takes 4\.26 PiB"):
            mb.tile(mb.zeros(6), 10**14)
        for size, takes in ((2**62, "32 EiB"), (2**70, "8 ZiB"), (10**400, "more than 1000 ZiB")):
            with pytest.raises(ValueError, match=f"shape .{size},. and dtype float64, which takes {takes}"):
                mb.ones(size)
        assert mb.ones((0, n)).shape == (0, n)


@plain
def test_vectors_orders_and_transforms_say_what_they_take(kind):
    x, m = kind.make(ordinary("f8", 6)), kind.make(ordinary("f8", (2, 3)))
    t, none = kind.make(ordinary("f8", (2, 2, 2))), kind.make(np.zeros((1, 0)))
    one = kind.make(np.ones(1))
    for f, said in (
        (lambda: mb.fft.fft(none), r"fft: a transform has at least one point.*\(1, 0\).*axis 1.*n=1"),
        (lambda: mb.fft.rfftn(none), r"rfftn: a transform has at least one point.*s=\(\.\.\.\)"),
        (lambda: mb.fft.irfft(one), r"irfft: .*1 point\(s\) for a result of 0"),
        (lambda: mb.fft.irfft2(kind.make(np.ones((2, 1)))), r"irfftn: .*a result of 0 along axis 1"),
        (lambda: mb.convolve(x, m), r"convolve takes two vectors, and v has shape \(2, 3\).*mb.ravel\(v\)"),
        (lambda: mb.correlate(m, x), r"correlate takes two vectors, and a has shape \(2, 3\).*mb.ravel\(a\)"),
        (lambda: mb.convolve(x, kind.make(np.zeros(0))), "convolve: v cannot be empty.*mb.zeros"),
        (lambda: mb.partition(x, 9), r"kth is 9, out of bounds for 6.*mb.partition\(x, 5\)"),
        (lambda: mb.partition(x, [1, -7]), "kth is -7, out of bounds for 6"),
        (lambda: mb.partition(m, 2, axis=0), r"kth is 2, out of bounds for 2"),
        (lambda: mb.argpartition(m, 6, axis=None), r"kth is 6.*mb.argpartition\(x, 5\)"),
        (lambda: mb.cov(t), r"m has more than 2 dimensions.*\(2, 2, 2\).*mb.reshape\(m, "),
        (lambda: mb.cov(m, t), r"y has more than 2 dimensions.*mb.reshape\(y, "),
    ):
        with pytest.raises(ValueError, match=said):
            f()
    assert mb.fft.fft(kind.make(np.zeros((0, 3)))).shape == (0, 3)
    assert_same(mb.fft.irfft(one, n=1), np.ones(1))
    assert_same(mb.partition(m, -3)[:, 0], mb.to_numpy(mb.min(m, axis=1)))
    assert mb.partition(mb.HostArray(np.zeros((3, 0))), 5).shape == (3, 0)
