"""Loops in compiled programs with the operations before and after them: bits, launches, what is said of it."""

import numpy as np
import pytest
import randomfused

import mirabelle as mb
from mirabelle import meshdata as md

KINDS = ["HostArray", "RefArray"]
MESH = md.unit_square(3)
CELLS, CORNERS = MESH.points("cell"), MESH.closure("cell", "vertex")


def spread(u, y):
    for i in range(3):
        y[i] += 0.25 * (u[0] + u[1] + u[2]) - u[i]


def doubled(u, y):
    y[0] = 2 * u


def given(kind, n=2, size=MESH.points("vertex").size):
    rng = np.random.default_rng(3)
    return [getattr(mb, kind)(rng.standard_normal(size)) for _ in range(n)]


def steps(f, *args):
    return [s.name for s in mb.compile(f, whole=True).program(*args).plan.steps]


def same(f, *args, launches=None, temporaries=None):
    """Are a compiled function's results those of the function, and so many launches enough for them?"""
    expected = [randomfused.bits(x) for x in f(*map(mb.copy, args))]
    compiled = mb.compile(f, whole=True)
    for _ in range(2):
        assert [randomfused.bits(x) for x in compiled(*map(mb.copy, args))] == expected
    copies = [mb.copy(x) for x in args]
    with mb.count() as c:
        compiled(*copies)
    assert launches is None or c.launches == launches, c
    if temporaries is not None:
        plan = compiled.program(*args).plan
        assert sum(s.kind == "temporary" for s in plan.storages) == temporaries
    return compiled


def around(u, w):
    s = 2.0 * u + 1.0
    y = mb.zeros_like(u)
    md.loop(CELLS, spread, md.READ(s, CORNERS), md.INC(y, CORNERS))
    return (u - 0.5 * y * w,)


@pytest.mark.parametrize(("kind", "launches", "temporaries"), [("HostArray", 3, 1), ("RefArray", 2, 0)])
def test_what_is_before_and_after_is_done_inside(kind, launches, temporaries):
    """Five launches without: zeros of two, and operations of their own before and after. (On the host sums have
    no owners: zeros and what becomes of the sum stay.)"""
    compiled = same(around, *given(kind), launches=launches, temporaries=temporaries)
    text = str(compiled.program(*given(kind)).explain())
    assert "u: multiply, add" in text
    assert ("y: multiply, subtract" in text) == (kind == "RefArray")


@pytest.mark.parametrize("kind", KINDS)
def test_entries_of_their_own_need_one_launch(kind):
    def f(u, w):
        y = mb.zeros_like(u)
        md.loop(CELLS, doubled, md.READ(u * w), md.WRITE(y))
        return (mb.where(y > w, y, 0.5 - w),)

    compiled = same(f, *given(kind, size=CELLS.size), launches=1, temporaries=0)
    assert [s.name for s in compiled.program(*given(kind, size=CELLS.size)).plan.steps] == [
        "doubled (u: multiply; y: greater, subtract, where)"
    ]


def both(u, y, z):
    z[0] = u[0] - u[2]
    for i in range(3):
        y[i] += 0.5 * u[i]


@pytest.mark.parametrize("kind", KINDS)
def test_results_beside_each_other(kind):
    """Each is finished, if what that takes is there before the loop."""
    v = getattr(mb, kind)(np.arange(float(CELLS.size)))

    def f(u, w):
        y, z = mb.zeros_like(u), mb.zeros(CELLS.size, device=type(u))
        md.loop(CELLS, both, md.READ(u - w, CORNERS), md.INC(y, CORNERS), md.WRITE(z))
        return y * w + 1.0, z / 2 - v

    (name,) = [s for s in steps(f, *given(kind)) if s.startswith("both")]
    assert "z: multiply, subtract" in name and ("y: multiply, add" in name) == (kind == "RefArray")
    same(f, *given(kind))

    def g(u, w):
        y, z = mb.zeros_like(u), mb.zeros(CELLS.size, device=type(u))
        md.loop(CELLS, both, md.READ(u, CORNERS), md.INC(y, CORNERS), md.WRITE(z))
        return (mb.sum(z) * y,)

    same(g, *given(kind))


def test_arrays_that_a_program_does_not_know_are_not_written():
    """(They were copied, and what was written was lost.)"""
    v = mb.zeros(CELLS.size)

    def f(u):
        y, z = mb.zeros_like(u), mb.zeros_like(v)
        md.loop(CELLS, both, md.READ(u, CORNERS), md.INC(y, CORNERS), md.WRITE(z))
        return y, z

    with pytest.raises(mb.compiling.TraceError, match="none of its arguments"):
        mb.compile(f, whole=True)(given("HostArray")[0])


@pytest.mark.parametrize("kind", KINDS)
def test_two_loops_share_what_they_read(kind):
    def f(u, w):
        s = u - w
        y, z = mb.zeros_like(u), mb.ones_like(u)
        md.loop(CELLS, spread, md.READ(s, CORNERS), md.INC(y, CORNERS))
        md.loop(CELLS, spread, md.READ(s, CORNERS), md.INC(z, CORNERS))
        return y, z

    names = [s for s in steps(f, *given(kind)) if s.startswith("spread")]
    assert len(names) == 2 and all("u: subtract" in s for s in names)
    same(f, *given(kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "before",
    [
        lambda u, w: mb.sin(u),  # rounds in more than one way
        lambda u, w: mb.materialize(2 * u),  # its author wants it in memory
        lambda u, w: mb.maximum(u, w),
    ],
)
def test_what_stays_before(kind, before):
    def f(u, w):
        y = mb.zeros_like(u)
        md.loop(CELLS, spread, md.READ(before(u, w), CORNERS), md.INC(y, CORNERS))
        return (y,)

    same(f, *given(kind))
    assert not any("u:" in s for s in steps(f, *given(kind)))


@pytest.mark.parametrize("kind", KINDS)
def test_what_others_see_stays_in_memory(kind):
    def returned(u, w):
        s = 2 * u
        y = mb.zeros_like(u)
        md.loop(CELLS, spread, md.READ(s, CORNERS), md.INC(y, CORNERS))
        return s, y, y + 1

    assert not any("(" in s for s in steps(returned, *given(kind)) if "u:" in s)
    same(returned, *given(kind))

    def overwritten(u, w):
        s = 2 * u
        u[1:] = w[1:]
        y = mb.zeros_like(u)
        md.loop(CELLS, spread, md.READ(s, CORNERS), md.INC(y, CORNERS))
        return (y,)

    assert not any("u:" in s for s in steps(overwritten, *given(kind)))
    same(overwritten, *given(kind))

    def into_itself(u, w):
        s = 2 * u
        md.loop(CELLS, spread, md.READ(s, CORNERS), md.INC(u, CORNERS))
        return (u - w,)

    assert not any("u:" in s for s in steps(into_itself, *given(kind)))
    same(into_itself, *given(kind))


@pytest.mark.parametrize("kind", KINDS)
def test_special_values_and_single_precision(kind):
    n = MESH.points("vertex").size
    x = np.resize(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, 3e-42, 1.1], "f4"), n)
    u, w = (getattr(mb, kind)(y) for y in (x, x[::-1].copy()))

    def f(u, w):
        y = mb.zeros_like(u)
        md.loop(CELLS, spread, md.READ(0.0 * u + w * 0.1, CORNERS), md.INC(y, CORNERS))
        return (y / w - 0.1,)

    with np.errstate(all="ignore"):
        same(f, u, w)


def test_numbers_are_arguments():
    """Another number is another program, and the same kernel."""
    counted = []
    for dt in (0.5, 0.25, 0.125):

        def f(u, w, dt=dt):
            y = mb.zeros_like(u)
            md.loop(CELLS, spread, md.READ(u + dt * w, CORNERS), md.INC(y, CORNERS))
            return (y,)

        same(f, *given("HostArray"))
        counted.append(len(spread.__local_kernel__.compiled))
    assert counted[0] == counted[-1]


def test_long_chains_end():
    def f(u, w):
        s = u
        for _ in range(400):
            s = s + w * s
        y = mb.zeros_like(u)
        md.loop(CELLS, spread, md.READ(s, CORNERS), md.INC(y, CORNERS))
        for _ in range(400):
            y = y * w - u
        return (y,)

    with np.errstate(all="ignore"):
        same(f, *given("RefArray"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(10))
def test_random_programs(kind, seed):
    randomfused.check(seed, kind)
