"""Scalar Python functions of users inside broadcasts: their result types, their arguments.

Numba infers what a function returns. What a function closes over becomes operands of the
broadcast: scalars are passed by value, arrays join as further leaves, so that another value
needs no new kernel.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.dispatch import promotion
from mirabelle.dispatch.errors import UserFunctionError
from mirabelle.dispatch.ops import Op


def infer(op: Op, dtypes: tuple[np.dtype, ...]) -> tuple[np.dtype, ...]:
    """The dtypes of what a scalar function returns for operands of these dtypes."""
    import numba
    from numba.core import types as nt
    from numba.core.errors import NumbaError
    from numba.np.numpy_support import as_dtype, from_dtype

    f = op.scalar
    assert f is not None
    name = getattr(f, "__name__", op.name)
    shown = ", ".join(d.name for d in dtypes)
    dispatcher = jitted(f)
    try:
        argtypes = tuple(from_dtype(d) for d in dtypes)
        dispatcher.compile(argtypes)
        result = dispatcher.overloads[argtypes].signature.return_type
    except (NumbaError, NotImplementedError, TypeError, AssertionError, KeyError) as e:
        lines = [line.strip() for line in str(e).splitlines() if line.strip()]
        reason = next((x for x in lines if not x.startswith(("Failed", "[1"))), lines[0] if lines else "")
        raise UserFunctionError(
            f"{name}() cannot be compiled for scalars ({shown}): {reason} A function that is "
            "broadcast sees one element of each operand, may use arithmetic, math.* and np.* "
            "functions of scalars, and returns a number. If it is meant for whole arrays, call it "
            f"directly: `{name}(x)`."
        ) from None
    results = list(result.types) if isinstance(result, nt.BaseTuple) else [result]
    out = []
    for r in results:
        if isinstance(r, nt.Literal):
            r = r.literal_type
        if isinstance(r, (nt.Number, nt.Boolean)):
            out.append(np.dtype(as_dtype(r)))
            continue
        what = "nothing (None)" if isinstance(r, nt.NoneType) else f"a {r}"
        raise UserFunctionError(
            f"{name}() returns {what} for scalars ({shown}). A function that is broadcast returns a "
            "number, or a tuple of numbers, for each element."
        )
    if len(out) > 8:
        raise UserFunctionError(f"{name}() returns {len(out)} values; at most 8 are possible.")
    assert numba
    return tuple(out)


promotion.infer = infer


@functools.lru_cache(maxsize=1024)
def jitted(f: Callable[..., Any]) -> Any:
    """A function as Numba's dispatcher, one for each function."""
    import numba

    if hasattr(f, "py_func"):
        return f
    return numba.njit(nogil=True, error_model="numpy")(f)


def compiled_functions(ops: list[Op]) -> dict[str, Any]:
    """What generated source calls the functions of these operations, and the functions."""
    from mirabelle.backends.codegen.source import function_name

    return {function_name(op): jitted(op.scalar) for op in ops}  # type: ignore[arg-type]


# Operations of user functions, one for each code, so that a lambda made anew in a loop finds
# the kernel of the one before.
_ops: dict[Any, Op] = {}


def operation(f: Callable[..., Any], nin: int) -> tuple[Op, tuple[Any, ...]]:
    """The operation of a scalar function, and the captured values that join its operands."""
    if isinstance(f, functools.partial):
        if f.keywords:
            raise UserFunctionError(
                "A partial with keyword arguments cannot be broadcast. Write a lambda: "
                "`lambda x: f(x, 2.0)`."
            )
        op, captured = operation(f.func, nin + len(f.args))
        if captured:
            raise UserFunctionError(
                "A partial of a closure cannot be broadcast. Write a lambda: `lambda x: f(x, 2.0)`."
            )
        flipped = _flip(f.func, len(f.args), nin)
        return flipped, f.args
    function = getattr(f, "py_func", f)
    if isinstance(function, np.ufunc):
        raise UserFunctionError(
            f"np.{function.__name__} is a function of whole arrays; call mb.{function.__name__}(x), or "
            "np.%s(x), which does the same." % function.__name__
        )
    if not isinstance(function, types.FunctionType):
        raise UserFunctionError(
            f"{f!r} is a {type(f).__name__}, not a Python function, and cannot be compiled into a "
            "kernel. Wrap it in a lambda of scalars."
        )
    if not function.__closure__:
        key = (function.__code__, function.__defaults__, id(function.__globals__), nin)
        return _operation(key, f, nin), ()
    cells = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__, strict=True):
        try:
            cells[name] = cell.cell_contents
        except ValueError:
            raise UserFunctionError(
                f"{function.__name__}() closes over {name}, which has no value yet."
            ) from None
    lifted = {n: v for n, v in cells.items() if _liftable(v)}
    constants = {n: v for n, v in cells.items() if n not in lifted}
    rewritten = lift(function, list(lifted), constants)
    if rewritten is None:
        key = (function.__code__, tuple(map(_token, cells.values())), nin)
        return _operation(key, f, nin), ()
    key = (function.__code__, tuple(map(_token, constants.values())), tuple(lifted), nin)
    op = _ops.get(key) or _operation(key, rewritten, nin + len(lifted))
    return op, tuple(lifted.values())


def _flip(f: Callable[..., Any], bound: int, nin: int) -> Op:
    """The operation whose last operands are the function's first."""
    key = ("partial", getattr(f, "__code__", id(f)), bound, nin)
    op = _ops.get(key)
    if op is not None:
        return op
    inner = jitted(f)
    tail = ", ".join(f"b{i}" for i in range(bound))
    head = ", ".join(f"a{i}" for i in range(nin))
    scope: dict[str, Any] = {"inner": inner}
    exec(f"def flipped({head}, {tail}):\n    return inner({tail}, {head})\n", scope)
    scope["flipped"].__name__ = getattr(f, "__name__", "partial")
    return _operation(key, scope["flipped"], nin + bound)


def _token(value: Any) -> Any:
    return value if isinstance(value, (int, float, complex, str, bytes, type(None))) else id(value)


def _liftable(value: Any) -> bool:
    from mirabelle.arraytypes.abstract import AbstractArray

    return isinstance(value, (int, float, complex, np.generic, np.ndarray, AbstractArray))


def _operation(key: Any, f: Callable[..., Any], nin: int) -> Op:
    op = _ops.get(key)
    if op is None:
        name = getattr(f, "__name__", "function")
        name = "function" if name == "<lambda>" else name
        # Whether it is pure nobody can tell: it is never hoisted, and evaluated once an element.
        op = _ops[key] = Op(f"{name}", nin, scalar=f, cost=10, pure=False)
        if len(_ops) > 4096:
            for old in list(_ops)[:1024]:
                del _ops[old]
    return op


def lift(f: types.FunctionType, names: list[str], constants: dict[str, Any]) -> Any:
    """`f` with the captured `names` as further parameters; None where its code does not allow it.

    The code stays as it is, but for the numbers of its variables: what was read from a cell is
    read from a parameter.
    """
    import dis

    code = f.__code__
    if code.co_flags & 0x0C or code.co_kwonlyargcount or code.co_cellvars:  # *args, **kwargs
        return None
    arguments = code.co_argcount
    old_locals = list(code.co_varnames)
    new_locals = old_locals[:arguments] + names + old_locals[arguments:]
    free = list(code.co_freevars)
    rest = [n for n in free if n not in names]
    raw = bytearray(code.co_code)
    for instruction in dis.get_instructions(code):
        name, at = instruction.opname, instruction.offset
        if name in ("COPY_FREE_VARS",):
            if not rest:
                raw[at], raw[at + 1] = dis.opmap["NOP"], 0
            else:
                raw[at + 1] = len(rest)
        elif name == "LOAD_DEREF":
            variable = instruction.argval
            if variable in names:
                raw[at], raw[at + 1] = dis.opmap["LOAD_FAST"], new_locals.index(variable)
            else:
                raw[at + 1] = len(new_locals) + rest.index(variable)
        elif name in ("LOAD_FAST", "STORE_FAST", "DELETE_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW"):
            raw[at + 1] = new_locals.index(instruction.argval)
        elif "DEREF" in name or "CLOSURE" in name or "_FAST_" in name or name == "EXTENDED_ARG":
            return None
    made = code.replace(
        co_code=bytes(raw),
        co_argcount=arguments + len(names),
        co_nlocals=len(new_locals),
        co_varnames=tuple(new_locals),
        co_freevars=tuple(rest),
        co_flags=code.co_flags & ~0x10 if not rest else code.co_flags,
    )
    cells = tuple(types.CellType(constants[n]) for n in rest) if rest else None
    return types.FunctionType(made, f.__globals__, f.__name__, None, cells)
