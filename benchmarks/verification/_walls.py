"""Steady flows between walls, reached from another state."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from benchmarks.verification._findings import Quantity, simulated


def between_plates(
    flow: str, order: int, cells: int, method: str, end: float, **parameters: Any
) -> Iterator[Quantity]:
    """Errors in steady state of an example whose `exact` flow polynomials of this order can be."""
    import mirabelle as mb
    from mirabelle import dg

    example = importlib.import_module(f"mirabelle.dg.examples.{flow}")
    semi, exact, span, options = example.setup(
        order=order, cells=(1, cells), viscous=getattr(dg, method)(), end=end, **parameters
    )

    def disturbed(x: Any, t: Any) -> Any:
        """Another velocity and pressure; the density is that of the flow, since walls keep the mass."""
        rho, *v, p = semi.equations.primitive(exact(x, t))
        wave = 0.1 * mb.sin(mb.pi * x[1])
        return semi.equations.conservative((rho, v[0] + wave, v[1], p * (1 + wave)))

    steady = dg.SteadyState(1e-11, interval=50)
    solution = simulated((semi, disturbed, span, options), [steady])
    yield Quantity("time that was needed", solution.t)
    yield Quantity("largest rate of change", steady.residuals[-1], most=1e-10)
    # At nodes: between them densities are no polynomials, and their interpolation has errors of its own.
    errors = mb.max(mb.abs(solution.u - semi.state(exact)), axis=(1, 2))
    for name, error in zip(semi.equations.names, mb.to_numpy(mb.materialize(errors)), strict=True):
        yield Quantity(f"error of {name} at nodes", float(error), most=1e-10)
