"""What a compiled function finds outside of itself, and whether that is what it was.

Numbers, texts and arrays that a function reads from globals, from what it closes over, or from objects and
containers there, are constants of its program. They are looked at before each call: where one is another by
now, or an array was written to, the program is captured anew.

>>> import mirabelle as mb
>>> factor = 2.0
>>> @mb.compile
... def scaled(x):
...     return factor * x
>>> print(scaled(mb.ones(2)))
[2. 2.]
>>> factor = 3.0
>>> print(scaled(mb.ones(2)))
[3. 3.]
"""

from __future__ import annotations

import dis
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.programs.effects import children
from mirabelle.arraytypes.programs.errors import TraceError
from mirabelle.arraytypes.wrappers import root_of
from mirabelle.dispatch.generic import GenericFunction
from mirabelle.dispatch.tree import Leaf

# How many functions are looked through, and how far from them things are looked at.
FUNCTIONS, DEPTH = 64, 2
# Of NumPy's arrays of so many bytes contents are compared; of larger ones only which arrays they are.
SMALL = 1 << 15
_CONSTANTS = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype)
_BY_IDENTITY = (AbstractArray, np.ndarray, types.FunctionType)
# Modules whose values and functions do not change.
_SETTLED = frozenset(sys.stdlib_module_names) | {"numpy", "scipy", "mirabelle", "numba", "llvmlite", "cupy"}
_NOTHING = object()


class OutsideValues:
    """What a function found outside of itself."""

    __slots__ = ("cells", "contents", "entries", "lists", "nodes")

    def __init__(self, f: Callable[..., Any]) -> None:
        functions = list(_functions(f))
        named = {name for g in functions for name in _named(g.__code__)}
        # Of dictionaries (those of modules and objects, too), of what functions close over, and of lists.
        self.entries: list[tuple[Any, Any, Any]] = []
        self.cells: list[tuple[Any, Any]] = []
        self.lists: list[tuple[Any, tuple[Any, ...]]] = []
        # What arrays hold: of ours the version and how often it was written to, of NumPy's the bytes.
        self.nodes: list[tuple[Any, Any, int]] = []
        self.contents: list[tuple[Any, bytes]] = []
        seen: set[int] = set()
        for g in functions:
            for cell, value in _cells(g):
                if _counts(value):
                    self.cells.append((cell, value))
                self._look_into(value, named, seen)
            if _is_settled(g.__module__):
                continue
            known = g.__globals__
            for name in _named(g.__code__):
                value = known.get(name, _NOTHING)
                if _counts(value):
                    self.entries.append((known, name, value))
                self._look_into(value, named, seen)
        if isinstance(f, types.MethodType):
            self._look_into(f.__self__, named, seen)

    def _look_into(self, x: Any, named: set[str], seen: set[int], depth: int = 0) -> None:
        """Note what an object, a module or a container holds under a name that the functions use."""
        if id(x) in seen or depth >= DEPTH:
            return
        seen.add(id(x))
        if isinstance(x, np.ndarray):
            if x.nbytes <= SMALL and not x.dtype.hasobject:
                self.contents.append((x, x.tobytes()))
            return
        if isinstance(x, AbstractArray):
            root = root_of(x)
            if isinstance(root, DenseArray):
                node = root._node
                if type(node) is Leaf and node.foreign and isinstance(node.view, np.ndarray):
                    self._look_into(node.view, named, seen, depth)  # (NumPy may write there)
                self.nodes.append((root, node, getattr(node, "writes", 0)))
            return
        if isinstance(x, list):
            if all(map(_counts, x)):
                self.lists.append((x, tuple(x)))
            return
        if isinstance(x, types.ModuleType):
            held = {} if _is_settled(x.__name__) else vars(x)
        elif isinstance(x, dict):
            held = x
        else:
            held = vars(x) if children(x) and hasattr(x, "__dict__") else {}
        for key, value in list(held.items()):
            if isinstance(key, str) and key not in named:
                continue
            if _counts(value):
                self.entries.append((held, key, value))
            if not isinstance(x, types.ModuleType):
                self._look_into(value, named, seen, depth + 1)

    def that_stayed(self, after: OutsideValues) -> OutsideValues | None:
        """Of what was noted before a capture and `after` it what is the same: a function may fill caches, and
        lists of its own, when it is captured. None if that is nothing."""
        for name in ("entries", "cells", "lists", "contents"):
            before = {(id(x), *key): value for x, *key, value in getattr(self, name)}
            kept = [
                (x, *key, value)
                for x, *key, value in getattr(after, name)
                if (known := before.get((id(x), *key), _NOTHING)) is value or _equal(known, value)
            ]
            setattr(after, name, kept)
        return after or None

    def __bool__(self) -> bool:
        return bool(self.entries or self.cells or self.lists or self.nodes or self.contents)

    def are_the_same(self) -> bool:
        """Is all as it was?"""
        for holder, key, value in self.entries:
            now = holder.get(key, _NOTHING)
            if now is not value and not _equal(now, value):
                return False
        for cell, value in self.cells:
            try:
                now = cell.cell_contents
            except ValueError:  # it is empty by now
                return False
            if now is not value and not _equal(now, value):
                return False
        for x, values in self.lists:
            if len(x) != len(values) or not all(a is b or _equal(a, b) for a, b in zip(x, values, strict=True)):
                return False
        for array, node, writes in self.nodes:
            if array._node is not node or getattr(node, "writes", 0) != writes:
                return False
        return all(array.tobytes() == known for array, known in self.contents)


def _counts(x: Any) -> bool:
    """Is it a constant of programs, as it is?"""
    if isinstance(x, types.FunctionType):
        return not _is_settled(x.__module__)
    return isinstance(x, (*_CONSTANTS, *_BY_IDENTITY)) or (type(x) is tuple and all(map(_counts, x)))


def _equal(a: Any, b: Any) -> bool:
    if type(a) is not type(b) or isinstance(a, _BY_IDENTITY):
        return False
    if type(a) is tuple:
        return len(a) == len(b) and all(x is y or _equal(x, y) for x, y in zip(a, b, strict=True))
    return isinstance(a, _CONSTANTS) and bool(a == b)


def _is_settled(module: str | None) -> bool:
    return module is not None and module.partition(".")[0] in _SETTLED


def _named(code: types.CodeType) -> set[str]:
    """The names and texts that a function uses, inner ones included."""
    found = set(code.co_names)
    for x in code.co_consts:
        if isinstance(x, str):
            found.add(x)
        elif isinstance(x, types.CodeType):
            found |= _named(x)
    return found


def _cells(f: types.FunctionType) -> Iterator[tuple[Any, Any]]:
    for cell in f.__closure__ or ():
        try:
            yield cell, cell.cell_contents
        except ValueError:  # it is still empty
            pass


def _functions(f: Any) -> Iterator[types.FunctionType]:
    """A function, and those of its user that it names: helpers, and methods of objects."""
    todo = [f]
    seen: set[int] = set()
    while todo and len(seen) < FUNCTIONS:
        x = todo.pop()
        x = getattr(x, "func", x) if not isinstance(x, types.FunctionType) else x  # (a partial one)
        x = getattr(x, "__wrapped__", x)
        holder = getattr(x, "__self__", None)
        x = getattr(x, "__func__", x)
        if not isinstance(x, types.FunctionType) or id(x) in seen:
            continue
        seen.add(id(x))
        yield x
        names = _named(x.__code__)
        around = [value for _, value in _cells(x)] + ([] if holder is None else [holder])
        if not _is_settled(x.__module__):
            around += [x.__globals__[name] for name in names if name in x.__globals__]
        for value in around:
            if isinstance(value, GenericFunction):
                continue
            if callable(value) and not isinstance(value, type):
                todo.append(value)
            kind = type(value)
            if not _is_settled(kind.__module__) and kind.__module__ != "builtins":
                todo += [m for name in names if isinstance(m := getattr(kind, name, None), types.FunctionType)]


def rebound_outside(f: Any) -> str:
    """The variable outside of itself that a function binds anew (`global x`, `nonlocal x`), or ''."""
    for g in _functions(f):
        if not _is_settled(g.__module__):
            found = _rebound(g.__code__, set(g.__code__.co_freevars))
            if found:
                return found
    return ""


class ReboundOutside(TraceError):
    """A function binds a variable outside of itself anew, which a program would do once."""


def rebinds(f: Any, name: str) -> ReboundOutside:
    """The error for that."""
    return ReboundOutside(
        f"{_called(f)}() binds `{name}` anew, which is a variable outside of it: a program would do so once, "
        "when it is made. Pass it in and return its new value."
    )


def changes_outside(f: Any) -> TraceError:
    """The error for a program whose constants change again and again."""
    return TraceError(
        f"Numbers that {_called(f)}() finds outside of itself change from call to call, and they are constants "
        "of a program. Pass them in: `f(x, mb.asarray(dt))`."
    )


def _called(f: Any) -> str:
    return getattr(f, "__name__", type(f).__name__)


def _rebound(code: types.CodeType, outside: set[str]) -> str:
    for step in dis.get_instructions(code):
        if step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            return str(step.argval)
        if step.opname in ("STORE_DEREF", "DELETE_DEREF") and step.argval in outside:
            return str(step.argval)
    for x in code.co_consts:
        if isinstance(x, types.CodeType):
            found = _rebound(x, outside & set(x.co_freevars))
            if found:
                return found
    return ""
