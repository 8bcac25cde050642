"""A five-point statement on a grid divided in rows: the messages, and whether they hide behind the interior."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._measure import store
from benchmarks._table import show
from benchmarks.distributed._ranks import on_ranks, own_core, settled, take_turns

SIZES = (256, 512, 1024, 2048, 4096)
TINY = (64, 128)
HEAD = [
    "grid",
    "local",
    "overlapped",
    "in turn",
    "messages alone",
    "of messages",
    "over local",
    "compiled",
    "compiled, local",
    "compiled, over local",
    "messages",
    "bytes",
    "temporaries",
    "launches",
]
# From this size on nothing is to be seen of the messages: starting them and waiting for them takes at most this
# part of the time without any, and the statement at most this much more.
HIDDEN_FROM, TARGET_SEEN, TARGET_RATIO = 1024, 0.05, 1.05


def run(tiny: bool, folder: Path | None) -> None:
    record = on_ranks(2, "halo:measure", sizes=TINY if tiny else SIZES, tiny=tiny)
    rows = []
    for case in record:
        times = [f"{case[k]['best_s'] * 1e6:.1f}" for k in ("local", "overlapped", "in_turn", "messages_alone")]
        rows.append(
            [
                f"{case['n']}²",
                *times,
                f"{case['seen_s'] * 1e6:.1f}",
                f"{case['ratio']:.3f}",
                *(f"{case[k]['best_s'] * 1e6:.1f}" for k in ("compiled", "compiled_local")),
                f"{case['compiled_ratio']:.3f}",
                case["counters"]["messages"],
                case["counters"]["bytes_sent"],
                case["counters"]["temporaries"],
                case["counters"]["launches"],
            ]
        )
    large = [c for c in record if c["n"] >= HIDDEN_FROM]
    notes = [
        "local: each rank's rows as a HostArray of its own, nothing sent. in turn: messages first, then the "
        "kernel (overlap_size out of reach). messages alone: mpi4py's Isend, Irecv, Waitall of one row. "
        "of messages: what of `overlapped` goes by starting and waiting for them. "
        "compiled: the statement as a program of mb.compile, and that on each rank's own rows."
    ]
    if large:
        seen = all(c["seen_s"] <= TARGET_SEEN * c["local"]["best_s"] for c in large)
        quick = [f"{c['n']}² {'met' if c['ratio'] <= TARGET_RATIO else 'MISSED'}" for c in large]
        compiled = all(c["compiled_ratio"] <= TARGET_RATIO for c in large)
        none = all(c["counters"]["temporaries"] == 0 for c in large)
        notes.append(
            f"Target from {HIDDEN_FROM}² on: no temporary: {'met' if none else 'MISSED'}; of messages at "
            f"most {TARGET_SEEN:g} of the time without them is seen: {'met' if seen else 'MISSED'}; all in all "
            f"at most {TARGET_RATIO:g} of that time: {', '.join(quick)}; compiled "
            f"{'met' if compiled else 'MISSED'}."
        )
    show(
        "Halo: b[1:-1, 1:-1] = 0.2 * (five of a) on 2 ranks, µs a statement, best of the rounds",
        HEAD,
        rows,
        notes,
    )
    if folder is not None:
        store("distributed_halo", {"target_ratio": TARGET_RATIO, "cases": record}, folder)


# On a rank


def step(a: Any, b: Any) -> None:
    b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])


def watched_messages() -> list[float]:
    """Where the seconds add up that starting and waiting for a statement's messages takes."""
    from mirabelle.backends.mpi.slots import Kept

    seconds = [0.0]

    def timed(call: Any) -> Any:
        def watched(messages: Any) -> None:
            began = time.perf_counter()
            call(messages)
            seconds[0] += time.perf_counter() - began

        return watched

    for name in ("start", "wait"):
        setattr(Kept, name, timed(getattr(Kept, name)))
    return seconds


def measure(sizes: list[int], tiny: bool) -> list[dict[str, Any]] | None:
    from mpi4py import MPI

    import mirabelle as mb

    comm = mb.distributed.communicator()
    own_core(comm.rank, comm.size)
    seen = watched_messages()
    rounds, round_s = (3, 0.005) if tiny else (11, 0.04)
    record: list[dict[str, Any]] = []
    for n in sizes:
        rng = np.random.default_rng(0)
        grid = rng.random((n, n))
        a, b = (mb.DArray[mb.HostArray](grid) for _ in range(2))
        rows = a.owned[0]
        # The rows it computes, and one on each side.
        around = slice(max(rows.start, 1) - 1, min(rows.stop, n - 1) + 1)
        mine = [mb.HostArray(grid[around]) for _ in range(2)]
        other = 1 - comm.rank
        sent, landed = np.zeros(n - 2), np.zeros(n - 2)

        def messages(sent: Any = sent, landed: Any = landed, other: int = other) -> None:
            world = MPI.COMM_WORLD
            MPI.Request.Waitall([world.Irecv(landed, other), world.Isend(sent, other)])

        def in_turn(a: Any = a, b: Any = b, usual: int = mb.settings.overlap_size) -> None:
            mb.settings.overlap_size = 1 << 60
            step(a, b)
            mb.settings.overlap_size = usual

        program = mb.compile(step)
        for _ in range(60):
            step(a, b)
            step(*mine)
            in_turn()
            program(a, b)
            program(*mine)
        settled()
        for f in (
            lambda: step(a, b),
            in_turn,
            lambda: step(*mine),
            lambda: program(a, b),
            lambda: program(*mine),
        ):
            f()
            settled()
        with mb.count() as counted:
            step(a, b)
        expected = grid.copy()
        step(grid, expected)
        np.testing.assert_array_equal(mb.to_numpy(b), expected)
        times = take_turns(
            comm,
            {
                "local": ("step(a, b)", {"step": step, "a": mine[0], "b": mine[1]}),
                "overlapped": ("step(a, b)", {"step": step, "a": a, "b": b}),
                "in_turn": ("f()", {"f": in_turn}),
                "messages_alone": ("f()", {"f": messages}),
                "compiled": ("step(a, b)", {"step": program, "a": a, "b": b}),
                "compiled_local": ("step(a, b)", {"step": program, "a": mine[0], "b": mine[1]}),
            },
            rounds,
            round_s,
        )
        visible = []
        for _ in range(rounds):
            comm.barrier()
            seen[0], turns = 0.0, max(10, int(round_s / times["overlapped"].best))
            for _ in range(turns):
                step(a, b)
            visible.append(max(comm.allgather_object(seen[0] / turns)))
        record.append(
            {
                "n": n,
                "seen_s": min(visible),
                **{name: t.as_json() for name, t in times.items()},
                "ratio": times["overlapped"].best / times["local"].best,
                "compiled_ratio": times["compiled"].best / times["compiled_local"].best,
                "counters": vars(counted),
            }
        )
    return record if comm.rank == 0 else None
