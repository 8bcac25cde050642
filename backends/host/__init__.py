"""The host backend: NumPy on blocks while an expression is cold, compiled kernels when hot."""

from mirabelle.backends.host import blas, decompositions, indexkernels, library, random, reduce, routines, run  # noqa: F401 - they add methods
