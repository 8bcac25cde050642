"""What leans on the insides of other projects: what for, and whether it may.

Each of these stands in one module and is an optimisation or a convenience: without it results are the same.
`mb.settings.internals` says which are used: all, none, or names.

>>> from mirabelle.dispatch import internals
>>> from mirabelle.dispatch.settings import settings
>>> with settings.changed(internals="blas"):
...     internals.used("blas"), internals.used("bytecode")
(True, False)
"""

from __future__ import annotations

from mirabelle.dispatch.settings import INTERNALS, settings

__all__ = ["INTERNALS", "used"]


def used(name: str) -> bool:
    """May it be used? (Asked when something is first made of it.)"""
    chosen = settings.internals
    return chosen == "all" or (chosen != "none" and name in chosen.split(","))
