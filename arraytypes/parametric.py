"""Array types with parameters: HostArray[float64, 2], Transpose[HostArray[float64, 2]].

A parametrised type is a real subclass, made on demand and kept, so that isinstance,
issubclass and dispatch are plain class tests:

>>> import mirabelle as mb
>>> issubclass(mb.HostArray[mb.float64, 2], mb.HostArray[mb.float64])
True
>>> mb.HostArray["f8", 2] is mb.HostArray[mb.float64, 2]
True
"""

from __future__ import annotations

import copyreg
import operator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from mirabelle.dispatch.forks import ForkLock

# Held while types are made, of which there is one each.
making = ForkLock()


class ArrayMeta(type):
    """The metaclass of array types: `Type[parameters]` makes, or finds, the subclass."""

    # What a parametrised class was made of; a class without parameters is its own origin.
    __generic_class__: type
    parameters: Any = ()

    # (Checkers know `HostArray[float64]` by `OfDtype`; they ask no further where a metaclass has the method.)
    def _subclass(cls, parameters: Any) -> Any:
        # (What is written for checkers of types: the base class `DenseArray[D]`, `HostArray[Any]` somewhere.)
        if isinstance(parameters, TypeVar) or parameters is Any:
            return cls
        if not isinstance(parameters, tuple):
            parameters = (parameters,)
        try:
            return _made[cls, parameters]
        except (KeyError, TypeError):
            pass
        own = cls._subscripted(parameters)  # type: ignore[attr-defined]
        if own is not None:
            return own
        if cls.parameters:
            raise TypeError(f"{cls.__name__} has its parameters already.")
        normal = cls._normalise(parameters)  # type: ignore[attr-defined]
        with making:
            made = _made.get((cls, normal))
            if made is None:
                made = _make(cls, normal)
            if len(_made) < 10_000:  # spellings such as "f8" are remembered too, within reason
                try:
                    _made[cls, parameters] = made
                except TypeError:
                    pass
        return made

    if not TYPE_CHECKING:
        __getitem__ = _subclass

    def _stood_for(cls) -> Any:
        """The type this one stands for while a function is captured; itself if it stands for none."""
        inner = getattr(cls, "stands_for", None)
        if inner is not None:
            return inner[cls.parameters] if cls.parameters else inner
        if not any(isinstance(p, ArrayMeta) for p in cls.parameters):
            return cls
        found = tuple([p._stood_for() if isinstance(p, ArrayMeta) else p for p in cls.parameters])
        return cls if found == cls.parameters else generic_class(cls)[found]

    def __repr__(cls) -> str:
        # As unions and beartype spell it: with the module, which is the public one.
        return f"{cls.__module__}.{cls.__qualname__}"


if TYPE_CHECKING:
    import typing_extensions

    from mirabelle.arraytypes.abstract import AbstractArray

    # The type of the elements (of `HostArray` alone it is any), and that of the parts of a distributed array.
    D = typing_extensions.TypeVar("D", bound=np.generic, default=Any, covariant=True)
    A = typing_extensions.TypeVar("A", bound=AbstractArray, default=Any, covariant=True)

    class OfDtype(Generic[D]):
        """What has elements of one dtype, to checkers of types."""

        dtype: np.dtype[D]

    class OfInner(Generic[A]):
        """What holds arrays of one type, to checkers of types."""

else:

    class OfDtype:
        """What has elements of one dtype, to checkers of types."""

        __slots__ = ()

        __class_getitem__ = classmethod(lambda cls, _: cls)

    OfInner = OfDtype
    D, A = TypeVar("D"), TypeVar("A")


_made: dict[tuple[type, tuple[Any, ...]], Any] = {}


def _make(cls: Any, parameters: tuple[Any, ...]) -> Any:
    made = _made.get((cls, parameters))
    if made is not None:
        return made
    base = cls
    for wider in cls._widened(parameters):
        base = _make(cls, wider)
        break
    name = cls._spelled(parameters) or f"{cls.__name__}[{', '.join(map(_shown, parameters))}]"
    namespace = {
        "__slots__": (),
        "__module__": cls.__module__,
        "__qualname__": name,
        "__doc__": cls.__doc__,
        "__generic_class__": cls,
        "parameters": parameters,
        **cls._class_attributes(parameters),
    }
    made = _made[cls, parameters] = ArrayMeta(name, (base,), namespace)
    return made


def _shown(parameter: Any) -> str:
    if isinstance(parameter, np.dtype):
        return parameter.name
    return getattr(parameter, "__name__", None) or repr(parameter)


def generic_class(cls: Any) -> Any:
    """The type without its parameters: HostArray for HostArray[float64, 2]."""
    return cls.__dict__.get("__generic_class__", cls) if cls.parameters else cls


def _reduce_class(cls: Any) -> Any:
    if cls.parameters:
        return operator.getitem, (generic_class(cls), cls.parameters)
    own = getattr(cls, "_reduce_family", None)
    return cls.__qualname__ if own is None else own()


copyreg.pickle(ArrayMeta, _reduce_class)


def checked_dtype(dtype: Any) -> np.dtype:
    """A dtype our arrays can hold, in native byte order, or an error that says why not.

    >>> checked_dtype(">f4")
    dtype('float32')
    """
    try:
        d = np.dtype(dtype)
    except TypeError:
        sizes = " Sizes are one tuple, `mb.zeros((2, 3))`, and elements one list, `mb.HostArray([2, 3])`."
        raise TypeError(
            f"{dtype!r} is not a dtype. Give one of NumPy's, such as mb.float64, 'float32' or int."
            f"{sizes if isinstance(dtype, (int, float)) else ''}"
        ) from None
    if d.kind not in "biufc":
        cure = {
            "O": "Convert the objects to numbers first, for instance `x.astype(float)`.",
            "M": "Convert to integers first: `x.view('i8')`.",
            "m": "Convert to integers first: `x.view('i8')`.",
            "V": "Take one field at a time: `x['name']`.",
        }.get(d.kind, "Convert to numbers first, for instance `x.astype(float)`.")
        raise TypeError(
            f"Arrays hold booleans, integers, real and complex numbers; {d.name} is none of them. {cure}"
        )
    return d if d.isnative else d.newbyteorder("=")
