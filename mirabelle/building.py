"""`python -m mirabelle build module:function --for 'f8[400,400], f8'`: a function as a library."""

from __future__ import annotations

import argparse
import importlib
import itertools
import re
import sys
from pathlib import Path
from typing import Any

_ARRAY = re.compile(r"\s*(?:(\w+)\s*=\s*)?(\w+)\s*(?:\[([\w\s,]*)\])?\s*(?:,|$)")
_NUMBER = re.compile(r"\s*(?:(\w+)\s*=\s*)?([-+.\deE]+|True|False)\s*(?:,|$)")


def main(words: list[str]) -> int:
    """Build what the words ask for; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m mirabelle build",
        description="Write a function of arrays as a library for C, Fortran and others, which needs no Python.",
        epilog="Example: python -m mirabelle build solver:step --for 'f8[400,400], f8' --out libstep.so",
    )
    parser.add_argument("function", metavar="module:function", help="the function, compiled or not")
    parser.add_argument(
        "--for", dest="signatures", action="append", required=True, metavar="'f8[400,400], f8'",
        help="what it is called with: dtypes and shapes (without a shape: a number that the caller gives), "
        "or numbers of Python, which are constants; once for each signature",
    )  # fmt: skip
    parser.add_argument(
        "--size", dest="sizes", action="append", default=[], metavar="n=100,200",
        help="what a name among the lengths stands for (f8[n,n]); of several numbers each is a signature, with "
        "those of the other names. Without it the name is an argument: the function is for all lengths",
    )  # fmt: skip
    parser.add_argument(
        "--out", metavar="FILE", help="the library (.so) or wheel (.whl); default: lib<function>.so"
    )
    parser.add_argument("--name", help="what its functions are called")
    parser.add_argument("--threads", type=int, help="how many threads it may use")
    parser.add_argument("--cpu", default="native", help="the processor, as LLVM calls it; default: this one")
    parser.add_argument("--blas", default="numpy", help="numpy, none, or the name or path of a library")
    parser.add_argument(
        "--array", default="HostArray", choices=("HostArray", "CuArray"),
        help="the type of arrays: with CuArray a library for cards (MIRABELLE_CUDA=simulated if none is here)",
    )  # fmt: skip
    parser.add_argument(
        "--arch", action="append", metavar="sm_90",
        help="the cards it is for: sm_90 is code of theirs, compute_90 text for these and later ones",
    )  # fmt: skip
    given = parser.parse_args(words)
    import mirabelle as mb

    f = _function(parser, given.function)
    compiled = f if isinstance(f, mb.compiling.Compiled) else mb.compile(f, whole=True)
    try:
        texts = named_sizes(given.signatures, given.sizes)
        sizes: dict[str, int] = {}
        programs = []
        for text in texts:
            shown, lengths = any_lengths(text, sizes)
            sizes.update(lengths)
            args, named = signature(shown, getattr(mb, given.array))
            programs.append((for_any(compiled) if lengths else compiled).program(*args, **named))
        out = given.out or f"lib{given.name or getattr(compiled, '__name__', 'program')}.so"
        library = mb.compiling.build(
            *programs, path=out, name=given.name,
            threads=given.threads, cpu=given.cpu, blas=given.blas,
            sizes=sizes or None, arch=given.arch,
        )  # fmt: skip
    except (TypeError, ValueError, RuntimeError, OSError) as e:
        print(e, file=sys.stderr)
        return 1
    print(library)
    return 0


def _function(parser: argparse.ArgumentParser, name: str) -> Any:
    module, _, function = name.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = importlib.import_module(module)
        for part in function.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as e:
        parser.error(f"there is no function {name!r}: {e}. Write it as module:function, seen from here.")
    if not callable(found):
        parser.error(f"{name!r} is no function.")
    return found


def named_sizes(signatures: list[str], sizes: list[str]) -> list[str]:
    """Signatures with numbers for the names of lengths, where they are given: one for each combination.

    >>> named_sizes(["f8[n,m], f8[n]"], ["n=2,3", "m=5"])
    ['f8[2,5], f8[2]', 'f8[3,5], f8[3]']
    """
    known: dict[str, list[str]] = {}
    for text in sizes:
        name, _, numbers = text.partition("=")
        known[name.strip()] = found = [n.strip() for n in numbers.split(",")]
        if not name.strip().isidentifier() or not all(n.isdigit() for n in found):
            raise ValueError(f"{text!r} is no name with its lengths: `--size n=100,200`.")
    made: list[str] = []
    used: set[str] = set()
    for text in signatures:
        shapes = re.findall(r"\[([^\]]*)\]", text)
        names = list(dict.fromkeys([n.strip() for s in shapes for n in s.split(",") if not _is_length(n)]))
        used.update(names)
        names = [name for name in names if name in known]
        for lengths in itertools.product(*[known[name] for name in names]):
            made.append(_with_lengths(text, dict(zip(names, lengths, strict=True))))
    for name in known:
        if name not in used:
            raise ValueError(f"--size {name}=... is for a length of that name, and no signature has one.")
    return list(dict.fromkeys(made))


# Lengths that stand for any: they differ from those in a signature.
_ANY = (57, 91, 133, 205, 301, 403, 501, 603)


def any_lengths(text: str, before: dict[str, int]) -> tuple[str, dict[str, int]]:
    """A signature with lengths for names, and what these are; those that were given before are the same.

    >>> any_lengths("f8[n,57], f8[n]", {})
    ('f8[91,57], f8[91]', {'n': 91})
    """
    shapes = re.findall(r"\[([^\]]*)\]", text)
    lengths = [n.strip() for s in shapes for n in s.split(",")]
    free = [n for n in _ANY if str(n) not in lengths and n not in before.values()]
    names = dict.fromkeys([n for n in lengths if not _is_length(n)])
    made = {name: before.get(name) or free.pop(0) for name in names}
    return _with_lengths(text, {name: str(n) for name, n in made.items()}), made


def for_any(compiled: Any) -> Any:
    """A function compiled for all sizes."""
    import mirabelle as mb

    return mb.compile(compiled.function, whole=True, sizes="any")


def _is_length(text: str) -> bool:
    return not text.strip() or text.strip().isdigit()


def _with_lengths(text: str, lengths: dict[str, str]) -> str:
    """A signature with numbers for names, in its shapes alone."""

    def numbered(shape: re.Match[str]) -> str:
        return re.sub(r"\w+", lambda name: lengths.get(name[0], name[0]), shape[0])

    return re.sub(r"\[[^\]]*\]", numbered, text)


def signature(text: str, array: Any = None) -> tuple[list[Any], dict[str, Any]]:
    """Arguments as a text describes them; arrays are the host's, or of another type.

    >>> args, named = signature("f8[3,2], i4, 2, n=5")
    >>> [(x.shape, x.dtype.name) for x in args[:2]], args[2:], named
    ([((3, 2), 'float64'), ((), 'int32')], [2], {'n': 5})
    """
    import numpy as np

    import mirabelle as mb

    args: list[Any] = []
    named: dict[str, Any] = {}
    at = 0
    while at < len(text.rstrip()):
        number = _NUMBER.match(text, at)
        found = number or _ARRAY.match(text, at)
        if found is None:
            raise ValueError(f"{text[at:]!r} is neither a dtype with a shape (f8[400,400]), nor a number.")
        if number is not None:
            value: Any = {"True": True, "False": False}.get(number[2])
            if value is None:
                value = float(number[2]) if re.search(r"[.eE]", number[2]) else int(number[2])
        else:
            try:
                dtype = np.dtype(found[2])
            except TypeError:
                raise ValueError(f"{found[2]!r} is no dtype: f8, f4, i8, c16, ...") from None
            shape = tuple([int(n) for n in (found[3] or "").split(",") if n.strip()])
            value = (array or mb.HostArray)(np.zeros(shape, dtype))
        at = found.end()
        if found[1]:
            named[found[1]] = value
        else:
            args.append(value)
    return args, named


__all__ = ["main", "named_sizes", "signature"]
