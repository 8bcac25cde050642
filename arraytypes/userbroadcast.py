"""Broadcasting scalar Python functions of users."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.elementwise import build
from mirabelle.arraytypes.structured.base import Structured
from mirabelle.arraytypes.usercode.userfunctions import operation
from mirabelle.dispatch.generic import generic
from mirabelle.dispatch.misuse import explained


@explained
def broadcast(f: Callable[..., Any], *operands: Any) -> AbstractArray | tuple[AbstractArray, ...]:
    """Apply a scalar Python function to every element, fused with what surrounds it.

    `f` is compiled by Numba, which also infers the dtype of the result. What `f` closes over
    joins the operands: a scalar keeps its kernel when its value changes, an array is read at
    the same element. A function that returns a tuple gives a tuple of arrays, from one kernel.

    Parameters
    ----------
    f : callable
        A scalar function: of numbers, returning a number or a tuple of them.
    *operands : arrays and numbers
        The operands, stretched to one shape.

    Returns
    -------
    array or tuple of array
        Of the shape that the operands have together; for a function that returns a tuple, one array for
        each of its parts.

    Examples
    --------
    >>> import mirabelle as mb
    >>> x = mb.HostArray([1.0, 2.0, 3.0])
    >>> scale = 10.0
    >>> print(mb.broadcast(lambda a: a * scale if a > 1 else a, x))
    [ 1. 20. 30.]
    >>> low, high = mb.broadcast(lambda a: (a - 1, a + 1), x)
    >>> print(low, high)
    [0. 1. 2.] [2. 3. 4.]
    """
    if hasattr(f, "core"):
        return f(*operands)
    if not operands:
        raise TypeError("broadcast takes a function and at least one operand: mb.broadcast(f, x).")
    op, captured = operation(f, len(operands))

    everything = (*operands, *captured)
    if op.nin != len(everything):
        raise TypeError(f"{op.name} takes {op.nin} operands, and {len(everything)} came.")
    return evaluated(f, op, everything, len(operands))


def evaluated(f: Callable[..., Any], op: Any, operands: tuple[Any, ...], given: int) -> Any:
    """The operation of `f` on operands, of which those beyond the first `given` are what it closes over."""
    for x in operands:
        made = broadcast_over(x, f, op, operands, given)
        if made is not NotImplemented:
            return made
    return built(op, operands)


@functools.partial(generic, arity=1)
def broadcast_over(x: Any, f: Any, op: Any, operands: tuple[Any, ...], given: int) -> Any:
    """What the type of the operand `x` makes of a user's function; NotImplemented: what all others do."""


@broadcast_over.method
def _(x: object, f: Any, op: Any, operands: tuple[Any, ...], given: int) -> Any:
    return NotImplemented


@broadcast_over.method
def _(x: Structured, f: Any, op: Any, operands: tuple[Any, ...], given: int) -> Any:
    found = (broadcast_over(part, f, op, operands, given) for part in x.parts)  # (which may be dual numbers)
    return next((made for made in found if made is not NotImplemented), NotImplemented)


def built(op: Any, operands: tuple[Any, ...]) -> Any:
    """The node of an operation, or of several results a tuple of them."""
    # How many results there are is known once the function is typed.
    return build(typed(op, operands), operands) if op.nout == 1 else build(op, operands)


def typed(op: Any, operands: tuple[Any, ...]) -> Any:
    """The operation with its number of results, which typing tells."""
    from mirabelle.arraytypes.elementwise import argument_type
    from mirabelle.dispatch import promotion
    from mirabelle.dispatch.promotion import WEAK

    types = [x.dtype if hasattr(x, "dtype") else WEAK.get(type(x)) or argument_type(type(x)) for x in operands]
    sig = promotion.signature(op, tuple(types))
    op.nout = len(sig.outs)
    return op


@explained
def map(f: Callable[..., Any], *operands: Any) -> AbstractArray | tuple[AbstractArray, ...]:
    """As `broadcast`, for operands of one shape.

    Parameters
    ----------
    f : callable
        A scalar function: of numbers, returning a number or a tuple of them.
    *operands : arrays
        Arrays of one shape.

    Returns
    -------
    array or tuple of array
        Of the shape of the operands; for a function that returns a tuple, one array for each of its parts.

    Examples
    --------
    >>> import mirabelle as mb
    >>> print(mb.map(lambda a, b: a + 2 * b, mb.HostArray([1, 2]), mb.HostArray([3, 4])))
    [ 7 10]
    """
    shapes = {x.shape for x in operands if isinstance(x, AbstractArray)}
    if len(shapes) > 1:
        raise ValueError(
            f"map takes arrays of one shape; these have {', '.join(map_str(shapes))}. "
            "Use mb.broadcast(f, ...) to stretch them."
        )
    return broadcast(f, *operands)


def map_str(shapes: set[tuple[int, ...]]) -> list[str]:
    return sorted(str(s) for s in shapes)
