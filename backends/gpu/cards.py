"""What answers for the cards of an array type: a driver for each, made when its first array is."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from mirabelle.arraytypes.reference import RefArray
from mirabelle.backends.gpu.driver import Driver

_making = threading.Lock()


def give_cards(first: Any, make: Callable[[int], Driver], count: Callable[[], int]) -> None:
    """Say how the driver of a family's card is made, by its number, and how many cards there are."""

    def driver_of(cls: Any) -> Any:
        family = cls.family
        made = family.__dict__.get("_made_driver")
        if made is None:
            with _making:  # (threads that begin at once have one driver, and one memory)
                made = family.__dict__.get("_made_driver")
                if made is None:
                    made = family._made_driver = make(family.home.index)
        return made

    first.driver = classmethod(driver_of)
    first.cards = classmethod(lambda cls: count())


@functools.cache
def simulated(family: str, index: int, strict: bool = False) -> Driver:
    """A simulated card for arrays of this name."""
    from mirabelle.backends.gpu.simulator import SimulatedDriver

    return SimulatedDriver(index, family, strict)


def count_simulated() -> int:
    from mirabelle.backends.gpu.simulator import CARDS

    return CARDS


give_cards(RefArray, lambda index: simulated("mb.RefArray", index, strict=True), lambda: 1)
