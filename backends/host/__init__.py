"""The host backend: NumPy on blocks while an expression is cold, compiled kernels when hot."""

from mirabelle.backends.host import (  # noqa: F401 - they add methods
    blas,
    decompositions,
    halos,
    indexkernels,
    kronecker,
    library,
    picking,
    plans,
    random,
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
