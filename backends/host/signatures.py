"""What operations on numbers give, as Numba says it, remembered.

For each operation of a function, and again where it writes code for it, Numba goes through all that it knows of
`+`: sums of arrays, lists and texts. For long kernels that is most of the time that compiling takes.
"""

from __future__ import annotations

import operator
from typing import Any

from numba.core import types
from numba.core.registry import cpu_target

_OPERATORS = tuple(
    getattr(operator, name)
    for name in [
        "add",
        "sub",
        "mul",
        "truediv",
        "neg",
        "lt",
        "le",
        "gt",
        "ge",
        "eq",
        "ne",
        "and_",
        "or_",
        "xor",
        "iadd",
        "isub",
        "imul",
    ]
)


class Remembered:
    """The signatures of a function that Numba knows, by the types of its arguments."""

    def __init__(self, function: Any, known: Any, numbers_only: bool) -> None:
        self.function = function
        self.known = known
        self.numbers_only = numbers_only
        self.found: dict[Any, Any] = {}

    def __call__(self, context: Any, args: Any, kws: Any) -> Any:
        ask = type(self.known).get_call_type
        if kws or (self.numbers_only and not all(isinstance(a, _NUMBERS) for a in args)):
            return ask(self.known, context, args, kws)
        key = context, args
        signature = self.found.get(key)
        if signature is None:
            signature = self.found[key] = ask(self.known, context, args, kws)
        return signature

    def __reduce__(self) -> Any:
        return _answers, (self.function,)


# Functions of arrays whose signature is known by the types alone.
OF_ELEMENTS: list[Any] = []
_NUMBERS = types.Number, types.Boolean


def _answers(function: Any) -> Any:
    """What another process asks, where a function's type is read from disk."""
    return cpu_target.typing_context.resolve_value_type(function).get_call_type


def remember() -> None:
    """From now on remember the signatures of operators of numbers, and of functions of elements."""
    typing: Any = cpu_target.typing_context
    for numbers_only, functions in ((True, _OPERATORS), (False, OF_ELEMENTS)):
        for function in functions:
            known = typing.resolve_value_type(function)
            # (Where more is said of an operator, it gets another type, of which nothing is known yet.)
            if type(known) is types.Function and "get_call_type" not in vars(known):
                known.get_call_type = Remembered(function, known, numbers_only)  # type: ignore[method-assign]
