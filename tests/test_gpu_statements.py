"""Statements on a card: what is written where, which memory is used again, what is planned once."""

import numpy as np
import pytest
from compare import assert_same

import mirabelle as mb
from mirabelle.backends.gpu import direct

N = 100


@pytest.fixture
def values():
    return np.random.default_rng(0).random(N)


def address(x):
    return mb.materialize(x)._node.view.ptr if not hasattr(x._node, "view") else x._node.view.ptr


def test_a_statement_is_planned_once(values):
    x, z = mb.CuArray(values), mb.CuArray(np.zeros(N))
    z[...] = x * 2.0 + 1.0
    before = len(direct._plans)
    for c in (3.0, 4.0, 5):
        z[...] = x * c + 1.0
        assert_same(z, values * c + 1.0)
    # (an integer is another kind of scalar)
    assert len(direct._plans) == before + 1


def test_a_statement_writes_in_place(values):
    x, z = mb.CuArray(values), mb.CuArray(np.zeros(N))
    place = address(z)
    z[...] = x + 1.0
    z += x * 2.0
    z[...] = z * z
    z[2:-2] = x[4:] + x[:-4]
    assert address(z) == place
    expected = (values + 1.0 + values * 2.0) ** 2
    expected[2:-2] = values[4:] + values[:-4]
    assert_same(z, expected)


def test_what_was_said_keeps_its_values(values):
    x, z = mb.CuArray(values), mb.CuArray(values)
    waiting, part = z * 2.0, z[3:]
    total = mb.sum(z)
    z[...] = x + 1.0
    assert_same(waiting, values * 2.0)
    assert_same(part, values[3:] + 1.0)
    assert float(total) == pytest.approx(values.sum(), rel=1e-14)


def test_a_value_written_is_no_alias(values):
    x, z = mb.CuArray(values), mb.CuArray(np.zeros(N))
    y = x * 3.0
    z[...] = y
    z += 1.0
    z[...] = z * x
    assert_same(y, values * 3.0)


def test_the_memory_of_a_dying_operand_is_used_again(values):
    x, t = mb.CuArray(values), mb.CuArray(values)
    place = address(t)
    y = t * 2.0 + x * t
    del t
    assert address(y) == place
    assert_same(y, values * 2.0 + values * values)


@pytest.mark.parametrize("holder", ["name", "tree", "view", "reduction", "reversed"])
def test_but_not_while_somebody_reads_it(values, holder):
    t = mb.CuArray(values)
    hold = {
        "name": lambda t: t,
        "tree": lambda t: t * 3.0,
        "view": lambda t: t[1:],
        "reduction": lambda t: mb.sum(t),
        "reversed": lambda t: t[::-1],
    }[holder]
    held = hold(t)
    y = t * 2.0
    del t
    mb.materialize(y)
    expected = {
        "name": values, "tree": values * 3.0, "view": values[1:], "reduction": None, "reversed": values[::-1],
    }[holder]  # fmt: skip
    if expected is None:
        assert float(held) == pytest.approx(values.sum(), rel=1e-14)
    else:
        assert_same(held, expected)
    assert_same(y, values * 2.0)


def test_an_override_is_asked_on_a_card_too(values):
    x, z = mb.CuArray(values), mb.CuArray(np.zeros(N))
    z[...] = x * 2.0
    seen = []

    def mine(dest, src):
        seen.append(src)
        return mb.copyto.previous(dest, src)

    with mb.override(mb.copyto, (mb.CuArray, mb.Broadcasted), mine):
        z[...] = x * 2.0
    assert len(seen) == 1


def test_explain_shows_the_kernel_that_runs(values):
    x = mb.CuArray(values)
    shown = mb.explain(x * 2.0 + 1.0)
    assert "load2_f8" in shown.source and "blocks of 256 threads" in shown.facts["runs as"]
    assert "shared" in mb.explain(mb.sum(x)).source
    assert "def tiles_add" in mb.explain(mb.CuArray(np.ones((40, 40))) + mb.CuArray(np.ones((40, 40))).T).source


@pytest.mark.parametrize("shape", [(1,), (7,), (300,), (1030,), (3, 5), (40, 70), (130, 300), (5, 7, 260)])
def test_threads_with_several_elements(shape, monkeypatch):
    """What cannot be read as vectors, in arrays small for a card, as for large ones."""
    from mirabelle.backends.gpu import run

    monkeypatch.setattr(run, "BUSY", 8)
    rng = np.random.default_rng(1)
    a, b = rng.random(shape), rng.random(shape)
    x, y = mb.CuArray(a), mb.CuArray(b)
    for f in (
        lambda x, y: x + y * 3,
        lambda x, y: x[1:] - y[:-1] * 5,
        lambda x, y: x[..., 1:] - y[..., :-1] * x[..., :-1],
        lambda x, y: x[::-1] + y * 7,
        lambda x, y: x[..., ::2] + 9,
        lambda x, y: x[..., :1] + y * 11,
    ):
        assert_same(f(x, y), f(a, b))


def test_single_elements_and_reductions_take_part_where_they_lie(values):
    x, y, z = mb.CuArray(values), mb.CuArray(values[::-1].copy()), mb.CuArray(np.zeros(N))
    z[...] = (x - y[3]) * mb.max(y) + y[3] * 2.0
    assert_same(z, (values - values[-4]) * values.max() + values[-4] * 2.0)
    z[1:] = x[1:] * x[0] - mb.sum(y * 0.0)
    assert_same(z[1:], values[1:] * values[0])
    x[...] = x * x[5]  # what is read is written
    assert_same(x, values * values[5])
