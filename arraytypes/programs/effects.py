"""Side effects of functions that are captured: a program would have them once, when made, so they are refused.

What a function can reach is what it is called with, what it closes over, and the globals it names. Arrays
there may not be written to (but for arguments, whose writes are part of the program), and traced arrays may
not be left there.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import types
from collections.abc import Callable, Iterator
from typing import Any

from mirabelle.arraytypes import recording
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.programs.errors import TraceError, shown_line, user_line
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


def outside(f: Callable[..., Any]) -> dict[str, Any]:
    """What a function finds outside of itself, by name."""
    f = getattr(f, "__wrapped__", f)
    code = getattr(f, "__code__", None)
    if code is None:
        return {}
    found: dict[str, Any] = {}
    for name, cell in zip(code.co_freevars, getattr(f, "__closure__", None) or (), strict=False):
        with contextlib.suppress(ValueError):  # (a cell that is still empty)
            found[name] = cell.cell_contents
    known = f.__globals__
    found.update({name: known[name] for name in code.co_names if name in known})
    return found


def children(x: Any) -> list[tuple[str, Any]]:
    """What a container or an object of somebody's class holds, with how one writes it behind its name."""
    if isinstance(x, (*_PLAIN, AbstractArray)):
        return []
    if isinstance(x, (list, tuple)):
        return [(f"[{i}]", y) for i, y in enumerate(x[:MOST])]
    if isinstance(x, dict):
        return [(f"[{k!r}]", y) for k, y in list(x.items())[:MOST]]
    if dataclasses.is_dataclass(x):
        return [(f".{f.name}", getattr(x, f.name, None)) for f in dataclasses.fields(x)]
    held = getattr(x, "__dict__", None)
    if isinstance(held, dict) and not callable(x):
        return [(f".{k}", y) for k, y in list(held.items())[:MOST]]
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
            todo += [(name + step, y, depth + 1) for step, y in children(x)]


class Effects:
    """What a function can reach, before it is called."""

    def __init__(self, f: Callable[..., Any], given: dict[str, Any], objects: dict[str, Any]) -> None:
        """`given` are the arguments as the function gets them, `objects` what else is passed as it is."""
        self.names: dict[int, str] = {}
        self.keep: list[Any] = []
        # (name, thing, what it held, is it an argument?)
        self.held: list[tuple[str, Any, list[tuple[str, Any]], bool]] = []
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

    def check(self) -> None:
        """Refuse what the function has left behind."""
        for name, x, before, argument in self.held:
            after = children(x)
            known = dict(before)
            for step, y in after:
                if step in known and known[step] is y:
                    continue
                if argument or _holds_traced(y):
                    raise _left(name + step, argument)
            if argument and len(after) < len(before):
                raise _left(name, argument)


def _holds_traced(x: Any) -> bool:
    return any(isinstance(y, AbstractArray) and isinstance(root_of(y), Traced) for _, y in reached({"": x}))


watching: contextvars.ContextVar[Any] = contextvars.ContextVar("mirabelle_watching", default=None)


@contextlib.contextmanager
def watched(f: Callable[..., Any], given: dict[str, Any], objects: dict[str, Any]) -> Iterator[None]:
    """Side effects within the block are errors."""
    effects = Effects(f, given, objects)
    token = watching.set(effects)
    recording.watchers.append(effects)
    try:
        yield
        effects.check()
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


def _left(name: str, argument: bool) -> TraceError:
    what = "changes what its arguments hold" if argument else "leaves arrays behind"
    return TraceError(
        f"A function that is being compiled {what}: `{name}` is another object after it. A program would do so "
        "once, when it is made, and then only write to arrays and return others. Return the new value, or "
        "write to the array that is there: `x[...] = value`."
    )
