"""Names for functions that are written as `def _`: what tracebacks, profilers and debuggers show of them.

A method belongs to a generic function and to types, and is nobody's by itself; in the sources it is called `_`.
When it is registered it gets a name that says what it is, such as `sum[HostArray]`, and so does its code.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType
from typing import Any


def named(f: Any, name: str) -> Any:
    """The function itself; if it is called `_`, it has this name from now on.

    >>> from mirabelle.dispatch.naming import named
    >>> def _(x): return x
    >>> f = named(_, "copy[Array]")
    >>> f is _, f.__name__, f.__code__.co_name
    (True, 'copy[Array]', 'copy[Array]')
    """
    if type(f) is FunctionType and f.__name__ == "_":
        around, dot, _ = f.__qualname__.rpartition(".")
        f.__name__ = name
        f.__qualname__ = qualified = around + dot + name
        f.__code__ = f.__code__.replace(co_name=name, co_qualname=qualified)
    return f


def of_types(function: str, types: Iterable[str]) -> str:
    """The name of a function for some types, as `matmul[HostArray, Diagonal]`."""
    return f"{function}[{', '.join(types)}]"


def of_routines(names: tuple[str, ...], family: str) -> str:
    """The name of what answers several routines of an array type: `sort|argsort[Dual]`, of many the first."""
    return of_types("|".join(names if len(names) <= 3 else (names[0], "…")), [family])
