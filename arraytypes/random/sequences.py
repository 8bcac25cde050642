"""Orders and choices: permutations by sorting random keys, on the place of the data.

Sorting numbers that belong to places gives the same order however the work is divided; it is exact
unless two of the 64-bit keys are equal.
"""

from __future__ import annotations

import math
from collections.abc import MutableSequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.dense import as_numpy, as_shape, wrap
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.random.checks import all_of, any_of, parameter
from mirabelle.arraytypes.random.core import Core, Request
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import Leaf

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import ArrayLike, Out, ShapeLike

_UINT64 = np.dtype(np.uint64)
# Of more elements than this, a few are drawn one by one and not by sorting all.
_SORTED = 1 << 16


class Sequences(Core):
    """The methods of a generator that choose from what there is, or put it in another order."""

    __slots__ = ()

    def choice(
        self,
        a: ArrayLike,
        size: ShapeLike | None = None,
        replace: bool = True,
        p: ArrayLike | None = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> AbstractArray:
        """Elements of `a` (of 0, 1, ... a-1 for an integer), each as likely as `p` says, or all equally.

        The order is always random (`shuffle` is accepted for NumPy's sake).

        >>> import mirabelle as mb
        >>> rng = mb.random.default_rng(7)
        >>> x = rng.choice(mb.HostArray([10, 20, 30]), 2, replace=False)
        >>> bool(x[0] != x[1])
        True
        >>> print(rng.choice(3, 4, p=[0.0, 1.0, 0.0]))
        [1 1 1 1]
        """
        pool, n, axis = self._pool(a, axis)
        family = self._maker().family if pool is None else leaf_family(type(pool))
        shape = () if size is None else as_shape(size)
        drawn = math.prod(shape)
        r = Request(family, None, [], shape)
        if p is not None:
            p = _probabilities(family, p, n)
        if n == 0 and drawn:
            raise ValueError("a cannot be empty unless no samples are taken.")
        if replace:
            if p is None:
                index = self._indices(r, n, shape)
            else:
                steps = verbs.accumulate(p, "add", axis=0)
                u = self._draw(r, "uniform") * steps[-1]
                index = library.call("searchsorted", steps, u, side="right")
                index = verbs.minimum(index, n - 1)
        else:
            self._whole("choice(replace=False)")
            if drawn > n:
                raise ValueError(
                    "Cannot take a larger sample than population when replace is False: "
                    f"{drawn} of {n} were asked for."
                )
            index = verbs.reshape(self._without_return(r, n, drawn, p), shape)
        if pool is None:
            return self._deliver(r, verbs.astype(index, np.int64, copy=False))
        return pool[(*[slice(None)] * axis, index)]

    def _pool(self, a: Any, axis: int) -> tuple[Any, int, int]:
        """What is chosen from (None for integers), how many there are, and along which axis."""
        if not isinstance(a, AbstractArray):
            data = a if isinstance(a, np.ndarray) else as_numpy(a, None)
            if not data.ndim:
                if data.dtype.kind not in "iu":
                    raise TypeError(f"a must be a sequence or an integer, not {a!r}.")
                if data < 0:
                    raise ValueError("a must be a non-negative integer.")
                return None, int(data), 0
            family = self._maker().family
            a = (
                as_array(a)
                if isinstance(a, np.ndarray) and family.home.rank < 2
                else (parameter(family, "a", a, whole=True))
            )
        if not a.ndim:
            return None, int(a), 0
        (axis,) = normal_axes(axis, a.ndim)
        return a, a.shape[axis], axis

    def _indices(self, r: Request, n: int, shape: tuple[int, ...]) -> Any:
        """Integers below n, all equally likely."""
        if n == 0:
            return wrap(r.family, Leaf(r.family._empty(shape, np.dtype(np.int64))))
        if n <= 1 << 32:
            return self._draw(r, "bounded_4", None, 0, n, (1 << 32) % n, shape=shape)
        return self._draw(r, "bounded_8", None, 0, n, (1 << 64) % n, shape=shape)

    def _without_return(self, r: Request, n: int, drawn: int, p: Any) -> Any:
        """Different integers below n."""
        if p is not None:
            if int(verbs.count_nonzero(p)) < drawn:
                raise ValueError("Fewer non-zero entries in p than size.")
            # Whoever arrives first, at the rate p: the order of successive draws.
            times = self._draw(r, "exponential", shape=(n,)) / p
            return verbs.copy(library.call("argsort", times, kind="stable")[:drawn])
        if n <= _SORTED or drawn > n >> 5:
            return verbs.copy(self._order(r, n)[:drawn])
        return self._few_of_many(r, n, drawn)

    def _few_of_many(self, r: Request, n: int, drawn: int) -> Any:
        """The first `drawn` different ones of a series of integers: on the host, and moved once."""
        from mirabelle.arraytypes.host import HostArray

        host = Request(HostArray, None, [], (drawn,))
        found = np.empty(0, np.int64)
        while len(found) < drawn:
            more = self._indices(host, n, (drawn - len(found) + (drawn >> 4) + 8,))
            found = np.concatenate([found, verbs.fetch(more)])
            _, first = np.unique(found, return_index=True)
            found = found[np.sort(first)]
        return wrap(r.family, Leaf(r.family._upload(found[:drawn])))

    def permutation(self, x: ArrayLike, axis: int = 0) -> AbstractArray:
        """The integers below `x` in a random order, or a copy of an array shuffled along an axis.

        >>> import mirabelle as mb
        >>> x = mb.random.default_rng(7).permutation(5)
        >>> bool(mb.sum(x) == 10)
        True
        """
        self._whole("permutation")
        pool, n, axis = self._pool(x, axis)
        family = self._maker().family if pool is None else leaf_family(type(pool))
        r = Request(family, None, [], (n,))
        order = self._order(r, n)
        if pool is None:
            return self._deliver(r, order)
        return verbs.copy(pool[(*[slice(None)] * axis, order)])

    def shuffle(self, x: AbstractArray | np.ndarray | MutableSequence[Any], axis: int = 0) -> None:
        """Put the slices of `x` along an axis in a random order, in place. `x` may be a list.

        >>> import mirabelle as mb
        >>> x = mb.arange(4)
        >>> mb.random.default_rng(7).shuffle(x)
        >>> int(mb.sum(x))
        6
        """
        if isinstance(x, MutableSequence):
            if axis != 0:
                raise NotImplementedError("axis is only supported for arrays: make one with mb.HostArray(x).")
            order = verbs.fetch(self._order(self._host_request(len(x)), len(x))).tolist()
            x[:] = [x[i] for i in order]
            return
        if not isinstance(x, (AbstractArray, np.ndarray)):
            raise TypeError(f"shuffle changes an array or a list, and {type(x).__name__} is neither.")
        self._whole("shuffle")
        array = self._destination(x)
        if not array.ndim:
            raise TypeError("An array of no dimensions has nothing to shuffle.")
        verbs.assign(array, self.permutation(array, axis=axis))

    def permuted(self, x: ArrayLike, *, axis: int | None = None, out: Out = None) -> AbstractArray:
        """A copy of `x` in which each slice along an axis is shuffled by itself (all elements, for None).

        >>> import mirabelle as mb
        >>> x = mb.random.default_rng(7).permuted(mb.HostArray([[1, 2, 3], [4, 5, 6]]), axis=1)
        >>> print(mb.sum(x, axis=1))
        [ 6 15]
        """
        from mirabelle.arraytypes.functions.picking import take_along_axis

        self._whole("permuted")
        array: Any = x
        if isinstance(x, np.ndarray):
            array = as_array(x)
        elif not isinstance(x, AbstractArray):
            array = parameter(self._maker().family, "x", x, whole=True)
        out = None if out is None else self._destination(out)
        if out is not None and out.shape != array.shape:
            raise ValueError(f"out must have the same shape as x: {out.shape} is not {array.shape}.")
        if axis is None:
            made = verbs.reshape(self.permutation(verbs.reshape(array, (-1,))), array.shape)
        else:
            (axis,) = normal_axes(axis, array.ndim)
            r = Request(leaf_family(type(array)), None, [], array.shape)
            keys = self._draw(r, "words_8")
            order = library.call("argsort", keys, axis=axis, kind="stable")
            made = verbs.copy(take_along_axis(array, order, axis=axis))
        return made if out is None else verbs.assign(out, made, casting="same_kind")

    def bytes(self, length: int) -> bytes:
        """Random bytes.

        >>> import mirabelle as mb
        >>> len(mb.random.default_rng(7).bytes(10))
        10
        """
        self._whole("bytes")
        if length < 0:
            raise ValueError(f"A number of bytes is not negative; {length} was given.")
        words = self._draw(self._host_request(-(-length // 4)), "words_4")
        return verbs.fetch(words).astype("<u4").tobytes()[:length]

    def _order(self, r: Request, n: int) -> Any:
        keys = self._draw(r, "words_8", shape=(n,))
        order = library.call("argsort", keys, kind="stable")
        return verbs.astype(order, np.int64, copy=False)

    def _host_request(self, n: int) -> Request:
        from mirabelle.arraytypes.host import HostArray

        return Request(HostArray, None, [], (n,))

    def _whole(self, method: str) -> None:
        if self._piece is not None:
            raise ValueError(
                f"{method} needs the whole array, and this generator makes a piece of one. Call it on the "
                "generator itself."
            )


def _probabilities(family: Any, p: Any, n: int) -> Any:
    p = parameter(family, "p", p)
    if not isinstance(p, AbstractArray) or p.ndim != 1:
        raise ValueError("p must be 1-dimensional.")
    if p.shape[0] != n:
        raise ValueError(f"a and p must have same size: a has {n} elements, p has {p.shape[0]}.")
    if any_of(p != p):
        raise ValueError("Probabilities contain NaN.")
    if not all_of(p >= 0):
        raise ValueError("Probabilities are not non-negative.")
    total = float(verbs.sum(p))
    tolerance = math.sqrt(max(np.finfo(p.dtype).eps, np.finfo(np.float64).eps))
    if abs(total - 1.0) > tolerance:
        raise ValueError(
            f"Probabilities do not sum to 1: their sum is {total!r}. Divide them by it: p / mb.sum(p)."
        )
    return p
