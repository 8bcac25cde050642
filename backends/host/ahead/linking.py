"""The system's C compiler makes a library of tables, kernels and what runs them."""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from mirabelle.backends.host.numpyblas import Blas

HERE = Path(__file__).parent
# The sources that call BLAS and LAPACK.
WITH_BLAS = ("products.c", "factors.c", "decompositions.c")
_FLAGS = ("-std=gnu11", "-O3", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-w")
# (Tables are data: there is nothing to make faster.)
_TABLES = ("-std=gnu11", "-O0", "-fPIC", "-fvisibility=hidden", "-w")


class CompilerFailed(RuntimeError):
    """The C compiler refused, or there is none."""


def compiler() -> list[str]:
    """The C compiler: what CC says, or the system's."""
    words = shlex.split(os.environ.get("CC", "")) or ["cc"]
    if shutil.which(words[0]) is None:
        words = ["gcc"]
    if shutil.which(words[0]) is None:
        raise CompilerFailed(
            "There is no C compiler, which links libraries that are built ahead of time. Install one (on "
            "Debian `apt install gcc libc6-dev`), or say which by `CC=/path/to/cc`."
        )
    return words


def pool() -> Path:
    """Where the sources are of what runs task lists: in the package, or in the checkout it is made of."""
    from mirabelle.dispatch import native

    return Path(native.__file__).parent / "csrc"


def host_sources(parts: Iterable[str]) -> list[Path]:
    """The sources of a library of the host that needs these parts."""
    return [
        pool() / "pool.c",
        *[HERE / p for p in ("runtime.c", "lists.c", "products.c", "memory.c", *sorted(parts))],
    ]


def called(words: Sequence[str], where: Path) -> str:
    """Call the compiler; returns what it prints."""
    done = subprocess.run([*compiler(), *words], cwd=where, capture_output=True, text=True, check=False)
    if done.returncode:
        last = [line for line in done.stderr.splitlines() if "error" in line or "undefined" in line]
        raise CompilerFailed(
            f"The C compiler {compiler()[0]!r} refused what was written for it: "
            f"{(last or done.stderr.splitlines() or ['no word'])[0].strip()}"
        )
    return done.stdout


@functools.cache
def offered_loops() -> frozenset[str]:
    """The names of the functions in loops.c."""
    text = called(["-E", "-P", str(HERE / "loops.c")], HERE)
    return frozenset(re.findall(r"\bLOOP_(\w+)\s*\(char", text))


@functools.cache
def _part(path: Path, flags: tuple[str, ...]) -> bytes:
    """The object code of a source that is the same in all libraries."""
    with tempfile.TemporaryDirectory(prefix="mirabelle-build-") as folder:
        called([*_FLAGS, f"-I{HERE}", f"-I{pool()}", *flags, "-c", str(path), "-o", "part.o"], Path(folder))
        return (Path(folder) / "part.o").read_bytes()


def linked(
    name: str,
    text: str,
    header: str,
    objects: dict[str, bytes],
    data: dict[str, bytes],
    sources: Sequence[Path],
    library: Blas | None,
    work: Path,
    beside: bool = False,
) -> Path:
    """The library, made in a folder of tables, kernels, data by their names, and `sources` that are the same in
    all libraries; with `beside` it finds its BLAS where it lies itself."""
    (work / f"{name}.h").write_text(header)
    (work / f"{name}_tables.c").write_text(text)
    made = []
    for stem, content in data.items():
        (work / f"{stem}.bin").write_bytes(content)
        made.append(f"{stem}.s")
        (work / made[-1]).write_text(
            f"    .section .rodata\n    .balign 64\n    .globl {stem}\n    .hidden {stem}\n"
            f'{stem}:\n    .incbin "{stem}.bin"\n    .byte 0\n'
            '    .section .note.GNU-stack,"",%progbits\n'
        )
    for kernel, code in objects.items():
        (work / f"{kernel}.o").write_bytes(code)
    made += [f"{kernel}.o" for kernel in objects]
    for path in sources:
        flags = library.flags() if library is not None and path.name in WITH_BLAS else []
        made.append(f"{path.stem}.part.o")
        (work / made[-1]).write_bytes(_part(path, tuple(flags)))
    tables = f"{name}_tables"
    folders = [f"-I{x}" for x in dict.fromkeys([HERE, pool(), work, *[p.parent for p in sources]])]
    called([*_TABLES, *folders, "-c", f"{tables}.c", "-o", f"{tables}.o"], work)
    made.append(f"{tables}.o")
    out = work / f"lib{name}{sysconfig.get_config_var('SHLIB_SUFFIX') or '.so'}"
    with_blas: list[str] = []
    if library is not None:
        path = Path(library.library)
        with_blas = (
            [str(path), f"-Wl,-rpath,{'$ORIGIN' if beside else path.parent}"]
            if path.is_absolute()
            else [f"-l{library.library}"]
        )
    called(
        [
            "-shared",
            "-Wl,-z,defs",
            "-o",
            str(out),
            *made,
            *with_blas,
            "-Wl,--as-needed",
            "-lm",
            "-lpthread",
            "-ldl",
        ],
        work,
    )
    return out
