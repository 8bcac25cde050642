"""What creation functions make: the default array type, and namespaces of other types.

>>> import mirabelle as mb
>>> with mb.default_array(mb.RefArray):
...     print(mb.zeros(2).place)
ref:0
>>> xp = mb.namespace(mb.RefArray)
>>> xp.ones(2).place, xp.sin is mb.sin
(ref:0, True)
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import VIEWS, DenseArray
from mirabelle.arraytypes.elementwise import default_family, leaf_family
from mirabelle.arraytypes.gpu import GPUArray
from mirabelle.arraytypes.parametric import generic_class
from mirabelle.arraytypes.wrappers import PermutedDims
from mirabelle.dispatch import verbs
from mirabelle.dispatch.styles import HOST, Place

_default: contextvars.ContextVar[Maker | None] = contextvars.ContextVar("mirabelle_default_array", default=None)
# While a program is captured: the family of its arrays, and that whose arrays are recorded instead.
_instead: contextvars.ContextVar[tuple[Any, Any] | None] = contextvars.ContextVar(
    "mirabelle_recorded_arrays", default=None
)


class Maker:
    """How arrays are made: the family that stores them, and how a stored one is shown.

    `show` is a function of a new dense array, for a wrapper type around it.
    """

    def __init__(self, family: Any, show: Callable[[Any], Any] | None = None, name: str = "") -> None:
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
def default_array(device: Any) -> Iterator[None]:
    """Within the block, creation functions make arrays of this type unless told otherwise.

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


def namespace(device: Any) -> types.ModuleType:
    """The namespace of mirabelle whose creation functions make arrays of one type.

    >>> import mirabelle as mb
    >>> xp = mb.namespace(mb.Transpose[mb.HostArray])
    >>> type(xp.ones((2, 3))).__name__
    'Transpose[HostArray[float64, 2]]'
    """
    maker = maker_of(device)
    try:
        return _namespaces[device]
    except (KeyError, TypeError):
        pass
    import mirabelle

    made = _specialised(mirabelle, maker, f"mirabelle.namespace({maker.name})")
    try:
        _namespaces[device] = made
    except TypeError:
        pass
    return made


VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def namespace_of(x: AbstractArray, version: str | None) -> types.ModuleType:
    """The namespace of an array: mirabelle itself, or the one that makes arrays where `x` is."""
    import mirabelle

    if version is not None and version not in VERSIONS:
        raise ValueError(
            f"mirabelle is an array API namespace of the versions {', '.join(VERSIONS)}, not {version!r}."
        )
    family = leaf_family(type(x))
    return mirabelle if family is default_family() else namespace(family)


def _specialised(module: types.ModuleType, maker: Maker, name: str) -> types.ModuleType:
    made = types.ModuleType(name, module.__doc__)
    for key in module.__dict__.get("__all__", ()):
        value = getattr(module, key)
        if isinstance(value, types.ModuleType):
            value = _specialised(value, maker, f"{name}.{key}")
        elif getattr(value, "makes_arrays", False):
            value = _bound(value, maker)
        elif hasattr(value, "made_by"):  # mgrid and its like, which are no functions
            value = value.made_by(maker)
        setattr(made, key, value)
    # (What a name that is not there says.)
    other = module.__dict__.get("__getattr__")
    if other is not None:
        made.__dict__["__getattr__"] = other
    made.__dict__["__all__"] = list(module.__dict__.get("__all__", ()))
    return made


def _bound(f: Any, maker: Maker) -> Any:
    """A creation function whose `device=` is `maker` unless given."""

    @functools.wraps(f)
    def create(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("device") is None:
            kwargs["device"] = maker
        return f(*args, **kwargs)

    create.__signature__ = inspect.signature(f)  # type: ignore[attr-defined]
    return create


def creates(f: Any) -> Any:
    """Mark a function with a `device=` as one that makes arrays of the namespace's type."""
    f.makes_arrays = True
    return f
