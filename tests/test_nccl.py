"""The NCCL backend on simulated cards, with one NCCL of tests/fakenccl.py: ranks are threads."""

import functools
import gc
import threading
import warnings

import numpy as np
import pytest

import mirabelle as mb
from mirabelle.arraytypes.distributed import communicators
from mirabelle.backends.nccl import binding, cards
from mirabelle.backends.nccl.communicator import Link, NCCLCommunicator
from tests.compare import assert_same
from tests.fakenccl import FakeNCCL, Threads, installed
from tests.threadranks import on_ranks


@pytest.fixture(autouse=True)
def simulated_card():
    with mb.settings.changed(cuda="simulated"):
        yield


@pytest.fixture
def nccl():
    with installed(Threads()) as made:
        yield made


def view(values, dtype=np.float64):
    return mb.CuArray._upload(np.asarray(values, dtype))


def empty(n, dtype=np.float64):
    return mb.CuArray._upload(np.full(n, 77, dtype))


def values(v):
    return mb.CuArray._download(v)


def engine(comm):
    """What sends memory of cards over `comm`, found as arrays do."""
    comm.prepare(mb.CuArray)
    return comm.carrier(mb.CuArray)


def with_engines(ranks, program):
    return on_ranks(ranks, lambda comm: program(engine(comm)))


# Whether it is used


def test_members_with_a_card_each_use_it(nccl):
    def program(comm):
        found = engine(comm)
        assert engine(comm) is found
        return type(found), found.rank, found.size, comm.carrier(mb.HostArray) is comm

    assert on_ranks(3, program) == [(NCCLCommunicator, r, 3, True) for r in range(3)]
    assert sorted(c for c in nccl.calls if c[0] == "init") == [("init", 3, r) for r in range(3)]


def test_alone_there_is_nothing_to_send(nccl):
    assert engine(mb.distributed.communicator()) is mb.distributed.communicator()
    assert communicators.carrier_for(mb.CuArray, mb.distributed.communicator()) is None
    assert not nccl.calls


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_ranks_that_share_a_card_go_by_the_host():
    with installed(Threads(), card_name=lambda driver: "0") as nccl:
        assert on_ranks(2, lambda comm: engine(comm) is None) == [True, True]
        assert not nccl.calls
        x = on_ranks(2, lambda comm: mb.to_numpy(mb.roll(mb.DArray[mb.CuArray](np.arange(6)), 1)))
    for found in x:
        assert_same(found, np.roll(np.arange(6), 1))


def said_of(program):
    """The warnings on the ranks."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        program()
    return [str(w.message) for w in found if w.category is RuntimeWarning]


def test_what_is_said_where_cards_are_shared():
    with installed(Threads(), card_name=lambda driver: "0000:01:00.0"):
        said = said_of(lambda: on_ranks(2, engine))
    assert len(said) == 1
    assert "ranks [0, 1] share card 0000:01:00.0" in said[0]
    assert "MIRABELLE_NCCL=0" in said[0]


def test_one_that_cannot_keeps_all_from_it(nccl, monkeypatch):
    def missing():
        return "CuPy finds no NCCL" if mb.distributed.communicator().rank == 1 else ""

    monkeypatch.setattr(binding, "missing", missing)
    said = said_of(lambda: on_ranks(3, lambda comm: engine(comm) is None or pytest.fail("it is used")))
    assert len(said) == 1
    assert "rank 1: CuPy finds no NCCL" in said[0]
    assert not nccl.calls


def test_switched_off_nothing_is_said(nccl):
    with mb.settings.changed(nccl=False):
        assert not said_of(lambda: on_ranks(2, lambda comm: engine(comm) is None or pytest.fail("it is used")))
    assert not nccl.calls


def test_a_start_that_fails_on_one_rank(nccl, monkeypatch):
    made = nccl.NcclCommunicator

    def fails(size, key, rank):
        if rank == 1:
            raise RuntimeError("unhandled system error")
        return made(size, key, rank)

    monkeypatch.setattr(nccl, "NcclCommunicator", fails)
    said = said_of(lambda: on_ranks(2, lambda comm: engine(comm) is None or pytest.fail("it is used")))
    assert len(said) == 1
    assert "rank 1: RuntimeError: unhandled system error" in said[0]


def test_a_simulated_card_has_none():
    assert not said_of(lambda: on_ranks(2, lambda comm: engine(comm) is None or pytest.fail("it is used")))


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setattr(binding, "library", lambda: type("M", (), {"available": False}))
    assert "pip install nvidia-nccl" in binding.missing()

    def broken():
        raise ImportError("no cupy")

    monkeypatch.setattr(binding, "library", broken)
    assert "no cupy" in binding.missing()


# Messages


def test_messages_of_one_exchange_are_one_group(nccl):
    def program(comm):
        a, b = (comm.rank + 1) % 3, (comm.rank + 2) % 3
        came = {a: empty(2), b: empty(5)}
        comm.exchange({a: view(np.full(5, comm.rank)), b: view([comm.rank, comm.rank])}, came)
        return [values(came[a]).tolist(), values(came[b]).tolist()]

    for rank, (from_a, from_b) in enumerate(with_engines(3, program)):
        assert from_a == [(rank + 1) % 3] * 2
        assert from_b == [(rank + 2) % 3] * 5
    assert nccl.calls.count(("groupStart",)) == 3
    assert [c for c in nccl.calls if c[0] == "groupEnd"] == [("groupEnd", 4)] * 3
    assert {c[-1] for c in nccl.calls if c[0] in ("send", "recv")} == {16, 40}  # bytes


@pytest.mark.parametrize("dtype", ["b", "?", "e", "i2", "f4", "f8", "c16", "u8", "M8[s]"])
def test_any_bytes(nccl, dtype):
    data = np.arange(6).astype(dtype)

    def program(comm):
        if dtype == "M8[s]":  # (cards have none; memory is memory)
            came = empty(data.nbytes, np.uint8)
            sent = view(data.view(np.uint8), np.uint8)
        else:
            came, sent = empty(6, dtype), view(data, dtype)
        other = 1 - comm.rank
        comm.exchange({other: sent}, {other: came})
        return values(came).view(data.dtype)

    for found in with_engines(2, program):
        assert_same(found, data)


def test_nothing_is_sent_of_nothing(nccl):
    def program(comm):
        exchange = comm.start({1 - comm.rank: empty(0)}, {1 - comm.rank: empty(0)})
        assert exchange.done()
        exchange.wait()
        comm.exchange({}, {})
        assert comm.allreduce(empty(0), "sum")
        comm.broadcast(empty(0), 0)

    with_engines(2, program)
    assert {c[0] for c in nccl.calls} == {"init"}


def test_messages_come_in_the_order_in_which_they_were_sent(nccl):
    def program(comm):
        other = 1 - comm.rank
        came = [empty(1) for _ in range(4)]
        under_way = [comm.start({other: view([i])}, {other: came[i]}) for i in range(4)]
        for exchange in reversed(under_way):
            exchange.wait()
        return [float(values(v)[0]) for v in came]

    assert with_engines(2, program) == [[0, 1, 2, 3]] * 2


def test_an_exchange_runs_beside_the_program_until_it_is_waited_for(nccl):
    def program(comm):
        other = 1 - comm.rank
        came = empty(3)
        exchange = comm.start({other: view([1, 2, 3])}, {other: came})
        assert not exchange.done()
        assert values(came).tolist() == [77, 77, 77]  # what a stream does, it does when waited for
        between = mb.to_numpy(mb.CuArray([1.0, 2.0]) * 2)
        exchange.wait()
        assert exchange.done()
        exchange.wait()
        return values(came).tolist(), between.tolist()

    assert with_engines(2, program) == [([1, 2, 3], [2, 4])] * 2


def test_memory_on_its_way_is_kept(nccl):
    def program(comm):
        other = 1 - comm.rank
        came = empty(3)
        sent = view([4, 5, 6])
        exchange = comm.start({other: sent}, {other: came})
        del sent
        gc.collect()
        [view([0, 0, 0]) for _ in range(8)]  # they would take its place
        exchange.wait()
        return values(came).tolist()

    assert with_engines(2, program) == [[4, 5, 6]] * 2


def test_an_exchange_that_is_dropped_is_still_in_order(nccl):
    def program(comm):
        other = 1 - comm.rank
        came = empty(3)
        comm.start({other: view([4, 5, 6])}, {other: came})
        gc.collect()
        return values(came).tolist()

    assert with_engines(2, program) == [[4, 5, 6]] * 2


def test_messages_come_after_what_the_current_stream_was_given(nccl):
    def program(comm):
        other = 1 - comm.rank
        came = empty(2)
        with mb.stream(mb.CuArray):
            x = mb.materialize(mb.CuArray([1.0, 2.0]) * 3)  # is computed when the stream is waited for
            sent = mb.dispatch.verbs.leaf_of(x).view
            comm.exchange({other: sent}, {other: came})
        assert comm.allreduce(came, "sum")
        return values(came).tolist()

    assert with_engines(2, program) == [[6, 12]] * 2


def test_memory_of_the_host_goes_the_way_of_the_host(nccl):
    def program(comm):
        other = 1 - comm.rank
        ours, theirs = empty(2), np.zeros(2)
        if comm.rank == 0:
            comm.exchange({1: view([1, 2])}, {1: theirs})
        else:
            comm.exchange({0: np.array([3.0, 4.0])}, {0: ours})
        plain = np.zeros(1)
        comm.exchange({other: np.array([comm.rank + 1.0])}, {other: plain})
        total = np.array([1.0, 2.0])
        assert comm.allreduce(total, "sum")
        comm.barrier()
        said = comm.allgather_object(comm.rank), comm.bcast_object(comm.rank, 1)
        return values(ours).tolist() if comm.rank else theirs.tolist(), plain[0], total.tolist(), said

    assert with_engines(2, program) == [
        ([3, 4], 2, [2, 4], ([0, 1], 1)),
        ([1, 2], 1, [2, 4], ([0, 1], 1)),
    ]


def test_memory_with_gaps_is_refused(nccl):
    def program(comm):
        with pytest.raises(mb.CommunicationError, match="Send a copy"):
            comm.start({1 - comm.rank: view(np.zeros((4, 4)))[:, 1:2]}, {})

    with_engines(2, program)


# Collective operations


@pytest.mark.parametrize(
    ("op", "dtype", "native"),
    [
        ("sum", "f8", True),
        ("sum", "f4", True),
        ("sum", "e", True),
        ("sum", "i4", True),
        ("sum", "u8", True),
        ("sum", "c16", True),
        ("sum", "F", True),
        ("prod", "f8", True),
        ("prod", "c16", False),
        ("min", "i8", True),
        ("max", "u1", True),
        ("min", "f8", False),  # NCCL overlooks nan
        ("max", "f4", False),
        ("any", "?", True),
        ("all", "?", True),
        ("sum", "i2", False),  # NCCL has no such elements
        ("xor", "i4", False),
    ],
)
def test_reductions(nccl, op, dtype, native):
    rng = np.random.default_rng(3)
    terms = [(rng.integers(0, 3, 5) + 1).astype(dtype) for _ in range(3)]
    if dtype == "?":
        terms = [rng.random(5) < 0.5 for _ in range(3)]

    def program(comm):
        data = view(terms[comm.rank], dtype)
        done = comm.allreduce(data, op)
        return done, values(data)

    ufunc = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}
    ufunc |= {"any": np.logical_or, "all": np.logical_and, "xor": np.bitwise_xor}
    for rank, (done, found) in enumerate(with_engines(3, program)):
        assert done is native
        expected = functools.reduce(ufunc[op], terms).astype(dtype) if native else terms[rank]
        np.testing.assert_array_equal(found, expected)
    assert len([c for c in nccl.calls if c[0] == "allReduce"]) == (3 if native else 0)


def test_parts_in_one_piece_are_gathered_at_once(nccl):
    def program(comm):
        rows = empty((3, 2))
        mine = rows[comm.rank]
        mb.CuArray._copy_into(mine, view([comm.rank, comm.rank * 10]))
        comm.allgather(mine, [rows[r] for r in range(3)])
        apart = [empty(2) for _ in range(3)]
        mb.CuArray._copy_into(apart[comm.rank], mine)
        comm.allgather(apart[comm.rank], apart)
        return values(rows).tolist(), [values(a).tolist() for a in apart]

    expected = [[0, 0], [1, 10], [2, 20]]
    assert with_engines(3, program) == [(expected, expected)] * 3
    assert len([c for c in nccl.calls if c[0] == "allGather"]) == 3


def test_broadcast(nccl):
    def program(comm):
        data = view([5, 6]) if comm.rank == 1 else empty(2)
        comm.broadcast(data, 1)
        return values(data).tolist()

    assert with_engines(3, program) == [[5, 6]] * 3


def test_some_of_the_members(nccl):
    def program(comm):
        if comm.rank == 1:
            return None
        part = comm.part([2, 0])
        assert comm.part((2, 0)) is part
        came = empty(2)
        part.exchange({1 - part.rank: view([part.rank, comm.rank])}, {1 - part.rank: came})
        small = view([1.0])
        assert not part.allreduce(small, "sum")  # not worth a communicator of NCCL's
        large = view(np.full(10_000, comm.rank + 1.0))
        assert part.allreduce(large, "sum")
        assert part.allreduce(large, "sum")
        assert part.allreduce(small, "sum")
        part.broadcast(small, 0)
        return values(came).tolist(), values(large)[0], values(small)[0]

    assert with_engines(3, program) == [([0, 2], 8, 2), None, ([1, 0], 8, 2)]
    assert sorted(c for c in nccl.calls if c[0] == "init" and c[1] == 2) == [("init", 2, 0), ("init", 2, 1)]


# Arrays

DATA = np.random.default_rng(4).normal(size=(12, 5))
PROGRAMS = {
    "elementwise": lambda x: x * 2 + 1,
    "stencil": lambda x: x[:-2] + x[2:] - 2 * x[1:-1],
    "roll": lambda x: mb.roll(x, 3, axis=0) if isinstance(x, mb.AbstractArray) else np.roll(x, 3, axis=0),
    "sum": lambda x: x.sum(axis=0),
    "sum of all": lambda x: x.sum(),
    "max": lambda x: x.max(axis=0),
    "transposed sum": lambda x: x.T[1:] + x.T[:-1],
    "gather": lambda x: x[[3, 11, 0]],
    "mask": lambda x: x[x > 0],
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("ranks", [2, 3])
def test_programs(nccl, name, ranks):
    program = PROGRAMS[name]

    def run(comm):
        y = program(mb.DArray[mb.CuArray](DATA))
        assert isinstance(y, mb.DArray[mb.CuArray])
        return mb.to_numpy(y)

    for found in on_ranks(ranks, run):
        np.testing.assert_allclose(found, program(DATA), rtol=1e-13)


def jacobi(a, b, steps):
    for _ in range(steps):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])


@pytest.mark.parametrize("overlap", [10, 1 << 30])
def test_halos_do_not_go_by_the_host(nccl, overlap):
    def run(comm):
        a, b = mb.DArray[mb.CuArray](DATA), mb.DArray[mb.CuArray](DATA)
        jacobi(a, b, 1)
        before = len(nccl.calls)
        jacobi(a, b, 3)
        assert any(c[0] == "send" for c in nccl.calls[before:])
        return mb.to_numpy(a)

    expected, other = DATA.copy(), DATA.copy()
    jacobi(expected, other, 4)
    with mb.settings.changed(overlap_size=overlap):
        for found in on_ranks(2, run):
            np.testing.assert_array_equal(found, expected)


def test_a_mesh_uses_parts(nccl):
    layout = mb.distributed.Layout(mb.distributed.Block(0), mb.distributed.Block(1), mesh=(2, 2))

    def run(comm):
        x = mb.DArray[mb.CuArray](DATA, layout=layout)
        return mb.to_numpy(mb.sum(x, axis=0)), mb.to_numpy(mb.max(x, axis=1)), float(mb.sum(x))

    for columns, rows, total in on_ranks(4, run):
        np.testing.assert_allclose(columns, DATA.sum(axis=0))
        np.testing.assert_array_equal(rows, DATA.max(axis=1))
        np.testing.assert_allclose(total, DATA.sum())


# Failures


def test_after_a_failure_it_starts_anew(nccl):
    def run(comm):
        x = mb.DArray[mb.CuArray](DATA)
        first = comm.carrier(mb.CuArray)
        comm.drop_carriers()  # as mb.distributed.together does
        assert comm.carrier(mb.CuArray) is None
        with pytest.raises(mb.CommunicationError, match="closed"):
            first.exchange({1 - comm.rank: view([1])}, {1 - comm.rank: empty(1)})
        y = mb.DArray[mb.CuArray](DATA) + x
        assert comm.carrier(mb.CuArray) not in (None, first)
        return mb.to_numpy(mb.roll(y, 1, axis=0))

    for found in on_ranks(2, run):
        np.testing.assert_array_equal(found, np.roll(DATA * 2, 1, axis=0))


class Stuck:
    """Marks of a card that never comes to one."""

    def record(self, stream):
        return object()

    def passed(self, mark):
        return False


def test_waiting_ends_when_another_fails(nccl, monkeypatch):
    driver = mb.CuArray.driver()
    link = Link(driver, 1, 0, 2)
    link.marks, link.busy = Stuck(), True
    monkeypatch.setattr(driver, "simulated", False)
    heard = threading.Event()
    threading.Timer(0.05, heard.set).start()

    def look():
        if heard.is_set():
            raise mb.RemoteError("Rank 1 failed: out of luck", 1, "")

    with pytest.raises(mb.RemoteError, match="out of luck"):
        link.wait(look)
    assert link.nccl.aborted
    with pytest.raises(mb.CommunicationError, match="out of luck"):
        link.use([])
    link.wait(look)  # (nothing is left to wait for)


def test_what_nobody_waits_for_is_not_waited_for(nccl):
    def program(comm):
        comm.reach()
        comm.exchange({1 - comm.rank: view([1])}, {1 - comm.rank: empty(1)})
        assert comm.link.busy
        comm.reach()
        assert not comm.link.busy

    with_engines(2, program)


def test_numbers_of_reductions():
    binding.reduction.cache_clear()
    fake = FakeNCCL(None)
    with installed(None):
        assert binding.reduction("sum", np.dtype("c8")) == (fake.NCCL_SUM, fake.NCCL_FLOAT32, 2)
        assert binding.reduction("any", np.dtype("?")) == (fake.NCCL_MAX, fake.NCCL_UINT8, 1)
        assert binding.reduction("sum", np.dtype(">f8")) is None
        assert binding.version() == "2.27.3"


# Which card a rank has


@pytest.fixture
def machine(monkeypatch):
    """A machine of four cards; its environment is that of no launcher."""
    for name in (*cards.LOCAL_RANK, *cards.TASKS, cards.VISIBLE, "SLURM_NODEID"):
        monkeypatch.delenv(name, raising=False)
    from mirabelle.backends.mpi import environment

    for name in (*environment.RANK, *environment.SIZE, *environment.LOCAL_SIZE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(environment, "is_started", lambda: "PMI_RANK" in environment.os.environ)
    monkeypatch.setattr(cards, "count_cards", lambda: 4)
    monkeypatch.setattr(cards, "cuda_has_started", lambda: False)
    monkeypatch.setenv("PMI_RANK", "0")

    def start(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        chosen = cards.choose()
        said = cards.os.environ.get(cards.VISIBLE)
        assert chosen is None or said == chosen
        return chosen

    # What `choose` writes is taken back with this.
    monkeypatch.setenv(cards.VISIBLE, "")
    monkeypatch.delenv(cards.VISIBLE)
    return start


@pytest.mark.parametrize(
    ("variables", "card"),
    [
        ({"OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, "1"),
        ({"OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, "0"),
        ({"MPI_LOCALRANKID": "3", "MPI_LOCALNRANKS": "4"}, "3"),
        ({"MPI_LOCALRANKID": "5", "MPI_LOCALNRANKS": "6"}, "1"),  # they share
        ({"SLURM_LOCALID": "0", "SLURM_STEP_TASKS_PER_NODE": "2(x3)"}, "0"),
        ({"SLURM_LOCALID": "0", "SLURM_STEP_TASKS_PER_NODE": "2(x2),1", "SLURM_NODEID": "2"}, None),
        ({"SLURM_LOCALID": "2"}, "2"),
        ({"SLURM_LOCALID": "0"}, None),
        ({"SLURM_LOCALID": "0", "SLURM_STEP_TASKS_PER_NODE": "what?"}, None),
        ({"OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}, None),  # all are its own
        ({"MPI_LOCALRANKID": "1", "CUDA_VISIBLE_DEVICES": "2,3"}, "3"),
        ({"MPI_LOCALRANKID": "1", "CUDA_VISIBLE_DEVICES": "GPU-aa, GPU-bb"}, "GPU-bb"),
        ({"MPI_LOCALRANKID": "1", "CUDA_VISIBLE_DEVICES": "2"}, None),  # the launcher chose
        ({"MPI_LOCALRANKID": "1", "CUDA_VISIBLE_DEVICES": ""}, None),
        ({}, None),
    ],
)
def test_each_rank_sees_a_card_of_its_own(machine, variables, card):
    assert machine(**variables) == card


def test_a_rank_keeps_what_it_sees(machine, monkeypatch):
    with mb.settings.changed(rank_cards=False):
        assert machine(MPI_LOCALRANKID="1") is None
    monkeypatch.setattr(cards, "cuda_has_started", lambda: True)
    assert machine() is None
    monkeypatch.setattr(cards, "cuda_has_started", lambda: False)
    monkeypatch.delenv("PMI_RANK")
    assert machine() is None
    monkeypatch.setenv("PMI_RANK", "0")
    assert machine() == "1"


def test_cards_are_counted_without_cuda():
    assert cards.count_cards() >= 0
    assert cards.cuda_has_started() in (True, False)


# Numbers that programs read


def test_a_number_that_is_read_is_combined_by_the_hosts(nccl):
    """One launch, one exchange of the hosts, and the number goes from the card and back to it."""

    def program(comm):
        x = mb.DArray[mb.CuArray](np.arange(1000.0))
        engine(comm)
        with mb.count() as first:
            total = mb.sum(x * 2.0)
            read = float(total)
        with mb.count() as again:
            more = [float(total), mb.to_numpy(total + 1).item()]
        others = mb.max(x).item(), int(mb.argmax(x)), bool(mb.any(x > 998)), mb.sum(x[:1]).item()
        waiting = mb.sum(x)
        known = float(waiting)
        x[...] = 0.0  # (what waited for the old contents keeps its value)
        return first, again, [read, *more, *others, known, mb.to_numpy(waiting).item()]

    wanted = [999000.0, 999000.0, 999001.0, 999.0, 999, True, 0.0, 499500.0, 499500.0]
    for first, again, found in on_ranks(3, program):
        assert found == wanted
        assert (first.launches, first.transfers, first.collectives, first.scalar_reads) == (1, 2, 1, 1)
        assert again.collectives == again.messages == 0
    assert not [call for call in nccl.calls if call[0] == "allReduce"]


def test_a_loop_that_reads_a_number_each_turn(nccl):
    """As it is and compiled (in pieces): memory of earlier turns is let go of."""

    def halved(x):
        turns = 0
        while float(mb.max(mb.abs(x))) > 1:
            x, turns = x / 2, turns + 1
        return x, turns

    def program(comm):
        compiled = mb.compile(halved)
        x = mb.DArray[mb.CuArray](np.arange(10.0))
        return [f(x)[1] for f in (halved, compiled, compiled)]

    assert on_ranks(2, program) == [[4, 4, 4]] * 2
