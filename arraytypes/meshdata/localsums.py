"""Sums of products with constants in a local kernel's graph: collected, and found again as rows of tables.

What a kernel multiplies by tables of basis functions is a linear map with constant coefficients, written out.
`collected` multiplies such constants with each other beforehand: the entries of an element's matrix become
sums over the few numbers that the cell's geometry gives. `weighted_sum` finds the sums that are left.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from mirabelle.arraytypes.meshdata.localgraph import Graph
from mirabelle.arraytypes.meshdata.localkernels import LocalProgram

# For each node of a sum: its coefficient, and how many products with constants that is made of.
_Terms = dict[int, tuple[float, int]]


def collected(program: LocalProgram) -> LocalProgram:
    """The program with fewer products, if constants that are multiplied beforehand make it so.

    Two occurrences of one number are joined only where each comes with two constant factors or more, as
    products with tables from both sides do: sums that undo what rounding did are left as they are written.
    """
    graph, written = program.graph, program.written
    before = graph.operations(written)
    best = program
    for through_shared in (True, False):
        made = _rebuilt(graph, written, through_shared)
        outputs = [None if e is None else [None if n is None else made[n] for n in e] for e in program.outputs]
        candidate = LocalProgram(program.given, graph, outputs)
        if candidate.operations <= before and (best is program or candidate.operations < best.operations):
            best = candidate
    return best


def _rebuilt(graph: Graph, written: list[int], through_shared: bool) -> dict[int, int]:
    """Nodes that compute the same as those written, sums of products collected."""
    reached = graph.reached(written)
    terms = _collect(graph, reached, _users(graph, reached) if not through_shared else {})
    needed: set[int] = set()
    waiting = list(written)
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += terms[node] if node in terms else graph.operands(node)
    made: dict[int, int] = {}
    for n in reached:
        if n not in needed:
            continue
        what = graph.nodes[n]
        if n in terms:
            made[n] = _sum(graph, [(made[a], c) for a, (c, _) in sorted(terms[n].items())])
        elif what[0] in ("input", "constant"):
            made[n] = n
        else:
            made[n] = graph.apply(what[0], *[made[a] for a in what[1]])
    return made


def _users(graph: Graph, reached: Iterable[int]) -> dict[int, int]:
    users: dict[int, int] = {}
    for n in reached:
        for a in set(graph.operands(n)):
            users[a] = users.get(a, 0) + 1
    return users


def _collect(graph: Graph, reached: list[int], users: dict[int, int]) -> dict[int, _Terms]:
    """The nodes that are sums of products with constants. Those with several users are taken as they are."""
    terms: dict[int, _Terms] = {}
    for n in reached:
        what = graph.nodes[n]
        found: _Terms | None = None
        if what[0] == "multiply":
            factor, other = _factor(graph, n)
            if factor is not None:
                inner = terms.get(other)
                if inner is None or (len(inner) > 1 and users.get(other, 0) > 1):
                    inner = {other: (1.0, 0)}
                found = {a: (c * factor, depth + 1) for a, (c, depth) in inner.items()}
        elif what[0] == "negative" and what[1][0] in terms:
            found = {a: (-c, depth) for a, (c, depth) in terms[what[1][0]].items()}
        elif what[0] in ("add", "subtract"):
            a, b = what[1]
            if a in terms and b in terms:
                found = _joined(terms[a], terms[b], -1.0 if what[0] == "subtract" else 1.0)
        if found and all(math.isfinite(c) for c, _ in found.values()):
            terms[n] = found
    return terms


def _joined(a: _Terms, b: _Terms, sign: float) -> _Terms | None:
    made = dict(a)
    for node, (c, depth) in b.items():
        there = made.get(node)
        if there is None:
            made[node] = sign * c, depth
        elif min(depth, there[1]) < 2:
            return None
        else:
            made[node] = there[0] + sign * c, min(depth, there[1])
    return {node: t for node, t in made.items() if t[0]}


def _factor(graph: Graph, product: int) -> tuple[float | None, int]:
    """The constant real factor of a product, and the other."""
    a, b = graph.nodes[product][1]
    for constant, other in ((a, b), (b, a)):
        value = graph.value_of(constant)
        if isinstance(value, float):
            return value, other
    return None, product


def _sum(graph: Graph, terms: list[tuple[int, float]]) -> int:
    total = graph.constant(0.0)
    for node, c in terms:
        total = graph.apply("add", total, graph.apply("multiply", graph.constant(c), node))
    return total


def weighted_sum(graph: Graph, node: int) -> tuple[tuple[int, ...], tuple[float, ...]] | None:
    """The nodes that a sum adds, from left to right, and their coefficients; None for what is no such sum."""
    nodes: list[int] = []
    weights: list[float] = []
    while True:
        what = graph.nodes[node]
        sums = what[0] in ("add", "subtract")
        term, weight = what[1][1] if sums else node, -1.0 if what[0] == "subtract" else 1.0
        if graph.nodes[term][0] == "negative":
            term, weight = graph.nodes[term][1][0], -weight
        elif graph.nodes[term][0] == "multiply":
            factor, other = _factor(graph, term)
            if factor is not None:
                term, weight = other, weight * factor
        if graph.nodes[term][0] == "constant":
            return None
        nodes.append(term)
        weights.append(weight)
        if not sums:
            break
        node = what[1][0]
    return (tuple(reversed(nodes)), tuple(reversed(weights))) if len(nodes) > 1 else None
