"""A library of programs, from their plans to its files."""

from __future__ import annotations

import importlib.metadata
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mirabelle.arraytypes.io import permitted, replacing
from mirabelle.arraytypes.programs.building import Library
from mirabelle.backends.host import numpyblas
from mirabelle.backends.host.ahead import families, interface, linking, wheels
from mirabelle.backends.host.ahead.tables import CannotBuild, Tables
from mirabelle.dispatch.settings import settings


def build(programs: list[Any], path: Path, options: dict[str, Any]) -> Library:
    """A library of programs of the host."""
    name: str = options["name"]
    if options["arch"] is not None:
        raise TypeError("arch is about cards, and these programs are the host's: `cpu='x86-64-v3'` is theirs.")
    tables = Tables(options["threads"] or max(settings.num_threads, 1), options["cpu"], linking.offered_loops())
    functions = [
        _function(each, program, options["sizes"])
        for each, program in zip(names(name, programs), programs, strict=True)
    ]
    if path.suffix == ".whl" and any(f.sized for f in functions):
        raise CannotBuild(
            "Wheels are for programs of fixed sizes: build the library by itself, `path='libf.so'`, or for "
            "the sizes of the program, `sizes={}`."
        )
    return write(path, name, functions, tables, options["blas"])


def names(name: str, programs: list[Any]) -> list[str]:
    """What the functions of a library are called."""
    return [f"{name}_{i + 1}" for i in range(len(programs))] if len(programs) > 1 else [name]


def write(
    path: Path, name: str, functions: Sequence[interface.Function], tables: Tables, blas: str = "none"
) -> Library:
    """Write the library, its header and its module of Fortran; whole files or none."""
    try:
        version = importlib.metadata.version("mirabelle")
    except importlib.metadata.PackageNotFoundError:  # a checkout in the path
        version = "of a checkout"
    text = interface.source(name, functions, tables)
    header = interface.header(name, functions, version)
    module = interface.fortran(name, functions)
    library = numpyblas.to_link(blas) if tables.blas else None
    as_wheel = path.suffix == ".whl"
    with tempfile.TemporaryDirectory(prefix="mirabelle-build-") as folder:
        work = Path(folder)
        made = linking.linked(
            name,
            text,
            header,
            tables.objects,
            tables.binaries(),
            tables.sources(),
            library,
            work,
            beside=as_wheel,
        )
        (work / f"{name}.f90").write_text(module)
        if as_wheel:
            path = wheels.write(path, name, functions, work, made, library, version)
            return Library(path, path, [f.said() for f in functions], [f.workspace for f in functions])
        files = {
            path: made,
            path.parent / f"{name}.h": work / f"{name}.h",
            path.parent / f"{name}.f90": work / f"{name}.f90",
        }
        for where, source in files.items():
            with permitted(where), replacing(where) as fresh:
                shutil.copyfile(source, fresh)
    path.chmod(0o755)
    return Library(
        path, path.parent / f"{name}.h", [f.said() for f in functions], [f.workspace for f in functions]
    )


def _function(name: str, program: Any, sizes: Any) -> interface.Function:
    if getattr(program, "any_size", None) is None or sizes == {}:
        return interface.Function(name, program)
    return families.SizedFunction(name, program, sizes)
