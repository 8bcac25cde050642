"""A card's library: routines by NumPy's names, which run on the card through CuPy.

A routine is a function of the array module (CuPy; NumPy, on the simulated card) and of its arrays,
registered with `@routine(name)` in the modules `lib_*` beside this one, wherever CuPy lacks the
function, some of its options, or NumPy's meaning. Other names are CuPy's, or those of
`cupyx.scipy`. Nothing here moves data to the host; what decides a shape or an error (a length, a
bound, whether a matrix is singular) is read as a number.

What cannot run on a card is refused with the cure, and `library.has` says so beforehand.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.gpu import GPUArray, GPUView
from mirabelle.arraytypes.library import arrays_in
from mirabelle.dispatch import counters, verbs
from mirabelle.dispatch.naming import named, of_routines
from mirabelle.dispatch.tree import Leaf

# Routines of the library's arrays, by name: `run(module, *arrays, **options)`.
ROUTINES: dict[str, Callable[..., Any]] = {}

# What no library for cards has, and why not.
ABSENT: dict[str, str] = {}

_CHAPTERS = (
    "convolution", "counting", "elements", "factors", "fourier", "indices", "joining", "linalg", "matrices",
    "products", "scattering", "segments", "sets", "sorting", "sparse",
    "sparseproducts", "sparsesolve", "structured", "symmetric", "systems", "toeplitz",
)  # fmt: skip


def routine(*names: str) -> Callable[[Any], Any]:
    """Give the cards a routine: a function of the array module and of its arrays."""

    def register(f: Any) -> Any:
        named(f, of_routines(names, "GPUArray"))
        for name in names:
            ROUTINES[name] = f
        return f

    return register


def absent(name: str, why: str) -> None:
    """Say that a routine cannot run on a card."""
    ABSENT[name] = why


@functools.cache
def _chapters() -> None:
    for name in _CHAPTERS:
        importlib.import_module(f"mirabelle.backends.gpu.lib_{name}")


@library.routine_of.method
def _(family: type[GPUArray], name: str) -> Callable[..., Any]:
    """One registered for the family, one of ours, or the library's own."""
    return _looked_up(family, name)[3]


def uncounted(cls: Any, name: str) -> Callable[..., Any]:
    """The same, for a caller that counts itself."""
    return _looked_up(cls, name)[2]


def _looked_up(cls: Any, name: str) -> _Found:
    found = _known.get((cls, name))
    if found is None or found[0] is not cls.driver() or found[1] != library.additions:
        _chapters()
        made = library.registered(cls, name) or by_arrays(cls, name)
        found = _known[cls, name] = cls.driver(), library.additions, made, _counted(made)
    return found


# By type and name, what was found: for which driver, after how many additions; the same with its counting.
_Found = tuple[Any, int, Callable[..., Any], Callable[..., Any]]
_known: dict[Any, _Found] = {}


def by_arrays(cls: Any, name: str) -> Callable[..., Any]:
    """A routine of the library's arrays, for what a family's own one of that name leaves to it."""
    driver = cls.driver()
    key = (cls.family, name)
    made = _made.get(key)
    if made is None or made[0] is not driver:
        made = _made[key] = (driver, _on_arrays(cls.family, driver, _found(cls, driver, name)))
    return made[1]


# By family and name: the driver that a routine was made for, and the routine.
_made: dict[tuple[Any, str], tuple[Any, Callable[..., Any]]] = {}


@library.scan.method
def _(family: type[GPUArray], x: Any, op: Any, axis: int) -> Any:
    from mirabelle.backends.gpu import scans

    view = verbs.leaf_of(x).view
    return wrap(view.family, Leaf(scans.scan(view, op, axis)))


def _found(cls: Any, driver: Any, name: str) -> Callable[..., Any]:
    ours = ROUTINES.get(name)
    module = driver.library
    if ours is not None:
        return functools.partial(ours, module)
    why = ABSENT.get(name)
    if why is None:
        path, _, last = name.rpartition(".")
        for package in (module.__name__, SCIPY[module.__name__]):
            try:
                holder = importlib.import_module(f"{package}.{path}" if path else package)
            except ImportError:
                continue
            found = getattr(holder, last, None)
            if callable(found):
                return found  # type: ignore[no-any-return]
        why = f"The library of {cls.family.__name__} has no {name}."
    raise NotImplementedError(
        f"{why} Move the data to a place that has it, `mb.adapt(mb.HostArray, x)`, or add the routine: "
        f"`@library.routine(mb.{cls.family.__name__}, {name!r})` from mirabelle.arraytypes."
    )


# SciPy's counterpart for an array module.
SCIPY = {"cupy": "cupyx.scipy", "numpy": "scipy"}


def scipy_module(xp: Any, name: str) -> Any:
    """A part of SciPy for an array module: `cupyx.scipy.<name>`."""
    return importlib.import_module(f"{SCIPY[xp.__name__]}.{name}")


def on_card(xp: Any) -> bool:
    """Are its arrays on a card, or is NumPy standing for CuPy?"""
    return bool(xp.__name__ == "cupy")


def number(xp: Any, value: Any, dtype: Any) -> Any:
    """A number as an array without axes. (CuPy sets the memory of what equals zero to zeros: -0.0, too.)"""
    return xp.asarray([value], dtype=dtype).reshape(())


def raising(xp: Any) -> Any:
    """A block in which the card's solvers say by an exception that they failed. (They wait, to know.)"""
    if not on_card(xp):
        return contextlib.nullcontext()
    return importlib.import_module("cupyx").errstate(linalg="raise")


# Views and arrays


def _counted(run: Callable[..., Any]) -> Callable[..., Any]:
    def call(*views: Any, **options: Any) -> Any:
        if counters.active:
            operands = arrays_in((views, options), GPUView)
            counters.add(library_calls=1, bytes_read=sum(v.nbytes for v in operands))
        return run(*views, **options)

    return call


def _on_arrays(family: Any, driver: Any, run: Any) -> Callable[..., Any]:
    """A routine of the library's arrays as one of views."""

    def call(*views: Any, **options: Any) -> Any:
        given: list[Any] = []
        with driver.using():
            arrays = [_arrays(driver, v, given) for v in views]
            if options:
                options = {key: _arrays(driver, v, given) for key, v in options.items()}
            return _views(family, driver, driver.attempt(run, arrays, options), given)

    if on_card(driver.library):
        return call

    def quiet(*views: Any, **options: Any) -> Any:
        with np.errstate(all="ignore"):  # NumPy stands for CuPy, which never warns
            return call(*views, **options)

    return quiet


_PLAIN = frozenset((int, float, bool, str, type(None)))


def _arrays(driver: Any, x: Any, given: list[Any]) -> Any:
    """The library's arrays for the views in a nest; they are listed in `given`, too."""
    if isinstance(x, GPUView):
        made = driver.array(x)
        given.append(made)
        return made
    if type(x) in _PLAIN:
        return x
    if isinstance(x, (list, tuple)):
        nest = [_arrays(driver, item, given) for item in x]
        return tuple(nest) if isinstance(x, tuple) else nest
    return {key: _arrays(driver, v, given) for key, v in x.items()} if isinstance(x, dict) else x


def _views(family: Any, driver: Any, result: Any, given: list[Any]) -> Any:
    """Results as views of memory that nobody else holds."""
    if type(result) in _PLAIN:
        return result
    if isinstance(result, (tuple, list)):
        return tuple(_views(family, driver, r, given) for r in result)
    if isinstance(result, driver.library.ndarray):
        for x in given:
            if driver.library.may_share_memory(result, x):
                result = result.copy()
                break
        return driver.view(result, family.view_type)
    if isinstance(result, np.generic):
        return family._upload(np.asarray(result))
    return result
