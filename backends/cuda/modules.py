"""Kernels of an NVIDIA card: compiled once, linked to the card's code, kept on disk, loaded by CuPy."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

from mirabelle.backends.codegen.element import KernelText
from mirabelle.backends.host import diskcache
from mirabelle.backends.host.compiler import _numba_version
from mirabelle.dispatch import counters
from mirabelle.dispatch.errors import DeviceError
from mirabelle.dispatch.forks import ForkLock

_lock = ForkLock()
_loaded: dict[Any, Any] = {}


def load(driver: Any, source: KernelText, functions: dict[str, Any], contract: bool) -> Any:
    """The function of a kernel on the current card: found in memory, on disk, or compiled."""
    key = (driver.index, source.text, source.codes, source.threads, contract, tuple(functions.values()))
    with _lock:
        found = _loaded.get(key)
        if found is None:
            if len(_loaded) > 8192:
                _loaded.clear()
            found = _loaded[key] = _made(driver, source, functions, contract)
    return found


def _made(driver: Any, source: KernelText, functions: dict[str, Any], contract: bool) -> Any:
    from cupy.cuda import function

    name = None
    if not functions:  # what a user's function reads from around it is not in the source
        name = diskcache.entry_key(
            [
                "cuda",
                source.text,
                *source.codes,
                f"{contract} {source.threads} {driver.capability} {_WAIT}",
                *_versions(),
            ]
        )
        kept = diskcache.read(name)
        if kept is not None:
            code, entry = kept
            try:
                return _function(function, code, entry)
            except Exception:
                pass  # of another driver's making: compiled anew
    if counters.active:
        counters.add(compilations=1)
    from mirabelle.backends.gpu.compiler import ptx_of

    ptx, entry = ptx_of(source, functions, driver.capability, contract)
    if driver.capability >= EARLY_FROM:
        ptx = waiting(ptx)
    code = linked(ptx, source.name, driver)
    if name is not None:
        diskcache.write(name, code, entry)
    return _function(function, code, entry)


def waiting(ptx: str) -> str:
    """A kernel that waits for the one before it, and lets the one after it be set up meanwhile.

    Outside of graphs that ask for it, neither does anything.

    >>> waiting(".entry f(.param .u64 x) { ret; }").split()[-5:]
    ['{', 'griddepcontrol.launch_dependents;', 'griddepcontrol.wait;', 'ret;', '}']
    """
    return _ENTRY.sub(lambda m: m[0] + _WAIT, ptx)


# Cards from Hopper on set up a kernel while the one before it runs.
EARLY_FROM = (9, 0)
_ENTRY = re.compile(r"\.entry\s+[\w$.]+\s*\([^)]*\)[^{]*\{")
_WAIT = "\n\tgriddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;"


def _function(function: Any, code: bytes, entry: str) -> Any:
    module = function.Module()
    module.load(code)
    return module.get_function(entry)


def linked(ptx: str, name: str, driver: Any) -> bytes:
    """PTX as the card's own code, by the driver's linker; by nvJitLink where the driver is older."""
    from cupy.cuda import function

    try:
        state = function.LinkState()
        state.add_ptr_data(ptx.encode(), name)
        # The linker owns the memory: it is copied before that goes.
        return bytes(state.complete())
    except Exception as e:
        try:
            return _linked_by_toolkit(ptx, driver.capability)
        except Exception:
            raise DeviceError(
                f"The driver does not take the code that numba-cuda made ({e}). That is so when the toolkit is "
                "newer than the driver: install the toolkit of the driver's CUDA version, "
                '`pip install "cuda-toolkit[nvvm,nvrtc]==13.0.*"`, say; `nvidia-smi` shows the version.'
            ) from e


def _linked_by_toolkit(ptx: str, capability: tuple[int, int]) -> bytes:
    from cuda.bindings import nvjitlink

    major, minor = capability
    handle = nvjitlink.create(1, [f"-arch=sm_{major}{minor}"])
    try:
        data = ptx.encode()
        nvjitlink.add_data(handle, nvjitlink.InputType.PTX, data, len(data), "kernel")
        nvjitlink.complete(handle)
        out = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, out)
        return bytes(out)
    finally:
        nvjitlink.destroy(handle)


def _versions() -> tuple[str, ...]:
    """What else kernels depend on: the compiler, and mirabelle's own part in them."""
    global _known
    if _known is None:
        import hashlib

        from mirabelle.backends import gpu

        digest = hashlib.sha256()
        for path in sorted(Path(gpu.__path__[0]).glob("*.py")):
            if path.name.startswith(
                ("names", "elements", "atomics", "operations", "compiler", "lowering", "nvvm")
            ):
                digest.update(path.read_bytes())
        _known = (
            _numba_version(),
            _numba_cuda_version(),
            digest.hexdigest(),
            str(ctypes.sizeof(ctypes.c_void_p)),
        )
    return _known


_known: tuple[str, ...] | None = None


def _numba_cuda_version() -> str:
    """numba-cuda's version, without importing it."""
    import importlib.util

    spec = importlib.util.find_spec("numba_cuda")
    if spec is None or spec.origin is None:
        return "none"
    found = sorted(Path(spec.origin).parent.parent.glob("numba_cuda-*.dist-info"))
    return found[-1].name if found else "unknown"
