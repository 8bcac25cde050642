"""Kernels (`@mb.kernel`) in programs: a launch is a call, whose results are the arrays that it writes to."""

from __future__ import annotations

from typing import Any

from mirabelle.arraytypes.dense import VIEWS
from mirabelle.arraytypes.kernels import Kernel, launcher
from mirabelle.arraytypes.programs import calls
from mirabelle.arraytypes.programs.errors import TraceError, shown_line, user_line
from mirabelle.arraytypes.programs.graph import Node, call_node, data_node, result_node
from mirabelle.arraytypes.programs.traced import Traced, TracedView, _template, store
from mirabelle.arraytypes.proxies import may_meet


@launcher(Traced)
def _launched(kernel: Kernel, shape: tuple[int, ...], group: tuple[int, ...], arguments: list[Any]) -> None:
    """Record a launch: what it writes are values of the arrays from here on."""
    written = _written(kernel, arguments)
    family = type(written[0]).family if written else None
    if family is None:
        return
    everything = _views(arguments)
    for w in written:
        for v in everything:
            if v is not w and may_meet(v, w):
                raise TraceError(
                    f"{kernel.__name__} in {shown_line(user_line())} writes to an array of which it is given "
                    "another view: in a program each array it writes to is a value of its own. Pass a copy, "
                    "mb.copy(x), or the whole array once."
                )
    operands: list[Node] = []
    template = _template(((kernel, shape, group, list(arguments)), {}), operands)
    outputs = tuple([(w.shape, w.dtype) for w in written])
    if any(x.bound for x in operands):
        call = call_node("kernel", kernel.__name__, template, tuple(operands), outputs)
        values = [result_node(call, i) for i in range(len(written))]
    else:
        views = [calls.evaluated_node(family.inner, x) for x in operands]
        made = calls.arrays_of(calls.run_call(family.inner, "kernel", kernel.__name__, template, views))
        values = [data_node(family.inner, v) for v in made]
    for w, value in zip(written, values, strict=True):
        store(w, value)


def _written(kernel: Kernel, arguments: list[Any]) -> list[Any]:
    """The views that a launch may write to, in order."""
    effects = kernel.source.effects
    found: list[Any] = []
    for name, x in zip(kernel.source.parameters, arguments, strict=True):
        if effects[name]:
            found += _views(x)
    return found


def _views(nest: Any) -> list[Any]:
    if isinstance(nest, (list, tuple)):
        return [v for x in nest for v in _views(x)]
    return [nest] if isinstance(nest, TracedView) or type(nest) in VIEWS else []


def _run(inner: Any, kernel: Kernel, shape: Any, group: Any, arguments: list[Any]) -> Any:
    """Run a launch of a program: what it writes to are copies, which are its results."""
    effects = kernel.source.effects
    results: list[Any] = []

    def own(x: Any) -> Any:
        if isinstance(x, (list, tuple)):
            return type(x)([own(y) for y in x])
        if type(x) not in VIEWS:
            return x
        made = inner._alike(x)
        inner._copy_into(made, x)
        results.append(made)
        return made

    given = [
        own(x) if effects[name] else x for name, x in zip(kernel.source.parameters, arguments, strict=True)
    ]
    run = kernel.launcher_of(inner)
    assert run is not None
    run(kernel, shape, group, given)
    return tuple(results)


calls.KINDS["kernel"] = _run
