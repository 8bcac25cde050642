"""Scalar Python functions of users inside broadcasts: their result types, their arguments.

Numba infers what a function returns. What a function closes over becomes operands of the
broadcast: scalars are passed by value, arrays join as further leaves, so that another value
needs no new kernel.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mirabelle.arraytypes import pool
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.usercode.capturednumbers import lift
from mirabelle.arraytypes.usercode.codememory import watch
from mirabelle.dispatch.errors import UserFunctionError
from mirabelle.dispatch.numbatables import make_tables
from mirabelle.dispatch.ops import Op, foreign_name, forgetting


def infer(op: Op, dtypes: tuple[np.dtype, ...]) -> tuple[np.dtype, ...]:
    """The dtypes of what a scalar function returns for operands of these dtypes."""
    import numba
    from numba.core import types as numba_types

    nt: Any = numba_types
    from numba.np.numpy_support import as_dtype, from_dtype

    f = op.scalar
    assert f is not None
    name = getattr(f, "__name__", op.name)
    shown = ", ".join(d.name for d in dtypes)
    try:
        result = returned_type(jitted(f), tuple(from_dtype(d) for d in dtypes))
    except Exception as e:  # Numba's own, and what its passes meet in code they do not know
        lines = [line.strip() for line in str(e).splitlines() if line.strip()]
        reason = next((x for x in lines if not x.startswith(("Failed", "[1"))), lines[0] if lines else "")
        raise UserFunctionError(
            f"{name}() cannot be compiled for scalars ({shown}): {reason.rstrip('.:')}. A function that is "
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


class UserOp(Op):
    """A scalar function of a user as an operation."""

    __slots__ = ()

    def returned(self, dtypes: tuple[np.dtype, ...]) -> tuple[np.dtype, ...]:
        return infer(self, dtypes)


def returned_type(dispatcher: Any, argtypes: tuple[Any, ...]) -> Any:
    """What Numba infers that a function returns.

    No machine code is made of it, which Numba would never give back (see codememory.py): that of a kernel which
    calls it is made when there is one.
    """
    from numba.core import bytecode, compiler
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.untyped_passes import ExtractByteCode

    if argtypes in dispatcher.overloads:
        return dispatcher.overloads[argtypes].signature.return_type
    target = dispatcher.targetdescr
    typing, context = target.typing_context, target.target_context
    flags = compiler.Flags()
    target.options.parse_as_flags(flags, dispatcher.targetoptions)
    with global_compiler_lock:  # (its tables are for one thread at a time)
        typing.refresh()
        context.refresh()
        inference = _inference()(typing, context, None, argtypes, None, flags, {})
        inference.state.func_id = bytecode.FunctionIdentity.from_function(dispatcher.py_func)
        ExtractByteCode().run_pass(inference.state)
        (passes,) = inference.define_pipelines()
        passes.run(inference.state)
    found = inference.state.return_type
    return getattr(found, "literal_type", found)


@functools.cache
def _inference() -> Any:
    """Numba's pipeline up to types."""
    from numba.core.compiler import CompilerBase, DefaultPassBuilder
    from numba.core.typed_passes import NopythonTypeInference

    class Inference(CompilerBase):  # type: ignore[misc]
        def define_pipelines(self) -> list[Any]:
            passes = DefaultPassBuilder.define_untyped_pipeline(self.state)
            passes.add_pass(NopythonTypeInference, "types")
            passes.finalize()
            return [passes]

    return Inference


# For so many functions, those used last, is kept what was made of them: operations, signatures, dispatchers of
# Numba. A function that comes back after that is compiled again.
KEPT = 128


class Recent(OrderedDict[Any, Any]):
    """What was made lately, that used last at the end."""

    def used(self, key: Any) -> Any:
        """What is kept by this key, which is used now; None where there is nothing."""
        found = self.get(key)
        if found is not None:
            with contextlib.suppress(KeyError):  # (another thread may just have dropped it)
                self.move_to_end(key)
        return found

    def dropped(self, keep: int) -> list[Any]:
        """All but so many, which are dropped."""
        out = []
        while len(self) > keep:
            with contextlib.suppress(KeyError):
                out.append(self.popitem(last=False)[1])
        return out


_dispatchers = Recent()


def jitted(f: Callable[..., Any]) -> Any:
    """A function as Numba's dispatcher, one for each function."""
    found = _dispatchers.used(f)
    if found is None:
        found = _dispatchers.setdefault(f, _dispatcher(f))
        _dispatchers.dropped(KEPT)
    return found


def _dispatcher(f: Callable[..., Any]) -> Any:
    import numba

    watch()
    make_tables()
    if hasattr(f, "_numba_type_"):  # compiled already, by Numba or `mb.jit`
        return f._numba_type_.dispatcher
    return numba.njit(nogil=True, error_model="numpy")(_compilable(f))


def _others(f: Any) -> dict[str, Any]:
    """The plain functions that a function calls, by its names for them."""
    return {n: v for n, v in captures(f).items() if isinstance(v, types.FunctionType) and v is not f}


def calls_no_other(f: types.FunctionType) -> bool:
    """Does a function call no plain function of its user's?"""
    return not _others(f)


def _compilable(f: Any) -> Any:
    """`f`, with the plain functions it calls compiled too (Numba takes only compiled ones)."""
    called = _others(f)
    if not called:
        return f
    compiled = {n: jitted(v) for n, v in called.items()}
    cells = [types.CellType(compiled[n]) if n in compiled else cell for n, cell in _cells(f)]
    made = types.FunctionType(
        f.__code__, {**f.__globals__, **compiled}, f.__name__, f.__defaults__, tuple(cells) or None
    )
    return made


def _without_defaults(f: Any, nin: int) -> Any:
    """`f` of its first `nin` parameters, the others at their defaults."""
    if not f.__defaults__ or f.__code__.co_argcount <= nin:
        return f
    names = ", ".join(f"a{i}" for i in range(nin))
    scope: dict[str, Any] = {"inner": f}
    exec(f"def of_some({names}):\n    return inner({names})\n", scope)
    scope["of_some"].__name__ = f.__name__
    return scope["of_some"]


# Operations of user functions, one for each code, so that a lambda made anew in a loop finds
# the kernel of the one before.
_ops = Recent()


def forget(keep: int = 0) -> None:
    """Drop all but so many operations, those used last, with all that was made of them.

    Trees that wait hold what they need.
    """
    for op in _ops.dropped(keep):
        op.forgotten = True
    for told in forgetting:
        told()
    _dispatchers.dropped(keep)


pool.letting_go.append(forget)


def operation(f: Callable[..., Any], nin: int) -> tuple[Op, tuple[Any, ...]]:
    """The operation of a scalar function, and the captured values that join its operands."""
    if isinstance(f, functools.partial):
        if f.keywords:
            raise UserFunctionError(
                "A partial with keyword arguments cannot be broadcast. Write a lambda: `lambda x: f(x, 2.0)`."
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
    around = captures(function)
    lifted = {n: v for n, v in around.items() if liftable(v)}
    constants = {n: v for n, v in around.items() if n not in lifted}
    base = (function.__code__, function.__defaults__, id(function.__globals__), nin)
    fixed = tuple(map(_token, constants.values()))
    rewritten = lift(function, list(lifted)) if lifted else None
    if rewritten is None:
        key: Any = (*base, fixed, tuple(map(_token, lifted.values())))
        if lifted:
            f = _frozen(function, lifted)
        return _operation(key, f if hasattr(f, "py_func") else _without_defaults(f, nin), nin), ()
    key = (*base, fixed, tuple(lifted))
    op = _operation(key, rewritten, nin + len(lifted))
    return op, tuple(lifted.values())


def _frozen(f: types.FunctionType, around: dict[str, Any]) -> types.FunctionType:
    """The function with what it reads from around it as it is now: it is compiled later."""
    for name, value in around.items():
        if not isinstance(value, (int, float, complex, np.generic)):
            raise UserFunctionError(
                f"{f.__name__}() reads {name} from around it, a {type(value).__name__}, and its code does not "
                f"allow that to be an operand. Make it a parameter: `mb.broadcast({f.__name__}, x, {name})`."
            )
    cells = [types.CellType(around[n]) if n in around else c for n, c in _cells(f)]
    scope = {**f.__globals__, **around}
    return types.FunctionType(f.__code__, scope, f.__name__, f.__defaults__, tuple(cells) or None)


def _cells(f: types.FunctionType) -> Iterator[tuple[str, types.CellType]]:
    return zip(f.__code__.co_freevars, f.__closure__ or (), strict=True)


def captures(f: types.FunctionType) -> dict[str, Any]:
    """What a function reads from around it: cells and globals, by name."""
    found: dict[str, Any] = {}
    for name, cell in _cells(f):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            raise UserFunctionError(f"{f.__name__}() closes over {name}, which has no value yet.") from None
    for name in _globals_of(f.__code__):
        if name in f.__globals__:
            found.setdefault(name, f.__globals__[name])
    return found


@functools.lru_cache(maxsize=4096)
def _globals_of(code: types.CodeType) -> tuple[str, ...]:
    """The names that a function's code reads from its module."""
    import dis

    read = [i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"]
    return tuple(dict.fromkeys(read))


def refuse_captured_arrays(f: types.FunctionType) -> None:
    """What is around a compiled function is constant to it, and an array of ours is none."""
    for name, value in captures(f).items():
        if isinstance(value, AbstractArray):
            raise UserFunctionError(
                f"{f.__name__}() reads the array {name} from around it, and what is around a compiled "
                f"function is taken for constant. Make it a parameter: `def {f.__name__}(..., {name}):`."
            )


def _flip(f: Callable[..., Any], bound: int, nin: int) -> Op:
    """The operation whose last operands are the function's first."""
    key = ("partial", getattr(f, "__code__", id(f)), bound, nin)
    op: Op | None = _ops.used(key)
    if op is not None:
        return op
    inner = f if isinstance(f, types.FunctionType) else jitted(f)
    tail = ", ".join(f"b{i}" for i in range(bound))
    head = ", ".join(f"a{i}" for i in range(nin))
    scope: dict[str, Any] = {"inner": inner}
    exec(f"def flipped({head}, {tail}):\n    return inner({tail}, {head})\n", scope)
    scope["flipped"].__name__ = getattr(f, "__name__", "partial")
    return _operation(key, scope["flipped"], nin + bound)


def _token(value: Any) -> Any:
    return value if isinstance(value, (int, float, complex, str, bytes, type(None))) else id(value)


def liftable(value: Any) -> bool:
    return isinstance(value, (int, float, complex, np.generic, np.ndarray, AbstractArray))


def _operation(key: Any, f: Callable[..., Any], nin: int) -> Op:
    op: Op | None = _ops.used(key)
    if op is None:
        name = getattr(f, "__name__", "function")
        name = "function" if name == "<lambda>" else name
        # Whether it is pure nobody can tell: it is never hoisted, and evaluated once an element.
        op = _ops[key] = UserOp(foreign_name(name), nin, scalar=f, cost=10, pure=False)
        if len(_ops) > KEPT:  # (some at once: whoever keeps things is asked to look through them)
            forget(KEPT - KEPT // 4)
    return op
