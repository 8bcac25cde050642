"""What runs a task list: claims work, waits where it must, calls kernels.

In C (dispatch/csrc/tasks.c), with threads of its own that know nothing of Python. Where that was not
built, in Python: stage by stage, on the threads of `threads.run_all`. Lists are laid out by `tasks.py`; the
words of a list's block are named here.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from functools import cache
from typing import Any

from mirabelle.backends.host import compiler, threads
from mirabelle.dispatch import native as pieces_in_c

# The words of a list's block. Those that threads write lie in cache lines of their own.
NEXT, DONE, LIMIT, ERROR = 0, 8, 16, 24
STAGES, TICKETS, CALLS, TICKETS_EACH, PATCHES, N_PATCHES, THREADS, HELPERS = range(32, 40)
BLOCK_WORDS = 48
# A ticket: its first call, the end of its calls, and which stage (by the number of the ticket that
# opened it) last had it taken. It has a cache line to itself.
TICKET_WORDS, FIRST, END, TAKEN = 8, 0, 1, 2
# A call: kernel, args, lo, hi, first, last, rlo, rhi, part, number of its statement.
CALL_WORDS = 10

# The item sizes that can be filled with a value.
FILLS = (1, 2, 4, 8, 16)


class Runner:
    """The addresses of what is called as kernels are: bytes that are copied, NumPy's loops, one value for many
    elements; and what runs a list in C, or None."""

    def __init__(self) -> None:
        module: Any = pieces_in_c.module()
        found = module.task_functions() if module is not None else None
        self.run: Any = None
        self.copy: int = _COPY
        self.fold: int = _FOLD
        self.fill: dict[int, int] = {n: n for n in FILLS}
        if module is not None and found is not None:
            self.copy, self.fold, self.fill = found
            self.run = module.run_tasks


@cache
def native() -> Runner:
    """What there is."""
    return Runner()


# Without C: numbers where no code can be, and what they stand for. (The others are the item sizes of fills.)
_COPY, _FOLD = 32, 33


def by_python(
    calls: Any, stages: Any, tickets: Any, patches: Any, addresses: tuple[int, ...] | None, times: int
) -> int:
    """Run a list: the number of the statement that failed, plus one, or 0."""
    if addresses is not None:
        for word, slot, offset in patches.tolist():
            if word:
                ctypes.c_int64.from_address(word).value = addresses[slot] + offset
    failed: list[int] = []

    def ticket(k: int) -> None:
        for call in calls[tickets[k, FIRST] : tickets[k, END]].tolist():
            if not failed and _called(*call[:-1]):
                failed.append(call[-1] + 1)

    for _ in range(times):
        for first, end in itertools.pairwise(stages.tolist()):
            threads.run_all([functools.partial(ticket, k) for k in range(first, end)])
    return failed[0] if failed else 0


def _called(code: int, args: int, lo: int, hi: int, *rest: int) -> int:
    if code == _COPY:
        to, source = _words(args, 2)
        ctypes.memmove(to + lo, source + lo, hi - lo)
    elif code == _FOLD:
        _fold(args, lo, hi)
    elif code in FILLS:
        if hi > lo:
            _fill(code, args, lo, hi)
    else:
        nowhere = compiler.nowhere()
        return int(compiler.function(code)(nowhere, nowhere, args, lo, hi, *rest))
    return 0


def _words(args: int, count: int) -> list[int]:
    return list((ctypes.c_int64 * count).from_address(args))


def _fill(size: int, args: int, lo: int, hi: int) -> None:
    """One element, then as much again as there is."""
    begin, end = args + 8, _words(args, 1)[0] + hi * size
    first = at = _words(args, 1)[0] + lo * size
    ctypes.memmove(first, begin, size)
    at += size
    while at < end:
        n = min(at - first, end - at)
        ctypes.memmove(at, first, n)
        at += n


_LOOP = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)


def _fold(args: int, lo: int, hi: int) -> None:
    """`result = loop(result, source)`, with a loop of NumPy's."""
    code, data, result, source, result_by, source_by, count, result_step, source_step = _words(args, 9)
    loop = _LOOP(code)
    counts, steps = (ctypes.c_int64 * 1)(count), (ctypes.c_int64 * 3)(result_step, source_step, result_step)
    for i in range(lo, hi):
        r, s = result + i * result_by, source + i * source_by
        loop((ctypes.c_int64 * 3)(r, s, r), counts, steps, data)
