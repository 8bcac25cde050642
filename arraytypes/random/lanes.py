"""The words that samplers are written in, as NumPy understands them: on a whole block at once.

A sampler is written once, in these words, and runs in two ways: on NumPy arrays, as it stands,
or on single numbers, where a backend compiles the same text and gives these names its own
meaning. Both give the same bits, because samplers use nothing but integer operations and the
operations that IEEE 754 rounds exactly (`+ - * / sqrt`, `floor`, conversions). So every place
gives the same numbers, whatever its logarithm is like.

What follows from that for who writes a sampler: a number is never asked by `if` (`choose` instead), only
`some(...)` or `every(...)` are, by `while` too; no `not` of truth values; and 64-bit integers are
`u8(3)` and not `3`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# Conversions, named as dtypes are.
u4: Any = np.uint32
u8: Any = np.uint64
i4: Any = np.int32
i8: Any = np.int64
f4: Any = np.float32
f8: Any = np.float64

choose: Any = np.where
sqrt: Any = np.sqrt
floor: Any = np.floor
some: Any = np.any
every: Any = np.all


def bits(x: Any) -> Any:
    """The 64 bits of a double."""
    return x.view(np.uint64)


def number(x: Any) -> Any:
    """The double of 64 bits."""
    return x.view(np.float64)


def bits4(x: Any) -> Any:
    """The 32 bits of a single."""
    return x.view(np.uint32)


def number4(x: Any) -> Any:
    """The single of 32 bits."""
    return x.view(np.float32)
