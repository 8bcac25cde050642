"""Derivatives of loops over processes: loops of values and of directions, each of which sends its messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mirabelle.arraytypes.creation import zeros_like
from mirabelle.arraytypes.duals.base import Dual, cannot_hold, outermost
from mirabelle.arraytypes.functions.manipulation import stack
from mirabelle.arraytypes.meshdata.access import Access, Intent
from mirabelle.arraytypes.meshdata.derivatives import Used, along, tangent_of
from mirabelle.arraytypes.meshdata.localkernels import LocalKernel
from mirabelle.arraytypes.meshdata.loops import loop
from mirabelle.arraytypes.meshdata.treearray import wrap
from mirabelle.dispatch import verbs


def run_dual(points: Any, kernel: LocalKernel, accesses: Sequence[Any], atomics: bool) -> None:
    """A loop in which some distributed arrays carry derivatives. All processes run it together."""
    given = [a if isinstance(a, Access) else Access(Intent.READ, a, None, True) for a in accesses]
    arrays = [a.array.parent if hasattr(a.array, "tree") else a.array for a in given]
    top = outermost(arrays)
    active = [isinstance(x, Dual) and x._tag is top._tag for x in arrays]
    intents = [a.intent for a in given]
    if any(intent.writes and not a for intent, a in zip(intents, active, strict=True)):
        raise cannot_hold(top)
    for x, intent in zip(arrays, intents, strict=True):
        if intent.fresh:  # what stood there takes no part
            x[...] = intent.neutral(x.dtype)
    tangent, kernel = tangent_of(kernel, intents, active)
    old = [x.value if a else x for x, a in zip(arrays, active, strict=True)]
    new = [verbs.copy(v) if i.writes else v for v, i in zip(old, intents, strict=True)]

    def access(i: int, intent: Intent, array: Any) -> Access:
        a = given[i]
        return Access(
            intent, wrap(a.array.tree, array) if hasattr(a.array, "tree") else array, a.through, a.whole
        )

    def run(used: Sequence[Used]) -> None:
        loop(points, tangent, *(access(*u) for u in used), atomics=atomics)

    loop(points, kernel, *(access(i, intents[i], v) for i, v in enumerate(new)), atomics=atomics)
    partials = {i: arrays[i].partials for i in tangent.active}
    rows: list[dict[int, Any]] = []
    for d in range(top.directions):
        # (A row of partials may be divided otherwise than values are.)
        rows.append({i: verbs.assign(zeros_like(old[i]), p[d]) for i, p in partials.items()})
        along(tangent, intents, old, new, rows[-1], run)
    for i, x in enumerate(arrays):
        if intents[i].writes:
            verbs.assign(x, x._with(new[i], ((None, stack([row[i] for row in rows])),)))
