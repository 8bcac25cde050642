"""What methods say they take: their parameters, the classes of their annotations, and which of two says more.

An annotation is a class or a union of classes. It becomes the tuple of these classes, which `issubclass` takes.

>>> from mirabelle.dispatch.annotations import below, classes_of, covers
>>> classes_of(int | str), classes_of(None)
((<class 'int'>, <class 'str'>), (<class 'NoneType'>,))
>>> covers((classes_of(int | str),), (bool,)), below((classes_of(int),), (classes_of(int | str),))
(True, True)
"""

from __future__ import annotations

import abc
import contextlib
import functools
import inspect
import itertools
import sys
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any

from mirabelle.dispatch.errors import UnfaithfulAnnotationError

# For each parameter the classes that it takes.
Classes = tuple[tuple[type, ...], ...]


def classes_of(annotation: Any) -> tuple[type, ...]:
    """The classes of an annotation, as a tuple."""
    if isinstance(annotation, type):
        return (annotation,)
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return tuple(itertools.chain.from_iterable(map(classes_of, typing.get_args(annotation))))
    return (object if annotation is Any else type(None) if annotation is None else annotation,)


def covers(classes: Classes, signature: tuple[type, ...]) -> bool:
    """Whether arguments of the types of `signature` fit."""
    return all(map(issubclass, signature, classes))


def below(classes: Classes, others: Classes) -> bool:
    """Whether all that fits the first fits the second, too: the first is at least as specific."""
    return all(issubclass(mine, theirs) for own, theirs in zip(classes, others, strict=True) for mine in own)


def _plain_code(f: Any) -> types.CodeType | None:
    """The code that says a function's parameters; None where `inspect.signature` knows better."""
    if type(f) is types.FunctionType and not f.__dict__:  # (else perhaps `__wrapped__`, `__signature__`)
        return f.__code__
    return None


def positional(f: Callable[..., Any]) -> list[str]:
    """The names of the parameters that can be given by position."""
    code = _plain_code(f)
    if code is not None:
        return list(code.co_varnames[: code.co_argcount])
    parameters = inspect.signature(f).parameters.values()
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def accepted(f: Callable[..., Any]) -> set[str] | None:
    """The names of all parameters; None where any keyword is taken."""
    code = _plain_code(f)
    if code is not None:
        return (
            None
            if code.co_flags & inspect.CO_VARKEYWORDS
            else set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        )
    parameters = inspect.signature(f).parameters.values()
    return None if any(p.kind is p.VAR_KEYWORD for p in parameters) else {p.name for p in parameters}


def annotated(f: Callable[..., Any], names: Iterable[str]) -> tuple[Any, ...]:
    """The annotations of these parameters, strings evaluated where `f` was written; else `object`."""
    raw = getattr(f, "__annotations__", {})
    said = tuple([raw.get(name, object) for name in names])
    if not any(isinstance(h, str) for h in said):
        return said
    scope = _closure(f)
    module = getattr(f, "__globals__", {})
    try:
        return tuple([_evaluated(h, module, scope) for h in said])
    except NameError:
        # A method defined inside a function may name that function's local classes.
        frame: Any = sys._getframe(1)
        for _ in range(6):
            for name, value in frame.f_locals.items():
                scope.setdefault(name, value)
            frame = frame.f_back
            if frame is None:
                break
        return tuple([_evaluated(h, module, scope) for h in said])


def _closure(f: Any) -> dict[str, Any]:
    """The names that `f` has from the functions around it."""
    found: dict[str, Any] = {}
    cells = getattr(f, "__closure__", None)
    for name, cell in zip(f.__code__.co_freevars, cells, strict=True) if cells else ():
        with contextlib.suppress(ValueError):
            found[name] = cell.cell_contents
    return found


@functools.cache
def _expression(text: str) -> types.CodeType:
    return compile(text, "<annotation>", "eval")


def _evaluated(annotation: Any, module: dict[str, Any], scope: dict[str, Any]) -> Any:
    return eval(_expression(annotation), module, scope) if isinstance(annotation, str) else annotation


def check_faithful(function: str, annotation: Any, parameter: str) -> None:
    """Refuse an annotation that the type of an argument alone does not decide."""
    if _faithful(annotation):
        return
    shown = annotation.__name__ if isinstance(annotation, type) else repr(annotation)
    origin = typing.get_origin(annotation)
    cure = origin if isinstance(origin, type) and origin not in (type, types.UnionType) else object
    raise UnfaithfulAnnotationError(
        f"{function}() cannot dispatch on {parameter}: {shown}, because "
        "the type of an argument alone does not decide whether it fits (dispatch looks at "
        "type(x), never into x). Annotate with a class or a union of classes, for instance "
        f"`{parameter}: {type_name(cure)}`, and check the "
        "rest inside the method."
    )


def _faithful(tp: Any) -> bool:
    if type(tp) is type:  # (most are)
        return bool(getattr(tp, "__faithful__", True))
    if tp is Any or tp is object or tp is None:
        return True
    if isinstance(tp, types.UnionType) or typing.get_origin(tp) is typing.Union:
        return all(map(_faithful, typing.get_args(tp)))
    if typing.get_origin(tp) is not None or not isinstance(tp, type):
        return False
    if getattr(tp, "_is_protocol", False):
        return False
    declared = getattr(tp, "__faithful__", None)
    if declared is not None:
        return bool(declared)
    return type(tp).__instancecheck__ in (type.__instancecheck__, abc.ABCMeta.__instancecheck__)


def type_name(tp: Any) -> str:
    """A type as a person writes it."""
    if isinstance(tp, type) and tp is not type(None):
        return tp.__name__
    if isinstance(tp, types.UnionType) or typing.get_origin(tp) is typing.Union:
        return " | ".join(type_name(t) for t in typing.get_args(tp))
    if typing.get_origin(tp) is not None:
        return repr(tp)
    if tp is Any:
        return "Any"
    if tp is type(None):
        return "None"
    return getattr(tp, "__name__", None) or repr(tp)
