"""Maps: examples X15 to X17 of the design, composition and transposition against loops over lists, bad
input."""

import pickle

import numpy as np
import pytest

import mirabelle as mb
from mirabelle import meshdata as md

M = md.Mesh([[0, 0], [1, 0], [0, 1], [1, 1]], [[0, 1, 2], [1, 3, 2]])
RNG = np.random.default_rng(5)


def rows(target):
    return [target.row(p).tolist() for p in range(len(target))]


def random_map(source, targets, form):
    tables = {}
    for to in targets:
        if form == "fixed":
            given = RNG.integers(-1, to.size, (source.size, int(RNG.integers(0, 4))))
        else:
            given = md.ragged_rows([RNG.integers(-1, to.size, RNG.integers(0, 4)) for _ in range(source.size)])
        tables[to] = given
    return md.Map(source, tables)


def test_x15_gather_of_a_closure():
    closure = M.closure("cell")
    layout = {
        "cell": lambda p: [p],
        "edge": lambda p: [2 + 2 * p, 3 + 2 * p],
        "vertex": lambda p: [12 + p],
    }
    packed = [[d for n, ps in closure(c).items() for p in ps.tolist() for d in layout[n](p)] for c in (0, 1)]
    assert packed[0] == [0, 6, 7, 4, 5, 2, 3, 12, 13, 14]
    assert packed[1] == [1, 10, 11, 6, 7, 8, 9, 13, 15, 14]
    assert closure.arity == 7 and not closure.ragged


def test_x16_support_and_star():
    target = M.support("edge").target()
    assert target.rowptr.tolist() == [0, 1, 2, 4, 5, 6] and target.values.tolist() == [0, 0, 0, 1, 1, 1]
    assert target.rowptr.dtype == target.values.dtype == np.int32
    x = np.array([10, 20])
    assert np.add.reduceat(x[target.values], target.rowptr[:-1]).tolist() == [10, 10, 30, 20, 20]
    assert rows(M.support("vertex").target()) == [[0, 1], [0, 2, 3], [1, 2, 4], [3, 4]]
    star = M.star("vertex")
    assert [p.name for p in star.targets] == ["vertex", "edge", "cell"]
    assert star.target("edge").sizes.tolist() == [2, 3, 3, 2]
    assert star.target("cell").sizes.tolist() == [1, 2, 2, 1]
    assert sum(t.sizes for t in star.targets.values()).tolist() == [4, 6, 6, 4]


def test_x17_compositions():
    m = M.closure("cell", "vertex")(M.support("edge"))
    assert m.target().sizes.tolist() == [3, 3, 6, 3, 3]
    y = np.zeros(4, int)
    np.add.at(y, m.target().values, 1)
    assert y.tolist() == [3, 6, 6, 3] and m.target().values.size == 18

    p, q, r = md.Points("p", None, 3), md.Points("q", None, 3), md.Points("r", None, 4)
    f, g = md.Map(p, {q: [[1, 2], [0, 2], [0, 1]]}), md.Map(q, {r: [[0, 3], [3, 1], [2, 2]]})
    x = np.array([1, 10, 100, 1000])
    table = g(f).target().table
    assert x[table].sum(axis=1).tolist() == [1210, 1201, 2011]
    w = np.zeros(4, int)
    np.add.at(w, table, np.arange(1, 4)[:, None])
    assert w.tolist() == [5, 4, 6, 9]


@pytest.mark.parametrize("inner", ["fixed", "ragged"])
@pytest.mark.parametrize("outer", ["fixed", "ragged"])
@pytest.mark.parametrize("n", [0, 1, 7])
def test_compositions_against_lists(inner, outer, n):
    for _ in range(20):
        p, q, r, s = (
            md.Points(name, None, int(k)) for name, k in zip("pqrs", [n, *RNG.integers(1, 6, 3)], strict=True)
        )
        f, g = random_map(p, [q, s], inner), random_map(q, [r, s], outer)
        made = g(f)
        assert made.source == p and list(made.targets) == [r, s]
        for to in (r, s):
            arity = g.target(to).arity
            nothing = [] if arity is None else [-1] * arity
            expected = [
                [v for k in row for v in (nothing if k < 0 else g.target(to).row(k).tolist())]
                for row in rows(f.target(q))
            ]
            assert rows(made.target(to)) == expected
            assert made.target(to).ragged == ("ragged" in (inner, outer))
            assert made.target(to).values.dtype == np.int32
            assert not made.target(to).values.flags.writeable


@pytest.mark.parametrize("form", ["fixed", "ragged"])
@pytest.mark.parametrize("n", [0, 1, 9])
def test_transposed_and_renumbered_against_lists(form, n):
    for _ in range(20):
        p, q = md.Points("p", None, n), md.Points("q", None, int(RNG.integers(1, 6)))
        m = random_map(p, [q], form)
        found = rows(m.transposed().target())
        assert found == [
            [i for i, row in enumerate(rows(m.target())) for v in row if v == t] for t in range(q.size)
        ]
        a, b = RNG.permutation(n), RNG.permutation(q.size)
        new = m.renumbered({p: a, q: b})
        at = np.argsort(b).tolist()
        old = rows(m.target())
        assert rows(new.target()) == [[at[v] if v >= 0 else -1 for v in old[i]] for i in a]
        assert new.renumbered({p: np.argsort(a), q: np.argsort(b)}) == m


@pytest.mark.parametrize("form", ["fixed", "ragged"])
@pytest.mark.parametrize("n", [0, 1, 9])
def test_padded_against_lists(form, n):
    for more in (0, 2):
        p, q = md.Points("p", None, n), md.Points("q", None, 5)
        m = random_map(p, [q], form)
        given = rows(m.target())
        most = max([*map(len, given), m.arity or 0]) + more
        made = m.padded(most).target()
        assert not made.ragged and rows(made) == [row + [-1] * (most - len(row)) for row in given]
        assert made.table.shape == (n, most)


def test_x12_rows_and_targets_of_a_renumbered_map():
    points = md.Points("path", None, 6)
    edges = [(3, 0), (0, 4), (4, 1), (1, 5), (5, 2)]
    ends = [[b for a, b in edges + [(b, a) for a, b in edges] if a == p] for p in range(6)]
    m = md.Map(points, {points: md.ragged_rows(ends)})
    order = [2, 5, 1, 4, 0, 3]
    assert md.reverse_cuthill_mckee(m).tolist() in (order, order[::-1])
    assert np.argsort(order).tolist() == [4, 2, 0, 5, 3, 1]

    def bandwidth(m):
        return max(abs(p - int(v)) for p in range(6) for v in m(p))

    assert bandwidth(m) == 4 and bandwidth(m.renumbered({points: order})) == 1


def test_maps_are_values():
    m = M.star("vertex")
    again = pickle.loads(pickle.dumps(m))
    assert again == m and hash(again) == hash(m) and again != M.closure("cell")
    assert {m: 1}[again] == 1
    assert repr(m) == "Map(4 vertex -> 1 vertex, 10 edge, ragged, 6 cell, ragged)"
    with pytest.raises(ValueError, match="read-only"):
        m.target("edge").values[0] = 3
    table = np.array([[0, 1]])
    made = md.Map(md.Points("a", None, 1), {md.Points("b", None, 2): table})
    table[:] = 1
    assert made.target().table.tolist() == [[0, 1]]
    with pytest.raises(TypeError):
        made.targets[md.Points("c", None, 1)] = None


def test_calling_with_a_point():
    assert M.support("edge")(2).tolist() == [0, 1]
    p, q = md.Points("p", None, 2), md.Points("q", None, 2)
    assert md.Map(p, {q: [1, -1]})(1).tolist() == []
    assert {k: v.tolist() for k, v in M.closure("edge")(4).items()} == {"edge": [4], "vertex": [2, 3]}
    assert M.closure("cell").restrict("vertex", "edge").arity == 6


A, B = md.Points("a", None, 2), md.Points("b", None, 3)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: md.Map(A, {B: [[0, 1], [2, 3]]}), ValueError, "points outside: a 1 leads to 3"),
        (lambda: md.Map(A, {B: [[0, -2], [2, 1]]}), ValueError, "a 0 leads to -2"),
        (lambda: md.Map(A, {B: ([0, 1, 3], [0, 1, 5])}), ValueError, "a 1 leads to 5"),
        (lambda: md.Map(A, {B: [[0, 1]]}), ValueError, "one row for each of 2 points"),
        (lambda: md.Map(A, {B: [[0, 1], [2]]}), ValueError, "md.ragged_rows"),
        (lambda: md.Map(A, {B: [[0.0, 1.0], [2.0, 1.0]]}), TypeError, "integers"),
        (lambda: md.Map(A, {B: ([0, 2, 1], [0])}), ValueError, "rises from 0"),
        (lambda: md.Map(A, {B: ([0, 1], [0])}), ValueError, "a rowptr of 3 numbers"),
        (lambda: md.Map(A, {B: ([0], [0], [0])}), ValueError, "not 3 arrays"),
        (lambda: md.Map(A, {}), TypeError, "empty"),
        (lambda: md.Map(A, {"b": [[0], [1]]}), TypeError, "targets of a map are points"),
        (lambda: md.Map("a", {B: [[0], [1]]}), TypeError, "leads from points"),
        (lambda: md.Map(A, {B: [0, 1]})(md.Map(A, {B: [0, 1]})), ValueError, "do not follow each other"),
        (lambda: md.Map(A, {B: [0, 1]})(2), IndexError, "none of the 2 points"),
        (lambda: md.Map(A, {B: [0, 1]})("x"), TypeError, "called with"),
        (lambda: md.Map(A, {B: [0, 1]}).target("c"), KeyError, "not one target"),
        (lambda: M.closure("cell").target(), KeyError, "has to be named"),
        (lambda: md.Map(A, {B: [0, 1]}).renumbered({B: [0, 0, 1]}), ValueError, "leaves some out"),
        (lambda: md.Map(A, {B: [0, 1]}).renumbered({B: [0, 1]}), ValueError, "lists the old number"),
        (lambda: M.support("edge").padded(1), ValueError, "up to 2 entries"),
        (lambda: M.support("edge").padded("two"), ValueError, "no table of 'two' columns"),
        (lambda: list(md.Map(A, {B: [0, 1]})), TypeError, "point by point"),
    ],
)
def test_bad_input(make, error, text):
    with pytest.raises(error, match=text):
        make()


# Unions


@pytest.mark.parametrize("seed", range(40))
def test_unions_lead_where_both_do(seed):
    rng = np.random.default_rng(seed)
    n, sizes = int(rng.integers(0, 5)), rng.integers(1, 4, 3)
    source = md.Points("p", None, n)
    to = [md.Points("q", k, int(m)) for k, m in enumerate(sizes)]

    def some(points):
        if rng.integers(2):
            return rng.integers(-1, points.size, (n, int(rng.integers(0, 4))))
        return md.ragged_rows([rng.integers(-1, points.size, rng.integers(0, 4)) for _ in range(n)])

    f, g = (
        md.Map(source, {to[k]: some(to[k]) for k in rng.permutation(3)[: rng.integers(1, 4)]}) for _ in "fg"
    )
    both = f | g
    assert list(both.targets) == list(dict.fromkeys([*f.targets, *g.targets]))
    for points, target in both.targets.items():
        parts = [m.targets[points] for m in (f, g) if points in m.targets]
        assert target.ragged == any(p.ragged for p in parts)
        for p in range(n):
            assert target.row(p).tolist() == [i for part in parts for i in part.row(p).tolist()]


def test_unions_are_of_maps_that_start_alike():
    mesh = md.unit_square(1)
    with pytest.raises(ValueError, match="start from the same"):
        mesh.closure("cell") | mesh.closure("edge")
    with pytest.raises(TypeError):
        mesh.closure("cell") | [1]
    y, both = mb.zeros(4), mesh.closure("edge", "vertex") | mesh.closure("edge", "vertex")
    md.loop(mesh.points("edge"), twice_each, md.INC(y, both))
    assert y.tolist() == [4, 6, 6, 4]


def twice_each(y):
    for i in range(4):
        y[i] += 1
