"""Programs: functions that run on all workers at the same time, shipped once and called by number."""

from __future__ import annotations

import functools
import itertools
import types
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from mirabelle.backends.dask.remote import release

if TYPE_CHECKING:
    from mirabelle.backends.dask.session import Session

_numbers = itertools.count(1)


class Program:
    """A function that runs on all workers of a session. Made with `session.program(f)`.

    It is shipped with the globals that it reads when it is first called, and again when one of them (a
    function of the notebook that was defined anew, a number) is another object by then.
    """

    __module__ = "mirabelle"

    def __init__(self, session: Session, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise TypeError(f"A program is a function, and {function!r} cannot be called.")
        functools.update_wrapper(self, function)
        self.session = session
        self.function = function
        self.number = next(_numbers)
        self.title = getattr(function, "__name__", type(function).__name__)
        self._shipped: list[tuple[Any, Any, Any]] | None = None
        weakref.finalize(self, release, weakref.ref(session), self.number).atexit = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.session._call(self, args, kwargs)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else types.MethodType(self, owner)

    @property
    def current(self) -> bool:
        """Do the workers have the function as it is now?"""
        shipped = self._shipped
        return shipped is not None and all(
            (holder.cell_contents if isinstance(holder, types.CellType) else holder.get(name)) is value
            for holder, name, value in shipped
        )

    def shipped(self) -> None:
        """The workers have it now."""
        self._shipped = list(references(self.function))

    def lost(self) -> None:
        """They may not have it."""
        self._shipped = None

    def __reduce__(self) -> Any:
        # Within another program it is the function that it was made of.
        return _function, (self.function,)

    def __repr__(self) -> str:
        return f"<program {self.title} on {self.session.size} workers>"


def references(function: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Where a function looks up names: (dictionary or cell, name, what it finds now).

    Functions of the same module are looked into: with a notebook's function go those it calls.
    """
    seen: set[int] = set()
    waiting = [function]
    while waiting:
        f = waiting.pop()
        f = f.function if isinstance(f, Program) else f
        if not isinstance(f, types.FunctionType) or id(f) in seen:
            continue
        seen.add(id(f))
        for name in names_in(f.__code__):
            if name in f.__globals__:
                value = f.__globals__[name]
                yield f.__globals__, name, value
                if isinstance(value, Program) or getattr(value, "__module__", None) == f.__module__:
                    waiting.append(value)
        for cell in f.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:  # not assigned yet
                continue
            yield cell, None, value
            waiting.append(value)


def _function(f: Any) -> Any:
    return f


def names_in(code: types.CodeType) -> set[str]:
    """The global names that a function's code, and the functions defined in it, may look up."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= names_in(constant)
    return found
