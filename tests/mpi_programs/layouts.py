"""Arrays in all pairs of layouts, reshaped, sorted and searched: all processes must come to the same plans."""

import itertools
import os

import numpy as np

import mirabelle as mb
from mirabelle.distributed import Block, BlockCyclic, Layout, Listed, Ragged, Replicated

# The type of local arrays (on cards: MIRABELLE_TEST_ARRAY=CuArray).
LOCAL = getattr(mb, os.environ.get("MIRABELLE_TEST_ARRAY", "HostArray"))
D = mb.DArray[LOCAL]
P = mb.distributed.communicator().size
a = np.arange(12.0, dtype="f4").reshape(3, 4)
layouts = [
    None, Block(0), Block(1), BlockCyclic(0, 2), BlockCyclic(1, 2), Replicated(),
    Ragged(0, (2, 0, 1)), Ragged(1, (3, 0, 1)), Layout(Block(0), Block(1), mesh=(P, 1)),
    Layout(Block(0), Block(1), mesh=(1, P)), Listed.of(0, [P - 1, 0, P - 1], P),
    Listed.of(1, [0, P - 1, P - 1, 0], P),
]  # fmt: skip
flat = a.T.reshape(-1)
for first, second in itertools.product(layouts, layouts):
    x = D(a, layout=first).T
    if second is not None:
        try:
            x = mb.distributed.redistribute(x, second)
        except ValueError:  # parts for another shape
            continue
    # Parts of one row are in the orders of C and of Fortran at once, others are not.
    y = mb.reshape(x, (-1,))
    sorted_ = mb.sort(y)
    assert np.array_equal(mb.to_numpy(y), flat), (first, second)
    assert np.array_equal(mb.to_numpy(sorted_), np.sort(flat)), (first, second)
    assert np.array_equal(mb.to_numpy(mb.searchsorted(sorted_, x)), np.searchsorted(np.sort(flat), a.T))
    assert np.array_equal(mb.to_numpy(mb.sum(x, axis=0)), a.T.sum(0)), (first, second)
print("fine")
