"""Functions of scalars, slices and axes applied to arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.annotations import DTypeLike
from mirabelle.arraytypes.define import as_array
from mirabelle.arraytypes.elementwise import cast_to
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.arraytypes.userbroadcast import broadcast
from mirabelle.dispatch import misuse, verbs
from mirabelle.dispatch.misuse import explained


@explained
def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> AbstractArray:
    """`func1d(row, *args, **kwargs)` of each one-dimensional slice along an axis, put together.

    The function gets arrays of the type of `arr`, one after another: where operations along an axis
    exist (`mb.sum(x, axis=1)`), one kernel of these is quicker.

    Parameters
    ----------
    func1d : callable
        A function of a one-dimensional array.
    axis : int
        Along which axis; negative ones count from the last.
    arr : array
        An array; a list, a number or a NumPy array becomes one.
    *args : positional arguments
        What else the function is given.
    **kwargs : keyword arguments
        What else the function is given.

    Returns
    -------
    array
        In new memory: what the function returns stands where the axis was, which is gone if that is a
        number.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.apply_along_axis(lambda row: row[0] + row[-1], 1, mb.HostArray([[1, 2, 3], [4, 5, 6]])))
    [ 4 10]
    """
    x = as_array(arr)
    if not x.ndim:
        raise np.exceptions.AxisError(axis, 0)
    (axis,) = normal_axes(axis, x.ndim)
    rows = verbs.permute_dims(x, (*(d for d in range(x.ndim) if d != axis), axis))
    outer = rows.shape[:-1]
    if 0 in outer:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    out: Any = None
    inner: tuple[int, ...] = ()
    for index in np.ndindex(outer):
        made = as_array(func1d(verbs.getitem(rows, (*index, ...)), *args, **kwargs), x)
        if out is None:
            inner = made.shape
            out = verbs.similar(x, dtype=made.dtype, shape=outer + inner)
        verbs.assign(verbs.getitem(out, (*index, ...)), made)
    # The results' dimensions stand where the axis was.
    n, k = len(outer), len(inner)
    order = (*range(axis), *range(n, n + k), *range(axis, n))
    return verbs.copy(verbs.permute_dims(out, order)) if order != tuple(range(n + k)) else out


@explained
def apply_over_axes(func: Callable[[Any, int], Any], a: Any, axes: Any) -> AbstractArray:
    """`func(a, axis)` for each axis in turn, keeping the number of dimensions.

    Parameters
    ----------
    func : callable
        A function of an array and an axis.
    a : array
        An array; a list, a number or a NumPy array becomes one.
    axes : int or sequence of int
        The axes in turn.

    Returns
    -------
    array
        Of as many dimensions as `a`, with size one along the axes, if `func` takes these away.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.apply_over_axes(mb.sum, mb.HostArray([[1, 2], [3, 4]]), [0, 1]))
    [[10]]
    """
    x = as_array(a)
    ndim = x.ndim
    for axis in axes if isinstance(axes, (tuple, list)) else (axes,):
        axis = axis + ndim if axis < 0 else axis
        made = func(x, axis)
        if made.ndim == x.ndim - 1:
            made = verbs.getitem(made, (*[slice(None)] * axis, None, ...))
        if made.ndim != x.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        x = made
    return x


class vectorize:
    """A scalar function as a function of arrays: `mb.broadcast(f, ...)` by NumPy's name.

    The function is compiled into one kernel with what surrounds it. `otypes` gives the results' dtypes
    (a string of type characters, or a list), which are inferred without; `excluded` names arguments that
    are passed as they are.

    Parameters
    ----------
    pyfunc : callable
        A scalar function.
    otypes : object
        NumPy's arguments.
    doc : object
        NumPy's arguments.
    excluded : object
        NumPy's arguments.
    cache : object, default False
        NumPy's arguments.
    signature : object
        NumPy's arguments.

    Examples
    --------
    >>> import mirabelle as mb
    >>> clipped = mb.vectorize(lambda a, b: a - b if a > b else 0.0)
    >>> print(clipped(mb.HostArray([1.0, 2.0, 3.0]), 2.0))
    [0. 0. 1.]
    """

    def __init__(
        self, pyfunc: Callable[..., Any] | None = None, otypes: str | Sequence[DTypeLike] | None = None,
        doc: str | None = None, excluded: Iterable[int | str] | None = None,
        cache: bool = False, signature: str | None = None,
    ) -> None:  # fmt: skip
        if signature is not None:
            raise NotImplementedError(
                "vectorize(signature=) loops over slices, not over scalars. Use mb.apply_along_axis, or write "
                "the operation with functions of whole arrays."
            )
        if pyfunc is not None and not callable(pyfunc):
            raise TypeError(
                f"vectorize: pyfunc={misuse.shown(pyfunc)} is no function of numbers: `lambda a: a + 1`."
            )
        self.otypes = None if otypes is None else [checked_dtype(t) for t in otypes]
        self.excluded = set(excluded or ())
        self.pyfunc = pyfunc
        self.__doc__ = doc or getattr(pyfunc, "__doc__", None) or type(self).__doc__
        if pyfunc is not None:
            functools.update_wrapper(
                self, pyfunc, assigned=("__name__", "__qualname__", "__module__"), updated=()
            )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.pyfunc is None:  # as a decorator with options: @mb.vectorize(otypes=[float])
            (f,) = args
            return vectorize(f, otypes=self.otypes, excluded=self.excluded)
        fixed: dict[Any, Any] = {i: a for i, a in enumerate(args) if i in self.excluded}
        names = [k for k in kwargs if k not in self.excluded]
        constants: dict[Any, Any] = {k: v for k, v in kwargs.items() if k in self.excluded}
        operands = [a for i, a in enumerate(args) if i not in fixed] + [kwargs[k] for k in names]
        f = self.pyfunc
        if fixed or kwargs:
            f = self._bound(len(args), fixed, names, constants)
        if not any(isinstance(a, AbstractArray) for a in operands):
            operands = [as_array(a) if i == 0 or not np.isscalar(a) else a for i, a in enumerate(operands)]
        operands = [as_array(a) if isinstance(a, (list, tuple)) else a for a in operands]
        made = broadcast(f, *operands)
        if self.otypes is None:
            return made
        if isinstance(made, tuple):
            return tuple(cast_to(x, t) for x, t in zip(made, self.otypes, strict=True))
        return cast_to(made, self.otypes[0])

    def _bound(self, n: int, fixed: dict[int, Any], names: list[str], constants: dict[str, Any]) -> Any:
        """The function of the remaining arguments alone, as source that can be compiled."""
        scope: dict[str, Any] = {"f": self.pyfunc}
        if hasattr(self.pyfunc, "__code__"):
            import numba

            scope["f"] = numba.njit(self.pyfunc)
        scope |= {f"c{i}": v for i, v in fixed.items()} | {f"k_{k}": v for k, v in constants.items()}
        given = [f"a{i}" for i in range(n) if i not in fixed] + [f"b_{k}" for k in names]
        call = [f"c{i}" if i in fixed else f"a{i}" for i in range(n)]
        call += [f"{k}=b_{k}" for k in names] + [f"{k}=k_{k}" for k in constants]
        exec(f"def bound({', '.join(given)}):\n    return f({', '.join(call)})\n", scope)
        return scope["bound"]
