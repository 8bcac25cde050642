"""Index-space kernels on graphics cards: `@mb.kernel` run by a grid of threads.

A launch that is like an earlier one (types and layouts of the arguments, shapes of the index space
and of a group) is one look-up and one launch of what was made for that, in `kernelplan`.
"""

from __future__ import annotations

import struct
from typing import Any

from mirabelle.arraytypes.gpu import GPUArray, GPUView
from mirabelle.arraytypes.kernels import Kernel, launcher

# How many launches a kernel keeps the plans of.
KEPT_PLANS = 1024


@launcher(GPUArray)
def launch(kernel: Kernel, shape: tuple[int, ...], group: tuple[int, ...], arguments: list[Any]) -> None:
    """Run a kernel over an index space: a group is a block of threads."""
    key: list[Any] = [shape, group]
    values: list[Any] = []
    _take(arguments, key, values)
    plans = kernel.compiled.get(GPUArray)
    if plans is None:
        plans = kernel.compiled.setdefault(GPUArray, {})
    run = plans.get(tuple(key))
    if run is None:
        from mirabelle.backends.gpu.kernelplan import Plan

        if len(plans) >= KEPT_PLANS:
            plans.clear()
        run = plans[tuple(key)] = Plan(kernel, shape, group, arguments).function()
    try:
        run(*values)
    except struct.error:
        raise TypeError(f"{kernel.__name__}() was given an integer of more than 64 bits.") from None


def _take(arguments: Any, key: list[Any], values: list[Any]) -> None:
    """What a plan is found by, and the addresses and numbers that go into its launch."""
    for x in arguments:
        kind = type(x)
        key.append(kind)
        if issubclass(kind, GPUView):
            key.append(x.layout)
            values.append(x.ptr)
        elif kind is float or kind is int:
            values.append(x)
        elif isinstance(x, tuple):
            key.append(len(x))
            _take(x, key, values)
        elif x is not None:
            values.append(x)
