"""Steps of a program over processes that others take part in: messages, and terms that are combined."""

from __future__ import annotations

import operator
import time
from collections.abc import Sequence
from typing import Any

from mirabelle.arraytypes.distributed import combining
from mirabelle.arraytypes.distributed.communicators import MESSAGES, Communicator
from mirabelle.arraytypes.distributed.localmessages import mark_of_terms
from mirabelle.arraytypes.distributed.transfers import Messages
from mirabelle.arraytypes.programs.errors import TraceError, shown_line
from mirabelle.arraytypes.programs.steps import OutsideStep, Ref, Step
from mirabelle.arraytypes.reductions import REDUCTIONS
from mirabelle.dispatch import counters
from mirabelle.dispatch.settings import settings


class Exchange:
    """Messages of one point of a program: what begins them and what waits for them share it.

    Where they come from and go to is memory of the program, so it is the same again and again on the host, and
    the engine prepares them once.
    """

    __slots__ = ("_kept", "_of", "_under_way", "comm", "mark", "receives", "sends", "times", "waited", "word")

    def __init__(self, comm: Communicator, mark: int = MESSAGES, word: str = "send") -> None:
        self.comm = comm
        self.mark = mark
        self.word = word
        # Where what goes to a process lies, and where what comes from one will.
        self.sends: dict[int, Ref] = {}
        self.receives: dict[int, Ref] = {}
        self._under_way: Any = None
        self._kept: Any = None
        self._of: list[Any] = []
        # Seconds in which the host has waited for it, and how often.
        self.waited, self.times = 0.0, 0

    @property
    def combines(self) -> bool:
        """Are they terms that all combine?"""
        return self.word != "send"

    @property
    def under_way(self) -> bool:
        """Have messages left that nobody has waited for?"""
        return self._under_way is not None

    def begin(self, inner: Any, reads: list[Any], writes: list[Any]) -> None:
        """Send what these views show, and fill those."""
        views = [*reads, *writes]
        if inner.home.rank < 2 and not settings.check_collectives:
            if counters.active and self.combines:
                counters.add(collectives=1)
            if counters.active and reads and not self.combines:
                counters.add(messages=len(reads), bytes_sent=sum([v.nbytes for v in reads]))
            if self._kept is None or not all(map(operator.is_, views, self._of)):
                self._kept, self._of = self.comm.repeated([self._ends(reads, writes)], [self.mark]), views
            self._kept.start()
            self._under_way = self._kept.wait
            return
        messages = Messages(self.comm, inner, self.mark, compared=True)
        messages.begin(*self._ends(reads, writes))
        self._under_way = messages.finish

    def _ends(self, reads: list[Any], writes: list[Any]) -> tuple[dict[int, Any], dict[int, Any]]:
        return dict(zip(self.sends, reads, strict=True)), dict(zip(self.receives, writes, strict=True))

    def end(self) -> None:
        """Wait until all has come, and until what was sent may be overwritten."""
        finish, self._under_way = self._under_way, None
        assert finish is not None
        began = time.perf_counter()
        finish()
        self.waited += time.perf_counter() - began
        self.times += 1


class StartStep(OutsideStep):
    """Send what others need, and let what comes arrive."""

    __slots__ = ("exchange", "line")

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange.word, [*exchange.sends.values()], [*exchange.receives.values()])
        self.exchange = exchange
        self.line: Any = None

    @property
    def comm(self) -> Communicator:
        return self.exchange.comm

    @property
    def sizes(self) -> tuple[str, dict[int, int], dict[int, int]]:
        """What it does, and how many bytes go to and come from each process."""
        e = self.exchange
        sent, come = ({r: ref.nbytes for r, ref in side.items()} for side in (e.sends, e.receives))
        return self.word, sent, come

    def run(self, inner: Any, reads: list[Any], writes: list[Any]) -> None:
        self.exchange.begin(inner, reads, writes)


class FinishStep(OutsideStep):
    """Wait until all has come, and until what was sent may be overwritten."""

    __slots__ = ("exchange",)

    shown = False

    def __init__(self, exchange: Exchange) -> None:
        come = [*exchange.receives.values()]
        ends = f"end of {exchange.word}" if exchange.combines else "receive"
        super().__init__(ends, [*exchange.sends.values(), *come], come)
        self.exchange = exchange

    def run(self, inner: Any, reads: list[Any], writes: list[Any]) -> None:
        self.exchange.end()


class ReduceStep(OutsideStep):
    """Combine the elements of an array of each process, all of which get the same."""

    __slots__ = ("comm", "line", "mark", "op")

    def __init__(self, comm: Communicator, op: str, term: Ref, result: Ref) -> None:
        super().__init__(f"allreduce {op}", [term], [result])
        self.comm, self.op = comm, op
        self.mark = mark_of_terms(op, term)
        self.line: Any = None

    @property
    def sizes(self) -> tuple[str, dict[int, int], dict[int, int]]:
        """What it does, as `StartStep.sizes` says it."""
        (term,) = self.reads
        return f"{self.word} of {term.dtype}{list(term.shape)}", {}, {}

    def run(self, inner: Any, reads: list[Any], writes: list[Any]) -> None:
        (term,), (result,) = reads, writes
        if counters.active:
            counters.add(collectives=1)
        inner._copy_into(result, term)
        found = combining.combined(self.comm, inner, result, REDUCTIONS[self.op], self.mark)
        if found is not result:
            inner._copy_into(result, found)


def matched_messages(steps: Sequence[Step]) -> None:
    """Raise on all processes if they are not about to send each other what they expect.

    They compare it once, before a program first runs: what goes to whom, how long it is, and what is combined.
    Two processes that have nothing for each other need not have the same exchanges.
    """
    ours = [s for s in steps if isinstance(s, (StartStep, ReduceStep))]
    for comm in {id(s.comm): s.comm for s in ours}.values():
        if comm.size == 1:
            continue
        mine = [(s.sizes, shown_line(s.line)) for s in ours if s.comm is comm]
        said = comm.allgather_object(mine)
        wrong = []
        for rank, theirs in enumerate(said):
            for other, others in enumerate(said[:rank]):
                both = (other, _between(others, rank)), (rank, _between(theirs, other))
                k = _first_difference(*both)
                if k is not None:
                    wrong.append((k, *both))
        if wrong:
            raise _mismatch(*min(wrong, key=lambda found: (found[0], found[2][0], found[1][0])))


def _between(steps: list[Any], rank: int) -> list[Any]:
    """The messages of a process that concern another one: what is combined concerns all."""
    return [(what, line) for what, line in steps if what[0] != "send" or rank in what[1] or rank in what[2]]


_NOTHING: Any = ("nothing more", {}, {}), "its end"


def _first_difference(one: tuple[int, list[Any]], two: tuple[int, list[Any]]) -> int | None:
    """Which of the messages of two processes with each other do not fit first, if any."""
    (p, ours), (q, theirs) = one, two
    for k in range(max(len(ours), len(theirs))):
        (word, out, into), _ = ours[k] if k < len(ours) else _NOTHING
        (other, back, come), _ = theirs[k] if k < len(theirs) else _NOTHING
        if word != other or out.get(q, 0) != come.get(p, 0) or back.get(p, 0) != into.get(q, 0):
            return k
    return None


def _mismatch(k: int, *both: tuple[int, list[Any]]) -> TraceError:
    """The error for the k-th messages of two processes."""
    (p, first), (q, second) = both
    (one, out, into), here = first[k] if k < len(first) else _NOTHING
    (two, back, come), there = second[k] if k < len(second) else _NOTHING
    said = [
        f"rank {p} does '{one}' (to rank {q} {out.get(q, 0)} bytes, from it {into.get(q, 0)}) in {here}",
        f"rank {q} does '{two}' (to rank {p} {back.get(p, 0)} bytes, from it {come.get(p, 0)}) in {there}",
    ]
    return TraceError(
        f"Ranks {p} and {q} have compiled programs whose messages do not fit: {', and '.join(said)}. They "
        "would wait for each other for ever, so none has begun. What one process sends another takes at the "
        "same place of the program: let exchanges depend on nothing that processes know differently."
    )


class CombineStep(OutsideStep):
    """Combine terms of reductions: those between the same processes travel together."""

    __slots__ = ("comm", "family", "how")

    def __init__(
        self, family: Any, comm: Communicator, terms: list[Ref], results: list[Ref], how: list[Any]
    ) -> None:
        super().__init__("combine", terms, results)
        self.family = family
        self.comm = comm
        # For each, the result's partition, the processes, the reduction.
        self.how = how

    def run(self, inner: Any, reads: list[Any], writes: list[Any]) -> None:
        terms = [
            combining.Term(None, self.family, self.comm, local, part, group, reduction)
            for local, (part, group, reduction) in zip(reads, self.how, strict=True)
        ]
        combining.combine(terms)
        for term, result in zip(terms, writes, strict=True):
            inner._copy_into(result, term.local)
