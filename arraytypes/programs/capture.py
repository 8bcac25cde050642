"""Capturing a function: it is called once with traced arrays, and what it did is a graph."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import DenseArray, constructed, exchange, wrap
from mirabelle.arraytypes.elementwise import default_family
from mirabelle.arraytypes.makers import made_instead
from mirabelle.arraytypes.programs import graph
from mirabelle.arraytypes.programs.effects import Filled, watched, written_outside
from mirabelle.arraytypes.programs.errors import TraceError, shown_line, user_line
from mirabelle.arraytypes.programs.graph import Input, Node, input_node
from mirabelle.arraytypes.programs.lateness import after, writing_down
from mirabelle.arraytypes.programs.signature import Arguments, Static, mapped
from mirabelle.arraytypes.programs.traced import ASKED, ASKED_IF_WRITTEN, Traced, family_for, handle
from mirabelle.arraytypes.programs.watching import entered
from mirabelle.arraytypes.random import bitgenerator
from mirabelle.dispatch import policy, verbs

# How many functions are being captured in this context, one within the other.
_depth: contextvars.ContextVar[int] = contextvars.ContextVar("mirabelle_capturing", default=0)
# The type of the arrays of the function that is being captured.
traced_family: contextvars.ContextVar[Any] = contextvars.ContextVar("mirabelle_traced_family", default=None)


# The number of the first value of the function that is being captured.
_first: contextvars.ContextVar[int] = contextvars.ContextVar("mirabelle_first_value", default=0)


def values_made() -> int:
    """How many values there are since the capture of a function began; 0 where none is captured."""
    return graph.next_serial() - _first.get() if _depth.get() else 0


def capturing() -> bool:
    """Is a function being captured?"""
    return _depth.get() > 0


class Captured:
    """What a function did: its inputs, the values it returned and wrote, and how its result is made of them."""

    __slots__ = (
        "called",
        "composed",
        "inner",
        "inputs",
        "laid_out",
        "outputs",
        "placeholders",
        "recipe",
        "result",
        "returned",
        "shares",
        "written",
    )

    def __init__(
        self,
        inner: Any,
        inputs: list[Input],
        outputs: tuple[Node, ...],
        placeholders: list[Any],
        result: Any,
        returned: list[Any],
        written: list[int],
        composed: Sequence[Any] = (),
    ) -> None:
        self.inner = inner
        # The arguments made of several arrays, or that show others, as the function got them.
        self.composed = composed
        self.inputs = inputs
        # The values that the program computes: first those returned, then what is written to inputs.
        self.outputs = outputs
        self.placeholders = placeholders
        # What the function returned, with traced arrays in it; those, in the order of outputs.
        self.result = result
        self.returned = returned
        # The inputs that are written to, in the order of the rest of the outputs.
        self.written = written
        # Does a result show the memory of an argument, or of another one? (Found when somebody asks.)
        self.shares: bool | None = None
        # Of a tuple of arrays and numbers, whence each comes (see `delivered`); () where that says too little.
        self.recipe: Sequence[tuple[Any, Any]] | None = None
        # The arguments that must lie in C's order for the graph to do what the function does, for it asks; and
        # what it was called with, if there are such.
        self.laid_out: list[int] = []
        self.called: Any = None

    def returning(self, result: Any) -> Captured:
        """The same with another result, made of the same arrays."""
        if result is self.result:
            return self
        c = Captured(
            self.inner, self.inputs, self.outputs, self.placeholders, result, self.returned, self.written,
            self.composed,
        )  # fmt: skip
        c.laid_out, c.called = self.laid_out, self.called
        return c


@contextlib.contextmanager
def tracing() -> Iterator[None]:
    """Operations within the block are recorded one by one, with the lines they stand in."""
    first = None if _depth.get() else _first.set(graph.next_serial())
    token = _depth.set(_depth.get() + 1)
    program = bitgenerator.compiling.set(bitgenerator.compiling.get() or object())
    before = graph.work.current_line
    graph.work.current_line = user_line_here
    try:
        with policy.eager():
            yield
    finally:
        graph.work.current_line = before
        bitgenerator.compiling.reset(program)
        _depth.reset(token)
        if first is not None:
            _first.reset(first)


def user_line_here() -> Any:
    return user_line(3)


def family_of_arguments(arrays: list[Any]) -> Any:
    """The type of the arrays that a function is called with."""
    families = list(dict.fromkeys(type(x).family for x in arrays))
    if len(families) > 1:
        names = ", ".join(f.__name__ for f in families)
        raise TypeError(
            f"A compiled function is called with arrays of one type, and these are {names}. Bring them "
            f"together: `mb.adapt(mb.{families[-1].__name__}, x)`."
        )
    family = families[0] if families else default_family()
    if issubclass(family, Traced):
        return family.inner
    return family


def captured(
    f: Callable[..., Any],
    arrays: list[Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    names: list[str],
    written: Callable[..., Any] | None = None,
) -> Captured:
    """Call `f`, as it is `written` anew, with traced arrays in place of `arrays`."""
    filled: list[Filled] = []
    for _ in range(2):
        try:
            return _captured(f, arrays, args, kwargs, names, written)
        except Filled as e:  # (a cache is filled once, what counts changes again)
            filled.append(e)
        except BaseException:
            _undo(filled)
            raise
    _undo(filled)
    raise filled[-1]


def _undo(filled: list[Filled]) -> None:
    for e in reversed(filled):
        e.undo()


def _captured(
    f: Callable[..., Any],
    arrays: list[Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    names: list[str],
    written: Callable[..., Any] | None,
) -> Captured:
    inner = family_of_arguments(arrays)
    family = family_for(inner)
    called = {id(x): name for x, name in zip(args, names, strict=False)}
    called.update({id(x): name for name, x in kwargs.items()})
    placeholders: dict[int, Any] = {}
    inputs: list[Input] = []
    for i, x in enumerate(arrays):
        node = input_node(i, x.shape, x.dtype, called.get(id(x), f"input{i}"))
        inputs.append(node)
        placeholders[id(x)] = constructed(handle(family, node))
    cells = [p._node.view.buffer for p in placeholders.values()]

    def stand_in(wanted: Any, x: Any) -> Any:
        return placeholders.get(id(x)) if wanted is family else None

    def placed(x: Any) -> Any:
        return placeholders[id(x)] if isinstance(x, DenseArray) else verbs.adapt(family, x)

    token = exchange.set(stand_in)
    try:
        traced_args, traced_kwargs = mapped((args, kwargs), placed)
    finally:
        exchange.reset(token)
    composed = Arguments((traced_args, traced_kwargs)).composed
    traced_args = tuple([x.value if type(x) is Static else x for x in traced_args])
    traced_kwargs = {k: x.value if type(x) is Static else x for k, x in traced_kwargs.items()}
    given = {names[i] if i < len(names) else f"argument {i}": x for i, x in enumerate(traced_args)}
    given.update(traced_kwargs)
    token = traced_family.set(family)
    before = entered.functions
    try:
        messages: list[Node] = []
        with writing_down(messages), tracing(), made_instead(inner, family), watched(f, given, given):
            result = (written or f)(*traced_args, **traced_kwargs)
    finally:
        traced_family.reset(token)
    returned: list[Any] = []
    own = {id(p): i for i, p in enumerate(placeholders.values())}

    def found(wanted: Any, x: Any) -> Any:
        if id(x) not in own:
            own[id(x)] = -1
            returned.append(x)
        return x

    def collected(x: Any) -> Any:
        if isinstance(x, DenseArray):
            if isinstance(x, Traced):
                found(None, x)
        elif isinstance(x, AbstractArray):
            verbs.adapt(family, x)
        return x

    token = exchange.set(found)
    try:
        mapped(result, collected)
    finally:
        exchange.reset(token)
    returned = [x for x in returned if isinstance(x, Traced)]
    stand_ins = list(placeholders.values())
    changed = [i for i, p in enumerate(stand_ins) if p.node is not inputs[i]]
    outputs = tuple([x.node for x in returned] + [stand_ins[i].node for i in changed])
    if messages and not outputs:
        raise TraceError(
            f"{getattr(f, '__name__', 'The function')} sends arrays to other processes, and neither "
            "returns nor writes any: a program is what its results need. Return what came or was sent."
        )
    outputs = after(outputs, messages)
    if entered.functions != before:
        refuse_escaped(outputs, inputs)
    c = Captured(inner, inputs, outputs, stand_ins, result, returned, changed, composed)
    # (A write to all of an array gives it another cell.)
    asked = [max(a.asked, p._node.view.buffer.asked) for a, p in zip(cells, stand_ins, strict=True)]
    c.laid_out = [i for i, a in enumerate(asked) if a == ASKED or (a == ASKED_IF_WRITTEN and i in changed)]
    c.called = (traced_args, traced_kwargs) if c.laid_out else None
    return c


def delivered(c: Captured, arrays: list[Any], made: list[Any], composed: Sequence[Any] = ()) -> Any:
    """What the function returned, made of the arrays of one call."""
    recipe = c.recipe
    if recipe is None:
        recipe = c.recipe = _recipe(c)
    if recipe:
        sources = (arrays, made)
        return tuple([sources[i][j] if i.__class__ is int else j for i, j in recipe])
    return rebuilt(c, c.result, arrays, made, composed)


def rebuilt(c: Captured, nest: Any, arrays: Sequence[Any], made: Sequence[Any], composed: Sequence[Any]) -> Any:
    """A nest of what stood for arrays when the function was captured, with those of one call."""
    known = {id(p): x for p, x in zip(c.placeholders, arrays, strict=True)}
    known.update({id(r): x for r, x in zip(c.returned, made, strict=False)})
    known.update({id(p): x for p, x in zip(c.composed, composed, strict=False)})

    def actual(wanted: Any, x: Any) -> Any:
        found = known.get(id(x))
        if found is None and isinstance(x, DenseArray) and not isinstance(x, Traced):
            # A constant: a handle of the caller's own on its contents, so that a write to it changes no other
            # call's.
            leaf = verbs.leaf_of(x)
            found = known[id(x)] = verbs.copy(x) if leaf.foreign else wrap(type(x).family, leaf)
        return found

    def real(x: Any) -> Any:
        found = actual(None, x) if isinstance(x, AbstractArray) else None
        if found is not None:
            return found
        return verbs.adapt(c.inner, x) if isinstance(x, AbstractArray) else x

    token = exchange.set(actual)
    try:
        return mapped(nest, real)
    finally:
        exchange.reset(token)


def _recipe(c: Captured) -> Sequence[tuple[Any, Any]]:
    """For each item of a tuple: 0 and the argument's number, 1 and the result's, or None and a number."""
    if type(c.result) is not tuple:
        return ()
    known: dict[int, tuple[Any, Any]] = {id(p): (0, i) for i, p in enumerate(c.placeholders)}
    known.update({id(r): (1, i) for i, r in enumerate(c.returned)})
    found: list[tuple[Any, Any]] = []
    for x in c.result:
        if type(x) in (int, float, complex, bool, str, type(None)):
            found.append((None, x))
        elif id(x) in known:
            found.append(known[id(x)])
        else:
            return ()
    return found


def refuse_escaped(outputs: tuple[Node, ...], inputs: list[Input]) -> None:
    """Say what is wrong if arrays of the body of a loop are used outside of it."""
    own = {id(x) for x in inputs}
    for node in graph.ordered(outputs):
        if isinstance(node, Input) and id(node) not in own:
            raise TraceError(
                f"An array of the body of the loop in {shown_line(node.line)} is used outside of it "
                f"({node.name}), and it is another one in each trip. Let the body return it in the state."
            )


def side_effect(dest: Any) -> TraceError:
    """The error for writing what a program computes to an array that the program does not know."""
    return written_outside(dest)
