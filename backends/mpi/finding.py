"""Communicators over mpi4py's, for programs started by mpiexec or srun.

Importing it reads the environment. mpi4py is imported, and MPI started, when a communicator is first asked for.
"""

from __future__ import annotations

import functools
import os
from typing import Any

from mirabelle.arraytypes.distributed import communicators
from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.backends.mpi import environment
from mirabelle.dispatch.errors import CommunicationError
from mirabelle.dispatch.settings import settings


def mpi_communicator(comm: Any = None) -> Communicator:
    """A communicator over one of mpi4py's (all processes, unless given). All its members call it together.

    It works on a duplicate: messages of your own on `comm` never mix with those of arrays. Given the same one
    again it returns what it made before.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm or None
        The group; None is all processes.

    Returns
    -------
    mb.distributed.Communicator
        Its `rank` and `size` are those of `comm`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mpi4py import MPI                                            # doctest: +SKIP
    >>> row = MPI.COMM_WORLD.Split(MPI.COMM_WORLD.rank // 2)              # doctest: +SKIP
    >>> with mb.distributed.use_communicator(mb.distributed.mpi_communicator(row)):  # doctest: +SKIP
    ...     x = mb.DArray[mb.HostArray](data)
    """
    MPI = environment.library()
    if comm is None:
        comm = MPI.COMM_WORLD
    if not isinstance(comm, MPI.Intracomm) or comm == MPI.COMM_NULL:
        raise CommunicationError(
            f"{comm!r} is no communicator of one group of processes. Give one of mpi4py's, such as "
            "MPI.COMM_WORLD or what its Split returns."
        )
    key = _attribute()
    made = comm.Get_attr(key)
    if made is None:
        from mirabelle.backends.mpi import ending
        from mirabelle.backends.mpi.communicator import MPICommunicator
        from mirabelle.backends.mpi.watch import Watch

        ending.install()
        made = MPICommunicator(comm.Dup(), Watch(comm), tuple(range(comm.size)))
        comm.Set_attr(key, made)
    return made


@functools.cache
def _attribute() -> int:
    """Under which MPI's communicators keep what was made of them."""
    return environment.library().Comm.Create_keyval()


def find() -> Communicator | None:
    """The communicator of all processes that a launcher of MPI started with this one."""
    if settings.communicator == "mpi":
        return mpi_communicator()
    if settings.communicator != "auto" or not environment.is_started():
        return None
    return mpi_communicator()


def _prepare() -> None:
    """Under a launcher: failures end all processes, and those of one machine share its cores."""
    from mirabelle.backends.mpi import ending

    ending.install()
    here = environment.local_size() or 1
    mine = settings.num_threads
    # Where the launcher bound this process to cores of its own there is nothing to share.
    if here > 1 and "MIRABELLE_NUM_THREADS" not in os.environ and mine == os.cpu_count():
        settings.num_threads = max(1, mine // here)


communicators.finders.append(find)
if settings.communicator != "alone" and environment.is_started():
    _prepare()
