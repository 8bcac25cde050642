"""Numbers that a user's function captures, as parameters: another value needs no new kernel.

The function's bytecode stays as it is, but for the numbers of its variables: what was read from a cell or from
the module is read from a parameter. Code with anything that is not known here is left alone, and so is all code
where `mb.settings.internals` leaves `bytecode` out: what it captures is constant then, and there is one kernel
for each value.
"""

from __future__ import annotations

import types
from typing import Any

from mirabelle.dispatch import internals


def lift(f: types.FunctionType, names: list[str]) -> Any:
    """`f` with the captured `names` as further parameters; None where its code does not allow it.

    >>> from mirabelle.arraytypes.usercode.capturednumbers import lift
    >>> def scaled(by): return lambda x: x * by
    >>> lift(scaled(3), ["by"])(2, 10)
    20
    """
    import dis

    if not internals.used("bytecode"):
        return None
    code = f.__code__
    if code.co_flags & 0x0C or code.co_kwonlyargcount or code.co_cellvars:  # *args, **kwargs
        return None
    arguments = code.co_argcount
    old_locals = list(code.co_varnames)
    new_locals = old_locals[:arguments] + names + old_locals[arguments:]
    rest = [n for n in code.co_freevars if n not in names]
    raw = bytearray(code.co_code)
    instructions = list(dis.get_instructions(code))
    ends = [i.offset for i in instructions[1:]] + [len(raw)]
    for instruction, end in zip(instructions, ends, strict=True):
        name, at, variable = instruction.opname, instruction.offset, instruction.argval
        if name == "COPY_FREE_VARS":
            raw[at : at + 2] = bytes([dis.opmap["COPY_FREE_VARS"], len(rest)]) if rest else _nop(dis)
        elif name == "LOAD_DEREF":
            if variable in names:
                raw[at : at + 2] = bytes([dis.opmap["LOAD_FAST"], new_locals.index(variable)])
            else:
                raw[at + 1] = len(new_locals) + rest.index(variable)
        elif name == "LOAD_GLOBAL":
            if variable in names:
                if instruction.arg is not None and instruction.arg & 1:
                    return None  # it is called: not a number after all
                raw[at : at + 2] = bytes([dis.opmap["LOAD_FAST"], new_locals.index(variable)])
                # The room of the instruction's inline cache is left to do nothing.
                for cache in range(at + 2, end, 2):
                    raw[cache : cache + 2] = _nop(dis)
        elif name in ("LOAD_FAST", "STORE_FAST", "DELETE_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW"):
            raw[at + 1] = new_locals.index(variable)
        elif isinstance(variable, tuple) and "_FAST_" in name:
            first, second = (new_locals.index(v) for v in variable)
            if first > 15 or second > 15:
                return None
            raw[at + 1] = first << 4 | second
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
    cells = dict(zip(code.co_freevars, f.__closure__ or (), strict=True))
    closure = tuple(cells[n] for n in rest) if rest else None
    return types.FunctionType(made, f.__globals__, f.__name__, f.__defaults__, closure)


def _nop(dis: Any) -> bytes:
    return bytes([dis.opmap["NOP"], 0])
