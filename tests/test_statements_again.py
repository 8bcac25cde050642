"""Statements that come back on the host: known again, they do what they did, and nothing that waits sees it."""

import operator
import threading
from itertools import starmap

import numpy as np
import pytest

import mirabelle as mb
from mirabelle.backends.host import direct, kernels, shortcuts
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import Broadcasted

pytestmark = pytest.mark.usefixtures("trees")

N = 40


@pytest.fixture(autouse=True)
def afresh(monkeypatch):
    monkeypatch.setattr(shortcuts, "_met", {})
    known = dict(shortcuts.known)
    shortcuts.known.clear()
    with mb.settings.changed(compile_after=8, compiler="inline"):
        yield
    shortcuts.known.clear()
    shortcuts.known.update(known)


def known():
    """How many statements are known."""
    return sum(map(len, shortcuts.known.values()))


def assert_known(least, most=None):
    assert least <= known() <= (least if most is None else most)


# Statements on arrays x, y, z of N by N elements, a row r, a column c, a number s and a number of the turn k.
STATEMENTS = {
    "a stencil": "x[1:-1, 1:-1] = 0.2 * (y[1:-1, 1:-1] + y[:-2, 1:-1] + y[2:, 1:-1] + y[1:-1, :-2])",
    "itself": "x[1:, :] = x[1:, :] * 0.5 + y[:-1, :]",
    "in place": "x[1:, 2:] += y[1:, 2:] * s",
    "less, in place": "x[3:] -= y[3:] * z[:-3]",
    "other rows": "x[20:] = x[:20] * s + y[20:]",
    "the row before": "x[k % 39 + 1] = x[k % 39] + y[k % 39] * s",
    "columns": "x[:, k % 39 + 1] = y[:, k % 39] * s - x[:, k % 39]",
    "a stretched row": "x[:] = y[:] * r + s",
    "columns as rows": "x[:] = y[:, 3] * z + y[::-1, k % 3]; z[1:] = y[1:] - x[:, 2] * z[0, ::-1]",
    "differences": "t = y[:, 2:3]; x[...] = t.T - t + z; v = (t.T - t) * x; z[2:] = v[2:] * 0.5",
    "its own column": "x[:, 1:] = x[1:, 0] * 0.5 + y[:, 1:]; x[2:, ::-1] = x[:2, 3].sum() - z[2:]",
    "a stretched column": "x[2:] = c[2:] * y[2:] + c[2:]",
    "one array twice": "x[5:] = y[5:] * y[5:] + y[:-5]",
    "numbers": "x[1:] = y[1:] * s + s * 0.5 + 2",
    "two equal numbers": "x[1:] = (y[1:] + 0.5) * 0.5 + z[1:]",
    "a turned part": "x[::-1] = y[:] + x[::-1] * 0.25",
    "transposed": "x[2:, 2:] = y.T[2:, 2:] * s + z[:-2, 2:]",
    "overlapping": "x[1:] = x[:-1] * 0.5 + y[1:]",
    "a choice": "x[1:] = where(y[1:] > 0.5, z[1:], y[:-1])",
    "of whole arrays": "x[1:] = y[1:] + z[1:]",
    "whole arrays in place": "x += y; x *= s; x -= y * z; x += x * s; z += x; y *= 1 - z",
    "whole arrays, with readers": "t = x + 0; u = x * s; x += y; x -= u; z += t; v = x[1:]; x *= y; z[1:] += v",
    "whole arrays by their sums": "t = sum_(x, axis=0); x += y; x /= sum_(x); x += t / 99; w = x[3]; x -= y",
    "powers": "x[1:, 1:] = y[1:, 1:] ** 2 + z[1:, 1:] ** 3",
    "a function": "x[1:] = sqrt(y[1:])",
    "a function, in place": "x[2:] = sqrt(x[2:] * x[2:])",
    "the negative, by a view": "v = x[1:]; v[...] = -y[1:]",
    "by a view": "v = x[1:]; v[...] = v * 0.5 + y[1:]",
    "held by others": "t = y * 2.0; x[1:] = t[1:] * z[1:] + t[:-1]; z[:, 1:] = t[:, 1:] - z[:, 1:]",
    "twice in the tree": "t = y[1:] + z[1:]; x[1:] = t * t - s",
    "a recurrence": "t = y[1:] * s; u = z[1:] - t; x[1:] = u * t; z[1:] = u / 4 + x[:-1]",
    "what was stored": "t = mb_exp(y) + z; x[1:] = t[1:] * 0.125; z[1:] = t[1:] * 0.25",
    "held over the row before": "t = x[k % 39] * s; x[k % 39 + 1] = t + y[0]; y[0] = t * 0.5",
    "values of their own": "t = y * s + z; u = t * 0.5; x = u - z * t; x = x * 1.0",
    "and reduced": "t = y * z; x[1:] = t[1:] / t.sum(); z = t * 0.5 + z * 0.5",
    "numbers of several types": "x[1:] = y[1:] * np_float32(0.5) + 2; x[0] = 3; x[2, 1:] = np_float64(s)",
    "rows of others": "x[0] = y[1]; x[1:3] = z[3:5]; x[:, 0] = x[:, 1]; x[4, 5] = 7.5",
    "a sum within": "x[1:] = y[1:] / y.max() + z[1:]",
    "sums of columns": "x[k % 39] = sum_(y * z, axis=0)",
    "sums of rows": "x[:, 3] = (y * s + z).sum(1); x[1:3, 4] = z[4:6].prod(axis=-1)",
    "windows": "x[0, 1:9] = max_(y[k % 30 : k % 30 + 8, 2:7], axis=1); x[k % 40, 1::3] = y[:5, :13].min(0)",
    "sums of what is written to": "x[5] = sum_(x[:5] * s, axis=0); x[2, 1:] = sum_(x[:4, 1:], axis=0) * 0.25",
    "one number": "x[k % 40, 3] = sum_(y[1:4, :20] * z[1:4, 5:25] + s); x[3, k % 39] = max_(y[2:4])",
    "kept dimensions": "x[:, :1] = (y * z).min(1, keepdims=True); x[1:2] = sum_(z, axis=0, keepdims=True)",
    "several at once": "t = y * z; u = sum_(t, axis=0); x[0] = max_(t, axis=0); x[1] = u + x[0]; z[3] = u / 99",
    "sums that are held": "u = sum_(y * z, axis=0); x[2] = u; y[4] = u * 0.01; x[3] = u * s; x[4] = u",
    "sums of held trees": "t = y * s; x[7] = sum_(t + z, axis=0); x[8] = t[3] + sum_(t * t, axis=1)",
    "sums for themselves": "v = float(sum_(y[:3] * z[:3])); u = sum_(y[::2], axis=1); x[1] = v; x[2, ::2] = u",
    "larger sums": "w = x[:, None] * y[:, :, None] + s; x[:, k % 40] = sum_(w, axis=(0, 2)) / 1600",
    "sums of turned trees": "x[0] = sum_(y.T + z, axis=0); x[1] = sum_(y.T * s, axis=1)",
    "sums over several axes": "t = y.reshape(4, 10, 40); x[3, :10] = sum_(t.transpose(0, 2, 1) * s, (0, 1))",
    "rows of sums": "x[:4, :4] = sum_(y[:16].reshape(4, 4, 40) * s, axis=2)",
}


def do(text, scope, of):
    functions = {"where": of.where, "sqrt": of.sqrt, "mb_exp": of.exp, "sum_": of.sum, "max_": of.max}
    exec(text, {**functions, "np_float32": np.float32, "np_float64": np.float64}, scope)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("name", STATEMENTS)
def test_they_do_what_they_did(name, in_place, monkeypatch):
    if in_place:  # whatever the size
        monkeypatch.setattr(direct, "_IN_PLACE", 1)
    rng = np.random.default_rng(0)
    shapes = {"x": (N, N), "y": (N, N), "z": (N, N), "r": (N,), "c": (N, 1)}
    plain = {k: rng.random(shape) for k, shape in shapes.items()}
    ours = {k: mb.HostArray(v.copy()) for k, v in plain.items()}
    text = STATEMENTS[name]
    for turn in range(60):
        number = [0.5, 2.0, 0.0, -0.0, 1.5][turn % 5] if turn > 20 else 0.25
        for scope, of in ((plain, np), (ours, mb)):
            scope["k"], scope["s"] = turn, number
            do(text, scope, of)
        if turn % 7 == 3:  # other memory, for some
            plain["y"], ours["y"] = plain["y"] + 0.125, ours["y"] + 0.125
            mb.materialize(ours["y"])
        # (Cubes are products here, and powers there.)
        close = {"powers": 1e-15, "what was stored": 1e-15} | dict.fromkeys(
            ("and reduced", "a sum within", "larger sums", "whole arrays by their sums"), 1e-11
        )
        np.testing.assert_allclose(
            mb.to_numpy(ours["x"]), plain["x"], rtol=close.get(name, 0), err_msg=f"{name}, {turn}"
        )


def address(x):
    return verbs.leaf_of(x).view.__array_interface__["data"][0]


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.int32])
def test_large_arrays_stay_where_they_are(dtype):
    n = direct._IN_PLACE // 4
    x, y = mb.HostArray(np.zeros(n, dtype)), mb.HostArray(np.ones(n, dtype))
    s = dtype(2).item()
    at = None
    for turn in range(60):
        if turn == 30:  # (known by then)
            at = address(x)
        x += y
        x -= s * y
        x += y
    assert address(x) == at and mb.to_numpy(x).any() == 0
    # Whoever reads the old contents keeps them.
    total, after, shown, part = mb.sum(x), x + 5, np.asarray(x), x[1:3]
    x += y
    assert address(x) != at
    assert float(mb.real(total)) == 0 and mb.to_numpy(after)[0] == 5 and shown[0] == 0
    assert mb.to_numpy(part).tolist() == [1, 1]  # (a view shows what is written)
    del shown, total, after, part
    for _ in range(2):  # (into memory of its own)
        x -= y
        x += y
    at = address(x)
    z = x  # one array of two names
    for _ in range(30):
        x += y
    assert address(x) == at and z is x and mb.to_numpy(z)[-1] == 31
    w = mb.copy(x)
    for _ in range(12):
        w += y
        x -= y
    assert mb.to_numpy(w)[0] == 43 and mb.to_numpy(x)[0] == 19


def test_complex_numbers_that_differ_in_the_sign_of_a_zero():
    n = 1 << 13
    x = np.full(n, complex(-0.0, -0.0))
    ours = mb.HostArray(x)
    for above, below in (((1, 0.0), (1, -0.0)), ((1, -0.0), (1, 0.0)), ((1, -0.0), (1, -0.0))) * 10:
        a, b = complex(*above), complex(*below)
        found = mb.copysign(1.0, mb.imag(ours + a)) - 2 * mb.copysign(1.0, mb.imag(ours + b))
        expected = np.copysign(1.0, (x + a).imag) - 2 * np.copysign(1.0, (x + b).imag)
        np.testing.assert_array_equal(mb.to_numpy(found), expected)


def test_most_are_known_again():
    x, y = (mb.HostArray(np.random.default_rng(0).random((N, N))) for _ in range(2))
    for _ in range(40):
        x[1:-1] = 0.5 * (y[2:] + y[:-2])
        x[1:] += y[1:] * 2.0
    assert_known(2)
    met = dict(shortcuts._met)
    for _ in range(5):
        x[1:-1] = 0.5 * (y[2:] + y[:-2])
        x[1:] += y[1:] * 2.0
    assert shortcuts._met == met


def test_nothing_that_waits_sees_them():
    """Random statements between trees that wait, copies, parts and values that somebody holds."""
    rng = np.random.default_rng(1)
    names = "xyz"
    plain = {k: rng.random((N, N)) for k in names}
    ours = {k: mb.HostArray(v.copy()) for k, v in plain.items()}
    held = []

    def part():
        i, j = rng.integers(0, 3, 2)
        return slice(i, N - 2 + i), slice(j, N - 2 + j)

    forms = [
        lambda a, b, c, p, q, r: 0.5 * (b[q] + c[r]),
        lambda a, b, c, p, q, r: a[p] * 0.5 + b[q],
        lambda a, b, c, p, q, r: b[q] * 0.25 + c[r] * 0.5,
        lambda a, b, c, p, q, r: (b[q] + a[p]) * 0.5 - c[r] * 0.25,
    ]
    for turn in range(4000):
        a, b, c = (names[i] for i in rng.integers(0, 3, 3))
        p, q, r = part(), part(), part()
        form = forms[rng.integers(len(forms))]
        holder = rng.random()
        if holder < 0.05:
            held.append((ours[a] * 2.0 + ours[b], plain[a] * 2.0 + plain[b]))
        elif holder < 0.1:
            held.append((ours[a][p] + 1.0, plain[a][p] + 1.0))
        elif holder < 0.13:
            held.append((mb.copy(ours[a]), plain[a].copy()))
        elif holder < 0.15:
            held.append((ours[a].sum(), plain[a].sum()))
        elif holder < 0.17:
            ours[a], plain[a] = ours[b] + 0.0, plain[b] + 0.0
        elif holder < 0.19 and a != b:
            ours[a], plain[a] = mb.copy(ours[b]), plain[b].copy()
        elif holder < 0.25:
            value, expected = (
                form(ours[a], ours[b], ours[c], p, q, r),
                form(plain[a], plain[b], plain[c], p, q, r),
            )
            held.append((value, expected))
            ours[a][p], plain[a][p] = value, expected
            continue
        ours[a][p] = form(ours[a], ours[b], ours[c], p, q, r)
        plain[a][p] = form(plain[a], plain[b], plain[c], p, q, r)
        if len(held) > 12 or turn % 50 == 0:
            for _ in range(min(len(held), 6)):
                value, expected = held.pop(int(rng.integers(len(held))))
                np.testing.assert_allclose(mb.to_numpy(value), expected, rtol=1e-13, err_msg=str(turn))
            for k in names:
                np.testing.assert_array_equal(mb.to_numpy(ours[k]), plain[k], err_msg=str(turn))
    assert_known(4, 1000)


def warm(x, y):
    for _ in range(40):
        again(x, y)
    assert_known(1)


def again(x, y):
    x[1:] = y[1:] * 2.0 + y[:-1]


def test_memory_of_numpy_is_written_where_it_is():
    y = mb.HostArray(np.ones((N, N)))
    warm(mb.HostArray(np.zeros((N, N))), y)
    memory = np.zeros((N, N))
    x = mb.asarray(memory, copy=False)
    again(x, y)
    assert memory[1:].min() == 3.0
    shown = mb.HostArray(np.zeros((N, N)))
    seen = np.asarray(shown)
    before = seen.copy()
    again(shown, y)
    assert np.array_equal(seen, before) or np.shares_memory(seen, np.asarray(shown))
    read_only = np.zeros((N, N))
    read_only.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        again(mb.asarray(read_only, copy=False), y)


def test_who_counts_or_overrides_is_asked():
    x, y = (mb.HostArray(np.ones((N, N))) for _ in range(2))
    warm(x, y)
    with mb.count() as c:
        again(x, y)
    assert c.launches == 1 and c.bytes_written == (N - 1) * N * 8
    asked = []
    with mb.override(verbs.copyto, (mb.HostArray, Broadcasted), lambda dest, src: asked.append(src)):
        again(x, y)
    assert len(asked) == 1


def test_what_is_added_may_be_held_and_used_again():
    x, y = (np.random.default_rng(0).random((N, N)) for _ in range(2))
    a, b = mb.HostArray(x), mb.HostArray(y)
    for _ in range(60):
        t, u = b[1:] * 2.0, y[1:] * 2.0
        a[1:] += t
        x[1:] += u
        b[2:] += t[1:] * 0.25
        y[2:] += u[1:] * 0.25
        a[1:] += t
        x[1:] += u
        b *= 0.5
        y *= 0.5
        np.testing.assert_array_equal(mb.to_numpy(t), u)
    np.testing.assert_array_equal(mb.to_numpy(a), x)
    np.testing.assert_array_equal(mb.to_numpy(b), y)
    assert_known(1, 100)


def test_what_reads_what_is_written_is_not_computed_again():
    """However it is held: references to an argument do not tell, where it is lent by a tuple."""
    x, y = (mb.HostArray(np.ones((N, N))) for _ in range(2))
    for _ in range(40):
        x[...] = 1.0
        x[1:] = x[1:] * 0.5 + y[1:]
    for do_it in (
        operator.setitem,
        lambda *t: t[0].__setitem__(*t[1:]),
        lambda *t: [*starmap(operator.setitem, [t])],
    ):
        x[...] = 1.0
        held = (x, slice(1, None), x[1:] * 0.5 + y[1:])
        do_it(*held)
        assert mb.to_numpy(held[2])[0, 0] == 1.5 and mb.to_numpy(x)[1, 0] == 1.5


def test_one_tree_in_several_threads():
    """One evaluates it, and lets go of what it reads, while another reads that."""
    n = 4000
    with mb.settings.changed(thread_size=1000):
        y, x = mb.HostArray(np.ones(n)), mb.HostArray(np.zeros(n - 1))
        wrong = []

        def tree():
            z = mb.materialize(y + 0.0)
            return z[1:] * 2.0 + z[:-1] * 0.5

        for _ in range(40):
            x[...] = 0.0
            x[:] = tree()
            mb.materialize(tree())

        def evaluate(t, meet):
            meet.wait()
            mb.materialize(t)
            mb.materialize(y * 77.0)

        for _ in range(150):
            t, meet = tree(), threading.Barrier(2)
            other = threading.Thread(target=evaluate, args=(t, meet))
            other.start()
            meet.wait()
            x[:] = t
            other.join()
            if not (mb.to_numpy(x) == 2.5).all() or not (mb.to_numpy(t) == 2.5).all():
                wrong.append(1)
        assert not wrong


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "i4"])
def test_rows_that_lie_apart_are_read_side_by_side(dtype):
    """By those that are known again, and by those who count."""
    rng = np.random.default_rng(2)
    a = (rng.random((200, 300)) * 9).astype(dtype)
    b = (rng.random((300, 200)) * 9).astype(dtype)
    x, y = mb.HostArray(a), mb.HostArray(b)
    cases = [
        lambda u, v: (u + v[:, 3]) * v[::-1, 0],
        lambda u, v: (v[:, 1:2].T * u + u[:, 1:2]).T,
        lambda u, v: u[:, ::-1] * v[:, 5] + u[0, ::-1],
        lambda u, v: u * v[:, :1].real.T + v[:, 1].imag,
    ]
    for case in cases:
        for _ in range(20):
            found = np.asarray(case(x, y))
            np.testing.assert_allclose(found, case(a, b), rtol=1e-5)
        with mb.count() as counted:
            counting = np.asarray(case(x, y))
        assert counted.launches == 1
        assert counting.tobytes() == found.tobytes()


def test_large_trees_are_not_written_down():
    x = mb.HostArray(np.zeros(N))
    with mb.settings.changed(tree_limit=1000):
        for _ in range(20):
            y = x
            for _ in range(300):
                y = y + 1.0
            assert mb.to_numpy(y).max() == 300.0


def test_other_shapes_and_dtypes_are_others():
    x, y = (mb.HostArray(np.ones((N, N))) for _ in range(2))
    warm(x, y)
    for dtype in (np.float32, np.int64, np.complex128):
        a, b = (mb.HostArray(np.ones((N, N), dtype)) for _ in range(2))
        again(a, b)
        assert a.dtype == dtype and mb.to_numpy(a)[1:].min() == 3
    again(x, mb.HostArray(np.ones((N, N), np.float32)))
    assert mb.to_numpy(x)[1:].min() == 3.0
    with pytest.raises(ValueError, match="broadcast"):
        again(x, mb.HostArray(np.ones((N, N + 1))))


def test_in_several_threads():
    x = [mb.HostArray(np.zeros((N, N))) for _ in range(4)]
    y = [mb.HostArray(np.full((N, N), float(i))) for i in range(4)]
    warm(x[0], y[0])
    wrong = []

    def work(i):
        for _ in range(300):
            again(x[i], y[i])
            if mb.to_numpy(x[i])[1:].min() != 3.0 * i:
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_nothing_compiles_for_them_where_compiling_is_off():
    with mb.settings.changed(compiler="off"):
        x, y = (mb.HostArray(np.ones((N, N))) for _ in range(2))
        for _ in range(40):
            x[1:] = y[1:] * 2.5 + y[:-1] * y[1:] + 0.75
        kernels.settle()
    assert known() == 0 and mb.to_numpy(x)[1:].min() == 4.25
