"""The types of arrays and of what functions return, for `isinstance`, annotations of methods, and reading.

Types that are called to make an array are in `mirabelle`, too; those that only results have, and the bases of
others, are here alone.

>>> import mirabelle as mb
>>> isinstance(mb.ones((2, 3)).T, mb.types.Transpose)
True
>>> issubclass(mb.HostArray, mb.types.DenseArray)
True
"""

import typing as _typing

from mirabelle.dispatch import loading as _loading

with _loading.lock:  # (before the locks of the modules)
    from mirabelle.arraytypes.abstract import AbstractArray
    from mirabelle.arraytypes.dense import DenseArray
    from mirabelle.arraytypes.gpu import CuArray, GPUArray, ROCArray
    from mirabelle.arraytypes.host import HostArray
    from mirabelle.arraytypes.kernels import KernelContext
    from mirabelle.arraytypes.parts import DiagonalView, ImagPart, RealPart, Reinterpreted, SlidingWindows
    from mirabelle.arraytypes.reference import RefArray
    from mirabelle.arraytypes.structured.banded import Banded, Bidiagonal, Diagonal, Identity, Tridiagonal
    from mirabelle.arraytypes.structured.base import Implicit, Structured
    from mirabelle.arraytypes.structured.blocks import BlockDiagonal
    from mirabelle.arraytypes.structured.concat import Concat
    from mirabelle.arraytypes.structured.conjugated import Adjoint, Conj
    from mirabelle.arraytypes.structured.implicit import Fill, Ones, Range, Zeros
    from mirabelle.arraytypes.structured.inverse import Inverse
    from mirabelle.arraytypes.structured.kronecker import Kronecker
    from mirabelle.arraytypes.structured.kronecker_sum import KroneckerSum
    from mirabelle.arraytypes.structured.lowrank import LowRank
    from mirabelle.arraytypes.structured.mirrored import Hermitian, Symmetric
    from mirabelle.arraytypes.structured.reordered import Reordered
    from mirabelle.arraytypes.structured.sparse import CSR
    from mirabelle.arraytypes.structured.toeplitz import Circulant, Toeplitz
    from mirabelle.arraytypes.structured.triangular import (
        LowerTriangular,
        Triangular,
        UnitLowerTriangular,
        UnitUpperTriangular,
        UpperTriangular,
    )
    from mirabelle.arraytypes.wrappers import BroadcastTo, PermutedDims, Reshaped, Transpose, View, Wrapper
    from mirabelle.dispatch.counters import Counters

if _typing.TYPE_CHECKING:
    from mirabelle.arraytypes.distributed.darray import DArray
    from mirabelle.arraytypes.duals.base import Dual
    from mirabelle.arraytypes.graphs import Graph
    from mirabelle.arraytypes.streams import Stream
    from mirabelle.backends.explain import Explanation

_LATER = {
    "mirabelle.arraytypes.distributed.darray": "DArray",
    "mirabelle.arraytypes.duals.base": "Dual",
    "mirabelle.arraytypes.graphs": "Graph",
    "mirabelle.arraytypes.streams": "Stream",
    "mirabelle.backends.explain": "Explanation",
}

__all__ = [
    "CSR",
    "AbstractArray",
    "Adjoint",
    "Banded",
    "Bidiagonal",
    "BlockDiagonal",
    "BroadcastTo",
    "Circulant",
    "Concat",
    "Conj",
    "Counters",
    "CuArray",
    "DArray",
    "DenseArray",
    "Diagonal",
    "DiagonalView",
    "Dual",
    "Explanation",
    "Fill",
    "GPUArray",
    "Graph",
    "Hermitian",
    "HostArray",
    "Identity",
    "ImagPart",
    "Implicit",
    "Inverse",
    "KernelContext",
    "Kronecker",
    "KroneckerSum",
    "LowRank",
    "LowerTriangular",
    "Ones",
    "PermutedDims",
    "ROCArray",
    "Range",
    "RealPart",
    "RefArray",
    "Reinterpreted",
    "Reordered",
    "Reshaped",
    "SlidingWindows",
    "Stream",
    "Structured",
    "Symmetric",
    "Toeplitz",
    "Transpose",
    "Triangular",
    "Tridiagonal",
    "UnitLowerTriangular",
    "UnitUpperTriangular",
    "UpperTriangular",
    "View",
    "Wrapper",
    "Zeros",
]

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _loading.later(__name__, _LATER)
