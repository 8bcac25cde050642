"""Pictures of structured arrays: what is stored is drawn strong, what follows from it is faint.

Bands, triangles and mirrored halves follow from `structure`; a type that looks otherwise has a
method of `pictures.picture` here.
"""

from __future__ import annotations

from mirabelle.arraytypes import pictures
from mirabelle.arraytypes.pictures import picture
from mirabelle.arraytypes.structured.base import Structured
from mirabelle.arraytypes.structured.conjugated import Conj
from mirabelle.arraytypes.structured.implicit import Fill, Range
from mirabelle.dispatch.styles import DENSE


@picture.method
def _(x: Structured) -> str:
    known = x.structure
    if len(x.shape) != 2 or 0 in x.shape or known == DENSE:
        return pictures.box(x.shape, pictures.colour_of(x))
    mirrored = (known.symmetric or known.hermitian) and known.upper > 0
    return pictures.banded(x.shape, pictures.colour_of(x), known.lower, known.upper, mirrored)


@picture.method
def _(x: Conj) -> str:
    return pictures.box(x.shape, pictures.colour_of(x))


@picture.method
def _(x: Fill) -> str:
    """Drawn open, with its value in it: nothing is stored but that."""
    if len(x.shape) not in (1, 2) or 0 in x.shape:
        return pictures.box(x.shape, pictures.colour_of(x))
    high, wide = pictures.lengths(x.shape) if len(x.shape) == 2 else (16.0, pictures.SIDE + 20)
    said = f"{x.known:.4g}" if x.known is not None else "·"
    inside = pictures.rectangle(0, 0, wide, high, pictures.colour_of(x), 0.1, 0.8)
    inside += pictures.text(wide / 2, high / 2 + 4, said)
    return pictures.box(x.shape, pictures.colour_of(x), inside)


@picture.method
def _(x: Range) -> str:
    """Steps from the first element to the last."""
    if not x.shape[0]:
        return pictures.box(x.shape, pictures.colour_of(x))
    wide, high, steps = pictures.SIDE + 20, 16.0, min(x.shape[0], 14)
    colour = pictures.colour_of(x)
    parts = [pictures.rectangle(0, 0, wide, high, colour, 0.04, 0.8)]
    for i in range(steps):
        share = (i + 1) / steps
        tall = high * (share if x.step > 0 else 1 + 1 / steps - share)
        parts.append(pictures.rectangle(i * wide / steps, high - tall, wide / steps, tall, colour, 0.4, 0))
    return pictures.box(x.shape, colour, "".join(parts))
