"""Products of arrays: matrix products, inner and outer ones, and their relatives by NumPy's names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.define import array_function, as_array
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.elementwise import (
    Convertible,
    Scalar,
    join_families,
    leaf_family,
    raise_places,
)
from mirabelle.arraytypes.functions.contraction import contract, standing_alone, summed_product
from mirabelle.arraytypes.functions.outputs import pending
from mirabelle.arraytypes.library import matrix_product
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.arraytypes.wrappers import view_of
from mirabelle.dispatch import promotion, verbs
from mirabelle.dispatch.signatures import keyword_only
from mirabelle.dispatch.tree import Leaf, broadcast_shapes


@verbs.matmul.method
def _(x1: AbstractArray, x2: AbstractArray) -> Any:
    f1, f2 = leaf_family(type(x1)), leaf_family(type(x2))
    if f1 is not f2:
        if f1.joins(f2):
            x2, f2 = verbs.adapt(f1, x2), f1
        elif f2.joins(f1):
            x1, f1 = verbs.adapt(f2, x1), f2
        else:
            raise_places("matmul", (x1, x2))
    shape1, shape2 = x1.shape, x2.shape
    n1, n2 = len(shape1), len(shape2)
    if not n1 or not n2:
        raise ValueError("matmul takes arrays of at least one dimension; use * with a scalar.")
    if shape1[-1] != shape2[-2 if n2 > 1 else 0]:
        raise ValueError(
            f"matmul: shapes {shape1} and {shape2} do not fit: the last dimension of the first "
            f"({shape1[-1]}) must equal the last but one of the second. Transpose one with x.T."
        )
    for rule, other in ((getattr(x1, "_times", None), x2), (getattr(x2, "_rtimes", None), x1)):
        if rule is not None:  # a structured array, which may know a shorter way
            found = rule(other)
            if found is not NotImplemented:
                return found
    if x1.carries_derivatives or x2.carries_derivatives:  # parts of structured arrays hold dual numbers
        return verbs.matmul(*[x._stored() if hasattr(x, "_stored") else x for x in (x1, x2)])
    if (n1 == 1 and n2 < 3) or (n2 == 1 and n1 < 3):
        # A tree meets a vector: reading it once in one kernel is cheaper than storing it.
        if n2 == 1 and (pending(x1) or (n1 == 1 and pending(x2))):
            return summed_product(x1, x2, (n1 - 1,))
        if n1 == 1 and pending(x2):
            return summed_product(view_of(x1, (slice(None), None)), x2, (0,))
    return matrix_product(f1, x1, x2)


def _of_data(verb: Any) -> Any:
    """A product some of whose operands are NumPy's arrays, lists or numbers."""

    def product(x1: Any, x2: Any) -> Any:
        mine = next((x for x in (x1, x2) if isinstance(x, AbstractArray)), None)
        if (
            mine is not None
            and mine.place.rank >= 2
            and not all(isinstance(x, _NO_PLACE) for x in (x1, x2))
            and not leaf_family(type(mine)).joins(None)
        ):
            raise_places(verb.__name__, (x1, x2))
        x1, x2 = (x if isinstance(x, AbstractArray) else as_array(x, like=mine) for x in (x1, x2))
        return verb(x1, x2)

    return product


_NO_PLACE = AbstractArray | list | tuple | Scalar | Convertible
_DATA = np.ndarray | list | tuple | Scalar | Convertible
for _verb in (verbs.matmul, verbs.dot):
    for _signature in ((AbstractArray, _DATA), (_DATA, AbstractArray), (_DATA, _DATA)):
        _verb.method(_of_data(_verb), signature=_signature)


@verbs.dot.method
def _(x1: AbstractArray, x2: AbstractArray) -> Any:
    if not x1.ndim or not x2.ndim:
        return verbs.multiply(x1, x2)
    if x1.ndim == 1 and x2.ndim == 1:
        _check_lengths("dot", x1, -1, x2, -1)
        return summed_product(x1, x2, (0,))
    if x2.ndim <= 2:
        return verbs.matmul(x1, x2)
    return tensordot(x1, x2, axes=([-1], [-2]))


def _check_lengths(name: str, x1: Any, axis1: int, x2: Any, axis2: int) -> None:
    if x1.shape[axis1] != x2.shape[axis2]:
        raise ValueError(
            f"{name}: shapes {x1.shape} and {x2.shape} not aligned: {x1.shape[axis1]} (dim {axis1 % x1.ndim}) "
            f"!= {x2.shape[axis2]} (dim {axis2 % x2.ndim}). The dimensions summed over must be equally long."
        )


@array_function
def matrix_transpose(x: Any, /) -> Any:
    """The matrices of a stack transposed: a view.

    Parameters
    ----------
    x : array (..., m, n)
        A matrix, or a stack of them.

    Returns
    -------
    array
        Of shape (..., n, m) and the dtype of `x`. What is written to it is written to `x`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.matrix_transpose(mb.HostArray([[1, 2], [3, 4]])))
    [[1 3]
     [2 4]]
    """
    return x.mT


@array_function(arity=2)
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The inner products of the vectors along an axis, the first conjugated: one pass.

    Parameters
    ----------
    x1 : array
        The first vectors.
    x2 : array
        The second vectors.
    axis : int, default -1
        The axis along which they lie.

    Returns
    -------
    array
        Of the shape that both broadcast to, without `axis`; without axes, of two vectors. Of the dtype that
        both promote to.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.vecdot(mb.HostArray([[1.0, 2.0], [3.0, 4.0]]), mb.HostArray([1.0, 1.0])))
    [3. 7.]
    """
    x1, x2 = as_arrays(x1, x2)
    if not x1.ndim or not x2.ndim:
        raise ValueError("vecdot takes arrays of at least one dimension; multiply scalars with *.")
    (axis1,), (axis2,) = normal_axes(axis, x1.ndim), normal_axes(axis, x2.ndim)
    _check_lengths("vecdot", x1, axis1, x2, axis2)
    if x1.ndim == 1 and x2.ndim == 1:
        return verbs.dot(_conjugate(x1), x2)
    x1, x2 = _last(x1, axis1), _last(x2, axis2)
    shape = broadcast_shapes([x1.shape, x2.shape], "vecdot")
    return summed_product(_conjugate(x1), x2, (len(shape) - 1,))


def _last(x: Any, axis: int) -> Any:
    """`x` with an axis moved to the end."""
    if axis == x.ndim - 1:
        return x
    return verbs.permute_dims(x, (*(d for d in range(x.ndim) if d != axis), axis))


def _conjugate(x: Any) -> Any:
    return verbs.conj(x) if x.dtype.kind == "c" else x


@array_function(arity=2)
def inner(a: Any, b: Any, /) -> Any:
    """The sum of products over the last dimensions, for all pairs of the others.

    Parameters
    ----------
    a : array
        The first operand.
    b : array
        The second operand.

    Returns
    -------
    array
        Of the dimensions of `a` but the last, and then those of `b` but the last; of no dimensions for two
        vectors.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.inner(mb.HostArray([1, 2]), mb.HostArray([3, 4])))
    11
    """
    a, b = as_arrays(a, b)
    if not a.ndim or not b.ndim:
        return verbs.multiply(a, b)
    _check_lengths("inner", a, -1, b, -1)
    if a.ndim == 1 and b.ndim == 1:
        return verbs.dot(a, b)
    return tensordot(a, b, axes=([-1], [-1]))


@array_function(arity=2)
def vdot(a: Any, b: Any, /) -> Any:
    """The inner product of all elements, those of the first conjugated.

    Parameters
    ----------
    a : array
        The first operand, whose elements are conjugated.
    b : array
        The second operand.

    Returns
    -------
    array
        Of no dimensions, and of the dtype that both have together.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.vdot(mb.HostArray([1j, 2.0]), mb.HostArray([1j, 1.0])))
    (3+0j)
    """
    a, b = as_arrays(a, b)
    if a.shape != b.shape:
        if a.size != b.size:
            raise ValueError(f"vdot takes arrays of equally many elements; these have {a.size} and {b.size}.")
        a, b = verbs.reshape(a, (-1,)), verbs.reshape(b, (-1,))
    if a.ndim == 1:
        return verbs.dot(_conjugate(a), b)
    return summed_product(_conjugate(a), b, tuple(range(a.ndim)))


@array_function(arity=2)
def outer(a: Any, b: Any, /) -> Any:
    """The products of all elements of `a` with all of `b`: pending, and fused with what reads it.

    Parameters
    ----------
    a : array
        The vector along rows.
    b : array
        The vector along columns.

    Returns
    -------
    array
        A matrix with a row for each element of `a` and a column for each of `b`, of the dtype that both
        have together.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.outer(mb.HostArray([1, 2]), mb.HostArray([3, 4])))
    [[3 4]
     [6 8]]
    """
    a, b = as_arrays(a, b)
    a, b = (x if x.ndim == 1 else verbs.reshape(x, (-1,)) for x in (a, b))
    return verbs.multiply(a[:, None], b)


@keyword_only("axes")
@array_function(arity=2)
def tensordot(x1: Any, x2: Any, /, axes: Any = 2) -> Any:
    """The sum of products over some axes of each: the last and the first `axes`, or those two lists name.

    Parameters
    ----------
    x1 : array or number
        The first operand.
    x2 : array or number
        The second operand.
    axes : int or pair of sequences, default 2
        How many axes are summed over, or which of each.

    Returns
    -------
    array
        Of the axes of `x1` that are left, followed by those of `x2`; without axes if none are. Of the dtype
        that both promote to.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([[1, 2], [3, 4]])
    >>> print(mb.tensordot(x, x, axes=1), mb.tensordot(x, x, axes=([0, 1], [0, 1])))
    [[ 7 10]
     [15 22]] 30
    """
    x1, x2 = as_arrays(x1, x2)
    axes1, axes2 = _paired_axes(x1, x2, axes)
    labels1: list[Any] = [("first", i) for i in range(x1.ndim)]
    labels2: list[Any] = [("second", i) for i in range(x2.ndim)]
    out = [label for i, label in enumerate(labels1) if i not in axes1]
    out += [label for i, label in enumerate(labels2) if i not in axes2]
    for i, j in zip(axes1, axes2, strict=True):
        labels2[j] = labels1[i]
    return contract(x1, labels1, x2, labels2, out)


def _paired_axes(x1: Any, x2: Any, axes: Any) -> tuple[list[int], list[int]]:
    """The axes that are summed over, of each array, checked."""
    if isinstance(axes, (int, np.integer)):
        n = int(axes)
        if not 0 <= n <= min(x1.ndim, x2.ndim):
            raise ValueError(
                f"tensordot: axes={n} is not possible for arrays of {x1.ndim} and {x2.ndim} dimensions: it is "
                "how many of them are summed over."
            )
        first, second = list(range(x1.ndim - n, x1.ndim)), list(range(n))
    else:
        try:
            given = [[a] if isinstance(a, (int, np.integer)) else list(a) for a in axes]
            one, two = given
        except (TypeError, ValueError):
            raise TypeError(
                f"tensordot: axes is a number, or two lists of axes such as ([0, 1], [1, 0]); not {axes!r}."
            ) from None
        if len(one) != len(two):
            raise ValueError(
                f"tensordot: {len(one)} axes of the first are paired with {len(two)} of the second."
            )
        first = [normal_axes(a, x1.ndim)[0] for a in one]
        second = [normal_axes(a, x2.ndim)[0] for a in two]
        if len(set(first)) < len(first) or len(set(second)) < len(second):
            raise ValueError("tensordot: an axis is named twice.")
    for i, j in zip(first, second, strict=True):
        _check_lengths("tensordot", x1, i, x2, j)
    return first, second


@array_function(arity=2)
def kron(a: Any, b: Any, /) -> Any:
    """The Kronecker product: a copy of `b` for every element of `a`, times that element.

    Parameters
    ----------
    a : array
        The outer factor.
    b : array
        The inner factor.

    Returns
    -------
    array
        Of the dtype that both have together; each dimension is as long as the product of theirs. A
        `mb.Kronecker`, if both are matrices and one is structured.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.kron(mb.HostArray([1, 10]), mb.HostArray([1, 2, 3])))
    [ 1  2  3 10 20 30]
    """
    a, b = as_arrays(a, b)
    n = max(a.ndim, b.ndim)
    shape1, shape2 = (1,) * (n - a.ndim) + a.shape, (1,) * (n - b.ndim) + b.shape
    shape = tuple(p * q for p, q in zip(shape1, shape2, strict=True))
    pairs = tuple(size for pair in zip(shape1, shape2, strict=True) for size in pair)
    spread1, spread2 = view_of(a, (slice(None), None) * a.ndim), view_of(b, (None, slice(None)) * b.ndim)
    products = verbs.multiply(spread1, spread2)
    if products.carries_derivatives:
        return verbs.reshape(products, shape)
    made = new_array((a, b), pairs)
    if made.size:
        verbs.assign(made, products)
    return standing_alone(verbs.reshape(made, shape))


def as_arrays(*operands: Any) -> tuple[Any, ...]:
    """Numbers beside an array as arrays of no dimension."""
    like = next(x for x in operands if isinstance(x, AbstractArray))
    return tuple(as_array(x, like=like) for x in operands)


def new_array(operands: tuple[Any, ...], shape: tuple[int, ...], dtype: Any = None) -> Any:
    """An array of undefined contents where the operands are, of their common dtype unless given."""
    family = join_families("a product", operands)
    if dtype is None:
        dtype = promotion.result_type(*[x.dtype for x in operands])
    return wrap(family, Leaf(family._empty(shape, dtype)))


@array_function(arity=2)
def cross(a: Any, b: Any, /, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Any:
    """The cross products of vectors of three components, which lie along an axis.

    Parameters
    ----------
    a : array
        The first vectors.
    b : array
        The second vectors.
    axisa : int, default -1
        The axis of the components in `a`, in `b` and in the result.
    axisb : int, default -1
        The axis of the components in `a`, in `b` and in the result.
    axisc : int, default -1
        The axis of the components in `a`, in `b` and in the result.
    axis : int or None
        The axis of the components in all three.

    Returns
    -------
    array
        Of the shape of the vectors, stretched to one, with the three components along `axisc` (or `axis`);
        of the dtype that both have together.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.cross(mb.HostArray([1.0, 0.0, 0.0]), mb.HostArray([0.0, 1.0, 0.0])))
    [0. 0. 1.]
    """
    a, b = as_arrays(a, b)
    if axis is not None:
        axisa = axisb = axisc = axis
    if not a.ndim or not b.ndim:
        raise ValueError("cross takes arrays of at least one dimension.")
    a, b = _last(a, normal_axes(axisa, a.ndim)[0]), _last(b, normal_axes(axisb, b.ndim)[0])
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ValueError(
            f"cross takes vectors of three components, and these have {a.shape[-1]} and {b.shape[-1]}. Say "
            "along which axis they lie, axis=0 for instance, or append a zero to plane vectors."
        )
    shape = broadcast_shapes([a.shape, b.shape], "cross")
    where = normal_axes(axisc, len(shape))[0]
    first, second = ([view_of(x, (..., i)) for i in range(3)] for x in (a, b))
    components = [
        verbs.subtract(verbs.multiply(first[j], second[k]), verbs.multiply(first[k], second[j]))
        for j, k in ((1, 2), (2, 0), (0, 1))
    ]
    if components[0].carries_derivatives:
        from mirabelle.arraytypes.functions.manipulation import stack

        return stack(components, axis=where)
    made = new_array((a, b), (*shape[:-1][:where], 3, *shape[:-1][where:]))
    into = _last(made, where)
    for i, component in enumerate(components):
        # Each is one kernel that writes straight into the result.
        verbs.assign(view_of(into, (..., i)), component)
    return made


@array_function(arity=2)
def khatri_rao(a: Any, b: Any, /) -> Any:
    """The Kronecker products of the columns of two matrices, beside each other.

    Parameters
    ----------
    a : matrix
        The first matrix.
    b : matrix
        A matrix of as many columns.

    Returns
    -------
    array
        Of shape (m n, k), of matrices of shapes (m, k) and (n, k). Of the dtype that both promote to.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.linalg.khatri_rao(mb.HostArray([[1, 2], [3, 4]]), mb.HostArray([[5, 6]])))
    [[ 5 12]
     [15 24]]
    """
    a, b = as_arrays(a, b)
    if a.ndim < 2 or b.ndim < 2:
        raise ValueError("khatri_rao takes matrices; make columns of vectors with x[:, None].")
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"khatri_rao takes equally many columns; these have {a.shape[-1]} and {b.shape[-1]}.")
    a, b = view_of(a, (..., slice(None), None, slice(None))), view_of(b, (..., None, slice(None), slice(None)))
    pairs = broadcast_shapes([a.shape, b.shape], "khatri_rao")
    made = new_array((a, b), pairs)
    if made.size:
        verbs.assign(made, verbs.multiply(a, b))
    return standing_alone(verbs.reshape(made, (*pairs[:-3], math.prod(pairs[-3:-1]), pairs[-1])))
