"""What compiling in this process takes of its memory.

Numba hands machine code to an LLVM engine that lives as long as the process and gives nothing back (it
does not call `removeModule`, which crashed), and LLVM's passes leave more behind than the code takes: a
plain `@numba.njit` of one line costs about 0.8 MB. What of ours hangs on a function goes with it
(`forgetting` in `dispatch/ops.py`); of the rest we can only say how much it is, in `mb.memory()`. (Kernels
of expressions come from helper processes.)
"""

from __future__ import annotations

import functools
import threading
from typing import Any

from mirabelle.arraytypes import pool

_taken = 0
_inside = threading.local()


def taken() -> int:
    """By how many bytes this process grew while functions were compiled in it."""
    return _taken


pool.never_given_back["code"] = taken


@functools.cache
def watch() -> None:
    """Measure what Numba's compilations take, from now on."""
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            # (The compilation of one function may start that of another.)
            depth = _inside.depth = getattr(_inside, "depth", 0) + 1
            if depth == 1:
                _inside.before = _resident()

        def on_end(self, event: Any) -> None:
            global _taken
            depth = getattr(_inside, "depth", 0)
            if not depth:  # (it had begun when another thread began to watch)
                return
            _inside.depth = depth - 1
            if depth == 1:
                _forget_expressions()
                _taken += max(0, _resident() - _inside.before)

    event.register("numba:compile", Listener())


def _forget_expressions() -> None:
    """Have Numba let go of what it compiled for array expressions within functions.

    It keeps them by code that is made anew for each expression, so that nobody finds them again; with them it
    keeps the functions. (They are linked into what calls them.)
    """
    from numba.core.registry import cpu_target

    kept = getattr(cpu_target.target_context, "cached_internal_func", {})
    for key in [k for k in list(kept) if getattr(k[0], "co_name", "").startswith("__numba_array_expr_")]:
        kept.pop(key, None)


def _resident() -> int:
    """Bytes of memory of this process; 0 where the system does not say so."""
    try:
        with open("/proc/self/statm", "rb") as f:
            return int(f.read().split()[1]) * _page()
    except (OSError, ValueError, IndexError):
        return 0


@functools.cache
def _page() -> int:
    import os

    return os.sysconf("SC_PAGE_SIZE")
