"""Statements on a card: what is written where, which memory is used again, what is planned once."""

import numpy as np
import pytest
from compare import assert_same

import mirabelle as mb
from mirabelle.backends.gpu import direct

N = 100


@pytest.fixture
def values():
    return np.random.default_rng(0).random(N)


def address(x):
    return mb.materialize(x)._node.view.ptr if not hasattr(x._node, "view") else x._node.view.ptr


def test_a_statement_is_planned_once(values):
    x, z = mb.CuArray(values), mb.CuArray(np.zeros(N))
    z[...] = x * 2.0 + 1.0
    before = len(direct._plans)
    for c in (3.0, 4.0, 5):
        z[...] = x * c + 1.0
        assert_same(z, values * c + 1.0)
    # (an integer is another kind of scalar)
    assert len(direct._plans) == before + 1


def test_a_statement_writes_in_place(values):
    x, z = mb.CuArray(values), mb.CuArray(np.zeros(N))
    place = address(z)
    z[...] = x + 1.0
    z += x * 2.0
    z[...] = z * z
    z[2:-2] = x[4:] + x[:-4]
    assert address(z) == place
    expected = (values + 1.0 + values * 2.0) ** 2
    expected[2:-2] = values[4:] + values[:-4]
    assert_same(z, expected)


def test_what_was_said_keeps_its_values(values):
    x, z = mb.CuArray(values), mb.CuArray(values)
    waiting, part = z * 2.0, z[3:]
    total = mb.sum(z)
    z[...] = x + 1.0
    assert_same(waiting, values * 2.0)
    assert_same(part, values[3:] + 1.0)
    assert float(total) == pytest.approx(values.sum(), rel=1e-14)


def test_a_value_written_is_no_alias(values):
    x, z = mb.CuArray(values), mb.CuArray(np.zeros(N))
    y = x * 3.0
    z[...] = y
    z += 1.0
    z[...] = z * x
    assert_same(y, values * 3.0)


def test_the_memory_of_a_dying_operand_is_used_again(values):
    x, t = mb.CuArray(values), mb.CuArray(values)
    place = address(t)
    y = t * 2.0 + x * t
    del t
    assert address(y) == place
    assert_same(y, values * 2.0 + values * values)


@pytest.mark.parametrize("holder", ["name", "tree", "view", "reduction", "reversed"])
def test_but_not_while_somebody_reads_it(values, holder):
    t = mb.CuArray(values)
    hold = {
        "name": lambda t: t,
        "tree": lambda t: t * 3.0,
        "view": lambda t: t[1:],
        "reduction": lambda t: mb.sum(t),
        "reversed": lambda t: t[::-1],
    }[holder]
    held = hold(t)
    y = t * 2.0
    del t
    mb.materialize(y)
    expected = {
        "name": values, "tree": values * 3.0, "view": values[1:], "reduction": None, "reversed": values[::-1],
    }[holder]  # fmt: skip
    if expected is None:
        assert float(held) == pytest.approx(values.sum(), rel=1e-14)
    else:
        assert_same(held, expected)
    assert_same(y, values * 2.0)


def test_an_override_is_asked_on_a_card_too(values):
    x, z = mb.CuArray(values), mb.CuArray(np.zeros(N))
    z[...] = x * 2.0
    seen = []

    def mine(dest, src):
        seen.append(src)
        return mb.copyto.previous(dest, src)

    with mb.override(mb.copyto, (mb.CuArray, mb.ext.Broadcasted), mine):
        z[...] = x * 2.0
    assert len(seen) == 1


def test_explain_shows_the_kernel_that_runs(values):
    x = mb.CuArray(values)
    shown = mb.explain(x * 2.0 + 1.0)
    assert "load2_f8" in shown.source and "blocks of 256 threads" in shown.facts["runs as"]
    assert "shared" in mb.explain(mb.sum(x)).source
    assert "def tiles_add" in mb.explain(mb.CuArray(np.ones((40, 40))) + mb.CuArray(np.ones((40, 40))).T).source


@pytest.mark.parametrize("shape", [(1,), (7,), (300,), (1030,), (3, 5), (40, 70), (130, 300), (5, 7, 260)])
def test_threads_with_several_elements(shape, monkeypatch):
    """What cannot be read as vectors, in arrays small for a card, as for large ones."""
    from mirabelle.backends.gpu import run

    monkeypatch.setattr(run, "BUSY", 8)
    rng = np.random.default_rng(1)
    a, b = rng.random(shape), rng.random(shape)
    x, y = mb.CuArray(a), mb.CuArray(b)
    for f in (
        lambda x, y: x + y * 3,
        lambda x, y: x[1:] - y[:-1] * 5,
        lambda x, y: x[..., 1:] - y[..., :-1] * x[..., :-1],
        lambda x, y: x[::-1] + y * 7,
        lambda x, y: x[..., ::2] + 9,
        lambda x, y: x[..., :1] + y * 11,
    ):
        assert_same(f(x, y), f(a, b))


def test_single_elements_and_reductions_take_part_where_they_lie(values):
    x, y, z = mb.CuArray(values), mb.CuArray(values[::-1].copy()), mb.CuArray(np.zeros(N))
    z[...] = (x - y[3]) * mb.max(y) + y[3] * 2.0
    assert_same(z, (values - values[-4]) * values.max() + values[-4] * 2.0)
    z[1:] = x[1:] * x[0] - mb.sum(y * 0.0)
    assert_same(z[1:], values[1:] * values[0])
    x[...] = x * x[5]  # what is read is written
    assert_same(x, values * values[5])


def test_names_keep_what_they_were_though_their_array_is_written():
    a = np.random.default_rng(2).random(10)
    z = mb.CuArray(a)
    t = z * 2.0
    u = t + z
    z[...] = u
    z += 1.0
    assert_same(t, a * 2.0)
    assert_same(u, a * 2.0 + a)
    z = mb.CuArray(a)
    t = z[1:] * 2.0
    z[1:] = t + z[1:]
    z[1:] -= z[1:] * 0.5
    assert_same(t, a[1:] * 2.0)
    expected = a[1:] * 2.0 + a[1:]
    assert_same(z[1:], expected - expected * 0.5)


@pytest.mark.parametrize("seed", range(40))
def test_random_statements_on_parts(seed):
    rng = np.random.default_rng(seed)

    def part():
        i, j = (int(n) for n in rng.integers(0, 3, 2))
        return slice(i, i + 3), slice(j, j + 3)

    numpys = [rng.random((6, 7)) for _ in range(3)]
    ours = [mb.CuArray(x) for x in numpys]
    kept = []
    for _ in range(14):
        i, j, k = (int(n) for n in rng.integers(0, 3, 3))
        to, here, there = part(), part(), part()
        what, c = int(rng.integers(16)), float(rng.random())
        pair = []
        for xp, A in ((np, numpys), (mb, ours)):
            if what == 0:
                A[i][to] = A[j][here] * c + A[k][there]
            elif what == 1:
                A[i][to] += A[j][here] - A[i][there]
            elif what == 2:
                A[i][to] = c
            elif what == 3:
                A[i][to] = A[j][here]
            elif what == 4:
                A[i][...] = A[j] * A[k] + c
            elif what == 5:
                A[i] += A[j][2, 3] * A[k]
            elif what == 6:
                A[i][to] = A[j][1, 2]
            elif what == 7:
                A[i][2, :] = xp.sum(A[j], axis=0) / 6
            elif what == 8:
                A[i][to] *= c
            elif what == 9:
                A[i][...] = xp.minimum(A[i], A[i][:, 2, None] + A[j][3])
            elif what == 10:
                pair.append(A[i][to] * 2.0)
            elif what == 11:  # (columns and rows, of the same array or of others, in it or beside it)
                A[i][to] -= A[j][to[0], 5, None] * (A[k][4, to[1]] * c)
            elif what == 12:
                A[i][...] = A[j][:, :1] * xp.sqrt(xp.abs(A[k][2])) - A[i]
            elif what == 13:
                pair.append((A[j][0] * c)[None, :] - A[i])
            elif what == 14:
                held = A[i][to[0], 2, None] * (A[i][3, to[1]] * c)
                A[i][to] -= held
                pair.append(held * 1.0)
            else:
                pair.append(A[i] * c + A[j])
        kept.append(pair)
    for pair in [*kept, *zip(numpys, ours, strict=True)]:
        if pair:
            assert_same(pair[1], pair[0], rtol=1e-8)


def test_a_graph_does_not_write_over_what_it_reads(values):
    t = mb.CuArray(values)
    with mb.capture() as g:
        y = t * 2.0
        del t  # only the tree holds it now
    g.replay()
    g.replay()
    assert_same(y, values * 2.0)


def test_what_reads_memory_that_a_part_was_written_to():
    y = mb.CuArray([1.0, 2.0, 3.0]) * 1
    largest = mb.max(y)
    y[1:] = 9
    assert_same(mb.stack([largest + 1, mb.sum(y)]), np.array([4.0, 19.0]))


def test_bounds_that_are_arrays_of_one_number():
    x, n = mb.CuArray([1.0, 2.0, 3.0, 4.0]), mb.sum(mb.CuArray([1, 1]))
    for index in (np.s_[:n], np.s_[n:], np.s_[n:, None], np.s_[..., :n]):
        assert_same(x[index] + 0, mb.to_numpy(x)[index])
    with mb.allow_scalar():
        x[n:] = 7
    assert_same(x, np.array([1.0, 2.0, 7.0, 7.0]))


def test_writing_one_element_is_refused():
    x, y = mb.CuArray([1.0, 2.0]), mb.CuArray(np.ones((2, 2)))
    for write in (
        lambda: x.__setitem__(0, 5.0), lambda: x.__setitem__(np.int64(1), x[0]),
        lambda: y.__setitem__((0, 1), 5), lambda: y.__setitem__((0, ..., 1), 5),
        lambda: x.__setitem__((0, ...), 5),
    ):  # fmt: skip
        with pytest.raises(mb.ScalarAccessError, match="allow_scalar"):
            write()
    y[0, None] = 2.0
    y[1, ...] = 3.0
    assert_same(x, np.array([1.0, 2.0]))
    assert_same(y, np.array([[2.0, 2], [3, 3]]))


@pytest.mark.parametrize("seed", range(12))
def test_what_is_added_to_an_array_may_read_it(seed):
    """`x += f(x, y)`: held by Python, by a name, by a part of it or by nobody, in place or in other memory."""
    rng = np.random.default_rng(seed)
    said, shown, ours, theirs = [], [], mb.CuArray(rng.random(N)), None
    theirs, y = mb.to_numpy(ours), rng.random(N)
    b = mb.CuArray(y)
    for _ in range(25):
        c, how = float(rng.random()), int(rng.integers(7))
        if how == 0:
            ours += c * (b - ours)
            theirs += c * (y - theirs)
        elif how == 1:
            t, u = c * (b - ours), c * (y - theirs)
            ours += t
            theirs += u
            said.append((t, u))
        elif how == 2:
            ours *= ours * c + b
            theirs *= theirs * c + y
        elif how == 3:
            ours[...] = ours[::-1] * c
            theirs[...] = theirs[::-1] * c
        elif how == 4:
            ours[5:] += c * ours[:-5]
            theirs[5:] += c * theirs[:-5].copy()
        elif how == 5:
            shown.append((ours[3:], theirs[3:]))
        else:
            said.append((ours * c, theirs * c))
        for t, u in said[-2:]:
            np.testing.assert_allclose(mb.to_numpy(t), u, rtol=1e-13)
    for t, u in (*said, *shown, (ours, theirs)):
        np.testing.assert_allclose(mb.to_numpy(t), u, rtol=1e-13)


def test_an_array_that_is_added_to_is_known_again():
    """(Its operand is still held by Python, and reads it: the value goes to other memory, by the same plan.)"""
    x, b = mb.CuArray(np.zeros(N)), mb.CuArray(np.ones(N))
    before = None
    for turn in range(6):
        x += 0.5 * (b - x)
        before = len(direct._plans) if turn == 2 else before
    assert len(direct._plans) == before
    np.testing.assert_allclose(mb.to_numpy(x), 1 - 0.5**6)
