"""A problem in space whose cells are divided over processes.

Each process has some cells, and operators and geometry of these alone (`local`, a problem like any other). What
lies behind the cut between them comes in one message from each neighbouring process and evaluation
(`dg.traces`). Users see arrays over all cells: states, positions and right-hand sides are `mb.DArray`s, divided
by cells, while fields and nodes are not divided.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np

import mirabelle as mb
from mirabelle.dg.equations import Equations
from mirabelle.dg.meshes import Mesh, drawing
from mirabelle.dg.meshes.divided import DividedMesh, divided
from mirabelle.dg.meshes.parts import Part
from mirabelle.dg.semidiscretization import Auxiliary, Semidiscretization
from mirabelle.dg.solver import Solver
from mirabelle.dg.spelled import Array, ArrayLike, Axes, DTypeLike, Fields, Number, RungeKutta, Solution, Time
from mirabelle.dg.terms import before_and_at_the_cut


class Local(Semidiscretization):
    """What one process has of a divided problem; its arrays are those of its own cells."""

    def __init__(self, part: Part, comm: Any, *given: Any, **more: Any) -> None:
        self.part, self.comm = part, comm
        super().__init__(part.mesh, *given, **more)
        if self.operators.cut is not None and not self.second_order:
            self.kept(before_and_at_the_cut)  # (not first in a program, whose values these would be)

    def __new__(cls, *given: Any, **more: Any) -> Any:
        return object.__new__(cls)


class Divided(Semidiscretization):
    """Equations on a mesh of which each process has some cells; made by `dg.Semidiscretization`.

    All processes make it together: from the same mesh, or from one of which each has read its part
    (`dg.read_parts`). `ranks` may say which process gets each cell; by default METIS does where `pymetis` is
    installed, else Hilbert's curve. The cells of a process follow each other in all arrays: `numbers` are the
    numbers that they had in the mesh that was divided.

    >>> import mirabelle as mb
    >>> from mirabelle import dg
    >>> mesh = dg.box(8, upper=2 * mb.pi, periodic=True)
    >>> semi = dg.Semidiscretization(mesh, dg.Advection((1.0,)), dg.Solver(3), array=mb.DArray[mb.HostArray])
    >>> solution = dg.solve(semi, 0.5, lambda x, t: (mb.sin(x[0] - t),), cfl=0.9)
    >>> type(solution.u).__name__, solution.u.shape
    ('DArray[HostArray[float64, 3]]', (1, 4, 8))
    >>> solution.errors(lambda x, t: (mb.sin(x[0] - t),))["u"].l2 < 1e-3
    True
    """

    # fmt: off
    def __init__(self, mesh: Mesh | DividedMesh, equations: Equations, solver: Solver,
                 boundary_conditions: Mapping[str, Any] | None = None,
                 source: Callable[[Fields, Fields, Any, Any], Any] | None = None,
                 array: Callable[..., Any] = mb.DArray[mb.HostArray], dtype: DTypeLike = mb.float64,
                 ranks: ArrayLike | None = None) -> None:
        # fmt: on
        made = array(np.zeros(0))
        self.array = array
        self.processes = mesh.comm if isinstance(mesh, DividedMesh) else mb.distributed.communicator()
        given = dict(boundary_conditions or {})
        told = {
            "mesh": mesh.fingerprint,
            "equations": equations,
            "solver": solver,
            "boundary conditions": ", ".join(f"{k} ({type(v).__name__})" for k, v in sorted(given.items()))
            or "none",
            "source": getattr(source, "__qualname__", source),
            "dtype": np.dtype(dtype),
            "division (ranks=)": None if ranks is None else zlib.crc32(np.asarray(ranks).tobytes()),
        }
        self.compare(**told)
        with mb.distributed.together(self.processes):
            mesh.check_boundaries(given)
            self.cells = mesh if isinstance(mesh, DividedMesh) else divided(mesh, ranks)
            self._make(equations, solver, given, source, type(made).inner, dtype)

    def _make(self, equations: Any, solver: Any, given: Any, source: Any, inner: Any, dtype: Any) -> None:
        self.sizes, part = self.cells.sizes, self.cells.part
        here = {name: condition for name, condition in given.items() if name in part.mesh.boundaries}
        self.local = Local(part, self.processes, equations, solver, here, source, inner, dtype)
        self._kept: dict[Any, Any] = {}
        self._layouts: dict[int, Any] = {}
        self.boundary_conditions, self.source = given, source
        for name in ("equations", "solver", "dtype", "element", "rule", "strong"):
            setattr(self, name, getattr(self.local, name))
        self.x: Fields = tuple([self.shown(c) for c in self.local.x])
        self.auxiliary = Auxiliary(tuple([self.shown(c) for c in self.local.auxiliary.nodes]))

    def compare(self, **told: Any) -> None:
        """Raise on all processes if they are not about to solve the same problem."""
        # (Functions are at other addresses in each process.)
        mine = {name: re.sub(r" at 0x[0-9a-f]+", "", str(what)) for name, what in told.items()}
        for rank, theirs in enumerate(said := self.processes.allgather_object(mine)):
            for name, text in theirs.items():
                if text != said[0][name]:
                    raise ValueError(
                        f"Processes solve different problems: of rank 0 the {name} is {said[0][name]}, and of "
                        f"rank {rank} {text}. All make the same semidiscretization, `dg.Semidiscretization("
                        "mesh, equations, solver, ..., array=mb.DArray[mb.HostArray])`, and solve it alike; "
                        "nothing of it depends on the rank."
                    )

    # From the arrays of all to those of this process, and back

    def shown(self, local: Array) -> Array:
        """An array (..., K) of this process's cells as its part of one over all cells."""
        local = mb.materialize(local)
        layout = self._layouts.get(local.ndim)
        if layout is None:
            ragged = mb.distributed.Ragged(local.ndim - 1, self.sizes)
            layout = self._layouts[local.ndim] = mb.distributed.Layout(ragged)
        return mb.DArray.from_local(local, layout, self.processes, checked=False)

    def taken(self, u: Array) -> Array:
        """This process's part of an array (..., K) over all cells."""
        if mb.place(u).kind != "distributed":
            raise TypeError(
                f"A state of a divided problem is an array over all processes, and this is a "
                f"{type(u).__name__}. Make one: `semi.state(lambda x, t: (...))`, `semi.put(values)`."
            )
        u = mb.distributed.redistribute(u, mb.distributed.Ragged(u.ndim - 1, self.sizes))
        return cast(mb.DArray, u).local

    def put(self, values: ArrayLike) -> Array:
        values = np.asarray(values)
        if values.ndim and values.shape[-1] == self.K:
            first = sum(self.sizes[: self.processes.rank])
            mine = values[..., first : first + self.sizes[self.processes.rank]]
            return self.shown(self.local.put(np.ascontiguousarray(mine)))
        return self.local.put(values)

    @cached_property
    def mesh(self) -> Mesh:  # type: ignore[override]
        """The whole mesh in the order of the arrays, brought together: all processes ask for it together."""
        return self.cells.whole

    @cached_property
    def numbers(self) -> np.ndarray:
        """The number that each cell had in the mesh that was divided; all processes ask for it together."""
        return np.concatenate(self.processes.allgather_object(self.cells.numbers))

    @property
    def fingerprint(self) -> str:
        return self.cells.fingerprint

    @property
    def K(self) -> int:
        return len(self.cells)

    @property
    def dims(self) -> int:
        return self.cells.dims

    def scalar(self, value: float) -> Array:
        return self.local.scalar(value)

    def stored(self) -> dict[str, Any]:
        """The whole mesh as arrays over all processes, by the names that they have in files."""
        own = {f"mesh/{name}": x for name, x in self.cells.arrays().items()}
        own |= {f"boundaries/{name}": x for name, x in self.cells.boundaries().items()}
        own["numbers"] = self.cells.numbers
        comm, found = self.processes, {}
        for name, x in own.items():
            sizes = tuple(comm.allgather_object(x.shape[-1]))
            local = self.local.array(np.ascontiguousarray(x))
            layout = mb.distributed.Ragged(x.ndim - 1, sizes)
            found[name] = mb.DArray.from_local(local, layout, comm, checked=False)
        return found

    @property
    def speaks(self) -> bool:
        """Whether this process is the one that prints."""
        return bool(self.processes.rank == 0)

    # What each process does of its part

    def state(self, function: Callable[[Fields, Any], Sequence[Any]], t: float = 0.0) -> Array:
        return self.shown(self.local.state(function, t))

    def rhs(self, u: Array, t: Time = 0.0) -> Array:
        return self.shown(self.local.rhs(self.taken(u), t))

    def limit(self, u: Array, t: Time = 0.0) -> Array:
        return self.shown(self.local.limit(self.taken(u), t)) if self.solver.limiters else u

    def max_dt(self, u: Array, cfl: float = 1.0, method: RungeKutta | None = None) -> Array:
        return self.local.max_dt(self.taken(u), cfl, method)

    def artificial_diffusivity(self, u: Array, faces: bool = False) -> Number:
        found = self.local.artificial_diffusivity(self.taken(u), faces)
        return found if isinstance(found, float) else self.shown(found)

    def norms(
        self, u: Array, exact: Callable[[Fields, Any], Sequence[Any]], t: float
    ) -> dict[str, tuple[float, float]]:
        return self.local.norms(self.taken(u), exact, t)

    def integrate(self, values: Array) -> Array:
        return self.local.integrate(self.taken(values))

    @cached_property
    def weights(self) -> Array:
        return self.shown(self.local.weights)

    def sample(self, u: Array, points: ArrayLike) -> np.ndarray:
        """The fields at points (d, n), (m, n) in NumPy, on all processes; NaN outside of the domain."""
        found = self.local.sample(self.taken(u), points)
        comm, n = self.processes, self.processes.size
        # (A point on the cut is found by several: the first has it.)
        who = np.where(np.isnan(found).all(0), n, comm.rank)
        first = mb.to_numpy(mb.distributed.allreduce(mb.HostArray(who), "min", comm))
        mine = np.where(first == comm.rank, found, 0.0)
        total = mb.to_numpy(mb.distributed.allreduce(mb.HostArray(mine), "sum", comm))
        return np.where(first < n, total, np.nan)

    def anywhere(self, find: Callable[[Any, Any], str], u: Array) -> str:
        """What the first process finds that finds anything of its own part, in words."""
        found = find(self.local, self.taken(u))
        said = self.processes.allgather_object(found)
        for rank, text in enumerate(said):
            if text:
                return f"{text} of rank {rank}"
        return ""

    # Together

    def agree(self, solution: Solution, callbacks: Sequence[Any]) -> None:
        """Let all do what one was told, by a signal or by its own callbacks: to stop, to write a checkpoint."""
        asked = [getattr(c, "asked", False) for c in callbacks]
        flags = np.array([bool(solution.stopped or solution.told), *asked], np.int8)
        flags = mb.to_numpy(mb.distributed.allreduce(mb.HostArray(flags), "max", self.processes))
        for callback, wanted in zip(callbacks, flags[1:], strict=True):
            if wanted:
                callback.interval, callback.asked = 1, False
        if flags[0]:
            mine = solution.stopped or solution.told, solution.interrupted or bool(solution.told)
            said = self.processes.allgather_object(mine)
            solution.stopped = next(text for text, _ in said if text)
            solution.interrupted = any(came for _, came in said)

    def report(self) -> str:
        """How cells are divided, what is sent, and how long processes have waited for it, by rank.

        Seconds are those in which the host waited in steps of `dg.solve` (cards wait by themselves); that all
        agree on the length of a step is counted apart, as "µs dt". All processes call it.
        """
        local, part, fields = self.local, self.local.part, len(self.equations)
        assert part is not None
        cut = local.operators.cut
        sent = 0 if cut is None else cut.nbytes(fields, self.dtype.itemsize)
        traces, lengths = _waited(local, combines=False), _waited(local, combines=True)
        waited = [1e6 * seconds / max(times, 1) for seconds, times in (traces, lengths)]
        row = len(part.mesh), len(part.faces), len(np.unique(part.ranks)), sent, *waited, traces[0]
        rows = self.processes.allgather_object(row)
        names = "cells   cut faces   neighbours   bytes an evaluation   µs waited each   µs dt   s in all"
        form = "{:4}{:8}{:12}{:13}{:22}{:17.1f}{:8.1f}{:11.3f}"
        lines = [f"rank   {names}", *[form.format(rank, *row) for rank, row in enumerate(rows)]]
        most = max(a for a, *_ in rows) * len(rows) / sum(a for a, *_ in rows)
        return "\n".join([*lines, f"the largest part has {most:.3f} of the mean"])

    def plot_parts(self, axes: Axes | None = None) -> Axes:
        """Draw which process has which cells, by matplotlib; gives the axes. All processes call it.

        >>> from matplotlib.figure import Figure
        >>> import mirabelle as mb
        >>> from mirabelle import dg
        >>> mesh, array = dg.box((4, 4), periodic=True), mb.DArray[mb.HostArray]
        >>> semi = dg.Semidiscretization(mesh, dg.Advection((1.0, 0.0)), dg.Solver(1), array=array)
        >>> len(semi.plot_parts(Figure().add_subplot()).collections)
        1
        """
        return drawing.plot_parts(self.mesh, self.sizes, axes)

    def __repr__(self) -> str:
        return f"{super().__repr__()}, on {self.processes.size} processes"


def _waited(local: Any, combines: bool) -> tuple[float, int]:
    """Seconds in which compiled steps have waited for messages, or for numbers of all, and how often."""
    functions = vars(local).get("step_programs", {}).values()
    programs = [program for f in functions for program in vars(f).get("programs", {}).values()]
    steps = [step for program in programs for step in program.plan.steps]
    every = {id(s.exchange): s.exchange for s in steps if hasattr(s, "exchange")}.values()
    found = [e for e in every if e.combines is combines]
    return sum([e.waited for e in found]), sum([e.times for e in found])
