"""What CUDA's and ROCm's backends share: kernels for a grid of threads, and CuPy as library."""

from mirabelle.backends.gpu import indexkernels, library, random, reduce, run  # noqa: F401 - they add methods
