"""Passes: what rewrites a graph before it is planned.

A pass is a function from the values a program computes to the same values, computed otherwise. It has a name,
by which it can be left out: `mb.compile(f, passes=["parts", "algebra"])`. There are

- `constants`: what depends on no argument is computed when the program is compiled;
- `algebra`: operations that change nothing are left out (by exact rules; by those of `finite`, too, with
  `assume_finite=True`);
- `folds`: reductions of transposes, stretched values and reductions;
- `rolled`: independent turns of an unrolled loop are one operation over one more dimension;
- `contractions`: large sums of products are matrix products;
- `small`: small matrix products are sums of products, which need no library;
- `parts`: parts of parts are parts, parts of cheap operations are operations on parts, and what is joined,
  rolled or gathered is read where it was before;
- `sums`: sums of matrix products are one product;
- `stacks`: products of a stack with one matrix are one product of all its lines;
- `products`: products with one matrix, or with parts of one, become one product;
- `joins`: what is joined only to be joined again, or reshaped on the way, is written where it belongs;
- `refined`: operations on reshaped values are operations over the axes that these have before;
- `loops`: operations on what a loop over mesh points reads and writes are done in it;
- `user`: rules of your own.

A rule of your own is a method of `rewrite`, for a class of nodes. It is given each such node of the graphs
compiled from then on, after its operands, and returns the node or another one of the same shape and dtype:

    from mirabelle.arraytypes.programs.graph import Map, Node

    @mb.compiling.rewrite.method
    def _(node: Map) -> Node:
        "abs(sqrt(x)) is sqrt(x)"
        if node.label == "abs" and getattr(node.operands[0], "label", "") == "sqrt":
            return node.operands[0]
        return node

A pass of your own is a function of a tuple of nodes, given in `passes`:
`mb.compile(f, passes=[*mb.compiling.PASSES, mine])`. It goes through them by `rewritten(outputs, rule)`, or
by `ordered(outputs)`, and makes nodes by `map_node`, `part_node`, ... of `programs/graph.py`. Nodes are never
changed; those that are equal are one object. A pass takes time in proportion to the number of nodes: none calls
`ordered` for each of them. One that finds nothing to do returns the tuple it was given: what was found out
about the graph before it (`ordered`, `users_of`) then holds for those after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from mirabelle.arraytypes.programs.graph import Node, ordered, rewritten
from mirabelle.arraytypes.programs.passes.algebra import algebra, finite
from mirabelle.arraytypes.programs.passes.constants import constants
from mirabelle.arraytypes.programs.passes.contractions import contractions
from mirabelle.arraytypes.programs.passes.folds import folds
from mirabelle.arraytypes.programs.passes.joins import joins
from mirabelle.arraytypes.programs.passes.loops import loops
from mirabelle.arraytypes.programs.passes.parts import flattened_parts, parts
from mirabelle.arraytypes.programs.passes.products import products, stacks
from mirabelle.arraytypes.programs.passes.refined import refined
from mirabelle.arraytypes.programs.passes.rolled import rolled
from mirabelle.arraytypes.programs.passes.smallproducts import summed_products
from mirabelle.arraytypes.programs.passes.sums import sums
from mirabelle.dispatch.generic import generic

Pass = Callable[[tuple[Node, ...]], tuple[Node, ...]]


@generic
def rewrite(node: Node) -> Node:  # type: ignore[empty-body]
    """What a node of a graph is to be instead: itself, or another one of the same shape and dtype.

    Methods are given the nodes of every graph that is compiled, after their operands. See
    `mirabelle.arraytypes.programs.passes` for an example.

    Parameters
    ----------
    node : node
        A node of the graph.

    Returns
    -------
    node
        A node of the shape and dtype of `node`, which stands in its place; `node` itself leaves it as it
        is. There is no method to begin with.

    Examples
    --------
    >>> import mirabelle as mb
    >>> [m.signature[0].__name__ for m in mb.methods(mb.compiling.rewrite)]
    []
    """


def user(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """The graph as the methods of `rewrite` have it.

    >>> import mirabelle as mb
    >>> mb.compile(lambda x: x + 1, passes=["user"]).program(mb.ones(2)).plan.steps[0].name
    'add'
    """
    if not rewrite.core.methods and not rewrite.core.active_overrides:
        return outputs
    known: dict[type, bool] = {}

    def ruled(node: Node) -> Node:
        kind = type(node)
        if kind not in known:
            core = rewrite.core
            known[kind] = core.overriding((kind,)) is not None or core.resolve((kind,)) is not None
        if not known[kind]:
            return node
        made = rewrite(node)
        if not isinstance(made, Node) or made.shape != node.shape or made.dtype != node.dtype:
            shown = repr(made) if isinstance(made, Node) else f"a {type(made).__name__}"
            raise TypeError(
                f"A method of rewrite() turned {node!r} into {shown}. It returns a node of the same shape and "
                "dtype, or the node itself: `return node`."
            )
        return made

    return rewritten(outputs, ruled)


# Passes by name, in the order in which they are applied.
PASSES: dict[str, Pass] = {
    "constants": constants,
    "algebra": algebra,
    "folds": folds,
    "rolled": rolled,
    "contractions": contractions,
    "small": summed_products,
    "parts": parts,
    "sums": sums,
    "stacks": stacks,
    "products": products,
    "joins": joins,
    "refined": refined,
    "loops": loops,
    "user": user,
}
# Those that hold only where no value is infinite or NaN.
FINITE: dict[str, Pass] = {"finite": finite}


class Passes:
    """A sequence of passes, and what each did when it was last applied."""

    def __init__(self, passes: Sequence[tuple[str, Pass]]) -> None:
        self.passes = list(passes)
        # (name, nodes before, nodes after, seconds)
        self.record: list[tuple[str, int, int, float]] = []

    def applied(self, outputs: tuple[Node, ...], without: Sequence[str] = ()) -> tuple[Node, ...]:
        self.record = []
        before = len(ordered(outputs))
        for name, run in self.passes:
            if name in without:
                continue
            began = time.perf_counter()
            made = run(outputs)
            if made is not outputs:
                _check(name, outputs, made)
            same = all(a is b for a, b in zip(made, outputs, strict=True))
            outputs = made
            after = before if same else len(ordered(outputs))
            self.record.append((name, before, after, time.perf_counter() - began))
            before = after
        return outputs


def _check(name: str, before: tuple[Node, ...], after: Any) -> None:
    """A pass returns as many values, of the same shapes and dtypes."""
    if not isinstance(after, tuple) or len(after) != len(before):
        raise TypeError(
            f"The pass {name!r} got {len(before)} node(s) and returned {after!r}. It returns a tuple of as "
            "many nodes, for instance `return rewritten(outputs, rule)`."
        )
    for a, b in zip(before, after, strict=True):
        if not isinstance(b, Node) or a.shape != b.shape or a.dtype != b.dtype:
            raise TypeError(f"The pass {name!r} turned {a!r} into {b!r}: shapes and dtypes are to stay.")


def chosen_passes(passes: Any = None, assume_finite: bool = False) -> Passes:
    """Passes by their names (or functions), or all of them."""
    if passes is None:
        # (Those for finite numbers come when numbers are known as such, and before the others look at what they
        # leave out.)
        every = list(PASSES.items())
        at = 1 + list(PASSES).index("constants") if "constants" in PASSES else 0
        return Passes([*every[:at], *(FINITE.items() if assume_finite else ()), *every[at:]])
    if isinstance(passes, str):
        passes = [passes]
    known = {**PASSES, **FINITE}
    found: list[tuple[str, Pass]] = []
    for p in passes:
        if isinstance(p, str) and p in known:
            found.append((p, known[p]))
        elif callable(p):
            own: Any = p
            found.append((getattr(p, "__name__", "pass"), own))
        else:
            raise ValueError(
                f"There is no pass named {p!r}. There are {', '.join(known)}, and functions of your own."
            )
    return Passes(found)


def simplified(outputs: tuple[Node, ...]) -> tuple[Node, ...]:
    """All passes, for values that are asked for while nothing is compiled."""
    return flattened_parts(outputs)
