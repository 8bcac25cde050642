"""Fourier transforms: the array API standard's `fft`, and NumPy's two-dimensional ones.

Transforms are routines of the array's place, and barriers. Single precision stays single.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from mirabelle.arraytypes import library
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import asarray
from mirabelle.arraytypes.define import array_function
from mirabelle.arraytypes.makers import creates
from mirabelle.arraytypes.parametric import checked_dtype
from mirabelle.arraytypes.reductions import normal_axes
from mirabelle.dispatch import verbs
from mirabelle.dispatch.misuse import explained
from mirabelle.dispatch.signatures import keyword_only

_NORMS = (None, "backward", "ortho", "forward")


def _along(name: str, x: Any, n: Any, axis: Any, norm: Any) -> Any:
    """A transform along one axis."""
    check_norm(name, x, norm)
    (axis,) = normal_axes(axis, x.ndim)
    if n is not None:
        n = checked_length(name, n)
        x = _with_points(x, [axis])
    else:
        check_length(name, x, axis)
    return library.call(f"fft.{name}", x, n=n, axis=axis, norm=norm)


def _with_points(x: Any, axes: list[int]) -> Any:
    """`x`, with a zero where there is no point along an axis: libraries read memory that nobody wrote there."""
    if all(x.shape[a] for a in axes):
        return x
    shape = tuple(max(n, 1) if a in axes else n for a, n in enumerate(x.shape))
    return verbs.assign(verbs.similar(x, shape=shape), 0)


def _over(name: str, x: Any, s: Any, axes: Any, norm: Any) -> Any:
    """A transform over several axes: all, unless `axes` or the lengths `s` say which."""
    check_norm(name, x, norm)
    if s is not None:
        s = [operator.index(n) for n in s]
        if axes is None:
            axes = range(-len(s), 0)
    given = range(x.ndim) if axes is None else axes
    found = [normal_axes(a, x.ndim)[0] for a in given]
    if s is not None:
        if len(s) != len(found):
            raise ValueError(f"{name}: {len(s)} lengths in s for {len(found)} axes; they must be equally many.")
        s = tuple(checked_length(name, x.shape[a] if n == -1 else n) for n, a in zip(s, found, strict=True))
        x = _with_points(x, found)
    else:
        for a in found:
            check_length(name if a == found[-1] else "fftn", x, a, name)
    return library.call(f"fft.{name}", x, s=s, axes=tuple(found), norm=norm)


def check_norm(name: str, x: Any, norm: Any) -> None:
    if not x.ndim:
        raise ValueError(f"{name} takes arrays of at least one dimension: mb.reshape(x, (1,)).")
    if norm not in _NORMS:
        raise ValueError(f'{name}: norm is "backward", "ortho" or "forward"; not {norm!r}.')
    if x.dtype.kind == "c" and name in ("rfft", "rfftn", "ihfft"):
        raise TypeError(
            f"{name} takes real arrays, and this one is {x.dtype.name}. Transform it with "
            f"mb.fft.{'fftn' if name == 'rfftn' else 'fft'}, or take mb.real(x) first."
        )


def check_length(name: str, x: Any, axis: int, said: str = "") -> None:
    """Is there something to transform along an axis?"""
    n = x.shape[axis]
    halved = name in ("irfft", "irfftn", "hfft")  # (half of the points and one more are given)
    if n > halved:
        return
    points = "no point" if not halved else f"{n} point(s) for a result of {2 * max(n - 1, 0)}"
    length = "s=(...)" if name.endswith("n") or said else "n=1"
    raise ValueError(
        f"{said or name}: a transform has at least one point, and this array of shape {x.shape} has {points} "
        f"along axis {axis}. Leave out arrays without elements (`if x.size:`), or give the length: `{length}`."
    )


def checked_length(name: str, n: Any) -> int:
    n = operator.index(n)
    if n < 1:
        raise ValueError(f"{name}: a transform has at least one point, and {n} were asked for.")
    return n


@keyword_only("n", "axis", "norm")
@array_function
def fft(x: Any, /, n: Any = None, axis: int = -1, norm: Any = "backward") -> Any:
    """The discrete Fourier transform along an axis, cut or filled with zeros to length `n`.

    `norm` says what is divided by the length: "backward" the inverse, "forward" this one, "ortho"
    both, by its root.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    n : int or None
        The length: a longer axis is cut, a shorter one filled with zeros; None keeps it.
    axis : int, default -1
        Along which axis; negative ones count from the last.
    norm : str, default 'backward'
        What is divided by the length: "backward" the inverse, "forward" the transform, "ortho" both by
        its root.

    Returns
    -------
    array
        Complex: complex64 of half and single precision, complex128 of double and of integers. Of the shape
        of `x`, with length `n` along `axis`, in new memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.fft.fft(mb.HostArray([1.0, 0.0, 0.0, 0.0])))
    [1.+0.j 1.+0.j 1.+0.j 1.+0.j]
    """
    return _along("fft", x, n, axis, norm)


@keyword_only("n", "axis", "norm")
@array_function
def ifft(x: Any, /, n: Any = None, axis: int = -1, norm: Any = "backward") -> Any:
    """The inverse of `fft`.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    n : int or None
        The length: a longer axis is cut, a shorter one filled with zeros; None keeps it.
    axis : int, default -1
        Along which axis; negative ones count from the last.
    norm : str, default 'backward'
        What is divided by the length: "backward" the inverse, "forward" the transform, "ortho" both by
        its root.

    Returns
    -------
    array
        Complex: complex64 of half and single precision, complex128 of double and of integers. Of the shape
        of `x`, with length `n` along `axis`, in new memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.fft.ifft(mb.HostArray([4.0, 0.0, 0.0, 0.0])))
    [1.+0.j 1.+0.j 1.+0.j 1.+0.j]
    """
    return _along("ifft", x, n, axis, norm)


@keyword_only("n", "axis", "norm")
@array_function
def rfft(x: Any, /, n: Any = None, axis: int = -1, norm: Any = "backward") -> Any:
    """The transform of a real array: the half of it that says everything.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    n : int or None
        The length: a longer axis is cut, a shorter one filled with zeros; None keeps it.
    axis : int, default -1
        Along which axis; negative ones count from the last.
    norm : str, default 'backward'
        What is divided by the length: "backward" the inverse, "forward" the transform, "ortho" both by
        its root.

    Returns
    -------
    array
        Complex: complex64 of half and single precision, complex128 of double and of integers. Of the shape
        of `x`, with `n // 2 + 1` elements along `axis`, in new memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.fft.rfft(mb.HostArray([1.0, 0.0, 0.0, 0.0])))
    [1.+0.j 1.+0.j 1.+0.j]
    """
    return _along("rfft", x, n, axis, norm)


@keyword_only("n", "axis", "norm")
@array_function
def irfft(x: Any, /, n: Any = None, axis: int = -1, norm: Any = "backward") -> Any:
    """The inverse of `rfft`: a real array of length `n` (an even one unless given).

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    n : int or None
        The length of the result; None is the even one.
    axis : int, default -1
        Along which axis; negative ones count from the last.
    norm : str, default 'backward'
        What is divided by the length: "backward" the inverse, "forward" the transform, "ortho" both by
        its root.

    Returns
    -------
    array
        Real: float32 of single precision, float64 of double and of integers. Of the shape of `x`, with
        length `n` along `axis`: `2 * (m - 1)` of m given, if None.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.fft.irfft(mb.HostArray([4.0, 0.0, 0.0])))
    [1. 1. 1. 1.]
    """
    return _along("irfft", x, n, axis, norm)


@keyword_only("n", "axis", "norm")
@array_function
def hfft(x: Any, /, n: Any = None, axis: int = -1, norm: Any = "backward") -> Any:
    """The transform of a signal that is Hermitian, of which half is given: a real array.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    n : int or None
        The length of the result; None is the even one.
    axis : int, default -1
        Along which axis; negative ones count from the last.
    norm : str, default 'backward'
        What is divided by the length: "backward" the inverse, "forward" the transform, "ortho" both by
        its root.

    Returns
    -------
    array
        Real: float32 of single precision, float64 of double and of integers. Of the shape of `x`, with
        length `n` along `axis`: `2 * (m - 1)` of m given, if None.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.fft.hfft(mb.HostArray([1.0, 0.0, 0.0])))
    [1. 1. 1. 1.]
    """
    return _along("hfft", x, n, axis, norm)


@keyword_only("n", "axis", "norm")
@array_function
def ihfft(x: Any, /, n: Any = None, axis: int = -1, norm: Any = "backward") -> Any:
    """The inverse of `hfft`.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    n : int or None
        The length: a longer axis is cut, a shorter one filled with zeros; None keeps it.
    axis : int, default -1
        Along which axis; negative ones count from the last.
    norm : str, default 'backward'
        What is divided by the length: "backward" the inverse, "forward" the transform, "ortho" both by
        its root.

    Returns
    -------
    array
        Complex: complex64 of half and single precision, complex128 of double and of integers. Of the shape
        of `x`, with `n // 2 + 1` elements along `axis`, in new memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.fft.ihfft(mb.HostArray([1.0, 1.0, 1.0, 1.0])).shape
    (3,)
    """
    return _along("ihfft", x, n, axis, norm)


@keyword_only("s", "axes", "norm")
@array_function
def fftn(x: Any, /, s: Any = None, axes: Any = None, norm: Any = "backward") -> Any:
    """The transform over several axes, of lengths `s`.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    s : sequence of int or None
        The lengths of the axes in the transform: what is shorter is filled with zeros, what is longer cut;
        None keeps them.
    axes : sequence of int or None
        Which axes; None is all of them.
    norm : str, default 'backward'
        What is divided by the length: "backward" the inverse, "forward" the transform, "ortho" both by
        its root.

    Returns
    -------
    array
        Complex: complex64 of half and single precision, complex128 of double and of integers. Of the shape
        of `x`, with the lengths `s` along `axes`, in new memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.fft.fftn(mb.HostArray([[1.0, 0.0], [0.0, 0.0]])))
    [[1.+0.j 1.+0.j]
     [1.+0.j 1.+0.j]]
    """
    return _over("fftn", x, s, axes, norm)


@keyword_only("s", "axes", "norm")
@array_function
def ifftn(x: Any, /, s: Any = None, axes: Any = None, norm: Any = "backward") -> Any:
    """The inverse of `fftn`.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    s : sequence of int or None
        The lengths of the axes in the transform: what is shorter is filled with zeros, what is longer cut;
        None keeps them.
    axes : sequence of int or None
        Which axes; None is all of them.
    norm : str, default 'backward'
        What is divided by the length: "backward" the inverse, "forward" the transform, "ortho" both by
        its root.

    Returns
    -------
    array
        Complex: complex64 of half and single precision, complex128 of double and of integers. Of the shape
        of `x`, with the lengths `s` along `axes`, in new memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([[1.0, 2.0], [3.0, 4.0]])
    >>> print(mb.real(mb.fft.ifftn(mb.fft.fftn(x))))
    [[1. 2.]
     [3. 4.]]
    """
    return _over("ifftn", x, s, axes, norm)


@keyword_only("s", "axes", "norm")
@array_function
def rfftn(x: Any, /, s: Any = None, axes: Any = None, norm: Any = "backward") -> Any:
    """The transform of a real array over several axes: the half (of the last) that says everything.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    s : sequence of int or None
        The lengths of the axes in the transform: what is shorter is filled with zeros, what is longer cut;
        None keeps them.
    axes : sequence of int or None
        Which axes; None is all of them.
    norm : str, default 'backward'
        What is divided by the length: "backward" the inverse, "forward" the transform, "ortho" both by
        its root.

    Returns
    -------
    array
        Complex: complex64 of half and single precision, complex128 of double and of integers. Of the
        lengths `s` along `axes`, in the last of them `s[-1] // 2 + 1`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.fft.rfftn(mb.ones((4, 6))).shape
    (4, 4)
    """
    return _over("rfftn", x, s, axes, norm)


@keyword_only("s", "axes", "norm")
@array_function
def irfftn(x: Any, /, s: Any = None, axes: Any = None, norm: Any = "backward") -> Any:
    """The inverse of `rfftn`: a real array (of even length along the last axis unless `s` says otherwise).

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    s : sequence of int or None
        The lengths of the axes in the transform: what is shorter is filled with zeros, what is longer cut;
        None keeps them.
    axes : sequence of int or None
        Which axes; None is all of them.
    norm : str, default 'backward'
        What is divided by the length: "backward" the inverse, "forward" the transform, "ortho" both by
        its root.

    Returns
    -------
    array
        Real: float32 of single precision, float64 of double and of integers. Of the lengths `s` along
        `axes`: in the last of them `2 * (m - 1)` of m given, if None.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([[1.0, 2.0], [3.0, 4.0]])
    >>> print(mb.fft.irfftn(mb.fft.rfftn(x)))
    [[1. 2.]
     [3. 4.]]
    """
    return _over("irfftn", x, s, axes, norm)


@keyword_only("s", "axes", "norm")
@array_function
def fft2(x: Any, /, s: Any = None, axes: Any = (-2, -1), norm: Any = "backward") -> Any:
    """The transform over the last two axes.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    s : sequence of int or None
        The lengths of the axes in the transform: what is shorter is filled with zeros, what is longer cut;
        None keeps them.
    axes : pair of int
        Which axes.
    norm : str, default 'backward'
        What is divided by the length: "backward" the inverse, "forward" the transform, "ortho" both by
        its root.

    Returns
    -------
    array
        Complex: complex64 of half and single precision, complex128 of double and of integers. Of the shape
        of `x`, with the lengths `s` along `axes`, in new memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.fft.fft2(mb.ones((3, 4, 6))).shape
    (3, 4, 6)
    """
    return _over("fftn", x, s, axes, norm)


@keyword_only("s", "axes", "norm")
@array_function
def ifft2(x: Any, /, s: Any = None, axes: Any = (-2, -1), norm: Any = "backward") -> Any:
    """The inverse of `fft2`.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    s : sequence of int or None
        The lengths of the axes in the transform: what is shorter is filled with zeros, what is longer cut;
        None keeps them.
    axes : pair of int
        Which axes.
    norm : str, default 'backward'
        What is divided by the length: "backward" the inverse, "forward" the transform, "ortho" both by
        its root.

    Returns
    -------
    array
        Complex: complex64 of half and single precision, complex128 of double and of integers. Of the shape
        of `x`, with the lengths `s` along `axes`, in new memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([[1.0, 2.0], [3.0, 4.0]])
    >>> print(mb.real(mb.fft.ifft2(mb.fft.fft2(x))))
    [[1. 2.]
     [3. 4.]]
    """
    return _over("ifftn", x, s, axes, norm)


@keyword_only("s", "axes", "norm")
@array_function
def rfft2(x: Any, /, s: Any = None, axes: Any = (-2, -1), norm: Any = "backward") -> Any:
    """The transform of a real array over the last two axes.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    s : sequence of int or None
        The lengths of the axes in the transform: what is shorter is filled with zeros, what is longer cut;
        None keeps them.
    axes : pair of int
        Which axes.
    norm : str, default 'backward'
        What is divided by the length: "backward" the inverse, "forward" the transform, "ortho" both by
        its root.

    Returns
    -------
    array
        Complex: complex64 of half and single precision, complex128 of double and of integers. Of the
        lengths `s` along `axes`, in the last of them `s[-1] // 2 + 1`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.fft.rfft2(mb.zeros((4, 6))).shape
    (4, 4)
    """
    return _over("rfftn", x, s, axes, norm)


@keyword_only("s", "axes", "norm")
@array_function
def irfft2(x: Any, /, s: Any = None, axes: Any = (-2, -1), norm: Any = "backward") -> Any:
    """The inverse of `rfft2`.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    s : sequence of int or None
        The lengths of the axes in the transform: what is shorter is filled with zeros, what is longer cut;
        None keeps them.
    axes : pair of int
        Which axes.
    norm : str, default 'backward'
        What is divided by the length: "backward" the inverse, "forward" the transform, "ortho" both by
        its root.

    Returns
    -------
    array
        Real: float32 of single precision, float64 of double and of integers. Of the lengths `s` along
        `axes`: in the last of them `2 * (m - 1)` of m given, if None.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([[1.0, 2.0], [3.0, 4.0]])
    >>> print(mb.fft.irfft2(mb.fft.rfft2(x)))
    [[1. 2.]
     [3. 4.]]
    """
    return _over("irfftn", x, s, axes, norm)


# Frequencies


@keyword_only("d")
@creates
@explained
def fftfreq(n: int, /, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> AbstractArray:
    """The frequencies of a transform of `n` points that lie `d` apart, in its order.

    Parameters
    ----------
    n : int
        How many points.
    d : number, default 1.0
        Their distance.
    dtype : dtype or None
        The dtype of the result; None is float64.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    array
        A vector of length `n` in cycles per unit of `d`, float64 unless `dtype` is given: 0 and the
        positive frequencies, then the negative ones.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.fft.fftfreq(4))
    [ 0.    0.25 -0.5  -0.25]
    """
    return _frequencies(np.fft.fftfreq, n, d, dtype, device)


@keyword_only("d")
@creates
@explained
def rfftfreq(n: int, /, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> AbstractArray:
    """The frequencies of `rfft` of `n` points that lie `d` apart.

    Parameters
    ----------
    n : int
        How many points.
    d : number, default 1.0
        Their distance.
    dtype : dtype or None
        The dtype of the result; None is float64.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Returns
    -------
    array
        A vector of length `n // 2 + 1` in cycles per unit of `d`, float64 unless `dtype` is given: from 0
        upwards.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.fft.rfftfreq(4))
    [0.   0.25 0.5 ]
    """
    return _frequencies(np.fft.rfftfreq, n, d, dtype, device)


def _frequencies(make: Any, n: Any, d: Any, dtype: Any, device: Any) -> Any:
    wanted = checked_dtype(np.float64 if dtype is None else dtype)
    if wanted.kind != "f":
        raise ValueError(f"Frequencies are real numbers; dtype is a floating one, not {wanted.name}.")
    n = operator.index(n)
    if n < 1:
        raise ValueError(f"A transform has at least one point, and {n} were asked for.")
    return asarray(make(n, float(d)).astype(wanted), device=device)


@keyword_only("axes")
@array_function
def fftshift(x: Any, /, axes: Any = None) -> Any:
    """Frequency 0 moved to the middle of the axes.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    axes : sequence of int or None
        Which axes; None is all of them.

    Returns
    -------
    array
        Of the shape, dtype and place of `x`, in new memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.fft.fftshift(mb.fft.fftfreq(4)))
    [-0.5  -0.25  0.    0.25]
    """
    return _shifted("fft.fftshift", x, axes)


@keyword_only("axes")
@array_function
def ifftshift(x: Any, /, axes: Any = None) -> Any:
    """The inverse of `fftshift`: frequency 0 moved back to the beginning.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    axes : sequence of int or None
        Which axes; None is all of them.

    Returns
    -------
    array
        Of the shape, dtype and place of `x`, in new memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.fft.ifftshift(mb.HostArray([-2, -1, 0, 1])))
    [ 0  1 -2 -1]
    """
    return _shifted("fft.ifftshift", x, axes)


def _shifted(routine: str, x: Any, axes: Any) -> Any:
    along = normal_axes(axes, x.ndim)
    return library.call(routine, x, axes=along) if along else verbs.copy(x)
