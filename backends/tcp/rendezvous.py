"""How processes find each other: each listens at an address, all know all addresses, and a secret token.

The token itself is never sent: both ends of a new connection show that they know it (a keyed digest of a
number that the other has just drawn). Who does not know it is sent away, and waited for no longer. With `tls`,
what follows is encrypted, and each end has shown the other its certificate.
"""

from __future__ import annotations

import hmac
import secrets
import selectors
import socket
import ssl
import struct
import time
from collections.abc import Sequence
from types import TracebackType
from typing import NamedTuple

from mirabelle.backends.tcp.communicator import TCPCommunicator
from mirabelle.backends.tcp.link import Link
from mirabelle.dispatch.errors import CommunicationError

GREETING = b"mirabelle tcp 2\n"
# What who connects says first: the greeting, its rank, the size of the group, a number drawn for the other.
HELLO = struct.Struct(f"!{len(GREETING)}sII16s")
DIGEST = 32
# Seconds in which a caller has to show that it knows the token, and how many are heard side by side: callers
# of this machine or of the network may be strangers, and some of them say nothing.
PATIENCE = 5.0
CALLERS = 256
# Seconds after which who was sent away calls again.
AGAIN = 0.1


class TLS(NamedTuple):
    """How connections are encrypted: a context for the end that calls, and one for the end that listens."""

    calls: ssl.SSLContext
    listens: ssl.SSLContext


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

    def open(self, selector: selectors.BaseSelector) -> None:
        """Have a selector say when somebody calls."""
        self._socket.setblocking(False)
        selector.register(self._socket, selectors.EVENT_READ, None)

    def take(self) -> socket.socket | None:
        """The connection of the next caller; None where it is gone already."""
        try:
            return self._socket.accept()[0]
        except OSError:
            return None

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
    tls: TLS | None = None,
) -> TCPCommunicator:
    """Join `size` processes, each with its rank and a `Listener` whose address is `addresses[rank]`.

    All have the same token of random bytes (`secrets.token_bytes()`). The listener is closed afterwards.
    With `tls` connections are encrypted; all have it, or none.

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
    door = _Door(rank, size, token, listener)
    try:
        for other in range(rank):
            connection = _call(rank, size, other, addresses[other], token, deadline)
            joined[other] = _encrypted(connection, tls, other, False, deadline)
        while len(joined) < size - 1:
            found = door.next(deadline)
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
            joined[other] = _encrypted(connection, tls, other, True, deadline)
        names = [f"{host}:{port}" for host, port in addresses]
        comm = TCPCommunicator(rank, size, {r: Link(r, s, names[r]) for r, s in joined.items()})
        joined.clear()
        return comm
    finally:
        for connection in joined.values():
            connection.close()
        door.close()
        listener.close()


def _encrypted(
    connection: socket.socket, tls: TLS | None, other: int, listens: bool, deadline: float
) -> socket.socket:
    """The connection to a rank that has shown that it knows the token, encrypted where that is wanted."""
    if tls is None:
        return connection
    connection.settimeout(max(deadline - time.monotonic(), 0.001))
    try:
        return (tls.listens if listens else tls.calls).wrap_socket(connection, server_side=listens)
    except (OSError, ValueError) as error:
        connection.close()
        raise CommunicationError(
            f"The connection to rank {other} cannot be encrypted ({error}). All processes have certificates of "
            "one authority, and all of them TLS, or none."
        ) from error


def _call(
    rank: int, size: int, other: int, address: tuple[str, int], token: bytes, deadline: float
) -> socket.socket:
    """Call a rank. Where so many strangers call that it sends us away, call again."""
    where = f"rank {other} at {address[0]}:{address[1]}"
    while True:
        try:
            return _called(rank, size, other, address, token, deadline)
        except OSError as error:
            if isinstance(error, TimeoutError) or time.monotonic() + AGAIN > deadline:
                raise CommunicationError(
                    f"Rank {rank} was sent away by {where} ({error or type(error).__name__}): "
                    "is it of the same group, with the same token?"
                ) from error
            time.sleep(AGAIN)


def _called(
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
    except BaseException:
        connection.close()
        raise
    return connection


class _Caller:
    """Who has connected and has not shown yet that it knows the token."""

    __slots__ = ("connection", "drawn", "got", "hello", "until")

    def __init__(self, connection: socket.socket, until: float) -> None:
        self.connection = connection
        self.until = until
        self.got = b""
        # What it said first, and the number drawn for it, once it has said that.
        self.hello = self.drawn = b""


class _Door:
    """Those who call, heard side by side: who is silent or slow keeps nobody waiting but himself."""

    def __init__(self, rank: int, size: int, token: bytes, listener: Listener) -> None:
        self.rank, self.size, self.token = rank, size, token
        self.listener = listener
        self.callers: dict[socket.socket, _Caller] = {}
        self.selector = selectors.DefaultSelector()
        listener.open(self.selector)

    def next(self, deadline: float) -> tuple[int, socket.socket] | None:
        """The next one that knows the token; None where nobody came in time."""
        while (now := time.monotonic()) < deadline:
            for caller in [c for c in self.callers.values() if c.until < now]:
                self._send_away(caller)
            patience = min((c.until for c in self.callers.values()), default=deadline)
            for key, _ in self.selector.select(max(min(patience, deadline) - now, 0.001)):
                if key.data is None:
                    self._welcome()
                elif key.fileobj in self.callers:
                    found = self._hear(key.data)
                    if found is not None:
                        return found, self._let_in(key.data)
        return None

    def _welcome(self) -> None:
        connection = self.listener.take()
        if connection is None:
            return
        if len(self.callers) >= CALLERS:
            # One who has said nothing yet goes, the first to come: a partner speaks at once, and calls again.
            silent = (c for c in self.callers.values() if not c.hello)
            self._send_away(next(silent, next(iter(self.callers.values()))))
        connection.setblocking(False)
        caller = self.callers[connection] = _Caller(connection, time.monotonic() + PATIENCE)
        self.selector.register(connection, selectors.EVENT_READ, caller)

    def _hear(self, caller: _Caller) -> int | None:
        """Read what a caller says: its rank, once it has shown that it knows the token."""
        wanted = DIGEST if caller.hello else HELLO.size
        try:
            more = caller.connection.recv(wanted - len(caller.got))
            if not more:
                raise ConnectionError
            caller.got += more
            if len(caller.got) < wanted:
                return None
            said, caller.got = caller.got, b""
            if caller.hello:
                if hmac.compare_digest(said, _digest(self.token, b"calls", caller.hello, caller.drawn)):
                    return int(HELLO.unpack(caller.hello)[1])
                raise ConnectionError
            greeting, other, of, _ = HELLO.unpack(said)
            if greeting != GREETING or of != self.size or not self.rank < other < self.size:
                raise ConnectionError
            caller.hello, caller.drawn = said, secrets.token_bytes(16)
            # (So little fits into the memory of any new connection.)
            caller.connection.sendall(caller.drawn + _digest(self.token, b"listens", said, caller.drawn))
        except BlockingIOError:
            pass
        except OSError:
            self._send_away(caller)
        return None

    def _forget(self, caller: _Caller) -> None:
        del self.callers[caller.connection]
        self.selector.unregister(caller.connection)

    def _send_away(self, caller: _Caller) -> None:
        self._forget(caller)
        caller.connection.close()

    def _let_in(self, caller: _Caller) -> socket.socket:
        self._forget(caller)
        return caller.connection

    def close(self) -> None:
        for caller in list(self.callers.values()):
            self._send_away(caller)
        self.selector.close()


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
