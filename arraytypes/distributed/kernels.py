"""`@mb.kernel` on arrays over processes: each runs it on its part, with the elements around it that are read.

What a process needs of others is known before (`kernelranges.py`): just that is sent. Where an inner part of
the index space needs nothing of others it is run while that is under way, on the memory itself, and the edges
after it, on thin windows. The kernel is the user's, shifted by numbers (`usercode/shiftedkernels.py`), and
the local type runs it as it runs all kernels.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.dense import VIEWS
from mirabelle.arraytypes.distributed import combining, overlapping
from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.arraytypes.distributed.darray import DArray, evaluated_whole
from mirabelle.arraytypes.distributed.kernelranges import KernelRanges, Region
from mirabelle.arraytypes.distributed.transfers import Transfer, boxes, volume
from mirabelle.arraytypes.distributed.views import DView, Map
from mirabelle.arraytypes.kernels import Kernel, launcher
from mirabelle.arraytypes.usercode.indexvalues import Box
from mirabelle.arraytypes.usercode.kernelaccesses import Launched, deciding
from mirabelle.arraytypes.usercode.shiftedkernels import CYCLIC, SAME, SHIFTED, Shift, Variant, shifted
from mirabelle.dispatch import counters
from mirabelle.dispatch.errors import CommunicationError, LayoutError

# How many launches a kernel remembers the plans of.
KEPT = 256


@launcher(DArray)
def launch(kernel: Kernel, shape: tuple[int, ...], group: tuple[int, ...], arguments: list[Any]) -> None:
    """Run a kernel for the indices of which this process holds what is written."""
    every = [x for x in _flat(tuple(arguments)) if isinstance(x, DView)]
    if all(x.buffer.comm.size == 1 for x in every):
        _launch_here(kernel, shape, group, arguments, every)
        return
    views = _views(kernel, arguments)
    if not views:
        raise LayoutError(
            f"{kernel.__name__}() is given distributed arrays of no dimension only, and nothing says which "
            "process runs it. Give it a local array to write to, `x.local`."
        )
    comm = next(iter(views.values())).buffer.comm
    for view in views.values():
        if view.buffer.comm is not comm and comm.size > 1:
            raise CommunicationError(
                f"{kernel.__name__}() is given arrays that are divided over different processes. Bring one to "
                "the other: `mb.DArray(mb.to_numpy(x), comm=y.communicator)`."
            )
    maps = {n: v.map for n, v in views.items() if v.map is not None}
    decides = deciding(kernel.source)
    numbers = {
        n: number_of(x) for n, x in zip(kernel.source.parameters, arguments, strict=True) if n in decides
    }
    pieces = _in_pieces(comm, views)
    key = (
        *("divided", comm.rank, comm.size, shape, group, tuple(maps.items())),
        tuple([(n, type(x), x) for n, x in numbers.items()]),
        pieces,
    )
    plans = kernel.compiled.setdefault(DArray, {})
    plan = plans.get(key)
    if plan is None:
        if len(plans) >= KEPT:
            plans.clear()
        launched = Launched(shape, group, {n: m.shape for n, m in maps.items()}, numbers)
        plan = plans[key] = KernelPlan(KernelRanges(kernel, launched, maps, comm.size), comm.rank, pieces)
    plan.run(arguments, views)


def _launch_here(kernel: Kernel, shape: Any, group: Any, arguments: list[Any], every: list[DView]) -> None:
    """One process holds everything: it runs the kernel on its memory."""
    effects = kernel.source.effects
    written: list[DView] = []
    given = [
        _local(kernel, name, x, written if effects[name] else None)
        for name, x in zip(kernel.source.parameters, arguments, strict=True)
    ]
    run = kernel.launcher_of(every[0].buffer.inner)
    assert run is not None
    run(kernel, shape, group, given)
    for view in written:
        view.buffer.written()


def _local(kernel: Kernel, name: str, x: Any, written: list[DView] | None) -> Any:
    """An argument, with the memory of arrays of which this process holds everything."""
    if isinstance(x, tuple):
        parts = [_local(kernel, name, y, written) for y in x]
        return type(x)._make(parts) if hasattr(x, "_make") else tuple(parts)
    if not isinstance(x, DView):
        return x
    shown = _shown(kernel, name, x, written is not None)
    if written is not None:
        written.append(shown)
    elif not x.shape:
        return _as_number(shown)
    assert shown.map is not None
    return shown.map.shows(shown.buffer.local, 0, tuple((0, n) for n in shown.shape))


def _in_pieces(comm: Communicator, views: Mapping[str, DView]) -> bool:
    """Is it worth while to compute in pieces?"""
    view = next(iter(views.values()))
    largest = max(v.buffer.partition.elements for v in views.values())
    return comm.size > 1 and overlapping.is_large(view.buffer.inner, largest, comm.size)


def _views(kernel: Kernel, arguments: list[Any]) -> dict[str, DView]:
    """The arrays by their parameters, each shown by a map; those that are numbers become numbers here."""
    effects = kernel.source.effects
    found: dict[str, DView] = {}
    for i, (name, x) in enumerate(zip(kernel.source.parameters, arguments, strict=True)):
        if isinstance(x, tuple):
            if any(type(y) in VIEWS for y in _flat(x)):
                raise LayoutError(
                    f"{kernel.__name__}() is given a tuple of distributed arrays for {name}, and what it reads "
                    "of each cannot be seen then. Give each array as a parameter of its own."
                )
            continue
        if not isinstance(x, DView):
            continue
        x = _shown(kernel, name, x, bool(effects[name]))
        if not x.shape and not effects[name]:
            arguments[i] = _as_number(x)
        else:
            found[name] = x
    return found


def _shown(kernel: Kernel, name: str, x: DView, written: bool) -> DView:
    """A view that waits for no terms of others, and of which each process knows what it shows."""
    if x.buffer.partition.partial:
        combining.resolve(x.buffer)
        x._map = None
    return x if x.map is not None and x.map.shape == x.shape else _copied(kernel, name, x, written)


def _as_number(x: DView) -> Any:
    local = evaluated_whole(x).buffer.local
    return local[()] if isinstance(local, np.ndarray) else local


def _flat(x: Any) -> Any:
    return [z for y in x for z in _flat(y)] if isinstance(x, tuple) else [x]


def _copied(kernel: Kernel, name: str, x: DView, written: bool) -> DView:
    if not written:
        return evaluated_whole(x)
    raise LayoutError(
        f"{kernel.__name__}() writes to {name}, a view whose elements no process can say to be its own (it "
        f"goes across the parts, or repeats elements). Let it write to a copy, `y = mb.copy({name})`, and "
        "assign that."
    )


def number_of(x: Any) -> Any:
    """A number by which plans are found; None for what is none."""
    if isinstance(x, tuple):
        return tuple(map(number_of, x))
    return int(x) if isinstance(x, (int, np.integer, np.bool_)) else None


class KernelPlan:
    """What this process does for launches alike: the messages, and the parts it runs the kernel on."""

    def __init__(self, ranges: KernelRanges, rank: int, pieces: bool = True) -> None:
        self.ranges, self.rank = ranges, rank
        self.kernel = ranges.kernel
        self.transfers = self._transfers()
        self.landing = {n: _landing(t) for n, t in self.transfers.items()}
        box = ranges.boxes[rank]
        self.inner: list[Part] = []
        self.edges: list[Part] = []
        if box is None:
            return
        whole = Part(self, box, ranges.regions[rank])
        inner = (
            inner_box(ranges, rank, box, self.transfers)
            if pieces and self.transfers and whole.windows
            else None
        )
        if inner is None:
            (self.edges if self.transfers else self.inner).append(whole)
            return
        self.inner.append(Part(self, inner, ranges.reads(inner)))
        self.edges += [Part(self, edge, ranges.reads(edge)) for edge in overlapping.around(box, inner)]

    def _transfers(self) -> dict[str, Transfer]:
        """What travels of each array of which some process lacks something."""
        ranges = self.ranges
        found: dict[str, Transfer] = {}
        for name, shown in ranges.maps.items():
            needs: list[Any] = []
            lacking = False
            for q, regions in enumerate(ranges.regions):
                region = regions.get(name)
                if region is None or any(a >= b for a, b in region):
                    needs.append(None)
                    continue
                needs.append(tuple(linear(r, n) for r, n in zip(region, shown.shape, strict=True)))
                lacking = lacking or not within(region, ranges.held[name][q])
            if lacking and not shown.base.replicated:
                found[name] = Transfer(shown, needs, self.rank, missing=True)
        return found

    def run(self, arguments: Sequence[Any], views: Mapping[str, DView]) -> None:
        self._check_names(views)
        came: dict[str, list[Any]] = {}
        moving = [(name, views[name], transfer) for name, transfer in self.transfers.items()]
        under_way = [overlapping.begin(some, came) for some in overlapping.by_dtype(moving)]
        for part in self.inner:
            part.run(arguments, views, came)
        for messages in under_way:
            messages.finish()
        for part in self.edges:
            part.run(arguments, views, came)
        for name in self.ranges.written:
            views[name].buffer.written()

    def _check_names(self, views: Mapping[str, DView]) -> None:
        """What is written under one name and brought from others under another would not be one any more."""
        written = {views[n].buffer.name: n for n in self.ranges.written}
        for name in self.transfers:
            other = written.get(views[name].buffer.name)
            if other is not None and other != name:
                raise LayoutError(
                    f"{self.kernel.__name__}() is given one array as {name} and as {other}, writes to {other} "
                    f"and reads elements of {name} around its part, which are copies here. Pass it once, or a "
                    f"copy: `mb.copy({name})`."
                )


def inner_box(ranges: KernelRanges, rank: int, box: Box, lacking: Collection[str]) -> Box | None:
    """The box of those indices for which all is here, if it is most of them. Of `lacking` some is elsewhere."""
    if ranges.written & set(lacking):
        return None
    found = list(box)
    for a in ranges.accesses(box):
        held = ranges.held[a.name][rank]
        if a.written or a.name not in lacking:
            continue
        if held is None:
            return None
        for t, value in enumerate(a.at):
            if held[t] == (0, ranges.maps[a.name].shape[t]):
                continue
            if value is None:
                return None
            low, high = value.raw(a.box)
            if held[t][0] <= low and high < held[t][1]:
                continue
            if not _cut(found, a.box, value._replace(period=None), held[t]):
                return None
    inner = tuple(found)
    if any(a >= b for a, b in inner) or 2 * volume(inner) < volume(box):
        return None
    here = all(within(r, ranges.held[n][rank]) for n, r in ranges.reads(inner).items())
    return inner if here else None


def part_of(ranges: KernelRanges, box: Box, regions: Mapping[str, Region]) -> tuple[Kernel, list[int]]:
    """The kernel for a box of the index space and a region of each array, and the numbers it takes besides."""
    modes: list[tuple[str, tuple[int, ...]]] = []
    arrays: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for name, shown in ranges.maps.items():
        region = regions[name]
        divided = ranges.size > 1 and not shown.base.replicated
        how = [
            SAME if r == (0, n) or not divided else SHIFTED if r[1] <= n else CYCLIC
            for r, n in zip(region, shown.shape, strict=True)
        ]
        modes.append((name, tuple(how)))
        arrays.append((tuple([r[0] for r in region]), shown.shape))
    if box == ranges.space and not any(any(m) for _, m in modes):
        return ranges.kernel, []
    variant = Variant(len(box), tuple(modes))
    launched = ranges.launched
    begins = tuple(a for a, _ in box)
    groups = tuple([a // g for a, g in zip(begins, launched.group, strict=True)])
    numbers = Shift(begins, launched.sizes, groups, tuple(arrays)).numbers(variant)
    return shifted(ranges.kernel, variant), numbers


def _cut(found: list[tuple[int, int]], path: Box, value: Any, held: tuple[int, int]) -> bool:
    """Leave the indices of which a value is not held out of a box; False if that cannot be done."""
    for d, c in enumerate(value.coefs):
        if not c:
            continue
        good = value.inside(d, held, path)
        start, stop = path[d]
        if good is not None and good[0] < good[1]:
            low, high = found[d]
            found[d] = (
                max(low, good[0]) if good[0] > start else low,
                min(high, good[1]) if good[1] < stop else high,
            )
            return True
    # It stays outside, whatever the index is: leave out all that come there, if they are at an edge.
    for d, (a, b) in enumerate(path):
        low, high = found[d]
        if b <= low or a >= high:
            return True
        if a <= low and b < high:
            found[d] = b, high
            return True
        if b >= high and a > low:
            found[d] = low, a
            return True
    return False


def within(region: Region, held: Region | None) -> bool:
    """Does a process hold a region?"""
    return held is not None and all(h[0] <= r[0] and r[1] <= h[1] for r, h in zip(region, held, strict=True))


def linear(r: tuple[int, int], n: int) -> tuple[tuple[int, int], ...]:
    """A range that may go around the end, as ranges in rising order."""
    return (r,) if r[1] <= n else ((0, r[1] - n), (r[0], n))


def _landing(transfer: Transfer) -> list[Box]:
    """The boxes that come, in the order of `overlapping.begin`."""
    return [box for found in transfer.receives.values() for box in found]


class Part:
    """A box of the index space, and where the arrays lie for it: in the memory itself, or put together."""

    def __init__(self, plan: KernelPlan, box: Box, regions: Mapping[str, Region]) -> None:
        ranges, rank = plan.ranges, plan.rank
        self.kernel, self.written = plan.kernel, ranges.written
        launched = ranges.launched
        self.shape = tuple(b - a for a, b in box)
        self.group = launched.group
        self.parameters = plan.kernel.source.parameters
        self.shows: dict[str, Any] = {}
        self.windows: dict[str, Window] = {}
        lying: dict[str, Region] = {}
        for name, shown in ranges.maps.items():
            region, held = regions.get(name), ranges.held[name][rank]
            if region is None or any(a >= b for a, b in region) or within(region, held):
                self.shows[name] = None if held is None else shown.how(rank, held)
                lying[name] = held if held is not None else ((0, 0),) * len(shown.shape)
            else:
                self.windows[name] = Window(shown, rank, region, plan.landing.get(name, []))
                lying[name] = region
        self.shifted, self.numbers = part_of(ranges, box, lying)

    def run(self, arguments: Sequence[Any], views: Mapping[str, DView], came: Mapping[str, list[Any]]) -> None:
        given = list(arguments)
        back: list[tuple[Any, Any]] = []
        inner: Any = None
        for i, name in enumerate(self.parameters):
            view = views.get(name)
            if view is None:
                continue
            buffer = view.buffer
            inner = buffer.inner
            window = self.windows.get(name)
            if window is not None:
                given[i] = window.filled(buffer, view.dtype, came.get(name, ()))
                if name in self.written:
                    back += [(how.show(buffer.local), given[i][at]) for how, at in window.own]
            elif self.shows[name] is None:  # (nothing of it is touched)
                given[i] = inner._empty((0,) * view.ndim, view.dtype)
            else:
                given[i] = self.shows[name].show(buffer.local)
        run = self.kernel.launcher_of(inner)
        assert run is not None
        run(self.shifted, self.shape, self.group, [*given, *self.numbers])
        for dest, source in back:
            inner._copy_into(dest, source)


class Window:
    """A region of an array in memory of its own, from what this process holds and what came."""

    def __init__(self, shown: Map, rank: int, region: Region, landing: Sequence[Box]) -> None:
        self.shape = tuple(b - a for a, b in region)
        self.own: list[tuple[Any, Any]] = []
        self.came: list[tuple[int, Any, Any]] = []
        pieces = [linear(r, n) for r, n in zip(region, shown.shape, strict=True)]
        wanted = list(itertools.product(*pieces))
        for box in wanted:
            one = tuple((r,) for r in box)
            for part in boxes(shown.held(rank), one):
                self.own.append((shown.how(rank, part), self._at(region, shown.shape, part)))
            for which, landed in enumerate(landing):
                for part in boxes(tuple((r,) for r in landed), one):
                    of = tuple(slice(a - o, b - o) for (a, b), (o, _) in zip(part, landed, strict=True))
                    self.came.append((which, (*of, Ellipsis), self._at(region, shown.shape, part)))

    @staticmethod
    def _at(region: Region, shape: Sequence[int], part: Box) -> Any:
        """Where a box lies in the window."""
        found = []
        for (start, _), n, (a, b) in zip(region, shape, part, strict=True):
            begin = a - start if a >= start else a - start + n
            found.append(slice(begin, begin + b - a))
        return (*found, Ellipsis)

    def filled(self, buffer: Any, dtype: np.dtype, landed: Sequence[Any]) -> Any:
        inner = buffer.inner
        out = inner._empty(self.shape, dtype)
        if counters.active:
            counters.add(temporaries=1)
        for how, at in self.own:
            inner._copy_into(out[at], how.show(buffer.local))
        for which, of, at in self.came:
            inner._copy_into(out[at], landed[which][of])
        return out
