"""The samplers' text, as kernels for cards take it: the functions that one of them needs, and no more.

Constants stand where they are used and counted loops become `while`, so that a module holds nothing
but functions: these are lowered without a compiler's front end.
"""

from __future__ import annotations

import functools
import math
import re
from typing import Any

import numpy as np

from mirabelle.arraytypes.random.samplers import kernel_text

DEVICE = "@cuda.jit(device=True, forceinline=True)"

# What the words of samplers mean on single numbers. (`bits`, `number`, `sqrt`, `floor`: see `names`.)
_WORDS = """\
def choose(condition, x, y):
    return x if condition else y


def some(condition):
    return condition


def every(condition):
    return condition
"""
_FUNCTION = re.compile(r"^def (\w+)\(.*?(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
_CONSTANTS = re.compile(r"^([A-Z]\w*(?:, [A-Z]\w*)*) = .*$", re.MULTILINE)
_NAMES = re.compile(r"\b[A-Za-z_]\w*\b")
_DOCSTRING = re.compile(r'^    """.*?"""\n', re.MULTILINE | re.DOTALL)
_LOOP = re.compile(r"^( +)for (\w+) in range\((\d+)\):$", re.MULTILINE)
_LONG = re.compile(r"\bu8\((0x[0-9A-Fa-f]+)\)")


def needed(*names: str) -> str:
    """The text of functions of the samplers' modules, and of all that they call."""
    functions = _functions()
    wanted, waiting = set(), list(names)
    while waiting:
        name = waiting.pop()
        if name in functions and name not in wanted:
            wanted.add(name)
            waiting += _NAMES.findall(functions[name])
    return "\n\n".join([f"{DEVICE}\n{text}\n" for name, text in functions.items() if name in wanted])


@functools.cache
def _functions() -> dict[str, str]:
    """The functions by name, each after those that it calls."""
    text = kernel_text()[0]
    scope: dict[str, Any] = {c: np.dtype(c).type for c in ("u4", "u8", "i4", "i8", "f4", "f8")}
    exec("\n".join(m[0] for m in _CONSTANTS.finditer(text)), scope)
    constants = {n: scope[n] for m in _CONSTANTS.finditer(text) for n in m[1].split(", ")}
    used = re.compile(rf"\b({'|'.join(constants)})\b(?:\[(\d)\])?")

    def value(m: re.Match[str]) -> str:
        found = constants[m[1]]
        return literal(found[int(m[2])] if m[2] else found)

    found = {}
    for m in _FUNCTION.finditer(f"{_WORDS}\n\n{text}"):
        body = _DOCSTRING.sub("", m[0]).replace(": Any", "").replace(" -> Any", "")
        body = _LONG.sub(lambda m: literal(np.uint64(int(m[1], 16))), used.sub(value, body))
        found[m[1]] = _LOOP.sub(_counted, re.sub(r"\s*# .*$", "", body, flags=re.MULTILINE)).rstrip()
    return found


def literal(x: Any) -> str:
    """A constant of one of NumPy's dtypes, in source."""
    dtype = np.dtype(getattr(x, "dtype", "f8"))
    if dtype == np.float64:
        return "1e999" if math.isinf(x) else repr(float(x))
    if dtype == np.uint64 and int(x) >= 1 << 63:  # no literal is longer than 63 bits
        return f"((u8({int(x) >> 32}) << u8(32)) | u8({int(x) & 0xFFFFFFFF}))"
    return f"{dtype.kind}{dtype.itemsize}({x.item()!r})"


def _counted(m: re.Match[str]) -> str:
    """A loop so many times. A number that counts is a double, as what it is used with."""
    indent, name, times = m.groups()
    if name == "_":
        return f"{indent}turn = i4(0)\n{indent}while turn < i4({times}):\n{indent}    turn = i4(turn + i4(1))"
    return (
        f"{indent}{name} = -1.0\n{indent}while {name} < {int(times) - 1}.0:\n{indent}    {name} = {name} + 1.0"
    )
