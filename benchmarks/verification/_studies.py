"""What is verified: examples with their refinements, cell types and orders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from benchmarks.verification._convergence import Cells, Table, convergence

ORDERS = (1, 2, 3, 4, 5)
PLANE = ("triangle", "quadrilateral")
SPACE = ("tetrahedron", "hexahedron")


def optimal(order: int) -> float:
    """The rate of errors of a smooth solution by polynomials of some order."""
    return order + 1.0


@dataclass(frozen=True)
class Study:
    """An example of `mirabelle.dg.examples` by orders, cell types and refinements; `parameters` go to its
    `setup`."""

    example: Any
    cells: Cells
    cell_types: Sequence[str | None] = (None,)
    orders: Sequence[int] = ORDERS
    expected: Callable[[int], float] = optimal
    end_time: float | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    make: Callable[[], Mapping[str, Any]] = dict  # more of them, whose values need the library

    def tables(self) -> Iterator[Table]:
        return convergence(
            self.example,
            self.orders,
            self.cells,
            self.cell_types,
            expected=self.expected,
            end_time=self.end_time,
            parameters={**self.parameters, **self.make()},
        )

    def small(self) -> Study:
        """Two orders on the coarsest meshes: to try it out. Order 1 shows its rate on fine meshes only."""
        orders = tuple(self.orders)[1:3]
        cells = {o: tuple(self.cells[o] if isinstance(self.cells, Mapping) else self.cells)[:2] for o in orders}
        return replace(self, orders=orders, cells=cells)


@dataclass(frozen=True)
class Value:
    """A number that must not be larger than a limit, most often that of rounding."""

    cell: str
    order: int
    value: float
    limit: float

    @property
    def met(self) -> bool:
        return self.value <= self.limit

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "met": self.met, "rate_minus_expected": None}

    def __str__(self) -> str:
        verdict = "met" if self.met else "NOT MET"
        return f"{self.cell}, order {self.order}: {self.value:.1e}, at most {self.limit:.0e}: {verdict}\n"


@dataclass(frozen=True)
class Bound:
    """Numbers `measure(cell, order)` that must not be larger than `limit`."""

    measure: Callable[[str, int], float]
    limit: float
    cell_types: Sequence[str]
    orders: Sequence[int] = ORDERS

    def tables(self) -> Iterator[Value]:
        for cell in self.cell_types:
            for order in self.orders:
                yield Value(cell, order, self.measure(cell, order), self.limit)

    def small(self) -> Bound:
        return replace(self, orders=tuple(self.orders)[:2])


def free_stream(cell: str, order: int) -> float:
    """The largest rate of change of a uniform flow on a warped mesh."""
    import mirabelle as mb
    from mirabelle.dg.examples import free_stream as example

    semi, exact, _, _ = example.setup(order=order, cells=6, cell=cell)
    return float(mb.max(mb.abs(semi.rhs(semi.state(exact), semi.scalar(0.0)))))


def entropy_rate(cell: str, order: int) -> float:
    """The rate of the entropy of a blast wave by fluxes that conserve it, relative to what cancels in it."""
    import mirabelle as mb
    from mirabelle.dg.examples import entropy_conservation as example

    semi, initial, _, _ = example.setup(order=order, cells=(16, 16))
    u = semi.state(initial)
    fields = semi.fields(u)
    parts = zip(semi.equations.entropy_variables(fields), semi.fields(semi.rhs(u)), strict=True)
    return abs(example.entropy_rate(semi, u)) / float(semi.integrate(sum(mb.abs(w * r) for w, r in parts)))


def refinements(*coarsest: int, doublings: int = 3) -> dict[int, tuple[int, ...]]:
    """Meshes of twice as many cells along each axis, from the coarsest one of each order.

    >>> refinements(8, 4, doublings=2)
    {1: (8, 16, 32), 2: (4, 8, 16)}
    """
    return {order: tuple(n * 2**k for k in range(doublings + 1)) for order, n in enumerate(coarsest, 1)}


def hllc() -> Mapping[str, Any]:
    """A flux that keeps shear: that of Lax and Friedrichs costs even orders half an order."""
    from mirabelle import dg

    return {"flux": dg.hllc}


STUDIES: dict[str, Study | Bound] = {
    "advection-1d": Study("advection", refinements(32, 16, 8, 8, 4), ("line",)),
    "advection-2d": Study("advection", refinements(16, 8, 8, 4, 4), PLANE),
    "advection-3d": Study("advection", refinements(16, 8, 8, 4, 4, doublings=1), SPACE, end_time=0.5),
    "standing-wave-1d": Study("standing_wave", refinements(16, 8, 8, 4, 4), ("line",)),
    "standing-wave-2d": Study("standing_wave", refinements(16, 8, 8, 4, 4, doublings=2), PLANE),
    "standing-wave-3d": Study("standing_wave", refinements(16, 8, 4, 4, 4, doublings=1), SPACE, end_time=0.5),
    "maxwell-2d": Study("maxwell_cavity", refinements(16, 8, 8, 4, 4, doublings=2), PLANE),
    "maxwell-3d": Study("maxwell_cavity", refinements(16, 8, 4, 4, 4, doublings=1), SPACE, end_time=0.5),
    "euler-source": Study("euler_source", refinements(32, 8, 8, 8, 4, doublings=2), PLANE, end_time=0.5),
    "vortex": Study(
        "isentropic_vortex", refinements(64, 32, 32, 16, 16, doublings=2), PLANE, end_time=1.0, make=hllc
    ),
    "diffusion-2d": Study("diffusion", refinements(16, 8, 4, 4, 2, doublings=2), PLANE, end_time=0.25),
    "free-stream": Bound(free_stream, 1e-11, (*PLANE, *SPACE)),
    "entropy": Bound(entropy_rate, 1e-13, ("quadrilateral",)),
}
