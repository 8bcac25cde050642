"""Compiled programs on cards: plans as graphs of kernels.

(What a kernel does not wait for, simulated cards do after it. `tests.gpuprograms` checks this on a real card.)
"""

import random
import types

import gpuprograms
import numpy as np
import pytest
from compare import assert_same

import mirabelle as mb
from mirabelle.arraytypes.gpu import handle
from mirabelle.arraytypes.programs import joining
from mirabelle.backends.gpu import kernelgraphs, loops, plans
from mirabelle.dispatch.errors import OutOfMemoryError

simulated = pytest.mark.skipif(mb.settings.cuda != "simulated", reason="needs simulated cards")
SMALL = {"hdiff": (3, 4), "softmax": (3, 5), "branches": (19,), "mlp": (2, 3)}


@pytest.fixture(params=["cuda"], autouse=True)
def place(request):
    """(By this name `python -m tests.gpu` knows what it has to run on a card.)"""
    return request.param


def card(x):
    return mb.CuArray(np.asarray(x))


def groups(program):
    return [s for s in program.runner.segments if isinstance(s, plans.Together)]


@pytest.fixture
def apart(monkeypatch):
    """Each kernel is a launch of its own."""
    monkeypatch.setattr(joining, "LAUNCH_BYTES", 0)


def launches(program):
    return sum(len(g.launches) for g in groups(program))


def data(case, rng):
    if case.name == "mlp":
        shapes = [(2, 6), (6, 5), (5,), (5, 4), (4,), (4, 3), (3,)]
    elif case.name == "hdiff":
        shapes = [(7, 8, 3), (3, 4, 3)]
    elif case.name == "softmax":
        shapes = [(3, 5)]
    else:
        shapes = case.shapes(19 if case.name == "branches" else 7)
    return [rng.random(s) for s in shapes]


def results(case, f, arrays):
    made = f(*arrays)
    if case.writes:
        return arrays
    return made if isinstance(made, tuple) else (made,)


# What is computed


@pytest.mark.parametrize("case", gpuprograms.cases(), ids=lambda c: c.name)
def test_programs_mean_what_they_mean_in_numpy(case):
    rng = np.random.default_rng(1)
    f = mb.compile(case.of(mb))
    kept = []
    for _ in range(6):  # more calls than there are graphs; all results are kept
        given = data(case, rng)
        kept.append((results(case, f, [card(x) for x in given]), results(case, case.of(np), given)))
    for got, expected in kept:
        for mine, right in zip(got, expected, strict=True):
            assert_same(mine, right, rtol=1e-13, atol=1e-15)


@simulated
def test_products_of_all_forms_in_one_graph():
    report = gpuprograms.Report(None, 1e9)
    gpuprograms.Bench(True, report).check_products()


@simulated
def test_in_streams_in_a_recorded_graph_and_in_threads():
    report = gpuprograms.Report(None, 1e9)
    gpuprograms.Bench(True, report).check_streams()


def test_arguments_that_are_written_to_keep_their_memory():
    @mb.compile
    def step(u, v):
        u[1:-1] += 0.5 * (v[2:] - v[:-2])
        return u * 2

    u, v = np.arange(6.0), np.arange(6.0) ** 2
    x, y = card(u), card(v)
    where = mb.materialize(x)._node.view.ptr
    for _ in range(3):
        doubled = step(x, y)
        u[1:-1] += 0.5 * (v[2:] - v[:-2])
        assert_same(doubled, u * 2)
    assert_same(x, u)
    assert x._node.view.ptr == where
    said = x + 1  # still to be computed, of what x is now
    step(x, y)
    assert_same(said, u + 1)


def test_arguments_that_lie_anyhow():
    f = mb.compile(lambda x, y: mb.exp(x) @ y + mb.sum(x))
    values = np.random.default_rng(2).random((7, 8))
    whole = mb.materialize(card(values))
    view = whole._node.view
    for a, b in (
        (np.s_[1:6, :3], np.s_[:3, 2:5]),
        (np.s_[::2, ::-1], np.s_[:0:-1, 1]),
        (np.s_[3, 1:6], np.s_[1:6, 1]),
        (np.s_[:, :], np.s_[0]),
    ):
        if view[b].shape[0] != view[a].shape[-1]:
            b = (slice(None, view[a].shape[-1]), *b[1:]) if isinstance(b, tuple) else b
        p, q = values[a], values[b]
        if p.shape[-1] != q.shape[0]:
            continue
        got = f(handle(mb.CuArray, view[a]), handle(mb.CuArray, view[b]))
        assert_same(got, np.exp(p) @ q + p.sum(), rtol=1e-14)
    odd = view.reshape((56,))[3:]  # begins where vectors may not
    g = mb.compile(lambda x: x * 2 + x[::-1])
    assert_same(g(handle(mb.CuArray, odd)), values.ravel()[3:] * 2 + values.ravel()[3:][::-1])


def test_library_calls_and_checks_lie_between_graphs():
    def f(x, i):
        y = mb.sort(x * 2)
        z = mb.cumsum(y + 1)
        return z[i] + y, z

    g = mb.compile(f)
    x, i = np.array([3.0, 1.0, 2.0]), np.array([2, 0, 0])
    y = np.sort(x * 2)
    z = np.cumsum(y + 1)
    for _ in range(2):
        got = g(card(x), card(i))
        assert_same(got[0], z[i] + y)
        assert_same(got[1], z)
    with pytest.raises(IndexError):
        g(card(x), card(np.array([2, 0, 3])))
    assert_same(g(card(x), card(i))[0], z[i] + y)


def test_loops_and_branches():
    @mb.compile
    def relaxed(u):
        def body(k, u):
            u[1:-1] = 0.5 * (u[:-2] + u[2:])
            return u

        u = mb.fori_loop(0, 7, body, mb.copy(u))
        return mb.while_loop(lambda v: mb.max(v) > 0.1, lambda v: v * 0.5, u)

    u = np.random.default_rng(3).random(9)
    expected = u.copy()
    for _ in range(7):
        expected[1:-1] = 0.5 * (expected[:-2] + expected[2:])
    while expected.max() > 0.1:
        expected = expected * 0.5
    for _ in range(2):
        assert_same(relaxed(card(u)), expected, rtol=1e-15)
    f = mb.compile(lambda x: mb.cond(mb.sum(x) > 0, mb.sqrt, mb.negative, x))
    assert_same(f(card([1.0, 4.0])), [1.0, 2.0])
    assert_same(f(card([1.0, -4.0])), [-1.0, 4.0])


BODIES = {
    "new values": (1, lambda k, u: mb.sqrt(u * u + 0.25 * u[::-1])),
    "in place": (1, "in place"),
    "leapfrog": (2, lambda k, s: (s[1], 1.5 * s[1] - s[0] + 0.125 * s[1][::-1])),
    "both new": (2, lambda k, s: (s[0] + 0.5 * s[1][::-1], s[1] - 0.5 * s[0])),
    "turning round": (3, lambda k, s: (s[1], s[2], s[0] * 0.5)),
    "with the number": (1, lambda k, u: u * 0.5 + k),
}


@pytest.mark.parametrize("trips", [3, 4, 7, 30])
@pytest.mark.parametrize("name", BODIES)
def test_many_trips_are_one_graph(name, trips, monkeypatch):
    monkeypatch.setattr(loops, "LONGEST", 12)
    count, body = BODIES[name]
    if body == "in place":

        def body(k, u):
            u[1:-1] = 0.5 * (u[:-2] + u[2:])
            u[:1] = u[1:2] + 1
            return u

    def f(*state):
        state = [mb.copy(u) for u in state]
        return mb.fori_loop(0, trips, body, tuple(state) if count > 1 else state[0])

    g = mb.compile(f)
    for seed in range(3):
        data = [np.random.default_rng(seed + 10 * k).random(6) for k in range(count)]
        expected = f(*map(mb.HostArray, data))
        got = g(*map(card, data))
        for mine, right in zip(got, expected, strict=True) if count > 1 else [(got, expected)]:
            assert_same(mine, mb.to_numpy(right), rtol=1e-14)


@simulated
def test_a_loop_is_launched_in_few_graphs():
    def body(k, u):
        return mb.sqrt(u * u + 0.25 * u[::-1])

    f = mb.compile(lambda u: mb.fori_loop(0, 1000, body, u))
    x = card(np.ones(3))
    program = f.program(x)
    with mb.count() as c:
        f(x)
    assert c.launches >= 1000
    (step,) = [s for s in program.runner.segments if not isinstance(s, plans.Together)]
    (runner,) = step.call.template[0][0].steps.runs.values()
    (group,) = runner.rounds.values()
    assert len(group.launches) == 250
    assert [len(t) for t in runner.turns.popitem()[1].trips] == [2, 2]


def test_what_a_user_combines_and_elements_of_user_functions():
    f = mb.compile(
        lambda x: (mb.reduce(lambda a, b: a * b + a + b, x, init=0.0), mb.map(lambda v: v * v - 1, x))
    )
    x = np.array([0.5, 0.25, 2.0])
    combined, mapped = f(card(x))
    assert_same(combined, np.prod(x + 1) - 1, rtol=1e-15)
    assert_same(mapped, x * x - 1)


def test_empty_and_single_elements():
    f = mb.compile(lambda x, y: (x + 1, mb.sum(x), x * y, mb.sum(x * y)))
    for x, y in ((np.zeros((0,)), 2.0), (np.array(3.0), 2.0), (np.zeros((0, 3)), 1.0)):
        got = f(card(x), card(y))
        for mine, right in zip(got, (x + 1, np.sum(x), x * y, np.sum(x * y)), strict=True):
            assert_same(mine, right)


def test_results_that_are_arguments_or_each_other():
    f = mb.compile(lambda x: (x, x, x + 0, mb.ones_like(x)))
    x = card([1.0, 2.0, 3.0])
    a, b, c, ones = f(x)
    with mb.allow_scalar():
        c[0] = 7
        ones[0] = 5
    assert_same(x, [1.0, 2.0, 3.0])
    a2, _, c2, ones2 = f(x)
    assert_same(a, [1.0, 2.0, 3.0])
    assert_same(b, [1.0, 2.0, 3.0])
    assert_same(a2, [1.0, 2.0, 3.0])
    assert_same(c2, [1.0, 2.0, 3.0])
    assert_same(c, [7.0, 2.0, 3.0])
    assert_same(ones2, [1.0, 1.0, 1.0])


# How it runs


@simulated
def test_several_results_are_one_launch():
    @mb.compile
    def f(x, y):
        d = mb.sqrt(x * x + y * y)
        return d, x / d, y / d

    x, y = card([3.0, 6.0]), card([4.0, 8.0])
    f(x, y)
    with mb.count() as c:
        got = f(x, y)
    assert c.launches == 1
    assert launches(f.program(x, y)) == 1
    assert_same(got[1], [0.6, 0.6])


@simulated
@pytest.mark.parametrize("shape", [(6,), (5, 7), (2, 3, 4), (9000,)])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_what_is_stored_and_reduced_is_one_launch(shape, axis):
    def f(x, y):
        e = mb.exp(x - 0.5)
        return e, mb.sum(e * y + e, axis=axis), mb.max(x, axis=axis)

    x, y = np.random.default_rng(8).random((2, *shape))
    g = mb.compile(f)
    program = g.program(card(x), card(y))
    (group,) = groups(program)
    both = axis is None or len(shape) == 1
    assert len(group.launches) == 2 + (not both) + (shape == (9000,))
    e = np.exp(x - 0.5)
    for mine, right in zip(
        g(card(x), card(y)), (e, np.sum(e * y + e, axis=axis), x.max(axis=axis)), strict=True
    ):
        assert_same(mine, right, rtol=1e-13)


@simulated
def test_independent_kernels_do_not_wait_for_each_other(apart):
    case = next(c for c in gpuprograms.cases() if c.name == "branches")
    f = mb.compile(case.of(mb))
    x = [card(v) for v in data(case, np.random.default_rng(0))]
    program = f.program(*x)
    f(*x)
    (group,) = groups(program)
    # Four that wait for nobody, and all others for one alone.
    assert sorted(map(len, group.after)) == [0] * 4 + [1] * (len(group.after) - 4)


@simulated
def test_memory_is_used_again_along_a_chain_and_not_across_branches(apart):
    def chain(u):
        for _ in range(12):
            u = mb.sqrt(u[1:] + u[:-1])
        return u

    one = mb.compile(chain)
    four = mb.compile(lambda a, b, c, d: (chain(a), chain(b), chain(c), chain(d)))
    x = [card(np.random.default_rng(k).random(70 + k)) for k in range(4)]
    single = one.program(x[0]).plan
    assert single.arena_bytes <= 3 * 1024  # and not 11 times 560 bytes
    together = four.program(*x)
    assert together.plan.arena_bytes <= 4 * single.arena_bytes
    got = four(*x)
    (group,) = groups(together)
    assert sum(not a for a in group.after) == 4
    for mine, u in zip(got, x, strict=True):
        assert_same(mine, chain(mb.to_numpy(u)))


@simulated
def test_few_graphs_are_kept_and_told_of_other_addresses():
    f = mb.compile(lambda x: mb.sum(mb.cumsum(x)[::-1]) + mb.max(mb.sqrt(x[1:] + x[:-1])) * mb.min(x))
    g = mb.compile(gpuprograms.jacobi_1d)
    kept = []
    for k in range(9):
        u, v = [np.random.default_rng(k + j).random(9) for j in (0, 50)]
        x, y = card(u), card(v)
        g(x, y)
        gpuprograms.jacobi_1d(u, v)
        kept.append((x, y, u, v))
        w = np.random.default_rng(k).random(6)
        expected = np.cumsum(w).sum() + np.sqrt(w[1:] + w[:-1]).max() * w.min()
        assert_same(f(card(w)), expected, rtol=1e-15)
    for x, y, u, v in kept:
        assert_same(x, u)
        assert_same(y, v)
    (group,) = groups(g.program(x, y))
    assert len(group.graphs) == plans.GRAPHS
    one, two = kept[-1][:2]
    known = set(group.graphs)
    for _ in range(3):  # where it was before: no graph is told anything
        g(one, two)
    assert set(group.graphs) == known


@simulated
def test_small_results_lie_where_earlier_ones_were_let_go():
    f = mb.compile(lambda x: (x + 1, mb.sum(x[::2])))
    x = card(np.arange(4.0))
    a, s = f(x)
    where = a._node.view.ptr
    held = a[1:3]
    del a
    b, _ = f(x * 1)
    assert b._node.view.ptr != where  # somebody shows a part of the first
    assert_same(held, [2.0, 3.0])
    del held, s
    c, _ = f(x)
    assert c._node.view.ptr == where
    assert_same(b, np.arange(4.0) + 1)


@simulated
def test_memory_that_is_not_there(monkeypatch):
    def f(x):
        for _ in range(3):
            x = mb.sqrt(x[1:] + x[:-1])
        return mb.sum(x)

    f = mb.compile(f)
    x = mb.materialize(card(np.ones(1 << 10)))
    driver = mb.CuArray.driver()
    monkeypatch.setattr(driver, "limit", driver.memory.used() + 1000)
    with pytest.raises(OutOfMemoryError):
        f.program(x).runner.prepare()
    monkeypatch.setattr(driver, "limit", None)
    assert mb.to_numpy(f(x)).shape == ()


@simulated
def test_on_another_card():
    f = mb.compile(lambda x, y: (mb.cumsum(x @ y), mb.sum(x[1:] * y[:-1]) + mb.max(x - y)))
    x, y = np.random.default_rng(5).random((2, 4, 4))
    there = mb.CuArray.on(1)
    for _ in range(2):
        a, b = f(there(x), there(y))
        assert type(a).family is there
        assert_same(a, np.cumsum(x @ y), rtol=1e-14)
        assert_same(b, (x[1:] * y[:-1]).sum() + (x - y).max(), rtol=1e-14)


def test_the_reference_device_runs_step_by_step():
    f = mb.compile(gpuprograms.jacobi_2d, static="steps")
    a, b = np.random.default_rng(6).random((2, 5, 6))
    x, y = mb.RefArray(a), mb.RefArray(b)
    f(x, y, 2)
    gpuprograms.jacobi_2d(a, b, 2)
    assert_same(x, a, rtol=1e-15)
    assert_same(y, b, rtol=1e-15)


# Which launch waits for which, and where temporaries lie


def random_launches(seed, count=40):
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        stretches = []
        for _ in range(rng.randint(1, 4)):
            low = rng.randrange(0, 60)
            stretches.append((rng.randrange(2), low, low + rng.randint(1, 20)))
        made.append((stretches[1:], stretches[:1]))
    return made


def meet(a, b):
    return a[0] == b[0] and a[1] < b[2] and b[1] < a[2]


@pytest.mark.parametrize("seed", range(20))
def test_whoever_touches_what_another_writes_comes_after_it(seed):
    touched = random_launches(seed)
    after, before = kernelgraphs.dependencies(touched)
    reach = []
    for me, earlier in enumerate(after):
        mine = set(earlier)
        for i in earlier:
            mine |= reach[i]
        reach.append(mine)
        assert before[me] == sum(1 << i for i in mine)
        needed = set()
        for i in range(me):
            (reads, writes), (r, w) = touched[i], touched[me]
            pairs = [(x, y) for x in (*reads, *writes) for y in w] + [(x, y) for x in writes for y in r]
            if any(meet(x, y) for x, y in pairs):
                needed.add(i)
        assert needed <= mine
        # Nothing is waited for without need, or twice.
        assert set(earlier) <= needed
        assert not any(i in reach[j] for i in earlier for j in earlier)


@pytest.mark.parametrize("seed", range(20))
def test_rooms_share_memory_only_where_launches_are_in_order_anyway(seed, monkeypatch):
    monkeypatch.setattr(kernelgraphs, "LARGE", 4000)
    rng = random.Random(seed)
    count = 30
    before = []
    for me in range(count):
        known = 0
        for i in rng.sample(range(me), min(me, rng.randint(0, 2))):
            known |= before[i] | 1 << i
        before.append(known)
    rooms = []
    for _ in range(15):
        room = kernelgraphs.Room(rng.choice([0, 100, 256, 1000, 3000, 5000]))
        for i in sorted(rng.sample(range(count), rng.randint(1, 4))):
            room.touched(i)
        rooms.append(room)
    top = kernelgraphs.place(rooms, before)
    rooms = [r for r in rooms if r.nbytes]
    assert top <= sum(-(-r.nbytes // 256) * 256 for r in rooms)
    for k, a in enumerate(rooms):
        assert a.offset + a.nbytes <= top
        for b in rooms[:k]:
            if a.offset < b.offset + b.nbytes and b.offset < a.offset + a.nbytes:
                first, second = (a, b) if a.first < b.first else (b, a)
                assert first.last < second.first
                if second.nbytes < 4000:
                    assert not first.users & ~before[second.first]


def test_large_graphs_are_ordered_without_telling_what_follows(monkeypatch):
    touched = random_launches(3)
    exact = kernelgraphs.dependencies(touched)[0]
    monkeypatch.setattr(kernelgraphs, "MOST_PRUNED", 10)
    after, before = kernelgraphs.dependencies(touched)
    assert before == []
    assert all(set(a) <= set(b) for a, b in zip(exact, after, strict=True))
    assert kernelgraphs.reached([*touched, None]) == [(1 << i) - 1 for i in range(len(touched) + 1)]


def test_a_step_of_python_waits_for_all_before_and_is_waited_for():
    a, b = ([], [(0, 0, 8)]), ([], [(1, 0, 8)])
    assert kernelgraphs.reached([a, b, None, a, b]) == [0, 0, 3, 7, 7]


# A card's graphs, without a card


def test_functions_of_cublas_by_their_names():
    from mirabelle.backends.cuda import kernelgraph

    assert kernelgraph.function_of("dgemm") == "cublasDgemm_v2"
    assert kernelgraph.function_of("cdotu") == "cublasCdotu_v2"
    assert kernelgraph.function_of("sgemmStridedBatched") == "cublasSgemmStridedBatched"
    assert kernelgraph._path_of("no such library") == "no such library"


def test_kernels_begin_by_waiting():
    from mirabelle.backends.cuda.modules import waiting

    text = ".visible .entry _Z1f$x(\n.param .u64 a,\n.param .f64 b\n)\n.maxntid 256\n{\n.reg .b64 %r;\n}"
    assert waiting(text).count("griddepcontrol.wait") == 1
    assert waiting(text).index("griddepcontrol") < waiting(text).index(".reg")


class FakeCuda:
    """The driver's library: it notes what it is asked, and gives handles."""

    def __init__(self, refuses=None):
        self.log, self.refuses, self.handles = [], refuses, iter(range(1000, 9999))

    SECOND = ("cuGraphAddKernelNode", "cuGraphExecKernelNodeSetParams", "cuGraphAddDependencies")

    def __getattr__(self, name):
        if name.endswith("_v2") and name[:-3] not in self.SECOND:
            raise AttributeError(name)

        def call(*args):
            self.log.append((name, args))
            if args and hasattr(args[0], "_obj") and hasattr(args[0]._obj, "value"):
                args[0]._obj.value = next(self.handles)
            return 1 if name == self.refuses else 0

        setattr(self, name, call)
        return call


def fake_launch(moving=2):
    import struct

    codes = moving + 1
    run = types.SimpleNamespace(kernel=types.SimpleNamespace(ptr=77))
    pack = struct.Struct("<" + "q" * moving).pack_into
    run.how = (4, 1, 1), (256, 1, 1), codes, bytes(8 * codes), pack
    return run


@pytest.mark.parametrize("capability", [(8, 0), (9, 0)])
def test_a_graph_is_made_of_nodes_and_told_of_addresses(capability, monkeypatch):
    from mirabelle.backends.cuda import kernelgraph

    library = FakeCuda()
    calls = kernelgraph._Calls(library)
    monkeypatch.setattr(kernelgraph, "_calls", lambda: calls)
    stream = types.SimpleNamespace(ptr=5)
    driver = types.SimpleNamespace(_stream=lambda: stream, capability=capability)
    launched = [(fake_launch(), [16, 32]), (fake_launch(), [32, 48]), (fake_launch(), [64, 80])]
    graph = kernelgraph.KernelGraph(driver, launched, [[], [0], []])
    names = [name for name, _ in library.log]
    assert names.count("cuGraphAddKernelNode_v2") == 3
    early = capability >= (9, 0)
    counts = [args[3] for name, args in library.log if name == "cuGraphAddKernelNode_v2"]
    assert counts == [0, 0 if early else 1, 0]
    assert names.count("cuGraphAddDependencies_v2") == early
    graph.run()
    graph.tell(1, [96, 112])
    assert [name for name, _ in library.log[-2:]] == ["cuGraphLaunch", "cuGraphExecKernelNodeSetParams_v2"]
    assert bytes(graph._nodes[1]._data[:16]) == (96).to_bytes(8, "little") + (112).to_bytes(8, "little")
    del graph
    assert [name for name, _ in library.log[-2:]] == ["cuGraphExecDestroy", "cuGraphDestroy"]


def test_what_the_driver_refuses_is_said(monkeypatch):
    from mirabelle.backends.cuda import kernelgraph

    calls = kernelgraph._Calls(FakeCuda(refuses="cuGraphInstantiateWithFlags"))
    monkeypatch.setattr(kernelgraph, "_calls", lambda: calls)
    driver = types.SimpleNamespace(_stream=None, capability=(9, 0))
    with pytest.raises(mb.DeviceError, match="refuses to make the graph of a compiled program: error 1"):
        kernelgraph.KernelGraph(driver, [(fake_launch(), [16, 32])], [[]])
