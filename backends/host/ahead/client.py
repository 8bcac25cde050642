"""Programs that were built ahead of time by mirabelle, for NumPy's arrays. (Written by it: mirabelle is not
needed.)

Each function takes arrays of the dtypes and shapes it was built for, writes to those it says, and returns what
the program returns. `call` finds the one for some arrays.
"""

import ctypes
import pathlib

import numpy as np

NAME = ""
# Arguments and results: name, NumPy's letter, shape, and whether an argument is written to.
FUNCTIONS = []

_library = ctypes.CDLL(next(pathlib.Path(__file__).parent.glob(f"lib{NAME}.*")))
_message = getattr(_library, f"{NAME}_message")
_message.restype = ctypes.c_char_p


class _Array(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
    ]  # fmt: skip


def _letter(dtype):
    return {"q": "l", "Q": "L"}.get(dtype.char, dtype.char)


def _described(arrays, keep):
    made = (_Array * max(len(arrays), 1))()
    for x, to in zip(arrays, made, strict=False):
        shape, strides = (
            (ctypes.c_int64 * max(x.ndim, 1))(*x.shape),
            (ctypes.c_int64 * max(x.ndim, 1))(*x.strides),
        )
        keep += [shape, strides]
        to.data, to.dtype, to.rank, to.shape, to.strides = (
            x.ctypes.data,
            ord(_letter(x.dtype)),
            x.ndim,
            shape,
            strides,
        )
    return made


def call(*arrays, threads=0):
    """Run the program for these arrays."""
    given = [np.asarray(x) for x in arrays]
    for f in FUNCTIONS:
        if len(f["arguments"]) == len(given) and all(
            _letter(x.dtype) == letter and list(x.shape) == shape
            for x, (_, letter, shape, _) in zip(given, f["arguments"], strict=True)
        ):
            return _run(f, given, threads)
    wanted = "; ".join(
        ", ".join(f"{name}: {letter}{shape}" for name, letter, shape, _ in f["arguments"]) for f in FUNCTIONS
    )
    raise TypeError(f"There is no program for such arrays. They are for: {wanted}.")


def _run(f, given, threads):
    keep = []
    passed = []
    for x, (name, _, _, written) in zip(given, f["arguments"], strict=True):
        if written and not (x.flags.c_contiguous and x.flags.writeable):
            raise ValueError(f"{name} is written to: give an array in C's order that may be written to.")
        passed.append(x if x.flags.c_contiguous else np.ascontiguousarray(x))
    results = [np.empty(shape, letter) for _, letter, shape in f["results"]]
    code = getattr(_library, f"{NAME}_call")(
        _described(passed, keep),
        len(passed),
        _described(results, keep),
        len(results),
        None,
        ctypes.c_int64(0),
        threads,
    )
    if code:
        raise ValueError(f"{NAME}: {_message(code).decode()}.")
    return results[0] if len(results) == 1 else tuple(results) if results else None


def _function(f):
    def function(*arrays, threads=0):
        return call(*arrays, threads=threads)

    function.__name__ = f["name"]
    function.__doc__ = "Arguments: " + ", ".join(
        f"{name} ({np.dtype(letter).name}{shape}{', written to' if written else ''})"
        for name, letter, shape, written in f["arguments"]
    )
    return function


for _f in FUNCTIONS:
    globals()[_f["name"]] = _function(_f)
