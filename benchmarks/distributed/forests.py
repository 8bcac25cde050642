"""Ghosts of a mesh: a star forest's broadcast and reduction beside mpi4py's persistent messages, by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._measure import store
from benchmarks._table import show
from benchmarks.distributed._ranks import on_ranks, own_core, take_turns

# Ghosts of each rank; of ten entries one is a root.
GHOSTS = (20, 2000, 50000)
TINY = (20, 200)
WAYS = ("by hand", "NumPy", "HostArray")
TARGET_RATIO = 1.5


def run(tiny: bool, folder: Path | None) -> None:
    record = on_ranks(2, "forests:measure", ghosts=TINY if tiny else GHOSTS, tiny=tiny)
    rows = []
    for case in record:
        for what in ("bcast", "reduce"):
            times = [case[f"{what}, {way}"]["best_s"] for way in WAYS]
            ratios = [f"{t / times[0]:.2f}" for t in times[1:]]
            rows.append([case["ghosts"], what, *[f"{t * 1e6:.1f}" for t in times], *ratios])
    large = [row for row in rows if row[0] >= 2000]
    met = all(float(r) <= TARGET_RATIO for row in large for r in row[5:])
    notes = [
        "by hand: np.take into a buffer, mpi4py's persistent requests, one write of the array.",
        f"Target from 2000 ghosts on: at most {TARGET_RATIO:g} of that: {'met' if met else 'MISSED'}."
        if large
        else "",
        f"INC, INC, INC, READ: {record[0]['lazy']} messages, and sent at once {record[0]['eager']}.",
    ]
    head = ["ghosts", "what", *WAYS, "NumPy over by hand", "HostArray over by hand"]
    show("Star forests on 2 ranks, µs an exchange, best of the rounds", head, rows, notes)
    if folder is not None:
        store("distributed_forests", {"target_ratio": TARGET_RATIO, "cases": record}, folder)


# On a rank


def measure(ghosts: list[int], tiny: bool) -> list[dict[str, Any]] | None:
    from mpi4py import MPI

    import mirabelle as mb
    from mirabelle import meshdata as md

    comm = mb.distributed.communicator()
    own_core(comm.rank, comm.size)
    other = 1 - comm.rank
    record = []
    for n in ghosts:
        size = 10 * n
        roots = np.arange(0, size, 10)
        forest = md.StarForest(size + n, np.full(n, other), roots)
        x = np.random.default_rng(comm.rank).random(size + n)
        y, z = mb.HostArray(x), x.copy()
        sent, landed = np.empty(n), np.empty(n)
        requests = [MPI.COMM_WORLD.Recv_init(landed, other, 7), MPI.COMM_WORLD.Send_init(sent, other, 7)]

        def bcast(z: Any = z, roots: Any = roots, of: Any = (sent, landed, requests), size: int = size) -> None:
            np.take(z, roots, out=of[0], mode="clip")
            MPI.Prequest.Startall(of[2])
            MPI.Request.Waitall(of[2])
            z[size:] = of[1]

        def reduce(
            z: Any = z, roots: Any = roots, of: Any = (sent, landed, requests), size: int = size
        ) -> None:
            of[0][...] = z[size:]
            MPI.Prequest.Startall(of[2])
            MPI.Request.Waitall(of[2])
            z[roots] = np.maximum(z[roots], of[1])

        statements = {"bcast, by hand": ("f()", {"f": bcast}), "reduce, by hand": ("f()", {"f": reduce})}
        for name, array in (("NumPy", x), ("HostArray", y)):
            scope = {"f": forest, "x": array}
            statements |= {
                f"bcast, {name}": ("f.bcast(x)", scope),
                f"reduce, {name}": ("f.reduce(x, 'max')", scope),
            }
        times = take_turns(comm, statements, *((3, 0.005) if tiny else (11, 0.04)))
        np.testing.assert_array_equal(mb.to_numpy(y), x)
        np.testing.assert_array_equal(z, x)
        for request in requests:
            request.Free()
        case: dict[str, Any] = {"ghosts": n, **{name: t.as_json() for name, t in times.items()}}
        for name, accesses in (("lazy", ("INC",) * 3 + ("READ",)), ("eager", ("INC", "READ") * 3 + ("READ",))):
            u = md.Ghosted(np.zeros(size + n), forest)
            with mb.count() as counted:
                for access in accesses:
                    u.begin(access).end()
            case[name] = counted.messages
        record.append(case)
    return record if comm.rank == 0 else None
