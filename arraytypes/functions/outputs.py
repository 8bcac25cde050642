"""Where results go (NumPy's `out=`), and whether they are worth a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import MOVED
from mirabelle.arraytypes.wrappers import root_of
from mirabelle.dispatch import verbs
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import Leaf


def into(out: Any, result: Any, casting: Any = "same_kind") -> Any:
    """`result`, written into `out` (ours or NumPy's) and as `out` if there is one.

    The shapes must be equal, as NumPy wants it: nothing is stretched into `out`.
    """
    if out is None:
        return result
    if isinstance(out, tuple) and len(out) == 1:  # as ufuncs spell it
        (out,) = out
    if not isinstance(out, (AbstractArray, np.ndarray)):
        raise TypeError(f"return arrays must be arrays: out= is a {type(out).__name__}.")
    if isinstance(result, (tuple, list)):
        raise TypeError(f"out= is one array, and {len(result)} come out. Write `out[...] = result[0]`.")
    if out.shape != result.shape:
        raise ValueError(
            f"output parameter has shape {out.shape} and the result {result.shape}. Leave out= away, or make "
            f"the output with mb.empty({result.shape})."
        )
    if isinstance(out, AbstractArray):
        return verbs.assign(out, result, casting=casting)
    np.copyto(out, verbs.numpy_view(result), casting=casting)
    return out


def library_is_quicker(family: Any, size: int, *moved: Any) -> bool:
    """Is a result so small that one call of the host's library costs less than kernels writing its parts?

    `moved` are operands whose elements are only moved: what is in memory already, one thread moves sooner than
    it computes.
    """
    if family.home.rank >= 2 or any(getattr(x, "carries_derivatives", False) for x in moved):
        return False
    if size <= settings.small_size:
        return True
    return bool(moved) and size <= MOVED * settings.thread_size and not any(map(pending, moved))


def pending(x: Any) -> bool:
    """Is an array still a tree, which a fused kernel could take in?"""
    node = getattr(root_of(x), "_node", None)
    return node is not None and type(node) is not Leaf and node.value is None
