"""Derivatives of loops: how results change along directions, by a kernel made of the loop's own.

The kernel's graph is differentiated once; what comes out is a local kernel like another, which reads what
the first one reads and its directions, and adds to directions where the first adds to values.

>>> import mirabelle as mb
>>> from mirabelle import meshdata as md
>>> edges = md.Points("mesh", "edge", 2)
>>> ends = md.Dofs(edges, [[0, 1], [1, 2]], size=3)
>>> def energy(x, e):
...     e[0] = (x[1] - x[0]) ** 2
>>> def f(x):
...     e = mb.zeros_like(x[:2])
...     md.loop(edges, energy, md.READ(x, ends), md.WRITE(e))
...     return mb.sum(e)
>>> print(mb.autodiff.gradient(f, mb.HostArray([0.0, 1.0, 3.0])))
[-2. -2.  4.]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mirabelle.arraytypes.duals.base import Dual, cannot_hold, outermost
from mirabelle.arraytypes.meshdata.access import Intent
from mirabelle.arraytypes.meshdata.localgraph import Graph
from mirabelle.arraytypes.meshdata.localkernels import Given, LocalKernel, LocalProgram
from mirabelle.arraytypes.meshdata.loops import Bound, lead_of, run_loop
from mirabelle.dispatch import verbs
from mirabelle.dispatch.errors import UserFunctionError


class TangentKernel(LocalKernel):
    """How what a kernel writes changes, where some of its arguments change.

    Its arguments: those that the kernel reads, then a direction for each that is active.
    """

    def __init__(self, kernel: LocalKernel, given: Sequence[Given], active: Sequence[bool]) -> None:
        self.name = f"{kernel.name}_tangent"
        self.python = kernel.python
        self.compiled = {}
        self._programs = {}
        self.read = [i for i, g in enumerate(given) if g[0].gathers]
        self.active = [i for i, a in enumerate(active) if a]
        self.parameters = [kernel.parameters[i] for i in self.read]
        self.parameters += [f"d_{kernel.parameters[i]}" for i in self.active]
        self._primal = kernel.program(given)

    def program(self, given: Sequence[Given]) -> LocalProgram:
        """The differentiated graph."""
        key = tuple(given)
        if key not in self._programs:
            self._programs[key] = self._differentiated(key)
        return self._programs[key]

    def _differentiated(self, given: Sequence[Given]) -> LocalProgram:
        primal, graph = self._primal, Graph()
        place = {i: at for at, i in enumerate(self.read)}
        direction = {i: len(self.read) + at for at, i in enumerate(self.active)}
        outputs: list[list[int | None] | None] = [None] * len(given)
        made = _copied(primal, graph, place)
        seeds = {
            graph.input(place[i], j): graph.input(direction[i], j)
            for i in self.active
            if i in place
            for j in primal.read()[i]
        }
        for i in self.active:
            entries = primal.outputs[i]
            if entries is None:
                continue
            written = [made[n] for n in entries if n is not None]
            changes = iter(graph.tangents(written, seeds))
            outputs[direction[i]] = [None if n is None else next(changes) for n in entries]
        return LocalProgram(given, graph, outputs)


def _copied(program: LocalProgram, graph: Graph, place: dict[int, int]) -> dict[int, int]:
    """The nodes of a program in another graph, with its arguments numbered anew."""
    made: dict[int, int] = {}
    for n in program.graph.reached(program.written):
        what = program.graph.nodes[n]
        if what[0] == "constant":
            made[n] = graph.constant(what[1])
        elif what[0] == "input":
            made[n] = graph.input(place[what[1]], what[2])
        else:
            made[n] = graph.apply(what[0], *[made[a] for a in what[1]])
    return made


@run_loop.method
def _(lead: Dual, kernel: Any, n: Any, bound: Any, atomics: Any, /) -> None:
    """The values, and for each direction how they change."""
    top = outermost([b.array for b in bound])
    active = [isinstance(b.array, Dual) and b.array._tag is top._tag for b in bound]
    for b, a in zip(bound, active, strict=True):
        if b.intent.writes and not a:
            raise cannot_hold(top)
        if b.intent.writes and b.intent.combines not in (None, "add"):
            raise UserFunctionError(
                f"{kernel.name}(): {b.name} takes the least or largest contribution ({b.intent.value}), and "
                "such loops "
                "have no derivatives yet. Write each point's value, md.WRITE, and take mb.min of them."
            )
    given = tuple((b.intent, b.shape, b.dtype) for b in bound)
    key = "tangent", given, tuple(active)
    tangent = kernel.compiled.get(key)
    if tangent is None:
        tangent = kernel.compiled[key] = TangentKernel(kernel, given, active)
    values = [verbs.copy(b.array.value) if a and b.intent.writes else (b.array.value if a else b.array)
              for b, a in zip(bound, active, strict=True)]  # fmt: skip
    changes = {i: verbs.copy(b.array.partials) if b.intent.writes else b.array.partials
               for i, (b, a) in enumerate(zip(bound, active, strict=True)) if a}  # fmt: skip
    for d in range(top.directions):
        reads = [bound[i].with_array(bound[i].name, Intent.READ, values[i]) for i in tangent.read]
        directions = [
            bound[i].with_array(f"d_{bound[i].name}", bound[i].intent, changes[i][d]) for i in tangent.active
        ]
        _run(tangent, n, [*reads, *directions], atomics)
    _run(kernel, n, [b.with_array(b.name, b.intent, v) for b, v in zip(bound, values, strict=True)], atomics)
    for i, b in enumerate(bound):
        if b.intent.writes:
            verbs.assign(b.array.value, values[i])
            b.array._rewritten(((None, changes[i]),))


def _run(kernel: LocalKernel, n: int, bound: Sequence[Bound], atomics: bool) -> None:
    run_loop(lead_of(kernel, bound), kernel, n, bound, atomics)
