"""What NumPy's names mean inside of a compiled function: arrays are made where its arguments are.

`np.zeros(n)` in a function that is called with arrays on a card makes an array on the card, and one that is
being captured a value of the program. Outside of compiled functions nothing changes, and NumPy is not patched.

>>> import numpy as np
>>> import mirabelle as mb
>>> @mb.compile
... def padded(x):
...     out = np.zeros(len(x) + 2)
...     out[1:-1] = x
...     return out
>>> print(padded(mb.HostArray([1.0, 2.0])))
[0. 1. 2. 0.]
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mirabelle.arraytypes import shapereads
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import asarray, empty
from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.makers import default_array
from mirabelle.arraytypes.programs.capture import capturing
from mirabelle.arraytypes.programs.errors import TraceError, shown_line, user_line
from mirabelle.dispatch import loading

_ARRAYS = (AbstractArray, np.ndarray)
# Modules of NumPy, and ours that have the same functions.
_MODULES = {np: "", np.linalg: "linalg", np.fft: "fft"}
# What makes arrays of lists and numbers. (What else is given none of our arrays is NumPy's own.)
_FROM_DATA = {
    "array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "copy", "full", "fromfunction",
    "fromiter", "frombuffer", "fromstring", "diag", "diagflat", "tri", "tril", "triu", "vander", "meshgrid",
    "indices", "atleast_1d", "atleast_2d", "atleast_3d", "zeros_like", "ones_like", "empty_like", "full_like",
    "broadcast_to", "linspace", "logspace", "geomspace", "arange", "zeros", "ones", "empty", "eye", "identity",
    "tile",
}  # fmt: skip


# The type of the arrays that a function is called with: its `np.zeros(n)` makes such.
_family: contextvars.ContextVar[Any] = contextvars.ContextVar("mirabelle_family_inside", default=None)


@contextlib.contextmanager
def made_of(family: Any) -> Iterator[None]:
    """Within the block, what NumPy's functions make inside of compiled functions are arrays of this type."""
    token = _family.set(family)
    try:
        yield
    finally:
        _family.reset(token)


def family_inside() -> Any:
    """The type of what is made here; None where it is not said."""
    return _family.get()


def _made(make: Any, real: Any = None) -> Any:
    """A function that makes arrays of lists and numbers, of the type of the arguments.

    What holds no numbers (texts, dates, records) are arrays of NumPy's, as outside: `real` makes those.
    """

    @functools.wraps(make)
    def made(*args: Any, **kwargs: Any) -> Any:
        family = _family.get()
        try:
            if family is None:
                return make(*args, **kwargs)
            with default_array(family):
                return make(*args, **kwargs)
        except TypeError:
            if real is None or _among((args, kwargs), _is_ours):
                raise
            found = real(*args, **kwargs)
            if _is_something_else(found):
                return found
            raise

    return made


class _NDArray(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, _ARRAYS)

    def __subclasscheck__(cls, t: type) -> bool:
        return issubclass(t, _ARRAYS)

    def __call__(cls, shape: Any, dtype: Any = float, *rest: Any, **options: Any) -> Any:
        if rest or options:
            return np.ndarray(shape, dtype, *rest, **options)
        return _made(empty, np.empty)(shape, dtype=dtype)

    def __getattr__(cls, name: str) -> Any:
        return getattr(np.ndarray, name)


class ndarray(metaclass=_NDArray):
    """`np.ndarray` inside: NumPy's arrays and ours; `np.ndarray(shape)` is `np.empty(shape)`."""


class NumPyInside(types.ModuleType):
    """NumPy, or a module of it, as compiled functions see it."""

    def __init__(self, module: types.ModuleType, ours: Any) -> None:
        super().__init__(module.__name__, module.__doc__)
        self.__dict__.update(_numpy=module, _ours=ours)

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._numpy, name)  # (which says what is wrong with a name that is not there)
        if real is np.random:
            return _random
        if isinstance(real, types.ModuleType):
            return inside(real)
        if real in (np.mgrid, np.ogrid):
            return _Grid(real)
        if real is np.r_ or real is np.c_:
            return _Rows(real, getattr(self._ours, name))
        if isinstance(real, type):
            return ndarray if real is np.ndarray else real
        made = _meant(name, real, getattr(self._ours, name, None)) if callable(real) else real
        self.__dict__[name] = made
        return made

    def __dir__(self) -> list[str]:
        return dir(self._numpy)


class _Grid:
    """`np.mgrid` or `np.ogrid` inside: what it makes is where the arguments are."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getitem__(self, at: Any) -> Any:
        found = self._real[at]
        family = _family.get()
        if family is None or family is HostArray:
            return found
        if isinstance(found, np.ndarray):
            return _made(asarray)(found)
        return type(found)([_made(asarray)(x) for x in found])


class _Rows:
    """`np.r_` or `np.c_` inside: arrays like the arguments'."""

    def __init__(self, real: Any, ours: Any) -> None:
        self._real, self._ours = real, ours

    def __getitem__(self, at: Any) -> Any:
        return self._real[at] if _family.get() is None else _made(self._ours.__getitem__)(at)


class _Random(types.ModuleType):
    """`np.random` inside: what gives other numbers at each call is no part of a program."""

    def __getattr__(self, name: str) -> Any:
        real = getattr(np.random, name)
        if not capturing() or isinstance(real, type):
            return real
        if name == "default_rng":
            return _seeded
        raise _not_the_same(f"np.random.{name}")


def _seeded(*seed: Any, **named: Any) -> Any:
    if not any(x is not None for x in (*seed, *named.values())):
        raise _not_the_same("np.random.default_rng()")
    return np.random.default_rng(*seed, **named)


def _not_the_same(name: str) -> TraceError:
    return TraceError(
        f"{name} in {shown_line(user_line(3))} gives other numbers at each call, and a program would draw them "
        "once. Pass in what is drawn, or use mb.random.default_rng(seed)."
    )


_random = _Random("numpy.random")


def inside(x: Any) -> Any:
    """What a thing of NumPy's stands for inside of a compiled function: itself, if it stands for nothing else.

    >>> import numpy as np
    >>> from mirabelle.arraytypes.programs.numpyinside import inside
    >>> inside(np.float64) is np.float64, isinstance(np.ones(2), inside(np.ndarray))
    (True, True)
    """
    if x is np.ndarray:
        return ndarray
    if x is len:
        return len_inside
    if isinstance(x, types.ModuleType):
        return _module(x) if x in _MODULES else x
    name = getattr(x, "__name__", None)
    if isinstance(name, str) and not isinstance(x, type) and callable(x):
        for module in _MODULES:
            if getattr(module, name, None) is x:
                return getattr(_module(module), name)
    return x


def len_inside(x: Any) -> int:
    """`len` inside: of an array, a length as its shape has it."""
    if shapereads.current is not None and isinstance(x, AbstractArray) and x.ndim:
        return x.shape[0]
    return len(x)


def has_inside(x: Any) -> bool:
    """Does a thing stand for another inside of a compiled function?"""
    if isinstance(x, (types.ModuleType, type)):
        return x in _MODULES or x is np.ndarray
    if x is len:
        return True
    name = getattr(x, "__name__", None)
    if not isinstance(name, str) or not callable(x):
        return False
    return any(getattr(module, name, None) is x for module in _MODULES)


@functools.cache
def _module(module: types.ModuleType) -> NumPyInside:
    public = loading.public()
    return NumPyInside(module, getattr(public, _MODULES[module]) if _MODULES[module] else public)


def _meant(name: str, real: Any, ours: Any) -> Any:
    """Our function of NumPy's name; of numbers alone NumPy's is meant."""
    if ours is None or not callable(ours):
        return real
    if name in _FROM_DATA or getattr(ours, "makes_arrays", False):
        return _made(ours, real)
    return _OfNumbers(real, ours)


class _OfNumbers:
    """A function that is ours for arrays, and NumPy's where there is none: `np.sqrt(2.0)` is a number."""

    def __init__(self, real: Any, ours: Any) -> None:
        self.__dict__.update(_real=real, _ours=ours)
        functools.update_wrapper(self, ours, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for x in args:
            if isinstance(x, AbstractArray):
                return self._ours(*args, **kwargs)
        given = args, kwargs
        if _among(given, _is_array) and (_among(given, _is_ours) or not _among(given, _is_something_else)):
            return self._ours(*args, **kwargs)
        if shapereads.current is not None:
            found = shapereads.current.applied(self._real, args, kwargs)
        else:
            found = self._real(*args, **kwargs)
        return _made(asarray)(found) if isinstance(found, np.ndarray) and found.dtype.kind in "biufc" else found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ours if hasattr(self._ours, name) else self._real, name)

    def __repr__(self) -> str:
        return repr(self._ours)


def _is_ours(x: Any) -> bool:
    return isinstance(x, AbstractArray)


def _is_array(x: Any) -> bool:
    return isinstance(x, _ARRAYS)


def _is_something_else(x: Any) -> bool:
    """Is it an array of NumPy's that holds no numbers: texts, dates, records, objects?"""
    return isinstance(x, np.ndarray) and x.dtype.kind not in "biufc"


def _among(nest: Any, wanted: Callable[[Any], bool]) -> bool:
    for x in nest.values() if isinstance(nest, dict) else nest:
        if wanted(x) or (isinstance(x, (list, tuple, dict)) and _among(x, wanted)):
            return True
    return False
