"""A library of programs, from their plans to its files."""

from __future__ import annotations

import importlib.metadata
import shutil
import tempfile
from pathlib import Path
from typing import Any

from mirabelle.arraytypes.io import permitted, replacing
from mirabelle.arraytypes.programs.building import Library
from mirabelle.backends.host import numpyblas
from mirabelle.backends.host.ahead import interface, linking, wheels
from mirabelle.backends.host.ahead.tables import Tables
from mirabelle.dispatch.settings import settings


def build(programs: list[Any], path: Path, options: dict[str, Any]) -> Library:
    """Write the library, its header and its module of Fortran; whole files or none."""
    name: str = options["name"]
    version = importlib.metadata.version("mirabelle")
    tables = Tables(options["threads"] or max(settings.num_threads, 1), options["cpu"], linking.offered_loops())
    several = len(programs) > 1
    functions = [
        interface.Function(f"{name}_{i + 1}" if several else name, program)
        for i, program in enumerate(programs)
    ]
    text = interface.source(name, functions, tables)
    header = interface.header(name, functions, version)
    module = interface.fortran(name, functions)
    library = numpyblas.to_link(options["blas"]) if tables.blas else None
    as_wheel = path.suffix == ".whl"
    with tempfile.TemporaryDirectory(prefix="mirabelle-build-") as folder:
        work = Path(folder)
        made = linking.linked(
            name,
            text,
            header,
            tables.objects,
            bytes(tables.data),
            sorted(tables.parts),
            library,
            work,
            beside=as_wheel,
        )
        (work / f"{name}.f90").write_text(module)
        if as_wheel:
            path = wheels.write(path, name, functions, work, made, library, version)
            return Library(path, path, [_said(f) for f in functions], [f.workspace for f in functions])
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
        path, path.parent / f"{name}.h", [_said(f) for f in functions], [f.workspace for f in functions]
    )


def _said(function: interface.Function) -> str:
    """A function in a line."""
    taken = ", ".join([f"{x!r}{', written' * x.written}" for x in function.arguments])
    given = ", ".join([repr(x) for x in function.results])
    return f"{function.name}({taken})" + (f" -> {given}" if given else "")
