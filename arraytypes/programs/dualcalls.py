"""Compiled functions called with dual numbers: from inside of a differentiation, or with some made by hand.

The program is one of plain arrays: the values and the terms of the partials, as the dual numbers keep them. So
`mb.autodiff.gradient` of a compiled function runs one plan, and the next call, which is another
differentiation, runs it again.
"""

from __future__ import annotations

import contextvars
import dataclasses
from collections.abc import Callable
from typing import Any

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import asarray
from mirabelle.arraytypes.duals.base import NUMBERS, Dual, Seed, holds_duals
from mirabelle.arraytypes.programs import states
from mirabelle.arraytypes.programs.errors import TraceError
from mirabelle.arraytypes.programs.signature import mapped

# The differentiations of the call that is being captured or run, from the outermost on.
_tags: contextvars.ContextVar[tuple[Any, ...]] = contextvars.ContextVar("mirabelle_tags", default=())


@dataclasses.dataclass(frozen=True)
class Directions:
    """Unit directions (a `Seed`), by value."""

    n: int
    shape: tuple[int, ...]
    start: int
    count: int
    at: int


@dataclasses.dataclass(frozen=True)
class Parts:
    """A dual number as plain arrays: `tag` is the number of its differentiation among those of a call."""

    value: Any
    terms: Any
    directions: int
    tag: int


def among(nest: Any) -> bool:
    """Are there dual numbers among some arguments?"""
    return any(isinstance(x, AbstractArray) and holds_duals(type(x)) for _, x in states.leaves_of(nest))


def called(owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a compiled function (a `Compiled`) with arguments that have dual numbers among them."""
    leaves = [x for _, x in states.leaves_of((args, kwargs))]
    if any(isinstance(x, AbstractArray) and holds_duals(type(x)) and not isinstance(x, Dual) for x in leaves):
        # Structured arrays of dual numbers are no arguments of programs.
        return owner.function(*args, **kwargs)
    tags: dict[int, Any] = {}
    for x in leaves:
        while isinstance(x, Dual):
            tags[id(x._tag)] = x._tag
            x = x._value
    token = _tags.set(tuple(sorted(tags.values(), key=lambda tag: tag.order)))
    try:
        if owner.of_duals is None:
            owner.of_duals = type(owner)(apart(owner.function), schedule=owner.schedule)
            owner.of_duals.passes = owner.passes
        return joined(owner.of_duals(*mapped((args, kwargs), taken_apart)), Made())
    finally:
        _tags.reset(token)


def apart(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of dual numbers as one of their parts."""

    def of_parts(args: Any, kwargs: Any) -> Any:
        made = Made()
        args, kwargs = joined((args, kwargs), made)
        before = [(x, x._terms) for x in made.duals]
        result = f(*args, **kwargs)
        if any(x._terms is not terms or x._owns for x, terms in before):
            raise TraceError(
                f"{getattr(f, '__name__', 'f')}() is compiled and writes to an argument that is an array of "
                "dual numbers. Let it return the new value, or write to a copy: `x = mb.copy(x)`."
            )
        return mapped(result, taken_apart)

    of_parts.__name__ = getattr(f, "__name__", "f")
    return of_parts


def taken_apart(x: Any) -> Any:
    """An array; of dual numbers their parts."""
    if not isinstance(x, Dual):
        return x
    value = asarray(x._value) if isinstance(x._value, NUMBERS) else x._value
    terms = x._now()
    if any(isinstance(base, Seed) and (base.start or base.count < base.n) for _, base in terms):
        # Some of many directions: as arrays, so that one program does for all.
        terms = ((None, x.partials),)
    number = next(i for i, tag in enumerate(_tags.get()) if tag is x._tag)
    parts = tuple([(taken_apart(c), _by_value(base)) for c, base in terms])
    return Parts(taken_apart(value), parts, x._n, number)


def _by_value(base: Any) -> Any:
    if not isinstance(base, Seed):
        return taken_apart(base)
    return Directions(base.n, base.shape, base.start, base.count, base.at)


class Made:
    """What has been made of parts: dual numbers, and directions, which terms share."""

    def __init__(self) -> None:
        self.duals: list[Any] = []
        self.seeds: dict[Directions, Seed] = {}

    def base(self, x: Any) -> Any:
        if type(x) is not Directions:
            return joined(x, self)
        if x not in self.seeds:
            self.seeds[x] = Seed(x.n, x.shape, x.start, x.count, x.at)
        return self.seeds[x]


def joined(nest: Any, made: Made) -> Any:
    """A nest with dual numbers for their parts."""
    kind = type(nest)
    if kind is Parts:
        terms = tuple([(joined(c, made), made.base(base)) for c, base in nest.terms])
        x = Dual._of(joined(nest.value, made), terms, nest.directions, _tags.get()[nest.tag])
        made.duals.append(x)
        return x
    if kind is tuple or kind is list:
        return kind([joined(x, made) for x in nest])
    if kind is dict:
        return {key: joined(x, made) for key, x in nest.items()}
    if isinstance(nest, tuple) and hasattr(nest, "_fields"):
        return kind(*[joined(x, made) for x in nest])
    if states.is_record(nest):
        fields = [f.name for f in dataclasses.fields(nest) if f.init]
        values = {name: joined(getattr(nest, name), made) for name in fields}
        if all(values[name] is getattr(nest, name) for name in fields):
            return nest
        return dataclasses.replace(nest, **values)
    return nest
