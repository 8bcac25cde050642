"""Philox, the bit generator: a key, and how many calls have been made."""

from __future__ import annotations

import contextvars
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.random.philox import words
from mirabelle.dispatch.forks import ForkLock
from mirabelle.dispatch.misuse import shown

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import Seed

_KEYS = 1 << 64
_CALLS = 1 << 64
# Draw numbers that no sampler reaches: keys of other generators are made of these words.
_SPAWNED, _SPLIT = 0xFFFF, 0xFFFE
_JUMP = 1 << 44

# The program that is being compiled in this context, if one is: any object.
compiling: contextvars.ContextVar[Any] = contextvars.ContextVar("mirabelle_compiling", default=None)


class Philox:
    """Philox4x32-10. Random words are a function of its key, the call and the place in the array.

    `seed` is what NumPy's generators take: an integer, several, a SeedSequence, or None for one from
    the system. `key` sets the 64 bits of the key itself.

    >>> import mirabelle as mb
    >>> mb.random.Philox(key=3)
    Philox(key=0x3, call=0)
    >>> mb.random.Philox(42).key == mb.random.Philox(42).key
    True
    """

    __module__ = "mirabelle.random"
    __slots__ = ("_call", "_children", "_key", "_lock", "_program")

    def __init__(self, seed: Seed = None, *, key: int | None = None, call: int = 0) -> None:
        # The program it is made in, if it is the same one each time that runs.
        self._program = compiling.get() if key is not None or seed is not None else None
        if key is None:
            key = _key_of(seed)
        elif seed is not None:
            raise ValueError("Give Philox a seed or a key, not both: mb.random.Philox(42).")
        self._lock = ForkLock()
        self._key = _checked("key", key, _KEYS)
        self._call = _checked("call", call, _CALLS)
        self._children = 0

    @property
    def key(self) -> int:
        """The 64 bits of the key."""
        return self._key

    @property
    def call(self) -> int:
        """The number of the next call."""
        return self._call

    def __repr__(self) -> str:
        return f"Philox(key={self._key:#x}, call={self._call})"

    def next_call(self) -> tuple[int, int, int, int]:
        """Take a call: what a sampler needs to make its words."""
        self._check()
        with self._lock:
            call = self._call
            self._call = (call + 1) % _CALLS
        return _stream(self._key, call)

    def advance(self, delta: int) -> Philox:
        """Go on as if `delta` more calls had been made (fewer, if it is negative).

        >>> import mirabelle as mb
        >>> mb.random.Philox(key=3).advance(5)
        Philox(key=0x3, call=5)
        """
        with self._lock:
            self._call = (self._call + operator.index(delta)) % _CALLS
        return self

    def jumped(self, jumps: int = 1) -> Philox:
        """Another one, `jumps` times 2**44 calls further on.

        >>> import mirabelle as mb
        >>> mb.random.Philox(key=3).jumped().call == 2**44
        True
        """
        made = Philox(key=self._key, call=self._call)
        made._program = self._program
        return made.advance(operator.index(jumps) * _JUMP)

    def spawn(self, n: int) -> list[Philox]:
        """`n` others with keys of their own. Their number is remembered, so each call gives new ones."""
        self._check()
        with self._lock:
            first = self._children
            self._children = first + _checked("n", n, 1 << 48)
        return [Philox(key=_derived(self._key, 0, _SPAWNED, i)) for i in range(first, first + n)]

    def split(self, n: int) -> list[Philox]:
        """`n` others with keys that depend on this one's key and present call. It takes one call."""
        self._check()
        n = _checked("n", n, 1 << 48)
        with self._lock:
            call = self._call
            self._call = (call + 1) % _CALLS
        return [Philox(key=_derived(self._key, call, _SPLIT, i)) for i in range(n)]

    @property
    def state(self) -> dict[str, Any]:
        """All there is to know of it, to be stored and set again."""
        return {
            "bit_generator": "Philox4x32-10",
            "state": {"key": self._key, "call": self._call, "children": self._children},
        }

    @state.setter
    def state(self, value: Any) -> None:
        try:
            name, inner = value["bit_generator"], value["state"]
            key, call, children = inner["key"], inner["call"], inner["children"]
        except (TypeError, KeyError):
            name = None
        if name != "Philox4x32-10":
            raise ValueError(
                "This is no state of mb.random.Philox (NumPy's bit generators have others). Set what "
                "`rng.state` gave."
            )
        checked = (
            _checked("key", key, _KEYS),
            _checked("call", call, _CALLS),
            _checked("children", children, _KEYS),
        )
        with self._lock:
            self._key, self._call, self._children = checked

    def __getstate__(self) -> dict[str, Any]:
        return self.state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._lock = ForkLock()
        self._program = None
        self.state = state

    def _check(self) -> None:
        """Refuse to go on with what was begun outside of a program, which would do so only once."""
        program = compiling.get()
        if program is not None and program is not self._program:
            from mirabelle.arraytypes.programs.errors import random_outside  # which is seldom needed

            raise random_outside()


def _checked(name: str, value: Any, end: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is an integer, not {value!r}.") from None
    if not 0 <= number < end:
        raise ValueError(f"{name} is an integer from 0 to {end - 1}, not {number}.")
    return number


def _key_of(seed: Any) -> int:
    """64 bits of a seed. NumPy's SeedSequence mixes them, so that near seeds have far keys."""
    from numpy.random import SeedSequence

    try:
        sequence = seed if isinstance(seed, SeedSequence) else SeedSequence(seed)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{shown(seed)} is no seed. Give an integer from 0 on, several, or a SeedSequence: of a generator "
            "of NumPy's, whose numbers are others, `mb.random.default_rng(rng.bit_generator.seed_seq)`."
        ) from error
    low, high = sequence.generate_state(2, np.uint32)
    return int(low) | int(high) << 32


def _stream(key: int, call: int) -> tuple[int, int, int, int]:
    low = 0xFFFFFFFF
    return key & low, key >> 32, call & low, call >> 32


def _derived(key: int, call: int, draw: int, i: int) -> int:
    """The key of the i-th generator made from this one."""
    stream = tuple(np.uint64(w) for w in _stream(key, call))
    low, high, _, _ = words(np.uint64(i), np.uint64(draw), stream)
    return int(low) | int(high) << 32
