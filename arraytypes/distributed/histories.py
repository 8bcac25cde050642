"""Histories: what a distributed array was computed by, as a number on which all ranks must agree.

A statement that sends nothing says nothing: `u = mb.sin(x)` here and `mb.cos(x)` there would be found by no
message of its own. So a result remembers what it came from, as a number made of the operations and the
histories of the operands. It is mixed into the mark of the next reduction or transport of the result, and
there the difference is found.

The number is one of *values*, not of what a process happens to do: it is the same whether a part of a tree was
computed before, whether memory was written in place or copied first, and for all parts of an array. So nothing
is wrong with a rank that prints what it has, or holds on to an array for longer. What comes from elsewhere
(products, sorts, files, each rank's own part) begins anew, with a history that says nothing.

- Always: the operations of statements on whole arrays, integers among their operands, and seeds, as an int that
  is worked out in C (dispatch/csrc/divided.c). Other numbers do not count (machines of one cluster may come to
  them with other roundings); what was written to in part, and a part of an array, say nothing.
- With `mb.settings.check_collectives`: all numbers, writes to parts, and data that all ranks give alike count,
  too, in messages of every kind, and a `History` has an expression for a reader.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any

import numpy as np

from mirabelle.arraytypes.distributed.marks import marked, named, of_mark, remember
from mirabelle.dispatch._native import history_mixed, history_number
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.promotion import mark_of
from mirabelle.dispatch.schedule import operations
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced

# As many letters of an expression are said.
LETTERS = 160


# Of so many writes to parts it is kept what each wrote.
PARTS = 32


class History:
    """How contents came about: a number for what each part of them may be, and an expression for a reader.

    Of what more parts were written to than are kept nothing is known (`parts` is None) until all is written. (A
    number for so many would be another where a rank copied the rest before it wrote: it copies that in as many
    parts as it likes, and each would count again.)
    """

    __slots__ = ("number", "parts", "said")

    def __init__(self, parts: frozenset[int] | None, said: str) -> None:
        self.parts = None if parts is None or len(parts) > PARTS else parts
        self.number = hash(tuple(sorted(self.parts))) if self.parts else 0
        self.said = said


UNKNOWN = History(frozenset(), "x")
# What most operands and reductions come from: an int (0 says nothing), with checks a History.
Came = int | History | None


def derived(words: tuple[Any, ...], operands: list[History], said: str = "") -> History:
    """The history of what an operation, said in words, makes of operands.

    >>> from mirabelle.arraytypes.distributed.histories import UNKNOWN, derived
    >>> derived(("cos",), [UNKNOWN]).said
    'cos(x)'
    """
    number = hash((marked(*words), *[h.number for h in operands]))
    for longest in (LETTERS, 40, 12):
        shown = [h.said if len(h.said) <= longest else "..." for h in operands]
        text = f"{said or words[0]}({', '.join(shown)})"
        if len(text) <= LETTERS:
            break
    return History(frozenset((number,)), text[:LETTERS])


def history(version: Any) -> Came:
    """What a tree over distributed arrays computes."""
    return _of_version(version) if settings.check_collectives else history_number(version, _of_reduction)


def _of_reduction(node: Reduced, operand: int) -> int:
    return history_mixed(_mark(node.reduction.name, node.axes, node.dtype), operand)


@functools.lru_cache(4096)
def _mark(*words: Any) -> int:
    return mark_of(*words)


def _of_version(version: Any) -> History:
    known: dict[int, History] = {}
    waiting = operations(version) if type(version) is Broadcasted else []
    while waiting:  # (those that read least were found last)
        later = []
        for node in reversed(waiting):
            args = node.args or ()
            operands = [h for a in args if (h := known.get(id(a)) or _ready(a)) is not None]
            if len(operands) < len(args):
                later.append(node)
                continue
            name = node.sig.op.name
            # (Whether contents were copied is a process's own affair.)
            known[id(node)] = operands[0] if name == "copy" else derived((name, *node.sig.outs), operands)
        waiting = later[::-1]
    return known.get(id(version)) or _ready(version) or UNKNOWN


def _ready(version: Any) -> History | None:
    """The history of an operand: None if it is an operation that is still to be looked at."""
    if isinstance(version, (Broadcasted, Reduced)) and version.value is not None:
        version = version.value
    if type(version) is Leaf:
        came = getattr(version.view, "history", None)
        return came if type(came) is History else UNKNOWN
    if isinstance(version, Reduced):
        return _reduced(version, _of_version(version.operand))
    return None if isinstance(version, Broadcasted) else _of_number(version)


def of_reduction(node: Reduced, operand: Came) -> Came:
    """What a reduction makes of its operand."""
    return _reduced(node, operand) if type(operand) is History else _of_reduction(node, operand or 0)  # type: ignore[arg-type]


def _reduced(node: Reduced, operand: History) -> History:
    return derived((node.reduction.name, "along", node.axes, node.dtype), [operand])


def _of_number(x: Any) -> History:
    value = x.item() if isinstance(x, np.generic) else x
    return History(frozenset((marked("number", repr(value)),)), str(value))


def of_data(data: np.ndarray | range) -> History | None:
    """What all ranks give alike: a whole array of NumPy's, or a range."""
    if not settings.check_collectives:
        return None
    if isinstance(data, range):
        return derived((repr(data),), [], "range")
    digest = hashlib.blake2b(np.ascontiguousarray(data).tobytes(), digest_size=16).hexdigest()
    return History(frozenset((marked("data", digest, data.dtype, data.shape),)), "data")


def of_random_numbers(sampler: Any, stream: Any, parameters: tuple[Any, ...]) -> Came:
    """What a generator gives: of a seed, at one place of its numbers."""
    if not settings.check_collectives:
        return history_mixed(_mark("random numbers", sampler.name), *stream)
    numbers = [_of_number(p) for p in parameters if not getattr(p, "ndim", 0)]
    return derived(("random numbers", sampler.name, *stream), numbers, sampler.name)


def written(buffer: Any, elements: int, came: Came) -> None:
    """Told of what was written to so many elements of a buffer."""
    whole = elements >= buffer.partition.elements
    if type(came) is not History:
        buffer.history = came if whole else None
        return
    before = buffer.history
    if whole or type(before) is not History:
        buffer.history = came if whole else History(came.parts, came.said)
    elif before.parts is None or came.parts is None:
        buffer.history = History(None, came.said)
    else:
        buffer.history = History(before.parts | came.parts, came.said)


def written_to(view: Any, came: Came) -> None:
    """The same of what a view shows. (The real parts of all elements are not all of a buffer.)"""
    whole = view.itemsize == view.buffer.dtype.itemsize
    written(view.buffer, view.size if whole else 0, came)


def told(mark: int, came: Came) -> int:
    """The mark of messages that are made of contents of this history."""
    if type(came) is int:
        return of_mark(hash((mark, came)) or 1, mark) if came else mark
    if type(came) is not History or not came.number or not settings.check_collectives:
        return mark
    return remember(hash((mark, came.number)) or 1, f"{named(mark)}, namely {came.said},")


def gathered(base: Any, offset: Any) -> Came:
    """What a gather gives, as part of a tree or by itself."""
    gather = TABLE["gather"]
    if not settings.check_collectives:
        operands = history_number(base, _of_reduction), history_number(offset, _of_reduction)
        return history_mixed(_mark(gather.name, base.dtype), *operands)
    return derived((gather.name, base.dtype), [_of_version(base), _of_version(offset)])
