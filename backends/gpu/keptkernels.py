"""Kernels of a card: compiled once, kept in memory and on disk.

How they are compiled and loaded, the backends of the cards' makers say.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mirabelle.backends.host import diskcache
from mirabelle.dispatch import counters
from mirabelle.dispatch.forks import ForkLock

_lock = ForkLock()
_loaded: dict[Any, Any] = {}


def kept(
    key: Any,
    depends_on: Callable[[], list[str]] | None,
    load: Callable[[bytes, str], Any],
    make: Callable[[], tuple[bytes, str]],
) -> Any:
    """The function of a kernel on a card: found in memory, on disk, or made now.

    `depends_on` says all that its code depends on; None where that has no text, and nothing is kept on disk.
    `load` takes the code and the name of its entry, which `make` gives.
    """
    with _lock:
        found = _loaded.get(key)
        if found is None:
            if len(_loaded) > 8192:
                _loaded.clear()
            found = _loaded[key] = _found(None if depends_on is None else depends_on(), load, make)
    return found


def _found(
    parts: list[str] | None, load: Callable[[bytes, str], Any], make: Callable[[], tuple[bytes, str]]
) -> Any:
    name = None if parts is None else diskcache.entry_key(parts)
    there = None if name is None else diskcache.read(name)
    if there is not None:
        try:
            return load(*there)
        except Exception:
            pass  # of another driver's making: compiled anew
    if counters.active:
        counters.add(compilations=1)
    code, entry = make()
    if name is not None:
        diskcache.write(name, code, entry)
    return load(code, entry)


def own_part(packages: Iterable[Any], beginnings: tuple[str, ...]) -> str:
    """A hash of mirabelle's own part in kernels: the modules of packages whose names begin so."""
    digest = hashlib.sha256()
    for package in packages:
        for path in sorted(Path(package.__path__[0]).glob("*.py")):
            if path.name.startswith(beginnings):
                digest.update(path.read_bytes())
    return digest.hexdigest()


__all__ = ["kept", "own_part"]
