"""Side effects of functions that are captured: a program would have them once, when made, so they are refused.

What a function can reach is what it is called with, what it is bound to, what it closes over, and the globals
it names. Arrays there may not be written to (but for arguments, whose writes are part of the program), traced
arrays may not be left there, and arrays and numbers that are there may not be replaced by others. What is
refused is put back. Where the function can be cut, so may lists and sets not change, or generators of random
numbers: they would at each call. Anything else may change: that is how caches are filled.
"""

from __future__ import annotations

import collections
import contextlib
import contextvars
import copy
import dataclasses
import functools
import inspect
import itertools
import operator
import random
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mirabelle.arraytypes import recording
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.arraytypes.programs.errors import Because, TraceError, is_users, shown_line, user_line
from mirabelle.arraytypes.programs.traced import Traced
from mirabelle.arraytypes.wrappers import root_of

_GROWING = (list, dict, collections.deque, bytearray)
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
# What dictionaries hold that are no caches, but collect; and what they hold that are caches, or count.
_COLLECTED = (list, dict, set, collections.deque)
_COUNTED = (*_NUMBERS, str)


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
    defaults = getattr(own, "__defaults__", None) or ()
    found: dict[str, Any] = dict(
        zip(code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount], defaults, strict=True)
    )
    found.update(getattr(own, "__kwdefaults__", None) or {})
    if isinstance(own, types.MethodType):
        found[code.co_varnames[0]] = own.__self__
    for name, cell in zip(code.co_freevars, getattr(own, "__closure__", None) or (), strict=False):
        with contextlib.suppress(ValueError):  # (a cell that is still empty)
            found[name] = cell.cell_contents
    known = own.__globals__
    found.update({name: known[name] for name in _names_in(code) if name in known})
    return found


def _names_in(code: types.CodeType) -> list[str]:
    """The names that code asks for, and what is written within it: comprehensions, functions, classes."""
    inner = [name for c in code.co_consts if isinstance(c, types.CodeType) for name in _names_in(c)]
    return [*code.co_names, *inner]


def outside_of_all(f: Callable[..., Any]) -> dict[str, Any]:
    """The same with what the functions find that it calls, and those that they call."""
    found = outside(f)
    todo = [(name, x) for name, x in found.items() if isinstance(x, types.FunctionType)]
    seen = {id(x) for _, x in todo}
    while todo and len(seen) <= MOST:
        name, helper = todo.pop()
        if not is_users(inspect.unwrap(helper)):
            continue
        for inner, x in outside(helper).items():
            found.setdefault(inner if found.get(inner) is x else f"{name}.{inner}", x)
            if isinstance(x, types.FunctionType) and id(x) not in seen:
                seen.add(id(x))
                todo.append((f"{name}.{inner}", x))
    return found


def _names_of(f: Callable[..., Any]) -> tuple[str, ...]:
    code = getattr(f, "__code__", None)
    return () if code is None else code.co_varnames[isinstance(f, types.MethodType) : code.co_argcount]


def children(x: Any) -> list[tuple[str, Any, Any]]:
    """What a container or an object holds: how one writes it behind its name, its key, and the thing."""
    if type(x) is type and _is_users_class(x):
        kept = (*_NUMBERS, *_ARRAYS, *_GROWING)
        return [(f".{k}", k, y) for k, y in list(vars(x).items())[:MOST] if isinstance(y, kept)]
    if isinstance(x, (*_PLAIN, AbstractArray, Communicator)):  # (what engines note of their work is their own)
        return []
    if isinstance(x, (list, tuple, collections.deque)):
        return [(f"[{i}]", i, y) for i, y in enumerate(itertools.islice(x, MOST))]
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
        # Sets, and what was in them.
        self.sets: list[tuple[str, Any, set[Any]]] = []
        # Generators of random numbers, and how far they are.
        self.drawn: list[tuple[str, Any, Any]] = []
        # How many things were in lists and dictionaries, of which children are the first.
        self.counts: list[int] = []
        # All that was in lists and dictionaries.
        self.kept: list[tuple[str, Any, Any]] = []
        for name, x in reached(given):
            if isinstance(x, (list, dict)) or dataclasses.is_dataclass(x):
                self.held.append((name, x, children(x), True))
        for name, x in reached({**outside_of_all(f), **objects}):
            if isinstance(x, AbstractArray):
                root = root_of(x)  # (of what shows another array, that one)
                if isinstance(root, DenseArray) and not isinstance(root, Traced):
                    self.names[id(root)] = name
                    self.keep.append(root)
            elif isinstance(x, (np.random.Generator, random.Random)):
                self.drawn.append((name, x, _state_of(x)))
            elif isinstance(x, set):
                self.sets.append((name, x, set(x)))
            elif not isinstance(x, _PLAIN) or (type(x) is type and _is_users_class(x)):
                self.held.append((name, x, children(x), False))
                if isinstance(x, _GROWING):
                    self.kept.append((name, x, dict(x) if isinstance(x, dict) else list(x)))
        self.counts = [len(x) if isinstance(x, _GROWING) else 0 for _, x, _, _ in self.held]

    def note(self, root: Any) -> None:
        """An array is about to be written to."""
        if watching.get() is self and id(root) in self.names:
            raise written_outside(root)

    def put_back(self, failed: bool = False) -> TraceError | None:
        """Undo what the function may not leave behind; the error that says so, if there is anything.

        What was added to lists and dictionaries goes away where something is left behind, or has `failed`: the
        function runs once more then, as Python does it, and adds it again.
        """
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
        grown = [
            (name, x, n, argument)
            for (name, x, _, argument), n in zip(self.held, self.counts, strict=True)
            if isinstance(x, _GROWING) and len(x) > n
        ]
        for name, x, n, argument in grown:
            if argument:
                found = found or _left(name, "changes what its arguments hold")
            elif any(_holds_traced(y) for y in _added(x, n)):
                found = found or _left(name, "leaves arrays behind")
            elif may_be_cut.get() and not _is_cache(x, _added(x, n)):
                found = found or _left(name, "adds to a list")
        for name, x, held in self.kept if may_be_cut.get() else ():
            if _lacks(x, held):
                found = found or _left(name, "takes from a list or a dictionary, or replaces what is in it")
        for name, x, held in self.sets if may_be_cut.get() else ():
            if x != held:
                found = found or _left(name, "changes a set")
        if failed or found is not None:
            for _, x, n, _ in grown:
                _let_go(x, n)
            for _, x, held in self.kept:
                if len(x) != len(held) or _lacks(x, held):
                    x.clear()
                    x.update(held) if isinstance(x, dict) else x.extend(held)
            for _, x, held in self.sets:
                x.clear()
                x.update(held)
        for name, x, state in self.drawn if may_be_cut.get() else ():
            if not _is_at(x, state):
                found = found or _left(name, "draws random numbers")
                _set_state(x, state)
        counts = [
            (x, n) for _, x, n, _ in grown if any(isinstance(y, _COUNTED) for y in _added(x, n))
        ]  # fmt: skip
        if found is None and not failed and counts and may_be_cut.get():
            return Filled(counts)
        return found


def _lacks(x: Any, held: Any) -> bool:
    """Is something gone from a list or a dictionary that it held, or replaced in a list?"""
    if isinstance(x, dict):
        return not held.keys() <= x.keys()
    return len(x) < len(held) or any(map(operator.is_not, x, held))


def _is_cache(x: Any, added: list[Any]) -> bool:
    """Is it what caches are made of: a dictionary that does not count or collect?"""
    counts = isinstance(x, (collections.Counter, collections.defaultdict))
    return isinstance(x, dict) and not counts and not any(isinstance(y, _COLLECTED) for y in added)


class Filled(TraceError):
    """Numbers were added to a dictionary: nothing is wrong if that is not done again now."""

    def __init__(self, grown: list[tuple[Any, int]]) -> None:
        super().__init__("A function that is being compiled adds numbers to a dictionary.")
        self.grown = grown

    def undo(self) -> None:
        for x, n in self.grown:
            _let_go(x, n)


def _is_users_class(x: type) -> bool:
    return x.__module__ == "__main__" or is_users(x)


def _state_of(x: Any) -> Any:
    """How far a generator of random numbers is."""
    return x.getstate() if isinstance(x, random.Random) else copy.deepcopy(x.bit_generator.state)


def _is_at(x: Any, state: Any) -> bool:
    return _same(_state_of(x), state)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return all(_same(a[k], b[k]) for k in a)
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else bool(a == b)


def _set_state(x: Any, state: Any) -> None:
    if isinstance(x, random.Random):
        x.setstate(state)
    else:
        x.bit_generator.state = state


def _added(x: Any, n: int) -> list[Any]:
    """What was added to a list or a dictionary that had `n` entries: behind them."""
    return list(itertools.islice(x.values() if isinstance(x, dict) else x, n, None))


def _let_go(x: Any, n: int) -> None:
    """Take away what was added."""
    if isinstance(x, dict):
        for key in list(itertools.islice(x, n, None)):
            del x[key]
    else:
        while len(x) > n:
            x.pop()


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
    if isinstance(x, type):
        if old is not _NOTHING:
            setattr(x, key, old)
        return
    holder = x if isinstance(x, _GROWING) else getattr(x, "__dict__", None)
    if holder is None or isinstance(x, tuple):
        return
    if old is not _NOTHING:
        holder[key] = old
    elif isinstance(holder, dict) and holder is not x:  # (what was added to `x` itself goes away with all else)
        del holder[key]


# Is a function captured that can be cut where it does something?
may_be_cut: contextvars.ContextVar[bool] = contextvars.ContextVar("mirabelle_may_be_cut", default=False)
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
        except BaseException:
            effects.put_back(failed=True)
            raise
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
