"""Functions of users for lowered kernels: Numba compiles the function alone, to LLVM's text.

What a user writes has the types that Numba infers. Only it is compiled by Numba then, and not the kernel
around it, which takes several times as long; libNVVM links the two.
"""

from __future__ import annotations

import functools
import itertools
import re
from typing import Any

from mirabelle.backends.gpu.lowering_values import NotLowered

# What is passed and returned by value.
_SCALARS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")


class UserCode:
    """The functions of a kernel, compiled as they are called."""

    def __init__(self, functions: dict[str, Any], capability: tuple[int, int]) -> None:
        self.functions = functions
        self.capability = capability
        self.modules: list[bytes] = []

    def called(self, name: str, codes: tuple[Any, ...]) -> tuple[str, str]:
        """The symbol of a function at operands of these dtypes, and the dtype of its result."""
        if not set(codes) <= set(_SCALARS):
            raise NotLowered(f"{name}() of such operands")
        symbol, result, modules = _compiled(self.functions[name], codes, self.capability)
        if result not in _SCALARS:
            raise NotLowered(f"the result of {name}()")
        self.modules += [m for m in modules if m not in self.modules]
        return symbol, result


@functools.lru_cache(maxsize=256)
def _compiled(
    f: Any, codes: tuple[str, ...], capability: tuple[int, int]
) -> tuple[str, str | None, tuple[bytes, ...]]:
    """A function's symbol, the code of its result, and its text."""
    try:
        from numba.cuda import compiler
        from numba.cuda.cudadrv.nvvm import llvm_replace

        from mirabelle.backends.gpu.compiler import device_function, targeting
        from mirabelle.backends.gpu.names import TYPES

        symbol = f"user_{next(_numbers)}"
        with targeting(capability):
            library, made = compiler._compile_pyfunc_with_fixup(
                getattr(device_function(f), "py_func", f),
                tuple([TYPES[c] for c in codes]),
                device=True,
                abi="c",
                abi_info={"abi_name": symbol},
                cc=capability,
            )
        result = next((c for c, t in TYPES.items() if t == made), None)
        # (What is inlined everywhere need not be there by itself.)
        own = re.compile(rf'^define (\w+ @"?{symbol}"?\()', re.MULTILINE)
        texts = [own.sub(r"define linkonce_odr \1", llvm_replace(m)) for m in library.llvm_strs]
        return symbol, result, tuple([text.encode() for text in texts])
    except Exception as e:  # the kernel is compiled by Numba as a whole, which says what is wrong
        raise NotLowered(f"a user's function: {e}") from None


_numbers = itertools.count()
