"""Dask as the control plane: one notebook, many workers, each with its part of every distributed array.

`connect` joins a client's workers by sockets (`backends/tcp`). A program is shipped once to all of them and
then called by its number; it runs on all at the same time, as under `mpiexec`. Dask starts the workers, shows
what they do on its dashboard, and carries calls and small results; it never sees a single operation.

Only `connecting` is imported with mirabelle; the rest needs `dask` and `distributed`, and waits until then.
"""

from mirabelle.backends.dask.connecting import connect

__all__ = ["connect"]
