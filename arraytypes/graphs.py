"""Graphs: a block of statements recorded once, and replayed with what its arrays hold then.

>>> import mirabelle as mb
>>> u = mb.CuArray([1.0, 2.0])                        # doctest: +SKIP
>>> with mb.capture() as step:                        # doctest: +SKIP
...     u[...] = u * 2
>>> step.replay()                                     # doctest: +SKIP
>>> print(u)                                          # doctest: +SKIP
[4. 8.]

A card runs a graph's kernels one after the other without Python between them. A graph has addresses:
so arrays that were there before the block are written where they are, and a replay brings back to its place
what has been written elsewhere since. What was said of an array before a replay stays as it was.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mirabelle.arraytypes import recording
from mirabelle.arraytypes.assign import nobody_else, written
from mirabelle.arraytypes.dense import evaluated
from mirabelle.arraytypes.moving import claim, move_away, twin
from mirabelle.arraytypes.streams import card_family
from mirabelle.dispatch.errors import DeviceError
from mirabelle.dispatch.styles import Place
from mirabelle.dispatch.tree import Leaf

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import Device
    from mirabelle.arraytypes.gpu import GPUArray


class Graph:
    """Statements recorded by `with mb.capture() as g:`, to be done again by `g.replay()`.

    >>> import mirabelle as mb
    >>> u = mb.RefArray([1.0])
    >>> with mb.capture(mb.RefArray) as g:
    ...     u[...] = u * 2
    >>> g.replay()
    >>> print(u)
    [4.]
    """

    def __init__(self, family: type[GPUArray[Any]]) -> None:
        self._family = family
        self._recorder: Any = None
        self._run: Any = None
        self._arrays: list[_Home] = []
        # The memory there was before the block, and how often it had been written; the arrays there were.
        self._before: weakref.WeakKeyDictionary[Leaf, int] = weakref.WeakKeyDictionary()
        self._old: dict[int, weakref.ref[Any]] = {}
        self.place: Place = family.home
        # How many kernels of ours the graph has. (A library's are not counted.)
        self.kernels = 0

    def __enter__(self) -> Graph:
        if self._recorder is not None or self._run is not None:
            raise DeviceError("A graph is recorded once. Make another: `with mb.capture() as g:`.")
        if recording.current() is not None:
            raise DeviceError(
                "A graph is being recorded already, and graphs are not recorded within each other."
            )
        recorder = self._family.driver().recorder(self._family)
        # What was said before the block is computed before it, and each array has memory of its own.
        arrays = _arrays(self._family)
        _evaluate_pending(arrays)
        _part(arrays)
        self._old = {id(x): weakref.ref(x) for x in arrays}
        del arrays
        view_type = self._family.view_type
        # (Another thread may be making a leaf, which has no memory yet.)
        known = Leaf, view_type
        living = [
            x for x in gc.get_objects() if type(x) in known and (type(x) is not Leaf or hasattr(x, "view"))
        ]
        recorder.know(x for x in living if type(x) is view_type and hasattr(x, "owner"))
        for x in living:
            if type(x) is Leaf and recorder.concerns(x.view):
                self._before[x] = x.writes
        del living
        recorder.begin()
        recording.active.append(recorder)
        self._recorder = recorder
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        recorder = self._recorder
        arrays: list[Any] = []
        try:
            if error is None:
                # What a name holds at the end is computed by the graph.
                arrays = _arrays(self._family)
                _evaluate_pending(arrays)
                _part(sorted(_touched(recorder, arrays), key=lambda x: not self._is_old(x)))
        finally:
            recording.active.remove(recorder)
            try:
                self._run = recorder.end()
            except Exception:
                if error is None:
                    raise
        if self._run is None:
            return
        self.kernels = recorder.kernels
        self._arrays = [_Home(x, self._written(x._node)) for x in _touched(recorder, arrays)]
        del arrays
        self._before.clear()
        self._old.clear()
        # So far nothing has been done: what the block says happens now, once.
        self._run()

    def _written(self, leaf: Leaf) -> bool:
        return self._before.get(leaf) != leaf.writes

    def _is_old(self, x: Any) -> bool:
        ref = self._old.get(id(x))
        return ref is not None and ref() is x

    def replay(self) -> None:
        """Do the block's statements again, with what the arrays hold now.

        Numbers of the host are those of the recording; put what changes in an array.
        """
        if self._run is None:
            raise DeviceError(
                "Nothing has been recorded: a graph is replayed after its block, `with mb.capture() as g:`."
            )
        if recording.current() is not None:
            raise DeviceError("A graph is being recorded, and a replay cannot be a part of it.")
        for home in self._arrays:
            home.fetch()
        for home in self._arrays:
            home.claim()
        self._run()

    def __repr__(self) -> str:
        kernels = f"{self.kernels} kernel{'s' * (self.kernels != 1)}"
        state = f"{kernels}, {len(self._arrays)} arrays" if self._run else "not recorded"
        return f"<graph on {self.place}: {state}>"


def capture(device: Device | None = None) -> Graph:
    """Record the statements of a `with` block as a graph of a card, to be replayed with `g.replay()`.

    The block is done once, when it ends. Results that names hold then are evaluated in it, and every replay
    evaluates them anew. What a replay shall go on from is written in place: `u[...] = f(u)`, not `u = f(u)`.
    Memory that the graph needs is kept for as long as it lives. Values cannot be read in the block; what
    the host does in it (numbers, copies to the card, random numbers' states) is recorded as it was, and
    work on other cards is not recorded. Meanwhile no other thread should make arrays on the card.

    Parameters
    ----------
    device : array type or None
        Which card; None is the one in use.

    Returns
    -------
    mb.types.Graph
        For a `with` block, which gives it as `g`; `g.replay()` does the block again, and `g.kernels` counts
        its kernels.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x, z = mb.CuArray([1.0]), mb.CuArray([0.0])   # doctest: +SKIP
    >>> with mb.capture() as g:                       # doctest: +SKIP
    ...     z[...] = x * 2
    >>> x[...] = 5                                    # doctest: +SKIP
    >>> g.replay()                                    # doctest: +SKIP
    >>> print(z)                                      # doctest: +SKIP
    [10.]
    """
    return Graph(card_family(device, "A graph"))


class _Home:
    """An array of a graph, and the place in memory where the graph expects it."""

    def __init__(self, x: Any, is_written: bool) -> None:
        self._array = weakref.ref(x)
        self._leaf = weakref.ref(x._node)
        self._is_written = is_written
        # Not the view itself: who holds that counts as a reader.
        self._view = twin(x._node.view)

    def fetch(self) -> None:
        """Bring the array's present contents where the graph expects them."""
        x = self._array()
        if x is None or x._node is self._leaf() or _is_at(evaluated(x).view, self._view):
            return
        self._leave_to_readers()
        view = twin(self._view)
        x.family._copy_into(view, x._node.view)
        x._node = Leaf(view)
        self._leaf = weakref.ref(x._node)

    def _leave_to_readers(self) -> None:
        """Who still reads what lies at this place reads a copy from now on."""
        leaf = self._leaf()
        if leaf is not None and _is_at(leaf.view, self._view):
            move_away(leaf)

    def claim(self) -> None:
        """Make sure that nobody else reads what the graph is about to write."""
        if not self._is_written:
            return
        x = self._array()
        if x is None:
            self._leave_to_readers()
            return
        leaf = x._node
        if leaf.foreign:
            return
        if nobody_else(leaf, None, []):
            written(leaf)
            # A reduction of the old contents must not be found by one of the new.
            leaf.reducers = None
            return
        self._leaf = weakref.ref(claim(x))


def _is_at(view: Any, home: Any) -> bool:
    return view.ptr == home.ptr and view.strides == home.strides  # type: ignore[no-any-return]


def _arrays(family: Any) -> list[Any]:
    """The arrays of a family that live. (All objects are gone through: what is asked of each is little.)"""
    kinds = {kind for kind in _kinds(family) if kind.family is family}
    return [x for x in gc.get_objects() if type(x) in kinds and hasattr(x, "_node")]


def _kinds(cls: Any) -> Iterator[Any]:
    """A class and all below it."""
    yield cls
    for below in type.__subclasses__(cls):
        yield from _kinds(below)


def _evaluate_pending(arrays: list[Any]) -> None:
    for x in arrays:
        if type(x._node) is not Leaf:
            evaluated(x)


def _part(arrays: list[Any]) -> None:
    """Give each array a version of its own: the first keeps the one that several hold."""
    seen: set[int] = set()
    for x in arrays:
        leaf = x._node
        if type(leaf) is Leaf and not leaf.foreign:
            if id(leaf) in seen:
                x._node = Leaf(_copy(x.family, leaf.view))
            seen.add(id(x._node))


def _copy(family: Any, view: Any) -> Any:
    made = family._empty(view.shape, view.dtype)
    family._copy_into(made, view)
    return made


def _touched(recorder: Any, arrays: list[Any]) -> list[Any]:
    """Of arrays, those whose memory a graph reads or writes."""
    return [x for x in arrays if type(x._node) is Leaf and recorder.touches(x._node.view)]


__all__ = ["Graph", "capture"]
