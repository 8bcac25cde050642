"""What compiles and runs `@mb.jit` functions on the host: Numba, with a cache of our own.

Imported when the first such function is called; so is Numba.
"""

from __future__ import annotations

import contextlib
import json
import linecache
import operator
import re
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from mirabelle.arraytypes.jit import Jitted, engine_of, error_of, is_coming
from mirabelle.arraytypes.usercode.codememory import watch
from mirabelle.arraytypes.usercode.userfunctions import refuse_captured_arrays
from mirabelle.backends.host import diskcache, kernels, overloadjobs
from mirabelle.backends.host.overloads import ContentCache, entry_key
from mirabelle.dispatch.errors import UserFunctionError
from mirabelle.dispatch.numbatables import make_tables


def engine(function: Any, options: dict[str, bool]) -> Any:
    """Numba's dispatcher of a Python function."""
    import numba

    watch()
    refuse_captured_arrays(function)
    know_our_functions()
    make: Any = numba.njit
    dispatcher = make(**{"nogil": True, "error_model": "numpy", **options})(function)
    dispatcher._cache = ContentCache(function, options)
    dispatcher.compile = _quietly(dispatcher)
    return dispatcher


@engine_of.method
def _(jitted: Jitted) -> Any:
    return engine(jitted.python, jitted.options)


@error_of.method
def _(jitted: Jitted, error: Exception, views: Any) -> Exception | None:
    return explained(error, jitted, views)


@is_coming.method
def _(jitted: Jitted, args: Any) -> bool:
    from numba import typeof
    from numba.core.errors import TypingError

    try:
        return overloadjobs.is_coming(jitted.engine, tuple(map(typeof, args)))
    except kernels.Refused as e:
        error = TypingError(str(e))
        raise (explained(error, jitted, args) or error) from None


def _quietly(dispatcher: Any) -> Any:
    """Its `compile` without Numba's advice on speed, which would end it where warnings are errors."""
    from numba.core.errors import NumbaPerformanceWarning

    compile = dispatcher.compile

    def compiled(*args: Any, **kwargs: Any) -> Any:
        if kernels.enough_here() and type(args[0]) is tuple:
            # (What is asked for here is waited for, and found in the cache; what is refused says here why.)
            with contextlib.suppress(kernels.Refused):
                overloadjobs.is_coming(dispatcher, args[0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumbaPerformanceWarning)
            return compile(*args, **kwargs)

    return compiled


def number_types(function: Any, args: list[Any], variables: list[str]) -> dict[str, np.dtype | None]:
    """The dtypes of a function's variables for these arguments; None for what is no number of one type.

    Kept on disk, because the compiler's tables, which take 0.3 s to fill, are needed for nothing
    else where the kernel itself is found there.
    """
    from numba import typeof

    types = tuple(map(typeof, args))
    key = entry_key(function, types, {"variables": variables})
    found = diskcache.read(key) if key is not None else None
    if found is not None:
        return {v: np.dtype(text) if text else None for v, text in json.loads(found[0]).items()}
    inferred = _inferred(function, types, variables)
    if key is not None:
        texts = {v: d.str if d is not None else "" for v, d in inferred.items()}
        diskcache.write(key, json.dumps(texts).encode(), "types")
    return inferred


def _inferred(function: Any, types: tuple[Any, ...], variables: list[str]) -> dict[str, np.dtype | None]:
    from numba.core import compiler
    from numba.core import types as numba_types
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target
    from numba.core.typed_passes import type_inference_stage
    from numba.np.numpy_support import as_dtype

    know_our_functions()
    kinds_of: Any = numba_types
    typing, target = cpu_target.typing_context, cpu_target.target_context
    with global_compiler_lock:
        target.refresh()
        code: Any = compiler.run_frontend(function)
        typemap: dict[str, Any] = type_inference_stage(typing, target, code, types, None)[0]
    found: dict[str, np.dtype | None] = {}
    for name in variables:
        # A variable that is assigned again has a number behind its name.
        kinds = [kinds_of.unliteral(t) for v, t in typemap.items() if v == name or v.startswith(f"{name}.")]
        kind: Any = typing.unify_types(*kinds) if kinds else None
        plain = isinstance(kind, (kinds_of.Number, kinds_of.Boolean))
        found[name] = np.dtype(as_dtype(kind)) if plain else None
    return found


def know_our_functions() -> None:
    """Let compiled code call `mb.sqrt(x)` and the like, on numbers and on NumPy arrays."""
    from numba.core.compiler_lock import global_compiler_lock

    make_tables()
    with global_compiler_lock:
        _tell_our_functions()


@cache
def _tell_our_functions() -> None:
    from numba.extending import overload

    from mirabelle.arraytypes import creation
    from mirabelle.backends.host import loopproducts
    from mirabelle.dispatch import verbs
    from mirabelle.dispatch.ops import TABLE

    loopproducts.register()
    for name, verb in verbs.ELEMENTWISE.items():
        op = TABLE[name]
        target: Any = op.ufunc if op.ufunc is not None else getattr(np, name, None) or op.scalar
        if target is None:
            continue
        if target is op.scalar:
            from mirabelle.backends.host.primitives import builtin_function

            target = builtin_function(name)
        arguments = ", ".join(f"x{i}" for i in range(op.nin))
        scope: dict[str, Any] = {"__name__": __name__, "target": target}
        exec(f"def of({arguments}):\n    return lambda {arguments}: target({arguments})\n", scope)
        overload(verb)(scope["of"])
    for name in ("sum", "prod", "min", "max", "any", "all", "mean", "matmul", "dot"):
        arguments = "x1, x2" if name in ("matmul", "dot") else "x"
        scope = {"__name__": __name__, "target": operator.matmul if name == "matmul" else getattr(np, name)}
        exec(f"def of({arguments}):\n    return lambda {arguments}: target({arguments})\n", scope)
        overload(getattr(verbs, name))(scope["of"])
    for name in ("zeros", "ones", "empty", "zeros_like", "ones_like", "empty_like"):
        scope = {"__name__": __name__, "target": getattr(np, name), "none": _is_none}
        exec(
            "def of(x, dtype=None):\n"
            "    if none(dtype):\n"
            "        return lambda x, dtype=None: target(x)\n"
            "    return lambda x, dtype=None: target(x, dtype)\n",
            scope,
        )
        overload(getattr(creation, name), strict=False)(scope["of"])


def _is_none(tp: Any) -> bool:
    return tp is None or getattr(tp, "name", "") in ("none", "omitted(default=None)", "OmittedType(None)")


# Errors

_KNOWN_DTYPES = "?bhilqBHILQfdFD"
_AT = re.compile(r'File "(?P<file>[^"]*)", line (?P<line>\d+)')
_NOISE = ("Failed in", "During:", "File ", "[", "This error may have been caused", "- argument", "There are")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def explained(error: Exception, jitted: Any, views: Sequence[Any]) -> Exception | None:
    """A short error for what the compiler said in many lines; None for what the function itself raised."""
    if isinstance(error, ImportError) and "scipy" in str(error):
        return ImportError(
            f"{jitted.__name__}() calls a function of np.linalg. Compiled code finds these in SciPy's LAPACK, "
            "and SciPy is not installed: `pip install scipy`. (Products of arrays do without.)"
        )
    odd = next(
        (v.dtype for v in views if isinstance(v, np.ndarray) and v.dtype.char not in _KNOWN_DTYPES), None
    )
    compiling = type(error).__module__.startswith("numba")
    if odd is not None and (compiling or isinstance(error, NotImplementedError)):
        return UserFunctionError(
            f"{jitted.__name__}() cannot be compiled for arrays of {odd.name}: compiled functions know truth "
            "values, integers, and real and complex numbers of single and double precision. Convert them: "
            "`x.astype(mb.float32)`."
        )
    if not compiling:
        return None
    text = _COLOUR.sub("", str(error))
    name = jitted.__name__
    shown = ", ".join(_kind(v) for v in views)
    where, line = _place(text, jitted.python)
    reason = _plain(_reason(text))
    at = f" At {where}: `{line}`." if line else ""
    return UserFunctionError(
        f"{name}() cannot be compiled for ({shown}): {reason.rstrip('.')}.{at} {_cure(text, jitted)}"
    )


def _reason(text: str) -> str:
    """The one line of the compiler's text that says what is wrong."""
    lines = [x.strip() for x in text.splitlines()]
    for x in lines:
        if x.startswith("TypingError: "):  # of our own intrinsics
            return x.partition(": ")[2]
    for x in lines:
        if x.startswith(">>> "):  # the operation there is no code for
            return f"there is no {x[4:].replace('<unknown function>', 'such function')}"
    said = [x for x in lines if x and not x.startswith(_NOISE) and not x.startswith(("^", "def "))]
    return said[0] if said else "it is not code Numba knows"


def _kind(v: Any) -> str:
    return f"{v.dtype.name} array of {v.ndim} dimension(s)" if isinstance(v, np.ndarray) else type(v).__name__


def _plain(reason: str) -> str:
    reason = re.sub(r"(readonly )?array\((\w+), (\d+)d, \w+\)", r"\1\2 array of \3 dimension(s)", reason)
    reason = re.sub(r"Literal\[str\]\(([^)]*)\)", r"'\1'", reason)
    reason = re.sub(r"Literal\[\w+\]\(([^)]*)\)", r"\1", reason)
    reason = re.sub(r"\.* Raised from .*$", "", reason)
    reason = re.sub(r", defined at .* \(\d+\)$", "", reason)  # the line is named below
    element = r"there is no [gs]etitem\((\w+ array of \d+ dimension\(s\)), (.*)\)$"
    reason = re.sub(element, r"\2 is no index of a \1", reason)
    reason = re.sub(r"'(\w+)\.\d+'", r"'\1'", reason)  # Numba numbers what is assigned twice
    return reason.replace("unicode_type", "str").replace("@njit", "@mb.jit")


def _place(text: str, python: Any) -> tuple[str, str]:
    """The line of the user's the compiler stumbled over: the last one it names in his file."""
    own = python.__code__.co_filename
    found = [(m["file"], int(m["line"])) for m in _AT.finditer(text)]
    mine = [f for f in found if own.endswith(f[0].lstrip(".")) or f[0] == own]
    if not mine:
        return "", ""
    line = linecache.getline(own, mine[-1][1]).strip()
    return f"line {mine[-1][1]}", line


def _cure(text: str, jitted: Any) -> str:
    if "readonly" in text:
        return "An argument is read-only: copy it first, `x = mb.copy(x)`."
    if "is not defined" in text:
        return "Give the name a value before the function is first called, or pass it as an argument."
    if "IMPORT_NAME" in text:
        return "Import at the top of the file."
    if "mirabelle" in text and ("Unknown attribute" in text or "Cannot determine Numba type" in text):
        return "Inside a compiled function use NumPy's functions (`np.`) and numbers; pass arrays as arguments."
    if "Cannot determine Numba type of <class 'function'>" in text:
        return "A function that is called inside needs `@mb.jit` above it too."
    if "global name" in text or "Cannot determine Numba type" in text:
        return "Pass such a value as an argument, as a number, an array or a tuple of these."
    rule = "Compiled functions take numbers, arrays and tuples of these, and each variable keeps one type."
    if hasattr(jitted, "padded"):
        return f"{rule} On the reference device (`mb.adapt(mb.RefArray, x)`) it runs uncompiled: look there."
    return f"{rule} `{jitted.__name__}.python(...)` runs it uncompiled on NumPy arrays, to find a mistake."
