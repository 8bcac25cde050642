"""Functions that a program calls again and again: they are captured once."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from mirabelle.arraytypes import recording
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import DenseArray, exchange
from mirabelle.arraytypes.duals.base import holds_duals
from mirabelle.arraytypes.programs import states
from mirabelle.arraytypes.programs.capture import capturing, traced_family
from mirabelle.arraytypes.programs.graph import Node, input_node
from mirabelle.arraytypes.programs.signature import Arguments, mapped
from mirabelle.arraytypes.programs.subgraphs import copied, cut, in_order
from mirabelle.arraytypes.programs.traced import Traced, handle
from mirabelle.arraytypes.programs.watching import Watch, current_program, hold
from mirabelle.dispatch import verbs

F = TypeVar("F", bound=Callable[..., Any])


class Outlined:
    """A function that is captured once for each signature within a program, however often this calls it."""

    def __init__(self, f: Callable[..., Any]) -> None:
        functools.update_wrapper(self, f)
        self.function = f
        # What was captured in the program that is being compiled.
        self.outlines: dict[Any, Outline] = {}
        self.program: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not capturing():
            return self.function(*args, **kwargs)
        family = traced_family.get()
        program = current_program()
        if self.program is not program:
            self.outlines.clear()
            self.program = program
        leaves = [x for _, x in states.leaves_of((args, kwargs)) if isinstance(x, (AbstractArray, np.ndarray))]
        if not all(_is_plain(x, family) for x in leaves):
            return self.function(*args, **kwargs)
        found = Arguments((args, kwargs))
        outline = self.outlines.get(found.key)
        if outline is None or not outline.valid:
            outline = self.outlines[found.key] = Outline(self.function, family, found, args, kwargs, program)
        if outline.outputs is None:
            return self.function(*args, **kwargs)
        return outline.called(found.arrays)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<outlined {getattr(self.function, '__qualname__', repr(self.function))}>"


def _is_plain(x: Any, family: Any) -> bool:
    """Does it consist of arrays of the program alone?"""
    if not isinstance(x, AbstractArray) or holds_duals(type(x)):
        return False
    return all(isinstance(p, Traced) and type(p).family is family for p in states.parts_of(x, family))


class Outline:
    """What a function does with arguments of some types and shapes.

    `outputs` are the values it returns and writes to its arguments; None if it looks at, or writes to, arrays
    of the program that are no arguments: then it is called each time.
    """

    def __init__(self, f: Any, family: Any, found: Arguments, args: Any, kwargs: Any, program: Any) -> None:
        self.family = family
        self.keep = found.keep
        self.program = program
        self.valid = True
        self.outputs: tuple[Node, ...] | None = None
        with Watch() as watch:
            self.inputs = [input_node(i, x.shape, x.dtype, f"argument{i}") for i, x in enumerate(found.arrays)]
            given = [handle(family, x) for x in self.inputs]
            try:
                args, kwargs = _exchanged((args, kwargs), found.arrays, given, family)
                self.result = f(*args, **kwargs)
            finally:
                outside = watch.found()
                for root, before in outside:
                    hold(root, before)
        if outside:
            return
        number = {id(x): i for i, x in enumerate(given)}
        outputs: list[Node] = []
        # For each part of what is returned: which argument it is (negative: -1 - i), or which output.
        self.parts: list[list[int]] = []
        self.leaves = [x for _, x in states.leaves_of(self.result) if not states.is_container(x)]
        for leaf in self.leaves:
            places = []
            if isinstance(leaf, np.ndarray) or (
                isinstance(leaf, AbstractArray) and not _is_plain(leaf, family)
            ):
                return
            for p in states.parts_of(leaf, family) if isinstance(leaf, AbstractArray) else ():
                if id(p) in number:
                    places.append(-1 - number[id(p)])
                else:
                    places.append(len(outputs))
                    outputs.append(p.node)
            self.parts.append(places)
        self.written = [
            i for i, (x, node) in enumerate(zip(given, self.inputs, strict=True)) if x.node is not node
        ]
        outputs += [given[i].node for i in self.written]
        _, _, operands = cut(outputs, self.inputs, watch.serial, lambda calls: False)
        if operands:
            return
        self.outputs = tuple(outputs)
        self.first = watch.first
        self.thread = threading.get_ident()
        self.constants = {id(x) for x in in_order(outputs, lambda x: x.operands)}
        recording.watchers.append(self)

    def note(self, root: Any) -> None:
        """An array is written: if the function may have read it, it has to be captured again."""
        if threading.get_ident() != self.thread:
            return
        if current_program() is not self.program:
            recording.watchers.remove(self)
        elif isinstance(root, Traced) and verbs.leaf_of(root).view.buffer.name < self.first:
            self.valid = self.valid and id(root.node) not in self.constants

    def called(self, arrays: list[Any]) -> Any:
        """What it returns for some arguments, to which it writes."""
        assert self.outputs is not None
        values = {id(x): a.node for x, a in zip(self.inputs, arrays, strict=True)}
        made = copied(self.outputs, values)
        for i, node in zip(self.written, made[len(made) - len(self.written) :], strict=True):
            for watcher in tuple(recording.watchers):
                watcher.note(arrays[i])
            hold(arrays[i], node)
        leaves = []
        for leaf, places in zip(self.leaves, self.parts, strict=True):
            parts = iter([arrays[-1 - k] if k < 0 else handle(self.family, made[k]) for k in places])
            leaves.append(states.with_parts(leaf, self.family, parts) if places else leaf)
        return states.refilled(self.result, iter(leaves))


def _exchanged(nest: Any, arrays: list[Any], given: list[Any], family: Any) -> Any:
    """Arguments with other arrays in them."""
    known = {id(x): y for x, y in zip(arrays, given, strict=True)}

    def stand_in(wanted: Any, x: Any) -> Any:
        return known.get(id(x))

    def placed(x: Any) -> Any:
        return known[id(x)] if isinstance(x, DenseArray) else verbs.adapt(family, x)

    token = exchange.set(stand_in)
    try:
        return mapped(nest, placed)
    finally:
        exchange.reset(token)


def outline(f: F) -> F:
    """A function that a compiled program captures once, and not again for each of its calls.

    It may do what compiled functions do. Outside of programs it is the function itself.

    Parameters
    ----------
    f : callable
        The function.

    Returns
    -------
    callable
        A function with the arguments and results of `f`; so it is used as a decorator.

    Examples
    --------
    >>> import mirabelle as mb
    >>> @mb.ext.outline
    ... def stage(u, dt):
    ...     return u + dt * mb.sin(u)
    >>> @mb.compile
    ... def steps(u):
    ...     for _ in range(100):
    ...         u = stage(u, 0.01)
    ...     return u
    >>> print(steps(mb.HostArray([0.0, 1.0])))
    [0.         1.95584111]
    """
    if not callable(f):
        raise TypeError(f"mb.ext.outline takes a function, not {f!r}: `@mb.ext.outline` above a `def`.")
    made: Any = f if isinstance(f, Outlined) else Outlined(f)
    return made  # type: ignore[no-any-return]


__all__ = ["Outline", "Outlined", "outline"]
