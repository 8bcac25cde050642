"""The reference device's library: the host's routines, run on the device's own memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.reference import RefArray, RefView


def ref_routine(cls: Any, name: str) -> Callable[..., Any]:
    own = cls._routines.get(name)
    if own is not None:
        return own  # type: ignore[no-any-return]
    run = HostArray._routine(name)

    def routine(*views: Any, **options: Any) -> Any:
        return _stored(run(*_contents(views), **_contents(options)))

    return routine


def _contents(x: Any) -> Any:
    """The memory behind the views in a nest of lists, tuples and dictionaries."""
    if isinstance(x, RefView):
        return x._host()
    if isinstance(x, (list, tuple)):
        made = [_contents(item) for item in x]
        return tuple(made) if isinstance(x, tuple) else made
    return {key: _contents(item) for key, item in x.items()} if isinstance(x, dict) else x


def _stored(result: Any) -> Any:
    """Results in the device's memory. (They never were anywhere else: this is no transfer.)"""
    if isinstance(result, (tuple, list)):
        return tuple(_stored(r) for r in result)
    if isinstance(result, np.generic):
        result = np.asarray(result)
    if not isinstance(result, np.ndarray):
        return result
    out = RefArray._empty(result.shape, result.dtype)
    out._host()[...] = result
    return out


RefArray._routine = classmethod(ref_routine)  # type: ignore[method-assign, assignment]
