"""What a compiled function is called with: the arrays in it, and what all else there is as a key.

Arrays go by their types and shapes; numbers, texts and whatever is no array by their values: they are constants
of the program.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.programs.graph import number_key
from mirabelle.dispatch import verbs

# Python's numbers, which are constants of a program.
_NUMBERS = (int, float, complex, bool)


# What stands in a key by its value, and modules and classes, which nobody changes.
_BY_VALUE = (
    *(AbstractArray, np.ndarray, np.generic, np.dtype, int, float, complex, str, bytes),
    *(list, tuple, dict, set, frozenset, range, slice, type, types.ModuleType),
)


class Static:
    """An argument that goes by its value, and is what it is in the program, though it may be an array."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.key = "static", _value_key(value)


def _value_key(x: Any) -> Any:
    """What equal values share: arrays, containers, anything that can be hashed; else the object itself."""
    if isinstance(x, (AbstractArray, np.ndarray)):
        data = np.ascontiguousarray(verbs.to_numpy(x) if isinstance(x, AbstractArray) else x)
        return type(x), data.dtype.str, data.shape, data.tobytes()
    kind = type(x)
    if kind is list or kind is tuple:
        return (kind, *map(_value_key, x))
    if kind is dict:
        return (kind, *[(k, _value_key(y)) for k, y in x.items()])
    if kind in _NUMBERS or isinstance(x, np.generic):
        return number_key(x)
    try:
        hash(x)
    except TypeError:
        return "object", id(x)
    return kind, x


class Arguments:
    """The arrays among some arguments, each once, and the key of everything.

    `keep` holds the objects that the key names by their identity.
    """

    __slots__ = ("arrays", "composed", "keep", "key", "numbers", "seen")

    def __init__(self, arguments: Any) -> None:
        self.arrays: list[Any] = []
        # Those that are made of several arrays, or show others.
        self.composed: list[Any] = []
        self.seen: dict[int, int] = {}
        self.keep: list[Any] = []
        self.numbers = 0
        self.key = self.of(arguments)

    def objects(self) -> list[Any]:
        """Those of which the key says which they are, and not what they hold."""
        found = [x.value if type(x) is Static else x for x in self.keep]
        return [x for x in found if not isinstance(x, _BY_VALUE) and x is not None]

    def shape_of(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """How a shape stands in the key."""
        return shape

    def of(self, x: Any) -> Any:
        if isinstance(x, DenseArray):
            at = self.seen.get(id(x))
            if at is not None:
                return "again", at
            self.seen[id(x)] = len(self.arrays)
            self.arrays.append(x)
            return type(x), self.shape_of(x._node.shape)
        kind = type(x)
        if kind in _NUMBERS or isinstance(x, np.generic):
            self.numbers += 1
            return number_key(x)
        if kind in (str, bytes, type(None)) or isinstance(x, np.dtype):
            return x
        if kind is tuple or kind is list:
            return (kind, *[self.of(item) for item in x])
        if kind is dict:
            return (kind, *[(k, self.of(item)) for k, item in x.items()])
        if kind is set or kind is frozenset:
            return kind, frozenset(self.of(item) for item in x)
        if kind is Static:
            self.keep.append(x)
            return x.key
        if isinstance(x, AbstractArray):
            self.composed.append(x)
            return kind, tuple([self.of(part) for part in x.__reduce__()[1]])  # type: ignore[index]
        if isinstance(x, np.ndarray):
            # (What is shared is known by its memory: the same array twice is one argument.)
            raise TypeError("NumPy's arrays are made arrays of ours before this.")
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return (kind, *[self.of(item) for item in x])
        if isinstance(x, slice):
            return "slice", self.of(x.start), self.of(x.stop), self.of(x.step)
        if dataclasses.is_dataclass(x) and not isinstance(x, type):
            return kind, tuple([self.of(getattr(x, f.name)) for f in dataclasses.fields(x)])
        if isinstance(x, range) or x is Ellipsis:
            return x
        self.keep.append(x)
        return function_key(x, self.keep) if isinstance(x, types.FunctionType) else ("object", id(x))


def function_key(f: types.FunctionType, keep: list[Any], depth: int = 0) -> Any:
    """What a function of Python's is, however often its `def` has been run: its code, and what that finds."""
    found = [f.__code__, id(f.__globals__)]
    cells = [c.cell_contents for c in f.__closure__ or ()] if _is_bound(f) else None
    if cells is None or f.__kwdefaults__ or depth > 3:
        return "object", id(f)
    for x in (*(f.__defaults__ or ()), None, *cells):
        kind = type(x)
        if kind in _NUMBERS or isinstance(x, np.generic):
            found.append(number_key(x))
        elif kind in (str, bytes, type(None)):
            found.append(x)
        elif isinstance(x, types.FunctionType):
            found.append(function_key(x, keep, depth + 1))
        else:
            keep.append(x)
            found.append(("object", id(x)))
    return "function", *found


def _is_bound(f: types.FunctionType) -> bool:
    """Has each variable that a function finds around it a value?"""
    try:
        return all(c.cell_contents is c.cell_contents for c in f.__closure__ or ())
    except ValueError:
        return False


def plain_key(args: Sequence[Any]) -> tuple[Any, list[Any]]:
    """The key of arguments that are arrays, numbers and modules, and the arrays; None for the key of others.

    Arrays alone are told by their types and shapes, as `Compiled.__call__` does at once.
    """
    key: list[Any] = []
    arrays: list[Any] = []
    for x in args:
        if isinstance(x, DenseArray):
            key.append((type(x), x._node.shape))
            arrays.append(x)
        elif type(x) in _NUMBERS or isinstance(x, np.generic):
            key.append(number_key(x))
        elif type(x) is types.ModuleType:
            key.append(("object", id(x)))
        else:
            return None, []
    return tuple(key), arrays


def what_changes(keys: Iterable[Any]) -> tuple[bool, bool]:
    """Do the keys of a function's programs differ in shapes of arrays, and in Python's numbers?"""
    shapes, numbers = set(), set()
    for key in keys:
        found: tuple[list[Any], list[Any]] = ([], [])
        _sort(key, *found)
        shapes.add(tuple(found[0]))
        numbers.add(tuple(found[1]))
    return len(shapes) > 1, len(numbers) > 1


def _sort(key: Any, shapes: list[Any], numbers: list[Any]) -> None:
    """The shapes and the numbers in a key (see `Arguments.of`)."""
    if type(key) is not tuple:
        return
    kind = key[0] if len(key) == 2 and isinstance(key[0], type) else None
    if kind is not None and issubclass(kind, DenseArray):
        shapes.append(key[1])
    elif kind is not None and issubclass(kind, (*_NUMBERS, np.generic)):
        numbers.append(key)
    else:
        for part in key:
            _sort(part, shapes, numbers)


def mapped(nest: Any, array: Any) -> Any:
    """A nest of arguments with a function applied to each array of ours or NumPy's in it."""
    if isinstance(nest, (AbstractArray, np.ndarray)):
        return array(nest)
    kind = type(nest)
    if kind is tuple or kind is list:
        return kind([mapped(x, array) for x in nest])
    if kind is dict:
        return {k: mapped(x, array) for k, x in nest.items()}
    if isinstance(nest, tuple) and hasattr(nest, "_fields"):
        return kind(*[mapped(x, array) for x in nest])
    if dataclasses.is_dataclass(nest) and not isinstance(nest, type):
        fields = [f for f in dataclasses.fields(nest) if f.init]
        values = {f.name: mapped(getattr(nest, f.name), array) for f in fields}
        if all(values[f.name] is getattr(nest, f.name) for f in fields):
            return nest
        return dataclasses.replace(nest, **values)
    return nest


def has_numpy(nest: Any) -> bool:
    """Is there an array of NumPy's among some arguments?"""
    if isinstance(nest, np.ndarray):
        return True
    if isinstance(nest, (tuple, list)):
        return any(map(has_numpy, nest))
    if isinstance(nest, dict):
        return any(map(has_numpy, nest.values()))
    if dataclasses.is_dataclass(nest) and not isinstance(nest, type):
        return any(has_numpy(getattr(nest, f.name)) for f in dataclasses.fields(nest))
    return False
