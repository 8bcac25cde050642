"""What a plan does for the messages of a program: steps whose memory is the plan's own."""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.programs.exchanging import Exchange, FinishStep, ReduceStep, StartStep
from mirabelle.arraytypes.programs.graph import Call, result_node
from mirabelle.arraytypes.programs.steps import Ref, whole


def plan_messages(planner: Any, call: Call) -> None:
    """Add the step of a call that other processes take part in."""
    PLANNED[call.kind](planner, call)


def _after(planner: Any, call: Call) -> None:
    """A value where it is, once the messages that stand before it are made."""
    for r in planner.users.get(id(call), ()):
        planner.where[id(r)] = planner.where[id(call.operands[0])]
        planner.made_by[id(r)] = len(planner.steps) - 1


def _send(planner: Any, call: Call) -> None:
    token = planner.users[id(call)][0]
    end = planner.users[id(token)][0]
    delivery = call.template[0][0]
    exchange = planner.exchanges[id(call)] = Exchange(delivery.comm, delivery.mark, delivery.word)
    for rank, (i, a, b) in delivery.sends.items():
        if b > a:
            exchange.sends[rank] = rows(planner.ref(call.operands[i]), a, b)
    landed = []
    for i in range(len(delivery.landing)):
        result = result_node(end, i)
        landed.append(planner.new_storage(result))
        planner.where[id(result)] = landed[-1]
    for rank, (i, a, b) in delivery.receives.items():
        if b > a:
            exchange.receives[rank] = rows(whole(landed[i]), a, b)
    step = StartStep(exchange)
    step.line = call.line
    planner.add(step)


def _receive(planner: Any, call: Call) -> None:
    planner.add(FinishStep(planner.exchanges[id(call.operands[0].operands[0])]))
    for r in planner.users.get(id(call), ()):
        planner.made_by[id(r)] = len(planner.steps) - 1


def _combine(planner: Any, call: Call) -> None:
    comm, op, _ = call.template[0]
    result = result_node(call, 0)
    s = planner.where[id(result)] = planner.new_storage(result)
    step = ReduceStep(comm, op, planner.ref(call.operands[0]), whole(s))
    step.line = call.line
    planner.add(step)
    planner.made_by[id(result)] = len(planner.steps) - 1


PLANNED = {"after": _after, "combine": _combine, "receive": _receive, "send": _send}


def rows(ref: Ref, a: int, b: int) -> Ref:
    """Some rows of what lies in memory in one piece."""
    if not ref.shape:
        return ref
    return Ref(ref.storage, ref.offset + a * ref.strides[0], (b - a, *ref.shape[1:]), ref.strides, ref.dtype)
