"""Sharing a card's memory with CuPy, PyTorch, JAX, Numba and other libraries: nothing is copied.

Three ways out, and two in:

- `__cuda_array_interface__` (`cupy.asarray(x)`, `numba.cuda.as_cuda_array(x)`) *shares*: writes go both
  ways, and from then on expressions over `x` are evaluated at once, because others may write to it at any time.
- DLPack (`cupy.from_dlpack(x)`, `torch.from_dlpack(x)`, `jax.dlpack.from_dlpack(x)`) shows the contents as they
  are now: as long as somebody holds what was made of it, a write to `x` goes to other memory. Who imports it
  must not write to it; `torch.from_dlpack(mb.copy(x))` is for who wants to.
- `mb.asarray(c)` and `mb.from_dlpack(c)` share an array of another library; `mb.CuArray(c)` copies it, on
  the card.

An operator whose first operand is CuPy's is CuPy's (`c + x` is a CuPy array); `x + c` is ours.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import VIEWS, wrap
from mirabelle.arraytypes.gpu import GPUArray
from mirabelle.arraytypes.lending import family_in_memory, own
from mirabelle.arraytypes.wrappers import root_of
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import FOREIGN, Leaf

# DLPack's kinds of devices that are cards: memory of CUDA, of CUDA that the host reads too, of ROCm.
_KINDS = {2: "cuda", 13: "cuda", 10: "rocm"}
# Of these, no array is another library's.
_OURS_AND_HOST = (AbstractArray, np.ndarray, np.generic, list, tuple, int, float, complex, str, bytes)


# Out


def interface(x: Any) -> dict[str, Any]:
    """What `x.__cuda_array_interface__` says. The memory counts as shared from then on."""
    family = family_in_memory(type(x))
    if family is None or not issubclass(family, GPUArray) or family.fake:
        raise AttributeError(
            f"{type(x).__name__!r} object has no attribute '__cuda_array_interface__': its elements do not lie "
            "in the memory of a card."
        )
    root = root_of(x)
    verbs.leaf_of(root)
    readonly = False
    try:
        own(x)  # what reads the old contents keeps them: it does not see what others write
    except ValueError:
        readonly = True
    leaf = verbs.leaf_of(root)
    share_leaf(leaf)
    view = verbs.lower(x, leaf)
    return {
        "version": 3,
        "shape": view.shape,
        "typestr": view.dtype.str,
        "data": (view.ptr if view.size else 0, readonly),
        "strides": None if view.contiguous else view.strides,
        "stream": family.driver().stream_number(),
    }


def share_leaf(leaf: Leaf) -> None:
    """Note that others may write to this memory: writes go to it in place, and reading it does not wait."""
    leaf.foreign = True
    leaf.size = FOREIGN
    leaf.known = None


def export(x: Any, stream: Any, max_version: Any, copy: Any) -> Any:
    """The DLPack capsule of an array on a card, which other libraries of that card import without a copy."""
    if copy:
        x = verbs.copy(x)
    root = verbs.leaf_of(root_of(x))
    leaf = verbs.leaf_of(x)
    version = None if max_version is None else tuple(max_version)
    # Whoever imports it holds the views, and so counts as a reader.
    driver = type(root_of(x)).driver()
    lent = driver.lent(leaf.view, (leaf.view, root.view))
    with driver.using():
        capsule = lent.__dlpack__(stream=stream, max_version=version)
    if version is not None and version[0] >= 1 and not copy and not root.foreign:
        _mark_read_only(capsule)
    return capsule


class _Versioned(ctypes.Structure):
    """The head of DLPack's DLManagedTensorVersioned, in C."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
    )


_READ_ONLY = 1


def _mark_read_only(capsule: Any) -> None:
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype = ctypes.c_void_p
    address.argtypes = (ctypes.py_object, ctypes.c_char_p)
    _Versioned.from_address(address(capsule, b"dltensor_versioned")).flags |= _READ_ONLY


# In


def card_of(x: Any) -> tuple[str, int] | None:
    """The kind and the number of the card on which another library's array lies; None if it is on none."""
    if isinstance(x, _OURS_AND_HOST):
        return None
    if hasattr(type(x), "__dlpack_device__"):
        kind, index = x.__dlpack_device__()
        name = _KINDS.get(int(kind))
        return None if name is None else (name, int(index))
    if not hasattr(type(x), "__cuda_array_interface__"):
        return None
    said = getattr(x, "__cuda_array_interface__", None)
    if said is None:
        return None
    pointer = said["data"][0]
    return "cuda", (family_of("cuda").driver().card_at(pointer) if pointer else 0)


def on_card(x: Any) -> bool:
    """Is it an array of another library, in the memory of a card?"""
    return card_of(x) is not None


def family_of(kind: str) -> Any:
    """The array type of the first card of a kind."""
    return next(f for f in VIEWS.values() if issubclass(f, GPUArray) and f.home.kind == kind)


def shared(x: Any) -> Any:
    """An array of ours over the memory of another library's: writes go both ways."""
    found = card_of(x)
    assert found is not None
    kind, index = found
    family = family_of(kind).on(index)
    view = family.driver().borrowed(x, family.view_type)
    # JAX's arrays never change, and others may say that theirs must not.
    if type(x).__module__.partition(".")[0] in ("jax", "jaxlib") or _says_read_only(x):
        view.proxy.flags.writeable = False
    return wrap(family, Leaf(view, foreign=True))


def _says_read_only(x: Any) -> bool:
    if hasattr(type(x), "__dlpack_device__"):
        return False  # (to ask PyTorch for the interface may fail where DLPack does not)
    return bool(x.__cuda_array_interface__["data"][1])
