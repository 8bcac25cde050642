"""The generic functions: everything an array can do, by name.

Only names, signatures and meanings stand here; `arraytypes` and `backends` give the methods.
Names are the Python array API standard's, Julia's where it has none.
"""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mirabelle.dispatch import native
from mirabelle.dispatch.elementwisedocs import docstring
from mirabelle.dispatch.generic import generic
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.signatures import keyword_only, optional

if TYPE_CHECKING:
    from mirabelle.dispatch.styles import Place
    from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced


class Generic(Protocol):
    """A generic function, to a type checker."""

    __name__: str
    core: Any
    method: Any
    generated: Any
    further: Any
    previous: Any
    operator: Any

    # Of functions of two operands, as NumPy's ufuncs have them (`arraytypes/ufuncs.py`).
    reduce: Any
    accumulate: Any
    reduceat: Any
    outer: Any
    at: Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...


# A generic function that takes NumPy's further arguments: `functions/conventions.py` says what they mean.
numpys = functools.partial(generic, wider=True)

# Every elementwise function by name, filled below; `arraytypes.elementwise` gives them methods.
ELEMENTWISE: dict[str, Any] = {}


@functools.cache
def _definition(parameters: str) -> types.CodeType:
    return compile(f"def _({parameters}, /): ...", __file__, "exec")


def _prototype(parameters: str) -> Any:
    """A function of these parameters that does nothing."""
    namespace: dict[str, Any] = {}
    exec(_definition(parameters), namespace)
    return namespace["_"]


def _elementwise(name: str, meaning: str, example: str = "") -> Generic:
    """A generic function for one operation of `dispatch.ops`."""
    op = TABLE[name]
    parameters = "condition, x1, x2" if name == "where" else ", ".join(f"x{i + 1}" for i in range(op.nin))
    prototype = _prototype("x" if op.nin == 1 else parameters)
    prototype.__name__ = name
    prototype.__doc__ = docstring(name, meaning, example)
    prototype.__module__ = __name__
    prototype.__qualname__ = name
    # (`where(condition)` alone is where it holds.)
    ELEMENTWISE[name] = made = numpys(prototype, optional=2 if name == "where" else 0, operator=op.nin <= 2)
    result_: Generic = made
    return result_


add = _elementwise("add", "x1 + x2", "mb.HostArray([1, 2]), 10 -> [11 12]")
subtract = _elementwise("subtract", "x1 - x2", "mb.HostArray([1, 2]), 1 -> [0 1]")
multiply = _elementwise("multiply", "x1 * x2", "mb.HostArray([1, 2]), 3 -> [3 6]")
divide = _elementwise("divide", "x1 / x2", "mb.HostArray([1, 2]), 2 -> [0.5 1. ]")
floor_divide = _elementwise("floor_divide", "x1 // x2", "mb.HostArray([7, -7]), 2 -> [ 3 -4]")
remainder = _elementwise("remainder", "x1 % x2, with the sign of x2", "mb.HostArray([7, -7]), 3 -> [1 2]")
fmod = _elementwise("fmod", "The remainder with the sign of x1", "mb.HostArray([-7.0]), 3 -> [-1.]")
pow = _elementwise("pow", "x1 ** x2", "mb.HostArray([2.0, 3.0]), 2 -> [4. 9.]")
maximum = _elementwise("maximum", "The larger of two (NaN wins)", "mb.HostArray([1, 5]), 3 -> [3 5]")
minimum = _elementwise("minimum", "The smaller of two (NaN wins)", "mb.HostArray([1, 5]), 3 -> [1 3]")
fmax = _elementwise("fmax", "The larger of two (NaN loses)", "mb.HostArray([1.0, mb.nan]), 3.0 -> [3. 3.]")
fmin = _elementwise("fmin", "The smaller of two (NaN loses)", "mb.HostArray([1.0, mb.nan]), 3.0 -> [1. 3.]")
atan2 = _elementwise("atan2", "The angle of the point (x2, x1)", "mb.HostArray([0.0]), 1.0 -> [0.]")
hypot = _elementwise("hypot", "sqrt(x1² + x2²) without overflow", "mb.HostArray([3.0]), 4.0 -> [5.]")
copysign = _elementwise("copysign", "|x1| with the sign of x2", "mb.HostArray([1.0]), -2.0 -> [-1.]")
nextafter = _elementwise("nextafter", "The next number after x1 towards x2", "mb.HostArray([1.0]), 2.0 -> [1.]")
logaddexp = _elementwise("logaddexp", "log(exp(x1) + exp(x2))", "mb.HostArray([0.0]), 0.0 -> [0.69314718]")
logaddexp2 = _elementwise("logaddexp2", "log2(2**x1 + 2**x2)", "mb.HostArray([3.0]), 3.0 -> [4.]")
heaviside = _elementwise(
    "heaviside",
    "0, x2 or 1 for negative, zero or positive x1",
    "mb.HostArray([-1.0, 0.0, 2.0]), 0.5 -> [0.  0.5 1. ]",
)
gcd = _elementwise("gcd", "The greatest common divisor", "mb.HostArray([12]), 18 -> [6]")
lcm = _elementwise("lcm", "The least common multiple", "mb.HostArray([4]), 6 -> [12]")
ldexp = _elementwise("ldexp", "x1 * 2**x2", "mb.HostArray([3.0]), 2 -> [12.]")
equal = _elementwise("equal", "x1 == x2", "mb.HostArray([1, 2]), 2 -> [False  True]")
not_equal = _elementwise("not_equal", "x1 != x2", "mb.HostArray([1, 2]), 2 -> [ True False]")
less = _elementwise("less", "x1 < x2", "mb.HostArray([1, 2]), 2 -> [ True False]")
less_equal = _elementwise("less_equal", "x1 <= x2", "mb.HostArray([1, 2, 3]), 2 -> [ True  True False]")
greater = _elementwise("greater", "x1 > x2", "mb.HostArray([1, 2, 3]), 2 -> [False False  True]")
greater_equal = _elementwise("greater_equal", "x1 >= x2", "mb.HostArray([1, 2, 3]), 2 -> [False  True  True]")
logical_and = _elementwise(
    "logical_and", "x1 and x2 as truth values", "mb.HostArray([0, 2]), 1 -> [False  True]"
)
logical_or = _elementwise("logical_or", "x1 or x2 as truth values", "mb.HostArray([0, 2]), 0 -> [False  True]")
logical_xor = _elementwise(
    "logical_xor", "Exactly one of x1, x2, as truth values", "mb.HostArray([0, 2]), 1 -> [ True False]"
)
logical_not = _elementwise("logical_not", "not x as a truth value", "mb.HostArray([0, 2]) -> [ True False]")
bitwise_and = _elementwise("bitwise_and", "x1 & x2", "mb.HostArray([6]), 3 -> [2]")
bitwise_or = _elementwise("bitwise_or", "x1 | x2", "mb.HostArray([6]), 3 -> [7]")
bitwise_xor = _elementwise("bitwise_xor", "x1 ^ x2", "mb.HostArray([6]), 3 -> [5]")
bitwise_left_shift = _elementwise("bitwise_left_shift", "x1 << x2", "mb.HostArray([3]), 2 -> [12]")
bitwise_right_shift = _elementwise("bitwise_right_shift", "x1 >> x2", "mb.HostArray([12]), 2 -> [3]")
bitwise_invert = _elementwise("bitwise_invert", "~x", "mb.HostArray([0, 5]) -> [-1 -6]")
bitwise_count = _elementwise("bitwise_count", "The number of 1 bits of |x|", "mb.HostArray([7, 8]) -> [3 1]")
negative = _elementwise("negative", "-x", "mb.HostArray([1, 2]) -> [-1 -2]")
positive = _elementwise("positive", "+x", "mb.HostArray([1, -2]) -> [ 1 -2]")
abs = _elementwise("abs", "|x|", "mb.HostArray([-3]) -> [3]")
sign = _elementwise(
    "sign", "-1, 0 or 1; x/|x| for complex x", "mb.HostArray([-3.0, 0.0, 2.0]) -> [-1.  0.  1.]"
)
sqrt = _elementwise("sqrt", "The square root", "mb.HostArray([9.0]) -> [3.]")
cbrt = _elementwise("cbrt", "The cube root", "mb.HostArray([8.0]) -> [2.]")
square = _elementwise("square", "x * x", "mb.HostArray([3]) -> [9]")
reciprocal = _elementwise("reciprocal", "1 / x", "mb.HostArray([4.0]) -> [0.25]")
exp = _elementwise("exp", "e**x", "mb.HostArray([0.0]) -> [1.]")
exp2 = _elementwise("exp2", "2**x", "mb.HostArray([3.0]) -> [8.]")
expm1 = _elementwise("expm1", "e**x - 1, exact near 0", "mb.HostArray([1e-10]) -> [1.e-10]")
log = _elementwise("log", "The natural logarithm", "mb.HostArray([1.0]) -> [0.]")
log2 = _elementwise("log2", "The logarithm to base 2", "mb.HostArray([8.0]) -> [3.]")
log10 = _elementwise("log10", "The logarithm to base 10", "mb.HostArray([100.0]) -> [2.]")
log1p = _elementwise("log1p", "log(1 + x), exact near 0", "mb.HostArray([1e-10]) -> [1.e-10]")
sin = _elementwise("sin", "The sine", "mb.HostArray([0.0]) -> [0.]")
cos = _elementwise("cos", "The cosine", "mb.HostArray([0.0]) -> [1.]")
tan = _elementwise("tan", "The tangent", "mb.HostArray([0.0]) -> [0.]")
asin = _elementwise("asin", "The inverse sine", "mb.HostArray([0.0]) -> [0.]")
acos = _elementwise("acos", "The inverse cosine", "mb.HostArray([1.0]) -> [0.]")
atan = _elementwise("atan", "The inverse tangent", "mb.HostArray([0.0]) -> [0.]")
sinh = _elementwise("sinh", "The hyperbolic sine", "mb.HostArray([0.0]) -> [0.]")
cosh = _elementwise("cosh", "The hyperbolic cosine", "mb.HostArray([0.0]) -> [1.]")
tanh = _elementwise("tanh", "The hyperbolic tangent", "mb.HostArray([0.0, 20.0]) -> [0. 1.]")
asinh = _elementwise("asinh", "The inverse hyperbolic sine", "mb.HostArray([0.0]) -> [0.]")
acosh = _elementwise("acosh", "The inverse hyperbolic cosine", "mb.HostArray([1.0]) -> [0.]")
atanh = _elementwise("atanh", "The inverse hyperbolic tangent", "mb.HostArray([0.0]) -> [0.]")
sinpi = _elementwise("sinpi", "sin(πx), exact at multiples of one half", "mb.HostArray([1.0, 0.5]) -> [0. 1.]")
cospi = _elementwise(
    "cospi", "cos(πx), exact at multiples of one half", "mb.HostArray([1.0, 0.5]) -> [-1.  0.]"
)
erf = _elementwise("erf", "The error function", "mb.HostArray([0.0]) -> [0.]")
erfc = _elementwise("erfc", "1 - erf(x), exact for large x", "mb.HostArray([0.0]) -> [1.]")
gamma = _elementwise(
    "gamma", "The gamma function (infinite at 0, NaN at its other poles)", "mb.HostArray([5.0]) -> [24.]"
)
lgamma = _elementwise("lgamma", "log|gamma(x)| (infinite at the poles)", "mb.HostArray([1.0]) -> [0.]")
fma = _elementwise("fma", "x1 * x2 + x3 rounded once", "mb.HostArray([2.0]), 3.0, 1.0 -> [7.]")
floor = _elementwise("floor", "The largest integer not above x", "mb.HostArray([1.5, -1.5]) -> [ 1. -2.]")
ceil = _elementwise("ceil", "The smallest integer not below x", "mb.HostArray([1.5, -1.5]) -> [ 2. -1.]")
trunc = _elementwise("trunc", "The integer next to x towards 0", "mb.HostArray([1.5, -1.5]) -> [ 1. -1.]")
round = _elementwise("round", "The nearest integer, halves to even", "mb.HostArray([0.5, 1.5]) -> [0. 2.]")
isnan = _elementwise("isnan", "Whether it is NaN", "mb.HostArray([1.0, mb.nan]) -> [False  True]")
isinf = _elementwise("isinf", "Whether it is infinite", "mb.HostArray([1.0, -mb.inf]) -> [False  True]")
isfinite = _elementwise(
    "isfinite", "Whether it is finite", "mb.HostArray([1.0, mb.inf, mb.nan]) -> [ True False False]"
)
signbit = _elementwise("signbit", "Whether the sign bit is set", "mb.HostArray([1.0, -0.0]) -> [False  True]")
conj = _elementwise("conj", "The complex conjugate", "mb.HostArray([1.0 + 2.0j]) -> [1.-2.j]")
real = _elementwise("real", "The real part", "mb.HostArray([1.0 + 2.0j]) -> [1.]")
imag = _elementwise("imag", "The imaginary part", "mb.HostArray([1.0 + 2.0j]) -> [2.]")
deg2rad = _elementwise("deg2rad", "Degrees as radians", "mb.HostArray([180.0]) -> [3.14159265]")
rad2deg = _elementwise("rad2deg", "Radians as degrees", "mb.HostArray([mb.pi]) -> [180.]")
spacing = _elementwise("spacing", "The distance to the next number", "mb.HostArray([1.0]) -> [2.22044605e-16]")
divmod = _elementwise(
    "divmod", "(x1 // x2, x1 % x2), one kernel for both", "mb.HostArray([7, -7]), 3 -> [ 2 -3] [1 2]"
)
modf = _elementwise("modf", "The fractional and the integral part", "mb.HostArray([1.5]) -> [0.5] [1.]")
frexp = _elementwise("frexp", "Mantissa and exponent to base 2", "mb.HostArray([12.0]) -> [0.75] [4]")
where = optional("x1", "x2")(
    _elementwise("where", "x1 where the condition holds, else x2", "mb.HostArray([True, False]), 1, 2 -> [1 2]")
)


# Julia's vocabulary: the pieces a new array type gives


@numpys
def place(x: Any) -> Place:  # type: ignore[empty-body]
    """Where the data of `x` is; asks the parent of a wrapper, to any depth.

    Parameters
    ----------
    x : array
        An array.

    Returns
    -------
    place
        It prints as "host" or "ref:0", and equals the place of any array that is there, too.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.place(mb.RefArray([1.0]))
    ref:0
    """


@generic
def parent(x: Any) -> Any:
    """What a wrapper wraps; an array that wraps nothing is its own parent.

    Parameters
    ----------
    x : array
        An array.

    Returns
    -------
    array
        The wrapped array itself, not a copy, which may have another shape.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([[1.0, 2.0]])
    >>> mb.parent(x.T) is x
    True
    """


@generic
def lower(x: Any, leaf: Any) -> Any:
    """The part of the memory of `leaf` (of the innermost parent) that `x` shows.

    The one rule a strided wrapper gives: it maps a backend's strided view of its parent to a
    strided view of itself. Broadcasting, writing through, printing and copying follow from it.

    Parameters
    ----------
    x : array
        An array.
    leaf : leaf
        Of the innermost parent.

    Returns
    -------
    view
        A view as the backend of the array has them, a `numpy.ndarray` of a `mb.HostArray`; it shares the
        memory of `leaf`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([[1.0, 2.0], [3.0, 4.0]])
    >>> mb.ext.lower(x.T, mb.ext.tree(x))
    array([[1., 3.],
           [2., 4.]])
    """


@generic
def leaf_of(x: Any) -> Any:
    """The evaluated contents of `x` as a `Leaf`."""


@generic
def capture(x: Any) -> Any:
    """The version of `x` that an operation written now reads."""


@generic
def similar(x: Any, dtype: Any = None, shape: Any = None) -> Any:
    """A new array like `x`: same place, dtype and shape unless given; contents undefined.

    Parameters
    ----------
    x : array
        An array.
    dtype : dtype or None
        Another dtype.
    shape : tuple of int or None
        Another shape.

    Returns
    -------
    array
        In new memory that holds nothing of `x`, also where `x` is a view.

    Examples
    --------
    >>> import mirabelle as mb
    >>> type(mb.similar(mb.RefArray([1.0]), shape=(2, 3))).__name__
    'RefArray[float64, 2]'
    """


@numpys
def copyto(dest: Any, src: Any) -> Any:
    """Write `src` into `dest`. This is what a backend implements for a `Broadcasted` tree.

    Parameters
    ----------
    dest : array
        What is written to.
    src : array or number
        What is written, stretched to fit.
    casting : str, default 'same_kind'
        Which conversions are allowed, as in `np.can_cast`.
    where : array of bool, default True
        Where is written; everywhere, if it is True.

    Returns
    -------
    array
        `dest` itself.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([0.0, 0.0])
    >>> print(mb.copyto(x, mb.HostArray([1.0, 2.0]) + 1))
    [2. 3.]
    """


@generic
def adapt(to: Any, x: Any) -> Any:
    """The same data as another array type: the explicit transfer.

    Tuples, lists and dictionaries are adapted element by element, wrappers keep their structure.

    Parameters
    ----------
    to : array type or callable
        What the data becomes.
    x : array, tuple, list or dict
        What is moved; containers are moved element by element.

    Returns
    -------
    array, tuple, list or dict
        `x` itself, if it is of that type already; else a copy. What is no array stays as it is.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.adapt(mb.RefArray, mb.HostArray([1.0, 2.0])).place
    ref:0
    """


@generic
def materialize(x: Any) -> Any:
    """Evaluate `x` now, if it is not evaluated yet, and return it: an explicit barrier.

    In a compiled function, too: the value is stored by one kernel and read by others after it.

    Parameters
    ----------
    x : array
        An array.

    Returns
    -------
    array
        `x` itself, not a copy.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.materialize(mb.HostArray([1.0]) + 1))
    [2.]
    """


@generic
def dense(x: Any) -> Any:
    """`x` with all its entries in memory: a structured array made dense, because it is asked for.

    Parameters
    ----------
    x : array
        An array.

    Returns
    -------
    array
        `x` itself, if its entries are in memory already, as those of a view are; else an array in new
        memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.dense(mb.Diagonal([1.0, 2.0])))
    [[1. 0.]
     [0. 2.]]
    """


@generic
def tree(x: Any) -> Broadcasted | Reduced | Leaf:  # type: ignore[empty-body]
    """The tree `x` stands for: a `Broadcasted`, or a `Leaf` once it is evaluated.

    Parameters
    ----------
    x : array
        An array.

    Returns
    -------
    tree or leaf
        A `Broadcasted`, a `Reduced` where `x` is a reduction that is not evaluated yet, or a `Leaf`, which
        holds a view of the memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> with mb.settings.changed(immediate_size=0):
    ...     y = mb.HostArray([1.0, 2.0]) * 2
    >>> type(mb.ext.tree(y)).__name__
    'Broadcasted'
    """


@generic
def mapreduce_(
    x: Any, f: Any = None, op: Any = None, init: Any = None, axis: Any = None, keepdims: bool = False
) -> Any:
    """See `mb.mapreduce`."""


@generic
def accumulate(x: Any, op: Any = None, axis: Any = None, init: Any = None) -> Any:
    """The running combination of the elements along an axis (a scan).

    `op` is "add", "multiply", "maximum", "minimum" or a scalar function of two arguments.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    op : str or callable
        "add", "multiply", "maximum", "minimum" or a scalar function of two arguments.
    axis : int or None
        Along which axis; it must be said where there are several.
    init : number or None
        What it starts with.

    Returns
    -------
    array
        Of the shape of `x`. "add" and "multiply" make int64 or uint64 of truth values and integers, all
        else keeps the dtype of `x`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.accumulate(mb.HostArray([1, 2, 3, 4])))
    [ 1  3  6 10]
    """


# Assignment, indexing, shape


@generic
def assign(dest: Any, value: Any, casting: str = "unsafe") -> Any:
    """Overwrite all of `dest` with `value`, cast and stretched to fit; returns `dest`.

    Parameters
    ----------
    dest : array
        What is written to.
    value : array or number
        What is written.
    casting : str, default 'unsafe'
        Which conversions are allowed, as in `np.can_cast`.

    Returns
    -------
    array
        `dest` itself.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.zeros(2)
    >>> print(mb.ext.assign(x, 3))
    [3. 3.]
    """


@generic
def getitem(x: Any, index: Any, /) -> Any:
    """x[index]: a view of `x` for integers, slices, None and `...`."""


@generic
def setitem(x: Any, index: Any, value: Any, /) -> None:
    """x[index] = value."""


@keyword_only("copy")
@generic
def astype(x: Any, dtype: Any, /, copy: bool = True, *, device: Any = None) -> Any:
    """`x` with another dtype (and at another place, if `device` names one); lazy like any operation.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    dtype : dtype
        The new dtype.
    copy : bool, default True
        Whether it is a copy even where nothing changes.
    device : array type, place or None
        Where the result is made; None is where `x` is.

    Returns
    -------
    array
        Of the shape of `x`, in new memory. With `copy=False` it is `x` itself, if dtype and place are those
        it has.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.astype(mb.HostArray([1.7, -1.7]), mb.int32))
    [ 1 -1]
    """


@numpys
def copy(x: Any) -> Any:
    """A copy of `x` in memory of its own.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    order : str, default 'K'
        The order in memory, as NumPy names it; "K" and "C" are rows first.
    subok : bool, default False
        Taken for NumPy's sake.

    Returns
    -------
    array
        Of the shape, dtype and place of `x`; structured arrays stay structured.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([1.0, 2.0])
    >>> y = mb.copy(x)
    >>> y[0] = 5
    >>> print(x)
    [1. 2.]
    """


@numpys
def reshape(x: Any, /, shape: Any, *, copy: Any = None) -> Any:
    """`x` in another shape: a view where strides can say it, a copy where not.

    `copy=True` always copies; `copy=False` raises where a copy would be needed.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    shape : tuple of int
        The new shape; -1 is what is left.
    copy : bool or None
        True copies always, False never (an error where it is needed), None where it is needed.
    order : str, default 'C'
        In which order elements are read: "C" or "F".

    Returns
    -------
    array
        Of the dtype and place of `x`. What is written to a view is written to `x`, and the other way round.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.reshape(mb.HostArray([1, 2, 3, 4]), (2, 2)))
    [[1 2]
     [3 4]]
    """


@generic
def permute_dims(x: Any, /, axes: Any) -> Any:
    """`x` with its dimensions in another order: a view.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    axes : tuple of int
        The axes in their new order.

    Returns
    -------
    array
        Of the dtype and place of `x`. What is written to it is written to `x`, and the other way round.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.permute_dims(mb.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """


@generic
def broadcast_to(x: Any, /, shape: Any) -> Any:
    """`x` stretched to a shape: a read-only view, or `x` where it has that shape.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    shape : tuple of int
        The larger shape.

    Returns
    -------
    array
        Of the dtype and place of `x`. What is written to `x` is seen in it. It is `x` itself, if the shape
        is the same.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.broadcast_to(mb.HostArray([1, 2]), (3, 2)))
    [[1 2]
     [1 2]
     [1 2]]
    """


# Reductions


@generic
def reduce_(x: Any, reduction: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The node behind every reduction: `reduction` of `x` along axes, not computed yet."""


@keyword_only("axis")
@numpys
def sum(x: Any, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Any:
    """The sum; takes the tree of `x` into its kernel, so that no temporary is written.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.
    out : array or None
        Where the result is written; it is returned, too.
    initial : number or None
        What the result begins with, also where there are no elements.
    where : array of bool, default True
        Which elements count; all, if it is True.

    Returns
    -------
    array
        Of the axes that are left, of no dimensions if none is; truth values and integers add up as int64 or
        uint64, other dtypes stay. The sum of nothing is 0.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.sum(mb.HostArray([1.0, 2.0, 3.0]) * 2))
    12.0
    """


@keyword_only("axis")
@numpys
def prod(x: Any, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Any:
    """The product.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.
    out : array or None
        Where the result is written; it is returned, too.
    initial : number or None
        What the result begins with, also where there are no elements.
    where : array of bool, default True
        Which elements count; all, if it is True.

    Returns
    -------
    array
        Of the axes that are left, of no dimensions if none is; truth values and integers multiply as int64
        or uint64, other dtypes stay. The product of nothing is 1.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.prod(mb.HostArray([1, 2, 3, 4])))
    24
    """


@keyword_only("axis")
@numpys
def min(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """The smallest element (NaN wins). Also called `mb.amin`.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.
    out : array or None
        Where the result is written; it is returned, too.
    initial : number or None
        What the result begins with, also where there are no elements.
    where : array of bool, default True
        Which elements count; all, if it is True.

    Returns
    -------
    array
        Of the axes that are left, of no dimensions if none is; of the dtype of `x`. Where there are no
        elements, it is an error, unless `initial` is given.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.min(mb.HostArray([1.0, 3.0, 2.0])), mb.min(mb.HostArray([[1, 4], [3, 2]]), axis=1))
    1.0 [1 2]
    """


@keyword_only("axis")
@numpys
def max(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """The largest element (NaN wins). Also called `mb.amax`.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.
    out : array or None
        Where the result is written; it is returned, too.
    initial : number or None
        What the result begins with, also where there are no elements.
    where : array of bool, default True
        Which elements count; all, if it is True.

    Returns
    -------
    array
        Of the axes that are left, of no dimensions if none is; of the dtype of `x`. Where there are no
        elements, it is an error, unless `initial` is given.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.max(mb.HostArray([1.0, 3.0, 2.0])), mb.max(mb.HostArray([[1, 4], [3, 2]]), axis=1))
    3.0 [4 3]
    """


@keyword_only("axis")
@numpys
def any(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Does any element hold?

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.
    out : array or None
        Where the result is written; it is returned, too.
    where : array of bool, default True
        Which elements count; all, if it is True.

    Returns
    -------
    array
        Of the axes that are left, of no dimensions if none is; of dtype bool. Of nothing it is False.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.any(mb.HostArray([0, 0, 2])), mb.any(mb.HostArray([[0, 0], [0, 1]]), axis=0))
    True [False  True]
    """


@keyword_only("axis")
@numpys
def all(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Do all elements hold?

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.
    out : array or None
        Where the result is written; it is returned, too.
    where : array of bool, default True
        Which elements count; all, if it is True.

    Returns
    -------
    array
        Of the axes that are left, of no dimensions if none is; of dtype bool. Of nothing it is True.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.all(mb.HostArray([1, 2, 0])), mb.all(mb.HostArray([[1, 0], [1, 1]]), axis=0))
    False [ True False]
    """


@keyword_only("axis")
@numpys
def count_nonzero(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """How many elements are not zero.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.

    Returns
    -------
    array
        Of the axes that are left, of no dimensions if none is; of dtype int64.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.count_nonzero(mb.HostArray([0, 3, 0, 1])))
    2
    """


@keyword_only("axis")
@numpys
def mean(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """The mean.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    out : array or None
        Where the result is written; it is returned, too.
    where : array of bool, default True
        Which elements count; all, if it is True.

    Returns
    -------
    array
        Of the axes that are left, of no dimensions if none is; of the dtype of `x` if it is floating-point
        or complex, else float64. The mean of nothing is NaN.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([[1.0, 2.0], [3.0, 6.0]])
    >>> print(mb.mean(x), mb.mean(x, axis=0))
    3.0 [2. 4.]
    """


@keyword_only("axis")
@numpys
def var(
    x: Any, /, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False, ddof: Any = None
) -> Any:
    """The variance (two passes, so that it is accurate). `ddof` is NumPy's name for `correction`.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    correction : float, default 0.0
        What is subtracted from the number of elements before it divides: 1 for a sample.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.
    ddof : int or None
        What is subtracted from the number of elements; NumPy's name for `correction`.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    out : array or None
        Where the result is written; it is returned, too.
    where : array of bool, default True
        Which elements count; all, if it is True.
    mean : array or None
        The mean, if it is known already.

    Returns
    -------
    array
        Of the axes that are left, of no dimensions if none is; of the dtype of `x` if it is floating-point
        (of its parts, if complex), else float64. Of nothing it is NaN.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([2.0, 4.0, 6.0])
    >>> print(round(float(mb.var(x)), 3), mb.var(x, correction=1))
    2.667 4.0
    """


@keyword_only("axis")
@numpys
def std(
    x: Any, /, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False, ddof: Any = None
) -> Any:
    """The standard deviation. `ddof` is NumPy's name for `correction`.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    axis : int, tuple of int or None
        Along which axes; None is all of them.
    correction : float, default 0.0
        What is subtracted from the number of elements before it divides: 1 for a sample.
    keepdims : bool, default False
        Whether axes that are gone stay as dimensions of size one.
    ddof : int or None
        What is subtracted from the number of elements; NumPy's name for `correction`.
    dtype : dtype or None
        The dtype of the result; None takes what follows from the operands.
    out : array or None
        Where the result is written; it is returned, too.
    where : array of bool, default True
        Which elements count; all, if it is True.
    mean : array or None
        The mean, if it is known already.

    Returns
    -------
    array
        Of the axes that are left, of no dimensions if none is; of the dtype of `x` if it is floating-point
        (of its parts, if complex), else float64. Of nothing it is NaN.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([2.0, 4.0, 6.0])
    >>> print(round(float(mb.std(x)), 3), mb.std(x, correction=1))
    1.633 2.0
    """


@numpys
def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """`x` limited to at least `min` and at most `max`.

    Parameters
    ----------
    x : array
        An array; a list, a number or a NumPy array becomes one.
    min : number, array or None
        The least value; None has no bound.
    max : number, array or None
        The largest value; None has no bound.
    a_min : number or array
        NumPy's name for `min`.
    a_max : number or array
        NumPy's name for `max`.
    out : array or None
        Where the result is written; it is returned, too.
    casting : str, default 'same_kind'
        Which conversions are allowed, as in `np.can_cast`.

    Returns
    -------
    array
        Of the shape and dtype that `x` and the bounds have together, in new memory.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.clip(mb.HostArray([-2.0, 0.5, 3.0]), 0, 1))
    [0.  0.5 1. ]
    """


@generic
def norm(x: Any, p: Any = 2) -> Any:
    """The vector p-norm of all elements.

    Parameters
    ----------
    x : array
        A matrix or a vector.
    p : number, default 2
        Which norm: 2 is the Euclidean one, infinity the largest absolute value.

    Returns
    -------
    array
        Of no dimensions: of the dtype of `x` if it is floating-point (of its parts, if complex), else
        float64.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.norm(mb.HostArray([3.0, 4.0])))
    5.0
    """


@functools.partial(numpys, operator=True)
def matmul(x1: Any, x2: Any, /) -> Any:
    """The matrix product x1 @ x2: a barrier, evaluated at once.

    Parameters
    ----------
    x1 : array (..., m, k)
        A matrix, a stack of them, or a vector.
    x2 : array (..., k, n)
        A matrix, a stack of them, or a vector.

    Returns
    -------
    array
        Of shape (..., m, n), without m or n where that operand is a vector; of the dtype that both promote
        to. Of two structured matrices often one, as of two `mb.Diagonal`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.HostArray([[1.0, 2.0]]) @ mb.HostArray([[3.0], [4.0]]))
    [[11.]]
    """


@numpys
def dot(x1: Any, x2: Any) -> Any:
    """The inner product of two vectors, conjugating neither: one fused reduction. Of arrays with more axes
    NumPy's `dot`: over the last axis of the first and the last but one of the second.

    Parameters
    ----------
    x1 : array
        The first operand.
    x2 : array
        The second operand.
    out : array or None
        Where the result is written; it is returned, too.

    Returns
    -------
    array
        Of no dimensions for two vectors. Else the last dimension of `x1` is summed with the last but one
        (or the only one) of `x2`, and all others remain.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.dot(mb.HostArray([1.0, 2.0]), mb.HostArray([3.0, 4.0])))
    11.0
    """


# Leaving


@generic
def fetch(x: Any) -> Any:
    """The contents as a NumPy array, however they get there (counts transfers, not reads)."""


@generic
def to_numpy(x: Any) -> np.ndarray:  # type: ignore[empty-body]
    """A new NumPy array with the contents of any array: the explicit transfer.

    Parameters
    ----------
    x : array
        An array, or one of NumPy's.

    Returns
    -------
    numpy.ndarray
        Of the shape and dtype of `x`, in memory of its own: writing to it changes nothing else.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.to_numpy(mb.RefArray([1.0, 2.0]) + 1)
    array([2., 3.])
    """


@generic
def numpy_view(x: Any, dtype: Any = None, copy: Any = None) -> Any:
    """What `np.asarray(x)` gets."""


@generic
def show(x: Any, brief: bool = False) -> str:  # type: ignore[empty-body]
    """The text of repr (and, briefly, of str).

    Parameters
    ----------
    x : array
        An array.
    brief : bool, default False
        The text of `str`, and not of `repr`.

    Returns
    -------
    str
        The text; of an array whose elements wait, after they are computed.

    Examples
    --------
    >>> import mirabelle as mb
    >>> mb.ext.show(mb.HostArray([1.0]), True)
    '[1.]'
    """


@generic
def show_html(x: Any) -> Any:
    """The table a notebook shows."""


# NumPy's ufunc → our generic function.
UFUNCS: dict[Any, Any] = {
    TABLE[name].ufunc: verb
    for name, verb in ELEMENTWISE.items()
    # (np.rint makes floating-point numbers of integers, which `round` keeps: a function of its own)
    if TABLE[name].ufunc not in (None, np.rint)  # type: ignore[misc]
}
UFUNCS |= {np.matmul: matmul, np.degrees: UFUNCS[np.rad2deg], np.radians: UFUNCS[np.deg2rad]}
# What answers the operators, for those of one and of two operands.
UFUNC_OPERATORS = {ufunc: verb.operator for ufunc, verb in UFUNCS.items() if ufunc.nin <= 2}
# Likewise for NumPy's functions that are no ufuncs, of arrays of ours alone.
FUNCTION_OPERATORS: dict[Any, Any] = {
    np.dot: native.operator(dot.core.table, dot, 2),
    np.where: native.operator(where.core.table, where, 3),
}
# What is called for others of NumPy's functions, by function and type that is asked (`arraytypes/interop.py`):
# a function, or up to how many arguments ours is called as it is, ours, and what is called else.
ADAPTED: dict[tuple[Any, type], Any] = {}
