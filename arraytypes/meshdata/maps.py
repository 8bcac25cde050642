"""Maps: which points the points of one component lead to, as tables. They compose, and can be turned around."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from mirabelle.arraytypes.meshdata.points import Points

Table = np.ndarray[Any, np.dtype[Any]]


def index_type(largest: int) -> type[np.signedinteger[Any]]:
    """The integers in which tables hold numbers up to this one: of 32 bits where those are enough.

    >>> index_type(10).__name__, index_type(2**31).__name__
    ('int32', 'int64')
    """
    return np.int32 if largest < 2**31 else np.int64


class Target:
    """What a map says about one component: a table `[n, arity]`, or `(rowptr, values)` where it is ragged.

    In a `table`, -1 stands for nothing. The points that point `p` of a ragged target leads to are
    `values[rowptr[p]:rowptr[p + 1]]`.

    >>> from mirabelle import meshdata as md
    >>> md.unit_square(1).support("edge")
    Map(5 edge -> 6 cell, ragged)
    >>> [target] = md.unit_square(1).support("edge").targets.values()
    >>> target.ragged, target.rowptr.tolist(), target.values.tolist()
    (True, [0, 1, 2, 4, 5, 6], [0, 0, 0, 1, 1, 1])
    """

    __module__ = "mirabelle.meshdata"
    __slots__ = ("__weakref__", "rowptr", "table", "values")

    table: Table | None
    rowptr: Table | None
    values: Table

    def __init__(self, values: Table, rowptr: Table | None) -> None:
        """Keep arrays that are right already; `Map` checks what users give."""
        for array in (values, rowptr):
            if array is not None:
                array.setflags(write=False)
        self.table = values if rowptr is None else None
        self.rowptr = rowptr
        self.values = values if rowptr is not None else values.reshape(-1)

    @property
    def ragged(self) -> bool:
        """Whether points lead to different numbers of points."""
        return self.rowptr is not None

    @property
    def arity(self) -> int | None:
        """How many points each leads to; None where that differs."""
        return None if self.table is None else int(self.table.shape[1])

    @property
    def sizes(self) -> Table:
        """How many entries each point has."""
        if self.rowptr is not None:
            return np.diff(self.rowptr)
        assert self.table is not None
        return np.full(len(self.table), self.table.shape[1], dtype=self.table.dtype)

    def __len__(self) -> int:
        return len(self.table) if self.rowptr is None and self.table is not None else len(self.rowptr) - 1  # type: ignore[arg-type]

    def row(self, point: int) -> Table:
        """The entries of one point, -1 included."""
        if self.table is not None:
            return self.table[point]
        assert self.rowptr is not None
        return self.values[self.rowptr[point] : self.rowptr[point + 1]]

    def same(self, other: Target) -> bool:
        """Whether both say the same, in the same form."""
        if self.ragged != other.ragged or (self.table is not None and self.arity != other.arity):
            return False
        pointers = not self.ragged or np.array_equal(self.rowptr, other.rowptr)  # type: ignore[arg-type]
        return pointers and np.array_equal(self.values, other.values)


class Map:
    """From each point of a component to points of others.

    `targets` says for each component which: a table with as many columns as each point has entries (a table of
    one dimension is one column), or a pair `(rowptr, values)` where their number differs. -1 is nothing.

    Parameters
    ----------
    source : Points
        The points that the map leads from.
    targets : mapping of Points to tables
        Where it leads in each component: a table, or a pair `(rowptr, values)`.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> p, q, r = md.Points("a", None, 3), md.Points("b", None, 3), md.Points("c", None, 4)
    >>> f = md.Map(p, {q: [[1, 2], [0, 2], [0, 1]]})
    >>> g = md.Map(q, {r: [[0, 3], [3, 1], [2, 2]]})
    >>> f
    Map(3 a -> 2 b)
    >>> g(f)
    Map(3 a -> 4 c)
    >>> g(f)(0).tolist()
    [3, 1, 2, 2]
    """

    __module__ = "mirabelle.meshdata"
    __slots__ = ("__weakref__", "_hash", "source", "targets")

    source: Points
    targets: Mapping[Points, Target]

    def __init__(self, source: Points, targets: Mapping[Points, Any]) -> None:
        if not isinstance(source, Points):
            raise TypeError(f'A map leads from points, such as `mesh.points("cell")`, and not from {source!r}.')
        if not isinstance(targets, Mapping) or not targets:
            raise TypeError(
                "A map is given a dictionary of points and tables, such as "
                "`md.Map(cells, {vertices: [[0, 1, 2]]})`, and not "
                f"{type(targets).__name__!r} {'that is empty' if isinstance(targets, Mapping) else 'objects'}."
            )
        self.source = source
        self.targets = MappingProxyType({to: _target(source, to, given) for to, given in targets.items()})
        self._hash: int | None = None

    @classmethod
    def of(cls, source: Points, targets: Mapping[Points, Target]) -> Map:
        """A map of targets that are known to be right."""
        made = object.__new__(cls)
        made.source, made.targets, made._hash = source, MappingProxyType(dict(targets)), None
        return made

    @property
    def arity(self) -> int | None:
        """How many points of all targets together each leads to; None where that differs."""
        known = [t.arity for t in self.targets.values()]
        return None if None in known else sum(a for a in known if a is not None)

    @property
    def ragged(self) -> bool:
        """Whether any of the targets is ragged."""
        return any(t.ragged for t in self.targets.values())

    def target(self, points: Points | str | None = None) -> Target:
        """The entry of one target, which is given by its points or their name; the only one without.

        >>> from mirabelle import meshdata as md
        >>> md.unit_square(1).closure("cell").target("edge").table.tolist()
        [[2, 1, 0], [4, 2, 3]]
        """
        return self.targets[self._find(points)]

    def _find(self, wanted: Points | str | None) -> Points:
        found = [p for p in self.targets if wanted is None or p == wanted or p.name == wanted]
        if len(found) != 1:
            names = [p.name for p in self.targets]
            name = wanted.name if isinstance(wanted, Points) else wanted
            raise KeyError(
                f"The map from {self.source.name!r} leads to {names}, so that "
                + ("one of these has to be named" if wanted is None else f"{name!r} is not one target of it")
                + f": `m.restrict({names[0]!r})`."
            )
        return found[0]

    def restrict(self, *targets: Points | str) -> Map:
        """The same map to only some of its targets, in the order given.

        >>> from mirabelle import meshdata as md
        >>> md.unit_square(1).closure("cell").restrict("vertex", "cell")
        Map(2 cell -> 3 vertex, 1 cell)
        """
        found = [self._find(t) for t in targets]
        return Map.of(self.source, {p: self.targets[p] for p in found})

    def __call__(self, inner: Map) -> Map:
        """Of a number: the points it leads to (without -1; a dictionary by name where there are several
        targets).
        Of a map: the map that goes by that one first."""
        if isinstance(inner, Map):
            from mirabelle.arraytypes.meshdata.composing import compose

            return compose(self, inner)
        if isinstance(inner, bool) or not isinstance(inner, (int, np.integer)):
            raise TypeError(
                f"A map is called with the number of a point or with another map, and not with {inner!r}."
            )
        if not 0 <= inner < self.source.size:
            raise IndexError(
                f"{inner} is none of the {self.source.size} points {self.source.name!r}: they are numbered "
                "from 0."
            )
        rows = {p.name: t.row(int(inner)) for p, t in self.targets.items()}
        rows = {name: row[row >= 0] for name, row in rows.items()}
        return next(iter(rows.values())) if len(rows) == 1 else rows

    def __or__(self, other: Map) -> Map:
        """To what either leads to: of each target first what this map leads to, then what the other does.

        A point that both lead to is there twice: what a kernel adds to it is added twice.

        >>> from mirabelle import meshdata as md
        >>> mesh = md.unit_square(1)
        >>> both = mesh.closure("edge", "vertex") | mesh.support("edge")
        >>> both, both(2)
        (Map(5 edge -> 2 vertex, 6 cell, ragged), {'vertex': array([1, 2], dtype=int32), 'cell': array([0, 1], \
dtype=int32)})
        """
        if not isinstance(other, Map):
            return NotImplemented
        from mirabelle.arraytypes.meshdata.composing import union

        return union(self, other)

    def transposed(self, target: Points | str | None = None) -> Map:
        """From each point of a target (which needs no name where it is the only one) the points that lead to
        it.

        They come in rising order; a point that leads there twice is listed twice.

        >>> from mirabelle import meshdata as md
        >>> m = md.unit_square(1).closure("cell").transposed("vertex")
        >>> m, [m(v).tolist() for v in range(4)]
        (Map(4 vertex -> 6 cell, ragged), [[0], [0, 1], [0, 1], [1]])
        """
        from mirabelle.arraytypes.meshdata.composing import transposed

        return transposed(self, self._find(target))

    def padded(self, arity: int | None = None) -> Map:
        """The same map with as many entries for each point: -1 follows where there are less.

        >>> from mirabelle import meshdata as md
        >>> md.unit_square(1).support("edge").padded().target().table.tolist()  # both sides, for finite volumes
        [[0, -1], [0, -1], [0, 1], [1, -1], [1, -1]]
        """
        from mirabelle.arraytypes.meshdata.composing import padded

        return padded(self, arity)

    def renumbered(self, orders: Mapping[Points, Any]) -> Map:
        """The same map after points got new numbers: `orders` gives for points the old number of each new one.

        >>> from mirabelle import meshdata as md
        >>> p, q = md.Points("a", None, 2), md.Points("b", None, 3)
        >>> md.Map(p, {q: [[0, 1], [1, 2]]}).renumbered({p: [1, 0], q: [2, 0, 1]}).target().table.tolist()
        [[2, 0], [1, 2]]
        """
        from mirabelle.arraytypes.meshdata.composing import renumbered

        return renumbered(self, orders)

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(
            "A map is not gone through point by point; `for p in range(len(m.source)): m(p)` does that, slowly."
        )

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Map):
            return NotImplemented
        if self.source != other.source or list(self.targets) != list(other.targets):
            return False
        return all(t.same(other.targets[p]) for p, t in self.targets.items())

    def __hash__(self) -> int:
        if self._hash is None:
            some = tuple((p, t.values.size, t.values[:16].tobytes()) for p, t in self.targets.items())
            self._hash = hash((self.source, some))
        return self._hash

    def __reduce__(self) -> Any:
        given = {p: t.table if t.rowptr is None else (t.rowptr, t.values) for p, t in self.targets.items()}
        return Map, (self.source, given)

    def __repr__(self) -> str:
        to = (
            f"{t.values.size} {p.name}, ragged" if t.ragged else f"{t.arity} {p.name}"
            for p, t in self.targets.items()
        )
        return f"Map({self.source.size} {self.source.name} -> {', '.join(to)})"


def _target(source: Points, to: Any, given: Any) -> Target:
    """Check what a user says about one target."""
    if not isinstance(to, Points):
        raise TypeError(
            f'The targets of a map are points, such as `mesh.points("vertex")`, and {to!r} is none.'
        )
    if isinstance(given, Target):
        given = given.table if given.rowptr is None else (given.rowptr, given.values)
    what = f"The map from {source.name!r} to {to.name!r}"
    if isinstance(given, tuple):
        if len(given) != 2:
            raise ValueError(f"{what} is a table or a pair `(rowptr, values)`, and not {len(given)} arrays.")
        rowptr, values = (_integers(what, a) for a in given)
        if rowptr.shape != (source.size + 1,) or values.ndim != 1:
            raise ValueError(
                f"{what} needs a rowptr of {source.size + 1} numbers and values of one dimension, and got the "
                f"shapes {rowptr.shape} and {values.shape}."
            )
        if rowptr[0] != 0 or rowptr[-1] != values.size or (rowptr[1:] < rowptr[:-1]).any():
            raise ValueError(
                f"{what} needs a rowptr that rises from 0 to the number of values, {values.size}: the points "
                "that p leads to are `values[rowptr[p]:rowptr[p + 1]]`."
            )
        rowptr = np.array(rowptr, dtype=index_type(values.size))
    else:
        try:
            values, rowptr = _integers(what, given), None
        except ValueError:
            raise ValueError(
                f"{what} has rows of different lengths. Give those as `md.ragged_rows(rows)`, the pair of "
                "rowptr and values."
            ) from None
        values = values[:, None] if values.ndim == 1 else values
        if values.ndim != 2 or len(values) != source.size:
            raise ValueError(
                f"{what} has one row for each of {source.size} points, and the table has the shape "
                f"{values.shape}."
            )
    if values.size and (values.min() < -1 or values.max() >= to.size):
        wrong = np.argwhere((values < -1) | (values >= to.size))[0]
        row = int(wrong[0]) if rowptr is None else int(np.searchsorted(rowptr, wrong[0], side="right")) - 1
        raise ValueError(
            f"{what} points outside: {source.name} {row} leads to {values[tuple(wrong)]}, and there are "
            f"{to.size} points {to.name!r}, numbered from 0. (-1 is for nothing.)"
        )
    return Target(np.array(values, dtype=index_type(to.size), order="C"), rowptr)


def _integers(what: str, given: Any) -> Table:
    array = np.asarray(given)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{what} is given by integers, and not by numbers of the dtype {array.dtype}.")
    return array if array.size else array.astype(np.int32)


def ragged_rows(rows: Iterable[Sequence[int]]) -> tuple[Table, Table]:
    """The pair (rowptr, values) of rows of different lengths.

    Parameters
    ----------
    rows : iterable of sequences of int
        The rows.

    Returns
    -------
    tuple of numpy.ndarray
        Row i is `values[rowptr[i]:rowptr[i + 1]]`; `rowptr` is one longer than there are rows.

    Examples
    --------
    >>> from mirabelle import meshdata as md
    >>> [a.tolist() for a in md.ragged_rows([[0, 1], [], [2]])]
    [[0, 2, 2, 3], [0, 1, 2]]
    """
    given = [np.asarray(row, dtype=np.int64).reshape(-1) for row in rows]
    rowptr = np.concatenate([[0], np.cumsum([r.size for r in given], dtype=np.int64)])
    values = np.concatenate(given) if given else np.zeros(0, dtype=np.int64)
    return rowptr.astype(np.int32), values
