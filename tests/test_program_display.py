"""What compiled programs say of themselves: `explain`, `profile`, traces and pictures."""

import functools
import html.parser
import itertools
import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import mirabelle as mb
from mirabelle.arraytypes.programs import explaining, picture, profiling
from mirabelle.arraytypes.programs.explaining import Repeat, repeats

FAMILIES = [mb.HostArray, mb.RefArray, mb.CuArray, mb.DArray[mb.HostArray]]


@pytest.fixture(autouse=True)
def _simulated():
    """Programs are for a card without one, and the bandwidth of this machine is not measured each time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(profiling._bandwidths, mb.HostArray, 1e10)
        yield


def numbers(*shape):
    return np.random.default_rng(1).random(shape)


def mixed(u, v):
    w = mb.sin(u) * v
    v[1:] = w[:-1] + 1
    return mb.sum(w, axis=0), mb.sort(w, axis=0)


def line_of(f, number):
    """The number of a function's line, from its `def`."""
    return f.__code__.co_firstlineno + number


def jacobi(a, b, steps):
    for _ in range(steps):
        b[1:-1] = (a[:-2] + a[1:-1] + a[2:]) / 3
        a[1:-1] = (b[:-2] + b[1:-1] + b[2:]) / 3
    return mb.sum(a)


class Checker(html.parser.HTMLParser):
    """Every element that is opened is closed."""

    void = ("br", "hr", "img", "meta")

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def check_html(text):
    checker = Checker()
    checker.feed(text)
    assert not checker.open
    assert "<style" not in text and "<script" not in text  # notebooks that are not trusted show it, too
    assert "nan" not in text.replace("inan", "")


# explain


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_steps_name_lines_bytes_and_kernels(family):
    u, v = family(numbers(5, 5)), family(numbers(5, 5))
    e = mb.compile(mixed).program(u, v).explain(source=True)
    text = repr(e)
    for word in (
        "mixed in test_program_display.py",
        "u float64[5, 5], v float64[5, 5]",
        "float64[5], float64[5, 5]",
        "writes to     v",
        "capture",
        "w = mb.sin(u) * v",
        "v[1:] = w[:-1] + 1",
        "sin, multiply",
        "sort",
        "_sin_multiply(",
        "are in use at once at most",
        "step 0 to",
    ):
        assert word in text, word
    assert family.__name__ in e.facts["runs on"]
    by_label = {s.label: s for s in e.steps}
    first = by_label["sin, multiply"]
    assert [n - line_of(mixed, 0) for _, n in first.lines] == [1]
    # (u is read; v is, too, at other places than those of w.)
    assert (first.read, first.written, first.flops) == (400, 200, 50)
    assert by_label["sort"].kind == "call" and by_label["sort"].moved == 400
    check_html(e._repr_html_())


class Model:
    def step(self, u, v=None):
        return u * 2 + (0 if v is None else v)

    def __call__(self, u, /, v):
        return self.step(u, v)


@pytest.mark.parametrize(
    "f",
    [Model().step, Model(), functools.partial(Model.step, Model())],
    ids=["bound method", "callable", "partial"],
)
def test_arguments_have_the_callers_names(f, tmp_path):
    """An object that is bound has none, and those given by name are found where they belong."""
    u, v = mb.ones(3), mb.zeros(3)
    program = mb.compile(f).program(u, v)
    assert program.explain().facts["called with"] == "u float64[3], v float64[3]"
    program.save(tmp_path / "f.program")
    assert mb.load_program(tmp_path / "f.program")(u, v=v).tolist() == [2.0, 2.0, 2.0]


def test_functions_explain_themselves():
    with pytest.raises(TypeError, match=r"not a Compiled\. .* `f\.explain\(x\)`"):
        mb.explain(mb.compile(mixed))


def test_a_kernel_of_several_lines_is_divided_by_what_they_cost():
    def f(x):
        y = x * 2 + 1
        z = mb.exp(y)
        return z - x

    (step,) = mb.compile(f).explain(mb.zeros(10)).steps
    shares = {n - line_of(f, 0): share for (_, n), share in step.lines.items()}
    assert set(shares) == {1, 2, 3} and sum(shares.values()) == pytest.approx(1)
    assert shares[2] > shares[1] > shares[3]


def test_copies_belong_to_the_write_they_are_for():
    def f(x):
        y = mb.sort(x)
        z = y + 0
        y[1:] = z[:-1] * 2
        return y, z

    e = mb.compile(f).explain(mb.HostArray(numbers(10)))
    copies = [s for s in e.steps if s.kind == "copy"]
    assert all([n - line_of(f, 0) for _, n in s.lines] == [3] for s in copies)
    assert all(s.lines for s in e.steps)


def test_overlapping_parts_of_one_memory_are_read_once():
    (step,) = mb.compile(lambda x: x[:-2] + x[1:-1] + x[2:]).explain(mb.zeros(100)).steps
    assert (step.read, step.written) == (800, 784)
    (step,) = mb.compile(lambda x: mb.broadcast_to(x, (50, 2)) * 1.5).explain(mb.zeros(2)).steps
    assert (step.read, step.written) == (16, 800)


def test_products_are_counted():
    (step,) = mb.compile(lambda x: x @ x, passes=[]).explain(mb.zeros((5, 5))).steps
    assert (step.label, step.flops, step.intensity) == ("matmul", 250, 250 / 400)


def test_explaining_runs_nothing():
    x = mb.HostArray(numbers(10))
    program = mb.compile(lambda x: mb.sum(mb.exp(x))).program(x)
    with mb.count() as c:
        repr(program.explain(source=True))
        program._repr_html_()
    assert c.launches == 0 and c.library_calls == 0


def test_each_program_keeps_what_the_passes_did_to_it():
    f = mb.compile(lambda x: x.T.T + x[::2][::2] if x.ndim == 1 else x + 1)
    small, large = f.program(mb.zeros((2, 2))), f.program(mb.zeros(1))
    assert small.record is not large.record
    assert small.record[0][1] == 2 and small.explain().facts["passes"]


# What comes again and again


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("", "[]"),
        ("abc", "[0, 1, 2]"),
        ("aaaa", "[4 x [0]]"),
        ("xababab", "[0, 3 x [1, 2]]"),
        ("aabaabaab", "[3 x [2 x [0], 2]]"),
        ("abab" "c" "abab", "[2 x [0, 1], 4, 2 x [5, 6]]"),
    ],
)  # fmt: skip
def test_repeats(keys, said):
    assert repr(repeats(keys)) == said


def test_repeats_say_all_steps():
    rng = np.random.default_rng(0)

    def spread(items):
        for item in items:
            if isinstance(item, Repeat):
                inside = list(spread(item.items))
                assert len(inside) == item.length
                for i in range(item.count):
                    yield from [x + i * item.length for x in inside]
            else:
                yield item

    for _ in range(200):
        keys = rng.integers(0, rng.integers(1, 5), rng.integers(0, 40)).tolist()
        found = list(spread(repeats(keys)))
        assert found == list(range(len(keys)))


def test_a_loop_that_was_unrolled_is_said_once():
    a, b = mb.HostArray(numbers(50)), mb.HostArray(numbers(50))
    e = mb.compile(jacobi).explain(a, b, 100)
    assert len(e.steps) >= 200
    assert any(isinstance(i, Repeat) and i.count >= 98 and i.length == 2 for i in e.items)
    text = repr(e)
    assert len(text.split("\n")) < 50 and " times: steps " in text
    page = e._repr_html_()
    assert len(page) < 60_000 and "times 2 steps" in page
    check_html(page)


# Memory


def test_memory_says_what_is_planned_and_where_the_peak_is():
    def f(x):
        y = mb.sort(x)
        big = mb.outer(y, y)
        z = mb.sort(big, axis=0)
        return mb.sort(z[0] + z[1])

    program = mb.compile(f).program(mb.HostArray(numbers(30)))
    memory = program.explain().memory
    assert (memory.planned, memory.peak) == (program.plan.arena_bytes, program.plan.peak_bytes)
    assert [n - line_of(f, 0) for _, n in memory.lines] == [3]
    assert "z = mb.sort(big, axis=0)" in memory.peak_sentence()
    assert memory.live == 2 * 8 * 900
    chart = memory.chart()
    assert any("7.0 KiB" in line and "█" in line for line in chart)


def test_storages_in_one_place_do_not_overlap():
    def f(x):
        for k in range(20):
            x = mb.sort(mb.cumulative_sum(x) + k) * 2
        return x

    e = mb.compile(f).explain(mb.HostArray(numbers(100)))
    for _, _, storages in e.memory.places():
        in_turn = sorted(storages, key=lambda s: s.first)
        for s, after in itertools.pairwise(in_turn):
            assert e.memory.until(s) < after.first or s.offset != after.offset


# Pictures


def svgs(page):
    """The pictures in a page, which are well-formed."""
    found = []
    at = page.find("<svg")
    while at >= 0:
        end = page.index("</svg>", at) + 6
        found.append(ET.fromstring(page[at:end]))
        at = page.find("<svg", end)
    return found


def test_boxes_stand_apart_and_lines_go_down():
    def f(x, y):
        a = mb.sort(x) + y
        b = mb.sort(y) - a
        return mb.sort(a * b), mb.sum(a), b

    e = mb.compile(f).explain(mb.HostArray(numbers(9)), mb.HostArray(numbers(9)))
    boxes = picture.steps_boxes(e)
    picture.drawing(boxes)
    steps = [b for b in boxes if not b.is_source]
    for i, b in enumerate(steps):
        for other, _ in b.reads.values():
            assert other.y + other.high <= b.y and other.layer < b.layer
        for c in steps[:i]:
            apart = abs(b.x - c.x) >= (b.wide + c.wide) / 2
            assert apart or b.y + b.high <= c.y or c.y + c.high <= b.y
    assert {b.said for b in steps} >= {"result 0", "result 1", "result 2", "sort"}


@pytest.mark.parametrize("count", [3, 60, 700])
def test_pictures_of_programs_of_all_sizes(count):
    def f(a, b):
        kept = [a, b]
        for k in range(count):
            x, y = kept[k % 3 % len(kept)], kept[-1]
            kept.append(mb.sort(x) + y if k * k % 7 == 1 else x - mb.mean(y) * (k % 5))
            kept = kept[-4:]
        return kept[-1]

    program = mb.compile(f).program(mb.zeros(8), mb.zeros(8))
    page = program._repr_html_()
    check_html(page)
    drawn = svgs(page)
    assert drawn and all(float(s.get("width")) < 20000 for s in drawn)
    boxes = drawn[0].findall("{http://www.w3.org/2000/svg}g")
    assert len(boxes) < 3 * picture.STEPS
    assert ("too many for a picture" in page) == (len(program.graph) > picture.NODES)
    assert len(page) < 600_000


def test_a_program_of_nothing_is_shown():
    program = mb.compile(lambda x: None).program(mb.zeros(3))
    e = program.explain()
    assert e.facts["steps"] == "none" and repr(e)
    check_html(e._repr_html_())
    same = mb.compile(lambda x: x).program(mb.zeros(3)).explain()
    assert repr(same) and same._repr_html_()


def test_names_are_escaped():
    def f(x):
        return x + 1 if "<b>" else x

    page = mb.compile(f).explain(mb.zeros(3))._repr_html_()
    assert "<b>" not in page and "&lt;b&gt;" in page
    assert "&lt;lambda&gt;" in mb.compile(lambda x: x + 1).program(mb.zeros(3))._repr_html_()


# profile


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_profiles_divide_the_time_among_lines(family):
    u, v = family(numbers(5, 5)), family(numbers(5, 5))
    f = mb.compile(mixed)
    p = f.profile(u, v, times=2)
    assert np.array_equal(mb.to_numpy(u), numbers(5, 5)) and np.array_equal(mb.to_numpy(v), numbers(5, 5))
    assert {x.line[1] - line_of(mixed, 0) for x in p.lines} == {1, 2, 3}
    assert sum(x.share for x in p.lines) == pytest.approx(1)
    assert sum(x.seconds for x in p.lines) == pytest.approx(p.seconds) == sum(s.seconds for s in p.steps)
    assert sum(x.bytes for x in p.lines) == pytest.approx(sum(s.bytes for s in p.steps))
    assert [x.seconds for x in p.lines] == sorted([x.seconds for x in p.lines], reverse=True)
    assert all(s.seconds > 0 for s in p.steps) and p.native_seconds > 0
    text = repr(p)
    for word in ("as a whole", "step by step", "w = mb.sin(u) * v", "sort", "share"):
        assert word in text, word
    check_html(p._repr_html_())
    # What was measured is said by explain from then on.
    e = f.explain(u, v)
    assert "last profile" in e.facts and all(s.seconds is not None for s in e.steps)
    peaks = [mb.HostArray] + [mb.CuArray] * (mb.settings.cuda != "simulated")  # of what is known
    assert ("of peak" in repr(e)) == (family in peaks)
    check_html(e._repr_html_())


def test_profiles_begin_each_round_with_the_same_arguments():
    seen = []
    f = mb.compile(jacobi)
    a, b = mb.HostArray(numbers(50)), mb.HostArray(numbers(50))
    program = f.program(a, b, 3)
    run = program.runner.run

    def watched(inputs):
        seen.append(np.array(inputs[0]))
        return run(inputs)

    program.runner.run = watched
    p = program.profile(a, b, 3, times=3)
    assert len(seen) >= 5 and all(np.array_equal(x, numbers(50)) for x in seen)
    assert len(p.steps) == len(program.plan.steps)
    f(a, b, 3)
    x, y = numbers(50), numbers(50)
    jacobi(x, y, 3)
    assert np.allclose(mb.to_numpy(a), x)


def test_profiles_of_numpys_arrays_and_containers():
    f = mb.compile(lambda pair, scale: {"sum": pair[0] + pair[1] * scale})
    x = numbers(8)
    p = f.profile((x, x), scale=2.0, times=1)
    assert len(p.steps) == 1 and p.times == 1


def test_profiles_of_interpreted_programs():
    before = mb.settings.compiler
    mb.settings.compiler = "off"
    try:
        x = mb.HostArray(numbers(5, 5))
        p = mb.compile(mixed).profile(x, mb.HostArray(numbers(5, 5)), times=1)
        assert all(s.seconds > 0 for s in p.steps)
    finally:
        mb.settings.compiler = before


def test_a_profile_refuses_what_the_program_is_not_for():
    program = mb.compile(lambda x, n: x + n).program(mb.zeros(3), 2)
    for args in ((mb.zeros(4), 2), (mb.zeros(3), 3), (mb.zeros(3),)):
        with pytest.raises(TypeError, match=r"is for other arguments .*f\.profile\(\*args\)"):
            program.profile(*args)
    for times in (0, -1, 1.5, True, "3"):
        with pytest.raises(ValueError, match="at least one round"):
            program.profile(mb.zeros(3), 2, times=times)
    # What cannot be compiled cannot be explained; the error is that of compiling.
    with pytest.raises(mb.compiling.TraceError, match=r"mb\.where|mb\.cond"):
        mb.compile(lambda x: x if mb.sum(x) > 0 else -x).explain(mb.zeros(3))


def test_traces_are_chromes(tmp_path):
    a, b = mb.HostArray(numbers(50)), mb.HostArray(numbers(50))
    p = mb.compile(jacobi).profile(a, b, 4, times=2)
    path = p.save(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert path == str(tmp_path / "trace.json")
    steps = [e for e in events if e["ph"] == "X" and "step" in e["args"]]
    assert [e["args"]["step"] for e in steps] == list(range(len(p.steps)))
    for e, after in itertools.pairwise(steps):
        assert e["ts"] >= 0 and e["dur"] >= 0 and e["ts"] + e["dur"] <= after["ts"] + 0.01
    assert all(
        e["args"]["bytes"] == s.bytes and e["args"]["lines"] for e, s in zip(steps, p.steps, strict=True)
    )
    lines = [e for e in events if e.get("cat") == "line"]
    for e in steps:  # each within its line
        assert any(x["ts"] - 0.01 <= e["ts"] and e["ts"] + e["dur"] <= x["ts"] + x["dur"] + 0.01 for x in lines)
    assert {e["args"]["name"] for e in events if e["ph"] == "M"} >= {"step by step", "as a whole"}


def test_pictures_of_profiles(tmp_path):
    pytest.importorskip("matplotlib")
    x = mb.HostArray(numbers(8))
    p = mb.compile(lambda x: mb.sort(x) * 2).profile(x, times=1)
    path = p.picture(tmp_path / "profile.png")
    assert (tmp_path / "profile.png").read_bytes().startswith(b"\x89PNG") and path.endswith("profile.png")


# Loops and branches


def looped(x, n):
    def trip(i, s):
        t = s * 0.5
        return mb.sin(t) + x[0]

    y = mb.fori_loop(0, n, trip, x)
    return mb.cond(mb.sum(y) > 0, lambda y: mb.sort(y), lambda y: y * 2, y)


@pytest.mark.parametrize("family", [mb.HostArray, mb.RefArray], ids=lambda f: f.__name__)
def test_what_loops_and_branches_do_is_said(family):
    f = mb.compile(looped)
    x = family(numbers(100))
    e = f.explain(x, 7, source=True)
    text = repr(e)
    for word in (
        "each of 7 trips",
        "return mb.sin(t) + x[0]",
        "if true",
        "if false",
        "_multiply_sin_add(",
    ):
        assert word in text, word
    loop = next(s for s in e.steps if s.inside)
    assert loop.flops == 7 * sum(s.flops for s in loop.inside[0].steps)
    check_html(e._repr_html_())
    p = f.profile(x, 7, times=2)
    seconds = {x.line[1] - line_of(looped, 0): x.seconds for x in p.lines}
    assert {2, 3, 5} <= set(seconds) and all(seconds[k] > 0 for k in (2, 3, 5))
    assert sum(seconds.values()) == pytest.approx(p.seconds)
    (steps,) = p.steps[loop.number].inside
    assert all(s.runs == 7 for s in steps)
    # The program goes on as before.
    graph = loop.inside[0].graph
    assert type(graph.runs[family]) is not profiling._Sums
    assert np.allclose(mb.to_numpy(f(x, 7)), mb.to_numpy(f.function(x, 7)))
    assert "each of 7 trips" in repr(f.explain(x, 7))


def test_loaded_programs_are_explained_and_profiled(tmp_path):
    u, v = mb.HostArray(numbers(5, 5)), mb.HostArray(numbers(5, 5))
    mb.compile(mixed).program(u, v).save(tmp_path / "mixed.program")
    program = mb.load_program(tmp_path / "mixed.program")
    assert "sort" in repr(program.explain()) and "sort" in program._repr_html_()
    assert len(program.profile(u, v, times=1).steps) == len(program.plan.steps)
    with pytest.raises(TypeError, match="other arguments"):
        program.profile(u, times=1)


def test_numbers_are_readable():
    counts = {0: "0", 999: "999", 1000: "1.0 k", 25_600: "25.6 k", 3.2e9: "3.2 G"}
    assert {n: explaining.shown_count(n) for n in counts} == counts
    times = {0: "0 ns", 3.25e-6: "3.25 µs", 0.0125: "12.5 ms", 2: "2 s"}
    assert {s: explaining.shown_seconds(s) for s in times} == times
    assert [explaining.plural(n, "copy") for n in (1, 2)] == ["1 copy", "2 copies"]
