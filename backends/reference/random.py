"""Random numbers on the reference device: the samplers as NumPy runs them, in the device's memory."""

from __future__ import annotations

import numpy as np

from mirabelle.arraytypes.random import onblocks
from mirabelle.arraytypes.random.samplers import Draw
from mirabelle.arraytypes.reference import RefArray, RefView
from mirabelle.backends.host.interpreter import quietly
from mirabelle.backends.reference.run import count


def fill(dest: RefView, draw: Draw, starts: np.ndarray) -> None:
    """Fill the rows of `dest`; `starts` has the place of each row's first element in the whole array."""
    views = [p for p in draw.parameters if isinstance(p, RefView)]
    count(views, [dest])
    here = tuple([p._host() if isinstance(p, RefView) else p for p in draw.parameters])
    if dest.size:
        quietly(onblocks.fill, dest._host(), Draw(draw.sampler, draw.stream, here), starts)


RefArray._draw = staticmethod(fill)  # type: ignore[method-assign, assignment]
