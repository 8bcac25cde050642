"""One connection to one other process: messages with a header each, in the order in which they were sent.

Nothing here waits. `push` writes what the socket takes and `pull` reads what has come; the communicator
calls them when the system says that there is something to do.
"""

from __future__ import annotations

import math
import os
import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.distributed.communicators import Exchange
from mirabelle.dispatch.settings import settings

# What kind of message it is, the number of the program it belongs to, how many bytes follow, and its mark.
HEADER = struct.Struct("<BxxxIQq")
DATA, FAILED, BYE, DIFFERS = 1, 2, 3, 4
# Words are of this length at most: who says more is out of step.
LONGEST_WORD = 1 << 24

# Small messages are read together with their headers into this much memory, and copied from there. What
# is longer goes straight to where it belongs.
STAGING = 1 << 16

# Seconds in which who waits asks again and again before it sleeps: to be woken takes longer than most messages.
SPIN = 20e-6
_yield = getattr(os, "sched_yield", lambda: None)

# What a socket raises where it would have to wait, encrypted or not.
WOULD_WAIT = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Garbled(OSError):
    """What came is no message."""

    def __str__(self) -> str:
        return "what came from it is no message"


class Incoming:
    """A receive that was posted: where to, and whom it is counted for. No view: whatever comes, as bytes."""

    __slots__ = ("exchange", "mark", "view")

    def __init__(self, view: memoryview | None, exchange: Messages, mark: int) -> None:
        self.view = view
        self.exchange = exchange
        self.mark = mark


class Outgoing:
    """A message to send: what of it is not out yet, and whom it is counted for."""

    __slots__ = ("begun", "exchange", "kind", "views")

    def __init__(self, views: list[memoryview], exchange: Messages | None, kind: int) -> None:
        self.views = views
        self.exchange = exchange
        self.kind = kind
        self.begun = False


class Messages(Exchange):
    """Messages on their way over sockets. `left` counts those that are not through yet."""

    __slots__ = ("left", "mark", "overdue", "received", "step")

    def __init__(
        self, step: Callable[[float], None], left: int, mark: int, overdue: Callable[[int], None]
    ) -> None:
        self.step = step
        self.left = left
        self.mark = mark
        self.overdue = overdue
        self.received: dict[int, Any] = {}

    def done(self) -> bool:
        if self.left:
            self.step(0.0)
        return not self.left

    def wait(self) -> None:
        began = time.monotonic() if settings.check_collectives else math.inf
        until = time.perf_counter() + SPIN
        while self.left and time.perf_counter() < until:
            self.step(0.0)
            if self.left:
                _yield()
        while self.left:
            self.step(0.5)
            if self.left and time.monotonic() - began > settings.check_timeout:
                self.overdue(self.mark)


class Link:
    """A connection to one rank, as the communicator sees it: what is to be sent, awaited, or was said."""

    def __init__(self, rank: int, connection: socket.socket, name: str) -> None:
        self.rank = rank
        self.name = name
        self.socket = connection
        self._encrypted = isinstance(connection, ssl.SSLSocket)
        connection.setblocking(False)
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _stay_alive(connection)
        self.program = 0
        # Has it closed its end in order; is the connection gone?
        self.left = False
        self.closed = False
        self.failures: list[tuple[int, str]] = []
        # What it said of itself when it found that programs differ; and the message that does not belong
        # where one was awaited: what was awaited, and what came.
        self.differences: list[tuple[int, str]] = []
        self.refused: tuple[int, int, int, int] | None = None

        self._outgoing: deque[Outgoing] = deque()
        self._posted: deque[Incoming] = deque()
        self._arrived: deque[tuple[int, int, memoryview]] = deque()

        self._staging = memoryview(bytearray(STAGING))
        self._start = self._end = 0
        # The message that is coming in: its header, where it goes, what of that is not there yet.
        self._header = (0, 0, 0, 0)
        self._whole: Any = None
        self._incoming: Incoming | None = None
        self._rest: memoryview | None = None

    # Sending

    def send(self, kind: int, view: memoryview, exchange: Messages | None = None, mark: int = 0) -> bool:
        """Send, now or when there is room: is everything out?"""
        header = HEADER.pack(kind, self.program, view.nbytes, mark)
        if not view.nbytes or (self._encrypted and view.nbytes < STAGING):
            views = [memoryview(header + view)]  # (encrypted, each view is a record of its own)
        else:
            views = [memoryview(header), view]
        self._outgoing.append(Outgoing(views, exchange, kind))
        return self.push()

    @property
    def sending(self) -> bool:
        return bool(self._outgoing)

    def push(self) -> bool:
        """Write what the socket takes: is everything out? OSError where the connection is gone."""
        queue = self._outgoing
        while queue:
            message = queue[0]
            views = message.views
            try:
                n = self._write(views)
            except WOULD_WAIT:
                # (What is encrypted already has to be written again as it is.)
                message.begun |= self._encrypted
                return False
            message.begun = True
            while views and n >= views[0].nbytes:
                n -= views.pop(0).nbytes
            if n:
                views[0] = views[0][n:]
            if not views:
                queue.popleft()
                if message.exchange is not None:
                    message.exchange.left -= 1
        return True

    def _write(self, views: list[memoryview]) -> int:
        if not self._encrypted and hasattr(self.socket, "sendmsg"):
            return self.socket.sendmsg(views)
        return self.socket.send(views[0])  # TLS, Windows

    # Receiving

    def post(self, incoming: Incoming) -> None:
        """Say where the next message goes that nobody waits for yet."""
        arrived = self._arrived
        if arrived and arrived[0][0] == self.program:
            self._deliver(incoming, *arrived.popleft()[1:])
        else:
            self._posted.append(incoming)

    @property
    def awaited(self) -> bool:
        return bool(self._posted) or self._incoming is not None

    def pull(self) -> bool:
        """Read what has come: does the connection still stand? OSError where it broke."""
        while True:
            rest = self._rest
            direct = rest is not None and rest.nbytes >= STAGING
            room = rest if direct and rest is not None else self._staging[self._end :]
            try:
                n = self.socket.recv_into(room)
            except WOULD_WAIT:
                return True
            if n == 0:
                return False
            if direct and rest is not None:
                self._rest = rest[n:]
                if n == rest.nbytes:
                    self._complete()
            else:
                self._end += n
                self._take_apart()
            if n < room.nbytes and not self._encrypted:  # the socket is empty: no need to hear it say so
                return True

    def _take_apart(self) -> None:
        """Read headers and small messages from the staging memory."""
        staging = self._staging
        while True:
            if self._rest is None:
                have = self._end - self._start
                if have < HEADER.size:
                    staging[:have] = staging[self._start : self._end]
                    self._start, self._end = 0, have
                    return
                self._open(*HEADER.unpack_from(staging, self._start))
                self._start += HEADER.size
            rest = self._rest
            assert rest is not None
            n = min(rest.nbytes, self._end - self._start)
            rest[:n] = staging[self._start : self._start + n]
            self._start += n
            if n == rest.nbytes:
                self._complete()
            else:
                self._rest = rest[n:]
                self._start = self._end = 0
                return

    def _open(self, kind: int, program: int, length: int, mark: int) -> None:
        """A header has come: find where the message goes."""
        self._header = kind, program, length, mark
        self._incoming = None
        if kind == DATA and self._posted and program == self.program:
            incoming = self._posted[0]
            if incoming.mark != mark or (incoming.view is not None and incoming.view.nbytes != length):
                self._refuse(incoming, mark, length)  # (said at once, however long the message is)
            elif incoming.view is not None:
                self._incoming = self._posted.popleft()
                self._whole = self._rest = incoming.view
                return
        if not DATA <= kind <= DIFFERS or (kind != DATA and length > LONGEST_WORD):
            raise Garbled
        try:
            # (Not touched before something comes: the length may be wrong.)
            self._whole = self._rest = np.empty(length, np.uint8).data
        except (MemoryError, ValueError, OverflowError):
            raise Garbled from None

    def _refuse(self, incoming: Incoming, mark: int, length: int) -> None:
        if self.refused is None:
            expected = -1 if incoming.view is None else incoming.view.nbytes
            self.refused = incoming.mark, expected, mark, length

    def _complete(self) -> None:
        kind, program, _, mark = self._header
        whole, incoming = self._whole, self._incoming
        self._whole = self._rest = self._incoming = None
        if incoming is not None:
            incoming.exchange.left -= 1
        elif kind == BYE:
            self.left = True
        elif kind == FAILED:
            self.failures.append((program, bytes(whole).decode("utf-8", "replace")))
        elif kind == DIFFERS:
            self.differences.append((program, bytes(whole).decode("utf-8", "replace")))
        elif program < self.program:
            pass  # of a program that failed
        elif self._posted and program == self.program:
            self._deliver(self._posted.popleft(), mark, whole)
        else:
            self._arrived.append((program, mark, whole))

    def _deliver(self, incoming: Incoming, mark: int, whole: memoryview) -> None:
        """A message that came before somebody asked for it."""
        if incoming.mark != mark or (incoming.view is not None and incoming.view.nbytes != len(whole)):
            self._refuse(incoming, mark, len(whole))
            return
        if incoming.view is None:
            incoming.exchange.received[self.rank] = whole
        else:
            incoming.view[:] = whole
        incoming.exchange.left -= 1

    # From program to program

    def begin(self, program: int) -> None:
        """From now on messages belong to this program: what is left of those before is dropped."""
        self.program = program
        self._posted.clear()
        if self._incoming is not None:
            # The rest of a message of a failed program: its array is no longer ours to write to.
            assert self._rest is not None
            self._incoming = None
            self._whole = self._rest = np.empty(self._rest.nbytes, np.uint8).data
        while self._arrived and self._arrived[0][0] < program:
            self._arrived.popleft()
        self.failures = [(p, text) for p, text in self.failures if p >= program]
        self.differences = [(p, text) for p, text in self.differences if p >= program]
        self.refused = None
        # A message that is partly out must be finished, or the other end could not read the next one.
        kept = [message for message in self._outgoing if message.begun or message.kind != DATA]
        self._outgoing.clear()
        self._outgoing.extend(kept)

    def close(self) -> None:
        self.closed = True
        self.socket.close()


def _stay_alive(connection: socket.socket) -> None:
    """Have the system notice within some ten seconds that the other machine is gone."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", 4),
        ("TCP_KEEPINTVL", 2),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", 10_000),
    ):
        if hasattr(socket, option):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
