"""What each line does within a fused kernel: bytes and operations told apart, times measured stage by stage."""

import random

import numpy as np
import pytest

import mirabelle as mb
from mirabelle.arraytypes.programs import linestages, profiling, rooflines
from mirabelle.arraytypes.programs.linestages import Dissecting, Stages, works_of
from mirabelle.arraytypes.programs.steps import FoldStep, KernelStep

FAMILIES = [mb.HostArray, mb.RefArray, mb.CuArray]


@pytest.fixture(autouse=True)
def _known_speeds(monkeypatch):
    """What this machine reaches is not measured in each test."""
    monkeypatch.setitem(profiling._bandwidths, mb.HostArray, 1e10)
    monkeypatch.setitem(rooflines._peaks, mb.HostArray, 1e11)


def lines_from(f, works):
    """Works by the number of the line within a function."""
    return {line[1] - f.__code__.co_firstlineno: work for line, work in works.items() if line}


def of(work):
    return work.read, work.written, work.flops


def three(x, y):
    w = mb.exp(x) * x
    v = w + y
    return v * w - x


def test_each_line_reads_what_it_is_the_first_to_read():
    x = mb.zeros(8)
    (step,) = mb.compiling.trace(three, x, mb.zeros(8)).plan.steps
    works = lines_from(three, works_of(step))
    assert {k: of(w) for k, w in works.items()} == {1: (64, 0, 16), 2: (64, 0, 8), 3: (0, 64, 16)}


def summed(x, y):
    w = x * 2.0
    z = w + y
    return mb.sum(z, axis=0), mb.max(z, axis=0)


def test_reductions_belong_to_the_line_that_takes_them():
    (step,) = mb.compiling.trace(summed, mb.zeros((4, 8)), mb.zeros(8)).plan.steps
    works = lines_from(summed, works_of(step))
    assert {k: of(w) for k, w in works.items()} == {1: (256, 0, 32), 2: (64, 0, 32), 3: (0, 128, 64)}


def written(x, y):
    w = y * 2
    x[1:] = w[1:] + x[:-1]
    return w


def test_writes_belong_to_the_line_that_writes():
    program = mb.compiling.trace(written, mb.zeros(8), mb.zeros(8))
    for step in program.plan.steps:
        works = works_of(step)
        if works:
            assert sum(w.written for w in works.values()) == step.traffic[1]
    lines = {k: w for s in program.plan.steps for k, w in lines_from(written, works_of(s)).items()}
    assert lines[2].written == 56


# Any kernel

UNARY = [
    "mb.sin({0})",
    "mb.exp({0})",
    "-{0}",
    "{0} * 3",
    "mb.abs({0})",
    "mb.sqrt({0} * {0} + 1)",
    "({0} > 0) * 2",
]
BINARY = ["{0} + {1}", "{0} * {1}", "{0} - {1} * 0.5", "mb.maximum(mb.real({0}), mb.real({1}))"]
BINARY += ["mb.where(mb.real({0}) > mb.real({1}), {0}, {1})"]
ENDS = ["return {0}", "return {0}, {1}", "return mb.sum({0}, axis=0)", "return mb.sum({0}), {1}"]
ENDS += ["x[...] = mb.real({0}); return {1}", "x[1:] = mb.real({0})[:-1]; return mb.max(mb.real({1}))"]


def random_function(seed):
    """A function of three arrays with one or two operations a line, and its source."""
    r = random.Random(seed)
    names, lines = ["x", "y", "z"], []
    for i in range(r.randint(2, 7)):
        picked = [r.choice(names) for _ in range(2)]
        text = r.choice(UNARY if r.random() < 0.4 else BINARY).format(*picked)
        lines.append(f"    v{i} = {text}")
        names.append(f"v{i}")
    lines.append("    " + r.choice(ENDS).format(names[-1], r.choice(names[3:])))
    source = "def f(x, y, z):\n" + "\n".join(lines) + "\n"
    space = {"mb": mb}
    exec(compile(source, f"<program {seed}>", "exec"), space)
    return space["f"], source


def arguments(seed, family):
    r = np.random.default_rng(seed)
    shape = [(5, 3), (4,), (2, 1, 3), (1,)][seed % 4]
    z = [r.random(shape), r.integers(-3, 9, shape), r.random(shape).astype("f4"), r.random(shape) + 1j]
    return [family(r.random(shape)), family(r.random(shape) - 0.5), family(z[seed // 4 % 4])]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_stages_of_random_kernels(family, monkeypatch):
    monkeypatch.setattr(mb.settings, "compiler", "off" if family is mb.HostArray else mb.settings.compiler)
    seen = 0
    for seed in range(60 if family is mb.HostArray else 9):
        f, source = random_function(seed)
        given = arguments(seed, family)
        program = mb.compile(f).program(*given)
        for step in program.plan.steps:
            if not isinstance(step, (KernelStep, FoldStep)):
                continue
            works = works_of(step)
            read, moved = step.traffic
            assert sum(w.read for w in works.values()) == pytest.approx(read), source
            assert sum(w.written for w in works.values()) == pytest.approx(moved), source
            assert sum(w.flops for w in works.values()) == pytest.approx(step.flops), source
            assert all(w.read >= 0 for w in works.values()), source
            # Each operation comes after its operands, and the last stage is the kernel itself.
            stages = Stages(step)
            kernels = stages.steps()
            assert len(kernels) == len(stages.lines) + isinstance(step, KernelStep)
            assert len(kernels[-1].request.key[0]) == len(step.request.key[0])
            seen += len(stages.lines) > 1
        before = [mb.to_numpy(a).copy() for a in given]
        p = program.profile(*given, times=1, within=True)
        assert all(np.array_equal(mb.to_numpy(a), b) for a, b in zip(given, before, strict=True)), source
        assert sum(x.seconds for x in p.lines) == pytest.approx(p.seconds), source
        for s in p.steps:
            assert sum(s.lines.values()) == pytest.approx(1), source
    assert seen > 3


def test_stages_are_measured_in_the_order_of_lines(monkeypatch):
    """What a stage adds to the time is its lines'; storing is the storing line's, noise nobody's."""
    (step,) = mb.compiling.trace(three, mb.zeros(8), mb.zeros(8)).plan.steps
    stages = Stages(step)
    shares = linestages._shares(stages, [1.0, 4.0, 3.5, 10.0])
    assert lines_from(three, shares) == pytest.approx({1: 0.3, 2: 0.0, 3: 0.7})
    assert linestages._shares(stages, [0.0, 0.0, 0.0, 0.0]) is not None


def looped(x):
    def trip(i, s):
        t = s * 0.5
        return mb.sin(t) + x

    return mb.fori_loop(0, 3, trip, x)


def test_lines_within_loops_are_measured():
    x = mb.HostArray(np.linspace(0, 1, 2000))
    f = mb.compile(looped)
    p = f.profile(x, times=2, within=True)
    assert "are measured" in repr(p) and "are measured" in p._repr_html_()
    (inside,) = next(s for s in p.steps if s.inside).inside
    assert any(s.measured and len(s.lines) == 2 for s in inside)
    assert not isinstance(f.program(x).runner, Dissecting)
    assert np.allclose(mb.to_numpy(f(x)), mb.to_numpy(looped(x)))
    assert "estimated: `profile(..., within=True)` measures it" in repr(f.profile(x, times=1))


def test_lines_are_measured_on_one_place():
    x = mb.DArray[mb.HostArray](np.ones(8))
    with pytest.raises(ValueError, match="measured on one place"):
        mb.compile(three).profile(x, x, times=1, within=True)


# Rooflines


def test_rooflines_hold_steps_against_their_ceiling(tmp_path):
    x, a = mb.HostArray(np.ones(1000)), mb.HostArray(np.ones((20, 20)))

    def f(x, a):
        y = mb.exp(x) * 2
        return mb.sum(y), mb.sort(y), a @ a

    p = mb.compile(f).profile(x, a, times=1)
    r = p.roofline()
    assert [q.seconds for q in r.points] == sorted([q.seconds for q in r.points], reverse=True)
    product = next(q for q in r.points if q.label == "matmul")
    assert product.flops == 2 * 20**3 and product.bound == "memory"
    assert product.ceiling == pytest.approx(max(product.flops / 1e11, product.bytes / 1e10))
    assert product.reached == pytest.approx(product.ceiling / product.seconds)
    for word in ("roofline of f on host", "of ceiling", "matmul", "100 Gflop/s", "memory"):
        assert word in repr(r).replace("100.0", "100"), word
    assert "matmul" in r._repr_html_()
    assert len(p.roofline(1).points) == 1
    pytest.importorskip("matplotlib")
    path = r.picture(tmp_path / "roofline.png")
    assert (tmp_path / "roofline.png").read_bytes().startswith(b"\x89PNG") and path.endswith("roofline.png")


def test_rooflines_of_loops_and_simulated_cards(tmp_path):
    x = mb.RefArray(np.linspace(0, 1, 100))
    r = mb.compile(looped).profile(x, times=1).roofline()
    assert r.peak is None and r.bandwidth is None
    assert all(q.reached is None for q in r.points) and "is not known" in repr(r)
    assert any("sin" in q.label for q in r.points) and not any("loop" in q.label for q in r.points)
    pytest.importorskip("matplotlib")
    assert r.picture(tmp_path / "r.png").endswith("r.png")
    empty = mb.compile(lambda x: x).profile(x, times=1).roofline()
    assert empty.points == [] or repr(empty)
    empty.picture(tmp_path / "e.png")


def test_what_products_reach_is_measured_once(monkeypatch):
    monkeypatch.setattr(rooflines, "ROWS", 16)
    monkeypatch.delitem(rooflines._peaks, mb.HostArray)
    assert rooflines.peak_of(mb.HostArray) == rooflines.peak_of(mb.HostArray) > 0
