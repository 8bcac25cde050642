"""What people see: repr, str and the notebook's table."""

from __future__ import annotations

import html

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.dispatch import verbs


@verbs.show.method
def _(x: AbstractArray, brief: bool = False) -> str:
    values = verbs.fetch(x)
    if brief:
        return str(values[()]) if values.ndim == 0 else np.array2string(values)
    head = f"{type(x).__name__}("
    text = np.array2string(values, separator=", ", prefix=head)
    notes = []
    if values.size == 0:
        text = "[]"
        notes.append(f"shape={values.shape}")
    if values.size > np.get_printoptions()["threshold"]:
        notes.append(f"shape={values.shape}")
    if x.place.rank > 1:
        notes.append(f"place={x.place}")
    return head + ", ".join([text, *notes]) + ")"


@verbs.show_html.method
def _(x: AbstractArray) -> str:
    values = verbs.fetch(x)
    facts = {
        "type": type(x).__name__,
        "shape": " × ".join(map(str, x.shape)) or "scalar",
        "bytes": shown_bytes(x.nbytes),
        "place": repr(x.place),
    }
    rows = "".join(
        f"<tr><th style='text-align:left'>{k}</th><td style='text-align:left'>{html.escape(v)}</td></tr>"
        for k, v in facts.items()
    )
    text = html.escape(np.array2string(values, threshold=60, edgeitems=3))
    return f"<table>{rows}</table><pre style='margin-top:0.4em'>{text}</pre>"


def shown_bytes(n: float) -> str:
    """A number of bytes as a person reads it."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024:
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024
    return f"{n:.1f} TiB"


@verbs.to_numpy.method
def _(x: AbstractArray) -> np.ndarray:
    return np.array(verbs.fetch(x))


def to_numpy_of_numpy(x: np.ndarray) -> np.ndarray:
    return np.array(x)


verbs.to_numpy.method(to_numpy_of_numpy)
