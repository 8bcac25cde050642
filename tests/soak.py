"""`python -m tests.soak`: random programs on several ranks, of which some are slow now and then.

python -m tests.soak --statements 10000 --ranks 3
python -m tests.soak --first 4711 --programs 1 --show   # one program again, by its number

Every program runs on NumPy and on distributed arrays in all layouts, and what both see is compared. In the
end nothing may be left: neither distributed memory nor, after the first programs, more of the process's.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

# Statements of a program at most; the first tenth of the programs fills caches.
LINES = 24
# How often a rank is slow before it communicates, and how many seconds at most.
SLOW = 0.02, 4e-3


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser("python -m tests.soak", description=__doc__.splitlines()[0])
    found.add_argument("--statements", type=int, default=10_000)
    found.add_argument("--ranks", type=int, default=3)
    found.add_argument("--first", type=int, default=0, help="the number of the first program")
    found.add_argument("--programs", type=int, default=None, help="so many programs, whatever their statements")
    found.add_argument("--show", action="store_true", help="print the programs")
    found.add_argument("--fail", type=int, default=None, help="the program in which rank 1 fails")
    found.add_argument("--on-rank", action="store_true", help=argparse.SUPPRESS)
    return found


def main() -> int:
    # (by themselves, because other packages leave a `tests` of theirs beside them)
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    given = parser().parse_args()
    if given.on_rank:
        return soak(given)
    import subprocess

    from ranks.launch import command, environment

    return subprocess.call(
        command(given.ranks, __file__, "--on-rank", *sys.argv[1:]), env=environment(given.ranks)
    )


def soak(given: argparse.Namespace) -> int:
    """The programs, on each rank."""
    import numpy as np
    from kinds import Scattered, Uneven
    from programs import STATEMENTS, Draft, Rolled, assert_logs_agree, numpys, run, written

    import mirabelle as mb

    comm = mb.distributed.communicator()
    slowed(comm, random.Random(comm.rank))
    family = mb.DArray[mb.HostArray]
    md = mb.distributed
    layouts = [
        md.Block(0), md.Block(-1), Uneven(0), Uneven(-1), md.BlockCyclic(0, 1), md.BlockCyclic(-1, 2),
        Scattered(0), Scattered(-1),
        md.Replicated(), md.Layout(Uneven(0), md.Block(-1), mesh=(1, comm.size)),
    ]  # fmt: skip
    statements = [*STATEMENTS, *["move"] * 8, "product", "product"]
    made = [0]

    def make(x):
        made[0] += 1
        with mb.distributed.use_layout(layouts[made[0] % len(layouts)]):
            return family(x)

    def relaid(x, k):
        x = x if isinstance(x, mb.AbstractArray) else family(x)
        layout = layouts[k % len(layouts)]
        axes = [p.axis for p in mb.distributed.Layout.of(layout).placements if p.axis is not None]
        fits = x.ndim and all(-x.ndim <= a < x.ndim for a in axes) and (x.ndim > 1 or len(axes) < 2)
        return mb.distributed.redistribute(x, layout) if fits else mb.copy(x)

    failures: list[Any] = []
    began = time.perf_counter()
    done, number, memory, buffers = 0, given.first, [], []
    while done < given.statements if given.programs is None else number < given.first + given.programs:
        # (whether a reshaped one is a view or a copy depends on how it is divided)
        draft = Draft(Rolled(number), reshapes=False)
        source = written(draft, LINES, statements)
        if given.show and comm.rank == 0:
            print(source, flush=True)
        made[0] = number
        if number == given.fail:
            failures = comm.allgather_object(failing(source, make, relaid))
        try:
            expected = run(source, np, numpys)
        except (ValueError, TypeError, IndexError, OverflowError):
            number += 1  # (what was tried while it was drawn, and failed half-way, left something behind)
            continue
        try:
            with mb.distributed.together():
                assert_logs_agree(run(source, mb, make, relaid), expected)
        except Exception:
            if comm.rank == 0:
                print(f"Program {number}:\n{source}", file=sys.stderr, flush=True)
            raise
        done += len(draft.lines)
        number += 1
        if number % 25 == 0:
            gc.collect()
            memory.append(resident())
            buffers.append(living())
    gc.collect()
    found = {
        "programs": number - given.first,
        "statements": done,
        "seconds": round(time.perf_counter() - began, 1),
        "buffers left": max(comm.allgather_object(living())),
        "failures": failures,
        "MiB": [round(m / 2**20, 1) for m in memory[:: max(1, len(memory) // 10)]],
    }
    if comm.rank == 0:
        print(json.dumps(found))
    return 0


def failing(source: str, make: Any, relaid: Any) -> list[Any]:
    """Run a program that rank 1 leaves before its end: this rank, what it raised, and whose fault it was."""
    from programs import run

    import mirabelle as mb

    comm = mb.distributed.communicator()
    try:
        with mb.distributed.together():
            run(source, mb, make, relaid)
            if comm.rank == 1:
                raise ZeroDivisionError("on one rank")
            # The others wait for it here.
            float(mb.sum(mb.DArray[mb.HostArray]([1.0, 2.0, 3.0])))
    except (ZeroDivisionError, mb.RemoteError) as e:
        return [comm.rank, type(e).__name__, getattr(e, "rank", None)]
    return [comm.rank, "nothing", None]


def slowed(comm: Any, dice: random.Random) -> None:
    """Make a rank sleep now and then before it sends or waits."""
    often, long = SLOW

    def late(f):
        def call(*args, **kwargs):
            if dice.random() < often:
                time.sleep(dice.random() * long)
            return f(*args, **kwargs)

        return call

    for name in ("start", "allgather", "allgather_object", "allreduce", "settle"):
        setattr(comm, name, late(getattr(comm, name)))
    part = comm.part

    def slow_part(ranks):
        found = part(ranks)
        with contextlib.suppress(AttributeError):  # (of communicators that are kept, once)
            found.slow
            return found
        found.slow = True
        slowed(found, dice)
        return found

    comm.part = slow_part


def resident() -> int:
    """The memory this process takes, in bytes."""
    import os

    fields = Path("/proc/self/statm")
    return int(fields.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if fields.exists() else 0


def living() -> int:
    """How many distributed buffers there are on this process."""
    from mirabelle.arraytypes.distributed.views import DBuffer

    return sum(type(x) is DBuffer for x in gc.get_objects())


if __name__ == "__main__":
    sys.exit(main())
