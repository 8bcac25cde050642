"""Functions of `mb.jit` that a helper process compiles: what is sent to it, and what it makes of that.

A function goes there as its code with all that it refers to (the same as `overloads.identity` looks at); what
comes back is an entry of the cache on disk, under the key that this process asks for.
"""

from __future__ import annotations

import importlib
import marshal
import pickle
import types
from typing import Any, NamedTuple

import numpy as np

from mirabelle.backends.codegen.source import Source
from mirabelle.backends.host import background, diskcache, kernels
from mirabelle.backends.host.overloads import ContentCache, is_public, names_in, stored
from mirabelle.dispatch.settings import settings

# Modules that a helper finds as this process does.
_MODULES = {"numpy", "math", "cmath", "operator", "numba", "mirabelle"}
_PLAIN: tuple[type, ...] = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype)


def is_coming(dispatcher: Any, signature: tuple[Any, ...]) -> bool:
    """Is a function being compiled for these types by a helper? (One is asked to, if nobody was.)

    False where its code is there, and where who wants it has to compile it.
    """
    if settings.compiler != "process" or signature in dispatcher.overloads:
        return False
    entry = dispatcher._cache.key_of(signature)
    where = diskcache.folder()
    if entry is None or where is None:
        return False
    key = job_key(entry)
    if kernels.is_known(key):
        return kernels.is_coming(key)
    if (where / f"{entry}.kernel").exists():
        return False
    cache: ContentCache = dispatcher._cache
    try:
        sent = pickle.dumps((_described(cache.function, []), cache.options, signature))
    except (_Unknown, pickle.PicklingError, TypeError, AttributeError, ValueError):
        return False
    source = Source(sent.hex(), background.OVERLOAD, [])
    return kernels.ask(background.Job(key, source, {}, entry, str(where)))


def job_key(entry: str) -> tuple[str, str]:
    """How this process knows the job that makes an entry."""
    return background.OVERLOAD, entry


def compiled_for(sent: str) -> tuple[bytes, str]:
    """What a helper does with what was sent: the contents of an entry, and its kind."""
    from mirabelle.backends.host import scalarloops

    described, options, signature = pickle.loads(bytes.fromhex(sent))
    function = _rebuilt(described, [])
    dispatcher = scalarloops.engine(function, options)
    dispatcher._cache = cache = _Kept(function, options)
    try:
        dispatcher.compile(signature)
    except Exception as e:
        raise kernels.Refused(str(e) or type(e).__name__) from None
    if cache.contents is None:
        raise ValueError("It refers to addresses of this process.")
    return cache.contents, "overload"


class _Kept(ContentCache):
    """A cache that holds what was compiled last, for another process."""

    contents: bytes | None = None

    def key(self, sig: Any, codegen: Any) -> str | None:
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        self.contents = stored(data)


def described(f: Any) -> bytes | None:
    """A plain function of a user's for another process, with the plain functions it calls; None if that would
    not find it."""
    if not isinstance(f, types.FunctionType):
        return None
    try:
        return pickle.dumps(_described(f, [], plain=True))
    except (_Unknown, pickle.PicklingError, TypeError, AttributeError, ValueError):
        return None


def rebuilt(sent: bytes) -> Any:
    """The function that was `described`."""
    return _rebuilt(pickle.loads(sent), [])


# Functions as data


class _Unknown(Exception):
    """Something that another process would not find."""


class _Function(NamedTuple):
    """A Python function: `outside` is what its global names mean, `options` are those of `mb.jit` if it is
    compiled."""

    code: bytes
    module: str
    qualname: str
    defaults: Any
    closure: tuple[Any, ...] | None
    outside: dict[str, Any]
    options: dict[str, Any] | None


class _Again(NamedTuple):
    """A function that was described before."""

    at: int


class _Module(NamedTuple):
    """A module, by its name."""

    name: str


class _Public(NamedTuple):
    """A function or type of such a module."""

    module: str
    name: str


def _described(
    f: Any, seen: list[Any], options: dict[str, Any] | None = None, plain: bool = False
) -> _Function | _Again:
    """A function. `plain`: those it calls may be plain, too.

    (A function and its compiled form are two things.)
    """
    for at, (g, how) in enumerate(seen):
        if g is f and how == options:
            return _Again(at)
    seen.append((f, options))
    code = f.__code__
    closure = (
        None if f.__closure__ is None else tuple([_value(c.cell_contents, seen, plain) for c in f.__closure__])
    )
    names = sorted(names_in(code) & set(f.__globals__))
    outside = {name: _value(f.__globals__[name], seen, plain) for name in names}
    defaults = _value(f.__defaults__, seen, plain)
    return _Function(marshal.dumps(code), f.__module__, f.__qualname__, defaults, closure, outside, options)


def _value(x: Any, seen: list[Any], plain: bool = False) -> Any:
    if isinstance(x, _PLAIN) or (isinstance(x, np.ndarray) and x.dtype.kind in "biufc"):
        return x
    if type(x) is tuple:
        return tuple([_value(y, seen, plain) for y in x])
    if isinstance(x, types.ModuleType):
        if x.__name__.partition(".")[0] not in _MODULES:
            raise _Unknown  # (a helper runs no module of the user's)
        return _Module(x.__name__)
    if is_public(x) or (isinstance(x, type) and x.__module__ in ("builtins", "numpy")):
        known: Any = x
        home = importlib.import_module(known.__module__)
        if getattr(home, known.__name__, None) is not x:
            raise _Unknown
        return _Public(known.__module__, known.__name__)
    if plain and isinstance(x, types.FunctionType):
        return _described(x, seen, None, plain)
    python = getattr(x, "python", None)
    if not isinstance(python, types.FunctionType) or not isinstance(getattr(x, "options", None), dict):
        raise _Unknown
    return _described(python, seen, x.options)


def _rebuilt(d: Any, made: list[Any]) -> Any:
    """What was described."""
    if isinstance(d, _Again):
        return made[d.at]
    if isinstance(d, _Module):
        return importlib.import_module(d.name)
    if isinstance(d, _Public):
        return getattr(importlib.import_module(d.module), d.name)
    if not isinstance(d, _Function):
        return tuple([_rebuilt(x, made) for x in d]) if type(d) is tuple else d
    from mirabelle.arraytypes.jit import Jitted

    scope: dict[str, Any] = {"__name__": d.module, "__builtins__": __builtins__}
    cells = None if d.closure is None else tuple([types.CellType() for _ in d.closure])
    f = types.FunctionType(marshal.loads(d.code), scope, d.qualname.rpartition(".")[2], None, cells)
    f.__module__, f.__qualname__ = d.module, d.qualname
    result = f if d.options is None else Jitted(f, d.options)
    made.append(result)
    for cell, value in zip(cells or (), d.closure or (), strict=True):
        cell.cell_contents = _rebuilt(value, made)
    scope.update({name: _rebuilt(value, made) for name, value in d.outside.items()})
    f.__defaults__ = _rebuilt(d.defaults, made)
    return result
