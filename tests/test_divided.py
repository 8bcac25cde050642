"""Programs over processes: when messages travel, and what is sent."""

import itertools

import numpy as np
import pytest

import mirabelle as mb
from mirabelle.arraytypes.programs.divided import DividedPlan
from mirabelle.arraytypes.programs.dividedplans import points as grouped
from mirabelle.arraytypes.programs.dividedvalues import Epoch
from mirabelle.backends.host import kernels

D = mb.DArray[mb.HostArray]


@pytest.mark.parametrize(
    ("spans", "points"),
    [
        ([], []),
        # (ready after, needed by)
        ([(-1, 0)], [(0, 0, "a")]),
        ([(-1, 0), (-1, 5)], [(0, 0, "ab")]),
        ([(-1, 3), (2, 4)], [(3, 3, "ab")]),
        ([(-1, 3), (3, 4)], [(0, 3, "a"), (4, 4, "b")]),
        ([(4, 9), (-1, 3), (3, 12)], [(0, 3, "b"), (5, 9, "ac")]),
    ],
)
def test_what_is_ready_travels_with_what_is_needed_first(spans, points):
    named = [(ready, needed, name) for (ready, needed), name in zip(spans, "abc", strict=False)]
    assert [(a, b, "".join(members)) for a, b, members in grouped(named)] == points


def test_points_are_as_few_as_can_be():
    rng = np.random.default_rng(0)
    for _ in range(200):
        spans = []
        for k in range(rng.integers(1, 9)):
            ready = int(rng.integers(-1, 10))
            spans.append((ready, ready + 1 + int(rng.integers(0, 6)), k))
        found = grouped(spans)
        members = [k for _, _, some in found for k in some]
        assert sorted(members) == list(range(len(spans)))
        for start, end, some in found:
            assert start <= end and all(spans[k][0] < start and end <= spans[k][1] for k in some)
        # What opens a point was not ready before the one before it ended.
        for (_, before, _), (_, end, some) in itertools.pairwise(found):
            assert any(spans[k][0] >= before and spans[k][1] == end for k in some)


def test_boxes_for_one_process_become_one_unless_that_is_much_more():
    e = Epoch(0, -1)
    e.pieces[0, 1] = [((3, 4), (0, 9)), ((3, 4), (1, 10)), ((3, 4), (2, 3))]
    e.pieces[1, 0] = [((0, 1), (0, 9)), ((8, 9), (0, 9))]
    e.settle()
    assert e.pieces[0, 1] == [((3, 4), (0, 10))]
    assert e.pieces[1, 0] == [((0, 1), (0, 9)), ((8, 9), (0, 9))]


def smoothed(u, v):
    v[1:-1] = 0.5 * (u[2:] + u[:-2])
    u[1:-1] = 0.5 * (v[2:] + v[:-2])
    return (u * v).sum(), u.max()


def test_one_process_has_a_plan_of_its_own_memory():
    plain = [np.linspace(0.0, 1.0, 40), np.zeros(40)]
    arrays = [D(x) for x in plain]
    program = mb.compile(smoothed)
    assert "made when it is known" in str(program.explain(*arrays))
    for _ in range(3):
        found, wanted = program(*arrays), smoothed(*plain)
        kernels.settle()
        assert all(np.allclose(mb.to_numpy(a), b) for a, b in zip(found, wanted, strict=True))
        assert all(np.allclose(mb.to_numpy(a), b) for a, b in zip(arrays, plain, strict=True))
    (made,) = program.programs.values()
    assert isinstance(made.runner, DividedPlan) and len(made.runner.segments) == 1
    assert "by a plan of each process" in str(program.explain(*arrays))
    with mb.count() as c:
        program(*arrays)
    assert (c.messages, c.collectives) == (0, 0)


def test_products_and_routines_lie_between_plans():
    def f(a, b):
        c = (a + 1) @ (b * 2)
        return mb.sort(c - c.mean(), axis=0) + a

    a, b = np.random.default_rng(0).random((2, 12, 12))
    program = mb.compile(f)
    for _ in range(2):
        found = program(D(a), D(b))
    wanted = (a + 1) @ (b * 2)
    assert np.allclose(mb.to_numpy(found), np.sort(wanted - wanted.mean(), axis=0) + a)
    assert "1 call beside" in str(program.explain(D(a), D(b)))


def test_arguments_that_show_others():
    f = mb.compile(lambda x, y: x[1:] + y)
    x = D(np.arange(12.0))
    for _ in range(2):
        assert np.array_equal(mb.to_numpy(f(x[2:8], x[0:5])), np.arange(12.0)[3:8] + np.arange(5.0))


def test_nothing_is_lost_where_an_argument_is_read_elsewhere():
    """What waits for the old contents of an array that a program writes to keeps them."""
    x, y = D(np.arange(6.0)), D(np.ones(6))

    def f(x, y):
        x[1:] = y[:-1] + x[1:]

    waiting = x * 10
    old = mb.copy(x)
    mb.compile(f)(x, y)
    assert np.array_equal(mb.to_numpy(waiting), np.arange(6.0) * 10)
    assert np.array_equal(mb.to_numpy(old), np.arange(6.0))
    assert np.array_equal(mb.to_numpy(x), [0, 2, 3, 4, 5, 6])


def test_parts_of_one_process_are_values_of_programs():
    """(Of several processes: tests/mpi_programs/parthalos.py.)"""

    def rising(x):
        return x.halo(1, wrap=True) * 2

    def inner(h):
        return h[2:] - h[:-2]

    def whole(x):
        h = x.halo(1, wrap=True)
        return mb.DArray.from_local(inner(h), x.layout), {"sum": mb.sum(x)}

    x = D([1.0, 2.0, 4.0])
    compiled = mb.compile(rising)
    for _ in range(2):
        made = compiled(x)
        assert type(made).family is mb.HostArray
        assert np.array_equal(mb.to_numpy(made), [8.0, 2.0, 4.0, 8.0, 2.0])
    assert "rising in test_divided.py" in str(compiled.explain(x))
    made, sums = mb.compile(whole)(x)
    assert type(made) is type(x) and np.array_equal(mb.to_numpy(made), [-2.0, 3.0, -1.0])
    assert float(sums["sum"]) == 7.0
    assert np.array_equal(mb.to_numpy(mb.compile(inner)(x.halo(1, wrap=True))), [-2.0, 3.0, -1.0])


def test_results_of_parts_share_no_memory_with_arguments():
    x = D([1.0, 2.0, 4.0])
    part, again, same = mb.compile(lambda x: (x.local, x, x.halo(0)))(x)
    x[:1] = 9.0
    for y in (part, again, same):
        assert np.array_equal(mb.to_numpy(y), [1.0, 2.0, 4.0])


def test_programs_of_parts_do_not_write_to_arguments():
    def writing(x):
        h = x.halo(1, wrap=True)
        x[...] = 0.0
        return h

    x = D([1.0, 2.0, 4.0])
    with pytest.raises(mb.compiling.TraceError, match=r"from_local\(part, x.layout\)"):
        mb.compile(writing, whole=True)(x)
    assert np.array_equal(mb.to_numpy(mb.compile(writing)(x)), [4.0, 1.0, 2.0, 4.0, 1.0])
    assert np.array_equal(mb.to_numpy(x), [0.0, 0.0, 0.0])


def test_parts_of_structured_arrays():
    k = mb.Kronecker(D(np.eye(2)), D(2 * np.eye(2)))
    halo, product = mb.compile(lambda x, k: (x.halo(1), k @ x), whole=True)(D([1.0, 2.0, 3.0, 4.0]), k)
    assert mb.to_numpy(halo).tolist() == [1, 2, 3, 4] and mb.to_numpy(product).tolist() == [2, 4, 6, 8]
