"""Kernel source → machine code: Numba, once per source, kept on disk.

`compile_source` is a function of texts, so that it can run in another process. The result is
an object file; `load` maps it into this process with llvmlite alone, so a process that finds
all its kernels on disk never imports Numba.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import linecache
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from mirabelle.dispatch import native
from mirabelle.dispatch.forks import ForkLock

Kernel = Callable[[int, int, int, int, int, int, int, int], int]
_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * 8)


def compile_source(text: str, name: str, functions: dict[str, Any]) -> tuple[bytes, str]:
    """The object code of a kernel and the symbol to call. `functions`: what the source calls."""
    result = compiled_by_numba(text, name, functions)
    if result.library.has_dynamic_globals and any(isinstance(f, bytes) for f in functions.values()):
        raise ValueError("It refers to addresses of this process.")
    return result.library._get_compiled_object(), result.fndesc.llvm_func_name


def compiled_by_numba(text: str, name: str, functions: dict[str, Any]) -> Any:
    """What Numba makes of a kernel's source."""
    from numba import njit, types
    from numba.core.errors import NumbaPerformanceWarning  # noqa: F401 - Numba is complete now

    from mirabelle.backends.host import primitives
    from mirabelle.dispatch.numbatables import make_tables

    make_tables()
    scope = dict(primitives.shared_namespace())
    for label, function in functions.items():
        scope[label] = _callable(function)
    filename = remember(text)
    exec(compile(text, filename, "exec"), scope)
    make: Any = njit
    compiled = make(
        nogil=True,
        error_model="numpy",
        boundscheck=False,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
    )(scope[name])
    compiled.compile(types.void(*[types.int64] * 8))
    (result,) = compiled.overloads.values()
    return result


def _callable(function: Any) -> Any:
    """What a kernel calls: one of ours by its name, a user's as another process described it, or as it is."""
    if isinstance(function, str):
        from mirabelle.backends.host import primitives

        return primitives.builtin_function(function)
    if not isinstance(function, bytes):
        return function
    from mirabelle.arraytypes.usercode.userfunctions import jitted
    from mirabelle.backends.host import overloadjobs

    return jitted(overloadjobs.rebuilt(function))


def remember(text: str) -> str:
    """Make generated source visible to tracebacks and profilers; returns its file name."""
    filename = f"<mirabelle kernel {hashlib.sha1(text.encode()).hexdigest()[:12]}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    return filename


_engine_lock = ForkLock()
_engine: Any = None
# Where kernels leave their return value and exception: kernels have neither, so all share it.
_nowhere = ctypes.create_string_buffer(256)
_nowhere_address = ctypes.addressof(_nowhere)
native.tell(nowhere=_nowhere_address)


def _target_machine() -> Any:
    """A new one for each kernel, because the engine that takes it also disposes of it."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), jit=True
    )


_is_ready = False


def can_link() -> bool:
    """Has this process imported what makes machine code a function of it?"""
    return _is_ready


def get_ready() -> None:
    """Import it: that takes longer than many a statement."""
    global _is_ready
    import llvmlite.binding  # noqa: F401

    _is_ready = True


def load(code: bytes, symbol: str) -> Kernel:
    """Machine code as a function of this process. Raises OSError if it cannot be linked."""
    get_ready()
    import llvmlite.binding as llvm

    if b"numba_" in code or b"NRT_" in code:
        import numba.core.runtime  # noqa: F401 - its symbols are registered on import
        from numba.core.compiler_lock import global_compiler_lock
        from numba.core.registry import cpu_target

        with global_compiler_lock:  # (who holds it may ask for ours)
            cpu_target.target_context.refresh()
    with _engine_lock:
        machine = _target_machine()
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        try:
            engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            engine.finalize_object()
            address = engine.get_function_address(symbol)
        except RuntimeError as e:
            raise OSError(f"the kernel does not link: {e}") from None
        if not address:
            raise OSError(f"the kernel has no symbol {symbol}")
    function = _PROTOTYPE(address)
    nowhere = _nowhere_address

    def kernel(*args: int) -> int:
        return function(nowhere, nowhere, *args)

    kernel.engine = engine  # type: ignore[attr-defined]
    kernel.address = address  # type: ignore[attr-defined]
    return kernel


@cache
def function(address: int) -> Any:
    """The code at an address as a function, which takes what kernels take."""
    return _PROTOTYPE(address)


def nowhere() -> int:
    """Where kernels leave what nobody reads."""
    return _nowhere_address


def _numba_version() -> str:
    """Numba's version, without importing Numba (or importlib.metadata, which takes as long as we do)."""
    spec = importlib.util.find_spec("numba")
    if spec is None or spec.origin is None:
        return "none"
    found = sorted(Path(spec.origin).parent.parent.glob("numba-*.dist-info"))
    if found:
        return found[-1].name
    from importlib.metadata import version

    return version("numba")


@cache
def target_tag() -> str:
    """What object code depends on besides its source: what the names in it mean, versions and the processor."""
    import platform

    import llvmlite
    import numpy

    # (Its text, which is there without Numba.)
    names = Path(__file__).with_name("primitives.py").read_bytes()
    return ";".join(
        [
            # (What server.py asks of LLVM is counted up.)
            f"mirabelle-{hashlib.sha1(names).hexdigest()[:12]}-3",
            _numba_version(),
            llvmlite.__version__,
            numpy.__version__.split(".")[0],
            platform.machine(),
            platform.system(),
            hashlib.sha1(_processor()).hexdigest(),
        ]
    )


# What the system says of a processor that does not change while it runs.
_LASTING = (b"vendor_id", b"cpu family", b"model", b"stepping", b"flags", b"Features", b"CPU ")


def _processor() -> bytes:
    """What tells processors apart that LLVM makes different code for; where it can be, without importing LLVM.

    (Its binding takes longer to import than a first statement does without it.)
    """
    try:
        with open("/proc/cpuinfo", "rb") as file:  # (the first of them; of many it takes long to ask all)
            lines = file.read(1 << 14).partition(b"\n\n")[0].splitlines()
    except OSError:
        lines = []
    if any(line.startswith((b"flags", b"Features")) for line in lines):
        return b"\n".join(line for line in lines if line.startswith(_LASTING))
    import llvmlite.binding as llvm

    return f"{llvm.get_host_cpu_name()};{llvm.get_host_cpu_features().flatten()}".encode()
