"""`mb.hint`: decisions about a value, said where the program computes it; and the roles of axes.

>>> import mirabelle as mb
>>> from mirabelle.arraytypes.programs.hints import axis_roles
>>> def f(u):
...     u = mb.hint(u, axes=("cell", "node"))
...     return mb.sum(u * 2, axis=1)
>>> roles = axis_roles(mb.compile(f).program(mb.zeros((5, 3))))
>>> list(roles.values())[-1]
('cell',)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mirabelle.arraytypes.abstract import AbstractArray
from mirabelle.arraytypes.dense import DenseArray
from mirabelle.arraytypes.programs.deciding import decisions_of
from mirabelle.arraytypes.programs.graph import Fold, Map, Node, Update, ordered
from mirabelle.arraytypes.programs.patterns import pattern_of
from mirabelle.arraytypes.programs.subgraphs import deciding
from mirabelle.dispatch import verbs

Roles = tuple[Any, ...]


def hint(
    x: Any,
    /,
    *,
    store: bool = False,
    once: bool = False,
    recompute: bool = False,
    separate: bool = False,
    own_memory: bool = False,
    precision: str | None = None,
    library: str | None = None,
    tile: int | None = None,
    threads: int | None = None,
    tag: str | None = None,
    axes: Iterable[str] | None = None,
) -> AbstractArray:
    """Decide in a compiled function how a value is computed, and return it.

    These are the decisions of `mb.compiling.Schedule`, about the operation that computes `x` in this line.
    Outside of a program nothing is decided, and `x` is returned as it is. A hint about what the program turns
    out not to need is forgotten; one that cannot be carried out is a `mb.compiling.ScheduleError`.

    Parameters
    ----------
    x : array
        The value.
    store : bool, default False
        Keep it in memory: one kernel computes it, and what reads it comes after that. `mb.materialize(x)` says
        the same.
    once, recompute : bool, default False
        Compute it once for all kernels that read it, or again in each of them.
    separate : bool, default False
        Compute it by a kernel of its own.
    own_memory : bool, default False
        Let nothing else lie in its memory.
    precision : str or None
        The narrower dtype that it is rounded to and stored as.
    library : str or None
        How a product is computed: "library", "sums", or an expansion of your own.
    tile : int or None
        How many rows go at once through it and through what follows it, on the host.
    threads : int or None
        How many threads work on it at most, on the host.
    tag : str or None
        A name by which schedules find it: `"#name"`.
    axes : iterable of str or None
        The roles of its axes, which passes can read (`mb.compiling.axis_roles`).

    Returns
    -------
    array
        `x` itself outside of a compiled function, whatever it is. In one, an array of the same shape and
        dtype, also with `precision`.

    Examples
    --------
    >>> import mirabelle as mb
    >>> @mb.compile
    ... def f(x):
    ...     y = mb.hint(mb.exp(x), store=True)
    ...     return y + 1
    >>> [step.name for step in f.program(mb.zeros(3)).plan.steps]
    ['exp', 'add']
    >>> mb.hint(3, store=True)
    3
    """
    if axes is not None and not hasattr(axes, "__iter__"):
        raise TypeError(f"hint: axes= takes a name for each axis, and not {axes!r}: `axes=('cell', 'node')`.")
    roles = None if axes is None else tuple(axes)
    said: dict[str, Any] = {
        "once": once,
        "recompute": recompute,
        "separate": separate,
        "own_memory": own_memory,
        "precision": precision,
        "library": library,
        "tile": tile,
        "threads": threads,
        "tag": tag,
        "axes": roles,
    }
    decided = deciding.get()
    decisions_of("x", said)  # (what is no decision is refused outside of a program, too)
    if decided is None or not isinstance(x, AbstractArray):
        return x
    node = _node_of(x)
    if node is None:
        return x
    if roles is not None and len(roles) != x.ndim:
        raise ValueError(f"mb.hint(x, axes={roles!r}) names {len(roles)} axes, and x has {x.ndim}.")
    decided.hinted += [d for d in decisions_of(pattern_of(node), said) if d not in decided.hinted]
    return verbs.materialize(x) if store else x


def _node_of(x: Any) -> Node | None:
    """The value that an array of the program that is being captured shows."""
    from mirabelle.arraytypes.programs.traced import Traced

    if not isinstance(x, DenseArray) or not isinstance(x, Traced):
        return None
    node = verbs.leaf_of(x).view.node
    return node if isinstance(node, Node) else None


def axis_roles(of: Any) -> dict[Node, Roles]:
    """The roles of the axes of values of a program, by nodes: those that are given, and those that follow.

    What is computed elementwise has the roles of its operands, a reduction those of the axes that stay, a value
    that is written to those it had. An axis without a role is None.

    Parameters
    ----------
    of : Program or tuple of nodes
        The program; in a pass, the nodes that it is given.

    Returns
    -------
    dict
        From nodes to a tuple of one role, or None, for each axis. Nodes without any role may be missing; it
        is empty where no roles were given.

    Examples
    --------
    >>> import mirabelle as mb
    >>> schedule = mb.compiling.Schedule().axes("u", roles=("cell", "node"))
    >>> program = mb.compile(lambda u: u + 1, schedule=schedule).program(mb.zeros((5, 3)))
    >>> mb.compiling.axis_roles(program)[program.graph[-1]]
    ('cell', 'node')
    """
    decided = deciding.get() if isinstance(of, tuple) else of.decided
    nodes = ordered(of) if isinstance(of, tuple) else of.graph
    found: dict[Node, Roles] = {}
    if decided is None:
        return found
    for d, values in decided.of(nodes, ("axes",)):
        roles = d.option("roles")
        for x in values:
            if len(roles) == x.ndim:
                found[x] = roles
    if found:
        for x in nodes:
            if x not in found:
                roles = _following(x, found)
                if any(role is not None for role in roles):
                    found[x] = roles
    return found


def _following(x: Node, known: dict[Node, Roles]) -> Roles:
    """The roles that a value has from what it is computed from."""
    if isinstance(x, Update):
        return known.get(x.base, ())
    if isinstance(x, Fold):
        roles = known.get(x.operands[0], ())
        return tuple([None if k in x.axes else r for k, r in enumerate(roles) if x.keepdims or k not in x.axes])
    made: list[Any] = [None] * x.ndim
    for a in x.operands if isinstance(x, Map) else ():
        pad = x.ndim - a.ndim
        for k, role in enumerate(known.get(a, ())):
            if role is not None and made[pad + k] is None and (a.shape[k] == x.shape[pad + k]):
                made[pad + k] = role
    return tuple(made)


__all__ = ["axis_roles", "hint"]
