"""NVIDIA's compiler of LLVM text, libNVVM: text → PTX.

Its interface in C is a dozen functions, which are the same in all versions of CUDA.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Any

from mirabelle.dispatch.errors import DeviceError


class NvvmError(DeviceError):
    """libNVVM does not take a module."""


class Nvvm:
    """The library, where it is installed."""

    def __init__(self) -> None:
        import cuda.pathfinder as finder  # type: ignore[import-untyped]

        self.library = ctypes.CDLL(finder.load_nvidia_dynamic_lib("nvvm").abs_path)
        self._find_libdevice: Any = lambda: finder.find_bitcode_lib("device")
        numbers = [ctypes.c_int() for _ in range(4)]
        self.check(self.library.nvvmIRVersion(*[ctypes.byref(n) for n in numbers]), None)
        # The version of NVVM IR that modules are marked with.
        self.version: tuple[int, int, int, int] = tuple([n.value for n in numbers])  # type: ignore[assignment]

    @functools.cached_property
    def libdevice(self) -> bytes:
        """The library of real functions, as LLVM's bit code."""
        try:
            return Path(self._find_libdevice()).read_bytes()
        except (AttributeError, OSError, RuntimeError) as e:
            raise NvvmError(f"libdevice is not to be found: {e}") from None

    def ptx(self, modules: list[bytes], with_libdevice: bool, options: list[str]) -> str:
        """Modules, together, as PTX."""
        library, program = self.library, ctypes.c_void_p()
        given = (ctypes.c_char_p * len(options))(*[x.encode() for x in options])
        self.check(library.nvvmCreateProgram(ctypes.byref(program)), None)
        try:
            for text in modules:
                size = ctypes.c_size_t(len(text))
                self.check(library.nvvmAddModuleToProgram(program, text, size, b"kernel"), program)
            self.check(library.nvvmVerifyProgram(program, len(options), given), program)
            if with_libdevice:
                bits = self.libdevice
                size = ctypes.c_size_t(len(bits))
                self.check(library.nvvmLazyAddModuleToProgram(program, bits, size, b"libdevice"), program)
            self.check(library.nvvmCompileProgram(program, len(options), given), program)
            self.check(library.nvvmGetCompiledResultSize(program, ctypes.byref(size)), program)
            out = ctypes.create_string_buffer(size.value)
            self.check(library.nvvmGetCompiledResult(program, out), program)
            return out.value.decode()
        finally:
            library.nvvmDestroyProgram(ctypes.byref(program))

    def check(self, status: int, program: Any) -> None:
        if status:
            raise NvvmError(f"libNVVM does not compile a kernel (status {status}). {self._log(program)}")

    def _log(self, program: Any) -> str:
        size = ctypes.c_size_t()
        if program is None or self.library.nvvmGetProgramLogSize(program, ctypes.byref(size)):
            return ""
        out = ctypes.create_string_buffer(max(1, size.value))
        self.library.nvvmGetProgramLog(program, out)
        return out.value.decode(errors="replace")


@functools.cache
def nvvm() -> Nvvm:
    """The library. Raises NvvmError where there is none."""
    try:
        return Nvvm()
    except (AttributeError, ImportError, OSError, RuntimeError) as e:  # among them the finder's own
        raise NvvmError(f"libNVVM is not to be found: {e}") from None
