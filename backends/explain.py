"""`mb.explain`: what an expression will do, and why it is fast."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mirabelle.arraytypes import cards, flow
from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import DIRECT_TREE, is_small, wrap
from mirabelle.arraytypes.display import shown_bytes
from mirabelle.arraytypes.duals.base import Dual
from mirabelle.arraytypes.elementwise import leaf_family
from mirabelle.arraytypes.gpu import GPUArray
from mirabelle.arraytypes.host import HostArray
from mirabelle.backends.codegen.program import program_for
from mirabelle.backends.explaindistributed import facts_of
from mirabelle.backends.host.described import described
from mirabelle.dispatch import verbs
from mirabelle.dispatch.generic import which
from mirabelle.dispatch.schedule import HOIST_COST, SCALAR, dag_cost, operations, schedule
from mirabelle.dispatch.settings import settings
from mirabelle.dispatch.tree import FOREIGN, Broadcasted, Leaf, Reduced, format_tree

if TYPE_CHECKING:
    from mirabelle.arraytypes.annotations import ArrayLike


class Explanation:
    """A tree, the kernel made of it, and what running it moves. Prints as text, shows as HTML.

    >>> import mirabelle as mb
    >>> isinstance(mb.explain(mb.HostArray([1.0]) + 1), mb.types.Explanation)
    True
    """

    def __init__(self, facts: dict[str, str], tree: str, source: str, picture: str | None = None) -> None:
        self.facts = facts
        self.tree = tree
        self.source = source
        self.picture = picture

    def __repr__(self) -> str:
        width = max(map(len, self.facts), default=0)
        lines = [f"{k:<{width}}  {v}" for k, v in self.facts.items()]
        parts = ["\n".join(lines), "tree:\n" + _indent(self.tree)]
        if self.source:
            parts.append("kernel:\n" + _indent(self.source))
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        kernel = self.source and (
            "<details><summary style='cursor:pointer'>kernel</summary>"
            f"{cards.preformatted(self.source)}</details>"
        )
        return cards.card("explain", self.facts, "", self.picture or cards.preformatted(self.tree), kernel)


def _indent(text: str) -> str:
    return "\n".join("    " + line for line in text.rstrip("\n").split("\n"))


def _of_duals(x: Any) -> Explanation:
    """Of dual numbers: how their values come about, then their partials."""
    value, partials = explain(x.value), explain(x.partials)
    facts = {"result": f"{type(x).__name__} of shape {x.shape} on {x.place}, along {x.directions} direction(s)"}
    for what, part in (("values", value), ("partials", partials)):
        facts |= {f"{what}: {k}": v for k, v in part.facts.items() if k != "result"}
    tree = f"values\n{_indent(value.tree)}\npartials\n{_indent(partials.tree)}"
    sources = [f"# {what}\n{e.source}" for what, e in (("values", value), ("partials", partials)) if e.source]
    return Explanation(facts, tree, "\n".join(sources))


def explain(x: ArrayLike, *, into: AbstractArray | None = None) -> Explanation:
    """Say what evaluating `x` does: its tree, kernel source, bytes, launches, the method chosen.

    Nothing is evaluated, and nothing is sent. Of distributed arrays it says what processes would exchange;
    `into` is what a statement writes to (u[1:-1] of `u[1:-1] = x`), whose layout then decides who
    computes what.

    Parameters
    ----------
    x : array
        What is asked about.
    into : array or None
        Where it would be written.

    Returns
    -------
    mb.types.Explanation
        It prints as text and shows as HTML; `.tree`, `.source` and `.facts` are its parts.

    Examples
    --------
    >>> import mirabelle as mb
    >>> a = mb.ones(10_000)
    >>> e = mb.explain(a * 2 + 1)
    >>> print(e.tree)
    v1 = add: float64[10000]
      v2 = multiply: float64[10000]
        x1: float64[10000]
        2
      1
    >>> e.facts["launches"]
    '1'
    """
    if not isinstance(x, AbstractArray):
        raise TypeError(
            f"explain takes an array or an expression of arrays, not a {type(x).__name__}. A compiled "
            "function explains itself for what it is called with, `f.explain(x)`. For the "
            "methods of a function use mb.methods(f)."
        )
    if isinstance(x, Dual) and isinstance(x.value, AbstractArray):
        return _of_duals(x)
    if cards.distributed(x):
        return Explanation(*facts_of(x, explain, into))
    version = verbs.tree(x)
    family = leaf_family(type(x))
    picture = flow.flow(version)
    facts = {"result": f"{type(x).__name__} of shape {x.shape} on {x.place}"}
    if isinstance(version, Leaf):
        facts["state"] = "evaluated: in memory already"
        if 0 < version.view.size <= settings.immediate_size and family is leaf_family(type(x)) is HostArray:
            facts["few elements"] = (
                f"results of up to {settings.immediate_size} are computed where they are written (within "
                "`with mb.settings.changed(immediate_size=0):` they wait in trees, as larger ones do)"
            )
        if version.foreign:
            facts["memory"] = (
                "shared with NumPy, which may write to it: expressions over it are evaluated at once "
                "(HostArray(x) copies it once and lets them fuse)"
            )
        facts["launches"] = "0"
        return Explanation(facts, format_tree(version), "", picture)
    operand: Any = version.operand if isinstance(version, Reduced) else version
    before = _evaluated_first(operand, family)
    facts["state"] = "not evaluated"
    empty = family._empty(version.shape, version.dtype)
    method = which(verbs.copyto, wrap(family, Leaf(empty)), version)
    facts["method"] = repr(method)
    facts["launches"] = str(1 + len(before))
    if before:
        facts["computed first"] = "; ".join(before)
    request = _request(operand, family)
    views = [leaf.view for leaf in request.leaves]
    read = program_for(request, (operand.dtype,)).bytes_read(views)
    written = math.prod(version.shape) * version.dtype.itemsize
    n = math.prod(request.shape)
    unfused = sum(
        n * sig.out.itemsize
        + sum(
            views[-1 - ref].nbytes if ref < 0 else n * d.itemsize
            for ref, d in zip(refs, sig.ins, strict=True)
            if ref < SCALAR
        )
        for sig, refs in program_for(request, (operand.dtype,)).steps
    )
    facts["bytes read"] = shown_bytes(read)
    facts["bytes written"] = shown_bytes(written)
    facts["one operation at a time"] = f"{shown_bytes(unfused)} in {len(request.key[0])} launches"
    program = program_for(request, (version.dtype,))
    folds, axes = ([version], version.axes) if isinstance(version, Reduced) else ([], ())
    facts["runs as"], text = described(family, program, request.shape, folds, axes, [empty], views)
    return Explanation(facts, format_tree(version), text, picture)


def _request(operand: Any, family: Any) -> Any:
    """The operand linearised without evaluating anything: what would come first is a stand-in."""

    def stand_in(node: Any) -> Leaf:
        return Leaf(family._empty(node.shape, node.dtype))

    return schedule(operand, stand_in, store=False)


def _is_of_few(operand: Any, family: Any) -> bool:
    """Do NumPy's calls compute it, one after the other (`backends/host/direct.py`)?"""
    if family is not HostArray or type(operand) is not Broadcasted:
        return family is HostArray and math.prod(operand.shape) <= settings.small_size
    count = operand.size % FOREIGN
    few = is_small(operand.shape, count) and count <= DIRECT_TREE
    return few and all(node.sig.direct is not None for node in operations(operand))


def _evaluated_first(operand: Any, family: Any) -> list[str]:
    """Descriptions of the subtrees that get launches of their own, innermost last."""
    found: list[str] = []
    _walk(operand, operand.shape, found, set(), _hoisting(operand, family))
    return found


def _hoisting(operand: Any, family: Any) -> tuple[float, float]:
    """From which costs on a subtree is computed by a launch of its own: one that is a number, and others."""
    if _is_of_few(operand, family):
        return math.inf, math.inf  # each operation is computed at its own shape, and in the same launch
    if issubclass(family, GPUArray):
        from mirabelle.backends.gpu import direct

        if operand.size <= direct.LARGEST:
            return direct.LAUNCH + 1, HOIST_COST
    return HOIST_COST, HOIST_COST


def _walk(
    node: Any, shape: tuple[int, ...], found: list[str], seen: set[int], costs: tuple[float, float]
) -> None:
    for a in getattr(node, "args", None) or ():
        if not isinstance(a, (Broadcasted, Reduced)) or a.value is not None or id(a) in seen:
            continue
        seen.add(id(a))
        if isinstance(a, Reduced):
            found.append(f"{a.reduction.name} of shape {a.shape}")
            _walk(a.operand, a.operand.shape, found, seen, costs)  # type: ignore[union-attr]
        elif math.prod(a.shape) * 2 <= math.prod(shape) and dag_cost(a) >= costs[bool(a.shape)]:
            found.append(f"{a.sig.op.name} at its own shape {a.shape} (costly, and stretched later)")
            _walk(a, a.shape, found, seen, costs)
        else:
            _walk(a, shape, found, seen, costs)


def broadcasted(f: Callable[..., Any], *operands: Any) -> Broadcasted | Leaf:
    """The tree of an operation, without a handle: what `mb.copyto(dest, tree)` executes.

    Parameters
    ----------
    f : operation or callable
        A generic function that works element by element, or a scalar function.
    *operands : arrays and numbers
        The operands.

    Returns
    -------
    mb.ext.Broadcasted
        It has the `shape` and `dtype` of the result, and computes nothing until it is executed.

    Examples
    --------
    >>> import mirabelle as mb
    >>> t = mb.ext.broadcasted(mb.add, mb.HostArray([1.0, 2.0]), 1)
    >>> t
    v1 = add: float64[2]
      x1: float64[2]
      1
    >>> print(mb.copyto(mb.empty(2), t))
    [2. 3.]
    """
    from mirabelle.arraytypes.userbroadcast import broadcast

    with settings.changed(immediate_size=0):  # (a tree, however few its elements)
        result = broadcast(f, *operands)
    if isinstance(result, tuple):
        raise ValueError("broadcasted takes an operation of one result; use mb.broadcast for several.")
    tree: Broadcasted | Leaf = verbs.tree(result)
    return tree
