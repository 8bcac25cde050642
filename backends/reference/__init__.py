"""The reference device: runs the device kernels' source in a strict interpreter."""

from mirabelle.backends.reference import indexkernels, random, routines, run  # noqa: F401 - they add methods
