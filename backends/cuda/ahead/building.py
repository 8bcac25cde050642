"""A library of programs for cards, from their plans to its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mirabelle.arraytypes.programs.building import Library
from mirabelle.backends.cuda.ahead import code
from mirabelle.backends.cuda.ahead.functions import CardFunction
from mirabelle.backends.cuda.ahead.tables import CardTables
from mirabelle.backends.host.ahead.building import names, write
from mirabelle.backends.host.ahead.tables import CannotBuild


def build(inner: Any, programs: list[Any], path: Path, options: dict[str, Any]) -> Library:
    """A library of programs of a card."""
    _check(programs, path, options)
    name: str = options["name"]
    architectures = code.architectures(options["arch"], inner.driver().capability)
    tables = CardTables(inner, options["blas"] != "none", architectures)
    functions = [CardFunction(*each) for each in zip(names(name, programs), programs, strict=True)]
    return write(path, name, functions, tables)


def _check(programs: list[Any], path: Path, options: dict[str, Any]) -> None:
    if path.suffix == ".whl":
        raise CannotBuild("Wheels are for programs of the host: build the library by itself, `path='libf.so'`.")
    if any(p.any_size is not None for p in programs) and options["sizes"] != {}:
        raise CannotBuild(
            "Programs of a card are built for the sizes that they have, one signature for each: "
            "`mb.compiling.build(f.program(x), f.program(y), sizes={})`."
        )
    for word, default in (("threads", None), ("cpu", "native")):
        if options[word] != default:
            raise TypeError(f"{word} is about processors, and these programs are a card's: leave it out.")
    if options["blas"] not in ("numpy", "none"):
        raise ValueError(
            f"blas is 'none' for a library that needs no cuBLAS, and was {options['blas']!r}: cuBLAS is found "
            "when a program is run."
        )
