"""Arrays in the memory of a graphics card: what CUDA's and ROCm's have in common.

The memory belongs to the card: kernels and explicit transfers alone touch it. It is known through
`GPUView`s, of which shapes, strides and addresses are on the host; a *driver*, which a backend
gives, allocates, copies, loads kernels and launches them.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mirabelle.arraytypes.dense import VIEWS, DenseArray, wrap
from mirabelle.arraytypes.library import routine_of
from mirabelle.arraytypes.parametric import D, checked_dtype, generic_class
from mirabelle.arraytypes.proxies import ProxyView, proxy_of
from mirabelle.dispatch import counters, loading, verbs
from mirabelle.dispatch.addresses import address_of
from mirabelle.dispatch.errors import DeviceError, PlaceError
from mirabelle.dispatch.generic import generic
from mirabelle.dispatch.styles import device
from mirabelle.dispatch.tree import Leaf

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import ArrayLike, DTypeLike

_new = object.__new__
# An address that is nobody's memory.
_NOWHERE = 1 << 46


class GPUView(ProxyView):
    """A strided view of a card's memory, at an address. `owner` is what keeps the memory alive."""

    __slots__ = ("_layout", "contiguous", "owner", "ptr", "size", "strides")

    owner: Any
    ptr: int
    strides: tuple[int, ...]
    size: int
    contiguous: bool
    _layout: Any

    def _laid_out(self) -> np.ndarray:
        return proxy_of(self.shape, self.dtype, self.strides)

    @property
    def start(self) -> int:
        return self.ptr

    @property
    def offset(self) -> int:
        return self.ptr

    @property
    def layout(self) -> int:
        """The number of all a launch depends on but the address: what plans are kept by."""
        if self._layout is None:
            self._layout = layout_number(type(self), self.shape, self.strides, self.dtype, self.ptr & 15 == 0)
        return self._layout  # type: ignore[no-any-return]

    def _shown(self, proxy: np.ndarray) -> Any:
        view = _new(type(self))
        view.owner = self.owner
        view.ptr = self.ptr + address_of(proxy) - address_of(self.proxy) if proxy.size else self.ptr
        view.shape = proxy.shape
        view.strides = proxy.strides
        view.dtype = proxy.dtype
        view.size = proxy.size
        view.contiguous = proxy.flags.c_contiguous
        view._proxy = proxy
        view._layout = view._parts = None
        return view

    def strided(self, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype) -> Any:
        return view_at(type(self), self.owner, self.ptr + offset, shape, dtype, strides)

    def _refusal(self) -> Exception:
        return DeviceError(
            "A card's memory cannot be read as a NumPy array. Fetch it explicitly with mb.to_numpy(x)."
        )


@generic
def copy_strided(dest: Any, source: Any) -> None:
    """Copy between two views of one card, elements of which do not lie in one piece."""


_layouts: dict[Any, int] = {}
# Far from the small numbers that stand for operations in the keys of plans.
_FIRST_LAYOUT = 1 << 40


def layout_number(
    kind: type, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype, aligned: bool
) -> int:
    """One number for each layout there has been (the table is small beside what has them)."""
    key = (kind, shape, strides, dtype.num, aligned)
    found = _layouts.get(key)
    if found is None:
        found = _layouts.setdefault(key, _FIRST_LAYOUT + next(_numbers))
    return found


_numbers = itertools.count()


@functools.lru_cache(maxsize=65536)
def dense_layout(kind: type, shape: tuple[int, ...], dtype: np.dtype, order: str) -> tuple[Any, int, bool, int]:
    """Strides, size, whether elements lie in C order, and the number of a new array's layout."""
    strides, size, contiguous = dense_strides(shape, dtype.itemsize, order)
    return strides, size, contiguous, layout_number(kind, shape, strides, dtype, True)


def dense_strides(shape: tuple[int, ...], itemsize: int, order: str) -> tuple[tuple[int, ...], int, bool]:
    """Strides of a new array, its size, and whether its elements lie in C order."""
    steps, strides = itemsize, []
    for n in reversed(shape) if order == "C" else shape:
        strides.append(steps)
        steps *= n
    if order == "C":
        strides.reverse()
    size = math.prod(shape)
    return tuple(strides), size, order == "C" or sum(n > 1 for n in shape) < 2 or not size


def view_at(
    kind: Any, owner: Any, ptr: int, shape: tuple[int, ...], dtype: np.dtype, strides: Any = None
) -> Any:
    """A view of type `kind` over memory at an address."""
    view = _new(kind)
    view.owner = owner
    view.ptr = ptr
    view.shape = shape
    view.dtype = dtype
    view.strides, view.size, view.contiguous, layout = dense_layout(kind, shape, dtype, "C")
    view._layout = None if ptr & 15 else layout
    view._proxy = view._parts = None
    if strides is not None and strides != view.strides:
        view.strides = strides
        view._layout = None
        view.contiguous = bool(view.proxy.flags.c_contiguous)
    return view


def piece_of(view: GPUView) -> tuple[int, int]:
    """Where the piece of memory that a view shows a part of starts and ends."""
    low = high = view.ptr
    for n, step in zip(view.shape, view.strides, strict=True):
        if step < 0:
            low += (n - 1) * step
        else:
            high += (n - 1) * step
    high += view.dtype.itemsize
    # CuPy's pointers know their memory; the owner of what was borrowed may be anything.
    memory = getattr(view.owner, "mem", view.owner)
    start = getattr(memory, "ptr", None)
    size = getattr(memory, "size", None) or getattr(memory, "nbytes", None)
    if view.size and type(start) is int and type(size) is int and start <= low < start + max(size, 1):
        return start, max(start + size, high)
    return low, max(high, low)


class GPUArray(DenseArray[D]):
    """An array in the memory of a graphics card: `CuArray` or `ROCArray`.

    Methods for this type are for both.

    >>> import mirabelle as mb
    >>> issubclass(mb.CuArray, mb.types.GPUArray)
    True
    """

    __module__ = "mirabelle.types"
    __slots__ = ()

    _runs_in_place = True
    # (Up to here what Python does for a longer tree costs more than what its one kernel saves.)
    _brief_trees = 1 << 22
    # The class of this family's views, and what answers for its card: set by `family_on`.
    view_type: Any = None
    _families: dict[int, Any]
    # Is its memory nothing that another library could share, and no card that is meant unless it is named?
    fake = False

    def __new__(cls, data: ArrayLike, dtype: DTypeLike = None, *, device: int | None = None) -> Self:
        if device is not None:
            on = cls.on(device)
            cls = on[cls.parameters] if cls.parameters else on
        if hasattr(generic_class(cls), "home"):
            generic_class(cls).driver()
        return DenseArray.__new__(cls, data, dtype)

    @classmethod
    def on(cls, index: int) -> Any:
        """The type of arrays on card number `index`: `mb.CuArray.on(1)(data)`."""
        family = generic_class(cls)
        families = family._families
        known = families.get(int(index))
        if known is None:
            if int(index) < 0:
                raise ValueError(f"Cards are numbered from 0 on, and {index} was asked for.")
            known = _family_on(families[0], int(index))
        return known

    @classmethod
    def driver(cls) -> Any:
        """What runs things on this family's card (see backends/gpu/driver.py)."""
        if cls._was_given("driver"):
            return cls.driver()
        raise DeviceError(f"{cls.__name__} has no driver: its backend is not there.")

    @classmethod
    def cards(cls) -> int:
        """How many cards of this kind there are; none where the libraries for them are missing."""
        return cls.cards() if cls._was_given("cards") else 0

    @classmethod
    def _was_given(cls, name: str) -> bool:
        """Has a backend given the family this method, once the backends are there?"""
        loading.complete(GPUArray)
        return any(name in vars(c) for c in cls.__mro__[: cls.__mro__.index(GPUArray)])

    @classmethod
    def _reduce_family(cls) -> Any:
        """How the type is pickled: the one on the first card by its name."""
        first = cls._families[0] if cls.__dict__.get("_families") else cls
        return cls.__qualname__ if first is cls else (first.on, (cls.home.index,))

    # What DenseArray asks of a place

    @classmethod
    def _empty(cls, shape: tuple[int, ...], dtype: np.dtype, order: str = "C") -> Any:
        view = _new(cls.view_type)
        view.strides, view.size, view.contiguous, view._layout = dense_layout(
            cls.view_type, shape, dtype, order
        )
        view.owner, view.ptr = cls.driver().allocate(view.size * dtype.itemsize)
        view.shape = shape
        view.dtype = dtype
        view._proxy = view._parts = None
        return view

    @classmethod
    def _places(cls, n: int) -> tuple[Any, int]:
        return view_at(cls.view_type, None, _NOWHERE, (n,), np.dtype(np.uint8)), _NOWHERE

    @classmethod
    def _upload(cls, data: np.ndarray) -> Any:
        dtype = checked_dtype(data.dtype)
        order: Any = "F" if data.flags.f_contiguous and not data.flags.c_contiguous else "C"
        view = cls._empty(data.shape, dtype, order)
        if counters.active:
            counters.add(transfers=1)
        if view.size:
            flat = np.asarray(data, dtype=dtype.newbyteorder("="), order=order)
            cls.driver().upload(view.ptr, flat)
        return view

    @classmethod
    def _range(cls, numbers: range, dtype: np.dtype) -> Any:
        if not numbers or dtype.char not in _EXACT:
            return None
        low, high = _EXACT[dtype.char]
        if min(numbers[0], numbers[-1]) < low or max(numbers[0], numbers[-1]) > high:
            return None
        # The card counts: what is sent from the host waits for all that was queued.
        return routine_of(cls, "arange")(numbers.start, numbers.stop, numbers.step, dtype=dtype)

    @classmethod
    def _download(cls, view: Any) -> np.ndarray:
        if counters.active:
            counters.add(transfers=1)
        order: Any = "C"
        if not view.contiguous:
            order = "F" if view.flags.f_contiguous else "C"
            if order == "C":
                packed = cls._empty(view.shape, view.dtype)
                cls._copy_into(packed, view)
                view = packed
        out = np.empty(view.shape, view.dtype, order)
        if view.size:
            cls.driver().download(out, view.ptr)
        return out

    @classmethod
    def _fetched(cls, source: Any, view: Any) -> Any:
        if not issubclass(source, GPUArray) or source.home.kind != cls.home.kind:
            return super()._fetched(source, view)
        # From card to card: the host is not on the way.
        order = "F" if view.flags.f_contiguous and not view.contiguous else "C"
        if not view.contiguous and order == "C":
            packed = source._empty(view.shape, view.dtype)
            source._copy_into(packed, view)
            view = packed
        made = cls._empty(view.shape, view.dtype, order)
        if made.size:
            cls.driver().copy_from(source.driver(), made.ptr, view.ptr, made.nbytes)
        return made

    @classmethod
    def _copy_into(cls, dest: Any, source: Any) -> None:
        if not dest.size:
            return
        if dest.contiguous and source.contiguous and dest.size == source.size:
            cls.driver().copy(dest.ptr, source.ptr, dest.nbytes)
            return
        copy_strided(dest, source)

    @classmethod
    def _wrap_numpy(cls, x: np.ndarray) -> Leaf:
        return Leaf(cls._upload(x))


# The integers that dtypes hold exactly.
_EXACT = {c: (int(np.iinfo(c).min), int(np.iinfo(c).max)) for c in "bhilqBHILQ"}
_EXACT |= {"f": (-(1 << 24), 1 << 24), "d": (-(1 << 53), 1 << 53)}


def _family_on(first: Any, index: int) -> Any:
    """The family of another card: a subclass, so that methods for the first serve it too."""
    name = f"{first.__name__}.on({index})"  # what errors paste as the cure
    made = type(first)(
        name,
        (first,),
        {
            "__module__": "mirabelle",
            "__slots__": (),
            "__doc__": first.__doc__,
            "__qualname__": name,
            "home": device(first.home.kind, index),
        },
    )
    return add_family(made, first._families)


def add_family(family: Any, families: dict[int, Any]) -> Any:
    """Give a family its own kind of views."""
    family._families = families
    families[family.home.index] = family
    family.view_type = type(f"{family.__name__}View", (GPUView,), {"__slots__": (), "family": family})
    VIEWS[family.view_type] = family
    return family


class CuArray(GPUArray[D]):
    """An array in the memory of an NVIDIA card. `CuArray(data)` copies to it; `mb.asarray(c)` shares CuPy's.

    Parameters
    ----------
    data : array, list or number
        What is copied into the array.
    dtype : dtype or None
        The dtype of the result; None keeps that of the data.
    device : int or None
        Which card; None is the one in use.

    Notes
    -----
    `CuArray(data, device=1)` is on the second card. Without a card, MIRABELLE_CUDA=simulated runs the
    same kernels' source on the host, to try programs and to test them:

    >>> import mirabelle as mb
    >>> x = mb.CuArray([1.0, 2.0, 3.0])               # doctest: +SKIP
    >>> mb.to_numpy(mb.sqrt(x * x) + 1)               # doctest: +SKIP
    array([2., 3., 4.])
    """

    __module__ = "mirabelle"
    __slots__ = ()

    home = device("cuda")


class ROCArray(GPUArray[D]):
    """An array in the memory of an AMD card, through CuPy's build for ROCm and numba-hip.

    Its kernels are those of `CuArray`. It has not been run on AMD hardware yet.

    Parameters
    ----------
    data : array, list or number
        What is copied into the array.
    dtype : dtype or None
        The dtype of the result; None keeps that of the data.
    device : int or None
        Which card; None is the one in use.

    Examples
    --------
    >>> import mirabelle as mb
    >>> issubclass(mb.ROCArray, mb.types.DenseArray)
    True
    """

    __module__ = "mirabelle"
    __slots__ = ()

    home = device("rocm")


add_family(CuArray, {})
add_family(ROCArray, {})


@verbs.numpy_view.method
def _(x: GPUArray, dtype: Any = None, copy: Any = None) -> np.ndarray:
    raise PlaceError(
        f"{type(x).__name__} of shape {x.shape} lives on {x.place}, and nothing moves it to the host "
        "unasked. Fetch it with `mb.to_numpy(x)`, or move it with `mb.adapt(mb.HostArray, x)`."
    )


def handle(family: Any, view: Any) -> Any:
    """An array over a view of a card's memory."""
    return wrap(family, Leaf(view))
