"""Other processes and threads: forks, spawned children, pickles, shared arrays."""

import concurrent.futures
import multiprocessing
import os
import pickle
import signal
import threading
import warnings

import numpy as np
import pytest
from children import ROOT, answer, start
from compare import assert_same
from kinds import SINGLE, wrapped
from samples import ordinary

import mirabelle as mb
from mirabelle.__main__ import main


def compute(x):
    """What a child does: elementwise, reduced, in threads, with a write."""
    y = mb.sqrt(mb.abs(x)) + x
    x[...] = 0
    return mb.to_numpy(y), mb.to_numpy(mb.sum(y, axis=0))


def in_child(connection, x):
    try:
        connection.send(compute(x))
    except BaseException as e:
        connection.send(e)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("family", [mb.HostArray, mb.RefArray])
def test_children_compute(method, family, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "tests")]))
    values = ordinary("f8", (40, 50) if family is mb.HostArray else (3, 4))
    x = family(values)
    mb.materialize(x + 1)  # the parent has used its tables, kernels and threads
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # forking a process that has threads, and perhaps JAX
        child = context.Process(target=in_child, args=(theirs, x))
        child.start()
    assert ours.poll(60)
    result = ours.recv()
    child.join(30)
    assert child.exitcode == 0
    assert not isinstance(result, BaseException), result
    expected = np.sqrt(np.abs(values)) + values
    np.testing.assert_array_equal(result[0], expected)
    np.testing.assert_allclose(result[1], expected.sum(0), rtol=1e-13)
    assert_same(x, values)


def forked(f):
    """The answer of a forked child, or its failure."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pid = os.fork()
    if not pid:
        try:
            with os.fdopen(write, "wb") as out:
                out.write(pickle.dumps(f()))
            os._exit(0)
        except BaseException:
            os._exit(1)
    os.close(write)
    with os.fdopen(read, "rb") as answers:
        data = answers.read()
    _, status = os.waitpid(pid, 0)
    assert status == 0
    return pickle.loads(data)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_after_threads_and_kernels_have_run(hot):
    values = ordinary("f8", 5000)
    x = mb.HostArray(values)
    mb.materialize(x * 3 - 1)
    y = x * 2
    total = forked(lambda: (mb.to_numpy(y - 0.5), float(mb.sum(x)), mb.to_numpy(x * 3 - 1)))
    np.testing.assert_array_equal(total[0], values * 2 - 0.5)
    np.testing.assert_array_equal(total[2], values * 3 - 1)
    assert total[1] == pytest.approx(values.sum())
    assert_same(y, values * 2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_while_other_threads_dispatch():
    """Locks held by another thread at the fork must not stay locked in the child."""
    stop = threading.Event()

    def churn():
        i = 0
        while not stop.is_set():
            i += 1
            with mb.override(mb.cbrt, (mb.HostArray,), lambda a: a):
                mb.HostArray[np.float64, i % 30]

    threads = [threading.Thread(target=churn) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        for i in range(10):
            assert forked(lambda i=i: (mb.HostArray([1.0, 2.0]) * i + 1).tolist()) == [1.0 + i, 1.0 + 2 * i]
    finally:
        stop.set()
        for t in threads:
            t.join()


PICKLED = [*SINGLE, *(wrapped(k, "permuted") for k in SINGLE if k.wrappers)]


def test_arrays_of_every_kind_pickle_into_another_process(tmp_path):
    """Wrappers, pending trees and device arrays: values and types arrive."""
    sent = []
    for kind in PICKLED:
        values = kind.sample(ordinary("f8", (2, 3)))
        for x, expected in (
            (kind.make(values), values),
            (kind.make(values) * 2 + 1, values * 2 + 1),
            (mb.sum(kind.make(values), axis=0), values.sum(0)),
        ):
            sent.append((pickle.dumps(x), type(x).__name__, expected))
    (tmp_path / "sent").write_bytes(pickle.dumps(sent))
    wrong = answer(
        f"""
        import json, pickle
        import numpy as np
        wrong = []
        for data, name, expected in pickle.load(open({str(tmp_path / "sent")!r}, "rb")):
            x = pickle.loads(data)
            import mirabelle as mb
            if type(x).__name__ != name or not np.allclose(mb.to_numpy(x), expected, rtol=1e-14):
                wrong.append(name)
            if not np.allclose(mb.to_numpy(x + 1), expected + 1):
                wrong.append(name + " + 1")
        print(json.dumps(wrong))
        """,
        cuda=mb.settings.cuda,
    )
    assert wrong == []


def test_pickling_forces_but_does_not_change(way):
    a = mb.HostArray([1.0, 2.0])
    y = a * 2
    data = pickle.dumps(y)
    a[...] = 0
    assert pickle.loads(data).tolist() == [2.0, 4.0] and y.tolist() == [2.0, 4.0]


def test_types_functions_and_trees_pickle():
    for thing in (
        mb.HostArray["f8", 2],
        mb.types.Transpose[mb.RefArray],
        mb.HOST if hasattr(mb, "HOST") else mb.HostArray.home,
    ):
        copy = pickle.loads(pickle.dumps(thing))
        assert copy == thing
    assert pickle.loads(pickle.dumps(mb.sin)) is mb.sin
    assert pickle.loads(pickle.dumps(mb.sum)) is mb.sum


def test_cloudpickle():
    cloudpickle = pytest.importorskip("cloudpickle")
    a = mb.HostArray([1.0, 2.0])
    f = cloudpickle.loads(cloudpickle.dumps(lambda x: mb.exp(x) + a))
    np.testing.assert_array_equal(mb.to_numpy(f(a)), np.exp([1.0, 2.0]) + np.array([1.0, 2.0]))
    y = pickle.loads(cloudpickle.dumps(a.T * 2))
    assert y.tolist() == [2.0, 4.0]


# Threads


def run_threads(work, count=6):
    errors = []

    def guarded(i):
        try:
            work(i)
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert not any(t.is_alive() for t in threads)
    assert not errors, errors


@pytest.mark.parametrize("family", [mb.HostArray, mb.RefArray])
def test_threads_build_and_force_trees_over_shared_arrays(family, way):
    n = 3000 if family is mb.HostArray else 12
    values = ordinary("f8", n)
    x = family(values)
    shared = mb.exp(x * 0.125)  # all threads force the same pending node

    def work(i):
        for j in range(8):
            y = shared + i
            z = mb.sum(y * x)
            assert_same(y, np.exp(values * 0.125) + i)
            assert_same(z, np.sum((np.exp(values * 0.125) + i) * values), rtol=1e-10, atol=1e-8)
            assert_same(x[::-1] * j, values[::-1] * j)

    run_threads(work)
    assert_same(x, values)


def test_threads_force_one_node_at_once(way):
    for _ in range(20):
        x = mb.HostArray(np.arange(2000.0))
        y = mb.sqrt(x) * 2
        z, w = y + 1, y * y
        barrier = threading.Barrier(4)

        def work(i):
            barrier.wait(30)
            for node, expected in ((z, "z"), (w, "w"), (y, "y")) if i % 2 else ((y, "y"), (w, "w"), (z, "z")):
                v = np.sqrt(np.arange(2000.0)) * 2
                assert_same(node, {"y": v, "z": v + 1, "w": v * v}[expected])

        run_threads(work, 4)


def test_threads_reduce_one_tree_at_once():
    for _ in range(20):
        x = mb.HostArray(np.arange(500.0))
        y = x * 2
        reductions = [mb.sum(y), mb.max(y), mb.min(y), mb.any(y > 5)]
        barrier = threading.Barrier(4)

        def work(i):
            barrier.wait(30)
            assert mb.to_numpy(reductions[i]) == [249500.0, 998.0, 0.0, True][i]

        run_threads(work, 4)


def test_readers_see_whole_writes():
    """While one thread overwrites an array, what another reads is one of the contents it had."""
    x = mb.HostArray(np.zeros(4000))
    stop = threading.Event()

    def write(_):
        try:
            for i in range(200):
                x[...] = float(i)
        finally:
            stop.set()

    def read(_):
        while not stop.is_set():
            seen = mb.to_numpy(mb.max(x) - mb.min(x))
            assert np.isfinite(seen)

    run_threads(lambda i: (write if i == 0 else read)(i), 3)
    assert_same(x, np.full(4000, 199.0))


def test_a_pool_of_threads_computes():
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda i: float(mb.sum(mb.HostArray(np.full(100, i)) * 2)), range(20)))
    assert results == [200.0 * i for i in range(20)]


def test_user_overrides_do_not_leak_into_worker_threads():
    x = mb.HostArray(np.ones(5))
    with (
        mb.override(mb.sqrt, (mb.HostArray,), lambda a: a * 100),
        concurrent.futures.ThreadPoolExecutor(2) as pool,
    ):
        assert mb.sqrt(x).tolist() == [100.0] * 5
        assert pool.submit(lambda: mb.sqrt(x).tolist()).result() == [1.0] * 5


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="Windows has no such pipes")
@pytest.mark.parametrize("words", [["settings", "--markdown"], ["dg", "list"], ["--help"]], ids=" ".join)
def test_commands_end_quietly_when_their_reader_leaves(words):
    """As in `python -m mirabelle dg list | head -1`; a pipe that breaks elsewhere is still an error."""
    process = start(f"from mirabelle.__main__ import main; raise SystemExit(main({words!r}))")
    process.stdout.close()
    with process.stderr as errors:
        assert errors.read() == ""
    unseen = words == ["--help"]  # argparse does not look whether its text was written
    assert process.wait(120) in (128 + signal.SIGPIPE, 0 if unseen else None)


def test_other_broken_pipes_are_errors(monkeypatch):
    def broken(words):
        raise BrokenPipeError

    monkeypatch.setattr("mirabelle.__main__.command", broken)
    with pytest.raises(BrokenPipeError):
        main([])
