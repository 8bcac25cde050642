"""`python -m docs.stubs`: write what checkers of types and editors read for `mb`, `mb.linalg` and `mb.fft`.

Functions whose methods are found at run time tell a checker nothing. The files written here
(`mirabelle/__init__.pyi`, `linalg.pyi`, `fft.pyi`) have the signatures that calls may have, with what
`docs/knowntypes.py` knows of parameters and results; all else is taken from where it is defined. A test keeps
them current, and holds results and calls of the suite against them.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mirabelle as mb
from docs.knowntypes import OF_FUNCTION, OVERLOADS, PARAMETERS, RESULTS
from mirabelle import AbstractArray

ROOT = Path(__file__).parent.parent
SPACES = {"": "__init__", "linalg": "linalg", "fft": "fft"}

HEAD = """# Written by `python -m docs.stubs` from the functions and docs/knowntypes.py: do not edit.
import builtins
import os
import types as modules
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import (
    Any, Concatenate, Generic as Parametrised, Literal, ParamSpec, Self, TypeVar, TypeVarTuple, Unpack, overload
)

import numpy as np
import numpy.typing as npt

"""

# What stands for functions, in the stub alone. (A function with methods is an object with attributes.)
KINDS = """
_P = ParamSpec("_P")
_Q = ParamSpec("_Q")
_R = TypeVar("_R")
_S = TypeVar("_S")
_Ts = TypeVarTuple("_Ts")
_Made = TypeVar("_Made", bound=AbstractArray)

class _Methods:
    __name__: str
    core: GenericFunction
    method: Any
    generated: Any
    previous: Any

class _Function(_Methods, Parametrised[_P, _R]):
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...

def _function(f: Callable[_P, _R], /) -> _Function[_P, _R]: ...
"""

OPTIONS = "where: ArrayLike = ..., dtype: DTypeLike = ..., casting: str = ..."
ON_AXIS = "axis: int = ..., dtype: DTypeLike = ..., out: Out = ..."
UFUNCS = f"""
class _Unary(_Methods):
    operator: Any
    @overload
    def __call__(self, x: ArrayLike, /, *, out: _Made, {OPTIONS}) -> _Made: ...
    @overload
    def __call__(self, x: ArrayLike, out: Out = ..., /, *, {OPTIONS}) -> AbstractArray: ...

class _Binary(_Methods):
    operator: Any
    @overload
    def __call__(self, x1: ArrayLike, x2: ArrayLike, /, *, out: _Made, {OPTIONS}) -> _Made: ...
    @overload
    def __call__(self, x1: ArrayLike, x2: ArrayLike, out: Out = ..., /, *, {OPTIONS}) -> AbstractArray: ...

class _Ufunc(_Binary):
    def reduce(
        self, array: ArrayLike, axis: Axis = ..., dtype: DTypeLike = ..., out: Out = ..., keepdims: bool = ...,
        initial: complex | None = ..., where: ArrayLike = ...,
    ) -> AbstractArray: ...
    def accumulate(self, array: ArrayLike, {ON_AXIS}) -> AbstractArray: ...
    def reduceat(self, array: ArrayLike, indices: ArrayLike, {ON_AXIS}) -> AbstractArray: ...
    def outer(self, A: ArrayLike, B: ArrayLike, /, **options: Any) -> AbstractArray: ...
    def at(self, a: ArrayLike, indices: Any, b: ArrayLike, /) -> None: ...

class _CompiledFunction(Compiled, Parametrised[_P, _R]):
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    @overload
    def __get__(self, instance: None, owner: Any = ...) -> Self: ...
    @overload
    def __get__(
        self: _CompiledFunction[Concatenate[_S, _Q], _R], instance: _S, owner: Any = ...
    ) -> Callable[_Q, _R]: ...

class _JittedFunction(Jitted, Parametrised[_P, _R]):
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
"""

# Where the names in annotations come from.
HOMES = {
    "mirabelle.arraytypes.abstract": "AbstractArray",
    "mirabelle.arraytypes.annotations": "ArrayLike Axis Device DTypeLike File Index Multiplies Out ShapeLike",
    "mirabelle.arraytypes.functions.decompositions": "EigResult EighResult QRResult SVDResult",
    "mirabelle.arraytypes.functions.factorizations": "Factorization",
    "mirabelle.arraytypes.functions.krylov": "SolverInfo",
    "mirabelle.arraytypes.functions.sets": "UniqueAll UniqueCounts UniqueInverse",
    "mirabelle.arraytypes.functions.solving": "LstsqResult SlogdetResult",
    "mirabelle.arraytypes.dense": "DenseArray",
    "mirabelle.arraytypes.devices": "Memory",
    "mirabelle.arraytypes.diagnosis": "Doctor",
    "mirabelle.arraytypes.functions.dtypes": "FloatInfo IntegerInfo",
    "mirabelle.arraytypes.graphs": "Graph",
    "mirabelle.arraytypes.jit": "Jitted",
    "mirabelle.arraytypes.kernels": "Kernel",
    "mirabelle.arraytypes.programs.compiled": "Compiled",
    "mirabelle.arraytypes.programs.schedules": "Schedule",
    "mirabelle.arraytypes.programs.persistence": "LoadedProgram",
    "mirabelle.arraytypes.streams": "Stream",
    "mirabelle.backends.explain": "Explanation",
    "mirabelle.dispatch.generic": "GenericFunction",
    "mirabelle.dispatch.methods": "Method MethodTable",
    "mirabelle.dispatch.styles": "Place",
    "mirabelle.dispatch.verbs": "Generic",
}


def main() -> None:
    for space, file in SPACES.items():
        (ROOT / "mirabelle" / f"{file}.pyi").write_text(stub(space))
        print(f"mirabelle/{file}.pyi")


def stub(space: str) -> str:
    """The text of the stub of `mb`, `mb.linalg` or `mb.fft`."""
    module = importlib.import_module(f"mirabelle.{space}" if space else "mirabelle")
    imports, functions = [], []
    for name in module.__all__:
        thing = getattr(module, name)
        if is_open(thing):
            functions.append(declared(f"{space}.{name}" if space else name, thing))
        else:
            imports.append(reexported(module, name, thing))
    text = "\n\n".join(functions)
    kinds = KINDS + ("" if space else UFUNCS)
    used = set(re.findall(r"\w+", text + kinds))
    homes = []
    for home, names in HOMES.items():
        wanted = [n for n in names.split() if n in used and n not in module.__all__]
        homes += [f"from {home} import {', '.join(wanted)}"] if wanted else []
    said = re.sub(r"\bbool\b", "builtins.bool", kinds + "\n" + text + "\n")  # (`bool` is one of ours)
    return HEAD + "\n".join([*homes, *sorted(imports)]) + "\n" + said


def is_open(thing: Any) -> bool:
    """Is it a function whose signature, where it is defined, leaves something unsaid?"""
    if isinstance(thing, type) or not callable(thing) or not _ours(thing):
        return False
    if hasattr(thing, "core"):
        return True
    shown = inspect.signature(thing)
    said = [*[p.annotation for p in shown.parameters.values()], shown.return_annotation]
    if any(word in str(shown.return_annotation) for word in ("Iterator", "ContextManager")):
        return False
    return any("Any" in str(a) or a in (shown.empty, AbstractArray) for a in said)


def _ours(thing: Any) -> bool:
    return str(getattr(thing, "__module__", None)).startswith("mirabelle")


def reexported(module: types.ModuleType, name: str, thing: Any) -> str:
    """The line that takes a name from where the module itself has it from."""
    if isinstance(thing, types.ModuleType):
        return f"from {thing.__name__.rpartition('.')[0]} import {name} as {name}"
    source = inspect.getsource(module)
    for home, names in re.findall(r"^ *from ([\w.]+) import (\([^)]*\)|[^\n(]*)", source, re.MULTILINE):
        for said in names.strip("()").split(","):
            given, _, new = said.strip().partition(" as ")
            if (new or given) == name:
                return f"from {home} import {given} as {name}"
    if name == "bool":
        return "from numpy import bool as bool"
    return f"{name}: {type(thing).__name__}" if type(thing).__name__ in ("str", "float") else f"{name}: Any"


def declared(name: str, f: Any) -> str:
    """A function in the stub."""
    short = name.rpartition(".")[2]
    elementwise = _elementwise(f)
    if elementwise and name not in RESULTS and name not in OVERLOADS:
        return f"{short}: {elementwise}"
    signatures = OVERLOADS.get(name) or [f"{shown_parameters(name, f)} -> {result(name, f)}"]
    generic = hasattr(f, "core")
    if generic and len(signatures) > 1:
        calls = "\n".join(f"    @overload\n    def __call__(self, {s[1:]}: ..." for s in signatures)
        return f"class _{short.title()}(_Methods):\n{calls}\n\n{short}: _{short.title()}"
    if len(signatures) > 1:
        return "\n".join(f"@overload\ndef {short}{s}: ..." for s in signatures)
    return f"{'@_function' + chr(10) if generic else ''}def {short}{signatures[0]}: ..."


def _elementwise(f: Any) -> str | None:
    """Which class of the stub an elementwise function is of."""
    from mirabelle.dispatch.ops import TABLE

    name = f.__name__
    if name not in TABLE or not hasattr(f, "core") or name == "round":
        return None
    return {1: "_Unary", 2: "_Ufunc" if hasattr(f, "reduce") else "_Binary"}.get(TABLE[name].nin)


def shown_parameters(name: str, f: Any) -> str:
    """The parameters as calls may give them, with what is known of their types."""
    parts, stars = [], False
    free = list(parameters(f))
    for i, p in enumerate(free):
        if p.kind is p.KEYWORD_ONLY and not stars:
            parts.append("*")
            stars = True
        stars = stars or p.kind is p.VAR_POSITIONAL
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = "" if p.default is p.empty else " = ..."
        parts.append(f"{star}{p.name}: {annotation(name, p)}{default}")
        if p.kind is p.POSITIONAL_ONLY and (i + 1 == len(free) or free[i + 1].kind is not p.POSITIONAL_ONLY):
            parts.append("/")
    return f"({', '.join(parts)})"


def annotation(name: str, p: inspect.Parameter) -> str:
    """What is known of the type of a parameter; None is taken where it is the default."""
    said = "Any" if p.annotation is p.empty else str(p.annotation)
    known = OF_FUNCTION.get(f"{name}.{p.name}") or (PARAMETERS.get(p.name, "Any") if said == "Any" else said)
    if (
        known != "Any"
        and p.default is None
        and "None" not in known
        and known not in ("Axis", "DTypeLike", "Out")
    ):
        known += " | None"
    return known


def result(name: str, f: Any) -> str:
    """The type of what a function gives."""
    said = inspect.signature(f).return_annotation
    said = "Any" if said in (inspect.Signature.empty, AbstractArray) else str(said)
    if name in RESULTS:
        return RESULTS[name]
    return "AbstractArray" if said == "Any" else said.replace("types.", "modules.")


def parameters(f: Any) -> Iterator[inspect.Parameter]:
    """The parameters of a call: by position where that is possible, too, NumPy's order first."""
    shown = inspect.signature(f).parameters
    first = _free(_numpys(f) or (f.core.prototype if hasattr(f, "core") else f))
    names = {p.name for p in first}
    operands = [p for p in shown.values() if p.kind <= p.POSITIONAL_OR_KEYWORD and p.default is p.empty]
    # (The operands have our names; what NumPy calls them is no matter where they are positional.)
    mine = [*operands, *first[len(operands) :]] if operands else first
    more = [
        p.replace(kind=p.KEYWORD_ONLY)
        for p in shown.values()
        if p.name not in names and p not in operands and p.kind is not p.VAR_POSITIONAL
    ]
    yield from sorted([*mine, *more], key=lambda p: p.kind)


def _numpys(f: Any) -> Callable[..., Any] | None:
    """The function that takes NumPy's spelling of a call, where there is one of its own."""
    from mirabelle.arraytypes.functions import conventions

    found = vars(conventions).get(f.__name__)
    ours = inspect.isfunction(found) and found is not f and f is getattr(mb, f.__name__, None)
    as_given = f.__name__ in ("where", "copyto", "array2string", "array_repr", "array_str")
    return found if ours and not hasattr(found, "core") and not as_given else None


def _free(f: Any) -> list[inspect.Parameter]:
    """The parameters as they are written, not as they are shown."""
    while hasattr(f, "__wrapped__"):
        f = f.__wrapped__
    copy = types.FunctionType(f.__code__, {}, f.__name__, f.__defaults__, f.__closure__)
    copy.__kwdefaults__, copy.__annotations__ = f.__kwdefaults__, f.__annotations__
    return list(inspect.signature(copy).parameters.values())


if __name__ == "__main__":
    main()
    sys.exit(0)
