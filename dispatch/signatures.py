"""Signatures as they are shown: the array API standard's, where a call may be freer.

NumPy's users write `mb.sum(x, 0)`; the standard has `sum(x, /, *, axis=None)`. A function that
takes both says what the standard says, so that programs written from its signature run anywhere.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def telling(f: Any) -> Any:
    """A function of ours without the annotations that tell nothing: what `help` shows has no `Any`.

    (Checkers read more than these said, in `mirabelle/__init__.pyi`.)
    """
    if f.__module__.startswith("mirabelle."):
        f.__annotations__ = {name: said for name, said in f.__annotations__.items() if said != "Any"}
    return f


def keyword_only(*names: str) -> Callable[[F], F]:
    """Show these parameters as keyword-only. Calls may still give them by position.

    >>> @keyword_only("axis")
    ... def total(x, /, axis=None): ...
    >>> import inspect
    >>> inspect.signature(total)
    <Signature (x, /, *, axis=None)>
    """

    def shown(f: Any) -> Any:
        signature = inspect.signature(f)
        parameters = [
            p.replace(kind=p.KEYWORD_ONLY) if p.name in names else p for p in signature.parameters.values()
        ]
        f.__signature__ = signature.replace(parameters=sorted(parameters, key=lambda p: p.kind))
        return f

    return shown


def optional(*names: str) -> Callable[[F], F]:
    """Show these parameters as such that may be left away.

    >>> @optional("y")
    ... def chosen(x, y, /): ...
    >>> inspect.signature(chosen)
    <Signature (x, y=None, /)>
    """

    def shown(f: Any) -> Any:
        signature = inspect.signature(f)
        parameters = [p.replace(default=None) if p.name in names else p for p in signature.parameters.values()]
        f.__signature__ = signature.replace(parameters=parameters)
        return f

    return shown


def hidden(*names: str) -> Callable[[Any], Any]:
    """Do not show these parameters.

    >>> @hidden("device")
    ... def total(x, *, device=None): ...
    >>> inspect.signature(total)
    <Signature (x)>
    """

    def shown(f: Any) -> Any:
        signature = inspect.signature(f)
        parameters = [p for p in signature.parameters.values() if p.name not in names]
        f.__signature__ = signature.replace(parameters=parameters)
        return f

    return shown


def with_options(f: Any, other: Any) -> None:
    """Show the options that `other` has and `f` has not, as keyword-only parameters of `f`.

    >>> def total(x, /, axis=None): ...
    >>> def numpys(a, axis=None, out=None): ...
    >>> with_options(total, numpys)
    >>> inspect.signature(total)
    <Signature (x, /, axis=None, *, out=None)>
    """
    signature = inspect.signature(f)
    more = [
        p.replace(kind=p.KEYWORD_ONLY)
        for p in inspect.signature(telling(other)).parameters.values()
        if p.default is not p.empty and p.name not in signature.parameters
    ]
    f.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *more])
