"""Functions compiled by `@mb.jit` in programs: a call is a node, whose results are what it writes to and
returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.creation import asarray
from mirabelle.arraytypes.dense import wrap
from mirabelle.arraytypes.host import HostArray
from mirabelle.arraytypes.jit import error_of
from mirabelle.arraytypes.lending import WRITTEN, family_in_memory, flattened, lender, rebuilt
from mirabelle.arraytypes.programs import calls
from mirabelle.arraytypes.programs.capture import side_effect
from mirabelle.arraytypes.programs.errors import TraceError, shown_line, user_line
from mirabelle.arraytypes.programs.graph import Node, call_node, result_node
from mirabelle.arraytypes.programs.running import in_c_order
from mirabelle.arraytypes.programs.traced import Traced, TracedView, _template, handle, store
from mirabelle.arraytypes.proxies import may_meet
from mirabelle.dispatch import verbs
from mirabelle.dispatch.tree import Leaf


def family_among(types: Sequence[type]) -> Any:
    """The traced type among those of some arguments; None if there is none."""
    for t in types:
        family = family_in_memory(t) if issubclass(t, AbstractArray) else None
        if family is not None and issubclass(family, Traced):
            return family
    return None


class JitCall:
    """How a function is called: the nest of its arguments as numbers of operands (or of earlier, equal ones),
    and which of these it writes to."""

    __slots__ = ("function", "nest", "same", "written")

    def __init__(self, function: Any, nest: list[Any], same: list[int], written: list[int]) -> None:
        self.function = function
        self.nest = nest
        self.same = same
        self.written = written


def recorded(jitted: Any, family: Any, args: Sequence[Any]) -> Any:
    """Record a call of a function, and return what it returns: numbers are arrays of no dimensions."""
    name = jitted.__name__
    flat, uses = flattened(name, args, jitted._uses(len(args)))
    if family.inner is not HostArray:
        # (Which it refuses outside of programs, too.)
        jitted._refuse_place(*next((u[0], x) for x, u in zip(flat, uses, strict=True) if _is_traced(x)))
    flat = [_brought(family, x, how) for x, (_, how) in zip(flat, uses, strict=True)]
    views = lender(name, tuple(map(type, flat)), uses, family, jitted._refuse_place)(flat)
    numbers = {_key(v): at for at, v in reversed(list(enumerate(views)))}
    same = [numbers[_key(v)] for v in views]
    written = [
        at
        for at, (v, (_, how)) in enumerate(zip(views, uses, strict=True))
        if isinstance(v, TracedView)
        and how
        and (v.ndim or how == WRITTEN)
        and getattr(flat[at], "writable", True)
    ]
    written = list(dict.fromkeys([same[at] for at in written]))
    for at in written:
        for v in views:
            if isinstance(v, TracedView) and _key(v) != _key(views[at]) and may_meet(v, views[at]):
                raise TraceError(
                    f"{name}() in {shown_line(user_line())} writes to an array of which it is given another "
                    "part, too. Pass a copy of one of them, mb.copy(x), or the whole array."
                )
    samples = [_sample(v, at in written or same[at] in written) for at, v in enumerate(views)]
    returns = _returned(jitted, rebuilt(args, samples), samples)
    operands: list[Node] = []
    how = JitCall(jitted, rebuilt(args, range(len(flat))), same, written)
    template = _template(((how, list(views)), {}), operands)
    outputs = [(views[at].shape, views[at].dtype) for at in written] + [((), d) for d in returns[1]]
    call = call_node("jit", name, template, tuple(operands), tuple(outputs))
    for i, at in enumerate(written):
        store(views[at], result_node(call, i))
    found = [handle(family, result_node(call, len(written) + i)) for i in range(len(returns[1]))]
    return returns[0](found)


def run_jitted(inner: Any, how: JitCall, operands: list[Any]) -> list[Any]:
    """Call the function: what it writes to are copies, which are its results."""
    flat: list[Any] = []
    for at, x in enumerate(operands):
        if how.same[at] != at:
            flat.append(flat[how.same[at]])
        elif not isinstance(x, np.ndarray):
            flat.append(x)
        elif at in how.written:
            made = inner._empty(x.shape, x.dtype)
            inner._copy_into(made, x)
            flat.append(wrap(inner, Leaf(made)))
        else:
            flat.append(wrap(inner, Leaf(in_c_order(inner, x))))
    result = how.function(*_filled(how.nest, flat))
    made = [verbs.leaf_of(flat[at]).view for at in how.written]
    if result is None:
        return made
    return made + [np.asarray(x) for x in (result if isinstance(result, tuple) else (result,))]


calls.KINDS["jit"] = run_jitted


def _filled(nest: Any, flat: list[Any]) -> Any:
    if isinstance(nest, int):
        return flat[nest]
    parts = [_filled(x, flat) for x in nest]
    return type(nest)._make(parts) if hasattr(nest, "_make") else type(nest)(parts)


def _is_traced(x: Any) -> bool:
    return isinstance(x, AbstractArray) and family_among([type(x)]) is not None


def _brought(family: Any, x: Any, how: int) -> Any:
    """An argument, with constant arrays as values of the graph."""
    if not isinstance(x, (AbstractArray, np.ndarray)) or _is_traced(x) or not x.ndim:
        return x
    if how == WRITTEN:
        raise side_effect(x)
    return verbs.adapt(family, asarray(x) if isinstance(x, np.ndarray) else x)


def _key(v: Any) -> Any:
    """What views of the same elements share."""
    return (v.start, v.shape, v.strides, v.dtype) if isinstance(v, TracedView) else id(v)


def _sample(v: Any, written: bool) -> Any:
    """Something of the type that the function will be called with."""
    if not isinstance(v, TracedView):
        return v
    return np.empty(v.shape, v.dtype) if v.ndim or written else v.dtype.type(0)


def _returned(jitted: Any, args: list[Any], samples: list[Any]) -> tuple[Any, list[np.dtype]]:
    """How a result is made of numbers, and their dtypes: as the compiler finds them."""
    import numba
    from numba.core import types as numba_types
    from numba.np.numpy_support import as_dtype

    if hasattr(jitted, "check"):
        jitted.check(args)
    types: Any = numba_types
    signature = tuple(map(numba.typeof, args))
    try:
        jitted.engine.compile(signature)
        found = jitted.engine.overloads[signature].signature.return_type
    except Exception as e:
        better = error_of(jitted, e, samples)
        if better is None:
            raise
        raise better from None
    if isinstance(found, types.NoneType):
        return (lambda numbers: None), []
    several = isinstance(found, types.BaseTuple)
    kinds: list[Any] = list(found) if several else [found]  # type: ignore[call-overload]
    if not all(isinstance(k, (types.Number, types.Boolean)) for k in kinds):
        raise TraceError(
            f"{jitted.__name__}() in {shown_line(user_line())} returns {found}. In a compiled program a "
            "function made by mb.jit returns numbers, and writes arrays: pass the array for the result as an "
            f"argument, `{jitted.__name__}(out, ...)`."
        )
    dtypes = [np.dtype(as_dtype(k)) for k in kinds]
    return (tuple if several else (lambda numbers: numbers[0])), dtypes
