"""Compiled kernels on disk, safe to share between processes and to find damaged.

An entry is one file, named by the hash of everything its code depends on. It is written to a
temporary name and moved into place, so a reader sees all of it or nothing. It carries a key
and a hash of its contents; a file that does not match, or that another user could have
written, is ignored with one warning and never executed.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path

from mirabelle.dispatch.settings import settings

_MAGIC = b"mirabelle kernel 1\n"
_warned = False


def folder() -> Path | None:
    """Where entries are kept; None where there is no place for them, or none is wanted."""
    if not settings.cache:
        return None
    return _prepared(settings.cache_dir or _default_folder())


def _default_folder() -> str:
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "mirabelle", "kernels")


@cache
def _prepared(where: str) -> Path | None:
    path = Path(where)
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path if _ours(path) else None
    except OSError:
        return None  # a read-only home is no reason to stop: kernels live in memory then


def _ours(path: Path) -> bool:
    """Can only we have written this?"""
    if not hasattr(os, "getuid"):
        return True
    info = path.stat()
    if info.st_uid != os.getuid() or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        _warn(f"{path} belongs to another user, or others may write to it")
        return False
    return True


def entry_key(parts: list[str]) -> str:
    """The name of an entry: a hash of all that its code depends on."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read(key: str) -> tuple[bytes, str] | None:
    """The code and symbol kept under a key, if they are there and whole."""
    where = folder()
    if where is None:
        return None
    path = where / f"{key}.kernel"
    try:
        if not _ours(path):
            return None
        data = path.read_bytes()
    except OSError:
        return None
    head, _, rest = data.partition(b"\0")
    digest, _, payload = rest.partition(b"\0")
    symbol, _, code = payload.partition(b"\0")
    if head != _MAGIC + key.encode() or digest != hashlib.sha256(payload).hexdigest().encode() or not code:
        _warn(f"{path} is damaged or was not written by mirabelle")
        return None
    return code, symbol.decode()


def write(key: str, code: bytes, symbol: str) -> None:
    """Keep an entry; whoever comes first wins, and failing to write is no error."""
    where = folder()
    if where is None:
        return
    payload = symbol.encode() + b"\0" + code
    data = b"\0".join([_MAGIC + key.encode(), hashlib.sha256(payload).hexdigest().encode(), payload])
    try:
        handle, name = tempfile.mkstemp(dir=where, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as f:
                f.write(data)
            os.replace(name, where / f"{key}.kernel")
        except BaseException:
            os.unlink(name)
            raise
    except OSError:
        pass


def _warn(what: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"{what}; it is ignored, and kernels are compiled anew. Delete the folder to be rid of "
            "this, or set MIRABELLE_CACHE_DIR to a folder only you can write to.",
            RuntimeWarning,
            stacklevel=3,
        )
