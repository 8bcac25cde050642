"""Names of NumPy's: small functions that programs lean on, and what stands for those that are not here.

Names that have nothing to do with arrays (`mb.dtype`, `mb.issubdtype`, `mb.s_`) are NumPy's own objects.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mirabelle.arraytypes.creation import asarray, ones
from mirabelle.arraytypes.define import array_function, as_array
from mirabelle.arraytypes.functions import conventions
from mirabelle.arraytypes.functions.picking import nonzero
from mirabelle.arraytypes.makers import creates
from mirabelle.dispatch import loading, verbs
from mirabelle.dispatch.misuse import explained

dtype = np.dtype
printoptions, set_printoptions, get_printoptions = np.printoptions, np.set_printoptions, np.get_printoptions
index_exp, s_ = np.index_exp, np.s_
issubdtype, iterable = np.issubdtype, np.iterable


def errstate(**options: Any) -> np.errstate:
    """np.errstate, for programs that silence NumPy's floating point warnings.

    Kernels give none: NaN and infinity are values. So nothing can be raised, called or printed for them either,
    and what asks for it is refused.

    Parameters
    ----------
    **options : keyword arguments
        NumPy's options.

    Examples
    --------
    >>> import mirabelle as mb
    >>> with mb.errstate(divide="ignore"):
    ...     print(mb.HostArray([1.0]) / 0)
    [inf]
    """
    for name, what in options.items():
        if name != "call" and what not in ("ignore", "warn", None):
            raise ValueError(
                f"errstate({name}={what!r}): mirabelle's kernels do not look at the processor's flags, so "
                "nothing can be done where one is set. Look at the result: `mb.all(mb.isfinite(x))`."
            )
    return np.errstate(**options)


def isscalar(element: Any) -> bool:
    """Is it a number of Python or NumPy? An array of no dimensions is an array.

    Parameters
    ----------
    element : object
        What is asked about.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.isscalar(3.0), mb.isscalar(mb.sum(mb.ones(3)))
    (True, False)
    """
    return bool(np.isscalar(element))


@array_function
def isfortran(a: Any) -> bool:
    """Do the columns lie one after another in memory, and not the rows, too?

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.isfortran(mb.zeros((2, 3)).T), mb.isfortran(mb.zeros(3))
    (True, False)
    """
    return bool(a.flags.fnc)


@explained
def ndenumerate(arr: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Each place of an array with its element.

    Parameters
    ----------
    arr : array
        An array; a list, a number or a NumPy array becomes one.

    Examples
    --------
    >>> import mirabelle as mb
    >>> [(i, float(x)) for i, x in mb.ndenumerate(mb.HostArray([[1.0, 2.0]]))]
    [((0, 0), 1.0), ((0, 1), 2.0)]
    """
    x = as_array(arr)
    return zip(np.ndindex(x.shape), x.flat, strict=True)


@creates
@explained
def mask_indices(n: int, mask_func: Callable[..., Any], k: Any = 0, *, device: Any = None) -> tuple[Any, ...]:
    """Where a function such as `mb.triu` leaves an n by n matrix as it is.

    Parameters
    ----------
    n : int
        The size of the matrix.
    mask_func : callable
        A function such as `mb.triu`.
    k : int, default 0
        Its second argument.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Examples
    --------
    >>> import mirabelle as mb
    >>> rows, columns = mb.mask_indices(3, mb.triu, 1)
    >>> print(rows, columns)
    [0 0 1] [1 2 2]
    """
    found: tuple[Any, ...] = nonzero(verbs.not_equal(mask_func(ones((n, n), int, device=device), k=k), 0))
    return found


@creates
@explained
def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None, *, device: Any = None) -> Any:
    """As `mb.asarray`, with a ValueError if there are NaN or infinities.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    order : str
        The order in memory, as NumPy names it; "K" and "C" are rows first.
    device : array type, place or None
        Where the result is made, `mb.CuArray` say; None is the default array type.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.asarray_chkfinite([1.0, 2.0]))
    [1. 2.]
    """
    x = asarray(a, dtype, order or "K", device=device)
    if x.dtype.kind in "fc" and not bool(verbs.all(verbs.isfinite(x))):
        raise ValueError("array must not contain infs or NaNs: mb.nan_to_num(x) puts numbers in their place.")
    return x


@explained
def array2string(a: Any, *args: Any, **options: Any) -> str:
    """The text of an array's elements, with np.array2string's options.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    *args : positional arguments
        NumPy's.
    **options : keyword arguments
        NumPy's options.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.array2string(mb.HostArray([1.0, 2.5]), precision=1, separator=", ")
    '[1. , 2.5]'
    """
    return str(conventions.array2string(as_array(a), *args, **options))


@explained
def array_repr(arr: Any, *args: Any, **options: Any) -> str:
    """The text of NumPy's repr of an array's elements.

    Parameters
    ----------
    arr : array
        An array; a list, a number or a NumPy array becomes one.
    *args : positional arguments
        NumPy's.
    **options : keyword arguments
        NumPy's options.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.array_repr(mb.HostArray([1.0, 2.5]))
    'array([1. , 2.5])'
    """
    return str(conventions.array_repr(as_array(arr), *args, **options))


@explained
def array_str(a: Any, *args: Any, **options: Any) -> str:
    """The text of NumPy's str of an array's elements.

    Parameters
    ----------
    a : array
        An array; a list, a number or a NumPy array becomes one.
    *args : positional arguments
        NumPy's.
    **options : keyword arguments
        NumPy's options.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.array_str(mb.HostArray([1.0, 2.5]))
    '[1.  2.5]'
    """
    return str(conventions.array_str(as_array(a), *args, **options))


# Names of NumPy's that are not here on purpose, and what to write.
_INSTEAD = {
    "dg": "It is imported by itself: `import mirabelle.dg as dg`.",
    "ndarray": "The type of all arrays is mb.AbstractArray: `isinstance(x, mb.AbstractArray)`. Arrays are made "
               "with mb.array or mb.zeros.",
    "nditer": "Go through the elements with `for i, x in mb.ndenumerate(a)`, or compute on whole arrays with "
              "`mb.map(f, a)`.",
    "nested_iters": "Go through places with `mb.ndindex(shape)`.",
    "frompyfunc": "Arrays hold numbers, not Python's objects: `mb.vectorize(f)`, or `mb.broadcast(f, x, y)`, "
                  "which is compiled.",
    "matrix": "A matrix is an array of two dimensions: `mb.array(data, ndmin=2)`, with `@` for products.",
    "asmatrix": "A matrix is an array of two dimensions: `mb.array(data, ndmin=2)`, with `@` for products.",
    "bmat": "Put matrices together with `mb.block([[a, b], [c, d]])`.",
    "memmap": "Read a file where it lies with `mb.load(file, mmap=True)`.",
    "poly1d": "Polynomials are arrays of coefficients: `mb.polyval(p, x)`, `mb.roots(p)`, `mb.polyder(p)`.",
    "polynomial": "Polynomials are arrays of coefficients: `mb.polyval(p, x)`, `mb.polyfit(x, y, degree)`.",
    "ma": "Mask with `where=`, as in `mb.sum(x, where=mask)`, or with NaN, as in `mb.nansum(x)`.",
    "row_stack": "It is `mb.vstack`.",
    "trapz": "It is `mb.trapezoid`.",
    "in1d": "It is `mb.isin`.",
    "product": "It is `mb.prod`.",
    "emath": "Take the function of complex numbers: `mb.sqrt(x.astype(complex))`.",
    "seterr": "mirabelle warns of no NaN or infinity: look with `mb.all(mb.isfinite(x))`.",
    "float128": "The widest floating-point numbers are mb.float64's.",
    "longdouble": "The widest floating-point numbers are mb.float64's.",
    "complex256": "The widest complex numbers are mb.complex128's.",
    "clongdouble": "The widest complex numbers are mb.complex128's.",
    "datetime64": "Arrays hold numbers: count seconds or days from a date, as integers.",
    "timedelta64": "Arrays hold numbers: count seconds or days, as integers.",
    "object_": "Arrays hold numbers, not Python's objects.",
    "str_": "Arrays hold numbers, not texts.",
    "bytes_": "Arrays hold numbers: `mb.frombuffer(data, mb.uint8)`.",
}  # fmt: skip
# The letters of the dtypes that arrays have.
_NUMBERS = frozenset("?bhilqBHILQefdFD")
# NumPy's older names of what generators do.
_OLD_RANDOM = {
    "rand": "random(size)", "random_sample": "random(size)", "ranf": "random(size)", "sample": "random(size)",
    "randn": "normal(size=size)", "randint": "integers(low, high, size)",
    "random_integers": "integers(low, high, size)",
}  # fmt: skip


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that is not in the namespace: says what stands for it, if it is one of NumPy's."""
    text = f"{module} has no {name!r}."
    theirs = None if name.startswith("_") else getattr(np, name, None)
    if name in _INSTEAD:
        text += f" {_INSTEAD[name]}"
    elif isinstance(theirs, type) and issubclass(theirs, np.generic):
        known = theirs in np.sctypeDict.values() and np.dtype(theirs).char in _NUMBERS
        text += f" Say how large: mb.{np.dtype(theirs).name}." if known else " Arrays hold numbers."
    elif theirs is not None:
        text += f" It is NumPy's alone, `numpy.{name}`: give it what `mb.to_numpy(x)` gives."
    elif not name.startswith("_"):  # (those are asked for by programs, again and again)
        near = difflib.get_close_matches(name, loading.public().__all__, 1, 0.75)
        text += f" Did you mean `mb.{near[0]}`?" if near else ""
    return AttributeError(text, name=name)


def missing_random(name: str) -> AttributeError:
    """The error for a name that is not in `mb.random`: NumPy's functions of its global generator are not."""
    from mirabelle.arraytypes.random import Generator

    text = f"mirabelle.random has no {name!r}."
    call = _OLD_RANDOM.get(name) or (f"{name}(...)" if hasattr(Generator, name) else None)
    made = " There is no global generator: make one with `rng = mb.random.default_rng(seed)`, and "
    if name in ("seed", "get_state", "set_state", "RandomState"):
        text += f"{made}hand it on."
    elif call is not None and not name.startswith("_"):
        text += f"{made}call `rng.{call}`."
    return AttributeError(text, name=name)
