"""`mb.distributed.connect(client)`: what is checked before anything is made."""

from __future__ import annotations

import importlib.util
import os
import re
import secrets
import socket
from typing import TYPE_CHECKING, Any

from mirabelle.dispatch.errors import CommunicationError

if TYPE_CHECKING:
    from mirabelle.backends.dask.session import Session


def connect(client: Any, *, direct: bool | None = None, timeout: float = 30.0) -> Session:
    """Run programs over distributed arrays on the workers of a Dask client, from here.

    ```python
    client = dask.distributed.Client()          # or of a cluster
    with mb.distributed.connect(client) as session:
        x = session.run(lambda: mb.arange(1e6, device=mb.DArray[mb.HostArray]))

        @session.program
        def step(x, dt):                        # an ordinary program over arrays
            return x + dt * mb.sin(x)

        x = step(x, 0.1)                        # runs on all workers; x stays there
        step(x, 0.1).fetch()                    # as NumPy array, here
    ```

    The session has the workers there are now, numbered by address. They talk to each other through sockets of
    their own, which only members of the session can join, and which are encrypted where the cluster has
    certificates for its workers. `direct` says whether
    calls go straight to the workers or by way of the scheduler (None: straight, where they can be reached);
    `timeout` how long the workers may take to find each other.

    Parameters
    ----------
    client : distributed.Client
        The client.
    direct : bool or None
        Whether calls from here reach workers without the scheduler; None finds out.
    timeout : float, default 30.0
        How many seconds are waited for workers.

    Returns
    -------
    session
        A context manager, which lets go of all its arrays at the end of the block, as `close()` does.
        `workers` are the addresses, in the order of ranks.
    """
    missing = [p for p in ("dask", "distributed", "cloudpickle") if importlib.util.find_spec(p) is None]
    if missing:
        raise ImportError(
            f"mb.distributed.connect needs {', '.join(missing)}, which is not installed: "
            'pip install "mirabelle[dask]"'
        )
    import distributed

    if not isinstance(client, distributed.Client):
        raise TypeError(
            f"mb.distributed.connect takes a client of Dask, not a {type(client).__name__}: "
            "mb.distributed.connect(dask.distributed.Client())."
        )
    if client.asynchronous:
        raise TypeError(
            "mb.distributed.connect waits for the workers, and this client is asynchronous. "
            "Make one that is not: Client(address, asynchronous=False)."
        )
    return _joined(client, direct, timeout)


def _joined(client: Any, direct: bool | None, timeout: float) -> Session:
    """Make the workers members of a new session, and the session."""
    from mirabelle.backends.dask import member, session, versions

    workers = sorted(client.nthreads(), key=by_address)
    if not workers:
        raise CommunicationError(
            "This client has no workers yet. Start some, and wait: client.wait_for_workers(2)."
        )
    versions.compare(client, workers)
    name = f"mirabelle-{secrets.token_hex(8)}"
    try:
        addresses = client.run(member.prepare, name=name, workers=workers)
        client.run(
            member.join,
            name=name,
            workers=workers,
            members=workers,
            addresses=[addresses[w] for w in workers],
            token=secrets.token_bytes(32),
            timeout=timeout,
            notebook=(socket.gethostname(), os.getpid()),
        )
        return session.Session(client, name, workers, direct)
    except BaseException:
        client.run(member.leave, name=name, workers=workers, on_error="ignore")
        raise


def by_address(address: str) -> tuple[Any, ...]:
    """Neighbouring ranks are on one machine, and 10.0.0.9 comes before 10.0.0.10."""
    return tuple(int(part) if part.isdigit() else part for part in re.split(r"(\d+)", address))
