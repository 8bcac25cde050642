"""Schedules: whatever is decided about a plan, a program computes what it computes without, or is refused."""

import collections
import contextlib
import json
import pickle
import random

import numpy as np
import pytest
from randomprograms import REFUSALS, compiled, drawn, plain, quiet
from ways import running

import mirabelle as mb
from mirabelle.arraytypes.programs import planning
from mirabelle.arraytypes.programs.graph import Call, Data, Empty, Input
from mirabelle.arraytypes.programs.patterns import pattern_of
from mirabelle.arraytypes.programs.schedules import NAMES

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


@pytest.mark.parametrize("block", range(4))
def test_random_decisions_change_no_bit(block):
    found = collections.Counter(outcome(n) for n in range(4000 + 40 * block, 4040 + 40 * block))
    assert found["same"] > 10, found


@pytest.mark.parametrize("kind", ["ref", "cuda"])
def test_random_decisions_change_no_bit_on_other_places(kind):
    found = collections.Counter(outcome(n, kind) for n in range(5000, 5040))
    assert found["same"] > 8, found


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


def planned(program):
    """What a plan is: its steps, what they compute, read and write."""
    return [
        (
            type(s).__name__,
            s.name,
            s.shape,
            [x.label for x in s.nodes],
            [(r.storage.kind, r.offset, r.shape, r.strides, r.dtype) for r in (*s.reads, *s.writes)],
        )
        for s in program.plan.steps
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
    found = collections.Counter(exported(n) for n in range(7000 + 60 * block, 7060 + 60 * block))
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
