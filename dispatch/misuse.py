"""What to say of a call that failed deep inside because of an argument.

A public function checks little beforehand: what fits costs nothing. Where an error that is no sentence (of the
interpreter, or of a library underneath) leaves it, its arguments are looked at, by the names they have in all
functions: one that cannot be meant is named, with what is expected in its place. The first error stays the
cause. Errors that are sentences, mirabelle's own and those of users' functions pass as they are.

>>> import mirabelle as mb
>>> mb.concat(5)
Traceback (most recent call last):
    ...
TypeError: concat: arrays=5 is no row of arrays. Give a list of arrays: `[x, y]`.
"""

from __future__ import annotations

import functools
import inspect
import operator
import re
import reprlib
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, NoReturn, TypeVar

import numpy as np

from mirabelle.dispatch.errors import MirabelleError
from mirabelle.dispatch.signatures import telling

F = TypeVar("F", bound=Callable[..., Any])

# Modules in which an error is raised for who called a function of ours; others are users'.
LIBRARIES = {
    *("mirabelle", "numpy", "scipy", "numba", "plum", "cupy"),
    *(
        "abc",
        "ast",
        "contextlib",
        "copy",
        "functools",
        "inspect",
        "io",
        "json",
        "operator",
        "os",
        "pathlib",
        "re",
    ),
    *("tokenize", "zipfile"),
}
# What NumPy says of sizes and places, which its users know.
NUMPYS = re.compile(
    "^operands could not be broadcast|out of bounds|^cannot reshape|dimension mismatch|^shapes? |"
    "^int too large to convert|^Python int"
)


def explain(
    error: Exception,
    name: str,
    arguments: Mapping[str, Any],
    defaults: Mapping[str, Any] = types.MappingProxyType({}),
) -> None:
    """Raise what a user can act on, if an error that leaves a function is no such thing."""
    if getattr(error, "explained", False):  # by a function within: it is this one that was called
        error = error.__cause__  # type: ignore[assignment]
    if not is_raw(error):
        return
    for parameter, value in arguments.items():
        unfit = _unfit(parameter, value)
        if unfit:
            _explained(_kind(error)(f"{name}: {unfit}"), error)
    if _of_a_user(error):
        return
    name = _OPERATORS.get(name, name)
    text = str(error).strip().rstrip(".") or type(error).__name__
    if cure := cure_of(text):
        _explained(_kind(error)(f"{name}: {text}. {cure}"), error)
    given = ", ".join(f"{k}={shown(v)}" for k, v in arguments.items() if not _is_nothing(v))
    if where := _mistake_of_ours(
        error, {k: v for k, v in arguments.items() if k not in defaults or v is not defaults[k]}
    ):
        said = (
            f"{name} failed inside, with {given}: {type(error).__name__}: {text}, in {where}. No argument "
            "seems to be wrong: this is a mistake in mirabelle. Please report it, with this text."
        )
        _explained(_kind(error)(said), error)
    said = (
        f"{name} cannot work with what it was given, {given}: {text}. One of the arguments is of another kind, "
        f"size or value than {name} takes; its documentation says what they are."
    )
    _explained(_kind(error)(said), error)


def _mistake_of_ours(error: Exception, arguments: Mapping[str, Any]) -> str:
    """The line of ours that raised an error which cannot come of the arguments; empty of any other error.

    Names that are not there, an attribute that our own arrays lack, None and keys that nobody gave: what speaks
    of these would send a user looking for a mistake in a call that has none.
    """
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    module = "" if at is None else str(at.tb_frame.f_globals.get("__name__", ""))
    if at is None or module.partition(".")[0] != "mirabelle":
        return ""
    values = list(_within(arguments))
    text = str(error)
    if isinstance(error, (NameError, AssertionError)):
        ours = True
    elif isinstance(error, KeyError):
        ours = not any(v is error.args[0] or str(v) in text for v in values if not _is_array(v))
    elif isinstance(error, AttributeError) and error.obj is not None:
        kind = error.obj if isinstance(error.obj, type) else type(error.obj)
        ours = kind.__module__.partition(".")[0] == "mirabelle" and (
            _is_array(error.obj) or not any(v is error.obj for v in values)
        )
    else:
        given = any(v is None or (_is_array(v) and v.dtype.kind not in "biufc") for v in values)
        ours = isinstance(error, (AttributeError, TypeError)) and "NoneType" in text and not given
    return f"{module}, line {at.tb_lineno}" if ours else ""


def _within(arguments: Mapping[str, Any]) -> Iterator[Any]:
    """What was given, and what is in lists that were."""
    for value in arguments.values():
        yield value
        if isinstance(value, Mapping):
            yield from (*value.keys(), *value.values())
        elif isinstance(value, (list, tuple)):
            for part in value[:1000]:
                yield part
                if isinstance(part, (list, tuple)):
                    yield from part[:1000]


def _is_nothing(value: Any) -> bool:
    return value is None or value is False or (isinstance(value, (dict, tuple)) and not value)


# How functions that are operators are written.
_OPERATORS = {"getitem": "x[index]", "setitem": "x[index] = value"}


def _axes(n: int) -> str:
    if n == 0:
        return "An array without dimensions has no axis: leave axis= away."
    return f"Its axes are 0 to {n - 1}, and -1 is the last one." if n > 1 else "Its only axis is 0, or -1."


def _places(n: int) -> str:
    if n == 0:
        return "Nothing is along this axis: ask for `x.size` first."
    return f"Its indices are 0 to {n - 1}, and -1 is the last one; parts, `x[:{n + 1}]`, may reach beyond."


# What libraries say of values that cannot be meant, and the cure; of the numbers they name it may be made.
CURES: list[tuple[str, str | Callable[..., str]]] = [
    (r"axis -?\d+ is out of bounds for array of dimension (\d+)", lambda n: _axes(int(n))),
    (r"index -?\d+ is out of bounds for axis \d+ with size (\d+)", lambda n: _places(int(n))),
    ("too many indices for array", "At most one index a dimension: `x[i]`; `x[:, None]` adds one."),
    ("boolean index did not match", "A mask has the shape of the first dimensions, or of all: `x[x > 0]`."),
    ("Percentiles must be", "Percent go from 0 to 100, `mb.percentile(x, 95)`; of fractions there is "
     "`mb.quantile(x, 0.95)`."),
    ("Quantiles must be", "Fractions go from 0 to 1, `mb.quantile(x, 0.95)`; of percent there is "
     "`mb.percentile(x, 95)`."),
    ("`bins` must", "Give how many bins, or their edges in order: `bins=10`."),
    (r"Cannot cast array data .* to dtype\('(\w+)'\)", lambda t: f"Convert it: `x.astype(mb.{t})`."),
    ("negative dimensions|contain negative|no negative|negative values", "Give whole numbers from 0 on."),
    ("need at least one array", "Give a list with one array or more: `[x, y]`."),
    ("to have same length", "Give as many values of one as of the other: `mb.polyfit(x, y, 1)`."),
]  # fmt: skip


def cure_of(text: str) -> str:
    """The cure for what a library says; empty if there is none.

    >>> cure_of("axis 5 is out of bounds for array of dimension 2")
    'Its axes are 0 to 1, and -1 is the last one.'
    """
    for pattern, cure in CURES:
        if found := re.search(pattern, text):
            return cure if isinstance(cure, str) else cure(*found.groups())
    return ""


def _explained(made: Any, error: Exception) -> NoReturn:
    made.explained = True
    raise made from error


def is_raw(error: Exception) -> bool:
    """Whether an error is one of the interpreter, or speaks of types inside, and not to who called a function.

    >>> is_raw(TypeError("'int' object is not iterable")), is_raw(ValueError("Sizes are whole numbers."))
    (True, False)
    """
    if isinstance(error, (MirabelleError, np.linalg.LinAlgError, np.exceptions.AxisError)):
        return False
    if isinstance(error, RecursionError):
        return True
    crash = isinstance(error, (AttributeError, KeyError, AssertionError, NameError))
    if not crash and not isinstance(error, (TypeError, ValueError, IndexError, OverflowError)):
        return False
    text = str(error.args[0] if error.args else "").strip()  # (a KeyError's text is in quotes)
    if text.endswith((".", ".)", "`", "?")) or "() got an unexpected keyword argument" in text:
        return False  # (of a word that is no parameter Python speaks clearly; advice.py says which ones are)
    return crash or not NUMPYS.search(text)


def _kind(error: Exception) -> Any:
    for kind in (TypeError, IndexError, ValueError):
        if isinstance(error, kind):
            return kind
    return TypeError


def _of_a_user(error: Exception) -> bool:
    """Whether a function of a user raised an error, or called what did."""
    at = error.__traceback__
    at = at.tb_next if at is not None else None  # (the first frame is of the function itself)
    while at is not None:
        module = str(at.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        if module not in LIBRARIES and not at.tb_frame.f_code.co_filename.startswith("<"):
            return True
        at = at.tb_next
    return False


def shown(value: Any) -> str:
    """A value in a few words.

    >>> shown([1] * 99), shown(np.ones((2, 3))), shown(dict)
    ('[1, 1, 1, 1, 1, 1, ...]', 'an array of the shape (2, 3)', 'dict')
    """
    if isinstance(value, (np.generic, int, float, complex)):
        return f"{value!r:.40}"
    if _is_array(value):  # of which no value is read
        return f"an array of the shape {tuple(value.shape)}"
    if isinstance(value, type) or inspect.isroutine(value):
        return value.__name__
    if inspect.ismodule(value):
        return f"the module {value.__name__}"
    try:
        text = reprlib.repr(value)
    except Exception:
        return f"a {type(value).__name__}"
    return f"a {type(value).__name__}" if " object at 0x" in text else text


# What Python's own types are taken for, and are not: (types, how an array is made of what they hold)
NO_ARRAYS: tuple[tuple[tuple[type, ...], str], ...] = (
    ((str, bytes), "A text is no number: convert it, `float(text)`."),
    (
        (type(None),),
        "None is what a function without a `return` gives, and `x.sort()`, which works in place.",
    ),
    ((types.GeneratorType, map, filter, zip), "Take its elements first: `mb.HostArray(list(values))`."),
    ((dict,), "Take its values: `mb.HostArray(list(d.values()))`."),
    ((set, frozenset), "A set has no order: `mb.HostArray(sorted(values))`."),
    (
        (types.FunctionType, types.MethodType, types.BuiltinFunctionType),
        "It is no array: call it, `f(x)`.",
    ),
)


def no_array(kind: type) -> str:
    """What to do with a thing of Python's that is no array; empty of all others.

    >>> no_array(str), no_array(float)
    ('A text is no number: convert it, `float(text)`.', '')
    """
    return next((cure for kinds, cure in NO_ARRAYS if issubclass(kind, kinds)), "")


# Arguments by their names


def _unfit(parameter: str, value: Any) -> str:
    """What is wrong with an argument, and what is expected; empty if it may well be meant."""
    accepts = ACCEPTS.get(parameter)
    if accepts is None or (value is None and parameter not in REQUIRED):
        return ""
    fits, noun, cure = accepts
    try:
        why = fits(value)
    except Exception:
        return ""
    if why is True:
        return ""
    what = noun if why is False else why
    return f"{parameter}={shown(value)} {'is ' if why is False else ''}{what}. {cure}"


def _whole(value: Any) -> bool:
    try:
        operator.index(value)
    except TypeError:
        return _is_array(value) and not value.shape and value.dtype.kind in "iu"
    return True


def _row_of(fits: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: fits(value) or (isinstance(value, (tuple, list)) and all(fits(v) for v in value))


def _size(value: Any) -> bool:
    return _whole(value) and value >= 0


def _sizes(value: Any) -> bool:
    if _is_array(value):
        return value.dtype.kind in "iu" and len(value.shape) <= 1
    return _row_of(_size)(value) or isinstance(value, range)


def _sizes_or_rest(value: Any) -> bool:
    return _row_of(_whole)(value) or _sizes(value)


def _number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex, np.number, np.bool_)) or _is_array(value)


def _is_array(value: Any) -> bool:
    return isinstance(getattr(value, "shape", None), tuple) and hasattr(value, "dtype")


def _dtype(value: Any) -> bool:
    try:
        return np.dtype(value).kind in "biufc"
    except (TypeError, ValueError, SyntaxError):
        return False


def _data(value: Any) -> Any:
    """Whether numbers can be made of a value; if not, why."""
    return True if not (why := _no_data(value, ())) else why


def _no_data(value: Any, around: tuple[Any, ...]) -> str:
    if _is_array(value):
        return "" if value.dtype.kind in "biufc" else f"holds {value.dtype}, and no numbers"
    if isinstance(value, (list, tuple)):
        if any(value is a for a in around):
            return "contains itself"
        if len(around) > 64:
            return "holds lists nested more than 64 deep, and arrays have at most 64 dimensions"
        found = [_no_data(v, (*around, value)) for v in value[:1000]]
        if why := next(filter(None, found), ""):
            return why if why.startswith(("contains", "holds")) else f"holds something that {why}"
        return "" if len({_shape(v) for v in value[:1000]}) < 2 else "has rows of several lengths"
    if isinstance(value, (bool, float, complex, range, memoryview, bytearray)):
        return ""
    if isinstance(value, int):
        return "" if abs(value) < 2**64 else "is larger than any integer that an array holds"
    if not isinstance(value, type) and any(
        hasattr(value, n) for n in ("__array__", "__array_interface__", "__dlpack__", "__float__", "__index__")
    ):
        return ""
    return "is nothing that an array can be made of"


def _shape(value: Any) -> tuple[int, ...]:
    if isinstance(value, (list, tuple)):
        return (len(value), *(_shape(value[0]) if value else ()))
    return value.shape if _is_array(value) else ()


def _arrays(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return next((why for v in value if (why := _no_data(v, (value,)))), "") or True
    return _is_array(value) or (
        hasattr(value, "__iter__") and not isinstance(value, (str, bytes, dict, set, type))
    )


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _place(value: Any) -> bool:
    return (
        isinstance(value, type)
        or hasattr(value, "family")
        or (callable(value) and not inspect.isroutine(value))
    )


def _file(value: Any) -> bool:
    return isinstance(value, (str, PurePath, bytes)) or hasattr(value, "read")


def _same(names: str, fits: Callable[[Any], Any], noun: str, cure: str) -> dict[str, Any]:
    return dict.fromkeys(names.split(), (fits, noun, cure))


def _counts(value: Any) -> bool:
    return _whole(value) or _is_array(value) or isinstance(value, list)


def _option(value: Any) -> bool:
    return isinstance(value, (str, int, tuple, list))


def _lengths(value: Any) -> bool:
    return _row_of(_whole)(value) or _is_array(value)


# What is expected: what fits, what is said of what does not, the cure, the names of parameters.
EXPECTED: list[tuple[Callable[[Any], Any], str, str, str]] = [
    (
        _data, "", "Give numbers, (nested) lists of numbers or an array: `mb.HostArray([1.0, 2.0])`.",
        "x a b x1 x2 x3 x4 arr ary m v y u w z p A X values array element test_elements ar1 ar2 a1 a2 ar "
        "object obj sample xp fp prototype filt arg1 arg2 val choices condition mask seq_of_zeros "
        "primals tangents",
    ),
    (_data, "", "Give a number or an array: `1.0`.", "fill_value weights indices where initial"),
    (_arrays, "no row of arrays", "Give a list of arrays: `[x, y]`.",
     "arrays tup arys operands matrices factors choicelist condlist keys"),
    (_row_of(_whole), "no axis", "Give a whole number, or a tuple of them: `axis=0`.",
     "axis axes axisa axisb axisc axis1 axis2 source destination"),
    (_sizes_or_rest, "no shape", "A shape is a whole number, not negative, or a tuple of them: `(3, 4)`.",
     "shape new_shape window_shape"),
    (_sizes, "no size", "Give a whole number that is not negative: `3`.",
     "dims dimensions n_rows n_cols num minlength N count"),
    (_lengths, "no row of lengths", "Give a tuple of them: `(8, 8)`.", "s"),
    (_lengths, "no number of parts", "Give a whole number, or where to cut: `3`, `[2, 5]`.",
     "indices_or_sections"),
    (_counts, "no integer", "Give one: `1`.", "k n offset decimals ndmin deg ndim edge_order"),
    (_number, "no number", "Give one: `1.0`.",
     "ddof correction tol rcond rtol atol dx period start stop step base M beta d left right"),
    (_dtype, "no dtype of numbers", "Give one: `dtype=mb.float64`.", "dtype"),
    (_option, "no text", "This argument is one of the texts that the function's documentation lists.",
     "order casting mode kind method side indexing bitorder trim subscripts"),
    (_row_of(_is_array), "no array to write to", "Give one of our arrays: `out=y`.", "out"),
    (_place, "no place", "Give an array type: `device=mb.HostArray`.", "device"),
    (_file, "no file", "Give a path: `'data.npy'`.", "file fname path"),
    (callable, "no function", "Give one: `lambda x: x`.",
     "f func func1d function body predicate if_true if_false mask_func"),
]  # fmt: skip
ACCEPTS: dict[str, tuple[Any, ...]] = {
    name: tuple(expected) for *expected, names in EXPECTED for name in names.split()
}
# Parameters for which None stands for nothing.
REQUIRED = {name for i in (0, 2, 14, 15) for name in EXPECTED[i][-1].split()}


def explained(function: F) -> F:
    """A function whose errors are looked at (`explain`). A generic function's are.

    >>> @explained
    ... def rows(shape): return shape[0]
    >>> rows("ab"), rows.__name__
    ('a', 'rows')
    """
    signature = inspect.signature(telling(function))

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            try:
                given = signature.bind(*args, **kwargs).arguments
            except TypeError:
                given = None  # Python has said what is missing
            if given is None:
                raise
            explain(error, function.__name__, given)
            raise

    return call  # type: ignore[return-value]
