"""Streams: orders of work on a card. Work in different streams may run side by side.

>>> import mirabelle as mb
>>> x = mb.CuArray([1.0, 2.0])                        # doctest: +SKIP
>>> with mb.stream():                                 # doctest: +SKIP
...     y = mb.materialize(x * 2)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mirabelle.arraytypes.dense import VIEWS
from mirabelle.arraytypes.gpu import CuArray, GPUArray
from mirabelle.arraytypes.makers import maker_of
from mirabelle.dispatch.errors import DeviceError
from mirabelle.dispatch.styles import Place

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import Device
    from mirabelle.arraytypes.gpu import GPUArray


def card_family(device: Any, what: str) -> Any:
    """The array type of the card that is meant: the one in use, if none is named."""
    if device is not None:
        family = maker_of(device).family
        if not issubclass(family, GPUArray):
            raise DeviceError(
                f"{what} belongs to a card, and {family.home} is none. Name one: `device=mb.CuArray`."
            )
        return family
    family = maker_of(None).family
    if issubclass(family, GPUArray):
        return family
    return next((f for f in cards_in_use() if not f.fake), CuArray)


def cards_in_use() -> list[Any]:
    """The array types of the cards that have been started."""
    families = dict.fromkeys(VIEWS.values())
    return [f for f in families if f.__dict__.get("_made_driver") is not None]


class Stream:
    """An order of work on a card: `with mb.stream() as s:`.

    What is evaluated in the block goes to the stream; pending expressions that leave the block do not.
    The stream begins after what was queued before the block, and what follows the block comes after it: so
    arrays may be used inside and outside as ever.

    With `join=False`, what follows does not wait, and may run at the same time. Before results are
    used, `s.join()`; and until then, arrays from outside that the block reads must not be written, nor be
    let go of (their memory would be used anew while the stream still reads it).

    A stream may be entered again, by one thread at a time.

    >>> import mirabelle as mb
    >>> with mb.stream(mb.RefArray) as s:
    ...     x = mb.materialize(mb.RefArray([1.0]) + 1)
    >>> isinstance(s, mb.types.Stream)
    True
    """

    def __init__(self, family: type[GPUArray[Any]], join: bool = True) -> None:
        self._driver = family.driver()
        self._handle = self._driver.new_stream()
        self._before: list[Any] = []
        self.place: Place = family.home
        self.joins = join

    @property
    def ptr(self) -> int:
        """CUDA's handle, as an integer: what other libraries take."""
        return int(self._handle.ptr)

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.ptr

    def __enter__(self) -> Stream:
        driver = self._driver
        before = driver.current_stream()
        driver.order(self._handle, before)
        driver.enter_stream(self._handle)
        self._before.append(before)
        return self

    def __exit__(self, *_: object) -> None:
        self._driver.leave_stream()
        before = self._before.pop()
        if self.joins:
            self._driver.order(before, self._handle)

    def join(self) -> None:
        """Have what is evaluated from now on come after all that the stream was given."""
        self._driver.order(self._driver.current_stream(), self._handle)

    def wait(self, other: Stream | None = None) -> None:
        """Have what the stream is given from now on come after all that `other` was given.

        Without `other`, after what the current stream was given.
        """
        self._driver.order(self._handle, self._driver.current_stream() if other is None else other._handle)

    def synchronize(self) -> None:
        """Wait until the stream has done all that it was given."""
        self._handle.synchronize()

    def __del__(self) -> None:
        driver = getattr(self, "_driver", None)
        if driver is not None and hasattr(self, "_handle"):
            driver.idle_streams.append(self._handle)  # to be used again: what it still does, goes on

    def __repr__(self) -> str:
        return f"<stream {self.ptr:#x} of {self.place}>"


def stream(device: Device | None = None, *, join: bool = True) -> Stream:
    """A new stream of a card, for a `with` block: the card in use, unless an array type is given.

    Parameters
    ----------
    device : array type or None
        Which card; None is the one in use.
    join : bool, default True
        Whether work that comes after the block waits for it.

    Returns
    -------
    mb.types.Stream
        For a `with` block, which may be entered again; `s.synchronize()` waits for it, `s.ptr` is the
        handle for other libraries.

    Examples
    --------
    >>> import mirabelle as mb
    >>> with mb.stream(mb.CuArray) as s:              # doctest: +SKIP
    ...     y = mb.materialize(mb.CuArray([1.0, 2.0]) * 2)
    >>> s.synchronize()                               # doctest: +SKIP
    """
    return Stream(card_family(device, "A stream"), join)


def synchronize(device: Device | None = None) -> None:
    """Wait until a card has done all it was given; every card in use, unless an array type is given.

    Reading values waits by itself: this is for measuring times, and for other programs.

    Parameters
    ----------
    device : array type or None
        Which place; None is every card in use.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.synchronize()
    """
    families = cards_in_use() if device is None else [maker_of(device).family]
    for family in families:
        if issubclass(family, GPUArray):
            family.driver().drain()


__all__ = ["Stream", "stream", "synchronize"]
