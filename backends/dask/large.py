"""Large NumPy arrays among arguments: sent once for each contents, to one worker, who tells the others."""

from __future__ import annotations

import hashlib
import itertools
import pickle
import weakref
from typing import Any

import numpy as np

# NumPy arrays of more bytes are large.
LARGE = 1 << 20

_serial = itertools.count(1)


def is_large(x: Any) -> bool:
    """Is it an array that is not sent with every call?"""
    return type(x) is np.ndarray and x.nbytes > LARGE and not x.dtype.hasobject


class Sent:
    """What the workers of a session keep large arrays under, by a digest of the contents."""

    def __init__(self) -> None:
        self.keys: dict[bytes, str] = {}


class Large:
    """The large arrays of one call: those that are new to the workers are in `new`, as bytes by key."""

    def __init__(self, sent: Sent) -> None:
        self._sent = sent
        self._found: dict[str, tuple[bytes, np.ndarray]] = {}
        self._keys: dict[bytes, str] = {}
        self.new: dict[str, np.ndarray] = {}

    def key(self, x: np.ndarray) -> str:
        """What the workers keep, or will keep, these contents under."""
        row = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
        hashed = hashlib.sha256(row.data, usedforsecurity=False)
        hashed.update(repr((x.dtype, x.shape)).encode())
        digest = hashed.digest()
        key = self._sent.keys.get(digest) or self._keys.get(digest)
        if key is None:
            key = self._keys[digest] = f"data-{next(_serial)}"
            self.new[key] = row
            self._found[key] = digest, x
        return key

    def news(self) -> bytes:
        """What the first worker tells the others: (key, dtype, shape) of each new array."""
        return (
            pickle.dumps([(key, x.dtype, x.shape) for key, (_, x) in self._found.items()]) if self.new else b""
        )

    def arrived(self, session: Any) -> None:
        """The workers have them now, and keep them for a session as long as the arrays live here."""
        for key, (digest, x) in self._found.items():
            self._sent.keys[digest] = key
            weakref.finalize(x, _died, weakref.ref(session), digest, key).atexit = False


def _died(session: Any, digest: bytes, key: str) -> None:
    found = session()
    if found is not None:
        found._sent.keys.pop(digest, None)
        found._forget(key)
