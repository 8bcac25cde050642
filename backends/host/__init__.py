"""The host backend: NumPy on blocks while an expression is cold, compiled kernels when hot."""

from mirabelle.backends.host import (  # noqa: F401 - they add methods
    blas,
    copyto,
    decompositions,
    indexkernels,
    kronecker,
    library,
    picking,
    reduce,
    routines,
    run,
    sorting,
    sparse,
    structured,
    toeplitz,
    transforms,
    vectors,
)
