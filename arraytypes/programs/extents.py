"""Lengths of arrays as a function that is captured for any size sees them.

Whoever reads a shape there gets `Extent`s, which write down what becomes of them: what is computed of them,
and how comparisons came out. For other sizes all of it is done again (`Reads.again`), and what was captured
holds if comparisons come out as they did. Where one has to become a number of Python's (`range(n)`, a key of
a dictionary), its value is what was assumed. For our own functions it is the number it stands for: what they
make of it is looked at otherwise (see `anysize.py`).
"""

from __future__ import annotations

import contextlib
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes import shapereads
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.parametric import generic_class
from mirabelle.arraytypes.programs.errors import is_ours
from mirabelle.arraytypes.programs.graph import number_key
from mirabelle.arraytypes.programs.signature import mapped
from mirabelle.arraytypes.wrappers import Wrapper

# Through these of our own functions a length is only passed on to whoever asks.
_PASSED_ON = frozenset(
    ("shape", "size", "nbytes", "__divmod__", "__len__", "__iter__", "__call__", "call", "ndim", "len_inside",
     "broadcast_shapes", "unravel_index", "ravel_multi_index", "linspace", "logspace", "geomspace")
)  # fmt: skip
LENGTH, ASSUMED = "length", "assumed"


class Event:
    """Something that a function did with lengths: `what` is a function of `operands`, earlier events (by their
    numbers) and constants; LENGTH, a length of an array; or ASSUMED, if a value is taken to be what it was."""

    __slots__ = ("line", "operands", "value", "what")

    def __init__(self, what: Any, operands: tuple[Any, ...], value: Any, line: Any) -> None:
        self.what, self.operands, self.value, self.line = what, operands, value, line

    @property
    def key(self) -> Any:
        """What it has in common for all sizes for which the function does the same."""
        constants = [(a.number if isinstance(a, _Of) else number_key(a)) for a in self.operands]
        is_assumed = self.what is ASSUMED or isinstance(self.value, bool)
        return self.what, constants, number_key(self.value) if is_assumed else type(self.value)


class _Of:
    """An operand that is what an earlier event gave."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class Reads:
    """What a function does with the lengths of its arrays.

    If it does not get `extents`, but numbers, `line` is the first line that reads one.
    """

    __slots__ = ("events", "extents", "line", "why")

    def __init__(self, extents: bool) -> None:
        self.extents = extents
        self.events: list[Event] = []
        self.line: Any = None
        # Why it gets numbers.
        self.why = ""

    def shape(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        """A shape for who asks for it."""
        line = asked_by(2)
        if line is None:
            return shape
        if not self.extents:
            self.line = self.line or line
            return shape
        return tuple([self.added(LENGTH, (), n, line) for n in shape])

    def added(self, what: Any, operands: tuple[Any, ...], value: Any, line: Any) -> Any:
        """Write down an event; returns its value, as an `Extent` if it is a number."""
        given = tuple([_Of(a._number) if type(a) is Extent else a for a in operands])
        self.events.append(Event(what, given, value, line))
        if isinstance(value, bool) or what is ASSUMED:
            return value
        return Extent(self, len(self.events) - 1, value)

    def applied(self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a function of NumPy's gives for numbers."""
        if not any(type(x) is Extent for x in (*args, *kwargs.values())):
            return f(*plain(args), **plain(kwargs)) if self.events else f(*args, **kwargs)
        found = f(*plain(args), **plain(kwargs))
        if isinstance(found, (int, float, np.number)) and not kwargs:
            return self.added(f, args, found, asked_by(2))
        for x in (*args, *kwargs.values()):
            if type(x) is Extent:
                self.added(ASSUMED, (x,), x._value, asked_by(2))
        return found

    def again(self, lengths: Sequence[int]) -> list[Any] | None:
        """The values of all events where lengths are others; None if one comes out as it did not."""
        rest = iter(lengths)
        values: list[Any] = []
        for e in self.events:
            if e.what is LENGTH:
                values.append(next(rest))
                continue
            operands = [values[a.number] if isinstance(a, _Of) else a for a in e.operands]
            try:
                value = operands[0] if e.what is ASSUMED else e.what(*operands)
            except ArithmeticError:
                return None
            if (e.what is ASSUMED or isinstance(e.value, bool)) and number_key(value) != number_key(e.value):
                return None
            values.append(value)
        return values

    @property
    def divides(self) -> bool:
        """Is something decided by remainders?"""
        return any(e.what in (operator.mod, operator.and_) for e in self.events)

    @property
    def lengths(self) -> list[int]:
        return [e.value for e in self.events if e.what is LENGTH]


def asked_by(depth: int) -> Any:
    """The line that asks for a length; None if it is one of ours, for our own purposes."""
    frame: Any = sys._getframe(depth + 1)
    while frame is not None:
        code = frame.f_code
        if not is_ours(code.co_filename):
            return code.co_filename, frame.f_lineno
        if code.co_name not in _PASSED_ON:
            return None
        frame = frame.f_back
    return None


@contextlib.contextmanager
def reading(wanted: bool, extents: bool = True) -> Iterator[Reads]:
    """Within the block, it is written down what a function that is captured does with lengths."""
    made = Reads(extents)
    before, shapereads.current = shapereads.current, made if wanted else None
    try:
        yield made
    finally:
        shapereads.current = before


def plain(nest: Any) -> Any:
    """A nest of values with numbers for lengths; itself if there are none."""
    kind = type(nest)
    if kind is Extent:
        return nest._value
    if kind is tuple or kind is list:
        made = [plain(x) for x in nest]
        return nest if all(a is b for a, b in zip(made, nest, strict=True)) else kind(made)
    if kind is dict:
        items = {k: plain(x) for k, x in nest.items()}
        return nest if all(items[k] is nest[k] for k in nest) else items
    if kind is slice:
        ends = plain((nest.start, nest.stop, nest.step))
        return (
            slice(*ends)
            if ends != (nest.start, nest.stop, nest.step)
            or any(type(x) is Extent for x in (nest.start, nest.stop, nest.step))
            else nest
        )
    if isinstance(nest, Wrapper):
        parent, how = plain(nest._parent), plain(nest._how)
        same = parent is nest._parent and how is nest._how
        return nest if same else generic_class(kind)._of(parent, how, nest._shape)
    return nest


class Extent:
    """A length, or a number that is computed of some."""

    __slots__ = ("_number", "_reads", "_value")

    def __init__(self, reads: Reads, number: int, value: Any) -> None:
        self._reads, self._number, self._value = reads, number, value

    # (NumPy's arrays leave it to us what becomes of them.)
    __array_ufunc__ = None

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # type: ignore[override]
        # (To whoever asks it is the number that it stands for.)
        return type(self._value)

    def _assumed(self) -> Any:
        """Its value, for something that cannot be written down."""
        line = asked_by(2)
        if line is not None and self._reads is shapereads.current:
            self._reads.added(ASSUMED, (self,), self._value, line)
        return self._value

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._value, name)
        self._assumed()
        return found

    def __hash__(self) -> int:
        return hash(self._assumed())

    def __index__(self) -> int:
        return operator.index(self._assumed())

    def __int__(self) -> int:
        return int(self._assumed())

    def __float__(self) -> float:
        return float(self._assumed())

    def __complex__(self) -> complex:
        return complex(self._assumed())

    def __bool__(self) -> bool:
        return bool(_applied(bool, (self,)))

    def __round__(self, digits: Any = None) -> Any:
        return round(self._assumed(), digits)

    def __trunc__(self) -> int:
        return int(self._assumed())

    __floor__ = __ceil__ = None  # type: ignore[assignment]

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __format__(self, how: str) -> str:
        return format(self._assumed(), how)

    def __str__(self) -> str:
        return str(self._assumed())

    def __repr__(self) -> str:
        return repr(self._assumed())

    def __reduce__(self) -> Any:
        return type(self._value), (self._assumed(),)


def _applied(f: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """What an operation gives, written down if the function that is captured asks for it."""
    values = [x._value if type(x) is Extent else x for x in operands]
    if any(isinstance(x, (AbstractArray, np.ndarray)) for x in values):
        return f(*values)
    if not all(isinstance(x, (bool, int, float, complex, np.generic)) for x in values):
        return NotImplemented
    found = f(*values)
    line = asked_by(2)
    reads = next(x._reads for x in operands if type(x) is Extent)
    if line is None or reads is not shapereads.current:
        return found
    return reads.added(f, operands, found, line)


def _operation(f: Callable[..., Any], turned: bool = False) -> Callable[..., Any]:
    def operation(self: Extent, *other: Any) -> Any:
        return _applied(f, (*other, self) if turned else (self, *other))

    return operation


_f: Any
for _f in (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift,
):  # fmt: skip
    _name = _f.__name__.strip("_")
    setattr(Extent, f"__{_name}__", _operation(_f))
    setattr(Extent, f"__r{_name}__", _operation(_f, turned=True))
for _f in (
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne, operator.neg, operator.pos,
    operator.abs, operator.invert,
):  # fmt: skip
    setattr(Extent, f"__{_f.__name__.strip('_')}__", _operation(_f))


def unread(result: Any) -> Any:
    """What a function returned, with numbers for lengths."""
    return mapped(plain(result), plain)


__all__ = ["ASSUMED", "LENGTH", "Event", "Extent", "Reads", "plain", "reading", "unread"]
