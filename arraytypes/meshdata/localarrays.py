"""What a local kernel computes with while it is read: scalars and small arrays that record what is done.

A local kernel is a plain Python function of small arrays and numbers. It is run once with these in place
of numbers; its loops are thereby written out, and what remains is a graph of scalar operations
(`localgraph`). Where it branches on a value, it is run for both answers, and the results are chosen from.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from mirabelle.arraytypes.meshdata.localgraph import FUNCTIONS, OPERATORS, Graph
from mirabelle.dispatch.errors import UserFunctionError

_ALIASES = {
    "true_divide": "divide",
    "mod": "remainder",
    "fabs": "absolute",
    "abs": "absolute",
    "conj": "conjugate",
    "pow": "power",
    "float_power": "power",
    "invert": "logical_not",
}
# A kernel that branches on values more ways than this is refused: all ways are computed.
MOST_PATHS = 64
MOST_QUESTIONS = (
    10_000  # (one and the same is asked again and again by a `while` whose body does not change it)
)
_NUMBERS = (bool, int, float, complex, np.generic)


class Recorder:
    """One reading of a kernel: its graph, and the answers given where it asks for a truth value."""

    def __init__(self, name: str, graph: Graph, answers: list[bool]) -> None:
        self.name = name
        self.graph = graph
        self.answers = answers
        self.asked: list[int] = []
        self.questions = 0

    def decide(self, node: int) -> bool:
        """The answer to "is it true?": what this reading was told, and True where it is asked anew."""
        self.questions += 1
        if self.questions > MOST_QUESTIONS:
            self.too_many_paths()
        if node in self.asked:
            return self.answers[self.asked.index(node)]
        self.asked.append(node)
        if len(self.asked) > MOST_PATHS:
            self.too_many_paths()
        if len(self.answers) < len(self.asked):
            self.answers.append(True)
        return self.answers[len(self.asked) - 1]

    def fail(self, what: str) -> NoReturn:
        raise UserFunctionError(f"{self.name}() is no local kernel yet: {what}")

    def too_many_paths(self) -> NoReturn:
        self.fail(
            f"it branches on values in more than {MOST_PATHS} ways (a `while` on a value has no end here). "
            "Choose with np.where, np.minimum, np.maximum; loops are over constant ranges."
        )

    def node_of(self, x: Any) -> int:
        if isinstance(x, Scalar):
            return x._known()
        if isinstance(x, _NUMBERS):
            return self.graph.constant(x)  # type: ignore[arg-type]
        self.fail(f"it computes with {x!r}, a {type(x).__name__}. Local kernels compute with numbers.")

    def apply(self, op: str, *args: Any) -> Any:
        """An operation on scalars and numbers."""
        op = _ALIASES.get(op, op)
        if op == "positive":
            return args[0]
        if op == "square":
            op, args = "multiply", (args[0], args[0])
        elif op == "reciprocal":
            op, args = "divide", (1.0, args[0])
        elif op not in OPERATORS and op not in FUNCTIONS and op not in ("negative", "where"):
            self.fail(
                f"it uses {op}, which local kernels do not have. They have {', '.join(sorted(FUNCTIONS))}."
            )
        return self.scalar(self.graph.apply(op, *map(self.node_of, args)))

    def scalar(self, node: int) -> Any:
        """What stands for a node: its number, where it is constant."""
        value = self.graph.value_of(node)
        return Scalar(self, node) if value is None else value


class Scalar:
    """A number that is known only when the loop runs."""

    __slots__ = ("_node", "_recorder")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, recorder: Recorder, node: int) -> None:
        self._recorder = recorder
        self._node = node

    def _known(self) -> int:
        return self._node

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _ufunc(self._recorder, ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _function(self._recorder, function, args, kwargs)

    def __bool__(self) -> bool:
        return self._recorder.decide(self._known())

    def _number(self, what: str, cure: str) -> NoReturn:
        self._recorder.fail(f"it asks for {what} of a value that only the running loop knows. {cure}")

    def __float__(self) -> float:
        self._number("the float", "Use np.sqrt and the like in place of math's, and np.zeros for local arrays.")

    def __int__(self) -> int:
        self._number("the integer", "Use np.floor or np.trunc, which give numbers of the same kind.")

    def __index__(self) -> int:
        self._number("an index", "Local arrays are indexed with constants; choose with np.where.")

    def __complex__(self) -> complex:
        self._number("the complex number", "Compute with it as it is.")

    def __neg__(self) -> Any:
        return self._recorder.apply("negative", self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self._recorder.apply("absolute", self)

    def __invert__(self) -> Any:
        return self._recorder.apply("logical_not", self)

    @property
    def real(self) -> Any:
        return self._recorder.apply("real", self)

    @property
    def imag(self) -> Any:
        return self._recorder.apply("imag", self)

    def conjugate(self) -> Any:
        """The complex conjugate."""
        return self._recorder.apply("conjugate", self)

    def __repr__(self) -> str:
        return f"<a value of {self._recorder.name}>"


class Unset(Scalar):
    """An entry of an array that is to be written, before it is."""

    __slots__ = ("_where",)

    def __init__(self, recorder: Recorder, where: str) -> None:
        super().__init__(recorder, -1)
        self._where = where

    def _known(self) -> NoReturn:
        self._recorder.fail(
            f"it reads {self._where} before it has written it, and what stood there is not given. Say RW in "
            "place of WRITE, or write first."
        )


def _binary(op: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def forward(self: Scalar, other: Any) -> Any:
        if isinstance(other, (np.ndarray, list, tuple)):
            return NotImplemented
        return self._recorder.apply(op, self, other)

    def backward(self: Scalar, other: Any) -> Any:
        if isinstance(other, (np.ndarray, list, tuple)):
            return NotImplemented
        return self._recorder.apply(op, other, self)

    return forward, backward


_DUNDERS = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "truediv",
    "floor_divide": "floordiv",
    "remainder": "mod",
    "power": "pow",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
    "left_shift": "lshift",
    "right_shift": "rshift",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "equal": "eq",
    "not_equal": "ne",
}
for _op, _dunder in _DUNDERS.items():
    _forward, _backward = _binary(_op)
    setattr(Scalar, f"__{_dunder}__", _forward)
    if _dunder not in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Scalar, f"__r{_dunder}__", _backward)


class LocalArray(np.ndarray):
    """A small array of a local kernel, whose entries are scalars and numbers."""

    _recorder: Recorder | None = None

    def __array_finalize__(self, given: Any) -> None:
        self._recorder = getattr(given, "_recorder", None)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        return _ufunc(_recorder_of(*inputs, *kwargs.get("out", ())), ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _function(_recorder_of(self), function, args, kwargs)


def local_array(recorder: Recorder, entries: Any, shape: tuple[int, ...]) -> Any:
    """A local array of these entries (or of one number)."""
    made = np.empty(shape, object).view(LocalArray)
    made._recorder = recorder
    if isinstance(entries, list):
        for i, x in enumerate(entries):
            made.reshape(-1)[i] = x
    else:
        made[...] = entries
    return made


def _recorder_of(*given: Any) -> Recorder:
    for x in given:
        found = getattr(x, "_recorder", None)
        if found is not None:
            return found  # type: ignore[no-any-return]
    raise UserFunctionError("A local array is used outside of the loop whose kernel it belongs to.")


def _plain(x: Any) -> Any:
    """An operand as NumPy's array of objects."""
    if isinstance(x, Scalar):
        made = np.empty((), object)
        made[()] = x
        return made
    return np.asarray(x).astype(object) if not isinstance(x, np.ndarray) or x.dtype != object else np.asarray(x)


def _ufunc(recorder: Recorder, ufunc: Any, method: str, inputs: Any, kwargs: dict[str, Any]) -> Any:
    out = kwargs.pop("out", (None,))[0]
    name = ufunc.__name__
    plain = [_plain(x) for x in inputs]
    if name == "matmul" and method == "__call__":
        made = np.matmul(*plain) if plain[0].ndim and plain[1].ndim else recorder.fail("@ takes arrays.")
        made = _plain(made)
    elif method == "__call__" and not kwargs:
        made = np.frompyfunc(lambda *args: recorder.apply(name, *args), ufunc.nin, 1)(*plain)
        made = _plain(made)
    elif method == "reduce":
        made = _reduced(recorder, name, plain[0], **kwargs)
    elif method == "outer" and not kwargs:
        first = plain[0].reshape(plain[0].shape + (1,) * plain[1].ndim)
        made = np.frompyfunc(lambda *args: recorder.apply(name, *args), 2, 1)(first, plain[1])
    else:
        recorder.fail(f"it calls np.{name}.{method} with {', '.join(kwargs) or 'arrays'}. Write the loop.")
    if out is not None:
        np.asarray(out)[...] = made
        return out
    return _local(recorder, made)


def _local(recorder: Recorder, x: Any) -> Any:
    """What NumPy made of objects, as a local array or a scalar."""
    if not isinstance(x, np.ndarray) or not x.ndim:
        return x[()] if isinstance(x, np.ndarray) else x
    made = np.asarray(x).view(LocalArray)
    made._recorder = recorder
    return made


def _reduced(
    recorder: Recorder, name: str, x: Any, axis: Any = 0, keepdims: bool = False, initial: Any = None, **_: Any
) -> Any:
    axes = (
        range(x.ndim) if axis is None else {a % x.ndim for a in (axis if isinstance(axis, tuple) else (axis,))}
    )
    kept = [a for a in range(x.ndim) if a not in axes]
    moved = x.transpose(*kept, *axes).reshape(*(x.shape[a] for a in kept), -1)
    made = np.empty(moved.shape[:-1], object)
    for at in np.ndindex(made.shape):
        entries = list(moved[at])
        if initial is not None and isinstance(initial, (*_NUMBERS, Scalar)):
            entries.insert(0, initial)
        total = entries[0] if entries else {"add": 0.0, "multiply": 1.0}[name]
        for e in entries[1:]:
            total = recorder.apply(name, total, e)
        made[at] = total
    if keepdims:
        made = made.reshape([1 if a in axes else n for a, n in enumerate(x.shape)])
    return made


# NumPy's functions of local arrays


def _function(recorder: Recorder, function: Any, args: Any, kwargs: Any) -> Any:
    own = _FUNCTIONS.get(function)
    if own is not None:
        return own(recorder, *args, **kwargs)
    plain = [_without_type(x) for x in args]
    if any(isinstance(x, (LocalArray, Scalar)) for x in kwargs.values()):
        recorder.fail(f"np.{function.__name__} with these arguments is not known in local kernels.")
    return _local(recorder, function(*plain, **kwargs))


def _without_type(x: Any) -> Any:
    """An argument of NumPy's functions, which may be several arrays: np.stack, np.concatenate."""
    if isinstance(x, (list, tuple)):
        return type(x)([_without_type(e) for e in x])
    return _plain(x) if isinstance(x, (LocalArray, Scalar)) else x


def _where(recorder: Recorder, condition: Any, a: Any, b: Any) -> Any:
    choose = np.frompyfunc(lambda *args: recorder.apply("where", *args), 3, 1)
    return _local(recorder, _plain(choose(_plain(condition), _plain(a), _plain(b))))


def _det(recorder: Recorder, a: Any) -> Any:
    a = _square(recorder, a, "det")
    n = len(a)
    if n == 1:
        return a[0, 0]
    if n == 2:
        return a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    return (
        a[0, 0] * (a[1, 1] * a[2, 2] - a[1, 2] * a[2, 1])
        - a[0, 1] * (a[1, 0] * a[2, 2] - a[1, 2] * a[2, 0])
        + a[0, 2] * (a[1, 0] * a[2, 1] - a[1, 1] * a[2, 0])
    )


def _inv(recorder: Recorder, a: Any) -> Any:
    a = _square(recorder, a, "inv")
    n, scale = len(a), 1.0 / _det(recorder, a)
    made = local_array(recorder, 0.0, (n, n))
    if n == 1:
        made[0, 0] = scale
        return made
    for i in range(n):
        for j in range(n):
            if n == 2:
                minor = a[1 - j, 1 - i] if i == j else -a[i, j]
            else:
                (p, q), (r, s) = ((j + 1) % 3, (j + 2) % 3), ((i + 1) % 3, (i + 2) % 3)
                minor = a[p, r] * a[q, s] - a[p, s] * a[q, r]
            made[i, j] = minor * scale
    return made


def _solve(recorder: Recorder, a: Any, b: Any) -> Any:
    return _inv(recorder, a) @ b


def _square(recorder: Recorder, a: Any, name: str) -> Any:
    a = np.asarray(a)
    if a.ndim != 2 or a.shape[0] != a.shape[1] or not 1 <= len(a) <= 3:
        recorder.fail(
            f"np.linalg.{name} of a local array takes matrices of 1 x 1 to 3 x 3, not of shape {a.shape}."
        )
    return a


def _norm(recorder: Recorder, x: Any) -> Any:
    return recorder.apply("sqrt", _reduced(recorder, "add", np.asarray(x * x), axis=None)[()])


def _like(fill: float) -> Callable[..., Any]:
    return lambda recorder, x, **_: local_array(recorder, fill, np.shape(x))


def _copy(recorder: Recorder, x: Any, **_: Any) -> Any:
    return _local(recorder, np.array(_plain(x)))


def _sum(recorder: Recorder, x: Any, axis: Any = None, **kwargs: Any) -> Any:
    return _local(
        recorder, _reduced(recorder, "add", _plain(x), axis=axis, keepdims=bool(kwargs.get("keepdims")))
    )


def _extreme(name: str) -> Callable[..., Any]:
    return lambda recorder, x, axis=None: _local(recorder, _reduced(recorder, name, _plain(x), axis=axis))


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.linalg.det: _det,
    np.linalg.inv: _inv,
    np.linalg.solve: _solve,
    np.linalg.norm: _norm,
    np.zeros_like: _like(0.0),
    np.empty_like: _like(0.0),
    np.ones_like: _like(1.0),
    np.copy: _copy,
    np.sum: _sum,
    np.max: _extreme("maximum"),
    np.min: _extreme("minimum"),
    np.real: lambda recorder, x: _ufunc(recorder, _Named("real"), "__call__", (x,), {}),
    np.imag: lambda recorder, x: _ufunc(recorder, _Named("imag"), "__call__", (x,), {}),
}


class _Named:
    nin = 1

    def __init__(self, name: str) -> None:
        self.__name__ = name


class LocalNames:
    """What `np`, `math` and `mb` mean in a local kernel: functions that take scalars and local arrays."""

    def __init__(self, recorder: Recorder, given: Any) -> None:
        self._given = given
        self._recorder = recorder
        self.linalg = np.linalg

    def __getattr__(self, name: str) -> Any:
        recorder = self._recorder
        if name in ("zeros", "empty", "ones"):
            fill = 1.0 if name == "ones" else 0.0
            return lambda shape, dtype=None, **_: local_array(
                recorder, fill, tuple(shape) if np.iterable(shape) else (operator.index(shape),)
            )
        if name in ("array", "asarray"):
            return lambda x, dtype=None, **_: _copy(recorder, _nested(recorder, x))
        if name in ("eye", "identity"):
            return lambda n, *_: _local(recorder, np.eye(n).astype(object))
        if self._given is math or not hasattr(self._given, "ndarray"):
            constant = getattr(math, name, None)
            if isinstance(constant, (int, float)):
                return constant
        return getattr(np, _MATH.get(name, name))


_MATH = {"pow": "power", "acos": "arccos", "asin": "arcsin", "atan": "arctan", "atan2": "arctan2"}
_MATH |= {"acosh": "arccosh", "asinh": "arcsinh", "atanh": "arctanh", "concat": "concatenate"}


def _nested(recorder: Recorder, x: Any) -> Any:
    """Lists of scalars as an array of objects."""
    if isinstance(x, (list, tuple)):
        return np.stack([_plain(_nested(recorder, e)) for e in x]) if x else np.empty(0, object)
    return _plain(x)
