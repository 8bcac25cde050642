"""Derivatives of functions of arrays, by dual numbers.

A function is called with dual numbers in place of its argument and computes its derivatives along with its
values. It is ordinary code: loops, branches, library calls, whatever array type it meets.

>>> import mirabelle as mb
>>> from mirabelle.arraytypes import autodiff
>>> print(autodiff.gradient(lambda x: mb.sum(x**3), mb.HostArray([1.0, 2.0])))
[ 3. 12.]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, TypeVarTuple, Unpack, cast, overload

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.annotations import ArrayLike
from mirabelle.arraytypes.duals.base import (
    NUMBERS,
    Dual,
    DualError,
    Seed,
    TooManyDirections,
    checked_float,
    holds_duals,
    partials_of,
    plain,
    shaped,
    snapshot,
    value_in,
    zeros_for,
)
from mirabelle.arraytypes.duals.tags import Tag, tag_of_call
from mirabelle.arraytypes.elementwise import cast_to
from mirabelle.arraytypes.functions.manipulation import concat, moveaxis
from mirabelle.arraytypes.parametric import generic_class
from mirabelle.dispatch import verbs
from mirabelle.dispatch.generic import generic
from mirabelle.dispatch.misuse import explained

# An array, or a tuple, list or dictionary of some, and what has its form.
X = TypeVar("X")
R = TypeVar("R")
Xs = TypeVarTuple("Xs")


@generic
def chunk_size(x: ArrayLike) -> int:  # type: ignore[empty-body]
    """How many partial derivatives `gradient`, `jacobian` and `hessian` compute at a time, at most.

    Parameters
    ----------
    x : array
        What is differentiated by.

    Returns
    -------
    int
        At least 1: `x.size`, unless a method says otherwise.

    Notes
    -----
    All of them by default, unless partials would take more memory than `chunk_bytes(x)`. Fewer need less
    memory, and more evaluations of the function. Override it for an array type:

    >>> import mirabelle as mb
    >>> def eight(x): return 8
    >>> with mb.override(mb.autodiff.chunk_size, (mb.HostArray,), eight):
    ...     mb.autodiff.chunk_size(mb.ones(100))
    8
    """


@chunk_size.method
def _(x: AbstractArray) -> int:
    return max(1, x.size)


@generic
def chunk_bytes(x: ArrayLike) -> int:  # type: ignore[empty-body]
    """How much memory the partials of one array may take before fewer are computed at a time.

    Parameters
    ----------
    x : array
        What is differentiated by.

    Returns
    -------
    int
        A number of bytes: 2**28 for every array, unless a method says otherwise.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.autodiff.chunk_bytes(mb.ones(3)) // 2**20
    256
    """


@chunk_bytes.method
def _(x: AbstractArray) -> int:
    return 1 << 28


def value(x: Any) -> Any:
    """`x` without its derivatives: a constant for whoever differentiates.

    Parameters
    ----------
    x : array or number
        Also tuples, lists and dictionaries of them.

    Returns
    -------
    array or number
        `x` itself where it has no derivatives; of a tuple, list or dictionary one of the values. What is no
        number or array stays as it is.

    Examples
    --------
    >>> import mirabelle as mb
    >>> f = lambda x: mb.sum(x * mb.autodiff.value(x))
    >>> print(mb.autodiff.gradient(f, mb.HostArray([1.0, 2.0])))
    [1. 2.]
    """
    return plain(x)


# What is differentiated by: one array, or a nest of them


class _Arguments:
    """The arrays in a nest of tuples, lists, dictionaries and structured arrays, as one row of elements."""

    def __init__(self, name: str, x: Any, flat: bool = False) -> None:
        self.name = name
        self.leaves: list[Any] = []
        self.shape = self._noted(x, flat)
        if not self.leaves:
            raise TypeError(
                f"mb.autodiff.{name}(f, x) takes an array, or a nest of arrays; x is a {type(x).__name__}."
            )
        for leaf in self.leaves:
            checked_float(leaf)
            if leaf.dtype.kind == "c":
                raise TypeError(
                    f"mb.autodiff.{name}(f, x) takes real arrays, and x is {leaf.dtype.name}. Differentiate "
                    "by the real and the imaginary part: `lambda re, im: f(re + 1j * im)`."
                )
        self.total = sum(leaf.size for leaf in self.leaves)

    def _noted(self, x: Any, flat: bool) -> Any:
        if isinstance(x, (tuple, list)):
            return type(x), [self._noted(item, flat) for item in x]
        if isinstance(x, dict):
            return x, [self._noted(item, flat) for item in x.values()]
        if hasattr(x, "_stored") and hasattr(x, "_parts") and x.parts and not flat:
            pairs = zip(x.parts, _varying(x), strict=True)
            return x, [self._noted(p, flat) if varies else (_same, p) for p, varies in pairs]
        if isinstance(x, (np.ndarray, *NUMBERS)):
            if isinstance(x, np.ndarray) or flat:
                raise TypeError(
                    f"mb.autodiff.{self.name}(f, x) takes mirabelle's arrays, not a NumPy "
                    f"{type(x).__name__}. Make it one: `mb.HostArray(x)`."
                )
            raise TypeError(
                f"mb.autodiff.{self.name}(f, x) takes an array, `mb.HostArray([1.0, 2.0])`; of a function of "
                "one number it is mb.autodiff.derivative(f, x)."
            )
        if not isinstance(x, AbstractArray):
            cure = "the function comes first" if callable(x) else "`mb.HostArray(x)`"
            raise TypeError(
                f"mb.autodiff.{self.name}(f, x) takes an array as x, not a {type(x).__name__}: {cure}."
            )
        self.leaves.append(x)
        return None

    def filled(self, leaves: list[Any]) -> Any:
        """The nest with other arrays in it."""
        return self._filled(self.shape, iter(leaves))

    def _filled(self, shape: Any, leaves: Any) -> Any:
        if shape is None:
            return next(leaves)
        kind, parts = shape
        if kind is _same:
            return parts
        made = [self._filled(p, leaves) for p in parts]
        if isinstance(kind, dict):
            return dict(zip(kind, made, strict=True))
        if isinstance(kind, type):
            return kind(*made) if hasattr(kind, "_fields") else kind(made)
        return kind._with_parts(tuple(made))

    def seeded(self, tag: Tag, start: int, n: int) -> Any:
        """The arguments as dual numbers with unit directions for elements start to start + n."""
        duals, first = [], 0
        for leaf in self.leaves:
            low, high = max(start, first), min(start + n, first + leaf.size)
            value = snapshot(leaf)
            if low < high:
                seed = Seed(n, leaf.shape, low - first, high - low, low - start)
                duals.append(Dual._of(value, ((None, seed),), n, tag))
            else:
                duals.append(value)
            first += leaf.size
        return self.filled(duals)

    def along_all(
        self, f: Callable[[Any], Any], chunk: int | None, read: Callable[[Any, Tag, int], Any]
    ) -> list[Any]:
        """What `read` finds in the results of f, for each chunk of directions."""
        budget = None
        if chunk is None:
            limits = [int(chunk_size(leaf)) for leaf in self.leaves]
            unlimited = all(limit >= leaf.size for limit, leaf in zip(limits, self.leaves, strict=True))
            chunk = max(1, self.total) if unlimited else min(limits)
            budget = min(chunk_bytes(leaf) for leaf in self.leaves)
        if chunk < 1:
            raise ValueError(f"chunk must be 1 or more, not {chunk}.")
        while True:
            found = []
            try:
                for start in range(0, self.total, chunk):
                    n = min(chunk, self.total - start)
                    with tag_of_call(f"mb.autodiff.{self.name}") as tag:
                        tag.budget = budget
                        result = f(self.seeded(tag, start, n))
                        found.append(read(result, tag, n))
                return found
            except TooManyDirections as e:
                if e.tag is not tag:
                    raise
                chunk = e.directions

    def divided(self, rows: list[Any], put: Callable[[Any, Any], Any]) -> Any:
        """Rows for all directions, as the nest of what belongs to each array."""
        whole = rows[0] if len(rows) == 1 else concat(rows)
        made, first = [], 0
        for leaf in self.leaves:
            part = whole if len(self.leaves) == 1 else whole[first : first + leaf.size]
            made.append(snapshot(put(part, leaf)))
            first += leaf.size
        return self.filled(made)


def _row(y: Any, tag: Tag, n: int, like: Any, name: str) -> Any:
    """The partials of a result: an array (n, *shape)."""
    if hasattr(y, "_stored") and holds_duals(type(y)):
        y = y._dense()
    if isinstance(y, Dual):
        if y._tag is tag:
            return cast_to(partials_of(y), y.dtype)
        if y._tag.order > tag.order or not y._tag.open:
            raise DualError(
                f"The function that mb.autodiff.{name} differentiates returned a dual number of {y._tag}, "
                "which has finished: it was kept in a variable outside. Keep its value: "
                "`mb.autodiff.value(x)`."
            )
    elif not isinstance(y, (AbstractArray, *NUMBERS)):
        raise TypeError(
            f"The function that mb.autodiff.{name} differentiates returned a {type(y).__name__}, and "
            "derivatives are known of mirabelle's arrays and of numbers. Return what mirabelle's functions "
            "gave, without converting it."
        )
    shape = y.shape if isinstance(y, AbstractArray) else ()
    dtype = y.dtype if isinstance(y, AbstractArray) and y.dtype.kind in "fc" else like.dtype
    return verbs.astype(zeros_for(like, (n, *shape)), dtype, copy=False)


def _same() -> None:
    """What stands in a nest for what is not differentiated by."""


def _varying(x: Any) -> list[bool]:
    """Which parts of a structured array are numbers that vary: not where entries stand, nor an Identity."""

    def varies(p: Any) -> bool:
        return any(map(varies, p.parts)) if hasattr(p, "_stored") else p.dtype.kind in "fc"

    found = [varies(p) for p in x.parts]
    return found if any(found) else [True] * len(found)


def _each(result: Any, f: Callable[[Any], Any]) -> Any:
    """A function of each array in a nest of results."""
    if isinstance(result, (tuple, list)):
        made = [_each(r, f) for r in result]
        return type(result)(*made) if hasattr(result, "_fields") else type(result)(made)
    if isinstance(result, dict):
        return {key: _each(r, f) for key, r in result.items()}
    return f(result)


# Derivatives


@overload
def derivative(f: Callable[[float], R], x: float) -> R: ...
@overload
def derivative(f: Callable[[AbstractArray], R], x: AbstractArray) -> R: ...
@overload
def derivative(f: Callable[[Any], R], x: Any) -> R: ...
@explained
def derivative(f: Callable[[Any], R], x: ArrayLike) -> R:
    """The derivative of a function of one number, which may return arrays, also several.

    Parameters
    ----------
    f : callable
        A function of one number.
    x : number
        Where.

    Returns
    -------
    number or array
        As `f` returns: a number, an array of the shape and dtype of its result, or a tuple, list or
        dictionary of them. Zeros where it does not depend on the number.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.autodiff.derivative(lambda t: t**3, 2.0)
    12.0
    >>> print(mb.autodiff.derivative(lambda t: mb.HostArray([1.0, 2.0]) * mb.sin(t), 0.0))
    [1. 2.]
    """
    if isinstance(x, AbstractArray) and x.ndim:
        raise ValueError(
            f"derivative(f, x) is of a function of one number, and x has shape {x.shape}. Of an array: "
            "mb.autodiff.gradient(f, x) or jacobian(f, x); element by element: mb.autodiff.jvp(f, (x,), "
            "(mb.ones_like(x),))."
        )
    if not isinstance(x, (AbstractArray, *NUMBERS)):
        raise TypeError(f"derivative(f, x) is by a number x, not by a {type(x).__name__}.")
    checked_float(x)
    with tag_of_call("mb.autodiff.derivative") as tag:
        result = f(Dual._of(snapshot(x), ((None, Seed(1, (), 0, 1, 0)),), 1, tag))
        return _each(result, lambda y: _slope(y, tag, x))  # type: ignore[no-any-return]


def _slope(y: Any, tag: Tag, x: Any) -> Any:
    """How a result changes along the only direction."""
    if isinstance(y, NUMBERS):
        return 0.0
    if isinstance(y, Dual) and y._tag is not tag and isinstance(plain(y), NUMBERS):
        _row(y, tag, 1, 0.0, "derivative")  # or an error, if it is of a differentiation that has finished
        return 0.0
    terms = y._now() if isinstance(y, Dual) and y._tag is tag else ()
    if terms and all(isinstance(base, Seed) for _, base in terms):
        slope = sum(1.0 if c is None else c for c, _ in terms)
        if isinstance(plain(y), NUMBERS):
            return slope
        if isinstance(slope, AbstractArray) and slope.shape == y.shape:
            return cast_to(snapshot(slope), y.dtype)
    if getattr(y, "entrywise", False) and y.carries_derivatives and not getattr(y, "unit", False):
        # Where each entry is one of a part, the derivative has the structure of the array.
        return y._with_parts(tuple(_slope(p, tag, x) if p.dtype.kind in "fc" else p for p in y.parts))
    row = _row(y, tag, 1, y, "derivative")
    return snapshot(shaped(row, row.shape[1:]))


@explained
def gradient(f: Callable[[X], Any], x: X, *, chunk: int | None = None) -> X:
    """The gradient of a function that returns one number: an array like `x`.

    A tuple, list or dictionary of arrays has one of gradients. A structured array has one of the same type,
    whose `parts` are the gradients by its parts. (Of a Kronecker product, say, that is not the gradient by
    its entries.) NumPy's array has a gradient of NumPy's, as optimisers of SciPy want it. `chunk` partials are
    computed at a time; see `chunk_size`.

    Parameters
    ----------
    f : callable
        A function of one array.
    x : array
        Where.
    chunk : int or None
        How many directions are carried at a time; None asks `chunk_size`.

    Returns
    -------
    array
        Of the shape, dtype and place of `x`; zeros where `f` does not depend on it.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.autodiff.gradient(lambda x: mb.sum(x * x) / 2, mb.HostArray([1.0, 2.0, 3.0])))
    [1. 2. 3.]
    """
    return _value_and_gradient(f, x, chunk, "gradient")[1]


def _of_numpys(x: Any) -> bool:
    """Whether x is a NumPy array of numbers, whose derivatives are NumPy's too."""
    return isinstance(x, np.ndarray) and x.dtype.kind in "biuf"


def _copied(x: np.ndarray) -> Any:
    """NumPy's array as one of ours (optimisers write to theirs afterwards)."""
    from mirabelle.arraytypes.host import HostArray

    return HostArray(x)


@explained
def value_and_gradient(f: Callable[[X], R], x: X, *, chunk: int | None = None) -> tuple[R, X]:
    """The value of a function, and its gradient, for the price of the gradient.

    Parameters
    ----------
    f : callable
        A function of one array.
    x : array
        Where.
    chunk : int or None
        How many directions are carried at a time; None asks `chunk_size`.

    Returns
    -------
    tuple
        `(value, gradient)`: what `f` returned, without derivatives (a float where `x` is NumPy's), and what
        `mb.autodiff.gradient` gives.

    Examples
    --------
    >>> import mirabelle as mb
    >>> value, slope = mb.autodiff.value_and_gradient(lambda x: mb.sum(x * x), mb.HostArray([1.0, 2.0]))
    >>> print(value, slope)
    5.0 [2. 4.]
    """
    return _value_and_gradient(f, x, chunk, "value_and_gradient")


def _value_and_gradient(f: Callable[[Any], Any], x: Any, chunk: int | None, name: str) -> tuple[Any, Any]:
    if _of_numpys(x):
        value, slope = _value_and_gradient(f, _copied(x), chunk, name)
        return (float(value) if np.ndim(value) == 0 else value), verbs.to_numpy(slope)
    arguments = _Arguments(name, x)
    values: list[Any] = []
    like = arguments.leaves[0]

    def read(result: Any, tag: Tag, n: int) -> Any:
        shape = getattr(result, "shape", None)
        if isinstance(result, (tuple, list, dict)) or shape:
            what = f"an array of shape {shape}" if shape else f"a {type(result).__name__}"
            raise ValueError(
                f"mb.autodiff.{name}(f, x) is of a function that returns one number, and f returned {what}. "
                "Reduce it, `mb.sum(...)`, or ask for all derivatives: mb.autodiff.jacobian(f, x)."
            )
        values.append(value_in(result, tag))
        return _row(result, tag, n, like, name)

    rows = arguments.along_all(f, chunk, read)
    if not rows:  # x has no elements
        return f(x), x
    slope = arguments.divided(rows, lambda row, leaf: cast_to(shaped(row, leaf.shape), leaf.dtype))
    return values[0], slope


@overload
def jacobian(
    f: Callable[[AbstractArray], AbstractArray], x: AbstractArray, *, chunk: int | None = None
) -> AbstractArray: ...
@overload
def jacobian(f: Callable[[Any], Any], x: Any, *, chunk: int | None = None) -> Any: ...
@explained
def jacobian(f: Callable[[Any], Any], x: ArrayLike, *, chunk: int | None = None) -> Any:
    """All derivatives of a function from arrays to arrays: of shape `f(x).shape + x.shape`.

    Parameters
    ----------
    f : callable
        A function of one array.
    x : array
        Where.
    chunk : int or None
        How many directions are carried at a time; None asks `chunk_size`.

    Returns
    -------
    array
        Of the dtype of `f(x)`. Where `f` returns a tuple, list or dictionary, one of them; where `x` is
        one, each is as `x`. NumPy's where `x` is NumPy's.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.autodiff.jacobian(lambda x: x * x, mb.HostArray([1.0, 2.0])))
    [[2. 0.]
     [0. 4.]]
    """
    if _of_numpys(x):
        return _each(jacobian(f, _copied(cast(Any, x)), chunk=chunk), verbs.to_numpy)
    arguments = _Arguments("jacobian", x, flat=True)
    like = arguments.leaves[0]
    kinds: list[Any] = []

    def read(result: Any, tag: Tag, n: int) -> Any:
        found: list[Any] = []
        kinds.append(_each(result, lambda y: found.append(_row(y, tag, n, like, "jacobian"))))
        return found

    chunks = arguments.along_all(f, chunk, read)
    if not chunks:  # x has no elements
        return _each(f(x), lambda y: zeros_for(like, (*getattr(y, "shape", ()), *like.shape)))

    def put(row: Any, leaf: Any) -> Any:
        return verbs.reshape(moveaxis(row, 0, -1), (*row.shape[1:], *leaf.shape))

    made = iter([arguments.divided([c[i] for c in chunks], put) for i in range(len(chunks[0]))])
    return _each(kinds[0], lambda _: next(made))


@overload
def hessian(
    f: Callable[[AbstractArray], Any], x: AbstractArray, *, chunk: int | None = None
) -> AbstractArray: ...
@overload
def hessian(f: Callable[[Any], Any], x: Any, *, chunk: int | None = None) -> Any: ...
@explained
def hessian(f: Callable[[Any], Any], x: ArrayLike, *, chunk: int | None = None) -> Any:
    """The second derivatives of a function that returns one number: of shape `x.shape + x.shape`.

    Parameters
    ----------
    f : callable
        A function of one array.
    x : array
        Where.
    chunk : int or None
        How many directions are carried at a time; None asks `chunk_size`.

    Returns
    -------
    array
        Of the dtype and place of `x`; NumPy's where `x` is NumPy's.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.autodiff.hessian(lambda x: x[0] ** 2 * x[1], mb.HostArray([1.0, 3.0])))
    [[6. 2.]
     [2. 0.]]
    """
    if _of_numpys(x):
        return verbs.to_numpy(hessian(f, _copied(cast(Any, x)), chunk=chunk))
    if not isinstance(x, AbstractArray):
        _Arguments("hessian", x, flat=True)
        raise TypeError("mb.autodiff.hessian(f, x) takes one array. Of several, join them: mb.concat([x, y]).")
    return jacobian(lambda y: gradient(f, y, chunk=chunk), x, chunk=chunk)


@overload
def jvp(f: Callable[[Unpack[Xs]], R], primals: tuple[*Xs], tangents: Sequence[Any]) -> tuple[R, R]: ...
@overload
def jvp(f: Callable[..., R], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[R, R]: ...
@explained
def jvp(f: Callable[..., R], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[R, R]:
    """The value of f(*primals), and its derivative along the direction `tangents`, in one evaluation.

    Parameters
    ----------
    f : callable
        A function of arrays.
    primals : tuple of arrays
        Where.
    tangents : tuple of arrays
        The direction.

    Returns
    -------
    tuple
        `(value, derivative)`, each as `f` returns: a number, an array of the same shape and dtype, or a
        tuple, list or dictionary of them.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x, dx = mb.HostArray([1.0, 2.0]), mb.HostArray([1.0, 0.0])
    >>> y, dy = mb.autodiff.jvp(lambda x: x * x, (x,), (dx,))
    >>> print(y, dy)
    [1. 4.] [2. 0.]
    """
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError("mb.autodiff.jvp(f, primals, tangents) takes tuples: `jvp(f, (x,), (dx,))`.")
    if len(primals) != len(tangents):
        raise ValueError(f"jvp: {len(primals)} primals came with {len(tangents)} tangents.")
    with tag_of_call("mb.autodiff.jvp") as tag:
        result = f(*[_directed(x, dx, tag) for x, dx in zip(primals, tangents, strict=True)])
        like = next((x for x in primals if isinstance(x, AbstractArray)), None)
        values = _each(result, lambda y: value_in(y, tag))
        return values, _each(result, lambda y: _tangent(y, tag, like))


def _directed(x: Any, dx: Any, tag: Tag) -> Any:
    if dx is None:
        return x
    checked_float(x)
    same = hasattr(x, "_stored") and generic_class(type(x)) is generic_class(type(dx))
    if same and x.parts and x.layout == dx.layout:
        triples = zip(x.parts, dx.parts, _varying(x), strict=True)
        return x._with_parts(tuple(_directed(p, d, tag) if varies else p for p, d, varies in triples))
    shape = x.shape if isinstance(x, AbstractArray) else ()
    given = dx.shape if isinstance(dx, AbstractArray) else ()
    if shape != given:
        raise ValueError(f"jvp: a tangent has the shape of its primal; {given} came with {shape}.")
    if not isinstance(x, AbstractArray):
        return Dual._of(x, ((dx, Seed(1, (), 0, 1, 0)),), 1, tag)
    along = dx if isinstance(dx, AbstractArray) else verbs.add(verbs.multiply(x, 0.0), dx)
    return Dual._of(snapshot(x), ((None, verbs.reshape(snapshot(along), (1, *shape))),), 1, tag)


def _tangent(y: Any, tag: Tag, like: Any) -> Any:
    return _slope(y, tag, like)
