"""A check of the owners we count (`MIRABELLE_CHECK_OWNERS=1`): does CPython know a holder that we do not?

Whoever keeps a version beyond a call has to be counted (dispatch/csrc/owners.c): otherwise memory that it reads
is written in place, and its numbers are wrong. While the setting is on, all that refers to a leaf is looked
through at each such write. What ends with the call does not matter: local variables, and containers that only
they refer to. Slow (a hundredth of a second a write): for runs of tests.

>>> import mirabelle as mb
>>> from mirabelle.dispatch import ownercheck
>>> x = mb.ones(3)
>>> ownercheck.uncounted_holder(x._node) is None
True
"""

from __future__ import annotations

import gc
from types import FrameType, GeneratorType, ModuleType
from typing import Any

from mirabelle.dispatch import _native

# What is held by so much is no local variable's.
_MANY = 200


class UncountedOwnerError(RuntimeError):
    """Something keeps a version that is about to be written, and is not counted among its holders."""


def uncounted_holder(version: Any) -> Any:
    """What keeps a version beyond a call and is not counted; None if nothing does."""
    waiting: list[Any] = [version]
    # (By their numbers: what is looked at must not be held by what looks.)
    seen = {id(version), id(waiting)}
    while waiting:
        held = waiting.pop()
        referrers = gc.get_referrers(held)
        seen.add(id(referrers))
        for holder in referrers:
            if id(holder) in seen or isinstance(holder, FrameType):
                continue
            seen.add(id(holder))
            if held is version and _is_counted(holder, version):
                continue
            if held is not version and isinstance(holder, (_native.Handle, _native.Leaf)):
                return holder  # (something that an array keeps: it stays with that one)
            if _stays(holder) or len(seen) > _MANY:
                return holder
            waiting.append(holder)
        del referrers
    return None


def _is_counted(holder: Any, version: Any) -> bool:
    if isinstance(
        holder, (_native.Handle, _native.Leaf)
    ):  # (a leaf that shows a part of it is asked by itself)
        return True
    if isinstance(holder, _native.Node):
        return holder.value is version
    if isinstance(holder, _native.Reduced):
        return holder.operand is version or holder.value is version
    if type(holder) is tuple:
        return any(isinstance(x, _native.Node) and x.args is holder for x in gc.get_referrers(holder))
    return False


def _stays(holder: Any) -> bool:
    """Does it go on when the functions that run now have ended?"""
    if isinstance(holder, dict):
        return "__builtins__" in holder or "__name__" in holder
    if isinstance(holder, GeneratorType):
        return not holder.gi_running
    return isinstance(holder, (ModuleType, type))


def check(leaf: Any) -> None:
    """Called where the memory of a leaf is about to be written in place."""
    holder = uncounted_holder(leaf)
    if holder is not None:
        raise UncountedOwnerError(
            f"{leaf!r} is about to be written in place, as nobody else is counted who holds it; but "
            f"{type(holder).__name__} {str(holder)[:200]} does. Have whatever keeps a version hold "
            "`mirabelle.dispatch.tree.kept(version)`, or an array."
        )
