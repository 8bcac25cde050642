"""Memory of a card that is to be written where it is: those who read it read a copy from then on.

Elsewhere a write goes to other memory where somebody still reads the old (see arraytypes/assign.py). A graph
has addresses, so there it is the readers that move.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.gpu import GPUView, view_at
from mirabelle.dispatch.errors import DeviceError
from mirabelle.dispatch.tree import Leaf, memory_alone


def claim(root: Any) -> Leaf:
    """Leave an array alone with its memory: a new version, which nobody else reads."""
    home = twin(root._node.view)
    move_away(root._node)
    root._node = Leaf(home)
    return root._node  # type: ignore[no-any-return]


def move_away(leaf: Leaf) -> None:
    """Let a leaf show a copy of its contents in other memory, to all that read it.

    Its memory is then free to be written. (A copy of the whole piece: so parts keep their strides.)
    """
    if not memory_alone(leaf):  # somebody outside has its address
        raise DeviceError(
            f"A graph is about to write an array of shape {leaf.shape} whose contents another library still "
            "shows (by DLPack). Let go of what was made of it, or hand out a copy: "
            "`torch.from_dlpack(mb.copy(x))`."
        )
    view, parts = leaf.view, leaf.held_parts()
    family: Any = type(view).family
    fresh = _fresh(family, view)
    family._copy_into(fresh, view)
    for part in parts:
        part.view = twin(part.view, fresh.owner, fresh.ptr + part.view.ptr - view.ptr)
    leaf.view = fresh


def _fresh(family: Any, view: GPUView) -> Any:
    order = "C" if view.contiguous else "F"
    fresh = family._empty(view.shape, view.dtype, order)
    if fresh.strides != view.strides:
        # Neither rows nor columns: of the same strides, in as much memory as it spans.
        span = sum((n - 1) * s for n, s in zip(view.shape, view.strides, strict=True)) + view.itemsize
        raw = family._empty((span,), np.dtype(np.uint8))
        fresh = view_at(type(view), raw.owner, raw.ptr, view.shape, view.dtype, view.strides)
    return fresh


def twin(view: GPUView, owner: Any = None, ptr: int | None = None) -> Any:
    """Another view of the same memory, or of other memory in the same way."""
    if ptr is None:
        owner, ptr = view.owner, view.ptr
    return view_at(type(view), owner, ptr, view.shape, view.dtype, view.strides)
