"""What a program is called with, as text: kept in files, and compared with the arguments of a call.

It is a list of what stands where: `["argument x[0]", "array", "float64[3]"]`. Arrays are said by dtype
and shape, each once; numbers and texts, which are constants of it, by what they are; containers and objects
by the names of their classes, and by what is in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.programs.texts import NoText, Writer, dtype_text
from mirabelle.arraytypes.wrappers import Wrapper

_NUMBERS = (bool, int, float, complex)


def signature_text(key: Any, parameters: list[str], arrays: Sequence[Any]) -> list[list[str]]:
    """The key of arguments (see `signature.Arguments`) as a list of what stands where.

    `arrays` are the arrays among them, in their order, or what has their dtypes and shapes.
    """
    _, (_, *places), (_, *names) = key
    text = Signature(arrays)
    text.say("", "arguments", _counted(len(places), [str(k) for k, _ in names]))
    for i, x in enumerate(places):
        text.add(f"argument {parameters[i] if i < len(parameters) else i}", x)
    for k, x in names:
        text.add(f"argument {k}", x)
    return text.entries


def _counted(count: int, names: list[str]) -> str:
    said = f"{count} argument{'s' * (count != 1)}"
    return said + (f" and those named {', '.join(names)}" if names else "")


class Signature:
    """What stands where among arguments, as far as it has been gone through."""

    def __init__(self, arrays: Sequence[Any]) -> None:
        self.arrays = iter(arrays)
        self.entries: list[list[str]] = []
        # Where each of the arrays stands.
        self.where: list[str] = []

    def say(self, where: str, kind: str, what: str) -> None:
        self.entries.append([where, kind, what])

    def add(self, where: str, key: Any) -> None:
        head = key[0] if isinstance(key, tuple) else None
        if head is None:
            self.say(where, "value", _shown(key))
        elif head == "again":
            self.say(where, "again", f"an array that was given before, as {self.where[key[1]]}")
        elif not isinstance(head, type) and head != "slice":
            raise NoText(
                "an argument that is no array, number or text, and that is known to this process alone"
            )
        elif head != "slice" and issubclass(head, DenseArray):
            x = next(self.arrays)
            self.where.append(where)
            dtype_text(x.dtype)  # (which says if there is no text for it)
            self.say(where, "array", f"{x.dtype.name}{list(x.shape)}")
        elif head in _NUMBERS or (head != "slice" and issubclass(head, np.generic)):
            said = key[1] if type(key[1]) is str else repr(key[1])
            self.say(where, "value", said if head in _NUMBERS else f"{head.__name__}({said})")
        else:
            self._container(where, head, key)

    def _container(self, where: str, head: Any, key: Any) -> None:
        parts: Iterator[tuple[str, Any]]
        if head is dict:
            self.say(where, "container", f"a dict of {', '.join(_shown(k) for k, _ in key[1:])}")
            parts = iter([(f"{where}[{k!r}]", x) for k, x in key[1:]])
        elif head in (tuple, list, "slice"):
            self.say(where, "container", f"a {getattr(head, '__name__', head)} of {len(key) - 1}")
            parts = iter([(f"{where}[{i}]", x) for i, x in enumerate(key[1:])])
        else:
            inside = key[1:]
            if issubclass(head, Wrapper):
                inside = key[1][1:]  # (The first is the class itself.)
            elif issubclass(head, AbstractArray) or hasattr(head, "__dataclass_fields__"):
                inside = key[1]
            # (A wrapper's parameters name the type of what it wraps, which may be another later on.)
            self.say(where, "object", f"a {head.__qualname__.split('[')[0]}")
            parts = iter([(f"part {i} of {where}", x) for i, x in enumerate(inside)])
        for place, x in parts:
            self.add(place, x)


def _shown(x: Any) -> str:
    if not isinstance(x, (range, bytes)):
        Writer().value(x)  # (which says if there is no text for it)
    return repr(x)


def bound(
    parameters: list[str], text: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments by place and by name as the program was made for: as many by place, the others in its order."""
    said, _, named = text[0][2].partition(" and those named ")
    count, names = int(said.split()[0]), named.split(", ") if named else []
    by_name = dict(zip(parameters, args, strict=False))
    repeated = len(args) > len(parameters) or any(k in by_name for k in kwargs)
    by_name.update(kwargs)
    if repeated or len(parameters) < count or set(by_name) != {*parameters[:count], *names}:
        return args, kwargs
    return tuple([by_name[k] for k in parameters[:count]]), {k: by_name[k] for k in names}


def difference(wanted: Any, given: Any) -> str:
    """A sentence about the first difference between two texts of arguments, with what to do."""
    for (where, kind, what), (_, other, said) in zip(wanted, given, strict=False):
        if (kind, what) == (other, said):
            continue
        if kind == "arguments":
            return f"it takes {what}, and is given {said}."
        takes = f"{where} is {said}, and the program takes {what}."
        if kind == "value":
            return (
                f"{where} is {said}, and the program was made for {what}, which is a constant of it. Compile "
                "and save one for other values, or let it be an array: `mb.asarray(x)`."
            )
        if kind == "array" and other == "object":
            return f"{takes} Pass its contents: `mb.copy(x)`."
        if kind == other == "array":
            dtype, _, shape = what.partition("[")
            if shape == said.partition("[")[2]:
                return f"{takes} Convert it: `x.astype(mb.{dtype})`."
            return f"{takes} A program is for arrays of these shapes: compile and save one for others."
        return takes
    return "they are nested in another way."
