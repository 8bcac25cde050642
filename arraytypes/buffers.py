"""The buffer protocol: `memoryview(x)`, `bytes(x)`, `file.write(x)`, `hashlib.sha256(x)`.

A buffer shows the same memory as `np.asarray(x)`: a snapshot that later writes to `x` leave alone.
From Python 3.12 on, a class offers it by a method, `__buffer__` (PEP 688). Before, only types
written in C can: there a base type with nothing but that one slot is made through Python's
stable C interface. The slot's few lines are LLVM's, because a Python callback in it could not raise.

`__array_interface__` (`AbstractArray`) says the same: its data is such a buffer and no address. Who reads an
address holds the array and not its version, and would see later writes.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from mirabelle.dispatch.errors import PlaceError


class NoBufferError(PlaceError, BufferError):
    """A buffer was asked of memory that the host cannot read."""


# The attribute that a buffer is asked of: what `np.asarray(x)` gets.
EXPORT = "_exported"


class _Method:
    """The base of all arrays from Python 3.12 on."""

    __slots__ = ()

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(getattr(self, EXPORT))


# int getbuffer(self, view, flags): whatever `self._exported` says, errors included.
_GETBUFFER = """
@name = private constant [{size} x i8] c"{attribute}\\00"
define i32 @getbuffer(i8* %self, i8* %view, i32 %flags) {{
start:
  %getattr = inttoptr i64 {PyObject_GetAttrString} to i8* (i8*, i8*)*
  %getbuffer = inttoptr i64 {PyObject_GetBuffer} to i32 (i8*, i8*, i32)*
  %decref = inttoptr i64 {Py_DecRef} to void (i8*)*
  %name = bitcast [{size} x i8]* @name to i8*
  %exported = call i8* %getattr(i8* %self, i8* %name)
  %failed = icmp eq i8* %exported, null
  br i1 %failed, label %error, label %found
error:
  ret i32 -1
found:
  %result = call i32 %getbuffer(i8* %exported, i8* %view, i32 %flags)
  call void %decref(i8* %exported)
  ret i32 %result
}}
"""


class _Slot(ctypes.Structure):
    _fields_ = (("slot", ctypes.c_int), ("function", ctypes.c_void_p))


class _Spec(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    )


_BF_GETBUFFER = 1
_TPFLAGS_DEFAULT_BASETYPE = (1 << 18) | (1 << 10)
_kept: list[Any] = []  # what the C type points to


def _c_type() -> type:
    """An empty type with the slot `bf_getbuffer`."""
    import llvmlite.binding as llvm

    api = ctypes.pythonapi
    addresses = {
        name: ctypes.cast(getattr(api, name), ctypes.c_void_p).value
        for name in ("PyObject_GetAttrString", "PyObject_GetBuffer", "Py_DecRef")
    }
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(_GETBUFFER.format(size=len(EXPORT) + 1, attribute=EXPORT, **addresses))
    engine = llvm.create_mcjit_compiler(
        module, llvm.Target.from_default_triple().create_target_machine(opt=0, jit=True)
    )
    engine.finalize_object()
    slots = (_Slot * 2)(_Slot(_BF_GETBUFFER, engine.get_function_address("getbuffer")), _Slot(0, None))
    spec = _Spec(b"mirabelle.Buffered", 0, 0, _TPFLAGS_DEFAULT_BASETYPE, slots)
    _kept.extend((engine, slots, spec))
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)(("PyType_FromSpec", api))
    made: type = make(ctypes.addressof(spec))
    return made


def _base() -> Any:
    if sys.version_info >= (3, 12):
        return _Method
    if sys.implementation.name != "cpython":
        return _Method  # arrays are no buffers there; np.asarray(x) is
    return _c_type()


Buffered: Any = _base()
