"""Ways of computing a product, by name: which one is chosen, and how each says it.

>>> sorted(Expansion.names)[:2]
['library', 'sums']
"""

from __future__ import annotations

from typing import Any, ClassVar

from mirabelle.arraytypes.programs.errors import shown_line
from mirabelle.arraytypes.programs.graph import Node
from mirabelle.arraytypes.programs.subgraphs import deciding
from mirabelle.dispatch.generic import generic


class Expansion:
    """A way of computing a product: a class with a name, and methods of `expand` for it.

    There are `library`, the place's own routine, and `sums`, a fused reduction. One of your own is a subclass
    with a name, which schedules then know, and a method that says the product in other nodes.

    >>> import mirabelle as mb
    >>> from mirabelle.arraytypes.programs.graph import Product, part_node, product_node
    >>> class Turned(mb.compiling.Expansion, name="turned"):
    ...     "a @ b as the transpose of b.T @ a.T"
    >>> def turned(x, shape):  # (a view of the matrix in C's order, as its transpose)
    ...     return part_node(x, 0, shape, (8, 8 * shape[0]), x.dtype)
    >>> @mb.compiling.expand.method
    ... def _(node: Product, how: Turned):
    ...     (a, b), (n, m) = node.operands, node.shape
    ...     k = a.shape[1]
    ...     made = product_node(turned(b, (m, k)), turned(a, (k, n)), (m, n), node.dtype)
    ...     return turned(made, (n, m))
    >>> schedule = mb.compiling.Schedule().library("product", by="turned")
    >>> f = mb.compile(lambda a, b: a @ b, schedule=schedule)
    >>> print(f(mb.HostArray([[1.0, 2.0]]), mb.HostArray([[3.0], [4.0]])))
    [[11.]]
    """

    names: ClassVar[dict[str, type[Expansion]]] = {}

    def __init_subclass__(cls, name: str, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        Expansion.names[name] = cls


class Library(Expansion, name="library"):
    """The routine of the place's library."""


class Sums(Expansion, name="sums"):
    """A fused reduction of products."""


@generic
def expand(node: Node, how: Expansion) -> Node:  # type: ignore[empty-body]
    """A product computed in another way: a node of the same shape and dtype, or the node itself.

    Methods are for a class of nodes (`Product`, `Fold`) and an `Expansion`.

    Parameters
    ----------
    node : node
        A matrix product, or a sum of products.
    how : Expansion
        The way.

    Returns
    -------
    node
        A node of the shape and dtype of `node`, which stands in its place; `node` itself leaves it as it
        is.

    Examples
    --------
    >>> import mirabelle as mb
    >>> from mirabelle.arraytypes.programs.expansions import Sums
    >>> program = mb.compile(lambda a: a @ a).program(mb.ones((300, 300)))
    >>> mb.compiling.expand(program.graph[-1], Sums()).label
    'sum'
    """


def expanded(node: Node) -> Node | None:
    """A product in the way that is decided for it; None if nothing is."""
    decided = deciding.get()
    if decided is None or not decided.active:
        return None
    found = decided.expansion(node)
    if found is None:
        return None
    decision, name = found
    kind = Expansion.names.get(name)
    if kind is None:
        raise decided.refused(decision, f"there is no way {name!r}; there are {', '.join(Expansion.names)}.")
    if expand.core.resolve((type(node), kind)) is None and expand.core.overriding((type(node), kind)) is None:
        raise decided.refused(
            decision, f"`mb.compiling.expand` has no method for {type(node).__name__} and {kind.__name__}."
        )
    made = expand(node, kind())
    if made is None and (not node.size or decision not in decided.decisions):
        return node
    if made is None:
        raise decided.refused(
            decision, f"what {shown_line(node.line)} computes cannot be computed by {name!r}."
        )
    if not isinstance(made, Node) or made.shape != node.shape or made.dtype != node.dtype:
        raise TypeError(
            f"A method of expand() turned {node!r} into {made!r}. It returns a node of the same shape and "
            "dtype."
        )
    return made


def noted(name: str, node: Node) -> None:
    """A pass has chosen a way for a product by itself."""
    decided = deciding.get()
    if decided is not None:
        decided.expanded.append((name, node))


__all__ = ["Expansion", "Library", "Sums", "expand", "expanded", "noted"]
