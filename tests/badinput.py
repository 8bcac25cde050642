"""Calls of all public functions with nonsense, and which errors are no sentences.

    python -m tests.badinput              # 60 000 calls; prints how many texts are unclear, and lists them
    python -m tests.badinput 3000 --seed 1 --only norm,linalg.solve

An argument is nonsense (a wrong type, axis, dtype, shape or order, ragged or endless lists, ...) or what the
function may well take. A call may succeed. If it raises, a reader must learn what to change: the text is a
sentence that says what is expected, or what NumPy says to its users. Unclear are texts that speak of what
happens inside (attributes, iteration, operators, keys), texts without words, and errors that are crashes.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import os
import random
import re
import signal
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import mirabelle as mb

# What talks to others, changes the process, waits, runs on threads or is given functions that it keeps.
LEFT_OUT = {
    *("adapt", "allow_scalar", "allow_transfer", "band", "batch", "broadcasted", "capture", "communicator"),
    *("compile", "connect", "devices", "eager", "exchange", "explain", "fori_loop", "free_memory", "generic"),
    *("jit", "kernel", "load_program", "memory", "methods", "mpi_communicator", "namespace", "outline"),
    *("override", "placed", "printoptions", "random.seed", "save", "savetxt", "savez", "savez_compressed"),
    *("set_memory_limit", "set_printoptions", "show", "stream", "synchronize", "together", "vectorize"),
    *("use_communicator", "use_layout", "default_array", "redistribute", "which", "while_loop"),
}


def endless() -> list[Any]:
    """A list that contains itself."""
    made: list[Any] = [1.0]
    made.append(made)
    return made


class Thing:
    """An object that is nothing that an array library knows."""

    def __repr__(self) -> str:
        return "Thing()"


def broken_array() -> Any:
    """An object whose `__array__` fails."""

    class Broken:
        def __array__(self, *args: Any, **kwargs: Any) -> Any:
            raise RuntimeError("The file behind this array is gone; open it again.")

    return Broken()


NONSENSE: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "'a'": lambda: "a",
    "''": lambda: "",
    "b'a'": lambda: b"a",
    "-1": lambda: -1,
    "-7": lambda: -7,
    "99": lambda: 99,
    "2**70": lambda: 2**70,
    "-2**70": lambda: -(2**70),
    "1.5": lambda: 1.5,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "1j": lambda: 1j,
    "True": lambda: True,
    "{}": dict,
    "{'a': 1}": lambda: {"a": 1},
    "{1, 2}": lambda: {1, 2},
    "()": lambda: (),
    "[]": list,
    "[[1], [2, 3]]": lambda: [[1], [2, 3]],
    "[1, 'a']": lambda: [1, "a"],
    "[None]": lambda: [None],
    "[{}]": lambda: [{}],
    "endless": endless,
    "(1, -2)": lambda: (1, -2),
    "(0, 0)": lambda: (0, 0),
    "(9, 1.5)": lambda: (9, 1.5),
    "slice": lambda: slice(0, 2),
    "...": lambda: ...,
    "object()": object,
    "Thing()": Thing,
    "Thing": lambda: Thing,
    "Path('.')": lambda: Path("."),
    "Path('missing')": lambda: Path("missing.npy"),
    "len": lambda: len,
    "lambda": lambda: lambda *given: None,
    "range(3)": lambda: range(3),
    "iter": lambda: iter([1, 2]),
    "Broken()": broken_array,
    "np object": lambda: np.array([None, {}], object),
    "np str": lambda: np.array(["a", "b"]),
    "np dates": lambda: np.array(["2020-01-01"], "M8[D]"),
    "np records": lambda: np.zeros(2, "i4, f8"),
    "np.float64": lambda: np.float64,
    "dtype": lambda: np.dtype("f4"),
    "'f4'": lambda: "f4",
    "mb": lambda: mb,
    "HostArray": lambda: mb.HostArray,
    "memoryview": lambda: memoryview(b"\x01\x02"),
}
FITTING: dict[str, Callable[[], Any]] = {
    "2": lambda: 2,
    "0": lambda: 0,
    "[1.0, 2.0]": lambda: [1.0, 2.0],
    "vector": lambda: mb.HostArray([1.0, 2.0, 3.0]),
    "matrix": lambda: mb.HostArray(np.arange(12.0).reshape(3, 4)),
    "square": lambda: mb.HostArray([[2.0, 1.0], [1.0, 3.0]]),
    "ints": lambda: mb.HostArray([3, 1, 2, 0]),
    "mask": lambda: mb.HostArray([True, False, True]),
    "empty": lambda: mb.HostArray(np.zeros((0, 3))),
    "complex": lambda: mb.HostArray([1j, 2.0]),
    "no axes": lambda: mb.HostArray(5.0),
    "Diagonal": lambda: mb.Diagonal(mb.HostArray([1.0, 2.0])),
    "numpy": lambda: np.arange(3.0),
}

# Texts that speak of what happens inside.
INSIDE = re.compile(
    r"object is not (iterable|callable|subscriptable|reversible|an iterator)|has no attribute|has no len\(\)"
    r"|unsupported operand|not supported between|object does not support|not enough values|too many values"
    r"|must be str, |expected str, bytes|'NoneType'|unhashable|zip\(\)|int\(\) argument|float\(\) argument"
    r"|can only concatenate|bad operand type|maximum recursion|__(?!main|init)\w+__|<lambda>\(\)|\b_\w+\(\)"
    r"|not all arguments"
    r"|descriptor '|slice indices must|argument of type|invalid literal|could not convert|is not a generic"
    r"|list index out of range|tuple index out of range|string index|not in tuple|not in list"
    r"|takes no arguments"
    r"|'[\w.]+' object|Traceback|[nN]umba|Traced|\b_[a-z]\w+\b|base 10"
)
# A sentence in the style of the house, with a cure behind it.
SENTENCES = re.compile(
    r"\w\)?[.;:] +[`A-Z(].*[.`)?]$|[.;:] .*`.*`|Define one like this|says what they are\.$", re.DOTALL
)
# What NumPy and Python say to who calls a function wrongly.
KNOWN = re.compile(
    r"cannot be interpreted as an integer$|^only (0-dimensional|length-1|integer) |^axis .* is out of bounds"
    r"|^data type .* not understood|^Cannot interpret|^operands could not be broadcast|^No such file|^\[Errno "
    r"|^Cannot construct a dtype|^setting an array element|must be real number, not|is an invalid keyword"
    r"|^\w[\w.]*\(\) (missing|got|takes)|^cannot reshape|^cannot select an axis|^object of too small depth"
    r"|^Cannot cast|^arrays? "
)
CRASHES = (RecursionError, KeyError, AssertionError, SystemError, UnboundLocalError, NameError, AttributeError,
           StopIteration, ZeroDivisionError, OSError)  # fmt: skip


def unclear(error: BaseException) -> str:
    """Why a reader does not learn from an error what to change; empty if they do.

    >>> unclear(TypeError("'int' object is not iterable"))
    'speaks of what happens inside'
    >>> unclear(ValueError("mb.norm takes ord= as a number; it was given 'a'."))
    ''
    """
    text = str(error).strip()
    if "mistake in mirabelle" in text:
        return "calls nonsense a mistake of ours"
    if type(error) in CRASHES or (isinstance(error, OSError) and len(text) < 20):
        return f"is {type(error).__name__}"
    if KNOWN.search(text) or SENTENCES.search(text):
        return ""
    if INSIDE.search(text):
        return "speaks of what happens inside"
    if len(text) < 20 or len(text.split()) < 4:
        return "has too few words"
    return ""


def functions() -> dict[str, Any]:
    """The public functions by their names."""
    spaces = {"": mb, "linalg.": mb.linalg, "fft.": mb.fft, "random.": mb.random, "autodiff.": mb.autodiff}
    found = {}
    for prefix, space in spaces.items():
        for name in getattr(space, "__all__", None) or [n for n in dir(space) if not n.startswith("_")]:
            thing = getattr(space, name)
            if callable(thing) and not isinstance(thing, type) and not name.startswith("__"):
                found[prefix + name] = thing
    return {name: f for name, f in sorted(found.items()) if name not in LEFT_OUT}


# Methods and operators that are called as often as functions.
METHODS: dict[str, Callable[..., Any]] = {
    "x[i]": lambda i: mb.HostArray([[1.0, 2.0], [3.0, 4.0]])[i],
    "x[i, j]": lambda i, j: mb.HostArray([[1.0, 2.0], [3.0, 4.0]])[i, j],
    "x[i] = y": lambda i, y: mb.HostArray([[1.0, 2.0], [3.0, 4.0]]).__setitem__(i, y),
    "HostArray": lambda x, dtype: mb.HostArray(x, dtype),
    "x.reshape": lambda *shape: mb.HostArray([1.0, 2.0]).reshape(*shape),
    "x.sum": lambda axis, dtype: mb.HostArray([1.0, 2.0]).sum(axis, dtype),
    "x.astype": lambda dtype, order: mb.HostArray([1.0, 2.0]).astype(dtype, order),
    "x.transpose": lambda *axes: mb.HostArray([[1.0, 2.0]]).transpose(*axes),
    "x.sort": lambda axis: mb.HostArray([1.0, 2.0]).sort(axis),
    "x.fill": lambda value: mb.HostArray([1.0, 2.0]).fill(value),
    "x.take": lambda i, axis: mb.HostArray([1.0, 2.0]).take(i, axis),
}


def signature(function: Any) -> tuple[list[str], list[str], bool]:
    """The names of what a function needs, of what it may be given besides, and whether it takes any number."""
    needs, options, row = [], [], False
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            row = True
        elif p.kind is not p.VAR_KEYWORD:
            (needs if p.default is p.empty and p.kind is not p.KEYWORD_ONLY else options).append(p.name)
    return needs, options, row


def a_call(chance: random.Random, function: Any) -> tuple[list[str], dict[str, str]]:
    """The names of what a function is called with: at least one argument of it is nonsense."""
    needs, options, row = signature(function)
    count = len(needs) + (chance.randrange(3) if row else 0)
    named = chance.sample(options, min(len(options), chance.choice((0, 0, 1, 1, 2))))
    total = count + len(named)
    bad = {chance.randrange(total)} if total else set()
    bad |= {i for i in range(total) if chance.random() < 0.25}
    names = [chance.choice(list(NONSENSE if i in bad else FITTING)) for i in range(total)]
    return names[:count], dict(zip(named, names[count:], strict=True))


@contextlib.contextmanager
def harmless() -> Iterator[None]:
    """In a folder of its own, without output, warnings and much memory."""
    import resource

    before, limits = os.getcwd(), resource.getrlimit(resource.RLIMIT_AS)
    with (
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("ignore")
        os.chdir(folder)
        # (Beside what is taken already: address space may be reserved that is no memory.)
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + (16 << 30), limits[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)
            os.chdir(before)


class Late(BaseException):
    """A call did not end."""


def _late(*_: Any) -> None:
    raise Late


def attempt(function: Any, positional: list[str], named: dict[str, str]) -> tuple[str, str]:
    """Why the error of a call is unclear, and its text; two empty strings if it is clear, or there was none."""
    pool = {**NONSENSE, **FITTING}
    signal.setitimer(signal.ITIMER_REAL, 20)
    try:
        out = function(*[pool[n]() for n in positional], **{k: pool[n]() for k, n in named.items()})
        if isinstance(out, mb.AbstractArray):
            mb.materialize(out)
    except Late:
        return "does not end", ""
    except Exception as error:
        return unclear(error), f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return "", ""


def run(count: int, seed: int = 0, only: Any = None) -> list[tuple[str, str, str]]:
    """So many calls: those with unclear errors as (call, why, text)."""
    everything = functions() | METHODS
    names = [n for n in everything if not only or n in only]
    chance, found = random.Random(seed), []
    signal.signal(signal.SIGALRM, _late)
    with harmless():
        for i in range(count):
            name = names[i % len(names)]
            positional, named = a_call(chance, everything[name])
            why, text = attempt(everything[name], positional, named)
            if why:
                call = ", ".join([*positional, *(f"{k}={v}" for k, v in named.items())])
                found.append((f"{name}({call})", why, text))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=60_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=lambda text: text.split(","))
    parser.add_argument("--all", action="store_true", help="list every call, not one of each text")
    options = parser.parse_args()
    found = run(options.count, options.seed, options.only)
    texts: dict[str, list[str]] = defaultdict(list)
    for call, why, text in found:
        texts[f"{why}: {re.sub('[0-9]+', '#', text.splitlines()[0] if text else '')[:150]}"].append(call)
    for text, calls in sorted(texts.items(), key=lambda item: -len(item[1])):
        print(f"{len(calls):5} {text}")
        for call in calls if options.all else calls[:3]:
            print(f"      mb.{call}")
    print(f"{options.count} calls, {len(found)} unclear", dict(Counter(why for _, why, _ in found)))


if __name__ == "__main__":
    main()
