"""`python -m tests.fuzzmessages --rounds 20000`: messages over sockets, spoilt in every way one can think of.

A rank awaits two messages, and what comes in their place is cut off, longer, exchanged, of another kind, with
bits of its headers turned, or rubbish. It has to end in the right numbers or in a CommunicationError, in time.
(Bits of what is sent are not looked at: TCP and the memory of a machine are believed.)
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import threading
import time
from typing import Any

import numpy as np

from mirabelle.arraytypes.distributed import marks
from mirabelle.backends.tcp import local_group
from mirabelle.backends.tcp.link import BYE, DATA, DIFFERS, FAILED, HEADER
from mirabelle.dispatch.errors import CommunicationError

# Seconds that a round may take.
SOON = 10.0
FIRST, SECOND = marks.marked("the first message"), marks.marked("the second message")


def headed(data: bytes, mark: int, kind: int = DATA, program: int = 0, length: int | None = None) -> bytes:
    return HEADER.pack(kind, program, len(data) if length is None else length, mark) + data


def spoilt(dice: random.Random, first: bytes, second: bytes) -> tuple[str, bytes]:
    """What comes in the place of two messages, and what was done to them."""
    good = headed(first, FIRST), headed(second, SECOND)
    both = b"".join(good)
    way = dice.choice(["none", "cut", "longer", "swapped", "twice", "bit", "kind", "size", "mark", "rubbish"])
    if way == "cut":
        both = both[: dice.randrange(len(both))]
    elif way == "longer":
        both = headed(first + bytes(dice.randrange(1, 99)), FIRST) + good[1]
    elif way == "swapped":
        both = good[1] + good[0]
    elif way == "twice":
        both = good[0] * 2
    elif way == "bit":
        at = dice.choice([0, len(good[0])]) + dice.choice([0, *range(4, HEADER.size)])
        both = both[:at] + bytes([both[at] ^ 1 << dice.randrange(8)]) + both[at + 1 :]
    elif way == "kind":
        kind = dice.choice([0, FAILED, BYE, DIFFERS, 5, 255])
        both = headed(first, FIRST, kind) + good[1]
    elif way == "size":
        both = headed(
            first, FIRST, length=dice.choice([0, 1, len(first) - 1, len(first) + 1, 1 << 40, 1 << 62, 1 << 63])
        )
    elif way == "mark":
        both = headed(first, dice.randrange(-(1 << 63), 1 << 63)) + good[1]
    elif way == "rubbish":
        both = dice.randbytes(dice.randrange(200))
    return way, both


def fuzz(number: int) -> str:
    """One round: what was done, and what came of it."""
    dice = random.Random(number)
    data = [np.frombuffer(dice.randbytes(dice.choice([1, 8, 64, 3000])), np.uint8) for _ in range(2)]
    way, sent = spoilt(dice, data[0].tobytes(), data[1].tobytes())
    group = local_group(2)
    landed = [np.zeros_like(x) for x in data]
    found: list[Any] = []

    def receive() -> None:
        try:
            under_way = [group[0].start({}, {1: x}, m) for x, m in zip(landed, (FIRST, SECOND), strict=True)]
            for exchange in under_way:
                exchange.wait()
            found.append(all(np.array_equal(x, y) for x, y in zip(data, landed, strict=True)))
        except BaseException as e:
            found.append(e)

    thread = threading.Thread(target=receive, daemon=True)
    began = time.monotonic()
    try:
        thread.start()
        raw = group[1]._links[0].socket
        raw.setblocking(True)
        with contextlib.suppress(OSError):  # (it may hang up before it has heard all)
            raw.sendall(sent)
            raw.close()
        thread.join(SOON)
        if thread.is_alive():
            raise AssertionError(f"round {number} ({way}): it waits for ever")
        outcome = found[0]
        if not (outcome is True or isinstance(outcome, CommunicationError)):
            raise AssertionError(f"round {number} ({way}): {outcome!r}")
        if way == "none" and outcome is not True:
            raise AssertionError(f"round {number}: nothing was wrong, and yet {outcome!r}")
        return f"{way}: {'right' if outcome is True else 'an error'}"
    finally:
        for comm in group:
            with contextlib.suppress(OSError):
                comm.close()
        assert time.monotonic() - began < 2 * SOON


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.fuzzmessages", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first round")
    given = parser.parse_args()
    marks.ANSWER = 0.02
    counts: dict[str, int] = {}
    for number in range(given.first, given.first + given.rounds):
        said = fuzz(number)
        counts[said] = counts.get(said, 0) + 1
    for said, n in sorted(counts.items()):
        print(f"{n:8d} {said}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
