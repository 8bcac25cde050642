"""Pictures of structured arrays: what is stored is drawn strong, what follows from it is faint.

Bands, triangles and mirrored halves follow from `structure`; a type that looks otherwise has a
method of `pictures.picture` here.
"""

from __future__ import annotations

import numpy as np

from mirabelle.arraytypes import pictures
from mirabelle.arraytypes.pictures import picture
from mirabelle.arraytypes.structured.base import Structured
from mirabelle.arraytypes.structured.blocks import BlockDiagonal
from mirabelle.arraytypes.structured.conjugated import Conj
from mirabelle.arraytypes.structured.implicit import Fill, Range
from mirabelle.arraytypes.structured.inverse import Inverse
from mirabelle.arraytypes.structured.kronecker import Kronecker
from mirabelle.arraytypes.structured.kronecker_sum import KroneckerSum
from mirabelle.arraytypes.structured.lowrank import LowRank
from mirabelle.arraytypes.structured.sparse import CSR
from mirabelle.arraytypes.structured.toeplitz import Circulant, Toeplitz
from mirabelle.dispatch import verbs
from mirabelle.dispatch.styles import DENSE

# Of more parts than this, and of more stored entries, only some are drawn.
FACTORS, BLOCKS, ENTRIES = 4, 24, 600


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
        return _plain(x)
    wide, high, steps = pictures.SIDE + 20, 16.0, min(x.shape[0], 14)
    colour = pictures.colour_of(x)
    parts = [pictures.rectangle(0, 0, wide, high, colour, 0.04, 0.8)]
    for i in range(steps):
        share = (i + 1) / steps
        tall = high * (share if x.step > 0 else 1 + 1 / steps - share)
        parts.append(pictures.rectangle(i * wide / steps, high - tall, wide / steps, tall, colour, 0.4, 0))
    return pictures.box(x.shape, colour, "".join(parts))


# Made of other matrices


@picture.method
def _(x: Kronecker) -> str:
    return _factors(x, "⊗")


@picture.method
def _(x: KroneckerSum) -> str:
    return _factors(x, "⊕")


@picture.method
def _(x: LowRank) -> str:
    return _factors(x, "·")


@picture.method
def _(x: Inverse) -> str:
    return f'{picture(x.parts[0])}<sup style="opacity:0.75">−1</sup>'


def _factors(x: Structured, sign: str) -> str:
    shown = [picture(p) for p in x.parts[:FACTORS]]
    if len(x.parts) > FACTORS:
        shown[-1] = "…"
    return pictures.side_by_side(shown, sign)


@picture.method
def _(x: BlockDiagonal) -> str:
    """Each block where it stands, at least as large as can be seen."""
    if not x.size:
        return _plain(x)
    high, wide = pictures.lengths(x.shape)
    places = [
        (rows.start + i * m, columns.start + i * n, m, n)
        for (_, rows, columns), (k, m, n) in zip(x.spans(), x.blocks, strict=True)
        for i in (range(k) if k <= BLOCKS else np.linspace(0, k - 1, BLOCKS).astype(int).tolist())
    ]
    colour = pictures.colour_of(x)
    parts = [pictures.rectangle(0, 0, wide, high, colour, 0.06, 0.8)]
    for row, column, m, n in places[:: 1 + len(places) // (2 * BLOCKS)]:
        y, tall = row * high / x.shape[0], max(m * high / x.shape[0], 2.5)
        left, broad = column * wide / x.shape[1], max(n * wide / x.shape[1], 2.5)
        parts.append(
            pictures.rectangle(left, y, min(broad, wide - left), min(tall, high - y), colour, 0.5, 0.6)
        )
    return pictures.box(x.shape, colour, "".join(parts))


# Stored otherwise


@picture.method
def _(x: Toeplitz) -> str:
    return pictures.stripes(x.shape, pictures.colour_of(x)) if x.size else _plain(x)


@picture.method
def _(x: Circulant) -> str:
    return pictures.stripes(x.shape, pictures.colour_of(x), wrapped=True) if x.size else _plain(x)


def _plain(x: Structured) -> str:
    return pictures.box(x.shape, pictures.colour_of(x))


@picture.method
def _(x: CSR) -> str:
    """A dot for each stored entry, or for some of many."""
    if not x.size or not x.nnz:
        return _plain(x)
    step = 1 + x.nnz // ENTRIES
    columns = np.asarray(verbs.fetch(x.indices[::step]))
    rows = np.searchsorted(np.asarray(verbs.fetch(x.indptr)), np.arange(0, x.nnz, step), side="right") - 1
    high, wide = pictures.lengths(x.shape)
    tall, broad = max(high / x.shape[0], 1.6), max(wide / x.shape[1], 1.6)
    dots = {
        f"M{min(j * wide / x.shape[1], wide - broad):.1f},{min(i * high / x.shape[0], high - tall):.1f}"
        f"h{broad:.1f}v{tall:.1f}h-{broad:.1f}z"
        for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
    }
    colour = pictures.colour_of(x)
    drawn = f'<path d="{"".join(sorted(dots))}" fill="{colour}" fill-opacity="0.75"/>'
    return pictures.box(x.shape, colour, pictures.rectangle(0, 0, wide, high, colour, 0.06, 0.8) + drawn)
