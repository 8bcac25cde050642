"""What functions of users return, looked at where it comes back: one value a field, or a sentence.

Equations, boundary conditions and the treatments of second derivatives are classes that users derive from.
Their methods are looked after when a class is made (`looked_after`), whoever calls them afterwards; plain
functions (sources, numerical fluxes, initial states) where they are called. Only numbers of fields, shapes and
dtypes are looked at, no values: programs are checked while they are captured, and steps cost nothing.

>>> def source(u, x, t, equations): return 0.0
>>> one_each(source(None, None, 0.0, None), source, ("rho", "rho_v1", "rho_e"), (4, 9))  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
ValueError: `source` (...:1) returned the number 0.0. It has to \
return 3 fields (rho, rho_v1, rho_e). Return a tuple of one array or number each, `return (0.0, 0.0, 0.0)`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Shape = tuple[int, ...]
Names = Sequence[str] | int | None


def called(function: Any) -> str:
    """A function's name and where it stands.

    >>> called(np.add), called(called).startswith("`called` (")
    ('`add`', True)
    """
    plain = inspect.unwrap(getattr(function, "__func__", function))
    method = vars(type(plain)).get("__call__")  # of an object that can be called
    code = getattr(plain, "__code__", None) or getattr(method, "__code__", None)
    name = getattr(plain, "__qualname__", None) or getattr(plain, "__name__", None) or type(plain).__name__
    name = name.rpartition("<locals>.")[2]
    return f"`{name}` ({code.co_filename}:{code.co_firstlineno})" if code else f"`{name}`"


def ensure(fits: Any, said: str) -> None:
    """A ValueError that says it, unless something fits."""
    if not fits:
        raise ValueError(said)


def check_takes(function: Any, names: str) -> None:
    """Is a function one of these parameters? (Of one that does not say nothing is known.)

    >>> check_takes(lambda x: x, "x, t")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    TypeError: `<lambda>` (...) is called as f(x, t), and takes (x): write it as `lambda x, t: ...`.
    """
    ensure(callable(function), f"{function!r} is no function. Write one, `lambda {names}: ...`.")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*names.split(", "))
    except TypeError:
        raise TypeError(
            f"{called(function)} is called as f({names}), and takes {signature}: write it as "
            f"`lambda {names}: ...`."
        ) from None


def described(values: Any) -> str:
    """What came, in a few words.

    >>> described((1.0, 2.0)), described(None), described(np.ones((2, 3)))
    ('a tuple of the length 2', 'None (is a `return` missing?)', 'one array of the shape (2, 3)')
    """
    if values is None:
        return "None (is a `return` missing?)"
    if isinstance(values, tuple | list):
        return f"a {'list' if isinstance(values, list) else 'tuple'} of the length {len(values)}"
    if _is_number(values) and not np.ndim(values):
        return f"the number {values!r}" if isinstance(values, bool | int | float | complex) else "one number"
    if hasattr(values, "shape") and hasattr(values, "dtype"):
        return f"one array of the shape {tuple(values.shape)}"
    if isinstance(values, str | bytes):
        return f"the text {values!r}"
    return f"an object of the type {type(values).__name__}"


def one_each(
    values: Any, function: Any, names: Names, shape: Shape | None = None, who: str = "", cure: str = ""
) -> tuple[Any, ...]:
    """What a function returned as a tuple with one value for each of `names`, or so many; None is any number.

    `shape` is what each is stretched to; an array of one axis more than that, or of numbers, is fields along
    its first axis. `who` says what the function is for, `cure` what could be pasted.
    """
    n = names if isinstance(names, int) or names is None else len(names)
    fields = values
    if hasattr(values, "dtype") and np.ndim(values):
        stacked = shape is None or values.ndim == len(shape) + 1 or (values.ndim == 1 and len(shape) > 1)
        fields = tuple([values[i] for i in range(values.shape[0])]) if stacked else None
    if not isinstance(fields, tuple | list) or (n is not None and len(fields) != n):
        told = f" ({', '.join(names)})" if isinstance(names, Sequence) else ""
        wanted = "a tuple of fields" if n is None else f"{n} field{'s' * (n != 1)}{told}"
        numbers = "(0.0, ...)" if n is None or n > 8 else f"({'0.0, ' * (n - 1)}0.0{',' * (n == 1)})"
        cure = cure or f"return {numbers}"
        raise ValueError(
            f"{_who(who, function)} returned {described(values)}. It has to return {wanted}. "
            f"Return a tuple of one array or number each, `{cure}`."
        )
    labels = names if isinstance(names, Sequence) else [str(i) for i in range(len(fields))]
    for label, field in zip(labels, fields, strict=True):
        _fits(field, function, shape, who, f" for the field {label}")
    return tuple(fields)


def one(value: Any, function: Any, shape: Shape | None = None, who: str = "") -> Any:
    """What a function returned, if it is one number or array that can be stretched to a shape."""
    _fits(value, function, shape, who, "")
    return value


def _who(who: str, function: Any) -> str:
    return f"{who} {called(function)}".lstrip()


def _is_number(value: Any) -> bool:
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    return isinstance(value, bool | int | float) if kind is None else kind in "biuf"


def _fits(value: Any, function: Any, shape: Shape | None, who: str, what: str) -> None:
    if not _is_number(value):
        dtype = getattr(value, "dtype", None)
        came = described(value) if dtype is None else f"{described(value)} of {dtype}"
        raise ValueError(
            f"{_who(who, function)} returned {came}{what}. That has to be an array of real numbers, or "
            "one of them: a function of its arguments, such as `0.0 * u[0]`."
        )
    if shape is not None and not _stretches(np.shape(value), shape):
        raise ValueError(
            f"{_who(who, function)} returned an array of the shape {tuple(value.shape)}{what}, and "
            f"what it was given has {shape}. Use operations that keep the shape of its arguments, or return "
            "one number; sums and products over axes want `keepdims=True`."
        )


def _stretches(own: Shape, shape: Shape) -> bool:
    tail = shape[len(shape) - len(own) :]
    return len(own) <= len(shape) and all(a in (1, b) for a, b in zip(own, tail, strict=True))


# Methods of classes


def common_shape(*given: Any) -> Shape | None:
    """What the arrays in tuples stretch to together; None if they do not.

    >>> common_shape((np.ones((2, 1)), 1.0), [(np.ones(3),)])
    (2, 3)
    """
    shapes: list[Shape] = []

    def look(values: Any) -> None:
        if isinstance(values, tuple | list):
            for v in values:
                look(v)
        elif hasattr(values, "shape") and hasattr(values, "dtype"):
            shapes.append(tuple(values.shape))

    look(given)
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def looked_after(kind: type, returns: Mapping[str, Callable[..., Names | type]]) -> None:
    """Have what methods of a class return looked at: `returns` says, by the methods' arguments, the names or
    the number of the fields; None for any number of them, `float` for one array."""
    for name, wanted in returns.items():
        method = vars(kind).get(name)
        if inspect.isfunction(method) and not hasattr(method, "_looked_after"):
            setattr(kind, name, _looking(method, wanted))


def _looking(method: Callable[..., Any], wanted: Callable[..., Names | type]) -> Callable[..., Any]:
    @functools.wraps(method)
    def look(self: Any, *args: Any, **kwargs: Any) -> Any:
        values = method(self, *args, **kwargs)
        given = (*args, *kwargs.values())
        names, shape = wanted(self, *given), common_shape(*given)
        if isinstance(names, type):
            return one(values, method, shape)
        return one_each(values, method, names, shape)

    look._looked_after = True  # type: ignore[attr-defined]
    return look
