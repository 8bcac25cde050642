"""Derivatives that users give: `@mb.autodiff.rule(f)`."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.dispatch import verbs
from mirabelle.dispatch.misuse import explained

F = TypeVar("F", bound=Callable[..., Any])
# Of scalar functions, those that are broadcast: a function of the operands, written with array functions, that
# returns the derivative by each (one, or a tuple).
SCALAR_RULES: weakref.WeakKeyDictionary[Callable[..., Any], Callable[..., Any]] = weakref.WeakKeyDictionary()
# What is called when there is a new rule: it may be in what was worked out before.
forgetting: list[Callable[[], None]] = []


def rule(f: Callable[..., Any], *, batched: bool = False) -> Callable[[F], F]:
    """Say what the derivative of a function is; `f` is one of three kinds.

    Parameters
    ----------
    f : callable
        A scalar function, a function of arrays, or an elementwise operation.
    batched : bool, default False
        Whether a rule by tangents is called once for all directions, with an axis more in front.

    Returns
    -------
    callable
        A decorator, which makes a function the rule, in place of an older one, and returns it unchanged.

    Notes
    -----
    *A function of scalars* of your own, that is broadcast (or an elementwise function of mirabelle). The rule
    gets the operands, as arrays, and returns the derivative, or a tuple of them, one by each operand:

    >>> import mirabelle as mb
    >>> def softplus(x): return math.log1p(math.exp(x))
    >>> import math
    >>> @mb.autodiff.rule(softplus)
    ... def _(x): return 1 / (1 + mb.exp(-x))
    >>> print(mb.autodiff.gradient(lambda x: mb.sum(mb.broadcast(softplus, x)), mb.HostArray([0.0])))
    [0.5]

    *A function of arrays* (`mb.linalg.qr`, or your own, see `mb.autodiff.differentiable`). The rule gets the
    operands and how they change, `None` for a constant, and returns the result and how that changes:

    >>> @mb.autodiff.differentiable
    ... def doubled(x): return 2 * x
    >>> @mb.autodiff.rule(doubled)
    ... def _(primals, tangents): return doubled(*primals), 2 * tangents[0]

    It is called once for each direction; with `batched=True` once, with tangents of one axis more, in front.
    """

    def register(derivative: F) -> F:
        from mirabelle.arraytypes.duals.elementwise import CONSTANT, DERIVATIVES

        for forget in forgetting:
            forget()
        name = getattr(f, "__name__", "")
        if verbs.ELEMENTWISE.get(name) is f:
            n = f.core.arity  # type: ignore[attr-defined]
            CONSTANT.discard(name)
            DERIVATIVES[name] = tuple(_picked(derivative, i) for i in range(n))
        elif hasattr(f, "core"):
            _add_methods(f, derivative, batched)
        elif callable(f):
            SCALAR_RULES[f] = derivative
        else:
            raise TypeError(
                f"mb.autodiff.rule takes a function, not a {type(f).__name__}: @mb.autodiff.rule(f)."
            )
        return derivative

    return register


def _picked(derivative: Callable[..., Any], i: int) -> Callable[..., Any]:
    def by_one(*operands: Any) -> Any:
        found = derivative(*operands[:-1])
        return found[i] if isinstance(found, tuple) else found

    return by_one


@explained
def differentiable(f: Callable[..., Any]) -> verbs.Generic:
    """A function of arrays that can be given a derivative: a generic function whose general method is `f`.

    It is dispatched on all of its positional parameters that have no default. Without a rule it is
    differentiated through its body, as any function is.

    Parameters
    ----------
    f : callable
        A function of arrays.

    Returns
    -------
    callable
        The generic function, of the name and parameters of `f`. `mb.autodiff.rule` takes it.

    Examples
    --------
    >>> import mirabelle as mb
    >>> @mb.autodiff.differentiable
    ... def energy(x): return mb.sum(x * x)
    >>> print(energy(mb.HostArray([3.0, 4.0])))
    25.0
    """
    import inspect

    from mirabelle.arraytypes.define import array_function

    needed = [
        p
        for p in inspect.signature(f).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if not needed:
        raise TypeError(
            f"{f.__name__}() takes no array: mb.autodiff.differentiable is for functions of arrays."
        )
    return array_function(f, arity=len(needed))


def _add_methods(f: Any, derivative: Callable[..., Any], batched: bool) -> None:
    from mirabelle.arraytypes.duals.base import Dual

    arity = f.core.arity

    def method(*operands: Any, **options: Any) -> Any:
        return applied_rule(derivative, operands, arity, options, batched)

    method.__name__ = f"derivative of {f.__name__}"
    kinds = (Dual, AbstractArray, object)
    for signature in itertools.product(kinds, repeat=arity):
        if Dual in signature:
            f.core.register(method, signature)


def applied_rule(
    derivative: Callable[..., Any],
    operands: tuple[Any, ...],
    arity: int,
    options: dict[str, Any],
    batched: bool,
) -> Any:
    """A rule (primals, tangents) → (value, tangent), called with dual numbers."""
    from mirabelle.arraytypes.duals.base import Dual, outermost, partials_of

    heads, rest = operands[:arity], operands[arity:]
    top = outermost(heads)
    mine = [isinstance(x, Dual) and x._tag is top._tag for x in heads]
    primals = (*(x._value if m else x for x, m in zip(heads, mine, strict=True)), *rest)
    partials = [partials_of(x) if m else None for x, m in zip(heads, mine, strict=True)]
    more = (None,) * len(rest)
    if batched:
        value, tangent = derivative(primals, (*partials, *more), **options)
        return _paired(top, value, tangent)
    found = [
        derivative(primals, (*(None if p is None else p[k] for p in partials), *more), **options)
        for k in range(top._n)
    ]
    return _paired(top, found[0][0], _together([tangent for _, tangent in found]))


def _together(tangents: list[Any]) -> Any:
    from mirabelle.arraytypes.functions.manipulation import stack

    first = tangents[0]
    if isinstance(first, tuple):
        return tuple(_together([t[i] for t in tangents]) for i in range(len(first)))
    return None if first is None else stack(tangents)


def _paired(top: Any, value: Any, tangent: Any) -> Any:
    """A result, or each of several, with its partials; None for those that are constant."""
    if isinstance(value, tuple):
        made = [_paired(top, v, t) for v, t in zip(value, tangent, strict=True)]
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    return value if tangent is None else top._with(value, ((None, tangent),))
