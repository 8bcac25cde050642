"""Derivatives by dual numbers: `mb.autodiff.gradient(f, x)`.

>>> import mirabelle as mb
>>> print(mb.autodiff.gradient(lambda x: mb.sum(x * mb.sin(x)), mb.HostArray([0.0])))
[0.]
"""

from mirabelle.dispatch import loading as _loading

with _loading.lock:  # (before the locks of the modules)
    from mirabelle.arraytypes.autodiff import (
        chunk_bytes,
        chunk_size,
        derivative,
        gradient,
        hessian,
        jacobian,
        jvp,
        value,
        value_and_gradient,
    )
    from mirabelle.arraytypes.duals.base import DualError
    from mirabelle.arraytypes.duals.rules import differentiable, rule

_loading.arrays_come(__name__)

__all__ = [
    "DualError",
    "chunk_bytes",
    "chunk_size",
    "derivative",
    "differentiable",
    "gradient",
    "hessian",
    "jacobian",
    "jvp",
    "rule",
    "value",
    "value_and_gradient",
]
