"""Random programs over processes that hold, print and compute other things beside: that must change nothing.

    python -m mirabelle run -n 3 -m tests.heldapart 0 500       # the programs 0 to 499

The programs are those of `tests/test_histories.py`; here the ranks are processes, each with its own caches, and
they are compared with the same program on which nobody does anything beside. It says on which they differ.
"""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # (where tests find each other)

import mirabelle as mb
from tests.test_histories import LOOKS, ran, random_program
from tests.ways import running

BESIDE = [
    "mb.materialize(mb.HostArray(own) * 2 + 1)",
    "[mb.materialize(mb.HostArray(own)[1:-1] * 2 + 1) for _ in range(5)]",
    "mb.HostArray(own).sum()",
    "[mb.materialize(alone * 1.5 + mb.sin(alone)) for _ in range(6)]",
    "repr({a})",
]


def lines_of(seed: int) -> list[str]:
    lines, _ = random_program(seed, compiled=seed % 4 == 1)
    bounded = [f"{n} = mb.clip({n}, 0.01, 3)" for n in "xyz"]
    return lines if seed % 2 else [*lines, *bounded] * 4


def beside(seed: int, rank: int, count: int) -> list[str]:
    """What a rank does for itself after each line."""
    r = np.random.default_rng((seed, rank))
    given = "own = np.linspace(0.1, 1, 12); alone = mb.HostArray(own); "
    found = [str(r.choice([*LOOKS, *BESIDE])).format(a=r.choice(list("xyz"))) for _ in range(count)]
    return [given + what if r.random() < 0.5 else "" for what in found]


def differs(seed: int, comm: Any) -> str:
    lines = lines_of(seed)
    nothing = [[""] * len(lines)] * comm.size
    looks = [beside(seed, rank, len(lines)) for rank in range(comm.size)]
    sizes = {"immediate_size": (0, 1 << 20)[seed // 4 % 2], "overlap_size": (0, 1 << 20)[seed // 8 % 2]}
    checks = seed // 16 % 4 == 3
    with running(("hot", "cold")[seed // 2 % 2]):
        with mb.settings.changed(check_timeout=10.0, check_collectives=checks, **sizes):
            found = ran(lines, looks, comm)
        expected = ran(lines, nothing, comm)
    close = [np.allclose(a, b, rtol=1e-12, atol=1e-12) for a, b in zip(found, expected, strict=True)]
    return "" if all(close) else f"program {seed} differs on rank {comm.rank}"


def main() -> int:
    first, last = map(int, sys.argv[1:3])
    comm = mb.distributed.communicator()
    said = [text for seed in range(first, last) if (text := differs(seed, comm))]
    for text in said:
        print(text, flush=True)
    if comm.rank == 0:
        print(f"{last - first} programs, {len(said)} differ on rank 0.")
    return min(len(said), 1)


if __name__ == "__main__":
    raise SystemExit(main())
