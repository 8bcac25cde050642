"""A write never changes what was already said: random programs mean what they mean on NumPy."""

import numpy as np
import pytest
from compare import assert_same
from hypothesis import given, settings
from hypothesis import strategies as st
from kinds import LEAVES, wrapped
from programs import assert_logs_agree, numpys, programs, run
from samples import ordinary
from ways import as_many, running

import mirabelle as mb
from mirabelle.dispatch.styles import (
    DENSE,
    DIAGONAL,
    HERMITIAN,
    HOST,
    LOWER,
    LOWER_BIDIAGONAL,
    NUMBER,
    SCALAR,
    SYMMETRIC,
    TRIDIAGONAL,
    UPPER,
    UPPER_BIDIAGONAL,
    Laziness,
    Place,
    device,
    distributed,
    join_laziness,
    join_places,
    join_structure,
    join_two,
)

STRUCTURES = [
    NUMBER, DIAGONAL, LOWER_BIDIAGONAL, UPPER_BIDIAGONAL, TRIDIAGONAL, LOWER, UPPER, SYMMETRIC,
    HERMITIAN, DENSE,
]  # fmt: skip
WRAPPED = [
    wrapped(LEAVES["host"], "transpose"),
    wrapped(LEAVES["host"], "steps"),
    wrapped(wrapped(LEAVES["host"], "reversed"), "permuted"),
    wrapped(LEAVES["ref"], "window"),
    wrapped(wrapped(LEAVES["ref"], "transpose"), "picked"),
]


def check(source, *kinds):
    expected = run(source, np, numpys)
    for kind in kinds:
        assert_logs_agree(run(source, mb, kind.make), expected)


@settings(max_examples=400)
@given(programs())
def test_programs_on_host_arrays(source):
    with running("cold"):
        check(source, LEAVES["host"])


@settings(max_examples=200)
@given(programs())
def test_programs_as_on_large_arrays(source):
    """Small trees take a shorter way; this is the ordinary one, also without a compiler."""
    with running("cold"), mb.settings.changed(small_size=0):
        check(source, LEAVES["host"])


@settings(max_examples=60)
@given(programs(lines=10))
def test_programs_with_every_kernel_compiled(source):
    with running("hot"):
        check(source, LEAVES["host"])


@settings(max_examples=150)
@given(programs())
def test_programs_on_the_reference_device(source):
    check(source, LEAVES["ref"])


@pytest.mark.parametrize("kind", WRAPPED, ids=repr)
@settings(max_examples=60)
@given(source=programs(reshapes=False))
def test_programs_on_wrapped_arrays(kind, source):
    check(source, kind)
    with mb.settings.changed(small_size=0):
        check(source, kind)


@settings(max_examples=120)
@given(programs())
def test_programs_on_pending_arrays(source):
    check(source, LEAVES["host_pending"])


@settings(max_examples=200)
@given(programs(shared=True))
def test_programs_that_share_memory_with_numpy(source):
    check(source, LEAVES["host"])


@settings(max_examples=100)
@given(programs())
def test_programs_evaluated_at_once(source):
    with mb.eager():
        check(source, LEAVES["host"])


@settings(max_examples=100)
@given(programs())
def test_programs_whose_trees_are_bounded(source):
    with mb.settings.changed(tree_limit=3):
        check(source, LEAVES["host"])


@settings(max_examples=100)
@given(programs())
def test_programs_by_the_way_of_many(source):
    """Small trees take a shorter way by default; this is the ordinary one."""
    with as_many():
        check(source, LEAVES["host"])


# Aliasing: the destination among the operands


SLICES = st.sampled_from(
    [slice(1, None), slice(None, -1), slice(0, 5), slice(None, None, -1), slice(4, None, -1),
     slice(None, None, 2), slice(1, None, 2), slice(-1, None, -2), slice(2, 7), slice(6, 1, -1)]
)  # fmt: skip
OVERLAPS = {
    "u[a] = u[b] * 2": lambda u, a, b: u.__setitem__(a, u[b] * 2),
    "u[a] += u[b]": lambda u, a, b: u.__setitem__(a, u[a] + u[b]),
    "u[a] = u[b]": lambda u, a, b: u.__setitem__(a, u[b]),
    "u[a, b] = u[b, a]": lambda u, a, b: u.__setitem__((a, b), u[b, a] + 0),
    "u.T[a] = u[b]": lambda u, a, b: u.T.__setitem__(a, u[b]),
    "u[...] = u[::-1]": lambda u, a, b: u.__setitem__(..., u[::-1] + u),
    "u += u.T": lambda u, a, b: u.__iadd__(u.T),
    "u[a] = u.T[b] - u[b]": lambda u, a, b: u.__setitem__(a, u.T[b] - u[b]),
    "u *= u[b][0]": lambda u, a, b: u.__imul__(u[b][0]),
    "u[:, a] = u[b].T": lambda u, a, b: u.__setitem__((slice(None), a), u[b].T),
    "v = u[a]; v[...] = v[::-1]": lambda u, a, b: u[a].__setitem__(..., u[a][::-1]),
    "u[0] = sum(u)": lambda u, a, b: u.__setitem__(0, u.max(axis=0)),
    "u[a] = u[a] + u[a][::-1]": lambda u, a, b: u.__setitem__(a, u[a] + u[a][::-1]),
}
MAKERS = {
    "host": mb.HostArray,
    "ref": mb.RefArray,
    "shared": lambda x: mb.asarray(np.array(x)[...]),
    "adopted": lambda x: mb.asarray(np.array(x)),
    "transposed": lambda x: mb.HostArray(x.T).T,
    "pending": lambda x: mb.HostArray(x - 1) + 1,
}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("case", OVERLAPS)
@settings(max_examples=30)
@given(a=SLICES, b=SLICES, seen=st.booleans())
def test_overlapping_assignments(maker, case, a, b, seen):
    values = ordinary("f8", (8, 8))
    if len(values[a]) != len(values[b]):
        b = a
    n, x = values.copy(), MAKERS[maker](values)
    before = x * 3 if seen else None
    OVERLAPS[case](n, a, b)
    OVERLAPS[case](x, a, b)
    assert_same(x, n)
    if seen:
        assert_same(before, values * 3)


@pytest.mark.parametrize("case", OVERLAPS)
def test_compiled_overlapping_assignments(hot, case):
    for a, b in [(slice(1, None), slice(None, -1)), (slice(None, None, -1), slice(None))]:
        values = ordinary("f8", (12, 12))
        n = values.copy()
        OVERLAPS[case](n, a, b)
        for make in MAKERS.values():
            x = make(values)
            OVERLAPS[case](x, a, b)
            assert_same(x, n)


def test_a_longer_overlap_in_threads(way):
    with mb.settings.changed(thread_size=100):
        for make in (mb.HostArray, mb.asarray):
            n = ordinary("f8", 50_000)
            x = make(n.copy())
            for u in (n, x):
                u[1:] = u[:-1] * 0.5 + 1
                u[::-1] = u + 1
                u[10:-10] += u[20:]
            assert_same(x, n)


# Shared memory


def test_asarray_shares_in_both_directions(way):
    n = np.arange(6.0)
    x = mb.asarray(n)
    y = x * 2
    view = x[1:4]
    n[:] = 0
    assert_same(y, np.arange(6.0) * 2)
    assert_same(x, n)
    assert_same(view, n[1:4])
    x[2] = 5
    view += 1
    np.testing.assert_array_equal(n, [0, 1, 6, 1, 0, 0])
    total = mb.sum(x)
    n[0] = 100
    assert float(total) == 8
    x[...] = x[::-1]
    np.testing.assert_array_equal(n, [0, 0, 1, 6, 1, 100])


def test_an_expression_of_shared_and_owned_memory_is_evaluated_at_once(way):
    n = np.ones(4)
    shared, owned = mb.asarray(n), mb.HostArray(np.ones(4))
    pending = owned + 1
    z = pending * shared
    w = mb.where(shared > 0, pending, shared.T)
    v = owned + n
    n[:] = -5
    for result in (z, w, v):
        assert_same(result, np.full(4, 2.0))


def test_a_numpy_operand_is_read_when_the_line_runs(way):
    n = np.arange(4.0)
    x = mb.HostArray([1.0, 1.0, 1.0, 1.0])
    y = x + n
    z = n * x
    n[:] = 9
    assert_same(y, np.arange(4.0) + 1)
    assert_same(z, np.arange(4.0))
    x[...] = n
    n[:] = 0
    assert_same(x, np.full(4, 9.0))


@settings(max_examples=60)
@given(st.lists(st.tuples(SLICES, SLICES, st.sampled_from(["ours", "numpys"])), max_size=6))
def test_shared_memory_in_lockstep(steps):
    n = np.arange(8.0)
    mine = n.copy()
    x = mb.asarray(mine)
    said, expected = [], []
    for a, b, who in steps:
        if n[a].shape != n[b].shape:
            continue
        said.append(x[a] - x[b])
        expected.append(n[a] - n[b])
        n[a] = n[b] * 0.5 + 1
        if who == "ours":
            x[a] = x[b] * 0.5 + 1
        else:
            mine[a] = mine[b] * 0.5 + 1
        np.testing.assert_array_equal(mine, n)
    for s, e in zip(said, expected, strict=True):
        assert_same(s, e)


def test_a_read_only_numpy_array_is_shared_for_reading(way):
    n = np.arange(3.0)
    n.flags.writeable = False
    x = mb.asarray(n)
    assert_same(x + 1, n + 1)
    with pytest.raises(ValueError, match="read-only"):
        x += 1


# Laziness


def test_nothing_is_computed_until_it_is_needed_and_once(way, many):
    x = mb.HostArray(ordinary("f8", (3, 4)))
    with mb.count() as c:
        y = mb.exp(x) * 2 - x[::-1]
        z = mb.sum(y + 1, axis=0)
        s = mb.max(z)
    assert c.launches == 0
    assert not (y.evaluated or z.evaluated or s.evaluated)
    mb.materialize(s)
    with mb.count() as c:
        mb.materialize(s)
        mb.materialize(z)
    assert c.launches == 0


@settings(max_examples=60)
@given(st.permutations(["y", "z", "s"]), st.booleans())
def test_the_order_of_forcing_does_not_matter(order, overwrite):
    values = ordinary("f8", (4, 5))
    x = mb.HostArray(values)
    y = x * 2
    z = y + mb.exp(-y * y)
    s = mb.sum(mb.abs(z), axis=1)
    if overwrite:
        x[...] = 0
    results = {"y": y, "z": z, "s": s}
    n = {"y": values * 2}
    n["z"] = n["y"] + np.exp(-n["y"] * n["y"])
    n["s"] = np.sum(np.abs(n["z"]), axis=1)
    for name in order:
        assert_same(results[name], n[name], rtol=1e-14)


# Styles: join-semilattices


PLACES = [SCALAR, HOST, device("ref"), device("ref", 1), device("cuda")]
PLACES += [distributed(p) for p in PLACES]
places = st.sampled_from(PLACES)


def joined(a: Place | None, b: Place | None) -> Place | None:
    """The join with its top element, the conflict (None), which absorbs."""
    return None if a is None or b is None else join_two(a, b)


@settings(max_examples=300)
@given(places, places, places)
def test_places_join_without_order(a, b, c):
    assert joined(a, b) == joined(b, a)
    assert joined(a, joined(b, c)) == joined(joined(a, b), c)
    assert joined(a, a) == a
    assert joined(a, SCALAR) == a


@settings(max_examples=200)
@given(st.lists(places, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_the_join_of_a_set_of_places_has_no_order(some, random):
    def join(ps):
        try:
            return join_places(ps)
        except mb.PlaceError as e:
            assert "adapt" in str(e)
            return None

    shuffled = list(some)
    random.shuffle(shuffled)
    assert join(some) == join(shuffled) == join(shuffled + some)


@given(st.lists(st.sampled_from(STRUCTURES), max_size=5), st.lists(st.sampled_from(STRUCTURES), max_size=5))
def test_structures_join_without_order(a, b):
    assert (
        join_structure(a + b) == join_structure(b + a) == join_structure([join_structure(a), join_structure(b)])
    )
    assert join_structure(a + a) == join_structure(a)


@given(st.lists(st.sampled_from(Laziness), max_size=5), st.lists(st.sampled_from(Laziness), max_size=5))
def test_laziness_joins_without_order(a, b):
    assert join_laziness(a + b) == join_laziness(b + a) == join_laziness([join_laziness(a), join_laziness(b)])
    assert join_laziness(a + a) == join_laziness(a)
