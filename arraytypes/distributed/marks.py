"""Marks: what a process believes that it is doing, as a number that travels with each message.

Processes find out by themselves what they send and what they expect. If their programs differ (a sum here, a
greatest there; six elements here, eight there), messages would meet that have nothing to do with each other.
So each carries a mark: of the operation, the shapes, the layout. Where marks differ nothing is computed;
instead the two tell each other what they do and on what line, and both raise.

A mark does not say *which* array a message is of: sums of two arrays of one shape, dtype and layout, taken
in one order here and in the other there, carry equal marks, and values are swapped without a word, unless the
arrays were computed by other operations (histories.py). Nothing that costs nothing tells such arrays apart. The
line does not, as right programs may come to one sum on two lines (in an `if comm.rank == 0:` and its `else:`),
nor does a count of arrays made so far (a statement met before makes fewer). With
`mb.settings.check_collectives` (MIRABELLE_CHECK_COLLECTIVES=1) the line belongs to the mark, and all that the
array was computed from.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any

from mirabelle.dispatch.settings import settings

# Marks of what was done here, and what they stand for. (As many as are kept before all are forgotten.)
_known: dict[Any, int] = {}
_names: dict[int, str] = {}
_first: dict[int, int] = {}
_MOST = 1 << 14
# Modules between the user's line and ours.
_BETWEEN = ("mirabelle", "plum", "contextlib", "functools", "threading", "concurrent")
# Seconds in which another process says on what line it is.
ANSWER = 3.0


def marked(*words: Any) -> int:
    """The mark of what these words say: the same number in every process, never 0.

    >>> from mirabelle.arraytypes.distributed.marks import marked, named
    >>> named(marked("sum of", "float64"))
    'sum of float64'
    """
    found = _known.get(words)
    if found is None:
        if len(_known) > _MOST:
            _known.clear()
            _names.clear()
        text = " ".join(str(w) for w in words if type(w) is not Unsaid)
        whole = "\n".join(w.word if type(w) is Unsaid else str(w) for w in words)
        digest = hashlib.blake2b(whole.encode(), digest_size=8).digest()
        found = _known[words] = int.from_bytes(digest, sys.byteorder, signed=True) or 1
        _names[found] = text
    return found


class Unsaid:
    """A word that belongs to a mark and not to its name."""

    __slots__ = ("word",)

    def __init__(self, word: str) -> None:
        self.word = word

    def __hash__(self) -> int:
        return hash(self.word)

    def __eq__(self, other: object) -> bool:
        return type(other) is Unsaid and other.word == self.word


def mixed(mark: int, *others: int) -> int:
    """The mark of several marks in this order; it is called what the first is called."""
    return remember(hash((mark, *others)) or 1, named(mark))


def remember(mark: int, name: str) -> int:
    """A mark, of which it is kept what it stands for."""
    if mark not in _names:
        if len(_names) > 2 * _MOST:
            _known.clear()
            _names.clear()
        _names[mark] = name
    return mark


def of_mark(mark: int, first: int) -> int:
    """A mark that is called what another is called."""
    if len(_first) > _MOST:
        _first.clear()
    _first[mark] = first
    return mark


def named(mark: int) -> str:
    """What a mark stands for, as far as this process has done the like of it."""
    return _names.get(_first.get(mark, mark), "something that this process has never done")


def call_site() -> str:
    """The line of the program from which mirabelle was entered."""
    frame: FrameType | None = sys._getframe(1)
    last = frame
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        file = frame.f_code.co_filename
        if module.partition(".")[0] not in _BETWEEN and not file.startswith("<mirabelle "):
            return f"{file}:{frame.f_lineno}"
        last, frame = frame, frame.f_back
    return f"{last.f_code.co_filename}:{last.f_lineno}" if last else "an unknown place"


def doing(mark: int) -> str:
    """What this process is about, and on what line of the program."""
    return f"{named(mark)} at {call_site()}"


def difference(rank: int, here: str, other: int, there: str) -> str:
    """The sentence for two ranks that do different things."""
    alike = (
        " In these words they do the same: they differ in an axis, a shift, a part, an index or an operand, or "
        "in what that was computed by."
        if here == there
        else ""
    )
    more = (
        ""
        if settings.check_collectives
        else ("; MIRABELLE_CHECK_COLLECTIVES=1 compares the lines before each operation")
    )
    return (
        f"Ranks do different things. Rank {rank}: {here}. Rank {other}: {there}.{alike} All ranks must "
        "take part in every operation on what they share, in the same order, with the same shapes, dtypes and "
        "layouts. "
        "Usual causes: it stands under `if comm.rank == ...`, or a shape or a condition depends on values that "
        f"differ between ranks. Move it out of there, or work on `comm.part(ranks)`{more}."
    )


# What a rank says where programs differ: its mark, the rank whose message did not belong (-1: it only heard of
# one), and what it does, on what line.
Said = tuple[int, int, str]


def who_differs(said: Mapping[int, Said], rank: int, whoever: bool = False) -> tuple[int, int] | None:
    """Two ranks that do different things, by what all of them said so far, this one (`rank`) as well.

    One of them got a message that did not belong and the other sent it; who only heard of it may merely not be
    there yet, and is named only if it does the same as one of the two, or (`whoever`) if nobody else answers.

    >>> from mirabelle.arraytypes.distributed.marks import who_differs
    >>> said = {0: (7, 1, "a sum"), 1: (8, -1, "a maximum"), 2: (9, -1, "a gathering")}
    >>> who_differs(said, rank=2)
    (0, 1)
    """
    mine, against, _ = said[rank]
    if against not in (-1, rank):
        return (rank, against) if against in said else None
    for found, (mark, of, _) in said.items():
        if of == found != rank and mark != mine:  # (it cannot tell whose message it was)
            return rank, found
        if of not in (-1, found) and of in said:
            return _named_for(rank, mine, said, found, of)
    others = sorted(set(said) - {rank}, key=lambda r: said[r][0] == mine) if whoever else ()
    return next(((rank, r) for r in others), None)


def _named_for(rank: int, mine: int, said: Mapping[int, Said], found: int, of: int) -> tuple[int, int]:
    """These two, with this rank in the place of one that does the same."""
    if rank == of or (rank != found and said[of][0] == mine != said[found][0]):
        return rank, found
    if said[found][0] == mine != said[of][0]:
        return rank, of
    return found, of


# What stands for the line of one who does not say it.
UNHEARD = "it did not say in time on what line it is"
