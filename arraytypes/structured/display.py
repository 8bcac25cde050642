"""What people see of structured arrays: type, shape, and entries with dots for structural zeros.

A small one is shown entry by entry; of a large one only the parts are, so that nothing is made dense.

>>> import mirabelle as mb
>>> mb.Diagonal([1.0, 2.0])
Diagonal[HostArray[float64, 1]](
[[1., . ],
 [. , 2.]])
>>> mb.Diagonal(mb.arange(5000))
Diagonal[HostArray[int64, 1]](shape=(5000, 5000), parts: [0, 1, 2, ..., 4997, 4998, 4999])
"""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from mirabelle.arraytypes.display import shown_bytes
from mirabelle.arraytypes.structured.base import Structured
from mirabelle.dispatch import verbs


@verbs.show.method
def _(x: Structured, brief: bool = False) -> str:
    name = type(x).__name__
    if not _is_small(x):
        return summary(x)
    text = entries_text(x)
    if brief:
        return text
    notes = [f"shape={x.shape}"] if x.size == 0 else []
    if x.place.rank > 1:
        notes.append(f"place={x.place}")
    gap = "\n" if x.ndim > 1 and x.size else ""
    return f"{name}({gap}{', '.join([text, *notes])})"


@verbs.show_html.method
def _(x: Structured) -> str:
    facts = {
        "type": type(x).__name__,
        "shape": " × ".join(map(str, x.shape)) or "scalar",
        "bytes": f"{shown_bytes(x.stored_bytes)} stored, {shown_bytes(x.nbytes)} if dense",
        "place": repr(x.place),
    }
    rows = "".join(
        f"<tr><th style='text-align:left'>{k}</th><td style='text-align:left'>{html.escape(v)}</td></tr>"
        for k, v in facts.items()
    )
    text = entries_text(x) if _is_small(x) else summary(x)
    return f"<table>{rows}</table><pre style='margin-top:0.4em'>{html.escape(text)}</pre>"


def _is_small(x: Structured) -> bool:
    return x.size <= np.get_printoptions()["threshold"]


def summary(x: Structured) -> str:
    """Type, shape and parts, without the entries."""
    notes = [f"shape={x.shape}", *x._facts()]
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
    return np.array2string(verbs.fetch(part), separator=", ")


def entries_text(x: Structured) -> str:
    """The entries as NumPy writes them, a dot for each that is zero whatever the parts hold."""
    values = verbs.fetch(x)
    if x.ndim == 0:
        return str(values[()])
    if x.size == 0:
        return "[]"
    if x.ndim != 2:
        return np.array2string(values, separator=", ")
    stored = stored_mask(x)
    if stored.all():
        return np.array2string(values, separator=", ")
    numbers = iter(_number_texts(values[stored]))
    texts = np.full(x.shape, "", object)
    for i, j in zip(*np.nonzero(stored), strict=True):
        texts[i, j] = next(numbers)
    width = max(map(len, texts[stored]), default=1)
    point = {t.index(".") for t in texts[stored] if "." in t}
    column = point.pop() if len(point) == 1 else width - 1  # the dots stand where decimal points do
    texts[~stored] = (" " * column + ".").ljust(width)
    return np.array2string(texts, separator=", ", formatter={"object": str})


def stored_mask(x: Structured) -> np.ndarray:
    """Which entries of a matrix may differ from zero."""
    rows, columns = np.indices(x.shape, sparse=True)
    return (columns - rows <= x.structure.upper) & (rows - columns <= x.structure.lower)


def _number_texts(values: np.ndarray) -> list[str]:
    """Numbers as NumPy writes them in one array: of one width, with as many digits as they need."""
    if not values.size:
        return []
    text = np.array2string(values, separator="\n", threshold=values.size + 1, max_line_width=1)
    return [line for line in (s.strip("[]") for s in text.split("\n")) if line]
