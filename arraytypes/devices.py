"""Devices and their memory: what there is, what is in use, what holds it, and how much may be.

>>> import mirabelle as mb
>>> x = mb.zeros((1000, 1000))
>>> report = mb.memory(mb.HostArray)
>>> report.used >= x.nbytes
True
"""

from __future__ import annotations

import gc
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes.cards import card, preformatted, shown_bytes
from mirabelle.arraytypes.dense import VIEWS
from mirabelle.arraytypes.elementwise import default_family
from mirabelle.arraytypes.gpu import GPUArray, GPUView, piece_of
from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.makers import maker_of
from mirabelle.arraytypes.pool import clear, held, kept, letting_go, never_given_back
from mirabelle.dispatch.styles import Place
from mirabelle.dispatch.tree import Leaf

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import Device

# So many kinds of arrays are shown.
SHOWN = 8


@dataclass(frozen=True)
class Holding:
    """Arrays of one type and shape that live, and the bytes of their memory."""

    type: str
    shape: tuple[int, ...]
    count: int
    nbytes: int

    def __str__(self) -> str:
        times = f"{self.count} × " if self.count > 1 else ""
        return f"{times}{self.type} of shape {self.shape}: {shown_bytes(self.nbytes)}"


@dataclass(frozen=True)
class Memory:
    """The memory of a place, in bytes; None where that is not known or there is no such thing.

    `used` is what arrays lie in, `held` what is kept to be used again, `limit` the most that both may
    come to, `total` what the device has, and `free` what of that nobody has, other programs included.
    `arrays` says which arrays hold the most, the largest first, and `kept` what of `held` is no memory for
    arrays: the plans of Fourier transforms. `taken` is what nobody gives back before the process ends: by how
    much it grew while Numba compiled functions in it.
    """

    place: Place
    used: int
    held: int
    limit: int | None
    total: int | None
    free: int | None
    arrays: tuple[Holding, ...]
    kept: dict[str, int] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, family: Any) -> Memory:
        arrays = holdings(family)
        said: dict[str, Any] = {"held": 0, "limit": None, "total": None, "free": None, **_figures(family)}
        said.setdefault("used", sum(h.nbytes for h in arrays))
        return cls(place=family.home, arrays=arrays, **said)

    def sentence(self) -> str:
        """How full it is, in a sentence."""
        of = "" if self.total is None else f" of {shown_bytes(self.total)}"
        parts = [f"{shown_bytes(self.used)}{of} are in use"]
        if self.limit is not None:
            parts.append(f"the limit is {shown_bytes(self.limit)}")
        if self.free is not None:
            parts.append(f"{shown_bytes(self.free)} are free on the device")
        return "; ".join(parts) + "."

    def facts(self) -> dict[str, str]:
        """What is known, as short texts."""
        said = {"place": repr(self.place), "used": shown_bytes(self.used), "held": shown_bytes(self.held)}
        for name in ("limit", "total", "free"):
            value = getattr(self, name)
            if value is not None:
                said[name] = shown_bytes(value)
        said |= {name: shown_bytes(nbytes) for name, nbytes in (self.kept | self.taken).items() if nbytes}
        return said

    def _listed(self) -> list[str]:
        lines = [str(h) for h in self.arrays[:SHOWN]]
        others = self.arrays[SHOWN:]
        if others:
            lines.append(f"{sum(h.count for h in others)} more: {shown_bytes(sum(h.nbytes for h in others))}")
        return lines

    def __repr__(self) -> str:
        said = self.facts()
        lines = [f"memory of {said.pop('place')}"]
        lines += [f"  {name:<6} {value}" for name, value in said.items()]
        return "\n".join(
            [*lines, *[f"  {'arrays' if not i else '':<6} {x}" for i, x in enumerate(self._listed())]]
        )

    def _repr_html_(self) -> str:
        return card("memory", self.facts(), "", preformatted("\n".join(self._listed())) if self.arrays else "")


def memory(device: Device | None = None) -> Memory:
    """How much memory arrays use at a place, how much there is, and what holds the most.

    `device` is an array type. Without it: that of `mb.default_array`, else the card in use, if there is
    one, else the host.

    Parameters
    ----------
    device : array type or None
        Which place; None is that of `mb.default_array`, else the card in use, else the host.

    Returns
    -------
    Memory
        With `place`, `used`, `held`, `limit`, `total`, `free` (bytes; None if unknown) and `arrays`, what
        holds the most. Prints as text.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.RefArray([[1.0, 2.0], [3.0, 4.0]])
    >>> report = mb.memory(mb.RefArray)
    >>> report.place, report.used >= 32
    (ref:0, True)
    """
    return Memory.of(_family(device))


def set_memory_limit(limit: int | float | None, device: Device | None = None) -> None:
    """Have arrays on a card use at most so many bytes, or such a fraction of what the card has (a float).

    What is kept to be used again counts. None lifts the limit. Arrays that live stay.

    Parameters
    ----------
    limit : int, float or None
        Bytes, a fraction of what there is, or no limit.
    device : array type or None
        Which card; None is the one in use.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.set_memory_limit(0.5, mb.CuArray)          # doctest: +SKIP
    """
    family = _family(device)
    if not issubclass(family, GPUArray):
        raise ValueError(
            f"The memory of {family.home} has no limit that can be set. That of a card has: "
            "`mb.set_memory_limit(0.5, mb.CuArray)`. How much the host keeps to be used again is a setting: "
            "`mb.settings.pool_bytes = 0`."
        )
    driver = family.driver()
    if limit is None:
        driver.limit_memory(None)
        return
    if isinstance(limit, (float, np.floating)):
        if not 0 < limit <= 1:
            raise ValueError(
                f"As a fraction of the card's memory, a limit lies between 0 and 1, and {limit} does not. Give "
                "bytes as an integer: `mb.set_memory_limit(8 << 30)`."
            )
        limit = int(float(limit) * int(driver.figures()["total"]))
    if limit <= 0:
        raise ValueError(f"A limit of {limit} bytes leaves no room for arrays. None lifts the limit.")
    driver.limit_memory(int(limit))


def free_memory(device: Device | None = None) -> None:
    """Give memory that is kept to be used again back to the system; arrays stay.

    Other programs, and other libraries of this one, may then have it.

    Parameters
    ----------
    device : array type or None
        Which place; None is that of `mb.default_array`, else the card in use, else the host.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.free_memory(mb.HostArray)
    >>> mb.memory(mb.HostArray).held
    0
    """
    family = _family(device)
    if family is HostArray:
        for let_go in (*letting_go, clear, *[let_go for _, let_go in kept.values()]):
            let_go()
    elif issubclass(family, GPUArray):
        family.driver().release()


def devices() -> tuple[Place, ...]:
    """Where arrays can be made in this process: what `device=` takes.

    Cards are among them where there are any, and a library to use them.

    Returns
    -------
    tuple of Place
        The host first; each can be given as `device`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.devices()[0]
    host
    """
    places: list[Place] = []
    for family in dict.fromkeys(VIEWS.values()):
        if family.home.rank > 2:  # several processes are no device of this one, and a graph is none
            continue
        if not issubclass(family, GPUArray):
            places.append(family.home)
        elif family is family._families[0]:
            places += [family.on(i).home for i in range(family.cards())]
    return tuple(sorted(dict.fromkeys(places), key=lambda p: p.rank))  # the host first


def _family(device: Any) -> Any:
    if device is not None:
        return maker_of(device).family
    family = maker_of(None).family
    if family is default_family():
        for known in dict.fromkeys(VIEWS.values()):
            if known.__dict__.get("_made_driver") is not None and not known.fake:
                return known
    return family


def _figures(family: Any) -> dict[str, Any]:
    if issubclass(family, GPUArray):
        return family.driver().figures()  # type: ignore[no-any-return]
    if family is not HostArray:
        return {}
    more = {name: nbytes() for name, (nbytes, _) in kept.items()}
    return {
        "held": held() + sum(more.values()),
        "kept": more,
        "taken": {name: nbytes() for name, nbytes in never_given_back.items()},
        "total": _pages("SC_PHYS_PAGES"),
        "free": _pages("SC_AVPHYS_PAGES"),
    }


def _pages(name: str) -> int | None:
    try:
        return os.sysconf(name) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not every system says so
        return None


# What holds the memory?


def holdings(family: Any) -> tuple[Holding, ...]:
    """The arrays of a family that live, those of one type and shape together, the largest first."""
    # A piece of memory → its bytes, and the largest view of it.
    found: dict[Any, tuple[int, Any]] = {}
    for x in gc.get_objects():
        t = type(x)  # (some objects do not like to be asked with isinstance)
        view = getattr(x, "view", None) if t is Leaf else x if issubclass(t, GPUView) else None
        if view is None or VIEWS.get(type(view)) is not family:
            continue
        if isinstance(view, GPUView) and getattr(view, "owner", None) is None:
            continue  # one that memory is asked for right now
        key, nbytes = _memory_of(view)
        known = found.get(key)
        if known is None or known[1].nbytes < view.nbytes:
            found[key] = nbytes, view
    alike: dict[Any, list[int]] = {}
    for nbytes, view in found.values():
        alike.setdefault((view.dtype, tuple(view.shape)), []).append(nbytes)
    together = [
        Holding(family[dtype, len(shape)].__name__, shape, len(sizes), sum(sizes))
        for (dtype, shape), sizes in alike.items()
        if sum(sizes)
    ]
    return tuple(sorted(together, key=lambda h: (-h.nbytes, h.type, h.shape)))


def _memory_of(view: Any) -> tuple[Any, int]:
    """What tells a view's memory from other memory, and its bytes."""
    piece: Any
    if isinstance(view, GPUView):
        start, stop = piece_of(view)
        return start, stop - start if view.size else 0
    if isinstance(view, np.ndarray):
        piece = view
        while isinstance(piece.base, np.ndarray):
            piece = piece.base
        buffer = getattr(piece.base, "buffer", piece)
        return id(buffer), int(buffer.nbytes)
    return id(view.buffer), int(view.buffer.nbytes)
