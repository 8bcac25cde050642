"""What DaCe's paper says of its efficiency in weak scaling: words and the few numbers it prints.

The curves of its Figure 12 are not read off: a reader can lay them beside ours.
"""

from __future__ import annotations

SOURCE = (
    'A. N. Ziogas et al., "Productivity, Portability, Performance: Data-Centric Python", SC21, abstract, '
    "section 4.4, Table 2 and Figure 12: weak scaling from 1 to 1,296 processes (648 nodes of Piz Daint, 2 x "
    "18 cores, Cray Aries), one process of 18 threads a socket; distributing the data is not timed"
)
# By kernel: what is said, and the least efficiency that it means, where there is a number.
_DOITGEN = ("close to perfect: nothing is sent", None)
_VECTORS = ("scales very well until 64 processes, above 60% at all", 0.60)
_MATRICES = ("lower, as expected of MKL-ScaLAPACK", None)
_STENCILS = ("between the products with vectors and those of matrices", None)
DACE: dict[str, tuple[str, float | None]] = {
    **dict.fromkeys(("atax", "bicg", "gemver", "gesummv", "mvt"), _VECTORS),
    "doitgen": _DOITGEN,
    **dict.fromkeys(("gemm", "k2mm", "k3mm"), _MATRICES),
    **dict.fromkeys(("jacobi_1d", "jacobi_2d"), _STENCILS),
}
BEST = ("up to, on 512 nodes (abstract)", 0.9316)
PEERS = (
    "Of Dask 2.31 and Legate it says: a sharp drop in almost all kernels from the second process on; Dask's "
    "jacobi_1d, more than 30 times slower than DaCe's, is more efficient up to 16 processes."
)
