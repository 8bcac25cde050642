"""Programs run by NumPy: at once when small, in cache-sized blocks when large.

This is how an expression runs before its kernel is compiled. For each program one Python
function of NumPy calls is generated; on blocks, intermediate values stay in the cache.
"""

from __future__ import annotations

import contextvars
import ctypes
import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.backends.codegen.program import Program
from mirabelle.dispatch import counters, native
from mirabelle.dispatch.promotion import Sig, through_int64
from mirabelle.dispatch.schedule import SCALAR

# Elements of a block: small enough for the second-level cache, large enough that Python's
# part of a block is small beside NumPy's.
BLOCK = 1 << 14

_local = threading.local()


def quietly(f: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Run with floating-point warnings off: NaN and infinity are values here, as in a kernel.

    Entering np.errstate takes longer than a small operation; a context kept for the purpose
    does not.
    """
    try:
        if counters.active:
            counters.carry(_local.context)
        return _local.run(f, *args, **options)
    except AttributeError:
        if hasattr(_local, "run"):
            raise
        _local.context = _quiet_context()
        _local.run = _local.context.run
        return quietly(f, *args, **options)
    except RuntimeError as e:
        if "already entered" not in str(e):
            raise
        return f(*args, **options)  # a user's function inside a kernel evaluates a tree of its own


def _quiet_context() -> contextvars.Context:
    context = contextvars.copy_context()
    context.run(lambda: np.seterr(all="ignore"))
    return context


native.tell(quiet=_quiet_context)


def interpreted(program: Program) -> Callable[..., Any]:
    """run(leaves, scalars, outs): the program as NumPy calls on whole operands."""
    run = program.plans.get("interpreted")
    if run is None:
        run = program.plans["interpreted"] = _generate(program, reuse=False)
    return run  # type: ignore[no-any-return]


def interpreted_blocks(program: Program) -> Callable[..., Any]:
    """The same for operands all of one shape: values overwrite those that are dead."""
    run = program.plans.get("blocks")
    if run is None:
        run = program.plans["blocks"] = _generate(program, reuse=True)
    return run  # type: ignore[no-any-return]


def _generate(program: Program, reuse: bool) -> Callable[..., Any]:
    scope: dict[str, Any] = {"copyto": np.copyto, "where": np.where, "asarray": np.asarray}
    lines = ["def run(leaves, scalars, outs):"]
    n_leaf = len(program.leaf_dtypes)
    n_scalar = len({j for j, _ in program.scalar_slots})
    if n_leaf:
        lines.append(f"    {', '.join(f'x{j}' for j in range(n_leaf))}, = leaves")
    if n_scalar:
        lines.append(f"    {', '.join(f's{j}' for j in range(n_scalar))}, = scalars")
    lines.append(f"    {', '.join(f'y{j}' for j in range(len(program.outs)))}, = outs")
    last_use: dict[int, int] = {}
    for k, (_, refs) in enumerate(program.steps):
        for r in refs:
            last_use[r] = k
    for r in program.outs:
        last_use[r] = len(program.steps)
    # A step may write its result straight to the output it becomes, if no later step reads a
    # leaf (which the output may overwrite) and the dtype is the output's.
    direct = {
        r: j
        for j, (r, d) in enumerate(zip(program.outs, program.out_dtypes, strict=True))
        if r == len(program.steps) - 1 and program.dtype_of(r) == d
    }
    written = set()
    # Steps with an array among what they are computed from: NumPy gives numbers for the others.
    arrays: set[int] = set()
    for k, (sig, refs) in enumerate(program.steps):
        if any(r < 0 or r in arrays for r in refs):
            arrays.add(k)
        names = [f"s{r - SCALAR}" if r >= SCALAR else f"x{-1 - r}" if r < 0 else f"v{r}" for r in refs]
        out = f"y{direct[k]}" if k in direct else None
        if out is None and reuse:
            for r in refs:
                if (
                    r in arrays
                    and last_use[r] == k
                    and refs.count(r) >= 1
                    and program.dtype_of(r) == sig.out
                    and program.steps[r][0].op.nout == 1
                    and not program.steps[r][0].op.name.startswith("pick")
                    and program.steps[r][0].op.name not in ("copy", "real", "imag")
                ):
                    out = f"v{r}"
                    break
        f = f"f{k}"
        scope[f], takes_out = numpy_callable(sig)
        if sig.op.name == "copy" and refs[0] >= SCALAR:
            scope[f] = sig.out.type  # an array's contents: no longer a Python number, which would be weak
        if takes_out and out is not None:
            lines.append(f"    v{k} = {f}({', '.join(names)}, out={out})")
            if k in direct:
                written.add(k)
        else:
            lines.append(f"    v{k} = {f}({', '.join(names)})")
    for j, (r, _) in enumerate(zip(program.outs, program.out_dtypes, strict=True)):
        if r in written and direct.get(r) == j:
            continue
        value = f"x{-1 - r}" if r < 0 else f"v{r}"
        if program.dtype_of(r).kind == "c" and program.out_dtypes[j].kind not in "cb":
            value += ".real"  # whoever asked for it has been warned
        if through_int64(program.dtype_of(r), program.out_dtypes[j]):
            value = f"asarray({value}).astype('i8')"
        lines.append(f"    copyto(y{j}, {value}, 'unsafe')")
    exec(compile("\n".join(lines), "<mirabelle statement>", "exec"), scope)
    return scope["run"]  # type: ignore[no-any-return]


def numpy_callable(sig: Sig) -> tuple[Callable[..., Any], bool]:
    """A function that does a step on NumPy arrays, and whether it takes `out`."""
    op, out = sig.op, sig.out
    if op.ufunc is not None:
        # (NumPy 2.4's negative of four bytes is wrong where operand and result both have steps of 16 bytes.)
        return op.ufunc, op.nout == 1 and op.name != "negative"
    if op.name == "where":
        return (lambda c, x, y: np.asarray(np.where(c, x, y)).astype(out, copy=False)), False
    if op.name == "cast":
        if through_int64(sig.ins[0], out):
            return (lambda x: np.asarray(x).real.astype(np.int64).astype(out)), False
        if sig.ins[0].kind == "c" and out.kind not in "cb":
            return (lambda x: np.asarray(x).real.astype(out)), False
        return (lambda x: np.asarray(x).astype(out)), False
    if op.name == "copy":
        return (lambda x: x), False
    if op.name == "gather":
        return gathered, False
    if op.name == "place":
        return placed, False
    if op.name == "real":
        return (lambda x: np.asarray(x).real), False
    if op.name == "imag":
        return (lambda x: np.asarray(x).imag), False
    if op.name == "complex":
        return _complex(out), False
    if op.name.startswith("pick"):
        i = int(op.name[4:])
        return (lambda x: x[i]), False
    if op.name == "fma":
        return _fma(out), False
    assert op.scalar is not None
    return _each(op.scalar, out), False


def gathered(base: np.ndarray, offset: Any) -> np.ndarray:
    """The elements that stand `offset` elements further on than those of `base`."""
    offset = np.asarray(offset)
    if not base.size:
        return np.empty(np.broadcast_shapes(offset.shape, base.shape), base.dtype)
    itemsize, low = base.itemsize, 0
    position: Any = offset
    for d, (n, s) in enumerate(zip(base.shape, base.strides, strict=True)):
        if s and n > 1:
            step = s // itemsize
            low = min(low, low + (n - 1) * step) if step < 0 else low
            along = np.arange(n, dtype=np.int64) * step
            position = position + along.reshape((-1,) + (1,) * (base.ndim - d - 1))
    if low:
        position = position - low
        base = base[tuple(slice(None, None, -1) if s < 0 else slice(None) for s in base.strides)]
    elif position.shape != base.shape:
        position = np.broadcast_to(position, np.broadcast_shapes(position.shape, base.shape))
    # (As far as it is read.)
    count = int(position.max()) + 1 if position.size else 0
    memory = np.lib.stride_tricks.as_strided(base[(0,) * base.ndim + (...,)], (count,), (itemsize,))
    return memory.take(position)


def placed(memory: np.ndarray, address: int) -> np.ndarray:
    """How many bytes behind an address each element lies."""
    found: Any = np.full((1,) * memory.ndim, memory.__array_interface__["data"][0] - int(address))
    for d, (n, s) in enumerate(zip(memory.shape, memory.strides, strict=True)):
        if s and n > 1:
            found = found + (np.arange(n, dtype=np.int64) * s).reshape((-1,) + (1,) * (memory.ndim - d - 1))
    # (New memory, which later steps may write to.)
    return found if found.shape == memory.shape else np.array(np.broadcast_to(found, memory.shape))  # type: ignore[no-any-return]


def _each(scalar: Callable[..., Any], out: np.dtype) -> Callable[..., Any]:
    """A scalar function of `math` on every element."""

    def guarded(*args: float) -> float:
        try:
            return scalar(*args)  # type: ignore[no-any-return]
        except OverflowError:
            return math.inf
        except ValueError:  # a pole: C returns what math refuses to
            if scalar is math.lgamma or (scalar is math.gamma and args[0] == 0):
                return math.copysign(math.inf, args[0]) if scalar is math.gamma else math.inf
            return math.nan

    function: Any = np.frompyfunc(guarded, 1, 1)
    return lambda *args: np.asarray(function(*[np.asarray(a, np.float64) for a in args])).astype(out)


def _complex(out: np.dtype) -> Callable[..., Any]:
    """Real and imaginary parts as complex numbers. (a + bj would not keep infinities and signs.)"""

    def joined(real: Any, imag: Any) -> np.ndarray:
        z = np.empty(np.broadcast_shapes(np.shape(real), np.shape(imag)), out)
        z.real, z.imag = real, imag
        return z

    return joined


def _fma(out: np.dtype) -> Callable[..., Any]:
    """x*y + z rounded once, through the C library."""
    libm = ctypes.CDLL(None)
    fma = libm.fma if out.itemsize > 4 else libm.fmaf
    number = ctypes.c_double if out.itemsize > 4 else ctypes.c_float
    fma.restype = number
    fma.argtypes = [number] * 3
    function = np.frompyfunc(fma, 3, 1)
    return lambda x, y, z: np.asarray(function(x, y, z)).astype(out)


def run_blocks(program: Program, leaves: list[np.ndarray], scalars: list[Any], outs: list[np.ndarray]) -> None:
    """Run over operands of one common shape in blocks of rows."""
    shape = outs[0].shape
    total = outs[0].size
    # (NumPy makes numbers of values of no dimension, which nothing can overwrite.)
    run = interpreted_blocks(program) if shape else interpreted(program)
    if total <= BLOCK or not shape:
        run(leaves, scalars, outs)
        return
    if len(shape) == 1:
        for i in range(0, total, BLOCK):
            s = slice(i, i + BLOCK)
            run([x[s] for x in leaves], scalars, [y[s] for y in outs])
        return
    inner = total // shape[0] if shape[0] else 0
    if inner >= 2 * BLOCK:
        for i in range(shape[0]):
            run_blocks(program, [x[i] for x in leaves], scalars, [y[i] for y in outs])
        return
    rows = max(1, BLOCK // inner)
    for i in range(0, shape[0], rows):
        s = slice(i, i + rows)
        run([x[s] for x in leaves], scalars, [y[s] for y in outs])
