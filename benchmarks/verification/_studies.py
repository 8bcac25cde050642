"""What is verified: examples with their refinements, cell types and orders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from benchmarks.verification._convergence import Cells, Table, convergence
from benchmarks.verification._eddies import inviscid, kelvin_helmholtz, taylor_green
from benchmarks.verification._findings import Simulations
from benchmarks.verification._layers import blasius
from benchmarks.verification._reflections import daru_tenaud, double_mach, forward_step
from benchmarks.verification._tubes import riemann, shu_osher, smooth, turned
from benchmarks.verification._walls import between_plates

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
    minutes: float = 0.0  # about what it takes on one core, where that was measured

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

    def on(self, array: Any) -> Study:
        """The same with arrays of this type."""
        return replace(self, parameters={**self.parameters, "array": array})


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

    def on(self, array: Any) -> Bound:
        raise SystemExit(f"{self.measure.__name__} runs on HostArray only; leave out --array.")


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


def viscous(method: str) -> Callable[[], Mapping[str, Any]]:
    """A method for second derivatives, by its name in `dg`."""

    def make() -> Mapping[str, Any]:
        from mirabelle import dg

        return {"viscous": getattr(dg, method)()}

    return make


def odd_even(order: int) -> float:
    """The rate of the means of both sides (BR1) on uniform meshes: odd orders lose one."""
    return order + 1.0 - order % 2


def as_pressure(order: int) -> float:
    """The rate of the density where viscosity rules inside of cells, as in a flow that nothing carries along.

    It goes with the stress, as the pressure of Stokes' flow does (B. Cockburn and others, SIAM J. Numer. Anal.
    40, 2002, doi:10.1137/S0036142900380121); momentum is of order p + 1.
    """
    return float(order)


def plates(flow: str, order: int, cells: int, method: str = "LDG", **parameters: Any) -> dict[str, Any]:
    """A flow between plates, until nothing changes any more."""
    return {"flow": flow, "order": order, "cells": cells, "method": method, "end": 60.0, **parameters}


ALL_TUBES = ("sod", "lax", "toro3", "leblanc", "123")
MANUFACTURED = refinements(16, 8, 4, 4, 4, doublings=2)

STUDIES: dict[str, Study | Bound | Simulations] = {
    "advection-1d": Study("advection", refinements(32, 16, 8, 8, 4), ("line",)),
    "advection-2d": Study("advection", refinements(16, 8, 8, 4, 4), PLANE),
    "advection-3d": Study("advection", refinements(16, 8, 8, 4, 8, doublings=1), SPACE, end_time=0.5),
    "standing-wave-1d": Study("standing_wave", refinements(16, 8, 8, 4, 4), ("line",)),
    "standing-wave-2d": Study("standing_wave", refinements(16, 8, 8, 4, 4, doublings=2), PLANE),
    "standing-wave-3d": Study("standing_wave", refinements(16, 8, 4, 4, 4, doublings=1), SPACE, end_time=0.5),
    "maxwell-2d": Study("maxwell_cavity", refinements(16, 8, 8, 4, 4, doublings=2), PLANE),
    "maxwell-3d": Study("maxwell_cavity", refinements(16, 8, 4, 4, 4, doublings=1), SPACE, end_time=0.5),
    "euler-source": Study("euler_source", refinements(32, 8, 8, 8, 4, doublings=2), PLANE, end_time=0.5),
    "vortex": Study(
        "isentropic_vortex", refinements(64, 32, 32, 24, 24, doublings=2), PLANE, end_time=1.0, make=hllc
    ),
    "diffusion-2d": Study("diffusion", refinements(16, 8, 4, 4, 2, doublings=2), PLANE, end_time=0.25),
    "free-stream": Bound(free_stream, 1e-11, (*PLANE, *SPACE)),
    "entropy": Bound(entropy_rate, 1e-13, ("quadrilateral",)),
    "riemann": Simulations(
        riemann,
        [
            {"tube": "sod", "cells": (50, 100, 200, 400)},
            {"tube": "lax", "cells": (100, 200)},
            {"tube": "toro3", "cells": (100, 200)},
            {"tube": "leblanc", "cells": (102, 201, 402)},
            {"tube": "123", "cells": (100, 200)},
        ],
        quick=[{"tube": tube, "cells": (25, 50)} for tube in ALL_TUBES],
        minutes=0.3,
    ),
    "shu-osher": Simulations(
        shu_osher,
        [{"cells": 200, "reference": 1000}],
        quick=[{"cells": 100, "reference": 200}],
        minutes=0.2,
    ),
    "smooth-wave": Simulations(smooth, [{"cells": (50, 100, 200)}], quick=[{"cells": (25, 50)}], minutes=0.2),
    "turned-tube": Simulations(turned, [{"cells": 40}], quick=[{"cells": 10}], minutes=0.5, order=2),
    "double-mach": Simulations(double_mach, [{"cells": (96, 24)}], quick=[{"cells": (24, 6)}], minutes=0.3),
    "double-mach-full": Simulations(
        double_mach, [{"cells": (192, 48)}], quick=[{"cells": (32, 8)}], minutes=2, by_name=True
    ),
    "forward-step": Simulations(
        forward_step,
        [{"cells": (60, 20), "fine": False}],
        quick=[{"cells": (15, 5), "fine": False}],
        minutes=0.5,
    ),
    "forward-step-full": Simulations(
        forward_step,
        [{"cells": (120, 40), "fine": True}],
        quick=[{"cells": (15, 5), "fine": True}],
        minutes=2.5,
        by_name=True,
    ),
    "shock-boundary-layer": Simulations(
        daru_tenaud,
        [{"meshes": ((12, 6), (24, 12)), "reynolds": 200.0}],
        quick=[{"meshes": ((6, 3), (12, 6)), "reynolds": 200.0}],
        minutes=0.4,
    ),
    "shock-boundary-layer-full": Simulations(
        daru_tenaud,
        [{"meshes": ((64, 32), (128, 64), (256, 128)), "reynolds": 200.0}],
        quick=[{"meshes": ((6, 3), (12, 6)), "reynolds": 200.0}],
        by_name=True,
    ),
    "becker-shock": Study(
        "becker_shock",
        {1: (120, 240, 480), 2: (60, 120, 240), 3: (60, 120, 240), 4: (60, 120, 240), 5: (40, 80, 160)},
        ("line",),
        end_time=0.05,
        minutes=0.4,
    ),
    "navier-stokes-ldg": Study(
        "navier_stokes_manufactured",
        MANUFACTURED,
        PLANE,
        end_time=0.1,
        make=viscous("LDG"),
        minutes=1,
    ),
    "navier-stokes-sipg": Study(
        "navier_stokes_manufactured",
        MANUFACTURED,
        PLANE,
        end_time=0.1,
        make=viscous("SIPG"),
        minutes=1,
    ),
    "navier-stokes-br1": Study(
        "navier_stokes_manufactured",
        MANUFACTURED,
        ("quadrilateral",),
        expected=odd_even,
        end_time=0.1,
        make=viscous("BR1"),
        minutes=0.5,
    ),
    "navier-stokes-walls": Study(
        "navier_stokes_manufactured",
        MANUFACTURED,
        ("quadrilateral",),
        orders=(1, 2, 3),
        expected=as_pressure,
        end_time=0.1,
        parameters={"walls": True},
        make=viscous("SIPG"),
        minutes=0.6,
    ),
    "poiseuille": Study(
        "poiseuille", refinements(4, 4, 2, doublings=2), PLANE[1:], orders=(1, 2, 3), end_time=0.5, minutes=0.3
    ),
    "plates": Simulations(
        between_plates,
        [
            # (Not BR1: jumps that its gradient does not see stay for ever, so steady states are not unique.)
            *[plates("couette", 2, 2, m, insulated=i) for m in ("LDG", "SIPG") for i in (False, True)],
            plates("couette", 3, 3, insulated=False),
            plates("poiseuille", 4, 2),
        ],
        quick=[plates("couette", 2, 2, insulated=False)],
        minutes=0.6,
    ),
    "blasius": Simulations(
        blasius,
        [
            *[{"cells": (8, 12, 8), "method": m, "end": 5.0} for m in ("LDG", "SIPG")],
            {"cells": (8, 12, 8), "method": "LDG", "end": 5.0, "reynolds": 1e5},
        ],
        quick=[{"cells": (4, 6, 8), "method": "LDG", "end": 4.5}],
        minutes=1.5,
    ),
    "taylor-green": Simulations(
        taylor_green, [{"cells": 8, "end": 2.0}], quick=[{"cells": 4, "end": 1.0}], minutes=0.4
    ),
    "taylor-green-full": Simulations(
        taylor_green,
        [{"cells": 32, "end": 10.0, "peak": True}],
        quick=[{"cells": 4, "end": 1.0, "peak": True}],
        by_name=True,
    ),
    "taylor-green-inviscid": Simulations(
        inviscid, [{"cells": 4, "end": 10.0}], quick=[{"cells": 2, "end": 1.0}], minutes=0.3
    ),
    "taylor-green-inviscid-full": Simulations(
        inviscid,
        [{"cells": 14, "end": 20.0, "order": 7}],
        quick=[{"cells": 4, "end": 1.0}],
        by_name=True,
    ),
    "kelvin-helmholtz": Simulations(
        kelvin_helmholtz, [{"cells": 16, "end": 5.0}], quick=[{"cells": 4, "end": 1.0}], minutes=0.4
    ),
    "kelvin-helmholtz-full": Simulations(
        kelvin_helmholtz,
        [{"cells": 32, "end": 10.0}],
        quick=[{"cells": 8, "end": 1.0}],
        minutes=3,
        by_name=True,
    ),
}
# What is run if nothing is asked for.
USUAL = tuple(name for name, study in STUDIES.items() if not (isinstance(study, Simulations) and study.by_name))
