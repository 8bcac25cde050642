"""What people see of distributed arrays. Looking never sends a message: it may happen on one process alone.

Shown are the values that this process can say by itself: all of an array that is the same everywhere (or
that one process has), else this process's part, with where it lies in the whole. What is pending, and takes
the others to be computed, stays pending.

>>> import mirabelle as mb
>>> mb.DArray[mb.HostArray]([1.0, 2.0, 3.0])
DArray[HostArray[float64, 1]]([1., 2., 3.], on one process)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from mirabelle.arraytypes import cards, pictures
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.distributed import combining
from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.arraytypes.distributed.layoutpictures import svg_picture
from mirabelle.arraytypes.distributed.layoutreport import Division, LayoutReport, where, words
from mirabelle.arraytypes.distributed.views import DView
from mirabelle.arraytypes.wrappers import root_of
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced, format_tree

# What others have a share in


def elsewhere(x: Any) -> bool:
    """Would reading the values of an array ask other processes for something?"""
    if not isinstance(x, AbstractArray) or x.place.rank != 3:
        return False
    # (An array made of several is made dense to be shown, which is divided, whatever its parts are.)
    return not _known(x) if hasattr(root_of(x), "_node") else _processes(x) > 1


def _parts(x: Any) -> list[Any]:
    """The arrays that an array of several is made of."""
    inner = root_of(x)
    if hasattr(inner, "parts"):
        return list(inner.parts)
    return [p for p in (getattr(inner, "_value", None), getattr(inner, "partials", None)) if p is not None]


def _processes(x: Any) -> int:
    """Over how many processes an array is divided, or is the same on."""
    if not isinstance(x, AbstractArray) or x.place.rank != 3:
        return 1
    inner = root_of(x)
    if not hasattr(inner, "_node"):
        return max(map(_processes, _parts(x)), default=1)
    return max((leaf.view.buffer.comm.size for leaf in _leaves(inner._node)), default=1)


def _leaves(version: Any) -> Iterator[Leaf]:
    """The leaves of a version over distributed memory, whatever of it is computed."""
    stack, seen = [version], set()
    while stack:
        x = stack.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, Leaf):
            if isinstance(x.view, DView):
                yield x
        elif isinstance(x, (Broadcasted, Reduced)):
            stack += [x.value] if x.value is not None else getattr(x, "args", None) or [x.operand]  # type: ignore[union-attr]


def _known(x: Any) -> bool:
    """Does this process have all values of a distributed array, or can compute them by itself?"""
    version = cards.waiting(x)
    if version is not None:
        return computable(version)
    division = Division.of_view(verbs.leaf_of(x).view)
    return division is not None and division.replicated


def computable(version: Any) -> bool:
    """Can this process evaluate a tree by itself? (What it reads is then here, and so is the result.)"""
    stack, seen, size = [version], set(), 0
    alone = True
    while stack:
        x = stack.pop()
        if id(x) in seen or not isinstance(x, (Leaf, Broadcasted, Reduced)):
            continue
        seen.add(id(x))
        if isinstance(x, Leaf):
            if not isinstance(x.view, DView):
                return False
            buffer = x.view.buffer
            size = max(size, buffer.comm.size)
            if buffer.comm.size > 1 and not buffer.partition.replicated:
                return False
        elif x.value is not None:
            stack.append(x.value)
        elif isinstance(x, Broadcasted):
            alone = alone and x.layout is None
            stack += x.args or ()
        else:
            # (In a batch, one reduction brings all that wait.)
            alone = alone and combining._batch.get() is None
            stack.append(x.operand)
    return size == 1 or (size > 1 and alone)


def division_of(x: Any) -> tuple[Division, Communicator]:
    """How an array is divided, or would be once it is computed."""
    if isinstance(x, AbstractArray) and x.place.rank == 3 and not hasattr(root_of(x), "_node"):
        raise TypeError(
            f"A {type(x).__name__} is made of several arrays, each divided in its own way. Ask of each: "
            "mb.distributed.layout_of(x.parts[0])."
        )
    if not isinstance(x, AbstractArray) or x.place.rank != 3:
        raise TypeError(
            f"A {type(x).__name__} is not distributed. Make a distributed array of it: mb.DArray(x), "
            "or ask how a shape would be: mb.distributed.layout_of(x.shape, mb.distributed.Block(0), 4)."
        )
    version = cards.waiting(x)
    if version is None:
        view = verbs.leaf_of(x).view
        return Division.around(view), view.buffer.comm
    from mirabelle.arraytypes.distributed.rehearsal import partition_of

    if root_of(x) is not x:
        view = _shown_stand_in(x, version)
        return Division.around(view), view.buffer.comm
    comm, part = partition_of(version)
    return Division.of_partition(part), comm


def _shown_stand_in(x: Any, version: Any) -> DView:
    """What a wrapper would show of what it wraps, once that is computed."""
    from mirabelle.arraytypes.distributed.rehearsal import _stand_in, partition_of

    comm, part = partition_of(version)
    family = type(root_of(x)).family
    view: DView = verbs.lower(x, Leaf(DView(_stand_in(comm, part, family.inner, version.dtype))))
    return view


# Values of this process


def part_values(view: DView, edge: int | None) -> np.ndarray:
    """This process's part of a view; with `edge`, only what is shown of it when it is shortened."""
    rank, division = view.buffer.comm.rank, Division.of_view(view)
    if not view.size:
        return np.empty(view.shape, view.dtype)
    shown = view.map
    assert division is not None and shown is not None
    held = division.held(rank)
    if held is None:
        return np.empty((0,) * len(view.shape), view.dtype)
    places = [_ends(h, edge) for h in held]
    out = np.zeros(tuple(sum(b - a for a, b in p) for p in places), view.dtype)
    family = view.buffer.inner
    stretched = [n != m for n, m in zip(view.shape, shown.shape, strict=True)]
    for block in itertools.product(*[list(_targets(p)) for p in places]):
        to = tuple(slice(*b) for b, _ in block)
        box = tuple((0, 1) if wide else run for wide, (_, run) in zip(stretched, block, strict=True))
        out[to] = family._download(shown.shows(view.buffer.local, rank, box))
    return out


def _ends(held: Any, edge: int | None) -> list[tuple[int, int]]:
    """The runs of a dimension, or what is left of them when NumPy leaves out the middle."""
    total = sum(b - a for a, b in held)
    if not edge or total <= 2 * edge + 1:
        return list(held)
    # One place of the middle stands for all: NumPy does not write it.
    kept = [(0, edge + 1), (total - edge, total)]
    found, before = [], 0
    for a, b in held:
        for low, high in kept:
            first, last = max(low, before), min(high, before + b - a)
            if first < last:
                found.append((a + first - before, a + last - before))
        before += b - a
    return found


def _targets(runs: list[tuple[int, int]]) -> Any:
    """Where each run goes: ((from, to) there, (from, to) here)."""
    at = 0
    for a, b in runs:
        yield (at, at + b - a), (a, b)
        at += b - a


def values_text(view: DView, brief: bool, prefix: str = "") -> str:
    """This process's part as NumPy writes it."""
    options = np.get_printoptions()
    # (A part of what is shortened is shortened, too.)
    long = view.size > options["threshold"]
    values = part_values(view, options["edgeitems"] if long else None)
    if brief and values.ndim == 0:
        return str(values[()])
    if not values.size:
        return "[]"
    threshold = 0 if long else None
    if brief:
        return np.array2string(values, threshold=threshold)
    return np.array2string(values, separator=", ", prefix=prefix, threshold=threshold)


# Text


def show(x: Any, brief: bool) -> str:
    """What `repr` and, with `brief`, `str` say of a distributed array or a view of one."""
    name = type(x).__name__
    version = cards.waiting(x)
    if version is not None and not computable(version):
        foretold, comm = division_of(x)
        said = f"{name} of shape {x.shape}, {cards.pending(version)}"
        cure = "all processes compute it together: mb.materialize(x)" + ("" if x.ndim else ", float(x)")
        if brief:
            return f"<{said}; {cure}>"
        return f"{said}; {words(foretold)}, this is rank {comm.rank}\n({cure})\n{format_tree(version)}"
    view = verbs.leaf_of(x).view
    comm = view.buffer.comm
    if comm.size == 1 and view.buffer.partition.partial:  # (terms that wait for nobody)
        combining.resolve(view.buffer)
        view._map = None
    division = Division.of_view(view)
    who = "" if comm.size == 1 else f", this is rank {comm.rank}"
    if division is None:
        said = f"{name} of shape {x.shape}, {words(Division.around(view))}{who}"
        return f"<{said}; mb.materialize(x) on all processes brings its elements together>"
    if division.replicated:
        if brief:
            return "[]" if not x.size and x.ndim else values_text(view, True)
        head = f"{name}("
        long = x.size == 0 or x.size > np.get_printoptions()["threshold"]
        notes = [*([f"shape={x.shape}"] if long else []), words(division) + who]
        return head + ", ".join([values_text(view, False, head), *notes]) + ")"
    place = where(division, comm.rank)
    has = "'s term is" if division.partial else f" has {place}"
    values = "" if place == "nothing" else f":\n{values_text(view, brief)}"
    if brief:
        of = "" if division.partial else f" of {x.shape}"
        return f"rank {comm.rank} of {comm.size}{has}{of}{values}"
    return f"{name} of shape {x.shape}, {words(division)}; rank {comm.rank}{has}{values}"


# Notebooks


def card_of(x: Any) -> str:
    """The HTML a notebook shows: facts, the layout as a picture, and the values that are here."""
    version = cards.waiting(x)
    small = version is None or (x.size <= cards.SMALL and computable(version))
    division, comm = division_of(x)
    rank = None if comm.size == 1 else comm.rank
    said = facts(x)
    sections = [] if version is None else [cards.tree_html(version)]
    if small:
        sections.append(cards.preformatted(sample(x)))
    return cards.card(
        type(x).__name__, said, svg_picture(division, rank), *sections, colour=pictures.colour_of(x)
    )


def facts(x: Any) -> dict[str, str]:
    """What a card says of a distributed array."""
    division, comm = division_of(x)
    report = LayoutReport(division, x.dtype)
    held = report.bytes or (0,)
    version = cards.waiting(x)
    said = cards.general_facts(x)
    state = said.pop("state")
    if comm.size > 1:
        here = "" if division.across else f", {cards.shown_bytes(held[comm.rank])} of them here"
        said["bytes"] = cards.shown_bytes(x.nbytes) + (" on each process" if division.replicated else here)
    said["layout"] = words(division)
    if comm.size > 1:
        said["process"] = f"rank {comm.rank} of {comm.size}"
    if report.imbalance > 1 and not division.across:
        said["imbalance"] = f"the largest part is {report.imbalance:.2f} times the mean"
    said["state"] = (
        state if version is None or computable(version) else f"{state}, for all processes to compute"
    )
    return said


def sample(x: Any) -> str:
    """A few values as text: those of this process, and where they lie."""
    version = cards.waiting(x)
    if version is not None and not computable(version):
        return show(x, True)
    view = verbs.leaf_of(x).view
    division = Division.of_view(view)
    if division is None:
        return show(x, True)
    rank = view.buffer.comm.rank
    edge = cards.EDGE if x.ndim < 3 else 1
    few = division.elements(rank) <= (60 if x.ndim < 3 else 20)
    values = part_values(view, None if few else edge)
    with np.printoptions(precision=min(4, np.get_printoptions()["precision"])):
        text = (
            str(values[()]) if not x.ndim
            else np.array2string(values, threshold=60 if few else 0, edgeitems=edge, max_line_width=78)
        )  # fmt: skip
    if division.replicated:
        return text
    place = where(division, rank)
    if place == "nothing":
        return f"rank {rank} has nothing of it"
    return (f"the term of rank {rank}" if division.partial else f"rank {rank}: {place}") + f"\n{text}"
