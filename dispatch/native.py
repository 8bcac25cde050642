"""The few pieces that every statement passes through, written in C: `dispatch/csrc/*.c`.

What a statement costs beside its kernel is Python: looking up methods, making views and nodes, knowing a
statement again. These pieces are written in C and built with the package. Each does the common case, and hands
all else to a function of Python that it is given.

- `owners.c`: who keeps a version, and whether memory may be written in place (dispatch/tree.py);
- `nodes.c`: the nodes of trees, `Leaf`, `Broadcasted` and `Reduced`, and what wrappers show of memory
  (dispatch/tree.py, arraytypes/wrappers.py);
- `buffer.c`: the buffer protocol before Python 3.12 (arraytypes/buffers.py);
- `operators.c`: calls of generic functions by operators, from the types to the method (dispatch/generic.py);
- `counting.c`: what is done here, told to whoever counts (dispatch/counters.py);
- `following.c`: which line of a user's program runs meanwhile (dispatch/linecounts.py);
- `addresses.c`: where memory and NumPy's inner loops are (dispatch/addresses.py, backends/host/loops.py);
- `building.c`: how an operation makes a node (arraytypes/elementwise.py);
- `reducing.c`: how a reduction makes a node (backends/host/vectors.py);
- `computing.c`: small trees by NumPy's functions, products of matrices and vectors (backends/host/direct.py,
  backends/host/vectors.py);
- `loops.c`: of these, what takes NumPy longer to find than to do: its own loops on few elements, copies of few
  doubles, and a matrix times a vector by the BLAS that NumPy came with;
- `scalars.c`: the same of single numbers of any dtype;
- `elements.c`: single numbers as arrays, of memory that others have left;
- `picking.c`: what masks pick, and writes to it (backends/host/picking.py);
- `sorting.c`: the order of elements (backends/host/sorting.py);
- `sparse.c`: sparse matrices of entries in any order, and parts of them (backends/host/sparse.py);
- `onmemory.c`: NumPy's functions on the memory of few elements, where an operand is NumPy's
  (arraytypes/elementwise.py), and reading by integers (backends/host/picking.py);
- `inplace.c`: `x += y` of numbers and of parts of arrays (arraytypes/operators.py);
- `indexing.c`, `assigning.c`: views `x[index]`, and `x[index] = value` (backends/host/direct.py);
- `statements.c`: statements, trees and reductions that come back (backends/host/shortcuts.py);
- `pool.c`, `tasks.c`: task lists and the threads that run them (backends/host/runner.py, tasks.py);
- `halos.c`: those of distributed arrays whose messages travel meanwhile (backends/host/halos.py).

>>> from mirabelle.dispatch import native
>>> native.in_c.VERSION == native.VERSION
True
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from mirabelle.dispatch.settings import settings

# A tree of more operations is not computed operation by operation, however small.
DIRECT_TREE = 64
# What dispatch/csrc/module.c calls itself: another number is of another version of these files.
VERSION = 24

_CURE = (
    "Build it where the sources are, with a C compiler: `pip install -e .`, or, where setuptools and NumPy are "
    "installed, `python -m pip install --no-build-isolation -e .`."
)


def _found() -> Any:
    """The module in C, or an ImportError that says how it comes to be there."""
    if sys.byteorder != "little":
        raise ImportError("mirabelle is made for processors that store the lowest byte of a number first.")
    try:
        from mirabelle.dispatch import _native
    except ImportError as e:
        raise ImportError(
            f"mirabelle's part in C (mirabelle.dispatch._native) is not there: {e}. {_CURE}"
        ) from e
    built = getattr(_native, "VERSION", None)
    if built != VERSION:
        raise ImportError(
            f"mirabelle's part in C was built of other sources (version {built}; these are {VERSION}). {_CURE}"
        )
    # (An interpreter without the lock takes it when it imports what does not say that it can do without.)
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise ImportError(
            "mirabelle's part in C needs the interpreter's global lock, which PYTHON_GIL=0 or -X gil=0 "
            "switched off. Start Python without them: it takes the lock when mirabelle is imported."
        )
    return _native


in_c: Any = _found()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=in_c.forget_other_threads)

in_c.tell(
    asarray=np.asarray,
    operations=(
        np.add, np.subtract, np.multiply, np.divide, np.negative, np.absolute, np.square, np.sqrt,
        np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal,
        np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift, np.bitwise_invert,
    ),
)  # fmt: skip


# What it looks at: classes, where they keep things, functions for what it does not do.
tell = in_c.tell
# What dispatch said so far holds no longer: a method appeared or disappeared.
forget = in_c.forget


def operator(table: Any, function: Any, arity: int, swapped: bool = False, *halves: Any) -> Any:
    """A generic function as arrays' operators call it: the function itself, or a quicker way to its table.

    A swapped one is given to take its operands the other way round; `halves` is called in its place where
    the second operand is the number 0.5.
    """
    return function if arity > 3 else in_c.Operator(table, function, arity, swapped, *halves)


# (What is measured at import is measured of trees.)
_computes_at_once = False


def _limits(s: Any) -> None:
    immediate = (_computes_at_once and s.immediate_size) or -1  # (0: not even what has no elements)
    in_c.limits(s.node_limit, s.small_size, DIRECT_TREE, immediate, s.brief_size, moved_at_once(s))


# One thread moves up to so many times the elements for which one computes.
MOVED = 4


def moved_at_once(s: Any) -> int:
    """Of so many elements memory is copied to memory by NumPy, without a look at how a kernel would do it."""
    return s.small_size and max(4 * s.small_size, MOVED * s.thread_size)  # type: ignore[no-any-return]


def compute_at_once() -> None:
    """From now on results of few elements are computed at once."""
    global _computes_at_once
    _computes_at_once = True
    _limits(settings)


settings.watch(_limits)


def _checks(s: Any) -> None:
    check: Any = None
    if s.check_owners:
        from mirabelle.dispatch.ownercheck import check
    in_c.tell(check_owners=check)


settings.watch(_checks)
