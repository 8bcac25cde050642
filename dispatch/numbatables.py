"""Numba's tables, made under its lock.

Numba makes the tables of a target when they are first asked for: it holds a lock of theirs, and asks for the
compiler's. Who compiles has the compiler's lock, and asks for the tables. Two threads of which each is first at
one of them wait for each other without end. So who makes Numba's functions asks for the tables here before.
"""

from __future__ import annotations

from functools import cache


@cache
def make_tables() -> None:
    """Have Numba's tables for the host made, if they are not there."""
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    with global_compiler_lock:
        _ = cpu_target.typing_context, cpu_target.target_context
