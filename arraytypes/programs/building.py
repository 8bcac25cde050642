"""Programs ahead of time: libraries that need no Python.

>>> import mirabelle as mb
>>> program = mb.compile(lambda x: x * 2 + 1).program(mb.zeros(3))
>>> mb.compiling.build(program, name="twice").functions  # a library for ctypes, in a folder of its own
['twice(x: float64[3]) -> out: float64[3]']
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.programs.program import Program
from mirabelle.dispatch.generic import by_type


class Library:
    """A library that was built: where it is, its header, its functions.

    >>> import mirabelle as mb
    >>> library = mb.compiling.build(mb.compile(lambda x: x * 2).program(mb.zeros(3)), name="twice")
    >>> library.path.name, library.header.name
    ('libtwice.so', 'twice.h')
    """

    def __init__(self, path: Path, header: Path, functions: list[str], workspace: list[int]) -> None:
        self.path = path
        self.header = header
        # What each takes and gives, and the bytes of its workspace.
        self.functions = functions
        self.workspace = workspace

    def __repr__(self) -> str:
        lines = "".join([f"\n    {f}" for f in self.functions])
        return f"<library {self.path}{lines}>"


@by_type
def builder(inner: Any, programs: list[Program], path: Path, options: dict[str, Any]) -> Any:
    """What builds a library of programs for a place: a `Library`."""


@builder.method
def _(inner: type[DenseArray], programs: list[Program], path: Path, options: dict[str, Any]) -> Library:
    raise TypeError(
        f"Programs of {inner.__name__} cannot be built ahead of time: libraries are made of what runs on the "
        "host, or on one of NVIDIA's cards. Compile the function for the arrays of these: "
        "`f.program(mb.adapt(mb.HostArray, x))`, `f.program(mb.adapt(mb.CuArray, x))`."
    )


def build(
    *programs: Program,
    path: str | os.PathLike[str] | None = None,
    name: str | None = None,
    threads: int | None = None,
    cpu: str = "native",
    blas: str = "numpy",
    sizes: Mapping[str, int] | None = None,
    arch: str | Sequence[str] | None = None,
) -> Library:
    """Write programs as a library that C, Fortran and everything else can call, without Python.

    The library is the plan: the same kernels, run by the same native code, with the same results. Beside it a
    header and a module of Fortran are written. Several programs are several signatures: each is a function, and
    one finds the right one by dtypes and shapes. Numbers that a caller gives are arrays of no dimensions,
    `mb.asarray(dt)`; Python's numbers are constants. Functions such as `exp` are those of the C library, whose
    last bits may be others than NumPy's.

    Parameters
    ----------
    *programs : Program
        What `f.program(x, y)` or `mb.compiling.trace(f, x, y)` made, on the host or on one of NVIDIA's cards.
    path : str or path, optional
        Where the library goes; one that ends in `.whl` is a wheel for `pip install`, with a module that takes
        NumPy's arrays. By default it is a new folder's.
    name : str, optional
        What its functions are called; by default as the file without `lib`, or as the function that was
        compiled.
    threads : int, optional
        How many threads it may use; by default as many as `mb.settings.num_threads`.
    cpu : str, default "native"
        The processor it is for, as LLVM calls it: "native" is this one, "x86-64-v3" many.
    blas : str, default "numpy"
        The BLAS for products: NumPy's own, the name or the path of a library, or "none". On cards it is cuBLAS,
        or "none".
    sizes : mapping, optional
        Of programs that are compiled with `sizes="any"`, the lengths that may be any, as they are in the
        program: `{"n": 100, "m": 50}` (others are what they are). By default all above 4 are, as n, m, k and l
        in the order in which they come; `{}` is none.
    arch : str or sequence of str, optional
        Of programs of `CuArray`s, the cards it is for: "sm_90" is code for those of compute capability 9.0 and
        later ones of that generation, "compute_90" is text that the driver compiles for all later ones. By
        default the present card, and text. The library has functions of pointers to the card's memory, and of a
        stream; `threads`, `cpu` and the name of a BLAS are the host's.

    Returns
    -------
    Library
        Where it is, and what its functions take.

    Examples
    --------
    >>> import ctypes
    >>> import numpy as np
    >>> import mirabelle as mb
    >>> def smooth(u):
    ...     u[1:-1] = (u[:-2] + u[1:-1] + u[2:]) / 3
    >>> library = mb.compiling.build(mb.compile(smooth).program(mb.zeros(5)))
    >>> library.functions
    ['smooth(u: float64[5], written)']
    >>> u = np.array([0.0, 0.0, 3.0, 0.0, 0.0])
    >>> ctypes.CDLL(library.path).smooth(ctypes.c_void_p(u.ctypes.data), None, ctypes.c_int64(0), 1)
    0
    >>> print(u)
    [0. 1. 1. 1. 0.]
    """
    if not programs:
        raise TypeError(
            "mb.compiling.build takes programs: `mb.compiling.build(f.program(x, y), path='libf.so')`."
        )
    for p in programs:
        if not isinstance(p, Program):
            raise TypeError(
                f"mb.compiling.build takes programs, not {type(p).__name__}: "
                "`mb.compiling.build(f.program(x, y), path='libf.so')`."
            )
    if len({p.inner for p in programs}) > 1:
        raise TypeError("The programs of one library are for arrays of one place.")
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise ValueError(f"threads is how many threads the library may use, and was {threads!r}.")
    if sizes and all(p.any_size is None for p in programs):
        raise TypeError(
            "The programs are for their sizes alone: compile the function for any, "
            "`mb.compile(f, sizes='any').program(x)`."
        )
    if path is None:
        where = Path(tempfile.mkdtemp(prefix="mirabelle-")) / f"lib{name or _named(programs[0])}.so"
    else:
        where = Path(path).expanduser()
        if where.suffix not in (".so", ".dylib", ".whl"):
            raise ValueError(
                f"path is the library's file, which ends in .so (or .whl for a wheel), and was {str(path)!r}."
            )
    if name is None:
        name = _named(programs[0]) if path is None or where.suffix == ".whl" else where.stem.removeprefix("lib")
    if not name.isidentifier() or not name.isascii():
        raise ValueError(f"name is what functions of C are called, and was {name!r}: `name='step'`.")
    options = {
        "name": name,
        "threads": threads,
        "cpu": cpu,
        "blas": blas,
        "sizes": sizes if sizes is None else dict(sizes),
        "arch": arch,
    }
    return builder(programs[0].inner, list(programs), where, options)  # type: ignore[no-any-return]


def _named(program: Program) -> str:
    return program.name if program.name.isidentifier() and program.name.isascii() else "program"


__all__ = ["Library", "build"]
