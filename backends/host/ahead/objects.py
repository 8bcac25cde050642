"""Kernels as object code that can be part of any library.

In a process kernels are mapped where there is room for them. In a library they are found relative to one
another, and have names of their own; else the code is the same, made of the same LLVM by the same compiler.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mirabelle.arraytypes.usercode.userfunctions import jitted
from mirabelle.backends.codegen.program import Program, is_user_function
from mirabelle.backends.codegen.source import Source, function_name
from mirabelle.backends.host import compiler

# What kernels may call that is no part of them: functions of the C library and of its mathematics.
_LIBRARY = frozenset((
    "abs", "memcpy", "memmove", "memset", "free", "malloc", "acos", "acosh", "asin", "asinh", "atan",
    "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1",
    "fabs", "floor", "fmod", "frexp", "hypot", "ldexp", "lgamma", "log", "log10", "log1p", "log2", "modf",
    "nextafter", "pow", "round", "sin", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc",
))  # fmt: skip
# What memory.c has, for functions that make arrays of their own.
_MEMORY = frozenset(("NRT_MemInfo_alloc_aligned", "NRT_MemInfo_alloc_safe_aligned", "NRT_MemInfo_call_dtor"))


class NotPortable(Exception):
    """A kernel that needs Python."""


def kernel_object(source: Source, program: Program, name: str, cpu: str = "native") -> bytes:
    """The object code of a kernel, which is called `name` in it."""
    functions: dict[str, Any] = {}
    for op in source.functions:
        scalar: Any = op.scalar
        functions[function_name(op)] = jitted(scalar) if is_user_function(op) else op.name
    result = compiler.compiled_by_numba(source.text, source.name, functions)
    return portable(result.library.get_llvm_str(), result.fndesc.llvm_func_name, name, cpu)


def portable(text: str, symbol: str, name: str, cpu: str) -> bytes:
    """LLVM's text as object code in which only `name`, which is `symbol` there, can be seen from outside."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(text)
    for value in (*module.functions, *module.global_variables):
        if value.name == symbol:
            value.name, value.visibility = name, "hidden"
        elif not value.is_declaration:
            value.linkage = "internal"
    _check(module.functions)
    native = cpu == "native"
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name() if native else cpu,
        features=llvm.get_host_cpu_features().flatten() if native else "",
        opt=3,
        reloc="pic",
        codemodel="small",
    )
    return machine.emit_object(module)  # type: ignore[no-any-return]


def _check(functions: Iterable[Any]) -> None:
    needs = [
        f.name for f in functions if f.is_declaration and not f.name.startswith("llvm.") and not _known(f.name)
    ]
    if needs:
        raise NotPortable(needs[0])


def _known(name: str) -> bool:
    return name in _LIBRARY or name in _MEMORY or (name[-1:] == "f" and name[:-1] in _LIBRARY)
