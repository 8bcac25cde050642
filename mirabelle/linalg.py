"""Linear algebra: the array API standard's `linalg`, and what NumPy and SciPy have beyond it.

>>> import mirabelle as mb
>>> A, b = mb.HostArray([[4.0, 2.0], [2.0, 5.0]]), mb.HostArray([6.0, 7.0])
>>> print(mb.linalg.solve(A, b))
[1. 1.]
>>> F = mb.linalg.factorize(A)   # to solve with A more than once
>>> print(F.solve(b))
[1. 1.]
"""

from mirabelle.dispatch import loading as _loading
from mirabelle.dispatch.loading import public_names as _public_names

with _loading.lock:  # (before the locks of the modules)
    from mirabelle.arraytypes.functions.chains import gemm, matrix_power, multi_dot
    from mirabelle.arraytypes.functions.decompositions import (
        cholesky,
        eig,
        eigh,
        eigvals,
        eigvalsh,
        hessenberg,
        ldl,
        lu,
        null_space,
        orth,
        polar,
        qr,
        schur,
        svd,
        svdvals,
    )
    from mirabelle.arraytypes.functions.factorizations import (
        LDL,
        LU,
        QR,
        SVD,
        Cholesky,
        Eigen,
        Factorization,
        Triangular,
        factorize,
    )
    from mirabelle.arraytypes.functions.krylov import SolverInfo, cg, gmres, minres
    from mirabelle.arraytypes.functions.lapack import LinAlgError
    from mirabelle.arraytypes.functions.matrices import cross, diagonal, outer, trace
    from mirabelle.arraytypes.functions.matrixfunctions import block_diag, expm, logm, sqrtm
    from mirabelle.arraytypes.functions.norms import matrix_norm, norm, vector_norm
    from mirabelle.arraytypes.functions.products import khatri_rao, matrix_transpose, tensordot, vecdot
    from mirabelle.arraytypes.functions.solving import (
        cho_factor,
        cho_solve,
        cond,
        det,
        inv,
        lstsq,
        lu_factor,
        lu_solve,
        matrix_rank,
        pinv,
        slogdet,
        solve,
        solve_triangular,
        tensorinv,
        tensorsolve,
    )
    from mirabelle.dispatch.errors import ConvergenceWarning
    from mirabelle.dispatch.verbs import matmul

matrix_exp = expm

_loading.arrays_come(__name__)
__all__ = _public_names(__name__)  # pyright: ignore[reportUnsupportedDunderAll]
