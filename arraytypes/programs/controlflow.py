"""Loops and branches that depend on values, in compiled programs and outside of them.

Outside of a program, `while_loop`, `fori_loop` and `cond` are Python's `while`, `for` and `if`. Where a
function is compiled they are captured: what a trip does is a graph of its own, and the loop is one node.

>>> import mirabelle as mb
>>> @mb.compile
... def halved(x):
...     return mb.while_loop(lambda x: mb.max(x) > 1, lambda x: x / 2, x)
>>> print(halved(mb.HostArray([3.0, 10.0])))
[0.1875 0.625 ]

Arrays are variables here as everywhere: what a body writes to, be it part of the state or not, is carried from
trip to trip and has its last contents afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import asarray
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.programs import states
from mirabelle.arraytypes.programs.branchcapture import BranchCapture
from mirabelle.arraytypes.programs.capture import capturing
from mirabelle.arraytypes.programs.loopcapture import LoopCapture
from mirabelle.arraytypes.programs.loops import Branches, Loop
from mirabelle.dispatch import policy, verbs
from mirabelle.dispatch.misuse import explained

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import ArrayLike

# A state, or what a branch gives.
S = TypeVar("S")


def while_loop(condition: Callable[[S], Any], body: Callable[[S], S], state: S) -> S:
    """Repeat `state = body(state)` while `condition(state)` holds.

    The state is an array, a number, or a nest of tuples, lists, dictionaries and dataclasses of these. In a
    compiled program it keeps its shapes and dtypes from trip to trip.

    Parameters
    ----------
    condition : callable
        A function of the state that says whether to go on.
    body : callable
        A function of the state that returns the next one.
    state : array or tuple of arrays
        What the first turn gets.

    Returns
    -------
    array, number or nest of these
        The first state for which the condition does not hold: `state` itself, if there is no trip.

    Examples
    --------
    >>> import mirabelle as mb
    >>> def collatz(n):
    ...     step = lambda s: (mb.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1)
    ...     return mb.while_loop(lambda s: s[0] != 1, step, (n, 0))[1]
    >>> n = mb.asarray(27)
    >>> print(collatz(n), mb.compile(collatz)(n))
    111 111
    """
    for name, function in (("condition", condition), ("body", body)):
        if not callable(function):
            raise TypeError(f"while_loop: {name}={function!r} is no function of the state: `lambda s: s < 9`.")
    if capturing():
        return LoopCapture("while", body, state, condition=condition).loop()
    while _holds(condition(state)):
        state = body(state)
    return state


def fori_loop(lower: ArrayLike, upper: ArrayLike, body: Callable[[Any, S], S], state: S) -> S:
    """Repeat `state = body(i, state)` for i from `lower` up to but not `upper`.

    The bounds are integers, or integer arrays of no dimensions; `i` is such an array, too. The state is as in
    `while_loop`.

    Parameters
    ----------
    lower : int
        The first.
    upper : int
        The end, which is not reached.
    body : callable
        A function of i and the state, which returns the next state.
    state : array or tuple of arrays
        What the first turn gets.

    Returns
    -------
    array, number or nest of these
        The last state: `state` itself, if there is no trip.

    Examples
    --------
    >>> import mirabelle as mb
    >>> def powers(x, n):
    ...     return mb.fori_loop(0, n, lambda i, s: s * x + i, mb.zeros_like(x))
    >>> x, n = mb.HostArray([1.0, 2.0]), mb.asarray(4)
    >>> print(powers(x, n), mb.compile(powers)(x, n))
    [ 6. 11.] [ 6. 11.]
    """
    bounds = _bound("lower", lower), _bound("upper", upper)
    if capturing():
        return LoopCapture("for", body, state, bounds=bounds).loop()
    with policy.allow_scalar():
        indices = range(int(bounds[0]), int(bounds[1]))
    arrays = [x for _, x in states.leaves_of(state) if isinstance(x, AbstractArray)]
    family = next((leaf_family(type(x)) for x in arrays), None)
    for i in indices:
        index: Any = np.int64(i)
        if family is not None and family.home.rank > 1:
            # (Elements of arrays on a device are not picked one by one, but where an array says.)
            index = verbs.adapt(family, asarray(index))
        state = body(index, state)
    return state


@explained
def cond(predicate: ArrayLike, if_true: Callable[..., S], if_false: Callable[..., S], *operands: Any) -> S:
    """`if_true(*operands)` if the predicate holds, else `if_false(*operands)`.

    In a compiled program both are captured, one is run, and their results have the same shapes and dtypes.

    Parameters
    ----------
    predicate : array of one bool
        Which of the two is called.
    if_true : callable
        What is called if it holds.
    if_false : callable
        What is called if not.
    *operands : arrays
        What both are given.

    Returns
    -------
    array, number or nest of these
        What the function that is called returns.

    Examples
    --------
    >>> import mirabelle as mb
    >>> f = mb.compile(lambda x: mb.cond(mb.sum(x) > 0, mb.sqrt, mb.negative, x))
    >>> print(f(mb.HostArray([1.0, 4.0])), f(mb.HostArray([1.0, -4.0])))
    [1. 2.] [-1.  4.]
    """
    if capturing() and isinstance(predicate, AbstractArray) and states.depends(predicate):
        return BranchCapture(predicate, (if_true, if_false), operands).chosen()
    return if_true(*operands) if _holds(predicate) else if_false(*operands)


def _holds(truth: Any) -> bool:
    """A truth value that is asked for: on a device, too."""
    with policy.allow_scalar():
        return bool(truth)


def _bound(name: str, x: Any) -> Any:
    """A bound of a loop, checked."""
    if isinstance(x, (AbstractArray, np.ndarray)):
        if x.dtype.kind not in "iu" or x.ndim:
            raise TypeError(
                f"The {name} bound of a loop is an integer, not an array {x.dtype.name}{list(x.shape)}. "
                "Convert it: `n.astype(mb.int64)`."
            )
        return x
    try:
        return x.__index__()
    except AttributeError:
        raise TypeError(f"The {name} bound of a loop is an integer, not {x!r}. Convert it: `int(n)`.") from None


__all__ = ["Branches", "Loop", "cond", "fori_loop", "while_loop"]
