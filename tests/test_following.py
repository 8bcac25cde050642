"""Following a program's lines: every event belongs to one, and nothing is left behind."""

import contextlib
import gc
import sys
import threading
import weakref

import pytest

import mirabelle as mb
from mirabelle.dispatch import linecounts
from mirabelle.dispatch.linecounts import LineCounts


def by_text(counts):
    import linecache

    return {linecache.getline(file, n).strip(): line for (file, n), line in counts.lines.items() if line.visits}


def test_visits_are_exact_whatever_is_called():
    x = mb.ones(8)

    def mine(v):
        return v + 1.0

    def numbers(n):
        yield from range(n)

    @contextlib.contextmanager
    def block():
        yield 1

    with LineCounts() as counts:
        for _ in numbers(50):
            with block():
                y = mb.roll(x, 1)
            z = mine(mb.append(x, 2.0))
            with contextlib.suppress(ValueError):
                mb.reshape(x, (3,))
            t = [float(v) for v in x[:2]]
    lines = by_text(counts)
    for text in (
        "y = mb.roll(x, 1)",
        "z = mine(mb.append(x, 2.0))",
        "return v + 1.0",
        "yield 1",
        "mb.reshape(x, (3,))",
    ):
        assert lines[text].visits == 50, text
    assert lines["t = [float(v) for v in x[:2]]"]["scalar_reads"] == 100 and t == [1.0, 1.0]
    assert y.shape == (8,) and z.shape == (9,)


def test_functions_of_ours_that_call_the_users_are_followed():
    def f(t):
        y = t * 3.0
        return y * t

    x = mb.HostArray([1.0, 2.0])
    with LineCounts() as counts:
        for _ in range(30):
            d = mb.autodiff.derivative(f, 2.0)
    lines = by_text(counts)
    assert lines["y = t * 3.0"].visits == 30 and float(d) == 12.0 and x.shape == (2,)


def test_errors_leave_it_on():
    x, caught = mb.ones(3), []
    with LineCounts() as counts:
        for _ in range(40):
            try:
                mb.linalg.solve(x, x)
            except Exception as e:
                caught.append(str(e))
            n = len(caught)
    lines = by_text(counts)
    assert lines["caught.append(str(e))"].visits >= 10 and lines["n = len(caught)"].visits >= 39 and n == 40


def test_errors_that_are_kept_leave_it_on_as_soon_as_something_is_counted():
    x, y, kept = mb.ones(3), mb.ones(4), []
    with LineCounts() as counts:
        for _ in range(40):
            try:
                mb.linalg.solve(x, x)
            except Exception as e:
                kept.append(e)
            y[0] = 2.0
            n = len(kept)
    lines = by_text(counts)
    assert lines["n = len(kept)"].visits >= 39 and n == 40 and y[0] == 2


def test_blocks_within_blocks_threads_and_tracers():
    assert sys.gettrace() is None
    seen = []

    def other():
        seen.append(sys.gettrace())

    with LineCounts() as outer:
        with LineCounts() as inner:
            a = 1
        b = 2
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        mine = sys.gettrace()
        sys.settrace(None)
        sys.settrace(mine)  # as debuggers do: from the next call on
        other()
        c = 3
    assert sys.gettrace() is None and seen[0] is None and (a, b, c) == (1, 2, 3)
    assert by_text(inner)["a = 1"].visits == 1
    assert by_text(outer)["b = 2"].visits == 1 and by_text(outer)["c = 3"].visits == 1


def test_blocks_that_end_in_any_order_or_not_at_all():
    x = mb.ones(3)
    outer, inner, lost = LineCounts(), LineCounts(), LineCounts()
    outer.__enter__()
    inner.__enter__()
    outer.__exit__()
    del outer
    gc.collect()
    x[0] = 2.0
    inner.__exit__()
    sys.settrace(None)
    follower = linecounts.in_c.Follower(linecounts._kind)
    with mb.count() as c:
        follower.start(c)
        x[1] = 2.0
        with pytest.raises(RuntimeError):
            follower.start(c)
        sys.settrace(None)
        del follower, lost
        gc.collect()
        x[2] = 2.0
    assert mb.to_numpy(x).tolist() == [2.0] * 3 and sys.gettrace() is None


def test_nothing_is_left_behind():
    x = mb.ones(100)

    def run():
        held = mb.zeros(100)
        with LineCounts() as counts:
            for _ in range(30):
                y = mb.roll(x, 1) + held
        return weakref.ref(counts), weakref.ref(y)

    for _ in range(3):
        gone = run()
    gc.collect()
    assert all(r() is None for r in gone) and sys.gettrace() is None
    follower = linecounts.in_c.Follower(linecounts._kind)
    assert follower.place() is None and follower.stop() is None and follower.lines() == []
    with pytest.raises(TypeError):
        linecounts.in_c.Follower()
    with pytest.raises(AttributeError), mb.count():
        linecounts.add(nothing=1)


def test_outer_blocks_count_what_the_program_does_and_not_what_measures():
    x = mb.ones(8)
    linecounts._costs.cache_clear()
    with mb.count() as c, LineCounts():
        for i in range(5):
            float(x[i])
    assert (c.scalar_reads, c.launches) == (5, 0)


def test_functions_of_ours_are_let_alone():
    x = mb.ones(8)
    with mb.count() as counters:
        follower = linecounts.in_c.Follower(linecounts._kind)
        follower.start(counters)
        for _ in range(400):
            y = mb.roll(x, 1)
        follower.stop()
    ((visits, events),) = [(n, m) for code, _, _, n, m, *_ in follower.lines() if n == 400]
    assert events < 8 * visits and y.shape == (8,)


def test_threads_are_followed_each_by_its_own():
    def work(n, found):
        with LineCounts() as counts:
            for _ in range(n):
                a = mb.ones(2)
        found.append((n, by_text(counts)["a = mb.ones(2)"].visits, a.shape))

    found: list = []
    threads = [threading.Thread(target=work, args=(n, found)) for n in (300, 400, 500)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [(n, n, (2,)) for n in (300, 400, 500)]


@pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="sys.monitoring came with Python 3.12")
def test_other_tools_are_let_alone():
    m, seen = sys.monitoring, []
    free = [tool for tool in range(6) if m.get_tool(tool) is None]

    def added(a):
        return a + 1

    for tool in free[1:]:
        m.use_tool_id(tool, "other")
    other = free[-1]
    m.register_callback(other, m.events.PY_START, lambda code, offset: seen.append(code.co_name) or m.DISABLE)
    m.set_events(other, m.events.PY_START)
    try:
        for _ in range(2):
            with LineCounts() as counts:
                a = added(1)
        assert by_text(counts)["a = added(1)"].visits == 1 and "added" in seen and a == 2
        m.use_tool_id(free[0], "one more")
        with pytest.raises(RuntimeError, match="Run the program without them"), LineCounts():
            pass
        m.free_tool_id(free[0])
        assert [m.get_tool(tool) for tool in free[:2]] == [None, "other"][: len(free)]
    finally:
        m.set_events(other, 0)
        for tool in free[1:]:
            m.free_tool_id(tool)
    with LineCounts() as counts:
        b = added(a)
    assert by_text(counts)["b = added(a)"].visits == 1 and b == 3
