"""Generated source → PTX, which whoever loads a kernel links to the card's own code and keeps on disk.

Kernels are lowered to LLVM's text here, and compiled by NVIDIA's libNVVM. Numba, whose first kernel
takes seconds, compiles what calls functions of users, and what is not lowered.
"""

from __future__ import annotations

import contextlib
import functools
import re
import types as python_types
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from mirabelle.arraytypes.usercode.userfunctions import captures
from mirabelle.backends.codegen.element import KernelText
from mirabelle.backends.codegen.source import function_name
from mirabelle.backends.gpu.lowering import lowered_module
from mirabelle.backends.gpu.lowering_values import NotLowered
from mirabelle.backends.gpu.numpyfunctions import device_numpy
from mirabelle.backends.gpu.nvvm import NvvmError, nvvm
from mirabelle.backends.gpu.usercode import UserCode
from mirabelle.backends.host.compiler import remember
from mirabelle.dispatch.errors import DeviceError, UserFunctionError
from mirabelle.dispatch.forks import ForkLock
from mirabelle.dispatch.ops import TABLE

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
    around = captures(f)
    called = {n: v for n, v in around.items() if n != f.__name__ and _is_function(v)}
    known = cuda_names()
    # Types and helpers that the functions of `operations` name.
    needed = {n: known[n] for n in f.__code__.co_names if n not in f.__globals__ and n in known}
    needed |= {n: device_numpy() for n, v in around.items() if v is np}
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
    from numba.cuda import dispatcher as numba_dispatcher

    dispatcher: Any = numba_dispatcher

    class Card:
        compute_capability = capability

    before = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: Card
    try:
        yield
    finally:
        dispatcher.get_current_device = before


# Kernels that Numba compiled because they were not lowered: why, and how often.
not_lowered: Counter[str] = Counter()


def ptx_of(
    source: KernelText, functions: dict[str, Any], capability: tuple[int, int], contract: bool = False
) -> tuple[str, str]:
    """The PTX of a kernel, and the name of its entry.

    Products and sums are not contracted to fused multiply-adds unless asked: so what IEEE 754 rounds
    exactly has the host's bits.
    """
    # (A kernel of a user's has the types that Numba infers.)
    if not source.inferred:
        with _lock:
            try:
                return unanswered(_ptx_by_lowering(source, functions, capability, contract)), source.name
            except (NotLowered, NvvmError) as e:
                not_lowered[f"{source.name}: {e}"] += 1
    ptx, entry = _ptx_by_numba(source, functions, capability, contract)
    return unanswered(ptx), entry


def unanswered(ptx: str) -> str:
    """PTX whose atomic operations bring nothing back where nobody reads it, so that nobody waits for that.

    NVIDIA's assembler finds them by itself, the driver's linker does not.

    >>> print(unanswered("atom.global.add.f64 %fd2, [%rd1], %fd1;"))
    red.global.add.f64 [%rd1], %fd1;
    """
    if "atom." not in ptx:
        return ptx
    named = Counter(re.findall(r"%\w+", ptx))
    return _ATOMIC.sub(lambda m: f"red{m[1]} " if named[m[2]] == 1 else m[0], ptx)


# (Without an answer none acquires: `atom.acq_rel` and `atom.acquire` stay as they are.)
_ATOMIC = re.compile(r"\batom(?!\.acq)((?:\.\w+)*\.(?:add|min|max|and|or|xor)\.\w+)\s+(%\w+),\s*")


def is_own(name: str, f: Any) -> bool:
    """Is what generated source calls a user's function an operation of ours, such as erf?"""
    op = TABLE.get(name.removeprefix("fn_"))
    return op is not None and op.scalar is f


def _ptx_by_lowering(
    source: KernelText, functions: dict[str, Any], capability: tuple[int, int], contract: bool
) -> str:
    library = nvvm()
    own = frozenset(name for name, f in functions.items() if is_own(name, f))
    users = UserCode({name: f for name, f in functions.items() if name not in own}, capability)
    module = lowered_module(source, library.version, own, users)
    major, minor = capability
    level = 0 if module.plain and not contract else 3
    options = [f"-arch=compute_{major}{minor}", f"-opt={level}", f"-fma={int(contract)}"]
    return library.ptx([module.text.encode(), *users.modules], module.uses_libdevice, options)


def _ptx_by_numba(
    source: KernelText, functions: dict[str, Any], capability: tuple[int, int], contract: bool
) -> tuple[str, str]:
    try:
        import numba.cuda  # noqa: F401
    except ImportError as e:
        raise DeviceError(
            f"mb.CuArray compiles this kernel with numba-cuda, and importing it failed ({e}). Install it: "
            '`pip install "mirabelle[cuda]"`.'
        ) from None
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

    # (The driver's linker gives who says bounds twice and three times the registers, 149 and not 69 for a loop
    # over cubic elements. What is faster without bounds has not been measured on a card.)
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
    where = f" ({at.rstrip(':')})" if at else ""
    return (
        f"{name}() cannot be compiled for the card{where}: {reason.rstrip('.:')}. A function that is "
        "broadcast sees one element of each operand, and may use arithmetic and math.* functions."
    )


def compiled_names(ops: list[Any]) -> dict[str, Any]:
    """What generated source calls users' functions, and the functions."""
    return {function_name(op): op.scalar for op in ops}
