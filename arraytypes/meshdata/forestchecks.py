"""What star forests are refused for: each process looks at what it was given, and at what others ask of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.distributed.communicators import Communicator
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.dispatch.errors import CommunicationError, PlaceError


@dataclasses.dataclass(frozen=True)
class Links:
    """The leaves of one process, the ranks of their roots, and which entries they are there."""

    size: int
    root_size: int
    leaves: np.ndarray
    owners: np.ndarray
    roots: np.ndarray


def checked_links(comm: Communicator, size: Any, owners: Any, roots: Any, leaves: Any, root_size: Any) -> Links:
    """What a forest is made of on this process, or what is wrong with it there."""
    n = count_of(size, comm)
    m = n if root_size is None else count_of(root_size, comm)
    ranks, places = integers(owners, "owners", comm), integers(roots, "roots", comm)
    if leaves is None:
        if len(ranks) > n:
            raise ValueError(
                f"Rank {comm.rank} has {n} entries and {len(ranks)} leaves among them, which is more: "
                f"`size` counts "
                "owned entries and leaves."
            )
        own = np.arange(n - len(ranks), n)
    else:
        own = integers(leaves, "leaves", comm)
    if not len(own) == len(ranks) == len(places):
        raise ValueError(
            f"Each leaf has one owner and one root, and rank {comm.rank} gives {len(own)} leaves, {len(ranks)} "
            f"owners and {len(places)} roots."
        )
    check_ranks(comm, ranks)
    wrong = np.flatnonzero((own < 0) | (own >= n))
    if len(wrong):
        raise IndexError(
            f"Rank {comm.rank} says that its entry {own[wrong[0]]} is a leaf, and it has {n} entries."
        )
    twice = repeated(own)
    if twice is not None:
        raise ValueError(
            f"Entry {twice} of rank {comm.rank} stands twice among its leaves: a leaf is a copy of one root."
        )
    return Links(n, m, own, ranks, places)


def checked_roots(forest: Any, wanted: Mapping[int, np.ndarray]) -> None:
    """Are what others take for roots entries that this process owns? (Rows of root and leaf, by rank.)"""
    here, n = forest.comm.rank, forest.root_size
    is_leaf = np.zeros(n, bool)
    if forest.same_space:
        is_leaf[forest.leaves] = True
    for r, rows in wanted.items():
        outside = np.flatnonzero((rows[:, 0] < 0) | (rows[:, 0] >= n))
        if len(outside):
            root, leaf = rows[outside[0]]
            raise IndexError(
                f"Entry {leaf} of rank {r} is said to be a copy of entry {root} of rank {here}, and that "
                f"has {n} "
                "entries, numbered from 0 on each rank."
            )
        chained = np.flatnonzero(is_leaf[rows[:, 0]])
        if len(chained):
            root, leaf = rows[chained[0]]
            raise ValueError(
                f"Entry {leaf} of rank {r} is said to be a copy of entry {root} of rank {here}, which is a "
                f"leaf "
                "itself: roots are owned entries. Do the ranks agree on who owns what? "
                "StarForest.from_owners(numbers, owners) finds the owners' entries by global numbers."
            )


def checked_table(comm: Communicator, numbers: Any, owners: Any) -> tuple[np.ndarray, np.ndarray]:
    """Global numbers and their owners, as this process gives them."""
    found, ranks = integers(numbers, "global numbers", comm), integers(owners, "owners", comm)
    if len(found) != len(ranks):
        raise ValueError(
            f"Each entry has a global number and an owner, and rank {comm.rank} gives {len(found)} numbers and "
            f"{len(ranks)} owners."
        )
    check_ranks(comm, ranks)
    twice = repeated(found)
    if twice is not None:
        raise ValueError(f"Global number {twice} stands twice among the entries of rank {comm.rank}.")
    return found, ranks


def check_held(
    comm: Communicator,
    numbers: np.ndarray,
    owners: np.ndarray,
    order: np.ndarray,
    asked: Mapping[int, np.ndarray],
) -> None:
    """Does this process own what others think it does?"""
    for r, rows in asked.items():
        wanted = rows[:, 0]
        place = np.searchsorted(numbers, wanted, sorter=order)
        known = place < len(numbers)
        known[known] = numbers[order[place[known]]] == wanted[known]
        missing = np.flatnonzero(~known)
        if len(missing):
            raise ValueError(
                f"Ranks disagree on ownership: rank {r} says that rank {comm.rank} owns entry "
                f"{wanted[missing[0]]}, "
                "which that does not even have."
            )
        others = np.flatnonzero(owners[order[place]] != comm.rank)
        if len(others):
            owner = owners[order[place[others[0]]]]
            raise ValueError(
                f"Ranks disagree on ownership: rank {r} says that rank {comm.rank} owns entry "
                f"{wanted[others[0]]}, and rank {comm.rank} that rank {owner} does."
            )


def check_single(owned: Mapping[int, np.ndarray]) -> None:
    """Are what some ranks own different entries? (Numbers by rank.)"""
    numbers = np.concatenate([np.zeros(0, np.int64), *owned.values()])
    twice = repeated(numbers)
    if twice is not None:
        ranks = sorted(r for r, found in owned.items() if np.any(found == twice))
        raise ValueError(
            f"Ranks disagree on ownership: ranks {ranks} all say that they own entry {twice}, and an entry "
            f"has one "
            "owner. Take the least of the ranks that have it, say."
        )


def checked_arrays(sources: list[Any], targets: list[Any], sizes: tuple[int, int], reads_only: bool) -> None:
    """Can values of some arrays go to others? (`sizes`: how many entries they have.)"""
    if len(sources) != len(targets) or not sources:
        raise ValueError(f"Values of {len(sources)} arrays cannot go to {len(targets)}: there is one for each.")
    for x in sources:
        check_array(x, sizes[0])
    if targets is not sources:
        for x in targets:
            check_array(x, sizes[1])
    elif len(sources) == 1 and not (isinstance(sources[0], np.ndarray) and not sources[0].flags.writeable):
        return
    places = {None if isinstance(x, np.ndarray) else leaf_family(type(x)) for x in (*sources, *targets)}
    if len(places) > 1 and any(p is not None and p.home.rank >= 2 for p in places):
        raise PlaceError(
            "Arrays that travel together lie in one place, and these lie in "
            f"{', '.join(sorted('NumPy' if p is None else p.__name__ for p in places))}. Move them once, with "
            "`mb.adapt(mb.HostArray, x)`, or let them travel one by one."
        )
    for source, target in zip(sources, targets, strict=True):
        if source.shape[1:] != target.shape[1:] or not np.can_cast(source.dtype, target.dtype, "same_kind"):
            raise ValueError(
                f"Entries of shape {source.shape[1:]} and dtype {source.dtype} do not fit into an array of "
                f"entries "
                f"of shape {target.shape[1:]} and dtype {target.dtype}."
            )
        if isinstance(target, np.ndarray) and not target.flags.writeable and not reads_only:
            raise ValueError(
                "The values would be written to an array of NumPy that is read-only. Copy it first."
            )


def check_array(x: Any, size: int) -> None:
    if not isinstance(x, (np.ndarray, AbstractArray)) or getattr(x, "comm", None) is not None:
        raise TypeError(
            f"A forest moves entries of a process' own array, such as mb.HostArray, and not of a "
            f"{type(x).__name__}."
        )
    if x.dtype.hasobject:
        raise TypeError("Entries of dtype object cannot be sent: give numbers.")
    if x.ndim < 1 or x.shape[0] != size:
        raise ValueError(
            f"The forest is of {size} entries here, and the array has shape {x.shape}: its first axis "
            f"counts the "
            "entries, owned and leaves."
        )


def checked_numbers(forest: Any, numbers: Any) -> np.ndarray:
    """New numbers of all entries; -1 for what is gone."""
    if not forest.same_space:
        raise ValueError("Only a forest whose roots and leaves are entries of the same arrays is renumbered.")
    found = np.asarray(numbers)
    if found.shape != (forest.size,) or (found.size and found.dtype.kind not in "iu"):
        raise ValueError(
            f"Each of the {forest.size} entries of rank {forest.comm.rank} has a new number, and these are "
            f"of shape "
            f"{found.shape} and dtype {found.dtype}."
        )
    return found.astype(np.int64)


def mask(chosen: Any, size: int) -> np.ndarray:
    """Of which of so many entries a mask or a list of indices speaks; of all, if there is none."""
    if chosen is None:
        return np.ones(size, bool)
    given = np.asarray(chosen)
    if given.dtype == bool:
        if given.shape != (size,):
            raise ValueError(
                f"A mask of {size} entries has a truth value for each, and this has shape {given.shape}."
            )
        return given
    found = np.zeros(size, bool)
    if given.size:
        if given.ndim != 1 or given.dtype.kind not in "iu":
            raise TypeError(f"Entries are chosen by a mask or a list of integers, and not by {chosen!r}.")
        if given.min() < 0 or given.max() >= size:
            raise IndexError(f"Entry {given[(given < 0) | (given >= size)][0]} is none of the {size} entries.")
        found[given] = True
    return found


# Small things


def integers(x: Any, what: str, comm: Communicator) -> np.ndarray:
    found = np.asarray(x)
    if found.size == 0:
        return np.zeros(0, np.int64)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise TypeError(
            f"The {what} of rank {comm.rank} are a list of integers, and not of shape {found.shape} and dtype "
            f"{found.dtype}."
        )
    return found.astype(np.int64)


def count_of(n: Any, comm: Communicator) -> int:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
        raise ValueError(
            f"Rank {comm.rank} gives {n!r} as the number of its entries, which is an integer from 0 on."
        )
    return int(n)


def check_ranks(comm: Communicator, ranks: np.ndarray) -> None:
    wrong = np.flatnonzero((ranks < 0) | (ranks >= comm.size))
    if len(wrong):
        raise CommunicationError(
            f"Rank {comm.rank} names rank {ranks[wrong[0]]} as an owner, and there is no such rank among "
            f"{comm.size}: they are numbered from 0."
        )


def repeated(x: np.ndarray) -> int | None:
    """A number that stands more than once in an array."""
    ordered = np.sort(x)
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    return int(ordered[same[0]]) if len(same) else None
