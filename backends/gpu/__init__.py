"""What CUDA's and ROCm's backends share: kernels for a grid of threads, and CuPy as library."""

from mirabelle.backends.gpu import (  # noqa: F401 - they add methods
    cards,
    described,
    direct,
    indexchecks,
    indexkernels,
    library,
    matmul,
    plans,
    random,
    reduce,
    run,
)
