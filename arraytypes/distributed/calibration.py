"""How many references CPython counts where the short ways ask who else holds a version.

Interpreters differ in what they count, so it is measured once, on arrays nobody else holds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.distributed import combining, execution, moving
from mirabelle.arraytypes.distributed.communicators import Alone, use_communicator
from mirabelle.arraytypes.distributed.views import family_over
from mirabelle.arraytypes.elementwise import default_family
from mirabelle.dispatch import verbs
from mirabelle.dispatch.references import SHARED, least, when_uncertain
from mirabelle.dispatch.settings import settings


class _Probe(int):
    """A number that notes what it is compared with, and is never exceeded."""

    seen: list[int]

    def __lt__(self, count: object) -> bool:  # `count > probe` asks the subclass first
        self.seen.append(count)  # type: ignore[arg-type]
        return False


def _measured(module: Any, name: str, statement: Any) -> None:
    probe = _Probe(0)
    probe.seen = []
    setattr(module, name, probe)
    for _ in range(3):
        statement()
    setattr(module, name, least(probe.seen))


def _share() -> None:
    moving._ALONE = SHARED


when_uncertain(_share)


def calibrate() -> None:
    """Measure, once the backends are there."""
    # (Whatever the settings are: a kernel for this is never worth compiling.)
    few = settings.changed(small_size=1 << 12, compile_size=1 << 30, compile_after=1 << 30)
    with use_communicator(Alone()), few:
        x = family_over(default_family())(np.zeros(2))
        _measured(execution, "_REFERENCES", lambda: verbs.materialize(verbs.add(verbs.square(x), x)))
        _measured(combining, "_HELD_BY_REDUCTION", lambda: verbs.materialize(verbs.sum(verbs.square(x))))

        def share() -> None:
            y = family_over(default_family())(np.zeros(2))
            moving.shared_local(y)

        _measured(moving, "_ALONE", share)
