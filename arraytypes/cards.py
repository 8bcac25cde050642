"""What a notebook shows of an array: a card with its facts, a picture, and a few of its values.

Nothing large is computed or moved for it: a large expression that is still pending is shown as its
tree, and of a large array the elements at its corners are fetched.

>>> import mirabelle as mb
>>> card_of(mb.zeros((3, 4)))[:4]
'<div'
"""

from __future__ import annotations

import html
import itertools
from typing import Any

import numpy as np

from mirabelle.arraytypes import flow, pictures
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.parametric import generic_class
from mirabelle.arraytypes.wrappers import Wrapper, root_of
from mirabelle.dispatch import verbs
from mirabelle.dispatch.generic import generic
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced, format_tree

# An expression of more elements than this is not computed to be looked at.
SMALL = 10_000
# Elements shown at each end of a dimension.
EDGE = 3

_MONO = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace"
_PRE = f"margin:0;padding:0;background:none;border:none;color:inherit;white-space:pre;overflow-x:auto;{_MONO}"


def card_of(x: AbstractArray) -> str:
    """The HTML a notebook shows of an array."""
    if distributed(x):
        from mirabelle.arraytypes.distributed import showing  # which stands on this module

        return showing.card_of(x)
    if x.place.kind == "traced":
        from mirabelle.arraytypes.programs import showing as traced

        text = traced.shown(x)
        if text is not None:
            return card(type(x).__name__, facts(x), pictures.picture(x), preformatted(text))
    version = waiting(x)
    said = facts(x)  # before its values are asked for
    if version is None:
        sections = [preformatted(sample_text(x))]
    elif x.size > SMALL:
        sections = [tree_html(version)]
    else:  # a small result is what one looks for
        sections = [tree_html(version), preformatted(sample_text(x))]
    return card(type(x).__name__, said, pictures.picture(x), *sections, colour=pictures.colour_of(x))


def tree_card(version: Broadcasted | Reduced) -> str:
    """The HTML a notebook shows of a tree."""
    said = {"shape": shown_shape(version.shape), "dtype": version.dtype.name, "state": pending(version)}
    return card(type(version).__name__, said, "", tree_html(version))


def card(title: str, rows: dict[str, str], picture: str, *sections: str, colour: str = "") -> str:
    """A title, a table of facts beside a picture, and what follows below."""
    dots = {"place": f'<span style="color:{colour}">\u25cf</span> '} if colour else {}
    cells = "".join(
        f'<tr style="background:none;border:none"><th style="{_HEAD}">'
        f'{html.escape(k)}</th><td style="{_CELL}">{dots.get(k, "")}{html.escape(v)}</td></tr>'
        for k, v in rows.items()
    )
    table = f'<table style="{_TABLE}">{cells}</table>'
    head = f'<div style="font-weight:600;{_MONO}">{html.escape(title)}</div>'
    below = "".join(f'<div style="margin-top:0.6em">{section}</div>' for section in sections if section)
    return (
        '<div style="color:inherit;font-size:13px;line-height:1.4;overflow-x:auto">'
        '<div style="display:flex;flex-wrap:wrap;gap:0.8em 2em;align-items:center">'
        f"<div>{head}{table}</div><div>{picture}</div></div>{below}</div>"
    )


_TABLE = "border-collapse:collapse;border:none;margin:0.3em 0 0 0;color:inherit;font-size:inherit"
_CELL = "text-align:left;padding:0.05em 1.2em 0.05em 0;border:none;background:none;max-width:60ch"
_HEAD = f"{_CELL};white-space:nowrap;font-weight:normal;opacity:0.6"


def preformatted(said: str) -> str:
    return f'<pre style="{_PRE}">{html.escape(said)}</pre>'


@generic
def facts(x: Any) -> Any:
    """What a card says of an array: a dictionary of short texts."""


@facts.method
def _(x: AbstractArray) -> dict[str, str]:
    return general_facts(x)


def general_facts(x: AbstractArray) -> dict[str, str]:
    """What is said of every array."""
    said = {
        "shape": shown_shape(x.shape),
        "dtype": x.dtype.name,
        "bytes": shown_bytes(x.nbytes),
        "place": repr(x.place),
        "state": _state(x),
    }
    if isinstance(x, Wrapper):
        said["shows"] = _chain(x)
    return said


def shown_shape(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) or "scalar"


def shown_bytes(n: float) -> str:
    """A number of bytes as a person reads it."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024:
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024
    return f"{n:.1f} TiB"


def distributed(x: AbstractArray) -> bool:
    """Does the array lie on several processes, in memory of its own? (Not: several arrays that do.)"""
    return x.place.rank == 3 and hasattr(root_of(x), "_node")


def elsewhere(x: Any) -> bool:
    """Would reading the values of an array ask other processes for something?"""
    if not isinstance(x, AbstractArray) or x.place.rank != 3:
        return False
    from mirabelle.arraytypes.distributed import showing

    return showing.elsewhere(x)


def waiting(x: Any) -> Any:
    """The tree of an array that is not evaluated; None if it is, or if it is no tree."""
    node = getattr(root_of(x), "_node", None)
    return node if isinstance(node, (Broadcasted, Reduced)) and node.value is None else None


def _state(x: Any) -> str:
    version = waiting(x)
    if version is None:
        leaf = getattr(root_of(x), "_node", None)
        if not isinstance(leaf, Leaf) or not leaf.foreign:
            return "in memory"
        return f"memory shared with {'NumPy' if isinstance(leaf.view, np.ndarray) else 'another library'}"
    return pending(version)


def pending(version: Any) -> str:
    """How much is left to do for a version."""
    n = _operations(version)
    return f"pending: {n} operation{'s' if n != 1 else ''}" if n else "in memory"


def _operations(version: Any) -> int:
    """How many operations wait in a tree, those below its reductions too."""
    seen: set[int] = set()
    stack = [version]
    while stack:
        x = stack.pop()
        if isinstance(x, (Broadcasted, Reduced)) and x.value is None and id(x) not in seen:
            seen.add(id(x))
            stack += (x.args or ()) if isinstance(x, Broadcasted) else [x.operand]
    return len(seen)


def _chain(x: Any) -> str:
    """A wrapper and what it wraps, from outside in."""
    inner = verbs.parent(x)
    said = f"{generic_class(type(inner)).__name__} {shown_shape(inner.shape)}"
    return f"{said}, which shows {_chain(inner)}" if isinstance(inner, Wrapper) else said


# A few values


@generic
def sample_text(x: Any) -> Any:
    """A few values of an array as text."""


@sample_text.method
def _(x: AbstractArray) -> str:
    if distributed(x):
        from mirabelle.arraytypes.distributed import showing

        return showing.sample(x)
    if not x.ndim:
        return str(verbs.fetch(x)[()])
    if x.ndim > 3 and x.size:  # the first matrix of many
        first = verbs.getitem(x, (0,) * (x.ndim - 2))
        return f"[{', '.join('0' * (x.ndim - 2))}, :, :]\n{sample_text(first)}"
    edge = EDGE if x.ndim < 3 else 1
    few = x.size <= 60 if x.ndim < 3 else x.size <= 20
    with np.printoptions(precision=min(4, np.get_printoptions()["precision"])):
        return np.array2string(corners(x), threshold=60 if few else 0, edgeitems=edge, max_line_width=78)


def corners(x: Any, edge: int = EDGE) -> np.ndarray:
    """An array that NumPy shortens to what it shortens `x` to, though only the corners were fetched."""
    if x.size <= 1000 or x.ndim > 6 or edge < 1:
        return np.asarray(verbs.fetch(x))
    family, view = leaf_family(type(x)), verbs.leaf_of(x).view
    ends = [
        [(slice(None), slice(None))] if n <= 2 * edge + 1
        else [(slice(0, edge), slice(0, edge)), (slice(n - edge, n), slice(edge + 1, 2 * edge + 1))]
        for n in x.shape
    ]  # fmt: skip
    out = np.zeros(tuple(min(n, 2 * edge + 1) for n in x.shape), x.dtype)
    for block in itertools.product(*ends):
        there, here = tuple(b[0] for b in block), tuple(b[1] for b in block)
        out[here] = family._download(view[there])
    return out


# Trees


def tree_html(version: Any) -> str:
    """A tree as a picture, or as text where it is too large for one."""
    drawn = flow.flow(version)
    return f'<div style="overflow-x:auto">{drawn}</div>' if drawn else preformatted(format_tree(version))
