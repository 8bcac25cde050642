"""Philox4x32-10: four random 32-bit words as a function of a counter and a key.

Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC11). Of that family we
take the one of 32-bit words: its products are 32 x 32 bits, which GPUs and the vector units of
processors have, and 64 x 64 bits is what neither has. (NumPy's Philox is the 64-bit one.)

The counter says which words are wanted, so nothing has to be drawn in order:

    bits   0-47    the element's place in the whole array, or the place of its block
    bits  48-63    the draw: how many blocks this element has used before
    bits  64-127   the call: how many times the generator has been called before

Words are held in 64 bits; the upper half is zero.
"""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.random.lanes import u8

# Kernel source: what follows is also compiled by the backends (see `lanes`).

LOW = u8(0xFFFFFFFF)
HALF = u8(32)
DRAW = u8(16)
FACTOR_0, FACTOR_1 = u8(0xD2511F53), u8(0xCD9E8D57)
STEP_0, STEP_1 = u8(0x9E3779B9), u8(0xBB67AE85)


def philox(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> Any:
    """Ten rounds on a counter of four words, with a key of two."""
    for _ in range(10):
        p0 = FACTOR_0 * c0
        p1 = FACTOR_1 * c2
        c0, c1, c2, c3 = (p1 >> HALF) ^ c1 ^ k0, p1 & LOW, (p0 >> HALF) ^ c3 ^ k1, p0 & LOW
        k0 = (k0 + STEP_0) & LOW
        k1 = (k1 + STEP_1) & LOW
    return c0, c1, c2, c3


def words(index: Any, draw: Any, stream: Any) -> Any:
    """The four 32-bit words of a place and draw. `stream`: the words of the key and of the call."""
    k0, k1, c2, c3 = stream
    return philox(index & LOW, (index >> HALF) | (draw << DRAW), c2, c3, k0, k1)


def long_words(index: Any, draw: Any, stream: Any) -> Any:
    """The same as two 64-bit words, the first word of each low."""
    w0, w1, w2, w3 = words(index, draw, stream)
    return w0 | (w1 << HALF), w2 | (w3 << HALF)
