"""A matrix from rows to columns: gigabytes a second, beside MPI's Alltoallv."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._measure import store
from benchmarks._table import show
from benchmarks.distributed._ranks import on_ranks, own_core, take_turns

SIZES = (64, 256, 1024, 2048, 4096)
TINY = (64, 256)
HEAD = [
    "matrix",
    "MiB moved",
    "µs: redistribute",
    "by hand",
    "Alltoallv",
    "GB/s: redistribute",
    "by hand",
    "Alltoallv",
]


def run(tiny: bool, folder: Path | None) -> None:
    record = on_ranks(2, "redistribution:measure", sizes=TINY if tiny else SIZES, tiny=tiny)
    rows = []
    for case in record:
        times = [case[k]["best_s"] for k in ("redistribute", "by_hand", "alltoallv")]
        rows.append(
            [
                f"{case['n']}²",
                f"{case['bytes_moved'] / 2**20:.2f}",
                *(f"{t * 1e6:.0f}" for t in times),
                *(f"{case['bytes_moved'] / t / 1e9:.2f}" for t in times),
            ]
        )
    show(
        "Redistribution: rows to columns of an n x n matrix of doubles on 2 ranks, best of the rounds",
        HEAD,
        rows,
        [
            "by hand: the blocks packed with NumPy, mpi4py's Alltoallv, and unpacked. Alltoallv: the same "
            "bytes between two contiguous buffers, which nobody can use. Moved: what changes its rank."
        ],
    )
    if folder is not None:
        store("distributed_redistribution", {"cases": record}, folder)


# On a rank


def measure(sizes: list[int], tiny: bool) -> list[dict[str, Any]] | None:
    from mpi4py import MPI

    import mirabelle as mb

    comm = mb.distributed.communicator()
    own_core(comm.rank, comm.size)
    world = MPI.COMM_WORLD
    rounds, round_s = (3, 0.005) if tiny else (9, 0.06)
    record: list[dict[str, Any]] = []
    for n in sizes:
        x = mb.DArray[mb.HostArray](np.random.default_rng(0).random((n, n)))
        mine = np.array(mb.to_numpy(x)[x.owned])
        p, rows = comm.size, mine.shape[0]
        columns = n // p
        assert rows == columns == n / p
        sent, landed = np.zeros(mine.size), np.zeros(mine.size)
        part = mine.size // p

        def alltoallv(sent: Any = sent, landed: Any = landed, part: int = part) -> None:
            counts = [part] * comm.size
            world.Alltoallv([sent, counts], [landed, counts])

        def by_hand(mine: Any = mine, landed: Any = landed, columns: int = columns, n: int = n) -> Any:
            p = comm.size
            packed = np.ascontiguousarray(mine.reshape(-1, p, columns).transpose(1, 0, 2))
            counts = [packed.size // p] * p
            world.Alltoallv([packed, counts], [landed, counts])
            return landed.reshape(n, columns).copy()

        def redistribute(x: Any = x) -> Any:
            return mb.materialize(mb.distributed.redistribute(x, mb.distributed.Block(1)))

        np.testing.assert_array_equal(mb.to_numpy(redistribute().local), by_hand())
        statements = {"redistribute": redistribute, "by_hand": by_hand, "alltoallv": alltoallv}
        times = take_turns(comm, {k: ("f()", {"f": f}) for k, f in statements.items()}, rounds, round_s)
        moved = n * n * 8 * (p - 1) // p
        record.append({"n": n, "bytes_moved": moved, **{name: t.as_json() for name, t in times.items()}})
    return record if comm.rank == 0 else None
