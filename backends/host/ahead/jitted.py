"""Functions of `mb.jit` as parts of a library: a function around them that takes one block of addresses, as
kernels do."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.programs.graph import Slot
from mirabelle.arraytypes.programs.steps import Ref
from mirabelle.backends.codegen.source import Source, Writer
from mirabelle.backends.host import compiler
from mirabelle.backends.host.ahead.objects import portable
from mirabelle.dispatch.numbatables import make_tables
from mirabelle.dispatch.promotion import code


class Wrapped:
    """The source of the function around one, and what the names in it mean."""

    def __init__(self, source: Source, names: dict[str, Any]) -> None:
        self.source = source
        self.names = names


def wrapper(how: Any, operands: list[Any], arrays: dict[int, Ref], call: Any) -> Wrapped:
    """The function around a call's; `arrays` are the operands that have an address, in order."""
    names: dict[str, Any] = {"function": how.function.engine, "array_at": _array_at()}
    w = Writer()
    w("def called(args, lo, hi, first, last, rlo, rhi, part):")
    w.depth += 1
    at = {k: i for i, k in enumerate(arrays)}
    for k, x in enumerate(operands):
        if isinstance(x, Slot):
            ref = arrays[how.same[k]]
            place = f"load_i8(args, {at[how.same[k]]})"
            c = code(ref.dtype)
            if ref.shape or how.same[k] in how.written:
                names[f"t{k}"] = np.dtype(ref.dtype)
                w(f"x{k} = array_at({place}, {tuple(ref.shape)!r}, t{k})")
            else:
                w(f"x{k} = load_{c}({place}, 0)")
        else:
            names[f"x{k}"] = x
    results = call.outputs[len(how.written) :]
    w(f"{'found = ' if results else ''}function({', '.join(_nest(x) for x in how.nest)})")
    for i, (_, dtype) in enumerate(results):
        part = "found" if len(results) == 1 else f"found[{i}]"
        w(f"store_{code(dtype)}(load_i8(args, {len(arrays) + i}), 0, {part})")
    return Wrapped(Source(w.text(), "called", []), names)


def function_object(wrapped: Wrapped, function: Any, name: str, cpu: str) -> bytes:
    """The object code of a call, which is called `name` in it."""
    result = compiler.compiled_by_numba(wrapped.source.text, wrapped.source.name, wrapped.names)
    return portable(result.library.get_llvm_str(), result.fndesc.llvm_func_name, name, cpu)


def _nest(nest: Any) -> str:
    if isinstance(nest, int):
        return f"x{nest}"
    return "(" + "".join([f"{_nest(x)}, " for x in nest]) + ")"


def _array_at() -> Any:
    """An array of C's order at an address."""
    import numba
    from numba import njit, types
    from numba.extending import intrinsic

    make_tables()
    carray: Any = numba.carray  # type: ignore[attr-defined]

    @intrinsic
    def pointer(typingctx: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(types.voidptr))

        return types.voidptr(types.int64), generate

    @njit(inline="always")
    def array_at(address: Any, shape: Any, dtype: Any) -> Any:
        return carray(pointer(address), shape, dtype)  # type: ignore[call-arg]

    return array_at
