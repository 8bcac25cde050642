"""Kernels of an AMD card: compiled once by numba-hip, kept on disk, loaded by CuPy."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

from mirabelle.backends.codegen.element import KernelText
from mirabelle.backends.host import diskcache
from mirabelle.backends.host.compiler import _numba_version
from mirabelle.dispatch import counters
from mirabelle.dispatch.forks import ForkLock

_lock = ForkLock()
_loaded: dict[Any, Any] = {}
_known: tuple[str, ...] = ()


def load(driver: Any, source: KernelText, functions: dict[str, Any]) -> Any:
    """The function of a kernel on the current card: found in memory, on disk, or compiled."""
    key = (driver.index, source.text, source.codes, tuple(functions.values()))
    with _lock:
        found = _loaded.get(key)
        if found is None:
            if len(_loaded) > 8192:
                _loaded.clear()
            found = _loaded[key] = _made(driver, source, functions)
    return found


def _made(driver: Any, source: KernelText, functions: dict[str, Any]) -> Any:
    name = None
    if not functions:  # what a user's function reads from around it is not in the source
        name = diskcache.entry_key(["hip", source.text, *source.codes, driver.architecture, *_versions()])
        kept = diskcache.read(name)
        if kept is not None:
            try:
                return _function(driver, *kept)
            except Exception:
                pass  # of another ROCm's making: compiled anew
    if counters.active:
        counters.add(compilations=1)
    from mirabelle.backends.hip.compiler import code_object

    code, entry = code_object(source, functions, driver.architecture)
    if name is not None:
        diskcache.write(name, code, entry)
    return _function(driver, code, entry)


def _function(driver: Any, code: bytes, entry: str) -> Any:
    module = driver.library.cuda.function.Module()
    module.load(code)
    return module.get_function(entry)


def _versions() -> tuple[str, ...]:
    """What else kernels depend on: the compilers, and mirabelle's own part in them."""
    global _known
    if not _known:
        import hashlib

        from mirabelle.backends import gpu, hip

        digest = hashlib.sha256()
        parts = ("names", "elements", "atomics", "operations", "compiler")
        for folder in (gpu, hip):
            for path in sorted(Path(folder.__path__[0]).glob("*.py")):
                if path.name.startswith(parts):
                    digest.update(path.read_bytes())
        _known = (_numba_version(), *map(_version, ("numba-hip", "rocm-bindings-compiler")), digest.hexdigest())
    return _known


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "none"
