"""What people see of structured arrays: type, shape, and entries with dots for structural zeros.

A small one is shown entry by entry; of a large one only the parts are, so that nothing is made dense.

>>> import mirabelle as mb
>>> mb.Diagonal([1.0, 2.0])
Diagonal[HostArray[float64, 1]](
[[1.,  .],
 [ ., 2.]])
>>> mb.Diagonal(mb.arange(5000))
Diagonal[HostArray[int64, 1]](shape=(5000, 5000), parts: [   0,    1,    2, ..., 4997, 4998, 4999])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.cards import elsewhere, facts, sample_text, shown_bytes, shown_shape
from mirabelle.arraytypes.structured.base import Implicit, Structured, duals_in
from mirabelle.dispatch import verbs


@verbs.show.method
def _(x: Structured, brief: bool = False) -> str:
    if not _is_small(x) or (isinstance(x, Implicit) and not brief) or elsewhere(x):
        return summary(x)
    if brief:
        return entries_text(x, " ") + (_directions(x) if x.carries_derivatives else "")
    text = entries_text(x, ", ")
    notes = [f"shape={x.shape}"] if x.size == 0 else []
    if x.carries_derivatives:
        text += _directions(x)
    if x.place.rank > 1:
        notes.append(f"place={x.place}")
    gap = "\n" if x.ndim > 1 and x.size else ""
    return f"{type(x).__name__}({gap}{', '.join([text, *notes])})"


def _directions(x: Structured) -> str:
    """What is said of an array whose parts hold dual numbers, beside its values."""
    return f"; {max(d.directions for d in duals_in(x))} partials"


@facts.method
def _(x: Structured) -> dict[str, str]:
    return {
        "shape": shown_shape(x.shape),
        "dtype": x.dtype.name,
        "bytes": f"{shown_bytes(x.stored_bytes)} stored, {shown_bytes(x.nbytes)} if dense",
        "place": repr(x.place),
    }


@sample_text.method
def _(x: Structured) -> str:
    """The entries of a small one; of a larger one what it is made of."""
    with np.printoptions(precision=min(4, np.get_printoptions()["precision"]), linewidth=130):
        if x.ndim < 3 and max(x.shape, default=0) <= 12 and not elsewhere(x):
            return entries_text(x, " ")
    lines = [fact for fact in x._facts() if not fact.startswith("shape=")]
    for i, part in enumerate(x.parts):
        lines.append(f"part {i}: {type(part).__name__}, {shown_shape(part.shape)}")
        if part.ndim < 3:
            lines += ["  " + line for line in sample_text(part).split("\n")]
    return "\n".join(lines)


def _is_small(x: Structured) -> bool:
    return x.size <= np.get_printoptions()["threshold"]


def summary(x: Structured) -> str:
    """Type, shape and parts, without the entries."""
    notes = x._facts()
    if x.place.rank > 1:
        notes.append(f"place={x.place}")
    parts = [_part_text(p) for p in x.parts]
    if parts:
        notes.append("parts: " + ", ".join(parts))
    return f"{type(x).__name__}({', '.join(notes)})"


def _part_text(part: Any) -> str:
    if isinstance(part, Structured):
        return summary(part)
    if part.ndim > 1:
        return f"{type(part).__name__} of shape {part.shape}"
    if part.carries_derivatives or elsewhere(part):
        return str(verbs.show(part, brief=True) if elsewhere(part) else verbs.show(part))
    return np.array2string(verbs.fetch(part), separator=", ")


def entries_text(x: Structured, separator: str) -> str:
    """The entries as NumPy writes them, a dot for each that is zero whatever the parts hold."""
    if x.carries_derivatives:
        from mirabelle.arraytypes.duals.base import plain  # which stands on this package

        x = plain(x)
    values = verbs.fetch(x)
    if x.ndim == 0:
        return str(values[()])
    if x.size == 0:
        return "[]"
    if x.ndim != 2:
        return np.array2string(values, separator=separator)
    stored = stored_mask(x)
    if stored.all():
        return np.array2string(values, separator=separator)
    found = _number_texts(values[stored])
    width = len(found[0]) if found else 1
    points = {t.index(".") for t in found if "." in t}
    column = points.pop() if len(points) == 1 else width - 1  # the dots stand where decimal points do
    texts = np.full(x.shape, (" " * column + ".").ljust(width), object)
    texts[stored] = found
    return np.array2string(texts, separator=separator, formatter={"object": str})


def stored_mask(x: Structured) -> np.ndarray:
    """Which entries of a matrix may differ from zero."""
    given = x._pattern()
    if given is not None:
        return given
    rows, columns = np.indices(x.shape, sparse=True)
    return (columns - rows <= x.structure.upper) & (rows - columns <= x.structure.lower)


def _number_texts(values: np.ndarray) -> list[str]:
    """Numbers as NumPy writes them in one array: of one width, with as many digits as they need."""
    text = np.array2string(values, separator="\n", threshold=values.size + 1, max_line_width=1)
    lines = [line[1:] for line in text[:-1].split("\n") if line]
    return [line.ljust(max(map(len, lines))) for line in lines]
