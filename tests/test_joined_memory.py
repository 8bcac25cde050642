"""What is joined, split or asked at once is what NumPy gives, in memory that lies as NumPy's."""

import itertools

import numpy as np
import pytest
from compare import assert_same
from kinds import LEAVES

import mirabelle as mb

HOST, CARD = LEAVES["host"], LEAVES["cuda"]
placed = pytest.mark.parametrize("kind", [HOST, CARD], ids=repr)

# Arrays of two and three dimensions by how they lie in memory.
LIE = {
    "C": lambda a: a,
    "F": np.asfortranarray,
    "turned": lambda a: np.ascontiguousarray(a.T).T,
    "part of F": lambda a: np.asfortranarray(np.concatenate([a, a]))[: a.shape[0]],
    "backwards": lambda a: np.ascontiguousarray(a[::-1])[::-1],
}


def order(x):
    return "C" * x.flags.c_contiguous + "F" * x.flags.f_contiguous


@pytest.mark.parametrize("kind, n", [(HOST, 3), (HOST, 70), (CARD, 4)], ids=repr)  # at once, by kernels
@pytest.mark.parametrize("lies", list(itertools.combinations_with_replacement(LIE, 2)), ids="-".join)
def test_columns_stay_columns_where_all_lie_so(kind, n, lies):
    rng = np.random.default_rng(n)
    for shape, axis in [((n, n + 1), 0), ((n, n + 1), 1), ((n, 5, n), 1), ((1, n), 0)]:
        numpys = [LIE[how](rng.normal(size=shape)) for how in lies]
        ours = [kind.make(np.asfortranarray(a)) if order(a) == "F" else kind.make(a) for a in numpys]
        if any(order(x) != order(a) for x, a in zip(ours, numpys, strict=True)):
            continue  # (what has gaps is copied to a card without them)
        wanted, found = np.concatenate(numpys, axis), mb.concatenate(ours, axis)
        assert_same(found, wanted)
        if set(lies) <= {"C", "F", "turned"}:
            assert order(found) == order(wanted)
        waits = mb.concatenate([x + 1 for x in ours], axis)  # (nothing is in memory yet)
        assert_same(waits, wanted + 1)


@pytest.mark.parametrize("kind, n", [*((HOST, n) for n in (0, 1, 4, 5000)), (CARD, 0), (CARD, 3)], ids=repr)
def test_vectors_as_rows_and_columns(kind, n):
    rng = np.random.default_rng(n)
    for dtypes in [("f8", "f8"), ("i4", "f4"), ("?", "u1", "c16"), ("f8",)]:
        a = [(rng.normal(size=n) * 9).astype(d) for d in dtypes]
        x = [kind.make(v) for v in a]
        for f in ("vstack", "hstack", "dstack", "column_stack", "concatenate", "stack"):
            assert_same(getattr(mb, f)(x), getattr(np, f)(a))
            assert_same(getattr(mb, f)(tuple(x)), getattr(np, f)(tuple(a)))
        assert_same(mb.append(x[0], x[-1]), np.append(a[0], a[-1]))
        assert_same(mb.vstack([x[0], x[0][None]]), np.vstack([a[0], a[0][None]]))


def test_what_does_not_fit_is_said_of_vectors_too():
    x, y = mb.zeros(3), mb.zeros(4)
    for f in (mb.vstack, mb.column_stack, mb.stack):
        with pytest.raises(ValueError, match=r"must|same shape"):
            f([x, y])
    with pytest.raises(ValueError, match="at least one"):
        mb.vstack([])


@placed
def test_deleting_one_index(kind):
    a = np.arange(12.0).reshape(3, 4)
    x = kind.make(a)
    for at, axis in [(0, 0), (-1, 0), (2, 1), (-4, 1), (11, None), (np.int64(1), 0)]:
        assert_same(mb.delete(x, at, axis), np.delete(a, at, axis))
    kept = mb.delete(x, 0, 0)
    kept[...] = -1
    assert_same(x, a)
    with pytest.raises(IndexError, match="out of bounds"):
        mb.delete(x, 4, 1)


def test_many_parts_are_views():
    a = np.arange(24.0).reshape(4, 6)
    x = mb.HostArray(a.copy())
    for sections, axis in [(3, 0), (4, 1), (7, 1), ([1, 3], 0), ([2, 9, -1], 1), (24, -1)]:
        parts = mb.array_split(x, sections, axis)
        wanted = np.array_split(a, sections, axis)
        assert len(parts) == len(wanted)
        for ours, theirs in zip(parts, wanted, strict=True):
            assert_same(ours, theirs)
    mb.array_split(x, 3, 1)[1][...] = 0
    a[:, 2:4] = 0
    assert_same(x, a)


@pytest.mark.parametrize("n", [0, 1, 100, 5000, 40_000, 200_000])
@pytest.mark.parametrize("dtype", ["?", "i1", "u8", "f2", "f8", "c8"])
def test_questions_to_all_elements(n, dtype):
    for values in (np.zeros(n), np.ones(n), np.arange(n) % 3 == 1, np.full(n, np.nan)):
        with np.errstate(all="ignore"):
            a = values.astype(dtype)
        x = mb.HostArray(a)
        for shown, theirs in [(x, a), (x[::2], a[::2]), (x.reshape(-1, 1), a.reshape(-1, 1)), (x + x, a + a)]:
            for f in ("all", "any", "count_nonzero"):
                found = getattr(mb, f)(shown)
                assert_same(found, np.asarray(getattr(np, f)(theirs)))
                assert found.shape == ()
        kept = mb.any(x, keepdims=True)
        assert_same(kept, np.any(a, keepdims=True))


def test_an_answer_is_of_its_time():
    x = mb.zeros(100)
    before = mb.any(x)
    x[3] = 1
    assert not before and mb.any(x) and int(mb.count_nonzero(x)) == 1


@pytest.mark.parametrize("kind, n", [(HOST, 1), (HOST, 3), (HOST, 70_000), (CARD, 5)], ids=repr)
def test_inner_products_of_vectors(kind, n):
    rng = np.random.default_rng(n)
    for dtype in ("f4", "f8", "c8", "c16", "i4", "?", "f2"):
        a, b = ((rng.normal(size=n) + 1j * rng.normal(size=n)).astype("c16") for _ in range(2))
        if dtype[0] != "c":
            a, b = a.real > 0, b.real > 0
        a, b = a.astype(dtype), b.astype(dtype)
        x, y = kind.make(a), kind.make(b)
        for f in ("dot", "inner", "vdot", "vecdot"):
            for first, theirs in [(x, a), (x + x, a + a), (mb.flip(x), a[::-1])]:
                wanted = getattr(np, f)(theirs, b)
                found = getattr(mb, f)(first, y)
                assert found.dtype == wanted.dtype and found.shape == ()
                np.testing.assert_allclose(
                    mb.to_numpy(found), wanted, rtol=2e-2 if dtype == "f2" else 1e-3, atol=1e-2 * n**0.5
                )
    with pytest.raises(ValueError, match="inner"):
        mb.inner(kind.make(np.zeros(3)), kind.make(np.zeros(4)))


# Calls that move elements: of so few and so many, of what is in memory and of what waits.
MOVES = {
    "tile": lambda xp, x: xp.tile(x, (2, 1, 3)),
    "resize": lambda xp, x: xp.resize(x, (3, x.size - 1)),
    "roll": lambda xp, x: xp.roll(x, 7),
    "roll along": lambda xp, x: xp.roll(x, (3, -1), (0, 1)),
    "pad": lambda xp, x: xp.pad(x, ((1, 2), (0, 3)), constant_values=5),
    "reflected": lambda xp, x: xp.pad(x, 2, mode="reflect"),
    "insert": lambda xp, x: xp.insert(x, 3, 1.5),
    "insert row": lambda xp, x: xp.insert(x, [-1], x[0], 0),
    "insert several": lambda xp, x: xp.insert(x, [1, 1, 4], [7, 8, 9]),
    "stack": lambda xp, x: xp.stack([x, x], axis=1),
    "diagonal": lambda xp, x: xp.diag(x[0], -2),
    "flat diagonal": lambda xp, x: xp.diagflat(x[:2]),
    "complex": lambda xp, x: xp.iscomplex(x),
    "real": lambda xp, x: xp.isreal(x),
}


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize(
    "kind, shape", [(HOST, (4, 5)), (HOST, (90, 101)), (HOST, (600, 701)), (CARD, (4, 5))], ids=repr
)
def test_what_is_moved_is_numpys_and_new(kind, shape, name):
    move = MOVES[name]
    if name == "flat diagonal" and shape[1] > 500:
        return
    for dtype in ("f8", "u1", "c8") if shape[0] < 500 else ("u1",):
        a = (np.arange(np.prod(shape)) % 251).reshape(shape).astype(dtype)
        for theirs, given in [(a, kind.make(a)), (a + a, kind.make(a) + kind.make(a)), (a.T, kind.make(a).T)]:
            wanted = move(np, theirs)
            made = move(mb, given)
            assert_same(made, wanted)
            assert made.dtype == wanted.dtype
            made[...] = 3
            assert_same(given, theirs)


@pytest.mark.parametrize("dtype", "?bBhHiIlLqQefdFD")
@pytest.mark.parametrize("n", [3, 5000])
def test_filling_takes_every_number_that_fits(dtype, n):
    for value in (0, 1, 2, -1, 255, 2**31, 2**62, 2**63 - 1, 1.5, 1e300, np.nan, -np.inf, True, 1j, np.int8(3)):
        if isinstance(value, complex) and dtype not in "FD":
            continue
        with np.errstate(all="ignore"):
            try:
                wanted = np.full(n, value, dtype)
            except OverflowError:
                with pytest.raises(OverflowError):
                    mb.full(n, value, dtype)
                continue
        if isinstance(value, float) and dtype not in "efdFD?":
            continue  # (NumPy writes what the processor gives, we say it does not fit)
        assert_same(mb.full(n, value, dtype), wanted)
        assert_same(mb.full_like(mb.zeros(n, dtype), value), wanted)


@pytest.mark.parametrize("n", [0, 3, 70, 600])
def test_made_by_numpy_and_taken_as_it_is(n):
    for order, k in itertools.product("CF", (0, 2, -1)):
        assert_same(mb.eye(n, n + 1, k=k, order=order), np.eye(n, n + 1, k=k, order=order))
        assert mb.eye(n, n + 1, k=k, order=order).flags.f_contiguous or order == "C"
    makers = {
        "tri": (n,), "arange": (n,), "linspace": (0, 1, n), "indices": ((n, 2),),
        "hanning": (n,), "identity": (n,),
    }  # fmt: skip
    for name, given in makers.items():
        f = lambda xp, name=name, given=given: getattr(xp, name)(*given)
        first, second = f(mb), f(mb)
        assert_same(first, f(np))
        first += 1
        assert_same(second, f(np))


@pytest.mark.parametrize("kind, n", [(HOST, 2), (HOST, 60), (HOST, 400), (CARD, 2)], ids=repr)
def test_blocks_are_written_once(kind, n):
    a = np.arange(n * n * 1.0).reshape(n, n)
    b, row, corner = a.astype("f4") + 1, np.arange(2.0 * n), np.array(3 + 1j)
    nests = [
        lambda f: f([[f.x, f.y], [f.y, f.x]]),
        lambda f: f([f.x, f.y]),
        lambda f: f([[f.x, f.x + f.y], [f.row]]),
        lambda f: f([[[f.x]], [[f.y]]]),
        lambda f: f([[f.x[:, :0], f.x], [f.y]]),
        lambda f: f([f.row, f.corner]),
        lambda f: f([[f.x]]),
    ]

    class Blocks:
        def __init__(self, xp, make):
            self.block = xp.block
            self.x, self.y, self.row, self.corner = map(make, (a, b, row, corner))

        def __call__(self, nest):
            return self.block(nest)

    for nest in nests:
        given = Blocks(mb, kind.make)
        wanted, found = nest(Blocks(np, np.asarray)), nest(given)
        assert found.dtype == wanted.dtype
        assert_same(found, wanted)
        found[...] = 7
        assert_same(given.x, a)
    for wrong in ([[kind.make(a), kind.make(a)], [kind.make(a)]], [[kind.make(a)], [kind.make(a[:, :1])]], []):
        with pytest.raises(ValueError, match=r"match exactly|empty"):
            mb.block(wrong)


@pytest.mark.parametrize("n", [0, 1, 5, 200])
def test_copies_of_parts_are_in_rows_and_new(n):
    a = np.arange(n * 6.0).reshape(n, 6)
    shows = [
        lambda x: x[::2],
        lambda x: x[:, ::-1],
        lambda x: x.T,
        lambda x: x.T[1:3],
        lambda x: x[:, 2],
        lambda x: x[:0],
    ]
    for show in shows:
        x = mb.HostArray(a)
        for copied in (mb.copy(show(x)), show(x).copy(), mb.copy(show(x + 0.0))):
            assert_same(copied, show(a))
            assert copied.flags.c_contiguous
            copied[...] = -1
            assert_same(x, a)
        kept = mb.copy(show(x))
        x[...] = -1
        assert_same(kept, show(a))
