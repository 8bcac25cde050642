"""Distributed arrays: one array over several processes, each with a local array of any type."""

from mirabelle.arraytypes.distributed import (
    combining,
    counting,
    execution,
    factoring,
    fourier,
    gathering,
    joining,
    kernels,
    products,
    routines,
    scanning,
    searching,
    sorting,
    statements,
)
from mirabelle.arraytypes.distributed.darray import DArray
from mirabelle.dispatch import loading

loading.complete(__name__)

__all__ = [
    "DArray",
    "combining",
    "counting",
    "execution",
    "factoring",
    "fourier",
    "gathering",
    "joining",
    "kernels",
    "products",
    "routines",
    "scanning",
    "searching",
    "sorting",
    "statements",
]
