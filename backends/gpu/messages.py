"""Messages of compiled programs that go from card to card: launches among the others of a graph.

What is sent and what comes lies in the program's own memory, so the card knows by itself what they wait for,
and who waits for them; all else runs beside them. The host does nothing for them when the program runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mirabelle.arraytypes.programs.dividedvalues import LocalFold, Value
from mirabelle.arraytypes.programs.exchanging import FinishStep, ReduceStep, StartStep
from mirabelle.arraytypes.programs.steps import FoldStep, Step, Storage, whole
from mirabelle.arraytypes.reductions import REDUCTIONS
from mirabelle.backends.gpu.kernelgraphs import Launch, Room
from mirabelle.dispatch.schedule import Request

# The memory that is no memory: messages of one program come one after the other, in its order on all processes.
ORDER = -7


def launched(plan: Any, step: StartStep | FinishStep | ReduceStep) -> list[Launch] | None:
    """The launches of a step; None where it is done between graphs, by the host."""
    if isinstance(step, ReduceStep):
        return _reduced(plan, step)
    carrier = _carrier(plan, step.exchange.comm)
    if carrier is None:
        return None
    if isinstance(step, FinishStep):
        return []  # (who reads what came waits for it)
    exchange = step.exchange
    sends, receives = [*exchange.sends.values()], [*exchange.receives.values()]
    call = carrier.exchange_call(
        [(r, ref.nbytes) for r, ref in exchange.sends.items()],
        [(r, ref.nbytes) for r, ref in exchange.receives.items()],
    )
    return [_launch(plan, call, sends, receives)]


def counted(steps: Iterable[Step]) -> dict[str, int]:
    """What messages among some steps send, as counters of `mb.count`: a launched graph says nothing."""
    found = {"messages": 0, "bytes_sent": 0, "collectives": 0}
    for step in steps:
        if isinstance(step, StartStep):
            sends = step.exchange.sends.values()
            found["messages"] += len(sends)
            found["bytes_sent"] += sum(ref.nbytes for ref in sends)
        found["collectives"] += isinstance(step, ReduceStep)
    return found


def _carrier(plan: Any, comm: Any) -> Any:
    """What sends the memory of these cards within graphs, if something does."""
    found = comm.carrier(plan.inner)
    return found if plan.driver.has_graphs and hasattr(found, "exchange_call") else None


def _launch(plan: Any, call: Any, reads: list[Any], writes: list[Any]) -> Launch:
    order = (ORDER, 0, 1)
    operands = [plan.place_of(r) for r in (*reads, *writes)]
    return Launch(
        call, operands, [], [plan.touched(r) for r in reads], [*[plan.touched(r) for r in writes], order]
    )


def _reduced(plan: Any, step: ReduceStep) -> list[Launch] | None:
    """All terms on all cards, and a reduction of them in the order of ranks: the same bits everywhere."""
    carrier = _carrier(plan, step.comm)
    (term,), (result,) = step.reads, step.writes
    if carrier is None or not term.nbytes:
        return None
    n = step.comm.size
    gathered = Storage(plan.spare, "temporary", Value((n, *term.shape), term.dtype))  # type: ignore[arg-type]
    plan.spare += 1
    plan.rooms[gathered.number] = Room(gathered.nbytes)
    whole_of = whole(gathered)
    reduction = REDUCTIONS[step.op]
    fold: Any = LocalFold(reduction, (0,), False, term.shape, term.dtype, step.op, None)
    request = Request(((), (-1,)), [whole_of], [], whole_of.shape, [])  # type: ignore[list-item]
    second = plan._fold(FoldStep([fold], request, (0,), [result]))
    if second is None:
        return None
    return [_launch(plan, carrier.allgather_call(term.nbytes), [term], [whole_of]), *second]
