"""What people see: repr, str and the notebook's card."""

from __future__ import annotations

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.cards import card_of, shown_bytes
from mirabelle.dispatch import verbs

__all__ = ["shown_bytes"]


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
    return card_of(x)


@verbs.to_numpy.method
def _(x: AbstractArray) -> np.ndarray:
    return np.array(verbs.fetch(x))


def to_numpy_of_numpy(x: np.ndarray) -> np.ndarray:
    return np.array(x)


verbs.to_numpy.method(to_numpy_of_numpy)
