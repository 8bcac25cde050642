"""Files on the ranks of mpiexec: `files.py FOLDER TASK ...`, where a task is save, load, fail or die.

What is in them is the same on any number of ranks, so a test can ask any number to read them.
"""

import os
import pathlib
import resource
import signal
import sys

import numpy as np

import mirabelle as mb

DHost = mb.DArray[mb.HostArray]
ENDINGS = (".npy", ".npz", ".h5", ".zarr")


def state():
    """The arrays, as NumPy has them."""
    x = np.arange(60.0).reshape(10, 6)
    return {
        "x": x,
        "ragged": x * 1j,
        "mesh": x > 20,
        "dealt/out": x.astype("f2"),
        "transposed": x.T,
        "part": x[2:7, 1::2],
        "pending": x * 2 + 1,
        "none": np.zeros((0, 3), "i4"),
        "number": np.array(0.5),
        "step": np.array(7),
    }


def divided_state(ranks):
    x = np.arange(60.0).reshape(10, 6)
    a = DHost(x)
    return {
        "x": DHost(x, layout=mb.distributed.Block(1)),
        "ragged": DHost(x * 1j, layout=mb.distributed.Ragged(0, (10 - ranks + 1, *[1] * (ranks - 1)))),
        "mesh": DHost(
            x > 20,
            layout=mb.distributed.Layout(mb.distributed.Block(0), mb.distributed.Block(1), mesh=(1, ranks)),
        ),
        "dealt/out": DHost(x.astype("f2"), layout=mb.distributed.BlockCyclic(0, 2)),
        "transposed": a.T,
        "part": a[2:7, 1::2],
        "pending": a * 2 + 1,
        "none": DHost(np.zeros((0, 3), "i4")),
        "number": DHost(np.array(0.5)),
        "step": 7,  # not divided
    }


def save(folder):
    arrays = divided_state(mb.distributed.communicator().size)
    for name, x in arrays.items():
        mb.save(folder / f"{name.replace('/', '-')}.npy", x if name != "step" else DHost(7))
    for ending in ENDINGS[1:]:
        mb.save(folder / f"all{ending}", arrays)


def load(folder):
    for name, values in state().items():
        same(mb.load(folder / f"{name.replace('/', '-')}.npy", device=DHost), values)
    for ending in ENDINGS[1:]:
        found = mb.load(folder / f"all{ending}", device=DHost)
        assert sorted(found) == sorted(state())
        for name, values in state().items():
            same(found[name], values)
    with mb.distributed.use_layout(mb.distributed.Block(1)):
        x = mb.load(folder / "transposed.npy", device=DHost)
    assert mb.distributed.communicator().size == 1 or x.layout == mb.distributed.Layout(mb.distributed.Block(1))
    same(x, state()["transposed"])


def same(x, values):
    assert isinstance(x, DHost) and x.dtype == values.dtype
    assert x.communicator.size == 1 or x.size < 6 or x.local.size < x.size
    np.testing.assert_array_equal(mb.to_numpy(x), values)


def fail(folder):
    """The last rank may write short files only: so no rank saves anything."""
    comm = mb.distributed.communicator()
    x = DHost(np.arange(40_000.0))
    if comm.rank == comm.size - 1:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
    for ending in ENDINGS:
        try:
            mb.save(folder / f"x{ending}", x)
        except OSError as e:
            assert "ile too large" in str(e), e
        else:
            raise AssertionError(f"a {ending} was written by a rank that cannot")
    try:
        mb.load(folder / "nothing.npy", device=DHost)
    except FileNotFoundError as e:
        assert "nothing.npy" in str(e)
    else:
        raise AssertionError("a file that is not there was loaded")


def die(folder):
    """The last rank is killed while it writes."""
    comm = mb.distributed.communicator()
    if comm.rank == comm.size - 1:
        DHost.box_contents = lambda x, box: os.kill(os.getpid(), signal.SIGKILL)
    mb.save(folder / "x.zarr", DHost(np.arange(9.0)))


if __name__ == "__main__":
    folder, *tasks = sys.argv[1:]
    for task in tasks:
        {"save": save, "load": load, "fail": fail, "die": die}[task](pathlib.Path(folder))
    print("done on", mb.distributed.communicator().rank)
