"""Loops within loops: the pairs of a point and a point that it leads to, as points of their own."""

from __future__ import annotations

import numpy as np

from mirabelle.arraytypes.meshdata.divisions import PairsDivision, division_of
from mirabelle.arraytypes.meshdata.maps import Map
from mirabelle.arraytypes.meshdata.points import Points


def pairs(through: Map) -> tuple[Points, Map, Map]:
    """The pairs (p, q) where a map leads from p to q: their points, the map to p, and the map to q.

    A loop over the pairs is a loop over the points, and within it one over what each leads to, as many as
    there are. Sums go in the order of p, and for one p in the order of the map. On a divided mesh a pair is run
    by the process that owns the larger of the two, the cell of a cell and a vertex.

    Parameters
    ----------
    through : Map
        A map to the points of one component, ragged or not.

    Returns
    -------
    tuple
        The `md.Points`, one for each pair, and two `md.Map` from them, each to one point: p, and q.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle import meshdata as md
    >>> mesh = md.unit_square(1)
    >>> pairs, edge, cell = md.pairs(mesh.support("edge"))
    >>> def add(x, y):
    ...     y[0] += x[0]
    >>> y = mb.zeros(5)
    >>> md.loop(pairs, add, md.READ(mb.HostArray([10.0, 20.0]), cell), md.INC(y, edge))
    >>> print(y)
    [10. 10. 30. 20. 20.]
    """
    if len(through.targets) != 1:
        shown = ", ".join(p.name for p in through.targets)
        raise ValueError(
            f"The map leads to {shown}: pairs are of one kind. Restrict it, "
            f'`md.pairs(map.restrict("{next(iter(through.targets)).name}"))`.'
        )
    ((points, target),) = through.targets.items()
    first = np.repeat(np.arange(len(target)), target.sizes)
    second = np.asarray(target.values)
    there = second >= 0
    places = np.arange(len(first)) - np.repeat(np.cumsum(target.sizes) - target.sizes, target.sizes)
    if not there.all():
        first, second, places = first[there], second[there], places[there]
    division = division_of(through.source)
    if division is not None:
        division = PairsDivision(division, (through.source, first), (points, second), places)
    made = Points(f"{through.source.name} and {points.name}", None, len(second), division)
    return made, Map(made, {through.source: first}), Map(made, {points: second})
