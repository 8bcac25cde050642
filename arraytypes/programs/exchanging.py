"""Steps of a program over processes that others take part in: messages, and terms that are combined."""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.distributed import combining
from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.arraytypes.distributed.transfers import Messages
from mirabelle.arraytypes.programs.steps import OutsideStep, Ref


class Exchange:
    """Messages of one point of a program: what begins them and what waits for them share it."""

    __slots__ = ("comm", "messages", "receives", "sends")

    def __init__(self, comm: Communicator) -> None:
        self.comm = comm
        self.messages: Messages | None = None
        # Where what goes to a process lies, and where what comes from one will.
        self.sends: dict[int, Ref] = {}
        self.receives: dict[int, Ref] = {}


class StartStep(OutsideStep):
    """Send what others need, and let what comes arrive."""

    __slots__ = ("exchange",)

    def __init__(self, exchange: Exchange) -> None:
        super().__init__("send", [*exchange.sends.values()], [*exchange.receives.values()])
        self.exchange = exchange

    def run(self, inner: Any, reads: list[Any], writes: list[Any]) -> None:
        e = self.exchange
        e.messages = Messages(e.comm, inner)
        e.messages.begin(dict(zip(e.sends, reads, strict=True)), dict(zip(e.receives, writes, strict=True)))


class FinishStep(OutsideStep):
    """Wait until all has come, and until what was sent may be overwritten."""

    __slots__ = ("exchange",)

    def __init__(self, exchange: Exchange) -> None:
        come = [*exchange.receives.values()]
        super().__init__("receive", [*exchange.sends.values(), *come], come)
        self.exchange = exchange

    def run(self, inner: Any, reads: list[Any], writes: list[Any]) -> None:
        messages, self.exchange.messages = self.exchange.messages, None
        assert messages is not None
        messages.finish()


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
