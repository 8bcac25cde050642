"""What a program is called with, as text: kept in files, and compared with the arguments of a call.

Arrays are said by dtype and shape, each once; numbers and texts, which are constants of the program, by what
they are; objects of classes of your own by the names of their classes, and by what is in them.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.programs.texts import NoText, dtype_text, text_of
from mirabelle.arraytypes.wrappers import Wrapper

_NUMBERS = (bool, int, float, complex)


def signature_text(key: Any, arrays: list[tuple[np.dtype, tuple[int, ...]]]) -> Any:
    """The key of arguments (see `signature.Arguments`) as JSON knows it: of lists, dictionaries, numbers and
    texts.

    `arrays` are the dtypes and shapes of the arrays, in their order.
    """
    rest = iter(arrays)
    return _text(key, rest)


def _text(key: Any, rest: Any) -> Any:
    if not isinstance(key, tuple):
        if isinstance(key, (range, bytes)):
            return {"value": {"repr": repr(key)}}
        return {"value": text_of(key)}
    head = key[0]
    if head == "again":
        return {"again": key[1]}
    if head == "slice":
        return {"slice": [_text(k, rest) for k in key[1:]]}
    if head == "object":
        raise NoText("an argument that is no array, number or text, and that is known to this process alone")
    assert isinstance(head, type), key
    if issubclass(head, DenseArray):
        dtype, shape = next(rest)
        return {"array": [dtype_text(dtype), list(shape)]}
    if head in _NUMBERS or issubclass(head, np.generic):
        return {"number": [head.__name__, key[1] if type(key[1]) is str else repr(key[1])]}
    if head is tuple or head is list:
        return {head.__name__: [_text(k, rest) for k in key[1:]]}
    if head is dict:
        return {"dict": [[text_of(k), _text(item, rest)] for k, item in key[1:]]}
    if issubclass(head, Wrapper):
        name, parts = head.__qualname__, key[1][1:]  # (The first is the class itself.)
    elif issubclass(head, AbstractArray) or dataclasses.is_dataclass(head):
        name, parts = head.__qualname__, key[1]
    else:
        name, parts = head.__qualname__, key[1:]
    # (A wrapper's parameters name the type of what it wraps, which may be another when the program is loaded.)
    return {"object": [name.split("[")[0], [_text(k, rest) for k in parts]]}


def arrays_in(text: Any) -> list[tuple[str, list[int]]]:
    """The dtypes and shapes of the arrays in a text, in order. Anything else than such a text is an error."""
    found: list[tuple[str, list[int]]] = []
    _collect(text, found)
    return found


def _collect(text: Any, found: list[tuple[str, list[int]]]) -> None:
    ((word, given),) = text.items()
    if word == "array":
        code, shape = given
        found.append((code, shape))
    elif word in ("tuple", "list", "slice"):
        for x in given:
            _collect(x, found)
    elif word == "dict":
        for _, x in given:
            _collect(x, found)
    elif word == "object":
        name, parts = given
        if type(name) is not str:
            raise ValueError("an object without a name is an argument")
        for x in parts:
            _collect(x, found)
    elif word == "number":
        name, value = given
        if type(name) is not str or type(value) is not str:
            raise ValueError("a number without a value is an argument")
    elif word == "again":
        if type(given) is not int or not 0 <= given < len(found):
            raise ValueError("an array is an argument again before it is one")
    elif word != "value":
        raise ValueError(f"an argument is called {word!r}")


def bound(
    parameters: list[str], text: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments by place and by name as the program was made for: as many by place, the others in its order."""
    try:
        wanted, named = text["tuple"]
        count, names = len(wanted["tuple"]), [k["str"] for k, _ in named["dict"]]
    except (KeyError, TypeError, ValueError):
        return args, kwargs
    if len(args) == count and list(kwargs) == names:
        return args, kwargs
    by_name = dict(zip(parameters, args, strict=False))
    if len(args) > len(parameters) or any(k in by_name for k in kwargs):
        return args, kwargs
    by_name.update(kwargs)
    first, others = parameters[:count], names
    if len(first) == count and set(by_name) == {*first, *others}:
        return tuple([by_name[k] for k in first]), {k: by_name[k] for k in others}
    return args, kwargs


# Saying what differs


def difference(parameters: list[str], wanted: Any, given: Any) -> str:
    """A sentence about the first difference between two texts of arguments, with what to do."""
    try:
        (places, names), (given_places, given_names) = wanted["tuple"], given["tuple"]
        a, b = places["tuple"], given_places["tuple"]
        keys, given_keys = ([_key(k) for k, _ in x["dict"]] for x in (names, given_names))
        if len(a) != len(b) or set(keys) != set(given_keys):
            return f"it takes {_told(len(a), keys)}, and is given {_told(len(b), given_keys)}."
        by_key = {_key(k): x for k, x in given_names["dict"]}
        pairs = [(parameters[i] if i < len(parameters) else str(i), x, b[i]) for i, x in enumerate(a)]
        pairs += [(_key(k), x, by_key[_key(k)]) for k, x in names["dict"]]
        for name, x, y in pairs:
            said = _differing(f"argument {name}", x, y)
            if said is not None:
                return said
    except (KeyError, TypeError, ValueError, IndexError):
        pass
    return "they are nested in another way."


def _key(text: Any) -> str:
    ((_, value),) = text.items()
    return str(value)


def _told(count: int, names: list[str]) -> str:
    said = f"{count} argument{'s' * (count != 1)}"
    return said + (f" and those named {', '.join(names)}" if names else "")


def _differing(where: str, wanted: Any, given: Any) -> str | None:
    if wanted == given:
        return None
    ((a, x),), ((b, y),) = wanted.items(), given.items()
    if a == b == "array":
        said = f"{where} is {_shown(given)}, and the program takes {_shown(wanted)}. "
        if x[1] != y[1]:
            return said + "A program is for arrays of these shapes: compile and save one for others."
        return said + f"Convert it: `x.astype(mb.{np.dtype(x[0]).name})`."
    if a == b and a in ("tuple", "list", "slice") and len(x) == len(y):
        for i, (p, q) in enumerate(zip(x, y, strict=True)):
            said_below = _differing(f"{where}[{i}]", p, q)
            if said_below is not None:
                return said_below
    if a == b == "dict":
        if [k for k, _ in x] == [k for k, _ in y]:
            for (k, p), (_, q) in zip(x, y, strict=True):
                said_below = _differing(f"{where}[{_key(k)!r}]", p, q)
                if said_below is not None:
                    return said_below
        if sorted(map(_key, [k for k, _ in x])) == sorted(map(_key, [k for k, _ in y])):
            return f"{where} has its keys in another order, which is {', '.join(_key(k) for k, _ in x)}."
        return f"{where} has other keys than {', '.join(_key(k) for k, _ in x)}."
    if a == b == "object" and x[0] == y[0] and len(x[1]) == len(y[1]):
        for i, (p, q) in enumerate(zip(x[1], y[1], strict=True)):
            said_below = _differing(f"part {i} of {where}", p, q)
            if said_below is not None:
                return said_below
    if a == "array" and b == "object":
        return f"{where} is a {y[0]}, and the program takes {_shown(wanted)}. Pass its contents: `mb.copy(x)`."
    if a in ("number", "value"):
        return (
            f"{where} is {_shown(given)}, and the program was made for {_shown(wanted)}, which is a constant "
            "of it. Compile and save one for other values, or let it be an array: `mb.asarray(x)`."
        )
    return f"{where} is {_shown(given)}, and the program takes {_shown(wanted)}."


def _shown(text: Any) -> str:
    ((word, x),) = text.items()
    if word == "array":
        return f"{np.dtype(x[0]).name}{x[1]}"
    if word == "again":
        return "an array that was given before"
    if word == "number":
        return str(x[1])
    if word == "object":
        return f"a {x[0]}"
    if word == "value":
        return "None" if x is None else repr(_key(x))
    return f"a {word} of {len(x)}"
