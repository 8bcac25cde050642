"""What the namespace says of itself: `mb.__array_namespace_info__()`."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.devices import devices
from mirabelle.arraytypes.functions.dtypes import KINDS
from mirabelle.arraytypes.makers import creates, maker_of
from mirabelle.dispatch.signatures import hidden
from mirabelle.dispatch.styles import Place

_DTYPES = [
    np.dtype(name)
    for name in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
        "complex64", "complex128",
    )
]  # fmt: skip


class NamespaceInfo:
    """The standard's inspection functions, for the namespace that gave it."""

    def __init__(self, device: Any = None) -> None:
        self._device = device

    def capabilities(self) -> dict[str, Any]:
        """What not every namespace can do.

        >>> import mirabelle as mb
        >>> mb.__array_namespace_info__().capabilities()["boolean indexing"]
        True
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Place:
        """Where arrays are made that are not told where."""
        return maker_of(self._device).family.home

    def devices(self) -> tuple[Place, ...]:
        """Where arrays can be made: what `device=` takes."""
        return devices()

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The dtypes of arrays that are not told theirs."""
        maker_of(device)
        return {
            "real floating": np.dtype(np.float64),
            "complex floating": np.dtype(np.complex128),
            "integral": np.dtype(np.int64),
            "indexing": np.dtype(np.int64),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype]:
        """The standard's dtypes by name: all, those of a kind, or of a tuple of kinds.

        >>> import mirabelle as mb
        >>> mb.__array_namespace_info__().dtypes(kind="real floating")
        {'float32': dtype('float32'), 'float64': dtype('float64')}
        """
        maker_of(device)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        for k in kinds:
            if k is not None and k not in KINDS:
                raise ValueError(f"{k!r} is no kind of dtypes. Kinds are {', '.join(map(repr, KINDS))}.")
        letters = "".join("biufc" if k is None else KINDS[k] for k in kinds)
        return {d.name: d for d in _DTYPES if d.kind in letters}


# (`device` is how a namespace of another array type says so: see `arraytypes.makers`.)
@creates
@hidden("device")
def __array_namespace_info__(*, device: Any = None) -> NamespaceInfo:
    """What this namespace can do: its devices, dtypes and defaults, as the array API standard asks.

    >>> import mirabelle as mb
    >>> mb.__array_namespace_info__().default_device()
    host
    >>> mb.namespace(mb.RefArray).__array_namespace_info__().default_device()
    ref:0
    """
    return NamespaceInfo(device)
