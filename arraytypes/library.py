"""Calls of a place's own library: sorts, FFTs, factorisations, whatever is no fused kernel.

Each family of arrays has *routines*: functions of its views, by NumPy's names ("sort",
"linalg.qr", "fft.fft"). A call is a barrier: it evaluates its operands, runs one routine on their
memory, and wraps what comes back. So a function that calls a routine runs on every place that
has it, and a backend adds a place by naming its library.

>>> import mirabelle as mb
>>> from mirabelle.arraytypes import library
>>> print(library.call("sort", mb.HostArray([3, 1, 2]) * 10))
[10 20 30]
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import VIEWS, DenseArray, wrap
from mirabelle.arraytypes.elementwise import join_families, leaf_family
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.arraytypes.wrappers import Wrapper
from mirabelle.dispatch import counters, verbs
from mirabelle.dispatch.generic import by_type, generic
from mirabelle.dispatch.naming import named, of_types
from mirabelle.dispatch.tree import Leaf


@by_type
def routine_of(family: Any, name: str) -> Any:
    """The routine of that name of a family's library: a function of views."""


@routine_of.method
def _(family: type[DenseArray], name: str) -> Callable[..., Any]:
    found = registered(family, name)
    if found is None:
        raise NotImplementedError(
            f"The library of {family.__name__} has no {name}. Move the data to a place that has it, "
            f"`mb.adapt(mb.HostArray, x)`, or add the routine: `@library.routine({family.__name__}, "
            f"{name!r})` from mirabelle.arraytypes."
        )
    return found


@by_type
def matrix_product(family: Any, x1: Any, x2: Any) -> Any:
    """The product of two evaluated arrays of a family, of at least one dimension and of shapes that fit."""


@matrix_product.method
def _(family: type[DenseArray], x1: Any, x2: Any) -> Any:
    raise _missing(family, "matrix product", "matrix_product", "x1, x2")


@by_type
def scan(family: Any, x: Any, op: Any, axis: int) -> Any:
    """What a place's library makes of `mb.accumulate`."""


@scan.method
def _(family: type[DenseArray], x: Any, op: Any, axis: int) -> Any:
    raise _missing(family, "scan", "scan", "x, op, axis")


def _missing(family: Any, what: str, function: str, parameters: str) -> TypeError:
    name = family.__name__
    return TypeError(
        f"{name} has no {what}. Give it one, with `library` from mirabelle.arraytypes: "
        f"`@library.{function}.method` for `def _(family: type[{name}], {parameters})`."
    )


@verbs.accumulate.method
def _(x: AbstractArray, op: Any = None, axis: Any = None, init: Any = None) -> Any:
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"accumulate needs an axis for an array of {x.ndim} dimensions: axis=0, say.")
        axis = 0
    (axis,) = normal_axes(axis, x.ndim)
    return scan(leaf_family(type(x)), x, op, axis)


def call(routine: str, *operands: Any, **options: Any) -> Any:
    """Run a routine on evaluated operands: an array, or a tuple where it returns several.

    Arrays are found among operands and options, and in lists and tuples of these; what else
    there is goes to the routine as it is.
    """
    family: Any = None
    for x in operands:
        if type(x) in _PLAIN:
            continue
        if not isinstance(x, AbstractArray) or x.carries_derivatives:
            return _call(routine, operands, options)
        other = leaf_family(type(x))
        if family is None:
            family = other
        elif family is not other:
            return _call(routine, operands, options)
    if family is None or not (
        _PLAIN.issuperset(map(type, options.values())) or all(map(_is_plain, options.values()))
    ):
        return _call(routine, operands, options)
    views = [x if type(x) in _PLAIN else view(family, x) for x in operands]
    return _wrapped(family, routine_of(family, routine)(*views, **options))


def numpys_or(composition: Any, routine: str, *operands: Any, **options: Any) -> Any:
    """NumPy's routine for plain arrays of the host, also in a program; on all other places, and for dual
    numbers, what composes it of other functions.

    >>> import mirabelle as mb
    >>> f = lambda x: mb.flip(mb.sort(x))
    >>> print(numpys_or(f, "sort", mb.HostArray([2, 1, 3])), numpys_or(f, "sort", mb.RefArray([2, 1, 3])))
    [1 2 3] [3 2 1]
    """
    for x in (*operands, *options.values()):
        kind: Any = type(x)
        if kind in _PLAIN or _is_numpys(kind):
            continue
        if any(
            x.carries_derivatives or not _on_host(leaf_family(type(x))) for x in arrays_in((x,), AbstractArray)
        ):
            return composition(*operands, **options)
    return call(routine, *operands, **options)


def _on_host(family: Any) -> bool:
    family = family.inner if family.home.kind == "traced" else family
    return family.home.kind == "host"  # type: ignore[no-any-return]


@functools.lru_cache(256)
def _is_numpys(kind: type) -> bool:
    """Is it a type of plain arrays of the host?"""
    return issubclass(kind, DenseArray) and _on_host(leaf_family(kind))


# What holds no arrays.
_PLAIN = frozenset((int, float, complex, bool, str, type(None)))


def _is_plain(option: Any) -> bool:
    """Does an option hold no arrays? Shapes do not."""
    return type(option) in _PLAIN or (type(option) is tuple and _PLAIN.issuperset(map(type, option)))


def _call(routine: str, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The same, whatever the operands are."""
    arrays = arrays_in(operands)
    if options:
        arrays += arrays_in(options)
    if any(getattr(x, "carries_derivatives", False) for x in arrays):
        return _differentiated(routine, operands, options)
    family: Any
    families = {leaf_family(type(x)) if isinstance(x, AbstractArray) else None for x in arrays}
    if len(families) == 1 and None not in families:
        (family,) = families
    else:
        family = join_families(routine, tuple(arrays))
    run = routine_of(family, routine)
    if options:
        options = {key: nested(family, x) for key, x in options.items()}
    return _wrapped(family, run(*[nested(family, x) for x in operands], **options))


def _differentiated(routine: str, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What a routine makes of dual numbers: `arraytypes/duals/routines.py` has a rule for each."""
    operands = tuple(x._in_memory() if _of_dual_parts(x) else x for x in operands)
    arrays = arrays_in((*operands, *options.values()), AbstractArray)
    return differentiated(next(x for x in arrays if x.carries_derivatives), routine, operands, options)


@functools.partial(generic, arity=1)
def differentiated(x: Any, routine: str, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What a routine makes of operands or options of which `x` carries derivatives."""


def _of_dual_parts(x: Any) -> bool:
    return hasattr(x, "_stored") and x.carries_derivatives


def nested(family: Any, x: Any) -> Any:
    """The views of the arrays in a nest of lists, tuples and dictionaries, as the same nest."""
    if isinstance(x, AbstractArray):
        return view(family, x)
    if isinstance(x, (list, tuple)):
        made = [nested(family, item) for item in x]
        return tuple(made) if isinstance(x, tuple) else made
    if isinstance(x, dict):
        return {key: nested(family, item) for key, item in x.items()}
    return view(family, x)


def arrays_in(nest: Any, kind: Any = (AbstractArray, np.ndarray)) -> list[Any]:
    """The arrays in such a nest."""
    found: list[Any] = []
    for x in nest.values() if isinstance(nest, dict) else nest:
        if isinstance(x, kind):
            found.append(x)
        elif isinstance(x, (list, tuple, dict)):
            found += arrays_in(x, kind)
    return found


def has(family: Any, routine: str) -> bool:
    """Does this family's library have the routine?"""
    try:
        routine_of(family, routine)
    except NotImplementedError:
        return False
    return True


# How often a family was given a routine: what was found out about routines before may be wrong since.
additions = 0


def routine(family: Any, name: str) -> Callable[[Any], Any]:
    """Give a family a routine: a function of views that returns new memory.

    >>> import mirabelle as mb
    >>> from mirabelle.arraytypes import library
    >>> @library.routine(mb.HostArray, "doubled")
    ... def _(x): return x * 2
    >>> print(library.call("doubled", mb.HostArray([1, 2])))
    [2 4]
    """

    def register(f: Any) -> Any:
        global additions
        ROUTINES.setdefault(family, {})[name] = named(f, of_types(name, [family.__name__]))
        additions += 1
        return f

    return register


# What families were given, by name.
ROUTINES: dict[Any, dict[str, Callable[..., Any]]] = {}


def registered(family: Any, name: str) -> Callable[..., Any] | None:
    """The routine that a family, or one that it stands below, was given by that name."""
    tables = [ROUTINES[t] for t in family.__mro__ if t in ROUTINES]
    return next((table[name] for table in tables if name in table), None)


def view(family: Any, x: Any) -> Any:
    """What a routine gets for an operand: a view of memory, or a number."""
    if isinstance(x, AbstractArray):
        found = stored_view(x)
        if found is not None and VIEWS.get(type(found)) is family:
            return found
        if family.home.rank >= 2 and x.ndim == 0 and x.place != family.home:
            return verbs.fetch(x)[()]
        if x.place != family.home:
            x = verbs.adapt(family, x)
        return verbs.leaf_of(x).view
    if isinstance(x, np.ndarray) and x.ndim:
        return family._wrap_numpy(x).view
    return x


def stored_view(x: Any) -> Any:
    """The view of a dense array, evaluated, or of a wrapper around one; None for anything else."""
    if isinstance(x, DenseArray):
        node = x._node
        return (node if type(node) is Leaf else verbs.leaf_of(x)).view
    if isinstance(x, Wrapper):
        whole = stored_view(x._parent)
        return None if whole is None else x._show(whole)
    return None


def _wrapped(family: Any, result: Any) -> Any:
    """What a routine returned, as arrays."""
    if type(result) is np.ndarray:
        return family._of_result(result)
    if type(result) in _PLAIN:
        return result
    if isinstance(result, (tuple, list)):
        return tuple(_wrapped(family, r) for r in result)
    if isinstance(result, np.generic):  # (NumPy's float64 is a Python float, too)
        result = np.asarray(result)
    if result is None or isinstance(result, (bool, int, float, complex, str)):
        return result
    if isinstance(result, np.ndarray):
        return family._of_result(result)
    leaf = Leaf(result)
    if counters.active:
        counters.add(bytes_written=leaf.view.nbytes)
    return wrap(family, leaf)
