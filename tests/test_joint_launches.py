"""Kernels of unlike sizes are one launch: with the numbers that each has by itself, on every place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compare import assert_same

import mirabelle as mb
from mirabelle import dg
from mirabelle.arraytypes.programs import joining
from mirabelle.arraytypes.programs.joining import singly
from mirabelle.arraytypes.programs.steps import JoinedStep, KernelStep

simulated = pytest.mark.skipif(mb.settings.cuda != "simulated", reason="needs simulated cards")
PLACES = [mb.HostArray, pytest.param(mb.CuArray, marks=simulated)]


def kinds(program: Any) -> list[int]:
    """Of each step that computes something: how many kernels it is."""
    steps = program.plan.steps
    return [len(s.members) if isinstance(s, JoinedStep) else 1 for s in steps if not s.does_nothing]


def launched(compiled: Any, *args: Any) -> int:
    """The launches of a call, once all kernels are there."""
    with mb.settings.changed(compiler="inline"):
        for _ in range(2):
            compiled(*args)
        with mb.count() as counts:
            compiled(*args)
    return counts.launches


def flux(a: Any, b: Any) -> Any:
    return 0.5 * (a * a + b * b) - 0.5 * mb.maximum(mb.abs(a), mb.abs(b)) * (b - a)


@pytest.mark.parametrize("place", PLACES)
def test_one_function_on_arrays_of_unlike_sizes_is_one_launch(place):
    rng = np.random.default_rng(0)
    data = [place(rng.random(n)) for n in (300, 300, 17, 17, 4, 4)]

    def fluxes(a, b, c, d, e, f):
        return flux(a, b), flux(c, d), flux(e, f)

    compiled = mb.compile(fluxes)
    assert kinds(compiled.program(*data)) == [3]
    assert launched(compiled, *data) == 1
    for made, wanted in zip(compiled(*data), fluxes(*map(mb.to_numpy, data)), strict=True):
        assert_same(mb.to_numpy(made), wanted, rtol=1e-14)
    assert "3 in one launch" in str(compiled.program(*data).explain())


@pytest.mark.parametrize("place", PLACES)
def test_a_schedule_forbids_it(place):
    def f(a, b, c):
        return mb.sin(a) * 2, mb.sin(b) * 2, mb.sin(c) * 2

    data = [place(np.ones(n)) for n in (5, 6, 7)]
    assert kinds(mb.compile(f).program(*data)) == [3]
    alone = mb.compile(f, schedule=mb.compiling.Schedule().separate("multiply[1]"))
    assert sorted(kinds(alone.program(*data))) == [1, 2]
    assert launched(alone, *data) == 2


@pytest.mark.parametrize("place", PLACES)
def test_pieces_of_one_array_are_one_launch_whatever_they_are(place):
    rng = np.random.default_rng(1)
    data = [place(rng.random((n, 6))) for n in (9, 2, 30)]

    def row(a, b, c):
        return mb.concat([mb.exp(a), mb.sqrt(b)[:, ::-1] + 1, c[:, ::-1] * c])

    compiled = mb.compile(row)
    assert launched(compiled, *data) == 1
    assert_same(mb.to_numpy(compiled(*data)), mb.to_numpy(row(*map(mb.HostArray, map(mb.to_numpy, data)))))


OPERATIONS = [
    lambda x, y: x + 2 * y,
    lambda x, y: mb.where(x > y, x, mb.sqrt(mb.abs(y))),
    lambda x, y: mb.astype(x, mb.float32) * y,
    lambda x, y: mb.exp(-x) - y[::-1],
    lambda x, y: mb.astype(x > 0.5, mb.int32) + 3,
]


def random_program(rng: np.random.Generator) -> Any:
    """A function of arrays of random sizes: values, pieces, parts, and writes to one another's operands."""
    plan = [
        (int(rng.integers(5)), *map(int, rng.integers(0, 1 << 20, 2)), int(rng.integers(4))) for _ in range(7)
    ]

    def f(*arrays):
        known = list(arrays)
        for op, i, j, how in plan:
            x, y = known[i % len(known)], known[j % len(known)]
            n = min(x.shape[0], y.shape[0])
            made = OPERATIONS[op](x[:n], y[:n])
            if how == 1:
                made = mb.materialize(made)
            elif how == 2:
                made = mb.concat([made, OPERATIONS[(op + 1) % 5](y[:n], x[:n])[: n // 2]])
            elif how == 3 and n > 1:
                target = known[(i + j) % len(known)]
                half = min(n, target.shape[0]) // 2
                target[:half] = mb.astype(made, target.dtype)[:half]
            known.append(mb.astype(made, mb.float64))
        return (*known[len(arrays) :], mb.sum(known[-1]))

    return f


@pytest.mark.parametrize("place", PLACES)
def test_random_programs_are_the_same_without(place, monkeypatch):
    joint = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        f = random_program(rng)
        given = [rng.random(n) for n in rng.integers(0, 40, 4)]
        found = []
        for limit in (0, 1 << 20):
            monkeypatch.setattr(joining, "LAUNCH_BYTES", limit)
            with mb.settings.changed(compiler="inline"):
                compiled = mb.compile(f)
                arrays = [place(x.copy()) for x in given]
                made = [mb.to_numpy(x) for x in compiled(*arrays)]
                found.append([*made, *map(mb.to_numpy, arrays)])
        joint += sum([k > 1 for k in kinds(compiled.program(*arrays))])
        for a, b in zip(*found, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
    assert joint > 3


@simulated
def test_joint_kernels_are_lowered():
    lowered = pytest.importorskip("lowered")
    card = lowered.card(7)
    rng = np.random.default_rng(2)
    data = [rng.random(n) for n in (1000, 3, 70)]

    def f(a, b, c):
        m = mb.reshape(a, (10, 100))
        return (
            flux(a, 0.5),
            flux(b, 0.25),
            mb.concat([c * c, mb.exp(b)]),
            m.T[3:5] * 2,
            mb.reshape(c, (7, 10)).T * 3,
        )

    compiled = mb.compile(f)
    wanted = [mb.to_numpy(x) for x in f(*map(mb.HostArray, data))]
    assert launched(compiled, *map(card, data)) < len(singly(compiled.program(*map(card, data)).plan.steps))
    for made, want in zip(compiled(*map(card, data)), wanted, strict=True):
        assert_same(mb.to_numpy(made), want, rtol=1e-13)


def test_lines_and_sizes_of_joint_kernels():
    def f(a, b):
        x = mb.sin(a) * 2
        y = mb.sin(b) * 2
        return x, y

    a, b = mb.ones(5), mb.ones(9)
    found = mb.compile(f).profile(a, b, times=1, within=True)
    assert len(found.lines) == 2 and all(line.share > 0 for line in found.lines)
    compiled = mb.compile(f, sizes="any")
    for n, m in ((5, 9), (9, 5), (20, 30), (31, 7), (8, 8), (64, 65)):
        for made, size in zip(compiled(mb.ones(n), mb.ones(m)), (n, m), strict=True):
            assert_same(mb.to_numpy(made), np.sin(np.ones(size)) * 2, rtol=1e-14)
    assert "any" in str(compiled.explain(a, b).facts["sizes"])


def test_what_waits_for_another_or_for_a_message_is_none():
    x, y = mb.ones(5), mb.ones(8)
    chained = mb.compile(lambda x: flux(mb.materialize(flux(x, x))[1:], 2.0))
    assert kinds(chained.program(x)) == [1, 1]

    def overwritten(x, y):
        a = mb.materialize(x * 2)
        b = mb.materialize(a[1:] + a[:-1])
        a[0] = 5.0
        return b, y[1:] + y[:-1], a

    program = mb.compile(overwritten).program(x, y)
    steps = program.plan.steps
    joint = [s for s in steps if isinstance(s, JoinedStep)]
    assert len(joint) == 1 and len(joint[0].members) == 2
    large = mb.ones(1 << 17)  # it moves a megabyte
    assert kinds(mb.compile(lambda x, y: (x + 1, y + 1)).program(large, y)) == [1, 1]


def test_users_functions_raise_in_their_order():
    @mb.vectorize
    def picky(v):
        if v < 0:
            raise ValueError("no")
        return v + 1

    program = mb.compile(lambda x, y: (picky(x), picky(y))).program(mb.ones(3), mb.ones(4))
    assert kinds(program) == [1, 1]


@pytest.mark.parametrize("place", PLACES)
def test_boundaries_of_a_flow_are_one_launch(place):
    gas, mesh = dg.CompressibleEuler(2), dg.box((3, 2))
    conditions = {
        "x_neg": dg.FarField((1.0, 0.3, 0.1, 2.0)),
        "x_pos": dg.SupersonicOutflow(),
        "y_neg": dg.SlipWall(),
        "y_pos": dg.SlipWall(),
    }
    semi = dg.Semidiscretization(mesh, gas, dg.Solver(1), conditions, array=place)
    u = semi.state(lambda x, t: gas.conservative((1 + 0.1 * x[0], 0.3, 0.1, 1.0)))
    program = mb.compile(semi.rhs).program(u, semi.scalar(0.0))
    assert sorted(kinds(program)) == [1, 1, 1, 4]  # volume, faces, what they lift; four boundaries
    assert all(isinstance(s, (KernelStep, JoinedStep)) for s in program.plan.steps)
    wanted = mb.to_numpy(semi.rhs(u, semi.scalar(0.0)))
    assert_same(mb.to_numpy(mb.compile(semi.rhs)(u, semi.scalar(0.0))), wanted, rtol=1e-12)
