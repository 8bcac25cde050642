"""Compiled kernels on disk, safe to share between processes and to find damaged.

An entry is one file, named by the hash of everything its code depends on. It is written to a
temporary name and moved into place, so a reader sees all of it or nothing. It carries a key
and a hash of its contents; a file that does not match, or that another user could have
written, is ignored with one warning and never executed. What is no regular file is not even opened.
While an entry is made, who makes it holds a lock, so that other processes wait for it rather than make it, too.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from mirabelle.dispatch.settings import settings

try:
    import fcntl
except ImportError:  # (Windows: nobody waits for anybody)
    fcntl = None  # type: ignore[assignment]

_MAGIC = b"mirabelle kernel 1\n"
# So long somebody else's lock is waited for, in seconds: they may have been stopped.
_PATIENCE = 10.0
_warned = False


def folder() -> Path | None:
    """Where entries are kept; None where there is no place for them, or none is wanted."""
    if not settings.cache:
        return None
    return _prepared(os.path.expanduser(settings.cache_dir or _default_folder()))


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
    path = Path(os.path.abspath(where))
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path if _ours(path, path.stat()) else None
    except OSError:
        return None  # a read-only home is no reason to stop: kernels live in memory then


def _ours(path: Path, info: os.stat_result) -> bool:
    """Can only we have written this?"""
    if not hasattr(os, "getuid"):
        return True
    if info.st_uid != os.getuid() or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        _warn(f"{path} belongs to another user, or others may write to it")
        return False
    return True


def entry_key(parts: list[str]) -> str:
    """The name of an entry: a hash of all that its code depends on."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read(key: str, where: Path | None = None) -> tuple[bytes, str] | None:
    """The code and symbol kept under a key, if they are there and whole."""
    where = where or folder()
    if where is None:
        return None
    path = where / f"{key}.kernel"
    try:
        data = _contents(path)
    except OSError:
        return None
    if data is None:
        return None
    head, _, rest = data.partition(b"\0")
    digest, _, payload = rest.partition(b"\0")
    symbol, _, code = payload.partition(b"\0")
    if head != _MAGIC + key.encode() or digest != hashlib.sha256(payload).hexdigest().encode() or not code:
        _warn(f"{path} is damaged or was not written by mirabelle")
        return None
    return code, symbol.decode()


def _contents(path: Path) -> bytes | None:
    """What a file of ours holds; None, with a warning, for what is none."""
    # (Opening a pipe waits for its other end, and opening a device may do anything.)
    if _regular(path, path.stat()):
        with os.fdopen(os.open(path, os.O_RDONLY | _AT_ONCE), "rb") as file:
            info = os.fstat(file.fileno())
            if _regular(path, info) and _ours(path, info):
                return file.read()
    return None


_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def _regular(path: Path, info: os.stat_result) -> bool:
    if not stat.S_ISREG(info.st_mode):
        _warn(f"{path} is no regular file")
        return False
    return True


def write(key: str, code: bytes, symbol: str, where: Path | None = None) -> None:
    """Keep an entry; whoever comes first wins, and failing to write is no error."""
    where = where or folder()
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


def read_or_make(
    key: str, make: Callable[[], tuple[bytes, str]], where: str | Path | None
) -> tuple[bytes, str, bool]:
    """The code and symbol kept under a key, or those made and kept now; and whether they were made.

    Where several processes want the same, one makes it and the others wait: the lock goes with the process that
    holds it, however that ends. Where there are no locks (some network file systems), each makes its own.
    """
    if where is None:
        return *make(), True
    where = Path(where)
    with _locked(where / f"{key}.lock"):
        found = read(key, where)  # (somebody else may have made it meanwhile)
        if found is not None:
            return *found, False
        code, symbol = make()
        write(key, code, symbol, where)
        return code, symbol, True


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock, if it can be had."""
    handle = _lock_file(path)
    if handle is None:
        yield
        return
    try:
        until = time.monotonic() + _PATIENCE
        while not _lock(handle):
            if time.monotonic() > until:
                break
            time.sleep(0.01)
        yield
        # (Who has opened it meanwhile locks what has no name any more, and finds the entry.)
        with contextlib.suppress(OSError):
            os.unlink(path)
    finally:
        os.close(handle)


def _lock_file(path: Path) -> int | None:
    if fcntl is None:
        return None
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | _AT_ONCE | os.O_NOFOLLOW, 0o600)
        if stat.S_ISREG(os.fstat(handle).st_mode):
            return handle
        os.close(handle)
    except OSError:
        pass  # (not ours to write to)
    return None


def _lock(handle: int) -> bool:
    """Have it, or learn that nobody can; false if somebody else has it."""
    assert fcntl is not None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # (a file system without locks)
    return True


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
