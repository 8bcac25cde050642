"""Libraries that are built ahead of time, called as C calls them."""

from __future__ import annotations

import ctypes
import shutil

import numpy as np
import randomprograms

import mirabelle as mb
from benchmarks.ahead import described


class Loaded:
    """A library: called with arguments and room for results, it returns the code."""

    def __init__(self, library, name):
        self.name, self.library = name, library
        self.dll = ctypes.CDLL(str(library.path))
        self.message = getattr(self.dll, f"{name}_message")
        self.message.restype = ctypes.c_char_p
        self.needs = getattr(self.dll, f"{name}_workspace")
        self.needs.restype = ctypes.c_int64

    def __call__(self, given, results=(), threads=0, workspace=None, strided=False):
        keep = []
        where = None, ctypes.c_int64(0)
        if workspace is not None:
            where = ctypes.c_void_p(workspace.ctypes.data), ctypes.c_int64(workspace.nbytes)
        arrays = described(given, keep, strided), len(given), described(results, keep, strided), len(results)
        return getattr(self.dll, f"{self.name}_call")(*arrays, *where, threads)


def differences(program, arguments, library=None, threads=(1, 2), close=False):
    """How a library of a program differs from the program, and what it refuses that the program computes."""
    library = library or mb.compiling.build(program, name="f", threads=2)
    call, count = Loaded(library, "f"), len(program.captured.returned)
    views = [np.array(x, order="C") for x in arguments]
    try:
        wanted = [np.array(x) for x in program.runner.run([x.copy() for x in views])]
    except Exception as e:
        wanted = type(e).__name__
    found = []
    for n in threads:
        given = [x.copy() for x in views]
        results = [np.full(x.shape, 7).astype(x.dtype) for x in program.outputs[:count]]
        workspace = np.full(library.workspace[0], 0xA5, np.uint8) if n > 1 else None
        code = call(given, results, n, workspace)
        if isinstance(wanted, str) or code:
            if bool(code) != isinstance(wanted, str):
                found.append((n, code, call.message(code), wanted))
            continue
        after = [given[i] for i in program.captured.written]
        for k, (a, b) in enumerate(zip([*results, *after], wanted, strict=True)):
            same = a.tobytes() == b.tobytes() or np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
            tolerance = 1e-6 if a.dtype in (np.float32, np.complex64) else 1e-12
            if not (same or (close and np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True))):
                found.append((n, k, a, b))
    return found


def tried(number):
    """A random program as a library: what became of it, and how that differs from the program."""
    program = randomprograms.drawn(number)
    try:
        randomprograms.expected(program)
    except randomprograms.REFUSALS:
        return "NumPy refuses", []
    f, given = program.function(), list(program.arrays(0).values())
    compiled = mb.compile(lambda *x: f(mb, mb.autodiff.gradient, *x), whole=True)
    try:
        with randomprograms.anywhere("host"):
            made = compiled.program(*map(mb.HostArray, given))
    except Exception as e:  # (what cannot be compiled is for others to test)
        return f"no program: {type(e).__name__}", []
    try:
        library = mb.compiling.build(made, name="f", threads=2)
    except TypeError as e:
        said = str(e)
        return "refused", [] if "cannot be built ahead of time" in said else [said]
    try:
        return "built", differences(made, given, library, close=True)
    finally:
        shutil.rmtree(library.path.parent)
