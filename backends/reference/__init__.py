"""The reference device: runs the device kernels' source in a strict interpreter."""

from mirabelle.backends.reference import (  # noqa: F401 - they add methods
    indexkernels,
    plans,
    random,
    routines,
    run,
)
