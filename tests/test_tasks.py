"""Task lists: what native code runs is what plans run from Python, to the last bit."""

import os
import threading
import time

import numpy as np
import pytest
from children import answer

import mirabelle as mb
from mirabelle.arraytypes.dense import wrap
from mirabelle.backends.codegen.program import program_for
from mirabelle.backends.host import layout, run, tasks, threads
from mirabelle.backends.host.reduce import ReductionPlan
from mirabelle.backends.host.tasks import TaskList
from mirabelle.dispatch.schedule import schedule, schedule_reduction
from mirabelle.dispatch.tree import Leaf

pytestmark = pytest.mark.usefixtures("trees")

rng = np.random.default_rng(7)
THREADS = (1, 2, 4)


@pytest.fixture(autouse=True)
def compiled():
    with mb.settings.changed(compiler="inline", num_threads=2):
        yield


class Recorder:
    """A task list over some NumPy arrays, and its statements as functions of NumPy."""

    def __init__(self, *memory):
        self.memory = list(memory)
        self.tasks = TaskList(len(memory))

    def place(self, view):
        for slot, whole in enumerate(self.memory):
            low, high = np.lib.array_utils.byte_bounds(whole)
            if low <= view.ctypes.data < high:
                return slot, view.ctypes.data - whole.ctypes.data
        raise AssertionError("not in memory")

    def write(self, out, expression, after=None):
        """`out` becomes `expression`, a pending HostArray over views of the memory."""
        request = schedule(expression._node, run.force_host, store=False)
        program = program_for(request, (out.dtype,))
        views = [leaf.view for leaf in request.leaves]
        arrangement = layout.arrange(out.shape, [out, *views])
        entry = run.compiled(program, arrangement, views, [out], wait=True)
        assert entry is not None
        places = [self.place(v) for v in (out, *views)]
        return self.tasks.launch(program, entry, arrangement, places, request.scalars, after)

    def reduce(self, outs, reduced, after=None):
        """Reductions of one tree go to `outs`, in the order of memory; returns what the plan makes."""
        nodes = [r._node for r in reduced]
        request = schedule_reduction(nodes[0].operand, nodes, run.force_host)
        program = program_for(request, tuple(r.dtype for r in nodes))
        views = [leaf.view for leaf in request.leaves]
        plan = ReductionPlan(program, request.shape, nodes[0].axes, nodes, [], views)
        assert plan.ready(wait=True)
        places = [self.place(v) for v in views]
        self.tasks.reduce(plan, [self.place(o) for o in outs], places, request.scalars, after)
        return plan, request.scalars, views

    def run(self, times=1, memory=None):
        self.tasks.run([m.ctypes.data for m in memory or self.memory], times)


def host(view):
    """An array in this memory, as one of mirabelle's own: nothing of it is computed at once."""
    return wrap(mb.HostArray, Leaf(view))


@pytest.mark.parametrize("n_threads", THREADS)
@pytest.mark.parametrize("shape", [(1,), (7, 5), (300, 40), (513, 700)])
def test_statements_of_several_layouts(shape, n_threads):
    x = rng.random((*shape[:-1], 2 * shape[-1]))
    y = rng.random(shape[::-1])
    row = rng.random(shape[-1:])
    a, b, c, d = (np.zeros(shape) for _ in range(4))
    e = np.zeros((*shape[:-1], 3 * shape[-1]))
    r = Recorder(x, y, row, a, b, c, d, e)
    strided, transposed = x[..., ::2], y.T
    r.write(a, host(strided) * 2 + host(row))
    r.write(b, host(transposed) - host(a))
    r.write(c, mb.exp(host(b)) * host(a))
    r.write(d, host(c)[..., ::-1] + 1.5)
    r.write(e[..., 1::3], host(d) // 0.25)
    with mb.settings.changed(num_threads=n_threads, thread_size=1 << 10):
        for _ in range(3):
            for out in (a, b, c, d, e):
                out[...] = -1
            r.run()
            np.testing.assert_array_equal(a, strided * 2 + row)
            np.testing.assert_array_equal(b, transposed - a)
            np.testing.assert_array_equal(c, np.exp(b) * a)
            np.testing.assert_array_equal(d, c[..., ::-1] + 1.5)
            np.testing.assert_array_equal(e[..., 1::3], d // 0.25)
            assert (e[..., ::3] == -1).all()


@pytest.mark.parametrize("n_threads", THREADS)
@pytest.mark.parametrize("n", [18, 400])
def test_a_thousand_statements_each_reading_what_the_one_before_wrote(n, n_threads):
    x = rng.random((n, n))
    y = x.copy()
    expected = [x.copy(), y.copy()]

    def step(new, old):
        inside = old[1:-1, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:] + old[2:, 1:-1] + old[:-2, 1:-1]
        return new[1:-1, 1:-1], 0.2 * inside

    r = Recorder(x, y)
    count = 1000 if n < 100 else 60
    for k in range(count):
        old, new = (x, y) if k % 2 == 0 else (y, x)
        out, _ = step(new, old)
        _, tree = step(new, host(old))
        r.write(out, tree)
        old, new = expected if k % 2 == 0 else expected[::-1]
        out, value = step(new, old)
        out[...] = value
    with mb.settings.changed(num_threads=n_threads):
        r.run()
    np.testing.assert_array_equal(x, expected[0])
    np.testing.assert_array_equal(y, expected[1])


def test_repetitions_and_many_runs_with_any_number_of_threads():
    x = np.zeros(1 << 15)
    y = np.zeros(1 << 15)
    r = Recorder(x, y)
    r.write(y, host(x) + 1.0)
    r.write(x, host(y) * 1.0)
    with mb.settings.changed(thread_size=1 << 10):
        total = 0
        for n_threads in (2, 1, 4, 2):
            with mb.settings.changed(num_threads=n_threads):
                for times in (1, 2, 5, 1, 1, 100, 0, 3):
                    r.run(times)
                    total += times
                    assert (x == total).all()
                for _ in range(200):
                    r.run()
                total += 200
                assert (x == total).all()


def test_two_python_threads_share_a_list():
    x = np.zeros(1 << 14)
    r = Recorder(x)
    r.write(x, host(x) + 1.0)
    others = [np.zeros(1 << 14) for _ in range(2)]

    def work(k):
        for _ in range(100):
            r.run(memory=[others[k]])

    with mb.settings.changed(thread_size=1 << 10):
        workers = [threading.Thread(target=work, args=(k,)) for k in range(2)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
    assert (x == 0).all()
    assert all((o == 100).all() for o in others)


def test_independent_statements_overlap():
    n = 1 << 13
    x = rng.random(n)
    outs = [np.zeros(n) for _ in range(6)]
    total = np.zeros(n)
    r = Recorder(x, *outs, total)
    numbers = [r.write(o, host(x) * float(k), after=()) for k, o in enumerate(outs)]
    assert numbers == list(range(6))
    r.write(outs[0], host(outs[0]) + host(outs[1]), after=numbers[:2])
    r.write(total, host(outs[0]) + host(outs[5]))
    with mb.settings.changed(thread_size=1 << 10):
        for _ in range(50):
            r.run()
            for k in range(1, 6):
                np.testing.assert_array_equal(outs[k], x * float(k))
            np.testing.assert_array_equal(outs[0], x * 0.0 + x * 1.0)
            np.testing.assert_array_equal(total, outs[0] + x * 5.0)


REDUCED = [
    ((5,), None), ((300_000,), None), ((3, 4), 0), ((3, 4), 1), ((700, 900), 0), ((700, 900), 1),
    ((700, 900), None), ((4, 70_000), 1), ((90_000, 6), 0), ((90_000, 6), 1), ((40, 50, 60), 1),
    ((40, 50, 60), (0, 2)), ((40, 50, 60), (0, 1)), ((40, 50, 60), 2), ((3, 100_000, 2), 1), ((2, 3, 1), 0),
]  # fmt: skip


@pytest.mark.parametrize("n_threads", THREADS)
@pytest.mark.parametrize(("shape", "axis"), REDUCED)
def test_reductions_have_the_bits_of_their_plans(shape, axis, n_threads):
    x = rng.random(shape) - 0.5
    mask = np.zeros(shape, bool)
    mask[(0,) * len(shape)] = True
    kinds = [
        (x, lambda: [mb.sum(host(x) * 1.1, axis=axis)]),
        (x, lambda: [mb.max(mb.exp(host(x)), axis=axis)]),
        (mask, lambda: [mb.any(mb.logical_or(host(mask), False), axis=axis)]),
        (x.astype("f4"), None),
        (x.astype("c16") * (1 + 2j), None),
    ]
    with mb.settings.changed(num_threads=n_threads, immediate_size=0):
        for operand, make in kinds:
            reduced = make() if make else [mb.sum(host(operand) + 1, axis=axis)]
            check_reductions(operand, reduced)
        tree = host(x) + 1.0
        check_reductions(x, [mb.sum(tree, axis=axis), mb.prod(tree, axis=axis), mb.min(tree, axis=axis)])


def check_reductions(operand, reduced):
    outs = [np.zeros(r.shape or (1,), r.dtype) for r in reduced]
    r = Recorder(operand, *outs)
    plan, scalars, views = r.reduce(outs, reduced)
    expected = plan.run(scalars, [], views)
    for _ in range(2):
        for out in outs:
            out[...] = 1
        r.run(2)
        for out, e in zip(outs, expected, strict=True):
            assert out.tobytes() == e.astype(out.dtype).tobytes()


def test_chains_of_statements_and_reductions():
    n = 1000
    x, y, total = rng.random((n, n)), np.zeros((n, n)), np.zeros(n)
    r = Recorder(x, y, total)
    before = x.copy()
    r.write(y, host(x) * 2.0)
    plan, scalars, _ = r.reduce([total], [mb.sum(host(y) * 1.0, axis=1)])
    r.write(x, host(y) / host(total)[:, None])
    r.run()
    (sums,) = plan.run(scalars, [], [before * 2.0])
    np.testing.assert_array_equal(total, sums.ravel())
    np.testing.assert_array_equal(x, before * 2.0 / sums)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_reduction_that_also_stores_its_operand(axis):
    x, y, total = rng.random((500, 700)), np.zeros((500, 700)), np.zeros((500, 700)[1 - axis])
    node = mb.sum(host(x) * 3.0, axis=axis)._node
    request = schedule_reduction(node.operand, [node], run.force_host)
    steps, refs = request.key
    request.key = (steps, refs * 2)
    program = program_for(request, (node.dtype, y.dtype))
    plan = ReductionPlan(program, request.shape, node.axes, [node], [y], [x])
    tasks = TaskList(3)
    tasks.reduce(plan, [(2, 0)], [(1, 0), (0, 0)], request.scalars)
    tasks.run([a.ctypes.data for a in (x, y, total)])
    np.testing.assert_array_equal(y, x * 3.0)
    y[...] = 0
    (expected,) = plan.run(request.scalars, [y], [x])
    assert total.tobytes() == expected.tobytes()


def test_other_statements_do_not_wait_for_threads_that_are_in_a_list():
    x = np.zeros(1 << 14)
    r = Recorder(x)
    r.write(x, host(x) + 1.0)
    stop = False

    def work():
        while not stop:
            r.run(2000)

    with mb.settings.changed(thread_size=1 << 10):
        worker = threading.Thread(target=work)
        worker.start()
        try:
            y = mb.HostArray(np.arange(1 << 16) * 1.0)
            for _ in range(50):
                np.testing.assert_array_equal(mb.to_numpy(y * 2.0 + 1.0), np.arange(1 << 16) * 2.0 + 1.0)
        finally:
            stop = True
            worker.join()
    assert (x == x[0]).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forking a process that has threads
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # JAX's, where another test has imported it
@pytest.mark.parametrize("busy", [False, True])
def test_a_forked_child_runs_the_lists_of_its_parent(busy):
    x = np.zeros(1 << 14)
    r = Recorder(x)
    r.write(x, host(x) + 1.0)
    with mb.settings.changed(thread_size=1 << 10):
        r.run(10)
        worker = threading.Thread(target=r.run, args=(20_000,))
        if busy:
            worker.start()
        for _ in range(5):
            child = os.fork()
            if not child:
                mine = np.zeros(1 << 14)
                for _ in range(20):
                    r.run(5, [mine])
                os._exit(0 if (mine == 100).all() else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        if busy:
            worker.join()
    assert (x == (20_010 if busy else 10)).all()


def test_copies_and_fills():
    for n in (0, 5, 300_000):
        x, y = rng.random(n + 2), np.zeros(n + 2)
        r = Recorder(x, y)
        r.tasks.copy((1, 8), (0, 8), 8 * n)
        r.run()
        np.testing.assert_array_equal(y[1:-1], x[1:-1])
        assert y[0] == y[-1] == 0
        for dtype in ("?", "i2", "f4", "f8", "c16"):
            z = np.zeros(n + 2, dtype)
            r = Recorder(z)
            r.tasks.fill((0, z.itemsize), 3, dtype, n)
            r.run()
            assert (z[1:-1] == np.asarray(3, dtype)).all()
            assert z[0] == z[-1] == 0


def test_the_addresses_of_each_run():
    x = np.zeros(100)
    r = Recorder(x, np.zeros(100))
    r.write(x, host(r.memory[1]) * 3.0)
    for k in range(20):
        memory = [np.zeros(100), np.full(100, float(k))]
        r.run(memory=memory)
        assert (memory[0] == 3.0 * k).all()
    assert (x == 0).all()
    with pytest.raises(ValueError, match="2 slots, and 1"):
        r.tasks.run([x.ctypes.data])


def test_no_statements():
    TaskList(0).run([])
    x = np.zeros((3, 0))
    r = Recorder(x)
    r.run(5)


@pytest.mark.parametrize("n", [10, 1 << 14])
def test_what_a_users_function_raises_ends_the_run(n):
    def risky(v):
        if v > 100.0:
            raise ValueError("too large")
        return v + 1.0

    x, y, z = np.zeros(n), np.zeros(n), np.zeros(n)
    r = Recorder(x, y, z)
    r.write(y, mb.broadcast(risky, host(x)))
    r.write(z, host(y) + 1.0)
    with mb.settings.changed(thread_size=1 << 10):
        r.run()
        assert (z == 2).all()
        x[-1] = 1000.0
        for _ in range(3):
            z[...] = -1
            with pytest.raises(mb.UserFunctionError, match="risky"):
                r.run(4)
            assert (z == -1).all()
        x[-1] = 2.0
        r.run(4)
        assert z[-1] == 4


def test_what_cannot_be_compiled_says_what_to_do():
    x = np.zeros(10, "f2")
    node = mb.sum(host(x) + 1)._node
    request = schedule_reduction(node.operand, [node], run.force_host)
    program = program_for(request, (node.dtype,))
    plan = ReductionPlan(program, (10,), node.axes, [node], [], [x])
    assert not plan.ready(wait=True)
    with pytest.raises(ValueError, match=r"plan\.run"):
        TaskList(2).reduce(plan, [(1, 0)], [(0, 0)], [])
    with pytest.raises(ValueError, match="no slot 7"):
        TaskList(2).copy((7, 0), (0, 0), 8)


def test_helpers_stand_by_for_the_next_list_and_go():
    from mirabelle.backends.host import threads

    x, y = np.arange(1 << 16, dtype=float), np.zeros(1 << 16)
    r = Recorder(x, y)
    r.write(y, mb.sin(host(x)) + host(y))
    for k in range(200):
        r.run()
        if k % 50 == 49:  # an ordinary statement wants those who stand by
            assert np.array_equal(mb.to_numpy(mb.HostArray(x) * 2.0), x * 2.0)
    assert np.allclose(y, 200 * np.sin(x))
    deadline = time.monotonic() + 30
    while threads.standing() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not threads.standing()


AT_THE_END = """
    import atexit, json, threading

    def last():
        own = [t for t in threading.enumerate() if t.name.startswith("mirabelle-")]
        print(json.dumps([started > 0, len(own), bool(mb.all(f(x) == y))]))

    atexit.register(last)  # before mirabelle's own, so that it runs after that
    import numpy as np
    import mirabelle as mb
    from mirabelle.backends.host import threads

    f = mb.compile(lambda x: mb.sin(x) * 2.0)
    x = mb.HostArray(np.arange(1 << 18, dtype=float))
    for _ in range(9):
        y = f(x)
    started = threads.started()
"""


def test_at_the_end_threads_are_gone_and_statements_still_run():
    assert answer(AT_THE_END, compiler="inline", num_threads=3) == [True, 0, True]


@pytest.mark.parametrize("rows, inner", [(1, 250000), (1, 40000), (3, 100000), (700, 333), (5, 7), (64, 64)])
@pytest.mark.parametrize("granule", [1, 64])
def test_pieces_are_alike_and_cover_the_whole(rows, inner, granule):
    for each in (1, 3, 8):
        pieces = run.split(rows, inner, granule, each)
        seen = np.zeros((rows, inner), int)
        for lo, hi, first, last in pieces:
            seen[lo:hi, first:last] += 1
        assert (seen == 1).all()
        sizes = [(hi - lo) * (last - first) for lo, hi, first, last in pieces]
        if granule == 1 and rows == 1 and inner > 1 << 15:
            assert len(pieces) % 2 == 0 and max(sizes) - min(sizes) <= 2 * 1024 * len(pieces)


def eager_statements():
    """Results of statements large enough for several threads, and NumPy's."""
    a = rng.standard_normal((300, 700))
    z = a + 1j * a[::-1]
    x, y = mb.HostArray(a), mb.HostArray(z)
    pairs = [
        (mb.abs(y) < 2.0, np.abs(z) < 2.0),
        (x * 2.0 + mb.sin(x), a * 2.0 + np.sin(a)),
        (mb.sum(x * x, axis=0), np.sum(a * a, axis=0)),
        (mb.max(x, axis=1), np.max(a, axis=1)),
        (mb.sum(y), np.sum(z)),
    ]
    return [(np.asarray(ours), theirs) for ours, theirs in pairs]


def test_pieces_of_a_statement_run_natively(monkeypatch):
    by_python = []
    monkeypatch.setattr(threads, "run_all", lambda pieces: by_python.append(pieces))
    with mb.settings.changed(thread_size=1 << 10):
        for _ in range(3):
            for ours, theirs in eager_statements():
                assert np.allclose(ours, theirs, rtol=1e-14)
    assert not by_python


def test_statements_of_several_callers_at_once():
    wrong = []

    def call():
        for _ in range(5):
            wrong.extend(1 for ours, theirs in eager_statements() if not np.allclose(ours, theirs))

    with mb.settings.changed(thread_size=1 << 10, num_threads=3):
        call()
        callers = [threading.Thread(target=call) for _ in range(3)]
        for c in callers:
            c.start()
        for c in callers:
            c.join()
    assert not wrong


def test_nobody_is_woken_up_for_little(monkeypatch):
    asked = []
    shared, several = tasks.Pieces.run, threads.run_all
    monkeypatch.setattr(tasks.Pieces, "run", lambda *a: asked.append(1) or shared(*a))
    monkeypatch.setattr(threads, "run_all", lambda *a: asked.append(1) or several(*a))
    monkeypatch.setattr(threads, "standing", lambda *_: 0)
    x = mb.HostArray(np.ones(1 << 17))
    with mb.settings.changed(thread_size=1 << 16, num_threads=2, compile_after=1):
        for pause in (0.0, 0.002):
            mb.materialize(x * 2.0 + 1.0)
            asked.clear()
            monkeypatch.setattr(run, "_SOON", 1e-3 if pause else 10.0)
            time.sleep(pause)
            mb.materialize(x * 2.0 + 1.0)
            # (Of statements that follow one another the next one finds who was woken up.)
            assert len(asked) == (0 if pause else 1)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads cannot be told where to run")
def test_threads_that_are_woken_up_keep_off_the_callers_processor(monkeypatch):
    processors = os.sched_getaffinity(os.getpid())
    if len(processors) < 2:
        pytest.skip("there is one processor")
    here = min(processors)
    monkeypatch.setattr(threads, "processor", lambda: here)
    monkeypatch.setattr(threads, "_FEW_PROCESSORS", 1 << 10)
    monkeypatch.setattr(threads, "standing", lambda *_: 0)  # who stands by is awake
    threads._kept_off.clear()
    moved = []
    monkeypatch.setattr(os, "sched_setaffinity", lambda thread, where: moved.append((thread, where)))
    threads.run_all([lambda: None] * 4)
    own = {t.native_id for t in threads._threads}
    assert own and {t for t, where in moved if where == processors - {here}} <= own
    assert any(where == processors - {here} for _, where in moved)
    # Once they are awake they may run anywhere, as the caller may all the time.
    give_up = time.monotonic() + 5.0
    while (0, processors) not in moved:
        assert time.monotonic() < give_up
        threads.run_all([lambda: time.sleep(0.001)] * 4)
    # Where there is no other processor nothing is asked for.
    moved.clear()
    threads._kept_off.clear()
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {here})
    threads.run_all([lambda: None] * 4)
    assert not moved


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads cannot be told where to run")
def test_where_threads_may_not_be_told_statements_run_all_the_same(monkeypatch):
    def forbidden(*_):
        raise PermissionError("not here")

    monkeypatch.setattr(os, "sched_setaffinity", forbidden)
    monkeypatch.setattr(os, "sched_getaffinity", forbidden)
    monkeypatch.setattr(threads, "standing", lambda *_: 0)
    threads._kept_off.clear()
    done = []
    threads.run_all([lambda: done.append(1)] * 4)
    assert len(done) == 4


def test_who_is_asked_for_help_is_asked_once_however_long_it_does_not_come():
    """Callers take back what nobody came to: never more tasks wait than helpers are wanted."""
    began, go = [threading.Semaphore(0) for _ in range(2)]
    most = []

    def busy():
        began.release()
        go.acquire()

    def piece():
        most.append(len(threads._tasks))

    with mb.settings.changed(num_threads=3):
        helpers = 2
        callers = [threading.Thread(target=threads.run_all, args=([busy] * 3,)) for _ in range(4)]
        for c in callers:
            c.start()
        for _ in range(len(callers) + helpers):  # until all are in a piece
            assert began.acquire(timeout=30)
        waiting = len(threads._tasks)
        for _ in range(50):
            threads.run_all([piece] * 8)
            assert len(threads._tasks) == waiting
            assert threads._wake.qsize() <= len(threads._threads)
        assert len(most) == 400 and max(most) <= waiting + helpers
        for _ in range(3 * len(callers)):
            go.release()
        for c in callers:
            c.join()
    assert not threads._tasks


INTERRUPTED = """
    import json, os, signal, threading, time
    import mirabelle as mb
    from mirabelle.backends.host import threads

    def piece():
        if threading.current_thread() is not threading.main_thread():
            working.append(1)
            here.set()
            for _ in range(20):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.005)
            working.pop()
        elif WHERE == "waits":
            here.wait()
        else:
            while not here.is_set() or working:
                time.sleep(0.001)

    seen = []
    for WHERE in ("waits", "works"):
        working, here = [], threading.Event()
        try:
            threads.run_all([piece] * 2)
        except KeyboardInterrupt:
            seen.append(len(working) + len(threads._tasks))
    threads.run_all([lambda: seen.append("again")] * 2)
    print(json.dumps(seen))
"""


def test_an_interrupted_caller_waits_for_those_who_work_on_its_memory():
    assert answer(INTERRUPTED, num_threads=2) == [0, 0, "again", "again"]


def test_lists_of_several_callers_share_who_stands_by():
    lists = []
    for k in range(3):
        x, y = np.full(1 << 15, float(k)), np.zeros(1 << 15)
        r = Recorder(x, y)
        r.write(y, host(x) + host(y))
        r.write(y, host(y) * 1.0 + host(x))
        lists.append((r, x, y))

    callers = [threading.Thread(target=lambda r=r: [r.run() for _ in range(100)]) for r, _, _ in lists]
    for c in callers:
        c.start()
    for c in callers:
        c.join()
    for k, (_, _, y) in enumerate(lists):
        assert (y == 200 * k).all()
