"""Everything that a communicator offers, compared with what it must give. Run under mpiexec."""

import contextlib
import sys

import numpy as np

import mirabelle as mb
from mirabelle.arraytypes.distributed.communicators import UFUNCS, communicator, world
from mirabelle.backends.mpi import communicator as module
from mirabelle.dispatch.errors import CommunicationError

comm = communicator()
rank, size = comm.rank, comm.size
others = [r for r in range(size) if r != rank]
right, left = (rank + 1) % size, (rank - 1) % size


@contextlib.contextmanager
def changed(**values):
    """Other constants of the module: small ones reach what is for large messages and large groups."""
    before = {name: getattr(module, name) for name in values}
    vars(module).update(values)
    try:
        yield
    finally:
        vars(module).update(before)


def of(r, shape, dtype):
    """What rank r gives."""
    return np.asarray((np.arange(np.prod(shape, dtype=int)) % 5 + r).astype(dtype).reshape(shape))


def test_who_we_are():
    assert comm is world() is mb.distributed.mpi_communicator() and comm.engine == "mpi"
    assert size == int(sys.argv[1])
    assert repr(comm) == f"<communicator mpi: rank {rank} of {size}>"
    assert comm.takes(np.ndarray) and not comm.takes(list)


def test_messages():
    for shape in [(), (3,), (0,), (2, 3), (60, 70)]:
        for dtype in ["f8", "f2", "?", "i1", "c16", "M8[s]", "m8[us]", ">f4", [("a", "f8"), ("b", "i2")], "S5"]:
            for order in "CF":
                mine = np.asarray(of(rank, shape, dtype), order=order)
                mine.flags.writeable = False
                got = {r: np.empty(shape, dtype, order=order) for r in others}
                comm.exchange(dict.fromkeys(others, mine), got)
                for r in others:
                    assert np.array_equal(got[r], of(r, shape, dtype)), (shape, dtype, order, r)


def test_several_at_once_arrive_in_order():
    if size == 1:
        return
    got = [np.empty(n, "i8") for n in (5, 100_000, 3)]
    under_way = [comm.start({right: np.full(g.size, 10 * rank + i)}, {left: g}) for i, g in enumerate(got)]
    comm.hurry()
    for e in reversed(under_way):
        e.wait()
        e.wait()
        assert e.done()
    for i, g in enumerate(got):
        assert (g == 10 * left + i).all()
    e = comm.start({right: got[0]}, {left: np.empty(5, "i8")})
    while not e.done():
        pass


def test_nobody_waits_for_some():
    """The memory of messages lives until they have left, also if nobody waits."""
    if size > 1:
        for _ in range(5):
            got = np.empty(500_000)
            comm.start({right: np.full(500_000, float(rank))}, {left: got})
            later = np.empty(1)
            comm.exchange({right: np.ones(1)}, {left: later})
        comm.barrier()


def test_objects():
    for n in (0, 10, 490, 500, 505, 520, 100_000):
        assert comm.allgather_object((rank, "x" * n)) == [(r, "x" * n) for r in range(size)]
        assert comm.allgather_object("x" * (n * rank)) == ["x" * (n * r) for r in range(size)]
        for root in range(size):
            assert comm.bcast_object(("y" * n, rank), root) == ("y" * n, root)
    comm.barrier()


def test_parts_of_all():
    for scale in (1, 1000):
        parts = [np.empty(r * scale) for r in range(size)]
        parts[rank][...] = rank
        comm.allgather(parts[rank], parts)
        for r in range(size):
            assert (parts[r] == r).all()
        for root in range(size):
            data = of(rank, (scale, 3), "f4")
            comm.broadcast(data, root)
            assert np.array_equal(data, of(root, (scale, 3), "f4"))


def test_reductions():
    rng = [np.random.default_rng(r) for r in range(size)]
    for dtype in ["f8", "f4", "f2", "c16", "g", "i8", "u1", "?", ">f8", "m8[s]"]:
        for op in UFUNCS:
            for n in (1, 7, 1500):
                given = [(g.standard_normal(n) * 3).astype(dtype) for g in rng]
                if dtype == "f8" and op in ("min", "max"):
                    given[-1][0] = np.nan
                mine = given[rank].copy()
                if not comm.allreduce(mine, op):
                    assert dtype == "m8[s]" and op == "prod" and (mine == given[rank]).all()
                    continue
                bits = (mine.astype("f8") if dtype == "g" else mine).tobytes()  # but for padding
                assert comm.bcast_object(bits) == bits, (dtype, op, n)
                expected = given[0]
                if size > 1:
                    expected = expected.copy()
                    for x in given[1:]:
                        UFUNCS[op](expected, x, out=expected, casting="unsafe")
                if size < module.MANY or np.dtype(dtype).kind not in "fcg":
                    assert np.array_equal(mine, expected, equal_nan=dtype == "f8"), (dtype, op, n)
                else:  # MPI combines in an order of its own
                    tolerance = 1e-2 if dtype == "f2" else 1e-5
                    np.testing.assert_allclose(mine, expected, rtol=tolerance, atol=tolerance)
    x = np.asfortranarray(of(rank, (60, 70), "f8"))
    total = sum(of(r, (60, 70), "f8") for r in range(size))
    assert comm.allreduce(x, "sum") and np.array_equal(x, total)
    x = np.array(2.0)
    assert comm.allreduce(x, "sum") and x == 2.0 * size
    assert not comm.allreduce(np.empty(2, "S3"), "sum") and not comm.allreduce(x, "hypot")


def test_groups():
    backwards = comm.part(range(size - 1, -1, -1))
    assert backwards.rank == size - 1 - rank
    assert backwards.allgather_object(rank) == list(range(size - 1, -1, -1))
    assert comm.part(range(size)) is comm
    if rank > 0:
        last = comm.part(range(1, size))
        assert last is comm.part(range(1, size)) and last.size == size - 1
        x = np.full(3000, float(rank))
        assert last.allreduce(x, "sum") and x[0] == sum(range(1, size))
        last.barrier()
        if rank == 1:
            assert last.part([0]).allgather_object("me") == ["me"]
        else:
            try:
                last.part([0])
            except CommunicationError as e:
                assert "only its members" in str(e)
            else:
                raise AssertionError("a group without us")
    comm.barrier()


def test_communicators_of_users():
    from mpi4py import MPI

    half = MPI.COMM_WORLD.Split(rank % 2, rank)
    ours = mb.distributed.mpi_communicator(half)
    assert ours is mb.distributed.mpi_communicator(half) and ours.size == half.size and ours.rank == half.rank
    with mb.distributed.use_communicator(ours) if hasattr(mb, "use_communicator") else contextlib.nullcontext():
        assert ours.allgather_object(rank) == list(range(rank % 2, size, 2))
    # A message of one's own is not taken for one of arrays.
    if size > 1:
        sent = MPI.COMM_WORLD.Isend(np.full(4, 7.0), right, 0)
        got = np.empty(4)
        comm.exchange({right: np.ones(4)}, {left: got})
        assert (got == 1.0).all()
        MPI.COMM_WORLD.Recv(got, left, 0)
        assert (got == 7.0).all()
        sent.Wait()
    try:
        mb.distributed.mpi_communicator(MPI.COMM_NULL)
    except CommunicationError as e:
        assert "COMM_WORLD" in str(e)
    else:
        raise AssertionError("COMM_NULL was taken")


def test_cards_memory():
    """A view of a card is handed to MPI by its address. (The simulated card's lies on the host.)"""
    x = mb.CuArray(np.arange(10.0) + rank)
    view = mb.dispatch.verbs.leaf_of(x).view
    assert not comm.takes(type(view))
    with mb.settings.changed(device_messages="on"):
        assert comm.takes(type(view))
        y = mb.CuArray(np.zeros(10))
        if size > 1:
            comm.exchange({right: view}, {left: mb.dispatch.verbs.leaf_of(y).view})
            assert mb.to_numpy(y).tolist() == (np.arange(10.0) + left).tolist()


def test_large_messages():
    if size > 1:
        got = np.empty(2_000_000)
        comm.exchange({right: np.full(2_000_000, rank + 0.5)}, {left: got})
        assert (got == left + 0.5).all()


tests = [test for name, test in list(globals().items()) if name.startswith("test_")]
for test in tests:
    test()
with changed(MANY=2, PIECE=1000, SMALL=16, SLOT=64, ROOM=56):
    for test in (test_messages, test_objects, test_parts_of_all, test_reductions, test_groups):
        test()
with mb.settings.changed(check_collectives=True):
    for test in (test_several_at_once_arrive_in_order, test_objects, test_parts_of_all, test_groups):
        test()
print("fine")
