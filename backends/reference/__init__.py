"""The reference device: runs the device kernels' source in a strict interpreter."""

from mirabelle.backends.reference import run  # noqa: F401 - adds methods
