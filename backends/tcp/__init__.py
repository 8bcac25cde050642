"""Sockets: processes on one machine or many, with nothing but Python between them.

What MPI is not installed for, and what Dask's workers talk through (`backends/dask`). Whoever starts the
processes shares the addresses: each makes a `Listener`, and all call `connect`.
"""

from mirabelle.backends.tcp.communicator import TCPCommunicator
from mirabelle.backends.tcp.rendezvous import TLS, Listener, connect, local_group

__all__ = ["TLS", "Listener", "TCPCommunicator", "connect", "local_group"]
