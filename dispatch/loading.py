"""What is imported with its first use: families of arrays, and names of the public modules.

`import mirabelle` imports what every program needs. What belongs to arrays that a process may never see
(those of a card or of several processes, dual numbers, compiled programs) comes when it is asked for: with a
name of `mirabelle`, with a module of its package, or when dispatch meets the type. Each method of such a
package is for types, or of functions, that are defined there, so that no call before could have had it.

>>> from mirabelle.dispatch import loading
>>> getattr_, dir_ = loading.later(loading.__name__, {"collections": "OrderedDict Counter"})
>>> getattr_("Counter"), "OrderedDict" in dir_(), "load" in dir_()
(<class 'collections.Counter'>, True, True)
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType, ModuleType
from typing import Any, Union

from mirabelle.dispatch.forks import ForkLock

# Held while methods are looked for, and while what is asked for is imported: in this order before
# the locks of the modules, so that two threads do not wait for each other. (Who imports a public module
# has its lock first: it takes ours then, and nobody who has ours imports one.)
lock = ForkLock()
# What completes a package or a type that may be there before all of its methods are: modules to import.
_missing: dict[Any, tuple[str, ...]] = {}
_under_way: set[Any] = set()


def completed_by(what: str | type, *modules: str) -> None:
    """Say which modules are to be imported when the package `what`, or when dispatch meets the type `what`."""
    _missing[what] = _missing.get(what, ()) + modules


def complete(what: str | type) -> bool:
    """Import what completes it, if that is not done; a package says so at its end."""
    if what not in _missing:
        return False
    with lock:  # (whoever comes meanwhile waits for all of it)
        if what not in _missing or what in _under_way:
            return False
        _under_way.add(what)
        try:
            load(*_missing[what])
        finally:
            _under_way.discard(what)
        del _missing[what]
    return True


def complete_types(types: Iterable[type]) -> None:
    """Import what completes the families that these types belong to."""
    for what in [w for w in list(_missing) if isinstance(w, type)]:
        if any(issubclass(t, what) for t in types):
            complete(what)


def load(*modules: str) -> None:
    """Import modules."""
    with lock:
        for module in modules:
            importlib.import_module(module)


def everything() -> None:
    """Import all that is waiting for its first use."""
    for what in list(_missing):
        if isinstance(what, str):
            load(what)
        complete(what)


def public() -> Any:
    """The module `mirabelle`: who stands below it asks for its names when they are needed."""
    return sys.modules["mirabelle"]


def public_names(module: str) -> list[str]:
    """The names that a module shows: those that stand in it, but for modules and what begins with "_"."""
    there = vars(sys.modules[module]).items()
    return sorted([n for n, x in there if not (n.startswith("_") or isinstance(x, ModuleType))])


# What a docstring says comes back, "array or tuple of array" say (docs/site/docstrings.py).
_RETURNS = re.compile(r"Returns\n *-------\n *(\S.*)\n")


def arrays_come(module: str) -> None:
    """Say in the signatures of a module's functions what their docstrings say comes back: arrays, or several.

    So `help` shows it, and editors that run Python complete `mb.sum(x).` before it is computed. What a source
    says more exactly, stays.
    """
    for f in [*vars(sys.modules[module]).values()]:
        _array_comes(f)


def arrays_come_of(methods: type) -> None:
    """As `arrays_come`, of methods and properties, whose sources say it by a name that is not known there."""
    array = sys.modules["mirabelle.arraytypes.abstract"].AbstractArray
    for method in vars(methods).values():
        said = getattr(getattr(method, "fget", method), "__annotations__", {})
        if said.get("return") == array.__name__:
            said["return"] = array


def _array_comes(f: Any) -> None:
    said = _RETURNS.search(f.__doc__ or "") if isinstance(f, FunctionType) else None
    comes = None if said is None else _type_in_words(said[1])
    if comes is None or f.__annotations__.get("return", comes) not in (comes, "Any", "AbstractArray"):
        return
    shown: Any = f
    while shown is not None:
        signature = shown.__dict__.get("__signature__")
        if signature is None:
            shown.__annotations__["return"] = comes
        elif signature.return_annotation in (signature.empty, "AbstractArray"):
            shown.__annotations__["return"] = comes
            shown.__signature__ = signature.replace(return_annotation=comes)
        shown = shown.__dict__.get("__wrapped__") if signature is None else None


@functools.cache
def _type_in_words(words: str) -> Any:
    """The type of arrays that words say; None where they say another.

    >>> import mirabelle as mb
    >>> _type_in_words("list of array"), _type_in_words("number")
    (list[mirabelle.AbstractArray], None)
    """
    array: Any = sys.modules["mirabelle.arraytypes.abstract"].AbstractArray
    known: dict[str, Any] = {
        "array": array,
        "matrix": array,
        "tuple": tuple[Any, ...],
        "tuple of array": tuple[array, ...],
        "list": list[Any],
        "list of array": list[array],
        "dict": dict[str, Any],
    }
    kinds = [known.get(kind) for kind in re.split(", | or ", words)]
    return None if None in kinds else Union[tuple(kinds)]  # noqa: UP007 (jedi knows it, and not types.UnionType)


def later(
    module: str,
    names: Mapping[str, str],
    others: Iterable[str] = (),
    unknown: Callable[[str], Any] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module some of whose names come from modules not imported yet.

    `names` maps modules to the names they give, with spaces between; a module that gives none is one itself.
    `others` are names that are shown although they begin with "_". `unknown` is asked for all else.
    """
    homes = {name: home for home, given in names.items() for name in given.split()}
    modules = {home.rpartition(".")[2]: home for home, given in names.items() if not given}
    everyone = sorted({*homes, *modules, *others, *public_names(module)})

    def __getattr__(name: str) -> Any:
        home = homes.get(name) or modules.get(name)
        if home is None:
            if unknown is None:
                raise AttributeError(f"module {module!r} has no attribute {name!r}")
            found = unknown(name)
        else:
            importlib.import_module(home) if name in modules else load(home)
            found = getattr(sys.modules[home], name) if name in homes else sys.modules[home]
        _array_comes(found)
        setattr(sys.modules[module], name, found)
        return found

    def __dir__() -> list[str]:
        return list(everyone)

    return __getattr__, __dir__
