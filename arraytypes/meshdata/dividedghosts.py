"""What a distributed array knows of ghosts: whether copies of its entries hold, and which reduction is pending.

A loop over processes runs on local arrays with ghosts. These stay with the distributed array. What a loop
added to ghosts waits there: another loop that adds joins it, and one that reads sends one reduction and one
broadcast, while it runs over points that need neither. For all else the array is one that waits for terms of
others (a partial partition, as of sums): whoever asks for its contents has them joined first, on all processes.
Copies that were brought hold until the array is written to.

>>> import mirabelle as mb
>>> from mirabelle import meshdata as md
>>> mesh = md.unit_square(2)
>>> V = md.space(mesh, "P", 1)
>>> def ones(y):
...     y += 1
>>> y = V.zeros(mb.DArray)
>>> md.loop(mesh.points("cell"), ones, md.INC(y, V.dofs))
>>> md.state_of(y)
State(pending='sum', valid=False)
>>> mb.sum(y).item(), md.state_of(y)
(24.0, State(pending=None, valid=False))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.distributed.darray import DArray, evaluated_view
from mirabelle.arraytypes.distributed.layouts import partition
from mirabelle.arraytypes.distributed.views import DBuffer, DView, family_over
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.meshdata.divisions import Entries
from mirabelle.arraytypes.meshdata.ghosts import Ghosted
from mirabelle.arraytypes.meshdata.ghoststates import STALE, State
from mirabelle.arraytypes.programs.traced import Traced
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import Leaf

if TYPE_CHECKING:
    from mirabelle.arraytypes.abstract import AbstractArray

# By which name an array keeps its copies of others' entries, as something known of its contents.
_GHOSTS = "ghosts"


class WaitingBuffer(DBuffer):
    """Distributed memory to which ghosts on other processes are still to be joined."""

    __slots__ = ("ghosts",)

    ghosts: Any
    divided_so = True

    def joined(self) -> bool:
        """Join them; they were told to the reader then. (All processes do.)"""
        entries, g = self.ghosts
        g.begin("READ", "owned").end()
        self.settled(entries, g)
        return True

    def settled(self, entries: Entries, g: Ghosted) -> None:
        """The contents are there: those of the local array."""
        part = self.partition
        self.partition = partition(part.shape, part.mesh, part.splits)
        self.local = own_view(entries, g.array)
        self._leaf = None

    @property
    def waits(self) -> bool:
        return bool(self.partition.partial)


def own_view(entries: Entries, array: Any) -> Any:
    """The memory of own entries, of a local array with ghosts."""
    own = array if entries.alone else array[entries.index(leaf_family(type(array)))]
    view = verbs.leaf_of(verbs.materialize(own)).view
    return view if view.flags.c_contiguous else verbs.leaf_of(verbs.copy(own)).view


def ghosts_of(entries: Entries, x: DArray, written: bool) -> Ghosted:
    """The local array with ghosts of a distributed one; a copy, if it is to be written."""
    leaf: Any = verbs.leaf_of(x)
    buffer = leaf.view.buffer
    if isinstance(buffer, WaitingBuffer) and buffer.waits and buffer.ghosts[0] is entries and leaf.view.whole:
        g = buffer.ghosts[1]
    else:
        evaluated_view(x)
        known = _recalled(leaf)
        if known is None or known[0] is not entries:
            g = Ghosted(entries.local(x, written=written), entries.forest, valid=False)
            g.owned_count = entries.count
            if not written:  # (also where there are no ghosts: others have some)
                _remember(leaf, entries, g)
            return g
        g = known[1]
    return g.copy() if written else g


def _remember(leaf: Any, entries: Entries, g: Ghosted) -> None:
    """Keep copies of others' entries as long as the contents are the same. (A program's are not: it is called
    with others.)"""
    if not _traced(leaf) and not isinstance(g.array, Traced):
        leaf.remember(_GHOSTS, (entries, g))


def _recalled(leaf: Any) -> Any:
    return None if _traced(leaf) else leaf.recalled(_GHOSTS)


def _traced(leaf: Any) -> bool:
    return type(leaf) is not Leaf or leaf.view.buffer.inner.home.kind == "traced"


def was_read(entries: Entries, x: DArray, g: Ghosted) -> None:
    """A loop has read an array, and what was pending may have come."""
    leaf = verbs.leaf_of(x)
    buffer = leaf.view.buffer
    if isinstance(buffer, WaitingBuffer) and buffer.waits and g.state.pending is None:
        buffer.settled(entries, g)
        _remember(leaf, entries, g)


def keep(entries: Entries, x: DArray, g: Ghosted) -> None:
    """Let a distributed array have what a loop wrote, with what is pending."""
    part = entries.partition(g.array.shape[1:])
    family = family_over(leaf_family(type(g.array)))
    if g.state.pending is None:
        verbs.assign(x, entries.vector(g.array, copied=False))
        leaf = verbs.leaf_of(x)
        if leaf.view.whole and leaf.view.partition is part:
            _remember(leaf, entries, g)
        return
    buffer = WaitingBuffer(
        entries.forest.comm,
        partition(part.shape, part.mesh, part.splits, ((0, g.state.pending),)),
        family.inner,
        own_view(entries, g.array),
    )
    buffer.ghosts = entries, g
    verbs.assign(x, wrap(family, Leaf(DView(buffer))))


def state_of(x: AbstractArray | Ghosted) -> State:
    """What an array over processes knows of its ghosts: do they hold, and which reduction is pending?

    Parameters
    ----------
    x : array or Ghosted
        A distributed array, perhaps over a tree, or a local one with ghosts.

    Returns
    -------
    mb.meshdata.State
        `pending`, the operation by which contributions are still to join, and `valid`. Nothing is sent for it.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> md.state_of(mb.DArray([1.0, 2.0]))
    State(pending=None, valid=False)
    """
    if isinstance(x, Ghosted):
        return x.state
    array: Any = x
    x = array.parent if hasattr(array, "tree") else array
    if not isinstance(x, DArray):
        raise TypeError(
            f"A {type(x).__name__} has no ghosts: what is said of them is said of arrays over processes, like "
            "`V.zeros(mb.DArray)`."
        )
    leaf: Any = verbs.leaf_of(x)
    buffer = leaf.view.buffer
    if isinstance(buffer, WaitingBuffer) and buffer.waits:
        state: State = buffer.ghosts[1].state
        return state
    known = _recalled(leaf)
    return STALE if known is None else known[1].state
