"""Side effects of functions that are captured: a program would have them once, when made, so they are refused.

What a function can reach is what it is called with, what it is bound to, what it closes over, and the globals
it names. Arrays there may not be written to (but for arguments, whose writes are part of the program), traced
arrays may not be left there, and arrays and numbers that are there may not be replaced by others. What is
refused is put back. Anything else may change: that is how caches are filled.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mirabelle.arraytypes import recording
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.arraytypes.programs.errors import Because, TraceError, shown_line, user_line
from mirabelle.arraytypes.programs.traced import Traced
from mirabelle.arraytypes.wrappers import root_of

# How far from the function things are looked at, and how many of one thing's.
DEPTH, MOST = 3, 64
_PLAIN = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    str,
    bytes,
    int,
    float,
    complex,
)
_NUMBERS = (int, float, complex, np.number)
_ARRAYS = (AbstractArray, np.ndarray)


def outside(f: Callable[..., Any]) -> dict[str, Any]:
    """What a function finds outside of itself, by name."""
    if isinstance(f, functools.partial):
        names = _names_of(f.func)
        given = {names[i] if i < len(names) else f"argument {i}": x for i, x in enumerate(f.args)}
        return outside(f.func) | given | f.keywords
    own: Any = getattr(f, "__wrapped__", f)
    if not hasattr(own, "__code__"):
        own = own.__call__  # of an object, bound to it
    code = getattr(own, "__code__", None)
    if code is None:
        return {}
    found: dict[str, Any] = {}
    if isinstance(own, types.MethodType):
        found[code.co_varnames[0]] = own.__self__
    for name, cell in zip(code.co_freevars, getattr(own, "__closure__", None) or (), strict=False):
        with contextlib.suppress(ValueError):  # (a cell that is still empty)
            found[name] = cell.cell_contents
    known = own.__globals__
    found.update({name: known[name] for name in code.co_names if name in known})
    return found


def _names_of(f: Callable[..., Any]) -> tuple[str, ...]:
    code = getattr(f, "__code__", None)
    return () if code is None else code.co_varnames[isinstance(f, types.MethodType) : code.co_argcount]


def children(x: Any) -> list[tuple[str, Any, Any]]:
    """What a container or an object holds: how one writes it behind its name, its key, and the thing."""
    if isinstance(x, (*_PLAIN, AbstractArray, Communicator)):  # (what engines note of their work is their own)
        return []
    if isinstance(x, (list, tuple)):
        return [(f"[{i}]", i, y) for i, y in enumerate(x[:MOST])]
    if isinstance(x, dict):
        return [(f"[{k!r}]", k, y) for k, y in list(x.items())[:MOST]]
    if dataclasses.is_dataclass(x):
        return [(f".{f.name}", f.name, getattr(x, f.name, None)) for f in dataclasses.fields(x)]
    held = getattr(x, "__dict__", None)
    if isinstance(held, dict) and "__wrapped__" not in held:  # what wraps a function is one, whatever it keeps
        return [(f".{k}", k, y) for k, y in list(held.items())[:MOST]]
    return []


def reached(named: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """All that can be reached from some names, each thing once."""
    seen: set[int] = set()
    todo = [(name, x, 0) for name, x in named.items()]
    while todo:
        name, x, depth = todo.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        yield name, x
        if depth < DEPTH:
            todo += [(name + step, y, depth + 1) for step, _, y in children(x)]


class Effects:
    """What a function can reach, before it is called."""

    def __init__(self, f: Callable[..., Any], given: dict[str, Any], objects: dict[str, Any]) -> None:
        """`given` are the arguments as the function gets them, `objects` what else is passed as it is."""
        self.names: dict[int, str] = {}
        self.keep: list[Any] = []
        # (name, thing, what it held, is it an argument?)
        self.held: list[tuple[str, Any, list[tuple[str, Any, Any]], bool]] = []
        for name, x in reached(given):
            if isinstance(x, (list, dict)) or dataclasses.is_dataclass(x):
                self.held.append((name, x, children(x), True))
        for name, x in reached({**outside(f), **objects}):
            if isinstance(x, AbstractArray):
                root = root_of(x)  # (of what shows another array, that one)
                if isinstance(root, DenseArray) and not isinstance(root, Traced):
                    self.names[id(root)] = name
                    self.keep.append(root)
            elif not isinstance(x, _PLAIN):
                self.held.append((name, x, children(x), False))

    def note(self, root: Any) -> None:
        """An array is about to be written to."""
        if watching.get() is self and id(root) in self.names:
            raise written_outside(root)

    def put_back(self) -> TraceError | None:
        """Undo what the function may not leave behind; the error that says so, if there is anything."""
        found = None
        for name, x, before, argument in self.held:
            after = children(x)
            known = {key: y for _, key, y in before}
            for step, key, y in after:
                old = known.get(key, _NOTHING)
                if old is y:
                    continue
                why = "changes what its arguments hold" if argument else _wrong(old, y)
                if why:
                    _put(x, key, old)
                    found = found or _left(name + step, why)
            if argument and len(after) < len(before):
                found = found or _left(name, "changes what its arguments hold")
        return found


_NOTHING = object()


def _holds_traced(x: Any) -> bool:
    return any(isinstance(y, AbstractArray) and root_of(y).place.kind == "traced" for _, y in reached({"": x}))


def _wrong(old: Any, new: Any) -> str:
    """What is wrong, if anything is, with another thing in the place of one that is no argument."""
    if _holds_traced(new):
        return "leaves arrays behind"
    numbers = isinstance(old, _NUMBERS) and isinstance(new, _NUMBERS) and old != new
    arrays = isinstance(old, _ARRAYS) and isinstance(new, (*_ARRAYS, *_NUMBERS))
    # (Truth values say which caches are filled.)
    return "replaces a value" if arrays or (numbers and not isinstance(new, bool)) else ""


def _put(x: Any, key: Any, old: Any) -> None:
    """Let a container or an object hold what it did."""
    holder = x if isinstance(x, (list, dict)) else getattr(x, "__dict__", None)
    if holder is None or isinstance(x, tuple):
        return
    if old is not _NOTHING:
        holder[key] = old
    elif isinstance(holder, dict):
        del holder[key]


watching: contextvars.ContextVar[Any] = contextvars.ContextVar("mirabelle_watching", default=None)


@contextlib.contextmanager
def watched(f: Callable[..., Any], given: dict[str, Any], objects: dict[str, Any]) -> Iterator[None]:
    """Side effects within the block are errors."""
    effects = Effects(f, given, objects)
    token = watching.set(effects)
    recording.watchers.append(effects)
    try:
        try:
            yield
        finally:
            left = effects.put_back()
        if left is not None:
            raise left
    finally:
        recording.watchers.remove(effects)
        watching.reset(token)


def named(root: Any) -> str:
    """How a function calls an array that it finds outside."""
    effects = watching.get()
    name = None if effects is None else effects.names.get(id(root))
    return "" if name is None else f"`{name}`, "


def written_outside(dest: Any) -> TraceError:
    """The error for writing to an array that the program does not know."""
    return TraceError(
        f"A function that is being compiled writes to an array that is none of its arguments, in "
        f"{shown_line(user_line(2))}: {named(root_of(dest))}{type(dest).__name__} of shape {dest.shape}. A "
        "program would write to it once, when it is made. It writes to its arguments and returns the rest: "
        "pass the array in, `f(x, state)`, or return the new value."
    )


def _left(name: str, what: str) -> TraceError:
    text = (
        f"A function that is being compiled {what}: `{name}` is another object after it. A program would do so "
        "once, when it is made, and then only write to its arguments and return others. Return the new value, "
        "or pass in an array that holds it and write there: `x[...] = value`."
    )
    return TraceError(Because(text, f"it {what}: `{name}` is another object after it"))
