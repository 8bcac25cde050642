"""Who counts sees what users run: an open `mb.count()` changes no call, and what is done says what it moves."""

import ast
import collections
import gc
import sys
from pathlib import Path

import numpy as np
import pytest
from ways import as_many

import mirabelle as mb

ROOT = Path(__file__).parent.parent
FOLDERS = ("dispatch", "arraytypes", "backends", "dg", "mirabelle")
# What adds up, and may call what it likes.
ADDING = {str(ROOT / "dispatch" / name) for name in ("counters.py", "evaluation.py")}


def sources():
    for folder in FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.py"))


def asks(test):
    """Does a condition ask whether somebody counts?"""
    return any(
        isinstance(n, ast.Attribute) and n.attr == "active" and is_counters(n.value) for n in ast.walk(test)
    )


def is_counters(x):
    return isinstance(x, ast.Name) and x.id == "counters"


def only_adds(node):
    """`if counters.active [and ...]: counters.add(...)`, perhaps of what was worked out for it; no `else`."""
    return not node.orelse and all(
        isinstance(s, ast.Assign | ast.AnnAssign)
        or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) and adds(s.value.func))
        for s in node.body
    )


def adds(f):
    named = f.id if isinstance(f, ast.Name) else ""
    return named.startswith("_count") or (isinstance(f, ast.Attribute) and is_counters(f.value))


def looks():
    """(file, node, does it only add up) for each place that asks whether somebody counts."""
    for path in sources():
        text = path.read_text()
        if "counters.active" not in text or str(path) in ADDING:
            continue
        tree = ast.parse(text)
        inside = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and asks(node.test):
                inside |= {id(n) for n in ast.walk(node.test)}
                yield path, node, only_adds(node)
            elif isinstance(node, ast.IfExp) and asks(node.test):
                inside |= {id(n) for n in ast.walk(node.test)}
                is_evaluation = isinstance(node.body, ast.Call) and ast.unparse(node.body.func) == "Evaluation"
                yield path, node, is_evaluation and ast.unparse(node.orelse) == "None"
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and asks(node) and id(node) not in inside:
                yield path, node, False


LOOKS = list(looks())


def test_who_asks_whether_somebody_counts_only_adds_up():
    wrong = [f"{path.relative_to(ROOT)}:{node.lineno}" for path, node, fine in LOOKS if not fine]
    assert not wrong, f"counting must not choose what is done: {wrong}"
    assert LOOKS
    in_c = [p.name for p in (ROOT / "dispatch" / "csrc").glob("*.c") if "state.counting" in p.read_text()]
    assert sorted(in_c) == ["computing.c", "counting.c"], "the second has it for what runs in another context"


LINES = collections.defaultdict(set)
for _path, _node, _ in LOOKS:
    LINES[str(_path)] |= set(range(_node.lineno, _node.end_lineno + 1))


class Calls:
    """The calls of a statement, in order, but those that add up."""

    def __init__(self):
        self.made = []
        self.adding = None  # the frame that began to

    def __call__(self, frame, event, argument):
        if self.adding is not None:
            if event == "return" and frame is self.adding:
                self.adding = None
            return
        if event == "call":
            caller, code = frame.f_back, frame.f_code
            by_who_adds = caller is not None and caller.f_lineno in LINES.get(caller.f_code.co_filename, ())
            if code.co_filename in ADDING or by_who_adds:
                self.adding = frame
                return
            self.made.append((code.co_filename, code.co_name))
        elif event == "c_call" and frame.f_lineno not in LINES.get(frame.f_code.co_filename, ()):
            self.made.append(getattr(argument, "__qualname__", str(argument)))

    def of(self, statement, v):
        self.made = []
        sys.setprofile(self)
        try:
            statement(v)
        finally:
            sys.setprofile(None)
        return tuple(self.made)


class Arrays:
    def __init__(self, family, n):
        rng = np.random.default_rng(n)
        side = max(2, int(n**0.5))
        self.x, self.y, self.z = (family(rng.random(n) + 1) for _ in range(3))
        self.f = family(rng.random(n).astype("f4"))
        self.m, self.k = (family(rng.random((side, side))) for _ in range(2))
        self.v = family(rng.random(side))
        self.i = family(rng.integers(0, n, max(n // 2, 1)))
        self.b = family(rng.random(n) > 0.5)
        self.out = family(np.zeros(n))


def named(v):
    t = v.x * 2
    v.z[...] = t + v.y


def set_at(v, index, value):
    v.z[index] = value


def in_place(v):
    v.z *= 1.0


STATEMENTS = {
    "one": lambda v: mb.materialize(v.x + v.y),
    "fused": lambda v: mb.materialize(v.x * v.y + 2.0),
    "transcendental": lambda v: mb.materialize(mb.exp(-v.x) / (1 + v.y)),
    "single": lambda v: mb.materialize(v.f * 2 + 1),
    "comparison": lambda v: mb.materialize(v.x > v.y),
    "where": lambda v: mb.materialize(mb.where(v.b, v.x, v.y)),
    "cast": lambda v: mb.materialize(v.x.astype("f4")),
    "copy": lambda v: mb.copy(v.x),
    "copy of a part": lambda v: mb.copy(v.m.T[1:]),
    "norm of a part": lambda v: mb.materialize(mb.norm(v.x[1:])),
    "view": lambda v: v.x[1:],
    "whole": lambda v: set_at(v, ..., v.x * v.y + 2),
    "in place": in_place,
    "part": lambda v: set_at(v, slice(1, -1), v.x[1:-1] * v.y[1:-1] + 2),
    "part of itself": lambda v: set_at(v, slice(1, -1), (v.z[2:] + v.z[:-2]) * 0.5),
    "part, one number": lambda v: set_at(v, slice(1, -1), 1.5),
    "part, an array": lambda v: set_at(v, slice(0, 10), v.x[5:15]),
    "name": named,
    "sum": lambda v: mb.materialize(mb.sum(v.x)),
    "sum of a tree": lambda v: mb.materialize(mb.sum(v.x * v.y)),
    "rows": lambda v: mb.materialize(mb.sum(v.m, axis=1)),
    "columns of a tree": lambda v: mb.materialize(mb.max(v.m * 2, axis=0)),
    "number": lambda v: float(mb.sum(abs(v.x - v.y))),
    "any": lambda v: bool(mb.any(v.x > 3)),
    "norm": lambda v: mb.materialize(mb.norm(v.x)),
    "dot": lambda v: mb.materialize(mb.dot(v.x, v.y)),
    "matrix by vector": lambda v: mb.materialize(v.m @ v.v),
    "matrices": lambda v: mb.materialize(v.m @ v.k),
    "turned": lambda v: mb.materialize(v.m.T @ v.k),
    "turned tree": lambda v: mb.materialize(v.m.T + v.k),
    "gather": lambda v: mb.materialize(v.x[v.i]),
    "mask": lambda v: mb.materialize(v.x[v.b]),
    "scatter": lambda v: set_at(v, v.i, 1.0),
    "masked write": lambda v: set_at(v, v.b, 0.0),
    "joined": lambda v: mb.materialize(mb.concatenate([v.x, v.y])),
    "rolled": lambda v: mb.materialize(mb.roll(v.x, 1)),
    "scan": lambda v: mb.materialize(mb.cumsum(v.x)),
    "sorted": lambda v: mb.sort(v.x),
    "nan": lambda v: mb.materialize(mb.nanmax(v.x)),
    "over a reduction": lambda v: mb.materialize(v.x / mb.sum(v.x)),
    "element": lambda v: float(v.x[3]),
    "one element": lambda v: set_at(v, 2, 1.0),
}
SIZES = [(mb.HostArray, n) for n in (100, 3000, 20_000)] + [(mb.CuArray, 40)]


@pytest.fixture
def compiled():
    """As users run it, once its kernels have come."""
    with mb.settings.changed(compiler="inline", compile_after=1), mb.allow_scalar():
        yield


@pytest.mark.parametrize(("family", "n"), SIZES, ids=lambda p: getattr(p, "__name__", p))
def test_the_same_statement_makes_the_same_calls_while_somebody_counts(family, n, compiled, request):
    calls, different = Calls(), []
    gc.disable()  # (what hooks on collections call is no part of a statement)
    request.addfinalizer(gc.enable)
    for name, statement in STATEMENTS.items():
        v = Arrays(family, n)
        for _ in range(20 if family is mb.HostArray else 10):
            statement(v)
        seen, counted = set(), collections.Counter()
        turns, each = (28, 4) if family is mb.HostArray else (4, 2)
        for k in range(turns):
            seen.add(calls.of(statement, v))
            if k % each == 1:
                with mb.count() as c:
                    counted[calls.of(statement, v)] += 1
        # (Now and then a statement is written down: such a turn differs from others.)
        others = {made for made, times in counted.items() if times > 1} - seen
        if others or not seen & counted.keys():
            different.append((name, c, closest(others or counted.keys(), seen)))
    assert not different, different


def closest(counted, seen):
    """Where calls part."""
    a = next(iter(counted))
    b = max(seen, key=lambda s: common(a, s))
    at = common(a, b)
    return a[at : at + 3], b[at : at + 3]


def common(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


# What is counted by default

N = 100


def amounts(c):
    return c.launches, c.bytes_read // 8, c.bytes_written // 8


# What few and what many doubles cost: launches, doubles read and written; None: whatever way is taken.
COSTS = {
    "one": ((1, 2 * N, N), (1, 2 * N, N)),
    "fused": ((2, 3 * N, 2 * N), (1, 2 * N, N)),
    "view": ((0, 0, 0), (0, 0, 0)),
    "whole": ((2, 3 * N, 2 * N), (1, 2 * N, N)),
    "part": ((3, 4 * (N - 2), 3 * (N - 2)), (1, 2 * (N - 2), N - 2)),
    "part, one number": ((1, 0, N - 2), (1, 0, N - 2)),
    "part, an array": ((1, 10, 10), (1, 10, 10)),
    "copy": ((1, N, N), (1, N, N)),
    "sum": ((1, N, 1), (1, N, 1)),
    "sum of a tree": ((2, 3 * N, N + 1), (1, 2 * N, 1)),
    "number": ((3, 4 * N, 2 * N + 1), (1, 2 * N, 1)),
    "dot": ((1, 2 * N, 1), (1, 2 * N, 1)),
    "norm": ((1, N, 1), (1, N, 1)),
    "joined": ((1, 2 * N, 2 * N), None),
    "over a reduction": ((2, 2 * N + 1, N + 1), (2, 2 * N + 1, N + 1)),
    "one element": ((1, 0, 1), (1, 0, 1)),
    "element": ((0, 0, 0), (0, 0, 0)),
}


@pytest.mark.parametrize("name", COSTS)
def test_what_few_and_many_cost(name, way):
    with mb.settings.changed(small_size=4096):  # (as by default)
        statement, (few, many) = STATEMENTS[name], COSTS[name]
        v = Arrays(mb.HostArray, N)
        for _ in range(3):
            with mb.count() as c:
                statement(v)
            assert amounts(c) == few
        assert c.scalar_reads == (name in ("number", "element", "one element"))
    if many is not None:
        with as_many(), mb.count() as c:
            statement(v)
        assert amounts(c) == many and c.temporaries == (name == "over a reduction")


OPERATIONS = [np.add, np.subtract, np.multiply, np.maximum, np.sqrt, np.negative, np.greater, np.arctan2]
SHAPES = [(), (1,), (7,), (3, 1), (3, 7), (0, 7), (40, 3, 7)]


@pytest.mark.parametrize("seed", range(12))
def test_each_operation_on_few_elements_is_counted_as_it_is(seed):
    """Random operations on arrays of all dtypes and shapes that meet, on parts and numbers, against a tally."""
    rng = np.random.default_rng(seed)
    dtypes = ["f8", "f4", "i4", "?", "u1", "c16"]
    made = []
    for shape in SHAPES:
        for dtype in rng.choice(dtypes, 2):
            n = np.asarray(rng.random(shape) * 9 + 1).astype(dtype)
            made.append((n, mb.HostArray(n)))
    made += [(n[::-1], x[::-1]) for n, x in made if n.ndim]
    for n, x in made:
        mb.materialize(x)
        np.testing.assert_array_equal(mb.to_numpy(x), n)
    launches = read = written = 0
    with mb.count() as c, np.errstate(all="ignore"):
        for _ in range(60):
            f = OPERATIONS[rng.integers(len(OPERATIONS))]
            at = rng.integers(len(made), size=f.nin)
            theirs, ours = zip(*[made[i] for i in at], strict=True)
            if f.nin == 2 and rng.random() < 0.3:
                theirs, ours = (theirs[0], 2), (ours[0], 2)
            try:
                expected = f(*theirs)
            except (TypeError, ValueError):
                continue
            result = mb.materialize(getattr(mb, f.__name__)(*ours))
            assert result.dtype == expected.dtype, (f, theirs)
            launches += 1
            read += sum(n.nbytes for n in {id(n): n for n in theirs if isinstance(n, np.ndarray)}.values())
            written += expected.nbytes
    assert (c.launches, c.bytes_read, c.bytes_written, c.temporaries) == (launches, read, written, 0)


def test_what_is_computed_on_the_way_of_something_else_counts_for_the_open_block():
    """NumPy's calls run in a context of their own, which is kept: not for the blocks that were open then."""
    x = mb.HostArray(np.arange(40.0))
    with mb.settings.changed(immediate_size=0, brief_size=0):
        for _ in range(3):
            with mb.count() as c:
                mb.materialize(x / mb.sqrt(mb.sum(x * x)))
            assert (c.launches, c.temporaries) == (2, 1)


def test_what_goes_wrong_in_counting_is_said_and_undoes_nothing(monkeypatch):
    from mirabelle.dispatch import counters, native

    def add(**amounts):
        raise RuntimeError("no")

    x = mb.HostArray(np.ones(3))
    said = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    native.tell(add=add)
    try:
        with mb.count() as c:
            y = x + 1
    finally:
        native.tell(add=counters.add)
    assert mb.to_numpy(y).tolist() == [2.0] * 3 and c.launches == 0
    assert [type(s.exc_value) for s in said] == [RuntimeError]
