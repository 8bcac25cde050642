"""Libraries that are built ahead of time, called as C calls them."""

from __future__ import annotations

import ctypes

import numpy as np

import mirabelle as mb


class Array(ctypes.Structure):
    """mirabelle_array of the headers."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
    )  # fmt: skip


def described(arrays, keep, strided=False):
    made = (Array * max(len(arrays), 1))()
    for x, to in zip(arrays, made, strict=False):
        shape, strides = [(ctypes.c_int64 * max(x.ndim, 1))(*n) for n in (x.shape, x.strides)]
        keep += [shape, strides]
        to.data, to.rank, to.shape = x.ctypes.data, x.ndim, shape
        to.dtype = ord({"q": "l", "Q": "L"}.get(x.dtype.char, x.dtype.char))
        if strided:
            to.strides = strides
    return made


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
            if not (same or (close and np.allclose(a, b, rtol=1e-12, atol=1e-12, equal_nan=True))):
                found.append((n, k, a, b))
    return found
