"""How processes find each other: each listens at an address, all know all addresses, and a secret token.

The token itself is never sent: both ends of a new connection show that they know it (a keyed digest of a
number that the other has just drawn). Who does not know it is sent away, and waited for no longer.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import struct
import time
from collections.abc import Sequence
from types import TracebackType

from mirabelle.backends.tcp.communicator import TCPCommunicator
from mirabelle.backends.tcp.link import Link
from mirabelle.dispatch.errors import CommunicationError

GREETING = b"mirabelle tcp 1\n"
# What who connects says first: the greeting, its rank, the size of the group, a number drawn for the other.
HELLO = struct.Struct(f"!{len(GREETING)}sII16s")
DIGEST = 32
# So long may a stranger keep us from the next one.
PATIENCE = 5.0


class Listener:
    """A socket at which others connect. `address` is to be shared with them.

    >>> from mirabelle.backends.tcp import Listener
    >>> with Listener("127.0.0.1") as listener:
    ...     listener.address[0]
    '127.0.0.1'
    """

    def __init__(self, host: str, port: int = 0) -> None:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        self._socket = socket.create_server((host, port), family=family, backlog=1024)
        bound = self._socket.getsockname()
        self.address: tuple[str, int] = (bound[0], bound[1])

    def accept(self, deadline: float) -> socket.socket:
        self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
        return self._socket.accept()[0]

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Listener:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()


def connect(
    rank: int,
    size: int,
    addresses: Sequence[tuple[str, int]],
    token: bytes,
    listener: Listener,
    timeout: float = 30.0,
) -> TCPCommunicator:
    """Join `size` processes, each with its rank and a `Listener` whose address is `addresses[rank]`.

    All have the same token of random bytes (`secrets.token_bytes()`). The listener is closed afterwards.

    >>> from mirabelle.backends.tcp import Listener, connect
    >>> listener = Listener("127.0.0.1")
    >>> comm = connect(0, 1, [listener.address], b"secret", listener)
    >>> comm
    <communicator tcp: rank 0 of 1>
    >>> comm.close()
    """
    if not 0 <= rank < size or len(addresses) != size:
        raise CommunicationError(
            f"Rank {rank} of {size} cannot connect with {len(addresses)} addresses: there is one for each "
            "rank, in the order of ranks."
        )
    if not token:
        raise CommunicationError("The token is empty. Draw one, secrets.token_bytes(), for all ranks.")
    deadline = time.monotonic() + timeout
    joined: dict[int, socket.socket] = {}
    try:
        for other in range(rank):
            joined[other] = _call(rank, size, other, addresses[other], token, deadline)
        while len(joined) < size - 1:
            found = _receive_call(rank, size, token, listener, deadline)
            if found is None:
                missing = [r for r in range(size) if r != rank and r not in joined]
                raise CommunicationError(
                    f"Rank {rank} waited {timeout:g} s for {_ranks(missing, addresses)}, in vain: it did not "
                    "start, or a firewall is between."
                )
            other, connection = found
            if other in joined or other <= rank:
                connection.close()
                continue
            joined[other] = connection
        names = [f"{host}:{port}" for host, port in addresses]
        comm = TCPCommunicator(rank, size, {r: Link(r, s, names[r]) for r, s in joined.items()})
        joined.clear()
        return comm
    finally:
        for connection in joined.values():
            connection.close()
        listener.close()


def _call(
    rank: int, size: int, other: int, address: tuple[str, int], token: bytes, deadline: float
) -> socket.socket:
    where = f"rank {other} at {address[0]}:{address[1]}"
    try:
        connection = socket.create_connection(address, timeout=max(deadline - time.monotonic(), 0.001))
    except OSError as error:
        raise CommunicationError(
            f"Rank {rank} cannot reach {where} ({error}). Do the machines see each other under these "
            "addresses? Choose the network's interface: Listener(host)."
        ) from error
    try:
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        mine = secrets.token_bytes(16)
        hello = HELLO.pack(GREETING, rank, size, mine)
        connection.sendall(hello)
        answer = _read(connection, 16 + DIGEST)
        theirs, digest = answer[:16], answer[16:]
        if not hmac.compare_digest(digest, _digest(token, b"listens", hello, theirs)):
            raise CommunicationError(
                f"What listens at {address[0]}:{address[1]} is not rank {other} of this group: it has another "
                "token."
            )
        connection.sendall(_digest(token, b"calls", hello, theirs))
    except OSError as error:
        connection.close()
        raise CommunicationError(
            f"Rank {rank} was sent away by {where} ({error or type(error).__name__}): "
            "is it of the same group, with the same token?"
        ) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _receive_call(
    rank: int, size: int, token: bytes, listener: Listener, deadline: float
) -> tuple[int, socket.socket] | None:
    """The next one that knows the token; None where nobody came in time."""
    while time.monotonic() < deadline:
        try:
            connection = listener.accept(deadline)
        except TimeoutError:
            return None
        try:
            connection.settimeout(min(PATIENCE, max(deadline - time.monotonic(), 0.001)))
            hello = _read(connection, HELLO.size)
            greeting, other, of, _ = HELLO.unpack(hello)
            if greeting == GREETING and of == size and rank < other < size:
                mine = secrets.token_bytes(16)
                connection.sendall(mine + _digest(token, b"listens", hello, mine))
                if hmac.compare_digest(_read(connection, DIGEST), _digest(token, b"calls", hello, mine)):
                    return other, connection
        except OSError:
            pass  # a stranger
        connection.close()
    return None


def _digest(token: bytes, role: bytes, hello: bytes, drawn: bytes) -> bytes:
    return hmac.digest(token, role + hello + drawn, "sha256")


def _read(connection: socket.socket, n: int) -> bytes:
    got = b""
    while len(got) < n:
        more = connection.recv(n - len(got))
        if not more:
            raise ConnectionError("the connection was closed")
        got += more
    return got


def _ranks(missing: Sequence[int], addresses: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"rank {r} of {addresses[r][0]}" for r in missing)


def local_group(size: int) -> list[TCPCommunicator]:
    """Communicators of one process, for as many threads.

    >>> from mirabelle.backends.tcp import local_group
    >>> group = local_group(3)
    >>> group[2]
    <communicator tcp: rank 2 of 3>
    >>> for comm in group: comm.close()
    """
    links: list[dict[int, Link]] = [{} for _ in range(size)]
    for a in range(size):
        for b in range(a):
            one, other = socket.socketpair()
            links[a][b] = Link(b, one, "this process")
            links[b][a] = Link(a, other, "this process")
    return [TCPCommunicator(r, size, links[r]) for r in range(size)]
