"""Files of distributed arrays: what is saved on some ranks is loaded on others, and by other programs.

Ranks are threads here, and at the end processes of mpiexec.
"""

import itertools
import os
import pathlib
import runpy
import threading
import types

import numpy as np
import pytest
from compare import assert_same
from ranks.launch import missing, run
from threadranks import fails_on_ranks, on_ranks

import mirabelle as mb
from mirabelle.arraytypes.distributed import chunks, fileformats
from mirabelle.arraytypes.distributed.agreement import in_turn, on_all

pytestmark = pytest.mark.skipif("MIRABELLE_TEST_RANKS" in os.environ, reason="has ranks of its own")

DHost = mb.DArray[mb.HostArray]
PROGRAM = pathlib.Path(__file__).parent / "mpi_programs" / "files.py"

ENDINGS = {".npy": None, ".npz": None, ".h5": "h5py", ".zarr": "zarr"}
endings = pytest.mark.parametrize("ending", ENDINGS)

# How an array is divided, over how many ranks, and its shape.
DIVISIONS = [
    (3, None, (10, 4)),
    (3, mb.distributed.Ragged(0, (7, 0, 3)), (10, 4)),
    (3, mb.distributed.Block(1), (5, 7)),
    (3, mb.distributed.BlockCyclic(0, 2), (11, 3)),
    (3, mb.distributed.Replicated(), (2, 2)),
    (3, None, ()),
    (3, None, (0, 4)),
    (3, mb.distributed.Block(0), (2, 2)),
    (4, mb.distributed.Layout(mb.distributed.Block(0), mb.distributed.Block(1), mesh=(2, 2)), (5, 7)),
    (4, mb.distributed.Layout(mb.distributed.Block(1), mb.distributed.Replicated(), mesh=(2, 2)), (5, 7)),
    (
        4,
        mb.distributed.Layout(mb.distributed.BlockCyclic(1, 2), mb.distributed.Ragged(2, (1, 3)), mesh=(2, 2)),
        (2, 9, 4),
    ),
    (1, None, (3,)),
]
divisions = pytest.mark.parametrize(("ranks", "layout", "shape"), DIVISIONS, ids=str)


@pytest.fixture(autouse=True)
def need(request):
    package = ENDINGS.get(
        getattr(request.node, "callspec", None) and request.node.callspec.params.get("ending")
    )
    if package:
        pytest.importorskip(package)


def samples(shape, dtype):
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    kind = np.dtype(dtype).kind
    return (values * (1 - 2j) if kind == "c" else values % 3 == 0 if kind == "b" else values).astype(dtype)


def divided(values, layout, comm):
    """A distributed array of which this rank has only its part."""
    return DHost._from_boxes(values.shape, values.dtype, values.__getitem__, layout=layout, comm=comm)


def parts(x):
    return [(box, x.box_contents(box).copy()) for box in x.boxes()]


def assembled(shape, dtype, found):
    """The array whose parts ranks gave; each element is to be in one of them."""
    whole, times = np.zeros(shape, dtype), np.zeros(shape, int)
    for box, values in [part for mine in found for part in mine]:
        assert values.dtype == dtype
        whole[box] = values
        times[box] += 1
    assert (times == 1).all()
    return whole


def left_behind(folder):
    return sorted(p.name for p in pathlib.Path(folder).iterdir())


# What goes in comes out


@endings
@divisions
def test_saved_on_some_ranks_and_loaded_on_others(ending, ranks, layout, shape, tmp_path):
    path = tmp_path / f"x{ending}"
    for dtype in ("f8", "c16", "?", "f2"):
        values = samples(shape, dtype)
        on_ranks(ranks, lambda comm: mb.save(path, divided(values, layout, comm)))
        assert left_behind(tmp_path) == [path.name]
        found = mb.load(path)
        assert_same(found["arr_0"] if isinstance(found, dict) else found, values)
        for others in (1, 2):

            def load(comm):
                found = mb.load(path, device=DHost)
                return parts(found["arr_0"] if isinstance(found, dict) else found)

            np.testing.assert_array_equal(assembled(shape, dtype, on_ranks(others, load)), values)


@pytest.mark.parametrize("ending", [".npz", ".h5", ".zarr"])
@pytest.mark.parametrize("compressed", [False, True])
def test_several_arrays_of_which_some_are_not_divided(ending, compressed, tmp_path):
    path = tmp_path / f"x{ending}"
    u, v = samples((9, 5), "f8"), samples((4, 6), "i4")

    def save(comm):
        state = {"u": divided(u, None, comm), "deep/v": divided(v, mb.distributed.Block(1), comm), "step": 7}
        mb.save(path, state | {"grid": mb.HostArray([0.5])}, compressed=compressed)

    on_ranks(3, save)
    found = mb.load(path)
    assert sorted(found) == ["deep/v", "grid", "step", "u"]
    assert_same(found["u"], u)
    assert_same(found["deep/v"], v)
    assert found["step"].tolist() == 7 and found["grid"].tolist() == [0.5]

    def load(comm):
        every = mb.load(path, device=DHost)
        assert sorted(every) == ["deep/v", "grid", "step", "u"]
        assert all(isinstance(x, DHost) for x in every.values())
        return parts(mb.load(path, "deep/v", device=DHost))

    np.testing.assert_array_equal(assembled(v.shape, "i4", on_ranks(2, load)), v)


def test_savez(tmp_path):
    values = samples((7, 2), "f4")
    on_ranks(2, lambda comm: mb.savez(tmp_path / "a", divided(values, None, comm), b=np.ones(2)))
    with np.load(tmp_path / "a.npz") as file:
        np.testing.assert_array_equal(file["arr_0"], values)
        np.testing.assert_array_equal(file["b"], np.ones(2))


def test_a_layout_is_remembered_where_there_is_room(tmp_path):
    h5py, zarr = pytest.importorskip("h5py"), pytest.importorskip("zarr")
    values = samples((6, 4), "f8")
    for name in ("x.h5", "x.zarr"):
        on_ranks(
            2, lambda comm: mb.save(tmp_path / name, {"u": divided(values, mb.distributed.Block(1), comm)})
        )
    with h5py.File(tmp_path / "x.h5") as file:
        assert file["u"].attrs["mirabelle_layout"] == "Layout(Block(1))"
        np.testing.assert_array_equal(file["u"][1:3], values[1:3])
    stored = zarr.open(str(tmp_path / "x.zarr"), mode="r")["u"]
    assert stored.attrs["mirabelle_layout"] == "Layout(Block(1))" and stored.chunks == (6, 2)
    np.testing.assert_array_equal(stored[1:3], values[1:3])


def test_files_of_other_programs(tmp_path, monkeypatch):
    monkeypatch.setattr(fileformats, "_STREAM", 200)  # compressed arrays are unpacked in pieces
    values = samples((30, 7), "f8")
    np.save(tmp_path / "f.npy", np.asfortranarray(values))
    np.save(tmp_path / "e.npy", values.astype(">f8"))
    arrays = {"c": values, "f": np.asfortranarray(values), "e": values.astype(">f4")}
    np.savez(tmp_path / "s.npz", **arrays)
    np.savez_compressed(tmp_path / "z.npz", **arrays, t=np.zeros((0, 3)), n=np.array(2.5))

    def load(comm):
        for layout in (mb.distributed.Block(0), mb.distributed.Block(1), mb.distributed.BlockCyclic(0, 3)):
            with mb.distributed.use_layout(layout):
                found = [mb.load(tmp_path / f"{name}.npy", device=DHost) for name in "fe"]
                found += [
                    mb.load(tmp_path / f"{name}.npz", key, device=DHost) for name in "sz" for key in "cfe"
                ]
            for x in found:
                assert x.layout == mb.distributed.Layout(layout) or comm.size == 1
                for box, mine in parts(x):
                    np.testing.assert_array_equal(mine, values[box])
                    assert mine.dtype.isnative
        assert mb.load(tmp_path / "z.npz", "n", device=DHost).shape == ()

    on_ranks(2, load)
    on_ranks(1, load)


def test_a_relative_name_and_one_without_an_ending(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = samples((4,), "f8")
    on_ranks(2, lambda comm: mb.save("x", divided(values, None, comm)))
    assert left_behind(tmp_path) == ["x.npy"]
    found = on_ranks(2, lambda comm: parts(mb.load("x", device=DHost)))
    np.testing.assert_array_equal(assembled((4,), "f8", found), values)


# Chunks


@pytest.mark.parametrize(
    ("shape", "edges", "chunk"),
    [
        ((8, 5), ([0, 4, 8],), (4, 5)),
        ((9, 5), ([0, 3, 6, 9],), (3, 5)),
        ((10, 5), ([0, 4, 7, 10],), (4, 5)),  # a block that is not full
        ((12, 5), ([0, 4, 12],), (4, 5)),  # ragged, with edges in common
        ((12, 5), ([0, 2, 12],), (10, 5)),  # not worth it
        ((10, 5), ([0, 6, 9, 10],), (3, 5)),
        ((0, 5), ([0, 0, 0],), (1, 5)),
        ((6, 6), ([0, 3, 6], [0, 2, 4, 6]), (3, 2)),
        ((1 << 24, 2), ([0, 1 << 23, 1 << 24],), (1 << 22, 2)),  # 64 MiB
        ((100_000, 8), (range(0, 100_001, 4),), (16384, 8)),  # 1 MiB, not 25 000 files
    ],
)
def test_the_shape_of_chunks(shape, edges, chunk):
    edges = [list(e) for e in edges] + [[0, n] for n in shape[len(edges) :]]
    ranks = [[]]
    for e in edges:
        ranks = [[*r, slice(a, b)] for r in ranks for a, b in itertools.pairwise(e)]
    boxes = [[tuple(r)] for r in ranks]
    if len(boxes) > 100:  # dealt out to two
        boxes = [[b for (b,) in boxes[::2]], [b for (b,) in boxes[1::2]]]
    assert chunks.chunk_shape(shape, 8, boxes) == chunk


class Rank:
    def __init__(self, rank):
        self.rank = rank


@divisions
def test_every_chunk_is_written_by_one_rank_that_has_most_of_it(ranks, layout, shape):
    values = samples(shape, "f8")
    boxes = on_ranks(ranks, lambda comm: divided(values, layout, comm).boxes())
    contents = [[values[box] for box in mine] for mine in boxes]
    for chunk in {chunks.chunk_shape(shape, 8, boxes), (3,) * len(shape), (1,) * len(shape)}:
        plans = [chunks.Plan(Rank(r), shape, chunk, boxes) for r in range(ranks)]
        sent = [plan.packed(mine, values.dtype) for plan, mine in zip(plans, contents)]
        found = []
        for r, plan in enumerate(plans):
            received = {other: sent[other][0][r] for other in sent[r][1]}
            assert {k: v.shape for k, v in received.items()} == {k: v.shape for k, v in sent[r][1].items()}
            found.append(list(plan.chunks(contents[r], received, values.dtype)))
        np.testing.assert_array_equal(assembled(shape, "f8", found), values)
        assert sum(len(bytes) for sends, _ in sent for bytes in sends.values()) <= values.nbytes / 2


def test_blocks_are_chunks_and_nothing_is_sent():
    boxes = [[(slice(a, a + 5), slice(b, b + 4))] for a in (0, 5) for b in (0, 4)]
    chunk = chunks.chunk_shape((10, 8), 8, boxes)
    plans = [chunks.Plan(Rank(r), (10, 8), chunk, boxes) for r in range(4)]
    assert all(not plan.sends and not plan.receives and len(plan.mine) == 1 for plan in plans)


# What one rank fails at, all raise


def test_work_on_all_ranks_in_turn():
    order = []

    def work(comm):
        order.append(comm.rank)
        if comm.rank == 1:
            raise OSError(28, "No space left on device")

    errors = fails_on_ranks(3, lambda comm: in_turn(comm, lambda: work(comm)))
    assert order == [0, 1]  # what comes after is not begun
    assert [(type(e), e.errno) for e in errors] == [(OSError, 28)] * 3
    assert errors[1].__cause__ is None
    for e in (errors[0], errors[2]):
        assert isinstance(e.__cause__, mb.RemoteError) and e.__cause__.rank == 1
        assert "in work" in str(e.__cause__)


def test_the_first_failure_is_raised_and_one_that_cannot_be_sent_is_told():
    class Local(Exception):
        pass

    def work(comm):
        if comm.rank > 0:
            raise (Local if comm.rank == 1 else ValueError)(f"from {comm.rank}")

    errors = fails_on_ranks(3, lambda comm: on_all(comm, lambda: work(comm)))
    assert [type(e) for e in errors] == [mb.RemoteError, Local, mb.RemoteError]
    assert all("from 1" in str(e) for e in errors)


@pytest.fixture
def kept(tmp_path):
    """A folder with good files, which must be all there is afterwards."""
    values = samples((4, 3), "f8")
    names = [f"x{ending}" for ending in ENDINGS]
    for name in names:
        mb.save(tmp_path / name, values)
    yield tmp_path
    assert left_behind(tmp_path) == sorted(names)
    for name in names:
        found = mb.load(tmp_path / name)
        assert_same(found["arr_0"] if isinstance(found, dict) else found, values)


@endings
@pytest.mark.parametrize("failing", [0, 2])
def test_a_rank_that_cannot_write(ending, failing, kept, monkeypatch):
    def full(x, box):
        if threading.current_thread().name == f"rank {failing}":
            raise OSError(28, "No space left on device")
        return contents(x, box)

    contents = DHost.box_contents
    monkeypatch.setattr(DHost, "box_contents", full)
    save = lambda comm: mb.save(kept / f"x{ending}", divided(samples((7, 3), "i8"), None, comm))
    errors = fails_on_ranks(3, save)
    assert all(type(e) is OSError and "No space left" in str(e) for e in errors)


@endings
def test_what_rank_0_may_not_do(ending, kept, monkeypatch):
    kind = fileformats.formats.BY_SUFFIX[ending]

    def write(comm, fresh, arrays, compressed):
        before(comm, fresh, arrays, compressed)
        on_all(comm, lambda: full(comm))

    def full(comm):
        if comm.rank == 0:
            raise PermissionError(13, "Permission denied", "somewhere")

    before = fileformats.WRITERS[kind]
    monkeypatch.setitem(fileformats.WRITERS, kind, write)
    save = lambda comm: mb.save(kept / f"x{ending}", divided(np.ones(5), None, comm))
    errors = fails_on_ranks(2, save)
    assert all(type(e) is PermissionError and "folder may not be written to" in str(e) for e in errors)


def test_ranks_that_share_no_folder(kept, monkeypatch):
    exists = pathlib.Path.exists

    def elsewhere(path, **options):
        return threading.current_thread().name == "rank 0" and exists(path, **options)

    monkeypatch.setattr(fileformats, "_SEEN_WITHIN", 0.0)
    monkeypatch.setattr(pathlib.Path, "exists", elsewhere)
    errors = fails_on_ranks(2, lambda comm: mb.save(kept / "x.npy", divided(np.ones(5), None, comm)))
    monkeypatch.undo()
    assert all("Rank 1 does not see" in str(e) and "share no folder" in str(e) for e in errors)


def test_what_is_wrong_with_a_call_is_said_on_all_ranks(kept):
    def fails(error, match, call):
        for e in fails_on_ranks(2, call):
            assert type(e) is error, e
            assert match in str(e)

    x = lambda comm: divided(np.ones(5), None, comm)
    names = lambda comm: mb.save(kept / f"new{comm.rank}.npy", x(comm))
    fails(ValueError, "rank 1 names", names)
    shapes = lambda comm: mb.save(kept / "new.npz", {"a": x(comm), "b": np.ones(comm.rank)})
    fails(ValueError, "mean different arrays", shapes)
    fails(FileNotFoundError, "no folder", lambda comm: mb.save(kept / "deep" / "new.npy", x(comm)))
    fails(ValueError, "not compressed", lambda comm: mb.save(kept / "new.npy", x(comm), compressed=True))
    fails(TypeError, "holds one array", lambda comm: mb.save(kept / "new.npy", {"a": x(comm)}))
    fails(TypeError, "'b' is a str", lambda comm: mb.save(kept / "new.npz", {"a": x(comm), "b": "text"}))
    fails(FileNotFoundError, "new.npy", lambda comm: mb.load(kept / "new.npy", device=DHost))
    fails(KeyError, "no array 'u'", lambda comm: mb.load(kept / "x.npz", "u", device=DHost))
    fails(KeyError, "without a name", lambda comm: mb.load(kept / "x.npy", "u", device=DHost))
    fails(ValueError, "host's memory", lambda comm: mb.load(kept / "x.npy", mmap=True, device=DHost))

    group = []

    def two_groups(comm):
        group.append(comm)
        alone = comm.part([comm.rank])
        mb.save(kept / "new.npz", {"a": x(comm), "b": x(alone)})

    fails(mb.CommunicationError, "different groups", two_groups)


def test_files_that_cannot_be_read(tmp_path):
    def fails(name, error, match):
        for e in fails_on_ranks(2, lambda comm: mb.load(tmp_path / name, device=DHost)):
            assert type(e) is error, e
            assert match in str(e)

    values = samples((50, 20), "f8")
    mb.save(tmp_path / "x.npy", values)
    mb.save(tmp_path / "z.npz", {"u": values}, compressed=True)
    for name in ("x.npy", "z.npz"):
        data = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(data[: len(data) // 2])
        fails(name, ValueError, f"{name}' cannot be read")
    (tmp_path / "e.npy").write_bytes(b"")
    fails("e.npy", ValueError, "no file of arrays")
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object), allow_pickle=True)
    fails("o.npy", ValueError, "can run any program")
    np.savez(tmp_path / "t.npz", u=values, t=np.array(["a"]))
    fails("t.npz", TypeError, "no array of numbers")


def test_a_file_that_ends_for_one_rank_only(tmp_path, monkeypatch):
    """What one rank fails to read, the other raises too."""
    mb.save(tmp_path / "x.npz", {"u": samples((50, 20), "f8")}, compressed=True)
    data = bytearray((tmp_path / "x.npz").read_bytes())
    monkeypatch.setattr(fileformats, "_STREAM", 500)
    middle = len(data) * 3 // 4
    data[middle : middle + 20] = bytes(20)
    (tmp_path / "x.npz").write_bytes(data)
    errors = fails_on_ranks(2, lambda comm: mb.load(tmp_path / "x.npz", "u", device=DHost))
    assert all(type(e) is ValueError and "cannot be read" in str(e) for e in errors)


def test_hdf5_with_mpi(tmp_path, monkeypatch):
    """Where h5py is built with MPI all ranks have the file open at once. (This h5py need not be.)"""
    h5py = pytest.importorskip("h5py")
    opened, opens = [], h5py.File

    def file(path, mode, **how):
        opened.append((mode, how.pop("driver", None), how.pop("comm", None)))
        return opens(path, mode, **how)

    monkeypatch.setattr(h5py, "get_config", lambda: types.SimpleNamespace(mpi=True))
    monkeypatch.setattr(h5py, "File", file)
    mpi = types.SimpleNamespace(size=2)
    values = samples((6, 4), "f8")

    def save(comm):
        comm.mpi = mpi
        mb.save(tmp_path / "x.h5", divided(values, None, comm))

    on_ranks(2, save)
    assert opened == [("w", None, None), ("r+", "mpio", mpi), ("r+", "mpio", mpi)]
    assert_same(mb.load(tmp_path / "x.h5", "arr_0"), values)


# On processes

processes = pytest.mark.skipif(missing() is not None, reason=str(missing()))


def program(ranks, folder, *tasks):
    """Run mpi_programs/files.py; each rank says that it came to the end."""
    ended = run(ranks, str(PROGRAM), str(folder), *tasks)
    assert ended.returncode == 0 and ended.stdout.count("done") == ranks, ended.stdout


@processes
def test_three_processes_save_and_two_load(tmp_path):
    for package in filter(None, ENDINGS.values()):
        pytest.importorskip(package)
    program(3, tmp_path, "save", "fail")  # what fails changes nothing
    program(2, tmp_path, "load")
    state = runpy.run_path(str(PROGRAM))["state"]()
    whole = ["all.h5", "all.npz", "all.zarr"]
    assert left_behind(tmp_path) == sorted([*whole, *(f"{name.replace('/', '-')}.npy" for name in state)])
    for name, values in state.items():
        for file in whole:
            assert_same(mb.load(tmp_path / file, name), values)
        read = np.load(tmp_path / f"{name.replace('/', '-')}.npy")
        np.testing.assert_array_equal(read, values, strict=True)


@processes
def test_a_process_that_is_killed(tmp_path):
    pytest.importorskip("zarr")
    values = samples((4, 3), "f8")
    mb.save(tmp_path / "x.zarr", values)
    ended = run(3, str(PROGRAM), str(tmp_path), "die")
    assert ended.returncode != 0 and "done" not in ended.stdout
    assert_same(mb.load(tmp_path / "x.zarr"), values)
