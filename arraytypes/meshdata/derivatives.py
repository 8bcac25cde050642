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

from mirabelle.arraytypes.creation import zeros_like
from mirabelle.arraytypes.duals.base import Dual, cannot_hold, outermost
from mirabelle.arraytypes.duals.elementwise import where
from mirabelle.arraytypes.meshdata.access import Intent
from mirabelle.arraytypes.meshdata.localgraph import Graph
from mirabelle.arraytypes.meshdata.localkernels import Given, LocalKernel, LocalProgram
from mirabelle.arraytypes.meshdata.loops import Bound, lead_of, run_loop
from mirabelle.dispatch import verbs

# Which argument of the kernel an argument of its derivative stands for, what it is for, and its array.
Used = tuple[int, Intent, Any]


class TangentKernel(LocalKernel):
    """How what a kernel writes changes, where some of its arguments change.

    Its arguments: those that the kernel reads; those of which it gives the least or largest (`held`), after the
    loop; a direction for each that is active; and for those held a count. A contribution that is held adds its
    change to the direction and 1 to the count: of equals each counts as much.
    """

    def __init__(self, kernel: LocalKernel, intents: Sequence[Intent], active: Sequence[bool]) -> None:
        self.name = f"{kernel.name}_tangent"
        self.python = kernel.python
        self.compiled = {}
        self.likes = {}
        self._programs = {}
        self._kernel, self._intents = kernel, tuple(intents)
        self.read = [i for i, intent in enumerate(intents) if intent.gathers]
        self.active = [i for i, a in enumerate(active) if a]
        self.held = [i for i in self.active if is_extreme(intents[i])]
        self.collects = not self.held
        self.parameters = [kernel.parameters[i] for i in self.read + self.held]
        for before, some in (("d_", self.active), ("n_", self.held)):
            for i in some:
                name = before + kernel.parameters[i]
                while name in self.parameters:  # (of a derivative's derivative)
                    name = before + name
                self.parameters.append(name)

    def program(self, given: Sequence[Given]) -> LocalProgram:
        """The differentiated graph."""
        key = tuple(given)
        if key not in self._programs:
            self._programs[key] = self._differentiated(key)
        return self._programs[key]

    def _differentiated(self, given: Sequence[Given]) -> LocalProgram:
        graph = Graph()
        numbers = iter(range(len(given)))
        place, held, direction, count = (
            {i: next(numbers) for i in some} for some in (self.read, self.held, self.active, self.held)
        )
        outputs: list[list[int | None] | None] = [None] * len(given)
        like = {**direction, **place}
        primal = self._kernel.program([(intent, *given[like[i]][1:]) for i, intent in enumerate(self._intents)])
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
            found = outputs[direction[i]] = [None if n is None else next(changes) for n in entries]
            if i in held:
                one, zero = graph.constant(1.0), graph.constant(0.0)
                counts: list[int | None] = [None] * len(entries)
                for j, (n, change) in enumerate(zip(entries, found, strict=True)):
                    if n is not None and change is not None:
                        is_held = graph.apply("equal", made[n], graph.input(held[i], j))
                        found[j] = graph.apply("where", is_held, change, zero)
                        counts[j] = graph.apply("where", is_held, one, zero)
                outputs[count[i]] = counts
        return LocalProgram(given, graph, outputs)


class _AsWritten(LocalKernel):
    """A kernel whose sums are taken as they are written: another that computes them finds the same bits."""

    collects = False

    def __init__(self, kernel: LocalKernel) -> None:
        self.name, self.python, self.parameters = kernel.name, kernel.python, kernel.parameters
        self.compiled, self.likes, self.program = {}, {}, kernel.program  # type: ignore[method-assign]


def tangent_of(
    kernel: LocalKernel, intents: Sequence[Intent], active: Sequence[bool]
) -> tuple[TangentKernel, LocalKernel]:
    """How what a kernel writes changes; and the kernel to run before."""
    key = "tangent", tuple(intents), tuple(active)
    tangent = kernel.compiled.get(key)
    if tangent is None:
        tangent = kernel.compiled[key] = TangentKernel(kernel, intents, active)
    if not tangent.held:
        return tangent, kernel
    return tangent, kernel.compiled.setdefault("as written", _AsWritten(kernel))


def is_extreme(intent: Intent) -> bool:
    """Does it give the least or the largest of contributions?"""
    return intent.combines not in (None, "add")


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
    tangent, kernel = tangent_of(kernel, [b.intent for b in bound], active)
    old = [b.array.value if a else b.array for b, a in zip(bound, active, strict=True)]
    new = [verbs.copy(v) if b.intent.writes else v for b, v in zip(bound, old, strict=True)]
    changes = {i: _writable(b.array) if b.intent.writes else b.array.partials
               for i, (b, a) in enumerate(zip(bound, active, strict=True)) if a}  # fmt: skip
    _run(kernel, n, [b.with_array(b.name, b.intent, v) for b, v in zip(bound, new, strict=True)], atomics)

    def run(used: Sequence[Used]) -> None:
        given = [
            bound[i].with_array(name, intent, array)
            for name, (i, intent, array) in zip(tangent.parameters, used, strict=True)
        ]
        _run(tangent, n, given, atomics)

    intents = [b.intent for b in bound]
    for d in range(top.directions):
        along(tangent, intents, old, new, {i: x[d] for i, x in changes.items()}, run)
    for i, b in enumerate(bound):
        if b.intent.writes:
            verbs.assign(b.array, b.array._with(new[i], ((None, changes[i]),)))


def _writable(x: Dual) -> Any:
    """A copy of partials that holds what values do: those of another derivative, too."""
    inner, partials = x.value, x.partials
    if isinstance(inner, Dual) and not isinstance(partials, Dual):
        return verbs.assign(verbs.similar(inner, shape=partials.shape), partials)
    return verbs.copy(partials)


def along(
    tangent: TangentKernel, intents: Sequence[Intent], old: Any, new: Any, changes: Any, run: Any
) -> None:
    """How results change along one direction, written to where `changes` has how they did before."""
    sums = {i: (zeros_like(new[i]), zeros_like(new[i])) for i in tangent.held}
    used: list[Used] = [(i, Intent.READ, old[i]) for i in tangent.read]
    used += [(i, Intent.READ, new[i]) for i in tangent.held]
    for i in tangent.active:
        used.append((i, Intent.INC, sums[i][0]) if i in sums else (i, intents[i], changes[i]))
    used += [(i, Intent.INC, sums[i][1]) for i in tangent.held]
    run(used)
    for i, (change, count) in sums.items():
        stayed = verbs.equal(old[i], new[i])
        total = count + where(stayed, 1.0, 0.0)
        change = change + where(stayed, changes[i], 0.0)
        changes[i][...] = where(total > 0, change / verbs.maximum(total, 1.0), 0.0)


def _run(kernel: LocalKernel, n: int, bound: Sequence[Bound], atomics: bool) -> None:
    run_loop(lead_of(kernel, bound), kernel, n, bound, atomics)
