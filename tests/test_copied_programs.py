"""Copies, views and writes in place in compiled programs: random ones (tests/copiedprograms.py)."""

import numpy as np
import pytest
from copiedprograms import difference

import mirabelle as mb


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_planned_and_run_step_by_step(first):
    with mb.settings.changed(compiler="off"):
        found = [difference(k, [(7, 8)] * 2) for k in range(first, first + 100)]
    assert not any(found), "\n".join(filter(None, found))


def test_by_kernels():
    with mb.settings.changed(compiler="inline"):
        found = [difference(k, [(7, 8), (9, 6)]) for k in range(1000, 1004)]
    assert not any(found), "\n".join(filter(None, found))


def test_for_any_size():
    with mb.settings.changed(compiler="off"):
        found = [difference(k, [(7, 8), (12, 8), (17, 9), (9, 30)], sizes="any") for k in range(2000, 2020)]
    assert not any(found), "\n".join(filter(None, found))


@pytest.mark.parametrize("again", ["u * 1.0", "mb.where(u > 0, u, v)"])
def test_what_is_read_amid_a_kernel_is_computed_there(again):
    """(What lies between two results of one kernel, and is overwritten before it is read again.)"""

    def f(u, v, w):
        for _ in range(3):
            v[-1] = v[1]
            u[:, :] = (u[:, :] * w[:, :]) * 0.5
            v[:, :] -= (v[:, :].copy() + u[:, :][::-1]) * 0.5
            w = mb.where(w > 0, v, u) if "where" in again else w * 1.0
        return u, v, w

    rng = np.random.default_rng(0)
    data = [rng.normal(size=(7, 8)) for _ in range(3)]
    ours, eager = [[mb.HostArray(x.copy()) for x in data] for _ in range(2)]
    found, wanted = mb.compile(f, whole=True)(*ours), f(*eager)
    for x, y in zip((*found, *ours), (*wanted, *eager), strict=True):
        np.testing.assert_allclose(mb.to_numpy(x), mb.to_numpy(y))
