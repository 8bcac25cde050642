"""What a compiled function finds outside of itself, and whether that is what it was.

Numbers, texts and arrays that a function reads from globals, from what it closes over, or from objects and
containers there or among its arguments, are constants of its program. They are looked at before each call:
where one is another by now, or an array was written to, the program is captured anew.

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
import functools
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.programs.errors import TraceError
from mirabelle.arraytypes.wrappers import root_of
from mirabelle.dispatch.generic import GenericFunction
from mirabelle.dispatch.tree import Leaf

# How many functions are looked through, and how far from them things are looked at.
FUNCTIONS, DEPTH = 64, 4
# Of NumPy's arrays of so many bytes, and containers of so many things, contents are compared; of larger ones
# only which they are.
SMALL, FEW = 1 << 15, 1024
# Of dictionaries with more keys only the names and texts in functions are looked up.
FEW_KEYS = 64
_CONSTANTS = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype)
# Modules whose values and functions do not change.
_SETTLED = frozenset(sys.stdlib_module_names) | {"numpy", "scipy", "mirabelle", "numba", "llvmlite", "cupy"}
_NOTHING = object()


class _Slots:
    """The attributes of an object that has no dictionary."""

    __slots__ = ("of",)

    def __init__(self, of: Any) -> None:
        self.of = of

    def get(self, name: str, default: Any) -> Any:
        return getattr(self.of, name, default)


class _OfClass(_Slots):
    """What a class says itself."""

    __slots__ = ()

    def get(self, name: str, default: Any) -> Any:
        return vars(self.of).get(name, default)


class OutsideValues:
    """What a function found outside of itself."""

    __slots__ = ("cells", "contents", "entries", "lists", "nodes")

    def __init__(self, f: Callable[..., Any], given: Iterable[Any] = ()) -> None:
        """Of a function, and of what it is `given`: what objects hold, and what functions among them find."""
        given = [x for x in given if not _stays(x)]
        functions = list(_functions(f, given))
        # The names that the functions use, and the texts in them, by which they may ask a dictionary.
        named = {name for g in functions for name in _named(g.__code__)}
        texts = {text for g in functions for text in _texts(g.__code__)}
        # Of dictionaries (those of modules and objects, too), of what functions close over, and of containers.
        self.entries: list[tuple[Any, Any, Any]] = []
        self.cells: list[tuple[Any, Any]] = []
        self.lists: list[tuple[Any, tuple[Any, ...]]] = []
        # What arrays hold: of ours the version and how often it was written to, of NumPy's the bytes.
        self.nodes: list[tuple[Any, Any, int]] = []
        self.contents: list[tuple[Any, bytes]] = []
        seen: set[int] = set()
        for g in functions:
            for cell, value in _cells(g):
                self.cells.append((cell, value))
                self._look_into(value, named, texts, seen)
            if g is functions[0] or not _is_settled(g.__module__):
                self._look_under(g.__globals__, _named(g.__code__), named, texts, seen)
        for x in [f, *given]:
            self._look_into(getattr(x, "__self__", x), named, texts, seen)

    def _look_into(self, x: Any, named: set[str], texts: set[str], seen: set[int], depth: int = 0) -> None:
        """Note what a thing holds, as far as the functions may use it."""
        if id(x) in seen or depth >= DEPTH or isinstance(x, _CONSTANTS) or _stays(x):
            return
        seen.add(id(x))
        if isinstance(x, np.ndarray):
            if x.nbytes <= SMALL and not x.dtype.hasobject:
                self.contents.append((x, x.tobytes()))
        elif isinstance(x, AbstractArray):
            root = root_of(x)
            if isinstance(root, DenseArray):
                node = root._node
                if type(node) is Leaf and node.foreign and isinstance(node.view, np.ndarray):
                    self._look_into(node.view, named, texts, seen, depth)  # (NumPy may write there)
                self.nodes.append((root, node, getattr(node, "writes", 0)))
        elif isinstance(x, (list, tuple, set, frozenset)):
            if len(x) <= FEW:
                self.lists.append((x, tuple(x)))
                for value in tuple(x):
                    self._look_into(value, named, texts, seen, depth + 1)
        elif isinstance(x, dict):
            if len(x) <= FEW_KEYS:
                keys = list(x)
                self.lists.append((x, tuple(keys)))
            else:
                keys = [k for k in list(x) if not isinstance(k, str) or k in named or k in texts][:FEW]
                self.entries += [(x, text, _NOTHING) for text in texts if text not in x]
            self._look_under(x, keys, named, texts, seen, depth)
        elif isinstance(x, types.ModuleType):
            # (What modules of the user's refer to is not followed.)
            self._look_under(vars(x), named, named, texts, seen, DEPTH)
        elif not isinstance(x, types.FunctionType):
            kinds = [k for k in (x if isinstance(x, type) else type(x)).__mro__ if not _stays(k)]
            holders: list[Any] = [_OfClass(k) for k in kinds]
            if not isinstance(x, type):
                holders.insert(0, vars(x) if hasattr(x, "__dict__") else _Slots(x))
            # What a class says may come to be hidden by who does not say it yet.
            said = {name for k in kinds for name in named if name in vars(k)}
            for held in holders:
                self.entries += [
                    (held, name, _NOTHING) for name in said if held.get(name, _NOTHING) is _NOTHING
                ]
                self._look_under(held, named, named, texts, seen, depth)

    def _look_under(
        self, held: Any, names: Any, named: set[str], texts: set[str], seen: set[int], depth: int = 0
    ) -> None:
        """Note what stands under some names, and what that holds."""
        for name in names:
            value = held.get(name, _NOTHING)
            if value is not _NOTHING and not _stays(value):
                self.entries.append((held, name, value))
                self._look_into(value, named, texts, seen, depth + 1)

    def that_stayed(self, after: OutsideValues) -> OutsideValues | None:
        """Of what was noted before a capture and `after` it what is the same: a function may fill caches, and
        lists of its own, when it is captured. None if that is nothing."""
        for name in ("entries", "cells", "lists", "contents"):
            before = {(_id(x), *key): value for x, *key, value in getattr(self, name)}
            kept = [
                (x, *key, value)
                for x, *key, value in getattr(after, name)
                if (known := before.get((_id(x), *key), _NEW)) is value or _equal(known, value)
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
        for array, node, writes in self.nodes:
            if array._node is not node or getattr(node, "writes", 0) != writes:
                return False
        for x, values in self.lists:
            if len(x) != len(values) or not all(a is b or _equal(a, b) for a, b in zip(x, values, strict=True)):
                return False
        return all(array.tobytes() == known for array, known in self.contents)


# (What was not there, or not looked at, before.)
_NEW = object()


def _id(x: Any) -> int:
    return id(x.of) if isinstance(x, _Slots) else id(x)


def _stays(x: Any) -> bool:
    """Is it a module, a class or a function that nobody changes?"""
    if isinstance(x, types.ModuleType):
        return _is_settled(x.__name__)
    if isinstance(x, GenericFunction):
        return True
    known = isinstance(x, (type, types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType))
    return known and (_is_settled(x.__module__) if hasattr(x, "__module__") else True)


def _equal(a: Any, b: Any) -> bool:
    """Are two constants equal, or two tuples of such?"""
    if type(a) is not type(b):
        return False
    if type(a) is tuple:
        return len(a) == len(b) and all(x is y or _equal(x, y) for x, y in zip(a, b, strict=True))
    return isinstance(a, _CONSTANTS) and bool(a == b)


def _is_settled(module: Any) -> bool:
    return isinstance(module, str) and (module.partition(".")[0] in _SETTLED or module == "builtins")


def _named(code: types.CodeType) -> set[str]:
    """The names that a function uses, inner functions included."""
    found = set(code.co_names)
    for x in code.co_consts:
        if isinstance(x, types.CodeType):
            found |= _named(x)
    return found


def _texts(code: types.CodeType) -> set[str]:
    """The texts in a function. (Longer ones are for people.)"""
    found: set[str] = set()
    for x in code.co_consts:
        if isinstance(x, types.CodeType):
            found |= _texts(x)
        elif isinstance(x, str) and len(x) <= 40:
            found.add(x)
    return found


def _cells(f: types.FunctionType) -> Iterator[tuple[Any, Any]]:
    for cell in f.__closure__ or ():
        try:
            yield cell, cell.cell_contents
        except ValueError:  # it is still empty
            pass


def _behind(x: Any) -> Any:
    """The function behind what wraps one: a method, a property, a partial or compiled function."""
    for _ in range(8):
        if isinstance(x, types.FunctionType):
            return getattr(x, "__wrapped__", x)
        if isinstance(x, property):
            x = x.fget
        elif isinstance(x, (functools.partial, functools.cached_property)):
            x = x.func
        elif isinstance(x, (types.MethodType, staticmethod, classmethod)):
            x = x.__func__
        else:
            x = getattr(x, "__wrapped__", None)
    return None


def _functions(f: Any, given: Iterable[Any] = ()) -> Iterator[types.FunctionType]:
    """A function, and those of its user that it names or is given: helpers, and methods of objects."""
    todo = [f, *(x for x in given if not isinstance(x, type))]
    objects = [getattr(x, "__self__", x) for x in todo]
    seen: set[int] = set()
    names: set[str] = set()
    met: set[type] = set()
    while todo and len(seen) < FUNCTIONS:
        x = _behind(todo.pop())
        if x is None or id(x) in seen:
            continue
        seen.add(id(x))
        yield x
        found = _named(x.__code__)
        names |= found
        around = [value for _, value in _cells(x)]
        if not _is_settled(x.__module__):
            around += [x.__globals__[name] for name in found if name in x.__globals__]
        objects += around
        todo += [value for value in around if not isinstance(value, (type, GenericFunction))]
        for thing in objects:
            met.update(k for k in (thing if isinstance(thing, type) else type(thing)).__mro__ if not _stays(k))
        for kind in met:
            methods = [m for name, m in vars(kind).items() if name in names or name.startswith("__")]
            todo += [m for m in methods if (g := _behind(m)) is not None and id(g) not in seen]


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
