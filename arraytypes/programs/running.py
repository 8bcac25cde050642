"""Running a plan step by step, on any array type: what a backend can do better, it does in its own way.

Each step is a tree over leaves of the plan's memory, handed to the family's `copyto`, or a call of its library.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from mirabelle.arraytypes.dense import DenseArray, force, wrap
from mirabelle.arraytypes.library import matrix_product
from mirabelle.arraytypes.programs import calls
from mirabelle.arraytypes.programs.errors import TraceError, shown_line
from mirabelle.arraytypes.programs.graph import Fold, Map, Node, Product, c_strides, data_node, placed_as
from mirabelle.arraytypes.programs.planning import planned
from mirabelle.arraytypes.programs.steps import (
    CallStep,
    CopyStep,
    FoldStep,
    JoinedStep,
    KernelStep,
    LaunchStep,
    OutsideStep,
    Plan,
    ProductStep,
    Ref,
    Step,
    Storage,
)
from mirabelle.arraytypes.programs.subgraphs import deciding
from mirabelle.dispatch import verbs
from mirabelle.dispatch.generic import by_type
from mirabelle.dispatch.ops import TABLE
from mirabelle.dispatch.promotion import intern
from mirabelle.dispatch.schedule import SCALAR, Request
from mirabelle.dispatch.tree import Broadcasted, Leaf, Reduced, destination


def evaluate(inner: Any, nodes: tuple[Node, ...]) -> list[Any]:
    """The values of nodes that depend on no argument, as views of the inner family."""
    from mirabelle.arraytypes.programs.passes import simplified

    token = deciding.set(None)  # (what is decided is about the program, and not about what is known already)
    wanted = (*nodes, *_on_the_way(nodes))
    try:
        found = StepByStep(inner, planned(simplified(with_known(inner, wanted)), [])).run([])
    finally:
        deciding.reset(token)
    for node, view in zip(wanted, found, strict=True):
        if node.operands:
            _evaluated[node] = inner, data_node(inner, view)
    return found[: len(nodes)]


# What is known of nodes that are there: what is computed from them later begins with that.
_evaluated: weakref.WeakKeyDictionary[Node, tuple[Any, Node]] = weakref.WeakKeyDictionary()
# So many nodes are evaluated again and again, and values of so many elements are kept for what asks next.
_AGAIN, _KEPT = 32, 1 << 12


def _on_the_way(nodes: tuple[Node, ...]) -> list[Node]:
    """What is computed on the way to nodes, and is worth keeping.

    A loop whose turns each ask for a value that depends on the turn before would compute all turns at each.
    """
    seen: set[Node] = set()
    stack = list(nodes)
    while stack:
        for x in stack.pop().operands:
            if x.operands and x not in seen and x not in _evaluated:
                seen.add(x)
                stack.append(x)
    if len(seen) <= _AGAIN:
        return []
    kept = [x for x in seen if isinstance(x, (Map, Product, Fold)) and x.size <= _KEPT and x not in nodes]
    return sorted(kept, key=lambda x: x.serial)


def with_known(inner: Any, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The nodes on what is known: what that was computed from is not looked at."""
    made: dict[Node, Node] = {}
    stack = list(nodes)
    while stack:
        node = stack[-1]
        family, found = _evaluated.get(node, (None, node))
        if family is inner or not node.operands:
            made[node] = found
        missing = [] if node in made else [x for x in node.operands if x not in made]
        stack += missing
        if missing:
            continue
        stack.pop()
        if node not in made:
            operands = tuple([made[x] for x in node.operands])
            same = all(a is b for a, b in zip(operands, node.operands, strict=True))
            made[node] = node if same else placed_as(node, node.rebuilt(operands))
    return tuple([made[x] for x in nodes])


@by_type
def plan_runner(inner: Any, plan: Plan) -> Any:
    """What runs a plan on a place: an object whose `run` takes and returns views."""


@plan_runner.method
def _(inner: type[DenseArray], plan: Plan) -> Any:
    return StepByStep(inner, plan)


def strided(view: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype) -> Any:
    """A view of the memory of a contiguous one, by an offset and strides in bytes."""
    if isinstance(view, np.ndarray):
        if offset == 0 and shape == view.shape and strides == view.strides and dtype == view.dtype:
            return view
        if not view.size or 0 in shape:
            return np.empty(shape, dtype)
        # (Of a read-only array a read-only view: its memory is still this one's.)
        return (
            np.ndarray(shape, dtype, view, offset, strides)
            if view.flags.writeable
            else _reading(view, offset, shape, strides, dtype)
        )
    return view.strided(offset, shape, strides, dtype)


def _reading(view: Any, offset: int, shape: Any, strides: Any, dtype: Any) -> Any:
    flat = view.reshape(-1).view(np.uint8)
    part = np.lib.stride_tricks.as_strided(flat[offset:][: dtype.itemsize].view(dtype), (1,), (0,))
    return np.lib.stride_tricks.as_strided(part, shape, strides, writeable=False)


def tree_of(request: Request, out: int, leaves: Sequence[Leaf]) -> Broadcasted:
    """One result of a request as a tree over leaves."""
    steps, outs = request.key
    made: list[Broadcasted] = []
    shape = request.shape

    def operand(ref: int) -> Any:
        if ref < 0:
            return leaves[-1 - ref]
        return request.scalars[ref - SCALAR] if ref >= SCALAR else made[ref]

    for step in steps:
        args = tuple([operand(r) for r in step[1:]])
        shapes = [a.shape for a in args if isinstance(a, (Leaf, Broadcasted))]
        made.append(Broadcasted(step[0], args, np.broadcast_shapes(*shapes) if shapes else ()))
    top = operand(outs[out])
    if isinstance(top, Leaf) or top.shape != shape:
        top = Broadcasted(intern(TABLE["copy"], (top.dtype,), (top.dtype,)), (top,), shape)
    return top  # type: ignore[no-any-return]


class StepByStep:
    """A plan that is run by the family's own methods."""

    def __init__(self, inner: Any, plan: Plan) -> None:
        self.inner = inner
        self.plan = plan

    @property
    def quick(self) -> Any:
        """A shorter way, where there is one: handles of the inputs → leaves of the results, or None if it
        cannot be gone."""
        return None

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """The views of the results, given those of the inputs (contiguous, in C's order)."""
        views = self.given(inputs)
        for step in self.plan.steps:
            self.one(step, views)
        return [self.view(s, views) for s in self.plan.outputs]

    def given(self, inputs: Sequence[Any]) -> dict[int, Any]:
        """The views of what is there before the first step, by storage."""
        views: dict[int, Any] = {}
        for s in self.plan.storages:
            if s.kind == "input":
                views[s.number] = inputs[s.index]
            elif s.kind == "data":
                views[s.number] = in_c_order(self.inner, s.node.view)  # type: ignore[attr-defined]
        return views

    def one(self, step: Step, views: dict[int, Any]) -> None:
        """A step; what nobody reads after it is let go."""
        self.step(step, views)
        for ref in step.reads:
            s = ref.storage
            if s.last == step.number and s.kind in ("temporary", "made") and s not in self.plan.outputs:
                views.pop(s.number, None)

    def view(self, s: Storage, views: dict[int, Any]) -> Any:
        found = views.get(s.number)
        if found is None:
            found = views[s.number] = self.inner._empty(s.shape, s.dtype)
        return found

    def shown(self, ref: Ref, views: dict[int, Any]) -> Any:
        view = self.view(ref.storage, views)
        return view if ref.is_whole else strided(view, ref.offset, ref.shape, ref.strides, ref.dtype)

    def leaf(self, ref: Ref, views: dict[int, Any]) -> Leaf:
        return Leaf(self.shown(ref, views), table=ref.table)

    def step(self, step: Step, views: dict[int, Any]) -> None:
        inner = self.inner
        if isinstance(step, KernelStep):
            written = {d.storage for d in step.dests}
            if len(step.dests) > 1 and any(r.storage in written for r in step.reads):
                # (One kernel reads before it writes. One after the other, the results must wait for each
                # other.)
                leaves = [self.leaf(r, views) for r in step.reads]
                made = []
                for i in range(len(step.dests)):
                    tree = tree_of(step.request, i, leaves)
                    fresh = destination(inner._empty(tree.shape, tree.dtype))
                    verbs.copyto(wrap(inner, fresh), tree)
                    made.append(fresh.view)
                for dest, view in zip(step.dests, made, strict=True):
                    inner._copy_into(self.shown(dest, views), view)
                return
            for i, dest in enumerate(step.dests):
                if dest.size:
                    leaves = [self.leaf(r, views) for r in step.reads]
                    if self.inner.home.rank == 3 and dest.is_whole and dest.storage.number not in views:
                        # Divided as what it is computed from.
                        views[dest.storage.number] = force(inner, tree_of(step.request, i, leaves)).view
                        continue
                    target = destination(self.shown(dest, views))
                    verbs.copyto(wrap(inner, target), tree_of(step.request, i, leaves))
        elif isinstance(step, JoinedStep):
            for member in step.members:
                self.step(member, views)
        elif isinstance(step, FoldStep):
            leaves = [self.leaf(r, views) for r in step.reads]
            for node, dest, i in zip(step.nodes, step.dests, range(len(step.nodes)), strict=True):
                fold: Any = node
                tree = tree_of(step.request, i, leaves)
                reduced = Reduced(fold.reduction, tree, fold.axes, fold.keepdims, fold.shape, fold.dtype)
                verbs.copyto(wrap(inner, destination(self.shown(dest, views))), reduced)
        elif isinstance(step, CopyStep):
            source = self.shown(step.source, views)
            if step.dest.storage.number not in views:
                views[step.dest.storage.number] = inner._alike(source)
            inner._copy_into(self.shown(step.dest, views), source)
        elif isinstance(step, ProductStep):
            views[step.dest.number] = multiplied(inner, step, [self.shown(r, views) for r in step.operands])
        elif isinstance(step, LaunchStep):
            step.run(inner, [self.shown(r, views) for r in step.operands])
        elif isinstance(step, CallStep):
            for number, view in called(inner, step, [self.shown(r, views) for r in step.operands]).items():
                views[step.dests[number].number] = view
        elif isinstance(step, OutsideStep):
            step.run(
                inner, [self.shown(r, views) for r in step.reads], [self.shown(r, views) for r in step.writes]
            )
        else:
            raise TypeError(f"A step of a kind that nobody runs: {step!r}.")


def multiplied(inner: Any, step: ProductStep, operands: list[Any]) -> Any:
    """The memory of a matrix product."""
    x1, x2 = [wrap(inner, Leaf(v)) for v in operands]
    made = verbs.leaf_of(matrix_product(inner, x1, x2)).view
    if made.dtype != step.dest.dtype or tuple(made.shape) != step.dest.shape:
        raise TraceError(
            f"The product in {shown_line(step.nodes[0].line)} gave {made.dtype.name}{list(made.shape)} where "
            f"{step.dest.dtype.name}{list(step.dest.shape)} was expected."
        )
    return in_c_order(inner, made)


def called(inner: Any, step: CallStep, operands: list[Any]) -> dict[int, Any]:
    """The memory of those results of a call that somebody reads, by their numbers."""
    call = step.call
    return delivered(
        inner, step, operands, calls.run_call(inner, call.kind, call.routine, call.template, operands)
    )


def delivered(inner: Any, step: CallStep, operands: list[Any], result: Any) -> dict[int, Any]:
    """The same, of what the call returned."""
    call = step.call
    found = calls.arrays_of(result)
    made: dict[int, Any] = {}
    for number, s in step.dests.items():
        view = found[number]
        if tuple(view.shape) != s.shape or view.dtype != s.dtype:
            raise TraceError(
                f"{call.routine}() in {shown_line(call.line)} returned {view.dtype.name}{list(view.shape)}, "
                f"and the program was compiled for {s.dtype.name}{list(s.shape)}: how many elements there "
                "are depends on values. Call it outside of the compiled function."
            )
        view = in_c_order(inner, view)
        if any(_one_memory(view, x) for x in operands):
            # It returns what it was given, whose memory holds something else later.
            own = inner._empty(view.shape, view.dtype)
            inner._copy_into(own, view)
            view = own
        made[number] = view
    return made


def _one_memory(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and np.may_share_memory(a, b)
    return a is b or getattr(a, "buffer", a) is getattr(b, "buffer", b)


def in_c_order(inner: Any, view: Any) -> Any:
    """A view's contents one after another in C's order: the view itself if they lie so."""
    if view.flags.c_contiguous and view.strides == c_strides(view.shape, view.dtype):
        return view
    if view.flags.c_contiguous and 0 not in view.shape:
        return view.reshape(view.shape)
    made = inner._empty(view.shape, view.dtype)
    inner._copy_into(made, view)
    return made
