"""What a program computes for one element: a device function that the grid frames call.

    def element(a0, p1, s0): ...  ->  the results, cast to the dtypes they are stored in

`a0` is an element of leaf 0, `s0` a scalar, `p1` the address of a leaf that gathers read (or of which nothing
else is asked). Functions are called `operation_code`, as in the thread frame; each target says what they mean.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from mirabelle.backends.codegen.program import Program
from mirabelle.backends.codegen.source import (
    Body,
    Writer,
    gathered_leaves,
    inline,
    tables,
    zero_cast,
)
from mirabelle.dispatch.ops import Op
from mirabelle.dispatch.promotion import code
from mirabelle.dispatch.schedule import SCALAR


@dataclass
class KernelText:
    """Generated source of a kernel for a grid of threads.

    `codes` are its parameters' types: addresses, sizes and strides are integers of 64 bits.
    `functions` are the scalar functions of users it calls. `threads` is how many a block has at most, if
    that is more than other kernels' 256 or is known.
    """

    text: str
    name: str
    codes: tuple[str, ...]
    functions: list[Op] = field(default_factory=list)
    threads: int = 0

    # Is it a user's, whose variables have the types that Numba infers?
    inferred: ClassVar[bool] = False


def element_source(w: Writer, program: Program, results: tuple[int, ...] | None = None) -> list[Op]:
    """Write the function `element`; returns the users' functions that it calls.

    `results` are the numbers of the outputs it returns (all of them, unless said).
    """
    body = Body(program)
    gathered, known = gathered_leaves(program), tables(program)
    value: dict[int, str] = {}
    parameters = []
    for j, dtype in enumerate(program.leaf_dtypes):
        if -1 - j in known:
            parameters.append(f"p{j}")
            value[-1 - j] = f"load_{code(dtype)}(p{j}, {{}})" if -1 - j in gathered else f"p{j}"
        else:
            parameters.append(f"a{j}")
            value[-1 - j] = f"a{j}"
    parameters += [f"s{slot}" for slot in program.scalar_slots.values()]
    w(f"def element({', '.join(parameters)}):")
    w.depth += 1
    for k, (sig, refs) in enumerate(program.steps):
        if inline(sig) is None and not sig.op.name.startswith("pick"):
            names = [
                body.scalar_name(r, t) if r >= SCALAR else zero_cast(value[r], program.dtype_of(r), t)
                for r, t in zip(refs, sig.ins, strict=True)
            ]
            w(f"v{k} = {sig.op.name}_{code(sig.ins[0])}({', '.join(names)})")
        else:
            w(f"v{k} = {body.expression(k, value)}")
        value[k] = f"v{k}"
    chosen = range(len(program.outs)) if results is None else results
    made = [
        zero_cast(value[program.outs[j]], program.dtype_of(program.outs[j]), program.out_dtypes[j])
        for j in chosen
    ]
    w(f"return {made[0]}" if len(made) == 1 else f"return ({', '.join(made)})")
    w.depth -= 1
    w("")
    return body.functions


# Scalars come in the widest of their kind, and are converted where the kernel begins.

_WIDE = {"b": "i8", "i": "i8", "u": "u8"}


def scalar_codes(program: Program) -> list[str]:
    """The parameters of a program's scalars, in the order of its slots."""
    codes = []
    for _, dtype in program.scalar_slots:
        if dtype.kind == "c":
            codes += [f"f{dtype.itemsize // 2}"] * 2
        elif dtype.kind == "f":
            codes.append("f4" if dtype.itemsize == 2 else code(dtype))
        else:
            codes.append(_WIDE[dtype.kind])
    return codes


def scalar_parameters(program: Program) -> list[str]:
    """What these parameters are called."""
    names = []
    for (_, dtype), slot in program.scalar_slots.items():
        names += [f"s{slot}r", f"s{slot}i"] if dtype.kind == "c" else [f"s{slot}w"]
    return names


def write_scalars(w: Writer, program: Program) -> None:
    """The lines that give scalars the dtypes they are used in."""
    for (_, dtype), slot in program.scalar_slots.items():
        c = code(dtype)
        if dtype.kind == "c":
            w(f"s{slot} = {c}(complex(s{slot}r, s{slot}i))")
        elif dtype.kind == "b":
            w(f"s{slot} = s{slot}w != i8(0)")
        else:
            w(f"s{slot} = {c}(s{slot}w)")


def scalar_values(program: Program, scalars: list[object]) -> list[object]:
    """The values of a launch's scalars, as `scalar_codes` describes them."""
    values: list[object] = []
    for j, dtype in program.scalar_slots:
        x = scalars[j]
        if dtype.char == "d" and type(x) is float:
            values.append(x)
            continue
        with np.errstate(all="ignore"):
            x = np.asarray(x).astype(dtype)[()]
        if dtype.kind == "c":
            values += [float(x.real), float(x.imag)]
        elif dtype.kind == "f":
            values.append(float(x))
        else:
            values.append(int(x))
    return values
