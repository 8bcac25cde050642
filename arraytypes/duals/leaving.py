"""What would lose a derivative is an error that says how not to; and what people see of a dual number."""

from __future__ import annotations

from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.cards import elsewhere
from mirabelle.arraytypes.duals.base import Dual, DualError, no_rule
from mirabelle.dispatch import verbs


def _refuse(x: Any, *rest: Any) -> Any:
    raise no_rule(x)


for _verb in (verbs.capture, verbs.leaf_of, verbs.tree):
    _verb.method(_refuse, signature=(Dual,))


@verbs.lower.method
def _(x: Dual, leaf: Any) -> Any:
    raise no_rule(x)


def _leaves(x: Any) -> DualError:
    return DualError(
        f"Taking a dual number out of mirabelle's arrays would lose its derivative (of {x._tag}). Compute "
        "with mirabelle's functions (np.sin(x) and x.sum() are ours too), or take its parts: `x.value`, "
        "`x.partials`, `mb.autodiff.value(x)`."
    )


@verbs.fetch.method
def _(x: Dual) -> np.ndarray:
    raise _leaves(x)


@verbs.to_numpy.method
def _(x: Dual) -> np.ndarray:
    raise _leaves(x)


@verbs.numpy_view.method
def _(x: Dual, dtype: Any = None, copy: Any = None) -> np.ndarray:
    raise _leaves(x)


@verbs.show.method
def _(x: Dual, brief: bool = False) -> str:
    partials = x.partials
    value = verbs.show(x._value, brief=True) if isinstance(x._value, AbstractArray) else repr(x._value)
    if brief:
        return f"{value} + ε·{verbs.show(partials, brief=True)}"
    if isinstance(x._value, Dual):
        return f"{type(x).__name__}({value}; {x._n} partials)"
    if elsewhere(x):  # (looking sends no messages)
        return f"{type(x).__name__}({value}; partials {verbs.show(partials, brief=True)})"
    text = (
        np.array2string(verbs.fetch(x._value), separator=", ") if isinstance(x._value, AbstractArray) else value
    )
    shown = (
        np.array2string(verbs.fetch(partials), separator=", ")
        if not isinstance(partials, Dual)
        else "of dual numbers"
    )
    return f"{type(x).__name__}({text}; partials {shown})"


@verbs.show_html.method
def _(x: Dual) -> str:
    value = verbs.show_html(x._value) if isinstance(x._value, AbstractArray) else f"<code>{x._value!r}</code>"
    return f"<div>{value}<div>and along {x._n} direction(s)</div>{verbs.show_html(x.partials)}</div>"
