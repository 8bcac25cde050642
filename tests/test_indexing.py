"""Indexing with masks, integer arrays and lists: reads are fused gathers, writes are scatters."""

import math
import random

import numpy as np
import pytest
from compare import assert_closed, assert_same, contents, outcome
from hypothesis import given
from hypothesis import strategies as st
from kinds import LEAVES, PLAIN, SINGLE
from samples import DTYPES, ids, ordinary

import mirabelle as mb
from mirabelle.arraytypes.wrappers import _composed

single = pytest.mark.parametrize("kind", [k for k in SINGLE if "stretched" not in k.wrappers], ids=repr)
leaves = pytest.mark.parametrize("kind", LEAVES.values(), ids=repr)
plain = pytest.mark.parametrize("kind", PLAIN, ids=repr)

N = np.arange(60.0).reshape(3, 4, 5)
MASK = N % 7 > 3
INDICES = {
    "list": ([2, 0, 2],),
    "negative": ([-1, 0, -3],),
    "middle": (slice(None), [3, 0, 0]),
    "last": (..., [1, -1]),
    "two": ([0, 2], [1, 3]),
    "three": ([0, 2], [1, 3], [4, -5]),
    "stretched": ([[0], [2]], [1, 3, 0]),
    "apart": ([0, 2], slice(None), [1, 3]),
    "integer first": (1, slice(None), [0, 4]),
    "integer beside": (slice(None), 2, [0, 4, 1]),
    "with slices": (slice(None, None, -1), [2, 1], slice(1, None, 2)),
    "new axis": (slice(None), None, [3, 0]),
    "axis between": ([1], None, [0, 2]),
    "two-dimensional": (slice(None), [[0, 1], [2, 3]]),
    "mask": (MASK,),
    "mask of rows": (np.array([True, False, True]),),
    "mask of two": (MASK[:, :, 0],),
    "mask behind": (slice(None), MASK[0]),
    "mask and list": (np.array([True, False, True]), [0, 3]),
    "mask list": ([True, False, True],),
    "true": (True,),
    "false": (False,),
    "empty": ([],),
    "empty mask": (np.zeros(3, bool),),
    "small dtype": (np.array([2, 1], np.int8),),
    "unsigned": (np.array([2, 1], np.uint64),),
}
index = pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)


def placed(kind, i):
    """NumPy's arrays of an index as arrays of the kind's place."""
    return tuple(kind.family(e) if isinstance(e, np.ndarray) else e for e in i)


@leaves
@index
def test_reads_are_numpys(kind, index):
    x = kind.make(N)
    result = x[placed(kind, index)]
    assert_closed(result, kind)
    assert_same(result, N[index])
    assert_same(x[placed(kind, index)] * 2 + 1, N[index] * 2 + 1)


@single
@pytest.mark.parametrize("name", ["negative", "apart", "mask", "stretched", "mask behind"])
def test_reads_through_wrappers(kind, name):
    index = INDICES[name]
    x = kind.make(N)
    assert_same(x[placed(kind, index)] + 1, kind.sample(N)[index] + 1)


@leaves
@index
def test_writes_are_numpys(kind, index):
    x, n = kind.make(N), N.copy()
    i = placed(kind, index)
    x[i] = -1.0
    n[index] = -1.0
    assert_same(x, n)
    values = np.arange(N[index].size, dtype=float).reshape(N[index].shape)
    x[i] = kind.family(values) * 2
    n[index] = values * 2
    assert_same(x, n)
    x[i] += 3
    n[index] += 3
    assert_same(x, n)


@single
@pytest.mark.parametrize("name", ["negative", "apart", "mask", "stretched", "mask behind"])
def test_writes_through_wrappers(kind, name):
    if not kind.writable:
        pytest.skip("shows elements in several places")
    index = INDICES[name]
    x, n = kind.make(N), kind.sample(N)
    x[placed(kind, index)] = 7
    n[index] = 7
    assert_same(x, n)


@plain
@pytest.mark.parametrize("dtype", DTYPES, ids=ids(DTYPES))
def test_every_dtype(kind, dtype, way):
    n = ordinary(dtype, (50, 40))
    rows = np.random.default_rng(0).integers(-50, 50, 33)
    x, i = kind.make(n), kind.family(rows)
    assert_same(x[i], n[rows])
    assert_same(x[:, i % 40], n[:, rows % 40])
    mask = np.random.default_rng(1).random((50, 40)) > 0.5
    assert_same(x[kind.family(mask)], n[mask])
    x[i], n[rows] = n[0, 0], n[0, 0]
    assert_same(x, n)


@plain
def test_gathers_fuse(kind, way, many):
    n = np.random.default_rng(0).random((200, 30))
    rows = np.random.default_rng(1).integers(0, 200, 500)
    x, i = mb.materialize(kind.make(n)), mb.materialize(kind.family(rows))
    with mb.count():
        mb.materialize(x[i])  # the bounds of an index array are found once
    with mb.count() as c:
        result = mb.materialize(x[i] * 2 + x[i, ::-1])
    assert not kind.counted or (
        c.launches,
        c.temporaries,
        c.library_calls,
        c.scalar_reads,
        c.transfers,
    ) == (1, 0, 0, 0, 0)
    assert_same(result, n[rows] * 2 + n[rows, ::-1])
    with mb.count() as c:
        total = mb.materialize(mb.sum(x[i] * x[i], axis=1))
    assert not kind.counted or (c.launches, c.temporaries, c.library_calls) == (1, 0, 0)
    assert_same(total, np.sum(n[rows] * n[rows], axis=1), rtol=1e-13)


@plain
def test_stencils_are_one_kernel(kind, way, many):
    n = np.random.default_rng(0).random((20, 30))
    x, y = mb.materialize(kind.make(n)), mb.materialize(kind.make(n))
    with mb.count() as c:
        y[1:-1, 1:-1] = (x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1]) * 0.25
    assert not kind.counted or (c.launches, c.temporaries) == (1, 0)
    expected = n.copy()
    expected[1:-1, 1:-1] = (n[1:-1, :-2] + n[1:-1, 2:] + n[:-2, 1:-1] + n[2:, 1:-1]) * 0.25
    assert_same(y, expected)


@plain
def test_a_mask_written_with_one_value_is_one_kernel_in_place(kind, many):
    x = mb.materialize(kind.make(N))
    leaf = id(x._node)  # (holding it would make this test a reader)
    mask = mb.materialize(kind.family(MASK))
    with mb.count() as c:
        x[mask] = 0.5
    assert not kind.counted or (c.launches, c.temporaries, c.library_calls) == (1, 0, 0)
    assert id(x._node) == leaf
    assert_same(x, np.where(MASK, 0.5, N))


@leaves
def test_a_write_never_changes_what_was_said(kind):
    x = kind.make(N)
    i, mask = kind.family(np.array([0, 2])), kind.family(MASK)
    before, picked, some = x + 1, x[i] * 1, x[mask] * 1
    x[i] = 0.0
    x[mask] = 5.0
    mb.add_at(x, i, 1.0)
    assert_same(before, N + 1)
    assert_same(picked, N[[0, 2]])
    assert_same(some, N[MASK])
    # And an index that changes is asked again.
    with mb.allow_scalar():
        i[0] = 1
    n = mb.to_numpy(x)
    assert_same(x[i], n[[1, 2]])
    mask[...] = False
    assert x[mask].shape == (0,)


@leaves
def test_assignments_that_overlap(kind):
    x, n = kind.make(N), N.copy()
    x[[0, 1, 2]], n[[0, 1, 2]] = x[::-1], N[::-1]
    assert_same(x, n)
    for target, source in ((slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None))):
        x[target] = x[source]
        n[target] = n[source].copy()
        assert_same(x, n)
        x[:, target] = x[:, source] * 2
        n[:, target] = n[:, source] * 2
        assert_same(x, n)
    x[0] = x[1] + x[2]
    n[0] = n[1] + n[2]
    assert_same(x, n)


@plain
def test_a_row_is_written_in_place(kind, many):
    x = mb.materialize(kind.make(N))
    leaf = id(x._node)  # (holding it would make this test a reader)
    with mb.count() as c:
        x[0] = x[1] + x[2]
        x[1] += x[1]
    assert id(x._node) == leaf
    assert not kind.counted or (c.launches, c.temporaries) == (2, 0)


@leaves
def test_bounds_are_checked_before_anything_is_written(kind):
    x = kind.make(N)
    for bad in (([3],), ([0, -4],), (slice(None), [0, 4]), ([0], [0], [5])):
        with pytest.raises(IndexError, match="out of bounds for axis"):
            x[bad]
        with pytest.raises(IndexError, match="out of bounds for axis"):
            x[bad] = 1.0
    with pytest.raises(IndexError, match="boolean index did not match"):
        x[kind.family(np.zeros((3, 5), bool))]
    with pytest.raises(IndexError, match="too many indices"):
        x[[0], [0], [0], [0]]
    with pytest.raises(IndexError, match="integer"):
        x[kind.family(np.array([0.0]))]
    with pytest.raises(ValueError, match="shape mismatch"):
        x[[0, 1]] = kind.family(np.ones((3, 4, 5)))
    with pytest.raises(IndexError):
        x[[0, 1], [0, 1, 2]]
    assert_same(x, N)


def test_an_index_of_another_place_is_refused():
    x = mb.RefArray(N)
    with pytest.raises(mb.PlaceError, match="adapt"):
        x[mb.HostArray([0])]
    with mb.allow_transfer():
        assert_same(x[mb.HostArray([0])], N[[0]])


def test_an_index_of_numpy_is_sent_like_a_list():
    x = mb.RefArray(N)
    for i in (np.array([1, -1]), [1, -1], N[:, 0, 0] > 5):
        with mb.count() as c:
            y = mb.materialize(x[i])
        assert isinstance(y, mb.RefArray) and (c.transfers, c.scalar_reads) == (1, 0)
        assert_same(y, N[i])
        n = N.copy()
        x[i], n[i] = 7, 7
        assert_same(x, n)
        x = mb.RefArray(N)
    with pytest.raises(IndexError, match="out of bounds"):
        x[np.array([N.shape[0]])]
    with pytest.raises(IndexError, match="integer"):
        x[np.array([0.0])]


def some_index(dice, shape):
    """An index with arrays, of which many select nothing; not every one is valid."""
    made = []
    for n in shape:
        if dice.random() < 0.15:
            made.append(None)
        kind = dice.choice(["array", "array", "array", "list", "none", "integer", "slice", "mask"])
        entries = [dice.choice([0, 0, 1, -1, 5]) for _ in range(dice.choice([0, 0, 1, 2]))]
        made.append(
            {
                "array": np.array(entries, dice.choice(["i8", "i4"])).reshape(dice.choice([(-1,), (-1, 1)])),
                "list": entries,
                "none": [],
                "integer": dice.choice([0, 1, -1, 7]),
                "slice": dice.choice([slice(None), slice(1, None), slice(0, 0)]),
                "mask": np.array([dice.random() < 0.4 for _ in range(n)], bool),
            }[kind]
        )
    return (*made[: dice.randint(1, len(made))], [] if dice.random() < 0.1 else ...)


@leaves
def test_an_index_that_selects_nothing_is_not_looked_at(kind):
    dice = random.Random(5)
    for _ in range(80):
        shape = tuple(dice.choice([0, 0, 1, 2, 3]) for _ in range(dice.randint(1, 3)))
        n = np.arange(float(np.prod(shape))).reshape(shape)
        i = some_index(dice, shape)
        given = placed(kind, i) if dice.random() < 0.5 or not kind.takes_numpy else i
        (expected, refused), written = outcome(lambda n=n, i=i: n[i]), n.copy()
        _, not_written = outcome(lambda w=written, i=i: w.__setitem__(i, -1.0))
        x = kind.make(n)
        found, error = outcome(lambda x=x, i=given: contents(x[i]))
        assert error is refused, (shape, i)
        if refused is None:
            assert_same(found, expected)
        if kind.writable:
            _, error = outcome(lambda x=x, i=given: x.__setitem__(i, -1.0))
            assert error is not_written, (shape, i)
            assert_same(x, written)


MASKED = {
    "compress": lambda xp, x, m: xp.compress(m, x, axis=0),
    "compress a short one": lambda xp, x, m: xp.compress(m[:3], x, axis=1),
    "extract": lambda xp, x, m: xp.extract(m[:, None] & (np.arange(5) > 1), x),
    "where": lambda xp, x, m: xp.where(m[:, None], x, 0.0),
    "select": lambda xp, x, m: xp.select([m[:, None] & np.ones(5, bool)], [x], -1.0),
    "select beside ours": lambda xp, x, m: xp.select([x > 7, m[:, None]], [x, -x], 0.0),
    "piecewise": lambda xp, x, m: xp.piecewise(x[:, 0], [m], [lambda v: -v, 3.0]),
    "delete": lambda xp, x, m: xp.delete(x, m, axis=0),
    "sum": lambda xp, x, m: xp.sum(x, axis=1, where=m[:, None]),
    "max": lambda xp, x, m: xp.max(x, where=m[:, None], initial=0.0),
    "any": lambda xp, x, m: xp.any(x > 3, axis=0, where=m[:, None]),
    "out": lambda xp, x, m: xp.add(x, x, out=x * 0, where=m[:, None]),
    "copyto": lambda xp, x, m: np.copyto(x, -1.0, where=m[:, None]),
    "place": lambda xp, x, m: np.place(x, m[:, None] & np.ones(5, bool), [-1.0, -2.0]),
    "putmask": lambda xp, x, m: xp.putmask(x, m[:, None] & np.ones(5, bool), x * 10),
    "put": lambda xp, x, m: xp.put(x, np.nonzero(m)[0], [-1.0, -2.0]),
    "take": lambda xp, x, m: xp.take(x, np.nonzero(m)[0], axis=0),
    "insert": lambda xp, x, m: xp.insert(x, np.nonzero(m)[0], 9.0, axis=0),
    "repeat": lambda xp, x, m: xp.repeat(x, m.astype("i8") + 1, axis=0),
    "percentile": lambda xp, x, m: xp.percentile(x, np.array([25.0, 50.0])),
    "histogram": lambda xp, x, m: xp.histogram(x, np.array([0.0, 5.0, 30.0]))[0],
    "digitize": lambda xp, x, m: xp.digitize(x, np.array([0.0, 5.0, 30.0])),
}


@plain
@pytest.mark.parametrize("name", MASKED)
def test_what_numpy_arrays_say_about_which_elements_is_sent(kind, name):
    n, m = np.arange(30.0).reshape(6, 5), np.array([True, False, True, True, False, False])
    x = kind.make(n)
    with mb.count() as c:
        found = MASKED[name](mb, x, m)
        if found is not None:
            mb.materialize(found)
    assert kind.takes_numpy or c.transfers or name == "delete"  # (which works out on the host what is left)
    expected = MASKED[name](np, n, m)
    assert_same(*((x, n) if expected is None else (found, expected)))


@pytest.mark.parametrize("name", ["where", "concat", "isin", "put"])
def test_numbers_of_numpy_are_not_sent(name):
    x, n = mb.CuArray([1.0, 2.0, 3.0]), np.ones(3)
    run = {
        "where": lambda: mb.where(n > 0, x, n), "concat": lambda: mb.concat([x, n]),
        "isin": lambda: mb.isin(x, n), "put": lambda: mb.put(x, np.arange(3), n),
    }[name]  # fmt: skip
    with pytest.raises(mb.PlaceError):
        run()


@leaves
def test_along_an_axis(kind):
    i = np.argsort(-N, axis=1)[:, ::2]
    x = kind.make(N)
    assert_same(mb.take_along_axis(x, kind.family(i), axis=1) + 1, np.take_along_axis(N, i, 1) + 1)
    n = N.copy()
    np.put_along_axis(n, i, 9.0, 1)
    mb.put_along_axis(x, kind.family(i), 9.0, axis=1)
    assert_same(x, n)
    assert_same(mb.take(x, kind.family(np.array([[0, 1]])), axis=2), np.take(n, [[0, 1]], axis=2))
    assert_same(mb.take(x, [-1, 7], mode="wrap"), np.take(n, [-1, 7], mode="wrap"))
    assert_same(mb.take(x, [-1, 777], mode="clip"), np.take(n, [-1, 777], mode="clip"))


@leaves
def test_adding_at_repeated_indices(kind):
    x = kind.make(np.zeros(4))
    mb.add_at(x, kind.family(np.array([1, 1, 3, 1])), kind.family(np.array([1.0, 2.0, 4.0, 8.0])))
    assert_same(x, [0.0, 11.0, 0.0, 4.0])


@plain
def test_where_they_are_and_where_they_belong(kind):
    n = np.array([0.0, 3.0, 0.0, 5.0])
    assert_same(mb.nonzero(kind.make(n))[0], np.nonzero(n)[0])
    edges = kind.make(np.array([1.0, 2.0, 4.0]))
    for side in ("left", "right"):
        expected = np.searchsorted([1.0, 2.0, 4.0], n, side=side)
        assert_same(mb.searchsorted(edges, kind.make(n), side=side), expected)
    with pytest.raises(ValueError, match="side"):
        mb.searchsorted(edges, kind.make(n), side="middle")


@plain
@given(data=st.data())
def test_any_index(kind, data):
    """A random index of slices, integers, None, lists and masks, read and written."""
    entries = []
    for n in N.shape:
        choice = data.draw(st.sampled_from(["slice", "integer", "list", "mask", "none"]))
        if choice == "none":
            entries.append(None)
            choice = "slice"
        if choice == "slice":
            step = data.draw(st.sampled_from([None, 1, 2, -1, -2]))
            ends = st.one_of(st.none(), st.integers(-n - 1, n + 1))
            entries.append(slice(data.draw(ends), data.draw(ends), step))
        elif choice == "integer":
            entries.append(data.draw(st.integers(-n, n - 1)))
        elif choice == "list":
            entries.append(data.draw(st.lists(st.integers(-n, n - 1), min_size=2, max_size=2)))
        else:
            mask = np.zeros(n, bool)
            mask[data.draw(st.lists(st.integers(0, n - 1), min_size=2, max_size=2, unique=True))] = True
            entries.append(mask)
    i = tuple(entries)
    x, n = kind.make(N), N.copy()
    if not all(isinstance(e, int) for e in i):
        assert_same(x[placed(kind, i)], n[i])
        x[placed(kind, i)] = x[placed(kind, i)] * 2 + 1
        n[i] = n[i] * 2 + 1
        assert_same(x, n)


@pytest.mark.parametrize("chance", [0.0, 0.01, 0.5, 1.0], ids=["none", "few", "here and there", "all"])
@pytest.mark.parametrize("order", ["C", "F", "cut"])
def test_large_masks_pick_and_write_the_same(chance, order):
    """Of masks that come back, places are looked up once; a mask that changes picks other elements."""
    rng = np.random.default_rng(0)
    plain = rng.random((160, 150))
    mask = rng.random((160, 150)) < chance
    if order != "C":
        plain, mask = (np.asfortranarray(a) if order == "F" else a[:, 5:140] for a in (plain, mask))
    x, m = mb.HostArray(plain.copy(order="K")), mb.HostArray(mask.copy(order="K"))
    plain = plain.copy(order="K")
    for turn in range(3):
        np.testing.assert_array_equal(mb.to_numpy(x[m]), plain[mask])
        x[m] = x[m] * 2.0 + turn
        plain[mask] = plain[mask] * 2.0 + turn
        x[m] = -1.5 if turn == 1 else x[m]
        plain[mask] = -1.5 if turn == 1 else plain[mask]
        np.testing.assert_array_equal(mb.to_numpy(x), plain)
        m[turn, ::2] = ~m[turn, ::2]
        mask = mask.copy(order="K")
        mask[turn, ::2] = ~mask[turn, ::2]
    with pytest.raises((ValueError, IndexError)):
        x[m] = np.zeros(7)
    with pytest.raises(IndexError):
        x[mb.HostArray(mask.T.copy())]
    np.testing.assert_array_equal(mb.to_numpy(x), plain)


def test_parts_of_parts_are_composed():
    """An index of an index, as one: with new dimensions, numbers from behind and slices of any step."""
    pick = random.Random(0)

    def some(shape):
        out = []
        for n in shape:
            kind = pick.random()
            if kind < 0.15:
                out.append(None)
            if kind < 0.35 and n:
                out.append(pick.randrange(-n, n))
            elif kind < 0.85:
                ends = [pick.choice([None, *range(-6, 7)]) for _ in range(2)]
                out.append(slice(*ends, pick.choice([None, 1, -1, 2, -2, 3])))
            else:
                break
        return (*out, *[None] * (pick.random() < 0.1), ...)

    for _ in range(4000):
        shape = tuple(pick.randrange(6) for _ in range(pick.randrange(1, 4)))
        x = np.arange(math.prod(shape)).reshape(shape)
        first = some(shape)
        second = some(x[first].shape)
        once = _composed(shape, first, second)
        if once is not None:
            np.testing.assert_array_equal(x[once], x[first][second], err_msg=f"{shape} {first} {second}")
            assert x[once].shape == x[first][second].shape


@leaves
def test_an_index_array_without_axes_picks_a_copy(kind):
    """As NumPy's: `x[np.array(1)]` is no view, `x[np.int64(1)]` and `x[1]` are."""
    x = kind.make(N)
    picked = x[np.array(1)]
    if kind.writable:
        x[...] = -1
    assert_same(picked, N[1])


@pytest.mark.parametrize("ours", [False, True])
def test_what_an_index_array_without_axes_picked_is_written_alone(ours):
    x = mb.HostArray(np.arange(12.0).reshape(3, 4))
    i = mb.HostArray(1) if ours else np.array(1)
    picked = x[i]
    picked[...] = 0
    shown = x[np.int64(1)]
    assert shown.tolist() == [4, 5, 6, 7]
    shown[...] = 9
    assert x[1].tolist() == [9, 9, 9, 9]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
@pytest.mark.parametrize("columns", [2, 3, 4, 8])
def test_columns_are_negated_where_they_are(dtype, columns):
    """(NumPy 2.4's negative of four bytes is wrong where operand and result both have steps of 16 bytes.)"""

    def turned(x):
        x[:, 0] *= -1
        return x

    n = np.arange(1, 5 * columns + 1).reshape(5, columns).astype(dtype)
    wanted = n.copy()
    wanted[:, 0] = [-v for v in n[:, 0]]
    eager = mb.HostArray(n)
    eager[:, 0] = -eager[:, 0]
    for got in (turned(mb.HostArray(n)), mb.compile(turned)(mb.HostArray(n)), eager):
        np.testing.assert_array_equal(mb.to_numpy(got), wanted)
