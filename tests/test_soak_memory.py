"""A part of `python -m tests.soak_memory`: what is repeated leaves nothing behind."""

import gc
import threading

import numpy as np
import pytest
import soak_memory
from kinds import LEAVES
from ways import running

import mirabelle as mb

# Statements whose memory goes ways of its own: temporaries, parts, reductions, writes, masks, exceptions.
STATEMENTS = {
    "temporaries": lambda u, v: mb.materialize(u * v + u.T),
    "a column": lambda u, v: mb.materialize(u * v + v[:, :1]),
    "numbers": lambda u, v: float(mb.sum(u * v)) + float(mb.max(u[1:])),
    "a product": lambda u, v: mb.materialize(u @ v[:, 0]),
    "a write": lambda u, v: u.__setitem__(slice(1, None), v[1:] * 2.0),
    "a mask": lambda u, v: mb.materialize(u[v > 0.5]),
    "a write by a mask": lambda u, v: u.__setitem__(v > 0.5, 1.5),
    "a shared result": lambda u, v: mb.to_numpy(u + v) + 1,
    "what does not fit": lambda u, v: refused(lambda: u + v[:3, :2]),
    "a sort": lambda u, v: mb.materialize(mb.sort(u * v, axis=0)),
}


def refused(f):
    with pytest.raises(ValueError):
        f()


@pytest.mark.parametrize("kind", ["host", "cuda"])
@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_that_is_repeated_leaves_nothing(kind, statement):
    rng = np.random.default_rng(0)
    u, v = (LEAVES[kind].make(rng.random((40, 40))) for _ in range(2))
    with soak_memory._quiet():
        assert not soak_memory.growth(lambda: STATEMENTS[statement](u, v), 90)


@pytest.mark.parametrize("name", ["compiled", "gradient"])
def test_a_compiled_function_that_is_called_again_leaves_nothing(name):
    def f(x):
        return mb.sum(mb.sin(x) * x)

    g = mb.compile(f) if name == "compiled" else lambda x: mb.autodiff.gradient(f, x)
    x = mb.HostArray(np.linspace(0.0, 1.0, 50))
    assert not soak_memory.growth(lambda: mb.materialize(g(x)), 60)


def test_compiled_statements_leave_nothing():
    x = mb.HostArray(np.ones(3000))
    with running("hot"):
        assert not soak_memory.growth(lambda: mb.materialize(mb.sin(x) + x * 2.0), 90)


@pytest.mark.parametrize("what", ["resident", "objects", "threads", "files"])
def test_what_grows_is_found(what, tmp_path):
    held, end = [], threading.Event()

    def leak():
        if what == "resident":
            held.append(np.ones(50_000))  # (what is small finds room in memory that was freed)
        elif what == "objects":
            held.append([1])
        elif what == "threads":
            held.append(threading.Thread(target=end.wait))
            held[-1].start()
        else:
            held.append((tmp_path / "x").open("w"))

    try:
        found = soak_memory._growth(leak, 12 if what == "threads" else 150)
        assert found[what] > 0
    finally:
        end.set()
        for x in held:
            if hasattr(x, "close"):
                x.close()
        held.clear()
        gc.collect()
