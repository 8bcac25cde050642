"""Values of a compiled function that depend on no argument: each is computed once, while it is captured."""

from __future__ import annotations

import numpy as np
import pytest

import mirabelle as mb
from mirabelle.arraytypes.programs.running import StepByStep


def filtered(xp, seen):
    """A state whose gain does not depend on what is seen."""
    move = xp.eye(3)
    move[0, 1] = 0.5
    state, spread = xp.zeros(3), xp.eye(3)
    for t in range(seen.shape[0]):
        spread = move @ spread @ move.T + 0.1 * xp.eye(3)
        gain = xp.linalg.inv(spread + 0.3)
        spread = (xp.eye(3) - 0.2 * gain) @ spread
        state = move @ state + gain @ seen[t]
    return state, spread


def chained(xp, x, turns):
    """Operations on elements between the values that a library is asked for."""
    scale = xp.linspace(0.5, 1.5, 4)
    total = x * 0
    for k in range(turns):
        for _ in range(9):
            scale = xp.cos(scale) * 0.9 + 0.1
        order = xp.sort(scale)
        total = total + order * x + float(order[0]) * k
    return total, scale


@pytest.mark.parametrize("n", [1, 5, 40])
def test_a_gain_without_arguments(n):
    seen = np.random.default_rng(n).random((n, 3))
    for found, wanted in zip(mb.compile(filtered)(mb, mb.HostArray(seen)), filtered(np, seen), strict=True):
        np.testing.assert_allclose(mb.to_numpy(found), wanted, rtol=1e-10)


@pytest.mark.parametrize("turns", [1, 3, 12])
def test_operations_in_between(turns):
    x = np.random.default_rng(turns).random(4)
    found = mb.compile(chained)(mb, mb.HostArray(x), turns)
    for a, b in zip(found, chained(np, x, turns), strict=True):
        np.testing.assert_allclose(mb.to_numpy(a), b, rtol=1e-12)


def steps_for(monkeypatch, turns: int) -> int:
    """How many steps run in Python while a loop of so many turns is captured and planned."""
    done = []
    one = StepByStep.one
    monkeypatch.setattr(StepByStep, "one", lambda self, *a, **k: done.append(1) or one(self, *a, **k))
    mb.compile(filtered).program(mb, mb.ones((turns, 3)))
    monkeypatch.setattr(StepByStep, "one", one)
    return len(done)


def test_a_turn_does_not_begin_with_the_first(monkeypatch):
    few, many = steps_for(monkeypatch, 15), steps_for(monkeypatch, 60)
    assert many < 6 * few, "four times as many turns, and not sixteen times as many steps"


def test_arrays_outside_that_change_are_read_anew():
    table = mb.HostArray(np.eye(3))

    def f(x):
        return mb.linalg.inv(table + 1.0) @ x

    g, x = mb.compile(f), mb.ones(3)
    np.testing.assert_allclose(mb.to_numpy(g(x)), np.linalg.inv(np.eye(3) + 1) @ np.ones(3))
    again = mb.compile(lambda x: mb.linalg.inv(table + 1.0) @ x)
    table[0, 0] = 5.0
    np.testing.assert_allclose(mb.to_numpy(again(x)), np.linalg.inv(np.diag([5.0, 1, 1]) + 1) @ np.ones(3))
