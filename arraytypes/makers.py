"""What functions make of lists and numbers: the default array type, and namespaces of other types.

>>> import mirabelle as mb
>>> with mb.default_array(mb.RefArray):
...     print(mb.zeros(2).place, mb.diag([1, 2]).place)
ref:0 ref:0
>>> xp = mb.namespace(mb.RefArray)
>>> xp.ones(2).place, xp.diag([1, 2]).place, xp.sin is mb.sin
(ref:0, ref:0, True)

One rule serves all: what is given arrays stays where they are, and all else asks the default, which the
functions and the array types of a namespace set while they run.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import VIEWS, DenseArray
from mirabelle.arraytypes.elementwise import asked as _default
from mirabelle.arraytypes.elementwise import default_family, leaf_family
from mirabelle.arraytypes.gpu import GPUArray
from mirabelle.arraytypes.parametric import generic_class
from mirabelle.arraytypes.wrappers import PermutedDims
from mirabelle.dispatch import loading, verbs
from mirabelle.dispatch.styles import HOST, Place

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import Device

F = TypeVar("F", bound=Callable[..., Any])

# While a program is captured: the family of its arrays, and that whose arrays are recorded instead.
_instead: contextvars.ContextVar[tuple[Any, Any] | None] = contextvars.ContextVar(
    "mirabelle_recorded_arrays", default=None
)


class Maker:
    """How arrays are made: the family that stores them, and how a stored one is shown.

    `show` is a function of a new dense array, for a wrapper type around it.
    """

    def __init__(self, family: Any, show: Callable[[Any], Any] | None = None, name: str = "") -> None:
        loading.complete_types((family,))
        self.family = family
        self.show = show
        self.name = name or family.__name__

    def __call__(self, dense: Any) -> Any:
        return dense if self.show is None else self.show(dense)

    def __repr__(self) -> str:
        return f"maker of {self.name}"


def maker_of(device: Any) -> Maker:
    """What a `device=` argument stands for: a place, an array type, a function of an array."""
    maker = _meant(device)
    instead = _instead.get()
    if instead is not None and maker.family is instead[0] and maker.show is None:
        return Maker(instead[1])
    return maker


def _meant(device: Any) -> Maker:
    if device is None:
        return _default.get() or _usual()
    if isinstance(device, Maker):
        return device
    if isinstance(device, Place):
        for family in dict.fromkeys(VIEWS.values()):
            if family.home == device:
                return Maker(family)
        other = _other_card(device.kind, device.index)
        if other is not None:
            return Maker(other)
        raise ValueError(f"No array type stores its data at {device}. Give the type: device=mb.HostArray.")
    if isinstance(device, type) and issubclass(device, DenseArray) and hasattr(device, "home"):
        return Maker(generic_class(device))
    if isinstance(device, type) and issubclass(device, DenseArray) and hasattr(device, "_over"):
        return Maker(device._over(default_family()))
    if isinstance(device, type) and issubclass(device, PermutedDims):
        parent = getattr(device, "parent_type", AbstractArray)
        inner = parent if parent is not AbstractArray else default_family()
        return Maker(leaf_family(inner), functools.partial(_transposed, maker_of(inner)), device.__name__)
    if isinstance(device, str):
        for family in dict.fromkeys(VIEWS.values()):
            if device in (family.__name__, repr(family.home), family.home.kind):
                return Maker(family)
            if device == "cpu" and family.home == HOST:  # as other libraries call it
                return Maker(family)
        kind, _, index = device.rpartition(":")
        if index.isdecimal():
            other = _other_card(kind, int(index))
            if other is not None:
                return Maker(other)
    elif callable(device) and not isinstance(device, type):
        return Maker(default_family(), device, getattr(device, "__name__", "function"))
    known = ", ".join(f"mb.{f.__name__}" for f in dict.fromkeys(VIEWS.values()))
    raise ValueError(
        f"{device!r} is no place an array can be made at. Give an array type ({known}), the device of "
        "another array (x.device), or leave it away."
    )


@functools.cache
def _usual() -> Maker:
    return Maker(default_family())


def _other_card(kind: str, index: int) -> Any:
    """The family of a card that no array is on yet; None if there is no such kind of cards."""
    for family in dict.fromkeys(VIEWS.values()):
        if issubclass(family, GPUArray) and family.home.kind == kind:
            return family.on(index)
    return None


def _transposed(inner: Maker, x: Any) -> Any:
    """An array equal to `x` that is a transposed view of memory."""
    if x.ndim < 2:
        return inner(x)
    back = tuple(range(x.ndim))[::-1]
    return verbs.permute_dims(inner(verbs.copy(verbs.permute_dims(x, back))), back)


@contextlib.contextmanager
def default_array(device: Device) -> Iterator[None]:
    """Within the block, creation functions make arrays of this type unless told otherwise.

    Parameters
    ----------
    device : array type
        What creation functions make.

    Returns
    -------
    context manager
        For a `with` block, which gets no value; what held before holds again after it. It decorates
        functions, too.

    Examples
    --------
    >>> import mirabelle as mb
    >>> with mb.default_array(mb.RefArray):
    ...     x = mb.linspace(0, 1, 3)
    >>> type(x).__name__
    'RefArray[float64, 1]'
    """
    token = _default.set(maker_of(device))
    try:
        yield
    finally:
        _default.reset(token)


@contextlib.contextmanager
def made_instead(family: Any, recorded: Any) -> Iterator[None]:
    """Within the block, creation functions that are to make arrays of `family` make those of `recorded`."""
    token = _instead.set((family, recorded))
    try:
        yield
    finally:
        _instead.reset(token)


_namespaces: dict[Any, types.ModuleType] = {}


def namespace(device: Device) -> types.ModuleType:
    """The namespace of mirabelle whose functions make arrays of one type, of all that is no array yet.

    Elementwise functions are mirabelle's own (`xp.sin is mb.sin`): a number joins what it is computed with.

    Parameters
    ----------
    device : array type
        What its functions make.

    Returns
    -------
    module
        With the functions of mirabelle by their names, for libraries that take an `xp`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> xp = mb.namespace(mb.types.Transpose[mb.HostArray])
    >>> type(xp.ones((2, 3))).__name__
    'Transpose[HostArray[float64, 2]]'
    """
    maker = maker_of(device)
    try:
        return _namespaces[device]
    except (KeyError, TypeError):
        pass
    mirabelle = loading.public()

    made = _specialised(mirabelle, maker, f"mirabelle.namespace({maker.name})")
    try:
        _namespaces[device] = made
    except TypeError:
        pass
    return made


VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def namespace_of(x: AbstractArray, version: str | None) -> types.ModuleType:
    """The namespace of an array: mirabelle itself, or the one that makes arrays where `x` is."""
    mirabelle = loading.public()

    if version is not None and version not in VERSIONS:
        raise ValueError(
            f"mirabelle is an array API namespace of the versions {', '.join(VERSIONS)}, not {version!r}."
        )
    family = leaf_family(type(x))
    return mirabelle if family is default_family() else namespace(family)


def _specialised(module: types.ModuleType, maker: Maker, name: str) -> types.ModuleType:
    """The namespace of a module whose functions make arrays by `maker`. A name is made when it is asked for."""
    made = types.ModuleType(name, module.__doc__)
    public = list(module.__dict__.get("__all__", ()))

    def __getattr__(key: str) -> Any:
        value = getattr(module, key)  # (which says what is wrong with a name that is not there)
        if key in public or isinstance(value, type):  # (names of before are in no list)
            value = _made_by(maker, value, f"{name}.{key}")
            setattr(made, key, value)
        return value

    made.__dict__.update(__getattr__=__getattr__, __dir__=lambda: list(public), __all__=public)
    return made


def _made_by(maker: Maker, value: Any, name: str) -> Any:
    if isinstance(value, types.ModuleType):
        return _specialised(value, maker, name)
    if getattr(value, "makes_arrays", False):
        return _bound(value, maker)
    if hasattr(value, "made_by"):  # mgrid and its like, which are no functions
        return value.made_by(maker)
    if isinstance(value, types.FunctionType):
        return value if value in verbs.ELEMENTWISE.values() else _within(value, maker)
    return _type_within(value, maker) if _is_made_of_data(value) else value


def _bound(f: Any, maker: Maker) -> Any:
    """A creation function whose `device=` is `maker` unless given."""

    @functools.wraps(f)
    def create(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("device") is None:
            kwargs["device"] = maker
        return f(*args, **kwargs)

    create.__signature__ = inspect.signature(f)  # type: ignore[attr-defined]
    return create


def _within(f: Any, maker: Maker) -> Any:
    """A function that makes arrays by `maker` of what has no place. What is given arrays is left alone."""

    @functools.wraps(f)
    def run(*args: Any, **kwargs: Any) -> Any:
        if (args and isinstance(args[0], AbstractArray)) or _have_place((args, kwargs)):
            return f(*args, **kwargs)
        token = _default.set(maker)
        try:
            return f(*args, **kwargs)
        finally:
            _default.reset(token)

    return run


def _have_place(nest: Any) -> bool:
    """Are there arrays in nested lists, tuples and dictionaries?"""
    for x in nest.values() if isinstance(nest, dict) else nest:
        if isinstance(x, (AbstractArray, np.ndarray)):
            return True
        if isinstance(x, (list, tuple, dict)) and _have_place(x):
            return True
    return False


def _is_made_of_data(value: Any) -> bool:
    """Is it an array type that takes data and names no place itself?"""
    return (
        isinstance(value, type)
        and issubclass(value, AbstractArray)
        and not issubclass(value, DenseArray)
        and value.__new__ is not AbstractArray.__new__
    )


class _Within(type):
    """An array type as a namespace has it: the type, but what it is called with goes to the namespace's place.

    An object of its own, and not a subtype: what it makes is of the type itself, and so is what it knows.
    """

    _shown: Any
    _maker: Maker

    def __new__(cls, name: str, bases: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
        if bases:  # a subtype of one is a subtype of the type it stands for
            real = tuple(b._shown if isinstance(b, _Within) else b for b in bases)
            return types.new_class(name, real, exec_body=lambda scope: scope.update(attributes))
        return super().__new__(cls, name, bases, attributes)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        # (A NumPy array goes to the place, as it does by `asarray`.)
        token = _default.set(cls._maker)
        try:
            return cls._shown(*args, **kwargs)
        finally:
            _default.reset(token)

    def __getitem__(cls, parameters: Any) -> Any:
        return cls._shown[parameters]

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls._shown, name)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls._shown)

    def __subclasscheck__(cls, t: type) -> bool:
        return t is cls or issubclass(t, cls._shown)

    def __repr__(cls) -> str:
        return repr(cls._shown)


def _type_within(t: Any, maker: Maker) -> Any:
    attributes = {key: getattr(t, key) for key in ("__module__", "__qualname__", "__doc__")}
    attributes |= {"__signature__": inspect.signature(t), "_shown": t, "_maker": maker, "__slots__": ()}
    return _Within(t.__name__, (), attributes)


def creates(f: F) -> F:
    """Mark a function with a `device=` as one that makes arrays of the namespace's type."""
    f.makes_arrays = True  # type: ignore[attr-defined]
    return f
