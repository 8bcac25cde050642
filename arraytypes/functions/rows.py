"""Arrays written as their pieces: `r_[0:3, x, 7]` one after another, `c_[x, y]` as columns.

>>> import mirabelle as mb
>>> x = mb.HostArray([1.0, 2.0, 3.0])
>>> print(mb.r_[x, 0, 1:3])
[1. 2. 3. 0. 1. 2.]
>>> print(mb.c_[x, x * 10])
[[ 1. 10.]
 [ 2. 20.]
 [ 3. 30.]]
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import arange, asarray, linspace
from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.functions.joining import concatenate
from mirabelle.arraytypes.functions.turning import swapaxes
from mirabelle.dispatch import verbs


class Pieces:
    """What `r_` and `c_` are: pieces in brackets, joined along an axis where the arrays among them are.

    A piece is an array, a list, a number, or a slice: `a:b:step` is a range, and `a:b:5j` are 5 numbers from
    a to b. A text as the first piece, `"axis,ndim,where"`, says along which axis they are joined, how many
    dimensions pieces have at least, and at which of these their own begin.
    """

    def __init__(self, name: str, example: str, axis: int, ndim: int, begin: int, maker: Any = None) -> None:
        self._name, self._example, self._maker = name, example, maker
        self._how = axis, ndim, begin
        self.__doc__ = f"{type(self).__doc__}\n\n    >>> import mirabelle as mb\n{example}"

    def __getitem__(self, key: Any) -> Any:
        pieces = list(key) if isinstance(key, tuple) else [key]
        axis, ndim, begin = self._how
        if pieces and isinstance(pieces[0], str):
            axis, ndim, begin = self._told(pieces.pop(0))
        if any(isinstance(p, str) for p in pieces):
            raise ValueError(
                f"A text that says how is the first in the brackets: mb.{self._name}['0,2', x, y]."
            )
        like = next((p for p in pieces if isinstance(p, AbstractArray)), None)
        device = self._maker if like is None else like.place
        made = [p if _is_number(p) else _piece(p, ndim, begin, device, like) for p in pieces]
        if not made:
            raise ValueError(f"mb.{self._name} needs at least one piece in its brackets.")
        dtype = np.result_type(*[p if _is_number(p) else p.dtype for p in made])
        for i, p in enumerate(made):
            if _is_number(p):
                made[i] = verbs.reshape(asarray(p, dtype, device=device), (1,) * ndim)
        return concatenate([verbs.astype(x, dtype, copy=False) for x in made], axis)

    def _told(self, how: str) -> tuple[int, int, int]:
        """The axis, the least number of dimensions and the place that a text says."""
        try:
            told = [int(n) for n in how.split(",")]
        except ValueError:
            told = []
        if not 1 <= len(told) <= 3:
            raise ValueError(
                f"{how!r} says nothing to mb.{self._name}. Up to three integers do, for instance '0,2,0': the "
                "axis, the least number of dimensions, and at which of them those of a piece begin. (NumPy's "
                "'r' and 'c' make matrices, which mirabelle has not: mb.c_[x] is a column.)"
            )
        axis, ndim, begin = [*told, *self._how[len(told) :]]
        return axis, ndim, begin

    def made_by(self, maker: Any) -> Pieces:
        """The same, for the namespace of another array type."""
        return Pieces(self._name, self._example, *self._how, maker=maker)

    def __len__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"mirabelle.{self._name}"


def _is_number(p: Any) -> bool:
    return isinstance(p, (bool, int, float, complex, np.generic))


def _piece(p: Any, ndim: int, begin: int, device: Any, like: Any) -> Any:
    """A piece as an array of `ndim` dimensions or more, its own from `begin` on."""
    if isinstance(p, slice):
        start = 0 if p.start is None else p.start
        if isinstance(p.step, complex):
            x: Any = linspace(start, p.stop, int(abs(p.step)), device=device)
        elif p.stop is None:
            raise TypeError(f"A slice in brackets of pieces has an end: {start}:stop, not {start}:.")
        else:
            x = arange(start, p.stop, 1 if p.step is None else p.step, device=device)
        x = verbs.reshape(x, (1,) * (ndim - 1) + x.shape)
        return x if begin == -1 else swapaxes(x, -1, begin)
    x = as_array(p, like) if like is not None else asarray(p, device=device)
    new = ndim - x.ndim
    if new <= 0:
        return x
    before = begin if begin >= 0 else begin + new + 1
    if not 0 <= before <= new:
        raise np.exceptions.AxisError(begin, ndim)
    return verbs.reshape(x, (1,) * operator.index(before) + x.shape + (1,) * (new - before))


r_ = Pieces("r_", "    >>> print(mb.r_[1:4, [9, 7], 0])\n    [1 2 3 9 7 0]\n", 0, 1, -1)
c_ = Pieces("c_", "    >>> print(mb.c_[0:2, [7, 8]])\n    [[0 7]\n     [1 8]]\n", -1, 2, 0)
