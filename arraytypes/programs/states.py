"""The state of a loop: a nest of containers, numbers and arrays, taken apart into plain arrays.

Arrays that consist of several (wrappers, structured ones, dual numbers) are known by their parts, in the order
in which `adapt` visits these.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, TypeGuard

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import asarray
from mirabelle.arraytypes.dense import DenseArray, computed, exchange
from mirabelle.arraytypes.duals.base import Dual
from mirabelle.arraytypes.elementwise import default_family, leaf_family
from mirabelle.arraytypes.programs.capture import traced_family
from mirabelle.arraytypes.programs.signature import Arguments
from mirabelle.arraytypes.programs.traced import Traced, family_for
from mirabelle.dispatch import verbs

NUMBERS = (bool, int, float, complex, np.generic)


def leaves_of(nest: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """What stands in a nest, and where. Containers are told by their kinds and sizes."""
    kind = type(nest)
    if kind is tuple or kind is list:
        yield path, (kind, len(nest))
        for i, x in enumerate(nest):
            yield from leaves_of(x, f"{path}[{i}]")
    elif kind is dict:
        yield path, (kind, tuple(nest))
        for key, x in nest.items():
            yield from leaves_of(x, f"{path}[{key!r}]")
    elif isinstance(nest, tuple) and hasattr(nest, "_fields"):
        yield path, (kind, len(nest))
        for name, x in zip(nest._fields, nest, strict=True):  # pyright: ignore
            yield from leaves_of(x, f"{path}.{name}")
    elif is_record(nest):
        yield path, (kind, 0)
        for f in dataclasses.fields(nest):
            if f.init:
                yield from leaves_of(getattr(nest, f.name), f"{path}.{f.name}")
    else:
        yield path, nest


def difference(nest: Any, other: Any) -> tuple[str, str, str] | None:
    """Where two nests are of other containers: the place, and what is there in each."""
    a, b = list(leaves_of(nest)), list(leaves_of(other))
    for (path, x), (_, y) in zip(a, b, strict=False):
        if is_container(x) != is_container(y) or (is_container(x) and x != y):
            return path, described(x), described(y)
    return None


def is_record(x: Any) -> TypeGuard[Any]:
    return dataclasses.is_dataclass(x) and not isinstance(x, (type, AbstractArray))


def is_container(leaf: Any) -> bool:
    """Does what `leaves_of` gave stand for a container?"""
    return type(leaf) is tuple


def refilled(nest: Any, leaves: Iterator[Any]) -> Any:
    """A nest with other things in it, in the order of `leaves_of` (without containers)."""
    kind = type(nest)
    if kind is tuple or kind is list:
        return kind([refilled(x, leaves) for x in nest])
    if kind is dict:
        return {key: refilled(x, leaves) for key, x in nest.items()}
    if isinstance(nest, tuple) and hasattr(nest, "_fields"):
        return kind(*[refilled(x, leaves) for x in nest])
    if is_record(nest):
        values = {f.name: refilled(getattr(nest, f.name), leaves) for f in dataclasses.fields(nest) if f.init}
        return dataclasses.replace(nest, **values)
    return next(leaves)


def brought(x: Any, family: Any) -> Any:
    """Something of a state, with its arrays as arrays of a family."""
    if isinstance(x, Dual):
        # Whatever terms its partials are a sum of: one array.
        partials = verbs.dense(computed(brought(x.partials, family)))
        value = asarray(x.value) if isinstance(x.value, NUMBERS) else x.value
        return x._with(brought(value, family), ((None, partials),))
    if isinstance(x, np.ndarray):
        x = asarray(x)
    return verbs.adapt(family, x) if isinstance(x, AbstractArray) else x


def parts_of(x: Any, family: Any) -> list[Any]:
    """The plain arrays that an array consists of."""
    if isinstance(x, DenseArray):
        return [x]
    if isinstance(x, Dual):
        return parts_of(x.value, family) + parts_of(x._terms[0][1], family)
    found: list[Any] = []
    if isinstance(x, AbstractArray):

        def note(wanted: Any, part: Any) -> Any:
            found.append(part)
            return part

        exchanged(family, x, note)
    return found


def with_parts(x: Any, family: Any, parts: Iterator[Any]) -> Any:
    """An array made of other parts."""
    if isinstance(x, DenseArray):
        return next(parts)
    if isinstance(x, Dual):
        value = with_parts(x.value, family, parts)
        return x._with(value, ((None, with_parts(x._terms[0][1], family, parts)),))
    return exchanged(family, x, lambda wanted, part: next(parts)) if isinstance(x, AbstractArray) else x


def exchanged(family: Any, x: Any, how: Callable[[Any, Any], Any]) -> Any:
    token = exchange.set(how)
    try:
        return verbs.adapt(family, x)
    finally:
        exchange.reset(token)


def kind_of(x: Any) -> Any:
    """What arrays share that are made of parts in the same way."""
    if isinstance(x, Dual):
        return "dual", id(x._tag), kind_of(x.value), kind_of(x._terms[0][1])
    return Arguments(x).key


def dense(x: Any) -> Any:
    """An array as one in memory of its own."""
    return verbs.copy(verbs.dense(x))


def described(x: Any) -> str:
    """A leaf of a state, for a message."""
    if isinstance(x, DenseArray):
        return f"{x.dtype.name}{list(x.shape)}"
    if isinstance(x, AbstractArray):
        return f"{type(x).__name__} of {x.dtype.name}{list(x.shape)}"
    if is_container(x):
        kind, n = x
        return f"a {kind.__name__}" + (f" of {n if isinstance(n, int) else list(n)}" if n else "")
    return repr(x)


def depends(x: Any) -> bool:
    """Does an array depend on what the program is called with?"""
    if isinstance(x, Dual):
        return depends(x.value)
    root = leaf_family(type(x))
    return issubclass(root, Traced) and any(p.node.bound for p in parts_of(x, root))


def family_of(leaves: list[Any]) -> Any:
    """The traced type of the arrays of a state."""
    families = [leaf_family(type(x)) for x in leaves if isinstance(x, AbstractArray)]
    for family in families:
        if issubclass(family, Traced):
            return family
    family = families[0] if families else traced_family.get() or default_family()
    return family if issubclass(family, Traced) else family_for(family)


def varying(x: Any, like: Any, family: Any) -> Any:
    """A constant as a dual number whose derivatives are zero."""
    partials = brought(verbs.similar(x, shape=(like.directions, *x.shape)), family)
    verbs.assign(partials, 0)
    return like._with(x, ((None, partials),))


def plain(x: Any) -> Any:
    """An array as one in memory, or as dual numbers of such."""
    if isinstance(x, Dual):
        return x._with(dense(x.value), ((None, dense(x._terms[0][1])),))
    return dense(x)
