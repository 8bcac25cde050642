"""What ghosts are worth, and what an access has to do about it: a table, as a function without effects.

An array of owned entries and ghosts (leaves, copies of other processes' entries) is in one of three states:

- leaves hold what their roots do: `State(None, True)`;
- leaves hold nothing that counts: `State(None, False)`;
- leaves hold contributions that their roots have not got yet, to be joined by an operation: `State(op, False)`.

Contributions by one operation commute. So several loops that add leave them where they are, and one reduction
brings all of them to the roots when somebody asks for the sum.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class State(NamedTuple):
    """`pending`: by which operation what leaves hold is to join their roots, if at all; `valid`: do leaves
    hold?

    >>> from mirabelle import meshdata as md
    >>> md.State(pending=None, valid=True)
    State(pending=None, valid=True)
    """

    pending: str | None
    valid: bool


class Action(NamedTuple):
    """What is done before an access: "reduce" by an operation, "bcast", "fill leaves" or "fill" all entries.

    Entries are filled with what contributes nothing to the operation.

    >>> from mirabelle import meshdata as md
    >>> md.transition(md.State("sum", False), md.READ)
    ((Action(what='reduce', op='sum'), Action(what='bcast', op=None)), State(pending=None, valid=True))
    """

    what: str
    op: str | None = None


HELD = State(None, True)
STALE = State(None, False)
BCAST = Action("bcast")

# The operation by which contributions join, of accesses that make some.
COMBINES = {"INC": "sum", "MIN_RW": "min", "MAX_RW": "max", "MIN_WRITE": "min", "MAX_WRITE": "max"}
ACCESSES = ("READ", "RW", "WRITE", *COMBINES, "ASSIGN")
# What a loop reaches: ghosts too; only owned entries; only those that nobody has copies of.
TOUCHED = ("core", "owned", "ghosts")
# With what pieces of a loop reach an array that was prepared for an access: what it discards is gone by then.
PIECES = {"MIN_WRITE": "MIN_RW", "MAX_WRITE": "MAX_RW"}


def transition(
    state: State, access: str, touched: str = "ghosts", subset: bool = False
) -> tuple[tuple[Action, ...], State]:
    """What has to be done before an access, in this order, and the state after it.

    `access` is that of a loop (READ, RW, WRITE, INC, MIN_RW, MAX_RW, MIN_WRITE, MAX_WRITE), or ASSIGN: every
    entry is written with what is the same everywhere, ghosts included. WRITE writes all owned entries, unless
    it is of a `subset`: then what is pending may not be forgotten.

    Parameters
    ----------
    state : State
        What is known of the ghosts.
    access : str
        What a loop is about to do, or "ASSIGN".
    touched : {"core", "owned", "ghosts"}, default "ghosts"
        How far the loop reaches on any process.
    subset : bool, default False
        Does it leave owned entries out?

    Returns
    -------
    tuple
        `(actions, state)`: a tuple of `md.Action`, empty where nothing has to be done, and a `md.State`.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> actions, state = md.transition(md.State(None, True), "INC")
    >>> actions, state
    ((Action(what='fill leaves', op='sum'),), State(pending='sum', valid=False))
    >>> md.transition(state, "INC")
    ((), State(pending='sum', valid=False))
    >>> [action.what for action in md.transition(state, "READ")[0]]
    ['reduce', 'bcast']
    """
    access = access_name(access)
    if touched not in TOUCHED:
        raise ValueError(f"A loop reaches 'core', 'owned' or 'ghosts', and not {touched!r}.")
    if access == "ASSIGN":
        return (), HELD
    if access == "WRITE" and subset:  # (what is not written stays, and no ghost is read)
        access, touched = "RW", min(touched, "owned", key=TOUCHED.index)
    op = COMBINES.get(access)
    if access in PIECES:
        # All entries are discarded, so nothing of what is pending counts, nor what an earlier loop left.
        return (Action("fill", op),), {"core": HELD, "owned": STALE, "ghosts": State(op, False)}[touched]
    if touched == "core":  # entries of which there are no copies
        return (), state
    if access == "WRITE":
        return (), STALE
    flush = () if state.pending is None else (Action("reduce", state.pending),)
    if op is not None:
        if state.pending == op:
            return (), state
        if touched == "owned":
            return flush, STALE
        return (*flush, Action("fill leaves", op)), State(op, False)
    after = HELD if access == "READ" else STALE
    if touched == "owned":
        return flush, STALE if access == "RW" or flush else state
    return (flush if state.valid else (*flush, BCAST)), after


def access_name(access: Any) -> str:
    """The name of an access: of the text itself, of an intent, or of `md.READ` and the like."""
    name = access if isinstance(access, str) else getattr(access, "value", getattr(access, "__name__", None))
    if name not in ACCESSES:
        raise ValueError(f"{access!r} is no access: there are {', '.join(ACCESSES)}.")
    return str(name)


State.__module__ = Action.__module__ = "mirabelle.meshdata"
