"""What a plan does for the launches of a program's kernels (`@mb.kernel`): they write in place."""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.programs import calls
from mirabelle.arraytypes.programs.graph import Slot
from mirabelle.arraytypes.programs.steps import LaunchStep, Storage, whole


def plan_launch(planner: Any, call: Any) -> None:
    """Add the step of a launch: it writes where the values before are, if nobody reads these any more."""
    kernel, _, _, arguments = call.template[0]
    effects = kernel.source.effects
    slots = [
        slot.number
        for name, x in zip(kernel.source.parameters, arguments, strict=True)
        if effects[name]
        for slot in _slots(x)
    ]
    refs = [planner.ref(a) for a in call.operands]
    results = {r.number: r for r in planner.users.get(id(call), ())}
    dests: dict[int, Storage] = {}
    for number, slot in enumerate(slots):
        shared = sum(r.storage is refs[slot].storage for r in refs) > 1
        s = dests[slot] = planner.memory_over(call.operands[slot], call, shared)
        if number in results:
            planner.where[id(results[number])] = s
    step = LaunchStep(call, [whole(dests[i]) if i in dests else r for i, r in enumerate(refs)], dests, _launch)
    planner.add(step)
    for r in results.values():
        planner.made_by[id(r)] = step.number


def _slots(nest: Any) -> list[Slot]:
    if isinstance(nest, (list, tuple)):
        return [s for x in nest for s in _slots(x)]
    return [nest] if isinstance(nest, Slot) else []


def _launch(inner: Any, template: Any, views: list[Any]) -> None:
    (kernel, shape, group, arguments), _ = calls.filled(template, views)
    run = kernel.launcher_of(inner)
    assert run is not None
    run(kernel, shape, group, arguments)
