"""What people see: repr, str and the notebook's card."""

from __future__ import annotations

import sys

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.cards import (
    SMALL,
    card_of,
    corners,
    distributed,
    elsewhere,
    shown_bytes,
    tree_card,
    waiting,
)
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import Broadcasted, Reduced, format_tree

__all__ = ["shown_bytes"]


@verbs.show.method
def _(x: AbstractArray, brief: bool = False) -> str:
    if distributed(x):
        from mirabelle.arraytypes.distributed import showing  # which stands on this module

        return showing.show(x, brief)
    if x.place.kind == "traced":
        from mirabelle.arraytypes.programs import showing as traced  # which stands on this module

        text = traced.shown(x)
        if text is not None:
            return text
    options = np.get_printoptions()
    long = x.size > options["threshold"]
    # Of what is shortened anyway, only what is shown is fetched.
    values = corners(x, options["edgeitems"]) if long else verbs.fetch(x)
    threshold = 0 if long else None
    if brief:
        return str(values[()]) if values.ndim == 0 else np.array2string(values, threshold=threshold)
    head = f"{type(x).__name__}("
    text = np.array2string(values, separator=", ", prefix=head, threshold=threshold)
    notes = []
    if x.size == 0:
        text = "[]"
    if x.size == 0 or long:
        notes.append(f"shape={x.shape}")
    if x.place.rank > 1:
        notes.append(f"place={x.place}")
    return head + ", ".join([text, *notes]) + ")"


@verbs.show_html.method
def _(x: AbstractArray) -> str:
    return card_of(x)


@verbs.show_html.method
def _(x: Broadcasted | Reduced) -> str:
    return tree_card(x)


def bundle(x: AbstractArray) -> dict[str, str]:
    """All a notebook shows of an array, as HTML and as text.

    Notebooks ask for both, and a text has the values: asked for by itself it would compute what the
    card leaves pending.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None and "text/html" not in shell.display_formatter.active_types:
        return {}  # a terminal
    shown = {"text/html": verbs.show_html(x)}
    version = waiting(x) if x.size > SMALL else None
    if version is None or elsewhere(x):
        return shown | {"text/plain": repr(x)}
    return shown | {"text/plain": f"{type(x).__name__} of shape {x.shape}, pending:\n{format_tree(version)}"}


@verbs.to_numpy.method
def _(x: AbstractArray) -> np.ndarray:
    return np.array(verbs.fetch(x))


def to_numpy_of_numpy(x: np.ndarray) -> np.ndarray:
    return np.array(x)


verbs.to_numpy.method(to_numpy_of_numpy)
