"""Numba's compiled functions on disk, found again by what they are made of.

Numba's own cache goes by a file and its date: it knows no functions of notebooks and prompts,
and does not see that a constant or a called function changed. Here the name of an entry is a hash
of the code itself, of every constant and compiled function it refers to, and of the argument
types. The entries are those of `diskcache`, checked and private.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import marshal
import pickle
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
from numba.core import caching, config
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from mirabelle.backends.host import background, diskcache, kernels, signatures
from mirabelle.backends.host.compiler import target_tag
from mirabelle.backends.host.loopproducts import have_scipy
from mirabelle.dispatch import counters

_VERSION = "mirabelle overload 2"


class ContentCache(caching._Cache):  # type: ignore[misc]
    """The cache of one Numba dispatcher."""

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        self.function = function
        self.options = options
        self.enabled = True

    @property
    def cache_path(self) -> str | None:
        where = diskcache.folder()
        return None if where is None else str(where)

    def enable(self) -> None:
        self.enabled = True

    def disable(self) -> None:
        self.enabled = False

    def flush(self) -> None:
        """Entries are shared by content: none belongs to this function alone."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        key = self.key(sig, target_context.codegen())
        if key is not None:
            kernels.wait_for((background.OVERLOAD, key))  # (a helper may be making it)
        found = diskcache.read(key) if key is not None else None
        if found is not None:
            try:
                return self.rebuilt(found[0], target_context)
            except Exception:
                pass  # of a module that is gone, say: compiled anew
        target_context.refresh()
        signatures.remember()
        return None

    def rebuilt(self, data: bytes, target_context: Any) -> Any:
        # Filling the compiler's tables takes 0.3 s. Finished code needs the symbols alone, and those of
        # hashing come with the tables.
        if b"_numba_hashsecret" in data:
            target_context.refresh()
        else:
            rtsys.initialize(target_context)
        return CompileResult._rebuild(target_context, *pickle.loads(data))

    def save_overload(self, sig: Any, data: Any) -> None:
        if counters.active:
            counters.add(compilations=1)
        kernels.count_here()
        contents = stored(data)
        key = self.key(sig, data.codegen) if contents is not None else None
        if key is not None and contents is not None:
            diskcache.write(key, contents, "overload")

    def key(self, sig: Any, codegen: Any) -> str | None:
        return entry_key(self.function, sig, self.options) if self.enabled else None

    def key_of(self, sig: Any) -> str | None:
        """The key of the code for some types, for this process's processor."""
        return self.key(sig, cpu_target.target_context.codegen())


def stored(data: Any) -> bytes | None:
    """What Numba compiled, as it is kept; None if it refers to addresses of this process."""
    if data.library.has_dynamic_globals or any(not x.can_cache for x in data.lifted):
        return None
    return dumps(data._reduce())


def entry_key(function: Any, sig: Any, options: dict[str, Any]) -> str | None:
    """What an entry is kept under; None where it cannot be kept."""
    signature = str(sig)
    if diskcache.folder() is None or " at 0x" in signature:
        return None
    made_of = identity(function)
    if made_of is None:
        return None
    parts = [_VERSION, target_tag(), sys.version, np.__version__, signature, made_of]
    parts += [repr(sorted(options.items())), repr(cpu_target.target_context.codegen().magic_tuple())]
    # With SciPy, products are calls of its BLAS.
    parts += [
        repr((have_scipy(), config.OPT, config.BOUNDSCHECK, config.DEBUGINFO_DEFAULT, config.LOOP_VECTORIZE))
    ]
    return diskcache.entry_key(parts)


def identity(function: Any) -> str | None:
    """A hash of a function's code and of all it refers to; None if it refers to what has no hash."""
    digest = hashlib.sha256()
    try:
        _feed_function(digest, function, [])
    except _NoIdentity:
        return None
    return digest.hexdigest()


class _NoIdentity(Exception):
    """A value that cannot be told from another one in another process."""


def _feed_function(digest: Any, f: Any, seen: list[Any]) -> None:
    if any(f is g for g in seen):
        digest.update(b"again %d" % [f is g for g in seen].index(True))
        return
    if "__name__" not in f.__globals__:
        raise _NoIdentity  # made by exec(): another process has no module to find it in
    seen.append(f)
    code = f.__code__
    # Version 2 of the format: later ones depend on how often an object is referred to.
    digest.update(marshal.dumps(_nameless(code), 2))
    digest.update(f"{f.__module__}.{f.__qualname__}".encode())
    _feed(digest, f.__defaults__, code, seen)
    for name, cell in zip(code.co_freevars, f.__closure__ or (), strict=True):
        digest.update(name.encode())
        try:
            _feed(digest, cell.cell_contents, code, seen)
        except ValueError:
            raise _NoIdentity from None
    for name in sorted(names_in(code)):
        if name in f.__globals__:
            digest.update(name.encode())
            _feed(digest, f.__globals__[name], code, seen)


def _nameless(code: types.CodeType) -> types.CodeType:
    """Code without its file, which in a notebook has another name each time."""
    return code.replace(co_filename="", co_consts=tuple(_plain(c) for c in code.co_consts))


def _plain(constant: Any) -> Any:
    """A constant of code; slices, which Python 3.14 has among them, are not in the old format."""
    if isinstance(constant, types.CodeType):
        return _nameless(constant)
    if isinstance(constant, slice):
        return ("slice", constant.start, constant.stop, constant.step)
    return tuple(map(_plain, constant)) if isinstance(constant, tuple) else constant


def names_in(code: types.CodeType) -> set[str]:
    """The names that code may look up outside of its function, those of attributes among them."""
    names = set(code.co_names)
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            names |= names_in(c)
    return names


def _feed(digest: Any, value: Any, code: types.CodeType, seen: list[Any]) -> None:
    if isinstance(value, (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype)):
        digest.update(f"{type(value).__name__} {value!r}".encode())
    elif isinstance(value, tuple):
        digest.update(f"{type(value).__name__} of {len(value)}".encode())
        for item in value:
            _feed(digest, item, code, seen)
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        digest.update(f"array {value.dtype.str} {value.shape} {value.strides}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, types.ModuleType):
        digest.update(value.__name__.encode())
        if value.__name__ == "mirabelle":
            digest.update(_stamp("mirabelle.backends.host.scalarloops") + _stamp("mirabelle.dispatch.ops"))
        if value.__name__.partition(".")[0] not in ("numpy", "math", "cmath", "numba", "mirabelle"):
            # A constant or function of a module of the user's.
            for name in sorted(names_in(code)):
                if name in vars(value):
                    digest.update(name.encode())
                    _feed(digest, vars(value)[name], code, seen)
    elif isinstance(value, type) and value.__module__ in ("builtins", "numpy"):
        digest.update(value.__name__.encode())
    elif is_public(value):
        digest.update(f"{value.__module__}.{value.__name__}".encode())
        if value.__module__.startswith("mirabelle."):
            digest.update(_stamp(value.__module__))
    else:
        inner = getattr(value, "python", None) or getattr(value, "py_func", None)
        if not inspect.isfunction(inner):
            raise _NoIdentity
        options = getattr(value, "options", None) or getattr(value, "targetoptions", None) or {}
        digest.update(repr(sorted(options.items())).encode())
        _feed_function(digest, inner, seen)


@functools.cache
def _stamp(module: str) -> bytes:
    """What changes when a module of ours is edited."""
    path = getattr(sys.modules.get(module), "__file__", None)
    return hashlib.sha256(Path(path).read_bytes()).digest() if path else b""


def is_public(value: Any) -> bool:
    """A function of a package whose version is part of the key, found by its name there."""
    home = getattr(value, "__module__", None) or getattr(type(value), "__module__", "") or ""
    name = getattr(value, "__name__", None)
    return isinstance(name, str) and home.partition(".")[0] in (
        "builtins", "numpy", "math", "cmath", "operator", "numba", "mirabelle",
    ) and not hasattr(value, "python") and not hasattr(value, "py_func")  # fmt: skip
