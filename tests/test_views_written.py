"""What is written through views, turned arrays and other shapes: NumPy's results, and nobody else changes."""

import numpy as np
import pytest
from compare import assert_same
from ways import as_many

import mirabelle as mb

SHOWN = {
    "turned": lambda a: a.T,
    "part": lambda a: a[1:, ::2],
    "part of turned": lambda a: a.T[1:],
    "turned part": lambda a: a[1:].T,
    "backwards": lambda a: a[::-1, ::-1].T,
    "reshaped": lambda a: a.reshape(4, 9),
    "new axis": lambda a: a[:, None].T,
    "a line": lambda a: a.T[2],
    "an empty part": lambda a: a[3:3].T,
}
INDICES = (
    0, -1, 2, np.int8(1), 40, True, Ellipsis, None, slice(None), slice(1, None), slice(None, None, -2),
    slice(9, 3), (0, 1), (-1, -2), (np.int64(1), 0), (0, slice(1, 3)), (slice(None), 1), (Ellipsis, 0),
    (None, 1), (0, Ellipsis), (slice(0, 2), slice(1, 3)), (0, 0, 0, 0), (), ([0, 1],), [1, 0],
)  # fmt: skip
DTYPES = ("f8", "f4", "i4", "u1", "c16", "?")


def memory(dtype, order, shared):
    data = np.asarray(np.arange(36).reshape(6, 6) % 7, dtype, order)
    if not shared:
        return mb.HostArray(data), data.copy(order)
    return mb.asarray(data), data  # (NumPy's memory: what is compared is what was written to it)


def values(rng, shape, shown, dtype, of):
    """What may be written: for us (`of` makes arrays) or for NumPy."""
    size = int(np.prod(shape))
    few = np.asarray(rng.integers(0, 5, size or 1)[:size].reshape(shape), dtype)
    return {
        "an integer": lambda: 3,
        "a float": lambda: 2.5,
        "NaN": lambda: float("nan"),
        "too large": lambda: 10**12,
        "a scalar of NumPy's": lambda: np.dtype(dtype).type(1),
        "an array": lambda: of(few),
        "a tree": lambda: of(few) + of(few),
        "of another dtype": lambda: of(few.astype("f8")) * 1.5,
        "one line of it": lambda: of(few[-1:] if few.ndim else few),
        "too many": lambda: of(np.zeros((*shape, 2, 3), dtype)),
        "itself backwards": lambda: shown[::-1],
    }


WHAT = tuple(values(np.random.default_rng(0), (), np.zeros(1), "f8", np.asarray))


def attempt(write):
    """The kind of error, if there is one."""
    try:
        write()
    except Exception as e:
        return type(e)
    return None


def check(how, index, what, dtype, order, shared, seed):
    x, n = memory(dtype, order, shared)
    n = n.copy(order) if shared else n
    shown, plain = SHOWN[how](x), SHOWN[how](n)
    pending, kept, part = x + x, mb.copy(shown), x[1:]
    before = n + n, plain.copy()
    shape = () if attempt(lambda: plain[index]) else plain[index].shape

    def written(shown, of):
        shown[index] = values(np.random.default_rng(seed), shape, shown, dtype, of)[what]()

    said = how, index, what, dtype, order, shared
    expected, failed = (
        attempt(lambda: written(plain, np.asarray)),
        attempt(lambda: written(shown, mb.HostArray)),
    )
    assert (failed is None) == (expected is None), (said, failed, expected)
    pairs = (x, n), (shown, plain), (part, n[1:]), (pending, before[0]), (kept, before[1])
    for found, wanted in pairs:
        np.testing.assert_array_equal(mb.to_numpy(found), wanted, err_msg=repr(said))


@pytest.mark.parametrize("how", SHOWN)
@pytest.mark.parametrize("shared", [False, True], ids=["ours", "shared"])
@pytest.mark.parametrize("few", [0, 500], ids=["trees wait", "at once"])
@pytest.mark.filterwarnings("ignore")
def test_written_as_numpy_writes(how, shared, few):
    rng = np.random.default_rng(len(how) + few)
    with mb.settings.changed(immediate_size=few):
        for number, index in enumerate(INDICES):
            for what in WHAT:
                dtype, order = DTYPES[rng.integers(len(DTYPES))], "CF"[number % 2]
                check(how, index, what, dtype, order, shared, int(rng.integers(1 << 30)))


def test_what_shows_an_element_often_is_not_written():
    x = mb.broadcast_to(mb.HostArray([1.0, 2.0]), (3, 2))
    for shown in (x, x.T, x[1:]):
        with pytest.raises(ValueError, match=r"read-only|shows"):
            shown[0, 1] = 5.0
    assert mb.to_numpy(x).tolist() == [[1.0, 2.0]] * 3


def test_who_overrides_and_who_watches_sees_it():
    x = mb.HostArray(np.zeros((3, 4)))
    seen = []

    def watched(dest, src):
        seen.append(src)
        return mb.copyto.previous(dest, src)

    with mb.override(mb.copyto, (mb.HostArray, mb.ext.Broadcasted), watched):
        x.T[2, 1] = 5.0
        x[1:][0, 0] = 6.0
    assert len(seen) == 2 and (x[1, 2], x[1, 0]) == (5.0, 6.0)
    x.T[2, 1] = 7.0
    assert len(seen) == 2 and x[1, 2] == 7.0


# (to, from) of one vector of n elements. NumPy 2.4 reads what it has written where one step is the longer one.
ONTO_ITSELF = [
    (lambda n: np.s_[::2], lambda n: np.s_[: (n + 1) // 2]),
    (lambda n: np.s_[: (n + 1) // 2], lambda n: np.s_[::2]),
    (lambda n: np.s_[::3], lambda n: np.s_[: (n + 2) // 3]),
    (lambda n: np.s_[::4], lambda n: np.s_[: 2 * ((n + 3) // 4) : 2]),
    (lambda n: np.s_[::-2], lambda n: np.s_[: (n + 1) // 2]),
    (lambda n: np.s_[1::2], lambda n: np.s_[n - n // 2 :]),
    (lambda n: np.s_[1:], lambda n: np.s_[:-1]),
]


# (A fake card takes its time.)
LENGTHS = [(mb.HostArray, n) for n in (6, 11, 40, 3000)] + [(mb.RefArray, n) for n in (6, 11, 40)]


@pytest.mark.parametrize(("family", "n"), LENGTHS)
@pytest.mark.parametrize("dtype", ["f8", "i4", "c16"])
def test_a_vector_is_written_to_other_elements_of_itself_as_it_was(family, dtype, n):
    for to, of in ONTO_ITSELF:
        t, f = to(n), of(n)
        expected = np.arange(n).astype(dtype)
        expected[t] = np.arange(n).astype(dtype)[f]

        def write(x, t=t, f=f):
            x[t] = x[f]

        def through_views(x, t=t, f=f):
            to, of = x[t], x[f]
            to[...] = of

        def by_copyto(x, t=t, f=f):
            mb.copyto(x[t], x[f])

        for written in (write, through_views, by_copyto):
            x = family(np.arange(n).astype(dtype))
            written(x)
            assert_same(x, expected)
            x = family(np.arange(n).astype(dtype))
            with as_many():
                written(x)
            assert_same(x, expected)
            x = family(np.arange(n).astype(dtype))
            mb.compile(lambda x, w=written: w(x))(x)
            assert_same(x, expected)
        if family is mb.HostArray:
            memory = np.arange(n).astype(dtype)
            mb.asarray(memory)[t] = memory[f]
            np.testing.assert_array_equal(memory, expected)


# Results written over what they are computed from: (function of (module, x, out), the part of x that is `out`).
OVER = {
    "joined rows": (lambda m, x, o: m.concatenate([x[2:], x[:2]], out=o), lambda x: x),
    "joined columns": (
        lambda m, x, o: m.concatenate([x[:, 1:], x[:, :1]], axis=1, out=o),
        lambda x: x[:, ::-1],
    ),
    "stacked rows": (lambda m, x, o: m.stack([x[1], x[0], x[3], x[2]], out=o), lambda x: x),
    "sums": (lambda m, x, o: m.sum(x, axis=1, out=o), lambda x: x[0]),
    "running sums": (lambda m, x, o: m.cumsum(x, axis=1, out=o), lambda x: x[:, ::-1]),
    "a product": (lambda m, x, o: m.matmul(x, x, out=o), lambda x: x.T),
    "a sum with itself turned": (lambda m, x, o: m.add(x, x.T, out=o), lambda x: x),
    "rows in another order": (lambda m, x, o: m.take(x, [2, 0, 1, 3], axis=0, out=o), lambda x: x),
    "medians": (lambda m, x, o: m.median(x, axis=0, out=o), lambda x: x[2]),
    "chosen": (lambda m, x, o: m.choose((x > 4).astype("i8"), [x.T, x], out=o), lambda x: x),
}


@pytest.mark.parametrize("family", [mb.HostArray, mb.RefArray, mb.DArray[mb.HostArray]])
@pytest.mark.parametrize("name", OVER)
def test_a_result_written_over_what_it_is_of_is_of_what_was_there(name, family):
    function, part = OVER[name]
    before = np.arange(1.0, 17.0).reshape(4, 4)[:, [2, 0, 3, 1]]
    expected = before.copy()
    function(np, before, part(expected))  # (of what is apart from it)

    def write(x):
        function(mb, x, part(x))

    for run in (write, mb.compile(write)):
        x = family(before.copy())
        run(x)
        assert_same(x, expected)
    if family is mb.HostArray and name.startswith(("joined", "stacked")):  # NumPy's memory, shown twice
        memory = before.copy()
        function(mb, mb.asarray(memory), part(mb.asarray(memory)))
        np.testing.assert_array_equal(memory, expected)
