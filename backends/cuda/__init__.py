"""The CUDA backend: CuArray's driver, through CuPy, or the simulated card."""

from __future__ import annotations

import functools
from typing import Any

from mirabelle.arraytypes.gpu import CuArray
from mirabelle.dispatch.settings import settings


@functools.cache
def _driver(index: int, simulated: bool) -> Any:
    if simulated:
        from mirabelle.backends.gpu.simulator import SimulatedDriver

        return SimulatedDriver(index)
    from mirabelle.backends.cuda.driver import driver_of

    return driver_of(index)


def _driver_of(cls: Any) -> Any:
    family = cls.family
    made = family.__dict__.get("_made_driver")
    if made is None:
        made = family._made_driver = _driver(family.home.index, settings.cuda == "simulated")
    return made


CuArray.driver = classmethod(_driver_of)  # type: ignore[method-assign, assignment]
