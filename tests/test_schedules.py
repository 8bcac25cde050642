"""Schedules: whatever is decided about a plan, a program computes what it computes without, or is refused."""

import collections
import contextlib
import json
import pickle
import random
import re
from pathlib import Path

import numpy as np
import pytest
from randomprograms import REFUSALS, compiled, drawn, plain, quiet
from ways import running

import mirabelle as mb
from mirabelle.arraytypes.programs import planning
from mirabelle.arraytypes.programs.graph import Call, Data, Empty, Input, Map, Product
from mirabelle.arraytypes.programs.patterns import pattern_of
from mirabelle.arraytypes.programs.schedules import NAMES
from mirabelle.arraytypes.programs.steps import CopyStep, ProductStep

Schedule, ScheduleError = mb.compiling.Schedule, mb.compiling.ScheduleError


def arrays(*shapes, seed=0, kind=mb.HostArray):
    rng = np.random.default_rng(seed)
    return [kind(rng.random(s)) for s in shapes]


def names(f, schedule, *args):
    return [step.name for step in mb.compile(f, schedule=schedule).program(*args).plan.steps]


# Random programs with random decisions

DECISIONS = {
    **{name: {} for name in ("store", "once", "recompute", "separate", "own_memory")},
    "tile": {"rows": 2},
    "threads": {"most": 1},
}


def random_schedule(draw, graph):
    nodes = [x for x in graph if not isinstance(x, (Data, Empty, Input, Call)) and x.line is not None]

    def pattern():
        x = draw.choice(nodes)
        return draw.choice([pattern_of(x), f"line {x.line[1]}", x.label.split("[")[0]])

    made = Schedule()
    for _ in range(draw.randint(1, 3) if nodes else 0):
        name = draw.choice([*DECISIONS, "fuse", "fuse", "order", "order"])
        if name == "fuse":
            made = made.fuse(pattern(), pattern())
        elif name == "order":
            made = made.order(pattern(), before=pattern())
        else:
            made = getattr(made, name)(pattern(), **DECISIONS[name])
    return made


def outcome(number, kind="host", lines=12):
    """What comes of a random program with random decisions: "same", or why there is nothing to compare."""
    program = drawn(number, lines=lines, refusing=0)
    call = compiled(program, kind=kind)
    try:
        with quiet():
            wanted = [plain(x) for x in call()]
        graph = call.program().graph
    except mb.compiling.TraceError:
        return "cannot be compiled"
    except REFUSALS:
        return "refused"
    schedule = random_schedule(random.Random(number), graph)
    if not schedule:
        return "nothing to decide"
    scheduled = compiled(program, kind=kind, schedule=schedule)
    try:
        with quiet():
            got = [plain(x) for x in scheduled()]
    except ScheduleError as e:
        assert "cannot be carried out" in str(e) or "matches nothing" in str(e)
        return str(e).split("(")[0] + " refused"
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype == b.dtype and a.tobytes() == b.tobytes(), (number, schedule)
    return "same"


@pytest.mark.parametrize("block", range(3))
def test_random_decisions_change_no_bit(block):
    found = collections.Counter(outcome(n) for n in range(4000 + 40 * block, 4040 + 40 * block))
    assert found["same"] >= 8, found


@pytest.mark.parametrize("kind", ["ref", "cuda"])
def test_random_decisions_change_no_bit_on_other_places(kind):
    found = collections.Counter(outcome(n, kind) for n in range(5000, 5030))
    assert found["same"] > 5, found


# Each decision on a program where it does something


def layers(x, y):
    e = mb.exp(x - mb.max(x, axis=1, keepdims=True))
    s = e / mb.sum(e, axis=1, keepdims=True)
    d = s[1:] - s[:-1]
    t = y * 2 + 1
    x[:, 0] = 1
    return d, mb.sum(t, axis=0), mb.sum(t, axis=1), x, mb.fori_loop(0, 3, lambda i, s: s * 2 + y, y)


def halves(u, v):
    for _ in range(3):
        u[1:-1] = 0.5 * (v[2:] + v[:-2])
        v[1:-1] = 0.5 * (u[2:] + u[:-2])
    w = u * v
    return w, mb.sum(w)


CASES = {
    "store": (layers, Schedule().store("s = e /", "t = y")),
    "once": (layers, Schedule().once("t = y")),
    "recompute": (layers, Schedule().recompute("t = y").recompute("e = mb.exp", "s = e /")),
    "own_memory": (halves, Schedule().own_memory()),
    "in_place": (halves, Schedule().in_place("update")),
    "fuse": (layers, Schedule().fuse("d = s", "d = s")),
    "separate": (layers, Schedule().separate("t = y", "s = e /")),
    "order": (layers, Schedule().store("t = y").order("t = y", before="e = mb.exp")),
    "unroll": (layers, Schedule().unroll("for loop")),
    "tile": (layers, Schedule().tile("e = mb.exp", rows=3).tile("t = y", rows=100)),
    "threads": (layers, Schedule().threads("e = mb.exp", "t = y", most=1)),
    "several": (halves, Schedule().store("w = u").separate("sum").own_memory("w = u").threads("sum", most=2)),
}


@pytest.mark.parametrize("kind", ["host", "ref", "cuda"])
@pytest.mark.parametrize("name", CASES)
def test_a_decision_changes_no_bit(name, kind):
    f, schedule = CASES[name]
    family = {"host": mb.HostArray, "ref": mb.RefArray, "cuda": mb.CuArray}[kind]
    results = []
    with running("hot") if kind == "host" else contextlib.nullcontext():
        for decided in (Schedule(), schedule):
            given = arrays((40, 30), (40, 30), kind=family)
            made = mb.compile(f, schedule=decided, whole=True)(*given)
            results.append([mb.to_numpy(mb.adapt(mb.HostArray, x)) for x in (*made, *given)])
    for a, b in zip(*results, strict=True):
        assert a.tobytes() == b.tobytes()


# What planning decides, as a value


def planned(program, plan=None):
    """What a plan is: its steps, what they compute, read and write; and those of the plans within."""
    if plan is None:
        inside = [s for f in program.explain().steps for s in f.inside]
        return planned(program, program.plan), [planned(program, x.plan) for x in inside]
    return [
        (
            type(s).__name__,
            s.name,
            s.shape,
            [x.label for x in s.nodes],
            [(r.storage.kind, r.offset, r.shape, r.strides, r.dtype) for r in (*s.reads, *s.writes)],
        )
        for s in plan.steps
    ]


def exported(number):
    program = drawn(number, refusing=0)
    call = compiled(program)
    try:
        with quiet():
            first = call.program()
    except (mb.compiling.TraceError, *REFUSALS):
        return "nothing"
    schedule, wanted = first.schedule, planned(first)
    del first, call  # (equal constants are one node while a program has them)
    again = compiled(program, schedule=schedule).program()
    assert planned(again) == wanted, (number, schedule)
    assert again.schedule == schedule
    return "same" if schedule else "nothing decided"


@pytest.mark.parametrize("block", range(2))
def test_what_planning_decided_plans_a_program_in_the_same_way(block):
    found = collections.Counter(exported(n) for n in range(7000 + 50 * block, 7050 + 50 * block))
    assert found["same"] > 2, found


def test_decisions_hold_where_planning_would_decide_otherwise(monkeypatch):
    def f(x, y):
        a = x * 2 + y
        return mb.sum(a, axis=1), mb.sum(a, axis=0)

    x, y = arrays((20, 9), (20, 9))
    schedule, wanted = (lambda p: (p.schedule, planned(p)))(mb.compile(f).program(x, y))
    monkeypatch.setattr(planning, "OPERATION", 100.0)
    assert planned(mb.compile(f).program(x, y)) != wanted
    assert planned(mb.compile(f, schedule=schedule).program(x, y)) == wanted


def test_decisions_within_loops_and_branches_are_told_and_hold(monkeypatch):
    def f(x):
        def body(i, s):
            a = s * 2 + i
            return s + mb.sum(a, axis=1)[:, None] * mb.sum(a, axis=0)

        s = mb.fori_loop(0, 3, body, x)
        return mb.cond(mb.sum(s) > 0, lambda s: (s + 1, s * 2, s @ s), lambda s: (s, s, s), s)

    (x,) = arrays((9, 9))
    schedule, wanted = (lambda p: (p.schedule, planned(p)))(mb.compile(f, whole=True).program(x))
    assert {d.name for d in schedule} >= {"recompute", "fuse"}
    monkeypatch.setattr(planning, "OPERATION", 100.0)
    assert planned(mb.compile(f, whole=True).program(x)) != wanted
    assert planned(mb.compile(f, schedule=schedule).program(x)) == wanted


def test_what_was_measured_stands_beside_what_was_estimated():
    def f(x):
        y = mb.exp(x)
        return mb.sum(y, axis=0), mb.sum(y, axis=1), y @ y

    (x,) = arrays((90, 90))
    compiled_f = mb.compile(f)
    program = compiled_f.program(x)
    assert "measured" not in str(program.schedule)
    compiled_f.profile(x, times=1)
    said = str(program.schedule)
    assert "library(" in said and "by='library'" in said and "flops" in said
    assert "measured" in said
    assert eval(said, {"Schedule": Schedule}) == program.schedule


# A schedule as a value

ALL = (
    Schedule()
    .store("line 3")
    .once("exp")
    .recompute("a.py:4 add[1]")
    .precision("x = y[1:]", dtype="float32")
    .own_memory()
    .in_place("update")
    .fuse("line 3", "line 4")
    .separate("#a")
    .order("line 9", before="line 3")
    .unroll("for loop")
    .library("product", by="sums")
    .tile("exp", rows=8)
    .threads("exp", most=2)
    .tag("exp", name="a")
    .axes("u", roles=("cell", "node"))
)


def test_a_schedule_is_a_value(tmp_path):
    assert {d.name for d in ALL} == set(NAMES)
    assert eval(repr(ALL), {"Schedule": Schedule}) == ALL
    assert hash(ALL) == hash(eval(repr(ALL), {"Schedule": Schedule}))
    assert pickle.loads(pickle.dumps(ALL)) == ALL
    ALL.save(tmp_path / "all.schedule")
    assert Schedule.load(tmp_path / "all.schedule") == ALL
    one, two = Schedule().store("exp"), Schedule().fuse("a", "b")
    assert len(one + two) == 2 and one + two + one == one + two and (one + two) != (two + one)
    assert one != Schedule().store("line 1") and not Schedule()
    with pytest.raises(AttributeError):
        one.decisions = ()


def described(*decisions):
    return json.dumps({"format": "mirabelle schedule", "version": 1, "decisions": decisions})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format": "mirabelle schedule", "version": 2, "decisions": []}',
        described({"name": "save", "where": [], "options": {}}),
        described({"name": "store", "where": [3], "options": {}}),
        described({"name": "store", "where": "exp", "options": {}}),
        described({"name": "store", "where": ["exp"]}),
        described({"name": "tile", "where": ["a"], "options": {}}),
        described({"name": "tile", "where": ["a"], "options": {"rows": "2"}}),
        described({"name": "__init__", "where": ["a"], "options": {}}),
        described("store"),
        described(3),
    ],
)
def test_what_is_no_schedule_is_not_loaded(text, tmp_path):
    (tmp_path / "bad").write_text(text)
    with pytest.raises(ValueError, match="holds no schedule that can be used"):
        Schedule.load(tmp_path / "bad")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda s: s.store(),
        lambda s: s.store(3),
        lambda s: s.store(" "),
        lambda s: s.tile("exp", rows=0),
        lambda s: s.tile("exp", rows=2.5),
        lambda s: s.threads("exp", most=True),
        lambda s: s.precision("exp", dtype="int8"),
        lambda s: s.library("product", by=3),
        lambda s: s.order("exp", before=""),
        lambda s: s.axes("u", roles=("a b",)),
        lambda s: s + "store",
        lambda s: mb.compile(lambda x: x, schedule="store"),
        lambda s: mb.hint(1, tile=-1),
        lambda s: mb.hint(1, precision="int8"),
    ],
)
def test_what_is_no_decision_is_refused(wrong):
    with pytest.raises((TypeError, ValueError)):
        wrong(Schedule())


def test_a_compiled_function_keeps_its_schedule_in_pickles_and_programs_in_files(tmp_path):
    schedule = Schedule().store("y = mb.exp(x)").recompute("y * 2")
    f = mb.compile(stored, schedule=schedule)
    assert pickle.loads(pickle.dumps(f)).schedule == schedule
    (x,) = arrays((9, 9))
    program = f.program(x)
    program.save(tmp_path / "f.program")
    loaded = mb.load_program(tmp_path / "f.program")
    assert planned(loaded) == planned(program)
    assert [d.name for d in loaded.decided.decisions] == ["store", "recompute"]
    assert mb.to_numpy(loaded(x)).tobytes() == mb.to_numpy(f(x)).tobytes()


def stored(x):
    y = mb.exp(x)
    z = y * 2
    return mb.sum(z[1:]) + mb.sum(z)


# Patterns


def pointed(x):
    y = mb.exp(x) + mb.exp(-x)
    z = y * 2
    return z


LINE = pointed.__code__.co_firstlineno


@pytest.mark.parametrize(
    ("pattern", "want"),
    [
        ("exp", ["exp", "exp"]),
        ("exp[1]", ["exp"]),
        (f"line {LINE + 1}", ["add"]),
        (f"test_schedules.py:{LINE + 1}", ["add"]),
        (f"test_schedules.py:{LINE + 1} exp", ["exp", "exp"]),
        (f"line {LINE + 1} exp[1]", ["exp"]),
        ("y = mb.exp(x)  +   mb.exp(-x)", ["add"]),
        ("mb.exp(-x)", ["add"]),
        (f"line {LINE + 2}", ["multiply"]),
        ("#slow", ["exp", "exp"]),
    ],
)
def test_patterns_find_values(pattern, want):
    schedule = Schedule().tag("exp", name="slow").store(pattern)
    graph = mb.compile(pointed, schedule=schedule).program(*arrays(9)).graph
    assert [x.operands[0].label for x in graph if x.label == "materialize"] == want


def test_a_pattern_that_finds_nothing_says_what_there_is():
    (x,) = arrays(9)
    for pattern in ("cosh", "line 3", "other.py:4", "exp[7]", "#slow", "y = 3"):
        with pytest.raises(
            ScheduleError, match=r"matches nothing in pointed\(\): its lines are \d+ to \d+, and its"
        ):
            names(pointed, Schedule().store(pattern), x)


# What is refused, and why


def read_later(x):
    y = x * 2
    z = y + 1
    y[:2] = 0
    return z, y


def refusal(f, schedule, *args):
    with pytest.raises(ScheduleError) as e:
        mb.compile(f, schedule=schedule).program(*args)
    return str(e.value)


def overwritten(u):
    v = u * 3
    u[:] = 1
    return mb.sum(v), mb.max(v[::2]), u


@pytest.mark.parametrize(
    ("f", "schedule", "why"),
    [
        (read_later, Schedule().in_place("y[:2] = 0").recompute("z = y + 1"), "is a result of the program"),
        (read_later, Schedule().in_place("z = y + 1"), "is no write"),
        (read_later, Schedule().recompute("x"), "the argument x is no elementwise value"),
        (lambda x: (x.mT @ x, x), Schedule().recompute("product"), "is no elementwise value"),
        (lambda x: mb.sum(x), Schedule().tile("x", rows=4), "no kernel computes the argument x"),
        (lambda x: mb.sum(x * 2), Schedule().own_memory("multiply"), "is not in memory"),
        (lambda x: x + 1, Schedule().unroll("add"), "is no loop of the program"),
        (lambda x: x + 1, Schedule().library("add", by="sums"), "there is no matrix product"),
        (lambda x: x @ x.mT, Schedule().library("product", by="magic"), "there is no way 'magic'"),
        (lambda x: mb.fori_loop(0, 9999, lambda i, s: s + 1, x), Schedule().unroll("for loop"), "most 10000"),
        (
            lambda x: mb.while_loop(lambda s: mb.sum(s) < 1, lambda s: s + 1, x),
            Schedule().unroll("while loop"),
            "only known when the program runs",
        ),
        (lambda x: x.astype("i4") + 1, Schedule().precision("add", dtype="float32"), "no narrower dtype"),
        (lambda x: (x + 1, mb.sum(x)), Schedule().fuse("add", "sum"), "are not both reductions"),
        (lambda x: (x + 1, x[1:] * 2), Schedule().fuse("add", "multiply"), r"goes over \[\d+, \d+\], and"),
        (lambda x: mb.exp(mb.sum(x) + x), Schedule().fuse("sum", "exp"), "are not both reductions"),
        (lambda x: mb.sin(mb.materialize(x + 1)[::-1]), Schedule().fuse("materialize", "sin"), "needs what"),
        (lambda x: mb.sum(mb.exp(x)), Schedule().order("sum", before="exp"), "needs what"),
        (lambda x: x + 1, Schedule().tag("add", name="a").recompute("#a"), "is a result of the program"),
    ],
)  # fmt: skip
def test_what_cannot_be_carried_out_is_refused_with_the_reason(f, schedule, why):
    said = refusal(f, schedule, *arrays((8, 8)))
    assert re.search(why, said), said
    assert "cannot be carried out in" in said


def test_a_write_that_needs_a_copy_is_not_in_place():
    def f(x):
        y = mb.materialize(x * 2)
        z = y.copy()
        y[:2] = 0
        return mb.linalg.norm(z.reshape(3, 3), 2), y

    (x,) = arrays(9)
    assert any(isinstance(step, CopyStep) for step in mb.compile(f).program(x).plan.steps)
    assert "reads the old value after" in refusal(f, Schedule().in_place("y[:2] = 0"), x)


def test_a_scheduled_function_is_one_program_and_may_call_others():
    def f(x):
        if mb.sum(x) > 0:
            return x + 1
        return x * 2

    with pytest.raises(mb.compiling.TraceError):
        mb.compile(f, schedule=Schedule().store("add"))(*arrays(4))
    inner = mb.compile(lambda x: mb.exp(x) * 2, schedule=Schedule().store("sinh"))
    (x,) = arrays(4)
    assert names(lambda x: inner(x) + 1, Schedule().store("exp"), x) == ["exp", "multiply_add"]


# Other numbers, where they are asked for


@pytest.mark.parametrize("kind", [mb.HostArray, mb.RefArray, mb.CuArray])
@pytest.mark.parametrize(("dtype", "narrow"), [("f8", "f4"), ("f8", "f2"), ("f4", "f2"), ("c16", "c8")])
def test_precision_rounds_what_is_stored_and_nothing_else(kind, dtype, narrow):
    def f(x):
        y = x * 3
        return y[1:] - y[:-1], mb.sum(y, axis=0)

    values = np.random.default_rng(0).random((7, 5)).astype(dtype)
    values[2, 1] = np.nan
    values[0, 0] = -0.0
    got = mb.compile(f, schedule=Schedule().precision("y = x * 3", dtype=narrow))(kind(values))
    y = (values * 3).astype(narrow).astype(dtype)
    wanted = y[1:] - y[:-1], y.sum(axis=0)
    for a, b in zip(got, wanted, strict=True):
        a = mb.to_numpy(mb.adapt(mb.HostArray, a))
        assert a.dtype == np.dtype(dtype)
        np.testing.assert_allclose(a, b, rtol=1e-6 if dtype == "f4" else 1e-14)


@pytest.mark.parametrize("kind", [mb.HostArray, mb.RefArray, mb.CuArray])
@pytest.mark.parametrize(
    "shapes", [((30, 40), (40, 20)), ((3, 500), (500,)), ((40,), (40, 9)), ((0, 4), (4, 3))]
)
@pytest.mark.parametrize("by", ["sums", "library"])
def test_products_by_name_are_products(kind, shapes, by):
    x, y = arrays(*shapes, kind=kind)
    want = mb.to_numpy(mb.adapt(mb.HostArray, x)) @ mb.to_numpy(mb.adapt(mb.HostArray, y))
    f = mb.compile(lambda a, b: a @ b, schedule=Schedule().library("product", by=by))
    np.testing.assert_allclose(mb.to_numpy(mb.adapt(mb.HostArray, f(x, y))), want, rtol=1e-13)
    steps = f.program(x, y).plan.steps
    assert any(isinstance(s, ProductStep) for s in steps) is (by == "library" or not want.size)
    if len(shapes[0]) == len(shapes[1]) == 2:
        g = mb.compile(
            lambda a, b: mb.sum(a[:, :, None] * b[None], axis=1), schedule=Schedule().library("sum", by=by)
        )
        np.testing.assert_allclose(mb.to_numpy(mb.adapt(mb.HostArray, g(x, y))), want, rtol=1e-13)


# Hints, and decisions by type


def test_a_hint_decides_about_a_value_and_is_nothing_elsewhere():
    def f(x, **how):
        y = mb.hint(mb.exp(x), **how)
        return mb.sum(y, axis=0), mb.sum(y, axis=1)

    (x,) = arrays((6, 5))
    assert mb.hint(x, store=True, axes=("a", "b")) is x
    assert mb.hint([1, x], recompute=True)[1] is x
    want = [mb.to_numpy(a).tobytes() for a in f(x)]
    for how, steps in (
        ({}, 3), ({"store": True}, 3), ({"recompute": True}, 2), ({"separate": True}, 3), ({"once": True}, 3),
        ({"own_memory": True}, 3), ({"threads": 1, "tile": 2}, 3), ({"tag": "slow"}, 3),
    ):  # fmt: skip
        g = mb.compile(lambda x, how=how: f(x, **how), whole=True)
        assert len(g.program(x).plan.steps) == steps, how
        assert [mb.to_numpy(a).tobytes() for a in g(x)] == want
    tagged = mb.compile(lambda x: f(x, tag="slow"), schedule=Schedule().recompute("#slow"))
    assert len(tagged.program(x).plan.steps) == 2
    assert "recompute" in tagged.explain(x).facts["decided by you"]


def test_a_method_decides_about_all_values_of_a_kind_where_it_can():
    def costly(node: Map):
        return {"recompute": True, "tile": 2, "threads": 1} if node.label == "exp" else None

    def summed(node: Product):
        return {"library": "sums"}

    def f(x):
        y = mb.exp(x)
        return mb.sum(y, axis=0), mb.sum(y, axis=1), mb.exp(x - 1), x @ x

    (x,) = arrays((90, 90))
    want = [mb.to_numpy(a) for a in mb.compile(f)(x)]
    with mb.override(mb.compiling.decide, (Map,), costly), mb.override(mb.compiling.decide, (Product,), summed):
        g = mb.compile(f)
        assert not any(isinstance(s, ProductStep) or s.name == "exp_exp" for s in g.program(x).plan.steps)
        got = [mb.to_numpy(a) for a in g(x)]
    assert any(isinstance(s, ProductStep) for s in mb.compile(f).program(x).plan.steps)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


def test_a_hint_about_what_is_not_needed_is_forgotten_and_an_impossible_one_refused():
    def f(x):
        mb.hint(mb.exp(x), recompute=True)
        mb.hint(mb.ones(3) * 2, store=True)
        return x + 1

    (x,) = arrays(4)
    assert len(mb.compile(f).program(x).plan.steps) == 1
    with pytest.raises(ScheduleError, match="is a result of the program"):
        mb.compile(lambda x: mb.hint(x + 1, recompute=True), whole=True).program(x)


def test_materialize_and_a_stored_hint_are_one_kernel_and_those_that_read_it():
    def f(store):
        def g(x):
            y = store(x * 2 + 1)
            return y[1:] - y[:-1], y * y

        return g

    (x,) = arrays(40)
    by_hint = mb.compile(f(lambda y: mb.hint(y, store=True)))
    by_name = mb.compile(f(mb.materialize))
    assert [s.name for s in by_hint.program(x).plan.steps] == [s.name for s in by_name.program(x).plan.steps]
    assert by_name.program(x).plan.steps[0].name == "multiply_add"
    assert len(mb.compile(f(lambda y: y)).program(x).plan.steps) < len(by_name.program(x).plan.steps)
    with running("hot"):
        by_hint(x)
        with mb.count() as c:
            by_hint(x)
    assert c.launches == len(by_hint.program(x).plan.steps)


def test_decisions_inside_of_loops_and_branches():
    def f(x, n):
        def body(i, s):
            y = mb.exp(s * 0.1)
            return y - mb.max(y, axis=0) + mb.min(y, axis=1)[:, None]

        s = mb.fori_loop(0, n, body, x)
        return mb.cond(mb.sum(s) > 0, lambda s: mb.exp(s) + 1, lambda s: mb.exp(-s) * 2, s)

    x, n = *arrays((6, 6)), mb.asarray(3)
    plain_f = mb.compile(f, whole=True)
    inside = lambda g: [len(i.steps) for s in g.explain(x, n).steps for i in s.inside]
    for schedule, change in (
        (Schedule().recompute("y = mb.exp"), -1),
        (Schedule().store("exp"), 2),
    ):
        g = mb.compile(f, schedule=schedule)
        assert sum(inside(g)) == sum(inside(plain_f)) + change
        assert mb.to_numpy(g(x, n)).tobytes() == mb.to_numpy(plain_f(x, n)).tobytes()
    with pytest.raises(ScheduleError, match="matches nothing"):
        mb.compile(f, schedule=Schedule().store("cosh"))(x, n)


def test_loops_are_written_out_with_all_they_carry():
    def f(a, b):
        def body(i, state):
            u, v = state
            u = u + i * v
            v = mb.fori_loop(0, 2, lambda j, w: w * 0.5 + u, v)
            return v, u

        return mb.fori_loop(0, 3, body, (a, b))

    a, b = arrays(7, 7)
    for schedule in (Schedule().unroll("for loop"), Schedule().unroll("return mb.fori_loop")):
        g = mb.compile(f, schedule=schedule)
        for x, y in zip(g(a, b), f(a, b), strict=True):
            assert mb.to_numpy(x).tobytes() == mb.to_numpy(y).tobytes()
    assert not any(
        "loop" in s.name for s in mb.compile(f, schedule=Schedule().unroll("for loop")).program(a, b).plan.steps
    )


def test_roles_of_axes_go_along():
    def f(u, w):
        u = mb.hint(u, axes=("cell", "node"))
        v = mb.where(u > 0, u * w, 0.0)
        v[0] = 1
        return mb.sum(v, axis=1, keepdims=True), v.T

    program = mb.compile(f).program(*arrays((5, 4), 4))
    roles = mb.compiling.axis_roles(program)
    said = {node.label: roles.get(node) for node in program.graph}
    assert said["multiply"] == said["where"] == said["update"] == ("cell", "node")
    assert said["sum"] == ("cell", None) and said["w"] is None

    def reading(outputs):
        seen.extend(mb.compiling.axis_roles(outputs).values())
        return outputs

    seen = []
    mb.compile(f, passes=["parts", reading]).program(*arrays((5, 4), 4))
    assert ("cell", "node") in seen


def test_roles_are_as_many_as_axes():
    with pytest.raises(ValueError, match="names 1 axes, and x has 2"):
        mb.compile(lambda u: mb.hint(u, axes=("cell",)) + 1, whole=True)(*arrays((3, 2)))
    with pytest.raises(ScheduleError, match="the argument u has 2 axes, and these are 3 roles"):
        mb.compile(lambda u: u + 1, schedule=Schedule().axes("u", roles=("a", "b", "c")))(*arrays((3, 2)))


def test_the_states_of_a_flow_solver_have_fields_nodes_and_cells():
    from mirabelle import dg

    semi = dg.Semidiscretization(dg.box((3, 3), periodic=True), dg.Advection((1.0, 0.5)), dg.Solver(2))
    u = semi.state(lambda x, t: [mb.sin(x[0])])
    program = mb.compile(semi.rhs).program(u)
    roles = mb.compiling.axis_roles(program)
    assert roles[program.graph[0]] == ("field", "node", "cell")


def test_decisions_hold_for_derivatives_and_arrays_over_processes():
    schedule = Schedule().store("y = mb.exp")

    def f(x):
        y = mb.exp(x) * 2
        return mb.sum(y * y)

    (x,) = arrays((6, 5))
    g, plain_f = mb.compile(f, schedule=schedule), mb.compile(f)
    first, second = [mb.to_numpy(mb.autodiff.gradient(h, x)) for h in (g, plain_f)]
    np.testing.assert_allclose(first, second, rtol=1e-14)
    divided = mb.DArray[mb.HostArray](x)
    assert float(g(divided)) == float(plain_f(divided))
    assert [s.name for s in g.program(divided).plan.steps] == ["exp_multiply", "sum"]


def test_the_guide_says_what_was_measured():
    """Each ratio of the table of decisions is one of `python -m benchmarks transformations`, rounded."""
    root = Path(__file__).parents[1]
    cases = json.loads((root / "benchmarks/results/transformations.json").read_text())["cases"]
    text = (root / "docs/guide/transformations.md").read_text()
    said = 0
    for name, measured in re.findall(r"^\| `(\w+)\(.*\|([^|]*)\|$", text, re.MULTILINE):
        ratios = [c["times_faster"] for c in cases if c["case"].split(":")[0] == name]
        for number in re.findall(r"(?<![\w.,])\d+\.\d+", measured):
            decimals = len(number.partition(".")[2])
            assert any(f"{r:.{decimals}f}" == number for r in ratios), (name, number, ratios)
            said += 1
    assert said >= 12
