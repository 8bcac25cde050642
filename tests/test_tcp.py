"""Communicators over sockets: threads of one process, and processes of their own."""

import json
import os
import secrets
import signal
import socket
import ssl
import threading
import time

import numpy as np
import pytest
from certificates import certificate
from children import finish, start

from mirabelle.arraytypes.distributed import marks
from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.backends.tcp import TLS, Listener, connect, local_group, rendezvous
from mirabelle.backends.tcp.collectives import tree
from mirabelle.backends.tcp.rendezvous import DIGEST, GREETING, HELLO
from mirabelle.dispatch.errors import CommunicationError, RemoteError


def each(jobs):
    """What jobs return, or raise, each in a thread of its own."""
    found = [None] * len(jobs)

    def work(i):
        try:
            found[i] = jobs[i]()
        except Exception as error:
            found[i] = error

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive(), "a rank hangs"
    return found


def on_ranks(size, program):
    """What a program returns, or raises, on each rank; the others hear of a failure."""
    group = local_group(size)

    def run(comm):
        try:
            return program(comm)
        except Exception as error:
            comm.failed(error)
            raise

    try:
        return each([lambda c=c: run(c) for c in group])
    finally:
        for comm in group:
            comm.close()


def none_failed(found):
    for x in found:
        if isinstance(x, Exception):
            raise x
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 9, 10])
def test_collectives(size):
    def program(comm):
        r = comm.rank
        assert comm.allgather_object({"rank": r}) == [{"rank": i} for i in range(size)]
        for root in range(size):
            assert comm.bcast_object(("from", root) if r == root else None, root) == ("from", root)
        comm.barrier()
        # Small and large ones take different ways.
        for n in 0, 1, 7, 70_000:
            row = np.full(n, float(r))
            comm.broadcast(row, size // 2)
            assert (row == size // 2).all()
            parts = [np.full((n + i, 2), -1, np.int32) for i in range(size)]
            parts[r][:] = r
            comm.allgather(parts[r], parts)
            assert all((part == i).all() for i, part in enumerate(parts))
        return True

    assert none_failed(on_ranks(size, program)) == [True] * size


@pytest.mark.parametrize("size", [2, 3, 9])
@pytest.mark.parametrize("n", [1, 3000, 30_000])
@pytest.mark.parametrize("op", ["sum", "max"])
def test_allreduce_is_in_the_order_of_ranks(size, n, op):
    terms = np.random.default_rng(5).normal(size=(size, n)) * 10.0 ** np.arange(size)[:, None]

    def program(comm):
        x = terms[comm.rank].copy()
        assert comm.allreduce(x, op)
        return x

    expected = terms[0].copy()
    for term in terms[1:]:
        expected = expected + term if op == "sum" else np.maximum(expected, term)
    for x in none_failed(on_ranks(size, program)):
        np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("dtype", ["?", "i2", "f4", "c16"])
@pytest.mark.parametrize("op", ["sum", "prod", "min", "any", "all"])
def test_allreduce_of_types_is_that_of_any_communicator(dtype, op):
    terms = [(np.array([[0, 1], [2, 3]]) * (r + 1)).astype(dtype) for r in range(3)]

    def program(comm):
        mine, general = np.asfortranarray(terms[comm.rank]), terms[comm.rank].copy()
        assert comm.allreduce(mine, op)
        assert Communicator.allreduce(comm, general, op)
        return mine, general

    for mine, general in none_failed(on_ranks(3, program)):
        assert mine.dtype == dtype
        np.testing.assert_array_equal(mine, general)


def test_what_cannot_be_reduced_is_left_to_others():
    assert on_ranks(2, lambda comm: comm.allreduce(np.ones(2), "xor")) == [False, False]


def test_trees_reach_all():
    for size in range(1, 12):
        for root in range(size):
            assert tree(root, size, root)[0] is None
            for r in range(size):
                for child in tree(r, size, root)[1]:
                    assert tree(child, size, root)[0] == r
            assert sum(len(tree(r, size, root)[1]) for r in range(size)) == size - 1


def test_large_messages_cross():
    n = 4_000_000

    def program(comm):
        other = 1 - comm.rank
        sent = comm.start({other: np.full(n, comm.rank, np.int32)}, {})
        sent.wait()  # nobody has posted a receive yet
        got = np.empty(n, np.int32)
        comm.exchange({}, {other: got})
        assert (got == other).all()
        comm.exchange({other: got}, {other: np.empty(n, np.int32)})
        return True

    assert none_failed(on_ranks(2, program)) == [True, True]


def test_messages_stay_in_order():
    def program(comm):
        other = 1 - comm.rank
        posted = [np.empty(5) for _ in range(10)]
        early = [comm.start({}, {other: x}) for x in posted[:5]]
        sent = [comm.start({other: np.full(5, i * 1.0)}, {}) for i in range(10)]
        comm.hurry()
        late = [comm.start({}, {other: x}) for x in posted[5:]]
        for messages in early + sent + late:
            messages.wait()
            assert messages.done()
        return [x[0] for x in posted]

    assert none_failed(on_ranks(2, program)) == [list(range(10))] * 2


def test_parts_talk_among_themselves():
    def program(comm):
        half = comm.part([r for r in range(5) if r % 2 == comm.rank % 2])
        x = np.array([float(comm.rank)])
        assert half.allreduce(x, "sum")
        quarter = half.part([0, 1]) if half.rank < 2 else None
        names = quarter.allgather_object(comm.rank) if quarter is not None else None
        return half.allgather_object(comm.rank), half.bcast_object(comm.rank, 1), x[0], names

    found = none_failed(on_ranks(5, program))
    assert found[2] == ([0, 2, 4], 2, 6.0, [0, 2])
    assert found[3] == ([1, 3], 3, 4.0, [1, 3])
    assert found[4][3] is None


def test_a_failure_is_raised_on_all_with_its_traceback():
    def program(comm):
        comm.barrier()
        if comm.rank == 1:
            raise ZeroDivisionError("no such quotient")
        comm.barrier()

    found = on_ranks(3, program)
    assert isinstance(found[1], ZeroDivisionError)
    for r in 0, 2:
        assert isinstance(found[r], RemoteError)
        assert found[r].rank == 1
        assert "ZeroDivisionError: no such quotient" in str(found[r])
        assert "in program" in found[r].remote_traceback


def test_programs_after_a_failure_do_not_hear_of_it(monkeypatch):
    monkeypatch.setattr(marks, "ANSWER", 0.1)
    large = np.ones(2_000_000)

    def program(comm):
        other = 1 - comm.rank
        for number in range(1, 6):
            try:
                comm.begin(number)
                if comm.rank == 0:
                    comm.start({other: large}, {})  # which nobody takes
                    raise ValueError("stop")
                comm.exchange({}, {other: np.empty(3_000_000)})
            except (ValueError, CommunicationError) as error:
                comm.failed(error)
            comm.begin(number * 100)
            assert comm.allgather_object(comm.rank + number) == [number, number + 1]
        return True

    assert none_failed(on_ranks(2, program)) == [True, True]


def test_different_statements_are_an_error():
    def program(comm):
        comm.exchange({1 - comm.rank: np.ones(comm.rank + 1)}, {1 - comm.rank: np.ones(comm.rank + 1)})

    for found in on_ranks(2, program):
        assert isinstance(found, CommunicationError)
        assert "bytes expected" in str(found) and str(found).count("test_tcp.py:") == 2


def test_a_lost_rank_is_noticed_by_all():
    def program(comm):
        comm.barrier()
        if comm.rank == 2:
            for link in comm._links.values():
                link.socket.shutdown(socket.SHUT_RDWR)
            return None
        comm.allgather_object(1)

    for found in on_ranks(3, program)[:2]:
        assert isinstance(found, RemoteError)
        assert found.rank == 2
        assert "was lost" in str(found)


def test_a_rank_that_left_in_order_is_awaited_in_vain():
    def program(comm):
        comm.barrier()
        if comm.rank:
            comm.close()
        else:
            comm.exchange({}, {1: np.ones(1)})

    found = on_ranks(2, program)[0]
    assert isinstance(found, CommunicationError) and not isinstance(found, RemoteError)
    assert "has closed its communicator" in str(found)


def test_a_program_can_be_stopped():
    def program(comm):
        if comm.rank:
            time.sleep(0.1)
            return
        threading.Timer(0.05, comm.stop, [KeyError("enough")]).start()
        with pytest.raises(KeyError, match="enough"):
            comm.exchange({}, {1: np.ones(1)})

    none_failed(on_ranks(2, program))


@pytest.mark.parametrize(
    "sends, receives, what",
    [
        ({0: np.ones(1)}, {}, "to itself"),
        ({}, {7: np.ones(1)}, "no rank 7"),
        ({1: np.ones((4, 4))[:, :2]}, {}, "not contiguous"),
        ({1: np.array([None])}, {}, "object"),
        ({1: [1.0]}, {}, "a list"),
        ({}, {1: np.broadcast_to(np.ones(1), (1,))}, "read-only"),
    ],
)
def test_bad_messages(sends, receives, what):
    group = local_group(2)
    with pytest.raises(CommunicationError, match=what):
        group[0].start(sends, receives)
    for comm in group:
        comm.close()
        comm.close()
    with pytest.raises(CommunicationError, match="closed"):
        group[0].barrier()


# Finding each other


def test_strangers_are_sent_away():
    token = secrets.token_bytes()
    listeners = [Listener("127.0.0.1") for _ in range(3)]
    addresses = [x.address for x in listeners]
    with socket.create_connection(addresses[0]) as silly, socket.create_connection(addresses[1]) as gone:
        silly.sendall(b"GET / HTTP/1.1\r\n" + b"x" * 100)
        gone.close()
        group = none_failed(each([lambda r=r: connect(r, 3, addresses, token, listeners[r]) for r in range(3)]))
    assert each([lambda c=c: c.allgather_object(c.rank) for c in group]) == [[0, 1, 2]] * 3
    for comm in group:
        comm.close()


STRANGERS = {
    "silent": lambda s: None,
    "slow": lambda s: s.sendall(b"m"),
    "garbage": lambda s: s.sendall(secrets.token_bytes(300)),
    "half a greeting": lambda s: s.sendall(HELLO.pack(GREETING, 1, 3, b"x" * 16)[:-1]),
    "a greeting without a proof": lambda s: s.sendall(HELLO.pack(GREETING, 1, 3, b"x" * 16)),
    "a wrong proof": lambda s: s.sendall(HELLO.pack(GREETING, 1, 3, b"x" * 16) + b"y" * DIGEST),
    "a rank that is none": lambda s: s.sendall(HELLO.pack(GREETING, 7, 3, b"x" * 16)),
    "gone": lambda s: s.close(),
}


@pytest.mark.parametrize("what", STRANGERS)
def test_strangers_keep_nobody_waiting(what):
    """However many call and whatever they say: partners do not wait for them."""
    token = secrets.token_bytes()
    listeners = [Listener("127.0.0.1") for _ in range(3)]
    addresses = [x.address for x in listeners]
    strangers = [socket.create_connection(addresses[i % 2]) for i in range(40)]
    for stranger in strangers:
        STRANGERS[what](stranger)
    began = time.monotonic()
    group = none_failed(each([lambda r=r: connect(r, 3, addresses, token, listeners[r]) for r in range(3)]))
    assert time.monotonic() - began < 4  # (one silent stranger used to take 5 s)
    assert each([lambda c=c: c.allgather_object(c.rank) for c in group]) == [[0, 1, 2]] * 3
    for end in (*group, *strangers):
        end.close()


def test_more_strangers_than_are_heard_at_once(monkeypatch):
    monkeypatch.setattr(rendezvous, "CALLERS", 8)
    token = secrets.token_bytes()
    listeners = [Listener("127.0.0.1") for _ in range(2)]
    addresses = [x.address for x in listeners]
    strangers = [socket.create_connection(addresses[0]) for _ in range(100)]
    group = none_failed(each([lambda r=r: connect(r, 2, addresses, token, listeners[r]) for r in range(2)]))
    assert each([lambda c=c: c.allgather_object(c.rank) for c in group]) == [[0, 1]] * 2
    for end in (*group, *strangers):
        end.close()


def test_another_token_is_not_joined():
    listeners = [Listener("127.0.0.1") for _ in range(2)]
    addresses = [x.address for x in listeners]
    found = each(
        [lambda r=r: connect(r, 2, addresses, b"token %d" % r, listeners[r], timeout=0.5) for r in range(2)]
    )
    assert "waited 0.5 s for rank 1" in str(found[0])
    assert "another token" in str(found[1])


def test_who_is_not_there_is_named():
    with Listener("127.0.0.1") as gone:
        address = gone.address
    listener = Listener("127.0.0.1")
    with pytest.raises(CommunicationError, match="cannot reach rank 0 at"):
        connect(1, 2, [address, listener.address], b"t", listener, timeout=1)
    listener = Listener("127.0.0.1")
    with pytest.raises(CommunicationError, match="2 addresses"):
        connect(0, 3, [address, listener.address], b"t", listener)
    with pytest.raises(CommunicationError, match="empty"):
        connect(0, 2, [address, listener.address], b"", listener)
    listener.close()


# Encrypted


def contexts(folder, name="all"):
    paths = certificate(folder, name)
    made = []
    for purpose in ssl.Purpose.SERVER_AUTH, ssl.Purpose.CLIENT_AUTH:
        context = ssl.create_default_context(purpose, cafile=paths[0])
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(*paths)
        made.append(context)
    made[1].num_tickets = 0
    return TLS(*made)


def joined(tls, timeout=30.0):
    """Communicators of threads, each with its own TLS or None; what was raised in their place."""
    listeners = [Listener("127.0.0.1") for _ in tls]
    addresses = [x.address for x in listeners]
    return each(
        [
            lambda r=r: connect(r, len(tls), addresses, b"token", listeners[r], timeout, tls[r])
            for r in range(len(tls))
        ]
    )


def test_encrypted_messages(tmp_path, monkeypatch):
    """Of all sizes, many at a time, crossing, and after a program that was cut short."""
    monkeypatch.setattr(marks, "ANSWER", 0.1)
    group = none_failed(joined([contexts(tmp_path)] * 3))
    sizes = [0, 1, 7, 1024, 8192, 8193, 70_000, 3_000_000]

    def program(comm):
        r = comm.rank
        assert comm.allgather_object(r) == [0, 1, 2]
        sent = [np.full(n, r * 100 + i, np.int32) for i, n in enumerate(sizes)]
        got = {o: [np.empty_like(x) for x in sent] for o in range(3) if o != r}
        under_way = [
            comm.start(dict.fromkeys(got, x), {o: y[i] for o, y in got.items()}) for i, x in enumerate(sent)
        ]
        for messages in under_way:
            messages.wait()
        for o, parts in got.items():
            assert all((x == o * 100 + i).all() for i, x in enumerate(parts))
        for number in range(1, 4):
            try:
                comm.begin(number)
                if r == 0:
                    comm.start({1: np.ones(2_000_000), 2: np.ones(10)}, {})
                    raise ValueError("stop")
                comm.exchange({}, {0: np.empty(3_000_000)})
            except (ValueError, CommunicationError) as error:
                comm.failed(error)
            comm.begin(number * 100)
            assert comm.allgather_object(r + number) == [number, number + 1, number + 2]
        return True

    assert each([lambda c=c: program(c) for c in group]) == [True] * 3
    # Who takes leave at once is still heard, and what goes over the line is no plain text.
    assert all(isinstance(x.socket, ssl.SSLSocket) and x.socket.cipher() for x in group[0]._links.values())
    group[0].close()
    with pytest.raises(CommunicationError, match="has closed its communicator"):
        group[1].exchange({}, {0: np.ones(1)})
    for comm in group:
        comm.close()


def test_a_certificate_of_another_authority_is_not_joined(tmp_path):
    found = joined([contexts(tmp_path, "one"), contexts(tmp_path, "other")], timeout=3)
    assert all(isinstance(x, CommunicationError) and "cannot be encrypted" in str(x) for x in found)


def test_encryption_is_of_all_or_none(tmp_path):
    found = joined([None, contexts(tmp_path, "one")], timeout=1)
    assert isinstance(found[1], CommunicationError) and "cannot be encrypted" in str(found[1])
    if not isinstance(found[0], Exception):
        with pytest.raises(RemoteError, match="lost"):
            found[0].barrier()
        found[0].close()


# Processes

JOINED = """
import json, os, pathlib, time
import numpy as np
import mirabelle as mb
from mirabelle.backends.tcp import Listener, connect
from mirabelle.dispatch.errors import RemoteError

folder, rank, size = pathlib.Path({folder!r}), {rank}, {size}
listener = Listener("127.0.0.1")
(folder / f"{{rank}}.new").write_text(json.dumps(listener.address))
(folder / f"{{rank}}.new").rename(folder / f"{{rank}}.json")
while len(found := sorted(folder.glob("*.json"))) < size:
    time.sleep(0.01)
comm = connect(rank, size, [tuple(json.loads(p.read_text())) for p in found], b"token", listener)
"""


def processes(folder, size, program):
    return [start(JOINED.format(folder=str(folder), rank=r, size=size) + program) for r in range(size)]


def test_processes_compute_together(tmp_path):
    program = """
with mb.distributed.use_communicator(comm):
    x = mb.DArray[mb.HostArray](np.arange(1000.0))
    y = mb.sin(x[1:]) - mb.sin(x[:-1])
    whole = mb.to_numpy(y)
    total = float(mb.sum(y * y))
comm.barrier()
comm.close()
print(json.dumps([whole.tolist(), total, x.layout.__repr__()]))
"""
    found = [finish(p) for p in processes(tmp_path, 3, program)]
    expected = np.diff(np.sin(np.arange(1000.0)))
    for whole, total, _ in found:
        np.testing.assert_allclose(whole, expected, rtol=1e-15)
        np.testing.assert_allclose(total, (expected**2).sum(), rtol=1e-13)
    assert found[0] == found[1] == found[2]


def test_a_killed_process_is_noticed(tmp_path):
    program = """
comm.barrier()
if rank == 2:
    print(os.getpid(), flush=True)
    time.sleep(60)
try:
    comm.allgather_object(rank)
except RemoteError as error:
    print(json.dumps([str(error), error.rank, time.time()]))
"""
    found = processes(tmp_path, 3, program)
    pid = int(found[2].stdout.readline())
    time.sleep(0.2)
    killed = time.time()
    os.kill(pid, signal.SIGKILL)
    found[2].communicate()
    address = ":".join(map(str, json.loads((tmp_path / "2.json").read_text())))
    for text, rank, when in [finish(p) for p in found[:2]]:
        assert rank == 2
        assert f"Rank 2 at {address} was lost" in text
        assert when - killed < 2
