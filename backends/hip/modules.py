"""Kernels of an AMD card: compiled once by numba-hip, kept on disk, loaded by CuPy."""

from __future__ import annotations

import functools
import importlib.metadata
from typing import Any

from mirabelle.backends.codegen.element import KernelText
from mirabelle.backends.gpu.keptkernels import kept, own_part
from mirabelle.backends.host.compiler import _numba_version


def load(driver: Any, source: KernelText, functions: dict[str, Any]) -> Any:
    """The function of a kernel on the current card."""

    def depends_on() -> list[str]:
        return ["hip", source.text, *source.codes, driver.architecture, *_versions()]

    def loaded(code: bytes, entry: str) -> Any:
        module = driver.library.cuda.function.Module()
        module.load(code)
        return module.get_function(entry)

    def made() -> tuple[bytes, str]:
        from mirabelle.backends.hip.compiler import code_object

        return code_object(source, functions, driver.architecture)

    key = (driver.index, source.text, source.codes, tuple(functions.values()))
    # (What a user's function reads from around it is not in the source.)
    return kept(key, None if functions else depends_on, loaded, made)


@functools.cache
def _versions() -> tuple[str, ...]:
    """What else kernels depend on: the compilers, and mirabelle's own part in them."""
    from mirabelle.backends import gpu, hip

    own = own_part([gpu, hip], ("names", "elements", "atomics", "operations", "compiler"))
    return _numba_version(), *map(_version, ("numba-hip", "rocm-bindings-compiler")), own


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "none"
