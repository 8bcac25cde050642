"""Files of distributed arrays: every rank writes and reads its own part.

What is saved on any number of ranks is loaded on any other, and by programs that know nothing of ranks: the
files are those of `arraytypes.io`. All ranks save or load together. What one of them fails at, all raise,
and what stood under the name before stays until all have written everything.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mirabelle.arraytypes import fileformats as formats
from mirabelle.arraytypes import io
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.distributed.agreement import on_all, on_root
from mirabelle.arraytypes.distributed.chunks import Box, extent, volume, whole
from mirabelle.arraytypes.distributed.communicators import Communicator, communicator
from mirabelle.arraytypes.distributed.fileformats import READERS, WRITERS, Parts, Stored
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.dispatch import verbs
from mirabelle.dispatch.errors import CommunicationError

# Saving


def save(path: Path, arrays: Mapping[str, Any], kind: str, compressed: bool) -> None:
    """Write arrays, some of them distributed, to a file. All ranks of their communicator call it.

    What is not distributed is taken from rank 0.
    """
    dense = {name: _dense(x) for name, x in arrays.items() if is_distributed(x)}
    comm = _common(dense)
    parts = {
        name: Parts(x.shape, x.dtype, repr(x.layout), x.boxes(), x.box_contents) for name, x in dense.items()
    }

    def others() -> dict[str, Parts]:
        formats.need(kind)
        found = {name: io.contents(path, name, x) for name, x in arrays.items() if name not in dense}
        return {name: _undivided(comm, values) for name, values in found.items()}

    parts |= on_all(comm, others)
    parts = {name: parts[name] for name in arrays}
    path = _agreed(comm, path, [(name, p.shape, p.dtype.str) for name, p in parts.items()], compressed)
    nbytes = 0 if compressed else sum(math.prod(p.shape) * p.dtype.itemsize for p in parts.values())
    with io.permitted(path), contextlib.ExitStack() as cleanup:
        fresh = on_root(comm, lambda: cleanup.enter_context(io.replacing(path, nbytes)))
        fresh = comm.bcast_object(fresh)
        WRITERS[kind](comm, fresh, parts, compressed)
        on_root(comm, cleanup.close)


def _dense(x: Any) -> Any:
    """An array whose parts can be written: evaluated, and a wrapper's or a structure's elements in order."""
    x = verbs.dense(x)
    if not isinstance(x, DenseArray):
        x = verbs.copy(x)
    verbs.leaf_of(x)
    return x


def is_distributed(x: Any) -> bool:
    """Are the elements of an array divided over processes?"""
    return isinstance(x, AbstractArray) and io.is_divided(type(x))


def _common(arrays: Mapping[str, Any]) -> Communicator:
    """The communicator of all arrays that have one."""
    found = {name: x.communicator for name, x in arrays.items()}
    (first, comm), *others = found.items()
    for name, other in others:
        if other is not comm and other != comm:
            raise CommunicationError(
                f"{first!r} and {name!r} belong to different groups of processes, so they cannot be written to "
                "one file together. Save each to a file of its own."
            )
    return comm


def _undivided(comm: Communicator, values: np.ndarray) -> Parts:
    """What all ranks have is rank 0's to write."""
    boxes = [whole(values.shape)] if comm.rank == 0 else []
    return Parts(values.shape, values.dtype, "", boxes, values.__getitem__)


def _agreed(comm: Communicator, path: Path, *what: Any) -> Path:
    """The file as rank 0 calls it, if all ranks mean the same."""
    asked = comm.allgather_object((str(path), what))
    for rank, (name, its) in enumerate(asked):
        if name != asked[0][0]:
            raise ValueError(
                f"Rank 0 names the file {asked[0][0]!r} and rank {rank} names {name!r}. All ranks save and "
                "load one file together: give it one name, for instance `comm.bcast_object(name)`."
            )
        if its != asked[0][1]:
            raise ValueError(
                f"Rank 0 and rank {rank} mean different arrays by {name!r}: {asked[0][1]} and {its}. All ranks "
                "make the same calls in the same order."
            )
    # Relative to where rank 0 stands.
    return Path(comm.bcast_object(os.path.abspath(path)))


# Loading


def load(path: Path, name: str | None, family: Any) -> Any:
    """Read one array, or all by name, each rank its own part. All ranks of the communicator call it."""
    comm = communicator()
    path = _agreed(comm, path, name)
    with contextlib.ExitStack() as opened:

        def begin() -> dict[str, Stored]:
            kind = formats.format_of(path)
            formats.need(kind)
            with io.explained(path):
                found = opened.enter_context(READERS[kind](path))
            return _picked(path, found, name)

        found = on_all(comm, begin)
        _agreed(comm, path, [(key, stored.shape, stored.dtype.str) for key, stored in found.items()])
        made = {key: _made(comm, family, path, key, stored) for key, stored in found.items()}
    return made if name is None and "" not in made else next(iter(made.values()))


def _picked(path: Path, found: dict[str, Stored], name: str | None) -> dict[str, Stored]:
    if name is None:
        return found
    if "" in found:
        raise formats.nameless(path, name)
    return formats.chosen(path, list(found), name, lambda key: {key: found[key]})


def _made(comm: Communicator, family: Any, path: Path, name: str, stored: Stored) -> Any:
    with io.numbers_only(path, name):
        dtype = checked_dtype(stored.dtype)

    def read(box: Box) -> np.ndarray:
        if not volume(box):
            return np.empty(extent(box), dtype)
        with io.explained(path):
            return np.array(stored.read(box), dtype, order="C")

    return on_all(comm, lambda: family._from_boxes(stored.shape, dtype, read, comm=comm))
