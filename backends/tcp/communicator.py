"""A communicator whose messages go over sockets, one connection for each pair of processes.

There is no thread beside the program's: who waits, reads whatever comes from anybody and writes whatever is
queued, so large messages that cross do not block each other, and a process that is lost is noticed by all.
"""

from __future__ import annotations

import contextlib
import re
import selectors
import socket
import threading
import time
import traceback
from collections.abc import Iterable, Mapping
from typing import Any

from mirabelle.arraytypes.distributed import marks
from mirabelle.arraytypes.distributed.communicators import MESSAGES, Exchange
from mirabelle.backends.tcp.collectives import Collectives, as_bytes
from mirabelle.backends.tcp.link import BYE, DATA, DIFFERS, FAILED, Incoming, Link, Messages
from mirabelle.dispatch.errors import CommunicationError, RemoteError
from mirabelle.dispatch.settings import settings

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
# What a rank says where programs differ (see `_tell`).
_DIFFERS = re.compile(r"(-?\d+) (-?\d+)\n(.*)", re.DOTALL)


class TCPCommunicator(Collectives):
    """Processes joined by sockets. Made with `backends.tcp.connect`, or `local_group` for threads.

    One thread at a time uses it.

    >>> from mirabelle.backends.tcp import local_group
    >>> import threading
    >>> group = local_group(2)
    >>> found = []
    >>> threads = [threading.Thread(target=lambda c=c: found.append(c.allgather_object(c.rank))) for c in group]
    >>> for thread in threads: thread.start()
    >>> for thread in threads: thread.join()
    >>> found
    [[0, 1], [0, 1]]
    >>> for comm in group: comm.close()
    """

    engine = "tcp"

    def __init__(self, rank: int, size: int, links: Mapping[int, Link]) -> None:
        self.rank = rank
        self.size = size
        self.program = 0
        self.closed = False
        self._links = dict(links)
        self._lock = threading.RLock()
        self._trouble: CommunicationError | None = None
        # The mark of what was begun last; was it told to all that programs differ?
        self._doing = MESSAGES
        self._told = False
        self._lost: dict[int, str] = {}
        self._stopped: BaseException | None = None
        # Is somebody in the middle of reading or writing? If that was cut short, the messages no longer join.
        self._inside = False
        self._selector = selectors.DefaultSelector()
        self._bell, self._ringer = socket.socketpair()
        self._bell.setblocking(False)
        self._selector.register(self._bell, READ, None)
        for link in self._links.values():
            self._selector.register(link.socket, READ, link)

    # Messages

    def start(self, sends: Mapping[int, Any], receives: Mapping[int, Any], mark: int = MESSAGES) -> Exchange:
        return self._start(
            {r: as_bytes(view) for r, view in sends.items()},
            {r: as_bytes(view, write=True) for r, view in receives.items()},
            mark,
        )

    def swap(self, sends: Mapping[int, bytes], receives: Iterable[int], mark: int) -> dict[int, Any]:
        messages = self._start(
            {r: memoryview(text) for r, text in sends.items()}, dict.fromkeys(receives, None), mark
        )
        messages.wait()
        return messages.received

    def _start(
        self, sends: Mapping[int, memoryview], receives: Mapping[int, memoryview | None], mark: int
    ) -> Messages:
        if settings.check_collectives:
            mark = marks.mixed(mark, marks.marked(marks.call_site()))
        for r in (*sends, *receives):
            if r not in self._links:
                raise CommunicationError(self._no_such(r))
        messages = Messages(self._step, len(sends) + len(receives), mark, self._overdue)
        self._doing = mark
        with self._lock:
            self._check()
            self._inside = True
            for r, view in receives.items():
                self._links[r].post(Incoming(view, messages, mark))
            for r, view in sends.items():
                self._send(self._links[r], DATA, view, messages, mark)
            self._inside = False
            for r in (*receives, *sends):
                self._look(self._links[r])
            self._check()
        return messages

    def hurry(self) -> None:
        if not self.closed and self._lock.acquire(blocking=False):
            try:
                self._step(0.0)
            finally:
                self._lock.release()

    def _send(
        self, link: Link, kind: int, view: memoryview, messages: Messages | None = None, mark: int = 0
    ) -> None:
        was = link.sending
        try:
            if not link.send(kind, view, messages, mark) and not was:
                self._selector.modify(link.socket, READ | WRITE, link)
        except OSError as error:
            self._lose(link, error)

    def _step(self, timeout: float) -> None:
        """Wait until something can be read or written, and do so. What happened elsewhere is raised."""
        with self._lock:
            self._check()
            self._turn(timeout)
            self._check()

    def _turn(self, timeout: float) -> None:
        for key, events in self._selector.select(timeout):
            link = key.data
            if link is None:
                self._bell.recv(4096)
                continue
            self._inside = True
            try:
                if events & WRITE and link.push():
                    self._selector.modify(link.socket, READ, link)
                if events & READ and not link.pull():
                    self._lose(link, None)
            except OSError as error:
                self._lose(link, error)
            self._inside = False
            self._look(link)

    # What can happen to others

    def _look(self, link: Link) -> None:
        """Has a rank said that it failed, or sent what was not asked for, or left while we wait for it?"""
        if self._trouble is not None:
            return
        for program, text in link.failures:
            if program == self.program:
                self._trouble = RemoteError(
                    f"{self._name(link)} failed:\n\n{text}", link.rank, text.partition("\n\n")[2]
                )
                return
        if link.refused is not None:
            self._trouble = self._differing(link, link.refused)
        elif any(program == self.program for program, _ in link.differences):
            self._trouble = self._differing(link, None)
        elif link.left and (link.awaited or link.sending):
            self._trouble = CommunicationError(
                f"{self._name(link)} has closed its communicator while this one still exchanges messages "
                f"with it: {marks.doing(self._doing)}. The processes do not run the same statements: usual "
                "causes are a return on some ranks only, or a loop that takes more steps on some."
            )

    def _differing(self, link: Link, refused: tuple[int, int, int, int] | None) -> CommunicationError:
        """What to raise where another rank does something else; the others are told, and say what they do."""
        theirs = marks.UNHEARD
        mine, against = (self._doing, -1) if refused is None else (refused[0], link.rank)
        here = marks.doing(mine)
        if refused is not None:
            mark, expected, sent, length = refused
            theirs = f"{marks.named(sent)}, and {marks.UNHEARD}"
            if mark == sent:
                here = f"{here} ({expected} bytes expected)"
                theirs = f"it sent {length} bytes, and {marks.UNHEARD}"
        if not self._told:
            self._tell(mine, against, here)
        self._trouble = CommunicationError(here)  # (nobody looks again while the other answers)
        until = time.monotonic() + marks.ANSWER
        said = {self.rank: (mine, against, here), **self._said()}
        while (pair := marks.who_differs(said, self.rank)) is None and time.monotonic() < until:
            if all(x.closed or x.left for x in self._links.values()):
                break
            self._turn(0.05)
            said.update(self._said())
        pair = pair or marks.who_differs(said, self.rank, whoever=True) or (self.rank, link.rank)
        words = [said[r][2] if r in said else theirs for r in pair]
        return CommunicationError(marks.difference(pair[0], words[0], pair[1], words[1]))

    def _tell(self, mark: int, against: int, here: str) -> None:
        """Say to all what this one does, and whose message did not belong (-1: it only heard of it)."""
        self._told = True
        for other in self._links.values():
            if not other.closed and not other.left:
                self._send(other, DIFFERS, memoryview(f"{mark} {against}\n{here}".encode()))

    def _said(self) -> dict[int, marks.Said]:
        """What other ranks said that they do."""
        found = {}
        for rank, link in self._links.items():
            text = next((text for program, text in link.differences if program == self.program), "")
            if given := _DIFFERS.fullmatch(text):
                found[rank] = int(given[1]), int(given[2]), given[3]
        return found

    def _overdue(self, mark: int) -> None:
        """With collective checks: who does not come in time does not come."""
        with self._lock:
            missing = [link.rank for link in self._links.values() if link.awaited]
            self._trouble = CommunicationError(
                f"Ranks {missing} did not come within {settings.check_timeout:g} s to {marks.doing(mark)}, "
                f"where rank {self.rank} waits. Usual causes: it stands under `if comm.rank == ...`, "
                "or the loop around it takes fewer steps there. For work that takes longer set "
                "MIRABELLE_CHECK_TIMEOUT."
            )
            self._tell(0, missing[0] if missing else self.rank, f"{marks.doing(mark)}, in vain")
        self._check()

    def _lose(self, link: Link, error: OSError | None) -> None:
        if link.closed:
            return
        if error is not None:
            with contextlib.suppress(OSError):
                link.pull()  # (perhaps it took leave before)
        self._selector.unregister(link.socket)
        link.close()
        if not link.left:
            why = f" ({error.strerror or error})" if error is not None else ""
            self._lost[link.rank] = (
                f"{self._name(link)} was lost: its process ended, or the connection broke{why}. Its parts of "
                "all distributed arrays are gone: start the processes again, from what was last saved."
            )

    def _check(self) -> None:
        if self._stopped is not None:
            raise self._stopped
        for rank, text in self._lost.items():
            raise RemoteError(text, rank)
        trouble = self._trouble
        if isinstance(trouble, RemoteError):
            raise RemoteError(str(trouble), trouble.rank, trouble.remote_traceback)
        if trouble is not None:
            raise CommunicationError(str(trouble))
        if self.closed:
            raise CommunicationError(
                "This communicator was closed. Connect again, and make the arrays over the new communicator."
            )

    @property
    def lost(self) -> bool:
        """Can it not be used any more? (A rank is gone, or it was closed.)"""
        return self.closed or self._inside or bool(self._lost)

    def failed(self, error: BaseException) -> None:
        """Tell all others that this rank's program has failed: they raise RemoteError with the traceback."""
        if isinstance(error, RemoteError):
            return  # they know from the rank that it was about
        told = "".join(traceback.format_exception(error))
        summary = "".join(traceback.format_exception_only(error)).strip()
        text = memoryview(f"{summary}\n\n{told}".encode())
        with self._lock:
            if self.closed:
                return
            for link in self._links.values():
                if not link.closed:
                    self._send(link, FAILED, text)
            # Nobody writes the rest when this program is gone.
            deadline = time.monotonic() + 5.0
            while time.monotonic() < deadline and any(
                link.sending and not link.closed for link in self._links.values()
            ):
                self._turn(0.1)

    def begin(self, program: int) -> None:
        """From now on all messages are of this program: what one that failed has left behind is dropped.

        All ranks call it, with a number larger than the last one.
        """
        with self._lock:
            if self._inside:
                self._lost[self.rank] = (
                    f"Rank {self.rank} was stopped in the middle of a message, and cannot read the next ones: "
                    "connect again."
                )
            self.program = program
            self._trouble = None
            self._told = False
            self._stopped = None
            for link in self._links.values():
                link.begin(program)
                self._look(link)
            self._check()

    def stop(self, error: BaseException) -> None:
        """Have this rank's program raise an exception where it waits for others. (From another thread.)"""
        self._stopped = error
        self._ringer.send(b"!")

    def close(self) -> None:
        """Take leave of the others. What was sent before still arrives."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
            for link in self._links.values():
                if not link.closed:
                    self._take_leave(link)
            self._selector.close()
            self._bell.close()
            self._ringer.close()

    def _take_leave(self, link: Link) -> None:
        try:
            link.socket.settimeout(2.0)
            link.send(BYE, memoryview(b""))
            link.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it is gone already
        link.close()

    def __del__(self) -> None:
        if not getattr(self, "closed", True):
            self.close()

    # Words

    def _name(self, link: Link) -> str:
        return f"Rank {link.rank} at {link.name}"

    def _no_such(self, rank: int) -> str:
        if rank == self.rank:
            return f"Rank {rank} cannot send a message to itself."
        return f"There is no rank {rank} among {self.size}."
