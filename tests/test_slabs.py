"""Statements that follow one another over the same rows: which they are, and what they compute."""

import numpy as np
import pytest

import mirabelle as mb
from mirabelle.backends.host import slabs, tasks
from mirabelle.backends.host.plans import HostPlan

rng = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def at_once():
    with mb.settings.changed(compiler="inline", thread_size=64):
        yield


def compiled(f, *arrays, n_threads=2):
    """Run f compiled; its results and the chains of its statements."""
    with mb.settings.changed(num_threads=n_threads):
        program = mb.compile(f)
        made = [mb.HostArray(x) for x in arrays]
        results = program(*made)
        results = results if isinstance(results, tuple) else (results,)
        plan = program.program(*made).plan
        host = HostPlan(plan)
        found = [
            chain
            for segment in host.segments or ()
            if isinstance(segment, tasks.TaskList)
            for chain in segment._chains.values()
        ]
        return [np.asarray(r) for r in results], [np.asarray(x) for x in made], found, len(plan.steps)


def softmax(x):
    raised = mb.exp(x - mb.max(x, axis=-1, keepdims=True))
    return raised / mb.sum(raised, axis=-1, keepdims=True)


def recurrence(c, d):
    """Along the last axis: each point of a plane by itself."""
    for k in range(1, c.shape[-1]):
        c[..., k] = c[..., k] / (2.0 + c[..., k - 1])
        d[..., k] = mb.sin(d[..., k] - d[..., k - 1] * c[..., k])
    return c + d


def means(x):
    """Rows reduced, columns of rows reduced, and both used again."""
    y = x - mb.mean(x, axis=2, keepdims=True)
    z = mb.sum(y * y, axis=1)
    return y * mb.exp(-z)[:, None, :], z


def diffused(a, b):
    """Neighbours along the last axis only."""
    for _ in range(4):
        b[:, 1:-1] = 0.3 * (a[:, :-2] + a[:, 1:-1] + a[:, 2:])
        a[:, 1:-1] = 0.3 * (b[:, :-2] + b[:, 1:-1] + b[:, 2:])
    return a + b


CASES = {
    "softmax": (softmax, (rng.normal(size=(6, 9, 40)).astype("f4"),), 54),
    "recurrence": (recurrence, (rng.random((7, 13, 9)), rng.random((7, 13, 9))), 91),
    "means": (means, (rng.random((12, 5, 70)),), 12),
    "batch": (diffused, (rng.random((11, 50)), rng.random((11, 50))), 11),
}


@pytest.mark.parametrize("n_threads", (1, 2, 4))
@pytest.mark.parametrize("cached", (1 << 9, 1 << 20))
@pytest.mark.parametrize("name", CASES)
def test_chains_give_what_statements_give(monkeypatch, name, cached, n_threads):
    monkeypatch.setattr(tasks, "_CACHED", cached)
    monkeypatch.setattr(tasks, "_LEAST_WORK", 1)
    f, arrays, rows = CASES[name]
    results, written, found, steps = compiled(f, *arrays, n_threads=n_threads)
    assert [c.rows for c in found] == [rows] and found[0].length == steps
    monkeypatch.setattr(slabs, "chains", lambda *_: [])
    alone, changed, none, _ = compiled(f, *arrays, n_threads=n_threads)
    assert none == []
    for a, b in zip([*results, *written], [*alone, *changed], strict=True):
        assert np.array_equal(a, b)


def test_neighbours_along_every_axis_are_no_chain():
    def jacobi(a, b):
        for _ in range(3):
            b[1:-1] = 0.5 * (a[:-2] + a[2:])
            a[1:-1] = 0.5 * (b[:-2] + b[2:])
        return a

    *_, found, _ = compiled(jacobi, rng.random((40, 50)), rng.random((40, 50)))
    assert found == []


def test_a_sweep_across_ends_a_chain():
    def sweeps(x):
        for k in range(1, 40):
            x[:, k] = x[:, k] - 0.5 * x[:, k - 1]
        for k in range(1, 40):
            x[k] = x[k] - 0.5 * x[k - 1]
        return x

    x = rng.random((40, 40))
    (result,), _, found, _ = compiled(sweeps, x)
    assert [c.length for c in found] == [39, 39] and np.array_equal(result, sweeps(x.copy()))


def test_results_that_overwrite_operands_are_written_last():
    def step(x, z):
        y = mb.sin(z) * x
        w = mb.cos(y) + x
        x[...] = x + 1.0
        return y, w

    x, z = rng.random(5000), rng.random(5000)
    (y, w), (changed, _), _, steps = compiled(step, x, z)
    assert steps == 1
    assert np.array_equal(y, np.sin(z) * x) and np.array_equal(w, np.cos(np.sin(z) * x) + x)
    assert np.array_equal(changed, x + 1.0)


@pytest.mark.parametrize("dtype", ("c8", "c16"))
def test_products_of_complex_numbers_are_numpys(dtype):
    x, y = [(rng.normal(size=1500) + 1j * rng.normal(size=1500)).astype(dtype) for _ in range(2)]

    def f(x, y):
        z = x * y + mb.square(y)
        return mb.where(mb.abs(z) < 1.0, z, x) * 2.0

    z = x * y + np.square(y)
    (got,), *_ = compiled(f, x, y)
    assert np.array_equal(got, np.where(np.abs(z) < 1.0, z, x) * np.array(2.0, dtype).real)


def test_scratch_of_long_kernels_is_shared():
    from mirabelle.backends.codegen.program import program_for
    from mirabelle.backends.codegen.reduceframe import range_source
    from mirabelle.backends.codegen.source import Layout
    from mirabelle.backends.host.run import force_host
    from mirabelle.dispatch.schedule import schedule

    x = mb.HostArray(rng.random(100))
    y = x
    for _ in range(20):
        y = mb.where(mb.exp(y) < 2.0, y + x, y * x)
    request = schedule(y._node, force_host, store=False)
    program = program_for(request, (np.dtype("f8"),))
    text = range_source(program, Layout(1, "c", "c" * len(program.leaf_dtypes))).text
    assert text.count("scratch_8(0)") <= 4
