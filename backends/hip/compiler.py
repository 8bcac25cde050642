"""Generated source → a code object for an AMD card, by numba-hip.

The sources, and the names in them, are those of NVIDIA's cards: memory is read and written by address, in the
address spaces that both number alike. What tells threads apart, barriers, shared memory and real functions
are numba-hip's own. Half precision is not: numba-hip has no operations on it.
"""

from __future__ import annotations

import functools
import types as python_types
from typing import Any

from mirabelle.arraytypes.usercode.userfunctions import captures
from mirabelle.backends.codegen.element import KernelText
from mirabelle.backends.host.compiler import remember
from mirabelle.dispatch.errors import DeviceError, UserFunctionError
from mirabelle.dispatch.forks import ForkLock

_lock = ForkLock()
# What each register is called in HIP.
_REGISTERS = {"thread": "threadIdx", "block": "blockIdx", "threads": "blockDim", "blocks": "gridDim"}


def numba_hip() -> Any:
    """The module `numba.hip`, or an error that says what is missing."""
    try:
        from numba import hip
    except Exception as e:  # (it raises errors of the ROCm bindings, too)
        raise DeviceError(
            f"mb.ROCArray compiles its kernels with numba-hip, and importing it failed ({e}). Install it on a "
            'machine with ROCm: `pip install "mirabelle[hip]"`.'
        ) from None
    return hip


@functools.cache
def hip_names() -> Any:
    """What names in generated source mean to numba-hip."""
    import cmath
    import math
    import operator

    import numpy as np

    from mirabelle.backends.gpu.names import Names

    hip = numba_hip()
    from numba.hip.extending import intrinsic

    def operation(stem: str, c: str) -> Any:
        from mirabelle.backends.gpu import operations

        if c == "f2":
            raise DeviceError(
                "numba-hip has no operations on half precision. Convert first: `x.astype(mb.float32)`."
            )
        return device_function(operations.scalar_function(stem, c, "hip"))

    given: dict[str, Any] = {"math": math, "cmath": cmath, "np": np, "operator": operator}
    given |= {"cuda": hip, "barrier": hip.syncthreads}
    for name, of in _REGISTERS.items():
        for axis in "xyz":
            given[f"{name}_{axis}"] = hip.jit(device=True)(register(hip, of, axis))
    return Names(intrinsic, {}, operation, **given)


def register(hip: Any, name: str, axis: str) -> Any:
    """A function of no arguments that reads `hip.threadIdx.x`, say."""
    scope = {"hip": hip}
    exec(compile(f"def read():\n    return hip.{name}.{axis}\n", f"<{name}.{axis}>", "exec"), scope)
    return scope["read"]


@functools.lru_cache(maxsize=4096)
def device_function(f: Any) -> Any:
    """A Python function as one that kernels can call, and so the plain functions it calls."""
    f = getattr(f, "py_func", f)
    if not isinstance(f, python_types.FunctionType):
        return f  # known to Numba as it is: math.erf
    known = hip_names()
    made = {n: device_function(v) for n, v in captures(f).items() if n != f.__name__ and _is_function(v)}
    made |= {n: known[n] for n in f.__code__.co_names if n not in f.__globals__ and n in known}
    if made:
        cells = [
            python_types.CellType(made[n]) if n in made else cell
            for n, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True)
        ]
        scope = {**f.__globals__, **made}
        f = python_types.FunctionType(f.__code__, scope, f.__name__, f.__defaults__, tuple(cells) or None)
    return numba_hip().jit(device=True)(f)


def _is_function(x: Any) -> bool:
    return isinstance(x, python_types.FunctionType) or hasattr(x, "py_func")


def code_object(source: KernelText, functions: dict[str, Any], architecture: str) -> tuple[bytes, str]:
    """A kernel's code object for an architecture such as "gfx90a", and the name of its entry."""
    from numba import types

    from mirabelle.backends.gpu.names import TYPES, scope_of

    code = compile(source.text, remember(source.text), "exec")
    with _lock:
        scope = scope_of(code, hip_names())
        scope |= {name: device_function(f) for name, f in functions.items()}
        exec(code, scope)
        for part in code.co_consts:
            if isinstance(part, python_types.CodeType) and part.co_name != source.name:
                scope[part.co_name] = device_function(scope[part.co_name])
        arguments = tuple([TYPES[c] for c in source.codes])
        try:
            return _compiled(scope[source.name], types.void, arguments, architecture)
        except Exception as e:
            if not source.functions:
                raise
            from mirabelle.backends.gpu.compiler import _shortened

            raise UserFunctionError(_shortened(e, ", ".join(f.__name__ for f in functions.values()))) from None


def _compiled(f: Any, result: Any, arguments: tuple[Any, ...], architecture: str) -> tuple[bytes, str]:
    from numba.hip.compiler import compile_hip

    options = {"fastmath": False, "opt": 3}
    made = compile_hip(f, result, arguments, options=options, amdgpu_arch=architecture)
    where = f.__code__
    library, _ = made.target_context.prepare_hip_kernel(
        made.library, made.fndesc, False, False, options, where.co_filename, where.co_firstlineno
    )
    return bytes(library.get_codeobj(amdgpu_arch=architecture)), library._entry_name
