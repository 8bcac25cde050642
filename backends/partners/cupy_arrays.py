"""CuPy: its arrays as operands beside ours, over the same memory.

`x + c`, `mb.add(c, x)`, `mb.sum(c)` and `x @ c` are ours. `c + x` asks CuPy first, which takes part by
itself: the result is a CuPy array.
"""

from __future__ import annotations

from typing import Any

import cupy

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.elementwise import Convertible, Given, Scalar
from mirabelle.arraytypes.gpu_interop import shared
from mirabelle.dispatch import verbs


def _taking(verb: Any) -> Any:
    def run(*operands: Any, **options: Any) -> Any:
        return verb(*[shared(x) if isinstance(x, cupy.ndarray) else x for x in operands], **options)

    return run


for _verb in verbs.ELEMENTWISE.values():
    _verb.core.register(_taking(_verb), (Given | cupy.ndarray,) * _verb.core.arity)

for _verb in (
    verbs.sum, verbs.prod, verbs.min, verbs.max, verbs.any, verbs.all, verbs.count_nonzero, verbs.mean,
    verbs.var, verbs.std, verbs.norm, verbs.clip, verbs.astype, verbs.reshape, verbs.permute_dims,
    verbs.broadcast_to, verbs.accumulate, verbs.copy,
):  # fmt: skip
    _verb.core.register(_taking(_verb), (cupy.ndarray, *[object] * (_verb.core.arity - 1)))

_ANY = AbstractArray | list | tuple | Scalar | Convertible | cupy.ndarray
for _verb in (verbs.matmul, verbs.dot):
    for _signature in ((cupy.ndarray, _ANY), (_ANY, cupy.ndarray), (cupy.ndarray, cupy.ndarray)):
        _verb.core.register(_taking(_verb), _signature)
