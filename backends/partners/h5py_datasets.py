"""h5py: `dataset.read_direct(x)` fills an array of the host, and `write_direct(x)` writes one.

h5py fills NumPy's arrays only, and keeps no table of other types: its two methods are told here of ours. All
else h5py asks of the arrays themselves.

>>> import mirabelle as mb, h5py
>>> file, x = h5py.File("a", "w", driver="core", backing_store=False), mb.zeros(3)
>>> file["x"] = [1.0, 2.0, 3.0]
>>> file["x"].read_direct(x)
>>> x
HostArray[float64, 1]([1., 2., 3.])
"""

from __future__ import annotations

import functools
from typing import Any

import h5py
import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.dispatch import verbs

_read, _write = h5py.Dataset.read_direct, h5py.Dataset.write_direct


@functools.wraps(_read)
def read_direct(self: Any, dest: Any, source_sel: Any = None, dest_sel: Any = None) -> None:
    if not isinstance(dest, AbstractArray):
        return _read(self, dest, source_sel, dest_sel)
    values = np.array(dest)  # which refuses a device's array, with the cure; what is not read stays
    _read(self, values, source_sel, dest_sel)
    verbs.assign(dest, values)
    return None


@functools.wraps(_write)
def write_direct(self: Any, source: Any, source_sel: Any = None, dest_sel: Any = None) -> None:
    values = np.ascontiguousarray(np.asarray(source)) if isinstance(source, AbstractArray) else source
    return _write(self, values, source_sel, dest_sel)


if _read.__module__ != __name__:  # once
    h5py.Dataset.read_direct, h5py.Dataset.write_direct = read_direct, write_direct
