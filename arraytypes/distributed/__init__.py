"""Distributed arrays: one array over several processes, each with a local array of any type."""

from mirabelle.arraytypes.distributed import (
    combining,
    execution,
    gathering,
    products,
    routines,
    scanning,
    statements,
)
from mirabelle.arraytypes.distributed.darray import DArray
from mirabelle.arraytypes.distributed import counting, factoring, fourier, joining, searching, sorting  # isort: skip  (which stand on those)

DArray._reduction_made = staticmethod(combining.note)

__all__ = ["DArray", "combining", "execution", "gathering", "products", "routines", "scanning", "statements"]
