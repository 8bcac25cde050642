"""Generated source → machine code for a card, kept on disk.

Numba compiles to PTX; whoever loads it links that to the card's own code, which is what is kept:
a process that finds all its kernels on disk imports no compiler.
"""

from __future__ import annotations

import contextlib
import functools
import re
import types as python_types
from collections.abc import Iterator
from typing import Any

from mirabelle.backends.codegen.element import KernelText
from mirabelle.backends.codegen.source import function_name
from mirabelle.backends.codegen.userfunctions import captures
from mirabelle.backends.host.compiler import remember
from mirabelle.dispatch.errors import DeviceError, UserFunctionError
from mirabelle.dispatch.forks import ForkLock

_lock = ForkLock()

CUDA_REGISTERS = {
    f"{name}_{axis}": f"llvm.nvvm.read.ptx.sreg.{register}.{axis}"
    for name, register in (
        ("thread", "tid"),
        ("block", "ctaid"),
        ("threads", "ntid"),
        ("blocks", "nctaid"),
    )
    for axis in "xyz"
}


@functools.cache
def cuda_names() -> Any:
    """What names in generated source mean to numba-cuda."""
    import cmath
    import math
    import operator

    import numpy as np
    from numba import cuda
    from numba.cuda.extending import intrinsic

    from mirabelle.backends.gpu.names import Names

    def operation(stem: str, c: str) -> Any:
        from mirabelle.backends.gpu import operations

        return device_function(operations.scalar_function(stem, c))

    modules = {"math": math, "cmath": cmath, "np": np, "operator": operator}
    return Names(intrinsic, CUDA_REGISTERS, operation, cuda=cuda, barrier=cuda.syncthreads, **modules)


@functools.lru_cache(maxsize=4096)
def device_function(f: Any) -> Any:
    """A Python function as one that kernels can call, and so the plain functions it calls."""
    from numba import cuda

    f = getattr(f, "py_func", f)
    if not isinstance(f, python_types.FunctionType):
        return f  # known to Numba as it is: math.erf
    called = {n: v for n, v in captures(f).items() if n != f.__name__ and _is_function(v)}
    known = cuda_names()
    # Types and helpers that the functions of `operations` name.
    needed = {n: known[n] for n in f.__code__.co_names if n not in f.__globals__ and n in known}
    if called or needed:
        compiled = {n: device_function(v) for n, v in called.items()} | needed
        cells = [
            python_types.CellType(compiled[n]) if n in compiled else cell
            for n, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True)
        ]
        f = python_types.FunctionType(
            f.__code__, {**f.__globals__, **compiled}, f.__name__, f.__defaults__, tuple(cells) or None
        )
    return cuda.jit(device=True)(f)


def _is_function(x: Any) -> bool:
    return isinstance(x, python_types.FunctionType) or hasattr(x, "py_func")


@contextlib.contextmanager
def targeting(capability: tuple[int, int]) -> Iterator[None]:
    """Compile device functions for a capability, also where there is no card to ask."""
    from numba.cuda import dispatcher

    class Card:
        compute_capability = capability

    before = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: Card  # type: ignore[assignment]
    try:
        yield
    finally:
        dispatcher.get_current_device = before


def ptx_of(
    source: KernelText, functions: dict[str, Any], capability: tuple[int, int], contract: bool = False
) -> tuple[str, str]:
    """The PTX of a kernel, and the name of its entry.

    Products and sums are not contracted to fused multiply-adds unless asked: so what IEEE 754 rounds
    exactly has the host's bits.
    """
    from numba import types

    from mirabelle.backends.gpu.names import TYPES, scope_of

    code = compile(source.text, remember(source.text), "exec")
    with _lock, targeting(capability):
        scope = scope_of(code, cuda_names())
        scope |= {name: device_function(f) for name, f in functions.items()}
        exec(code, scope)
        for part in code.co_consts:
            if isinstance(part, python_types.CodeType) and part.co_name != source.name:
                scope[part.co_name] = device_function(scope[part.co_name])
        signature = types.void(*[TYPES[c] for c in source.codes])
        try:
            ptx = _compiled(scope[source.name], signature, capability, contract, source.threads)
        except Exception as e:
            if not source.functions:
                raise
            raise UserFunctionError(_shortened(e, ", ".join(f.__name__ for f in functions.values()))) from None
    entry = re.search(r"\.entry\s+([\w$.]+)", ptx)
    if entry is None:
        raise DeviceError(f"Numba made no kernel of {source.name}; this is a defect of mirabelle.")
    return ptx, entry.group(1)


def _compiled(f: Any, signature: Any, capability: tuple[int, int], contract: bool, threads: int) -> str:
    from numba.cuda import compiler

    lib, _ = compiler._compile_pyfunc_with_fixup(
        f, signature, device=False, abi="numba", cc=capability, launch_bounds=threads or None
    )
    if not contract:
        lib._nvvm_options = {**lib._nvvm_options, "fma": 0}
    (ptx,) = lib.get_asm_strs(cc=capability)
    return ptx  # type: ignore[no-any-return]


def _shortened(e: Exception, name: str) -> str:
    """Numba's message, cut to the line and the reason."""
    lines = [line.strip() for line in str(e).splitlines() if line.strip()]
    at = next((line for line in lines if line.startswith("File ") and "mirabelle kernel" not in line), "")
    reason = next((x for x in lines if not x.startswith(("Failed", "[1", "During", "File"))), str(e)[:200])
    where = f" ({at})" if at else ""
    return (
        f"{name}() cannot be compiled for the card{where}: {reason} A function that is broadcast sees one "
        "element of each operand, and may use arithmetic and math.* functions."
    )


def compiled_names(ops: list[Any]) -> dict[str, Any]:
    """What generated source calls users' functions, and the functions."""
    return {function_name(op): op.scalar for op in ops}
