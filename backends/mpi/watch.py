"""Who has failed: a channel beside the messages, on which processes report that they go no further.

It is looked at while waiting. A process that hears of a failure raises `RemoteError`; from then on
messages are out of step, because some operations were given up half-way, and every further one is refused
until the members have met in `settle`: it gives new tags to their messages, so that what is left of old
ones is never taken for new.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import traceback
from collections.abc import Sequence
from typing import Any

from mirabelle.arraytypes.distributed import marks
from mirabelle.backends.mpi.environment import library
from mirabelle.backends.mpi.waiting import wait_until
from mirabelle.dispatch.errors import CommunicationError, RemoteError

# What messages of the channel are: a failure, the end of a program, a word of `settle`,
# and what a rank does, where programs differ.
FAILED, ENDED, WORD, DIFFERS = 1, 2, 3, 4
# Characters of a traceback that are sent: its end says what happened.
LONGEST = 12_000
# Seconds in which messages of a process that has ended may still arrive.
LAST_MESSAGES = 1.0
# Seconds after which those at the end of their block have sent nothing more to those who wait within it.
GONE_ON = 5.0
# Tags of messages are below this; as many again are for comparing operations, and for the marks of messages.
# Every MPI offers 32767.
TAGS = 10_000
MARKS = 2 * TAGS

# One for each communicator that was made from one of mpi4py's, in the order in which they were made.
watches: list[Watch] = []


class Watch:
    """The channel of one group of processes, and what was heard on it."""

    def __init__(self, mpi: Any) -> None:
        MPI = library()
        self.channel = mpi.Dup()
        self.rank: int = mpi.rank
        self.size: int = mpi.size
        # Why messages are out of step, if they are.
        self.trouble: CommunicationError | None = None
        # What messages to and from each rank are tagged with. Both ends count alike.
        self.tags = [0] * self.size
        # How often they changed: requests that were prepared with older ones are of no use.
        self.renewals = 0
        # MPI's communicators for its own collective operations, by their members; None: one was given up
        # half-way. Another is not made then: Open MPI hangs while the first has work.
        self.collectives: dict[tuple[int, ...], Any] = {}
        self.testall = MPI.Request.Testall
        self.MPIError = MPI.Exception
        self.crowded = _is_crowded(mpi)
        # How often to ask whether messages are there before measuring the time.
        self.first = range(1 if self.crowded else 32)
        # Threads that have used a communicator: what they fail at concerns the others.
        self.threads: set[int] = set()
        self._lock = threading.Lock()
        # By the rank: what it failed at, each with its number; when it was heard to end; the words it said
        # in `settle`; and how many failures were heard from and told to it.
        self._failures: dict[int, list[tuple[int, str]]] = {}
        # What others said that they do, where programs differ; the mark of what was begun here last.
        self._differences: dict[int, list[tuple[int, marks.Said]]] = {}
        self.doing = marks.marked("exchange of messages")
        self._ended: dict[int, float] = {}
        self._words: dict[int, list[Any]] = {}
        # Since when all that are waited for stand at the end of a block.
        self._gone_on = 0.0
        self._heard = [0] * self.size
        self._told = [0] * self.size
        # Processes of this machine: those that are killed say nothing, and not every launcher notices.
        self._pids = _neighbours(self.channel)
        self._killed: set[int] = set()
        self._looked = time.perf_counter()
        # Requests under way for which nobody waits, with their memory.
        self._sending: list[Any] = []
        self._lost: list[Any] = []
        watches.append(self)

    # Telling

    def tell(self, error: BaseException, members: tuple[int, ...]) -> None:
        """Report a failure of this process. (Others know already of what was heard from them.)"""
        if self.trouble is not None:
            return
        text = "".join(traceback.format_exception(error))[-LONGEST:]
        for r in members:
            if r != self.rank:
                self._told[r] += 1
                self._sending.append(self.channel.isend(text, r, FAILED))
        # A longer text leaves only while both ends ask about it.
        until = time.perf_counter() + 0.2
        while not self.testall(self._sending) and time.perf_counter() < until:
            time.sleep(1e-3)
        self.trouble = CommunicationError(
            f"This process reported a failure ({type(error).__name__}: {error}), and the others no longer wait "
            "for it. Leave the program, or meet the others at the end of `with mb.distributed.together():`."
        )

    def say_farewell(self) -> None:
        """Tell all others that this program has come to its end."""
        for r in range(self.size):
            if r != self.rank:
                self._sending.append(self.channel.isend(None, r, ENDED))

    # Hearing

    def listen(self) -> None:
        """Take what has arrived on the channel."""
        with self._lock:
            status = library().Status()
            while (message := self.channel.improbe(status=status)) is not None:
                rank, kind, said = status.source, status.tag, message.recv()
                if kind == FAILED:
                    self._heard[rank] += 1
                    self._failures.setdefault(rank, []).append((self._heard[rank], said))
                elif kind == DIFFERS:
                    self._heard[rank] += 1
                    self._differences.setdefault(rank, []).append((self._heard[rank], said))
                elif kind == ENDED:
                    self._ended.setdefault(rank, time.perf_counter())
                else:
                    self._words.setdefault(rank, []).append(said)

    def look(self, members: tuple[int, ...], missing: Sequence[int] = ()) -> None:
        """Raise what has happened to other processes, if these members are waited for.

        Messages of those that are `missing` have not come; where that is not known, of any.
        """
        self.listen()
        if self._failures:
            rank, [(_, text), *_] = next(iter(self._failures.items()))
            self.trouble = RemoteError(
                f"Rank {rank} failed while rank {self.rank} was waiting for it or for others. "
                f"What rank {rank} said:\n\n{text}",
                rank,
                text,
            )
            raise self.refusal()
        if self._differences:
            raise self.differing(next(iter(self._differences)))
        self.look_for_ends(members)
        others = missing or [r for r in members if r != self.rank]
        if not others or not all(self._words.get(r) for r in others):
            self._gone_on = 0.0
            return
        # (What they sent before came before this, or comes soon.)
        self._gone_on = self._gone_on or time.perf_counter()
        if time.perf_counter() - self._gone_on > GONE_ON:
            there = self._words[others[0]][0][3]
            said = marks.difference(self.rank, marks.doing(self.doing), others[0], there)
            self.trouble = CommunicationError(said)
            raise self.refusal()

    def differing(
        self, member: int, theirs: int = 0, mark: int = 0, sent: int = 0, expected: int = 0, sure: bool = True
    ) -> CommunicationError:
        """What to raise where another rank does something else: all are told, and it says what it does.

        `theirs` is the mark that came, if one did, where `mark` was expected; or else so many bytes. Of
        `member`, or (not `sure`) of any.
        """
        mine = mark or self.doing
        here = marks.doing(mine)
        there = f"{marks.named(theirs)}, and {marks.UNHEARD}" if theirs else marks.UNHEARD
        if theirs and theirs == mark:
            here, there = f"{here} ({expected} bytes expected)", f"it sent {sent} bytes, and {marks.UNHEARD}"
        against = self.rank if not sure else member if theirs else -1
        said: dict[int, marks.Said] = {self.rank: (mine, against, here)}
        for r in range(self.size):
            if r != self.rank:
                self._told[r] += 1
                self._sending.append(self.channel.isend(said[self.rank], r, DIFFERS))
        until = time.perf_counter() + marks.ANSWER
        while (pair := marks.who_differs(said, self.rank)) is None and member not in self._failures:
            self.listen()
            said.update({r: words[0][1] for r, words in self._differences.items()})
            if member in self._ended or self._words.get(member) or time.perf_counter() > until:
                break
            time.sleep(1e-3)
        pair = pair or marks.who_differs(said, self.rank, whoever=True) or (self.rank, member)
        if member in self._failures:
            there = f"it failed:\n\n{self._failures[member][0][1]}"
        elif self._words.get(member):  # it has gone on, and does not answer
            sizes = f"it sent {sent} bytes; " if theirs and theirs == mark else ""
            there = f"{sizes}{self._words[member][0][3]}"
        elif member in self._ended:
            there = f"{there}; it has ended its program"
        words = [said[r][2] if r in said else there for r in pair]
        self.trouble = CommunicationError(marks.difference(pair[0], words[0], pair[1], words[1]))
        return self.refusal()

    def look_for_ends(self, members: tuple[int, ...]) -> None:
        """Raise if one of these members has ended, and nothing more can come from it."""
        now = time.perf_counter()
        if now - self._looked > LAST_MESSAGES:
            self._looked = now
            for rank in members:
                if rank in self._pids and _is_gone(self._pids[rank]):
                    self._killed.add(rank)
                    self._ended.setdefault(rank, now)
        for rank, when in self._ended.items():
            if rank in members and time.perf_counter() - when > LAST_MESSAGES:
                said = self._failures[rank][0][1] if rank in self._failures else ""
                cause = (
                    f"What it said:\n\n{said}"
                    if said
                    else "It was killed (by the system, if memory ran out) or crashed."
                    if rank in self._killed
                    else "Usual causes: sys.exit() on some ranks only, or a loop that takes more steps on "
                    "some. MIRABELLE_CHECK_COLLECTIVES=1 names the call that the others did not make."
                )
                self.trouble = RemoteError(
                    f"Rank {rank} has ended its program while rank {self.rank} still waits for it. {cause}",
                    rank,
                    said,
                )
                raise self.refusal()

    def refusal(self) -> CommunicationError:
        """Why no messages can be sent now: raised anew each time, so that tracebacks do not grow."""
        trouble = self.trouble
        if isinstance(trouble, RemoteError):
            return RemoteError(str(trouble), trouble.rank, trouble.remote_traceback)
        return CommunicationError(str(trouble))

    # Beginning anew

    def settle(self, x: Any, members: tuple[int, ...]) -> list[Any]:
        """A word of each member, whatever was under way; messages flow again after it."""
        others = [r for r in members if r != self.rank]
        last = f"{marks.named(self.doing)}, the last before the end of a block at {marks.call_site()}"
        for r in others:
            word = (x, self.trouble is not None, self._told[r], last)
            self._sending.append(self.channel.isend(word, r, WORD))
        words = {}
        for r in others:
            self._wait(lambda r=r: bool(self._words.get(r)), r)
            words[r] = self._words[r].pop(0)
        for r in others:
            # Failures that were told before the word belong to what ends here, also those still on their
            # way; later ones to what the rank has gone on to, while this one waits for others.
            told = words[r][2]
            self._wait(lambda r=r, told=told: self._heard[r] >= told, r)
            both: tuple[Any, ...] = (self._failures, self._differences)
            for said in both:
                said[r] = [f for f in said.get(r, ()) if f[0] > told]
                if not said[r]:
                    del said[r]
        if self.trouble is not None or any(word[1] for word in words.values()):
            self.trouble = None
            for r in others:
                self.tags[r] = (self.tags[r] + 1) % TAGS
            self.renewals += 1
            for of in self.collectives:
                if set(of) <= set(members):
                    self.collectives[of] = None
        self._sending = [request for request in self._sending if not request.Test()]
        return [x if r == self.rank else words[r][0] for r in members]

    def _wait(self, is_there: Any, rank: int) -> None:
        def done() -> bool:
            self.listen()
            return is_there()

        # Those who failed are still to come; only those who ended are not.
        wait_until(done, lambda: self.look_for_ends((rank,)), self.crowded)

    def abandon(self, requests: list[Any]) -> None:
        """Wait for them no longer, and keep the memory that MPI may still touch."""
        self._lost.append(requests)
        self.count_lost()

    def count_lost(self) -> int:
        """How many groups of requests nobody waits for and MPI still holds."""
        left = []
        for requests in self._lost:
            with contextlib.suppress(self.MPIError):
                if not self.testall(requests):
                    left.append(requests)
        self._lost = left
        return len(left)


def _neighbours(channel: Any) -> dict[int, int]:
    """The process numbers of the other ranks on this machine, where they can be looked up."""
    here: tuple[str, str] | None
    try:
        here = socket.gethostname(), os.readlink("/proc/self/ns/pid")
    except OSError:
        here = None
    everybody = channel.allgather((here, os.getpid()))
    return {
        r: pid
        for r, (there, pid) in enumerate(everybody)
        if here is not None and there == here and r != channel.rank
    }


def _is_gone(pid: int) -> bool:
    """Has a process of this machine ended, be it that nobody has asked for its status yet?"""
    try:
        with open(f"/proc/{pid}/stat") as said:
            return said.read().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _is_crowded(mpi: Any) -> bool:
    """Do more processes run on this machine than there are cores, so that waiting must not take one?"""
    here = mpi.Split_type(library().COMM_TYPE_SHARED)
    try:
        cores = os.cpu_count() or 1
        return here.size > cores
    finally:
        here.Free()
