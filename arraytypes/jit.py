"""`@jit`: functions that loop over elements, compiled for arrays in host memory.

The compiled function gets the memory of its arguments, strided as it is, without a copy. What
it writes goes to the arrays under the rule of every write: what was said before keeps its
values.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.host import HostArray, share
from mirabelle.arraytypes.lending import Use, flattened, lender, rebuilt
from mirabelle.arraytypes.usercode.effects import effects_of
from mirabelle.dispatch import counters, loading
from mirabelle.dispatch.errors import PlaceError
from mirabelle.dispatch.generic import generic
from mirabelle.dispatch.tree import Leaf

_PLAIN = {type(None), bool, int, float, complex, str}


@overload
def jit(function: Callable[..., Any], /) -> Jitted: ...
@overload
def jit(
    *, parallel: bool = False, fastmath: bool = False, nogil: bool = True, boundscheck: bool = False
) -> Callable[[Callable[..., Any]], Jitted]: ...
def jit(
    function: Callable[..., Any] | None = None, /, **options: bool
) -> Jitted | Callable[[Callable[..., Any]], Jitted]:
    """Compile a function that loops over elements; call it with arrays in host memory.

    Where array operations cannot say it (each step needs the one before), write the loop and put
    `@mb.jit` above it. Arrays of this package, wrapped or not, NumPy arrays, numbers and tuples
    of these may be mixed. Nothing is copied: the function reads and writes the arrays' own
    memory. What it returns comes back as numbers and HostArrays.

    Parameters
    ----------
    function : callable
        A function of arrays and numbers, in the part of Python that Numba compiles.
    **options : bool
        `parallel`, `fastmath`, `nogil` and `boundscheck`, as Numba means them.

    Returns
    -------
    callable
        It is called as `function` is, with arrays. With options alone (`@mb.jit(parallel=True)`), a
        decorator that makes such a function.

    Examples
    --------
    >>> import mirabelle as mb
    >>> @mb.jit
    ... def cholesky(A):
    ...     for i in range(A.shape[0]):
    ...         for j in range(i):
    ...             for k in range(j):
    ...                 A[i, j] -= A[i, k] * A[j, k]
    ...             A[i, j] /= A[j, j]
    ...         for k in range(i):
    ...             A[i, i] -= A[i, k] * A[i, k]
    ...         A[i, i] = A[i, i] ** 0.5
    >>> A = mb.HostArray([[4.0, 0.0], [2.0, 5.0]])
    >>> before = A * 1                 # still pending, and not changed by what follows
    >>> cholesky(A)
    >>> print(A)
    [[2. 0.]
     [1. 2.]]
    >>> print(before)
    [[4. 0.]
     [2. 5.]]

    Inside, `math` and `np` functions are compiled ones, indices are NumPy's (negative ones count
    from the end) and are not checked unless `boundscheck=True`, and dividing by zero gives
    infinity or NaN as with NumPy's numbers. Another `@mb.jit` function may be called. Global
    numbers and arrays are constants: pass as an argument what changes.

    `parallel=True` runs `for i in numba.prange(n)` over threads, `fastmath=True` lets sums be
    reordered, `nogil=False` keeps the interpreter's lock. The function as it was is `f.python`,
    `f.inspect()` tells what was compiled. Compiled code is kept on disk for the next process.
    """
    unknown = set(options) - {"parallel", "fastmath", "nogil", "boundscheck"}
    if unknown:
        raise TypeError(
            f"mb.jit has no option {', '.join(sorted(unknown))}. Its options are parallel, fastmath, nogil and "
            "boundscheck; everything is compiled without the interpreter, and kept on disk, always."
        )
    if function is None:
        return lambda f: jit(f) if not options else _jitted(f, options)
    return _jitted(function, options)


def _jitted(function: Any, options: dict[str, bool]) -> Jitted:
    if isinstance(function, Jitted):
        function = function.python
    function = getattr(function, "py_func", function)
    if not inspect.isfunction(function):
        raise TypeError(
            f"mb.jit compiles Python functions, and {function!r} is a {type(function).__name__}. "
            "Put it above a `def`: `@mb.jit`."
        )
    if inspect.iscoroutinefunction(function) or any(
        p.kind in (p.VAR_KEYWORD, p.KEYWORD_ONLY) for p in inspect.signature(function).parameters.values()
    ):
        raise TypeError(
            f"{function.__name__}() cannot be compiled: compiled functions have no keyword-only parameters, no "
            "**kwargs and are not async. Name each parameter: `def f(x, y, n=10):`."
        )
    return Jitted(function, options)


@generic
def engine_of(jitted: Any) -> Any:
    """What compiles a function of `mb.jit` and calls it."""


@functools.partial(generic, arity=1)
def error_of(jitted: Any, error: Exception, views: Any) -> Exception | None:
    """A better error for what the compiler raised at a call with `views`; None if it is good."""


@functools.partial(generic, arity=1)
def is_coming(jitted: Any, args: Any) -> Any:
    """Is its code for these arguments being compiled elsewhere? (If it is nowhere, somebody is asked to.)

    Raises the error if it turned out there that it cannot be.
    """


class Jitted:
    """A function made by `@mb.jit`."""

    __module__ = "mirabelle"
    __name__: str
    __qualname__: str
    python: Callable[..., Any]

    def __init__(self, function: Any, options: dict[str, bool]) -> None:
        functools.update_wrapper(self, function)
        # As Numba's own functions name it.
        self.python = self.py_func = function
        self.options = options
        self._signature = inspect.signature(function)
        parameters = list(self._signature.parameters.values())
        self._varargs = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        self._names = [p.name for p in parameters]
        # A number no call has: those always pass through `_filled`.
        self._arity = -1 if self._varargs else len(parameters)
        self._plans: dict[tuple[type, ...], Callable[[tuple[Any, ...]], Any]] = {}
        self._effects: dict[str, int] | None = None
        self._engine: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != self._arity:
            args = self._filled(args, kwargs)
        plan = self._plans.get(tuple(map(type, args)))
        if plan is None:
            plan = self._planned(args)
        return plan(args)

    def _filled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by position, defaults included."""
        if self._varargs and not kwargs and len(args) >= len(self._names) - 1:
            return args
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as e:
            raise TypeError(f"{self.__name__}() {e}. Its parameters are {self._signature}.") from None
        bound.apply_defaults()
        return bound.args

    # What the function does, and what runs it

    @property
    def effects(self) -> dict[str, int]:
        """For each parameter 0 (only read), 1 (perhaps written) or 2 (written)."""
        if self._effects is None:
            self._effects = effects_of(self.python)
        return self._effects

    @property
    def engine(self) -> Any:
        """Numba's dispatcher of the function."""
        if self._engine is None:
            self._engine = engine_of(self)
        return self._engine

    @property
    def _numba_type_(self) -> Any:
        """Compiled code that names this function calls its compiled form."""
        return self.engine._numba_type_

    def inspect(self) -> str:
        """What was compiled so far, and what the function does to its parameters.

        >>> import mirabelle as mb
        >>> @mb.jit
        ... def total(x):
        ...     s = 0.0
        ...     for v in x:
        ...         s += v
        ...     return s
        >>> total(mb.HostArray([1.0, 2.0]))
        3.0
        >>> print(total.inspect())
        total(x)
          x: only read
          compiled for (Array(float64, 1, 'C', False, aligned=True),) -> float64
        """
        said = ("only read", "perhaps written", "written")
        lines = [f"{self.__name__}{self._signature}"]
        lines += [f"  {name}: {said[how]}" for name, how in self.effects.items()]
        overloads = self._engine.overloads if self._engine is not None else {}
        lines += [f"  compiled for {types} -> {c.signature.return_type}" for types, c in overloads.items()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<mb.jit function {self.__qualname__}{self._signature}>"

    def __reduce__(self) -> str:
        return self.__qualname__

    # Calls, by the types of their arguments

    def _planned(self, args: tuple[Any, ...]) -> Callable[[tuple[Any, ...]], Any]:
        """What calls with arguments of these types do; decided once."""
        types = tuple(map(type, args))
        if any(issubclass(t, (tuple, list, dict, set)) for t in types):
            return self._nested_call
        traced = _traced_family(types)
        if traced is not None:
            return functools.partial(self._recorded, traced)
        lend = self._lender(types, self._uses(len(args)))
        run = self._run

        def plan(args: tuple[Any, ...]) -> Any:
            views = lend(args)
            result = run(views)
            return result if type(result) in _PLAIN else returned(result, args, views)

        return self._plans.setdefault(types, plan)

    def _nested_call(self, args: tuple[Any, ...]) -> Any:
        """A call with tuples among its arguments."""
        flat, uses = flattened(self.__name__, args, self._uses(len(args)))
        traced = _traced_family(tuple(map(type, flat)))
        if traced is not None:
            return self._recorded(traced, args)
        views = self._lender(tuple(map(type, flat)), uses)(flat)
        result = self._run(rebuilt(args, views))
        return result if type(result) in _PLAIN else returned(result, flat, views)

    def _recorded(self, family: Any, args: tuple[Any, ...]) -> Any:
        """A call while a function is compiled."""
        from mirabelle.arraytypes.programs import jitcalls

        return jitcalls.recorded(self, family, args)

    def _uses(self, n: int) -> list[Use]:
        last = len(self._names) - 1
        return [(self._names[min(i, last)], self.effects[self._names[min(i, last)]]) for i in range(n)]

    def _lender(self, types: tuple[type, ...], uses: list[Use]) -> Any:
        return lender(self.__name__, types, uses, HostArray, self._refuse_place)

    def _refuse_place(self, name: str, x: Any) -> Any:
        f = self.__name__
        here = (
            f"{f}() loops over single elements on the host, and {name} is a {type(x).__name__} on {x.place}. "
        )
        if x.place.kind == "distributed":
            raise PlaceError(
                f"{here}Loop over each process's part, `{f}({name}.local)`, where elements of others are not "
                f"needed; else move all of it, `{f}(mb.adapt(mb.HostArray, {name}))`."
            )
        raise PlaceError(
            f"{here}Move it there and back, `{f}(mb.adapt(mb.HostArray, {name}))`, or write the loop as an "
            "index-space kernel with `@mb.kernel`, which runs on the host and on cards."
        )

    def _run(self, views: list[Any]) -> Any:
        """Call the compiled function (compile it, for types that are new)."""
        if counters.active:
            counters.add(launches=1)
        try:
            return (self._engine or self.engine)(*views)
        except Exception as e:
            better = error_of(self, e, views)
            if better is None:
                raise
            raise better from None


def _traced_family(types: Sequence[type]) -> Any:
    """The type of arrays that only record what is done to them, if some are of such."""
    from mirabelle.arraytypes.programs import jitcalls  # which stands on this module

    return jitcalls.family_among(types)


def returned(result: Any, args: Sequence[Any], views: list[Any]) -> Any:
    """What a compiled function returned, as a user holds it."""
    if isinstance(result, np.ndarray):
        return _returned_array(result, args, views)
    if isinstance(result, (tuple, list)):
        made: list[Any] = []
        lent = [v for v in views if isinstance(v, np.ndarray)]
        owners = [a for a, v in zip(args, views, strict=True) if isinstance(v, np.ndarray)]
        for item in result:
            x = returned(item, owners, lent)
            if isinstance(item, np.ndarray):
                # Two results may be views of one array: the second is a copy then.
                lent.append(item)
                owners.append(x)
            made.append(x)
        return type(result)._make(made) if hasattr(result, "_make") else type(result)(made)
    return result


def _returned_array(result: np.ndarray, args: Sequence[Any], views: list[Any]) -> Any:
    if result.dtype.kind not in "biufc":
        return result
    for arg, view in zip(args, views, strict=True):
        if not isinstance(view, np.ndarray):
            continue
        if view is result:
            return arg
        if np.may_share_memory(result, view):
            if isinstance(arg, np.ndarray):
                return share(result)
            # Part of an array's memory: the array may get other memory, so this is a copy.
            return wrap(HostArray, Leaf(HostArray._upload(result)))
    return wrap(HostArray, Leaf(result))


loading.complete(__name__)
