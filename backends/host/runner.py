"""What runs a task list: claims work, waits where it must, calls kernels.

It is in C (dispatch/csrc/pool.c), with threads of its own that know nothing of Python. Lists are laid out by
`tasks.py`. Here are the words of a list's block, and the addresses of what is called as kernels are: bytes
that are copied, NumPy's loops, one value for many elements (by its size).
"""

from __future__ import annotations

from typing import Any

from mirabelle.dispatch.native import in_c

# The words of a list's block. Those that threads write lie in cache lines of their own.
NEXT, DONE, LIMIT, ERROR = 0, 8, 16, 24
STAGES, TICKETS, CALLS, TICKETS_EACH, PATCHES, N_PATCHES, THREADS, HELPERS = range(32, 40)
BLOCK_WORDS = 48
# A ticket: its first call, the end of its calls, and which stage (by the number of the ticket that
# opened it) last had it taken. It has a cache line to itself.
TICKET_WORDS, FIRST, END, TAKEN = 8, 0, 1, 2
# A call: kernel, args, lo, hi, first, last, rlo, rhi, part, number of its statement.
CALL_WORDS = 10

COPY: int
FOLD: int
FILL: dict[int, int]
COPY, FOLD, FILL = in_c.task_functions()
run: Any = in_c.run_tasks
