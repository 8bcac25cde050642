"""Functions of arrays as generics: one body serves all arrays, a method replaces it for a type.

>>> import mirabelle as mb
>>> from mirabelle.arraytypes.define import array_function
>>> @array_function
... def halved(x, /):
...     "Half of x."
...     return mb.divide(x, 2)
>>> print(halved(mb.HostArray([2.0, 4.0])), halved([6.0]))
[1. 2.] [3.]
>>> mb.methods(halved)[0].signature[0].__name__
'AbstractArray'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.dispatch.generic import generic


def array_function(body: Callable[..., Any] | None = None, *, arity: int = 1, selects: bool = False) -> Any:
    """A generic function, dispatched on its first `arity` parameters, whose general method is `body`.

    The body gets arrays there, or numbers beside an array: NumPy arrays are shared and lists
    become arrays before they come to it. Calls may say `out=`, as NumPy's do. `selects`: the first
    parameter says which elements (see `as_selection`).
    """
    if body is None:
        return lambda f: array_function(f, arity=arity, selects=selects)
    f: Callable[..., Any] = body
    made = generic(f, arity, wider=True)
    made.core.register(f, (AbstractArray,) * arity)

    def convert(*args: Any, **kwargs: Any) -> Any:
        heads = as_operands(args[:arity], selects)
        if all(a is b for a, b in zip(heads, args, strict=False)):
            return f(*args, **kwargs)
        return made(*heads, *args[arity:], **kwargs)

    def into_out(*args: Any, out: Any = ..., **options: Any) -> Any:
        # NumPy's `out=`, which the body need not know.
        if out is ...:
            made.core.refuse_further(*args, **options)
        if out is None:
            return made(*args, **options)
        from mirabelle.arraytypes.functions.outputs import into

        return into(out, made(*args, **options))

    made.further(into_out)
    convert.__name__ = f.__name__
    made.core.register(convert, (object,) * arity)
    return made


def as_operands(operands: tuple[Any, ...], selects: bool = False) -> tuple[Any, ...]:
    """Operands as arrays: lists and NumPy's arrays become ours, numbers stay beside an array."""
    like = next((x for x in operands if isinstance(x, AbstractArray)), None)
    if selects:
        operands = (as_selection(operands[0], like), *operands[1:])
    found = [x if isinstance(x, AbstractArray) or _is_number(x) else as_array(x, like) for x in operands]
    if not any(isinstance(x, AbstractArray) for x in found):
        found[0] = as_array(found[0])
    return tuple(found)


def _is_number(x: Any) -> bool:
    return x is None or isinstance(x, (bool, int, float, complex, np.generic))


def as_selection(x: Any, like: Any) -> Any:
    """What says which elements of `like` (a mask, indices, quantiles, the edges of bins) as an array of ours.

    As in an index, a NumPy array of such is sent to a card, as a list is: a counted transfer.
    """
    if isinstance(x, np.ndarray) and isinstance(like, AbstractArray):
        from mirabelle.arraytypes.elementwise import leaf_family
        from mirabelle.arraytypes.indexing import uploaded

        family = leaf_family(type(like))
        if family.home.rank >= 2 and not family.joins(None):
            return uploaded(family, x)
    return as_array(x, like)


def is_elsewhere(x: Any) -> bool:
    """Must an operand be made an array of ours first: a list, or what another library calls its array?"""
    if isinstance(x, (AbstractArray, np.ndarray, np.generic)):
        return False
    return isinstance(x, (list, tuple)) or hasattr(type(x), "__array__")


def as_array(x: Any, like: Any = None) -> Any:
    """Anything an array can be made of, as one: shared where it is a NumPy array.

    `like` is an array whose place a list or number goes to. A list of arrays is made where they are.
    """
    if isinstance(x, AbstractArray):
        return x
    if isinstance(x, np.ndarray):
        from mirabelle.arraytypes.host import share

        return share(x)
    from mirabelle.arraytypes.creation import asarray
    from mirabelle.arraytypes.library import arrays_in

    return asarray(x, device=None if like is None or arrays_in((x,)) else like.place)
