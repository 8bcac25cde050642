"""`mb.distributed.connect`: programs over distributed arrays on the workers of a Dask client."""

import gc
import importlib.util
import os
import pickle
import secrets
import signal
import socket
import ssl
import threading
import time
import types

import numpy as np
import pytest
from certificates import certificate

import mirabelle as mb
from mirabelle.dispatch.errors import CommunicationError, RemoteError

distributed = pytest.importorskip("distributed")

from mirabelle.backends.dask import connecting, member, versions  # noqa: E402
from mirabelle.backends.dask.remote import Remote  # noqa: E402

D = mb.DArray[mb.HostArray]


def new_cluster(**options):
    return distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50, **options
    )


@pytest.fixture(scope="module")
def client():
    with new_cluster() as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def session(client):
    with mb.distributed.connect(client) as session:
        yield session


def kept(session):
    """What each worker keeps."""

    def keys(dask_worker, name):
        return list(dask_worker.plugins[name].kept)

    found = session.client.run(keys, name=session.name, workers=list(session.workers))
    return [found[w] for w in session.workers]


def eventually(condition):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.05)


# Programs


def test_a_program_runs_on_all_workers(session):
    @session.program
    def total(x, *, times=1):
        comm = mb.distributed.communicator()
        row = np.array([x * (comm.rank + 1.0)])
        comm.allreduce(row, "sum")
        return row[0] * times

    assert session.size == 2
    assert total(2.0) == 6.0
    assert total(2.0, times=3) == 18.0
    assert "total" in repr(total)
    assert session.each(lambda: (mb.distributed.communicator().rank, os.getpid() == os.getppid())) == [
        (0, False),
        (1, False),
    ]
    assert len(set(session.each(os.getpid))) == 2
    assert session.each(lambda: mb.distributed.communicator().engine) == ["tcp", "tcp"]
    assert session.each(lambda: mb.settings.num_threads)[0] >= 1


def test_ranks_follow_addresses(session):
    def address():
        return mb.distributed.communicator().rank, distributed.get_worker().address

    ports = [int(w.rpartition(":")[2]) for w in session.workers]
    assert ports == sorted(ports)
    found = session.client.run(lambda dask_worker, name: dask_worker.plugins[name].comm.rank, name=session.name)
    assert found == {w: r for r, w in enumerate(session.workers)}


@pytest.mark.parametrize(
    "value", [None, 3, 2.5j, "text", {"a": [1, (2, 3)]}, np.float32(1.5), np.arange(6).reshape(2, 3).T]
)
def test_plain_values_go_both_ways(session, value):
    found = session.run(lambda x: x, value)
    assert type(found) is type(value)
    np.testing.assert_equal(found, value)


def test_results_can_be_written_to(session):
    x = session.run(np.zeros, 300_000)
    x[0] = 1
    assert x.sum() == 1


def test_arrays_stay_on_the_workers(session):
    @session.program
    def made(n):
        return mb.arange(n, dtype=float, device=D)

    @session.program
    def step(x, dt):
        return x + dt * mb.sin(x)

    x = made(1001)
    assert (x.shape, x.dtype, x.ndim, x.size, x.nbytes, len(x)) == ((1001,), np.float64, 1, 1001, 8008, 1001)
    assert x.kind == "DArray[HostArray[float64, 1]]"
    assert x.layout == "Layout(Block(0))"
    assert "2 workers" in repr(x) and "(1001,)" in repr(x)
    assert "1001" in x._repr_html_() and "rank 0" in x._repr_html_()
    for _ in range(3):
        x = step(x, 0.1)
    expected = np.arange(1001.0)
    for _ in range(3):
        expected = expected + 0.1 * np.sin(expected)
    np.testing.assert_allclose(x.fetch(), expected, rtol=1e-15)


def test_arrays_stand_anywhere_in_a_result(session):
    values = np.random.default_rng(0).normal(size=(7, 5))

    def parts(a):
        x = D(a)
        return {"x": x, "more": [x.T, (mb.sum(x), x.local)], "again": x}

    found = session.run(parts, values)
    np.testing.assert_array_equal(found["x"].fetch(), values)
    np.testing.assert_array_equal(found["again"].fetch(), values)
    np.testing.assert_array_equal(found["more"][0].fetch(), values.T)
    total, local = found["more"][1]
    assert isinstance(total, np.float64)
    np.testing.assert_allclose(total, values.sum())
    np.testing.assert_array_equal(np.concatenate([local.fetch(0), local.fetch(1)]), values)
    assert "each" in repr(local)
    with pytest.raises(IndexError, match="no rank 2"):
        local.fetch(2)
    # And anywhere in an argument, or in what a function closes over.
    np.testing.assert_allclose(
        session.run(lambda d: float(mb.sum(d["x"][0])), {"x": [found["x"]]}), values.sum()
    )
    np.testing.assert_allclose(session.run(lambda: float(mb.sum(found["x"]))), values.sum())


def test_structured_arrays_and_duals_stay_too(session):
    x = session.run(lambda: mb.Diagonal(D([1.0, 2.0, 3.0])))
    assert x.kind.startswith("Diagonal")
    np.testing.assert_array_equal(x.fetch(), np.diag([1.0, 2.0, 3.0]))
    assert session.run(lambda d: float(mb.sum(d @ D(np.ones(3)))), x) == 6.0


def test_workers_let_go_of_what_is_not_held(session):
    session.run(lambda: None)  # which tells them of arrays of other tests
    before = [len(keys) for keys in kept(session)]
    x = session.run(lambda: [D(np.ones(10)), D(np.ones(20))])
    assert [len(keys) for keys in kept(session)] == [n + 2 for n in before]
    del x[0]
    session.run(lambda: None)
    assert [len(keys) for keys in kept(session)] == [n + 1 for n in before]
    del x  # and now nobody calls
    eventually(lambda: [len(keys) for keys in kept(session)] == before)


def test_large_arrays_are_sent_once(session):
    def data():
        return [[k for k in keys if isinstance(k, str)] for keys in kept(session)]

    large = np.random.default_rng(1).normal(size=(2, 100_000))
    session.run(lambda: None)
    eventually(lambda: data() == [[], []])
    for x in large, large, large.copy(), [large]:
        assert session.each(lambda x: float(np.sum(x)), x) == [np.sum(large)] * 2
    sent = data()
    assert len(sent[0]) == 1 and sent[0] == sent[1]
    large[0, 0] = 5.0
    assert session.each(lambda x: (float(x[0, 0]), x.flags.aligned), large) == [(5.0, True)] * 2
    np.testing.assert_array_equal(session.run(lambda x: x.T, large[:, ::2]), large[:, ::2].T)
    with pytest.raises(ValueError, match="read-only"):
        session.run(lambda x: x.fill(0), large)
    del large, x
    eventually(lambda: data() == [[], []])


def test_put_keeps_an_array_there(session):
    values = np.arange(300_000.0)
    x = session.put(values)
    assert x.layout is None
    assert "whole on each worker" in x._repr_html_() and "2,400,000" in x._repr_html_()
    del values
    assert session.each(lambda x: float(x[-1]), x) == [299_999.0] * 2
    assert x.fetch(1)[7] == 7
    np.testing.assert_array_equal(session.put([1, 2]).fetch(), [1, 2])


def test_programs_follow_the_notebook(session):
    # Names as a notebook's cells define and redefine them.
    cells = {"__name__": "__main__", "mb": mb, "session": session}
    exec("factor = 2\ndef inner(x): return factor * x\n@session.program\ndef outer(x): return inner(x)", cells)
    assert cells["outer"](5) == 10
    exec("factor = 3", cells)
    assert cells["outer"](5) == 15
    exec("def inner(x): return -factor * x", cells)
    assert cells["outer"](5) == -15
    exec("@session.program\ndef twice(x): return outer(outer(x))", cells)
    assert cells["twice"](1) == 9
    exec("@session.program\ndef down(n): return n and 1 + down(n - 1)", cells)
    assert cells["down"](4) == 4
    exec("class Pair:\n  def __init__(self, x): self.x = x\ndef pair(p): return Pair(p.x + 1)", cells)
    assert type(session.run(cells["pair"], cells["Pair"](1))) is cells["Pair"]


def test_programs_are_shipped_once(session, monkeypatch):
    packed = []
    pack = member.shipping.pack
    monkeypatch.setattr(member.shipping, "pack", lambda x, name: packed.append(x) or pack(x, name))

    def f(x):
        return x

    for i in range(3):
        assert session.run(f, i) == i
    assert [x for x in packed if isinstance(x, types.FunctionType)] == [f]


@pytest.mark.parametrize("suffix", [".npy", ".h5", ".zarr"])
def test_files_are_read_on_the_workers(session, tmp_path, suffix):
    values = np.random.default_rng(2).normal(size=(11, 4))
    path = str(tmp_path / f"data{suffix}")
    mb.save(path, values if suffix == ".npy" else {"u": values})
    x = session.load(path) if suffix == ".npy" else session.load(path, "u")
    assert x.kind == "DArray[HostArray[float64, 2]]"
    np.testing.assert_array_equal(x.fetch(), values)
    again = str(tmp_path / f"again{suffix}")
    session.run(lambda path, x: mb.save(path, x if path.endswith("npy") else {"u": x}), again, x)
    found = mb.load(again)
    np.testing.assert_array_equal(mb.to_numpy(found if suffix == ".npy" else found["u"]), values)


def test_the_dashboard_shows_programs(session):
    client = session.client

    def a_program_to_see():
        time.sleep(0.01)

    client.get_task_stream()  # from now on it is recorded
    session.run(a_program_to_see)

    def shown():
        return [x for x in client.get_task_stream() if x["key"].startswith("a_program_to_see")]

    eventually(lambda: len(shown()) == 2)
    assert {x["worker"] for x in shown()} == set(session.workers)
    (bar,) = shown()[0]["startstops"]
    assert bar["stop"] - bar["start"] >= 0.01
    events = [e for _, e in client.get_events(member.TOPIC) if e["key"].startswith("a_program_to_see")]
    assert sorted(e["rank"] for e in events) == [0, 1]


# Failures


def test_an_error_on_one_worker_is_raised_here(session):
    def fails(x):
        comm = mb.distributed.communicator()
        if comm.rank == 1:
            raise FloatingPointError("only here")
        comm.barrier()

    x = session.run(lambda: D(np.ones(4)))
    began = time.monotonic()
    with pytest.raises(FloatingPointError, match="only here") as found:
        session.run(fails, x)
    assert time.monotonic() - began < 30
    cause = found.value.__cause__
    assert isinstance(cause, RemoteError) and cause.rank == 1
    assert "in fails" in str(cause) and session.workers[1] in str(cause)
    assert "member.py" not in str(cause)
    np.testing.assert_array_equal(x.fetch(), np.ones(4))


def test_an_error_on_all_workers_is_raised_once(session):
    with pytest.raises(ValueError, match="broadcast"):
        session.run(lambda: D(np.ones(3)) + D(np.ones(4)))


def raise_exit():
    raise SystemExit(3)


class Odd(Exception):
    def __init__(self, a, b):
        super().__init__(a)


def odd():
    raise type("Odder", (Odd,), {})(1, 2)


@pytest.mark.parametrize(
    "program, error, what",
    [
        (lambda: threading.Lock(), TypeError, "pickle"),
        (raise_exit, RemoteError, "SystemExit: 3"),
        (odd, RemoteError, "Odder"),
        (
            lambda: D(np.ones(3)) if mb.distributed.communicator().rank else 1,
            CommunicationError,
            "returned 0 arrays on rank 0",
        ),
    ],
)
def test_other_failures(session, program, error, what):
    session.run(lambda: None)
    before = kept(session)
    with pytest.raises(error, match=what):
        session.run(program)
    assert session.run(lambda: 7) == 7
    assert all(set(now) <= set(then) for now, then in zip(kept(session), before, strict=True))


def test_what_cannot_be_shipped_changes_nothing(session):
    with pytest.raises(TypeError, match="pickle"):
        session.run(lambda x: x, threading.Lock())
    with pytest.raises(TypeError, match="stays in the notebook"):
        session.run(lambda: session.size)
    with pytest.raises(TypeError, match="cannot be called"):
        session.program(3)
    assert session.run(lambda: 7) == 7


def test_a_remote_says_what_to_do(session):
    x = session.run(lambda: D(np.ones((2, 2))))
    with pytest.raises(TypeError, match="fetch"):
        np.asarray(x)
    with pytest.raises(AttributeError, match=r"lambda x: x\.sum"):
        x.sum()
    with pytest.raises(TypeError, match=r"mb\.save"):
        pickle.dumps(x)
    with mb.distributed.connect(session.client) as other:
        with pytest.raises(CommunicationError, match="another session"):
            other.run(lambda x: x, x)
        y = other.run(lambda: D(np.zeros(3)))
        assert session.run(lambda x: float(mb.sum(x)), x) == 4.0
        name = other.name
    for use in y.fetch, lambda: other.run(lambda: 1):
        with pytest.raises(CommunicationError, match=r"closed.*Connect again"):
            use()
    assert "Block(0)" in y._repr_html_()
    other.close()
    assert "closed" in repr(other)
    # Nothing is left of it.
    plugins = session.client.run(lambda dask_worker: list(dask_worker.plugins))
    assert all(name not in found for found in plugins.values())
    assert name not in session.client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.plugins))


def compute_without_end():
    comm = mb.distributed.communicator()
    while comm.rank == 0:
        pass
    comm.barrier()


def wait_without_end():
    mb.distributed.communicator().exchange({}, {1 - mb.distributed.communicator().rank: np.ones(1)})


@pytest.fixture
def interrupts():
    """Interrupts are errors here, also where a shell has what runs in the background ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("program", [compute_without_end, wait_without_end])
def test_an_interrupt_stops_the_program(session, program, interrupts):
    timer = threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt) as found:
        session.run(program)
    timer.join()
    assert "can be used" in found.value.__notes__[0]
    assert session.run(lambda: mb.distributed.communicator().allgather_object(1)) == [1, 1]


def test_calls_go_by_way_of_the_scheduler_too(client):
    with mb.distributed.connect(client, direct=False) as session:
        large = np.arange(400_000.0)
        x = session.run(lambda a: D(a) + 1, large)
        np.testing.assert_array_equal(x.fetch(), large + 1)
        with pytest.raises(KeyError):
            session.run(lambda: {}["a"])


def test_connecting_says_what_is_wrong(client, monkeypatch):
    with pytest.raises(TypeError, match="client of Dask, not a str"):
        mb.distributed.connect("tcp://127.0.0.1:8786")
    find_spec = importlib.util.find_spec
    with monkeypatch.context() as patch:
        patch.setattr(
            importlib.util, "find_spec", lambda name: None if name == "distributed" else find_spec(name)
        )
        with pytest.raises(ImportError, match=r'pip install "mirabelle\[dask\]"'):
            mb.distributed.connect(client)
    with monkeypatch.context() as patch:
        patch.setattr(mb, "__version__", "99.0")
        with pytest.raises(CommunicationError, match=r"runs mirabelle 99.0, and not all.*tcp://.* has "):
            mb.distributed.connect(client)
    found = client.get_versions()
    for worker in found["workers"].values():
        worker["host"]["python"] = "3.9.1.final.0"
    with monkeypatch.context() as patch:
        patch.setattr(client, "get_versions", lambda **_: found)
        with pytest.raises(CommunicationError, match=r"runs Python 3\.\d+, and not all workers do: .* has 3.9"):
            mb.distributed.connect(client)
    with monkeypatch.context() as patch:
        patch.setattr(client, "nthreads", dict)
        with pytest.raises(CommunicationError, match="no workers yet"):
            mb.distributed.connect(client)


def test_versions_are_asked_for_without_mirabelle():
    import cloudpickle

    text = cloudpickle.dumps(versions.shipped(versions.installed))
    assert b"mirabelle.backends" not in text
    assert pickle.loads(text)()["mirabelle"] == mb.__version__


@pytest.mark.parametrize(
    "given, first",
    [
        (["tcp://10.0.0.10:1", "tcp://10.0.0.9:20", "tcp://10.0.0.9:3"], "tcp://10.0.0.9:3"),
        (["tls://nodeb:1", "tls://nodea:1"], "tls://nodea:1"),
        (["inproc://10.0.0.1/77/10", "inproc://10.0.0.1/77/9"], "inproc://10.0.0.1/77/9"),
        (["tcp://[::1]:5", "tcp://127.0.0.1:6"], "tcp://127.0.0.1:6"),
        (["tcp://[fe80::2]:5", "tcp://[fe80::1]:6"], "tcp://[fe80::1]:6"),
    ],
)
def test_workers_are_in_the_order_of_their_addresses(given, first):
    from mirabelle.backends.dask.connecting import by_address

    assert sorted(given, key=by_address)[0] == first


def test_workers_can_be_threads_of_this_process():
    threads = mb.settings.num_threads
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
        mb.distributed.connect(client) as session,
    ):
        assert (
            session.each(
                lambda: mb.distributed.communicator().allgather_object(mb.distributed.communicator().rank)
            )
            == [[0, 1]] * 2
        )
        assert mb.distributed.communicator().size == 1
        assert mb.settings.num_threads == threads


def links(session):
    """What the workers' connections to each other are, and what they are encrypted with."""

    def kinds(dask_worker, name):
        sockets = [link.socket for link in dask_worker.plugins[name].comm._links.values()]
        return [(type(x).__name__, x.version() if isinstance(x, ssl.SSLSocket) else None) for x in sockets]

    return list(session.client.run(kinds, name=session.name, workers=list(session.workers)).values())


# (A connection of distributed that is refused leaves its socket to the collector.)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_messages_are_encrypted_where_the_cluster_is(session, tmp_path):
    assert links(session) == [[("socket", None)]] * 2
    paths = dict(zip(("cert", "key"), map(str, certificate(tmp_path)), strict=True))
    who = ("client", "scheduler", "worker")
    security = distributed.Security(
        tls_ca_file=paths["cert"],
        require_encryption=True,
        **{f"tls_{role}_{what}": path for role in who for what, path in paths.items()},
    )
    with (
        new_cluster(protocol="tls", security=security) as cluster,
        distributed.Client(cluster) as client,
        mb.distributed.connect(client) as encrypted,
    ):
        assert links(encrypted) == [[("SSLSocket", "TLSv1.3")]] * 2
        x = encrypted.run(lambda: D(np.arange(100_000.0)))
        assert encrypted.run(lambda x: float(mb.sum(x[1:] - x[:-1])), x) == 99_999
        np.testing.assert_array_equal(encrypted.run(lambda x: mb.sort(-x), x).fetch(), -np.arange(1e5)[::-1])
        threading.Timer(0.2, os.kill, [encrypted.each(os.getpid)[1], signal.SIGKILL]).start()
        with pytest.raises(RemoteError, match="was lost"):
            encrypted.run(
                lambda: [mb.distributed.communicator().barrier() or time.sleep(0.1) for _ in range(99)]
            )


def test_a_cluster_without_certificates_that_requires_encryption_is_refused():
    with pytest.raises(CommunicationError, match="gives its workers no certificate"):
        member.encryption(distributed.Security(require_encryption=True))
    assert member.encryption(distributed.Security()) is None


def test_strangers_do_not_keep_workers_from_each_other(client):
    """Whoever else calls where workers listen for each other, before they do: silent, or with a wrong proof."""
    workers = sorted(client.nthreads(), key=connecting.by_address)
    name = "strangers"
    addresses = client.run(member.prepare, name=name, workers=workers)
    strangers = [socket.create_connection(addresses[workers[0]]) for _ in range(50)]
    for stranger in strangers[::2]:
        stranger.sendall(secrets.token_bytes(200))
    try:
        began = time.monotonic()
        client.run(
            member.join,
            name=name,
            workers=workers,
            members=workers,
            addresses=[addresses[w] for w in workers],
            token=secrets.token_bytes(32),
            timeout=30.0,
            notebook=("", 0),
        )
        assert time.monotonic() - began < 4
        for stranger in strangers:
            stranger.settimeout(10)
            try:
                while stranger.recv(4096):
                    pass  # (it is heard no longer)
            except ConnectionError:
                pass
    finally:
        client.run(member.leave, name=name, workers=workers)
        for stranger in strangers:
            stranger.close()


@pytest.mark.parametrize("way", ["the client closes", "nobody holds it"])
def test_workers_forget_a_session_that_is_dropped(client, way):
    with distributed.Client(client.scheduler.address) as other:
        session = mb.distributed.connect(other)
        x = session.run(lambda: D(np.ones(3)))
        name = session.name
        assert name in client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.plugins))
        if way == "nobody holds it":
            del session, x
            gc.collect()
            eventually(lambda: not any(name in found for found in plugins(client)))
    eventually(lambda: not any(name in found for found in plugins(client)))
    # (The scheduler forgets it when all workers have said that they have.)
    eventually(lambda: name not in client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.plugins)))


def plugins(client):
    return client.run(lambda dask_worker: list(dask_worker.plugins)).values()


# Last: workers that die


@pytest.fixture(scope="module")
def mortal():
    with new_cluster() as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.mark.parametrize("direct", [True, False])
def test_a_lost_worker_is_named_and_connecting_again_works(mortal, direct):
    mortal.wait_for_workers(2, timeout=30)
    with mb.distributed.connect(mortal, direct=direct) as session:
        x = session.run(lambda: D(np.ones(10)))
        assert session.run(lambda x: float(mb.sum(x)), x) == 10.0
        pids = session.each(os.getpid)

        def waits():
            time.sleep(0.5)
            mb.distributed.communicator().barrier()

        threading.Timer(0.2, os.kill, [pids[1], signal.SIGKILL]).start()
        began = time.monotonic()
        with pytest.raises(RemoteError, match=f"Worker {session.workers[1]} .rank 1 of 2. was lost") as found:
            session.run(waits)
        assert time.monotonic() - began < 60
        assert found.value.rank == 1
        with pytest.raises(CommunicationError, match=r"was lost.*Connect again"):
            x.fetch()
    eventually(lambda: session.workers[1] not in mortal.nthreads())


def test_array_types_go_by_reference():
    """Sent by value they would be other types of the same name."""
    from mirabelle.backends.dask import shipping

    for kind in (
        D,
        mb.DArray[mb.HostArray[mb.float64, 2]],
        mb.HostArray[mb.float64],
        mb.types.Transpose[mb.HostArray],
    ):
        text = shipping.pack(kind, lambda x: None)
        assert b"cloudpickle" not in text and shipping.unpack(text, lambda name: None) is kind


class Nowhere:
    size = 2

    def _forget(self, key):
        pass


REFUSED = {
    "generic": lambda x: mb.sum(x), "of two": lambda x: mb.add(x, 1), "operator": lambda x: x + 1,
    "reflected": lambda x: 1 - x, "ours": lambda x: mb.ones(3) * x, "numpys": lambda x: np.ones(3) + x,
    "ufunc": np.sin, "equal": lambda x: x == 1, "index": lambda x: x[0], "list": list, "number": float,
    "truth": bool, "joined": lambda x: mb.concat([x, x]), "routine": lambda x: mb.linalg.solve(x, x),
    "made": mb.HostArray, "fetched": mb.to_numpy, "written": lambda x: x.__setitem__(0, 1.0),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_computed_with_a_remote_array_says_what_can(what):
    described = {"kind": "DArray[HostArray]", "layout": None, "shape": (3,), "dtype": np.dtype("f8")}
    session = Nowhere()
    x = Remote(session, 1, described)
    with pytest.raises(TypeError, match=r"lives on the workers.*x\.fetch\(\)"):
        REFUSED[what](x)
    assert {x: 1}[x] == 1 and x in [x]
