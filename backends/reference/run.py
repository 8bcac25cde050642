"""RefArray's `copyto`: trees and reductions become kernels of the reference device."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from mirabelle.arraytypes.assign import write_safely
from mirabelle.arraytypes.dense import force_temporary, settle
from mirabelle.arraytypes.reference import RefArray, RefBuffer, RefView, handle
from mirabelle.backends.codegen.program import Program, is_user_function, program_for
from mirabelle.backends.codegen.source import Source, function_name, thread_source
from mirabelle.backends.codegen.userfunctions import jitted
from mirabelle.backends.host.compiler import remember
from mirabelle.backends.host.layout import stretched_strides
from mirabelle.backends.host.library import scan_ufunc
from mirabelle.backends.host.run import scalar_block
from mirabelle.backends.reference.device import Memory, launch, namespace, scalar_function
from mirabelle.dispatch import counters, generic, verbs
from mirabelle.dispatch.schedule import schedule, schedule_reduction
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced


def force_ref(version: Any) -> Leaf:
    return force_temporary(RefArray, version)


@verbs.copyto.method
def _(dest: RefArray, src: Broadcasted) -> Any:
    if not dest._node.checked:  # type: ignore[union-attr]
        return write_safely(dest, src)
    target = dest._node.view  # type: ignore[union-attr]
    request = schedule(src, force_ref)
    outs = [target] + [RefArray._empty(n.shape, n.dtype) for n in request.stored]
    program = program_for(request, tuple(o.dtype for o in outs))
    run(program, [leaf.view for leaf in request.leaves], request.scalars, outs)
    for node, out in zip(request.stored, outs[1:], strict=True):
        settle(node, Leaf(out))
    return dest


def run(program: Program, views: list[RefView], scalars: list[Any], outs: list[RefView]) -> None:
    """One launch of a program's thread kernel."""
    count(views, outs, program)
    shape = outs[0].shape
    memory = Memory()
    operands = [*outs, *views]
    words = [outs[0].size, *shape]
    for view in operands:
        words += [memory.address(view), *stretched_strides(view, shape)]
    words += scalar_block(program, scalars)
    execute(kernel_of(program, len(shape)), program, memory, words, outs[0].size)


def count(views: list[RefView], outs: list[RefView], program: Program | None = None) -> None:
    if counters.active:
        counters.add(
            launches=1,
            bytes_read=sum(v.nbytes for v in views) if program is None else program.bytes_read(views),
            bytes_written=sum(o.nbytes for o in outs),
        )


def kernel_of(program: Program, rank: int) -> Source:
    source = program.plans.get(("thread", rank))
    if source is None:
        source = program.plans["thread", rank] = thread_source(program, rank)
    return source  # type: ignore[no-any-return]


def execute(source: Source, program: Program, memory: Memory, words: list[int], threads: int) -> None:
    """Execute generated source thread by thread, its arguments in device memory."""
    functions = {}
    for sig, _ in program.steps:
        if sig.op.scalar is not None:
            f = jitted(sig.op.scalar) if is_user_function(sig.op) else scalar_function(sig.op, sig.out)
            functions[function_name(sig.op)] = f
    scope = namespace(memory, functions)
    exec(_code(source.text), scope)
    block = RefBuffer(8 * len(words))
    block._bytes().view(np.int64)[...] = words
    launch(scope[source.name], memory.adopt(block), threads)


@functools.lru_cache(maxsize=1024)
def _code(text: str) -> Any:
    return compile(text, remember(text), "exec")


# One element: a transfer of a few bytes, for which devices start no kernel

_world = -1
_usable = False


def copied_element(node: Any) -> Leaf | None:
    """The value of x[i], or None where a kernel must find it.

    (Also where somebody counts, or has given `copyto` a method of their own.)
    """
    if node.shape or counters.active or type(node) is not Broadcasted or node.sig.op.name != "copy":
        return None
    source = node.args[0] if node.args else None
    if type(source) is not Leaf or source.shape or source.dtype != node.dtype or not _is_default():
        return None
    view = RefArray._empty((), node.dtype)
    RefArray._copy_into(view, source.view)
    return settle(node, Leaf(view))


def _is_default() -> bool:
    global _world, _usable
    if generic._world != _world:
        core = verbs.copyto.core
        _usable = not core.active_overrides and core.resolve((RefArray, Broadcasted)) is _default
        _world = generic._world
    return _usable


_default = verbs.copyto.core.resolve((RefArray, Broadcasted))
RefArray._direct = staticmethod(copied_element)  # type: ignore[assignment]


# Reductions: one thread for each output


@verbs.copyto.method
def _(dest: RefArray, src: Reduced) -> Any:
    from mirabelle.backends.host.reduce import waiting

    if not dest._node.checked:  # type: ignore[union-attr]
        return write_safely(dest, src)
    target = dest._node.view  # type: ignore[union-attr]
    fusable = src.reduction.scalar is None and src.reduction.neutral(src.dtype) is not None
    together = waiting(src) if fusable else [src]
    outs = [target] + [RefArray._empty(r.shape, r.dtype) for r in together[1:]]
    request = schedule_reduction(src.operand, together, force_ref)
    stored = [RefArray._empty(n.shape, n.dtype) for n in request.stored]
    program = program_for(request, tuple(r.dtype for r in together) + tuple(n.dtype for n in request.stored))
    views = [leaf.view for leaf in request.leaves]
    count(views, [*outs, *stored], program)
    reduce(program, request.shape, src.axes, views, request.scalars, together, outs, stored)
    for r, out in zip(together[1:], outs[1:], strict=True):
        settle(r, Leaf(out))
    for node, out in zip(request.stored, stored, strict=True):
        settle(node, Leaf(out))
    return dest


def reduce(
    program: Program,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    views: list[RefView],
    scalars: list[Any],
    together: list[Reduced],
    outs: list[RefView],
    stored: list[RefView],
) -> None:
    """Evaluate the tree into the device's scratch, then one thread combines each output.

    The scratch stands for the shared memory of a block: no array of the program's.
    """
    kept = [d for d in range(len(shape)) if d not in axes]
    scratch = [RefArray._empty(shape, r.dtype) for r in together]
    memory = Memory()
    words = [math.prod(shape), *shape]
    for view in [*scratch, *stored, *views]:
        words += [memory.address(view), *stretched_strides(view, shape)]
    words += scalar_block(program, scalars)
    if math.prod(shape):
        execute(kernel_of(program, len(shape)), program, memory, words, math.prod(shape))
    with np.errstate(all="ignore"):
        for r, values, out in zip(together, scratch, outs, strict=True):
            rows = (
                values._host()
                .transpose([*kept, *axes])
                .reshape(math.prod(shape[d] for d in kept), math.prod(shape[d] for d in axes))
            )
            result = out._host().reshape(-1) if out.size else np.empty(0, out.dtype)
            for i, row in enumerate(rows):
                result[i] = combine(r.reduction, row, r.dtype)


def combine(reduction: Any, row: np.ndarray, dtype: np.dtype) -> Any:
    """One thread's work: the elements of an output, by halves so that rounding stays small."""
    neutral = reduction.init if reduction.scalar is not None else reduction.neutral(dtype)
    if neutral is None:
        return reduction.ufunc.reduce(row)
    if reduction.scalar is not None:
        f = jitted(reduction.scalar)
        total = dtype.type(neutral)
        for value in row:
            total = f(total, value)
        return total
    values = row.copy()
    while len(values) > 1:
        if len(values) % 2:
            values = np.append(values, dtype.type(neutral))
        values = reduction.ufunc(values[::2], values[1::2])
    # (A fold begins with the neutral element: a sum of -0.0 alone is 0.0.)
    return reduction.ufunc(dtype.type(neutral), values[0]) if len(values) else dtype.type(neutral)


# Library functions of the device: its own matrix product and scan


def _matmul(x1: Any, x2: Any) -> Any:
    a, b = verbs.leaf_of(x1).view, verbs.leaf_of(x2).view
    data = np.matmul(a._host(), b._host())
    out = RefArray._empty(data.shape, data.dtype)
    count([a, b], [out])
    out._host()[...] = data
    return handle(out)


def _accumulate(x: Any, op: Any, axis: int) -> Any:
    view = verbs.leaf_of(x).view
    ufunc = scan_ufunc(op)
    if ufunc is not None:
        data = ufunc.accumulate(view._host(), axis=axis)
    else:
        from mirabelle.backends.host.folds import scan

        moved = np.moveaxis(view._host(), axis, -1)
        rows = np.ascontiguousarray(moved).reshape(-1, moved.shape[-1])
        data = np.moveaxis(scan(op, rows).reshape(moved.shape), -1, axis)
    out = RefArray._empty(data.shape, data.dtype)
    count([view], [out])
    out._host()[...] = data
    return handle(out)


RefArray._matmul = staticmethod(_matmul)  # type: ignore[method-assign, assignment]
RefArray._accumulate = staticmethod(_accumulate)  # type: ignore[method-assign, assignment]
