"""`mb.explain` of distributed arrays: what each process needs from others, and the kernel on this one.

Like all looking, it sends no message: layouts say what would be exchanged.
"""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes import flow
from mirabelle.arraytypes.cards import distributed, pending, shown_bytes, waiting
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.distributed import layoutreport, rehearsal, showing
from mirabelle.arraytypes.distributed.execution import target_of
from mirabelle.arraytypes.distributed.layoutreport import Division
from mirabelle.arraytypes.wrappers import root_of
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import Leaf, format_tree


def facts_of(x: Any, explain_local: Any, into: Any = None) -> tuple[dict[str, str], str, str, Any]:
    """The facts, the tree, the source of the local kernel, and the picture of an array's version.

    `explain_local` explains an array of the local type; `into` is what x is written to, if it is.
    """
    division, comm = showing.division_of(x if into is None else into)
    target = None if into is None else _target(into)
    who = "" if comm.size == 1 else f", this is rank {comm.rank}"
    facts = {
        "result": f"{type(x).__name__} of shape {x.shape} on {x.place}",
        "layout": layoutreport.words(division) + who,
    }
    if waiting(x) is None and into is None:
        version: Any = verbs.leaf_of(x)
        facts["state"] = "evaluated: each process has its part in memory"
        facts["launches"] = "0"
        return facts, format_tree(version), "", flow.flow(version)
    # (`tree` of a wrapper would evaluate what it shows, if that is costly.)
    version = verbs.tree(x) if hasattr(x, "_node") else waiting(x) or verbs.leaf_of(x)
    names: dict[Any, str] = {}

    def name(leaf: Leaf) -> str:
        return names.setdefault(leaf.key(), f"x{len(names) + 1}")

    tree = format_tree(version, name)
    steps = rehearsal.rehearse(version, name, target)
    facts["state"] = f"not evaluated; {pending(version)}"
    facts["exchanged"] = _total(steps)
    for step in steps:
        for need in step.needs:
            facts.setdefault(need.name, need.words)
    combined = [s for s in steps if s.combines is not None]
    if combined:
        facts["combined"] = "; ".join(map(_combined, combined))
    last = steps[-1]
    if last.partition is not last.result or len(steps) > 1:
        said = [layoutreport.words(Division.of_partition(s.partition)) for s in steps]
        facts["work"] = ", then ".join(dict.fromkeys(said))
    local = rehearsal.local_tree(last)
    if local is None or isinstance(local, Leaf):
        facts["launches"] = "known when it runs"
        return facts, tree, "", flow.flow(version)
    here = explain_local(wrap(type(root_of(x)).family.inner, local))
    if comm.size > 1:
        facts["process"] = f"rank {comm.rank} of {comm.size}; what follows is of its part"
    for key in ("method", "launches", "bytes read", "bytes written", "one operation at a time", "runs as"):
        if key in here.facts:
            facts[key] = here.facts[key]
    return facts, tree, here.source, flow.flow(version)


def _target(into: Any) -> Any:
    """The partition of what is written through an array."""
    if not distributed(into) or waiting(into) is not None:
        raise TypeError(
            "`into` is the distributed array, or the part of one, that a statement writes to: for u[1:-1] = x, "
            "mb.explain(x, into=u[1:-1])."
        )
    shown = verbs.leaf_of(into).view.map
    return None if shown is None else target_of(shown)[0]


def _total(steps: list[Any]) -> str:
    """All messages that operands take, over all processes."""
    sent = [{k: n for need in step.needs for k, n in (need.sent or {}).items()} for step in steps]
    messages = sum(len({message for message, _ in found}) for found in sent)
    total = sum(sum(found.values()) for found in sent)
    size = steps[-1].comm.size
    if size == 1:
        return "nothing: there is one process"
    if any(need.sent is None for step in steps for need in step.needs):
        return "more than layouts say: see the operands"
    if not messages:
        combines = any(s.combines for s in steps)
        return "no operands, only terms" if combines else "nothing: each process has what it needs"
    return f"{shown_bytes(total)} in {messages} message{'s' if messages > 1 else ''} between {size} processes"


def _combined(step: Any) -> str:
    group, size = step.combines
    name = step.version.reduction.name
    return f"{name}: a term of {shown_bytes(size)} on each of {layoutreport.ranks(list(group))}"
