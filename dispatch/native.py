"""The few pieces that every statement passes through, written in C: `dispatch/csrc/*.c`.

What a statement costs beside its kernel is Python: looking up methods, making views and nodes, knowing a
statement again. These pieces are written in C, too, and built with the package where there is a compiler. Each
does what the Python beside it does in the common case, and hands all else to it. Without them (no compiler,
another interpreter, `MIRABELLE_NATIVE=0`) everything works, and statements of short arrays take several times
as long. `python -m mirabelle info` says whether they are there.

- `nodes.c`: the nodes of trees, `Leaf`, `Broadcasted` and `Reduced`, and what wrappers show of memory
  (dispatch/tree.py, arraytypes/wrappers.py);
- `buffer.c`: the buffer protocol before Python 3.12 (arraytypes/buffers.py);
- `operators.c`: calls of generic functions by operators, from the types to the method (dispatch/generic.py);
- `building.c`: how an operation makes a node (arraytypes/elementwise.py);
- `reducing.c`: how a reduction makes a node (backends/host/vectors.py);
- `computing.c`: small trees by NumPy's functions, products of matrices and vectors (backends/host/direct.py,
  backends/host/vectors.py);
- `loops.c`: of these, what takes NumPy longer to find than to do: common operations on few doubles, copies of
  few, and a matrix times a vector by the BLAS that NumPy came with;
- `picking.c`: what masks pick, and writes to it (backends/host/picking.py);
- `sorting.c`: the order of elements (backends/host/sorting.py);
- `sparse.c`: sparse matrices of entries in any order, and parts of them (backends/host/sparse.py);
- `indexing.c`, `assigning.c`: views `x[index]`, and `x[index] = value` (backends/host/direct.py);
- `statements.c`: statements, trees and reductions that come back (backends/host/shortcuts.py);
- `tasks.c`: task lists and the threads that run them (backends/host/runner.py, tasks.py);
- `halos.c`: those of distributed arrays whose messages travel meanwhile (backends/host/halos.py).

>>> from mirabelle.dispatch import native
>>> native.used() in (True, False)
True
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np

from mirabelle.dispatch import counters
from mirabelle.dispatch.settings import settings

# A tree of more operations is not computed operation by operation, however small.
DIRECT_TREE = 64
# What dispatch/csrc/module.c calls itself: another number is of another version of these files.
_VERSION = 11


def _found() -> tuple[Any, str]:
    """The module in C, and how it is; None and the reason if it is not used."""
    if not settings.native:
        return None, "not used: MIRABELLE_NATIVE=0"
    if sys.implementation.name != "cpython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None, "not used: it is made for CPython with its global lock"
    if sys.byteorder != "little":
        return None, "not used: it is made for processors that store the lowest byte first"
    try:
        module: Any = importlib.import_module("mirabelle.dispatch._native")
    except ImportError:
        return (
            None,
            "not built: statements of short arrays take longer; with a C compiler, `pip install` builds it",
        )
    if getattr(module, "VERSION", None) != _VERSION:
        return None, "not used: built for another version of mirabelle; `pip install` builds it anew"
    operations = (
        np.add, np.subtract, np.multiply, np.divide, np.negative, np.absolute, np.square, np.sqrt,
        np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal,
    )  # fmt: skip
    module.tell(array=np.ndarray, asarray=np.asarray)
    module.tell(float64=np.dtype(np.float64), boolean=np.dtype(np.bool_), fresh=np.empty, operations=operations)
    samples: list[Any] = [
        np.zeros(3),
        np.zeros((4, 5), np.float32)[1:, ::-2],
        np.zeros(()),
        np.zeros((2, 0, 3), np.int8),
    ]
    for x in samples:
        expected = (x.__array_interface__["data"][0], x.shape, x.strides, x.base, x.dtype, x.flags.num)
        if module.described(x) != expected:
            return None, f"not used: arrays of NumPy {np.__version__} look otherwise"
    return module, "operators, views, trees and statements that come back"


_module, _how = _found()


def described() -> str:
    """Are they used, or why not?"""
    return _how


def used() -> bool:
    """Are the pieces in C there?"""
    return _module is not None


def module() -> Any:
    """The module in C; None if it is not used."""
    return _module


def tell(**values: Any) -> None:
    """Tell it what it looks at: classes, where they keep things, functions for what it does not do."""
    if _module is not None:
        _module.tell(**values)


def forget() -> None:
    """What dispatch said so far holds no longer: a method appeared or disappeared."""
    if _module is not None:
        _module.forget()


def distrust() -> None:
    """Reference counts do not say who holds a version: all memory counts as shared."""
    if _module is not None:
        _module.distrust()


def operator(table: Any, function: Any, arity: int, swapped: bool = False) -> Any:
    """A generic function as arrays' operators call it: the function itself, or a quicker way to its table.

    A swapped one is given to take its operands the other way round.
    """
    return function if _module is None or arity > 3 else _module.Operator(table, function, arity, swapped)


# (What is measured at import is measured of trees.)
_computes_at_once = False


def _limits(s: Any) -> None:
    immediate = s.immediate_size if _computes_at_once else 0
    _module.limits(s.node_limit, s.small_size, DIRECT_TREE, immediate, s.brief_size)


def compute_at_once() -> None:
    """From now on results of few elements are computed at once."""
    global _computes_at_once
    _computes_at_once = True
    if _module is not None:
        _limits(settings)


if _module is not None:
    settings.watch(_limits)
    _module.tell(counters=counters.__dict__)
