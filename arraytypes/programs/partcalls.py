"""Compiled functions that ask for this process's part of a divided array: `x.halo(1)`, `x.local`.

The program is one of local arrays: the parts of arguments and of results. The function is captured with divided
arrays whose parts are traced, so all that arrays over processes do is done while it is captured, by the same
code, and leaves behind what it does to the parts, and its messages: values of the program like others.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.distributed.darray import DArray, evaluated_view, evaluated_whole
from mirabelle.arraytypes.distributed.views import family_over
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.parametric import generic_class
from mirabelle.arraytypes.programs.errors import DifferentPrograms, TraceError
from mirabelle.arraytypes.programs.partmessages import in_company
from mirabelle.arraytypes.programs.signature import mapped
from mirabelle.arraytypes.structured.base import Structured
from mirabelle.dispatch import verbs
from mirabelle.dispatch.errors import CommunicationError
from mirabelle.dispatch.tree import Leaf


@dataclasses.dataclass(frozen=True)
class Part:
    """A divided array as this process's part of it, with how it is divided."""

    local: Any
    partition: Any
    comm: Any


@dataclasses.dataclass(frozen=True)
class Composed:
    """An array that is made of divided ones (over an axis tree, say), with the parts of these."""

    parts: tuple[Any, ...]
    kind: Any
    shape: Any
    how: Any


def knows(owner: Any, args: Any, kwargs: Any) -> bool:
    """Is a compiled function (a `Compiled`) one of this process's parts of divided arrays?"""
    try:
        program(owner, args, kwargs)
    except (DifferentPrograms, CommunicationError):
        raise
    except Exception:
        if owner.whole:
            raise
        return False
    owner._asks_for_parts = True
    return True


def program(owner: Any, args: Any, kwargs: Any) -> Any:
    """The program of parts for some arguments."""
    return of_parts(owner).program(*mapped((args, kwargs), taken_apart))


def called(owner: Any, args: Any, kwargs: Any) -> Any:
    """What the function returns, by a program of parts."""
    return joined(of_parts(owner)(*mapped((args, kwargs), taken_apart)))


def of_parts(owner: Any) -> Any:
    """A compiled function (a `Compiled`) of divided arrays as one of their parts."""
    if owner.of_parts is None:
        made = owner.of_parts = type(owner)(_apart(owner), schedule=owner.schedule, whole=True)
        made.passes = owner.passes
    return owner.of_parts


def _apart(owner: Any) -> Any:
    f = owner.function

    def by_parts(args: Any, kwargs: Any) -> Any:
        made: list[tuple[Any, Any]] = []
        args, kwargs = joined((args, kwargs), made)
        with in_company():
            result = owner.written(*args, **kwargs)
        for x, node in made:
            view = verbs.leaf_of(x).view
            if not view.whole or view.buffer.local.node is not node:
                raise TraceError(
                    f"{getattr(f, '__name__', 'f')}() is compiled, asks for parts of divided arrays (`x.halo`, "
                    "`x.local`) and writes to one that it is given. Let it return the new value, "
                    "`mb.DArray.from_local(part, x.layout)`, or write to a copy: `x = mb.copy(x)`."
                )
        return mapped(result, taken_apart)

    by_parts.__name__ = getattr(f, "__name__", "f")
    by_parts.of_parts_of = f  # type: ignore[attr-defined]
    return by_parts


def taken_apart(x: Any) -> Any:
    """An array; of a divided one its part."""
    if not isinstance(x, AbstractArray) or not issubclass(leaf_family(type(x)), DArray):
        return x
    if isinstance(x, Structured):
        return Composed(tuple(map(taken_apart, x.parts)), generic_class(type(x)), x.shape, x._how)
    if not isinstance(x, DArray):
        raise TraceError(
            f"A function that asks for parts of divided arrays (`x.halo`, `x.local`) is compiled for plain "
            f"ones, not for a {type(x).__name__}. Give it the arrays that this one is made of."
        )
    view = evaluated_whole(evaluated_view(x))
    buffer = view.buffer
    return Part(wrap(buffer.inner, Leaf(buffer.local)), buffer.partition, buffer.comm)


def joined(nest: Any, made: list[tuple[Any, Any]] | None = None) -> Any:
    """A nest with divided arrays for their parts; of traced ones the values of parts are noted in `made`."""
    kind = type(nest)
    if kind is Part:
        view = verbs.leaf_of(nest.local).view
        family = family_over(leaf_family(type(nest.local)))
        x = wrap(family, Leaf(family._of_local(nest.comm, nest.partition, view)))
        if made is not None:
            made.append((x, view.node))
        return x
    if kind is Composed:
        return nest.kind._of(tuple([joined(part, made) for part in nest.parts]), nest.shape, nest.how)
    if kind is tuple or kind is list:
        return kind([joined(x, made) for x in nest])
    if kind is dict:
        return {key: joined(x, made) for key, x in nest.items()}
    if isinstance(nest, tuple) and hasattr(nest, "_fields"):
        return kind(*[joined(x, made) for x in nest])
    if dataclasses.is_dataclass(nest) and not isinstance(nest, type):
        fields = [f.name for f in dataclasses.fields(nest) if f.init]
        values = {name: joined(getattr(nest, name), made) for name in fields}
        if all(values[name] is getattr(nest, name) for name in fields):
            return nest
        return dataclasses.replace(nest, **values)
    return nest


__all__ = ["Part", "called", "joined", "knows", "of_parts", "program", "taken_apart"]
