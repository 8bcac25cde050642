"""Which of several methods is the most specific: the rule, and plum, which has the last word on users' methods.

Our own methods are for plain classes, of which the rule below says the same as plum (tests/test_dispatch.py
compares them). As soon as a user gives a generic function a method, plum resolves its calls: it is imported
then, and answers once for each combination of types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mirabelle.dispatch.annotations import below, covers

if TYPE_CHECKING:
    from mirabelle.dispatch.methods import Method


class Ambiguous(LookupError):
    """No method that fits is more specific than all others."""


def most_specific(methods: Sequence[Method], signature: tuple[type, ...]) -> Method | None:
    """The most specific method for these types; None where none fits."""
    fits = [m for m in methods if covers(m.classes, signature)]
    for method in fits:
        if all(other is method or below(method.classes, other.classes) for other in fits):
            return method
    if fits:
        raise Ambiguous
    return None


class Plum:
    """The same by plum, of methods some of which users have given."""

    def __init__(self, name: str, methods: Sequence[Method]) -> None:
        import plum  # (a tenth of a second: who gives no methods never pays it)

        def stub(*args: Any) -> None: ...

        stub.__name__ = name
        self._plum: Any = plum
        self._function: Any = plum.Function(stub)
        for method in methods:
            self._function.register(_carrier(method), signature=plum.Signature(*method.signature))

    def most_specific(self, signature: tuple[type, ...]) -> Method | None:
        """The most specific method for these types; None where none fits."""
        plum = self._plum
        try:
            carrier, _ = self._function.resolve_method(plum.Signature(*signature))
        except plum.NotFoundLookupError:
            return None
        except plum.AmbiguousLookupError:
            raise Ambiguous from None
        return carrier.__mirabelle_method__  # type: ignore[no-any-return]


def _carrier(method: Method) -> Any:
    def carrier(*args):  # type: ignore[no-untyped-def] # plum reads annotations
        raise AssertionError("a resolved method is called through its table")

    carrier.__name__ = method.function.__name__
    carrier.__mirabelle_method__ = method  # type: ignore[attr-defined]
    return carrier
