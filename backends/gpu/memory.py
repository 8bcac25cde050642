"""When a card's memory is used up: what is said of it.

What holds the memory is looked for only then, among all objects that live: making an array costs
nothing for it.
"""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.cards import shown_bytes
from mirabelle.arraytypes.dense import VIEWS
from mirabelle.dispatch.errors import OutOfMemoryError

# So many kinds of arrays are listed.
SHOWN = 5


def exhausted(driver: Any, nbytes: int) -> OutOfMemoryError:
    """The error for memory that a card cannot give."""
    from mirabelle.arraytypes.devices import Memory

    families = dict.fromkeys(VIEWS.values())
    family: Any = next((f for f in families if f.__dict__.get("_made_driver") is driver), None)
    if family is None:
        return OutOfMemoryError(f"The card has no room for {shown_bytes(nbytes)} more.")
    report = Memory.of(family)
    name = f"mb.{family.__name__}"
    lines = [f"{family.home} has no room for an array of {shown_bytes(nbytes)}. {report.sentence()}"]
    if report.arrays:
        lines.append("Most of it is held by:")
        lines += [f"  {holding}" for holding in report.arrays[:SHOWN]]
        others = sum(h.nbytes for h in report.arrays[SHOWN:])
        if others:
            lines.append(f"  other arrays: {shown_bytes(others)}")
    unlimited = report.limit is None
    cures = [
        "Let go of what is no longer needed (`del x`)",
        "move what is not needed now (`x = mb.adapt(mb.HostArray, x)`)",
        "use a smaller dtype (`x.astype(mb.float32)`), or work on parts",
    ]
    if not unlimited:
        cures.append(f"raise the limit (`mb.set_memory_limit(None, {name})`)")
    lines.append(
        f"{'; '.join(cures)}. All arrays are what they were; `mb.memory({name})` says what holds the memory."
    )
    return OutOfMemoryError("\n".join(lines))
