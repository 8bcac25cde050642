"""One array over several processes: who they are, who has which part, and how parts move.

>>> import mirabelle as mb
>>> x = mb.DArray[mb.HostArray]([[1.0, 2.0], [3.0, 4.0]], layout=mb.distributed.Block(1))
>>> mb.distributed.layout_of(x).layout
Layout(Block(1))
"""

import typing as _typing

from mirabelle.dispatch import loading as _loading

if _typing.TYPE_CHECKING:
    from mirabelle.arraytypes.distributed.combining import batch
    from mirabelle.arraytypes.distributed.communicators import Communicator, communicator, use_communicator
    from mirabelle.arraytypes.distributed.darray import DArray, use_layout
    from mirabelle.arraytypes.distributed.layoutreport import LayoutReport, layout_of
    from mirabelle.arraytypes.distributed.layouts import (
        Block,
        BlockCyclic,
        Layout,
        Partial,
        Ragged,
        Replicated,
    )
    from mirabelle.arraytypes.distributed.localmessages import Delivery, allreduce
    from mirabelle.arraytypes.distributed.moving import exchange, redistribute
    from mirabelle.arraytypes.distributed.together import together
    from mirabelle.backends.dask import connect
    from mirabelle.backends.mpi.finding import mpi_communicator

_LATER = {
    "mirabelle.arraytypes.distributed.combining": "batch",
    "mirabelle.arraytypes.distributed.communicators": "Communicator communicator use_communicator",
    "mirabelle.arraytypes.distributed.darray": "DArray use_layout",
    "mirabelle.arraytypes.distributed.layoutreport": "LayoutReport layout_of",
    "mirabelle.arraytypes.distributed.layouts": "Block BlockCyclic Layout Listed Partial Ragged Replicated",
    "mirabelle.arraytypes.distributed.localmessages": "Delivery allreduce",
    "mirabelle.arraytypes.distributed.moving": "exchange redistribute",
    "mirabelle.arraytypes.distributed.together": "together",
    "mirabelle.backends.dask": "connect",
    "mirabelle.backends.mpi.finding": "mpi_communicator",
}

__all__ = [
    "Block",
    "BlockCyclic",
    "Communicator",
    "DArray",
    "Delivery",
    "Layout",
    "LayoutReport",
    "Partial",
    "Ragged",
    "Replicated",
    "allreduce",
    "batch",
    "communicator",
    "connect",
    "exchange",
    "layout_of",
    "mpi_communicator",
    "redistribute",
    "together",
    "use_communicator",
    "use_layout",
]

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _loading.later(__name__, _LATER)
