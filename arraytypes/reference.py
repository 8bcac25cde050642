"""RefArray: arrays on a fake card that is always there, with a real one's restrictions.

Its memory is not the host's: no NumPy array, buffer or pointer of it can be had; only kernels
and explicit transfers touch it. It runs what cards run, on the simulated driver (see
`backends/gpu/simulator.py`), so that everything a card needs is tested without one.
"""

from __future__ import annotations

from mirabelle.arraytypes.gpu import GPUArray, add_family
from mirabelle.arraytypes.parametric import D
from mirabelle.dispatch.styles import device


class RefArray(GPUArray[D]):
    """An array on a fake card: what runs here runs on `CuArray`, and what a card refuses is refused here.

    Parameters
    ----------
    data : array, list or number
        What is copied into the array.
    dtype : dtype or None
        The dtype of the result; None keeps that of the data.
    device : int or None
        Which fake card; None is the one in use.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.RefArray([1.0, 2.0, 3.0])
    >>> mb.to_numpy(x * x + 1)
    array([ 2.,  5., 10.])
    """

    __module__ = "mirabelle"
    __slots__ = ()

    home = device("ref")
    fake = True


add_family(RefArray, {})
